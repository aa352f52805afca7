"""Forecasts of series by what people use instead, for `bench_time.py`: means, deviations and joint densities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.covariance import ledoit_wolf

Array = np.ndarray
LAGS = 3  # rows that VAR regresses on
WAVES = 4  # harmonics of each season that it gets
PENALTIES = np.geomspace(0.1, 1e5, 19)


@dataclass(frozen=True)
class Forecasts:
    """Of the rows some steps after each origin, by horizon."""

    mean: dict[int, Array]  # (n_origins, n_nodes)
    std: dict[int, Array]
    density: dict[int, Array]  # (n_origins,), joint, in nats; none for what has no joint law


def simple(values: Array, n_train: int, origins: Array, horizons: list[int], season: int | None) -> Forecasts:
    """The last row, or the one a season before, with the deviations of such differences."""
    mean, std = {}, {}
    for horizon in horizons:
        lag = horizon if season is None else season * -(-horizon // season)
        changes = values[lag:n_train] - values[: n_train - lag]
        mean[horizon] = values[origins + horizon - lag]
        std[horizon] = np.broadcast_to(np.sqrt(np.mean(changes**2, axis=0)), mean[horizon].shape)
    return Forecasts(mean, std, {})


def var_ridge(
    values: Array, n_train: int, origins: Array, horizons: list[int], seasons: tuple[float, ...]
) -> Forecasts:
    """Ridge regression on the last rows of all nodes and waves of the seasons, for each horizon by itself.

    The penalty has the least error in the last fifth of the training rows, whose errors give deviations and, by Ledoit
    and Wolf, the covariance of the nodes.
    """
    centre, scale = values[:n_train].mean(axis=0), values[:n_train].std(axis=0)
    scaled = (values - centre) / scale
    n_steps, n_nodes = scaled.shape
    mean, std, density = {}, {}, {}
    at = np.arange(LAGS - 1, n_steps)
    rows = np.hstack([scaled[at - lag] for lag in range(LAGS)])
    for horizon in horizons:
        angles = [2 * np.pi * k * (at + horizon)[:, None] / period for period in seasons for k in range(1, WAVES + 1)]
        columns = np.hstack([rows, *(wave(angle) for angle in angles for wave in (np.sin, np.cos))])
        known = at + horizon < n_train
        design, target = columns[known], scaled[at[known] + horizon]
        cut = int(0.8 * len(design))
        precisions, vectors = np.linalg.eigh(design[:cut].T @ design[:cut])
        rotated, later = vectors.T @ (design[:cut].T @ target[:cut]), design[cut:] @ vectors
        errors = [target[cut:] - later @ (rotated / (precisions + penalty)[:, None]) for penalty in PENALTIES]
        best = int(np.argmin([np.mean(error**2) for error in errors]))
        gram = design.T @ design + PENALTIES[best] * np.eye(design.shape[1])
        forecast = columns[origins - LAGS + 1] @ np.linalg.solve(gram, design.T @ target)
        left = errors[best]
        mean[horizon] = forecast * scale + centre
        std[horizon] = np.broadcast_to(np.sqrt(np.mean(left**2, axis=0)) * scale, forecast.shape)
        lower = np.linalg.cholesky(ledoit_wolf(left, assume_centered=True)[0])
        white = solve_triangular(lower, (scaled[origins + horizon] - forecast).T, lower=True)
        constant = np.sum(np.log(np.diag(lower))) + np.sum(np.log(scale)) + 0.5 * n_nodes * np.log(2 * np.pi)
        density[horizon] = -0.5 * np.sum(white**2, axis=0) - constant
    return Forecasts(mean, std, density)
