"""The paper's statements about its results, each as it is worded there, with a criterion that is older than its number.

The criteria are ours where the paper's words leave them open ("well", "little"): they are stated here, in one place,
and printed before the numbers. Statements of ours are elsewhere, and never counted with these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from reproduction import answers
from reproduction.answers import LITTLE, RELATIVELY_WELL, SOLVERS, STABLE, WELL, Answer
from reproduction.experiments import BAND_PASS, HIGHEST_DEGREE, LOW_PASS
from reproduction.results import Finished

UP_TO_DEGREE = (
    f"the median gain in log marginal likelihood from the stated degree to {HIGHEST_DEGREE}, the highest that the "
    f"authors plot, is below {LITTLE:g} nats, and below the gain from degree 1 to the stated one"
)


@dataclass(frozen=True)
class Statement:
    """A statement, and whether it holds here.

    Parameters
    ----------
    where : str
        Its place in the paper.
    wording : str
        What it says.
    criterion : str
        When it counts as holding.
    holds : dict of str to bool
        With filters learnt jointly and by Algorithm 1; empty where it was not tested.
    numbers : str
        What it was decided by, or why it was not tested.
    """

    where: str
    wording: str
    criterion: str
    holds: dict[str, bool]
    numbers: str

    @property
    def is_tested(self) -> bool:
        """Whether its data were here."""
        return bool(self.holds)


@dataclass(frozen=True)
class Question:
    """A statement of the paper before it is asked: its words, its criterion, what it needs and what decides it."""

    where: str
    wording: str
    criterion: str
    needs: tuple[str, ...]
    decide: Callable[[Finished, str], Answer]
    is_about_learning: bool = True
    """Whether the answer depends on the solver."""

    def ask(self, finished: Finished) -> Statement:
        """The answer, where the experiments that it needs are finished."""
        words = (self.where, self.wording, self.criterion)
        missing = [key for key in self.needs if not finished.has(key)]
        if missing:
            return Statement(*words, {}, finished.statuses.get(missing[0], "not run"))
        answers = {name: self.decide(finished, solver) for name, solver in SOLVERS.items()}
        found = {name: answer for name, answer in answers.items() if answer is not None}
        if not found:
            return Statement(*words, {}, "not in this cut")
        listed = [f"{name}: {numbers}" for name, (_, numbers) in found.items()]
        numbers = "; ".join(listed) if self.is_about_learning else next(iter(found.values()))[1]
        return Statement(*words, {name: holds for name, (holds, _) in found.items()}, numbers)


def fourteen(finished: Finished) -> list[Statement]:
    """The statements about filters and scores that the paper's text, tables and figures make."""
    return [question.ask(finished) for question in _fourteen()]


def further(finished: Finished) -> list[Statement]:
    """What else the paper states that can be tested."""
    return [question.ask(finished) for question in _further()]


