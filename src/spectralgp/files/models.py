"""Writing and reading of models of every kind as JSON and arrays, by the records of the schema."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
from msgspec import MsgspecError, Struct, convert
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from spectralgp._basics.arrays import few_threads
from spectralgp.files.nouns import CLASSIFIER, FORECASTER, FOUND, REGRESSOR
from spectralgp.files.schema import MAKERS, NOUNS, RECORDS, SHARED, HookedValue, check, ensure
from spectralgp.graphs import Graph
from spectralgp.learning import Outcome
from spectralgp.model.kernels import GraphKernel, Response
from spectralgp.model.kernels.carry import DEGREE
from spectralgp.model.signals import Signals, state_of
from spectralgp.model.spectra import Exact, Spectrum, state_of_spectrum

Json = Any
FILES: dict[str, Any] = {"regressor": REGRESSOR, "forecaster": FORECASTER, "classifier": CLASSIFIER}


def encoded(kind: str, graph: Graph, parts: Mapping[str, Any]) -> tuple[Json, dict[str, NDArray[Any]]]:
    """Return a model as JSON and arrays by name; raise a TypeError for an object that a file cannot hold."""
    writing, file = ModelWriter(), FILES[kind]
    weights = {name: getattr(graph.weights, name) for name in ("data", "indices", "indptr")}
    weights |= {"names": graph.names, "coordinates": graph.coordinates}
    parts = {**parts, "kind": kind, "graph": weights}  # last: what cannot be saved has the name that users know
    state = {name: writing.write(part, name) for name, part in parts.items()}
    spectra = {name: state_of_spectrum(one) for name, one in writing.spectra.items()}
    for table, noun in FOUND.items():
        state[table] = writing.write({name: one for name, one in spectra.items() if isinstance(one, noun)}, table)
    state["shared"] = writing.shared
    try:
        ModelReader(writing.arrays).decoded(state, file)
    except ValueError as error:
        raise TypeError(f"the model must be one that a file can hold to be saved; got: {error}. {SET}") from error
    return state, writing.arrays


class ModelWriter:
    """Writer of a model: arrays by the place where they were first met, tables of shared objects, and spectra."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self.shared: dict[str, list[Json]] = {table: [] for table in SHARED.values()}
        self.spectra: dict[str, Spectrum] = {}  # one for each Laplacian
        self._references: dict[int, tuple[Any, Json]] = {}

    def write(self, value: Any, where: str) -> Json:
        """A value as JSON."""
        if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
            value = value.item()
        match value:
            case None | Exact():
                return None
            case bool() | int():
                return value
            case str():
                return str(value)
            case float():
                return value if math.isfinite(value) else json.dumps(value)  # NaN and Infinity, as words
            case Outcome():
                return value.name
            case list() | tuple():
                return [self.write(one, f"{where}.{place}") for place, one in enumerate(value)]
            case dict():
                return {name: self.write(one, f"{where}.{name}") for name, one in value.items()}
            case np.ndarray():
                return self._once(value, lambda: self._array(value, where))
            case Signals():
                return self._once(value, lambda: self._row(state_of(value), SHARED[Signals]))
            case Spectrum():
                self.spectra[value.laplacian] = value
                return self._fields(value, RECORDS[Spectrum], where)
        if type(value) in SHARED:
            return self._once(value, lambda: self._row(value, SHARED[type(value)]))
        record = RECORDS.get(type(value))
        is_nameless = isinstance(value, Response) and value.name is None
        if record is None or is_nameless:  # not even a derived type, whose code a file cannot hold
            raise _refused(where, value)
        return self._fields(value, record, where)

    def _once(self, value: Any, write: Callable[[], Json]) -> Json:
        """JSON of an object, written when it is first met."""
        if id(value) not in self._references:
            self._references[id(value)] = value, write()  # with the object, whose id is taken as long as it lives
        return self._references[id(value)][1]

    def _array(self, array: NDArray[Any], where: str) -> Json:
        """Keep an array with its type and the order of its axes in memory, on which rounding of sums depends."""
        is_fortran = array.flags.f_contiguous and not array.flags.c_contiguous
        stored = array.T if is_fortran else array
        if array.dtype.kind not in "fiu":
            raise _refused(where, array)
        self.arrays[where] = np.ascontiguousarray(stored, dtype=stored.dtype.newbyteorder("<"))
        return {"array": where, "order": "F" if is_fortran else "C"}

    def _row(self, value: Any, table: str) -> int:
        """Position of an object in a table of shared ones."""
        rows = self.shared[table]
        place = len(rows)
        rows.append(None)  # its place, taken before what it holds takes one
        rows[place] = self._fields(value, RECORDS[type(value)], f"{table}.{place}")
        return place

    def _fields(self, value: Any, record: type[Struct], where: str) -> Json:
        """Fields of an object, with the name of its type if there are several kinds."""
        fields = {}
        for name in record.__struct_fields__:
            field = getattr(value, name)
            is_row = isinstance(value, Kernel) and isinstance(field, np.ndarray)  # short, and in the JSON
            fields[name] = self.write(field.tolist() if is_row else field, f"{where}.{name}")
        tag = record.__struct_config__.tag
        return fields if tag is None else {"type": tag, **fields}


