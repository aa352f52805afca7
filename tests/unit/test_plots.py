import copy
import datetime as dt

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import Normalize
from scipy.stats import norm
from settings import PAPER, paper_kernel
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF

import oracle
from spectralgp import (
    Diffusion,
    GlobalFilter,
    Graph,
    GraphGPForecaster,
    GraphGPRegressor,
    LocalAverage,
    Polynomial,
    PseudoInverse,
    Stacking,
    decompose,
)
from spectralgp.series import MaternComponent
from spectralgp.show.plots import (
    plot_backtest,
    plot_calibration,
    plot_filter,
    plot_forecast,
    plot_forecast_map,
    plot_fourier,
    plot_imputed,
    plot_prediction,
    plot_rates,
    plot_signal,
)
from tolerances import EXACT, FORMULA

BAND_PASS = Polynomial.from_coefficients([0.0, 1.0, 4.0, 1.0, -6.0])


@pytest.fixture(autouse=True)
def close_figures():
    plt.close("all")  # those of examples in docstrings
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def weights():
    return oracle.random_weights(9, seed=3)


@pytest.fixture(scope="module")
def graph(weights):
    return Graph(weights, coordinates=np.random.default_rng(0).uniform(size=(9, 2)))


@pytest.fixture(scope="module")
def fitted(graph):
    rng = np.random.default_rng(1)
    inputs = rng.standard_normal((12, 2))
    signals = 3 * np.sin(inputs[:, :1] + np.arange(9) / 3) + 0.3 * rng.standard_normal((12, 9))
    return GraphGPRegressor(graph, Stacking(Polynomial(2), n_draws=8), RBF(1.0), **PAPER).fit(inputs, signals)


@pytest.fixture
def ax():
    return plt.subplots()[1]


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_a_picture_goes_where_it_is_told_and_nowhere_else(graph, ax):
    assert plot_filter(BAND_PASS, ax=ax) is ax
    assert plot_fourier(np.ones(9), graph, ax=ax) is ax
    assert plot_signal(graph, np.ones(9), ax=ax, colorbar=False) is ax
    assert plot_prediction([1.0], [1.0], [1.0], ax=ax) is ax
    assert plot_imputed([[np.nan]], [[1.0]], [[1.0]], 0, ax=ax) is ax
    assert plt.get_fignums() == [ax.figure.number]
    assert ax.figure.axes == [ax]


# Filters


def test_the_line_is_the_filter(ax):
    (line,) = plot_filter(BAND_PASS, ax=ax).lines
    eigenvalues, response = line.get_data()
    assert (eigenvalues[0], eigenvalues[-1]) == (0, 1)
    expected = eigenvalues + 4 * eigenvalues**2 + eigenvalues**3 - 6 * eigenvalues**4
    assert oracle.relative_error(response, expected) < FORMULA


def test_a_regressor_shows_its_learnt_filter_and_eigenvalues(fitted, weights, ax):
    plot_filter(fitted, ax=ax)
    eigenvalues, response = ax.lines[0].get_data()
    beta = fitted.graph_kernel_[0].coefficients
    assert oracle.relative_error(response, np.polynomial.polynomial.polyval(eigenvalues, beta)) < FORMULA
    (rug,) = ax.collections
    marked = np.array([segment[0, 0] for segment in rug.get_segments()])
    truth = np.linalg.eigvalsh(oracle.laplacian(weights, "combinatorial", True))
    assert oracle.relative_error(marked, truth) < FORMULA
    assert ax.get_xlabel() == "eigenvalue λ of the scaled combinatorial Laplacian"


def test_the_eigenvalues_can_be_left_out(fitted, ax):
    assert len(plot_filter(fitted, ax=ax, show_eigenvalues=False).collections) == 0


def test_a_dict_or_labels_name_the_filters(ax):
    plot_filter({"one": BAND_PASS, "two": BAND_PASS.scaled_by(2)}, ax=ax)
    assert texts(ax) == ["one", "two"]
    plot_filter([BAND_PASS], ax=ax, labels=["three"])
    assert texts(ax)[-1] == "three"


def test_one_kernel_with_draws_has_the_name_of_the_kernel(fitted):
    assert texts(plot_filter([fitted, BAND_PASS]))[0] == Polynomial(2).label
    assert (Stacking().label, Stacking([Polynomial(1), Diffusion()]).label) == ("Polynomial('auto')", "stacked")


def test_the_default_kernel_is_named(graph):
    inputs, signals = np.arange(6.0)[:, None], np.random.default_rng(0).standard_normal((6, 9))
    kernels = [Polynomial(0), Polynomial(1)]
    other = GraphGPRegressor(graph, kernels, paper_kernel(inputs), **PAPER).fit(inputs, signals)
    default = copy.copy(other).set_params(graph_kernel=None)  # as if it had chosen these
    ax = plot_filter([default, other])
    assert texts(ax) == ["Polynomial('auto')", "stacked"]
    grid, response = ax.lines[1].get_data()
    expected = sum(
        w * kernel.response(grid) for w, kernel in zip(other.kernel_weights_, other.graph_kernel_, strict=True)
    )
    assert oracle.relative_error(response, expected) < EXACT


def test_normalised_filters_are_one_at_their_highest_eigenvalue(graph, ax):
    eigenvalues = decompose(graph, scaled=True).eigenvalues
    kernel = BAND_PASS.scaled_by(7)
    plot_filter(kernel, ax=ax, eigenvalues=eigenvalues, normalize=True)
    grid, response = ax.lines[0].get_data()
    expected = kernel.response(grid) / kernel.response(eigenvalues).max()
    assert oracle.relative_error(response, expected) < EXACT
    assert "largest value 1" in ax.get_ylabel()
    assert ax.get_ylim() == pytest.approx((-0.09, 1.08))


def test_one_signal_has_a_legend_where_it_has_a_label(graph, ax):
    signal = np.arange(9.0)[None]
    plot_fourier(signal, graph, ax=ax)
    assert ax.get_legend() is None
    plot_fourier(signal, graph, ax=ax, labels=["first"])
    assert "first" in texts(ax)
    assert texts(plot_fourier(np.ones((2, 9)), graph)) == ["signal 0", "signal 1"]
    many = plot_fourier(np.ones((2, 301)), Graph.edgeless(301))
    assert {line.get_linestyle() for line in many.lines} == {"None"}  # told apart by marks


