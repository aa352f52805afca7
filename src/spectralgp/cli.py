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
from spectralgp.demo import LEVEL, METHODS, OUTAGE, DemoResult, Row, run_demo

app = typer.Typer(
    help="Gaussian processes on graphs that learn their own spectrum.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


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
    """Fill in what sensors that failed did not measure; compare with other methods, and save a picture."""
    with _one_line_errors(), progress_bar("demo", len(METHODS) + 2, show=True) as progress:
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
        f"Particulate matter at {data.graph.n_nodes} stations in Germany, {data.dates[0]} to {data.dates[-1]}.\n"
        f"Every station loses {OUTAGE} days in a row; they are filled in from the rest."
    )
    console.print(_table(result.rows))
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


def _table(rows: tuple[Row, ...]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)  # narrow enough for 80 columns
    table.add_column("method", no_wrap=True)
    for title in ("RMS error", "mean error", "inside"):
        table.add_column(title, justify="right", no_wrap=True)
    least = [min(getattr(row, field) for row in rows) for field in ("rmse", "mean_error")]
    for row in rows:
        errors = [
            f"[bold]{error:.3f}[/bold]" if error == smallest else f"{error:.3f}"
            for error, smallest in zip((row.rmse, row.mean_error), least, strict=True)
        ]
        table.add_row(row.method, *errors, "-" if row.coverage is None else f"{row.coverage:.1%}")
    return table
