"""Noise is what a residual that vanishes at one end of the spectrum leaves there, and evidence chooses its shape."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import oracle
from spectralgp import (
    Chebyshev,
    Diffusion,
    Exact,
    Graph,
    GraphGPRegressor,
    Identity,
    PinnedFilter,
    Polynomial,
    SpectralKernel,
    decompose,
    graph_gp,
    learn,
    load,
)
from spectralgp.datasets import sensor_graph
from spectralgp.learning import Task
from spectralgp.learning.candidates import Setting, Variant, chosen_residual
from spectralgp.learning.objective import NOISE_FLOOR, Objective
from spectralgp.model.fields.factors import SERIES_OF_DRAWS
from spectralgp.model.kernels import WithResidual, with_residual
from tolerances import FORMULA, GRADIENT

NOISE = 0.3
SMOOTH = Diffusion(40.0, laplacian="combinatorial", scaled=True)
LINE = PinnedFilter(shape="line", amplitude=0.7)
SHAPES = [PinnedFilter(1.0, shape, end) for shape in ("line", "exponential", "parabola") for end in ("high", "low")]


def drawn(
    seed: int,
    n_nodes: int = 300,
    n_signals: int = 60,
    truth: SpectralKernel = SMOOTH,
    residual: SpectralKernel | None = None,
) -> tuple[Graph, np.ndarray, np.ndarray]:
    """Smooth signals of variance one that inputs explain, with a residual and white noise."""
    rng = np.random.default_rng(seed)
    graph, inputs = sensor_graph(n_nodes, rng), rng.standard_normal((n_signals, 2))
    spectrum = decompose(graph, "combinatorial", scaled=True)
    values, vectors = np.linalg.eigh(RBF(1.0)(inputs))
    white = (vectors * np.sqrt(np.maximum(values, 0.0))) @ rng.standard_normal((n_signals, n_nodes))
    clean = white * truth.response(spectrum.eigenvalues) @ spectrum.eigenvectors.T
    clean = clean / clean.std() + np.sqrt(NOISE) * rng.standard_normal(clean.shape)
    if residual is None:
        return graph, inputs, clean
    own = rng.standard_normal(clean.shape) * residual.response(spectrum.eigenvalues)
    return graph, inputs, clean + own @ spectrum.eigenvectors.T


def task_of(residual: SpectralKernel | None, noise_variance: float | None = None) -> Task:
    graph, inputs, signals = drawn(0, 90, 40, residual=residual)
    return Task.of(graph, RBF(1.0), inputs, signals, noise_variance)


@pytest.fixture(scope="module")
def task() -> Task:
    return task_of(LINE)


@pytest.mark.parametrize("residual", SHAPES, ids=lambda one: f"{one.shape}, {one.vanishes_at}")
def test_the_likelihood_with_a_pinned_residual_is_the_dense_one(residual) -> None:
    """Equations (11b), (12) and (13), against dense matrices and differences of their likelihood."""
    graph, inputs, signals = drawn(1, 7, 5, residual=LINE)
    task = Task.of(graph, RBF(1.0), inputs, signals, prior=None)
    spectrum = decompose(graph, "combinatorial", scaled=True)
    kernel = with_residual(Polynomial.from_coefficients([1.0, -0.6]), replace(residual, amplitude=0.8)).bind(spectrum)
    objective = Objective(task, kernel, spectrum)
    x = objective.join(kernel.theta, np.log([1.3]), 0.2)

    def dense(x: np.ndarray) -> float:
        own, (length,), noise = objective.split(x)
        vectors, (signal, rest) = spectrum.eigenvectors, (part.power(spectrum.eigenvalues) for part in own.kernels)
        rows = RBF(np.exp(length))(inputs)
        matrix = oracle.covariance(rows, (vectors * signal) @ vectors.T, noise)
        matrix = matrix + np.kron(np.eye(len(rows)), (vectors * rest) @ vectors.T)
        return oracle.log_density(signals.ravel(), 0.0, matrix)

    value, gradient = objective.evaluate(x)
    assert value == pytest.approx(dense(x), rel=FORMULA)
    assert oracle.relative_error(gradient, oracle.jacobian(dense, x)) < GRADIENT


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_default_finds_the_noise_within_five_per_cent(seed: int) -> None:
    graph, inputs, signals = drawn(seed)
    assert GraphGPRegressor(graph).fit(inputs, signals).noise_variance_ == pytest.approx(NOISE, rel=0.05)


def test_a_known_noise_is_found_within_its_standard_error(task: Task) -> None:
    """That of equation (19), in the logarithm, which for a polynomial residual is far larger."""
    errors = {}
    for name, residual in (("line", PinnedFilter(shape="line")), ("polynomial", Polynomial(2))):
        fit = learn(task, with_residual(Polynomial(3), residual))
        objective = Objective(task, fit.model.graph_kernel, fit.model.spectrum)
        errors[name] = np.sqrt(np.linalg.inv(objective.precision(objective.point(fit.model)))[-1, -1])
        if name == "line":
            assert abs(np.log(fit.model.noise_variance / NOISE)) < 2.5 * errors[name] < 0.25
    assert errors["polynomial"] > 2 * errors["line"]


@pytest.mark.parametrize("residual", [None, LINE, PinnedFilter(4.0, amplitude=1.5)])
def test_the_residual_is_that_of_the_largest_evidence(residual) -> None:
    """Equation (11c), against fits of every shape from scratch."""
    task = task_of(residual)
    found = [(learn(task, Polynomial(2)).log_likelihood, None)]
    for shape in SHAPES:
        fit = learn(task, with_residual(Polynomial(2), shape))
        found.append((fit.log_likelihood - 0.5 * shape.theta.size * np.log(task.signals.size), shape))
    best = max(found, key=lambda one: one[0])[1]
    choice = chosen_residual(Setting(task, {"global": task.signals}), Polynomial(2), task)
    assert (choice.kernel is None) == (best is None) == (residual is None)
    if best is not None:
        assert (choice.kernel.shape, choice.kernel.vanishes_at) == (best.shape, best.vanishes_at)
    assert choice.noise_variance == pytest.approx(NOISE, rel=0.15)


def test_a_free_residual_has_at_most_the_noise_beside_the_chosen_one(task: Task) -> None:
    setting = Setting(task, {"global": task.signals}, residual="auto")
    pinned, free = (Variant(setting, Polynomial(2), "global", is_free=one).candidate for one in (False, True))
    choice = setting.chosen[0]
    assert pinned.kernel.residual.shape == choice.kernel.shape
    assert free.kernel.residual == Polynomial(2)
    assert "free residual" in free.name
    assert free.task.noise_variance[1] * task.signals.units.spread**2 == pytest.approx(choice.noise_variance)
    assert learn(free.task, free.kernel).model.noise_variance <= free.task.noise_variance[1] * (1 + 1e-9)
    known = task_of(LINE, 0.1)
    free = Variant(Setting(known, {"global": known.signals}, residual="auto"), Polynomial(2), "global", is_free=True)
    assert free.candidate.task.known_noise == 0.1


def test_a_residual_is_chosen_from_some_signals_and_with_missing_values() -> None:
    graph, inputs, signals = drawn(3, 40, 130, residual=LINE)
    model = GraphGPRegressor(graph, Polynomial(2), carry=None, scale="global").fit(inputs, signals)
    assert model.residual_[0].shape == "line"
    signals[np.random.default_rng(0).random(signals.shape) < 0.2] = np.nan
    model = GraphGPRegressor(graph, Polynomial(2), carry=None, scale="global").fit(inputs[:60], signals[:60])
    assert model.residual_[0].vanishes_at == "high"
    assert model.noise_variance_ == pytest.approx(NOISE, rel=0.15)


def test_the_residual_of_counts_is_the_exponential() -> None:
    graph, inputs, signals = drawn(0, 12, 10)
    counts = np.random.default_rng(0).poisson(np.exp(0.3 * signals + 1)).astype(float)
    model = GraphGPRegressor(graph, likelihood="poisson").fit(inputs, counts)
    assert (model.residual_[0].shape, model.residual_[0].vanishes_at) == ("exponential", "high")


def test_noise_is_found_on_a_quadrature_and_draws_take_few_passes() -> None:
    graph, inputs, signals = drawn(0, 400, 50, Polynomial.from_coefficients([1.0, -2.0, 1.0]), LINE)
    settings = {"carry": None, "center": None, "spectrum": Chebyshev(n_probes="exact", tolerance=1e-4)}
    model = GraphGPRegressor(graph, Polynomial(2), RBF(1.0), **settings).fit(inputs, signals)
    prior = model.posterior_.prior
    assert model.residual_[0].shape == "line"
    assert model.noise_variance_ == pytest.approx(NOISE, rel=0.08)
    assert prior.spectrum._series(prior.nodes.residual_bank(1).matrices, SERIES_OF_DRAWS).shape[-1] <= 256
    assert np.all(np.isfinite(model.sample_y(inputs[:2], 1, random_state=0)))


def test_the_least_of_a_residual_of_the_users_counts_as_noise(task: Task) -> None:
    """All of a white one, beside which the noise is not identified: their sum is the noise without a residual."""
    model = learn(task, WithResidual.of(Polynomial(2), Identity())).model
    total = model.noise_variance + model.graph_kernel.residual.amplitude**2
    assert total == pytest.approx(learn(task, Polynomial(2)).model.noise_variance, rel=0.02)
    signals = task.signals.units.restore(task.signals.values)
    settings = {"center": None, "scale": "global"}
    white, plain = (
        GraphGPRegressor(task.graph, Polynomial(2), RBF(1.0), residual=residual, **settings).fit(task.inputs, signals)
        for residual in (Identity(), None)
    )
    assert white.noise_variance_ == pytest.approx(plain.noise_variance_, rel=0.02)
    assert white.fits_[0].model.noise_variance < 0.9 * white.noise_variance_
    assert f"noise:    standard deviation {np.sqrt(white.noise_variance_):.3g}" in white.summary()


def test_files_words_and_other_graphs_keep_what_is_noise(tmp_path) -> None:
    graph, inputs, signals = drawn(2, 50, 60, residual=LINE)
    kernel = Polynomial(2, constraint="interval")
    model = GraphGPRegressor(graph, kernel, carry=None, scale="global").fit(inputs, signals)
    prior = model.posterior_.prior
    assert isinstance(prior.graph_kernel.residual, PinnedFilter)
    model.save(tmp_path / "model.sgp")
    again = load(tmp_path / "model.sgp")
    assert again.posterior_.prior.graph_kernel == prior.graph_kernel
    assert again.noise_variance_ == model.noise_variance_
    assert f"noise:    standard deviation {np.sqrt(model.noise_variance_):.3g}\n" in model.summary()
    assert np.min(model.response(which="residual")) == 0.0
    moved = model.transfer(sensor_graph(40, np.random.default_rng(5)))
    other = moved.posterior_.prior
    assert other.graph_kernel.residual_power(other.spectrum.eigenvalues)[-1] == 0.0
    assert moved.noise_variance_ == pytest.approx(model.noise_variance_)


def test_draws_on_a_quadrature_have_the_covariance_of_the_residual() -> None:
    graph = Graph.from_edges([(i, (i + 1) % 30) for i in range(30)])
    kernel = WithResidual.of(Polynomial.from_coefficients([1e-6]), PinnedFilter(2.0))
    models = [graph_gp(graph, kernel, RBF(), 0.1, spectrum=one) for one in (Exact(), Chebyshev())]
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
