"""Problems for `bench_peers.py`, a clock, and each rival: how it learns, what it learnt, and how it predicts.

Everyone learns the same model from the same signals, as far as it can: signals at inputs have the covariance
``K (x) g(L)^2 + s I``, with a squared exponential K of unit variance and a filter g of degree 3.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from _large import INPUT_KERNEL, TRUTH, draw_signals, relative_error
from _missing_values import at_random
from _reporting import ROOT
from scipy.linalg import solve_triangular
from settings import PAPER, paper_kernel
from sklearn.gaussian_process.kernels import RBF

from spectralgp import Graph, GraphGPRegressor, Polynomial

Array = np.ndarray
DEGREE, N_FEATURES, N_NEIGHBORS, N_NEW, MISSING_SHARE = 3, 3, 8, 5, 0.3
LEARNING_RATE, MOST_STEPS = 0.05, 2_000  # of Adam
PATIENCE, LEAST_GAIN_NATS = 50, 0.1  # steps of Adam within which it must gain so much
OUT_OF_TIME = "out of time"
GRID_SIGNALS = 10  # that the released program's grid search looks at
MOST_DENSE = 6_000  # values, up to which the likelihood of incomplete signals is computed by a dense matrix


@dataclass(frozen=True, eq=False)
class Problem:
    """Signals of a known filter on a graph of random points, and later ones to predict."""

    weights: Any
    inputs: Array
    signals: Array  # NaN is what was not observed
    new_inputs: Array
    new_signals: Array

    @classmethod
    def drawn(cls, n_nodes: int, n_signals: int, is_incomplete: bool) -> Problem:
        rng = np.random.default_rng(0)
        graph = Graph.from_points(rng.random((n_nodes, 2)), N_NEIGHBORS)
        inputs = rng.standard_normal((n_signals + N_NEW, N_FEATURES))
        signals, _ = draw_signals(graph, TRUTH, inputs, n_signals + N_NEW, rng)
        known = signals[:n_signals].copy()
        if is_incomplete:
            known[at_random(known.shape, MISSING_SHARE, np.random.default_rng(1))] = np.nan
        return cls(graph.weights, inputs[:n_signals], known, inputs[n_signals:], signals[n_signals:])

    @property
    def graph(self) -> Graph:
        """The graph, which remembers nothing."""
        return Graph(self.weights)

    @cached_property
    def laplacian(self) -> Array:
        return self.graph.laplacian().toarray()

    @cached_property
    def spectrum(self) -> tuple[Array, Array]:
        """Eigenvalues, the largest of which is one, and eigenvectors."""
        values, vectors = np.linalg.eigh(self.laplacian)
        return values / values[-1], vectors

    @property
    def start(self) -> Learnt:
        """Common start: a flat filter, and the typical distance of the inputs."""
        variance, length = float(np.nanvar(self.signals)), float(paper_kernel(self.inputs).length_scale)
        return Learnt(np.full(len(self.laplacian), variance), length, 0.1 * variance)


@dataclass(frozen=True, eq=False)
class Learnt:
    """A model: the power ``g^2`` at each eigenvalue, the length scale of the inputs, the variance of the noise."""

    power: Array
    length_scale: float
    noise_variance: float

    def log_likelihood(self, problem: Problem) -> float | None:
        """Likelihood of the observed values; None where that takes too large a matrix."""
        observed, vectors = np.isfinite(problem.signals), problem.spectrum[1]
        covariance = RBF(self.length_scale)(problem.inputs)
        if observed.all():
            values, across = np.linalg.eigh(covariance)
            variances = np.maximum(values, 0)[:, None] * self.power + self.noise_variance
            squares = np.square(across.T @ problem.signals @ vectors)
            return float(-0.5 * np.sum(squares / variances + np.log(2 * np.pi * variances)))
        if np.count_nonzero(observed) > MOST_DENSE:
            return None
        signals, nodes = np.nonzero(observed)
        entries = ((vectors * self.power) @ vectors.T)[np.ix_(nodes, nodes)]
        entries *= covariance[np.ix_(signals, signals)]
        entries[np.diag_indices_from(entries)] += self.noise_variance
        factor = np.linalg.cholesky(entries)
        del entries
        white = solve_triangular(factor, problem.signals[observed], lower=True)
        return float(-0.5 * (white @ white + white.size * np.log(2 * np.pi)) - np.sum(np.log(np.diag(factor))))

    def filter_error(self, problem: Problem) -> float:
        return relative_error(TRUTH.response(problem.spectrum[0]), np.sqrt(np.maximum(self.power, 0)))


@dataclass(eq=False)
class Clock:
    """Time since learning began, and the state learnt by then; its own work is not counted."""

    limit: float  # seconds of the processor, or on a GPU those of the clock
    is_wall: bool = False
    marks: list[tuple[float, float, Any]] = field(default_factory=list)  # processor, clock, state
    _start: tuple[float, float] = (0.0, 0.0)

    def begin(self) -> None:
        self._start, self.marks = (time.process_time(), time.perf_counter()), []

    @property
    def spent(self) -> tuple[float, float]:
        return time.process_time() - self._start[0], time.perf_counter() - self._start[1]

    def mark(self, state: Any) -> bool:
        """Note a state; whether time is up."""
        self.marks.append((*self.spent, state))
        return self.marks[-1][self.is_wall] > self.limit


@dataclass(frozen=True, eq=False)
class Answer:
    """A method applied to a problem."""

    learnt: Callable[[Any], Learnt]  # of the state at a mark
    predict: Callable[[], tuple[Array, Array]]  # means at the new inputs, and variances without noise
    says: str = ""  # how it ended


Rival = Callable[[Problem, Clock, str], Answer]


def ours(problem: Problem, clock: Clock, device: str) -> Answer:
    """This package, the paper's model without a prior."""
    settings = PAPER | {"center": None, "prior": None}
    model = GraphGPRegressor(problem.graph, Polynomial(DEGREE), INPUT_KERNEL, **settings)
    model.fit(problem.inputs, problem.signals)
    clock.mark(None)

    def learnt(state: Any) -> Learnt:
        power = model.graph_kernel_[0].response(problem.spectrum[0]) ** 2
        return Learnt(power, float(model.input_kernel_[0].length_scale), model.noise_variance_)

    def predict() -> tuple[Array, Array]:
        mean, std = model.predict(problem.new_inputs, return_std=True)
        return mean, std**2

    return Answer(learnt, predict, "converged" if model.fits_[0].converged else "not converged")


