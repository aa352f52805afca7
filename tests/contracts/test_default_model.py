"""What a user gets without tuning: levels, scales, residuals and carry-over found by themselves, and said in words."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.metrics import r2_score

import oracle
from spectralgp import Graph, GraphGPRegressor, Identity, LocalAverage, Polynomial, Stacking, condition, decompose
from spectralgp.datasets import sensor_graph
from spectralgp.learning.folds import Folds
from spectralgp.model.fields import standard_deviation
from spectralgp.model.signals.levels import relative_scales
from tolerances import EXACT, FORMULA, OPTIMUM

N_NODES = 20
GRAPH = sensor_graph(N_NODES, np.random.default_rng(1))
SPECTRUM = decompose(GRAPH, scaled=True)


def smooth(rng, n_signals, strength=8.0):
    """White noise through a low-pass filter."""
    response = np.exp(-strength * SPECTRUM.eigenvalues / 2)
    return SPECTRUM.inverse(rng.standard_normal((n_signals, N_NODES)) * response)


def explained(rng, n_signals, noise=0.1):
    """Inputs, and signals that depend on them smoothly."""
    inputs = rng.standard_normal((n_signals, 3))
    patterns = smooth(np.random.default_rng(7), 3) * 3
    return inputs, np.tanh(inputs) @ patterns + noise * rng.standard_normal((n_signals, N_NODES))


def test_levels_of_the_nodes_do_no_harm():
    """A station's own level, hundreds of times the signal, is learnt as such."""
    rng = np.random.default_rng(0)
    inputs, signals = explained(rng, 60)
    levels = 300 * rng.standard_normal(N_NODES)
    plain = GraphGPRegressor(GRAPH).fit(inputs[:40], signals[:40]).predict(inputs[40:])
    lifted = GraphGPRegressor(GRAPH).fit(inputs[:40], signals[:40] + levels).predict(inputs[40:])
    errors = [np.sqrt(np.mean((found - signals[40:]) ** 2)) for found in (plain, lifted - levels)]
    assert errors[1] < 1.1 * errors[0]


def test_columns_of_very_different_scales_do_no_harm():
    inputs, signals = explained(np.random.default_rng(0), 40)
    scaled = inputs * [1.0, 1e4, 1e-4] + [0.0, 1e6, 3.0]
    plain, other = (GraphGPRegressor(GRAPH).fit(X, signals).predict(X) for X in (inputs, scaled))
    assert oracle.relative_error(other, plain) < 1e-6
    assert r2_score(signals, other) > 0.95


def test_scales_of_the_nodes_are_found():
    rng = np.random.default_rng(0)
    scales = np.exp(rng.normal(0, 1.0, N_NODES))
    inputs, signals = explained(rng, 80, noise=1.0)
    model = GraphGPRegressor(GRAPH, Polynomial(2), scale="node").fit(inputs[:50], scales * signals[:50])
    common = GraphGPRegressor(GRAPH, Polynomial(2), scale="global").fit(inputs[:50], scales * signals[:50])
    shrunk = relative_scales(np.var(scales * signals[:50], axis=0), np.full(N_NODES, 50))
    assert oracle.relative_error(model.scale_ / model.scale_.mean(), shrunk / shrunk.mean()) < FORMULA
    densities = [one.log_predictive_density(inputs[50:], scales * signals[50:]) for one in (model, common)]
    assert densities[0] > densities[1] + 20
    found = GraphGPRegressor(GRAPH, Polynomial(2)).fit(inputs[:50], scales * signals[:50])
    np.testing.assert_array_equal(found.scale_, model.scale_)
    even = GraphGPRegressor(GRAPH, Polynomial(2)).fit(inputs[:50], signals[:50])
    assert np.ptp(even.scale_) == 0


def test_what_neighbours_share_is_no_noise():
    """Residuals that the inputs say nothing about, smooth over the graph: the intervals know that they are."""
    rng = np.random.default_rng(0)
    inputs, signals = explained(rng, 90)
    signals = signals + 2 * smooth(rng, 90)
    model = GraphGPRegressor(GRAPH, Polynomial(3)).fit(inputs[:50], signals[:50])
    paper = GraphGPRegressor(GRAPH, Polynomial(3), residual=None).fit(inputs[:50], signals[:50])
    densities = [one.log_predictive_density(inputs[50:], signals[50:]) for one in (model, paper)]
    assert densities[0] > densities[1] + 5
    # the paper's model buys the sharing with a short length scale, and its means suffer
    errors = [np.sqrt(np.mean((one.predict(inputs[50:]) - signals[50:]) ** 2)) for one in (model, paper)]
    assert errors[0] < 0.98 * errors[1]
    residual = model.response(which="residual")
    assert residual[0] > 5 * residual[-1]
    assert model.noise_variance_ < 0.1
    # it is part of the signal: without noise the variance is nearly the same
    variances = [model.predict(inputs[50:], return_std=True, include_noise=noise)[1] ** 2 for noise in (False, True)]
    assert np.mean(variances[0]) > 0.7 * np.mean(variances[1])


