"""The learnt filter of the paper: a polynomial on the graph's spectrum."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Literal, Self

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.polynomial import Polynomial as PowerSeries
from numpy.polynomial.chebyshev import chebvander
from numpy.typing import ArrayLike

from spectralgp._checks import Array, as_integer, as_positive, as_real_array
from spectralgp.graph import LaplacianKind
from spectralgp.graph_kernels.base import SpectralKernel
from spectralgp.spectrum import AnySpectrum

AUTO_DEGREES = (0, 1, 2, 3, 5, 8)
HIGHEST_DEGREE = 30


@dataclass(frozen=True)
class Polynomial(SpectralKernel):
    """A polynomial filter, ``B = sum_p beta_p L^p`` (equation (4)), the paper's learnt kernel.

    Inside it is a Chebyshev series on ``[0, upper]``, which stays well conditioned where powers do not;
    `coefficients` reports the ``beta_p``.

    Parameters
    ----------
    degree : int or "auto", default=3
        Degree of the polynomial. "auto" stands for the degrees 0, 1, 2, 3, 5 and 8 stacked with held-out weights.
    constraint : {"eigenvalues", "interval"} or None, default="eigenvalues"
        Where learning keeps ``g >= 0``: at every eigenvalue (the paper), on the whole interval (so that the
        filter is valid on other graphs too), or nowhere.
    laplacian : {"combinatorial", "normalized"}, default="combinatorial"
        Which Laplacian.
    scaled : bool, default=True
        Whether it is divided by its largest eigenvalue.
    chebyshev : tuple of float, optional
        Coefficients of the Chebyshev series, lowest first; the constant filter 1 if not given.
    upper : float, default=1.0
        Right end of the interval of the Chebyshev series. Learning sets it from the spectrum.

    See Also
    --------
    Polynomial.from_coefficients : a filter with given ``beta``.

    Examples
    --------
    >>> from spectralgp import Polynomial
    >>> band_pass = Polynomial.from_coefficients([0, 1, 4, 1, -6])
    >>> band_pass.response([0.0, 0.5, 1.0]).round(6).tolist()
    [0.0, 1.25, 0.0]
    >>> band_pass.coefficients.round(6).tolist()
    [0.0, 1.0, 4.0, 1.0, -6.0]
    """

    degree: int | Literal["auto"] = 3
    constraint: Literal["eigenvalues", "interval"] | None = "eigenvalues"
    laplacian: LaplacianKind = "combinatorial"
    scaled: bool = True
    chebyshev: tuple[float, ...] | None = field(default=None, kw_only=True)
    upper: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        """Check the degree, the constraint and the coefficients."""
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

    @classmethod
    def from_coefficients(
        cls,
        coefficients: ArrayLike,
        *,
        constraint: Literal["eigenvalues", "interval"] | None = "eigenvalues",
        laplacian: LaplacianKind = "combinatorial",
        scaled: bool = True,
        upper: float = 1.0,
    ) -> Polynomial:
        """Polynomial with given coefficients ``beta_0, beta_1, ...`` of the powers of ``lambda``."""
        beta = as_real_array(coefficients, "coefficients", ("degree + 1",))
        if beta.size == 0:
            raise ValueError("coefficients must hold at least one number; got none. Pass [1.0] for a constant one.")
        series = PowerSeries(beta).convert(kind=Chebyshev, domain=[0.0, upper])
        padded = np.zeros(beta.size)
        padded[: series.coef.size] = series.coef
        return cls(beta.size - 1, constraint, laplacian, scaled, chebyshev=tuple(padded.tolist()), upper=upper)

    def members(self) -> tuple[Polynomial, ...]:
        """The fixed degrees that "auto" stands for; the polynomial itself otherwise."""
        if self.degree != "auto":
            return (self,)
        return tuple(dataclasses.replace(self, degree=degree) for degree in AUTO_DEGREES)

    @property
    def coefficients(self) -> Array:
        """Coefficients ``beta_p`` of the powers of ``lambda``, lowest first."""
        beta = np.zeros(self._fixed_degree + 1)
        converted = self._series.convert(kind=PowerSeries).coef
        beta[: converted.size] = converted
        return beta

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """One name for each Chebyshev coefficient."""
        return tuple(f"chebyshev[{order}]" for order in range(self._fixed_degree + 1))

    @property
    def theta(self) -> Array:
        """Chebyshev coefficients."""
        if self.chebyshev is None:
            return np.eye(self._fixed_degree + 1)[0]
        return np.array(self.chebyshev)

    @property
    def bounds(self) -> Array:
        """The coefficients are free."""
        return np.tile([-np.inf, np.inf], (self._fixed_degree + 1, 1))

    def with_theta(self, theta: ArrayLike) -> Self:
        """Same polynomial with other Chebyshev coefficients."""
        return dataclasses.replace(self, chebyshev=tuple(np.asarray(theta, dtype=float).tolist()))

    def with_degree(self, degree: int) -> Polynomial:
        """The same function written with more coefficients, or truncated to fewer."""
        theta = np.zeros(degree + 1)
        kept = self.theta[: degree + 1]
        theta[: kept.size] = kept
        return dataclasses.replace(self, degree=degree, chebyshev=tuple(theta.tolist()))

    def scaled_by(self, factor: float) -> Self:
        """Same polynomial with every coefficient multiplied."""
        return self.with_theta(self.theta * factor)

    def bind(self, spectrum: AnySpectrum) -> Self:
        """Same polynomial with its Chebyshev series on the spectrum's interval."""
        if self.upper == spectrum.upper:
            return self
        series = self._series.convert(domain=[0.0, spectrum.upper])
        theta = np.zeros(self._fixed_degree + 1)
        theta[: series.coef.size] = series.coef
        return dataclasses.replace(self, chebyshev=tuple(theta.tolist()), upper=spectrum.upper)

    def starting_points(self, spectrum: AnySpectrum, variance: float) -> list[Array]:
        """The constant filter with the signals' variance: continuation in the degree does the rest."""
        theta = np.zeros(self._fixed_degree + 1)
        theta[0] = np.sqrt(0.8 * variance)
        return [theta]

    def design(self, eigenvalues: ArrayLike) -> Array:
        """Chebyshev polynomials at the eigenvalues, so that ``response = design @ theta``."""
        points = np.asarray(eigenvalues, dtype=float)
        return np.asarray(chebvander(2 * points / self.upper - 1, self._fixed_degree))

    def response(self, eigenvalues: ArrayLike) -> Array:
        """The filter ``g(lambda)``."""
        response: Array = self.design(eigenvalues) @ self.theta
        return response

    def power(self, eigenvalues: ArrayLike) -> Array:
        """Covariance spectrum ``g(lambda)^2``."""
        return np.square(self.response(eigenvalues))

    def power_jacobian(self, eigenvalues: ArrayLike) -> Array:
        """``2 g(lambda)`` times `design`."""
        design = self.design(eigenvalues)
        return 2 * (design @ self.theta)[:, None] * design

    def extrema(self) -> Array:
        """Points of ``[0, upper]`` where the filter can be smallest or largest: its ends and stationary points."""
        ends = np.array([0.0, self.upper])
        if self._fixed_degree < 2:
            return ends
        slope = self._series.deriv().trim(1e-13 * np.max(np.abs(self.theta), initial=0.0))
        roots = np.asarray(slope.roots() if slope.degree() > 0 else [])
        real = roots[np.abs(roots.imag) < 1e-6 * self.upper].real
        return np.union1d(ends, np.clip(real, 0.0, self.upper))

    def rescaled(self) -> Self:
        """The filter divided by its maximum over the interval, ``g / c``, as the paper compares filters."""
        peak = float(np.max(self.response(self.extrema())))
        if peak <= 0:
            raise ValueError(
                f"the filter must be positive somewhere to be rescaled; got a maximum of {peak:.3g}. "
                "Learn it with a constraint, or change its sign."
            )
        return self.scaled_by(1 / peak)

    @property
    def _series(self) -> Chebyshev:
        return Chebyshev(self.theta, domain=[0.0, self.upper])

    @property
    def _fixed_degree(self) -> int:
        if self.degree == "auto":
            raise ValueError(
                "degree must be an integer to evaluate a polynomial; got 'auto'. "
                "Fit a GraphGPRegressor, which stacks several degrees, or choose one of them."
            )
        return self.degree
