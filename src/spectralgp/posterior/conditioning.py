"""Conditioning on data: the posterior, from which predictions are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spectralgp._checks import Array, as_real_array
from spectralgp.carry import Carried
from spectralgp.inputs import NewInputs
from spectralgp.masked import completion_of
from spectralgp.model import GraphGP
from spectralgp.posterior.base import Conditioned
from spectralgp.posterior.filled import Filled
from spectralgp.posterior.prediction import Prediction
from spectralgp.signals import Incomplete, Signals, as_training
from spectralgp.spectrum import SpectralData


def condition(
    prior: GraphGP, inputs: ArrayLike, signals: ArrayLike | Signals, carried: Carried | None = None
) -> Posterior:
    """Condition a prior on signals observed at inputs.

    Parameters
    ----------
    prior : GraphGP
        The model.
    inputs : array of shape (n_signals, n_features)
        Training inputs; the covariance itself for a precomputed kernel. They are copied.
    signals : array of shape (n_signals, n_nodes), or Signals
        Training signals, as they are or read by `read_signals`, which centres and scales them. The prior is of signals
        after that; predictions are in the units from before. An array is copied. NaN is what was not observed.
    carried : Carried, optional
        Which columns of the inputs carry over to the signals, where the prior has a filter for that.

    Returns
    -------
    Posterior

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
    if not isinstance(prior, GraphGP):
        raise TypeError(f"prior must be a GraphGP; got {type(prior).__name__}. Make one with graph_gp(...).")
    given = as_real_array(inputs, "inputs", ("n_signals", "n_features")).copy()
    modes = prior.input_modes(given)
    if (prior.carry is None) != (carried is None):
        raise ValueError(
            f"carried must be given where the prior has a carry-over filter, and only there; got {carried}. "
            "Make it with Carried.of(columns, inputs)."
        )
    training = as_training(signals, given.shape[0], prior.spectrum.n_nodes)
    if not isinstance(training, Incomplete):
        return Posterior(prior, given, training, modes, carried)
    completion = completion_of(prior, given, modes, training, carried)
    return Posterior(prior, given, completion.completed(), modes, carried, completion)


@dataclass(frozen=True, eq=False)
class Posterior(Conditioned):
    """A prior conditioned on signals. Made by `condition`.

    Its fields are those of `Conditioned`.
    """

    @property
    def signals_share(self) -> float:
        """Share of the covariance of predictions that is the signals' own: none, all is the graph's model."""
        return 0.0

    @property
    def parts(self) -> tuple[tuple[float, Posterior], ...]:
        """Posteriors and their weights: this one alone."""
        return ((1.0, self),)

    def at(self, inputs: Any) -> Prediction:
        """Predictive distribution at new inputs.

        Parameters
        ----------
        inputs : array of shape (n_inputs, n_features)
            With a precomputed kernel: the cross-covariance (n_inputs, n_signals), or the pair of it and the test
            covariance. With independent signals: an array without columns.
        """
        kernel = self.prior.input_kernel
        features = kernel.new(inputs, _as_inputs(self.inputs.shape[1]))
        return self.given(kernel.at(self.inputs, features), features)

    def at_observed(self, inputs: Any, observed: Array) -> Filled:
        """The same given what was observed of the signals there, in the units that the training signals came in."""
        kernel = self.prior.input_kernel
        features = kernel.new(inputs, _as_inputs(self.inputs.shape[1]))
        return self.observing(kernel.at(self.inputs, features), features, observed)

    def left_out_log_density(self, errors: SpectralData, variances: Array) -> Array:
        """Log density of errors of signals that were left out, with variances at the frequencies, one a signal."""
        logs = np.log(2 * np.pi * variances) @ errors.multiplicities
        return -0.5 * (logs + np.sum(errors.energies / variances, axis=1))

    def left_out_variances(self, errors: Any, variances: Any) -> Any:
        """Variances of the nodes of signals that were left out, from those at eigenvalues; `errors` are a block."""
        return self.basis.diagonals(variances)[0]

    def given(self, new: NewInputs, features: Any) -> Prediction:
        """The same from the covariances of new inputs; `features`, the inputs themselves, are for what carries over."""
        return Prediction(self, new, self.carried_block(features), features)


def _as_inputs(n_features: int) -> Any:
    return lambda inputs: as_real_array(
        inputs, "inputs", ("n_inputs", "n_features"), sizes={"n_features": n_features}, remedy="Rows are inputs."
    )
