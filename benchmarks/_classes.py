"""Classes of nodes by a few labels: splits, rivals and scores, for `bench_observations.py`."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import networkx
import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading

from spectralgp import Graph, GraphGPClassifier

Array = np.ndarray
N_NEIGHBORS = 10
N_BINS = 10  # of the calibration error
PER_CLASS = (2, 5, 10)
SLOW = ("GaussianProcessClassifier", "classifier, with features")  # that run on the first splits only
N_SLOW = 5
SMALLEST = 1e-12  # probability that a rival may give: a logarithm of zero would be all there is to say


@dataclass(frozen=True, eq=False)
class Labelled:
    """A graph with the classes of its nodes, and features where there are any."""

    words: str
    graph: Graph
    classes: Array
    features: Array | None


@cache
def labelled(name: str) -> Labelled:
    """Karate, or a set of scikit-learn on its graph of ten nearest neighbours."""
    if name == "karate":
        network = networkx.karate_club_graph()
        clubs = np.array([network.nodes[node]["club"] == "Officer" for node in network]).astype(int)
        weights = np.asarray(networkx.to_numpy_array(network, weight=None))
        return Labelled("who sided with whom, 34 members", Graph(weights), clubs, None)
    loaders = {"digits": load_digits, "wine": load_wine, "breast cancer": load_breast_cancer}
    features, classes = loaders[name](return_X_y=True)
    features = features / 16 if name == "digits" else StandardScaler().fit_transform(features)
    words = f"{len(classes):,} rows of {features.shape[1]} features"
    return Labelled(words, Graph.from_points(features, N_NEIGHBORS), classes, features)


def split(classes: Array, per_class: int, seed: int) -> Array:
    """Nodes that have a label, of equal number in each class."""
    generator = np.random.default_rng(seed)
    kinds = [np.flatnonzero(classes == one) for one in np.unique(classes)]
    return np.concatenate([generator.choice(nodes, per_class, replace=False) for nodes in kinds])


def calibration_error(probabilities: Array, truth: Array) -> float:
    """Mean distance of confidence and share of right answers over bins of confidence."""
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == truth
    bins = np.minimum((confidence * N_BINS).astype(int), N_BINS - 1)
    gaps = [abs(right[bins == one].mean() - confidence[bins == one].mean()) for one in np.unique(bins)]
    return float(gaps @ np.bincount(bins)[np.unique(bins)] / len(truth))


def scores(probabilities: Array, truth: Array) -> dict[str, float]:
    """Error, mean log probability of the truth and calibration error."""
    found = np.log(np.maximum(probabilities[np.arange(len(truth)), truth], SMALLEST))
    return {
        "error": float(np.mean(probabilities.argmax(axis=1) != truth)),
        "log_probability": float(found.mean()),
        "calibration": calibration_error(probabilities, truth),
    }


def ours(data: Labelled, known: Array, with_features: bool) -> Array:
    """The classifier of this package."""
    labels = np.full(len(data.classes), -1)
    labels[known] = data.classes[known]
    return GraphGPClassifier(data.graph).fit(data.features if with_features else None, labels).predict_proba()


def spreading(data: Labelled, known: Array, alpha: float) -> Array:
    """Label spreading on the same graph."""
    labels, weights = np.full(len(data.classes), -1), data.graph.weights.toarray()
    labels[known] = data.classes[known]
    model = LabelSpreading(kernel=lambda *_: weights, alpha=alpha, max_iter=1000)
    model.fit(np.arange(len(labels))[:, None], labels)
    found = np.nan_to_num(model.label_distributions_) + SMALLEST
    return found / found.sum(axis=1, keepdims=True)


def harmonic(data: Labelled, known: Array) -> Array:
    """Harmonic functions: every node without a label is the mean of its neighbours."""
    n_nodes, indicators = len(data.classes), np.eye(data.classes.max() + 1)[data.classes[known]]
    others, weights = np.setdiff1d(np.arange(n_nodes), known), data.graph.weights.toarray()
    laplacian = np.diag(weights.sum(axis=1)) - weights
    right = weights[np.ix_(others, known)] @ indicators
    found = np.empty((n_nodes, indicators.shape[1]))
    found[known] = indicators
    # a little is added for parts of the graph without a label
    found[others] = np.linalg.solve(laplacian[np.ix_(others, others)] + 1e-9 * np.eye(others.size), right)
    found = np.maximum(found, 0) + SMALLEST
    return found / found.sum(axis=1, keepdims=True)


def by_features(data: Labelled, known: Array, model: Any) -> Array:
    """A classifier that knows features and no graph."""
    return model.fit(data.features[known], data.classes[known]).predict_proba(data.features)


def rivals(data: Labelled) -> dict[str, Callable[[Array], Array]]:
    """A method of the comparison: probabilities of all nodes from those that have a label."""
    found: dict[str, Callable[[Array], Array]] = {
        "label spreading, 0.2": lambda known: spreading(data, known, 0.2),
        "label spreading, 0.9": lambda known: spreading(data, known, 0.9),
        "harmonic functions": lambda known: harmonic(data, known),
    }
    if data.features is not None:
        found["logistic regression"] = lambda known: by_features(data, known, LogisticRegression(max_iter=2000))
        found["3 neighbours"] = lambda known: by_features(data, known, KNeighborsClassifier(3))
        kernel = ConstantKernel(1.0) * RBF(np.sqrt(data.features.shape[1]))
        model = GaussianProcessClassifier(kernel, random_state=0)
        found["GaussianProcessClassifier"] = lambda known: by_features(data, known, model)
        found["classifier, with features"] = lambda known: ours(data, known, True)
    found["classifier"] = lambda known: ours(data, known, False)
    return found


def run(name: str, per_class: int, n_splits: int) -> dict[str, Any]:
    """Scores of all rivals on all splits, as lists, and their processor time."""
    data, found = labelled(name), dict[str, Any]()
    for seed in range(n_splits):
        known = split(data.classes, per_class, seed)
        others = np.setdiff1d(np.arange(len(data.classes)), known)
        for rival, probabilities in rivals(data).items():
            if rival in SLOW and seed >= N_SLOW:
                continue
            start = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of rivals that reach a bound
                one = scores(probabilities(known)[others], data.classes[others])
            one["seconds"] = time.process_time() - start
            for measure, value in one.items():
                found.setdefault(rival, {}).setdefault(measure, []).append(value)
    return {"words": data.words, "per_class": per_class, "n_splits": n_splits, "rivals": found}