def test_filters_of_different_laplacians_share_a_relative_axis(graph, ax):
    spectra = {kind: decompose(graph, kind) for kind in ("combinatorial", "normalized")}
    signals = np.random.default_rng(0).standard_normal((8, 9))
    kernels = [GlobalFilter(), Diffusion(), Polynomial(1)]
    fits = [GraphGPRegressor(graph, kernel, **PAPER).fit(None, signals) for kernel in kernels]
    plot_filter(fits, ax=ax)
    assert ax.get_xlabel() == "eigenvalue / largest eigenvalue"
    largest = [spectra["combinatorial"].eigenvalues[-1], spectra["normalized"].eigenvalues[-1], 1.0]
    for line, fit, upper in zip(ax.lines, fits, largest, strict=True):
        places, response = line.get_data()
        assert oracle.relative_error(response, fit.graph_kernel_[0].response(places * upper)) < FORMULA
    rugs = [np.array([segment[0, 0] for segment in rug.get_segments()]) for rug in ax.collections]
    assert len(rugs) == 2  # the scaled Laplacian's are those of the combinatorial one
    for rug, spectrum in zip(rugs, spectra.values(), strict=True):
        assert oracle.relative_error(rug, spectrum.eigenvalues / spectrum.eigenvalues[-1]) < FORMULA


def test_a_pole_between_eigenvalues_does_not_set_the_scale(graph, ax):
    eigenvalues = decompose(graph).eigenvalues
    plot_filter(PseudoInverse(), ax=ax, eigenvalues=eigenvalues)
    highest = 1 / np.sqrt(eigenvalues[1])
    assert ax.lines[0].get_ydata().max() > 2 * highest
    assert ax.get_ylim()[1] == pytest.approx(1.08 * highest)


def test_the_band_is_one_standard_deviation_wide(fitted, ax):
    plot_filter(fitted, ax=ax, show_std=True, show_eigenvalues=False)
    (band,) = ax.collections
    grid = ax.lines[0].get_xdata()
    mean, std = fitted.response(grid, return_std=True)
    outline = band.get_paths()[0].vertices
    assert std.max() > 0
    assert outline[:, 1].max() == pytest.approx((mean + std).max())
    assert outline[:, 1].min() == pytest.approx(np.maximum(mean - std, 0).min())
    assert ax.get_ylim()[1] >= (mean + std).max()


@pytest.mark.parametrize(
    ("fits", "options", "error", "message"),
    [
        (GlobalFilter(), {}, ValueError, "eigenvalues must be given to draw GlobalFilter"),
        (LocalAverage(), {"eigenvalues": [0.0, 1.0]}, TypeError, "fits must .*; got LocalAverage"),
        ("Polynomial", {}, TypeError, "fits must be graph kernels or fitted GraphGPRegressors; got str"),
        ([], {}, ValueError, "fits must hold at least one filter"),
        ([BAND_PASS], {"labels": ["a", "b"]}, ValueError, "labels must name each of the 1 filters; got 2"),
        (GraphGPRegressor(), {}, NotFittedError, "is not fitted yet"),
        (BAND_PASS, {"eigenvalues": [[0.0, 1.0]]}, ValueError, r"eigenvalues must have shape \(n_eigenvalues,\)"),
    ],
)
def test_what_cannot_be_drawn_is_refused_before_a_figure_is_made(fits, options, error, message):
    with pytest.raises(error, match=message):
        plot_filter(fits, **options)
    assert plt.get_fignums() == []


# Fourier coefficients


@pytest.mark.parametrize("absolute", [True, False])
def test_few_signals_are_drawn_one_by_one(graph, ax, absolute):
    signals = np.random.default_rng(2).standard_normal((3, 9))
    spectrum = decompose(graph, "normalized")
    plot_fourier(signals, spectrum, ax=ax, absolute=absolute, labels=["a", "b", "c"])
    for line, signal in zip(ax.lines, signals, strict=False):
        coefficients = spectrum.eigenvectors.T @ signal
        assert oracle.relative_error(line.get_xdata(), spectrum.eigenvalues) == 0
        expected = np.abs(coefficients) if absolute else coefficients
        assert oracle.relative_error(line.get_ydata(), expected) < FORMULA
    assert texts(ax) == ["a", "b", "c"]
    assert ax.get_xlabel() == "eigenvalue λ of the normalised Laplacian"


def test_many_signals_are_drawn_as_median_and_band(graph, ax):
    signals = np.random.default_rng(3).standard_normal((50, 9))
    plot_fourier(signals, graph, ax=ax, level=0.5)
    magnitudes = np.abs(signals @ decompose(graph, scaled=True).eigenvectors)
    (line,) = ax.lines
    assert oracle.relative_error(line.get_ydata(), np.median(magnitudes, axis=0)) < FORMULA
    outline = ax.collections[0].get_paths()[0].vertices[:, 1]
    low, high = np.percentile(magnitudes, [25, 75], axis=0)
    assert outline.min() == pytest.approx(low.min())
    assert outline.max() == pytest.approx(high.max())
    assert texts(ax) == ["central 50%", "median"]


def test_a_logarithmic_axis_is_that_of_what_is_drawn(graph, ax):
    """One tiny coefficient of one signal out of twenty is not in the band."""
    rng = np.random.default_rng(6)
    coefficients = rng.uniform(1, 2, (20, 9))
    coefficients[3, 4] = 1e-9
    plot_fourier(coefficients @ decompose(graph, scaled=True).eigenvectors.T, graph, ax=ax, log=True)
    low, high = np.quantile(coefficients, [0.1, 0.9], axis=0)
    assert ax.get_ylim() == pytest.approx((low.min() / 2, high.max() * 2))


def test_rounding_errors_do_not_set_a_logarithmic_scale(graph, ax):
    plot_fourier(np.ones(9), graph, ax=ax, log=True)  # all but the first coefficient are zero but for rounding
    assert ax.lines[0].get_ydata()[1:].max() < 3e-14
    assert ax.get_ylim()[0] == pytest.approx(3e-14)
    assert plot_fourier(np.ones(9), graph, ax=ax).get_yscale() == "log"  # axes given keep their scale


