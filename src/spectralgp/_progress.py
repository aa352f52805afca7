"""A progress bar for long work, drawn only where a person asked for one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(title: str, total: int, show: bool) -> Iterator[Callable[[str], None] | None]:
    """Callback that advances a bar by one step and names it; None if no bar is wanted."""
    if not show:
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns) as bar:
        task = bar.add_task(title, total=total)
        yield lambda step: bar.update(task, advance=1, description=f"{title}: {step}")
