"""Signals with missing values through the estimator: ways to say so, imputation, nowcasting, more signals."""

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal
from settings import PAPER
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import r2_score

import oracle
from oracle import relative_error
from spectralgp import Diffusion, Graph, GraphGPRegressor, Identity, Polynomial, Stacking, load
from spectralgp.estimators.answers import training_numbers
from spectralgp.learning import fitting
from spectralgp.learning.missing import with_evidence
from tolerances import DIFFERENCE, EXACT, ITERATIVE, MASKED, ROUND_TRIP, STANDARD_ERRORS

N_SIGNALS, N_NODES = 16, 9
RNG = np.random.default_rng(2)
NAMES = tuple("abcdefghi")
GRAPH = Graph(oracle.random_weights(N_NODES, seed=1), names=NAMES)
X = np.sort(RNG.uniform(-2, 2, (N_SIGNALS, 1)), axis=0)
Y = np.sin(X + np.linspace(0, 2, N_NODES)) + 0.1 * RNG.standard_normal((N_SIGNALS, N_NODES))
MASK = RNG.random(Y.shape) > 0.2
INCOMPLETE = np.where(MASK, Y, np.nan)
NEW = np.array([[0.3], [1.1]])


def paper(**settings) -> GraphGPRegressor:
    return GraphGPRegressor(GRAPH, **{"graph_kernel": Polynomial(2), "input_kernel": RBF(1.0), **PAPER, **settings})


@pytest.fixture(scope="module")
def fitted() -> GraphGPRegressor:
    return paper().fit(X, INCOMPLETE)


def dense(model: GraphGPRegressor, inputs: np.ndarray, member: int = 0) -> np.ndarray:
    """Covariance of noisy signals under a fitted model of the paper's kind, or under a member of a mixture of them."""
    prior = model.fits_[member].model
    return oracle.covariance(model.input_kernel_[member](inputs), prior.node_covariance(), prior.noise_variance)


