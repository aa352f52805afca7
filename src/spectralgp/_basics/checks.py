"""Validation of arguments: every public function checks its own here, once.

Messages have one form: ``<argument> must <condition>; got <value or shape>. <remedy>``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Integers = NDArray[np.signedinteger[Any]]
Mask = NDArray[np.bool_]

FILL = "Remove or fill in such values first."


def as_real_array(
    value: Any,
    name: str,
    axes: Sequence[str] | None,
    *,
    sizes: Mapping[str, int] | None = None,
    allow_nan: bool = False,
    remedy: str = "",
    missing: str = FILL,
) -> Array:
    """Array of finite real numbers with the stated axes, as float64, copied only to change its type.

    `axes` are the names of the axes, such as ``("n_signals", "n_nodes")``, and `sizes` their known lengths; None allows
    any shape. NaN, which stands for a missing value, may be allowed; infinity never is. Masked entries become NaN.
    `remedy` is the advice for a wrong shape, `missing` for values that are not finite.
    """
    value = without_mask(value, name, missing, allow_nan=allow_nan)
    try:
        array = np.asarray(value)
        if array.dtype.kind == "O":
            array = numbers_of(array)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{name} must be an array of real numbers; got {type(value).__name__} ({error}). "
            "Pass numbers in rows of equal length."
        ) from error
    if array.dtype.kind not in "biuf":  # which NumPy would convert in silence
        raise TypeError(
            f"{name} must be an array of real numbers; got dtype {array.dtype}. "
            + ("Pass the real part or the modulus." if array.dtype.kind == "c" else "Convert it to numbers first.")
        )
    array = array.astype(np.float64, copy=False)
    sizes = sizes or {}
    if axes is not None and (
        array.ndim != len(axes)
        or any(length != sizes.get(axis, length) for axis, length in zip(axes, array.shape, strict=True))
    ):
        shape = f"({axes[0]},)" if len(axes) == 1 else f"({', '.join(axes)})"
        known = " and ".join(f"{axis} = {length}" for axis, length in sizes.items())
        condition = f"{shape} with {known}" if known else shape
        raise ValueError(f"{name} must have shape {condition}; got {array.shape}. {remedy}".rstrip())
    refused = np.isinf(array) if allow_nan else ~np.isfinite(array)
    if refused.any():
        first = tuple(int(index) for index in np.argwhere(refused)[0])
        raise ValueError(
            f"{name} must be finite{' or NaN' if allow_nan else ''}; got {array[first]} at index {first} "
            f"({int(refused.sum())} such in all). {missing}"
        )
    return array


def numbers_of(objects: NDArray[Any]) -> NDArray[Any]:
    """Real numbers of an array or of objects; strings are refused, and pandas.NA is NaN."""
    if objects.dtype.kind not in "biufO":
        raise TypeError(f"dtype {objects.dtype}")
    if objects.dtype.kind != "O":
        return objects
    if any(isinstance(item, str | bytes) for item in objects.flat):
        raise TypeError("some are strings")
    numbers = [np.nan if type(item).__name__ == "NAType" else item for item in objects.flat]
    return np.array(numbers, dtype=np.float64).reshape(objects.shape)


def without_mask(value: Any, name: str, missing: str = FILL, *, allow_nan: bool = False) -> Any:
    """Remove the mask of a masked array, refusing masked entries or making them NaN; return others unchanged."""
    if isinstance(value, list | tuple) and any(isinstance(item, np.ma.MaskedArray) for item in value):
        value = np.ma.array(list(map(np.ma.getdata, value)), mask=list(map(np.ma.getmaskarray, value)))
    if not isinstance(value, np.ma.MaskedArray):
        return value
    masked = np.ma.getmaskarray(value)
    if not masked.any():
        return value.data
    if not allow_nan:
        first = tuple(int(index) for index in np.argwhere(masked)[0])
        raise ValueError(
            f"{name} must have no masked entries; got {int(masked.sum())}, the first at index {first}. {missing}"
        )
    return np.where(masked, np.nan, value.data)


def as_signals(signals: Any, n_nodes: int, *, name: str = "signals", allow_nan: bool = False) -> Array:
    """One signal, shape (n_nodes,), or several in rows, shape (n_signals, n_nodes), as float64."""
    array = as_real_array(signals, name, None, allow_nan=allow_nan)
    axes = ("n_nodes",) if array.ndim == 1 else ("n_signals", "n_nodes")
    transposed = array.ndim == 2 and array.shape[0] == n_nodes != array.shape[1]
    remedy = f"Rows are signals{': did you pass the transpose?' if transposed else ', columns the nodes of the graph.'}"
    return as_real_array(array, name, axes, sizes={"n_nodes": n_nodes}, allow_nan=allow_nan, remedy=remedy)


def as_training_signals(signals: Any, n_signals: int, n_nodes: int) -> Array:
    """Signals in rows, one per input, as float64 of shape (n_signals, n_nodes); NaN is a missing value."""
    sizes = {"n_signals": n_signals, "n_nodes": n_nodes}
    remedy = "Rows are signals, one for each input: did you pass the transpose?"
    return as_real_array(signals, "signals", ("n_signals", "n_nodes"), sizes=sizes, allow_nan=True, remedy=remedy)


def as_positive(value: Any, name: str) -> float:
    """Check a finite number above zero, as float."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a finite number above 0; got {value!r}. Pass one number.")
    number = float(value)
    if not np.isfinite(number) or number <= 0:
        raise ValueError(f"{name} must be a finite number above 0; got {value!r}. Pass a positive number.")
    return number


def as_integer(value: Any, name: str, minimum: int, maximum: int | None = None) -> int:
    """Check an integer from `minimum` to `maximum`, both included, as int."""
    condition = f"an integer of at least {minimum}" + ("" if maximum is None else f" and at most {maximum}")
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be {condition}; got {value!r}. Pass a whole number.")
    number = int(value)
    if number < minimum or (maximum is not None and number > maximum):
        direction = f"at least {minimum}" if number < minimum else f"at most {maximum}"
        raise ValueError(f"{name} must be {condition}; got {number}. Pass {direction}.")
    return number


def check_derivative(claim: str, function: Callable[[Any], Sequence[Array]], at: Any, places: Sequence[str]) -> None:
    """Refuse a function of values and derivatives, one per place, that central differences contradict."""
    step = 1e-5 * np.maximum(np.abs(at), 1.0)
    given, up, down = function(at)[1], function(at + step)[0], function(at - step)[0]
    for got, high, low, width, place in zip(*np.broadcast_arrays(given, up, down, 2 * step, places), strict=True):
        right = (high - low) / width
        if not abs(got - right) <= 1e-4 * max(abs(got), abs(right)) + 1e-8 * max(abs(high), abs(low)):
            raise ValueError(
                f"{claim}; got {got:.6g} where differences give {right:.6g}, at {place}. Correct the formula."
            )


def as_option(value: Any, name: str, options: Sequence[str]) -> str:
    """One of the named options."""
    if not isinstance(value, str) or value not in options:
        listed = ", ".join(repr(option) for option in options)
        raise ValueError(f"{name} must be one of {listed}; got {value!r}. Pass one of these names.")
    return value
