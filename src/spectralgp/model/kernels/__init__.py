"""Kernels: the covariance between nodes, on the graph's spectrum, and between signals, by their inputs."""

from spectralgp.model.kernels.base import (
    GraphKernel,
    KernelSum,
    SpectralKernel,
    WithResidual,
    mean_power,
    power_jacobians,
    signal_of,
    with_residual,
    without_floor,
)
from spectralgp.model.kernels.forms import InputRecipe, NewInputs, as_covariance
from spectralgp.model.kernels.inputs import (
    IndependentSignals,
    InputKernel,
    KernelLike,
    KernelTerm,
    LearntInputKernel,
    PrecomputedCovariance,
    StandardisedKernel,
    UnrelatedSignals,
    as_input_kernel,
    held_out_inputs,
    length_scale_centres,
    matern_terms,
    modes_and_gradient,
    modes_of_inputs,
    new_inputs,
    with_amplitude,
    without_amplitude,
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
