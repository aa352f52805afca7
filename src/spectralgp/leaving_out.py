"""Leave-one-out predictions in closed form, for every signal, node or entry at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import logsumexp

from spectralgp._arrays import non_negative_root
from spectralgp._checks import Array, as_option
from spectralgp.masked import Completion, EigenCovariance
from spectralgp.mixture import Mixture
from spectralgp.posterior import Posterior
from spectralgp.spectrum import FilterBank, Filters, FilterSum

By = Literal["signal", "node", "entry"]

NO_NODES = (
    "by must be 'signal' on a large graph, where single nodes have no closed form; got {by!r}. "
    "Use spectrum='exact' where the graph is small enough."
)

NO_HOLES = (
    "by={by!r} must be left alone on a large graph where signals have holes: it has no closed form there; got such a "
    "model. Hold signals out with scikit-learn's cross-validation."
)
LEAST_LEFT = 1e-9  # of a precision, that rounding or draws leave where nothing is left


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

    Where the covariance of predictions is shrunk, a signal's own share is taken out of it: exactly where inputs explain
    nothing, else with its whitened error in place of its rows. Nodes and entries are left out of the graph's model,
    before shrinkage. What inputs carry over, and scales of the nodes, stay as learnt from all.

    Where training signals have holes, what was not observed has no density, and its mean and standard deviation are
    those given all that was left in. Nodes' means stay as they were found, and the model is Gaussian.

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
    if by == "signal" and posterior.completion is None:
        return _signals(posterior)
    if by == "node" and posterior.signals.is_centred_by_node:
        raise ValueError(
            "by must be 'signal' or 'entry' where each node was centred by its own mean, which nothing is known of "
            "once the node is left out; got 'node'. Fit with center='global'."
        )
    if posterior.completion is not None:
        return _with_holes(posterior, posterior.completion, by)
    return _nodes(posterior) if by == "node" else _entries(posterior)


def _signals(posterior: Posterior) -> LeaveOneOut:
    """Equation (10), on any spectrum: what the others do not predict of a signal is ``r_n / s_n``."""
    basis, units, vectors = posterior.basis, posterior.signals.units, posterior.input_modes.vectors
    squares, totals, n_signals = np.square(vectors), vectors.sum(axis=0), vectors.shape[0]
    carried = posterior.carried

    def variances(eigenvalues: Array) -> Array:
        return 1 / (squares @ posterior.precisions(eigenvalues))

    missed: Filters = FilterBank(posterior.precisions, vectors, variances)
    if posterior.signals.is_centred_by_node and n_signals > 1:
        # without signal n the mean of the others is less by y_n / (n - 1), and all else follows it but for this share
        def shares(eigenvalues: Array) -> Array:
            return (vectors * totals) @ posterior.precisions(eigenvalues) * variances(eigenvalues) / (n_signals - 1)

        missed = FilterSum((missed, FilterBank(np.ones_like, vectors, shares)))
    missing = basis.filtered(posterior.block, missed)
    data = basis.read_filtered(posterior.signals, vectors, missed) if carried is None else basis.read_block(missing)
    log_density = posterior.left_out_log_density(data, variances(basis.eigenvalues))
    mean = basis.unload(basis.combined(posterior.block, vectors) - missing + posterior.carried_block(posterior.inputs))
    std = units.std(non_negative_root(posterior.left_out_variances(missing, variances)))
    return LeaveOneOut("signal", units.mean(mean), std, units.log_density(log_density, basis.n_nodes))


def _nodes(posterior: Posterior) -> LeaveOneOut:
    """The same with the two sides exchanged: nodes take the place of signals."""
    rows, columns, coefficients, precisions = _matrices(posterior, "node")
    units, precision = posterior.signals.units, np.square(columns) @ precisions.T
    turned = columns @ coefficients.T  # nodes in rows, input modes in columns
    mean = turned - columns @ (coefficients * precisions).T / precision
    log_density = _log_density(turned - mean, 1 / precision).sum(axis=1)
    std = units.std(np.sqrt(np.square(rows) @ (1 / precision).T))
    mean = rows @ mean.T + _carried(posterior)
    return LeaveOneOut("node", units.mean(mean), std, units.log_densities(log_density, rows.shape[0]))


def _entries(posterior: Posterior) -> LeaveOneOut:
    """By the diagonal of the inverse covariance, ``(U o U)(1/D)(V o V)^T``."""
    rows, columns, coefficients, precisions = _matrices(posterior, "entry")
    units, n_signals = posterior.signals.units, rows.shape[0]
    precision = np.square(rows) @ precisions @ np.square(columns).T
    missed = rows @ (coefficients * precisions) @ columns.T / precision
    values = rows @ coefficients @ columns.T
    if posterior.signals.is_centred_by_node and n_signals > 1:
        shares = (rows * rows.sum(axis=0)) @ precisions @ np.square(columns).T / precision
        missed = missed + shares * values / (n_signals - 1)
    std = units.std(np.sqrt(1 / precision))
    log_density = units.log_densities(_log_density(missed, 1 / precision), 1)
    return LeaveOneOut("entry", units.mean(values - missed + _carried(posterior)), std, log_density)


def _with_holes(posterior: Posterior, completion: Completion, by: By) -> LeaveOneOut:
    """By blocks of the inverse covariance of what was observed, ``A^-1 - A^-1 C A^-1``: equation (22)."""
    complete, observed, units = completion.complete, completion.signals.observed, posterior.signals.units
    if not isinstance(complete, EigenCovariance):
        raise ValueError(NO_HOLES.format(by=by))
    deviations, solution = completion.deviations, completion.solution
    pulled = complete.solved(deviations)
    mean, variance = completion.mean - completion.carried, completion.variance.copy()
    logs = np.full(observed.shape, np.nan)
    precisions, basis, vectors = 1 / complete.variances, complete.dual, complete.vectors
    if by == "entry":
        own = np.square(vectors) @ precisions @ np.square(basis).T - np.sum(np.square(pulled), axis=0)
        own = np.maximum(own, LEAST_LEFT * complete.inverse_diagonal())
        missed = solution / own
        logs = np.where(observed, _log_density(missed, 1 / own), np.nan)
        mean, variance = np.where(observed, mean - missed, mean), np.where(observed, 1 / own, variance)
        log_density = units.log_densities(logs, 1)
    else:
        divisors = np.log(np.broadcast_to(units.divisor, observed.shape))
        totals = []
        for number in range(observed.shape[0 if by == "signal" else 1]):
            here: Any = (number, slice(None)) if by == "signal" else (slice(None), number)
            seen, sides = observed[here], basis if by == "signal" else vectors
            weights = (
                np.square(vectors[number]) @ precisions if by == "signal" else precisions @ np.square(basis[number])
            )
            rows, open_rows = sides[seen], pulled[:, *here][:, seen]
            values, axes = np.linalg.eigh((rows * weights) @ rows.T - open_rows.T @ open_rows)
            values = np.maximum(values, LEAST_LEFT * np.max(values, initial=0.0))
            turned = axes.T @ solution[here][seen]
            missed = axes @ (turned / values)
            across = deviations[:, *here][:, ~seen].T @ open_rows
            mean[here] = np.where(
                seen, mean[here] - _spread_out(missed, seen), mean[here] + _spread_out(across @ missed, ~seen)
            )
            inverse = (axes / values) @ axes.T
            further = np.sum((across @ inverse) * across, axis=1)
            variance[here] = _spread_out(np.diag(inverse), seen) + np.where(seen, 0.0, variance[here])
            variance[here] += _spread_out(further, ~seen)
            quadratic = (
                float(np.sum(turned**2 / values)) - float(np.sum(np.log(values))) + seen.sum() * np.log(2 * np.pi)
            )
            totals.append(-0.5 * quadratic - float(np.sum(divisors[here], where=seen)) if seen.any() else np.nan)
        log_density = np.array(totals)
    return LeaveOneOut(by, units.mean(mean + completion.carried), units.std(np.sqrt(variance)), log_density)


def _spread_out(values: Array, chosen: Any) -> Array:
    """Values at the chosen places, and zero elsewhere."""
    whole = np.zeros(chosen.size)
    whole[chosen] = values
    return whole


def _carried(posterior: Posterior) -> Any:
    """What the training inputs carry over to the nodes."""
    block = posterior.carried_block(posterior.inputs)
    return block if posterior.carried is None else posterior.basis.unload(block)


def _matrices(posterior: Posterior, by: By) -> tuple[Array, Array, Array, Array]:
    """Input vectors, eigenvectors, ``Z`` and ``1 / D``."""
    basis = posterior.basis
    columns = basis.require_eigenvectors(NO_NODES.format(by=by))
    return posterior.input_modes.vectors, columns, posterior.block, posterior.precisions(basis.eigenvalues)


def _log_density(residuals: Array, variances: Array) -> Array:
    return -0.5 * (residuals**2 / variances + np.log(2 * np.pi * variances))
