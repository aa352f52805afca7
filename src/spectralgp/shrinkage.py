"""The covariance of a signal about its prediction, shrunk towards the graph's."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.polynomial.chebyshev import chebvander
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_solve, cholesky, qr, solve_triangular
from scipy.optimize import minimize
from scipy.special import gammaln, multigammaln, psi
from scipy.stats import t as student

from spectralgp._checks import Array, as_integer
from spectralgp.carry import Carried
from spectralgp.inputs import NewInputs
from spectralgp.model import GraphGP
from spectralgp.posterior import Posterior, Prediction, condition
from spectralgp.signals import Signals
from spectralgp.spectrum import SpectralData

PROFILE_DEGREE = 2
PROFILE_SPREADS = (2.0, 2.0, 1.0)  # standard deviations of the coefficients of the logarithm of the profile
WORTH_SPREAD = 1.5  # of the logarithm of how many signals the graph is worth, about their number
NEAR = 1e-3  # nats that the highest evidence may be missed by in a step
WORTH_BOUNDS = (-3.0, 9.0)
NOT_EXACT = (
    "prior must be on an exact spectrum to shrink a covariance, a matrix of nodes by nodes; got a quadrature. "
    "Use condition, or graph_gp without a spectrum where the graph is small enough."
)
MOST_LEFT_OUT = 0.999  # of a signal's own share in the covariance that is taken out


@dataclass(frozen=True, eq=False)
class Shrinkage:
    """Inverse-Wishart posterior of the covariance ``R`` of prediction errors that the graph's covariance whitened.

    In each frequency errors are divided by the standard deviation that the graph's model states and by a smooth
    profile. Were that model right, ``R`` would be the identity; it is the centre of the prior,
    ``R ~ IW((nu - M - 1) I, nu)``. The posterior has the scale ``Psi = b I + Q^T Q`` with ``b = nu - M - 1`` and the
    whitened training signals ``Q``, and a new signal is a multivariate t. How many signals the graph is worth, ``b``,
    and the profile are those of the highest evidence, in which ``R`` is integrated out. Equation (18).

    Parameters
    ----------
    worth : float
        ``b``.
    root : ndarray of shape (k, n_frequencies)
        Any matrix with ``root^T root = Q^T Q``.
    profile : ndarray of shape (n_frequencies,)
        What standard deviations are multiplied by.
    n_signals : int
        Number of training signals.
    """

    worth: float
    root: Array
    profile: Array
    n_signals: int

    @classmethod
    def learnt(cls, whitened: Array, positions: Array) -> Shrinkage:
        """The shrinkage of highest evidence.

        Parameters
        ----------
        whitened : ndarray of shape (n_signals, n_frequencies)
            ``Z / sqrt(D)``.
        positions : ndarray of shape (n_frequencies,)
            Frequencies on ``[0, 1]``.
        """
        n_signals, n_nodes = whitened.shape
        root = whitened if n_signals <= n_nodes else qr(whitened, mode="r")[0][:n_nodes]
        design: Array = chebvander(2 * positions - 1, PROFILE_DEGREE).astype(float, copy=False)
        spreads, centre = np.array([WORTH_SPREAD, *PROFILE_SPREADS]), np.array([np.log(n_signals), 0.0, 0.0, 0.0])

        def negative(x: Array) -> tuple[float, Array]:
            value, gradient = _evidence(x, root, design, n_signals)
            deviations = (x - centre) / spreads
            return 0.5 * float(deviations @ deviations) - value, deviations / spreads - gradient

        bounds = [WORTH_BOUNDS, *[(-8.0, 8.0)] * (PROFILE_DEGREE + 1)]
        options = {"ftol": NEAR / max(1.0, abs(negative(centre)[0]))}
        found = minimize(negative, centre, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
        profile = np.exp(0.5 * design @ found[1:])
        return cls(float(np.exp(found[0])), root / profile, profile, n_signals)

    @property
    def share(self) -> float:
        """Weight of the signals, beside the graph, in the covariance: ``N / (N + b)``."""
        return self.n_signals / (self.n_signals + self.worth)

    @property
    def freedom(self) -> float:
        """Degrees of freedom of the t distribution of a new signal, ``nu + N - M + 1``."""
        return self.n_signals + self.worth + 2

    @cached_property
    def scale(self) -> Array:
        """``Psi``."""
        scale: Array = self.root.T @ self.root
        scale[np.diag_indices_from(scale)] += self.worth
        return scale

    @cached_property
    def factor(self) -> Array:
        """Lower Cholesky factor of ``Psi``."""
        return cholesky(self.scale, lower=True)

    @cached_property
    def _inner(self) -> tuple[Array, bool]:
        """Factor of ``b I + root root^T``, which is the smaller matrix of the two."""
        inner = self.root @ self.root.T
        inner[np.diag_indices_from(inner)] += self.worth
        return cholesky(inner, lower=True), True

    @cached_property
    def log_determinant(self) -> float:
        """``log |Psi|``."""
        rest = self.root.shape[1] - self.root.shape[0]
        return rest * float(np.log(self.worth)) + 2 * float(np.sum(np.log(np.diag(self._inner[0]))))

    def products(self, errors: Array) -> Array:
        """``w^T Psi^-1 w'`` of whitened errors in rows, shape (n_errors, n_errors)."""
        across = errors @ self.root.T
        return (errors @ errors.T - across @ cho_solve(self._inner, across.T)) / self.worth

    def log_density(self, errors: Array) -> float:
        """Log density of whitened errors together, in rows: a matrix t."""
        n_errors, n_nodes = errors.shape
        total = self.freedom + n_nodes - 1  # nu + N
        joint = np.eye(n_errors) + self.products(errors)
        return float(
            multigammaln((total + n_errors) / 2, n_nodes)
            - multigammaln(total / 2, n_nodes)
            - 0.5 * n_errors * (n_nodes * np.log(np.pi) + self.log_determinant)
            - 0.5 * (total + n_errors) * np.linalg.slogdet(joint)[1]
        )

    def log_densities(self, errors: Array) -> Array:
        """The same of each row alone."""
        n_nodes, freedom = errors.shape[1], self.freedom
        return self._single(self._quadratics(errors), freedom, n_nodes, self.log_determinant)

    def left_out_log_densities(self, errors: Array) -> Array:
        """The same, each row taken out of the covariance that it is judged by.

        Whitened errors stand in for the rows of ``Q``, which are combinations of signals; where inputs explain nothing
        the two are the same.
        """
        quadratics = np.minimum(self._quadratics(errors), MOST_LEFT_OUT)
        rest = 1 - quadratics
        determinants = self.log_determinant + np.log(rest)
        return self._single(quadratics / rest, self.freedom - 1, errors.shape[1], determinants)

    def _quadratics(self, errors: Array) -> Array:
        across = errors @ self.root.T
        return (np.sum(errors**2, axis=1) - np.sum(across * cho_solve(self._inner, across.T).T, axis=1)) / self.worth

    @staticmethod
    def _single(quadratics: Array, freedom: float, n_nodes: int, log_determinant: float | Array) -> Array:
        constant = gammaln((freedom + n_nodes) / 2) - gammaln(freedom / 2)
        logs = n_nodes * np.log(np.pi) + log_determinant
        return constant - 0.5 * logs - 0.5 * (freedom + n_nodes) * np.log1p(quadratics)

    def diagonal(self, vectors: Array) -> Array:
        """Diagonal of ``A E[R] A^T`` for matrices ``A``, stacked along the first axis."""
        across = np.sum((vectors @ self.root.T) ** 2, axis=-1)
        return (self.worth * np.sum(vectors**2, axis=-1) + across) / (self.freedom - 2)

    def draw(self, n_errors: int, random_state: np.random.Generator) -> Array:
        """Whitened errors of new signals, which share one draw of ``R``."""
        n_nodes = self.root.shape[1]
        # Bartlett: a Wishart matrix is L L^T with chi-distributed diagonal and normal entries below it
        lower = np.tril(random_state.standard_normal((n_nodes, n_nodes)), -1)
        total = self.freedom + n_nodes - 1
        lower[np.diag_indices(n_nodes)] = np.sqrt(random_state.chisquare(total - np.arange(n_nodes)))
        white = random_state.standard_normal((n_nodes, n_errors))
        return (self.factor @ solve_triangular(lower, white, lower=True, trans="T")).T


