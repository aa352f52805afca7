"""What a report tells, in numbers: gathered from a fitted model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from spectralgp import scores
from spectralgp._basics.arrays import on_host
from spectralgp._basics.checks import Array, Indices, Mask
from spectralgp.graphs import Graph
from spectralgp.learning import Fit
from spectralgp.learning.fitting import ComparedModel, FittedModels
from spectralgp.model.fields import Mixture, Posterior, PredictiveDistribution, leave_one_out
from spectralgp.model.kernels import residual_of
from spectralgp.model.spectra import mean_over_nodes, require_eigenvectors
from spectralgp.scores import Calibration, Share, calibration_of, observed_mean, share_of
from spectralgp.show.report.shapes import FilterShape

if TYPE_CHECKING:
    from spectralgp.learning.baselines import PredictionErrors
    from spectralgp.learning.time_order import TimeOrder

Source = Literal["left out", "held out", "fitted", "forecast"]
"""Each training signal from all others; new signals; the fit to the training signals; rows after the last one."""

Which = Literal["signal", "residual", "carry"]

N_GRID_POINTS = 200  # at which filters are drawn
N_SPECTRUM_BINS = 30
MOST_NAMED = 4  # inputs
MOST_CORRELATED = 1_000  # nodes between all of which correlations are found


def deviation_band(mean: Array, std: Array) -> tuple[Array, Array]:
    """One standard deviation to either side; not below zero for a filter that is nowhere negative."""
    low = mean - std
    return (np.maximum(low, 0.0) if np.min(mean) >= 0 else low), mean + std


def laplacian_in_words(kind: str, scaled: bool) -> str:
    """Name of a Laplacian, such as "scaled normalised Laplacian"."""
    return f"{'scaled ' if scaled else ''}{kind.replace('normalized', 'normalised')} Laplacian"


@dataclass(frozen=True, eq=False)
class LearntFilter:
    """A learnt filter over `FilterBands.grid`, averaged over stacked models."""

    which: Which
    mean: Array
    std: Array | None  # None where the model holds no signals that would tell it
    shape: FilterShape


@dataclass(frozen=True, eq=False)
class FilterBands:
    """Filters over the spectrum, and in bins of it the shares of the eigenvalues and of the energy of the data.

    Signals are centred and scaled; white ones have the same shares of both. Kernels off the spectrum have no filters.
    """

    laplacian: str
    grid: Array
    filters: tuple[LearntFilter, ...]
    edges: Array
    eigenvalue_shares: Array
    energy_shares: Array


@dataclass(frozen=True, eq=False)
class ImputedValues:
    """What fills holes, as it would be observed: NaN where there is none."""

    mean: Array  # (n_signals, n_nodes)
    std: Array

    @classmethod
    def of(cls, observed: Array, mean: Array, variance: Array) -> ImputedValues:
        """Of means and variances of all values, those that were not observed."""
        holes = np.isnan(observed)
        return cls(np.where(holes, mean, np.nan), np.where(holes, np.sqrt(variance), np.nan))


@dataclass(frozen=True, eq=False)
class Predictions:
    """Observed signals and their predictions, noise included, in the units of the data: (n_signals, n_nodes) each.

    `baseline` may be (n_nodes,), the same for all signals.
    """

    source: Source
    labels: tuple[str, ...]
    observed: Array  # NaN where nothing was observed
    mean: Array
    std: Array
    log_density: Array | None  # of each signal, in nats; None if it is that of the fit itself
    baseline: Array  # the node's mean over the (other) training signals; NaN where there are none
    filled: ImputedValues | None = (
        None  # what was not observed, given the rest of its signal too; None where it is not known
    )
    pit: Array | None = None  # probability integral transforms, where they do not follow from means and deviations
    first: int = 0  # signal that is shown at first

    @property
    def transformed(self) -> Array:
        """Probability integral transforms: what intervals, in sentences, tables and figures, are told by."""
        return scores.pit(self.observed, self.mean, self.std) if self.pit is None else self.pit


@dataclass(frozen=True)
class VarianceShares:
    """Where the variance of the signals comes from, as shares."""

    # by the account of the model of the largest weight, adding up to one
    inputs: float
    neighbours: float
    carry: float
    noise: float
    # of the squared distance to the nodes' means; None where nothing varies, or there is no closed form
    predicted: float | None
    with_neighbours: float | None  # each value predicted from all others, those of its own signal too
    of: str = ""  # what that model sees in place of the signals, if not those


@dataclass(frozen=True, eq=False)
class PredictionScores:
    """How good the predictions are, over all observed values, and by node."""

    n_values: int
    error: float  # root mean square
    spread: float  # root mean square predicted standard deviation
    crps: float
    log_density: float  # mean over the values, in nats
    bias: Share  # mean of observed less predicted values, zero if there is none
    node_errors: Array  # root mean square of each node; NaN where nothing was observed
    node_biases: Array


@dataclass(frozen=True)
class SignalCounts:
    """How many training signals there are, and what is missing from them."""

    signals: int
    repeated: int = 0  # training signals that repeat another one, inputs and all; none without inputs
    empty: int = 0  # signals without any value, which were left out
    missing: int = 0  # values of the training signals
    unseen: int = 0  # nodes that were never observed


@dataclass(frozen=True, eq=False)
class ModelSummary:
    """A model of the mixture, or the one model; its fit is in the units of the data."""

    name: str
    weight: float
    fit: Fit


@dataclass(frozen=True, eq=False)
class SignalReport:
    """Everything that a report of signals tells; models come with the heaviest, those compared with the best first."""

    graph: Graph
    names: tuple[str, ...]
    counts: SignalCounts
    bands: FilterBands
    predictions: Predictions
    scores: PredictionScores
    calibration: Calibration
    variance: VarianceShares
    members: tuple[ModelSummary, ...]
    tried: tuple[ComparedModel, ...]
    stand_ins: int  # draws of the hyperparameters that the best values replace
    has_inputs: bool
    inputs: tuple[str, ...]  # what predictions are made from, in words
    note: str  # what was done about the signals that were given
    correlations: tuple[float, float] | None  # of what is not noise at joined nodes, and at any two: medians
    order: str  # that rows are in the order of time, in words
    forecasts: tuple[PredictionErrors, ...]  # of signals: ours first, then the baselines; none where ours is the fit
    fillings: tuple[PredictionErrors, ...]  # of hidden entries, where signals have holes


OURS = "learnt model"
Without = Callable[[Mask], Posterior | Mixture]
Pair = tuple[Array, Array]  # inputs as features, and signals


@dataclass(frozen=True, eq=False)
class NewSignals:
    """Signals that the model has not seen, in the graph's order of the nodes, and what it predicts of them."""

    labels: Sequence[str]
    inputs: Any  # in the form that kernels take
    observed: Array
    at: PredictiveDistribution


