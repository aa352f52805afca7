"""What users met: silent wrong answers and bad messages, each held here so that it does not come back."""

import datetime
import tracemalloc
from datetime import timedelta, timezone
from decimal import Decimal

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr
from settings import PAPER, paper_kernel
from sklearn.gaussian_process.kernels import RBF, ExpSineSquared

import oracle
from cases import LARGE_FILTERS, LargeCase
from spectralgp import Chebyshev, Diffusion, Graph, GraphGPRegressor, Identity, Polynomial, Response, Stacking
from tolerances import EXACT, FORMULA, OPTIMUM

pytestmark = pytest.mark.usefixtures("learnt_values")  # compared with dense formulas

N_SIGNALS, N_NODES, N_NEW = 14, 6, 4
NAMES = list("fedcba")
WEIGHTS = oracle.random_weights(N_NODES, seed=4)
GRAPH = Graph(WEIGHTS, names=NAMES)
RNG = np.random.default_rng(5)
EVERYWHERE = RNG.uniform(-2, 2, (N_SIGNALS + N_NEW, 2))
LAPLACIAN = oracle.laplacian(WEIGHTS, scaled=True)
LEVELS = 10 * np.arange(N_NODES)  # nodes differ, so that a wrong order is seen
SIGNALS = LEVELS + oracle.draw(
    oracle.rbf(EVERYWHERE, EVERYWHERE, 1.5), oracle.polynomial(LAPLACIAN, [1.0, -1.4, 0.6]), 0.02, RNG
)
X, NEW = EVERYWHERE[:N_SIGNALS], EVERYWHERE[N_SIGNALS:]
Y, OBSERVED = SIGNALS[:N_SIGNALS], SIGNALS[N_SIGNALS:]
FRAME = pd.DataFrame(Y, columns=NAMES)
SHUFFLED = [2, 5, 0, 4, 1, 3]
CASE = LargeCase(LARGE_FILTERS["low-pass"], 0.1)


def model(graph=GRAPH, kernel=None, **options):
    """The paper's model; `kernel` is that of the graph."""
    settings = {"input_kernel": paper_kernel(X), **PAPER} | options
    return GraphGPRegressor(graph, Polynomial(2) if kernel is None else kernel, **settings)


def default(graph=GRAPH, kernel=None, **options):
    """All settings as they come but for the graph kernel."""
    return GraphGPRegressor(graph, Polynomial(2) if kernel is None else kernel, **options)


both = pytest.mark.parametrize("make", [model, default])


@both
def test_nodes_are_chosen_by_the_columns_of_y(make):
    """By name, by position among them, or by a mask over them, whether the graph has names or not."""
    for graph in (GRAPH, Graph(WEIGHTS)):
        fitted = make(graph).fit(X, FRAME)
        everything, std = map(np.asarray, fitted.predict(NEW, return_std=True))
        for nodes in (["c", "f"], [3, 0], np.array([3, 0])):
            mean, deviation = fitted.predict(NEW, return_std=True, nodes=nodes)
            assert oracle.relative_error(mean, everything[:, [3, 0]]) < EXACT
            assert oracle.relative_error(deviation, std[:, [3, 0]]) < EXACT
        mask = np.array([True, False, False, True, False, False])
        assert oracle.relative_error(fitted.predict(NEW, nodes=mask), everything[:, [0, 3]]) < EXACT
    shuffled = make().fit(X, FRAME.iloc[:, SHUFFLED])
    everything = shuffled.predict(NEW)
    assert list(everything.columns)[2] == "f"
    pd.testing.assert_frame_equal(shuffled.predict(NEW, nodes=[0]), everything.iloc[:, [0]])
    pd.testing.assert_frame_equal(shuffled.predict(NEW, nodes=["f"]), everything[["f"]])
    message = r"nodes must be names of columns of Y; got 'z' \(1 unknown in all\)\. The first"
    with pytest.raises(ValueError, match=message):
        shuffled.predict(NEW, nodes=["z"])
    message = "nodes must be positions if neither the graph nor the columns of Y have names"
    with pytest.raises(ValueError, match=message):
        make(Graph(WEIGHTS)).fit(X, Y).predict(NEW, nodes=["f"])


