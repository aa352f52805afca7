"""The estimator on large graphs: the same answers as on small ones, whatever holds the signals."""

import pickle
import tracemalloc
from contextlib import redirect_stderr

import array_api_strict
import numpy as np
import pytest
from matplotlib.figure import Figure
from settings import PAPER, paper_kernel
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import cross_validate

import oracle
from cases import LARGE_FILTERS, Columns, LargeCase, Terminal
from spectralgp import Chebyshev, Exact, GraphGPRegressor, LocalAverage, PseudoInverse, Sqp, Stacking
from spectralgp.estimators import reading
from spectralgp.graphs import Graph
from spectralgp.model.fields import Mixture
from spectralgp.model.kernels import Polynomial
from spectralgp.model.spectra import ExactSpectrum, Quadrature
from spectralgp.show.plots import plot_filter
from tolerances import EXACT, OPTIMUM, QUADRATURE, SAME_FILTER, STANDARD_ERRORS

pytestmark = pytest.mark.usefixtures("learnt_values")  # compared with dense formulas

CASE = LargeCase(LARGE_FILTERS["low-pass"], 0.1)
NAMES = [f"node {index}" for index in range(CASE.n_nodes)]
GRAPH = Graph(CASE.graph.weights, names=NAMES)
X, NEW = CASE.inputs, CASE.new
Y, OBSERVED = 20 + 3 * CASE.signals, 20 + 3 * CASE.observed
KERNEL = Polynomial(3, "interval")
EXACTLY = Chebyshev(n_probes="exact", tolerance=1e-8)
FEW = Chebyshev(n_moments=33, max_moments=33, n_probes="exact", tolerance=1e-3)
NODES = [7, 0, 299]


LARGE = {"input_kernel": paper_kernel(X), **PAPER}


def regressor(graph_kernel=KERNEL, spectrum=EXACTLY, **options):
    """The paper's model."""
    return GraphGPRegressor(GRAPH, graph_kernel, spectrum=spectrum, **LARGE | options)


def default(graph_kernel=KERNEL, spectrum=EXACTLY, **options):
    """All settings as they come, but for kernel and spectrum."""
    return GraphGPRegressor(GRAPH, graph_kernel, spectrum=spectrum, **options)


MAKERS = {"paper": regressor, "default": default}


@pytest.fixture(scope="module")
def exact():
    return regressor(spectrum="exact").fit(X, Y)


@pytest.fixture(scope="module")
def large():
    return regressor().fit(X, Y)


@pytest.fixture(scope="module")
def large_default():
    return default().fit(X, Y)


@pytest.fixture(scope="module", params=MAKERS)
def either(request):
    """A maker, and what it made when fitted."""
    known = {"paper": "large", "default": "large_default"}
    return MAKERS[request.param], request.getfixturevalue(known[request.param])


def assert_same(model, exact, tolerance=SAME_FILTER):
    """Likelihood, parameters, predictions and densities of two fits to the same signals."""
    close = OPTIMUM * Y.size
    assert abs(model.log_marginal_likelihood_ - exact.log_marginal_likelihood_) < close
    assert oracle.relative_error(model.noise_variance_, exact.noise_variance_) < tolerance
    assert oracle.relative_error(model.graph_kernel_[0].coefficients, exact.graph_kernel_[0].coefficients) < tolerance
    mean, std = model.predict(NEW, return_std=True, nodes=NODES)
    expected_mean, expected_std = exact.predict(NEW, return_std=True, nodes=NODES)
    scale = float(np.std(Y))
    assert oracle.relative_error(mean, expected_mean, scale) < tolerance
    assert oracle.relative_error(std, expected_std, scale) < tolerance
    actual, expected = (one.log_predictive_density(NEW, OBSERVED) for one in (model, exact))
    assert abs(actual - expected) < tolerance * OBSERVED.size
    left, truth = (one.leave_one_out() for one in (model, exact))
    assert oracle.relative_error(left.mean, truth.mean, scale) < tolerance
    assert oracle.relative_error(left.log_density, truth.log_density) < tolerance


