"""What a report tells: numbers against the dense truth, words against numbers, and a page in which names are names."""

import base64
import dataclasses
import json
import re
import sys
from functools import partial

import numpy as np
import pytest
from scipy.stats import norm
from settings import PAPER
from sklearn.gaussian_process.kernels import RBF

import oracle
from spectralgp import (
    Chebyshev,
    Graph,
    GraphGPRegressor,
    Identity,
    LocalAverage,
    Polynomial,
    Sqp,
    Stacking,
    condition,
    graph_gp,
    load,
)
from spectralgp._basics.tables import listing
from spectralgp.estimators.answers import without_entries
from spectralgp.learning import baselines
from spectralgp.learning.baselines import PredictionErrors
from spectralgp.scores import Share, calibration_of, coverage, crps, mean_log_density, root_mean_square_error
from spectralgp.show.curves import FILTER_NAMES, filter_curve
from spectralgp.show.report import numbers, words
from spectralgp.show.report.figures import MAX_NODES, evenly_spaced, filter_figure, map_coordinates
from spectralgp.show.report.numbers import FilterBands, NewSignals, SignalCounts, VarianceShares, signal_report
from spectralgp.show.report.page import write_page
from spectralgp.show.report.shapes import shape_of
from tolerances import EXACT, FORMULA

NASTY = [
    '<script>alert("1")</script>',
    "a & b",
    "</script><!--",
    "\u2028 line \ud800",  # with half a surrogate pair
    "\"quoted\" 'name'",
    "%{text} $x$",
    "<b>bold",
]


def problem(n_signals=12, n_nodes=7, seed=0):
    rng = np.random.default_rng(seed)
    weights = oracle.random_weights(n_nodes, seed)
    X = rng.uniform(-2, 2, (n_signals, 1))
    node_covariance = oracle.from_filter(np.linalg.inv(np.eye(n_nodes) + oracle.laplacian(weights)))
    Y = 3 + oracle.draw(oracle.rbf(X, X), node_covariance, 0.05, rng)
    return weights, X, Y


def gathered(model, held_out=None, n_empty=0, **options):
    names = [str(node) for node in range(model.graph_.n_nodes)]
    labels = tuple(f"row {row}" for row in range(model.posterior_.parts[0][1].signals.shape[0]))
    return signal_report(model, names, labels, n_empty, held_out, **options)


def data_of(page):
    return json.loads(re.search(r'id="report-data">(.*?)</script>', page, re.DOTALL).group(1))


def floats(text):
    return np.frombuffer(base64.b64decode(text), dtype="<f4")


@pytest.fixture(scope="module")
def paper():
    """The paper's model, and the dense covariance of its signals."""
    weights, X, Y = problem()
    model = GraphGPRegressor(Graph(weights), Polynomial(2), RBF(1.0, "fixed"), **PAPER).fit(X, Y)
    prior = model.fits_[0].model
    laplacian = oracle.laplacian(weights, prior.spectrum.laplacian, prior.spectrum.scaled)
    values, vectors = np.linalg.eigh(laplacian)
    nodes = (vectors * model.response(np.clip(values, 0, prior.spectrum.upper)) ** 2) @ vectors.T
    dense = oracle.covariance(oracle.rbf(X, X), nodes, model.noise_variance_)
    return model, X, Y, dense, values, vectors


@pytest.fixture(scope="module")
def told(paper):
    """What a report tells of it."""
    return gathered(paper[0])


# -------------------------------------------------------------------------------------------------------- numbers


def test_predictions_of_training_signals_leave_each_out(paper):
    model, _, Y, dense, _, _ = paper
    found = gathered(model).predictions
    assert found.source == "left out"
    assert oracle.relative_error(found.observed, Y) < EXACT
    centred = Y - Y.mean()
    for row in (0, 5):
        places = np.zeros(Y.shape, dtype=bool)
        places[row] = True
        mean, covariance, _ = oracle.leave_out(centred, dense, places)
        assert oracle.relative_error(found.mean[row], mean + Y.mean()) < FORMULA
        assert oracle.relative_error(found.std[row], np.sqrt(np.diag(covariance))) < FORMULA
        others = np.delete(Y, row, axis=0).mean(axis=0)
        assert oracle.relative_error(found.baseline[row], others) < EXACT


def test_shares_of_the_variance_are_those_of_the_covariance(paper):
    model, _, Y, dense, _, _ = paper
    found = gathered(model)
    noise = model.noise_variance_ / np.mean(np.diag(dense))
    assert found.variance.noise == pytest.approx(noise, rel=FORMULA)
    assert found.variance.inputs == pytest.approx(1 - noise, rel=FORMULA)
    assert (found.variance.neighbours, found.variance.carry) == (0.0, 0.0)
    errors = [_entry_error(Y - Y.mean(), dense, place) for place in range(Y.size)]
    distances = np.square(found.predictions.observed - found.predictions.baseline).sum()
    assert found.variance.with_neighbours == pytest.approx(1 - np.sum(np.square(errors)) / distances, rel=FORMULA)
    left = np.square(found.predictions.observed - found.predictions.mean).sum()
    assert found.variance.predicted == pytest.approx(1 - left / distances, rel=FORMULA)


def _entry_error(centred, dense, place):
    mean, _, _ = oracle.leave_out(centred, dense, np.arange(centred.size) == place)
    return float(centred.ravel()[place] - mean[0])


def test_eigenvalues_and_energy_are_those_of_the_dense_transform(paper):
    model, _, Y, _, values, vectors = paper
    bands = gathered(model).bands
    energies = np.square((Y - Y.mean()) @ vectors).sum(axis=0)
    inside = np.clip(values, 0, bands.edges[-1])
    assert oracle.relative_error(bands.eigenvalue_shares, np.histogram(inside, bands.edges)[0] / len(values)) < EXACT
    expected = np.histogram(inside, bands.edges, weights=energies)[0] / energies.sum()
    assert oracle.relative_error(bands.energy_shares, expected) < FORMULA
    (learnt,) = bands.filters.values()
    grid = learnt.frequencies
    assert bands.edges[-1] == grid[-1] == pytest.approx(values[-1])
    assert (grid.size, bands.edges.size, bands.laplacian) == (200, 31, "scaled combinatorial Laplacian")
    mean, std = model.response(grid, return_std=True)
    np.testing.assert_array_equal(learnt.values, mean)
    np.testing.assert_array_equal(learnt.high, mean + std)


