"""Commands from files to files, as a user types them."""

import contextlib
import inspect
import json
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
import warnings
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

import spectralgp
from spectralgp import (
    Chebyshev,
    Diffusion,
    Graph,
    GraphGPForecaster,
    GraphGPRegressor,
    Matern,
    Polynomial,
    RandomWalk,
    Stacking,
    cli,
    load,
)
from spectralgp.cli import answers, files, learning
from spectralgp.cli.app import print_answer
from spectralgp.cli.learning import graph_kernels, kernel_named
from spectralgp.cli.option import LearningOptions, TableOptions
from spectralgp.cli.pictures import map_aspect
from spectralgp.files.inputs import InputRecipe
from spectralgp.learning.baselines import PredictionErrors, hidden_at_once, node_means, ridge_regression
from spectralgp.scores import coverage, crps, root_mean_square_error
from spectralgp.show import plots

SOURCE = Path(spectralgp.__file__).parents[1]
FIT = ["fit", "--graph", "files/edges.csv", "--kernel", "polynomial:2"]
POINTS = ["fit", "--points", "files/states.csv", "--neighbors", "5"]
LAGGED = [*FIT, "--signals", "files/incomes.csv", "--inputs", "lag:1", "--out", "model.sgp"]


def run(*arguments):
    return CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


def answered(*arguments):
    """What a command prints, once it has ended well."""
    answer = run(*arguments)
    assert answer.exit_code == 0, answer.stderr
    return answer.stdout


def refused(*arguments, status=1):
    """What a command says in one line when it fails."""
    answer = run(*arguments)
    assert answer.exit_code == status, answer.output
    assert answer.stdout == ""
    assert "Traceback" not in answer.stderr
    if status == 1:
        (line,) = answer.stderr.splitlines()
        return line.removeprefix("error: ")
    return " ".join(answer.stderr.replace("│", " ").split())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the example's files, to type commands in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    assert answered("example").splitlines()[0] == "files/edges.csv"
    return tmp_path


def what_is_saved(tmp_path_factory, *fit):
    """What a fit to the example's files saves."""
    with contextlib.chdir(tmp_path_factory.mktemp("saved")):
        answered("example")
        answered(*fit, "--out", "model.sgp")
        return Path("model.sgp").read_bytes()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return what_is_saved(tmp_path_factory, *LAGGED[:-2])


@pytest.fixture(scope="module")
def saved_missing_values(tmp_path_factory):
    fit = [*POINTS, "--kernel", "polynomial:1", "--inputs", "time"]
    return what_is_saved(tmp_path_factory, *fit, "--signals", "files/missing.csv")


@pytest.fixture(scope="module")
def saved_series(tmp_path_factory):
    fit = [*POINTS, "--inputs", "time", "--season", "auto"]
    return what_is_saved(tmp_path_factory, *fit, "--signals", "files/incomes.csv")


@pytest.fixture
def fitted(folder, saved):
    """The folder with a model that was fitted to its files."""
    Path("model.sgp").write_bytes(saved)
    return folder


def incomes(name):
    return pd.read_csv(f"files/{name}.csv", index_col="year")


def examples(command):
    """Commands in the help of a command."""
    text = inspect.getdoc(command).replace("\\\n", " ")
    return [shlex.split(line)[1:] for line in text.splitlines() if line.strip().startswith("spectralgp ")]


# ----------------------------------------------------------------------------------------------------- end to end


@pytest.mark.slow
@pytest.mark.usefixtures("quick_demo")
@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_commands_help_has_an_example_that_runs(fitted, name):
    lines = examples(cli.COMMANDS[name])
    assert lines
    assert lines[-1][0] == name
    shown = " ".join(answered(name, "--help").split())
    assert " ".join(lines[-1][:3]) in shown
    for arguments in lines:
        answered(*arguments, *(["--force"] if "--force" in shown else []))


def test_a_prediction_is_the_librarys_own(fitted):
    data, later = incomes("incomes"), incomes("later")
    graph = Graph.from_edges(pd.read_csv("files/edges.csv"))
    model = GraphGPRegressor(graph, Polynomial(2), random_state=0)
    model.fit(data[:-1].set_axis(data.index[1:]), data[1:])
    mean, std = model.predict(later[list(data)], return_std=True, include_noise=True)
    answered("predict", "model.sgp", "--signals", "files/later.csv", "--out", "mean.csv", "--std", "std.csv")
    answered("predict", "model.sgp", "--signals", "files/later.csv", "--out", "long.csv", "--long")
    predicted, deviations = (pd.read_csv(name, index_col="year") for name in ("mean.csv", "std.csv"))
    assert predicted.index.tolist() == list(range(1990, 2011))
    np.testing.assert_allclose(predicted[list(data)], mean, rtol=1e-9)
    np.testing.assert_allclose(deviations[list(data)], std, rtol=1e-9)
    long = pd.read_csv("long.csv")
    assert list(long) == ["year", "node", "mean", "std"]
    for name, wide in (("mean", predicted), ("std", deviations)):
        np.testing.assert_array_equal(long.pivot(index="year", columns="node", values=name)[list(wide)], wide)
    both = ["--signals", "files/later.csv", "--out", "x.csv", "--long", "--std", "y.csv"]
    assert "--std must be left out with --long" in refused("predict", "model.sgp", *both, status=2)


def test_a_score_is_that_of_the_predictions(fitted):
    answer = json.loads(answered("score", "model.sgp", "--signals", "files/later.csv", "--json", "--level", "0.5"))
    later, model = incomes("later"), load("model.sgp")
    later[later.columns[::-1]].to_csv("turned.csv")  # the order of columns is nobody's business
    turned = answered("score", "model.sgp", "--signals", "turned.csv", "--json", "--level", "0.5")
    assert json.loads(turned) == pytest.approx(answer)
    inputs, truth = later[:-1], later[1:]
    mean, std = model.predict(inputs, return_std=True, include_noise=True)
    densities = model.log_predictive_density(inputs.set_axis(truth.index), truth, joint=False)
    assert (answer["n_signals"], answer["n_values"]) == (20, 960)
    assert answer["log_density"] == pytest.approx(np.mean(densities))
    assert answer["log_density_error"] == pytest.approx(np.std(densities, ddof=1) / np.sqrt(20))
    assert answer["rmse"] == pytest.approx(root_mean_square_error(truth, mean))
    assert answer["crps"] == pytest.approx(np.mean(crps(truth, mean, std)))
    assert answer["coverage"] == pytest.approx(coverage(truth, mean, std, 0.5))
    words = answered("score", "model.sgp", "--signals", "files/later.csv", "--level", "0.5")
    assert f"{answer['log_density']:.2f} ({answer['log_density_error']:.2f}) nats" in words
    assert f"{answer['coverage']:.1%}" in words


def test_a_score_of_signals_that_the_model_was_fitted_to_says_so(fitted):
    later = answered("score", "model.sgp", "--signals", "files/later.csv")
    assert "training signals" not in later
    assert "These signals are training signals" in answered("score", "model.sgp", "--signals", "files/incomes.csv")
    both = pd.concat([incomes("incomes"), incomes("later")])
    both = both[~both.index.duplicated()]
    both.to_csv("both.csv")
    n_known, n_both = len(incomes("incomes")) - 1, len(both) - 1  # the first row is an input alone
    assert f"{n_known} of {n_both} signals are training signals" in answered(
        "score", "model.sgp", "--signals", "both.csv"
    )
    answer = json.loads(answered("score", "model.sgp", "--signals", "both.csv", "--json"))
    assert answer["n_training_signals"] == n_known


def test_from_csv_to_a_table_with_intervals_a_picture_and_a_report(folder):
    """As a new user types it: a table with missing values, in the dialect of a German spreadsheet, and back."""
    incomplete = incomes("missing").set_axis(pd.date_range("1960-01-31", periods=50, freq="YE", name="Tag"))
    german = {"sep": ";", "decimal": ",", "date_format": "%d.%m.%Y", "encoding": "utf-8-sig"}
    incomplete.to_csv("löcher.csv", **german)
    table, dates = ["--signals", "löcher.csv"], ["--date-format", "%d.%m.%Y"]
    fit = ["fit", "--points", "files/states.csv", "--neighbors", "5", "--kernel", "polynomial:2", "--inputs", "time"]
    answered(*fit, *table, *dates, "--out", "model.sgp")
    answered("impute", "model.sgp", *table, *dates, "--level", "0.9", "--out", "gefüllt.csv", "--std", "std.csv")
    assert Path("gefüllt.csv").read_bytes().startswith("\ufeffTag;Alabama;Alabama lower;Alabama upper;".encode())
    filled = pd.read_csv("gefüllt.csv", sep=";", decimal=",", encoding="utf-8-sig", index_col=0)
    assert filled.index.tolist() == incomplete.index.strftime("%d.%m.%Y").tolist()
    mean, lower, upper = (
        filled[[f"{name}{end}" for name in incomplete]].set_axis(list(incomplete), axis=1).set_axis(incomplete.index)
        for end in ("", " lower", " upper")
    )
    missing = incomplete.isna().to_numpy()
    for one in (mean, lower, upper):
        np.testing.assert_array_equal(one.to_numpy()[~missing], incomplete.to_numpy()[~missing])
    own, std = load("model.sgp").impute(files_of_time(incomplete), incomplete)
    half = 1.6448536269514722 * std.to_numpy()[missing]
    smallest = std.where(std > 0).min()
    coarse = np.broadcast_to(0.5 * 10 ** (np.floor(np.log10(smallest)) - 2), incomplete.shape)[
        missing
    ]  # half a last digit
    for one, sign in ((mean, 0), (lower, -1), (upper, 1)):
        assert np.all(np.abs(one.to_numpy()[missing] - (own.to_numpy()[missing] + sign * half)) <= 1.001 * coarse)
    assert filled.map(lambda value: len(f"{value!r}")).to_numpy().max() < 10  # no sixteen digits
    answered("plot", "model.sgp", *table, *dates, "--node", "Maine", "--out", "maine.png")
    assert Path("maine.png").read_bytes()[1:4] == b"PNG"
    answered("report", "model.sgp", "--out", "report.html")
    assert Path("report.html").read_text().lower().startswith("<!doctype html>")


