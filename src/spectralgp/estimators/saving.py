"""What an estimator writes to a model file."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from spectralgp._basics.arrays import on_host
from spectralgp.graphs import GraphBase
from spectralgp.learning import Stacking
from spectralgp.series.model import SeriesModel


def write_model(model: Any, path: str | PathLike[str]) -> None:
    """Write a fitted estimator to a file."""
    from spectralgp.files.estimators import KEPT

    parameters = _parameters(model) | {"stacking": None}
    if isinstance(model.graph_kernel, Stacking):  # files have it beside its kernels
        parameters |= {"graph_kernel": model.graph_kernel.kernels, "stacking": model.graph_kernel}
    form, features = model._form, getattr(model, "feature_names_in_", None)
    fitted = {
        **{name: getattr(form, name) for name in ("names", "columns", "is_flat", "is_in_memory", "layout", "labels")},
        "copies": np.where(form.kept, np.cumsum(form.kept) - 1, -1),
        "n_features_in": getattr(model, "n_features_in_", None),
        "feature_names_in": None if features is None else features.tolist(),
        "log_marginal_likelihood": model.log_marginal_likelihood_,
        "center": model.center_ if np.ndim(model.center_) == 0 else on_host(model.center_),
        "scale": np.asarray(on_host(model.scale_)),
        "output": _output(model),
        "input_recipe": model.input_recipe_,
        "effects": model._effects,
        "date_columns": model.date_columns_,
    }
    parts = {
        "estimator": {"parameters": parameters, "fitted": fitted},  # first: errors then have the names that users know
        "candidates": model.learnt_.candidates,
        "learnt": {name: getattr(model.learnt_, name) for name in KEPT} | {"fits": model.fits_},
    }
    _write(path, "regressor", model.graph_, parts)


def write_forecaster(model: Any, path: str | PathLike[str]) -> None:
    """Write a fitted forecaster to a file."""
    from spectralgp.files.schema import hints_of

    form, exogenous = model._form, getattr(model, "feature_names_in_", None)
    parameters = _parameters(model)
    for name in ("components", "seasons", "calendar"):
        if not isinstance(parameters[name], str | int | float | None):
            parameters[name] = tuple(parameters[name])
    parts = {
        "parameters": parameters,
        **{name: getattr(form, name) for name in ("names", "columns", "is_flat", "layout")},
        "output": _output(model),
        "time_column": model._time_column,
        "exogenous_names": None if exogenous is None else tuple(exogenous.tolist()),
        "backtest": model.backtest_,
        **{name: getattr(model.model_, name) for name in hints_of(SeriesModel)},
    }
    _write(path, "forecaster", model.graph_, parts)


def write_classifier(model: Any, path: str | PathLike[str]) -> None:
    """Write a fitted classifier to a file."""
    read, entries, names = model._read, model._entries, getattr(model, "feature_names_in_", None)
    codes, fields = np.full(read.labels.shape, -1), [member.field for member in model._mixture.members]
    codes[entries.rows, entries.nodes] = entries.labels
    parts = {
        "parameters": _parameters(model),
        "classes": model.classes_.tolist(),
        "labels": codes,
        "is_flat": read.form.is_flat,
        "order": read.form.columns,
        "inputs": model._values,
        "feature_names": None if names is None else [str(name) for name in names],
        "date_columns": getattr(model, "date_columns_", ()),
        "sites": tuple(one.sites for one in fields),
        "converged": tuple(bool(one.converged) for one in fields),
    }
    _write(path, "classifier", model.graph_, parts)


def _write(path: str | PathLike[str], kind: str, graph: GraphBase, parts: dict[str, Any]) -> None:
    from spectralgp.files.container import write_file
    from spectralgp.files.models import encoded

    write_file(path, *encoded(kind, graph.require_whole("to be written to a model file"), parts))


def _parameters(model: Any) -> dict[str, Any]:
    """Parameters of an estimator; of the graph, which is beside them, whether there is one."""
    return model.get_params(deep=False) | {"graph": model.graph is not None, "verbose": int(model.verbose)}


def _output(model: Any) -> str | None:
    return None if model._output == "default" else model._output
