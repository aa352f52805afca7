"""Posterior of latent signals under a likelihood: a normal approximation with a site per entry."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, NamedTuple, Self, cast

import numpy as np

from spectralgp._basics.arrays import without_caches
from spectralgp._basics.checks import Array, Indices, Mask
from spectralgp._basics.progress import mention
from spectralgp._basics.saved import StoredAs, axes, gt
from spectralgp.model.fields.covariances import Covariance
from spectralgp.model.fields.curvatures import LatentCovariance, ModalLatentCovariance, latent_of
from spectralgp.model.likelihoods import Likelihood, Terms, with_first_values

MOST_EXACT_SITES = 600  # entries in a covariance that is written out at every step of learning
MOST_WRITTEN_OUT = 1_000  # entries in one that is written out once, for predictions and the bound
SETTLED_NATS, SETTLED_NATS_PER_ENTRY = 1e-3, 1e-6  # gain of a last step for the mean
LEAST_SHARE = 1e-4  # shortest fraction of a step
OSCILLATION, SHORTEST_RATE = 0.5, 0.2  # share of a change that the next reverses; smallest damping
ROUNDING_OF_CAVITY = 1e-15  # of an eigenvalue relative to one
ROUNDING = 1e-24  # of a mean square, below which a variance is zero
LINK_DEVIATION = 2.5  # prior standard deviation of the sum of fixed effects, in units of a logarithm or log odds
WIDE_DEVIATION = 1e3  # of the sum of fixed effects in the units of values, in their standard deviations
TOO_MANY_JOINT = (
    "joint must be False for {n_values} values with a likelihood, whose joint distribution would be too large; got "
    "True. Ask for the density of every signal alone, or of fewer signals."
)
NO_ENTRIES = (
    "spectrum must be exact with a likelihood for joint densities, and to leave out whole signals or nodes, which "
    "takes the covariance of {n_nodes} nodes; got a quadrature. leave_one_out('entry') predicts each value from all "
    "others."
)


class Effort(NamedTuple):
    """Limits of the search for sites; the second of two tolerances is for covariances that are not written out."""

    rounds: int  # of means and variances in turn
    rounds_from_start: int
    solve_tolerances: tuple[float, float]
    variance_tolerances: tuple[float, float]  # of logarithms
    most_exact: int = MOST_EXACT_SITES
    most_written_out: int = 0  # in the end


FINAL = Effort(60, 60, (1e-9, 1e-6), (1e-7, 2e-3), most_written_out=MOST_WRITTEN_OUT)  # to convergence
STEP = Effort(8, 8, (1e-6, 1e-5), (1e-5, 2e-3))  # of learning; the next step begins at its result
ROUGH = Effort(8, 2, (1e-4, 1e-4), (2e-3, 2e-3))  # a step far from convergence


@dataclass(frozen=True, eq=False)
class EffectPrior:
    """Normal prior of the fixed effects: proper and weakly informative."""

    mean: Annotated[Array, axes("n_effects")]
    precision: Annotated[Array, axes("n_effects", "n_effects")]

    @classmethod
    def of(
        cls, likelihood: Likelihood, values: Array, beside: Array, columns: Array, has_intercept: bool
    ) -> EffectPrior:
        """Prior of the effects of columns (n_effects, n_values) on observed values: equation (37b).

        The intercept, the first of the columns if there is one, is centred at the latent level of all values together,
        other effects at zero. The precision is proportional to the columns' mean products, so that neither units nor
        combinations of covariates matter.
        """
        mean, products = np.zeros(len(columns)), columns @ columns.T / values.size
        if has_intercept:
            totals = [np.sum(one, keepdims=True) for one in (values, beside)]  # single counts say little
            mean[0] = np.mean(likelihood.rough_latent(*(totals if likelihood.is_discrete else (values, beside))))
        spread = float(np.std(likelihood.rough_latent(values, beside)))
        if likelihood.is_white_noise:
            return cls(mean, products / (WIDE_DEVIATION * (spread or max(float(np.max(np.abs(values))), 1.0))) ** 2)
        return cls(mean, products / (LINK_DEVIATION * max(1.0, spread)) ** 2)

    def penalty(self, effects: Array) -> float:
        """Minus the log density of effects, up to a constant."""
        return 0.5 * float((effects - self.mean) @ self.precision @ (effects - self.mean))


NO_EFFECTS = EffectPrior(np.empty(0), np.empty((0, 0)))


@dataclass(frozen=True, eq=False)
class Observations:
    """Observed values of latent signals with their likelihood; the mean has fixed effects."""

    likelihood: Likelihood
    values: Array  # shape (n_signals, n_nodes); any possible value if missing
    observed: Mask
    beside: Array  # exposures or numbers of trials, of the same shape
    columns: Array  # of the fixed effects, shape (n_effects, n_signals, n_nodes)
    effects: EffectPrior
    offset: Array | float = 0.0  # of the mean, added to fixed effects

    def expected(self, mean: Array, variance: Array) -> Terms:
        """Expected log densities, slopes and non-negative curvatures: equation (36); zero at missing entries."""
        found = self.likelihood.expected(self.values, mean, variance, self.beside)
        logs, slopes, curvatures = (np.where(self.observed, one, 0.0) for one in found)
        return logs, slopes, np.maximum(curvatures, 0.0)

    def fixed(self, coefficients: Array) -> Array:
        """Mean of the latent signals given the fixed effects."""
        return np.asarray(self.offset + np.tensordot(coefficients, self.columns, axes=1))

    @cached_property
    def rough_coefficients(self) -> Array:
        """Least-squares coefficients of a rough latent signal."""
        rough = (self.likelihood.rough_latent(self.values, self.beside) - self.offset)[self.observed]
        return np.asarray(np.linalg.lstsq(self.columns[:, self.observed].T, rough, rcond=None)[0])

    @property
    def rough_variance(self) -> float:
        """Variance of a rough latent signal about the fixed effects; one if it is zero."""
        rough = self.likelihood.rough_latent(self.values, self.beside)[self.observed]
        squares = float(np.sum(np.square(rough - self.fixed(self.rough_coefficients)[self.observed])))
        about = squares / max(rough.size - len(self.columns), 1)
        return about if about > ROUNDING * np.mean(np.square(rough)) else 1.0


@dataclass(frozen=True, eq=False)
class ObservationModel:
    """Observation model of signals: the likelihood, exposures or trials of values, and fixed effects."""

    likelihood: Likelihood
    beside: Annotated[Array, axes("n_signals", "n_nodes"), gt(0)]  # exposures, trials or variances
    columns: Annotated[Array, axes("n_effects", "n_signals", "n_nodes")]  # of the fixed effects
    # null in files up to version 6, where their prior follows from the values
    effects: Annotated[EffectPrior, StoredAs(EffectPrior | None)] = NO_EFFECTS

    __getstate__ = without_caches

    @classmethod
    def of(cls, likelihood: Likelihood, beside: Array, columns: Array, values: Array, has_intercept: bool) -> Self:
        """Observation model of training values, NaN if missing, with a prior of the fixed effects in their units."""
        own, started = np.isfinite(values), with_first_values(likelihood)
        prior = EffectPrior.of(started, values[own], beside[own], columns[:, own], has_intercept)
        return cls(likelihood, beside, columns, prior)

    @cached_property
    def last_found(self) -> list[tuple[Any, Any, Sites]]:
        """Cache of the last prior, signals and sites on a large graph: learning and conditioning need the same ones."""
        return []

    def observations(self, values: Array, likelihood: Likelihood | None = None) -> Observations:
        """Observations of values, NaN if missing, under this likelihood or a learnt one."""
        observed = np.isfinite(values)
        filled, beside = np.where(observed, values, 1.0), np.where(observed, self.beside, 1.0)
        return Observations(likelihood or self.likelihood, filled, observed, beside, self.columns, self.effects)

    def some(self, rows: Any) -> ObservationModel:
        """Observation model of some of the signals."""
        return replace(self, beside=self.beside[rows], columns=self.columns[:, rows])

    def followed_by(self, other: ObservationModel) -> ObservationModel:
        """Observation model of these signals followed by others."""
        beside, columns = np.vstack([self.beside, other.beside]), np.hstack([self.columns, other.columns])
        return replace(self, beside=beside, columns=columns)


@dataclass(frozen=True, eq=False)
class Sites:
    """``q(f) = N(m, C)`` of latent signals about fixed effects, both uncertain: equations (35) to (40).

    Made by `find_sites`. Given the effects ``C`` is ``(A^-1 + W)^-1``; the effects' covariance is added. Variances
    are exact if `root` is given, else by effective curvatures. Latent signals about the fixed effects include white
    noise, part of ``A``, as complete values of `PartialObservations` do.
    """

    covariance: Covariance  # of the latent signals about fixed effects
    observations: Observations
    solution: Array  # u, with m = T beta + A u
    image: Array  # A u
    coefficients: Array  # posterior mean of beta
    coefficient_covariance: Array
    variance: Array
    solved: Array  # (I + W A)^-1 W T, shape (n_effects, n_signals, n_nodes)
    solved_image: Array  # A times that
    root: Array | None = None  # factors (n_entries, n_signals, n_nodes) of the covariance given the effects
    log_determinant: float | None = None  # log |I + A W| if it is exact

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
        """Part of the bound that depends on the mean: ``sum E log p - u^T A u / 2``, with the prior of the effects.

        Minus infinity if it is not finite.
        """
        found = float(np.sum(self.terms[0]) - 0.5 * np.sum(self.solution * self.image))
        return found - self.observations.effects.penalty(self.coefficients) if np.isfinite(found) else -np.inf

    def factors_of(self, columns: Array) -> Array:
        """Factors of the covariance of linear functions of the effects, given as columns (n_effects, ...)."""
        return np.tensordot(np.linalg.cholesky(self.coefficient_covariance).T, columns, axes=1)

    @cached_property
    def effect_factors(self) -> Array:
        """Factors of the covariance that uncertain effects add to the latent signals: equation (37c)."""
        return self.factors_of(self.observations.columns - self.solved_image)

    @cached_property
    def field_factors(self) -> Array:
        """Factors of the covariance that uncertain effects add to the latent signals about them."""
        return self.factors_of(self.solved_image)

    @property
    def of_observed(self) -> tuple[Array, Array, Array, Array]:
        """Observed values, means and variances of the latent signal there, and exposures or trials."""
        observations, own = self.observations, self.observations.observed
        return observations.values[own], self.mean[own], self.variance[own], observations.beside[own]

    @cached_property
    def _factors(self) -> Array:
        """Factors of the covariance of the latent signals, if it is written out."""
        assert self.root is not None
        return np.concatenate([self.root, self.effect_factors])

    @property
    def _grown(self) -> Array:
        """``1 + s W``: ratio of deviations without white noise to those of latent signals, except by that noise."""
        return 1 + self.covariance.noise_variance * self.terms[2]

    @property
    def signal_mean(self) -> Array:
        """``m - s u``."""
        return self.mean - self.covariance.noise_variance * self.solution

    @property
    def signal_variance(self) -> Array:
        """``v (1 + s W)^2 - s (1 + s W)``."""
        grown = self._grown
        return np.maximum(self.variance * grown**2 - self.covariance.noise_variance * grown, 0.0)

    @cached_property
    def _latent(self) -> LatentCovariance:
        return latent_of(self.covariance)

    @property
    def _modes(self) -> ModalLatentCovariance:
        if not self.covariance.is_written_out:
            raise ValueError(NO_ENTRIES.format(n_nodes=self.covariance.shape[1]))
        return cast(ModalLatentCovariance, self._latent)

    @cached_property
    def spread_at_modes(self) -> Array:
        """Variances given the effects in both eigenbases, shape (n_signals, n_nodes): equation (39)."""
        return self._modes.variances_at_modes(self.terms[2])

    @cached_property
    def variance_error(self) -> float:
        """Root mean square standard error of the variances by random probes; zero if they are exact."""
        return 0.0 if self.covariance.is_written_out else self._latent.variances(self.terms[2])[1]

    def deviations(self, most: int, random_state: np.random.Generator) -> Array:
        """Factors of the covariance of the latent signals about fixed effects, for learning.

        Without a root the modes count as independent: one factor per mode of the inputs, which is exact at every
        frequency, or fewer with random signs.
        """
        if self.root is not None:
            return np.concatenate([self.root, self.field_factors])
        n_signals = self.covariance.shape[0]
        roots, n_deviations = np.sqrt(self.spread_at_modes), min(most, n_signals)
        if n_deviations == n_signals:
            signs = random_state.integers(0, 2, roots.shape) * 2.0 - 1.0
            modes = np.eye(n_signals)[:, :, None] * (roots * signs)
        else:
            signs = random_state.integers(0, 2, (n_deviations, *roots.shape)) * 2.0 - 1.0
            modes = signs * roots / np.sqrt(n_deviations)
        of_modes = np.asarray(self._modes.inputs @ (modes @ self._modes.nodes.T))
        return np.concatenate([of_modes, self.field_factors])

    def log_bound(self) -> tuple[float, float]:
        """Lower bound of the log evidence, equation (38), and its standard error by random probes."""
        logs, _, curvatures = self.terms
        length, prior = float(np.sum(self.solution * self.image)), self.observations.effects
        determinant, error = self.log_determinant, 0.0
        if determinant is None:
            determinant, error = self._latent.log_determinant(curvatures)
        # log |I + (A + T S T^T) W|, with the prior covariance S of the effects
        determinant -= sum(float(np.linalg.slogdet(one)[1]) for one in (prior.precision, self.coefficient_covariance))
        spread = float(np.sum(curvatures * self.variance))
        total = float(np.sum(logs)) - 0.5 * (length + determinant - spread)
        return total - prior.penalty(self.coefficients), 0.5 * error

    def among_nodes(self, signal: int) -> Array:
        """Covariance over the nodes of one signal."""
        if self.root is not None:
            return self._factors[:, signal].T @ self._factors[:, signal]
        nodes, at_modes = self._modes.nodes, np.square(self._modes.inputs[signal]) @ self.spread_at_modes
        return _with_effects((nodes * at_modes) @ nodes.T, self.variance[signal], self.effect_factors[:, signal])

    def among_signals(self, node: int) -> Array:
        """Covariance over the signals at one node."""
        if self.root is not None:
            return self._factors[:, :, node].T @ self._factors[:, :, node]
        inputs, at_modes = self._modes.inputs, self.spread_at_modes @ np.square(self._modes.nodes[node])
        return _with_effects((inputs * at_modes) @ inputs.T, self.variance[:, node], self.effect_factors[:, :, node])

    def among(self, signals: Indices, nodes: Indices) -> Array:
        """Covariance of some entries of one signal, or of several where it is written out."""
        if np.all(signals == signals[0]):
            return self.among_nodes(int(signals[0]))[np.ix_(nodes, nodes)]
        if self.root is None:
            raise ValueError(TOO_MANY_JOINT.format(n_values=signals.size))
        return np.asarray(self._factors[:, signals, nodes].T @ self._factors[:, signals, nodes])

    def value_draws(self, n_draws: int, random_state: np.random.Generator) -> Array:
        """Latent signals less their mean, drawn jointly; by Matheron's rule without a root."""
        factors = self.effect_factors if self.root is None else self._factors
        drawn = np.tensordot(random_state.standard_normal((n_draws, len(factors))), factors, axes=1)
        return drawn if self.root is not None else drawn + self.deviating(n_draws, random_state)[0]

    def drawn_signal(self, random_state: np.random.Generator) -> Array:
        """Latent signals without white noise less their mean, drawn jointly by Matheron's rule."""
        weights = random_state.standard_normal(len(self.effect_factors))
        by_effects = self._grown * np.tensordot(weights, self.effect_factors, axes=1)
        complete, curvatures = self.covariance, self.terms[2]
        prior = complete.unload(complete.draw_signal(random_state))
        # the noise of an entry is white noise and that of its site: s + 1 / W
        noise = np.sqrt(curvatures * self._grown) * random_state.standard_normal(prior.shape)
        right = (curvatures * prior + noise)[None]
        (found,) = self._latent.solve(curvatures, right, None, FINAL.solve_tolerances[1])
        return prior - self._latent.times(found) + complete.noise_variance * found + by_effects

    def deviating(
        self,
        n_draws: int,
        random_state: np.random.Generator,
        start: Array | None = None,
        tolerance: float = FINAL.solve_tolerances[1],
    ) -> tuple[Array, Array]:
        """Draws of deviations from the mean given the effects, one solve each, and the solutions (Matheron's rule).

        Solutions of a similar problem may be given as a `start`.
        """
        curvatures, prior = self.terms[2], self._latent.drawn(n_draws, random_state)
        right = curvatures * prior + np.sqrt(curvatures) * random_state.standard_normal(prior.shape)
        found = self._latent.solve(curvatures, right, start, tolerance)
        return prior - self._latent.times(found), found

    def given(self, rows: Indices, values: Array, observed_by: ObservationModel) -> Sites:
        """Sites given further values of some of the signals, NaN if missing."""
        observations = self.observations
        known, observed = observations.values.copy(), observations.observed.copy()
        beside, new = observations.beside.copy(), np.isfinite(values)
        known[rows] = np.where(new, values, known[rows])
        observed[rows] |= new
        beside[rows] = np.where(new, observed_by.beside, beside[rows])
        further = replace(observations, values=known, observed=observed, beside=beside)
        return find_sites(self.covariance, further, self)

    def variance_errors(self, variances: Array) -> Array:
        """Root mean square standard errors, by random probes, of variances of some of the signals."""
        return np.full(len(variances), self.variance_error)

    def cavity(self, block: Array, mean: Array, places: Any) -> tuple[Array, Array]:
        """Mean and covariance of a block of entries without their own sites, from those with them: equation (40)."""
        _, slopes, curvatures = self.terms
        roots = np.sqrt(curvatures[places])
        values, axes = np.linalg.eigh(np.eye(len(block)) - block * np.multiply.outer(roots, roots))
        half = (block * roots) @ (axes / np.sqrt(np.maximum(values, ROUNDING_OF_CAVITY)))
        left = block + half @ half.T  # as (C^-1 - W)^-1, and positive definite where that is lost by rounding
        return mean - left @ slopes[places], left


