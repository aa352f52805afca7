"""Numbers of a report, gathered from a fitted model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from spectralgp import scores
from spectralgp._basics.arrays import on_host
from spectralgp._basics.checks import Array, Indices, Mask
from spectralgp.graphs import Graph
from spectralgp.learning import Fit
from spectralgp.learning.baselines import PredictionErrors, baselines_of, imputation_errors, prediction_errors
from spectralgp.learning.fitting import FittedModels
from spectralgp.learning.search import ComparedModel
from spectralgp.learning.time_order import TimeOrder
from spectralgp.model import fields
from spectralgp.model.fields import Mixture, Posterior, PredictiveDistribution, leave_one_out
from spectralgp.model.spectra import mean_over_nodes, require_eigenvectors
from spectralgp.scores import Calibration, Share, calibration_of, observed_mean, share_of
from spectralgp.series.backtests import Backtest
from spectralgp.series.ensembles import as_correlations
from spectralgp.series.model import SeriesModel
from spectralgp.show.curves import FILTER_NAMES, Curve, Which, filter_curve, laplacian_in_words
from spectralgp.show.report.shapes import FilterShape

Source = Literal["left out", "held out", "fitted", "forecast"]
"""Leave-one-out of training signals; new signals; the fit to the training signals; rows after the last one."""

Pair = tuple[Array, Array]

N_GRID_POINTS = 200  # at which filters are drawn
N_SPECTRUM_BINS = 30
MOST_NAMED = 4  # inputs
MOST_CORRELATED = 1_000  # nodes between all of which correlations are found


@dataclass(frozen=True, eq=False)
class FilterBands:
    """Filters over the spectrum, and shares of the eigenvalues and of the energy of the data in bins of it.

    Signals are centred and scaled; white noise has the same shares of both. Kernels off the spectrum have no filters.
    """

    laplacian: str
    filters: dict[Which, Curve]  # averaged over stacked models
    shapes: dict[Which, FilterShape]
    edges: Array
    eigenvalue_shares: Array
    energy_shares: Array


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
    log_density: Array | None  # of each signal, in nats; None for predictions of the fit itself
    baseline: Array  # the node's mean over the (other) training signals; NaN where there are none
    imputed: Pair | None = None  # means and deviations of missing values given all others, NaN at observed values
    pit: Array | None = None  # probability integral transforms, if they do not follow from means and deviations
    first: int = 0  # signal that is shown at first

    @property
    def transformed(self) -> Array:
        """Probability integral transforms, from which all coverages of intervals follow."""
        return scores.pit(self.observed, self.mean, self.std) if self.pit is None else self.pit

    @property
    def spread(self) -> float:
        """Root mean square standard deviation of predictions of observed values."""
        return float(np.sqrt(np.mean(np.square(self.std[np.isfinite(self.observed)]))))

    @property
    def node_errors(self) -> Array:
        """Root mean square error of each node; NaN without observed values."""
        return np.sqrt(observed_mean(np.square(self.observed - self.mean), 0))

    @property
    def node_biases(self) -> Array:
        """Mean of observed less predicted values of each node; NaN without observed values."""
        return observed_mean(self.observed - self.mean, 0)


@dataclass(frozen=True)
class VarianceShares:
    """Shares of the variance of the signals."""

    # according to the model of the largest weight, adding up to one
    inputs: float
    neighbours: float
    carry: float
    noise: float
    # explained, of the squared distance to the nodes' means; None if nothing varies or there is no closed form
    predicted: float | None
    with_neighbours: float | None  # each value predicted from all others, those of its own signal included
    of: str = ""  # transformed signals of that model, in words


@dataclass(frozen=True)
class SignalCounts:
    """Numbers of training signals, and of missing and repeated ones."""

    signals: int
    repeated: int = 0  # training signals with the inputs and values of another one; none without inputs
    empty: int = 0  # signals without any value, which are left out
    missing: int = 0  # values of the training signals
    unseen: int = 0  # nodes without any observed value


@dataclass(frozen=True, eq=False)
class SignalReport:
    """Numbers of a report of signals."""

    graph: Graph
    names: tuple[str, ...]
    counts: SignalCounts
    bands: FilterBands
    predictions: Predictions
    errors: PredictionErrors  # by value
    bias: Share  # mean of observed less predicted values
    calibration: Calibration
    variance: VarianceShares
    members: tuple[tuple[str, float, Fit], ...]  # names, weights and fits in the units of the data, heaviest first
    tried: tuple[ComparedModel, ...]  # best first
    stand_ins: int  # draws of the hyperparameters that the best values replace
    has_inputs: bool
    inputs: tuple[str, ...]  # of predictions, in words
    note: str  # treatment of the given signals, in words
    correlations: tuple[float, float] | None  # medians, without noise, over edges and over all pairs of nodes
    order: str  # time order of the rows, in words
    weights: str  # learnt weights of the graph, in words
    forecasts: tuple[PredictionErrors, ...]  # of signals: our model first, then baselines; none of the fit itself
    imputations: tuple[PredictionErrors, ...]  # of hidden values, if values are missing: our model first


@dataclass(frozen=True, eq=False)
class SeriesReport:
    """Numbers of a report of a series; nodes are in the graph's order."""

    graph: Graph
    names: tuple[str, ...]
    predictions: Predictions  # observed rows, without predictions, and rows of the forecast
    model: SeriesModel
    backtest: Backtest | None
    times: tuple[Curve, ...]  # in steps; empty for independent nodes
    powers: tuple[Curve, ...]