def test_scores_are_those_of_the_predictions(paper):
    model = paper[0]
    numbers = gathered(model)
    found = numbers.predictions
    values = found.observed, found.mean, found.std
    assert numbers.errors.rmse == root_mean_square_error(*values[:2])
    assert numbers.errors.crps == np.mean(crps(*values))
    assert numbers.errors.log_density == mean_log_density(*values)
    assert numbers.errors.n_values == found.observed.size
    assert numbers.calibration.covered_at(0.9) == coverage(*values, 0.9)


def test_held_out_signals_are_judged_as_given():
    weights, X, Y = problem(20)
    model = GraphGPRegressor(Graph(weights), Polynomial(1)).fit(X[:14], Y[:14])
    mean, std = model.predict(X[14:], return_std=True, include_noise=True)
    labels = [f"row {row}" for row in range(6)]
    found = gathered(model, NewSignals(labels, X[14:], Y[14:], model.posterior_.at(X[14:])))
    assert (found.predictions.source, found.predictions.labels) == ("held out", tuple(labels))
    np.testing.assert_allclose(found.predictions.std, std, rtol=EXACT)
    assert found.calibration.pit_mean.value == pytest.approx(norm(mean, std).cdf(Y[14:]).mean(), rel=FORMULA)
    densities = model.log_predictive_density(X[14:], Y[14:], joint=False)
    np.testing.assert_allclose(found.predictions.log_density, densities, rtol=EXACT)
    np.testing.assert_allclose(found.predictions.baseline, Y[:14].mean(axis=0), rtol=EXACT)
    assert found.forecasts[0].log_density == pytest.approx(np.mean(densities))
    assert found.errors.rmse == pytest.approx(np.sqrt(np.mean((Y[14:] - mean) ** 2)), rel=EXACT)
    errors, distances = np.sum((Y[14:] - mean) ** 2), np.sum((Y[14:] - Y[:14].mean(axis=0)) ** 2)
    assert found.variance.predicted == pytest.approx(1 - errors / distances, rel=FORMULA)
    assert found.variance.with_neighbours is None


def test_columns_and_names_come_in_the_order_of_the_graph(tmp_path):
    pd = pytest.importorskip("pandas")
    weights, X, Y = problem(20)
    names = [f"n{node}" for node in range(7)]
    graph = Graph(weights, names=names)
    table = pd.DataFrame(Y, columns=names, index=[f"day {row}" for row in range(20)])
    straight = GraphGPRegressor(graph, Polynomial(1)).fit(X[:14], table[:14])
    turned = GraphGPRegressor(graph, Polynomial(1)).fit(X[:14], table[:14][names[::-1]])
    pages = []
    for model, columns in ((straight, names), (turned, names[::-1])):
        path = model.report(tmp_path / "report.html", X[14:], table[14:][columns])
        pages.append(data_of(path.read_text(encoding="utf-8")))
    assert pages[0] == pages[1]
    assert pages[0]["names"] == names
    assert pages[0]["labels"] == [f"day {row}" for row in range(14, 20)]
    np.testing.assert_allclose(floats(pages[0]["arrays"]["observed"]).reshape(6, 7), Y[14:], rtol=1e-6)


def test_repeated_and_empty_signals_and_missing_values_are_counted():
    weights, X, Y = problem()
    X, Y = np.vstack([X[:1], X, [[9.0]]]), np.vstack([Y[:1], Y, np.full((1, 7), np.nan)])
    Y[5, 2] = np.nan
    Y[:, 6] = np.nan
    model = GraphGPRegressor(Graph(weights), Polynomial(1)).fit(X, Y)
    numbers = gathered(model, n_empty=1)
    assert numbers.counts == SignalCounts(13, repeated=1, empty=1, missing=14, unseen=1)
    assert numbers.errors.n_values == 13 * 7 - 14
    assert np.isnan(numbers.predictions.baseline[:, 6]).all()


def test_all_models_that_were_tried_are_told_best_first():
    weights, X, Y = problem(20)
    model = GraphGPRegressor(Graph(weights), Stacking([Polynomial(1), Identity()], n_draws=0)).fit(X, Y)
    numbers = gathered(model)
    assert [one.score for one in numbers.tried] == sorted((one.score for one in numbers.tried), reverse=True)
    weight_of = {one.name: one.weight for one in numbers.tried}
    assert sorted(weight_of.values()) == pytest.approx(sorted(model.kernel_weights_))
    assert {name for name, *_ in numbers.members} == set(weight_of)
    assert [weight for _, weight, _ in numbers.members] == sorted(model.kernel_weights_, reverse=True)
    chosen = GraphGPRegressor(Graph(weights)).fit(X, Y)
    assert len(chosen.learnt_.tried) > len(chosen.fits_)
    assert sum(one.weight for one in chosen.learnt_.tried) == pytest.approx(1)
    assert any("normalized" in one.name for one in chosen.learnt_.tried)


def test_scores_of_tried_models_are_held_out_densities():
    """With everything fixed folds learn nothing, so that a score is the mean density of signals given other folds."""
    weights, X, Y = problem(9)
    graph = Graph(weights)
    kernels = [Polynomial.from_coefficients(c, fixed=True) for c in ([1.0, -0.5], [0.3, 0.3])]
    options = {**PAPER, "center": None, "scale": None}
    model = GraphGPRegressor(
        graph, Stacking(kernels, n_folds=9, n_draws=0), RBF(1.0, "fixed"), noise_variance=0.1, **options
    ).fit(X, Y)
    for kernel, tried in zip(kernels, model.learnt_.tried, strict=True):
        prior = graph_gp(graph, kernel, RBF(1.0), 0.1)
        densities = []
        for row in range(9):
            others = np.delete(np.arange(9), row)
            densities.append(condition(prior, X[others], Y[others]).at(X[[row]]).log_density(Y[[row]]))
        assert tried.score == pytest.approx(np.mean(densities), rel=1e-6)


