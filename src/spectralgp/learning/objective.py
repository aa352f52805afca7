"""Learning problem: a task, and the log posterior of its hyperparameters with gradient and curvature."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import block_diag

from spectralgp._basics.checks import Array, Indices, Mask, as_option, as_positive, as_real_array
from spectralgp._basics.saved import UNSAVED, Positive, StoredAs, axes, ge
from spectralgp.graphs import GraphBase
from spectralgp.model import fields, kernels
from spectralgp.model.fields import Evidence, GraphGP, InputCovariance, ObservationModel, TimeEvidence
from spectralgp.model.kernels import GraphKernel, InputKernel, KernelLike, Positivity
from spectralgp.model.kernels.carry import CarryColumns, CarryFilter
from spectralgp.model.signals import Signals, as_training, read_in
from spectralgp.model.spectra import Exact, LikelihoodErrors, SpectralData, Spectrum, SpectrumSettings
from spectralgp.model.statespace import Timeline

NOISE_FLOOR = {"weak": 1e-6, None: 1e-3}  # smallest noise learnt, as a share of the signals' variance
NOISE_CEILING = 10.0
NOISE_SHARE = 0.1  # most probable noise variance, as a share of the signals' variance
NOISE_DEGREES_OF_FREEDOM = 3.0
NOISE_SIGNALS = 0.25  # signals of nothing but the most probable noise that less of it has to outweigh
MOST_NOISE_NODES = 1_000  # nodes of such a signal: a large graph says enough of its noise by itself
FIRST_NOISE_SHARE = 0.2  # of the signals' variance, where searches start
MIN_PRECISION = 1.0  # in nats per squared unit of a parameter, where the data say nothing

Prior = Literal["weak"] | None
NoiseVariance = float | tuple[float, float] | None  # fixed, learnt between bounds, or learnt
NoiseVariances = Positive | Annotated[tuple[Positive, ...], ge(2, 2)] | None  # the same in files


def check_noise(noise_variance: NoiseVariance) -> None:
    """Raise ValueError unless the noise variance is positive, or a pair of bounds."""
    if isinstance(noise_variance, tuple):
        if len(noise_variance) != 2 or not 0 < noise_variance[0] < noise_variance[1] < np.inf:
            raise ValueError(
                f"noise_variance must be one number, or bounds (low, high) with 0 < low < high; got {noise_variance}."
            )
    elif noise_variance is not None:
        as_positive(noise_variance, "noise_variance")


@dataclass(frozen=True, eq=False)
class Task:
    """Data and settings of one learning problem, for any graph kernel. Made by `Task.of`."""

    graph: Annotated[GraphBase, UNSAVED]
    input_kernel: InputKernel
    # of shape (n_signals, n_features), or the covariance itself if precomputed
    inputs: Annotated[Array, axes("n_signals", "n_features")]
    signals: Signals
    noise_variance: Annotated[NoiseVariance, StoredAs(NoiseVariances)] = None
    prior: Prior = "weak"
    spectrum: SpectrumSettings = Exact()
    carried: CarryColumns | None = None  # lagged columns among the inputs
    observed_by: ObservationModel | None = None  # of latent signals; None if the signals themselves are observed
    typical_variance: Positive | None = None  # of signals; their own by default
    is_series: Annotated[bool, UNSAVED] = False  # whether the graph kernel relates signals, at times that are inputs

    @classmethod
    def of(
        cls,
        graph: GraphBase,
        input_kernel: InputKernel | KernelLike,
        inputs: ArrayLike,
        signals: ArrayLike | Signals,
        noise_variance: NoiseVariance = None,
        prior: Prior = "weak",
        *,
        spectrum: SpectrumSettings = Exact(),
    ) -> Task:
        """Task from arrays, checked.

        Parameters
        ----------
        graph : Graph
            The graph.
        input_kernel : scikit-learn kernel, "precomputed" or None
            Covariance between signals; None for independent ones.
        inputs : array of shape (n_signals, n_features)
            Training inputs; the covariance itself if precomputed; without columns for independent signals.
        signals : array of shape (n_signals, n_nodes), or Signals
            Training signals, neither centred nor scaled here; `read_signals` does that.
        noise_variance : float or pair of float, optional
            Fixed noise variance, or bounds between which it is learnt; those of the prior by default.
        prior : {"weak"} or None, default="weak"
            Prior on the hyperparameters; None is plain maximum likelihood.
        spectrum : SpectrumSettings, default=Exact()
            How spectra of the graph are found: `Exact`, or `Chebyshev` for a large graph.

        Examples
        --------
        >>> import numpy as np
        >>> from spectralgp import Graph, Task
        >>> pair = Graph.from_edges([(0, 1)])
        >>> Task.of(pair, None, np.empty((3, 0)), np.array([[1.0, 2.0], [0.0, 0.0], [-1.0, -2.0]])).variance
        1.6666666666666667
        """
        if not isinstance(graph, GraphBase):
            raise TypeError(f"graph must be a Graph; got {type(graph).__name__}. Convert it with as_graph first.")
        if not isinstance(spectrum, SpectrumSettings):
            raise TypeError(f"spectrum must be Exact() or Chebyshev(...); got {spectrum!r}. Leave it out for Exact().")
        checked = as_real_array(inputs, "inputs", ("n_signals", "n_features")).copy()
        training = as_training(signals, checked.shape[0], graph.n_nodes)
        if prior is not None:
            as_option(prior, "prior", ("weak",))
        check_noise(noise_variance)
        return cls(graph, kernels.as_input_kernel(input_kernel), checked, training, noise_variance, prior, spectrum)

    @cached_property
    def variance(self) -> float:
        """Variance of the signals; one where they are all the same."""
        return self.typical_variance or self.signals.variance or 1.0

    @cached_property
    def centred_at(self) -> Array:
        """Nodes whose centre is that of the signals, one row per level: equation (19e)."""
        seen, signals = self.signals.observed.any(axis=0), self.signals
        center = signals.centred_by if self.observed_by is None and self.carried is None else None
        return np.eye(seen.size)[seen] if center == "node" else np.ones((int(center is not None), seen.size))

    def recentred(self, level: Array) -> Task:
        """Task with another centre: a level per node above the present one, in units of the spread."""
        units = self.signals.units
        moved = replace(units, offset=units.offset + units.spread * level)
        return replace(self, signals=read_in(moved, units.restore(self.signals.as_observed), self.signals.centred_by))

    @property
    def is_complete(self) -> bool:
        """Whether all values are observed without a likelihood; else learning imputes them under a model."""
        return self.signals.is_complete and self.observed_by is None

    @cached_property
    def typical_noise(self) -> float:
        """Most probable noise variance, a share of the variance about the levels of the nodes."""
        return NOISE_SHARE * (self.typical_variance or self.signals.variance_within or self.variance)

    @property
    def noise_bounds(self) -> Array:
        """Bounds of the log noise variance."""
        if isinstance(self.noise_variance, tuple):
            return np.log(self.noise_variance)
        return np.log(np.array([NOISE_FLOOR[self.prior], NOISE_CEILING]) * self.variance)

    @property
    def known_noise(self) -> float | None:
        """Noise variance if it is fixed; None if it is learnt."""
        return None if isinstance(self.noise_variance, tuple) else self.noise_variance

    @property
    def is_in_time(self) -> bool:
        """Whether signals are filtered in the order of time, at a cost linear in their number."""
        if self.is_series:
            return True
        has_terms = self.carried is None and len(kernels.matern_terms(self.input_kernel, self.inputs)) > 0
        return has_terms and fields.are_in_time(self.inputs, self.signals.units.signal_scales)

    @cached_property
    def length_scales(self) -> tuple[Array, Array]:
        """Prior centres of the input kernel's parameters, NaN without a prior, and their standard deviations."""
        return self.input_kernel.prior(self.inputs)

    def spectrum_of(self, kernel: GraphKernel) -> Spectrum:
        """Spectrum of the Laplacian of a graph kernel."""
        return self.spectrum.of(self.graph, kernel.laplacian, kernel.scaled, self.signals.like)

    def part(self, kept: Indices, signals: Signals) -> Task:
        """Task of the signals kept, with their inputs."""
        inputs = self.input_kernel.form.subset(self.inputs, kept)
        carried = None if self.carried is None else CarryColumns.of(self.carried.columns, inputs)
        observed_by = None if self.observed_by is None else self.observed_by.some(kept)
        return replace(self, inputs=inputs, signals=signals, carried=carried, observed_by=observed_by)


