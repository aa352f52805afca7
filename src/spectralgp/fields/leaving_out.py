"""Leave-one-out predictions in closed form, for every signal, node or entry at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import logsumexp

from spectralgp._basics.arrays import non_negative_root
from spectralgp._basics.checks import Array, as_option
from spectralgp.fields.conditioning import Mixture, Posterior
from spectralgp.fields.covariances import Modal
from spectralgp.fields.laws import t_log_density
from spectralgp.fields.seen import Seen

By = Literal["signal", "node", "entry"]

NO_NODES = (
    "by must be 'signal' on a large graph, where single nodes have no closed form; got {by!r}. "
    "Use spectrum='exact' where the graph is small enough."
)
NO_HOLES = (
    "by={by!r} must be left alone on a large graph where signals have holes: it has no closed form there; got such a "
    "model. Hold signals out with scikit-learn's cross-validation."
)


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Predictions of what was left out, given everything else and the same hyperparameters.

    Parameters
    ----------
    by : {"signal", "node", "entry"}
        What was left out at a time.
    mean : array of shape (n_signals, n_nodes)
        Predicted values.
    std : array of shape (n_signals, n_nodes)
        Standard deviation of the observed (noisy) value at each entry.
    log_density : ndarray
        Joint log predictive density of what was left out: shape (n_signals,) by signal, (n_nodes,) by node,
        (n_signals, n_nodes) by entry.
    """

    by: By
    mean: Any
    std: Any
    log_density: Array


def leave_one_out(posterior: Posterior | Mixture, by: By = "signal") -> LeaveOneOut:
    """Leave out each signal, node or entry in turn, at the cost of one prediction: equation (10).

    The hyperparameters stay those learnt from all data, so this checks calibration; it does not see overfitting of
    the hyperparameters and must not be used to choose a degree. Where signals were centred by node, what is left out is
    left out of the nodes' means too.

    Where the covariance between frequencies was learnt, a whole signal's share is taken out of it, with its whitened
    error in place of its rows; single nodes and entries are left out with that covariance as it is, and nodes with a
    normal law. What inputs carry over, and scales of the nodes, stay as learnt from all.

    Where training signals have holes, what was not observed has no density, and its mean and standard deviation are
    those given all that was left in. Nodes' means stay as they were found.

    Parameters
    ----------
    posterior : Posterior or Mixture
        A conditioned model; the weights of a mixture are held fixed.
    by : {"signal", "node", "entry"}, default="signal"
        Leave out whole signals, whole nodes, or single entries.
    """
    as_option(by, "by", ("signal", "node", "entry"))
    if not isinstance(posterior, Posterior | Mixture):
        raise TypeError(
            f"posterior must be a Posterior; got {type(posterior).__name__}. Pass what condition(...) returns; a "
            "fitted GraphGPRegressor has a leave_one_out of its own."
        )
    weights, parts = zip(
        *((weight, _left_out(part, by)) for weight, part in posterior.parts if weight > 0), strict=True
    )
    if len(parts) == 1:
        return parts[0]
    mean: Any = sum(weight * part.mean for weight, part in zip(weights, parts, strict=True))
    variance: Any = sum(
        weight * (part.std**2 + (part.mean - mean) ** 2) for weight, part in zip(weights, parts, strict=True)
    )
    logs = [np.log(weight) + part.log_density for weight, part in zip(weights, parts, strict=True)]
    return LeaveOneOut(by, mean, non_negative_root(variance), np.asarray(logsumexp(logs, axis=0)))


def _left_out(posterior: Posterior, by: By) -> LeaveOneOut:
    if by == "signal" and posterior.seen is None:
        return _signals(posterior)
    if by == "node" and posterior.signals.is_centred_by_node:
        raise ValueError(
            "by must be 'signal' or 'entry' where each node was centred by its own mean, which nothing is known of "
            "once the node is left out; got 'node'. Fit with center='global'."
        )
    covariance = posterior.covariance
    if posterior.seen is not None:
        if not covariance.is_written_out:
            raise ValueError(NO_HOLES.format(by=by))
        return _with_holes(posterior, posterior.seen, by)
    posterior.basis.require_eigenvectors(NO_NODES.format(by=by))
    assert isinstance(covariance, Modal)
    return _nodes(posterior, covariance) if by == "node" else _entries(posterior, covariance)


