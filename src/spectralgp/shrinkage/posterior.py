"""Posteriors and predictions whose covariance is shrunk towards the graph's."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular
from scipy.stats import multivariate_t
from scipy.stats import t as student

from spectralgp._checks import Array, as_integer
from spectralgp.carry import Carried
from spectralgp.inputs import NewInputs
from spectralgp.masked import EigenCovariance, completion_of
from spectralgp.model import GraphGP
from spectralgp.modes import Modes
from spectralgp.posterior import Posterior, Prediction, condition
from spectralgp.shrinkage.wishart import Shrinkage
from spectralgp.signals import Signals
from spectralgp.spectrum import SpectralData

NOT_EXACT = (
    "prior must be on an exact spectrum to shrink a covariance, a matrix of nodes by nodes; got a quadrature. "
    "Use condition, or graph_gp without a spectrum where the graph is small enough."
)
LARGEST_NOISE = 0.99  # of the smallest variance of what inputs do not explain
FEW_DRAWS = 16
COMPLETIONS = 3  # of signals with holes, each under what was learnt from the one before


@dataclass(frozen=True, eq=False)
class ShrunkPosterior(Posterior):
    """A posterior whose predictions have a covariance shrunk towards the graph's. Made by `condition_shrunk`."""

    @cached_property
    def shrinkage(self) -> Shrinkage:
        """How far, and to what."""
        basis, eigenvalues, deviations = self.basis, self.basis.eigenvalues, self.signals.deviations
        roots = np.sqrt(self.precisions(eigenvalues))
        whitened = self.block * roots
        if deviations is not None:
            spread = (basis.combined(basis.load(deviations), self.input_modes.vectors.T) * roots).reshape(
                -1, eigenvalues.size
            )
            whitened = np.vstack([whitened, spread])
        positions = np.clip(eigenvalues / self.prior.spectrum.upper, 0.0, 1.0)
        return Shrinkage.learnt(whitened, positions, self.signals.shape[0])

    @property
    def signals_share(self) -> float:
        """Share of the covariance of predictions that is the signals' own."""
        return self.shrinkage.share

    def given(self, new: NewInputs, features: Any) -> Prediction:
        """Predictive distribution from the covariances of new inputs."""
        return ShrunkPrediction(self, new, self.carried_block(features), features)

    def complete_covariance(self, input_modes: Modes) -> EigenCovariance:
        """Covariance of complete signals, ``K (x) G + I (x) S R S``: what inputs explain, and the rest shrunk.

        ``S`` are the rest's standard deviations at the frequencies, profile included, and ``R`` its posterior mean.
        Both parts are diagonal in the vectors that solve the generalised eigenvalue problem of the two.
        """
        vectors, eigenvalues = self.basis.require_eigenvectors(NOT_EXACT), self.basis.eigenvalues
        kernel, noise = self.prior.graph_kernel, self.prior.noise_variance
        scales = np.sqrt(kernel.residual_power(eigenvalues) + noise) * self.shrinkage.profile
        lower = scales[:, None] * self.shrinkage.factor / np.sqrt(self.shrinkage.freedom - 2)
        turned = solve_triangular(lower, np.diag(np.sqrt(kernel.power(eigenvalues))), lower=True)
        power, directions = np.linalg.eigh(turned @ turned.T)
        rest, axes = np.linalg.eigh(lower @ lower.T)
        white = min(noise, LARGEST_NOISE * float(rest[0]))
        return EigenCovariance(
            input_modes.vectors,
            np.multiply.outer(input_modes.values, np.maximum(power, 0.0)) + 1.0,
            vectors @ lower @ directions,
            white,
            vectors @ solve_triangular(lower, directions, lower=True, trans="T"),
            vectors @ (axes * np.sqrt(rest - white)),
        )

    def left_out_log_density(self, errors: SpectralData, variances: Array) -> Array:
        """Log density of errors of signals that were left out, one a signal."""
        roots, shrinkage = np.sqrt(variances) * self.shrinkage.profile, self.shrinkage
        return shrinkage.left_out_log_densities(errors.signed / roots) - np.sum(np.log(roots), axis=1)

    def left_out_variances(self, errors: Any, variances: Any) -> Array:
        """Variances of the nodes of signals that were left out, shape (n_signals, n_nodes)."""
        vectors, shrinkage = self.basis.require_eigenvectors(NOT_EXACT), self.shrinkage
        roots = np.sqrt(variances(self.basis.eigenvalues)) * shrinkage.profile
        every = np.stack([shrinkage.diagonal(vectors * own) for own in roots]) * (shrinkage.freedom - 2)
        least = shrinkage.worth * np.square(roots) @ np.square(vectors).T
        # a signal's own share in the scale is its error, node by node
        own_share = np.square(self.basis.unload(errors))
        return np.maximum(every - own_share, least) / (shrinkage.freedom - 3)


