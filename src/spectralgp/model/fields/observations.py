"""Posterior of signals given partial observations: a weight per entry, zero for missing values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy.linalg import cholesky, eigh
from scipy.linalg.lapack import dtrtri

from spectralgp._basics.arrays import without_caches
from spectralgp._basics.checks import Array, Indices, Mask
from spectralgp.graphs.operators import lanczos
from spectralgp.model.fields.covariances import (
    SLACK,
    Covariance,
    log_determinant,
    signal_variances,
    white_noise,
    with_entries,
)
from spectralgp.model.fields.krylov import LinearSystem, conjugate_gradients, gauss_quadrature
from spectralgp.model.spectra import Modes

Method = Literal["missing", "observed", "iterative"]

MOST_DENSE = 2_500  # entries in a covariance that is written out
MOST_SOLVED_DENSELY = 1_500  # entries in a covariance to solve with, if a tolerance is allowed
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
DRAW_TOLERANCE = 1e-2  # of solves for draws, less than their Monte Carlo error
MOST_GIVEN = 2**32  # operations for variances of the missing values of each signal given the others
DRAW_SEED, PROBE_SEED = 1, 0
LEAST_PRECISION = 1e-9  # relative lower bound of differences of precisions, for rounding and draws


@dataclass(frozen=True, eq=False)
class WeightedSystem(LinearSystem):
    """``I + W A`` in the inner product of ``A = C - s``, preconditioned by ``(I + A / s)^-1``.

    The preconditioner solves for complete signals, or nearly so.
    """

    complete: Covariance  # C
    weights: Any  # W, a block

    @cached_property
    def smallest(self) -> float:  # type: ignore[override]
        """``s / |C|``: weights are not negative."""
        return self.complete.noise_variance * (1 - SLACK) / self.complete.largest

    def image(self, block: Any) -> Any:
        return self.complete.times(block) - block * self.complete.noise_variance

    def times(self, block: Any, image: Any) -> Any:
        return block + self.weights * image

    def precondition(self, block: Any) -> tuple[Any, Any]:
        return self.complete.precondition(block)

    def inner(self, left: Any, right: Any) -> Any:
        return self.complete.inner(left, right)


@dataclass(frozen=True, eq=False)
class SignedInverse:
    """``M^-1 = H^T diag(signs) H`` of a symmetric matrix."""

    root: Array  # H; lower triangular where M is positive definite
    signs: Array
    log_determinant: float  # log of the absolute value of |M|

    @classmethod
    def of(cls, matrix: Array, is_definite: bool) -> SignedInverse:
        """Factorise by Cholesky's method, or by eigenvalues of both signs; overwrites the matrix."""
        if is_definite:
            factor = cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)
            root = np.asarray(dtrtri(factor, lower=1)[0]) if len(factor) else factor  # LAPACK refuses empty matrices
            return cls(root, np.ones(len(factor)), 2 * float(np.sum(np.log(np.diag(factor)))))
        values, vectors = eigh(matrix, overwrite_a=True, check_finite=False)
        sizes = np.abs(values)
        return cls((vectors / np.sqrt(sizes)).T, np.sign(values), float(np.sum(np.log(sizes))))

    def times(self, values: Array) -> Array:
        """``M^-1 y`` of values along the last axis."""
        return ((values @ self.root.T) * self.signs) @ self.root

    def form(self, columns: Array) -> Array:
        """``x^T M^-1 x``."""
        half = self.root @ columns
        return (half.T * self.signs) @ half


