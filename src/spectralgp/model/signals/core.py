"""Signals on the nodes of a graph: values, units, rows of a shared store, and the mask of observed values."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
from array_api_compat import is_dask_array

from spectralgp._basics.arrays import on_host, take, times_matrix, without_caches
from spectralgp._basics.checks import Array, Indices, Mask
from spectralgp._basics.saved import Positive, axes, ge, gt
from spectralgp.graphs import operators
from spectralgp.graphs.operators import MomentPass, Operator, combine_columns, join_columns, take_columns

Center = Literal["global", "node"] | None
Scale = Literal["global", "node"] | None
Reader = Callable[..., "Signals"]
"""Function that reads values in the user's units: ``read(values)``, or ``read(values, units)`` in given units."""

LARGEST = 1e140  # size of values whose squares are still numbers, and one over the smallest


@dataclass(frozen=True, eq=False)
class Units:
    """Units of signals: offsets that are subtracted, and scales that the result is divided by."""

    offset: Annotated[Any, axes("n_nodes", or_number=True)] = 0.0  # one number, or one per node
    spread: Positive = 1.0  # the common scale
    # scales of the nodes, relative to the common one
    relative: Annotated[Any, axes("n_nodes"), gt(0)] | None = None
    # of the offset of each node, in the user's units; None if offsets are known
    offset_variance: Annotated[Array, axes("n_nodes"), ge(0)] | None = None
    # scales of the signals, relative to those of the nodes
    signal_scales: Annotated[Array, axes("_scaled_signals"), gt(0)] | None = None

    @property
    def divisor(self) -> Any:
        """Product of all scales: one number, or one per node; one row per signal where those have scales."""
        divisor = self.spread if self.relative is None else self.spread * self.relative
        return divisor if self.signal_scales is None else divisor * self.signal_scales[:, None]

    @property
    def of_new(self) -> Units:
        """The units of a new signal, whose scale is one."""
        return self if self.signal_scales is None else dataclasses.replace(self, signal_scales=None)

    def of(self, rows: Indices) -> Units:
        """The units of some of the signals."""
        scales = self.signal_scales
        return self if scales is None else dataclasses.replace(self, signal_scales=scales[rows])

    def with_new(self, n_signals: int) -> Units:
        """The units of these signals followed by new ones."""
        if self.signal_scales is None:
            return self
        return dataclasses.replace(self, signal_scales=np.append(self.signal_scales, np.ones(n_signals)))

    def informed_by(self, signals: Array) -> Units:
        """Units whose unknown node levels are replaced by posterior means given further signals."""
        if self.offset_variance is None:
            return self
        seen, variances = np.isfinite(signals), self.offset_variance
        counts = seen.sum(axis=0)
        means = np.sum(signals, axis=0, where=seen) / np.maximum(counts, 1)
        weights = variances * counts / (variances * counts + np.square(self.divisor))
        offset = self.offset + weights * (means - self.offset)
        return dataclasses.replace(self, offset=offset, offset_variance=np.where(counts > 0, 0.0, variances))

    def apply(self, signals: Any) -> Any:
        """Centre and scale signals that are in the user's units."""
        return (signals - self.offset) / self.divisor

    def restore(self, signals: Any) -> Any:
        """Return centred and scaled signals to the user's units: undoes `apply`."""
        return signals * self.divisor + self.offset

    def restore_scale(self, std: Any, nodes: Indices | None = None) -> Any:
        """Return standard deviations to the user's units, at all nodes or at some."""
        if self.relative is None or nodes is None:
            return std * self.divisor
        return std * on_host(take(self.divisor, nodes, axis=-1))

    def log_volume(self, observed: Mask, axis: int | None = None) -> Any:
        """Sum of the log scales of the observed values: subtract it from a log density for the user's units."""
        divisors = np.broadcast_to(np.asarray(on_host(self.divisor)), observed.shape)
        return np.sum(np.log(divisors), axis=axis, where=observed)

    def log_density(self, log_density: Any, n_values: int) -> Any:
        """Log density of complete signals with `n_values` values in the user's units."""
        logs = np.log(np.atleast_1d(on_host(self.divisor)))  # one number, one per node, or those of each signal
        return log_density - n_values * np.mean(logs, axis=-1)