def test_both_spectra_give_the_same_answers(exact, large):
    assert isinstance(exact.spectrum_, ExactSpectrum)
    assert isinstance(large.spectrum_, Quadrature)
    assert_same(large, exact)
    assert exact.fits_[0].truncation_error == exact.fits_[0].probe_error == 0.0
    assert 0 < large.fits_[0].truncation_error < 1e-8 * Y.size
    assert large.fits_[0].probe_error == 0.0


def test_filters_are_given_and_drawn_at_the_frequencies_of_a_quadrature(large):
    """Some of them lie a little beyond the interval, where a filter says nothing: it is taken at the end there."""
    frequencies = large.spectrum_.eigenvalues
    assert frequencies[-1] > large.spectrum_.upper
    expected = large.graph_kernel_[0].response(np.minimum(frequencies, large.spectrum_.upper))
    np.testing.assert_array_equal(large.response(), expected)
    figure = Figure()
    (line, *_) = plot_filter(large, ax=figure.subplots()).lines
    np.testing.assert_array_equal(line.get_ydata(), large.response(line.get_xdata()))


def test_probes_stay_within_their_stated_error(exact):
    """The maximum of a likelihood that is off by a few nats is off by no more."""
    model = regressor(spectrum="chebyshev").fit(X, Y)
    (fit,) = model.fits_
    assert 0 < fit.probe_error < 0.01 * abs(exact.log_marginal_likelihood_)
    deviation = model.log_marginal_likelihood_ - exact.log_marginal_likelihood_
    assert abs(deviation) < STANDARD_ERRORS * fit.probe_error + fit.truncation_error
    assert oracle.relative_error(model.noise_variance_, exact.noise_variance_) < 0.1
    assert oracle.relative_error(model.predict(NEW), exact.predict(NEW), float(np.std(Y))) < 0.1


def test_auto_switches_at_the_documented_size():
    assert "5,000" in GraphGPRegressor.__doc__
    assert reading.spectrum_settings("auto", Graph.edgeless(5_000)) == Exact()
    assert reading.spectrum_settings("auto", Graph.edgeless(5_001)) == Chebyshev()