@dataclass(frozen=True, eq=False)
class PartialObservations:
    """Posterior of all entries of signals given values with weights, by ``Q = (C + s (1/w - 1))^-1`` among these.

    Signals have the covariance ``C``, of which ``s`` is white noise. An entry of weight one is observed with that
    noise, of weight ``w`` with the variance ``s / w``, and one of weight zero is missing. A dense matrix of all entries
    of other weight than one, or of all observed ones, is used if it is small: equation (20). Otherwise systems are
    solved by conjugate gradients, of which a step is one solve for complete signals.

    Complete values are signals with that noise; at weight one they are the observed ones. A weight above one says more
    of a signal than any value with noise; there their covariance is an algebraic one, ``P = C - C Q C``.
    """

    covariance: Covariance  # of complete signals
    values: Array  # about their mean, shape (n_signals, n_nodes); finite but ignored at weight zero
    weights: Array  # not negative
    most_deviations: int | None = None  # draws for a covariance; by default bounded by memory
    start: Array | None = None  # a guess of `solution`
    tolerance: float = 0.0  # of solves for the mean and, at least, for deviations
    always_iterates: bool = False  # if single entries of the covariance cost as much as a solve
    most_dense: int = MOST_DENSE
    most_exact: int = MOST_EXACT_VALUES
    most_given: int = MOST_GIVEN

    __getstate__ = without_caches

    @cached_property
    def observed(self) -> Mask:
        """Mask of observed entries."""
        return self.weights > 0

    @cached_property
    def missing(self) -> Mask:
        """Mask of missing entries."""
        return ~self.observed

    @cached_property
    def is_mask(self) -> bool:
        """Whether every weight is one or zero."""
        return bool(np.all(self.weights[self.observed] == 1.0))

    @cached_property
    def _others(self) -> Mask:
        """Entries of another weight than one."""
        return self.weights != 1.0

    @cached_property
    def _n_others(self) -> int:
        return int(np.count_nonzero(self._others))

    @cached_property
    def _side(self) -> Method:
        """Smaller set: entries of other weight than one, or observed entries."""
        return "missing" if 2 * self._n_others <= self.weights.size else "observed"

    @cached_property
    def _n_dense(self) -> int:
        return self._n_others if self._side == "missing" else int(np.count_nonzero(self.observed))

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
    def _excess(self) -> Array:
        """``s (1/w - 1)`` at observed entries: variance in excess of the noise."""
        weights = np.where(self.observed, self.weights, 1.0)
        return self.covariance.noise_variance * (1 / weights - 1)

    @cached_property
    def _own_precisions(self) -> Array:
        """``w / (s (1 - w))``: precision of a complete value given its observed one; zero at weight one."""
        weights = np.where(self._others, self.weights, 0.0)
        return weights / (self.covariance.noise_variance * (1 - weights))

    @cached_property
    def _of_observed(self) -> SignedInverse:
        """``Q`` among observed entries."""
        entries = with_entries(self.covariance).submatrix(self.observed)
        entries[np.diag_indices_from(entries)] += self._excess[self.observed]
        return SignedInverse.of(entries, is_definite=True)

    @cached_property
    def _of_others(self) -> SignedInverse:
        """Posterior covariance of entries of other weight than one.

        Its inverse is their part of ``C^-1`` plus ``w / (s (1 - w))``, which is negative for weights above one.
        """
        entries = with_entries(self.covariance).submatrix(self._others, inverse=True)
        entries[np.diag_indices_from(entries)] += self._own_precisions[self._others]
        return SignedInverse.of(entries, self.is_mask)

    def solve(self, values: Array, start: Array | None = None, tolerance: float = 0.0) -> Array:
        """``Q y`` of values about their mean, shape (..., n_signals, n_nodes); zero at missing entries.

        An iterative solution begins at `start`; its relative error in energy is at most the square of `tolerance`.
        """
        values = np.where(self.observed, values, 0.0)
        return self._iterated(values, start, tolerance) if self.method == "iterative" else self._densely(values)

    def _densely(self, values: Array) -> Array:
        """``Q y`` by the smaller matrix."""
        if self._side == "missing":
            return np.where(self.observed, self.covariance.solve(self._around_others(values)), 0.0)
        found = np.zeros(values.shape)
        found[..., self.observed] = self._of_observed.times(values[..., self.observed])
        return found

    def _around_others(self, values: Array) -> Array:
        """``C Q y``, which differs from ``y`` at entries of other weight than one: equation (20)."""
        image = values.copy()
        image[..., self._others] -= self._of_others.times(self.covariance.solve(values)[..., self._others])
        return image

    def _iterated(self, values: Array, start: Array | None, tolerance: float) -> Array:
        complete = self.covariance
        if values.ndim > 2 and not complete.is_written_out:  # one set at a time, to save memory
            starts = [None] * len(values) if start is None else start
            return np.stack([self._iterated(one, first, tolerance) for one, first in zip(values, starts, strict=True)])
        first = None if start is None else complete.load(start.copy())
        weights, tolerance = complete.load(self.weights / complete.noise_variance), max(tolerance, complete.finest)
        found = conjugate_gradients(
            WeightedSystem(complete, weights), weights * complete.load(values), first, tolerance
        )
        return complete.unload(found * complete.load(self.observed.astype(float)))

    def times(self, values: Array) -> Array:
        """``C`` times values, shape (..., n_signals, n_nodes)."""
        return self._through(self.covariance.times, values)

    def _through(self, verb: Callable[[Any], Any], values: Array) -> Array:
        """Apply a verb of the covariance to values, one set of signals at a time if they cannot be stacked."""
        complete = self.covariance
        if values.ndim > 2 and not complete.is_written_out:
            return np.stack([self._through(verb, one) for one in values])
        return complete.unload(verb(complete.load(values)))

    def completed(self, values: Array, start: Array | None = None, tolerance: float = 0.0) -> tuple[Array, Array]:
        """Conditional mean of the complete values, and ``Q y``."""
        if self.method == "missing":
            image = self._around_others(np.where(self.observed, values, 0.0))
            solution = np.where(self.observed, self.covariance.solve(image), 0.0)
        else:
            solution = self.solve(values, start, tolerance)
            image = self.times(solution)
        return np.where(self._others, image, values), solution

    @cached_property
    def _completed(self) -> tuple[Array, Array]:
        return self.completed(self.values, self.start, self.tolerance)

    @property
    def mean(self) -> Array:
        """Conditional mean of the complete values: ``C Q y``, which is the observed value at weight one."""
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
        exact = self.most_exact // max(self.weights.size, 1) if self.most_deviations is None else ALWAYS_EXACT
        if self.covariance.is_written_out and self._n_others <= exact:
            return None
        return max(FEWEST_DRAWS, min(most, MOST_DRAWN // self.weights.size))

    @cached_property
    def deviations(self) -> Array:
        """Deviations of complete values: outer products, with `_signs`, add up to ``P`` or estimate it."""
        most = self.n_draws
        if most is None:
            return self.exact_deviations
        random_state, tolerance = np.random.default_rng(DRAW_SEED), max(DRAW_TOLERANCE, self.tolerance)
        n_draws = most if self._is_given_signals else min(most, FIRST_DRAWS)
        drawn = self.draws(n_draws, random_state, tolerance=tolerance)[0]
        if n_draws < most:
            # the part of a variance given all other entries is known; draws estimate the rest
            left = np.mean(np.square(self._moved_by_others(drawn)), axis=0)
            share = np.quantile((left / (self._alone + left))[self._others], WIDEST) if self._n_others else 0.0
            n_draws = min(most, max(FIRST_DRAWS, int(np.ceil(2 * (share / VARIANCE_TOLERANCE) ** 2))))
            further = self.draws(n_draws - len(drawn), random_state, tolerance=tolerance)[0]
            drawn = np.concatenate([drawn, further])
        if self._has_surplus:
            drawn = np.concatenate([drawn, self.surplus_draws(n_draws, random_state, tolerance)])
        return drawn / np.sqrt(n_draws)

    @cached_property
    def _has_surplus(self) -> bool:
        """Whether some weight is above one."""
        return bool(np.any(self.weights > 1))

    @cached_property
    def _alone(self) -> Array:
        """Variances of complete values given those of all other entries, where the weight is not one."""
        return 1 / (self.inverse_diagonal + self._own_precisions)

    def _moved_by_others(self, deviations: Array, solved: Array | None = None) -> Array:
        """Change of each entry's mean by deviations of all other entries."""
        solved = self._through(self.covariance.solve, deviations) if solved is None else solved
        return (self.inverse_diagonal * deviations - solved) * self._alone

    @cached_property
    def _is_given_signals(self) -> bool:
        """Whether variances are exact given the other signals, rather than given all other entries."""
        squares = np.square(np.count_nonzero(self._others, axis=1))
        return self.covariance.is_written_out and np.sum(squares) * self.weights.shape[1] <= self.most_given

    @property
    def exact_deviations(self) -> Array:
        """Exact deviations of complete values, one per entry of other weight than one."""
        deviations = np.zeros((self._n_others, *self.weights.shape))
        deviations[:, self._others] = self._of_others.root
        return deviations

    @cached_property
    def _signs(self) -> Array:
        """Signs with which outer products of `solved_deviations` are taken from ``C^-1`` to give ``Q``."""
        if self.is_mask or self.n_draws is not None:
            signs = [1.0, -1.0] if self._has_surplus else [1.0]
            return np.repeat(signs, len(self.deviations) // len(signs))
        return self._of_others.signs

    def _sum_of_squares(self, deviations: Array) -> Array:
        return np.tensordot(self._signs, np.square(deviations), axes=1)

    def draws(
        self, n_draws: int, random_state: np.random.Generator, start: Array | None = None, tolerance: float = 0.0
    ) -> tuple[Array, Array | None]:
        """Draws of complete values less their mean, one solve each (Matheron's rule).

        Returns the draws, shape (n_draws, n_signals, n_nodes), and the solutions if iterative. Weights above one count
        as one: `surplus_draws` have the difference of the covariances.
        """
        if self.method == "missing" and self.is_mask:
            draws = np.zeros((n_draws, *self.weights.shape))
            draws[:, self.missing] = random_state.standard_normal((n_draws, self._n_others)) @ self._of_others.root
            return draws, None
        draws, solutions = np.empty((2, n_draws, *self.weights.shape))
        n_at_once, spread = max(1, MOST_SOLVED // self.weights.size), np.sqrt(np.maximum(self._excess, 0.0))
        for first in range(0, n_draws, n_at_once):
            some = slice(first, min(first + n_at_once, n_draws))
            prior = np.stack([self.drawn(random_state) for _ in range(some.start, some.stop)])
            values = prior if self.is_mask else prior + spread * random_state.standard_normal(prior.shape)
            completed, solutions[some] = self.completed(values, None if start is None else start[some], tolerance)
            np.subtract(prior, completed, out=draws[some])
        return draws, solutions

    def surplus_draws(self, n_draws: int, random_state: np.random.Generator, tolerance: float = 0.0) -> Array:
        """Draws with the covariance that weights above one subtract from that of `draws`, of the same shape."""
        noise = np.sqrt(np.maximum(-self._excess, 0.0)) * random_state.standard_normal((n_draws, *self.weights.shape))
        return self.times(self.solve(noise, None, tolerance))

    def drawn(self, random_state: np.random.Generator) -> Array:
        """Complete values with noise, drawn from the covariance."""
        complete = self.covariance
        return complete.unload(complete.draw_signal(random_state) + white_noise(complete, random_state))

    @cached_property
    def solved_deviations(self) -> Array:
        """``C^-1`` times each of the deviations."""
        return self._through(self.covariance.solve, self.deviations)

    @cached_property
    def variance(self) -> Array:
        """Variances of the complete values, shape (n_signals, n_nodes); zero where the weight is at least one."""
        if self.n_draws is None:
            return np.where(self.weights < 1, self._sum_of_squares(self.deviations), 0.0)
        # the law of total variance: variances given other entries are exact, and draws estimate those of the means
        if not self._is_given_signals:  # signals are long: given all other entries
            total = self._alone.copy()
            for sign, deviation, solved in zip(self._signs, self.deviations, self.solved_deviations, strict=True):
                total += sign * np.square(self._moved_by_others(deviation, solved))
            return np.where(self.weights < 1, total, 0.0)
        variance = np.zeros(self.weights.shape)
        for signal, own in enumerate(self._others):
            if own.any():  # given the other signals, the precision of one is part of C^-1
                entries = with_entries(self.covariance).between(signal, signal, inverse=True, nodes=own)
                deviations, solved = self.deviations[:, signal, own].T, self.solved_deviations[:, signal, own].T
                moved = entries @ deviations - solved
                entries[np.diag_indices_from(entries)] += self._own_precisions[signal, own]
                precision = SignedInverse.of(entries, bool(np.all(self.weights[signal, own] < 1)))
                given = np.square(precision.root).T @ precision.signs
                variance[signal, own] = given + np.square(precision.times(moved.T)).T @ self._signs
        return np.where(self.weights < 1, variance, 0.0)

    @cached_property
    def inverse_diagonal(self) -> Array:
        """Diagonal of ``C^-1``."""
        return self.covariance.inverse_diagonal()

    @cached_property
    def precisions(self) -> Array:
        """Diagonal of ``Q`` at observed entries: inverse variance of an entry given all others."""
        known = self.inverse_diagonal
        return np.maximum(known - self._sum_of_squares(self.solved_deviations), LEAST_PRECISION * known)

    @cached_property
    def signal_variance(self) -> Array:
        """Variance of the signals without noise, at every entry."""
        noise = self.covariance.noise_variance
        if self._has_surplus and self.n_draws is not None:  # differences of draws would be inaccurate
            draws = self.signal_draws(self.n_draws, np.random.default_rng(DRAW_SEED))
            return np.mean(np.square(draws), axis=0)
        if not self.is_mask:
            moved = self.deviations - noise * self.solved_deviations
            return np.maximum(noise - noise**2 * self.inverse_diagonal + self._sum_of_squares(moved), 0.0)
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
        return (moved.T * self._signs) @ moved

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
        return given + (moved[0].T * self._signs) @ moved[1]

    def signal_draws(self, n_draws: int, random_state: np.random.Generator) -> Array:
        """Draws of signals without noise less their mean, one solve each (Matheron's rule)."""
        complete, noise, draws = self.covariance, self.covariance.noise_variance, []
        for _ in range(n_draws):
            drawn = complete.unload(complete.draw_signal(random_state))
            white = complete.unload(white_noise(complete, random_state))
            solution = complete.load(self.solve(drawn + white / np.sqrt(np.where(self.observed, self.weights, 1.0))))
            draws.append(drawn - complete.unload(complete.times(solution) - solution * noise))
        return np.stack(draws)

    def group(self, signal: int, less: Array | None = None) -> tuple[Array, Array]:
        """Eigenvalues and eigenvectors of ``Q`` among the observed entries of a signal: equation (23).

        Outer products of `less`, shape (n, n_signals, n_nodes), are subtracted from ``Q``.
        """
        own = self.observed[signal]
        if self._side == "observed":
            start = int(np.count_nonzero(self.observed[:signal]))
            columns = self._of_observed.root[start:, start : start + int(np.count_nonzero(own))]  # zero above
            entries = columns.T @ columns
        else:
            known = with_entries(self.covariance).between(signal, signal, inverse=True, nodes=own)
            entries = known - self._of_others.form(with_entries(self.covariance).across(self._others, signal, own))
        if less is not None:
            entries = entries - less[:, signal, own].T @ less[:, signal, own]
        return _positive_modes(entries)

    @cached_property
    def _at_nodes(self) -> list[Modes]:
        return with_entries(self.covariance).at_nodes()

    def node_group(self, node: int) -> tuple[Array, Array]:
        """Eigenvalues and eigenvectors of ``Q`` among the observed entries of a node, over the signals."""
        own, modes = self.observed[:, node], self._at_nodes[node]
        if self._n_others == 0:
            return modes.values, modes.vectors
        moved = self.solved_deviations[:, own, node]
        entries = ((modes.vectors * modes.values) @ modes.vectors.T)[np.ix_(own, own)] - (moved.T * self._signs) @ moved
        return _positive_modes(entries)

    def lengths(
        self, signals: Iterable[int], solution: Array | None = None, less: Array | None = None
    ) -> tuple[Array, Array, Array]:
        """``e^T C^-1 e``, ``log |C|`` and the number of the observed values of signals, each given all others.

        If outer products of `less` are subtracted from ``Q``, `solution` must be the new ``Q y``.
        """
        found, solution = [], self.solution if solution is None else solution
        for signal in signals:
            values, axes = self.group(signal, less)
            turned = axes.T @ solution[signal, self.observed[signal]]
            found.append((np.sum(turned**2 / values), -np.sum(np.log(values)), values.size))
        lengths, logs, counts = np.array(found).reshape(-1, 3).T
        return lengths, logs, counts

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
        logs, error = self._log_determinant(random_state)
        constant = np.count_nonzero(self.observed) * np.log(2 * np.pi)
        return float(-0.5 * (quadratic + logs + constant)), 0.5 * error

    def _log_determinant(self, random_state: np.random.Generator) -> tuple[float, float]:
        if not self.is_written_out:
            return self._lanczos(random_state)
        if self._side == "observed":
            return self._of_observed.log_determinant, 0.0
        # a missing value removes its row; another weight adds s (1 - w) / w to the diagonal
        added = float(np.sum(np.log(np.abs(self._excess[self._others & self.observed]))))
        return log_determinant(self.covariance) + self._of_others.log_determinant + added, 0.0

    def _lanczos(self, random_state: np.random.Generator) -> tuple[float, float]:
        """``log |C_oo|`` by random probes, and its standard error.

        Unless most values are missing, the missing ones are probed if products with the inverse are as cheap: ``log
        |C_oo| = log |C| + log |(C^-1)_hh|`` takes fewer steps. A known trace is a control variate, by a linear
        regression of the logarithm on it.
        """
        complete, share = self.covariance, float(np.mean(self.missing))
        by_missing = self.is_mask and complete.is_written_out and share <= MOST_MISSING_PROBED
        probed, known = (self.missing, log_determinant(complete)) if by_missing else (self.observed, 0.0)
        chosen, excess = complete.load(probed.astype(float)), None
        if not self.is_mask:
            excess = complete.load(np.where(self.observed, self._excess, 0.0))

        def times(block: Any) -> Any:
            through = chosen * (complete.solve(block) if by_missing else complete.times(block))
            return through if excess is None else through + excess * block

        def inner(left: Any, right: Any) -> float:
            return float(np.squeeze(complete.inner(left, right)))

        n_probes = max(FEWEST_PROBES, min(PROBES, MOST_PROBED // self.weights.size)) if self._is_short else 2
        most_steps = MOST_LANCZOS_STEPS if self._is_short else FEW_LANCZOS_STEPS
        moments = []
        for _ in range(n_probes):
            signs = random_state.integers(0, 2, self.weights.shape) * 2.0 - 1.0
            steps = lanczos(times, inner, complete.load(np.where(probed, signs, 0.0)))
            nodes, weights = gauss_quadrature(steps, max_steps=most_steps)
            logs = np.log(nodes)
            moments.append([weights @ one for one in (logs, nodes, nodes * logs, np.square(nodes))])
        mean_logs, means = np.array(moments).T[:2]
        if complete.is_written_out:
            diagonal = self.inverse_diagonal if by_missing else signal_variances(complete)[0] + self._excess
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
