"""The paper's real data by the protocols of DESIGN.md section 10, against its tables of reference results."""

import numpy as np
import pytest
from protocols import traffic, weather
from recovery import BARS, FILTERS, recovery_error
from settings import PAPER, paper_kernel

import oracle
import spectralgp
from spectralgp import GraphGPRegressor, Sqp
from tolerances import PUBLISHED, PUBLISHED_EVIDENCE

pytestmark = pytest.mark.slow  # a hundred fits to numbers that were published

READERS = {
    "weather 15": (weather, 15),
    "weather 30": (weather, 30),
    "traffic 10": (traffic, 10),
    "traffic 20": (traffic, 20),
}

# (data, degree): log marginal likelihood, test score, its standard error (weather only) of the column "continuation"
CONTINUATION = {
    ("weather 15", 1): (-324.0, -24.82, 3.97),
    ("weather 15", 2): (-209.0, -9.10, 2.55),
    ("weather 15", 3): (-179.4, -5.28, 1.87),
    ("weather 30", 1): (-552.5, -19.75, 3.69),
    ("weather 30", 2): (-273.4, -5.77, 2.33),
    ("weather 30", 3): (-193.7, -3.15, 2.06),
    ("traffic 10", 1): (-746.5, -321.39, None),
    ("traffic 10", 2): (-739.4, -320.99, None),
    ("traffic 10", 3): (-730.4, -322.03, None),
    ("traffic 20", 1): (-1475.9, -320.80, None),
    ("traffic 20", 2): (-1467.1, -320.69, None),
    ("traffic 20", 3): (-1464.3, -320.68, None),
}
BASELINES = {
    "standard": (spectralgp.Identity(), (-35.27, -25.52, -321.31, -320.36)),
    "pseudo-inverse": (spectralgp.PseudoInverse(), (-62.99, -62.60, -320.70, -320.08)),
    "global filter": (spectralgp.GlobalFilter(), (-10.37, -5.95, -321.31, -320.36)),
    "diffusion": (spectralgp.Diffusion(), (-10.69, -5.29, -321.25, -320.29)),
    "regularised Laplacian": (spectralgp.RegularizedLaplacian(), (-10.09, -7.05, -321.26, -320.29)),
    "3-step walk": (spectralgp.RandomWalk(3), (-16.14, -12.55, -321.24, -320.30)),
    "cosine": (spectralgp.Cosine(), (-37.85, -26.81, -321.30, -320.35)),
}
# where the table's optimum is not the best one: ours has the higher evidence, and another score
BETTER_OPTIMA = {("regularised Laplacian", "weather 15"): -9.15, ("regularised Laplacian", "weather 30"): -5.96}
# (data, kernel): log marginal likelihood and test score of the highest of 40 random starts, where that is not ours
HIGHER_MAXIMA = {
    ("traffic 10", spectralgp.Polynomial(2)): (-735.87, -328.85),
    ("traffic 10", spectralgp.Polynomial(3)): (-723.93, -330.00),
    ("traffic 10", spectralgp.Polynomial(3, constraint=None)): (-577.16, -2727.24),
    ("traffic 20", spectralgp.Polynomial(3, constraint=None)): (-1386.48, -564.59),
}


@pytest.fixture(scope="module")
def splits(data_folder):
    return {name: reader(data_folder, n_signals) for name, (reader, n_signals) in READERS.items()}


PLAIN = PAPER | {"prior": None, "center": None, "scale": None}


def plain_fit(split, graph_kernel, **options):
    """Maximum likelihood of the paper's model without further centring or scaling, as the protocols have it."""
    settings = {"input_kernel": paper_kernel(split.inputs), **PLAIN} | options
    model = GraphGPRegressor(split.graph, graph_kernel, **settings)
    return model.fit(split.inputs, split.signals)


def mean_score(split, model):
    return float(np.mean(split.scores(model.log_predictive_density)))


def test_minutes_of_the_traffic_data(splits):
    assert splits["traffic 10"].shift == pytest.approx(-239.41, abs=0.005)
    assert splits["weather 15"].graph.n_edges == 278


@pytest.mark.parametrize(("name", "degree"), CONTINUATION)
def test_degree_continuation_reaches_the_reference(splits, name, degree):
    split = splits[name]
    model = plain_fit(split, spectralgp.Polynomial(degree))
    likelihood, score, error = CONTINUATION[name, degree]
    assert model.fits_[0].converged
    assert model.log_marginal_likelihood_ > likelihood - PUBLISHED_EVIDENCE
    assert model.log_marginal_likelihood_ == pytest.approx(likelihood, abs=PUBLISHED_EVIDENCE)
    assert model.response().min() >= 0
    scores = split.scores(model.log_predictive_density)
    assert np.mean(scores) == pytest.approx(score, abs=PUBLISHED)
    if error is not None:
        assert np.std(scores) / np.sqrt(10) == pytest.approx(error, abs=PUBLISHED)


