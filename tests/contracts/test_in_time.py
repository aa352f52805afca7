"""A regressor whose kernel is a sum of Matern terms of one column: by filters and by modes, the same to rounding."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from oracle import relative_error as error
from spectralgp import Diffusion, Graph, GraphGPRegressor, condition, condition_shrunk, graph_gp, leave_one_out
from spectralgp.learning import Task, learn
from spectralgp.learning.objective import Objective
from spectralgp.model.fields import InputCovariance, node_covariances, processes, standard_deviation
from spectralgp.model.fields import posterior as posterior_module
from spectralgp.model.fields.processes import TimeCovariance
from spectralgp.model.kernels import Polynomial, as_input_kernel, matern_terms, with_residual

SAME = 1e-9  # of the issue
N_NODES = 7
KERNELS = {
    "1/2": Matern(3.0, nu=0.5),
    "3/2": ConstantKernel(0.7) * Matern(3.0, nu=1.5),
    "5/2": Matern(2.0, nu=2.5) * ConstantKernel(1.5),
    "sum": ConstantKernel(0.5) * Matern(1.0, nu=0.5) + ConstantKernel(2.0) * Matern(6.0, nu=2.5),
}


@pytest.fixture(scope="module")
def graph():
    return Graph.from_edges([(node, (node + 1) % N_NODES) for node in range(N_NODES)] + [(0, 3), (2, 5)])


@pytest.fixture
def by_modes(monkeypatch):
    """A switch: from its call on, nothing is filtered."""
    return lambda: monkeypatch.setattr(processes, "FEWEST_IN_TIME", 10**9)


def signals(n_signals=230, seed=0, spacing="uneven"):
    random = np.random.default_rng(seed)
    times = random.permutation(np.arange(n_signals) / 2.0) if spacing == "even" else random.uniform(0, 60, n_signals)
    times[3] = times[4]  # two signals at one time
    values = np.sin(times[:, None] / np.arange(2, 2 + N_NODES)) + 0.3 * random.standard_normal((n_signals, N_NODES))
    return times[:, None], values


@pytest.mark.parametrize("spacing", ["even", "uneven"])
@pytest.mark.parametrize("name", KERNELS)
def test_all_answers_are_those_of_the_modes(graph, name, spacing, by_modes):
    inputs, values = signals(spacing=spacing)
    new = np.array([[-1.0], [0.0], inputs[4], [3.3], [59.9], [70.0], [17.0]])
    prior = graph_gp(graph, with_residual(Diffusion(2.0), Diffusion(0.5)), KERNELS[name], 0.1)

    def answers():
        posterior = condition(prior, inputs, values)
        field, left = posterior.at(new), leave_one_out(posterior)
        assert isinstance(posterior.covariance.rows, (TimeCovariance, InputCovariance))
        groups = [leave_one_out(posterior, by=by) for by in ("entry", "node")]
        parts = [part for one in (left, *groups) for part in (one.mean, one.std, one.log_density)]
        joint = node_covariances(field, 1), field.joint_covariance()
        given = field.given(np.where(np.arange(N_NODES) % 3 > 0, values[: len(new)], np.nan))
        densities = given.value_log_densities(values[:7], np.arange(7))
        joint += given.values, standard_deviation(given), given.joint_covariance(), densities
        whole = np.array([posterior.log_evidence(), field.log_density(values[: len(new)])])
        return type(posterior.covariance.rows), (whole, field.mean, standard_deviation(field), *parts, *joint)

    kind, filtered = answers()
    by_modes()
    other, expected = answers()
    assert (kind, other) == (TimeCovariance, InputCovariance)
    for one, truth in zip(filtered, expected, strict=True):
        assert error(one, truth) < SAME


def test_missing_values_are_filled_in_as_by_modes(graph, by_modes):
    inputs, values = signals()
    values[np.random.default_rng(1).random(values.shape) < 0.1] = np.nan
    prior = graph_gp(graph, Diffusion(2.0), KERNELS["3/2"], 0.1)
    found = condition(prior, inputs, values)
    by_modes()
    expected = condition(prior, inputs, values)
    assert error(found.signals.values, expected.signals.values) < SAME
    assert error(standard_deviation(found.at(inputs[:5])), standard_deviation(expected.at(inputs[:5]))) < 1e-7
    assert found.log_evidence() == pytest.approx(expected.log_evidence(), rel=SAME)
    for by in ("signal", "node", "entry"):
        left, truth = leave_one_out(found, by), leave_one_out(expected, by)
        for name in ("mean", "std", "log_density"):
            assert error(*(np.nan_to_num(getattr(one, name)) for one in (left, truth))) < 1e-7


@pytest.mark.parametrize("name", KERNELS)
def test_slopes_are_those_of_the_modes(graph, name, by_modes):
    inputs, values = signals(spacing="even")
    task = Task.of(graph, KERNELS[name], inputs, values)
    spectrum = task.spectrum_of(Polynomial(2))
    kernel = with_residual(Polynomial(2), Polynomial(1)).bind(spectrum)
    filtered = Objective(task, kernel, spectrum)
    x = filtered.starting_points()[0] + 0.1 * np.random.default_rng(2).standard_normal(len(filtered.bounds))
    assert filtered.is_in_time
    value, gradient = filtered.evaluate(x)
    precision = filtered.precision(x)
    by_modes()
    modal = Objective(task, kernel, spectrum)
    assert not modal.is_in_time
    truth, slope = modal.evaluate(x)
    assert value == pytest.approx(truth, rel=SAME)
    assert error(gradient, slope) < 1e-7
    expected = modal.precision(x)
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert np.max(np.abs(precision - expected) / scale) < 0.15  # Whittle's is near Fisher's


def test_what_is_learnt_is_what_is_learnt_by_modes(graph, by_modes):
    inputs, values = signals(spacing="even")
    task = Task.of(graph, ConstantKernel(1.0, "fixed") * Matern(3.0, nu=1.5), inputs, values - values.mean(axis=0))
    found = learn(task, Polynomial(2))
    assert found.converged
    by_modes()
    expected = learn(task, Polynomial(2))
    assert found.log_posterior == pytest.approx(expected.log_posterior, abs=1e-3)


def test_a_regressor_takes_it_silently(graph, by_modes):
    inputs, values = signals()
    settings = {"residual": None, "carry": None, "center": "node", "scale": "global"}
    model = GraphGPRegressor(graph, Polynomial(1), KERNELS["1/2"], **settings).fit(inputs, values)
    mean, std = model.predict(inputs[:4] + 0.3, return_std=True)
    assert np.all(np.isfinite(model.sample_y(inputs[:2] + 0.3, 3, random_state=0)))
    by_modes()
    other = GraphGPRegressor(graph, Polynomial(1), KERNELS["1/2"], **settings).fit(inputs, values)
    expected, spread = other.predict(inputs[:4] + 0.3, return_std=True)
    assert model.log_marginal_likelihood_ == pytest.approx(other.log_marginal_likelihood_, abs=1e-3)
    assert error(mean, expected) < 1e-3  # two searches that end within a tolerance
    assert error(std, spread) < 1e-3


@pytest.mark.parametrize(
    ("kernel", "n_columns", "n_terms"),
    [
        (KERNELS["sum"], 1, 2),
        (KERNELS["sum"], 2, 0),
        (RBF(), 1, 0),
        (Matern(nu=1.0), 1, 0),
        (Matern([1.0], nu=1.5), 1, 0),
        (Matern(nu=1.5) * Matern(nu=0.5), 1, 0),
        (Matern(nu=1.5) + RBF(), 1, 0),
        (ConstantKernel(2.0) * (Matern(nu=1.5) + Matern(nu=0.5)), 1, 2),
    ],
)
def test_only_sums_of_matern_terms_of_one_column_are_filtered(kernel, n_columns, n_terms):
    assert len(matern_terms(as_input_kernel(kernel), np.zeros((300, n_columns)))) == n_terms


def test_roots_are_those_of_the_covariance_where_signals_have_nothing_for_themselves():
    times, terms = signals(40)[0], matern_terms(as_input_kernel(KERNELS["sum"]), signals(40)[0])
    rows, power = processes.rows_in_time(times[:, 0], terms), np.array([0.7, 0.0, 2.0])
    units = np.eye(40)[:, :, None] * np.ones(3)
    roots = rows.unload(rows.apply(rows.load(units), power, np.zeros(3), 0.5))
    for mode, one in enumerate(power):
        found = roots[:, :, mode].T @ roots[:, :, mode]
        assert np.max(np.abs(found - one * KERNELS["sum"](times))) < 1e-8


def test_filters_take_over_where_signals_are_too_many_for_modes(graph):
    inputs, _ = signals()
    prior = graph_gp(graph, Diffusion(2.0), KERNELS["1/2"], 0.1)
    assert isinstance(prior.rows(inputs), TimeCovariance)
    assert isinstance(prior.rows(inputs, most_by_modes=len(inputs)), InputCovariance)
    assert isinstance(prior.rows(inputs, most_by_modes=len(inputs) - 1), TimeCovariance)
    assert isinstance(prior.rows(inputs, amplitude=2.0), InputCovariance)
    assert isinstance(prior.rows(inputs, np.full(len(inputs), 2.0)), InputCovariance)
    assert isinstance(prior.latent_covariance(inputs).rows, InputCovariance)
    assert isinstance(prior.rows(inputs[:200]), TimeCovariance)
    assert isinstance(prior.rows(inputs[:199]), InputCovariance)  # too few for filters to be cheaper


def test_shrunk_covariances_are_learnt_by_modes_until_signals_are_too_many(graph, monkeypatch):
    inputs, values = signals()
    prior = graph_gp(graph, Diffusion(2.0), KERNELS["1/2"], 0.1)
    for most, kind in ((len(inputs), InputCovariance), (len(inputs) - 1, TimeCovariance)):
        monkeypatch.setattr(posterior_module, "MOST_SHRUNK_BY_MODES", most)
        shrunk = condition_shrunk(prior, inputs, values)
        assert isinstance(shrunk.covariance.rows, kind)
        assert isinstance(shrunk.prior.rows(inputs), kind)  # so that a model that was loaded predicts the same
