"""Laplacians as operators for the Chebyshev recurrence, on CPU, CUDA and any array library."""

from spectralgp.graphs.operators.base import (
    MomentPass,
    Operator,
    chebyshev_coefficients,
    chebyshev_points,
    keeps_constants,
    lanczos,
    largest_eigenvalue,
    low_diagonals,
    probed_terms,
    quadrature_weights,
    random_normal,
    random_signs,
    tighten,
    traces,
)
from spectralgp.graphs.operators.blocks import (
    block_products,
    column_products,
    combine_columns,
    join_columns,
    row_products,
    take_columns,
)
from spectralgp.graphs.operators.choose import PlainOperator, make_operator, precision_of
from spectralgp.graphs.operators.cpu import CpuOperator
from spectralgp.graphs.operators.cuda import CudaOperator
