"""Models of the command line: kernels by name, and scores of a model."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

import spectralgp
from spectralgp import GraphGPRegressor, GraphKernel
from spectralgp.scores import coverage, crps, root_mean_square_error

if TYPE_CHECKING:
    import pandas as pd

AUTO = "auto"
KERNELS: dict[str, tuple[Callable[..., GraphKernel], str | None]] = {
    "polynomial": (spectralgp.Polynomial, "degree"),
    "identity": (spectralgp.Identity, None),
    "global-filter": (spectralgp.GlobalFilter, None),
    "local-average": (spectralgp.LocalAverage, None),
    "pseudo-inverse": (spectralgp.PseudoInverse, None),
    "regularized-laplacian": (spectralgp.RegularizedLaplacian, None),
    "diffusion": (spectralgp.Diffusion, None),
    "random-walk": (spectralgp.RandomWalk, "steps"),
    "cosine": (spectralgp.Cosine, None),
    "matern": (spectralgp.Matern, "nu"),
}
"""Graph kernels by name, and what a number behind the name sets."""


def kernel_named(text: str) -> GraphKernel | None:
    """A graph kernel such as "diffusion", "polynomial:3" or "polynomial:auto"; None for "auto", the library's choice.

    Raises
    ------
    BadParameter
        If there is no such kernel.

    Examples
    --------
    >>> from spectralgp.cli.models import kernel_named
    >>> kernel_named("polynomial:2").degree, kernel_named("auto")
    (2, None)
    """
    name, _, setting = text.strip().lower().partition(":")
    if name == AUTO and not setting:
        return None
    if name not in KERNELS:
        raise typer.BadParameter(f"kernel must be one of {', '.join([AUTO, *KERNELS])}; got {text!r}.")
    make, parameter = KERNELS[name]
    if not setting:
        return make("auto") if name == "polynomial" else make()
    if parameter is None:
        raise typer.BadParameter(f"kernel {name} must stand alone, without a number; got {text!r}.")
    try:
        value: Any = setting if setting == "auto" else float(setting) if parameter == "nu" else int(setting)
        return make(value)
    except (TypeError, ValueError) as error:
        raise typer.BadParameter(
            f"kernel must be such as {name}:2, the number being its {parameter}; got {text!r}."
        ) from error


@dataclass(frozen=True)
class Scores:
    """How well a model predicts signals.

    Parameters
    ----------
    n_signals, n_values : int
        Signals of which something was observed, and how much.
    log_density, log_density_error : float
        Log density of a signal: mean and standard error, in nats; the error of one signal is NaN.
    rmse, crps : float
        Error of the predicted means, and continuous ranked probability score, in the units of the signals.
    coverage : float
        Share of the values inside their interval.
    """

    n_signals: int
    n_values: int
    log_density: float
    log_density_error: float
    rmse: float
    crps: float
    coverage: float


def scored(model: GraphGPRegressor, inputs: Any, truth: pd.DataFrame, level: float) -> Scores:
    """Score a model on signals, each taken alone; intervals are of probability `level`."""
    is_observed = truth.notna().to_numpy()
    densities = np.asarray(model.log_predictive_density(inputs, truth, joint=False))[is_observed.any(axis=1)]
    answering = copy(model).set_output(predict="pandas")
    frames = answering.predict(inputs, return_std=True, include_noise=True)
    names = list(truth.columns)
    ordered = (frame[names] if set(names) == set(frame.columns) else frame for frame in frames)
    mean, std = (np.broadcast_to(frame.to_numpy(), truth.shape) for frame in ordered)  # all alike without inputs
    return Scores(
        densities.size,
        int(is_observed.sum()),
        float(np.mean(densities)),
        float(np.std(densities, ddof=1) / np.sqrt(densities.size)) if densities.size > 1 else float("nan"),
        root_mean_square_error(truth, mean),
        float(np.nanmean(crps(truth, mean, std))),
        coverage(truth, mean, std, level),
    )
