"""Many signals: hyperparameters are learnt from some of them, and all are conditioned on, exactly or by a low rank."""

import logging
from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import oracle
import spectralgp
from spectralgp import Graph, GraphGPRegressor, Polynomial, Task, condition, learn, log_marginal_likelihood
from spectralgp.datasets import sensor_graph
from spectralgp.learning import Stacking, many
from spectralgp.learning.candidates import Choices, Setting
from tolerances import FORMULA, OPTIMUM

N_SIGNALS, N_NODES = 80, 8


@pytest.fixture(scope="module")
def problem():
    """A graph, inputs, and signals that inputs explain and neighbours share."""
    rng = np.random.default_rng(1)
    graph = sensor_graph(N_NODES, rng)
    inputs = rng.uniform(-2, 2, (N_SIGNALS, 2))
    smooth = np.linalg.inv(np.eye(N_NODES) + graph.laplacian().toarray())
    explained = np.sin(inputs @ rng.standard_normal((2, N_NODES))) @ smooth
    return graph, inputs, explained + 0.3 * rng.standard_normal((N_SIGNALS, N_NODES)) @ smooth


@pytest.fixture
def few(monkeypatch):
    """Limits under which the problem has many signals."""
    for limit, value in {"candidates.MOST_LEARNT_WHOLE": 60, "many.LEARNT_FROM": 40}.items():
        monkeypatch.setattr(f"spectralgp.learning.{limit}", value)


def test_hyperparameters_are_those_of_some_signals_and_the_posterior_that_of_all(problem, few):
    graph, inputs, signals = problem
    model = GraphGPRegressor(graph, Polynomial(2), RBF(), center=None, scale=None).fit(inputs, signals)
    (candidate,), (fit,) = model.learnt_.candidates, model.fits_
    rows = candidate.learnt_from
    assert rows.size == 40
    assert np.all(np.diff(rows) > 0)
    alone = learn(Task.of(graph, RBF(), inputs[rows], signals[rows]), candidate.kernel)
    assert fit.model.noise_variance == pytest.approx(alone.model.noise_variance, rel=OPTIMUM)
    assert fit.certificate.stationarity == pytest.approx(alone.certificate.stationarity, abs=0.01)
    assert fit.message.endswith("learnt from 40 of 80 signals, drawn at random")
    assert "learnt from 40 signals drawn at random" in model.summary()
    dense = log_marginal_likelihood(fit.model, inputs, signals)
    assert fit.log_likelihood == pytest.approx(dense, rel=FORMULA)
    assert model.log_marginal_likelihood_ == pytest.approx(dense, rel=FORMULA)
    assert fit.log_posterior - fit.log_likelihood == pytest.approx(alone.log_posterior - alone.log_likelihood, abs=0.01)
    unshrunk = GraphGPRegressor(graph, Polynomial(2), RBF(), residual=Polynomial(2), center=None, scale=None)
    unshrunk.fit(inputs, signals)
    expected = condition(unshrunk.fits_[0].model, inputs, signals).at(inputs[:5] + 0.1)
    assert oracle.relative_error(unshrunk.predict(inputs[:5] + 0.1), expected.mean) < FORMULA


def test_evidence_is_in_the_units_of_the_signals(problem, few):
    graph, inputs, signals = problem
    values = [
        GraphGPRegressor(graph, Polynomial(1), RBF(), scale="node").fit(inputs, factor * signals) for factor in (1, 10)
    ]
    likelihoods, stages = zip(*[(one.log_marginal_likelihood_, one.fits_[0].stages[-1]) for one in values], strict=True)
    assert likelihoods[0] - likelihoods[1] == pytest.approx(signals.size * np.log(10), rel=1e-6)
    assert stages[0].log_posterior - stages[1].log_posterior == pytest.approx(signals.size / 2 * np.log(10), rel=1e-4)


def test_few_signals_are_learnt_from_whole(problem):
    graph, inputs, signals = problem
    model = GraphGPRegressor(graph, Polynomial(1), RBF()).fit(inputs, signals)
    assert model.learnt_.candidates[0].learnt_from is None
    assert "drawn at random" not in model.summary()


def test_the_seed_decides_which_signals(problem, few):
    graph, inputs, signals = problem
    rows = [
        GraphGPRegressor(graph, Polynomial(1), RBF(), random_state=seed).fit(inputs, signals).learnt_.candidates[0]
        for seed in (None, 0, 1)
    ]
    assert np.array_equal(rows[0].learnt_from, rows[1].learnt_from)
    assert not np.array_equal(rows[0].learnt_from, rows[2].learnt_from)


