"""Latent signals given values that a likelihood observes of them: a normal law with a site per entry."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np

from spectralgp._basics.arrays import without_caches
from spectralgp._basics.checks import Array, Mask
from spectralgp._basics.progress import mention
from spectralgp.fields.covariances import Covariance
from spectralgp.fields.curvatures import InModes, LatentCovariance, latent_of
from spectralgp.likelihoods import Likelihood, Terms

MOST_EXACT_SITES = 600  # entries whose covariance is written out at every step of learning
MOST_WRITTEN_OUT = 1_000  # the same once, for predictions and the bound
SETTLED_NATS, SETTLED_NATS_PER_ENTRY = 1e-3, 1e-6  # that a step for the mean gains, where it is done
FIRST_VARIANCE = 1.0  # of the latent signal, at most
LEAST_SHARE = 1e-4  # of a step that is tried
ROUNDING = 1e-24  # of a mean square, below which a variance is none
EFFECT_DEVIATION = 1e3  # of a fixed effect about its rough value, in deviations of the latent signals
NO_ENTRIES = (
    "spectrum must be exact with a likelihood for joint densities, and to leave out whole signals or nodes, which "
    "takes the covariance of {n_nodes} nodes; got a quadrature. leave_one_out('entry') has each value given all others."
)


class Effort(NamedTuple):
    """How far sites are looked for; the second of two tolerances where their covariance is not written out."""

    rounds: int  # of means and variances in turn
    rounds_from_start: int
    solve_tolerances: tuple[float, float]
    variance_tolerances: tuple[float, float]  # of logarithms


FINAL = Effort(60, 60, (1e-9, 1e-6), (1e-7, 2e-3))  # until nothing changes
STEP = Effort(8, 8, (1e-6, 1e-5), (1e-5, 2e-3))  # of learning, of which the next one goes on from there
ROUGH = Effort(8, 2, (1e-4, 1e-4), (2e-3, 2e-3))  # the same far from the answer


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

    @cached_property
    def rough_coefficients(self) -> Array:
        """Coefficients by least squares of what would make values likely."""
        rough = (self.likelihood.rough_latent(self.values, self.beside) - self.offset)[self.observed]
        return np.asarray(np.linalg.lstsq(self.columns[:, self.observed].T, rough, rcond=None)[0])

    @property
    def rough_variance(self) -> float:
        """Variance of what would make values likely, about the fixed effects; one where there is none."""
        rough = self.likelihood.rough_latent(self.values, self.beside)[self.observed]
        about = np.var(rough - self.fixed(self.rough_coefficients)[self.observed])
        return float(about) if about > ROUNDING * np.mean(np.square(rough)) else 1.0

    @cached_property
    def effect_precision(self) -> Array:
        """Of a prior that keeps effects finite where values leave them open, as zeros alone leave the rate."""
        squares = np.mean(np.square(self.columns[:, self.observed]), axis=1)
        return np.asarray(squares / (EFFECT_DEVIATION**2 * self.rough_variance))

    def penalty(self, coefficients: Array) -> float:
        """What that prior takes from the bound."""
        return 0.5 * float(np.sum(self.effect_precision * np.square(coefficients - self.rough_coefficients)))


@dataclass(frozen=True, eq=False)
class ObservedBy:
    """How signals are observed: the likelihood, what stands beside each value, and columns of fixed effects."""

    likelihood: Likelihood
    beside: Array  # shape (n_signals, n_nodes)
    columns: Array  # shape (n_effects, n_signals, n_nodes)

    __getstate__ = without_caches

    @cached_property
    def last_found(self) -> list[tuple[Any, Any, Sites]]:
        """Prior, signals and sites that were found last on a large graph, where they are asked for more than once."""
        return []

    def observations(self, values: Array, likelihood: Likelihood | None = None) -> Observations:
        """What values are, with NaN where nothing was observed, under this likelihood or a learnt one."""
        observed = np.isfinite(values)
        filled, beside = np.where(observed, values, 1.0), np.where(observed, self.beside, 1.0)
        return Observations(likelihood or self.likelihood, filled, observed, beside, self.columns)

    def some(self, rows: Any) -> ObservedBy:
        """That of some of the signals."""
        return replace(self, beside=self.beside[rows], columns=self.columns[:, rows])

    def is_like(self, other: ObservedBy) -> bool:
        """Whether values are observed with the same exposures or trials and columns."""
        return np.array_equal(self.beside, other.beside) and np.array_equal(self.columns, other.columns)

    def followed_by(self, other: ObservedBy) -> ObservedBy:
        """That of these signals and others after them."""
        beside, columns = np.vstack([self.beside, other.beside]), np.hstack([self.columns, other.columns])
        return replace(self, beside=beside, columns=columns)


@dataclass(frozen=True, eq=False)
class Sites:
    """``q(f) = N(m, (A^-1 + W)^-1)`` of latent signals with the covariance ``A``: equations (35) to (40).

    Made by `find_sites`. Variances are exact where `root` is there, else by effective curvatures.
    """

    covariance: Covariance  # of the latent signals
    observations: Observations
    solution: Array  # u, with m = T beta + A u
    image: Array  # A u
    coefficients: Array  # beta
    coefficient_covariance: Array
    variance: Array
    solved: Array  # what systems of the columns had as solutions, to go on from
    root: Array | None = None  # deviations (n_entries, n_signals, n_nodes) with the covariance as sum of outer products
    log_determinant: float | None = None  # log |I + A W| where it is known exactly

    __getstate__ = without_caches

    @cached_property
    def mean(self) -> Array:
        """``m``."""
        return self.observations.fixed(self.coefficients) + self.image

    @cached_property
    def terms(self) -> Terms:
        """Expected log densities, slopes and curvatures."""
        return self.observations.expected(self.mean, self.variance)

    @property
    def gained(self) -> float:
        """What of the bound depends on the mean, ``sum E log p - u^T A u / 2``, with the prior of the fixed effects.

        Minus infinity where it is none.
        """
        found = float(np.sum(self.terms[0]) - 0.5 * np.sum(self.solution * self.image))
        return found - self.observations.penalty(self.coefficients) if np.isfinite(found) else -np.inf

    @cached_property
    def _latent(self) -> LatentCovariance:
        return latent_of(self.covariance)

    @property
    def _modes(self) -> InModes:
        self.require_entries()
        return cast(InModes, self._latent)

    @cached_property
    def spread_at_modes(self) -> Array:
        """Variances in both eigenbases, shape (n_signals, n_nodes): equation (39)."""
        return self._modes.variances_at_modes(self.terms[2])

    @cached_property
    def variance_error(self) -> float:
        """Root mean square standard error of the variances by random probes; zero where there are none."""
        return 0.0 if self.covariance.is_written_out else self._latent.variances(self.terms[2])[1]

    def deviations(self, most: int, random_state: np.random.Generator) -> Array:
        """What the latent signals may deviate by, for learning: outer products add up to their covariance.

        Without a root it is that of modes, each on its own: one deviation per mode of the inputs, which is exact at
        every frequency, or fewer with random signs.
        """
        if self.root is not None:
            return self.root
        n_signals = self.covariance.shape[0]
        roots, n_deviations = np.sqrt(self.spread_at_modes), min(most, n_signals)
        if n_deviations == n_signals:
            signs = random_state.integers(0, 2, roots.shape) * 2.0 - 1.0
            modes = np.eye(n_signals)[:, :, None] * (roots * signs)
        else:
            signs = random_state.integers(0, 2, (n_deviations, *roots.shape)) * 2.0 - 1.0
            modes = signs * roots / np.sqrt(n_deviations)
        return np.asarray(self._modes.inputs @ (modes @ self._modes.nodes.T))

    def log_bound(self) -> tuple[float, float]:
        """Lower bound of the log evidence, equation (38), and its standard error by random probes."""
        logs, _, curvatures = self.terms
        length = float(np.sum(self.solution * self.image))
        determinant, error = self.log_determinant, 0.0
        if determinant is None:
            determinant, error = self._latent.log_determinant(curvatures)
        spread = float(np.sum(curvatures * self.variance))
        return float(np.sum(logs)) - 0.5 * (length + determinant - spread), 0.5 * error

    def among_nodes(self, signal: int) -> Array:
        """Covariance over the nodes of one signal."""
        if self.root is not None:
            return self.root[:, signal].T @ self.root[:, signal]
        nodes, at_modes = self._modes.nodes, np.square(self._modes.inputs[signal]) @ self.spread_at_modes
        return _with_variances((nodes * at_modes) @ nodes.T, self.variance[signal])

    def among_signals(self, node: int) -> Array:
        """Covariance over the signals at one node."""
        if self.root is not None:
            return self.root[:, :, node].T @ self.root[:, :, node]
        inputs, at_modes = self._modes.inputs, self.spread_at_modes @ np.square(self._modes.nodes[node])
        return _with_variances((inputs * at_modes) @ inputs.T, self.variance[:, node])

    def draws(self, n_draws: int, random_state: np.random.Generator) -> Array:
        """Latent signals drawn jointly, shape (n_draws, n_signals, n_nodes); by Matheron's rule without a root."""
        if self.root is not None:
            white = random_state.standard_normal((n_draws, len(self.root)))
            return self.mean + np.tensordot(white, self.root, axes=1)
        return self.mean + self.deviating(n_draws, random_state)[0]

    def deviating(
        self,
        n_draws: int,
        random_state: np.random.Generator,
        start: Array | None = None,
        tolerance: float = FINAL.solve_tolerances[1],
    ) -> tuple[Array, Array]:
        """Draws of what latent signals deviate by from their mean, one solve each, and the solutions (Matheron's rule).

        Solutions of a similar law may be given as a `start`.
        """
        curvatures, prior = self.terms[2], self._latent.drawn(n_draws, random_state)
        right = curvatures * prior + np.sqrt(curvatures) * random_state.standard_normal(prior.shape)
        found = self._latent.solve(curvatures, right, start, tolerance)
        return prior - self._latent.times(found), found

    def require_entries(self) -> None:
        """Refuse what takes covariances between nodes, where they are not written out."""
        if not self.covariance.is_written_out:
            raise ValueError(NO_ENTRIES.format(n_nodes=self.covariance.shape[1]))

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


