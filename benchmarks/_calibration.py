"""Data drawn from each model, fits of them, and what their predictive distributions say of hidden values.

A setting draws a data set from a seed, fits a model to a part of it, and scores the rest: the probability integral
transform (PIT) of every hidden value, and which values lie inside their central intervals. Data are drawn by dense
algebra; nothing of the package is used for that but graphs and their Laplacians.
"""

from __future__ import annotations

import time
import warnings
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import softmax
from scipy.stats import norm, poisson

from spectralgp import Diffusion, Graph, GraphGPClassifier, GraphGPForecaster, GraphGPRegressor, Polynomial
from spectralgp.model.fields import probability_transforms
from spectralgp.scores import pit

Array = np.ndarray
Scores = dict[str, Any]  # of one data set: by name, a number or a list of them
LEVELS = (50, 80, 90)  # of central intervals, in per cent
DIGITS = 4  # of what is kept of a data set

# regression
N_NODES, N_NEIGHBORS, N_NEW = 8, 3, 10
N_SIGNALS = (5, 20, 50)
LEVEL, NOISE_VARIANCE, LENGTH = 1.0, 0.09, 1.0
SHARE_MISSING, N_UNSEEN = 0.3, 2
# values of one or more signals at some of the nodes of a map
MAP_NODES, MAP_NEIGHBORS, N_MEASURED = 20, 4, 12
WHITE = 0.3  # standard deviation of the white part
EFFECT = 0.5  # root of the sum of the squared coefficients of covariates
MEAN_COUNTS, N_COVARIATES = (0.2, 2.0, 20.0), (0, 1, 4)
# classes: what the classifier takes fields for
CLASS_NODES, CLASS_NEIGHBORS, N_CLASSES = 100, 6, 3
STRENGTH, AMPLITUDE, OWN_SHARE = 40.0, 10.0, 1e-3
PER_CLASS, SPARE = (2, 5, 10), 5  # labels per class, and nodes without one that every class must have
N_BINS = 10
# forecasts
N_STEPS, HORIZONS, N_ORIGINS = 150, (1, 6, 24), 5


# ------------------------------------------------------------------------------------------------------- drawing


def matrix_function(graph: Graph, response: Callable[[Array], Array], kind: Any = "combinatorial") -> Array:
    """Function of the graph's Laplacian, scaled to a largest eigenvalue of one unless it is normalised."""
    values, vectors = np.linalg.eigh(graph.laplacian(kind, scaled=kind == "combinatorial").toarray())
    return (vectors * response(values)) @ vectors.T


def root_of(covariance: Array) -> Array:
    """Symmetric root of a covariance."""
    values, vectors = np.linalg.eigh(covariance)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T


def rbf(inputs: Array) -> Array:
    """Covariance between inputs of one column."""
    return np.exp(-0.5 * np.square((inputs - inputs.T) / LENGTH))


@dataclass(frozen=True)
class Filters:
    """Filters of a model: of the part that inputs explain, and of the residual that neighbours share."""

    kind: str  # of the Laplacian
    signal: Callable[[Array], Array]
    residual: Callable[[Array], Array]
    words: str


POLYNOMIAL = Filters(
    "combinatorial",
    lambda values: 1 - 0.8 * values,
    lambda values: 0.5 - 0.25 * values,
    "g(λ) = 1 - 0.8 λ and h(λ) = 0.5 - 0.25 λ",
)
DIFFUSION = Filters(
    "normalized",
    lambda values: np.exp(-0.75 * values),
    lambda values: 0.5 - 0.125 * values,
    "g(λ) = exp(-0.75 λ) and h(λ) = 0.5 - 0.125 λ",
)
KERNELS: dict[str, tuple[Any, Filters]] = {
    "Polynomial(2)": (Polynomial(2), POLYNOMIAL),
    "Diffusion()": (Diffusion(), DIFFUSION),
    "default": (None, POLYNOMIAL),
}


