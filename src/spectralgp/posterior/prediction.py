"""Predictions: means, variances, covariances, samples and densities at new inputs, on any spectrum."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj, is_numpy_array
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.stats import norm

from spectralgp._arrays import non_negative_root, on_host, take
from spectralgp._checks import Array, as_integer, as_signals
from spectralgp.inputs import NewInputs
from spectralgp.masked import MaskedCovariance, covariance_on
from spectralgp.posterior.base import Conditioned
from spectralgp.signals import Signals
from spectralgp.spectrum import FilterBank, SpectralData, Spectrum
from spectralgp.units import Units

CONTRADICTION = 1e-8  # of the prior variance: a predictive one below zero by more than this is no rounding
NO_COVARIANCE = (
    "return_cov must be False on a large graph, whose covariance over the nodes would have {n_nodes}^2 entries; got "
    "True. Ask for std at chosen nodes, or draw samples."
)


@dataclass(frozen=True, eq=False)
class Prediction:
    """Gaussian distribution of signals at new inputs, computed where it is asked for. Made by `Posterior.at`.

    Everything is in the units that the training signals came in. Second moments are of the noise-free signal unless
    ``include_noise`` is set.
    """

    posterior: Conditioned
    new: NewInputs
    carried: Any = 0.0
    features: Any = None

    @property
    def _basis(self) -> Spectrum:
        return self.posterior.basis

    @property
    def _noise(self) -> float:
        return self.posterior.prior.noise_variance

    @property
    def _units(self) -> Units:
        return self.posterior.signals.units

    def _power(self, eigenvalues: Array) -> Array:
        return self.posterior.prior.graph_kernel.power(eigenvalues)

    # ---------------------------------------------------------------------------- in each frequency, equation (8)

    @cached_property
    def _weights(self) -> Array:
        """``W^T = k(X*, X) U``, shape (n_inputs, n_signals)."""
        weights: Array = self.new.cross @ self.posterior.input_modes.vectors
        return weights

    @property
    def _bank(self) -> FilterBank:
        """Filters that turn the training signals into means: ``gamma W^T / D``."""
        return FilterBank(self.posterior.precisions, self._weights, lambda eigenvalues: self._power(eigenvalues)[None])

    def _residual_power(self, eigenvalues: Array) -> Array:
        return self.posterior.prior.graph_kernel.residual_power(eigenvalues)

    def _variances(self, eigenvalues: Array) -> Array:
        """Variance at eigenvalues, that of the residual included, shape (n_inputs, n_eigenvalues)."""
        power = self._power(eigenvalues)
        prior = np.multiply.outer(self.new.variances, power)
        variances = prior - power**2 * (self._weights**2 @ self.posterior.precisions(eigenvalues))
        _refuse_contradiction(float(np.min(variances, initial=0.0)), float(np.max(prior, initial=0.0)))
        return np.maximum(variances, 0.0) + self._residual_power(eigenvalues)  # the maximum removes rounding

    @cached_property
    def _covariances(self) -> Array:
        """Covariance between inputs at the frequencies of the basis, shape (n_frequencies, n_inputs, n_inputs)."""
        eigenvalues = self._basis.eigenvalues
        power = self._power(eigenvalues)[:, None, None]
        scaled = self._weights[None] * self.posterior.precisions(eigenvalues).T[:, None, :]
        residual = self._residual_power(eigenvalues)[:, None, None] * np.eye(self._weights.shape[0])
        return power * self.new.covariance - power**2 * (scaled @ self._weights.T) + residual

    # ------------------------------------------------------------------------------- at the nodes, equation (9)

    @cached_property
    def _mean_block(self) -> Any:
        return self._basis.filtered(self.posterior.block, self._bank) + self.carried

    @cached_property
    def mean(self) -> Any:
        """Predictive mean, shape (n_inputs, n_nodes), of the kind of the training signals."""
        return self._units.mean(self._basis.unload(self._mean_block))

    @cached_property
    def open_means(self) -> list[Any]:
        """What the mean may deviate by, for what was not observed of the training signals: equation (20)."""
        basis, vectors, deviations = self._basis, self.posterior.input_modes.vectors, self.posterior.signals.deviations
        if deviations is None:
            return []
        # all at once where blocks may be stacked, else one by one
        sets = [deviations] if basis.has_eigenvectors else deviations
        moved = (basis.filtered(basis.combined(basis.load(one), vectors.T), self._bank) for one in sets)
        means = [basis.unload(block) * self._units.divisor for block in moved]
        return list(means[0]) if basis.has_eigenvectors else means

    def _left_open(self, nodes: NDArray[np.intp] | None = None) -> Any:
        """Variance of the mean for what was not observed, at all nodes or at some."""
        total: Any = 0.0
        for moved in self.open_means:
            total = total + (moved if nodes is None else on_host(take(moved, nodes, axis=1))) ** 2
        return total

    def variance(self, include_noise: bool = False, nodes: NDArray[np.intp] | None = None) -> Any:
        """Predictive variance at every node, or at those given by position.

        On a quadrature it is exact at given nodes, and by random probes at all of them.
        """
        noise = self._noise if include_noise else 0.0
        if nodes is None:
            return (self._diagonals[0] + noise) * self._units.divisor**2 + self._left_open()
        diagonals = np.maximum(self._basis.diagonals(self._variances, nodes)[0], 0.0)
        return self._units.std(self._units.std(diagonals + noise, nodes), nodes) + self._left_open(nodes)

    @cached_property
    def _diagonals(self) -> tuple[Any, Array]:
        return self._basis.diagonals(self._variances)

    @property
    def variance_error(self) -> Array:
        """Root mean square standard error of `variance` at all nodes, one number an input; zero where it is exact."""
        scales = np.asarray(on_host(self._units.divisor))
        return self._diagonals[1] * np.sqrt(np.mean(scales**4))

    def std(self, include_noise: bool = False, nodes: NDArray[np.intp] | None = None) -> Any:
        """Predictive standard deviation, as `variance`; a variance that probes make negative counts as zero."""
        return non_negative_root(self.variance(include_noise, nodes))

    def node_covariance(self, include_noise: bool = False) -> Array:
        """Covariance over the nodes for each input, shape (n_inputs, n_nodes, n_nodes)."""
        return np.stack([self._covariance_of(one, include_noise) for one in range(self._weights.shape[0])])

    @cached_property
    def _vectors(self) -> Array:
        """Eigenvectors, each node in its own units."""
        vectors = self._basis.require_eigenvectors(NO_COVARIANCE.format(n_nodes=self._basis.n_nodes))
        return np.broadcast_to(self._units.divisor, vectors.shape[:1])[:, None] * vectors

    @cached_property
    def _frequency_variances(self) -> Array:
        return self._variances(self._basis.eigenvalues)

    def _covariance_of(self, number: int, include_noise: bool) -> Array:
        """Covariance over the nodes for one of the inputs."""
        vectors = self._vectors
        variances = self._frequency_variances[number] + (self._noise if include_noise else 0.0)
        return (vectors * variances) @ vectors.T + self._open_covariance(number)

    def _open_covariance(self, number: int) -> Array | float:
        if not self.open_means:
            return 0.0
        own = np.stack([moved[number] for moved in self.open_means])
        return own.T @ own

    def joint_covariance(self, include_noise: bool = False) -> Array:
        """Covariance over inputs and nodes together, shape (n_inputs, n_nodes, n_inputs, n_nodes).

        ``reshape(n_inputs * n_nodes, -1)`` gives the matrix that belongs to ``mean.ravel()``.
        """
        vectors, noise = self._vectors, (self._noise if include_noise else 0.0) * np.eye(self._weights.shape[0])
        self._variances(self._basis.eigenvalues)  # raises where covariances contradict each other
        known = np.einsum("aj,jmn,bj->manb", vectors, self._covariances + noise, vectors, optimize=True)
        return known + self._open_joint()

    def _open_joint(self) -> Array | float:
        if not self.open_means:
            return 0.0
        moved = np.stack(self.open_means)
        return np.einsum("sma,snb->manb", moved, moved, optimize=True)

    def sample(self, n_samples: int, random_state: np.random.Generator, include_noise: bool = False) -> Any:
        """Joint draws over all inputs and nodes, shape (n_samples, n_inputs, n_nodes).

        A draw from the prior at training and new inputs is corrected by the mean given what it misses at the training
        inputs (Matheron's rule).
        """
        posterior, basis, modes = self.posterior, self._basis, self.posterior.input_modes
        self._variances(basis.eigenvalues)  # raises where covariances contradict each other
        n_signals, noise = modes.values.size, float(np.sqrt(self._noise))
        # training inputs in their own eigenbasis, where the noise stays white and the training signals are
        within = np.block([[np.diag(modes.values), self._weights.T], [self._weights, self.new.covariance]])
        values, vectors = np.linalg.eigh(within)
        root = FilterBank(
            lambda eigenvalues: posterior.prior.graph_kernel.response(eigenvalues)[None],
            # the symmetric root: unlike eigenvectors, whose signs are anyone's, it changes little where models do
            (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T,
        )
        everything = np.eye(within.shape[0])
        own = posterior.prior.residual_bank(within.shape[0])
        draws = []
        for _ in range(as_integer(n_samples, "n_samples", 1)):
            prior = basis.filtered(basis.white(within.shape[0], random_state), root)
            if posterior.prior.graph_kernel.residual is not None:
                prior = prior + basis.filtered(basis.white(within.shape[0], random_state), own)
            missed = basis.combined(posterior.block, everything[:n_signals, :n_signals])
            if posterior.completion is not None:  # one completion a draw
                drawn = posterior.completion.masked.draws(1, random_state)[0][0]
                missed = missed + basis.combined(basis.load(drawn), modes.vectors.T)
            missed = missed - basis.combined(prior, everything[:n_signals])
            missed = missed - basis.white(n_signals, random_state) * noise
            draw = basis.combined(prior, everything[n_signals:]) + basis.filtered(missed, self._bank) + self.carried
            if include_noise:
                draw = draw + basis.white(within.shape[0] - n_signals, random_state) * noise
            draws.append(self._units.mean(basis.unload(draw)))
        return basis.stack(draws)

    # ------------------------------------------------------------------------------------------------ densities

    def log_density(self, signals: Any, joint: bool = True) -> Any:
        """Log predictive density of observed signals, noise included.

        Parameters
        ----------
        signals : array of shape (n_inputs, n_nodes)
            What was observed at the new inputs, in the units of the training signals; NaN where nothing was.
        joint : bool, default=True
            One total for all inputs together (float), or one number an input taken alone, shape (n_inputs,).
        """
        observed = _as_observed(signals, self._weights.shape[0], self._basis.n_nodes)
        if self._has_holes(observed):
            return self._log_density_of_observed(np.asarray(on_host(observed), dtype=float), joint)
        block = self._basis.load(self._units.apply(observed))
        return self._log_density(self._basis.read_block(block - self._mean_block), joint)

    def value_log_densities(self, signals: Array, nodes: NDArray[np.intp]) -> Array:
        """Log density of each observed value alone at some nodes, noise included, shape (n_inputs, n_some_nodes)."""
        return np.asarray(norm.logpdf(signals, self.mean[:, nodes], self.std(include_noise=True, nodes=nodes)))

    def log_density_of(self, signals: Signals, joint: bool = False) -> Any:
        """The same of signals that are views of the same ones as the training signals, with the same centre."""
        if signals.observed is not None or self.posterior.completion is not None:
            return self.log_density(signals.units.mean(signals.values), joint)
        if self.posterior.carried is not None:
            block = self._basis.load(signals.values)
            return self._log_density(self._basis.read_block(block - self._mean_block), joint)
        vectors = self.posterior.input_modes.vectors
        data = self._basis.read_residual(signals, self.posterior.signals, vectors, self._bank)
        return self._log_density(data, joint)

    def _has_holes(self, observed: Any) -> bool:
        """Whether covariances are not diagonal in the frequencies, for holes in these signals or in the training's.

        On a quadrature what holes in training signals leave open is not part of densities.
        """
        xp = array_namespace(observed)
        if bool(xp.any(xp.isnan(observed))):
            return True
        return self.posterior.completion is not None and self._basis.has_eigenvectors

    def _log_density_of_observed(self, observed: Array, joint: bool) -> Any:
        """Log densities of what was observed alone."""
        if joint:
            together = self.posterior.observing(self.new, self.features, observed).log_evidence()
            volume = float(self._units.log_volume(np.isfinite(observed)))
            return together - self.posterior.log_evidence() - volume
        errors, seen = observed - np.asarray(on_host(self.mean)), np.isfinite(observed)
        return np.array([self._log_density_at(number, errors[number], seen[number]) for number in range(len(errors))])

    def _log_density_at(self, number: int, errors: Array, seen: NDArray[np.bool_]) -> float:
        """Log density of what was observed of one signal."""
        if not seen.any():
            return 0.0
        if not self._basis.has_eigenvectors:
            complete = covariance_on(
                self._basis,
                np.eye(1),
                lambda eigenvalues: self._variances(eigenvalues)[[number]] + self._noise,
                self._noise,
            )
            scaled = np.where(seen, errors / np.asarray(on_host(self._units.divisor)), 0.0)[None]
            value, *_ = MaskedCovariance(complete, seen[None]).log_density(scaled, np.random.default_rng(0))
            return value - float(self._units.log_volume(seen))
        return self._density(errors[seen], self._covariance_of(number, include_noise=True)[np.ix_(seen, seen)])

    def _density(self, errors: Array, covariance: Array) -> float:
        """Log density of errors with a covariance."""
        factor = cholesky(covariance, lower=True)
        whitened = solve_triangular(factor, errors, lower=True)
        logs = 2 * float(np.sum(np.log(np.diag(factor)))) + errors.size * np.log(2 * np.pi)
        return -0.5 * (float(whitened @ whitened) + logs)

    def _log_density(self, residuals: SpectralData, joint: bool) -> Any:
        units, n_nodes = self._units, self._basis.n_nodes
        if not joint:
            variances = self._variances(self._basis.eigenvalues) + self._noise
            logs = np.log(2 * np.pi * variances) @ residuals.multiplicities
            single = -0.5 * (logs + np.sum(residuals.energies / variances, axis=1))
            return units.log_density(single, n_nodes)
        # the noise makes every block positive definite, so one batched Cholesky serves all frequencies
        covariances = self._covariances + self._noise * np.eye(self._weights.shape[0])
        try:
            factors = np.asarray(np.linalg.cholesky(covariances), dtype=np.float64)
        except np.linalg.LinAlgError:
            _refuse_contradiction(float(np.min(np.linalg.eigvalsh(covariances))), float(np.max(covariances)))
            raise
        logs = 2 * np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1) @ residuals.multiplicities
        constant = residuals.n_observations * np.log(2 * np.pi)
        return units.log_density(
            float(-0.5 * (residuals.quadratic(factors) + logs + constant)), residuals.n_observations
        )


def _as_observed(signals: Any, n_inputs: int, n_nodes: int) -> Any:
    """Finite signals, one for each input, of the library they came from."""
    if not is_array_api_obj(signals) or is_numpy_array(signals):
        signals = np.atleast_2d(as_signals(signals, n_nodes, allow_nan=True))
    if signals.shape != (n_inputs, n_nodes):
        raise ValueError(
            f"signals must have one row for each of the {n_inputs} inputs and one column for each of the {n_nodes} "
            f"nodes; got shape {signals.shape}. Pass the signals observed at these inputs."
        )
    if bool(array_namespace(signals).any(array_namespace(signals).isinf(signals))):
        raise ValueError("signals must not be infinite; got infinity. NaN stands for what was not observed.")
    return signals


def _refuse_contradiction(smallest: float, largest: float) -> None:
    """Refuse variances below zero, which covariances of new inputs bring that do not belong to the cross-covariance."""
    if smallest < -CONTRADICTION * largest:
        raise ValueError(
            "X must hold covariances of new inputs that fit their cross-covariance; got a predictive "
            f"variance of {smallest:.3g}. Check that both come from one kernel."
        )
