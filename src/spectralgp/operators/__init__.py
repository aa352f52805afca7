"""Laplacians as operators for the Chebyshev recurrence, on whatever holds the signals."""

from spectralgp.operators.base import (
    ArrayOperator,
    MomentPass,
    Operator,
    chebyshev_coefficients,
    chebyshev_points,
    lanczos,
    largest_ritz_value,
    quadrature_weights,
)
from spectralgp.operators.choose import PlainOperator, make_operator, precision_of
from spectralgp.operators.cpu import CpuOperator
from spectralgp.operators.cuda import CudaOperator
