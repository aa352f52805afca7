"""Signals on the nodes of a graph: where they are, in which units, and which of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from array_api_compat import is_dask_array
from numpy.typing import NDArray

from spectralgp._basics.arrays import on_host, without_caches
from spectralgp._basics.checks import Array, Indices
from spectralgp.operators import MomentPass, Operator
from spectralgp.signals.units import Units

Center = Literal["global", "node"] | None
Scale = Literal["global", "node"] | None
Reader = Callable[..., "Signals"]
"""What reads values in the units they came in: ``read(values)``, or ``read(values, units)`` in units that are known."""


@dataclass(eq=False)
class Store:
    """What all views of some signals share: the rows, centred and scaled, and what was computed of them.

    The rows are counted from zero; one more, of ones, stands after them, so that a level is a combination of rows too.

    Parameters
    ----------
    source : array or file of shape (n_signals, n_nodes)
        The signals as they are kept.
    offset, divisor
        What is still to be subtracted from the source, and to be divided by.
    units : Units
        What was done to the signals in all.
    gram : ndarray of shape (n_signals + 1, n_signals + 1)
        Products of the rows with each other.
    rounding : float
        What rounding alone may leave of a value.
    """

    source: Any
    offset: Any
    divisor: Any
    units: Units
    gram: Array
    rounding: float
    passes: dict[Operator, MomentPass] = field(default_factory=dict)
    transforms: list[tuple[Array, Array]] = field(default_factory=list)

    def __getstate__(self) -> dict[str, Any]:
        """Without products with bases, which are made again where they are asked for."""
        return {**without_caches(self), "transforms": []}

    @cached_property
    def values(self) -> Array:
        """The rows in memory, without that of ones; those of a Dask array where they are."""
        rows: Any = self.source
        if not is_dask_array(rows):
            rows = np.asarray(on_host(rows[:, :]), dtype=float)
        if np.ndim(self.offset) == 0 and self.offset == 0.0 and np.ndim(self.divisor) == 0 and self.divisor == 1.0:
            return rows
        return (rows - np.asarray(on_host(self.offset))) / np.asarray(on_host(self.divisor))

    def transform(self, matrix: Array) -> Array:
        """The rows times a matrix (n_nodes, n); the last two products are remembered."""
        for known, product in self.transforms:
            if known is matrix:
                return product
        product = np.vstack([self.values @ matrix, matrix.sum(axis=0)])
        self.transforms = [*self.transforms[-1:], (matrix, product)]  # a new list: threads may look at the old one
        return product

    def load(self, operator: Operator) -> Any:
        """The rows as columns of an operator's block, without that of ones."""
        block = operator.load(self.source)
        block -= self.offset if np.ndim(self.offset) == 0 else operator.load(self.offset[None, :])
        block *= 1 / self.divisor if np.ndim(self.divisor) == 0 else operator.load((1 / self.divisor)[None, :])
        return block

    def moments(self, operator: Operator, n_moments: int) -> Array:
        """Products of the rows with each other after ``T_k(A)``: equation (11)."""
        known = self.passes.get(operator)
        if known is None or (known.is_released and known.n_moments < n_moments):
            block = self.load(operator)
            if not operator.keeps_constants:
                block = operator.beside(block, operator.zeros(1) + 1)
            known = self.passes[operator] = MomentPass(operator, block, gram=True)
        known.extend(n_moments)
        moments = known.moments[:n_moments]
        if not operator.keeps_constants:
            return moments
        # ones are an eigenvector of A with eigenvalue -1, so their products are known without a column of their own
        signs = (-1.0) ** np.arange(n_moments)[:, None, None]
        border = signs * self.gram[-1, :-1]
        return np.block([[moments, np.swapaxes(border, 1, 2)], [border, signs * self.gram[-1, -1]]])


