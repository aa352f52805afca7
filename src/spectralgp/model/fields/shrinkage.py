"""Shrinkage of the covariance of prediction errors towards the identity, and the tails of signals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Self

import numpy as np
from numpy.polynomial.chebyshev import chebvander
from scipy.linalg import cho_solve, cholesky
from scipy.linalg.blas import dtrsm
from scipy.optimize import minimize, minimize_scalar
from scipy.special import gammaln, psi

from spectralgp._basics.arrays import times_matrix, without_caches
from spectralgp._basics.checks import Array
from spectralgp._basics.saved import Count, Positive, Range, axes, gt

# prior standard deviations of the logarithm of the graph's equivalent sample size, about the number of signals, and of
# the coefficients of the logarithm of the squared profile, about zero; and bounds of these
SPREADS = np.array([1.5, 2.0, 2.0, 1.0])
BOUNDS = ((-3.0, 9.0), *[(-8.0, 8.0)] * 3)
EVIDENCE_TOLERANCE_NATS = 1e-3  # gain of a last step
LEAST_DATA_WEIGHT = 0.01  # of the signals in the covariance; below it the covariance is the identity
LARGEST_OWN_SHARE = 0.999  # of a left-out signal in the covariance
LEAST_FREEDOM = 3.0
FREEDOM_SPREAD = 1.5  # of the logarithm of the degrees of freedom, about those of the covariance's posterior


@dataclass(frozen=True, eq=False)
class Shrinkage:
    """Covariance ``R`` of prediction errors that the graph's model whitened, and the tails of a signal.

    At each frequency errors are divided by their standard deviation under the model and by a smooth profile. With
    ``R ~ IW(b I, b + M + 1)`` and the whitened training signals ``Q`` the posterior has the scale ``Psi = b I + Q^T Q``
    and the mean ``R = Psi / (b + N)``: equation (14). ``b``, the graph's equivalent sample size, and the profile
    maximise the evidence, in which ``R`` is integrated out.
    """

    worth: Positive  # b
    root: Annotated[Array, axes("_root_rows", "n_nodes")]  # any matrix (k, n_frequencies) with root^T root = Q^T Q
    profile: Annotated[Array, axes("n_nodes"), gt(0)]  # factors of standard deviations, one per frequency
    n_signals: Count
    # degrees of freedom of a signal, a multivariate t: equation (17)
    freedom: Annotated[float, Range(2 + 1e-9, is_extended=True)] = np.inf

    __getstate__ = without_caches

    @classmethod
    def learnt(cls, whitened: Array, positions: Array, n_signals: int) -> Shrinkage:
        """Learn the shrinkage by its evidence, from ``Z / sqrt(D)`` of shape (n_rows, n_frequencies).

        There may be more rows than signals, whose products add up to expected ones. `positions` are the frequencies
        on ``[0, 1]``.
        """
        root, n_nodes = whitened, whitened.shape[1]
        if len(whitened) > n_nodes:
            values, vectors = np.linalg.eigh(whitened.T @ whitened)
            root = (vectors * np.sqrt(np.maximum(values, 0.0))).T
        design: Array = chebvander(2 * positions - 1, SPREADS.size - 2).astype(float, copy=False)
        start, data = np.array([np.log(n_signals), 0.0, 0.0, 0.0]), (root, design, n_signals)
        options = {"ftol": EVIDENCE_TOLERANCE_NATS / max(1.0, abs(_misfit(start, *data)[0]))}
        found = minimize(_misfit, start, data, jac=True, method="L-BFGS-B", bounds=BOUNDS, options=options).x
        profile = np.exp(0.5 * design @ found[1:])
        worth = float(np.exp(found[0]))
        if n_signals < LEAST_DATA_WEIGHT * (n_signals + worth):  # not worth an eigendecomposition per model
            return cls(worth, np.empty((0, n_nodes)), profile, 0)
        return cls(worth, root / profile, profile, n_signals)

    @property
    def data_weight(self) -> float:
        """Weight of the signals in the covariance, relative to the graph: ``N / (N + b)``."""
        return self.n_signals / self.total

    @property
    def total(self) -> float:
        """Equivalent sample size of ``R``, ``b + N``."""
        return self.n_signals + self.worth

    @property
    def is_identity(self) -> bool:
        """Whether ``R`` is the identity: signals have no weight in it."""
        return self.n_signals == 0

    def lengths(self, errors: Array) -> tuple[Array, float]:
        """``w^T R^-1 w`` of whitened errors in rows, and ``log |R|``, from the smaller of two matrices."""
        (n_rows, n_nodes), across = self.root.shape, errors @ self.root.T
        inner = self.root @ self.root.T  # b I + root root^T, the smaller of the two with the determinant of Psi
        inner[np.diag_indices_from(inner)] += self.worth
        factor = cholesky(inner, lower=True, check_finite=False)
        explained = np.sum(across * cho_solve((factor, True), across.T, check_finite=False).T, axis=1)
        logs = (n_nodes - n_rows) * np.log(self.worth) + 2 * float(np.sum(np.log(np.diag(factor))))
        lengths = (np.sum(errors**2, axis=1) - explained) / self.worth * self.total
        return lengths, float(logs - n_nodes * np.log(self.total))

    def diagonal(self, vectors: Array) -> Array:
        """Diagonal of ``A R A^T`` for a matrix ``A``."""
        across = np.sum(np.square(times_matrix(vectors, self.root.T)), axis=-1)
        return (self.worth * np.sum(np.square(vectors), axis=-1) + across) / self.total

    @cached_property
    def root_of_mean(self) -> Array:
        """Lower Cholesky factor of ``R``."""
        scale: Array = self.root.T @ self.root
        scale[np.diag_indices_from(scale)] += self.worth
        return cholesky(scale / self.total, lower=True, check_finite=False)

    def left_out(self, quadratics: Array) -> tuple[Array, Array]:
        """Squared lengths of whitened errors and changes of log determinants, each signal being left out of ``R``."""
        if self.is_identity:
            return quadratics, np.zeros(quadratics.shape)
        shares = np.minimum(quadratics / self.total, LARGEST_OWN_SHARE)
        lengths = (self.total - 1) * shares / (1 - shares)
        return lengths, np.log1p(-shares) + self.root.shape[1] * np.log(self.total / (self.total - 1))

    def with_freedom(self, quadratics: Array, n_values: Array, stretch: Array) -> Self:
        """Copy with degrees of freedom of maximal posterior density, by leave-one-out errors.

        `quadratics` are squared lengths of their whitened errors, `n_values` the numbers of their observed values. For
        a new signal, whose scale is unknown, lengths are multiplied by `stretch`.
        """
        centre = np.log(self.total + 2)
        lengths = self.left_out(quadratics)[0] * stretch

        def negative(log_freedom: float) -> float:
            logs = t_log_density(lengths, 0.0, n_values, float(np.exp(log_freedom)))
            return 0.5 * ((log_freedom - centre) / FREEDOM_SPREAD) ** 2 - float(np.sum(logs))

        bounds = np.log(LEAST_FREEDOM), max(centre, np.log(LEAST_FREEDOM) + 1e-3)
        found = minimize_scalar(negative, bounds=bounds, method="bounded", options={"xatol": 1e-4})
        return replace(self, freedom=float(np.exp(found.x)))


def t_log_density(
    quadratics: Array, log_determinants: Array | float, n_values: Array | int, freedom: Array | float
) -> Array:
    """Log densities of errors under multivariate t laws with covariances ``C``; normal ones for infinite `freedom`.

    `quadratics` are ``e^T C^-1 e``, `log_determinants` ``log |C|``, `n_values` the lengths of errors; all broadcast.
    """
    if np.all(np.isinf(freedom)):
        return -0.5 * (quadratics + log_determinants + n_values * np.log(2 * np.pi))
    # the scale matrix is C (nu - 2) / nu, so that the covariance is C
    constant = gammaln((freedom + n_values) / 2) - gammaln(freedom / 2) - 0.5 * n_values * np.log((freedom - 2) * np.pi)
    return constant - 0.5 * log_determinants - 0.5 * (freedom + n_values) * np.log1p(quadratics / (freedom - 2))


def _misfit(x: Array, root: Array, design: Array, n_signals: int) -> tuple[float, Array]:
    """Minus the log posterior of ``log b`` and of the profile up to a constant, and its gradient.

    The evidence is that of a matrix t, in closed form.
    """
    worth, logs = float(np.exp(x[0])), design @ x[1:]
    n_rows, n_nodes = root.shape
    freedom = worth + n_nodes + 1
    scaled = root * np.exp(-0.5 * logs)
    inner = scaled @ scaled.T
    inner[np.diag_indices_from(inner)] += worth
    factor = cholesky(inner, lower=True, check_finite=False)
    white = dtrsm(1.0, factor, scaled.T, side=1, lower=1, trans_a=1)  # in the order that BLAS needs, without a copy
    own = np.einsum("ij,ij->i", white, white)
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
    gradient = np.concatenate([[slope], 0.5 * design.T @ (total * own - n_signals)])
    deviations = (x - [np.log(n_signals), 0.0, 0.0, 0.0]) / SPREADS
    return 0.5 * float(deviations @ deviations) - float(value), deviations / SPREADS - gradient