def gather(
    model: Any,
    learnt: FittedModels,
    names: Sequence[str],
    labels: Sequence[str],
    n_empty: int = 0,
    held_out: NewSignals | None = None,
    columns: Indices | None = None,
    without: Without | None = None,
    note: str = "",
) -> SignalReport:
    """Everything a report tells of a fitted estimator; `names` are those of the nodes, in the graph's order.

    `labels` are those of the training signals; `n_empty` more had no value at all. Without signals that are `held_out`
    each training signal is predicted from all others. `columns` of the inputs have a value for each
    node, if any do: where it is that of the signal before, "no change" is a baseline. `without` conditions the model on
    all but some entries of the training signals; if not given, no fillings of these are judged.
    """
    graph, heaviest = model.graph_, max(model.posterior_.parts, key=lambda part: part[0])[1]
    training = _host_array(heaviest.given_signals)
    plain = next((part for _, part in model.posterior_.parts if part.transformation is None), heaviest)
    seen, new = (_features(plain, len(training)), training), None
    if held_out is not None:
        predictions = _new_predictions(graph, heaviest, held_out, training)
        new = _features(plain, len(held_out.observed), held_out.inputs), held_out.observed
    elif len(training):
        predictions = _training_predictions(model.posterior_, heaviest, training, tuple(labels))
    else:
        raise ValueError(
            "model must hold signals to report on, or be given some; got a model without any. Pass X and Y."
        )
    columns = None if plain.prior.input_kernel.form.is_pairwise else columns
    found_forecasts = _forecasts(seen, new, predictions, columns, learnt.order)
    is_lagged = any(one.name == "no change" for one in found_forecasts)
    fitted = zip(learnt.candidates, learnt.weights.tolist(), learnt.fits, strict=True)
    members = (ModelSummary(one.described, weight, fit) for one, weight, fit in fitted)
    return SignalReport(
        graph=graph,
        names=tuple(names),
        counts=_counts(heaviest.inputs, training, n_empty),
        bands=_bands(model, heaviest),
        predictions=predictions,
        scores=_scores(predictions.observed, predictions.mean, predictions.std),
        calibration=calibration_of(predictions.transformed),
        variance=_variance(model.posterior_, heaviest, predictions),
        members=tuple(sorted(members, key=lambda one: -one.weight)),
        tried=tuple(sorted(learnt.tried, key=lambda one: -one.score)),
        stand_ins=learnt.n_stand_ins,
        has_inputs=not heaviest.prior.input_kernel.is_identity,
        inputs=_inputs_in_words(model, heaviest, columns, is_lagged),
        note=note,
        correlations=_correlations(graph, heaviest),
        order="" if learnt.order is None else learnt.order.described,
        forecasts=found_forecasts,
        fillings=_fillings(graph, seen, new, held_out, without) if plain.basis.has_eigenvectors else (),
    )


