"""The command line: the one room that prints."""

from spectralgp.cli.answers import impute, predict, report, score
from spectralgp.cli.app import app, info, main
from spectralgp.cli.forecasting import forecast, update
from spectralgp.cli.learning import compare, fit
from spectralgp.cli.showcase import demo, example

__all__ = ["COMMANDS", "app", "main"]

COMMANDS = (
    fit,
    predict,
    impute,
    score,
    compare,
    forecast,
    update,
    report,
    demo,
    example,
    info,
)  # in the order of the help

for _command in COMMANDS:
    app.command()(_command)
