"""Latent signals given values that a likelihood observes of them: a normal law with a site per entry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky, eigh_tridiagonal, solve_triangular

from spectralgp._basics.arrays import without_caches
from spectralgp._basics.checks import Array, Mask
from spectralgp._basics.progress import mention
from spectralgp.fields.covariances import Modal
from spectralgp.fields.factors import Inputs, Nodes
from spectralgp.fields.seen import conjugate_gradients
from spectralgp.likelihoods import Likelihood, Terms
from spectralgp.operators import lanczos
from spectralgp.spectra import Spectrum

MOST_EXACT_SITES = 600  # entries whose covariance is written out at every step of learning
MOST_WRITTEN_OUT = 1_000  # the same once, for predictions and the bound
CURVATURES = 10  # at which variances are tabulated
LOWEST_CURVATURE = 1e-3  # of the largest, in that table
MOST_ROUNDS, FIRST_ROUNDS, ROUGH_ROUNDS = 60, 8, 2  # of means and variances in turn; in learning; from a start
VARIANCE_TOLERANCE, SETTLED_VARIANCE_TOLERANCE, FINE_VARIANCE_TOLERANCE = 2e-3, 1e-5, 1e-7  # of their logarithms
SETTLED_NATS, SETTLED_NATS_PER_ENTRY = 1e-3, 1e-6  # that a step for the mean gains, where it is done
SOLVE_TOLERANCE, STEP_SOLVE_TOLERANCE, FINE_SOLVE_TOLERANCE, EXACT_SOLVE_TOLERANCE = 1e-3, 1e-4, 1e-5, 1e-8
FIRST_VARIANCE = 1.0  # of the latent signal, at most
LEAST_SHARE = 1e-4  # of a step that is tried
PROBES, MOST_LANCZOS_STEPS, PROBE_SEED = 8, 100, 0
LEAST_CAVITY = 1e-9  # precision that is left of an entry without its own site, of the prior's


@dataclass(frozen=True, eq=False)
class NoisyNodes(Nodes):
    """What nodes share, with more noise: that of the sites."""

    nodes: Nodes
    noise_variance: float

    @property
    def basis(self) -> Spectrum:
        return self.nodes.basis

    def powers(self, eigenvalues: Array) -> tuple[Array, Array]:
        power, own = self.nodes.powers(eigenvalues)
        return power, own + self.noise_variance

    def draw_own(self, n_signals: int, random_state: np.random.Generator) -> Any:
        white = self.basis.white(n_signals, random_state) * float(np.sqrt(self.nodes.noise_variance))
        return self.nodes.draw_own(n_signals, random_state) + white


@dataclass(frozen=True, eq=False)
class Observations:
    """Values that were observed of latent signals, and by which likelihood; the mean has fixed effects."""

    likelihood: Likelihood
    values: Array  # shape (n_signals, n_nodes); anything that may be observed where nothing was
    observed: Mask
    beside: Array  # exposures or numbers of trials, of the same shape
    columns: Array  # of the fixed effects, shape (n_effects, n_signals, n_nodes)
    offset: Array | float = 0.0  # of the mean, beside fixed effects

    def expected(self, mean: Array, variance: Array) -> Terms:
        """Expected log densities, slopes and curvatures, not below zero: equation (36); zero where nothing was seen."""
        found = self.likelihood.expected(self.values, mean, variance, self.beside)
        logs, slopes, curvatures = (np.where(self.observed, one, 0.0) for one in found)
        return logs, slopes, np.maximum(curvatures, 0.0)

    def fixed(self, coefficients: Array) -> Array:
        """The mean by fixed effects."""
        return np.asarray(self.offset + np.tensordot(coefficients, self.columns, axes=1))

    def rough_coefficients(self) -> Array:
        """Coefficients by least squares of what would make values likely."""
        rough = (self.likelihood.rough_latent(self.values, self.beside) - self.offset)[self.observed]
        return np.asarray(np.linalg.lstsq(self.columns[:, self.observed].T, rough, rcond=None)[0])

    @property
    def rough_variance(self) -> float:
        """Variance of what would make values likely, about the fixed effects; one where there is none."""
        rough = self.likelihood.rough_latent(self.values, self.beside) - self.fixed(self.rough_coefficients())
        return float(np.var(rough[self.observed])) or 1.0


@dataclass(frozen=True, eq=False)
class ObservedBy:
    """How signals are observed: the likelihood, what stands beside each value, and columns of fixed effects."""

    likelihood: Likelihood
    beside: Array  # shape (n_signals, n_nodes)
    columns: Array  # shape (n_effects, n_signals, n_nodes)

    def observations(self, values: Array, likelihood: Likelihood | None = None) -> Observations:
        """What values are, with NaN where nothing was observed, under this likelihood or a learnt one."""
        observed = np.isfinite(values)
        filled, beside = np.where(observed, values, 1.0), np.where(observed, self.beside, 1.0)
        return Observations(likelihood or self.likelihood, filled, observed, beside, self.columns)

    def some(self, rows: Any) -> ObservedBy:
        """That of some of the signals."""
        return replace(self, beside=self.beside[rows], columns=self.columns[:, rows])

    def followed_by(self, other: ObservedBy) -> ObservedBy:
        """That of these signals and others after them."""
        beside, columns = np.vstack([self.beside, other.beside]), np.hstack([self.columns, other.columns])
        return replace(self, beside=beside, columns=columns)


@dataclass(frozen=True, eq=False)
class Sites:
    """``q(f) = N(m, (A^-1 + W)^-1)`` of latent signals with the covariance ``A``: equations (35) to (40).

    Made by `find_sites`. Variances are exact where `root` is there, else by effective curvatures.
    """

    covariance: Modal  # of the latent signals
    observations: Observations
    solution: Array  # u, with m = T beta + A u
    coefficients: Array  # beta
    coefficient_covariance: Array
    mean: Array
    variance: Array
    root: Array | None  # deviations (n_entries, n_signals, n_nodes) whose outer products add up to the covariance
    log_determinant: float | None  # log |I + A W| where it is known exactly
    solved: Array  # what systems of the columns had as solutions, to go on from

    __getstate__ = without_caches

    @cached_property
    def terms(self) -> Terms:
        """Expected log densities, slopes and curvatures."""
        return self.observations.expected(self.mean, self.variance)

    @property
    def spread_at_modes(self) -> Array:
        """Variances in both eigenbases, shape (n_signals, n_nodes): equation (39)."""
        return self._by_curvature[1]

    @cached_property
    def _by_curvature(self) -> tuple[Array, Array]:
        return effective(_Eigenbases.of(self.covariance), self.terms[2])

    def deviations(self, most: int, random_state: np.random.Generator) -> Array:
        """What the latent signals may deviate by, for learning: outer products add up to their covariance.

        Without a root it is that of modes, each on its own: one deviation per mode of the inputs, which is exact at
        every frequency, or fewer with random signs.
        """
        if self.root is not None:
            return self.root
        bases, n_signals = _Eigenbases.of(self.covariance), self.covariance.shape[0]
        roots, n_deviations = np.sqrt(self.spread_at_modes), min(most, n_signals)
        if n_deviations == n_signals:
            signs = random_state.integers(0, 2, roots.shape) * 2.0 - 1.0
            modes = np.eye(n_signals)[:, :, None] * (roots * signs)
        else:
            signs = random_state.integers(0, 2, (n_deviations, *roots.shape)) * 2.0 - 1.0
            modes = signs * roots / np.sqrt(n_deviations)
        return bases.back(modes)

    def log_bound(self) -> tuple[float, float]:
        """Lower bound of the log evidence, equation (38), and its standard error by random probes."""
        logs, _, curvatures = self.terms
        length = float(np.sum(self.solution * (self.mean - self.observations.fixed(self.coefficients))))
        determinant, error = self.log_determinant, 0.0
        if determinant is None:
            determinant, error = _log_determinant(self.covariance, curvatures)
        spread = float(np.sum(curvatures * self.variance))
        return float(np.sum(logs)) - 0.5 * (length + determinant - spread), 0.5 * error

    def among_nodes(self, signal: int) -> Array:
        """Covariance over the nodes of one signal."""
        if self.root is not None:
            return self.root[:, signal].T @ self.root[:, signal]
        bases = _Eigenbases.of(self.covariance)
        at_modes = np.square(bases.inputs[signal]) @ self.spread_at_modes
        return _with_variances((bases.nodes * at_modes) @ bases.nodes.T, self.variance[signal])

    def among_signals(self, node: int) -> Array:
        """Covariance over the signals at one node."""
        if self.root is not None:
            return self.root[:, :, node].T @ self.root[:, :, node]
        bases = _Eigenbases.of(self.covariance)
        at_modes = self.spread_at_modes @ np.square(bases.nodes[node])
        return _with_variances((bases.inputs * at_modes) @ bases.inputs.T, self.variance[:, node])

    def draws(self, n_draws: int, random_state: np.random.Generator) -> Array:
        """Latent signals drawn jointly, shape (n_draws, n_signals, n_nodes); by Matheron's rule without a root."""
        if self.root is not None:
            white = random_state.standard_normal((n_draws, len(self.root)))
            return self.mean + np.tensordot(white, self.root, axes=1)
        noisy, curvatures = with_site_noise(self.covariance, self.terms[2]), self.terms[2]
        prior = np.stack([noisy.draw_signal(random_state) for _ in range(n_draws)])
        white = random_state.standard_normal(prior.shape)
        right = curvatures * prior + np.sqrt(curvatures) * white
        found = conjugate_gradients(noisy, curvatures, right, None, FINE_SOLVE_TOLERANCE)
        return self.mean + prior - self.covariance.times(found)

    def cavity(self, block: Array, mean: Array, places: Any) -> tuple[Array, Array]:
        """Mean and covariance of a block of entries without their own sites, from those with them: equation (40)."""
        _, slopes, curvatures = self.terms
        own = np.eye(len(block)) - block * curvatures[places]
        left = np.linalg.solve(own, block)
        return mean - left @ slopes[places], 0.5 * (left + left.T)


