"""The jobs that experiments are cut into: each learns some models and returns plain numbers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF

from reproduction.experiments import RELEASED, FilterStudy, Model, PredictionStudy, Solver, Study, Truth
from reproduction.problems import Folder, Problem, problem
from spectralgp import Graph, GraphGPRegressor, Polynomial, decompose
from spectralgp.datasets import (
    FilteredSignals,
    barabasi_albert_graph,
    draw_filtered_signals,
    draw_inverse_wishart,
    sensor_graph,
)

# the paper's model, and plain maximum likelihood of the signals as they are: data are standardised before
PLAIN: dict[str, Any] = {"residual": None, "carry": None, "center": None, "scale": None, "prior": None}


@dataclass(frozen=True)
class FilterJob:
    """One draw of a filter study."""

    study: FilterStudy
    truth: Truth
    snr: float
    seed: int

    def run(self, folder: Folder = None) -> dict[str, Any]:
        """Draw, learn every degree, and compare with the truth."""
        graph, covariance, drawn = draw(self.study, self.truth, self.snr, self.seed)
        spectrum = decompose(graph, scaled=True)
        true_response = drawn.graph_kernel.response(spectrum.eigenvalues)
        learnt = []
        for variant, solver, degree in self._variants():
            noise = drawn.noise_variance if variant == "noise known" else None
            model = _fit(
                GraphGPRegressor(
                    graph,
                    Polynomial(degree),
                    "precomputed" if covariance is not None else None,
                    noise_variance=noise,
                    solver=solver,
                    **PLAIN,
                ),
                covariance,
                drawn.signals,
            )
            learnt.append(
                {"variant": variant, "degree": degree}
                | _recovery(model, drawn.graph_kernel, true_response)
                | _summary(model)
            )
        result: dict[str, Any] = {"truth": self.truth.key, "snr": self.snr, "seed": self.seed, "learnt": learnt}
        if self.seed == self.study.seeds[0]:  # the draw that is shown
            result["shown"] = {
                "eigenvalues": spectrum.eigenvalues.tolist(),
                "fourier": spectrum.transform(drawn.signals).tolist(),
                "truth": drawn.graph_kernel.coefficients.tolist(),
            }
        return result

    def _variants(self) -> list[tuple[str, Solver, int]]:
        degrees = self.study.degrees or (self.truth.degree,)
        first = self.seed == self.study.seeds[0]
        own = [degree for degree in degrees if degree == self.truth.degree]
        if self.study.brief:
            by_algorithm_1: Sequence[int] = own if first else ()
        else:
            by_algorithm_1 = degrees if first else own
        return [
            *(("sqp", "sqp", degree) for degree in degrees),
            *(("noise known", "sqp", degree) for degree in degrees),
            *(("Algorithm 1", "lagrangian", degree) for degree in by_algorithm_1),
        ]


@dataclass(frozen=True)
class PredictionJob:
    """One training size and split of a prediction study."""

    study: PredictionStudy
    size: int
    split: int

    def run(self, folder: Folder = None) -> dict[str, Any]:
        """Learn every model and score its predictions of the test sets."""
        task = problem(self.study.data, self.size, self.split, folder)
        result: dict[str, Any] = {
            "size": self.size,
            "split": self.split,
            "models": {model.key: _score(model, task) for model in self.study.models},
        }
        if self.split == RELEASED and self.size == max(self.study.sizes):
            result["shown"] = _picture(task)
        return result


Job = FilterJob | PredictionJob


def jobs_of(study: Study) -> list[Job]:
    """The jobs of an experiment, in the order of its results."""
    if isinstance(study, FilterStudy):
        return [
            FilterJob(study, truth, snr, seed) for truth in study.truths for snr in study.snrs for seed in study.seeds
        ]
    return [PredictionJob(study, size, split) for size in study.sizes for split in study.splits]


def draw(study: FilterStudy, truth: Truth, snr: float, seed: int) -> tuple[Graph, Any, FilteredSignals]:
    """Graph, input covariance (or None) and signals; every truth and ratio of a seed has the same graph."""
    random_state = np.random.default_rng(seed)
    builders = {"sensor": sensor_graph, "barabasi-albert": barabasi_albert_graph}
    graph = builders[study.graph](study.n_nodes, random_state)
    covariance = None
    if study.input_covariance == "inverse Wishart":
        covariance = draw_inverse_wishart(study.n_signals, random_state)
    drawn = draw_filtered_signals(
        graph, truth.coefficients, study.n_signals, random_state, snr=snr, input_covariance=covariance
    )
    return graph, covariance, drawn


def _fit(model: GraphGPRegressor, inputs: Any, signals: Any) -> GraphGPRegressor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the results say which fits did not converge
        return model.fit(inputs, signals)


def _recovery(model: GraphGPRegressor, truth: Polynomial, true_response: Any) -> dict[str, Any]:
    """Relative L2 error on the eigenvalues, of the filter itself and of both divided by their maximum."""
    eigenvalues = model.spectrum_.eigenvalues
    kernel: Polynomial = model.graph_kernel_  # type: ignore[assignment]
    shape, true_shape = kernel.rescaled().response(eigenvalues), truth.rescaled().response(eigenvalues)
    return {
        "coefficients": kernel.coefficients.tolist(),
        "error": _relative(kernel.response(eigenvalues), true_response),
        "shape_error": _relative(shape, true_shape),
    }


def _relative(found: Any, true: Any) -> float:
    return float(np.linalg.norm(found - true) / np.linalg.norm(true))


def _summary(model: GraphGPRegressor) -> dict[str, Any]:
    fit = model.fits_[int(np.argmax(model.kernel_weights_))]
    return {
        "log_likelihood": model.log_marginal_likelihood_,
        "noise_variance": model.noise_variance_,
        "converged": all(fit.converged for fit in model.fits_),
        "message": fit.message,
        "first_stage": fit.stages[0].name,
        "n_evaluations": model.n_evaluations_,
    }


def _score(model: Model, task: Problem) -> dict[str, Any]:
    settings = PLAIN | {"prior": model.prior, "solver": model.solver}
    estimator = GraphGPRegressor(task.graph, model.graph_kernel, _input_kernel(task.inputs), **settings)
    fitted = _fit(estimator, task.inputs, task.signals)
    left_out = fitted.leave_one_out().log_density
    result = {
        "scores": {order: _set_scores(fitted, task, *test) for order, test in task.tests.items()},
        "leave_one_out": float(np.mean(left_out)) + task.shift,
    } | _summary(fitted)
    if isinstance(fitted.graph_kernel_, Polynomial):
        result["coefficients"] = fitted.graph_kernel_.coefficients.tolist()
        result["smallest_response"] = float(np.min(fitted.response()))
    if len(fitted.kernel_weights_) > 1:
        result["weights"] = fitted.kernel_weights_.tolist()
    return result


def _input_kernel(inputs: Any) -> RBF:
    """The paper's covariance between signals, whose length scale starts at the median distance of the inputs."""
    typical = float(np.sqrt(np.median(pdist(inputs, "sqeuclidean"))))
    return RBF(typical, (1e-3 * typical, 1e3 * typical))


