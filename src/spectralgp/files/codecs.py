"""Codecs: how values become JSON and arrays, and how they are checked on the way back."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Json = Any
SET = "Set it with set_params before saving."
NOT_FINITE = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}


class Writing:
    """What is being written: arrays by name, and nouns that several others share, each once.

    Attributes
    ----------
    arrays : dict
        Arrays by the place where they were first met.
    shared : dict
        Nouns that several others share, as JSON, in tables by kind.
    spectra : dict
        One spectrum for each Laplacian that was met.
    """

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self.shared: dict[str, list[Json]] = {}
        self.spectra: dict[str, Any] = {}
        self._references: dict[int, tuple[Any, Json]] = {}

    def once(self, value: Any, write: Callable[[], Json]) -> Json:
        """What an object was written as, written where it was not yet."""
        if id(value) not in self._references:
            self._references[id(value)] = value, write()  # with the object, whose id is taken as long as it lives
        return self._references[id(value)][1]


class Reading:
    """What is being read: arrays by name, and what was made of them.

    Parameters
    ----------
    arrays : dict
        Every array of the file.
    shared : dict
        Nouns that several others share, as they were written.
    device : {"cpu", "cuda"}, optional
        Where models of large graphs are to compute; where they did if not given.

    Attributes
    ----------
    sizes : dict
        Lengths of axes, by their names: one and the same in all of a file.
    graph : Graph
        The graph, once it was read.
    restored : callable
        What gives a spectrum of the graph, once there is enough to make it.
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]], shared: Json, device: str | None = None) -> None:
        self.arrays, self.shared, self.device = arrays, shared, device
        self.sizes: dict[str, int] = {}
        self.graph: Any = None
        self.restored: Callable[..., Any] | None = None
        self.made: dict[tuple[str, int], Any] = {}


class Codec(ABC):
    """A kind of value: how it is written, and read with every check that it needs."""

    @abstractmethod
    def write(self, value: Any, into: Writing, where: str) -> Json:
        """The value as JSON; arrays go beside it."""

    @abstractmethod
    def read(self, found: Json, source: Reading, where: str) -> Any:
        """The value again."""


def wrong(where: str, expected: str, found: Any) -> ValueError:
    """What to raise about JSON that is not as it should be."""
    return ValueError(f"{where} must be {expected}; got {repr(found)[:60]}")


def refused(where: str, expected: str, value: Any, remedy: str) -> TypeError:
    """What to raise about a value that a file cannot hold."""
    name = where.rpartition("parameters.")[2]  # as users know it, where it is one of theirs
    return TypeError(f"{name} must be {expected} to be saved; got {repr(value)[:100]}. {remedy}")


@dataclass(frozen=True, eq=False)
class Number(Codec):
    """A real number.

    Parameters
    ----------
    least : float, optional
        Smallest value allowed.
    is_finite : bool, default=True
        Whether infinity and NaN are refused.
    """

    least: float = -math.inf
    is_finite: bool = True

    def write(self, value: Any, into: Writing, where: str) -> Json:
        if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
            raise refused(where, "a number", value, SET)
        number = float(value)
        return number if math.isfinite(number) else next(w for w, v in NOT_FINITE.items() if repr(v) == repr(number))

    def read(self, found: Json, source: Reading, where: str) -> float:
        number = NOT_FINITE.get(found, found) if isinstance(found, str) and not self.is_finite else found
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise wrong(where, "a number", found)
        try:
            number = float(number)
        except OverflowError as error:
            raise wrong(where, "a number", found) from error
        if (self.is_finite and not math.isfinite(number)) or number < self.least:
            raise wrong(where, f"a number of at least {self.least:g}", found)
        return number


POSITIVE = Number(least=5e-324)
REAL = Number()
ANY_NUMBER = Number(is_finite=False)


