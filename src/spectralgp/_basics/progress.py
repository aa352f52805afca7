"""Progress of long work, told from anywhere below and drawn for those who asked, where a person looks."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from importlib.util import find_spec
from typing import Any

Progress = Callable[[str], None]
"""What long work calls with the name of each of its steps, when that step is done.

What also has a method ``mention`` hears of what goes on within a step.
"""

_listener: ContextVar[Progress | None] = ContextVar("spectralgp_progress", default=None)


class Heard:
    """A function whose reports reach who listens here, in whichever thread it runs; in another process nobody listens.

    Parameters
    ----------
    function : callable
        What is run.
    """

    __slots__ = ("_context", "_function")  # no namespace, which wrappers would take over and could not pickle

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function, self._context = function, copy_context()

    def __call__(self, *arguments: Any) -> Any:
        """Run it."""
        return self._context.copy().run(self._function, *arguments)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """As the function alone: a context stays in its process."""
        return _alone, (self._function,)


def _alone(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


@contextmanager
def telling(progress: Progress | None) -> Iterator[None]:
    """Tell `progress` of the steps of all work inside; None keeps whoever listens already."""
    with _heard_by(_listener.get() if progress is None else progress):
        yield


@contextmanager
def _heard_by(listener: Progress | None) -> Iterator[None]:
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def quietly() -> Iterator[None]:
    """Count none of the steps inside: they are part of a larger one, within which they are at most mentioned."""
    with _heard_by(_Within(_listener.get())):
        yield


class _Within:
    """Passes on what is mentioned, and counts no step."""

    def __init__(self, listener: Progress | None) -> None:
        self._listener = listener

    def __call__(self, step: str) -> None:
        """Part of a larger step."""

    def mention(self, text: str) -> None:
        with _heard_by(self._listener):
            mention(text)


def report(step: str) -> None:
    """Say that a step is done."""
    listener = _listener.get()
    if listener is not None:
        listener(step)


def mention(text: str) -> None:
    """Say what goes on within a step."""
    hear = getattr(_listener.get(), "mention", None)
    if hear is not None:
        hear(text)


@contextmanager
def progress_bar(title: str, n_steps: int | None, show: bool) -> Iterator[Progress | None]:
    """Draw a bar for the work inside, which `report` advances; gives what to call instead, or None without a bar.

    A bar is drawn on the error stream, if that is a terminal or a notebook's; output that is piped or logged gets
    nothing. Without rich (in a notebook: and ipywidgets) it is a line of plain text.

    Parameters
    ----------
    title : str
        What the work is.
    n_steps : int or None
        How many steps will be reported; None where that is not known.
    show : bool
        Whether the user asked for a bar.

    Examples
    --------
    >>> from spectralgp._basics.progress import progress_bar
    >>> with progress_bar("fit", 3, show=False) as progress:
    ...     print(progress)
    None
    """
    in_notebook = _in_notebook()
    if not show or not (in_notebook or _is_terminal()):
        with _heard_by(None):  # the steps of this work are none of those that somebody outside may count
            yield None
        return
    libraries = ["rich", "ipywidgets"] if in_notebook else ["rich"]
    draw = _rich_bar if all(find_spec(name) for name in libraries) else _plain_bar
    with draw(title, n_steps) as progress, telling(progress):
        yield progress


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()  # a Windows program without a console has no error stream


def _in_notebook() -> bool:
    """Whether a notebook shows what is written: then IPython is loaded, and its shell has a kernel behind it."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and getattr(ipython.get_ipython(), "kernel", None) is not None


class _RichBar:
    def __init__(self, bar: Any, title: str, n_steps: int | None) -> None:
        self._bar, self._title, self._task = bar, title, bar.add_task(title, total=n_steps)

    def __call__(self, step: str) -> None:
        self._bar.update(self._task, advance=1, description=f"{self._title}: {step} done")

    def mention(self, text: str) -> None:
        self._bar.update(self._task, description=f"{self._title}: {text}")


@contextmanager
def _rich_bar(title: str, n_steps: int | None) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    # each bar has its own console: two on one, as fits in threads would have them, are an error in rich
    with RichProgress(*columns, console=Console(stderr=True)) as bar:
        yield _RichBar(bar, title, n_steps)
        bar.refresh()  # in a notebook rich would leave the last step out


class _PlainBar:
    """One line of text, written over at every step."""

    def __init__(self, title: str, n_steps: int | None) -> None:
        self._title, self._n_steps, self._n_done, self._widest = title, n_steps, 0, 0
        self._write(title)

    def __call__(self, step: str) -> None:
        self._n_done += 1
        self._write(f"{self._title}: {step} done")

    def mention(self, text: str) -> None:
        self._write(f"{self._title}: {text}")

    def _write(self, text: str) -> None:
        count = self._n_done if self._n_steps is None else f"{self._n_done}/{self._n_steps}"
        line = f"{text} {count}"[: shutil.get_terminal_size().columns - 1]
        self._widest = max(self._widest, len(line))
        sys.stderr.write("\r" + line.ljust(self._widest))
        sys.stderr.flush()


@contextmanager
def _plain_bar(title: str, n_steps: int | None) -> Iterator[Progress]:
    try:
        yield _PlainBar(title, n_steps)
    finally:
        sys.stderr.write("\n")
