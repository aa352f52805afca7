"""Conditioning on data, on an exact spectrum or by Chebyshev filters."""

from __future__ import annotations

from typing import Any

from spectralgp._checks import Array, as_training_signals
from spectralgp.model import GraphGP
from spectralgp.posterior.chebyshev import ChebyshevPosterior, ChebyshevPrediction
from spectralgp.posterior.exact import Posterior, Prediction
from spectralgp.spectrum import LargeSignals

AnyPosterior = Posterior | ChebyshevPosterior
AnyPrediction = Prediction | ChebyshevPrediction

__all__ = [
    "AnyPosterior",
    "AnyPrediction",
    "ChebyshevPosterior",
    "ChebyshevPrediction",
    "Posterior",
    "Prediction",
    "condition",
]


def condition(prior: GraphGP, inputs: Array, signals: Any) -> Any:
    """Condition a prior on signals observed at inputs.

    Parameters
    ----------
    prior : GraphGP
        The model.
    inputs : array of shape (n_signals, n_features)
        Training inputs; the covariance itself for a precomputed kernel.
    signals : array of shape (n_signals, n_nodes), or LargeSignals
        Training signals, the latter for a model on a quadrature spectrum.

    Returns
    -------
    Posterior or ChebyshevPosterior

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from spectralgp import Diffusion, Graph, condition, graph_gp
    >>> prior = graph_gp(Graph.from_edges([(0, 1), (1, 2)]), Diffusion(), RBF(), noise_variance=0.1)
    >>> posterior = condition(prior, np.array([[0.0], [1.0]]), np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    >>> posterior.at(np.array([[0.5]])).mean.shape
    (1, 3)
    """
    input_modes = prior.input_modes(inputs)
    if isinstance(signals, LargeSignals):
        return ChebyshevPosterior(prior, inputs, signals, input_modes)
    observed = as_training_signals(signals, input_modes.values.size, prior.spectrum.n_nodes)
    return Posterior(prior, inputs, observed, input_modes)
