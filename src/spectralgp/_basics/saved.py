"""Shapes and ranges of fields, in the annotations of the frozen dataclasses that a model file holds.

`files/schema.py` derives from the annotations what files hold and may hold; nothing here checks objects made in Python.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

PACKAGE = __name__.partition(".")[0]


class Axes:
    """Axes of an array by name: one name has one length in all of a file, and any length where it begins with _."""

    def __init__(self, *names: str, allows_nan: bool = False, or_number: bool = False, kinds: str = "") -> None:
        self.names, self.allows_nan, self.or_number = names, allows_nan, or_number
        self.kinds = kinds  # of NumPy's types; that of the annotated type unless given


axes = Axes


@dataclass(frozen=True)
class Range:
    """Range of a number, of each number of an array, or of the length of a tuple."""

    least: float = -math.inf
    most: int | None = None
    is_open: bool = False  # the least value itself is not allowed
    is_extended: bool = False  # infinity is allowed, and NaN unless there is a least value


ge = Range  # from a number on
gt = partial(Range, is_open=True)  # above a number


@dataclass(frozen=True, eq=False)
class StoredAs:
    """Type that a file holds in place of the annotated one; None for a field that no file holds."""

    kind: Any


UNSAVED = StoredAs(None)
Number = Annotated[float, Range(is_extended=True)]
Positive = Annotated[float, gt(0)]
NotNegative = Annotated[float, ge(0)]
Count = Annotated[int, ge(0)]


def kinds_of(base: type) -> Iterator[type[Any]]:
    """Concrete dataclasses of this package among a base class and its subclasses."""
    if "__dataclass_fields__" in vars(base) and not inspect.isabstract(base):
        yield base
    below: list[type] = base.__subclasses__()
    for one in below:
        if one.__module__.partition(".")[0] == PACKAGE:
            yield from kinds_of(one)
