"""Records of model files, derived from the annotations of dataclasses.

A file can name only types that the annotations of its outermost record lead to. An abstract class stands for its
subclasses in this package.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from enum import EnumType
from functools import singledispatch
from types import NoneType, UnionType
from typing import Annotated, Any, ForwardRef, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from msgspec import Meta, MsgspecError, Struct, convert, defstruct

from spectralgp._basics.saved import UNSAVED, Axes, Range, StoredAs, kinds_of

# A type of msgspec, made while the program runs. No union may have both a number with limits and a tuple of fixed
# length: msgspec 0.22 corrupts memory when it frees such a type.
Kind = Any
Maker = Callable[..., Any]
LARGEST_INTEGER = 2**53  # of those without a limit of their own: what a double holds
KINDS: dict[Any, Kind] = {}  # of types that are not stored by their annotations, and of abstract classes
SHARED: dict[type, str] = {}  # types of shared objects, with the table of the file that holds each once
RECORDS: dict[Any, type[Struct]] = {}  # by type
NOUNS: dict[type[Struct], Maker] = {}  # types by their records
STORED_NAMES = {  # of types that have been renamed since files name them
    "CalendarClock": "Calendar",
    "IndependentSignals": "Independent",
    "KernelSum": "Sum",
    "LearntInputKernel": "Learnt",
    "MaternComponent": "Matern",
    "NumericClock": "Numbers",
    "OscillatorComponent": "Oscillator",
    "PrecomputedCovariance": "Precomputed",
    "StandardisedKernel": "Standardised",
}
MAKERS: dict[Maker, Maker] = {}  # of types that take more than their fields


def maker(noun: type) -> Callable[[Maker], Maker]:
    """Register the function that makes an object of a type from the reader and the fields."""
    return lambda make: MAKERS.setdefault(noun, make)


@singledispatch
def check(made: object) -> None:
    """Refuse an object whose fields do not agree, by the function that is registered for its type."""


def ensure(condition: Any, name: str, expected: str, found: object) -> None:
    """Raise a ValueError with a name, its expected and its actual value, unless a condition holds."""
    if not condition:
        raise ValueError(f"{name} must be {expected}; got {found}")


def ensure_shape(name: str, array: Any, shape: tuple[int, ...]) -> None:
    """Raise a ValueError unless an array has a shape."""
    ensure(array.shape == shape, name, f"of shape {shape}", array.shape)


def are_places(indices: Any, n_places: int) -> bool:
    """Return whether all indices are within a number of places."""
    return bool(np.all((indices >= 0) & (indices < n_places)))


def are_shares(weights: Any) -> bool:
    """Return whether numbers are not negative and add up to one."""
    return bool(np.all(weights >= 0) and np.isclose(weights.sum(), 1.0))


# --------------------------------------------------------------------------------------------------------- values


class HookedValue:
    """A value of a type that JSON lacks, made by the hook of msgspec while it reads."""

    _read: Callable[[Any, Any], Any]  # of what was found and the reading that it is part of
    _table: str | None  # of the file, of which the value is a position

    def __init__(self, found: Any, reading: Any) -> None:
        try:
            self.value = self._read(found, reading)
        except MsgspecError as error:
            raise ValueError(str(error)) from error  # to which msgspec adds the place

    def made(self, reading: Any, where: str) -> Any:
        """Value in the model."""
        return self.value if self._table is None else reading.shared(self._table, self.value, where)


def special(read: Callable[[Any, Any], Any], table: str | None = None) -> Kind:
    """Type of hooked values that a function reads: of positions in a table of shared objects if it is given."""
    return type(read.__name__, (HookedValue,), {"_read": staticmethod(read), "_table": table})


def _is_below(value: Any, limit: Range) -> bool:
    return bool(np.any(value <= limit.least if limit.is_open else value < limit.least))


ARRAY = defstruct("ARRAY", [("array", str), ("order", Literal["C", "F"])], forbid_unknown_fields=True)

# -------------------------------------------------------------------------------------------------------- records


def record(noun: Maker, *, tagged: bool = False, **fields: Kind) -> Kind:
    """Record of a type by the annotations of its fields; no others are allowed."""
    listed = [(name, kind_of(hint)) for name, hint in fields.items()]
    name = STORED_NAMES.get(noun.__name__, noun.__name__)
    tag: dict[str, Any] = {"tag": name, "tag_field": "type"} if tagged else {}
    struct = defstruct(noun.__name__, listed, module=__name__, kw_only=True, forbid_unknown_fields=True, **tag)
    NOUNS[struct], RECORDS[noun] = noun, struct
    return struct


def several(kind: Kind, least: int = 0) -> Kind:
    """Type of tuples of one kind of value."""
    return Annotated[tuple[kind, ...], Range(least)]


def hints_of(noun: type) -> dict[str, Any]:
    """Annotations of the fields of a dataclass that files hold."""
    hints = get_type_hints(noun, include_extras=True)
    public = {one.name: hints[one.name] for one in fields(noun) if one.init and not one.name.startswith("_")}
    return {name: hint for name, hint in public.items() if UNSAVED not in get_args(hint)}


def derived(noun: type, *, tagged: bool = False) -> type[Struct]:
    """Record of a dataclass, made once."""
    if noun not in RECORDS:
        record(noun, tagged=tagged, **hints_of(noun))
    return RECORDS[noun]


def either(base: type, records: Iterable[type[Struct]]) -> Kind:
    """Union of records for a base class, told apart by the names of their types; records may hold others of it."""
    name = f"Any{base.__name__}"
    KINDS[base] = ForwardRef(name)  # which msgspec looks up among the names of this module
    globals()[name] = Union[*records]
    return KINDS[base]


def kind_of(hint: Any) -> Kind:
    """Type of a value in files, by its annotation."""
    base, *limits = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    said: dict[type, Any] = {type(one): one for one in limits}
    if StoredAs in said:
        return kind_of(said[StoredAs].kind)
    if base in KINDS:
        return KINDS[base]
    if base in SHARED:
        return special(lambda found, _: convert(found, int), SHARED[base])
    limit = said.get(Range, Range())
    if Axes in said:
        return _array_of(base, said[Axes], limit)
    origin, parts = get_origin(base), get_args(base)
    if origin in (Union, UnionType):
        return Union[*map(kind_of, parts)]
    if origin in (tuple, dict):
        items = origin.__class_getitem__(tuple(one if one is Ellipsis else kind_of(one) for one in parts))
        return Annotated[items, Meta(min_length=int(max(limit.least, 0)), max_length=limit.most)] if limits else items
    if base in (int, float) and limits:
        return _number_of(base, limit)
    if inspect.isabstract(base):
        return either(base, (derived(one, tagged=True) for one in kinds_of(base)))
    if isinstance(base, EnumType):
        return special(lambda found, _: base[convert(found, Literal[*base.__members__])])
    if isinstance(base, type) and is_dataclass(base):
        return derived(base)
    return NoneType if base is None else base


def _scalar_of(array_type: Any) -> type[np.generic]:
    """Scalar type of an array's annotation, wherever a version of NumPy has it among the arguments of `NDArray`."""
    while not isinstance(array_type, type) or not issubclass(array_type, np.generic):
        array_type = get_args(array_type)[-1]
    return array_type


