"""What every graph kernel is: a covariance between nodes with learnt parameters; sums, and pairs with a residual."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from spectralgp._basics.checks import Array, check_derivative
from spectralgp._basics.saved import NotNegative, ge
from spectralgp.graphs import LaplacianKind
from spectralgp.model.spectra import Spectrum

SIGNAL_SHARE = 0.8  # of the signals' variance that learning starts with, the rest being noise
CHECKED = np.array([0.0, 0.4, 0.9])  # eigenvalues of any Laplacian, at which a class of one's own is checked
FLOOR_SHARE = 0.999  # of the least power of a residual that counts as noise: the rest keeps it positive under rounding


@dataclass(frozen=True, eq=False)
class Positivity:
    """Where a filter must not be negative, and its values there as linear functions of its parameters."""

    points: Array  # eigenvalues, ascending
    rows: Array  # the filter at the points is ``rows @ theta``, shape (n_points, n_parameters)
    constant: Array  # what to add to `theta` to raise the filter by one everywhere

    def padded(self, before: int, n_parameters: int) -> Positivity:
        """The constraint on a vector of parameters in which others stand before and after those of the filter."""
        rows, constant = np.zeros((len(self.rows), n_parameters)), np.zeros(n_parameters)  # np.pad takes far longer
        rows[:, before : before + self.constant.size] = self.rows
        constant[before : before + self.constant.size] = self.constant
        return Positivity(self.points, rows, constant)


class LogPrior(NamedTuple):
    """A log prior of a kernel's parameters up to a constant, with its derivatives."""

    value: float
    slope: Array  # in `theta`
    noise_slope: float  # in the log noise
    precision: Array  # negative second derivatives in `theta`, shape (n_parameters, n_parameters)


