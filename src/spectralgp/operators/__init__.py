"""Laplacians as operators for the Chebyshev recurrence, on whatever holds the signals."""

from spectralgp.operators.base import Operator
from spectralgp.operators.choose import make_operator, precision_of
from spectralgp.operators.cpu import CpuOperator
from spectralgp.operators.cuda import CudaOperator
from spectralgp.operators.lanczos import lanczos, largest_ritz_value
from spectralgp.operators.passes import MomentPass, chebyshev_coefficients, chebyshev_points, quadrature_weights
from spectralgp.operators.plain import PlainOperator

__all__ = [
    "CpuOperator",
    "CudaOperator",
    "MomentPass",
    "Operator",
    "PlainOperator",
    "chebyshev_coefficients",
    "chebyshev_points",
    "lanczos",
    "largest_ritz_value",
    "make_operator",
    "precision_of",
    "quadrature_weights",
]