def draw_signals(graph: Graph, inputs: Array, filters: Filters, generator: Any) -> Array:
    """Signals at inputs: the explained part, a residual that neighbours share, and noise, about a level."""
    shape = len(inputs), graph.n_nodes
    explained = root_of(rbf(inputs)) @ generator.standard_normal(shape)
    signals = explained @ matrix_function(graph, filters.signal, filters.kind)
    signals = signals + generator.standard_normal(shape) @ matrix_function(graph, filters.residual, filters.kind)
    return np.asarray(LEVEL + signals + np.sqrt(NOISE_VARIANCE) * generator.standard_normal(shape))


def map_response(values: Array) -> Array:
    """Filter of the signals on a map."""
    return np.sqrt(0.5) * (1 - 0.9 * values)


def draw_maps(graph: Graph, n_signals: int, generator: Any) -> Array:
    """Independent smooth signals on a map."""
    return np.asarray(generator.standard_normal((n_signals, graph.n_nodes)) @ matrix_function(graph, map_response))


def class_covariance(graph: Graph) -> Array:
    """Covariance between nodes of the latent field of a class."""
    smooth = matrix_function(graph, lambda values: np.exp(-0.5 * STRENGTH * values), "normalized")
    smooth = smooth / np.mean(np.diag(smooth))
    return AMPLITUDE**2 * ((1 - OWN_SHARE) * smooth + OWN_SHARE * np.eye(graph.n_nodes))


def draw_fields(graph: Graph, generator: Any) -> Array:
    """Latent fields, a column per class."""
    return np.asarray(root_of(class_covariance(graph)) @ generator.standard_normal((graph.n_nodes, N_CLASSES)))


def decay(values: Array) -> Array:
    """Rate at which a frequency of the graph forgets, per step."""
    return 0.05 + 0.3 * values


def draw_series(graph: Graph, n_steps: int, generator: Any) -> Array:
    """Rows in time: at each frequency of the graph a Matern process of 1/2, and noise about a level."""
    values, vectors = np.linalg.eigh(graph.laplacian(scaled=True).toarray())
    kept = np.exp(-decay(values))
    states = np.zeros((n_steps, graph.n_nodes))
    states[0] = generator.standard_normal(graph.n_nodes)
    for step in range(1, n_steps):
        states[step] = kept * states[step - 1] + np.sqrt(1 - kept**2) * generator.standard_normal(graph.n_nodes)
    noise = np.sqrt(NOISE_VARIANCE) * generator.standard_normal(states.shape)
    return np.asarray(LEVEL + (states * (1 - 0.7 * values)) @ vectors.T + noise)


def random_graph(n_nodes: int, n_neighbors: int, generator: np.random.Generator) -> Graph:
    """Random points in the square and their nearest neighbours."""
    return Graph.from_points(generator.random((n_nodes, 2)), n_neighbors=n_neighbors)


# ------------------------------------------------------------------------------------------------------- scoring


def scores_of_transforms(transforms: Array) -> Scores:
    """Mean PIT of continuous values, and how many lie inside central intervals."""
    away = 2 * np.abs(transforms - 0.5)
    covered = {f"covered_{level}": int(np.sum(away <= level / 100)) for level in LEVELS}
    return {"n_values": transforms.size, "pit": float(np.mean(transforms)), **covered}


def scores_of_counts(
    counts: Array, transforms: Array, quantile: Callable[[float], Array], distribution: Callable[[Array], Array]
) -> Scores:
    """Mean randomised PIT, how many counts lie between quantiles, and the probability of that by the prediction."""
    found: Scores = {"n_values": counts.size, "pit": float(np.mean(transforms))}
    for level in LEVELS:
        low, high = quantile(0.5 - level / 200), quantile(0.5 + level / 200)
        found[f"covered_{level}"] = int(np.sum((low <= counts) & (counts <= high)))
        found[f"stated_{level}"] = float(np.mean(distribution(high) - distribution(low - 1)))
    return found


def scores_of_classes(probabilities: Array, truth: Array) -> Scores:
    """Right answers, confidence and log loss; by bins of the confidence, right answers less confidence added up."""
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == truth
    bins = np.minimum((confidence * N_BINS).astype(int), N_BINS - 1)
    excess = np.bincount(bins, right - confidence, N_BINS)
    losses = -np.log(probabilities[np.arange(truth.size), truth])
    return {
        "n_values": truth.size,
        "right": int(right.sum()),
        "confidence": float(confidence.mean()),
        "log_loss": float(losses.mean()),
        "excess": excess.tolist(),
    }