class TestCarryOver:
    """Yesterday's values carry over to today's through a filter of any sign."""

    rng = np.random.default_rng(0)
    before = rng.standard_normal((60, N_NODES))
    filtered = SPECTRUM.filter(before, lambda eigenvalues: 0.8 - 1.4 * eigenvalues)
    after = filtered + 0.3 * rng.standard_normal((60, N_NODES))
    names = tuple(f"station {node}" for node in range(N_NODES))
    named = Graph(GRAPH.weights, names)

    def test_columns_that_are_the_nodes_are_found_by_number(self):
        model = GraphGPRegressor(GRAPH, Polynomial(2)).fit(self.before, self.after)
        points = np.array([0.0, 0.5, 1.0])
        mean, std = model.response(points, return_std=True, which="carry")
        assert np.all(np.abs(mean - (0.8 - 1.4 * points)) < 4 * std)
        assert np.all(std < 0.1)
        assert r2_score(self.after, model.predict(self.before)) > 0.95 * r2_score(self.after, self.filtered)

    def test_columns_are_found_by_name_in_any_order(self):
        order = np.random.default_rng(2).permutation(N_NODES)
        before = pd.DataFrame(self.before, columns=self.names)
        after = pd.DataFrame(self.after, columns=self.names).iloc[:, order]
        more = before.assign(hour=np.arange(60.0)).iloc[:, ::-1]
        plain = GraphGPRegressor(self.named, Polynomial(2)).fit(before, after)
        assert plain.fits_[0].model.carry is not None
        assert list(plain.predict(before).columns) == list(after.columns)
        found = GraphGPRegressor(self.named, Polynomial(2)).fit(more, after)
        assert found.fits_[0].model.carry is not None
        unordered = GraphGPRegressor(GRAPH, Polynomial(2)).fit(self.before, self.after)
        ordered = plain.predict(before)[list(self.names)].to_numpy()
        assert oracle.relative_error(ordered, unordered.predict(self.before)) < 1e-6

    @pytest.mark.parametrize("carry", [None, "auto"])
    def test_other_columns_carry_nothing(self, carry):
        inputs = self.before if carry is None else self.before[:, :5]
        model = GraphGPRegressor(GRAPH, Polynomial(1), carry=carry).fit(inputs, self.after)
        assert model.fits_[0].model.carry is None
        assert not model.response(which="carry").any()

    def test_columns_may_be_named(self):
        inputs = pd.DataFrame(np.hstack([self.before[:, :2], self.before]))
        inputs.columns = ["a", "b", *self.names]
        by_name = GraphGPRegressor(GRAPH, Polynomial(1), carry=list(self.names)).fit(inputs, self.after)
        by_number = GraphGPRegressor(GRAPH, Polynomial(1), carry=np.arange(2, 22)).fit(inputs, self.after)
        expected = by_number.response(which="carry")
        assert oracle.relative_error(by_name.response(which="carry"), expected) < EXACT

    @pytest.mark.parametrize(
        ("carry", "message"),
        [
            ([0, 1], r"carry must name one column of X for each of the 20 columns of Y; got shape \(2,\)"),
            (np.arange(10, 30), "carry must hold columns of X; got 20. X has 20 columns."),
            (["a"] * N_NODES, "carry must hold columns of X; got 'a'"),
            ("yes", "carry must be one of 'auto', 'lagged'; got 'yes'"),
        ],
    )
    def test_what_is_no_column_is_an_error(self, carry, message):
        with pytest.raises(ValueError, match=message):
            GraphGPRegressor(GRAPH, Polynomial(1), carry=carry).fit(self.before, self.after)


