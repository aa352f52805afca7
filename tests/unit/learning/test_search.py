"""The search for a default with given scores: the variants of each stage, and the weights of those of use."""

from dataclasses import replace

import numpy as np
import pytest

from cases import GRAPHS
from spectralgp.graphs import Graph
from spectralgp.learning import FoldScores, Sqp, Stacking, Task
from spectralgp.learning.candidates import Choices, Setting, Variant
from spectralgp.learning.search import Comparison, search, without_negligible
from spectralgp.learning.time_order import TimeOrder
from spectralgp.learning.weights import stacking_weights, weights_by_crps
from spectralgp.model.fields import Logarithms
from spectralgp.model.kernels import Diffusion, Identity, Polynomial
from spectralgp.model.signals import read_signals
from spectralgp.model.spectra import Chebyshev, Exact

GRAPH, EDGELESS = GRAPHS["random"], Graph(np.zeros((7, 7)))
BOTH, BY_NODE = ("node", "global"), np.arange(2, 9)
SIGNALS = np.random.default_rng(1).standard_normal((9, 7)).cumsum(axis=1)
INPUTS = np.random.default_rng(2).standard_normal((9, 9))  # a column for each node after two others


def setting_of(graph=GRAPH, scales=BOTH, columns=None, spectrum=Exact(), values=SIGNALS):
    signals = {scale: read_signals(values, "global", scale) for scale in scales}
    task = Task.of(graph, None, INPUTS[: len(values)], signals[scales[0]], spectrum=spectrum)
    return Setting(task, signals, True, columns, "auto")


@pytest.fixture(autouse=True)
def _starts_as_they_are(monkeypatch):
    """Fits are scripted candidates, which nothing is read from."""
    monkeypatch.setattr("spectralgp.learning.search.start_from", lambda fit, candidate: fit)


class Scripted:
    """Validation whose log densities are given, a row of signals or one number for each candidate of a stage."""

    most_members, has_final_fits = None, False

    def __init__(self, *scores, points=None):
        self.scores, self.points, self.starts, self.scored, self.asked = iter(scores), points, [], [], []

    def score(self, candidates, solver=None, starts=()):
        logs = np.atleast_2d(np.array(next(self.scores, np.zeros(len(candidates))), dtype=float))
        assert logs.shape[1] == len(candidates) == len(starts)
        self.starts += starts
        self.scored += candidates
        return FoldScores(logs, None, 7, tuple(candidates))  # in place of fits, to know them again

    def values(self, candidate):
        self.asked.append(self.scored.index(candidate))
        return np.array([1.0, 2.0]), self.points[self.asked[-1]]


def stages_of(setting, *scores, effort="full", **choices):
    """The variants of each stage in words, with those that they start from."""
    comparison = Comparison(Scripted(*scores), Sqp())
    search(comparison, Choices(setting, (), Stacking(effort=effort), True, **choices))

    def words(variant):
        kernel = variant.kernel
        laplacian = "" if kernel.needs_no_graph else f" {kernel.laplacian}"
        alone = f", {variant.terms[0]} alone" * (len(variant.terms) == 1)
        choices = f"{alone}{', carry' * variant.carries}{', free' * variant.is_free}"
        return f"{kernel.label}{laplacian}, {variant.scale}{choices}"

    named = dict(zip(comparison.candidates, map(words, comparison.variants), strict=True))
    starts = iter(comparison.validation.starts)
    found = [[named[one] for one in stage.fits] for stage in comparison.stages]
    with_starts = [[(one, next(starts)) for one in stage] for stage in found]
    # the first starts from the fit that its residual was chosen by
    return [[f"{one} < {named[start]}" if start in named else one for one, start in stage] for stage in with_starts]


def alone(name):
    """The variants of one term of the inputs alone."""
    return [f"{name}, {term} alone, free" for term in ("smooth", "linear")]


def started(start, *names):
    """Variants that start from the best one before them."""
    return [f"{name} < {start}" for name in names]