@dataclass(frozen=True, eq=False)
class Integer(Codec):
    """A whole number from `least` to `most`."""

    least: int = 0
    most: int = 2**53

    def write(self, value: Any, into: Writing, where: str) -> Json:
        if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
            raise refused(where, "a whole number", value, SET)
        return int(value)

    def read(self, found: Json, source: Reading, where: str) -> int:
        if isinstance(found, bool) or not isinstance(found, int) or not self.least <= found <= self.most:
            raise wrong(where, f"a whole number from {self.least} to {self.most}", found)
        return found


class _Flag(Codec):
    """True or false."""

    def write(self, value: Any, into: Writing, where: str) -> Json:
        if not isinstance(value, bool | np.bool_):
            raise refused(where, "True or False", value, SET)
        return bool(value)

    def read(self, found: Json, source: Reading, where: str) -> bool:
        if not isinstance(found, bool):
            raise wrong(where, "true or false", found)
        return found


class _Text(Codec):
    """A text."""

    def write(self, value: Any, into: Writing, where: str) -> Json:
        if not isinstance(value, str):
            raise refused(where, "a text", value, SET)
        return str(value)

    def read(self, found: Json, source: Reading, where: str) -> str:
        if not isinstance(found, str):
            raise wrong(where, "a text", found)
        return found


FLAG, TEXT = _Flag(), _Text()


class Option(Codec):
    """One of a few words."""

    def __init__(self, *words: str) -> None:
        self.words = words

    def write(self, value: Any, into: Writing, where: str) -> Json:
        if not isinstance(value, str) or value not in self.words:
            raise refused(where, f"one of {', '.join(map(repr, self.words))}", value, SET)
        return str(value)

    def read(self, found: Json, source: Reading, where: str) -> str:
        if not isinstance(found, str) or found not in self.words:
            raise wrong(where, f"one of {', '.join(map(repr, self.words))}", found)
        return found


@dataclass(frozen=True, eq=False)
class Maybe(Codec):
    """A value of some kind, or None."""

    codec: Codec

    def write(self, value: Any, into: Writing, where: str) -> Json:
        return None if value is None else self.codec.write(value, into, where)

    def read(self, found: Json, source: Reading, where: str) -> Any:
        return None if found is None else self.codec.read(found, source, where)


@dataclass(frozen=True, eq=False)
class Later(Maybe):
    """A value, in a field that was added to a format version: files without it, or with null, have the default."""

    default: Any = None

    def read(self, found: Json, source: Reading, where: str) -> Any:
        return self.default if found is None else self.codec.read(found, source, where)


@dataclass(frozen=True, eq=False)
class Either(Codec):
    """A word, or else a value of another kind."""

    words: Option
    codec: Codec

    def write(self, value: Any, into: Writing, where: str) -> Json:
        return (self.words if isinstance(value, str) else self.codec).write(value, into, where)

    def read(self, found: Json, source: Reading, where: str) -> Any:
        return (self.words if isinstance(found, str) else self.codec).read(found, source, where)


@dataclass(frozen=True, eq=False)
class Many(Codec):
    """Values of one kind in a row, as a tuple."""

    codec: Codec
    least: int = 0
    most: int | None = None

    def write(self, value: Any, into: Writing, where: str) -> Json:
        if isinstance(value, str) or not hasattr(value, "__iter__"):
            raise refused(where, "a sequence", value, SET)
        return [self.codec.write(one, into, f"{where}.{number}") for number, one in enumerate(value)]

    def read(self, found: Json, source: Reading, where: str) -> tuple[Any, ...]:
        if not isinstance(found, list) or len(found) < self.least or (self.most is not None and len(found) > self.most):
            raise wrong(where, f"a list of at least {self.least}", found)
        return tuple(self.codec.read(one, source, f"{where}.{number}") for number, one in enumerate(found))