def files_of_time(table):
    """Days since 1970, as the commands have time."""
    return pd.DataFrame({"time": (table.index - pd.Timestamp(0)) / pd.Timedelta(days=1)}, index=table.index)


def test_predictions_and_forecasts_have_intervals_beside_the_mean(fitted, saved_series):
    later = ["predict", "model.sgp", "--signals", "files/later.csv"]
    answered(*later, "--out", "mean.csv", "--std", "std.csv")
    answered(*later, "--out", "beside.csv", "--level", "0.5")
    answered(*later, "--out", "long.csv", "--level", "0.5", "--long")
    mean, std, beside = (pd.read_csv(f"{name}.csv", index_col="year") for name in ("mean", "std", "beside"))
    long = pd.read_csv("long.csv")
    assert list(long) == ["year", "node", "mean", "std", "lower", "upper"]
    for end, sign in (("lower", -1), ("upper", 1)):
        exact = mean + sign * 0.6744897501960817 * std
        wide = beside[[f"{name} {end}" for name in mean]].set_axis(list(mean), axis=1)
        error = np.abs(wide - exact).max()
        assert (error > 0).all()
        assert (error <= 0.005 * std.min()).all()
        np.testing.assert_array_equal(long.pivot(index="year", columns="node", values=end)[list(mean)], wide)
    Path("series.sgp").write_bytes(saved_series)
    answered("forecast", "series.sgp", "--out", "forecast.csv", "--std", "deviations.csv")
    answered("forecast", "series.sgp", "--out", "with.csv", "--level", "0.5")
    forecast, deviations, wide = (
        pd.read_csv(f"{name}.csv", index_col=0) for name in ("forecast", "deviations", "with")
    )
    upper = forecast + 0.6744897501960817 * deviations
    assert np.abs(wide["Texas upper"] - upper["Texas"]).max() < 0.005 * deviations["Texas"].min()


def watched(monkeypatch, *names):
    """What functions that draw are called with, and their axes, in a list that grows with every call."""
    drawn = []

    def watch(name, real, *given, **options):
        drawn.append((name, given, options["ax"]))
        return real(*given, **options)

    for name in names:
        monkeypatch.setattr(plots, name, partial(watch, name, getattr(plots, name)))
    return drawn


@pytest.mark.parametrize("arguments", [["--node", "Maine", "--node", "Texas"], ["--map", "--row", "1975"], []])
def test_pictures_are_those_of_the_library(folder, saved_missing_values, monkeypatch, arguments):
    Path("model.sgp").write_bytes(saved_missing_values)
    drawn = watched(monkeypatch, "plot_imputed", "plot_signal", "plot_filter")
    table = ["--signals", "files/missing.csv"] if arguments else []
    for suffix in (".png", ".html"):
        drawn.clear()
        answered("plot", "model.sgp", *arguments, *table, "--title", "Incomes & more", "--out", f"picture{suffix}")
    expected = {0: ["plot_filter"], 3: ["plot_signal"], 4: 2 * ["plot_imputed"]}[len(arguments)]
    assert [name for name, *_ in drawn] == expected
    assert Path("picture.png").read_bytes()[1:4] == b"PNG"
    page = Path("picture.html").read_text()
    assert "<title>Incomes &amp; more</title>" in page
    assert page.count("<svg") == 1
    assert set(re.findall(r'(?:src|href)="(.)', page)) <= {"#", "d"}  # nothing is fetched: parts of it, and data
    assert "metadata" not in page
    incomplete, model = incomes("missing"), load("model.sgp")
    if "--map" in arguments:
        _, (graph, observed), ax = drawn[0]
        assert ax.get_title() == "1975"
        np.testing.assert_array_equal(observed, incomplete.loc[1975, list(graph.names)])
    if "--node" in arguments:
        assert [(ax.get_xlabel(), ax.get_ylabel()) for *_, ax in drawn] == [("", "Maine"), ("year", "Texas")]
        completed, std = model.impute(incomplete.index.to_frame(name="time").astype(float), incomplete)
        for name, (_, (observed, filled, deviation, column), _) in zip(("Maine", "Texas"), drawn, strict=True):
            assert observed.columns[column] == name
            pd.testing.assert_frame_equal(observed, incomplete)
            pd.testing.assert_frame_equal(filled, completed)
            pd.testing.assert_frame_equal(deviation, std)


def test_series_and_complete_nodes_are_drawn(fitted, saved_series, monkeypatch):
    drawn = watched(monkeypatch, "plot_prediction", "plot_forecast", "plot_forecast_map", "plot_rates")
    answered("plot", "model.sgp", "--node", "Texas", "--signals", "files/later.csv", "--out", "texas.svg")
    _, (observed, mean, _), _ = drawn.pop()
    later = incomes("later")
    assert observed.tolist() == later["Texas"][1:].tolist()
    names = list(incomes("incomes"))
    np.testing.assert_array_equal(mean, load("model.sgp").predict(later[names][:-1])["Texas"])
    Path("series.sgp").write_bytes(saved_series)
    series = ["plot", "series.sgp", "--force", "--out", "series.png"]
    answered(*series, "--node", "Texas", "--signals", "files/incomes.csv", "--steps", "3")
    answered(*series, "--map", "--steps", "2")
    answered(*series)
    answered(*series, "--node", "Texas", "--node", "Maine")
    answered(*series, "--map")
    forecasts, of_map, rates = ["plot_forecast"], ["plot_forecast_map"], ["plot_rates"]
    assert [name for name, *_ in drawn] == forecasts + of_map + rates + 2 * forecasts + of_map
    texas, maine = map(load("series.sgp").node_names_.index, ("Texas", "Maine"))
    assert [given[1:] for _, given, _ in drawn] == [(texas, 3), (2,), (), (texas, 12), (maine, 12), (1,)]
    assert "--inputs must be left out for a series" in refused(*series, "--inputs", "time", status=2)


@pytest.mark.parametrize(
    ("coordinates", "expected"),
    [
        ([[10.0, 59.0], [12.0, 61.0]], 2.0),  # at sixty degrees a degree of longitude is half as long as at the equator
        ([[10.0, -59.0], [12.0, -61.0]], 2.0),
        ([[-180.0, -80.0], [180.0, 80.0]], 1.0),
        ([[0.0, 59.0], [0.5, 61.0]], 2.0),
        ([[3.0, 0.0], [4.0, 0.0]], 1.0),
        ([[10.0, 59.0], [12.0, 80.5]], "equal"),  # too near a pole for one ratio
        ([[10.0, -80.5], [12.0, -59.0]], "equal"),
        ([[10.0, 59.0], [180.5, 61.0]], "equal"),  # no degrees
        ([[-180.5, 59.0], [10.0, 61.0]], "equal"),
        ([[0.0, 1.0], [2.0, 1.5]], "equal"),  # a small plane
        ([[10.0, 59.0, 0.0], [12.0, 61.0, 0.0]], "equal"),
        (None, "equal"),
    ],
)
def test_maps_of_degrees_are_as_wide_as_their_latitude_has_them(coordinates, expected):
    found = map_aspect(None if coordinates is None else np.array(coordinates))
    assert found == (expected if expected == "equal" else pytest.approx(expected, rel=1e-12))


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--out", "a.jpg"], 2, "must end with .png"),
        (["--out", "a.png", "--node", "Texas"], 2, "--signals must be given with --node"),
        (["--out", "a.png", "--node", "Texas", "--map"], 2, "must not both be given"),
        (["--out", "a.png", "--row", "1990"], 2, "--row must come with --map"),
        (["--out", "a.png", "--signals", "files/later.csv"], 2, "must come with --node or --map"),
        (["--out", "a.png", "--steps", "3"], 2, "--steps must be left out"),
        (["--out", "a.png", *13 * ["--node", "Texas"]], 2, "--node must be given at most 12 times; got 13."),
        (["--out", "a.png", "--node", "Hawaii"], 1, "must be a node of model.sgp; got Hawaii"),
        (["--out", "a.png", "--map", "--signals", "files/later.csv", "--row", "1900"], 1, "--row must be a label"),
    ],
)
def test_pictures_that_cannot_be_drawn(fitted, arguments, status, message):
    assert message in refused("plot", "model.sgp", *arguments, status=status)
    assert not Path("a.png").exists()


