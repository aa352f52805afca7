"""Laplacians as operators for the Chebyshev recurrence, on whatever holds the signals."""

from spectralgp._operators.base import Operator, Recurrence
from spectralgp._operators.choose import make_operator, precision_of
from spectralgp._operators.cpu import CpuOperator
from spectralgp._operators.cuda import CudaOperator
from spectralgp._operators.passes import (
    MomentPass,
    chebyshev_coefficients,
    chebyshev_points,
    quadrature_weights,
)
from spectralgp._operators.plain import PlainOperator

__all__ = [
    "CpuOperator",
    "CudaOperator",
    "MomentPass",
    "Operator",
    "PlainOperator",
    "Recurrence",
    "chebyshev_coefficients",
    "chebyshev_points",
    "make_operator",
    "precision_of",
    "quadrature_weights",
]
