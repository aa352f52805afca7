"""Arrays of any library, and threads of linear algebra."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache, cached_property
from math import prod
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_array_api_obj, is_cupy_array, is_torch_array, to_device
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from threadpoolctl import ThreadpoolController

SMALL = 512  # rows of a square matrix below which threads cost more than they bring


# limits apply to the process: the first thread of Python inside notes the user's, and the last one restores them
_lock = threading.Lock()
_limits: list[dict[Any, int]] = []  # numbers of threads of linear algebra: the user's, and of each block inside
# in a forked process no thread is left to release the lock
if sys.platform != "win32":  # which has no fork
    os.register_at_fork(after_in_child=lambda: globals().update(_lock=threading.Lock()))


@contextmanager
def few_threads(*sizes: int) -> Iterator[None]:
    """One linear algebra thread for small matrices; inside such a block, the user's threads again for large ones.

    Sizes are the rows of a square matrix, or the three dimensions of a product: on several threads, many small
    decompositions are slower.
    """
    is_small = prod(sizes) <= SMALL ** len(sizes)
    if not (is_small or _limits):
        yield
        return
    with _lock:
        users = _limits[0] if _limits else {pool: pool.get_num_threads() for pool in _pools()}
        own = {pool: 1 if is_small else number for pool, number in users.items()}
        _limits[:] = [*(_limits or [users]), own]
        _set_threads(own)
    try:
        yield
    finally:
        with _lock:
            _limits[:] = [one for one in _limits if one is not own]
            _set_threads(_limits[-1])
            if len(_limits) == 1:
                _limits.clear()


@cache
def _pools() -> list[Any]:
    return [pool for pool in ThreadpoolController().lib_controllers if pool.user_api == "blas"]


def _set_threads(n_threads: dict[Any, int]) -> None:
    for pool, number in n_threads.items():
        if pool.get_num_threads() == number:
            continue
        # else only the first thread that set a limit could change it
        if hasattr(pool, "clear_controlling_thread"):
            pool.clear_controlling_thread(force=True)
        pool.set_num_threads(number)


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Make an array read-only and return it."""
    array.flags.writeable = False
    return array


def take(array: Any, chosen: NDArray[np.integer[Any]], axis: int) -> Any:
    """Some rows or columns of an array of any library."""
    xp = array_namespace(array)
    return xp.take(array, xp.asarray(chosen, device=device(array)), axis=axis)


def times_matrix(stacked: NDArray[Any], matrix: NDArray[Any]) -> NDArray[Any]:
    """Product of stacked rows with a matrix, in one call: NumPy would make one per stack."""
    flat = stacked.reshape(-1, stacked.shape[-1])
    sizes = *flat.shape, matrix.shape[-1]
    with few_threads(*sizes) if _limits and prod(sizes) > SMALL**3 else nullcontext():
        return (flat @ matrix).reshape(*stacked.shape[:-1], matrix.shape[-1])


def non_negative_root(array: Any) -> Any:
    """Square root of an array of any library, with negative entries as zero."""
    return array_namespace(array).clip(array, 0.0) ** 0.5


def on_host(array: Any) -> Any:
    """Array as NumPy's, on the host."""
    return np.asarray(to_device(array, "cpu") if is_cupy_array(array) or is_torch_array(array) else array)


def device_of(array: Any) -> str:
    """Name of an array's device; "cpu" for objects without one, such as files."""
    return str(device(array)) if is_array_api_obj(array) else "cpu"


def as_generator(random_state: Any, default: int | None = None) -> np.random.Generator:
    """Generator from a seed, a NumPy Generator or RandomState; from `default` without a seed.

    A Generator is returned itself, so its state advances; the others give the same numbers each time.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    seed = default if random_state is None else random_state
    return np.random.default_rng(check_random_state(seed).randint(2**31 - 1))


def without_caches(instance: Any) -> dict[str, Any]:
    """State of an object for pickles, without its cached properties."""
    kinds = (vars(kind) for kind in type(instance).__mro__)
    cached = {name for members in kinds for name, member in members.items() if isinstance(member, cached_property)}
    return {name: value for name, value in vars(instance).items() if name not in cached}
