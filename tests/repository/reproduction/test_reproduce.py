"""The runner from end to end, cut short; resuming; and the experiments whose files are not available, on stand-ins."""

import hashlib
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from made_up import STUDIES, everything
from scipy.io import savemat
from scipy.sparse.csgraph import connected_components

from reproduction import EXPERIMENTS, page, reproduce, runner, write_page
from reproduction.jobs import FilterJob, jobs_of
from reproduction.problems import MissingData, problem
from reproduction.runner import NOT_HAD
from reproduction.store import RESULTS, fingerprint, write_text
from spectralgp.datasets import load_cerebellum, released

PNG = b"\x89PNG\r\n"
OPTIONAL = {"fmri", "fmri-released"}


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
            assert outcome.message.startswith("signal_set_cerebellum.mat")
            assert not (folder / outcome.experiment).exists()
            continue
        assert outcome.status == "done"
        assert outcome.seconds > 0
        study = next(one.quick() for one in EXPERIMENTS if one.key == outcome.experiment)
        assert len(results_in(folder, study.key)) == len(runner.Record(folder, study).jobs)
    for name in ("table-1", "figure-1", "figure-2", "figure-5", "errors", "barabasi-albert/figure"):
        assert (folder / f"{name}.png").read_bytes().startswith(PNG)


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


@pytest.fixture
def stand_ins(data_folder, tmp_path, monkeypatch) -> tuple[Path, np.ndarray, np.ndarray]:
    """A folder with files of the shape of those that are not available; signals low-pass on their graphs."""
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
    for name in ("signal_set_cerebellum.mat", "uber_data.mat"):
        checksum = hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
        monkeypatch.setitem(released.CHECKSUMS, name, f"SHA-256 {checksum}")
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
    assert "| 42.36 (4.59) |" in (folder / "out" / "summary.md").read_text()
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


def keep_made_up(folder: Path, studies=STUDIES) -> None:
    """Write made-up results of all experiments into a folder, as if they had been run."""
    for key, found in everything(studies).results.items():
        entries = [
            {"job": job.name, "fingerprint": fingerprint(job), "seconds": 1.0, "result": result}
            for job, result in zip(jobs_of(studies[key]), found, strict=True)
        ]
        write_text(folder / key / RESULTS, "".join(json.dumps(entry) + "\n" for entry in entries))


def test_the_pages_are_made_from_results_alone_and_are_the_same_again(tmp_path, monkeypatch):
    out, docs = tmp_path / "out", tmp_path / "docs"
    with pytest.raises(FileNotFoundError, match=r"without graphs, .*Run `make reproduce` first"):
        write_page(out, docs)
    keep_made_up(out)
    monkeypatch.setattr(runner, "_fetch", lambda study, folder: missing())
    assert {outcome.status for outcome in reproduce(out=out, n_processes=1)} == {"kept", NOT_HAD}
    write_text(docs / "real-data.md", "# Real data\n\nAnother program's.\n\n## The data\n\nIts last words.\n")
    write_text(docs / "images" / "reproduction" / "old.svg", "of an older page")
    assert write_page(out, docs) == docs / page.PAGE
    pages = {path: path.read_bytes() for path in docs.rglob("*.*")}
    text = (docs / page.PAGE).read_text()
    assert text.splitlines()[0] == "# The paper reproduced"
    images = re.findall(r"!\[[^]]*\]\(([^)]+)\)", text)
    assert images == [f"images/reproduction/{name}.png" for name in ("table-1", "figure-1", "figure-2")]
    assert not (docs / "images" / "reproduction" / "old.svg").exists()
    real = (docs / "real-data.md").read_text()
    assert real.startswith(
        "# Real data\n\nAnother program's.\n\n## The data\n\nIts last words.\n\n<!-- reproduction: begin"
    )
    assert "## On the paper's splits" in real
    # byte for byte
    for path in out.rglob("*.png"):
        path.unlink()
    reproduce(out=out, n_processes=1)
    write_page(out, docs)
    assert {path: path.read_bytes() for path in docs.rglob("*.*")} == pages


def missing() -> None:
    raise MissingData("not here")
