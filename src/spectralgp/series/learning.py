"""Learning of processes in time: powers and rates as functions on the graph's spectrum, or of every node on its own."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from spectralgp._basics.checks import Array, as_real_array
from spectralgp.learning import Certificate, Outcome, Sqp, Stage
from spectralgp.learning.fit import SearchReport, certify, lift_above_zero
from spectralgp.learning.objective import (
    FIRST_NOISE_SHARE,
    NOISE_CEILING,
    NOISE_FLOOR,
    NOISE_SHARE,
    definite,
    noise_log_prior,
)
from spectralgp.learning.sqp import COARSE_TOLERANCE_NATS, judged, maximise
from spectralgp.model.kernels import GraphKernel, Identity, Positivity, SpectralKernel, power_jacobians
from spectralgp.model.kernels.search import SIGNAL_SHARE
from spectralgp.model.spectra import ExactSpectrum, mean_over_nodes
from spectralgp.model.statespace import Component, StateSpace, Timeline, evaluate, information
from spectralgp.scores import observed_mean
from spectralgp.series.process import ROUGHLY_OPEN, ImputedProcess, ModalProcess, as_times, complete

SOLVER = Sqp()
LEAST_RATE = 0.01  # over the span: a slower process cannot be told from a constant
FIRST_TURNS = 5.0  # periods that an oscillator keeps its phase for, where searches start and priors are centred
PERIOD_SPREAD = 1.5  # standard deviation of the log rate of an oscillator
RANGE_SPREADS = 3.0  # standard deviations of a log rate between one over the span and one over the step
LEAST_SPREAD = 1.0  # of a log rate
SHIFTS = (0.0, 0.25, -0.25)  # of the first rates, as shares of that range: one search from each
IDLE_SHARE = 0.005  # of the variance, below which a component is dropped
MOST_ON_THE_WAY = 1_000_000  # values, the latest ones, that searches on the way to the last one see

# Series with holes
DRAWS, FEWEST_DRAWS = 32, 2  # of what completed values may deviate by: times the share that is missing, at least
MOST_DRAWN = 1_000_000  # values of all draws together, unless they are the fewest
EM_SOLVES = 1e-4  # tolerance of their solves: from a near start one of 1e-3 is met too soon, and costs a hundred nats
EM_TOLERANCE_NATS = 0.1  # that the answer may fall short of the maximum
N_SEARCHES = 2  # from several starts; later steps start where the one before ended
MOST_EM_STEPS = 40
MOST_MISSING = 0.9  # share of the information

# Nodes on their own
LEAST_NODE_SHARE = 1e-6  # of the mean variance of all nodes, below which a node is taken to have that mean, unlearnt
NODE_PRECISION = 0.02  # of the log powers and variances about where they start
MOST_NODE_STEPS = 60
NODE_COMPLETIONS = 6  # of series with holes, each under what was learnt from the one before
NODE_TOLERANCE_NATS = 1e-3  # per node, below which a gain ends its search
DAMPING = 1e-3
LARGEST_DAMPING = 1e9
LARGEST_NODE_STEP = 2.0  # of a logarithm


@dataclass(frozen=True, eq=False)
class RatePriors:
    """Where log rates are, by the time scales that a series can tell apart: from one step to the whole span."""

    centres: Array  # (n_components,)
    spreads: Array  # (n_components,)
    shifts: Array  # (n_components,), by which other starts lie apart; zero for oscillators
    least: float  # rate

    @classmethod
    def of(cls, components: Sequence[Component], timeline: Timeline) -> RatePriors:
        """Matern processes share out the range from fast to slow; oscillators keep their phase for a few periods."""
        span = float(timeline.times[-1] - timeline.times[0])
        step = float(np.median(np.diff(timeline.times)))
        reach = max(float(np.log(span / step)), LEAST_SPREAD)
        drifting = [component.angles.size == 0 for component in components]
        places = np.cumsum(drifting) / (1 + sum(drifting))  # from fast to slow
        centres = -np.log(step) - reach * places
        spreads = np.full(len(components), max(reach / RANGE_SPREADS, LEAST_SPREAD))
        for number, component in enumerate(components):
            if component.angles.size:
                centres[number] = np.log(max(component.angles[0] / (2 * np.pi * FIRST_TURNS), 1 / span))
                spreads[number] = PERIOD_SPREAD
        return cls(centres, spreads, reach * np.array(drifting), LEAST_RATE / span)


@dataclass(frozen=True, eq=False)
class Dynamics:
    """Powers and rates of components as functions on the spectrum, that of a residual, and the noise: equation (27)."""

    components: tuple[Component, ...]
    powers: tuple[SpectralKernel, ...]  # one per component
    rates: tuple[SpectralKernel, ...]  # one per component: its power is the rate, above the least one
    residuals: tuple[SpectralKernel, ...]  # one, or none
    noise_variance: float
    least_rate: float

    @property
    def kernels(self) -> tuple[SpectralKernel, ...]:
        """All that is learnt but the noise, in the order of the parameters."""
        return (*self.powers, *self.rates, *self.residuals)

    @property
    def places(self) -> list[slice]:
        """Of the parameters of each kernel."""
        ends = np.cumsum([0, *(kernel.theta.size for kernel in self.kernels)]).tolist()
        return [slice(start, stop) for start, stop in itertools.pairwise(ends)]

    @property
    def theta(self) -> Array:
        """Parameters of all kernels and the log noise."""
        return np.concatenate([*(kernel.theta for kernel in self.kernels), [np.log(self.noise_variance)]])

    def with_kernels(self, kernels: Sequence[SpectralKernel], noise_variance: float) -> Dynamics:
        """The same with other kernels, as many."""
        n = len(self.components)
        parts = tuple(kernels[:n]), tuple(kernels[n : 2 * n]), tuple(kernels[2 * n :])
        return Dynamics(self.components, *parts, noise_variance, self.least_rate)

    def with_theta(self, theta: Array) -> Dynamics:
        """The same at other parameters."""
        pairs = zip(self.kernels, self.places, strict=True)
        return self.with_kernels([kernel.with_theta(theta[place]) for kernel, place in pairs], float(np.exp(theta[-1])))

    def chosen(self, numbers: Sequence[int]) -> Dynamics:
        """With some of the components."""
        parts: tuple[Any, ...] = (self.components, self.powers, self.rates)
        components, powers, rates = (tuple(part[number] for number in numbers) for part in parts)
        return replace(self, components=components, powers=powers, rates=rates)

    def path(self) -> list[Dynamics]:
        """Forms of growing complexity, of which this is the last: powers grow first, then rates that are functions."""
        n, paths = len(self.components), [kernel.search().path() for kernel in self.kernels]

        def form(of_power: int, of_rate: int) -> Dynamics:
            turns = [*[of_power] * n, *[of_rate] * n, *[of_power] * len(self.residuals)]
            kernels: Any = [path[min(turn, len(path) - 1)] for path, turn in zip(paths, turns, strict=True)]
            return self.with_kernels(kernels, self.noise_variance)

        n_powers, n_rates = (max(map(len, part)) for part in (paths[:n] + paths[2 * n :], paths[n : 2 * n]))
        return [form(turn, 0) for turn in range(n_powers)] + [form(n_powers - 1, turn) for turn in range(1, n_rates)]

    def grown_from(self, simpler: Dynamics) -> Dynamics:
        """The form with the functions of a simpler one."""
        pairs = zip(self.kernels, simpler.kernels, strict=True)
        kernels = [
            new.with_theta(old.theta if old.theta.size == new.theta.size else new.search().grown_from(old))
            for new, old in pairs
        ]
        return self.with_kernels(kernels, simpler.noise_variance)

    def space(self, eigenvalues: Array) -> StateSpace:
        """What filters run on, at some frequencies."""
        powers = np.array([kernel.power(eigenvalues) for kernel in self.powers])
        rates = self.least_rate + np.array([kernel.power(eigenvalues) for kernel in self.rates])
        noise = np.full(eigenvalues.size, self.noise_variance)
        own = np.sum([*(kernel.power(eigenvalues) for kernel in self.residuals), noise], axis=0)
        return StateSpace(self.components, powers, rates, own)

    def process(self, spectrum: ExactSpectrum) -> ModalProcess:
        """The process on a graph."""
        space = self.space(spectrum.eigenvalues)
        return ModalProcess(space.components, space.powers, space.rates, space.own, spectrum.forward)


class SeriesObjective:
    """Log posterior of the parameters of dynamics given series on a graph.

    Coefficients are those of the series, and of what it may deviate by where it has holes: outer products add up.

    The prior has what each kernel says of its own, log rates about those that the series can tell apart, and the noise
    as in every other fit.
    """

    def __init__(
        self,
        form: Dynamics,
        spectrum: ExactSpectrum,
        timeline: Timeline,
        coefficients: Sequence[Array],
        priors: RatePriors,
    ) -> None:
        self.form, self.spectrum, self.timeline, self.coefficients = form, spectrum, timeline, coefficients
        self.priors, self.n_evaluations = priors, 0
        self._evaluated: tuple[Array, float, Array, float] | None = None

    @cached_property
    def variance(self) -> float:
        """Mean square of the values."""
        return float(sum(np.mean(np.square(one)) for one in self.coefficients)) or 1.0

    @property
    def size(self) -> int:
        """Number of values."""
        return self.coefficients[0].size

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the entries of ``x``."""
        n = len(self.form.components)
        words = [f"{what} {number}" for what in ("power", "rate") for number in range(n)] + ["residual"]
        names = [kernel.search().parameter_names for kernel in self.form.kernels]
        return (*(f"{word}: {one}" for word, own in zip(words, names, strict=False) for one in own), "noise_variance")

    @cached_property
    def scales(self) -> list[float]:
        """In the units of each kernel: variances, and rates."""
        n = len(self.form.components)
        return [*[self.variance] * n, *np.exp(self.priors.centres), *[self.variance] * len(self.form.residuals)]

    @cached_property
    def bounds(self) -> Array:
        """Bounds of ``x``."""
        noise = np.log(np.array([[NOISE_FLOOR["weak"], NOISE_CEILING]]) * self.variance)
        return np.vstack(
            [kernel.search().bounds(scale) for kernel, scale in zip(self.form.kernels, self.scales, strict=True)]
            + [noise]
        )

    @cached_property
    def units(self) -> Array:
        """A typical change of each entry of ``x``."""
        pairs = zip(self.form.kernels, self.scales, strict=True)
        return np.concatenate([*(kernel.search().theta_units(scale) for kernel, scale in pairs), [1.0]])

    def positivity(self, x: Array, coarse: bool = False) -> tuple[Positivity, ...]:
        """Where powers, rates and the residual must not be negative."""
        form = self.form.with_theta(x)
        pairs = zip(form.kernels, form.places, strict=True)
        return tuple(
            one.after(place.start)
            for kernel, place in pairs
            for one in kernel.search().positivity(self.spectrum, coarse)
        )

    def start(self, shift: float) -> Array:
        """Constant filters, at rates that lie apart from the usual ones by a share of their range."""
        form, priors = self.form, self.priors
        share = self.variance / (len(form.components) + len(form.residuals))
        rates = np.exp(priors.centres + shift * priors.shifts) / SIGNAL_SHARE
        scales = [*[share] * len(form.components), *rates, *[share] * len(form.residuals)]
        pairs = zip(form.kernels, scales, strict=True)
        thetas = [kernel.search().starting_points(self.spectrum, scale)[-1] for kernel, scale in pairs]
        return np.clip(np.concatenate([*thetas, [np.log(FIRST_NOISE_SHARE * self.variance)]]), *self.bounds.T)

    def evaluate(self, x: Array) -> tuple[float, Array]:
        """Log posterior and its gradient."""
        if self._evaluated is None or not np.array_equal(x, self._evaluated[0]):
            self.n_evaluations += 1
            form, eigenvalues = self.form.with_theta(x), self.spectrum.eigenvalues
            slopes = evaluate(form.space(eigenvalues), self.timeline, self.coefficients)
            value, gradient, _ = self._log_prior(form)
            local = [*slopes.powers, *slopes.rates, *[slopes.own] * len(form.residuals)]
            parts = zip(form.kernels, local, strict=True)
            gradient[:-1] += np.concatenate([kernel.power_jacobian(eigenvalues).T @ slope for kernel, slope in parts])
            gradient[-1] += form.noise_variance * slopes.own.sum()
            likelihood = float(slopes.values.sum())
            self._evaluated = (x.copy(), likelihood + value, gradient, likelihood)
        return self._evaluated[1], self._evaluated[2].copy()

    def log_likelihood(self, x: Array) -> float:
        """Without the prior."""
        self.evaluate(x)
        assert self._evaluated is not None  # by the line above
        return self._evaluated[3]

    def _log_prior(self, form: Dynamics) -> tuple[float, Array, Array]:
        """Log prior, its gradient, and its curvature or a precision to step by."""
        n, noise, eigenvalues = len(form.components), form.noise_variance, self.spectrum.eigenvalues
        n_parameters = self.form.theta.size
        value, gradient, curvature = 0.0, np.zeros(n_parameters), np.zeros((n_parameters, n_parameters))
        for number, (kernel, place) in enumerate(zip(form.kernels, form.places, strict=True)):
            is_rate = n <= number < 2 * n
            least = form.least_rate if is_rate else noise
            own, gradient[place], on_noise, curvature[place, place] = kernel.search().log_prior(self.spectrum, least)
            value += own
            if is_rate:  # its mean lies some standard deviations from the centre, in logarithms
                mean = form.least_rate + float(mean_over_nodes(self.spectrum, kernel.power(eigenvalues)))
                centre, spread = self.priors.centres[number - n], self.priors.spreads[number - n]
                deviation = float(np.log(mean) - centre) / spread
                direction = mean_over_nodes(self.spectrum, kernel.power_jacobian(eigenvalues)) / (mean * spread)
                value -= 0.5 * deviation**2
                gradient[place] -= deviation * direction
                curvature[place, place] += np.outer(direction, direction)
            else:
                gradient[-1] += on_noise
        deviation = float(np.log(noise / (NOISE_SHARE * self.variance)))
        of_noise, slope_of_noise, curvature[-1, -1] = noise_log_prior(deviation, self.spectrum.graph.n_nodes)
        gradient[-1] += slope_of_noise
        return float(value + of_noise), gradient, curvature

    def precision(self, x: Array) -> Array:
        """Fisher information of the parameters, equation (33), and the curvature of the prior."""
        form, eigenvalues = self.form.with_theta(x), self.spectrum.eigenvalues
        n, local = len(form.components), information(form.space(eigenvalues), self.timeline)
        jacobians = [kernel.power_jacobian(eigenvalues) for kernel in form.kernels]
        jacobians.append(np.full((eigenvalues.size, 1), form.noise_variance))
        which = [*range(2 * n), *[2 * n] * (len(form.residuals) + 1)]
        parts = list(zip(which, jacobians, strict=True))
        fisher = np.block([[one.T @ (local[a, b][:, None] * other) for b, other in parts] for a, one in parts])
        return definite(fisher + self._log_prior(form)[2], self.units)