@pytest.mark.parametrize(
    ("n_missing", "n_edges", "given", "kind"),
    [
        (2_501, 2_001, {}, "Chebyshev"),
        (2_500, 2_001, {}, "Exact"),
        (2_501, 50_000, {}, "Exact"),
        (2_501, 2_001, {"spectrum": "exact"}, "Exact"),
        (2_501, 2_001, {"graph_kernel": Polynomial(1)}, "Exact"),
    ],
    ids=["many on a sparse graph", "few", "many on a dense graph", "as asked for", "kernel given"],
)
def test_auto_switches_earlier_where_much_is_missing(n_missing, n_edges, given, kind):
    for limit in (reading.MOST_SHRUNK, reading.MOST_DENSE):
        assert f"{limit:,}" in GraphGPRegressor.__doc__
    rng, n_nodes = np.random.default_rng(0), 2_001
    places = np.arange(n_edges)
    ring = Graph.from_edges(np.stack([places % n_nodes, (places + places // n_nodes + 1) % n_nodes], axis=1))
    signals = rng.standard_normal((4, n_nodes))
    signals.flat[rng.choice(signals.size, n_missing, replace=False)] = np.nan
    training = reading.read_training(GraphGPRegressor(ring, **given), Sqp(), None, signals)
    assert type(training.spectrum).__name__ == kind


def test_signals_from_files_give_the_same_fit(tmp_path, either):
    make, large = either
    np.save(tmp_path / "signals.npy", Y)
    mapped, file = np.load(tmp_path / "signals.npy", mmap_mode="r"), Columns(Y)
    for given in (mapped, file, Y.tolist(), np.asfortranarray(Y)):
        model = make().fit(X, given)
        assert oracle.relative_error(model.noise_variance_, large.noise_variance_) < QUADRATURE
        assert oracle.relative_error(model.predict(NEW), large.predict(NEW)) < QUADRATURE
    density = model.log_predictive_density(NEW, Columns(OBSERVED))
    assert oracle.relative_error(density, large.log_predictive_density(NEW, OBSERVED)) < QUADRATURE


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_integers_are_signals_too(make):
    rounded = np.round(Y).astype(np.int32)
    model, expected = make().fit(X, rounded), make().fit(X, rounded.astype(float))
    assert oracle.relative_error(model.predict(NEW), expected.predict(NEW)) < EXACT


def test_single_precision_stays_single(exact):
    model = regressor(spectrum=Chebyshev(n_probes="exact")).fit(X, Y.astype(np.float32))
    mean, std = model.predict(NEW, return_std=True)
    assert mean.dtype == std.dtype == np.float32
    assert oracle.relative_error(model.noise_variance_, exact.noise_variance_) < SAME_FILTER
    assert oracle.relative_error(mean, exact.predict(NEW), float(np.std(Y))) < SAME_FILTER


@pytest.fixture(scope="module", params=[(regressor, "global"), (regressor, "node"), (default, "auto")])
def strict(request):
    make, center = request.param
    return make(spectrum=Chebyshev(), center=center).fit(X, array_api_strict.asarray(Y))


def test_arrays_of_another_library_come_back_as_such(strict):
    expected = clone(strict).fit(X, Y)
    library = type(array_api_strict.asarray(Y))
    observed = array_api_strict.asarray(OBSERVED)
    mean, std = strict.predict(NEW, return_std=True)
    draws = strict.sample_y(NEW, 2)
    chosen, deviations = strict.predict(NEW, return_std=True, nodes=NODES)
    left = strict.leave_one_out()
    for array in (mean, std, draws, chosen, left.mean, left.std):
        assert isinstance(array, library)
    pairs = [
        (strict.noise_variance_, expected.noise_variance_),
        (mean, expected.predict(NEW)),
        (std, expected.predict(NEW, return_std=True)[1]),
        (chosen, expected.predict(NEW, nodes=NODES)),
        (deviations, expected.predict(NEW, return_std=True, nodes=NODES)[1]),
        (left.mean, expected.leave_one_out().mean),
        (strict.log_predictive_density(NEW, observed), expected.log_predictive_density(NEW, OBSERVED)),
        (strict.score(NEW, observed), expected.score(NEW, OBSERVED)),
        (draws, expected.sample_y(NEW, 2)),
    ]
    for actual, truth in pairs:
        assert oracle.relative_error(np.asarray(actual), truth) < QUADRATURE


def test_covariances_and_nodes_that_are_too_many_are_refused(large):
    with pytest.raises(ValueError, match="Covariances between nodes are not available on a large graph"):
        large.predict(NEW, return_cov=True)
    with pytest.raises(ValueError, match="by must be 'signal' on a large graph"):
        large.leave_one_out("node")
    with pytest.raises(ValueError, match="nodes must be positions from 0 to 299; got 300"):
        large.predict(NEW, nodes=[300])


@pytest.mark.parametrize("options", [{"center": "node"}, {"scale": None}, {"center": "node", "scale": None}])
def test_centre_and_scale_are_those_of_the_exact_path(options):
    exact, large = (regressor(spectrum=spectrum, **options).fit(X, Y) for spectrum in ("exact", EXACTLY))
    assert_same(large, exact)
    assert oracle.relative_error(np.broadcast_to(large.center_, CASE.n_nodes), exact.center_) < EXACT


def test_independent_signals_and_given_covariances():
    covariance = RBF(1.3)(X)
    cross, test = RBF(1.3)(NEW, X), RBF(1.3)(NEW)
    exact, large = (
        regressor(spectrum=kind, input_kernel="precomputed").fit(covariance, Y) for kind in ("exact", EXACTLY)
    )
    for given in (cross, (cross, test)):
        assert oracle.relative_error(large.predict(given), exact.predict(given), float(np.std(Y))) < SAME_FILTER
    with pytest.raises(ValueError, match="X must hold the covariance of the test inputs"):
        large.predict(cross, return_std=True)
    exact, large = (regressor(spectrum=kind).fit(None, Y) for kind in ("exact", EXACTLY))
    assert abs(large.log_marginal_likelihood_ - exact.log_marginal_likelihood_) < OPTIMUM * Y.size
    assert oracle.relative_error(large.leave_one_out().log_density, exact.leave_one_out().log_density) < SAME_FILTER
    assert large.log_predictive_density(None, OBSERVED) == pytest.approx(
        exact.log_predictive_density(None, OBSERVED), rel=SAME_FILTER
    )
    with pytest.raises(ValueError, match="X must be None, or have no columns, where the model was fitted with X=None"):
        large.predict(NEW)


@pytest.mark.parametrize("n_draws", [pytest.param(0, marks=pytest.mark.slow), 3])
def test_stacked_kernels(n_draws):
    kernels = [Polynomial(0, "interval"), Polynomial(2, "interval"), Polynomial(2, "interval", laplacian="normalized")]
    exact, large = (
        regressor(Stacking(kernels, n_draws=n_draws), kind).fit(X, Y)
        for kind in ("exact", Chebyshev(n_probes="exact", n_moments=33))
    )
    # a weight follows held-out densities, which differ by the tolerance of the fits
    assert oracle.relative_error(large.kernel_weights_, exact.kernel_weights_) < 5 * SAME_FILTER
    assert oracle.relative_error(large.predict(NEW), exact.predict(NEW), float(np.std(Y))) < 5 * SAME_FILTER
    std, expected = (model.predict(NEW, return_std=True, nodes=NODES)[1] for model in (large, exact))
    assert oracle.relative_error(std, expected) < 5 * SAME_FILTER
    left, expected = (model.leave_one_out() for model in (large, exact))
    assert oracle.relative_error(left.mean, expected.mean, float(np.std(Y))) < 5 * SAME_FILTER
    assert oracle.relative_error(left.std, expected.std) < 5 * SAME_FILTER
    assert oracle.relative_error(left.log_density, expected.log_density) < 5 * SAME_FILTER
    # everywhere by probes: they state their error, and average it away over the nodes
    (mean, std), (_, expected) = (model.predict(NEW, return_std=True) for model in (large, exact))
    missed = np.sqrt(np.mean((std**2 - expected**2) ** 2, axis=1))
    assert np.all(missed < 2 * large.posterior_.at(NEW).variance_error + 5 * SAME_FILTER * np.mean(expected**2, axis=1))
    # the mean over 3 * 300 values, whose deviations go together over some part of the graph and all inputs
    draws = large.sample_y(NEW, 64, include_noise=True)
    squares = np.mean((draws - mean[:, :, None]) ** 2, axis=2)
    noisy = exact.predict(NEW, return_std=True, include_noise=True)[1] ** 2
    assert np.max(np.abs(draws.mean(axis=2) - mean) / np.sqrt(noisy / 64)) < STANDARD_ERRORS
    assert abs(np.mean(squares / noisy) - 1) < STANDARD_ERRORS * np.sqrt(2 / 64 / 30)


def test_a_fitted_model_can_be_cloned_and_pickled(either):
    make, large = either
    fresh = clone(large)
    assert fresh.spectrum is large.spectrum
    assert not hasattr(fresh, "spectrum_")
    with redirect_stderr(Terminal()):
        shown = make(verbose=1).fit(X, Y)  # its progress bar must not stay
    for model in (large, shown):
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))
        np.testing.assert_array_equal(again.predict(NEW, return_std=True)[1], model.predict(NEW, return_std=True)[1])
        again = pickle.loads(pickle.dumps(again)).fit(X, Y)
        assert oracle.relative_error(again.noise_variance_, large.noise_variance_) < EXACT


def test_the_seed_of_the_probes_is_a_setting():
    models = [regressor(Polynomial(1), Chebyshev(random_state=seed)).fit(X, Y) for seed in (0, 0, 1)]
    assert models[0].log_marginal_likelihood_ == models[1].log_marginal_likelihood_
    assert models[0].log_marginal_likelihood_ != models[2].log_marginal_likelihood_


def _with(value):
    spoilt = Y.copy()
    spoilt[2, 5] = value
    return spoilt


PARTIAL = np.where(np.random.default_rng(0).random(Y.shape) < 0.1, np.nan, Y)


@pytest.fixture(scope="module")
def filled():
    """A model of signals with missing values, in memory."""
    return regressor(Polynomial(1), FEW).fit(X, PARTIAL)


@pytest.mark.parametrize("wrap", [Columns, array_api_strict.asarray, lambda values: values.astype("f4")])
def test_signals_with_missing_values_may_lie_anywhere(filled, wrap):
    """They are read into memory; what fills them in comes back in the library it came from."""
    model = regressor(Polynomial(1), FEW).fit(X, wrap(PARTIAL))
    assert "values missing" in model.fits_[0].method
    assert oracle.relative_error(np.asarray(model.predict(NEW)), filled.predict(NEW)) < 1e-3
    if wrap is not Columns:
        completed, std = model.impute(X, wrap(PARTIAL))
        assert type(completed) is type(std) is type(wrap(PARTIAL))
        np.testing.assert_allclose(np.asarray(completed)[np.isfinite(PARTIAL)], Y[np.isfinite(PARTIAL)], rtol=1e-6)


@pytest.mark.parametrize(
    ("signals", "kind", "message"),
    [
        (np.full(Y.shape, np.nan), ValueError, r"Y must hold at least one value; got nothing but NaN"),
        (_with(np.inf), ValueError, r"Y must not hold infinite values; got some\. Use NaN"),
        (Columns(_with(-np.inf)), ValueError, r"Y must not hold infinite values"),
        (array_api_strict.asarray(_with(np.inf)), ValueError, r"Y must not hold infinite values"),
        (Y[:, :-1], ValueError, r"Y must have shape \(n_signals, n_nodes\) with n_nodes = 300.*got 299 columns"),
        (Y.T, ValueError, r"same number of rows, one per signal; got 8 and 300"),
        (Y[:, 0], ValueError, r"Y must have shape \(n_signals, n_nodes\) on a large graph; got \(8,\)"),
        (None, ValueError, "requires y to be passed"),
        (Y.astype(np.float16), TypeError, r"Y must be of type float32 or float64 on a large graph; got float16"),
        (Y.astype(complex), TypeError, r"Y must be of type float32 or float64 on a large graph; got complex128"),
        (Y.astype(object), TypeError, r"Y must be of type float32 or float64 on a large graph; got object"),
    ],
)
def test_bad_signals_are_refused(signals, kind, message):
    with pytest.raises(kind, match=message):
        regressor().fit(X, signals)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"spectrum": "quadrature"}, "spectrum must be one of 'auto', 'exact', 'chebyshev'"),
        ({"spectrum": 129}, "spectrum must be one of"),
        ({"graph_kernel": LocalAverage()}, "graph_kernel must be a function on the spectrum"),
        ({"graph_kernel": PseudoInverse()}, "graph_kernel must be a function on the spectrum without a pole"),
    ],
)
def test_bad_settings_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        regressor(**options).fit(X, Y)


