"""The application, and what its commands share: answers, warnings, errors and tables of results."""

from __future__ import annotations

import inspect
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import is_dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich import box
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table

from spectralgp import __version__

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

# errors whose message is written for the user; any other is a bug
EXPECTED = (OSError, ValueError, TypeError, ImportError, MemoryError)
MAX_NAME_BYTES = 255  # of a file name, in nearly all file systems


Answer = tuple[dict[str, Any], RenderableType]  # facts for programs, and what people read
Work = TypeVar("Work", bound=Callable[..., Answer])
COMMANDS: dict[str, Callable[..., None]] = {}  # in the order of the help


def command(line: str) -> Callable[[Work], Work]:
    """Make a function that returns an answer a command: its parameters are options, and a line lists it in --help.

    A parameter whose type is a dataclass stands for its fields: options that several commands have.
    """

    def registered(work: Work) -> Work:
        own = _parameters(work)
        groups: dict[str, Any] = {one.name: one.annotation for one in own if is_dataclass(one.annotation)}

        def run(
            *,
            as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")] = False,
            debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
            **typed: Any,
        ) -> None:
            for name, group in groups.items():
                typed[name] = group(**{one.name: typed.pop(one.name) for one in _parameters(group)})
            with reporting_errors(debug):
                print_answer(*work(**typed), as_json)

        options = [part for one in own for part in (_parameters(groups[one.name]) if one.name in groups else [one])]
        options += _parameters(run)[:-1]
        keywords = [one.replace(kind=one.KEYWORD_ONLY) for one in options]
        vars(run)["__signature__"] = inspect.Signature(keywords)  # from which Typer makes the options
        run.__doc__ = work.__doc__
        app.command(work.__name__, short_help=line)(run)
        COMMANDS[work.__name__] = run
        return work

    return registered


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Parameters of a function, or of a dataclass, with their types."""
    return list(inspect.signature(function, eval_str=True).parameters.values())


def _print_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"spectralgp {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Gaussian processes on graphs that learn their own spectrum."""


@contextmanager
def reporting_errors(debug: bool) -> Iterator[None]:
    """Print errors as one line with status 1, and warnings as notes; invalid options have status 2."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = lambda said, *_, **__: typer.echo(f"note: {' '.join(str(said).split())}", err=True)
            yield
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except KeyboardInterrupt as interruption:
        _fail("interrupted", debug, interruption)
    except BrokenPipeError:  # the reader of the output has stopped; files are written by now
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except EXPECTED as error:
        _fail(str(error) or type(error).__name__, debug, error)
    except Exception as error:
        _fail(f"unexpected {type(error).__name__}: {error} (--debug shows where; please report it)", debug, error)


def _fail(message: str, debug: bool, error: BaseException) -> None:
    if debug:
        raise error
    typer.echo("error: " + " ".join(message.split()), err=True)
    raise typer.Exit(1) from error


def check_outputs(*paths: Path | None, force: bool) -> None:
    """Check, before any work, that files can be written; existing ones may be replaced only by `force`."""
    given = [path for path in paths if path is not None]
    for path in given:
        if len(os.fsencode(path.name)) > MAX_NAME_BYTES:
            raise typer.BadParameter(f"{path} must have a shorter name, of at most {MAX_NAME_BYTES} bytes.")
        if path.exists() and not force:
            raise typer.BadParameter(f"{path} exists already. Pass --force to replace it, or choose another name.")
        if path.exists() and not (path.is_file() and os.access(path, os.W_OK)):
            raise typer.BadParameter(f"{path} must be a file that may be written to. Choose another name.")
        if not path.parent.is_dir():
            raise typer.BadParameter(f"{path} must be in an existing folder; got {path.parent}. Make it first.")
        if not os.access(path.resolve().parent, os.W_OK):
            raise typer.BadParameter(f"{path} must be in a folder that may be written to. Choose another one.")
    if len({path.resolve() for path in given}) < len(given):
        raise typer.BadParameter(f"{given[-1]} must not be written twice. Choose two names.")


def print_answer(facts: dict[str, Any], text: RenderableType, as_json: bool = False) -> None:
    """Print facts as JSON, in which non-finite values are null, or else text, or tables and texts of rich."""
    if as_json:
        from msgspec import json

        # arrays and numbers of NumPy become lists and numbers; paths and the like, texts
        encoded = json.encode(facts, enc_hook=lambda value: value.tolist() if hasattr(value, "tolist") else str(value))
        sys.stdout.write(json.format(encoded, indent=2).decode() + "\n")
        sys.stdout.flush()
    elif isinstance(text, str):  # never wrapped
        typer.echo(text)
    else:
        Console().print(text, crop=False)  # paths stay whole


# column of a table of results: a format of the row's fields; the field itself, shown as "-" where it is None; and the
# function that chooses the best value, if any is
ResultColumn = tuple[str, str, Callable[..., Any] | None]


def table_of(
    rows: Sequence[Mapping[str, Any]],
    columns: Mapping[str, ResultColumn],
    *,
    name: str = "kernel",
    title: str = "\ngraph kernel",
) -> Table:
    """Table of 80 characters, with one row per method, its `name` first; the best values are bold."""

    def cell(row: Mapping[str, Any], text: str, field: str, best: Callable[..., Any] | None) -> str:
        if row[field] is None:
            return "-"
        is_best = best is not None and row[field] == best(other[field] for other in rows if other[field] is not None)
        return f"[bold]{text.format(**row)}[/bold]" if is_best else text.format(**row)

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(title, no_wrap=True)
    for title in columns:
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(escape(row[name]), *(cell(row, *column) for column in columns.values()))
    return table