def forecast_predictions(
    labels: Sequence[str], past: Array, later: Array, mean: Array, std: Array, imputed: Pair | None
) -> Predictions:
    """Observed rows, then rows of a forecast with later values, NaN if unknown."""
    nothing = np.full(past.shape, np.nan)
    observed = np.concatenate([past, later])
    means, deviations = (np.concatenate([nothing, one]) for one in (mean, std))
    if imputed is not None:
        rest = np.full(mean.shape, np.nan)
        imputed = np.concatenate([imputed[0], rest]), np.concatenate([imputed[1], rest])
    return Predictions("forecast", tuple(labels), observed, means, deviations, None, nothing, imputed, first=len(past))


OURS = "learnt model"
Without = Callable[[Mask], Posterior | Mixture]


@dataclass(frozen=True, eq=False)
class NewSignals:
    """Signals that the model was not fitted to, in the graph's order of the nodes, and their predictions."""

    labels: Sequence[str]
    inputs: Any  # in the form that kernels take
    observed: Array
    at: PredictiveDistribution


def signal_report(
    model: Any,
    names: Sequence[str],
    labels: Sequence[str],
    n_empty: int = 0,
    held_out: NewSignals | None = None,
    columns: Indices | None = None,
    without: Without | None = None,
    note: str = "",
) -> SignalReport:
    """Gather the numbers of a report on a fitted estimator; `names` are those of the nodes, in the graph's order.

    `labels` are those of the training signals; `n_empty` more had no value at all. Without signals that are `held_out`
    each training signal is predicted from all others. `columns` are those of the inputs with a value for each node, if
    any: if it is that of the signal before, "no change" is a baseline. `without` conditions the model on all but some
    entries of the training signals; unless given, imputations of these are not scored.
    """
    learnt: FittedModels = model.learnt_
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
    members = ((one.described, weight, fit) for one, weight, fit in fitted)
    return SignalReport(
        graph=graph,
        names=tuple(names),
        counts=counts_of(heaviest.inputs, training, n_empty),
        bands=_bands(model, heaviest),
        predictions=predictions,
        errors=PredictionErrors.of(OURS, predictions.observed, predictions.mean, predictions.std),
        bias=share_of(predictions.observed - predictions.mean, 0.0),
        calibration=calibration_of(predictions.transformed),
        variance=_variance(model.posterior_, heaviest, predictions),
        members=tuple(sorted(members, key=lambda one: -one[1])),
        tried=tuple(sorted(learnt.tried, key=lambda one: -one.score)),
        stand_ins=learnt.n_stand_ins,
        has_inputs=not heaviest.prior.input_kernel.is_identity,
        inputs=inputs_in_words(model, heaviest, columns, is_lagged),
        note=note,
        correlations=node_correlations(graph, heaviest),
        order=learnt.order_words,
        weights="" if learnt.graph_parameters is None else f"There are {learnt.graph_parameters}.",
        forecasts=found_forecasts,
        imputations=_imputations(graph, seen, new, held_out, without) if plain.basis.has_eigenvectors else (),
    )


def _features(posterior: Posterior, n_signals: int, new: Any = None) -> Array:
    """Training inputs, or new ones, as features of a model; without columns if they are covariances."""
    if posterior.prior.input_kernel.form.is_pairwise:
        return np.empty((n_signals, 0))
    if new is not None and posterior.transformation is not None:
        new = posterior.transformation.inputs(new)
    return _host_array(posterior.inputs if new is None else new)


