"""Arrays of any library, and threads of the linear algebra under us."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_cupy_array, is_torch_array, to_device
from numpy.typing import NDArray
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


def take(array: Any, chosen: NDArray[np.integer[Any]], axis: int) -> Any:
    """Some rows or columns of an array of any library."""
    xp = array_namespace(array)
    return xp.take(array, xp.asarray(chosen, device=device(array)), axis=axis)


def non_negative_root(array: Any) -> Any:
    """Root of an array of any library, whose negative entries count as zero."""
    return array_namespace(array).clip(array, 0.0) ** 0.5


def on_host(array: Any) -> Any:
    """The array as NumPy's."""
    return np.asarray(to_device(array, "cpu") if is_cupy_array(array) or is_torch_array(array) else array)