@pytest.mark.parametrize("kernel", [None, Polynomial(0)])
def test_repeated_measurements_are_data(kernel):
    """An alarm that is on in a tenth of the readings is not predicted as on in half of them."""
    rng = np.random.default_rng(0)
    inputs = np.tile([[0.0], [1.0]], (150, 1))
    alarms = (rng.random((300, 1)) < 0.1).astype(float)
    model = GraphGPRegressor(Graph.edgeless(1), kernel).fit(inputs, alarms)
    means = [alarms[inputs[:, 0] == setting].mean() for setting in (0, 1)]
    # between their own means and the common one
    assert np.abs(model.predict([[0.0], [1.0]])[:, 0] - means).max() < 0.04
    assert model.leave_one_out().mean.shape == (300, 1)


def test_repeated_counts_are_data():
    rng = np.random.default_rng(0)
    inputs, counts = np.tile([[0.0], [1.0]], (150, 1)), rng.poisson(0.2, (300, 2)).astype(float)
    model = GraphGPRegressor(Graph.from_edges([(0, 1)]), Polynomial(1)).fit(inputs, counts)
    assert np.abs(model.predict(inputs[:2]).mean(axis=0) - counts.mean(axis=0)).max() < 0.04


def test_a_signal_that_is_there_twice_is_one_of_half_the_noise():
    inputs, signals = explained(np.random.default_rng(0), 30)
    rows = np.tile(np.arange(30), 2)
    paper = GraphGPRegressor(GRAPH, Polynomial(2), residual=None, noise_variance=0.02)
    model = paper.fit(inputs[rows], signals[rows]).fits_[0].model
    twice = condition(model, inputs[rows], signals[rows])
    once = condition(dataclasses.replace(model, noise_variance=model.noise_variance / 2), inputs, signals)
    assert oracle.relative_error(twice.at(inputs).mean, once.at(inputs).mean) < FORMULA
    assert oracle.relative_error(standard_deviation(twice.at(inputs)), standard_deviation(once.at(inputs))) < FORMULA


def test_noise_at_its_bound_is_said():
    """Signals without any noise: the filter explains all, and nothing is left to learn the noise from."""
    rng = np.random.default_rng(0)
    inputs = np.linspace(0, 1, 12)[:, None]
    signals = np.sin(3 * inputs) * smooth(rng, 1)
    with pytest.warns(UserWarning, match="the noise is at its lower bound"):
        GraphGPRegressor(GRAPH, Identity(), RBF(1.0), residual=None, noise_variance=(1e-3 * signals.var(), 10.0)).fit(
            inputs, signals
        )


def test_a_redundant_constant_is_held():
    inputs, signals = explained(np.random.default_rng(0), 30)
    options = {"residual": None, "center": "node", "scale": "global"}
    bare = GraphGPRegressor(GRAPH, Polynomial(2), RBF(1.0), **options).fit(inputs, signals)
    factor = GraphGPRegressor(GRAPH, Polynomial(2), ConstantKernel(4.0) * RBF(1.0), **options).fit(inputs, signals)
    assert factor.input_kernel_[0].k1.constant_value == 4.0
    assert oracle.relative_error(2 * factor.response(), bare.response()) < np.sqrt(OPTIMUM)
    part = Polynomial(1) + Identity(amplitude=0.5, amplitude_bounds="fixed")  # one factor does not scale the whole
    assert not part.search().has_free_amplitude
    fixed = Polynomial.from_coefficients([1.0, -0.5], fixed=True)
    learnt = GraphGPRegressor(GRAPH, fixed, ConstantKernel(4.0) * RBF(1.0), **options).fit(inputs, signals)
    assert learnt.input_kernel_[0].k1.constant_value != 4.0


@pytest.fixture(scope="module")
def fitted():
    inputs, signals = explained(np.random.default_rng(0), 40)
    return GraphGPRegressor(GRAPH).fit(inputs, signals), inputs, signals


def test_the_summary_names_weights_and_filters(fitted):
    model, _, _ = fitted
    text = model.summary()
    assert text.startswith(f"40 signals on 20 nodes and {GRAPH.n_edges} edges; a mixture of")
    weights = [float(line.split()[1].rstrip(":")) for line in text.splitlines() if line.startswith("weight")]
    assert np.allclose(weights, np.sort(np.round(model.kernel_weights_, 2))[::-1])
    assert text.count("  signal: ") == text.count("  noise: ") == len(model.fits_)
    assert "low-pass: neighbours are alike" in text
    order = np.argsort(-model.kernel_weights_, kind="stable")
    lines = [line for line in text.splitlines() if line.startswith("  signal: ")]
    for line, index in zip(lines, order, strict=True):  # in the units of the signals
        first = model.fits_[index].model.graph_kernel.response(np.zeros(1))[0]
        assert f"({first:.3g} at frequency" in line
    shares = [model.shrinkage.data_weight for draws in fitted[0].learnt_.draws for model in draws.models[:1]]
    said = [line.split()[1] for line in text.splitlines() if line.startswith("  shrunk:")]
    assert sorted(said) == sorted(f"{share:.0%}" for share in shares)


