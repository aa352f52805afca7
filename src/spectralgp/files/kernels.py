"""Kernels in files: every one that a file may name, and the kind of each of its parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.gaussian_process import kernels as of_inputs

from spectralgp.files.arrays import ArrayOf
from spectralgp.files.codecs import (
    FLAG,
    POSITIVE,
    REAL,
    Codec,
    Either,
    Integer,
    Json,
    Later,
    Many,
    Maybe,
    Number,
    Option,
    Reading,
    Record,
    Tagged,
    Writing,
)
from spectralgp.kernels import (
    Cosine,
    Diffusion,
    GlobalFilter,
    Identity,
    Independent,
    Learnt,
    LocalAverage,
    Matern,
    Polynomial,
    Precomputed,
    PseudoInverse,
    RandomWalk,
    RegularizedLaplacian,
    Standardised,
    Sum,
    WithResidual,
)
from spectralgp.kernels.polynomial import HIGHEST_DEGREE

# ------------------------------------------------------------------------------------------------- graph kernels

PAIR = Many(Number(0.0, is_finite=False), least=2, most=2)
BOUNDS = Either(Option("fixed"), PAIR)
LAPLACIAN = Option("combinatorial", "normalized")
ON_SPECTRUM: dict[str, Codec] = {"laplacian": LAPLACIAN, "scaled": FLAG}
AMPLITUDE: dict[str, Codec] = {"amplitude": POSITIVE, "amplitude_bounds": Maybe(BOUNDS), **ON_SPECTRUM}
STRENGTH: dict[str, Codec] = {"strength": POSITIVE, "strength_bounds": BOUNDS, **AMPLITUDE}

GRAPH_KERNEL = Tagged(
    "a graph kernel of this package",
    "A file holds no code, so no function of yours: use a kernel such as Polynomial(3), or fit anew where the function "
    "is at hand.",
)
PARTS: dict[str, Codec] = {"kernels": Many(GRAPH_KERNEL, least=1), **ON_SPECTRUM}
GRAPH_KERNEL.add(
    Record(
        Polynomial,
        degree=Either(Option("auto"), Integer(0, HIGHEST_DEGREE)),
        constraint=Maybe(Option("eigenvalues", "interval")),
        chebyshev=Maybe(Many(REAL, most=HIGHEST_DEGREE + 1)),
        upper=POSITIVE,
        fixed=FLAG,
        **ON_SPECTRUM,
    ),
    *(Record(kernel, **AMPLITUDE) for kernel in (Identity, PseudoInverse, Cosine)),
    *(Record(kernel, **STRENGTH) for kernel in (GlobalFilter, LocalAverage, RegularizedLaplacian, Diffusion)),
    Record(RandomWalk, steps=Integer(1, 10_000), shift=POSITIVE, shift_bounds=BOUNDS, **AMPLITUDE),
    Record(Matern, nu=POSITIVE, length_scale=POSITIVE, length_scale_bounds=BOUNDS, **AMPLITUDE),
    Record(Sum, **PARTS),
    Record(
        WithResidual, **(PARTS | {"kernels": Many(GRAPH_KERNEL, least=2, most=2), "floor": Later(Number(0.0), 0.0)})
    ),
)

# ------------------------------------------------------------------------------------------- scikit-learn's kernels


class _NumberOrRow(Codec):
    """A number, or one for each feature, as scikit-learn's kernels take them."""

    def __init__(self, number: Codec) -> None:
        self.number, self.row = number, Many(number, least=1)

    def write(self, value: Any, into: Writing, where: str) -> Json:
        return (self.number if np.ndim(value) == 0 else self.row).write(value, into, where)

    def read(self, found: Json, source: Reading, where: str) -> Any:
        if not isinstance(found, list):
            return self.number.read(found, source, where)
        return np.array(self.row.read(found, source, where))


class _Limits(Codec):
    """A pair, or one for each feature."""

    def write(self, value: Any, into: Writing, where: str) -> Json:
        return (PAIR if np.ndim(value) == 1 else Many(PAIR)).write(value, into, where)

    def read(self, found: Json, source: Reading, where: str) -> Any:
        if isinstance(found, list) and found and isinstance(found[0], list):
            return np.array(Many(PAIR).read(found, source, where))
        return PAIR.read(found, source, where)


class _Exponent(Codec):
    """A number that stays whole if it is, as the kernel shows it."""

    def write(self, value: Any, into: Writing, where: str) -> Json:
        return int(value) if isinstance(value, int | np.integer) else REAL.write(value, into, where)

    def read(self, found: Json, source: Reading, where: str) -> float:
        REAL.read(found, source, where)
        return found


LIMITS = Either(Option("fixed"), _Limits())
LENGTH: dict[str, Codec] = {"length_scale": _NumberOrRow(POSITIVE), "length_scale_bounds": LIMITS}

INPUT_FORMULA = Tagged(
    "a kernel of scikit-learn that files can hold",
    "A file holds no code: build the kernel from those of sklearn.gaussian_process.kernels, or pass its matrix with "
    "input_kernel='precomputed'.",
)
TWO: dict[str, Codec] = {"k1": INPUT_FORMULA, "k2": INPUT_FORMULA}
INPUT_FORMULA.add(
    Record(of_inputs.RBF, **LENGTH),
    Record(of_inputs.Matern, nu=Number(5e-324, is_finite=False), **LENGTH),
    Record(of_inputs.RationalQuadratic, alpha=POSITIVE, alpha_bounds=LIMITS, **LENGTH),
    Record(of_inputs.ExpSineSquared, periodicity=POSITIVE, periodicity_bounds=LIMITS, **LENGTH),
    Record(of_inputs.DotProduct, sigma_0=Number(0.0), sigma_0_bounds=LIMITS),
    Record(of_inputs.WhiteKernel, noise_level=Number(0.0), noise_level_bounds=LIMITS),
    Record(of_inputs.ConstantKernel, constant_value=Number(0.0), constant_value_bounds=LIMITS),
    Record(of_inputs.Sum, **TWO),
    Record(of_inputs.Product, **TWO),
    Record(of_inputs.Exponentiation, kernel=INPUT_FORMULA, exponent=_Exponent()),
)

# ------------------------------------------------------------------------------------------------- input kernels

INPUT_KERNEL = Tagged("an input kernel of this package", "Pass a kernel of scikit-learn, 'precomputed' or None.")
INPUT_KERNEL.add(
    Record(Learnt, kernel=INPUT_FORMULA),
    Record(Precomputed),
    Record(Independent),
    Record(
        Standardised,
        terms=Many(Option("smooth", "linear"), least=1, most=2),
        logarithms=ArrayOf(("_parameters",)),
        centres=ArrayOf(("_parameters",)),
        offset=ArrayOf(("n_features",)),
        spread=ArrayOf(("n_features",)),
    ),
)
