"""Interface of a graph's spectrum, exact or approximated by a quadrature."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg import eigh

from spectralgp._basics.arrays import few_threads
from spectralgp._basics.checks import Array, Indices
from spectralgp._basics.saved import Number
from spectralgp.graphs import GraphBase, LaplacianKind
from spectralgp.model.signals import Signals

OfEigenvalues = Callable[[Array], Array]  # functions, from shape (n_eigenvalues,) to (n_functions, n_eigenvalues)
NEGATIVE_ROUNDING = 1e-8  # of the largest eigenvalue: below zero by less than this is rounding


@dataclass(frozen=True, eq=False)
class Modes:
    """Non-negative eigenvalues and orthonormal eigenvectors (in columns) of a covariance. Made by `modes_of`."""

    values: Array
    vectors: Array
    smallest: float = 0.0  # computed eigenvalue; if it is negative, zero replaces it among the values

    def require_definite(self) -> Self:
        """Return the modes; raise ValueError if an eigenvalue is negative by more than rounding."""
        largest = float(np.max(self.values, initial=0.0))
        if self.smallest < -NEGATIVE_ROUNDING * max(largest, abs(self.smallest)):
            raise ValueError(
                f"the input covariance must be positive semi-definite; got smallest eigenvalue {self.smallest:.3g} and "
                f"largest {largest:.3g}. Check that the kernel is a valid covariance and that the matrix is symmetric."
            )
        return self


def modes_of(covariance: Array) -> Modes:
    """Eigendecomposition of a covariance matrix; negative values become zero, the least kept in `smallest`."""
    if covariance.shape[0] == 0:
        return Modes(np.empty(0), np.empty((0, 0)))
    with few_threads(len(covariance)):
        values, vectors = eigh(covariance, check_finite=False, driver="evd")
    return Modes(np.maximum(values, 0.0), vectors, float(values[0]))


class Filters(ABC):
    """Filters from several signals to several others: a matrix at each eigenvalue."""

    tolerance: float = 0.0  # of omitted terms of a series, relative to the largest; zero for the most accurate series

    @abstractmethod
    def apply(self, coefficients: Array, eigenvalues: Array) -> Array:
        """Fourier coefficients of the filtered signals, in rows, from those of the signals."""

    @abstractmethod
    def matrices(self, eigenvalues: Array) -> Array:
        """The matrix at each eigenvalue, shape (n_out, n_in, n_eigenvalues)."""


@dataclass(frozen=True, eq=False)
class FilterBank(Filters):
    """Filters with the matrix ``diag(after) combination diag(before) + diag(added) combination``."""

    before: OfEigenvalues  # one filter per signal, or one for all; so are `after` and `added`
    combination: Array  # shape (n_out, n_in)
    after: OfEigenvalues | None = None
    tolerance: float = 0.0
    added: OfEigenvalues | None = None

    def apply(self, coefficients: Array, eigenvalues: Array) -> Array:
        filtered: Array = self.combination @ (self.before(eigenvalues) * coefficients)
        if self.after is not None:
            filtered = self.after(eigenvalues) * filtered
        if self.added is not None:
            filtered = filtered + self.added(eigenvalues) * (self.combination @ coefficients)
        return filtered

    def matrices(self, eigenvalues: Array) -> Array:
        matrices = self.combination[:, :, None] * self.before(eigenvalues)
        if self.after is not None:
            matrices = matrices * self.after(eigenvalues)[:, None, :]
        if self.added is not None:
            matrices = matrices + self.combination[:, :, None] * self.added(eigenvalues)[:, None, :]
        return matrices


@dataclass(frozen=True)
class LikelihoodErrors:
    """Errors of a log likelihood, in nats."""

    truncation: Number = 0.0  # a bound
    rounding: Number = 0.0  # an estimate, where signals are in single precision
    probes: Number = 0.0  # standard error by random probes
    limit: Number = float("inf")  # largest truncation error that the settings of the spectrum allow

    @property
    def is_tolerable(self) -> bool:
        """Whether the truncation error is within its limit."""
        return self.truncation <= self.limit


class SpectralData(ABC):
    """Spectral data of signals: one row per signal or combination of signals, one column per frequency."""

    @property
    @abstractmethod
    def multiplicities(self) -> Array:
        """Numbers of eigenvalues that the frequencies represent, shape (n_frequencies,)."""

    @property
    @abstractmethod
    def n_observations(self) -> int:
        """Number of observed values, signals times nodes."""

    @property
    @abstractmethod
    def energies(self) -> Array:
        """Energy of each row at each frequency, shape (n_rows, n_frequencies)."""

    @abstractmethod
    def rotate(self, vectors: Array) -> SpectralData:
        """Linear combinations of the rows, one per column of `vectors`: signals in the eigenbasis of the inputs."""

    @abstractmethod
    def gram(self, scales: Array) -> Array:
        """Products of the rows, scaled at each frequency, summed over frequencies, shape (n_rows, n_rows)."""

    @abstractmethod
    def node_gram(self, scales: Array) -> Array:
        """Products of the frequencies after each row was scaled at each of them: (n_frequencies, n_frequencies)."""

    @property
    @abstractmethod
    def carried_energies(self) -> tuple[Array, Array]:
        """Energies of the autoregressive inputs, the lower half of the rows, and their products with the upper half."""

    @abstractmethod
    def without_carried(self, response: Array) -> SpectralData:
        """Upper half of the rows less the filtered lower half, given the filter's values at the frequencies."""

    @abstractmethod
    def quadratics(self, factors: Array) -> Array:
        """Squares of ``L_j^-1 y_j`` summed over frequencies, per row, with lower Cholesky factors ``L_j`` given."""

    def errors(self, variances: OfEigenvalues) -> LikelihoodErrors:
        """Errors of the log likelihood, given ``D`` of equation (5) as a function of the eigenvalue."""
        return LikelihoodErrors()


