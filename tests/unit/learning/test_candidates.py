"""Candidates and their held-out densities, against learning and conditioning by hand, fold by fold."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm
from scipy.stats import t as student
from sklearn.gaussian_process.kernels import RBF

import oracle
from cases import GRAPHS
from spectralgp.graphs import Graph
from spectralgp.learning import Candidate, Folds, FoldScores, Sqp, Stacking, Task, hyperparameter_draws, learn_all
from spectralgp.learning.candidates import Setting, Variant, learn_candidates, start_from, with_tuned_means
from spectralgp.learning.folds import _points
from spectralgp.model.fields import Logarithms, condition, condition_shrunk, held_out_values
from spectralgp.model.kernels import Diffusion, Identity, Polynomial, StandardisedKernel, mean_power
from spectralgp.model.kernels.base import SIGNAL_SHARE, with_residual
from spectralgp.model.signals import read_signals
from spectralgp.model.spectra import Exact
from tolerances import FORMULA

N_SIGNALS = 9
GRAPH = GRAPHS["random"]
INPUTS = np.random.default_rng(0).uniform(-2, 2, (N_SIGNALS, 2))
SIGNALS = np.random.default_rng(1).standard_normal((N_SIGNALS, 7)).cumsum(axis=1)
SIGNALS = SIGNALS - SIGNALS.mean()
COVARIANCE = oracle.rbf(INPUTS, INPUTS, 1.2)
KERNELS = [Polynomial(1), Diffusion()]
TASKS = {
    "kernel": Task.of(GRAPH, RBF(1.0), INPUTS, SIGNALS),
    "precomputed": Task.of(GRAPH, "precomputed", COVARIANCE, SIGNALS),
    "independent": Task.of(GRAPH, None, np.empty((N_SIGNALS, 0)), SIGNALS, noise_variance=0.3, prior=None),
}


def candidates(task, kernels=KERNELS):
    return [Candidate(task, kernel) for kernel in kernels]


def dense_densities(model, covariance, kept, held_out):
    """Log density of each held-out signal alone, and of its values, from the dense conditional covariance."""
    node_covariance = model.node_covariance()
    logs, values = [], []
    for index in held_out:
        rows = [*kept, index]
        mean, matrix = oracle.predict(
            SIGNALS[kept], covariance[np.ix_(rows, rows)], node_covariance, model.noise_variance
        )
        noisy = matrix + model.noise_variance * np.eye(7)
        logs.append(oracle.log_density(SIGNALS[index], mean, noisy))
        values.append(norm.logpdf(SIGNALS[index], mean, np.sqrt(np.diag(noisy))))
    return np.array(logs), np.array(values)


def covariance_of(task, model):
    if task.input_kernel.described is None:
        return np.eye(N_SIGNALS)
    return (
        COVARIANCE
        if task.input_kernel.described == "precomputed"
        else oracle.rbf(INPUTS, INPUTS, model.input_kernel.kernel.length_scale)
    )


@pytest.mark.parametrize("n_draws", [0, 3])
@pytest.mark.parametrize("name", TASKS)
def test_held_out_densities_are_those_done_by_hand(name, n_draws):
    """The first fold starts cold, and the others from its solution; all stop where predictions can tell no more."""
    task, solver = TASKS[name], Sqp().coarse()
    folds = Folds((N_SIGNALS, 7), Stacking(n_folds=3, n_draws=n_draws), np.random.default_rng(4))
    actual = folds.score(candidates(task))
    shuffled, *streams = np.random.default_rng(4).spawn(4)
    expected, expected_values = np.empty((N_SIGNALS, 2)), np.empty((N_SIGNALS, 7, 2))
    first = [None, None]
    for held_out, rng in zip(np.array_split(shuffled.permutation(N_SIGNALS), 3), streams, strict=True):
        kept = np.array([n for n in range(N_SIGNALS) if n not in held_out])
        part = task.part(kept, task.signals.fold(kept, held_out)[0])
        assert oracle.relative_error(part.signals.values, SIGNALS[kept]) < FORMULA
        for column, (kernel, own) in enumerate(zip(KERNELS, rng.spawn(2), strict=True)):
            like = None if first[column] is None or task.prior is None else [first[column]]
            (fit,) = learn_all([part], [kernel], solver, like)
            first[column] = first[column] or fit
            models = hyperparameter_draws(part, fit, n_draws, own).models if n_draws else (fit.model,)
            found = [dense_densities(model, covariance_of(task, model), kept, held_out) for model in models]
            logs, values = zip(*found, strict=True)
            expected[held_out, column] = logsumexp(logs, axis=0) - np.log(len(models))
            expected_values[held_out, :, column] = logsumexp(values, axis=0) - np.log(len(models))
    order = np.random.default_rng(4).spawn(4)[0].permutation(N_SIGNALS)  # fold by fold
    assert oracle.relative_error(actual.log_densities, expected[order]) < FORMULA
    assert oracle.relative_error(actual.value_log_densities, expected_values[order]) < FORMULA
    assert oracle.relative_error(actual.scores, expected.sum(axis=0) + expected_values.sum(axis=(0, 1))) < FORMULA
    assert [fit.log_posterior for fit in actual.fits] == [pytest.approx(fit.log_posterior) for fit in first]


def test_every_fold_reports_its_progress(listener):
    Folds((N_SIGNALS, 7), Stacking(n_folds=4), np.random.default_rng(0)).score(candidates(TASKS["kernel"]))
    assert listener.steps == [f"fold {number} of 4" for number in range(1, 5)]


def test_folds_do_not_depend_on_draws_or_on_the_other_kernels():
    """The same random state cuts the same folds, and draws the same, whatever else is asked for."""
    task = TASKS["kernel"]

    def densities(kernels, n_draws):
        return (
            Folds((N_SIGNALS, 7), Stacking(n_folds=3, n_draws=n_draws), np.random.default_rng(4))
            .score(candidates(task, kernels))
            .log_densities
        )

    for n_draws in (0, 3):
        np.testing.assert_array_equal(densities(KERNELS[:1], n_draws)[:, 0], densities(KERNELS, n_draws)[:, 0])


def test_a_fold_is_centred_by_what_it_keeps():
    """Levels by node that differ much: the held-out densities are those of a model that never saw them."""
    levels = 10 * np.arange(7.0)
    task = Task.of(GRAPH, RBF(1.0), INPUTS, read_signals(SIGNALS + levels, "node"))
    actual = (
        Folds((N_SIGNALS, 7), Stacking(n_folds=3), np.random.default_rng(4))
        .score(candidates(task, [Polynomial(1)]))
        .log_densities
    )
    shuffled, *_ = np.random.default_rng(4).spawn(4)
    start, like = 0, None
    for held_out in np.array_split(shuffled.permutation(N_SIGNALS), 3):
        kept = np.setdiff1d(np.arange(N_SIGNALS), held_out)
        centre = (SIGNALS + levels)[kept].mean(axis=0)
        part = Task.of(GRAPH, RBF(1.0), INPUTS[kept], (SIGNALS + levels)[kept] - centre)
        (fit,) = learn_all([part], [Polynomial(1)], Sqp().coarse(), like)
        like = like or [fit]
        posterior = condition(fit.model, part.inputs, part.signals)
        expected = posterior.at(INPUTS[held_out]).log_density((SIGNALS + levels)[held_out] - centre, joint=False)
        np.testing.assert_allclose(actual[start : start + held_out.size, 0], expected, rtol=1e-5)
        start += held_out.size


def test_tails_are_not_learnt_on_folds():
    """Shrunk, with missing values: a signal has the degrees of freedom of the covariance's posterior."""
    signals = np.where(np.random.default_rng(2).random(SIGNALS.shape) < 0.15, np.nan, SIGNALS)
    task = Task.of(GRAPH, RBF(1.0), INPUTS, signals)
    folds = Folds((N_SIGNALS, 7), Stacking(n_folds=3), np.random.default_rng(4))
    found = folds.score([Candidate(task, Polynomial(1), shrunk=True)])
    held_out = folds.held_out[0]
    kept = np.setdiff1d(np.arange(N_SIGNALS), held_out)
    own = (found.fits[0].model, INPUTS[kept], signals[kept])
    logs = [
        condition_shrunk(*own, learns_tails=learnt).at(INPUTS[held_out]).log_density(signals[held_out], joint=False)
        for learnt in (False, True)
    ]
    assert oracle.relative_error(found.log_densities[: held_out.size, 0], logs[0]) < FORMULA
    assert np.max(np.abs(logs[1] - logs[0])) > 0.01


