"""The spectrum of a large graph: a quadrature from Chebyshev moments, visited once."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spectralgp._checks import Array, as_integer, as_positive
from spectralgp._operators import Operator, make_operator
from spectralgp.graph import Graph, LaplacianKind
from spectralgp.spectrum.passes import MomentPass, chebyshev_points, quadrature_weights
from spectralgp.spectrum.signals import SpectralMoments

Progress = Callable[[str], None]
Indices = NDArray[np.intp]

FIRST_MOMENTS = 129
PROBE_BLOCK = 32
CONTROLS = slice(1, 3)  # moments of the density that sums over the sparse matrix give exactly


class TooFewMoments(Exception):
    """Raised while learning where a spectrum resolves the present filter too coarsely."""


@dataclass(frozen=True)
class Chebyshev:
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
        Random probes for the density of the spectrum, or its exact moments, at the cost of as many probes as nodes.
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

    def __sklearn_clone__(self) -> Chebyshev:
        """A frozen object is its own clone."""
        return self


@dataclass(frozen=True, eq=False)
class ChebyshevSpectrum:
    """Quadrature nodes on the spectrum of a Laplacian, with multiplicities and energies of signals at them.

    It answers the likelihood as `Spectrum` does, with the eigenvalues replaced by a few nodes.

    Parameters
    ----------
    source : LargeSignals
        The signals it was made for.
    laplacian : {"combinatorial", "normalized"}
        Which Laplacian.
    scaled : bool
        Whether eigenvalues are divided by the largest one.
    eigenvalues : ndarray of shape (n_frequencies,)
        Nodes of the quadrature, ascending.
    multiplicities : ndarray of shape (n_frequencies,)
        ``m_q`` of equation (12); they add up to the number of nodes.
    """

    source: LargeSignals
    laplacian: LaplacianKind
    scaled: bool
    eigenvalues: Array
    multiplicities: Array

    @property
    def is_exact(self) -> bool:
        """False: the eigenvalues stand for many others."""
        return False

    @property
    def graph(self) -> Graph:
        """The graph."""
        return self.source.graph

    @property
    def n_nodes(self) -> int:
        """Number of nodes of the graph."""
        return self.graph.n_nodes

    @property
    def upper(self) -> float:
        """Right end of the interval that filters on this spectrum live on, as `Spectrum.upper`."""
        if self.scaled:
            return 1.0
        return 2.0 if self.laplacian == "normalized" else self.source.largest_eigenvalue(self.laplacian)

    @property
    def end(self) -> float:
        """Right end of the interval of the recurrence, a little beyond the largest eigenvalue."""
        return self.source.operator(self.laplacian).bound / self._unit

    @property
    def _unit(self) -> float:
        return self.source.largest_eigenvalue(self.laplacian) if self.scaled else 1.0

    def points(self, n_points: int) -> Array:
        """Eigenvalues at `chebyshev_points`, in their order."""
        return self.end * (chebyshev_points(n_points) + 1) / 2

    def mean(self, values: Array) -> Array:
        """Average over the nodes of a function of the eigenvalues, given its values at the quadrature's."""
        return self.multiplicities @ values / self.n_nodes

    def read(self, signals: LargeSignals) -> SpectralMoments:
        """Energies of the signals, or of some of them, at the quadrature's nodes."""
        # the source may have been extended since, for another kernel
        moments = self.source.signal_moments(self.laplacian)[: self.eigenvalues.size]
        chosen = moments if signals.rows is None else moments[:, signals.rows[:, None], signals.rows]
        matrices = signals.factor**2 * quadrature_weights(chosen)[::-1]
        return SpectralMoments(matrices, self.multiplicities, chosen.shape[1] * self.n_nodes)

    def probe_spread(self, coefficients: Array) -> float:
        """Standard error of ``tr f(A)`` from the spread over the probes, for the Chebyshev coefficients of ``f``."""
        probes = self.source.probe_moments(self.laplacian)
        if probes is None:
            return 0.0
        n_terms = min(coefficients.size, probes.shape[0])
        values = coefficients[:n_terms] @ probes[:n_terms]
        return float(np.std(values, ddof=1 + probes[CONTROLS].shape[0]) / np.sqrt(values.size))

    def __repr__(self) -> str:
        """One line: what stands for what."""
        scaled = "scaled " if self.scaled else ""
        return (
            f"ChebyshevSpectrum({self.eigenvalues.size} quadrature nodes for {self.n_nodes} frequencies of the "
            f"{scaled}{self.laplacian} Laplacian)"
        )


