"""Signals of which not every value was observed, and what they are completed by."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Never

import numpy as np
from numpy.typing import NDArray

from spectralgp._basics.arrays import without_caches
from spectralgp._basics.checks import Array, Indices
from spectralgp.operators import MomentPass, Operator
from spectralgp.signals.units import Units
from spectralgp.signals.views import Reader, Signals

ROUNDING = 1e-14  # of the largest value: a variance below its square is that of a constant
HOLES = "signals must be complete to be {verb}; got {n_missing} values that were not observed. Complete them first."


class Incomplete(Signals):
    """Signals with holes. Made by `read_signals`.

    They can be learnt from and conditioned on; what needs every value is asked of their completion.

    Parameters
    ----------
    values : ndarray of shape (n_signals, n_nodes)
        Centred and scaled; NaN where nothing was observed.
    units : Units
        What turns them back into those that came in.
    is_centred_by_node : bool
        Whether each node's own mean was subtracted.
    read : Reader, optional
        What reads some of them anew.
    dtype : dtype, default=float64
        Precision that they came in, which operators on a large graph follow.
    """

    __getstate__ = without_caches

    def __init__(
        self, values: Array, units: Units, is_centred_by_node: bool, read: Reader | None = None, dtype: Any = np.float64
    ) -> None:
        self._values, self._units, self._by_node, self._read, self._dtype = (
            values,
            units,
            is_centred_by_node,
            read,
            dtype,
        )

    @classmethod
    def of(cls, values: Array, units: Units) -> Incomplete:
        """Signals in known units, which are never read anew."""
        return cls(values, units, is_centred_by_node=False)

    @property
    def shape(self) -> tuple[int, int]:
        n_signals, n_nodes = self._values.shape
        return n_signals, n_nodes

    @property
    def size(self) -> int:
        return int(np.count_nonzero(self.observed))

    @cached_property
    def observed(self) -> NDArray[np.bool_]:
        return np.isfinite(self._values)

    @property
    def like(self) -> Array:
        return np.empty((0, 0), dtype=self._dtype)

    @property
    def is_centred_by_node(self) -> bool:
        return self._by_node

    @property
    def units(self) -> Units:
        return self._units

    @property
    def log_volume(self) -> float:
        return float(self._units.log_volume(self.observed))

    @property
    def mean_square(self) -> float:
        return float(np.mean(np.square(self._values), where=self.observed))

    @property
    def variance(self) -> float:
        seen = self._values[self.observed]
        return self._unless_rounding(float(np.var(seen)))

    @property
    def variance_within(self) -> float:
        counts = np.maximum(self.observed.sum(axis=0), 1)
        means = np.sum(self._values, axis=0, where=self.observed) / counts
        return self._unless_rounding(float(np.mean(np.square(self._values - means), where=self.observed)))

    def _unless_rounding(self, variance: float) -> float:
        largest = float(np.max(np.abs(self._values), where=self.observed, initial=0.0))
        return variance if variance > (ROUNDING * largest) ** 2 else 0.0

    def fold(self, kept: Indices, held_out: Indices) -> tuple[Signals, Signals]:
        raw = self._units.mean(self._values)
        chosen = self._reader(raw[kept])
        return chosen, self._reader(raw[held_out], chosen.units)

    def said_in(self, units: Units) -> Signals:
        return Incomplete(self._values, units, False, self._read, self._dtype)

    def followed_by(self, other: Signals) -> None:
        return

    @property
    def values(self) -> Array:
        return self._values

    def transform(self, matrix: Array) -> Never:
        raise self._refusal("transformed")

    def columns(self, operator: Operator) -> Never:
        raise self._refusal("filtered")

    def moments(self, operator: Operator, n_moments: int) -> Never:
        raise self._refusal("read on a spectrum")

    def release(self) -> None:
        """Nothing is kept."""

    def completed(self, mean: Array, deviations: Array | Callable[[], Array]) -> Completed:
        """The signals with all values, of which those that were not observed have a mean and deviations."""
        if not np.all(np.isfinite(mean)):
            raise ValueError(
                "the completion of signals must be finite; got infinity or NaN. The hyperparameters are too "
                "far from the size of the signals to compute with."
            )
        return Completed(self, self._reader(self._units.mean(mean), self._units), deviations)

    @property
    def _reader(self) -> Reader:
        assert self._read is not None, "signals in known units are not read anew"
        return self._read

    def _refusal(self, verb: str) -> ValueError:
        return ValueError(HOLES.format(verb=verb, n_missing=self._values.size - self.size))


class Completed(Signals):
    """Signals with holes whose missing values are known by their mean and covariance. Made by `Incomplete.completed`.

    They are the mean where one set of values is asked for. Their second moments, which learning asks for, are expected
    ones: those of the mean and of the deviations.

    Parameters
    ----------
    incomplete : Incomplete
        The signals with holes.
    mean : Signals
        The same with every hole filled by its mean.
    deviations : ndarray of shape (n_deviations, n_signals, n_nodes), or callable
        Zero where a value was observed. The sum of their outer products is the covariance of all values. A callable
        makes them when they are asked for.
    """

    __getstate__ = without_caches

    def __init__(self, incomplete: Incomplete, mean: Signals, deviations: Array | Callable[[], Array]) -> None:
        super().__init__(mean._store, mean._rows, mean._level, None)
        self.incomplete, self._known = incomplete, deviations
        self._spread_moments: dict[Operator, Array] = {}

    @property
    def size(self) -> int:
        return self.incomplete.size

    @property
    def as_observed(self) -> Array:
        return self.incomplete.values

    @cached_property
    def deviations(self) -> Array:
        return self._known() if callable(self._known) else self._known

    @property
    def is_centred_by_node(self) -> bool:
        return self.incomplete.is_centred_by_node

    @property
    def units(self) -> Units:
        return self.incomplete.units

    @property
    def log_volume(self) -> float:
        return self.incomplete.log_volume

    @property
    def variance(self) -> float:
        """Variance of the observed values: the scale of the problem stays the same however it is completed."""
        return self.incomplete.variance

    @property
    def variance_within(self) -> float:
        return self.incomplete.variance_within

    def followed_by(self, other: Signals) -> None:
        return

    def moments(self, operator: Operator, n_moments: int) -> Array:
        """Expected ``C_k`` of equation (11), shape (n_moments, n_signals, n_signals)."""
        return super().moments(operator, n_moments) + self.spread_moments(operator, n_moments)

    def spread_moments(self, operator: Operator, n_moments: int) -> Array:
        known = self._spread_moments.get(operator)
        if known is None or known.shape[0] < n_moments:
            n_signals = self.shape[0]
            known = np.zeros((n_moments, n_signals, n_signals))
            for deviation in self.deviations:
                own = MomentPass(operator, operator.load(deviation), gram=True)
                own.extend(n_moments)
                known += own.moments[:n_moments]
            self._spread_moments[operator] = known
        return known[:n_moments]
