"""Results on disk: kept a job at a time, and taken for what they are only where code and job are the same."""

import dataclasses
import json

import pytest

from reproduction.experiments import EXPERIMENTS
from reproduction.jobs import jobs_of
from reproduction.store import Drawn, Record, fingerprint, write_text

STUDY = next(study for study in EXPERIMENTS if study.key == "sensor").quick()
FIRST, SECOND, *_ = jobs_of(STUDY)


def test_results_are_read_back_job_by_job(tmp_path):
    Record(tmp_path, STUDY).keep(FIRST, {"truth": "low-pass"}, 1.5)
    record = Record(tmp_path, STUDY)
    assert record.results is None
    assert FIRST not in record.missing
    assert len(record.missing) == len(jobs_of(STUDY)) - 1
    assert record.seconds == 1.5
    for job in record.missing:
        record.keep(job, {"truth": job.name}, 1.0)
    again = Record(tmp_path, STUDY)
    assert again.results == [{"truth": "low-pass"}, *({"truth": job.name} for job in jobs_of(STUDY)[1:])]
    assert again.digest == record.digest


def test_results_of_another_description_or_of_other_code_are_not_read(tmp_path):
    record = Record(tmp_path, STUDY)
    record.keep(FIRST, {}, 1.0)
    assert len(Record(tmp_path, dataclasses.replace(STUDY, n_signals=16)).missing) == len(jobs_of(STUDY))
    record.path.write_text(record.path.read_text().replace(fingerprint(FIRST), "of another solver"))
    record = Record(tmp_path, STUDY)
    assert FIRST in record.missing
    record.keep(SECOND, {}, 1.0)
    (line,) = record.path.read_text().splitlines()  # what nobody will read again is gone
    assert json.loads(line)["job"] == SECOND.name


@pytest.mark.parametrize("n_lost", [1, 2, 30])
def test_a_line_cut_short_costs_one_job(tmp_path, n_lost):
    record = Record(tmp_path, STUDY)
    record.keep(FIRST, {"truth": "low-pass"}, 1.0)
    record.keep(SECOND, {"truth": "low-pass"}, 1.0)
    record.path.write_text(record.path.read_text()[:-n_lost])
    after = Record(tmp_path, STUDY)
    assert SECOND in after.missing
    assert FIRST not in after.missing
    after.keep(SECOND, {"truth": "again"}, 1.0)
    assert [json.loads(line)["job"] for line in after.path.read_text().splitlines()] == [FIRST.name, SECOND.name]


def test_not_a_number_is_never_written(tmp_path):
    record = Record(tmp_path, STUDY)
    with pytest.raises(ValueError, match="not JSON compliant"):
        record.keep(FIRST, {"error": float("nan")}, 1.0)
    assert FIRST in Record(tmp_path, STUDY).missing


def test_every_job_has_a_fingerprint_of_its_own():
    jobs = [job for study in EXPERIMENTS for job in jobs_of(study)]
    own = {fingerprint(job) for job in jobs}
    # the same draw at 10 dB is part of two studies, with other variants; random splits and released ones share none
    assert len(own) == len(jobs)


def test_a_figure_is_current_until_its_sources_change(tmp_path):
    sources = {"sensor": "one"}
    drawn = Drawn(tmp_path)
    drawn.keep("sensor/figure", sources)
    assert not drawn.is_current("sensor/figure", sources)  # it is not there
    for form in ("png", "svg"):
        write_text(tmp_path / "sensor" / f"figure.{form}", "")
    assert Drawn(tmp_path).is_current("sensor/figure", sources)
    assert not Drawn(tmp_path).is_current("sensor/figure", {"sensor": "two"})
    assert not Drawn(tmp_path).is_current("sensor/errors", sources)
