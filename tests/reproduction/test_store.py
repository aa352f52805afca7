from __future__ import annotations

import dataclasses
import json

import pytest

from reproduction import store
from reproduction.experiments import EXPERIMENTS
from reproduction.store import fingerprint, read_results, write_results, write_text

STUDY = EXPERIMENTS[0]


def test_results_are_read_back(tmp_path):
    written = write_results(tmp_path, STUDY, [{"truth": "low-pass"}], 1.5)
    assert read_results(tmp_path, STUDY) == written
    assert written["jobs"] == [{"truth": "low-pass"}]


def test_results_of_another_description_are_not_read(tmp_path):
    write_results(tmp_path, STUDY, [], 1.0)
    assert read_results(tmp_path, dataclasses.replace(STUDY, n_signals=16)) is None
    assert read_results(tmp_path, STUDY.quick()) is None


def test_a_new_version_of_the_package_runs_anew(tmp_path, monkeypatch):
    write_results(tmp_path, STUDY, [], 1.0)
    monkeypatch.setattr(store.spectralgp, "__version__", "99")
    assert read_results(tmp_path, STUDY) is None


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_half_a_file_is_no_result(tmp_path, share):
    write_results(tmp_path, STUDY, [{"truth": "low-pass"}], 1.0)
    path = tmp_path / STUDY.key / "results.json"
    content = path.read_text()
    path.write_text(content[: int(share * len(content))])
    assert read_results(tmp_path, STUDY) is None


def test_an_interrupted_write_leaves_what_was_there_and_no_litter(tmp_path, monkeypatch):
    path = tmp_path / "page.md"
    write_text(path, "whole")

    def interrupted(self, target):
        raise KeyboardInterrupt

    monkeypatch.setattr(store.Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_text(path, "never seen")
    assert path.read_text() == "whole"
    assert list(tmp_path.iterdir()) == [path]


def test_not_a_number_is_never_written(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_results(tmp_path, STUDY, [{"error": float("nan")}], 1.0)
    assert read_results(tmp_path, STUDY) is None


def test_the_fingerprint_is_of_the_description():
    assert len({fingerprint(study) for study in EXPERIMENTS}) == len(EXPERIMENTS)
    assert json.dumps(fingerprint(STUDY)) == json.dumps(fingerprint(dataclasses.replace(STUDY)))
