"""Kernels: the covariance between nodes, on the graph's spectrum, and between signals, by their inputs."""

from spectralgp.model.kernels.base import (
    GraphKernel,
    KernelSum,
    SpectralKernel,
    WithResidual,
    mean_power,
    power_jacobians,
    residual_of,
    signal_of,
    with_residual,
    without_floor,
)
from spectralgp.model.kernels.inputs import (
    IndependentSignals,
    InputKernel,
    InputRecipe,
    KernelLike,
    KernelTerm,
    LearntInputKernel,
    NewInputs,
    PrecomputedCovariance,
    StandardisedKernel,
    UnrelatedSignals,
    as_covariance,
    as_input_kernel,
    length_scale_centres,
)
from spectralgp.model.kernels.named import (
    Cosine,
    Diffusion,
    GlobalFilter,
    Identity,
    LocalAverage,
    Matern,
    PseudoInverse,
    RandomWalk,
    RegularizedLaplacian,
    Response,
)
from spectralgp.model.kernels.polynomial import Polynomial
from spectralgp.model.kernels.search import KernelSearch, Positivity
