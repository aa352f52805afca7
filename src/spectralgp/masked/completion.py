"""Signals with holes, completed: means, variances and draws of what was not observed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cho_solve, cholesky

from spectralgp._checks import Array
from spectralgp.carry import Carried
from spectralgp.masked.covariances import CompleteCovariance, EigenCovariance, covariance_of
from spectralgp.masked.solves import MaskedCovariance
from spectralgp.model import GraphGP
from spectralgp.modes import Modes
from spectralgp.signals import Completed, Incomplete

MOST_EXACT = 2**22  # values of deviations that are kept to know a covariance without error
DRAWS, FEWEST_DRAWS = 64, 2
MOST_DRAWN = 2**22  # values, of all draws together
DRAWN, ROUGHLY_DRAWN = 1e-3, 1e-2  # tolerances of solves for draws, whose number is what limits them; of few draws
SEED, PROBE_SEED = 1, 0


@dataclass(frozen=True, eq=False)
class Completion:
    """Signals with holes under a covariance: every value given those that were observed. Made by `completion_of`.

    All is in the units that the signals were read in: centred and scaled.

    Parameters
    ----------
    masked : MaskedCovariance
        Of what was observed, about its mean.
    signals : Incomplete
        The signals.
    carried : ndarray of shape (n_signals, n_nodes), or 0.0
        Their mean, where inputs carry over.
    most_deviations : int, optional
        How many deviations may stand for a covariance; as many as there is memory for if not given.
    start : ndarray of shape (n_signals, n_nodes), optional
        A guess of `solution`.
    """

    masked: MaskedCovariance
    signals: Incomplete
    carried: Any = 0.0
    most_deviations: int | None = None
    start: Array | None = None

    @property
    def complete(self) -> CompleteCovariance:
        """Covariance of complete signals."""
        return self.masked.complete

    @cached_property
    def _filled(self) -> tuple[Array, Array]:
        return self.masked.filled(self.centred, self.start)

    @property
    def centred(self) -> Array:
        """What was observed about its mean, zero elsewhere."""
        return np.where(self.signals.observed, self.signals.values - self.carried, 0.0)

    @property
    def mean(self) -> Array:
        """What was observed, and the conditional mean of the rest."""
        return self._filled[0] + self.carried

    @property
    def solution(self) -> Array:
        """``A_oo^-1`` times what was observed, zero elsewhere."""
        return self._filled[1]

    @property
    def signal_mean(self) -> Array:
        """Conditional mean of the signals without noise, at every entry."""
        return self.mean - self.complete.noise_variance * self.solution

    @cached_property
    def n_draws(self) -> int | None:
        """How many draws stand for the covariance of what was not observed; None where it is known."""
        observed = self.signals.observed
        n_missing = observed.size - int(np.count_nonzero(observed))
        most = DRAWS if self.most_deviations is None else self.most_deviations
        exact = MOST_EXACT // observed.size if self.most_deviations is None else most
        if isinstance(self.complete, EigenCovariance) and n_missing <= exact:
            return None
        return max(FEWEST_DRAWS, min(most, MOST_DRAWN // observed.size))

    @cached_property
    def deviations(self) -> Array:
        """What the mean may deviate by: outer products add up to its covariance, or estimate it."""
        is_long = self.signals.observed.size > MOST_DRAWN
        return self.masked.deviations(self.n_draws, np.random.default_rng(SEED), ROUGHLY_DRAWN if is_long else DRAWN)

    @cached_property
    def pulled(self) -> Array:
        """``A^-1`` times each of the deviations."""
        complete = self.complete
        if isinstance(complete, EigenCovariance):
            return complete.solved(self.deviations)
        return np.stack([complete.unload(complete.inverse(complete.load(one))) for one in self.deviations])

    def completed(self) -> Completed:
        """The signals with their holes filled."""
        return self.signals.completed(self.mean, self._deviations)

    def _deviations(self) -> Array:  # a function that can be pickled, for deviations that may never be asked for
        return self.deviations

    # ------------------------------------------------------------------------------------------------ variances

    @cached_property
    def variance(self) -> Array:
        """Variance of every value as it would be observed, shape (n_signals, n_nodes); zero where it was.

        Where the covariance is by draws, only what other signals leave open of a signal is: what is left given those is
        known (the law of total variance).
        """
        if self.n_draws is None:
            return np.sum(np.square(self.deviations), axis=0)
        if isinstance(self.complete, EigenCovariance):
            return self._by_signals(self.complete)
        return self._by_entries()

    def _by_signals(self, complete: EigenCovariance) -> Array:
        """Given the other signals, what is missing of a signal has a precision that is part of ``A^-1``."""
        variance, missing = np.zeros(self.signals.shape), ~self.signals.observed
        for signal, own in enumerate(missing):
            if own.any():
                factor = cholesky(complete.inverse_between(signal, signal, own), lower=True), True
                given = cho_solve(factor, np.eye(int(np.count_nonzero(own)))).diagonal()
                open_still = self.deviations[:, signal, own] - cho_solve(factor, self.pulled[:, signal, own].T).T
                variance[signal, own] = given + np.sum(np.square(open_still), axis=0)
        return variance

    def _by_entries(self) -> Array:
        """The same of single entries, where signals are too long for that."""
        precisions = self.complete.inverse_diagonal
        total = 1 / precisions
        for deviation, pulled in zip(self.deviations, self.pulled, strict=True):
            total += np.square(deviation - pulled / precisions)
        return np.where(self.signals.observed, 0.0, total)

    @cached_property
    def signal_variance(self) -> Array:
        """Variance of the signals without noise, at every entry."""
        noise = self.complete.noise_variance
        rest = self.complete.inverse_diagonal - np.sum(np.square(self.pulled), axis=0)
        of_observed = noise - noise**2 * np.maximum(rest, 0.0)
        return np.maximum(np.where(self.signals.observed, of_observed, self.variance - noise), 0.0)

    # ---------------------------------------------------------------------------------------------------- draws

    def signal_draws(self, n_draws: int, random_state: np.random.Generator) -> Array:
        """Draws of the signals without noise, shape (n_draws, n_signals, n_nodes), one solve each (Matheron's rule)."""
        complete, noise = self.complete, self.complete.noise_variance
        draws = []
        for _ in range(n_draws):
            signal = complete.unload(complete.draw_signal(random_state))
            noisy = signal + np.sqrt(noise) * random_state.standard_normal(signal.shape)
            filled, solution = self.masked.filled(noisy)
            draws.append(self.signal_mean + signal - (filled - noise * solution))
        return np.stack(draws)

    def log_density(self) -> tuple[float, float]:
        """Log density of what was observed, in the units it was read in, and its standard error."""
        start = self.solution if "_filled" in self.__dict__ else self.start  # no fine solve where a rough one will do
        return self.masked.log_density(self.centred, np.random.default_rng(PROBE_SEED), start)


def completion_of(
    prior: GraphGP,
    inputs: Array,
    input_modes: Modes,
    signals: Incomplete,
    carried: Carried | None = None,
    complete: CompleteCovariance | None = None,
    most_deviations: int | None = None,
    start: Array | None = None,
) -> Completion:
    """Signals with holes under a prior, or under another covariance of complete signals about the same mean."""
    covariance = covariance_of(prior, input_modes) if complete is None else complete
    mean = prior.carried_values(carried, inputs, signals.units)
    return Completion(MaskedCovariance(covariance, signals.observed), signals, mean, most_deviations, start)