def test_the_default_tries_laplacians_then_degrees_and_scales_then_no_graph_and_single_terms():
    """Each stage starts from the best of those before it."""
    setting = setting_of()
    one, other = (f"Polynomial(2) {name}, node" for name in ("combinatorial", "normalized"))
    higher = "Polynomial(4) normalized, node"
    assert stages_of(setting, [-5], [-4], [-6], [-3, -9]) == [
        [one],
        started(one, other),
        started(other, f"{other}, free"),
        started(other, higher, "Polynomial(2) normalized, global"),
        started(higher, "Identity, node, free", *alone(higher)),
    ]
    one_scale = setting_of(scales=("global",), values=np.where(np.arange(7) == 3, np.nan, SIGNALS))
    *first, degree, last = stages_of(one_scale)
    assert len(first) == 4  # a node of few edges, which was never observed, is tied by another Laplacian
    own = "Polynomial(2) combinatorial, global"  # the first of equal scores
    assert [degree, last] == [
        started(own, "Polynomial(4) combinatorial, global"),
        started(own, "Identity, global, free"),
    ]
    *_, higher, _ = stages_of(setting, [-5], [-4], [-3])  # a free residual that scores more is kept
    assert higher[0] == f"Polynomial(4) normalized, node, free < {other}, free"


def test_a_fast_search_compares_one_laplacian_and_one_degree_without_single_terms():
    fast, own = {"effort": "fast"}, "Polynomial(2) normalized, node"
    setting = replace(setting_of(), columns=BY_NODE)
    other = f"Polynomial(2) normalized, global < {own}"
    assert stages_of(setting, **fast) == [[own], [other], started(own, "Identity, node, free", f"{own}, carry")]
    *_, logarithms = stages_of(setting, **fast, further=(setting_of(columns=BY_NODE),))
    assert logarithms == started(own, own)  # without a lagged term, as the best
    unseen = setting_of(values=np.where(np.arange(7) == 3, np.nan, SIGNALS))
    laplacians = [one.split()[1] for (one,) in stages_of(unseen, **fast)[:3]]
    assert laplacians == ["combinatorial,", "normalized,", "balanced,"]  # which a node that was never observed needs
    assert stages_of(setting_of(spectrum=Chebyshev(), scales=("global",)), **fast) == [
        ["Polynomial(2) combinatorial, global"]
    ]


@pytest.mark.parametrize(
    ("scores", "degree", "scale"),
    [([1.0, 1.0], 2, "node"), ([0.0, 2.0], 2, "global"), ([2.0, 0.0], 4, "node"), ([2.0, 3.0], 4, "global")],
)
def test_scores_decide_on_degree_and_scale(scores, degree, scale):
    """The better Laplacian scored one: what is tried next has what scored more than that, and nothing else."""
    setting = setting_of(columns=BY_NODE)
    *_, (*both, independent, lagged, smooth, linear) = stages_of(setting, [0], [1], [-1], scores)
    own = f"Polynomial({degree}) normalized, {scale}"
    is_new = (degree, scale) == (4, "global")  # which no stage tried before
    start = f"Polynomial({2 if is_new else degree}) normalized, {scale}"
    assert [independent, lagged, smooth, linear] == started(
        start, f"Identity, {scale}, free", f"{own}, carry", *alone(own)
    )
    assert both == (started(start, own) if is_new else [])


def test_on_a_large_graph_both_degrees_are_tried_at_once_and_none_without_a_graph():
    setting = setting_of(spectrum=Chebyshev(), scales=("global",))
    both = [f"Polynomial({degree}) combinatorial, global" for degree in (2, 4)]
    assert stages_of(setting, [-5, -4]) == [both]
    lagged = stages_of(replace(setting, columns=BY_NODE), [-5, -4])
    assert lagged == [both, started(both[1], f"{both[1]}, carry")]


def test_without_a_graph_scales_are_tried():
    own = "Identity, node"
    assert stages_of(setting_of(EDGELESS)) == [[own], started(own, "Identity, global"), started(own, *alone(own))]
    given = replace(setting_of(EDGELESS, scales=("global",)), is_kernel_open=False)  # whose terms are the user's
    assert stages_of(given) == [["Identity, global"]]


@pytest.mark.parametrize("columns", [None, BY_NODE])
def test_the_best_is_tried_on_logarithms_too(columns):
    setting, logarithms = setting_of(), setting_of(columns=columns)
    *_, last = stages_of(setting, [-4], [-5], [-6], [-6, -3], [-2, -9, -9], further=(logarithms,))
    own = "Identity, global"
    expected = [f"{own}, free"] if columns is None else [f"{own}, free", f"{own}, carry, free"]
    assert last == started(f"{own}, free", *expected)


def test_changes_have_the_inputs_of_the_best_and_none():
    setting, no_change, changes = (setting_of(columns=BY_NODE, scales=("global",)) for _ in range(3))
    order = TimeOrder(1.0, 8, 8)
    *_, last = stages_of(setting, [-5], [-4], [-6], [-6], [-8, 7], order=order, further=(no_change, changes))
    own = "Polynomial(2) normalized, global"
    assert last == started(f"{own}, carry", own, f"{own}, carry")


