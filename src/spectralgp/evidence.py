"""The log marginal likelihood and its gradient, from a spectrum."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from spectralgp._checks import Array
from spectralgp.covariance import DataCovariance
from spectralgp.masked import completion_of
from spectralgp.model import GraphGP
from spectralgp.modes import Modes
from spectralgp.signals import Incomplete, Signals, as_training
from spectralgp.spectrum import SpectralData


@dataclass(frozen=True, eq=False)
class Evidence:
    """Log marginal likelihood of signals, with its derivatives in everything the covariance is made of.

    Parameters
    ----------
    input_modes : Modes
        ``K = U diag(kappa) U^T``.
    covariance : DataCovariance
        Of the signals, with ``kappa`` among its parts.
    data : SpectralData
        Signals in both eigenbases, ``Z = U^T Y V``, or their energies there.
    """

    input_modes: Modes
    covariance: DataCovariance
    data: SpectralData

    @cached_property
    def log_likelihood(self) -> float:
        """Total in nats, the 2 pi term included: equations (5) and (13)."""
        return self.covariance.log_likelihood(self.data)

    @cached_property
    def _slopes(self) -> Array:
        return self.covariance.slopes(self.data)

    @cached_property
    def power_gradient(self) -> Array:
        """Derivative in the power at each frequency, equation (6)."""
        gradient: Array = self.input_modes.values @ self._slopes
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
        vectors, power, precisions = self.input_modes.vectors, self.covariance.power, self.covariance.precisions
        inner = self.data.gram(np.sqrt(power) * precisions)
        inner[np.diag_indices_from(inner)] -= (power * self.data.multiplicities * precisions).sum(axis=1)
        return 0.5 * vectors @ inner @ vectors.T

    @cached_property
    def node_covariance_gradient(self) -> Array:
        """Derivative in the entries of ``V^T B B^T V``: equation (7) with the two sides exchanged.

        Shape (n_nodes, n_nodes), in the eigenbasis of the present ``B B^T``. Only data on an exact spectrum have it.
        """
        inputs, precisions = self.input_modes.values, self.covariance.precisions
        gradient = self.data.node_gram(np.sqrt(inputs)[:, None] * precisions)
        gradient[np.diag_indices_from(gradient)] -= (inputs[:, None] * precisions).sum(axis=0)
        return 0.5 * gradient


def evidence(prior: GraphGP, input_modes: Modes, data: SpectralData) -> Evidence:
    """Evidence of signals, read on the basis of a prior and rotated by the input modes."""
    return Evidence(input_modes, prior.covariance(input_modes), data)


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
    input_modes = prior.input_modes(inputs)
    training = as_training(signals, input_modes.values.size, prior.spectrum.n_nodes)
    if isinstance(training, Incomplete):
        return completion_of(prior, inputs, input_modes, training).log_density()[0]
    data = prior.basis.read(training)
    return prior.covariance(input_modes).log_likelihood(data.rotate(input_modes.vectors))
