"""The page of calibration is what its results make; data are drawn as it says; scores tell calibrated from not."""

from __future__ import annotations

import json
import re
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm, poisson

import oracle
from oracle import law_of, relative_error
from tolerances import EXACT, FORMULA

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import _calibration  # noqa: E402
import bench_calibration  # noqa: E402
from _calibration import CELLS, LEVELS, Cell, scores_of_classes, scores_of_counts, scores_of_transforms  # noqa: E402
from _calibration_page import Check, calibration_error, page, rows_of  # noqa: E402
from _classes import calibration_error as calibration_error_at_once  # noqa: E402

from spectralgp import Graph  # noqa: E402

RESULTS = json.loads((ROOT / "benchmarks" / "results" / "calibration.json").read_text())
PRINTED = 0.5e-3 + 1e-9  # by rounding to three digits
LIMIT = 4.0  # standard errors, over data sets, that a share may be off; seeds are fixed
WEIGHTS = oracle.random_weights(6, seed=4)
GRAPH = Graph(WEIGHTS)


def run(cell, n_sets):
    """Results of one setting, as they are kept."""
    kept = {"code": "", "n_sets": 0, "seconds": 0.0, "warned": 0, "failed": [], "rows": {}}
    for seed in range(n_sets):
        bench_calibration.add(kept, cell.run(seed))
    assert not kept["failed"]
    return {"cells": {cell.name: kept}, "machine": {"python": "3"}}


# ----- the page -----


def test_the_page_is_current():
    assert (ROOT / "docs" / "calibration.md").read_text(encoding="utf-8") == page(RESULTS)


def tables_of(text):
    """Rows of every table below its heading, without stars and bold."""
    lines = [line for line in text.replace("**", "").replace(" \\*", "").splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "---" not in line]


def shown(cell):
    """Numbers of a cell of a table."""
    return [float(number) for number in re.findall(r"[-+]?\d+\.\d+", cell)]


def test_numbers_of_the_tables_are_those_of_the_results():
    """Means and standard errors over data sets, by hand."""
    tables, seen = tables_of(page(RESULTS)), 0
    for name, kept in RESULTS["cells"].items():
        for row, scores in kept["rows"].items():
            labels = [*CELLS[name].labels, row] if row else list(CELLS[name].labels)
            (line,) = [one for one in tables if one[: len(labels)] == labels and "data sets" not in one]
            n_sets = len(scores["n_values"])
            assert line[len(labels)] == str(n_sets)
            if "pit" not in scores:
                shares = [right / number for right, number in zip(scores["right"], scores["n_values"], strict=True)]
                assert shown(line[len(labels) + 2])[0] == pytest.approx(sum(shares) / n_sets, abs=PRINTED)
                continue
            for place, level in enumerate(LEVELS):
                pairs = zip(scores[f"covered_{level}"], scores["n_values"], strict=True)
                shares = [covered / number for covered, number in pairs]
                mean, told = sum(shares) / n_sets, scores.get(f"stated_{level}")
                off = shares if told is None else [one - other for one, other in zip(shares, told, strict=True)]
                centre = sum(off) / n_sets
                error = (sum((one - centre) ** 2 for one in off) / (n_sets - 1) / n_sets) ** 0.5
                expected = [mean, error] if told is None else [mean, sum(told) / n_sets, centre, error]
                assert shown(line[len(labels) + 2 + place]) == pytest.approx(expected, abs=PRINTED)
            assert shown(line[len(labels) + 5])[0] == pytest.approx(sum(scores["pit"]) / n_sets, abs=PRINTED)
            seen += 1
    assert seen == sum("pit" in row for kept in RESULTS["cells"].values() for row in kept["rows"].values())


def test_every_setting_has_results():
    assert list(RESULTS["cells"]) == list(CELLS)
    assert len({cell["code"] for cell in RESULTS["cells"].values()}) == 1
    assert all(cell["rows"] for cell in RESULTS["cells"].values())
    assert all(len(row["n_values"]) > 1 for cell in RESULTS["cells"].values() for row in cell["rows"].values())