@both
def test_integer_labels_of_a_networkx_graph_are_names(make):
    """Nodes 0, 1, ...: a table with the same labels in another order was taken by position."""
    graph = nx.from_numpy_array(WEIGHTS)
    frame = pd.DataFrame(Y, columns=range(N_NODES))
    plain, other = make(graph).fit(X, frame), make(graph).fit(X, frame[SHUFFLED])
    assert other.log_marginal_likelihood_ == pytest.approx(plain.log_marginal_likelihood_)
    np.testing.assert_allclose(other.predict(NEW), plain.predict(NEW)[SHUFFLED])
    unnamed = make(Graph(WEIGHTS))
    with pytest.raises(ValueError, match=r"Y must have its columns in the order of the nodes.*integers 0 to 5.*got 2"):
        unnamed.fit(X, frame[SHUFFLED])
    np.testing.assert_allclose(unnamed.fit(X, frame).predict(NEW), plain.predict(NEW))


def test_bounds_of_an_amplitude_are_in_the_units_of_the_signals():
    """True amplitude 50, bounds 10 to 100, signals with a deviation of some 30: it was learnt as 300."""
    rng = np.random.default_rng(1)
    inputs = rng.uniform(-3, 3, (30, 1))
    dense = 50.0**2 * oracle.diffusion(oracle.laplacian(WEIGHTS, "normalized"), 2.0)
    signals = oracle.draw(oracle.rbf(inputs, inputs, 1.0), dense, 9.0, rng)
    free, bounded, tight = (
        model(kernel=Diffusion(amplitude=50, amplitude_bounds=bounds)).fit(inputs, signals)
        for bounds in (None, (10, 100), (49, 50))
    )
    assert bounded.log_marginal_likelihood_ == pytest.approx(free.log_marginal_likelihood_, abs=1e-3)
    assert bounded.graph_kernel_[0].amplitude == pytest.approx(free.graph_kernel_[0].amplitude, rel=1e-2)
    assert bounded.graph_kernel_[0].amplitude_bounds == pytest.approx((10, 100))
    assert 49 * (1 - 1e-9) <= tight.graph_kernel_[0].amplitude <= 50 * (1 + 1e-9)
    for fitted in (bounded, tight):  # it can be built again
        assert type(fitted.graph_kernel_[0])(**fitted.graph_kernel_[0].get_params()) == fitted.graph_kernel_[0]


def test_log_posteriors_are_in_the_units_of_the_signals():
    """Without a prior the log posterior is the log likelihood, whatever the units."""
    for factor in (1.0, 1e3):
        fitted = model(prior=None).fit(X, factor * Y)
        (fit,) = fitted.fits_
        assert fit.log_posterior == pytest.approx(fit.log_likelihood)
        assert fit.stages[-1].log_posterior == pytest.approx(fit.log_posterior)
        assert fit.log_likelihood == pytest.approx(fitted.log_marginal_likelihood_)


@pytest.mark.parametrize("factor", [1e-130, 1e-80, 1e80, 1e130])
@both
def test_extreme_units_of_the_signals_are_no_trouble(make, factor):
    plain, other = make().fit(X, Y), make().fit(X, factor * Y)
    mean, std = plain.predict(NEW, return_std=True, include_noise=True)
    other_mean, other_std = other.predict(NEW, return_std=True, include_noise=True)
    assert oracle.relative_error(other_mean / factor, mean) < 1e-6
    assert oracle.relative_error(other_std / factor, std) < 1e-5
    assert other.log_predictive_density(NEW, factor * OBSERVED) == pytest.approx(
        plain.log_predictive_density(NEW, OBSERVED) - OBSERVED.size * np.log(factor), rel=1e-6
    )


@pytest.mark.parametrize(
    ("inputs", "signals", "message"),
    [
        (X, 1e156 * Y, r"Y must hold values between 1e-140 and 1e\+140 in size.*Change the units of Y"),
        (X, 1e-160 * Y, r"Y must hold values between 1e-140 and 1e\+140 in size"),
        (1e156 * X, Y, r"X must hold values up to 1e\+150 in size.*Change the units of X"),
    ],
)
@both
def test_units_that_cannot_be_squared_are_refused_by_name(make, inputs, signals, message):
    with pytest.raises(ValueError, match=message):
        make().fit(inputs, signals)


