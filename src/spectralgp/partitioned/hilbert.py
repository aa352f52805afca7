"""Places along a Hilbert curve, which keeps what is near in space near on the curve."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from spectralgp._basics.checks import Array

BITS = 21  # of each axis: three of them fit 64 bits


def hilbert_index(cells: NDArray[np.uint64], bits: int = BITS) -> NDArray[np.uint64]:
    """Distance along the Hilbert curve of cells of a square or cubic grid.

    Skilling's algorithm (J. Skilling, Programming the Hilbert curve, 2004) turns the coordinates of a cell into the
    bits of its index, transposed: from the highest bit down, an axis whose bit is set inverts the lower bits of the
    first axis, and one whose bit is not set exchanges them with those of the first axis; a Gray code is undone last.

    Parameters
    ----------
    cells : uint64 array of shape (n_points, n_dimensions)
        Coordinates of cells, below ``2 ** bits``.
    bits : int, default=21
        Bits of each coordinate; no more than 64 in all dimensions together.

    Returns
    -------
    uint64 array of shape (n_points,)

    Examples
    --------
    >>> import numpy as np
    >>> hilbert_index(np.array([[0, 0], [0, 1], [1, 1], [1, 0]], dtype=np.uint64), bits=1)
    array([0, 1, 2, 3], dtype=uint64)
    """
    axes = [np.array(column, dtype=np.uint64) for column in cells.T]
    one = np.uint64(1)
    for place in range(bits - 1, 0, -1):
        shift = np.uint64(place)
        lower = (one << shift) - one
        for axis in axes:
            is_set = (axis >> shift) & one
            inverted = is_set * lower
            # the bits in which the two differ, where they are exchanged; nothing for the first axis itself
            exchanged = (axes[0] ^ axis) & (lower - inverted)
            axes[0] ^= inverted | exchanged
            if axis is not axes[0]:
                axis ^= exchanged
    for before, axis in pairwise(axes):
        axis ^= before
    flips = np.zeros_like(axes[0])
    for place in range(bits - 1, 0, -1):
        shift = np.uint64(place)
        flips ^= ((axes[-1] >> shift) & one) * ((one << shift) - one)
    index = np.zeros_like(axes[0])
    for place in range(bits - 1, -1, -1):
        for axis in axes:
            index <<= one
            index |= ((axis ^ flips) >> np.uint64(place)) & one
    return index


def curve_keys(points: Array, low: Array, extent: float) -> NDArray[np.uint64]:
    """Places of points along the curve through a square or a cube with a corner at `low` and sides of `extent`."""
    largest = 2**BITS - 1
    cells = np.clip((points - low) * (largest / (extent or 1.0)), 0, largest).astype(np.uint64)
    return cells[:, 0] if cells.shape[1] == 1 else hilbert_index(cells)