def _with_variances(covariance: Array, variance: Array) -> Array:
    """A covariance with other variances and the same correlations."""
    roots = np.sqrt(variance / np.diag(covariance))
    return covariance * np.multiply.outer(roots, roots)


def with_site_noise(covariance: Modal, curvatures: Array) -> Modal:
    """The covariance with noise such as sites have on average, by which systems are preconditioned."""
    seen = curvatures[curvatures > 0]
    noise = 1 / float(np.mean(seen)) if seen.size else 1.0
    return Modal(covariance.rows, NoisyNodes(covariance.nodes, noise))


# ------------------------------------------------------------------------------------------------- finding them


def find_sites(
    covariance: Modal,
    observations: Observations,
    start: Sites | None = None,
    *,
    is_final: bool = True,
    is_rough: bool = False,
) -> Sites:
    """The best normal law of latent signals given what was observed, by rounds of means and variances.

    Parameters
    ----------
    covariance : Modal
        Of the latent signals; rows must be `Inputs`.
    observations : Observations
        What was observed.
    start : Sites, optional
        Of a similar covariance, to go on from, unless they are worse under this one than none.
    is_final : bool, default=True
        Whether to go on until nothing changes, and to write out the covariance where that can be done at all; else it
        is a step of learning, of which the next one goes on from this.
    is_rough : bool, default=False
        Whether that step is far from the answer, and takes but a few rounds.
    """
    n_entries = observations.values.size
    is_small = is_exact = n_entries <= MOST_EXACT_SITES
    if is_final and MOST_EXACT_SITES < n_entries <= MOST_WRITTEN_OUT:  # what is nearly right first
        start, is_exact = find_sites(covariance, observations, start, is_final=False), True
    bases = _Eigenbases.of(covariance)
    coefficients, solution = observations.rough_coefficients(), np.zeros(covariance.shape)
    solved = np.zeros(observations.columns.shape)
    if start is not None:
        variance, image = start.variance, covariance.times(start.solution)
        fresh = _gained(observations, observations.fixed(coefficients), variance, 0.0)
        known = observations.fixed(start.coefficients) + image
        if _gained(observations, known, variance, float(np.sum(start.solution * image))) >= fresh:
            coefficients, solution, solved = start.coefficients, start.solution, start.solved
        else:  # of another covariance it leads astray
            start = None
    if start is None:
        variance = np.minimum(bases.diagonal(bases.variances), FIRST_VARIANCE)
    tolerance, n_rounds = FINE_SOLVE_TOLERANCE, MOST_ROUNDS
    if not is_final:
        tolerance, n_rounds = FINE_SOLVE_TOLERANCE if is_small else STEP_SOLVE_TOLERANCE, FIRST_ROUNDS
    if is_rough:
        tolerance, n_rounds = SOLVE_TOLERANCE, FIRST_ROUNDS if start is None else ROUGH_ROUNDS
    elif is_final and is_small:
        tolerance = EXACT_SOLVE_TOLERANCE
    allowed = VARIANCE_TOLERANCE
    if is_small and not is_rough:
        allowed = FINE_VARIANCE_TOLERANCE if is_final else SETTLED_VARIANCE_TOLERANCE
    image = covariance.times(solution)
    mean = observations.fixed(coefficients) + image
    root, determinant, effects = None, None, np.zeros((len(coefficients), len(coefficients)))
    for number in range(n_rounds):
        mean, solution, image, coefficients, effects, solved, gain = _newton(
            covariance, observations, mean, solution, image, coefficients, variance, solved, tolerance
        )
        curvatures, before = observations.expected(mean, variance)[2], variance
        if is_exact:
            variance, root, determinant = written_out(bases, curvatures)
        else:
            variance = effective(bases, curvatures)[0]
        change = float(np.sqrt(np.mean(np.square(np.log(variance / before)))))
        mention(f"finding sites, round {number + 1}")
        if change < allowed and gain < max(SETTLED_NATS, SETTLED_NATS_PER_ENTRY * n_entries):
            break
    found = solution, coefficients, effects, mean, variance, root, determinant, solved
    return Sites(covariance, observations, *found)