@pytest.mark.parametrize(
    ("signals", "options", "message"),
    [
        (np.ones(9), {"log": True, "absolute": False}, "absolute must be True where log is; got False"),
        (np.eye(90, 9), {"log": True, "level": 0.1}, "signals must differ from zero to be drawn"),
        (np.zeros(9), {"log": True}, "signals must differ from zero to be drawn on a logarithmic axis"),
        (np.ones((9, 2)), {}, "did you pass the transpose"),
        (np.ones((2, 9)), {"labels": ["a"]}, "labels must name each of at most 7 signals; got 1 labels for 2 signals"),
        (np.ones((8, 9)), {"labels": list("abcdefgh")}, "drawn as a band and need no labels"),
        (np.ones((8, 9)), {"level": 80}, "level must lie between 0 and 1; got 80"),
    ],
)
def test_bad_fourier_arguments_are_named(graph, signals, options, message):
    with pytest.raises(ValueError, match=message):
        plot_fourier(signals, graph, **options)
    assert plt.get_fignums() == []


# Signals on the graph


def test_nodes_edges_and_colours_are_those_of_the_signal(graph, weights, ax):
    signal = np.linspace(-1, 3, 9)
    plot_signal(graph, signal, ax=ax)
    edges, nodes = ax.collections
    np.testing.assert_array_equal(nodes.get_offsets(), graph.coordinates)
    ax.figure.canvas.draw()
    expected = plt.get_cmap("viridis")(Normalize(-1, 3)(signal))
    np.testing.assert_allclose(nodes.get_facecolors(), expected)
    drawn = {frozenset(map(tuple, segment)) for segment in edges.get_segments()}
    pairs = np.argwhere(np.triu(weights) > 0)
    assert drawn == {frozenset(map(tuple, graph.coordinates[pair])) for pair in pairs}
    assert len(edges.get_segments()) == graph.n_edges
    assert len(ax.figure.axes) == 2  # with the colour bar


def widths_by_edge(ax):
    """Width of the line between each pair of places."""
    edges = ax.collections[0]
    return {
        frozenset(map(tuple, segment)): width
        for segment, width in zip(edges.get_segments(), edges.get_linewidths(), strict=True)
    }


def test_edges_are_as_wide_as_their_weight(graph, weights, ax):
    plot_signal(graph, np.ones(9), ax=ax)
    pairs = np.argwhere(np.triu(weights) > 0)
    mean = np.mean([weights[tuple(pair)] for pair in pairs])
    expected = {frozenset(map(tuple, graph.coordinates[pair])): 0.7 * weights[tuple(pair)] / mean for pair in pairs}
    assert max(expected.values()) < 3.0  # none is cut short
    assert widths_by_edge(ax) == pytest.approx(expected, rel=EXACT)
    assert ax.collections[0].get_alpha() == 1
    assert ax.get_legend() is None


@pytest.mark.parametrize("coordinates", [np.zeros((3, 2)), [[0, 0], [1, 0], [2, 0]], [[0, 1], [0, 2], [0, 5]]])
def test_nodes_in_one_place_or_on_a_line_are_drawn(ax, coordinates):
    plot_signal(Graph.from_edges([(0, 1), (1, 2)], coordinates=coordinates), np.arange(3), ax=ax)
    np.testing.assert_array_equal(ax.collections[1].get_offsets(), coordinates)
    assert len(ax.collections[0].get_segments()) == 2
    plot_signal(Graph(np.zeros((3, 3)), coordinates=coordinates), np.arange(3), ax=ax)
    assert len(ax.collections[2].get_segments()) == 0


def test_of_very_many_edges_the_heaviest_are_drawn_and_the_legend_says_so(ax):
    rng = np.random.default_rng(3)
    n_nodes = 300
    weights = np.triu(rng.uniform(0.5, 1, (n_nodes, n_nodes)), 1)
    graph = Graph(weights + weights.T, coordinates=rng.uniform(size=(n_nodes, 2)))
    plot_signal(graph, np.ones(n_nodes), ax=ax, colorbar=False)
    drawn = set(widths_by_edge(ax))
    heaviest_first = np.argsort(-weights[np.triu_indices(n_nodes, 1)])
    pairs = np.column_stack(np.triu_indices(n_nodes, 1))[heaviest_first[: len(drawn)]]
    assert drawn == {frozenset(map(tuple, graph.coordinates[pair])) for pair in pairs}
    assert 1000 < len(drawn) < 20_000
    assert texts(ax) == [f"{len(drawn):,} of 44,850 edges, the heaviest"]
    assert ax.collections[0].get_alpha() == pytest.approx(0.04, rel=0.01)


def test_missing_values_are_hollow_nodes_that_the_legend_explains(graph, ax):
    signal = np.linspace(-1, 3, 9)
    signal[[2, 8]] = np.nan
    labels = list("abcdefghi")
    plot_signal(graph, signal, ax=ax, symmetric=True, labels=labels, missing_label="failed sensor")
    _, nodes, hollow = ax.collections
    kept = [0, 1, 3, 4, 5, 6, 7]
    np.testing.assert_array_equal(nodes.get_offsets(), graph.coordinates[kept])
    np.testing.assert_array_equal(nodes.get_array(), signal[kept])
    assert nodes.get_clim() == (-2.5, 2.5)
    np.testing.assert_array_equal(hollow.get_offsets(), graph.coordinates[[2, 8]])
    assert texts(ax) == ["failed sensor"]
    assert ax.texts[8].get_text() == "i"


@pytest.mark.parametrize("signal", [[np.nan] * 8 + [1.0], np.ma.array(np.arange(9), mask=np.arange(9) < 8)])
def test_missing_values_are_called_so(graph, ax, signal):
    plot_signal(graph, signal, ax=ax)
    assert texts(ax) == ["missing"]
    np.testing.assert_array_equal(ax.collections[2].get_offsets(), graph.coordinates[:8])


@pytest.fixture
def holed():
    """A signal without nodes 2, 5 and 8; what imputes 2 and 5 reaches beyond it, and differs where it was observed."""
    signal = np.linspace(-1, 3, 9)
    signal[[2, 5, 8]] = np.nan
    filled = np.full(9, 99.0)
    filled[[2, 5, 8]] = [-4.0, 3.5, np.nan]
    return signal, filled


