"""Leave-one-out predictions in closed form, for every signal, node or entry at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from spectralgp._checks import Array, as_option
from spectralgp.posterior import Posterior

By = Literal["signal", "node", "entry"]


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Predictions of what was left out, given everything else and the same hyperparameters.

    Parameters
    ----------
    by : {"signal", "node", "entry"}
        What was left out at a time.
    mean : ndarray of shape (n_signals, n_nodes)
        Predicted values.
    std : ndarray of shape (n_signals, n_nodes)
        Standard deviation of the observed (noisy) value at each entry.
    log_density : ndarray
        Joint log predictive density of what was left out: shape (n_signals,) by signal, (n_nodes,) by node,
        (n_signals, n_nodes) by entry.
    """

    by: By
    mean: Array
    std: Array
    log_density: Array


def leave_one_out(posterior: Posterior, by: By = "signal") -> LeaveOneOut:
    """Leave out each signal, node or entry in turn, at the cost of one prediction (section 4 of the design).

    The hyperparameters stay those learnt from all data, so this checks calibration; it does not see overfitting of
    the hyperparameters and must not be used to choose a degree.

    Parameters
    ----------
    posterior : Posterior
        A conditioned model.
    by : {"signal", "node", "entry"}, default="signal"
        Leave out whole signals, whole nodes, or single entries.
    """
    as_option(by, "by", ("signal", "node", "entry"))
    rows, columns = posterior.input_modes.vectors, posterior.prior.node_modes.vectors
    if by == "entry":
        return _entries(posterior, rows, columns)
    if by == "signal":
        mean, variance = _left_out(posterior.signals @ columns, posterior.rotated, posterior.variances, rows)
        log_density = _log_density(posterior.signals @ columns, mean, variance).sum(axis=1)
        std = np.sqrt(variance @ np.square(columns).T)
        return LeaveOneOut(by, mean @ columns.T, std, log_density)
    # the same with the two sides exchanged: nodes take the place of signals
    turned = (rows.T @ posterior.signals).T
    mean, variance = _left_out(turned, posterior.rotated.T, posterior.variances.T, columns)
    log_density = _log_density(turned, mean, variance).sum(axis=1)
    std = np.sqrt(np.square(rows) @ variance.T)
    return LeaveOneOut(by, rows @ mean.T, std, log_density)


def _left_out(observed: Array, rotated: Array, variances: Array, vectors: Array) -> tuple[Array, Array]:
    """Mean and variance of each row left out, column by column: equation (10).

    `observed` has the rows to leave out in rows and independent modes in columns.
    """
    weighted = vectors @ (rotated / variances)  # r_nj = [C_j^-1 y_j]_n
    precision = np.square(vectors) @ (1 / variances)  # s_nj = [C_j^-1]_nn
    return observed - weighted / precision, 1 / precision


def _entries(posterior: Posterior, rows: Array, columns: Array) -> LeaveOneOut:
    weighted = rows @ (posterior.rotated / posterior.variances) @ columns.T
    precision = np.square(rows) @ (1 / posterior.variances) @ np.square(columns).T
    mean, variance = posterior.signals - weighted / precision, 1 / precision
    return LeaveOneOut("entry", mean, np.sqrt(variance), _log_density(posterior.signals, mean, variance))


def _log_density(values: Array, mean: Array, variance: Array) -> Array:
    return -0.5 * ((values - mean) ** 2 / variance + np.log(2 * np.pi * variance))