def test_candidates_stand_beside_each_other():
    """Scored at once, or one after the other on the same folds."""
    folds = Folds((N_SIGNALS, 7), Stacking(n_folds=3), np.random.default_rng(4))
    whole, first, second = (
        folds.score(candidates(TASKS["kernel"], some)) for some in (KERNELS, KERNELS[:1], KERNELS[1:])
    )
    both = FoldScores.joined([first, second])
    np.testing.assert_array_equal(both.log_densities, whole.log_densities)
    np.testing.assert_array_equal(both.value_log_densities, whole.value_log_densities)
    assert [fit.log_posterior for fit in both.fits] == [fit.log_posterior for fit in whole.fits]
    bare = FoldScores(first.log_densities, None, 7, first.fits)
    assert FoldScores.joined([bare, second]).value_log_densities is None


def numbers(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape)


def test_scores_are_log_densities_of_signals_and_of_their_values():
    """Values at 2 of 8 nodes count fourfold; entries that were hidden count what they are worth."""
    logs, values = numbers(5, 3), numbers(5, 2, 3)
    np.testing.assert_allclose(FoldScores(logs, None, 8, ()).scores, logs.sum(axis=0))
    both = FoldScores(logs, values, 8, ())
    np.testing.assert_allclose(both.scores, logs.sum(axis=0) + 4 * values.sum(axis=(0, 1)))
    worth = np.arange(5.0)
    hidden = FoldScores(logs, None, 8, (), worth, of_signals=both)
    np.testing.assert_allclose(hidden.scores, worth @ logs + both.scores)


