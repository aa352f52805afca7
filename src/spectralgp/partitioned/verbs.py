"""What the verbs of an operator do to one partition's own values: tasks that need nothing of other partitions."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from spectralgp._basics.checks import Array
from spectralgp.partitioned.local import Place, laplacian, row_facts


def largest_row(place: Place) -> float:
    """The largest sum of absolute values in a row of ``L``."""
    return row_facts(place)[1]


def rows(place: Place) -> Any:
    """Diagonal of ``L``, and sums of squares of its other entries in each row."""
    return laplacian(place).xp.asarray(row_facts(place)[0])


def zeros(place: Place, n_columns: int) -> Any:
    """Zeros."""
    local = laplacian(place)
    return local.xp.zeros((local.n_own, n_columns), dtype=place.dtype)


def unit_vectors(place: Place, nodes: NDArray[np.intp]) -> Any:
    """A one at a node in each column."""
    local, block = laplacian(place), zeros(place, len(nodes))
    order = np.argsort(local.positions)
    found = np.minimum(np.searchsorted(local.positions, nodes, sorter=order), local.n_own - 1)
    own = np.flatnonzero(local.positions[order[found]] == nodes)
    block[order[found[own]], own] = 1
    return block


def random(draw: Any, place: Place, n_columns: int, random_state: np.random.Generator) -> Any:
    """Random numbers of the nodes; the generator stays as it is, for the task may run again."""
    local, own = laplacian(place), copy.deepcopy(random_state)
    return draw(local.xp.asarray(local.nodes.astype(np.uint64)), n_columns, own, place.dtype, local.xp)


def row_products(left: Any, right: Any) -> Any:
    """Inner products of the rows."""
    return (left * right).sum(axis=1)[:, None]


def beside(left: Any, right: Any) -> Any:
    """Columns of two blocks."""
    return array_namespace(left).concat([left, right], axis=1)


def chosen(block: Any, columns: NDArray[np.intp]) -> Any:
    """Some columns of a block."""
    return block[:, columns]


def combined(block: Any, matrix: Array) -> Any:
    """``block @ matrix``."""
    return block @ array_namespace(block).asarray(matrix, dtype=block.dtype)


def scaled(block: Any, factors: Array) -> Any:
    """``block * factors``."""
    return block * array_namespace(block).asarray(factors, dtype=block.dtype)
