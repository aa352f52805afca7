"""Laplacians as operators for the Chebyshev recurrence, on whatever holds the signals."""

from spectralgp.graphs.operators.base import (
    ArrayOperator,
    MomentPass,
    Operator,
    chebyshev_coefficients,
    chebyshev_points,
    lanczos,
    largest_ritz_value,
    quadrature_weights,
)
from spectralgp.graphs.operators.choose import PlainOperator, make_operator, precision_of
from spectralgp.graphs.operators.cpu import CpuOperator
from spectralgp.graphs.operators.cuda import CudaOperator
