"""Local averaging, the one kernel of the paper without the graph's eigenvectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from spectralgp._checks import Array
from spectralgp.graph import Graph, LaplacianKind
from spectralgp.graph_kernels.base import (
    AMPLITUDE_BOUNDS,
    STRENGTH_BOUNDS,
    Bounds,
    PositiveParameters,
)
from spectralgp.modes import Modes, modes_of
from spectralgp.spectrum import AnySpectrum


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
    amplitude_bounds: Bounds = AMPLITUDE_BOUNDS
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

    def modes(self, spectrum: AnySpectrum) -> Modes:
        """Eigenvalues and eigenvectors of ``B B^T`` itself."""
        return modes_of(self.covariance(spectrum.graph))
