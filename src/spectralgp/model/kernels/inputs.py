"""Covariance between signals by their inputs: a learnt kernel, a given matrix, or none; the forms of inputs."""

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
from sklearn.gaussian_process import kernels as sklearn_kernels
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Product

from spectralgp._basics.checks import Array, Indices, as_real_array
from spectralgp._basics.saved import axes, ge
from spectralgp.model.signals.levels import relative_scales
from spectralgp.model.spectra import Modes, modes_of

KernelLike: TypeAlias = Kernel | Literal["precomputed"] | None
KernelTerm = Literal["smooth", "linear"]

LENGTH_SCALE_SPREAD = 0.5  # standard deviation of log length scale, half that of its square
LINEAR_SPREAD = 2.0  # of the log variance of the linear term relative to the smooth one
LEVEL_SPREAD = 3.0  # of the log variance of the nodes' levels
MOST_DISTANT = 1_500  # inputs, at even intervals, for the median distance
MARKOV_SMOOTHNESS = (0.5, 1.5, 2.5)  # of Matern kernels that are processes with one state, two or three
SHORTER_START = 1 / 3  # of the typical length scales, to start learning from as well


class MaternTerm(NamedTuple):
    """Matern process of one column, a term of a kernel, and the positions of its parameters in the kernel's."""

    variance: float
    smoothness: float
    rate: float  # sqrt(2 smoothness) / length scale
    of_variance: tuple[int, ...]  # positions in theta
    of_length: tuple[int, ...]


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

    def read_new(self, inputs: Any, n_features: int, as_features: Callable[[Any], Array]) -> Any:
        """Return new inputs as kernels take them: `as_features`, or no columns if training inputs have none."""
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


class InputKernel(ABC):
    """Covariance ``k(x, x')`` between signals by their inputs; no parameters unless overridden."""

    form: ClassVar[InputForm] = InputForm()
    is_identity: ClassVar[bool] = False  # ``K = I``, whatever the inputs
    has_shorter_start: ClassVar[bool] = False  # from typical length scales a search may end where nothing varies fast

    @property
    @abstractmethod
    def described(self) -> KernelLike:
        """The kernel as users write it: scikit-learn's object, "precomputed", or None for independent signals."""

    @property
    def theta(self) -> Array:
        """Free parameters, on scikit-learn's logarithmic scale."""
        return np.empty(0)

    def with_theta(self, theta: Array) -> Self:
        """Return a copy with other values of the free parameters."""
        return self

    @property
    def bounds(self) -> Array:
        """Bounds of `theta`, shape (n_parameters, 2)."""
        return np.empty((0, 2))

    def prior(self, inputs: Array) -> tuple[Array, Array]:
        """Prior centres and standard deviations of `theta`; centres are NaN except for scales of the inputs."""
        return np.empty(0), np.empty(0)

    @abstractmethod
    def covariance(self, inputs: Array) -> Array:
        """``K`` at training inputs, shape (n_signals, n_signals)."""

    def with_gradient(self, inputs: Array) -> tuple[Array, Array]:
        """``K`` and its derivative in `theta`, shape (n_signals, n_signals, n_parameters)."""
        return self.covariance(inputs), np.empty((inputs.shape[0], inputs.shape[0], 0))

    def columns(self, inputs: Array, points: Indices) -> Array:
        """Columns of ``K`` that belong to some of the signals, shape (n_signals, n_points)."""
        return self.at(inputs[points], inputs).cross

    def variances(self, inputs: Array) -> Array:
        """Diagonal of ``K``."""
        return self.at(inputs[:1], inputs).variances

    @abstractmethod
    def at(self, training: Array, inputs: Any) -> NewInputs:
        """Covariances of new inputs, given the training inputs."""

    @property
    def level(self) -> float:
        """Variance of the nodes' levels, which all covariances include; zero without a term for them."""
        return 0.0


def with_amplitude(kernel: InputKernel, covariance: Array, amplitude: float) -> Array:
    """Return a covariance between signals with all but the level multiplied by a factor."""
    return covariance if amplitude == 1.0 else kernel.level + amplitude * (covariance - kernel.level)


