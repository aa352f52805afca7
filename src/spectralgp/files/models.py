"""Graphs, signals, models and fits in files: the nouns of a fitted model, field by field."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from spectralgp.fields import GraphGP, Shrinkage
from spectralgp.files.arrays import ArrayOf, NumberOr
from spectralgp.files.codecs import (
    ANY_NUMBER,
    FLAG,
    NAME,
    POSITIVE,
    TEXT,
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
    Shared,
    Tagged,
    Writing,
    wrong,
)
from spectralgp.files.kernels import GRAPH_KERNEL, INPUT_KERNEL, LAPLACIAN
from spectralgp.graphs import Graph
from spectralgp.kernels.carry import DEGREE, CarryColumns, CarryFilter
from spectralgp.learning import Candidate, Certificate, Draws, Fit, Outcome, Stage, Task
from spectralgp.learning.task import NOISE_CEILING
from spectralgp.signals import CompleteState, IncompleteState, ReadAs, Signals, state_of
from spectralgp.signals.units import Units
from spectralgp.spectra import Chebyshev, Errors, Exact, Spectrum, SpectrumSettings

MOST_MOMENTS = 2**20
NOT_NEGATIVE = Number(0.0)

# --------------------------------------------------------------------------------------------------------- graph


class _Graph(Codec):
    """The graph: the arrays of its sparse weights, names and coordinates."""

    parts = Record(
        SimpleNamespace,
        data=ArrayOf(("_entries",)),
        indices=ArrayOf(("_entries",), "i"),
        indptr=ArrayOf(("_rows",), "i"),
        names=Maybe(Many(NAME)),
        coordinates=Maybe(ArrayOf(("_nodes", "_dimensions"))),
    )

    def write(self, value: Graph, into: Writing, where: str) -> Json:
        weights, names, coordinates = value.weights, value.names, value.coordinates
        arrays = {"data": weights.data, "indices": weights.indices, "indptr": weights.indptr}
        return self.parts.write(SimpleNamespace(**arrays, names=names, coordinates=coordinates), into, where)

    def read(self, found: Json, source: Reading, where: str) -> Graph:
        parts = self.parts.read(found, source, where)
        n_nodes, n_entries = parts.indptr.size - 1, parts.data.size
        # before SciPy sees them, whose own checks let some through that its compiled code stumbles over
        is_whole = n_nodes >= 1 and parts.indices.size == n_entries and parts.indptr[-1] == n_entries
        if not is_whole or parts.indptr[0] != 0 or np.any(np.diff(parts.indptr) < 0):
            raise wrong(where, "the rows of a sparse matrix", f"{n_entries} weights and {n_nodes} rows")
        if not _are_places(parts.indices, n_nodes):
            raise wrong(where, f"between {n_nodes} nodes", "others")
        weights = csr_array((parts.data, parts.indices, parts.indptr), shape=(n_nodes, n_nodes))
        source.graph, source.sizes["n_nodes"] = Graph(weights, parts.names, parts.coordinates), n_nodes
        return source.graph


GRAPH = _Graph()

# ------------------------------------------------------------------------------------------------------- signals

SCALING = Maybe(Option("global", "node"))
OFFSET = NumberOr(ArrayOf(("n_nodes",)), Number())
UNITS = Record(Units, offset=OFFSET, spread=POSITIVE, relative=Maybe(ArrayOf(("n_nodes",))))
READ_AS = Maybe(Record(ReadAs, center=SCALING, scale=SCALING))

_STATE = Tagged("signals of this package", "Fit the model anew.")
_STATE.add(
    Record(
        CompleteState,
        source=ArrayOf(("_stored", "n_nodes"), "fiu"),
        offset=OFFSET,
        divisor=NumberOr(ArrayOf(("n_nodes",)), POSITIVE),
        units=UNITS,
        gram=ArrayOf(("_and_ones", "_and_ones")),
        rounding=NOT_NEGATIVE,
        rows=ArrayOf(("n_signals",), "i"),
        level=ArrayOf(("_and_ones",)),
        recentres=SCALING,
        read_as=READ_AS,
    ),
    Record(
        IncompleteState,
        values=ArrayOf(("n_signals", "n_nodes"), allows_nan=True),
        units=UNITS,
        is_centred_by_node=FLAG,
        read_as=READ_AS,
        precision=Option("float32", "float64"),
    ),
)


class _Signals(Codec):
    """Signals, by what they are made of."""

    def write(self, value: Signals, into: Writing, where: str) -> Json:
        return _STATE.write(state_of(value), into, where)

    def read(self, found: Json, source: Reading, where: str) -> Signals:
        state = _STATE.read(found, source, where)
        divisors = [state.units.divisor]
        if isinstance(state, CompleteState):
            n_stored = state.source.shape[0]
            shapes = state.gram.shape, state.level.shape
            if shapes != ((n_stored + 1, n_stored + 1), (n_stored + 1,)) or not _are_places(state.rows, n_stored):
                raise wrong(where, f"of {n_stored} signals", f"arrays of shapes {shapes}")
            divisors.append(state.divisor)
        if not all(np.all(divisor > 0) for divisor in divisors):
            raise wrong(where, "divided by positive numbers", "others")
        return state.signals


def _are_places(indices: Any, n_places: int) -> bool:
    return bool(np.all((indices >= 0) & (indices < n_places)))


SIGNALS = Shared("signals", _Signals())

# --------------------------------------------------------------------------------------------------------- tasks


class _Settings(Codec):
    """How spectra are found: null where they are exact, which leaves nothing to set."""

    parts = Record(
        Chebyshev,
        tolerance=POSITIVE,
        n_moments=Integer(3, MOST_MOMENTS),
        max_moments=Integer(3, MOST_MOMENTS),
        n_probes=Either(Option("exact"), Integer(4, MOST_MOMENTS)),
        random_state=Integer(0),
        device=Later(Option("cpu", "cuda")),
    )

    def write(self, value: SpectrumSettings, into: Writing, where: str) -> Json:
        return None if value == Exact() else self.parts.write(value, into, where)

    def read(self, found: Json, source: Reading, where: str) -> SpectrumSettings:
        return Exact() if found is None else self.parts.read(found, source, where)


SETTINGS = _Settings()


class _Noise(Codec):
    """A noise variance, or the bounds of one that is learnt."""

    bounds = Many(POSITIVE, least=2, most=2)

    def write(self, value: Any, into: Writing, where: str) -> Json:
        return (self.bounds if isinstance(value, tuple) else POSITIVE).write(value, into, where)

    def read(self, found: Json, source: Reading, where: str) -> Any:
        return (self.bounds if isinstance(found, list) else POSITIVE).read(found, source, where)


NOISE = Maybe(_Noise())


class _Task(Codec):
    """Data and settings, on the graph of the file."""

    parts = Record(
        SimpleNamespace,
        input_kernel=INPUT_KERNEL,
        inputs=ArrayOf(("n_signals", "n_features")),
        signals=SIGNALS,
        noise_variance=NOISE,
        prior=Maybe(Option("weak")),
        spectrum=SETTINGS,
        carried=Maybe(Record(CarryColumns, columns=ArrayOf(("n_nodes",), "i"), offset=ArrayOf(("n_nodes",)))),
    )

    def write(self, value: Task, into: Writing, where: str) -> Json:
        return self.parts.write(value, into, where)

    def read(self, found: Json, source: Reading, where: str) -> Task:
        found = dict(found) if isinstance(found, dict) else found
        old = {name: found.pop(name, None) for name in ("noise_floor", "device")} if isinstance(found, dict) else {}
        parts = self.parts.read(found, source, where)
        if parts.carried is not None and not _are_places(parts.carried.columns, parts.inputs.shape[1]):
            raise wrong(where, "of columns of the inputs", "others")
        task = Task(source.graph, **vars(parts))
        # up to version 2 the device was beside the spectrum, and the lowest noise a share of the signals' variance
        device = source.device or Maybe(Option("cpu", "cuda")).read(old.get("device"), source, f"{where}.device")
        floor = Maybe(POSITIVE).read(old.get("noise_floor"), source, f"{where}.noise_floor")
        noise = task.noise_variance if floor is None or task.known_noise else bounds_of(floor, task.variance)
        return replace(
            task, spectrum=task.spectrum if device is None else task.spectrum.on(device), noise_variance=noise
        )


def bounds_of(floor: float, variance: float) -> tuple[float, float]:
    """Bounds of the noise variance, of which files up to version 2 have the lower one as a share of the variance."""
    return min(floor, 0.5 * NOISE_CEILING) * variance, NOISE_CEILING * variance


TASK = Shared("tasks", _Task())

# -------------------------------------------------------------------------------------------------------- models


class _Spectrum(Codec):
    """Which spectrum of the graph a model is on; what was found of it is stored once, and not here."""

    parts = Record(SimpleNamespace, laplacian=LAPLACIAN, scaled=FLAG, n_moments=Maybe(Integer(3, MOST_MOMENTS)))

    def write(self, value: Spectrum, into: Writing, where: str) -> Json:
        into.spectra[value.laplacian] = value
        return self.parts.write(value, into, where)

    def read(self, found: Json, source: Reading, where: str) -> Spectrum:
        parts = self.parts.read(found, source, where)
        assert source.restored is not None, "tasks are read first"
        return source.restored(parts.laplacian, parts.scaled, parts.n_moments)


class _Shrinkage(Codec):
    """The covariance between frequencies; files without it have it learnt from their signals when they are read."""

    parts = Record(
        Shrinkage,
        worth=POSITIVE,
        root=ArrayOf(("_root_rows", "n_nodes")),
        profile=ArrayOf(("n_nodes",)),
        n_signals=Integer(1),
        freedom=Number(least=2.0 + 1e-9, is_finite=False),
    )

    def write(self, value: Shrinkage, into: Writing, where: str) -> Json:
        return self.parts.write(value, into, where)

    def read(self, found: Json, source: Reading, where: str) -> Shrinkage:
        shrinkage: Shrinkage = self.parts.read(found, source, where)
        n_rows, n_nodes = shrinkage.root.shape
        if not min(shrinkage.n_signals, n_nodes) <= n_rows <= n_nodes:
            raise wrong(f"{where}.root", f"of {shrinkage.n_signals} signals on {n_nodes} nodes", f"{n_rows} rows")
        if not np.all(shrinkage.profile > 0):
            raise wrong(f"{where}.profile", "positive numbers", "others")
        try:
            root = shrinkage.root_of_mean
        except np.linalg.LinAlgError as error:
            raise wrong(f"{where}.root", "of a covariance", "another matrix") from error
        if not np.all(np.isfinite(root)):
            raise wrong(f"{where}.root", "of a finite covariance", "another matrix")
        return shrinkage


CARRY_SIZES = {"n_carried_terms": DEGREE + 1}
MODEL = Shared(
    "models",
    Record(
        GraphGP,
        spectrum=_Spectrum(),
        graph_kernel=GRAPH_KERNEL,
        input_kernel=INPUT_KERNEL,
        noise_variance=NOT_NEGATIVE,
        carry=Maybe(
            Record(
                CarryFilter,
                chebyshev=ArrayOf(("n_carried_terms",)),
                upper=POSITIVE,
                covariance=Maybe(ArrayOf(("n_carried_terms", "n_carried_terms"))),
            )
        ),
        shrinkage=Later(_Shrinkage()),
    ),
)


class _Outcome(Codec):
    """How learning ended, by name."""

    names = Option(*(outcome.name for outcome in Outcome))

    def write(self, value: Outcome, into: Writing, where: str) -> Json:
        return value.name

    def read(self, found: Json, source: Reading, where: str) -> Outcome:
        return Outcome[self.names.read(found, source, where)]


FIT = Record(
    Fit,
    model=MODEL,
    log_likelihood=ANY_NUMBER,
    log_posterior=ANY_NUMBER,
    certificate=Record(
        Certificate,
        stationarity=ANY_NUMBER,
        feasibility=ANY_NUMBER,
        complementarity=ANY_NUMBER,
        lift=ANY_NUMBER,
        active=Many(TEXT),
        multipliers=Many(ANY_NUMBER),
    ),
    outcome=_Outcome(),
    detail=TEXT,
    stages=Many(Record(Stage, name=TEXT, log_posterior=ANY_NUMBER, n_evaluations=Integer())),
    errors=Record(Errors, truncation=ANY_NUMBER, rounding=ANY_NUMBER, probes=ANY_NUMBER, limit=ANY_NUMBER),
    method=TEXT,
    restarts=Many(ANY_NUMBER),
)
CANDIDATE = Record(Candidate, task=TASK, kernel=GRAPH_KERNEL, shrunk=FLAG, name=TEXT)
DRAWS = Record(Draws, models=Many(MODEL, least=1), n_stand_ins=Integer())
