"""The density of a large graph's spectrum: its largest eigenvalue and its Chebyshev moments."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from spectralgp._basics.checks import Array
from spectralgp.operators import MomentPass, Operator

PROBE_BLOCK = 32
CONTROLS = slice(1, 3)  # moments of the density that sums over the sparse matrix give exactly


@dataclass(frozen=True, eq=False)
class Found:
    """What was found of a density.

    Parameters
    ----------
    largest_eigenvalue, residual : float
        By Lanczos, and how well it was found.
    moments : ndarray of shape (n_moments, n_probes) or None
        Of every probe, or of every node where they are exact; None where none was asked for yet.
    """

    largest_eigenvalue: float
    residual: float
    moments: Array | None


class Density:
    """Moments of the density of a Laplacian's spectrum, as many as were asked for. They belong to the graph alone.

    Parameters
    ----------
    operator : Operator
        The Laplacian; its interval is shrunk to the spectrum here.
    n_probes : int or "exact"
        Random probes, or one unit vector a node.
    random_state : int
        Seed of the probes.
    has_edges : bool, default=True
        Whether there is anything to find an eigenvalue of.
    found : Found, optional
        What was found of the same density before.
    """

    def __init__(
        self,
        operator: Operator,
        n_probes: int | Literal["exact"],
        random_state: int,
        has_edges: bool = True,
        found: Found | None = None,
    ) -> None:
        self.operator, self.n_probes, self.random_state = operator, n_probes, random_state
        self._passes: list[MomentPass] = []
        if found is not None:
            self.largest_eigenvalue, self.residual = found.largest_eigenvalue, found.residual
            if found.moments is not None:
                self._passes = [MomentPass.known(found.moments, gram=False)]
        else:
            self.largest_eigenvalue, self.residual = operator.largest_eigenvalue() if has_edges else (1.0, 0.0)
        operator.tighten(self.largest_eigenvalue, self.residual)
        self._lock = threading.RLock()  # fits on one graph may run in several threads

    @property
    def found(self) -> Found:
        """What was found so far, which another density of the same graph can start from."""
        with self._lock:
            least = min((known.n_moments for known in self._passes), default=0)
            moments = np.concatenate([known.moments[:least] for known in self._passes], axis=1) if least else None
        return Found(self.largest_eigenvalue, self.residual, moments)

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
        """Forget the states of the recurrences, which more moments would need, and keep the moments."""
        with self._lock:
            for known in self._passes:
                known.release()

    def _raw(self, n_moments: int) -> Array:
        """Moments of every probe (random signs), or of every node (unit vectors) for exact moments."""
        with self._lock:
            if any(known.is_released and known.n_moments < n_moments for known in self._passes):
                self._passes = []  # the same probes again, from the start
            self._passes = self._passes or list(self._start())
            for known in self._passes:
                known.extend(n_moments)
            return np.concatenate([known.moments[:n_moments] for known in self._passes], axis=1)

    def _start(self) -> Iterator[MomentPass]:
        random_state, n_nodes = np.random.default_rng(self.random_state), self.operator.n_nodes
        total = n_nodes if self.n_probes == "exact" else self.n_probes
        for start in range(0, total, PROBE_BLOCK):
            width = min(PROBE_BLOCK, total - start)
            if self.n_probes == "exact":
                block = self.operator.unit_vectors(np.arange(start, start + width))
            else:
                block = self.operator.random_signs(width, random_state)
            yield MomentPass(self.operator, block, gram=False)

    @property
    def _traces(self) -> Array:
        """``tr T_1(A)`` and ``tr T_2(A)`` from sums over the sparse matrix."""
        operator = self.operator
        trace, square = operator.traces
        scale, n_nodes = 2 / operator.bound, operator.n_nodes
        first = scale * trace - n_nodes
        second = scale**2 * square - 2 * scale * trace + n_nodes  # tr A^2
        return np.array([first, 2 * second - n_nodes])

    def __getstate__(self) -> dict[str, Any]:
        """State for pickling, without the lock."""
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore from a pickle."""
        self.__dict__ = state | {"_lock": threading.RLock()}
