"""Problems for solvers: tasks with log posteriors by dense algebra, and tasks that have nothing to learn from."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls
from sklearn.gaussian_process.kernels import RBF

import oracle
from cases import GRAPHS, WEIGHTS
from spectralgp.graphs import Graph
from spectralgp.learning import Task
from spectralgp.model.kernels import Polynomial
from spectralgp.model.spectra import decompose

N_SIGNALS = 8
INPUTS = np.random.default_rng(0).uniform(-2, 2, (N_SIGNALS, 2))
LENGTH_SCALE = 1.2

TRUTHS = {
    "low-pass": lambda t: np.exp(-3 * t),
    "high-pass": lambda t: 0.1 + t**2,
    "ramp": lambda t: np.maximum(t - 0.3, 0.0),  # an unconstrained line turns negative at zero
    "band-pass": lambda t: np.maximum(4 * t * (1 - t) - 0.5, 0.0),
}


def signals_of(truth: str, weights: np.ndarray, seed: int = 0, noise: float = 1e-3) -> np.ndarray:
    matrix = oracle.laplacian(weights, scaled=True)
    dense = oracle.from_filter(oracle.matrix_function(matrix, TRUTHS[truth]))
    covariance = oracle.rbf(INPUTS, INPUTS, LENGTH_SCALE)
    return oracle.draw(covariance, dense, noise, np.random.default_rng(seed))


@dataclass(frozen=True)
class Problem:
    """A task, its graph, and the log posterior by dense algebra and a hand-written prior."""

    task: Task
    weights: np.ndarray
    kernel: Polynomial

    @property
    def graph(self) -> Graph:
        return Graph(self.weights)

    @property
    def eigenvalues(self) -> np.ndarray:
        return decompose(self.graph, scaled=True).eigenvalues

    def log_posterior(self, x: np.ndarray) -> float:
        """At ``x`` = Chebyshev coefficients on [0, 1], log length scale, log noise variance (unless fixed)."""
        task, n_graph = self.task, self.kernel.degree + 1
        chebyshev, log_length = x[:n_graph], x[n_graph]
        noise = np.exp(x[n_graph + 1]) if task.known_noise is None else task.known_noise
        coefficients = np.polynomial.Chebyshev(chebyshev, domain=[0, 1]).convert(kind=np.polynomial.Polynomial).coef
        matrix = oracle.laplacian(self.weights, scaled=True)
        dense = oracle.polynomial(matrix, coefficients)
        value = oracle.log_likelihood(task.signals.values, oracle.rbf(INPUTS, INPUTS, np.exp(log_length)), dense, noise)
        if task.prior == "weak":
            rough = sum(p**6 * c**2 for p, c in enumerate(chebyshev))
            value -= 0.05 * rough / (np.trace(dense) / len(dense) + noise)
            squared = [np.sum((a - b) ** 2) for i, a in enumerate(INPUTS) for b in INPUTS[:i]]
            value -= 0.5 * (2 * log_length - np.log(np.median(squared))) ** 2
            if task.known_noise is None:
                within = float(np.mean(np.var(task.signals.values, axis=0)))
                value += oracle.noise_log_prior(noise, within, len(dense))
        return value

    def point(self, fit) -> np.ndarray:
        noise = [np.log(fit.model.noise_variance)] if self.task.known_noise is None else []
        return np.concatenate([fit.model.graph_kernel.theta, fit.model.input_kernel.theta, noise])


def problem(truth, degree, constraint="eigenvalues", prior=None, noise_variance=None, graph="random", **options):
    signals = signals_of(truth, WEIGHTS[graph], **options)
    task = Task.of(GRAPHS[graph], RBF(1.0), INPUTS, signals, noise_variance, prior)
    return Problem(task, WEIGHTS[graph], Polynomial(degree, constraint))


def lowest_response(problem, fit) -> float:
    points = np.linspace(0, 1, 2001) if problem.kernel.constraint == "interval" else problem.eigenvalues
    return float(np.min(fit.model.graph_kernel.response(points)))


def kkt_residual(problem: Problem, fit) -> float:
    """Largest entry of the dense Lagrangian's gradient, multipliers by non-negative least squares."""
    x = problem.point(fit)
    gradient = oracle.jacobian(problem.log_posterior, x, 1e-4)
    kernel = fit.model.graph_kernel
    rows = []
    if problem.kernel.constraint is not None:
        points = kernel.extrema() if problem.kernel.constraint == "interval" else problem.eigenvalues
        response = kernel.response(points)
        touching = points[response <= 1e-6 * np.max(response)]
        padding = np.zeros((touching.size, x.size - kernel.theta.size))
        rows += list(np.hstack([np.polynomial.chebyshev.chebvander(2 * touching - 1, kernel.degree), padding]))
    if problem.task.known_noise is None:
        low, high = problem.task.noise_bounds
        if abs(x[-1] - low) < 1e-8:
            rows.append(np.eye(x.size)[-1])
        if abs(x[-1] - high) < 1e-8:
            rows.append(-np.eye(x.size)[-1])
    if not rows:
        return float(np.max(np.abs(gradient)))
    multipliers, _ = nnls(np.array(rows).T, -gradient)
    return float(np.max(np.abs(gradient + np.array(rows).T @ multipliers)))


AWKWARD = {
    "edgeless graph": (np.zeros((5, 5)), lambda rng: rng.standard_normal((N_SIGNALS, 5))),
    "single node": (np.zeros((1, 1)), lambda rng: rng.standard_normal((N_SIGNALS, 1))),
    "disconnected graph": (WEIGHTS["disconnected"], lambda rng: rng.standard_normal((N_SIGNALS, 8))),
    "one signal": (WEIGHTS["random"], lambda rng: rng.standard_normal((1, 7))),
    "constant signals": (WEIGHTS["random"], lambda rng: np.ones((N_SIGNALS, 7))),
    "zero signals": (WEIGHTS["random"], lambda rng: np.zeros((N_SIGNALS, 7))),
    "repeated eigenvalues": (WEIGHTS["complete"], lambda rng: rng.standard_normal((N_SIGNALS, 6))),
    "two signals": (WEIGHTS["ring"], lambda rng: rng.standard_normal((2, 6)).cumsum(axis=1)),
}


def awkward_task(name: str, prior: str | None) -> Task:
    weights, make = AWKWARD[name]
    signals = make(np.random.default_rng(3))
    return Task.of(Graph(weights), RBF(1.0), INPUTS[: len(signals)], signals, prior=prior)
