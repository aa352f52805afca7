"""The runner from end to end, cut short; resuming; and the fMRI experiment on a file of the right shape."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from reproduction import EXPERIMENTS, page, reproduce, runner, write_page
from reproduction.jobs import FilterJob
from reproduction.problems import problem
from spectralgp.datasets import cerebellum, load_cerebellum

PNG = b"\x89PNG\r\n"


@pytest.fixture(scope="session")
def quick_run(tmp_path_factory, data_folder) -> tuple[Path, list]:
    folder = tmp_path_factory.mktemp("quick")
    return folder, reproduce(quick=True, out=folder, folder=data_folder, n_processes=1)


@pytest.fixture
def remembered(quick_run, monkeypatch) -> list[str]:
    """Jobs of filters answer with what they found in the quick run; the names of those that started."""
    started = []

    def run(job, place=None):
        started.append(job.study.key)
        results = json.loads((quick_run[0] / job.study.key / "results.json").read_text())["jobs"]
        (found,) = [
            one for one in results if (one["truth"], one["snr"], one["seed"]) == (job.truth.key, job.snr, job.seed)
        ]
        return found

    monkeypatch.setattr(FilterJob, "run", run)
    return started


@pytest.mark.slow
def test_quick_runs_everything_but_the_missing_signals(quick_run):
    folder, outcomes = quick_run
    assert [outcome.experiment for outcome in outcomes] == [study.key for study in EXPERIMENTS]
    for outcome in outcomes:
        if outcome.experiment == "fmri":
            assert outcome.status.startswith("not run: file missing: signal_set_cerebellum.mat")
            continue
        assert outcome.status == "done"
        place = folder / outcome.experiment
        assert json.loads((place / "results.json").read_text())["experiment"] == outcome.experiment
        assert (place / "figure.png").read_bytes().startswith(PNG)
        assert "<svg" in (place / "figure.svg").read_text()
        assert (place / "table.md").read_text().count("\n|") > 4


@pytest.mark.slow
def test_the_summary_shows_every_table_and_figure(quick_run):
    folder, _ = quick_run
    text = (folder / "summary.md").read_text()
    for study in EXPERIMENTS:
        assert f"## {study.title}" in text
        if study.key != "fmri":
            assert (folder / study.key / "table.md").read_text().strip() in text
    images = re.findall(r"!\[[^]]*\]\(([^)]+)\)", text)
    assert {"figure-1.png", "figure-2.png", "figure-5.png"} <= set(images)
    assert all((folder / image).is_file() for image in images)
    assert "not run: file missing" in text
    # a cell of the table: our figure, by either solver, the paper's, and that of the authors' code
    cell = next(line for line in text.splitlines() if line.startswith("| degree 3 |") and "authors' code" in line)
    assert re.search(r"ours \*\*-322\.03 \(3\.62\)\*\*<br>Algorithm 1 .*<br>paper -324\.36 \(3\.43\)", cell)


@pytest.mark.slow
def test_finished_experiments_are_not_run_again(quick_run, remembered, data_folder, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(quick_run[0], folder)
    (folder / "sensor" / "results.json").unlink()
    damaged = folder / "inverse-wishart" / "results.json"
    damaged.write_text(damaged.read_text()[:-10])
    names = ["sensor", "barabasi-albert", "inverse-wishart"]
    outcomes = reproduce(names, quick=True, out=folder, folder=data_folder, n_processes=1)
    assert [outcome.status for outcome in outcomes] == ["done", "kept", "done"]
    assert set(remembered) == {"sensor", "inverse-wishart"}


@pytest.mark.slow
def test_an_interrupted_run_keeps_what_was_finished(remembered, tmp_path):
    steps = []

    def interrupt(step, n_done, n_steps):
        steps.append((step, n_done, n_steps))
        if step == "inverse-wishart" and n_done == n_steps - 1:
            raise KeyboardInterrupt

    arguments = {"quick": True, "out": tmp_path, "n_processes": 1}
    with pytest.raises(KeyboardInterrupt):
        reproduce(["sensor", "inverse-wishart"], progress=interrupt, **arguments)
    assert (tmp_path / "sensor" / "results.json").is_file()
    assert not (tmp_path / "inverse-wishart").exists()
    statuses = [outcome.status for outcome in reproduce(["sensor", "inverse-wishart"], **arguments)]
    assert statuses == ["kept", "done"]
    assert [n_done for _, n_done, _ in steps] == list(range(1, len(steps) + 1))


@pytest.mark.slow
def test_two_processes_give_the_results_of_one(quick_run, tmp_path):
    reproduce(["inverse-wishart"], quick=True, out=tmp_path, n_processes=2)
    folders = (quick_run[0], tmp_path)
    one, two = (json.loads((place / "inverse-wishart" / "results.json").read_text())["jobs"] for place in folders)
    assert [job["seed"] for job in one] == [job["seed"] for job in two]
    for mine, theirs in zip(one, two, strict=True):
        for fit, other in zip(mine["learnt"], theirs["learnt"], strict=True):
            assert fit["log_likelihood"] == pytest.approx(other["log_likelihood"], rel=1e-9)


def test_an_unknown_experiment_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="experiments must be among sensor, noise"):
        reproduce(["traffik"], out=tmp_path)


def test_a_machine_without_data_says_what_is_missing(tmp_path, monkeypatch):
    def missing(job, place=None):
        raise runner.MissingData("file missing: city45data.mat")

    monkeypatch.setattr("reproduction.jobs.PredictionJob.run", missing)
    (outcome,) = reproduce(["weather"], quick=True, out=tmp_path, n_processes=1)
    assert outcome.status == "not run: file missing: city45data.mat"
    assert "not run: file missing: city45data.mat." in (tmp_path / "summary.md").read_text()


def test_fmri_runs_on_a_file_of_the_right_shape(data_folder, tmp_path, monkeypatch):
    # checked by its shape alone: the sum is that of the released signals
    monkeypatch.setattr(cerebellum, "SIGNALS", dataclasses.replace(cerebellum.SIGNALS, git_blob=None))
    shutil.copyfile(data_folder / "A_cerebellum.mat", tmp_path / "A_cerebellum.mat")
    laplacian = load_cerebellum(tmp_path, signals=False).graph.laplacian(scaled=True)
    rng = np.random.default_rng(0)
    columns = rng.standard_normal((4465, 292))
    for _ in range(3):  # low-pass: (I - L_S)^3
        columns = columns - laplacian @ columns
    columns += 0.1 * np.std(columns) * rng.standard_normal(columns.shape)
    savemat(tmp_path / "signal_set_cerebellum.mat", {"F2": columns})
    (outcome,) = reproduce(["fmri"], quick=True, out=tmp_path / "out", folder=tmp_path, n_processes=1)
    assert outcome.status == "done"
    (job,) = json.loads((tmp_path / "out" / "fmri" / "results.json").read_text())["jobs"]
    models = job["models"]
    assert all(len(fit["scores"]["released"]) == 10 for fit in models.values())
    assert np.mean(models["degree-3"]["scores"]["released"]) > np.mean(models["standard"]["scores"]["released"])
    low, high = (np.polyval(models["degree-3"]["coefficients"][::-1], end) for end in (0.0, 1.0))
    assert low > high
    assert sum(job["shown"]["is_input"]) == 10
    assert len(job["shown"]["eigenvalues"]) == 40
    assert "paper 42.36 (4.59)" in (tmp_path / "out" / "fmri" / "table.md").read_text()
    # the larger training set of the full run: the first signals are learnt from, the last 250 predicted
    task = problem("fmri", 42, 1, tmp_path)
    standardised = ((columns - columns.mean()) / columns.std()).T
    np.testing.assert_allclose(task.inputs, standardised[:42, :10], rtol=1e-12)
    np.testing.assert_allclose(task.signals, standardised[:42, 10:50], rtol=1e-12)
    np.testing.assert_allclose(task.tests["released"][1], standardised[42:, 10:50], rtol=1e-12)


@pytest.mark.slow
def test_the_page_is_made_from_results_alone(quick_run, tmp_path, monkeypatch):
    folder, _ = quick_run
    with pytest.raises(FileNotFoundError, match="Run `make reproduce` first"):
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
