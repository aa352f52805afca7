"""Variances of latent signals on a large graph: by effective curvatures, of which probes know the diagonals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import eigh_tridiagonal
from scipy.optimize import brentq

from spectralgp._basics.checks import Array
from spectralgp._basics.progress import mention
from spectralgp.fields.covariances import Series
from spectralgp.operators import lanczos
from spectralgp.spectra import Quadrature

LONGEST_TIME = 1e3  # of the heat kernel, over the largest eigenvalue: beyond it all nodes count alike
MOST_PROBED = 2**19  # values of all probes of a determinant together, unless they are the fewest
PROBES, FEWEST_PROBES, PROBE_SEED = 8, 2, 0
MOST_LANCZOS_STEPS, STEPS_BETWEEN, LANCZOS_TOLERANCE = 100, 5, 1e-5  # the last relative
MOST_ITERATIONS, RECENT_ITERATIONS, RECENT_SHARE = 1_000, 3, 0.2  # of conjugate gradients; the last that stand for more
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
            estimates.append(log_moment(steps, curvatures.size, STEPS_BETWEEN) - control)
        error = float(np.std(estimates, ddof=1) / np.sqrt(n_probes))
        return known + float(np.mean(estimates)), error

    def _at(self, eigenvalues: Array) -> Array:
        return self._shrunk(eigenvalues, 0.0)

    @cached_property
    def prior_at_modes(self) -> Array:
        """Variances at modes before anything was observed, shape (n_modes of the inputs, n_frequencies)."""
        return self._at(self._basis.eigenvalues)


def log_moment(steps: Iterator[tuple[float, float]], size: int, between: int) -> float:
    """``z^T log(M) z`` of signs ``z`` by steps of Lanczos with a matrix whose eigenvalues are one or more.

    It is looked at after every few steps, `between` them, and they end where it no longer changes.
    """
    diagonal, below, last = list[float](), list[float](), np.inf
    for entry, length in steps:
        diagonal.append(entry)
        is_last = length < 1e-10 or len(diagonal) == MOST_LANCZOS_STEPS
        if len(diagonal) % between == 0 or is_last:
            values, vectors = eigh_tridiagonal(diagonal, below)
            moment = size * float(np.square(vectors[0]) @ np.log(np.maximum(values, 1.0)))
            is_last = is_last or abs(moment - last) <= LANCZOS_TOLERANCE * max(abs(moment), 1.0)
            last = moment
        if is_last:
            break
        below.append(length)
        mention(f"log determinant, step {len(diagonal)}")
    return last


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


def solve_by_roots(
    covariance: Series, curvatures: Array, rights: Array, starts: Array | None, tolerance: float
) -> Array:
    """Solve ``(I + W A) u = b`` for sets of values (n_sets, n_signals, n_nodes), all of them at once.

    By conjugate gradients on ``I + W^1/2 A W^1/2``, whose eigenvalues are one or more, preconditioned by its mean
    diagonal: so the spread of the curvatures does not slow them. They stop where the last steps gain no more than the
    square of `tolerance` of all, in each set.
    """
    n_sets, basis, operator = len(rights), covariance.basis, covariance.basis.operator
    several, shape = covariance.repeated(n_sets), covariance.shape
    weights = np.where(curvatures > LEAST_WEIGHT * np.mean(curvatures), curvatures, 0.0)
    mean_variance = np.square(covariance.rows.modes.vectors) @ basis.mean(Probed(covariance).prior_at_modes.T)

    def loaded(values: Array) -> Any:
        return several.load(np.broadcast_to(values, (n_sets, *shape)).reshape(several.shape))

    def sums(left: Any, right: Any) -> Array:
        found = operator.column_products(left, right).reshape(n_sets, shape[0])
        return np.maximum(np.repeat(found.sum(axis=1), shape[0]), 1e-300)

    def through(block: Any) -> Any:
        return block + roots * several.times(roots * block)

    seen, scale = weights > 0, np.sqrt(np.where(weights > 0, weights, 1.0))
    roots, precision = loaded(np.sqrt(weights)), loaded(1 / (1 + weights * mean_variance[:, None]))
    apart = np.where(seen, 0.0, rights)  # entries that have a slope and no curvature
    rest = loaded(np.where(seen, rights / scale, 0.0))
    if apart.any():
        rest = rest - roots * several.times(loaded(apart))
    solution, reached = rest * 0.0, np.zeros(several.shape[0])
    if starts is not None:
        solution = loaded(np.where(seen, starts / scale, 0.0))
        image = through(solution)
        reached, rest = sums(solution, image), rest - image
    direction, before, gains = rest * 0.0, np.ones(several.shape[0]), list[Array]()
    while len(gains) < MOST_ITERATIONS:
        found = precision * rest
        now = sums(rest, found)
        direction = found + operator.scale(direction, now / before)
        image = through(direction)
        length = now / sums(direction, image)
        solution = solution + operator.scale(direction, length)
        rest = rest - operator.scale(image, length)
        before = now
        gains.append(length * now)
        n_recent = max(RECENT_ITERATIONS, int(RECENT_SHARE * len(gains)))
        if np.all(sum(gains[-n_recent:]) <= tolerance**2 * (sum(gains) + reached)):
            break
        mention(f"solving, iteration {len(gains)}")
    return np.asarray(several.unload(roots * solution).reshape(rights.shape) + apart)


def _seeded() -> np.random.Generator:
    return np.random.default_rng(PROBE_SEED)
