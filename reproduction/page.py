"""Pages from results: the summary of a results folder, and the page of the documentation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from reproduction import facts
from reproduction.experiments import EXPERIMENTS, FilterStudy, PredictionStudy, Study
from reproduction.figures import draw_all, pictures
from reproduction.findings import sentence
from reproduction.results import Finished
from reproduction.sections import (
    FILTERS,
    NOT_HAD,
    SPLITS,
    Section,
    algorithm_section,
    images_of,
    like_with_like,
    local_maxima,
    source_section,
    statement_section,
    study_section,
)
from reproduction.store import Record, write_bytes, write_text

IMAGES = Path("images") / "reproduction"
PAGE = "reproduction.md"

HEAD = """\
# The paper reproduced

Zhi, Ng and Dong, *Gaussian Processes on Graphs via Spectral Kernel Learning* (2020; IEEE TSIPN 2023), rerun with this
library: its statements, tables and figures beside what we find. A program writes this page from its results: every
number and every comparison on it is computed; what stands in words alone is about method and sources.

    {command}

makes it again, and downloads what data are not on the machine (see "Where it all comes from"). *Jointly* means this
library's solver `Sqp`, which learns all hyperparameters together; *Algorithm 1* is our version of the paper's
(`Lagrangian`; its section lists where ours differs). Both seek the maximum of the plain likelihood (`prior=None`) with
noise of at least 0.1% of the variance, and both end at local maxima: see "Local maxima". Likelihoods are in nats,
larger is better throughout; `*` marks fits that did not converge."""

CUT = """\
**This is a cut**, made by `{command}`: fewer seeds, splits, sizes and ways of learning than the full run. It shows that
everything works; its numbers are not the reproduction."""


def write_summary(folder: Path, statuses: Mapping[str, str], *, quick: bool = False) -> None:
    """Write `summary.md` of a results folder, and its figures where they are not current."""
    studies = {study.key: study.quick() if quick else study for study in EXPERIMENTS}
    finished, digests, seconds = _read(folder, studies, statuses)
    draw_all(folder, finished, digests)
    links = {picture.name: f"{picture.name}.png" for picture in pictures(finished)}
    command = "make reproduce-quick" if quick else "make reproduce"
    text = _page(finished, links, command, seconds, is_cut=quick)
    write_text(folder / "summary.md", text)


def write_page(results_folder: str | Path, docs_folder: str | Path) -> Path:
    """Write the documentation's page `reproduction.md` and its images from a folder of full results.

    Parameters
    ----------
    results_folder : path
        What `reproduce` wrote, without `quick`.
    docs_folder : path
        Folder of the documentation. Of each figure the smaller of PNG and SVG goes to `images/reproduction`, and what
        the page does not show is removed from there.

    Returns
    -------
    Path
        Of the page.

    Raises
    ------
    FileNotFoundError
        If an experiment whose data everybody has was not run, or not with the code as it is now.

    Examples
    --------
    >>> from reproduction import write_page
    >>> write_page("reproduction-output", "docs")  # doctest: +SKIP
    PosixPath('docs/reproduction.md')
    """
    folder, docs = Path(results_folder), Path(docs_folder)
    studies: dict[str, Study] = {study.key: study for study in EXPERIMENTS}
    optional = [key for key, study in studies.items() if isinstance(study, PredictionStudy) and study.is_optional]
    finished, _, seconds = _read(folder, studies, dict.fromkeys(optional, NOT_HAD))
    missing = [key for key in studies if key not in optional and not finished.has(key)]
    if missing:
        raise FileNotFoundError(
            f"results_folder must hold current results of every experiment; got {str(folder)!r} without "
            f"{', '.join(missing)}. Run `make reproduce` first."
        )
    sources, links = {}, {}
    for picture in pictures(finished):
        files = (folder / f"{picture.name}{form}" for form in (".png", ".svg"))
        smaller = min(files, key=lambda path: path.stat().st_size)
        place = IMAGES / (picture.name.replace("/", "-") + smaller.suffix)
        sources[place], links[picture.name] = smaller, place.as_posix()
    text = _page(finished, links, "make reproduce", seconds, is_cut=False)
    used = [place for place in sources if f"({place.as_posix()})" in text]
    for place in used:
        write_bytes(docs / place, sources[place].read_bytes())
    write_text(docs / PAGE, text)
    for path in (docs / IMAGES).iterdir():  # of an older page
        if path.name not in {place.name for place in used}:
            path.unlink()
    return docs / PAGE


def _read(
    folder: Path, studies: Mapping[str, Study], statuses: Mapping[str, str]
) -> tuple[Finished, dict[str, str], float]:
    """What is finished in a folder, a digest of each experiment's results, and the time they took."""
    records = {key: Record(folder, study) for key, study in studies.items()}
    results = {key: record.results for key, record in records.items()}
    found = {key: one for key, one in results.items() if one is not None}
    statuses = {key: status for key, status in statuses.items() if key not in found}
    digests = {key: records[key].digest for key in found}
    return Finished(studies, found, statuses), digests, sum(records[key].seconds for key in found)


def _page(finished: Finished, links: Mapping[str, str], command: str, seconds: float, *, is_cut: bool) -> str:
    parts = [HEAD.format(command=command)]
    if is_cut:
        parts.append(CUT.format(command=command))
    parts += statement_section(finished)
    parts += source_section(finished)
    filters = [study for study in finished.studies.values() if isinstance(study, FilterStudy)]
    predictions = [study for study in finished.studies.values() if isinstance(study, PredictionStudy)]
    if synthetic := _sections(finished, filters, links, "###"):
        parts += ["## Synthetic signals", FILTERS, facts.setups(filters), *synthetic]
    parts += _sections(finished, [study for study in predictions if study.is_released], links, "##")
    if splits := _sections(finished, [study for study in predictions if not study.is_released], links, "###"):
        parts += ["## Random splits", SPLITS, *splits]
    parts += local_maxima(finished)
    parts += like_with_like(finished)
    parts += algorithm_section(finished)
    parts.append(f"The jobs of these experiments took {seconds:.0f} s of one processor core.")
    return "\n\n".join(parts) + "\n"


def _sections(
    finished: Finished, studies: list[FilterStudy] | list[PredictionStudy], links: Mapping[str, str], level: str
) -> Section:
    """Sections of the experiments that are finished, or were asked for and could not be run."""
    parts: Section = []
    for study in studies:
        status = finished.statuses.get(study.key)
        if not finished.has(study.key) and status is None:
            continue
        parts += [f"{level} {study.title}", sentence(study.source)]
        if status is not None:
            parts.append(sentence(status))
            continue
        parts += study_section(finished, study)
        parts += images_of(study.key, pictures(finished), links)
    return parts
