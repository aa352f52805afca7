"""Laplacians as operators for the Chebyshev recurrence, on whatever holds the signals."""

from spectralgp.operators.base import Operator, Recurrence
from spectralgp.operators.choose import make_operator, precision_of
from spectralgp.operators.cpu import CpuOperator
from spectralgp.operators.cuda import CudaOperator
from spectralgp.operators.passes import (
    MomentPass,
    chebyshev_coefficients,
    chebyshev_points,
    quadrature_weights,
)
from spectralgp.operators.plain import PlainOperator

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
