"""Kernels: the covariance between nodes, on the graph's spectrum, and between signals, by their inputs.

Every kernel is a frozen description with values for its parameters; learning returns a new one.
"""

from spectralgp.kernels.base import GraphKernel, SpectralKernel, Sum, WithResidual
from spectralgp.kernels.inputs import (
    Independent,
    InputKernel,
    KernelLike,
    Learnt,
    Precomputed,
    as_covariance,
    as_input_kernel,
    length_scale_centres,
)
from spectralgp.kernels.local_average import LocalAverage
from spectralgp.kernels.named import (
    Cosine,
    Diffusion,
    GlobalFilter,
    Identity,
    Matern,
    PseudoInverse,
    RandomWalk,
    RegularizedLaplacian,
)
from spectralgp.kernels.new_inputs import GivenInputs, KernelInputs, NewInputs
from spectralgp.kernels.polynomial import Polynomial
from spectralgp.kernels.recipe import InputRecipe
from spectralgp.kernels.response import Response
from spectralgp.kernels.standardised import Standardised, Term

__all__ = [
    "Cosine",
    "Diffusion",
    "GivenInputs",
    "GlobalFilter",
    "GraphKernel",
    "Identity",
    "Independent",
    "InputKernel",
    "InputRecipe",
    "KernelInputs",
    "KernelLike",
    "Learnt",
    "LocalAverage",
    "Matern",
    "NewInputs",
    "Polynomial",
    "Precomputed",
    "PseudoInverse",
    "RandomWalk",
    "RegularizedLaplacian",
    "Response",
    "SpectralKernel",
    "Standardised",
    "Sum",
    "Term",
    "WithResidual",
    "as_covariance",
    "as_input_kernel",
    "length_scale_centres",
]