class FrozenParameters:
    """A frozen dataclass as scikit-learn asks for it."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Constructor arguments by name, so that grid searches reach them as ``graph_kernel__degree``."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def __sklearn_clone__(self) -> Self:
        return self  # it cannot change


class GraphKernel(FrozenParameters, ABC):
    """Covariance ``B B^T`` between the nodes of a graph, with parameters that learning may change.

    A kernel is a frozen dataclass: `with_theta` returns another one. A kernel of one's own needs five members: `theta`,
    `with_theta`, `scaled_by`, `power`, and the derivative of the latter, `power_jacobian` of a `SpectralKernel`;
    `laplacian` and `scaled` are fields of its own where it is to be a function of another Laplacian.
    """

    laplacian: LaplacianKind = "combinatorial"
    scaled: bool = False
    floor: float = 0.0  # variance that was taken off the residual's power, since it counts as noise
    shares_eigenvectors: ClassVar[bool] = True  # with the graph's Laplacian, so that it has a filter to look at
    needs_no_graph: ClassVar[bool] = False  # whether the kernel is the same whatever the graph
    constraint: str | None = None  # where a filter is held non-negative: at the "eigenvalues", on the whole "interval"

    @property
    @abstractmethod
    def theta(self) -> Array:
        """The free parameters as the optimiser sees them, such as logarithms of positive ones."""

    @abstractmethod
    def with_theta(self, theta: ArrayLike) -> Self:
        """Same kernel with other values of its free parameters."""

    @abstractmethod
    def scaled_by(self, factor: float) -> Self:
        """The kernel of signals multiplied by a positive factor, with everything that has their units."""

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the free parameters, in the order of `theta`."""
        return tuple(f"theta[{index}]" for index in range(self.theta.size))

    def bounds(self, variance: float = 1.0) -> Array:
        """Bounds of `theta` for signals with the given variance, shape (n_parameters, 2); none unless overridden."""
        return np.tile([-np.inf, np.inf], (self.theta.size, 1))

    def theta_units(self, variance: float) -> Array:
        """A typical change of each entry of `theta`, for signals with the given variance."""
        return np.ones(self.theta.size)

    def bind(self, spectrum: Spectrum) -> Self:
        """Same kernel with whatever it must know of a spectrum filled in; a ValueError if it cannot live on that."""
        return self

    def basis(self, spectrum: Spectrum) -> Spectrum:
        """Where ``B B^T`` is diagonal: the spectrum itself, or one with eigenvectors of the kernel's own."""
        return spectrum

    @abstractmethod
    def power(self, eigenvalues: ArrayLike) -> Array:
        """Covariance spectrum ``gamma(lambda) = g(lambda)^2`` at eigenvalues of `basis`."""

    def residual_power(self, eigenvalues: ArrayLike) -> Array:
        """``eta(lambda)``, covariance spectrum of what each signal has to itself; zero unless one is modelled."""
        return np.zeros(np.shape(eigenvalues))

    @property
    def signal(self) -> GraphKernel:
        """The kernel of what the inputs explain: this one, unless it has a residual beside it."""
        return self

    @property
    def residual(self) -> GraphKernel | None:
        """The kernel of what the inputs do not explain, if there is one."""
        return None

    def with_residual(self, residual: SpectralKernel) -> GraphKernel:
        """The kernel with a residual filter beside it; itself if it has one, or is not a function on the spectrum."""
        return self

    def moved_to(self, spectrum: Spectrum, learnt_on: Spectrum | None = None) -> Self:
        """The learnt kernel on the spectrum of another graph; a ValueError if what was learnt says nothing there.

        A filter that is negative between the frequencies that it was learnt on is replaced by the nearest on those that
        is not, if they are known.
        """
        return self

    def without_floor(self, eigenvalues: Array) -> Self:
        """Same kernel with what its residual has at every frequency taken off; `floor` says how much that is."""
        return self

    def response(self, eigenvalues: ArrayLike) -> Array:
        """The filter ``g(lambda)``; the non-negative root of `power` unless the kernel is itself a filter."""
        return np.sqrt(self.power(eigenvalues))

    @abstractmethod
    def pull_back(self, evidence: Any, spectrum: Spectrum) -> Array:
        """Gradient of a log likelihood in `theta`, from its gradients in the covariance, which `Evidence` has."""

    def power_jacobians(self, eigenvalues: Array) -> tuple[Array, ...] | None:
        """Derivatives (n_eigenvalues, n_parameters) of the signal's power and any residual's; None off the spectrum."""
        return None

    def mean_power(self, spectrum: Spectrum) -> float:
        """Variance that the kernel gives a node, averaged over the nodes."""
        basis = self.basis(spectrum)
        return float(basis.mean(self.power(basis.eigenvalues)))

    def starting_points(self, spectrum: Spectrum, variance: float) -> list[Array]:
        """Values of `theta` to start learning from, for signals with the given variance on a graph."""
        return [self.theta]

    def log_prior(self, spectrum: Spectrum, noise_variance: float) -> LogPrior:
        """Weak log prior of the parameters; none unless overridden."""
        n_parameters = self.theta.size
        return LogPrior(0.0, np.zeros(n_parameters), 0.0, np.zeros((n_parameters, n_parameters)))

    def positivity(self, spectrum: Spectrum, coarse: bool = False) -> tuple[Positivity, ...]:
        """Where filters must not be negative and could be lowest, or a few such points to begin with (`coarse`)."""
        return ()

    def path(self) -> tuple[GraphKernel, ...]:
        """Forms of growing complexity to learn one after the other, each from the last; ends with this one."""
        return (self,)

    def grown_from(self, simpler: GraphKernel) -> Array:
        """`theta` with which this form is the same function as the one before it on the `path`."""
        return simpler.theta  # of this very form, as it was learnt beside another that has grown

    def guides(self) -> tuple[GraphKernel, ...]:
        """Forms of the same size whose solutions are worth starting from too."""
        return ()

    def given_starts(self) -> tuple[Array, ...]:
        """Values of `theta` that the user gave, to start from at the end of a `path` too."""
        return ()

    def with_powers(self, coefficients: Array) -> Self | None:
        """The filter ``sum_p beta_p (lambda / upper)^p``; None for kernels that are not polynomials."""
        return None

    def linear_design(self, eigenvalues: ArrayLike) -> Array | None:
        """Matrix with which the filter is ``design @ theta``; None where it is not linear in its parameters."""
        return None

    def members(self) -> tuple[GraphKernel, ...]:
        """The kernels to stack that this one stands for: itself, unless it leaves something open."""
        return (self,)

    @property
    def has_free_amplitude(self) -> bool:
        """Whether a factor of the whole covariance is among the free parameters."""
        return False

    @property
    def label(self) -> str:
        """A short name for legends and tables."""
        return type(self).__name__


