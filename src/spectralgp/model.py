"""The prior: a Gaussian process over signals on a graph, before any data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from spectralgp._checks import Array, as_integer, as_positive
from spectralgp.carry import Carried, Carry
from spectralgp.covariance import DataCovariance
from spectralgp.graph import GraphBase
from spectralgp.graph_kernels import GraphKernel
from spectralgp.inputs import InputKernel, KernelLike, as_input_kernel
from spectralgp.modes import Modes, modes_of
from spectralgp.spectrum import Exact, FilterBank, Spectrum, SpectrumSettings
from spectralgp.units import Units


@dataclass(frozen=True, eq=False)
class GraphGP:
    """Prior over signals on a graph, ``Cov(Y) = K (x) B B^T + I (x) H H^T + sigma^2 I``; it stores no data.

    That is equation (3), with a residual that neighbours share where the graph kernel has one (equation (14)).

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
    carry : Carry, optional
        Filter through which inputs with a value at each node become the mean; zero if not given.
    """

    spectrum: Spectrum
    graph_kernel: GraphKernel
    input_kernel: InputKernel
    noise_variance: float
    carry: Carry | None = None

    @cached_property
    def basis(self) -> Spectrum:
        """Where ``B B^T`` is diagonal: the graph's own spectrum, unless the kernel has eigenvectors of its own."""
        return self.graph_kernel.basis(self.spectrum)

    @cached_property
    def power(self) -> Array:
        """``gamma``, the eigenvalues of ``B B^T``, at the eigenvalues of `basis`."""
        return self.graph_kernel.power(self.basis.eigenvalues)

    def input_modes(self, inputs: Array) -> Modes:
        """Eigendecomposition of ``K`` at training inputs."""
        if inputs.shape[0] == 0:  # which scikit-learn's kernels take for one input
            return modes_of(np.empty((0, 0)))
        return self.input_kernel.modes(inputs).require_definite("the input covariance")

    def covariance(self, input_modes: Modes) -> DataCovariance:
        """Covariance of signals whose inputs have the given modes."""
        return self.covariance_at(input_modes, self.basis.eigenvalues)

    def covariance_at(self, input_modes: Modes, eigenvalues: Array) -> DataCovariance:
        """The same at other eigenvalues than those of `basis`."""
        kernel = self.graph_kernel
        return DataCovariance(
            input_modes.values, kernel.power(eigenvalues), self.noise_variance, kernel.residual_power(eigenvalues)
        )

    def carried_block(self, carried: Carried | None, inputs: Array, units: Units) -> Any:
        """``b(L) x``, the mean that inputs carry over, as a block of the basis; zero where there is none."""
        carry, basis = self.carry, self.basis
        if carried is None or carry is None:
            return 0.0
        through = FilterBank(lambda eigenvalues: carry.response(eigenvalues)[None], np.eye(inputs.shape[0]))
        return basis.filtered(basis.load(carried.signals(inputs, units)), through)

    def carried_values(self, carried: Carried | None, inputs: Array, units: Units) -> Any:
        """The same at the nodes, shape (n_inputs, n_nodes)."""
        block = self.carried_block(carried, inputs, units)
        return block if carried is None or self.carry is None else self.basis.unload(block)

    def scaled_by(self, factor: float) -> GraphGP:
        """The prior of signals multiplied by a positive factor."""
        kernel, noise_variance = self.graph_kernel.scaled_by(factor), self.noise_variance * factor**2
        return GraphGP(self.spectrum, kernel, self.input_kernel, noise_variance, self.carry)

    def residual_response(self, eigenvalues: Array) -> Array:
        """``h(lambda)``, the non-negative root of the power of the residual."""
        return np.sqrt(np.maximum(self.graph_kernel.residual_power(eigenvalues), 0.0))

    def residual_bank(self, n_signals: int) -> FilterBank:
        """The filter ``h`` of each of so many signals, for draws.

        Without its floor ``h`` comes near zero as a root does, and a series for it is long. Draws are spared terms
        below a ten-thousandth: where ``h`` is small that changes their covariance by the square of it.
        """
        return FilterBank(lambda eigenvalues: self.residual_response(eigenvalues)[None], np.eye(n_signals), None, 1e-4)

    def node_covariance(self) -> Array:
        """``B B^T``, shape (n_nodes, n_nodes)."""
        vectors = self.basis.require_eigenvectors(
            "spectrum must be exact to write out the covariance of all nodes; got a quadrature. "
            "Use decompose(graph) where the graph is small enough, or draw samples."
        )
        return (vectors * self.power) @ vectors.T

    def sample(
        self, inputs: Array, n_samples: int, random_state: np.random.Generator, include_noise: bool = False
    ) -> Array:
        """Draw signals from the prior at the given inputs, shape (n_samples, n_inputs, n_nodes)."""
        modes, basis = self.input_modes(inputs), self.basis
        draws = []
        for _ in range(as_integer(n_samples, "n_samples", 1)):
            block = self.sample_block(modes, random_state)
            if include_noise:
                block = block + basis.white(inputs.shape[0], random_state) * float(np.sqrt(self.noise_variance))
            draws.append(basis.unload(block))
        return basis.stack(draws)

    def sample_block(self, input_modes: Modes, random_state: np.random.Generator) -> Any:
        """A draw of signals without noise, at inputs with the given modes, as a block of the basis."""
        basis, n_signals = self.basis, input_modes.values.size
        # the symmetric root: the same random numbers give draws that change with the model no more than it does
        root = (input_modes.vectors * np.sqrt(input_modes.values)) @ input_modes.vectors.T
        bank = FilterBank(lambda eigenvalues: self.graph_kernel.response(eigenvalues)[None], root)
        block = basis.filtered(basis.white(n_signals, random_state), bank)
        if self.graph_kernel.residual is None:
            return block
        return block + basis.filtered(basis.white(n_signals, random_state), self.residual_bank(n_signals))


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
