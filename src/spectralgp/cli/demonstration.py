"""`demo` and `example`: the embedded data, shown and as files."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from spectralgp._extras import require
from spectralgp._progress import progress_bar
from spectralgp.cli.app import AsJson, Debug, Force, answering, print_json, to_be_written
from spectralgp.cli.tables import Column, table_of
from spectralgp.datasets import load_us_income
from spectralgp.demo import KERNELS, LEFT_OUT, DemoResult, run_demo
from spectralgp.reading import write_tables

COLUMNS = {
    "log\nevidence": Column("{row.log_evidence:.1f}", "log_evidence", True),
    "leave-\none-out": Column("{row.leave_one_out:.2f}", "leave_one_out", True),
    "held-out\n(s.e.)": Column("{row.held_out:.2f} ({row.held_out_error:.2f})", "held_out", True),
    "RMSE\n(%)": Column("{row.rmse:.3f}", "rmse", False),
    "in\n90%": Column("{row.coverage:.1%}", "coverage", None),
}
FIRST, LAST = 1960, 1989  # years to learn from
SHARE_OF_HOLES = 0.1


@answering
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the pictures; made if need be.", file_okay=False)] = Path(
        "demo-output"
    ),
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Predict yearly changes of the incomes of 48 US states; compare graph kernels and save pictures.

    Example:
      spectralgp demo --out pictures
    """
    with progress_bar("demo", len(KERNELS) + 1, show=True) as progress:
        result = run_demo(out, progress)
    if as_json:
        rows = [asdict(row) for row in result.rows]
        print_json({"kernels": rows, "conclusion": result.conclusion, "pictures": result.pictures})
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
        f"Yearly changes of relative income in {data.graph.n_nodes} US states, from the levels a year before.\n"
        f"Learnt from {data.years[0]} to {data.years[-1]}; held out: {data.held_out_years[0]} to "
        f"{data.held_out_years[-1]}."
    )
    console.print(table_of(result.rows, COLUMNS))
    console.print(
        "Log evidence: total in nats. Leave-one-out and held-out: log density in nats a year. Larger is better for all "
        f"three. RMSE: of held-out values ({result.no_change_rmse:.3f} for assuming no change). In 90%: share of "
        "held-out values inside their 90% interval. The best numbers are bold. "
        f"{LEFT_OUT}\n",
        style="dim",
    )
    console.print(result.conclusion + "\n")
    console.print("Pictures:")
    for picture in result.pictures:
        # a path is for copying: never wrapped
        console.print(f"  {picture}", soft_wrap=True, highlight=False)
