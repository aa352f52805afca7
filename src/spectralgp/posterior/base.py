"""A prior and the signals it is conditioned on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectralgp._checks import Array
from spectralgp.carry import Carried
from spectralgp.covariance import DataCovariance
from spectralgp.inputs import NewInputs
from spectralgp.masked import CompleteCovariance, Completion, completion_of, covariance_of
from spectralgp.model import GraphGP
from spectralgp.modes import Modes, modes_of
from spectralgp.posterior.filled import Filled
from spectralgp.signals import Completed, Incomplete, Signals
from spectralgp.spectrum import Spectrum

Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Conditioned:
    """A prior and the signals it is conditioned on: what predictions are made from.

    Parameters
    ----------
    prior : GraphGP
        The model, of the signals as `signals` has them: centred and scaled.
    inputs : ndarray of shape (n_signals, n_features)
        Training inputs (``K`` itself if precomputed).
    signals : Signals
        Training signals; their completion where they have holes. The mean of a prediction given what was observed is
        that given the completion's mean, and its covariance grows by what the completion leaves open: equation (20).
    input_modes : Modes
        ``K = U diag(kappa) U^T``.
    carried : Carried, optional
        Columns of the inputs that carry over to the signals.
    completion : Completion, optional
        How the signals were completed, where they have holes.
    """

    prior: GraphGP
    inputs: Array
    signals: Signals
    input_modes: Modes
    carried: Carried | None = None
    completion: Completion | None = None

    @property
    def basis(self) -> Spectrum:
        """Where the covariance between nodes is diagonal."""
        return self.prior.basis

    @cached_property
    def block(self) -> Any:
        """Training signals less what is carried over, combined by the input modes: a block to be filtered."""
        basis, vectors = self.basis, self.input_modes.vectors
        block = basis.block(self.signals, vectors)
        if self.carried is None:
            return block
        carried = self.carried_block(self.inputs)
        return basis.combined(block, np.eye(vectors.shape[0])) - basis.combined(carried, vectors.T)

    def carried_block(self, inputs: Array) -> Any:
        """``b(L) x``, the mean that inputs carry over, as a block; zero where there is none."""
        return self.prior.carried_block(self.carried, inputs, self.signals.units)

    def covariance(self, eigenvalues: Array) -> DataCovariance:
        """Covariance of the training signals at eigenvalues."""
        return self.prior.covariance_at(self.input_modes, eigenvalues)

    def precisions(self, eigenvalues: Array) -> Array:
        """``1 / D`` at eigenvalues, shape (n_signals, n_eigenvalues)."""
        return self.covariance(eigenvalues).precisions

    # ------------------------------------------------------------------------------------ what was not observed

    def complete_covariance(self, input_modes: Modes) -> CompleteCovariance:
        """Covariance of complete signals, noise included, at inputs with the given modes."""
        return covariance_of(self.prior, input_modes)

    @property
    def values(self) -> Array:
        """Training signals as they were observed, centred and scaled; NaN where they were not."""
        return self.signals.incomplete.values if isinstance(self.signals, Completed) else self.signals.values

    def observing(self, new: NewInputs, features: Any, observed: Array) -> Filled:
        """Signals at new inputs given what was observed of them, and the training signals.

        Parameters
        ----------
        new, features
            As `given` takes them.
        observed : ndarray of shape (n_inputs, n_nodes)
            In the units that the training signals came in; NaN where nothing was.
        """
        modes, cross = self.input_modes, new.cross
        if len(cross) != len(observed):
            raise ValueError(
                f"observed must have one row for each of the {len(cross)} inputs; got {len(observed)}. "
                "Fill rows of which nothing is known with NaN."
            )
        own = (modes.vectors * modes.values) @ modes.vectors.T
        joint = modes_of(np.block([[own, cross.T], [cross, new.covariance]])).require_definite("the input covariance")
        values = np.vstack([self.values, self.signals.units.apply(observed)])
        signals = Incomplete.of(values, self.signals.units)
        inputs = np.vstack([self.inputs, features]) if self.carried is not None else np.empty((len(values), 0))
        complete = self.complete_covariance(joint)
        completion = completion_of(self.prior, inputs, joint, signals, self.carried, complete)
        return Filled(completion, np.arange(len(self.values), len(values)))

    def filled(self, rows: Indices) -> Filled:
        """Some of the training signals, which must have holes, given what was observed of all."""
        assert self.completion is not None, "every value was observed"
        return Filled(self.completion, rows)

    def log_evidence(self) -> float:
        """Log density of the training signals, in the units that they were read in."""
        if self.completion is not None:
            return self.completion.log_density()[0]
        covariance = self.prior.covariance(self.input_modes)
        whole = self.basis.combined(self.block, np.eye(self.input_modes.values.size))
        return covariance.log_likelihood(self.basis.read_block(whole))
