"""Latent signals given values that a likelihood observes of them: a normal law with a site per entry."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular

from spectralgp._basics.arrays import without_caches
from spectralgp._basics.checks import Array, Mask
from spectralgp._basics.progress import mention
from spectralgp.fields.covariances import Covariance, Series
from spectralgp.fields.factors import Inputs, Nodes
from spectralgp.fields.krylov import conjugate_gradients, gauss_quadrature
from spectralgp.fields.probed import LEAST_CAVITY, Probed, solve_by_roots, tabulated
from spectralgp.fields.seen import Weighted
from spectralgp.likelihoods import Likelihood, Terms
from spectralgp.operators import lanczos
from spectralgp.spectra import Spectrum

MOST_EXACT_SITES = 600  # entries whose covariance is written out at every step of learning
MOST_WRITTEN_OUT = 1_000  # the same once, for predictions and the bound
MOST_ROUNDS, FIRST_ROUNDS, ROUGH_ROUNDS = 60, 8, 2  # of means and variances in turn; in learning; from a start
VARIANCE_TOLERANCE, SETTLED_VARIANCE_TOLERANCE, FINE_VARIANCE_TOLERANCE = 2e-3, 1e-5, 1e-7  # of their logarithms
SETTLED_NATS, SETTLED_NATS_PER_ENTRY = 1e-3, 1e-6  # that a step for the mean gains, where it is done
SOLVE_TOLERANCE, STEP_SOLVE_TOLERANCE, FINE_SOLVE_TOLERANCE, EXACT_SOLVE_TOLERANCE = 1e-4, 1e-5, 1e-6, 1e-9
FIRST_VARIANCE = 1.0  # of the latent signal, at most
LEAST_SHARE = 1e-4  # of a step that is tried
PROBES, PROBE_SEED, STEPS_BETWEEN = 8, 0, 10
ROUNDING = 1e-24  # of a mean square, below which a variance is none
MOST_SITE_NOISE = 1e6  # of the variance of the latent signals; of sites that say less conjugate gradients see rounding
EFFECT_DEVIATION = 1e3  # of a fixed effect about its rough value, in deviations of the latent signals
NO_ENTRIES = (
    "spectrum must be exact with a likelihood for joint densities, and to leave out whole signals or nodes, which "
    "takes the covariance of {n_nodes} nodes; got a quadrature. leave_one_out('entry') has each value given all others."
)


@dataclass(frozen=True, eq=False)
class NoisyNodes(Nodes):
    """What nodes share, with more noise: that of the sites."""

    nodes: Nodes
    noise_variance: float

    @property
    def basis(self) -> Spectrum:  # type: ignore[override]
        """That of the nodes."""
        return self.nodes.basis

    def powers(self, eigenvalues: Array) -> tuple[Array, Array]:
        power, own = self.nodes.powers(eigenvalues)
        return power, own + self.noise_variance

    def response(self, eigenvalues: Array) -> Array:
        return self.nodes.response(eigenvalues)

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

    @cached_property
    def variance_error(self) -> float:
        """Root mean square standard error of the variances by random probes; zero where there are none."""
        if self.covariance.is_written_out:
            return 0.0
        return Probed(cast(Series, self.covariance)).variances(self.terms[2])[1]

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
        self.require_entries()
        if self.root is not None:
            return self.root[:, signal].T @ self.root[:, signal]
        bases = _Eigenbases.of(self.covariance)
        at_modes = np.square(bases.inputs[signal]) @ self.spread_at_modes
        return _with_variances((bases.nodes * at_modes) @ bases.nodes.T, self.variance[signal])

    def among_signals(self, node: int) -> Array:
        """Covariance over the signals at one node."""
        self.require_entries()
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
        return self.mean + self.deviating(n_draws, random_state)[0]

    def deviating(
        self,
        n_draws: int,
        random_state: np.random.Generator,
        start: Array | None = None,
        tolerance: float | None = None,
    ) -> tuple[Array, Array]:
        """Draws of what latent signals deviate by from their mean, one solve each, and the solutions (Matheron's rule).

        Solutions of a similar law may be given as a `start`.
        """
        covariance, curvatures, shape = self.covariance, self.terms[2], (n_draws, *self.covariance.shape)
        noisy = with_site_noise(covariance, curvatures)
        if covariance.is_written_out:
            prior = np.stack([noisy.draw_signal(random_state) for _ in range(n_draws)])
        else:
            several = noisy.repeated(n_draws)
            prior = several.unload(several.draw_signal(random_state)).reshape(shape)
        right = curvatures * prior + np.sqrt(curvatures) * random_state.standard_normal(shape)
        found = solve_with_sites(covariance, curvatures, right, start, tolerance or FINE_SOLVE_TOLERANCE)
        return prior - times(covariance, found), found

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


def with_site_noise(covariance: Any, curvatures: Array) -> Any:
    """The covariance with noise such as sites have on average, by which systems are preconditioned."""
    seen = curvatures[curvatures > 0]
    most = MOST_SITE_NOISE * float(np.mean(covariance.rows.variances(*covariance.powers)))
    noise = min(1 / float(np.mean(seen)), most) if seen.size else most
    return replace(covariance, nodes=NoisyNodes(covariance.nodes, noise))


def solve_with_sites(
    covariance: Any, curvatures: Array, rights: Array, starts: Array | None, tolerance: float
) -> Array:
    """Solve ``(I + W A) u = b`` for sets of values (n_sets, n_signals, n_nodes), all of them at once."""
    if not covariance.is_written_out:
        return solve_by_roots(covariance, curvatures, rights, starts, max(tolerance, covariance.finest))
    noisy = with_site_noise(covariance, curvatures)
    return np.asarray(conjugate_gradients(Weighted(noisy, curvatures), rights, starts, tolerance))


def times(covariance: Any, values: Array) -> Array:
    """``A`` times values (..., n_signals, n_nodes)."""
    if covariance.is_written_out:
        return np.asarray(covariance.times(values))
    several = covariance.repeated(values.size // (covariance.shape[0] * covariance.shape[1]))
    return np.asarray(several.unload(several.times(several.load(values.reshape(several.shape)))).reshape(values.shape))


# ------------------------------------------------------------------------------------------------- finding them


def find_sites(
    covariance: Covariance,
    observations: Observations,
    start: Sites | None = None,
    *,
    is_final: bool = True,
    is_rough: bool = False,
) -> Sites:
    """The best normal law of latent signals given what was observed, by rounds of means and variances.

    Parameters
    ----------
    covariance : Modal or Series
        Of the latent signals; rows must be `Inputs`. On a quadrature variances are by probes.
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
    is_small = is_exact = n_entries <= MOST_EXACT_SITES and covariance.is_written_out
    if (
        is_final and covariance.is_written_out and MOST_EXACT_SITES < n_entries <= MOST_WRITTEN_OUT
    ):  # what is nearly right first
        start, is_exact = find_sites(covariance, observations, start, is_final=False), True
    bases = _bases_of(covariance)
    coefficients, solution = observations.rough_coefficients, np.zeros(covariance.shape)
    solved = np.zeros(observations.columns.shape)
    if start is not None:
        variance, image = start.variance, times(covariance, start.solution)
        fresh = _gained(observations, observations.fixed(coefficients), variance, coefficients, 0.0)
        known, length = observations.fixed(start.coefficients) + image, float(np.sum(start.solution * image))
        if _gained(observations, known, variance, start.coefficients, length) >= fresh:
            coefficients, solution, solved = start.coefficients, start.solution, start.solved
        else:  # of another covariance it leads astray
            start = None
    if start is None:
        variance = np.minimum(bases.prior_variance, FIRST_VARIANCE)
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
    image = times(covariance, solution)
    mean = observations.fixed(coefficients) + image
    root, determinant, effects = None, None, np.zeros((len(coefficients), len(coefficients)))
    for number in range(n_rounds):
        mean, solution, image, coefficients, effects, solved, gain = _newton(
            covariance, observations, mean, solution, image, coefficients, variance, solved, tolerance
        )
        curvatures, before = observations.expected(mean, variance)[2], variance
        if is_exact:
            variance, root, determinant = written_out(cast(_Eigenbases, bases), curvatures)
        else:
            variance = bases.effective(curvatures)
        change = float(np.sqrt(np.mean(np.square(np.log(variance / before)))))
        mention(f"finding sites, round {number + 1}")
        if change < allowed and gain < max(SETTLED_NATS, SETTLED_NATS_PER_ENTRY * n_entries):
            break
    found = solution, coefficients, effects, mean, variance, root, determinant, solved
    return Sites(covariance, observations, *found)


def _gained(observations: Observations, mean: Array, variance: Array, coefficients: Array, length: float) -> float:
    """What of the bound depends on the mean, ``sum E log p - u^T A u / 2``, with the prior of the fixed effects.

    Minus infinity where it is none.
    """
    found = float(np.sum(observations.expected(mean, variance)[0]) - 0.5 * length)
    return found - observations.penalty(coefficients) if np.isfinite(found) else -np.inf


def _newton(
    covariance: Covariance,
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
    value = float(np.sum(logs) - 0.5 * np.sum(solution * image)) - observations.penalty(coefficients)
    columns = observations.columns
    rights = np.concatenate([(curvatures * (mean - observations.offset) + slopes)[None], curvatures * columns])
    starts = np.concatenate([(solution + np.tensordot(coefficients, solved, axes=1))[None], solved])
    found = solve_with_sites(covariance, curvatures, rights, starts, tolerance)
    free, solved = found[0], found[1:]
    # T^T u is the slope of the effects' prior: but for that, what is left of the slopes is orthogonal to the effects
    precision = observations.effect_precision
    information = np.tensordot(columns, solved, axes=((1, 2), (1, 2)))
    information = 0.5 * (information + information.T) + np.diag(precision)
    target, covariance_of_effects = coefficients, np.zeros(information.shape)
    if len(coefficients):
        factor = cho_factor(information)
        right = np.tensordot(columns, free, axes=2) + precision * observations.rough_coefficients
        target = cho_solve(factor, right)
        covariance_of_effects = cho_solve(factor, np.eye(len(coefficients)))
    step = free - np.tensordot(target, solved, axes=1) - solution
    moved, shift = times(covariance, step), np.tensordot(target - coefficients, columns, axes=1)
    share, reached = 1.0, -np.inf
    while share > LEAST_SHARE:
        further = mean + share * (moved + shift)
        length = float(np.sum((solution + share * step) * (image + share * moved)))
        reached = _gained(observations, further, variance, coefficients + share * (target - coefficients), length)
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
    def of(cls, covariance: Covariance) -> _Eigenbases:
        modes = cast(Inputs, covariance.rows).modes
        vectors = covariance.basis.require_eigenvectors("spectrum must be exact for a likelihood; got a quadrature.")
        return cls(modes.vectors, vectors, cast(Inputs, covariance.rows).variances(*covariance.powers))

    @cached_property
    def _squares(self) -> tuple[Array, Array]:
        return np.square(self.inputs), np.square(self.nodes)

    @property
    def prior_variance(self) -> Array:
        """Variances at entries before anything was observed."""
        return self.diagonal(self.variances)

    def effective(self, curvatures: Array) -> Array:
        """Variances at entries by effective curvatures."""
        return effective(self, curvatures)[0]

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


def _bases_of(covariance: Covariance) -> _Eigenbases | Probed:
    return _Eigenbases.of(covariance) if covariance.is_written_out else Probed(cast(Series, covariance))


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
    for curvature, share in tabulated(others):
        left = 1 / bases.diagonal(bases.shrunk(curvature)) - curvature
        logs += share * np.log(np.maximum(left, LEAST_CAVITY))
    at_modes = np.zeros(curvatures.shape)
    for curvature, share in tabulated(around / total):
        at_modes += bases.shrunk(curvature) * bases.at_modes(share)
    return 1 / (np.exp(logs) + curvatures), at_modes


def _log_determinant(covariance: Covariance, curvatures: Array) -> tuple[float, float]:
    """``log |I + A W|`` and its standard error by random probes; what a common curvature says of them is taken out."""
    bases, roots = _bases_of(covariance), np.sqrt(curvatures)
    if isinstance(bases, Probed):
        return bases.log_determinant(curvatures)
    common = float(np.mean(curvatures))
    known = np.log1p(common * bases.variances)
    random_state, estimates = np.random.default_rng(PROBE_SEED), []
    for _ in range(PROBES):
        probe = random_state.integers(0, 2, curvatures.shape) * 2.0 - 1.0
        control = float(np.sum(known * np.square(bases.inputs.T @ probe @ bases.nodes)))
        steps = lanczos(
            lambda one: one + roots * covariance.times(roots * one), lambda one, two: float(np.sum(one * two)), probe
        )
        nodes, weights = gauss_quadrature(steps, STEPS_BETWEEN)
        estimates.append(probe.size * float(weights @ np.log(nodes)) - control)
    error = float(np.std(estimates, ddof=1) / np.sqrt(PROBES))
    return float(np.sum(known) + np.mean(estimates)), error


def padded(sites: Sites, covariance: Covariance, observations: Observations) -> Sites:
    """Sites of the first of some signals as a start for those of all."""
    more = covariance.shape[0] - sites.covariance.shape[0]
    nothing = np.zeros((more, covariance.shape[1]))
    variance = np.minimum(_bases_of(covariance).prior_variance, FIRST_VARIANCE)
    variance[: -more or None] = sites.variance
    solution = np.concatenate([sites.solution, nothing])
    solved = np.concatenate([sites.solved, np.zeros((len(sites.solved), *nothing.shape))], axis=1)
    longer = replace(sites, solution=solution, variance=variance, solved=solved)
    return replace(longer, covariance=covariance, observations=observations)
