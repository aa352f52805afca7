"""The spectrum of a large graph: a quadrature from Chebyshev moments, without eigenvalues."""

from __future__ import annotations

import dataclasses
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
from numpy.polynomial.chebyshev import chebval, chebvander
from numpy.typing import NDArray

from spectralgp._basics.arrays import device_of, frozen, on_host
from spectralgp._basics.checks import Array, Indices, as_integer, as_option, as_positive
from spectralgp._basics.progress import mention
from spectralgp._basics.saved import Count, NotNegative, Positive, StoredAs, axes, ge
from spectralgp.graphs import LAPLACIANS, GraphBase, LaplacianKind, operators
from spectralgp.graphs.operators import MomentPass, Operator, column_products, combine_columns, join_columns
from spectralgp.model.signals import Signals
from spectralgp.model.spectra import base
from spectralgp.model.spectra.base import Filters, OfEigenvalues, SpectralData, Spectrum, SpectrumSettings

MOST_SAVED = 2**20  # moments and probes that a model file may ask for
FIRST_MOMENTS = 129
TAIL_POINTS_PER_MOMENT = 4  # times as many points as moments, to see the tail of a Chebyshev series
MIN_TAIL_POINTS = 1024  # for few moments, whose tail may be many times longer
# where a series is compared with its function between interpolation points: ever closer to both ends
CHECKED_POINTS = np.concatenate([[0.0], np.geomspace(1e-16, 0.5, 40), 1 - np.geomspace(1e-16, 0.5, 40), [1.0]])
SERIES_TOLERANCE = 1e-10  # of the last coefficients of a filter's series, relative to its largest
MAX_TERMS = 2**14
WARNED_TERM = 1e-7  # of the largest coefficient, from which a truncated series is worth a warning
PROBES_PER_BLOCK = 32
CONTROLS = slice(1, 3)  # moments of the density that are known exactly, from sums over the sparse matrix
UNIT_VECTORS_PER_BLOCK = 32
LOCAL_TERMS = 32  # at least, of functions whose diagonals are needed repeatedly
LOCAL_SERIES_TOLERANCE = 1e-4  # of their series: far below the error by probes