def _array_of(base: Any, axes: Axes, limit: Range) -> Kind:
    """Type of arrays, stored beside the JSON; a named axis has one length in a file, unless the name begins with _."""
    kinds = axes.kinds or ("f" if base is Any else np.dtype(_scalar_of(base)).kind)

    def array(found: Any, reading: Any) -> Any:
        is_number = axes.or_number and not isinstance(found, dict)
        value = convert(found, float) if is_number else _stored_array(convert(found, ARRAY), reading, axes, kinds)
        if _is_below(value, limit):
            least = "positive" if limit.is_open else f"at least {limit.least:g}"
            raise ValueError(f"must be {least}; got {np.min(value):g}")
        return value

    return special(array)


def _stored_array(reference: Any, reading: Any, axes: Axes, kinds: str) -> Any:
    if reference.array not in reading.arrays:
        raise ValueError(f"must be an array of this file; got {reference.array[:60]!r}")
    stored = reading.arrays[reference.array]
    array = stored.T if reference.order == "F" else stored
    if array.dtype.kind not in kinds or array.ndim != len(axes.names):
        raise ValueError(f"must be numbers with {len(axes.names)} axes; got {array.dtype} {array.shape}")
    for axis, length in zip(axes.names, array.shape, strict=True):
        name, _, more = axis.partition(" + ")
        known = reading.sizes.setdefault(name, length - int(more or 0)) + int(more or 0)
        if not axis.startswith("_") and length != known:
            raise ValueError(f"must have {axis} = {known}; got {length}")
    if array.dtype.kind == "f" and (np.isinf(array).any() or (not axes.allows_nan and np.isnan(array).any())):
        raise ValueError("must be finite; got NaN or infinity")
    return array


def _number_of(base: type, limit: Range) -> Kind:
    def number(found: Any, _: Any) -> float:
        value = float(convert(found, float | Literal["Infinity", "-Infinity", "NaN"]))
        if _is_below(value, limit) or (math.isnan(value) and limit.least > -math.inf):
            raise ValueError(f"must be at least {limit.least:g}; got {found!r}")
        return value

    if limit.is_extended:
        return special(number)
    if base is int:
        return Annotated[int, Meta(ge=limit.least, le=LARGEST_INTEGER if limit.most is None else limit.most)]
    return Annotated[float, Meta(gt=limit.least) if limit.is_open else Meta(ge=limit.least)]
