"""The one runner: experiments in, results, figures and tables on disk out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

from reproduction.experiments import Study, chosen
from reproduction.jobs import Job, jobs_of
from reproduction.page import write_experiment, write_summary
from reproduction.problems import Folder, MissingData
from reproduction.store import read_results, write_results

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Outcome:
    """What became of one experiment.

    Attributes
    ----------
    experiment : str
        Its name.
    status : str
        "done", "kept" (it was done before), or "not run: ..." with the reason.
    seconds : float
        Time that its jobs took, now or when they were run.
    """

    experiment: str
    status: str
    seconds: float


def reproduce(
    experiments: Sequence[str] = (),
    *,
    out: str | Path,
    quick: bool = False,
    folder: Folder = None,
    n_processes: int = 2,
    progress: Progress | None = None,
) -> list[Outcome]:
    """Run the paper's experiments and write results, figures, tables and a summary page.

    Parameters
    ----------
    experiments : sequence of str, optional
        Names of experiments; all if none is given.
    out : path
        Folder for what is written: one folder an experiment, and `summary.md`. Experiments that were finished there
        before are not run again, unless their description or the package has changed.
    quick : bool, default=False
        Fewer seeds, degrees and splits: under a minute for all.
    folder : path, optional
        Folder of the data; see `spectralgp.datasets.load_weather` for where else they are looked for.
    n_processes : int, default=2
        Processes to run jobs in, each with one thread of linear algebra; 1 runs them in this one.
    progress : callable, optional
        Called as ``progress(experiment, n_done, n_steps)`` whenever a job has ended.

    Returns
    -------
    list of Outcome

    Raises
    ------
    ValueError
        If a name is not that of an experiment.
    OSError
        If `out` cannot be made; nothing has been run then.

    Examples
    --------
    >>> from reproduction import reproduce
    >>> reproduce(["noise"], out="reproduction-output")  # doctest: +SKIP
    [Outcome(experiment='noise', status='done', seconds=...)]
    """
    studies = chosen(tuple(experiments), quick=quick)
    place = Path(out)
    try:
        place.mkdir(parents=True, exist_ok=True)  # before the work, so that a folder that cannot be made costs none
    except OSError as error:
        raise OSError(
            f"out must name a folder that is there or can be made; got {str(place)!r} ({error.strerror}). "
            "Choose another."
        ) from error
    steps = _Steps(progress, sum(len(jobs_of(study)) for study in studies))
    outcomes = [_one(study, place, folder, n_processes, steps) for study in studies]
    write_summary(place, {outcome.experiment: outcome.status for outcome in outcomes}, quick=quick)
    return outcomes


class _Steps:
    """Counts jobs, done and skipped, for the callback."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def advance(self, experiment: str, n_jobs: int = 1) -> None:
        self._done += n_jobs
        if self._progress is not None:
            self._progress(experiment, self._done, self._total)


def _one(study: Study, place: Path, folder: Folder, n_processes: int, steps: _Steps) -> Outcome:
    results, status = read_results(place, study), "kept"
    if results is None:
        start = time.perf_counter()
        try:
            finished = _run_jobs(study, folder, n_processes, steps)
        except MissingData as error:
            steps.advance(study.key, len(jobs_of(study)))  # the first job needs the data, so none has ended
            return Outcome(study.key, f"not run: {error}", 0.0)
        results, status = write_results(place, study, finished, time.perf_counter() - start), "done"
    else:
        steps.advance(study.key, len(jobs_of(study)))
    write_experiment(place, study, results)
    return Outcome(study.key, status, float(results["seconds"]))


def _run_jobs(study: Study, folder: Folder, n_processes: int, steps: _Steps) -> list[dict[str, Any]]:
    """Results of all jobs, in order, whichever process ran them."""
    finished = []
    pool = Parallel(n_jobs=n_processes, return_as="generator")
    for result in pool(delayed(_run)(job, folder) for job in jobs_of(study)):
        finished.append(result)
        steps.advance(study.key)
    return finished


def _run(job: Job, folder: Folder) -> dict[str, Any]:
    with threadpool_limits(1, user_api="blas"):
        return job.run(folder)