@pytest.mark.parametrize("kernel", [None, [Polynomial(1), Polynomial(2)]], ids=["default", "stacked"])
def test_models_of_many_signals_are_saved(problem, few, kernel, tmp_path):
    graph, inputs, signals = problem
    model = GraphGPRegressor(graph, kernel).fit(inputs, signals)
    assert {one.learnt_from.size for one in model.learnt_.candidates} == {40}
    model.save(tmp_path / "model.sgp")
    again = spectralgp.load(tmp_path / "model.sgp")
    for one, other in zip(model.predict(inputs, return_std=True), again.predict(inputs, return_std=True), strict=True):
        assert np.array_equal(one, other)
    points = np.linspace(0, 1, 3)
    bands = [np.asarray(one.response(points, return_std=True)) for one in (model, again)]
    assert np.array_equal(*bands)
    assert again.summary() == model.summary()


def filled_in(problem):
    """A model of signals with missing values, which it imputes better than their mean does, and those signals."""
    graph, inputs, signals = problem
    holed = signals.copy()
    holed[np.random.default_rng(2).random(signals.shape) < 0.1] = np.nan
    model = GraphGPRegressor(graph, Polynomial(1), RBF()).fit(inputs, holed)
    completed, std = model.impute(inputs, holed)
    missing = np.isnan(holed)
    assert np.all(std[missing] > 0)
    assert np.mean((completed - signals)[missing] ** 2) < np.var(signals)
    return model, holed


def test_signals_with_missing_values_are_learnt_from_some_too(problem, few):
    inputs = problem[1]
    model, holed = filled_in(problem)
    assert model.fits_[0].message.endswith("learnt from 40 of 80 signals, drawn at random, of which the likelihood is")
    rows = model.learnt_.candidates[0].learnt_from
    (fit,) = model.learnt_.raw_fits
    part = (holed[rows] - model.center_) / model.scale_
    expected = log_marginal_likelihood(fit.model, inputs[rows], part) - np.sum(
        np.broadcast_to(np.log(model.scale_), part.shape)[~np.isnan(part)]
    )
    assert model.log_marginal_likelihood_ == pytest.approx(expected, rel=1e-6)


def test_a_line_says_what_is_done_and_for_how_long(problem, few, caplog):
    graph, inputs, signals = problem
    with caplog.at_level(logging.INFO, logger="spectralgp"):
        GraphGPRegressor(graph, Polynomial(1), RBF()).fit(inputs, signals)
    assert caplog.messages == ["80 signals: learning from 40 drawn at random, conditioning on all; less than a minute"]


@pytest.fixture
def sample_takes(monkeypatch):
    """A function that sets the seconds that the eigendecomposition of a sample takes."""

    def measured(seconds):
        monkeypatch.setattr(many.time, "perf_counter", iter([100.0, 100.0 + seconds]).__next__)

    return measured


@pytest.mark.parametrize("is_choice", [False, True])
@pytest.mark.parametrize("n_signals", [6_000, 6_001])
def test_what_takes_long_is_learning_conditioning_and_comparing(n_signals, is_choice, sample_takes):
    """Counted in eigendecompositions, of which that of a sample takes as many seconds as the cube of its rows here."""
    sample_takes(512.0**3)
    found = many.expected_seconds((n_signals, 50), 3, is_choice)
    learning = 20 * (2.0 * 1_000**3 + 2 * 0.4 * 1_000**2 * 50)
    if n_signals == 6_000:  # exactly
        conditioning = 6_000**3 + 10 * 0.4 * 6_000**2 * 50 + 4 * 50**3
    else:  # by a low rank, to be compared with two others
        conditioning = 3 * (500**2 * 6_001 + 10 * 0.4 * 500 * 6_001 * 50 + 4 * 50**3)
    comparing = 325 * (2.0 * 320**3 + 2 * 0.4 * 320**2 * 50) if is_choice else 0.0
    assert found == pytest.approx(comparing + 3 * (learning + conditioning))


@pytest.mark.parametrize(
    ("seconds", "words"), [(50.0, "less than a minute"), (70.0, "about 1 minute"), (200.0, "about 3 minutes")]
)
def test_times_are_told_in_minutes(seconds, words, sample_takes):
    sample_takes(1.0)
    n_samples = many.expected_seconds((100_000, 20), 2, is_choice=False)
    sample_takes(seconds / n_samples)
    assert many.time_message((100_000, 20), 2, is_choice=False).endswith(f"; {words}")


@pytest.fixture
def very_few(few, monkeypatch):
    """Limits under which the problem has too many signals for an exact covariance."""
    for limit, value in {"MOST_EXACT": 70, "RANK": 50, "HELD_OUT": 15}.items():
        monkeypatch.setattr(many, limit, value)