def test_misses_are_named_and_counted():
    n_sets = 40
    wobble = np.where(np.arange(n_sets) % 2, 1, -1)
    # of 80 values: right, right, and 0.75 in place of 0.9
    covered = {f"covered_{level}": (n + wobble).tolist() for level, n in zip(LEVELS, (40, 64, 60), strict=True)}
    regression = {"n_values": [80] * n_sets, "pit": (0.6 + 0.01 * wobble).tolist(), **covered}
    excess = np.zeros((n_sets, 10))
    excess[:, 9] = -0.1 * 85
    classes = {"n_values": [85] * n_sets, "right": (60 + wobble).tolist(), "log_loss": (0.5 + 0.1 * wobble).tolist()}
    classes |= {"confidence": (60 / 85 + 0.1 + 0.01 * wobble).tolist(), "excess": excess.tolist()}
    settings = {"regression, Polynomial(2), 50, complete": regression, "classes, classifier, 5": classes}
    kept = {"code": "", "n_sets": n_sets, "seconds": 80.0, "warned": 3, "failed": []}
    cells = {name: kept | {"rows": {"": scores}} for name, scores in settings.items()}
    text = page({"cells": cells, "machine": {"python": "3"}})
    lines, error = text.splitlines(), np.std(wobble, ddof=1) / np.sqrt(n_sets)
    name = "regression, Polynomial(2), 50 signals, complete"
    assert f"* {name}: too narrow. 90% intervals hold 0.750 ± {error / 80:.3f}." in lines
    assert f"* {name}: predictions are too low on average; the mean of the PIT is 0.600 ± {error / 100:.3f}." in lines
    told = "* classes, classifier, 5 labels per class: overconfident; accuracy less confidence is -0.100 ± "
    assert any(line.startswith(told) for line in lines)
    assert "Of 3 shares of values inside 50%, 80% and 90% intervals in 1 settings, **2 are within two standard" in text
    assert "2 within three** (a calibrated model would have about 3 and 3); 1 of the 1 that are further off are" in text
    assert "Of 1 means of the PIT 0 and 0 are within" in text
    assert "hold 0.86 to 0.95 in 0 of 1 settings (they range from 0.750 to 0.750)." in text
    assert [line[-3:-1] for line in tables_of(text) if line[0] == "classifier"] == [["0.100", "0.013, 0.030"]]
    assert "* regression, Polynomial(2), 50, complete: 3 of the fits warned." in lines


# ----- data -----


@pytest.mark.parametrize("filters", [_calibration.POLYNOMIAL, _calibration.DIFFUSION], ids=["polynomial", "diffusion"])
def test_signals_are_drawn_with_the_covariance_of_the_dense_oracle(filters):
    inputs = np.array([[0.3], [-1.2], [0.9]])
    mean, found = law_of(partial(_calibration.draw_signals, GRAPH, inputs, filters))
    if filters is _calibration.POLYNOMIAL:
        matrix = oracle.laplacian(WEIGHTS, scaled=True)
        signal, residual = oracle.polynomial(matrix, [1, -0.8]), oracle.polynomial(matrix, [0.5, -0.25])
    else:
        matrix = oracle.laplacian(WEIGHTS, "normalized")
        signal, residual = oracle.diffusion(matrix, 3.0), oracle.polynomial(matrix, [0.5, -0.125])
    expected = oracle.covariance(oracle.rbf(inputs, inputs), signal, 0.09) + np.kron(np.eye(3), residual)
    assert relative_error(found, expected) < FORMULA
    assert relative_error(mean, np.ones(18)) < EXACT


@pytest.mark.parametrize("filters", [_calibration.POLYNOMIAL, _calibration.DIFFUSION], ids=["polynomial", "diffusion"])
def test_filters_are_those_of_their_words(filters):
    values = np.linspace(0, 1, 5)
    said = re.fullmatch(r"g\(λ\) = (.*) and h\(λ\) = (.*)", filters.words).groups()
    for words, response in zip(said, (filters.signal, filters.residual), strict=True):
        formula = re.sub(r"(\d) λ", r"\1 * values", words)
        assert relative_error(response(values), eval(formula, {"exp": np.exp, "values": values})) < EXACT


def test_maps_and_fields_of_classes_are_drawn_with_the_covariance_of_the_dense_oracle():
    _, found = law_of(partial(_calibration.draw_maps, GRAPH, 2))
    root = np.sqrt(0.5)
    one = oracle.polynomial(oracle.laplacian(WEIGHTS, scaled=True), [root, -0.9 * root])
    assert relative_error(found, np.kron(np.eye(2), one)) < FORMULA
    _, found = law_of(partial(_calibration.draw_fields, GRAPH))
    smooth = oracle.diffusion(oracle.laplacian(WEIGHTS, "normalized"), 40.0)
    field = 100 * (0.999 * smooth * 6 / np.trace(smooth) + 0.001 * np.eye(6))
    assert relative_error(found, np.kron(field, np.eye(3))) < FORMULA


def test_series_are_drawn_with_the_covariance_of_the_dense_oracle():
    n_steps = 4
    mean, found = law_of(partial(_calibration.draw_series, GRAPH, n_steps))
    matrix, expected = oracle.laplacian(WEIGHTS, scaled=True), np.zeros((n_steps, 6, n_steps, 6))
    for one in range(n_steps):
        for other in range(n_steps):
            lag = abs(one - other)
            expected[one, :, other] = oracle.matrix_function(
                matrix, lambda values, lag=lag: (1 - 0.7 * values) ** 2 * np.exp(-lag * (0.05 + 0.3 * values))
            )
    expected = expected.reshape(6 * n_steps, -1) + 0.09 * np.eye(6 * n_steps)
    assert relative_error(found, expected) < FORMULA
    assert relative_error(mean, np.ones(6 * n_steps)) < EXACT


