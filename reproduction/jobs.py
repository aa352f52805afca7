"""The jobs that experiments are cut into: each learns some models and returns plain numbers."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF

from reproduction.algorithm_1 import Lagrangian
from reproduction.experiments import (
    AUTHORS_MULTIPLIERS,
    BY_ALGORITHM_1,
    BY_FILTER_SEARCH,
    HIGHEST_DEGREE,
    JOINTLY,
    N_FILTER_STARTS,
    RANDOM_STARTS,
    RELEASED,
    FilterStudy,
    GraphStudy,
    Model,
    PredictionStudy,
    ProgramStudy,
    Study,
    Truth,
    variants,
)
from reproduction.problems import AS_RELEASED, Folder, Problem, paper_graph, problem
from reproduction.released import run_released
from reproduction.released_baselines import run_baseline
from spectralgp import Graph, GraphGPRegressor, Polynomial, Sqp, Stacking, decompose
from spectralgp.datasets import (
    Dataset,
    barabasi_albert_graph,
    draw_filtered_signals,
    draw_inverse_wishart,
    sensor_graph,
)

# the paper's model, and plain maximum likelihood of the signals as they are: data are standardised before
PLAIN: dict[str, Any] = {"residual": None, "carry": None, "center": None, "scale": None}
JOINT, NOISE_KNOWN = "joint", "noise known"
"""Ways of learning a filter, beside Algorithm 1 and its variants."""


@dataclass(frozen=True)
class Variant:
    """A way to learn a filter of one degree: what it is called, and the solver."""

    name: str
    degree: int
    solver: Sqp | Lagrangian = JOINTLY


@dataclass(frozen=True)
class FilterJob:
    """One draw of a filter study, with all that its result depends on."""

    graph: str
    input_covariance: str
    n_nodes: int
    n_signals: int
    truth: Truth
    snr: float
    seed: int
    variants: tuple[Variant, ...]
    is_shown: bool

    @property
    def name(self) -> str:
        """Name for people."""
        return f"{self.truth.key}, {self.snr:g} dB, seed {self.seed}"

    def run(self, folder: Folder = None) -> dict[str, Any]:
        """Draw, learn every variant, and compare with the truth."""
        graph, covariance, drawn = draw(self)
        spectrum = decompose(graph, scaled=True)
        true_response = drawn.graph_kernel.response(spectrum.eigenvalues)
        learnt = []
        for variant in self.variants:
            model = _fit(
                GraphGPRegressor(
                    graph,
                    Polynomial(variant.degree),
                    "precomputed" if covariance is not None else None,
                    noise_variance=drawn.noise_variance if variant.name == NOISE_KNOWN else None,
                    solver=variant.solver,
                    prior=None,
                    **PLAIN,
                ),
                covariance,
                drawn.signals,
            )
            learnt.append(
                {"variant": variant.name, "degree": variant.degree}
                | _recovery(model, drawn.graph_kernel, true_response)
                | _summary(model)
            )
        result: dict[str, Any] = {"truth": self.truth.key, "snr": self.snr, "seed": self.seed, "learnt": learnt}
        if self.is_shown:
            result["shown"] = {
                "eigenvalues": spectrum.eigenvalues.tolist(),
                "fourier": spectrum.transform(drawn.signals).tolist(),
                "truth": drawn.graph_kernel.coefficients.tolist(),
            }
        return result


@dataclass(frozen=True)
class PredictionJob:
    """One model on one training size and split of a data set."""

    data: str
    size: int
    split: int
    model: Model
    is_shown: bool

    @property
    def name(self) -> str:
        """Name for people."""
        return f"{self.data} {self.size}, split {self.split}, {self.model.key}"

    def run(self, folder: Folder = None) -> dict[str, Any]:
        """Learn the model and score its predictions of the test sets."""
        task = problem(self.data, self.size, self.split, folder)
        result: dict[str, Any] = {"size": self.size, "split": self.split, "model": self.model.key}
        result |= _score(self.model, task)
        if self.is_shown:
            result["shown"] = picture(task.whole_graph, task.is_input) | _fourier(task)
        return result


@dataclass(frozen=True)
class GraphJob:
    """One graph of the paper; a random one is that of the first seed, but for how uneven its eigenvalues are."""

    graph: str

    @property
    def name(self) -> str:
        """Name for people."""
        return self.graph

    def run(self, folder: Folder = None) -> dict[str, Any]:
        """The ends of its spectra, and how it is drawn."""
        if self.graph in RANDOM_GRAPHS:
            graphs = [RANDOM_GRAPHS[self.graph](30, np.random.default_rng(seed)) for seed in range(1, 21)]
            graph = graphs[0]
            is_input = np.zeros(graph.n_nodes, dtype=bool)
        else:
            graph, is_input = paper_graph(self.graph, folder)
            graphs = []
        outputs = graph.subgraph(np.flatnonzero(~is_input))
        normalized = decompose(outputs, "normalized").eigenvalues
        hops = _hops_beyond(outputs, 3)
        return {
            "graph": self.graph,
            "n_nodes": graph.n_nodes,
            "n_edges": graph.n_edges,
            "n_components": outputs.n_components,
            "largest_normalized": float(normalized[-1]),
            "largest_scaled": float(decompose(outputs, scaled=True).eigenvalues[-1]),
            "beyond_3_hops": hops,
            "unevenness": [_unevenness(decompose(one, scaled=True).eigenvalues) for one in graphs],
        } | {"shown": picture(graph, is_input)}


@dataclass(frozen=True)
class ProgramJob:
    """One baseline of the released program on one training size of a data set."""

    data: str
    size: int
    row: str

    @property
    def name(self) -> str:
        """Name for people."""
        return f"{self.data} {self.size}, {self.row}"

    def run(self, folder: Folder = None) -> dict[str, Any]:
        """Follow the program, and score the test sets as it does and as the paper says."""
        task = problem(self.data, self.size, RELEASED, folder)
        training = task.inputs, task.signals
        found = run_baseline(task.graph, self.row, training, task.tests[AS_RELEASED], task.set_size)
        result: dict[str, Any] = {"data": self.data, "size": self.size, "row": self.row, "stopped": found.stopped}
        for name, scores in (("as_released", found.as_released), ("once", found.once)):
            result[name] = [score + task.shift for score in scores]
        return result


Job = FilterJob | PredictionJob | GraphJob | ProgramJob
RANDOM_GRAPHS = {"sensor": sensor_graph, "barabasi-albert": barabasi_albert_graph}


def jobs_of(study: Study) -> list[Job]:
    """The jobs of an experiment, in the order of its results."""
    if isinstance(study, GraphStudy):
        return [GraphJob(graph) for graph in study.graphs]
    if isinstance(study, ProgramStudy):
        return [ProgramJob(data, size, row) for data, size in study.columns for row in study.rows]
    if isinstance(study, FilterStudy):
        return [
            FilterJob(
                study.graph,
                study.input_covariance,
                study.n_nodes,
                study.n_signals,
                truth,
                snr,
                seed,
                variants_of(study, truth),
                seed == study.seeds[0],
            )
            for truth in study.truths
            for snr in study.snrs
            for seed in study.seeds
        ]
    return [
        PredictionJob(study.data, size, split, model, _is_shown(study, size, split, model))
        for size in study.sizes
        for split in study.splits
        for model in study.models
    ]


def _is_shown(study: PredictionStudy, size: int, split: int, model: Model) -> bool:
    """Whether a job keeps what the pictures of the data need: one a study does."""
    return split == RELEASED and size == max(study.sizes) and model == study.models[0]


def variants_of(study: FilterStudy, truth: Truth) -> tuple[Variant, ...]:
    """Ways that a filter study learns each draw of a truth in."""
    degrees = study.degrees if study.degrees and truth.is_shown else (truth.degree,)
    found = [Variant(name, degree) for name in (JOINT, NOISE_KNOWN) for degree in degrees]
    found += [Variant(BY_ALGORITHM_1, degree, Lagrangian()) for degree in degrees if degree <= HIGHEST_DEGREE]
    if len(study.seeds) > 1:  # not in a cut
        found.append(Variant(BY_FILTER_SEARCH, truth.degree, Sqp(n_restarts=N_FILTER_STARTS)))
    if study.variants and truth.is_shown:
        some = variants(AUTHORS_MULTIPLIERS, RANDOM_STARTS[:1])
        found += [Variant(name, truth.degree, solver) for name, solver in some.items()]
    return tuple(found)


def draw(job: FilterJob) -> tuple[Graph, Any, Dataset]:
    """Graph, input covariance (or None) and signals; every truth and ratio of a seed has the same graph."""
    random_state = np.random.default_rng(job.seed)
    graph = RANDOM_GRAPHS[job.graph](job.n_nodes, random_state)
    covariance = None
    if job.input_covariance == "inverse Wishart":
        covariance = draw_inverse_wishart(job.n_signals, random_state)
    drawn = draw_filtered_signals(
        graph, job.truth.coefficients, job.n_signals, random_state, snr=job.snr, input_covariance=covariance
    )
    return graph, covariance, drawn


def _fit(model: GraphGPRegressor, inputs: Any, signals: Any) -> GraphGPRegressor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the results say which fits did not converge
        return model.fit(inputs, signals)


def _recovery(model: GraphGPRegressor, truth: Polynomial, true_response: Any) -> dict[str, Any]:
    """Relative L2 error on the eigenvalues, of the filter itself and of both divided by their maximum."""
    eigenvalues = model.spectrum_.eigenvalues
    kernel: Polynomial = model.graph_kernel_[0]  # type: ignore[assignment]
    response = kernel.response(eigenvalues)
    shape, true_shape = kernel.rescaled().response(eigenvalues), truth.rescaled().response(eigenvalues)
    return {
        "coefficients": kernel.coefficients.tolist(),
        "error": _relative(response, true_response),
        "shape_error": _relative(shape, true_shape),
        "smallest_share": float(np.min(response) / np.max(np.abs(response))),
    }


def _relative(found: Any, true: Any) -> float:
    return float(np.linalg.norm(found - true) / np.linalg.norm(true))


def _summary(model: GraphGPRegressor) -> dict[str, Any]:
    fit = model.fits_[int(np.argmax(model.kernel_weights_))]
    return {
        "log_likelihood": model.log_marginal_likelihood_,
        "noise_variance": model.noise_variance_,
        "converged": all(fit.converged for fit in model.fits_),
        "outcome": fit.outcome.name,
        "message": fit.message,
        "first_stage": fit.stages[0].name,
        "n_evaluations": sum(
            stage.n_evaluations for stage in {stage: None for fit in model.fits_ for stage in fit.stages}
        ),
    }


def _score(model: Model, task: Problem) -> dict[str, Any]:
    estimator, has_stopped = _released(model, task) if model.solver is None else (_estimator(model, task), True)
    fitted = _fit(estimator, task.inputs, task.signals)
    result = {
        "scores": {order: _set_scores(fitted, task, *test) for order, test in task.tests.items()},
        "shift": task.shift,
    } | _summary(fitted)
    result["converged"] = result["converged"] and has_stopped
    kernel = fitted.graph_kernel_[0]
    if len(fitted.graph_kernel_) == 1 and isinstance(kernel, Polynomial):
        response = kernel.response(fitted.spectrum_.eigenvalues)
        result["coefficients"] = kernel.coefficients.tolist()
        result["smallest_response"] = float(np.min(response))
        result["smallest_share"] = float(np.min(response) / np.max(np.abs(response)))
    if len(fitted.kernel_weights_) > 1:
        result["weights"] = fitted.kernel_weights_.tolist()
    restarts = [value for fit in fitted.fits_ for value in fit.restarts if np.isfinite(value)]
    if restarts:
        result["restarts"] = restarts
    return result


def _estimator(model: Model, task: Problem) -> GraphGPRegressor:
    return GraphGPRegressor(
        task.graph,
        Stacking(model.graph_kernel, n_draws=model.n_draws),
        _input_kernel(task.inputs),
        prior=model.prior,
        solver=model.solver or JOINTLY,
        **PLAIN,
    )


def _released(model: Model, task: Problem) -> tuple[GraphGPRegressor, bool]:
    """The model that the authors' released program ends at, with nothing left to learn, and whether it stopped."""
    assert isinstance(model.graph_kernel, Polynomial)
    degree = model.graph_kernel.degree
    assert isinstance(degree, int)
    found = run_released(task.graph, task.inputs, task.signals, degree, task.n_grid)
    filtered = Polynomial.from_coefficients(
        found.coefficients * np.sqrt(found.input_variance), constraint=None, fixed=True
    )
    kernel = RBF(np.sqrt(found.length), "fixed")
    noise = found.noise_variance
    return GraphGPRegressor(task.graph, filtered, kernel, noise_variance=noise, prior=None, **PLAIN), found.stopped


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