def _evidence(x: Array, root: Array, design: Array, n_signals: int) -> tuple[float, Array]:
    """Log evidence of ``b`` and the profile up to a constant, and its gradient: a matrix t in closed form."""
    worth, logs = float(np.exp(x[0])), design @ x[1:]
    n_rows, n_nodes = root.shape
    freedom = worth + n_nodes + 1
    scaled = root * np.exp(-0.5 * logs)
    inner = scaled @ scaled.T
    inner[np.diag_indices_from(inner)] += worth
    factor = cholesky(inner, lower=True, check_finite=False)
    own = np.sum(np.square(solve_triangular(factor, scaled, lower=True, check_finite=False)), axis=0)
    trace = (n_nodes - np.sum(own)) / worth  # of Psi^-1
    determinant = (n_nodes - n_rows) * x[0] + 2 * float(np.sum(np.log(np.diag(factor))))
    total = freedom + n_signals
    orders = np.arange(n_nodes) / 2
    value = (
        np.sum(gammaln(total / 2 - orders) - gammaln(freedom / 2 - orders))
        + 0.5 * freedom * n_nodes * x[0]
        - 0.5 * total * determinant
        - 0.5 * n_signals * float(np.sum(logs))
    )
    digammas = float(np.sum(psi(total / 2 - orders) - psi(freedom / 2 - orders)))
    slope = 0.5 * worth * (digammas + n_nodes * x[0] - determinant) + 0.5 * freedom * n_nodes
    slope -= 0.5 * total * worth * trace
    return float(value), np.concatenate([[slope], 0.5 * design.T @ (total * own - n_signals)])


