"""The command: what it prints, what it writes, and how it ends."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from reproduction.__main__ import app
from reproduction.store import RESULTS


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.slow
def test_a_cut_is_kept_summarised_and_not_run_again(tmp_path):
    answer = invoke("--quick", "inverse-wishart", "--out", tmp_path / "out")
    assert answer.exit_code == 0, answer.output
    said = [line.split(" (")[0] for line in answer.stdout.splitlines()]
    assert said[0].startswith("A cut of every experiment, under a minute on two idle cores")
    assert said[1:] == ["inverse-wishart: done", "Summary:", f"  {tmp_path / 'out' / 'summary.md'}"]
    first, *_ = (tmp_path / "out" / "inverse-wishart" / RESULTS).read_text().splitlines()
    value = json.loads(first)["result"]["learnt"][0]["log_likelihood"] + 225 * np.log(2 * np.pi)
    assert f"| {value:.2f} |" in (tmp_path / "out" / "summary.md").read_text()
    again = invoke("--quick", "inverse-wishart", "--out", tmp_path / "out")
    assert again.stdout.splitlines()[1].startswith("inverse-wishart: kept")


@pytest.mark.parametrize("experiment", ["weather", "fmri"])
def test_missing_data_that_were_asked_for_are_status_1(experiment, tmp_path, monkeypatch):
    monkeypatch.setenv("SPECTRALGP_DATA", str(tmp_path))
    answer = invoke("--quick", experiment, "--out", tmp_path / "out")
    assert answer.exit_code == 1
    assert f"{experiment}: not run here: the file is not available\n" in answer.stdout
    assert "must be" in answer.stderr
    assert "not run here: the file is not available." in (tmp_path / "out" / "summary.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--quick"),
        (["--all", "--quick"], "--all stands alone"),
        (["--all", "noise"], "--all stands alone"),
        (["--quick", "--docs", "docs"], "--docs goes with --all"),
        (["--quick", "--out", __file__], "is a file"),
    ],
)
def test_mistakes_in_arguments_have_status_2(arguments, said, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    answer = invoke(*arguments)
    assert answer.exit_code == 2
    assert said in answer.stderr


def test_an_unknown_experiment_and_a_folder_that_cannot_be_made_are_one_line_and_status_1(tmp_path):
    answer = invoke("traffik", "--out", tmp_path / "out")
    assert answer.exit_code == 1
    (line,) = answer.stderr.strip().splitlines()
    assert line.startswith("error: experiments must be among graphs, sensor, noise")
    assert not (tmp_path / "out").exists()
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    for name, reason in (("file/folder", "Not a directory"), ("link", "File exists")):
        answer = invoke("inverse-wishart", "--out", tmp_path / name)
        assert answer.exit_code == 1
        assert answer.stderr.strip() == (
            f"error: out must name a folder that is there or can be made; got {str(tmp_path / name)!r} ({reason}). "
            "Choose another."
        )
