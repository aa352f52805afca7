"""Prediction on large graphs: every moment is a Chebyshev filter of the signals or of probes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.polynomial.chebyshev import chebvander
from numpy.typing import ArrayLike, NDArray

from spectralgp._arrays import non_negative_root
from spectralgp._checks import Array
from spectralgp._operators import Operator
from spectralgp.graph_kernels.base import SpectralKernel
from spectralgp.inputs import NewInputs
from spectralgp.model import GraphGP
from spectralgp.modes import Modes
from spectralgp.spectrum import (
    ChebyshevSpectrum,
    LargeSignals,
    chebyshev_coefficients,
    filter_columns,
)
from spectralgp.spectrum.passes import MomentPass, quadrature_weights

SERIES_TOLERANCE = 1e-10  # of the last coefficients of a filter's series, relative to its largest
MOST_TERMS = 2**14
BLOCK = 32  # columns handled at a time


@dataclass(frozen=True, eq=False)
class ChebyshevPosterior:
    """A prior on a quadrature spectrum conditioned on signals. Made by `condition`.

    Parameters
    ----------
    prior : GraphGP
        The model, in the units of the signals.
    inputs : ndarray of shape (n_signals, n_features)
        Training inputs (``K`` itself if precomputed).
    signals : LargeSignals
        Training signals.
    input_modes : Modes
        ``K = U diag(kappa) U^T``.
    """

    prior: GraphGP
    inputs: Array
    signals: LargeSignals
    input_modes: Modes

    @property
    def spectrum(self) -> ChebyshevSpectrum:
        """The quadrature spectrum."""
        return cast(ChebyshevSpectrum, self.prior.spectrum)

    @property
    def operator(self) -> Operator:
        """The Laplacian."""
        return self.signals.operator(self.spectrum.laplacian)

    def power(self, eigenvalues: Array) -> Array:
        """``gamma`` at eigenvalues."""
        return cast(SpectralKernel, self.prior.graph_kernel).power(eigenvalues)

    def variances(self, power: Array) -> Array:
        """``D_i = kappa_i gamma + sigma^2`` for each input mode, shape (n_signals, n_eigenvalues)."""
        return np.multiply.outer(self.input_modes.values, power) + self.prior.noise_variance

    def series(self, function: Callable[[Array], Array]) -> Array:
        """Chebyshev coefficients of a function of the power, along its last axis, as many as it takes."""
        return self._series(lambda eigenvalues: function(self.power(eigenvalues)))

    def response_series(self) -> Array:
        """Those of the filter itself, which is smooth where the root of the power has a kink, at a zero."""
        return self._series(cast(SpectralKernel, self.prior.graph_kernel).response)

    def _series(self, function: Callable[[Array], Array]) -> Array:
        n_terms = 64
        while True:
            coefficients = chebyshev_coefficients(function(self.spectrum.points(n_terms)))
            sizes = np.max(np.abs(coefficients.reshape(-1, n_terms)), axis=0)
            significant = np.flatnonzero(sizes > SERIES_TOLERANCE * max(np.max(sizes), 1e-300))
            if n_terms >= MOST_TERMS or significant.size == 0 or significant[-1] < 0.9 * n_terms:
                return coefficients[..., : (significant[-1] if significant.size else 0) + 1]
            n_terms *= 2

    def at(self, inputs: Any) -> ChebyshevPrediction:
        """Predictive distribution at new inputs, as `Posterior.at`."""
        return ChebyshevPrediction(self, self.prior.input_kernel.at(self.inputs, inputs))

    def diagonals(self, coefficients: Array) -> tuple[Any, Array]:
        """Diagonals of several functions of the Laplacian at every node, by probes with random signs.

        The best quadratic on the spectrum is taken out of each function first: its diagonal is known exactly, and
        what is left has several times less to give the probes to average away.

        Parameters
        ----------
        coefficients : ndarray of shape (n_functions, n_terms)
            Chebyshev coefficients of each function.

        Returns
        -------
        diagonals : array of shape (n_functions, n_nodes)
            Of the signals' library.
        errors : ndarray of shape (n_functions,)
            Root mean square standard error over the nodes, from the difference between two halves of the probes.
        """
        operator, settings = self.operator, self.signals.settings
        quadratics = self._quadratics(coefficients)
        left = coefficients.copy()
        left[:, : quadratics.shape[1]] -= quadratics
        n_probes = 2 * BLOCK if settings.n_probes == "exact" else int(settings.n_probes)
        random_state = np.random.default_rng(settings.random_state + 1)
        halves = [self._probed(left, operator.random_signs(n_probes // 2, random_state)) for _ in range(2)]
        difference = halves[0] - halves[1]
        errors = 0.5 * np.sqrt(operator.column_products(difference, difference) / operator.n_nodes)
        known = operator.combine(operator.low_diagonals(), np.pad(quadratics, ((0, 0), (0, 3 - quadratics.shape[1]))).T)
        return operator.unload((halves[0] + halves[1]) * 0.5 + known), errors

    def _quadratics(self, coefficients: Array) -> Array:
        """Chebyshev coefficients of the quadratics closest to functions in the mean over the spectrum."""
        x = 2 * self.spectrum.eigenvalues / self.spectrum.end - 1
        roots = np.sqrt(np.maximum(self.spectrum.multiplicities, 0.0))[:, None]
        design = chebvander(x, min(2, coefficients.shape[1] - 1))
        values = chebvander(x, coefficients.shape[1] - 1) @ coefficients.T
        return np.asarray(np.linalg.lstsq(roots * design, roots * values, rcond=None)[0].T, dtype=np.float64)

    def _probed(self, coefficients: Array, probes: Any) -> Any:
        """Mean over the probes of ``z * f(L) z`` for several functions, as a block with a column for each."""
        operator, width = self.operator, probes.shape[1]
        total = operator.zeros(coefficients.shape[0])
        current, previous = operator.combine(probes, np.eye(width)), None
        for term in range(coefficients.shape[1]):
            total += operator.combine(operator.row_products(probes, current), coefficients[None, :, term] / width)
            if previous is None:
                following = operator.step(operator.combine(current, 0.5 * np.eye(width)), operator.zeros(width))
            else:
                following = operator.step(current, previous)
            previous, current = current, following
        return total

    def diagonals_at(self, coefficients: Array, nodes: Array) -> Array:
        """The same diagonals at some nodes without error, shape (n_functions, n_chosen)."""
        operator, n_nodes = self.operator, self.spectrum.n_nodes
        values = []
        for start in range(0, len(nodes), BLOCK):
            chosen = nodes[start : start + BLOCK]
            units = np.zeros((len(chosen), n_nodes))
            units[np.arange(len(chosen)), chosen] = 1.0
            moments = MomentPass(operator, operator.load(units), gram=False)
            moments.extend(coefficients.shape[1])
            values.append(coefficients @ moments.moments[: coefficients.shape[1]])
        return np.concatenate(values, axis=1)


@dataclass(frozen=True, eq=False)
class ChebyshevPrediction:
    """Gaussian distribution of signals at new inputs on a large graph. Made by `ChebyshevPosterior.at`."""

    posterior: ChebyshevPosterior
    new: NewInputs

    @cached_property
    def _weights(self) -> Array:
        """``U^T k(X, X*)``, shape (n_signals, n_inputs)."""
        return self.posterior.input_modes.vectors.T @ self.new.cross.T

    def _mean_filters(self) -> Array:
        """``G_k`` with which `filter_columns` turns training signals into means: equation (8)."""
        posterior = self.posterior
        coefficients = posterior.series(lambda power: power / posterior.variances(power))
        return np.einsum("ai,ik,in->kan", posterior.input_modes.vectors, coefficients, self._weights, optimize=True)

    def _mean_block(self) -> Any:
        posterior = self.posterior
        columns = posterior.signals.columns(posterior.spectrum.laplacian)
        return filter_columns(posterior.operator, columns, self._mean_filters(), posterior.signals.progress)

    @cached_property
    def mean(self) -> Any:
        """Predictive mean, shape (n_inputs, n_nodes), by one pass of the recurrence for all inputs."""
        return self.posterior.operator.unload(self._mean_block())

    def _spectral_covariance(self, power: Array) -> Array:
        """Covariance between inputs at each power, equation (8), shape (n_eigenvalues, n_inputs, n_inputs)."""
        scaled = self._weights.T[None] / self.posterior.variances(power).T[:, None, :]
        return power[:, None, None] * self.new.covariance - power[:, None, None] ** 2 * (scaled @ self._weights)

    def _spectral_variance(self, power: Array) -> Array:
        """Its diagonal, shape (n_inputs, n_eigenvalues)."""
        prior = np.multiply.outer(self.new.variances, power)
        return prior - power**2 * (self._weights.T**2 @ (1 / self.posterior.variances(power)))

    def variance(self, include_noise: bool = False, nodes: Any = None) -> Any:
        """Predictive variance: exact at the given nodes, or by random probes at all of them.

        Parameters
        ----------
        include_noise : bool, default=False
            Of a noisy observation rather than of the noise-free signal.
        nodes : array of int, optional
            Positions of nodes, for exact values of shape (n_inputs, n_chosen); all nodes, by probes, if not given.
        """
        noise = self.posterior.prior.noise_variance if include_noise else 0.0
        if nodes is not None:
            coefficients = self.posterior.series(self._spectral_variance)
            return np.maximum(self.posterior.diagonals_at(coefficients, np.asarray(nodes)), 0.0) + noise
        return self._variance_and_error[0] + noise

    @cached_property
    def _variance_and_error(self) -> tuple[Any, Array]:
        return self.posterior.diagonals(self.posterior.series(self._spectral_variance))

    @property
    def variance_error(self) -> Array:
        """Root mean square standard error of `variance` at all nodes, one number an input."""
        return self._variance_and_error[1]

    def std(self, include_noise: bool = False, nodes: Any = None) -> Any:
        """Predictive standard deviation, as `variance`; a variance that probes make negative counts as zero."""
        return non_negative_root(self.variance(include_noise, nodes))

    def node_covariance(self, include_noise: bool = False) -> Array:
        """Refused: a matrix of nodes by nodes does not fit a large graph."""
        raise ValueError(
            "return_cov must be False on a large graph, whose covariance over the nodes would have "
            f"{self.posterior.spectrum.n_nodes}^2 entries; got True. Ask for std at chosen nodes, or draw samples."
        )

    def sample(self, n_samples: int, random_state: np.random.Generator, include_noise: bool = False) -> Any:
        """Joint draws over all inputs and nodes, shape (n_samples, n_inputs, n_nodes).

        A draw from the prior at training and new inputs is corrected by the mean given what it misses at the training
        inputs (Matheron's rule), so each costs two passes.
        """
        posterior, operator = self.posterior, self.posterior.operator
        n_signals = posterior.input_modes.values.size
        training = posterior.prior.input_kernel.covariance(posterior.inputs)
        joint = np.block([[training, self.new.cross.T], [self.new.cross, self.new.covariance]])
        values, vectors = np.linalg.eigh(joint)
        root = (vectors * np.sqrt(np.maximum(values, 0.0))).T
        amplitude = posterior.response_series()
        filters = amplitude[:, None, None] * root
        noise = float(np.sqrt(posterior.prior.noise_variance))
        select = np.eye(joint.shape[0])
        means, draws = self._mean_filters(), []
        for _ in range(n_samples):
            white = operator.random_normal(joint.shape[0], random_state)
            prior = filter_columns(operator, white, filters)
            missed = posterior.signals.columns(posterior.spectrum.laplacian)
            missed -= operator.combine(prior, select[:, :n_signals])
            missed -= operator.random_normal(n_signals, random_state) * noise
            draw = operator.combine(prior, select[:, n_signals:]) + filter_columns(operator, missed, means)
            if include_noise:
                draw += operator.random_normal(draw.shape[1], random_state) * noise
            draws.append(operator.unload(draw))
        return operator.stack(draws)

    def held_out_log_density(self, whole: LargeSignals, kept: NDArray[np.intp], held_out: NDArray[np.intp]) -> Array:
        """Log predictive density of single signals whose moments are known, without another pass over the graph.

        Parameters
        ----------
        whole : LargeSignals
            All signals; the posterior is of those in `kept`.
        kept, held_out : ndarray of int
            Rows that were learnt from, and rows to predict, one for each new input.
        """
        posterior, spectrum = self.posterior, self.posterior.spectrum
        power = posterior.power(spectrum.eigenvalues)
        matrices = spectrum.read(whole).matrices
        # in each frequency the residual is y_t - sum_n a_tn y_n, so its energy is a quadratic form in E_q
        filters = self._weights.T[:, :, None] * (power / posterior.variances(power))
        coefficients = -np.einsum("tiq,ni->qtn", filters, posterior.input_modes.vectors, optimize=True)
        own = matrices[:, held_out, held_out]
        cross = np.sum(coefficients * matrices[:, held_out[:, None], kept], axis=2)
        inner = np.sum((coefficients @ matrices[:, kept[:, None], kept]) * coefficients, axis=2)
        variance = self._spectral_variance(power) + posterior.prior.noise_variance
        logs = np.log(2 * np.pi * variance) @ spectrum.multiplicities
        return -0.5 * (logs + np.sum((own + 2 * cross + inner).T / variance, axis=1))

    def log_density(self, signals: ArrayLike, joint: bool = True) -> Any:
        """Log predictive density of observed signals, by the same quadrature as the evidence."""
        posterior, operator = self.posterior, self.posterior.operator
        spectrum = posterior.spectrum
        residual = operator.load(signals) - self._mean_block()
        moments = MomentPass(operator, residual, gram=True)
        n_moments = spectrum.eigenvalues.size
        moments.extend(n_moments)
        energies = quadrature_weights(moments.moments[:n_moments])[::-1]
        power = posterior.power(spectrum.eigenvalues)
        noise = posterior.prior.noise_variance
        constant = spectrum.n_nodes * np.log(2 * np.pi)
        if not joint:
            variance = self._spectral_variance(power) + noise
            single = np.diagonal(energies, axis1=1, axis2=2).T
            logs = np.log(variance) @ spectrum.multiplicities
            return -0.5 * (logs + np.sum(single / variance, axis=1) + constant)
        covariance = self._spectral_covariance(power) + noise * np.eye(energies.shape[1])
        logs = np.linalg.slogdet(covariance)[1] @ spectrum.multiplicities
        quadratic = np.sum(np.trace(np.linalg.solve(covariance, energies), axis1=1, axis2=2))
        return float(-0.5 * (logs + quadratic + energies.shape[1] * constant))
