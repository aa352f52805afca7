"""Leave-one-out predictions in closed form, for every signal, node or entry at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy.special import logsumexp

from spectralgp._basics.arrays import non_negative_root
from spectralgp._basics.checks import Array, as_option
from spectralgp.model.fields.covariances import with_entries
from spectralgp.model.fields.curvatures import LEAST_CAVITY
from spectralgp.model.fields.latent import LatentPosterior, log_evidence_under
from spectralgp.model.fields.posterior import Mixture, Posterior, SinglePosterior
from spectralgp.model.fields.shrinkage import t_log_density
from spectralgp.model.likelihoods import predictive_distribution, predictive_log_density, randomised_pit

By = Literal["signal", "node", "entry"]
TRANSFORM_SEED = 0

NO_NODES = (
    "by must be 'signal' on a large graph, where single nodes have no closed form; got {by!r}. "
    "Use spectrum='exact' where the graph is small enough."
)
NOT_COMPLETE = (
    "signals must be complete on a large graph to leave out each {by} in closed form; got missing values. "
    "Use scikit-learn's cross-validation."
)


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Leave-one-out predictions, given all other values and the same hyperparameters.

    Parameters
    ----------
    by : {"signal", "node", "entry"}
        Part of the data that is left out at a time.
    mean : array of shape (n_signals, n_nodes)
        Predicted values.
    std : array of shape (n_signals, n_nodes)
        Standard deviation of the observed (noisy) value at each entry.
    log_density : ndarray
        Joint log predictive density of the left-out values: shape (n_signals,) by signal, (n_nodes,) by node,
        (n_signals, n_nodes) by entry.
    transforms : array of shape (n_signals, n_nodes), optional
        With a likelihood: randomised probability integral transforms, uniform if predictions are calibrated.
    """

    by: By
    mean: Any
    std: Any
    log_density: Array
    transforms: Array | None = None


def leave_one_out(posterior: SinglePosterior | Mixture, by: By = "signal") -> LeaveOneOut:
    """Leave out each signal, node or entry in turn, at the cost of one prediction: equation (10).

    The hyperparameters stay those learnt from all data, so this checks calibration; it does not detect overfitting of
    the hyperparameters and must not be used to choose a degree. If signals were centred by node, values are left out of
    the nodes' means too.

    If the covariance between frequencies was learnt, a left-out signal is taken out of it, with its whitened error in
    place of its rows; for nodes and entries that covariance is fixed, and nodes have normal densities. The
    autoregressive term and scales of the nodes are fixed.

    Missing values have no density; their means and standard deviations are those given all values that are not left
    out. With missing values the nodes' means are fixed.

    Parameters
    ----------
    posterior : Posterior or Mixture
        A conditioned model; the weights of a mixture are held fixed.
    by : {"signal", "node", "entry"}, default="signal"
        Leave out whole signals, whole nodes, or single entries.
    """
    as_option(by, "by", ("signal", "node", "entry"))
    if not isinstance(posterior, SinglePosterior | Mixture):
        raise TypeError(
            f"posterior must be a Posterior; got {type(posterior).__name__}. Pass what condition(...) returns; a "
            "fitted GraphGPRegressor has a leave_one_out of its own."
        )
    parts = [(weight, _left_out(part, by)) for weight, part in posterior.parts if weight > 0]
    if len(parts) == 1:
        return parts[0][1]
    mean: Any = sum(weight * part.mean for weight, part in parts)
    variance: Any = sum(weight * (part.std**2 + (part.mean - mean) ** 2) for weight, part in parts)
    logs = [np.log(weight) + part.log_density for weight, part in parts]
    transforms: Any = [weight * part.transforms for weight, part in parts if part.transforms is not None]
    pit = sum(transforms) if transforms else None
    return LeaveOneOut(by, mean, non_negative_root(variance), np.asarray(logsumexp(logs, axis=0)), pit)


