"""Mixtures of fitted models: weights from held-out densities, and prediction with all of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy.special import logsumexp

from spectralgp._arrays import non_negative_root, on_host, take
from spectralgp._checks import Array
from spectralgp.posterior import Filled, Posterior, Prediction

NEGLIGIBLE = 1e-6  # weight


def stacking_weights(
    log_densities: Array,
    value_log_densities: Array | None = None,
    n_iterations: int = 10_000,
    tolerance: float = 1e-10,
    negligible: float = NEGLIGIBLE,
    value_weight: float = 1.0,
) -> Array:
    """Weights of a mixture that maximise the held-out log score ``sum_n log sum_k w_k p_nk``.

    With densities of single values the score is the sum of both: a signal's density rewards what a model knows of the
    covariance of the nodes, those of its values reward what it knows of each, its mean above all.

    Weights below `negligible` are set to zero, so that their models need not be evaluated. The score is concave in the
    weights; expectation maximisation climbs it without a step size and keeps them on the simplex.

    Parameters
    ----------
    log_densities : ndarray of shape (n_signals, n_models)
        Held-out log density of each signal under each model.
    value_log_densities : ndarray of shape (n_signals, n_nodes, n_models), optional
        The same of each value.
    n_iterations : int, default=10000
        Most iterations.
    tolerance : float, default=1e-10
        Largest change of a weight at which to stop.
    negligible : float, default=1e-6
        Weight that counts as none.
    value_weight : float, default=1.0
        Weight of the densities of values in the score.

    Examples
    --------
    >>> import numpy as np
    >>> stacking_weights(np.log([[0.9, 0.1], [0.8, 0.2]])).round(3).tolist()
    [1.0, 0.0]
    """
    counts = np.ones(len(log_densities))
    if value_log_densities is not None:
        values = value_log_densities.reshape(-1, log_densities.shape[1])
        log_densities = np.vstack([log_densities, values])
        counts = np.concatenate([counts, np.full(len(values), value_weight)])
    counts /= counts.sum()
    scaled = np.exp(log_densities - log_densities.max(axis=1, keepdims=True))
    weights = np.full(log_densities.shape[1], 1 / log_densities.shape[1])
    for _ in range(n_iterations):
        shares = weights * scaled
        updated = counts @ (shares / shares.sum(axis=1, keepdims=True))
        change = np.max(np.abs(updated - weights))
        weights = updated
        if change < tolerance:
            break
    kept = np.where(weights >= min(negligible, float(np.max(weights))), weights, 0.0)
    return kept / kept.sum()


@dataclass(frozen=True, eq=False)
class Mixture:
    """Posteriors of several models with weights; it answers as a `Posterior` does."""

    weights: Array
    posteriors: tuple[Posterior, ...]

    def at(self, inputs: Any) -> MixturePrediction:
        """Predictive distribution at new inputs."""
        return MixturePrediction(self.weights, tuple(posterior.at(inputs) for posterior in self.posteriors))

    def at_observed(self, inputs: Any, observed: Array) -> MixturePrediction:
        """The same given what was observed of the signals there; the weights stay as they are."""
        parts = tuple(posterior.at_observed(inputs, observed) for posterior in self.posteriors)
        return MixturePrediction(self.weights, parts)

    @property
    def parts(self) -> tuple[tuple[float, Posterior], ...]:
        """Posteriors and their weights."""
        return tuple(zip(self.weights.tolist(), self.posteriors, strict=True))


@dataclass(frozen=True, eq=False)
class MixturePrediction:
    """Mixture of Gaussian predictions; it answers as a `Prediction` does.

    Means and covariances are those of the mixture, densities and samples are exact. Models of weight zero are not
    evaluated.
    """

    weights: Array
    predictions: tuple[Prediction | Filled, ...]

    @property
    def _parts(self) -> list[tuple[float, Prediction | Filled]]:
        return [(float(w), part) for w, part in zip(self.weights, self.predictions, strict=True) if w > 0]

    @cached_property
    def mean(self) -> Array:
        """Predictive mean, shape (n_inputs, n_nodes)."""
        total: Any = 0.0
        for weight, part in self._parts:
            total = total + weight * part.mean
        return total

    def variance(self, include_noise: bool = False, nodes: Any = None) -> Array:
        """Predictive variance: the mean of the variances plus the variance of the means."""
        total: Any = 0.0
        for weight, part in self._parts:
            apart = part.mean - self.mean
            apart = apart if nodes is None else on_host(take(apart, nodes, axis=1))
            total = total + weight * (part.variance(include_noise, nodes) + apart**2)
        return total

    @property
    def variance_error(self) -> Array:
        """Root mean square standard error of `variance` at all nodes, one number an input; zero where it is exact.

        The members' errors are added up: their random probes are the same.
        """
        return np.sum([weight * part.variance_error for weight, part in self._parts], axis=0)

    def std(self, include_noise: bool = False, nodes: Any = None) -> Array:
        """Predictive standard deviation, as `variance`."""
        return non_negative_root(self.variance(include_noise, nodes))

    def node_covariance(self, include_noise: bool = False) -> Array:
        """Covariance over the nodes for each input, shape (n_inputs, n_nodes, n_nodes)."""
        total = np.zeros((*self.mean.shape, self.mean.shape[1]))
        for weight, part in self._parts:
            apart = part.mean - self.mean
            total += weight * (part.node_covariance(include_noise) + apart[:, :, None] * apart[:, None, :])
        return total

    def joint_covariance(self, include_noise: bool = False) -> Array:
        """Covariance over inputs and nodes together, shape (n_inputs, n_nodes, n_inputs, n_nodes)."""
        total = np.zeros(self.mean.shape * 2)
        for weight, part in self._parts:
            apart = part.mean - self.mean
            total += weight * (part.joint_covariance(include_noise) + np.multiply.outer(apart, apart))
        return total

    def sample(self, n_samples: int, random_state: np.random.Generator, include_noise: bool = False) -> Array:
        """Joint draws over inputs and nodes, each from one model, shape (n_samples, n_inputs, n_nodes)."""
        counts = random_state.multinomial(n_samples, self.weights)
        draws = [
            part.sample(int(count), random_state, include_noise)
            for count, part in zip(counts, self.predictions, strict=True)
            if count
        ]
        return take(array_namespace(*draws).concat(draws), random_state.permutation(n_samples), axis=0)

    def log_density(self, signals: Any, joint: bool = True) -> Any:
        """Log predictive density of observed signals, as `Prediction.log_density`."""
        parts = [np.log(weight) + part.log_density(signals, joint) for weight, part in self._parts]
        total = logsumexp(parts, axis=0)
        return float(total) if joint else total