def find_sites(
    covariance: Covariance, observations: Observations, start: Sites | None = None, effort: Effort = FINAL
) -> Sites:
    """The best normal law of latent signals given what was observed, by rounds of means and variances.

    Parameters
    ----------
    covariance : Modal or Series
        Of the latent signals; rows must be `Inputs`. On a quadrature variances are by probes.
    observations : Observations
        What was observed.
    start : Sites, optional
        Of a similar covariance, of these signals or of the first of them, to go on from, unless they are worse under
        this one than none.
    effort : Effort
        How far to go; in the end the covariance is written out where that can be done at all.
    """
    latent, n_entries = latent_of(covariance), observations.values.size
    is_small = is_exact = n_entries <= MOST_EXACT_SITES and covariance.is_written_out
    if effort is FINAL and covariance.is_written_out and MOST_EXACT_SITES < n_entries <= MOST_WRITTEN_OUT:
        start, is_exact = find_sites(covariance, observations, start, STEP), True  # what is nearly right first
    n_effects, nothing = len(observations.columns), np.zeros(covariance.shape)
    variance, effects = np.minimum(latent.prior_variance, FIRST_VARIANCE), np.zeros((n_effects, n_effects))
    rough, solved = observations.rough_coefficients, np.zeros(observations.columns.shape)
    sites = Sites(covariance, observations, nothing, nothing, rough, effects, variance, solved)
    n_rounds = effort.rounds
    if start is not None:
        known, solution, variance, solved = slice(len(start.solution)), nothing.copy(), variance.copy(), solved.copy()
        solution[known], variance[known], solved[:, known] = start.solution, start.variance, start.solved
        fresh = replace(sites, variance=variance)
        begun = replace(fresh, solution=solution, image=latent.times(solution), solved=solved)
        begun = replace(begun, coefficients=start.coefficients)
        if begun.gained >= fresh.gained:  # else, of another covariance, it leads astray
            sites, n_rounds = begun, effort.rounds_from_start
    which = 0 if is_small else 1
    for number in range(n_rounds):
        sites, gain = _newton(sites, latent, effort.solve_tolerances[which])
        curvatures, before = sites.terms[2], sites.variance
        if is_exact:
            variance, root, determinant = cast(InModes, latent).written_out(curvatures)
            sites = replace(sites, variance=variance, root=root, log_determinant=determinant)
        else:
            sites = replace(sites, variance=latent.variances(curvatures)[0])
        change = float(np.sqrt(np.mean(np.square(np.log(sites.variance / before)))))
        mention(f"finding sites, round {number + 1}")
        is_settled = gain < max(SETTLED_NATS, SETTLED_NATS_PER_ENTRY * n_entries)
        if is_settled and change < effort.variance_tolerances[which]:
            break
    return sites


