"""Covariances of signals on the nodes of a graph, noise included, and the evidence of signals."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from spectralgp._basics.arrays import on_host, times_matrix, without_caches
from spectralgp._basics.checks import Array, Indices, Mask
from spectralgp.model.fields.factors import (
    BlockCovariance,
    GraphNodeCovariance,
    InputCovariance,
    NodeCovariance,
    PosteriorInputRows,
    PosteriorRows,
    RowCovariance,
)
from spectralgp.model.signals import Signals
from spectralgp.model.spectra import FilterBank, Filters, Modes, SpectralData

SLACK = 0.3  # relative truncation error of the series of a preconditioner, of its smallest value
NO_COVARIANCE = (
    "Covariances between nodes are not available on a large graph: they would have {n_nodes}^2 entries. Ask for the "
    "standard deviation at chosen nodes, or draw samples."
)


@dataclass(frozen=True, eq=False)
class LeaveOneOutErrors:
    """Errors of leave-one-out predictions: equation (10). If signals have scales, variances are of a new signal."""

    signals: Any  # as a block of the spectrum
    errors: Any  # a block
    lengths: Array  # e^T C^-1 e of every error, with the covariance of a signal of its scale
    logs: Array  # log |C|, of a new signal
    variances: Callable[[], tuple[Any, Array]]  # over the nodes, shape (n_signals, n_nodes), and their errors
    stretch: Array  # ratio of lengths with the covariance of a new signal to `lengths`


class SignalDistribution(ABC):
    """Covariance ``C`` of observed signals, noise included, with the operations of predictions."""

    nodes: NodeCovariance
    rows: Any  # a `RowCovariance`, or the `PosteriorRows` of new inputs
    is_written_out: ClassVar[bool] = True  # whether single entries are known

    @property
    def basis(self) -> Any:
        """Basis of the nodes."""
        return self.nodes.basis

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of signals and nodes."""
        return self.rows.n_signals, self.basis.graph.n_nodes

    @property
    def noise_variance(self) -> float:
        """Variance ``s`` of white noise, part of ``C``."""
        return self.nodes.noise_variance

    @cached_property
    def powers(self) -> tuple[Array, Array]:
        """``p`` and ``r``, the variances that inputs explain and those they do not, at the modes of the nodes."""
        return self.nodes.powers(self.basis.eigenvalues)

    @abstractmethod
    def draw_signal(self, random_state: np.random.Generator) -> Any:
        """A block drawn from ``N(0, C - s)``, the signals without noise."""


def white_noise(distribution: SignalDistribution, random_state: np.random.Generator) -> Any:
    """A block of white noise with the noise variance."""
    return distribution.basis.white(distribution.shape[0], random_state) * float(np.sqrt(distribution.noise_variance))


def _rows_at(distribution: SignalDistribution, eigenvalues: Array) -> RowCovariance:
    """Covariances of the signals at modes of the nodes."""
    rows = distribution.rows
    return BlockCovariance(rows, eigenvalues) if isinstance(rows, PosteriorRows) else rows


def signal_variances(distribution: SignalDistribution, nodes: Indices | None = None) -> tuple[Any, Array]:
    """Variances at all nodes or some, equation (9), and their root mean square standard errors, one per signal."""

    def at(eigenvalues: Array) -> Array:
        return _rows_at(distribution, eigenvalues).diagonal(*distribution.nodes.powers(eigenvalues))

    return distribution.basis.diagonals(at, nodes)


def mode_matrices(distribution: SignalDistribution) -> Array:
    """Covariances between the signals at each mode of the nodes, shape (n_modes, n_signals, n_signals)."""
    return _rows_at(distribution, distribution.basis.eigenvalues).matrices(*distribution.powers)


def marginal_lengths(distribution: SignalDistribution, errors: SpectralData) -> tuple[Array, Array]:
    """``e^T C^-1 e`` and ``log |C|`` of each signal alone; `errors` are read on the spectrum."""
    variances = _rows_at(distribution, distribution.basis.eigenvalues).diagonal(*distribution.powers)
    logs = np.log(variances) @ errors.multiplicities + 2 * distribution.basis.log_volume
    return np.sum(errors.energies / variances, axis=1), logs


