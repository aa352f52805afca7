"""The log marginal likelihood and its gradient, from a spectrum."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spectralgp._checks import Array, as_training_signals
from spectralgp.graph_kernels import GraphKernel, LocalAverage
from spectralgp.graph_kernels.base import SpectralKernel
from spectralgp.model import GraphGP
from spectralgp.modes import Modes
from spectralgp.spectrum import AnyRotated, AnySpectrum, RotatedSignals, SpectralSignals


@dataclass(frozen=True, eq=False)
class Evidence:
    """Log marginal likelihood of signals, with its derivatives in everything the covariance is made of.

    Parameters
    ----------
    input_modes : Modes
        ``K = U diag(kappa) U^T``.
    power : ndarray of shape (n_frequencies,)
        ``gamma``.
    noise_variance : float
        ``sigma^2``.
    rotated : RotatedSignals or RotatedMoments
        Signals in both eigenbases, ``Z = U^T Y V``, or their energies there.
    """

    input_modes: Modes
    power: Array
    noise_variance: float
    rotated: AnyRotated

    @cached_property
    def variances(self) -> Array:
        """``D_ij = kappa_i gamma_j + sigma^2``, shape (n_signals, n_frequencies)."""
        return np.multiply.outer(self.input_modes.values, self.power) + self.noise_variance

    @cached_property
    def log_likelihood(self) -> float:
        """Total in nats, the 2 pi term included: equations (5) and (13)."""
        log_determinant = np.sum(np.log(self.variances) @ self.rotated.multiplicities)
        quadratic = np.sum(self.rotated.energies / self.variances)
        constant = self.rotated.n_observations * np.log(2 * np.pi)
        return float(-0.5 * (log_determinant + quadratic + constant))

    @cached_property
    def _slopes(self) -> Array:
        """``E_ij``, the derivative in ``D_ij`` of equation (6)."""
        return 0.5 * (self.rotated.energies / self.variances - self.rotated.multiplicities) / self.variances

    @cached_property
    def power_gradient(self) -> Array:
        """Derivative in the power at each frequency, equation (6)."""
        gradient: Array = self.input_modes.values @ self._slopes
        return gradient

    @cached_property
    def noise_gradient(self) -> float:
        """Derivative in the noise variance, equation (6)."""
        return float(np.sum(self._slopes))

    @cached_property
    def input_covariance_gradient(self) -> Array:
        """Derivative in the entries of ``K``, equation (7), shape (n_signals, n_signals).

        No derivative of an eigenvector enters, so repeated eigenvalues are harmless.
        """
        vectors = self.input_modes.vectors
        trace = (self.power * self.rotated.multiplicities / self.variances).sum(axis=1)
        inner = self.rotated.gram(np.sqrt(self.power) / self.variances)
        inner[np.diag_indices_from(inner)] -= trace
        return 0.5 * vectors @ inner @ vectors.T

    @cached_property
    def node_covariance_gradient(self) -> Array:
        """Derivative in the entries of ``V^T B B^T V``: equation (7) with the two sides exchanged.

        Shape (n_nodes, n_nodes), in the eigenbasis of the present ``B B^T``.
        """
        inputs = self.input_modes.values
        assert isinstance(self.rotated, RotatedSignals)  # quadratures have no node covariance
        scaled = np.sqrt(inputs)[:, None] * self.rotated.coefficients / self.variances
        gradient: Array = scaled.T @ scaled
        gradient[np.diag_indices_from(gradient)] -= (inputs[:, None] / self.variances).sum(axis=0)
        return 0.5 * gradient


def graph_evidence(
    input_modes: Modes, graph_kernel: GraphKernel, spectrum: AnySpectrum, noise_variance: float, rotated: AnyRotated
) -> tuple[Evidence, Array]:
    """Evidence of signals under a graph kernel, and its gradient in the kernel's ``theta``.

    Parameters
    ----------
    input_modes : Modes
        Of the input covariance.
    graph_kernel : GraphKernel
        With the parameters to evaluate at.
    spectrum : Spectrum or ChebyshevSpectrum
        Of the Laplacian that the kernel asks for.
    noise_variance : float
        ``sigma^2``.
    rotated : RotatedSignals or RotatedMoments
        Signals in the eigenbasis of the inputs, and in that of the spectrum too unless the kernel is `LocalAverage`.
    """
    if isinstance(graph_kernel, SpectralKernel):
        power = graph_kernel.power(spectrum.eigenvalues)
        evidence = Evidence(input_modes, power, noise_variance, rotated)
        return evidence, graph_kernel.power_jacobian(spectrum.eigenvalues).T @ evidence.power_gradient
    if isinstance(graph_kernel, LocalAverage) and isinstance(rotated, RotatedSignals):
        modes = graph_kernel.modes(spectrum)
        turned = RotatedSignals(rotated.coefficients @ modes.vectors)
        evidence = Evidence(input_modes, modes.values, noise_variance, turned)
        slope = modes.vectors @ evidence.node_covariance_gradient @ modes.vectors.T
        return evidence, np.tensordot(graph_kernel.covariance_jacobian(spectrum.graph), slope, axes=2)
    raise TypeError(
        f"graph_kernel must be a function on the spectrum or LocalAverage; got {graph_kernel!r}. "
        "Derive kernels of your own from SpectralKernel, or wrap a filter in Response."
    )


def log_marginal_likelihood(prior: GraphGP, inputs: Array, signals: Array) -> float:
    """Log probability of signals under a prior, equation (5): a total in nats with the 2 pi term.

    Parameters
    ----------
    prior : GraphGP
        The model.
    inputs : array of shape (n_signals, n_features)
        What the signals were observed at; ``K`` itself for a precomputed kernel; ignored but for its length where
        signals are independent.
    signals : array of shape (n_signals, n_nodes)
        Signals in rows.

    Examples
    --------
    >>> import numpy as np
    >>> from spectralgp import Graph, Identity, graph_gp, log_marginal_likelihood
    >>> prior = graph_gp(Graph.from_edges([(0, 1)]), Identity(), None, noise_variance=1.0)
    >>> round(log_marginal_likelihood(prior, np.zeros((1, 0)), np.array([[0.0, 2.0]])), 4)
    -3.531
    """
    input_modes = prior.input_modes(inputs)
    checked = as_training_signals(signals, input_modes.values.size, prior.spectrum.n_nodes)
    modes = prior.node_modes
    rotated = SpectralSignals(checked @ modes.vectors).rotate(input_modes.vectors)
    return Evidence(input_modes, modes.values, prior.noise_variance, rotated).log_likelihood