def condition_shrunk(
    prior: GraphGP, inputs: ArrayLike, signals: ArrayLike | Signals, carried: Carried | None = None
) -> ShrunkPosterior:
    """Condition a prior on signals, with the covariance of predictions shrunk towards the graph's: equation (18).

    Parameters
    ----------
    prior, inputs, signals, carried
        As `condition` takes them; the prior must be on an exact spectrum.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from spectralgp import Diffusion, Graph, condition_shrunk, graph_gp
    >>> prior = graph_gp(Graph.from_edges([(0, 1), (1, 2)]), Diffusion(), RBF(), noise_variance=0.1)
    >>> rng = np.random.default_rng(0)
    >>> posterior = condition_shrunk(prior, rng.standard_normal((9, 1)), rng.standard_normal((9, 3)))
    >>> 0 < posterior.shrinkage.share < 1
    True
    """
    plain = condition(prior, inputs, signals, carried)
    plain.basis.require_eigenvectors(NOT_EXACT)
    inputs, modes = plain.inputs, plain.input_modes
    shrunk = ShrunkPosterior(prior, inputs, plain.signals, modes, carried, plain.completion)
    if plain.completion is None:
        return shrunk
    completion, known = plain.completion, plain.completion.signals
    for number in range(COMPLETIONS):  # what is missing is completed by the covariance that it is part of
        most = FEW_DRAWS if number < COMPLETIONS - 1 else None
        complete, start = shrunk.complete_covariance(modes), completion.solution
        completion = completion_of(prior, inputs, modes, known, carried, complete, most, start)
        shrunk = ShrunkPosterior(prior, inputs, completion.completed(), modes, carried, completion)
    return shrunk