def test_a_large_graph_with_missing_values_says_that_its_predictions_are_the_fit(tmp_path):
    weights, X, Y = problem(10, 12)
    Y[2, 3] = np.nan
    settings = {"spectrum": Chebyshev(n_probes=8), "residual": None, "center": "global"}
    model = GraphGPRegressor(Graph(weights), Polynomial(1), RBF(1.0, "fixed"), **settings).fit(X, Y)
    numbers = gathered(model)
    assert numbers.predictions.source == "fitted"
    mean, std = model.predict(X, return_std=True, include_noise=True)
    assert oracle.relative_error(numbers.predictions.mean, mean) < FORMULA
    assert oracle.relative_error(numbers.predictions.std, std) < FORMULA
    assert "not checked" in " ".join(words.cautions(numbers))
    page = model.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "coverage is no evidence" in page


@pytest.mark.parametrize(
    "options",
    [
        {"graph_kernel": LocalAverage(), "residual": None},
        {"graph_kernel": Polynomial(1), "input_kernel": "precomputed"},
        {"graph_kernel": Polynomial(2), "spectrum": Chebyshev(n_probes=8)},
        {"graph": None},
    ],
    ids=["local average", "precomputed", "chebyshev", "no graph"],
)
def test_every_kind_of_model_has_a_report(tmp_path, options):
    weights, X, Y = problem()
    given = oracle.rbf(X, X) + 1e-8 * np.eye(len(X)) if "input_kernel" in options else X
    model = GraphGPRegressor(**{"graph": Graph(weights), **options}).fit(given, Y)
    numbers = gathered(model)
    left = model.leave_one_out()
    assert oracle.relative_error(numbers.predictions.mean, left.mean) < EXACT
    assert oracle.relative_error(numbers.predictions.std, left.std) < EXACT
    shares = numbers.variance
    assert shares.inputs + shares.neighbours + shares.carry + shares.noise == pytest.approx(1)
    assert numbers.bands.eigenvalue_shares.sum() == pytest.approx(1)
    assert bool(numbers.bands.filters) == (not isinstance(options.get("graph_kernel"), LocalAverage))
    assert "<h2" in model.report(tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_model_without_inputs_has_a_report_of_new_signals(tmp_path):
    weights, _, Y = problem(20)
    model = GraphGPRegressor(Graph(weights), Polynomial(1)).fit(None, Y[:15])
    page = model.report(tmp_path / "report.html", Y=Y[15:]).read_text(encoding="utf-8")
    assert len(data_of(page)["labels"]) == 5
    assert "The signal filter g, of the part shared by neighbours, is" in page
    assert "It has no inputs." in page
    assert "inputs explain" not in page


def test_a_model_of_changes_is_said_to_predict_from_the_signal_before(tmp_path):
    """The page once said of "no change" that it has no inputs, since its kernel has none."""
    weights, _, _ = problem(20)
    steps, noise = np.split(np.random.default_rng(0).standard_normal((80, len(weights))), 2)
    walk = 0.5 * steps.cumsum(axis=0) + noise
    X, Y = walk[:29], walk[1:30]
    model = GraphGPRegressor(Graph(weights)).fit(X, Y)
    (_, plain), (_, heaviest) = sorted(model.posterior_.parts, key=lambda part: part[0])
    assert heaviest.prior.input_kernel.is_identity
    assert plain.transformation is None
    numbers = gathered(model, columns=np.arange(7))
    assert (numbers.inputs, numbers.has_inputs, numbers.variance.of) == (("the signal before",), False, "changes")
    # what any of the models has is told, though the heaviest has neither
    assert list(numbers.bands.filters) == list(numbers.bands.shapes) == ["signal", "carry"]
    ours, *others = numbers.forecasts
    expected = baselines.prediction_errors(
        baselines.baselines_of(X, Y, np.arange(7), 1.0), (X, Y)
    )  # of inputs as they are
    assert [one.name for one in others] == ["node means", "no change", "ridge regression"]
    assert [one.rmse for one in others] == pytest.approx([one.rmse for one in expected])
    assert ours.rmse == pytest.approx(numbers.errors.rmse)
    page = model.report(tmp_path / "report.html", walk[29:-1], walk[30:]).read_text(encoding="utf-8")
    assert "from the signal before." in page
    assert "It has no inputs" not in page


# ------------------------------------------------------------------------------------------------ what comes first


def test_errors_and_biases_are_those_of_the_nodes(told):
    found = values = told.predictions
    errors = values.observed - values.mean
    assert oracle.relative_error(found.node_errors, np.sqrt(np.mean(errors**2, axis=0))) < EXACT
    assert oracle.relative_error(found.node_biases, errors.mean(axis=0)) < EXACT
    assert told.bias.value == pytest.approx(errors.mean(), rel=EXACT)
    by_signal = errors.mean(axis=1)
    assert told.bias.standard_error == pytest.approx(by_signal.std(ddof=1) / np.sqrt(len(errors)), rel=EXACT)
    (said,) = words.worst_nodes(told.names, found.node_errors)
    worst = np.argsort(-found.node_errors)
    assert said.startswith(f"Errors are largest at {worst[0]} ({found.node_errors[worst[0]]:.3g}), {worst[1]} (")
    assert said.endswith(f"and smallest at {worst[-1]} ({found.node_errors[worst[-1]]:.3g}).")
    assert words.worst_nodes(["one"], np.ones(1)) == words.worst_nodes("ab", np.full(2, np.nan)) == []
    assert found.spread == pytest.approx(np.sqrt(np.mean(values.std**2)), rel=EXACT)
    first = " ".join(words.accuracy_words(told))
    assert f"are typically off by {told.errors.rmse:.3g} (root mean square); those by node means by " in first
    inside = [words.percent(coverage(values.observed, values.mean, values.std, level)) for level in (0.5, 0.8, 0.9)]
    assert f"{listing(inside)} of 84 values lie inside their intervals of 50%, 80% and 90%." in first


def test_correlations_of_joined_nodes_are_those_of_the_covariance(paper, told, monkeypatch):
    model, _, _, _, values, vectors = paper
    nodes = (vectors * model.response(np.clip(values, 0, model.spectrum_.upper)) ** 2) @ vectors.T
    deviations = np.sqrt(np.diag(nodes))
    correlations = nodes / np.outer(deviations, deviations)
    joined = correlations[model.graph_.weights.toarray() > 0]
    expected, found = (np.median(joined), np.median(correlations[np.triu_indices(7, 1)])), told
    assert found.correlations == pytest.approx(expected, rel=FORMULA)
    assert f"gives neighbours a correlation of {expected[0]:.2f}" in words.neighbour_words(found)[0]
    monkeypatch.setattr(numbers, "MOST_CORRELATED", 6)
    assert gathered(model).correlations is None


def test_missing_values_are_shown_with_what_fills_them(tmp_path):
    weights, X, Y = problem(20)
    holed = np.where(np.random.default_rng(0).random(Y.shape) < 0.15, np.nan, Y)
    model = GraphGPRegressor(Graph(weights), Polynomial(2)).fit(X[:14], holed[:14])
    for rows, given in ((slice(0, 14), ()), (slice(14, 20), (X[14:], holed[14:]))):
        data = data_of(model.report(tmp_path / "report.html", *given).read_text(encoding="utf-8"))
        completed, std = model.impute(X[rows], holed[rows])
        missing = np.isnan(holed[rows])
        assert data["imputed"] == np.flatnonzero(missing).tolist()
        np.testing.assert_allclose(floats(data["arrays"]["imputedMean"]), completed[missing], rtol=1e-5)
        np.testing.assert_allclose(floats(data["arrays"]["imputedStd"]), std[missing], rtol=1e-5)
        assert data["start"]["node"] == np.argmax(missing.sum(axis=0))


def test_training_signals_are_recognised(tmp_path):
    """They are never called held out: their fit would be taken for a forecast."""
    weights, X, Y = problem(20)
    model = GraphGPRegressor(Graph(weights), Polynomial(1)).fit(X[:14], Y[:14])
    plain = model.report(tmp_path / "plain.html").read_text(encoding="utf-8")
    page = model.report(tmp_path / "all.html", X[3:8], Y[3:8]).read_text(encoding="utf-8")
    assert "The signals given are training signals." in page
    assert data_of(page) == data_of(plain)
    assert not any("held out" in one or "held-out" in one for one in (plain, page))
    page = model.report(tmp_path / "some.html", X[10:], Y[10:]).read_text(encoding="utf-8")
    assert "4 of the 10 signals given are training signals, and left out here." in page
    assert data_of(page)["labels"] == [f"row {row}" for row in range(4, 10)]
    np.testing.assert_allclose(floats(data_of(page)["arrays"]["observed"]).reshape(6, 7), Y[14:], rtol=1e-6)
    new = model.report(tmp_path / "new.html", X[14:], Y[14:]).read_text(encoding="utf-8")
    assert "training signals, which" not in new
    assert words.training_note(1, 1).startswith("The signal given is a training signal. ")
    assert words.training_note(1, 5).startswith("1 of the 5 signals given is a training signal, ")


def test_dates_of_training_signals_are_kept(tmp_path):
    """In the report of leave-one-out too, in files, and with more signals."""
    pd = pytest.importorskip("pandas")
    weights, X, Y = problem(20)
    table = pd.DataFrame(Y, index=pd.date_range("2018-04-01", periods=20))
    table.iloc[2] = np.nan
    model = GraphGPRegressor(Graph(weights), Polynomial(1)).fit(X[:14], table[:14])
    labels = [f"2018-04-{day:02d}" for day in range(1, 15) if day != 3]
    page = model.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert data_of(page)["labels"] == labels
    assert "00:00" not in json.dumps(data_of(page)["labels"])
    model.save(tmp_path / "model.sgp")
    assert load(tmp_path / "model.sgp").report(tmp_path / "again.html").read_text(encoding="utf-8") == page
    more = model.condition_on(X[14:], table[14:]).report(tmp_path / "more.html").read_text(encoding="utf-8")
    assert data_of(more)["labels"] == [*labels, *(f"2018-04-{day}" for day in range(15, 21))]
    counted = GraphGPRegressor(Graph(weights), Polynomial(1)).fit(X[:14], Y[:14]).condition_on(X[14:], table[14:])
    found = data_of(counted.report(tmp_path / "counted.html").read_text(encoding="utf-8"))["labels"]
    assert found[12:15] == ["row 12", "row 13", "2018-04-15"]


# ------------------------------------------------------------------------------------------------------- baselines


def walk(n_signals, n_nodes=6):
    """Signals that change little from one to the next, which they are given as inputs; columns have names."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(4)
    values = 100 + 20 * rng.standard_normal(n_nodes) + np.cumsum(rng.standard_normal((n_signals + 1, n_nodes)), axis=0)
    names = [f"n{node}" for node in range(n_nodes)]
    graph = Graph.from_edges([(names[node], names[node + 1]) for node in range(n_nodes - 1)])
    table = pd.DataFrame(values, columns=names)
    return graph, table[:-1].reset_index(drop=True), table[1:].reset_index(drop=True)


def cells(page, name):
    """Cells of the rows of that name, in the order of the tables."""
    rows = re.findall(rf'<th scope="row">{re.escape(name)}</th>((?:<td>[^<]*</td>)+)', page)
    return [re.findall(r"<td>([^<]*)</td>", row) for row in rows]


@pytest.mark.parametrize("kind", ["complete", "missing", "counts", "held-out counts"])
def test_the_figures_of_sentences_are_those_of_tables(kind, tmp_path):
    """Of counts too, whose intervals are their own: means and deviations say another share."""
    weights, X, Y = problem(20)
    if kind == "missing":
        Y[3, 2] = Y[7:10, 4] = np.nan
    is_count = kind.endswith("counts")
    Y = np.random.default_rng(0).poisson(np.exp(0.5 * Y - 1)).astype(float) if is_count else Y
    model = GraphGPRegressor(Graph(weights), Polynomial(1), likelihood="poisson" if is_count else "gaussian")
    model.fit(X[:14], Y[:14])
    new = (X[14:], Y[14:]) if kind == "held-out counts" else ()
    page = model.report(tmp_path / "report.html", *new).read_text(encoding="utf-8")
    inside = re.search(r"<li>([\d%, andlesmor]+) of \d+ values lie inside their intervals of 50%, 80% and 90%", page)
    ours = cells(page, "learnt model")[0]
    of_levels = [cells(page, level)[0][0].split()[0] for level in ("50%", "80%", "90%")]
    assert ours[3:] == of_levels
    said = [int(one) for one in re.findall(r"(\d+)%", inside[1])]  # of digits that tables have no more
    np.testing.assert_allclose(said, [float(one[:-1]) for one in of_levels], atol=0.5 + 0.05)
    off = re.search(r"typically off by ([\d.e+-]+) \(root", page)[1]
    for cell in (ours[0], cells(page, "root mean square error")[0][0]):
        assert float(off) == pytest.approx(float(cell), abs=0.5 * 10.0 ** -len(off.partition(".")[2]) * 1.1)
    (drawn,) = (one for one in data_of(page)["figures"]["scatter-plot"]["data"] if one["name"].startswith("inside"))
    shown = len(drawn["text"]) / int(cells(page, "values predicted")[0][0])
    assert f"{shown:.1%}" == of_levels[2]
    normal = [f"{coverage(*_left_out(model, Y[:14]), level):.1%}" for level in (0.5, 0.8, 0.9)]
    assert (normal == of_levels) == (not is_count)


def _left_out(model, Y):
    left = model.leave_one_out("signal")
    return Y, left.mean, left.std


def test_where_a_baseline_is_better_the_report_says_so_first(tmp_path):
    """Columns are matched by name, whatever their order is."""
    graph, X, Y = walk(40)
    turned = list(Y.columns[::-1])
    model = GraphGPRegressor(graph, Polynomial(1), carry=None, residual=None).fit(X[:30][turned], Y[:30])
    page = model.report(tmp_path / "report.html", X[30:][turned], Y[30:]).read_text(encoding="utf-8")
    first, rest = page[page.index('<h2 id="glance-title">') :].split('<h2 id="map-title">')
    error = root_mean_square_error(Y[30:], X[30:])
    assert "<li>The model predicts signals, a value at each of 6 nodes, from the signal before.</li>" in first
    assert f"those by no change by {error:.3g}" in first
    assert re.search(r"</li><li>No change has a lower error ", first)
    assert f"(RMSE {error:.4g} against " in first
    assert "Predictions of signals" in first
    assert "frequency" not in first  # nor a filter
    assert "Certificates" in rest.split('<h2 id="appendix-title">')[1]


def test_imputations_are_of_entries_that_were_hidden():
    """From the model too, whose hyperparameters stay: those of a posterior that never had them."""
    weights, X, Y = problem(20)
    rng = np.random.default_rng(0)
    holed = np.where(rng.random(Y.shape) < 0.15, np.nan, Y)
    model = GraphGPRegressor(
        Graph(weights), Polynomial(2), RBF(1.0, "fixed"), **PAPER | {"center": None, "scale": None}
    )
    model.fit(X, holed)
    found = gathered(model, without=partial(without_entries, model.learnt_)).imputations
    assert [one.name for one in found] == ["learnt model", "neighbours on the graph", "iterative imputer"]
    out = baselines.hidden_at_once(holed)
    assert out.any()
    posterior = condition(model.fits_[0].model, X, np.where(out, np.nan, holed))
    mean = posterior.imputed(np.arange(20)).values
    assert found[0].rmse == pytest.approx(root_mean_square_error(Y[out], mean[out]), rel=FORMULA)
    assert found[0].n_values == out.sum()
    new = NewSignals([str(row) for row in range(20)], X, holed, model.posterior_.at(X))
    assert len(gathered(model, new).imputations) == 3


def test_new_counts_are_filled_in_by_their_own_exposures(tmp_path):
    """Once they were imputed with an exposure of one, and the report said that every baseline was better."""
    weights, X, _ = problem(20)
    rng = np.random.default_rng(0)
    exposure = rng.uniform(50, 500, (20, 7))
    counts = rng.poisson(0.05 * exposure).astype(float)
    holed = np.where(rng.random(counts.shape) < 0.2, np.nan, counts)
    model = GraphGPRegressor(Graph(weights), Polynomial(1), likelihood="poisson")
    model.fit(X[:12], holed[:12], exposure=exposure[:12])
    page = model.report(tmp_path / "report.html", X[12:], holed[12:], exposure=exposure[12:]).read_text("utf-8")
    out = baselines.hidden_at_once(holed, slice(12, None))[12:]
    completed, _ = model.impute(X[12:], np.where(out, np.nan, holed[12:]), exposure=exposure[12:])
    error = root_mean_square_error(counts[12:][out], completed[out])
    assert (
        f'<th scope="row">learnt model</th><td>{error:.4g}</td>'
        in page.split("Imputation of hidden values</caption>")[1]
    )


def performance(name, size, std=1.0):
    errors = size * np.random.default_rng(0).standard_normal((30, 5))
    return PredictionErrors.of(name, errors, np.zeros((30, 5)), np.full((30, 5), std))


def test_baselines_in_words():
    ours = performance("learnt model", 1.0)
    said = words.baseline_words([ours, performance("node means", 2.0, 2.0), performance("no change", 3.0, 3.0)], "here")
    assert said == [
        "No baseline (node means, no change) is better than the learnt model here in error, CRPS or log density."
    ]
    found = [ours, performance("ridge regression", 0.5, 0.5), performance("node means", 2.0, 2.0)]
    (said,) = words.baseline_words(found, "on held-out signals")
    assert said.startswith("Ridge regression has a lower error (RMSE ")
    assert f"(RMSE {found[1].rmse:.4g} against {ours.rmse:.4g}), a lower CRPS (" in said
    assert said.endswith(" nats per value) on held-out signals.")
    (said,) = words.baseline_words([ours, performance("ridge regression", 0.9, 30.0)], "here")
    assert said.startswith("Ridge regression has a lower error (")
    assert said.endswith("here. The learnt model is better in CRPS and log density.")
    assert words.baseline_words([], "here") == words.baseline_words([ours], "here") == []


# ---------------------------------------------------------------------------------------------------------- words


def _filter(which, mean, std):
    return which, filter_curve(FILTER_NAMES[which], np.linspace(0, 1, mean.size), mean, std)


def _bands(*filters):
    curves, shares = dict(filters), np.full(3, 1 / 3)
    shapes = {which: shape_of((one.frequencies, shares), one.values) for which, one in curves.items()}
    return FilterBands("scaled Laplacian", curves, shapes, np.array([0, 1]), np.ones(1), np.ones(1))


def test_bands_of_filters_that_are_not_negative_are_not_drawn_below_zero():
    """One of either sign, as what carries over may be, has both of its ends."""
    mean, std = np.array([2.0, 0.1, 0.0]), np.array([0.5, 0.3, 0.2])
    filters = ("signal", mean, std), ("carry", mean - 1, std), ("residual", mean, None)
    bands = _bands(*(_filter(*one) for one in filters))
    shaded = [trace for trace in filter_figure(bands).data if "fill" in trace and trace.fill == "toself"]
    # along the upper end, and back along the lower one
    ends = [(high, low[::-1]) for high, low in (np.split(trace.y, 2) for trace in shaded)]
    for (high, low), (which, centre, spread) in zip(ends, filters, strict=True):
        curve = bands.filters[which]
        np.testing.assert_allclose((low, high), (curve.low, curve.high), err_msg=which)
        assert (spread is None) == np.array_equal(high, centre)
    ends = {which: (one.low.tolist(), one.high.tolist()) for which, one in bands.filters.items()}
    np.testing.assert_allclose(ends["signal"], [[1.5, 0.0, 0.0], [2.5, 0.4, 0.2]])
    np.testing.assert_allclose(ends["carry"], [[0.5, -1.2, -1.2], [1.5, -0.6, -0.8]])
    np.testing.assert_allclose(ends["residual"], [mean, mean])


def test_variance_in_words():
    said = words.variance_words(VarianceShares(0.5, 0.3, 0.0, 0.2, 0.4, 0.75), "left out", True)
    assert said[0].startswith("40% of the variance about")
    assert "it is 75%: the graph adds 35 percentage points" in said[1]
    assert all(share in said[2] for share in ("50%", "30%", "20%"))
    said = words.variance_words(VarianceShares(1.0, 0.0, 0.0, 0.0, -0.1, None), "held out", True)
    assert said[0].startswith("Predictions explain nothing in held-out signals")
    assert len(said) == 2
    for gain, added in ((0.004, "add nothing."), (0.006, "adds 1 percentage point."), (0.02, "2 percentage points.")):
        assert added in words.variance_words(VarianceShares(1.0, 0.0, 0.0, 0.0, 0.4, 0.4 + gain), "left out", True)[1]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"counts": SignalCounts(1)}, "only 1 training signal:"),
        ({"counts": SignalCounts(9)}, "only 9 training signals"),
        ({"counts": SignalCounts(0)}, "The model has no signals of this graph"),
        ({"counts": SignalCounts(50, empty=1)}, "1 signal without any value was left out"),
        ({"counts": SignalCounts(50, missing=1)}, "1 value (less than 1%) of the training signals is missing"),
        ({"stand_ins": 1}, "1 draw of the hyperparameters violated a constraint and was replaced"),
        ({"graph": Graph.from_edges([(0, 1), (2, 3)])}, "has 2 components"),
        ({"variance": VarianceShares(0.09, 0.0, 0.0, 0.91, -0.1, None)}, "91% of the variance is noise"),
        ({"variance": VarianceShares(0.1, 0.0, 0.0, 0.9, 0.0, None)}, "no better than the nodes' means"),
        ({"counts": SignalCounts(50, repeated=1)}, "1 signal repeats another, inputs included"),
        ({"counts": SignalCounts(50, repeated=3)}, "3 signals repeat others, inputs included"),
        ({"counts": SignalCounts(50, empty=2)}, "2 signals without any value were left out"),
        ({"counts": SignalCounts(50, missing=35)}, "35 values (10%) of the training signals are missing"),
        ({"counts": SignalCounts(50, missing=35, unseen=1)}, "1 node was never observed"),
        ({"graph": Graph.from_edges([(0, 1), (2, 3), (3, 4), (5, 6)])}, "has 3 components"),
        ({"graph": Graph.edgeless(7)}, "has no edges"),
        ({"stand_ins": 2}, "2 draws of the hyperparameters violated a constraint and were replaced"),
        ({"variance": VarianceShares(0.05, 0.0, 0.0, 0.95, 0.1, None)}, "95% of the variance is noise"),
        ({"variance": VarianceShares(0.5, 0.0, 0.0, 0.5, -0.1, None)}, "no better than the nodes' means"),
    ],
)
def test_what_to_watch_out_for(told, change, said):
    numbers = dataclasses.replace(told, counts=SignalCounts(50))
    before = words.cautions(dataclasses.replace(numbers, bands=_bands()))
    after = words.cautions(dataclasses.replace(numbers, **({"bands": _bands()} | change)))
    assert before == []
    assert any(said in one for one in after), after
    n_more = 2 if "never observed" in said else 1  # whose values are missing, too
    assert len(after) == n_more, after


def test_nothing_is_said_where_nothing_stands_out(told):
    """Ten signals are enough; one node needs no edges; noise is much of changes, whose models predict well."""
    quiet = {"bands": _bands(), "counts": SignalCounts(10)}
    for change in (
        {},
        {"graph": Graph.edgeless(1)},
        {"variance": VarianceShares(0.1, 0.0, 0.0, 0.9, 0.01, None)},
        {"variance": VarianceShares(0.01, 0.0, 0.0, 0.99, 0.01, None, "changes")},
        {"variance": VarianceShares(0.5, 0.0, 0.0, 0.5, None, None)},
    ):
        assert words.cautions(dataclasses.replace(told, **quiet | change)) == [], change


def test_uncertain_filters_are_told():
    (said,) = words.filter_warnings(_bands(_filter("signal", np.ones(3), np.full(3, 0.6))))
    assert said.startswith("The signal filter g is uncertain")
    sure = (np.ones(3), np.full(3, 0.4)), (np.zeros(3), np.ones(3)), (np.ones(3), None), (-np.ones(3), np.full(3, 0.5))
    assert [words.filter_warnings(_bands(_filter("signal", *one))) for one in sure] == [[]] * 4
    for mean, std in (([0.2, 0.4, -1.0], [0.51, 0.1, 0.1]), ([1.0, 0.0, 0.0], [0.0, 0.0, 0.51])):
        assert len(words.filter_warnings(_bands(_filter("carry", np.array(mean), np.array(std))))) == 1


def test_shares_and_numbers_in_words():
    shares = {0.0: "0%", 0.004: "less than 1%", 0.0099: "less than 1%", 0.01: "1%", 0.016: "2%", 0.5: "50%"}
    shares |= {0.99: "99%", 0.9901: "more than 99%", 0.9999: "more than 99%", 1.0: "100%"}
    assert {share: words.percent(share) for share in shares} == shares
    assert [words.count(number, "node") for number in (0, 1, 2, 2000)] == [
        "0 nodes",
        "1 node",
        "2 nodes",
        "2,000 nodes",
    ]
    assert [listing("abc"[:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]
    assert words.capitalised("it is a PIT") == "It is a PIT"


def calibration(pit_mean=0.5, error=0.02, shares=(0.5, 0.8, 0.9), n_signals=40):
    """Of which nothing is off but what is told."""
    found = calibration_of(np.linspace(0.0, 1.0, 500).reshape(50, 10))
    coverages = zip((0.5, 0.8, 0.9), shares, strict=True)
    return dataclasses.replace(
        found,
        pit_mean=Share(pit_mean, 0.001, 0.5, n_signals),
        error_mean=Share(error, 0.001, 0.0, n_signals),
        coverages={level: Share(share, 0.001, level, n_signals) for level, share in coverages},
    )


def test_little_is_no_miscalibration():
    """Of biases less than 0.05 of the PIT, of coverages less than 5 points, and less than 3 of those of 90%."""
    assert words.calibration_words(calibration(0.549, 0.1, (0.451, 0.751, 0.871))) == []
    assert words.calibration_words(calibration(0.451, -0.1, (0.549, 0.849, 0.929))) == []
    assert words.calibration_words(calibration(0.6, 0.1, (0.1, 0.1, 0.1), n_signals=1)) == []
    (said,) = words.calibration_words(calibration(0.551, 0.1))
    pit = "the mean of the PIT is 0.55 ± 0.00, and 0.5 if calibrated"
    assert said == f"Predictions are biased, too low: 50% of 500 values lie above their predicted means ({pit})."
    assert words.calibration_words(calibration(0.551, -0.1))[0].startswith("Errors are skewed, but zero on average")
    assert words.calibration_words(calibration(0.449, -0.1))[0].startswith("Predictions are biased, too high: 50% of")
    only = "Intervals are too narrow: only"
    for shares, said in (
        ((0.449, 0.8, 0.9), f"{only} 45% of 500 values lie in their 50% intervals."),
        ((0.5, 0.749, 0.869), f"{only} 75% of 500 values lie in their 80% intervals and 87% in their 90% intervals."),
        ((0.551, 0.8, 0.9), "Intervals are too wide: 55% of 500 values lie in their 50% intervals."),
        ((0.5, 0.8, 0.931), "Intervals are too wide: 93% of 500 values lie in their 90% intervals."),
    ):
        assert words.calibration_words(calibration(shares=shares)) == [said]
    because = "Intervals are too narrow, which the bias explains at least in part: only 87% of"
    assert words.calibration_words(calibration(0.6, 0.1, (0.5, 0.8, 0.869)))[1].startswith(because)
    assert words.calibration_words(calibration(0.6, -0.1, (0.5, 0.8, 0.869)))[1].startswith(only)
    assert words.calibration_words(calibration(0.6, 0.1, (0.5, 0.8, 0.931)))[1].startswith("Intervals are too wide: ")


def test_fits_that_did_not_converge_and_noise_at_its_bound_are_told():
    weights, X, Y = problem()
    with pytest.warns(Warning, match="did not converge"):
        model = GraphGPRegressor(Graph(weights), Polynomial(2), residual=None, solver=Sqp(max_iterations=1)).fit(X, Y)
    numbers = gathered(model)
    assert any("did not converge" in one and "Raise max_iterations" in one for one in words.cautions(numbers))
    ((name, weight, fit),) = numbers.members
    certificate = dataclasses.replace(fit.certificate, active=("noise_variance at its lower bound",))
    fit = dataclasses.replace(fit, certificate=certificate)
    numbers = dataclasses.replace(numbers, members=((name, weight, fit),))
    assert any("noise is at its lower bound" in one for one in words.cautions(numbers))


# ----------------------------------------------------------------------------------------------------------- page


def test_names_and_titles_are_data_never_markup(tmp_path):
    weights, X, Y = problem()
    graph = Graph(weights, names=NASTY)
    model = GraphGPRegressor(graph, Polynomial(1)).fit(X, Y)
    path = model.report(tmp_path / "report.html", title="<img src=x onerror=alert(1)> & co \ud800")
    page = path.read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "<img" not in page.replace("<img>", "")  # the plotting library speaks of it, without attributes
    assert page.count("<h1>&lt;img src=x onerror=alert(1)&gt; &amp; co") == 1
    assert data_of(page)["names"] == NASTY
    assert data_of(page)["texts"][0] == '&lt;script&gt;alert("1")&lt;/script&gt;'  # plotly reads markup in texts
    assert not set("<>&\u2028\u2029") & set(re.search(r'id="report-data">(.*?)</script>', page, re.DOTALL).group(1))
    assert page.count("</script>") == 3


def test_the_page_needs_no_network(tmp_path, paper):
    page = paper[0].report(tmp_path / "report.html").read_text(encoding="utf-8")
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page).group(1)
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy
    ours = page.replace(re.search(r"<script>\s*/\*\*\s*\* plotly.*?</script>", page, re.DOTALL).group(), "")
    assert not re.search(r"https?://", ours)
    assert not re.search(r'\bsrc="', ours)


def test_pictures_have_labels_and_tables_have_captions_and_heads(tmp_path, paper):
    page = paper[0].report(tmp_path / "report.html").read_text(encoding="utf-8")
    plots = re.findall(r'<div id="[\w-]+" class="plot[^>]*>', page)
    assert len(plots) == 6
    assert all('role="img"' in one and re.search('aria-label="[^"]{20,}"', one) for one in plots)
    tables = re.findall(r"<table>(.*?)</table>", page, re.DOTALL)
    assert all("<caption" in one and 'scope="col"' in one for one in tables)
    assert '<html lang="en">' in page
    for control in re.findall(r'<(?:input type="(?:range|search)"|select) id="(\w+)"', page):
        assert f'<label for="{control}">' in page


def test_the_old_file_stays_where_a_report_fails(tmp_path, paper, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(ValueError, match="Y must be given with X"):
        paper[0].report(path, paper[1])
    for library in ("plotly.offline", "jinja2"):
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(ImportError, match=r"pip install 'spectralgp\[report\]'"):
            paper[0].report(path)
        assert path.read_text() == "old"
        monkeypatch.undo()
    assert paper[0].report(str(path)) == path
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_a_model_without_signals_asks_for_some(tmp_path):
    weights, X, Y = problem(20)
    model = GraphGPRegressor(Graph(weights), Polynomial(1, constraint="interval"), carry=None).fit(X, Y)
    moved = model.transfer(Graph(oracle.ring(5)))
    with pytest.raises(ValueError, match="model must hold signals to report on"):
        moved.report(tmp_path / "report.html")
    page = moved.report(tmp_path / "report.html", X[:3], Y[:3, :5]).read_text(encoding="utf-8")
    found = gathered(moved, NewSignals("abc", X[:3], Y[:3, :5], moved.posterior_.at(X[:3])))
    assert all(one.high is one.values for one in found.bands.filters.values())
    assert "<td>not known</td>" in page
    assert not found.bands.energy_shares.any()
    assert (found.forecasts, found.imputations, found.counts) == ((), (), SignalCounts(0))
    power, noise = np.mean(moved.response() ** 2), moved.noise_variance_
    neighbours = np.mean(moved.response(which="residual") ** 2)
    assert found.variance.noise == pytest.approx(noise / (power + neighbours + noise), rel=FORMULA)
    assert len(data_of(page)["names"]) == 5
    assert "has no signals of this graph" in page


def test_a_bad_aspect_is_refused(tmp_path, paper):
    with pytest.raises(ValueError, match="aspect must be a finite number above 0"):
        paper[0].report(tmp_path / "report.html", aspect=-1.0)


# -------------------------------------------------------------------------------------------------- the map's places


def test_one_and_two_coordinates_are_drawn_unchanged_and_three_along_their_principal_directions():
    rng = np.random.default_rng(0)
    points = rng.standard_normal((30, 3)) * [5, 0.01, 2]
    places, note = map_coordinates(Graph(oracle.ring(30), coordinates=points))
    left, values, _ = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
    assert oracle.relative_error(np.abs(places), np.abs(left[:, :2] * values[:2])) < FORMULA
    assert "principal" in note
    plane = Graph(oracle.ring(4), coordinates=[[0, 0], [1, 0], [1, 2], [0, 2]])
    np.testing.assert_array_equal(map_coordinates(plane)[0], plane.coordinates)
    line, _ = map_coordinates(Graph(oracle.ring(4), coordinates=[[3.0], [1.0], [2.0], [0.0]]))
    np.testing.assert_array_equal(line, [[3, 0], [1, 0], [2, 0], [0, 0]])


@pytest.mark.parametrize("n_nodes", [60, 1_200])
def test_without_coordinates_joined_nodes_are_near_each_other(n_nodes):
    ring = np.random.default_rng(1).permutation(n_nodes)
    graph = Graph.from_edges(
        [(ring[node], ring[(node + 1) % n_nodes]) for node in range(n_nodes)], names=range(n_nodes)
    )
    places = map_coordinates(graph)[0][ring]
    edges = np.linalg.norm(places - np.roll(places, -1, axis=0), axis=1)
    pairs = np.linalg.norm(places - places[np.random.default_rng(0).permutation(n_nodes)], axis=1)
    assert np.median(edges) < 0.25 * np.median(pairs)
    assert len(np.unique(places.round(6), axis=0)) == n_nodes


def test_parts_stand_in_rows_as_wide_as_all_would_be_in_a_square():
    """Three nodes, two, and two alone: rows of three nodes' width, each as high as its largest part."""
    places, _ = map_coordinates(Graph.from_edges([(0, 3), (3, 5), (1, 4)], names=range(7)))
    three, two = np.sqrt(3), np.sqrt(2)
    expected = {0: (0, 0), 3: (three - 0.7, 0), 5: ((three - 0.7) / 2, 0.7 - three)}
    expected |= {1: (0, -three), 4: (two - 0.7, -three), 2: (two, -three), 6: (0, -three - two)}
    np.testing.assert_allclose(places, [expected[node] for node in range(7)], atol=1e-12)
    alone, _ = map_coordinates(Graph.edgeless(5))
    np.testing.assert_array_equal(alone, [[0, 0], [1, 0], [2, 0], [0, -1], [1, -1]])


def test_of_very_many_nodes_and_signals_some_are_drawn():
    for number, most in ((2 * MAX_NODES, MAX_NODES), (MAX_NODES + 1, MAX_NODES), (1_000, 6), (5, 6), (3, 1)):
        shown = evenly_spaced(number, most)
        assert shown.size == min(number, most)
        assert (shown[0], shown[-1]) == (0, number - 1 if most > 1 else 0)
        assert np.ptp(np.diff(shown)) <= 1 if most > 1 else True


def test_the_page_says_how_many_signals_it_shows(told, monkeypatch, tmp_path):
    monkeypatch.setattr("spectralgp.show.report.figures.MAX_VALUES", 3 * 7 * 4)
    sixth = dataclasses.replace(told, predictions=dataclasses.replace(told.predictions, first=6))
    page = write_page(tmp_path / "page.html", sixth, "some", 1.0).read_text(encoding="utf-8")
    assert data_of(page)["start"]["signal"] == 2  # of 0, 4, 7 and 11 the nearest
    assert len(data_of(page)["labels"]) == 4
    assert "4 of 12 signals are here" in page
    monkeypatch.setattr("spectralgp.show.report.figures.MAX_NODES", 3)
    page = write_page(tmp_path / "page.html", told, "some", 1.0).read_text(encoding="utf-8")
    assert data_of(page)["names"] == ["0", "3", "6"]
    assert " Of 7 nodes 3 are drawn, evenly spaced in their order." in page
