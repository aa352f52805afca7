"""Classes at entries of signals: a latent field per class and a softmax likelihood, as a variational Gaussian."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.special import ndtri

from spectralgp._basics.checks import Array, Indices
from spectralgp._basics.saved import axes, gt

N_POINTS = 256  # for expectations in the space of the classes, with their opposites
MOST_STEPS = 100
LARGEST_STEP = 0.5  # of the natural gradient: full steps overshoot
N_LARGEST = 20  # steps of that length; later ones are shorter
MEAN_TOLERANCE = 0.01  # change of means in a last step, in standard deviations
SMALLEST_CURVATURE = 1e-9  # of a label with probability one


@lru_cache(maxsize=16)
def _points(n_classes: int) -> Array:
    """Standard normal points of low discrepancy with their opposites, shape (2 N_POINTS, 1, n_classes)."""
    from scipy.stats import qmc  # takes long to import

    points = ndtri(qmc.Sobol(n_classes, rng=np.random.default_rng(0)).random(N_POINTS))
    return np.concatenate([points, -points])[:, None]


def _softmax(latent: Array) -> Array:
    """Softmax along the last axis; overwrites its argument to save memory."""
    latent -= latent.max(axis=-1, keepdims=True)
    np.exp(latent, out=latent)
    latent /= latent.sum(axis=-1, keepdims=True)
    return latent


def expected_probabilities(mean: Array, variance: Array) -> Array:
    """Expectation of the softmax of independent Gaussians, shape (n_entries, n_classes)."""
    total, deviation = np.zeros(mean.shape), np.sqrt(variance)
    points = _points(mean.shape[1])
    for point in points:  # one by one, to save memory
        total += _softmax(mean + deviation * point)
    return total / len(points)


@dataclass(frozen=True, eq=False)
class ClassSites:
    """Gaussian factors ``exp(linear f - curvature f^2 / 2)`` at the labelled entries, one per class."""

    linear: Annotated[Array, axes("n_labels", "n_classes")]
    curvature: Annotated[Array, axes("n_labels", "n_classes"), gt(0)]

    def towards(self, other: ClassSites, step: float) -> ClassSites:
        """Natural gradient step towards other sites."""
        linear = (1 - step) * self.linear + step * other.linear
        return ClassSites(linear, (1 - step) * self.curvature + step * other.curvature)


@dataclass(frozen=True, eq=False)
class LabelledField:
    """Latent fields of the classes given labels at some entries: one Gaussian per class.

    The fields are ``f_c ~ N(0, K)``, independent, and a label is c with probability ``softmax(f)_c``. The posterior is
    approximated by ``q(f_c) = N(m_c, (K^-1 + diag w_c)^-1)`` with ``w_c = E_q[p_c (1 - p_c)]`` and ``K^-1 m_c = y_c -
    E_q[p_c]``, the maximum of the bound (38): equation (42).
    """

    weights: Array  # K^-1 m, for means elsewhere by covariances; (n_labels, n_classes)
    factors: tuple[Array, ...]  # of I + w^1/2 K w^1/2, one per class
    sites: ClassSites
    mean: Array  # at the labelled entries
    variance: Array
    converged: bool

    def left_out(self) -> Array:
        """Probabilities of the classes at each labelled entry given the other labels: equation (40)."""
        variance = 1 / (1 / self.variance - self.sites.curvature)
        return expected_probabilities(variance * (self.mean / self.variance - self.sites.linear), variance)

    def probabilities(self, cross: Array, variance: Array) -> Array:
        """Probabilities of the classes at entries with these covariances with the labelled ones, and variances."""
        mean, left = cross @ self.weights, np.empty((len(cross), len(self.factors)))
        for place, factor in enumerate(self.factors):
            known = solve_triangular(factor, np.sqrt(self.sites.curvature[:, place, None]) * cross.T, lower=True)
            left[:, place] = variance - np.einsum("ij,ij->j", known, known)
        return expected_probabilities(mean, np.maximum(left, 0.0))  # rounding of a difference


def given_labels(
    covariance: Array, labels: Indices, n_classes: int, start: LabelledField | None = None
) -> LabelledField:
    """Latent fields of the classes given labels (n_labels,) of entries with this covariance.

    Natural gradient steps begin at the sites of `start`, if given. Their length follows a fixed schedule, since
    expectations at points are not exact enough for a line search on the bound.
    """
    indicators = np.eye(n_classes)[labels]
    sites = ClassSites(np.zeros(indicators.shape), np.full(indicators.shape, 0.1)) if start is None else start.sites
    found = with_sites(covariance, sites)
    for number in range(MOST_STEPS):
        shares = _softmax(found.mean + np.sqrt(found.variance) * _points(n_classes))
        mean = shares.mean(axis=0)
        # equation (42)
        curvature = np.maximum(mean - np.einsum("ijk,ijk->jk", shares, shares) / len(shares), SMALLEST_CURVATURE)
        wanted = ClassSites(indicators - mean + curvature * found.mean, curvature)
        step = LARGEST_STEP * min(1.0, N_LARGEST / (number + 1))
        before, found = found, with_sites(covariance, found.sites.towards(wanted, step))
        if np.max(np.abs(found.mean - before.mean) / np.sqrt(found.variance)) < MEAN_TOLERANCE:
            return replace(found, converged=True)
    return found


def with_sites(covariance: Array, sites: ClassSites, converged: bool = False) -> LabelledField:
    """Latent fields of the classes with given sites; the same bits as `given_labels` with the sites that it found."""
    mean, variance, factors = np.empty_like(sites.linear), np.empty_like(sites.linear), []
    for place in range(sites.linear.shape[1]):
        roots = np.sqrt(sites.curvature[:, place, None])
        factor = cholesky(np.eye(len(roots)) + roots * covariance * roots.T, lower=True, check_finite=False)
        known = solve_triangular(factor, roots * covariance, lower=True, check_finite=False)
        prior = covariance @ sites.linear[:, place]
        mean[:, place] = prior - known.T @ solve_triangular(factor, roots[:, 0] * prior, lower=True)
        variance[:, place] = np.diag(covariance) - np.einsum("ij,ij->j", known, known)
        factors.append(factor)
    weights = sites.linear - sites.curvature * mean
    return LabelledField(weights, tuple(factors), sites, mean, variance, converged)
