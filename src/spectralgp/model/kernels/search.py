"""Search space of a graph kernel: bounds, starts, prior, constraints and simpler forms of its parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spectralgp._basics.checks import Array, Mask
from spectralgp.model.spectra import Spectrum

if TYPE_CHECKING:
    from spectralgp.model.kernels.base import GraphKernel

SIGNAL_SHARE = 0.8  # of the signals' variance that learning starts with, the rest being noise


@dataclass(frozen=True, eq=False)
class Positivity:
    """Points where a filter must not be negative, and its values there as linear functions of its parameters."""

    points: Array  # eigenvalues, ascending
    rows: Array  # the filter at the points is ``rows @ theta``, shape (n_points, n_parameters)
    constant: Array  # change of ``theta`` that raises the filter by one everywhere
    first: int = 0  # position of these parameters in the vector ``x`` of all parameters

    def after(self, n_parameters: int) -> Positivity:
        """Return the constraint on a vector that begins with `n_parameters` further parameters."""
        return replace(self, first=self.first + n_parameters)

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
    """Search space of a kernel's parameters: unbounded, from the present values, unless overridden.

    A kernel returns it by `GraphKernel.search`. Methods refer to the kernel at its present parameters `theta`.
    """

    kernel: GraphKernel

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the parameters, in the order of `theta`."""
        return tuple(f"theta[{index}]" for index in range(self.kernel.theta.size))

    @property
    def has_free_amplitude(self) -> bool:
        """Whether a factor of the whole covariance is among the parameters."""
        return False

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

    def given_starts(self) -> tuple[Array, ...]:
        """Values of `theta` given by the user, as further starts at the end of a `path`."""
        return ()

    def starting_points(self, spectrum: Spectrum, variance: float) -> list[Array]:
        """Values of `theta` to start learning from, for signals with the given variance on a graph."""
        return [self.kernel.theta]

    def bounds(self, variance: float) -> Array:
        """Bounds of `theta` for signals with the given variance, shape (n_parameters, 2)."""
        return np.tile([-np.inf, np.inf], (self.kernel.theta.size, 1))

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