@dataclass(frozen=True, eq=False)
class SeriesFit(SearchReport):
    """Learnt dynamics, with the evidence that they are a maximum."""

    dynamics: Dynamics
    process: ModalProcess
    log_likelihood: float
    value: float  # log posterior
    certificate: Certificate
    outcome: Outcome
    detail: str
    stages: tuple[Stage, ...]
    precision: Array = field(repr=False)  # of the parameters, in the order of the dynamics

    def bands(self, eigenvalues: Array) -> tuple[Array, Array]:
        """Standard deviations of log powers and of log rates, by the curvature, (n_components, n_eigenvalues) each."""
        covariance = np.linalg.inv(self.precision)
        n, found = len(self.dynamics.components), []
        kernels = self.dynamics.powers + self.dynamics.rates
        for number, (kernel, place) in enumerate(zip(kernels, self.dynamics.places, strict=False)):
            jacobian = kernel.power_jacobian(eigenvalues)
            values = kernel.power(eigenvalues) + (self.dynamics.least_rate if number >= n else 0.0)
            spread = np.sqrt(np.einsum("ja,ab,jb->j", jacobian, covariance[place, place], jacobian))
            found.append(np.divide(spread, values, out=np.full(values.size, np.inf), where=values > 0))
        return np.array(found[:n]), np.array(found[n:])