def test_the_control_conditions_as_the_dense_oracle_does():
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((4, 1))
    signals = _calibration.draw_signals(GRAPH, inputs, _calibration.POLYNOMIAL, rng)
    mean, std = _calibration.conditional(GRAPH, inputs, signals[:3])
    matrix = oracle.laplacian(WEIGHTS, scaled=True)
    covariance = oracle.covariance(oracle.rbf(inputs, inputs), oracle.polynomial(matrix, [1, -0.8]), 0.09)
    covariance += np.kron(np.eye(4), oracle.polynomial(matrix, [0.5, -0.25]))
    places = np.arange(24)
    expected, left = oracle.condition(covariance, places[:18], signals[:3].ravel() - 1, places[18:])
    assert relative_error(mean, 1 + expected) < FORMULA
    assert relative_error(std, np.sqrt(np.diag(left))) < FORMULA


def test_missing_values_are_as_many_as_said_and_leave_no_row_or_column_empty():
    for seed in range(20):
        missing = _calibration.missing_at_random((5, 8), np.random.default_rng(seed))
        assert missing.sum() == 12
        assert not missing.all(axis=0).any()
        assert not missing.all(axis=1).any()


def test_settings_have_other_random_numbers():
    first = [cell.generator(0).random() for cell in CELLS.values()]
    assert len(set(first)) == len(CELLS)


# ----- scores -----


def test_coverage_is_that_of_central_intervals():
    mean, std, values = 1.0, 2.0, np.array([1.0, 2.3, 2.4, 3.5, 3.6, 4.2, 4.4, -2.2, -2.4])
    found = scores_of_transforms(norm.cdf(values, mean, std))
    inside = [np.abs(values - mean) <= norm.ppf(0.5 + level / 200) * std for level in LEVELS]
    assert [found[f"covered_{level}"] for level in LEVELS] == [one.sum() for one in inside] == [2, 4, 7]
    assert found["pit"] == pytest.approx(np.mean(norm.cdf((values - 1) / 2)), rel=EXACT)


def test_intervals_of_counts_state_the_probability_that_they_have():
    law, counts = poisson(0.2), np.array([0, 0, 1, 2])
    found = scores_of_counts(counts, np.full(4, 0.5), lambda end: np.full(4, law.ppf(end)), law.cdf)
    zero, one = np.exp(-0.2), 0.2 * np.exp(-0.2)
    stated = [found[f"stated_{level}"] for level in LEVELS]
    assert relative_error(stated, [zero, zero + one, zero + one]) < EXACT  # 0 to 0, and 0 to 1
    assert [found[f"covered_{level}"] for level in LEVELS] == [2, 3, 3]


def test_the_calibration_error_of_many_sets_is_that_of_all_their_nodes():
    rng = np.random.default_rng(0)
    sets = [rng.dirichlet(np.ones(3), 40) for _ in range(50)]
    truths = [np.array([rng.choice(3, p=one) for one in probabilities]) for probabilities in sets]
    found = [scores_of_classes(*pair) for pair in zip(sets, truths, strict=True)]
    excess = np.array([one["excess"] for one in found])
    together = calibration_error_at_once(np.concatenate(sets), np.concatenate(truths))
    assert calibration_error(excess, 2000) == pytest.approx(together, rel=EXACT)
    # labels are drawn from the probabilities: the error is one that signs at random make
    signs = rng.choice([-1.0, 1.0], (500, 50))
    expected = calibration_error(excess, 2000, signs)
    assert np.quantile(expected, 0.001) < together < np.quantile(expected, 0.999)
    right = sum(one["right"] for one in found)
    assert right == sum(np.sum(one.argmax(axis=1) == truth) for one, truth in zip(sets, truths, strict=True))
    # probabilities that are too sharp are found out
    sharp = [one**3 / np.sum(one**3, axis=1, keepdims=True) for one in sets]
    wrong = np.array([scores_of_classes(*pair)["excess"] for pair in zip(sharp, truths, strict=True)])
    assert calibration_error(wrong, 2000) > 2 * np.quantile(calibration_error(wrong, 2000, signs), 0.95)


def test_standard_errors_are_over_data_sets():
    check = Check.of(np.array([0.1, 0.3, 0.2]))
    assert check.mean == pytest.approx(0.2)
    assert check.error == pytest.approx(0.1 / np.sqrt(3))
    assert check.n_errors == pytest.approx(2 * np.sqrt(3))
    assert Check.of(np.zeros(3)).n_errors == 0
    assert Check(0.1, 0.0).n_errors == np.inf


