"""Leave-one-out predictions in closed form, for every signal, node or entry at once."""

from __future__ import annotations

import copy
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
    """By blocks of the inverse covariance of what was observed: equation (22)."""
    complete, observed, units = completion.complete, completion.signals.observed, posterior.signals.units
    if not isinstance(complete, EigenCovariance):
        raise ValueError(NO_HOLES.format(by=by))
    holes = _Holes(completion, complete)
    if by == "entry":
        mean, variance, logs = holes.entries()
        log_density = units.log_densities(logs, 1)
    else:
        # a signal's nodes, or a node's signals: the one way round or the other
        turned = holes if by == "signal" else holes.transposed()
        found = [turned.group(number) for number in range(len(turned.observed))]
        mean, variance = (np.stack([one[place] for one in found]) for place in (0, 1))
        mean, variance = (mean, variance) if by == "signal" else (mean.T, variance.T)
        volumes = units.log_volume(observed, axis=1 if by == "signal" else 0)
        log_density = np.array([one[2] for one in found]) - volumes
    return LeaveOneOut(by, units.mean(mean + completion.carried), units.std(np.sqrt(variance)), log_density)


class _Holes:
    """Signals with holes about their mean, completed, with all that leaving parts of them out takes."""

    def __init__(self, completion: Completion, complete: EigenCovariance) -> None:
        self.observed, self.solution = completion.signals.observed, completion.solution
        self.mean, self.variance = completion.mean - completion.carried, completion.variance
        self.deviations, self.pulled = completion.deviations, completion.pulled
        self.rows, self.columns, self.precisions = complete.vectors, complete.dual, complete.precisions
        self.inverse_diagonal = complete.inverse_diagonal

    def transposed(self) -> _Holes:
        """With nodes for signals and signals for nodes."""
        other = copy.copy(self)
        for name in ("observed", "solution", "mean", "variance", "precisions"):
            setattr(other, name, getattr(self, name).T)
        other.deviations, other.pulled = (one.transpose(0, 2, 1) for one in (self.deviations, self.pulled))
        other.rows, other.columns = self.columns, self.rows
        return other

    def entries(self) -> tuple[Array, Array, Array]:
        """Mean, variance and log density of each entry alone."""
        known = self.inverse_diagonal
        own = np.maximum(known - np.sum(np.square(self.pulled), axis=0), LEAST_LEFT * known)
        missed = self.solution / own
        logs = np.where(self.observed, _log_density(missed, 1 / own), np.nan)
        return self.mean - missed, np.where(self.observed, 1 / own, self.variance), logs

    def group(self, number: int) -> tuple[Array, Array, float]:
        """Mean and variance of all values of a signal, and the log density of those observed of it."""
        seen, columns, pulled = self.observed[number], self.columns, self.pulled[:, number]
        weights = np.square(self.rows[number]) @ self.precisions
        block = (columns[seen] * weights) @ columns[seen].T - pulled[:, seen].T @ pulled[:, seen]
        values, axes = np.linalg.eigh(block)
        values = np.maximum(values, LEAST_LEFT * np.max(values, initial=0.0))
        turned = axes.T @ self.solution[number, seen]
        missed, roots = axes @ (turned / values), axes / np.sqrt(values)
        # what is missing follows what was observed by way of what the completion leaves open
        across = self.deviations[:, number, ~seen].T @ pulled[:, seen]
        mean, variance = self.mean[number].copy(), self.variance[number].copy()
        mean[seen] -= missed
        mean[~seen] += across @ missed
        variance[seen] = np.sum(np.square(roots), axis=1)
        variance[~seen] += np.sum(np.square(across @ roots), axis=1)
        if not seen.any():
            return mean, variance, np.nan
        logs = float(np.sum(np.log(2 * np.pi / values)))
        return mean, variance, -0.5 * (float(np.sum(turned**2 / values)) + logs)


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