def _with_effects(covariance: Array, variance: Array, factors: Array) -> Array:
    """Covariance with given total variances, from the correlations given the effects and the factors of the effects."""
    own = factors.T @ factors
    roots = np.sqrt((variance - np.diag(own)) / np.diag(covariance))
    return covariance * np.multiply.outer(roots, roots) + own


def find_sites(
    covariance: Covariance, observations: Observations, start: Sites | None = None, effort: Effort = FINAL
) -> Sites:
    """Return the best normal approximation to latent signals given observed values, by rounds of means and variances.

    The covariance of the latent signals has the rows of an `InputCovariance`. The search begins at the sites of a
    similar covariance, of these signals or of the first of them, if these are better than none.
    """
    latent, n_entries = latent_of(covariance), observations.values.size
    is_small = is_exact = n_entries <= effort.most_exact and covariance.is_written_out
    if covariance.is_written_out and effort.most_exact < n_entries <= effort.most_written_out:
        start, is_exact = find_sites(covariance, observations, start, STEP), True  # an approximation first
    nothing, columns = np.zeros(covariance.shape), np.zeros(observations.columns.shape)
    variance, solved = np.minimum(latent.at_curvature(0.0)[0], observations.likelihood.first_variance), columns
    rough, effects = observations.rough_coefficients, np.zeros(observations.effects.precision.shape)
    sites = Sites(covariance, observations, nothing, nothing, rough, effects, variance, columns, columns)
    n_rounds = effort.rounds
    if start is not None:
        known, solution, variance, solved = slice(len(start.solution)), nothing.copy(), variance.copy(), solved.copy()
        solution[known], variance[known], solved[:, known] = start.solution, start.variance, start.solved
        fresh = replace(sites, variance=variance)
        begun = replace(fresh, solution=solution, image=latent.times(solution), solved=solved)
        begun = replace(begun, coefficients=start.coefficients)
        if begun.gained >= fresh.gained:  # else the start is of too different a covariance
            sites, n_rounds = begun, effort.rounds_from_start
    which, rate, last = 0 if is_small else 1, 1.0, nothing
    for number in range(n_rounds):
        sites, gain = _newton(sites, latent, effort.solve_tolerances[which])
        curvatures, before = sites.terms[2], sites.variance
        if is_exact:
            variance, root, determinant = cast(ModalLatentCovariance, latent).written_out(curvatures)
            sites = replace(sites, root=root, log_determinant=determinant)
        else:
            variance = latent.variances(curvatures)[0]
        moved = np.log((variance + np.sum(np.square(sites.effect_factors), axis=0)) / before)
        change, turns = float(np.sqrt(np.mean(np.square(moved)))), float(np.sum(moved * last))
        # oscillating rounds, as if only the prior keeps a rate from zero, are damped
        is_turning = turns < -OSCILLATION * np.sum(np.square(last))
        rate = max(0.5 * rate, SHORTEST_RATE) if is_turning else min(1.0, 1.25 * rate)
        sites, last = replace(sites, variance=before * np.exp(rate * moved)), moved
        mention(f"finding sites, round {number + 1}")
        is_settled = gain < max(SETTLED_NATS, SETTLED_NATS_PER_ENTRY * n_entries)
        if is_settled and change < effort.variance_tolerances[which]:
            break
    return sites


