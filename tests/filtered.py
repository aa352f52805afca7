"""A second kind of rows: signals that follow one another in time, by a Kalman filter in place of eigenvectors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from spectralgp.model.fields.factors import PosteriorRows, PowersOfEigenvalues, RowCovariance
from spectralgp.model.kernels.inputs import NewInputs

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Filtered(RowCovariance):
    """A process of Ornstein and Uhlenbeck at every mode: ``K_tu = exp(-|t - u| / length)``, Matern of smoothness 1/2.

    Its state is one number a mode. Coordinates are the signals in the order of time, in which filters run.

    Parameters
    ----------
    moments : ndarray of shape (n_signals,)
        Times of the signals, in any order.
    length : float
        Length scale.
    """

    moments: Array
    length: float

    @property
    def n_signals(self) -> int:
        """Number of moments."""
        return self.moments.size

    @cached_property
    def order(self) -> Array:
        """The signals by time."""
        return np.argsort(self.moments, kind="stable")

    @cached_property
    def decays(self) -> Array:
        """What is left of the state from one moment to the next."""
        return np.exp(-np.diff(self.moments[self.order]) / self.length)

    def load(self, signals: Array) -> Array:
        """In the order of time."""
        return signals[..., self.order, :]

    def unload(self, coordinates: Array) -> Array:
        """In the order that they came in."""
        return coordinates[..., np.argsort(self.order), :]

    def apply(self, coordinates: Array, power: Array, own: Array, exponent: float = 1.0) -> Array:
        """By recursions."""
        verbs = {1.0: self.times, -1.0: self.solve, 0.5: self.drawn, -0.5: self.whitened}
        return verbs[exponent](coordinates, power, own)

    def times(self, coordinates: Array, power: Array, own: Array) -> Array:
        """Two recursions, forwards and backwards in time."""
        total, ahead, back = (power + own) * coordinates, 0.0, 0.0
        for step, decay in enumerate(self.decays):
            ahead = decay * (ahead + coordinates[..., step, :])
            total[..., step + 1, :] += power * ahead
        for step, decay in reversed(list(enumerate(self.decays))):
            back = decay * (back + coordinates[..., step + 1, :])
            total[..., step, :] += power * back
        return total

    def gains(self, power: Array, own: Array) -> tuple[Array, Array]:
        """Variances of innovations, and the share of each that the state takes up, both (n_signals, n_modes)."""
        variances, shares, state = [], [], power
        for step in range(self.n_signals):
            if step:
                state = power + self.decays[step - 1] ** 2 * (state - power)
            variances.append(state + own)
            shares.append(np.divide(state, state + own, out=np.zeros(state.shape), where=state + own > 0))
            state = state * (1 - shares[-1])
        return np.array(variances).reshape(-1, power.size), np.array(shares).reshape(-1, power.size)

    def innovations(self, coordinates: Array, shares: Array) -> Array:
        """What a filter does not predict of each value from those before it."""
        found, state = np.empty(coordinates.shape), 0.0
        for step in range(self.n_signals):
            state = state * self.decays[step - 1] if step else state
            found[..., step, :] = coordinates[..., step, :] - state
            state = state + shares[step] * found[..., step, :]
        return found

    def solve(self, coordinates: Array, power: Array, own: Array) -> Array:
        """A filter, and the same backwards."""
        variances, shares = self.gains(power, own)
        scaled = self.innovations(coordinates, shares) / variances
        found, adjoint = np.empty(coordinates.shape), 0.0
        for step in reversed(range(self.n_signals)):
            adjoint = adjoint * self.decays[step] if step < self.n_signals - 1 else adjoint
            found[..., step, :] = scaled[..., step, :] + shares[step] * adjoint
            adjoint = adjoint - found[..., step, :]
        return found

    def log_determinants(self, power: Array, own: Array) -> Array:
        """Sum over the innovations."""
        return np.log(self.gains(power, own)[0]).sum(axis=0)

    def drawn(self, white: Array, power: Array, own: Array) -> Array:
        """By innovations: a triangular root."""
        variances, shares = self.gains(power, own)
        found, state = np.empty(white.shape), 0.0
        for step in range(self.n_signals):
            state = state * self.decays[step - 1] if step else state
            news = np.sqrt(variances[step]) * white[..., step, :]
            found[..., step, :] = state + news
            state = state + shares[step] * news
        return found

    def whitened(self, coordinates: Array, power: Array, own: Array) -> Array:
        """Innovations over their standard deviations."""
        variances, shares = self.gains(power, own)
        return self.innovations(coordinates, shares) / np.sqrt(variances)

    def column(self, signal: int, power: Array, own: Array, inverse: bool = False) -> Array:
        """A product with one signal, or a solution for it."""
        unit = np.zeros((self.n_signals, power.size))
        unit[signal] = 1.0
        return self.unload((self.solve if inverse else self.times)(self.load(unit), power, own))

    def diagonal(self, power: Array, own: Array, inverse: bool = False) -> Array:
        """One column after the other."""
        columns = [self.column(signal, power, own, inverse)[signal] for signal in range(self.n_signals)]
        return np.array(columns).reshape(-1, power.size)

    def at(self, new: NewInputs, powers: PowersOfEigenvalues) -> LeftOfFiltered:
        """By the moments of the new inputs."""
        return LeftOfFiltered(self, self.joined(new), powers)

    def joined(self, new: NewInputs) -> Filtered:
        """All moments."""
        return replace(self, moments=np.concatenate([self.moments, new.inputs[:, 0]]))


@dataclass(frozen=True, eq=False)
class LeftOfFiltered(PosteriorRows):
    """Forecasts: solutions for the known signals, carried on to all moments.

    Parameters
    ----------
    known, every : Filtered
        The known signals, and the new ones after them.
    powers : callable
        Of eigenvalues.
    """

    known: Filtered
    every: Filtered
    powers: PowersOfEigenvalues

    @property
    def n_new(self) -> int:
        """Number of new inputs."""
        return self.every.n_signals - self.known.n_signals

    def carried(self, solution: Array, power: Array) -> Array:
        """What coordinates of the known signals say of the new ones by their covariance."""
        shape = (*solution.shape[:-2], self.n_new, solution.shape[-1])
        block = np.concatenate([self.known.unload(solution), np.zeros(shape)], axis=-2)
        everything = self.every.times(self.every.load(block), power, np.zeros(power.shape))
        return self.every.unload(everything)[..., self.known.n_signals :, :]

    def apply(self, coefficients: Array, eigenvalues: Array) -> Array:
        """Means at the new inputs."""
        power, own = self.powers(eigenvalues)
        return self.carried(self.known.solve(coefficients, power, own), power)

    def matrices(self, eigenvalues: Array) -> Array:
        """Means of one signal each."""
        n_known = self.known.n_signals
        units = np.broadcast_to(np.eye(n_known)[:, :, None], (n_known, n_known, eigenvalues.size))
        return self.apply(units, eigenvalues).transpose(1, 0, 2)

    def covariances(self, eigenvalues: Array) -> Array:
        """Prior covariances, less what the known signals explain of them."""
        power, n_known = self.powers(eigenvalues)[0], self.known.n_signals
        whole = self.every.matrices(power, np.zeros(power.shape))
        across, within = whole[:, n_known:, :n_known], whole[:, n_known:, n_known:]
        explained = self.apply(self.known.load(across.transpose(1, 2, 0)), eigenvalues)
        return within - explained.transpose(2, 1, 0)

    def variances(self, eigenvalues: Array) -> Array:
        """Their diagonals."""
        return np.diagonal(self.covariances(eigenvalues), axis1=1, axis2=2).T