def sklearn_gp(problem: Problem, clock: Clock, device: str) -> Answer:
    """scikit-learn's, in which nodes share hyperparameters and nothing else: a flat filter."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, WhiteKernel

    start = problem.start
    kernel = ConstantKernel(float(start.power[0])) * RBF(start.length_scale) + WhiteKernel(start.noise_variance)
    model = GaussianProcessRegressor(kernel).fit(problem.inputs, problem.signals)
    clock.mark(None)

    def learnt(state: Any) -> Learnt:
        signal, noise = model.kernel_.k1, model.kernel_.k2
        power = np.full(len(problem.laplacian), signal.k1.constant_value)
        return Learnt(power, float(signal.k2.length_scale), float(noise.noise_level))

    def predict() -> tuple[Array, Array]:
        mean, std = model.predict(problem.new_inputs, return_std=True)
        return mean, std**2 - model.kernel_.k2.noise_level

    return Answer(learnt, predict)


def released(problem: Problem, clock: Clock, device: str, is_dense: bool = True) -> Answer:
    """The authors' program: its steps, with the matrices of signals by nodes that it has."""
    sys.path.insert(0, str(ROOT))
    from reproduction import released as program

    if is_dense:
        program._Data = _dense_data(program._Data)
    found = program.run_released(problem.graph, problem.inputs, problem.signals, DEGREE, GRID_SIGNALS)
    clock.mark(None)
    values, vectors = problem.spectrum
    power = found.input_variance * np.vander(values, DEGREE + 1, increasing=True).dot(found.coefficients) ** 2
    learnt = Learnt(power, float(np.sqrt(found.length)), found.noise_variance)

    def predict() -> tuple[Array, Array]:
        kernel, n_nodes = RBF(learnt.length_scale), len(values)
        nodes = (vectors * power) @ vectors.T
        covariance = np.kron(kernel(problem.inputs), nodes)
        covariance[np.diag_indices_from(covariance)] += learnt.noise_variance
        across = np.kron(kernel(problem.new_inputs, problem.inputs), nodes)
        solved = np.linalg.solve(covariance, np.column_stack([problem.signals.ravel(), across.T]))
        variance = np.tile(np.diag(nodes), N_NEW) - np.sum(across * solved[:, 1:].T, axis=1)
        return (across @ solved[:, 0]).reshape(N_NEW, n_nodes), variance.reshape(N_NEW, n_nodes)

    return Answer(lambda state: learnt, predict, "stopped by itself" if found.stopped else "stopped by our limit")