# ------------------------------------------------------------------------------------------------------ settings


def regression(model: str, n_signals: int, observed: str, generator: np.random.Generator) -> Scores:
    """New signals, or missing values of the training signals, by a regressor with inputs."""
    kernel, filters = KERNELS[model]
    graph = random_graph(N_NODES, N_NEIGHBORS, generator)
    inputs = generator.standard_normal((n_signals + N_NEW, 1))
    signals = draw_signals(graph, inputs, filters, generator)
    train, given = inputs[:n_signals], signals[:n_signals].copy()
    if observed == "30% missing":
        given[missing_at_random(given.shape, generator)] = np.nan
    elif observed == "unseen nodes":
        given[:, generator.permutation(N_NODES)[:N_UNSEEN]] = np.nan
    fitted = GraphGPRegressor(graph, kernel).fit(train, given)
    if observed == "complete":
        return scores_of_transforms(fitted.posterior_.at(inputs[n_signals:]).distribution(signals[n_signals:]).ravel())
    filled = fitted.posterior_.imputed(np.arange(n_signals))
    return scores_of_transforms(filled.distribution(signals[:n_signals])[np.isnan(given)])


def missing_at_random(shape: tuple[int, int], generator: np.random.Generator) -> Array:
    """Mask of missing values, of equal number in each data set, and never a whole signal."""
    while True:
        missing = generator.permutation(np.arange(np.prod(shape)) < round(SHARE_MISSING * np.prod(shape)))
        missing = missing.reshape(shape)
        if not missing.all(axis=1).any() and not missing.all(axis=0).any():
            return missing


def true_regression(n_signals: int, generator: np.random.Generator) -> Scores:
    """New signals by dense algebra with the hyperparameters that the data were drawn with: a check of this script."""
    graph = random_graph(N_NODES, N_NEIGHBORS, generator)
    inputs = generator.standard_normal((n_signals + N_NEW, 1))
    signals = draw_signals(graph, inputs, POLYNOMIAL, generator)
    mean, std = conditional(graph, inputs, signals[:n_signals])
    return scores_of_transforms(norm.cdf(signals[n_signals:].ravel(), mean, std))


def conditional(graph: Graph, inputs: Array, given: Array) -> tuple[Array, Array]:
    """Means and standard deviations of the values at the last inputs, given the signals at the first."""
    signal = matrix_function(graph, lambda values: np.square(POLYNOMIAL.signal(values)))
    residual = matrix_function(graph, lambda values: np.square(POLYNOMIAL.residual(values)))
    own = residual + NOISE_VARIANCE * np.eye(graph.n_nodes)
    covariance = np.kron(rbf(inputs), signal) + np.kron(np.eye(len(inputs)), own)
    known, new = np.split(np.arange(len(covariance)), [given.size])
    gain = np.linalg.solve(covariance[np.ix_(known, known)], covariance[np.ix_(known, new)])
    variance = np.diag(covariance)[new] - np.sum(gain * covariance[np.ix_(known, new)], axis=0)
    return LEVEL + (given.ravel() - LEVEL) @ gain, np.sqrt(variance)