@dataclass(frozen=True, eq=False)
class ShrunkPrediction(Prediction):
    """A prediction with a multivariate t distribution, whose covariance was shrunk towards the graph's.

    Means are the graph's model's. Without noise, standard deviations in each frequency are those without noise, and
    correlations between frequencies the same.
    """

    posterior: ShrunkPosterior

    @property
    def _shrinkage(self) -> Shrinkage:
        return self.posterior.shrinkage

    def _roots(self, include_noise: bool) -> Array:
        """Standard deviations at the frequencies, shape (n_inputs, n_frequencies)."""
        variances = self._variances(self._basis.eigenvalues) + (self._noise if include_noise else 0.0)
        return np.sqrt(variances) * self._shrinkage.profile

    def variance(self, include_noise: bool = False, nodes: NDArray[np.intp] | None = None) -> Array:
        """Predictive variance at every node, or at those given by position."""
        vectors = self._vectors if nodes is None else self._vectors[nodes]
        known = np.stack([self._shrinkage.diagonal(vectors * own) for own in self._roots(include_noise)])
        return np.asarray(known + self._left_open(nodes))

    @property
    def variance_error(self) -> Array:
        """Nothing is estimated."""
        return np.zeros(self._weights.shape[0])

    def _covariance_of(self, number: int, include_noise: bool) -> Array:
        """Covariance over the nodes for one of the inputs."""
        through = self._vectors * self._roots(include_noise)[number]
        covariance = self._shrinkage.scale / (self._shrinkage.freedom - 2)
        return np.asarray(through @ covariance @ through.T + self._open_covariance(number))

    def _factors(self, include_noise: bool) -> Array:
        """Cholesky factors over the inputs at each frequency, times the profile."""
        noise = self._noise if include_noise else 1e-10 * self._noise
        covariances = self._covariances + noise * np.eye(self._weights.shape[0])
        factors: Array = np.linalg.cholesky(covariances) * self._shrinkage.profile[:, None, None]
        return factors

    def joint_covariance(self, include_noise: bool = False) -> Array:
        """Covariance over inputs and nodes together, shape (n_inputs, n_nodes, n_inputs, n_nodes)."""
        covariance = self._shrinkage.scale / (self._shrinkage.freedom - 2)
        through = np.einsum("mj,jta->tmaj", self._vectors, self._factors(include_noise))
        return np.asarray(np.einsum("tmaj,jk,snak->tmsn", through, covariance, through) + self._open_joint())

    def sample(self, n_samples: int, random_state: np.random.Generator, include_noise: bool = False) -> Array:
        """Joint draws over all inputs and nodes, shape (n_samples, n_inputs, n_nodes)."""
        factors, vectors, draws = self._factors(include_noise), self._vectors, []
        for _ in range(as_integer(n_samples, "n_samples", 1)):
            errors = self._shrinkage.draw(self._weights.shape[0], random_state)
            draw = self.mean + np.einsum("jta,aj->tj", factors, errors) @ vectors.T
            if self.open_means:
                white = random_state.standard_normal(len(self.open_means))
                draw = draw + np.tensordot(white, np.stack(self.open_means), axes=1)
            draws.append(draw)
        return np.stack(draws)

    def _log_density_of_observed(self, observed: Array, joint: bool) -> Any:
        """Log densities of what was observed alone; of several signals together as if ``R`` were known."""
        if not joint:
            return super()._log_density_of_observed(observed, joint)
        seen = np.isfinite(observed).ravel()
        n_values = observed.size
        covariance = self.joint_covariance(include_noise=True).reshape(n_values, n_values)[np.ix_(seen, seen)]
        return super()._density((observed - self.mean).ravel()[seen], covariance)

    def _density(self, errors: Array, covariance: Array) -> float:
        """Log density of errors of one signal with a covariance: a multivariate t."""
        freedom = self._shrinkage.freedom
        return float(multivariate_t.logpdf(errors, None, covariance * ((freedom - 2) / freedom), freedom))

    def _log_density(self, residuals: SpectralData, joint: bool) -> Any:
        errors, shrinkage, units = residuals.signed, self._shrinkage, self._units
        if not joint:
            roots = self._roots(include_noise=True)
            single = shrinkage.log_densities(errors / roots) - np.sum(np.log(roots), axis=1)
            return units.log_density(single, self._basis.n_nodes)
        factors = self._factors(include_noise=True)
        whitened = np.asarray(np.linalg.solve(factors, errors.T[:, :, None])[:, :, 0].T, dtype=float)
        logs = float(np.sum(np.log(np.diagonal(factors, axis1=1, axis2=2))))
        return units.log_density(shrinkage.log_density(whitened) - logs, errors.size)

    def value_log_densities(self, signals: Array, nodes: NDArray[np.intp]) -> Array:
        """Log density of each value alone at some nodes, shape (n_inputs, n_some_nodes): a t distribution."""
        freedom = self._shrinkage.freedom
        scales = self.std(include_noise=True, nodes=nodes) * np.sqrt((freedom - 2) / freedom)
        return np.asarray(student.logpdf(signals, freedom, self.mean[:, nodes], scales))
