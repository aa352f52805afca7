"""What the contracts run over: one list of graphs, one list of every graph kernel with its dense truth."""

import io
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

import oracle
from spectralgp import (
    Cosine,
    GlobalFilter,
    LocalAverage,
    Matern,
    PinnedFilter,
    PseudoInverse,
    RandomWalk,
    RegularizedLaplacian,
)
from spectralgp.graphs import Graph
from spectralgp.model.kernels import Diffusion, GraphKernel, Identity, Polynomial, Response, SpectralKernel
from spectralgp.model.likelihoods import Likelihood
from spectralgp.model.spectra import ExactSpectrum, decompose

WEIGHTS = {
    "random": oracle.random_weights(7, seed=0),
    "disconnected": oracle.disconnected(),
    "complete": oracle.complete(6),
    "ring": oracle.ring(6),
    "star": oracle.star(6),
    "edgeless": np.zeros((4, 4)),
    "single": np.zeros((1, 1)),
}
GRAPHS = {name: Graph(weights) for name, weights in WEIGHTS.items()}

Dense = Callable[[Any, np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Case:
    """A kernel, and ``B B^T`` at unit amplitude from (kernel, its Laplacian, weights)."""

    kernel: Any
    unit_covariance: Dense

    def dense(self, kernel: GraphKernel, weights: np.ndarray) -> np.ndarray:
        """``B B^T`` of a kernel of this case with any parameters."""
        laplacian = oracle.laplacian(weights, kernel.laplacian, kernel.scaled)
        amplitude = getattr(kernel, "amplitude", 1.0)
        return amplitude**2 * self.unit_covariance(kernel, laplacian, weights)


def bump(eigenvalues, centre, log_width):
    return np.exp(-0.5 * ((eigenvalues - centre) / np.exp(log_width)) ** 2)


def bump_jacobian(eigenvalues, centre, log_width):
    offset = (eigenvalues - centre) / np.exp(log_width)
    values = bump(eigenvalues, centre, log_width)
    return np.column_stack([values * offset / np.exp(log_width), values * offset**2])


def _polynomial(kernel, laplacian, weights):
    return oracle.polynomial(laplacian, kernel.coefficients)


def _response(kernel, laplacian, weights):
    return oracle.from_filter(oracle.matrix_function(laplacian, lambda values: bump(values, *kernel.parameters)))


def _diffusion(kernel, laplacian, weights):
    return oracle.diffusion(laplacian, kernel.strength)


def _random_walk(kernel, laplacian, weights):
    return oracle.random_walk(laplacian, kernel.shift, kernel.steps)


def _sum(kernel, laplacian, weights):
    curved, flat, constant = kernel.kernels
    parts = oracle.polynomial(laplacian, curved.coefficients), oracle.polynomial(laplacian, constant.coefficients)
    return parts[0] + parts[1] + flat.amplitude**2 * np.eye(len(laplacian))


def _matern(kernel, laplacian, weights):
    return oracle.matern(laplacian, kernel.nu, kernel.length_scale)


def _pinned(kernel, laplacian, weights):
    """In the words of the docstring, on a Laplacian whose largest eigenvalue is one."""
    largest = float(np.max(np.linalg.eigvalsh(laplacian))) or 1.0
    bend = kernel.bend

    def response(values):
        distances = values / largest if kernel.vanishes_at == "low" else 1 - values / largest
        return {
            "line": distances,
            "exponential": (np.exp(bend * distances) - 1) / (np.exp(bend) - 1),
            "parabola": distances * (distances + bend * (1 - distances)),
        }[kernel.shape]

    return oracle.from_filter(oracle.matrix_function(laplacian, response))


KERNELS = {
    "Polynomial(0)": Case(Polynomial.from_coefficients([1.3]), _polynomial),
    "Polynomial(3)": Case(Polynomial.from_coefficients([0.2, 1.5, -2.5, 1.1]), _polynomial),
    "Polynomial(8)": Case(Polynomial(8).with_theta([1.0, -0.4, 0.3, 0.2, 0.1, -0.1, 0.1, 0.05, 0.1]), _polynomial),
    "Polynomial(normalized)": Case(
        Polynomial(2, laplacian="normalized", scaled=False).with_theta([1.0, -0.5, 0.3]), _polynomial
    ),
    "Polynomial(unscaled)": Case(Polynomial.from_coefficients([1.0, -0.2, 0.03], scaled=False), _polynomial),
    "Identity": Case(Identity(amplitude=0.7), lambda k, laplacian, w: np.eye(len(laplacian))),
    "GlobalFilter": Case(
        GlobalFilter(strength=0.6, amplitude=1.2), lambda k, laplacian, w: oracle.global_filter(laplacian, k.strength)
    ),
    "LocalAverage": Case(
        LocalAverage(strength=0.8, amplitude=1.1), lambda k, laplacian, w: oracle.local_average(w, k.strength)
    ),
    "LocalAverage(fixed)": Case(
        LocalAverage(strength=2.0, strength_bounds="fixed"), lambda k, laplacian, w: oracle.local_average(w, k.strength)
    ),
    "PseudoInverse": Case(PseudoInverse(amplitude=1.4), lambda k, laplacian, w: oracle.pseudo_inverse(laplacian)),
    "RegularizedLaplacian": Case(
        RegularizedLaplacian(strength=2.5, amplitude=0.9),
        lambda k, laplacian, w: oracle.regularized_laplacian(laplacian, k.strength),
    ),
    "Diffusion": Case(Diffusion(strength=1.7, amplitude=1.2), _diffusion),
    "Diffusion(combinatorial)": Case(Diffusion(strength=0.4, laplacian="combinatorial"), _diffusion),
    "Diffusion(fixed)": Case(Diffusion(strength=2.0, amplitude=2.0, amplitude_bounds="fixed"), _diffusion),
    "RandomWalk(1)": Case(RandomWalk(steps=1, shift=2.2), _random_walk),
    "RandomWalk(3)": Case(RandomWalk(steps=3, shift=3.0, amplitude=0.4), _random_walk),
    "RandomWalk(at the bound)": Case(RandomWalk(steps=2, shift=2.0, shift_bounds="fixed"), _random_walk),
    "RandomWalk(scaled)": Case(RandomWalk(steps=2, shift=2.5, laplacian="combinatorial", scaled=True), _random_walk),
    "Cosine": Case(Cosine(amplitude=1.1), lambda k, laplacian, w: oracle.cosine(laplacian)),
    "Matern(3/2)": Case(Matern(nu=1.5, length_scale=1.4, amplitude=1.3), _matern),
    "Matern(1/2, normalized)": Case(Matern(nu=0.5, length_scale=0.8, laplacian="normalized"), _matern),
    "PinnedFilter": Case(PinnedFilter(bend=2.5, amplitude=0.8), _pinned),
    "PinnedFilter(line, unscaled)": Case(PinnedFilter(shape="line", laplacian="normalized", scaled=False), _pinned),
    "PinnedFilter(parabola, low)": Case(PinnedFilter(bend=0.4, shape="parabola", vanishes_at="low"), _pinned),
    "Response": Case(Response(bump, (0.4, -1.0), jacobian=bump_jacobian, amplitude=1.5), _response),
    "Response(differences)": Case(Response(bump, (0.7, -0.5)), _response),
    "Sum": Case(
        Polynomial.from_coefficients([0.2, 1.5, -2.5]) + Identity(amplitude=0.6) + Polynomial.from_coefficients([0.3]),
        _sum,
    ),
}

# every kernel on two graphs, one of them disconnected, and every graph for a few kernels of each kind: a full product
# of the two finds the same mistakes in four times the time
KERNELS_AND_GRAPHS = [(name, graph) for name in KERNELS for graph in ("random", "disconnected")]
KERNELS_AND_GRAPHS += [
    (name, graph)
    for name in ("Polynomial(3)", "LocalAverage", "PseudoInverse")
    for graph in GRAPHS
    if graph not in ("random", "disconnected")
]


def bound(kernel: Any, graph: Graph) -> tuple[Any, ExactSpectrum]:
    """The kernel as a model uses it, and its spectrum."""
    spectrum = decompose(graph, kernel.laplacian, scaled=kernel.scaled)
    return kernel.bind(spectrum), spectrum


def node_covariance(kernel: Any, graph: Graph) -> np.ndarray:
    """``B B^T`` as the package has it."""
    kernel, spectrum = bound(kernel, graph)
    basis = kernel.basis(spectrum)
    return (basis.eigenvectors * kernel.power(basis.eigenvalues)) @ basis.eigenvectors.T


def drawn(
    name: str, graph: str, relative_noise: float, input_covariance: np.ndarray, seed: int = 1
) -> tuple[np.ndarray, float, np.ndarray]:
    """Dense ``B B^T`` of a case, noise relative to its largest power (or one, if it has none), and signals."""
    case = KERNELS[name]
    dense = case.dense(case.kernel, WEIGHTS[graph])
    noise = relative_noise * (float(np.linalg.eigvalsh(dense)[-1]) or 1.0)
    return dense, noise, oracle.draw(input_covariance, dense, noise, np.random.default_rng(seed))


@dataclass(frozen=True)
class LargeCase:
    """Signals of a known filter on a graph small enough to be decomposed, for the quadrature to be held against."""

    coefficients: tuple[float, ...]  # of the filter, a polynomial on [0, 1]
    noise_share: float  # noise variance over the mean variance of the noise-free signals
    n_nodes: int = 300
    n_signals: int = 8
    n_new: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        graph = Graph.from_points(rng.random((self.n_nodes, 2)), 6)
        spectrum = decompose(graph, scaled=True)
        response = np.polynomial.polynomial.polyval(spectrum.eigenvalues, self.coefficients)
        inputs = rng.uniform(-2, 2, (self.n_signals + self.n_new, 2))
        root = np.linalg.cholesky(oracle.rbf(inputs, inputs, 1.3) + 1e-10 * np.eye(len(inputs)))
        clean = root @ (rng.standard_normal((len(inputs), self.n_nodes)) * response) @ spectrum.eigenvectors.T
        noise_variance = self.noise_share * float(np.mean(response**2))
        signals = clean + np.sqrt(noise_variance) * rng.standard_normal(clean.shape)
        signals -= signals[: self.n_signals].mean()  # as the estimator does
        found = {
            "graph": graph,
            "kernel": Polynomial.from_coefficients(self.coefficients),
            "noise_variance": noise_variance,
            "inputs": inputs[: self.n_signals],
            "new": inputs[self.n_signals :],
            "signals": signals[: self.n_signals],
            "observed": signals[self.n_signals :],
        }
        for name, value in found.items():
            object.__setattr__(self, name, value)


LARGE_FILTERS = {
    "low-pass": (1.0, -2.2, 1.9, -0.6),
    "band-pass": (0.0, 0.0, 16.0, -32.0, 16.0),
    "notch": (1.0, -4.0, 4.0),
}
LARGE_CASES = {
    f"{name}, {share:.0%}": LargeCase(coefficients, share)
    for name, coefficients in LARGE_FILTERS.items()
    for share in (0.1, 0.01)
}


class Columns:
    """As HDF5 and zarr are read: a shape, a type, and slices of both axes, whose shapes are noted."""

    def __init__(self, values):
        self.values, self.shape, self.dtype, self.asked = values, values.shape, values.dtype, []

    def __getitem__(self, key):
        rows, chosen = key
        assert isinstance(rows, slice)
        assert isinstance(chosen, slice)
        found = self.values[rows, chosen]
        self.asked.append(found.shape)
        return found

    def __array__(self, *_, **__):
        raise AssertionError("the whole array was asked for")


def run_python(script: str, *arguments: str, timeout: float = 240, **environment: str) -> str:
    """What a script prints in a process of its own, which finds what this one finds; its failure is ours."""
    paths = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    answer = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env=os.environ | paths | environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr[-2000:]
    return answer.stdout


class Terminal(io.StringIO):
    """An error stream on which bars are drawn."""

    def isatty(self):
        return True


# Classes of a user's own


@dataclass(frozen=True)
class Heat(SpectralKernel):
    """`Diffusion` at unit strength with a free amplitude, in five members; its derivative may be off by a factor."""

    log_amplitude: float = 0.0
    laplacian: str = "normalized"
    factor: float = 1.0

    @property
    def theta(self):
        return np.array([self.log_amplitude])

    def with_theta(self, theta):
        return replace(self, log_amplitude=float(theta[0]))

    def scaled_by(self, factor):
        return replace(self, log_amplitude=self.log_amplitude + np.log(factor))

    def power(self, eigenvalues):
        return np.exp(2 * self.log_amplitude - 0.5 * np.asarray(eigenvalues))

    def power_jacobian(self, eigenvalues):
        return self.factor * 2 * self.power(eigenvalues)[:, None]


@dataclass(frozen=True)
class Waiting(Likelihood):
    """Exponential waiting times with the mean exp(f), with signs of the derivatives."""

    name: ClassVar[str] = "waiting"
    slope_sign: float = 1.0
    curvature_sign: float = 1.0

    def at(self, values, latent, beside):
        rate = values * np.exp(-latent)
        return -latent - rate, self.slope_sign * (rate - 1), self.curvature_sign * rate

    def mean_at(self, latent, beside):
        return np.exp(latent)

    def variance_at(self, latent, beside):
        return np.exp(2 * latent)

    def distribution_at(self, values, latent, beside):
        return -np.expm1(-values * np.exp(-latent))

    def draw(self, latent, beside, random_state):
        return random_state.exponential(np.exp(latent))

    def rough_latent(self, values, beside):
        return np.log(values)