def test_a_model_of_signals_takes_in_rows_that_it_does_not_know(fitted):
    incomes("later")[:4].to_csv("some.csv")  # of which the first is the last of the fit, and no more than an input
    assert answered("update", "model.sgp", "--signals", "some.csv", "--out", "some.sgp").startswith(
        "Added 3 rows; the model has 32 signals: some.sgp"
    )
    answer = run("update", "some.sgp", "--signals", "files/later.csv", "--json")
    assert "note: 3 rows that the model knows are left out" in answer.stderr
    assert json.loads(answer.stdout) == {"model": "some.sgp", "n_new": 17, "n_left_out": 3, "n_signals": 49}
    later, names = incomes("later"), list(incomes("incomes"))
    inputs, new = later[names][:-1].set_axis(later.index[1:]), later[names][1:]
    own = load("model.sgp").condition_on(inputs, new).predict(inputs[-3:], return_std=True)
    updated = load("some.sgp").predict(inputs[-3:], return_std=True)
    for mine, theirs in zip(updated, own, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-8)
    assert "must have rows that are not training rows of some.sgp; got 20 old" in refused(
        "update", "some.sgp", "--signals", "files/later.csv"
    )
    assert "got a model of signals" in refused("forecast", "model.sgp", "--out", "forecast.csv")
    assert "--scores must be left out" in refused(
        "update", "some.sgp", "--signals", "files/later.csv", "--scores", "odd.csv", status=2
    )


def test_a_lag_over_missing_rows_is_noted(folder):
    incomes("incomes").drop(index=[1970, 1971, 1975]).to_csv("gaps.csv")
    result = run(*FIT, "--signals", "gaps.csv", "--inputs", "lag:1", "--out", "model.sgp")
    note = (
        "note: lag:1 counts rows, whatever their times: 1972 is taken to follow 1969 as any row does the one before (2 "
    )
    assert note in result.stderr
    assert "note: lag" not in run(*FIT, "--signals", "files/incomes.csv", "--inputs", "lag:1", "--out", "m.sgp").stderr


def test_a_lag_of_times_that_go_back_names_the_rows(folder):
    incomes("incomes").iloc[[0, 2, 1, 3]].to_csv("mixed.csv")
    message = refused(*FIT, "--signals", "mixed.csv", "--inputs", "lag:1", "--out", "model.sgp")
    assert "got 1961 after 1962 (row 3) in row 4, column 'year'" in message


def test_comparing_is_fitting_and_scoring(folder):
    arguments = ["compare", "--graph", "files/edges.csv", "--signals", "files/incomes.csv", "--inputs", "lag:1"]
    arguments += ["--kernels", "diffusion,polynomial:1", "--held-out", "0.2"]
    answer = json.loads(answered(*arguments, "--json"))
    assert (answer["n_signals"], answer["n_held_out"]) == (23, 6)
    data = incomes("incomes")
    graph = Graph.from_edges(pd.read_csv("files/edges.csv"))
    inputs, signals = data[:-1].set_axis(data.index[1:])[list(graph.names)], data[1:][list(graph.names)]
    for row, kernel in zip(answer["kernels"], (Diffusion(), Polynomial(1)), strict=True):
        model = GraphGPRegressor(graph, kernel, random_state=0).fit(inputs[:23], signals[:23])
        assert row["log_evidence"] == pytest.approx(model.log_marginal_likelihood_)
        assert row["leave_one_out"] == pytest.approx(np.mean(model.leave_one_out("signal").log_density))
        densities = model.log_predictive_density(inputs[23:], signals[23:], joint=False)
        assert row["held_out"] == pytest.approx(np.mean(densities))
        mean, std = model.predict(inputs[23:], return_std=True, include_noise=True)
        assert row["rmse"] == pytest.approx(root_mean_square_error(signals[23:], mean))
        assert row["coverage"] == pytest.approx(coverage(signals[23:], mean, std, 0.9))
    assert [row["kernel"] for row in answer["baselines"]] == ["node means", "no change", "ridge regression"]
    errors = {"node means": signals[:23].mean().to_numpy(), "no change": inputs[23:]}
    for row, mean in zip(answer["baselines"], errors.values(), strict=False):
        assert row["rmse"] == pytest.approx(np.sqrt(np.mean((signals[23:].to_numpy() - mean) ** 2)))
    found = ridge_regression(*(one.to_numpy() for one in (inputs[:23], signals[:23], inputs[23:])))
    row, truth = answer["baselines"][2], signals[23:].to_numpy()
    assert row["held_out"] == pytest.approx(found.log_density(truth).mean())
    assert row["coverages"] == pytest.approx(
        {f"{level:.0%}": coverage(truth, found.mean, found.std, level) for level in (0.5, 0.8, 0.9)}
    )
    assert answer["imputations"] == []
    table = answered(*arguments)
    assert " ".join(table.split("\n\n")[0].split()).startswith(answer["words"][0])  # before the table
    assert f"{answer['baselines'][1]['rmse']:.4g}" in table
    assert f"{answer['kernels'][0]['held_out']:.2f}" in table
    assert max(map(len, table.splitlines())) <= 80


def performance(name, size, std=1.0):
    errors = size * np.random.default_rng(0).standard_normal((6, 4))
    return PredictionErrors.of(name, errors, np.zeros((6, 4)), np.full((6, 4), std), -(errors[:, 0] ** 2))


@pytest.mark.parametrize(
    ("kernels", "ours"),
    [
        ("diffusion,cosine,matern", "cosine"),
        ("auto,cosine", "auto"),
        ("cosine,auto,matern", "auto"),
        ("matern", "matern"),
    ],
)
def test_the_default_or_else_the_best_is_compared_with_baselines(kernels, ours):
    sizes = {"auto": 1.2, "diffusion": 1.1, "cosine": 0.9, "matern": 1.0}  # of errors; densities are best for cosine
    errors = [performance(name, sizes[name]) for name in kernels.split(",")]
    reference = errors[learning.reference_of(errors)]
    assert reference.name == ours
    words = learning.comparison_words(reference, np.full((6, 4), 0.5), [performance("node means", 0.95)], [])
    assert words[0].startswith("No baseline" if sizes[ours] < 0.95 else "Node means have a lower error")


def test_signals_must_be_left_to_learn_from(folder):
    few = incomes("incomes")[:3]
    few.to_csv("few.csv")
    arguments = ["compare", "--graph", "files/edges.csv", "--signals", "few.csv", "--kernels", "identity"]
    said = refused(*arguments, "--held-out", "0.6")
    assert said == "few.csv must have at least 2 signals beside those held out, 2; got 3. Add rows."
    answer = json.loads(answered(*arguments, "--held-out", "0.01", "--json"))
    assert (answer["n_signals"], answer["n_held_out"]) == (2, 1)
    (means,) = answer["baselines"]
    assert means["rmse"] == pytest.approx(np.sqrt(np.mean((few[2:].to_numpy() - few[:2].mean().to_numpy()) ** 2)))
    found = node_means(np.empty((2, 0)), few[:2].to_numpy(), np.empty((1, 0)))
    assert means["held_out"] == pytest.approx(found.log_density(few[2:].to_numpy())[0])


def test_ways_of_imputing_are_compared_at_hidden_cells(folder):
    arguments = ["compare", "--graph", "files/edges.csv", "--signals", "files/missing.csv", "--inputs", "time"]
    answer = json.loads(answered(*arguments, "--kernels", "diffusion", "--json"))
    ours, neighbours, imputer = answer["imputations"]
    assert [neighbours["kernel"], imputer["kernel"]] == ["neighbours on the graph", "iterative imputer"]
    assert neighbours["rmse"] < answer["baselines"][0]["rmse"]  # nodes of file and graph have another order
    assert any("in imputing hidden values" in one for one in answer["words"])
    graph, data = Graph.from_edges(pd.read_csv("files/edges.csv")), incomes("missing")
    signals, days = data[list(graph.names)], data.index.to_numpy(dtype=float)[:, None]
    n_held_out, values = answer["n_held_out"], signals.to_numpy()
    out = hidden_at_once(values, slice(-n_held_out, None))
    model = GraphGPRegressor(graph, Diffusion(), random_state=0).fit(days[:-n_held_out], data[:-n_held_out])
    partial = signals.mask(out)[-n_held_out:]
    predicted = model.predict(days[-n_held_out:], return_std=True, include_noise=True, observed=partial)
    hidden = out[-n_held_out:]
    truth, mean, std = (one[list(graph.names)].to_numpy()[hidden] for one in (signals[-n_held_out:], *predicted))
    assert ours["rmse"] == pytest.approx(root_mean_square_error(truth, mean))
    assert ours["coverage"] == pytest.approx(coverage(truth, mean, std, 0.9))
    flat = " ".join(answered(*arguments, "--kernels", "diffusion").split())
    assert flat.startswith(" ".join(answer["words"]))
    assert f"Learnt from {answer['n_signals']} signals; the last {n_held_out} are held out." in flat
    assert f"Imputation: {out.sum()} observed values of the held-out signals were hidden" in flat


