"""Graph kernels, covariances between nodes with learnt parameters, and their search spaces; sums; residuals."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import Field, dataclass, fields, replace
from itertools import accumulate, chain, pairwise, repeat
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from spectralgp._basics.checks import Array, Mask, check_derivative
from spectralgp._basics.saved import NotNegative, ge
from spectralgp.graphs import LaplacianKind
from spectralgp.model.spectra import Spectrum, mean_over_nodes

SIGNAL_SHARE = 0.8  # of the signals' variance that learning starts with, the rest being noise
AMPLITUDE_RANGE = (1e-8, 1e8)  # default bounds, times the standard deviation of the signals
CHECKED = np.array([0.0, 0.4, 0.9])  # eigenvalues at which a user's own class is checked


@dataclass(frozen=True, eq=False)
class Positivity:
    """Points where a filter must not be negative, and its values there as linear functions of its parameters."""

    points: Array  # eigenvalues, ascending
    rows: Array  # the filter at the points is ``rows @ theta``, shape (n_points, n_parameters)
    constant: Array  # change of ``theta`` that raises the filter by one everywhere
    first: int = 0  # position of these parameters in the vector ``x`` of all parameters

    def response(self, x: Array) -> Array:
        """Return the filter at the points."""
        return np.asarray(self.rows @ x[self.first : self.first + self.constant.size])

    def raised(self, x: Array, by: float) -> Array:
        """Return parameters whose filter is higher by a constant."""
        raised = x.copy()
        raised[self.first : self.first + self.constant.size] += by * self.constant
        return raised

    def rows_of(self, chosen: Mask | slice, n_parameters: int) -> Array:
        """Return chosen rows as linear functions of all parameters, shape (n_chosen, n_parameters)."""
        own = self.rows[chosen]
        rows = np.zeros((len(own), n_parameters))
        rows[:, self.first : self.first + self.constant.size] = own
        return rows


class LogPrior(NamedTuple):
    """A log prior of a kernel's parameters up to a constant, with its derivatives."""

    value: float
    slope: Array  # in `theta`
    noise_slope: float  # in the log noise
    precision: Array  # negative second derivatives in `theta`, shape (n_parameters, n_parameters)


