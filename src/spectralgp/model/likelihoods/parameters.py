"""Parameters of likelihoods: first values, bounds, and the search for the most likely ones on log scale."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import TypeVar

import numpy as np
from scipy.optimize import minimize_scalar

from spectralgp._basics.checks import Array, check_derivative
from spectralgp.model.likelihoods.base import Likelihood

L = TypeVar("L", bound=Likelihood)
PARAMETER_TOLERANCE = 1e-4  # of the logarithm of a learnt parameter
PARAMETER_STEP = 1.0  # largest step of that logarithm, since sites change with it
DIFFERENCE = 1e-2  # of that logarithm, for slopes and curvatures
N_CHECKED = 5  # values at which the derivatives of a user's likelihood are compared with differences


def open_parameters(likelihood: Likelihood) -> tuple[str, ...]:
    """Names of the parameters to be learnt: those without a value."""
    return tuple(name for name in likelihood.parameters if getattr(likelihood, name) is None)


def with_first_values(likelihood: L, unit: float = 1.0) -> L:
    """Likelihood with first values of open parameters; `unit` is a standard deviation of latent signals."""
    names = open_parameters(likelihood)
    return replace(
        likelihood, **{name: likelihood.parameters[name][1] * _unit(likelihood, name, unit) for name in names}
    )


def _unit(likelihood: Likelihood, name: str, unit: float) -> float:
    return unit if name in likelihood.in_latent_units else 1.0


def log_bounds(likelihood: Likelihood, names: tuple[str, ...], unit: float = 1.0) -> Array:
    """Bounds of the logarithms of parameters, shape (n_names, 2)."""
    found = [np.multiply(likelihood.parameters[name][::2], _unit(likelihood, name, unit)) for name in names]
    return np.log(np.array(found).reshape(-1, 2))


def log_parameters(likelihood: Likelihood, names: tuple[str, ...]) -> Array:
    """Logarithms of parameters."""
    return np.log(np.array([getattr(likelihood, name) for name in names], dtype=float))


def with_log_parameters(likelihood: L, names: tuple[str, ...], logs: Array) -> L:
    """Likelihood with parameters of these logarithms."""
    return replace(likelihood, **dict(zip(names, np.exp(logs).tolist(), strict=True)))


def learn_parameters(likelihood: L, names: tuple[str, ...], *observed: Array, unit: float = 1.0) -> tuple[L, float]:
    """Likelihood with parameters that maximise the sum of `expected` log densities one by one, and the gain in nats."""
    gain = 0.0
    for name in names:
        (now,) = log_parameters(likelihood, (name,))
        low, high = np.clip(log_bounds(likelihood, (name,), unit)[0], now - PARAMETER_STEP, now + PARAMETER_STEP)

        def missed(log: float, name: str = name, likelihood: L = likelihood) -> float:
            return -_total(likelihood, (name,), np.array([log]), *observed)

        before = missed(now)
        found = minimize_scalar(missed, bounds=(low, high), options={"xatol": PARAMETER_TOLERANCE})
        if found.fun < before:
            likelihood = with_log_parameters(likelihood, (name,), np.array([found.x]))
            gain += before - found.fun
    return likelihood, float(gain)


def _total(likelihood: Likelihood, names: tuple[str, ...], logs: Array, *observed: Array) -> float:
    """``sum E log p(y | f)`` with parameters of these logarithms."""
    return float(np.sum(with_log_parameters(likelihood, names, logs).expected(*observed)[0]))


def parameter_slopes(likelihood: Likelihood, names: tuple[str, ...], *observed: Array) -> tuple[Array, Array]:
    """Derivative of ``sum E log p(y | f)`` in the parameters' logarithms, and minus the second, by differences."""
    logs, steps = log_parameters(likelihood, names), DIFFERENCE * np.eye(len(names))

    def total(step: Array) -> float:
        return _total(likelihood, names, logs + step, *observed)

    here = total(np.zeros(len(names)))
    up, down = (np.array([total(sign * step) for step in steps]) for sign in (1.0, -1.0))
    curvature = np.diag(2 * here - up - down)
    for one, other in combinations(range(len(names)), 2):
        both = total(steps[one] + steps[other])
        curvature[one, other] = curvature[other, one] = up[one] + up[other] - both - here
    return (up - down) / (2 * DIFFERENCE), curvature / DIFFERENCE**2


def rough_level(likelihood: Likelihood, values: Array, beside: Array) -> float:
    """Rough estimate of a common latent level from all values: the prior mean of an intercept."""
    if likelihood.is_discrete:  # single counts say little
        values, beside = np.sum(values, keepdims=True), np.sum(beside, keepdims=True)
    return float(np.mean(likelihood.rough_latent(values, beside)))


def check_derivatives(likelihood: Likelihood, values: Array, beside: Array) -> None:
    """Refuse a user's class whose `at` contradicts finite differences at a few values."""
    if type(likelihood).__module__.startswith("spectralgp."):
        return
    values, beside, name = values[:N_CHECKED], beside[:N_CHECKED], f"{type(likelihood).__name__}.at must return"
    latent = likelihood.rough_latent(values, beside) + 0.3 * (-1.0) ** np.arange(values.size)
    places = [f"y = {y:g}, f = {f:g}" for y, f in zip(values, latent, strict=True)]
    terms = partial(with_first_values(likelihood).at, values, beside=beside)
    check_derivative(f"{name} the slope of its log density", terms, latent, places)
    check_derivative(f"{name} minus the second derivative", lambda f: (-terms(f)[1], terms(f)[2]), latent, places)
