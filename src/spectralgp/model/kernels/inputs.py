"""Covariance between signals by their inputs: a kernel that is learnt, a matrix that is given, or none."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import pdist, squareform
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    Kernel,
    KernelOperator,
    Matern,
    Product,
    RationalQuadratic,
    Sum,
)

from spectralgp._basics.checks import Array, Indices, as_real_array
from spectralgp._basics.saved import axes, ge
from spectralgp.model.spectra import Modes, modes_of

KernelLike: TypeAlias = Kernel | Literal["precomputed"] | None
Clock = Literal["numbers", "dates"]
KernelTerm = Literal["smooth", "linear"]

LENGTH_SCALE_SPREAD = 0.5  # standard deviation of log length scale, half that of its square
LINEAR_SPREAD = 2.0  # of the log variance of the linear term relative to the smooth one
LEVEL_SPREAD = 3.0  # of the log variance of the nodes' levels
MOST_DISTANT = 1_500  # inputs, at even intervals, whose distances say what is typical
MARKOV_SMOOTHNESS = (0.5, 1.5, 2.5)  # of Matern kernels that are processes with one state, two or three
SHORTER_START = 1 / 3  # of the typical length scales, to start learning from as well
_OF_A_DISTANCE = (RBF, Matern, RationalQuadratic)  # functions of |x - x'| / length_scale


@dataclass(frozen=True)
class InputRecipe:
    """How inputs were made from files, which a model file keeps for later commands to make them in the same way."""

    time: Clock | None = None  # a column "time": a number as it is written, or a date as days since 1970-01-01, UTC
    lag: Annotated[int, ge(1)] | None = None  # one column per node with the signal this many rows before
    columns: tuple[str, ...] = ()  # that come from a table

    def __str__(self) -> str:
        parts = [] if self.time is None else [f"time ({self.time})"]
        parts += [] if self.lag is None else [f"lag:{self.lag}"]
        more = f", ... ({len(self.columns)} columns)" if len(self.columns) > 5 else ""
        parts += [f"a table with {', '.join(self.columns[:5])}{more}"] if self.columns else []
        return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]])) or "no inputs"


@dataclass(frozen=True, eq=False)
class NewInputs:
    """Covariances of new inputs with the training inputs and among themselves: all that prediction needs of them."""

    cross: Array  # k(x*, x_n), shape (n_inputs, n_signals)
    find_variances: Callable[[], Array]
    find_covariance: Callable[[], Array]
    inputs: Array | None = None  # the new inputs themselves, where they are features

    @classmethod
    def by_kernel(cls, kernel: Kernel, training: Array, inputs: Array) -> NewInputs:
        """Covariances by a scikit-learn kernel, those among new inputs where they are asked for."""
        return cls(np.asarray(kernel(inputs, training)), partial(kernel.diag, inputs), partial(kernel, inputs), inputs)

    @classmethod
    def given(cls, cross: Array, variances: Array | None = None, covariance: Array | None = None) -> NewInputs:
        """Covariances that were given as matrices; those among new inputs may be missing."""
        return cls(cross, partial(_required, variances), partial(_required, covariance))

    def divided_by(self, scales: Array | None) -> NewInputs:
        """The covariances with training signals that were each divided by a scale, if they were."""
        return self if scales is None else dataclasses.replace(self, cross=self.cross / scales)

    @cached_property
    def variances(self) -> Array:
        """``k(x*, x*)``, shape (n_inputs,)."""
        return np.asarray(self.find_variances())

    @cached_property
    def covariance(self) -> Array:
        """``k(x*, x*')``, shape (n_inputs, n_inputs)."""
        return np.asarray(self.find_covariance())


def _required(matrix: Array | None) -> Array:
    if matrix is None:
        raise ValueError(
            "X must hold the covariance of the test inputs where covariances are wanted; got the cross-covariance "
            "only. Pass X = (cross, test covariance)."
        )
    return matrix


class MaternTerm(NamedTuple):
    """A Matern process of one column that a kernel is a sum of, and which of the kernel's parameters are its own."""

    variance: float
    smoothness: float
    rate: float  # sqrt(2 smoothness) / length scale
    of_variance: tuple[int, ...]  # places in theta
    of_length: tuple[int, ...]


class InputKernel(ABC):
    """Covariance ``k(x, x')`` between signals, by what they were observed at; no parameters unless overridden."""

    has_features: ClassVar[bool] = True  # inputs have one row per signal, whose columns and equality mean something
    is_pairwise: ClassVar[bool] = False  # inputs are covariances, with one row and one column per signal

    @property
    @abstractmethod
    def described(self) -> KernelLike:
        """The kernel as users write it: scikit-learn's object, "precomputed", or None for independent signals."""

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

    def columns(self, inputs: Array, points: Indices) -> Array:
        """Columns of ``K`` that belong to some of the signals, shape (n_signals, n_points)."""
        return self.at(inputs[points], inputs).cross

    def variances(self, inputs: Array) -> Array:
        """Diagonal of ``K``."""
        return self.at(inputs[:1], inputs).variances

    def modes(self, inputs: Array, scales: Array | None = None, amplitude: float = 1.0) -> Modes:
        """Eigendecomposition of ``K``, zero standing for eigenvalues that are negative.

        Of signals divided by `scales`, and with all but the level multiplied by an `amplitude`.
        """
        return modes_of(_divided(self.with_amplitude(self.covariance(inputs), amplitude), scales))

    def modes_and_gradient(self, inputs: Array, scales: Array | None = None) -> tuple[Modes, Array]:
        """Such modes of ``K``, and its derivative in `theta`, shape (n_signals, n_signals, n_parameters)."""
        return self.modes(inputs, scales), np.empty((inputs.shape[0], inputs.shape[0], 0))

    def training(self, inputs: Array) -> Array:
        """Training inputs as `covariance` takes them, checked."""
        return inputs

    def new(self, inputs: Any, as_features: Callable[[Any], Array]) -> Any:
        """New inputs as a user gives them, in the form that `at` takes; `as_features` checks an array of features."""
        return as_features(inputs)

    def read_new(self, training: Array, inputs: Any) -> Any:
        """Validate new inputs, which have the features of the training inputs, in the form that `at` takes."""
        settings: Any = {"sizes": {"n_features": training.shape[1]}, "remedy": "Rows are inputs."}
        return self.new(inputs, lambda given: as_real_array(given, "inputs", ("n_inputs", "n_features"), **settings))

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
        """Covariances of held-out training inputs with those that are kept, as if the former were new."""
        return self.at(inputs[kept], inputs[held_out])

    def theta_prior(self, inputs: Array) -> tuple[Array, Array]:
        """Prior centre of each parameter, the scale of the inputs for length scales or NaN, and standard deviation."""
        return np.empty(0), np.empty(0)

    def starting_points(self, centres: Array) -> list[Array]:
        """Values of `theta` to start learning from: the present ones, and last the centres of the prior, if any."""
        expected = np.where(np.isnan(centres), self.theta, centres)
        return [expected] if np.allclose(expected, self.theta) else [self.theta, expected]

    def matern_terms(self, inputs: Array) -> tuple[MaternTerm, ...]:
        """What the kernel is a sum of, where that is Matern processes of the one column of inputs; else nothing."""
        return ()

    def without_amplitude(self) -> InputKernel:
        """The kernel with its overall factor held, for a graph kernel that has a factor of its own."""
        return self

    @property
    def level(self) -> float:
        """Variance of the nodes' levels, which is in all covariances; zero where there is no term for them."""
        return 0.0

    def with_amplitude(self, covariance: Array, amplitude: float) -> Array:
        """A covariance between signals with all but the level multiplied by a factor."""
        return covariance if amplitude == 1.0 else self.level + amplitude * (covariance - self.level)


class _Memory(list[tuple[Array, ...]]):
    """What was computed of the inputs alone, and those; pickles leave it out."""

    def __reduce__(self) -> tuple[type[_Memory], tuple[()]]:
        return _Memory, ()


@dataclass(frozen=True, eq=False)
class LearntInputKernel(InputKernel):
    """A scikit-learn kernel, whose free parameters are learnt."""

    kernel: Kernel
    _distances: _Memory = field(default_factory=_Memory, repr=False)

    @property
    def described(self) -> KernelLike:
        return self.kernel

    def without_amplitude(self) -> Self:
        is_product = isinstance(self.kernel, Product)  # a constant alone is the whole of a kernel, not its factor
        return dataclasses.replace(self, kernel=_holding_amplitude(self.kernel)) if is_product else self

    def matern_terms(self, inputs: Array) -> tuple[MaternTerm, ...]:
        found = _matern_terms(self.kernel, 0)
        return () if found is None or inputs.shape[1:] != (1,) else found

    @property
    def theta(self) -> Array:
        return np.asarray(self.kernel.theta, dtype=float)

    @property
    def bounds(self) -> Array:
        return np.reshape(np.asarray(self.kernel.bounds, dtype=float), (-1, 2))

    def with_theta(self, theta: Array) -> Self:
        if theta.size == 0:
            return self
        if self._is_plain:  # a copy by scikit-learn takes longer than a small eigendecomposition
            kernel = RBF(float(np.exp(theta[0])), self.kernel.length_scale_bounds)
            return dataclasses.replace(self, kernel=kernel)
        return dataclasses.replace(self, kernel=self.kernel.clone_with_theta(theta))

    @property
    def _is_plain(self) -> bool:
        """Whether it is a squared exponential of one free length scale, of which distances are all that it takes."""
        kernel = self.kernel
        is_free = not isinstance(kernel.length_scale_bounds, str) if type(kernel) is RBF else False
        return is_free and np.ndim(kernel.length_scale) == 0

    def covariance(self, inputs: Array) -> Array:
        return np.asarray(self.kernel(inputs))

    def modes_and_gradient(self, inputs: Array, scales: Array | None = None) -> tuple[Modes, Array]:
        if self._is_plain:
            if not self._distances or self._distances[0][0] is not inputs:
                self._distances[:] = [(inputs, squareform(pdist(inputs, "sqeuclidean")))]
            scaled = self._distances[0][1] / self.kernel.length_scale**2
            covariance = np.exp(-0.5 * scaled)
            gradient = (scaled * covariance)[:, :, None]
        else:
            covariance, gradient = self.kernel(inputs, eval_gradient=True)
        return modes_of(_divided(covariance, scales)), _divided(np.asarray(gradient), scales)

    def at(self, training: Array, inputs: Array) -> NewInputs:
        return NewInputs.by_kernel(self.kernel, training, inputs)

    def theta_prior(self, inputs: Array) -> tuple[Array, Array]:
        return length_scale_centres(self.kernel, inputs), np.full(self.theta.size, LENGTH_SCALE_SPREAD)

    def starting_points(self, centres: Array) -> list[Array]:
        *given, expected = super().starting_points(centres)
        is_scale = ~np.isnan(centres)
        # shorter length scales too: from the typical ones a search may end where nothing varies fast
        shorter = [expected + np.log(SHORTER_START) * is_scale] if is_scale.any() else []
        return [*given, *shorter, expected]


@dataclass(frozen=True)
class PrecomputedCovariance(InputKernel):
    """A covariance matrix of the user's own: at fit the inputs are ``K`` itself."""

    has_features = False
    is_pairwise = True
    described = "precomputed"

    def covariance(self, inputs: Array) -> Array:
        return as_covariance(inputs)

    training = covariance

    def columns(self, inputs: Array, points: Indices) -> Array:
        return inputs[:, points]

    def variances(self, inputs: Array) -> Array:
        return np.diag(inputs).copy()

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
        given, *test = inputs if isinstance(inputs, tuple) else (inputs,)
        if isinstance(inputs, tuple) and len(test) != 1:
            raise ValueError(
                f"X must be a matrix or a pair of them where the kernel is precomputed; got {len(inputs)} parts. "
                f"{remedy}"
            )
        sizes = {"n_signals": training.shape[0]}
        cross = as_real_array(given, "X", ("n_inputs", "n_signals"), sizes=sizes, remedy=remedy)
        if not test:
            return NewInputs.given(cross)
        is_diagonal = np.ndim(test[0]) == 1
        name, axes = f"the test {'variances' if is_diagonal else 'covariance'} in X", ("n_inputs",) * (2 - is_diagonal)
        among = as_real_array(test[0], name, axes, sizes={"n_inputs": cross.shape[0]}, remedy=remedy)
        return NewInputs.given(cross, among) if is_diagonal else NewInputs.given(cross, np.diag(among).copy(), among)

    def together(self, training: Array, inputs: Any) -> Array:
        new = self.at(training, inputs)
        return np.block([[training, new.cross.T], [new.cross, new.covariance]])

    def subset(self, inputs: Array, rows: Indices) -> Array:
        return inputs[np.ix_(rows, rows)]

    def between(self, inputs: Array, kept: Indices, held_out: Indices) -> NewInputs:
        test = inputs[np.ix_(held_out, held_out)]
        return NewInputs.given(inputs[np.ix_(held_out, kept)], np.diag(test).copy(), test)


@dataclass(frozen=True)
class UnrelatedSignals(InputKernel):
    """Signals that have nothing to do with one another, ``K = I``, whatever their inputs are."""

    has_features = False
    described = None

    def columns(self, inputs: Array, points: Indices) -> Array:
        return np.equal.outer(np.arange(inputs.shape[0]), points).astype(float)

    def covariance(self, inputs: Array) -> Array:
        return np.eye(inputs.shape[0])

    def modes(self, inputs: Array, scales: Array | None = None, amplitude: float = 1.0) -> Modes:
        values = np.full(inputs.shape[0], amplitude)
        return Modes(values if scales is None else values / scales**2, np.eye(inputs.shape[0]))

    def at(self, training: Array, inputs: Any) -> NewInputs:
        n_inputs = np.shape(inputs)[0]
        return NewInputs.given(np.zeros((n_inputs, training.shape[0])), np.ones(n_inputs), np.eye(n_inputs))


@dataclass(frozen=True)
class IndependentSignals(UnrelatedSignals):
    """Signals that have nothing to do with one another, ``K = I``; inputs have no columns."""

    def new(self, inputs: Any, as_features: Callable[[Any], Array]) -> Any:
        return np.empty((1, 0)) if inputs is None else inputs

    def at(self, training: Array, inputs: Any) -> NewInputs:
        shape = np.shape(inputs)
        if len(shape) != 2 or shape[1] != 0:
            raise ValueError(
                "X must be None, or have no columns, where the model was fitted with X=None, in which signals are "
                f"independent; got shape {shape}. Fit with inputs X to predict from them."
            )
        return super().at(training, inputs)


@dataclass(frozen=True, eq=False)
class StandardisedKernel(InputKernel):
    """The default kernel, of inputs with every column centred and divided by its standard deviation.

    A squared exponential, a linear term, or both, and a level per node. Variances are relative to the first term's.
    """

    terms: Annotated[tuple[KernelTerm, ...], ge(1, 2)]
    # of length scale, variance of the linear term where it is not the first, variance of the levels
    logarithms: Annotated[Array, axes("_parameters")]
    # prior centres of the logarithms, derived from the scale of the inputs
    centres: Annotated[Array, axes("_parameters")]
    offset: Annotated[Array, axes("n_features")]  # mean of each column
    spread: Annotated[Array, axes("n_features")]  # standard deviation of each column; one where it is constant
    _products: _Memory = field(default_factory=_Memory, repr=False)

    @classmethod
    def of(cls, inputs: Array, terms: tuple[KernelTerm, ...] = ("smooth", "linear")) -> StandardisedKernel:
        """The kernel started at the inputs' own scale."""
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
        widths = np.full(self.centres.size, np.log(1e5))
        if "smooth" in self.terms:
            widths[0] = np.log(1e3)
        return self.centres[:, None] + np.multiply.outer(widths, [-1.0, 1.0])

    def with_theta(self, theta: Array) -> Self:
        return dataclasses.replace(self, logarithms=np.array(theta, dtype=float))

    def covariance(self, inputs: Array) -> Array:
        return np.asarray(self.described(self._standardised(inputs)))

    def modes_and_gradient(self, inputs: Array, scales: Array | None = None) -> tuple[Modes, Array]:
        """From what depends on the inputs alone, which is remembered."""
        if not self._products or self._products[0][0] is not inputs:
            standardised = self._standardised(inputs)
            squares = squareform(pdist(standardised, "sqeuclidean"))
            self._products[:] = [(inputs, squares, standardised @ standardised.T)]
        _, squares, products = self._products[0]
        values = np.exp(self.logarithms)
        slopes = [np.full(products.shape, values[-1])]
        if self.terms == ("linear",):
            covariance = products / max(1, self.offset.size) + values[-1]
        else:
            scaled, smooth = squares / values[0] ** 2, np.exp(-0.5 * squares / values[0] ** 2)
            linear = [values[1] * products] if "linear" in self.terms else []
            covariance = smooth + sum(linear) + values[-1]
            slopes = [scaled * smooth, *linear, *slopes]
        return modes_of(_divided(covariance, scales)), _divided(np.stack(slopes, axis=-1), scales)

    def at(self, training: Array, inputs: Array) -> NewInputs:
        return NewInputs.by_kernel(self.described, self._standardised(training), self._standardised(inputs))

    @property
    def level(self) -> float:
        return float(np.exp(self.logarithms[-1]))

    def theta_prior(self, inputs: Array) -> tuple[Array, Array]:
        of_terms = (LENGTH_SCALE_SPREAD, LINEAR_SPREAD)[: self.centres.size - 1]
        return self.centres, np.array([*of_terms, LEVEL_SPREAD])

    def _standardised(self, inputs: Array) -> Array:
        return (inputs - self.offset) / self.spread


def as_input_kernel(kernel: InputKernel | KernelLike) -> InputKernel:
    """The kind of input kernel that a scikit-learn kernel, "precomputed" or None stands for."""
    if isinstance(kernel, InputKernel):
        return kernel
    if kernel is None:
        return IndependentSignals()
    if isinstance(kernel, Kernel):
        return LearntInputKernel(kernel)
    if isinstance(kernel, str) and kernel == "precomputed":
        return PrecomputedCovariance()
    raise TypeError(
        f"input_kernel must be a scikit-learn kernel such as RBF(), 'precomputed' or None; got {kernel!r}. "
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
    """Logarithm of the inputs' typical distance for each free length scale that divides one; NaN for other parameters.

    The square of an isotropic length scale is centred at the median squared distance; anisotropic ones share it out.
    """
    if isinstance(kernel, KernelOperator):
        return np.concatenate([length_scale_centres(part, inputs) for part in (kernel.k1, kernel.k2)])
    if isinstance(kernel, Exponentiation):
        return length_scale_centres(kernel.kernel, inputs)
    centres: list[float] = []
    for parameter in (one for one in kernel.hyperparameters if not one.fixed):
        is_distance = isinstance(kernel, _OF_A_DISTANCE) and parameter.name == "length_scale"
        if not is_distance or inputs.shape[0] < 2:
            centres += [np.nan] * parameter.n_elements
        elif parameter.n_elements == 1:
            centres.append(half_log_median(inputs))
        else:
            spread = 0.5 * np.log(inputs.shape[1])
            centres += [half_log_median(column[:, None]) + spread for column in inputs.T]
    return np.array(centres, dtype=float)


def _divided(matrix: Array, scales: Array | None) -> Array:
    """A covariance of signals, or derivatives of one along a last axis, of signals divided by scales if there are."""
    if scales is None:
        return matrix
    return matrix / np.multiply.outer(scales, scales).reshape(matrix.shape[:2] + (1,) * (matrix.ndim - 2))


def _matern_terms(kernel: Kernel, place: int) -> tuple[MaternTerm, ...] | None:
    """Terms of a sum of Matern kernels times constants; None where it is anything else. Parameters begin at a place."""
    if isinstance(kernel, Sum):
        first, second = _matern_terms(kernel.k1, place), _matern_terms(kernel.k2, place + kernel.k1.n_dims)
        return None if first is None or second is None else first + second
    if isinstance(kernel, Product):
        for constant, other in ((kernel.k1, kernel.k2), (kernel.k2, kernel.k1)):
            if isinstance(constant, ConstantKernel):
                own, rest = (place, place + constant.n_dims) if constant is kernel.k1 else (place + other.n_dims, place)
                terms = _matern_terms(other, rest)
                factor, places = constant.constant_value, tuple(range(own, own + constant.n_dims))
                return terms and tuple(
                    one._replace(variance=factor * one.variance, of_variance=one.of_variance + places) for one in terms
                )
        return None
    if type(kernel) is not Matern or kernel.nu not in MARKOV_SMOOTHNESS or np.ndim(kernel.length_scale) > 0:
        return None
    rate = float(np.sqrt(2 * kernel.nu) / kernel.length_scale)
    return (MaternTerm(1.0, kernel.nu, rate, (), tuple(range(place, place + kernel.n_dims))),)


def _holding_amplitude(kernel: Kernel) -> Kernel:
    """A product with its constant factors fixed; any other kernel as it is."""
    if isinstance(kernel, ConstantKernel):
        return ConstantKernel(kernel.constant_value, "fixed")
    if not isinstance(kernel, Product):
        return kernel
    return Product(_holding_amplitude(kernel.k1), _holding_amplitude(kernel.k2))


def half_log_median(inputs: Array) -> float:
    """Logarithm of the root of the median squared distance; NaN where more than half of the inputs coincide."""
    rows = np.linspace(0, len(inputs) - 1, min(len(inputs), MOST_DISTANT)).astype(np.intp)
    median = np.median(pdist(inputs[rows], "sqeuclidean"))
    return float(0.5 * np.log(median)) if median > 0 else float("nan")