def sequential_lengths(
    distribution: SignalDistribution, errors: SpectralData, chosen: Any = slice(None)
) -> tuple[Array, Array]:
    """``e^T C^-1 e`` and ``log |C|`` of each signal given the earlier ones: of all signals, or of chosen ones."""
    factors = np.asarray(np.linalg.cholesky(mode_matrices(distribution)[:, chosen][:, :, chosen]), dtype=float)
    logs = 2 * np.log(np.diagonal(factors, axis1=1, axis2=2)).T @ errors.multiplicities
    return errors.quadratics(factors), logs + 2 * distribution.basis.log_volume


class Covariance(SignalDistribution):
    """A covariance ``C`` that can be solved with; blocks of `load` are over the nodes, and multiply entry by entry."""

    finest: float  # smallest sensible tolerance of a solve

    @property
    @abstractmethod
    def largest(self) -> float:
        """Upper bound of the largest eigenvalue of ``C``."""

    def load(self, values: Array) -> Any:
        """Values (..., n_signals, n_nodes) as a block."""
        return values

    def unload(self, block: Any) -> Array:
        """Values of a block, on the host."""
        return block

    def repeated(self, n_sets: int) -> Covariance:
        """Covariance of independent sets of such signals, one set after the other; itself if blocks can be stacked."""
        return self

    @abstractmethod
    def inner(self, left: Any, right: Any) -> Any:
        """Sums of the products of two blocks' entries, one per set of signals, that multiply blocks."""

    @abstractmethod
    def times(self, block: Any) -> Any:
        """``C y``."""

    @abstractmethod
    def solve(self, block: Any) -> Any:
        """``C^-1 y``."""

    @abstractmethod
    def precondition(self, block: Any) -> tuple[Any, Any]:
        """``x = s C^-1 y``, or near it, with the noise ``s``, and ``(C - s) x``: a step of conjugate gradients."""

    @abstractmethod
    def inverse_diagonal(self) -> Array:
        """Diagonal of ``C^-1``, shape (n_signals, n_nodes)."""

    @abstractmethod
    def coordinates(self, block: Any) -> Any:
        """Block of the spectrum in the coordinates of `PosteriorRows`."""

    @abstractmethod
    def read(self, signals: Signals) -> Any:
        """Signals in these coordinates; read on use if they are large."""

    @abstractmethod
    def at(self, new: Any) -> tuple[Filters, SignalDistribution]:
        """Filters from coordinates of complete signals to means at new inputs, and the posterior covariance there."""

    @abstractmethod
    def left_out(
        self, block: Any, signals: Signals, shares: bool, has_energies: bool, errors: Any = None
    ) -> LeaveOneOutErrors:
        """Leave-one-out errors of signals with given coordinates.

        With `shares` a signal is left out of the nodes' means too, which lose ``y_n / (n - 1)`` without signal n. With
        `has_energies` the block is that of `signals`, whose energies may be known. On an exact spectrum `errors` of
        another model may be given, as a block.
        """


def with_new_inputs(covariance: Any, new: Any) -> Any:
    """Covariance of signals and, after them, of those at new inputs."""
    return replace(covariance, rows=covariance.rows.joined(new))


def log_determinant(covariance: Covariance) -> float:
    """``log |C|``."""
    logs = float(covariance.rows.log_determinants(*covariance.powers) @ covariance.basis.multiplicities)
    return logs + 2 * covariance.shape[0] * covariance.basis.log_volume


def joint_log_density(covariance: Covariance, block: Any) -> float:
    """Joint log density of a block of the spectrum about zero, with the 2 pi term."""
    if covariance.is_written_out:
        rows = covariance.rows
        length = np.sum(np.square(rows.apply(rows.load(block), *covariance.powers, exponent=-0.5)))
    else:
        length = np.sum(sequential_lengths(covariance, covariance.basis.read_block(block))[0])
    n_values = covariance.shape[0] * covariance.shape[1]
    return -0.5 * float(length + log_determinant(covariance) + n_values * np.log(2 * np.pi))


def with_entries(distribution: SignalDistribution) -> ModalCovariance:
    """The covariance itself, whose entries are known; raises on a quadrature."""
    if not isinstance(distribution, ModalCovariance):
        raise ValueError(NO_COVARIANCE.format(n_nodes=distribution.shape[1]))
    return distribution


