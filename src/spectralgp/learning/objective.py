"""What learning maximises: the log marginal likelihood plus the log prior, in all hyperparameters at once."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
from scipy.linalg import block_diag

from spectralgp._basics.checks import Array
from spectralgp.fields import Evidence, GraphGP, Inputs
from spectralgp.kernels import GraphKernel
from spectralgp.kernels.base import Positivity
from spectralgp.kernels.carry import CarryFilter
from spectralgp.learning.prior import WeakPrior
from spectralgp.learning.task import Task
from spectralgp.spectra import Errors, SpectralData, Spectrum


class Objective:
    """Log posterior of the hyperparameters ``x = (graph theta, input theta, log noise)``, with its gradient.

    It counts evaluations. It remembers the last one, since a solution is asked for its value more than once, and the
    last input covariance, since solvers often move the filter alone.

    Parameters
    ----------
    task : Task
        Data and settings.
    graph_kernel : GraphKernel
        The form of the graph kernel, bound to the spectrum.
    spectrum : Spectrum
        Of the Laplacian the kernel asks for.
    """

    def __init__(self, task: Task, graph_kernel: GraphKernel, spectrum: Spectrum) -> None:
        self.task, self.graph_kernel, self.spectrum = task, graph_kernel, spectrum
        self.n_evaluations = 0
        self.input_theta = task.input_kernel.theta
        self.n_graph = graph_kernel.theta.size
        self.learns_noise = task.known_noise is None
        self.prior = None
        if task.prior == "weak":
            kernel = task.input_kernel
            self.prior = WeakPrior(task.variance_within, kernel.typical_theta(task.inputs), kernel.theta_spreads)
        self._split: tuple[Array, tuple[GraphKernel, Array, float]] | None = None
        self._evaluated: tuple[Array, float, Array] | None = None
        self._inputs: tuple[Array, Inputs, Array] | None = None
        self._read: tuple[Spectrum, SpectralData] | None = None
        self._rotated: tuple[Spectrum, Inputs, SpectralData] | None = None

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the entries of ``x``, for messages."""
        inputs = tuple(f"kernel theta[{index}]" for index in range(self.input_theta.size))
        return (
            *self.graph_kernel.parameter_names,
            *inputs,
            *(("noise_variance",) if self.learns_noise else ()),
        )

    @cached_property
    def bounds(self) -> Array:
        """Bounds of ``x``, shape (n_parameters, 2)."""
        noise = self.task.noise_bounds[None] if self.learns_noise else np.empty((0, 2))
        return np.vstack([self.graph_kernel.bounds(self.task.variance), self.task.input_kernel.bounds, noise])

    @cached_property
    def units(self) -> Array:
        """A typical change of each entry of ``x``."""
        units = np.ones(len(self.parameter_names))
        units[: self.n_graph] = self.graph_kernel.theta_units(self.task.variance)
        return units

    def positivity(self, x: Array) -> tuple[Positivity, ...]:
        """Where filters must not be negative and could be lowest at ``x``, as linear functions of ``x``."""
        kernel = self.split(x)[0]
        return tuple(one.padded(0, x.size) for one in kernel.positivity(self.spectrum))

    def split(self, x: Array) -> tuple[GraphKernel, Array, float]:
        """Graph kernel, input theta and noise variance at ``x``."""
        if self._split is None or not np.array_equal(x, self._split[0]):
            end = self.n_graph + self.input_theta.size
            noise = float(np.exp(x[-1])) if self.learns_noise else float(self.task.known_noise or 0.0)
            kernel = self.graph_kernel.with_theta(x[: self.n_graph])
            self._split = (x.copy(), (kernel, x[self.n_graph : end].copy(), noise))
        return self._split[1]

    def join(self, graph_theta: Array, input_theta: Array, noise_variance: float) -> Array:
        """The vector ``x`` with the given parts; the noise is dropped where it is fixed."""
        noise = [np.log(noise_variance)] if self.learns_noise else []
        return np.concatenate([graph_theta, input_theta, noise])

    def point(self, model: GraphGP) -> Array:
        """The vector ``x`` of a model of this form, whose residual may have been told apart from its noise."""
        least = float(np.exp(self.task.noise_bounds[0]))  # which rounding might pass
        noise_variance = max(model.noise_variance - model.graph_kernel.floor, least)
        return self.join(model.graph_kernel.theta, model.input_kernel.theta, noise_variance)

    def model(self, x: Array) -> GraphGP:
        """The prior at ``x``."""
        graph_kernel, input_theta, noise_variance = self.split(x)
        kernel, carry = self.task.input_kernel.with_theta(input_theta), None
        if self.task.carried is not None:
            carry = self._carry(*self.read(graph_kernel, input_theta, noise_variance))
        return GraphGP(self.spectrum, graph_kernel, kernel, noise_variance, carry)

    def evaluate(self, x: Array) -> tuple[float, Array]:
        """Log posterior at ``x`` and its gradient."""
        if self._evaluated is None or not np.array_equal(x, self._evaluated[0]):
            self.n_evaluations += 1
            value, gradient = self._log_likelihood(x)
            prior, slope = self.log_prior(x)
            self._evaluated = (x.copy(), value + prior, gradient + slope)
        return self._evaluated[1], self._evaluated[2].copy()

    def _log_likelihood(self, x: Array) -> tuple[float, Array]:
        graph_kernel, input_theta, noise_variance = self.split(x)
        evidence = self._evidence(graph_kernel, input_theta, noise_variance)
        graph_gradient, input_gradient = graph_kernel.pull_back(evidence, self.spectrum), np.empty(0)
        if input_theta.size:
            jacobian = self.inputs_at(input_theta)[1]
            input_gradient = np.tensordot(evidence.input_covariance_gradient, jacobian, axes=2)
        noise = [evidence.noise_gradient * noise_variance] if self.learns_noise else []
        return evidence.log_likelihood, np.concatenate([graph_gradient, input_gradient, noise])

    def log_prior(self, x: Array) -> tuple[float, Array]:
        """Log prior at ``x`` and its gradient; zero without a prior."""
        if self.prior is None:
            return 0.0, np.zeros(x.size)
        graph_kernel, input_theta, noise_variance = self.split(x)
        graph_value, graph_slope, noise_slope = graph_kernel.log_prior(self.spectrum, noise_variance)
        input_value, input_slope = self.prior.input_term(input_theta)
        noise_value, further_slope = self.prior.noise_term(noise_variance) if self.learns_noise else (0.0, 0.0)
        noise = [noise_slope + further_slope] if self.learns_noise else []
        return graph_value + input_value + noise_value, np.concatenate([graph_slope, input_slope, noise])

    def log_prior_precision(self, x: Array) -> Array:
        """About how curved the log prior is in ``x``, shape (n_parameters, n_parameters)."""
        if self.prior is None:
            return np.zeros((x.size, x.size))
        graph_kernel, _, noise_variance = self.split(x)
        noise = [self.prior.noise_precision] if self.learns_noise else []
        of_graph = graph_kernel.log_prior_precision(self.spectrum, noise_variance)
        return np.asarray(block_diag(of_graph, np.diag(np.concatenate([self.prior.input_precisions, noise]))))

    def evidence(self, x: Array) -> Evidence:
        """The evidence alone, without the prior."""
        return self._evidence(*self.split(x))

    def _evidence(self, graph_kernel: GraphKernel, input_theta: Array, noise_variance: float) -> Evidence:
        evidence, basis = self.read(graph_kernel, input_theta, noise_variance)
        if self.task.carried is None:
            return evidence
        # the most likely carry-over at every step: to first order nothing else depends on it
        carry = self._carry(evidence, basis)
        return replace(evidence, data=evidence.data.without_carried(carry.response(basis.eigenvalues)))

    def read(self, graph_kernel: GraphKernel, input_theta: Array, noise_variance: float) -> tuple[Evidence, Spectrum]:
        """Evidence of the signals as they are, with what carries over to them below them, and the basis it is on."""
        rows, basis = self.inputs_at(input_theta)[0], graph_kernel.basis(self.spectrum)
        power, residual = graph_kernel.power(basis.eigenvalues), graph_kernel.residual_power(basis.eigenvalues)
        return Evidence(rows, power, residual + noise_variance, self.data_in(basis, rows)), basis

    def _carry(self, evidence: Evidence, basis: Spectrum) -> CarryFilter:
        return CarryFilter.learnt(evidence.data, evidence.precisions, basis.eigenvalues, self.spectrum.upper)

    def errors(self, x: Array) -> Errors:
        """How wrong the likelihood at ``x`` may be."""
        graph_kernel, input_theta, noise_variance = self.split(x)
        rows = self.inputs_at(input_theta)[0]

        def variances(eigenvalues: Array) -> Array:
            own = graph_kernel.residual_power(eigenvalues) + noise_variance
            return rows.variances(graph_kernel.power(eigenvalues), own)

        return self.spectrum.errors(variances, self.evidence(x).data)

    def inputs_at(self, theta: Array) -> tuple[Inputs, Array]:
        """How signals covary at `theta`, and the derivative of their input covariance."""
        if self._inputs is None or not np.array_equal(theta, self._inputs[0]):
            modes, jacobian = self.task.input_kernel.with_theta(theta).modes_and_gradient(self.task.inputs)
            self._inputs = (theta.copy(), Inputs(modes), jacobian)
        return self._inputs[1:]

    def data_in(self, basis: Spectrum, rows: Inputs) -> SpectralData:
        """The signals on a basis, in the eigenbasis of the inputs; each remembered as long as it does not change.

        What carries over to the signals stands below them.
        """
        task, vectors = self.task, rows.turn
        if self._rotated is None or self._rotated[0] is not basis or self._rotated[1] is not rows:
            if self._read is None or self._read[0] is not basis:
                carried = None if task.carried is None else task.carried.signals(task.inputs, task.signals.units)
                read = basis.read(task.signals, carried)
                self._read = (basis, read)
            if task.carried is not None:
                vectors = block_diag(vectors, vectors)
            self._rotated = (basis, rows, self._read[1].rotate(vectors))
        return self._rotated[2]


def told_apart(task: Task, model: GraphGP) -> GraphGP:
    """The same covariance with what a residual has at every frequency counted as noise, unless the noise was given.

    The likelihood knows the sum of the two alone.
    """
    if task.known_noise is not None:
        return model
    kernel = model.graph_kernel.without_floor(model.spectrum.eigenvalues)
    noise_variance = model.noise_variance + (kernel.floor - model.graph_kernel.floor)
    return replace(model, graph_kernel=kernel, noise_variance=noise_variance)
