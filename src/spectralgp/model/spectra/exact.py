"""The exact spectrum of a graph: frequencies, the graph Fourier transform and filtering."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh

from spectralgp._basics.arrays import few_threads, frozen, times_matrix, without_caches
from spectralgp._basics.checks import Array, Indices, as_option, as_signals
from spectralgp._basics.saved import axes
from spectralgp.graphs import LAPLACIANS, Graph, GraphBase, LaplacianKind
from spectralgp.model.signals import Signals
from spectralgp.model.spectra import base
from spectralgp.model.spectra.base import Filters, OfEigenvalues, SpectralData, Spectrum, SpectrumSettings


@dataclass(frozen=True, eq=False)
class SpectralSignals(SpectralData):
    """Signals in the graph Fourier domain: ``Y V``, or ``Z = U^T Y V`` of equation (5), shape (n_rows, n_nodes).

    Imputed signals are given by their mean and covariance, and all squares are expected ones.
    """

    coefficients: Array  # optionally followed by those of autoregressive inputs, which are known exactly
    factors: Any = None  # of the covariance of imputed signals, shape (n_factors, n_signals, n_nodes)
    vectors: Any = None  # of the linear combinations of these signals in the rows, shape (n_signals, n_rows)
    covariances: Any = None  # at each frequency, (n_nodes, n_signals, n_signals); None if the factors are smaller

    @classmethod
    def imputed(cls, coefficients: Array, factors: Array) -> SpectralSignals:
        """Signals in the rows, whose covariance is the sum of the outer products of its factors."""
        n_factors, n_signals, _ = factors.shape
        across = np.ascontiguousarray(factors.transpose(2, 1, 0)) if n_factors > n_signals else None
        covariances = None if across is None else across @ across.transpose(0, 2, 1)
        return cls(coefficients, factors, np.eye(n_signals), covariances)

    @cached_property
    def multiplicities(self) -> Array:
        return np.ones(self.coefficients.shape[1])

    @property
    def n_observations(self) -> int:
        return int(self.coefficients.size)

    @property
    def _rotated_factors(self) -> Array:
        """Factors of the covariance of the rows."""
        return np.empty((0, *self.coefficients.shape)) if self.factors is None else self.vectors.T @ self.factors

    @cached_property
    def energies(self) -> Array:
        energies = np.square(self.coefficients)
        if self.covariances is not None:
            return energies + np.sum((self.covariances @ self.vectors) * self.vectors, axis=1).T
        return energies if self.factors is None else energies + np.sum(np.square(self._rotated_factors), axis=0)

    def rotate(self, vectors: Array) -> SpectralSignals:
        rotated = replace(self, coefficients=vectors.T @ self.coefficients)
        if self.factors is None:
            return rotated
        n_signals = self.vectors.shape[1]
        own = vectors[:n_signals, :n_signals] if vectors.shape[0] == 2 * n_signals else vectors
        return replace(rotated, vectors=self.vectors @ own)

    def gram(self, scales: Array) -> Array:
        scaled = self.coefficients * scales
        gram: Array = scaled @ scaled.T
        if self.covariances is not None:
            rotated = self.vectors.T @ self.covariances @ self.vectors
            return gram + np.einsum("ij,jik,kj->ik", scales, rotated, scales, optimize=True)
        if self.factors is not None:
            scaled = self._rotated_factors * scales
            gram += np.einsum("sij,skj->ik", scaled, scaled, optimize=True)
        return gram

    def node_gram(self, scales: Array) -> Array:
        scaled = np.concatenate([self.coefficients[None], self._rotated_factors]) * scales
        rows = scaled.reshape(-1, scales.shape[1])
        return rows.T @ rows

    @property
    def carried_energies(self) -> tuple[Array, Array]:
        signals, carried = np.split(self.coefficients, 2)
        return np.square(carried), carried * signals

    def without_carried(self, response: Array) -> SpectralSignals:
        signals, carried = np.split(self.coefficients, 2)
        return replace(self, coefficients=signals - response * carried)

    def quadratics(self, factors: Array) -> Array:
        everything = [self.coefficients, *self._rotated_factors]
        whitened = (np.linalg.solve(factors, one.T[:, :, None]) for one in everything)
        return np.sum([np.sum(np.square(one), axis=(0, 2)) for one in whitened], axis=0)


@dataclass(frozen=True)
class Exact(SpectrumSettings):
    """Settings of the exact spectrum, by an eigendecomposition, which has no options.

    Examples
    --------
    >>> from spectralgp import Exact, Graph
    >>> Exact().of(Graph.from_edges([(0, 1), (1, 2)]))
    ExactSpectrum(3 frequencies of the combinatorial Laplacian)
    """

    tolerance: ClassVar[float] = 0.0  # type: ignore[misc]
    reads_into_memory = True
    needs_passes = False
    has_node_covariances = True
    needs_whole_graph = True

    def of(
        self, graph: GraphBase, laplacian: LaplacianKind = "combinatorial", scaled: bool = False, prototype: Any = None
    ) -> ExactSpectrum:
        if not isinstance(graph, Graph):
            condition, remedy = (
                ("in memory to be decomposed", "Pass spectrum=Chebyshev(), which needs no eigenvectors.")
                if isinstance(graph, GraphBase)
                else ("a Graph", "Convert adjacencies, networkx graphs and others with as_graph first.")
            )
            raise TypeError(f"graph must be {condition}; got {type(graph).__name__}. {remedy}")
        as_option(laplacian, "laplacian", LAPLACIANS)
        if graph.n_edges == 0:
            return ExactSpectrum(graph, laplacian, bool(scaled), frozen(np.zeros(graph.n_nodes)))
        key = ("eigenpairs", laplacian)
        if key not in graph._cache:  # not the spectrum, which refers to the graph: a cycle
            dense: Any = graph.laplacian(laplacian).toarray()
            with few_threads(graph.n_nodes):
                eigenvalues, eigenvectors = eigh(dense, overwrite_a=True, check_finite=False, driver="evd")
            eigenvalues[: graph.n_components] = 0.0
            graph._cache[key] = frozen(np.maximum(eigenvalues, 0.0)), frozen(eigenvectors)
        return ExactSpectrum(graph, laplacian, bool(scaled), *graph._cache[key])

    def remember(self, graph: GraphBase, laplacian: LaplacianKind, state: object, prototype: Any = None) -> None:
        if isinstance(state, Eigenpairs):
            if np.any(state.eigenvalues < 0) or np.any(np.diff(state.eigenvalues) < 0):
                raise ValueError("eigenpairs must have eigenvalues that ascend from zero; got other values.")
            graph._cache["eigenpairs", laplacian] = tuple(map(frozen, (state.eigenvalues, state.eigenvectors)))
        elif graph.n_edges:
            raise ValueError(f"eigenpairs must be those of the {laplacian} Laplacian; got none.")

    def memory(self, n_signals: int, n_nodes: int, item_size: int) -> tuple[float, str, str]:
        remedy = "Use spectrum='chebyshev', which needs no matrix of nodes by nodes."
        return 3 * 8 * n_nodes**2, f"the exact spectrum of {n_nodes} nodes", remedy


@dataclass(frozen=True, eq=False)
class Eigenpairs:
    """Eigenvalues of a Laplacian, ascending and before scaling, and its eigenvectors in columns."""

    eigenvalues: Annotated[Array, axes("n_nodes")]
    eigenvectors: Annotated[Array, axes("n_nodes", "n_nodes")]


@dataclass(frozen=True, eq=False, repr=False)
class ExactSpectrum(Spectrum):
    """Eigenvalues and eigenvectors of a graph Laplacian, ``L = V diag(lambda) V^T``. Made by `decompose`.

    Blocks are coordinates in rows. Vectors ``B`` that are not orthonormal may replace the eigenvectors, equation (15);
    coordinates ``x`` of a signal ``y = B x`` are then ``x = B^-1 y``.
    """

    graph: GraphBase
    laplacian: LaplacianKind
    scaled: bool  # whether eigenvalues are divided by the largest, so that they lie in [0, 1] (equation (2))
    frequencies: Array  # the eigenvalues before scaling, ascending
    forward: Array | None = None  # the vectors in columns; None for the identity, on a graph without edges
    dual: Array | None = None  # ``B^-T``, if the vectors are not eigenvectors
    log_volume: float = 0.0  # ``log |det B|``
    n_moments: None = field(default=None, init=False)
    has_eigenvectors = True

    __getstate__ = without_caches

    @property
    def backward(self) -> Array | None:
        """Inverse transpose of `forward`, from signals to coordinates."""
        return self.forward if self.dual is None else self.dual

    @cached_property
    def eigenvectors(self) -> Array:
        """In columns, in the order of `eigenvalues`."""
        return np.eye(self.graph.n_nodes) if self.forward is None else self.forward

    @cached_property
    def eigenvalues(self) -> Array:
        return frozen(self.frequencies / self.largest_eigenvalue) if self.scaled else self.frequencies

    @cached_property
    def multiplicities(self) -> Array:
        return np.ones(self.graph.n_nodes)

    @property
    def largest_eigenvalue(self) -> float:  # type: ignore[override]
        """The largest eigenvalue before scaling; one for a graph without edges."""
        return float(self.frequencies[-1]) or 1.0

    def coefficients(self, signals: Signals) -> Array:
        """Coordinates of signals, shape (n_signals, n_nodes)."""
        if self.dual is not None:
            return signals.values @ self.dual
        # signals cache products with eigenvectors, which are used again
        return signals.values if self.forward is None else signals.transform(self.forward)

    def read(self, signals: Signals, carried: Array | None = None) -> SpectralData:
        own = self.coefficients(signals)
        mean = own if carried is None else np.vstack([own, self.load(carried)])
        if signals.deviations is None:
            return SpectralSignals(mean)
        return SpectralSignals.imputed(mean, self.load(signals.deviations))

    def read_block(self, block: Array) -> SpectralSignals:
        return SpectralSignals(block)

    def load(self, signals: Any) -> Array:
        return np.asarray(signals if self.backward is None else times_matrix(signals, self.backward))

    def unload(self, block: Array) -> Array:
        return block if self.forward is None else times_matrix(block, self.forward.T)

    def zeros(self, n_signals: int) -> Array:
        return np.zeros((n_signals, self.graph.n_nodes))

    def white(self, n_signals: int, random_state: np.random.Generator) -> Array:
        return random_state.standard_normal((n_signals, self.graph.n_nodes))

    def filtered(self, block: Array, filters: Filters) -> Array:
        return filters.apply(block, self.eigenvalues)

    def diagonals(self, functions: OfEigenvalues, nodes: Indices | None = None) -> tuple[Array, Array]:
        """``sum_j V_mj^2 f(lambda_j)``: equation (9)."""
        values, chosen = functions(self.eigenvalues), slice(None) if nodes is None else nodes
        exact = values[:, chosen] if self.forward is None else times_matrix(values, np.square(self.forward[chosen]).T)
        return exact, np.zeros(values.shape[0])

    def transform(self, signals: ArrayLike) -> Array:
        """Graph Fourier transform ``Y V`` of a signal, or of several in rows; frequencies are in the last axis."""
        return self.load(as_signals(signals, self.graph.n_nodes))

    def inverse(self, spectral_signals: ArrayLike) -> Array:
        """Signals with the given graph Fourier coefficients; undoes `transform`."""
        return self.unload(as_signals(spectral_signals, self.graph.n_nodes, name="spectral_signals"))

    def filter(self, signals: ArrayLike, response: Callable[[Array], ArrayLike] | ArrayLike) -> Array:
        """Filter signals, ``g(L) y = V diag(g(lambda)) V^T y``, by a function of the eigenvalues or its values there.

        Examples
        --------
        >>> from spectralgp import Graph, decompose
        >>> spectrum = decompose(Graph.from_edges([(0, 1), (1, 2)]))
        >>> spectrum.filter([1.0, 0.0, 0.0], lambda eigenvalues: eigenvalues).round(6)
        array([ 1., -1.,  0.])
        """
        values = np.asarray(response(self.eigenvalues) if callable(response) else response, dtype=float)
        if values.shape != (self.graph.n_nodes,):
            raise ValueError(
                f"response must give one value for each of the {self.graph.n_nodes} eigenvalues; got shape "
                f"{values.shape}. Pass a function of the eigenvalues, or its values at spectrum.eigenvalues."
            )
        return self.inverse(self.transform(signals) * values)

    def __repr__(self) -> str:
        scaled = "scaled " if self.scaled else ""
        return f"ExactSpectrum({self.graph.n_nodes} frequencies of the {scaled}{self.laplacian} Laplacian)"


@base.state_of_spectrum.register
def _(spectrum: ExactSpectrum) -> Eigenpairs | None:
    return None if spectrum.forward is None else Eigenpairs(spectrum.frequencies, spectrum.forward)


def require_eigenvectors(spectrum: Spectrum, message: str) -> Array:
    """Eigenvectors of an exact spectrum in columns; a ValueError with the message for any other spectrum."""
    if not isinstance(spectrum, ExactSpectrum):
        raise ValueError(message)
    return spectrum.eigenvectors


def decompose(graph: GraphBase, laplacian: LaplacianKind = "combinatorial", *, scaled: bool = False) -> ExactSpectrum:
    """Eigendecomposition of a graph's Laplacian, computed once per graph and cached on it.

    Parameters
    ----------
    graph : Graph
        Any graph; disconnected ones and isolated nodes are fine.
    laplacian : {"combinatorial", "normalized", "balanced"}, default="combinatorial"
        ``D - W``, ``I - D^-1/2 W D^-1/2``, or the first of the weights ``D^-1/2 W D^-1/2``.
    scaled : bool, default=False
        Divide by the largest eigenvalue, so that the frequencies fill [0, 1].

    Returns
    -------
    ExactSpectrum
        With exactly one eigenvalue of zero per connected component, and none below.

    Examples
    --------
    >>> from spectralgp import Graph, decompose
    >>> decompose(Graph.from_edges([(0, 1), (1, 2)])).eigenvalues.round(6)
    array([0., 1., 3.])
    """
    return Exact().of(graph, laplacian, scaled)
