"""Kinds of filters: low-pass, high-pass, band-pass, band-stop, with several humps, or flat."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from spectralgp._basics.checks import Array
from spectralgp.model.spectra import Spectrum

Modes = tuple[Array, Array]  # frequencies of a graph, and their shares
Kind = Literal["none", "flat", "low-pass", "high-pass", "band-pass", "band-stop", "several humps"]

N_BINS = 30  # of the spectrum, in each of which a filter is looked at once
ZERO_FILTER = 1e-12  # largest value of a filter that is called none
SMALLEST_HUMP = 0.1  # share of all power that lies above the valley beside a hump, below which it is none
WEAK_SHARE = 0.5  # share of the power above its least value, below which a kind is a weak one
TOLD_APART = 3.5  # deviations between powers at two frequencies that are taken to differ: some six nats of evidence

# of a kind of filter: in general, and of the carry-over filter
MEANINGS: dict[Kind, tuple[str, str]] = {
    "none": ("none", "none"),
    "flat": ("flat: nodes are unrelated", "patterns of every scale carry over alike"),
    "low-pass": ("low-pass: neighbours are alike", "smooth patterns carry over most"),
    "high-pass": ("high-pass: neighbours are opposed", "rough patterns carry over most"),
    "band-pass": ("band-pass: patterns of a middle scale stand out", "patterns of a middle scale carry over most"),
    "band-stop": (
        "band-stop: smooth patterns and rough ones stand out, those between are weak",
        "smooth patterns and rough ones carry over most",
    ),
    "several humps": (
        "with several humps: patterns of some scales stand out",
        "patterns of some scales carry over most",
    ),
}


def representative_modes(spectrum: Spectrum) -> Modes:
    """Frequencies, ascending, and their shares: the lowest, the highest, and the mean of each bin between them."""
    values = np.clip(spectrum.eigenvalues, 0.0, spectrum.upper)
    counts = np.maximum(spectrum.multiplicities, 0.0)  # single weights of a quadrature may be negative
    low, high = float(values.min()), float(values.max())
    inside = np.linspace(low, high, N_BINS + 1)
    bins = np.minimum(np.searchsorted(inside, values, side="right"), N_BINS)
    bins = np.where(values <= low, 0, np.where(values >= high, N_BINS + 1, bins))
    totals = np.bincount(bins, counts, N_BINS + 2)
    there = totals > 0
    points = np.bincount(bins, counts * values, N_BINS + 2)[there] / totals[there]
    return points, totals[there] / totals.sum()


@dataclass(frozen=True, eq=False)
class FilterShape:
    """Kind of a filter, with its values at both ends of the spectrum and at its turning points."""

    kind: Kind
    is_weak: bool  # most power is at its least value; of a flat filter: differences may be chance
    turns: tuple[tuple[float, float], ...]  # frequency and value, ascending

    def meaning(self, carries: bool = False) -> str:
        """Kind and its meaning for signals, or for the carry-over term, such as "low-pass: neighbours are alike"."""
        said = MEANINGS[self.kind][carries]
        if not self.is_weak:
            return said
        if self.kind == "flat" and not carries:
            return "flat within its uncertainty: there is no evidence that nodes are related"
        return f"{said}, but little more than others" if carries else f"weakly {said}, a little"

    @property
    def values(self) -> str:
        """Values by frequency, such as "2 at frequency 0, 0.5 at the highest"."""
        *before, (_, last) = self.turns
        if not before:
            return f"{last:.3g} at the one frequency"
        listed = [f"{value:.3g} at frequency {at:.2g}" for at, value in before]
        return ", ".join([*listed, f"{last:.3g} at the highest"])


def shape_of(modes: Modes, values: Array, draws: Array | None = None) -> FilterShape:
    """Shape of a filter from its values at the frequencies of `modes`, and from draws of these, if any.

    The kind follows from shares of the power, the square of a filter, summed over the graph's frequencies. A filter is
    flat if no two powers, over their sum, differ by more than `TOLD_APART` deviations of the draws, so never if the
    evidence against a flat one is large. Otherwise turning points are left out, the smallest first, if the powers on
    either side do not differ by as much or the hump holds less than `SMALLEST_HUMP` of it; the others give the kind.
    """
    points, shares = modes
    if float(np.max(np.abs(values))) < ZERO_FILTER:
        return FilterShape("none", False, _turns(points, values, []))
    power = _relative(values, shares)
    above = float(1 - power.min())  # share of the power above its least, as the mean is one
    distances = None
    if draws is not None:
        drawn = _relative(draws, shares)
        spread = np.std(drawn[:, :, None] - drawn[:, None, :], axis=0, ddof=1)
        with np.errstate(divide="ignore", invalid="ignore"):  # where draws do not differ, as no power does from itself
            distances = np.nan_to_num(np.abs(power[:, None] - power) / spread, posinf=np.inf)
    if above < SMALLEST_HUMP if distances is None else distances.max() < TOLD_APART:
        return FilterShape("flat", above >= SMALLEST_HUMP, _turns(points, values, []))
    extremes = _pruned(power, shares, distances)
    is_rising = [bool(power[after] > power[before]) for before, after in pairwise(extremes)]
    kinds: dict[tuple[bool, ...], Kind] = {(False,): "low-pass", (True,): "high-pass"}
    kinds |= {(True, False): "band-pass", (False, True): "band-stop"}
    kind = kinds.get(tuple(is_rising), "several humps")
    return FilterShape(kind, above < WEAK_SHARE, _turns(points, values, extremes))


def _relative(values: Array, shares: Array) -> Array:
    """Power divided by its mean."""
    power = np.square(values)
    return np.asarray(power / (power @ shares)[..., None])


def _turns(points: Array, values: Array, extremes: list[int]) -> tuple[tuple[float, float], ...]:
    return tuple((float(points[place]), float(values[place])) for place in sorted({0, *extremes, values.size - 1}))


def _pruned(power: Array, shares: Array, distances: Array | None) -> list[int]:
    """Ends and turning points between which the power changes by more than chance and a small amount."""
    slopes = np.sign(np.diff(power))
    moving = np.flatnonzero(slopes)
    turning = [int(after) for before, after in pairwise(moving) if slopes[before] != slopes[after]]
    extremes = [0, *turning, power.size - 1]
    while True:
        steps = np.argsort(np.abs(np.diff(power[extremes]))).tolist()
        chance = [step for step in steps if not _is_real(extremes, step, power, shares, distances)]
        if not chance:
            return extremes
        if len(extremes) == 2:
            if distances is None:
                return extremes
            # what is told apart lies between other places than the largest and the least
            return sorted(int(place) for place in np.unravel_index(np.argmax(distances), distances.shape))
        # an end goes alone, so that the other side goes on to it; within, a hump and a valley go together
        weakest = chance[0]
        if weakest == 0:
            del extremes[0]
        elif weakest == len(extremes) - 2:
            del extremes[-1]
        else:
            del extremes[weakest : weakest + 2]


def _is_real(extremes: list[int], step: int, power: Array, shares: Array, distances: Array | None) -> bool:
    """Return whether a step between turning points exceeds chance, and its hump a small amount of power."""
    ends = extremes[step], extremes[step + 1]
    if distances is not None and distances[ends] < TOLD_APART:
        return False
    top = step if power[ends[0]] > power[ends[1]] else step + 1
    hump = slice(extremes[top - 1] if top > 0 else None, extremes[top + 1] + 1 if top + 1 < len(extremes) else None)
    above = power[hump] - min(power[list(ends)])
    return float(shares[hump] @ np.maximum(above, 0.0)) >= SMALLEST_HUMP