class Record(Codec):
    """An object by the names of its fields, all of them and no others.

    Parameters
    ----------
    cls : type
        What is made of the fields, by their names.
    fields : Codec
        The kind of each.
    """

    def __init__(self, cls: Callable[..., Any], **fields: Codec) -> None:
        self.cls, self.fields = cls, fields

    def write(self, value: Any, into: Writing, where: str) -> Json:
        return {name: codec.write(getattr(value, name), into, f"{where}.{name}") for name, codec in self.fields.items()}

    def read(self, found: Json, source: Reading, where: str) -> Any:
        return self.cls(**self.read_fields(found, source, where))

    def read_fields(self, found: Json, source: Reading, where: str) -> dict[str, Any]:
        """The fields by name."""
        later = {name: None for name, codec in self.fields.items() if isinstance(codec, Later)}
        if not isinstance(found, dict) or (later | found).keys() != self.fields.keys():
            raise wrong(where, f"an object with {', '.join(self.fields) or 'nothing'}", found)
        found = later | found
        return {name: codec.read(found[name], source, f"{where}.{name}") for name, codec in self.fields.items()}


class Tagged(Codec):
    """An object of one of the types on a list, with the name of its type.

    The list is all that a file can ask for: a name that is not on it is refused, and no other name is looked up.

    Parameters
    ----------
    expected : str
        What is on the list, in words.
    remedy : str
        What to do about what is not.
    """

    def __init__(self, expected: str, remedy: str) -> None:
        self.expected, self.remedy = expected, remedy
        self.kinds: dict[str, Record] = {}

    def add(self, *records: Record) -> None:
        """Put types on the list."""
        self.kinds |= {record.cls.__name__: record for record in records}

    def write(self, value: Any, into: Writing, where: str) -> Json:
        record = self.kinds.get(type(value).__name__)
        if record is None or record.cls is not type(value):  # not even a derived type, whose code a file cannot hold
            raise refused(where, self.expected, value, self.remedy)
        return {"type": type(value).__name__, **record.write(value, into, where)}

    def read(self, found: Json, source: Reading, where: str) -> Any:
        name = found.get("type") if isinstance(found, dict) else None
        if not isinstance(name, str) or name not in self.kinds:
            raise wrong(where, f"one of {', '.join(self.kinds)}", found if name is None else name)
        return self.kinds[name].read({key: one for key, one in found.items() if key != "type"}, source, where)


@dataclass(frozen=True, eq=False)
class Shared(Codec):
    """An object that several others hold: it is written once, and is one object again."""

    table: str
    codec: Codec

    def write(self, value: Any, into: Writing, where: str) -> Json:

        def append() -> int:
            table = into.shared.setdefault(self.table, [])
            number = len(table)
            table.append(None)  # its place, taken before what it holds takes one
            table[number] = self.codec.write(value, into, f"{self.table}.{number}")
            return number

        return into.once(value, append)

    def read(self, found: Json, source: Reading, where: str) -> Any:
        table = source.shared.get(self.table) if isinstance(source.shared, dict) else None
        if not isinstance(table, list):
            raise wrong(f"shared.{self.table}", "a list", table)
        number = Integer(0, len(table) - 1).read(found, source, where)
        if (self.table, number) not in source.made:
            source.made[self.table, number] = self.codec.read(table[number], source, f"{self.table}.{number}")
        return source.made[self.table, number]


class Name(Codec):
    """The name of a node or a column: a text, a number, or a tuple of those."""

    def write(self, value: Any, into: Writing, where: str) -> Json:
        if isinstance(value, tuple):
            return [self.write(one, into, where) for one in value]
        if isinstance(value, np.bool_ | np.integer | np.floating):
            value = value.item()
        if isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
            return str(value) if isinstance(value, str) else value
        raise refused(where, "texts, numbers or tuples of them", value, "Name nodes and columns by texts, as str(...).")

    def read(self, found: Json, source: Reading, where: str) -> Any:
        if isinstance(found, list):
            return tuple(self.read(one, source, where) for one in found)
        if isinstance(found, str | int) or (isinstance(found, float) and math.isfinite(found)):
            return found
        raise wrong(where, "a name", found)


NAME = Name()
