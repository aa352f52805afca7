"""Graph kernels of the literature, each a closed formula, and user-defined filters."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from spectralgp._basics.arrays import without_caches
from spectralgp._basics.checks import Array, as_integer, as_option, as_positive, as_real_array
from spectralgp._basics.saved import Number, Positive, Range, ge
from spectralgp.graphs import Graph, LaplacianKind
from spectralgp.model.kernels.base import GraphKernel, KernelSearch, SpectralKernel
from spectralgp.model.spectra import ExactSpectrum, Spectrum, modes_of, require_eigenvectors

Bound = Annotated[float, Range(0, is_extended=True)]
Bounds = tuple[Bound, Bound] | Literal["fixed"]
Shape = Literal["exponential", "line", "parabola"]  # of a pinned filter
End = Literal["high", "low"]  # of the spectrum

STRENGTH_BOUNDS = (1e-5, 1e5)
# values of parameters to start learning from as well
STARTS = {"strength": (0.1, 10.0), "shift": (3.0, 20.0), "length_scale": (0.3, 5.0)}
BOUND_ROUNDING = 1e-9  # by which a learnt parameter may lie beyond its bound
N_SAMPLED = 9  # frequencies from 0 to 1 whose values identify a function
# derivatives to second order: by the offsets of values in steps, their weights
DIFFERENCES = {(-1, 1): (-0.5, 0.5), (0, 1, 2): (-1.5, 2.0, -0.5), (-2, -1, 0): (0.5, -2.0, 1.5)}


@cache
def _positive_parameters(kind: Any) -> tuple[str, ...]:
    """Names of the fields of a type that have bounds, the amplitude first."""
    names = [field.name for field in dataclasses.fields(kind)]
    return ("amplitude", *(name for name in names if name != "amplitude" and f"{name}_bounds" in names))


class PositiveParameters(GraphKernel):
    """A kernel whose parameters are positive numbers, learnt on a logarithmic scale.

    Each has a companion ``<name>_bounds``, a pair or "fixed". The amplitude, which has the units of the signals, is
    free within eight orders of magnitude of their standard deviation if its bounds are None.
    """

    _is_bounded: ClassVar[bool] = False  # whether the formula holds for eigenvalues up to 2 only
    amplitude: float
    amplitude_bounds: Bounds | None

    def __post_init__(self) -> None:
        """Check every parameter and its bounds."""
        if self._is_bounded and self.laplacian != "normalized" and not self.scaled:
            raise ValueError(
                f"laplacian must be 'normalized', or scaled, for {type(self).__name__}, whose formula turns negative "
                f"beyond eigenvalue 2; got laplacian = {self.laplacian!r}. Pass laplacian='normalized' or scaled=True."
            )
        for name in _positive_parameters(type(self)):
            value = as_positive(getattr(self, name), name)
            bounds: Bounds | None = getattr(self, f"{name}_bounds")
            if bounds == "fixed" or (bounds is None and name == "amplitude"):
                continue
            if bounds is None or isinstance(bounds, str) or np.shape(bounds) != (2,):
                raise ValueError(
                    f"{name}_bounds must be a pair (low, high) or 'fixed'; got {bounds!r}. Pass such as (0.1, 10.0)."
                )
            low, high = np.asarray(bounds, dtype=float)
            if not 0 < low * (1 - BOUND_ROUNDING) <= value <= high * (1 + BOUND_ROUNDING):
                raise ValueError(
                    f"{name} must lie within {name}_bounds, themselves positive and ascending; got {name} = {value} "
                    f"and bounds {bounds}. Widen {name}_bounds or pass 'fixed'."
                )

    __getstate__ = without_caches

    @cached_property
    def free_names(self) -> tuple[str, ...]:
        """Names of the parameters that are not fixed."""
        names = _positive_parameters(type(self))
        return tuple(name for name in names if getattr(self, f"{name}_bounds") != "fixed")

    @property
    def theta(self) -> Array:
        return np.log([getattr(self, name) for name in self.free_names])

    def with_theta(self, theta: ArrayLike) -> Self:
        other = object.__new__(type(self))  # without the checks: bounds bind learning alone
        vars(other).update(vars(self), **dict(zip(self.free_names, np.exp(theta).tolist(), strict=True)))
        return other

    def search(self) -> KernelSearch:
        return KernelSearch(self, self.free_names, self._log_bounds, self._starts)

    def _log_bounds(self) -> Array:
        pairs = [getattr(self, f"{name}_bounds") or (np.nan, np.nan) for name in self.free_names]
        return np.log(np.reshape(pairs, (-1, 2)))

    def _starts(self) -> list[Array]:
        theta = dict(zip(self.free_names, self.theta.tolist(), strict=True))
        logs = [{name: np.log(value)} for name in self.free_names for value in STARTS.get(name, ())]
        return [np.array(list((theta | one).values())) for one in logs]

    def scaled_by(self, factor: float) -> Self:
        bounds = self.amplitude_bounds
        scaled = (bounds[0] * factor, bounds[1] * factor) if isinstance(bounds, tuple) else bounds
        other = object.__new__(type(self))
        vars(other).update(vars(self), amplitude=self.amplitude * factor, amplitude_bounds=scaled)
        return other


class NamedKernel(PositiveParameters, SpectralKernel):
    """``amplitude^2`` times a formula, which subclasses give with its derivatives."""

    @abstractmethod
    def _formula(self, eigenvalues: Array) -> tuple[Array, ...]:
        """Power at unit amplitude, and its derivatives in the logarithms of the other parameters."""

    def power(self, eigenvalues: ArrayLike) -> Array:
        return self.amplitude**2 * self._formula(np.asarray(eigenvalues, dtype=float))[0]

    def power_jacobian(self, eigenvalues: ArrayLike) -> Array:
        formula, *slopes = self._formula(np.asarray(eigenvalues, dtype=float))
        columns = dict(zip(_positive_parameters(type(self)), (2 * formula, *slopes), strict=True))
        chosen = [self.amplitude**2 * columns[name] for name in self.free_names]
        return np.stack(chosen, axis=1) if chosen else np.empty((formula.size, 0))


@dataclass(frozen=True)
class Identity(NamedKernel):
    """The standard multi-output GP: ``B = I``, nodes independent given the input.

    Examples
    --------
    >>> from spectralgp import Identity
    >>> Identity(amplitude=2.0).power([0.0, 0.5]).tolist()
    [4.0, 4.0]
    """

    amplitude: Positive = 1.0
    amplitude_bounds: Bounds | None = None
    laplacian: LaplacianKind = "combinatorial"
    scaled: bool = False
    needs_no_graph = True

    def _formula(self, eigenvalues: Array) -> tuple[Array, ...]:
        return (np.ones_like(eigenvalues),)


@dataclass(frozen=True)
class GlobalFilter(NamedKernel):
    """Global filtering (Venkitaraman et al.): ``B = (I + a L)^-1`` with `strength` a.

    Examples
    --------
    >>> from spectralgp import GlobalFilter
    >>> GlobalFilter(strength=1.0).response([0.0, 1.0]).tolist()
    [1.0, 0.5]
    """

    strength: Positive = 1.0
    amplitude: Positive = 1.0
    strength_bounds: Bounds = STRENGTH_BOUNDS
    amplitude_bounds: Bounds | None = None
    laplacian: LaplacianKind = "combinatorial"
    scaled: bool = False

    def _formula(self, eigenvalues: Array) -> tuple[Array, ...]:
        scaled = self.strength * eigenvalues
        return (1 + scaled) ** -2.0, -2 * scaled * (1 + scaled) ** -3.0


@dataclass(frozen=True)
class PseudoInverse(NamedKernel):
    """Laplacian regularisation: ``B B^T`` is the pseudo-inverse of ``L``.

    Eigenvalues below the rounding of the largest one count as zero and get no power.

    Examples
    --------
    >>> from spectralgp import PseudoInverse
    >>> PseudoInverse().power([0.0, 0.5]).tolist()
    [0.0, 2.0]
    """

    amplitude: Positive = 1.0
    amplitude_bounds: Bounds | None = None
    laplacian: LaplacianKind = "combinatorial"
    scaled: bool = False

    def bind(self, spectrum: Spectrum) -> Self:
        require_eigenvectors(
            spectrum,
            "graph_kernel must be a function on the spectrum without a pole in it for a large graph; got "
            f"{self!r}. Use another kernel, or spectrum='exact' where the graph is small enough.",
        )
        return self

    def _formula(self, eigenvalues: Array) -> tuple[Array, ...]:
        rounding = eigenvalues.size * np.finfo(float).eps * np.max(eigenvalues, initial=0.0)
        return (np.divide(1.0, eigenvalues, out=np.zeros_like(eigenvalues), where=eigenvalues > rounding),)


@dataclass(frozen=True)
class RegularizedLaplacian(NamedKernel):
    """Regularised Laplacian (Smola and Kondor): ``B B^T = (I + a L)^-1`` with `strength` a.

    Examples
    --------
    >>> from spectralgp import RegularizedLaplacian
    >>> RegularizedLaplacian(strength=3.0).power([1.0]).tolist()
    [0.25]
    """

    strength: Positive = 1.0
    amplitude: Positive = 1.0
    strength_bounds: Bounds = STRENGTH_BOUNDS
    amplitude_bounds: Bounds | None = None
    laplacian: LaplacianKind = "normalized"
    scaled: bool = False

    def _formula(self, eigenvalues: Array) -> tuple[Array, ...]:
        scaled = self.strength * eigenvalues
        return 1 / (1 + scaled), -scaled / (1 + scaled) ** 2


@dataclass(frozen=True)
class Diffusion(NamedKernel):
    """Diffusion, or heat, kernel (Smola and Kondor): ``B B^T = exp(-a/2 L)`` with `strength` a.

    Examples
    --------
    >>> from spectralgp import Diffusion
    >>> Diffusion(strength=2.0).power([0.0, 1.0]).round(4).tolist()
    [1.0, 0.3679]
    """

    strength: Positive = 1.0
    amplitude: Positive = 1.0
    strength_bounds: Bounds = STRENGTH_BOUNDS
    amplitude_bounds: Bounds | None = None
    laplacian: LaplacianKind = "normalized"
    scaled: bool = False

    def _formula(self, eigenvalues: Array) -> tuple[Array, ...]:
        exponent = -0.5 * self.strength * eigenvalues
        return np.exp(exponent), exponent * np.exp(exponent)


@dataclass(frozen=True)
class RandomWalk(NamedKernel):
    """Random walk of several steps (Smola and Kondor): ``B B^T = (a I - L)^p`` with `shift` a >= 2 and `steps` p.

    Examples
    --------
    >>> from spectralgp import RandomWalk
    >>> RandomWalk(steps=3, shift=2.0).power([0.0, 1.0]).tolist()
    [8.0, 1.0]
    """

    steps: Annotated[int, ge(1, 10_000)] = 3
    shift: Positive = 2.0
    amplitude: Positive = 1.0
    shift_bounds: Bounds = (2.0, 1e3)
    amplitude_bounds: Bounds | None = None
    laplacian: LaplacianKind = "normalized"
    scaled: bool = False
    _is_bounded = True

    def __post_init__(self) -> None:
        super().__post_init__()
        as_integer(self.steps, "steps", 1)
        smallest = self.shift if self.shift_bounds == "fixed" else float(self.shift_bounds[0])
        if smallest < 2:
            raise ValueError(
                f"shift must be at least 2, the largest eigenvalue a normalised Laplacian can have; got {smallest}. "
                "Raise shift and the lower end of shift_bounds."
            )

    def _formula(self, eigenvalues: Array) -> tuple[Array, ...]:
        base = np.maximum(self.shift - eigenvalues, 0.0)  # an eigenvalue of 2 may be rounded above it
        return base**self.steps, self.steps * self.shift * base ** (self.steps - 1)


@dataclass(frozen=True)
class Cosine(NamedKernel):
    """Inverse-cosine regularisation (Smola and Kondor): ``B B^T = cos(pi/4 L)``.

    Examples
    --------
    >>> from spectralgp import Cosine
    >>> Cosine().power([0.0, 2.0]).round(6).tolist()
    [1.0, 0.0]
    """

    amplitude: Positive = 1.0
    amplitude_bounds: Bounds | None = None
    laplacian: LaplacianKind = "normalized"
    scaled: bool = False
    _is_bounded = True

    def _formula(self, eigenvalues: Array) -> tuple[Array, ...]:
        return (np.maximum(np.cos(np.pi / 4 * eigenvalues), 0.0),)  # an eigenvalue of 2 may be rounded above it


@dataclass(frozen=True)
class Matern(NamedKernel):
    """Matern kernel on a graph (Borovitskiy et al.): ``B B^T = (2 nu / l^2 + L)^-nu`` with `length_scale` l.

    Examples
    --------
    >>> from spectralgp import Matern
    >>> Matern(nu=1.0, length_scale=1.0).power([0.0, 2.0]).tolist()
    [0.5, 0.25]
    """

    nu: Positive = 1.5
    length_scale: Positive = 1.0
    amplitude: Positive = 1.0
    length_scale_bounds: Bounds = (1e-3, 1e3)
    amplitude_bounds: Bounds | None = None
    laplacian: LaplacianKind = "combinatorial"
    scaled: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        as_positive(self.nu, "nu")

    def _formula(self, eigenvalues: Array) -> tuple[Array, ...]:
        shift = 2 * self.nu / self.length_scale**2
        return (shift + eigenvalues) ** -self.nu, 2 * self.nu * shift * (shift + eigenvalues) ** (-self.nu - 1)


@dataclass(frozen=True)
class PinnedFilter(NamedKernel):
    """A filter ``h`` that vanishes at one end of the spectrum, so that noise beside it is identified: equation (11b).

    With the distance u from that end, as a share of the largest eigenvalue, and `bend` a, it is a "line" ``h = u``, an
    "exponential" ``h = (exp(a u) - 1) / (exp(a) - 1)`` or a "parabola" ``h = u (u + a (1 - u))``.

    Examples
    --------
    >>> from spectralgp import PinnedFilter
    >>> PinnedFilter(bend=3.0).response([0.0, 0.5, 1.0]).round(4).tolist()
    [1.0, 0.1824, 0.0]
    """

    bend: Positive = 3.0
    shape: Shape = "exponential"
    vanishes_at: End = "high"
    amplitude: Positive = 1.0
    bend_bounds: Bounds = (0.01, 20.0)
    amplitude_bounds: Bounds | None = None
    laplacian: LaplacianKind = "combinatorial"
    scaled: bool = True
    upper: Positive = dataclasses.field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        as_option(self.shape, "shape", get_args(Shape))
        as_option(self.vanishes_at, "vanishes_at", get_args(End))
        if self.shape == "line":
            object.__setattr__(self, "bend_bounds", "fixed")

    def bind(self, spectrum: Spectrum) -> Self:
        return dataclasses.replace(self, upper=1.0 if self.scaled else spectrum.largest_eigenvalue)

    def moved_to(self, spectrum: Spectrum, learnt_on: Spectrum | None = None) -> Self:
        return self.bind(spectrum)

    def _formula(self, eigenvalues: Array) -> tuple[Array, ...]:
        shares, bend = eigenvalues / self.upper, self.bend
        distances = 1 - shares if self.vanishes_at == "high" else shares
        response, slope = distances, bend * distances * (1 - distances)
        if self.shape == "parabola":
            response = distances**2 + slope
        elif self.shape == "exponential":
            response = np.exp(bend * (distances - 1)) * np.expm1(-bend * distances) / np.expm1(-bend)
            slope = bend * ((distances - 1) * response + (distances - response) / np.expm1(bend))
        return response**2, 2 * response * slope


@dataclass(frozen=True)
class LocalAverage(PositiveParameters):
    """Local averaging (Ng et al.): ``B = (I + a D)^-1 (I + a W)`` with `strength` a.

    ``B`` is not symmetric and has no eigenvectors in common with the Laplacian, so ``B B^T`` is decomposed anew at
    every step of learning: meant for graphs of up to about a thousand nodes.

    Examples
    --------
    >>> from spectralgp import Graph, LocalAverage
    >>> pair = Graph.from_edges([(0, 1)])
    >>> LocalAverage(strength=1.0).filter_matrix(pair).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """

    strength: Positive = 1.0
    amplitude: Positive = 1.0
    strength_bounds: Bounds = STRENGTH_BOUNDS
    amplitude_bounds: Bounds | None = None
    laplacian: LaplacianKind = "combinatorial"
    scaled: bool = False
    shares_eigenvectors = False

    def filter_matrix(self, graph: Graph) -> Array:
        """The filter ``B``, shape (n_nodes, n_nodes)."""
        rows = self.amplitude / (1 + self.strength * graph.degrees[:, None])
        return np.asarray(rows * (np.eye(graph.n_nodes) + self.strength * graph.weights.toarray()))

    def covariance(self, graph: Graph) -> Array:
        """``B B^T``, shape (n_nodes, n_nodes)."""
        matrix = self.filter_matrix(graph)
        return matrix @ matrix.T

    def covariance_jacobian(self, graph: Graph) -> Array:
        """Derivative of `covariance` in `theta`, shape (n_parameters, n_nodes, n_nodes)."""
        matrix, degrees = self.filter_matrix(graph), graph.degrees[:, None]
        rows = self.amplitude / (1 + self.strength * degrees)
        # d/d log a of a row: (a W) / (1 + a d), less the row itself times a d / (1 + a d)
        slope = self.strength * (rows * graph.weights.toarray() - matrix * degrees / (1 + self.strength * degrees))
        product = slope @ matrix.T
        slopes = {"amplitude": 2 * matrix @ matrix.T, "strength": product + product.T}
        chosen = [slopes[name] for name in self.free_names]
        return np.stack(chosen) if chosen else np.empty((0, graph.n_nodes, graph.n_nodes))

    def bind(self, spectrum: Spectrum) -> Self:
        require_eigenvectors(
            spectrum,
            f"graph_kernel must be a function on the spectrum for a large graph; got {self!r}, with eigenvectors of "
            "its own. Use another kernel, or spectrum='exact' where the graph is small enough.",
        )
        return self

    def basis(self, spectrum: Spectrum) -> Spectrum:
        graph = spectrum.graph.require_whole("for LocalAverage")
        modes = modes_of(self.covariance(graph))
        return ExactSpectrum(graph, self.laplacian, False, modes.values, modes.vectors)

    def power(self, eigenvalues: ArrayLike) -> Array:
        """The eigenvalues of `basis`, which are those of ``B B^T``."""
        return np.asarray(eigenvalues, dtype=float)

    def pull_back(self, evidence: Any, spectrum: Spectrum) -> Array:
        vectors = require_eigenvectors(self.basis(spectrum), "")
        slope = vectors @ evidence.node_covariance_gradient @ vectors.T
        graph = spectrum.graph.require_whole("for LocalAverage")
        return np.tensordot(self.covariance_jacobian(graph), slope, axes=2)


@dataclass(frozen=True)
class Response(SpectralKernel):
    """User-defined filter, ``B = amplitude * function(L, *parameters)``.

    Parameters
    ----------
    function : callable
        ``function(eigenvalues, *parameters)`` gives the filter ``g`` at an array of eigenvalues.
    parameters : tuple of float, default=()
        Initial values of the parameters, on the scale on which to learn them.
    parameter_bounds : tuple of pairs, optional
        A (low, high) pair for each parameter; free if not given.
    jacobian : callable, optional
        ``jacobian(eigenvalues, *parameters)`` gives the derivatives of ``g``, shape (n_eigenvalues, n_parameters);
        differences of `function` if not given.
    amplitude : float, default=1.0
        Positive factor, learnt on a logarithmic scale.
    laplacian, scaled
        Laplacian of the eigenvalues, as in `decompose`.
    name : str, optional
        Identifies `function` in model files, which do not hold it: ``load(path, responses={name: function})``.

    Examples
    --------
    >>> import numpy as np
    >>> from spectralgp import Response
    >>> bump = Response(lambda eigenvalues, centre: np.exp(-50 * (eigenvalues - centre) ** 2), (0.5,))
    >>> bump.response([0.5, 1.0]).round(4).tolist()
    [1.0, 0.0]
    """

    function: Callable[..., ArrayLike]
    parameters: tuple[Number, ...] = ()
    parameter_bounds: tuple[tuple[Number, Number], ...] | None = None
    jacobian: Callable[..., ArrayLike] | None = None
    amplitude: Positive = 1.0
    laplacian: LaplacianKind = "combinatorial"
    scaled: bool = True
    name: str | None = dataclasses.field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(
                f"function must be callable as function(eigenvalues, *parameters); got {self.function!r}. "
                "Pass for example lambda eigenvalues, rate: np.exp(-rate * eigenvalues)."
            )
        as_positive(self.amplitude, "amplitude")
        if not isinstance(self.parameters, Sequence):
            raise TypeError(f"parameters must be a tuple of numbers; got {self.parameters!r}. Pass for example (1.0,).")
        if self.parameter_bounds is not None and len(self.parameter_bounds) != len(self.parameters):
            raise ValueError(
                f"parameter_bounds must hold one pair for each of the {len(self.parameters)} parameters; "
                f"got {len(self.parameter_bounds)}. Pass (-np.inf, np.inf) for a free one."
            )

    @property
    def theta(self) -> Array:
        return np.array([np.log(self.amplitude), *self.parameters])

    def search(self) -> KernelSearch:
        names = ("amplitude", *(f"parameters[{index}]" for index in range(len(self.parameters))))
        return KernelSearch(self, names, self._bounds)

    def _bounds(self) -> Array:
        free = ((-np.inf, np.inf),) * len(self.parameters)
        return np.array([(np.nan, np.nan), *(self.parameter_bounds or free)], dtype=float)

    def with_theta(self, theta: ArrayLike) -> Self:
        log_amplitude, *parameters = np.asarray(theta, dtype=float).tolist()
        return dataclasses.replace(self, amplitude=float(np.exp(log_amplitude)), parameters=tuple(parameters))

    def scaled_by(self, factor: float) -> Self:
        return dataclasses.replace(self, amplitude=self.amplitude * factor)

    def response(self, eigenvalues: ArrayLike) -> Array:
        return self.amplitude * self._shape(np.asarray(eigenvalues, dtype=float), *self.parameters)

    def power(self, eigenvalues: ArrayLike) -> Array:
        return np.square(self.response(eigenvalues))

    def power_jacobian(self, eigenvalues: ArrayLike) -> Array:
        response = self.response(eigenvalues)
        slopes = self.amplitude * self._shape_jacobian(np.asarray(eigenvalues, dtype=float))
        return np.column_stack([2 * response**2, 2 * response[:, None] * slopes])

    @property
    def sampled(self) -> tuple[float, ...]:
        """Values of the function at a few frequencies, which identify it in model files."""
        return tuple(self._shape(np.linspace(0.0, 1.0, N_SAMPLED), *self.parameters).tolist())

    def _shape(self, eigenvalues: Array, *parameters: float) -> Array:
        values = as_real_array(self.function(eigenvalues, *parameters), "the values of function", ("n_eigenvalues",))
        if values.shape != eigenvalues.shape:
            raise ValueError(
                f"function must give one value for each eigenvalue; got shape {values.shape} for {eigenvalues.shape}. "
                "Write it with NumPy operations on the array of eigenvalues."
            )
        return values

    def _shape_jacobian(self, eigenvalues: Array) -> Array:
        if self.jacobian is not None:
            slopes = np.asarray(self.jacobian(eigenvalues, *self.parameters), dtype=float)
            if slopes.shape != (eigenvalues.size, len(self.parameters)):
                raise ValueError(
                    f"jacobian must give shape (n_eigenvalues, n_parameters) = "
                    f"({eigenvalues.size}, {len(self.parameters)}); got {slopes.shape}. One column a parameter."
                )
            return slopes
        columns = []
        for index, (value, (low, high)) in enumerate(zip(self.parameters, self._bounds()[1:], strict=True)):
            step = np.finfo(float).eps ** (1 / 3) * max(1.0, abs(value))
            # the function need not exist beyond the bounds: at a bound, differences are one-sided
            within = [one for one in DIFFERENCES if low <= value + one[0] * step and value + one[-1] * step <= high]
            if not within:  # the bounds are closer than a step
                columns.append(np.zeros(eigenvalues.size))
                continue
            before, after = self.parameters[:index], self.parameters[index + 1 :]
            moved = [self._shape(eigenvalues, *before, value + offset * step, *after) for offset in within[0]]
            columns.append(np.tensordot(DIFFERENCES[within[0]], moved, axes=1) / step)
        return np.column_stack(columns) if columns else np.empty((eigenvalues.size, 0))
