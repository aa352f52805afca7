"""``python -m reproduction``, from the root of the repository."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from reproduction import EXPERIMENTS, Outcome, reproduce, write_page

WORDS = {
    True: "A cut of every experiment, under a minute on two idle cores: it shows that all runs, and decides nothing.",
    False: "The experiments in full, all of them in under 15 minutes on two idle cores.",
}
"""What a run is, by whether it is quick."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(help=f"Which to run: {', '.join(study.key for study in EXPERIMENTS)}.", show_default=False),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Run all experiments.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="A cut: one seed, size and split, fewer models; all if none is named.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for results, figures and tables; what was finished in it by the same code is not run again. "
            "If not given: reproduction-output, or reproduction-quick.",
            file_okay=False,
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the authors' data files. If not given: that of the environment variable SPECTRALGP_DATA, "
            "then the user's cache, into which files that are in neither are downloaded.",
            file_okay=False,
            exists=True,
            show_default=False,
        ),
    ] = None,
    docs: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the documentation: with --all, write the page of results and its pictures there too.",
            file_okay=False,
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run the paper's experiments again, and write its numbers beside ours."""
    if not (experiments or everything or quick):
        raise typer.BadParameter("name experiments, or ask for --all or --quick")
    if everything and (experiments or quick):
        raise typer.BadParameter("--all stands alone: it runs every experiment in full")
    if docs and not everything:
        raise typer.BadParameter("--docs goes with --all: the page shows every experiment in full")
    folder = out or Path("reproduction-quick" if quick else "reproduction-output")
    try:
        _say(f"{WORDS[quick]} What has ended is kept in {folder}, and not run again.")
        outcomes = _run(experiments or [], folder, data, quick)
        _print_remedies(outcomes, folder)
        if any(one.message and (not one.is_optional or one.experiment in (experiments or ())) for one in outcomes):
            raise typer.Exit(1)
        if docs:
            typer.echo(f"Page:\n  {write_page(folder, docs)}")
    except KeyboardInterrupt:
        typer.echo(f"interrupted: what has ended is kept in {folder}; the same command goes on from there", err=True)
        raise typer.Exit(130) from None
    except (OSError, ValueError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from error


def _run(experiments: list[str], folder: Path, data: Path | None, quick: bool) -> list[Outcome]:
    """Run them with a progress bar on the error stream, gone when the work is done, and a line for each at its end."""
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reproduce", total=None)

        def advance(experiment: str, n_done: int, n_steps: int) -> None:
            bar.update(task, description=f"reproduce: {experiment}", completed=n_done, total=n_steps)

        return reproduce(experiments, out=folder, quick=quick, folder=data, progress=advance, ended=_print_outcome)


def _say(line: str) -> None:
    """Print a line at once, also where the output is a file."""
    typer.echo(line)
    sys.stdout.flush()


def _print_outcome(outcome: Outcome) -> None:
    seconds = "" if outcome.message else f" ({outcome.seconds:.0f} s of the processor)"
    _say(f"{outcome.experiment}: {outcome.status}{seconds}")


def _print_remedies(outcomes: list[Outcome], folder: Path) -> None:
    """Remedies for files that are not available, each once, and the place of the summary."""
    for message in dict.fromkeys(outcome.message for outcome in outcomes if outcome.message):
        typer.echo(f"\n{message}", err=True)
    typer.echo(f"Summary:\n  {folder / 'summary.md'}")


if __name__ == "__main__":
    app(prog_name="python -m reproduction")
