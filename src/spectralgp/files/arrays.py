"""Arrays in files, beside the JSON that names them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectralgp.files.codecs import TEXT, Codec, Json, Number, Option, Reading, Record, Writing, refused, wrong


@dataclass(frozen=True, eq=False)
class ArrayOf(Codec):
    """An array, stored beside the JSON; it keeps its type and the order of its axes in memory.

    The order is kept because sums of floating-point numbers depend on it.

    Parameters
    ----------
    axes : tuple of str
        Names of the axes; an axis of one name has one length in all of a file. Names that start with an underscore
        are of any length.
    kinds : str, default="f"
        Kinds of numbers, by NumPy's letters.
    allows_nan : bool, default=False
        Whether NaN is let through.
    is_fixed : bool, default=False
        Whether the array is made read-only.
    """

    axes: tuple[str, ...]
    kinds: str = "f"
    allows_nan: bool = False
    is_fixed: bool = False

    def write(self, value: Any, into: Writing, where: str) -> Json:

        def keep() -> Json:
            array = np.asarray(value)
            if array.dtype.kind not in self.kinds or array.ndim != len(self.axes):
                raise refused(where, f"an array with {len(self.axes)} axes of numbers", value, "Fit the model anew.")
            is_fortran = array.ndim > 1 and array.flags.f_contiguous and not array.flags.c_contiguous
            stored = array.T if is_fortran else array
            into.arrays[where] = np.ascontiguousarray(stored, dtype=stored.dtype.newbyteorder("<")).reshape(
                stored.shape
            )
            return {"array": where, "order": "F" if is_fortran else "C"}

        return into.once(value, keep)

    def read(self, found: Json, source: Reading, where: str) -> NDArray[Any]:
        reference = Record(dict, array=TEXT, order=Option("C", "F")).read(found, source, where)
        name = reference["array"]
        if name not in source.arrays:
            raise wrong(where, "an array of this file", name)
        array = source.arrays[name].T if reference["order"] == "F" else source.arrays[name]
        if array.dtype.kind not in self.kinds or array.ndim != len(self.axes):
            raise wrong(where, f"an array with {len(self.axes)} axes of numbers", f"{array.dtype} {array.shape}")
        for axis, length in zip(self.axes, array.shape, strict=True):
            if not axis.startswith("_") and source.sizes.setdefault(axis, length) != length:
                raise wrong(where, f"of the shape ({', '.join(self.axes)}) with {axis} = {source.sizes[axis]}", length)
        if array.dtype.kind == "f" and not _is_valid(array, self.allows_nan):
            raise wrong(where, "finite", "NaN or infinity")
        if self.is_fixed:
            array.flags.writeable = False
        return array


def _is_valid(array: NDArray[Any], allows_nan: bool) -> bool:
    return bool(not np.isinf(array).any() if allows_nan else np.isfinite(array).all())


@dataclass(frozen=True, eq=False)
class NumberOr(Codec):
    """One number for all, or an array with one each."""

    array: ArrayOf
    number: Number

    def write(self, value: Any, into: Writing, where: str) -> Json:
        return (self.number if np.ndim(value) == 0 else self.array).write(value, into, where)

    def read(self, found: Json, source: Reading, where: str) -> Any:
        return (self.array if isinstance(found, dict) else self.number).read(found, source, where)