def _newton(sites: Sites, latent: LatentCovariance, tolerance: float) -> tuple[Sites, float]:
    """A step of Newton's method for the mean and the fixed effects at given variances, equation (37), and its gain.

    It is shortened until the gain is positive.
    """
    observations, coefficients, columns = sites.observations, sites.coefficients, sites.observations.columns
    _, slopes, curvatures = sites.terms
    rights = np.concatenate([(curvatures * (sites.mean - observations.offset) + slopes)[None], curvatures * columns])
    start = sites.solution + np.tensordot(coefficients, sites.solved, axes=1)
    found = latent.solve(curvatures, rights, np.concatenate([start[None], sites.solved]), tolerance)
    free, solved = found[0], found[1:]
    # at the maximum T^T u is the slope of the effects' prior
    prior = observations.effects
    information = np.tensordot(columns, solved, axes=((1, 2), (1, 2)))
    information = 0.5 * (information + information.T) + prior.precision
    right = np.tensordot(columns, free, axes=2) + prior.precision @ prior.mean
    target, effects = np.linalg.solve(information, right), np.asarray(np.linalg.inv(information), dtype=float)
    step = free - np.tensordot(target, solved, axes=1) - sites.solution
    (moved, *images), share, value = latent.times(np.concatenate([step[None], solved])), 1.0, sites.gained
    image_of_solved = np.stack(images) if images else solved
    sites = replace(sites, coefficient_covariance=effects, solved=solved, solved_image=image_of_solved)
    while share > LEAST_SHARE:
        solution, image = sites.solution + share * step, sites.image + share * moved
        shifted = coefficients + share * (target - coefficients)
        further = replace(sites, solution=solution, image=image, coefficients=shifted)
        if further.gained >= value - 1e-9 * abs(value):
            return further, max(further.gained - value, 0.0)
        share *= 0.5
    return sites, 0.0  # no gain beyond rounding
