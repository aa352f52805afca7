"""The two factors of a covariance: between signals at each mode of the nodes, and between nodes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import qr, solve_triangular

from spectralgp._basics.arrays import frozen, without_caches
from spectralgp._basics.checks import Array, Indices
from spectralgp.model.fields.shrinkage import Shrinkage
from spectralgp.model.kernels import GraphKernel, InputKernel, NewInputs, with_amplitude
from spectralgp.model.spectra import ExactSpectrum, FilterBank, Filters, Modes, Spectrum, modes_of, require_eigenvectors

PowersOfEigenvalues = Callable[[Array], tuple[Array, Array]]

CONTRADICTION = 1e-8  # of the prior variance: a more negative predictive variance is an error, not rounding
SERIES_OF_DRAWS = 1e-4  # relative size of the terms that the series of a residual's filter omits for draws
LARGEST_NOISE = 0.99  # of the smallest variance that inputs do not explain
LEAST_CONDITIONAL = 1e-10  # of the largest variance: smaller variances given the points are rounding
SMALLEST_MODE = 1e-12  # of the largest mode of the points; smaller ones are rounding
NO_MATRIX = (
    "{argument} if the covariance of very many signals is approximated by a low rank, without a dense matrix. "
    "Fit fewer signals."
)
NO_FURTHER_INPUTS = "a posterior is not conditioned on signals at further inputs; pass all new inputs at once"


class RowCovariance(ABC):
    """Processes over signals, one per mode of the nodes: ``C_j = p_j K_j + r_j I`` at mode j.

    ``p``, the variance that inputs explain, and ``r``, that of independent parts, are arrays of shape (n_modes,).
    Coordinates are combinations of the signals, shape (..., n_coordinates, n_modes), in which a kind computes.
    """

    @property
    @abstractmethod
    def n_signals(self) -> int:
        """Number of signals."""

    def load(self, signals: Array) -> Array:
        """Coordinates (..., n_coordinates, n_modes) of signals (..., n_signals, n_modes), of equal length."""
        return signals

    def unload(self, coordinates: Array) -> Array:
        """Signals with given coordinates."""
        return coordinates

    @abstractmethod
    def apply(self, coordinates: Array, power: Array, own: Array, exponent: float = 1.0) -> Array:
        """``C_j^e z_j`` for exponents of 1 and -1; 1/2 is any root ``R`` with ``R R^T = C_j``, and -1/2 its inverse."""

    @abstractmethod
    def log_determinants(self, power: Array, own: Array) -> Array:
        """``log |C_j|``, shape (n_modes,)."""

    def column(self, signal: int, power: Array, own: Array, exponent: float = 1.0) -> Array:
        """Entries of ``C_j``, or of its inverse, between every signal and one, shape (n_signals, n_modes)."""
        unit = np.zeros((self.n_signals, power.size))
        unit[signal] = 1.0
        return self.unload(self.apply(self.load(unit), power, own, exponent))

    @abstractmethod
    def diagonal(self, power: Array, own: Array, exponent: float = 1.0) -> Array:
        """Diagonals of ``C_j``, or of its inverse, shape (n_signals, n_modes)."""

    def at(self, new: Any, powers: PowersOfEigenvalues) -> PosteriorRows:
        """Posterior at new inputs given complete signals, with ``p`` and ``r`` as functions of eigenvalues."""
        raise NotImplementedError(NO_FURTHER_INPUTS)

    def joined(self, new: Any) -> RowCovariance:
        """These signals followed by those at new inputs."""
        raise NotImplementedError(NO_FURTHER_INPUTS)

    def largest(self, power: Array, own: Array) -> float:
        """Upper bound of the largest eigenvalue of all ``C_j``: the largest trace by default."""
        return float(np.max(self.diagonal(power, own).sum(axis=0)))

    def weighted_inverses(self, weights: Array, power: Array, own: Array) -> list[Modes]:
        """``sum_j w_j C_j^-1`` over the signals for every column of weights, by eigenvalues and eigenvectors."""
        columns = [self.column(signal, power, own, -1.0) @ weights for signal in range(self.n_signals)]
        return [modes_of(one) for one in np.moveaxis(np.array(columns), -1, 0)]

    def matrices(self, power: Array, own: Array) -> Array:
        """``C_j`` written out, shape (n_modes, n_signals, n_signals)."""
        columns = [self.column(signal, power, own) for signal in range(self.n_signals)]
        return np.stack(columns, axis=-1).transpose(1, 0, 2)


class PosteriorRows(Filters):
    """Posterior at new inputs, equation (8): means, as filters of the known signals' coordinates, and covariances."""

    @abstractmethod
    def variances(self, eigenvalues: Array) -> Array:
        """Posterior variances of the part that inputs explain, shape (n_inputs, n_eigenvalues)."""

    @abstractmethod
    def covariances(self, eigenvalues: Array) -> Array:
        """Posterior covariances between the new inputs, shape (n_eigenvalues, n_inputs, n_inputs)."""