@dataclass(frozen=True, eq=False)
class ModalEvidence(Evidence):
    """Evidence in the eigenbases of nodes and inputs, as a function of the hyperparameters."""

    kernel: GraphKernel
    spectrum: Spectrum
    input_slopes: Array  # derivative of K in its eigenbasis, shape (n_signals, n_signals, n_input_parameters)
    noise_variance: float
    learns_noise: bool
    carry: CarryFilter | None = None  # of the autoregressive term

    @property
    def gradient(self) -> Array:
        """Gradient in all hyperparameters: equations (6) and (7)."""
        of_graph, n_inputs = self.kernel.pull_back(self, self.spectrum), self.input_slopes.shape[2]
        of_inputs = np.empty(0)
        if n_inputs:
            of_inputs = self.input_covariance_gradient.ravel() @ self.input_slopes.reshape(-1, n_inputs)
        noise = [float(np.sum(self.slopes)) * self.noise_variance] if self.learns_noise else []
        return np.concatenate([of_graph, of_inputs, noise])

    @property
    def errors(self) -> LikelihoodErrors:
        """Bounds of the numerical errors of the log likelihood: those of a quadrature."""
        power, own, noise_variance = self.kernel.power, self.kernel.residual_power, self.noise_variance
        return self.data.errors(lambda points: self.rows.variances(power(points), own(points) + noise_variance))

    def information(self, further: float = 0.0) -> Array | None:
        """Fisher information, if values had a `further` white variance; None without a Jacobian: equation (19)."""
        eigenvalues = self.spectrum.eigenvalues
        jacobians = kernels.power_jacobians(self.kernel, eigenvalues)
        if jacobians is None:
            return None
        each = np.ones(self.rows.n_signals)
        filters = list(zip((self.rows.modes.values, each), jacobians, strict=False))
        noise = [(each, np.full((eigenvalues.size, 1), self.noise_variance))] if self.learns_noise else []
        precisions = 1 / (1 / self.precisions + further) if further else self.precisions
        known = precisions, self.power, self.spectrum.multiplicities
        return fisher_information(*known, filters, self.input_slopes, noise)


