"""The command: what it prints, what it writes, and how it ends."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from typer.testing import CliRunner

from reproduction import EXPERIMENTS, FilterStudy, __main__, experiments, page, runner
from reproduction.problems import MissingData
from reproduction.store import RESULTS

# seconds instead of minutes: one seed, and none of the real data
SMALL = tuple(
    replace(study.quick(), seeds=(1,), variants=False) for study in EXPERIMENTS if isinstance(study, FilterStudy)
)


@pytest.fixture
def invoke(monkeypatch):
    """Run the command on few and small experiments, all in this process."""

    def run(*arguments, studies=SMALL):
        monkeypatch.setattr(experiments, "EXPERIMENTS", studies)
        monkeypatch.setattr(page, "EXPERIMENTS", studies)
        monkeypatch.setattr(__main__, "reproduce", partial(experiments_run, n_processes=1))
        return CliRunner().invoke(__main__.app, [str(argument) for argument in arguments])

    experiments_run = __main__.reproduce
    return run


MESSAGE = "data must be on this machine or within reach of it"


def without_data(monkeypatch, *keys):
    def missing(*arguments):
        raise MissingData(MESSAGE)

    monkeypatch.setattr(runner, "problem", missing)
    return (*SMALL[-1:], *(study for study in EXPERIMENTS if study.key in keys))


def test_all_writes_the_page_from_what_it_ran(invoke, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(__main__, "write_page", lambda folder, docs: asked.append((folder, docs)) or docs / page.PAGE)
    answer = invoke("--all", "--out", tmp_path / "out", "--docs", tmp_path / "docs")
    assert answer.exit_code == 0, answer.output
    assert answer.stdout.endswith(f"  {tmp_path / 'out' / 'summary.md'}\nPage:\n  {tmp_path / 'docs' / page.PAGE}\n")
    assert asked == [(tmp_path / "out", tmp_path / "docs")]
    text = (tmp_path / "out" / "summary.md").read_text()
    for study in SMALL:
        first, *_ = (tmp_path / "out" / study.key / RESULTS).read_text().splitlines()
        value = json.loads(first)["result"]["learnt"][0]["log_likelihood"] + 225 * np.log(2 * np.pi)
        assert f"| {value:.2f} |" in text


def test_it_says_at_once_what_it_does_and_a_line_for_each_experiment_that_has_ended(invoke, tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(__main__.typer, "echo", lambda line, err=False: said.append(line))
    monkeypatch.setattr("reproduction.jobs.FilterJob.run", lambda job, place=None: said.append("a job") or 1 / 0)
    answer = invoke("--quick", "inverse-wishart", "--out", tmp_path / "out")
    assert isinstance(answer.exception, ZeroDivisionError)
    assert said[0].startswith("A cut of every experiment, under a minute on two idle cores")
    assert said[1:] == ["a job"]
    monkeypatch.undo()
    answer = invoke("--quick", "inverse-wishart", "noise", "--out", tmp_path / "out")
    lines = [line.split(" (")[0] for line in answer.stdout.splitlines()]
    assert lines[1:3] == ["noise: done", "inverse-wishart: done"]


def test_missing_data_are_status_1_and_leave_the_documentation_alone(invoke, tmp_path, monkeypatch):
    arguments = ["--all", "--out", tmp_path / "out", "--docs", tmp_path / "docs"]
    answer = invoke(*arguments, studies=without_data(monkeypatch, "weather", "traffic"))
    assert answer.exit_code == 1
    assert "weather: not run here: the file could not be had\n" in answer.stdout
    assert answer.stderr.count(MESSAGE) == 1  # what to do is said once
    assert not (tmp_path / "docs").exists()


def test_data_that_not_everybody_can_have_are_no_failure_unless_asked_for(invoke, tmp_path, monkeypatch):
    studies = without_data(monkeypatch, "fmri")
    monkeypatch.setattr(__main__, "write_page", lambda folder, docs: docs / page.PAGE)
    answer = invoke("--all", "--out", tmp_path / "out", "--docs", tmp_path / "docs", studies=studies)
    assert answer.exit_code == 0, answer.output
    assert MESSAGE in answer.stderr
    assert (
        "fMRI, as the text has it: not run here: the file could not be had."
        in (tmp_path / "out" / "summary.md").read_text()
    )
    assert invoke("fmri", "--out", tmp_path / "out", studies=studies).exit_code == 1


def test_an_interruption_is_status_130_and_says_what_is_kept(invoke, tmp_path, monkeypatch):
    def interrupted(job, place=None):
        raise KeyboardInterrupt

    monkeypatch.setattr("reproduction.jobs.FilterJob.run", interrupted)
    answer = invoke("inverse-wishart", "--out", tmp_path / "out")
    assert answer.exit_code == 130
    assert f"what has ended is kept in {tmp_path / 'out'}" in answer.stderr


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
def test_mistakes_in_arguments_have_status_2(invoke, arguments, said, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    answer = invoke(*arguments)
    assert answer.exit_code == 2
    assert said in answer.stderr


def test_an_unknown_experiment_is_one_line_and_status_1(invoke, tmp_path):
    answer = invoke("traffik", "--out", tmp_path / "out")
    assert answer.exit_code == 1
    (line,) = answer.stderr.strip().splitlines()
    assert line.startswith("error: experiments must be among sensor, noise")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("name", "reason"), [("file/folder", "Not a directory"), ("link", "File exists")])
def test_a_folder_that_cannot_be_made_is_one_line_and_costs_no_work(invoke, tmp_path, monkeypatch, name, reason):
    started = []
    monkeypatch.setattr("reproduction.jobs.FilterJob.run", lambda job, folder=None: started.append(job))
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    answer = invoke("inverse-wishart", "--out", tmp_path / name)
    assert started == []
    assert answer.exit_code == 1
    assert answer.stderr.strip() == (
        f"error: out must name a folder that is there or can be made; got {str(tmp_path / name)!r} ({reason}). "
        "Choose another."
    )