@dataclass(frozen=True, eq=False)
class SpectralMoments(SpectralData):
    """Energies ``E_q`` of signals at the nodes of a quadrature, equation (25), in place of their Fourier transform."""

    matrices: Array  # E_q, or U^T E_q U of equation (26), shape (n_frequencies, n_rows, n_rows)
    spectrum: Quadrature

    @property
    def multiplicities(self) -> Array:
        return self.spectrum.multiplicities

    @property
    def n_observations(self) -> int:
        return int(self.matrices.shape[1] * self.spectrum.graph.n_nodes)

    @cached_property
    def energies(self) -> Array:
        return np.diagonal(self.matrices, axis1=1, axis2=2).T.copy()

    def rotate(self, vectors: Array) -> SpectralMoments:
        return SpectralMoments(vectors.T @ self.matrices @ vectors, self.spectrum)

    def gram(self, scales: Array) -> Array:
        return np.asarray(np.einsum("iq,qik,kq->ik", scales, self.matrices, scales, optimize=True))

    def node_gram(self, scales: Array) -> Array:
        raise ValueError("data must be on an exact spectrum to have products between frequencies; got a quadrature's.")

    @property
    def carried_energies(self) -> tuple[Array, Array]:
        half = self.matrices.shape[1] // 2
        own, across = self.matrices[:, half:, half:], self.matrices[:, :half, half:]
        return np.diagonal(own, axis1=1, axis2=2).T, np.diagonal(across, axis1=1, axis2=2).T

    def without_carried(self, response: Array) -> SpectralMoments:
        """``E_yy - b (E_xy + E_yx) + b^2 E_xx``."""
        half, factor = self.matrices.shape[1] // 2, response[:, None, None]
        across = self.matrices[:, :half, half:]
        matrices = self.matrices[:, :half, :half] - factor * (across + np.swapaxes(across, 1, 2))
        return SpectralMoments(matrices + factor**2 * self.matrices[:, half:, half:], self.spectrum)

    def quadratics(self, factors: Array) -> Array:
        halves = np.linalg.solve(factors, self.matrices)
        return np.diagonal(np.linalg.solve(factors, np.swapaxes(halves, 1, 2)), axis1=1, axis2=2).sum(axis=0)

    def errors(self, variances: OfEigenvalues) -> base.LikelihoodErrors:
        """Errors of the log likelihood by truncation, rounding and probes.

        The quadrature is exact for polynomials of its degree, and no Chebyshev polynomial exceeds one, so the sums of
        the coefficients of ``log D`` and ``1 / D`` beyond that degree, times the number of nodes and the energy of the
        signals, bound the error of equation (26). The coefficients are those of a fine interpolation, whose own error,
        measured at further points, is added.
        """
        spectrum, n_moments = self.spectrum, self.spectrum.n_moments
        n_points = max(TAIL_POINTS_PER_MOMENT * n_moments, MIN_TAIL_POINTS)
        fine, further = variances(spectrum.points(n_points)), variances(spectrum.end * CHECKED_POINTS)
        energies = np.abs(self.energies.sum(axis=1))
        truncation = rounding = 0.0
        precision = float(np.finfo(str(spectrum.operator.dtype).rpartition(".")[2]).eps)
        ones = np.full(fine.shape[0], float(spectrum.graph.n_nodes))
        for values, truth, sizes in ((np.log(fine), np.log(further), ones), (1 / fine, 1 / further, energies)):
            coefficients = operators.chebyshev_coefficients(values)
            missed = np.max(np.abs(truth - chebval(2 * CHECKED_POINTS - 1, coefficients.T)), axis=1)
            # a term beyond the degree is lost, and aliased into a lower one: twice its size at most, half of it in (26)
            truncation += float(sizes @ (np.sum(np.abs(coefficients[:, n_moments:]), axis=1) + missed))
            rounding += 0.5 * precision * float(sizes @ np.sum(np.abs(coefficients), axis=1))
        logarithms = operators.chebyshev_coefficients(np.log(fine)).sum(axis=0)
        return base.LikelihoodErrors(
            truncation,
            rounding if precision > 1e-10 else 0.0,
            0.5 * spectrum.density.spread(logarithms[:n_moments]),
            # one nat per observation is the scale of the likelihood, and unlike its value never near zero
            spectrum.settings.tolerance * self.n_observations,
        )


@dataclass(frozen=True, eq=False)
class DensityState:
    """Results of a density so far, from which another one of the same graph can start."""

    largest_eigenvalue: Positive
    residual: NotNegative  # of the largest eigenvalue, by Lanczos
    # of every probe, or of every node where they are exact, shape (n_moments, n_probes)
    moments: Annotated[Array, axes("_moments", "_probes")] | None


