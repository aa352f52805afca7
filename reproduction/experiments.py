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
    LocalAverage,
    Matern,
    Polynomial,
    PseudoInverse,
    RandomWalk,
    RegularizedLaplacian,
)

Solver = Literal["sqp", "lagrangian"]
RELEASED = 1
"""Seed of the authors' released split."""


@dataclass(frozen=True)
class Truth:
    """A true filter: its coefficients, and the degree from which the paper sees no clear gain."""

    key: str
    coefficients: tuple[float, ...]
    degree: int


@dataclass(frozen=True)
class FilterStudy:
    """Recovery of known filters from synthetic signals.

    Every truth, signal-to-noise ratio and seed is one job: a graph and signals are drawn, and a polynomial of each
    degree is learnt, with the noise learnt too. `sqp` learns all of them, and once more with the noise known;
    `lagrangian`, the paper's Algorithm 1, learns all degrees of the first seed and the truth's own degree of all.
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
    brief: bool = False
    """Whether `lagrangian`, the slow one, learns the truth's own degree of the first seed only."""

    def quick(self) -> FilterStudy:
        """A cut of the study that takes seconds."""
        degrees = None if self.degrees is None else self.degrees[:3]
        return replace(self, seeds=self.seeds[:2], degrees=degrees, brief=True)


@dataclass(frozen=True)
class Model:
    """A row of the tables: a graph kernel, how it is learnt, and which of the paper's rows it is."""

    row: str
    label: str
    graph_kernel: GraphKernel
    solver: Solver = "sqp"
    prior: Literal["weak"] | None = None
    group: Literal["polynomial", "baseline", "beyond"] = "baseline"

    @property
    def key(self) -> str:
        """Name of this row's results: Algorithm 1 has rows of its own."""
        return self.row if self.solver == "sqp" else f"{self.row} by Algorithm 1"


@dataclass(frozen=True)
class PredictionStudy:
    """Test log-likelihoods of several models on real data; every training size and split is one job."""

    key: str
    title: str
    source: str
    data: Literal["weather", "traffic", "fmri"]
    sizes: tuple[int, ...]
    models: tuple[Model, ...]
    splits: tuple[int, ...] = (RELEASED,)

    @property
    def is_released(self) -> bool:
        """Whether it is on the authors' released split, rather than on random ones."""
        return self.splits == (RELEASED,)

    def quick(self) -> PredictionStudy:
        """A cut of the study that takes seconds."""
        return replace(self, splits=self.splits[:2], sizes=self.sizes[:1])


Study = FilterStudy | PredictionStudy


def _mirrored(coefficients: tuple[float, ...]) -> tuple[float, ...]:
    """Coefficients of ``theta(1 - lambda)``."""
    return tuple(PowerSeries(coefficients)(PowerSeries([1.0, -1.0])).coef.tolist())


# the first terms of exp(-1.5 lambda)
LOW_PASS = Truth("low-pass", (1.0, -1.5, 1.5**2 / 2, -(1.5**3) / 6, 1.5**4 / 24), degree=2)
BAND_PASS = Truth("band-pass", (0.0, 1.0, 4.0, 1.0, -6.0), degree=3)
# "simply the reversed shape of the low-pass" in the paper, which does not show it
HIGH_PASS = Truth("high-pass", _mirrored(LOW_PASS.coefficients), degree=2)
TRUTHS = (LOW_PASS, BAND_PASS, HIGH_PASS)

POLYNOMIALS = (
    Model("degree-1", "degree 1", Polynomial(1), group="polynomial"),
    Model("degree-2", "degree 2", Polynomial(2), group="polynomial"),
    Model("degree-3", "degree 3", Polynomial(3), group="polynomial"),
    Model("degree-3-free", "degree 3, unconstrained", Polynomial(3, constraint=None), group="polynomial"),
)

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
    Model("auto", 'stacked degrees, "auto"', Polynomial("auto"), prior="weak", group="beyond"),
)

ALGORITHM_1 = tuple(replace(model, solver="lagrangian") for model in POLYNOMIALS)
TABLE_MODELS = POLYNOMIALS + ALGORITHM_1 + BASELINES + BEYOND
SPLIT_MODELS = POLYNOMIALS + BASELINES + BEYOND
RANDOM_SPLITS = tuple(range(2, 22))

EXPERIMENTS: tuple[Study, ...] = (
    FilterStudy("sensor", "Synthetic signals, sensor graph", "paper: Section 6.1, Fig. 1 a, b, d, e", "sensor", TRUTHS),
    FilterStudy(
        "noise",
        "Noise study",
        "paper: Section 6.1, Fig. 1 c, f",
        "sensor",
        TRUTHS,
        degrees=None,
        snrs=(20.0, 10.0, 5.0, 0.0),
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
    PredictionStudy("traffic", "Traffic", "paper: Table 1, Fig. 2 a, Fig. 5 a, d", "traffic", (10, 20), TABLE_MODELS),
    PredictionStudy("weather", "Weather", "paper: Table 1, Fig. 2 c, Fig. 5 c, f", "weather", (15, 30), TABLE_MODELS),
    PredictionStudy("fmri", "fMRI", "paper: Table 1, Fig. 2 b, Fig. 5 b, e", "fmri", (21, 42), TABLE_MODELS),
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
