"""The covariance of what was observed of signals: solves, completions, draws and densities under a mask."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy.linalg import cho_solve, cholesky, eigh_tridiagonal, solve_triangular

from spectralgp._checks import Array
from spectralgp._progress import mention
from spectralgp.masked.covariances import CompleteCovariance, EigenCovariance, Mask

Method = Literal["missing", "observed", "iterative"]

MOST_DENSE, DENSE_SOLVES = 2_500, 1_500  # entries whose covariance is written out for its determinant, and to solve
MOST_ITERATIONS = 1_000
FORM, ROUGH_FORM = 1e-5, 1e-3  # tolerances of a solve for a quadratic form, and for one whose determinant is rough
PATIENCE = 30  # iterations without progress, at which a solve is as near as rounding lets it come
SINGLE = 1e-5  # tolerance from which on single precision is enough
PROBES, FEWEST_PROBES = 32, 6
MOST_PROBED = 2**20  # values of all probes together, unless they are the fewest; beyond it there are two
MOST_STEPS, FEW_STEPS = 200, 20  # of Lanczos, and on more values than that
STEPS_BETWEEN = 10
SETTLED = 1e-5  # relative change of a quadrature at which Lanczos stops


@dataclass(frozen=True, eq=False)
class MaskedCovariance:
    """Covariance of the values of signals that were observed, and what it says of the others.

    Few missing values or few observed ones are handled by a dense matrix of their number: equation (19). Else systems
    are solved by conjugate gradients, preconditioned by the inverse for complete signals.

    Parameters
    ----------
    complete : CompleteCovariance
        Of complete signals.
    observed : ndarray of bool, shape (n_signals, n_nodes)
        What was observed.
    """

    complete: CompleteCovariance
    observed: Mask

    @cached_property
    def method(self) -> Method:
        """By which matrix, if any, systems are solved."""
        return self._side if self._n_dense <= DENSE_SOLVES else "iterative"

    @cached_property
    def _side(self) -> Method:
        """What there is less of."""
        return "missing" if 2 * np.count_nonzero(self.observed) >= self.observed.size else "observed"

    @cached_property
    def _n_dense(self) -> float:
        """Size of the matrix of it; none is written out where eigenvectors are not known."""
        n_observed = int(np.count_nonzero(self.observed))
        is_known = isinstance(self.complete, EigenCovariance)
        return min(n_observed, self.observed.size - n_observed) if is_known else np.inf

    @property
    def _is_short(self) -> bool:
        """Whether there are few enough values to take a determinant well."""
        return self.observed.size <= MOST_PROBED

    @cached_property
    def _missing(self) -> Mask:
        return ~self.observed

    @property
    def _eigen(self) -> EigenCovariance:
        assert isinstance(self.complete, EigenCovariance)
        return self.complete

    @cached_property
    def _factor(self) -> Array:
        """Lower Cholesky factor of ``(A^-1)_mm`` or of ``A_oo``."""
        if self._side == "missing":
            return self._precision_factor
        return cholesky(self._eigen.among(self.observed), lower=True, overwrite_a=True, check_finite=False)

    @cached_property
    def _precision_factor(self) -> Array:
        """Lower Cholesky factor of ``(A^-1)_mm``, the precision of what is missing given what was observed."""
        entries = self._eigen.among(self._missing, inverse=True)
        return cholesky(entries, lower=True, overwrite_a=True, check_finite=False)

    # ---------------------------------------------------------------------------------------------- completions

    def filled(self, values: Array, start: Array | None = None, tolerance: float = 0.0) -> tuple[Array, Array]:
        """Conditional means of all values given the observed ones, which stay as they are.

        Parameters
        ----------
        values : ndarray of shape (..., n_signals, n_nodes)
            What was observed; anything finite elsewhere, which is not looked at.
        start : ndarray of the same shape, optional
            A guess of the solution, where it is iterative.
        tolerance : float, optional
            Of such a solution, in the preconditioner's norm; as fine as precision allows if not given.

        Returns
        -------
        completed, solution : ndarray of the shape of values
            ``y~`` of equation (19), and ``A_oo^-1 y_o`` with zeros elsewhere.
        """
        values = np.where(self.observed, values, 0.0)
        if self.method != "iterative":
            return self._densely(values)
        if isinstance(self.complete, EigenCovariance) or values.ndim == 2:
            complete = self._precise_enough(tolerance)
            first = None if start is None else complete.load(start.copy())
            found = self._conjugate_gradients(complete, complete.load(values.copy()), first, tolerance)
            completed = complete.unload(complete.times(found))
            return np.where(self.observed, values, completed), complete.unload(found)
        parts = [
            self.filled(one, None if start is None else start[number], tolerance) for number, one in enumerate(values)
        ]
        return np.stack([one for one, _ in parts]), np.stack([one for _, one in parts])

    def _densely(self, values: Array) -> tuple[Array, Array]:
        """The same by a factor of what there is less of."""
        if self._side == "missing":
            completed = values.copy()
            pulled = self._eigen.solved(values)[..., self._missing]
            completed[..., self._missing] = -cho_solve((self._factor, True), pulled.T).T
            return completed, self._eigen.solved(completed)
        solution = np.zeros(values.shape)
        solution[..., self.observed] = cho_solve((self._factor, True), values[..., self.observed].T).T
        return np.where(self.observed, values, self._eigen.times(solution)), solution

    def _weights_in(self, complete: CompleteCovariance) -> Any:
        """A block of ones where something was observed, and zeros elsewhere."""
        return complete.load(self.observed.astype(float))

    def _precise_enough(self, tolerance: float) -> CompleteCovariance:
        """The covariance in single precision, where a tolerance needs no more."""
        complete = self.complete
        return complete.single if isinstance(complete, EigenCovariance) and tolerance >= SINGLE else complete

    def _conjugate_gradients(self, complete: CompleteCovariance, right: Any, start: Any, tolerance: float) -> Any:
        """``A_oo^-1`` times what was observed, in a block that is zero elsewhere; both blocks given are used up."""
        weights, tolerance = self._weights_in(complete), max(tolerance, complete.finest)
        size = complete.inner(right, weights * complete.solved(right))
        solution, residual = (right * 0.0 if start is None else start), right
        if start is not None:
            solution *= weights
            image = complete.times(solution)
            image *= weights
            residual -= image
        direction, before, best, last_progress = None, 1.0, np.inf, 0
        for iteration in range(MOST_ITERATIONS):
            conditioned = complete.solved(residual)
            conditioned *= weights
            now = complete.inner(residual, conditioned)
            best, last_progress = (now, iteration) if now < best else (best, last_progress)
            if now <= tolerance**2 * size or iteration - last_progress > PATIENCE:
                break
            if direction is None:
                direction = conditioned
            else:  # in place, here and below: blocks may be a large part of memory
                direction *= now / before
                direction += conditioned
            del conditioned
            image = complete.times(direction)
            image *= weights
            step = now / complete.inner(direction, image)
            solution += direction * step
            image *= step
            residual -= image
            before = now
            mention(f"solving, iteration {iteration + 1}")
        return solution

    def deviations(self, n_draws: int | None, random_state: np.random.Generator, tolerance: float = 0.0) -> Array:
        """What the completed values may deviate by: the sum of outer products is their covariance, or estimates it.

        Parameters
        ----------
        n_draws : int or None
            How many draws estimate it; None for as many deviations as values are missing, without error.
        random_state : numpy.random.Generator
            For the draws; only where there are any.
        tolerance : float, optional
            Of solves, where they are iterative.

        Returns
        -------
        ndarray of shape (n_deviations, n_signals, n_nodes)
        """
        if n_draws is None:
            factor = self._precision_factor
            deviations = np.zeros((factor.shape[0], *self.observed.shape))
            deviations[:, self._missing] = solve_triangular(factor, np.eye(factor.shape[0]), lower=True)
            return deviations
        if isinstance(self.complete, EigenCovariance):
            return self.draws(n_draws, random_state, tolerance=tolerance)[0] / np.sqrt(n_draws)
        deviations = np.empty((n_draws, *self.observed.shape))
        for number in range(n_draws):  # one at a time, for the memory of what each takes
            deviations[number] = self.draws(1, random_state, tolerance=tolerance)[0][0] / np.sqrt(n_draws)
        return deviations

    def draws(
        self,
        n_draws: int,
        random_state: np.random.Generator,
        start: Array | None = None,
        tolerance: float = 0.0,
    ) -> tuple[Array, Array | None]:
        """Draws of what completed values deviate by from their mean, one solve each (Matheron's rule).

        Returns the draws, shape (n_draws, n_signals, n_nodes), and the solutions they took, where iterative.
        """
        if self.method == "missing":
            white = random_state.standard_normal((n_draws, self._factor.shape[0]))
            draws = np.zeros((n_draws, *self.observed.shape))
            draws[:, self._missing] = solve_triangular(self._factor, white.T, lower=True, trans="T").T
            return draws, None
        prior = np.stack([self.complete.unload(self.complete.draw(random_state)) for _ in range(n_draws)])
        completed, solutions = self.filled(prior, start, tolerance)
        return prior - completed, solutions

    # ------------------------------------------------------------------------------------------------ densities

    def log_density(
        self, values: Array, random_state: np.random.Generator, start: Array | None = None
    ) -> tuple[float, float]:
        """Log density of what was observed, a total in nats with the 2 pi term: equation (19).

        It is exact where a dense matrix serves; else the determinant is by stochastic Lanczos quadrature.

        Returns
        -------
        value, error : float
            The log density, and its standard error.
        """
        if self._n_dense <= MOST_DENSE:
            completed, solution = self._densely(np.where(self.observed, values, 0.0))
        else:  # a form at its minimum: errors count squared
            completed, solution = self.filled(values, start, FORM if self._is_short else ROUGH_FORM)
        quadratic = float(np.sum(np.where(self.observed, completed * solution, 0.0)))
        logs, error = self._log_determinant(random_state)
        constant = np.count_nonzero(self.observed) * np.log(2 * np.pi)
        return float(-0.5 * (quadratic + logs + constant)), 0.5 * error

    def _log_determinant(self, random_state: np.random.Generator) -> tuple[float, float]:
        if self._n_dense > MOST_DENSE:
            return self._lanczos(random_state)
        own = 2 * float(np.sum(np.log(np.diag(self._factor))))
        return (own + self._eigen.log_determinant() if self._side == "missing" else own), 0.0

    def _lanczos(self, random_state: np.random.Generator) -> tuple[float, float]:
        """``log |A_oo|`` from random probes; what ``log A`` says of the same probes is taken out, and added exactly."""
        known, log_complete = self.complete.log_diagonal(self.observed)
        n_observed, weights = int(np.count_nonzero(self.observed)), self._weights_in(self.complete)
        estimates = []
        n_probes = max(FEWEST_PROBES, min(PROBES, MOST_PROBED // self.observed.size)) if self._is_short else 2
        for _ in range(n_probes):
            signs = random_state.integers(0, 2, self.observed.shape) * 2.0 - 1.0
            probe = self.complete.load(np.where(self.observed, signs, 0.0))
            control = 0.0 if log_complete is None else self.complete.inner(probe, log_complete(probe))
            moment = self._log_moment(probe, weights, MOST_STEPS if self._is_short else FEW_STEPS)
            estimates.append(n_observed * moment - control)
        error = float(np.std(estimates, ddof=1) / np.sqrt(len(estimates)))
        return known + float(np.mean(estimates)), error

    def _log_moment(self, probe: Any, weights: Any, most_steps: int) -> float:
        """``z^T log(A_oo) z / z^T z`` by Gauss quadrature after some steps of Lanczos."""
        diagonal: list[float] = []
        below: list[float] = []
        length = float(np.sqrt(self.complete.inner(probe, probe)))
        current, previous, last = probe * (1 / length), None, np.inf
        for step in range(most_steps):
            following = weights * self.complete.times(current)
            if previous is not None:
                following = following - previous * below[-1]
            diagonal.append(self.complete.inner(following, current))
            following = following - current * diagonal[-1]
            norm = float(np.sqrt(max(self.complete.inner(following, following), 0.0)))
            if step % STEPS_BETWEEN == STEPS_BETWEEN - 1 or norm < 1e-12:
                values, vectors = eigh_tridiagonal(diagonal, below)
                moment = float(np.square(vectors[0]) @ np.log(np.maximum(values, 1e-300)))
                if abs(moment - last) <= SETTLED * max(abs(moment), 1.0) or norm < 1e-12:
                    return moment
                last = moment
            below.append(norm)
            previous, current = current, following * (1 / norm)
        return last
