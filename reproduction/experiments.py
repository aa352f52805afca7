"""The paper's experiments, as data: graphs, signals, splits, models and seeds. What runs them is elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from numpy.polynomial import Polynomial as PowerSeries

from reproduction.algorithm_1 import Lagrangian
from reproduction.released_baselines import MENDED_WALK
from spectralgp import (
    Cosine,
    Diffusion,
    GlobalFilter,
    GraphKernel,
    Identity,
    LocalAverage,
    Matern,
    Polynomial,
    PseudoInverse,
    RandomWalk,
    RegularizedLaplacian,
    Sqp,
)

JOINTLY = Sqp()
"""The default solver, which learns everything together."""
HIGHEST_DEGREE = 4
"""Of the filters that the paper's authors plot."""
RELEASED = 1
"""Seed of the authors' released split."""
N_STARTS, N_FILTER_STARTS = 40, 12
"""Random starts in the search for higher maxima, on real data and on synthetic signals: as many as the referees'."""
N_DRAWS = 16
"""Draws of the hyperparameters that predictions are averaged over: those of "auto"."""
MAIN_MULTIPLIER, GMA_MULTIPLIER = math.log1p(math.exp(-1.0)), math.exp(0.1)
"""First multipliers of the authors' main.py (ec9cc8e) and gma.py (371cc1c)."""
PRINTED_STARTS = ((0.01, 0.1), (0.01, 1.0), (MAIN_MULTIPLIER, 1.0), (GMA_MULTIPLIER, 0.1))
"""First multipliers and their learning rates that Algorithm 1 is run with as printed; the paper names neither."""
AUTHORS_STARTS = PRINTED_STARTS[2:]
AUTHORS_MULTIPLIERS = (MAIN_MULTIPLIER, GMA_MULTIPLIER)
MULTIPLIERS = (*AUTHORS_MULTIPLIERS, 10.0)
"""First multipliers of the safeguarded Algorithm 1, beside its own 0.01."""
RANDOM_STARTS = (1, 2, 3)
"""Seeds of random first multipliers."""


@dataclass(frozen=True)
class Truth:
    """A true filter: its coefficients, and the degree from which the paper sees no clear gain."""

    key: str
    coefficients: tuple[float, ...]
    degree: int
    is_shown: bool = True
    """Whether the paper shows it."""


@dataclass(frozen=True)
class FilterStudy:
    """Recovery of known filters from synthetic signals.

    Every truth, signal-to-noise ratio and seed is one job: a graph and signals are drawn, and a polynomial of each
    degree is learnt, with the noise learnt too: jointly (`Sqp`), once more so with the noise known, and by Algorithm 1,
    no degree above 4. A truth that the paper does not show is learnt at its own degree alone. At that degree a search
    from many starts says whether there are higher maxima.
    """

    key: str
    title: str
    source: str
    graph: Literal["sensor", "barabasi-albert"]
    truths: tuple[Truth, ...]
    degrees: tuple[int, ...] | None = (1, 2, 3, 4, 5)
    """None for the truth's own degree alone."""
    snrs: tuple[float, ...] = (10.0,)
    input_covariance: Literal["independent", "inverse Wishart"] = "independent"
    n_nodes: int = 30
    n_signals: int = 15
    seeds: tuple[int, ...] = tuple(range(1, 21))
    variants: bool = False
    """Whether Algorithm 1 also runs as printed, and from random multipliers, at the truth's own degree."""

    def quick(self) -> FilterStudy:
        """A cut of the study that takes seconds."""
        degrees = None if self.degrees is None else self.degrees[:3]
        truths = tuple(one for one in self.truths if one.is_shown)
        return replace(self, seeds=self.seeds[:1], truths=truths, degrees=degrees, variants=False)


@dataclass(frozen=True)
class Model:
    """A row of the tables: a graph kernel, how it is learnt, and which of the paper's rows it is."""

    row: str
    label: str
    graph_kernel: GraphKernel
    solver: Sqp | Lagrangian | None = JOINTLY
    """None for the authors' released program."""
    by: str = ""
    """How it is learnt, where that is not jointly from the solutions of simpler filters."""
    prior: Literal["weak"] | None = None
    n_draws: int = 0
    group: Literal["polynomial", "baseline", "beyond"] = "baseline"

    @property
    def key(self) -> str:
        """Name of this row's results: another way of learning has results of its own."""
        return f"{self.row}, {self.by}" if self.by else self.row


DataName = Literal["weather", "traffic", "traffic-text", "fmri", "fmri-released", "uber"]


