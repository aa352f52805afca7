"""What a model asks of a graph's spectrum, whether its eigenvalues are known one by one or not."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from spectralgp._basics.checks import Array
from spectralgp.graphs import GraphBase, LaplacianKind
from spectralgp.signals import Signals
from spectralgp.spectra.data import SpectralData

OfEigenvalues = Callable[[Array], Array]
"""Several functions of the eigenvalues: from shape (n_eigenvalues,) to (n_functions, n_eigenvalues)."""


class Filters(ABC):
    """Filters that turn some signals into others: at each eigenvalue, a matrix."""

    tolerance: float = 0.0  # of terms that a series may leave out, relative to the largest; no more than needed if zero

    @abstractmethod
    def apply(self, coefficients: Array, eigenvalues: Array) -> Array:
        """The signals that go out, all given by their Fourier coefficients in rows."""

    @abstractmethod
    def matrices(self, eigenvalues: Array) -> Array:
        """The matrix at each eigenvalue, shape (n_out, n_in, n_eigenvalues)."""


@dataclass(frozen=True, eq=False)
class FilterSum(Filters):
    """Sum of filters."""

    parts: tuple[Filters, ...]

    def apply(self, coefficients: Array, eigenvalues: Array) -> Array:
        return np.sum([part.apply(coefficients, eigenvalues) for part in self.parts], axis=0)

    def matrices(self, eigenvalues: Array) -> Array:
        return np.sum([part.matrices(eigenvalues) for part in self.parts], axis=0)


@dataclass(frozen=True, eq=False)
class FilterBank(Filters):
    """Signals are filtered, each by its own filter or all by one, combined, and the results filtered again.

    At an eigenvalue it is the matrix ``diag(after) combination diag(before)``.

    Parameters
    ----------
    before : callable
        Filters of the signals that come in, one each or one for all.
    combination : ndarray of shape (n_out, n_in)
        How the filtered signals are combined.
    after : callable, optional
        Filters of the signals that go out, one each or one for all.
    tolerance : float, default=0.0
        Size of terms that a series may leave out, relative to the largest; no more than rounding needs if zero.
    """

    before: OfEigenvalues
    combination: Array
    after: OfEigenvalues | None = None
    tolerance: float = 0.0

    def apply(self, coefficients: Array, eigenvalues: Array) -> Array:
        filtered: Array = self.combination @ (self.before(eigenvalues) * coefficients)
        return filtered if self.after is None else self.after(eigenvalues) * filtered

    def matrices(self, eigenvalues: Array) -> Array:
        matrices = self.combination[:, :, None] * self.before(eigenvalues)
        return matrices if self.after is None else matrices * self.after(eigenvalues)[:, None, :]


class SpectrumSettings(ABC):
    """How the spectrum of a graph is found, and what can be asked of signals and models on such a spectrum."""

    def __sklearn_clone__(self) -> Self:
        """A frozen object is its own clone."""
        return self

    @abstractmethod
    def of(
        self,
        graph: GraphBase,
        laplacian: LaplacianKind = "combinatorial",
        scaled: bool = False,
        like: Any = None,
        device: str | None = None,
    ) -> Spectrum:
        """Spectrum of a graph, for signals such as `like` (NumPy's, if not given); remembered on the graph."""

    @abstractmethod
    def restored(
        self,
        graph: GraphBase,
        laplacian: LaplacianKind,
        scaled: bool,
        like: Any,
        device: str | None,
        found: object,
        n_moments: int | None,
    ) -> Spectrum:
        """The spectrum whose `Spectrum.found` and `Spectrum.n_moments` are given; nothing is computed.

        Raises
        ------
        ValueError
            If these settings cannot have found that.
        """

    @abstractmethod
    def check(self, graph: GraphBase | None, device: str | None) -> None:
        """Raise a ValueError where the graph or the device is not one that this spectrum can be computed on."""

    @abstractmethod
    def memory(self, n_signals: int, n_nodes: int, item_size: int) -> tuple[float, str, str]:
        """Bytes that learning needs for signals of `item_size` bytes per value, what for, and what would need less."""

    @property
    @abstractmethod
    def tolerance(self) -> float:
        """Largest relative error of the log marginal likelihood by truncation; zero if there is none."""

    @property
    @abstractmethod
    def reads_into_memory(self) -> bool:
        """Whether signals are read into memory, in double precision, rather than left where they are."""

    @property
    @abstractmethod
    def needs_passes(self) -> bool:
        """Whether predictions take passes over the graph: fits then share them, and compare fewer models and values."""

    @property
    @abstractmethod
    def has_node_covariances(self) -> bool:
        """Whether covariances of nodes by nodes are written out, as shrinkage and exact completions need them."""


class Spectrum(ABC):
    """Frequencies of a graph, with the few verbs that learning and prediction ask of them.

    Signals are handled in blocks, arrays in whatever domain suits the spectrum: Fourier coefficients in rows where
    eigenvectors are known, columns over the nodes where they are not. Blocks add and subtract.
    """

    graph: GraphBase
    laplacian: LaplacianKind
    scaled: bool
    n_moments: int | None
    """Number of Chebyshev moments that it is made of; None where eigenvalues are known."""

    @property
    @abstractmethod
    def found(self) -> object:
        """What was computed of the graph, for `SpectrumSettings.restored`; None where nothing had to be."""

    # ------------------------------------------------------------------------------------------- frequencies

    @property
    @abstractmethod
    def eigenvalues(self) -> Array:
        """Graph frequencies, ascending, shape (n_frequencies,)."""

    @property
    @abstractmethod
    def multiplicities(self) -> Array:
        """How many nodes' worth of spectrum each of the eigenvalues stands for, shape (n_frequencies,)."""

    @property
    def n_nodes(self) -> int:
        """Number of nodes of the graph."""
        return self.graph.n_nodes

    @property
    @abstractmethod
    def largest_eigenvalue(self) -> float:
        """The largest eigenvalue before scaling; one for a graph without edges."""

    @property
    def upper(self) -> float:
        """Right end of the interval that filters on this spectrum live on.

        One for a scaled Laplacian, two (its bound) for a normalised one, else the largest eigenvalue.
        """
        if self.scaled:
            return 1.0
        return 2.0 if self.laplacian == "normalized" else self.largest_eigenvalue

    def mean(self, values: Array) -> Array:
        """Average over the nodes of a function of the eigenvalues, given its values at them along the first axis."""
        return self.multiplicities @ values / self.n_nodes

    @abstractmethod
    def within(self, points: Array) -> Array:
        """The eigenvalues nearest to points of the interval; the points themselves where eigenvalues are not known."""

    @abstractmethod
    def lowest(self, extrema: Callable[[], Array]) -> Array:
        """Points among which a function is lowest on this spectrum, ascending; `extrema` finds its extrema."""

    @property
    @abstractmethod
    def has_eigenvectors(self) -> bool:
        """Whether eigenvectors are known, so that blocks are coefficients in rows, of which many may be stacked."""

    @property
    def log_volume(self) -> float:
        """Logarithm of the volume that the vectors span; zero where they are orthonormal."""
        return 0.0

    @abstractmethod
    def require_eigenvectors(self, message: str) -> Array:
        """Eigenvectors in columns, shape (n_nodes, n_nodes); a ValueError with the message where there are none."""

    # ------------------------------------------------------------------------------------------------ reading

    @abstractmethod
    def read(self, signals: Signals) -> SpectralData:
        """Signals as the likelihood reads them."""

    @abstractmethod
    def read_block(self, block: Any) -> SpectralData:
        """The same of a block."""

    @abstractmethod
    def read_pair(self, signals: Signals, carried: Array) -> SpectralData:
        """Signals, and below them as many others from an array (n_signals, n_nodes)."""

    @abstractmethod
    def read_filtered(self, signals: Signals, vectors: Array, filters: Filters) -> SpectralData:
        """The same of filtered combinations of signals, ``U^T`` times them."""

    @abstractmethod
    def read_residual(self, signals: Signals, training: Signals, vectors: Array, filters: Filters) -> SpectralData:
        """What is left of signals after filtered combinations of others are taken away."""

    # ------------------------------------------------------------------------------------------------- blocks

    @abstractmethod
    def block(self, signals: Signals, vectors: Array) -> Any:
        """Combinations of signals, one for each column of `vectors`, as a block to be filtered."""

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
        """The signals of a block through filters."""

    @abstractmethod
    def combined(self, block: Any, matrix: Array) -> Any:
        """Combinations of the signals of a block, one for each row of `matrix`."""

    @abstractmethod
    def stack(self, signals: list[Any]) -> Any:
        """Sets of signals along a new first axis."""

    @abstractmethod
    def diagonals(self, functions: OfEigenvalues, nodes: NDArray[np.intp] | None = None) -> tuple[Any, Array]:
        """Diagonals over the nodes, or over some, of functions of the Laplacian.

        Returns
        -------
        diagonals : array of shape (n_functions, n_nodes)
            Values at the nodes.
        errors : ndarray of shape (n_functions,)
            Their root mean square standard error, zero where they are exact.
        """

    # ----------------------------------------------------------------------------------------------- accuracy

    @abstractmethod
    def errors(self, variances: OfEigenvalues, data: SpectralData) -> Errors:
        """How wrong the log likelihood of data may be, given ``D`` of equation (5) as a function of the eigenvalue."""

    @abstractmethod
    def refined(self) -> Spectrum | None:
        """A finer spectrum, or None where there is none."""


@dataclass(frozen=True)
class Errors:
    """How wrong a log likelihood may be, in nats.

    Parameters
    ----------
    truncation : float, default=0.0
        Bound on the error by truncation.
    rounding : float, default=0.0
        Estimate of the error by rounding, where signals are in single precision.
    probes : float, default=0.0
        Standard error by random probes.
    limit : float, default=inf
        Truncation error that the settings of the spectrum allow.
    """

    truncation: float = 0.0
    rounding: float = 0.0
    probes: float = 0.0
    limit: float = float("inf")

    @property
    def is_tolerable(self) -> bool:
        """Whether the truncation error is within its limit."""
        return self.truncation <= self.limit