class SpectrumSettings(ABC):
    """Settings of a spectrum: the method, its accuracy, and the features that models on such a spectrum have."""

    tolerance: float  # largest relative error of the log marginal likelihood by truncation; zero if exact
    reads_into_memory: ClassVar[bool]  # signals, in double precision, rather than from their source
    needs_passes: ClassVar[bool]  # over the graph, to predict: fits share them, and compare fewer models and values
    has_node_covariances: ClassVar[bool]  # as dense matrices, for shrinkage and exact imputation
    needs_whole_graph: ClassVar[bool]  # in memory, and not in partitions

    def __sklearn_clone__(self) -> Self:
        return self

    @abstractmethod
    def of(
        self, graph: GraphBase, laplacian: LaplacianKind = "combinatorial", scaled: bool = False, prototype: Any = None
    ) -> Spectrum:
        """Spectrum of a graph, for signals such as `prototype` (NumPy's, if not given); cached on the graph."""

    @abstractmethod
    def remember(self, graph: GraphBase, laplacian: LaplacianKind, state: object, prototype: Any = None) -> None:
        """Cache a result of `state_of_spectrum` on a graph, so that `of` computes nothing; ValueError without any."""

    def on(self, device: str | None) -> Self:
        """Copy that computes on a device; exact spectra are always computed on the host."""
        return self

    @abstractmethod
    def memory(self, n_signals: int, n_nodes: int, item_size: int) -> tuple[float, str, str]:
        """Bytes that learning needs for signals of `item_size` bytes per value, their purpose, and a remedy."""


class Spectrum(ABC):
    """Frequencies of a graph, and operations on signals in their domain.

    Blocks of signals, which add and subtract, are Fourier coefficients in rows if eigenvectors are known, otherwise
    columns over the nodes.
    """

    graph: GraphBase
    laplacian: LaplacianKind
    scaled: bool
    n_moments: int | None  # number of Chebyshev moments; None if eigenvalues are known
    largest_eigenvalue: float  # before scaling; one for a graph without edges
    has_eigenvectors: ClassVar[bool]  # and eigenvalues: blocks are then coefficients in rows, and may be stacked
    log_volume: float = 0.0  # logarithm of the volume that the vectors span; zero where they are orthonormal

    @property
    @abstractmethod
    def eigenvalues(self) -> Array:
        """Graph frequencies, ascending, shape (n_frequencies,)."""

    @property
    @abstractmethod
    def multiplicities(self) -> Array:
        """Numbers of eigenvalues that the frequencies represent, shape (n_frequencies,)."""

    @property
    def upper(self) -> float:
        """Right end of the interval of filters: 1 if scaled, 2 (a bound) if normalised, else the largest eigenvalue."""
        if self.scaled:
            return 1.0
        return 2.0 if self.laplacian == "normalized" else self.largest_eigenvalue

    @abstractmethod
    def read(self, signals: Signals, carried: Array | None = None) -> SpectralData:
        """Spectral data of signals, optionally followed by autoregressive inputs of the same shape."""

    @abstractmethod
    def read_block(self, block: Any) -> SpectralData:
        """Spectral data of a block."""

    @abstractmethod
    def load(self, signals: Any) -> Any:
        """An array of signals (n_signals, n_nodes) as a block."""

    @abstractmethod
    def unload(self, block: Any) -> Any:
        """The signals of a block, shape (n_signals, n_nodes)."""

    @abstractmethod
    def zeros(self, n_signals: int) -> Any:
        """A block of signals that are zero."""

    @abstractmethod
    def white(self, n_signals: int, random_state: np.random.Generator) -> Any:
        """A block of independent standard normal signals."""

    @abstractmethod
    def filtered(self, block: Any, filters: Filters) -> Any:
        """Filtered signals, as a block."""

    @abstractmethod
    def diagonals(self, functions: OfEigenvalues, nodes: Indices | None = None) -> tuple[Any, Array]:
        """Diagonals of functions of the Laplacian (n_functions, n_nodes), and their standard errors (n_functions,)."""

    def refined(self) -> Spectrum | None:
        """A finer spectrum; None if there is none."""
        return None


def mean_over_nodes(spectrum: Spectrum, values: Array) -> Array:
    """Average over the nodes of a function of the eigenvalues, given its values at them along the first axis."""
    return spectrum.multiplicities @ values / spectrum.graph.n_nodes


@singledispatch
def state_of_spectrum(spectrum: Spectrum) -> object:
    """Results of computations on the graph, for `SpectrumSettings.remember`; None if there are none."""
    return None