@dataclass(frozen=True, eq=False)
class KernelSearch:
    """Search space of a kernel's parameters `theta`: unbounded, from the present values, unless given or overridden.

    A kernel returns it by `GraphKernel.search`. A parameter named "amplitude" is the logarithm of a factor with the
    units of the signals, by whose variance starts and missing bounds of it are chosen. Methods refer to the kernel at
    its present parameters.
    """

    kernel: GraphKernel
    given_names: tuple[str, ...] = ()
    find_bounds: Callable[[], Array] | None = None  # shape (n_parameters, 2); NaN where those of an amplitude are open
    find_starts: Callable[[], list[Array]] = list  # further values of `theta` to start learning from
    is_given: bool = False  # whether the user gave `theta`, which is then a further start at the end of a `path`

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the parameters, in the order of `theta`."""
        return self.given_names or tuple(f"theta[{index}]" for index in range(self.kernel.theta.size))

    @property
    def has_free_amplitude(self) -> bool:
        """Whether a factor of the whole covariance is among the parameters."""
        return "amplitude" in self.given_names

    def members(self) -> tuple[GraphKernel, ...]:
        """Kernels to stack: the kernel itself, or one per candidate degree."""
        return (self.kernel,)

    def path(self) -> tuple[GraphKernel, ...]:
        """Kernels of growing complexity, each learnt from the one before; the last is this kernel."""
        return (self.kernel,)

    def grown_from(self, simpler: GraphKernel) -> Array:
        """`theta` with which this kernel is the same function as the one before it on the `path`."""
        return simpler.theta

    def guides(self) -> tuple[GraphKernel, ...]:
        """Kernels of the same size whose solutions are further starts."""
        return ()

    def with_powers(self, coefficients: Array) -> GraphKernel | None:
        """The filter ``sum_p beta_p (lambda / upper)^p``; None for kernels that are not polynomials."""
        return None

    def starting_points(self, spectrum: Spectrum, variance: float) -> list[Array]:
        """Values of `theta` to start learning from, for signals with the given variance on a graph."""
        starts = np.array([self.kernel.theta, *self.find_starts()])
        if "amplitude" in self.given_names:
            place = self.given_names.index("amplitude")
            starts[:, place] = 0.0
            for start in starts:
                power = mean_power(self.kernel.with_theta(start), spectrum)
                start[place] = np.log(np.sqrt(SIGNAL_SHARE * variance / power if power > 0 else variance))
        return list(starts)

    def bounds(self, variance: float) -> Array:
        """Bounds of `theta` for signals with the given variance, shape (n_parameters, 2)."""
        if self.find_bounds is None:
            return np.tile([-np.inf, np.inf], (self.kernel.theta.size, 1))
        found = self.find_bounds()
        return np.where(np.isnan(found), np.log(np.sqrt(variance) * np.array(AMPLITUDE_RANGE)), found)

    def theta_units(self, variance: float) -> Array:
        """A typical change of each entry of `theta`, for signals with the given variance."""
        return np.ones(self.kernel.theta.size)

    def log_prior(self, spectrum: Spectrum, noise_variance: float) -> LogPrior:
        """Weak log prior of the parameters; none unless overridden."""
        n_parameters = self.kernel.theta.size
        return LogPrior(0.0, np.zeros(n_parameters), 0.0, np.zeros((n_parameters, n_parameters)))

    def positivity(self, spectrum: Spectrum, coarse: bool = False) -> tuple[Positivity, ...]:
        """Points where filters must not be negative and could be lowest, or a few such points (`coarse`)."""
        return ()


def constructor_arguments(noun: Any, deep: bool = True) -> dict[str, Any]:
    """Constructor arguments of a dataclass by name, so that grid searches reach them as ``graph_kernel__degree``."""
    return {field.name: getattr(noun, field.name) for field in fields(noun)}


class GraphKernel(ABC):
    """Covariance ``B B^T`` between the nodes of a graph, with parameters that learning may change.

    A kernel is a formula in a frozen dataclass: `with_theta` returns another one. Your own kernel needs five members:
    `theta`, `with_theta`, `scaled_by`, `power`, and its derivative `power_jacobian`, of a `SpectralKernel`; `laplacian`
    and `scaled` may be fields for another Laplacian. Bounds, starts, a prior and constraints of its parameters are
    methods of the `KernelSearch` that its `search` returns.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    laplacian: LaplacianKind = "combinatorial"
    scaled: bool = False
    floor: float = 0.0  # variance subtracted from the residual's power, in files up to version 8
    shares_eigenvectors: ClassVar[bool] = True  # with the graph's Laplacian: then it has a filter
    residual: SpectralKernel | None = None  # kernel of what the inputs do not explain
    needs_no_graph: ClassVar[bool] = False  # whether the kernel is the same on every graph
    shape: str = ""  # of those of one type that have others
    constraint: str | None = None  # a filter is non-negative at the "eigenvalues", or on the whole "interval"

    get_params = constructor_arguments

    def __sklearn_clone__(self) -> Self:
        return self  # it cannot change

    def __init_subclass__(cls, **settings: Any) -> None:
        """Refuse methods of the search on a kernel, which nothing would call."""
        super().__init_subclass__(**settings)
        own = {name for name, value in vars(cls).items() if callable(value) or isinstance(value, property)}
        if misplaced := sorted(name for name in own & vars(KernelSearch).keys() if not name.startswith("_")):
            raise TypeError(
                f"{cls.__name__} must not define {', '.join(misplaced)}; these are methods of its search. "
                "Move them to a subclass of KernelSearch, and return that from search()."
            )

    @property
    @abstractmethod
    def theta(self) -> Array:
        """The free parameters as the optimiser sees them, such as logarithms of positive ones."""

    @abstractmethod
    def with_theta(self, theta: ArrayLike) -> Self:
        """Return a copy with other values of the free parameters."""

    @abstractmethod
    def scaled_by(self, factor: float) -> Self:
        """Return the kernel of signals multiplied by a positive factor, with all parameters in their units."""

    def search(self) -> KernelSearch:
        """Return the search space of the free parameters: any numbers unless overridden."""
        return KernelSearch(self)

    def bind(self, spectrum: Spectrum) -> Self:
        """Return a copy adapted to a spectrum; raise ValueError if the kernel cannot be used on it."""
        return self

    def basis(self, spectrum: Spectrum) -> Spectrum:
        """Return the basis in which ``B B^T`` is diagonal: the given spectrum, or the kernel's own eigenvectors."""
        return spectrum

    @abstractmethod
    def power(self, eigenvalues: ArrayLike) -> Array:
        """Covariance spectrum ``gamma(lambda) = g(lambda)^2`` at eigenvalues of `basis`."""

    def residual_power(self, eigenvalues: ArrayLike) -> Array:
        """``eta(lambda)``, covariance spectrum of the residual of each signal; zero unless one is modelled."""
        return np.zeros(np.shape(eigenvalues))

    def response(self, eigenvalues: ArrayLike) -> Array:
        """The filter ``g(lambda)``; the non-negative root of `power` unless the kernel is itself a filter."""
        return np.sqrt(self.power(eigenvalues))

    @abstractmethod
    def pull_back(self, evidence: Any, spectrum: Spectrum) -> Array:
        """Return the gradient of a log likelihood in `theta`, from its gradients in the covariance by `Evidence`."""

    def moved_to(self, spectrum: Spectrum, learnt_on: Spectrum | None = None) -> Self:
        """Return the learnt kernel for the spectrum of another graph; raise ValueError if it cannot be used there.

        A filter that is negative between its training frequencies is replaced by the nearest non-negative one at those
        frequencies, if they are known.
        """
        return self

    @property
    def label(self) -> str:
        """A short name for legends and tables."""
        return type(self).__name__


