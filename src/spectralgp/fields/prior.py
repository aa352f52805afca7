"""The prior: a Gaussian process over signals on a graph, before any data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from spectralgp._basics.arrays import without_caches
from spectralgp._basics.checks import Array, as_positive
from spectralgp.fields.covariances import Covariance, covariance_on
from spectralgp.fields.field import Field
from spectralgp.fields.nodes import GraphNodes, Nodes, ShrunkNodes
from spectralgp.fields.rows import Inputs, Rows
from spectralgp.fields.shrinkage import Shrinkage
from spectralgp.graphs import GraphBase
from spectralgp.kernels import GraphKernel, InputKernel, KernelLike, as_input_kernel
from spectralgp.kernels.carry import CarryColumns, CarryFilter
from spectralgp.signals.units import Units
from spectralgp.spectra import Exact, FilterBank, Spectrum, SpectrumSettings, modes_of


@dataclass(frozen=True, eq=False)
class GraphGP:
    """Prior over signals on a graph, ``Cov(Y) = K (x) B B^T + I (x) H H^T + sigma^2 I``; it stores no data.

    That is equation (3), with a residual that neighbours share where the graph kernel has one (equation (14)), and with
    the covariance between frequencies that signals showed, where it was learnt (equation (18)).

    Made by `graph_gp`.

    Parameters
    ----------
    spectrum : Spectrum
        Of the Laplacian that the graph kernel is a function of.
    graph_kernel : GraphKernel
        Covariance between nodes.
    input_kernel : InputKernel
        Covariance ``k(x, x')`` between signals.
    noise_variance : float
        ``sigma^2``.
    carry : CarryFilter, optional
        Filter through which inputs with a value at each node become the mean; zero if not given.
    shrinkage : Shrinkage, optional
        Covariance between the frequencies, and the tails of a signal; those of the graph's model if not given.
    """

    spectrum: Spectrum
    graph_kernel: GraphKernel
    input_kernel: InputKernel
    noise_variance: float
    carry: CarryFilter | None = None
    shrinkage: Shrinkage | None = None

    def __getstate__(self) -> dict[str, Any]:
        """With what nodes share, and nothing else that was computed."""
        return {**without_caches(self), "nodes": self.nodes}

    @cached_property
    def nodes(self) -> Nodes:
        """What nodes share, and the basis that it is diagonal in."""
        graph = GraphNodes(self.spectrum, self.graph_kernel, self.noise_variance)
        return graph if self.shrinkage is None else ShrunkNodes(graph, self.shrinkage)

    @property
    def basis(self) -> Spectrum:
        """Where covariances of nodes are diagonal."""
        return self.nodes.basis

    @property
    def graph_basis(self) -> Spectrum:
        """Where the graph's own covariance is diagonal: its spectrum, unless the kernel has eigenvectors of its own."""
        return self.graph_kernel.basis(self.spectrum)

    @property
    def freedom(self) -> float:
        """Degrees of freedom of a signal; infinite where it is normal."""
        return np.inf if self.shrinkage is None else self.shrinkage.freedom

    @cached_property
    def power(self) -> Array:
        """``gamma``, the eigenvalues of ``B B^T``, at the eigenvalues of the graph's basis."""
        return self.graph_kernel.power(self.graph_basis.eigenvalues)

    def with_tails(self, shrinkage: Shrinkage) -> GraphGP:
        """The prior with a shrinkage that differs in the tails of a signal alone: what nodes share is the same."""
        other = replace(self, shrinkage=shrinkage)
        other.__dict__["nodes"] = self.nodes  # the basis took an eigendecomposition
        return other

    def rows(self, inputs: Array) -> Inputs:
        """How signals covary by their inputs."""
        if inputs.shape[0] == 0:  # which scikit-learn's kernels take for one input
            return Inputs(modes_of(np.empty((0, 0))))
        return Inputs(self.input_kernel.modes(inputs).require_definite("the input covariance"))

    def covariance(self, rows: Rows) -> Covariance:
        """Covariance of signals as they are observed, noise included."""
        return covariance_on(rows, self.nodes)

    def carried_block(self, carried: CarryColumns | None, inputs: Array, units: Units) -> Any:
        """``b(L) x``, the mean that inputs carry over, as a block of the basis; zero where there is none."""
        carry, graph = self.carry, self.graph_basis
        if carried is None or carry is None:
            return 0.0
        through = FilterBank(lambda eigenvalues: carry.response(eigenvalues)[None], np.eye(inputs.shape[0]))
        block = graph.filtered(graph.load(carried.signals(inputs, units)), through)
        return block if self.shrinkage is None else self.basis.load(graph.unload(block))

    def carried_values(self, carried: CarryColumns | None, inputs: Array, units: Units) -> Any:
        """The mean that inputs carry over at the nodes, shape (n_inputs, n_nodes); zero where there is none."""
        block = self.carried_block(carried, inputs, units)
        return block if carried is None or self.carry is None else self.basis.unload(block)

    def scaled_by(self, factor: float) -> GraphGP:
        """The prior of signals multiplied by a positive factor."""
        kernel, noise_variance = self.graph_kernel.scaled_by(factor), self.noise_variance * factor**2
        return replace(self, graph_kernel=kernel, noise_variance=noise_variance)

    def residual_response(self, eigenvalues: Array) -> Array:
        """``h(lambda)``, the non-negative root of the power of the residual."""
        return np.sqrt(np.maximum(self.graph_kernel.residual_power(eigenvalues), 0.0))

    def node_covariance(self) -> Array:
        """``B B^T`` of what inputs explain, shape (n_nodes, n_nodes)."""
        vectors = self.basis.require_eigenvectors(
            "spectrum must be exact to write out the covariance of all nodes; got a quadrature. "
            "Use decompose(graph) where the graph is small enough, or draw samples."
        )
        return (vectors * self.nodes.power(self.basis.eigenvalues)) @ vectors.T

    def sample(
        self, inputs: Array, n_samples: int, random_state: np.random.Generator, include_noise: bool = False
    ) -> Array:
        """Draw signals from the prior at the given inputs, shape (n_samples, n_inputs, n_nodes)."""
        covariance = self.covariance(self.rows(inputs))
        return Field(covariance, covariance.zeros, Units(), self.freedom).sample(n_samples, random_state, include_noise)


def graph_gp(
    graph: GraphBase,
    graph_kernel: GraphKernel,
    input_kernel: InputKernel | KernelLike,
    noise_variance: float,
    *,
    spectrum: SpectrumSettings = Exact(),
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
    spectrum : Exact or Chebyshev, default=Exact()
        How the spectrum is found: `Chebyshev` for a graph that is too large to be decomposed.

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
    if not isinstance(graph, GraphBase):
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
    found = spectrum.of(graph, graph_kernel.laplacian, graph_kernel.scaled)
    return GraphGP(found, graph_kernel.bind(found), as_input_kernel(input_kernel), float(noise_variance))
