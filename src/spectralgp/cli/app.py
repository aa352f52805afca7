"""The command itself, and what commands share: how they answer, warn and fail, and tables."""

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

# errors whose message is for the user; others are mistakes of the program's
EXPECTED = (OSError, ValueError, TypeError, ImportError, MemoryError)
MAX_NAME_BYTES = 255  # of a file, in nearly all file systems


@dataclass(frozen=True, eq=False, kw_only=True)
class Command:
    """What was typed for a command: a field for each of its options."""

    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False


Options = TypeVar("Options", bound=Command)
COMMANDS: dict[str, type[Command]] = {}  # in the order of the help


@dataclass_transform(eq_default=False, frozen_default=True)
def command(module: str, line: str) -> Callable[[type[Options]], type[Options]]:
    """Make options a command, done by the function of its name in a module; the help of all commands has the line."""

    def registered(options: type[Options]) -> type[Options]:
        options, name = dataclass(frozen=True, eq=False)(options), options.__name__.removesuffix("Command").lower()

        def run(**typed: Any) -> None:
            work, asked = getattr(import_module(f"spectralgp.cli.{module}"), name), options(**typed)
            with answering(asked.debug):
                work(asked)

        vars(run)["__signature__"] = inspect.signature(options, eval_str=True)  # which Typer makes the options of
        app.command(name, help=inspect.getdoc(options), short_help=line)(run)
        COMMANDS[name] = options
        return options

    return registered


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


@contextmanager
def answering(debug: bool) -> Iterator[None]:
    """Let a command fail in one line with status 1, and its warnings be notes; Typer's own mistakes have status 2."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = _note
            yield
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except KeyboardInterrupt as interruption:
        _fail("interrupted", debug, interruption)
    except BrokenPipeError:  # whoever reads the answer has left; files are written by now
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


def to_be_written(*paths: Path | None, force: bool) -> None:
    """Refuse, before any work is done, what could not be written after it."""
    wanted = [path for path in paths if path is not None]
    for path in wanted:
        if len(os.fsencode(path.name)) > MAX_NAME_BYTES:
            raise typer.BadParameter(f"{path} must have a shorter name, of at most {MAX_NAME_BYTES} bytes.")
        if path.exists() and not force:
            raise typer.BadParameter(f"{path} is there already. Pass --force to replace it, or choose another name.")
        if path.exists() and not (path.is_file() and os.access(path, os.W_OK)):
            raise typer.BadParameter(f"{path} must be a file that may be written to. Choose another name.")
        if not path.parent.is_dir():
            raise typer.BadParameter(f"{path} must be in a folder that is there; got {path.parent}. Make it first.")
        if not os.access(path.resolve().parent, os.W_OK):
            raise typer.BadParameter(f"{path} must be in a folder that may be written to. Choose another one.")
    if len({path.resolve() for path in wanted}) < len(wanted):
        raise typer.BadParameter(f"{wanted[-1]} must not be written twice. Choose two names.")


def print_json(answer: dict[str, Any]) -> None:
    """Print an answer for machines: non-finite values become null."""
    sys.stdout.write(json.dumps(_plain(answer), indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    sys.stdout.flush()


def say(as_json: bool, answer: dict[str, Any], words: str) -> None:
    """Print an answer for machines, or in words."""
    if as_json:
        print_json(answer)
    else:
        typer.echo(words)


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
    """A column of results: a format of ``row``, and the field it is about, of which larger is better, or neither is."""

    text: str
    field: str
    larger_is_better: bool | None


def table_of(
    rows: Sequence[Any], columns: Mapping[str, ResultColumn], *, name: str = "kernel", title: str = "\ngraph kernel"
) -> Table:
    """A table for 80 columns with one row per kernel, or what else has a `name`; the best numbers are bold."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(title, no_wrap=True)
    for title in columns:
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(escape(getattr(row, name)), *(_cell(row, rows, column) for column in columns.values()))
    return table


def _cell(row: Any, rows: Sequence[Any], column: ResultColumn) -> str:
    value = getattr(row, column.field)
    if value is None:
        return "-"
    text = column.text.format(row=row)
    values = [known for known in (getattr(other, column.field) for other in rows) if known is not None]
    is_best = column.larger_is_better is not None and value == (max(values) if column.larger_is_better else min(values))
    return f"[bold]{text}[/bold]" if is_best else text
