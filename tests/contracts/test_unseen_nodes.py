"""Nodes that training signals never showed: their levels are not known, and every answer says so."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, multivariate_t
from sklearn.gaussian_process.kernels import RBF

import oracle
from spectralgp import Chebyshev, Diffusion, Exact, Graph, GraphGPRegressor, Polynomial
from spectralgp.model.fields import condition, condition_shrunk, graph_gp, node_covariances, standard_deviation
from spectralgp.model.signals import read_signals
from tolerances import EXACT, FORMULA, MASKED, QUADRATURE

pytestmark = pytest.mark.usefixtures("learnt_values")  # compared with dense formulas

N_SIGNALS, N_NODES, NOISE = 7, 8, 0.3
RNG = np.random.default_rng(4)
GRAPH = Graph.from_points(RNG.random((N_NODES, 2)), n_neighbors=3)
X = RNG.random((N_SIGNALS, 1))
Y = 4 + 3 * GRAPH.coordinates[:, 0] + RNG.standard_normal((N_SIGNALS, N_NODES)) * (1 + GRAPH.coordinates[:, 1])
Y[:, [1, 5]] = np.nan
Y[0, 2] = Y[4, 6] = np.nan
X_NEW = RNG.random((3, 1))
Y_NEW = 5 + RNG.standard_normal((3, N_NODES))
PART = np.where(RNG.random(Y_NEW.shape) < 0.6, Y_NEW, np.nan)
PART[:, [1, 5]] = [[5.0, np.nan], [6.5, np.nan], [np.nan, np.nan]]
DRAWN, PROBED = 0.15, 0.03  # what 64 draws leave of variances, and 32 probes of log densities; seeds are fixed
settings = pytest.mark.parametrize(
    "spectrum", [Exact(), Chebyshev(n_moments=65, n_probes="exact")], ids=["exact", "series"]
)


def posterior_of(spectrum=Exact(), y=Y, graph=GRAPH):
    prior = graph_gp(graph, Diffusion(strength=2.0), RBF(0.5), NOISE, spectrum=spectrum)
    return condition(prior, X, read_signals(y, "node", "node", graph=graph))


class Dense:
    """All signals, those of training and then new ones, as one normal vector in the units of the signals."""

    def __init__(self, units, y=Y):
        inputs = np.vstack([X, X_NEW])
        prior = graph_gp(GRAPH, Diffusion(strength=2.0), RBF(0.5), NOISE)
        divisor = np.broadcast_to(units.divisor, N_NODES)
        kernel = oracle.rbf(inputs, inputs, 0.5)
        nodes = prior.node_covariance() * np.outer(divisor, divisor)
        ones = np.ones((len(inputs), len(inputs)))
        self.signal = np.kron(kernel, nodes) + np.kron(ones, np.diag(units.offset_variance))
        self.noise = np.kron(np.eye(len(inputs)), np.diag(NOISE * divisor**2))
        self.mean = np.tile(units.offset, len(inputs))
        self.training = y

    def given(self, new, include_noise=False):
        """Mean and covariance of the new signals given training and what is known of them; and what is not known."""
        known = np.concatenate([self.training, new]).ravel()
        seen = np.isfinite(known)
        total = self.signal + self.noise
        gain = np.linalg.solve(total[np.ix_(seen, seen)], self.signal[seen]).T
        mean = self.mean + gain @ (known - self.mean)[seen]
        covariance = self.signal - gain @ self.signal[seen] + (self.noise if include_noise else 0.0)
        start = N_SIGNALS * N_NODES
        return mean[start:], covariance[start:, start:]

    def log_density(self, new, given):
        """Of further values, given what was known."""
        mean, covariance = self.given(given, include_noise=True)
        further = np.isfinite(new.ravel()) & ~np.isfinite(given.ravel())
        chosen = covariance[np.ix_(further, further)]
        return multivariate_normal(mean[further], chosen).logpdf(new.ravel()[further])


def alone(signals, row):
    return np.where(np.arange(len(signals))[:, None] == row, signals, np.nan)


NOTHING = np.full(Y_NEW.shape, np.nan)


@settings
@pytest.mark.parametrize("observed", [NOTHING, PART], ids=["nothing", "part"])
def test_predictions_are_those_of_dense_algebra(spectrum, observed):
    """Equation (23d): levels are common to all signals, and learnt where values are observed at their nodes."""
    posterior = posterior_of(spectrum)
    dense = Dense(posterior.signals.units)
    assert np.count_nonzero(posterior.signals.units.offset_variance) == 2
    field, (mean, covariance) = posterior.at(X_NEW).given(observed), dense.given(observed)
    assert oracle.relative_error(field.mean.ravel(), mean) < (FORMULA if spectrum == Exact() else QUADRATURE)
    tolerance = FORMULA if spectrum == Exact() else DRAWN
    assert oracle.relative_error(field.variance().ravel(), np.diag(covariance)) < tolerance
    noise = np.diag(dense.noise)[-Y_NEW.size :]
    assert oracle.relative_error(field.variance(include_noise=True).ravel(), np.diag(covariance) + noise) < tolerance
    some = np.array([5, 2])
    assert oracle.relative_error(field.variance(nodes=some), field.variance()[:, some]) < tolerance
    seen = np.isfinite(observed)
    expected = np.where(seen, observed, mean.reshape(observed.shape))
    assert oracle.relative_error(field.values, expected) < tolerance
    variances = np.where(seen, 0.0, (np.diag(covariance) + noise).reshape(observed.shape))
    assert oracle.relative_error(field.values_variance(), variances) < tolerance


@pytest.mark.parametrize("observed", [NOTHING, PART], ids=["nothing", "part"])
def test_covariances_are_those_of_dense_algebra(observed):
    posterior = posterior_of()
    field, dense = posterior.at(X_NEW).given(observed), Dense(posterior.signals.units)
    for include_noise in (False, True):
        covariance = dense.given(observed, include_noise)[1]
        joint = field.joint_covariance(include_noise)
        assert oracle.relative_error(joint.reshape(covariance.shape), covariance) < FORMULA
        own = np.stack([joint[number, :, number] for number in range(len(Y_NEW))])
        assert oracle.relative_error(node_covariances(field, include_noise), own) < FORMULA


@settings
@pytest.mark.parametrize("observed", [NOTHING, PART], ids=["nothing", "part"])
def test_densities_are_those_of_dense_algebra(spectrum, observed):
    posterior = posterior_of(spectrum)
    field, dense = posterior.at(X_NEW).given(observed), Dense(posterior.signals.units)
    tolerance = FORMULA if spectrum == Exact() else PROBED
    for new in (Y_NEW, np.where(np.isfinite(PART) | (np.arange(N_NODES) < 4), Y_NEW, np.nan)):
        expected = dense.log_density(new, observed)
        assert oracle.relative_error(field.log_density(new), expected) < tolerance
        singles = [dense.log_density(alone(new, row), observed) for row in range(len(new))]
        assert oracle.relative_error(field.log_density(new, joint=False), np.array(singles)) < tolerance


def test_densities_of_values_are_those_of_their_variances():
    field = posterior_of().at(X_NEW)
    nodes = np.array([1, 2])
    std = standard_deviation(field, include_noise=True)[:, nodes]
    expected = -0.5 * (((Y_NEW - field.mean)[:, nodes] / std) ** 2 + np.log(2 * np.pi * std**2))
    assert oracle.relative_error(field.value_log_densities(Y_NEW[:, nodes], nodes), expected) < FORMULA
    assert oracle.relative_error(field.mean_at(nodes), field.mean[:, nodes]) < FORMULA


def test_conditioning_step_by_step_is_conditioning_at_once():
    posterior = posterior_of()
    first, rest = alone(PART, 0), np.where(np.arange(3)[:, None] == 0, np.nan, PART)
    steps, once = posterior.at(X_NEW).given(first).given(rest), posterior.at(X_NEW).given(PART)
    assert oracle.relative_error(steps.mean, once.mean) < FORMULA
    assert oracle.relative_error(steps.joint_covariance(), once.joint_covariance()) < FORMULA
    total = posterior.at(X_NEW).log_density(first) + posterior.at(X_NEW).given(first).log_density(rest)
    assert oracle.relative_error(total, posterior.at(X_NEW).log_density(PART)) < FORMULA


def test_training_signals_are_filled_in_with_levels_that_are_not_known():
    """What is imputed at a node that was never observed has the variance of its level, the same in all signals."""
    posterior = posterior_of()
    rows = np.arange(N_SIGNALS)
    field, variances = posterior.imputed(rows), posterior.signals.units.offset_variance
    plain = field.entries.variance * posterior.signals.units.divisor**2
    assert oracle.relative_error(field.values_variance(), plain + variances) < FORMULA
    joint = field.joint_covariance()
    assert np.all(joint[0, 1, 5, 1] > 0.9 * variances[1])
    assert not field.values_variance()[np.isfinite(Y)].any()


@pytest.mark.parametrize("observed", [NOTHING, PART], ids=["nothing", "part"])
@pytest.mark.parametrize("is_shrunk", [False, True], ids=["normal", "tails"])
def test_draws_have_the_moments_of_the_law(observed, is_shrunk):
    """One draw of a level serves all signals of a sample."""
    posterior = posterior_of()
    if is_shrunk:
        posterior = condition_shrunk(posterior.prior, X, read_signals(Y, "node", "node", graph=GRAPH))
    field = posterior.at(X_NEW).given(observed)
    mean, found = oracle.law_of(lambda state: field.sample(1, state, include_noise=True))
    assert oracle.relative_error(mean, field.mean.ravel()) < EXACT
    assert oracle.relative_error(found, field.joint_covariance(include_noise=True).reshape(found.shape)) < MASKED


def test_a_signal_with_tails_is_a_t_of_all_its_covariance():
    prior = graph_gp(GRAPH, Diffusion(strength=2.0), RBF(0.5), NOISE)
    posterior = condition_shrunk(prior, X, read_signals(Y, "node", "node", graph=GRAPH))
    field = posterior.at(X_NEW)
    freedom = field.freedom
    shapes = node_covariances(field, include_noise=True) * (freedom - 2) / freedom
    expected = [
        multivariate_t(mean, shape, freedom).logpdf(signal)
        for mean, shape, signal in zip(field.mean, shapes, Y_NEW, strict=True)
    ]
    assert oracle.relative_error(field.log_density(Y_NEW, joint=False), np.array(expected)) < FORMULA
    given = field.given(PART)
    assert np.all(np.isfinite(given.log_density(Y_NEW, joint=False)))
    assert np.isfinite(given.log_density(Y_NEW))


# ----- the estimator -----


def weather_like(n_signals=24, n_nodes=20, seed=0):
    """Smooth levels, scales and days on points in a plane."""
    rng = np.random.default_rng(seed)
    points = rng.random((n_nodes, 2))
    graph = Graph.from_points(points, n_neighbors=4)
    prior = graph_gp(graph, Diffusion(strength=6.0), RBF(0.2), 0.05)
    inputs = np.linspace(0, 1, n_signals)[:, None]
    days = prior.sample(inputs, 1, rng, include_noise=True)[0]
    scales = np.exp(points[:, 1] - 0.5)
    return graph, inputs, 10 + 4 * points[:, 0] - 3 * points[:, 1] + scales * days


def test_levels_of_unseen_nodes_are_near_theirs():
    """Nearer than the mean of all nodes, with errors of the size that is said."""
    graph, inputs, truth = weather_like()
    holed = truth.copy()
    unseen = np.array([2, 9, 15])
    holed[:, unseen] = np.nan
    model = GraphGPRegressor(graph, Polynomial(2)).fit(inputs, holed)
    values, std = model.impute(inputs, holed)
    errors = (values - truth)[:, unseen]
    apart = np.nanmean(holed) - truth[:, unseen]
    assert np.sqrt(np.mean(errors**2)) < 0.6 * np.sqrt(np.mean(apart**2))
    assert 0.2 < np.mean((errors / std[:, unseen]) ** 2) < 3
    assert np.all(std[:, unseen] > np.sqrt(model.posterior_.signals.units.offset_variance[unseen]))


def test_more_signals_make_levels_known():
    """Weighed with what was likely before, and known from then on; other nodes stay as they are."""
    graph, inputs, truth = weather_like()
    holed = truth.copy()
    holed[:, [2, 9]] = np.nan
    model = GraphGPRegressor(graph, Polynomial(2)).fit(inputs[:20], holed[:20])
    further = truth[20:].copy()
    further[:, 9] = np.nan
    before = model.posterior_.signals.units
    later = model.condition_on(inputs[20:], further)
    after = later.posterior_.signals.units
    weight = before.offset_variance[2] / (before.offset_variance[2] + before.divisor[2] ** 2 / 4)
    expected = before.offset[2] + weight * (further[:, 2].mean() - before.offset[2])
    assert later.center_[2] == after.offset[2] == pytest.approx(expected)
    np.testing.assert_array_equal(after.offset_variance > 0, np.arange(20) == 9)
    others = np.arange(20) != 2
    np.testing.assert_array_equal(after.offset[others], before.offset[others])


@pytest.mark.parametrize("center", ["global", None])
def test_a_centre_of_the_users_own_is_kept(center):
    graph, inputs, truth = weather_like()
    truth[:, 3] = np.nan
    model = GraphGPRegressor(graph, Polynomial(2), center=center).fit(inputs, truth)
    assert model.posterior_.signals.units.offset_variance is None
    assert np.ndim(model.posterior_.signals.units.offset) == 0


LONELY = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0)], n_nodes=5)
EDGES = {
    "two nodes": (Graph.from_edges([(0, 1)]), [1]),
    "no graph": (None, [2]),
    "isolated": (LONELY, [4]),
    "nearly all": (LONELY, [0, 1, 2, 4]),
    "by quadrature": (LONELY, [1]),
}


@pytest.mark.filterwarnings("ignore:the noise is at its lower bound")  # of a single value
@pytest.mark.parametrize(
    ("name", "n_signals"),
    [*((name, number) for name in EDGES if name != "by quadrature" for number in (1, 2, 5)), ("by quadrature", 5)],
)
def test_any_node_may_be_unseen(name, n_signals):
    """With finite answers."""
    graph, unseen = EDGES[name]
    rng = np.random.default_rng(n_signals)
    inputs = rng.random((n_signals, 1))
    signals = 3 + rng.standard_normal((n_signals, 5 if graph is None else graph.n_nodes))
    signals[:, unseen] = np.nan
    spectrum = "chebyshev" if name == "by quadrature" else "auto"
    kernel = None if graph is None else Polynomial(1)
    model = GraphGPRegressor(graph, kernel, spectrum=spectrum).fit(inputs, signals)
    values, std = model.impute(inputs, signals)
    assert np.all(np.isfinite(values))
    assert np.all(std[:, unseen] > 0)
    mean, std = model.predict(inputs + 0.1, return_std=True)
    assert np.all(np.isfinite(mean) & np.isfinite(std))
    full = np.where(np.isfinite(signals), signals, 3.0)
    assert np.isfinite(model.log_predictive_density(inputs + 0.1, full))


def test_constant_signals_with_unseen_nodes_are_filled_in():
    signals = np.full((6, 5), 2.5)
    signals[:, 1] = np.nan
    with pytest.warns(UserWarning, match="the noise is at its lower bound"):
        model = GraphGPRegressor(LONELY, Polynomial(1), RBF()).fit(np.arange(6.0)[:, None], signals)
    np.testing.assert_allclose(model.impute(np.arange(6.0)[:, None], signals)[0], 2.5, atol=1e-6)


def test_the_default_tries_a_third_laplacian():
    graph, inputs, truth = weather_like(12, 10)
    truth[:, 3] = np.nan
    model = GraphGPRegressor(graph, random_state=0).fit(inputs, truth)
    assert sum("balanced" in one.name for one in model.learnt_.tried) >= 1