def test_running_out_of_moments_is_a_warning():
    settings = Chebyshev(n_moments=5, max_moments=5)
    with pytest.warns(ConvergenceWarning, match="Raise max_moments in spectrum=Chebyshev"):
        model = regressor(spectrum=settings).fit(X, Y)
    assert not model.fits_[0].converged


def test_too_little_memory_says_how_much_and_what_to_reduce(monkeypatch):
    def full(*_, **__):
        raise MemoryError

    for work in ("signals.Signals.moments", "spectra.exact.eigh"):
        monkeypatch.setattr(f"spectralgp.model.{work}", full)
    needed = ((4 * 8 + 2 * 32) * 300 * 8 + 3 * 8 * 129 * 8**2) / 1e9
    message = rf"memory must hold about {needed:.2g} GB for 8 signals and 32 probes on 300 nodes; got less\. Pass Y as"
    with pytest.raises(MemoryError, match=message):
        regressor(spectrum="chebyshev").fit(X, Y)
    with pytest.raises(MemoryError, match=rf"about {needed - (4 * 8 + 2 * 32) * 300 * 4 / 1e9:.2g} GB"):
        regressor(spectrum="chebyshev").fit(X, Y.astype(np.float32))
    with pytest.raises(MemoryError, match=r"about 0\.15 GB for 100001 moments of 8 by 8 signals.*max_moments"):
        regressor(spectrum=Chebyshev(n_moments=100_001, max_moments=100_001)).fit(X, Y)
    message = r"0\.0022 GB for the exact spectrum of 300 nodes; got less\. Use spectrum='ch"
    with pytest.raises(MemoryError, match=message):
        GraphGPRegressor(Graph(GRAPH.weights), KERNEL, **LARGE).fit(X, Y)