def test_some_candidates_keep_what_is_theirs():
    logs, values, errors, worth = numbers(5, 3), numbers(5, 2, 3), numbers(5, 4, 3), np.arange(5.0)
    whole = FoldScores(logs, values, 8, ("a", "b", "c"), worth, errors, of_signals=FoldScores(logs, None, 8, ()))
    some = whole.subset(np.array([2, 0]))
    np.testing.assert_array_equal(some.log_densities, logs[:, [2, 0]])
    np.testing.assert_array_equal(some.value_log_densities, values[..., [2, 0]])
    np.testing.assert_array_equal(some.errors, errors[..., [2, 0]])
    assert (some.fits, some.n_nodes, some.worth is worth) == (("c", "a"), 8, True)
    bare = FoldScores(logs, None, 8, ("a", "b", "c")).subset(np.array([1]))
    assert bare.value_log_densities is bare.errors is bare.worth is None


def test_what_only_one_of_two_groups_has_is_left_out_beside_each_other():
    one, other = FoldScores(numbers(5, 2), None, 8, ("a", "b")), FoldScores(numbers(5, 1), None, 8, ("c",))
    first = FoldScores(one.log_densities, numbers(5, 3, 2), 8, one.fits, None, numbers(5, 3, 2), one)
    second = FoldScores(other.log_densities, numbers(5, 3, 1), 8, other.fits, None, numbers(5, 3, 1), other)
    both = FoldScores.joined([first, second])
    logs = np.hstack([one.log_densities, other.log_densities])
    np.testing.assert_array_equal(both.log_densities, logs)
    np.testing.assert_array_equal(both.of_signals.log_densities, logs)
    assert both.of_signals.fits == both.fits == ("a", "b", "c")
    for name in ("value_log_densities", "errors"):
        joined = np.concatenate([getattr(first, name), getattr(second, name)], axis=-1)
        np.testing.assert_array_equal(getattr(both, name), joined)
    for found in (FoldScores.joined([first, other]), FoldScores.joined([one, second])):
        assert found.of_signals is found.value_log_densities is found.errors is None
        np.testing.assert_array_equal(found.log_densities, logs)