def _features(posterior: Posterior, n_signals: int, new: Any = None) -> Array:
    """Training inputs, or new ones, as the features that a model sees; without columns where they are covariances."""
    if posterior.prior.input_kernel.form.is_pairwise:
        return np.empty((n_signals, 0))
    if new is not None and posterior.transformation is not None:
        new = posterior.transformation.inputs(new)
    return _host_array(posterior.inputs if new is None else new)


def _forecasts(
    seen: Pair, new: Pair | None, predictions: Predictions, columns: Indices | None, order: TimeOrder | None
) -> tuple[PredictionErrors, ...]:
    """Ours and the baselines on the same signals; none where ours saw them, or where there is nothing to learn from."""
    if predictions.log_density is None or len(seen[1]) < 2:
        return ()
    from spectralgp.learning.baselines import PredictionErrors, baselines_of, forecasts

    ours, found = predictions, baselines_of(*seen, columns, None if order is None else order.factor)
    compared = (ours.observed, ours.mean, ours.std, ours.log_density, ours.transformed)
    return (PredictionErrors.of(OURS, *compared), *forecasts(found, seen, new))


def _fillings(
    graph: Graph, seen: Pair, new: Pair | None, held_out: NewSignals | None, without: Without | None
) -> tuple[PredictionErrors, ...]:
    """Ours and others at hidden entries: of new signals or, where there are none, of the training signals.

    Hyperparameters stay those learnt from all training signals. None where nothing is missing.
    """
    inputs, table = seen if new is None else map(np.vstack, zip(seen, new, strict=True))
    if len(seen[1]) < 2 or (held_out is None and without is None):
        return ()
    from spectralgp.learning.baselines import fillings

    judged = slice(0 if new is None else len(seen[1]), None)

    def fill(out: Mask) -> Pair:
        if held_out is not None:
            filled = held_out.at.given(np.where(out, np.nan, table)[judged])
        else:
            filled = cast(Without, without)(out).filled(np.arange(len(table)))
        return filled.values, np.sqrt(filled.values_variance())

    return tuple(fillings(OURS, fill, graph, inputs, table, judged))


def _host_array(array: Any) -> Array:
    return np.asarray(on_host(array), dtype=float)


def _carries(posterior: Posterior) -> bool:
    """Whether values of the inputs carry over, whatever else is learnt of them."""
    by_changes = posterior.transformation is not None and posterior.transformation.carried != 0
    return posterior.prior.carry is not None or by_changes


def _inputs_in_words(model: Any, heaviest: Posterior, columns: Indices | None, is_lagged: bool) -> tuple[str, ...]:
    """What predictions are made from: few inputs by name."""
    kernel = heaviest.prior.input_kernel
    if kernel.form.is_pairwise:
        return ("the covariances between signals that were given",)
    if kernel.is_identity and not _carries(heaviest):
        return ()
    names, taken = getattr(model, "feature_names_in_", ()), set[int]() if columns is None else set(columns.tolist())
    own = ["the signal before" if is_lagged else "a value at each node"] if taken else []
    others = [str(name) for place, name in enumerate(names) if place not in taken]
    n_others = model.n_features_in_ - len(taken)
    if n_others and not kernel.is_identity:
        own += others if 0 < len(others) <= MOST_NAMED else [f"{n_others:,} input{'' if n_others == 1 else 's'}"]
    return tuple(own)


