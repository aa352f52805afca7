"""Imputation methods that `bench_missing.py` compares: imputed values and standard deviations of incomplete signals.

Methods that give values only get deviations from entries hidden from them: see `with_deviations`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import _reporting  # noqa: F401  it puts the tests' settings on the path
import numpy as np
from scipy.optimize import minimize
from settings import PAPER, paper_kernel
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.impute import IterativeImputer, KNNImputer

from spectralgp import Graph, GraphGPRegressor, Polynomial
from spectralgp.learning.baselines import (
    Imputed,
    Values,
    deviations,
    for_seen_nodes,
    graph_neighbours,
    iterative,
    residuals,
    signal_means,
    with_deviations,
)

Array = np.ndarray
NEIGHBOURS = (2, 3, 5, 8, 12)
N_COMPLETIONS = 20  # that the iterative imputer draws
N_DAYS_LEARNT = 12  # of the kriging
N_ENTRIES_LEARNT = 600  # of the GP in space and time
FAR, SCALES = 1e6, (0.05, 1e3)  # length scales, in degrees or in units of the input
UNKNOWN = 1e3  # variance of the constant that ordinary kriging does not know, in the variance of the signals


@dataclass(frozen=True)
class Imputer:
    """An imputation method: its name, its description, and a function of graph, inputs and incomplete signals."""

    name: str
    words: str
    fill: Callable[[Graph, Array, Array], Imputed]


def default(graph: Graph, inputs: Array, incomplete: Array) -> Imputed:
    return GraphGPRegressor(graph).fit(inputs, incomplete).impute(inputs, incomplete)


def paper(graph: Graph, inputs: Array, incomplete: Array) -> Imputed:
    model = GraphGPRegressor(graph, Polynomial(5), paper_kernel(inputs), **PAPER)
    return model.fit(inputs, incomplete).impute(inputs, incomplete)


def station_means(graph: Graph, inputs: Array, incomplete: Array) -> Array:
    return np.where(np.isnan(incomplete), np.nanmean(incomplete, axis=0), incomplete)


def interpolation(graph: Graph, inputs: Array, incomplete: Array) -> Array:
    times = inputs[:, 0]
    columns = []
    for column in incomplete.T:
        here = ~np.isnan(column)
        columns.append(np.interp(times, times[here], column[here]))
    return np.column_stack(columns)


def knn_of_days(n_neighbors: int, graph: Graph, inputs: Array, incomplete: Array) -> Array:
    return KNNImputer(n_neighbors=n_neighbors, weights="distance").fit_transform(incomplete)


def knn_of_stations(n_neighbors: int, graph: Graph, inputs: Array, incomplete: Array) -> Array:
    """Neighbours among nodes, by their signals above their means."""
    means = np.nanmean(incomplete, axis=0)
    return KNNImputer(n_neighbors=n_neighbors, weights="distance").fit_transform((incomplete - means).T).T + means


KNN = tuple(partial(one, k) for one in (knn_of_days, knn_of_stations) for k in NEIGHBOURS)


def regressed(inputs: Array, incomplete: Array, seed: int) -> Array:
    """Each node drawn from its regression on the others and the inputs, in turn, three times."""
    imputer = IterativeImputer(max_iter=3, sample_posterior=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it always runs its rounds to the end
        return imputer.fit_transform(np.hstack([inputs, incomplete]))[:, inputs.shape[1] :]


def iterative_draws(graph: Graph, inputs: Array, incomplete: Array) -> Imputed:
    """Mean and deviation of completions drawn from the regressions; Rubin's rule adds the error of the mean."""
    completed = signal_means(graph, inputs, incomplete)
    std = np.broadcast_to(deviations(residuals(signal_means, graph, inputs, incomplete)), incomplete.shape).copy()
    known = ~np.isnan(incomplete).all(axis=0)
    if np.isnan(incomplete[:, known]).any():
        drawn = [regressed(inputs, incomplete[:, known], seed) for seed in range(N_COMPLETIONS)]
        completed[:, known] = np.mean(drawn, axis=0)
        std[:, known] = np.std(drawn, axis=0, ddof=1) * np.sqrt(1 + 1 / N_COMPLETIONS)
    return np.where(np.isnan(incomplete), completed, incomplete), std