def test_values_of_candidates_are_looked_at_in_some_nodes():
    """Points of equal probability: of 19 intervals the middles, for every value that was held out."""
    folds = Folds((N_SIGNALS, 7), Stacking(n_folds=3), np.random.default_rng(4))
    (candidate,) = candidates(TASKS["kernel"], KERNELS[:1])
    folds.score([candidate])
    observed, points = folds.values(candidate)
    rows = np.concatenate(folds.held_out)
    np.testing.assert_allclose(np.sort(observed), np.sort(SIGNALS[rows].ravel()), rtol=1e-9)
    assert points.shape == (observed.size, 19)
    deviations = norm.ppf((np.arange(19) + 0.5) / 19)
    std = (points[:, -1] - points[:, 0]) / (deviations[-1] - deviations[0])
    np.testing.assert_allclose(points, points[:, 9, None] + np.multiply.outer(std, deviations), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    ("n_signals", "nodes"), [(428, [0, 1, 2, 3, 4, 5, 6]), (429, [0, 1, 2, 3, 4, 6]), (900, [0, 3, 6]), (3_001, [0])]
)
def test_nodes_that_are_looked_at_are_spread_evenly(n_signals, nodes):
    """Three thousand values at most, and at least one of each signal."""
    folds = Folds((n_signals, 7), Stacking(n_folds=3), np.random.default_rng(4))
    assert folds.nodes.tolist() == nodes


@pytest.mark.parametrize(
    ("n_signals", "n_nodes", "n_folds", "held_out"),
    [(100, 499, 5, [20, 20, 20]), (100, 500, 5, [20, 20]), (59, 10, 5, [12, 12, 12, 12, 11]), (500, 10, 5, [80])],
)
def test_a_choice_holds_out_no_more_than_it_takes(n_signals, n_nodes, n_folds, held_out):
    """60 signals, or 30 of 500 nodes and more, of at most 400."""
    folds = Folds((n_signals, n_nodes), Stacking(n_folds=n_folds), np.random.default_rng(0), sparing=True)
    assert [part.size for part in folds.held_out] == held_out
    assert folds.chosen.size == min(n_signals, 400)
    for kept, part in zip(folds.kept, folds.held_out, strict=True):
        np.testing.assert_array_equal(np.sort(np.concatenate([kept, part])), folds.chosen)
    whole = Folds((n_signals, n_nodes), Stacking(n_folds=n_folds), np.random.default_rng(0), most=50)
    assert [part.size for part in whole.held_out] == [10] * 5


def test_points_of_a_shrunk_model_are_those_of_a_t_with_its_variance():
    """Conditioned on the signals kept, with the shrinkage and the tails that they teach."""
    task, kept, held_out, nodes = TASKS["kernel"], np.arange(6), np.arange(6, N_SIGNALS), np.array([1, 4])
    part, candidate = task.part(kept, task.signals.some(kept)), Candidate(task, Polynomial(1), shrunk=True)
    model = learn_all([part], [Polynomial(1)], Sqp().coarse())[0].model
    points = _points(candidate, model, part, (kept, held_out), nodes)
    plain = condition(model, INPUTS[kept], SIGNALS[kept])
    mean, std, freedom = held_out_values(plain, plain.at(INPUTS[held_out]), nodes)
    assert 2 < freedom < np.inf
    np.testing.assert_allclose(points[9], mean, rtol=1e-7, atol=1e-9)
    scale = student.ppf(18.5 / 19, freedom) * np.sqrt((freedom - 2) / freedom)
    np.testing.assert_allclose(points[18] - points[9], scale * std, rtol=1e-7)