class SpectralKernel(GraphKernel):
    """A function on the spectrum, ``B B^T = V diag(power(lambda)) V^T``, to derive kernels of your own from.

    Kernels of one Laplacian add: ``Polynomial(2) + Identity()`` has the sum of both covariances.
    """

    @abstractmethod
    def power_jacobian(self, eigenvalues: ArrayLike) -> Array:
        """Derivative of `power` in `theta`, shape (n_eigenvalues, n_parameters)."""

    def pull_back(self, evidence: Any, spectrum: Spectrum) -> Array:
        """The signal and the residual from a slope each: equations (6) and (13)."""
        signal, *residual = self.power_jacobians(spectrum.eigenvalues)
        found = signal.T @ evidence.power_gradient
        return np.concatenate([found, *(own.T @ evidence.slopes.sum(axis=0) for own in residual)])

    def power_jacobians(self, eigenvalues: Array) -> tuple[Array, ...]:
        return (self.power_jacobian(eigenvalues),)

    def check_derivatives(self) -> None:
        """Refuse a class of one's own whose `power_jacobian` differences of `power` do not confirm."""
        is_own = not type(self).__module__.startswith("spectralgp.") and type(self).bind is GraphKernel.bind
        for own in np.eye(self.theta.size) if is_own else ():

            def power(value: float, own: Array = own) -> tuple[Array, Array]:
                moved = self.with_theta(np.where(own, value, self.theta))
                return moved.power(CHECKED), np.asarray(moved.power_jacobian(CHECKED)) @ own

            claim = f"{type(self).__name__}.power_jacobian must be the derivative of power in theta[{np.argmax(own)}]"
            check_derivative(claim, power, self.theta @ own, [f"eigenvalue {one:g}" for one in CHECKED])

    def with_residual(self, residual: SpectralKernel) -> WithResidual:
        return WithResidual.of(self, residual)

    def __add__(self, other: object) -> KernelSum:
        return KernelSum.of(self, other) if isinstance(other, SpectralKernel) else NotImplemented


@dataclass(frozen=True)
class CombinedKernel(SpectralKernel):
    """Kernels on one spectrum that are learnt together: their parameters stand one after the other."""

    kernels: Annotated[tuple[SpectralKernel, ...], ge(1)]
    laplacian: LaplacianKind
    scaled: bool

    @classmethod
    def of(cls, *parts: SpectralKernel) -> Self:
        """Kernels of one Laplacian, of which those that do not care take that of the others."""
        decided = [part for part in parts if not part.needs_no_graph] or parts[:1]
        spectra = {(part.laplacian, part.scaled) for part in decided}
        if len(spectra) > 1:
            words = " and ".join(sorted(f"{'scaled ' if scaled else ''}{kind}" for kind, scaled in spectra))
            raise ValueError(
                f"kernels must be functions of one Laplacian to go together; got {words}. "
                "Give them the same laplacian and scaled, or stack them in a list instead."
            )
        return cls(parts, *spectra.pop())

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return tuple(f"kernels[{i}].{name}" for i, part in enumerate(self.kernels) for name in part.parameter_names)

    @property
    def theta(self) -> Array:
        return np.concatenate([part.theta for part in self.kernels])

    def bounds(self, variance: float = 1.0) -> Array:
        return np.vstack([part.bounds(variance) for part in self.kernels])

    def with_theta(self, theta: ArrayLike) -> Self:
        values, learnt, end = np.asarray(theta, dtype=float), list[SpectralKernel](), 0
        for part in self.kernels:
            start, end = end, end + part.theta.size
            learnt.append(part.with_theta(values[start:end]))
        return type(self)(tuple(learnt), self.laplacian, self.scaled)  # without a floor, which was another filter's

    def check_derivatives(self) -> None:
        for part in self.kernels:
            part.check_derivatives()

    def theta_units(self, variance: float) -> Array:
        return np.concatenate([part.theta_units(variance) for part in self.kernels])

    def bind(self, spectrum: Spectrum) -> Self:
        return dataclasses.replace(self, kernels=tuple(part.bind(spectrum) for part in self.kernels))

    def moved_to(self, spectrum: Spectrum, learnt_on: Spectrum | None = None) -> Self:
        return dataclasses.replace(self, kernels=tuple(part.moved_to(spectrum, learnt_on) for part in self.kernels))

    @property
    def has_free_amplitude(self) -> bool:
        return all(part.has_free_amplitude for part in self.kernels)

    def starting_points(self, spectrum: Spectrum, variance: float) -> list[Array]:
        share = variance / len(self.kernels)
        starts = [part.starting_points(spectrum, share)[len(part.given_starts()) :] for part in self.kernels]
        return [*self.given_starts(), *map(np.concatenate, _in_step(starts))]

    def given_starts(self) -> tuple[Array, ...]:
        return (self.theta,) if any(part.given_starts() for part in self.kernels) else ()

    def log_prior(self, spectrum: Spectrum, noise_variance: float) -> LogPrior:
        parts = (part.log_prior(spectrum, noise_variance) for part in self.kernels)
        values, slopes, noise_slopes, precisions = zip(*parts, strict=True)
        slope, start = np.concatenate(slopes), 0
        precision = np.zeros((slope.size, slope.size))
        for own in precisions:  # SciPy's block_diag would take as long as all the rest
            precision[start : start + len(own), start : start + len(own)] = own
            start += len(own)
        return LogPrior(sum(values), slope, sum(noise_slopes), precision)

    def positivity(self, spectrum: Spectrum, coarse: bool = False) -> tuple[Positivity, ...]:
        *before, n_parameters = accumulate((part.theta.size for part in self.kernels), initial=0)
        parts = zip(before, self.kernels, strict=True)
        return tuple(one.padded(at, n_parameters) for at, part in parts for one in part.positivity(spectrum, coarse))

    def path(self) -> tuple[GraphKernel, ...]:
        forms = _in_step([part.path() for part in self.kernels])
        return tuple(dataclasses.replace(self, kernels=tuple(parts)) for parts in forms)

    def grown_from(self, simpler: GraphKernel) -> Array:
        pairs = zip(self.kernels, simpler.kernels if isinstance(simpler, CombinedKernel) else (), strict=True)
        return np.concatenate([part.theta if part == old else part.grown_from(old) for part, old in pairs])