def _dense_data(base: type) -> type:
    class Dense(base):  # type: ignore[misc]
        """The likelihood with a dense matrix, as the program computes it."""

        def log_likelihood(self, beta: Array, length_: float, noise_: float) -> tuple[float, Array, float, float]:
            length, noise = np.logaddexp(0, length_), np.logaddexp(0, noise_)
            covariance = self.variance * np.exp(-0.5 * self.squared / length)
            response = self.powers @ beta
            shape = self.coefficients.shape
            whole = np.kron(covariance, np.diag(response**2))
            whole[np.diag_indices_from(whole)] += noise
            inverse = np.linalg.inv(whole)
            solved = inverse @ self.coefficients.ravel()
            value = -0.5 * float(np.linalg.slogdet(whole)[1] + self.coefficients.ravel() @ solved)
            slopes = 0.5 * (np.outer(solved, solved) - inverse).reshape(*shape, *shape)
            by_frequency = np.einsum("njmj->jnm", slopes)
            of_power = np.einsum("jnm,nm->j", by_frequency, covariance)
            of_covariance = np.einsum("jnm,j->nm", by_frequency, response**2)
            of_length = float(np.sum(of_covariance * covariance * self.squared)) / (2 * length**2)
            softplus = 1 / (1 + np.exp(-np.array([length_, noise_])))
            of_beta = self.powers.T @ (2 * response * of_power)
            return value, of_beta, of_length * softplus[0], float(np.einsum("njnj->", slopes)) * softplus[1]

    return Dense


def floor(problem: Problem, clock: Clock, device: str) -> Answer:
    """The least that any method needs: both eigendecompositions once, and the signals in both bases."""
    vectors = np.linalg.eigh(problem.laplacian)[1]
    across = np.linalg.eigh(RBF(problem.start.length_scale)(problem.inputs))[1]
    across.T @ np.nan_to_num(problem.signals) @ vectors
    clock.mark(None)
    return Answer(lambda state: problem.start, lambda: (problem.new_signals * 0, problem.new_signals * 0 + 1))


def _torch() -> Any:
    import torch

    warnings.filterwarnings("ignore")  # GPyTorch says where it adds jitter, and torch what will change
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    torch.manual_seed(0)
    return torch