def _set_scores(fitted: GraphGPRegressor, task: Problem, inputs: Any, signals: Any) -> list[float]:
    """Joint log density of each test set, over its size, in the paper's unit."""
    starts = range(0, len(inputs), task.set_size)
    sets = [slice(start, start + task.set_size) for start in starts]
    densities = [fitted.log_predictive_density(inputs[one], signals[one]) for one in sets]
    return [density / task.set_size + task.shift for density in densities]


def _picture(task: Problem) -> dict[str, Any]:
    """What the pictures of the data need: the graph, its inputs, and the training signals' Fourier coefficients."""
    spectrum = decompose(task.graph, scaled=True)
    whole = task.whole_graph
    rows, columns = whole.weights.nonzero()
    coordinates = whole.coordinates
    arbitrary = coordinates is None
    if coordinates is None:  # slowly varying modes spread nodes out; the paper's places are arbitrary too
        coordinates = decompose(whole, "normalized").eigenvectors[:, whole.n_components :][:, :2]
    return {
        "edges": [[int(i), int(j)] for i, j in zip(rows, columns, strict=True) if i < j],
        "coordinates": np.asarray(coordinates).tolist(),
        "arbitrary_places": arbitrary,
        "is_input": task.is_input.tolist(),
        "eigenvalues": spectrum.eigenvalues.tolist(),
        "fourier": spectrum.transform(task.signals).tolist(),
    }