def _newton(sites: Sites, latent: LatentCovariance, tolerance: float) -> tuple[Sites, float]:
    """A step of Newton's method for the mean and the fixed effects at given variances, equation (37), and its gain.

    It is shortened until it gains something.
    """
    observations, coefficients, columns = sites.observations, sites.coefficients, sites.observations.columns
    _, slopes, curvatures = sites.terms
    rights = np.concatenate([(curvatures * (sites.mean - observations.offset) + slopes)[None], curvatures * columns])
    start = sites.solution + np.tensordot(coefficients, sites.solved, axes=1)
    found = latent.solve(curvatures, rights, np.concatenate([start[None], sites.solved]), tolerance)
    free, solved = found[0], found[1:]
    # T^T u is the slope of the effects' prior: but for that, what is left of the slopes is orthogonal to the effects
    precision = observations.effect_precision
    information = np.tensordot(columns, solved, axes=((1, 2), (1, 2)))
    information = 0.5 * (information + information.T) + np.diag(precision)
    right = np.tensordot(columns, free, axes=2) + precision * observations.rough_coefficients
    target, effects = np.linalg.solve(information, right), np.asarray(np.linalg.inv(information), dtype=float)
    step = free - np.tensordot(target, solved, axes=1) - sites.solution
    moved, share, value = latent.times(step), 1.0, sites.gained
    sites = replace(sites, coefficient_covariance=effects, solved=solved)
    while share > LEAST_SHARE:
        solution, image = sites.solution + share * step, sites.image + share * moved
        shifted = coefficients + share * (target - coefficients)
        further = replace(sites, solution=solution, image=image, coefficients=shifted)
        if further.gained >= value - 1e-9 * abs(value):
            return further, max(further.gained - value, 0.0)
        share *= 0.5
    return sites, 0.0  # rounding, where nothing is to be gained