def _node_kernel(problem: Problem, kind: str, device: str) -> Any:
    """A covariance between nodes as GPyTorch has kernels: the polynomial, or GeometricKernels' Matern."""
    import gpytorch
    import torch

    if kind == "polynomial":
        laplacian = torch.as_tensor(problem.laplacian, device=device)
        turned = 2 * laplacian / torch.linalg.eigvalsh(laplacian)[-1] - torch.eye(len(laplacian), device=device)
        powers = [torch.eye(len(laplacian), dtype=torch.float64, device=device), turned]
        while len(powers) <= DEGREE:
            powers.append(2 * turned @ powers[-1] - powers[-2])
        basis = torch.stack(powers)

        class Filter(gpytorch.kernels.Kernel):
            def __init__(self) -> None:
                super().__init__()
                first = [float(np.sqrt(problem.start.power[0])), *[0.0] * DEGREE]
                self.coefficients = torch.nn.Parameter(torch.tensor(first, dtype=torch.float64, device=device))

            def forward(self, x1: Any, x2: Any, diag: bool = False, **rest: Any) -> Any:
                root = torch.tensordot(self.coefficients, basis, 1)
                first, second = x1[..., 0].long(), x2[..., 0].long()
                if diag:
                    return (root @ root).diagonal()[first]
                whole = root @ root
                everything = torch.arange(len(whole), device=device)
                if torch.equal(first, everything) and torch.equal(second, everything):
                    return whole
                return whole[first][..., second]

        return Filter()
    import geometric_kernels.torch  # noqa: F401
    from geometric_kernels.frontends.gpytorch import GPyTorchGeometricKernel
    from geometric_kernels.kernels import MaternGeometricKernel
    from geometric_kernels.spaces import Graph as Space

    adjacency = torch.as_tensor(problem.weights.toarray(), device=device)
    inner = GPyTorchGeometricKernel(MaternGeometricKernel(Space(adjacency)), nu=1.5, trainable_nu=True)
    scaled = gpytorch.kernels.ScaleKernel(inner)
    scaled.outputscale = float(problem.start.power[0])
    return scaled.double()


class _Model:
    """Base of methods on torch: parameters as a state, and the model at a state."""

    def __init__(self, problem: Problem, model: Any, likelihood: Any, inputs: Any, nodes: Any, clock: Clock) -> None:
        self.problem, self.model, self.likelihood, self.clock = problem, model, likelihood, clock
        self.inputs, self.nodes = inputs, nodes

    def state(self) -> dict[str, Any]:
        return {name: value.detach().clone() for name, value in self.named().items()}

    def named(self) -> dict[str, Any]:
        return dict(self.model.named_parameters())

    def learnt(self, state: dict[str, Any]) -> Learnt:
        import torch

        with torch.no_grad():
            for name, value in self.named().items():
                value.copy_(state[name])
            values, vectors = self.problem.spectrum
            if hasattr(self.nodes, "coefficients"):
                response = np.polynomial.chebyshev.chebval(2 * values - 1, self.nodes.coefficients.cpu().numpy())
                power = response**2
            else:
                places = torch.arange(len(values), dtype=torch.float64)[:, None]
                covariance = self.nodes(places).to_dense().cpu().numpy()
                power = np.einsum("mj,mk,kj->j", vectors, covariance, vectors, optimize=True)
            return Learnt(power, float(self.inputs.lengthscale), float(self.likelihood.noise))

    def adam(self, loss: Callable[[], Any], size: int) -> str:
        import torch

        optimizer = torch.optim.Adam(self.model.parameters(), lr=LEARNING_RATE)
        reached: list[float] = []
        for _ in range(MOST_STEPS):
            optimizer.zero_grad()
            value = loss()
            value.backward()
            if self.clock.mark(self.state()):
                return f"stopped after {len(reached) + 1} steps"
            optimizer.step()
            reached.append(-size * float(value))
            if len(reached) > PATIENCE and max(reached[-PATIENCE:]) < max(reached[:-PATIENCE]) + LEAST_GAIN_NATS:
                return f"{len(reached)} steps"
        return f"{MOST_STEPS} steps"

    def bfgs(self, loss: Callable[[], Any]) -> str:
        import torch
        from scipy.optimize import minimize

        parameters = list(self.model.parameters())

        class Up(Exception):
            pass

        def value_and_slope(x: Array) -> tuple[float, Array]:
            place = 0
            for one in parameters:
                with torch.no_grad():
                    one.copy_(torch.as_tensor(x[place : place + one.numel()]).reshape(one.shape))
                place, one.grad = place + one.numel(), None
            value = loss()
            value.backward()
            if self.clock.mark(self.state()):
                raise Up
            return float(value), np.concatenate([one.grad.cpu().numpy().ravel() for one in parameters])

        first = np.concatenate([one.detach().cpu().numpy().ravel() for one in parameters])
        try:
            found = minimize(value_and_slope, first, jac=True, method="L-BFGS-B", options={"maxiter": 500})
        except Up:
            return f"stopped after {len(self.clock.marks)} evaluations"
        return f"{found.nfev} evaluations"