def test_series_are_forecast_and_updated_from_files(folder):
    learn = ["fit", "--graph", "files/edges.csv", "--signals", "files/incomes.csv", "--inputs", "time"]
    told = answered(*learn, "--season", "auto", "--out", "series.sgp")
    assert "30 steps on 48 nodes and 107 edges." in told
    paths = [part for name in ("std", "lower", "upper") for part in (f"--{name}", f"{name}.csv")]
    answered("forecast", "series.sgp", "--steps", "2", "--out", "mean.csv", *paths)
    mean, std, lower, upper = (pd.read_csv(f"{name}.csv", index_col=0) for name in ("mean", "std", "lower", "upper"))
    graph = Graph.from_edges(pd.read_csv("files/edges.csv"))
    own = GraphGPForecaster(graph).fit(incomes("incomes"))
    assert mean.index.tolist() == [1990, 1991]
    np.testing.assert_allclose(mean, own.predict(2)[list(mean)], rtol=1e-6)
    np.testing.assert_allclose(upper - lower, 2 * 1.6448536 * std, rtol=1e-6)
    answer = run("update", "series.sgp", "--signals", "files/later.csv", "--out", "later.sgp", "--scores", "odd.csv")
    assert answer.stdout.startswith("Added 20 rows; the series has 50: later.sgp")
    assert "1 rows that the model knows are left out" in answer.stderr
    assert pd.read_csv("odd.csv", index_col=0).shape == (20, 49)
    assert load("later.sgp").n_steps_ == 50
    assert "must have rows after the last one" in refused("update", "later.sgp", "--signals", "files/later.csv")
    assert "got a series" in refused("predict", "series.sgp", "--out", "predicted.csv")
    assert "--season must come with --inputs time" in refused(
        *FIT[:3], "--signals", "files/incomes.csv", "--season", "7", "--out", "other.sgp", status=2
    )
    assert "--season must be auto or periods" in refused(*learn, "--season", "week", "--out", "other.sgp", status=2)


def test_a_series_has_columns_beside_time(folder):
    """Those of every row that is learnt, forecast, taken in or reported on, with the years before them or without."""
    data, years = incomes("incomes"), np.arange(1960, 2010)
    graph = Graph.from_edges(pd.read_csv("files/edges.csv"))
    rain = pd.DataFrame({"rain": np.sin(1.0 * years)}, index=pd.Index(years, name="year"))
    data = data[list(graph.names)] + 3 * rain.loc[data.index].to_numpy()
    data.to_csv("wet.csv")
    rain.loc[:1989].to_csv("rain.csv")
    rain.loc[1990:1991].to_csv("two.csv")
    rain.loc[1988:1991].to_csv("later.csv", index=False)
    learn = ["fit", "--graph", "files/edges.csv", "--signals", "wet.csv", "--inputs", "time", "--inputs", "rain.csv"]
    answer = json.loads(answered(*learn, "--season", "5", "--out", "wet.sgp", "--json"))
    model = load("wet.sgp")
    assert {name: answer[name] for name in ("n_nodes", "n_edges", "n_steps", "seasons")} == {
        "n_nodes": 48, "n_edges": 107, "n_steps": 30, "seasons": [5.0]
    }  # fmt: skip
    assert answer["weights"] == pytest.approx(model.weights_)
    assert answer["backtest"] == {}  # rows are few
    answered("forecast", "wet.sgp", "--steps", "2", "--inputs", "two.csv", "--out", "out.csv")
    expected = model.predict(2, X=rain.loc[1990:1991])
    np.testing.assert_allclose(pd.read_csv("out.csv", index_col=0)[list(expected)], expected, rtol=1e-6)
    answered("report", "wet.sgp", "--steps", "2", "--inputs", "two.csv", "--out", "wet.html")
    own = model.report("own.html", X=rain.loc[1990:1991], horizon=2).read_text()
    assert Path("wet.html").read_text() == own
    new = pd.DataFrame(np.ones((4, 48)), pd.Index(range(1988, 1992), name="year"), list(data))
    new.iloc[2:] = expected.to_numpy() + np.array([[0.1], [3.0]])
    new.to_csv("new.csv")
    update = ["update", "wet.sgp", "--signals", "new.csv", "--out", "newer.sgp"]
    said = json.loads(answered(*update, "--inputs", "later.csv", "--scores", "odd.csv", "--json"))
    odd = model.anomaly_scores(new[2:], rain.loc[1990:1991])
    by_step = model.anomaly_scores(new[2:], rain.loc[1990:1991], by="step")
    table = pd.read_csv("odd.csv", index_col=0)
    np.testing.assert_allclose(table[list(data)], pd.DataFrame(odd, columns=model.node_names_)[list(data)], rtol=1e-6)
    np.testing.assert_allclose(table["row"], by_step, rtol=1e-6)
    assert said == {
        "model": "newer.sgp", "n_new": 2, "n_left_out": 2, "n_steps": 32, "oddest": "1991",
        "score": pytest.approx(by_step[1]),
    }  # fmt: skip
    assert "--inputs must be a table for a series" in refused(*update, "--inputs", "time", "--force", status=2)
    assert "--inputs must be a table for a series" in refused(*update, "--inputs", "lag:1", "--force", status=2)


def test_counts_are_learnt_with_their_exposures(folder):
    rng = np.random.default_rng(0)
    incomes = pd.read_csv("files/incomes.csv", index_col=0)
    exposure = pd.DataFrame(rng.uniform(1.0, 5.0, incomes.shape), incomes.index, incomes.columns)
    counts = pd.DataFrame(rng.poisson(exposure), incomes.index, incomes.columns)
    exposure.iloc[::-1].to_csv("exposure.csv")
    counts.to_csv("counts.csv")
    observed = ["--likelihood", "poisson", "--exposure", "exposure.csv"]
    said = answered(*FIT, "--signals", "counts.csv", "--inputs", "time", "--out", "counts.sgp", *observed)
    assert "Poisson()" in said
    model = load("counts.sgp")
    own = model.posterior_.observed_by.beside
    assert np.allclose(own, exposure[list(model.graph_.names)].to_numpy())
    later = exposure.iloc[:2].set_axis([2031, 2030])
    later.to_csv("later.csv")
    at = ["--at", "2030", "--at", "2031"]
    rates = model.predict(pd.DataFrame({"time": [2030.0, 2031.0]}))
    for given, factor in (("later.csv", later.loc[[2030, 2031]].to_numpy()), ("2", 2.0)):
        answered("predict", "counts.sgp", *at, "--exposure", given, "--out", "told.csv", "--force")
        assert np.allclose(pd.read_csv("told.csv", index_col=0), factor * rates, rtol=1e-6)
    answered("predict", "counts.sgp", *at, "--exposure", "0.4", "--level", "0.8", "--out", "told.csv", "--force")
    told = pd.read_csv("told.csv", index_col=0)
    new = pd.DataFrame({"time": [2030.0, 2031.0]})
    _, *ends = model.predict(new, exposure=0.4, return_quantiles=(0.1, 0.9))
    for end, quantile in zip(("lower", "upper"), ends, strict=True):  # of counts, which no deviation from a mean knows
        assert np.array_equal(told[[f"{node} {end}" for node in quantile.columns]], quantile)
    assert (np.min(ends[0]), np.max(ends[0])) == (0, 0)
    assert "trials must be left out" in refused("predict", "counts.sgp", *at, "--trials", "3", "--out", "no.csv")
    missing = ["--at", "2032", "--exposure", "later.csv", "--out", "no.csv"]
    assert "got none for 2032" in refused("predict", "counts.sgp", *missing, status=2)
    message = refused(*FIT, "--signals", "counts.csv", "--out", "other.sgp", "--likelihood", "bernoulli")
    assert "Y must hold zeros and ones" in message
    wrong = ["--likelihood", "poisson", "--exposure", "nowhere.csv", "--force"]
    message = refused(*FIT, "--signals", "counts.csv", "--out", "other.sgp", *wrong, status=2)
    assert "--exposure must be a number, or a table" in message


def test_classes_of_nodes_are_learnt_and_predicted(folder):
    names = list(pd.read_csv("files/incomes.csv", index_col=0).columns)
    known = {names[0]: "east", names[5]: "west", names[9]: "east"}
    rows = [f"{name},{known.get(name, '')}" for name in names[:12]]
    Path("classes.csv").write_text("\n".join(["state,side", *rows]) + "\n")
    pd.DataFrame({"state": names, "a": np.arange(len(names)), "b": 1.0}).to_csv("features.csv", index=False)
    learn = ["fit", "--graph", "files/edges.csv", "--classes", "classes.csv"]
    assert "3 labels of 2 classes (east 2, west 1)" in answered(*learn, "--out", "classes.sgp")
    answered(*learn, "--inputs", "features.csv", "--out", "features.sgp")
    assert load("features.sgp").n_features_in_ == 2
    answered("predict", "classes.sgp", "--out", "told.csv")
    told, model = pd.read_csv("told.csv", index_col=0), load("classes.sgp")
    assert list(told.columns) == ["class", "p(east)", "p(west)"]
    assert set(told.index) == set(names)
    labels = pd.Series(known).reindex(list(model.graph_.names))
    expected = spectralgp.GraphGPClassifier(model.graph_).fit(None, labels)
    own = told.loc[list(model.graph_.names)]
    assert np.allclose(own[["p(east)", "p(west)"]], expected.predict_proba(), atol=1e-6)
    assert own["class"].tolist() == expected.predict().tolist()
    for command in ("score", "impute", "update"):
        out = [] if command == "score" else ["--out", "no.csv"]
        assert "got one of classes" in refused(command, "classes.sgp", "--signals", "files/incomes.csv", *out)
    assert "got one of classes" in refused("report", "classes.sgp", "--out", "no.html")
    assert "got one of classes" in refused("plot", "classes.sgp", "--out", "no.png")
    assert "one of --signals and --classes" in refused("fit", "--graph", "files/edges.csv", "--out", "o", status=2)
    assert "--likelihood must be left out" in refused(*learn, "--likelihood", "poisson", "--out", "o", status=2)
    assert "given --out alone" in refused("predict", "classes.sgp", "--level", "0.9", "--out", "no.csv", status=2)
    Path("classes.csv").write_text("state,side\nAtlantis,east\n")
    assert "got 'Atlantis', which is none" in refused(*learn, "--out", "other.sgp")


