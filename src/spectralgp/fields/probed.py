"""Variances of latent signals on a large graph: by effective curvatures, of which probes know the diagonals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import brentq

from spectralgp._basics.checks import Array
from spectralgp.fields.covariances import Series
from spectralgp.fields.krylov import System, conjugate_gradients, gauss_quadrature
from spectralgp.operators import lanczos
from spectralgp.spectra import Quadrature

LONGEST_TIME = 1e3  # of the heat kernel, over the largest eigenvalue: beyond it all nodes count alike
MOST_PROBED = 2**19  # values of all probes of a determinant together, unless they are the fewest
PROBES, FEWEST_PROBES, PROBE_SEED = 8, 2, 0
STEPS_BETWEEN = 5  # of Lanczos
LEAST_WEIGHT = 1e-10  # of the mean curvature: less counts as none
CURVATURES = 10  # at which variances are tabulated
LOWEST_CURVATURE = 1e-3  # of the largest, in that table
LEAST_CAVITY = 1e-9  # precision that is left of an entry without its own site, of the prior's
LEAST_OTHERS = 1e-6  # of the squared covariances with an entry, that others must have to count


@dataclass(frozen=True, eq=False)
class Probed:
    """What is asked of the covariance of latent signals on a quadrature, where single modes are not known."""

    covariance: Series  # of the latent signals

    @property
    def _basis(self) -> Quadrature:
        return self.covariance.basis

    def _shrunk(self, eigenvalues: Array, curvature: float) -> Array:
        """Variances at modes if the curvature were the same everywhere, shape (n_signals, n_eigenvalues)."""
        rows, nodes = self.covariance.rows, self.covariance.nodes
        variances = rows.variances(*nodes.powers(eigenvalues))
        return np.asarray(variances / (1 + curvature * variances))

    def at_curvature(self, curvature: float) -> tuple[Array, Array]:
        """``phi(c)``: variances at entries if the curvature were the same everywhere, and their standard errors."""
        squares = np.square(self.covariance.rows.modes.vectors)
        return self._basis.local_diagonals(lambda eigenvalues: squares @ self._shrunk(eigenvalues, curvature))

    @property
    def prior_variance(self) -> Array:
        """Variances at entries before anything was observed."""
        return self.at_curvature(0.0)[0]

    def effective(self, curvatures: Array) -> Array:
        """Variances at entries by effective curvatures."""
        return self.variances(curvatures)[0]

    def variances(self, curvatures: Array) -> tuple[Array, float]:
        """Variances at entries by effective curvatures, equation (39), and their root mean square standard error."""
        logs, spread = np.zeros(curvatures.shape), np.zeros(curvatures.shape)
        for curvature, share in tabulated(self.others(curvatures)):
            found, errors = self.at_curvature(curvature)
            logs += share * np.log(np.maximum(1 / found - curvature, LEAST_CAVITY))
            spread += share * errors[:, None] / np.square(found)
        variance = 1 / (np.exp(logs) + curvatures)
        return variance, float(np.sqrt(np.mean(np.square(np.square(variance) * spread))))

    def others(self, curvatures: Array) -> Array:
        """What curvature others have around each entry, by squares of covariances with it: equation (39).

        Between nodes the heat kernel stands for those squares, of the time at which a node has the same share in itself
        on average as it has among the squares at the mean curvature.
        """
        basis, modes = self._basis, self.covariance.rows.modes
        left = self._shrunk(basis.eigenvalues, float(np.mean(curvatures)))
        sides = np.square((modes.vectors * basis.mean(left.T)) @ modes.vectors.T)
        of_signals = sides / np.diag(sides)[:, None]
        common = left.mean(axis=0)
        time = self._time(float(basis.mean(common)) ** 2 / float(basis.mean(np.square(common))))

        def heat(eigenvalues: Array) -> Array:
            return np.exp(-time * eigenvalues)[None]

        own = basis.local_diagonals(heat)[0]
        series = np.repeat(basis.series(heat), 2 * len(curvatures), axis=0)
        both = np.concatenate([curvatures, np.ones(curvatures.shape)])
        smooth = self.covariance.unload(basis.each_filtered(basis.load(both), series)) / own
        around, total = (of_signals @ one for one in np.split(smooth, 2))
        return np.where(
            total > 1 + LEAST_OTHERS, np.maximum(around - curvatures, 0.0) / np.maximum(total - 1, LEAST_OTHERS), 0.0
        )

    def _time(self, share: float) -> float:
        """The time at which the heat kernel leaves a share of what was at a node there, on average."""
        basis = self._basis
        longest = LONGEST_TIME / basis.end

        def excess(time: float) -> float:
            return float(basis.mean(np.exp(-time * basis.eigenvalues))) - share

        if excess(0.0) <= 0:  # nothing is shared
            return 0.0
        return longest if excess(longest) >= 0 else float(brentq(excess, 0.0, longest))

    def log_determinant(self, curvatures: Array) -> tuple[float, float]:
        """``log |I + A W|`` and its standard error by random probes; what a common curvature says is taken out."""
        covariance, basis, common = self.covariance, self._basis, float(np.mean(curvatures))
        roots = covariance.load(np.sqrt(curvatures))
        known = float(np.sum(np.log1p(common * self.prior_at_modes) @ basis.multiplicities))
        series, random_state = basis.series(lambda eigenvalues: np.log1p(common * self._at(eigenvalues))), _seeded()
        n_probes, estimates = max(FEWEST_PROBES, min(PROBES, MOST_PROBED // curvatures.size)), []
        for _ in range(n_probes):
            probe = basis.operator.random_signs(curvatures.shape[0], random_state)
            coordinates = covariance.coordinates(probe)
            control = basis.inner(coordinates, basis.each_filtered(coordinates, series))
            steps = lanczos(lambda one: one + roots * covariance.times(roots * one), basis.inner, probe)
            nodes, weights = gauss_quadrature(steps, STEPS_BETWEEN)
            estimates.append(curvatures.size * float(weights @ np.log(nodes)) - control)
        error = float(np.std(estimates, ddof=1) / np.sqrt(n_probes))
        return known + float(np.mean(estimates)), error

    def _at(self, eigenvalues: Array) -> Array:
        return self._shrunk(eigenvalues, 0.0)

    @cached_property
    def prior_at_modes(self) -> Array:
        """Variances at modes before anything was observed, shape (n_modes of the inputs, n_frequencies)."""
        return self._at(self._basis.eigenvalues)


def tabulated(curvatures: Array) -> Iterator[tuple[float, Array]]:
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


@dataclass(frozen=True, eq=False)
class _ByRoots(System):
    """``I + W^1/2 A W^1/2``, whose eigenvalues are one or more, preconditioned by its mean diagonal.

    So the spread of the curvatures does not slow conjugate gradients.
    """

    several: Series  # the covariance of all sets, one after the other
    n_sets: int
    roots: Any  # W^1/2, a block
    precision: Any  # of the preconditioner, a block
    smallest: float

    def image(self, block: Any) -> Any:
        return block

    def times(self, block: Any, image: Any) -> Any:
        return block + self.roots * self.several.times(self.roots * block)

    def precondition(self, block: Any) -> tuple[Any, Any]:
        found = self.precision * block
        return found, found

    def inner(self, left: Any, right: Any) -> Array:
        found = self.several.basis.operator.column_products(left, right).reshape(self.n_sets, -1)
        return np.repeat(found.sum(axis=1), found.shape[1])

    def scaled(self, block: Any, factors: Any) -> Any:
        return self.several.basis.operator.scale(block, factors)


def solve_by_roots(
    covariance: Series, curvatures: Array, rights: Array, starts: Array | None, tolerance: float
) -> Array:
    """Solve ``(I + W A) u = b`` for sets of values (n_sets, n_signals, n_nodes), all of them at once."""
    n_sets, several, shape = len(rights), covariance.repeated(len(rights)), covariance.shape
    prior = covariance.basis.mean(Probed(covariance).prior_at_modes.T)
    weights = np.where(curvatures > LEAST_WEIGHT * np.mean(curvatures), curvatures, 0.0)
    mean_variance = np.square(covariance.rows.modes.vectors) @ prior

    def loaded(values: Array) -> Any:
        return several.load(np.broadcast_to(values, (n_sets, *shape)).reshape(several.shape))

    seen, scale = weights > 0, np.sqrt(np.where(weights > 0, weights, 1.0))
    precision = 1 / (1 + weights * mean_variance[:, None])
    roots = loaded(np.sqrt(weights))
    system = _ByRoots(several, n_sets, roots, loaded(precision), float(np.min(precision)))
    apart = np.where(seen, 0.0, rights)  # entries that have a slope and no curvature
    rest = loaded(np.where(seen, rights / scale, 0.0))
    if apart.any():
        rest = rest - roots * several.times(loaded(apart))
    start = None if starts is None else loaded(np.where(seen, starts / scale, 0.0))
    solution = conjugate_gradients(system, rest, start, tolerance)
    return np.asarray(several.unload(roots * solution).reshape(rights.shape) + apart)


def _seeded() -> np.random.Generator:
    return np.random.default_rng(PROBE_SEED)