def _signals(posterior: Posterior) -> LeaveOneOut:
    """Equation (10), on any spectrum: what the others do not predict of a signal is ``r_n / s_n``."""
    covariance, units, shrinkage = posterior.covariance, posterior.signals.units, posterior.prior.shrinkage
    shares = posterior.signals.is_centred_by_node and covariance.shape[0] > 1
    carried = posterior.carried_block(posterior.inputs)
    missed = covariance.left_out(posterior.block, posterior.signals, shares, posterior.carried is None)
    lengths, logs, (variances, _) = missed.lengths, missed.logs, missed.variances()
    basis, n_nodes = posterior.basis, covariance.shape[1]
    if shrinkage is not None:
        # a signal's own share in the covariance is its error, node by node
        errors = np.square(basis.unload(missed.errors))
        least = shrinkage.worth / shrinkage.total * variances
        variances = np.maximum((shrinkage.total * variances - errors) / (shrinkage.total - 1), least)
        lengths, further = shrinkage.left_out(lengths)
        logs = logs + further
    log_density = t_log_density(lengths, logs, n_nodes, posterior.prior.freedom)
    mean = basis.unload(missed.signals - missed.errors + carried)
    std = units.std(non_negative_root(variances))
    return LeaveOneOut("signal", units.mean(mean), std, units.log_density(log_density, n_nodes))


def _nodes(posterior: Posterior, covariance: Modal) -> LeaveOneOut:
    """Nodes take the place of signals: the values of one have the precision ``sum_j B^-T_mj^2 C_j^-1``."""
    units, rows, powers = posterior.signals.units, covariance.rows, covariance.powers
    solution, values = _solution(posterior, covariance)
    dual = covariance.dual
    missed, variances, logs = np.empty(values.shape), np.empty(values.shape), np.empty(values.shape[1])
    for node in range(values.shape[1]):
        modes = rows.weighted_inverse(np.square(dual[node]), *powers)
        turned = modes.vectors.T @ solution[:, node]
        missed[:, node] = modes.vectors @ (turned / modes.values)
        variances[:, node] = np.square(modes.vectors) @ (1 / modes.values)
        logs[node] = -0.5 * np.sum(turned**2 / modes.values + np.log(2 * np.pi / modes.values))
    mean = units.mean(values - missed + _carried(posterior))
    return LeaveOneOut("node", mean, units.std(np.sqrt(variances)), units.log_densities(logs, values.shape[0]))


def _entries(posterior: Posterior, covariance: Modal) -> LeaveOneOut:
    """By the diagonal of the inverse covariance."""
    units, (n_signals, n_nodes) = posterior.signals.units, covariance.shape
    solution, values = _solution(posterior, covariance)
    precision = covariance.inverse_diagonal()
    missed = solution / precision
    if posterior.signals.is_centred_by_node and n_signals > 1:
        missed = missed + covariance.row_sums() / precision * values / (n_signals - 1)
    variance, freedom = 1 / precision, posterior.prior.freedom
    if np.isfinite(freedom):  # a t given the rest of its signal: equation (25)
        lengths = covariance.left_out(posterior.block, posterior.signals, False, False).lengths[:, None]
        rest = np.maximum(lengths - missed**2 / variance, 0.0)
        variance = variance * (freedom - 2 + rest) / (freedom + n_nodes - 3)
        freedom = freedom + n_nodes - 1
    logs = t_log_density(missed**2 / variance, np.log(variance), 1, freedom)
    mean = units.mean(values - missed + _carried(posterior))
    return LeaveOneOut("entry", mean, units.std(np.sqrt(variance)), units.log_densities(logs, 1))


