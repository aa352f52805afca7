"""The default kernel: of standardised inputs, with a smooth and a linear term, and a level for every node."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Kernel

from spectralgp._basics.checks import Array
from spectralgp.kernels.inputs import LENGTH_SCALE_SPREAD, InputKernel, half_log_median
from spectralgp.kernels.new_inputs import KernelInputs, NewInputs
from spectralgp.spectra import Modes, modes_of

Term = Literal["smooth", "linear"]

LINEAR_SPREAD = 2.0  # of the log variance of the linear term relative to the smooth one
LEVEL_SPREAD = 3.0  # of the log variance of the nodes' levels


@dataclass(frozen=True, eq=False)
class Standardised(InputKernel):
    """The default kernel, of inputs with every column centred and divided by its standard deviation.

    A squared exponential, a linear term, or both, and a constant, which gives every node a level of its own. Their
    variances are relative to that of the first term: the graph kernel has the overall one.

    Parameters
    ----------
    terms : tuple of {"smooth", "linear"}
        What there is beside the constant.
    logarithms : ndarray of shape (n_parameters,)
        Length scale, variance of the linear term where it is not the first, and variance of the levels.
    centres : ndarray of shape (n_parameters,)
        Where the inputs let expect them.
    offset, spread : ndarray of shape (n_features,)
        Mean and standard deviation of the columns; one where a column is constant.
    """

    terms: tuple[Term, ...]
    logarithms: Array
    centres: Array
    offset: Array
    spread: Array
    _products: list[tuple[Array, Array, Array]] = field(default_factory=list, repr=False)

    @classmethod
    def of(cls, inputs: Array, terms: tuple[Term, ...] = ("smooth", "linear")) -> Standardised:
        """The kernel with some of its terms, started at the inputs' own scale."""
        offset, spread = inputs.mean(axis=0), inputs.std(axis=0)
        spread = np.where(spread > 1e-12 * np.max(np.abs(inputs), axis=0, initial=0.0), spread, 1.0)
        centres = [0.0]
        if "smooth" in terms:
            half = half_log_median((inputs - offset) / spread) if inputs.shape[0] > 1 else 0.0
            linear = [-float(np.log(max(1, offset.size)))] if "linear" in terms else []
            centres = [0.0 if np.isnan(half) else half, *linear, 0.0]
        return cls(terms, np.array(centres), np.array(centres), offset, spread)

    @property
    def described(self) -> Kernel:
        values = np.exp(self.logarithms)
        linear, level = DotProduct(0.0, "fixed"), ConstantKernel(values[-1])
        if self.terms == ("linear",):
            return ConstantKernel(1 / max(1, self.offset.size), "fixed") * linear + level
        smooth = RBF(values[0])
        return smooth + ConstantKernel(values[1]) * linear + level if "linear" in self.terms else smooth + level

    @property
    def theta(self) -> Array:
        return self.logarithms

    @property
    def bounds(self) -> Array:
        widths = np.where(self._is_length_scale, np.log(1e3), np.log(1e5))
        return self.centres[:, None] + np.multiply.outer(widths, [-1.0, 1.0])

    def with_theta(self, theta: Array) -> Self:
        return dataclasses.replace(self, logarithms=np.array(theta, dtype=float))

    def covariance(self, inputs: Array) -> Array:
        """``K`` at training inputs."""
        return np.sum(self._terms(inputs)[0], axis=0)

    def modes_and_gradient(self, inputs: Array) -> tuple[Modes, Array]:
        """Modes of ``K``, and its derivative in the logarithms of the parameters."""
        terms, slopes = self._terms(inputs)
        return modes_of(np.sum(terms, axis=0)), np.stack(slopes, axis=-1)

    def _terms(self, inputs: Array) -> tuple[list[Array], list[Array]]:
        """The terms of ``K``, and their derivatives."""
        squares, products = self._geometry(inputs)
        values = np.exp(self.logarithms)
        level = np.full(products.shape, values[-1])
        if self.terms == ("linear",):
            return [products / max(1, self.offset.size), level], [level]
        scaled = squares / values[0] ** 2
        smooth = np.exp(-0.5 * scaled)
        if "linear" not in self.terms:
            return [smooth, level], [scaled * smooth, level]
        linear = values[1] * products
        return [smooth, linear, level], [scaled * smooth, linear, level]

    def _geometry(self, inputs: Array) -> tuple[Array, Array]:
        """Squared distances and products of the inputs, remembered for those that learning asks for again."""
        for known, squares, products in self._products:
            if known is inputs:
                return squares, products
        standardised = self._standardised(inputs)
        squares, products = squareform(pdist(standardised, "sqeuclidean")), standardised @ standardised.T
        self._products[:] = [(inputs, squares, products)]
        return squares, products

    def at(self, training: Array, inputs: Array) -> NewInputs:
        return KernelInputs(self.described, self._standardised(training), self._standardised(inputs))

    def typical_theta(self, inputs: Array) -> Array:
        return self.centres

    @property
    def theta_spreads(self) -> Array:
        spreads = np.where(self._is_length_scale, LENGTH_SCALE_SPREAD, LINEAR_SPREAD)
        spreads[-1] = LEVEL_SPREAD
        return spreads

    @property
    def _is_length_scale(self) -> NDArray[np.bool_]:
        return (np.arange(self.logarithms.size) == 0) & ("smooth" in self.terms)

    def _standardised(self, inputs: Array) -> Array:
        return (inputs - self.offset) / self.spread