@pytest.mark.filterwarnings("ignore:the fit of:sklearn.exceptions.ConvergenceWarning")
def test_constant_columns_are_no_signal():
    """Centred by node they are rounding, of 1e-18, and were taken for a spread: the log likelihood was +14,649."""
    with pytest.warns(UserWarning, match="the noise is at its lower bound"):
        fitted = model(center="node").fit(X, np.full((N_SIGNALS, N_NODES), 0.1) * np.arange(1, 7) / 3)
    assert fitted.noise_variance_ > 1e-7 * 0.2**2  # of the largest value squared, whatever the units
    assert abs(fitted.log_marginal_likelihood_) < 1e4


@pytest.mark.parametrize("by", ["signal", "entry"])
def test_what_is_left_out_is_left_out_of_the_nodes_means(by):
    """Against deletion by hand: the means of what is kept, then dense conditioning."""
    fitted = model(center="node").fit(X, Y)
    dense = oracle.polynomial(LAPLACIAN, fitted.graph_kernel_[0].coefficients)
    covariance = oracle.covariance(
        oracle.rbf(X, X, fitted.input_kernel_[0].length_scale), dense, fitted.noise_variance_
    )
    left = fitted.leave_one_out(by)
    for n, m in [(0, 1), (5, 4), (13, 0)]:
        mask = np.zeros(Y.shape, dtype=bool)
        mask[(n, m) if by == "entry" else n] = True
        centre = np.array([Y[~mask[:, node], node].mean() for node in range(N_NODES)])
        mean, spread, density = oracle.leave_out(Y - centre, covariance, mask)
        assert oracle.relative_error(left.mean[mask], mean + centre[mask.any(axis=0)]) < 1e-7
        assert oracle.relative_error(left.std[mask] ** 2, np.diag(spread)) < 1e-6
        index = (n, m) if by == "entry" else n
        assert left.log_density[index] == pytest.approx(density, rel=1e-6)


def test_a_node_left_out_has_no_mean_to_be_centred_by():
    with pytest.raises(ValueError, match=r"by must be 'signal' or 'entry' if each node was centred by its own mean"):
        model(center="node").fit(X, Y).leave_one_out("node")


@pytest.mark.parametrize(
    ("inputs", "signals", "error", "message"),
    [
        (X, FRAME.assign(c=np.inf), ValueError, "Y contains infinity at row 0, column 'c'"),
        (
            X,
            FRAME.melt(var_name="station", value_name="value"),
            TypeError,
            r"Y must be a wide table.*got a long one.*column 'station'\. Turn it into a wide one: Y\.pivot",
        ),
        (
            X,
            pd.concat([FRAME, FRAME[["a"]]], axis=1),
            ValueError,
            "Y must have distinct column names; got 'a' more than",
        ),
        (
            X,
            FRAME.assign(a=pd.date_range("2020", periods=N_SIGNALS)),
            TypeError,
            "Y must hold numbers; got dates in column 'a'",
        ),
        (np.ma.masked_array(X, mask=X > 1.9), Y, ValueError, "X must have no masked entries; got"),
        (X, Y.astype(complex), ValueError, "Complex data not supported: Y must hold real numbers"),
        (X.astype(str), Y, TypeError, "X must hold numbers; got dtype <U"),
        (
            pd.DataFrame(X, columns=["u", "v"]).assign(w="x"),
            Y,
            TypeError,
            "X must hold numbers; got words in column 'w'",
        ),
        (
            pd.DataFrame({"u": X[:, 0], "t": pd.timedelta_range("1h", periods=N_SIGNALS)}),
            Y,
            TypeError,
            r"X must hold numbers; got dates in column 't'.*for example days",
        ),
    ],
)
@both
def test_messages_name_what_was_given(make, inputs, signals, error, message):
    with pytest.raises(error, match=message):
        make().fit(inputs, signals)