class SpectralKernel(GraphKernel):
    """A function on the spectrum, ``B B^T = V diag(power(lambda)) V^T``, to derive your own kernels from.

    Kernels of one Laplacian add: ``Polynomial(2) + Identity()`` has the sum of both covariances.
    """

    @abstractmethod
    def power_jacobian(self, eigenvalues: ArrayLike) -> Array:
        """Derivative of `power` in `theta`, shape (n_eigenvalues, n_parameters)."""

    def pull_back(self, evidence: Any, spectrum: Spectrum) -> Array:
        """Equation (6)."""
        return np.asarray(self.power_jacobian(spectrum.eigenvalues).T @ evidence.power_gradient)

    def check_derivatives(self) -> None:
        """Refuse a user's own class whose `power_jacobian` contradicts finite differences of `power`."""
        is_own = not type(self).__module__.startswith("spectralgp.") and type(self).bind is GraphKernel.bind
        for own in np.eye(self.theta.size) if is_own else ():

            def power(value: float, own: Array = own) -> tuple[Array, Array]:
                moved = self.with_theta(np.where(own, value, self.theta))
                return moved.power(CHECKED), np.asarray(moved.power_jacobian(CHECKED)) @ own

            claim = f"{type(self).__name__}.power_jacobian must be the derivative of power in theta[{np.argmax(own)}]"
            check_derivative(claim, power, self.theta @ own, [f"eigenvalue {one:g}" for one in CHECKED])

    def __add__(self, other: object) -> KernelSum:
        return KernelSum.of(self, other) if isinstance(other, SpectralKernel) else NotImplemented


@dataclass(frozen=True)
class CombinedKernel(SpectralKernel):
    """Kernels on one spectrum that are learnt together; their parameters are concatenated."""

    kernels: Annotated[tuple[SpectralKernel, ...], ge(1)]
    laplacian: LaplacianKind
    scaled: bool

    @classmethod
    def of(cls, *parts: SpectralKernel, **fields: Any) -> Self:
        """Combine kernels of one Laplacian; those that need no graph take that of the others."""
        decided = [part for part in parts if not part.needs_no_graph] or parts[:1]
        spectra = {(part.laplacian, part.scaled) for part in decided}
        if len(spectra) > 1:
            words = " and ".join(sorted(f"{'scaled ' if scaled else ''}{kind}" for kind, scaled in spectra))
            raise ValueError(
                f"kernels must be functions of one Laplacian to go together; got {words}. "
                "Give them the same laplacian and scaled, or stack them in a list instead."
            )
        return cls(parts, *spectra.pop(), **fields)

    @property
    def theta(self) -> Array:
        return np.concatenate([part.theta for part in self.kernels])

    @property
    def places(self) -> list[slice]:
        """Places of the parameters of each kernel in `theta`."""
        ends = accumulate((part.theta.size for part in self.kernels), initial=0)
        return [slice(*pair) for pair in pairwise(ends)]

    def with_theta(self, theta: ArrayLike) -> Self:
        values, start, learnt = np.asarray(theta, dtype=float), 0, list[SpectralKernel]()
        for part in self.kernels:
            stop = start + part.theta.size
            learnt.append(part.with_theta(values[start:stop]))
            start = stop
        changes: dict[str, Any] = {"floor": 0.0} if self.floor else {}  # which belonged to the previous filter
        return replace(self, kernels=tuple(learnt), **changes)

    def check_derivatives(self) -> None:
        for part in self.kernels:
            part.check_derivatives()

    def search(self) -> CombinedSearch:
        parts = tuple(part.search() for part in self.kernels)
        return CombinedSearch(self, is_given=any(part.is_given for part in parts), parts=parts)

    def bind(self, spectrum: Spectrum) -> Self:
        return replace(self, kernels=tuple(part.bind(spectrum) for part in self.kernels))

    def moved_to(self, spectrum: Spectrum, learnt_on: Spectrum | None = None) -> Self:
        return replace(self, kernels=tuple(part.moved_to(spectrum, learnt_on) for part in self.kernels))