def completed_by_hand(
    model: GraphGPRegressor, inputs: np.ndarray, signals: np.ndarray, member: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    seen, matrix = np.isfinite(signals).ravel(), dense(model, inputs, member)
    centred = (signals - model.center_).ravel()
    mean, covariance = oracle.condition(matrix, np.flatnonzero(seen), centred[seen], np.flatnonzero(~seen))
    values, std = signals.copy(), np.zeros(signals.shape)
    values[~np.isfinite(signals)] = mean + np.broadcast_to(model.center_, signals.shape)[~np.isfinite(signals)]
    std[~np.isfinite(signals)] = np.sqrt(np.diag(covariance))
    return values, std


# What counts as missing


def nullable() -> pd.DataFrame:
    return pd.DataFrame({name: pd.array(INCOMPLETE[:, place], dtype="Float64") for place, name in enumerate(NAMES)})


@pytest.mark.parametrize(
    "signals",
    [
        np.ma.masked_array(np.where(MASK, Y, 1e9), mask=~MASK),
        pd.DataFrame(INCOMPLETE, columns=NAMES),
        pd.DataFrame(INCOMPLETE, columns=NAMES)[list(NAMES[::-1])],
        nullable(),
        nullable().astype(object),
        INCOMPLETE.tolist(),
    ],
    ids=["masked", "frame", "frame in another order", "nullable", "objects with NA", "lists"],
)
def test_every_way_to_say_missing_is_the_same(signals, fitted):
    model = paper().fit(X, signals)
    assert relative_error(model.log_marginal_likelihood_, fitted.log_marginal_likelihood_) < ROUND_TRIP * 1e3
    expected = fitted.predict(NEW)
    names = getattr(signals, "columns", None)
    if names is not None and list(names) != list(NAMES):
        expected = expected[:, ::-1]
    assert relative_error(model.predict(NEW), expected) < MASKED


def test_the_fit_says_what_was_missing(fitted):
    n_missing = int((~MASK).sum())
    assert f"{n_missing} of {Y.size} values missing" in fitted.fits_[0].method
    assert paper().fit(X, Y).fits_[0].method == "every value was observed"
    assert str(n_missing) in fitted.summary()


def test_signals_without_a_value_are_left_out_and_predicted():
    empty = INCOMPLETE.copy()
    empty[[3, 7]] = np.nan
    kept = np.delete(np.arange(N_SIGNALS), [3, 7])
    model, without = paper().fit(X, empty), paper().fit(X[kept], INCOMPLETE[kept])
    assert "2 signals without any value left out" in model.fits_[0].method
    assert model.log_marginal_likelihood_ == without.log_marginal_likelihood_
    completed, std = model.impute(X, empty)
    mean, spread = without.predict(X[[3, 7]], return_std=True, include_noise=True)
    assert relative_error(completed[[3, 7]], mean) < MASKED
    assert relative_error(std[[3, 7]], spread) < MASKED
    left = model.leave_one_out()
    assert np.isnan(left.log_density[[3, 7]]).all()
    np.testing.assert_array_equal(left.mean[kept], without.leave_one_out().mean)


def test_a_precomputed_covariance_of_all_signals_stays_valid_where_some_are_empty():
    """Rows without any value are left out at `fit`, and so are their columns wherever a covariance has them."""
    empty = INCOMPLETE.copy()
    empty[[3, 7]] = np.nan
    kernel = RBF(1.2)
    plain = paper().set_params(input_kernel=RBF(1.2, "fixed")).fit(X, empty)
    model = paper().set_params(input_kernel="precomputed").fit(kernel(X), empty)
    assert relative_error(model.impute(kernel(X), empty), plain.impute(X, empty)) < MASKED
    kept = np.delete(np.arange(N_SIGNALS), [3, 7])
    for cross in (kernel(NEW, X), kernel(NEW, X)[:, kept]):
        assert relative_error(model.predict(cross), plain.predict(NEW)) < MASKED
    more = (kernel(NEW, X), kernel(NEW))
    signals = np.where([[True]] + [[False]] * (len(NEW) - 1), np.nan, Y[: len(NEW)])
    both = model.condition_on(more, signals), plain.condition_on(NEW, signals)
    inputs, known = np.vstack([X, NEW]), np.vstack([empty, signals])
    assert relative_error(both[0].impute(kernel(inputs), known), both[1].impute(inputs, known)) < MASKED


def test_nodes_never_observed_are_predicted():
    never = INCOMPLETE.copy()
    never[:, 4] = np.nan
    for model in (paper(), GraphGPRegressor(GRAPH), paper(center="node", scale="node")):
        completed, std = model.fit(X, never).impute(X, never)
        assert np.isfinite(completed).all()
        assert np.sqrt(np.mean((completed[:, 4] - Y[:, 4]) ** 2)) < np.std(Y[:, 4])
        assert np.all(std[:, 4] > 0)


@pytest.mark.parametrize("spectrum", ["exact", "chebyshev"])
def test_what_leaves_nothing_to_learn_from_is_refused(spectrum):
    model = paper(spectrum=spectrum)
    with pytest.raises(ValueError, match="Y must hold at least one value; got nothing but NaN"):
        model.fit(X, np.full(Y.shape, np.nan))
    with pytest.raises(ValueError, match=r"Y must (be finite|not hold infinite values)"):
        model.fit(X, np.where(MASK, Y, np.inf))
    with pytest.raises(ValueError, match=r"infini"):
        paper().fit(X, Y).impute(X, np.where(MASK, Y, -np.inf))


# Imputation


@pytest.mark.parametrize("spectrum", ["exact", "chebyshev"])
def test_imputing_the_training_signals(spectrum):
    model = paper(spectrum=spectrum).fit(X, INCOMPLETE)
    values, std = completed_by_hand(paper(spectrum="exact", noise_variance=None).fit(X, INCOMPLETE), X, INCOMPLETE)
    completed, spread = model.impute(X, INCOMPLETE)
    np.testing.assert_array_equal(completed[MASK], Y[MASK])
    np.testing.assert_array_equal(spread[MASK], 0.0)
    if spectrum == "exact":
        assert relative_error(completed, values) < MASKED
        assert relative_error(spread, std) < MASKED
    else:  # another fit, and deviations by draws
        np.testing.assert_allclose(completed, values, atol=0.05)
        np.testing.assert_allclose(spread[~MASK], std[~MASK], rtol=0.35)


def test_imputing_by_a_mixture_spreads_as_its_members_do():
    """The law of total variance: what members leave open, and what they differ by."""
    stacking = Stacking([Identity(), Diffusion(strength=4.0)], n_folds=2, n_draws=0)
    model = GraphGPRegressor(GRAPH, stacking, RBF(1.0, "fixed"), **PAPER).fit(X, INCOMPLETE)
    weights = model.kernel_weights_
    assert np.all(weights > 0.05)
    for inputs, signals in ((X, INCOMPLETE), (NEW, np.where(np.arange(N_NODES) % 2, [[0.5], [-0.3]], np.nan))):
        known, before = (np.empty((0, 1)), np.empty((0, N_NODES))) if signals is INCOMPLETE else (X, INCOMPLETE)
        parts = [
            completed_by_hand(model, np.vstack([known, inputs]), np.vstack([before, signals]), member)
            for member in range(len(weights))
        ]
        means, stds = (np.array(one)[:, len(known) :] for one in zip(*parts, strict=True))
        mean = np.tensordot(weights, means, 1)
        variance = np.tensordot(weights, stds**2 + (means - mean) ** 2, 1)
        completed, std = model.impute(inputs, signals)
        assert relative_error(completed, mean) < MASKED
        assert relative_error(std**2, variance) < MASKED


def test_training_signals_are_recognised_among_new_ones(fitted):
    """Taken for new, a training signal would count twice, and its missing values be imputed by itself."""
    fresh = np.where(np.arange(N_NODES) % 2, 0.5, np.nan)[None]
    mixed, inputs = np.vstack([INCOMPLETE[[5]], fresh, INCOMPLETE[[2]]]), np.vstack([X[[5]], NEW[:1], X[[2]]])
    completed, std = fitted.impute(inputs, mixed)
    alone = fitted.impute(X, INCOMPLETE)
    assert relative_error(completed[[0, 2]], alone[0][[5, 2]]) < EXACT
    assert relative_error(std[[0, 2]], alone[1][[5, 2]]) < EXACT
    assert relative_error(completed[[1]], fitted.impute(NEW[:1], fresh)[0]) < EXACT


def test_one_output_is_filled_in_too():
    flat = np.where(MASK[:, 0], Y[:, 0], np.nan)
    flat[3] = np.nan
    model = GraphGPRegressor(input_kernel=RBF(1.0), **PAPER).fit(X, flat)
    completed, std = model.impute(X, flat)
    assert completed.shape == std.shape == (N_SIGNALS,)
    mean, spread = model.predict(X[[3]], return_std=True, include_noise=True)
    assert relative_error(completed[[3]], mean) < MASKED
    assert relative_error(std[[3]], spread) < MASKED


def test_the_default_fills_in_better_than_means():
    """Nothing tuned, on a field that is smooth over the graph and over inputs."""
    model = GraphGPRegressor(GRAPH).fit(X, INCOMPLETE)
    completed, std = model.impute(X, INCOMPLETE)
    errors, means = (completed - Y)[~MASK], (np.nanmean(INCOMPLETE, axis=0) - Y)[~MASK]
    assert np.sqrt(np.mean(errors**2)) < 0.5 * np.sqrt(np.mean(means**2))
    assert 0.75 <= np.mean(np.abs(errors) < 1.645 * std[~MASK]) <= 1.0


# Nowcasting


def test_nowcasting_through_the_estimator(fitted):
    seen = np.arange(N_NODES) < 5
    observed = np.where(seen, 0.4, np.nan)[None].repeat(2, axis=0)
    both, inputs = np.vstack([INCOMPLETE, observed]), np.vstack([X, NEW])
    values, std = completed_by_hand(fitted, inputs, both)
    mean, spread = fitted.predict(NEW, return_std=True, include_noise=True, observed=observed)
    assert relative_error(mean[:, ~seen], values[N_SIGNALS:, ~seen]) < MASKED
    assert relative_error(spread[:, ~seen], std[N_SIGNALS:, ~seen]) < MASKED
    noisy, plain = (
        fitted.predict(NEW, return_cov=True, include_noise=one, observed=observed)[1] for one in (True, False)
    )
    assert relative_error(np.sqrt(np.diagonal(noisy, axis1=1, axis2=2))[:, ~seen], spread[:, ~seen]) < MASKED
    assert relative_error(noisy - plain, np.stack(2 * [fitted.noise_variance_ * np.eye(N_NODES)])) < DIFFERENCE
    frame = pd.DataFrame(observed, columns=NAMES)[list(NAMES[::-1])]
    assert relative_error(fitted.predict(NEW, observed=frame), mean) < EXACT
    assert relative_error(fitted.predict(NEW, nodes=["c", "h"], observed=observed), mean[:, [2, 7]]) < EXACT


def test_one_signal_at_a_time(fitted):
    observed = np.where(np.arange(N_NODES) < 5, 0.4, np.nan)
    expected = fitted.predict(NEW[:1], observed=observed[None])
    for one in (observed, pd.Series(observed, index=NAMES)[list(NAMES[::-1])], np.ma.masked_invalid(observed)):
        assert relative_error(fitted.predict(NEW[:1], observed=one), expected) < EXACT
    with pytest.raises(ValueError, match=r"observed must have one row for each of the 2 inputs .*; got shape \(1, 9\)"):
        fitted.predict(NEW, observed=observed)


# Going on, and another graph


def test_after_going_on_every_row_has_its_own_answer(fitted):
    """Old rows and new ones with missing values, in another order; one of the new ones has no value at all."""
    further = np.where(np.arange(N_NODES) % 3, [[0.5], [np.nan], [-0.4]], np.nan)
    inputs, signals = np.vstack([X, NEW, [[-0.7]]]), np.vstack([INCOMPLETE, further])
    more = fitted.condition_on(inputs[N_SIGNALS:], further)
    values, std = completed_by_hand(fitted, inputs, signals)
    order = np.random.default_rng(3).permutation(len(inputs))
    completed, spread = more.impute(inputs[order], signals[order])
    assert relative_error(completed, values[order]) < MASKED
    assert relative_error(spread, std[order]) < MASKED
    left, matrix, seen = more.leave_one_out(), dense(fitted, inputs), np.isfinite(signals)
    for row in np.flatnonzero(seen.any(axis=1)):
        others = np.flatnonzero(seen & (np.arange(len(inputs)) != row)[:, None])
        centred = (signals - fitted.center_).ravel()[others]
        mean, covariance = oracle.condition(matrix, others, centred, row * N_NODES + np.arange(N_NODES))
        assert relative_error(left.mean[row], mean + fitted.center_) < MASKED
        assert relative_error(left.std[row], np.sqrt(np.diag(covariance))) < MASKED
        own = seen[row]
        density = oracle.log_density(signals[row, own], (mean + fitted.center_)[own], covariance[np.ix_(own, own)])
        assert relative_error(left.log_density[row], density) < MASKED
    assert np.isnan(left.mean[N_SIGNALS + 1]).all()


@pytest.mark.parametrize("settings", [{}, {"residual": "auto"}, {"spectrum": "chebyshev"}], ids=str)
def test_going_on_in_two_steps_is_the_same_as_in_one(settings):
    model = paper(**settings).fit(X[:10], Y[:10])
    one, two = model.condition_on(X[10:], Y[10:]), model.condition_on(X[10:13], Y[10:13]).condition_on(X[13:], Y[13:])
    assert relative_error(one.predict(NEW), two.predict(NEW)) < ITERATIVE


@pytest.mark.parametrize("spectrum", ["exact", "chebyshev"])
def test_the_evidence_is_computed_when_it_is_asked_for(spectrum, fitted, monkeypatch, tmp_path):
    """By the density of the observed values; a saved, a pickled and an updated model have the same."""
    asked = []
    monkeypatch.setattr(fitting, "with_evidence", lambda *given: asked.append(given) or with_evidence(*given))
    model = paper(spectrum=spectrum).fit(X, INCOMPLETE)
    model.impute(X, INCOMPLETE)
    model.summary()
    copied = pickle.loads(pickle.dumps(model))
    assert not asked
    more = model.condition_on(NEW, np.zeros((2, N_NODES)))
    model.save(tmp_path / "model.sgp")
    seen = np.flatnonzero(MASK.ravel())
    prior = replace(model.fits_[0].model, spectrum=fitted.spectrum_)
    matrix = oracle.covariance(model.input_kernel_[0](X), prior.node_covariance(), prior.noise_variance)
    expected = multivariate_normal(cov=matrix[np.ix_(seen, seen)]).logpdf((Y - model.center_).ravel()[seen])
    for one in (model, copied, load(tmp_path / "model.sgp"), more):
        error = 0.0 if spectrum == "exact" else STANDARD_ERRORS * one.fits_[0].probe_error
        assert abs(one.log_marginal_likelihood_ - expected) < MASKED * abs(expected) + error
        assert one.log_marginal_likelihood_ == one.fits_[0].log_likelihood == model.log_marginal_likelihood_


def test_transfer_keeps_what_was_learnt():
    other = Graph(oracle.ring(6))
    model = GraphGPRegressor(GRAPH, Polynomial(2, constraint="interval"), RBF(1.0), residual=None, carry=None).fit(X, Y)
    moved = model.transfer(other)
    mean, std = moved.predict(NEW, return_std=True)
    assert mean.shape == (2, 6)
    assert relative_error(mean, np.full((2, 6), np.mean(model.center_))) < EXACT
    (fit,) = model.fits_
    power = fit.model.graph_kernel.power(np.linalg.eigvalsh(oracle.laplacian(oracle.ring(6), scaled=True)))
    assert relative_error(std**2, np.full((2, 6), np.mean(power))) < MASKED  # all nodes of a ring are alike
    signals = np.where(np.arange(6) < 4, 0.3, np.nan)[None]
    assert np.all(moved.predict(NEW[:1], return_std=True, observed=signals)[1] < std[0])
    again = moved.condition_on(NEW, np.full((2, 6), 0.7))
    assert np.all(np.abs(again.predict(NEW) - 0.7) < np.abs(mean - 0.7))
    assert model.graph_.n_nodes == N_NODES


def test_transfer_says_where_it_replaces_a_filter_that_is_negative_between_frequencies(fitted):
    """Two cliques and a bridge: frequencies at both ends, and a filter that dips below zero between them."""
    assert "Transferred" not in fitted.transfer(oracle.ring(6)).summary()
    weights = np.kron(np.eye(2), np.ones((5, 5))) - np.eye(10)
    weights[4, 5] = weights[5, 4] = 1.0
    laplacian = oracle.laplacian(weights, scaled=True)
    dipping = [1.0, -5.4, 5.4]
    signals = np.random.default_rng(0).standard_normal((200, 10)) @ oracle.polynomial(laplacian, dipping)
    settings = PAPER | {"prior": None, "center": None, "scale": None}
    model = GraphGPRegressor(Graph(weights), Polynomial.from_coefficients(dipping), **settings).fit(None, signals)
    points = np.linspace(0, 1, 101)
    assert model.response(points).min() < -0.1 * model.response(points).max()
    moved = model.transfer(oracle.ring(6))
    assert moved.response(points).min() >= -EXACT
    own = model.spectrum_.eigenvalues
    change = np.max(np.abs(moved.response(own) - model.response(own))) / model.response(own).max()
    assert "the filter of Polynomial(2) was negative between the frequencies that it was learnt on" in moved.summary()
    assert f"differ by at most {change:.1%} of the largest value." in moved.summary()
    power = moved.fits_[0].model.graph_kernel.power(np.linalg.eigvalsh(oracle.laplacian(oracle.ring(6), scaled=True)))
    std = moved.predict(None, return_std=True)[1]
    assert relative_error(std**2, np.full((1, 6), np.mean(power))) < MASKED


def test_the_default_model_can_be_transferred():
    model = GraphGPRegressor(GRAPH, random_state=0).fit(X, Y)
    moved = model.transfer(oracle.ring(6))
    mean, std = moved.predict(NEW, return_std=True)
    assert relative_error(mean, np.full((2, 6), mean[0, 0])) < EXACT
    assert np.all(std > 0)
    again = moved.condition_on(NEW, np.full((2, 6), mean[0, 0] + 1.0))
    assert np.all(again.predict(NEW) > mean + 0.5)


def test_transfer_needs_inputs_that_do_not_belong_to_nodes():
    carrying = GraphGPRegressor(GRAPH, Polynomial(1, constraint="interval"), carry=np.arange(N_NODES))
    carrying.fit(Y[:-1], Y[1:])
    with pytest.raises(ValueError, match="carry must be None to transfer a model"):
        carrying.transfer(oracle.ring(6))


def test_scores_skip_what_was_not_observed(fitted):
    truth = np.sin(NEW + np.linspace(0, 2, N_NODES))
    inputs, signals = np.repeat(NEW, 3, axis=0), np.repeat(truth, 3, axis=0)
    signals = signals + 0.1 * np.random.default_rng(0).standard_normal(signals.shape)
    spoilt = signals.copy()
    spoilt[0, 3] = np.nan
    others = np.delete(np.arange(N_NODES), 3)
    both = paper().fit(X, Y)
    assert both.score(inputs, signals) != both.score(inputs, spoilt)
    found = both.predict(inputs)
    each = [*(r2_score(signals[:, n], found[:, n]) for n in others), r2_score(signals[1:, 3], found[1:, 3])]
    assert relative_error(both.score(inputs, spoilt), np.mean(each)) < EXACT


# Which signals are those of training


def correlated(n_signals: int = 30, n_nodes: int = 6) -> np.ndarray:
    shared = np.linalg.cholesky(0.8 * np.ones((n_nodes, n_nodes)) + 0.2 * np.eye(n_nodes))
    return np.random.default_rng(0).standard_normal((n_signals, n_nodes)) @ shared.T


def rows_of(model: GraphGPRegressor, inputs: Any, signals: np.ndarray) -> np.ndarray:
    """Which of the training signals each one is taken for."""
    features = np.empty((len(signals), 0)) if inputs is None else inputs
    return training_numbers(model.posterior_.parts[0][1], features, signals)


@pytest.mark.parametrize("inputs", [None, np.repeat([[0.0], [1.0]], 15, axis=0)])
@pytest.mark.parametrize("factor", [1.0, 1e10])
def test_signals_are_told_apart_in_the_units_of_each_node(inputs, factor):
    """One station in other units does not make all signals the same."""
    signals = correlated()
    signals[:, 0] *= factor
    signals[10:20, 0] = np.nan
    model = GraphGPRegressor(Graph(oracle.random_weights(6, seed=1)), Polynomial(2)).fit(inputs, signals)
    np.testing.assert_array_equal(rows_of(model, inputs, signals), np.arange(30))
    filled, _ = model.impute(inputs, signals)
    assert np.unique(filled[10:20, 0]).size == 10


@pytest.mark.parametrize("center", ["global", "node", None])
@pytest.mark.parametrize("scale", ["global", "node", None])
def test_a_fill_value_does_not_make_signals_the_same(center, scale):
    signals = correlated()
    signals[3, 1] = 1e10
    signals[::4, 0] = np.nan
    settings = {"center": center, "scale": scale, "noise_variance": 1.0}
    model = GraphGPRegressor(Graph(oracle.random_weights(6, seed=1)), Polynomial(1), **settings).fit(None, signals)
    more = model.condition_on(None, 1 + correlated(4))  # which rounds once more
    for one in (model, more):
        np.testing.assert_array_equal(rows_of(one, None, signals), np.arange(30))


def test_repeated_signals_are_matched_one_by_one():
    signals, inputs = correlated(8), np.repeat([[0.0], [1.0]], 4, axis=0)
    signals[1] = signals[3] = signals[0]
    signals[[0, 1, 3], 2] = np.nan
    model = GraphGPRegressor(Graph(oracle.random_weights(6, seed=1)), Polynomial(1)).fit(inputs, signals)
    given = [3, 1, 0, 0, 5]  # one more than there are
    rows = rows_of(model, inputs[given], signals[given])
    assert sorted(rows[:3]) == [0, 1, 3]
    assert rows[3] in (0, 1, 3)
    assert rows[4] == 5


def test_of_signals_that_differ_by_rounding_the_nearest_is_taken():
    signals = correlated(8)
    signals[0, 0] = 0.0
    signals[5] = signals[2] * (1 + 4 * np.finfo(float).eps)
    settings = {"center": None, "scale": None, "noise_variance": 1.0}
    model = GraphGPRegressor(Graph(oracle.random_weights(6, seed=1)), Polynomial(1), **settings).fit(None, signals)
    assert rows_of(model, None, signals[[5, 2, 5]]).tolist() == [5, 2, 5]
    model = GraphGPRegressor(model.graph, Polynomial(1), **settings | {"scale": "node"}).fit(None, signals)
    for _ in range(3):  # each of which rounds once more
        model = model.condition_on(None, correlated(1))
    assert rows_of(model, None, signals[[0, 7, 6]]).tolist() == [0, 7, 6]


def test_signals_are_known_again_though_they_were_rounded_at_the_size_of_a_common_level():
    """A model of another graph has its level, which is far from these signals, and rounds them each time."""
    level, other = GraphGPRegressor(GRAPH, Polynomial(1), **PAPER), Graph(oracle.random_weights(6, seed=1))
    moved = level.fit(None, 1e9 + Y).transfer(other)
    first, second = correlated(4), correlated(3) + 5.0
    twice = moved.condition_on(None, first).condition_on(None, second)
    np.testing.assert_array_equal(rows_of(twice, None, np.vstack([second, first])), [4, 5, 6, 0, 1, 2, 3])
    assert np.all(rows_of(twice, None, first + 1e-3) < 0)


def test_minus_zero_is_zero():
    inputs = np.arange(-3.0, 5.0)[:, None]
    signals = correlated(8)
    signals[3, 2] = np.nan
    model = GraphGPRegressor(Graph(oracle.random_weights(6, seed=1)), Polynomial(1)).fit(inputs, signals)
    with_sign = np.where(inputs == 0, -0.0, inputs)
    for found, expected in zip(model.impute(with_sign, signals), model.impute(inputs, signals), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_transfer_leaves_the_new_graph_in_the_parameters():
    model = paper(graph_kernel=Polynomial(2, constraint="interval")).fit(X, Y)
    other = Graph(oracle.random_weights(5, seed=3))
    moved = model.transfer(other)
    assert moved.graph is other
    assert model.graph is GRAPH
    for one in (moved, clone(moved)):
        assert one.fit(X, Y[:, :5]).predict(NEW).shape == (2, 5)