def _forecasts(
    seen: Pair, new: Pair | None, predictions: Predictions, columns: Indices | None, order: TimeOrder | None
) -> tuple[PredictionErrors, ...]:
    """Errors of our model and of baselines on the same signals; none of the fit itself, or of a single signal."""
    if predictions.log_density is None or len(seen[1]) < 2:
        return ()
    ours, found = predictions, baselines_of(*seen, columns, None if order is None else order.factor)
    compared = (ours.observed, ours.mean, ours.std, ours.log_density, ours.transformed)
    return (PredictionErrors.of(OURS, *compared), *prediction_errors(found, seen, new))


def _imputations(
    graph: Graph, seen: Pair, new: Pair | None, held_out: NewSignals | None, without: Without | None
) -> tuple[PredictionErrors, ...]:
    """Errors of our model, as it was learnt, and of other imputers at hidden entries of new or training signals."""
    inputs, table = seen if new is None else map(np.vstack, zip(seen, new, strict=True))
    if len(seen[1]) < 2 or (held_out is None and without is None):
        return ()
    scored = slice(0 if new is None else len(seen[1]), None)

    def impute(hidden: Mask) -> Pair:
        if held_out is not None:
            imputed = held_out.at.given(np.where(hidden, np.nan, table)[scored])
        else:
            imputed = cast(Without, without)(hidden).imputed(np.arange(len(table)))
        return imputed.values, np.sqrt(imputed.values_variance())

    return tuple(imputation_errors(OURS, impute, graph, inputs, table, scored))


def _host_array(array: Any) -> Array:
    return np.asarray(on_host(array), dtype=float)


def _carries(posterior: Posterior) -> bool:
    """Return whether the model has an autoregressive term."""
    by_changes = posterior.transformation is not None and posterior.transformation.carried != 0
    return posterior.prior.carry is not None or by_changes


def inputs_in_words(model: Any, heaviest: Posterior, columns: Indices | None, is_lagged: bool) -> tuple[str, ...]:
    """Inputs of the predictions; a few by name, more by their number."""
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


def node_correlations(graph: Graph, heaviest: Posterior) -> tuple[float, float] | None:
    """Median correlations of noise-free values over edges and over all pairs of nodes; None on a large graph."""
    basis = heaviest.prior.graph_basis
    if not basis.has_eigenvectors or graph.n_nodes > MOST_CORRELATED or not graph.n_edges:
        return None
    power = np.sum(_powers(heaviest), axis=0)
    vectors = require_eigenvectors(basis, "for correlations of nodes")
    covariance = (vectors * power) @ vectors.T
    if not np.all(np.diag(covariance) > 0):
        return None
    correlations = as_correlations(covariance)
    joined, pairs = graph.weights.nonzero(), np.triu_indices(graph.n_nodes, 1)
    return float(np.median(correlations[joined])), float(np.median(correlations[pairs]))


def _new_predictions(graph: Graph, heaviest: Posterior, new: NewSignals, training: Array) -> Predictions:
    """Predictions of new signals; their missing values are imputed given all of them at once, as in `impute`."""
    observed, at = new.observed, new.at
    densities = at.log_density(graph.as_native(observed), joint=False)
    deviations = fields.standard_deviation(at, include_noise=True)
    mean, std, density = (_host_array(one) for one in (at.mean, deviations, densities))
    imputed = _imputed(heaviest, observed, lambda: at.given(observed))
    pit, labels = fields.probability_transforms(at, observed, np.random.default_rng(0)), tuple(new.labels)
    return Predictions("held out", labels, observed, mean, std, density, observed_mean(training, 0), imputed, pit)


