"""The command line: the one room that prints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from spectralgp import __version__
from spectralgp._progress import progress_bar
from spectralgp.demo import KERNELS, LEFT_OUT, DemoResult, Row, run_demo

app = typer.Typer(
    help="Gaussian processes on graphs that learn their own spectrum.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

# what each column holds, and whether a larger number is better; None where neither is
COLUMNS = {
    "log\nevidence": ("{row.log_evidence:.1f}", "log_evidence", True),
    "leave-\none-out": ("{row.leave_one_out:.2f}", "leave_one_out", True),
    "held-out\n(s.e.)": ("{row.held_out:.2f} ({row.held_out_error:.2f})", "held_out", True),
    "RMSE\n(%)": ("{row.rmse:.3f}", "rmse", False),
    "in\n90%": ("{row.coverage:.1%}", "coverage", None),
}


def main() -> None:
    """Run the command line."""
    app(prog_name="spectralgp")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"spectralgp {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Gaussian processes on graphs that learn their own spectrum."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the pictures; made if need be.", file_okay=False)] = Path(
        "demo-output"
    ),
) -> None:
    """Predict yearly changes of the incomes of 48 US states; compare graph kernels and save pictures."""
    with _one_line_errors(), progress_bar("demo", len(KERNELS) + 1, show=True) as progress:
        result = run_demo(out, progress)
    _print_result(result, Console())


@app.command(
    hidden=True,
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
def reproduce() -> None:
    """Say where the paper's experiments went, whatever was asked of them."""
    typer.echo(
        "reproduce has moved out of the package: run `make reproduce` or `python -m reproduction` in the root of a "
        "checkout of the repository.",
        err=True,
    )
    raise typer.Exit(2)


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """Say in one line what went wrong, and leave with exit status 1; mistakes in arguments leave with 2, by Typer."""
    try:
        yield
    except (OSError, ValueError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from error


def _print_result(result: DemoResult, console: Console) -> None:
    data = result.data
    console.print(
        f"Yearly changes of relative income in {data.graph.n_nodes} US states, from the levels a year before.\n"
        f"Learnt from {data.years[0]} to {data.years[-1]}; held out: {data.held_out_years[0]} to "
        f"{data.held_out_years[-1]}."
    )
    console.print(_table(result.rows))
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


def _table(rows: tuple[Row, ...]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)  # narrow enough for 80 columns
    table.add_column("\ngraph kernel", no_wrap=True)
    for title in COLUMNS:
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        cells = []
        for text, field, larger in COLUMNS.values():
            values = [getattr(other, field) for other in rows]
            best = larger is not None and getattr(row, field) == (max(values) if larger else min(values))
            cells.append(f"[bold]{text.format(row=row)}[/bold]" if best else text.format(row=row))
        table.add_row(row.kernel, *cells)
    return table