def test_nothing_is_of_the_size_of_nodes_by_nodes():
    """20,000 nodes: one such matrix would take 3.2 GB. The blocks of signals and probes take a few times Y."""
    rng = np.random.default_rng(0)
    graph = Graph.from_points(rng.random((20_000, 2)), 6)
    signals = rng.standard_normal((16, 20_000))
    inputs = rng.standard_normal((16, 2))
    weights = graph.weights
    size = signals.nbytes + weights.data.nbytes + weights.indices.nbytes + weights.indptr.nbytes
    regressor(Polynomial(1), "chebyshev").fit(X, Y)  # compiles, which takes memory too
    tracemalloc.start()
    try:
        model = GraphGPRegressor(graph, Polynomial(1), **LARGE, prior=None).fit(inputs, signals)
        model.predict(inputs[:2], return_std=True, nodes=[0, 1])
        fitting = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(model.spectrum_, Quadrature)
    # three blocks of the signals, two of twice as many probes, and blocks of 32 unit vectors for two deviations
    assert fitting < 8 * size


def test_cross_validation_visits_the_graph_once():
    """The largest eigenvalue and the density belong to the graph, not to a fold."""
    model = GraphGPRegressor(Graph(CASE.graph.weights), Polynomial(1), spectrum=Chebyshev(n_moments=33), **LARGE)
    folds = cross_validate(model, X, Y, cv=4, return_estimator=True)["estimator"]
    assert len({id(fold.spectrum_.density) for fold in folds}) == 1


