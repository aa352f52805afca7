"""Prior covariance of latent signals: products, solves, and posterior variances by effective curvatures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from scipy.optimize import brentq

from spectralgp._basics.checks import Array
from spectralgp.graphs.operators import column_products, combine_columns, lanczos, random_signs
from spectralgp.model.fields.covariances import Covariance, QuadratureCovariance
from spectralgp.model.fields.factors import GraphNodeCovariance, InputCovariance
from spectralgp.model.fields.krylov import STEPS_BETWEEN, LinearSystem, conjugate_gradients, gauss_quadrature
from spectralgp.model.fields.observations import weighted_system
from spectralgp.model.spectra import Quadrature, mean_over_nodes

PROBES, FEWEST_PROBES, PROBE_SEED = 8, 2, 0
MOST_PROBED = 2**19  # values of all probes of a determinant on a large graph, unless these are the fewest
STEPS_BETWEEN_PASSES = 5  # of Lanczos between checks on a large graph, on which a step costs more than a check
LONGEST_TIME = 1e3  # of the heat kernel, over the largest eigenvalue: beyond it all nodes are weighted equally
LEAST_WEIGHT = 1e-10  # of the mean curvature; smaller ones count as zero
MOST_SITE_NOISE = 1e6  # of the variance of the latent signals; less informative sites are lost in rounding
MOST_SOLVED_DENSELY = 200  # entries
CURVATURES = 10  # at which variances are tabulated
LOWEST_CURVATURE = 1e-3  # of the largest, in that table
LEAST_CAVITY = 1e-9  # precision of an entry without its own site, of the prior's
LEAST_OTHERS = 1e-6  # share of other entries in squared covariances with an entry, if they count


class LatentCovariance(ABC):
    """``A`` of latent signals; entries have the curvatures ``W`` of their sites, shape (n_signals, n_nodes)."""

    covariance: Any
    steps_between: int = STEPS_BETWEEN

    @abstractmethod
    def times(self, values: Array) -> Array:
        """``A`` times values (..., n_signals, n_nodes)."""

    @abstractmethod
    def solve(self, curvatures: Array, rights: Array, starts: Array | None, tolerance: float) -> Array:
        """Solve ``(I + W A) u = b`` for sets of values (n_sets, n_signals, n_nodes), all of them at once."""

    @abstractmethod
    def drawn(self, n_draws: int, random_state: np.random.Generator) -> Array:
        """Draws from ``N(0, A)``, shape (n_draws, n_signals, n_nodes)."""

    @abstractmethod
    def at_curvature(self, curvature: float) -> tuple[Array, Array | float]:
        """``phi(c)``: variances at entries with the same curvature everywhere, and their standard errors."""

    @abstractmethod
    def around(self, curvatures: Array) -> tuple[Array, Array]:
        """Sums of curvatures, and of ones, weighted by squared correlations with each entry."""

    @abstractmethod
    def _probes(self, random_state: np.random.Generator) -> Iterator[Any]:
        """Blocks of random signs."""

    @abstractmethod
    def _logs(self, curvature: float) -> tuple[float, Callable[[Any], float]]:
        """``log |I + c A|``, and ``z^T log(I + c A) z`` as a function of a block."""

    def variances(self, curvatures: Array) -> tuple[Array, float]:
        """Variances at entries by effective curvatures, equation (39), and their root mean square standard error.

        Curvatures of other entries are averaged by squared covariances, that of an entry itself is exact; variances are
        exact if the curvature is the same everywhere.
        """
        around, total = self.around(curvatures)
        known = np.maximum(around - curvatures, 0.0) / np.maximum(total - 1, LEAST_OTHERS)
        logs, spread = np.zeros(curvatures.shape), np.zeros(curvatures.shape)
        for curvature, share in tabulated(np.where(total > 1 + LEAST_OTHERS, known, 0.0)):
            found, errors = self.at_curvature(curvature)
            logs += share * np.log(np.maximum(1 / found - curvature, LEAST_CAVITY))
            spread += share * errors / np.square(found)
        variance = 1 / (np.exp(logs) + curvatures)
        return variance, float(np.sqrt(np.mean(np.square(np.square(variance) * spread))))

    def log_determinant(self, curvatures: Array, seed: int = PROBE_SEED) -> tuple[float, float]:
        """``log |I + A W|`` and its standard error by random probes; a common curvature gives a control variate."""
        covariance, roots = self.covariance, self.covariance.load(np.sqrt(curvatures))
        known, control = self._logs(float(np.mean(curvatures)))

        def times(block: Any) -> Any:
            return block + roots * covariance.times(roots * block)

        def inner(left: Any, right: Any) -> float:
            return float(np.squeeze(covariance.inner(left, right)))

        estimates = []
        for probe in self._probes(np.random.default_rng(seed)):
            nodes, weights = gauss_quadrature(lanczos(times, inner, probe), self.steps_between)
            estimates.append(curvatures.size * float(weights @ np.log(nodes)) - control(probe))
        return known + float(np.mean(estimates)), float(np.std(estimates, ddof=1) / np.sqrt(len(estimates)))


def latent_of(covariance: Covariance) -> LatentCovariance:
    """Prior covariance of latent signals by its modes if these are known, else by probes."""
    if covariance.is_written_out:
        return ModalLatentCovariance(covariance)
    return ProbedLatentCovariance(cast(QuadratureCovariance, covariance))


def with_noise(covariance: Any, noise_variance: float) -> Any:
    """Return the covariance of latent signals with noise; their own white noise is part of the signal."""
    nodes = cast(GraphNodeCovariance, covariance.nodes)
    return replace(covariance, nodes=replace(nodes, white_variance=nodes.noise_variance, noise_variance=noise_variance))


def tabulated(curvatures: Array) -> Iterator[tuple[float, Array]]:
    """Curvatures of a table, and the weight of each in given ones, by interpolation in their logarithm."""
    largest = max(float(np.max(curvatures)), 1e-9)
    lowest = LOWEST_CURVATURE * largest
    table = np.concatenate([[0.0], np.geomspace(lowest, largest * (1 + 1e-9), CURVATURES)])
    places = np.searchsorted(table, curvatures, side="right") - 1
    logs = np.log(table + lowest)
    above = (np.log(curvatures + lowest) - logs[places]) / (logs[places + 1] - logs[places])
    above = np.clip(above, 0.0, 1.0)
    for place, curvature in enumerate(table.tolist()):
        share = np.where(places == place, 1 - above, 0.0) + np.where(places + 1 == place, above, 0.0)
        if share.any():
            yield curvature, share


# ------------------------------------------------------------------------------------------------- modes that are known


@dataclass(frozen=True, eq=False)
class ModalLatentCovariance(LatentCovariance):
    """``A = (U (x) V) diag(D) (U (x) V)^T``."""

    covariance: Any

    @cached_property
    def inputs(self) -> Array:
        """``U``."""
        return np.asarray(cast(InputCovariance, self.covariance.rows).modes.vectors)

    @cached_property
    def nodes(self) -> Array:
        """``V``."""
        return np.asarray(self.covariance.basis.eigenvectors)

    @cached_property
    def at_modes(self) -> Array:
        """``D``, shape (n_signals, n_nodes)."""
        return np.asarray(cast(InputCovariance, self.covariance.rows).variances(*self.covariance.powers))

    @cached_property
    def _squares(self) -> tuple[Array, Array]:
        return np.square(self.inputs), np.square(self.nodes)

    def times(self, values: Array) -> Array:
        return np.asarray(self.covariance.times(values))

    @cached_property
    def _dense(self) -> Array:
        """``A``, written out."""
        return np.asarray(self.covariance.submatrix(np.ones(self.at_modes.shape, dtype=bool)))

    def solve(self, curvatures: Array, rights: Array, starts: Array | None, tolerance: float) -> Array:
        """Solve by a Cholesky factor of few entries, else by conjugate gradients with a common noise of the sites."""
        if curvatures.size <= MOST_SOLVED_DENSELY:
            own = np.flatnonzero(curvatures)
            roots, flat = np.sqrt(curvatures.ravel()[own]), rights.reshape(len(rights), -1)
            scaled = roots[:, None] * self._dense[own]
            matrix = scaled[:, own] * roots
            matrix[np.diag_indices_from(matrix)] += 1.0
            found = flat.copy()
            found[:, own] -= roots * cho_solve(cho_factor(matrix, check_finite=False), scaled @ flat.T).T
            return found.reshape(rights.shape)
        seen, most = curvatures[curvatures > 0], MOST_SITE_NOISE * float(np.mean(self.at_modes))
        noise = min(1 / float(np.mean(seen)), most) if seen.size else most
        system = weighted_system(with_noise(self.covariance, noise), curvatures)
        return np.asarray(conjugate_gradients(system, rights, starts, tolerance))

    def drawn(self, n_draws: int, random_state: np.random.Generator) -> Array:
        noiseless = with_noise(self.covariance, 0.0)
        return np.stack([noiseless.draw_signal(random_state) for _ in range(n_draws)])

    def _shrunk(self, curvature: float) -> Array:
        """Variances at modes with the same curvature everywhere."""
        return np.asarray(self.at_modes / (1 + curvature * self.at_modes))

    def at_curvature(self, curvature: float) -> tuple[Array, float]:
        return np.asarray(self._squares[0] @ self._shrunk(curvature) @ self._squares[1].T), 0.0

    def around(self, curvatures: Array) -> tuple[Array, Array]:
        left = self._shrunk(float(np.mean(curvatures)))
        sides = (self.inputs * left.mean(axis=1)) @ self.inputs.T, (self.nodes * left.mean(axis=0)) @ self.nodes.T
        of_signals, of_nodes = (np.square(side) / np.square(np.diag(side))[:, None] for side in sides)
        total = np.multiply.outer(of_signals.sum(axis=1), of_nodes.sum(axis=1))
        return of_signals @ curvatures @ of_nodes.T, total

    def variances_at_modes(self, curvatures: Array) -> Array:
        """Variances in both eigenbases by effective curvatures: equation (39)."""
        around, total = self.around(curvatures)
        found = np.zeros(curvatures.shape)
        for curvature, share in tabulated(around / total):
            found += self._shrunk(curvature) * (self._squares[0].T @ share @ self._squares[1])
        return found

    def written_out(self, curvatures: Array) -> tuple[Array, Array, float]:
        """Exact variances, deviations whose outer products add up to the covariance, and ``log |I + A W|``."""
        scaled = np.kron(self.inputs, self.nodes) * np.sqrt(self.at_modes).ravel()
        seen = scaled * np.sqrt(curvatures).ravel()[:, None]
        precision = seen.T @ seen
        precision[np.diag_indices_from(precision)] += 1.0
        factor = cholesky(precision, lower=True, overwrite_a=True, check_finite=False)
        root = solve_triangular(factor, scaled.T, lower=True, check_finite=False)
        variance = np.einsum("ab,ab->b", root, root).reshape(curvatures.shape)
        return variance, root.reshape(-1, *curvatures.shape), 2 * float(np.sum(np.log(np.diag(factor))))

    def _probes(self, random_state: np.random.Generator) -> Iterator[Any]:
        for _ in range(PROBES):
            yield random_state.integers(0, 2, self.at_modes.shape) * 2.0 - 1.0

    def _logs(self, curvature: float) -> tuple[float, Callable[[Any], float]]:
        known = np.log1p(curvature * self.at_modes)
        return float(np.sum(known)), lambda one: float(np.sum(known * np.square(self.inputs.T @ one @ self.nodes)))


# --------------------------------------------------------------------------------------------------- on a large graph


@dataclass(frozen=True, eq=False)
class ProbedLatentCovariance(LatentCovariance):
    """``A`` on a quadrature, without single modes: diagonals are by probes of the graph."""

    covariance: QuadratureCovariance

    steps_between = STEPS_BETWEEN_PASSES

    @property
    def _basis(self) -> Quadrature:
        return self.covariance.basis

    def times(self, values: Array) -> Array:
        several = self.covariance.repeated(values[..., 0, 0].size)
        found = several.unload(several.times(several.load(values.reshape(several.shape))))
        return np.asarray(found.reshape(values.shape))

    def solve(self, curvatures: Array, rights: Array, starts: Array | None, tolerance: float) -> Array:
        """Solve with ``I + W^1/2 A W^1/2``, so that the spread of the curvatures does not slow conjugate gradients.

        It is preconditioned by its mean diagonal.
        """
        covariance, shape = self.covariance, self.covariance.shape
        n_sets, several = len(rights), covariance.repeated(len(rights))
        weights = np.where(curvatures > LEAST_WEIGHT * np.mean(curvatures), curvatures, 0.0)
        mean_variance = np.square(covariance.rows.modes.vectors) @ mean_over_nodes(self._basis, self._prior_at_modes.T)

        def loaded(values: Array) -> Any:
            return several.load(np.broadcast_to(values, (n_sets, *shape)).reshape(several.shape))

        def inner(left: Any, right: Any) -> Array:
            found = column_products(left, right).reshape(n_sets, -1)
            return np.repeat(found.sum(axis=1), found.shape[1])

        def precondition(block: Any) -> tuple[Any, Any]:
            found = preconditioner * block
            return found, found

        seen, scale = weights > 0, np.sqrt(np.where(weights > 0, weights, 1.0))
        precision = 1 / (1 + weights * mean_variance[:, None])
        roots, preconditioner = loaded(np.sqrt(weights)), loaded(precision)
        system = LinearSystem(
            times=lambda block, image: block + roots * several.times(roots * block),
            precondition=precondition,
            inner=inner,
            smallest=float(np.min(precision)),  # eigenvalues of the system are one or more
            scaled=combine_columns,
        )
        apart = np.where(seen, 0.0, rights)  # entries with a slope and zero curvature
        rest = loaded(np.where(seen, rights / scale, 0.0))
        if apart.any():
            rest = rest - roots * several.times(loaded(apart))
        start = None if starts is None else loaded(np.where(seen, starts / scale, 0.0))
        solution = conjugate_gradients(system, rest, start, max(tolerance, covariance.finest))
        return np.asarray(several.unload(roots * solution).reshape(rights.shape) + apart)

    def drawn(self, n_draws: int, random_state: np.random.Generator) -> Array:
        several = with_noise(self.covariance, 0.0).repeated(n_draws)
        return several.unload(several.draw_signal(random_state)).reshape(n_draws, *self.covariance.shape)

    def _shrunk(self, eigenvalues: Array, curvature: float) -> Array:
        """Variances at modes with the same curvature everywhere, shape (n_signals, n_eigenvalues)."""
        variances = self.covariance.rows.variances(*self.covariance.nodes.powers(eigenvalues))
        return np.asarray(variances / (1 + curvature * variances))

    @cached_property
    def _prior_at_modes(self) -> Array:
        """Prior variances at modes, shape (n_modes of the inputs, n_frequencies)."""
        return self._shrunk(self._basis.eigenvalues, 0.0)

    def at_curvature(self, curvature: float) -> tuple[Array, Array]:
        squares = np.square(self.covariance.rows.modes.vectors)
        found, errors = self._basis.local_diagonals(lambda eigenvalues: squares @ self._shrunk(eigenvalues, curvature))
        return found, errors[:, None]

    def around(self, curvatures: Array) -> tuple[Array, Array]:
        """Sums with the heat kernel as an approximation of squared covariances between nodes.

        Its time is such that the average weight of a node in its own sum is that by the squares at the mean curvature.
        """
        basis, modes = self._basis, self.covariance.rows.modes
        left = self._shrunk(basis.eigenvalues, float(np.mean(curvatures)))
        sides = np.square((modes.vectors * mean_over_nodes(basis, left.T)) @ modes.vectors.T)
        common = left.mean(axis=0)
        time = self._time(float(mean_over_nodes(basis, common)) ** 2 / float(mean_over_nodes(basis, np.square(common))))

        def heat(eigenvalues: Array) -> Array:
            return np.exp(-time * eigenvalues)[None]

        series = np.repeat(basis.series(heat), 2 * len(curvatures), axis=0)
        both = np.concatenate([curvatures, np.ones(curvatures.shape)])
        smooth = self.covariance.unload(basis.each_filtered(basis.load(both), series)) / basis.local_diagonals(heat)[0]
        around, total = (sides / np.diag(sides)[:, None] @ one for one in np.split(smooth, 2))
        return around, total

    def _time(self, share: float) -> float:
        """Time at which the heat kernel's average diagonal entry has a given value."""
        basis = self._basis
        longest = LONGEST_TIME / basis.end

        def excess(time: float) -> float:
            return float(mean_over_nodes(basis, np.exp(-time * basis.eigenvalues))) - share

        if excess(0.0) <= 0:  # nodes are independent
            return 0.0
        return longest if excess(longest) >= 0 else float(brentq(excess, 0.0, longest))

    def _probes(self, random_state: np.random.Generator) -> Iterator[Any]:
        n_signals, n_nodes = self.covariance.shape
        for _ in range(max(FEWEST_PROBES, min(PROBES, MOST_PROBED // (n_signals * n_nodes)))):
            yield random_signs(self._basis.operator, n_signals, random_state)

    def _logs(self, curvature: float) -> tuple[float, Callable[[Any], float]]:
        covariance, basis = self.covariance, self._basis
        series = basis.series(lambda eigenvalues: np.log1p(curvature * self._shrunk(eigenvalues, 0.0)))

        def form(block: Any) -> float:
            coordinates = covariance.coordinates(block)
            return basis.inner(coordinates, basis.each_filtered(coordinates, series))

        return float(np.sum(np.log1p(curvature * self._prior_at_modes) @ basis.multiplicities)), form