@dataclass(frozen=True, eq=False)
class ModalCovariance(Covariance):
    """``C = sum_j (b_j b_j^T) (x) (p_j K_j + r_j I)``: rows of any kind in a basis of the nodes that is known."""

    rows: RowCovariance
    nodes: NodeCovariance

    __getstate__ = without_caches

    finest = 1e-8

    @cached_property
    def largest(self) -> float:
        """Largest eigenvalue at any mode times ``|B B^T|`` of a basis that is not orthonormal."""
        found, vectors = self.rows.largest(*self.powers), self.basis.forward
        return found if vectors is self.basis.backward else found * float(np.linalg.norm(vectors @ vectors.T, 1))

    @property
    def dual(self) -> Array:
        """Inverse of the transpose of the vectors."""
        return self.basis.eigenvectors if self.basis.backward is None else self.basis.backward

    def inner(self, left: Array, right: Array) -> Array:
        return np.einsum("...ij,...ij->...", left, right)[..., None, None]

    def times(self, block: Array) -> Array:
        loaded = block if self.basis.forward is None else times_matrix(block, self.basis.forward)
        return self.basis.unload(self.rows.unload(self.rows.apply(self.rows.load(loaded), *self.powers)))

    def solve(self, block: Array) -> Array:
        found = self.rows.unload(self.rows.apply(self.rows.load(self.basis.load(block)), *self.powers, exponent=-1))
        return found if self.basis.backward is None else times_matrix(found, self.basis.backward.T)

    def precondition(self, block: Array) -> tuple[Array, Array]:
        """Exactly: ``(C - s) x = s (y - x)`` takes no product."""
        found = self.noise_variance * self.solve(block)
        return found, self.noise_variance * (block - found)

    def draw_signal(self, random_state: np.random.Generator) -> Array:
        white = self.rows.load(self.basis.white(self.shape[0], random_state))
        power, nothing = np.maximum(self.powers[0], 0.0), np.zeros_like(self.powers[1])
        shared = self.rows.unload(self.rows.apply(white, power, nothing, exponent=0.5))
        return self.basis.unload(shared + self.nodes.draw_own(self.shape[0], random_state))

    @cached_property
    def _variances(self) -> Array:
        return self.rows.diagonal(*self.powers)

    @cached_property
    def _precisions(self) -> Array:
        return self.rows.diagonal(*self.powers, -1.0)

    def inverse_diagonal(self) -> Array:
        """``sum_j (C_j^-1)_nn B^-T_mj^2``."""
        return self._precisions @ np.square(self.dual).T

    def between(self, signal: int, other: int, inverse: bool = False, nodes: Any = slice(None)) -> Array:
        """Entries of ``C`` or ``C^-1`` between nodes of two signals, ``B diag((C_j)_nn') B^T``."""
        side = (self.dual if inverse else self.basis.eigenvectors)[nodes]
        if signal == other:
            return (side * (self._precisions if inverse else self._variances)[signal]) @ side.T
        return (side * self.rows.column(other, *self.powers, -1.0 if inverse else 1.0)[signal]) @ side.T

    def submatrix(self, chosen: Mask, inverse: bool = False) -> Array:
        """Entries of ``C`` or ``C^-1`` between entries chosen by a mask, row by row."""
        signals, places = np.nonzero(chosen)
        side = (self.dual if inverse else self.basis.eigenvectors)[places]
        starts = np.searchsorted(signals, np.arange(self.shape[0] + 1))
        entries = np.empty((signals.size, signals.size))
        for signal in range(self.shape[0]):
            own, others = slice(starts[signal], starts[signal + 1]), slice(0, starts[signal + 1])
            if own.start < own.stop:
                across = self.rows.column(signal, *self.powers, -1.0 if inverse else 1.0)
                entries[own, others] = side[own] @ (across[signals[others]] * side[others]).T
                entries[others, own] = entries[own, others].T
        return entries

    def coordinates(self, block: Array) -> Array:
        return self.rows.load(block)

    def read(self, signals: Signals) -> Array:
        return self.rows.load(self.basis.coefficients(signals))

    def at(self, new: Any) -> tuple[Filters, ModalCovariance]:
        left = self.rows.at(new, self.nodes.powers)
        return left, ModalCovariance(BlockCovariance(left, self.basis.eigenvalues), self.nodes)

    def left_out(
        self, block: Array, signals: Signals, shares: bool, has_energies: bool, errors: Any = None
    ) -> LeaveOneOutErrors:
        rows, powers, values = self.rows, self.powers, self.rows.unload(block)
        precisions, scales = rows.diagonal(*powers, -1.0), signals.units.signal_scales
        if errors is None:
            errors = rows.unload(rows.apply(block, *powers, exponent=-1)) / precisions
            if shares:
                scale = np.ones((len(values), 1)) if scales is None else scales[:, None]
                sums = rows.unload(rows.apply(rows.load(np.ones(values.shape) / scale), *powers, exponent=-1))
                errors = errors + sums / precisions * (values * scale) / (self.shape[0] - 1)
        lengths = np.sum(np.square(errors) * precisions, axis=1)
        stretch = np.ones(len(lengths))
        if scales is not None:  # the unexplained part of a signal has the variance one, in place of its scale squared
            precisions = 1 / (1 / precisions - (1 - scales[:, None] ** -2.0) * powers[1])
            stretch = np.sum(np.square(errors) * precisions, axis=1) / np.where(lengths > 0, lengths, 1.0)
        logs = 2 * self.basis.log_volume - np.log(precisions).sum(axis=1)
        variances = partial(self.basis.diagonals, lambda _: 1 / precisions)
        return LeaveOneOutErrors(values, errors, lengths, logs, variances, stretch)

    def row_sums(self) -> Array:
        """Sums of ``C^-1`` between each entry and those of all signals at its node, shape (n_signals, n_nodes)."""
        ones = self.rows.load(np.ones(self.shape))
        return self.rows.unload(self.rows.apply(ones, *self.powers, exponent=-1)) @ np.square(self.dual).T

    def across(self, chosen: Mask, signal: int, nodes: Any) -> Array:
        """Entries of ``C^-1`` between chosen entries and nodes of a signal, ``B^-T diag((C_j^-1)_nn') B^-1``."""
        signals, places = np.nonzero(chosen)
        column = self.rows.column(signal, *self.powers, -1.0)
        return (self.dual[places] * column[signals]) @ self.dual[nodes].T

    @cached_property
    def at_nodes(self) -> list[Modes]:
        """``C^-1`` between the signals at each node, ``sum_j B^-T_mj^2 C_j^-1``, by eigenvectors."""
        return self.rows.weighted_inverses(np.square(self.dual).T, *self.powers)

    def rescaled(self, signal: Array, noise: Array, scales: Array) -> tuple[Array, Array]:
        """Drawn signals and noise with heavy tails, by the factors of densities: equation (18)."""
        if self.shape[0] == 1:
            return signal * scales, noise * scales
        factors = np.linalg.cholesky(mode_matrices(self))

        def moved(noisy: Array) -> Array:
            whitened = np.linalg.solve(factors, self.basis.load(noisy).T[:, :, None])[:, :, 0].T
            return self.basis.unload(np.einsum("jab,bj->aj", factors, whitened * (scales - 1), optimize=True))

        return rescaled(signal, noise, scales, self.noise_variance, moved, self.solve)