def test_filled_nodes_are_squares_on_the_scale_of_the_others(graph, ax, holed):
    signal, filled = holed
    plot_signal(graph, signal, imputed=filled, ax=ax, missing_label="failed sensor")
    _, nodes, squares, *_, hollow = ax.collections
    kept = [0, 1, 3, 4, 6, 7]
    np.testing.assert_array_equal(nodes.get_offsets(), graph.coordinates[kept])
    np.testing.assert_array_equal(squares.get_offsets(), graph.coordinates[[2, 5]])
    np.testing.assert_array_equal(hollow.get_offsets(), graph.coordinates[[8]])
    ax.figure.canvas.draw()
    colours = plt.get_cmap("viridis")
    np.testing.assert_allclose(nodes.get_facecolors(), colours(Normalize(-4, 3.5)(signal[kept])))
    np.testing.assert_allclose(squares.get_facecolors(), colours(Normalize(-4, 3.5)([-4.0, 3.5])))
    bar = ax.figure.axes[1]
    assert bar.get_ylim() == (-4, 3.5)
    assert texts(ax) == ["observed", "imputed", "failed sensor"]


def test_what_was_observed_is_drawn_as_it_was(graph, ax):
    plot_signal(graph, np.arange(9.0), imputed=np.full(9, 99.0), ax=ax)
    _, nodes = ax.collections
    np.testing.assert_array_equal(nodes.get_array(), np.arange(9.0))
    assert ax.get_legend() is None


def test_a_signal_that_was_filled_in_altogether_is_drawn(graph, ax):
    plot_signal(graph, np.full(9, np.nan), imputed=np.arange(9.0), ax=ax, symmetric=True, labels=list("abcdefghi"))
    squares = ax.collections[2]
    np.testing.assert_array_equal(squares.get_array(), np.arange(9.0))
    assert squares.get_clim() == (-8, 8)
    assert ax.figure.axes[1].get_ylim() == (-8, 8)


NODES = [f"node {index}" for index in range(9)]


def test_a_series_is_matched_to_nodes_by_name(weights, ax, holed):
    graph = Graph(weights, NODES, np.random.default_rng(0).uniform(size=(9, 2)))
    signal, filled = (pd.Series(values, index=NODES) for values in holed)
    plot_signal(graph, signal[::-1], imputed=filled.sample(frac=1, random_state=1), ax=ax)
    _, nodes, squares, *_ = ax.collections
    np.testing.assert_array_equal(nodes.get_offsets(), graph.coordinates[[0, 1, 3, 4, 6, 7]])
    np.testing.assert_array_equal(nodes.get_array(), holed[0][[0, 1, 3, 4, 6, 7]])
    np.testing.assert_array_equal(squares.get_array(), [-4.0, 3.5])


@pytest.mark.parametrize("index", [None, NODES[::-1]])
def test_a_series_without_names_to_match_is_in_the_order_of_the_nodes(weights, ax, index):
    """Its index only counts, or the graph has no names."""
    graph = Graph(weights, NODES if index is None else None, np.zeros((9, 2)))
    plot_signal(graph, pd.Series(np.arange(9.0), index=index), ax=ax)
    np.testing.assert_array_equal(ax.collections[1].get_array(), np.arange(9.0))


@pytest.mark.parametrize("argument", ["signal", "imputed"])
@pytest.mark.parametrize(
    ("names", "index", "message"),
    [
        (NODES, [*NODES[:8], "x"], "must .*; got 9 values, of which 'x'"),
        (None, range(8, -1, -1), r"must .*; got the index 0 to 8"),
    ],
)
def test_a_series_that_does_not_match_is_refused(weights, argument, names, index, message):
    graph = Graph(weights, names, np.zeros((9, 2)))
    given = {"signal": np.ones(9), "imputed": np.ones(9)} | {argument: pd.Series(np.ones(9), index=index)}
    with pytest.raises(ValueError, match=f"{argument} {message}"):
        plot_signal(graph, **given)
    assert plt.get_fignums() == []


def test_a_symmetric_scale_is_centred_at_zero(graph, ax):
    signal = np.linspace(-1, 3, 9)
    plot_signal(graph, signal, ax=ax, symmetric=True, colorbar=False)
    nodes = ax.collections[1]
    assert nodes.get_clim() == (-3, 3)
    assert nodes.get_cmap().name == "RdBu_r"
    plot_signal(graph, signal, ax=ax, symmetric=True, vmax=5, colorbar=False)
    assert ax.collections[3].get_clim() == (-5, 5)
    plot_signal(graph, np.zeros(9), ax=ax, symmetric=True, colorbar=False)
    assert ax.collections[5].get_clim() == (-1, 1)


def test_colours_aspect_and_the_colour_bar_can_be_chosen(graph, ax):
    plot_signal(
        graph, np.arange(9), ax=ax, cmap="cividis", vmin=-1, vmax=20, aspect=1.28, colorbar="bottom", colorbar_label="%"
    )
    nodes = ax.collections[1]
    assert nodes.get_clim() == (-1, 20)
    assert nodes.get_cmap().name == "cividis"
    assert ax.get_aspect() == 1.28
    assert ax.figure.axes[1].get_xlabel() == "%"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"coordinates": None}, r"graph must have coordinates to be drawn.*Graph\(weights, names, coordinates\)"),
        ({"coordinates": np.zeros((9, 3))}, "graph must have two coordinates per node to be drawn; got 3"),
        ({"signal": np.ones(8)}, r"signal must have shape \(n_nodes,\) with n_nodes = 9; got \(8,\)"),
        ({"signal": np.full(9, np.nan)}, "signal must have a value at some node; got NaN at all 9"),
        ({"signal": np.r_[np.inf, np.ones(8)]}, "signal must be finite or NaN; got inf"),
        ({"labels": ["a"]}, "labels must hold one text for each of the 9 nodes; got 1"),
        ({"imputed": np.ones((2, 9))}, r"imputed must have shape \(n_nodes,\) with n_nodes = 9; got \(2, 9\)"),
        ({"imputed": np.full(9, np.inf)}, "imputed must be finite or NaN; got inf"),
    ],
)
def test_bad_signal_arguments_are_named(weights, change, message):
    graph = Graph(weights, coordinates=change.get("coordinates", np.zeros((9, 2))))
    with pytest.raises(ValueError, match=message):
        plot_signal(graph, change.get("signal", np.ones(9)), imputed=change.get("imputed"), labels=change.get("labels"))
    assert plt.get_fignums() == []


# Predictions


@pytest.fixture
def prediction():
    return np.array([0.0, 5.0, -1.0]), np.array([0.5, 0.0, -1.0]), np.array([1.0, 2.0, 0.1])


def lines(ax):
    return {line.get_label(): line for line in ax.lines}


