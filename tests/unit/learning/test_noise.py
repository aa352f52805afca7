"""Whatever is constant over frequencies is noise: what a residual and the noise share goes to the noise."""

import warnings

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from spectralgp import (
    Chebyshev,
    Diffusion,
    Exact,
    Graph,
    GraphGPRegressor,
    Identity,
    Polynomial,
    SpectralKernel,
    condition,
    decompose,
    graph_gp,
    learn,
    load,
)
from spectralgp.datasets import sensor_graph
from spectralgp.learning import Task
from spectralgp.learning.missing import objective_of
from spectralgp.learning.objective import NOISE_FLOOR, told_apart
from spectralgp.model.fields import log_marginal_likelihood, standard_deviation
from spectralgp.model.fields.factors import SERIES_OF_DRAWS
from spectralgp.model.kernels import WithResidual

NOISE = 0.3
SMOOTH = Diffusion(40.0, laplacian="combinatorial", scaled=True)


def drawn(
    seed: int, n_nodes: int = 300, n_signals: int = 60, truth: SpectralKernel = SMOOTH
) -> tuple[Graph, np.ndarray, np.ndarray]:
    """Smooth signals of variance one that inputs explain, with white noise."""
    rng = np.random.default_rng(seed)
    graph, inputs = sensor_graph(n_nodes, rng), rng.standard_normal((n_signals, 2))
    spectrum = decompose(graph, "combinatorial", scaled=True)
    values, vectors = np.linalg.eigh(RBF(1.0)(inputs))
    white = (vectors * np.sqrt(np.maximum(values, 0.0))) @ rng.standard_normal((n_signals, n_nodes))
    clean = white * truth.response(spectrum.eigenvalues) @ spectrum.eigenvectors.T
    return graph, inputs, clean / clean.std() + np.sqrt(NOISE) * rng.standard_normal(clean.shape)


@pytest.fixture(scope="module")
def task() -> Task:
    graph, inputs, signals = drawn(0, 60, 40)
    return Task.of(graph, RBF(1.0), inputs, signals)


RESIDUAL = WithResidual.of(Polynomial(2), Polynomial(2))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_default_finds_the_noise_within_five_per_cent(seed: int) -> None:
    graph, inputs, signals = drawn(seed)
    model = GraphGPRegressor(graph).fit(inputs, signals)
    assert any(fit.model.graph_kernel.residual is not None for fit in model.fits_)
    assert model.noise_variance_ == pytest.approx(NOISE, rel=0.05)


def test_noise_is_found_on_a_quadrature_and_draws_take_few_passes() -> None:
    graph, inputs, signals = drawn(0, 1_000, 80, Polynomial.from_coefficients([1.0, -2.0, 1.0]))
    model = GraphGPRegressor(graph, Polynomial(2), spectrum=Chebyshev(n_probes="exact")).fit(inputs, signals)
    prior = model.posterior_.prior
    assert prior.graph_kernel.floor > 0
    assert model.noise_variance_ == pytest.approx(NOISE, rel=0.05)
    assert prior.spectrum._series(prior.nodes.residual_bank(1).matrices, SERIES_OF_DRAWS).shape[-1] <= 256
    assert np.all(np.isfinite(model.sample_y(inputs[:2], 1, random_state=0)))


def test_the_covariance_of_signals_does_not_change(task: Task) -> None:
    fit = learn(task, RESIDUAL)
    model, floor = fit.model, fit.model.graph_kernel.floor
    assert floor > 0
    raw = graph_gp(
        task.graph, model.graph_kernel.with_theta(model.graph_kernel.theta), RBF(1.0), model.noise_variance - floor
    )
    rows, (power, own) = model.rows(task.inputs), model.covariance(model.rows(task.inputs)).powers
    expected = raw.covariance(rows).powers
    np.testing.assert_allclose(rows.variances(power, own), rows.variances(*expected), rtol=1e-12)
    assert log_marginal_likelihood(model, task.inputs, task.signals) == pytest.approx(fit.log_likelihood)
    residual = model.graph_kernel.residual_power(model.spectrum.eigenvalues)
    assert 0 <= residual.min() <= 0.02 * floor


def test_a_model_maps_back_to_where_it_was_learnt(task: Task) -> None:
    fit = learn(task, RESIDUAL)
    objective = objective_of(task, fit.model)
    assert objective.evaluate(objective.point(fit.model))[0] == pytest.approx(fit.log_posterior, rel=1e-12)
    again = told_apart(task, objective.model(objective.point(fit.model)))
    assert again.noise_variance == pytest.approx(fit.model.noise_variance, rel=1e-12)
    scaled = fit.model.scaled_by(3.0)
    assert scaled.graph_kernel.floor == pytest.approx(9 * fit.model.graph_kernel.floor)


