"""Weights of a mixture of models, from densities of signals that were held out."""

from __future__ import annotations

import numpy as np

from spectralgp._basics.checks import Array

NEGLIGIBLE = 1e-6  # weight


def stacking_weights(
    log_densities: Array,
    value_log_densities: Array | None = None,
    n_iterations: int = 10_000,
    tolerance: float = 1e-10,
    negligible: float = NEGLIGIBLE,
    value_weight: float = 1.0,
) -> Array:
    """Weights of a mixture that maximise the held-out log score ``sum_n log sum_k w_k p_nk``.

    With densities of single values the score is the sum of both: a signal's density rewards what a model knows of the
    covariance of the nodes, those of its values reward what it knows of each, its mean above all.

    Weights below `negligible` are set to zero, so that their models need not be evaluated. The score is concave in the
    weights; expectation maximisation climbs it without a step size and keeps them on the simplex.

    Parameters
    ----------
    log_densities : ndarray of shape (n_signals, n_models)
        Held-out log density of each signal under each model.
    value_log_densities : ndarray of shape (n_signals, n_nodes, n_models), optional
        The same of each value.
    n_iterations : int, default=10000
        Most iterations.
    tolerance : float, default=1e-10
        Largest change of a weight at which to stop.
    negligible : float, default=1e-6
        Weight that counts as none.
    value_weight : float, default=1.0
        Weight of the densities of values in the score.

    Examples
    --------
    >>> import numpy as np
    >>> stacking_weights(np.log([[0.9, 0.1], [0.8, 0.2]])).round(3).tolist()
    [1.0, 0.0]
    """
    counts = np.ones(len(log_densities))
    if value_log_densities is not None:
        values = value_log_densities.reshape(-1, log_densities.shape[1])
        log_densities = np.vstack([log_densities, values])
        counts = np.concatenate([counts, np.full(len(values), value_weight)])
    counts /= counts.sum()
    scaled = np.exp(log_densities - log_densities.max(axis=1, keepdims=True))
    weights = np.full(log_densities.shape[1], 1 / log_densities.shape[1])
    for _ in range(n_iterations):
        shares = weights * scaled
        updated = counts @ (shares / shares.sum(axis=1, keepdims=True))
        change = np.max(np.abs(updated - weights))
        weights = updated
        if change < tolerance:
            break
    kept = np.where(weights >= min(negligible, float(np.max(weights))), weights, 0.0)
    return kept / kept.sum()
