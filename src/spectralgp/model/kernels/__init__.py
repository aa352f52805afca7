"""Kernels: the covariance between nodes, on the graph's spectrum, and between signals, by their inputs."""

from spectralgp.model.kernels.base import (
    GraphKernel,
    KernelSearch,
    KernelSum,
    Positivity,
    SpectralKernel,
    WithResidual,
    mean_power,
    power_jacobians,
    signal_of,
    with_residual,
)
from spectralgp.model.kernels.inputs import (
    IndependentSignals,
    InputKernel,
    KernelLike,
    LearntInputKernel,
    NewInputs,
    PrecomputedCovariance,
    StandardisedKernel,
    as_covariance,
    as_input_kernel,
    held_out_inputs,
    input_starts,
    length_scale_centres,
    matern_terms,
    modes_and_gradient,
    modes_of_inputs,
    new_inputs,
    with_amplitude,
    without_amplitude,
)
from spectralgp.model.kernels.named import Diffusion, Identity, Response
from spectralgp.model.kernels.polynomial import Polynomial
