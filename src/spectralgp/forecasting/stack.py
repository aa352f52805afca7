"""Several models of one series as one forecast: a weighted mean, corrected by last rows, with calibrated errors.

All values are in units of nodes: what the mean of the forecast leaves, over the scale of the node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spectralgp._basics.checks import Array, Indices
from spectralgp.graphs import LaplacianKind
from spectralgp.time import ModalProcess, SeriesFit, completed_in_turn, rolling

LAGS = 3  # last rows that errors are regressed on


# --------------------------------------------------------------------------------------------------------- members


@dataclass(frozen=True, eq=False)
class Member:
    """A model among several."""

    name: str
    process: ModalProcess
    fit: SeriesFit | None = None  # on the graph

    @property
    def laplacian(self) -> LaplacianKind | None:
        """Whose frequencies the modes are."""
        return None if self.fit is None else self.fit.dynamics.powers[0].laplacian


@dataclass(frozen=True, eq=False)
class Rolled:
    """Forecasts of one member from several origins at several horizons; those beyond the last row are of no row."""

    means: Array  # (n_origins, n_horizons, n_nodes)
    variances: Array  # with what each value has for itself


def rolled(members: Sequence[Member], steps: Array, values: Array, origins: Indices, horizons: Indices) -> list[Rolled]:
    """Forecasts of all members, each in one pass over the rows."""
    beyond = int(horizons.max())
    later = np.concatenate([steps, steps[-1] + 1.0 + np.arange(beyond)])
    padded = np.concatenate([values, np.full((beyond, values.shape[1]), np.nan)])
    return [Rolled(*rolling(one.process, later, padded, origins, horizons)) for one in members]


def correlations_ahead(member: Member, steps: Array, values: Array, horizons: Indices) -> list[Array]:
    """Correlations of nodes that a member expects of its errors at horizons, after all rows as if they had no holes."""
    there = np.isfinite(values).any(axis=1)
    state = member.process.filtered(steps[there], np.zeros((int(there.sum()), values.shape[1])))
    forecast = state.forecast(steps[-1] + horizons)
    return [as_correlations(forecast.node_covariance(place)) for place in range(len(horizons))]


# ------------------------------------------------------------------------------------------------------------- law


@dataclass(frozen=True, eq=False)
class Stack:
    """Members with their weights, the drift, and how errors spread; by horizon, where horizons are rows ahead."""

    members: tuple[Member, ...]
    weights: Array  # of the members in the mean
    spread: int  # the member whose correlations of nodes are taken
    horizons: Array  # (n_horizons,)
    drift: Array  # (n_drifting, LAGS * n_nodes, n_nodes), what the last rows add
    drifting: Array  # (n_horizons,), which of those each horizon has; -1 for none
    inflations: Array  # (n_horizons, n_nodes), of the members' variances
    shares: Array  # (n_horizons,), of the errors' own correlations
    correlations: Array  # (n_horizons, n_nodes, n_nodes) of errors, or (0, ...)

    @property
    def drift_horizons(self) -> list[int]:
        """Horizons at which the last rows matter."""
        return [int(h) for h, which in zip(self.horizons, self.drifting, strict=True) if which >= 0]

    @property
    def heaviest_on_graph(self) -> SeriesFit | None:
        """The fit of the member on the graph that has the largest weight; None where all are nodes on their own."""
        pairs = zip(self.weights.tolist(), self.members, strict=True)
        fits = [(weight, one.fit) for weight, one in pairs if one.fit is not None]
        return max(fits, key=lambda pair: pair[0])[1] if fits else None

    def mean(self, means: Sequence[Array], rows: Array, horizon: float) -> Array:
        """The mean at a horizon from those of the members and the last rows, (..., LAGS * n_nodes), latest first."""
        mean = sum(weight * one for weight, one in zip(self.weights, means, strict=True) if weight)
        for place, share in self._places(horizon, fades=True):
            if self.drifting[place] >= 0:
                mean = mean + share * (rows @ self.drift[int(self.drifting[place])])
        return np.asarray(mean)

    def variance(self, variances: Sequence[Array], horizon: float) -> Array:
        """Variances of nodes from those of the members, of any leading axes."""
        inflation = sum(share * self.inflations[place] for place, share in self._places(horizon))
        plain = sum(weight * one for weight, one in zip(self.weights, variances, strict=True) if weight)
        return np.asarray(inflation * plain)

    def correlation(self, covariance: Array, horizon: float) -> Array:
        """Correlations of the errors of nodes, from the covariance that one member, `spread`, has at a horizon."""
        own = as_correlations(covariance)
        if not len(self.correlations):
            return own
        places = self._places(horizon)
        share = sum(part * self.shares[place] for place, part in places)
        shown = sum(part * self.correlations[place] for place, part in places)
        return np.asarray((1 - share) * own + share * shown)

    def _places(self, horizon: float, fades: bool = False) -> list[tuple[int, float]]:
        """Horizons between which one lies, with their shares; what fades is gone at twice the last one."""
        last = float(self.horizons[-1])
        if horizon >= last:
            return [(len(self.horizons) - 1, max(0.0, 2 - horizon / last) if fades else 1.0)]
        right = int(np.searchsorted(self.horizons, horizon, side="right"))
        if right == 0:
            return [(0, 1.0)]
        low, high = self.horizons[right - 1 : right + 1]
        share = float((horizon - low) / (high - low))
        return [(right - 1, 1 - share), (right, share)] if share else [(right - 1, 1.0)]


def as_correlations(covariance: Array) -> Array:
    """Correlations of a covariance."""
    deviations = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    return covariance / np.multiply.outer(deviations, deviations)


def last_rows(values: Array, origins: Indices) -> Array:
    """Rows at origins and before, latest first, (n_origins, LAGS * n_nodes); zero where there are none."""
    known = np.where(np.isfinite(values), values, 0.0)
    parts = [np.where((origins >= lag)[:, None], known[np.maximum(origins - lag, 0)], 0.0) for lag in range(LAGS)]
    return np.concatenate(parts, axis=1)


def completed(members: Sequence[Member], steps: Array, values: Array) -> Array:
    """Rows with holes filled by their mean given what is there and rows before, by the graph if it can."""
    ordered = sorted(members, key=lambda one: one.process.basis is None)
    return completed_in_turn(ordered[0].process, steps, values)
