"""The application, and what its commands share: answers, warnings, errors and tables of results."""

from __future__ import annotations

import inspect
import json
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, TypeVar, dataclass_transform

import typer
from rich import box
from rich.markup import escape
from rich.table import Table

from spectralgp import __version__

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

# errors whose message is written for the user; any other is a bug
EXPECTED = (OSError, ValueError, TypeError, ImportError, MemoryError)
MAX_NAME_BYTES = 255  # of a file name, in nearly all file systems


@dataclass(frozen=True, eq=False, kw_only=True)
class Command:
    """Arguments of a command: one field per option. Those of base classes come last in its help."""

    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")] = False
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False


Options = TypeVar("Options", bound=Command)
COMMANDS: dict[str, type[Command]] = {}  # in the order of the help


@dataclass_transform(eq_default=False, frozen_default=True)
def command(module: str, line: str) -> Callable[[type[Options]], type[Options]]:
    """Make a dataclass of options a command: a module's function of its name runs it, and a line lists it in --help."""

    def registered(options: type[Options]) -> type[Options]:
        options, name = dataclass(frozen=True, eq=False)(options), options.__name__.removesuffix("Command").lower()

        def run(**typed: Any) -> None:
            work, asked = getattr(import_module(f"spectralgp.cli.{module}"), name), options(**typed)
            with reporting_errors(asked.debug):
                work(asked)

        vars(run)["__signature__"] = inspect.signature(options, eval_str=True)  # from which Typer makes the options
        app.command(name, help=inspect.getdoc(options), short_help=line)(run)
        COMMANDS[name] = options
        return options

    return registered


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
            warnings.showwarning = _note
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


def _note(message: Warning | str, *_: Any, **__: Any) -> None:
    typer.echo("note: " + " ".join(str(message).split()), err=True)


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


def print_answer(asked: Command, answer: dict[str, Any], text: str | Callable[[], None]) -> None:
    """Print an answer as JSON, in which non-finite values are null, or as text (by a function that prints it)."""
    if asked.as_json:
        sys.stdout.write(json.dumps(_plain(answer), indent=2, ensure_ascii=False, allow_nan=False) + "\n")
        sys.stdout.flush()
    elif callable(text):
        text()
    else:
        typer.echo(text)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if hasattr(value, "tolist"):  # of NumPy
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, bool | int | str | None) else str(value)


@dataclass(frozen=True)
class ResultColumn:
    """Column of a table of results."""

    text: str  # a format of the row's fields
    field: str  # shown as "-" where it is None
    larger_is_better: bool | None  # None if neither is


def table_of(
    rows: Sequence[Mapping[str, Any]],
    columns: Mapping[str, ResultColumn],
    *,
    name: str = "kernel",
    title: str = "\ngraph kernel",
) -> Table:
    """Table of 80 characters, with one row per method, its `name` first; the best values are bold."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(title, no_wrap=True)
    for title in columns:
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(escape(row[name]), *(_cell(row, rows, column) for column in columns.values()))
    return table


def _cell(row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], column: ResultColumn) -> str:
    value = row[column.field]
    if value is None:
        return "-"
    text = column.text.format(**row)
    values = [other[column.field] for other in rows if other[column.field] is not None]
    is_best = column.larger_is_better is not None and value == (max(values) if column.larger_is_better else min(values))
    return f"[bold]{text}[/bold]" if is_best else text