def _latent_values(posterior: LatentPosterior, by: By) -> LeaveOneOut:
    """Values under a likelihood, by cavities of the latent signals: equation (40)."""
    sites, values, likelihood = posterior.sites, posterior.signals.as_observed, posterior.likelihood
    beside, is_observed = sites.observations.beside, np.isfinite(values)
    if by == "entry":
        _, slopes, curvatures = sites.terms
        variance = sites.variance / (1 - np.minimum(curvatures * sites.variance, 1 - LEAST_CAVITY))
        mean = sites.mean - variance * slopes
        logs = predictive_log_density(likelihood, sites.observations.values, mean, variance, beside)
        logs = np.where(is_observed, logs, np.nan)
    else:
        mean, variance, is_signal = sites.mean.copy(), sites.variance.copy(), by == "signal"
        logs = np.full(mean.shape[0 if is_signal else 1], np.nan)
        for number in range(len(logs)):
            places: Any = number if is_signal else (slice(None), number)
            block = sites.among_nodes(number) if is_signal else sites.among_signals(number)
            mean[places], left = sites.cavity(block, sites.mean[places], places)
            variance[places] = np.diag(left)
            if is_observed[places].any():
                logs[number] = log_evidence_under(mean[places], left, likelihood, values[places], beside[places])
    moments, random_state = (mean, variance, beside), np.random.default_rng(TRANSFORM_SEED)
    below = partial(predictive_distribution, likelihood, mean=mean, variance=variance, beside=beside)
    transforms = randomised_pit(below, values, likelihood.is_discrete, random_state)
    return LeaveOneOut(by, likelihood.mean(*moments), np.sqrt(likelihood.variance(*moments)), logs, transforms)


def _left_out(posterior: SinglePosterior, by: By) -> LeaveOneOut:
    """Leave-one-out predictions of one model in the user's units: equations (10) and (23) for normal values."""
    if isinstance(posterior, LatentPosterior):
        return _latent_values(posterior, by)
    assert isinstance(posterior, Posterior)
    if by == "node" and posterior.signals.centred_by == "node":
        raise ValueError(
            "by must be 'signal' or 'entry' if each node was centred by its own mean, which is unknown once the node "
            "is left out; got 'node'. Fit with center='global'."
        )
    if by == "signal" and posterior.entries is None:
        left = _signals(posterior)
    elif not posterior.covariance.is_written_out:
        raise ValueError((NO_NODES if posterior.entries is None else NOT_COMPLETE).format(by=by))
    else:
        left = _entries(posterior) if by == "entry" else _groups(posterior, by)
    transformation = posterior.transformation
    if transformation is None:
        return left
    variance, slopes = left.std**2, transformation.log_slopes_of(posterior.signals, posterior.inputs)
    if by != "entry":
        slopes = slopes.sum(axis=0 if by == "node" else 1)
    mean = transformation.mean(left.mean, lambda: variance, posterior.inputs)
    std = non_negative_root(transformation.variance(left.mean, variance, variance))
    return LeaveOneOut(by, mean, std, left.log_density + slopes)


def _signals(posterior: Posterior) -> LeaveOneOut:
    """Signals, on any spectrum: the error of the prediction from the others is ``r_n / s_n``, equation (10)."""
    covariance, units, shrinkage = posterior.covariance, posterior.signals.units, posterior.prior.shrinkage
    shares = posterior.signals.centred_by == "node" and covariance.shape[0] > 1
    carried = posterior.carried_block()
    missed = posterior.left_out(shares, posterior.carried is None)
    lengths, logs, (variances, _) = missed.lengths, missed.logs, missed.variances()
    basis, n_nodes = posterior.basis, covariance.shape[1]
    if shrinkage is not None:
        # the share of a signal in the covariance is its error, node by node
        errors = np.square(basis.unload(missed.errors)) * missed.stretch[:, None]
        own, least = 0.0 if shrinkage.is_identity else 1.0, shrinkage.worth / shrinkage.total * variances
        variances = np.maximum((shrinkage.total * variances - own * errors) / (shrinkage.total - own), least)
        lengths, further = shrinkage.left_out(lengths)
        logs = logs + further
    log_density = t_log_density(lengths * missed.stretch, logs, n_nodes, posterior.prior.freedom)
    mean = basis.unload(missed.signals - missed.errors + carried)
    std = units.restore_scale(non_negative_root(variances))
    return LeaveOneOut("signal", units.restore(mean), std, units.log_density(log_density, n_nodes))


