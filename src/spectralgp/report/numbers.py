"""What a report tells, in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spectralgp._basics.checks import Array
from spectralgp.graphs import Graph
from spectralgp.learning import Fit
from spectralgp.learning.fitting import Tried
from spectralgp.scores import Calibration

Source = Literal["left out", "held out", "fitted"]
"""Where predictions come from: each training signal from all others; new signals; the fit to the training signals."""

Which = Literal["signal", "residual", "carry"]


@dataclass(frozen=True, eq=False)
class LearntFilter:
    """A learnt filter over `Bands.grid`.

    Parameters
    ----------
    which : {"signal", "residual", "carry"}
        ``g``, ``h`` or ``b``.
    mean : ndarray of shape (n_points,)
        Its values, averaged over stacked models.
    std : ndarray of shape (n_points,) or None
        Their standard deviation; None where the model holds no signals that would tell it.
    """

    which: Which
    mean: Array
    std: Array | None


@dataclass(frozen=True, eq=False)
class Bands:
    """Filters over the spectrum, the distribution of the eigenvalues, and the energy of the data.

    Parameters
    ----------
    laplacian : str
        Which Laplacian, in words.
    grid : ndarray of shape (n_points,)
        Where filters were evaluated.
    filters : tuple of LearntFilter
        Those that the model has; none where its kernel is no function on the spectrum.
    edges : ndarray of shape (n_bins + 1,)
        Of the bins of the spectrum.
    eigenvalue_shares, energy_shares : ndarray of shape (n_bins,)
        Share of the eigenvalues in each bin, and of the energy of the signals, centred and scaled. White signals have
        the same of both.
    """

    laplacian: str
    grid: Array
    filters: tuple[LearntFilter, ...]
    edges: Array
    eigenvalue_shares: Array
    energy_shares: Array


@dataclass(frozen=True, eq=False)
class Predictions:
    """Observed signals and what was predicted of them, in the units of the data.

    Parameters
    ----------
    source : {"left out", "held out", "fitted"}
        Where the predictions come from.
    labels : tuple of str
        Of the signals.
    observed : ndarray of shape (n_signals, n_nodes)
        NaN where nothing was observed.
    mean, std : ndarray of shape (n_signals, n_nodes)
        Predictions of observed values, noise included.
    baseline : ndarray of shape (n_signals, n_nodes)
        The mean of the node over the training signals; without the signal itself where that was left out. NaN where
        there is none.
    """

    source: Source
    labels: tuple[str, ...]
    observed: Array
    mean: Array
    std: Array
    baseline: Array


@dataclass(frozen=True)
class Variance:
    """Where the variance of the signals comes from.

    Parameters
    ----------
    inputs, neighbours, carry, noise : float
        Shares by the account of the model of the largest weight, which add up to one: what inputs explain, what
        neighbours share beside it, what carries over, noise.
    predicted : float or None
        Share of the variance about the nodes' means that predictions explain; None where nothing varies.
    with_neighbours : float or None
        The same where each value is predicted from all others, those of its own signal too: what knowing the other
        nodes adds. None where it has no closed form.
    """

    inputs: float
    neighbours: float
    carry: float
    noise: float
    predicted: float | None
    with_neighbours: float | None


@dataclass(frozen=True)
class Scores:
    """How good the predictions are, over all observed values.

    Parameters
    ----------
    n_values : int
        Number of observed values.
    error : float
        Root mean square error.
    spread : float
        Root mean square predicted standard deviation.
    crps : float
        Continuous ranked probability score.
    log_density : float
        Mean log density of a value, in nats.
    """

    n_values: int
    error: float
    spread: float
    crps: float
    log_density: float


@dataclass(frozen=True)
class Counts:
    """How much there is, and what was left out.

    Parameters
    ----------
    signals : int
        Training signals.
    nodes, edges, components : int
        Of the graph.
    repeated : int
        Training signals that repeat another one, inputs and all; none without inputs.
    empty : int
        Signals without any value, which were left out.
    missing : int
        Values of the training signals that were not observed.
    unseen : int
        Nodes that were never observed.
    """

    signals: int
    nodes: int
    edges: int
    components: int
    repeated: int = 0
    empty: int = 0
    missing: int = 0
    unseen: int = 0


@dataclass(frozen=True, eq=False)
class Member:
    """A model of the mixture, or the one model.

    Parameters
    ----------
    name : str
        What it is.
    weight : float
        Its weight.
    fit : Fit
        What was learnt, with its certificate, in the units of the data.
    inputs : str
        The learnt input kernel.
    """

    name: str
    weight: float
    fit: Fit
    inputs: str


@dataclass(frozen=True, eq=False)
class Numbers:
    """Everything that a report tells.

    Parameters
    ----------
    graph : Graph
        The graph.
    names : tuple of str
        Of the nodes, in the graph's order.
    counts : Counts
        How much there is.
    bands : Bands
        Filters and spectrum.
    predictions : Predictions
        Observed signals and predictions.
    scores : Scores
        How good those are.
    calibration : Calibration
        And whether their uncertainty is right.
    variance : Variance
        What explains how much.
    members : tuple of Member
        Models, the heaviest first.
    tried : tuple of Tried
        All models that were compared, the best first; none where there was one only.
    stand_ins : int
        Draws of the hyperparameters that could not be had.
    has_inputs : bool
        Whether signals were observed at inputs.
    """

    graph: Graph
    names: tuple[str, ...]
    counts: Counts
    bands: Bands
    predictions: Predictions
    scores: Scores
    calibration: Calibration
    variance: Variance
    members: tuple[Member, ...]
    tried: tuple[Tried, ...]
    stand_ins: int = 0
    has_inputs: bool = True