# ------------------------------------------------------------------------------------------- variants of a setting

BOTH, BY_NODE = ("node", "global"), np.arange(2, 9)
WIDE = np.random.default_rng(2).standard_normal((N_SIGNALS, 9))  # a column for each node after two others


def setting_of(graph=GRAPH, scales=BOTH, is_open=True, columns=None, spectrum=Exact(), values=SIGNALS, residual="auto"):
    signals = {scale: read_signals(values, "global", scale) for scale in scales}
    task = Task.of(graph, None, WIDE, signals[scales[0]], spectrum=spectrum)
    return Setting(task, signals, is_open, columns, residual)


def candidate_of(setting, kernel):
    return Variant(setting, kernel, next(iter(setting.signals))).candidate


@pytest.mark.parametrize("kernel", [Polynomial(3, "interval", "normalized"), Diffusion(), Polynomial(1)])
def test_a_free_residual_is_a_parabola_on_the_kernels_laplacian(kernel):
    setting = setting_of()
    free = replace(Variant(setting, kernel, "node"), is_free=True).candidate.kernel.residual
    assert (free.degree, free.laplacian, free.scaled) == (2, kernel.laplacian, kernel.scaled)
    chosen = candidate_of(setting, kernel).kernel.residual
    assert (chosen is None) == (setting.chosen[0].kernel is None)
    assert candidate_of(setting_of(residual=None), kernel).kernel.residual is None
    own = setting_of(residual=Diffusion(strength=0.3))
    assert candidate_of(own, Diffusion()).kernel.residual.strength == 0.3
    # what neighbours share is noise without edges
    assert candidate_of(setting_of(Graph(np.zeros((7, 7)))), kernel).kernel.residual is None


def test_names_say_what_a_candidate_is_made_of():
    plain = setting_of()
    assert candidate_of(plain, Polynomial(1)).described == ("Polynomial(1), node scales (combinatorial Laplacian)")
    free = Variant(plain, Polynomial(1), "node", is_free=True).candidate
    assert free.name == "Polynomial(1) | Polynomial(2), node scales, free residual"
    logarithms = Logarithms.of(np.exp(SIGNALS), WIDE, None)
    other = replace(setting_of(is_open=False, columns=BY_NODE, residual=None), shrunk=True, transformation=logarithms)
    named = Variant(replace(other, is_fallback=True), Identity(), "global", carries=True).candidate
    assert named.described == named.name == f"no change, Identity, carry-over, shrunk, {logarithms.described}"
    assert named.task.carried.columns.tolist() == BY_NODE.tolist()
    assert candidate_of(other, Identity()).task.carried is None
    assert (named.shrunk, named.transformation, named.is_fallback) == (True, logarithms, True)
    rows = np.array([1, 4, 6])
    some = candidate_of(replace(other, learnt_from=rows), Polynomial(2))
    np.testing.assert_array_equal(some.learning.inputs, WIDE[rows])


@pytest.mark.parametrize(("noise", "own"), [(None, None), (0.36, 0.09), ((0.36, 1.0), (0.09, 0.25))])
def test_noise_is_given_in_the_units_of_the_signals(noise, own):
    values = 2 * SIGNALS / np.std(SIGNALS)
    signals = {"global": read_signals(values, "global", "global")}
    task = replace(Task.of(GRAPH, None, WIDE, signals["global"]), noise_variance=noise)
    setting = Setting(task, signals)
    found = candidate_of(setting, Polynomial(1)).task
    assert found.noise_variance == (own if own is None else pytest.approx(own))
    assert candidate_of(setting, Polynomial(2)).task is found