@dataclass(eq=False)
class SignalStore:
    """Rows of signals, centred and scaled, with caches of results, which all views of the signals share.

    A further row of ones stands after the last, so that a level is a combination of rows too.
    """

    source: Any  # the stored signals, shape (n_signals, n_nodes)
    units: Units  # all centring and scaling of the signals
    rounding: float  # size below which a value may be rounding error
    offset: Any = 0.0  # still to be subtracted from the source
    divisor: Any = 1.0  # still to be divided by
    products: Array | None = None  # of the rows with each other, (n_signals + 1, n_signals + 1), unless in memory
    prototype: Any = None  # an array that operators follow in place of the source
    passes: dict[Operator, MomentPass] = field(default_factory=dict)
    transforms: list[tuple[Array, Array]] = field(default_factory=list)  # matrices, and products with them

    def __getstate__(self) -> dict[str, Any]:
        """State without products with bases, which are computed again on demand."""
        return {**without_caches(self), "transforms": []}

    @cached_property
    def values(self) -> Array:
        """The rows in memory, without that of ones; still a Dask array if they are one."""
        rows: Any = self.source
        if self.products is None:  # already in memory
            return rows
        if not is_dask_array(rows):
            rows = np.asarray(on_host(rows[:, :]), dtype=float)
        return (rows - np.asarray(on_host(self.offset))) / np.asarray(on_host(self.divisor))

    def load(self, operator: Operator) -> Any:
        """The rows as columns of an operator's block, without that of ones."""
        block = operator.load(self.source)
        block -= self.offset if np.ndim(self.offset) == 0 else operator.load(self.offset[None, :])
        block *= 1 / self.divisor if np.ndim(self.divisor) == 0 else operator.load((1 / self.divisor)[None, :])
        return block

    def moments(self, operator: Operator, n_moments: int) -> Array:
        """Products of the rows with each other after ``T_k(A)``: equation (24)."""
        known = self.passes.get(operator)
        if known is None or (known.is_released and known.n_moments < n_moments):
            block = self.load(operator)
            if not operators.keeps_constants(operator):
                block = join_columns(block, operator.zeros(1) + 1)
            known = self.passes[operator] = MomentPass(operator, block, gram=True)
        moments = known.extend(n_moments)
        if moments.shape[-1] == self.source.shape[0] + 1:
            return moments
        # ones are an eigenvector of A with eigenvalue -1, so their products are known without a column of their own
        signs = (-1.0) ** np.arange(n_moments)[:, None, None]
        border = signs * (self.values.sum(axis=1) if self.products is None else self.products[-1, :-1])
        return np.block([[moments, np.swapaxes(border, 1, 2)], [border, signs * operator.n_nodes]])