def learn_on_graph(
    spectrum: ExactSpectrum,
    times: Any,
    values: Any,
    components: Sequence[Component],
    power: GraphKernel,
    rate: GraphKernel | None = None,
    residual: GraphKernel | None = None,
    solver: Sqp = SOLVER,
    start: Dynamics | None = None,
) -> SeriesFit:
    """Learn powers and rates of components as functions of the graph's frequencies: equation (27).

    Parameters
    ----------
    spectrum : ExactSpectrum
        Of the graph, as `power` asks for it.
    times : array of shape (n_steps,)
        Times of the rows, increasing.
    values : array of shape (n_steps, n_nodes)
        Rows, centred and scaled; NaN where nothing was observed.
    components : sequence of Component
        Matern processes from fast to slow, oscillators anywhere among them.
    power : GraphKernel
        Form of the power of every component.
    rate : GraphKernel, optional
        Form of the rates of Matern processes; one number per component if not given, as it is for oscillators.
    residual : GraphKernel, optional
        Form of what each row has for itself and neighbours share; none if not given.
    solver : Sqp, optional
        Limit on iterations, and tolerance.
    start : Dynamics, optional
        What was learnt of other rows in this form, from which the one search goes on; several starts if not given.
    """
    timeline, values = _read(times, values, {"n_nodes": spectrum.graph.n_nodes})
    form = dynamics_of(spectrum, timeline, components, power, rate, residual) if start is None else start
    if np.isnan(values).any():
        return _learnt_through_holes(spectrum, timeline, values, form, solver, start)
    return _Search(spectrum, timeline, [values], solver).learnt(form, start)