def test_intervals_stand_at_each_node_in_order_of_the_prediction(prediction, ax):
    observed, mean, std = prediction
    plot_prediction(observed, mean, std, ax=ax, names=["a", "b", "c"], level=0.95)
    assert [text.get_text() for text in ax.get_xticklabels()] == ["c", "b", "a"]
    (intervals,) = ax.collections
    low, high = norm(mean, std).interval(0.95)
    # the k-th interval belongs to the k-th value, wherever it stands
    for segment, place, bottom, top in zip(intervals.get_segments(), [2, 1, 0], low, high, strict=True):
        np.testing.assert_allclose(segment, [[place, bottom], [place, top]])
    np.testing.assert_array_equal(lines(ax)["predicted"].get_xydata(), [[2, 0.5], [1, 0], [0, -1]])
    np.testing.assert_array_equal(lines(ax)["observed"].get_xydata(), [[2, 0], [0, -1]])
    np.testing.assert_array_equal(lines(ax)["observed, outside"].get_xydata(), [[1, 5]])
    assert texts(ax) == ["95% interval", "predicted", "observed", "observed, outside"]


@pytest.mark.parametrize(("level", "label"), [(0.9, "90%"), (0.995, "99.5%"), (1 / 3, "33.33%")])
def test_an_interval_is_called_by_its_probability(prediction, ax, level, label):
    plot_prediction(*prediction, ax=ax, level=level)
    assert texts(ax)[0] == f"{label} interval"


def test_the_order_given_can_be_kept(prediction, ax):
    plot_prediction(*prediction, ax=ax, names=["a", "b", "c"], sort=False)
    assert [text.get_text() for text in ax.get_xticklabels()] == ["a", "b", "c"]
    np.testing.assert_array_equal(lines(ax)["predicted"].get_ydata(), prediction[1])


def test_one_node_over_the_years_is_a_line_with_a_band(prediction, ax):
    observed, mean, std = prediction
    plot_prediction(observed, mean, std, ax=ax, positions=[2003, 2001, 2002])
    np.testing.assert_array_equal(lines(ax)["predicted"].get_xydata(), [[2001, 0.0], [2002, -1.0], [2003, 0.5]])
    outline = ax.collections[0].get_paths()[0].vertices[:, 1]
    low, high = norm(mean, std).interval(0.9)
    assert (outline.min(), outline.max()) == pytest.approx((low.min(), high.max()))
    assert all(tick == round(tick) for tick in ax.get_xticks())


DAYS = ["2003-07-01", "2001-07-01", "2002-07-01"]
IN_DAYS = [12234, 11504, 11869]  # since 1970-01-01, with a leap day in 1972, 1976, ..., 2000


def in_oslo(days):
    return pd.DatetimeIndex(days, tz="Europe/Oslo")


@pytest.mark.parametrize(
    ("positions", "shift"),
    [
        (np.array(DAYS, dtype="datetime64[D]"), 0),
        (np.array(DAYS, dtype="datetime64[ns]"), 0),
        (pd.DatetimeIndex(DAYS), 0),
        (pd.Series(pd.to_datetime(DAYS), index=[7, 8, 9]), 0),
        ([pd.Timestamp(day) for day in DAYS], 0),
        ([dt.date.fromisoformat(day) for day in DAYS], 0),
        (tuple(dt.datetime.fromisoformat(day) for day in DAYS), 0),
        (in_oslo(DAYS), -2 / 24),  # summer time is two hours ahead of the clock that matplotlib counts by
        ([dt.datetime.fromisoformat(f"{day}T00:00+05:00") for day in DAYS], -5 / 24),
    ],
    ids=["datetime64[D]", "datetime64[ns]", "index", "series", "timestamps", "dates", "datetimes", "zone", "offset"],
)
def test_one_node_over_dates_has_an_axis_of_dates(prediction, ax, positions, shift):
    observed, mean, std = prediction
    plot_prediction(observed, mean, std, ax=ax, positions=positions)
    places = np.sort(IN_DAYS) + shift
    np.testing.assert_allclose(lines(ax)["predicted"].get_xdata(), places, rtol=EXACT)
    np.testing.assert_array_equal(lines(ax)["predicted"].get_ydata(), [0.0, -1.0, 0.5])
    outline = ax.collections[0].get_paths()[0].vertices
    assert (outline[:, 0].min(), outline[:, 0].max()) == pytest.approx((places[0], places[-1]), rel=EXACT)
    ax.figure.canvas.draw()
    labels = [text.get_text() for text in ax.get_xticklabels()]
    assert {"2002", "2003"} <= set(labels)  # not days since 1970
    ax.axvline(np.datetime64("2002-01-01"))  # dates can be added
    assert ax.lines[-1].get_xdata()[0] == np.datetime64("2002-01-01")


def test_hours_are_those_of_the_dates_own_clock(prediction, ax):
    """Midnight in Oslo, not in Greenwich, is where a day begins."""
    hours = pd.date_range("2020-07-01", periods=3, freq="12h", tz="Europe/Oslo")
    plot_prediction(*prediction, ax=ax, positions=hours)
    ax.figure.canvas.draw()
    midnights = [
        place for place, text in zip(ax.get_xticks(), ax.get_xticklabels(), strict=True) if "Jul" in text.get_text()
    ]
    utc = dt.datetime(2020, 6, 30, 22)
    assert midnights[0] == pytest.approx((utc - dt.datetime(1970, 1, 1)).total_seconds() / 86400, rel=EXACT)
    assert ax.get_xlabel() == "date (Europe/Oslo)"


@pytest.mark.parametrize(
    ("options", "xlabel"),
    [
        ({}, "node, in order of prediction"),
        ({"sort": False}, "node"),
        ({"names": ["a", "b", "c"]}, "node, in order of prediction"),
        ({"positions": [1.0, 2.0, 3.0]}, "position"),
        ({"positions": np.array(DAYS, dtype="datetime64[D]")}, "date"),
        ({"positions": pd.Index([1, 2, 3], name="year")}, "year"),
        ({"positions": pd.DatetimeIndex(DAYS, name="day of measurement")}, "day of measurement"),
        ({"xlabel": "state"}, "state"),
        ({"positions": pd.Index([1, 2, 3], name="year"), "xlabel": ""}, ""),
    ],
)
def test_axes_say_what_they_show(prediction, ax, options, xlabel):
    plot_prediction(*prediction, ax=ax, **options)
    assert (ax.get_xlabel(), ax.get_ylabel()) == (xlabel, "value")


