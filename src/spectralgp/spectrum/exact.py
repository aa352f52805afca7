"""The exact spectrum of a graph: frequencies, the graph Fourier transform and filtering."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh

from spectralgp._checks import Array, as_option, as_signals
from spectralgp.graph import Graph, LaplacianKind
from spectralgp.spectrum.signals import SpectralSignals


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues and eigenvectors of a graph Laplacian, ``L = V diag(lambda) V^T``.

    Made by `decompose`. The signals' node axis is always the last one.

    Parameters
    ----------
    graph : Graph
        The graph that was decomposed.
    laplacian : {"combinatorial", "normalized"}
        Which Laplacian.
    scaled : bool
        Whether the eigenvalues were divided by the largest one, so that they lie in [0, 1] (equation (2)).
    eigenvalues : ndarray of shape (n_nodes,)
        Graph frequencies, ascending.
    eigenvectors : ndarray of shape (n_nodes, n_nodes)
        In columns, in the same order.
    """

    graph: Graph
    laplacian: LaplacianKind
    scaled: bool
    eigenvalues: Array
    eigenvectors: Array

    @property
    def n_nodes(self) -> int:
        """Number of nodes, and of frequencies."""
        return int(self.eigenvalues.shape[0])

    @property
    def upper(self) -> float:
        """Right end of the interval that filters on this spectrum live on.

        One for a scaled Laplacian, two (its bound) for a normalised one, else the largest eigenvalue.
        """
        if self.scaled:
            return 1.0
        if self.laplacian == "normalized":
            return 2.0
        return float(self.eigenvalues[-1]) or 1.0  # an edgeless graph has the one eigenvalue zero

    @property
    def is_exact(self) -> bool:
        """True: every eigenvalue is known."""
        return True

    def mean(self, values: Array) -> Array:
        """Average over the nodes of a function of the eigenvalues, given its values at them along the first axis."""
        return np.mean(values, axis=0)

    def read(self, signals: Array) -> SpectralSignals:
        """Signals as the likelihood reads them."""
        return SpectralSignals(signals @ self.eigenvectors)

    def transform(self, signals: ArrayLike) -> Array:
        """Graph Fourier transform of signals, ``Y V``.

        Parameters
        ----------
        signals : array of shape (n_signals, n_nodes) or (n_nodes,)
            Signals in rows.

        Returns
        -------
        ndarray of the same shape
            Coefficient j belongs to ``eigenvalues[j]``.
        """
        coefficients: Array = as_signals(signals, self.n_nodes) @ self.eigenvectors
        return coefficients

    def inverse(self, spectral_signals: ArrayLike) -> Array:
        """Signals with the given graph Fourier coefficients; undoes `transform`."""
        signals: Array = as_signals(spectral_signals, self.n_nodes, name="spectral_signals") @ self.eigenvectors.T
        return signals

    def filter(self, signals: ArrayLike, response: Callable[[Array], ArrayLike] | ArrayLike) -> Array:
        """Filter signals: ``g(L) y = V diag(g(lambda)) V^T y``.

        Parameters
        ----------
        signals : array of shape (n_signals, n_nodes) or (n_nodes,)
            Signals in rows.
        response : callable or array of shape (n_nodes,)
            The filter ``g``, as a function of the eigenvalues or as its values at `eigenvalues`.

        Examples
        --------
        >>> import numpy as np
        >>> from spectralgp import Graph, decompose
        >>> path = Graph.from_edges([(0, 1), (1, 2)])
        >>> spectrum = decompose(path)
        >>> spectrum.filter([1.0, 0.0, 0.0], lambda eigenvalues: eigenvalues).round(6)
        array([ 1., -1.,  0.])
        """
        values = np.asarray(response(self.eigenvalues) if callable(response) else response, dtype=float)
        if values.shape != (self.n_nodes,):
            raise ValueError(
                f"response must give one value for each of the {self.n_nodes} eigenvalues; got shape {values.shape}. "
                "Pass a function of the eigenvalues, or its values at spectrum.eigenvalues."
            )
        return self.inverse(self.transform(signals) * values)

    def __repr__(self) -> str:
        """One line: size, Laplacian and range."""
        scaled = "scaled " if self.scaled else ""
        return f"Spectrum({self.n_nodes} frequencies of the {scaled}{self.laplacian} Laplacian)"


def decompose(graph: Graph, laplacian: LaplacianKind = "combinatorial", *, scaled: bool = False) -> Spectrum:
    """Eigendecomposition of a graph's Laplacian, computed once for each graph and remembered on it.

    Parameters
    ----------
    graph : Graph
        Any graph; disconnected ones and isolated nodes are fine.
    laplacian : {"combinatorial", "normalized"}, default="combinatorial"
        ``D - W`` or ``I - D^-1/2 W D^-1/2``.
    scaled : bool, default=False
        Divide by the largest eigenvalue, so that the frequencies fill [0, 1].

    Returns
    -------
    Spectrum
        Every connected component contributes one eigenvalue that is zero by theory; those are set to exactly
        zero, and rounding below zero is removed elsewhere.

    Examples
    --------
    >>> from spectralgp import Graph, decompose
    >>> decompose(Graph.from_edges([(0, 1), (1, 2)])).eigenvalues.round(6)
    array([0., 1., 3.])
    """
    as_option(laplacian, "laplacian", ("combinatorial", "normalized"))
    key = ("spectrum", laplacian, bool(scaled))
    if key not in graph._cache:
        graph._cache[key] = _scale(decompose(graph, laplacian)) if scaled else _decompose(graph, laplacian)
    spectrum: Spectrum = graph._cache[key]
    return spectrum


def _decompose(graph: Graph, laplacian: LaplacianKind) -> Spectrum:
    dense: Any = graph.laplacian(laplacian).toarray()
    eigenvalues, eigenvectors = eigh(dense, overwrite_a=True, check_finite=False, driver="evd")
    eigenvalues[: graph.n_components] = 0.0
    np.maximum(eigenvalues, 0.0, out=eigenvalues)
    return _frozen(Spectrum(graph, laplacian, False, eigenvalues, eigenvectors))


def _scale(spectrum: Spectrum) -> Spectrum:
    largest = spectrum.eigenvalues[-1]
    eigenvalues = spectrum.eigenvalues / largest if largest > 0 else spectrum.eigenvalues.copy()
    return _frozen(Spectrum(spectrum.graph, spectrum.laplacian, True, eigenvalues, spectrum.eigenvectors))


def _frozen(spectrum: Spectrum) -> Spectrum:
    for array in (spectrum.eigenvalues, spectrum.eigenvectors):
        array.flags.writeable = False
    return spectrum
