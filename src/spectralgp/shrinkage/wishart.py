"""The covariance of prediction errors between the identity and what the errors say, by its evidence."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.polynomial.chebyshev import chebvander
from scipy.linalg import cho_solve, cholesky, qr, solve_triangular
from scipy.optimize import minimize
from scipy.special import gammaln, multigammaln, psi

from spectralgp._checks import Array

PROFILE_DEGREE = 2
PROFILE_SPREADS = (2.0, 2.0, 1.0)  # standard deviations of the coefficients of the logarithm of the profile
WORTH_SPREAD = 1.5  # of the logarithm of how many signals the graph is worth, about their number
NEAR = 1e-3  # nats that the highest evidence may be missed by in a step
WORTH_BOUNDS = (-3.0, 9.0)
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
    def learnt(cls, whitened: Array, positions: Array, n_signals: int | None = None) -> Shrinkage:
        """The shrinkage of highest evidence.

        Parameters
        ----------
        whitened : ndarray of shape (n_rows, n_frequencies)
            ``Z / sqrt(D)``; with more rows than signals, any matrix whose products add up to those expected.
        positions : ndarray of shape (n_frequencies,)
            Frequencies on ``[0, 1]``.
        n_signals : int, optional
            Number of signals; that of the rows if not given.
        """
        n_rows, n_nodes = whitened.shape
        n_signals = n_rows if n_signals is None else n_signals
        root = whitened
        if n_rows > n_nodes:
            root = qr(whitened, mode="r")[0][:n_nodes] if n_rows == n_signals else _root_of(whitened.T @ whitened)
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


def _root_of(products: Array) -> Array:
    """A matrix whose products are the given ones."""
    values, vectors = np.linalg.eigh(products)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))).T)


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
