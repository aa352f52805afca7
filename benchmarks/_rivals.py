"""The models that `bench_real.py` compares: each learns from training signals and forecasts the test signals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import _reporting  # noqa: F401  it puts the tests' settings on the path
import numpy as np
from settings import PAPER, paper_kernel
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from spectralgp import Graph, GraphGPRegressor, Identity, Polynomial, Stacking
from spectralgp.learning.baselines import FLOOR, N_FOLDS, BaselinePrediction, ridge_regression, with_residuals

Array = np.ndarray
NEIGHBOURS = (1, 2, 3, 5, 8, 12)  # 15 training signals leave 12 in a fold
N_DRAWS = 16  # as the stacked models average over


@dataclass(frozen=True)
class ModelForecast:
    """Forecast of one of this library's models, whose densities are its own."""

    mean: Array  # (n_test, n_nodes)
    std: Array  # (n_test, n_nodes)
    log_density: Callable[[Array], Array]  # test signals, (n_test, n_nodes), to (n_test,)


@dataclass(frozen=True)
class Rival:
    """A model: its name, what it is, and how it forecasts from graph, inputs, signals and test inputs."""

    name: str
    words: str
    forecast: Callable[[Graph, Array, Array, Array], BaselinePrediction | ModelForecast]


def default(graph: Graph, inputs: Array) -> GraphGPRegressor:
    return GraphGPRegressor(graph)


def paper(graph: Graph, inputs: Array) -> GraphGPRegressor:
    settings = PAPER | {"center": "node"}
    return GraphGPRegressor(graph, Polynomial("auto"), paper_kernel(inputs), **settings)


def standard(graph: Graph, inputs: Array) -> GraphGPRegressor:
    return GraphGPRegressor(graph, Stacking(Identity(), n_draws=N_DRAWS), **PAPER | {"center": "node"})


def learnt(make: Callable[[Graph, Array], GraphGPRegressor]) -> Callable[[Graph, Array, Array, Array], ModelForecast]:
    """Forecasts of one of this library's models."""

    def forecast(graph: Graph, inputs: Array, signals: Array, test_inputs: Array) -> ModelForecast:
        model = make(graph, inputs).fit(inputs, signals)
        mean, std = model.predict(test_inputs, return_std=True, include_noise=True)
        return ModelForecast(mean, std, lambda tested: model.log_predictive_density(test_inputs, tested, joint=False))

    return forecast


def sklearn_gp(graph: Graph, inputs: Array, signals: Array, test_inputs: Array) -> BaselinePrediction:
    length_scale = np.sqrt(inputs.shape[1])  # the root mean square of standardised inputs
    kernel = ConstantKernel() * RBF(length_scale, (1e-2, 1e5)) + WhiteKernel()
    process = GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=3, random_state=0)
    mean, std = make_pipeline(StandardScaler(), process).fit(inputs, signals).predict(test_inputs, return_std=True)
    return BaselinePrediction(mean, std)


def ridge(graph: Graph, inputs: Array, signals: Array, test_inputs: Array) -> BaselinePrediction:
    return ridge_regression(inputs, signals, test_inputs, is_correlated=False)


def ridge_ledoit_wolf(graph: Graph, inputs: Array, signals: Array, test_inputs: Array) -> BaselinePrediction:
    return ridge_regression(inputs, signals, test_inputs)


def neighbours(graph: Graph, inputs: Array, signals: Array, test_inputs: Array) -> BaselinePrediction:
    model, folds = make_pipeline(StandardScaler(), KNeighborsRegressor()), KFold(N_FOLDS, shuffle=True, random_state=0)
    grid = {"kneighborsregressor__n_neighbors": NEIGHBOURS}
    search = GridSearchCV(model, grid, scoring="neg_mean_squared_error", cv=folds).fit(inputs, signals)
    residuals = signals - cross_val_predict(search.best_estimator_, inputs, signals, cv=folds)
    return with_residuals(search.predict(test_inputs), residuals, is_correlated=False)


RIVALS: dict[str, Rival] = {
    "default": Rival("default", "`GraphGPRegressor(graph)`, every setting as it comes", learnt(default)),
    "paper": Rival(
        "paper's model", "a polynomial filter, its degrees stacked, signals centred by node; no more", learnt(paper)
    ),
    "standard": Rival(
        "standard GP",
        f"the same prior and average over {N_DRAWS} draws without a graph: `Identity()`, centred by node",
        learnt(standard),
    ),
    "sklearn": Rival(
        "scikit-learn's GP",
        "`GaussianProcessRegressor`, constant x RBF + white noise on standardised inputs, `normalize_y=True`, three "
        "restarts; nodes are independent",
        sklearn_gp,
    ),
    "ridge": Rival(
        "ridge",
        f"`RidgeCV` on standardised inputs; each node's variance from residuals of five folds, at least {FLOOR:.0%} of "
        "the nodes' mean",
        ridge,
    ),
    "ridge-lw": Rival(
        "ridge + Ledoit-Wolf", "the same, with the Ledoit-Wolf covariance of these residuals", ridge_ledoit_wolf
    ),
    "knn": Rival(
        "k-NN", "`KNeighborsRegressor` on standardised inputs, k by five folds; variances as for ridge", neighbours
    ),
}