def test_what_was_typed_as_inputs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").touch()
    parts = {
        (): files.InputColumns(), ("time",): files.InputColumns(time=True), ("lag:12",): files.InputColumns(lag=12),
        ("a.csv", "lag:1", "time"): files.InputColumns(True, 1, Path("a.csv")),
    }  # fmt: skip
    assert {typed: files.input_parts(list(typed)) for typed in parts} == parts
    assert files.input_parts(None) == files.InputColumns()
    for typed, said in (
        (["time", "time"], "at most once; got time and time. Join tables into one."),
        (["a.csv", "a.csv"], "at most once; got a.csv and a.csv"),
        (["lag:1", "lag:1"], "at most once; got lag:1 and lag:1"),
        (["lag:-1"], "the row before, or another number; got lag:-1"),
        (["lag:"], "the row before, or another number; got lag:"),
        (["lag:\N{ARABIC-INDIC DIGIT ONE}"], "the row before, or another number; got lag:"),
        (["b.csv"], "got b.csv, which is not a file"),
    ):
        with pytest.raises(typer.BadParameter, match=re.escape(said)):
            files.input_parts(typed)


def test_times_that_are_typed_are_numbers_or_dates():
    assert files.times_given(["3", "4.5"], None, None)["time"].tolist() == [3.0, 4.5]
    assert files.times_given(["1970-01-03"], "dates", None)["time"].tolist() == [2.0]
    assert files.times_given(["04.01.1970"], None, "%d.%m.%Y")["time"].tolist() == [3.0]
    for at, clock, said in (
        (["soon"], None, "--at must be numbers or dates as 2024-01-31; got soon."),
        (["1970-01-03"], "numbers", "--at must be numbers, as the model was fitted to; got 1970-01-03."),
        (["3", "4"], "dates", "--at must be dates as 2024-01-31, as the model was fitted to; got 3, 4."),
    ):
        with pytest.raises(typer.BadParameter, match=re.escape(said)):
            files.times_given(at, clock, None)


def test_what_is_known_of_predictions_is_matched_by_label():
    new = pd.DataFrame({"time": [1.0, 2.0, 3.0]}, index=[2001, 2002, 2003])
    observed = pd.DataFrame({"a": [7.0, 5.0]}, index=[2003, 2001])
    found = answers.matched_observations(observed, new, Path("known.csv"))
    pd.testing.assert_frame_equal(found, pd.DataFrame({"a": [5.0, np.nan, 7.0]}, index=new.index))
    pd.testing.assert_frame_equal(answers.matched_observations(observed[:1], None, Path("known.csv")), observed[:1])
    for table, rows, said in (
        (observed, None, "known.csv must have one row for a model without inputs, which predicts one signal; got 2."),
        (observed[:0], None, "which predicts one signal; got 0."),
        (observed.set_axis([2003, 2004]), new, "each once; got 2004, which is not among them."),
        (observed.set_axis([2003, 2003]), new, "each once; got a label twice."),
    ):
        with pytest.raises(ValueError, match=re.escape(said)):
            answers.matched_observations(table, rows, Path("known.csv"))


def test_answers_for_machines_are_plain(capsys):
    value = {"a": np.float64("nan"), 1: (Path("x"), np.arange(2), True, None, np.inf, 2.5), "b": [{"c": np.int64(3)}]}
    print_answer(value | {"é": "ü"}, "", as_json=True)
    printed = capsys.readouterr().out
    assert '"é": "ü"' in printed
    assert json.loads(printed) == {"é": "ü", "a": None, "1": ["x", [0, 1], True, None, None, 2.5], "b": [{"c": 3}]}


def test_tables_of_nodes_are_in_the_order_of_the_graph(tmp_path):
    graph, path = Graph.from_edges([("c", "a"), ("a", "b")]), tmp_path / "table.csv"

    def read(text, names=graph):
        path.write_text(text)
        return files.node_table(path, names, "its class")

    columns = {"side": {"b": "east"}, "more": {"b": "1", "a": "2"}}
    assert read("node,side,more\nb,east,1\na,,2\n") == {
        column: [cells.get(name) for name in graph.names] for column, cells in columns.items()
    }
    assert read("node,side\n1,east\n0,west\n", Graph(graph.weights)) == {"side": ["west", "east", None]}
    for text, got in (
        ("node,side\nb,east\nd,west\n", "got 'd', which is none"),
        ("node,side\nb,east\na,west\nb,west\n", "got 'b' twice"),
        ("node\nb\na\n", "got one column alone"),
    ):
        with pytest.raises(ValueError, match=got):
            read(text)
    path.write_text("node,u,v\na,1,2\nb,3,4\nc,5,6\n")
    expected = {"a": [1, 2], "b": [3, 4], "c": [5, 6]}
    np.testing.assert_array_equal(learning.node_features(path, graph), [expected[name] for name in graph.names])
    for cell in ("", "x"):
        path.write_text(f"node,u,v\na,1,2\nb,3,{cell}\nc,5,6\n")
        with pytest.raises(
            ValueError, match=f"a number for every node in column 'v'; got {cell and repr(cell)}.*for 'b'"
        ):
            learning.node_features(path, graph)


def test_what_was_typed_is_what_is_fitted(folder):
    """Options reach the model, and what it is fitted to is what they name."""
    data = incomes("incomes")
    pd.DataFrame({"rain": np.sin(data.index)}, index=data.index).to_csv("rain.csv")
    states = partial(LearningOptions, Path("files/edges.csv"))

    def regressor(kernel=None, device=None, likelihood="gaussian", **typed):
        options = states(**typed)
        data = files.read_data(Path("files/incomes.csv"), options, TableOptions())
        return learning.regressor_of(data, kernel, options, device, likelihood)

    def forecaster(season, inputs, kernel=None):
        data = files.read_data(Path("files/incomes.csv"), states(inputs=inputs), TableOptions())
        return learning.forecaster_of(data, season, kernel, inputs)

    model, (inputs, signals) = regressor(Diffusion(), spectrum="exact", seed=7, jobs=3, effort="fast")
    assert (model.spectrum, model.random_state, model.likelihood) == ("exact", 7, "gaussian")
    assert model.graph_kernel == Stacking(Diffusion(), n_jobs=3, effort="fast")
    assert inputs is None
    np.testing.assert_array_equal(signals, data)
    on_device, _ = regressor(device="cuda", likelihood="poisson")
    assert (on_device.spectrum, on_device.likelihood) == (Chebyshev(device="cuda"), "poisson")
    assert regressor(device="cpu")[0].spectrum == "auto"
    with pytest.raises(typer.BadParameter, match="--device must be cpu with --spectrum exact"):
        regressor(device="cuda", spectrum="exact")
    series = {"season": ["7", "52.5"], "inputs": ["time", "rain.csv"]}
    model, (rows, beside) = forecaster(**series)
    assert model.seasons == (7.0, 52.5)
    np.testing.assert_array_equal(rows, data)
    assert list(beside) == ["rain"]
    np.testing.assert_allclose(beside["rain"], np.sin(data.index))
    model, (_, beside) = forecaster(season=["auto"], inputs=["time"])
    assert (model.seasons, beside) == ("auto", None)
    for wrong, said in (
        ({"kernel": Diffusion(), **series}, "--kernel and --degree must be left out with --season"),
        ({"season": ["7"], "inputs": ["time", "lag:1"]}, "--season must come with --inputs time, and without lag"),
        ({"season": ["7"], "inputs": ["rain.csv"]}, "--season must come with --inputs time, and without lag"),
    ):
        with pytest.raises(typer.BadParameter, match=said):
            forecaster(**wrong)
    Path("classes.csv").write_text("state,side\nMaine,east\nOhio,west\n")
    classifier, (features, labels) = learning.classifier_of(Path("classes.csv"), states())
    assert (classifier.spectrum, features) == ("auto", None)
    assert {name: label for name, label in zip(classifier.graph.names, labels, strict=True) if label} == {
        "Maine": "east", "Ohio": "west"
    }  # fmt: skip
    for typed, said in (
        (("--inputs", "time"), "--inputs must be a table of node and features"),
        (("--inputs", "lag:1"), "--inputs must be a table of node and features"),
        (("--exposure", "2"), "--exposure must be left out with --classes"),
        (("--device", "cpu"), "--device must be left out with --classes"),
        (("--likelihood", "poisson"), "--likelihood must be left out with --classes"),
    ):
        fit = ("fit", "--graph", "files/edges.csv", "--classes", "classes.csv", "--out", "x.sgp")
        assert said in refused(*fit, *typed, status=2)
    Path("classes.csv").write_text("state,side,more\nMaine,east,1\n")
    with pytest.raises(typer.BadParameter, match="two columns, node and class; got 3"):
        learning.classifier_of(Path("classes.csv"), states())
    assert "got both" in refused(*LAGGED, "--classes", "classes.csv", status=2)