def _correlations(graph: Graph, heaviest: Posterior) -> tuple[float, float] | None:
    """Medians of the correlations of what is not noise, over edges and over pairs; None where that is much work."""
    basis = heaviest.prior.graph_basis
    if not basis.has_eigenvectors or graph.n_nodes > MOST_CORRELATED or not graph.n_edges:
        return None
    power = np.sum(_powers(heaviest), axis=0)
    vectors = require_eigenvectors(basis, "for correlations of nodes")
    covariance = (vectors * power) @ vectors.T
    deviations = np.sqrt(np.diag(covariance))
    if not np.all(deviations > 0):
        return None
    correlations = covariance / np.multiply.outer(deviations, deviations)
    pairs = np.triu_indices(graph.n_nodes, 1)
    joined = correlations[graph.weights.nonzero()]
    return float(np.median(joined)), float(np.median(correlations[pairs]))


def _new_predictions(graph: Graph, heaviest: Posterior, new: NewSignals, training: Array) -> Predictions:
    """New signals before the model has seen them; what fills their holes is found for all at once, as in `impute`."""
    observed, at = new.observed, new.at
    densities = at.log_density(graph.as_native(observed), joint=False)
    mean, std, density = (_host_array(one) for one in (at.mean, at.std(include_noise=True), densities))
    filled = _filled(heaviest, observed, lambda: at.given(observed))
    pit, labels = at.transforms(observed, np.random.default_rng(0)), tuple(new.labels)
    return Predictions("held out", labels, observed, mean, std, density, observed_mean(training, 0), filled, pit)