def _groups(posterior: Posterior, by: By) -> LeaveOneOut:
    """Whole signals or nodes, by blocks of the inverse covariance of the observed values: equation (23)."""
    known, units, by_node = posterior.observations(), posterior.signals.units, by == "node"

    def turned(array: Any) -> Any:
        return np.swapaxes(array, -1, -2) if by_node else array

    mean, variance = turned(known.mean).copy(), turned(known.variance).copy()
    solution, deviations, solved = (turned(one) for one in (known.solution, known.deviations, known.solved_deviations))
    lengths, logs, counts = np.zeros(len(mean)), np.zeros(len(mean)), np.zeros(len(mean), dtype=int)
    groups = map(known.node_group, range(len(mean))) if by_node else known.groups(range(len(mean)))
    for number, (own, (values, axes)) in enumerate(zip(turned(known.observed), groups, strict=True)):
        if not own.any():
            continue
        rotated = axes.T @ solution[number, own]
        missed = axes @ (rotated / values)
        mean[number, own] -= missed
        variance[number, own] = np.square(axes) @ (1 / values)
        if not own.all():  # missing values follow observed ones by the deviations of the completion
            across = deviations[:, number, ~own].T @ solved[:, number, own]
            mean[number, ~own] += across @ missed
            variance[number, ~own] += np.square(across @ axes) @ (1 / values)
        lengths[number], logs[number] = np.sum(rotated**2 / values), -np.sum(np.log(values))
        counts[number] = np.count_nonzero(own)
    densities = t_log_density(lengths, logs, counts, np.inf if by_node else posterior.prior.freedom)
    densities = np.where(counts > 0, densities - units.log_volume(known.observed, axis=0 if by_node else 1), np.nan)
    std = units.restore_scale(np.sqrt(turned(variance)))
    return LeaveOneOut(by, units.restore(turned(mean) + posterior.carried_values), std, densities)


def _entries(posterior: Posterior) -> LeaveOneOut:
    """Single entries, by the diagonal of the inverse covariance of the observed values."""
    known, units, freedom = posterior.observations(), posterior.signals.units, posterior.prior.freedom
    field, observed = posterior.completion(), known.observed
    level = None if posterior.prior.scale_freedom is None else field.levels
    solution, precisions, missing = known.solution, known.precisions, known.variance
    if level is not None:
        solution, precisions = level.solution, precisions - np.sum(np.square(level.precision_factors), axis=0)
        missing = missing + np.sum(np.square(level.value_factors), axis=0)
    missed = np.where(observed, solution / precisions, 0.0)
    if posterior.entries is None and posterior.signals.centred_by == "node" and len(missed) > 1:
        sums = with_entries(posterior.covariance).row_sums()
        missed = missed + sums / precisions * known.values / (len(missed) - 1)
    variance, freedoms = np.where(observed, 1 / precisions, missing), np.full((len(missed), 1), freedom)
    if np.isfinite(freedom):  # a t given the rest of its signal: equation (17)
        counts, least = observed.sum(axis=1), 0.0
        if level is not None:
            (lengths, _, counts), least = field.lengths(np.arange(len(missed))), 2 - freedom
        elif posterior.entries is None:
            lengths = posterior.covariance.left_out(posterior.block, posterior.signals, False, False).lengths
        else:
            lengths = known.lengths(range(len(missed)))[0]
        rest = lengths[:, None] - np.where(observed, missed**2 / variance, 0.0)
        others = counts[:, None] - observed
        variance = variance * (freedom - 2 + np.maximum(rest, least)) / (freedom - 2 + others)
        freedoms = freedom + others
    logs = np.where(observed, t_log_density(missed**2 / variance, np.log(variance), 1, freedoms), np.nan)
    mean = units.restore(known.mean - missed + posterior.carried_values)
    return LeaveOneOut("entry", mean, units.restore_scale(np.sqrt(variance)), logs - np.log(units.divisor))