def test_the_name_of_a_column_is_that_of_its_axis(prediction, ax):
    observed, mean, std = prediction
    plot_prediction(pd.Series(observed, name="snow (cm)"), mean, std, ax=ax)
    assert ax.get_ylabel() == "snow (cm)"
    plot_prediction(pd.Series(observed, name=3), mean, std, ax=ax, ylabel="rain (mm)")
    assert ax.get_ylabel() == "rain (mm)"


# Imputed values


STATIONS = ["Oslo", "Bergen", "Bodø"]
FIRST, INCOMPLETE = dt.date(2024, 1, 30), [1, 2, 5]  # of Bergen, over six days


@pytest.fixture
def imputed():
    """Three stations over six days, with missing values at Bergen on three days, and one at Bodø."""
    rng = np.random.default_rng(11)
    observed, std = rng.standard_normal((6, 3)), rng.uniform(0.5, 2.0, (6, 3))
    completed = observed + 0.0
    observed[INCOMPLETE, 1] = observed[0, 2] = np.nan
    return observed, completed, np.where(np.isnan(observed), std, 0.0)


def as_frames(imputed, index=None):
    days = pd.date_range(FIRST, periods=6) if index is None else index
    return [pd.DataFrame(values, index=days, columns=STATIONS) for values in imputed]


def test_one_node_has_its_observed_values_and_intervals_where_it_was_filled_in(imputed, ax):
    observed, completed, std = imputed
    plot_imputed(*imputed, 1, ax=ax, level=0.8)
    seen, filled = lines(ax)["observed"], lines(ax)["imputed"]
    np.testing.assert_array_equal(seen.get_xydata(), np.column_stack([range(6), observed[:, 1]]))
    assert (seen.get_linestyle(), filled.get_linestyle()) == ("-", "None")
    np.testing.assert_array_equal(filled.get_xydata(), np.column_stack([INCOMPLETE, completed[INCOMPLETE, 1]]))
    (intervals,) = ax.collections
    low, high = norm(completed[INCOMPLETE, 1], std[INCOMPLETE, 1]).interval(0.8)
    for segment, place, bottom, top in zip(intervals.get_segments(), INCOMPLETE, low, high, strict=True):
        np.testing.assert_allclose(segment, [[place, bottom], [place, top]], rtol=FORMULA)
    assert texts(ax) == ["observed", "imputed", "80% interval"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("signal", "node 1")
    assert all(tick == round(tick) for tick in ax.get_xticks())


@pytest.mark.parametrize("node", [1, np.int64(1), "Bergen"])
def test_a_table_has_its_own_names_and_days(imputed, ax, node):
    plot_imputed(*as_frames(imputed), node, ax=ax)
    days = 19752 + np.arange(6)  # of 30 January 2024 since 1970: 54 years of 365 days, 13 leap days, 29 days
    np.testing.assert_array_equal(lines(ax)["imputed"].get_xdata(), days[INCOMPLETE])
    np.testing.assert_array_equal(lines(ax)["imputed"].get_ydata(), imputed[1][INCOMPLETE, 1])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("date", "Bergen")
    ax.figure.canvas.draw()
    assert "Feb" in [text.get_text() for text in ax.get_xticklabels()]


def test_columns_of_tables_are_matched_by_name(imputed, ax):
    observed, completed, std = as_frames(imputed)
    plot_imputed(observed, completed[STATIONS[::-1]], std[["Bergen", "Oslo", "Bodø"]], "Bodø", ax=ax)
    np.testing.assert_array_equal(lines(ax)["imputed"].get_ydata(), imputed[1][:1, 2])
    ((bottom, top),) = (segment[:, 1] for segment in ax.collections[0].get_segments())
    assert (bottom, top) == pytest.approx(norm(imputed[1][0, 2], imputed[2][0, 2]).interval(0.9), rel=FORMULA)


def test_arrays_may_have_names_and_positions(imputed, ax):
    """The signals came in another order than their years."""
    years = pd.Index([2005, 2003, 2004, 2000, 2001, 2002], name="year")
    plot_imputed(*imputed, "Bergen", ax=ax, names=STATIONS, positions=years, ylabel="snow (cm)")
    observed, completed, _ = imputed
    np.testing.assert_array_equal(lines(ax)["observed"].get_xdata(), range(2000, 2006))
    np.testing.assert_array_equal(lines(ax)["observed"].get_ydata(), observed[[3, 4, 5, 1, 2, 0], 1])
    filled = lines(ax)["imputed"].get_xydata()
    np.testing.assert_array_equal(filled, np.column_stack([[2003, 2004, 2002], completed[INCOMPLETE, 1]]))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("year", "snow (cm)")


@pytest.mark.parametrize(
    ("index", "xlabel", "written"),
    [
        (pd.Index(list("abcdef")), "signal", list("abcdef")),
        (pd.Index(list("abcdef"), name="survey"), "survey", list("abcdef")),
        (pd.period_range("2024-01", periods=6, freq="M"), "signal", [f"2024-0{month}" for month in range(1, 7)]),
    ],
)
def test_an_index_of_names_is_written_along_the_bottom(imputed, ax, index, xlabel, written):
    plot_imputed(*as_frames(imputed, index), "Bergen", ax=ax)
    assert [text.get_text() for text in ax.get_xticklabels()] == written
    np.testing.assert_array_equal(lines(ax)["imputed"].get_xdata(), INCOMPLETE)
    assert ax.get_xlabel() == xlabel


def test_masked_entries_and_nulls_are_missing_values(imputed, ax):
    observed, completed, std = imputed
    masked = np.ma.array(completed, mask=np.isnan(observed))
    plot_imputed(masked, completed, std, 1, ax=ax)
    table = as_frames(imputed)[0].astype("Float64")
    assert table["Bergen"].isna().sum() == 3
    plot_imputed(table, completed, std, 1, ax=ax)
    for line in (ax.lines[1], ax.lines[3]):
        np.testing.assert_array_equal(line.get_ydata(), completed[INCOMPLETE, 1])


@pytest.mark.parametrize(("missing", "entries"), [(False, ["observed"]), (True, ["imputed", "90% interval"])])
def test_the_legend_names_what_is_there(imputed, ax, missing, entries):
    """A node that always reports, and one that never does."""
    observed, completed, _ = imputed
    observed[:, 0] = np.nan if missing else completed[:, 0]
    plot_imputed(observed, completed, np.ones((6, 3)), 0, ax=ax)
    assert texts(ax) == entries
    assert [len(line.get_xdata()) for line in ax.lines] == [6]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"node": 3}, "node must be an integer of at least 0 and at most 2; got 3"),
        ({"node": "Oslo"}, "node must be a position if the nodes have no names; got 'Oslo'. Pass names="),
        (
            {"node": "Bergn", "names": STATIONS},
            r"node must be one of the names; got 'Bergn'. The first of them are \['Oslo', 'Bergen', 'Bodø'\]",
        ),
        ({"names": ["a"]}, "names must hold one name for each of the 3 nodes; got 1"),
        ({"observed": np.ones(6)}, r"observed must have shape \(n_signals, n_nodes\); got \(6,\). Rows are signals"),
        ({"observed": np.ones((0, 3))}, r"observed must hold at least one value; got shape \(0, 3\)"),
        ({"observed": np.full((6, 3), np.inf)}, "observed must be finite or NaN; got inf"),
        ({"completed": np.ones((3, 6))}, "completed must have shape .* with n_signals = 6 and n_nodes = 3; got"),
        ({"completed": np.full((6, 3), np.nan)}, "completed must .*; got NaN in row 1 of column 1"),
        ({"std": np.full((6, 3), -2.0)}, "std must be at least 0; got -2.0. Pass what impute returns second"),
        ({"level": 90}, "level must lie between 0 and 1; got 90"),
        ({"positions": [1.0, 2.0]}, r"positions must have shape \(n_values,\) with n_values = 6; got \(2,\)"),
    ],
)
def test_bad_arguments_of_what_fills_in_are_named(imputed, change, message):
    arguments = dict(zip(("observed", "completed", "std"), imputed, strict=True)) | {"node": 1} | change
    with pytest.raises(ValueError, match=message):
        plot_imputed(**arguments)
    assert plt.get_fignums() == []


