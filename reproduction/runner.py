"""The one runner: experiments in, results, figures and tables on disk out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

from reproduction.experiments import RELEASED, PredictionStudy, ProgramStudy, Study, chosen
from reproduction.jobs import Job
from reproduction.page import NOT_HAD, write_summary
from reproduction.problems import Folder, MissingData, paper_graph, problem
from reproduction.store import Record

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Outcome:
    """Outcome of one experiment.

    Attributes
    ----------
    experiment : str
        Its name.
    status : str
        "done", "kept" (it was done before), or "not run here: the file is not available".
    seconds : float
        Of the processor, that its jobs took, now or when they were run.
    message : str
        File that is not available, and the remedy.
    is_optional : bool
        Whether a run without it has not failed.
    """

    experiment: str
    status: str
    seconds: float = 0.0
    message: str = ""
    is_optional: bool = False


def reproduce(
    experiments: Sequence[str] = (),
    *,
    out: str | Path,
    quick: bool = False,
    folder: Folder = None,
    n_processes: int = 2,
    progress: Progress | None = None,
    ended: Callable[[Outcome], None] | None = None,
) -> list[Outcome]:
    """Run the paper's experiments and write results, figures, tables and a summary page.

    Data that are not on this machine are downloaded from the authors' repository into the user's cache.

    Parameters
    ----------
    experiments : sequence of str, optional
        Names of experiments; all if none is given.
    out : path
        Folder for what is written: one folder per experiment, and `summary.md`. Every job is kept there as soon as it
        has ended, and not run again unless it, or the code that it runs, has changed.
    quick : bool, default=False
        A cut: one seed, split and size of each, and none of the searches from many starts; under a minute for all.
    folder : path, optional
        Folder of the data; see `spectralgp.datasets.load_weather` for where else they are looked for.
    n_processes : int, default=2
        Processes to run jobs in, each with one thread of linear algebra; 1 runs them in this one.
    progress : callable, optional
        Called as ``progress(experiment, n_done, n_steps)`` whenever a job has ended.
    ended : callable, optional
        Called with the outcome of an experiment as soon as it is known.

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
    records = {study.key: Record(place, study) for study in studies}
    steps = _Steps(progress, sum(len(record.jobs) for record in records.values()))
    outcomes = []
    for study in studies:
        outcomes.append(_one(study, records[study.key], folder, n_processes, steps))
        if ended is not None:
            ended(outcomes[-1])
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


def _one(study: Study, record: Record, folder: Folder, n_processes: int, steps: _Steps) -> Outcome:
    missing = record.missing
    if n_kept := len(record.jobs) - len(missing):
        steps.advance(study.key, n_kept)
    if not missing:
        return Outcome(study.key, "kept", record.seconds)
    try:
        _fetch(study, folder)
    except MissingData as error:
        steps.advance(study.key, len(missing))
        is_optional = isinstance(study, PredictionStudy) and study.is_optional
        return Outcome(study.key, NOT_HAD, message=str(error), is_optional=is_optional)
    # as they end, whichever process ran them; results are read in the order of the jobs
    pool = Parallel(n_jobs=n_processes, return_as="generator_unordered")
    for index, result, seconds in pool(delayed(_run)(index, job, folder) for index, job in enumerate(missing)):
        record.keep(missing[index], result, seconds)
        steps.advance(study.key)
    return Outcome(study.key, "done", record.seconds)


def _fetch(study: Study, folder: Folder) -> None:
    """Have the data of an experiment here before its jobs start, so that two processes do not both download them."""
    if isinstance(study, PredictionStudy):
        problem(study.data, study.sizes[0], study.splits[0], folder)
    elif study.key == "graphs":
        for name in ("weather", "traffic", "uber", "fmri"):
            paper_graph(name, folder)
    elif isinstance(study, ProgramStudy):
        for data, size in study.columns:
            problem(data, size, RELEASED, folder)


def _run(index: int, job: Job, folder: Folder) -> tuple[int, dict[str, Any], float]:
    start = time.process_time()  # of this process, which has one thread: the clock on the wall counts others' work too
    with threadpool_limits(1, user_api="blas"):
        result = job.run(folder)
    return index, result, time.process_time() - start
