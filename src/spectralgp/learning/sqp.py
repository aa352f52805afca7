"""Default solver: sequential quadratic programming, continued from simple filters to complex ones."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter, itemgetter
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy.optimize import nnls

from spectralgp._basics.checks import Array, Mask, as_integer, as_option, as_positive
from spectralgp._basics.progress import mention, quietly, step_done
from spectralgp._basics.saved import Count, Positive, ge
from spectralgp.learning.fit import Certificate, Fit, Outcome, SearchResult, Solver, Stage, certify, lift_above_zero
from spectralgp.learning.objective import Objective, Task
from spectralgp.model.kernels import GraphKernel, input_starts, mean_power
from spectralgp.model.spectra import Spectrum, mean_over_nodes

# The continuation
COARSE_TOLERANCE_NATS = 0.3  # that a fit may fall short of its maximum where it is compared and thrown away
COARSE_TOLERANCE_PER_SIGNAL = 0.01  # the same for each signal, where there are many
WAY_TOLERANCE_NATS = 0.01  # the same of forms without a prior, which decide what maximum the next one finds
SAME_NATS = 0.05  # along a parabola: points nearer than this to a maximum lead to it
DISTINCT_NATS = 4 * COARSE_TOLERANCE_NATS  # in height or along a parabola: coarse solutions of different maxima
SIGNALS_BEFORE_ALL = 300  # drawn at random for a first fit, if there are at least twice this number
SILENT_SHARE = 1e-6  # mean power, as a share of the unexplained variance, below which a filter explains nothing
SILENT_COARSE_SHARE = 0.05  # the same of a coarse solution, which may be on its way there

# An ascent. By VIOLATION, a share of its largest value, a filter may fall below zero until it is lifted: no evaluation
# depends on it, and the point where a filter touches zero, which large multipliers stand on, is known to its root.
VIOLATION = 1e-12
STATIONARITY = 1e-3  # residual of the gradient that counts as zero, in its standard deviations over draws of the data
MIN_GAIN_NATS = 1e-10  # per observation: an ascent stops where a further step promises less
ROUNDING = 1e-14  # of the objective
FAR_GAIN_NATS = 10.0  # a step that promises more ends where the curvature is another
SUFFICIENT_GAIN = 1e-4  # share of the promised gain that a step must keep
MAX_STEP = 1.0  # units of a parameter
MIN_KEPT_RESPONSE = 0.2  # share of a filter that a step must keep where it is above zero
TOUCHING = 1e-3  # of a filter's largest value, below which a step may take it to zero
MAX_CONSTRAINT_ROUNDS = 30  # of adding constraints that a step would violate
MAX_CUTS = 25  # of a step that does not lead up
MAX_INPUT_STEPS, MAX_INPUT_CUTS = 20, 5  # of the input kernel's parameters alone, and halves of one
MAX_FRESH_STARTS = 3  # from a curvature that misled the ascent
NOTHING = np.empty((0, 2))  # bounds of no parameters

# Starts other than typical values: anywhere, and the best point of the paper's grids
RANDOM_SPREAD = 2.0  # standard deviation of random graph parameters about typical ones, in their units
MAX_LOG_DISTANCE = float(np.log(30.0))  # of random input parameters from typical ones
GRIDS = (np.linspace(-5, 5, 11), np.linspace(-10, 10, 11))  # the paper's: for low-pass, and for other spectra
GRID_NOISE_SHARES = (0.1, 0.2)  # of the signals' variance, the paper's
MAX_GRID_FILTERS = 10_000  # of one grid, beyond which it is thinned
MAX_GRID_COEFFICIENTS = 9  # with three values each they still fit the limit
MAX_BLOCK = 200_000  # variances computed at a time, few enough for a processor's cache


@dataclass(frozen=True)
class Sqp(Solver):
    """Joint constrained optimisation of all hyperparameters, with continuation in the complexity of the filter.

    Each form of a filter starts from the solution of the one before it, the same function with one more parameter, so
    the objective never falls along the way and the search ends at a local maximum near the simpler model. Without a
    prior it starts from typical values as well, and keeps the higher maximum. Still higher ones may exist further away:
    `n_restarts` searches for them. With few signals the highest maximum often predicts worse, at
    times far worse: restarts say how high the likelihood goes, not which model to trust.

    Parameters
    ----------
    max_iterations : int, default=500
        Limit on the iterations of each constrained solve.
    tolerance_nats : float, optional
        Stop where a further step promises no more than this many nats; as far as rounding allows if not given.
    n_restarts : int, default=0
        Number of random starts to ascend from as well, in the final form of each kernel; the highest log posterior of
        all is kept, and ``Fit.restarts`` has the value of each. Coarse fits have none: neither fits to held-out folds,
        so that weights of stacked kernels do not depend on restarts, nor fits of the default model to missing values.
        Other missing values are imputed under the answer first; the search continues from a higher restart.
    random_state : int, default=0
        Seed of the random starts, the same for every kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from spectralgp import Graph, Polynomial, Sqp, Task, learn
    >>> ring = Graph.from_edges([(node, (node + 1) % 12) for node in range(12)])
    >>> signals = np.cumsum(np.random.default_rng(0).standard_normal((8, 12)), axis=1)
    >>> task = Task.of(ring, None, np.empty((8, 0)), signals - signals.mean(), prior=None)
    >>> fit = learn(task, Polynomial(2), solver=Sqp(n_restarts=5))
    >>> len(fit.restarts), fit.log_posterior >= learn(task, Polynomial(2)).log_posterior
    (5, True)
    """

    shares_paths: ClassVar[bool] = True
    max_iterations: Annotated[int, ge(1)] = 500
    tolerance_nats: Positive | None = None
    n_restarts: Count = 0
    random_state: Count = 0

    def __post_init__(self) -> None:
        """Check the limits."""
        as_integer(self.max_iterations, "max_iterations", 1)
        as_integer(self.n_restarts, "n_restarts", 0)
        as_integer(self.random_state, "random_state", 0)
        if self.tolerance_nats is not None:
            as_positive(self.tolerance_nats, "tolerance_nats")

    def coarse(self, n_signals: int = 0, tolerance_nats: float | None = None) -> Sqp:
        if tolerance_nats is None:
            tolerance_nats = max(COARSE_TOLERANCE_NATS, COARSE_TOLERANCE_PER_SIGNAL * n_signals)
        return replace(self, tolerance_nats=self.tolerance_nats or tolerance_nats, n_restarts=0)

    def without_restarts(self) -> Sqp:
        return self if self.n_restarts == 0 else replace(self, n_restarts=0)

    def fit(self, task: Task, kernels: Sequence[GraphKernel], warm_starts: Sequence[Fit] | None = None) -> list[Fit]:
        if warm_starts is None and _has_many(task) and not task.signals.has_missing:  # whose completions are of all
            # rough fits to a sample of them, since evaluations cost their number cubed
            random_state = np.random.default_rng(self.random_state)
            rows = np.sort(random_state.choice(task.signals.shape[0], SIGNALS_BEFORE_ALL, replace=False))
            with quietly():
                warm_starts = self.coarse().fit(task.part(rows, task.signals.some(rows)), kernels)
        if warm_starts is not None:
            warm = self._warm(task, kernels, warm_starts)
            if warm is not None:
                return warm
        path = max((kernel.search().path() for kernel in kernels), key=len)
        spectrum, silent_share = task.spectrum_of(path[-1]), SILENT_SHARE
        fits, stages, guided = dict[int, Fit](), list[Stage](), list[Array]()
        found: SearchResult | None = None
        for form in path:
            before = None if found is None else found.objective
            objective = Objective(task, form.bind(spectrum), spectrum, before=before)
            if found is None:
                starts = objective.starting_points()
                # where the spectrum may be too coarse for a solution, it says little
                if len(starts) > 1 and self.tolerance_nats is None and task.spectrum.tolerance == 0:
                    # coarse solutions, one per maximum that may be the highest
                    coarse = _ascents(objective, starts, self.max_iterations, COARSE_TOLERANCE_NATS)
                    starts = _distinct(objective, coarse, DISTINCT_NATS, DISTINCT_NATS)
                agree = len(starts) == 1  # whether those of the simplest form lead to one maximum
            else:
                starts = _grown(objective, found, silent_share, form in kernels)
                if task.prior is None and not form.search().guides():
                    # the plain likelihood has several maxima: the one above the simpler filter need not be the highest
                    starts += objective.starting_points()[-1:]
                    starts = self._filters_first(objective, starts) if agree else starts
            if form.search().guides():
                guided = self._guide(objective, guided, found)
                starts += guided
                if form in kernels:
                    starts += grid_search(objective)[:1]
            # with a prior and a residual, on a quadrature, or of a series, forms on the way only have to lead to the
            # next; without a prior they decide which maximum it is
            is_short = task.is_series or form.residual is not None or task.spectrum.needs_passes
            is_passed = form not in kernels and is_short
            solver = self.coarse() if is_passed else self
            if task.prior is None:
                solver = self.coarse(tolerance_nats=WAY_TOLERANCE_NATS)
            found = solver._refined(objective, starts)
            silent_share = SILENT_SHARE if solver.tolerance_nats is None else SILENT_COARSE_SHARE
            spectrum, stage = found.objective.spectrum, Stage(form.label, found.value, found.objective.n_evaluations)
            if form in kernels:
                # neither the last steps nor restarts feed the continuation, so that kernels do not affect each other
                is_exact = solver.tolerance_nats == self.tolerance_nats
                exact = found if is_exact else self._refined(found.objective, [found.x])
                fit = self._restarted(self._judged(exact, stages), exact.objective)
                fits |= {index: fit for index, kernel in enumerate(kernels) if kernel == form}
            stages.append(stage)
            step_done(form.label)
        return [fits[index] for index in range(len(kernels))]

    def _warm(self, task: Task, kernels: Sequence[GraphKernel], warm_starts: Sequence[Fit]) -> list[Fit] | None:
        """Fit each kernel from its warm start; None if one of them does not converge."""
        fits = []
        for kernel, other in zip(kernels, warm_starts, strict=True):
            # of the same graph, which may be finer than a new one; folds may have graphs of their own
            spectrum = other.model.spectrum
            spectrum = spectrum if spectrum.graph is task.graph else task.spectrum_of(kernel)
            if _is_silent(task, other.model.graph_kernel, spectrum, other.model.noise_variance, SILENT_SHARE):
                return None
            objective = Objective(task, kernel.bind(spectrum), spectrum)
            found = self._refined(objective, [objective.point(other.model)])
            fit = self._judged(found)
            if not fit.converged:
                return None
            fits.append(self._restarted(fit, found.objective))
        for kernel in kernels:  # not before all went through
            step_done(kernel.label)
        return fits

    def _filters_first(self, objective: Objective, starts: list[Array]) -> list[Array]:
        """Optimise filters and noise alone, with the input kernel of the first start; not needed in time.

        Only parameters of the input kernel cost eigendecompositions.
        """
        own = objective.is_of_inputs
        if not own.any() or objective.is_in_time or objective.task.spectrum.tolerance > 0:
            return starts
        held = objective.inputs_held(starts[0])
        ends = _ascents(held, [start[~own] for start in starts], self.max_iterations, WAY_TOLERANCE_NATS)
        kept = _distinct(held, ends, FAR_GAIN_NATS, SAME_NATS)
        objective.n_evaluations += held.n_evaluations
        return [np.insert(end, objective.n_graph, starts[0][own]) for end in kept]

    def _guide(self, objective: Objective, guided: list[Array], found: SearchResult | None) -> list[Array]:
        """Solutions of the guides of the present form, each from its own last solution."""
        solutions = []
        for index, guide in enumerate(objective.graph_kernel.search().guides()):
            other = Objective(objective.task, guide, objective.spectrum, before=objective)
            starts = other.starting_points()
            if found is not None:
                before = found.objective.graph_kernel
                own = other.graph_kernel.search().grown_from(before.with_theta(guided[index][: before.theta.size]))
                starts = [np.concatenate([own, guided[index][before.theta.size :]])]
            limits = self.max_iterations, self.tolerance_nats
            ascents = _ascents(other, [_settled(other, start, *limits) for start in starts], *limits)
            solutions.append(max(ascents, key=attrgetter("value")).x)
            objective.n_evaluations += other.n_evaluations
        return solutions

    def _refined(self, objective: Objective, starts: list[Array]) -> SearchResult:
        """Solution on a spectrum that is fine enough: each finer one starts from the solution on the last.

        Quadrature weights can be negative, which an optimiser exploits where they are too coarse for its filter. Since
        the error is bounded, such a solution never passes; points on the way, often harder to resolve, need not.
        """
        limits = self.max_iterations, self.tolerance_nats
        while True:
            ascents = _ascents(objective, [_settled(objective, start, *limits) for start in starts], *limits)
            highest = max(ascents, key=attrgetter("value"))
            x, lift = lift_above_zero(objective, highest.x)
            finer = None if objective.evidence(x).errors.is_tolerable else objective.spectrum.refined()
            if finer is None:
                return replace(highest, x=x, value=objective.evaluate(x)[0], lift=lift)
            # the solution on too coarse a spectrum may lie anywhere, so what it started from is not given up
            coarse, starts = objective, [x, *starts]
            objective = Objective(coarse.task, coarse.graph_kernel, finer, before=coarse)
            objective.n_evaluations = coarse.n_evaluations

    def _judged(self, found: SearchResult, before: Sequence[Stage] = ()) -> Fit:
        """Fit at the end of a search after other stages, with its outcome by tolerance or certificate."""
        objective, certificate = found.objective, certify(found.objective, found.x, found.lift)
        stage = Stage(objective.graph_kernel.label, found.value, objective.n_evaluations)
        met_tolerance = self.tolerance_nats is not None and found.outcome is Outcome.CONVERGED
        outcome, detail = certified_outcome(certificate, objective.size, found.outcome, found.detail, met_tolerance)
        return replace(found, outcome=outcome, detail=detail, certificate=certificate).fit((*before, stage))

    def _restarted(self, fit: Fit, objective: Objective) -> Fit:
        """Return a fit, or a higher one from a random start, with the values that random starts reached."""
        if self.n_restarts == 0 or len(objective.bounds) == 0:
            return fit
        random_state = np.random.default_rng(self.random_state)
        label, smallest_gain = objective.graph_kernel.label, MIN_GAIN_NATS * objective.task.signals.size
        highest, reached, n_evaluations = fit, list[float](), 0
        for number in range(1, self.n_restarts + 1):
            mention(f"{label}, restart {number} of {self.n_restarts}")
            before = objective.n_evaluations
            one = self._fit_from(objective, random_start(objective, random_state))
            n_evaluations += (objective.n_evaluations if one is None else one.n_evaluations) - before
            reached.append(-np.inf if one is None else one.log_posterior)
            if one is not None and one.log_posterior > highest.log_posterior + smallest_gain:
                highest = one
        stage = Stage(f"{label}, {self.n_restarts} restarts", highest.log_posterior, n_evaluations)
        return replace(highest, stages=(*fit.stages, stage), restarts=tuple(reached))

    def _fit_from(self, objective: Objective, start: Array) -> Fit | None:
        """Fit from one start; None if that leads to no model."""
        try:
            found = self._refined(objective, [start])
            fit = self._judged(found)
        except (ArithmeticError, RuntimeError, ValueError):  # the search before went through: it is this start's fault
            return None
        is_model = np.isfinite(fit.log_posterior) and fit.outcome is not Outcome.TOO_FEW_MOMENTS
        return fit if is_model else None


def as_solver(solver: Solver | str | None) -> Solver:
    """Solver of a name, `Sqp` unless given; solvers themselves are returned."""
    if isinstance(solver, Solver):
        return solver
    if solver == "lagrangian":
        raise ValueError(
            "solver must be 'sqp' or a Solver; got 'lagrangian'. The paper's Algorithm 1 is in the folder "
            "reproduction of the repository: pass solver=Lagrangian(), after `from reproduction import Lagrangian`."
        )
    if solver is not None:
        as_option(solver, "solver", ("sqp",))
    return Sqp()


def _distinct(objective: Objective, coarse: list[SearchResult], height: float, distance: float) -> list[Array]:
    """Coarse solutions, one per maximum that may be the highest, by nats in height and along a parabola."""
    first, *others = sorted(coarse, key=attrgetter("value"), reverse=True)
    if not objective.has_information:
        return [one.x for one in coarse]
    precision, kept = objective.precision(first.x), [first.x]
    for one in others:
        steps = [one.x - other for other in kept]
        is_apart = all(step @ precision @ step > 2 * distance for step in steps)
        if one.value > first.value - height and is_apart:
            kept.append(one.x)
    return kept


def _grown(objective: Objective, found: SearchResult, silent_share: float, is_last: bool) -> list[Array]:
    """Starts of a form: the solution of the form before, that given for the last, and more if nothing is explained."""
    before, kernel = found.objective.split(found.x)[0], objective.graph_kernel
    search, rest = kernel.search(), found.x[before.theta.size :]
    thetas = [search.grown_from(before), *[kernel.theta] * (search.is_given and is_last)]
    starts = [np.concatenate([theta, rest]) for theta in thetas]
    if _is_silent(objective.task, before, objective.spectrum, objective.split(starts[0])[2], silent_share):
        # at zero the slope in every coefficient vanishes: no way out from there
        starts += objective.starting_points()
    return starts


def _is_silent(task: Task, kernel: GraphKernel, spectrum: Spectrum, noise_variance: float, share: float) -> bool:
    """Return whether a kernel explains next to nothing; not of a series, whose last form has a start of its own."""
    if task.is_series:
        return False
    unexplained = noise_variance + float(mean_over_nodes(spectrum, kernel.residual_power(spectrum.eigenvalues)))
    return mean_power(kernel, spectrum) < share * unexplained


def _ascents(
    objective: Objective, starts: list[Array], max_iterations: int, tolerance_nats: float | None
) -> list[SearchResult]:
    """Ascents from several starts; one stops if it approaches the highest end before it."""
    ascents, known = list[SearchResult](), None
    for start in starts:
        if ascents and ascents[-1].value == max(one.value for one in ascents):
            last = ascents[-1]
            is_maximum = last.outcome is Outcome.CONVERGED and objective.has_information
            known = (last, objective.precision(last.x)) if is_maximum else None
        ascents.append(SearchResult(objective, *maximise(objective, start, max_iterations, tolerance_nats, known)))
    return ascents


def maximise(
    objective: Objective,
    start: Array,
    max_iterations: int,
    tolerance_nats: float | None = None,
    known: tuple[SearchResult, Array] | None = None,
) -> tuple[Array, float, Outcome, str]:
    """Ascend from a point; return the end point, its value, the outcome and a detail.

    Far from the maximum the curvature is computed at each step; near it, gradients update it. The ascent stops near a
    maximum that is `known`, with its precision, if it is not higher there and no step promises more.
    """
    if start.size == 0:
        detail = "nothing to learn: every hyperparameter is fixed"
        return start, objective.evaluate(start)[0], Outcome.NOTHING_TO_LEARN, detail
    size, limit = objective.size, STATIONARITY * np.sqrt(objective.size) / 2
    x = np.clip(start, *objective.bounds.T)
    constraints, precision = _Constraints(objective, x), objective.precision(x)
    if not constraints.allow(x, np.zeros(x.size)):
        x = x + constraints.step(x, np.zeros(x.size), precision)
    value, gradient = objective.evaluate(x)
    n_fresh_starts, is_fresh, detail = 0, True, "iteration limit reached"
    for _ in range(max_iterations):
        step = constraints.step(x, gradient, precision)
        promised = float(gradient @ step)
        met_tolerance = tolerance_nats is not None and promised <= tolerance_nats
        if known is not None:
            maximum, away = known[0].value, x - known[0].x
            is_near = away @ known[1] @ away <= 2 * SAME_NATS
            if is_near and value <= maximum and value + 0.5 * promised <= maximum + SAME_NATS:
                return x, value, Outcome.CONVERGED, "on the way to a maximum that is known"
        if met_tolerance or (promised <= MIN_GAIN_NATS * size and certify(objective, x).stationarity <= limit):
            return x, value, Outcome.CONVERGED, "no step promises more"
        found = None if promised <= ROUNDING * abs(value) else _climb(objective, x, value, step, promised)
        if found is None and (is_fresh or n_fresh_starts == MAX_FRESH_STARTS):
            detail = "no step leads up"
            break
        last, before = x, gradient
        if found is None:
            n_fresh_starts += 1
        else:
            x, value, gradient = found
        is_fresh = found is None or promised > FAR_GAIN_NATS
        precision = objective.precision(x) if is_fresh else updated(precision, x - last, before - gradient)
    return x, value, Outcome.NOT_STATIONARY, detail


def _has_many(task: Task) -> bool:
    """Return whether the cube of the number of signals dominates the cost of evaluations."""
    # a quadrature has moments of all signals
    return task.signals.shape[0] >= 2 * SIGNALS_BEFORE_ALL and not (task.spectrum.needs_passes or task.is_in_time)


def _settled(objective: Objective, x: Array, max_iterations: int, tolerance_nats: float | None = None) -> Array:
    """Find a point near the maximum by steps of the input kernel's parameters, with all others optimal at each.

    Only these steps cost eigendecompositions. Their curvature is that of the profile likelihood, and the gradient that
    of the objective. The start is returned unless there are many signals.
    """
    if not _has_many(objective.task):
        return x
    own = objective.is_of_inputs
    low, high = objective.bounds[own].T
    if not own.any() or own.all():
        return x

    def best_at(point: Array) -> tuple[Array, float]:
        held, found = objective.inputs_held(point), point.copy()
        found[~own] = maximise(held, point[~own], max_iterations)[0]
        return found, objective.evaluate(found)[0]

    x, value = best_at(np.clip(x, *objective.bounds.T))
    gradient, curvature = objective.evaluate(x)[1][own], _profile_precision(objective, x, own)
    for _ in range(MAX_INPUT_STEPS if objective.has_information else 0):
        step = np.clip(x[own] + np.linalg.solve(curvature, gradient), low, high) - x[own]
        step *= _share_of(step, objective.units[own])
        promised = float(gradient @ step)
        if promised <= (tolerance_nats or MIN_GAIN_NATS * objective.task.signals.size):
            break
        is_far = promised > FAR_GAIN_NATS
        for _ in range(MAX_INPUT_CUTS):
            tried = x.copy()
            tried[own] += step
            new, new_value = best_at(tried)
            if new_value >= value + SUFFICIENT_GAIN * promised:
                break
            step, promised = step / 2, promised / 2
        else:
            break
        before, x, value = gradient, new, new_value
        gradient = objective.evaluate(x)[1][own]
        curvature = _profile_precision(objective, x, own) if is_far else updated(curvature, step, before - gradient)
    return x


def _profile_precision(objective: Objective, x: Array, own: Mask) -> Array:
    """Curvature of the profile likelihood in some of the parameters."""
    precision = objective.precision(x)
    across, others = precision[np.ix_(~own, own)], precision[np.ix_(~own, ~own)]
    return np.asarray(precision[np.ix_(own, own)] - across.T @ np.linalg.solve(others, across))


def certified_outcome(
    certificate: Certificate, size: int, outcome: Outcome, detail: str, met_tolerance: bool
) -> tuple[Outcome, str]:
    """Outcome of a search, by its certificate unless it met a tolerance before."""
    if outcome is Outcome.NOTHING_TO_LEARN or met_tolerance:
        return outcome, detail
    limit = STATIONARITY * np.sqrt(size)
    if certificate.stationarity <= limit and certificate.feasibility <= VIOLATION:
        return Outcome.CONVERGED, f"stationary within {limit:.2g}"
    detail = f"{detail}; stationarity {certificate.stationarity:.2g} exceeds {limit:.2g}"
    return Outcome.NOT_STATIONARY, detail


def updated(precision: Array, step: Array, change: Array) -> Array:
    """Damped update of Broyden, Fletcher, Goldfarb, Shanno and Powell, which stays positive definite."""
    stepped = precision @ step
    curvature, expected = float(step @ change), float(step @ stepped)
    if curvature < 0.2 * expected:
        share = 0.8 * expected / (expected - curvature)
        change = share * change + (1 - share) * stepped
        curvature = float(step @ change)
    return precision + np.outer(change, change) / curvature - np.outer(stepped, stepped) / expected


def _climb(
    objective: Objective, x: Array, value: float, step: Array, promised: float
) -> tuple[Array, float, Array] | None:
    """Return the point along a step that gains a share of the predicted gain; None if there is none."""
    share = _share_of(step, objective.units)
    for _ in range(MAX_CUTS):
        new = x + share * step
        if np.array_equal(new, x):
            return None
        new_value, gradient = objective.evaluate(new)
        if new_value >= value + SUFFICIENT_GAIN * share * promised:
            return new, new_value, gradient
        # the maximum of the parabola through the known values, within limits
        bend = 2 * (value + share * promised - new_value)
        best = share * share * promised / bend if np.isfinite(bend) else 0.0
        share = float(np.clip(best, 0.1 * share, 0.5 * share))
    return None


def constrained_step(objective: Objective, x: Array, gradient: Array, precision: Array, own_bounds: Array) -> Array:
    """Feasible step of largest gain in a quadratic model, limited in length.

    Parameters of a likelihood may follow those of the objective, with bounds of their own and units of one.
    """
    constraints = _Constraints(objective, x, own_bounds)
    step = constraints.step(x, gradient, precision)
    return step * _share_of(step, constraints.units)


def _share_of(step: Array, units: Array) -> float:
    """Largest share of a step that is taken."""
    return min(1.0, MAX_STEP / max(float(np.max(np.abs(step) / units)), 1e-300))


class _Constraints:
    """Bounds, and constraints on filters that are added if a step would violate them.

    A filter is lowest at a few points, so a few linear constraints suffice for all eigenvalues. No step takes a filter
    from well above zero to zero at once, where the slope in its power vanishes and no search leaves again.
    """

    def __init__(self, objective: Objective, x: Array, own_bounds: Array = NOTHING) -> None:
        self.objective, self.start = objective, x
        self.filters: list[Array] = []  # rows of each, to which those that steps would violate are added
        self.units = np.append(objective.units, np.ones(len(own_bounds)))
        self.low, self.high = np.vstack([objective.bounds, own_bounds]).T

    def allow(self, x: Array, step: Array) -> bool:
        """Return whether a step from a point is feasible."""
        new = x + step
        if (new < self.low).any() or (new > self.high).any():
            return False
        for filtered in self.objective.positivity(new):
            before, response = filtered.response(x), filtered.response(new)
            if (response - _least(before, before.max()) < -VIOLATION * np.abs(response).max()).any():
                return False
        return True

    def step(self, x: Array, gradient: Array, precision: Array) -> Array:
        """Feasible step of largest gain in a quadratic model."""
        values, vectors = np.linalg.eigh(precision * (self.units[:, None] * self.units))
        # a square root of the inverse, of which rounding does not make a complex one
        root = self.units[:, None] * vectors / np.sqrt(np.maximum(values, ROUNDING * values[-1]))
        step: Array = root @ (root.T @ gradient)
        if not self.filters and self.allow(x, step):  # as most do where no constraint was ever in the way
            return step
        coarse = () if self.filters else self.objective.positivity(self.start, coarse=True)
        self.filters = self.filters or [one.rows_of(slice(None), x.size) for one in coarse]
        peaks = [float(np.max(own @ x)) for own in self.filters]
        has_low, has_high, identity = np.isfinite(self.low), np.isfinite(self.high), np.eye(x.size)
        bounds = np.vstack([identity[has_low], -identity[has_high]])
        least = np.concatenate([self.low[has_low], -self.high[has_high]])
        for _ in range(MAX_CONSTRAINT_ROUNDS):
            rows = np.vstack([bounds, *self.filters])
            responses = [_least(own @ x, peak) for own, peak in zip(self.filters, peaks, strict=True)]
            step = _quadratic_program(root, gradient, rows, np.concatenate([least, *responses]) - rows @ x)
            if not self._add_violated(x, x + step, peaks):
                break
        return np.clip(x + step, self.low, self.high) - x

    def _add_violated(self, x: Array, new: Array, peaks: list[float]) -> bool:
        """Add rows at the minima of violated constraints; return whether there are any."""
        has_violated = False
        for index, filtered in enumerate(self.objective.positivity(new)):
            response = filtered.response(new)
            spare = response - _least(filtered.response(x), peaks[index])
            padded = np.concatenate([[np.inf], spare, [np.inf]])
            minima = (spare <= padded[:-2]) & (spare <= padded[2:])
            violated = filtered.rows_of(minima & (spare < -VIOLATION * np.max(np.abs(response))), x.size)
            # constraints that are known and violated by rounding are not added again
            is_known = np.any(np.all(violated[:, None] == self.filters[index], axis=2), axis=1)
            self.filters[index] = np.vstack([self.filters[index], violated[~is_known]])
            has_violated = has_violated or not np.all(is_known)
        return has_violated


def _least(response: Array, peak: float) -> Array:
    """Lower limit of a filter after a step: a share of its value, or zero if it nearly touches zero."""
    return np.where(response > TOUCHING * peak, MIN_KEPT_RESPONSE * response, 0.0)


def _quadratic_program(root: Array, gradient: Array, rows: Array, least: Array) -> Array:
    """The step ``d`` with ``rows @ d >= least`` that maximises ``gradient @ d - |z|^2 / 2``, where ``d = root @ z``.

    Less the free optimum, ``z`` is the shortest vector in a polyhedron, which non-negative least squares finds (Lawson
    and Hanson, Solving Least Squares Problems, chapter 23).
    """
    free, normals = root.T @ gradient, rows @ root
    lengths = np.linalg.norm(normals, axis=1)
    normals = normals / lengths[:, None]
    missing = least / lengths - normals @ free
    furthest = float(np.max(missing, initial=0.0))
    if furthest <= 0:
        return np.asarray(root @ free)
    system = np.vstack([normals.T, missing / furthest])
    multipliers, _ = nnls(system, np.eye(free.size + 1)[-1], maxiter=50 * system.size)
    active = multipliers > 0
    return np.asarray(root @ (free + np.linalg.lstsq(normals[active], missing[active])[0]))


def random_start(objective: Objective, random_state: np.random.Generator) -> Array:
    """Draw a point within the bounds, where filters need not be positive.

    Graph parameters are normal about one of the kernel's own starts; input parameters and noise are log-uniform.
    """
    task, kernel = objective.task, objective.graph_kernel
    low, high = objective.bounds.T
    search = kernel.search()
    graph_thetas = search.starting_points(objective.spectrum, task.variance)
    start = graph_thetas[random_state.integers(len(graph_thetas))]
    graph_theta = random_state.normal(start, RANDOM_SPREAD * search.theta_units(task.variance))
    centres = input_starts(task.input_kernel, task.length_scales[0])[-1]
    own = slice(kernel.theta.size, kernel.theta.size + centres.size)
    lowest, highest = (np.clip(centres + far, low[own], high[own]) for far in (-MAX_LOG_DISTANCE, MAX_LOG_DISTANCE))
    input_theta = random_state.uniform(lowest, highest)
    least_noise = task.noise_bounds[0]
    log_noise = random_state.uniform(least_noise, max(least_noise, np.log(task.variance)))
    return np.clip(objective.join(graph_theta, input_theta, float(np.exp(log_noise))), low, high)


def grid_search(objective: Objective) -> tuple[Array, str]:
    """Best point of the paper's grids, at the length scale ``l = mean |y_n|^2`` and the amplitude ``var(Y)``.

    Also a name for this stage that says how far the grid was thinned.
    """
    task, kernel, spectrum = objective.task, objective.graph_kernel, objective.spectrum
    input_theta, energy = objective.input_theta.copy(), task.signals.mean_square * task.signals.shape[1]
    if input_theta.size and energy > 0:
        is_length_scale = ~np.isnan(task.length_scales[0])
        input_theta[is_length_scale] = 0.5 * np.log(energy)
        input_theta = np.clip(input_theta, *task.input_kernel.bounds.T)
    design = np.vander(spectrum.eigenvalues / spectrum.upper, objective.n_graph, increasing=True)
    amplitude, noises = np.sqrt(task.variance), [share * task.variance for share in GRID_NOISE_SHARES]
    if task.known_noise is not None:
        noises = [task.known_noise]
    evidence: Any = objective.evidence(objective.join(kernel.theta, input_theta, noises[0]), by_modes=True)
    rows, data = evidence.rows, evidence.data
    best, block = list[tuple[float, Array, float]](), max(1, MAX_BLOCK // data.energies.size)
    for grid in GRIDS:
        coefficients, n_values = _combinations(grid, objective.n_graph)
        spectra = np.square(amplitude * coefficients @ design.T)
        for noise in noises:
            values = np.empty(len(spectra))
            for start in range(0, len(spectra), block):  # equation (5), up to its constant
                variances = rows.variances(spectra[start : start + block], noise)
                terms = data.multiplicities * np.log(variances) + data.energies / variances
                values[start : start + block] = -0.5 * np.sum(terms, axis=(1, 2))
            index = int(np.argmax(values))
            best.append((float(values[index]), amplitude * coefficients[index], noise))
    _, powers, noise = max(best, key=itemgetter(0))
    found = kernel.search().with_powers(powers)
    if found is None:
        raise ValueError(f"graph_kernel must be a polynomial to search its coefficients on a grid; got {kernel!r}.")
    thinned = f", {n_values} of 11 values per coefficient" if n_values < 11 else ""
    return objective.join(found.theta, input_theta, noise), f"grid search{thinned}"


def _combinations(values: Array, n_coefficients: int) -> tuple[Array, int]:
    """All combinations of coefficients up to a common sign, from fewer values if there are too many."""
    free, n_values = min(n_coefficients, MAX_GRID_COEFFICIENTS), values.size  # higher coefficients stay zero
    while n_values**free // 2 > MAX_GRID_FILTERS:
        n_values -= 2  # keeps zero among them
    chosen = np.linspace(values[0], values[-1], n_values)
    combinations = np.array(list(itertools.product(chosen, repeat=free)))
    # a filter and its negative have the same covariance, and the other half holds the negatives in reverse
    half = combinations[: (combinations.shape[0] + 1) // 2]
    return np.pad(half, ((0, 0), (0, n_coefficients - free))), n_values