def _gained(observations: Observations, mean: Array, variance: Array, length: float) -> float:
    """What of the bound depends on the mean, ``sum E log p - u^T A u / 2``; minus infinity where it is none."""
    found = float(np.sum(observations.expected(mean, variance)[0]) - 0.5 * length)
    return found if np.isfinite(found) else -np.inf


def _newton(
    covariance: Modal,
    observations: Observations,
    mean: Array,
    solution: Array,
    image: Array,
    coefficients: Array,
    variance: Array,
    solved: Array,
    tolerance: float,
) -> tuple[Array, Array, Array, Array, Array, Array, float]:
    """A step of Newton's method for the mean and the fixed effects at given variances, equation (37), shortened.

    Returns the mean, ``u`` and ``A u``, the coefficients and their covariance, solutions for the columns, and the gain.
    """
    logs, slopes, curvatures = observations.expected(mean, variance)
    value = float(np.sum(logs) - 0.5 * np.sum(solution * image))
    noisy, columns = with_site_noise(covariance, curvatures), observations.columns
    rights = np.concatenate([(curvatures * (mean - observations.offset) + slopes)[None], curvatures * columns])
    starts = np.concatenate([(solution + np.tensordot(coefficients, solved, axes=1))[None], solved])
    found = conjugate_gradients(noisy, curvatures, rights, starts, tolerance)
    free, solved = found[0], found[1:]
    # T^T u = 0: what is left of the slopes is orthogonal to the fixed effects
    information = np.tensordot(columns, solved, axes=((1, 2), (1, 2)))
    information = 0.5 * (information + information.T)
    target, covariance_of_effects = coefficients, np.zeros(information.shape)
    if len(coefficients):
        factor = cho_factor(information)
        target = cho_solve(factor, np.tensordot(columns, free, axes=2))
        covariance_of_effects = cho_solve(factor, np.eye(len(coefficients)))
    step = free - np.tensordot(target, solved, axes=1) - solution
    moved, shift = covariance.times(step), np.tensordot(target - coefficients, columns, axes=1)
    share, reached = 1.0, -np.inf
    while share > LEAST_SHARE:
        further = mean + share * (moved + shift)
        length = float(np.sum((solution + share * step) * (image + share * moved)))
        reached = _gained(observations, further, variance, length)
        if reached >= value - 1e-9 * abs(value):
            break
        share *= 0.5
    else:  # rounding, where nothing is to be gained
        return mean, solution, image, coefficients, covariance_of_effects, solved, 0.0
    coefficients = coefficients + share * (target - coefficients)
    solution, image = solution + share * step, image + share * moved
    mean = observations.fixed(coefficients) + image
    return mean, solution, image, coefficients, covariance_of_effects, solved, max(reached - value, 0.0)