def _solution(posterior: Posterior, covariance: Modal) -> tuple[Array, Array]:
    """``C^-1 y``, and the values about what is carried over, both over signals and nodes."""
    rows, basis = covariance.rows, covariance.basis
    solved = rows.unload(rows.solve(posterior.block, *covariance.powers))
    solution = solved if basis.backward is None else solved @ basis.backward.T
    return solution, basis.unload(rows.unload(posterior.block))


def _with_holes(posterior: Posterior, seen: Seen, by: By) -> LeaveOneOut:
    """By blocks of the inverse covariance of what was observed: equation (22)."""
    units, freedom = posterior.signals.units, posterior.prior.freedom
    carried = _carried(posterior)
    if by == "node":
        mean, variance, (lengths, determinants, counts) = _groups(seen, by_node=True)
        densities = t_log_density(lengths, determinants, counts, np.inf)
        densities = np.where(counts > 0, densities - units.log_volume(seen.observed, axis=0), np.nan)
        return LeaveOneOut(by, units.mean(mean + carried), units.std(np.sqrt(variance)), densities)
    mean, variance, (lengths, determinants, counts) = _groups(seen, by_node=False)
    if by == "signal":
        densities = t_log_density(lengths, determinants, counts, freedom)
        densities = np.where(counts > 0, densities - units.log_volume(seen.observed, axis=1), np.nan)
        return LeaveOneOut(by, units.mean(mean + carried), units.std(np.sqrt(variance)), densities)
    missed = np.where(seen.observed, seen.solution / seen.precisions, 0.0)
    variance, freedoms = np.where(seen.observed, 1 / seen.precisions, seen.variance), np.full((len(counts), 1), freedom)
    if np.isfinite(freedom):
        rest = np.where(seen.observed, lengths[:, None] - missed**2 / variance, lengths[:, None])
        others = counts[:, None] - seen.observed
        variance = variance * (freedom - 2 + np.maximum(rest, 0.0)) / (freedom - 2 + others)
        freedoms = freedom + others
    logs = np.where(seen.observed, t_log_density(missed**2 / variance, np.log(variance), 1, freedoms), np.nan)
    mean = units.mean(seen.mean - missed + carried)
    return LeaveOneOut(by, mean, units.std(np.sqrt(variance)), units.log_densities(logs, 1))


def _groups(seen: Seen, by_node: bool) -> tuple[Array, Array, tuple[Array, Array, Array]]:
    """Mean and variance of every value given all other signals, or all other nodes.

    With the squared lengths, log determinants and numbers of what was observed of each.
    """
    turned = seen.observed.T if by_node else seen.observed
    mean, variance = (one.T.copy() if by_node else one.copy() for one in (seen.mean, seen.variance))
    solution = seen.solution.T if by_node else seen.solution
    deviations = seen.deviations.transpose(0, 2, 1) if by_node else seen.deviations
    pulled = seen.pulled.transpose(0, 2, 1) if by_node else seen.pulled
    found = []
    for number, own in enumerate(turned):
        if not own.any():
            found.append((0.0, 0.0, 0))
            continue
        values, axes = seen.node_group(number) if by_node else seen.group(number)
        rotated = axes.T @ solution[number, own]
        missed, roots = axes @ (rotated / values), axes / np.sqrt(values)
        # what is missing follows what was observed by way of what the completion leaves open
        across = deviations[:, number, ~own].T @ pulled[:, number, own]
        mean[number, own] -= missed
        mean[number, ~own] += across @ missed
        variance[number, own] = np.sum(np.square(roots), axis=1)
        variance[number, ~own] += np.sum(np.square(across @ roots), axis=1)
        found.append((float(np.sum(rotated**2 / values)), -float(np.sum(np.log(values))), int(own.sum())))
    lengths, logs, counts = (np.array(one) for one in zip(*found, strict=True))
    return (mean.T, variance.T, (lengths, logs, counts)) if by_node else (mean, variance, (lengths, logs, counts))


def _carried(posterior: Posterior) -> Any:
    """What the training inputs carry over to the nodes."""
    block = posterior.carried_block(posterior.inputs)
    return block if posterior.carried is None else posterior.basis.unload(block)