@dataclass(frozen=True, eq=False)
class CombinedSearch(KernelSearch):
    """Search spaces of several kernels side by side."""

    kernel: CombinedKernel
    parts: tuple[KernelSearch, ...] = ()  # the search space of each kernel

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return tuple(f"kernels[{i}].{name}" for i, part in enumerate(self.parts) for name in part.parameter_names)

    @property
    def has_free_amplitude(self) -> bool:
        free = [part.has_free_amplitude for part in self.parts]
        return free[0] if isinstance(self.kernel, WithResidual) else all(free)  # the residual has a factor of its own

    def path(self) -> tuple[GraphKernel, ...]:
        forms = _in_step([part.path() for part in self.parts])
        return tuple(replace(self.kernel, kernels=tuple(parts)) for parts in forms)

    def grown_from(self, simpler: GraphKernel) -> Array:
        before = simpler.kernels if isinstance(simpler, CombinedKernel) else ()
        pairs = zip(self.kernel.kernels, before, strict=True)
        return np.concatenate([part.theta if part == old else part.search().grown_from(old) for part, old in pairs])

    def starting_points(self, spectrum: Spectrum, variance: float) -> list[Array]:
        share = variance / len(self.parts)
        starts = [part.starting_points(spectrum, share)[int(part.is_given) :] for part in self.parts]
        return [*[self.kernel.theta] * self.is_given, *map(np.concatenate, _in_step(starts))]

    def bounds(self, variance: float) -> Array:
        return np.vstack([part.bounds(variance) for part in self.parts])

    def theta_units(self, variance: float) -> Array:
        return np.concatenate([part.theta_units(variance) for part in self.parts])

    def log_prior(self, spectrum: Spectrum, noise_variance: float) -> LogPrior:
        return joint_prior([part.log_prior(spectrum, noise_variance) for part in self.parts])

    def positivity(self, spectrum: Spectrum, coarse: bool = False) -> tuple[Positivity, ...]:
        found, first = list[Positivity](), 0
        for part in self.parts:
            found += [replace(one, first=first + one.first) for one in part.positivity(spectrum, coarse)]
            first += part.kernel.theta.size
        return tuple(found)


def joint_prior(priors: Sequence[LogPrior]) -> LogPrior:
    """Return the joint prior of independent kernels."""
    values, slopes, noise_slopes, precisions = zip(*priors, strict=True)
    slope, start = np.concatenate(slopes), 0
    precision = np.zeros((slope.size, slope.size))
    for own in precisions:  # SciPy's block_diag would take as long as all the rest
        precision[start : start + len(own), start : start + len(own)] = own
        start += len(own)
    return LogPrior(sum(values), slope, sum(noise_slopes), precision)