def modes_of_inputs(kernel: InputKernel, inputs: Array, scales: Array | None = None, amplitude: float = 1.0) -> Modes:
    """Modes of ``K``, all but the level times `amplitude`, of signals over `scales`; zero replaces negative values."""
    if kernel.is_identity:
        values = np.full(inputs.shape[0], amplitude)
        return Modes(values if scales is None else values / scales**2, np.eye(inputs.shape[0]))
    covariance = with_amplitude(kernel, kernel.covariance(inputs), amplitude)
    return modes_of(covariance if scales is None else covariance / np.multiply.outer(scales, scales))


def modes_and_gradient(kernel: InputKernel, inputs: Array, scales: Array | None = None) -> tuple[Modes, Array]:
    """Eigendecomposition of ``K`` of signals divided by `scales`, and the derivative of ``K`` in `theta`."""
    if kernel.is_identity:
        return modes_of_inputs(kernel, inputs, scales), np.empty((inputs.shape[0], inputs.shape[0], 0))
    covariance, gradient = kernel.with_gradient(inputs)
    if scales is not None:
        products = np.multiply.outer(scales, scales)
        covariance, gradient = covariance / products, gradient / products[:, :, None]
    return modes_of(covariance), gradient


def new_inputs(kernel: InputKernel, training: Array, inputs: Any) -> Any:
    """Return validated new inputs, with the number of features of the training inputs."""
    n_features = training.shape[1]
    settings: Any = {"sizes": {"n_features": n_features}, "remedy": "Rows are inputs."}
    axes = "n_inputs", "n_features"
    return kernel.form.read_new(inputs, n_features, lambda given: as_real_array(given, "inputs", axes, **settings))


def held_out_inputs(kernel: InputKernel, inputs: Array, kept: Indices, held_out: Indices) -> NewInputs:
    """Covariances of held-out training inputs, as new inputs, with the other training inputs."""
    form = kernel.form
    return kernel.at(form.subset(inputs, kept), form.held_out(inputs, kept, held_out))


def input_starts(kernel: InputKernel, centres: Array) -> list[Array]:
    """Values of `theta` to start learning from: the present ones, and last the prior centres."""
    is_scale = ~np.isnan(centres)
    expected = np.where(is_scale, centres, kernel.theta)
    given = [] if np.allclose(expected, kernel.theta) else [kernel.theta]
    has_shorter = kernel.has_shorter_start and is_scale.any()
    shorter = [expected + np.log(SHORTER_START) * is_scale] if has_shorter else []
    return [*given, *shorter, expected]


def without_amplitude(kernel: InputKernel) -> InputKernel:
    """Return the kernel with its overall factor fixed, for a graph kernel that has its own."""
    described = kernel.described  # a constant alone is no factor
    return LearntInputKernel(_holding_amplitude(described)) if isinstance(described, Product) else kernel


def _without_cache(kernel: Any) -> dict[str, Any]:
    """State of a kernel for pickling."""
    return {**vars(kernel), "_cache": []}


@dataclass(frozen=True, eq=False)
class LearntInputKernel(InputKernel):
    """Learnt kernel: one of scikit-learn."""

    kernel: Kernel
    _cache: list[Any] = field(default_factory=list, repr=False)  # the last inputs and their squared distances
    has_shorter_start = True

    __getstate__ = _without_cache

    @property
    def described(self) -> KernelLike:
        return self.kernel

    @property
    def theta(self) -> Array:
        return np.asarray(self.kernel.theta, dtype=float)

    @property
    def bounds(self) -> Array:
        return np.reshape(np.asarray(self.kernel.bounds, dtype=float), (-1, 2))

    def prior(self, inputs: Array) -> tuple[Array, Array]:
        return length_scale_centres(self.kernel, inputs), np.full(self.theta.size, LENGTH_SCALE_SPREAD)

    def with_theta(self, theta: Array) -> Self:
        if theta.size == 0:
            return self
        if self._is_plain:  # a copy by scikit-learn takes longer than a small eigendecomposition
            kernel = RBF(float(np.exp(theta[0])), self.kernel.length_scale_bounds)
            return dataclasses.replace(self, kernel=kernel)
        return dataclasses.replace(self, kernel=self.kernel.clone_with_theta(theta))

    @property
    def _is_plain(self) -> bool:
        """Whether it is a squared exponential of one free length scale, a function of distances alone."""
        kernel = self.kernel
        is_free = not isinstance(kernel.length_scale_bounds, str) if type(kernel) is RBF else False
        return is_free and np.ndim(kernel.length_scale) == 0

    def covariance(self, inputs: Array) -> Array:
        return np.asarray(self.kernel(inputs))

    def with_gradient(self, inputs: Array) -> tuple[Array, Array]:
        if not self._is_plain:
            covariance, gradient = self.kernel(inputs, eval_gradient=True)
            return covariance, np.asarray(gradient)
        known: Any = self._cache[0] if self._cache else (None, None)
        if known[0] is not inputs:
            known = inputs, squareform(pdist(inputs, "sqeuclidean"))
            self._cache[:] = [known]  # at once: threads may share it
        scaled = known[1] / self.kernel.length_scale**2
        covariance = np.exp(-0.5 * scaled)
        return covariance, (scaled * covariance)[:, :, None]

    def at(self, training: Array, inputs: Array) -> NewInputs:
        return NewInputs.by_kernel(self.kernel, training, inputs)