def test_a_score_by_dense_algebra(splits):
    """The first test set of weather 15, degree 3, without the package's posterior."""
    split = splits["weather 15"]
    model = plain_fit(split, spectralgp.Polynomial(3))
    matrix = oracle.laplacian(split.graph.weights.toarray(), scaled=True)
    dense = oracle.polynomial(matrix, model.graph_kernel_[0].coefficients)
    inputs = np.vstack([split.inputs, split.test_inputs[:6]])
    covariance = oracle.rbf(inputs, inputs, model.input_kernel_[0].length_scale)
    mean, variance = oracle.predict(split.signals, covariance, dense, model.noise_variance_)
    noisy = variance + model.noise_variance_ * np.eye(len(variance))
    expected = oracle.log_density(split.test_signals[:6].ravel(), mean, noisy) / 6
    assert split.scores(model.log_predictive_density)[0] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("baseline", BASELINES)
def test_baselines_reach_the_reference(splits, baseline, name):
    kernel, scores = BASELINES[baseline]
    expected = BETTER_OPTIMA.get((baseline, name), scores[list(READERS).index(name)])
    model = plain_fit(splits[name], kernel)
    assert model.fits_[0].converged
    assert mean_score(splits[name], model) == pytest.approx(expected, abs=PUBLISHED)


@pytest.mark.parametrize(("name", "kernel"), HIGHER_MAXIMA)
def test_restarts_find_the_highest_maxima_that_are_known(splits, name, kernel):
    """The continuation stays near the simpler model; what is higher on so few signals predicts worse."""
    split, (likelihood, score) = splits[name], HIGHER_MAXIMA[name, kernel]
    # with every seed from 0 to 5 they are found; with this one by at least four starts, whatever the rounding
    solver = Sqp(n_restarts=40, random_state=2)
    ours, highest = plain_fit(split, kernel), plain_fit(split, kernel, solver=solver)
    (fit,) = highest.fits_
    assert fit.converged
    assert highest.log_marginal_likelihood_ == pytest.approx(likelihood, abs=0.01)
    assert max(fit.restarts) == pytest.approx(fit.log_likelihood, abs=1e-6)
    assert fit.log_likelihood > ours.log_marginal_likelihood_ + 1
    assert mean_score(split, highest) == pytest.approx(score, abs=PUBLISHED)
    assert mean_score(split, ours) > score + 5
    if kernel.constraint is not None:
        assert highest.response().min() >= 0
    matrix = oracle.laplacian(split.graph.weights.toarray(), scaled=True)
    dense = oracle.polynomial(matrix, highest.graph_kernel_[0].coefficients)
    covariance = oracle.rbf(split.inputs, split.inputs, highest.input_kernel_[0].length_scale)
    expected = oracle.log_likelihood(split.signals, covariance, dense, highest.noise_variance_)
    assert fit.log_likelihood == pytest.approx(expected, abs=1e-5)


# Few signals: the paper's model with the weak prior (the 40 splits are in benchmarks/bench_few_signals.py)


def weak_score(split, kernel):
    model = GraphGPRegressor(split.graph, kernel, paper_kernel(split.inputs), **PAPER).fit(split.inputs, split.signals)
    return mean_score(split, model)


@pytest.mark.parametrize(("name", "bar"), [("traffic 10", -323.0), ("weather 15", -5.4), ("weather 30", -3.2)])
def test_auto_with_few_signals(splits, name, bar):
    assert weak_score(splits[name], spectralgp.Polynomial("auto")) >= bar


@pytest.mark.parametrize("degree", [5, 8])
def test_high_degrees_with_few_signals(splits, degree):
    assert weak_score(splits["traffic 10"], spectralgp.Polynomial(degree)) >= -323.0


def test_few_signals_on_a_few_other_splits(data_folder):
    others = [traffic(data_folder, 10, seed) for seed in range(2, 6)]
    both = spectralgp.Polynomial("auto"), spectralgp.Identity()
    auto, standard = ([weak_score(split, kernel) for split in others] for kernel in both)
    assert np.mean(auto) >= -322
    assert np.min(auto) >= np.min(standard) - 2
    for degree in (5, 8):
        assert np.mean([weak_score(split, spectralgp.Polynomial(degree)) for split in others]) >= -329


@pytest.mark.parametrize("degree", [5, 8])
def test_the_worst_split_of_ten_signals(data_folder, degree):
    """Less noise than a tenth has to outweigh a quarter of a signal: without that the scores were -591 and -807."""
    assert weak_score(traffic(data_folder, 10, 21), spectralgp.Polynomial(degree)) >= -410


@pytest.mark.parametrize("give_noise", [True, False])
@pytest.mark.parametrize("name", FILTERS)
def test_known_filters_are_recovered(name, give_noise):
    """Median over 20 seeds, each with a sensor graph and signals of its own.

    On one graph held fixed the median depends on the graph where the noise is learnt: see bench_recovery.py.
    """
    errors = [recovery_error(name, seed, graph_seed=seed, give_noise=give_noise) for seed in range(20)]
    given, learnt = BARS[name]
    assert np.median(errors) <= (given if give_noise else learnt)