def _in_step(lists: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The first of each list, the second of each, and so on to the end of the longest; others stay at their last."""
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
    def of(cls, *parts: SpectralKernel) -> Self:
        return super().of(
            *(own for part in parts for own in (part.kernels if isinstance(part, KernelSum) else (part,)))
        )

    def power(self, eigenvalues: ArrayLike) -> Array:
        return np.sum([part.power(eigenvalues) for part in self.kernels], axis=0)

    def power_jacobian(self, eigenvalues: ArrayLike) -> Array:
        return np.hstack([part.power_jacobian(eigenvalues) for part in self.kernels])

    def scaled_by(self, factor: float) -> Self:
        return dataclasses.replace(self, kernels=tuple(part.scaled_by(factor) for part in self.kernels))

    @property
    def label(self) -> str:
        return " + ".join(part.label for part in self.kernels)


@dataclass(frozen=True)
class WithResidual(CombinedKernel):
    """Two kernels: ``g`` of what the inputs explain, and ``h`` of what each signal has to itself: equation (11).

    A signal is ``g(L) f(x) + h(L) e + noise`` with white ``e``. The residual ``h(L) e`` is shared by neighbours, but
    not by signals, so that no input predicts it. Made by ``WithResidual.of(signal, residual)``.

    What the residual has at every frequency is white, and no data tell it from noise: learning ends with it, the
    `floor`, taken off the residual's power and added to the noise.

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
    def signal(self) -> SpectralKernel:
        return self.kernels[0]

    @property
    def residual(self) -> SpectralKernel:
        return self.kernels[1]

    def power(self, eigenvalues: ArrayLike) -> Array:
        return self.signal.power(eigenvalues)

    def response(self, eigenvalues: ArrayLike) -> Array:
        return self.signal.response(eigenvalues)

    def residual_power(self, eigenvalues: ArrayLike) -> Array:
        return self.residual.power(eigenvalues) - self.floor

    def without_floor(self, eigenvalues: Array) -> Self:
        if self.residual.theta.size == 0:
            return self
        least = float(np.min(self.residual.power(np.append(eigenvalues, 0.0))))  # zero is a frequency of every graph
        return dataclasses.replace(self, floor=FLOOR_SHARE * least)

    def scaled_by(self, factor: float) -> Self:
        scaled = tuple(part.scaled_by(factor) for part in self.kernels)
        return dataclasses.replace(self, kernels=scaled, floor=self.floor * factor**2)

    def power_jacobian(self, eigenvalues: ArrayLike) -> Array:
        jacobian = self.signal.power_jacobian(eigenvalues)
        return np.hstack([jacobian, np.zeros((len(jacobian), self.residual.theta.size))])

    @property
    def has_free_amplitude(self) -> bool:
        return self.signal.has_free_amplitude

    @property
    def label(self) -> str:
        return f"{self.signal.label} | {self.residual.label}"

    def power_jacobians(self, eigenvalues: Array) -> tuple[Array, ...]:
        return self.signal.power_jacobian(eigenvalues), self.residual.power_jacobian(eigenvalues)

    def with_residual(self, residual: SpectralKernel) -> WithResidual:
        return self
