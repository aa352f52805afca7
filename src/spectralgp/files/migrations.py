"""Migrations of model files of earlier versions, as functions on JSON, which is checked afterwards."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectralgp.files.container import FORMAT_VERSION, Json
from spectralgp.files.models import ModelReader, ModelWriter, objects_in
from spectralgp.files.nouns import FOUND, SIGNALS
from spectralgp.files.schema import SHARED, record
from spectralgp.learning import Sqp
from spectralgp.learning.objective import NOISE_CEILING

Arrays = dict[str, NDArray[Any]]
DEFAULT_ITERATIONS = 500
# up to version 2
OLD_PARAMETERS = ("noise_floor", "device", "kernel", "max_iterations", "n_folds", "n_draws", "n_jobs")
SIGNALS_ALONE = record(SimpleNamespace, graph=None, signals=SIGNALS)
# fields added after version 1, with their defaults, by the kind of file and their places; * is any item of a list
ADDED: dict[str, Json] = {
    "regressor.shared.signals.*.units": {"offset_variance": None, "signal_scales": None},
    "regressor.shared.tasks.*": {"observed_by": None, "typical_variance": None},
    "regressor.shared.tasks.*.observed_by": {"effects": None},  # whose prior follows from the values
    "regressor.shared.models.*": dict.fromkeys(("shrinkage", "points", "likelihood", "scale_freedom"))
    | {"mean_amplitude": 1.0},
    "regressor.candidates.*": {"transformation": None, "learnt_from": None, "is_fallback": False},
    "regressor.learnt": {"order": None, "filling": None, "note": "", "graph_parameters": None},
    "regressor.learnt.draws.*": {"weights": None, "levels": None},
    "regressor.estimator.parameters": {"input_kernel": None, "likelihood": "gaussian", "stacking": None},
    "regressor.estimator.parameters.stacking": {"effort": "full"},
    "regressor.estimator.fitted": dict.fromkeys(("layout", "output", "input_recipe", "labels"))
    | {"effects": [], "date_columns": []},
    "forecaster": {"exogenous_names": None},
    "forecaster.members.*": {"unknown": None},
    "forecaster.backtest": {"coverages": None, "bias": None},
}


def migrated(state: Json, arrays: Arrays, version: int) -> Json:
    """JSON of an older file in the current version; it and the arrays are changed in place."""
    if isinstance(state, dict):
        if version < FORMAT_VERSION:
            state.setdefault("kind", "regressor")  # the only one at first
            for place, fields in ADDED.items():
                for part in at({str(state["kind"]): state}, place):
                    part |= fields | part
        for last, migrate in MIGRATIONS:
            if version <= last:
                migrate(state, arrays)
    return state


def at(part: Json, place: str) -> Iterator[dict[str, Json]]:
    """Parts with fields at a place, whose names are separated by dots."""
    name, _, rest = place.partition(".")
    if not name:
        yield from [part] if isinstance(part, dict) else []
    elif name == "*":
        for one in part if isinstance(part, list) else ():
            yield from at(one, rest)
    else:
        yield from at(_get(part, name), rest)


def _get(part: Json, name: str) -> Json:
    return part.get(name) if isinstance(part, dict) else None


def _replace_solver(state: Json, _: Arrays) -> None:
    """Replace the paper's Algorithm 1, which the package had up to version 8, by the default solver."""
    for found in at(state, "estimator.parameters"):
        if found.get("solver") == "lagrangian" or _get(found.get("solver"), "type") == "Lagrangian":
            found["solver"] = "sqp"
            warnings.warn(
                "the model was fitted by the paper's Algorithm 1, which is no longer in the package: it predicts as "
                "before, and fit() learns by solver='sqp'. For Algorithm 1 set solver=Lagrangian(), after "
                "`from reproduction import Lagrangian` in a clone of the repository.",
                stacklevel=4,
            )


def _rename(state: Json, _: Arrays) -> None:
    """Give solvers, kernels and settings the fields of version 4, and independent signals one name."""
    for part in objects_in(state):
        if part.get("type") == "Unrelated":  # with inputs
            part["type"] = "Independent"
        if part.get("type") == "Sqp":
            part.setdefault("tolerance_nats", part.pop("enough", None))
        if part.get("type") == "WithResidual":
            part.setdefault("floor", 0.0)
        if "n_probes" in part:
            part.setdefault("device", None)