@dataclass(frozen=True)
class PredictionStudy:
    """Test log-likelihoods of several models on real data; every training size, split and model is one job."""

    key: str
    title: str
    source: str
    data: DataName
    sizes: tuple[int, ...]
    models: tuple[Model, ...]
    splits: tuple[int, ...] = (RELEASED,)
    is_optional: bool = False
    """Whether its data cannot be had everywhere, so that a run without them has not failed."""

    @property
    def is_released(self) -> bool:
        """Whether it is on the authors' released split, rather than on random ones."""
        return self.splits == (RELEASED,)

    def quick(self) -> PredictionStudy:
        """A cut of the study that takes seconds."""
        models = tuple(one for one in self.models if one.by in ("", BY_ALGORITHM_1))
        return replace(self, splits=self.splits[:1], sizes=self.sizes[:1], models=models)


@dataclass(frozen=True)
class GraphStudy:
    """The graphs of the paper: what their eigenvalues fill, and how they are drawn; every graph is one job."""

    key: str
    title: str
    source: str
    graphs: tuple[str, ...]

    def quick(self) -> GraphStudy:
        """The study itself, which takes a second."""
        return self


@dataclass(frozen=True)
class ProgramStudy:
    """The baselines as the authors' released program computes them; every data set, size and baseline is one job."""

    key: str
    title: str
    source: str
    columns: tuple[tuple[DataName, int], ...]
    rows: tuple[str, ...]

    def quick(self) -> ProgramStudy:
        """Its first column."""
        return replace(self, columns=self.columns[:1])


Study = FilterStudy | PredictionStudy | GraphStudy | ProgramStudy


def _mirrored(coefficients: tuple[float, ...]) -> tuple[float, ...]:
    """Coefficients of ``theta(1 - lambda)``."""
    return tuple(PowerSeries(coefficients)(PowerSeries([1.0, -1.0])).coef.tolist())


# the first terms of exp(-1.5 lambda)
LOW_PASS = Truth("low-pass", (1.0, -1.5, 1.5**2 / 2, -(1.5**3) / 6, 1.5**4 / 24), degree=2)
BAND_PASS = Truth("band-pass", (0.0, 1.0, 4.0, 1.0, -6.0), degree=3)
# "simply the reversed shape of the low-pass" in the paper, which does not show it
HIGH_PASS = Truth("high-pass", _mirrored(LOW_PASS.coefficients), degree=2, is_shown=False)
SHOWN = (LOW_PASS, BAND_PASS)

POLYNOMIALS = (
    Model("degree-1", "degree 1", Polynomial(1), group="polynomial"),
    Model("degree-2", "degree 2", Polynomial(2), group="polynomial"),
    Model("degree-3", "degree 3", Polynomial(3), group="polynomial"),
    Model("degree-3-free", "degree 3, unconstrained", Polynomial(3, constraint=None), group="polynomial"),
)
CONSTRAINED = POLYNOMIALS[:3]

BASELINES = (
    Model("standard", "standard GP", Identity()),
    Model("laplacian", "Laplacian (pseudo-inverse)", PseudoInverse()),
    Model("global", "global filtering", GlobalFilter()),
    Model("local", "local averaging", LocalAverage()),
    Model("regularised", "regularised Laplacian", RegularizedLaplacian()),
    Model("diffusion", "diffusion", Diffusion()),
    Model("walk-1", "1-step random walk", RandomWalk(steps=1)),
    Model("walk-3", "3-step random walk", RandomWalk(steps=3)),
    Model("cosine", "cosine", Cosine()),
)

BEYOND = (
    Model("matern", "Matern", Matern(), group="beyond"),
    Model("degree-3-weak", "degree 3, weak prior", Polynomial(3), prior="weak", group="beyond"),
    Model("auto", 'stacked degrees, "auto"', Polynomial("auto"), prior="weak", n_draws=N_DRAWS, group="beyond"),
)

BY_ALGORITHM_1, BY_SEARCH, BY_AVERAGING = "Algorithm 1", f"{N_STARTS} starts", "averaged"
BY_FILTER_SEARCH, BY_RELEASED = f"{N_FILTER_STARTS} starts", "released program"


def by_printed(multiplier: float, rate: float) -> str:
    """Name of Algorithm 1 as printed, from given first multipliers and their learning rate."""
    return f"as printed from {multiplier:.4g}, rate {rate:g}"


def by_multiplier(multiplier: float | str) -> str:
    """Name of Algorithm 1 with safeguards, from other first multipliers than its own."""
    return f"from multipliers {multiplier if isinstance(multiplier, str) else format(multiplier, '.4g')}"


def variants(multipliers: Sequence[float], seeds: Sequence[int]) -> dict[str, Lagrangian]:
    """Algorithm 1 as printed, and with safeguards from other first multipliers, fixed and random."""
    found = {by_printed(*one): Lagrangian(literal=True, multiplier=one[0], dual_rate=one[1]) for one in PRINTED_STARTS}
    found |= {by_multiplier(one): Lagrangian(multiplier=one) for one in multipliers}
    return found | {
        by_multiplier(f"random {seed}"): Lagrangian(multiplier="random", random_state=seed) for seed in seeds
    }