BERLIN = timezone(timedelta(hours=2))
HOURS = pd.date_range("2024-03-31", periods=N_SIGNALS, freq="7h")
IN_DAYS = np.array([(hour - datetime.datetime(1970, 1, 1)).total_seconds() / 86_400 for hour in HOURS.to_pydatetime()])
DATED = {
    "array": (HOURS.to_numpy()[:, None], 0.0),
    "objects": (np.array([[hour] for hour in HOURS.to_pydatetime()], dtype=object), 0.0),
    "list with an offset": ([[hour.replace(tzinfo=BERLIN)] for hour in HOURS.to_pydatetime()], 2 / 24),
    "pandas": (pd.DataFrame({"t": HOURS}), 0.0),
    "pandas with a zone": (pd.DataFrame({"t": HOURS.tz_localize(BERLIN)}), 2 / 24),
    "pandas of objects": (pd.DataFrame({"t": pd.Series(list(HOURS.to_pydatetime()), dtype=object)}), 0.0),
    "polars": (pl.DataFrame({"t": HOURS.to_numpy()}), 0.0),
    "pyarrow": (pa.table({"t": pa.array(HOURS.to_pydatetime())}), 0.0),
    "xarray": (xr.DataArray(HOURS.to_numpy()[:, None], dims=("row", "feature")), 0.0),
}


@pytest.mark.parametrize("name", DATED)
def test_dates_are_days_since_1970_and_summary_says_so(name):
    dates, offset = DATED[name]
    fitted = model(kernel=Polynomial(1)).fit(dates, Y)
    np.testing.assert_allclose(fitted.posterior_.inputs[:, 0], IN_DAYS - offset, rtol=1e-14)
    assert "are days since 1970, in UTC where they have a time zone" in fitted.summary()
    as_numbers = model(kernel=Polynomial(1)).fit(IN_DAYS[:, None] - offset, Y)
    assert "days since" not in as_numbers.summary()
    expected = as_numbers.predict(IN_DAYS[:, None] - offset)
    assert oracle.relative_error(np.asarray(fitted.predict(dates)), expected) < FORMULA
    with pytest.raises(TypeError, match=r"X must have dates in columns \[0\], as at fit; got no dates"):
        fitted.predict(pd.DataFrame({"t": IN_DAYS}) if hasattr(fitted, "feature_names_in_") else IN_DAYS[:, None])
    with pytest.raises(TypeError, match=r"X must have no dates, as at fit; got dates in columns \[0\]"):
        as_numbers.predict(HOURS.to_numpy()[:, None])


def test_dates_stand_beside_numbers():
    table = pd.DataFrame({"u": X[:, 0], "t": HOURS})
    fitted = model(kernel=Polynomial(1)).fit(table, Y)
    assert fitted.date_columns_ == (1,)
    np.testing.assert_allclose(fitted.posterior_.inputs, np.column_stack([X[:, 0], IN_DAYS]), rtol=1e-14)
    assert "Dates of X (column t) are days" in fitted.summary()
    table.loc[2, "t"] = pd.NaT
    with pytest.raises(ValueError, match="X contains NaN at row 2, column 't'"):
        fitted.predict(table)


def test_a_list_of_kernels_with_a_foreign_one_says_which():
    with pytest.raises(TypeError, match=r"got RBF\(length_scale=1\) at position 1, of type sklearn\.gaussian_process"):
        model(kernel=[Polynomial(1), RBF(), Identity()]).fit(X, Y)


def test_observed_signals_must_fit_the_inputs_on_a_large_graph():
    """One row was compared with three means, and NaN blamed the Laplacian."""
    fitted = GraphGPRegressor(CASE.graph, Polynomial(2), spectrum=Chebyshev(n_probes=8))
    fitted.fit(CASE.inputs, CASE.signals)
    with pytest.raises(ValueError, match=r"one row for each of the 3 inputs .*got shape \(1, 300\)"):
        fitted.log_predictive_density(CASE.new, CASE.observed[:1])
    spoilt = CASE.observed.copy()
    spoilt[1, 7] = np.inf
    with pytest.raises(ValueError, match=r"signals must be finite or NaN; got inf at index \(1, 7\)"):
        fitted.log_predictive_density(CASE.new, spoilt)


