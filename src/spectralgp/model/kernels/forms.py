"""Forms of inputs, their recipes from files, and covariances of new inputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Kernel

from spectralgp._basics.checks import Array, Indices, as_real_array


def _not_given() -> Array:
    """Refuse a prediction that needs covariances among new inputs."""
    raise ValueError(
        "X must hold the covariance of the test inputs for this prediction; got the cross-covariance "
        "only. Pass X = (cross, test covariance)."
    )


@dataclass(frozen=True, eq=False)
class NewInputs:
    """Covariances of new inputs with the training inputs and among themselves."""

    cross: Array  # k(x*, x_n), shape (n_inputs, n_signals)
    find_variances: Callable[[], Array] = _not_given
    find_covariance: Callable[[], Array] = _not_given
    inputs: Array | None = None  # the new inputs, if they are features

    @classmethod
    def by_kernel(cls, kernel: Kernel, training: Array, inputs: Array) -> NewInputs:
        """Covariances by a scikit-learn kernel, those among new inputs on demand."""
        return cls(np.asarray(kernel(inputs, training)), partial(kernel.diag, inputs), partial(kernel, inputs), inputs)

    @classmethod
    def read(cls, training: Array, inputs: Any) -> NewInputs:
        """Covariances as users give them: with the training inputs, or the pair of these and the test covariance."""
        remedy = "Pass the cross-covariance of test and training inputs, or the pair (cross, test covariance)."
        given, *test = inputs if isinstance(inputs, tuple) else (inputs,)
        if isinstance(inputs, tuple) and len(test) != 1:
            raise ValueError(
                f"X must be a matrix or a pair of them where the kernel is precomputed; got {len(inputs)} parts. "
                f"{remedy}"
            )
        sizes = {"n_signals": training.shape[0]}
        cross = as_real_array(given, "X", ("n_inputs", "n_signals"), sizes=sizes, remedy=remedy)
        if not test:
            return cls(cross)
        is_diagonal = np.ndim(test[0]) == 1
        name, axes = f"the test {'variances' if is_diagonal else 'covariance'} in X", ("n_inputs",) * (2 - is_diagonal)
        among = as_real_array(test[0], name, axes, sizes={"n_inputs": cross.shape[0]}, remedy=remedy)
        if is_diagonal:
            return cls(cross, partial(np.asarray, among))
        return cls(cross, partial(np.array, np.diag(among)), partial(np.asarray, among))

    def divided_by(self, scales: Array | None) -> NewInputs:
        """Covariances with training signals that are each divided by a scale."""
        return self if scales is None else dataclasses.replace(self, cross=self.cross / scales)

    @cached_property
    def variances(self) -> Array:
        """``k(x*, x*)``, shape (n_inputs,)."""
        return np.asarray(self.find_variances())

    @cached_property
    def covariance(self) -> Array:
        """``k(x*, x*')``, shape (n_inputs, n_inputs)."""
        return np.asarray(self.find_covariance())


class InputForm:
    """Form of inputs: one row per signal and one column per feature, for new signals as for training signals."""

    is_pairwise: ClassVar[bool] = False  # inputs are covariances, with one row and one column per signal

    def read(self, inputs: Array) -> Array:
        """Return validated training inputs."""
        return inputs

    def read_new(self, inputs: Any, n_features: int, as_features: Callable[[Any], Array]) -> Any:
        """Return new inputs as kernels take them, given the number of training features.

        `as_features` validates an array of features. Without any, inputs have no columns, or are None for one signal.
        """
        if n_features:
            return as_features(inputs)
        shape = (1, 0) if inputs is None else np.shape(inputs)
        if len(shape) != 2 or shape[1] != 0:
            raise ValueError(
                "X must be None, or have no columns, where the model was fitted with X=None, in which signals are "
                f"independent; got shape {shape}. Fit with inputs X to predict from them."
            )
        return np.empty(shape)

    def as_new(self, training: Any) -> Any:
        """Return training inputs in the form of new ones, covariances among them included."""
        return training

    def with_kept(self, new: Any, n_given: int, kept: Indices) -> Any:
        """Return new inputs in relation to a subset of the training signals."""
        return new

    def some(self, new: Any, rows: Any) -> Any:
        """Return some of the new inputs, by a mask or by their numbers."""
        return np.asarray(new)[rows]

    def equal_rows(self, training: Array, new: Any) -> list[list[int]]:
        """Return the numbers of the training inputs that equal each new input; zero has no sign."""
        places: dict[bytes, list[int]] = {}
        for place, row in enumerate(training + 0.0):
            places.setdefault(row.tobytes(), []).append(place)
        return [places.get(row.tobytes(), []) for row in np.asarray(new, dtype=float) + 0.0]

    def joined(self, training: Array, new: Any) -> Array:
        """Return training inputs followed by new ones, as training inputs."""
        return np.vstack([training, new])

    def subset(self, training: Array, rows: Indices) -> Array:
        """Return the training inputs of some of the signals."""
        return training[rows]

    def held_out(self, training: Array, kept: Indices, rows: Indices) -> Any:
        """Return the training inputs of some signals as new inputs, given others for training."""
        return training[rows]


class CovarianceInputs(InputForm):
    """Covariances as inputs: ``K`` for training, and for new signals what `NewInputs.read` takes."""

    is_pairwise = True

    def read(self, inputs: Array) -> Array:
        return as_covariance(inputs)

    def read_new(self, inputs: Any, n_features: int, as_features: Callable[[Any], Array]) -> Any:
        return inputs

    def as_new(self, training: Any) -> Any:
        is_square = not isinstance(training, tuple) and np.ndim(training) == 2 and len(set(np.shape(training))) == 1
        return (training, training) if is_square else training

    def with_kept(self, new: Any, n_given: int, kept: Indices) -> Any:
        cross, *test = new if isinstance(new, tuple) else (new,)
        if np.ndim(cross) == 2 and np.shape(cross)[1] == n_given:
            cross = np.asarray(cross)[:, kept]
        return (cross, *test) if isinstance(new, tuple) else cross

    def some(self, new: Any, rows: Any) -> Any:
        if not isinstance(new, tuple):
            return np.asarray(new)[rows]
        cross, *test = (np.asarray(part)[rows] for part in new)
        return (cross, *(part if part.ndim == 1 else part[:, rows] for part in test))

    def equal_rows(self, training: Array, new: Any) -> list[list[int]]:
        return super().equal_rows(training, new[0] if isinstance(new, tuple) else new)

    def joined(self, training: Array, new: Any) -> Array:
        read = NewInputs.read(training, new)
        return np.block([[training, read.cross.T], [read.cross, read.covariance]])

    def subset(self, training: Array, rows: Indices) -> Array:
        return training[np.ix_(rows, rows)]

    def held_out(self, training: Array, kept: Indices, rows: Indices) -> Any:
        return training[np.ix_(rows, kept)], training[np.ix_(rows, rows)]


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
