"""Posterior of signals given partial observations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.linalg.lapack import dtrtri

from spectralgp._basics.arrays import few_threads, without_caches
from spectralgp._basics.checks import Array, Indices, Mask
from spectralgp.graphs.operators import lanczos
from spectralgp.model.fields import covariances
from spectralgp.model.fields.covariances import SLACK, Covariance, with_entries
from spectralgp.model.fields.krylov import LinearSystem, conjugate_gradients, gauss_quadrature

Method = Literal["missing", "observed", "iterative"]

MOST_DENSE = 2_500  # entries in a covariance that is written out
MOST_SOLVED_DENSELY = 600  # entries in a covariance to solve with, if a tolerance is allowed
FORM_TOLERANCE, ROUGH_FORM_TOLERANCE = 1e-5, 1e-3  # of a solve for a quadratic form; with few probes of a determinant
PROBES, FEWEST_PROBES = 32, 6
MOST_PROBED = 2**18  # values of all probes together, unless they are the fewest
MOST_MISSING_PROBED = 0.75  # share of missing values; beyond it the determinant of observed ones is probed
MOST_SHORT = 2**20  # values for an accurate determinant; beyond it there are two probes
MOST_LANCZOS_STEPS, FEW_LANCZOS_STEPS = 200, 20  # the second for more values
MOST_EXACT_VALUES = 2**22  # in all deviations of an exact covariance
ALWAYS_EXACT = 64  # entries, whose covariance is exact even if few draws are allowed
DRAWS, FIRST_DRAWS, FEWEST_DRAWS = 64, 8, 2
VARIANCE_TOLERANCE, WIDEST = 0.05, 0.95  # relative error of variances by draws; the quantile of entries that have it
MOST_DRAWN = 2**22  # values, of all draws together
MOST_SOLVED = 2**17  # values of draws per solve, so that a step fits in the cache of the processor
MOST_FILTERED = 2**19  # and by products alone, which take less time per value if there are more columns
MOST_COLUMNS = 512  # values of signals whose parts of ``Q`` are found together
DRAW_TOLERANCE = 1e-2  # of solves for draws, less than their Monte Carlo error
MOST_GIVEN = 2**32  # operations for variances of the missing values of each signal given the others
DRAW_SEED, PROBE_SEED = 1, 0
LEAST_PRECISION = 1e-9  # relative lower bound of differences of precisions, for rounding and draws


def weighted_system(complete: Covariance, weights: Any) -> LinearSystem:
    """Return ``I + W A`` in the inner product of ``A = C - s``, preconditioned by ``(I + A / s)^-1``.

    The preconditioner solves for complete signals, or nearly so. The weights, a block, are not negative.
    """
    noise = complete.noise_variance
    return LinearSystem(
        times=lambda block, image: block + weights * image,
        precondition=complete.precondition,
        inner=complete.inner,
        smallest=noise * (1 - SLACK) / complete.largest,
        image=lambda block: complete.times(block) - block * noise,
    )


def inverse_root(matrix: Array) -> Array:
    """Lower triangular ``H`` with ``M^-1 = H^T H`` of a positive definite matrix, which is overwritten."""
    return _inverse(cholesky(matrix, lower=True, overwrite_a=True, check_finite=False))


def _inverse(factor: Array) -> Array:
    """Inverse of a lower triangular matrix."""
    return np.asarray(dtrtri(factor, lower=1)[0]) if len(factor) else factor  # LAPACK refuses empty matrices


@dataclass(frozen=True, eq=False)
class PartialObservations:
    """Posterior of all entries of signals given some of their values, by the inverse ``Q`` of the covariance of these.

    Signals have the covariance ``C``, noise ``s`` included; complete values are signals with that noise. A dense matrix
    of all missing entries, or of all observed ones, is used if it is small: equation (20). Otherwise systems are solved
    by conjugate gradients, of which a step is one solve for complete signals.
    """

    covariance: Covariance  # of complete signals
    values: Array  # about their mean, shape (n_signals, n_nodes); finite but ignored if missing
    observed: Mask
    most_deviations: int | None = None  # draws for a covariance; by default bounded by memory
    start: Array | None = None  # a guess of `solution`
    tolerance: float = 0.0  # of solves for the mean and, at least, for deviations
    always_iterates: bool = False  # if single entries of the covariance cost as much as a solve
    most_dense: int = MOST_DENSE
    most_exact: int = MOST_EXACT_VALUES
    most_given: int = MOST_GIVEN

    __getstate__ = without_caches

    @cached_property
    def missing(self) -> Mask:
        """Mask of missing entries."""
        return ~self.observed

    @cached_property
    def _n_missing(self) -> int:
        return int(np.count_nonzero(self.missing))

    @property
    def _side(self) -> Method:
        """Smaller set: missing entries, or observed ones."""
        return "missing" if 2 * self._n_missing <= self.observed.size else "observed"

    @property
    def _n_dense(self) -> int:
        return min(self._n_missing, self.observed.size - self._n_missing)

    @property
    def is_written_out(self) -> bool:
        """Whether ``Q`` is known exactly among the values of a signal."""
        return self.covariance.is_written_out and self._n_dense <= self.most_dense

    @cached_property
    def method(self) -> Method:
        """Matrix to solve systems by, or iteration."""
        most = self.most_dense if self.tolerance == 0 else MOST_SOLVED_DENSELY
        is_small = self.is_written_out and self._n_dense <= most and not self.always_iterates
        return self._side if is_small else "iterative"

    @property
    def _is_short(self) -> bool:
        """Whether there are few enough values for an accurate determinant."""
        return self.observed.size <= MOST_SHORT

    @cached_property
    def _observed_root(self) -> Array:
        """Root ``H`` of ``Q = H^T H``."""
        return inverse_root(with_entries(self.covariance).submatrix(self.observed))

    @cached_property
    def _missing_factor(self) -> Array:
        """Cholesky factor of the precision of missing values: of their part of ``C^-1``."""
        entries = with_entries(self.covariance).submatrix(self.missing, inverse=True)
        with few_threads(self._n_missing):
            return np.asarray(cholesky(entries, lower=True, overwrite_a=True, check_finite=False))

    def solve(self, values: Array, start: Array | None = None, tolerance: float = 0.0) -> Array:
        """``Q y`` of values about their mean, shape (..., n_signals, n_nodes); zero at missing entries.

        An iterative solution begins at `start`; its relative error in energy is at most the square of `tolerance`.
        """
        values = np.where(self.observed, values, 0.0)
        return self._iterated(values, start, tolerance) if self.method == "iterative" else self._densely(values)

    def _densely(self, values: Array) -> Array:
        """``Q y`` by the smaller matrix."""
        if self._side == "missing":
            return np.where(self.observed, self.covariance.solve(self._completed_densely(values)), 0.0)
        found, root = np.zeros(values.shape), self._observed_root
        found[..., self.observed] = (values[..., self.observed] @ root.T) @ root
        return found

    def _completed_densely(self, values: Array) -> Array:
        """``C Q y``, which differs from ``y`` at missing entries: equation (20)."""
        image = values.copy()
        solved = self.covariance.solve(values)[..., self.missing]
        image[..., self.missing] -= cho_solve((self._missing_factor, True), solved.T, check_finite=False).T
        return image

    def _iterated(self, values: Array, start: Array | None, tolerance: float) -> Array:
        complete = self.covariance.repeated(len(values)) if values.ndim > 2 else self.covariance
        first = None if start is None else complete.load(start.copy())
        seen = complete.load(np.broadcast_to(self.observed.astype(float), values.shape))
        weights, tolerance = seen / complete.noise_variance, max(tolerance, complete.finest)
        system = weighted_system(complete, weights)
        found = conjugate_gradients(system, weights * complete.load(values), first, tolerance)
        return complete.unload(found * seen).reshape(values.shape)

    def times(self, values: Array, inverse: bool = False) -> Array:
        """``C`` or ``C^-1`` times values, shape (..., n_signals, n_nodes)."""
        complete = self.covariance
        if values.ndim > 2 and not complete.is_written_out and len(values) > self._n_at_once:
            parts = np.split(values, range(self._n_at_once, len(values), self._n_at_once))
            return np.concatenate([self.times(some, inverse) for some in parts])
        complete = complete.repeated(len(values)) if values.ndim > 2 else complete
        block = complete.load(values)
        return complete.unload(complete.solve(block) if inverse else complete.times(block)).reshape(values.shape)

    @property
    def _n_at_once(self) -> int:
        """Number of sets of signals per solve."""
        most = MOST_SOLVED if self.covariance.is_written_out else MOST_FILTERED
        return max(1, most // self.observed.size)

    def completed(self, values: Array, start: Array | None = None, tolerance: float = 0.0) -> tuple[Array, Array]:
        """Conditional mean of the complete values, and ``Q y``."""
        if self.method == "missing":
            image = self._completed_densely(np.where(self.observed, values, 0.0))
            solution = np.where(self.observed, self.covariance.solve(image), 0.0)
        else:
            solution = self.solve(values, start, tolerance)
            image = self.times(solution)
        return np.where(self.observed, values, image), solution

    @cached_property
    def _completed(self) -> tuple[Array, Array]:
        return self.completed(self.values, self.start, self.tolerance)

    @property
    def mean(self) -> Array:
        """Conditional mean of the complete values: ``C Q y``."""
        return self._completed[0]

    @property
    def solution(self) -> Array:
        """``Q y``."""
        return self._completed[1]

    @property
    def signal_mean(self) -> Array:
        """Conditional mean of the signals without noise, at every entry: ``A Q y``."""
        return self.mean - self.covariance.noise_variance * self.solution

    @cached_property
    def n_draws(self) -> int | None:
        """Number of draws for the covariance of the complete values; None if it is exact."""
        most = DRAWS if self.most_deviations is None else self.most_deviations
        exact = self.most_exact // max(self.observed.size, 1) if self.most_deviations is None else ALWAYS_EXACT
        if self.covariance.is_written_out and self._n_missing <= exact:
            return None
        return max(FEWEST_DRAWS, min(most, MOST_DRAWN // self.observed.size))

    @cached_property
    def deviations(self) -> Array:
        """Deviations of complete values, whose outer products add up to their covariance or estimate it."""
        most = self.n_draws
        if most is None:
            return self.exact_deviations
        random_state, tolerance = np.random.default_rng(DRAW_SEED), max(DRAW_TOLERANCE, self.tolerance)
        n_draws = most if self._is_given_signals else min(most, FIRST_DRAWS)
        drawn = self.draws(n_draws, random_state, tolerance=tolerance)[0]
        if n_draws < most:
            # the part of a variance given all other entries is known; draws estimate the rest
            left = np.mean(np.square(self._moved_by_others(drawn)), axis=0)
            share = np.quantile((left / (self._alone + left))[self.missing], WIDEST) if self._n_missing else 0.0
            n_draws = min(most, max(FIRST_DRAWS, int(np.ceil(2 * (share / VARIANCE_TOLERANCE) ** 2))))
            further = self.draws(n_draws - len(drawn), random_state, tolerance=tolerance)[0]
            drawn = np.concatenate([drawn, further])
        return drawn / np.sqrt(n_draws)

    @cached_property
    def _alone(self) -> Array:
        """Variances of missing values given all other entries."""
        return 1 / self.inverse_diagonal

    def _moved_by_others(self, deviations: Array, solved: Array | None = None) -> Array:
        """Change of each entry's mean by deviations of all other entries."""
        solved = self.times(deviations, inverse=True) if solved is None else solved
        return (self.inverse_diagonal * deviations - solved) * self._alone

    @cached_property
    def _is_given_signals(self) -> bool:
        """Whether variances are exact given the other signals, rather than given all other entries."""
        squares = np.square(np.count_nonzero(self.missing, axis=1))
        return self.covariance.is_written_out and np.sum(squares) * self.observed.shape[1] <= self.most_given

    @property
    def exact_deviations(self) -> Array:
        """Exact deviations of complete values, one per missing value."""
        deviations = np.zeros((self._n_missing, *self.observed.shape))
        deviations[:, self.missing] = _inverse(self._missing_factor)
        return deviations

    def draws(
        self, n_draws: int, random_state: np.random.Generator, start: Array | None = None, tolerance: float = 0.0
    ) -> tuple[Array, Array | None]:
        """Draws of complete values less their mean by Matheron's rule, one solve each, and solutions if iterative."""
        if self.method == "missing":
            draws = np.zeros((n_draws, *self.observed.shape))
            white = random_state.standard_normal((n_draws, self._n_missing)).T
            draws[:, self.missing] = solve_triangular(self._missing_factor, white, 1, lower=True, check_finite=False).T
            return draws, None
        draws, solutions = np.empty((2, n_draws, *self.observed.shape))
        for first in range(0, n_draws, self._n_at_once):
            some = slice(first, min(first + self._n_at_once, n_draws))
            prior = np.stack([self.drawn(random_state) for _ in range(some.start, some.stop)])
            completed, solutions[some] = self.completed(prior, None if start is None else start[some], tolerance)
            np.subtract(prior, completed, out=draws[some])
        return draws, solutions

    def drawn(self, random_state: np.random.Generator) -> Array:
        """Complete values with noise, drawn from the covariance."""
        complete = self.covariance
        return complete.unload(complete.draw_signal(random_state) + covariances.white_noise(complete, random_state))

    @cached_property
    def solved_deviations(self) -> Array:
        """``C^-1`` times each of the deviations."""
        return self.times(self.deviations, inverse=True)

    @cached_property
    def variance(self) -> Array:
        """Variances of the complete values, shape (n_signals, n_nodes); zero at observed ones."""
        if self.n_draws is None:
            return np.sum(np.square(self.deviations), axis=0)
        # the law of total variance: variances given other entries are exact, and draws estimate those of the means
        if not self._is_given_signals:  # signals are long: given all other entries
            total = self._alone.copy()
            for deviation, solved in zip(self.deviations, self.solved_deviations, strict=True):
                total += np.square(self._moved_by_others(deviation, solved))
            return np.where(self.observed, 0.0, total)
        variance = np.zeros(self.observed.shape)
        for signal, own in enumerate(self.missing):
            if own.any():  # given the other signals, the precision of one is part of C^-1
                entries = with_entries(self.covariance).between(signal, signal, inverse=True, nodes=own)
                deviations, solved = self.deviations[:, signal, own].T, self.solved_deviations[:, signal, own].T
                moved = entries @ deviations - solved
                root = inverse_root(entries)
                given = np.sum(np.square(root), axis=0)
                variance[signal, own] = given + np.sum(np.square((moved.T @ root.T) @ root), axis=0)
        return variance

    @cached_property
    def inverse_diagonal(self) -> Array:
        """Diagonal of ``C^-1``."""
        return self.covariance.inverse_diagonal()

    @cached_property
    def precisions(self) -> Array:
        """Diagonal of ``Q`` at observed entries: inverse variance of an entry given all others."""
        known = self.inverse_diagonal
        return np.maximum(known - np.sum(np.square(self.solved_deviations), axis=0), LEAST_PRECISION * known)

    @cached_property
    def signal_variance(self) -> Array:
        """Variance of the signals without noise, at every entry."""
        noise = self.covariance.noise_variance
        rest = self.inverse_diagonal - np.sum(np.square(self.solved_deviations), axis=0)
        of_observed = noise - noise**2 * np.maximum(rest, 0.0)
        return np.maximum(np.where(self.observed, of_observed, self.variance - noise), 0.0)

    def variance_errors(self, variances: Array) -> Array:
        """Root mean square standard errors, by draws, of variances (n, n_nodes) of some of the signals."""
        if self.n_draws is None:
            return np.zeros(len(variances))
        return np.sqrt(2 / self.n_draws * np.mean(np.square(variances), axis=1))

    def among(self, signals: Indices, nodes: Indices) -> Array:
        """Covariance of the complete values at some entries."""
        moved = self.deviations[:, signals, nodes]
        return moved.T @ moved

    def value_draws(self, n_draws: int, random_state: np.random.Generator) -> Array:
        """Draws of complete values less their mean, shape (n_draws, n_signals, n_nodes)."""
        return self.draws(n_draws, random_state)[0]

    def signal_between(self, signal: int, other: int) -> Array:
        """Covariance of the signals without noise, between the nodes of two: equation (22)."""
        noise = self.covariance.noise_variance
        given = -(noise**2) * with_entries(self.covariance).between(signal, other, inverse=True)
        if signal == other:
            given[np.diag_indices_from(given)] += noise
        moved = [self.deviations[:, row] - noise * self.solved_deviations[:, row] for row in (signal, other)]
        return given + moved[0].T @ moved[1]

    def drawn_signal(self, random_state: np.random.Generator) -> Array:
        """Signals without noise less their mean, drawn by one solve (Matheron's rule)."""
        complete = self.covariance
        drawn = complete.unload(complete.draw_signal(random_state))
        white = complete.unload(covariances.white_noise(complete, random_state))
        solution = complete.load(self.solve(drawn + white))
        return drawn - complete.unload(complete.times(solution) - solution * complete.noise_variance)

    def groups(self, signals: Iterable[int], less: Array | None = None) -> Iterator[tuple[Array, Array]]:
        """Eigenvalues and eigenvectors of ``Q`` among the observed entries of each of some signals: equation (23).

        Outer products of `less`, shape (n, n_signals, n_nodes), are subtracted from ``Q``.
        """
        numbers, n_at_once = list(signals), 1 + MOST_COLUMNS // self.observed.shape[1]
        for some in (numbers[first : first + n_at_once] for first in range(0, len(numbers), n_at_once)):
            for signal, entries in zip(some, self._blocks(some), strict=True):
                moved = np.empty((0, len(entries))) if less is None else less[:, signal, self.observed[signal]]
                yield _positive_modes(entries - moved.T @ moved)

    def _blocks(self, signals: list[int]) -> list[Array]:
        """``Q`` among the observed entries of each of some signals."""
        known, own = with_entries(self.covariance), self.observed[signals]
        if self._side == "observed":
            ends = np.cumsum(np.count_nonzero(self.observed, axis=1))[signals]
            starts = ends - np.count_nonzero(own, axis=1)
            columns = [self._observed_root[start:, start:end] for start, end in zip(starts, ends, strict=True)]
            return [one.T @ one for one in columns]  # zero above
        across = np.hstack([known.across(self.missing, *pair) for pair in zip(signals, own, strict=True)])
        halves = solve_triangular(self._missing_factor, across, lower=True, overwrite_b=True, check_finite=False)
        parts = zip(signals, own, np.split(halves, np.cumsum(own.sum(axis=1))[:-1], axis=1), strict=True)
        return [known.between(one, one, inverse=True, nodes=at) - half.T @ half for one, at, half in parts]

    def node_group(self, node: int) -> tuple[Array, Array]:
        """Eigenvalues and eigenvectors of ``Q`` among the observed entries of a node, over the signals."""
        own, modes = self.observed[:, node], with_entries(self.covariance).at_nodes[node]
        if self._n_missing == 0:
            return modes.values, modes.vectors
        moved = self.solved_deviations[:, own, node]
        entries = ((modes.vectors * modes.values) @ modes.vectors.T)[np.ix_(own, own)] - moved.T @ moved
        return _positive_modes(entries)

    def lengths(
        self, signals: Iterable[int], solution: Array | None = None, less: Array | None = None
    ) -> tuple[Array, Array, Array]:
        """``e^T C^-1 e``, ``log |C|`` and the number of the observed values of signals, each given all others.

        If outer products of `less` are subtracted from ``Q``, `solution` must be the new ``Q y``.
        """
        signals, found = list(signals), self._found_lengths if solution is None else {}
        solution, new = self.solution if solution is None else solution, [one for one in signals if one not in found]
        for signal, (values, axes) in zip(new, self.groups(new, less), strict=True):
            turned = axes.T @ solution[signal, self.observed[signal]]
            found[signal] = (np.sum(turned**2 / values), -np.sum(np.log(values)), values.size)
        lengths, logs, counts = np.array([found[one] for one in signals]).reshape(-1, 3).T
        return lengths, logs, counts

    @cached_property
    def _found_lengths(self) -> dict[int, tuple[float, float, int]]:
        """Cached answers of `lengths` per signal."""
        return {}

    def log_density(self, random_state: np.random.Generator | None = None) -> tuple[float, float]:
        """Log density of the observed values, in nats with the 2 pi term, and its standard error: equation (20).

        It is exact by a dense matrix; else the determinant is by stochastic Lanczos quadrature.
        """
        random_state = np.random.default_rng(PROBE_SEED) if random_state is None else random_state
        if self.method != "iterative":
            solution = self.solution
        elif self.is_written_out:
            solution = self._densely(np.where(self.observed, self.values, 0.0))
        else:  # a form at its minimum: errors enter squared
            solution = self.solve(self.values, self.start, FORM_TOLERANCE if self._is_short else ROUGH_FORM_TOLERANCE)
        quadratic = float(np.sum(np.where(self.observed, self.values * solution, 0.0)))
        if not self.is_written_out:
            logs, error = self._lanczos(random_state)
        elif self._side == "observed":
            logs, error = -2 * float(np.sum(np.log(np.diag(self._observed_root)))), 0.0
        else:  # a missing value removes its row
            logs = covariances.log_determinant(self.covariance)
            logs, error = logs + 2 * float(np.sum(np.log(np.diag(self._missing_factor)))), 0.0
        constant = np.count_nonzero(self.observed) * np.log(2 * np.pi)
        return float(-0.5 * (quadratic + logs + constant)), 0.5 * error

    def _lanczos(self, random_state: np.random.Generator) -> tuple[float, float]:
        """``log |C_oo|`` by random probes, and its standard error.

        Unless most values are missing, the missing ones are probed if products with the inverse are as cheap: ``log
        |C_oo| = log |C| + log |(C^-1)_hh|`` takes fewer steps. A known trace is a control variate, by a linear
        regression of the logarithm on it.
        """
        complete, share = self.covariance, float(np.mean(self.missing))
        by_missing = complete.is_written_out and share <= MOST_MISSING_PROBED
        probed, known = (self.missing, covariances.log_determinant(complete)) if by_missing else (self.observed, 0.0)
        chosen = complete.load(probed.astype(float))

        def times(block: Any) -> Any:
            return chosen * (complete.solve(block) if by_missing else complete.times(block))

        def inner(left: Any, right: Any) -> float:
            return float(np.squeeze(complete.inner(left, right)))

        n_probes = max(FEWEST_PROBES, min(PROBES, MOST_PROBED // self.observed.size)) if self._is_short else 2
        most_steps = MOST_LANCZOS_STEPS if self._is_short else FEW_LANCZOS_STEPS
        moments = []
        for _ in range(n_probes):
            signs = random_state.integers(0, 2, self.observed.shape) * 2.0 - 1.0
            steps = lanczos(times, inner, complete.load(np.where(probed, signs, 0.0)))
            nodes, weights = gauss_quadrature(steps, max_steps=most_steps)
            logs = np.log(nodes)
            moments.append([weights @ one for one in (logs, nodes, nodes * logs, np.square(nodes))])
        mean_logs, means = np.array(moments).T[:2]
        if complete.is_written_out:
            diagonal = self.inverse_diagonal if by_missing else covariances.signal_variances(complete)[0]
            log, one, product, square = np.mean(moments, axis=0)
            slope = (product - log * one) / max(square - one**2, LEAST_PRECISION * square)
            mean_logs = mean_logs - slope * (means - np.mean(diagonal[probed]))
        n_values = np.count_nonzero(probed)
        error = float(n_values * np.std(mean_logs, ddof=1) / np.sqrt(n_probes))
        return known + float(n_values * np.mean(mean_logs)), error


def _positive_modes(entries: Array) -> tuple[Array, Array]:
    """Eigenvalues, bounded below relative to the largest, and eigenvectors."""
    values, axes = np.linalg.eigh(entries)
    return np.maximum(values, LEAST_PRECISION * np.max(values, initial=0.0)), axes