@dataclass(frozen=True, eq=False)
class InputCovariance(RowCovariance):
    """One covariance ``K = U diag(kappa) U^T`` by inputs for all modes: ``D_ij = kappa_i p_j + r_j``, equation (12)."""

    modes: Modes

    @property
    def n_signals(self) -> int:
        return self.modes.values.size

    def load(self, signals: Array) -> Array:
        return self.modes.vectors.T @ signals

    def unload(self, coordinates: Array) -> Array:
        return self.modes.vectors @ coordinates

    def variances(self, power: Array, own: Array | float) -> Array:
        """``D``, shape (..., n_signals, n_modes); leading axes of `power` are filters."""
        return self.modes.values[:, None] * power[..., None, :] + own

    def apply(self, coordinates: Array, power: Array, own: Array, exponent: float = 1.0) -> Array:
        return self.variances(power, own) ** exponent * coordinates

    def log_determinants(self, power: Array, own: Array) -> Array:
        return np.log(self.variances(power, own)).sum(axis=0)

    def column(self, signal: int, power: Array, own: Array, exponent: float = 1.0) -> Array:
        return (self.modes.vectors * self.modes.vectors[signal]) @ self.variances(power, own) ** exponent

    def diagonal(self, power: Array, own: Array, exponent: float = 1.0) -> Array:
        return np.square(self.modes.vectors) @ self.variances(power, own) ** exponent

    def largest(self, power: Array, own: Array) -> float:
        return float(np.max(self.variances(power, own)))

    def weighted_inverses(self, weights: Array, power: Array, own: Array) -> list[Modes]:
        return [Modes(values, self.modes.vectors) for values in weights.T @ (1 / self.variances(power, own)).T]

    def at(self, new: NewInputs, powers: PowersOfEigenvalues) -> PosteriorInputRows:
        return PosteriorInputRows(self, new, powers, new.cross @ self.modes.vectors)

    def joined(self, new: NewInputs) -> InputCovariance:
        known = (self.modes.vectors * self.modes.values) @ self.modes.vectors.T
        together = modes_of(np.block([[known, new.cross.T], [new.cross, new.covariance]]))
        return InputCovariance(together.require_definite())