@dataclass(frozen=True, eq=False)
class ShrunkPosterior(Posterior):
    """A posterior whose predictions have a covariance shrunk towards the graph's. Made by `condition_shrunk`."""

    @cached_property
    def shrinkage(self) -> Shrinkage:
        """How far, and to what."""
        eigenvalues = self.basis.eigenvalues
        whitened = self.block * np.sqrt(self.precisions(eigenvalues))
        return Shrinkage.learnt(whitened, np.clip(eigenvalues / self.prior.spectrum.upper, 0.0, 1.0))

    @property
    def signals_share(self) -> float:
        """Share of the covariance of predictions that is the signals' own."""
        return self.shrinkage.share

    def given(self, new: NewInputs, features: Any) -> Prediction:
        """Predictive distribution from the covariances of new inputs."""
        return ShrunkPrediction(self, new, self.carried_block(features))

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
    return ShrunkPosterior(plain.prior, plain.inputs, plain.signals, plain.input_modes, plain.carried)


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

    @property
    def _vectors(self) -> Array:
        vectors = self._basis.require_eigenvectors(NOT_EXACT)
        return np.broadcast_to(self._units.divisor, vectors.shape[:1])[:, None] * vectors

    def _roots(self, include_noise: bool) -> Array:
        """Standard deviations at the frequencies, shape (n_inputs, n_frequencies)."""
        variances = self._variances(self._basis.eigenvalues) + (self._noise if include_noise else 0.0)
        return np.sqrt(variances) * self._shrinkage.profile

    def variance(self, include_noise: bool = False, nodes: NDArray[np.intp] | None = None) -> Array:
        """Predictive variance at every node, or at those given by position."""
        vectors = self._vectors if nodes is None else self._vectors[nodes]
        return np.stack([self._shrinkage.diagonal(vectors * own) for own in self._roots(include_noise)])

    @property
    def variance_error(self) -> Array:
        """Nothing is estimated."""
        return np.zeros(self._weights.shape[0])

    def node_covariance(self, include_noise: bool = False) -> Array:
        """Covariance over the nodes for each input, shape (n_inputs, n_nodes, n_nodes)."""
        covariance, vectors = self._shrinkage.scale / (self._shrinkage.freedom - 2), self._vectors
        return np.stack([(vectors * own) @ covariance @ (vectors * own).T for own in self._roots(include_noise)])

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
        return np.einsum("tmaj,jk,snak->tmsn", through, covariance, through, optimize=True)

    def sample(self, n_samples: int, random_state: np.random.Generator, include_noise: bool = False) -> Array:
        """Joint draws over all inputs and nodes, shape (n_samples, n_inputs, n_nodes)."""
        factors, vectors, draws = self._factors(include_noise), self._vectors, []
        for _ in range(as_integer(n_samples, "n_samples", 1)):
            errors = self._shrinkage.draw(self._weights.shape[0], random_state)
            draws.append(self.mean + np.einsum("jta,aj->tj", factors, errors) @ vectors.T)
        return np.stack(draws)

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