def _read(times: Any, values: Any, sizes: dict[str, int]) -> tuple[Timeline, Array]:
    """Times and values of the rows of which something was observed, checked."""
    values = as_real_array(values, "values", ("n_steps", "n_nodes"), sizes=sizes, allow_nan=True)
    times = as_times(times, len(values))
    kept = np.flatnonzero(~np.isnan(values).all(axis=1))
    if kept.size < 3:
        raise ValueError(f"values must have 3 rows or more to learn from; got {kept.size}.")
    return Timeline.of(times[kept]), values[kept]


def dynamics_of(
    spectrum: ExactSpectrum,
    timeline: Timeline,
    components: Sequence[Component],
    power: GraphKernel,
    rate: GraphKernel | None,
    residual: GraphKernel | None,
) -> Dynamics:
    """What is to be learnt, with nothing learnt yet."""
    if not components:
        raise ValueError("components must hold at least one component; got none.")
    kernels = [kernel for kernel in (power, rate, residual) if kernel is not None]
    for kernel in kernels:
        if power_jacobians(kernel, np.zeros(1)) is None:
            raise ValueError(f"power, rate and residual must be functions on the spectrum; got {kernel!r}.")
    by_frequency = Identity() if rate is None else rate
    rates = [Identity() if component.angles.size else by_frequency for component in components]
    bound: list[Any] = [kernel.bind(spectrum) for kernel in (*[power] * len(components), *rates)]
    n = len(components)
    residuals: tuple[Any, ...] = () if residual is None else (residual.bind(spectrum),)
    least = RatePriors.of(components, timeline).least
    return Dynamics(tuple(components), tuple(bound[:n]), tuple(bound[n:]), residuals, 1.0, least)


