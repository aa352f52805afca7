"""Progress of long work: a bar drawn where a person asked for one, told of steps from anywhere below."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Progress = Callable[[str], None]
"""Called with the name of each step as it ends. What also has a method ``mention`` hears of work within a step."""

_listener: ContextVar[Progress | None] = ContextVar("spectralgp_progress", default=None)


@contextmanager
def telling(progress: Progress | None) -> Iterator[None]:
    """Tell `progress` of the steps of all work inside; None keeps whoever listens already."""
    if progress is None:
        yield
        return
    token = _listener.set(progress)
    try:
        yield
    finally:
        _listener.reset(token)


def report(step: str) -> None:
    """Say that a step has ended."""
    listener = _listener.get()
    if listener is not None:
        listener(step)


def mention(text: str) -> None:
    """Say what goes on within a step."""
    hear = getattr(_listener.get(), "mention", None)
    if hear is not None:
        hear(text)


@contextmanager
def progress_bar(title: str, total: int, show: bool) -> Iterator[None]:
    """Draw a bar of so many steps for the work inside, if one is wanted."""
    if not show:
        yield
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns) as bar:
        task = bar.add_task(title, total=total)

        class Listener:
            def __call__(self, step: str) -> None:
                bar.update(task, advance=1, description=f"{title}: {step}")

            def mention(self, text: str) -> None:
                bar.update(task, description=f"{title}: {text}")

        with telling(Listener()):
            yield