class Density:
    """Moments of the density of a Laplacian's spectrum, computed on demand; they depend on the graph alone.

    Probes are random signs, or one unit vector per node. The interval of the operator is shrunk to its spectrum.
    """

    def __init__(
        self,
        operator: Operator,
        n_probes: int | Literal["exact"],
        random_state: int,
        has_edges: bool = True,
        state: DensityState | None = None,
    ) -> None:
        self.operator, self.n_probes, self.random_state = operator, n_probes, random_state
        self._passes: list[MomentPass] = []
        if state is not None:
            self.largest_eigenvalue, self.residual = state.largest_eigenvalue, state.residual
            if state.moments is not None:
                self._passes = [MomentPass.known(state.moments, gram=False)]
        else:
            self.largest_eigenvalue, self.residual = operators.largest_eigenvalue(operator) if has_edges else (1.0, 0.0)
        operators.tighten(operator, self.largest_eigenvalue, self.residual)
        self._local: tuple[Array, NDArray[Any], Array] | None = None
        self._lock = threading.RLock()  # fits on one graph may run in several threads

    @property
    def state(self) -> DensityState:
        """Moments so far, with the largest eigenvalue."""
        with self._lock:
            least = min((known.n_moments for known in self._passes), default=0)
            moments = np.concatenate([known.moments[:least] for known in self._passes], axis=1) if least else None
        return DensityState(self.largest_eigenvalue, self.residual, moments)

    def moments(self, n_moments: int) -> Array:
        """``mu_k = tr T_k(A)``, shape (n_moments,)."""
        probes = self.probe_moments(n_moments)
        return self._raw(n_moments).sum(axis=1) if probes is None else probes.mean(axis=1)

    def probe_moments(self, n_moments: int) -> Array | None:
        """Moments of each probe after the control variates, shape (n_moments, n_probes); None if exact."""
        if self.n_probes == "exact":
            return None
        raw = self._raw(n_moments)
        centred = raw - raw.mean(axis=1, keepdims=True)
        slopes = np.linalg.lstsq(centred[CONTROLS].T, centred.T, rcond=None)[0]
        return raw - slopes.T @ (raw[CONTROLS] - self._traces[:, None])

    def spread(self, coefficients: Array) -> float:
        """Standard error of ``tr f(A)`` from the spread over the probes, for the Chebyshev coefficients of ``f``."""
        probes = self.probe_moments(coefficients.size)
        if probes is None:
            return 0.0
        values = coefficients @ probes
        return float(np.std(values, ddof=1 + probes[CONTROLS].shape[0]) / np.sqrt(values.size))

    def release(self) -> None:
        """Free the states of the recurrences, which only further moments need, and keep the moments."""
        with self._lock:
            self._local = None
            for known in self._passes:
                known.release()

    def local(self, n_terms: int) -> tuple[Array, NDArray[Any], Array]:
        """Diagonals of at least `n_terms` ``T_k(A)``, from other probes than those of the density.

        Exact ones of the first three, shape (3, n_nodes); by probes, in single precision, shape (n_terms, n_nodes); and
        mean products over the nodes of the probes' errors, shape (n_terms, n_terms).
        """
        with self._lock:
            if self._local is None or len(self._local[1]) < n_terms:
                self._local = self._local_moments(max(n_terms, LOCAL_TERMS))
            return self._local

    def _local_moments(self, n_terms: int) -> tuple[Array, NDArray[Any], Array]:
        operator = self.operator
        low = np.asarray(on_host(operator.unload(operators.low_diagonals(operator))), dtype=float)
        if self.n_probes == "exact":
            return low, self._raw(n_terms | 1), np.zeros((n_terms | 1, n_terms | 1))
        random_state, halves = np.random.default_rng(self.random_state + 1), []
        for _ in range(2):
            probes = operators.random_signs(operator, self.n_probes // 2, random_state)
            half = np.empty((n_terms, operator.n_nodes), dtype=np.float32)
            for term, column in zip(range(n_terms), operators.probed_terms(operator, probes), strict=False):
                half[term] = np.asarray(on_host(operator.unload(column)))[0]
                mention(f"diagonal {term + 1} of {n_terms}")
            halves.append(half)
        first, second = halves
        second -= first
        first += np.float32(0.5) * second
        return low, first, (second @ second.T).astype(float) / (4 * operator.n_nodes)

    def _raw(self, n_moments: int) -> Array:
        """Moments of every probe (random signs), or of every node (unit vectors) for exact moments."""
        with self._lock:
            if any(known.is_released and known.n_moments < n_moments for known in self._passes):
                self._passes = []  # the same probes again, from the start
            self._passes = self._passes or list(self._start())
            return np.concatenate([known.extend(n_moments) for known in self._passes], axis=1)

    def _start(self) -> Iterator[MomentPass]:
        random_state, n_nodes = np.random.default_rng(self.random_state), self.operator.n_nodes
        total = n_nodes if self.n_probes == "exact" else self.n_probes
        for start in range(0, total, PROBES_PER_BLOCK):
            nodes = np.arange(start, min(start + PROBES_PER_BLOCK, total))
            if self.n_probes == "exact":
                block = self.operator.unit_vectors(nodes)
            else:
                block = operators.random_signs(self.operator, nodes.size, random_state)
            yield MomentPass(self.operator, block, gram=False)

    @cached_property
    def _traces(self) -> Array:
        """``tr T_1(A)`` and ``tr T_2(A)`` from sums over the sparse matrix."""
        trace, square = operators.traces(self.operator)
        scale, n_nodes = 2 / self.operator.bound, self.operator.n_nodes
        first = scale * trace - n_nodes
        second = scale**2 * square - 2 * scale * trace + n_nodes  # tr A^2
        return np.array([first, 2 * second - n_nodes])

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"} | {"_local": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state | {"_lock": threading.RLock()}


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
        Largest number of moments; a fit that needs more says so.
    n_probes : int or "exact", default=32
        Random probes for the density of the spectrum, or its exact moments, at the cost of one probe per node. The
        standard error of the log likelihood falls with the root of their number; fits state it as ``probe_error``.
    random_state : int, default=0
        Seed of the probes.
    device : {"cpu", "cuda"}, optional
        Device for signals on the host; CuPy arrays and torch CUDA tensors are computed on their own device.

    Examples
    --------
    >>> from spectralgp import Chebyshev
    >>> Chebyshev(tolerance=1e-6).n_probes
    32
    """

    tolerance: Positive = 1e-5
    n_moments: Annotated[int, ge(3, MOST_SAVED)] = FIRST_MOMENTS
    max_moments: Annotated[int, ge(3, MOST_SAVED)] = 4097
    n_probes: Annotated[int, ge(4, MOST_SAVED)] | Literal["exact"] = 32
    random_state: Count = 0
    device: Annotated[str | None, StoredAs(Literal["cpu", "cuda"] | None)] = None
    reads_into_memory = False
    needs_passes = True
    has_node_covariances = False
    needs_whole_graph = False

    def __post_init__(self) -> None:
        as_positive(self.tolerance, "tolerance")
        as_integer(self.n_moments, "n_moments", 3)
        as_integer(self.max_moments, "max_moments", self.n_moments)
        if self.n_probes != "exact":
            as_integer(self.n_probes, "n_probes", 4)
        as_integer(self.random_state, "random_state", 0)
        if self.device is not None:
            as_option(self.device, "device", ("cpu", "cuda"))

    def of(
        self, graph: GraphBase, laplacian: LaplacianKind = "combinatorial", scaled: bool = False, prototype: Any = None
    ) -> Quadrature:
        as_option(laplacian, "laplacian", LAPLACIANS)
        density = self._density(graph, laplacian, prototype)
        return Quadrature(graph, laplacian, bool(scaled), self, density, self.n_moments | 1)

    def _density(
        self, graph: GraphBase, laplacian: LaplacianKind, prototype: Any, state: DensityState | None = None
    ) -> Density:
        prototype = np.empty((0, 0)) if prototype is None else prototype
        library = type(prototype).__module__.partition(".")[0]
        place = (library, device_of(prototype), self.device, str(operators.precision_of(prototype)))
        key = ("density", laplacian, self.n_probes, self.random_state, place)
        if key not in graph._cache:
            operator = graph.operator(laplacian, prototype, self.device)
            graph._cache[key] = Density(operator, self.n_probes, self.random_state, graph.n_edges > 0, state)
        density: Density = graph._cache[key]
        return density

    def remember(self, graph: GraphBase, laplacian: LaplacianKind, state: object, prototype: Any = None) -> None:
        if not isinstance(state, DensityState):
            raise ValueError(f"densities must hold one of the {laplacian} Laplacian; got none.")
        n_probes = graph.n_nodes if self.n_probes == "exact" else self.n_probes
        shape = (1, n_probes) if state.moments is None else state.moments.shape
        if shape[1] != n_probes or shape[0] % 2 == 0:
            raise ValueError(f"densities must hold an odd number of moments of {n_probes} probes; got {shape}.")
        self._density(graph, laplacian, prototype, state)

    def on(self, device: str | None) -> Chebyshev:
        return dataclasses.replace(self, device=device)

    def memory(self, n_signals: int, n_nodes: int, item_size: int) -> tuple[float, str, str]:
        n_probes = n_nodes if self.n_probes == "exact" else self.n_probes
        # two blocks of each recurrence, one on the way and the copy for the signals, two for the probes; and the
        # moments, their quadrature and a rotation of it
        blocks = (4 * n_signals + 2 * n_probes) * n_nodes * item_size
        needed = blocks + 3 * 8 * self.n_moments * n_signals**2
        if needed > 2 * blocks:
            of = f"{self.n_moments} moments of {n_signals} by {n_signals} signals, and more if some are added"
            return needed, of, "Learn from fewer signals, or from fewer moments: spectrum=Chebyshev(max_moments=...)."
        of = f"{n_signals} signals and {n_probes} probes on {n_nodes} nodes"
        return needed, of, "Pass Y as float32, fewer signals, or fewer probes: spectrum=Chebyshev(n_probes=...)."


def release_passes(graph: GraphBase) -> None:
    """Free the states of recurrences on a graph, which only further moments need, and keep the moments."""
    for known in graph._cache.values():
        if isinstance(known, Density):
            known.release()


@dataclass(frozen=True, eq=False, repr=False)
class Quadrature(Spectrum):
    """Quadrature nodes on the spectrum of a Laplacian, which represent all eigenvalues. Made by `Chebyshev.of`."""

    graph: GraphBase
    laplacian: LaplacianKind
    scaled: bool
    settings: Chebyshev
    density: Density
    n_moments: int  # number of the density's moments in use; odd
    has_eigenvectors = False

    def __post_init__(self) -> None:
        most = self.settings.max_moments | 1
        if self.n_moments not in range(1, most + 1, 2):
            raise ValueError(f"n_moments must be an odd number up to {most}; got {self.n_moments}.")

    @property
    def operator(self) -> Operator:
        """The Laplacian."""
        return self.density.operator

    @property
    def largest_eigenvalue(self) -> float:  # type: ignore[override]
        """The largest eigenvalue before scaling; one for a graph without edges."""
        return self.density.largest_eigenvalue

    @property
    def end(self) -> float:
        """Right end of the interval of the recurrence, a little beyond the largest eigenvalue."""
        return self.operator.bound / (self.largest_eigenvalue if self.scaled else 1.0)

    def points(self, n_points: int) -> Array:
        """Eigenvalues at `chebyshev_points`, in their order."""
        return self.end * (operators.chebyshev_points(n_points) + 1) / 2

    @cached_property
    def eigenvalues(self) -> Array:
        return frozen(self.points(self.n_moments)[::-1])

    @cached_property
    def multiplicities(self) -> Array:
        """``m_q`` of equation (25); they add up to the number of nodes, but single ones may be negative."""
        return operators.quadrature_weights(self.density.moments(self.n_moments))[::-1]

    def read(self, signals: Signals, carried: Array | None = None) -> SpectralMoments:
        """Energies of the signals at the quadrature's nodes, equation (25)."""
        if carried is None:
            return self._data(signals.moments(self.operator, self.n_moments))
        pair = self.read_block(join_columns(signals.columns(self.operator), self.load(carried)))
        spread = signals.spread_moments(self.operator, self.n_moments)
        if spread is not None:  # the autoregressive inputs are known exactly and contribute none
            n_signals = signals.shape[0]
            pair.matrices[:, :n_signals, :n_signals] += self._data(spread).matrices
        return pair

    def read_block(self, block: Any) -> SpectralMoments:
        return self._data(MomentPass(self.operator, block, gram=True).extend(self.n_moments))

    def _data(self, moments: Array) -> SpectralMoments:
        return SpectralMoments(operators.quadrature_weights(moments)[::-1], self)

    def read_filtered(self, signals: Signals, vectors: Array, filters: Filters) -> SpectralMoments:
        """Spectral data of filtered combinations of signals, ``U^T`` times them."""
        return self._mixed(self.read(signals), self._rows(filters, vectors))

    def read_residual(self, signals: Signals, training: Signals, vectors: Array, filters: Filters) -> SpectralMoments:
        """Spectral data of signals less filtered combinations of training signals."""
        together = signals.followed_by(training)
        if together is None:
            columns = signals.columns(self.operator)
            return self.read_block(columns - self.filtered(self.block(training, vectors), filters))
        own = np.broadcast_to(np.eye(signals.shape[0]), (self.n_moments, signals.shape[0], signals.shape[0]))
        return self._mixed(self.read(together), np.concatenate([own, -self._rows(filters, vectors)], axis=2))

    def _rows(self, filters: Filters, vectors: Array) -> Array:
        """Filters of linear combinations as filters of the signals, shape (n_frequencies, n_out, n_signals)."""
        return np.einsum("tik,ni->ktn", filters.matrices(self.eigenvalues), vectors, optimize=True)

    def _mixed(self, data: SpectralMoments, rows: Array) -> SpectralMoments:
        """Energies of linear combinations of signals, given at each frequency: quadratic forms."""
        return SpectralMoments(rows @ data.matrices @ np.swapaxes(rows, 1, 2), self)

    def block(self, signals: Signals, vectors: Array) -> Callable[[], Any]:
        """Linear combinations of signals, one per column of `vectors`, as a block that is read at each use."""
        return lambda: combine_columns(signals.columns(self.operator), vectors)

    def load(self, signals: Any) -> Any:
        return self.operator.load(signals)

    def unload(self, block: Any) -> Any:
        return self.operator.unload(self._columns(block))

    def zeros(self, n_signals: int) -> Any:
        return self.operator.zeros(n_signals)

    def white(self, n_signals: int, random_state: np.random.Generator) -> Any:
        return operators.random_normal(self.operator, n_signals, random_state)

    def filtered(self, block: Any, filters: Filters) -> Any:
        coefficients = self._series(filters.matrices, max(SERIES_TOLERANCE, filters.tolerance))
        n_out, n_in = coefficients.shape[:2]
        if n_out == n_in and not coefficients[~np.eye(n_in, dtype=bool)].any():  # signals are not mixed
            return self.operator.filtered(self._columns(block), np.einsum("iik->ki", coefficients))
        return self.operator.filtered(self._columns(block), np.moveaxis(coefficients, (2, 1), (0, 1)))

    def series(self, functions: OfEigenvalues, slack: float = 0.0) -> Array:
        """Chebyshev series of functions (n_functions, n_terms), truncated within a slack of their smallest values."""
        coefficients = self._series(functions)
        if not slack:
            return coefficients
        smallest = np.min(np.abs(functions(self.eigenvalues)), axis=1, keepdims=True)
        tails = np.cumsum(np.abs(coefficients[:, ::-1]), axis=1)[:, ::-1]
        return coefficients[:, : int(np.count_nonzero(np.any(tails > slack * smallest, axis=0)))]

    def each_filtered(self, block: Any, series: Array) -> Any:
        """Filter each column by its own filter, given by its `series`."""
        return self.operator.filtered(self._columns(block), series.T)

    def inner(self, left: Any, right: Any) -> float:
        """Sum of the products of two blocks' entries, in double precision."""
        return float(np.sum(column_products(left, right)))

    def combined(self, block: Any, matrix: Array) -> Any:
        """Linear combinations of the signals of a block, one per row of `matrix`."""
        return combine_columns(self._columns(block), matrix.T)

    def _columns(self, block: Any) -> Any:
        return block() if callable(block) else block

    def _series(self, functions: Any, tolerance: float = SERIES_TOLERANCE) -> Array:
        """Chebyshev coefficients of functions of the eigenvalues, along their last axis, up to the tolerance."""
        n_terms = 64
        while True:
            coefficients = operators.chebyshev_coefficients(functions(self.points(n_terms)))
            sizes = np.max(np.abs(coefficients.reshape(-1, n_terms)), axis=0, initial=0.0)
            significant = np.flatnonzero(sizes > tolerance * max(np.max(sizes), 1e-300))
            converged = significant.size == 0 or significant[-1] < 0.9 * n_terms
            last = float(sizes[-1] / max(np.max(sizes), 1e-300))
            if n_terms >= MAX_TERMS and last > WARNED_TERM:
                warnings.warn(
                    f"The filter is too steep for a series of {MAX_TERMS} Chebyshev polynomials: terms of "
                    f"{last:.1e} of the largest are cut off. Use a filter of lower degree, more "
                    f"noise, or an exact spectrum.",
                    RuntimeWarning,
                    stacklevel=2,
                )
            if n_terms >= MAX_TERMS or converged:
                return coefficients[..., : (significant[-1] if significant.size else 0) + 1]
            n_terms *= 2

    def diagonals(self, functions: OfEigenvalues, nodes: Indices | None = None) -> tuple[Any, Array]:
        """Exact diagonals at given nodes, or estimates at all nodes by probes, with the error from two halves of them.

        The best quadratic on the spectrum is subtracted from each function first: its diagonal is known exactly, and
        the rest has a variance several times smaller.
        """
        coefficients = self._series(functions)
        if nodes is not None:
            return diagonals_at(self.operator, coefficients, nodes), np.zeros(coefficients.shape[0])
        operator, (quadratics, rest) = self.operator, self._without_quadratics(coefficients)
        n_probes = 2 * UNIT_VECTORS_PER_BLOCK if self.settings.n_probes == "exact" else self.settings.n_probes
        random_state = np.random.default_rng(self.settings.random_state + 1)
        probes = (operators.random_signs(operator, n_probes // 2, random_state) for _ in range(2))
        first, second = (operator.probed(half, rest) for half in probes)
        difference, padded = first - second, np.pad(quadratics, ((0, 0), (0, 3 - quadratics.shape[1])))
        errors = 0.5 * np.sqrt(column_products(difference, difference) / operator.n_nodes)
        known = combine_columns(operators.low_diagonals(operator), padded.T)
        return operator.unload((first + second) * 0.5 + known), errors

    def local_diagonals(self, functions: OfEigenvalues) -> tuple[Array, Array]:
        """`diagonals` at all nodes, on the host, from cached moments, for functions that are needed repeatedly.

        Estimates are shrunk by their share of noise, and clipped to the range of each function on the spectrum.
        """
        coefficients, values = self._series(functions, LOCAL_SERIES_TOLERANCE), functions(self.eigenvalues)
        quadratics, rest = self._without_quadratics(coefficients)
        found, errors = shrunk_diagonals(*self.density.local(rest.shape[1]), quadratics, rest)
        return np.clip(found, values.min(axis=1)[:, None], values.max(axis=1)[:, None]), errors

    def _without_quadratics(self, coefficients: Array) -> tuple[Array, Array]:
        """Series of the least-squares quadratics of functions over the spectrum, and of the residuals."""
        points, roots = 2 * self.eigenvalues / self.end - 1, np.sqrt(np.maximum(self.multiplicities, 0.0))[:, None]
        design, values = chebvander(points, min(2, coefficients.shape[1] - 1)), chebval(points, coefficients.T).T
        solution = np.linalg.lstsq(roots * design, roots * values, rcond=None)[0]
        quadratics = np.asarray(solution.T, dtype=np.float64)
        rest = coefficients.copy()
        rest[:, : quadratics.shape[1]] -= quadratics
        return quadratics, rest

    def refined(self) -> Quadrature | None:
        if self.n_moments >= self.settings.max_moments:
            return None
        n_moments = min(2 * self.n_moments - 1, self.settings.max_moments) | 1
        return dataclasses.replace(self, n_moments=n_moments)

    def __repr__(self) -> str:
        of = f"{self.graph.n_nodes} frequencies of the {'scaled ' * self.scaled}{self.laplacian} Laplacian"
        return f"Quadrature({self.n_moments} nodes for {of})"


@base.state_of_spectrum.register
def _(spectrum: Quadrature) -> DensityState:
    return spectrum.density.state


def shrunk_diagonals(
    low: Array, probed: NDArray[Any], noise: Array, quadratics: Array, rest: Array
) -> tuple[Array, Array]:
    """Diagonals of functions, given as quadratics plus the rest, and their root mean square errors.

    The first three arguments are those of `Density.local`. The rest has mean zero over the spectrum, so its estimates
    by probes are shrunk by their share of noise.
    """
    n_terms, n_nodes = rest.shape[1], low.shape[1]
    found = rest @ probed[:n_terms]
    noises = np.einsum("fk,kl,fl->f", rest, noise[:n_terms, :n_terms], rest)
    squares = np.maximum(np.mean(np.square(found), axis=1, dtype=np.float64), 1e-300)
    share = np.clip(1 - noises / squares, 0.0, 1.0)
    errors = np.sqrt(np.maximum(noises, 0.0) * np.maximum(share, n_nodes**-0.5))
    return quadratics @ low[: quadratics.shape[1]] + share[:, None] * found, errors


def diagonals_at(operator: Operator, coefficients: Array, nodes: Indices) -> Array:
    """Exact diagonals at some nodes, shape (n_functions, n_some_nodes)."""
    values = []
    for start in range(0, len(nodes), UNIT_VECTORS_PER_BLOCK):
        chosen = nodes[start : start + UNIT_VECTORS_PER_BLOCK]
        moments = MomentPass(operator, operator.unit_vectors(chosen), gram=False).extend(coefficients.shape[1])
        values.append(coefficients @ moments)
    return np.concatenate(values, axis=1)
