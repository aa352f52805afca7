"""Arguments beside the data are validated, whatever the model is: by name, with the value that was given."""

import re

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import KFold, cross_val_score, cross_validate

from cases import Heat, Waiting
from oracle import relative_error
from spectralgp import Diffusion, Graph, GraphGPRegressor, Identity, Polynomial
from spectralgp.model.fields.field import MixtureField
from spectralgp.model.kernels import SpectralKernel
from spectralgp.model.signals import read_signals
from spectralgp.scores import coverage_scorer, crps_scorer, log_density_scorer
from tolerances import EXACT, OPTIMUM

RING = Graph.from_edges([(node, (node + 1) % 8) for node in range(8)])


@pytest.fixture(scope="module", params=["gaussian", "poisson", "mixture"])
def fitted(request):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(25, 2))
    Y = np.sin(X[:, :1]) + 0.3 * rng.normal(size=(25, 8))
    if request.param == "poisson":
        return GraphGPRegressor(RING, Polynomial(1), likelihood="poisson").fit(X, rng.poisson(np.exp(0.5 * Y + 1)))
    return GraphGPRegressor(RING, [Polynomial(1), Polynomial(2)] if request.param == "mixture" else Polynomial(1)).fit(
        X, Y
    )


@pytest.mark.parametrize("probability", [5, -1, 0.0, 1.0, np.nan])
def test_quantiles_are_of_probabilities(fitted, probability):
    match = f"return_quantiles must hold probabilities between 0 and 1, exclusive; got {probability}"
    with pytest.raises(ValueError, match=match):
        fitted.predict(np.zeros((1, 2)), return_quantiles=(0.5, probability))


def test_new_inputs_have_the_features_of_the_training_inputs(fitted):
    with pytest.raises(ValueError, match=r"inputs must have shape .* with n_features = 2; got"):
        fitted.posterior_.at(np.zeros((2, 1)))
    with pytest.raises(ValueError, match=r"inputs must (be finite|not hold|hold)"):
        fitted.posterior_.at(np.full((1, 2), np.nan))


@pytest.mark.parametrize("n_samples", [0, -1])
def test_samples_are_counted_from_one(fitted, n_samples):
    field = fitted.posterior_.at(np.zeros((1, 2)))
    for one in (field, MixtureField(np.array([0.5, 0.5]), (field, field))):
        with pytest.raises(ValueError, match=f"n_samples must be .*got {n_samples}"):
            one.sample(n_samples, np.random.default_rng(0))


@pytest.mark.parametrize("scale", ["global", "node"])
@pytest.mark.parametrize("center", [None, "global", "node"])
def test_signals_with_and_without_missing_values_have_one_scale(center, scale):
    """One missing value of many changes what signals are divided by by little, whatever they are centred by."""
    values = 7 + np.random.default_rng(0).standard_normal((400, 3)) * [1.0, 2.0, 3.0]
    holed = values.copy()
    holed[0, 0] = np.nan
    whole, some = (read_signals(one, center, scale).units.divisor for one in (values, holed))
    assert relative_error(np.asarray(some), np.asarray(whole)) < 0.01
    if (center, scale) == (None, "global"):
        assert relative_error(np.asarray(some), np.nanstd(holed)) < EXACT


X, Y = np.arange(10.0)[:, None], np.random.default_rng(0).exponential(size=(10, 8))


def test_a_kernel_of_ones_own_has_the_derivative_of_its_power():
    """Alone, in sums, beside others and as a residual; a right one learns what `Diffusion` does."""
    settings = {"input_kernel": RBF(1.0, "fixed"), "residual": None}
    named = Diffusion(strength_bounds="fixed")
    own, known = (GraphGPRegressor(RING, kernel, **settings).fit(X, Y) for kernel in (Heat(), named))
    assert own.learnt_.fits[0].log_posterior == pytest.approx(known.learnt_.fits[0].log_posterior, abs=OPTIMUM)
    assert own.graph_kernel_[0].search().parameter_names == ("theta[0]",)
    match = (
        r"Heat.power_jacobian must be the derivative of power in theta\[0\]; got -2 where differences give 2, at eigen"
    )
    for kernel in (Heat(factor=-1.0), Identity() + Heat(factor=-1.0), [Identity(), Heat(factor=-1.0)]):
        with pytest.raises(ValueError, match=match):
            GraphGPRegressor(RING, kernel).fit(X, Y)
    with pytest.raises(ValueError, match=match):
        GraphGPRegressor(RING, Identity(), residual=Heat(factor=-1.0)).fit(X, Y)


