"""Pages from results: the page of the documentation and its appendices, and the summary of a results folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from reproduction import appendices, facts, findings
from reproduction.claims import CRITERIA, claims
from reproduction.experiments import EXPERIMENTS, PredictionStudy, Study
from reproduction.figures import Picture, draw_all, pictures
from reproduction.results import Finished
from reproduction.store import Record, write_bytes, write_text
from reproduction.tables import PAPER_DATA, baselines_table, claims_table, markdown, printed_table, table_1

IMAGES = Path("images") / "reproduction"
PAGE, REAL_DATA = "reproduction.md", "real-data.md"
NOT_HAD = "not run here: the file is not available"
BEGIN, END = "<!-- reproduction: begin -->", "<!-- reproduction: end -->"
"""Around what this package writes into the page of real data, which is another program's."""

HEAD = """\
# The paper reproduced

The experiments of Zhi, Ng and Dong, *Gaussian Processes on Graphs via Spectral Kernel Learning* (2020; IEEE TSIPN
2023), run again with this library. Filters are learnt *jointly*, by our solver `Sqp`, which learns all hyperparameters
together, and by the paper's *Algorithm 1*, with our safeguards and first multipliers of 0.01 (`Lagrangian`, a solver in
`reproduction/algorithm_1.py`). Both maximise the plain likelihood. Scores are in nats, and higher is better.
Appendices: [A, synthetic signals](reproduction-synthetic.md), [B, real data](reproduction-data.md), [C, Algorithm
1](reproduction-algorithm.md)."""

CLAIMS = """\
*Not decided*: a score rests on a fit that failed (it did not converge, some start finds 10 nats more, or it is less
likely than the constrained fit), more than half of the seeds have such fits, or a difference is within its standard
error. The criteria were fixed after a first run had shown its numbers, so each verdict also says what a stricter or a
looser bar (in brackets below) would give, where that differs."""

TABLE = """\
Mean test log-likelihood per signal, paper / ours, learnt jointly; appendix B has standard
errors and Algorithm 1. **Bold**: the two are more than two standard errors (of their difference) apart. ¹ The
likelihood has a higher maximum: see [local maxima](#local-maxima). fMRI is quoted, not run. Uber is from the journal
version, whose figures are not available; there the paper's thesis shows. {uber}"""

PRINTED = """\
`Lagrangian(literal=True)` runs lines 1 to 5 as printed, with fixed rates, until the Lagrangian changes by less than
0.001. We call a run *sensible* if it stops by its rule, its filter is nowhere below -1% of its largest value, and it is
within 10 nats of the joint solution. {counts} With exp(0.1) rounded to 1.105 there is one more, weather 30 of
degree 2: where a run ends can depend on the fourth digit. Columns are first multipliers and rates, numbers likelihoods
of sensible runs."""

RERUN = """\
`make reproduce` writes this page and its appendices; `make reproduce-quick`, in under a minute, shows that everything
runs. Appendix C lists what the paper leaves open; [real data](real-data.md) goes beyond it."""

CUT = """\
# A cut of the reproduction

Made by `make reproduce-quick`: one seed, one training size, one split, none of the searches from many starts. It
shows that everything runs. Its numbers decide nothing, and no claim is judged by them."""

SUMMARY = """\
# Experiments of the reproduction that were run

Tables alone; `make reproduce` runs all experiments, and writes the page that judges the paper's claims."""


def write_summary(folder: Path, statuses: Mapping[str, str], *, quick: bool = False) -> None:
    """Write `summary.md` of a results folder, and its figures where they are not current."""
    studies = {study.key: study.quick() if quick else study for study in EXPERIMENTS}
    finished, digests = _read(folder, studies, statuses)
    draw_all(folder, finished, digests)
    shown = {picture.name: _image(picture, f"{picture.name}.png") for picture in pictures(finished)}
    parts = [CUT if quick else SUMMARY]
    for title, sections in appendices.all_of(finished, shown).items():
        if sections:
            parts += [f"# {title}", *sections]
    parts += [image for image in shown.values() if image not in parts]
    parts += [f"{finished.studies[key].title}: {status}." for key, status in finished.statuses.items()]
    write_text(folder / "summary.md", "\n\n".join(parts) + "\n")