@dataclass(frozen=True, eq=False)
class QuadratureCovariance(Covariance):
    """The covariance of signals with inputs on a quadrature, by Chebyshev series."""

    rows: InputCovariance
    nodes: GraphNodeCovariance

    is_written_out = False
    __getstate__ = without_caches

    @property
    def largest(self) -> float:
        return self.rows.largest(*self.powers)

    @property
    def finest(self) -> float:  # type: ignore[override]
        """Smallest sensible tolerance of a solve."""
        return 3e-8 if str(self.basis.operator.dtype).endswith("64") else 1e-5

    def repeated(self, n_sets: int) -> QuadratureCovariance:
        several = Modes(np.tile(self.rows.modes.values, n_sets), self.rows.modes.vectors)  # the vectors are of a set
        return self if n_sets == 1 else QuadratureCovariance(InputCovariance(several), self.nodes)

    def load(self, values: Array) -> Any:
        return self.basis.load(values.reshape(-1, values.shape[-1]))

    def unload(self, block: Any) -> Array:
        return np.asarray(on_host(self.basis.unload(block)))

    def inner(self, left: Any, right: Any) -> float:
        return self.basis.inner(left, right)

    def _variances(self, eigenvalues: Array) -> Array:
        return self.rows.variances(*self.nodes.powers(eigenvalues))

    def _precisions(self, eigenvalues: Array) -> Array:
        return 1 / self._variances(eigenvalues)

    def _filtered(self, block: Any, series: Array) -> Any:
        vectors = self.rows.modes.vectors
        if np.array_equal(vectors, np.eye(len(vectors))):  # signals are independent: they are their own coordinates
            return self.basis.each_filtered(block, series)
        return self.basis.combined(self.basis.each_filtered(self.coordinates(block), series), vectors)

    @cached_property
    def _series(self) -> Array:
        return self.basis.series(self._variances)

    @cached_property
    def _short_series(self) -> Array:
        return self.basis.series(self._precisions, SLACK)

    def times(self, block: Any) -> Any:
        return self._filtered(block, self._series)

    def solve(self, block: Any) -> Any:
        return self._filtered(block, self.basis.series(self._precisions))

    def precondition(self, block: Any) -> tuple[Any, Any]:
        found = self._filtered(block, self._short_series) * self.noise_variance
        return found, self.times(found) - found * self.noise_variance

    def draw_signal(self, random_state: np.random.Generator) -> Any:
        def root(eigenvalues: Array) -> Array:
            return np.outer(np.sqrt(self.rows.modes.values), self.nodes.kernel.response(eigenvalues))

        shared = self._filtered(self.basis.white(self.shape[0], random_state), self.basis.series(root))
        return shared + self.nodes.draw_own(self.shape[0], random_state)

    def inverse_diagonal(self) -> Array:
        squares, variances = np.square(self.rows.modes.vectors), self._variances(self.basis.eigenvalues)
        diagonals, _ = self.basis.diagonals(lambda eigenvalues: squares @ self._precisions(eigenvalues))
        largest, smallest = squares @ (1 / np.min(variances, axis=1)), squares @ (1 / np.max(variances, axis=1))
        return np.clip(np.asarray(on_host(diagonals)), smallest[:, None], largest[:, None])

    def coordinates(self, block: Any) -> Any:
        return self.basis.combined(block, self.rows.modes.vectors.T)

    def read(self, signals: Signals) -> Any:
        return self.basis.block(signals, self.rows.modes.vectors)

    def at(self, new: Any) -> tuple[Filters, QuadraturePosterior]:
        left = self.rows.at(new, self.nodes.powers)
        return left, QuadraturePosterior(left, self.nodes, self)

    def left_out(
        self, block: Any, signals: Signals, shares: bool, has_energies: bool, errors: Any = None
    ) -> LeaveOneOutErrors:
        basis, vectors, squares = self.basis, self.rows.modes.vectors, np.square(self.rows.modes.vectors)

        def variances(eigenvalues: Array) -> Array:
            return 1 / (squares @ self._precisions(eigenvalues))

        def own_shares(eigenvalues: Array) -> Array:
            sums = (vectors * vectors.sum(axis=0)) @ self._precisions(eigenvalues)
            return sums * variances(eigenvalues) / (self.shape[0] - 1)

        missed = FilterBank(self._precisions, vectors, variances, added=own_shares if shares else None)
        errors = basis.filtered(block, missed)
        # reading a block overwrites it
        data = basis.read_filtered(signals, vectors, missed) if has_energies else basis.read_block(errors * 1.0)
        found = variances(basis.eigenvalues)
        lengths, logs = np.sum(data.energies / found, axis=1), np.log(found) @ data.multiplicities
        known, diagonals = basis.combined(block, vectors), partial(basis.diagonals, variances)
        return LeaveOneOutErrors(known, errors, lengths, logs, diagonals, np.ones(len(lengths)))


