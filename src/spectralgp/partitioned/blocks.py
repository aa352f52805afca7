"""Blocks of columns over a partitioned graph: one array a partition, wherever its worker is."""

from __future__ import annotations

import operator as arithmetic
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spectralgp.partitioned.running import Computing


class PartitionedBlock:
    """Columns over the nodes of a partitioned graph. It adds, subtracts and multiplies as an array does.

    Parameters
    ----------
    operator : Computing
        What it belongs to.
    parts : list of Future
        Own values of each partition, shape (n_own, n_columns).
    n_columns : int
        Number of columns.
    """

    __array_ufunc__ = None  # NumPy leaves arithmetic with its own scalars to this class

    def __init__(self, operator: Computing, parts: Sequence[Any], n_columns: int) -> None:
        self.operator, self.n_columns = operator, n_columns
        self._parts: list[Any] | None = list(parts)

    @property
    def parts(self) -> list[Any]:
        """Own values of each partition."""
        if self._parts is None:
            raise RuntimeError("a block was used after a recurrence had taken it over")
        return self._parts

    def taken(self) -> list[Any]:
        """The same, and this block is empty from now on, so that its memory is free when the taker is done with it."""
        parts, self._parts = self.parts, None
        return parts

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of nodes and columns."""
        return self.operator.n_nodes, self.n_columns

    def _with(self, other: Any, function: Callable[[Any, Any], Any]) -> PartitionedBlock:
        each = self.operator.each
        if isinstance(other, PartitionedBlock):
            parts = each(function, zip(self.parts, other.parts, strict=True))
            return PartitionedBlock(self.operator, parts, max(self.n_columns, other.n_columns))
        number = float(np.asarray(other)) if np.ndim(other) == 0 else other
        return PartitionedBlock(self.operator, each(function, ((part, number) for part in self.parts)), self.n_columns)

    def __add__(self, other: Any) -> PartitionedBlock:
        """Sum with a block of as many columns, or of one, or with a number."""
        return self._with(other, arithmetic.add)

    __radd__ = __add__

    def __sub__(self, other: Any) -> PartitionedBlock:
        """Difference, as the sum."""
        return self._with(other, arithmetic.sub)

    def __mul__(self, other: Any) -> PartitionedBlock:
        """Product entry by entry, as the sum."""
        return self._with(other, arithmetic.mul)

    __rmul__ = __mul__

    def __pow__(self, power: float) -> PartitionedBlock:
        """Power of every entry."""
        return self._with(power, arithmetic.pow)
