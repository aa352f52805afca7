"""Threads of the linear algebra under us."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

SMALL = 512  # rows of a matrix below which threads cost more than they bring


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def few_threads(n_rows: int) -> AbstractContextManager[Any]:
    """One linear algebra thread while matrices are small; the user's setting otherwise.

    Many small eigendecompositions in a row run several times slower on many threads.
    """
    return _controller().limit(limits=1, user_api="blas") if n_rows <= SMALL else nullcontext()