CONTROLS = ("regression, true hyperparameters, 5, complete", "counts, true rates, 0.2", "counts, true rates, 20")


@pytest.mark.parametrize("name", CONTROLS)
def test_predictions_by_the_truth_are_calibrated(name):
    (row,) = rows_of(run(CELLS[name], 150))
    assert max(row.coverage(level).n_errors for level in LEVELS) < LIMIT
    assert row.transform.n_errors < LIMIT


def test_classes_by_the_truth_are_calibrated():
    (row,) = rows_of(run(CELLS["classes, true fields"], 60))
    assert row.confidence.n_errors < LIMIT


def test_intervals_that_are_too_narrow_are_found_out():
    """A tenth off in the standard deviation, with as many data sets as the page has."""

    def score(generator):
        return scores_of_transforms(norm.cdf(generator.standard_normal(40), scale=0.9))

    cell = Cell("regression", CELLS[CONTROLS[0]].labels, score)
    (row,) = rows_of(run(cell, 200))
    assert row.coverage(90).mean == pytest.approx(2 * norm.cdf(0.9 * norm.ppf(0.95)) - 1.9, abs=0.01)
    assert all(row.coverage(level).n_errors > LIMIT for level in LEVELS)
    assert row.transform.n_errors < LIMIT


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["Polynomial(2)", "Diffusion()"])
def test_a_kernel_that_is_given_is_calibrated_with_fifty_signals(kernel):
    (row,) = rows_of(run(CELLS[f"regression, {kernel}, 50, complete"], 60))
    assert max(row.coverage(level).n_errors for level in LEVELS) < LIMIT
    assert row.transform.n_errors < LIMIT


# ----- running -----


@pytest.mark.slow
def test_a_small_run_is_kept_resumed_and_written_again(tmp_path, capsys, monkeypatch):
    chosen = ["--small", "--out", str(tmp_path), "--only", "regression", "observations", "counts", "classes"]
    bench_calibration.main([*chosen, "--sets", "2"])
    first = json.loads((tmp_path / "calibration.json").read_text())
    bench_calibration.main([*chosen, "--sets", "4"])
    kept, text = json.loads((tmp_path / "calibration.json").read_text()), (tmp_path / "calibration.md").read_text()
    for name, cell in kept["cells"].items():
        assert cell["n_sets"] == 4
        assert not cell["failed"]
        for row, scores in first["cells"][name]["rows"].items():
            assert all(cell["rows"][row][measure][:2] == numbers for measure, numbers in scores.items())
    (tmp_path / "calibration.md").unlink()
    monkeypatch.setattr(bench_calibration, "run_set", lambda name, seed: pytest.fail("nothing is to be scored"))
    bench_calibration.main([*chosen, "--sets", "4"])
    assert (tmp_path / "calibration.md").read_text() == text
    bench_calibration.main(["--page", "--out", str(tmp_path)])
    assert (tmp_path / "calibration.md").read_text() == text
    # other code: what it did not score is scored anew
    monkeypatch.setattr(bench_calibration, "digest_of_code", lambda: "other")
    monkeypatch.setattr(bench_calibration, "run_set", lambda name, seed: {"failed": f"data set {seed}: why"})
    bench_calibration.main([*chosen[:3], "--only", "classes", "--sets", "4"])
    again = json.loads((tmp_path / "calibration.json").read_text())["cells"]
    assert again["classes, classifier, 5"]["failed"] == [f"data set {seed}: why" for seed in range(4)]
    assert again["counts, true rates, 2"] == kept["cells"]["counts, true rates, 2"]
    text = (tmp_path / "calibration.md").read_text()
    assert "* classes, classifier, 5: 4 of the fits failed, and are left out. The first: data set 0: why" in text
    assert "2 different versions of the code" in text
    capsys.readouterr()


@pytest.mark.slow
def test_a_data_set_is_scored_the_same_again():
    first, again = (CELLS["forecasts, 30% missing"].run(3) for _ in range(2))
    assert list(first["rows"]) == ["1", "6", "24"]
    assert first["rows"] == again["rows"]
    assert all(scores["n_values"] == 40 for scores in first["rows"].values())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--sets", "1"], "--sets must be at least 2; got 1"),
        (["--small"], "--out must be given with --small"),
        (["--only", "nothing"], r"--only must be the beginning of a setting's name; got \['nothing'\]"),
    ],
)
def test_what_cannot_be_run_is_refused(arguments, words, capsys):
    with pytest.raises(SystemExit):
        bench_calibration.main(arguments)
    assert re.search(words, capsys.readouterr().err)
