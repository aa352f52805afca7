"""Random numbers that belong to nodes: the same for a node wherever it is computed, and in whatever order.

A node's numbers are a hash of the node and a random key per column, or per sixty-four columns of signs: the generator
SplitMix64 (Steele, Lea and Flood 2014), whose n-th output can be computed without those before it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

STEP = 0x9E3779B97F4A7C15  # between states of the generator
MIXING = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))  # shift by, then multiply by
BITS = 64
AT_ONCE = 2**20  # numbers made at a time, so that what they are made of stays in the cache
FRACTION = 2.0**-53


def node_signs(
    nodes: Any, n_columns: int, generator: np.random.Generator, dtype: Any, xp: Any = np, at_once: int = AT_ONCE
) -> Any:
    """Independent random signs, shape (n_nodes, n_columns), of nodes given by number (uint64, an array of `xp`)."""
    keys = _keys(-(-n_columns // BITS), generator)
    shifts = xp.arange(BITS, dtype=xp.uint64)

    def fill(chosen: Any, block: Any) -> None:
        for number, key in enumerate(keys):
            columns = block[:, number * BITS : (number + 1) * BITS]
            columns[...] = (_words(chosen, key, xp)[:, None] >> shifts[: columns.shape[1]]) & xp.uint64(1)
        block *= 2
        block -= 1

    return _filled(nodes, n_columns, dtype, xp, at_once, fill)


def node_normals(
    nodes: Any, n_columns: int, generator: np.random.Generator, dtype: Any, xp: Any = np, at_once: int = AT_ONCE
) -> Any:
    """Independent standard normal numbers, shape (n_nodes, n_columns), two at a time by the Box-Muller method."""
    keys = _keys(2 * -(-n_columns // 2), generator)

    def fill(chosen: Any, block: Any) -> None:
        for first in range(0, n_columns, 2):
            lengths, angles = (_fractions(_words(chosen, key, xp), xp) for key in keys[first : first + 2])
            radius = xp.sqrt(-2 * xp.log(lengths))
            block[:, first] = radius * xp.cos(2 * np.pi * angles)
            if first + 1 < n_columns:
                block[:, first + 1] = radius * xp.sin(2 * np.pi * angles)

    return _filled(nodes, n_columns, dtype, xp, at_once, fill)


def _keys(n_keys: int, generator: np.random.Generator) -> list[int]:
    return [int(key) for key in generator.integers(2**64, size=n_keys, dtype=np.uint64)]


def _filled(nodes: Any, n_columns: int, dtype: Any, xp: Any, at_once: int, fill: Callable[[Any, Any], None]) -> Any:
    block = xp.empty((len(nodes), n_columns), dtype=dtype)
    height = max(1, at_once // max(1, n_columns))
    for start in range(0, len(nodes), height):
        rows = slice(start, start + height)
        fill(nodes[rows], block[rows])
    return block


def _words(nodes: Any, key: int, xp: Any) -> Any:
    """Sixty-four random bits for every node; products wrap around, as they should."""
    words = (nodes + xp.uint64(1)) * xp.uint64(STEP) + xp.uint64(key)
    for shift, factor in MIXING:
        words = (words ^ (words >> xp.uint64(shift))) * xp.uint64(factor)
    return words


def _fractions(words: Any, xp: Any) -> Any:
    """Numbers from zero to one, never zero itself, whose logarithm is wanted."""
    return ((words >> xp.uint64(11)).astype(xp.float64) + 1.0) * FRACTION
