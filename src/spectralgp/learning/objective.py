"""What learning maximises: the log marginal likelihood plus the log prior, in all hyperparameters at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from spectralgp._checks import Array
from spectralgp.evidence import Evidence, graph_evidence
from spectralgp.graph_kernels import GraphKernel
from spectralgp.graph_kernels.base import SpectralKernel
from spectralgp.inputs import InputKernel, as_input_kernel
from spectralgp.learning.prior import WeakPrior
from spectralgp.model import GraphGP
from spectralgp.modes import Modes
from spectralgp.spectrum import (
    AnyRotated,
    AnySpectrum,
    ChebyshevSpectrum,
    LargeSignals,
    SpectralMoments,
    SpectralSignals,
)

NOISE_FLOOR = {"weak": 1e-6, None: 1e-3}  # smallest noise learnt, as a share of the signals' variance
NOISE_CEILING = 10.0


@dataclass(frozen=True, eq=False)
class Task:
    """Data and settings of one learning problem; the graph kernel is left open.

    Parameters
    ----------
    input_kernel : InputKernel, scikit-learn kernel, "precomputed" or None
        Covariance between signals; kept as an `InputKernel`.
    inputs : ndarray of shape (n_signals, n_features)
        Training inputs (``K`` itself if precomputed).
    signals : ndarray of shape (n_signals, n_nodes), or LargeSignals
        Training signals.
    noise_variance : float or None
        Fixed noise variance, or None to learn it.
    prior : {"weak"} or None
        Prior on the hyperparameters; None is plain maximum likelihood.
    noise_floor : float or None
        Smallest noise variance learnt, as a share of the signals' variance.
    """

    input_kernel: InputKernel
    inputs: Array
    signals: Array | LargeSignals
    noise_variance: float | None = None
    prior: str | None = "weak"
    noise_floor: float | None = None

    def __post_init__(self) -> None:
        """Know the kind of input kernel from here on."""
        object.__setattr__(self, "input_kernel", as_input_kernel(self.input_kernel))

    @property
    def variance(self) -> float:
        """Variance of the signals; one where they are all the same."""
        return (self.signals.variance if isinstance(self.signals, LargeSignals) else float(np.var(self.signals))) or 1.0

    @property
    def mean_square(self) -> float:
        """Mean of the squared values."""
        if isinstance(self.signals, LargeSignals):
            return self.signals.mean_square
        return float(np.mean(np.square(self.signals)))

    @property
    def noise_bounds(self) -> Array:
        """Bounds of the log noise variance."""
        floor = NOISE_FLOOR[self.prior] if self.noise_floor is None else self.noise_floor
        return np.log(np.array([floor, NOISE_CEILING]) * self.variance)


class Objective:
    """Log posterior of the hyperparameters ``x = (graph theta, input theta, log noise)``, with its gradient.

    It counts evaluations and remembers the last input covariance, since solvers often move the filter alone.

    Parameters
    ----------
    task : Task
        Data and settings.
    graph_kernel : GraphKernel
        The form of the graph kernel, bound to the spectrum.
    spectrum : Spectrum or ChebyshevSpectrum
        Of the Laplacian the kernel asks for.
    """

    def __init__(self, task: Task, graph_kernel: GraphKernel, spectrum: AnySpectrum) -> None:
        self.task = task
        self.graph_kernel = graph_kernel
        self.spectrum = spectrum
        self.n_evaluations = 0
        self.data = self._read()
        self.input_theta = task.input_kernel.theta
        self.n_graph = graph_kernel.theta.size
        self.learns_noise = task.noise_variance is None
        self.prior = None
        if task.prior == "weak":
            self.prior = WeakPrior(task.variance, task.input_kernel.typical_theta(task.inputs))
        self._remembered: tuple[Array, Modes, Array, AnyRotated] | None = None

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the entries of ``x``, for messages."""
        inputs = tuple(f"kernel theta[{index}]" for index in range(self.input_theta.size))
        return (
            *self.graph_kernel.parameter_names,
            *inputs,
            *(("noise_variance",) if self.learns_noise else ()),
        )

    @property
    def bounds(self) -> Array:
        """Bounds of ``x``, shape (n_parameters, 2), with the amplitude's in units of the signals."""
        graph = self.graph_kernel.bounds.copy()
        if "amplitude" in self.graph_kernel.parameter_names:
            graph[self.graph_kernel.parameter_names.index("amplitude")] += 0.5 * np.log(self.task.variance)
        inputs = self.task.input_kernel.bounds
        noise = self.task.noise_bounds[None] if self.learns_noise else np.empty((0, 2))
        return np.vstack([graph, inputs, noise])

    def split(self, x: Array) -> tuple[GraphKernel, Array, float]:
        """Graph kernel, input theta and noise variance at ``x``."""
        end = self.n_graph + self.input_theta.size
        noise = float(np.exp(x[-1])) if self.learns_noise else float(self.task.noise_variance or 0.0)
        return self.graph_kernel.with_theta(x[: self.n_graph]), x[self.n_graph : end], noise

    def join(self, graph_theta: Array, input_theta: Array, noise_variance: float) -> Array:
        """The vector ``x`` with the given parts; the noise is dropped where it is fixed."""
        noise = [np.log(noise_variance)] if self.learns_noise else []
        return np.concatenate([graph_theta, input_theta, noise])

    def model(self, x: Array) -> GraphGP:
        """The prior at ``x``."""
        graph_kernel, input_theta, noise_variance = self.split(x)
        return GraphGP(self.spectrum, graph_kernel, self.task.input_kernel.with_theta(input_theta), noise_variance)

    def evaluate(self, x: Array) -> tuple[float, Array]:
        """Log posterior at ``x`` and its gradient."""
        self.n_evaluations += 1
        graph_kernel, input_theta, noise_variance = self.split(x)
        modes, input_jacobian, rotated = self.inputs_at(input_theta)
        evidence, graph_gradient = graph_evidence(modes, graph_kernel, self.spectrum, noise_variance, rotated)
        value = evidence.log_likelihood
        input_gradient = np.empty(0)
        if input_theta.size:
            input_gradient = np.tensordot(evidence.input_covariance_gradient, input_jacobian, axes=2)
        noise_gradient = evidence.noise_gradient * noise_variance
        if self.prior is not None:
            graph_value, graph_slope, noise_slope = self.prior.graph_term(graph_kernel, self.spectrum, noise_variance)
            input_value, input_slope = self.prior.input_term(input_theta)
            noise_value, further_slope = self.prior.noise_term(noise_variance) if self.learns_noise else (0.0, 0.0)
            value += graph_value + input_value + noise_value
            graph_gradient = graph_gradient + graph_slope
            input_gradient = input_gradient + input_slope
            noise_gradient += noise_slope + further_slope
        noise = [noise_gradient] if self.learns_noise else []
        return value, np.concatenate([graph_gradient, input_gradient, noise])

    def evidence(self, x: Array) -> Evidence:
        """The evidence alone, without the prior."""
        graph_kernel, input_theta, noise_variance = self.split(x)
        modes, _, rotated = self.inputs_at(input_theta)
        return graph_evidence(modes, graph_kernel, self.spectrum, noise_variance, rotated)[0]

    def _read(self) -> SpectralSignals | SpectralMoments:
        """The signals on the spectrum; on the nodes for a kernel that brings its own eigenvectors."""
        signals = self.task.signals
        if isinstance(self.spectrum, ChebyshevSpectrum):
            return self.spectrum.read(cast(LargeSignals, signals))
        if isinstance(self.graph_kernel, SpectralKernel):
            return self.spectrum.read(cast(Array, signals))
        return SpectralSignals(cast(Array, signals))

    def inputs_at(self, theta: Array) -> tuple[Modes, Array, AnyRotated]:
        """Input covariance at `theta`: its modes, its derivative, and the signals in its modes."""
        if self._remembered is None or not np.array_equal(theta, self._remembered[0]):
            modes, jacobian = self.task.input_kernel.with_theta(theta).modes_and_gradient(self.task.inputs)
            self._remembered = (theta.copy(), modes, jacobian, self.data.rotate(modes.vectors))
        return self._remembered[1:]