def _in_step(lists: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The first items of all lists, the second, and so on; a shorter list repeats its last."""
    return [[own[min(turn, len(own) - 1)] for own in lists] for turn in range(max(map(len, lists)))]


@dataclass(frozen=True)
class KernelSum(CombinedKernel):
    """Sum of kernels on one spectrum: their covariances add, and so do their powers. Made by ``+``.

    Examples
    --------
    >>> from spectralgp import Diffusion, Identity
    >>> (Diffusion(strength=2.0) + Identity()).power([0.0, 1.0]).round(4).tolist()
    [2.0, 1.3679]
    """

    @classmethod
    def of(cls, *parts: SpectralKernel, **fields: Any) -> Self:
        flat = [own for part in parts for own in (part.kernels if isinstance(part, KernelSum) else (part,))]
        return super().of(*flat, **fields)

    def power(self, eigenvalues: ArrayLike) -> Array:
        return np.sum([part.power(eigenvalues) for part in self.kernels], axis=0)

    def power_jacobian(self, eigenvalues: ArrayLike) -> Array:
        return np.hstack([part.power_jacobian(eigenvalues) for part in self.kernels])

    def scaled_by(self, factor: float) -> Self:
        return replace(self, kernels=tuple(part.scaled_by(factor) for part in self.kernels))

    @property
    def label(self) -> str:
        return " + ".join(part.label for part in self.kernels)


@dataclass(frozen=True)
class WithResidual(CombinedKernel):
    """Kernel ``g`` of the signal that inputs explain, and ``h`` of the residual of each signal: equation (11).

    A signal is ``g(L) f(x) + h(L) e + noise`` with white ``e``. The residual ``h(L) e`` is shared by neighbours, but
    not by signals, so that no input predicts it. Made by ``WithResidual.of(signal, residual)``.

    Where the residual vanishes, as a `PinnedFilter` does at one end, all that is left is noise. The least power of
    another residual may as well be noise; in files up to version 8 it is the `floor`, part of the noise.

    Examples
    --------
    >>> from spectralgp import Diffusion, Identity
    >>> from spectralgp.model.kernels import WithResidual
    >>> both = WithResidual.of(Identity(), Diffusion(strength=2.0))
    >>> both.power([0.0, 1.0]).tolist(), both.residual_power([0.0, 1.0]).round(4).tolist()
    ([1.0, 1.0], [1.0, 0.3679])
    """

    kernels: Annotated[tuple[SpectralKernel, ...], ge(2, 2)]
    floor: NotNegative = 0.0

    @property
    def residual(self) -> SpectralKernel | None:  # type: ignore[override]
        """Kernel of what the inputs do not explain."""
        return self.kernels[1]

    def power(self, eigenvalues: ArrayLike) -> Array:
        return self.kernels[0].power(eigenvalues)

    def response(self, eigenvalues: ArrayLike) -> Array:
        return self.kernels[0].response(eigenvalues)

    def residual_power(self, eigenvalues: ArrayLike) -> Array:
        return self.kernels[1].power(eigenvalues) - self.floor

    def scaled_by(self, factor: float) -> Self:
        scaled = tuple(part.scaled_by(factor) for part in self.kernels)
        return replace(self, kernels=scaled, floor=self.floor * factor**2)

    def power_jacobian(self, eigenvalues: ArrayLike) -> Array:
        jacobian = self.kernels[0].power_jacobian(eigenvalues)
        return np.hstack([jacobian, np.zeros((len(jacobian), self.kernels[1].theta.size))])

    def pull_back(self, evidence: Any, spectrum: Spectrum) -> Array:
        """Equations (6) and (13)."""
        signal, residual = (part.power_jacobian(spectrum.eigenvalues) for part in self.kernels)
        return np.concatenate([signal.T @ evidence.power_gradient, residual.T @ evidence.slopes.sum(axis=0)])

    @property
    def label(self) -> str:
        return " | ".join(part.label for part in self.kernels)


def signal_of(kernel: GraphKernel) -> GraphKernel:
    """Return the kernel of the signal that inputs explain, without any residual."""
    return kernel.kernels[0] if isinstance(kernel, WithResidual) else kernel


def with_residual(kernel: GraphKernel, residual: SpectralKernel) -> GraphKernel:
    """Return the kernel with a residual; unchanged if it has one or is no function on the spectrum."""
    if isinstance(kernel, WithResidual) or not isinstance(kernel, SpectralKernel):
        return kernel
    return WithResidual.of(kernel, residual)


def power_jacobians(kernel: GraphKernel, eigenvalues: Array) -> tuple[Array, ...] | None:
    """Return derivatives of the signal's power, and any residual's; None for a kernel off the spectrum."""
    parts = kernel.kernels if isinstance(kernel, WithResidual) else (kernel,)
    jacobians = [part.power_jacobian(eigenvalues) for part in parts if isinstance(part, SpectralKernel)]
    return tuple(jacobians) or None


def theta_near(kernel: GraphKernel, other: GraphKernel, spectrum: Spectrum, variance: float) -> Array:
    """Parameters near another kernel: part by part the same function where types agree, typical values elsewhere."""
    parts, before = (one.kernels if isinstance(one, CombinedKernel) else (one,) for one in (kernel, other))
    thetas = []
    for part, old in zip(parts, chain(before, repeat(None)), strict=False):
        search = part.search()
        is_alike = old is not None and (type(part), part.shape) == (type(old), old.shape)
        if old is not None and is_alike and part.theta.size >= old.theta.size:
            thetas.append(search.grown_from(old))
        else:
            thetas.append(search.starting_points(spectrum, variance)[-1])
    return np.concatenate(thetas)


def mean_power(kernel: GraphKernel, spectrum: Spectrum) -> float:
    """Return the mean variance of the nodes under a kernel."""
    basis = kernel.basis(spectrum)
    return float(mean_over_nodes(basis, kernel.power(basis.eigenvalues)))