def _fourteen() -> Iterator[Question]:
    truths = (LOW_PASS, BAND_PASS)
    for truth in truths:
        yield Question(
            "Section 6.1, Fig. 1 b, e",
            f"{truth.key}: beyond degree {truth.degree} there is only little improvement",
            UP_TO_DEGREE,
            ("sensor",),
            partial(answers.little_beyond, key="sensor", truth=truth),
        )
    for truth in truths:
        yield Question(
            "Section 6.1, Fig. 1 c, f",
            f"{truth.key}: the true spectrum is recovered well at 10 dB and above",
            f"the median error of the scaled filter is below {WELL:.0%} at every ratio from 10 dB",
            ("noise",),
            partial(answers.recovered_in_noise, truth=truth),
        )
        yield Question(
            "Section 6.1, Fig. 1 c, f",
            f"{truth.key}: marginals steadily decrease as the noise grows",
            "the median log marginal likelihood falls at every step",
            ("noise",),
            partial(answers.falls, truth=truth),
        )
    for truth in truths:
        yield Question(
            "supplement 3, Fig. 3",
            f"{truth.key}: the shape is still recovered relatively well",
            f"the median error of the scaled filter of degree {truth.degree} is below {RELATIVELY_WELL:.0%}",
            ("barabasi-albert",),
            partial(answers.recovered, key="barabasi-albert", truth=truth, bar=RELATIVELY_WELL),
        )
    for truth in truths:
        yield Question(
            "supplement 4, Fig. 4",
            f"{truth.key}: degree {truth.degree} recovers the filter well, visually and in log marginal likelihood",
            f"its median error, scaled, is below {WELL:.0%}, and {UP_TO_DEGREE}",
            ("inverse-wishart",),
            partial(answers.recovered_and_little_beyond, key="inverse-wishart", truth=truth),
        )
    for size in (10, 20):
        yield Question(
            "Section 6.2, Table 1",
            f"traffic, {size} signals: the polynomials perform best",
            "the best of degrees 1 to 3 scores higher than every baseline",
            ("traffic",),
            partial(answers.best, key="traffic", size=size),
        )
    for size in (15, 30):
        yield Question(
            "Section 6.4, Table 1",
            f"weather, {size} signals: degrees 2 and 3 both perform better than other models",
            "each of the two scores higher than every baseline",
            ("weather",),
            partial(answers.both_best, key="weather", size=size),
        )


def _further() -> Iterator[Question]:
    yield Question(
        "Section 3.2",
        "the eigenvalues of the normalised Laplacian often do not fill their range",
        "on more than half of the graphs the largest is below 1.9 of 2",
        ("graphs",),
        answers.fills_range,
        is_about_learning=False,
    )
    yield Question(
        "Section 3.2",
        "a polynomial of degree P reaches P hops",
        "no entry of a filter of degree 3 between nodes further apart exceeds rounding (1e-12 of the largest)",
        ("graphs",),
        answers.hops,
        is_about_learning=False,
    )
    yield Question(
        "Section 3.2",
        "P = 3 often leads to satisfactory performance",
        "in at least two of the four columns degree 3 is the best row, or within one paired standard error of it",
        ("traffic", "weather"),
        answers.degree_3,
    )
    yield Question(
        "Section 4",
        "Algorithm 1 is stable with respect to the first multipliers, fixed or random",
        f"in nine of ten fits a random start ends within {STABLE:g} nats of the fixed one",
        ("sensor", "traffic", "weather"),
        answers.stable,
        is_about_learning=False,
    )
    yield Question(
        "Section 6.2",
        "the traffic signals have large Fourier coefficients near eigenvalues 0 and 1",
        "those below 0.1 and those above 0.9 each have a larger root mean square than those between",
        ("traffic",),
        answers.ends,
        is_about_learning=False,
    )
    for size in (10, 20):
        yield Question(
            "Section 6.2, Table 1",
            f"traffic, {size} signals: the constrained polynomial performs better than the unconstrained one",
            "degree 3 scores higher than degree 3, unconstrained",
            ("traffic",),
            partial(answers.constrained, key="traffic", size=size),
        )
        yield Question(
            "Section 6.2",
            f"traffic, {size} signals: the unconstrained polynomial is not fully non-negative",
            "it is negative at an eigenvalue",
            ("traffic",),
            partial(answers.negative, key="traffic", size=size),
        )
    for size in (15, 30):
        yield Question(
            "Section 6.4, Table 1",
            f"weather, {size} signals: the unconstrained polynomial is slightly lower",
            "degree 3, unconstrained, scores lower than degree 3",
            ("weather",),
            partial(answers.constrained, key="weather", size=size),
        )
    yield Question(
        "Section 6.3, Table 1",
        "fMRI, 21 signals: degrees 2 and 3 perform best",
        "each of the two scores higher than every baseline",
        ("fmri",),
        partial(answers.both_best, key="fmri", size=21),
    )
    yield Question(
        "Section 6.3, Table 1",
        "fMRI, 42 signals: the unconstrained polynomial outperforms all models",
        "it has the highest score",
        ("fmri",),
        partial(answers.free_best, key="fmri", size=42),
    )