@pytest.mark.parametrize("position", [1, 2])
def test_tables_that_do_not_match_are_refused(imputed, position):
    name = ["observed", "completed", "std"][position]
    for change, message in [
        (lambda table: table.rename(columns={"Bergen": "Voss"}), f"{name} must have one column for each column of"),
        (lambda table: table.set_axis(list("abcdef")), f"{name} must have one row for each signal, by its label; got"),
    ]:
        tables = as_frames(imputed)
        tables[position] = change(tables[position])
        with pytest.raises(ValueError, match=message):
            plot_imputed(*tables, "Bergen")
    assert plt.get_fignums() == []


def test_rows_of_tables_are_matched_by_their_labels(imputed, ax):
    observed, completed, std = as_frames(imputed)
    plot_imputed(observed, completed[::-1], std, "Bergen", ax=ax)
    straight = plot_imputed(observed, completed, std, "Bergen")
    np.testing.assert_array_equal(ax.lines[1].get_xydata(), straight.lines[1].get_xydata())


def test_positions_of_signals_are_numbers_or_dates(imputed):
    with pytest.raises(TypeError, match="positions must be numbers or dates; got text"):
        plot_imputed(*imputed, 1, positions=list("abcdef"))


# Calibration


@pytest.fixture
def forecasts():
    rng = np.random.default_rng(8)
    mean, std = rng.standard_normal((25, 8)), rng.uniform(0.5, 2.0, (25, 8))
    return mean + 1.3 * std * rng.standard_normal((25, 8)), mean, std


@pytest.fixture
def pair():
    return plt.subplots(1, 2)[1]


def test_the_bars_are_the_density_of_the_pit(forecasts, pair):
    observed, mean, std = forecasts
    left, right = plot_calibration(*forecasts, axes=pair, n_bins=5)
    assert plot_calibration(*forecasts)[0].figure is not left.figure
    assert (left, right) == tuple(pair)
    shares = [
        np.mean((low < norm(mean, std).cdf(observed)) & (norm(mean, std).cdf(observed) <= low + 0.2))
        for low in (0.0, 0.2, 0.4, 0.6, 0.8)
    ]
    assert [bar.get_x() for bar in left.patches[:5]] == pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8])
    assert [bar.get_height() for bar in left.patches[:5]] == pytest.approx(np.array(shares) / 0.2, rel=EXACT)
    assert (left.get_xlabel(), left.get_ylabel()) == (
        "predicted probability of a lower value (PIT)",
        "density of observed values",
    )


def test_the_curve_is_the_share_inside_each_interval(forecasts, pair):
    observed, mean, std = forecasts
    _, right = plot_calibration(*forecasts, axes=pair)
    diagonal, curve = right.lines
    np.testing.assert_array_equal(diagonal.get_xydata(), [[0, 0], [1, 1]])
    levels, covered = curve.get_data()
    assert (levels[0], levels[-1]) == (0.01, 0.99)
    for level, share in zip(levels, covered, strict=True):
        low, high = norm(mean, std).interval(level)
        assert share == np.mean((low <= observed) & (observed <= high))
    assert np.mean(covered < levels) > 0.9  # deviations are a third too small, and so are the intervals
    low, high = norm(mean, std).interval(0.9)
    inside = np.mean((low <= observed) & (observed <= high))
    assert texts(right) == [f"observed ({inside:.0%} in 90% intervals)"]
    assert (right.get_xlabel(), right.get_ylabel()) == (
        "probability of the interval",
        "share of observed values inside",
    )


# Forecasts


NAMES = list("abcd")
ANGLES = 2 * np.pi * np.arange(4) / 4
RING = Graph.from_edges(
    [(node, (node + 1) % 4) for node in range(4)], names=range(4), coordinates=np.c_[np.cos(ANGLES), np.sin(ANGLES)]
)
NAMED = Graph(RING.weights, NAMES, RING.coordinates)
INDEX = pd.date_range("2020-01-01", periods=90)
VALUES = np.cumsum(np.random.default_rng(0).standard_normal((90, 4)), axis=0)
TABLE = pd.DataFrame(VALUES, INDEX, NAMES)


@pytest.fixture(scope="module")
def model() -> GraphGPForecaster:
    return GraphGPForecaster(NAMED, components=[MaternComponent(0.5)]).fit(TABLE[:80][NAMES[::-1]])


