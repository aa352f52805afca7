"""Adjacency matrices of correlations between nodes that inputs do not explain."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from spectralgp._basics.checks import Array, as_integer

RIDGES = np.logspace(-2, 5, 15)  # penalties for standardised inputs, of which generalised cross-validation chooses
N_FOLDS, FEWEST_SIGNALS = 5, 4
MOST_CORRELATED = 5_000  # nodes of a dense matrix of correlations


def weights_from_signals(signals: Array, inputs: Array | None, n_neighbors: int) -> Any:
    """Return the weights of `Graph.from_signals`: equation (47)."""
    from sklearn.covariance import ledoit_wolf_shrinkage
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    n_signals, n_nodes = signals.shape
    if n_signals < FEWEST_SIGNALS or not 2 <= n_nodes <= MOST_CORRELATED:
        raise ValueError(
            f"Y must have at least {FEWEST_SIGNALS} rows, and 2 to {MOST_CORRELATED:,} columns, for correlations "
            f"between its columns; got {signals.shape}. Rows are signals: did you pass the transpose?"
        )
    n_neighbors, observed = as_integer(n_neighbors, "n_neighbors", 1, n_nodes - 1), np.isfinite(signals)
    counts = np.maximum(observed.sum(axis=0), 1)
    centred = np.where(observed, signals - np.sum(signals, axis=0, where=observed) / counts, 0.0)
    left = centred.copy()
    if inputs is not None and inputs.shape[1]:
        folds = np.arange(n_signals) % N_FOLDS
        for kept, held_out in ((folds != fold, folds == fold) for fold in range(N_FOLDS)):
            ridge = make_pipeline(StandardScaler(), RidgeCV(RIDGES)).fit(inputs[kept], centred[kept])
            left[held_out] -= ridge.predict(inputs[held_out])
        left[~observed] = 0.0
    sizes = np.sqrt(np.sum(np.square(left), axis=0) / counts)
    left = np.divide(left, sizes, out=np.zeros_like(left), where=sizes > 0)
    pairs = np.maximum(observed.T.astype(float) @ observed, 1)  # signals in which both were observed
    shrinkage = ledoit_wolf_shrinkage(left, assume_centered=True) if left.any() else 1.0
    weights = np.clip((1 - shrinkage) * (left.T @ left) / pairs, 0.0, 1.0)
    weights = (weights + weights.T) / 2
    np.fill_diagonal(weights, 0.0)
    strongest = np.argsort(np.argsort(-weights, axis=1, kind="stable"), axis=1) < n_neighbors
    return csr_array(np.where(strongest | strongest.T, weights, 0.0))
