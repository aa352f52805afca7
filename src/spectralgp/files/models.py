"""Fitted models as JSON and arrays, and models made of those again: conditioned anew on the same signals."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from msgspec import MsgspecError, Struct, convert
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from spectralgp._basics.arrays import few_threads
from spectralgp.fields import GraphGP, ObservedBy
from spectralgp.files.schema import (
    FILE,
    MAKERS,
    OLD_PARAMETERS,
    PARAMETERS,
    READ_AS,
    RECORDS,
    RESPONSE,
    SPECTRUM,
    TASK,
    Special,
    are_places,
    require,
)
from spectralgp.graphs import Graph, GraphBase
from spectralgp.kernels import GraphKernel, Response
from spectralgp.kernels.carry import DEGREE
from spectralgp.learning import Fit, Outcome, Stacking, Task, as_solver
from spectralgp.learning.fitting import FittedModels, conditioned
from spectralgp.learning.objective import NOISE_CEILING
from spectralgp.signals import ReadAs, Signals, state_of
from spectralgp.spectra import DensityState, Eigenpairs, Exact, Spectrum

Json = Any
SAME_FUNCTION = 1e-9  # of its values, by which a filter's may differ from those saved: another machine's rounding
# what is kept of what was learnt; the rest is computed again
KEPT = ("raw_fits", "weights", "draws", "tried", "order", "filling", "note")
FOUND = {"eigenpairs": Eigenpairs, "densities": DensityState}  # what is found of graphs to know their spectra


# -------------------------------------------------------------------------------------------------------- writing


def written(
    learnt: FittedModels, fits: tuple[Fit, ...], graph: GraphBase, estimator: dict[str, Any]
) -> tuple[Json, dict[str, NDArray[Any]]]:
    """A fitted model as JSON, and the arrays that it names; a TypeError says what a file cannot hold.

    `fits` are shown to users, in the units of the signals. `estimator` has the rest, by the fields of the schema:
    ``parameters`` and ``fitted``.
    """
    writing = Writing()
    parts = {
        "estimator": estimator,  # first: what cannot be saved is then called by the name that the user knows
        "graph": parts_of(graph),
        "candidates": learnt.candidates,
        "learnt": {name: getattr(learnt, name) for name in KEPT} | {"fits": fits},
    }
    state = {name: writing.write(part, name) for name, part in parts.items()}
    for kind, cls in FOUND.items():
        found = {name: vars(one.found) for name, one in writing.spectra.items() if isinstance(one.found, cls)}
        state[kind] = [{"laplacian": name, **writing.write(one, f"{kind}.{name}")} for name, one in found.items()]
    state["shared"] = writing.shared
    return writing.checked(state, FILE)


def parts_of(graph: GraphBase) -> dict[str, Any]:
    """What a file holds of a graph."""
    graph = graph.require_whole("to be written to a model file")
    weights = {name: getattr(graph.weights, name) for name in ("data", "indices", "indptr")}
    return {**weights, "names": graph.names, "coordinates": graph.coordinates}


def parts_written(parts: Mapping[str, Any], file: Any) -> tuple[Json, dict[str, NDArray[Any]]]:
    """Parts that a kind of file has as JSON, and the arrays that it names; a TypeError says what it cannot hold."""
    writing = Writing()
    return writing.checked({name: writing.write(part, name) for name, part in parts.items()}, file)


class Writing:
    """What is being written: arrays by the place where they were first met, tables of what is shared, and spectra."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self.shared: dict[str, list[Json]] = {"signals": [], "tasks": [], "models": []}
        self.spectra: dict[str, Spectrum] = {}  # one for each Laplacian
        self._references: dict[int, tuple[Any, Json]] = {}

    def checked(self, state: Json, file: Any) -> tuple[Json, dict[str, NDArray[Any]]]:
        """JSON and the arrays that it names, if a kind of file can hold them."""
        try:
            Reading(self.arrays).decoded(state, file)
        except ValueError as error:
            raise TypeError(f"the model must be one that a file can hold to be saved; got: {error}. {SET}") from error
        return state, self.arrays

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
                return self._once(value, lambda: self._row(state_of(value), "signals"))
            case Task():
                return self._once(value, lambda: self._row(value, "tasks"))
            case GraphGP():
                return self._once(value, lambda: self._row(value, "models"))
            case Spectrum():
                self.spectra[value.laplacian] = value
                return self._fields(value, SPECTRUM, where)
        record = RECORDS.get(type(value))
        is_nameless = isinstance(value, Response) and value.name is None
        if record is None or is_nameless:  # not even a derived type, whose code a file cannot hold
            raise _refused(where, value)
        return self._fields(value, record, where)

    def _once(self, value: Any, write: Callable[[], Json]) -> Json:
        """What an object was written as; it is written where it was not yet."""
        if id(value) not in self._references:
            self._references[id(value)] = value, write()  # with the object, whose id is taken as long as it lives
        return self._references[id(value)][1]

    def _array(self, array: NDArray[Any], where: str) -> Json:
        """An array keeps its type and the order of its axes in memory, on which sums of its numbers depend."""
        is_fortran = array.flags.f_contiguous and not array.flags.c_contiguous
        stored = array.T if is_fortran else array
        if array.dtype.kind not in "fiu":
            raise _refused(where, array)
        self.arrays[where] = np.ascontiguousarray(stored, dtype=stored.dtype.newbyteorder("<"))
        return {"array": where, "order": "F" if is_fortran else "C"}

    def _row(self, value: Any, table: str) -> int:
        """Position of an object in the table of those that several others hold."""
        rows = self.shared[table]
        place = len(rows)
        rows.append(None)  # its place, taken before what it holds takes one
        rows[place] = self._fields(value, RECORDS[type(value)], f"{table}.{place}")
        return place

    def _fields(self, value: Any, record: type[Struct], where: str) -> Json:
        """An object by its fields, and by the name of its type where that may be one of several."""
        fields = {}
        for name in record.__struct_fields__:
            if not hasattr(value, name):  # what earlier versions had
                continue
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


