"""The command itself with `info`, and what commands share: how they answer, warn and fail, and tables.

A command's module, and with it NumPy, scikit-learn and the rest, is imported when the command is run: `--help` and
`--version` need none of them.
"""

from __future__ import annotations

import functools
import json
import math
import os
import platform
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.markup import escape
from rich.table import Table
from typer.core import TyperGroup

from spectralgp import __version__

COMMANDS = {  # in the order of the help: the module of each, and what the help of all says of it
    "fit": ("learning", "Learn a model from a graph and signals, and save it."),
    "predict": ("answers", "Predict signals, with intervals."),
    "impute": ("answers", "Fill in empty cells, with intervals."),
    "score": ("answers", "Score predictions of signals that the model has not seen."),
    "compare": ("learning", "Compare graph kernels with what people use instead."),
    "forecast": ("forecasting", "Forecast the rows after the last one of a series."),
    "update": ("forecasting", "Take new rows into a model, without learning it anew."),
    "plot": ("pictures", "Draw nodes over time, a map, or filters."),
    "report": ("answers", "Write a page about a model."),
    "demo": ("showcase", "Fill in sensors that failed, and compare with other methods."),
    "example": ("showcase", "Write files to try the other commands with."),
    "info": ("app", "Say which versions, threads and devices there are."),
}


def command_named(name: str) -> Callable[..., None]:
    """The function of a command, whose module is imported for it."""
    command: Callable[..., None] = getattr(import_module(f"spectralgp.cli.{COMMANDS[name][0]}"), name)
    return command


class LateCommands(TyperGroup):
    """Commands of which the help knows a line, and the rest is imported when they are run."""

    def resolve_command(self, ctx: Any, args: Any) -> Any:
        """The command that was typed, with its options."""
        name, _, rest = super().resolve_command(ctx, args)
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        alone.command(name)(command_named(str(name)))
        return name, typer.main.get_command(alone), rest


app = typer.Typer(
    cls=LateCommands,
    help="Gaussian processes on graphs that learn their own spectrum.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, for machines.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that are there.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]

# errors whose message is for the user; others are mistakes of the program's
EXPECTED = (OSError, ValueError, TypeError, ImportError, MemoryError)
MAX_NAME_BYTES = 255  # of a file, in nearly all file systems
LIBRARIES = ("numpy", "scipy", "scikit-learn")
OPTIONAL = {  # libraries, and the extras that bring them
    "numba": "large",
    "matplotlib": "plots",
    "pooch": "data",
    "typer": "cli",
    "rich": "cli",
    "pandas": "pandas",
    "pyarrow": "parquet",
    "networkx": "networkx",
    "safetensors": "files",
    "plotly": "report",
    "jinja2": "report",
}


for _name, (_, _line) in COMMANDS.items():
    app.command(_name, help=_line)(lambda: None)


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


def answering(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command fail in one line with status 1, and its warnings be notes; Typer's own mistakes have status 2."""

    @functools.wraps(command)
    def run(*arguments: Any, debug: bool = False, **options: Any) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always")
                warnings.showwarning = _note
                command(*arguments, debug=debug, **options)
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

    return run


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
class Column:
    """A column of results: a format of ``row``, and the field it is about, of which larger is better, or neither is."""

    text: str
    field: str
    larger_is_better: bool | None


def table_of(
    rows: Sequence[Any], columns: Mapping[str, Column], *, name: str = "kernel", title: str = "\ngraph kernel"
) -> Table:
    """A table for 80 columns with one row per kernel, or what else has a `name`; the best numbers are bold."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(title, no_wrap=True)
    for title in columns:
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(escape(getattr(row, name)), *(_cell(row, rows, column) for column in columns.values()))
    return table


def _cell(row: Any, rows: Sequence[Any], column: Column) -> str:
    value = getattr(row, column.field)
    if value is None:
        return "-"
    text = column.text.format(row=row)
    values = [known for known in (getattr(other, column.field) for other in rows) if known is not None]
    is_best = column.larger_is_better is not None and value == (max(values) if column.larger_is_better else min(values))
    return f"[bold]{text}[/bold]" if is_best else text


@answering
def info(as_json: AsJson = False, debug: Debug = False) -> None:
    """Say which versions, threads and devices there are.

    Example:
      spectralgp info
    """
    from threadpoolctl import threadpool_info

    threads = {str(pool["internal_api"]): pool["num_threads"] for pool in threadpool_info()}
    answer = {
        "spectralgp": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "libraries": {name: _version(name) for name in (*LIBRARIES, *OPTIONAL)},
        "cores": os.cpu_count(),
        "threads": threads,
        "devices": _devices(),
    }
    if as_json:
        print_json(answer)
        return
    typer.echo(f"spectralgp {answer['spectralgp']}, Python {answer['python']}, {answer['platform']}")
    for name in (*LIBRARIES, *OPTIONAL):
        missing = f"not installed: pip install 'spectralgp[{OPTIONAL.get(name, 'all')}]'"
        typer.echo(f"  {name:13} {_version(name) or missing}")
    listed = ", ".join(f"{name} {number}" for name, number in sorted(threads.items())) or "none known"
    typer.echo(f"cores: {answer['cores']}; threads of linear algebra: {listed}")
    typer.echo(f"devices: {', '.join(['cpu', *_devices()])}")


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _devices() -> list[str]:
    """CUDA devices that PyTorch or CuPy can compute on; what only draws or plays is not asked."""
    for name in ("torch", "cupy"):
        if find_spec(name) is None and name not in sys.modules:
            continue
        try:
            library: Any = __import__(name)
            if name == "torch":
                return [library.cuda.get_device_name(place) for place in range(library.cuda.device_count())]
            places = range(library.cuda.runtime.getDeviceCount())
            return [library.cuda.runtime.getDeviceProperties(place)["name"].decode() for place in places]
        except Exception:  # a driver that is missing or broken has errors of its own kinds: then there is no device
            continue
    return []