@pytest.mark.parametrize(
    ("graph", "scales", "values", "is_choice"),
    [
        (GRAPH, ("global",), SIGNALS, True),
        (EDGELESS, ("global",), SIGNALS, False),
        (EDGELESS, BOTH, SIGNALS, True),
        (GRAPH, BOTH, SIGNALS[:1], False),
        (GRAPH, BOTH, np.ones((3, 7)), False),
    ],
)
def test_the_library_chooses_where_signals_vary_and_there_is_a_choice(graph, scales, values, is_choice):
    setting = setting_of(graph, scales, values=values)
    choices = Choices(setting, (Polynomial(1),), Stacking(), is_open=True)
    assert choices.is_choice is is_choice
    assert not replace(choices, is_open=False).is_choice
    if not is_choice:  # one kernel, on the scale that signals need not tell
        (variant,), start = choices.asked_for(Sqp())
        assert start is None
        assert variant == Variant(setting, Identity() if graph is EDGELESS else Diffusion(), scales[-1])


# --------------------------------------------------------------------------------------------------------- weights


@pytest.mark.parametrize(
    ("given", "most", "expected"),
    [
        ([0.5, 0.009, 0.491], None, [0.5 / 0.991, 0.0, 0.491 / 0.991]),
        ([0.5, 0.011, 0.489], None, [0.5, 0.011, 0.489]),
        ([0.5, 0.2, 0.3], 2, [0.625, 0.0, 0.375]),
        ([0.5, 0.2, 0.3], 3, [0.5, 0.2, 0.3]),
        ([0.3, 0.005, 0.695], 1, [0.0, 0.0, 1.0]),
    ],
)
def test_members_of_a_choice_are_few_and_none_is_negligible(given, most, expected):
    np.testing.assert_allclose(without_negligible(np.array(given), most), expected)


def test_between_groups_whose_densities_do_not_compare_crps_decides():
    """By densities within a group; of four candidates two see logarithms, whose points are nearer by half."""
    logarithms = Logarithms.of(np.exp(SIGNALS), INPUTS, None)
    plain = setting_of(scales=("global",))
    settings = [plain, replace(plain, transformation=logarithms)] * 2
    rng = np.random.default_rng(1)
    logs = rng.normal([-1.0, 50.0, -1.1, 51.0], 1.0, size=(6, 4))  # which would leave nothing to the plain ones
    points = [np.array([[1.0], [2.0]]) + rng.normal(size=(2, 5)) for _ in range(4)]
    comparison = Comparison(Scripted(logs, points=points), Sqp())
    comparison.score([Variant(one, Identity(), "global") for one in settings])
    found = comparison.weighted()
    within = [stacking_weights(logs[:, ::2]), stacking_weights(logs[:, 1::2])]
    shares = np.array([[within[0][0], 0, within[0][1], 0], [0, within[1][0], 0, within[1][1]]]) / 5
    every = np.repeat(shares, 5, axis=1)
    share = weights_by_crps(np.array([1.0, 2.0]), np.concatenate(points, axis=1), every)[1]
    assert 0.05 < share < 0.95
    expected = np.stack([(1 - share) * within[0], share * within[1]], axis=1).ravel()
    np.testing.assert_allclose([one.weight for one in found.compared], expected, atol=0.01)
    np.testing.assert_allclose(found.weights, expected[expected > 0], atol=0.01)
    assert sorted(comparison.validation.asked) == np.flatnonzero(expected).tolist()


def test_scores_of_all_stages_are_kept():
    setting = setting_of()
    one, two, three = (Variant(setting, Polynomial(degree), "node") for degree in (1, 2, 3))
    logs = [[-1.0, -3.0], [-2.0, -5.0]], [[-7.0], [-11.0]]
    comparison = Comparison(Scripted(*logs), Sqp())
    assert comparison.score([one, two]).tolist() == [-3.0, -8.0]
    assert comparison.score([three]).tolist() == [-18.0]
    assert comparison.best == one
    assert comparison.variants == [one, two, three]
    np.testing.assert_array_equal(comparison.held_out.log_densities, [[-1, -3, -7], [-2, -5, -11]])
    found = comparison.weighted()
    assert [model.score for model in found.compared] == [-1.5, -4.0, -9.0]
    assert found.candidates == comparison.candidates[:1]
    assert found.starts == comparison.candidates[:1]
