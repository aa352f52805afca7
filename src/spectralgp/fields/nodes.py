"""What nodes share: two covariances of nodes, of what inputs explain and of the rest, in a basis that suits both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from spectralgp._basics.arrays import without_caches
from spectralgp._basics.checks import Array
from spectralgp.fields.shrinkage import Shrinkage
from spectralgp.kernels import GraphKernel
from spectralgp.spectra import FilterBank, Oblique, Spectrum

SERIES_OF_DRAWS = 1e-4  # of the largest term, below which the series of a residual's filter is cut for draws
LARGEST_NOISE = 0.99  # of the smallest variance of what inputs do not explain


class Nodes(ABC):
    """Covariances of nodes, ``G`` of what inputs explain and ``H`` of the rest, diagonal in one basis.

    ``H`` has the noise in it. Powers are functions of the basis's eigenvalues.
    """

    noise_variance: float

    @property
    @abstractmethod
    def basis(self) -> Spectrum:
        """Where both are diagonal."""

    @abstractmethod
    def power(self, eigenvalues: Array) -> Array:
        """Diagonal of ``G``."""

    @abstractmethod
    def response(self, eigenvalues: Array) -> Array:
        """A root of `power`, of either sign."""

    @abstractmethod
    def own(self, eigenvalues: Array) -> Array:
        """Diagonal of ``H``, the noise included."""

    @abstractmethod
    def draw_own(self, n_signals: int, random_state: np.random.Generator) -> Any:
        """A block drawn from ``N(0, H - noise)``."""


@dataclass(frozen=True, eq=False)
class GraphNodes(Nodes):
    """The graph's model: filters on its spectrum, and white noise.

    Parameters
    ----------
    spectrum : Spectrum
        Of the graph.
    kernel : GraphKernel
        Covariance between nodes, with a residual where there is one.
    noise_variance : float
        ``sigma^2``.
    """

    spectrum: Spectrum
    kernel: GraphKernel
    noise_variance: float

    __getstate__ = without_caches

    @cached_property
    def basis(self) -> Spectrum:
        return self.kernel.basis(self.spectrum)

    def power(self, eigenvalues: Array) -> Array:
        """``gamma``."""
        return self.kernel.power(eigenvalues)

    def response(self, eigenvalues: Array) -> Array:
        """``g``."""
        return self.kernel.response(eigenvalues)

    def _residual_response(self, eigenvalues: Array) -> Array:
        return np.sqrt(np.maximum(self.kernel.residual_power(eigenvalues), 0.0))[None]

    def own(self, eigenvalues: Array) -> Array:
        """``eta + sigma^2``."""
        return self.kernel.residual_power(eigenvalues) + self.noise_variance

    def draw_own(self, n_signals: int, random_state: np.random.Generator) -> Any:
        if self.kernel.residual is None:
            return 0.0
        return self.basis.filtered(self.basis.white(n_signals, random_state), self.residual_bank(n_signals))

    def residual_bank(self, n_signals: int) -> FilterBank:
        """The residual's filter for draws of signals.

        Without its floor ``h`` comes near zero as a root does, and a series for it is long. Draws are spared the last
        terms: where ``h`` is small they change the covariance by their square.
        """
        return FilterBank(self._residual_response, np.eye(n_signals), None, SERIES_OF_DRAWS)


@dataclass(frozen=True, eq=False)
class ShrunkNodes(Nodes):
    """The graph's model with the covariance ``R`` between its frequencies that signals showed: equations (18), (23).

    ``G = V D_a R D_a V^T`` and ``H = V D_h R D_h V^T`` with the graph's standard deviations ``a`` and ``h`` times the
    profile. Both are diagonal in vectors ``B`` that are not orthonormal, with ``H = B B^T``. The noise is as much of
    the graph's as is white in ``H``.

    Parameters
    ----------
    graph : GraphNodes
        The graph's model.
    shrinkage : Shrinkage
        ``R`` and the profile.
    """

    graph: GraphNodes
    shrinkage: Shrinkage

    def __getstate__(self) -> dict[str, Any]:
        """With the basis, which took an eigendecomposition, and nothing else that was computed."""
        return {**without_caches(self), "_turned": self._turned}

    @cached_property
    def _turned(self) -> tuple[Array, Oblique, Array]:
        """``g``, the basis, and the Cholesky factor of ``D_h R D_h``."""
        graph, spectrum = self.graph, self.graph.basis
        eigenvalues, profile = spectrum.eigenvalues, self.shrinkage.profile
        vectors = spectrum.require_eigenvectors("spectrum must be exact to shrink a covariance; got a quadrature.")
        scales = np.sqrt(graph.own(eigenvalues)) * profile
        ratios = np.sqrt(graph.power(eigenvalues)) * profile / scales
        root = self.shrinkage.root_of_mean
        # C^-1 D_a R D_a C^-T with C = D_h L is L^-1 D_a/h R D_a/h L^-T
        turned = solve_triangular(root, ratios[:, None] * root, lower=True, check_finite=False)
        power, directions = np.linalg.eigh(turned @ turned.T)
        factor = scales[:, None] * root
        dual = solve_triangular(factor, directions, lower=True, trans="T", check_finite=False)
        return (
            np.maximum(power, 0.0),
            Oblique(self.graph.spectrum, vectors @ (factor @ directions), vectors @ dual),
            factor,
        )

    @property
    def basis(self) -> Oblique:
        """``B``."""
        return self._turned[1]

    @cached_property
    def _rest(self) -> tuple[Array, Array]:
        """Eigenvalues and eigenvectors of ``H``, in the graph's basis."""
        factor = self._turned[2]
        values, axes = np.linalg.eigh(factor @ factor.T)
        return values, axes

    @cached_property
    def noise_variance(self) -> float:  # type: ignore[override]
        """As much of the graph's noise as is white in ``H``."""
        return min(self.graph.noise_variance, LARGEST_NOISE * float(self._rest[0][0]))

    def power(self, eigenvalues: Array) -> Array:
        """``g``."""
        return self._turned[0]

    def response(self, eigenvalues: Array) -> Array:
        """``sqrt(g)``."""
        return np.sqrt(self._turned[0])

    def own(self, eigenvalues: Array) -> Array:
        return np.ones(self._turned[0].size)

    def draw_own(self, n_signals: int, random_state: np.random.Generator) -> Any:
        """By a root of ``H - noise`` over the nodes."""
        values, axes = self._rest
        vectors = self.graph.basis.require_eigenvectors("spectrum must be exact.")
        root = axes * np.sqrt(np.maximum(values - self.noise_variance, 0.0))
        white = random_state.standard_normal((n_signals, values.size))
        return self.basis.load(white @ root.T @ vectors.T)
