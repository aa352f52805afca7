"""Leave-one-out predictions in closed form, for every signal, node or entry at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from spectralgp._arrays import non_negative_root
from spectralgp._checks import Array, as_option
from spectralgp.posterior import AnyPosterior, ChebyshevPosterior, Posterior
from spectralgp.spectrum import filter_columns

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


def leave_one_out(posterior: AnyPosterior, by: By = "signal") -> LeaveOneOut:
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
    if isinstance(posterior, ChebyshevPosterior):
        return _on_quadrature(posterior, by)
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


def _on_quadrature(posterior: ChebyshevPosterior, by: By) -> LeaveOneOut:
    """Leave out whole signals on a large graph: densities by quadrature, means by filters, deviations by probes."""
    if by != "signal":
        raise ValueError(
            f"by must be 'signal' on a large graph, where single nodes have no closed form; got {by!r}. "
            "Use spectrum='exact' where the graph is small enough."
        )
    vectors, spectrum = posterior.input_modes.vectors, posterior.spectrum
    squared = np.square(vectors)
    variances = posterior.variances(posterior.power(spectrum.eigenvalues))
    precision = squared @ (1 / variances)
    matrices = spectrum.read(posterior.signals).rotate(vectors).matrices
    weighted = np.einsum("ni,iq,qik,kq,nk->nq", vectors, 1 / variances, matrices, 1 / variances, vectors, optimize=True)
    log_density = 0.5 * (
        np.log(precision / (2 * np.pi)) @ spectrum.multiplicities - np.sum(weighted / precision, axis=1)
    )

    def missing(power: Array) -> Array:
        """``U_ni / (D_i s_n)``: what turns signals into the part of each that the others do not predict."""
        inverse = 1 / posterior.variances(power)
        return vectors[:, :, None] * inverse / (squared @ inverse)[:, None, :]

    coefficients = np.einsum("ai,nik->kan", vectors, posterior.series(missing), optimize=True)
    columns = posterior.signals.columns(spectrum.laplacian)
    mean = posterior.operator.unload(columns - filter_columns(posterior.operator, columns, coefficients))
    variance, _ = posterior.diagonals(posterior.series(lambda power: 1 / (squared @ (1 / posterior.variances(power)))))
    return LeaveOneOut(by, mean, non_negative_root(variance), log_density)


def _log_density(values: Array, mean: Array, variance: Array) -> Array:
    return -0.5 * ((values - mean) ** 2 / variance + np.log(2 * np.pi * variance))
