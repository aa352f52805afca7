"""The paper's experiments, as data: graphs, signals, splits, models and seeds. What runs them is elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from numpy.polynomial import Polynomial as PowerSeries

from spectralgp import (
    Cosine,
    Diffusion,
    GlobalFilter,
    GraphKernel,
    Identity,
    Lagrangian,
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
N_STARTS = 40
"""Random starts in the search for higher maxima, as many as the referee's."""
N_DRAWS = 16
"""Draws of the hyperparameters that predictions are averaged over: those of "auto"."""
PRINTED_RATES = (0.1, 1.0)
"""Learning rates of the multipliers that Algorithm 1 is run with as printed; the paper names none."""
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
    degree is learnt, with the noise learnt too: jointly (`Sqp`), once more so with the noise known, and by Algorithm 1.
    Algorithm 1, the slow one, learns what the paper shows: no degree above 4, and of a truth that the paper does not
    show the truth's own degree alone.
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
        degrees = None if self.degrees is None else tuple(one for one in self.degrees if one <= HIGHEST_DEGREE)
        truths = tuple(one for one in self.truths if one.is_shown)
        return replace(self, seeds=self.seeds[:2], truths=truths, degrees=degrees)


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
        return replace(self, splits=self.splits[:2], sizes=self.sizes[:1], models=models)


@dataclass(frozen=True)
class GraphStudy:
    """The graphs of the paper: what their eigenvalues fill, and how they are drawn; every graph is one job."""

    key: str
    title: str
    source: str
    graphs: tuple[str, ...]

    def quick(self) -> GraphStudy:
        """The same: it takes a second."""
        return self


Study = FilterStudy | PredictionStudy | GraphStudy


def _mirrored(coefficients: tuple[float, ...]) -> tuple[float, ...]:
    """Coefficients of ``theta(1 - lambda)``."""
    return tuple(PowerSeries(coefficients)(PowerSeries([1.0, -1.0])).coef.tolist())


# the first terms of exp(-1.5 lambda)
LOW_PASS = Truth("low-pass", (1.0, -1.5, 1.5**2 / 2, -(1.5**3) / 6, 1.5**4 / 24), degree=2)
BAND_PASS = Truth("band-pass", (0.0, 1.0, 4.0, 1.0, -6.0), degree=3)
# "simply the reversed shape of the low-pass" in the paper, which does not show it
HIGH_PASS = Truth("high-pass", _mirrored(LOW_PASS.coefficients), degree=2, is_shown=False)
TRUTHS = (LOW_PASS, BAND_PASS, HIGH_PASS)

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
BY_RELEASED = "released program"


def by_printed(rate: float) -> str:
    """How a model is learnt: Algorithm 1 as printed, with a learning rate of the multipliers."""
    return f"as printed, rate {rate:g}"


def by_random(seed: int) -> str:
    """How a model is learnt: Algorithm 1 from random multipliers."""
    return f"random multipliers {seed}"


ALGORITHM_1 = tuple(replace(model, solver=Lagrangian(), by=BY_ALGORITHM_1) for model in POLYNOMIALS)
RELEASED_PROGRAM = tuple(replace(model, solver=None, by=BY_RELEASED) for model in CONSTRAINED)
PRINTED = tuple(
    replace(model, solver=Lagrangian(literal=True, dual_rate=rate), by=by_printed(rate))
    for model in CONSTRAINED
    for rate in PRINTED_RATES
)
RANDOM = tuple(
    replace(model, solver=Lagrangian(multiplier="random", random_state=seed), by=by_random(seed))
    for model in CONSTRAINED
    for seed in RANDOM_STARTS
)
SEARCHED = tuple(replace(model, solver=Sqp(n_restarts=N_STARTS), by=BY_SEARCH) for model in POLYNOMIALS + BASELINES)
# what "auto" has beside its kernels, so that like is compared with like
AVERAGED = tuple(replace(model, prior="weak", n_draws=N_DRAWS, by=BY_AVERAGING) for model in BASELINES)

TABLE_MODELS = POLYNOMIALS + ALGORITHM_1 + BASELINES + BEYOND
ALL_MODELS = TABLE_MODELS + RELEASED_PROGRAM + AVERAGED + SEARCHED + PRINTED + RANDOM
SPLIT_MODELS = POLYNOMIALS + BASELINES + BEYOND + AVERAGED
RANDOM_SPLITS = tuple(range(2, 22))

EXPERIMENTS: tuple[Study, ...] = (
    GraphStudy(
        "graphs",
        "The graphs",
        "paper: Section 3.2; Fig. 5 b",
        ("sensor", "barabasi-albert", "traffic", "traffic-text", "weather", "fmri", "fmri-released"),
    ),
    FilterStudy(
        "sensor",
        "Synthetic signals, sensor graph",
        "paper: Section 6.1, Fig. 1 a, b, d, e",
        "sensor",
        TRUTHS,
        variants=True,
    ),
    FilterStudy(
        "noise",
        "Noise study",
        "paper: Section 6.1, Fig. 1 c, f",
        "sensor",
        TRUTHS,
        degrees=None,
        snrs=(20.0, 15.0, 10.0, 5.0, 0.0),
    ),
    FilterStudy("barabasi-albert", "Barabasi-Albert graph", "paper: supplement, Fig. 3", "barabasi-albert", TRUTHS),
    FilterStudy(
        "inverse-wishart",
        "Inverse-Wishart input covariance",
        "paper: supplement, Fig. 4",
        "sensor",
        TRUTHS,
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
        TABLE_MODELS,
        is_optional=True,
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