# -------------------------------------------------------------------------------------------------------- reading


class Reading:
    """What is being read: arrays by name, lengths of axes by theirs, and what was made so far."""

    def __init__(
        self, arrays: Mapping[str, NDArray[Any]], device: str | None = None, responses: Mapping[str, Any] | None = None
    ) -> None:
        self.arrays, self.device, self.responses = arrays, device, responses or {}
        self.sizes = {"n_carried_terms": DEGREE + 1}
        self.graph: Any = None
        self.task: Any = None  # one of the tasks, which all have the same kind of spectrum
        self.known: dict[str, Any] = {}  # what was found of the graph, by Laplacian
        self._makers = MAKERS | {TASK: self._task, SPECTRUM: self._spectrum, PARAMETERS: self._parameters}
        self._makers |= {READ_AS: lambda **fields: ReadAs(**fields, graph=self.graph), RESPONSE: self._response}
        self._shared: dict[tuple[str, int], Any] = {}
        self._tables: Any = None

    def decoded(self, state: Json, file: Any = FILE) -> Any:
        """JSON as records of a kind of file; what is wrong is named with its place."""
        if isinstance(state, dict):
            state = {"graph": None, **state}  # first, for it says how many nodes there are
        try:
            found: Any = convert(state, file, dec_hook=lambda kind, found: kind(found, self))
        except MsgspecError as error:
            raise ValueError(str(error)) from error
        self._tables = getattr(found, "shared", None)
        return found

    def made(self, found: Any, where: str) -> Any:
        """What a record, or a tuple of them, stands for."""
        if isinstance(found, Special):
            return found.made(self, where)
        if isinstance(found, tuple):
            return tuple(self.made(one, f"{where}.{place}") for place, one in enumerate(found))
        if not isinstance(found, Struct):
            return found
        fields = {name: self.made(getattr(found, name), f"{where}.{name}") for name in found.__struct_fields__}
        try:
            return self._makers[type(found)](**fields)
        except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError) as error:
            raise ValueError(f"{error} - at {where}") from error

    def shared(self, table: str, place: int, where: str) -> Any:
        """What several others hold, made once."""
        rows = getattr(self._tables, table)
        require(0 <= place < len(rows), where, f"a whole number from 0 to {len(rows) - 1}", place)
        if (table, place) not in self._shared:
            self._shared[table, place] = self.made(rows[place], f"{table}.{place}")
        return self._shared[table, place]

    def _task(self, inputs: Any, spectrum: Any, carried: Any, noise_floor: Any, device: Any, **fields: Any) -> Task:
        are_columns = carried is None or are_places(carried.columns, inputs.shape[1])
        require(are_columns, "carried.columns", f"columns of {inputs.shape[1]} inputs", "others")
        settings, device = spectrum or Exact(), self.device or device
        settings = settings if device is None else settings.on(device)
        task = Task(self.graph, inputs=inputs, carried=carried, spectrum=settings, **fields)
        if (own := task.observed_by) is not None:
            values = task.signals.as_observed
            for one in own.likelihood.conditions():
                if not np.all(one.holds(values, own.beside) | np.isnan(values)):
                    raise ValueError(f"{one.argument} must {one.condition}; got others")
            if own.effects is None:
                has_intercept = bool(len(own.columns) and np.all(own.columns[0] == 1.0))
                own = ObservedBy.of(own.likelihood, own.beside, own.columns, values, has_intercept)
                task = replace(task, observed_by=own)
        is_known = noise_floor is None or task.known_noise
        return task if is_known else replace(task, noise_variance=_bounds_of(noise_floor, task.variance))

    def _response(self, name: str, sampled: tuple[float, ...], **fields: Any) -> Response:
        """A filter whose function the user gave for its name, if it is the one that was saved."""
        given = self.responses.get(name)
        require(given is not None, f"responses[{name!r}]", "the function of a filter", "none")
        own = given if isinstance(given, Response) else Response(cast(Any, given))
        made = replace(own, name=name, **fields)
        is_same = np.allclose(made.sampled, sampled, rtol=SAME_FUNCTION, atol=SAME_FUNCTION * np.max(np.abs(sampled)))
        require(is_same, f"responses[{name!r}]", "the function that the model was saved with", "one of other values")
        return made

    def _spectrum(self, laplacian: Any, scaled: bool, n_moments: int | None) -> Spectrum:
        signals, found = self.task.signals, self.known.get(laplacian)
        return self.task.spectrum.restored(self.graph, laplacian, scaled, signals.like, found, n_moments)

    def _parameters(self, graph_kernel: Any, noise_floor: Any, device: Any, **fields: Any) -> dict[str, Any]:
        """Parameters of the estimator, of which those up to version 2 stood for some of today's."""
        task, spectrum = self.task, fields["spectrum"] or Exact()
        if device is not None:
            spectrum = task.spectrum
        elif self.device is not None and not isinstance(spectrum, str):
            spectrum = spectrum.on(self.device)
        if noise_floor is not None and fields["noise_variance"] is None:
            fields["noise_variance"] = _bounds_of(noise_floor, task.variance * task.signals.units.spread**2)
        old, stacking = {name: fields.pop(name) for name in OLD_PARAMETERS}, fields.pop("stacking")
        if old["n_folds"] is not None:
            fields["input_kernel"] = old["kernel"]
            stacking = Stacking(None, old["n_folds"], old["n_draws"], old["n_jobs"])
            if old["max_iterations"] not in (None, 500):
                fields["solver"] = as_solver(fields["solver"], old["max_iterations"])
        kernels = list(graph_kernel) if isinstance(graph_kernel, tuple) else graph_kernel
        if stacking is not None:
            kernels = replace(stacking, kernels=kernels)
        return fields | {"graph_kernel": kernels, "spectrum": spectrum}