def _fourier(task: Problem) -> dict[str, Any]:
    """Graph Fourier coefficients of the training signals."""
    spectrum = decompose(task.graph, scaled=True)
    return {"eigenvalues": spectrum.eigenvalues.tolist(), "fourier": spectrum.transform(task.signals).tolist()}


def picture(graph: Graph, is_input: Any) -> dict[str, Any]:
    """Data for a picture of a graph: places, edges, and the nodes that are inputs."""
    rows, columns = graph.weights.nonzero()
    edges = [(int(i), int(j)) for i, j in zip(rows, columns, strict=True) if i < j]
    places = graph.coordinates
    if places is None:
        places = spread_out(graph.n_nodes, edges)
    return {
        "edges": [list(edge) for edge in edges],
        "coordinates": np.asarray(places).tolist(),
        "arbitrary_places": graph.coordinates is None,
        "is_input": np.asarray(is_input).tolist(),
    }


def spread_out(n_nodes: int, edges: list[tuple[int, int]]) -> Any:
    """Arbitrary places, as the paper's are: those of springs along the edges, each component on its own."""
    import networkx as nx

    graph = nx.Graph(edges)
    graph.add_nodes_from(range(n_nodes))
    places = np.empty((n_nodes, 2))
    left, bottom, height = 0.0, 0.0, 0.0
    for component in sorted(nx.connected_components(graph), key=len, reverse=True):
        nodes = sorted(component)
        width = np.sqrt(len(nodes))
        if left > 2.5 * np.sqrt(n_nodes):  # a new row
            left, bottom, height = 0.0, bottom - height, 0.0
        own = nx.kamada_kawai_layout(graph.subgraph(nodes)) if len(nodes) > 1 else {nodes[0]: np.zeros(2)}
        places[nodes] = width * np.array([own[node] for node in nodes]) + [left + width, bottom - width]
        left += 2.2 * width
        height = max(height, 2.2 * width)
    return places


def _unevenness(eigenvalues: Any) -> float:
    """Largest distance between the shares of eigenvalues below a point of [0, 1] and the point: 0 if evenly spread."""
    shares = np.arange(len(eigenvalues) + 1) / len(eigenvalues)
    return float(max(np.max(shares[1:] - eigenvalues), np.max(eigenvalues - shares[:-1])))


def _hops_beyond(graph: Graph, degree: int) -> float:
    """Largest entry of a filter between nodes more than its degree in edges apart, over its largest entry."""
    matrix = graph.laplacian(scaled=True).toarray()
    filtered = np.sum([np.linalg.matrix_power(matrix, power) for power in range(degree + 1)], axis=0)
    near = np.linalg.matrix_power(np.eye(graph.n_nodes) + (graph.weights.toarray() != 0), degree) > 0
    return float(np.max(np.abs(filtered[~near]), initial=0.0) / np.max(np.abs(filtered)))
