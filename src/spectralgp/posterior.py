"""Conditioning on data: means, variances, covariances, samples and densities, on any spectrum."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj, is_numpy_array
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm

from spectralgp._arrays import non_negative_root, on_host
from spectralgp._checks import Array, as_integer, as_real_array, as_signals
from spectralgp.carry import Carried
from spectralgp.covariance import DataCovariance
from spectralgp.inputs import NewInputs
from spectralgp.model import GraphGP
from spectralgp.modes import Modes
from spectralgp.signals import Signals, as_training
from spectralgp.spectrum import FilterBank, SpectralData, Spectrum
from spectralgp.units import Units

CONTRADICTION = 1e-8  # of the prior variance: a predictive one below zero by more than this is no rounding
NO_COVARIANCE = (
    "return_cov must be False on a large graph, whose covariance over the nodes would have {n_nodes}^2 entries; got "
    "True. Ask for std at chosen nodes, or draw samples."
)


def condition(
    prior: GraphGP, inputs: ArrayLike, signals: ArrayLike | Signals, carried: Carried | None = None
) -> Posterior:
    """Condition a prior on signals observed at inputs.

    Parameters
    ----------
    prior : GraphGP
        The model.
    inputs : array of shape (n_signals, n_features)
        Training inputs; the covariance itself for a precomputed kernel. They are copied.
    signals : array of shape (n_signals, n_nodes), or Signals
        Training signals, as they are or read by `read_signals`, which centres and scales them. The prior is of signals
        after that; predictions are in the units from before. An array is copied.
    carried : Carried, optional
        Which columns of the inputs carry over to the signals, where the prior has a filter for that.

    Returns
    -------
    Posterior

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from spectralgp import Diffusion, Graph, condition, graph_gp
    >>> prior = graph_gp(Graph.from_edges([(0, 1), (1, 2)]), Diffusion(), RBF(), noise_variance=0.1)
    >>> posterior = condition(prior, np.array([[0.0], [1.0]]), np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    >>> posterior.at(np.array([[0.5]])).mean.shape
    (1, 3)
    """
    if not isinstance(prior, GraphGP):
        raise TypeError(f"prior must be a GraphGP; got {type(prior).__name__}. Make one with graph_gp(...).")
    given = as_real_array(inputs, "inputs", ("n_signals", "n_features")).copy()
    modes = prior.input_modes(given)
    if (prior.carry is None) != (carried is None):
        raise ValueError(
            f"carried must be given where the prior has a carry-over filter, and only there; got {carried}. "
            "Make it with Carried.of(columns, inputs)."
        )
    return Posterior(prior, given, as_training(signals, given.shape[0], prior.spectrum.n_nodes), modes, carried)


@dataclass(frozen=True, eq=False)
class Posterior:
    """A prior conditioned on signals. Made by `condition`.

    Parameters
    ----------
    prior : GraphGP
        The model, of the signals as `signals` has them: centred and scaled.
    inputs : ndarray of shape (n_signals, n_features)
        Training inputs (``K`` itself if precomputed).
    signals : Signals
        Training signals.
    input_modes : Modes
        ``K = U diag(kappa) U^T``.
    carried : Carried, optional
        Columns of the inputs that carry over to the signals.
    """

    prior: GraphGP
    inputs: Array
    signals: Signals
    input_modes: Modes
    carried: Carried | None = None

    @property
    def basis(self) -> Spectrum:
        """Where the covariance between nodes is diagonal."""
        return self.prior.basis

    @property
    def signals_share(self) -> float:
        """Share of the covariance of predictions that is the signals' own: none, all is the graph's model."""
        return 0.0

    @property
    def parts(self) -> tuple[tuple[float, Posterior], ...]:
        """Posteriors and their weights: this one alone."""
        return ((1.0, self),)

    @cached_property
    def block(self) -> Any:
        """Training signals less what is carried over, combined by the input modes: a block to be filtered."""
        basis, vectors = self.basis, self.input_modes.vectors
        block = basis.block(self.signals, vectors)
        if self.carried is None:
            return block
        carried = self.carried_block(self.inputs)
        return basis.combined(block, np.eye(vectors.shape[0])) - basis.combined(carried, vectors.T)

    def carried_block(self, inputs: Array) -> Any:
        """``b(L) x``, the mean that inputs carry over, as a block; zero where there is none."""
        basis, carry = self.basis, self.prior.carry
        if self.carried is None or carry is None:
            return 0.0
        through = FilterBank(lambda eigenvalues: carry.response(eigenvalues)[None], np.eye(inputs.shape[0]))
        return basis.filtered(basis.load(self.carried.signals(inputs, self.signals.units)), through)

    def covariance(self, eigenvalues: Array) -> DataCovariance:
        """Covariance of the training signals at eigenvalues."""
        return self.prior.covariance_at(self.input_modes, eigenvalues)

    def precisions(self, eigenvalues: Array) -> Array:
        """``1 / D`` at eigenvalues, shape (n_signals, n_eigenvalues)."""
        return self.covariance(eigenvalues).precisions

    def at(self, inputs: Any) -> Prediction:
        """Predictive distribution at new inputs.

        Parameters
        ----------
        inputs : array of shape (n_inputs, n_features)
            With a precomputed kernel: the cross-covariance (n_inputs, n_signals), or the pair of it and the test
            covariance. With independent signals: an array without columns.
        """
        kernel = self.prior.input_kernel
        features = kernel.new(inputs, _as_inputs(self.inputs.shape[1]))
        return self.given(kernel.at(self.inputs, features), features)

    def left_out_log_density(self, errors: SpectralData, variances: Array) -> Array:
        """Log density of errors of signals that were left out, with variances at the frequencies, one a signal."""
        logs = np.log(2 * np.pi * variances) @ errors.multiplicities
        return -0.5 * (logs + np.sum(errors.energies / variances, axis=1))

    def left_out_variances(self, errors: Any, variances: Any) -> Any:
        """Variances of the nodes of signals that were left out, from those at eigenvalues; `errors` are a block."""
        return self.basis.diagonals(variances)[0]

    def given(self, new: NewInputs, features: Any) -> Prediction:
        """The same from the covariances of new inputs; `features`, the inputs themselves, are for what carries over."""
        return Prediction(self, new, self.carried_block(features))


def _as_inputs(n_features: int) -> Any:
    return lambda inputs: as_real_array(
        inputs, "inputs", ("n_inputs", "n_features"), sizes={"n_features": n_features}, remedy="Rows are inputs."
    )


@dataclass(frozen=True, eq=False)
class Prediction:
    """Gaussian distribution of signals at new inputs, computed where it is asked for. Made by `Posterior.at`.

    Everything is in the units that the training signals came in. Second moments are of the noise-free signal unless
    ``include_noise`` is set.
    """

    posterior: Posterior
    new: NewInputs
    carried: Any = 0.0

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

    def variance(self, include_noise: bool = False, nodes: NDArray[np.intp] | None = None) -> Any:
        """Predictive variance at every node, or at those given by position.

        On a quadrature it is exact at given nodes, and by random probes at all of them.
        """
        noise = self._noise if include_noise else 0.0
        if nodes is None:
            return (self._diagonals[0] + noise) * self._units.divisor**2
        diagonals = np.maximum(self._basis.diagonals(self._variances, nodes)[0], 0.0)
        return self._units.std(self._units.std(diagonals + noise, nodes), nodes)

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
        vectors = self._basis.require_eigenvectors(NO_COVARIANCE.format(n_nodes=self._basis.n_nodes))
        variances = self._variances(self._basis.eigenvalues) + (self._noise if include_noise else 0.0)
        vectors = np.asarray(self._units.divisor)[..., None] * vectors
        covariance: Array = (vectors * variances[:, None, :]) @ vectors.T
        return covariance

    def joint_covariance(self, include_noise: bool = False) -> Array:
        """Covariance over inputs and nodes together, shape (n_inputs, n_nodes, n_inputs, n_nodes).

        ``reshape(n_inputs * n_nodes, -1)`` gives the matrix that belongs to ``mean.ravel()``.
        """
        vectors = self._basis.require_eigenvectors(NO_COVARIANCE.format(n_nodes=self._basis.n_nodes))
        noise = (self._noise if include_noise else 0.0) * np.eye(self._weights.shape[0])
        self._variances(self._basis.eigenvalues)  # raises where covariances contradict each other
        vectors, spectral = np.asarray(self._units.divisor)[..., None] * vectors, self._covariances + noise
        return np.einsum("aj,jmn,bj->manb", vectors, spectral, vectors, optimize=True)

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
            vectors * np.sqrt(np.maximum(values, 0.0)),
        )
        everything = np.eye(within.shape[0])
        own = FilterBank(lambda eigenvalues: posterior.prior.residual_response(eigenvalues)[None], everything)
        draws = []
        for _ in range(as_integer(n_samples, "n_samples", 1)):
            prior = basis.filtered(basis.white(within.shape[0], random_state), root)
            if posterior.prior.graph_kernel.residual is not None:
                prior = prior + basis.filtered(basis.white(within.shape[0], random_state), own)
            missed = basis.combined(posterior.block, everything[:n_signals, :n_signals])
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
            What was observed at the new inputs, in the units of the training signals.
        joint : bool, default=True
            One total for all inputs together (float), or one number an input taken alone, shape (n_inputs,).
        """
        observed = _as_observed(signals, self._weights.shape[0], self._basis.n_nodes)
        block = self._basis.load(self._units.apply(observed))
        return self._log_density(self._basis.read_block(block - self._mean_block), joint)

    def value_log_densities(self, signals: Array, nodes: NDArray[np.intp]) -> Array:
        """Log density of each observed value alone at some nodes, noise included, shape (n_inputs, n_some_nodes)."""
        return np.asarray(norm.logpdf(signals, self.mean[:, nodes], self.std(include_noise=True, nodes=nodes)))

    def log_density_of(self, signals: Signals, joint: bool = False) -> Any:
        """The same of signals that are views of the same ones as the training signals, with the same centre."""
        if self.posterior.carried is not None:
            block = self._basis.load(signals.values)
            return self._log_density(self._basis.read_block(block - self._mean_block), joint)
        vectors = self.posterior.input_modes.vectors
        data = self._basis.read_residual(signals, self.posterior.signals, vectors, self._bank)
        return self._log_density(data, joint)

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
        signals = np.atleast_2d(as_signals(signals, n_nodes))
    if signals.shape != (n_inputs, n_nodes):
        raise ValueError(
            f"signals must have one row for each of the {n_inputs} inputs and one column for each of the {n_nodes} "
            f"nodes; got shape {signals.shape}. Pass the signals observed at these inputs."
        )
    if not bool(array_namespace(signals).all(array_namespace(signals).isfinite(signals))):
        raise ValueError("signals must be finite; got NaN or infinity. Remove or fill in such values first.")
    return signals


def _refuse_contradiction(smallest: float, largest: float) -> None:
    """Refuse variances below zero, which covariances of new inputs bring that do not belong to the cross-covariance."""
    if smallest < -CONTRADICTION * largest:
        raise ValueError(
            "X must hold covariances of new inputs that fit their cross-covariance; got a predictive "
            f"variance of {smallest:.3g}. Check that both come from one kernel."
        )
