"""Covariance between signals by their inputs: a kernel that is learnt, a matrix that is given, or none."""

from spectralgp.inputs.kernels import (
    Independent,
    InputKernel,
    KernelLike,
    Learnt,
    Precomputed,
    as_covariance,
    as_input_kernel,
    length_scale_centres,
)
from spectralgp.inputs.new import GivenInputs, KernelInputs, NewInputs
from spectralgp.inputs.recipe import InputRecipe
from spectralgp.inputs.standardised import Standardised, Term

__all__ = [
    "GivenInputs",
    "Independent",
    "InputKernel",
    "InputRecipe",
    "KernelInputs",
    "KernelLike",
    "Learnt",
    "NewInputs",
    "Precomputed",
    "Standardised",
    "Term",
    "as_covariance",
    "as_input_kernel",
    "length_scale_centres",
]