@dataclass(frozen=True, eq=False)
class LowRankCovariance(RowCovariance):
    """Covariance of many signals by the covariances of all inputs with a few points, equation (34): averaged FITC.

    ``K = U diag(kappa) U^T + k I`` has few modes, and ``D_ij = (kappa_i + k) p_j + r_j``. Orthogonal to ``U``, ``K`` is
    ``k``. Coordinates are those of the modes, followed by the residual of the signals.
    """

    vectors: Array  # U, shape (n_signals, rank), orthonormal
    values: Array  # kappa
    rest: float  # k, mean over the signals of their variances given the points
    points: Indices  # signals whose inputs represent all
    from_points: Array  # maps covariances with the points to those with the modes, shape (n_points, rank)

    @classmethod
    def of(
        cls, kernel: InputKernel, inputs: Array, points: Indices, scales: Array | None = None, amplitude: float = 1.0
    ) -> LowRankCovariance:
        """Covariance by points, of signals divided by `scales`, with all but the level multiplied by an `amplitude`."""
        cross = with_amplitude(kernel, kernel.columns(inputs, points), amplitude)
        variances = with_amplitude(kernel, kernel.variances(inputs), amplitude)
        inner = modes_of(cross[points]).require_definite()
        is_kept = inner.values > SMALLEST_MODE * np.max(inner.values, initial=0.0)
        root = inner.vectors[:, is_kept] / np.sqrt(inner.values[is_kept])
        factors = cross @ root  # Phi, with Phi Phi^T the covariance by way of the points
        left = variances - np.sum(np.square(factors), axis=1)
        if scales is not None:
            factors, left = factors / scales[:, None], left / scales**2
        axes, triangle = qr(factors, mode="economic", check_finite=False)
        turned, lengths, directions = np.linalg.svd(triangle)
        from_points = root @ (directions.T * lengths)
        if scales is not None:  # covariances with the points are divided by their scales
            from_points = scales[points, None] * from_points
        return cls(axes @ turned, lengths**2, float(max(np.mean(left), 0.0)), points, from_points)

    @property
    def n_signals(self) -> int:
        return self.vectors.shape[0]

    def load(self, signals: Array) -> Array:
        upper = self.vectors.T @ signals
        return np.concatenate([upper, signals - self.vectors @ upper], axis=-2)

    def unload(self, coordinates: Array) -> Array:
        rank = self.values.size
        return self.vectors @ coordinates[..., :rank, :] + coordinates[..., rank:, :]

    def variances(self, power: Array, own: Array) -> Array:
        """``D``, shape (rank, n_modes)."""
        return self.values[:, None] * power + self._outside(power, own)

    def _outside(self, power: Array, own: Array) -> Array:
        """``D`` orthogonal to the modes, shape (n_modes,)."""
        return self.rest * power + own

    def apply(self, coordinates: Array, power: Array, own: Array, exponent: float = 1.0) -> Array:
        rank = self.values.size
        upper = self.variances(power, own) ** exponent * coordinates[..., :rank, :]
        return np.concatenate([upper, self._outside(power, own) ** exponent * coordinates[..., rank:, :]], axis=-2)

    def log_determinants(self, power: Array, own: Array) -> Array:
        n_outside = self.n_signals - self.values.size
        return np.log(self.variances(power, own)).sum(axis=0) + n_outside * np.log(self._outside(power, own))

    def column(self, signal: int, power: Array, own: Array, exponent: float = 1.0) -> Array:
        outside = self._outside(power, own) ** exponent
        column: Array = (self.vectors * self.vectors[signal]) @ (self.variances(power, own) ** exponent - outside)
        column[signal] += outside
        return column

    def diagonal(self, power: Array, own: Array, exponent: float = 1.0) -> Array:
        outside = self._outside(power, own) ** exponent
        return outside + np.square(self.vectors) @ (self.variances(power, own) ** exponent - outside)

    def weighted_inverses(self, weights: Array, power: Array, own: Array) -> list[Modes]:
        raise ValueError(NO_MATRIX.format(argument="by must be 'signal' or 'entry'"))

    def at(self, new: NewInputs, powers: PowersOfEigenvalues) -> PosteriorInputRows:
        return PosteriorInputRows(self, new, powers, new.cross[:, self.points] @ self.from_points)

    def joined(self, new: Any) -> RowCovariance:
        raise ValueError(NO_MATRIX.format(argument="observed must be None"))