def test_a_report_is_the_models_own(fitted):
    model, later = load("model.sgp"), incomes("later")
    assert answered("report", "model.sgp", "--out", "report.html", "--title", "Incomes") == "Report: report.html\n"
    assert Path("report.html").read_text() == model.report("own.html", title="Incomes").read_text()
    answer = json.loads(
        answered("report", "model.sgp", "--signals", "files/later.csv", "--out", "later.html", "--json")
    )
    inputs, truth = later[:-1].set_axis(later.index[1:]), later[1:]
    expected = model.report("own.html", inputs, truth).read_text()
    assert Path("later.html").read_text() == expected
    assert answer == {"out": "later.html", "n_bytes": len(expected.encode())}
    answered("report", "model.sgp", "--signals", "files/later.csv", "--out", "wide.html", "--aspect", "1.5")
    assert Path("wide.html").read_text() == expected.replace('"scaleratio":1.0', '"scaleratio":1.5') != expected
    assert "must be left out without --signals" in refused(
        "report", "model.sgp", "--inputs", "time", "--out", "x.html", status=2
    )


def test_a_long_series_is_fitted_with_a_backtest(folder):
    walk = np.random.default_rng(0).standard_normal((60, 2)).cumsum(axis=0)
    pd.DataFrame(walk, columns=["a", "b"], index=pd.RangeIndex(60, name="row")).to_csv("walk.csv")
    pd.DataFrame({"source": ["a"], "target": ["b"]}).to_csv("pair.csv", index=False)
    fit = ["fit", "--graph", "pair.csv", "--signals", "walk.csv", "--inputs", "time", "--season", "auto"]
    answer, found = json.loads(answered(*fit, "--out", "walk.sgp", "--json")), load("walk.sgp").backtest_
    assert answer["backtest"]["horizons"] == found.horizons.tolist()
    for score in ("rmse", "crps"):
        assert answer["backtest"][score]["model"] == pytest.approx(getattr(found, score)["model"])


def test_tables_of_inputs_are_matched_by_label(folder):
    data = incomes("incomes")
    inputs = pd.DataFrame({"a": np.sin(data.index), "b": data.index / 1000}, index=data.index)
    inputs[::-1].to_csv("inputs.csv")
    answered(*FIT, "--signals", "files/incomes.csv", "--inputs", "inputs.csv", "--out", "model.sgp")
    model = load("model.sgp")
    assert list(model.feature_names_in_) == ["a", "b"]
    np.testing.assert_allclose(model.posterior_.parts[0][1].inputs, inputs, rtol=1e-12)
    pd.DataFrame({"b": [2.0], "extra": [1.0], "a": [0.5]}, index=pd.Index(["x"], name="label")).to_csv("new.csv")
    answered("predict", "model.sgp", "--inputs", "new.csv", "--out", "out.csv")
    predicted = pd.read_csv("out.csv", index_col="label")
    expected = model.predict(pd.DataFrame({"a": [0.5], "b": [2.0]}))
    np.testing.assert_allclose(predicted.loc["x", list(data)], expected.iloc[0], rtol=1e-9)
    assert "fitted with a table with a, b" in refused("score", "model.sgp", "--signals", "files/later.csv", status=2)


# ------------------------------------------------------------------------------------------ how inputs were made


def test_a_table_named_as_time_or_nodes_is_never_taken_for_them(folder):
    """Names of columns say nothing about how inputs were made: 163 degrees were predicted that way."""
    data = incomes("incomes")
    pd.DataFrame({"time": np.sin(data.index)}, index=data.index).to_csv("one.csv")
    (data * 0.0 + np.arange(30.0)[:, None]).to_csv("nodes.csv")
    for table in ("one.csv", "nodes.csv"):
        answered(*FIT, "--signals", "files/incomes.csv", "--inputs", table, "--out", "model.sgp", "--force")
        later = ["model.sgp", "--signals", "files/later.csv"]
        for command in (["score", *later], ["impute", *later, "--out", "x.csv"], ["report", *later, "--out", "x.html"]):
            assert "--inputs must name a table: the model was fitted with a table with" in refused(*command, status=2)
            said = refused(*command, "--inputs", "lag:1", status=2)
            assert "--inputs must be as the model was fitted, with a table with" in said
        assert "must name a table" in refused("predict", *later, "--out", "x.csv", status=2)
        assert "must name a table" in refused("predict", "model.sgp", "--at", "1990", "--out", "x.csv", status=2)
        answered("score", "model.sgp", "--signals", "files/incomes.csv", "--inputs", table)


def test_how_inputs_were_made_is_in_the_file(folder):
    data = incomes("incomes")
    pd.DataFrame({"rain": np.sin(data.index)}, index=data.index).to_csv("rain.csv")
    kinds = {
        (): InputRecipe(),
        ("time",): InputRecipe("numbers"),
        ("lag:3",): InputRecipe(lag=3),
        ("rain.csv", "lag:1", "time"): InputRecipe("numbers", 1, ("rain",)),
    }
    for words, recipe in kinds.items():
        inputs = [part for word in words for part in ("--inputs", word)]
        answered(*FIT, "--signals", "files/incomes.csv", *inputs, "--out", "model.sgp", "--force")
        assert load("model.sgp").input_recipe_ == recipe
    later = ["--signals", "files/later.csv"]
    assert "with time (numbers), lag:1 and a table with rain" in refused("score", "model.sgp", *later, status=2)
    model = load("model.sgp")
    expected = data[:-1].set_axis(data.index[1:]).assign(time=data.index[1:], rain=np.sin(data.index[1:]))
    np.testing.assert_allclose(model.posterior_.inputs, expected[list(model.feature_names_in_)], rtol=1e-9)
    years = np.arange(1990, 2011)
    pd.DataFrame({"rain": np.cos(years)}, index=pd.Index(years, name="year")).to_csv("later-rain.csv")
    answered("predict", "model.sgp", *later, "--inputs", "later-rain.csv", "--out", "out.csv")
    new = incomes("later").set_axis(years).assign(time=years, rain=np.cos(years))
    predicted = pd.read_csv("out.csv", index_col="year")
    np.testing.assert_allclose(predicted[list(data)], model.predict(new)[list(data)], rtol=1e-6)


def test_a_lag_of_several_rows(folder):
    answered(*FIT, "--signals", "files/incomes.csv", "--inputs", "lag:3", "--out", "model.sgp")
    answered("predict", "model.sgp", "--signals", "files/later.csv", "--out", "out.csv")
    later, predicted = incomes("later"), pd.read_csv("out.csv", index_col="year")
    assert predicted.index.tolist() == list(range(1992, 2013))
    np.testing.assert_allclose(predicted[list(later)], load("model.sgp").predict(later)[list(later)], rtol=1e-9)
    assert json.loads(answered("score", "model.sgp", "--signals", "files/later.csv", "--json"))["n_signals"] == 18
    assert "with lag:3; got lag:1" in refused(
        "score", "model.sgp", "--signals", "files/later.csv", "--inputs", "lag:1", status=2
    )


def test_a_lag_does_not_move_to_a_graph_with_other_nodes(folder):
    nodes = ["a", "b", "c", "d"]
    rows = np.random.default_rng(0).standard_normal((12, 4)).cumsum(axis=0)
    data = pd.DataFrame(rows, columns=nodes, index=pd.RangeIndex(12, name="year"))
    model = GraphGPRegressor(Graph.from_edges(list(pairwise(nodes))), Diffusion(), residual=None, carry=None)
    model.fit(data[:-1].set_axis(data.index[1:]), data[1:]).input_recipe_ = InputRecipe(lag=1)
    model.transfer(Graph.from_edges([("x", "y")])).save("moved.sgp")
    pd.DataFrame({"year": [1, 2], "x": [0.0, 1.0], "y": [1.0, 2.0]}).to_csv("other.csv", index=False)
    assert "got none named 'a', 'b', 'c', 'd'" in refused("score", "moved.sgp", "--signals", "other.csv")


def test_parts_of_inputs_have_different_columns(folder):
    incomes("incomes").to_csv("same.csv")
    arguments = ["--signals", "files/incomes.csv", "--inputs", "lag:1", "--inputs", "same.csv", "--out", "model.sgp"]
    assert "same.csv must have no column named like those of time and lag" in refused(*FIT, *arguments)