@dataclass(frozen=True, eq=False)
class QuadraturePosterior(SignalDistribution):
    """Posterior covariance at new inputs given complete signals, on a quadrature: diagonals, densities and draws."""

    rows: PosteriorInputRows
    nodes: NodeCovariance
    known: QuadratureCovariance  # the covariance of the known signals, for draws

    is_written_out = False

    def draw_signal(self, random_state: np.random.Generator) -> Any:
        basis, n_known = self.basis, self.known.shape[0]
        drawn = with_new_inputs(self.known, self.rows.new).draw_signal(random_state)
        everything = np.eye(n_known + self.shape[0])
        missed = basis.combined(drawn, everything[:n_known]) + white_noise(self.known, random_state)
        corrected = basis.filtered(self.known.coordinates(missed), self.rows)
        return basis.combined(drawn, everything[n_known:]) - corrected


def errors_at_new(
    posterior: SignalDistribution, signals: Signals, known: Signals, centre: Callable[[], Any]
) -> SpectralData:
    """Signals at new inputs less their mean given known ones, for densities; on a quadrature without another pass."""
    if isinstance(posterior, QuadraturePosterior):
        return posterior.basis.read_residual(signals, known, posterior.known.rows.modes.vectors, posterior.rows)
    return posterior.basis.read_block(posterior.basis.coefficients(signals) - centre())


