"""`demo` and `example`: the embedded data, shown and as files."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from spectralgp._basics.extras import require
from spectralgp._basics.progress import progress_bar
from spectralgp.cli.app import AsJson, Column, Debug, Force, answering, print_json, table_of, to_be_written
from spectralgp.cli.showcase import LEVEL, METHODS, OUTAGE, DemoResult, run_demo
from spectralgp.datasets import load_us_income
from spectralgp.files.tables import write_tables

COLUMNS = {
    "RMS error": Column("{row.rmse:.3f}", "rmse", False),
    "mean error": Column("{row.mean_error:.3f}", "mean_error", False),
    "inside": Column("{row.coverage:.1%}", "coverage", None),
}
FIRST, LAST = 1960, 1989  # years to learn from
SHARE_OF_HOLES = 0.1


@answering
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture; made if need be.", file_okay=False)] = Path(
        "demo-output"
    ),
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Fill in what sensors that failed did not measure; compare with other methods, and save a picture.

    Example:
      spectralgp demo --out pictures
    """
    with progress_bar("demo", len(METHODS) + 2, show=True) as progress:
        result = run_demo(out, progress)
    if as_json:
        rows = [asdict(row) for row in result.rows]
        print_json({"methods": rows, "conclusion": result.conclusion, "pictures": result.pictures})
        return
    _print_result(result, Console())


@answering
def example(
    out: Annotated[Path, typer.Option(help="Folder for the files; made if need be.", file_okay=False)] = Path("files"),
    force: Force = False,
    debug: Debug = False,
) -> None:
    """Write files to try the other commands with: incomes of 48 US states, in per cent above the typical state.

    edges.csv (who borders whom), states.csv (where states are), incomes.csv (1960 to 1989), later.csv (1989 to 2009, to
    predict) and holes.csv (1960 to 2009, a tenth of the cells empty).

    Example:
      spectralgp example --out files
    """
    pandas = require("pandas", "cli", "to write tables")
    data = load_us_income()
    names = list(data.graph.names or ())
    incomes = pandas.DataFrame(
        (100 * data.relative_incomes).round(2), index=pandas.Index(data.years, name="year"), columns=names
    )
    starts, ends = data.graph.weights.nonzero()
    pairs = [(names[start], names[end]) for start, end in zip(starts, ends, strict=True) if start < end]
    recent = incomes.loc[FIRST:]
    empty = np.random.default_rng(0).random(recent.shape) < SHARE_OF_HOLES
    places = pandas.DataFrame(data.graph.coordinates, columns=["longitude", "latitude"])
    places.insert(0, "name", names)
    tables = {
        "edges.csv": pandas.DataFrame(pairs, columns=["source", "target"]),
        "states.csv": places,
        "incomes.csv": incomes.loc[FIRST:LAST].reset_index(),
        "later.csv": incomes.loc[LAST:].reset_index(),
        "holes.csv": recent.mask(empty).reset_index(),
    }
    out.mkdir(parents=True, exist_ok=True)
    files = {out / name: table for name, table in tables.items()}
    to_be_written(*files, force=force)
    write_tables(files, index=False)
    for path in files:
        typer.echo(str(path))


def _print_result(result: DemoResult, console: Console) -> None:
    data = result.data
    console.print(
        f"Particulate matter at {data.graph.n_nodes} stations in Germany, {data.dates[0]} to {data.dates[-1]}.\n"
        f"Every station loses {OUTAGE} days in a row; they are filled in from the rest."
    )
    console.print(table_of(result.rows, COLUMNS, name="method", title="method"))
    console.print(
        "Errors: root mean square and mean absolute, of logarithms: 0.2 is about 20%. Smaller is better; the best "
        f"numbers are bold. Inside: share of what was hidden inside its {LEVEL:.0%} interval, if a method has one.\n",
        style="dim",
    )
    console.print(result.conclusion + "\n")
    console.print("Picture:")
    for picture in result.pictures:
        # a path is for copying: never wrapped
        console.print(f"  {picture}", soft_wrap=True, highlight=False)