@dataclass(frozen=True)
class PrecomputedCovariance(InputKernel):
    """Given covariance matrix: at fit the inputs are ``K`` itself."""

    form = CovarianceInputs()
    described = "precomputed"

    def covariance(self, inputs: Array) -> Array:
        return as_covariance(inputs)

    def columns(self, inputs: Array, points: Indices) -> Array:
        return inputs[:, points]

    def variances(self, inputs: Array) -> Array:
        return np.diag(inputs).copy()

    def at(self, training: Array, inputs: Any) -> NewInputs:
        return NewInputs.read(training, inputs)


@dataclass(frozen=True)
class IndependentSignals(InputKernel):
    """Independent signals, ``K = I``, whatever their inputs are, if they have any."""

    is_identity = True
    described = None

    def columns(self, inputs: Array, points: Indices) -> Array:
        return np.equal.outer(np.arange(inputs.shape[0]), points).astype(float)

    def covariance(self, inputs: Array) -> Array:
        return np.eye(inputs.shape[0])

    def at(self, training: Array, inputs: Any) -> NewInputs:
        n_inputs = np.shape(inputs)[0]
        cross = np.zeros((n_inputs, training.shape[0]))
        return NewInputs(cross, partial(np.ones, n_inputs), partial(np.eye, n_inputs))


@dataclass(frozen=True, eq=False)
class StandardisedKernel(InputKernel):
    """Default kernel, of inputs whose columns are centred and divided by their standard deviations.

    A squared exponential, a linear term, or both, and a level per node. Variances are relative to the first term's.
    """

    terms: Annotated[tuple[KernelTerm, ...], ge(1, 2)]
    # of the length scale, the variance of the linear term if it is not the first, the variance of the levels
    logarithms: Annotated[Array, axes("_parameters")]
    # prior centres of the logarithms, derived from the scale of the inputs
    centres: Annotated[Array, axes("_parameters")]
    offset: Annotated[Array, axes("n_features")]  # mean of each column
    spread: Annotated[Array, axes("n_features")]  # standard deviation of each column; one where it is constant
    _cache: list[Any] = field(default_factory=list, repr=False)  # the last inputs, their distances and products

    __getstate__ = _without_cache

    @classmethod
    def of(
        cls, inputs: Array, terms: tuple[KernelTerm, ...] = ("smooth", "linear"), alike: Indices | None = None
    ) -> StandardisedKernel:
        """The kernel started at the inputs' own scale; deviations of columns of one kind are moderated: (13c)."""
        offset, spread = inputs.mean(axis=0), inputs.std(axis=0)
        if alike is not None:
            variances = spread[alike] ** 2
            spread[alike] = np.sqrt(np.mean(variances)) * relative_scales(variances, np.full(alike.size, len(inputs)))
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
        linear, level = sklearn_kernels.DotProduct(0.0, "fixed"), ConstantKernel(values[-1])
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

    def prior(self, inputs: Array) -> tuple[Array, Array]:
        return self.centres, np.array([*(LENGTH_SCALE_SPREAD, LINEAR_SPREAD)[: self.centres.size - 1], LEVEL_SPREAD])

    def with_theta(self, theta: Array) -> Self:
        return dataclasses.replace(self, logarithms=np.array(theta, dtype=float))

    def covariance(self, inputs: Array) -> Array:
        return np.asarray(self.described((inputs - self.offset) / self.spread))

    def with_gradient(self, inputs: Array) -> tuple[Array, Array]:
        known: Any = self._cache[0] if self._cache else (None, None, None)
        if known[0] is not inputs:
            standardised = (inputs - self.offset) / self.spread
            known = inputs, squareform(pdist(standardised, "sqeuclidean")), standardised @ standardised.T
            self._cache[:] = [known]  # at once: threads may share it
        (_, squares, products), values = known, np.exp(self.logarithms)
        slopes = [np.full(products.shape, values[-1])]
        if self.terms == ("linear",):
            covariance = products / max(1, self.offset.size) + values[-1]
        else:
            scaled, smooth = squares / values[0] ** 2, np.exp(-0.5 * squares / values[0] ** 2)
            linear = [values[1] * products] if "linear" in self.terms else []
            covariance = smooth + sum(linear) + values[-1]
            slopes = [scaled * smooth, *linear, *slopes]
        return covariance, np.stack(slopes, axis=-1)

    def at(self, training: Array, inputs: Array) -> NewInputs:
        known, new = ((rows - self.offset) / self.spread for rows in (training, inputs))
        return NewInputs.by_kernel(self.described, known, new)

    @property
    def level(self) -> float:
        return float(np.exp(self.logarithms[-1]))


