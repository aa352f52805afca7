"""Gaussian processes on graphs that learn their own spectrum."""

from spectralgp.graph import Graph, as_graph
from spectralgp.graph_kernels import (
    Cosine,
    Diffusion,
    GlobalFilter,
    GraphKernel,
    Identity,
    LocalAverage,
    Matern,
    Polynomial,
    PseudoInverse,
    RandomWalk,
    RegularizedLaplacian,
    Response,
)
from spectralgp.spectrum import Spectrum, decompose

__version__ = "0.1.0"

__all__ = [
    "Cosine",
    "Diffusion",
    "GlobalFilter",
    "Graph",
    "GraphKernel",
    "Identity",
    "LocalAverage",
    "Matern",
    "Polynomial",
    "PseudoInverse",
    "RandomWalk",
    "RegularizedLaplacian",
    "Response",
    "Spectrum",
    "as_graph",
    "decompose",
]
