"""Reading training signals: centring and scaling, in memory or block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj

from spectralgp._checks import Array
from spectralgp._operators import precision_of
from spectralgp.graph import Graph
from spectralgp.spectrum import Chebyshev, LargeSignals

LARGE = 5_000  # nodes, beyond which spectrum="auto" gives up the eigendecomposition
BLOCK = 2**22  # values read at a time

Center = Literal["global", "node"] | None


@dataclass(frozen=True, eq=False)
class Training:
    """Training signals as learning sees them and as prediction does.

    Parameters
    ----------
    scaled : ndarray or LargeSignals
        Centred and scaled, for learning.
    centred : ndarray or LargeSignals
        Centred, in the units of the user, for prediction.
    offset : ndarray of shape (n_nodes,), or float
        What was subtracted.
    spread : float
        What the scaled signals were divided by.
    shape : pair of int
        Numbers of signals and nodes.
    """

    scaled: Any
    centred: Any
    offset: Any
    spread: float
    shape: tuple[int, int]


def in_memory(signals: Array, center: Center, scale: bool) -> Training:
    """Centre and scale an array."""
    if center == "node":
        offset = signals.mean(axis=0)
    else:
        offset = np.full(signals.shape[1], signals.mean() if center == "global" else 0.0)
    centred = signals - offset
    spread = (float(np.std(centred)) if scale else 1.0) or 1.0
    return Training(centred / spread, centred, offset, spread, signals.shape)


def block_by_block(
    graph: Graph,
    signals: Any,
    settings: Chebyshev,
    center: Center,
    scale: bool,
    device: str | None,
    progress: Callable[[str], None] | None,
) -> Training:
    """Find centre and scale of signals on a large graph without a copy of them."""
    precision_of(signals)
    n_signals, n_nodes = signals.shape
    count, mean, squares, means = 0, 0.0, 0.0, []
    for block in _blocks(signals):
        xp = array_namespace(block)
        if not bool(xp.all(xp.isfinite(block))):
            raise ValueError("Y must be finite; got NaN or infinity. Remove or fill in such values first.")
        if center == "node":
            means.append(xp.mean(block, axis=0))
            block = block - means[-1]
        # sums of squares about the means of blocks, put together so that a large mean costs no digits
        size, apart = n_signals * block.shape[1], float(xp.mean(block)) - mean
        squares += float(xp.sum((block - (mean + apart)) ** 2)) + apart**2 * count * size / (count + size)
        mean += apart * size / (count + size)
        count += size
    offset: Any = array_namespace(means[0]).concat(means) if means else (mean if center == "global" else 0.0)
    spread = (float(np.sqrt(squares / count)) if scale else 1.0) or 1.0
    left = mean / spread if center is None else 0.0
    large = LargeSignals(graph, signals, settings, offset, spread, left, device=device, progress=progress)
    return Training(large, large.in_units(), offset, spread, (n_signals, n_nodes))


@contextmanager
def explaining_memory(signals: Any, n_nodes: int, settings: Chebyshev | None) -> Iterator[None]:
    """Say how much memory a fit needs, and what would need less, where there is not enough.

    Parameters
    ----------
    signals : array of shape (n_signals, n_nodes)
        Training signals.
    n_nodes : int
        Number of nodes.
    settings : Chebyshev, optional
        Of a large graph; the spectrum is exact if not given.

    Raises
    ------
    MemoryError
        In place of the one that gave no reason.
    """
    try:
        yield
    except MemoryError as error:
        n_signals = signals.shape[0]
        if settings is None:
            needed, of = 3 * 8 * n_nodes**2, f"the exact spectrum of {n_nodes} nodes"
            remedy = "Use spectrum='chebyshev', which needs no matrix of nodes by nodes."
        else:
            n_probes = n_nodes if settings.n_probes == "exact" else int(settings.n_probes)
            # two blocks of each recurrence and one on the way for the signals, two for the probes
            needed = (3 * n_signals + 2 * n_probes) * n_nodes * precision_of(signals).itemsize
            of = f"{n_signals} signals and {n_probes} probes on {n_nodes} nodes"
            remedy = "Pass Y as float32, fewer signals, or fewer probes: spectrum=Chebyshev(n_probes=...)."
        raise MemoryError(f"memory must hold about {needed / 1e9:.2g} GB for {of}; got less. {remedy}") from error


def _blocks(signals: Any) -> Iterator[Any]:
    """The signals by blocks of nodes, as float64 arrays of their own library, or NumPy's."""
    width = max(1, BLOCK // max(1, signals.shape[0]))
    for start in range(0, signals.shape[1], width):
        block = signals[:, start : min(start + width, signals.shape[1])]
        block = block if is_array_api_obj(block) else np.asarray(block)
        yield array_namespace(block).astype(block, array_namespace(block).float64)