def write_page(results_folder: str | Path, docs_folder: str | Path) -> Path:
    """Write the documentation's page `reproduction.md`, its appendices and images from a folder of full results.

    Parameters
    ----------
    results_folder : path
        What `reproduce` wrote, without `quick`.
    docs_folder : path
        Folder of the documentation. Figures go to `images/reproduction`, and what no page shows is removed from there.
        Results beyond the paper go into `real-data.md`, between two marks, if that page exists.

    Returns
    -------
    Path
        Of the page.

    Raises
    ------
    FileNotFoundError
        If an experiment whose data everybody has was not run, or not with the present code.

    Examples
    --------
    >>> from reproduction import write_page
    >>> write_page("reproduction-output", "docs")  # doctest: +SKIP
    PosixPath('docs/reproduction.md')
    """
    folder, docs = Path(results_folder), Path(docs_folder)
    studies: dict[str, Study] = {study.key: study for study in EXPERIMENTS}
    optional = [key for key, study in studies.items() if isinstance(study, PredictionStudy) and study.is_optional]
    finished, _ = _read(folder, studies, dict.fromkeys(optional, NOT_HAD))
    beyond = [f"{key}-splits" for key in PAPER_DATA]  # which the page itself does not need
    missing = [key for key in studies if key not in (*optional, *beyond) and not finished.has(key)]
    if missing:
        raise FileNotFoundError(
            f"results_folder must hold current results of every experiment; got {str(folder)!r} without "
            f"{', '.join(missing)}. Run `make reproduce` first."
        )
    drawn = {IMAGES / (one.name.replace("/", "-") + ".png"): one for one in pictures(finished)}
    shown = {picture.name: _image(picture, place.as_posix()) for place, picture in drawn.items()}
    pages = {PAGE: main_page(finished, shown)}
    for (title, sections), name in zip(appendices.all_of(finished, shown).items(), appendices.FILES, strict=True):
        pages[name] = "\n\n".join([f"# {title}", appendices.BACK, *sections]) + "\n"
    text = "".join(pages.values())
    used = [place for place in drawn if f"({place.as_posix()})" in text]
    for place in used:
        write_bytes(docs / place, (folder / f"{drawn[place].name}.png").read_bytes())
    for name, content in pages.items():
        write_text(docs / name, content)
    for path in (docs / IMAGES).iterdir():  # of an older page
        if path.name not in {place.name for place in used}:
            path.unlink()
    if finished.has(*beyond) and (docs / REAL_DATA).is_file():
        _insert(docs / REAL_DATA, appendices.beyond(finished))
    return docs / PAGE


def _insert(path: Path, sections: list[str]) -> None:
    """Write sections into a page between the marks, or at its end if it has none."""
    text = path.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    part = "\n\n".join([BEGIN, *sections, END])
    write_text(path, f"{before.rstrip()}\n\n{part}\n" + (f"\n{after.strip()}\n" if after.strip() else ""))


def _image(picture: Picture, link: str) -> str:
    return f"![{picture.name.replace('/', ' ')}]({link})\n\n{picture.caption}"


def _read(folder: Path, studies: Mapping[str, Study], statuses: Mapping[str, str]) -> tuple[Finished, dict[str, str]]:
    """Finished experiments of a folder, and a digest of each one's results."""
    records = {key: Record(folder, study) for key, study in studies.items()}
    results = {key: record.results for key, record in records.items()}
    found = {key: one for key, one in results.items() if one is not None}
    statuses = {key: status for key, status in statuses.items() if key not in found}
    return Finished(studies, found, statuses), {key: records[key].digest for key in found}


def main_page(finished: Finished, shown: Mapping[str, str]) -> str:
    """The page: in short, the claims, Table 1, the figures, why numbers differ, Algorithm 1, how to rerun it."""
    listed = claims(finished)
    criteria = "; ".join(f"({letter}) {words}" for letter, words in CRITERIA.items())
    parts = [HEAD, "## In short", findings.in_short(listed)]
    parts += ["## The paper's claims", claims_table(listed), f"{CLAIMS} A claim holds if {criteria}."]
    parts += ["## Table 1", TABLE.format(uber=findings.filter_ends(finished.predictions("uber"))), table_1(finished)]
    parts += [shown["table-1"], "## Figures 1 and 2", shown["figure-1"], shown["figure-2"]]
    parts += ["## Why the numbers differ", "### Which days", findings.days(finished.predictions("weather"))]
    parts += ["### Baselines", findings.released_baselines(finished), baselines_table(finished, "traffic", [10])]
    parts += [
        "### Local maxima",
        findings.local_maxima(finished),
        "### Noise",
        findings.noise(finished),
        "### How Algorithm 1 ends",
        findings.how_it_ends(finished),
        "### Where the paper contradicts itself",
        facts.contradictions(),
        "## Algorithm 1",
        markdown(["as printed", "with our safeguards", "why, and what the authors do"], facts.ALGORITHM),
        PRINTED.format(counts=findings.printed_count(finished)),
        printed_table(finished),
        "## Run it again",
        RERUN,
        facts.SOURCES,
    ]
    return "\n\n".join(parts) + "\n"
