"""Search for the default: variants compared on held-out values, and weights of the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spectralgp._basics.checks import Array, Indices
from spectralgp._basics.saved import NotNegative, Number
from spectralgp.graphs import LAPLACIANS, LaplacianKind
from spectralgp.learning.candidates import (
    TERMS,
    Candidate,
    Choices,
    Variant,
    differ_in_scale,
    start_from,
    with_tuned_means,
)
from spectralgp.learning.fit import Fit, Solver
from spectralgp.learning.folds import Folds, FoldScores
from spectralgp.learning.hidden import HiddenEntries
from spectralgp.learning.weights import stacking_weights, weights_by_crps, weights_by_error
from spectralgp.model.kernels import GraphKernel, Identity, Polynomial

DEGREE, HIGHER_DEGREE = 2, 4
TRIED_LAPLACIANS: tuple[LaplacianKind, ...] = ("combinatorial", "normalized")
SMALLEST_SHARE = 0.01  # least weight of a member of the default


@dataclass(frozen=True)
class ComparedModel:
    """Held-out score and weight of a compared model."""

    name: str  # with its Laplacian
    score: Number  # mean log density of a held-out signal, in nats
    weight: NotNegative  # in the ensemble; zero if left out


@dataclass(frozen=True, eq=False)
class WeightedCandidates:
    """Candidates to learn from all signals, and their weights."""

    candidates: Sequence[Candidate]
    weights: Array  # in predictions
    starts: Sequence[Fit | None]  # of learning, one per candidate
    compared: tuple[ComparedModel, ...] = ()  # all compared models; empty for a single model
    filling: Array | None = None  # weights of imputed values, if they differ
    is_learnt: bool = False  # whether the starts are fits to all signals


class Comparison:
    """Variants with their held-out scores, in the order of comparison."""

    def __init__(self, validation: Folds | HiddenEntries, solver: Solver) -> None:
        self.validation, self.solver = validation, solver
        self.variants, self.candidates = list[Variant](), list[Candidate]()  # the latter with those of tuned means last
        self.stages: list[FoldScores] = []  # one per call of score
        self.held_out: FoldScores  # of all candidates

    def score(self, variants: Sequence[Variant]) -> Array:
        """Score further variants."""
        if not variants:
            return np.empty(0)
        own = [one.candidate for one in variants]
        near = next((choice.fit for choice in variants[0].setting.chosen), None)
        if self.stages:
            near = self.held_out.fits[int(np.argmax(self.held_out.scores))]
        starts = [near and start_from(near, one) for one in own]
        self.stages.append(self.validation.score(own, self.solver, starts))
        self.held_out = FoldScores.joined(self.stages)
        self.variants += variants
        self.candidates += own
        return self.stages[-1].scores

    @property
    def best(self) -> Variant:
        """Variant with the highest score."""
        return self.variants[int(np.argmax(self.held_out.scores))]

    def tune_means(self) -> None:
        """Score members with tuned means too, if signals differ in scale under the best model.

        Models of transformed signals are left out, and means are not tuned with missing values.
        """
        held_out, folds = self.held_out, self.validation
        if not isinstance(folds, Folds) or not folds.tunes_means:
            return
        plain = np.array([place for place, one in enumerate(self.candidates) if one.transformation is None])
        best = int(plain[np.argmax(held_out.scores[plain])])
        candidate, model = self.candidates[best], held_out.fits[best].model
        if not differ_in_scale(candidate, folds.parts[candidate.task, 0], model):  # in the first fold
            return
        weights = self._weights(plain, held_out.subset(plain), None)
        tuned = [with_tuned_means(self.candidates[place]) for place in plain[weights > 0].tolist()]
        self.stages.append(folds.score(tuned, self.solver))
        self.held_out = FoldScores.joined(self.stages)
        self.candidates += tuned

    def stacked(self) -> WeightedCandidates:
        """All candidates, with the weights of stacking."""
        weights = stacking_weights(self.held_out.log_densities)
        return WeightedCandidates(self.candidates, weights, [None] * weights.size, self._compared(weights))

    def weighted(self) -> WeightedCandidates:
        """Members and their weights, by density; by CRPS between models of logarithms and the others.

        With tied values, such as zeros, the density of logarithms grows without bound as their constant falls.
        """
        held_out, most, filling = self.held_out, self.validation.most_members, None
        sees = [one.transformation for one in self.candidates]
        has_slopes = np.array([one is not None and one.has_slopes for one in sees])
        groups = [group for group in (np.flatnonzero(~has_slopes), np.flatnonzero(has_slopes)) if group.size]
        weights = self._weights_between(groups) if len(groups) > 1 else self._weights(groups[0], held_out, most)
        if held_out.of_signals is not None:
            filling, weights = weights, self._weights(groups[0], held_out.of_signals, most)
        falls = np.array([one.is_fallback for one in self.candidates])
        weights = np.where(falls, np.maximum(weights, SMALLEST_SHARE), weights)  # it is never left out
        weights = weights / weights.sum() if falls.any() else weights
        kept = np.flatnonzero(weights if filling is None else weights + filling)
        starts = dict(zip(self.candidates, held_out.fits, strict=True))
        own = [self.candidates[place] for place in kept]
        return WeightedCandidates(
            own,
            weights[kept],
            [starts[one.untuned or one] for one in own],
            self._compared(weights),
            None if filling is None else filling[kept],
            self.validation.has_final_fits,
        )

    def _compared(self, weights: Array) -> tuple[ComparedModel, ...]:
        """Names, scores and weights of all compared models."""
        rows = zip(self.candidates, self.held_out.log_densities.mean(axis=0).tolist(), weights.tolist(), strict=True)
        return tuple(ComparedModel(candidate.described, score, weight) for candidate, score, weight in rows)

    def _weights_between(self, groups: Sequence[Indices]) -> Array:
        """Weights by density within each group and by CRPS between the groups."""
        most, held_out, weights = self.validation.most_members, self.held_out, np.zeros(len(self.candidates))
        for group in groups:
            weights[group] = self._weights(group, held_out.subset(group), most)
        members = np.flatnonzero(weights)
        (observed, *_), points = zip(*(self.validation.values(self.candidates[one]) for one in members), strict=True)
        n_points = points[0].shape[1]  # all as likely
        own = [np.where(np.isin(members, group), weights[members], 0.0) for group in groups]
        shares = np.repeat(np.array(own) / n_points, n_points, axis=1)
        for share, group in zip(weights_by_crps(observed, np.hstack(points), shares), groups, strict=True):
            weights[group] *= share
        return without_negligible(weights, most)

    def _weights(self, group: Indices, held_out: FoldScores, most: int | None) -> Array:
        """Weights of some candidates by density, and by squared error too if some have tuned means."""
        if held_out.errors is not None and any(self.candidates[one].untuned is not None for one in group):
            n_values = held_out.n_nodes * len(held_out.errors)
            return without_negligible(weights_by_error(held_out.log_densities, held_out.errors, n_values), None)
        prior = 0.0 if held_out.worth is None else 1.0
        rows, counts = held_out.observations
        found = stacking_weights(rows, counts, prior, n_steps=1_000, tolerance=1e-6, negligible=SMALLEST_SHARE)
        return without_negligible(found, most)


def without_negligible(weights: Array, most: int | None) -> Array:
    """Weights without negligible ones, of at most `most` members."""
    weights = np.where(weights >= SMALLEST_SHARE, weights, 0.0)
    if most is not None and np.count_nonzero(weights) > most:
        weights = np.where(weights >= np.sort(weights)[-most], weights, 0.0)
    return weights / weights.sum()


def search(comparison: Comparison, choices: Choices) -> None:
    """Compare the variants of the default.

    1. Filters on two Laplacians; on three if some node was never observed. Without a graph, independent nodes. The
       best of these with a free residual, since evidence may misjudge the one that it chose.
    2. The best of these with a higher degree, and with another scale of the nodes.
    3. Both, if each alone is better; the best of these without a graph, with a lagged term and, for complete values in
       no order in time (where lines extrapolate) and an open input kernel, with one of its terms alone.
    4. The best of all on logarithms or, if rows are in time order, on changes, with and without inputs.
    5. Members with tuned means, if signals differ in scale.

    A large graph has one Laplacian, both degrees at once, and no model without it. With ``effort="fast"`` there is one
    Laplacian if all nodes were observed, one degree, no term alone, and one model of logarithms.
    """
    setting, (scale, *others) = choices.setting, choices.setting.signals
    has_edges, is_small = setting.task.graph.n_edges > 0, not setting.task.spectrum.needs_passes
    is_fast = choices.stacking.effort == "fast"
    kernels: list[GraphKernel] = [Identity()]
    if has_edges and is_small:
        # a node that was never observed depends on its neighbours alone: one of few edges needs another Laplacian
        laplacians = TRIED_LAPLACIANS[is_fast:] if setting.task.signals.observed.any(axis=0).all() else LAPLACIANS
        kernels = [Polynomial(DEGREE, laplacian=laplacian) for laplacian in laplacians]
    elif has_edges:
        kernels = [Polynomial(degree) for degree in (DEGREE, HIGHER_DEGREE)[: 2 - is_fast]]
    for stage in [[kernel] for kernel in kernels] if is_small else [kernels]:  # the second starts from the first
        comparison.score([Variant(setting, kernel, scale) for kernel in stage])
    if has_edges and is_small and isinstance(setting.residual, str) and not is_fast:
        comparison.score([replace(comparison.best, is_free=True)])
    best, highest = comparison.best, np.max(comparison.held_out.scores)
    steps: list[dict[str, Any]] = []
    if has_edges and is_small and not is_fast:
        steps.append({"kernel": replace(best.kernel, degree=HIGHER_DEGREE)})
    steps += [{"scale": other} for other in others]
    for step, score in zip(steps, comparison.score([replace(best, **step) for step in steps]), strict=True):
        if score > highest:
            best = replace(best, **step)
    further = [] if best in comparison.variants else [best]
    if has_edges and is_small:
        further.append(replace(best, kernel=Identity(laplacian=kernels[0].laplacian, scaled=True), is_free=True))
    if has_edges and setting.columns is not None:
        further.append(replace(best, carries=True))
    if setting.is_kernel_open and is_small and setting.task.is_complete and choices.order is None and not is_fast:
        further += [replace(best, terms=(term,), is_free=True) for term in TERMS]
    comparison.score(further)
    best = comparison.best
    if choices.order is not None:
        unrelated, related = choices.further
        comparison.score([replace(best, setting=unrelated, carries=False), replace(best, setting=related)])
    else:
        for logarithms in choices.further:
            lagged = [False] if logarithms.columns is None else [best.carries] if is_fast else [False, True]
            comparison.score([replace(best, setting=logarithms, carries=carries) for carries in lagged])
    comparison.tune_means()
