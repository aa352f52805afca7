"""The runner from end to end, cut short; resuming; and the experiments whose files could not be had, on stand-ins."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat
from scipy.sparse.csgraph import connected_components

from reproduction import EXPERIMENTS, page, reproduce, runner, write_page
from reproduction.jobs import FilterJob
from reproduction.problems import MissingData, problem
from reproduction.runner import NOT_HAD
from reproduction.store import RESULTS, fingerprint
from spectralgp.datasets import load_cerebellum, released

PNG = b"\x89PNG\r\n"
OPTIONAL = {"fmri", "fmri-released", "uber"}


def results_in(folder: Path, key: str) -> list[dict]:
    return [json.loads(line) for line in (folder / key / RESULTS).read_text().splitlines()]


@pytest.fixture
def remembered(quick_run, monkeypatch) -> list[str]:
    """Jobs of filters answer with what they found in the quick run; the names of those that started."""
    started = []
    known = {
        entry["fingerprint"]: entry["result"]
        for study in EXPERIMENTS
        if study.key not in OPTIONAL
        for entry in results_in(quick_run[0], study.key)
    }

    def run(job, place=None):
        started.append(job.name)
        return known[fingerprint(job)]

    monkeypatch.setattr(FilterJob, "run", run)
    return started


@pytest.mark.slow
def test_quick_runs_everything_whose_files_are_here(quick_run):
    folder, outcomes = quick_run
    assert [outcome.experiment for outcome in outcomes] == [study.key for study in EXPERIMENTS]
    for outcome in outcomes:
        if outcome.experiment in OPTIONAL:
            assert outcome.status == NOT_HAD
            assert outcome.is_optional
            name = "uber_data.mat" if outcome.experiment == "uber" else "signal_set_cerebellum.mat"
            assert outcome.message.startswith(name)
            assert not (folder / outcome.experiment).exists()
            continue
        assert outcome.status == "done"
        assert outcome.seconds > 0
        study = next(one.quick() for one in EXPERIMENTS if one.key == outcome.experiment)
        assert len(results_in(folder, study.key)) == len(runner.Record(folder, study).jobs)
    for name in ("figure-1", "figure-1-jointly", "figure-2", "figure-5", "sensor/errors", "traffic-splits/figure"):
        assert (folder / f"{name}.png").read_bytes().startswith(PNG)
        assert "<svg" in (folder / f"{name}.svg").read_text()


@pytest.mark.slow
def test_the_summary_says_that_it_is_a_cut_and_shows_every_figure(quick_run):
    folder, _ = quick_run
    text = (folder / "summary.md").read_text()
    assert "**This is a cut**" in text
    for study in EXPERIMENTS[1:]:
        assert f"## {study.title}" in text
    images = re.findall(r"!\[[^]]*\]\(([^)]+)\)", text)
    assert {"figure-1.png", "figure-1-jointly.png", "figure-2.png", "figure-5.png"} <= set(images)
    assert all((folder / image).is_file() for image in images)
    assert text.count("Not run here: the file could not be had.") == len(OPTIONAL)
    # a cell of the table: our figure, by either solver, and the paper's
    cell = next(line for line in text.splitlines() if line.startswith("| degree 3 |") and "paper" in line)
    assert re.search(r"ours \*\*-322\.03 \(3\.62\)\*\*<br>Algorithm 1 .*<br>paper -324\.36 \(3\.43\)", cell)


@pytest.mark.slow
def test_a_second_run_computes_and_draws_nothing(quick_run, data_folder, tmp_path, monkeypatch):
    folder = tmp_path / "copy"
    shutil.copytree(quick_run[0], folder)
    (folder / "noise" / "errors.svg").unlink()
    drawn = []
    monkeypatch.setattr("reproduction.figures.save", lambda figure, place, name: drawn.append(f"{place.name}/{name}"))
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.*g")}
    names = [study.key for study in EXPERIMENTS if study.key not in OPTIONAL]
    outcomes = reproduce(names, quick=True, out=folder, folder=data_folder, n_processes=1)
    assert {outcome.status for outcome in outcomes} == {"kept"}
    assert drawn == ["noise/errors"]  # the one that was lost
    assert {path: path.stat().st_mtime_ns for path in before} == before


@pytest.mark.slow
def test_an_interruption_loses_no_job_that_has_ended(remembered, tmp_path):
    steps = []

    def interrupt(step, n_done, n_steps):
        steps.append((step, n_done, n_steps))
        if step == "inverse-wishart" and n_done == n_steps - 1:
            raise KeyboardInterrupt

    arguments = {"quick": True, "out": tmp_path, "n_processes": 1}
    with pytest.raises(KeyboardInterrupt):
        reproduce(["sensor", "inverse-wishart"], progress=interrupt, **arguments)
    n_started = len(remembered)
    assert len(results_in(tmp_path, "inverse-wishart")) == n_started - len(results_in(tmp_path, "sensor"))
    statuses = [outcome.status for outcome in reproduce(["sensor", "inverse-wishart"], **arguments)]
    assert statuses == ["kept", "done"]
    assert len(remembered) == n_started + 1
    assert [n_done for _, n_done, _ in steps if n_done] == sorted({n_done for _, n_done, _ in steps if n_done})


@pytest.mark.slow
def test_two_processes_give_the_results_of_one(quick_run, tmp_path):
    reproduce(["inverse-wishart"], quick=True, out=tmp_path, n_processes=2)
    one, two = (
        {entry["job"]: entry["result"] for entry in results_in(place, "inverse-wishart")}
        for place in (quick_run[0], tmp_path)
    )
    assert one.keys() == two.keys()
    for name, mine in one.items():
        for fit, other in zip(mine["learnt"], two[name]["learnt"], strict=True):
            assert fit["log_likelihood"] == pytest.approx(other["log_likelihood"], rel=1e-9)


def test_an_unknown_experiment_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="experiments must be among graphs, sensor, noise"):
        reproduce(["traffik"], out=tmp_path)


def test_a_machine_without_data_says_what_is_missing(tmp_path, monkeypatch):
    def missing(*arguments):
        raise MissingData("city45data.mat must be on this machine")

    monkeypatch.setattr(runner, "problem", missing)
    (outcome,) = reproduce(["weather"], quick=True, out=tmp_path, n_processes=1)
    assert (outcome.status, outcome.message) == (NOT_HAD, "city45data.mat must be on this machine")
    text = (tmp_path / "summary.md").read_text()
    assert text.count("not run here: the file could not be had") > 0
    assert "## Traffic\n" not in text  # nobody asked for it
    assert "None of the paper's 14" in text


@pytest.fixture
def stand_ins(data_folder, tmp_path, monkeypatch) -> tuple[Path, np.ndarray, np.ndarray]:
    """A folder with files of the shape of those that could not be had; signals low-pass on their graphs."""
    # checked by their shapes alone: the hash is that of the released signals
    monkeypatch.setattr(released, "SIGNALS", dataclasses.replace(released.SIGNALS, git_blob=None))
    for name in ("A_cerebellum.mat",):
        shutil.copyfile(data_folder / name, tmp_path / name)
    laplacian = load_cerebellum(tmp_path, signals=False).graph.laplacian(scaled=True)
    rng = np.random.default_rng(0)
    columns = rng.standard_normal((4465, 292))
    for _ in range(3):  # (I - L_S)^3
        columns = columns - laplacian @ columns
    columns += 0.1 * np.std(columns) * rng.standard_normal(columns.shape)
    savemat(tmp_path / "signal_set_cerebellum.mat", {"F2": columns})
    places = rng.uniform(size=(29, 2)) * 0.2 + [-74.0, 40.7]
    counts = 20 + np.cumsum(rng.standard_normal((29, 744)), axis=1)
    savemat(tmp_path / "uber_data.mat", {"lon": places[:, :1], "lat": places[:, 1:], "X1": counts})
    return tmp_path, columns, counts


def test_fmri_runs_as_the_text_has_it(stand_ins):
    folder, columns, _ = stand_ins
    (outcome,) = reproduce(["fmri"], quick=True, out=folder / "out", folder=folder, n_processes=1)
    assert outcome.status == "done"
    models = {entry["result"]["model"]: entry["result"] for entry in results_in(folder / "out", "fmri")}
    assert all(len(fit["scores"]["released"]) == 10 for fit in models.values())
    assert np.mean(models["degree-3"]["scores"]["released"]) > np.mean(models["standard"]["scores"]["released"])
    low, high = (np.polyval(models["degree-3"]["coefficients"][::-1], end) for end in (0.0, 1.0))
    assert low > high
    (shown,) = [fit["shown"] for fit in models.values() if "shown" in fit]
    assert sum(shown["is_input"]) == 10
    assert len(shown["eigenvalues"]) == 40
    places = np.array(shown["coordinates"])  # the 50 voxels are in five parts: none may hide another
    assert np.linalg.norm(places[:, None] - places, axis=2)[~np.eye(50, dtype=bool)].min() > 0.1
    assert "paper 42.36 (4.59)" in (folder / "out" / "summary.md").read_text()
    # the larger training set of the full run: the first signals are learnt from, the last 250 predicted
    task = problem("fmri", 42, 1, folder)
    standardised = ((columns - columns.mean()) / columns.std()).T
    np.testing.assert_allclose(task.inputs, standardised[:42, :10], rtol=1e-12)
    np.testing.assert_allclose(task.signals, standardised[:42, 10:50], rtol=1e-12)
    np.testing.assert_allclose(task.tests["released"][1], standardised[42:, 10:50], rtol=1e-12)


@pytest.mark.slow
def test_fmri_runs_as_the_released_program_has_it(stand_ins):
    folder, columns, _ = stand_ins
    (outcome,) = reproduce(["fmri-released"], quick=True, out=folder / "out", folder=folder, n_processes=1)
    assert outcome.status == "done"
    text = (folder / "out" / "summary.md").read_text()
    assert "## fMRI, as the released program has it" in text
    # 500 voxels by NumPy's old generator with seed 59, the largest component of them, and inputs from the first ten
    nodes = np.random.RandomState(59).randint(0, 4465, 500)
    weights = load_cerebellum(folder, signals=False).graph.weights.toarray()
    labels = connected_components(weights[np.ix_(nodes, nodes)])[1]
    nodes = nodes[labels == np.bincount(labels).argmax()]
    task = problem("fmri-released", 21, 1, folder)
    standardised = ((columns - columns.mean()) / columns.std()).T
    np.testing.assert_array_equal(task.graph.weights.toarray(), weights[np.ix_(nodes, nodes)])
    np.testing.assert_allclose(task.signals, standardised[:21][:, nodes], rtol=1e-12)
    np.testing.assert_allclose(task.inputs, standardised[:21, :10], rtol=1e-12)
    np.testing.assert_allclose(task.tests["released"][0], standardised[42:, :10], rtol=1e-12)


def test_uber_runs_as_the_released_program_has_it(stand_ins):
    folder, _, counts = stand_ins
    (outcome,) = reproduce(["uber"], quick=True, out=folder / "out", folder=folder, n_processes=1)
    assert outcome.status == "done"
    np.random.seed(8)  # noqa: NPY002 - the released program's own generator
    outputs = np.random.choice(np.arange(29), 20, replace=False)  # noqa: NPY002
    hours = np.random.randint(0, 744, 20)  # noqa: NPY002
    others = np.delete(np.arange(29), outputs)
    standardised = (counts - counts.mean()) / counts.std()
    task = problem("uber", 10, 1, folder)
    np.testing.assert_allclose(task.signals, standardised[outputs[:, None], hours[:10]].T, rtol=1e-12)
    np.testing.assert_allclose(task.inputs, standardised[others[:, None], hours[:10]].T, rtol=1e-12)
    left = np.delete(np.arange(744), hours)[:200]
    np.testing.assert_allclose(task.tests["released"][1], standardised[outputs[:, None], left].T, rtol=1e-12)
    assert task.set_size == 10
    assert all(len(entry["result"]["scores"]["released"]) == 20 for entry in results_in(folder / "out", "uber"))


@pytest.mark.slow
def test_the_page_is_made_from_results_alone(quick_run, tmp_path, monkeypatch):
    folder, _ = quick_run
    with pytest.raises(FileNotFoundError, match=r"without sensor, .*Run `make reproduce` first"):
        write_page(folder, tmp_path)  # quick results are not the experiments'
    monkeypatch.setattr(page, "EXPERIMENTS", tuple(study.quick() for study in EXPERIMENTS))
    path = write_page(folder, tmp_path)
    text = path.read_text()
    images = re.findall(r"!\[[^]]*\]\(([^)]+)\)", text)
    assert images
    for image in images:
        assert (tmp_path / image).is_file()
        assert image.startswith("images/reproduction/")
    assert text.splitlines()[0] == "# The paper reproduced"