def test_a_given_noise_is_kept_and_so_is_a_given_residual(task: Task) -> None:
    given = learn(Task.of(task.graph, RBF(1.0), task.inputs, task.signals, noise_variance=0.01), RESIDUAL).model
    assert (given.noise_variance, given.graph_kernel.floor) == (0.01, 0.0)
    fixed = WithResidual.of(Polynomial(2), Polynomial.from_coefficients([0.2], fixed=True))
    assert learn(task, fixed).model.graph_kernel.floor == 0.0
    assert learn(task, Polynomial(2)).model.graph_kernel.floor == 0.0


def test_all_of_a_white_residual_is_noise(task: Task) -> None:
    model = learn(task, WithResidual.of(Polynomial(2), Identity())).model
    assert model.noise_variance == pytest.approx(learn(task, Polynomial(2)).model.noise_variance, rel=0.02)
    np.testing.assert_allclose(model.residual_response(model.spectrum.eigenvalues) ** 2, 0, atol=0.01)


def test_predictions_with_noise_are_the_same_and_those_without_have_less(task: Task) -> None:
    model = learn(task, RESIDUAL).model
    raw = objective_of(task, model).model(objective_of(task, model).point(model))
    new, old = (condition(one, task.inputs, task.signals).at(task.inputs[:3]) for one in (model, raw))
    np.testing.assert_allclose(new.mean, old.mean, atol=1e-10)
    np.testing.assert_allclose(
        standard_deviation(new, include_noise=True), standard_deviation(old, include_noise=True), rtol=1e-10
    )
    floor = model.graph_kernel.floor
    np.testing.assert_allclose(standard_deviation(old) ** 2 - standard_deviation(new) ** 2, floor, rtol=1e-8)


def test_files_words_and_other_graphs_keep_what_is_noise(tmp_path) -> None:
    graph, inputs, signals = drawn(2, 50, 40)
    kernel = Polynomial(2, constraint="interval")
    model = GraphGPRegressor(graph, kernel, carry=None, scale="global").fit(inputs, signals)
    prior = model.posterior_.prior
    assert prior.graph_kernel.floor > 0
    model.save(tmp_path / "model.sgp")
    again = load(tmp_path / "model.sgp")
    assert again.posterior_.prior.graph_kernel == prior.graph_kernel
    assert again.noise_variance_ == model.noise_variance_
    assert f"noise:    standard deviation {np.sqrt(model.noise_variance_):.3g}" in model.summary()
    shown = model.response(which="residual")
    units = model.scale_[0] ** 2
    assert np.min(shown) ** 2 <= 0.02 * prior.graph_kernel.floor * units
    moved = model.transfer(sensor_graph(40, np.random.default_rng(5)))
    other = moved.posterior_.prior
    assert other.graph_kernel.residual_power(other.spectrum.eigenvalues).min() >= 0
    total = prior.noise_variance - prior.graph_kernel.floor
    assert other.noise_variance - other.graph_kernel.floor == pytest.approx(total)


def test_no_word_of_a_lower_bound_where_the_residual_held_the_noise(task: Task) -> None:
    signals = np.random.default_rng(0).standard_normal((40, 60))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = GraphGPRegressor(task.graph, Polynomial(1), residual=Identity(amplitude_bounds=(0.9, 1.1))).fit(
            task.inputs, signals
        )
    assert model.noise_variance_ > 0.8


def test_draws_on_a_quadrature_have_the_covariance_of_the_residual() -> None:
    graph = Graph.from_edges([(i, (i + 1) % 30) for i in range(30)])
    kernel = WithResidual.of(Polynomial.from_coefficients([1e-6]), Polynomial.from_coefficients([0.5, 1.0]))
    models = [
        told_apart(
            Task.of(graph, RBF(1.0), np.zeros((1, 1)), np.ones((1, 30))),
            graph_gp(graph, kernel, RBF(), 0.1, spectrum=one),
        )
        for one in (Exact(), Chebyshev())
    ]
    power = models[0].graph_kernel.residual_power(models[0].spectrum.eigenvalues)
    exact = models[0].spectrum.eigenvectors * power @ models[0].spectrum.eigenvectors.T
    spectrum = models[1].spectrum
    columns = spectrum.filtered(spectrum.load(np.eye(30)), models[1].nodes.residual_bank(30))
    root = spectrum.unload(columns)
    np.testing.assert_allclose(root @ root.T, exact, atol=1e-3)


def test_noise_free_signals_still_reach_the_floor() -> None:
    """A quarter of a signal of noise, which below a tenth has to be outweighed, is little beside thirty without any."""
    rng, graph = np.random.default_rng(0), Graph.from_edges([(node, (node + 1) % 30) for node in range(30)])
    inputs, truth = rng.uniform(0, 10, (30, 1)), Polynomial.from_coefficients([1.0, -0.3, 0.05])
    spectrum = decompose(graph)
    white = np.linalg.cholesky(RBF(0.5)(inputs) + 1e-10 * np.eye(30)) @ rng.standard_normal((30, 30))
    signals = white * truth.response(spectrum.eigenvalues) @ spectrum.eigenvectors.T
    task = Task.of(graph, RBF(1.0), inputs, signals)
    assert learn(task, Polynomial(5)).model.noise_variance < 1.01 * NOISE_FLOOR["weak"] * task.variance