class Objective:
    """Log posterior of the hyperparameters ``x = (graph theta, input theta, log noise)``, with its gradient.

    The weak prior has three terms: that of the graph kernel's parameters (`KernelSearch.log_prior`), length
    scales that are log-normal about the median distance of the inputs, and the log noise variance about a tenth of the
    variance (`noise_log_prior`). All are free of the units of the signals.

    It counts evaluations, and caches the last one and the last input covariance, since solvers often change the filter
    alone. If `complete` imputes missing values under a model, the gradient is that of the log posterior given the
    observed values; values are expected ones, not comparable between points.
    """

    def __init__(
        self,
        task: Task,
        graph_kernel: GraphKernel,
        spectrum: Spectrum,
        complete: Callable[[GraphGP], Task] | None = None,  # imputes missing values under a model
        before: Objective | None = None,  # of the same task, whose caches are taken
    ) -> None:
        self.task, self.graph_kernel, self.spectrum, self.complete = task, graph_kernel, spectrum, complete
        self.n_evaluations = 0
        self.input_theta = task.input_kernel.theta
        self.n_graph = graph_kernel.theta.size
        self.learns_noise = task.known_noise is None
        self.size = task.signals.size  # number of observations
        noise = task.noise_bounds[None] if self.learns_noise else np.empty((0, 2))
        search = graph_kernel.search()
        self.bounds = np.vstack([search.bounds(task.variance), task.input_kernel.bounds, noise])
        self.units = np.ones(len(self.bounds))  # a typical change of each entry of x
        self.units[: self.n_graph] = search.theta_units(task.variance)
        self.has_information = graph_kernel.shares_eigenvectors  # whether the Fisher information is known
        # whether signals are filtered in the order of time
        self.is_in_time = self.has_information and spectrum.has_eigenvectors and task.is_in_time
        # of the last points
        self._split: tuple[bytes, tuple[GraphKernel, Array, float]] | None = None
        self._evaluated: tuple[bytes, float, Array] | None = None
        self._evidence: tuple[tuple[bytes, bool], ModalEvidence | TimeEvidence] | None = None
        # of the last parameters of the inputs and the last basis; signals in time are read once
        self._inputs: tuple[bytes, InputCovariance, Array] | None = None
        self._read: tuple[Spectrum, SpectralData] | None = None
        self._rotated: tuple[Spectrum, InputCovariance, SpectralData] | None = None
        self._series: tuple[Timeline, list[Array]] | None = None
        if before is not None:
            self._inputs, self._read, self._rotated = before._inputs, before._read, before._rotated
            self._series = before._series

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the entries of ``x``, for messages."""
        inputs = [f"kernel theta[{index}]" for index in range(self.input_theta.size)]
        return (*self.graph_kernel.search().parameter_names, *inputs, *["noise_variance"] * self.learns_noise)

    @property
    def is_of_inputs(self) -> Mask:
        """Mask of the entries of ``x`` that are parameters of the input kernel."""
        places = np.arange(len(self.bounds)) - self.n_graph
        return (places >= 0) & (places < self.input_theta.size)

    def positivity(self, x: Array, coarse: bool = False) -> tuple[Positivity, ...]:
        """Constraints ``filter >= 0`` near ``x``, as linear functions of it; or a few of them (`coarse`)."""
        return self.split(x)[0].search().positivity(self.spectrum, coarse)

    def split(self, x: Array) -> tuple[GraphKernel, Array, float]:
        """Graph kernel, input theta and noise variance at ``x``, which other parameters may follow."""
        key = x.tobytes()  # which compares faster than arrays do
        if self._split is None or self._split[0] != key:
            end = self.n_graph + self.input_theta.size
            noise = float(np.exp(x[end])) if self.learns_noise else float(self.task.known_noise or 0.0)
            kernel = self.graph_kernel.with_theta(x[: self.n_graph])
            self._split = (key, (kernel, x[self.n_graph : end].copy(), noise))
        return self._split[1]

    def join(self, graph_theta: Array, input_theta: Array, noise_variance: float) -> Array:
        """Return the vector ``x`` with the given parts, without the noise if it is fixed."""
        noise = [np.log(noise_variance)] if self.learns_noise else []
        return np.concatenate([graph_theta, input_theta, noise])

    def starting_points(self) -> list[Array]:
        """Each start of the graph kernel with each start of the input kernel; the last is at the inputs' scale."""
        task = self.task
        graph_thetas = self.graph_kernel.search().starting_points(self.spectrum, task.variance)
        input_thetas = kernels.input_starts(task.input_kernel, task.length_scales[0])
        noise = task.known_noise or FIRST_NOISE_SHARE * task.variance
        starts = [self.join(graph, inputs, noise) for graph in graph_thetas for inputs in input_thetas]
        return [np.clip(start, *self.bounds.T) for start in starts]

    def point(self, model: GraphGP) -> Array:
        """Return the vector ``x`` of a model of this form."""
        least = float(np.exp(self.task.noise_bounds[0]))  # rounding might pass it
        noise_variance = max(model.noise_variance - model.graph_kernel.floor, least)
        return self.join(model.graph_kernel.theta, model.input_kernel.theta, noise_variance)

    def model(self, x: Array, carries: bool = True) -> GraphGP:
        """Return the prior at ``x``, with or without the autoregressive term."""
        graph_kernel, input_theta, noise_variance = self.split(x)
        model = GraphGP(self.spectrum, graph_kernel, self.task.input_kernel.with_theta(input_theta), noise_variance)
        if self.task.carried is None or not carries:
            return model
        own = self if self.complete is None else self.completed(x)
        evidence: Any = own.evidence(x, by_modes=True)
        return replace(model, carry=evidence.carry)

    def completed(self, x: Array) -> Objective:
        """The objective of signals completed at ``x``."""
        assert self.complete is not None  # complete signals need no completion
        return Objective(self.complete(self.model(x, carries=False)), self.graph_kernel, self.spectrum)

    def inputs_held(self, x: Array) -> Objective:
        """The objective of the graph's parameters and the noise alone, without eigendecompositions of the inputs."""
        evidence: Any = self.evidence(x, by_modes=True)
        task = replace(self.task, input_kernel=kernels.PrecomputedCovariance())  # whose eigendecomposition is known:
        held = Objective(task, self.graph_kernel, self.spectrum, before=self)
        held._inputs = (b"", evidence.rows, evidence.input_slopes[:, :, :0])
        return held

    def evaluate(self, x: Array) -> tuple[float, Array]:
        """Log posterior at ``x`` and its gradient."""
        key = x.tobytes()
        if self._evaluated is None or self._evaluated[0] != key:
            self.n_evaluations += 1
            evidence = (self if self.complete is None else self.completed(x)).evidence(x)
            prior, slope = self.log_prior(x)
            self._evaluated = (key, evidence.log_likelihood + prior, evidence.gradient + slope)
        return self._evaluated[1], self._evaluated[2].copy()

    def log_prior(self, x: Array) -> tuple[float, Array]:
        """Log prior at ``x`` up to a constant, and its gradient; zero without a prior."""
        if self.task.prior is None:
            return 0.0, np.zeros(x.size)
        graph_kernel, input_theta, noise_variance = self.split(x)
        graph_value, graph_slope, noise_slope, _ = graph_kernel.search().log_prior(self.spectrum, noise_variance)
        centres, spreads = self.task.length_scales
        deviations = np.nan_to_num((input_theta - centres) / spreads)
        value, slopes = graph_value - 0.5 * float(deviations @ deviations), [graph_slope, -deviations / spreads]
        if self.learns_noise:
            deviation = float(np.log(noise_variance / self.task.typical_noise))
            of_noise, slope, _ = noise_log_prior(deviation, self.task.graph.n_nodes)
            value, slopes = value + of_noise, [*slopes, np.array([noise_slope + slope])]
        return value, np.concatenate(slopes)

    def evidence(self, x: Array, by_modes: bool = False) -> ModalEvidence | TimeEvidence:
        """Evidence at ``x``, without the prior, by filters in the order of time if it may be and not `by_modes`.

        In the eigenbases of nodes and inputs signals are read once for each basis of the nodes, and turned once for
        each covariance of the inputs.
        """
        in_time = self.is_in_time and not by_modes
        key = x.tobytes(), in_time
        if self._evidence is not None and self._evidence[0] == key:
            return self._evidence[1]
        task, (graph_kernel, input_theta, noise_variance) = self.task, self.split(x)
        if in_time:
            self._evidence = key, self._filtered(graph_kernel, input_theta, noise_variance)
            return self._evidence[1]
        basis, input_key = graph_kernel.basis(self.spectrum), input_theta.tobytes()
        if self._inputs is None or self._inputs[0] != input_key:
            kernel = task.input_kernel.with_theta(input_theta)
            modes, jacobian = kernels.modes_and_gradient(kernel, task.inputs, task.signals.units.signal_scales)
            slopes = [modes.vectors.T @ one @ modes.vectors for one in np.moveaxis(jacobian, -1, 0)]
            self._inputs = (input_key, InputCovariance(modes), np.stack(slopes, axis=-1) if slopes else jacobian)
        rows = self._inputs[1]
        if self._rotated is None or self._rotated[0] is not basis or self._rotated[1] is not rows:
            if self._read is None or self._read[0] is not basis:
                carried = None if task.carried is None else task.carried.signals(task.inputs, task.signals.units)
                self._read = (basis, basis.read(task.signals, carried))  # what carries over stands below them
            vectors = rows.modes.vectors
            vectors = vectors if task.carried is None else block_diag(vectors, vectors)
            self._rotated = (basis, rows, self._read[1].rotate(vectors))
        power, residual = graph_kernel.power(basis.eigenvalues), graph_kernel.residual_power(basis.eigenvalues)
        point = graph_kernel, self.spectrum, self._inputs[2], noise_variance, self.learns_noise
        evidence = ModalEvidence(rows, power, residual + noise_variance, self._rotated[2], *point)
        if task.carried is not None:
            # the most likely autoregressive term at every step: to first order nothing else depends on it
            known = evidence.data, evidence.precisions, basis.eigenvalues, self.spectrum.upper
            carry = CarryFilter.learnt(*known)
            data = evidence.data.without_carried(carry.response(basis.eigenvalues))
            evidence = replace(evidence, data=data, carry=carry)
        self._evidence = key, evidence
        return evidence

    def _filtered(self, graph_kernel: GraphKernel, input_theta: Array, noise_variance: float) -> TimeEvidence:
        """Evidence by filters in the order of time, in which signals are read once."""
        task = self.task
        terms = kernels.matern_terms(task.input_kernel.with_theta(input_theta), task.inputs)
        space, jacobian = fields.state_space(
            graph_kernel, self.spectrum.eigenvalues, noise_variance, terms, input_theta.size
        )
        if self.learns_noise:
            noise = np.zeros((*jacobian.shape[:2], 1))
            noise[-1] = noise_variance
            jacobian = np.concatenate([jacobian, noise], axis=2)
        if self._series is None:
            signals, load, times = task.signals, self.spectrum.load, task.inputs[:, 0]
            blocks = [load(signals.values), *([] if signals.deviations is None else load(signals.deviations))]
            order = np.argsort(times, kind="stable")
            self._series = Timeline.of(times[order]), [np.ascontiguousarray(block[order]) for block in blocks]
        return TimeEvidence(space, jacobian, *self._series)

    def precision(self, x: Array, further: float = 0.0) -> Array:
        """Positive definite curvature: the Fisher information and that of the prior; diagonal if this is not known.

        `further` is a white variance that is added to the covariance.
        """
        curvature = self.evidence(x).information(further)
        if curvature is None:
            return np.diag(self.size / self.units**2)
        if self.task.prior is not None:
            (graph_kernel, _, noise_variance), (centres, spreads) = self.split(x), self.task.length_scales
            of_inputs = np.where(np.isnan(centres), 0.0, spreads**-2.0)
            deviation = float(np.log(noise_variance / self.task.typical_noise))
            of_noise = noise_log_prior(deviation, self.task.graph.n_nodes)[2]
            own, rest = slice(self.n_graph), range(self.n_graph, len(curvature))
            curvature[own, own] += graph_kernel.search().log_prior(self.spectrum, noise_variance).precision
            curvature[rest, rest] += [*of_inputs, *[of_noise] * self.learns_noise]
        return definite(curvature, self.units)