# -------------------------------------------------------------------------------------------------- variances


@dataclass(frozen=True, eq=False)
class _Eigenbases:
    """``A = (U (x) V) diag(D) (U (x) V)^T``."""

    inputs: Array  # U
    nodes: Array  # V
    variances: Array  # D

    @classmethod
    def of(cls, covariance: Modal) -> _Eigenbases:
        modes = cast(Inputs, covariance.rows).modes
        vectors = covariance.basis.require_eigenvectors("spectrum must be exact for a likelihood; got a quadrature.")
        return cls(modes.vectors, vectors, cast(Inputs, covariance.rows).variances(*covariance.powers))

    @cached_property
    def _squares(self) -> tuple[Array, Array]:
        return np.square(self.inputs), np.square(self.nodes)

    def back(self, modes: Array) -> Array:
        """Signals with given coefficients at the modes."""
        return np.asarray(self.inputs @ (modes @ self.nodes.T))

    def diagonal(self, at_modes: Array) -> Array:
        """Variances at entries, from those at modes."""
        return np.asarray(self._squares[0] @ at_modes @ self._squares[1].T)

    def at_modes(self, entries: Array) -> Array:
        """The transpose of `diagonal`."""
        return np.asarray(self._squares[0].T @ entries @ self._squares[1])

    def shrunk(self, curvature: float) -> Array:
        """Variances at modes if the curvature were the same everywhere."""
        return self.variances / (1 + curvature * self.variances)

    def neighbourhoods(self, curvature: float) -> tuple[Array, Array]:
        """Squared correlations between signals and between nodes at a common curvature."""
        left = self.shrunk(curvature)
        sides = (self.inputs * left.mean(axis=1)) @ self.inputs.T, (self.nodes * left.mean(axis=0)) @ self.nodes.T
        one, other = (np.square(side) for side in sides)
        return one / np.diag(one)[:, None], other / np.diag(other)[:, None]


