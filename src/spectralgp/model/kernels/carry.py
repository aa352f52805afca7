"""Autoregressive term: inputs with a value at every node, filtered on the graph into the mean of the signals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from spectralgp._basics.checks import Array, Indices
from spectralgp._basics.saved import Positive, axes
from spectralgp.model.kernels.polynomial import chebyshev_design
from spectralgp.model.signals import Units
from spectralgp.model.spectra import SpectralData

DEGREE = 2
RIDGE = 1e-9  # share of the mean information on a coefficient, for directions without information


@dataclass(frozen=True, eq=False)
class CarryColumns:
    """Input columns with one value per node, and their means over the training inputs."""

    columns: Annotated[Indices, axes("n_nodes")]  # one for each node of the graph
    offset: Annotated[Array, axes("n_nodes")]  # mean of each over the training inputs

    @classmethod
    def of(cls, columns: Indices, inputs: Array) -> CarryColumns:
        """Centre columns of training inputs; a constant column becomes exactly zero."""
        chosen = inputs[:, columns]
        is_constant = np.all(chosen == chosen[:1], axis=0)
        return cls(columns, np.where(is_constant, chosen[:1].sum(axis=0), chosen.mean(axis=0)))

    def signals(self, inputs: Array, units: Units) -> Array:
        """The columns as signals, centred, in the units of the signals of the model."""
        return (inputs[:, self.columns] - self.offset) / np.asarray(units.divisor)


@dataclass(frozen=True, eq=False)
class CarryFilter:
    """Autoregressive filter ``b`` of equation (11), a polynomial of any sign: the mean of a signal is ``b(L) x``."""

    chebyshev: Annotated[Array, axes("n_carried_terms")]  # coefficients of Chebyshev polynomials on [0, upper]
    upper: Positive
    # posterior covariance of the coefficients; zero if not given
    covariance: Annotated[Array, axes("n_carried_terms", "n_carried_terms")] | None = None

    @classmethod
    def learnt(cls, data: SpectralData, precisions: Array, eigenvalues: Array, upper: float) -> CarryFilter:
        """The most likely filter given ``1 / D``, by generalised least squares of signals on their inputs."""
        design = chebyshev_design(eigenvalues, DEGREE, upper)
        own, across = data.carried_energies
        information = design.T @ ((own * precisions).sum(axis=0)[:, None] * design)
        size = float(np.trace(information)) / design.shape[1]
        if size < np.finfo(float).tiny / RIDGE:  # inputs that do not vary
            return cls(np.zeros(design.shape[1]), upper, np.zeros(information.shape))
        slope = design.T @ (across * precisions).sum(axis=0)
        covariance = np.linalg.inv(information + RIDGE * size * np.eye(design.shape[1]))
        return cls(covariance @ slope, upper, np.asarray(covariance, dtype=float))

    def response(self, eigenvalues: ArrayLike) -> Array:
        """``b(lambda)``."""
        return np.asarray(chebyshev_design(np.asarray(eigenvalues, dtype=float), DEGREE, self.upper) @ self.chebyshev)

    def variance(self, eigenvalues: ArrayLike) -> Array:
        """Variance of ``b(lambda)``."""
        design = chebyshev_design(np.asarray(eigenvalues, dtype=float), DEGREE, self.upper)
        return np.zeros(len(design)) if self.covariance is None else np.sum((design @ self.covariance) * design, axis=1)