def _bounds_of(floor: float, variance: float) -> tuple[float, float]:
    """Bounds of the noise variance, of which files up to version 2 have the lower one as a share of the variance."""
    return min(floor, 0.5 * NOISE_CEILING) * variance, NOISE_CEILING * variance


def response_names(state: Json) -> set[str]:
    """Names of the user's functions in JSON, wherever they stand."""
    found, waiting = set[str](), list[Json]([[state]])
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict) and part.get("type") == "Response" and isinstance(part.get("name"), str):
            found.add(part["name"])
        parts = part.values() if isinstance(part, dict) else part
        waiting += [one for one in parts if isinstance(one, dict | list)]
    return found


def parts_made(state: Json, arrays: Mapping[str, NDArray[Any]], file: Any) -> SimpleNamespace:
    """The parts that `parts_written` wrote; a ValueError says what is wrong with them."""
    reading = Reading(arrays)
    found = reading.decoded(state, file)
    return SimpleNamespace(**{name: reading.made(getattr(found, name), name) for name in found.__struct_fields__})


def made(
    state: Json, arrays: Mapping[str, NDArray[Any]], device: str | None, responses: Mapping[str, Any] | None = None
) -> tuple[FittedModels, tuple[Fit, ...], Graph, SimpleNamespace]:
    """The fitted model that `written` wrote, conditioned on its signals as `fit` does, and the estimator's own fields.

    A ValueError says what is missing, of the wrong kind or size, or does not go together.
    """
    reading = Reading(arrays, device, responses)
    file = reading.decoded(state)
    graph = reading.graph = reading.made(file.graph, "graph")
    reading.known = dict(reading.made(file.eigenpairs, "eigenpairs") + reading.made(file.densities, "densities"))
    candidates = reading.made(file.candidates, "candidates")
    task = reading.task = candidates[0].task
    with few_threads(task.signals.shape[0]):  # as in `fit`, or sums would be rounded otherwise
        parts = reading.made(file.learnt, "learnt")
    counts = {len(candidates), len(parts.raw_fits), len(parts.draws), len(parts.fits), parts.weights.size}
    sets = [parts.weights] if parts.filling is None else [parts.weights, parts.filling]
    are_weights = all(np.all(one >= 0) and np.isclose(one.sum(), 1.0) for one in sets)
    expected = "as many candidates, fits, draws and weights that add up to one"
    require(len(counts) == 1 and are_weights, "learnt", expected, sorted(counts))
    estimator = reading.made(file.estimator, "estimator")
    for candidate, one in zip(candidates, parts.draws, strict=True):
        n_signals = candidate.task.signals.shape[0]
        for points, spectrum in ((model.points, model.spectrum) for model in one.models):
            are_some = points is None or (spectrum.has_eigenvectors and are_places(points, n_signals))
            require(are_some, "points", f"some of {n_signals} signals on an exact spectrum", "others")
    _require_memory(task.signals.shape[0], [model for one in parts.draws for model in one.models])
    draws, posterior = conditioned(candidates, parts.weights, parts.draws, parts.filling)
    kept = parts.tried, parts.order, parts.filling, parts.note
    learnt = FittedModels(candidates, parts.raw_fits, parts.weights, draws, posterior, *kept)
    return learnt, parts.fits, graph, estimator


def _require_memory(n_signals: int, models: Sequence[GraphGP]) -> None:
    """Refuse a model whose covariances between signals are larger than the machine: a short file may describe it."""
    ranks = [n_signals if model.points is None else model.points.size for model in models]
    needed, there = 8 * n_signals * (sum(ranks) + 2 * max(ranks)), _memory()
    expected = f"one for {there / 1e9:.2g} GB of memory"
    require(needed <= there, "the model", expected, f"one that takes {needed / 1e9:.2g} GB")


def _memory() -> float:
    """Bytes of this machine; infinity where nothing says."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return float("inf")
