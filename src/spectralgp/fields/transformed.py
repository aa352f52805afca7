"""Transformations: a model sees other signals, at other inputs, than the user's, and answers in the user's units."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from spectralgp._basics.arrays import on_host
from spectralgp._basics.checks import Array, Indices, Mask
from spectralgp.fields.field import Predictive, as_observed
from spectralgp.signals import Signals


class Transformation(ABC):
    """An increasing function of every value, which may depend on its node and its input; what a model sees, and back.

    Signals are arrays of shape (..., n_signals, n_nodes) in memory, NaN where nothing was observed, which stays NaN.
    ``inputs`` are what the model sees of the inputs, except in `inputs` itself. Moments are those of each value's law,
    which counts as normal. The signal without noise is what is expected of an observation of it, whose variance is
    `noisy`: so its mean is that of observations.
    """

    is_of_nodes: ClassVar[bool]  # whether it belongs to the nodes of one graph, so that it cannot move to another
    has_slopes: ClassVar[bool]  # whether its densities hang on how values are spread, so that no other compares

    @property
    @abstractmethod
    def described(self) -> str:
        """What the model sees of the signals, in a word or two."""

    @property
    def carried(self) -> float:
        """What inputs carry over to the signals at every frequency, to which the model's own filter is added."""
        return 0.0

    @abstractmethod
    def inputs(self, given: Array) -> Array:
        """What the model sees of the user's inputs."""

    @abstractmethod
    def signals(self, given: Array, inputs: Array) -> Array:
        """What the model sees of the user's signals."""

    @abstractmethod
    def restored(self, seen: Array, inputs: Array) -> Array:
        """The user's signals again: undoes `signals`."""

    @abstractmethod
    def log_slopes(self, seen: Array, inputs: Array) -> Array:
        """Logarithm of the derivative of `signals` at each value, by which densities grow in the user's units."""

    def log_slopes_of(self, signals: Signals, inputs: Array) -> Array:
        """`log_slopes` of signals that were read, zero where nothing was observed."""
        return np.nan_to_num(self.log_slopes(signals.units.restore(signals.as_observed), inputs))

    @abstractmethod
    def mean(self, mean: Any, find_noisy: Callable[[], Any], inputs: Array) -> Any:
        """Mean of the user's values, from the mean and the variance of observations that the model sees."""

    @abstractmethod
    def variance(self, mean: Any, variance: Any, noisy: Any, nodes: Indices | None = None) -> Any:
        """Variance of the user's signals at all nodes, or at those that the moments are given at."""

    @abstractmethod
    def covariance(self, mean: Array, covariance: Array, noisy: Array) -> Array:
        """Covariance of the user's signals, shape (n_signals, n_nodes, n_signals, n_nodes)."""


@dataclass(frozen=True, eq=False)
class Changes(Transformation):
    """``y - c x``: a model sees how far signals are from what their inputs say at the same nodes, equation (19d)."""

    columns: Indices  # of the inputs, one for each node of the graph
    factor: float  # c, the units of the signals over those of the inputs

    is_of_nodes, has_slopes = True, False
    described = "changes"

    @property
    def carried(self) -> float:
        return self.factor

    def inputs(self, given: Array) -> Array:
        return given

    def signals(self, given: Array, inputs: Array) -> Array:
        return given - self._before(inputs)

    def restored(self, seen: Array, inputs: Array) -> Array:
        return seen + self._before(inputs)

    def log_slopes(self, seen: Array, inputs: Array) -> Array:
        return 0.0 * seen

    def mean(self, mean: Any, find_noisy: Callable[[], Any], inputs: Array) -> Any:
        return mean + self._before(inputs)

    def variance(self, mean: Any, variance: Any, noisy: Any, nodes: Indices | None = None) -> Any:
        return variance

    def covariance(self, mean: Array, covariance: Array, noisy: Array) -> Array:
        return covariance

    def _before(self, inputs: Array) -> Array:
        return self.factor * np.asarray(inputs)[:, self.columns]


@dataclass(frozen=True, eq=False)
class TransformedField(Predictive):
    """What is predicted of signals that a model saw transformed, in the user's units."""

    field: Predictive  # as the model sees the signals
    transformation: Transformation
    inputs: Array  # as the model sees them, one row per signal that is predicted
    known: Mask  # what was observed of these signals, shape (n_signals, n_nodes)

    @cached_property
    def mean(self) -> Any:
        return self.transformation.mean(self.field.mean, lambda: self._noisy, self.inputs)

    @cached_property
    def _noisy(self) -> Any:
        """Variance of observations as the model sees them."""
        return self.field.variance(include_noise=True)

    @cached_property
    def values(self) -> Array:
        seen = self.field.values
        predicted = self.transformation.mean(seen, self.field.values_variance, self.inputs)
        return np.where(self.known, self.transformation.restored(seen, self.inputs), predicted)

    def values_variance(self) -> Array:
        variance = self.field.values_variance()
        return np.asarray(self.transformation.variance(self.field.values, variance, variance))

    def variance(self, include_noise: bool = False, nodes: Indices | None = None) -> Any:
        mean, noisy = self.field.mean, self._noisy
        if nodes is not None:
            mean, noisy = mean[:, nodes], noisy[:, nodes]
        variance = noisy if include_noise else self.field.variance(nodes=nodes)
        return self.transformation.variance(mean, variance, noisy, nodes)

    @property
    def variance_error(self) -> Array:
        """That of what the model sees: zero, since nothing is transformed on large graphs."""
        return self.field.variance_error

    def node_covariance(self, include_noise: bool = False) -> Array:
        triples = zip(self.field.mean, self.field.node_covariance(include_noise), self._noisy, strict=True)
        transform = self.transformation.covariance
        return np.stack(
            [transform(mean[None], own[None, :, None], noisy[None])[0, :, 0] for mean, own, noisy in triples]
        )

    def joint_covariance(self, include_noise: bool = False) -> Array:
        return self.transformation.covariance(self.field.mean, self.field.joint_covariance(include_noise), self._noisy)

    def sample(self, n_samples: int, random_state: np.random.Generator, include_noise: bool = False) -> Any:
        drawn = self.field.sample(n_samples, random_state, include_noise)
        noise = np.zeros(self.known.shape) if include_noise else np.maximum(self._noisy - self.field.variance(), 0.0)
        return self.transformation.mean(drawn, lambda: noise, self.inputs)

    def log_density(self, signals: Any, joint: bool = True) -> Any:
        seen = self._seen(signals, "signals")
        slopes = self.transformation.log_slopes(seen, self.inputs)
        further = np.sum(slopes, axis=1, where=np.isfinite(seen) & ~self.known)
        log_density = self.field.log_density(seen, joint)
        return float(log_density + np.sum(further)) if joint else log_density + further

    def value_log_densities(self, signals: Array, nodes: Indices) -> Array:
        whole = np.full(self.known.shape, np.nan)
        whole[:, nodes] = signals
        seen = self.transformation.signals(whole, self.inputs)
        slopes = self.transformation.log_slopes(seen, self.inputs)
        return self.field.value_log_densities(seen[:, nodes], nodes) + slopes[:, nodes]

    def given(self, observed: Any) -> TransformedField:
        seen = self._seen(observed, "observed")
        return replace(self, field=self.field.given(seen), known=self.known | np.isfinite(seen))

    def _seen(self, signals: Any, name: str) -> Array:
        """What the model sees of signals that a user gives, checked."""
        n_signals, n_nodes = self.known.shape
        checked: Array = np.asarray(on_host(as_observed(signals, n_signals, n_nodes, name)), dtype=float)
        return self.transformation.signals(checked, self.inputs)
