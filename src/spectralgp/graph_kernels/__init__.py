"""Graph kernels: the covariance between nodes, as a function on the graph's spectrum.

Every kernel is a frozen description with values for its parameters; learning returns a new one.
"""

from spectralgp.graph_kernels.base import GraphKernel, SpectralKernel, Sum, WithResidual
from spectralgp.graph_kernels.local_average import LocalAverage
from spectralgp.graph_kernels.named import (
    Cosine,
    Diffusion,
    GlobalFilter,
    Identity,
    Matern,
    PseudoInverse,
    RandomWalk,
    RegularizedLaplacian,
)
from spectralgp.graph_kernels.polynomial import Polynomial
from spectralgp.graph_kernels.response import Response

__all__ = [
    "Cosine",
    "Diffusion",
    "GlobalFilter",
    "GraphKernel",
    "Identity",
    "LocalAverage",
    "Matern",
    "Polynomial",
    "PseudoInverse",
    "RandomWalk",
    "RegularizedLaplacian",
    "Response",
    "SpectralKernel",
    "Sum",
    "WithResidual",
]