def definite(curvature: Array, units: Array) -> Array:
    """Return a curvature with eigenvalues raised to a minimum, in the units of the parameters.

    Information vanishes where the filter does, priors need not be concave, and quadrature weights may be negative.
    """
    values, vectors = np.linalg.eigh(curvature * np.outer(units, units))
    scaled = vectors / units[:, None]
    return (scaled * np.maximum(values, MIN_PRECISION)) @ scaled.T


def noise_log_prior(deviation: float, n_nodes: int) -> tuple[float, float, float]:
    """Log prior of the log noise above or below the most probable, (19b), with its slope and a precision to step by.

    Above, the heavy tails of Student's t. Below, few signals may be explained by a filter that leaves no noise: there
    it is as if a quarter of a signal of noise had been seen, which the noise-free data of a few dozen signals outweigh.
    """
    if deviation > 0:
        freedom = NOISE_DEGREES_OF_FREEDOM
        value, slope = np.log1p(deviation**2 / freedom), deviation / (freedom + deviation**2)
        return float(-0.5 * (freedom + 1) * value), -(freedom + 1) * slope, (freedom + 1) / freedom
    worth, root = 0.5 * NOISE_SIGNALS * min(n_nodes, MOST_NOISE_NODES), float(np.hypot(1.0, deviation))
    return -worth * (root - 1), -worth * deviation / root, worth / root**3


