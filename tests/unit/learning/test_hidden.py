"""Hidden entries: where they are, what candidates may know of them, and weights by them, against dense algebra."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.gaussian_process.kernels import RBF

import oracle
from cases import GRAPHS
from spectralgp import Graph, GraphGPRegressor, Identity, Polynomial
from spectralgp.learning import Candidate, Sqp, Task, hidden, missing
from spectralgp.learning.candidates import learn_all
from spectralgp.learning.hidden import MOST_FILLING, HiddenEntries, hidden_like_missing
from spectralgp.model.kernels import StandardisedKernel, WithResidual
from spectralgp.model.signals import read_signals
from tolerances import MASKED

GRAPH = GRAPHS["random"]
N_SIGNALS, N_NODES = 12, 7
INPUTS = np.random.default_rng(0).uniform(-2, 2, (N_SIGNALS, 1))
SIGNALS = np.random.default_rng(1).standard_normal((N_SIGNALS, N_NODES)).cumsum(axis=1) + 3.0


def holed(seed: int = 0, unseen: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    signals = np.where(rng.random(SIGNALS.shape) < 0.2, np.nan, SIGNALS)
    signals[:, rng.choice(N_NODES, unseen, replace=False)] = np.nan
    return signals


def candidate(signals, scale="node", kernel=None, shrunk=False) -> Candidate:
    task = Task(GRAPH, Task.of(GRAPH, RBF(1.0), INPUTS, SIGNALS).input_kernel, INPUTS, signals[scale])
    return Candidate(task, kernel or Polynomial(1), shrunk)


@given(st.tuples(st.integers(2, 30), st.integers(2, 12)), st.floats(0, 0.9), st.integers(0, 3), st.integers(0, 2**31))
def test_hidden_entries_are_some_of_those_observed(shape, share, n_unseen, seed):
    rng = np.random.default_rng(seed)
    observed = rng.random(shape) >= share
    observed[:, rng.choice(shape[1], min(n_unseen, shape[1] - 1), replace=False)] = False
    observed = observed[observed.any(axis=1)]
    if not observed.size:
        return
    chosen, worth = hidden_like_missing(observed, rng)
    rest, whole = observed & ~chosen, chosen.any(axis=0) & ~(observed & ~chosen).any(axis=0)
    assert not np.any(chosen & ~observed)
    assert rest.any(axis=1).all()  # no signal is left without anything
    assert not whole.any() or not observed.any(axis=0).all()  # and no node, unless some were never observed
    assert worth.shape == (np.count_nonzero(chosen),)
    assert np.all(worth > 0)


def test_few_missing_values_are_moved_again_and_again_and_many_are_thinned():
    one = np.ones((40, 25), dtype=bool)
    one[3, 4] = False
    many = np.random.default_rng(0).random((40, 25)) >= 0.5
    for observed, low, high in ((one, 0.05, 0.07), (many, 0.1, 0.2)):
        chosen, worth = hidden_like_missing(observed, np.random.default_rng(1))
        assert low <= np.count_nonzero(chosen) / np.count_nonzero(observed) <= high
        assert np.all(worth == 1 / hidden.ENTRIES_PER_SIGNAL)


def test_outages_stay_outages():
    """Runs of ten signals are moved and left out whole, but for what they meet: others, and the first signal."""
    observed = np.ones((200, 30), dtype=bool)
    for node in range(30):
        observed[7 * node : 7 * node + 10, node] = False
        observed[(7 * node + 100) % 190 : (7 * node + 100) % 190 + 10, node] = False
    chosen, _ = hidden_like_missing(observed, np.random.default_rng(0))
    starts = chosen & ~np.vstack([np.zeros((1, 30), dtype=bool), chosen[:-1]])
    assert np.count_nonzero(chosen) / np.count_nonzero(starts) > 8


def test_whole_nodes_are_hidden_where_nodes_were_never_observed():
    observed = np.ones((20, 15), dtype=bool)
    observed[:, [3, 7]] = False
    chosen, worth = hidden_like_missing(observed, np.random.default_rng(0))
    whole = chosen.all(axis=0)
    assert whole.sum() == hidden.FEWEST_NODES
    assert np.array_equal(chosen.any(axis=0), whole)
    assert worth.sum() == pytest.approx(hidden.WHOLE_WORTH * hidden.FEWEST_NODES)


@pytest.mark.parametrize(
    ("n_nodes", "n_unseen", "n_hidden"), [(45, 1, 3), (45, 5, 5), (45, 20, 5), (60, 20, 8), (4, 1, 1), (3, 1, 1)]
)
def test_a_fifth_of_the_nodes_is_hidden_at_most(n_nodes, n_unseen, n_hidden):
    """As many as were never observed, but three if a fifth allows it."""
    observed = np.ones((9, n_nodes), dtype=bool)
    observed[:, :n_unseen] = False
    chosen, _ = hidden_like_missing(observed, np.random.default_rng(0))
    assert chosen.all(axis=0).sum() == chosen.any(axis=0).sum() == n_hidden


@pytest.mark.parametrize(("shape", "n_hidden"), [((40, 25), 50), ((41, 25), 52), ((300, 250), 2_000)])
def test_entries_are_hidden_at_random_where_there_are_no_missing_values(shape, n_hidden):
    """A twentieth of them, but no more than two thousand."""
    chosen, _ = hidden_like_missing(np.ones(shape, dtype=bool), np.random.default_rng(0))
    assert chosen.sum() == n_hidden


def test_many_missing_values_hide_fifteen_per_cent():
    observed = np.random.default_rng(0).random((200, 100)) >= 0.5
    chosen, _ = hidden_like_missing(observed, np.random.default_rng(1))
    assert 0.14 < chosen.sum() / observed.sum() < 0.16


def test_missing_values_of_one_time_are_moved_to_another():
    """A signal of which one node alone was observed: what is hidden are signals but for a node."""
    observed = np.ones((12, 30), dtype=bool)
    observed[4, 1:] = False
    chosen, _ = hidden_like_missing(observed, np.random.default_rng(0))
    counts = chosen.sum(axis=1)
    assert np.sort(counts)[-1] == 29
    assert counts[4] == 0


@pytest.mark.parametrize(("n_signals", "n_whole"), [(4, 0), (5, 1), (12, 2), (13, 3)])
def test_a_fifth_of_the_signals_is_hidden_whole(n_signals, n_whole):
    """Of five or more; each is worth two entries."""
    values = np.random.default_rng(0).standard_normal((n_signals, 7))
    values[0, 2] = values[1, 3] = np.nan
    judge = HiddenEntries(read_signals(values), np.random.default_rng(3))
    whole = judge.in_signals.any(axis=1)
    assert whole.sum() == n_whole
    assert np.array_equal(judge.in_signals, np.isfinite(values) & whole[:, None])
    assert judge.signals_worth.sum() == pytest.approx(2.0 * n_whole)


@pytest.mark.parametrize("unseen", [0, 2])
@pytest.mark.parametrize("scale", ["node", "global"])
def test_densities_are_those_of_dense_algebra(scale, unseen):
    """Hyperparameters are those of all that was observed; centre and scales of what was not hidden."""
    values = holed(unseen=unseen)
    signals = {scale: read_signals(values, "global", scale)}
    judge, one = HiddenEntries(signals[scale], np.random.default_rng(2)), candidate(signals, scale)
    found = judge.score([one])
    model, factor = found.fits[0].model, signals[scale].units.spread
    taken = judge.hidden | judge.in_signals
    less = read_signals(np.where(taken, np.nan, values), "global", scale)
    covariance = oracle.covariance(
        oracle.rbf(INPUTS, INPUTS, model.input_kernel.kernel.length_scale),
        factor**2 * model.node_covariance(),
        factor**2 * model.noise_variance,
    )
    relative = np.ones(N_NODES) if less.units.relative is None else less.units.relative
    errors = (np.where(taken, np.nan, values) - less.units.offset) / relative
    known = np.isfinite(errors).ravel()
    mean, matrix = oracle.condition(covariance, known, errors.ravel()[known], taken.ravel())
    scales, offset = (np.broadcast_to(one, taken.shape)[taken] for one in (relative, less.units.offset))
    expected = np.full(taken.shape, np.nan)
    expected[taken] = norm.logpdf(values[taken], mean * scales + offset, np.sqrt(np.diag(matrix)) * scales)
    assert judge.in_signals.any()
    assert not np.any(judge.hidden & judge.in_signals)
    assert oracle.relative_error(found.log_densities[:, 0], expected[judge.hidden]) < MASKED
    assert oracle.relative_error(found.of_signals.log_densities[:, 0], expected[judge.in_signals]) < MASKED
    total = judge.worth @ expected[judge.hidden] + judge.signals_worth @ expected[judge.in_signals]
    assert found.scores[0] == pytest.approx(total)


@pytest.mark.parametrize("shrunk", [False, True])
def test_nothing_but_hyperparameters_is_learnt_from_what_is_hidden(shrunk):
    """With the hyperparameters held, densities of other values there are those of the same normal distributions."""
    shift, logs = 2.5, []
    for way in (-1, 0, 1):
        values = holed()
        judge = HiddenEntries(read_signals(values, "node", "node"), np.random.default_rng(2))
        values[judge.hidden] += way * shift
        signals = read_signals(values, "node", "node")
        unit = signals.units.spread
        task = Task.of(GRAPH, RBF(1.0, "fixed"), INPUTS, signals, noise_variance=0.4 / unit**2)
        kernel = Polynomial.from_coefficients([1.5 / unit, -0.7 / unit], fixed=True)
        logs.append(judge.score([Candidate(task, kernel, shrunk)]).log_densities[:, 0])
    below, found, above = logs
    variance = -(shift**2) / (below + above - 2 * found)
    error = variance * (below - above) / (2 * shift)
    assert oracle.relative_error(found, norm.logpdf(error, 0.0, np.sqrt(variance))) < MASKED


@pytest.mark.parametrize("most", [500, 8])
def test_candidates_are_learnt_from_signals_completed_under_the_best_so_far(most, monkeypatch):
    """Of some of very many signals; each from the fit that it is to start from, if there is one."""
    monkeypatch.setattr(hidden, "MOST_COMPARED", most)
    signals = {"node": read_signals(holed(), "node", "node")}
    judge, given, learn = HiddenEntries(signals["node"], np.random.default_rng(2)), [], hidden.learn_near
    monkeypatch.setattr(hidden, "learn_near", lambda *args: given.append(args) or learn(*args))
    first, second = candidate(signals), candidate(signals, kernel=Identity())
    found = judge.score([first, second])
    further = judge.score([candidate(signals)], starts=[found.fits[0]])
    n_compared = min(most, N_SIGNALS)
    assert judge.has_final_fits is (most > N_SIGNALS)
    assert np.array_equal(judge.chosen, np.unique(judge.chosen))
    assert judge.chosen.size == n_compared
    assert judge.hidden.shape == judge.in_signals.shape == (n_compared, N_NODES)
    assert [args[0].signals.shape[0] for args in given] == [n_compared] * 3
    assert (given[0][0] is first.task) is judge.has_final_fits
    kept = holed()[judge.chosen]
    assert np.array_equal(np.isnan(given[0][0].signals.as_observed), np.isnan(kept))
    scores = judge.worth @ found.log_densities
    best = found.fits[int(np.argmax(scores))].model
    assert [args[3:] for args in given] == [(None, None), (None, found.fits[0].model), (found.fits[0], best)]
    assert further.log_densities.shape == (np.count_nonzero(judge.hidden), 1)
    assert further.of_signals.log_densities.shape == (np.count_nonzero(judge.in_signals), 1)


def test_every_model_is_learnt_once(monkeypatch):
    """Models are compared without folds, and those that are kept are the very fits that were compared."""
    calls = []
    learnt = missing.learn_incomplete
    monkeypatch.setattr(
        "spectralgp.learning.candidates.learn_incomplete", lambda *args: calls.append(args) or learnt(*args)
    )
    model = GraphGPRegressor(GRAPH).fit(INPUTS, holed())
    assert len(calls) == len(model.learnt_.tried) + 1  # by which a residual is chosen
    assert len(model.fits_) <= 2 * MOST_FILLING
    assert all("expectation-maximisation" in fit.method for fit in model.fits_)


def test_steps_do_not_go_to_and_fro_between_few_draws_and_many():
    """A linear term and smooth signals, half of them missing: it went on for a hundred steps, 700 nats below."""
    rng = np.random.default_rng(0)
    n_signals, n_nodes = 90, 40
    graph, inputs = Graph(oracle.random_weights(n_nodes, 0, 0.1)), np.arange(float(n_signals))[:, None]
    eigenvalues, vectors = np.linalg.eigh(oracle.laplacian(graph.weights.toarray()))
    root = np.linalg.cholesky(oracle.rbf(inputs, inputs, 3.0) + 1e-9 * np.eye(n_signals))
    signals = root @ rng.standard_normal((n_signals, n_nodes)) @ (vectors / (1 + 3 * eigenvalues)).T
    signals = signals + 2 * rng.standard_normal(n_nodes)
    signals += 0.05 * rng.standard_normal(signals.shape)
    signals[rng.random(signals.shape) < 0.5] = np.nan
    task = Task(graph, StandardisedKernel.of(inputs, ("linear",)), inputs, read_signals(signals, "global", "node"))
    (fit,) = learn_all([task], [WithResidual.of(Polynomial(2), Polynomial(2))], Sqp().coarse())
    assert fit.converged
    assert fit.log_likelihood > 2_300