SET = "Set it with set_params before saving."
REFUSED: tuple[tuple[type, str, str], ...] = (
    (
        Response,
        "a graph kernel of this package, or a Response with a name,",
        "A file holds no code, so no function of yours: name it, Response(..., name='bump'), and pass the function "
        "where the model is loaded, load(path, responses={'bump': function}).",
    ),
    (
        GraphKernel,
        "a graph kernel of this package",
        "A file holds no code, so no class of yours: use a kernel such as Polynomial(3), or a Response with a name.",
    ),
    (
        Kernel,
        "a kernel of scikit-learn that files can hold",
        "A file holds no code: build the kernel from those of sklearn.gaussian_process.kernels, or pass its matrix "
        "with input_kernel='precomputed'.",
    ),
    (object, "a number, a text or an object of this package", SET),
)


def _refused(where: str, value: Any) -> TypeError:
    name = where.rpartition("parameters.")[2]  # as users know it, where it is one of theirs
    _, expected, remedy = next(one for one in REFUSED if isinstance(value, one[0]))
    if ".names" in where:
        expected, remedy = "texts, numbers or tuples of them", "Name nodes and columns by texts, as str(...)."
    return TypeError(f"{name} must be {expected} to be saved; got {repr(value)[:100]}. {remedy}")


def decoded(state: Json, reading: ModelReader) -> SimpleNamespace:
    """Return the parts that `encoded` wrote; raise a ValueError if any is missing, wrong or does not agree."""
    found = reading.decoded(state, FILES[state["kind"]])
    parts = SimpleNamespace()
    with few_threads(reading.sizes.get("n_signals", 0)):  # as in `fit`, or sums would be rounded otherwise
        for name in found.__struct_fields__:
            if name != "shared":  # of which each row is made where it is first asked for
                setattr(parts, name, reading.made(getattr(found, name), name))
            if name in FOUND:
                reading.known |= getattr(parts, name)
    return parts


class ModelReader:
    """Reader of a model: arrays and lengths of axes by name, and objects made so far."""

    def __init__(
        self, arrays: Mapping[str, NDArray[Any]], device: str | None = None, responses: Mapping[str, Any] | None = None
    ) -> None:
        self.arrays, self.device, self.responses = arrays, device, responses or {}
        self.sizes = {"n_carried_terms": DEGREE + 1}
        self.graph: Any = None
        self.task: Any = None  # one of the tasks, which all have the same kind of spectrum
        self.known: dict[str, Any] = {}  # eigenpairs and densities of states, by Laplacian
        self._shared: dict[tuple[str, int], Any] = {}
        self._tables: Any = None

    def decoded(self, state: Json, file: Any) -> Any:
        """JSON as records of a kind of file; errors name the place."""
        if isinstance(state, dict):
            state = {"graph": None, **state}  # first, for it says how many nodes there are
        try:
            found: Any = convert(state, file, dec_hook=lambda kind, found: kind(found, self))
        except MsgspecError as error:
            raise ValueError(str(error)) from error
        self._tables = getattr(found, "shared", None)
        return found

    def made(self, found: Any, where: str) -> Any:
        """Object of a record, of a tuple or of a dict of records."""
        if isinstance(found, HookedValue):
            return found.made(self, where)
        if isinstance(found, dict):
            return {name: self.made(one, f"{where}.{name}") for name, one in found.items()}
        if isinstance(found, tuple):
            return tuple(self.made(one, f"{where}.{place}") for place, one in enumerate(found))
        if not isinstance(found, Struct):
            return found
        fields = {name: self.made(getattr(found, name), f"{where}.{name}") for name in found.__struct_fields__}
        noun = NOUNS[type(found)]
        try:
            made = MAKERS[noun](self, **fields) if noun in MAKERS else noun(**fields)
            check(made)
        except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError) as error:
            raise ValueError(f"{error} - at {where}") from error
        return made

    def shared(self, table: str, place: int, where: str) -> Any:
        """Object that several others hold, made once."""
        rows = getattr(self._tables, table)
        ensure(0 <= place < len(rows), where, f"a whole number from 0 to {len(rows) - 1}", place)
        if (table, place) not in self._shared:
            self._shared[table, place] = self.made(rows[place], f"{table}.{place}")
        return self._shared[table, place]

    def settings(self, given: Any) -> Any:
        """Settings of a spectrum on the chosen device; null stands for the exact one."""
        settings = given or Exact()
        return settings if self.device is None else settings.on(self.device)


def objects_in(state: Json) -> Iterator[dict[str, Json]]:
    """Every object in JSON; nested as deep as it may be."""
    waiting = [state]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield part
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
