"""The laws of one field: whichever way a question is asked, the answer is the same.

They are asked of models with given hyperparameters, and of whole fits. `pytest --hypothesis-profile=long` asks a
thousand times.
"""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

from oracle import random_weights, relative_error
from spectralgp import Chebyshev, Diffusion, Graph, GraphGPRegressor, Identity, LocalAverage, Polynomial, Stacking
from spectralgp.model.fields import (
    ConditionedField,
    Field,
    PartialObservations,
    Posterior,
    condition,
    condition_shrunk,
    graph_gp,
    standard_deviation,
)
from spectralgp.model.kernels import WithResidual
from spectralgp.model.kernels.carry import CarryColumns, CarryFilter
from spectralgp.model.signals import read_in, read_signals
from spectralgp.model.spectra import Exact
from strategies import adjacencies
from tolerances import EXACT, FORMULA, ITERATIVE, MASKED, OPTIMUM, STANDARD_ERRORS

pytestmark = pytest.mark.usefixtures("learnt_values")  # compared with dense formulas

N_EXAMPLES = settings().max_examples  # of the profile
IS_LONG = N_EXAMPLES > 500
many = settings(max_examples=max(50, N_EXAMPLES), suppress_health_check=list(HealthCheck))
some = settings(max_examples=N_EXAMPLES if IS_LONG else N_EXAMPLES * 2 // 3, suppress_health_check=list(HealthCheck))
few = settings(max_examples=N_EXAMPLES if IS_LONG else 5, suppress_health_check=list(HealthCheck))

QUADRATURE = Chebyshev(n_moments=33, max_moments=33, n_probes="exact")
SIGNAL, RESIDUAL = Polynomial.from_coefficients([1.1, -1.4, 0.6]), Polynomial.from_coefficients([0.6, -0.3])
KERNELS = {
    "polynomial": SIGNAL,
    "residual": WithResidual.of(SIGNAL, RESIDUAL),
    "diffusion": Diffusion(strength=1.5),
    "own vectors": LocalAverage(strength=0.7),
    "no signal": WithResidual.of(Polynomial.from_coefficients([0.0]), RESIDUAL),
}
INPUT_KERNELS = {"rbf": RBF(1.3), "matern": Matern(0.9, nu=0.5), "linear": DotProduct(0.5) + RBF(0.6), "none": None}

# roots of the weights, as in the properties of formulas: a moderate spread of eigenvalues
weights_of_graphs = adjacencies(min_nodes=4, max_nodes=8).map(np.sqrt).map(np.sqrt)
seeds = st.integers(0, 2**16)


@dataclass(frozen=True)
class Problem:
    """A conditioned model, and signals at new inputs that it has not seen."""

    posterior: Posterior
    signals: np.ndarray
    new: np.ndarray
    further: np.ndarray
    rng: np.random.Generator

    @property
    def spread(self) -> float:
        """Typical size of the signals, which errors are relative to."""
        return float(np.nanstd(self.signals)) or 1.0

    def field(self) -> Field:
        return self.posterior.at(self.new)

    def conditioned(self, inputs: np.ndarray, signals: np.ndarray) -> Posterior:
        """The same model, and all that was learnt, on other signals in the same units."""
        training = read_in(self.posterior.signals.units, signals)
        return condition(self.posterior.prior, inputs, training, self.posterior.carried)


@st.composite
def problems(draw, spectrum: Chebyshev | Exact = Exact()) -> Problem:
    weights, rng = draw(weights_of_graphs), np.random.default_rng(draw(seeds))
    n_nodes, n_signals, n_new = len(weights), draw(st.integers(5, 12)), draw(st.integers(1, 3))
    is_exact = isinstance(spectrum, Exact)
    names = sorted(KERNELS) if is_exact else ["polynomial", "residual", "diffusion"]
    kernel, input_kernel = KERNELS[draw(st.sampled_from(names))], draw(st.sampled_from(sorted(INPUT_KERNELS)))
    noise = 10.0 ** draw(st.floats(-3, 1))
    prior = graph_gp(Graph(weights), kernel, INPUT_KERNELS[input_kernel], noise, spectrum=spectrum)
    carries = input_kernel != "none" and draw(st.booleans())
    n_columns = 0 if input_kernel == "none" else n_nodes if carries else 1
    inputs = rng.uniform(-2, 2, (n_signals + n_new, n_columns))
    signals = rng.standard_t(4, (n_signals + n_new, n_nodes)) * np.exp(rng.normal(0, 0.5, n_nodes)) + rng.normal()
    if not carries:  # which has the units of the signals
        signals *= 10.0 ** draw(st.sampled_from([-8, 0, 0, 8]))
    share = draw(st.sampled_from([0.0, 0.0, 0.2, 0.5]))
    training = np.where(rng.random((n_signals, n_nodes)) < share, np.nan, signals[:n_signals])
    training[:, 0] = signals[:n_signals, 0]
    center, scale = draw(st.sampled_from([None, "global", "node"])), draw(st.sampled_from(["global", "node"]))
    carried = CarryColumns.of(np.arange(n_nodes), inputs[:n_signals]) if carries else None
    if carries:
        prior = replace(prior, carry=CarryFilter(np.array([0.5, -0.2, 0.1]), prior.spectrum.upper))
    conditions = condition_shrunk if is_exact and draw(st.booleans()) else condition
    posterior = conditions(prior, inputs[:n_signals], read_signals(training, center, scale), carried)
    return Problem(posterior, training, inputs[n_signals:], signals[n_signals:], rng)


def some_of(problem: Problem, share: float = 0.5) -> np.ndarray:
    """Some of the further values, NaN elsewhere."""
    return np.where(problem.rng.random(problem.further.shape) < share, problem.further, np.nan)


def without(values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Values where there are no others."""
    return np.where(np.isnan(others), values, np.nan)


def assert_same(found: Field, expected: Field, spread: float, rows: Any = slice(None), limit: float = MASKED) -> None:
    """Means, standard deviations and values of two fields; `rows` are those of the second."""
    assert relative_error(found.mean, expected.mean[rows], spread) < limit
    assert relative_error(found.values, expected.values[rows], spread) < limit
    for noisy in (True, False):
        stds = standard_deviation(found, noisy), standard_deviation(expected, noisy)[rows]
        # a root of a difference near zero has half its digits
        assert relative_error(*stds, spread) < (limit if noisy else np.sqrt(limit))
        assert relative_error(stds[0] ** 2, stds[1] ** 2, spread**2) < limit
    variances = found.values_variance(), expected.values_variance()[rows]
    assert relative_error(*variances, spread**2) < limit


@many
@given(problems())
def test_given_nothing_a_field_is_the_same(problem):
    field = problem.field()
    nothing = np.full(problem.further.shape, np.nan)
    same = field.given(nothing)
    assert_same(same, field, problem.spread, limit=FORMULA)
    for joint in (True, False):
        densities = same.log_density(problem.further, joint), field.log_density(problem.further, joint)
        assert relative_error(*densities, problem.further.size) < FORMULA
    assert field.log_density(nothing) == 0


@some
@given(problems())
def test_observing_no_value_says_nothing(problem):
    """By way of what is observed, with nothing observed."""
    if problem.posterior.entries is not None:
        return
    field = problem.field()
    zeros = np.zeros(field.covariance.shape)
    nothing, rows = PartialObservations(field.covariance, zeros, zeros > 0), np.arange(field.n_signals)
    asked = ConditionedField(field.covariance, field.centred, field.units, nothing, rows, freedom=field.freedom)
    assert_same(asked, field, problem.spread)
    densities = asked.log_density(problem.further), field.log_density(problem.further)
    assert relative_error(*densities, max(abs(densities[1]), problem.further.size)) < MASKED


@many
@given(problems())
def test_densities_follow_the_chain_rule_within_a_signal(problem):
    problem = replace(problem, new=problem.new[:1], further=problem.further[:1])
    field, part = problem.field(), some_of(problem)
    rest = without(problem.further, part)
    for joint in (True, False):
        whole = np.sum(field.log_density(problem.further, joint))
        chained = np.sum(field.log_density(part, joint)) + np.sum(field.given(part).log_density(rest, joint))
        assert relative_error(chained, whole, max(abs(whole), problem.further.size)) < MASKED
    again = field.given(part).log_density(problem.further)  # what is known already is not counted twice
    assert relative_error(again, field.given(part).log_density(rest), problem.further.size) < EXACT


@many
@given(problems())
def test_densities_follow_the_chain_rule_over_signals_in_order(problem):
    field, values = problem.field(), some_of(problem, 0.8)
    for further in (problem.further, values):
        total, known = 0.0, field
        for row in range(len(further)):
            one = np.where(np.arange(len(further))[:, None] == row, further, np.nan)
            total += known.log_density(one)
            known = known.given(one)
        whole = field.log_density(further)
        assert relative_error(total, whole, max(abs(whole), further.size)) < MASKED


@some
@given(problems())
def test_normal_densities_follow_the_chain_rule_in_any_order(problem):
    if np.isfinite(problem.posterior.prior.freedom):
        return
    field, part = problem.field(), some_of(problem)
    whole = field.log_density(problem.further)
    chained = field.log_density(part) + field.given(part).log_density(without(problem.further, part))
    assert relative_error(chained, whole, max(abs(whole), problem.further.size)) < MASKED


@some
@given(problems())
def test_conditioning_twice_is_conditioning_once(problem):
    field, part = problem.field(), some_of(problem)
    if problem.posterior.entries is not None:
        field = field.given(np.where(problem.rng.random(part.shape) < 0.2, problem.further, np.nan))
    both = np.where(np.isnan(part), some_of(problem), part)
    assert_same(field.given(part).given(both), field.given(both), problem.spread)


@many
@given(problems())
def test_signals_conditioned_on_are_signals_observed(problem):
    n_first = max(1, len(problem.new) - 1)
    new = np.vstack([problem.new, problem.new[-1:] + 0.3])
    observed = np.vstack([problem.further, np.full((1, problem.further.shape[1]), np.nan)])
    observed[:n_first] = some_of(problem, 0.7)[:n_first]
    observed[:n_first, 0], observed[n_first:] = problem.further[:n_first, 0], np.nan
    inputs = np.vstack([problem.posterior.inputs, new[:n_first]])
    more = problem.conditioned(inputs, np.vstack([problem.signals, observed[:n_first]])).at(new[n_first:])
    beside = problem.posterior.at(new).given(observed)
    assert_same(more, beside, problem.spread, slice(n_first, None))
    truth = np.where(np.arange(len(new))[:, None] < n_first, np.nan, problem.further[-1])
    densities = more.log_density(truth[n_first:]), beside.log_density(truth)
    assert relative_error(*densities, max(abs(densities[1]), truth.size)) < MASKED


@many
@given(problems())
def test_training_signals_are_filled_in_as_if_they_were_new(problem):
    """With what was learnt kept, a training signal is a further one that the others are known beside.

    But for its scale: what was learnt has seen a training signal, whose share is taken out of it for that.
    """
    signals, inputs = problem.signals, problem.posterior.inputs
    row = int(problem.rng.integers(len(signals)))
    others = np.arange(len(signals)) != row
    filled = problem.posterior.imputed(np.array([row]))
    beside = problem.conditioned(inputs[others], signals[others]).at(inputs[[row]]).given(signals[[row]])
    assert_same(replace(filled, shrinkage=None), beside, problem.spread)
    assert relative_error(filled.mean, beside.mean, problem.spread) < MASKED
    assert relative_error(filled.values[0], np.where(np.isnan(signals[row]), filled.values[0], signals[row])) < FORMULA
    assert np.all(filled.values_variance()[0, ~np.isnan(signals[row])] == 0)


@some
@given(problems())
def test_one_signal_is_the_marginal_of_several(problem):
    field, densities = problem.field(), problem.field().log_density(problem.further, joint=False)
    for row in range(len(problem.new)):
        alone = problem.posterior.at(problem.new[[row]])
        assert_same(alone, field, problem.spread, slice(row, row + 1), FORMULA)
        found = alone.log_density(problem.further[[row]])
        assert relative_error(found, densities[row], max(abs(found), problem.further.size)) < MASKED


@some
@given(problems())
def test_the_order_of_signals_does_not_matter(problem):
    signals, inputs = problem.signals, problem.posterior.inputs
    order, of_new = (problem.rng.permutation(size) for size in (len(signals), len(problem.new)))
    field, part = problem.field(), some_of(problem)
    turned = problem.conditioned(inputs[order], signals[order]).at(problem.new[of_new])
    assert_same(turned, field, problem.spread, of_new)
    assert_same(turned.given(part[of_new]), field.given(part), problem.spread, of_new)
    if np.isinf(problem.posterior.prior.freedom):
        densities = turned.log_density(problem.further[of_new]), field.log_density(problem.further)
        assert relative_error(*densities, max(abs(densities[1]), problem.further.size)) < MASKED


def test_the_order_of_nodes_does_not_matter_where_many_values_are_missing():
    rng = np.random.default_rng(0)
    weights, inputs, order = random_weights(8, 0), rng.standard_normal((12, 1)), rng.permutation(8)
    signals = np.where(rng.random((12, 8)) < 0.4, np.nan, rng.standard_t(4, (12, 8)))
    plain, turned = (
        condition_shrunk(graph_gp(Graph(weights[np.ix_(one, one)]), SIGNAL, RBF(1.0), 0.3), inputs, signals[:, one])
        for one in (np.arange(8), order)
    )
    found, expected = (standard_deviation(one.at(np.zeros((1, 1))), include_noise=True) for one in (turned, plain))
    assert relative_error(found, expected[:, order]) < OPTIMUM


def stated_error(*fields: Field) -> float:
    """Standard errors of log densities by probes, added up."""
    return sum(field.entries.log_density()[1] for field in fields if isinstance(field, ConditionedField))


@few
@given(problems(QUADRATURE))
def test_laws_on_a_quadrature(problem):
    """Means to the tolerance of solves, densities within their stated errors."""
    posterior, field, part = problem.posterior, problem.field(), some_of(problem)
    assert field.given(np.full(part.shape, np.nan)) is field
    # batches
    for row in range(len(problem.new)):
        alone = posterior.at(problem.new[[row]])
        assert relative_error(alone.mean[0], field.mean[row], problem.spread) < FORMULA
        nodes = np.array([0, 2])
        stds = standard_deviation(alone, True, nodes)[0], standard_deviation(field, True, nodes)[row]
        assert relative_error(*stds, problem.spread) < FORMULA
    # signals conditioned on are signals observed
    first = np.where(np.arange(len(problem.new))[:, None] < 1, problem.further, np.nan)
    if len(problem.new) > 1:
        inputs = np.vstack([posterior.inputs, problem.new[:1]])
        more = problem.conditioned(inputs, np.vstack([problem.signals, problem.further[:1]])).at(problem.new[1:])
        assert relative_error(more.mean, field.given(first).mean[1:], problem.spread) < 10 * ITERATIVE
    # training signals are imputed as if they were new
    others = np.arange(len(problem.signals)) > 0
    beside = problem.conditioned(posterior.inputs[others], problem.signals[others]).at(posterior.inputs[:1])
    filled = posterior.imputed(np.array([0]))
    assert relative_error(filled.mean, beside.given(problem.signals[:1]).mean, problem.spread) < 10 * ITERATIVE
    # the chain rule, for values of any signals
    whole, known = field.log_density(problem.further), field.given(part)
    chained = field.log_density(part) + known.log_density(without(problem.further, part))
    error = stated_error(known, field.given(problem.further), *([posterior.imputed(np.array([0]))] * 2))
    assert abs(chained - whole) < 2 * STANDARD_ERRORS * error + ITERATIVE * max(abs(whole), part.size)


def test_densities_of_complete_signals_beside_missing_values_on_a_quadrature():
    """What the missing values leave open of the mean counts, as with the exact spectrum."""
    rng = np.random.default_rng(0)
    graph, inputs = Graph(random_weights(8, 0)), rng.standard_normal((6, 1))
    signals = np.where(rng.random((6, 8)) < 0.6, np.nan, rng.standard_normal((6, 8)))
    priors = (graph_gp(graph, SIGNAL, RBF(1.0), 0.01, spectrum=kind) for kind in (Exact(), QUADRATURE))
    exact, large = (condition(prior, inputs, signals).at(inputs[:2] + 0.1) for prior in priors)
    further = rng.standard_normal((2, 8))
    error = STANDARD_ERRORS * 2 * stated_error(large.given(further))
    assert error < 0.1 * abs(exact.log_density(further))
    assert abs(large.log_density(further) - exact.log_density(further)) < error


# Whole fits


N_SIGNALS, N_NEW = 9, 3
fixed = {"carry": None, "center": "global", "scale": "global"}
MODELS: dict[str, dict[str, Any]] = {
    "paper": {"graph_kernel": Polynomial(2), "input_kernel": RBF(1.0), "residual": None} | fixed,
    "given": {"graph_kernel": Polynomial(1), "input_kernel": RBF(1.0)} | fixed,
    "by node": {"graph_kernel": Polynomial(1), "input_kernel": RBF(1.0)} | fixed | {"center": "node", "scale": "node"},
    "open": {"graph_kernel": Polynomial(1)},
    "incomplete": {"graph_kernel": Polynomial(1), "input_kernel": RBF(1.0)} | fixed,
    "list": {"graph_kernel": Stacking([Polynomial(1), Identity()], n_folds=2), "input_kernel": RBF(1.0)} | fixed,
    "default": {"graph_kernel": Stacking(n_folds=2)},
    "draws": {"graph_kernel": Stacking(Polynomial(1), n_draws=3), "input_kernel": RBF(1.0), "residual": None} | fixed,
    "quadrature": {"graph_kernel": Polynomial(1), "input_kernel": RBF(1.0), "spectrum": QUADRATURE} | fixed,
}
SINGLE = sorted(set(MODELS) - {"list", "default", "draws", "quadrature"})
EXACT_ONES = sorted(set(MODELS) - {"quadrature"})
few_seeds = st.integers(0, 200 if IS_LONG else 1)
warnings_of_fits = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore:the noise is at", "ignore:the log likelihood"
)


@dataclass(frozen=True)
class Fitted:
    """A fitted estimator and the data that it was fitted to, with further signals."""

    model: GraphGPRegressor
    inputs: np.ndarray
    signals: np.ndarray
    new: np.ndarray
    further: np.ndarray


def data_of(name: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights, inputs and signals."""
    rng = np.random.default_rng(seed)
    weights = random_weights(4 + seed % 4, seed)
    inputs = rng.standard_normal((N_SIGNALS + N_NEW, len(weights) if name == "open" else 2))
    waves = np.sin(inputs[:, :1] + np.arange(len(weights))) + 0.3 * rng.standard_t(4, (len(inputs), len(weights)))
    if name == "incomplete":
        missing = rng.random(waves.shape) < 0.25
        missing[:, 0] = missing[N_SIGNALS:] = False
        waves[missing] = np.nan
    return weights, inputs, waves


def fitted_to(name: str, weights: np.ndarray, inputs: np.ndarray, signals: np.ndarray, **options: Any) -> Fitted:
    model = GraphGPRegressor(Graph(weights), **(MODELS[name] | options))
    model.fit(inputs[:N_SIGNALS], signals[:N_SIGNALS])
    parts = (one[part] for part in (slice(N_SIGNALS), slice(N_SIGNALS, None)) for one in (inputs, signals))
    return Fitted(model, *parts)


@cache
def fitted(name: str, seed: int) -> Fitted:
    return fitted_to(name, *data_of(name, seed))


def fits(names: list[str]):
    return st.builds(fitted, st.sampled_from(names), few_seeds)


def hidden(values: np.ndarray, seed: int) -> np.ndarray:
    return np.where(np.random.default_rng(seed).random(values.shape) < 0.5, values, np.nan)


@many
@warnings_of_fits
@given(fits(sorted(MODELS)), seeds)
def test_fits_predict_the_same_given_nothing_and_in_batches(fit, seed):
    model, nothing = fit.model, np.full(fit.further.shape, np.nan)
    plain = model.predict(fit.new, return_std=True, include_noise=True)
    asked = model.predict(fit.new, return_std=True, include_noise=True, observed=nothing)
    densities = model.log_predictive_density(fit.new, fit.further, joint=False)
    again = model.log_predictive_density(fit.new, fit.further, joint=False, observed=nothing)
    assert relative_error(again, densities) < FORMULA
    row = seed % N_NEW
    alone = model.predict(fit.new[[row]], return_std=True, include_noise=True)
    for one, other, single in zip(asked, plain, alone, strict=True):
        assert relative_error(one, other) < FORMULA
        assert relative_error(single[0], other[row], np.max(np.abs(other))) < FORMULA
    density = model.log_predictive_density(fit.new[[row]], fit.further[[row]])
    assert relative_error(density, densities[row], fit.further.size) < MASKED
    single = fit.new.astype(np.float32)
    assert relative_error(model.predict(single), model.predict(single.astype(float))) < EXACT


@many
@warnings_of_fits
@given(fits(SINGLE), seeds)
def test_fits_follow_the_chain_rule(fit, seed):
    model, new, further = fit.model, fit.new[:1], fit.further[:1]
    part = hidden(further, seed)
    whole = model.log_predictive_density(new, further)
    chained = model.log_predictive_density(new, part) + model.log_predictive_density(new, further, observed=part)
    assert relative_error(chained, whole, max(abs(whole), further.size)) < MASKED
    total, whole = 0.0, model.log_predictive_density(fit.new, fit.further)
    known = np.full(fit.further.shape, np.nan)
    for row in range(N_NEW):
        one = np.where(np.arange(N_NEW)[:, None] == row, fit.further, np.nan)
        total += model.log_predictive_density(fit.new, one, observed=known)
        known = np.where(np.isnan(known), one, known)
    assert relative_error(total, whole, max(abs(whole), fit.further.size)) < MASKED


@some
@warnings_of_fits
@given(fits(EXACT_ONES), seeds)
def test_fits_conditioned_on_more_predict_as_given_it(fit, seed):
    """Weights of a mixture stay in both."""
    model, first = fit.model, hidden(fit.further[:2], seed)
    first[:, 0] = fit.further[:2, 0]
    observed = np.vstack([first, np.full((1, first.shape[1]), np.nan)])
    more = model.condition_on(fit.new[:2], first)
    given_it = model.predict(fit.new, return_std=True, include_noise=True, observed=observed)
    for one, other in zip(more.predict(fit.new[2:], return_std=True, include_noise=True), given_it, strict=True):
        assert relative_error(one[0], other[2], np.max(np.abs(other))) < MASKED


@some
@warnings_of_fits
@given(fits(EXACT_ONES), seeds)
def test_fits_fill_in_new_signals_as_they_predict_them(fit, seed):
    observed = hidden(fit.further, seed)
    observed[:, 0] = fit.further[:, 0]
    completed, std = fit.model.impute(fit.new, observed)
    mean, spread = fit.model.predict(fit.new, return_std=True, include_noise=True, observed=observed)
    missing = np.isnan(observed)
    assert relative_error(completed[missing], mean[missing], np.max(np.abs(mean))) < FORMULA
    assert relative_error(std[missing], spread[missing], np.max(spread)) < MASKED
    assert np.array_equal(completed[~missing], observed[~missing])


UNITS = ["paper", "given", "by node", "incomplete"]


@few
@warnings_of_fits
@given(st.sampled_from(UNITS), few_seeds, st.floats(-8, 8).map(lambda e: 10.0**e), st.floats(-100, 100))
def test_units_of_the_signals_do_not_matter(name, seed, factor, shift):
    """``c (Y + a)`` is predicted as ``c (y + a)``."""
    plain, (weights, inputs, signals) = fitted(name, seed), data_of(name, seed)
    other = fitted_to(name, weights, inputs, factor * (signals + shift))
    spread = np.nanstd(signals)
    for known in (None, hidden(plain.further, seed)):
        moved = None if known is None else factor * (known + shift)
        mean, std = plain.model.predict(plain.new, return_std=True, include_noise=True, observed=known)
        found = other.model.predict(plain.new, return_std=True, include_noise=True, observed=moved)
        assert relative_error(found[0] / factor - shift, mean, spread) < np.sqrt(OPTIMUM)
        assert relative_error(found[1] / factor, std, spread) < np.sqrt(OPTIMUM)
    density = plain.model.log_predictive_density(plain.new, plain.further)
    found = other.model.log_predictive_density(plain.new, factor * (plain.further + shift))
    moved = density - plain.further.size * np.log(factor)
    assert abs(found - moved) < np.sqrt(OPTIMUM) * max(plain.further.size, abs(density))


@few
@warnings_of_fits
@given(st.sampled_from(["paper", "given", "by node"]), few_seeds, seeds)
def test_the_order_of_nodes_and_signals_of_fits_does_not_matter(name, seed, of_order):
    plain, (weights, inputs, signals) = fitted(name, seed), data_of(name, seed)
    rng = np.random.default_rng(of_order)
    nodes, rows = rng.permutation(len(weights)), np.append(rng.permutation(N_SIGNALS), N_SIGNALS + np.arange(N_NEW))
    other = fitted_to(name, weights[np.ix_(nodes, nodes)], inputs[rows], signals[np.ix_(rows, nodes)])
    spread = np.nanstd(signals)
    for known in (None, hidden(plain.further, seed)):
        mean, std = plain.model.predict(plain.new, return_std=True, observed=known)
        turned = None if known is None else known[:, nodes]
        found = other.model.predict(plain.new, return_std=True, observed=turned)
        assert relative_error(found[0], mean[:, nodes], spread) < np.sqrt(OPTIMUM)
        assert relative_error(found[1], std[:, nodes], spread) < np.sqrt(OPTIMUM)