class Signals:
    """Signals in rows, one value per node, centred and divided by their spread. Made by `read_signals`.

    A view of some of the signals shares cached results with all, and has a centre of its own. Incomplete signals can be
    learnt from and conditioned on; operations on every value need their completion: its mean, and for second moments
    the expected ones, those of the mean and of the deviations.

    Attributes
    ----------
    shape : tuple of int
        Number of signals and of nodes.
    size : int
        Number of observed values.
    has_missing : bool
        Whether some values are missing.
    is_complete : bool
        Whether every value is observed or completed.
    like : array or file
        Prototype: operators follow its library, device and precision.
    """

    __getstate__ = without_caches

    def __init__(
        self,
        store: SignalStore,  # shared by views
        recentres: Center = None,  # centre of further views
        read: Reader | None = None,  # reads a further view anew, with scales of its own
        *,
        rows: Indices | None = None,  # numbers of the signals in the store; all if not given
        level: Array | None = None,  # the combination of its rows that is subtracted from each, shape (n_rows + 1,)
        observed: Mask | None = None,  # shape (n_signals, n_nodes); all observed if not given
        deviations: Array | Callable[[], Array] | None = None,  # of imputed values; zero at observed ones
    ) -> None:
        n_rows, n_nodes = store.source.shape
        self._store, self._recentres, self._read = store, recentres, read
        self._rows = np.arange(n_rows) if rows is None else rows
        self._level = np.zeros(n_rows + 1) if level is None else level
        self._observed, self._found_deviations = observed, deviations
        self._spread_moments: dict[Operator, Array] = {}
        self.shape: tuple[int, int] = self._rows.size, n_nodes
        self.size = self._rows.size * n_nodes if observed is None else int(np.count_nonzero(observed))
        self.has_missing = observed is not None
        self.is_complete = observed is None or deviations is not None
        self.like: Any = store.source if store.prototype is None else store.prototype

    @property
    def observed(self) -> Mask:
        """Mask of observed values, shape (n_signals, n_nodes)."""
        return np.broadcast_to(np.True_, self.shape) if self._observed is None else self._observed

    @property
    def centred_by(self) -> Center:
        """Kind of centre that is estimated from the signals: the mean of all values, or of each node."""
        return getattr(self._read, "center", self._recentres)

    @cached_property
    def deviations(self) -> Array | None:
        """Factors of the covariance of the imputed values, shape (n_factors, n_signals, n_nodes); None if complete.

        The sum of the factors' outer products is that covariance.
        """
        return self._found_deviations() if callable(self._found_deviations) else self._found_deviations

    @property
    def values(self) -> Array:
        """The signals in memory, shape (n_signals, n_nodes); missing values are NaN."""
        values = self._store.values[self._rows]
        return values - (self._level[:-1] @ self._store.values + self._level[-1]) if np.any(self._level) else values

    @property
    def as_observed(self) -> Array:
        """The observed values in memory, shape (n_signals, n_nodes); NaN elsewhere, also where a value is imputed."""
        return self.values if self._found_deviations is None else np.where(self.observed, self.values, np.nan)

    @property
    def log_volume(self) -> float:
        """Logarithm of the volume scale: subtract it from a log density for the user's units."""
        if self._observed is not None:
            return float(self.units.log_volume(self._observed))
        return -float(np.sum(self.units.log_density(np.zeros(self.shape[0]), self.shape[1])))

    @property
    def units(self) -> Units:
        """Units that return these signals to those of the user."""
        units, level = self._store.units.of(self._rows), float(self._level[-1])
        if np.any(self._level[:-1]):
            offset = units.offset + units.divisor * (level + self._level[:-1] @ self._store.values)
        else:
            offset = units.offset + units.divisor * level if level else units.offset
        return dataclasses.replace(units, offset=offset)

    @property
    def mean_square(self) -> float:
        """Mean of the squared values."""
        if self._store.products is None:
            return float(np.mean(np.square(self.values), where=True if self.is_complete else self.observed))
        return float(np.mean(np.diagonal(self._of_view(self._store.products)))) / self.shape[1]

    @property
    def variance(self) -> float:
        """Variance of the observed values about their mean; zero if it is within rounding error."""
        if self._store.products is None:
            variance = float(np.var(self.values, where=self.observed))
        else:
            # without the level of ones, which changes no variance but may be large enough to drown it
            shifted = Signals(self._store, rows=self._rows, level=np.append(self._level[:-1], 0.0))
            gram, ones = shifted._of_view(self._store.products), self._store.products[-1]
            mean = float((np.mean(ones[self._rows]) - shifted._level @ ones) / ones[-1])
            variance = float(np.trace(gram)) / self.size - mean**2
        return variance if variance > self._store.rounding**2 else 0.0

    @property
    def variance_within(self) -> float:
        """Variance of the observed values about their nodes' means; zero if it is within rounding error."""
        if self._store.products is None:
            values, seen = self.values, self.observed
            means = np.sum(values, axis=0, where=seen) / np.maximum(seen.sum(axis=0), 1)
            variance = float(np.mean(np.square(values - means), where=seen))
        else:
            gram = self._of_view(self._store.products)
            variance = float(np.trace(gram) - gram.sum() / self.shape[0]) / self.size
        return variance if variance > self._store.rounding**2 else 0.0

    def fold(self, kept: Indices, held_out: Indices) -> tuple[Signals, Signals]:
        """Training and held-out signals, both with the centre and the scales of the former."""
        if self._read is not None:
            raw = self.units.restore(self.values)
            chosen = self._read(raw[kept])
            return chosen, self._read(raw[held_out], chosen.units)
        rows, level = self._rows[kept], self._level
        if self._recentres == "node":
            level = np.bincount(rows, minlength=level.size) / rows.size
        elif self._recentres == "global":
            level, products = np.zeros(level.size), self._store.products
            level[-1] = np.mean(self._store.values[rows] if products is None else products[-1, rows] / products[-1, -1])
        return self._view(kept, level), self._view(held_out, level)

    def some(self, rows: Indices) -> Signals:
        """Some of the signals, with the units and the centre of all."""
        return self._view(rows, self._level)

    def without(self, hidden: Mask, rows: Indices) -> Signals:
        """Some of the signals with some values hidden, centred and scaled by the remaining values alone."""
        assert self._read is not None  # all incomplete signals have one
        raw = np.where(hidden, np.nan, self.units.restore(self.as_observed)[rows])
        return self._read(np.asarray(raw, dtype=self.like.dtype))

    def _view(self, chosen: Indices, level: Array) -> Signals:
        observed = None if self.is_complete else self.observed[chosen]  # a completion's view is of its mean
        return Signals(self._store, self._recentres, rows=self._rows[chosen], level=level, observed=observed)

    def completed(self, mean: Array, deviations: Array | Callable[[], Array]) -> Signals:
        """Copy with missing values imputed, by their mean and the factors of their covariance."""
        if not np.max(np.abs(mean), initial=0.0) <= LARGEST:
            raise ValueError(
                "the completion of signals must be finite; got infinity or NaN. The hyperparameters are too "
                "far from the size of the signals to compute with."
            )
        values = np.where(self.observed, self.values, mean)
        store = SignalStore(values, self.units, self._store.rounding)
        return Signals(store, self._recentres, observed=self.observed, deviations=deviations)

    def followed_by(self, other: Signals) -> Signals | None:
        """These signals followed by others; None unless both are views of one store with the same centre."""
        if self._store is not other._store or not np.array_equal(self._level, other._level):
            return None
        rows = np.concatenate([self._rows, other._rows])
        return Signals(self._store, self._recentres, rows=rows, level=self._level)

    def transform(self, matrix: Array) -> Array:
        """Product of the signals with a matrix (n_nodes, n); the last two products of all rows are cached."""
        self._require_complete("transformed")
        store = self._store
        product = next((known for other, known in store.transforms if other is matrix), None)
        if product is None:
            product = np.vstack([times_matrix(store.values, matrix), matrix.sum(axis=0)])
            # a new list: threads may look at the old one
            store.transforms = [*store.transforms[-1:], (matrix, product)]
        return product[self._rows] - self._level @ product if np.any(self._level) else product[self._rows]

    def columns(self, operator: Operator) -> Any:
        """The signals as columns of a block of an operator."""
        self._require_complete("filtered")
        block = self._store.load(operator)
        is_whole = np.array_equal(self._rows, np.arange(self._store.source.shape[0]))
        chosen = block if is_whole else take_columns(block, self._rows)
        if np.any(self._level):
            chosen = chosen - (combine_columns(block, self._level[:-1, None]) + float(self._level[-1]))
        return chosen

    def moments(self, operator: Operator, n_moments: int) -> Array:
        """``C_k`` of equation (24), shape (n_moments, n_signals, n_signals); expected ones of completed signals."""
        self._require_complete("read on a spectrum")
        moments = self._of_view(self._store.moments(operator, n_moments))
        spread = self.spread_moments(operator, n_moments)
        return moments if spread is None else moments + spread

    def spread_moments(self, operator: Operator, n_moments: int) -> Array | None:
        """Moments that `deviations` contribute; None if the values are known."""
        if self.deviations is None:
            return None
        known = self._spread_moments.get(operator)
        if known is None or known.shape[0] < n_moments:
            known = np.zeros((n_moments, self.shape[0], self.shape[0]))
            # those of a single signal are columns of one block: only their squares are needed
            is_single = self.shape[0] == 1
            for deviation in [self.deviations[:, 0]] if is_single and len(self.deviations) else self.deviations:
                moments = MomentPass(operator, operator.load(deviation), gram=not is_single).extend(n_moments)
                known += moments.sum(axis=1)[:, None, None] if is_single else moments
            self._spread_moments[operator] = known
        return known[:n_moments]

    def release(self) -> None:
        """Free the states of recurrences, which only further moments need, and keep the moments."""
        for known in self._store.passes.values():
            known.release()

    def _require_complete(self, verb: str) -> None:
        if not self.is_complete:
            missing = f"{self.shape[0] * self.shape[1] - self.size} missing values"
            raise ValueError(f"signals must be complete to be {verb}; got {missing}. Complete them first.")

    def _of_view(self, products: Array) -> Array:
        """Products of the view's rows from products of the store's rows, along the last two axes."""
        chosen = products[..., self._rows[:, None], self._rows]
        if not np.any(self._level):
            return chosen
        crosses = products @ self._level
        across = crosses[..., self._rows]
        both = crosses @ self._level
        return chosen - across[..., :, None] - across[..., None, :] + both[..., None, None]
