"""Conditioning on data on an exact spectrum: means, variances, covariances, samples, densities."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spectralgp._checks import Array, as_signals
from spectralgp.inputs import NewInputs
from spectralgp.model import GraphGP
from spectralgp.modes import Modes


@dataclass(frozen=True, eq=False)
class Posterior:
    """A prior conditioned on signals. Made by `condition`.

    Parameters
    ----------
    prior : GraphGP
        The model.
    inputs : ndarray of shape (n_signals, n_features)
        Training inputs (``K`` itself if precomputed).
    signals : ndarray of shape (n_signals, n_nodes)
        Training signals.
    input_modes : Modes
        ``K = U diag(kappa) U^T``.
    """

    prior: GraphGP
    inputs: Array
    signals: Array
    input_modes: Modes

    @cached_property
    def rotated(self) -> Array:
        """``Z = U^T Y V``, shape (n_signals, n_nodes)."""
        rotated: Array = self.input_modes.vectors.T @ self.signals @ self.prior.node_modes.vectors
        return rotated

    @cached_property
    def variances(self) -> Array:
        """``D_ij = kappa_i gamma_j + sigma^2``."""
        power = self.prior.node_modes.values
        return np.multiply.outer(self.input_modes.values, power) + self.prior.noise_variance

    def at(self, inputs: Any) -> Prediction:
        """Predictive distribution at new inputs.

        Parameters
        ----------
        inputs : array of shape (n_inputs, n_features)
            With a precomputed kernel: the cross-covariance (n_inputs, n_signals), or the pair of it and the test
            covariance.
        """
        return Prediction(self, self.prior.input_kernel.at(self.inputs, inputs))


@dataclass(frozen=True, eq=False)
class Prediction:
    """Gaussian distribution of signals at new inputs, computed where it is asked for. Made by `Posterior.at`.

    Every second moment is of the noise-free signal unless ``include_noise`` is set.
    """

    posterior: Posterior
    new: NewInputs

    @property
    def _power(self) -> Array:
        return self.posterior.prior.node_modes.values

    @property
    def _vectors(self) -> Array:
        return self.posterior.prior.node_modes.vectors

    @cached_property
    def _weights(self) -> Array:
        """``W = U^T k(X, X*)`` of equation (8), transposed: shape (n_inputs, n_signals)."""
        weights: Array = self.new.cross @ self.posterior.input_modes.vectors
        return weights

    @cached_property
    def _spectral_mean(self) -> Array:
        """Mean in each frequency, equation (8), shape (n_inputs, n_nodes)."""
        ratio = self.posterior.rotated / self.posterior.variances
        mean: Array = self._weights @ ratio * self._power
        return mean

    @cached_property
    def _spectral_variance(self) -> Array:
        """Variance in each frequency, equation (8) with x* = x*', shape (n_inputs, n_nodes)."""
        prior = np.multiply.outer(self.new.variances, self._power)
        explained = self._power**2 * (self._weights**2 @ (1 / self.posterior.variances))
        variance = prior - explained
        if np.any(variance < -1e-8 * np.max(prior, initial=0.0)):
            raise ValueError(
                "X must hold covariances of new inputs that fit their cross-covariance; got a predictive "
                f"variance of {np.min(variance):.3g}. Check that both come from one kernel."
            )
        return np.maximum(variance, 0.0)  # removes rounding

    @cached_property
    def _spectral_covariance(self) -> Array:
        """Covariance between inputs in each frequency, equation (8), shape (n_nodes, n_inputs, n_inputs)."""
        scaled = self._weights[None, :, :] / self.posterior.variances.T[:, None, :]
        explained = self._power[:, None, None] ** 2 * (scaled @ self._weights.T)
        return self._power[:, None, None] * self.new.covariance[None] - explained

    def _noise(self, include: bool) -> float:
        return self.posterior.prior.noise_variance if include else 0.0

    @cached_property
    def mean(self) -> Array:
        """Predictive mean, equation (9), shape (n_inputs, n_nodes)."""
        mean: Array = self._spectral_mean @ self._vectors.T
        return mean

    def variance(self, include_noise: bool = False, nodes: Any = None) -> Array:
        """Predictive variance at every node, or at those given by position: equation (9)."""
        vectors = self._vectors if nodes is None else self._vectors[nodes]
        return self._spectral_variance @ np.square(vectors).T + self._noise(include_noise)

    def std(self, include_noise: bool = False, nodes: Any = None) -> Array:
        """Predictive standard deviation, as `variance`."""
        return np.sqrt(self.variance(include_noise, nodes))

    def node_covariance(self, include_noise: bool = False) -> Array:
        """Covariance over the nodes for each input, equation (9), shape (n_inputs, n_nodes, n_nodes)."""
        spectral = self._spectral_variance + self._noise(include_noise)
        covariance: Array = (self._vectors * spectral[:, None, :]) @ self._vectors.T
        return covariance

    def joint_covariance(self, include_noise: bool = False) -> Array:
        """Covariance over inputs and nodes together, shape (n_inputs, n_nodes, n_inputs, n_nodes).

        ``reshape(n_inputs * n_nodes, -1)`` gives the matrix that belongs to ``mean.ravel()``.
        """
        spectral = self._spectral_covariance + self._noise(include_noise) * np.eye(self._weights.shape[0])
        vectors = self._vectors
        return np.einsum("aj,jmn,bj->manb", vectors, spectral, vectors, optimize=True)

    def sample(self, n_samples: int, random_state: np.random.Generator, include_noise: bool = False) -> Array:
        """Joint draws over all inputs and nodes, shape (n_samples, n_inputs, n_nodes)."""
        values, vectors = np.linalg.eigh(self._spectral_covariance)  # a square root even where it is singular
        roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        n_nodes, n_inputs = roots.shape[:2]
        white = random_state.standard_normal((n_nodes, n_inputs, n_samples))
        spectral = np.moveaxis(roots @ white, (0, 1, 2), (2, 1, 0))
        draws: Array = (self._spectral_mean + spectral) @ self._vectors.T
        if include_noise:
            draws = draws + np.sqrt(self._noise(True)) * random_state.standard_normal(draws.shape)
        return draws

    def log_density(self, signals: ArrayLike, joint: bool = True) -> Any:
        """Log predictive density of observed signals, noise included.

        Parameters
        ----------
        signals : array of shape (n_inputs, n_nodes)
            What was observed at the new inputs.
        joint : bool, default=True
            One total for all inputs together (float), or one number an input taken alone, shape (n_inputs,).
        """
        observed = np.atleast_2d(as_signals(signals, self._vectors.shape[0]))
        if observed.shape != self._spectral_mean.shape:
            raise ValueError(
                f"signals must have one row for each of the {self._spectral_mean.shape[0]} inputs; got "
                f"{observed.shape[0]}. Pass the signals observed at these inputs."
            )
        residuals = observed @ self._vectors - self._spectral_mean
        noise = self._noise(True)
        if not joint:
            variance = self._spectral_variance + noise
            return -0.5 * np.sum(residuals**2 / variance + np.log(2 * np.pi * variance), axis=1)
        # the noise makes every block positive definite, so one batched Cholesky serves all frequencies
        factors = np.linalg.cholesky(self._spectral_covariance + noise * np.eye(residuals.shape[0]))
        whitened = np.linalg.solve(factors, residuals.T[:, :, None])
        log_determinant = 2 * np.sum(np.log(np.diagonal(factors, axis1=1, axis2=2)))
        return float(-0.5 * (np.sum(whitened**2) + log_determinant + residuals.size * np.log(2 * np.pi)))