def _settle(state: Json, arrays: Arrays) -> None:
    """Turn parameters up to version 2 into a noise variance, a solver, settings and stacking."""
    for fitted in at(state, "estimator.fitted"):
        for name in ("n_evaluations", "n_stand_ins"):  # which fits and draws say
            fitted.pop(name, None)
    tasks = [*at(state, "shared.tasks.*")]
    for task in tasks:
        floor, device = task.pop("noise_floor", None), task.pop("device", None)
        if device is not None and task["spectrum"] is not None:
            task["spectrum"]["device"] = device
        if floor is not None and not isinstance(task["noise_variance"], float):
            task["noise_variance"] = _bounds_of(floor, _signals(state, arrays, task).variance or 1.0)
    for found in at(state, "estimator.parameters"):
        old = {name: found.pop(name, None) for name in OLD_PARAMETERS}
        if old["device"] is not None:
            found["spectrum"] = tasks[0]["spectrum"]
        if old["noise_floor"] is not None and found["noise_variance"] is None:
            signals = _signals(state, arrays, tasks[0])
            variance = (signals.variance or 1.0) * signals.units.spread**2
            found["noise_variance"] = _bounds_of(old["noise_floor"], variance)
        if old["n_folds"] is not None:
            found["input_kernel"] = old["kernel"]
            found["stacking"] = {name: old[name] for name in ("n_folds", "n_draws", "n_jobs")} | {"effort": "full"}
            is_named = found["solver"] is None or isinstance(found["solver"], str)
            if is_named and old["max_iterations"] not in (None, DEFAULT_ITERATIONS):
                found["solver"] = ModelWriter().write(Sqp(old["max_iterations"]), "solver")


def _share(state: Json, arrays: Arrays) -> None:
    """Give files up to version 7 the current tables, and separate a forecaster's processes from their states."""
    state |= {"shared": {table: [] for table in SHARED.values()} | (_get(state, "shared") or {})}
    state |= {name: {one.pop("laplacian"): one for one in state.get(name, [])} for name in FOUND}
    if state["kind"] != "forecaster":
        return
    members, kept = state.pop("members"), ("time", "log_likelihood", "state", "covariance", "unknown")
    state["shared"]["processes"] = [one.pop("process") for one in members]
    state["states"] = [{name: one.pop(name) for name in kept} | {"process": at} for at, one in enumerate(members)]
    for number, (one, seen) in enumerate(zip(members, state["states"], strict=True)):
        one["process"] = number
        if one["fit"] is not None:
            one["fit"]["process"] = number
            _gather(one["fit"])
        if seen["unknown"] is None:
            arrays[name := f"states.{number}.unknown"] = np.empty((0, *arrays[seen["state"]["array"]].shape))
            seen["unknown"] = {"array": name, "order": "C"}
    state["stack"]["members"] = members
    if state["backtest"] is not None:
        names = state["backtest"].pop("names")
        for score in ("rmse", "crps"):
            rows = arrays[state["backtest"][score]["array"]]
            places = {name: f"backtest.{score}.{name}" for name in names}
            arrays |= dict(zip(places.values(), rows, strict=True))
            state["backtest"][score] = {name: {"array": place, "order": "C"} for name, place in places.items()}


def _gather(fit: Json) -> None:
    """Give a fit of a series its kernel, whose parts stood beside the noise."""
    dynamics = fit.pop("dynamics")
    fit |= {"noise_variance": dynamics.pop("noise_variance"), "log_posterior": fit.pop("value")}
    powers = dynamics.pop("powers")
    kernels = [*powers, *dynamics.pop("rates"), *dynamics.pop("residuals")]
    spectrum = {name: powers[0][name] for name in ("laplacian", "scaled")}
    fit["kernel"] = {"type": "ProcessKernel", "kernels": kernels, **spectrum, **dynamics}


def _signals(state: Json, arrays: Arrays, task: Json) -> Any:
    reading = ModelReader(arrays)
    found = reading.decoded({"signals": state["shared"]["signals"][task["signals"]]}, SIGNALS_ALONE)
    return reading.made(found.signals, "signals")


def _bounds_of(floor: float, variance: float) -> tuple[float, float]:
    """Bounds of the noise variance; files up to version 2 have the lower one as a share of the variance."""
    return min(floor, 0.5 * NOISE_CEILING) * variance, NOISE_CEILING * variance


# each with the last version it is for
MIGRATIONS = ((8, _rename), (8, _replace_solver), (3, _settle), (7, _share))
