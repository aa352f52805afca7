"""Settings of an estimator, checked, and a word of warning where data leave something open."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from spectralgp._basics.checks import Array, as_option
from spectralgp.kernels import GraphKernel, SpectralKernel, as_input_kernel
from spectralgp.learning import Fit, as_solver
from spectralgp.learning.fitting import Stacking
from spectralgp.learning.task import check_noise
from spectralgp.spectra import SpectrumSettings


def check_parameters(estimator: Any) -> None:
    """Refuse settings that say nothing, before anything is computed."""
    for name, options in (
        ("center", ("auto", "global", "node")),
        ("scale", ("auto", "global", "node")),
        ("prior", ("weak",)),
    ):
        if getattr(estimator, name) is not None:
            as_option(getattr(estimator, name), name, options)
    is_papers = as_solver(estimator.solver).only_papers_model
    if isinstance(estimator.residual, GraphKernel):
        if not isinstance(estimator.residual, SpectralKernel):
            raise TypeError(
                f"residual must be a function on the spectrum, such as Polynomial(2); got {estimator.residual!r}."
            )
    elif estimator.residual is not None and estimator.residual != "auto":
        raise ValueError(
            f"residual must be a graph kernel, 'auto' or None; got {estimator.residual!r}. 'auto' shrinks where that "
            "can be done: on an exact spectrum of up to 2,000 nodes, with three signals or more."
        )
    if is_papers and isinstance(estimator.residual, GraphKernel):
        raise ValueError(
            f"residual must be None or 'auto' with solver='lagrangian', the paper's algorithm for the paper's "
            f"model; got {estimator.residual!r}. Use solver='sqp'."
        )
    as_input_kernel(estimator.input_kernel)
    check_noise(estimator.noise_variance)
    if not isinstance(estimator.stacking, Stacking | None):
        raise TypeError(f"stacking must be a Stacking(...) or None; got {estimator.stacking!r}.")
    if not isinstance(estimator.spectrum, SpectrumSettings):
        as_option(estimator.spectrum, "spectrum", ("auto", "exact", "chebyshev"))


def warn_of_noise(fits: Sequence[Fit], weights: Array, stacklevel: int) -> None:
    """Say so where the noise of most of the models is at its lower bound, so that nothing tells it from a filter."""
    at_bound = [fit.is_noise_at_bound for fit in fits]
    if weights @ at_bound > 0.5:
        warnings.warn(
            "the noise is at its lower bound: the signals leave nothing that could be told apart as noise, and "
            "intervals may be too narrow. Check Y for copies or interpolated values, or pass noise_variance, or "
            "bounds of it.",
            UserWarning,
            stacklevel=stacklevel,
        )
