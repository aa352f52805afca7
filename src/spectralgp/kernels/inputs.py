"""Covariance between signals by their inputs: a kernel that is learnt, a matrix that is given, or none."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import pdist
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    Exponentiation,
    Kernel,
    KernelOperator,
    Matern,
    Product,
    RationalQuadratic,
)

from spectralgp._basics.checks import Array, Indices, as_real_array
from spectralgp.kernels.new_inputs import GivenInputs, KernelInputs, NewInputs
from spectralgp.spectra import Modes, modes_of

KernelLike: TypeAlias = Kernel | Literal["precomputed"] | None

LENGTH_SCALE_SPREAD = 0.5  # standard deviation of log length scale, half that of its square
SHORTER = 1 / 3  # of the typical length scales, to start learning from as well
_OF_A_DISTANCE = (RBF, Matern, RationalQuadratic)  # functions of |x - x'| / length_scale


class InputKernel(ABC):
    """Covariance ``k(x, x')`` between signals, by what they were observed at.

    `theta` holds the parameters to learn, as scikit-learn has them; there are none unless the kernel is `Learnt`.
    """

    @property
    @abstractmethod
    def described(self) -> KernelLike:
        """The kernel as users write it: scikit-learn's object, "precomputed", or None for independent signals."""

    @property
    def has_features(self) -> bool:
        """Whether inputs are features, one row per signal, so that columns and equal rows of them mean something."""
        return True

    @property
    def is_pairwise(self) -> bool:
        """Whether inputs are covariances, one row and one column per signal."""
        return False

    @property
    def theta(self) -> Array:
        """Free parameters, on scikit-learn's logarithmic scale."""
        return np.empty(0)

    @property
    def bounds(self) -> Array:
        """Bounds of `theta`, shape (n_parameters, 2)."""
        return np.empty((0, 2))

    def with_theta(self, theta: Array) -> Self:
        """Same kernel with other values of its free parameters."""
        return self

    @abstractmethod
    def covariance(self, inputs: Array) -> Array:
        """``K`` at training inputs, shape (n_signals, n_signals)."""

    def modes(self, inputs: Array) -> Modes:
        """Eigendecomposition of ``K``, zero standing for eigenvalues that are negative."""
        return modes_of(self.covariance(inputs))

    def modes_and_gradient(self, inputs: Array) -> tuple[Modes, Array]:
        """The same, and the derivative of ``K`` in `theta`, shape (n_signals, n_signals, n_parameters)."""
        return self.modes(inputs), np.empty((inputs.shape[0], inputs.shape[0], 0))

    def training(self, inputs: Array) -> Array:
        """Training inputs as `covariance` takes them, checked."""
        return inputs

    def new(self, inputs: Any, as_features: Callable[[Any], Array]) -> Any:
        """New inputs as a user gives them, in the form that `at` takes; `as_features` checks an array of features."""
        return as_features(inputs)

    def as_new(self, training: Any) -> Any:
        """Training inputs in the form of new ones, with all that `at` needs for covariances among them."""
        return training

    def with_kept(self, inputs: Any, given: int, kept: Indices) -> Any:
        """New inputs as they relate to the signals that were kept of those given at first."""
        return inputs

    def new_subset(self, inputs: Any, rows: Any) -> Any:
        """Some of the new inputs, by a mask or by their numbers."""
        return np.asarray(inputs)[rows]

    def equal_rows(self, training: Array, inputs: Any) -> list[list[int]]:
        """For each new input, the training inputs that equal it; zero has no sign."""
        places: dict[bytes, list[int]] = {}
        for place, row in enumerate(training + 0.0):
            places.setdefault(row.tobytes(), []).append(place)
        return [places.get(row.tobytes(), []) for row in np.asarray(inputs, dtype=float) + 0.0]

    @abstractmethod
    def at(self, training: Array, inputs: Any) -> NewInputs:
        """Covariances of new inputs, given the training inputs."""

    def together(self, training: Array, inputs: Any) -> Array:
        """Training inputs, and new ones in the form that `at` takes, as training inputs."""
        return np.vstack([training, inputs])

    def subset(self, inputs: Array, rows: Indices) -> Array:
        """The inputs of some of the signals."""
        return inputs[rows]

    def between(self, inputs: Array, kept: Indices, held_out: Indices) -> NewInputs:
        """Covariances of some training inputs with others, as if the former were new."""
        return self.at(inputs[kept], inputs[held_out])

    def typical_theta(self, inputs: Array) -> Array:
        """Where each parameter is to be expected, as the inputs' own scale for length scales; NaN for others."""
        return np.empty(0)

    def expected_theta(self, inputs: Array) -> Array:
        """`typical_theta`, and the present value where there is none."""
        typical = self.typical_theta(inputs)
        return np.where(np.isnan(typical), self.theta, typical)

    def starting_points(self, inputs: Array) -> list[Array]:
        """Values of `theta` to start learning from: the present ones, and last those to be expected."""
        expected = self.expected_theta(inputs)
        return [expected] if np.allclose(expected, self.theta) else [self.theta, expected]

    @property
    def theta_spreads(self) -> Array:
        """How far from that, as the standard deviation of a normal distribution."""
        return np.full(self.theta.size, LENGTH_SCALE_SPREAD)

    def without_amplitude(self) -> InputKernel:
        """The kernel with its overall factor held, for a graph kernel that has a factor of its own."""
        return self


@dataclass(frozen=True, eq=False)
class Learnt(InputKernel):
    """A scikit-learn kernel, whose free parameters are learnt.

    Parameters
    ----------
    kernel : scikit-learn kernel
        With the present values of its parameters.
    """

    kernel: Kernel

    @property
    def described(self) -> KernelLike:
        return self.kernel

    def without_amplitude(self) -> Self:
        return dataclasses.replace(self, kernel=_holding_amplitude(self.kernel))

    @property
    def theta(self) -> Array:
        return np.asarray(self.kernel.theta, dtype=float)

    @property
    def bounds(self) -> Array:
        return np.reshape(np.asarray(self.kernel.bounds, dtype=float), (-1, 2))

    def with_theta(self, theta: Array) -> Self:
        return dataclasses.replace(self, kernel=self.kernel.clone_with_theta(theta)) if theta.size else self

    def covariance(self, inputs: Array) -> Array:
        """``K`` at training inputs."""
        return np.asarray(self.kernel(inputs))

    def modes_and_gradient(self, inputs: Array) -> tuple[Modes, Array]:
        """Modes of ``K``, and its derivative in the logarithms of the free parameters."""
        covariance, gradient = self.kernel(inputs, eval_gradient=True)
        return modes_of(covariance), np.asarray(gradient)

    def at(self, training: Array, inputs: Array) -> NewInputs:
        return KernelInputs(self.kernel, training, inputs)

    def typical_theta(self, inputs: Array) -> Array:
        return length_scale_centres(self.kernel, inputs)

    def starting_points(self, inputs: Array) -> list[Array]:
        """Shorter length scales than the typical ones too: from those, a search may end where nothing varies fast."""
        *given, expected = super().starting_points(inputs)
        is_scale = ~np.isnan(self.typical_theta(inputs))
        shorter = [expected + np.log(SHORTER) * is_scale] if is_scale.any() else []
        return [*given, *shorter, expected]


@dataclass(frozen=True)
class Precomputed(InputKernel):
    """A covariance matrix of the user's own: at fit the inputs are ``K`` itself."""

    @property
    def described(self) -> KernelLike:
        return "precomputed"

    @property
    def has_features(self) -> bool:
        return False

    @property
    def is_pairwise(self) -> bool:
        return True

    def covariance(self, inputs: Array) -> Array:
        return as_covariance(inputs)

    def training(self, inputs: Array) -> Array:
        return as_covariance(inputs)

    def new(self, inputs: Any, as_features: Callable[[Any], Array]) -> Any:
        return inputs

    def as_new(self, training: Any) -> Any:
        is_square = not isinstance(training, tuple) and np.ndim(training) == 2 and len(set(np.shape(training))) == 1
        return (training, training) if is_square else training

    def with_kept(self, inputs: Any, given: int, kept: Indices) -> Any:
        cross, *test = inputs if isinstance(inputs, tuple) else (inputs,)
        if np.ndim(cross) == 2 and np.shape(cross)[1] == given:
            cross = np.asarray(cross)[:, kept]
        return (cross, *test) if isinstance(inputs, tuple) else cross

    def new_subset(self, inputs: Any, rows: Any) -> Any:
        if not isinstance(inputs, tuple):
            return np.asarray(inputs)[rows]
        cross, *test = (np.asarray(part)[rows] for part in inputs)
        return (cross, *(part if part.ndim == 1 else part[:, rows] for part in test))

    def equal_rows(self, training: Array, inputs: Any) -> list[list[int]]:
        return super().equal_rows(training, inputs[0] if isinstance(inputs, tuple) else inputs)

    def at(self, training: Array, inputs: Any) -> NewInputs:
        remedy = "Pass the cross-covariance of test and training inputs, or the pair (cross, test covariance)."
        if isinstance(inputs, tuple) and len(inputs) != 2:
            raise ValueError(
                f"X must be a matrix or a pair of them where the kernel is precomputed; got {len(inputs)} parts. "
                f"{remedy}"
            )
        given, test = inputs if isinstance(inputs, tuple) else (inputs, None)
        sizes = {"n_signals": training.shape[0]}
        cross = as_real_array(given, "X", ("n_inputs", "n_signals"), sizes=sizes, remedy=remedy)
        if test is None:
            return GivenInputs(cross)
        size = {"n_inputs": cross.shape[0]}
        if np.ndim(test) == 1:
            variances = as_real_array(test, "the test variances in X", ("n_inputs",), sizes=size, remedy=remedy)
            return GivenInputs(cross, variances)
        axes = ("n_inputs", "n_inputs")
        covariance = as_real_array(test, "the test covariance in X", axes, sizes=size, remedy=remedy)
        return GivenInputs(cross, np.diag(covariance).copy(), covariance)

    def together(self, training: Array, inputs: Any) -> Array:
        new = self.at(training, inputs)
        return np.block([[training, new.cross.T], [new.cross, new.covariance]])

    def subset(self, inputs: Array, rows: Indices) -> Array:
        return inputs[np.ix_(rows, rows)]

    def between(self, inputs: Array, kept: Indices, held_out: Indices) -> NewInputs:
        test = inputs[np.ix_(held_out, held_out)]
        return GivenInputs(inputs[np.ix_(held_out, kept)], np.diag(test).copy(), test)


@dataclass(frozen=True)
class Independent(InputKernel):
    """Signals that have nothing to do with one another, ``K = I``; inputs have no columns."""

    @property
    def has_features(self) -> bool:
        return False

    @property
    def described(self) -> KernelLike:
        return None

    def covariance(self, inputs: Array) -> Array:
        return np.eye(inputs.shape[0])

    def modes(self, inputs: Array) -> Modes:
        return Modes(np.ones(inputs.shape[0]), np.eye(inputs.shape[0]))

    def new(self, inputs: Any, as_features: Callable[[Any], Array]) -> Any:
        return np.empty((1, 0)) if inputs is None else inputs

    def at(self, training: Array, inputs: Any) -> NewInputs:
        shape = np.shape(inputs)
        if len(shape) != 2 or shape[1] != 0:
            raise ValueError(
                "X must be None, or have no columns, where the model was fitted with X=None, in which signals are "
                f"independent; got shape {shape}. Fit with inputs X to predict from them."
            )
        return GivenInputs(np.zeros((shape[0], training.shape[0])), np.ones(shape[0]), np.eye(shape[0]))


def as_input_kernel(kernel: InputKernel | KernelLike) -> InputKernel:
    """The kind of input kernel that a scikit-learn kernel, "precomputed" or None stands for.

    Examples
    --------
    >>> as_input_kernel("precomputed")
    Precomputed()
    """
    if isinstance(kernel, InputKernel):
        return kernel
    if kernel is None:
        return Independent()
    if isinstance(kernel, Kernel):
        return Learnt(kernel)
    if isinstance(kernel, str) and kernel == "precomputed":
        return Precomputed()
    raise TypeError(
        f"kernel must be a scikit-learn kernel such as RBF(), 'precomputed' or None; got {kernel!r}. "
        "Import kernels from sklearn.gaussian_process.kernels, and pass an instance, not the class."
    )


def as_covariance(matrix: ArrayLike) -> Array:
    """A precomputed input covariance: square, finite and symmetric."""
    covariance = as_real_array(matrix, "X", ("n_signals", "n_signals"))
    if covariance.shape[0] != covariance.shape[1]:
        raise ValueError(
            "X must be square, the covariance of the training inputs, where the kernel is precomputed; got shape "
            f"{covariance.shape}. Pass K at fit, and the cross-covariance at predict."
        )
    asymmetry = float(np.max(np.abs(covariance - covariance.T), initial=0.0))
    if asymmetry > 1e-10 * np.max(np.abs(covariance), initial=0.0):
        raise ValueError(
            "X must be symmetric, a covariance, where the kernel is precomputed; got entries that differ across the "
            f"diagonal by up to {asymmetry:.3g}. Pass (K + K.T) / 2 if that is rounding."
        )
    return covariance


def length_scale_centres(kernel: Kernel, inputs: Array) -> Array:
    """Logarithm of the typical distance of the inputs for each free length scale that a distance is divided by.

    The square of an isotropic length scale is centred at the median squared distance; anisotropic ones share it out
    over the features. Other parameters get NaN, and so do length scales that are no distances, as that of
    `ExpSineSquared`, which a sine is divided by.
    """
    if isinstance(kernel, KernelOperator):
        return np.concatenate([length_scale_centres(part, inputs) for part in (kernel.k1, kernel.k2)])
    if isinstance(kernel, Exponentiation):
        return length_scale_centres(kernel.kernel, inputs)
    centres: list[float] = []
    for parameter in kernel.hyperparameters:
        if parameter.fixed:
            continue
        is_distance = isinstance(kernel, _OF_A_DISTANCE) and parameter.name == "length_scale"
        if not is_distance or inputs.shape[0] < 2:
            centres += [np.nan] * parameter.n_elements
        elif parameter.n_elements == 1:
            centres.append(half_log_median(inputs))
        else:
            spread = 0.5 * np.log(inputs.shape[1])
            centres += [half_log_median(column[:, None]) + spread for column in inputs.T]
    return np.array(centres, dtype=float)


def _holding_amplitude(kernel: Kernel) -> Kernel:
    """A product with its constant factors fixed; any other kernel as it is."""
    if not isinstance(kernel, Product):
        return kernel
    parts = [
        ConstantKernel(part.constant_value, "fixed") if isinstance(part, ConstantKernel) else _holding_amplitude(part)
        for part in (kernel.k1, kernel.k2)
    ]
    return Product(*parts)


def half_log_median(inputs: Array) -> float:
    """Logarithm of the root of the median squared distance; NaN where more than half of the inputs coincide."""
    median = np.median(pdist(inputs, "sqeuclidean"))
    return float(0.5 * np.log(median)) if median > 0 else float("nan")
