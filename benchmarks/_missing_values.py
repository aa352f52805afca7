"""Complete data sets, and patterns of entries that are removed from them: at random, outages, whole nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from _real_data import RealSet, real_set

from spectralgp.datasets import load_us_income

Array = np.ndarray
OUTAGE, OUTAGE_SHARE = 10, 0.2  # signals in a row, share of all entries
N_UNSEEN = 5


def at_random(shape: tuple[int, int], share: float, random_state: np.random.Generator) -> Array:
    """A share of the entries, each as likely as any other."""
    removed = np.zeros(shape, dtype=bool)
    removed.flat[random_state.choice(removed.size, round(share * removed.size), replace=False, shuffle=False)] = True
    return removed


def outages(shape: tuple[int, int], share: float, random_state: np.random.Generator, length: int = OUTAGE) -> Array:
    """Runs of signals at random nodes until a share of the entries is gone; two at a node never touch."""
    n_signals, n_nodes = shape
    removed = np.zeros(shape, dtype=bool)
    starts = n_signals - length + 1
    wanted = round(share * removed.size)
    for place in random_state.permutation(starts * n_nodes):
        start, node = divmod(int(place), n_nodes)
        if wanted <= 0:
            return removed
        if not removed[max(start - 1, 0) : start + length + 1, node].any():
            removed[start : start + length, node] = True
            wanted -= length
    if wanted > 0:
        raise ValueError(f"share must leave room between outages; got {share}. Ask for fewer or for shorter ones.")
    return removed


def whole_nodes(shape: tuple[int, int], n_unseen: int, random_state: np.random.Generator) -> Array:
    """All entries of some nodes."""
    removed = np.zeros(shape, dtype=bool)
    removed[:, random_state.choice(shape[1], n_unseen, replace=False)] = True
    return removed


@dataclass(frozen=True)
class Removal:
    """A pattern of missing entries: its description, and a function that draws it for signals of a shape."""

    words: str
    removed: Callable[[tuple[int, int], np.random.Generator], Array]


REMOVALS: dict[str, Removal] = {
    **{
        f"{share:.0%} at random": Removal(
            f"{share:.0%} of all entries, each as likely as any other",
            lambda shape, random_state, share=share: at_random(shape, share, random_state),
        )
        for share in (0.1, 0.3, 0.5)
    },
    "outages": Removal(
        f"outages of {OUTAGE} signals in a row at random nodes, none next to another at the same node, until "
        f"{OUTAGE_SHARE:.0%} of all entries are gone",
        lambda shape, random_state: outages(shape, OUTAGE_SHARE, random_state),
    ),
    "unseen nodes": Removal(
        f"every entry of {N_UNSEEN} random nodes",
        lambda shape, random_state: whole_nodes(shape, N_UNSEEN, random_state),
    ),
}


def _weather() -> RealSet:
    pairs = real_set("weather")  # a day and the next: the first day is an input only
    days = np.vstack([pairs.inputs[:1], pairs.signals])
    return replace(
        pairs,
        words="temperatures of 45 Swedish cities, input: the number of the day",
        inputs=np.arange(len(days), dtype=float)[:, None],
        signals=days,
    )


def _incomes() -> RealSet:
    data = load_us_income()
    return replace(
        real_set("incomes"),
        words="relative income per head of 48 US states, which sums to zero in every year, input: the year",
        inputs=data.years[:, None].astype(float),
        signals=100 * data.relative_incomes,
    )


SETS: dict[str, Callable[[], RealSet]] = {"weather": _weather, "incomes": _incomes}


@cache
def complete_set(name: str) -> RealSet:
    """Complete data set of a name, with the time of each signal as its input; cached."""
    return SETS[name]()


@dataclass(frozen=True)
class Problem:
    """A data set and a pattern of missing entries."""

    set_name: str
    removal: str

    @property
    def name(self) -> str:
        return f"{self.set_name}, {self.removal}"

    def removed(self, seed: int) -> Array:
        """Entries that are removed under a seed."""
        shape = complete_set(self.set_name).signals.shape
        return REMOVALS[self.removal].removed(shape, np.random.default_rng(seed))