def on_map(
    seen: str, n_signals: int, n_covariates: int, generator: np.random.Generator, mean_count: float = 1.0
) -> Scores:
    """Values at nodes of a map that were not measured, by a regressor without inputs."""
    graph = random_graph(MAP_NODES, MAP_NEIGHBORS, generator)
    covariates = generator.standard_normal((MAP_NODES, n_covariates))
    effects = covariates @ np.full(n_covariates, EFFECT / np.sqrt(max(n_covariates, 1)))
    latent = draw_maps(graph, n_signals, generator) + effects
    named = {f"covariate {place}": column for place, column in enumerate(covariates.T)} or None
    likelihood, beside = "gaussian", dict[str, Any](covariates=named)
    if seen == "counts":
        likelihood = "poisson"
        variances = np.diag(matrix_function(graph, lambda values: np.square(map_response(values)))) + WHITE**2
        offset = np.log(mean_count / np.mean(np.exp(effects + 0.5 * variances)))
        rates = np.exp(offset + latent + WHITE * generator.standard_normal(latent.shape))
        values = generator.poisson(rates).astype(float)
    elif seen == "known noise":
        beside["noise_variance"] = generator.uniform(0.05, 0.5, latent.shape)
        values = LEVEL + latent + np.sqrt(beside["noise_variance"]) * generator.standard_normal(latent.shape)
    elif seen == "weights":
        beside["weights"] = generator.integers(1, 11, latent.shape).astype(float)
        values = LEVEL + latent + 2 * WHITE / np.sqrt(beside["weights"]) * generator.standard_normal(latent.shape)
    elif seen == "Student t":
        likelihood = "student_t"
        values = LEVEL + latent + WHITE * generator.standard_t(4, latent.shape)
    else:
        beside |= {"weights": 1.0} if seen == "equal weights" else {}
        values = LEVEL + latent + WHITE * generator.standard_normal(latent.shape)
    hidden = generator.permutation(MAP_NODES)[N_MEASURED:]
    given = values.copy()
    given[:, hidden] = np.nan
    fitted = GraphGPRegressor(graph, Polynomial(1), likelihood=likelihood).fit(None, given, **beside)
    filled = fitted.posterior_.imputed(np.arange(n_signals))
    if seen != "counts":
        return scores_of_transforms(filled.distribution(values)[:, hidden].ravel())
    ends = [0.5 + side * level / 200 for level in LEVELS for side in (-1, 1)]
    inputs = np.empty((n_signals, 0))
    found = fitted.predict(inputs, observed=given, return_quantiles=ends)[1:]
    quantiles = dict(zip(ends, found, strict=True))

    def distribution(at: Array) -> Array:
        full = values.copy()
        full[:, hidden] = at
        return np.asarray(filled.distribution(full)[:, hidden])

    transforms = probability_transforms(filled, values, generator)[:, hidden]
    return scores_of_counts(values[:, hidden], transforms, lambda end: quantiles[end][:, hidden], distribution)


def true_counts(mean_count: float, generator: np.random.Generator) -> Scores:
    """Counts by the rates that they were drawn with: a check of this script."""
    graph = random_graph(MAP_NODES, MAP_NEIGHBORS, generator)
    law = poisson(mean_count * np.exp(draw_maps(graph, 1, generator)))
    counts = law.rvs(random_state=generator)
    transforms = law.cdf(counts) - generator.random(counts.shape) * law.pmf(counts)
    return scores_of_counts(counts, transforms, law.ppf, law.cdf)


def classes(per_class: int, is_known: bool, generator: np.random.Generator) -> Scores:
    """Classes of nodes without a label, by the classifier or by the fields that they were drawn from."""
    while True:
        graph = random_graph(CLASS_NODES, CLASS_NEIGHBORS, generator)
        probabilities = softmax(draw_fields(graph, generator), axis=1)
        truth = (generator.random((CLASS_NODES, 1)) > np.cumsum(probabilities, axis=1)[:, :-1]).sum(axis=1)
        if is_known:
            return scores_of_classes(probabilities, truth)
        if np.bincount(truth, minlength=N_CLASSES).min() >= per_class + SPARE:
            break
    shuffled = generator.permutation(CLASS_NODES)
    known = np.concatenate([shuffled[truth[shuffled] == one][:per_class] for one in range(N_CLASSES)])
    labels, others = np.full(CLASS_NODES, -1), np.setdiff1d(np.arange(CLASS_NODES), known)
    labels[known] = truth[known]
    found = GraphGPClassifier(graph).fit(None, labels).predict_proba()
    return scores_of_classes(found[others], truth[others])


