"""The prior: a Gaussian process over signals on a graph, before any data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spectralgp._checks import Array, as_positive
from spectralgp.graph import Graph
from spectralgp.graph_kernels import GraphKernel
from spectralgp.inputs import InputKernel, KernelLike, as_input_kernel
from spectralgp.modes import Modes
from spectralgp.spectrum import AnySpectrum, decompose


@dataclass(frozen=True, eq=False)
class GraphGP:
    """Prior over signals on a graph, ``Cov(Y) = K (x) B B^T + sigma^2 I`` (equation (3)); it stores no data.

    Made by `graph_gp`, which decomposes the graph.

    Parameters
    ----------
    spectrum : Spectrum or ChebyshevSpectrum
        Of the Laplacian that the graph kernel is a function of.
    graph_kernel : GraphKernel
        Covariance between nodes.
    input_kernel : InputKernel
        Covariance ``k(x, x')`` between signals.
    noise_variance : float
        ``sigma^2``.
    """

    spectrum: AnySpectrum
    graph_kernel: GraphKernel
    input_kernel: InputKernel
    noise_variance: float

    @cached_property
    def node_modes(self) -> Modes:
        """Power at each graph frequency and the eigenvectors that go with it, of ``B B^T``."""
        return self.graph_kernel.modes(self.spectrum)

    def input_modes(self, inputs: Array) -> Modes:
        """Eigendecomposition of ``K`` at training inputs."""
        return self.input_kernel.modes(inputs).require_definite("the input covariance")

    def node_covariance(self) -> Array:
        """``B B^T``, shape (n_nodes, n_nodes)."""
        modes = self.node_modes
        return (modes.vectors * modes.values) @ modes.vectors.T

    def sample(
        self, inputs: Array, n_samples: int, random_state: np.random.Generator, include_noise: bool = False
    ) -> Array:
        """Draw signals from the prior at the given inputs, shape (n_samples, n_inputs, n_nodes)."""
        rows = self.input_modes(inputs)
        columns = self.node_modes
        white = random_state.standard_normal((n_samples, rows.values.size, columns.values.size))
        spectral = np.sqrt(np.multiply.outer(rows.values, columns.values)) * white
        signals: Array = rows.vectors @ spectral @ columns.vectors.T
        if include_noise:
            signals = signals + np.sqrt(self.noise_variance) * random_state.standard_normal(signals.shape)
        return signals


def graph_gp(
    graph: Graph, graph_kernel: GraphKernel, input_kernel: InputKernel | KernelLike, noise_variance: float
) -> GraphGP:
    """Prior on a graph, with the spectrum that its graph kernel asks for.

    Parameters
    ----------
    graph : Graph
        The graph.
    graph_kernel : GraphKernel
        Covariance between nodes.
    input_kernel : scikit-learn kernel, "precomputed" or None
        Covariance between signals; "precomputed" where the user brings the matrix; None for independent signals.
    noise_variance : float
        Variance of the noise.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from spectralgp import Diffusion, Graph, graph_gp
    >>> ring = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0)])
    >>> prior = graph_gp(ring, Diffusion(strength=2.0), RBF(1.0), noise_variance=0.1)
    >>> prior.sample(np.zeros((2, 1)), 3, np.random.default_rng(0)).shape
    (3, 2, 4)
    """
    if not isinstance(graph, Graph):
        raise TypeError(
            f"graph must be a Graph; got {type(graph).__name__}. Convert adjacencies, networkx graphs and others with "
            "as_graph first."
        )
    if not isinstance(graph_kernel, GraphKernel):
        raise TypeError(
            f"graph_kernel must be a graph kernel such as Polynomial(3) or Diffusion(); got {graph_kernel!r}. "
            "For a filter of your own, wrap it in Response(function)."
        )
    as_positive(noise_variance, "noise_variance")
    spectrum = decompose(graph, graph_kernel.laplacian, scaled=graph_kernel.scaled)
    return GraphGP(spectrum, graph_kernel.bind(spectrum), as_input_kernel(input_kernel), float(noise_variance))