def test_densities_of_logarithms_are_told_in_the_units_of_the_values():
    """By the slope of what the model sees at every value, from differences, over the unit that it is in."""
    values, step = 3 * np.exp(0.4 * SIGNALS), 1e-6
    logarithms = Logarithms.of(values, WIDE, None)
    ahead, behind = (logarithms.signals(values + way, WIDE) for way in (step, -step))
    signals = read_signals(logarithms.signals(values, WIDE), "global", "global")
    task = Task.of(GRAPH, None, np.empty((N_SIGNALS, 0)), signals)
    candidate = Candidate(task, Polynomial(1), transformation=logarithms)
    (fit,) = learn_all([task], [Polynomial(1)], Sqp().coarse())
    unit, log_slopes = signals.units.spread, np.log((ahead - behind) / (2 * step))
    found = candidate.in_units(fit)
    expected = fit.log_likelihood + np.sum(log_slopes - np.log(unit))
    assert found.log_likelihood == pytest.approx(expected, rel=1e-7)
    assert found.log_posterior - fit.log_posterior == pytest.approx(expected - fit.log_likelihood, rel=1e-7)
    # models have the unit of a typical value
    assert candidate.spread == pytest.approx(unit * np.exp(-np.mean(log_slopes)))
    assert found.model.noise_variance == pytest.approx(fit.model.noise_variance * candidate.spread**2)
    plain = replace(candidate, transformation=None)
    assert plain.spread == unit
    assert plain.in_units(fit).log_likelihood == pytest.approx(fit.log_likelihood - signals.size * np.log(unit))


@pytest.mark.parametrize("other", [Polynomial(4), Polynomial(2, laplacian="normalized"), Identity()])
def test_a_candidate_starts_near_the_fit_of_another(other):
    """The same functions where forms agree, on its own frequencies, and typical values elsewhere."""
    task = TASKS["kernel"]
    first, second = (
        Candidate(task, with_residual(one, Polynomial(2, laplacian=one.laplacian))) for one in (Polynomial(2), other)
    )
    (fit,) = learn_candidates([first], [task], Sqp())
    start = start_from(fit, second)
    assert start.model.spectrum.laplacian == second.kernel.laplacian
    own, before = start.model.graph_kernel, fit.model.graph_kernel
    frequencies = np.linspace(0, 1, 7)  # of each interval
    at, at_before = frequencies * start.model.spectrum.upper, frequencies * fit.model.spectrum.upper
    floored = own.residual_power(at) + start.model.noise_variance
    np.testing.assert_allclose(floored, before.residual_power(at_before) + fit.model.noise_variance)
    np.testing.assert_array_equal(start.model.input_kernel.theta, fit.model.input_kernel.theta)
    if other.needs_no_graph:
        assert mean_power(own, start.model.spectrum) == pytest.approx(SIGNAL_SHARE * task.variance)
    else:
        np.testing.assert_allclose(own.power(at), before.power(at_before), atol=1e-14)
    # from there it takes fewer evaluations to the same maximum
    (near,), (cold,) = (learn_candidates([second], [task], Sqp(), [one]) for one in (start, None))
    assert near.log_posterior == pytest.approx(cold.log_posterior, abs=1e-6)
    assert near.n_evaluations < cold.n_evaluations
    own = replace(task, input_kernel=StandardisedKernel.of(task.inputs))
    assert start_from(fit, Candidate(own, second.kernel)).model.input_kernel is own.input_kernel


def test_what_was_learnt_is_not_learnt_again():
    (one,), task = candidates(TASKS["kernel"], [Polynomial(1)]), TASKS["kernel"]
    assert learn_candidates([one], [task], Sqp(), None, {one: "fit"}) == ["fit"]
    assert one.untuned is None
    assert with_tuned_means(one).untuned is one