def rescaled(
    signal: Array,
    noise: Array,
    scales: Array,
    noise_variance: float,
    moved: Callable[[Array], Array],
    solve: Callable[[Array], Array],
) -> tuple[Array, Array]:
    """Drawn signals and noise, each scaled in the part that earlier signals do not determine.

    `moved` returns the change of noisy values by scaling, `solve` the product with the inverse of their covariance.
    """
    noisy = signal + noise
    added = moved(noisy)
    left = signal - noisy + noise_variance * solve(noisy)  # of the signals given their noisy values
    scaled = signal + added - noise_variance * solve(added) + (scales - 1) * left
    return scaled, noisy + added - scaled


@dataclass(frozen=True, eq=False)
class Evidence:
    """Log marginal likelihood of signals, with its derivatives in all parts of the covariance."""

    rows: InputCovariance
    power: Array  # gamma, one per frequency
    own: Array  # eta + sigma^2
    data: SpectralData  # signals in both eigenbases, Z = U^T Y V, or their energies there

    @cached_property
    def precisions(self) -> Array:
        """``1 / D``."""
        return 1 / self.rows.variances(self.power, self.own)

    @cached_property
    def log_likelihood(self) -> float:
        """Total in nats, the 2 pi term included: equations (5) and (26)."""
        logs = -float(np.sum(np.log(self.precisions) @ self.data.multiplicities))
        length = float(np.vdot(self.data.energies, self.precisions))
        return -0.5 * (logs + length + self.data.n_observations * float(np.log(2 * np.pi)))

    @cached_property
    def slopes(self) -> Array:
        """``E_ij``, the derivative in ``D_ij``: equation (6). Their sum is that in the noise variance."""
        slopes = self.data.energies * self.precisions
        slopes -= self.data.multiplicities  # in place, which saves more time than the sums take
        slopes *= 0.5 * self.precisions
        return slopes

    @cached_property
    def power_gradient(self) -> Array:
        """Derivative in the power at each frequency, equation (6)."""
        return self.rows.modes.values @ self.slopes

    @cached_property
    def input_covariance_gradient(self) -> Array:
        """Derivative in the entries of ``U^T K U``, equation (7), shape (n_signals, n_signals)."""
        gradient = self.data.gram(np.sqrt(self.power) * self.precisions)
        gradient[np.diag_indices_from(gradient)] -= self.precisions @ (self.power * self.data.multiplicities)
        return 0.5 * gradient

    @cached_property
    def node_covariance_gradient(self) -> Array:
        """Derivative in the entries of ``V^T B B^T V``, shape (n_nodes, n_nodes): equation (7) with sides exchanged."""
        inputs, precisions = self.rows.modes.values, self.precisions
        gradient = self.data.node_gram(np.sqrt(inputs)[:, None] * precisions)
        gradient[np.diag_indices_from(gradient)] -= (inputs[:, None] * precisions).sum(axis=0)
        return 0.5 * gradient