def fisher_information(
    precisions: Array,
    power: Array,
    multiplicities: Array,
    before: Sequence[tuple[Array, Array]],
    input_slopes: Array,
    after: Sequence[tuple[Array, Array]] = (),
) -> Array:
    """Expected curvature of the log likelihood, equation (19), without an array of signals, frequencies and directions.

    Shapes: `precisions` ``1 / D`` (n_signals, n_frequencies); `power` ``gamma`` and `multiplicities`, the number of
    nodes that a frequency stands for, (n_frequencies,); `input_slopes` ``T = U^T (dK / d theta) U`` (n_signals,
    n_signals, n_input_parameters). Directions of filters and noise stand `before` and `after` those of the input kernel
    in the order of the parameters: pairs of ``a`` (n_signals,) and ``c`` (n_frequencies, n_directions), one direction
    ``dD_ij = a_i c_j`` per column.
    """
    squares, groups = np.square(precisions), (*before, *after)
    n_inputs = input_slopes.shape[2]
    inner, crossed = np.zeros((n_inputs, n_inputs)), [np.zeros((n_inputs, c.shape[1])) for _, c in groups]
    if n_inputs:  # else products over the signals are for nothing
        weights = (precisions * (multiplicities * power**2)) @ precisions.T
        flat = input_slopes.reshape(weights.size, n_inputs)
        inner = flat.T @ (weights.ravel()[:, None] * flat)
        diagonals, weighted = np.einsum("iia->ia", input_slopes), (multiplicities * power)[:, None]
        crossed = [(diagonals * a[:, None]).T @ (squares @ (weighted * c)) for a, c in groups]
    blocks = []
    for (a, c), with_inputs in zip(groups, crossed, strict=True):
        row = [c.T @ ((multiplicities * ((a * b) @ squares))[:, None] * d) for b, d in groups]
        row.insert(len(before), with_inputs.T)
        blocks.append(row)
    crossed.insert(len(before), inner)
    blocks.insert(len(before), crossed)
    # np.block takes longer than all of the rest for a few signals
    return 0.5 * np.concatenate([np.concatenate(row, axis=1) for row in blocks])