@dataclass(frozen=True, eq=False)
class _Search:
    """Searches from several starts, by forms of growing complexity, on as much of the series as they need."""

    spectrum: ExactSpectrum
    timeline: Timeline
    sets: Sequence[Array]  # the series, and what it may deviate by where it has holes, over the nodes
    solver: Sqp

    @cached_property
    def coefficients(self) -> list[Array]:
        """Series at the frequencies of the graph."""
        forward = self.spectrum.forward
        return [np.ascontiguousarray(one if forward is None else one @ forward) for one in self.sets]

    def objective(self, form: Dynamics, window: slice = slice(None)) -> SeriesObjective:
        """Of the rows in a window."""
        timeline = self.timeline if window == slice(None) else Timeline.of(self.timeline.times[window])
        parts = [one[window] for one in self.coefficients]
        return SeriesObjective(form, self.spectrum, timeline, parts, RatePriors.of(form.components, self.timeline))

    @property
    def window(self) -> slice:
        """The latest rows, as many as searches on the way see."""
        n_steps, n_nodes = self.sets[0].shape
        fewest = max(2, MOST_ON_THE_WAY // (n_nodes * len(self.sets)))
        return slice(None) if fewest >= n_steps else slice(n_steps - fewest, None)

    def learnt(self, form: Dynamics, start: Dynamics | None = None) -> SeriesFit:
        """The highest of several maxima, or the one near a start, without components that are idle."""
        stages: list[Stage] = []
        starts = self._starts(form, stages) if start is None else [start.theta]
        ends = starts if self.window == slice(None) else starts[:1]
        best = max((self.fit(form.with_theta(end), stages) for end in ends), key=lambda fit: fit.value)
        while True:
            powers = best.process.powers.mean(axis=1)
            shares = powers / (powers.sum() + best.process.own.mean())  # of the variance of a node on average
            busy = np.flatnonzero(shares >= IDLE_SHARE)
            if busy.size == shares.size or shares.size == 1:
                return replace(best, stages=tuple(stages))
            kept = busy.tolist() or [int(np.argmax(shares))]
            best = self.fit(best.dynamics.chosen(kept), stages)

    def _starts(self, form: Dynamics, stages: list[Stage]) -> list[Array]:
        """Parameters to end the search from, the most probable first: by growing forms, and at once."""
        first, *others = form.path()
        lowest = []
        for shift in SHIFTS:
            value, x = self._coarse(first, self.objective(first, self.window).start(shift), stages)
            lowest.append((value, x, shift))
        lowest.sort(key=lambda one: -one[0])
        if not others:
            return [x for _, x, _ in lowest[:2]]
        _, highest, shift = lowest[0]
        last = first.with_theta(highest)
        for next_form in others:
            value, x = self._coarse(next_form, next_form.grown_from(last).theta, stages)
            last = next_form.with_theta(x)
        at_once = self._coarse(form, self.objective(form, self.window).start(shift), stages)
        ordered = sorted([(value, last.theta), at_once], key=lambda one: -one[0])
        return [x for _, x in ordered]

    def _coarse(self, form: Dynamics, start: Array, stages: list[Stage]) -> tuple[float, Array]:
        """An ascent on the window that ends near a maximum, and its value."""
        objective = self.objective(form, self.window)
        x, value, _, _ = maximise(objective, start, self.solver.max_iterations, COARSE_TOLERANCE_NATS)
        stages.append(Stage(_label(form), value, objective.n_evaluations))
        return value, x

    def fit(self, form: Dynamics, stages: list[Stage]) -> SeriesFit:
        """The maximum near a point, on all rows."""
        objective, solver = self.objective(form), self.solver
        x, _, outcome, detail = maximise(objective, form.theta, solver.max_iterations, solver.tolerance_nats)
        x, lift = lift_above_zero(objective, x)
        value, certificate = objective.evaluate(x)[0], certify(objective, x, lift)
        met_tolerance = solver.tolerance_nats is not None and outcome is Outcome.CONVERGED
        outcome, detail = judged(certificate, objective.size, outcome, detail, met_tolerance)
        stages.append(Stage(_label(form), value, objective.n_evaluations))
        dynamics, precision = form.with_theta(x), objective.precision(x)
        process, likelihood = dynamics.process(self.spectrum), objective.log_likelihood(x)
        return SeriesFit(dynamics, process, likelihood, value, certificate, outcome, detail, tuple(stages), precision)


class _Holes:
    """Rows of which something is missing, completed anew under every process that is learnt from them."""

    def __init__(self, times: Array, values: Array) -> None:
        self.times, self.values = times, values
        self.last: ImputedProcess | None = None
        wanted = int(np.ceil(DRAWS * np.isnan(values).mean()))
        self.n_draws = max(FEWEST_DRAWS, min(wanted, MOST_DRAWN // values.size))

    def completed(self, process: ModalProcess) -> list[Array]:
        """Rows, and what they may deviate by, as outer products that add up; solves go on from the last ones."""
        self.last = complete(process, self.times, self.values, self.n_draws, self.last, EM_SOLVES)
        return [self.last.mean, *self.last.deviations]


def _learnt_through_holes(
    spectrum: ExactSpectrum, timeline: Timeline, values: Array, form: Dynamics, solver: Sqp, start: Dynamics | None
) -> SeriesFit:
    """Complete series under dynamics, learn, and again until nothing is gained: by EM, with the likelihood of (33b)."""
    holes, stages = _Holes(timeline.times, values), list[Stage]()

    def search(dynamics: Dynamics) -> _Search:
        return _Search(spectrum, timeline, holes.completed(dynamics.process(spectrum)), solver)

    if start is None:
        simplest = form.path()[0]
        known = _Search(spectrum, timeline, [np.where(np.isnan(values), 0.0, values)], solver)
        dynamics = simplest.with_theta(known.objective(simplest).start(0.0))
        fit = search(dynamics).fit(dynamics, stages)
        for _ in range(N_SEARCHES):
            fit = search(fit.dynamics).learnt(form)
            stages += fit.stages
    else:
        fit = search(start).fit(start, stages)
    outcome, last_gain, detail = Outcome.NOT_STATIONARY, np.inf, ""
    rate = float(np.mean(np.isnan(values)))
    for _ in range(MOST_EM_STEPS):
        again = search(fit.dynamics)
        before = again.objective(fit.dynamics).evaluate(fit.dynamics.theta)[0]
        fit = again.fit(fit.dynamics, stages)
        gain = fit.value - before
        detail = f"another step would gain {max(gain, 0.0):.2g} nats"
        # a step leaves the share of the way to the maximum that the missing information has in all
        ratio = float(np.sqrt(max(gain, 0.0) / last_gain)) if last_gain > 0 else 0.0
        if gain <= EM_TOLERANCE_NATS * (1 - min(max(rate, ratio), MOST_MISSING)):
            outcome = Outcome.CONVERGED
            break
        last_gain = gain
    certificate = certify(search(fit.dynamics).objective(fit.dynamics), fit.dynamics.theta, fit.certificate.lift)
    likelihood = fit.process.filtered(timeline.times, values, ROUGHLY_OPEN).log_likelihood
    return replace(
        fit,
        log_likelihood=likelihood,
        value=likelihood + fit.value - fit.log_likelihood,  # with the prior
        outcome=outcome,
        detail=detail,
        certificate=certificate,
        stages=tuple(stages),
    )


def _label(form: Dynamics) -> str:
    return f"{len(form.components)} components, {form.powers[0].label}"


def learn_each(
    times: Any, values: Any, components: Sequence[Component], start: ModalProcess | None = None
) -> ModalProcess:
    """Learn every node on its own, all at once: damped scoring with the information of equation (33).

    Parameters
    ----------
    times, values, components
        As `learn_on_graph` takes them.
    start : ModalProcess, optional
        What was learnt of other rows, from which the one search goes on; several starts if not given.

    Returns
    -------
    ModalProcess
        Without a basis.
    """
    (timeline, values), components = _read(times, values, {}), tuple(components)
    mean_squares = observed_mean(np.square(values), 0, 0.0)
    typical = float(mean_squares.mean()) or 1.0
    is_still = mean_squares < LEAST_NODE_SHARE * typical  # the likelihood would take its variance to zero
    mean_squares = np.where(is_still, typical, mean_squares)
    nodes = _SeparateNodes(timeline, components, RatePriors.of(components, timeline), mean_squares)
    logarithms = nodes.start(0.0) if start is None else nodes.logarithms(start)
    holes = _Holes(timeline.times, values) if np.isnan(values).any() else None
    for step in range(1 if holes is None else NODE_COMPLETIONS):
        sets = [values] if holes is None else holes.completed(nodes.process(logarithms))
        logarithms = nodes.learnt(sets) if step == 0 and start is None else nodes.scored(sets, logarithms)[0]
    return nodes.process(np.where(is_still, nodes.start(0.0), logarithms))


@dataclass(frozen=True, eq=False)
class _SeparateNodes:
    """Nodes on their own: logarithms of powers, rates and own variances, shape (2 n_components + 1, n_nodes)."""

    timeline: Timeline
    components: tuple[Component, ...]
    priors: RatePriors
    mean_squares: Array  # (n_nodes,), positive

    def start(self, shift: float) -> Array:
        """Rates lie apart from the usual ones by a share of their range."""
        n, variances = len(self.components), self.mean_squares
        rates = np.repeat((self.priors.centres + shift * self.priors.shifts)[:, None], variances.size, axis=1)
        powers = np.tile(np.log(SIGNAL_SHARE * variances / n), (n, 1))
        return np.vstack([powers, rates, np.log(FIRST_NOISE_SHARE * variances)])

    def process(self, logarithms: Array) -> ModalProcess:
        """Without a basis."""
        n, natural = len(self.components), np.exp(logarithms)
        return ModalProcess(self.components, natural[:n], self.priors.least + natural[n : 2 * n], natural[-1], None)

    def logarithms(self, process: ModalProcess) -> Array:
        """Those of a process that was learnt of other rows."""
        rates = np.maximum(process.rates - self.priors.least, self.priors.least)
        return np.log(np.vstack([process.powers, rates, process.own]))

    def learnt(self, values: Sequence[Array]) -> Array:
        """The highest of what several starts lead to, node by node."""
        first, *others = [self.scored(values, self.start(shift)) for shift in SHIFTS]
        best, highest = first
        for logarithms, found in others:
            best, highest = np.where(found > highest, logarithms, best), np.maximum(found, highest)
        return best

    def scored(self, values: Sequence[Array], x: Array) -> tuple[Array, Array]:
        """Where damped scoring leads to, and log posteriors of the nodes there."""
        n, n_nodes = len(self.components), self.mean_squares.size
        centre, precisions = self.start(0.0), np.full(2 * n + 1, NODE_PRECISION)
        precisions[n : 2 * n] = self.priors.spreads**-2.0

        def valued(x: Array) -> tuple[Array, Array]:
            slopes = evaluate(self.process(x).space, self.timeline, values)
            deviations = x - centre
            gradient = (
                np.vstack([slopes.powers, slopes.rates, slopes.own]) * np.exp(x) - precisions[:, None] * deviations
            )
            return slopes.values - 0.5 * precisions @ deviations**2, gradient

        value, gradient = valued(x)
        damping, is_live = np.full(n_nodes, DAMPING), np.ones(n_nodes, bool)
        for _ in range(MOST_NODE_STEPS):
            natural = np.exp(x)
            local = information(self.process(x).space, self.timeline) * natural * natural[:, None]
            local = np.moveaxis(local, -1, 0) + np.diag(precisions)
            local += damping[:, None, None] * np.eye(2 * n + 1) * np.einsum("jaa->ja", local)[:, :, None]
            step = np.linalg.solve(local, gradient.T[:, :, None])[:, :, 0].T
            step *= LARGEST_NODE_STEP / np.maximum(np.abs(step).max(axis=0), LARGEST_NODE_STEP) * is_live
            new_value, new_gradient = valued(x + step)
            is_higher = new_value > value  # false where it is NaN
            is_small = new_value - value < NODE_TOLERANCE_NATS
            x, gradient = np.where(is_higher, x + step, x), np.where(is_higher, new_gradient, gradient)
            value = np.where(is_higher, new_value, value)
            damping = np.where(is_higher, np.maximum(damping / 5, 1e-6), np.maximum(damping, DAMPING) * 8)
            is_live &= ~((is_higher & is_small) | (damping > LARGEST_DAMPING))
            if not is_live.any():
                break
        return x, value
