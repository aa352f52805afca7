"""Fitted classifiers as JSON and arrays: labels and their sites, from which all else is computed again."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spectralgp.fields.classes import ClassSites
from spectralgp.files.models import parts_made
from spectralgp.files.schema import (
    ANY_INTEGER,
    COUNT,
    GRAPH,
    NAME,
    NODES,
    SETTINGS,
    TINY,
    InputFormula,
    array,
    record,
    require,
    several,
)
from spectralgp.spectra import Exact

Json = Any
SITES = record(ClassSites, linear=array("n_labels", "n_classes"), curvature=array("n_labels", "n_classes", least=TINY))
PARAMETERS = record(
    type("ClassifierParameters", (), {}),
    dict,
    graph=bool,
    input_kernel=InputFormula | None,
    spectrum=Literal["auto", "exact", "chebyshev"] | SETTINGS | None,
    verbose=ANY_INTEGER,
)
FILE = record(
    type("ClassifierFile", (), {}),
    SimpleNamespace,
    kind=Literal["classifier"],
    graph=GRAPH,
    parameters=PARAMETERS,
    classes=several(NAME, least=2),
    labels=array("n_signals", "n_nodes", kinds="i"),  # places among the classes, -1 where there is none
    is_flat=bool,
    order=NODES | None,
    inputs=array("_rows", "_features") | None,
    feature_names=several(str) | None,
    date_columns=several(COUNT),
    sites=several(SITES, least=1),
    converged=several(bool, least=1),
)


def classes_made(state: Json, arrays: Mapping[str, NDArray[Any]]) -> SimpleNamespace:
    """The fields of a file; a ValueError says what is wrong with them."""
    made = parts_made(state, arrays, FILE)
    (n_signals, n_nodes), n_classes = made.labels.shape, len(made.classes)
    known = made.labels[made.labels >= 0]
    require(np.array_equal(np.unique(known), np.arange(n_classes)), "labels", f"of {n_classes} classes", "others")
    require(np.all(made.labels >= -1), "labels", "at least -1", "others")
    require(len(set(made.classes)) == n_classes, "classes", "distinct", "some twice")
    require(not made.is_flat or n_signals == 1, "labels", "of one signal where there is one per node", n_signals)
    is_order = made.order is None or np.array_equal(np.sort(made.order), np.arange(n_nodes))
    require(is_order, "order", "an order of the nodes", "another")
    shapes = {(*one.linear.shape, *one.curvature.shape) for one in made.sites}
    require(shapes == {2 * (known.size, n_classes)}, "sites", f"of {known.size} labels and {n_classes} classes", shapes)
    require(len(made.converged) == len(made.sites), "converged", "one per site", len(made.converged))
    if made.inputs is not None:
        wanted = n_nodes if made.is_flat else n_signals
        require(len(made.inputs) == wanted, "inputs", f"{wanted} rows", len(made.inputs))
    n_columns = 0 if made.inputs is None else made.inputs.shape[1]
    require(all(one < n_columns for one in made.date_columns), "date_columns", f"of {n_columns} inputs", "others")
    made.parameters["spectrum"] = made.parameters["spectrum"] or Exact()
    named = made.feature_names is None or len(made.feature_names) == n_columns > 0
    require(named, "feature_names", "one per column of the inputs", made.feature_names)
    return made
