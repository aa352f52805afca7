"""Series with holes: what is missing given what was observed, by solves through a mask."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from spectralgp._basics.checks import Array
from spectralgp.fields import Modal, Nodes, Seen
from spectralgp.fields.markov import InTime
from spectralgp.graphs import Graph
from spectralgp.spectra import ExactSpectrum
from spectralgp.time.process import ModalProcess

SEED = 1  # of draws


@dataclass(frozen=True, eq=False)
class SeriesNodes(Nodes):
    """The modes of a process: their powers are in the rows."""

    process: ModalProcess

    @cached_property
    def basis(self) -> ExactSpectrum:
        """The modes, numbered, as a spectrum of no graph."""
        n_nodes, process = self.process.n_nodes, self.process
        alone = Graph(csr_array((n_nodes, n_nodes)))
        return ExactSpectrum(alone, "combinatorial", False, np.arange(float(n_nodes)), process.basis)

    @property
    def noise_variance(self) -> float:  # type: ignore[override]
        """What all modes have for themselves."""
        return float(self.process.own.min())

    def powers(self, eigenvalues: Array) -> tuple[Array, Array]:
        return np.ones(self.process.own.size), self.process.own

    def draw_own(self, n_signals: int, random_state: np.random.Generator) -> Array:
        white = random_state.standard_normal((n_signals, self.process.own.size))
        return white * np.sqrt(self.process.own - self.noise_variance)


def covariance_of(process: ModalProcess, times: Array) -> Modal:
    """Covariance of rows at times, to solve with."""
    rows = InTime(times, process.components, process.powers, process.rates)
    return Modal(rows, SeriesNodes(process))


@dataclass(frozen=True, eq=False)
class Completion:
    """Rows with what is missing filled in, and what that may be wrong by."""

    mean: Array  # (n_steps, n_nodes): what was observed, and the mean of the rest
    deviations: Array  # (n_draws, n_steps, n_nodes), zero where observed: outer products add up to the covariance
    solutions: tuple[Array, Array | None]  # of the systems behind them, where other searches may start

    @property
    def variance(self) -> Array:
        """Variances of what is missing, by draws, shape (n_steps, n_nodes)."""
        return np.square(self.deviations).sum(axis=0)


def complete(
    process: ModalProcess,
    times: Any,
    values: Any,
    n_draws: int = 0,
    before: Completion | None = None,
    tolerance: float = 0.0,
) -> Completion:
    """Fill in what is missing by its mean given what was observed, noise included.

    Parameters
    ----------
    process : ModalProcess
        What the rows follow.
    times : array of shape (n_steps,)
        Times of the rows, increasing.
    values : array of shape (n_steps, n_nodes)
        Rows, NaN where nothing was observed.
    n_draws : int, default=0
        How many draws stand for the covariance of what is missing.
    before : Completion, optional
        Of the same rows under a similar process, as near the answer as that is.
    tolerance : float, default=0.0
        Of solves; as far as rounding allows if zero.
    """
    times, values = process.read(times, values)
    observed = ~np.isnan(values)
    first, others = (None, None) if before is None else before.solutions
    known = np.where(observed, values, 0.0)
    weights = observed.astype(float)
    seen = Seen(covariance_of(process, times), known, weights, tolerance=tolerance, always_iterates=True)
    mean, solution = seen.filled(known, first, tolerance)
    if n_draws == 0:
        return Completion(mean, np.empty((0, *mean.shape)), (solution, None))
    draws, solved = seen.draws(n_draws, np.random.default_rng(SEED), others, tolerance)
    return Completion(mean, draws / np.sqrt(n_draws), (solution, solved))