def test_a_file_that_does_not_say_how_inputs_were_made_asks(folder):
    """Models that were fitted in Python, and files of format version 1."""
    data, later = incomes("incomes"), ["--signals", "files/later.csv"]
    graph = Graph.from_edges(pd.read_csv("files/edges.csv"))
    model = GraphGPRegressor(graph, Polynomial(2)).fit(data[:-1].set_axis(data.index[1:]), data[1:])
    model.save("lagged.sgp")
    GraphGPRegressor(graph, Polynomial(2)).fit(pd.DataFrame({"time": data.index * 1.0}), data).save("time.sgp")
    for name, told, other in (("lagged.sgp", "lag:1", "time"), ("time.sgp", "time", "lag:1")):
        said = refused("score", name, *later, status=2)
        assert "--inputs must say how the model's inputs" in said
        assert "are made (time, lag:1, or a table with them): its file does not" in said
        assert "must make the inputs that" in refused("score", name, *later, "--inputs", other, status=2)
        answered("score", name, *later, "--inputs", told)
        taken_in = json.loads(answered("update", name, *later, "--inputs", told, "--out", f"new-{name}", "--json"))
        assert (taken_in["n_new"], taken_in["n_left_out"]) == (20, told == "time")  # 1989 is in both files
    assert "must say how" in refused("predict", "lagged.sgp", *later, "--out", "out.csv", status=2)
    answered("predict", "lagged.sgp", *later, "--inputs", "lag:1", "--out", "out.csv")
    predicted = pd.read_csv("out.csv", index_col="year")
    np.testing.assert_allclose(predicted[list(data)], model.predict(incomes("later"))[list(data)], rtol=1e-9)
    old = Path(__file__).parents[1] / "data" / "version1-stacked.sgp"
    assert load(old).input_recipe_ is None
    assert "must say how the model's inputs" in refused("predict", old, "--out", "x.csv", status=2)


def test_times_are_of_the_kind_that_the_model_was_fitted_to(folder):
    answered(*FIT, "--signals", "files/incomes.csv", "--inputs", "time", "--out", "model.sgp")
    later = incomes("later").set_axis(pd.date_range("1989-12-31", periods=21, freq="YE").rename("day"))
    later.to_csv("dated.csv")
    said = refused("score", "model.sgp", "--signals", "dated.csv")
    assert said.startswith("dated.csv: time must be numbers, as the model was fitted to; got dates such as 1989-12-31")
    at = ["--at", "1990-12-31", "--out", "x.csv"]
    assert "--at must be numbers, as the model was fitted to" in refused("predict", "model.sgp", *at, status=2)
    pd.DataFrame({"year": [1990, 1995]}).to_csv("years.csv", index=False)
    answered("predict", "model.sgp", "--inputs", "years.csv", "--out", "a.csv")
    answered("predict", "model.sgp", "--at", "1990", "--at", "1995", "--out", "b.csv")
    np.testing.assert_array_equal(pd.read_csv("a.csv", index_col="year"), pd.read_csv("b.csv", index_col="time"))


def test_models_of_time_predict_at_times_and_from_what_is_known(folder):
    data = incomes("incomes").set_axis(pd.date_range("1960-12-31", periods=30, freq="YE").rename("day"))
    data.to_csv("dated.csv")
    answered(*FIT, "--signals", "dated.csv", "--inputs", "time", "--out", "model.sgp")
    answered("predict", "model.sgp", "--at", "1990-12-31", "--at", "1991-12-31", "--out", "out.csv")
    model, names = load("model.sgp"), list(data)
    days = np.array(["1990-12-31", "1991-12-31"], dtype="datetime64[D]").astype(float)
    predicted = pd.read_csv("out.csv", index_col="time")
    assert predicted.index.tolist() == ["1990-12-31", "1991-12-31"]
    np.testing.assert_allclose(predicted[names], model.predict(pd.DataFrame({"time": days})), rtol=1e-9)
    known = pd.DataFrame(np.nan, index=pd.Index(["1990-12-31"], name="day"), columns=names)
    known.iloc[0, :40] = 1.0
    known.to_csv("known.csv")
    answered("predict", "model.sgp", "--observed", "known.csv", "--out", "known-out.csv")
    predicted = pd.read_csv("known-out.csv", index_col="day")
    expected = model.predict(pd.DataFrame({"time": days[:1]}), observed=known.to_numpy())
    np.testing.assert_allclose(predicted[names], expected, rtol=1e-9)
    assert "--at must be dates as 2024-01-31, as the model was fitted to; got soon" in refused(
        "predict", "model.sgp", "--at", "soon", "--out", "x.csv", status=2
    )


def test_a_model_without_inputs_predicts_one_signal(folder):
    answered(*FIT, "--signals", "files/incomes.csv", "--out", "model.sgp")
    answered("predict", "model.sgp", "--out", "out.csv")
    model = load("model.sgp")
    np.testing.assert_allclose(pd.read_csv("out.csv", index_col=0), model.predict(None), rtol=1e-9)
    answered("score", "model.sgp", "--signals", "files/later.csv")
    said = refused("predict", "model.sgp", "--signals", "files/later.csv", "--out", "x.csv", status=2)
    assert "the model was fitted without inputs; got --signals" in said
    said = refused("score", "model.sgp", "--signals", "files/later.csv", "--inputs", "time", status=2)
    assert "--inputs must be left out: the model was fitted without inputs" in said
    assert "must have one row" in refused("predict", "model.sgp", "--observed", "files/later.csv", "--out", "x.csv")


def test_graphs_from_points_and_matrices(folder):
    data = incomes("incomes")
    arguments = ["--signals", "files/incomes.csv", "--kernel", "diffusion", "--out", "model.sgp", "--force", "--json"]
    answered("fit", "--points", "files/states.csv", "--neighbors", "5", *arguments)
    places = pd.read_csv("files/states.csv", index_col="name")
    expected = Graph.from_points(places, 5, metric="haversine")
    assert (load("model.sgp").graph_.weights != expected.weights).nnz == 0
    answered("fit", "--graph", "files/edges.csv", "--points", "files/states.csv", *arguments)
    graph = load("model.sgp").graph_
    np.testing.assert_array_equal(graph.coordinates, places.loc[list(graph.names)])
    np.savez("graph.npz", weights=expected.weights.toarray())
    answered("fit", "--graph", "graph.npz", *arguments)
    assert load("model.sgp").graph_.names == tuple(data.columns)  # those of the signals
    assert "pass --graph FILE, or --points FILE" in refused("fit", *arguments, status=2)
    both = ["--neighbors", "5", "--radius", "2"]
    assert "Choose one of them" in refused("fit", "--points", "files/states.csv", *both, *arguments, status=2)
    assert "They are for points" in refused("fit", "--graph", "files/edges.csv", "--neighbors", "5", *arguments)


def test_nodes_that_differ_are_an_error_or_the_graphs_choice(folder):
    incomes("incomes").drop(columns=["Ohio"]).assign(Narnia=1.0).to_csv("other.csv")
    said = refused(*FIT, "--signals", "other.csv", "--out", "model.sgp")
    assert said.startswith("other.csv must have one column for each of the 48 nodes of the graph")
    assert "no column for 'Ohio' and columns that are no node: 'Narnia'" in said
    answer = json.loads(answered(*FIT, "--signals", "other.csv", "--out", "model.sgp", "--nodes", "graph", "--json"))
    assert (answer["n_nodes"], answer["n_missing"]) == (48, 30)


# ----------------------------------------------------------------------------------------------- how commands answer


def test_json_is_one_object_and_nothing_else(fitted):
    commands = {
        "fit": [*LAGGED, "--force"],
        "predict": ["predict", "model.sgp", "--signals", "files/later.csv", "--out", "a.csv"],
        "impute": ["impute", "model.sgp", "--signals", "files/later.csv", "--out", "b.csv"],
        "score": ["score", "model.sgp", "--signals", "files/later.csv"],
        "info": ["info"],
    }
    answers = {name: json.loads(answered(*arguments, "--json")) for name, arguments in commands.items()}
    assert answers["fit"]["n_signals"] == 29
    assert answers["fit"]["inputs"] == list(incomes("incomes"))
    assert answers["fit"]["log_evidence"] == load("model.sgp").log_marginal_likelihood_
    assert answers["predict"] == {"out": "a.csv", "std": None, "n_signals": 21, "n_nodes": 48}
    assert answers["impute"]["n_imputed"] == 0
    assert answers["info"]["spectralgp"] == spectralgp.__version__
    assert answers["info"]["libraries"]["numpy"] == np.__version__
    assert "numpy" in answered("info")


