"""Pages from results: tables and figures of each experiment, a summary, and the page of the documentation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import spectralgp
from reproduction.claims import claims
from reproduction.drawing import save
from reproduction.experiments import EXPERIMENTS, FilterStudy, PredictionStudy, Study
from reproduction.filter_pictures import error_figure, filter_figure, first_figure, noise_figure
from reproduction.prediction_pictures import data_figure, fifth_figure, second_figure, splits_figure
from reproduction.problems import FMRI_SOURCE
from reproduction.reasons import INTRODUCTION
from reproduction.store import read_results, write_bytes, write_text
from reproduction.tables import (
    Results,
    filter_tables,
    job_of,
    likelihood_table,
    markdown,
    released_table,
    splits_table,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

IMAGES = Path("images") / "reproduction"
PAGE = "reproduction.md"
REAL_DATA = ("traffic", "fmri", "weather")  # in the order of the paper's figures

HEAD = """\
# The paper reproduced

Every experiment of Zhi, Ng and Dong, *Gaussian Processes on Graphs via Spectral Kernel Learning* (2020), run with this
library (version {version}). This page is written by the program from its results; nothing on it is typed by hand.
To make it anew:

    {command}

*sqp* is this library's solver, joint in all hyperparameters; *Algorithm 1* is the paper's. Both maximise the plain
likelihood (`prior=None`) with noise of at least 0.1% of the variance. Likelihoods are in nats, larger is better
throughout; `*` marks fits that did not converge. In the tables of the real data, *paper* is the paper's Table 1,
*authors' code* their released program, rerun on the released split, and *reference* a baseline's optimum found by a
program independent of this one.
"""

FILTER_NOTES = (
    "Log marginal likelihoods are of the draw shown (the first seed). Errors are relative L2 errors on the graph's "
    "eigenvalues of the filter with its amplitude, which these data identify; the last column compares filters divided "
    "by their maxima, as the figures draw them."
)
INDEPENDENT_NOTES = (
    " Signals are independent here (K = I), so that noise and filter are told apart only by the shape that a low "
    "degree can take: learning the noise costs much of the accuracy of the low- and high-pass filters, as the column "
    "with the noise known shows. (Algorithm 1 starts its noise at 10% of the variance, near the truth at 10 dB.)"
)
SPLITS_NOTES = (
    "The protocol of the released split with other seeds. Intervals are Student's, for the mean over splits; splits "
    "share days, so they show the luck of a split, not of another year. The leave-one-out score, with hyperparameters "
    "held fixed, does not see overfitting and must not choose the model."
)


def write_experiment(folder: Path, study: Study, results: Results) -> None:
    """Write the figures and the Markdown tables of one experiment, from its results."""
    for name, figure in _figures(study, results).items():
        save(figure, folder / study.key, name)
    write_text(folder / study.key / "table.md", _tables(study, results) + "\n")


def write_summary(folder: Path, statuses: Mapping[str, str], *, quick: bool = False) -> None:
    """Write `summary.md` of a results folder, and the figures that draw on several experiments."""
    studies = {study.key: study.quick() if quick else study for study in EXPERIMENTS}
    results = _read(folder, studies)
    for name, figure in _joint_figures(studies, results).items():
        save(figure, folder, name)
    links = {image: f"{image}.png" for images in _images(results).values() for image in images}
    command = "make reproduce-quick" if quick else "make reproduce"
    write_text(folder / "summary.md", _page(studies, results, statuses, links, command))


def write_page(results_folder: str | Path, docs_folder: str | Path) -> Path:
    """Write the documentation's page `reproduction.md` and its images from a folder of full results.

    Parameters
    ----------
    results_folder : path
        What `reproduce` wrote, without `quick`.
    docs_folder : path
        Folder of the documentation. Of each figure the smaller of PNG and SVG goes to `images/reproduction`.

    Returns
    -------
    Path
        Of the page.

    Raises
    ------
    FileNotFoundError
        If the folder holds no results of the experiments as they are described now.

    Examples
    --------
    >>> from reproduction import write_page
    >>> write_page("reproduction-output", "docs")  # doctest: +SKIP
    PosixPath('docs/reproduction.md')
    """
    folder, docs = Path(results_folder), Path(docs_folder)
    studies: dict[str, Study] = {study.key: study for study in EXPERIMENTS}
    results = _read(folder, studies)
    if not results:
        raise FileNotFoundError(
            f"results_folder must hold results of the experiments; got {str(folder)!r} with none that are up to date. "
            "Run `make reproduce` first."
        )
    links = {}
    for image in (image for images in _images(results).values() for image in images):
        smaller = min((folder / f"{image}{form}" for form in (".png", ".svg")), key=lambda path: path.stat().st_size)
        place = IMAGES / (image.replace("/", "-") + smaller.suffix)
        write_bytes(docs / place, smaller.read_bytes())
        links[image] = place.as_posix()
    write_text(docs / PAGE, _page(studies, results, {}, links, "make reproduce"))
    return docs / PAGE


def _read(folder: Path, studies: Mapping[str, Study]) -> dict[str, Results]:
    found = {key: read_results(folder, study) for key, study in studies.items()}
    return {key: results for key, results in found.items() if results is not None}


def _figures(study: Study, results: Results) -> dict[str, Figure]:
    if isinstance(study, FilterStudy):
        draw = noise_figure if study.degrees is None else filter_figure
        return {"figure": draw(study, results), "errors": error_figure(study, results)}
    return {"figure": (data_figure if study.is_released else splits_figure)(study, results)}


def _joint_figures(studies: Mapping[str, Study], results: Mapping[str, Results]) -> dict[str, Figure]:
    """The paper's figures that draw on several experiments, where those are finished."""
    joint = {}
    sensor, noise = studies["sensor"], studies["noise"]
    if {"sensor", "noise"} <= set(results) and isinstance(sensor, FilterStudy) and isinstance(noise, FilterStudy):
        joint["figure-1"] = first_figure(sensor, results["sensor"], noise, results["noise"])
    if {"traffic", "weather"} <= set(results):
        pairs = [(study, results.get(key)) for key in REAL_DATA if isinstance(study := studies[key], PredictionStudy)]
        joint |= {"figure-2": second_figure(pairs), "figure-5": fifth_figure(pairs)}
    return joint


