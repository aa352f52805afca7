"""Rows in the order of time: found exactly, forecast forward, and answered with models of changes as with any other."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import spectralgp
from oracle import relative_error
from spectralgp import Graph, GraphGPRegressor, Polynomial, Stacking
from spectralgp.datasets import load_fertility
from spectralgp.learning import Folds
from spectralgp.learning.time_order import TimeOrder, time_order
from spectralgp.model.kernels import IndependentSignals, StandardisedKernel, modes_of_inputs
from spectralgp.scores import root_mean_square_error
from tolerances import EXACT

N_NODES, N_TRAIN, N_TEST = 12, 40, 150
RING = Graph.from_edges([(node, (node + 1) % N_NODES) for node in range(N_NODES)])
ALL = np.arange(N_NODES)


def walk(n_rows: int, seed: int = 0) -> np.ndarray:
    """A random walk whose steps are alike at neighbours; nothing forecasts it better than no change."""
    steps, own = np.random.default_rng(seed).standard_normal((2, n_rows, N_NODES))
    return 10 + np.cumsum(steps + np.roll(steps, 1, axis=1) + 0.5 * own, axis=0)


SERIES = walk(1 + N_TRAIN + N_TEST)
X, Y = SERIES[:-1], SERIES[1:]


@pytest.fixture(scope="module")
def model():
    return GraphGPRegressor(RING).fit(X[:N_TRAIN], Y[:N_TRAIN])


# ------------------------------------------------------------------------------------------------------- detection


@pytest.mark.parametrize("factor", [1.0, 100.0, 0.01, 1 / 3])
def test_the_factor_between_units_is_found(factor):
    found = time_order(X / factor, Y, ALL)
    assert found == TimeOrder(pytest.approx(factor, rel=1e-13), len(Y) - 1, len(Y) - 1)
    if factor != 1 / 3:
        assert found.factor == factor


def test_columns_may_be_in_any_order_among_others():
    order = np.random.default_rng(1).permutation(N_NODES)
    inputs = np.column_stack([np.arange(len(Y)), X[:, order]])
    assert time_order(inputs, Y, 1 + np.argsort(order)).n_following == len(Y) - 1
    assert time_order(inputs, Y, 1 + order) is None


def test_gaps_in_some_rows_are_allowed_and_in_many_are_not():
    rng = np.random.default_rng(2)
    for share, is_found in ((0.15, True), (0.3, False)):
        kept = np.sort(rng.permutation(len(Y))[round(share * len(Y)) :])
        gaps = np.count_nonzero(np.diff(kept) > 1)
        found = time_order(100 * X[kept], Y[kept], ALL)
        assert (found is not None) == is_found
        if found is not None:
            assert (found.factor, found.n_following, found.n_rows) == (0.01, kept.size - 1 - gaps, kept.size - 1)


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_found_in_shuffled_rows(seed):
    order = np.random.default_rng(seed).permutation(len(Y))
    assert time_order(X[order], Y[order], ALL) is None
    assert time_order(X[order[:50]], Y[order[:50]], ALL) is None


def test_values_that_differ_by_more_than_rounding_are_not_the_ones_before():
    noise = np.random.default_rng(3).standard_normal(X.shape)
    assert time_order(X + 1e-10 * Y.std() * noise, Y, ALL) is not None
    assert time_order(X + 1e-6 * Y.std() * noise, Y, ALL) is None
    # a level that drowns all differences hides no order, and makes none
    far = 1e9 + X
    assert time_order(far, 1e9 + Y, ALL) is not None
    assert time_order(far[::-1], 1e9 + Y, ALL) is None


def test_signals_that_stay_as_they_are_say_nothing_of_an_order():
    constant = np.ones((30, N_NODES))
    assert time_order(constant, constant, ALL) is None
    assert time_order(0 * constant, 0 * constant, ALL) is None
    steps = np.repeat(walk(6), 10, axis=0)  # each ten times; inputs are the signals themselves
    assert time_order(steps, steps, ALL) is None
    assert time_order(-X, Y, ALL) is None
    assert time_order(X[:0], Y[:0], ALL) is time_order(X[:11], Y[:11], ALL) is None
    # one that stays as it is at all nodes but one does not
    lone = np.where(ALL == 4, SERIES, 10.0)
    assert time_order(lone[:-1], lone[1:], ALL).n_following == len(Y) - 1
    # and one that does is no row to count: half of the others are enough
    paused = np.repeat(SERIES[:22], np.where(np.arange(22) % 2, 1, 2), axis=0)
    found = time_order(paused[:-1], paused[1:], ALL)
    assert (found.n_following, found.n_rows) == (21, 21)
    assert time_order(X[:12], Y[:12], ALL) is not None


# ------------------------------------------------------------------------------------------------ forward chaining


@pytest.mark.parametrize(("n_signals", "first"), [(12, 0), (41, 0), (700, 300)])
def test_later_signals_are_held_out_of_folds_in_time(n_signals, first):
    folds = Folds((n_signals, 5), Stacking(), np.random.default_rng(0), sparing=True, in_time=True)
    rest = n_signals - first
    half, most = first + rest // 2, first + 3 * rest // 4
    expected = [(np.arange(first, half), np.arange(half, most)), (np.arange(first, most), np.arange(most, n_signals))]
    for kept, held_out, cut in zip(folds.kept, folds.held_out, expected, strict=True):
        assert np.array_equal(kept, cut[0])
        assert np.array_equal(held_out, cut[1])


def test_independent_signals_may_have_inputs():
    kernel, inputs, new = IndependentSignals(), X[:4], X[4:7]
    plain = IndependentSignals().at(np.empty((4, 0)), np.empty((3, 0)))
    for name in ("cross", "variances", "covariance"):
        assert np.array_equal(getattr(kernel.at(inputs, new), name), getattr(plain, name))
    assert np.array_equal(kernel.covariance(inputs), np.eye(4))
    assert np.array_equal(modes_of_inputs(kernel, inputs).values, np.ones(4))
    assert kernel.is_identity
    assert not kernel.form.is_pairwise
    assert kernel.described is None


# ------------------------------------------------------------------------------------------------- the whole default


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_random_walk_is_forecast_as_well_as_by_no_change(seed):
    series = walk(1 + N_TRAIN + N_TEST, seed)
    model = GraphGPRegressor(RING).fit(series[:N_TRAIN] / 100, series[1 : N_TRAIN + 1])
    before, after = series[N_TRAIN:-1], series[N_TRAIN + 1 :]
    error = root_mean_square_error(after, model.predict(before / 100))
    assert error < 1.02 * root_mean_square_error(after, before)


def test_walks_that_outgrow_the_training_signals_are_not_held_down():
    ratios = []
    for seed in range(3):
        growing = np.exp(0.08 * walk(160, seed))
        model = GraphGPRegressor(RING).fit(growing[:60], growing[1:61])
        error = root_mean_square_error(growing[61:], model.predict(growing[60:-1]))
        ratios.append(error / root_mean_square_error(growing[61:], growing[60:-1]))
    assert np.max(ratios) < 1.15
    assert np.mean(ratios) < 1.05


def test_the_order_and_the_models_of_changes_are_said(model):
    words = model.summary().splitlines()
    assert words[1] == (
        "Rows are in time order: inputs are the signal before in 39 of 39 rows. Models are weighed by forecasts of the "
        "second half. Beyond the levels seen in training no change is predicted; GraphGPForecaster models levels that "
        "move."
    )
    names = [one.name for one in model.learnt_.tried]
    assert sum(name.startswith("no change, ") for name in names) == 1
    assert sum("changes" in name for name in names) == 2
    assert any("no change, " in line for line in words)
    scaled = GraphGPRegressor(RING).fit(X[:N_TRAIN] / 100, Y[:N_TRAIN]).summary()
    assert "inputs, times 100, are the signal before" in scaled


def test_all_that_carries_over_is_in_the_filter_of_a_model_of_changes():
    model = GraphGPRegressor(RING).fit(X[:N_TRAIN] / 100, Y[:N_TRAIN])
    carried, std = model.response(which="carry", return_std=True)
    expected = np.zeros(N_NODES)
    spectrum = model.spectrum_
    parts = [(w, one) for w, one in model.posterior_.parts if one.prior.spectrum.laplacian == spectrum.laplacian]
    for weight, part in parts:
        own = 0.0 if part.prior.carry is None else part.prior.carry.response(spectrum.eigenvalues)
        expected = expected + weight * (own + (0.0 if part.transformation is None else 100.0))
    assert relative_error(carried, expected / sum(weight for weight, _ in parts)) < EXACT
    assert np.all(std >= 0)
    assert (
        "carry:    patterns of every scale carry over alike (100 at frequency 0, 100 at the highest)" in model.summary()
    )


@pytest.mark.parametrize("settings", [{"graph": None}, {"input_kernel": RBF(10.0)}, {"center": None, "scale": None}])
def test_other_settings_have_models_of_changes_too(settings):
    model = GraphGPRegressor(**{"graph": RING} | settings).fit(X[:N_TRAIN], Y[:N_TRAIN])
    assert "time order" in model.summary()
    after, before = Y[N_TRAIN:], X[N_TRAIN:]
    assert root_mean_square_error(after, model.predict(before)) < 1.02 * root_mean_square_error(after, before)


def test_columns_of_tables_are_matched_by_name():
    pandas = pytest.importorskip("pandas")
    names = [f"n{node}" for node in ALL]
    named, turned = Graph(RING.weights, names=names), names[::-1]
    before = pandas.DataFrame(X, columns=names).assign(day=np.arange(len(X)))[["day", *names]]
    after = pandas.DataFrame(Y, columns=names)[turned]
    model = GraphGPRegressor(named).fit(before[:N_TRAIN], after[:N_TRAIN])
    assert "time order" in model.summary()
    forecast = model.predict(before[N_TRAIN:])
    assert list(forecast.columns) == turned
    error = root_mean_square_error(after[N_TRAIN:].to_numpy(), forecast.to_numpy())
    assert error < 1.02 * root_mean_square_error(Y[N_TRAIN:], X[N_TRAIN:])


def test_shuffled_rows_are_judged_by_random_folds_as_before():
    order = np.random.default_rng(4).permutation(N_TRAIN)
    shuffled = GraphGPRegressor(RING).fit(X[order], Y[order])
    assert "time order" not in shuffled.summary()
    assert all(one.transformation is None for one in shuffled.learnt_.candidates)


def test_carry_says_whether_rows_are_in_time_order():
    rounded = np.round(X[:N_TRAIN], 1)
    assert "time order" not in GraphGPRegressor(RING, carry=None).fit(X[:N_TRAIN], Y[:N_TRAIN]).summary()
    assert "time order" not in GraphGPRegressor(RING).fit(rounded, Y[:N_TRAIN]).summary()
    said = GraphGPRegressor(RING, carry="lagged").fit(rounded, Y[:N_TRAIN])
    assert "Rows are in time order, as carry='lagged' says." in said.summary()
    assert "no change" in said.summary()


GAPPY = np.where(np.arange(20 * N_NODES).reshape(20, -1) == 39, np.nan, Y[:20])


@pytest.mark.parametrize(
    ("inputs", "signals", "settings"),
    [(X[:11], Y[:11], {}), (X[:20, :3], Y[:20], {}), (X[:20], GAPPY, {}), (X[:20], Y[:20], {"spectrum": "chebyshev"})],
)
def test_a_time_order_that_cannot_be_used_is_refused(inputs, signals, settings):
    with pytest.raises(ValueError, match=r"carry must be 'auto'.*got 'lagged'"):
        GraphGPRegressor(RING, carry="lagged", **settings).fit(inputs, signals)


def test_a_given_kernel_is_learnt_as_before():
    plain = GraphGPRegressor(RING, Polynomial(2)).fit(X[:N_TRAIN], Y[:N_TRAIN])
    assert "time order" not in plain.summary()


def test_missing_values_leave_the_order_of_time_aside():
    gappy = Y[:N_TRAIN].copy()
    gappy[5, 2] = np.nan
    found = GraphGPRegressor(RING, Stacking(n_folds=2)).fit(X[:N_TRAIN], gappy)
    assert "time order" not in found.summary()


# ---------------------------------------------------------------------------------- beyond the range of training


def test_fertility_is_forecast_as_well_as_by_no_change():
    """Rates that fall in all countries, from columns that hardly varied: RMSE was 58.7 times that of no change."""
    data = load_fertility()
    nodes = np.flatnonzero(np.isfinite(data.rates).all(axis=0))
    rates = data.rates[:, nodes]
    model = GraphGPRegressor(data.graph.subgraph(nodes)).fit(rates[:20], rates[1:21])
    error = root_mean_square_error(rates[21:], model.predict(rates[20:-1]))
    assert error < 1.06 * root_mean_square_error(rates[21:], rates[20:-1])


@pytest.fixture(scope="module")
def reverting():
    """Signals that return to their level, of which the mixture has several members."""
    rng, signals = np.random.default_rng(7), np.zeros((1 + N_TRAIN, N_NODES))
    for row in range(N_TRAIN):
        signals[row + 1] = 0.6 * signals[row] + rng.standard_normal(N_NODES) + rng.standard_normal()
    return GraphGPRegressor(RING).fit(signals[:-1], signals[1:])


def test_weights_fall_back_to_no_change_by_the_distance_of_the_level(reverting):
    """(19f), by the quantile of the distances in training, from the predictions of the members."""
    training = reverting.learnt_.candidates[0].task.inputs
    levels = training.mean(axis=1)
    limit = np.quantile(np.abs(levels - levels.mean()) / levels.std(), 0.9)
    beyond = np.array([-0.2, 0.5, 1.0, 2.0, 9.0])
    new = training[7] - levels[7] + levels.mean() + levels.std() * (limit + beyond[:, None])
    shares = np.exp(-0.5 * np.maximum(beyond, 0.0)[:, None] ** 2)
    parts = [(weight, part.at(new).mean, part.prior) for weight, part in reverting.posterior_.parts]
    own = sum(weight * mean for weight, mean, _ in parts)
    (still,) = (mean for _, mean, prior in parts if prior.input_kernel.is_identity)
    found, std = reverting.predict(new, return_std=True)
    apart = np.abs(own - still).max()
    assert apart > 0.5
    assert np.abs(found - shares * own - (1 - shares) * still).max() < 0.006 * apart  # shares are in hundredths
    for row in range(len(new)):  # each by itself, however many there are
        np.testing.assert_allclose(reverting.predict(new[[row]]), found[[row]], rtol=1e-12)
    # far away no change is all there is: what is added to the signals is added to the predictions
    far, far_std = reverting.predict(new[-1:] + 50.0, return_std=True)
    np.testing.assert_allclose(far - found[-1:], 50.0, rtol=1e-12)
    np.testing.assert_allclose(far_std, std[-1:], rtol=1e-12)
    known = np.where(ALL < 6, new[-1:] + 1.0, np.nan)
    completed, _ = reverting.impute(new[-1:], known)
    np.testing.assert_allclose(reverting.impute(new[-1:] + 50.0, known + 50.0)[0], completed + 50.0, rtol=1e-12)


def test_joint_densities_beyond_the_range_are_those_of_independent_draws_of_the_models(reverting):
    """Of two signals that both fall back altogether: the sum of what no change says of each."""
    far = reverting.learnt_.candidates[0].task.inputs[:2] + 100.0
    alone = reverting.log_predictive_density(far, far + 0.3, joint=False)
    assert relative_error(reverting.log_predictive_density(far, far + 0.3), alone.sum()) < EXACT


def test_no_change_is_kept_where_another_model_is_much_better():
    rng = np.random.default_rng(5)
    signals = np.zeros((60, N_NODES))
    for row in range(1, 60):  # each signal is the opposite of the one before
        signals[row] = -0.9 * signals[row - 1] + rng.standard_normal(N_NODES)
    model = GraphGPRegressor(RING).fit(signals[:-1], signals[1:])
    weights = {one.name: weight for one, weight in zip(model.learnt_.candidates, model.kernel_weights_, strict=True)}
    (weight,) = (weight for name, weight in weights.items() if "no change" in name)
    assert 0.009 < weight < 0.011
    inside, far = model.predict(signals[-1:]), model.predict(100 + signals[-1:])
    assert root_mean_square_error(-0.9 * signals[-1:], inside) < 0.5
    assert root_mean_square_error(100 + signals[-1:], far) < 0.5


def test_a_level_that_is_constant_but_for_rounding_has_no_range():
    shares = np.exp(walk(60) - walk(60).mean(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    model = GraphGPRegressor(RING).fit(shares[:40], shares[1:41])
    assert "no change" in model.summary()
    own = sum(weight * part.at(shares[41:-1]).mean for weight, part in model.posterior_.parts)
    np.testing.assert_allclose(model.predict(shares[41:-1]), own, rtol=1e-9)


def test_columns_of_one_unit_have_moderated_deviations():
    """Towards their common variance; columns that do not carry over are of other units, and keep their own."""
    inputs = np.random.default_rng(6).standard_normal((20, 6)) * [1e-6, 1.0, 2.0, 1e-6, 1.0, 0.0]
    alone, kernel = StandardisedKernel.of(inputs), StandardisedKernel.of(inputs, alike=np.array([1, 2, 3, 5]))
    np.testing.assert_allclose(alone.spread[:5], inputs.std(axis=0)[:5])
    assert np.array_equal(kernel.spread[[0, 4]], alone.spread[[0, 4]])
    common = np.sqrt(np.mean(inputs[:, [1, 2, 3, 5]].var(axis=0)))
    for column in (1, 2, 3, 5):
        low, high = sorted([inputs[:, column].std(), common])
        assert low / 1.2 < kernel.spread[column] < 1.2 * high
    assert kernel.spread[[3, 5]].min() > 0.05 * common


# ---------------------------------------------------------------------------------------- every answer of the model


def test_a_saved_model_of_changes_predicts_the_same_bits(reverting, tmp_path):
    model = reverting
    model.save(tmp_path / "model.sgp")
    again = spectralgp.load(tmp_path / "model.sgp")
    new, observed = X[N_TRAIN:][:5] + np.array([0, 1, 3, 10, 50])[:, None], np.where(ALL < 4, Y[N_TRAIN:][:5], np.nan)
    for given in (None, observed):
        for one, other in zip(*(m.predict(new, return_std=True, observed=given) for m in (model, again)), strict=True):
            assert np.array_equal(one, other)
    assert again.summary() == model.summary()
    assert np.array_equal(again.leave_one_out().mean, model.leave_one_out().mean)


def test_files_with_columns_that_are_none_are_refused(model, tmp_path, monkeypatch):
    candidate = next(one for one in model.learnt_.candidates if one.transformation is not None)
    monkeypatch.setitem(vars(candidate.transformation), "columns", ALL + 1)
    model.save(tmp_path / "model.sgp")
    with pytest.raises(ValueError, match=r"transformation\.columns must be columns of 12 inputs"):
        spectralgp.load(tmp_path / "model.sgp")


def test_values_are_filled_in_among_training_signals_and_new_ones(model):
    rows = np.where(np.arange(N_NODES) % 4 == 1, np.nan, Y[: N_TRAIN + 5])
    rows[0] = Y[0]  # a training signal as it was
    completed, std = model.impute(X[: N_TRAIN + 5], rows)
    hidden = np.isnan(rows)
    assert np.array_equal(completed[~hidden], rows[~hidden])
    assert not std[~hidden].any()
    before = X[: N_TRAIN + 5][hidden]
    assert root_mean_square_error(Y[: N_TRAIN + 5][hidden], completed[hidden]) < root_mean_square_error(
        Y[: N_TRAIN + 5][hidden], before
    )


def test_training_signals_are_known_again_by_models_of_changes(model):
    from spectralgp.estimators.answers import training_numbers

    for _, part in model.posterior_.parts:
        assert np.array_equal(training_numbers(part, X[:N_TRAIN], Y[:N_TRAIN]), np.arange(N_TRAIN))
        assert np.all(training_numbers(part, X[N_TRAIN:], Y[N_TRAIN:]) == -1)


def test_more_signals_condition_models_of_changes(model, reverting):
    more = model.condition_on(X[N_TRAIN : N_TRAIN + 20], Y[N_TRAIN : N_TRAIN + 20])
    for (_, part), (_, old) in zip(more.posterior_.parts, model.posterior_.parts, strict=True):
        assert relative_error(part.given_signals, Y[: N_TRAIN + 20]) < EXACT
        assert part.transformation is old.transformation
    assert more.summary() == model.summary().replace(f"{N_TRAIN} signals", f"{N_TRAIN + 20} signals")
    far = X[:3] + 30
    seen = reverting.condition_on(np.vstack([far] * 20), np.vstack([far] * 20))  # which widen the range
    own = sum(weight * part.at(far).mean for weight, part in seen.posterior_.parts)
    np.testing.assert_allclose(seen.predict(far), own, rtol=1e-12)
    assert np.isfinite(more.predict(X[-3:])).all()


def test_a_model_of_changes_stays_on_its_graph(model):
    with pytest.raises(ValueError, match="carry must be None to transfer a model"):
        model.transfer(RING)


def test_the_report_is_in_the_units_of_the_signals(model, tmp_path):
    pytest.importorskip("plotly")
    pytest.importorskip("jinja2")
    from spectralgp.show.report.numbers import signal_report
    from spectralgp.show.report.words import variance_words

    names = [str(node) for node in ALL]
    numbers = signal_report(model, names, [f"row {row}" for row in range(N_TRAIN)])
    assert relative_error(numbers.predictions.observed, Y[:N_TRAIN]) < EXACT
    heaviest = max(model.posterior_.parts, key=lambda part: part[0])[1]
    assert numbers.variance.of == "changes"
    assert heaviest.transformation is not None
    assert "the variance of changes comes from" in " ".join(variance_words(numbers.variance, "left out", True))
    assert "time order" in model.report(tmp_path / "report.html").read_text(encoding="utf-8")
