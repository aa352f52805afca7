"""`report`: a page about a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from spectralgp import load
from spectralgp.cli.app import AsJson, Debug, Force, answering, print_json, to_be_written
from spectralgp.cli.files import (
    DateFormat,
    Inputs,
    Layout,
    LayoutOption,
    ModelFile,
    Nodes,
    NodesOption,
    data_of,
    file_option,
    naming,
)


@answering
def report(
    model: ModelFile,
    out: Annotated[Path, typer.Option(help="The page.", dir_okay=False, metavar="FILE.html")],
    signals: Annotated[
        Path | None,
        file_option(
            "--signals", "Signals that the model has not seen, to judge it by; leave-one-out if not given.", None
        ),
    ] = None,
    inputs: Inputs = None,
    title: Annotated[str | None, typer.Option(help="The heading.")] = None,
    aspect: Annotated[
        float | None,
        typer.Option(
            help="Length of a unit upwards on the map, to one sideways; 1 / cos(latitude) for degrees.", min=0.1
        ),
    ] = None,
    layout: LayoutOption = Layout.auto,
    nodes: NodesOption = Nodes.exact,
    date_format: DateFormat = None,
    force: Force = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    r"""Write a page about a model: filters, a map, predictions, calibration, and what was learnt in words.

    It is one HTML file that needs no network.

    Example (the model is that of `spectralgp fit --help`):
      spectralgp report model.sgp --signals files/later.csv --out report.html
    """
    to_be_written(out, force=force)
    fitted = load(model)
    held_out: tuple[Any, ...] = ()
    if signals is not None:
        data = data_of(fitted, signals, inputs, layout, nodes, date_format)
        held_out = (data.inputs, data.signals)
    elif inputs is not None:
        raise typer.BadParameter("--inputs must be left out without --signals, whose inputs they are.")
    with naming(model if signals is None else signals):
        path = fitted.report(out, *held_out, title=title, aspect="equal" if aspect is None else aspect)
    if as_json:
        print_json({"out": path, "n_bytes": path.stat().st_size})
        return
    typer.echo(f"Report: {path}")
