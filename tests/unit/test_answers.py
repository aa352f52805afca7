"""Filters of several models as one: weighted means, and how far models and draws leave them open."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import oracle
from spectralgp import Diffusion, Graph, GraphGPRegressor, Identity, LocalAverage, Polynomial
from spectralgp.estimators.answers import average_response, filter_shape
from spectralgp.model.fields import graph_gp
from spectralgp.model.kernels import WithResidual
from spectralgp.model.kernels.carry import CarryFilter
from tolerances import EXACT

GRAPH = Graph(oracle.ring(6))
POINTS = np.linspace(0.0, 1.0, 5)
FALLING, RISING = Polynomial.from_coefficients([2.0, -1.0]), Polynomial.from_coefficients([0.5, 1.0])


def prior(kernel):
    return graph_gp(GRAPH, kernel, None, 0.1)


def test_the_filter_of_a_mixture_is_a_weighted_mean_in_the_units_of_each():
    """Weights need not add up; a model without one, or on another Laplacian, has no say."""
    models = [
        (0.3, prior(FALLING), 2.0, 0.0),
        (0.9, prior(RISING), 1.0, 0.0),
        (0.0, prior(Polynomial.from_coefficients([99.0])), 1.0, 0.0),
        (0.5, prior(Diffusion(1.0)), 1.0, 0.0),
    ]
    mean, std = average_response(models, models[0][1].spectrum, POINTS, "signal")
    first, second = 2 * (2 - POINTS), 0.5 + POINTS
    expected = 0.25 * first + 0.75 * second
    assert oracle.relative_error(mean, expected) < EXACT
    spread = np.sqrt(0.25 * (first - expected) ** 2 + 0.75 * (second - expected) ** 2)
    assert oracle.relative_error(std, spread) < EXACT
    flat = (1.2, prior(Identity(amplitude=3.0)), 1.0, 0.0)  # which needs no graph
    mean, _ = average_response([*models, flat], models[0][1].spectrum, POINTS, "signal")
    assert oracle.relative_error(mean, 0.5 * expected + 0.5 * 3.0) < EXACT


def test_the_residual_is_in_the_units_of_the_signals_too():
    kernel = WithResidual.of(FALLING, RISING)
    mean, std = average_response([(1.0, prior(kernel), 3.0, 0.0)], prior(kernel).spectrum, POINTS, "residual")
    assert oracle.relative_error(mean, 3 * (0.5 + POINTS)) < EXACT
    assert not std.any()
    mean, _ = average_response([(1.0, prior(FALLING), 3.0, 0.0)], prior(FALLING).spectrum, POINTS, "residual")
    assert not mean.any()


def test_what_carries_over_has_no_units_and_an_error_of_its_own():
    """Chebyshev polynomials 1, 2 t - 1 and 2 (2 t - 1)^2 - 1 of the frequency."""
    covariance = np.diag([0.01, 0.04, 0.0])
    learnt = replace(prior(FALLING), carry=CarryFilter(np.array([1.0, 0.5, 0.25]), 1.0, covariance))
    models = [(0.5, learnt, 7.0, 0.5), (0.5, prior(RISING), 7.0, 1.0)]
    mean, std = average_response(models, learnt.spectrum, POINTS, "carry")
    turned = 2 * POINTS - 1
    first, second = 0.5 + 1 + 0.5 * turned + 0.25 * (2 * turned**2 - 1), np.ones(5)
    assert oracle.relative_error(mean, (first + second) / 2) < EXACT
    own = 0.5 * (0.01 + 0.04 * turned**2)
    assert oracle.relative_error(std, np.sqrt(own + (first - second) ** 2 / 4)) < EXACT


def test_a_kernel_off_the_spectrum_has_no_filter():
    model = (1.0, prior(LocalAverage()), 1.0, 0.0)
    with pytest.raises(ValueError, match="must be a function on the spectrum to have a response; got LocalAverage"):
        average_response([model], model[1].spectrum, POINTS, "signal")


def test_draws_that_differ_leave_a_shape_open():
    """All fall alike, or as many rise: the mean of both is flat as far as they tell."""
    spectrum = prior(FALLING).spectrum
    steep = Polynomial.from_coefficients([2.0, -1.9])
    alike = [[(1.0, prior(steep), factor, 0.0) for factor in np.linspace(0.9, 1.1, 8)]]
    fitted = [(1.0, prior(steep), 1.0, 0.0)]
    assert filter_shape(fitted, alike, spectrum, "signal").kind == "low-pass"
    slight = Polynomial.from_coefficients([1.05, -0.1])
    apart = [[(1.0, prior(one), 1.0, 0.0) for one in 4 * [FALLING, RISING]]]
    found = filter_shape([(1.0, prior(slight), 1.0, 0.0)], apart, spectrum, "signal")
    assert found.kind == "flat"
    assert filter_shape([(1.0, prior(steep), 1.0, 0.0)], [], spectrum, "signal").kind == "low-pass"


RNG = np.random.default_rng(0)
INPUTS = RNG.standard_normal((9, 6))
SIGNALS = INPUTS + RNG.standard_normal((9, 6))
HOLED = np.where(RNG.random(SIGNALS.shape) < 0.2, np.nan, SIGNALS)
ALONE = {"residual": None, "carry": None}


@pytest.mark.parametrize(
    ("kernel", "settings", "signals", "lines"),
    [
        (Polynomial(1), ALONE, SIGNALS, "signal inputs noise"),
        (Polynomial(1), {"residual": Polynomial(1)}, HOLED, "signal residual carry inputs noise missing"),
        (Polynomial(1), {"carry": None}, SIGNALS, "signal inputs noise shrunk tails"),
        (Identity(), ALONE | {"likelihood": "poisson"}, np.round(np.exp(HOLED)), "signal inputs white observed"),
    ],
)
def test_the_summary_has_a_line_for_all_that_a_model_has(kernel, settings, signals, lines):
    model = GraphGPRegressor(GRAPH, kernel, RBF(), **settings).fit(INPUTS, signals)
    first, empty, weight, *found = model.summary().splitlines()
    assert (first, empty) == ("9 signals on 6 nodes and 6 edges; one model.", "")
    assert weight.startswith("weight 1.00: ")
    assert [line.split(":")[0].strip() for line in found] == lines.split()
    (words,) = [line for line in found if "standard deviation" in line]
    assert f"standard deviation {np.sqrt(model.noise_variance_):.3g}" in words


def test_the_summary_has_the_heaviest_model_first():
    model = GraphGPRegressor(GRAPH, [Polynomial(2), Polynomial(0)], RBF(), **ALONE).fit(INPUTS, SIGNALS)
    words = model.summary()
    assert model.kernel_weights_.tolist() == [0.0, 1.0]
    assert words.startswith("9 signals on 6 nodes and 6 edges; one model.\n")  # that has a weight
    weights = [line.split(":")[0] for line in words.splitlines() if line.startswith("weight ")]
    assert weights == [f"weight {weight:.2f}" for weight in sorted(model.kernel_weights_, reverse=True)]
    assert model.kernel_weights_[0] < model.kernel_weights_[1]
    assert words.index("Polynomial(0)") < words.index("Polynomial(2)")
