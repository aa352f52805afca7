"""Progress of long work, told from anywhere below and drawn for those who asked, where a person looks."""

from __future__ import annotations

import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Any

Progress = Callable[[str], None]
"""What long work calls with the name of each of its steps, when that step is done.

What also has a method ``mention`` hears of what goes on within a step.
"""

_listener: ContextVar[Progress | None] = ContextVar("spectralgp_progress", default=None)


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
def telling(progress: Progress | None) -> Iterator[None]:
    """Tell `progress` of the steps of all work inside; None keeps whoever listens already."""
    with _heard_by(_listener.get() if progress is None else progress):
        yield


@contextmanager
def quietly() -> Iterator[None]:
    """Count none of the steps inside: they are part of a larger one, within which they are at most mentioned."""
    with _heard_by(_Within(_listener.get())):
        yield


@contextmanager
def _heard_by(listener: Progress | None) -> Iterator[None]:
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


class _Within:
    """Passes on what is mentioned, and counts no step."""

    def __init__(self, listener: Progress | None) -> None:
        self._listener = listener

    def __call__(self, step: str) -> None:
        """Part of a larger step."""

    def mention(self, text: str) -> None:
        with _heard_by(self._listener):
            mention(text)


class Heard:
    """A function whose reports reach who listens here, in whichever thread it runs; in another process nobody does."""

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
def progress_bar(title: str, n_steps: int | None, show: bool) -> Iterator[Progress | None]:
    """Draw a bar for the work inside, which `report` advances; gives what to call instead, or None without a bar.

    A bar is drawn on the error stream, if that is a terminal or a notebook's; output that is piped or logged gets
    nothing. It counts steps without a total where `n_steps` is None.
    """
    in_notebook = _in_notebook()
    if not show or not (in_notebook or _is_terminal()):
        with _heard_by(None):  # the steps of this work are none of those that somebody outside may count
            yield None
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a notebook without ipywidgets, which gets a line of text
        from tqdm.auto import tqdm
    shown = "{desc}: {n_fmt} [{elapsed}]" if n_steps is None else "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}]"
    columns, rows = (None, None) if in_notebook else shutil.get_terminal_size()  # never zero, as tqdm would have them
    with tqdm(
        total=n_steps, desc=title, file=sys.stderr, bar_format=shown, miniters=0, ncols=columns, nrows=rows
    ) as drawn:
        bar = _Bar(title, drawn)
        with telling(bar):
            yield bar


class _Bar:
    """A bar of tqdm, which draws it now and then, as a listener."""

    def __init__(self, title: str, drawn: Any) -> None:
        self._title, self._drawn = title, drawn

    def __call__(self, step: str) -> None:
        self._drawn.set_description_str(f"{self._title}: {step} done", refresh=False)
        self._drawn.update()

    def mention(self, text: str) -> None:
        self._drawn.set_description_str(f"{self._title}: {text}", refresh=False)
        self._drawn.update(0)


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()  # a Windows program without a console has no error stream


def _in_notebook() -> bool:
    """Whether a notebook shows what is written: then IPython is loaded, and its shell has a kernel behind it."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and getattr(ipython.get_ipython(), "kernel", None) is not None
