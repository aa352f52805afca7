"""Random numbers that belong to nodes: the same for a node on every machine and in every order.

A node's numbers are a hash of the node and a random key per column, or per sixty-four columns of signs: the generator
SplitMix64 (Steele, Lea and Flood 2014), whose n-th output can be computed without those before it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import array_namespace

STEP = 0x9E3779B97F4A7C15  # between states of the generator
MIXING = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))  # shift by, then multiply by
BITS = 64
AT_ONCE = 2**20  # numbers made at a time, so that what they are made of stays in the cache
FRACTION = 2.0**-53


def node_signs(nodes: Any, n_columns: int, generator: np.random.Generator, dtype: Any, at_once: int = AT_ONCE) -> Any:
    """Independent random signs, shape (n_nodes, n_columns), of nodes given by number (uint64, of NumPy or CuPy)."""
    keys, xp = _keys(-(-n_columns // BITS), generator), array_namespace(nodes)
    shifts = xp.arange(BITS, dtype=xp.uint64)

    def fill(chosen: Any, block: Any) -> None:
        for number, key in enumerate(keys):
            columns = block[:, number * BITS : (number + 1) * BITS]
            columns[...] = (_words(chosen, key)[:, None] >> shifts[: columns.shape[1]]) & xp.uint64(1)
        block *= 2
        block -= 1

    return _filled(nodes, n_columns, dtype, at_once, fill)


def node_normals(nodes: Any, n_columns: int, generator: np.random.Generator, dtype: Any, at_once: int = AT_ONCE) -> Any:
    """Independent standard normal numbers, shape (n_nodes, n_columns), two at a time by the Box-Muller method."""
    keys, xp = _keys(2 * -(-n_columns // 2), generator), array_namespace(nodes)

    def fill(chosen: Any, block: Any) -> None:
        for first in range(0, n_columns, 2):
            words = (_words(chosen, key) >> xp.uint64(11) for key in keys[first : first + 2])
            # never zero, whose logarithm is wanted
            lengths, angles = ((one.astype(xp.float64) + 1.0) * FRACTION for one in words)
            radius = xp.sqrt(-2 * xp.log(lengths))
            block[:, first] = radius * xp.cos(2 * np.pi * angles)
            if first + 1 < n_columns:
                block[:, first + 1] = radius * xp.sin(2 * np.pi * angles)

    return _filled(nodes, n_columns, dtype, at_once, fill)


def _keys(n_keys: int, generator: np.random.Generator) -> list[int]:
    return [int(key) for key in generator.integers(2**64, size=n_keys, dtype=np.uint64)]


def _filled(nodes: Any, n_columns: int, dtype: Any, at_once: int, fill: Callable[[Any, Any], None]) -> Any:
    block = array_namespace(nodes).empty((len(nodes), n_columns), dtype=dtype)
    height = max(1, at_once // max(1, n_columns))
    for start in range(0, len(nodes), height):
        rows = slice(start, start + height)
        fill(nodes[rows], block[rows])
    return block


def _words(nodes: Any, key: int) -> Any:
    """Sixty-four random bits for every node; products wrap around, as they should."""
    xp = array_namespace(nodes)
    words = (nodes + xp.uint64(1)) * xp.uint64(STEP) + xp.uint64(key)
    for shift, factor in MIXING:
        words = (words ^ (words >> xp.uint64(shift))) * xp.uint64(factor)
    return words