def forecasts(observed: str, generator: np.random.Generator) -> dict[str, Scores]:
    """Later rows, at several horizons and origins; the forecaster has no quantiles, and its forecasts are normal."""
    graph = random_graph(N_NODES, N_NEIGHBORS, generator)
    apart = max(HORIZONS)
    series = draw_series(graph, N_STEPS + N_ORIGINS * apart, generator)
    given = series.copy()
    if observed == "30% missing":
        given[missing_at_random(given.shape, generator)] = np.nan
    fitted = GraphGPForecaster(graph).fit(given[:N_STEPS])
    found: dict[int, list[Array]] = {horizon: [] for horizon in HORIZONS}
    for origin in range(N_STEPS, len(series), apart):
        if origin > N_STEPS:
            fitted.update(given[origin - apart : origin])
        mean, std = fitted.predict(apart, return_std=True)
        for horizon in HORIZONS:
            at = horizon - 1
            found[horizon].append(pit(series[origin + at], mean[at], std[at]))
    return {str(horizon): scores_of_transforms(np.concatenate(made)) for horizon, made in found.items()}


# --------------------------------------------------------------------------------------------------------- cells


@dataclass(frozen=True)
class Cell:
    """A setting: where it stands on the page, and how it is scored."""

    table: str
    labels: tuple[str, ...]  # first columns of its row
    score: Callable[[np.random.Generator], Any]  # of one data set; by row where there are several

    @property
    def name(self) -> str:
        """Name, by which it is run and kept."""
        return ", ".join((self.table, *filter(None, self.labels)))

    def generator(self, seed: int) -> np.random.Generator:
        """Random numbers of a data set: other ones in every setting."""
        return np.random.default_rng([seed, zlib.crc32(self.name.encode())])

    def run(self, seed: int) -> dict[str, Any]:
        """Scores of a data set by row, with the seconds of the processor that it took, or what it failed with."""
        start = time.process_time()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                found = self.score(self.generator(seed))
            except Exception as error:  # a fit that fails is a finding, not the end of the run
                words = str(error).splitlines() or [""]
                return {"failed": f"data set {seed}: {type(error).__name__}: {words[0]}"}
        rows = found if self.table == "forecasts" else {"": found}
        rows = {row: {name: rounded(one) for name, one in scores.items()} for row, scores in rows.items()}
        return {"rows": rows, "seconds": time.process_time() - start, "warned": bool(caught)}


def rounded(value: Any) -> Any:
    """Number, or list of numbers, rounded to the digits that are kept."""
    return [rounded(one) for one in value] if isinstance(value, list) else round(value, DIGITS)


def all_cells() -> Mapping[str, Cell]:
    """Settings of the page, in its order."""
    cells = [Cell("regression", ("true hyperparameters", "5", "complete"), partial(true_regression, 5))]
    cells += [
        Cell("regression", (model, str(n_signals), observed), partial(regression, model, n_signals, observed))
        for model in ("Polynomial(2)", "Diffusion()", "default")
        for n_signals in N_SIGNALS
        for observed in ("complete", "30% missing", "unseen nodes")
    ]
    cells += [
        Cell("observations", (seen, str(n_signals), str(n_covariates)), partial(on_map, seen, n_signals, n_covariates))
        for seen, n_signals, n_covariates in (
            ("one noise variance", 1, 0),
            ("one noise variance", 20, 0),
            *(("equal weights", 1, number) for number in N_COVARIATES),
            *((seen, number, 0) for seen in ("weights", "known noise") for number in (1, 20)),
            *(("Student t", number, 0) for number in (5, 20)),
        )
    ]
    cells += [Cell("counts", ("true rates", f"{mean:g}", "", ""), partial(true_counts, mean)) for mean in MEAN_COUNTS]
    cells += [
        Cell(
            "counts",
            ("Poisson", f"{mean:g}", str(n_signals), str(number)),
            partial(on_map, "counts", n_signals, number, mean_count=mean),
        )
        for n_signals in (1, 20)
        for number in N_COVARIATES
        for mean in MEAN_COUNTS
    ]
    cells += [Cell("classes", ("true fields", ""), partial(classes, 0, True))]
    cells += [Cell("classes", ("classifier", str(number)), partial(classes, number, False)) for number in PER_CLASS]
    cells += [Cell("forecasts", (observed,), partial(forecasts, observed)) for observed in ("complete", "30% missing")]
    return {cell.name: cell for cell in cells}


CELLS = all_cells()