def test_every_answer_of_the_default_agrees_with_its_covariance(fitted):
    model, inputs, signals = fitted
    mean, std = model.predict(inputs[:3], return_std=True, include_noise=True)
    _, covariance = model.predict(inputs[:3], return_cov=True, include_noise=True)
    assert oracle.relative_error(std**2, np.array([np.diag(one) for one in covariance])) < FORMULA
    draws = model.sample_y(inputs[:3], 3000, 0, include_noise=True)
    assert np.max(np.abs(draws.mean(axis=2) - mean) / std) < 5 / np.sqrt(3000)
    alone, (single,) = (model.log_predictive_density(inputs[:1], signals[:1], joint=joint) for joint in (True, False))
    assert oracle.relative_error(alone, single) < FORMULA


def test_a_band_is_known_without_draws_in_the_prediction(fitted):
    model, _, _ = fitted
    assert all(len(one.models) == 1 for one in model.learnt_.draws)
    for which in ("signal", "residual"):
        mean, std = model.response(return_std=True, which=which)
        assert mean.shape == std.shape == (N_NODES,)
        assert np.all(std > 0)


@pytest.mark.parametrize(
    ("n_signals", "n_nodes", "sizes"),
    [
        (30, 1, 5 * [6]),
        (60, 1, 5 * [12]),
        (150, 1, [30, 30]),
        (400, 499, [80]),
        (401, 1, [80]),
        (1_000, 1, [80]),
        (100, 499, [20, 20, 20]),
        (100, 500, [20, 20]),
    ],
)
def test_choices_are_made_on_enough_signals_and_no_more(n_signals, n_nodes, sizes):
    """On 400 at most, and in no more of five folds than hold out 60, or 30 of 500 nodes."""
    folds = Folds((n_signals, n_nodes), Stacking(), np.random.default_rng(0), sparing=True)
    assert [part.size for part in folds.held_out] == sizes
    for kept, part in zip(folds.kept, folds.held_out, strict=True):
        np.testing.assert_array_equal(np.sort(np.concatenate([kept, part])), folds.chosen)
    held_out = np.concatenate(folds.held_out)
    assert np.unique(held_out).size == held_out.size
    assert folds.chosen.size == min(n_signals, 400)
    assert set(held_out) <= set(folds.chosen)


def test_folds_side_by_side_give_the_same(fitted):
    model, inputs, signals = fitted
    again = clone(model).set_params(graph_kernel=Stacking(n_jobs=2)).fit(inputs, signals)
    np.testing.assert_array_equal(again.kernel_weights_, model.kernel_weights_)
    np.testing.assert_array_equal(again.predict(inputs), model.predict(inputs))


def test_without_a_graph_the_default_needs_none():
    inputs, signals = explained(np.random.default_rng(0), 40)
    model = GraphGPRegressor().fit(inputs, signals)
    assert r2_score(signals, model.predict(inputs)) > 0.9
    assert not any(model.residual_)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"residual": "yes"}, ValueError, "residual must be a graph kernel, 'auto' or None; got 'yes'"),
        ({"residual": LocalAverage()}, TypeError, "residual must be a function on the spectrum"),
        ({"residual": "shrunk"}, ValueError, "residual must be .*; got 'shrunk'. 'auto' shrinks where that can"),
        ({"center": "mean"}, ValueError, "center must be one of 'auto', 'global', 'node'; got 'mean'"),
        ({"scale": "edge"}, ValueError, "scale must be one of 'auto', 'global', 'node'; got 'edge'"),
    ],
)
def test_settings_that_say_nothing_are_errors(options, error, message):
    inputs, signals = explained(np.random.default_rng(0), 10)
    with pytest.raises(error, match=message):
        GraphGPRegressor(GRAPH, Polynomial(1), **options).fit(inputs, signals)


def test_an_unknown_filter_is_an_error(fitted):
    with pytest.raises(ValueError, match="which must be one of 'signal', 'residual', 'carry'; got 'noise'"):
        fitted[0].response(which="noise")