def test_a_numpy_generator_is_a_random_state():
    fitted, again = (
        model(kernel=[Polynomial(1), Diffusion()], random_state=np.random.default_rng(3)).fit(X, Y) for _ in range(2)
    )
    np.testing.assert_array_equal(fitted.predict(NEW), again.predict(NEW))
    draws = [fitted.sample_y(NEW, 2, random_state=np.random.default_rng(seed)) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(draws[0], draws[1])
    assert not np.allclose(draws[0], draws[2])


@pytest.mark.parametrize("with_jacobian", [False, True])
def test_a_response_is_not_asked_beyond_its_bounds(with_jacobian):
    """A function that is defined from 0 on, with its optimum at 0: fits and draws stay inside."""
    asked = []

    def shape(eigenvalues, rate):
        asked.append(rate)
        return np.exp(-np.sqrt(rate) * eigenvalues)  # not a number below zero

    jacobian = (
        (lambda t, rate: (-0.5 * t * np.exp(-np.sqrt(rate) * t) / np.sqrt(max(rate, 1e-12)))[:, None])
        if with_jacobian
        else None
    )
    kernel = Response(shape, (1.0,), ((0.0, 5.0),), jacobian)
    white = np.random.default_rng(0).standard_normal((N_SIGNALS, N_NODES))
    fitted = model(kernel=Stacking(kernel, n_draws=8)).fit(X, white)
    assert np.all(np.isfinite(fitted.predict(NEW)))
    assert min(asked) >= 0.0
    assert max(asked) <= 5.0


@pytest.mark.parametrize("constraint", ["interval", "eigenvalues", None])
def test_a_learnt_filter_can_be_used_elsewhere_as_it_is(constraint):
    """Transfer: the coefficients are kept in the units of the signals, and everything else is learnt."""
    first = model(kernel=Polynomial(2, constraint)).fit(X, Y)
    kept = Polynomial.from_coefficients(first.graph_kernel_[0].coefficients, constraint=constraint, fixed=True)
    second = model(kernel=kept).fit(X, Y)
    np.testing.assert_allclose(second.graph_kernel_[0].coefficients, first.graph_kernel_[0].coefficients)
    assert second.log_marginal_likelihood_ == pytest.approx(first.log_marginal_likelihood_, abs=0.01)
    assert second.fits_[0].stages[-1].name == "Polynomial(2)"
    with pytest.raises(ValueError, match=r"fixed must be False for a polynomial without coefficients"):
        Polynomial(2, fixed=True)


def test_given_coefficients_are_a_start():
    """Where the continuation would end elsewhere: the start is another maximum, and it is not forgotten."""
    fitted = model(kernel=Polynomial(3)).fit(X, Y)
    started = model(kernel=Polynomial.from_coefficients(fitted.graph_kernel_[0].coefficients)).fit(X, Y)
    assert started.fits_[0].log_posterior >= fitted.fits_[0].log_posterior - OPTIMUM * Y.size
    other = Polynomial.from_coefficients([20.0, -60.0, 40.0])
    assert other.search().is_given


@pytest.mark.filterwarnings("ignore:the fit of:sklearn.exceptions.ConvergenceWarning")
def test_a_covariance_that_rounding_makes_indefinite_on_the_way_does_not_end_a_fit():
    """A short period at inputs of 1e5 loses its digits; the answer does not."""
    rng = np.random.default_rng(0)
    inputs = 1e5 * rng.uniform(0, 1, (20, 1))
    signals = rng.standard_normal((20, N_NODES))
    fitted = model(kernel=Polynomial(1)).set_params(input_kernel=ExpSineSquared())
    assert np.all(np.isfinite(fitted.fit(inputs, signals).predict(inputs[:2])))


def test_a_filter_is_not_asked_for_beyond_the_spectrum():
    fitted = model().fit(X, Y)
    message = r"eigenvalues must lie between 0 and 1, where the filter was learnt; got values from 0"
    with pytest.raises(ValueError, match=message):
        fitted.response([0.0, 2.0])
    with pytest.raises(ValueError, match="eigenvalues must lie between 0 and 1"):
        fitted.response([-0.1])


def test_many_outputs_without_a_graph_cost_no_matrix_of_them():
    """Of 200 MB."""
    signals = np.random.default_rng(0).standard_normal((10, 5000))
    paper = {"graph": None, "kernel": Identity()}
    tracemalloc.start()
    fitted = model(**paper).fit(X[:10], signals)
    mean, std = fitted.predict(NEW, return_std=True)
    assert tracemalloc.get_traced_memory()[1] < 5000**2
    tracemalloc.stop()
    few = model(**paper, noise_variance=fitted.noise_variance_)
    few.set_params(
        input_kernel=RBF(fitted.input_kernel_[0].length_scale, "fixed"),
        graph_kernel=Identity(fitted.graph_kernel_[0].amplitude, "fixed"),
        center=None,
    )
    few.fit(X[:10], signals[:, :3] - signals.mean())
    np.testing.assert_allclose(mean[:, :3] - signals.mean(), few.predict(NEW), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(std[:, :3], few.predict(NEW, return_std=True)[1], rtol=1e-6)


@pytest.mark.parametrize("kernel", [None, Polynomial(1), Diffusion()])
@pytest.mark.parametrize("level", [0.0, 0.1])
def test_inputs_that_do_not_vary_carry_nothing_over(kernel, level):
    inputs = np.full(Y.shape, level)
    fitted = GraphGPRegressor(GRAPH, kernel).fit(inputs, Y)
    changed = fitted.predict(inputs[:2] + 1e3)
    assert np.abs(changed - Y.mean(axis=0)).max() < 3 * Y.std(axis=0).max()
    for fit in fitted.fits_:
        assert fit.model.carry is None or not fit.model.carry.chebyshev.any()


@pytest.mark.parametrize("center", ["auto", None])
def test_a_single_signal_carries_nothing_over(center):
    fitted = GraphGPRegressor(GRAPH, Polynomial(1), center=center).fit(Y[:1], Y[1:2])
    assert np.isfinite(fitted.predict(Y[2:4])).all()
    incomplete = np.full(Y.shape, np.nan)
    incomplete[4] = Y[4]
    assert np.isfinite(GraphGPRegressor(GRAPH, Polynomial(1), center=center).fit(Y, incomplete).predict(Y[2:4])).all()


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (X.astype(str).tolist(), "X must hold numbers; got dtype <U"),
        (X.astype(str).astype(object), "X must hold numbers; got some are strings. Convert"),
        ([[1.0, "2"]] * N_SIGNALS, "X must hold numbers; got dtype <U"),
        ([[datetime.timedelta(1)]] * N_SIGNALS, "X must hold numbers; got .*timedelta.*Convert"),
    ],
    ids=["list", "objects", "mixed", "durations"],
)
def test_what_is_no_number_is_refused_in_inputs_of_any_kind(inputs, message):
    with pytest.raises(TypeError, match=message):
        model().fit(inputs, Y)
    with pytest.raises(TypeError, match=message):
        model().fit(X, Y).predict(inputs)


def test_numbers_as_objects_are_numbers():
    expected = model().fit(X, Y).predict(NEW)
    found = model().fit([[Decimal(float(one)) for one in row] for row in X], Y).predict(NEW.astype(object))
    assert oracle.relative_error(found, expected) < EXACT


@pytest.mark.parametrize("empty", [np.empty((0, 2)), pd.DataFrame(np.empty((0, 2)))])
def test_no_inputs_at_all_are_refused_by_name(empty):
    with pytest.raises(ValueError, match=r"X must have at least one row; got shape \(0, 2\)"):
        model().fit(X, Y).predict(empty)


def test_one_signal_as_a_list_of_nodes_is_told_to_be_a_row():
    with pytest.raises(ValueError, match=r"Y must have two dimensions.*got shape \(6,\)\. .*one row: pass Y"):
        model().fit(None, SIGNALS[0])
    with pytest.raises(ValueError, match=r"one row: pass Y\[None, :\]"):
        model().fit(None, pd.Series(SIGNALS[0], NAMES))
