"""The log marginal likelihood and its gradient, from a spectrum."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from spectralgp._basics.checks import Array
from spectralgp.fields.conditioning import condition
from spectralgp.fields.prior import GraphGP
from spectralgp.fields.rows import Inputs
from spectralgp.signals import Signals
from spectralgp.spectra import SpectralData


@dataclass(frozen=True, eq=False)
class Evidence:
    """Log marginal likelihood of signals, with its derivatives in everything the covariance is made of.

    Parameters
    ----------
    rows : Inputs
        How signals covary.
    power : ndarray of shape (n_frequencies,)
        ``gamma``.
    own : ndarray of shape (n_frequencies,)
        ``eta + sigma^2``.
    data : SpectralData
        Signals in both eigenbases, ``Z = U^T Y V``, or their energies there.
    """

    rows: Inputs
    power: Array
    own: Array
    data: SpectralData

    @cached_property
    def variances(self) -> Array:
        """``D``."""
        return self.rows.variances(self.power, self.own)

    @cached_property
    def precisions(self) -> Array:
        """``1 / D``."""
        return 1 / self.variances

    @cached_property
    def _energies(self) -> Array:
        return self.data.energies * self.precisions

    @cached_property
    def log_likelihood(self) -> float:
        """Total in nats, the 2 pi term included: equations (5) and (13)."""
        logs = float(np.sum(np.log(self.variances) @ self.data.multiplicities))
        return -0.5 * (logs + float(np.sum(self._energies)) + self.data.n_observations * float(np.log(2 * np.pi)))

    @cached_property
    def _slopes(self) -> Array:
        """``E_ij``, the derivative in ``D_ij``: equation (6)."""
        return 0.5 * (self._energies - self.data.multiplicities) * self.precisions

    @cached_property
    def power_gradient(self) -> Array:
        """Derivative in the power at each frequency, equation (6)."""
        gradient: Array = self.rows.modes.values @ self._slopes
        return gradient

    @cached_property
    def residual_gradient(self) -> Array:
        """Derivative in the power of the residual at each frequency, equation (16)."""
        return self._slopes.sum(axis=0)

    @cached_property
    def noise_gradient(self) -> float:
        """Derivative in the noise variance, equation (6)."""
        return float(np.sum(self._slopes))

    @cached_property
    def input_covariance_gradient(self) -> Array:
        """Derivative in the entries of ``K``, equation (7), shape (n_signals, n_signals).

        No derivative of an eigenvector enters, so repeated eigenvalues are harmless.
        """
        vectors, power = self.rows.turn, self.power
        gradient = self.data.outer(vectors, np.sqrt(power) * self.precisions)
        shares = (power * self.data.multiplicities * self.precisions).sum(axis=1)
        if np.all(shares >= 0):  # else a quadrature's weights are negative somewhere
            half = vectors * np.sqrt(shares)
            gradient -= half @ half.T
        else:
            gradient -= (vectors * shares) @ vectors.T
        gradient *= 0.5
        return gradient

    @cached_property
    def node_covariance_gradient(self) -> Array:
        """Derivative in the entries of ``V^T B B^T V``: equation (7) with the two sides exchanged.

        Shape (n_nodes, n_nodes), in the eigenbasis of the present ``B B^T``. Only data on an exact spectrum have it.
        """
        inputs, precisions = self.rows.modes.values, self.precisions
        gradient = self.data.node_gram(np.sqrt(inputs)[:, None] * precisions)
        gradient[np.diag_indices_from(gradient)] -= (inputs[:, None] * precisions).sum(axis=0)
        return 0.5 * gradient


def log_marginal_likelihood(prior: GraphGP, inputs: Array, signals: ArrayLike | Signals) -> float:
    """Log probability of signals under a prior, equation (5): a total in nats with the 2 pi term.

    Parameters
    ----------
    prior : GraphGP
        The model.
    inputs : array of shape (n_signals, n_features)
        What the signals were observed at; ``K`` itself for a precomputed kernel; ignored but for its length where
        signals are independent.
    signals : array of shape (n_signals, n_nodes)
        Signals in rows; NaN is what was not observed. The evidence is then that of what was: exact where a matrix of
        what is missing, or of what is not, can be written out; else with an error by random probes.

    Examples
    --------
    >>> import numpy as np
    >>> from spectralgp import Graph, Identity, graph_gp, log_marginal_likelihood
    >>> prior = graph_gp(Graph.from_edges([(0, 1)]), Identity(), None, noise_variance=1.0)
    >>> round(log_marginal_likelihood(prior, np.zeros((1, 0)), np.array([[0.0, 2.0]])), 4)
    -3.531
    """
    return condition(prior, inputs, signals).log_evidence()
