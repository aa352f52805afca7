"""The prior: a Gaussian process over signals on a graph, before any data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Kernel

from spectralgp._checks import Array, as_positive, as_real_array
from spectralgp.graph import Graph
from spectralgp.graph_kernels import GraphKernel
from spectralgp.spectrum import AnySpectrum, Modes, decompose, modes_of


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
    input_kernel : scikit-learn kernel, "precomputed" or None
        Covariance ``k(x, x')`` between signals; "precomputed" where the user brings the matrix; None for
        independent signals, ``K = I``.
    noise_variance : float
        ``sigma^2``.
    """

    spectrum: AnySpectrum
    graph_kernel: GraphKernel
    input_kernel: Any
    noise_variance: float

    @cached_property
    def node_modes(self) -> Modes:
        """Power at each graph frequency and the eigenvectors that go with it, of ``B B^T``."""
        return self.graph_kernel.modes(self.spectrum)

    def input_covariance(self, inputs: Array) -> Array:
        """``K`` at training inputs; the inputs are ``K`` itself if it is precomputed, and must look like one."""
        if self.input_kernel is None:
            return np.eye(inputs.shape[0])
        if isinstance(self.input_kernel, Kernel):
            return np.asarray(self.input_kernel(inputs))
        return as_covariance(inputs)

    def input_modes(self, inputs: Array) -> Modes:
        """Eigendecomposition of ``K`` at training inputs; there is nothing to decompose where it is the identity."""
        if self.input_kernel is None:
            return Modes(np.ones(inputs.shape[0]), np.eye(inputs.shape[0]))
        return modes_of(self.input_covariance(inputs), "the input covariance")

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


def graph_gp(graph: Graph, graph_kernel: GraphKernel, input_kernel: Any, noise_variance: float) -> GraphGP:
    """Prior on a graph, with the spectrum that its graph kernel asks for.

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
    return GraphGP(spectrum, graph_kernel.bind(spectrum), check_input_kernel(input_kernel), float(noise_variance))


def as_covariance(matrix: ArrayLike) -> Array:
    """A precomputed input covariance: square, finite and symmetric."""
    covariance = as_real_array(matrix, "X", ("n_signals", "n_signals"))
    if covariance.shape[0] != covariance.shape[1]:
        raise ValueError(
            "X must be square, the covariance of the training inputs, where the kernel is precomputed; got shape "
            f"{covariance.shape}. Pass K at fit, and the cross-covariance at predict."
        )
    asymmetry = float(np.max(np.abs(covariance - covariance.T), initial=0.0))
    if asymmetry > 1e-10 * np.max(np.abs(covariance), initial=0.0):
        raise ValueError(
            "X must be symmetric, a covariance, where the kernel is precomputed; got entries that differ across the "
            f"diagonal by up to {asymmetry:.3g}. Pass (K + K.T) / 2 if that is rounding."
        )
    return covariance


def check_input_kernel(kernel: Any) -> Any:
    """Accept a scikit-learn kernel, "precomputed" or None, and nothing else."""
    if kernel is None or isinstance(kernel, Kernel) or (isinstance(kernel, str) and kernel == "precomputed"):
        return kernel
    raise TypeError(
        f"kernel must be a scikit-learn kernel such as RBF(), 'precomputed' or None; got {kernel!r}. "
        "Import kernels from sklearn.gaussian_process.kernels, and pass an instance, not the class."
    )


@dataclass(frozen=True, eq=False)
class NewInputs:
    """Covariances of new inputs with the training inputs and among themselves: all that prediction needs of them.

    Parameters
    ----------
    cross : ndarray of shape (n_inputs, n_signals)
        ``k(x*, x_n)``.
    variances : ndarray of shape (n_inputs,) or None
        ``k(x*, x*)``; None if unknown (a precomputed kernel without test covariance).
    covariance : callable
        Gives ``k(x*, x*')``, shape (n_inputs, n_inputs), where it is asked for.
    """

    cross: Array
    variances: Array | None
    covariance: Any


def new_inputs(prior: GraphGP, training_inputs: Array, inputs: Any) -> NewInputs:
    """Covariances of `inputs` under a prior; with a precomputed kernel, ``cross`` or the pair ``(cross, test)``.

    Raises
    ------
    ValueError
        If signals are independent of their inputs (``K = I``), which leaves nothing to predict from, or if a
        precomputed matrix has the wrong shape.
    """
    kernel = prior.input_kernel
    if kernel is None:
        raise ValueError(
            "X must be given at fit to predict new signals; got a model fitted with X=None, in which signals are "
            "independent. Fit with inputs X, or use response, leave_one_out and samples instead."
        )
    if isinstance(kernel, Kernel):
        cross = np.asarray(kernel(inputs, training_inputs))
        return NewInputs(cross, np.asarray(kernel.diag(inputs)), lambda: np.asarray(kernel(inputs)))
    return _precomputed(inputs, training_inputs.shape[0])


def _precomputed(inputs: ArrayLike | tuple[ArrayLike, ArrayLike], n_signals: int) -> NewInputs:
    remedy = "Pass the cross-covariance of test and training inputs, or the pair (cross, test covariance)."
    if isinstance(inputs, tuple) and len(inputs) != 2:
        raise ValueError(
            f"X must be a matrix or a pair of them where the kernel is precomputed; got {len(inputs)} parts. {remedy}"
        )
    given, test = inputs if isinstance(inputs, tuple) else (inputs, None)
    cross = as_real_array(given, "X", ("n_inputs", "n_signals"), sizes={"n_signals": n_signals}, remedy=remedy)
    if test is None:
        return NewInputs(cross, None, _missing_covariance)
    size = {"n_inputs": cross.shape[0]}
    if np.ndim(test) == 1:
        variances = as_real_array(test, "the test variances in X", ("n_inputs",), sizes=size, remedy=remedy)
        return NewInputs(cross, variances, _missing_covariance)
    axes = ("n_inputs", "n_inputs")
    covariance = as_real_array(test, "the test covariance in X", axes, sizes=size, remedy=remedy)
    return NewInputs(cross, np.diag(covariance).copy(), lambda: covariance)


def _missing_covariance() -> Array:
    raise ValueError(
        "X must hold the covariance of the test inputs where covariances are wanted; got the cross-covariance only. "
        "Pass X = (cross, test covariance)."
    )