def _images(results: Mapping[str, Results]) -> dict[str, list[str]]:
    """The images of each section of the page, as paths in the results folder without their suffix."""
    images = {key: [f"{key}/figure"] for key in results}
    if {"sensor", "noise"} <= set(results):
        images |= {"sensor": ["figure-1"], "noise": []}  # the joint figure holds both
    if {"traffic", "weather"} <= set(results):
        images |= {"traffic": ["figure-2", "figure-5"], "weather": [], "fmri": []}
    for key in ("sensor", "noise", "barabasi-albert", "inverse-wishart"):
        if key in results:
            images[key].append(f"{key}/errors")
    return images


def _page(
    studies: Mapping[str, Study],
    results: Mapping[str, Results],
    statuses: Mapping[str, str],
    links: Mapping[str, str],
    command: str,
) -> str:
    seconds = sum(found["seconds"] for found in results.values())
    parts = [HEAD.format(version=spectralgp.__version__, command=command), "## What holds, and what does not", ""]
    checked = claims(studies, results)
    short = [claim.statement for claim in checked if not claim.holds]
    parts.append(
        f"{len(checked) - len(short)} of {len(checked)} statements hold. "
        + ("These do not: " + "; ".join(short) + "." if short else "")
    )
    rows = [["yes" if claim.holds else "**no**", claim.statement, claim.numbers] for claim in checked]
    parts += ["", markdown(["holds", "statement", "numbers"], rows), ""]
    images = _images(results)
    for key, study in studies.items():
        parts += [f"## {study.title}", "", f"{study.source[0].upper()}{study.source[1:]}.", ""]
        if key not in results:
            parts += [_not_run(study, statuses), ""]
            continue
        parts += [_tables(study, results[key]), ""]
        parts += [f"![{study.title}: {image.replace('/', ' ')}]({links[image]})\n" for image in images[key]]
        parts += [_caption(study, key in ("sensor", "traffic")), ""]
    parts.append(f"These experiments took {seconds:.0f} s in all, by the clock, on the machine that made this page.")
    return "\n".join(parts) + "\n"


def _not_run(study: Study, statuses: Mapping[str, str]) -> str:
    status = statuses.get(study.key)
    if study.key == "fmri" and (status is None or status.startswith("not run: file missing")):
        return f"not run: file missing. {FMRI_SOURCE}."
    return f"{status}." if status is not None and status.startswith("not run") else "not run yet."


def _tables(study: Study, results: Results) -> str:
    """All tables of an experiment, with the words that belong to them."""
    if isinstance(study, FilterStudy):
        notes = FILTER_NOTES + (INDEPENDENT_NOTES if study.input_covariance == "independent" else "")
        return f"{filter_tables(study, results)}\n\n{notes}{_thinned(results)}"
    if not study.is_released:
        parts = [f"**{study.data}, {size} signals**\n\n{splits_table(study, results, size)}" for size in study.sizes]
        return "\n\n".join([SPLITS_NOTES, *parts])
    parts = [INTRODUCTION[study.data]]
    for order in job_of(results, study.sizes[0], study.splits[0])["models"]["standard"]["scores"]:
        title = {"released": "Test sets as released", "time": "Test days in time order"}[order]
        parts.append(f"**{title}**: mean test log-likelihood a signal (standard error over ten test sets)")
        parts.append(released_table(study, results, order))
    parts.append("**Log marginal likelihoods of the training signals** (standardised, with the 2 pi term)")
    parts.append(likelihood_table(study, results))
    return "\n\n".join(parts)


def _thinned(results: Results) -> str:
    """Where the grid of Algorithm 1's initialisation was thinned."""
    found = {
        fit["degree"]: fit["first_stage"].removeprefix("grid search, ")
        for job in results["jobs"]
        for fit in job["learnt"]
        if fit["variant"] == "Algorithm 1" and "," in fit["first_stage"]
    }
    if not found:
        return ""
    listed = "; ".join(f"degree {degree}: {text}" for degree, text in sorted(found.items()))
    return f" The grid that starts Algorithm 1 is capped at 10,000 filters, and so thinned ({listed})."


def _caption(study: Study, joint: bool) -> str:
    if isinstance(study, FilterStudy):
        first = "Top to bottom: low-, band- and high-pass. " if study.degrees is not None else ""
        return (
            f"{first}Legends give log marginal likelihoods without the 2 pi term. Ticks along the bottom are the "
            "graph's eigenvalues. Error bars: quartiles over the seeds."
        )
    if study.is_released:
        return "Filters learnt on the larger training set (Fig. 2), and the graphs and data (Fig. 5)." if joint else ""
    return "Differences to the standard GP with 95% intervals; blue: learnt filters, orange: baselines, green: beyond."