def written_out(bases: _Eigenbases, curvatures: Array) -> tuple[Array, Array, float]:
    """Exact variances, deviations whose outer products add up to the covariance, and ``log |I + A W|``."""
    n_signals, n_nodes = curvatures.shape
    scaled = np.kron(bases.inputs, bases.nodes) * np.sqrt(bases.variances).ravel()
    own = curvatures.ravel() > 0
    seen = scaled[own] * np.sqrt(curvatures.ravel()[own])[:, None]
    precision = seen.T @ seen
    precision[np.diag_indices_from(precision)] += 1.0
    factor = cholesky(precision, lower=True, overwrite_a=True, check_finite=False)
    root = solve_triangular(factor, scaled.T, lower=True, check_finite=False)
    variance = np.einsum("ab,ab->b", root, root).reshape(n_signals, n_nodes)
    return variance, root.reshape(-1, n_signals, n_nodes), 2 * float(np.sum(np.log(np.diag(factor))))


def effective(bases: _Eigenbases, curvatures: Array) -> tuple[Array, Array]:
    """Variances at entries and at modes by effective curvatures: equation (39).

    What others know of an entry counts by the squares of their covariances, its own curvature exactly; both are exact
    where the curvature is the same everywhere.
    """
    of_signals, of_nodes = bases.neighbourhoods(float(np.mean(curvatures)))
    around = of_signals @ curvatures @ of_nodes.T
    total = np.multiply.outer(of_signals.sum(axis=1), of_nodes.sum(axis=1))
    others = np.where(total > 1 + 1e-6, np.maximum(around - curvatures, 0.0) / np.maximum(total - 1, 1e-6), 0.0)
    logs = np.zeros(curvatures.shape)
    for curvature, share in _tabulated(others):
        left = 1 / bases.diagonal(bases.shrunk(curvature)) - curvature
        logs += share * np.log(np.maximum(left, LEAST_CAVITY))
    at_modes = np.zeros(curvatures.shape)
    for curvature, share in _tabulated(around / total):
        at_modes += bases.shrunk(curvature) * bases.at_modes(share)
    return 1 / (np.exp(logs) + curvatures), at_modes