def test_a_fan_has_the_forecast_the_past_and_what_came(model):
    ax = plot_forecast(model, "b", 5, past=TABLE[:80], later=TABLE[80:])
    assert texts(ax) == ["90% interval", "50% interval", "forecast", "observed", "later"]
    mean, std = model.predict(5, return_std=True)
    forecast, observed, came = ax.lines
    np.testing.assert_allclose(forecast.get_ydata(), mean["b"])
    np.testing.assert_allclose(observed.get_ydata(), TABLE["b"][60:80])
    np.testing.assert_allclose(came.get_ydata(), TABLE["b"][80:85])
    assert np.diff(np.concatenate([observed.get_xdata(), forecast.get_xdata()])).tolist() == [1.0] * 24
    np.testing.assert_allclose(came.get_xdata(), forecast.get_xdata())
    top = ax.collections[0].get_paths()[0].vertices[:, 1].max()
    np.testing.assert_allclose(top, (mean["b"] + 1.6448536 * std["b"]).max(), rtol=1e-6)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("date", "b")


def test_rows_of_arrays_are_counted_up_to_the_forecast():
    counted = GraphGPForecaster(components=[MaternComponent(0.5)]).fit(VALUES[:80])
    ax = plot_forecast(counted, 2, 3, past=VALUES[:80], later=VALUES[80:])
    forecast, observed, came = ax.lines
    assert forecast.get_xdata().tolist() == came.get_xdata().tolist() == [80, 81, 82]
    assert observed.get_xdata()[-1] == 79
    assert ax.get_ylabel() == "node 2"


def test_a_map_has_the_last_of_the_steps_at_the_nodes_places(model):
    for which, place in (("mean", 0), ("std", 1)):
        ax = plot_forecast_map(model, 2, which=which)
        (nodes,) = [one for one in ax.collections if len(one.get_offsets()) == 4]
        np.testing.assert_allclose(nodes.get_offsets(), NAMED.coordinates)
        expected = model.predict(2, return_std=True)[place].iloc[-1][NAMES]
        np.testing.assert_allclose(nodes.get_array(), expected)


def test_rates_are_shown_as_time_scales_with_bands(model):
    ax = plot_rates(model)
    points, rates = model.response(which="rate")
    np.testing.assert_allclose(ax.lines[0].get_xydata(), np.c_[points, 1 / rates[0]])
    assert texts(ax)[0] == "Matern 1/2"
    power = plot_rates(model, which="power")
    np.testing.assert_allclose(power.lines[0].get_ydata(), model.response(which="power")[1][0])
    assert len(power.collections) == 1


def test_backtests_are_drawn_by_horizon(model):
    backtest = model.backtest_
    ax = plot_backtest(backtest)
    assert [line.get_label() for line in ax.lines] == list(backtest.rmse)
    np.testing.assert_allclose(ax.lines[1].get_xydata(), np.c_[backtest.horizons, backtest.rmse["persistence"]])
    covered = plot_backtest(backtest, what="coverage")
    np.testing.assert_allclose(covered.lines[1].get_ydata(), backtest.coverage)
    with pytest.raises(ValueError, match="what must be one of 'rmse', 'crps', 'coverage'"):
        plot_backtest(backtest, what="error")
    with pytest.raises(ValueError, match="node must be one of the names"):
        plot_forecast(model, "z", 2)


# Errors


ONE, TWO, UNEQUAL = 3 * ([1.0],), 3 * ([1.0, 2.0],), ([1.0, 2.0], [1.0], [1.0, 1.0])
MIXED, NOT_A_TIME = [in_oslo(DAYS)[0], pd.Timestamp(DAYS[1])], np.array(["NaT"], dtype="datetime64[D]")
WRONG_PREDICTIONS = [
    (UNEQUAL, {}, r"mean must have shape \(n_values,\) with n_values = 2; got \(1,\)"),
    (([], [], []), {}, "observed must hold at least one value; got none"),
    (([1.0], [1.0], [1.0, 1.0]), {}, r"std must have shape \(n_values,\) with n_values = 1"),
    (ONE, {"names": ["a", "b"]}, "names must hold one name for each of the 1 values; got 2"),
    (ONE, {"positions": [1.0, 2.0]}, r"positions must have shape \(n_values,\)"),
    (ONE, {"positions": [dt.date(2001, 1, 1)] * 2}, r"positions must have shape \(n_values,\)"),
    (ONE, {"positions": NOT_A_TIME}, "positions must be complete; got NaT at index 0. Remove"),
    (TWO, {"positions": [MIXED[0], pd.NaT]}, "positions must be complete; got NaT at index 1"),
    (TWO, {"positions": MIXED}, "positions must all have a time zone or none; got both.*utc=True"),
    (ONE, {"level": 1.5}, "level must lie between 0 and 1; got 1.5"),
]
WRONG_FORECASTS = [
    (UNEQUAL, {}, r"mean must have the shape of observed, \(2,\); got \(1,\)"),
    (([1.0], [1.0], [0.0]), {}, "std must be above zero at observed values"),
    (([np.inf], [1.0], [1.0]), {}, "observed must be finite or NaN; got inf"),
    (([np.nan], [1.0], [1.0]), {}, "observed must hold at least one value; got NaN in all of"),
    (ONE, {"n_bins": 1}, "n_bins must be an integer of at least 2; got 1"),
    (ONE, {"axes": [None]}, "axes must be a pair, for the histogram and the coverage; got 1"),
]
WRONG = [
    *((plot_prediction, *one) for one in WRONG_PREDICTIONS),
    *((plot_calibration, *one) for one in WRONG_FORECASTS),
]


@pytest.mark.parametrize(("plot", "arguments", "options", "message"), WRONG)
def test_bad_arguments_are_named(plot, arguments, options, message):
    with pytest.raises(ValueError, match=message):
        plot(*arguments, **options)
    assert plt.get_fignums() == []


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        (["2001-01-01"], r"positions must be numbers or dates; got text \('2001-01-01'\).*pandas.to_datetime"),
        (pd.Series(["2001-01-01"]), r"positions must be numbers or dates; got text"),
        ([dt.timedelta(1)], "positions must be an array of real numbers; got"),
        ([[1.0], [1.0, 2.0]], "positions must be an array of real numbers; got list"),
    ],
)
def test_positions_that_are_neither_numbers_nor_dates_are_named(positions, message):
    with pytest.raises(TypeError, match=message):
        plot_prediction(*ONE, positions=positions)
    assert plt.get_fignums() == []
