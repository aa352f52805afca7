"""Local averaging, the one kernel of the paper without the graph's eigenvectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from spectralgp._basics.checks import Array
from spectralgp.graphs import Graph, LaplacianKind, whole_graph
from spectralgp.kernels.parameters import Slopes
from spectralgp.kernels.positive import STRENGTH_BOUNDS, Bounds, PositiveParameters
from spectralgp.spectra import ExactSpectrum, Spectrum, modes_of


@dataclass(frozen=True)
class LocalAverage(PositiveParameters):
    """Local averaging (Ng et al.): ``B = (I + a D)^-1 (I + a W)`` with `strength` a.

    ``B`` is not symmetric and has no eigenvectors in common with the Laplacian, so ``B B^T`` is decomposed anew at
    every step of learning: meant for graphs of up to about a thousand nodes.

    Examples
    --------
    >>> from spectralgp import Graph, LocalAverage
    >>> pair = Graph.from_edges([(0, 1)])
    >>> LocalAverage(strength=1.0).filter_matrix(pair).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """

    strength: float = 1.0
    amplitude: float = 1.0
    strength_bounds: Bounds = STRENGTH_BOUNDS
    amplitude_bounds: Bounds | None = None
    laplacian: LaplacianKind = "combinatorial"
    scaled: bool = False
    _names: ClassVar[tuple[str, ...]] = ("amplitude", "strength")
    _starts: ClassVar[dict[str, tuple[float, ...]]] = {"strength": (0.1, 10.0)}

    def filter_matrix(self, graph: Graph) -> Array:
        """The filter ``B``, shape (n_nodes, n_nodes)."""
        rows = self.amplitude / (1 + self.strength * graph.degrees)
        matrix: Array = rows[:, None] * (np.eye(graph.n_nodes) + self.strength * graph.weights.toarray())
        return matrix

    def covariance(self, graph: Graph) -> Array:
        """``B B^T``, shape (n_nodes, n_nodes)."""
        matrix = self.filter_matrix(graph)
        return matrix @ matrix.T

    def covariance_jacobian(self, graph: Graph) -> Array:
        """Derivative of `covariance` in `theta`, shape (n_parameters, n_nodes, n_nodes)."""
        matrix = self.filter_matrix(graph)
        degrees = graph.degrees[:, None]
        rows = self.amplitude / (1 + self.strength * degrees)
        # d/d log a of a row: (a W) / (1 + a d), less the row itself times a d / (1 + a d)
        slope = self.strength * (rows * graph.weights.toarray() - matrix * degrees / (1 + self.strength * degrees))
        product = slope @ matrix.T
        slopes = {"amplitude": 2 * matrix @ matrix.T, "strength": product + product.T}
        chosen = [slopes[name] for name in self.parameter_names]
        return np.stack(chosen) if chosen else np.empty((0, graph.n_nodes, graph.n_nodes))

    @property
    def shares_eigenvectors(self) -> bool:
        return False

    def bind(self, spectrum: Spectrum) -> Self:
        spectrum.require_eigenvectors(
            f"graph_kernel must be a function on the spectrum for a large graph; got {self!r}, with eigenvectors of "
            "its own. Use another kernel, or spectrum='exact' where the graph is small enough."
        )
        return self

    def basis(self, spectrum: Spectrum) -> Spectrum:
        """The eigenvectors of ``B B^T`` itself, with its eigenvalues as frequencies."""
        graph = whole_graph(spectrum.graph, "for LocalAverage")
        modes = modes_of(self.covariance(graph))
        return ExactSpectrum(graph, self.laplacian, False, modes.values, modes.vectors)

    def power(self, eigenvalues: ArrayLike) -> Array:
        """The eigenvalues of `basis`, which are those of ``B B^T``."""
        return np.asarray(eigenvalues, dtype=float)

    def pull_back(self, slopes: Slopes, spectrum: Spectrum) -> Array:
        """Gradient through the derivative of ``B B^T``."""
        vectors = self.basis(spectrum).require_eigenvectors("")
        slope = vectors @ slopes.node_covariance_gradient @ vectors.T
        graph = whole_graph(spectrum.graph, "for LocalAverage")
        return np.tensordot(self.covariance_jacobian(graph), slope, axes=2)