def test_nothing_is_overwritten_without_force(fitted):
    before = Path("model.sgp").read_bytes()
    assert "model.sgp exists already. Pass --force" in refused(*LAGGED, status=2)
    predict = ["predict", "model.sgp", "--signals", "files/later.csv", "--out"]
    assert "exists already" in refused(*predict, "model.sgp", status=2)
    assert "must not be written twice" in refused(*predict, "a.csv", "--std", "a.csv", status=2)
    assert "must be in an existing folder" in refused(*predict, "nowhere/a.csv", status=2)
    assert "exists already" in refused("example", status=2)
    assert Path("model.sgp").read_bytes() == before
    assert not Path("a.csv").exists()
    answered(*LAGGED, "--force")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "--signals", "no-file.csv", "--graph", "files/edges.csv", "--out", "x.sgp"], "no-file.csv"),
        (["fit", "--graph", "files/edges.csv", "--out", "x.sgp"], "--signals"),
        ([*LAGGED, "--kernel", "cubic"], "kernel must be one of auto, polynomial"),
        ([*LAGGED, "--kernel", "polynomial:x"], "the number being its degree; got"),
        ([*LAGGED, "--kernel", "diffusion:3"], "must be given without a number"),
        ([*LAGGED, "--kernel", "diffusion", "--degree", "3"], "--degree must be left out"),
        ([*FIT, "--signals", "files/incomes.csv", "--out", "x.sgp", "--inputs", "lag:0"], "--inputs must be lag:1"),
        ([*LAGGED, "--inputs", "lag:2"], "got lag:1 and lag:2. Join tables"),
        ([*LAGGED, "--inputs", "no-file.csv"], "which is not a file"),
        ([*LAGGED, "--seed", "-1"], "Invalid value for '--seed'"),
        ([*LAGGED, "--jobs", "0"], "Invalid value for '--jobs'"),
        ([*LAGGED[:-1], "/dev/null", "--force"], "/dev/null must be a file"),
        (["predict", "files/edges.csv"], "--out"),
        (["compare", "--signals", "files/incomes.csv"], "a graph must be given"),
    ],
)
def test_mistakes_in_arguments_have_status_2(folder, arguments, message):
    assert message in refused(*arguments, status=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*FIT, "--signals", "files/edges.csv", "--out", "x.sgp"], "files/edges.csv must have one column for each of"),
        ([*LAGGED, "--graph", "files/incomes.csv"], "files/incomes.csv must have the columns source, target"),
        (["score", "files/edges.csv", "--signals", "files/later.csv"], "files/edges.csv"),
        (
            [*FIT, "--signals", "files/missing.csv", "--inputs", "lag:1", "--out", "x.sgp"],
            "an empty cell in the row of 19",
        ),
        ([*FIT, "--signals", "bad.csv", "--out", "x.sgp"], "got 'x' in row 3, column 'Ohio'"),
        ([*FIT, "--signals", "nothing.csv", "--out", "x.sgp"], "nothing.csv: Y must hold at least one value"),
    ],
)
def test_failures_have_status_1_and_one_line(folder, arguments, message):
    incomes("incomes").astype(object).assign(Ohio=lambda data: ["1", "x", *data["Ohio"][2:]]).to_csv("bad.csv")
    (incomes("incomes") * np.nan).to_csv("nothing.csv")
    assert message in refused(*arguments)


def test_debug_shows_the_traceback(folder):
    answer = run(*FIT, "--signals", "files/edges.csv", "--out", "x.sgp", "--debug")
    assert answer.exit_code == 1
    assert isinstance(answer.exception, ValueError)
    assert answer.exception.__traceback__ is not None


def test_what_is_unexpected_is_said_to_be_and_warnings_are_notes_of_one_line(folder, monkeypatch):
    fit = GraphGPRegressor.fit

    def broken(self, X, Y):
        raise KeyError("of ours")

    def warning(self, X, Y):
        warnings.warn("a warning\nof two lines", UserWarning, stacklevel=2)
        return fit(self, X, Y)

    for one, status, said in (
        (broken, 1, "error: unexpected KeyError: 'of ours' (--debug shows where"),
        (warning, 0, "note: a warning of two lines"),
    ):
        monkeypatch.setattr(GraphGPRegressor, "fit", one)
        answer = run(*LAGGED)
        (line,) = answer.stderr.splitlines()
        assert (answer.exit_code, line[: len(said)]) == (status, said)


@pytest.mark.parametrize("name", [*graph_kernels(), "polynomial:3", "matern:2.5", "random-walk:2", "auto"])
def test_kernels_are_found_by_name(name):
    found = kernel_named(name)
    kind = name.partition(":")[0].replace("-", "")
    assert type(found).__name__.lower() == (kind if name != "auto" else "nonetype")
    expected = {"polynomial:3": Polynomial(3), "matern:2.5": Matern(2.5), "random-walk:2": RandomWalk(2)}
    assert name not in expected or found == expected[name]
    assert name != "polynomial" or found == Polynomial("auto")


def test_a_degree_is_that_of_the_polynomial():
    named = {("auto", None): "auto", ("diffusion", None): "diffusion", ("auto", "3"): "polynomial:3"}
    named |= {("polynomial", "auto"): "polynomial:auto", ("polynomial", None): "polynomial"}
    assert {typed: learning.with_degree(*typed) for typed in named} == named
    assert (kernel_named("polynomial:auto"), kernel_named(" Matern ")) == (Polynomial("auto"), Matern())
    for text, said in (
        ("auto:2", "kernel must be one of auto, polynomial, "),
        ("matern:auto", "such as matern:2, the number being its nu"),
        ("random-walk:1.5", "such as random-walk:2, the number being its steps"),
        ("identity:1", "must be given without a number"),
    ):
        with pytest.raises(typer.BadParameter, match=said):
            kernel_named(text)


def test_a_kernel_that_fails_is_left_out_of_the_comparison(folder):
    pd.DataFrame({"source": [f"n{k}" for k in range(60)], "target": [f"n{k + 1}" for k in range(60)]}).to_csv(
        "path.csv", index=False
    )
    values = np.random.default_rng(0).standard_normal((12, 61))
    pd.DataFrame(values, columns=[f"n{k}" for k in range(61)]).to_csv("values.csv", index=False)
    arguments = ["compare", "--graph", "path.csv", "--signals", "values.csv", "--spectrum", "chebyshev", "--json"]
    answer = run(*arguments, "--kernels", "pseudo-inverse,diffusion")
    assert answer.exit_code == 0
    assert [row["kernel"] for row in json.loads(answer.stdout)["kernels"]] == ["diffusion"]
    assert answer.stderr.startswith("note: pseudo-inverse is left out: ")


# ------------------------------------------------------------------------------------------------ interruptions


SLOW = """
import signal
import time
from spectralgp import GraphGPRegressor
from spectralgp.__main__ import main
from spectralgp._basics.files import atomic_write

def save(self, path):
    with atomic_write(path) as beside:
        beside.write_text("half of a model")
        print("half written", flush=True)
        time.sleep(60)

signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background of a script ignore it
GraphGPRegressor.save = save
main()
"""


def started(*arguments, **options):
    return subprocess.Popen(
        [sys.executable, *arguments],
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def test_python_m_spectralgp_goes_from_csv_to_predictions(folder):
    for arguments in (LAGGED, ["predict", "model.sgp", "--signals", "files/later.csv", "--out", "out.csv"]):
        process = started("-m", "spectralgp", *arguments)
        stdout, stderr = process.communicate()
        assert (process.returncode, stderr) == (0, "")  # no bar where nobody looks
    assert stdout == "Predicted 21 signals at 48 nodes: out.csv\n"
    assert len(pd.read_csv("out.csv")) == 21


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [LAGGED, [*LAGGED, "--json"]], ids=["words", "json"])
def test_a_reader_that_leaves_is_no_failure(folder, arguments):
    """``spectralgp fit ... | head -1``: the model is saved, and nobody wants to hear more."""
    process = started("-m", "spectralgp", *arguments)
    process.stdout.close()
    with process.stderr:
        said = process.stderr.read()
    assert (process.wait(), said) == (0, "")
    assert load("model.sgp").input_recipe_ == InputRecipe(lag=1)


@pytest.mark.parametrize("length", [238, 255])
def test_names_may_be_as_long_as_the_file_system_has_them(folder, length):
    name = "m" * (length - 4) + ".sgp"
    answered(*LAGGED[:-1], name)
    assert load(name).n_features_in_ == 48
    assert "must have a shorter name" in refused(*LAGGED[:-1], "m" * 256, status=2)


@pytest.mark.slow
def test_ctrl_c_leaves_the_old_file_and_nothing_beside_it(folder):
    Path("model.sgp").write_text("old")
    Path("slow.py").write_text(SLOW)
    process = started("slow.py", *LAGGED, "--force")
    assert process.stdout.readline() == "half written\n"
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate()
    assert (process.returncode, stdout, stderr) == (1, "", "error: interrupted\n")
    assert Path("model.sgp").read_text() == "old"
    assert {path.name for path in folder.iterdir()} == {"files", "model.sgp", "slow.py"}


@pytest.mark.slow
def test_a_full_disk_leaves_the_old_file_and_nothing_beside_it(fitted):
    Path("out.csv").write_text("old")

    def small_files_only():
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    process = started(
        "-m",
        "spectralgp",
        "predict",
        "model.sgp",
        "--signals",
        "files/later.csv",
        "--out",
        "out.csv",
        "--force",
        preexec_fn=small_files_only,
    )
    stdout, stderr = process.communicate()
    assert (process.returncode, stdout) == (1, "")
    assert re.fullmatch(r"error: .*File too large.*\n", stderr)
    assert Path("out.csv").read_text() == "old"
    assert {path.name for path in fitted.iterdir()} == {"files", "model.sgp", "out.csv"}