class LargeSignals:
    """Signals on a large graph, with the moments that learning reads instead of them.

    Moments are computed at the first question and kept; `extend` adds to them.

    Parameters
    ----------
    graph : Graph
        The graph.
    signals : array of shape (n_signals, n_nodes)
        Anything with a shape that can be sliced by columns; the node axis is read in blocks.
    settings : Chebyshev
        Moments, probes and tolerance.
    offset : ndarray of shape (n_nodes,) or float
        Subtracted from the signals.
    spread : float
        The signals are divided by this after that.
    mean : float
        What is left of their mean then.
    operator : callable, optional
        Makes the operator of a Laplacian, for graphs that are not on the host; `make_operator` if not given.
    device : {"cpu", "cuda"}, optional
        Where to compute signals that are on the host.
    progress : callable, optional
        Called at every step of a pass.
    """

    def __init__(
        self,
        graph: Graph,
        signals: Any,
        settings: Chebyshev,
        offset: Any = 0.0,
        spread: float = 1.0,
        mean: float = 0.0,
        operator: Callable[[LaplacianKind], Operator] | None = None,
        device: str | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.graph, self.signals, self.settings = graph, signals, settings
        self.offset, self.spread, self.device, self.progress = offset, spread, device, progress
        self.mean = mean
        self.rows: Indices | None = None
        self.factor = 1.0
        self._make_operator = operator or self._following_the_signals
        self._operators: dict[LaplacianKind, tuple[Operator, float]] = {}
        self._passes: dict[LaplacianKind, MomentPass] = {}
        self._probes: dict[LaplacianKind, list[MomentPass]] = {}
        self._traces: dict[LaplacianKind, Array] = {}
        self._n_moments = settings.n_moments

    @property
    def shape(self) -> tuple[int, int]:
        """Number of signals and of nodes."""
        return (self.signals.shape[0] if self.rows is None else self.rows.size), self.graph.n_nodes

    @property
    def size(self) -> int:
        """Number of observed values."""
        return self.shape[0] * self.shape[1]

    @property
    def mean_square(self) -> float:
        """Mean of the squared values."""
        energies = np.diagonal(next(iter(self._passes.values())).moments[0])
        chosen = energies if self.rows is None else energies[self.rows]
        return self.factor**2 * float(np.mean(chosen)) / self.graph.n_nodes

    @property
    def variance(self) -> float:
        """Variance of the values about their mean."""
        return max(self.mean_square - (self.factor * self.mean) ** 2, 0.0)

    def subset(self, rows: Indices) -> LargeSignals:
        """Some of the signals, sharing the moments of all."""
        return self._view(rows=rows if self.rows is None else self.rows[rows])

    def in_units(self) -> LargeSignals:
        """The signals in the units they came in, for prediction: centred but not scaled, sharing the moments."""
        return self._view(factor=self.spread, progress=None)

    def _view(self, **changes: Any) -> LargeSignals:
        view = object.__new__(LargeSignals)
        view.__dict__ = {**self.__dict__, **changes}
        return view

    def columns(self, laplacian: LaplacianKind) -> Any:
        """The signals, centred and scaled, as a block of the operator."""
        operator = self.operator(laplacian)
        block = operator.load(self.signals)
        if np.ndim(self.offset) == 0:
            block -= self.offset
        else:
            block -= operator.load(self.offset[None, :])
        block *= self.factor / self.spread
        if self.rows is None:
            return block
        return operator.combine(block, np.eye(self.signals.shape[0])[:, self.rows])

    def operator(self, laplacian: LaplacianKind) -> Operator:
        """The Laplacian as an operator, with its interval."""
        return self._operator(laplacian)[0]

    def largest_eigenvalue(self, laplacian: LaplacianKind) -> float:
        """Largest eigenvalue of the Laplacian; one where it has none but zero."""
        return self._operator(laplacian)[1]

    def _operator(self, laplacian: LaplacianKind) -> tuple[Operator, float]:
        if laplacian not in self._operators:
            operator = self._make_operator(laplacian)
            largest = operator.largest_eigenvalue() if self.graph.n_edges else 1.0
            operator.tighten(largest)
            self._operators[laplacian] = (operator, largest)
        return self._operators[laplacian]

    def _following_the_signals(self, laplacian: LaplacianKind) -> Operator:
        weights, diagonal = self.graph.laplacian_parts(laplacian)
        return make_operator(weights, diagonal, self.signals, self.device)

    def spectrum(self, laplacian: LaplacianKind, scaled: bool) -> ChebyshevSpectrum:
        """Quadrature spectrum from the present moments."""
        self.signal_moments(laplacian)
        density = self.density_moments(laplacian)
        multiplicities = quadrature_weights(density)[::-1]
        bare = ChebyshevSpectrum(self, laplacian, scaled, np.empty(0), multiplicities)
        return dataclasses.replace(bare, eigenvalues=bare.points(density.size)[::-1])

    def extend(self) -> None:
        """Double the number of moments for the next spectrum."""
        self._n_moments = min(2 * self._n_moments - 1, self.settings.max_moments)

    @property
    def is_exhausted(self) -> bool:
        """Whether no more moments may be added."""
        return self._n_moments >= self.settings.max_moments

    def signal_moments(self, laplacian: LaplacianKind) -> Array:
        """``C_k`` of equation (11), shape (n_moments, n_signals, n_signals)."""
        if laplacian not in self._passes:
            everything = self._view(rows=None, factor=1.0).columns(laplacian)  # every view reads the same moments
            self._passes[laplacian] = MomentPass(self.operator(laplacian), everything, gram=True)
        self._passes[laplacian].extend(self._n_moments, self.progress)
        return self._passes[laplacian].moments[: self._odd]

    def probe_moments(self, laplacian: LaplacianKind) -> Array | None:
        """Moments of each probe after the control variates, shape (n_moments, n_probes); None if exact."""
        if self.settings.n_probes == "exact":
            return None
        raw = self._raw_probes(laplacian)
        exact = self._exact_traces(laplacian)
        centred = raw - raw.mean(axis=1, keepdims=True)
        slopes = np.linalg.lstsq(centred[CONTROLS].T, centred.T, rcond=None)[0]
        return raw - slopes.T @ (raw[CONTROLS] - exact[:, None])

    def density_moments(self, laplacian: LaplacianKind) -> Array:
        """``mu_k = tr T_k(A)``, shape (n_moments,)."""
        probes = self.probe_moments(laplacian)
        return self._raw_probes(laplacian).sum(axis=1) if probes is None else probes.mean(axis=1)

    def _raw_probes(self, laplacian: LaplacianKind) -> Array:
        """Moments of every probe (random signs), or of every node (unit vectors) for exact moments."""
        if laplacian not in self._probes:
            self._probes[laplacian] = list(self._start_probes(self.operator(laplacian)))
        for probe in self._probes[laplacian]:
            probe.extend(self._odd, self.progress)
        return np.concatenate([probe.moments[: self._odd] for probe in self._probes[laplacian]], axis=1)

    def _start_probes(self, operator: Operator) -> Iterator[MomentPass]:
        random_state = np.random.default_rng(self.settings.random_state)
        exact = self.settings.n_probes == "exact"
        total = self.graph.n_nodes if exact else int(self.settings.n_probes)
        for start in range(0, total, PROBE_BLOCK):
            width = min(PROBE_BLOCK, total - start)
            if exact:
                block = operator.load(np.eye(width, self.graph.n_nodes, start))
            else:
                block = operator.random_signs(width, random_state)
            yield MomentPass(operator, block, gram=False)

    def release(self) -> None:
        """Forget the states of the recurrences, which extending would need, and keep the moments."""
        self.progress = None
        for state in (*self._passes.values(), *(probe for probes in self._probes.values() for probe in probes)):
            state.current = state.previous = None

    def _exact_traces(self, laplacian: LaplacianKind) -> Array:
        """``tr T_1(A)`` and ``tr T_2(A)`` from sums over the sparse matrix, kept: learning asks at every iterate."""
        if laplacian not in self._traces:
            operator = self.operator(laplacian)
            trace, square = operator.traces()
            scale, n_nodes = 2 / operator.bound, operator.n_nodes
            first = scale * trace - n_nodes
            second = scale**2 * square - 2 * scale * trace + n_nodes  # tr A^2
            self._traces[laplacian] = np.array([first, 2 * second - n_nodes])
        return self._traces[laplacian]

    @property
    def _odd(self) -> int:
        """Number of moments in use: the first odd number from the one asked for."""
        return self._n_moments | 1