def places(graph: Graph) -> Array:
    """Coordinates in units of a degree of latitude, from longitude and latitude."""
    longitude, latitude = np.asarray(graph.coordinates).T
    return np.column_stack([longitude * np.cos(np.deg2rad(latitude.mean())), latitude])


def pooled_process(kernel: object, samples: Sequence[tuple[Array, Array]]) -> object:
    """The kernel with the hyperparameters that are best for several samples at once."""
    processes = [GaussianProcessRegressor(kernel, optimizer=None).fit(*sample) for sample in samples]

    def objective(theta: Array) -> tuple[float, Array]:
        found = [one.log_marginal_likelihood(theta, eval_gradient=True) for one in processes]
        return -sum(value for value, _ in found), -sum(gradient for _, gradient in found)

    start = processes[0].kernel_
    found = minimize(objective, start.theta, jac=True, method="L-BFGS-B", bounds=start.bounds)
    return start.clone_with_theta(found.x)


def centred_by_station(graph: Graph, incomplete: Array) -> tuple[Array, Array, Array]:
    """Signals above the mean of their node, these means, and the variances of the means.

    The mean of a node never seen is kriged from those of the others.
    """
    where, known = places(graph), ~np.isnan(incomplete).all(axis=0)
    means, variances = np.zeros(graph.n_nodes), np.zeros(graph.n_nodes)
    means[known] = np.nanmean(incomplete[:, known], axis=0)
    if not known.all():
        kernel = ConstantKernel() * Matern(2.0, SCALES, nu=1.5) + WhiteKernel(0.1)
        process = GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=2, random_state=0)
        process.fit(where[known], means[known])
        means[~known], std = process.predict(where[~known], return_std=True)
        variances[~known] = std**2
    return incomplete - means, means, variances


def kriging(graph: Graph, inputs: Array, incomplete: Array) -> Imputed:
    where = places(graph)
    above, means, variances = centred_by_station(graph, incomplete)
    unit = np.nanstd(above)
    above = above / unit
    here = ~np.isnan(above)
    kernel = ConstantKernel(UNKNOWN, "fixed") + ConstantKernel() * Matern(2.0, SCALES, nu=1.5) + WhiteKernel(0.1)
    days = np.flatnonzero(here.sum(axis=1) >= 2)
    days = np.random.default_rng(0).permutation(days)[:N_DAYS_LEARNT]
    learnt = pooled_process(kernel, [(where[here[day]], above[day, here[day]]) for day in days])
    completed, std = incomplete.copy(), np.zeros(incomplete.shape)
    for day, there in enumerate(here):
        if there.all():
            continue
        process = GaussianProcessRegressor(learnt, optimizer=None)
        if there.any():
            process.fit(where[there], above[day, there])
        mean, deviation = process.predict(where[~there], return_std=True)
        completed[day, ~there] = means[~there] + unit * mean
        std[day, ~there] = np.sqrt((unit * deviation) ** 2 + variances[~there])
    return completed, std


def _spread(length_scales: list[float], nu: float) -> Matern:
    """A Matern kernel that does not see the dimensions whose length scale is far."""
    return Matern(length_scales, [(one, 1.01 * one) if one == FAR else SCALES for one in length_scales], nu=nu)


def space_time(graph: Graph, inputs: Array, incomplete: Array) -> Imputed:
    above, means, variances = centred_by_station(graph, incomplete)
    unit = np.nanstd(above)
    times, nodes = np.indices(incomplete.shape)
    features = np.column_stack([places(graph)[nodes.ravel()], inputs[times.ravel(), 0]])
    here = ~np.isnan(incomplete).ravel()
    values = above.ravel() / unit
    kernel = (
        ConstantKernel() * _spread([2.0, 2.0, FAR], 1.5) * _spread([FAR, FAR, 2.0], 0.5)
        + ConstantKernel() * _spread([FAR, FAR, 5.0], 1.5)
        + WhiteKernel(0.1)
    )
    chosen = np.random.default_rng(0).permutation(np.flatnonzero(here))[:N_ENTRIES_LEARNT]
    learnt = pooled_process(kernel, [(features[chosen], values[chosen])])
    process = GaussianProcessRegressor(learnt, optimizer=None).fit(features[here], values[here])
    mean, deviation = process.predict(features[~here], return_std=True)
    completed, std = incomplete.copy(), np.zeros(incomplete.shape)
    gone = np.isnan(incomplete)
    completed[gone] = means[nodes[gone]] + unit * mean
    std[gone] = np.sqrt((unit * deviation) ** 2 + variances[nodes[gone]])
    return completed, std


