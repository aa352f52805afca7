"""Fitted models in files: what was learnt, conditioned anew on the same signals when it is read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectralgp.files.arrays import ArrayOf
from spectralgp.files.codecs import (
    ANY_NUMBER,
    POSITIVE,
    TEXT,
    Codec,
    Json,
    Many,
    Maybe,
    Number,
    Reading,
    Record,
    Writing,
    wrong,
)
from spectralgp.files.kernels import LAPLACIAN
from spectralgp.files.models import CANDIDATE, CARRY_SIZES, DRAWS, FIT, GRAPH
from spectralgp.graphs import Graph, LaplacianKind
from spectralgp.learning import Fit
from spectralgp.learning.fitting import FittedModels, Tried, conditioned
from spectralgp.spectra import DensityState, Eigenpairs, Spectrum

PAIRS = Record(
    Eigenpairs,
    eigenvalues=ArrayOf(("n_nodes",)),
    eigenvectors=ArrayOf(("n_nodes", "n_nodes")),
)
DENSITY = Record(
    DensityState,
    largest_eigenvalue=POSITIVE,
    residual=Number(0.0),
    moments=Maybe(ArrayOf(("_moments", "_probes"))),
)
FOUND = {"eigenpairs": PAIRS, "densities": DENSITY}  # what is found of graphs to know their spectra
LEARNT = Record(
    SimpleNamespace,
    raw_fits=Many(FIT, least=1),
    weights=ArrayOf(("n_members",)),
    draws=Many(DRAWS, least=1),
    fits=Many(FIT, least=1),
    tried=Many(Record(Tried, name=TEXT, score=ANY_NUMBER, weight=Number(0.0))),
)
CANDIDATES = Many(CANDIDATE, least=1)
TRIFLING = 2**28  # bytes that are not worth a question
PARTS = ("graph", "shared", "eigenpairs", "densities", "candidates", "learnt", "estimator")


def written(
    learnt: FittedModels, fits: tuple[Fit, ...], graph: Graph, estimator: Codec, described: Any
) -> tuple[Json, dict[str, NDArray[Any]]]:
    """A fitted model as JSON, and the arrays that it names.

    Parameters
    ----------
    learnt : FittedModels
        What was learnt.
    fits : tuple of Fit
        The same as it is shown, in the units of the signals.
    graph : Graph
        The graph of all of it.
    estimator : Codec
        How what is left of the estimator is written.
    described : object
        That.
    """
    into = Writing()
    # the user's own settings first: what cannot be saved is then called by the name that the user knows
    state = {"estimator": estimator.write(described, into, "estimator"), "graph": GRAPH.write(graph, into, "graph")}
    state["candidates"] = CANDIDATES.write(learnt.candidates, into, "candidates")
    parts = {name: getattr(learnt, name) for name in ("raw_fits", "weights", "draws", "tried")}
    state["learnt"] = LEARNT.write(SimpleNamespace(**parts, fits=fits), into, "learnt")
    found: dict[str, list[Json]] = {name: [] for name in FOUND}
    for laplacian, spectrum in into.spectra.items():
        for name, record in FOUND.items():
            if record.cls is type(spectrum.found):
                written = record.write(spectrum.found, into, f"{name}.{laplacian}")
                found[name].append({"laplacian": laplacian, **written})
    return state | found | {"shared": into.shared}, into.arrays


def made(
    state: Json, arrays: Mapping[str, NDArray[Any]], estimator: Record, device: str | None
) -> tuple[FittedModels, tuple[Fit, ...], Graph, Any]:
    """The fitted model that `written` wrote, conditioned on its signals as `fit` does.

    Raises
    ------
    ValueError
        If anything is missing, of the wrong kind or size, or does not go together.
    """
    if not isinstance(state, dict) or state.keys() != set(PARTS):
        raise wrong("the model", f"an object with {', '.join(PARTS)}", state)
    source = Reading(arrays, state["shared"], device)
    source.sizes |= CARRY_SIZES
    graph = GRAPH.read(state["graph"], source, "graph")
    known = {}
    for name, record in FOUND.items():
        for fields in Many(Record(dict, laplacian=LAPLACIAN, **record.fields)).read(state[name], source, name):
            laplacian = fields.pop("laplacian")
            known[laplacian] = record.cls(**fields)
    candidates = CANDIDATES.read(state["candidates"], source, "candidates")
    task = candidates[0].task

    def spectrum(laplacian: LaplacianKind, scaled: bool, n_moments: int | None) -> Spectrum:
        return task.spectrum.restored(graph, laplacian, scaled, task.signals.like, known.get(laplacian), n_moments)

    source.restored = spectrum
    parts = LEARNT.read(state["learnt"], source, "learnt")
    counts = {len(candidates), len(parts.raw_fits), len(parts.draws), len(parts.fits), parts.weights.size}
    if len(counts) > 1 or np.any(parts.weights < 0) or not np.isclose(parts.weights.sum(), 1.0):
        raise wrong("learnt", "as many candidates, fits, draws and weights that add up to one", sorted(counts))
    described = estimator.read(state["estimator"], source, "estimator")
    _require_memory(task.signals.shape[0], sum(len(one.models) for one in parts.draws))
    draws, posterior = conditioned(candidates, parts.weights, parts.draws)
    learnt = FittedModels(candidates, parts.raw_fits, parts.weights, draws, posterior, parts.tried)
    return learnt, parts.fits, graph, described


def _require_memory(n_signals: int, n_posteriors: int) -> None:
    """Refuse a model whose covariances between signals are larger than the machine: a short file may describe it."""
    needed = 8 * n_signals**2 * (n_posteriors + 2)
    if needed > TRIFLING and needed > (there := _memory()):
        raise wrong("the model", f"one for {there / 1e9:.2g} GB of memory", f"one that takes {needed / 1e9:.2g} GB")


def _memory() -> float:
    """Bytes of this machine; infinity where nothing says."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return float("inf")