class Signals:
    """Signals in rows, one value a node, centred and divided by their spread; or some of them. Made by `read_signals`.

    Some of the signals are a view, which shares what was computed of all and is centred by itself.

    Parameters
    ----------
    store : object
        What views share.
    rows : ndarray of int
        Which of the signals.
    level : ndarray of shape (n_signals + 1,)
        The combination of the rows of the store that is subtracted from each.
    recentres : {"global", "node"} or None
        What a further view subtracts.
    read : Reader, optional
        What reads some of the signals, where a further view finds the scales of the nodes anew, and its centre with
        them.
    """

    def __init__(
        self,
        store: Store,
        rows: Indices,
        level: Array,
        recentres: Center,
        read: Reader | None = None,
    ) -> None:
        self._store, self._rows, self._level, self._recentres = store, rows, level, recentres
        self._read = read

    @property
    def shape(self) -> tuple[int, int]:
        """Number of signals and of nodes."""
        return self._rows.size, self._store.source.shape[1]

    @property
    def size(self) -> int:
        """Number of values."""
        return self.shape[0] * self.shape[1]

    @property
    def observed(self) -> NDArray[np.bool_] | None:
        """Which values were observed, shape (n_signals, n_nodes); None where all were."""
        return None

    @property
    def deviations(self) -> Array | None:
        """What the values may deviate by, shape (n_deviations, n_signals, n_nodes); None where they are known.

        The sum of the deviations' outer products is the covariance of the values.
        """
        return None

    @property
    def as_observed(self) -> Array:
        """The signals in memory, shape (n_signals, n_nodes); NaN where nothing was observed."""
        return self.values

    @property
    def log_volume(self) -> float:
        """Logarithm of what a density is divided by in the units that the signals came in."""
        return -float(self.units.log_density(0.0, self.size))

    @property
    def like(self) -> Any:
        """The array or file that holds the signals: operators follow its library, device and precision."""
        return self._store.source

    @property
    def is_centred_by_node(self) -> bool:
        """Whether each node's own mean was subtracted."""
        return self._recentres == "node"

    @property
    def units(self) -> Units:
        """What turns these signals back into those that came in."""
        units, level = self._store.units, float(self._level[-1])
        if np.any(self._level[:-1]):
            offset = units.offset + units.divisor * (level + self._level[:-1] @ self._store.values)
        else:
            offset = units.offset + units.divisor * level if level else units.offset
        return Units(offset, units.spread, units.relative)

    @property
    def mean_square(self) -> float:
        """Mean of the squared values."""
        return float(np.mean(np.diagonal(self._seen(self._store.gram)))) / self.shape[1]

    @property
    def variance(self) -> float:
        """Variance of the values about their mean; zero where there is nothing but rounding."""
        # no level of ones: it does not change a variance, and may be so large as to drown it
        shifted = Signals(self._store, self._rows, np.append(self._level[:-1], 0.0), self._recentres)
        gram, ones = self._store.gram, self._store.gram[-1]
        mean = float(np.mean(ones[self._rows]) - shifted._level @ ones) / gram[-1, -1]
        variance = float(shifted.mean_square - mean**2)
        return variance if variance > self._store.rounding**2 else 0.0

    @property
    def variance_within(self) -> float:
        """Variance of the values about their nodes' means; zero where there is nothing but rounding."""
        gram, n_signals = self._seen(self._store.gram), self.shape[0]
        variance = float(np.trace(gram) - gram.sum() / n_signals) / self.size
        return variance if variance > self._store.rounding**2 else 0.0

    def fold(self, kept: Indices, held_out: Indices) -> tuple[Signals, Signals]:
        """Some of the signals, and others, both with the centre of the former subtracted, and in its scales."""
        if self._read is not None:
            raw = self.units.mean(self.values)
            chosen = self._read(raw[kept])
            return chosen, self._read(raw[held_out], chosen.units)
        rows, level = self._rows[kept], self._level
        if self._recentres == "node":
            level = np.bincount(rows, minlength=level.size) / rows.size
        elif self._recentres == "global":
            level = np.zeros(level.size)
            level[-1] = np.mean(self._store.gram[-1, rows]) / self._store.gram[-1, -1]
        store, recentres = self._store, self._recentres
        return Signals(store, rows, level, recentres), Signals(store, self._rows[held_out], level, recentres)

    def said_in(self, units: Units) -> Signals:
        """The same values, said to be in other units."""
        # a view's level is part of its units, so that it is taken out here
        offset = units.offset - units.divisor * float(self._level[-1])
        store = dataclasses.replace(self._store, units=Units(offset, units.spread, units.relative))
        return Signals(store, self._rows, self._level, None)

    def subset(self, rows: Indices) -> Signals:
        """Some of the signals, with a centre of their own."""
        return self.fold(rows, rows)[0]

    def followed_by(self, other: Signals) -> Signals | None:
        """These signals and then others, if both are views of the same ones with the same centre."""
        if self._store is not other._store or not np.array_equal(self._level, other._level):
            return None
        return Signals(self._store, np.concatenate([self._rows, other._rows]), self._level, self._recentres)

    @property
    def values(self) -> Array:
        """The signals in memory, shape (n_signals, n_nodes)."""
        values = self._store.values[self._rows]
        return values - (self._level[:-1] @ self._store.values + self._level[-1]) if np.any(self._level) else values

    def transform(self, matrix: Array) -> Array:
        """The signals times a matrix (n_nodes, n)."""
        product = self._store.transform(matrix)
        return product[self._rows] - self._level @ product if np.any(self._level) else product[self._rows]

    def columns(self, operator: Operator) -> Any:
        """The signals as columns of a block of an operator."""
        block = self._store.load(operator)
        chosen = block if self._is_whole else operator.chosen(block, self._rows)
        if np.any(self._level):
            chosen = chosen - (operator.combine(block, self._level[:-1, None]) + float(self._level[-1]))
        return chosen

    def moments(self, operator: Operator, n_moments: int) -> Array:
        """``C_k`` of equation (11), shape (n_moments, n_signals, n_signals)."""
        return self._seen(self._store.moments(operator, n_moments))

    def spread_moments(self, operator: Operator, n_moments: int) -> Array | None:
        """What `deviations` add to the moments; None where the values are known."""
        return None

    def release(self) -> None:
        """Forget the states of recurrences, which more moments would need, and keep the moments."""
        for known in self._store.passes.values():
            known.release()

    @property
    def _is_whole(self) -> bool:
        return np.array_equal(self._rows, np.arange(self._store.source.shape[0]))

    def _seen(self, products: Array) -> Array:
        """Products of the store's rows, along the last two axes, as those of the view's."""
        chosen = products[..., self._rows[:, None], self._rows]
        if not np.any(self._level):
            return chosen
        crosses = products @ self._level
        across = crosses[..., self._rows]
        both = crosses @ self._level
        return chosen - across[..., :, None] - across[..., None, :] + both[..., None, None]