def _tabulated(curvatures: Array) -> Iterator[tuple[float, Array]]:
    """Curvatures of a table, and the shares of each in given ones, by interpolation in their logarithm."""
    largest = max(float(np.max(curvatures)), 1e-9)
    lowest = LOWEST_CURVATURE * largest
    table = np.concatenate([[0.0], np.geomspace(lowest, largest * (1 + 1e-9), CURVATURES)])
    places = np.clip(np.searchsorted(table, curvatures, side="right") - 1, 0, len(table) - 2)
    logs = np.log(table + lowest)
    above = (np.log(curvatures + lowest) - logs[places]) / (logs[places + 1] - logs[places])
    above = np.clip(above, 0.0, 1.0)
    for place, curvature in enumerate(table.tolist()):
        share = np.where(places == place, 1 - above, 0.0) + np.where(places + 1 == place, above, 0.0)
        if share.any():
            yield curvature, share


def _log_determinant(covariance: Modal, curvatures: Array) -> tuple[float, float]:
    """``log |I + A W|`` and its standard error by random probes; what a common curvature says of them is taken out."""
    bases, roots = _Eigenbases.of(covariance), np.sqrt(curvatures)
    common = float(np.mean(curvatures))
    known = np.log1p(common * bases.variances)
    random_state, estimates = np.random.default_rng(PROBE_SEED), []
    for _ in range(PROBES):
        probe = random_state.integers(0, 2, curvatures.shape) * 2.0 - 1.0
        control = float(np.sum(known * np.square(bases.inputs.T @ probe @ bases.nodes)))
        diagonal, below, last = list[float](), list[float](), np.inf
        steps = lanczos(
            lambda one: one + roots * covariance.times(roots * one), lambda one, two: float(np.sum(one * two)), probe
        )
        for entry, norm in steps:
            diagonal.append(entry)
            if len(diagonal) % 10 == 0 or norm < 1e-10 or len(diagonal) == MOST_LANCZOS_STEPS:
                values, vectors = eigh_tridiagonal(diagonal, below)
                moment = probe.size * float(np.square(vectors[0]) @ np.log(np.maximum(values, 1.0)))
                is_done = abs(moment - last) <= 1e-5 * max(abs(moment), 1.0)
                last = moment
                if is_done or norm < 1e-10 or len(diagonal) == MOST_LANCZOS_STEPS:
                    break
            below.append(norm)
        estimates.append(last - control)
    error = float(np.std(estimates, ddof=1) / np.sqrt(PROBES))
    return float(np.sum(known) + np.mean(estimates)), error


def padded(sites: Sites, covariance: Modal, observations: Observations) -> Sites:
    """Sites of the first of some signals as a start for those of all."""
    more = covariance.shape[0] - sites.covariance.shape[0]
    nothing = np.zeros((more, covariance.shape[1]))
    variance = np.minimum(_Eigenbases.of(covariance).diagonal(_Eigenbases.of(covariance).variances), FIRST_VARIANCE)
    variance[: -more or None] = sites.variance
    solution = np.concatenate([sites.solution, nothing])
    solved = np.concatenate([sites.solved, np.zeros((len(sites.solved), *nothing.shape))], axis=1)
    longer = replace(sites, solution=solution, variance=variance, solved=solved)
    return replace(longer, covariance=covariance, observations=observations)