def best_of(candidates: Sequence[Values]) -> Callable[[Graph, Array, Array], Imputed]:
    """The candidate with the least error at hidden entries, with the deviations of these errors."""

    def fill(graph: Graph, inputs: Array, incomplete: Array) -> Imputed:
        squares = [np.nanmean(np.concatenate(residuals(one, graph, inputs, incomplete, 1)) ** 2) for one in candidates]
        return with_deviations(candidates[int(np.argmin(squares))])(graph, inputs, incomplete)

    return fill


NEVER_SEEN = "nodes never seen get the mean of the others, signal by signal"
BY_HIDDEN = "deviations of each node from hidden entries"
IMPUTERS: dict[str, Imputer] = {
    "default": Imputer("default", "`GraphGPRegressor(graph)`, every setting as it comes, then `impute`", default),
    "paper": Imputer("paper's model", "`Polynomial(5)`, an RBF on the input and white noise, then `impute`", paper),
    "means": Imputer(
        "station means",
        f"the mean of a node's observed entries; {BY_HIDDEN}; {NEVER_SEEN}",
        with_deviations(for_seen_nodes(station_means)),
    ),
    "interpolation": Imputer(
        "interpolation",
        f"linear in the input, node by node, the ends held; {BY_HIDDEN}; {NEVER_SEEN}",
        with_deviations(for_seen_nodes(interpolation)),
    ),
    "graph-knn": Imputer(
        "neighbours on the graph",
        "the node's mean, and the mean, by the weights of the edges, of what the neighbours observed in that signal "
        f"are above theirs; {BY_HIDDEN}; the mean of a node never seen is that of its neighbours' means",
        with_deviations(graph_neighbours),
    ),
    "knn": Imputer(
        "k-NN imputer",
        "scikit-learn's `KNNImputer`, weights by distance; neighbours among signals, or among nodes (above their "
        f"means), and k of {', '.join(map(str, NEIGHBOURS))} chosen by hidden entries; {BY_HIDDEN}; {NEVER_SEEN}",
        best_of([for_seen_nodes(one) for one in KNN]),
    ),
    "iterative": Imputer(
        "iterative imputer",
        "scikit-learn's `IterativeImputer` as it comes (`BayesianRidge`, ten rounds), the input among the columns; "
        f"{BY_HIDDEN}: the deviations that its regressions predict are far too small with a third missing; "
        f"{NEVER_SEEN}",
        with_deviations(for_seen_nodes(iterative)),
    ),
    "iterative-draws": Imputer(
        "iterative imputer, draws",
        f"the same with `sample_posterior=True`, three rounds: mean and deviation of {N_COMPLETIONS} completions; "
        f"{NEVER_SEEN}, with deviations from hidden nodes",
        iterative_draws,
    ),
    "kriging": Imputer(
        "kriging by day",
        "ordinary kriging of each signal above the nodes' means: scikit-learn's GP on coordinates, an unknown constant "
        f"+ constant x Matern(3/2) + white noise, hyperparameters by likelihood of {N_DAYS_LEARNT} random signals "
        "together; the mean of a node never seen is kriged from the other means",
        kriging,
    ),
    "space-time": Imputer(
        "space-time GP",
        "scikit-learn's GP on coordinates and input, signals above the nodes' means: Matern(3/2) in space x "
        "Matern(1/2) in the input + Matern(3/2) in the input + white noise, hyperparameters by likelihood of "
        f"{N_ENTRIES_LEARNT} random entries, conditioned on all; the mean of a node never seen as for kriging",
        space_time,
    ),
}
