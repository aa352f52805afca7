"""The command line: the one room that prints."""

from spectralgp.cli.answers import impute, predict, score
from spectralgp.cli.app import app, main
from spectralgp.cli.comparing import compare
from spectralgp.cli.demonstration import demo, example
from spectralgp.cli.learning import fit
from spectralgp.cli.machine import info
from spectralgp.cli.reporting import report

__all__ = ["COMMANDS", "app", "main"]

COMMANDS = (fit, predict, impute, score, compare, report, demo, example, info)
"""In the order of the help."""

for _command in COMMANDS:
    app.command()(_command)