def _training_predictions(
    posterior: Posterior | Mixture, heaviest: Posterior, training: Array, labels: tuple[str, ...]
) -> Predictions:
    """Leave-one-out predictions of training signals, or those of the fit if leave-one-out has no closed form."""
    if heaviest.entries is not None and not heaviest.basis.has_eigenvectors:
        prediction = posterior.at(heaviest.prior.input_kernel.form.as_new(heaviest.inputs))
        mean, std = _host_array(prediction.mean), _host_array(fields.standard_deviation(prediction, include_noise=True))
        return Predictions("fitted", labels, training, mean, std, None, observed_mean(training, 0))
    left = leave_one_out(posterior)
    known = np.isfinite(training)
    values = np.where(known, training, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        baseline = (values.sum(axis=0) - values) / (known.sum(axis=0) - known)
    mean, std, density = (_host_array(one) for one in (left.mean, left.std, left.log_density))
    imputed = _imputed(heaviest, training, lambda: posterior.imputed(np.arange(len(training))))
    return Predictions("left out", labels, training, mean, std, density, baseline, imputed, left.transforms)


def _imputed(heaviest: Posterior, observed: Array, given_all: Callable[[], PredictiveDistribution]) -> Pair | None:
    """Imputed values given all observed ones; None on a large graph, or if nothing is missing."""
    if not np.isnan(observed).any() or not heaviest.basis.has_eigenvectors:
        return None
    found = given_all()
    return imputed_only(observed, found.values, found.values_variance())


def imputed_only(observed: Array, mean: Array, variance: Array) -> Pair:
    """Means and standard deviations of missing values, NaN at observed ones."""
    is_missing = np.isnan(observed)
    return np.where(is_missing, mean, np.nan), np.where(is_missing, np.sqrt(variance), np.nan)


def counts_of(inputs: Array, training: Array, n_empty: int) -> SignalCounts:
    """Counts of training signals and of their missing values."""
    distinct = {(one.tobytes(), signal.tobytes()) for one, signal in zip(inputs, training, strict=True)}
    missing = ~np.isfinite(training)
    repeated = len(training) - len(distinct) if inputs.shape[1] else 0
    unseen = int(missing.all(axis=0).sum()) if len(training) else 0
    return SignalCounts(len(training), repeated, empty=n_empty, missing=int(missing.sum()), unseen=unseen)


def _bands(model: Any, heaviest: Posterior) -> FilterBands:
    spectrum = model.spectrum_
    # nodes of a quadrature may lie a little beyond the interval
    upper = min(float(np.max(spectrum.eigenvalues)), spectrum.upper) or spectrum.upper
    grid, edges = np.linspace(0.0, upper, N_GRID_POINTS), np.linspace(0.0, upper, N_SPECTRUM_BINS + 1)
    bins = np.clip(np.searchsorted(edges, spectrum.eigenvalues, side="right") - 1, 0, N_SPECTRUM_BINS - 1)
    posteriors = [part for weight, part in model.posterior_.parts if weight > 0]
    has_signals = heaviest.signals.shape[0] > 0
    filters, shapes = dict[Which, Curve](), dict[Which, FilterShape]()
    if all(one.prior.graph_kernel.shares_eigenvectors for one in posteriors):
        has: dict[Which, bool] = {
            "signal": True,
            "residual": any(one.prior.graph_kernel.residual is not None for one in posteriors),
            "carry": any(map(_carries, posteriors)),
        }
        for which in (which for which, is_there in has.items() if is_there):
            answer = model.response(grid, return_std=has_signals, which=which)
            mean, std = answer if has_signals else (answer, None)
            filters[which] = filter_curve(FILTER_NAMES[which], grid, mean, std)
            shapes[which] = model.filter_shape(which)
    energy = np.zeros(N_SPECTRUM_BINS)
    if has_signals:
        own = next((one for one in posteriors if one.prior.spectrum is spectrum), heaviest)
        energy = bin_shares(bins, spectrum.read(own.modelled).energies.sum(axis=0))
    laplacian = laplacian_in_words(spectrum.laplacian, spectrum.scaled)
    return FilterBands(laplacian, filters, shapes, edges, bin_shares(bins, spectrum.multiplicities), energy)


def bin_shares(bins: NDArray[np.intp], weights: Array) -> Array:
    """Shares of bins in a sum; single weights of a quadrature may be negative."""
    amounts = np.maximum(np.bincount(bins, weights, N_SPECTRUM_BINS), 0.0)
    return amounts / (float(amounts.sum()) or 1.0)


def _powers(heaviest: Posterior) -> tuple[Array, Array]:
    """Power explained by inputs and power of the shared residual, by frequency."""
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
        with_neighbours = explained_share(predictions, np.asarray(leave_one_out(posterior, "entry").mean))
    from_inputs, neighbours, carried, noise = (parts / parts.sum()).tolist()
    predicted = explained_share(predictions, predictions.mean)
    of = "" if heaviest.transformation is None else heaviest.transformation.described
    return VarianceShares(from_inputs, neighbours, carried, noise, predicted, with_neighbours, of)


def explained_share(predictions: Predictions, mean: Array) -> float | None:
    """Share of the squared distance to the nodes' means that predictions explain; None if that distance is zero."""
    baseline, observed = predictions.baseline, predictions.observed
    known = np.isfinite(observed) & np.isfinite(baseline)
    total = float(np.sum(np.square((observed - baseline)[known])))
    return 1 - float(np.sum(np.square((observed - mean)[known]))) / total if total > 0 else None