def gpytorch_kronecker(problem: Problem, clock: Clock, device: str, kind: str, optimizer: str) -> Answer:
    """GPyTorch's Kronecker multitask model with a covariance of tasks of our own; complete signals."""
    torch = _torch()
    import gpytorch
    from linear_operator.operators import DenseLinearOperator, KroneckerProductLinearOperator

    inputs = torch.as_tensor(problem.inputs, device=device)
    signals = torch.as_tensor(problem.signals, device=device)
    n_nodes, start = signals.shape[1], problem.start
    places = torch.arange(n_nodes, dtype=torch.float64, device=device)[:, None]

    class Model(gpytorch.models.ExactGP):
        def __init__(self, likelihood: Any) -> None:
            super().__init__(inputs, signals, likelihood)
            self.of_inputs = gpytorch.kernels.RBFKernel().double()
            self.of_inputs.lengthscale = start.length_scale
            self.of_nodes = _node_kernel(problem, kind, device)

        def forward(self, x: Any) -> Any:
            nodes = DenseLinearOperator(self.of_nodes(places).to_dense())
            covariance = KroneckerProductLinearOperator(self.of_inputs(x), nodes)
            mean = torch.zeros(len(x), n_nodes, dtype=torch.float64, device=device)
            return gpytorch.distributions.MultitaskMultivariateNormal(mean, covariance)

    likelihood = gpytorch.likelihoods.MultitaskGaussianLikelihood(n_nodes, has_task_noise=False).double()
    likelihood.noise = start.noise_variance
    model = Model(likelihood).to(device)
    whole = _Model(problem, model, likelihood, model.of_inputs, model.of_nodes, clock)
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    model.train()

    def loss() -> Any:
        return -objective(model(inputs), signals)

    says = whole.adam(loss, signals.numel()) if optimizer == "adam" else whole.bfgs(loss)

    def predict() -> tuple[Array, Array]:
        model.eval()
        with torch.no_grad():
            found = model(torch.as_tensor(problem.new_inputs, device=device))
            return found.mean.cpu().numpy(), found.variance.cpu().numpy()

    return Answer(whole.learnt, predict, says)


def gpytorch_dense(problem: Problem, clock: Clock, device: str) -> Answer:
    """GPyTorch with a covariance among all observed values: its way with missing values."""
    torch = _torch()
    import gpytorch

    observed = np.isfinite(problem.signals)
    rows, columns = np.nonzero(observed)
    pairs = torch.as_tensor(np.column_stack([problem.inputs[rows], columns]), device=device)
    values, start = torch.as_tensor(problem.signals[observed], device=device), problem.start

    class Model(gpytorch.models.ExactGP):
        def __init__(self, likelihood: Any) -> None:
            super().__init__(pairs, values, likelihood)
            self.of_inputs = gpytorch.kernels.RBFKernel().double()
            self.of_inputs.lengthscale = start.length_scale
            self.of_nodes = _node_kernel(problem, "polynomial", device)

        def forward(self, x: Any) -> Any:
            covariance = self.of_inputs(x[..., :-1]) * self.of_nodes(x[..., -1:])
            mean = torch.zeros(len(x), dtype=torch.float64, device=device)
            return gpytorch.distributions.MultivariateNormal(mean, covariance)

    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    likelihood.noise = start.noise_variance
    model = Model(likelihood).to(device)
    whole = _Model(problem, model, likelihood, model.of_inputs, model.of_nodes, clock)
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    model.train()
    says = whole.bfgs(lambda: -objective(model(pairs), values))

    def predict() -> tuple[Array, Array]:
        model.eval()
        shape = problem.new_signals.shape
        wanted = np.column_stack([np.repeat(problem.new_inputs, shape[1], axis=0), np.tile(np.arange(shape[1]), N_NEW)])
        with torch.no_grad():
            found = model(torch.as_tensor(wanted, device=device))
            return found.mean.cpu().numpy().reshape(shape), found.variance.cpu().numpy().reshape(shape)

    return Answer(whole.learnt, predict, says)