def greedy_points(kernel: InputKernel, inputs: Array, rank: int) -> Indices:
    """Signals whose inputs represent all: each has the largest variance given those before (pivoted Cholesky)."""
    left = kernel.variances(inputs).astype(float)
    largest, factors, points = float(np.max(left, initial=0.0)), np.empty((rank, left.size)), list[int]()
    while len(points) < min(rank, left.size):
        number, point = len(points), int(np.argmax(left))
        if left[point] <= LEAST_CONDITIONAL * largest:
            break
        own = kernel.columns(inputs, np.array([point]))[:, 0] - factors[:number, point] @ factors[:number]
        factors[number] = own / np.sqrt(left[point])
        left -= np.square(factors[number])
        left[point] = 0.0
        points.append(point)
    return np.array(points, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class PosteriorInputRows(PosteriorRows):
    """Equation (8) in the eigenbasis of the inputs."""

    rows: InputCovariance | LowRankCovariance  # of the known signals
    new: NewInputs
    powers: PowersOfEigenvalues
    weights: Array  # W^T, covariances of the new inputs with the modes, shape (n_inputs, n_modes of the inputs)
    gains: Array | None = None  # gamma^2 s / D^2, of latent signals with posterior variances s at the modes

    @property
    def n_signals(self) -> int:
        """Number of new inputs."""
        return len(self.weights)

    def _precisions(self, eigenvalues: Array) -> Array:
        return 1 / self.rows.variances(*self.powers(eigenvalues))

    def apply(self, coefficients: Array, eigenvalues: Array) -> Array:
        """``gamma W^T / D`` times the coordinates of the modes."""
        of_modes = coefficients[..., : self.weights.shape[1], :]
        return self.powers(eigenvalues)[0] * (self.weights @ (self._precisions(eigenvalues) * of_modes))

    def matrices(self, eigenvalues: Array) -> Array:
        return self.weights[:, :, None] * self._precisions(eigenvalues) * self.powers(eigenvalues)[0]

    def variances(self, eigenvalues: Array) -> Array:
        """``gamma k(x*, x*) - gamma^2 sum_i W_i^2 / D_i``."""
        power = self.powers(eigenvalues)[0]
        prior = np.multiply.outer(self.new.variances, power)
        left = prior - power**2 * (np.square(self.weights) @ self._precisions(eigenvalues))
        if np.any(left < -CONTRADICTION * np.max(prior, initial=0.0)):
            raise ValueError(
                "Covariances of new inputs must be consistent with their cross-covariance; got a predictive "
                f"variance of {np.min(left):.3g}. Check that both come from one kernel."
            )
        left = np.maximum(left, 0.0)  # removes rounding
        return left if self.gains is None else left + np.square(self.weights) @ self.gains

    def covariances(self, eigenvalues: Array) -> Array:
        self.variances(eigenvalues)  # raises if covariances contradict each other
        power = self.powers(eigenvalues)[0][:, None, None]
        scaled = self.weights[None] * self._precisions(eigenvalues).T[:, None, :]
        left = power * self.new.covariance - power**2 * (scaled @ self.weights.T)
        return left if self.gains is None else left + (self.weights[None] * self.gains.T[:, None, :]) @ self.weights.T


@dataclass(frozen=True, eq=False)
class BlockCovariance(RowCovariance):
    """Posterior covariance at new inputs given complete signals, ``S_j + r_j I`` at mode j.

    ``S_j`` includes the power of the mode, so that `power` is ignored. Coordinates are the signals themselves.
    """

    left: PosteriorRows
    eigenvalues: Array  # one per mode

    @cached_property
    def _variances(self) -> Array:
        return self.left.variances(self.eigenvalues)

    @cached_property
    def _modes(self) -> tuple[Array, Array]:
        """Eigenvalues (n_modes, n_signals) and eigenvectors of every block."""
        values, vectors = np.linalg.eigh(self.left.covariances(self.eigenvalues))
        return np.maximum(values, 0.0), vectors

    @property
    def n_signals(self) -> int:
        return self._variances.shape[0]

    def _spectrum(self, own: Array) -> Array:
        return self._modes[0] + own[:, None]

    def apply(self, coordinates: Array, power: Array, own: Array, exponent: float = 1.0) -> Array:
        vectors, values = self._modes[1], self._spectrum(own) ** exponent
        turned = np.einsum("jab,...aj->...bj", vectors, coordinates, optimize=True) * values.T
        return np.einsum("jab,...bj->...aj", vectors, turned, optimize=True)

    def log_determinants(self, power: Array, own: Array) -> Array:
        return np.log(self._spectrum(own)).sum(axis=1)

    def diagonal(self, power: Array, own: Array, exponent: float = 1.0) -> Array:
        if exponent == 1.0:  # takes no eigendecomposition
            return self._variances + own
        return np.einsum("jab,jb->aj", np.square(self._modes[1]), self._spectrum(own) ** exponent)

    def matrices(self, power: Array, own: Array) -> Array:
        return self.left.covariances(self.eigenvalues) + own[:, None, None] * np.eye(self.n_signals)


class NodeCovariance(ABC):
    """Covariances of nodes, ``G`` explained by inputs and ``H`` of the rest and the noise, diagonal in one basis."""

    noise_variance: float
    basis: Spectrum  # both are diagonal in it

    @abstractmethod
    def powers(self, eigenvalues: Array) -> tuple[Array, Array]:
        """``p`` and ``r``, the diagonals of ``G`` and ``H``."""

    @abstractmethod
    def draw_own(self, n_signals: int, random_state: np.random.Generator) -> Any:
        """A block drawn from ``N(0, H - noise)``."""


@dataclass(frozen=True, eq=False)
class GraphNodeCovariance(NodeCovariance):
    """Covariances of nodes by filters on the graph's spectrum, and white noise."""

    basis: Spectrum  # of the kernel
    kernel: GraphKernel  # with its residual, if any
    noise_variance: float
    white_variance: float = 0.0  # of latent signals: white, but no noise

    def powers(self, eigenvalues: Array) -> tuple[Array, Array]:
        """``gamma`` and ``eta + sigma^2``."""
        own = self.kernel.residual_power(eigenvalues) + self.white_variance
        return self.kernel.power(eigenvalues), own + self.noise_variance

    def draw_own(self, n_signals: int, random_state: np.random.Generator) -> Any:
        drawn: Any = 0.0
        if self.white_variance:
            drawn = self.basis.white(n_signals, random_state) * float(np.sqrt(self.white_variance))
        if self.kernel.residual is None:
            return drawn
        return drawn + self.basis.filtered(self.basis.white(n_signals, random_state), self.residual_bank(n_signals))

    def residual_bank(self, n_signals: int) -> FilterBank:
        """The residual's filter ``h`` for draws of signals."""

        def response(eigenvalues: Array) -> Array:
            return np.sqrt(np.maximum(self.kernel.residual_power(eigenvalues), 0.0))[None]

        # h nears zero as a root does, so its series is long; the last terms change the covariance by their square
        return FilterBank(response, np.eye(n_signals), None, SERIES_OF_DRAWS)


@dataclass(frozen=True, eq=False)
class ShrunkNodeCovariance(NodeCovariance):
    """Covariances of nodes with a learnt covariance ``R`` between the graph's frequencies: equations (14), (15).

    ``G = V D_a R D_a V^T`` and ``H = V D_h R D_h V^T`` with the graph's standard deviations ``a`` and ``h`` times the
    profile. Both are diagonal in vectors ``B`` that are not orthonormal, with ``H = B B^T``. The noise is the part of
    the graph's noise that is white in ``H``. The basis's eigenvalues merely number its vectors.
    """

    graph: GraphNodeCovariance
    shrinkage: Shrinkage
    basis: ExactSpectrum  # B
    power: Array  # the diagonal of G in it
    factor: Array  # Cholesky factor of D_h R D_h; its diagonal if it is diagonal

    __getstate__ = without_caches

    @classmethod
    def of(cls, graph: GraphNodeCovariance, shrinkage: Shrinkage) -> ShrunkNodeCovariance:
        """Find the basis by one eigendecomposition."""
        profile = shrinkage.profile
        vectors = require_eigenvectors(graph.basis, "spectrum must be exact to shrink a covariance; got a quadrature.")
        power, own = graph.powers(graph.basis.eigenvalues)
        scales = np.sqrt(own) * profile
        ratios = np.sqrt(power) * profile / scales
        if shrinkage.is_identity:
            power, factor, diagonal = np.square(ratios), scales, scales
            forward, dual = vectors * scales, vectors / scales
        else:
            root = shrinkage.root_of_mean
            # C^-1 D_a R D_a C^-T with C = D_h L is L^-1 D_a/h R D_a/h L^-T
            turned = solve_triangular(root, ratios[:, None] * root, lower=True, check_finite=False)
            values, directions = np.linalg.eigh(turned @ turned.T)
            power, factor = np.maximum(values, 0.0), scales[:, None] * root
            dual = vectors @ solve_triangular(factor, directions, lower=True, trans="T", check_finite=False)
            forward, diagonal = vectors @ (factor @ directions), np.diagonal(factor)
        numbers, log_volume = frozen(np.arange(float(len(vectors)))), float(np.sum(np.log(diagonal)))
        basis = ExactSpectrum(graph.basis.graph, graph.basis.laplacian, False, numbers, forward, dual, log_volume)
        return cls(graph, shrinkage, basis, power, factor)

    @cached_property
    def _rest(self) -> tuple[Array, Array | None]:
        """Eigenvalues and eigenvectors of ``H``, in the graph's basis; None for unit vectors."""
        if self.shrinkage.is_identity:
            return np.square(self.factor), None
        values, axes = np.linalg.eigh(self.factor @ self.factor.T)
        return values, axes

    @cached_property
    def noise_variance(self) -> float:  # type: ignore[override]
        """Part of the graph's noise that is white in ``H``."""
        return min(self.graph.noise_variance, LARGEST_NOISE * float(np.min(self._rest[0])))

    def powers(self, eigenvalues: Array) -> tuple[Array, Array]:
        return self.power, np.ones(self.power.size)

    def draw_own(self, n_signals: int, random_state: np.random.Generator) -> Any:
        """By a root of ``H - noise`` over the nodes."""
        values, axes = self._rest
        white = random_state.standard_normal((n_signals, values.size))
        drawn = white * np.sqrt(np.maximum(values - self.noise_variance, 0.0))
        if axes is None:
            return drawn / self.factor
        vectors = require_eigenvectors(self.graph.basis, "")
        return self.basis.load(drawn @ axes.T @ vectors.T)