def _training_predictions(
    posterior: Posterior | Mixture, heaviest: Posterior, training: Array, labels: tuple[str, ...]
) -> Predictions:
    """Each training signal from all others; from all of them where that has no closed form."""
    if heaviest.seen is not None and not heaviest.basis.has_eigenvectors:
        prediction = posterior.at(heaviest.prior.input_kernel.form.as_new(heaviest.inputs))
        mean, std = _host_array(prediction.mean), _host_array(prediction.std(include_noise=True))
        return Predictions("fitted", labels, training, mean, std, None, observed_mean(training, 0))
    left = leave_one_out(posterior)
    known = np.isfinite(training)
    values = np.where(known, training, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        baseline = (values.sum(axis=0) - values) / (known.sum(axis=0) - known)
    mean, std, density = (_host_array(one) for one in (left.mean, left.std, left.log_density))
    filled = _filled(heaviest, training, lambda: posterior.filled(np.arange(len(training))))
    return Predictions("left out", labels, training, mean, std, density, baseline, filled, left.transforms)


def _filled(
    heaviest: Posterior, observed: Array, given_all: Callable[[], PredictiveDistribution]
) -> ImputedValues | None:
    """What fills holes, by the law of signals given all that was observed; None without holes, or on a large graph."""
    if not np.isnan(observed).any() or not heaviest.basis.has_eigenvectors:
        return None
    found = given_all()
    return ImputedValues.of(observed, found.values, found.values_variance())


def _counts(inputs: Array, training: Array, n_empty: int) -> SignalCounts:
    distinct = {(one.tobytes(), signal.tobytes()) for one, signal in zip(inputs, training, strict=True)}
    missing = ~np.isfinite(training)
    return SignalCounts(
        signals=len(training),
        repeated=len(training) - len(distinct) if inputs.shape[1] else 0,
        empty=n_empty,
        missing=int(missing.sum()),
        unseen=int(missing.all(axis=0).sum()) if len(training) else 0,
    )


def _bands(model: Any, heaviest: Posterior) -> FilterBands:
    spectrum = model.spectrum_
    # nodes of a quadrature may lie a little beyond the interval
    upper = min(float(np.max(spectrum.eigenvalues)), spectrum.upper) or spectrum.upper
    grid, edges = np.linspace(0.0, upper, N_GRID_POINTS), np.linspace(0.0, upper, N_SPECTRUM_BINS + 1)
    bins = np.clip(np.searchsorted(edges, spectrum.eigenvalues, side="right") - 1, 0, N_SPECTRUM_BINS - 1)
    posteriors = [part for weight, part in model.posterior_.parts if weight > 0]
    has_signals = heaviest.signals.shape[0] > 0
    filters: list[LearntFilter] = []
    if all(one.prior.graph_kernel.shares_eigenvectors for one in posteriors):
        has: dict[Which, bool] = {
            "signal": True,
            "residual": any(residual_of(one.prior.graph_kernel) is not None for one in posteriors),
            "carry": any(map(_carries, posteriors)),
        }
        for which in (which for which, is_there in has.items() if is_there):
            answer = model.response(grid, return_std=has_signals, which=which)
            mean, std = answer if has_signals else (answer, None)
            filters.append(LearntFilter(which, mean, std, model.filter_shape(which)))
    energy = np.zeros(N_SPECTRUM_BINS)
    if has_signals:
        own = next((one for one in posteriors if one.prior.spectrum is spectrum), heaviest)
        energy = _shares(bins, spectrum.read(own.modelled).energies.sum(axis=0))
    laplacian = laplacian_in_words(spectrum.laplacian, spectrum.scaled)
    return FilterBands(laplacian, grid, tuple(filters), edges, _shares(bins, spectrum.multiplicities), energy)


def _shares(bins: NDArray[np.intp], weights: Array) -> Array:
    """Shares of the bins in a sum; the weights of a quadrature may be negative one by one."""
    amounts = np.maximum(np.bincount(bins, weights, N_SPECTRUM_BINS), 0.0)
    return amounts / (float(amounts.sum()) or 1.0)


def _scores(observed: Array, mean: Array, std: Array) -> PredictionScores:
    known = np.isfinite(observed)
    return PredictionScores(
        n_values=int(known.sum()),
        error=scores.root_mean_square_error(observed, mean),
        spread=float(np.sqrt(np.mean(np.square(std[known])))),
        crps=float(np.nanmean(scores.crps(observed, mean, std))),
        log_density=scores.mean_log_density(observed, mean, std),
        bias=share_of(observed - mean, 0.0),
        node_errors=np.sqrt(observed_mean(np.square(observed - mean), 0)),
        node_biases=observed_mean(observed - mean, 0),
    )


def _powers(heaviest: Posterior) -> tuple[Array, Array]:
    """By frequency: the power of what inputs explain, and of what neighbours share beside it."""
    prior = heaviest.prior
    factor = heaviest.input_variance if heaviest.inputs.shape[0] else 1.0
    return factor * prior.power, prior.graph_kernel.residual_power(prior.graph_basis.eigenvalues)


def _variance(posterior: Posterior | Mixture, heaviest: Posterior, predictions: Predictions) -> VarianceShares:
    prior, basis = heaviest.prior, heaviest.prior.graph_basis
    carry = 0.0
    if heaviest.carried is not None:
        values = prior.carried_values(heaviest.carried, heaviest.inputs, heaviest.signals.units)
        carry = float(np.var(_host_array(values)))
    of_powers = [float(mean_over_nodes(basis, power)) for power in _powers(heaviest)]
    parts = np.array([*of_powers, carry, prior.noise_variance])
    with_neighbours = None
    if predictions.source == "left out" and basis.has_eigenvectors:
        with_neighbours = _explained(predictions, np.asarray(leave_one_out(posterior, "entry").mean))
    from_inputs, neighbours, carried, noise = (parts / parts.sum()).tolist()
    predicted = _explained(predictions, predictions.mean)
    of = "" if heaviest.transformation is None else heaviest.transformation.described
    return VarianceShares(from_inputs, neighbours, carried, noise, predicted, with_neighbours, of)


def _explained(predictions: Predictions, mean: Array) -> float | None:
    """Share of the squared distance to the nodes' means that predictions take away; None where there is none."""
    baseline, observed = predictions.baseline, predictions.observed
    known = np.isfinite(observed) & np.isfinite(baseline)
    total = float(np.sum(np.square((observed - baseline)[known])))
    return 1 - float(np.sum(np.square((observed - mean)[known]))) / total if total > 0 else None