def test_a_kernel_without_a_member_cannot_be_made():
    members = {name: getattr(Heat, name) for name in ("theta", "with_theta", "scaled_by", "power", "power_jacobian")}
    assert type("Own", (SpectralKernel,), members)().laplacian == "combinatorial"
    for name in members:
        lacking = type("Own", (SpectralKernel,), {other: one for other, one in members.items() if other != name})
        with pytest.raises(TypeError, match=f"abstract .*{name}"):
            lacking()


def test_a_likelihood_of_ones_own_has_the_derivatives_of_its_density():
    right = GraphGPRegressor(RING, Polynomial(1), likelihood=Waiting()).fit(X, Y)
    latent = np.log(Y[0, 0]) + 0.3
    assert right.likelihood_ == Waiting()
    slope, place = np.exp(-0.3) - 1, f"at y = {Y[0, 0]:g}, f = {latent:g}"
    match = (
        f"Waiting.at must return the slope of its log density; got {-slope:.6g} where differences give {slope:.6g}, "
    )
    with pytest.raises(ValueError, match=re.escape(match + place)):
        GraphGPRegressor(RING, Polynomial(1), likelihood=Waiting(slope_sign=-1.0)).fit(X, Y)
    with pytest.raises(ValueError, match=r"Waiting.at must return minus the second derivative; got -0.740818 where"):
        GraphGPRegressor(RING, Polynomial(1), likelihood=Waiting(curvature_sign=-1.0)).fit(X, Y)


@pytest.mark.parametrize("scorer", [log_density_scorer, crps_scorer, coverage_scorer])
def test_scorers_score_with_what_stands_beside_the_signals(scorer):
    """By metadata routing, or in a call; where nothing passes it on, the score is not a number, with the reason."""
    rng = np.random.default_rng(0)
    inputs, exposure = np.arange(12.0)[:, None], rng.uniform(50, 5_000, (12, 8))
    counts = rng.poisson(0.01 * exposure)
    model = GraphGPRegressor(RING, Polynomial(1), likelihood="poisson")
    settings = {"params": {"exposure": exposure}, "cv": KFold(2)}
    expected = []
    for train, test in KFold(2).split(inputs):
        fitted = clone(model).fit(inputs[train], counts[train], exposure=exposure[train])
        expected.append(scorer(fitted, inputs[test], counts[test], exposure=exposure[test]))
    with config_context(enable_metadata_routing=True):
        asked = clone(model).set_fit_request(exposure=True)
        found = cross_val_score(asked, inputs, counts, scoring=scorer, **settings)
        both = cross_validate(asked, inputs, counts, scoring={"one": scorer, "other": crps_scorer}, **settings)
    assert relative_error(found, np.array(expected)) < EXACT
    assert relative_error(both["test_one"], np.array(expected)) < EXACT

    def by_rows(estimator, rows, values):
        return scorer(estimator, rows, values, exposure=exposure[rows[:, 0].astype(int)])

    found = cross_val_score(model, inputs, counts, scoring=by_rows, **settings)
    assert relative_error(found, np.array(expected)) < EXACT
    with pytest.raises(ValueError, match="exposure must be given to score where it was given to fit"):
        scorer(fitted, inputs[test], counts[test])
    with pytest.warns(UserWarning, match="exposure must be given to score"):
        assert np.isnan(cross_val_score(model, inputs, counts, scoring=scorer, **settings)).all()
