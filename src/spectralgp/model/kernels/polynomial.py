"""The learnt filter of the paper: a polynomial on the graph's spectrum."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.polynomial import Polynomial as PowerSeries
from numpy.polynomial.chebyshev import chebder, chebroots, chebtrim, chebvander
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls

from spectralgp._basics.arrays import frozen, without_caches
from spectralgp._basics.checks import Array, as_integer, as_positive, as_real_array
from spectralgp._basics.saved import Positive, ge
from spectralgp.graphs import LaplacianKind
from spectralgp.model.kernels.base import SIGNAL_SHARE, GraphKernel, KernelSearch, LogPrior, Positivity, SpectralKernel
from spectralgp.model.spectra import Spectrum

UPPER_ROUNDING = 1e-9  # share of the interval by which the largest eigenvalue may exceed it
AUTO_DEGREES = (0, 1, 2, 3, 5, 8)
HIGHEST_DEGREE = 30
ROUGHNESS = 0.1  # weight of the weak prior's penalty on high Chebyshev coefficients
NEGATIVE_ROUNDING = 1e-12  # share of a filter's largest value by which it may be negative
SMALLEST_METRIC = 1e-8  # weight of a coefficient that changes no value at a frequency
GRID_PER_TERM = 20  # points of the first grid on which a polynomial is constrained
N_EXCHANGES = 4  # times that its minima are added to the grid


@dataclass(frozen=True)
class Polynomial(SpectralKernel):
    """A polynomial filter, ``B = sum_p beta_p L^p`` (equation (4)), the paper's learnt kernel.

    Inside it is a Chebyshev series on ``[0, upper]``, which stays well conditioned where powers do not;
    `coefficients` reports the ``beta_p``.

    Parameters
    ----------
    degree : int or "auto", default=3
        "auto" stacks the degrees 0, 1, 2, 3, 5 and 8 by held-out scores.
    constraint : {"eigenvalues", "interval"} or None, default="eigenvalues"
        Learning keeps ``g >= 0`` at every eigenvalue (the paper), on the whole interval (the filter is then valid on
        other graphs too), or nowhere.
    laplacian : {"combinatorial", "normalized", "balanced"}, default="combinatorial"
        Laplacian of the filter.
    scaled : bool, default=True
        Divide it by its largest eigenvalue.
    chebyshev : tuple of float, optional
        Coefficients of the series, lowest first, to start learning from; the constant filter 1 if not given.
        `Polynomial.from_coefficients` finds them from given ``beta``.
    upper : float, default=1.0
        Right end of the interval. Learning sets it from the spectrum.
    fixed : bool, default=False
        Keep the given coefficients, in the units of the signals, for example of a filter learnt on other data.

    Examples
    --------
    >>> from spectralgp import Polynomial
    >>> band_pass = Polynomial.from_coefficients([0, 1, 4, 1, -6])
    >>> band_pass.response([0.0, 0.5, 1.0]).round(6).tolist()
    [0.0, 1.25, 0.0]
    >>> band_pass.coefficients.round(6).tolist()
    [0.0, 1.0, 4.0, 1.0, -6.0]
    """

    degree: Annotated[int, ge(0, HIGHEST_DEGREE)] | Literal["auto"] = 3
    constraint: Literal["eigenvalues", "interval"] | None = "eigenvalues"
    laplacian: LaplacianKind = "combinatorial"
    scaled: bool = True
    chebyshev: Annotated[tuple[float, ...], ge(0, HIGHEST_DEGREE + 1)] | None = field(default=None, kw_only=True)
    upper: Positive = field(default=1.0, kw_only=True)
    fixed: bool = field(default=False, kw_only=True)

    __getstate__ = without_caches

    def __post_init__(self) -> None:
        if self.degree != "auto":
            as_integer(self.degree, "degree", 0, HIGHEST_DEGREE)
        if self.constraint not in ("eigenvalues", "interval", None):
            raise ValueError(
                f"constraint must be 'eigenvalues', 'interval' or None; got {self.constraint!r}. "
                "Use 'eigenvalues' to keep the filter non-negative on the graph it is learnt on."
            )
        as_positive(self.upper, "upper")
        if self.chebyshev is not None and (self.degree == "auto" or len(self.chebyshev) != self.degree + 1):
            raise ValueError(
                f"chebyshev must hold degree + 1 coefficients; got {len(self.chebyshev)} for degree {self.degree}. "
                "Use Polynomial.from_coefficients to give the powers' coefficients and let the degree follow."
            )
        if self.fixed and self.chebyshev is None:
            raise ValueError(
                "fixed must be False for a polynomial without coefficients; got True. "
                "Pass Polynomial.from_coefficients(..., fixed=True)."
            )

    @classmethod
    def from_coefficients(
        cls,
        coefficients: ArrayLike,
        *,
        constraint: Literal["eigenvalues", "interval"] | None = "eigenvalues",
        laplacian: LaplacianKind = "combinatorial",
        scaled: bool = True,
        upper: float = 1.0,
        fixed: bool = False,
    ) -> Polynomial:
        """Polynomial with given coefficients ``beta_0, beta_1, ...`` of the powers of ``lambda``."""
        beta = as_real_array(coefficients, "coefficients", ("degree + 1",))
        if beta.size == 0:
            raise ValueError("coefficients must hold at least one number; got none. Pass [1.0] for a constant one.")
        series = PowerSeries(beta).convert(kind=Chebyshev, domain=[0.0, upper])
        given = _padded(series.coef, beta.size)
        return cls(beta.size - 1, constraint, laplacian, scaled, chebyshev=given, upper=upper, fixed=fixed)

    @property
    def coefficients(self) -> Array:
        """Coefficients ``beta_p`` of the powers of ``lambda``, lowest first."""
        return np.array(_padded(self._series.convert(kind=PowerSeries).coef, self._coefficients.size))

    @property
    def theta(self) -> Array:
        return np.empty(0) if self.fixed else self._coefficients.copy()

    def with_theta(self, theta: ArrayLike) -> Self:
        if self.fixed:
            return self
        values = np.array(theta, dtype=float)
        if self.degree == "auto" or values.size != self.degree + 1:
            return dataclasses.replace(self, chebyshev=tuple(values.tolist()))  # which refuses it
        values.setflags(write=False)
        other = object.__new__(type(self))  # at every step of a search: what was checked needs no second check
        other.__dict__.update({**vars(self), "chebyshev": tuple(values.tolist()), "_coefficients": values})
        return other

    def scaled_by(self, factor: float) -> Self:
        if self.chebyshev is None:
            return self
        return dataclasses.replace(self, chebyshev=tuple((self._coefficients * factor).tolist()))

    def search(self) -> PolynomialSearch:
        return PolynomialSearch(self, is_given=self.chebyshev is not None and not self.fixed)

    def bind(self, spectrum: Spectrum) -> Self:
        if self.upper == spectrum.upper:
            return self
        given = self.chebyshev
        if given is not None:
            given = _padded(self._series.convert(domain=[0.0, spectrum.upper]).coef, len(given))
        return dataclasses.replace(self, chebyshev=given, upper=spectrum.upper)

    def moved_to(self, spectrum: Spectrum, learnt_on: Spectrum | None = None) -> Self:
        if not self.scaled and spectrum.upper > self.upper * (1 + UPPER_ROUNDING):
            raise ValueError(
                f"graph must have no frequency above {self.upper:g}, where the filter was learnt; got "
                f"{spectrum.upper:g}. Use a polynomial of a scaled Laplacian."
            )
        values = self.response(self.extrema())
        if np.min(values) >= -NEGATIVE_ROUNDING * np.max(np.abs(values)):
            return self
        if learnt_on is None or self.fixed:
            raise ValueError(
                f"constraint must be 'interval' to transfer a polynomial that is negative on a part of the interval; "
                f"got {self.constraint!r}. Fit with Polynomial({self.degree}, constraint='interval')."
            )
        return self.nearest_positive(learnt_on)

    def nearest_positive(self, spectrum: Spectrum) -> Self:
        """Return the nearest non-negative polynomial of this degree, in mean square over the frequencies.

        It is ``min ||R (c' - c)||`` over coefficients with ``design(t) c' >= 0`` on a grid, a least-distance problem,
        which non-negative least squares solve (Lawson and Hanson, 1974, chapter 23). Minima of the solution are added
        to the grid, and at last the filter is lifted by its rounding error.
        """
        peak = np.max(np.abs(self.response(self.extrema())))
        coefficients, n_terms = self._coefficients / peak, self._coefficients.size
        design = self.design(spectrum.eigenvalues)
        metric = (design.T * (np.maximum(spectrum.multiplicities, 0.0) / spectrum.graph.n_nodes)) @ design
        # few frequencies do not determine a polynomial: its coefficients then change as little as possible
        root = np.linalg.cholesky(metric + SMALLEST_METRIC * np.eye(n_terms)).T
        points = self.upper * (1 - np.cos(np.linspace(0, np.pi, GRID_PER_TERM * n_terms))) / 2
        near, last = self.with_theta(coefficients), np.eye(n_terms + 1)[-1]
        for _ in range(N_EXCHANGES):
            points = np.union1d(points, near.extrema())
            grid = self.design(points)
            stacked = np.vstack([np.linalg.solve(root.T, grid.T), -(grid @ coefficients)])
            left = stacked @ nnls(stacked, last)[0] - last
            near = self.with_theta(coefficients + np.linalg.solve(root, -left[:-1] / left[-1]))
        lift = max(-float(np.min(near.response(near.extrema()))), 0.0)
        return self.with_theta(peak * (np.array(near.chebyshev) + lift * np.eye(n_terms)[0]))

    @property
    def label(self) -> str:
        return f"Polynomial({self.degree!r})"

    def design(self, eigenvalues: ArrayLike) -> Array:
        """Chebyshev polynomials at the eigenvalues, so that ``response = design @ theta``."""
        points, n_terms = np.asarray(eigenvalues, dtype=float), self._coefficients.size
        return _design(points.tobytes(), n_terms - 1, self.upper).reshape(*points.shape, n_terms)

    def response(self, eigenvalues: ArrayLike) -> Array:
        return np.asarray(self.design(eigenvalues) @ self._coefficients)

    def power(self, eigenvalues: ArrayLike) -> Array:
        return np.square(self.design(eigenvalues) @ self._coefficients)

    def power_jacobian(self, eigenvalues: ArrayLike) -> Array:
        design = self.design(eigenvalues)
        return 2 * (design @ self._coefficients)[:, None] * (design[:, :0] if self.fixed else design)

    def extrema(self) -> Array:
        """Candidates for the extrema of the filter on ``[0, upper]``: the ends and stationary points."""
        ends = np.array([0.0, self.upper])
        if self._coefficients.size < 3:
            return ends
        slope = chebder(self._coefficients, scl=2 / self.upper)
        slope = chebtrim(slope, 1e-13 * np.max(np.abs(self._coefficients), initial=0.0))
        roots = self.upper * (chebroots(slope) + 1) / 2
        real = roots[np.abs(roots.imag) < 1e-6 * self.upper].real
        return np.union1d(ends, np.clip(real, 0.0, self.upper))

    def rescaled(self) -> Self:
        """Return the filter divided by its maximum over the interval, ``g / c``, as in the paper's comparisons."""
        peak = float(np.max(self.response(self.extrema())))
        if peak <= 0:
            raise ValueError(
                f"the filter must be positive somewhere to be rescaled; got a maximum of {peak:.3g}. "
                "Learn it with a constraint, or change its sign."
            )
        return self.scaled_by(1 / peak)

    @cached_property
    def _coefficients(self) -> Array:
        if self.degree == "auto":
            raise ValueError(
                "degree must be an integer to evaluate a polynomial; got 'auto'. "
                "Fit a GraphGPRegressor, which stacks several degrees, or choose one of them."
            )
        return frozen(np.eye(self.degree + 1)[0] if self.chebyshev is None else np.array(self.chebyshev))

    @property
    def _series(self) -> Chebyshev:
        return Chebyshev(self._coefficients, domain=[0.0, self.upper])


class PolynomialSearch(KernelSearch):
    """Search space of coefficients: smooth non-negative filters, degree by degree from a constant one."""

    kernel: Polynomial

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return tuple(f"chebyshev[{order}]" for order in range(self.kernel.theta.size))

    @property
    def has_free_amplitude(self) -> bool:
        return not self.kernel.fixed

    def members(self) -> tuple[Polynomial, ...]:
        if self.kernel.degree != "auto":
            return (self.kernel,)
        return tuple(dataclasses.replace(self.kernel, degree=degree) for degree in AUTO_DEGREES)

    def path(self) -> tuple[GraphKernel, ...]:
        unlearnt = dataclasses.replace(self.kernel, chebyshev=None, fixed=False)
        lower = range(max(self.kernel.theta.size - 1, 0))
        return (*(dataclasses.replace(unlearnt, degree=degree) for degree in lower), self.kernel)

    def grown_from(self, simpler: GraphKernel) -> Array:
        return np.pad(simpler.theta, (0, self.kernel.theta.size - simpler.theta.size))

    def guides(self) -> tuple[GraphKernel, ...]:
        # without a constraint there are many more local maxima: the constrained maximum is a good start
        is_guided = self.kernel.constraint is None and not self.kernel.fixed
        return (dataclasses.replace(self.kernel, constraint="eigenvalues"),) if is_guided else ()

    def with_powers(self, coefficients: Array) -> GraphKernel | None:
        if self.kernel.fixed:
            return None
        powers = PowerSeries(coefficients, domain=[0.0, 1.0], window=[0.0, 1.0])
        series = powers.convert(kind=Chebyshev, domain=[0.0, 1.0])
        return self.kernel.with_theta(_padded(series.coef, coefficients.size))

    def starting_points(self, spectrum: Spectrum, variance: float) -> list[Array]:
        constant = np.zeros(self.kernel.theta.size)
        constant[:1] = np.sqrt(SIGNAL_SHARE * variance)
        return [*[self.kernel.theta] * self.is_given, constant]

    def theta_units(self, variance: float) -> Array:
        return np.full(self.kernel.theta.size, np.sqrt(variance))  # coefficients have the units of the signals

    def log_prior(self, spectrum: Spectrum, noise_variance: float) -> LogPrior:
        """Penalty on a rough filter, ``-(0.1/2) sum_p p^6 c_p^2 / (mean g^2 + sigma^2)`` on its coefficients."""
        theta, design = self.kernel.theta, self.kernel.design(spectrum.eigenvalues)
        response, design = design @ self.kernel._coefficients, design[:, : theta.size]
        shares = spectrum.multiplicities / spectrum.graph.n_nodes
        scale = float(shares @ np.square(response)) + noise_variance
        weights = ROUGHNESS * np.arange(theta.size) ** 6.0 / scale
        penalty = 0.5 * float(weights @ theta**2)
        slope = 2 * (shares * response) @ design / scale
        bend = 2 * np.asarray((shares[:, None] * design).T @ design) / scale
        crossed = np.multiply.outer(weights * theta, slope)
        precision = np.diag(weights) - crossed - crossed.T + penalty * (2 * np.multiply.outer(slope, slope) - bend)
        return LogPrior(-penalty, penalty * slope - weights * theta, penalty * noise_variance / scale, precision)

    def positivity(self, spectrum: Spectrum, coarse: bool = False) -> tuple[Positivity, ...]:
        kernel = self.kernel
        if kernel.constraint is None or kernel.fixed:
            return ()
        n_terms = kernel._coefficients.size
        has_points = kernel.constraint == "eigenvalues" and spectrum.has_eigenvectors
        points = spectrum.eigenvalues
        if coarse:
            spread = kernel.upper * (1 - np.cos(np.linspace(0, np.pi, 4 * n_terms))) / 2
            middles = (points[1:] + points[:-1]) / 2
            points = np.unique(points[np.searchsorted(middles, spread)]) if has_points else spread
        elif not has_points:
            points = kernel.extrema()
        return (Positivity(points, kernel.design(points), np.eye(1, n_terms)[0]),)


@lru_cache(maxsize=32)  # learning needs those of one spectrum at every step
def _design(points: bytes, degree: int, upper: float) -> Array:
    return frozen(chebyshev_design(np.frombuffer(points), degree, upper))


def chebyshev_design(points: Array, degree: int, upper: float) -> Array:
    """Chebyshev polynomials on ``[0, upper]`` at points, shape (n_points, degree + 1)."""
    return np.asarray(chebvander(2 * points / upper - 1, degree), dtype=float)


def _padded(coefficients: NDArray[Any], size: int) -> tuple[float, ...]:
    """Coefficients padded with zeros at higher orders, which conversions omit."""
    return (*coefficients.tolist(), *[0.0] * (size - coefficients.size))