def test_very_many_signals_are_conditioned_on_by_a_low_rank(problem, very_few, tmp_path):
    graph, inputs, signals = problem
    form = Polynomial(1, "interval")
    model = GraphGPRegressor(graph, form, RBF(), residual=form).fit(inputs, signals)
    (prior,), ((_, posterior),) = model.learnt_.draws[0].models, model.posterior_.parts
    assert prior.points.size == 50
    assert posterior.signals.shape[0] == N_SIGNALS
    assert "; all are conditioned on by a covariance of rank 50: 15 others have" in model.summary()
    exact = condition(replace(prior, points=None), posterior.inputs, posterior.signals)
    assert oracle.relative_error(posterior.at(inputs).mean, exact.at(inputs).mean) < 0.1
    assert model.fits_[0].log_likelihood == pytest.approx(
        posterior.log_evidence() - posterior.signals.log_volume, rel=FORMULA
    )
    assert np.all(np.isfinite(model.leave_one_out().log_density))
    more = model.condition_on(inputs[:3] + 0.1, signals[:3])
    assert more.posterior_.parts[0][1].signals.shape[0] == N_SIGNALS + 3
    assert model.transfer(graph).predict(inputs[:2]).shape == (2, N_NODES)
    model.save(tmp_path / "model.sgp")
    again = spectralgp.load(tmp_path / "model.sgp")
    assert np.array_equal(again.learnt_.draws[0].models[0].points, prior.points)
    for one, other in zip(model.predict(inputs, return_std=True), again.predict(inputs, return_std=True), strict=True):
        assert np.array_equal(one, other)
    elsewhere = replace(prior, points=np.array([0, N_SIGNALS]))
    model.learnt_ = replace(model.learnt_, draws=(replace(model.learnt_.draws[0], models=(elsewhere,)),))
    model.save(tmp_path / "model.sgp")
    with pytest.raises(ValueError, match="points must be some of 80 signals on an exact spectrum; got others"):
        spectralgp.load(tmp_path / "model.sgp")


def test_very_many_signals_give_way_to_those_learnt_from_where_these_predict_better(
    problem, very_few, tmp_path, monkeypatch
):
    graph, inputs, signals = problem
    with_gap = np.vstack([np.full(N_NODES, np.nan), signals])
    densities = iter([1.0, 2.0])
    monkeypatch.setattr(many, "_log_densities", lambda *_: next(densities))
    model = GraphGPRegressor(graph, Polynomial(1), RBF()).fit(np.vstack([inputs[:1], inputs]), with_gap)
    ((_, posterior),) = model.posterior_.parts
    rows = np.flatnonzero(np.isfinite(model.leave_one_out().log_density)) - 1
    assert rows.size == posterior.signals.shape[0] == 40
    assert np.array_equal(posterior.inputs, inputs[rows])
    assert "these alone are conditioned on: 15 others have log densities of 1 by all and 2 by" in model.summary()
    model.save(tmp_path / "model.sgp")
    again = spectralgp.load(tmp_path / "model.sgp")
    assert np.array_equal(again.predict(inputs), model.predict(inputs))
    assert again.summary() == model.summary()


def test_densities_of_signals_held_out_are_those_of_the_posterior(problem, very_few):
    graph, inputs, signals = problem
    model = GraphGPRegressor(graph, Polynomial(1), RBF(), residual=Polynomial(1), center=None, scale=None)
    (candidate,) = model.fit(inputs, signals).learnt_.candidates
    prior = model.fits_[0].model
    kept, held_out = np.arange(60), np.arange(60, 80)
    expected = (
        condition(prior, inputs[kept], signals[kept]).at(inputs[held_out]).log_density(signals[held_out], joint=False)
    )
    assert many._log_densities(candidate, prior, kept, held_out) == pytest.approx(np.mean(expected), rel=FORMULA)


def test_very_many_signals_with_missing_values_are_filled_in_by_the_low_rank(problem, very_few):
    model, _ = filled_in(problem)
    assert model.learnt_.draws[0].models[0].points.size == 50


def test_up_to_1500_signals_are_learnt_from_whole_and_of_more_1000():
    graph = Graph(np.zeros((2, 2)))
    few, more = (Task.of(graph, None, np.empty((number, 0)), np.zeros((number, 2))) for number in (1_500, 1_501))
    has_many = [Choices(Setting(task, {}), (), Stacking()).has_many_signals for task in (few, more)]
    assert has_many == [False, True]
    rows = many.rows_to_learn_from(1_501, np.random.default_rng(0))
    assert rows.size == np.unique(rows).size == 1_000
    assert np.all(np.diff(rows) > 0)
    assert (rows[0] >= 0, rows[-1] <= 1_500, rows[-1] > 1_450) == (True, True, True)


@pytest.mark.parametrize(("n_signals", "minutes"), [(2_000, 6), (6_000, 32), (6_001, 6)])
def test_minutes_are_those_of_a_sample_of_512_rows_that_takes_a_second(n_signals, minutes, sample_takes):
    sample_takes(1.0)
    said = many.time_message((n_signals, 10), 1, is_choice=False)
    assert said.startswith(f"{n_signals:,} signals: learning from 1,000 drawn at random, conditioning on all")
    assert ("by 500 of them, unless those 1,000 do better" in said) == (n_signals > 6_000)
    assert said.endswith(f"; about {minutes} minutes")