def as_input_kernel(kernel: InputKernel | KernelLike) -> InputKernel:
    """Input kernel for a scikit-learn kernel, "precomputed" or None."""
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


def length_scale_centres(kernel: Kernel, inputs: Array) -> Array:
    """Logarithm of the inputs' typical distance for each free length scale that divides one; NaN elsewhere."""
    if isinstance(kernel, sklearn_kernels.KernelOperator):
        return np.concatenate([length_scale_centres(part, inputs) for part in (kernel.k1, kernel.k2)])
    if isinstance(kernel, sklearn_kernels.Exponentiation):
        return length_scale_centres(kernel.kernel, inputs)
    centres: list[float] = []
    # functions of |x - x'| / length_scale
    is_of_distance = isinstance(kernel, RBF | sklearn_kernels.Matern | sklearn_kernels.RationalQuadratic)
    for parameter in (one for one in kernel.hyperparameters if not one.fixed):
        if not is_of_distance or parameter.name != "length_scale" or inputs.shape[0] < 2:
            centres += [np.nan] * parameter.n_elements
        elif parameter.n_elements == 1:  # its square is centred at the median squared distance
            centres.append(half_log_median(inputs))
        else:  # they share it out
            spread = 0.5 * np.log(inputs.shape[1])
            centres += [half_log_median(column[:, None]) + spread for column in inputs.T]
    return np.array(centres, dtype=float)


def matern_terms(kernel: InputKernel, inputs: Array) -> tuple[MaternTerm, ...]:
    """Terms of a kernel that is a sum of Matern processes of one column of inputs; empty for other kernels."""
    return () if inputs.shape[1:] != (1,) else _matern_terms(kernel.described, 0) or ()


def _matern_terms(kernel: Any, place: int) -> tuple[MaternTerm, ...] | None:
    """Terms of a sum of Matern kernels times constants, whose parameters begin at a place; None for other kernels."""
    if isinstance(kernel, sklearn_kernels.Sum):
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
    if (
        type(kernel) is not sklearn_kernels.Matern
        or kernel.nu not in MARKOV_SMOOTHNESS
        or np.ndim(kernel.length_scale) > 0
    ):
        return None
    rate = float(np.sqrt(2 * kernel.nu) / kernel.length_scale)
    return (MaternTerm(1.0, kernel.nu, rate, (), tuple(range(place, place + kernel.n_dims))),)


def _holding_amplitude(kernel: Kernel) -> Kernel:
    """Product with its constant factors fixed; other kernels are unchanged."""
    if isinstance(kernel, ConstantKernel):
        return ConstantKernel(kernel.constant_value, "fixed")
    if not isinstance(kernel, Product):
        return kernel
    return Product(_holding_amplitude(kernel.k1), _holding_amplitude(kernel.k2))


def half_log_median(inputs: Array) -> float:
    """Logarithm of the root of the median squared distance; NaN if more than half of the pairs coincide."""
    rows = np.linspace(0, len(inputs) - 1, min(len(inputs), MOST_DISTANT)).astype(np.intp)
    median = np.median(pdist(inputs[rows], "sqeuclidean"))
    return float(0.5 * np.log(median)) if median > 0 else float("nan")