def test_a_mixture_states_the_error_of_its_variances():
    kernels = [Polynomial(1), Polynomial(1, laplacian="normalized")]
    model = regressor(kernels, Chebyshev(n_probes=16)).fit(X, Y)
    parts = tuple(posterior for _, posterior in model.posterior_.parts)
    prediction = Mixture(np.full(len(parts), 1 / len(parts)), parts).at(NEW)
    nodes = np.arange(CASE.n_nodes)
    error = np.sqrt(np.mean((prediction.variance() - prediction.variance(nodes=nodes)) ** 2, axis=1))
    assert np.all(prediction.variance_error > 0)
    assert np.all(error < 2 * prediction.variance_error)


def test_variance_without_centring_is_about_the_mean():
    """Signals with a level: bounds of the noise are in their units, whatever is subtracted."""
    for spectrum in ("exact", EXACTLY):
        model = regressor(
            spectrum=spectrum, center=None, noise_variance=(0.5 * np.var(Y), 10 * np.var(Y)), prior=None
        ).fit(X, Y)
        assert model.noise_variance_ == pytest.approx(0.5 * np.var(Y), rel=1e-9)


def test_values_say_nothing_of_others_where_signals_are_noise():
    """A filter whose power is a rounding error of the noise: solves must end, with numbers."""
    rng = np.random.default_rng(0)
    graph = Graph.from_points(rng.random((40, 2)), 4)
    inputs, signals = rng.standard_normal((5, 2)), rng.standard_normal((5, 40))
    kernel, few = Polynomial(1, chebyshev=(6e-9, 0.0), fixed=True), Chebyshev(n_moments=33, n_probes=8)
    model = GraphGPRegressor(graph, kernel, RBF(2.0, "fixed"), spectrum=few, **PAPER).fit(inputs, signals)
    observed = np.where(np.arange(40) < 5, np.nan, signals[:2] + 4)
    alone = model.predict(inputs[:2], return_std=True, include_noise=True)
    given = model.predict(inputs[:2], return_std=True, include_noise=True, observed=observed)
    np.testing.assert_allclose(given, alone, rtol=1e-9)