def botorch_latent(problem: Problem, clock: Clock, device: str) -> Answer:
    """BoTorch's LatentKroneckerGP, with its own iterative methods; by Adam, since its likelihoods are random."""
    torch = _torch()
    import gpytorch
    from botorch.models.latent_kronecker_gp import LatentKroneckerGP

    start = problem.start
    inputs = torch.as_tensor(problem.inputs, device=device)
    places = torch.arange(problem.signals.shape[1], dtype=torch.float64, device=device)[:, None]
    of_inputs = gpytorch.kernels.RBFKernel().double()
    of_inputs.lengthscale = start.length_scale
    of_nodes = _node_kernel(problem, "polynomial", device)
    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    likelihood.noise = start.noise_variance
    signals = torch.as_tensor(problem.signals, device=device)
    model = LatentKroneckerGP(
        inputs, places, signals, likelihood, covar_module_X=of_inputs, covar_module_T=of_nodes, outcome_transform=None
    ).to(device)
    whole = _Model(problem, model, likelihood, of_inputs, of_nodes, clock)

    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    model.train()
    with model.use_iterative_methods():
        says = whole.adam(lambda: -objective(model(inputs), model.train_targets), model.train_targets.numel())

    def predict() -> tuple[Array, Array]:
        model.eval()
        shape = problem.new_signals.shape
        with torch.no_grad(), model.use_iterative_methods():
            found = model.posterior(torch.as_tensor(problem.new_inputs, device=device))
            return found.mean.cpu().numpy().reshape(shape), found.variance.cpu().numpy().reshape(shape)

    return Answer(whole.learnt, predict, says)


COMPLETE: dict[str, Rival] = {
    "floor": floor,
    "spectralgp": ours,
    "GPyTorch, L-BFGS": lambda *given: gpytorch_kronecker(*given, kind="polynomial", optimizer="bfgs"),
    "GPyTorch, Adam": lambda *given: gpytorch_kronecker(*given, kind="polynomial", optimizer="adam"),
    "GeometricKernels": lambda *given: gpytorch_kronecker(*given, kind="matern", optimizer="bfgs"),
    "scikit-learn": sklearn_gp,
    "paper, dense": released,
    "paper, eigenbasis": lambda *given: released(*given, is_dense=False),
}
INCOMPLETE: dict[str, Rival] = {
    "floor": floor,
    "spectralgp": ours,
    "BoTorch LKGP": botorch_latent,
    "GPyTorch, dense": gpytorch_dense,
}


class Watch(threading.Thread):
    """Ends this process after a number of further seconds; the system's own limit would make its clock coarse."""

    def __init__(self, is_wall: bool) -> None:
        super().__init__(daemon=True)
        self.now = time.perf_counter if is_wall else time.process_time
        self.end = np.inf
        self.start()

    def allow(self, seconds: float) -> None:
        self.end = self.now() + seconds

    def run(self) -> None:
        while self.now() < self.end:
            time.sleep(0.2)
        print(OUT_OF_TIME, file=sys.stderr, flush=True)
        os._exit(1)