ALGORITHM_1 = tuple(replace(model, solver=Lagrangian(), by=BY_ALGORITHM_1) for model in POLYNOMIALS)
RELEASED_PROGRAM = tuple(replace(model, solver=None, by=BY_RELEASED) for model in CONSTRAINED)
VARIANTS = tuple(
    replace(model, solver=solver, by=by)
    for model in CONSTRAINED
    for by, solver in variants(MULTIPLIERS, RANDOM_STARTS).items()
)
SEARCHED = tuple(replace(model, solver=Sqp(n_restarts=N_STARTS), by=BY_SEARCH) for model in POLYNOMIALS + BASELINES)
# what "auto" has beside its kernels, so that like is compared with like
AVERAGED = tuple(replace(model, prior="weak", n_draws=N_DRAWS, by=BY_AVERAGING) for model in BASELINES)

TABLE_MODELS = POLYNOMIALS + ALGORITHM_1 + BASELINES
ALL_MODELS = TABLE_MODELS + RELEASED_PROGRAM + SEARCHED + VARIANTS
SPLIT_MODELS = POLYNOMIALS + BASELINES + BEYOND + AVERAGED
RANDOM_SPLITS = tuple(range(2, 22))

EXPERIMENTS: tuple[Study, ...] = (
    GraphStudy(
        "graphs",
        "The graphs",
        "paper: Section 3.2; Fig. 5 b",
        ("sensor", "barabasi-albert", "traffic", "traffic-text", "weather", "uber", "fmri", "fmri-released"),
    ),
    FilterStudy(
        "sensor",
        "Synthetic signals, sensor graph",
        "paper: Section 6.1, Fig. 1 a, b, d, e",
        "sensor",
        (*SHOWN, HIGH_PASS),
        variants=True,
    ),
    FilterStudy(
        "noise",
        "Noise study",
        "paper: Section 6.1, Fig. 1 c, f",
        "sensor",
        SHOWN,
        degrees=None,
        snrs=(20.0, 15.0, 10.0, 5.0, 0.0),
    ),
    FilterStudy("barabasi-albert", "Barabasi-Albert graph", "paper: supplement, Fig. 3", "barabasi-albert", SHOWN),
    FilterStudy(
        "inverse-wishart",
        "Inverse-Wishart input covariance",
        "paper: supplement, Fig. 4",
        "sensor",
        SHOWN,
        input_covariance="inverse Wishart",
    ),
    PredictionStudy("traffic", "Traffic", "paper: Table 1, Fig. 2 a, Fig. 5 a, d", "traffic", (10, 20), ALL_MODELS),
    PredictionStudy(
        "traffic-text",
        "Traffic on the graph of the text",
        "paper: Section 6.2, as worded",
        "traffic-text",
        (10, 20),
        POLYNOMIALS + BASELINES,
    ),
    PredictionStudy("weather", "Weather", "paper: Table 1, Fig. 2 c, Fig. 5 c, f", "weather", (15, 30), ALL_MODELS),
    PredictionStudy(
        "fmri",
        "fMRI, as the text has it",
        "paper: Section 6.3, Table 1, Fig. 2 b, Fig. 5 b, e",
        "fmri",
        (21, 42),
        TABLE_MODELS,
        is_optional=True,
    ),
    PredictionStudy(
        "fmri-released",
        "fMRI, as the released program has it",
        "the authors' import_data.py",
        "fmri-released",
        (21, 42),
        TABLE_MODELS,
        is_optional=True,
    ),
    PredictionStudy(
        "uber",
        "Uber",
        "the journal version (IEEE TSIPN 2023), as the authors' import_data.py has it",
        "uber",
        (10, 20),
        TABLE_MODELS + SEARCHED,
    ),
    ProgramStudy(
        "baselines",
        "The released baselines",
        "the authors' baselines.py at ec9cc8e",
        (("traffic", 10), ("traffic", 20), ("weather", 15), ("weather", 30)),
        (*(model.row for model in BASELINES), MENDED_WALK),
    ),
    PredictionStudy(
        "traffic-splits", "Traffic, random splits", "beyond the paper", "traffic", (10, 20), SPLIT_MODELS, RANDOM_SPLITS
    ),
    PredictionStudy(
        "weather-splits", "Weather, random splits", "beyond the paper", "weather", (15, 30), SPLIT_MODELS, RANDOM_SPLITS
    ),
)


def chosen(names: tuple[str, ...] = (), *, quick: bool = False) -> tuple[Study, ...]:
    """Experiments by name, all of them if none is named; cut short if `quick`.

    Raises
    ------
    ValueError
        If a name is not that of an experiment.

    Examples
    --------
    >>> from reproduction import chosen
    >>> [study.key for study in chosen(("weather", "noise"))]
    ['noise', 'weather']
    """
    known = [study.key for study in EXPERIMENTS]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"experiments must be among {', '.join(known)}; got {unknown[0]!r}. Pass one of these names.")
    studies = [study for study in EXPERIMENTS if not names or study.key in names]
    return tuple(study.quick() if quick else study for study in studies)
