"""Learning of processes in time, by frequencies of a graph or for each node on its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, cast

import numpy as np

from spectralgp._basics.checks import Array, as_real_array
from spectralgp._basics.saved import Number, Positive, StoredAs, axes
from spectralgp.learning import Certificate, Fit, Outcome, Sqp, Stage, Task
from spectralgp.learning.fit import SearchReport
from spectralgp.learning.missing import Expectation, count_of, learn_incomplete, with_evidence
from spectralgp.learning.objective import FIRST_NOISE_SHARE, Objective
from spectralgp.model.fields import GraphGP, ProcessKernel, RatePriors
from spectralgp.model.fields.processes import SHIFTS
from spectralgp.model.kernels import GraphKernel
from spectralgp.model.kernels.base import SIGNAL_SHARE
from spectralgp.model.kernels.inputs import IndependentSignals
from spectralgp.model.signals import as_training
from spectralgp.model.spectra import ExactSpectrum
from spectralgp.model.statespace import Component, Timeline, evaluate, information
from spectralgp.scores import observed_mean
from spectralgp.series.process import ROUGHLY_OPEN, ImputedProcess, ModalProcess, complete, increasing_times

SOLVER = Sqp()
IDLE_SHARE = 0.005  # of the variance, below which a component is dropped
MOST_FIRST = 1_000_000  # latest values that a first search uses

# Missing values
DRAWS, FEWEST_DRAWS = 32, 2  # of missing values: times their share, at least
MOST_DRAWN = 1_000_000  # values of all draws together, unless they are the fewest
EM_SOLVES = 1e-4  # tolerance of their solves: from a near start one of 1e-3 is met too soon, and costs a hundred nats
EM_TOLERANCE_NATS = 0.1  # of the maximum

# Separate nodes
LEAST_NODE_SHARE = 1e-6  # of the mean variance of all nodes, below which a node takes that mean and is not learnt
NODE_PRECISION = 0.02  # of the log powers and variances about where they start
MOST_NODE_STEPS = 60
NODE_COMPLETIONS = 6  # imputations of missing values, each under the process learnt from the one before
NODE_TOLERANCE_NATS = 1e-3  # per node, below which a gain ends its search
DAMPING = 1e-3
LARGEST_DAMPING = 1e9
LARGEST_NODE_STEP = 2.0  # of a logarithm


@dataclass(frozen=True, eq=False)
class SeriesFit(SearchReport):
    """Learnt process of a graph with the report of its search: the parts of a `Fit` that do not need the series."""

    kernel: Annotated[ProcessKernel, StoredAs(GraphKernel)]
    noise_variance: Positive
    process: ModalProcess
    log_likelihood: Number
    log_posterior: Number
    certificate: Certificate
    outcome: Outcome
    detail: str
    stages: tuple[Stage, ...]
    # of the parameters of the kernel and the log noise
    precision: Annotated[Array, axes("_parameters", "_parameters")] = field(repr=False)

    @classmethod
    def of(cls, task: Task, fit: Fit) -> SeriesFit:
        """Return the parts of a fit to keep, with the curvature at its maximum."""
        model, kernel = fit.model, cast(ProcessKernel, fit.model.graph_kernel)
        objective = Objective(task, kernel, model.spectrum)
        precision = objective.precision(objective.point(model))
        report = fit.log_likelihood, fit.log_posterior, fit.certificate, fit.outcome, fit.detail, fit.stages
        return cls(kernel, model.noise_variance, process_of(model), *report, precision)

    def moved_to(self, spectrum: ExactSpectrum) -> SeriesFit:
        """Return the fit on the spectrum of another graph."""
        kernel = self.kernel.moved_to(spectrum)
        model = GraphGP(spectrum, kernel, IndependentSignals(), self.noise_variance)
        return replace(self, kernel=kernel, process=process_of(model))

    def bands(self, eigenvalues: Array) -> tuple[Array, Array]:
        """Standard deviations of log powers and of log rates, by the curvature, (n_components, n_eigenvalues) each."""
        kernel, covariance, found = self.kernel, np.linalg.inv(self.precision), []
        n = kernel.n_components
        for number, (part, place) in enumerate(zip(kernel.kernels[: 2 * n], kernel.places, strict=False)):
            jacobian = part.power_jacobian(eigenvalues)
            values = part.power(eigenvalues) + (kernel.least_rate if number >= n else 0.0)
            spread = np.sqrt(np.einsum("ja,ab,jb->j", jacobian, covariance[place, place], jacobian))
            found.append(np.divide(spread, values, out=np.full(values.size, np.inf), where=values > 0))
        return np.array(found[:n]), np.array(found[n:])


def process_of(model: GraphGP) -> ModalProcess:
    """Process of a model of a series, at the frequencies of its graph."""
    spectrum, kernel = cast(ExactSpectrum, model.spectrum), cast(ProcessKernel, model.graph_kernel)
    space = kernel.space(spectrum.eigenvalues, model.noise_variance)
    return ModalProcess(space.components, space.powers, space.rates, space.own, spectrum.forward)


def learn_on_graph(
    spectrum: ExactSpectrum,
    times: Any,
    values: Any,
    components: Sequence[Component],
    power: GraphKernel,
    rate: GraphKernel | None = None,
    residual: GraphKernel | None = None,
    solver: Sqp = SOLVER,
    start: SeriesFit | None = None,
    most_first: int = MOST_FIRST,
) -> SeriesFit:
    """Learn powers and rates of components as functions of the graph's frequencies: equation (27).

    Rows, shape (n_steps, n_nodes), are centred and scaled, at increasing times, NaN where nothing was observed.
    Components are Matern processes from fast to slow, with oscillators anywhere among them. `power` is the form of the
    power of each, on a spectrum as it asks for; `rate` that of the rates of Matern processes, by default one number per
    component, as for oscillators; `residual` that of the residual of each row that neighbours share, by default none.
    The search starts from `start`, a fit of the same form to other rows, or from several points; then a first search
    uses the latest values, `most_first` of them.
    """
    timeline, values = _read(times, values, {"n_nodes": spectrum.graph.n_nodes})
    task = series_task(spectrum, timeline.times, values)
    warm = None
    if start is None:
        kernel = ProcessKernel.open(components, power, rate, residual, RatePriors.of(components, timeline))
        kernel = kernel.bind(spectrum)  # its last form starts from constant filters too, not from its path alone
        kernel = kernel.with_theta(kernel.search().starting_points(spectrum, task.variance)[-1])
    else:
        kernel = replace(start.kernel, priors=RatePriors.of(start.kernel.components, timeline))
        model = GraphGP(spectrum, kernel, task.input_kernel, start.noise_variance)
        warm = Fit(model, 0.0, 0.0, start.certificate, start.outcome, start.detail, ())
    fit = _learnt(task, kernel, solver, warm, most_first)
    while busy := _busy(fit):
        kernel = cast(ProcessKernel, fit.model.graph_kernel).chosen(busy)
        kernel = replace(kernel, priors=RatePriors.of(kernel.components, timeline))
        fewer = _learnt(task, kernel, solver, replace(fit, model=replace(fit.model, graph_kernel=kernel)), most_first)
        fit = replace(fewer, stages=fit.stages + fewer.stages)
    return SeriesFit.of(task, fit)


def _read(times: Any, values: Any, sizes: dict[str, int]) -> tuple[Timeline, Array]:
    """Times and values of the rows with observed values, checked."""
    values = as_real_array(values, "values", ("n_steps", "n_nodes"), sizes=sizes, allow_nan=True)
    times = increasing_times(times, len(values))
    kept = np.flatnonzero(~np.isnan(values).all(axis=1))
    if kept.size < 3:
        raise ValueError(f"values must have 3 rows or more to learn from; got {kept.size}.")
    return Timeline.of(times[kept]), values[kept]


def series_task(spectrum: ExactSpectrum, times: Array, values: Array) -> Task:
    """Learning task of a series: the graph kernel alone relates its rows."""
    signals, typical = as_training(values, *values.shape), float(np.nanmean(np.square(values))) or 1.0
    settings: dict[str, Any] = {"typical_variance": typical, "is_series": True}
    return Task(spectrum.graph, IndependentSignals(), times[:, None], signals, **settings)


def _learnt(task: Task, kernel: ProcessKernel, solver: Sqp, warm_start: Fit | None, most_first: int) -> Fit:
    """Fit from a warm start, or from several starts; if there are many rows, a first search uses the latest."""
    n_steps, n_nodes = task.signals.shape
    n_latest = max(2, most_first // n_nodes)
    if warm_start is None and n_latest < n_steps:
        latest = np.arange(n_steps - n_latest, n_steps)
        warm_start = _learnt(task.part(latest, task.signals.some(latest)), kernel, solver.coarse(), None, most_first)
    if task.is_complete:
        return solver.fit(task, [kernel], None if warm_start is None else [warm_start])[0]
    expectation = SeriesExpectation(task)
    return with_evidence(task, learn_incomplete(task, kernel, solver, warm_start, expectation=expectation), expectation)


def _busy(fit: Fit) -> list[int]:
    """Numbers of the components to keep if some are idle; none if all are kept."""
    process = process_of(fit.model)
    powers = process.powers.mean(axis=1)
    shares = powers / (powers.sum() + process.own.mean())  # of the variance of a node on average
    busy = np.flatnonzero(shares >= IDLE_SHARE)
    if busy.size == shares.size or shares.size == 1:
        return []
    return busy.tolist() or [int(np.argmax(shares))]


def _n_draws(values: Array, most_drawn: int = MOST_DRAWN) -> int:
    """Number of draws that estimate the covariance of missing values."""
    wanted = int(np.ceil(DRAWS * np.isnan(values).mean()))
    return max(FEWEST_DRAWS, min(wanted, most_drawn // values.size))


class SeriesExpectation(Expectation):
    """Missing values of a series, imputed under a process; solves start from the last solutions."""

    def __init__(self, task: Task, most_drawn: int = MOST_DRAWN) -> None:
        super().__init__(task, EM_TOLERANCE_NATS)
        self.values, self.times = self.signals.as_observed, task.inputs[:, 0]
        self.n_draws = self.most_draws = _n_draws(self.values, most_drawn)
        self.missing_share = 1 - self.signals.size / self.values.size
        self._last: ImputedProcess | None = None

    def completed(self, model: GraphGP, is_far: bool = False) -> Task:
        assert self.n_draws is not None
        self._last = complete(process_of(model), self.times, self.values, self.n_draws, self._last, EM_SOLVES)
        return replace(self.task, signals=self.signals.completed(self._last.mean, self._last.deviations))

    def log_likelihood(self, model: GraphGP) -> tuple[float, float]:
        """Equation (33b)."""
        return float(process_of(model).filtered(self.times, self.values, ROUGHLY_OPEN).log_likelihood), 0.0

    def described(self, steps: str) -> str:
        n_missing = self.values.size - self.signals.size
        return f"{count_of(self.n_draws or 0)}, {steps}: {n_missing} of {self.values.size} values missing"


def learn_each(
    times: Any, values: Any, components: Sequence[Component], start: ModalProcess | None = None
) -> ModalProcess:
    """Learn a process whose modes are the nodes, all at once: damped scoring with the information of equation (33).

    Arguments are those of `learn_on_graph`. The search starts from a process learnt from other rows, if given.
    """
    (timeline, values), components = _read(times, values, {}), tuple(components)
    mean_squares = observed_mean(np.square(values), 0, 0.0)
    typical = float(mean_squares.mean()) or 1.0
    is_still = mean_squares < LEAST_NODE_SHARE * typical  # the likelihood would take its variance to zero
    mean_squares = np.where(is_still, typical, mean_squares)
    nodes = _SeparateNodes(timeline, components, RatePriors.of(components, timeline), mean_squares)
    logarithms = nodes.start(0.0) if start is None else nodes.logarithms(start)
    sets, last, n_draws = [values], None, _n_draws(values)
    is_complete = not np.isnan(values).any()
    for step in range(1 if is_complete else NODE_COMPLETIONS):
        if not is_complete:
            last = complete(nodes.process(logarithms), timeline.times, values, n_draws, last, EM_SOLVES)
            sets = [last.mean, *last.deviations]
        logarithms = nodes.learnt(sets) if step == 0 and start is None else nodes.scored(sets, logarithms)[0]
    return nodes.process(np.where(is_still, nodes.start(0.0), logarithms))


@dataclass(frozen=True, eq=False)
class _SeparateNodes:
    """Separate nodes: logarithms of powers, rates and own variances, shape (2 n_components + 1, n_nodes)."""

    timeline: Timeline
    components: tuple[Component, ...]
    priors: RatePriors
    mean_squares: Array  # (n_nodes,), positive

    def start(self, shift: float) -> Array:
        """Return a start whose rates differ from typical ones by a share of their range."""
        n, variances = len(self.components), self.mean_squares
        rates = np.repeat((self.priors.centres + shift * self.priors.shifts)[:, None], variances.size, axis=1)
        powers = np.tile(np.log(SIGNAL_SHARE * variances / n), (n, 1))
        return np.vstack([powers, rates, np.log(FIRST_NOISE_SHARE * variances)])

    def process(self, logarithms: Array) -> ModalProcess:
        """Return the process at given logarithms."""
        n, natural = len(self.components), np.exp(logarithms)
        return ModalProcess(self.components, natural[:n], self.priors.least + natural[n : 2 * n], natural[-1], None)

    def logarithms(self, process: ModalProcess) -> Array:
        """Return the logarithms of a process learnt from other rows."""
        rates = np.maximum(process.rates - self.priors.least, self.priors.least)
        return np.log(np.vstack([process.powers, rates, process.own]))

    def learnt(self, values: Sequence[Array]) -> Array:
        """Return the highest maximum from several starts, node by node."""
        first, *others = [self.scored(values, self.start(shift)) for shift in SHIFTS]
        best, highest = first
        for logarithms, found in others:
            best, highest = np.where(found > highest, logarithms, best), np.maximum(found, highest)
        return best

    def scored(self, values: Sequence[Array], x: Array) -> tuple[Array, Array]:
        """End of damped scoring from a point, and the log posteriors of the nodes there."""
        n, n_nodes = len(self.components), self.mean_squares.size
        centre, precisions = self.start(0.0), np.full(2 * n + 1, NODE_PRECISION)
        precisions[n : 2 * n] = self.priors.spreads**-2.0

        def valued(x: Array) -> tuple[Array, Array]:
            likelihoods, slopes = evaluate(self.process(x).space, self.timeline, values)
            deviations = x - centre
            gradient = slopes * np.exp(x) - precisions[:, None] * deviations
            return likelihoods - 0.5 * precisions @ deviations**2, gradient

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
