"""Progress of long work: reports from any depth, and bars on terminals and in notebooks."""

from __future__ import annotations

import logging
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import partial
from typing import Any

Progress = Callable[[str], None]
"""Listener of long work: a function called with the name of each finished step.

Its optional methods ``mention`` and ``announce`` receive the current activity within a step, and upcoming work.
"""

# the listener, and whether it counts finished steps
_listener: ContextVar[tuple[Progress | None, bool]] = ContextVar("spectralgp_progress", default=(None, False))


def step_done(step: str) -> None:
    """Report a finished step."""
    progress, counts = _listener.get()
    if progress is not None and counts:
        progress(step)


def mention(text: str) -> None:
    """Report the current activity within a step."""
    getattr(_listener.get()[0], "mention", _ignore)(text)


def announce(text: str) -> None:
    """Report upcoming work, to the listener and to the log."""
    logging.getLogger("spectralgp").info(text)
    getattr(_listener.get()[0], "announce", _ignore)(text)


def _ignore(text: str) -> None:
    pass


def reporting_to(progress: Progress | None) -> AbstractContextManager[None]:
    """Report the steps of all work inside to `progress`; None keeps the present listener."""
    return nullcontext() if progress is None else _listening(progress)


def quietly() -> AbstractContextManager[None]:
    """Report no steps inside, only activities: they are part of a larger step."""
    return _listening(_listener.get()[0], counts=False)


@contextmanager
def _listening(progress: Progress | None, counts: bool = True) -> Iterator[None]:
    token = _listener.set((progress, counts))
    try:
        yield
    finally:
        _listener.reset(token)


class ReportedCall(partial[Any]):
    """One call whose reports reach the listener of ``ReportedCall(copy_context().run, function, ...)`` from any thread.

    Not from another process, to which no context belongs: there it is the function with its arguments.
    """

    def __reduce__(self) -> Any:
        """Pickle the call without its context."""
        return partial, self.args


def _is_watched() -> bool:
    """Whether a bar would be seen: in a notebook, or where the error stream is a terminal."""
    # a Windows program without a console has no error stream
    return _in_notebook() or (sys.stderr is not None and sys.stderr.isatty())


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")  # whose shell, in a notebook, has a kernel behind it
    return ipython is not None and getattr(ipython.get_ipython(), "kernel", None) is not None


def new_bar(**options: Any) -> Any:
    """Bar of tqdm on the error stream, which draws nothing where nobody would see it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # in a notebook without ipywidgets the bar is a line of text
        from tqdm.auto import tqdm
    return tqdm(file=sys.stderr, disable=not _is_watched(), **options)


@contextmanager
def progress_bar(title: str, n_steps: int | None, show: bool) -> Iterator[Progress | None]:
    """Draw a bar for the work inside, which `step_done` advances; yield its listener, or None without a bar.

    A bar is drawn on the error stream, if that is a terminal or a notebook's, never to a pipe or a log. It has no total
    if `n_steps` is None.
    """
    if not show or not _is_watched():
        with _listening(None):  # steps of this work are not those of an outer listener
            yield None
        return
    shown = "{desc}: {n_fmt} [{elapsed}]" if n_steps is None else "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}]"
    # never zero, as tqdm would have them
    columns, rows = (None, None) if _in_notebook() else shutil.get_terminal_size()
    with new_bar(total=n_steps, desc=title, bar_format=shown, miniters=0, ncols=columns, nrows=rows) as drawn:
        bar = _Bar(title, drawn)
        with reporting_to(bar):
            yield bar


class _Bar:
    """Listener that draws a bar by tqdm."""

    def __init__(self, title: str, drawn: Any) -> None:
        self._title, self._drawn = title, drawn

    def __call__(self, step: str) -> None:
        self._drawn.set_description_str(f"{self._title}: {step} done", refresh=False)
        self._drawn.update()

    def mention(self, text: str) -> None:
        self._drawn.set_description_str(f"{self._title}: {text}", refresh=False)
        self._drawn.update(0)

    def announce(self, text: str) -> None:
        self._drawn.write(text, file=sys.stderr)  # above the bar, and at once
