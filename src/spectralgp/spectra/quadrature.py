"""The spectrum of a large graph: a quadrature from Chebyshev moments, which no eigenvalue is computed for."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.polynomial.chebyshev import chebval
from numpy.typing import NDArray

from spectralgp._basics.arrays import device_of
from spectralgp._basics.checks import Array, as_integer, as_option, as_positive
from spectralgp.graphs import GraphBase, LaplacianKind
from spectralgp.operators import (
    MomentPass,
    Operator,
    chebyshev_coefficients,
    chebyshev_points,
    precision_of,
    quadrature_weights,
)
from spectralgp.signals import Signals
from spectralgp.spectra.base import Errors, Filters, OfEigenvalues, Spectrum, SpectrumSettings
from spectralgp.spectra.data import SpectralData, SpectralMoments
from spectralgp.spectra.density import Density, Found
from spectralgp.spectra.probing import UNIT_VECTORS, closest_quadratics, diagonals_at

FIRST_MOMENTS = 129
FINER = 4  # times as many points as moments, to see the tail of a Chebyshev series
LEAST_POINTS = 1024  # however few the moments: their tail may be longer than a few times their number
# where a series is held against its function, besides the points it goes through: ever closer to both ends
CHECKED = np.concatenate([[0.0], np.geomspace(1e-16, 0.5, 40), 1 - np.geomspace(1e-16, 0.5, 40), [1.0]])
SERIES_TOLERANCE = 1e-10  # of the last coefficients of a filter's series, relative to its largest
MOST_TERMS = 2**14
NOTICEABLE = 1e-7  # of the largest coefficient, where a series that is cut off is worth a warning


@dataclass(frozen=True)
class Chebyshev(SpectrumSettings):
    """Settings of the quadrature spectrum of large graphs.

    Parameters
    ----------
    tolerance : float, default=1e-5
        Largest relative error of the log marginal likelihood by truncation; moments are added until it is met.
    n_moments : int, default=129
        Moments to start with. One product with the Laplacian gives two.
    max_moments : int, default=4097
        Where adding moments ends; a fit that would need more says so.
    n_probes : int or "exact", default=32
        Random probes for the density of the spectrum, or its exact moments, at the cost of as many probes as nodes. The
        standard error of the log likelihood falls with the root of their number; fits state it as ``probe_error``.
    random_state : int, default=0
        Seed of the probes.

    Examples
    --------
    >>> from spectralgp import Chebyshev
    >>> Chebyshev(tolerance=1e-6).n_probes
    32
    """

    tolerance: float = 1e-5
    n_moments: int = FIRST_MOMENTS
    max_moments: int = 4097
    n_probes: int | Literal["exact"] = 32
    random_state: int = 0

    def __post_init__(self) -> None:
        """Check every setting."""
        as_positive(self.tolerance, "tolerance")
        as_integer(self.n_moments, "n_moments", 3)
        as_integer(self.max_moments, "max_moments", self.n_moments)
        if self.n_probes != "exact":
            as_integer(self.n_probes, "n_probes", 4)
        as_integer(self.random_state, "random_state", 0)

    def of(
        self,
        graph: GraphBase,
        laplacian: LaplacianKind = "combinatorial",
        scaled: bool = False,
        like: Any = None,
        device: str | None = None,
        found: Found | None = None,
    ) -> Quadrature:
        as_option(laplacian, "laplacian", ("combinatorial", "normalized"))
        like = np.empty((0, 0)) if like is None else like
        place: Hashable = (type(like).__module__.partition(".")[0], device_of(like), device, str(precision_of(like)))
        key = ("density", laplacian, self.n_probes, self.random_state, place)
        if key not in graph._cache:
            operator = graph.operator(laplacian, like, device)
            graph._cache[key] = Density(operator, self.n_probes, self.random_state, graph.n_edges > 0, found)
        return Quadrature(graph, laplacian, bool(scaled), self, graph._cache[key], self.n_moments | 1)

    def restored(
        self,
        graph: GraphBase,
        laplacian: LaplacianKind,
        scaled: bool,
        like: Any,
        device: str | None,
        found: object,
        n_moments: int | None,
    ) -> Quadrature:
        if not isinstance(found, Found):
            raise ValueError(f"densities must hold one of the {laplacian} Laplacian; got none.")
        most, n_probes = self.max_moments | 1, self._probes_on(graph.n_nodes)
        if n_moments is None or n_moments % 2 == 0 or n_moments > most:
            raise ValueError(f"n_moments must be an odd number up to {most}; got {n_moments}.")
        shape = (1, n_probes) if found.moments is None else found.moments.shape
        if shape[1] != n_probes or shape[0] % 2 == 0:
            raise ValueError(f"densities must hold an odd number of moments of {n_probes} probes; got {shape}.")
        return dataclasses.replace(self.of(graph, laplacian, scaled, like, device, found), n_moments=n_moments)

    def check(self, graph: GraphBase | None, device: str | None) -> None:
        """Every graph and device will do."""

    def memory(self, n_signals: int, n_nodes: int, item_size: int) -> tuple[float, str, str]:
        n_probes = self._probes_on(n_nodes)
        # two blocks of each recurrence, one on the way and the copy for the signals, two for the probes; and the
        # moments, their quadrature and a rotation of it
        blocks = (4 * n_signals + 2 * n_probes) * n_nodes * item_size
        needed = blocks + 3 * 8 * self.n_moments * n_signals**2
        if needed > 2 * blocks:
            of = f"{self.n_moments} moments of {n_signals} by {n_signals} signals, and more if some are added"
            return needed, of, "Learn from fewer signals, or from fewer moments: spectrum=Chebyshev(max_moments=...)."
        of = f"{n_signals} signals and {n_probes} probes on {n_nodes} nodes"
        return needed, of, "Pass Y as float32, fewer signals, or fewer probes: spectrum=Chebyshev(n_probes=...)."

    def _probes_on(self, n_nodes: int) -> int:
        return n_nodes if self.n_probes == "exact" else self.n_probes

    @property
    def reads_into_memory(self) -> bool:
        return False

    @property
    def needs_passes(self) -> bool:
        return True

    @property
    def has_node_covariances(self) -> bool:
        return False


def release_passes(graph: GraphBase) -> None:
    """Forget the states of recurrences on a graph, which more moments would need, and keep the moments."""
    for known in graph._cache.values():
        if isinstance(known, Density):
            known.release()


@dataclass(frozen=True, eq=False)
class _Loaded:
    """Combinations of signals as a block that is read when it is used, and not kept."""

    signals: Signals
    vectors: Array

    def columns(self, operator: Operator) -> Any:
        """The block."""
        return operator.combine(self.signals.columns(operator), self.vectors)


@dataclass(frozen=True, eq=False, repr=False)
class Quadrature(Spectrum):
    """Nodes on the spectrum of a Laplacian that stand for all its eigenvalues. Made by `Chebyshev.of`.

    It answers as an exact spectrum does, with the eigenvalues replaced by a few nodes and eigenvectors by Chebyshev
    filters. It holds no signals.

    Parameters
    ----------
    graph : Graph
        The graph.
    laplacian : {"combinatorial", "normalized"}
        Which Laplacian.
    scaled : bool
        Whether eigenvalues are divided by the largest one.
    settings : Chebyshev
        Tolerance, probes and limits.
    density : Density
        The Laplacian as an operator, and the moments of its spectrum.
    n_moments : int
        How many of them are used; an odd number.
    """

    graph: GraphBase
    laplacian: LaplacianKind
    scaled: bool
    settings: Chebyshev
    density: Density
    n_moments: int

    @property
    def found(self) -> Found:
        return self.density.found

    # --------------------------------------------------------------------------------------------- frequencies

    @property
    def operator(self) -> Operator:
        """The Laplacian."""
        return self.density.operator

    @property
    def largest_eigenvalue(self) -> float:
        return self.density.largest_eigenvalue

    @property
    def end(self) -> float:
        """Right end of the interval of the recurrence, a little beyond the largest eigenvalue."""
        return self.operator.bound / (self.largest_eigenvalue if self.scaled else 1.0)

    def points(self, n_points: int) -> Array:
        """Eigenvalues at `chebyshev_points`, in their order."""
        return self.end * (chebyshev_points(n_points) + 1) / 2

    @cached_property
    def eigenvalues(self) -> Array:
        eigenvalues = self.points(self.n_moments)[::-1]
        eigenvalues.flags.writeable = False
        return eigenvalues

    @cached_property
    def multiplicities(self) -> Array:
        """``m_q`` of equation (12); they add up to the number of nodes."""
        return quadrature_weights(self.density.moments(self.n_moments))[::-1]

    def within(self, points: Array) -> Array:
        """The points: no eigenvalue is known."""
        return points

    def lowest(self, extrema: Callable[[], Array]) -> Array:
        """The extrema: the whole interval is asked for."""
        return extrema()

    @property
    def has_eigenvectors(self) -> bool:
        return False

    def require_eigenvectors(self, message: str) -> Array:
        raise ValueError(message)

    # ------------------------------------------------------------------------------------------------- reading

    def read(self, signals: Signals) -> SpectralMoments:
        """Energies of the signals at the quadrature's nodes, equation (12)."""
        return self._data(signals.moments(self.operator, self.n_moments))

    def read_block(self, block: Any) -> SpectralMoments:
        moments = MomentPass(self.operator, block, gram=True)
        moments.extend(self.n_moments)
        return self._data(moments.moments[: self.n_moments])

    def read_pair(self, signals: Signals, carried: Array) -> SpectralMoments:
        columns = signals.columns(self.operator)
        pair = self.read_block(self.operator.beside(columns, self.load(carried)))
        spread = signals.spread_moments(self.operator, self.n_moments)
        if spread is not None:  # what is carried over is known: it has none
            n_signals = signals.shape[0]
            pair.matrices[:, :n_signals, :n_signals] += self._data(spread).matrices
        return pair

    def _data(self, moments: Array) -> SpectralMoments:
        return SpectralMoments(quadrature_weights(moments)[::-1], self.multiplicities, self.n_nodes)

    def read_filtered(self, signals: Signals, vectors: Array, filters: Filters) -> SpectralMoments:
        return self._mixed(self.read(signals), self._rows(filters, vectors))

    def read_residual(self, signals: Signals, training: Signals, vectors: Array, filters: Filters) -> SpectralMoments:
        together = signals.followed_by(training)
        if together is None:
            columns = signals.columns(self.operator)
            return self.read_block(columns - self.filtered(_Loaded(training, vectors), filters))
        own = np.broadcast_to(np.eye(signals.shape[0]), (self.n_moments, signals.shape[0], signals.shape[0]))
        return self._mixed(self.read(together), np.concatenate([own, -self._rows(filters, vectors)], axis=2))

    def _rows(self, filters: Filters, vectors: Array) -> Array:
        """Filters of combinations as filters of the signals, shape (n_frequencies, n_out, n_signals)."""
        return np.einsum("tik,ni->ktn", filters.matrices(self.eigenvalues), vectors, optimize=True)

    def _mixed(self, data: SpectralMoments, rows: Array) -> SpectralMoments:
        """In each frequency new signals are combinations of the old, so their energies are quadratic forms."""
        return dataclasses.replace(data, matrices=rows @ data.matrices @ np.swapaxes(rows, 1, 2))

    # -------------------------------------------------------------------------------------------------- blocks

    def block(self, signals: Signals, vectors: Array) -> _Loaded:
        return _Loaded(signals, vectors)

    def load(self, signals: Any) -> Any:
        return self.operator.load(signals)

    def unload(self, block: Any) -> Any:
        return self.operator.unload(self._columns(block))

    def zeros(self, n_signals: int) -> Any:
        return self.operator.zeros(n_signals)

    def white(self, n_signals: int, random_state: np.random.Generator) -> Any:
        return self.operator.random_normal(n_signals, random_state)

    def filtered(self, block: Any, filters: Filters) -> Any:
        coefficients = self._series(filters.matrices, max(SERIES_TOLERANCE, filters.tolerance))
        return self.operator.filtered(self._columns(block), np.moveaxis(coefficients, (2, 1), (0, 1)))

    def series(self, functions: OfEigenvalues, slack: float = 0.0) -> Array:
        """Chebyshev series of functions, shape (n_functions, n_terms).

        With `slack` they are cut where what is left out is at most that share of a function's smallest value.
        """
        coefficients = self._series(functions)
        if slack:
            smallest = np.min(np.abs(functions(self.eigenvalues)), axis=1, keepdims=True)
            left_out = np.cumsum(np.abs(coefficients[:, ::-1]), axis=1)[:, ::-1]
            needed = np.any(left_out > slack * smallest, axis=0)
            coefficients = coefficients[:, : int(np.count_nonzero(needed))]
        return coefficients

    def each_filtered(self, block: Any, series: Array) -> Any:
        """Every column through a filter of its own, given by its `series`."""
        return self.operator.filtered(self._columns(block), series.T)

    def inner(self, left: Any, right: Any) -> float:
        """Sum of the products of two blocks' entries, in double precision."""
        return float(np.sum(self.operator.column_products(left, right)))

    def combined(self, block: Any, matrix: Array) -> Any:
        return self.operator.combine(self._columns(block), matrix.T)

    def stack(self, signals: list[Any]) -> Any:
        return self.operator.stack(signals)

    def _columns(self, block: Any) -> Any:
        return block.columns(self.operator) if isinstance(block, _Loaded) else block

    def _series(self, functions: Any, tolerance: float = SERIES_TOLERANCE) -> Array:
        """Chebyshev coefficients of functions of the eigenvalues, along their last axis, as many as it takes."""
        n_terms = 64
        while True:
            coefficients = chebyshev_coefficients(functions(self.points(n_terms)))
            sizes = np.max(np.abs(coefficients.reshape(-1, n_terms)), axis=0, initial=0.0)
            significant = np.flatnonzero(sizes > tolerance * max(np.max(sizes), 1e-300))
            converged = significant.size == 0 or significant[-1] < 0.9 * n_terms
            last = float(sizes[-1] / max(np.max(sizes), 1e-300))
            if n_terms >= MOST_TERMS and last > NOTICEABLE:
                warnings.warn(
                    f"A filter is too steep for a series of {MOST_TERMS} Chebyshev polynomials: terms of "
                    f"{last:.1e} of the largest are cut off. Use a filter of lower degree, more "
                    f"noise, or an exact spectrum.",
                    RuntimeWarning,
                    stacklevel=2,
                )
            if n_terms >= MOST_TERMS or converged:
                return coefficients[..., : (significant[-1] if significant.size else 0) + 1]
            n_terms *= 2

    def diagonals(self, functions: OfEigenvalues, nodes: NDArray[np.intp] | None = None) -> tuple[Any, Array]:
        """Diagonals at given nodes without error, or at all nodes by probes with random signs.

        For all nodes the best quadratic on the spectrum is taken out of each function first: its diagonal is known
        exactly, and what is left has several times less to give the probes to average away. The error is from the
        difference between two halves of the probes.
        """
        coefficients = self._series(functions)
        if nodes is not None:
            return diagonals_at(self.operator, coefficients, nodes), np.zeros(coefficients.shape[0])
        operator = self.operator
        quadratics = closest_quadratics(coefficients, 2 * self.eigenvalues / self.end - 1, self.multiplicities)
        left = coefficients.copy()
        left[:, : quadratics.shape[1]] -= quadratics
        n_probes = 2 * UNIT_VECTORS if self.settings.n_probes == "exact" else self.settings.n_probes
        random_state = np.random.default_rng(self.settings.random_state + 1)
        halves = [operator.probed(operator.random_signs(n_probes // 2, random_state), left) for _ in range(2)]
        difference = halves[0] - halves[1]
        errors = 0.5 * np.sqrt(operator.column_products(difference, difference) / operator.n_nodes)
        known = operator.combine(operator.low_diagonals(), np.pad(quadratics, ((0, 0), (0, 3 - quadratics.shape[1]))).T)
        return operator.unload((halves[0] + halves[1]) * 0.5 + known), errors

    # ------------------------------------------------------------------------------------------------ accuracy

    def errors(self, variances: OfEigenvalues, data: SpectralData) -> Errors:
        """How wrong the log likelihood may be by truncation, rounding and probes.

        The quadrature is exact for polynomials of its degree, and no Chebyshev polynomial exceeds one, so what the
        coefficients of ``log D`` and ``1 / D`` beyond that degree add up to, times the number of nodes and the energy
        of the signals, bounds the error of equation (13). The coefficients are those of a fine interpolation, whose own
        error is looked for at further points, ever closer to the ends of the interval, and added.
        """
        n_points = max(FINER * self.n_moments, LEAST_POINTS)
        checked = self.end * CHECKED
        fine, further = variances(self.points(n_points)), variances(checked)
        energies = np.abs(data.energies.sum(axis=1))
        truncation = rounding = 0.0
        precision = float(np.finfo(str(self.operator.dtype).rpartition(".")[2]).eps)
        for values, truth, sizes in (
            (np.log(fine), np.log(further), np.full(fine.shape[0], float(self.n_nodes))),
            (1 / fine, 1 / further, energies),
        ):
            coefficients = chebyshev_coefficients(values)
            missed = np.max(np.abs(truth - chebval(2 * CHECKED - 1, coefficients.T)), axis=1)
            # a term beyond the degree is lost, and aliased into a lower one: twice its size at most, half of it in (13)
            truncation += float(sizes @ (np.sum(np.abs(coefficients[:, self.n_moments :]), axis=1) + missed))
            rounding += 0.5 * precision * float(sizes @ np.sum(np.abs(coefficients), axis=1))
        logarithms = chebyshev_coefficients(np.log(fine)).sum(axis=0)
        return Errors(
            truncation,
            rounding if precision > 1e-10 else 0.0,
            0.5 * self.density.spread(logarithms[: self.n_moments]),
            # one nat an observation is the scale of the likelihood, and unlike its value never near zero
            self.settings.tolerance * data.n_observations,
        )

    def refined(self) -> Quadrature | None:
        if self.n_moments >= self.settings.max_moments:
            return None
        n_moments = min(2 * self.n_moments - 1, self.settings.max_moments) | 1
        return dataclasses.replace(self, n_moments=n_moments)

    def __repr__(self) -> str:
        """One line: what stands for what."""
        scaled = "scaled " if self.scaled else ""
        of = f"{self.n_nodes} frequencies of the {scaled}{self.laplacian} Laplacian"
        return f"Quadrature({self.n_moments} nodes for {of})"
