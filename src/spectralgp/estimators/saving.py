"""Saving of fitted estimators to model files."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from spectralgp._basics.arrays import on_host
from spectralgp.learning import Stacking
from spectralgp.series.model import SeriesModel


def save(model: Any, path: str | PathLike[str]) -> None:
    """Write the fitted model to a file, such as ``"model.sgp"``, from which `spectralgp.load` makes it again.

    The file is in the safetensors format: arrays and JSON, and no code. It holds the graph and its spectrum, the
    training inputs with signals or labels, and all that was learnt; of a forecaster, the state after the last row in
    place of the rows, so that its size does not grow with their number. The loaded model predicts the same, bit for
    bit, on the same machine and libraries. An interruption or a full disk leaves an old file of that name unchanged.
    `graph` is saved as the `Graph` that was made of it; signals in files or on a device are loaded into memory.

    Raises
    ------
    TypeError
        If the model holds an object that a file cannot hold: a function of `Response`, a kernel or solver of your own,
        node names that are neither texts nor numbers, or a random generator.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import spectralgp
    >>> ring = spectralgp.Graph.from_edges([(node, (node + 1) % 10) for node in range(10)])
    >>> X, Y = np.arange(20.0)[:, None], np.random.default_rng(0).standard_normal((20, 10))
    >>> model = spectralgp.GraphGPRegressor(ring, spectralgp.Polynomial(2)).fit(X, Y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.sgp")
    ...     again = spectralgp.load(f"{folder}/model.sgp")
    >>> np.array_equal(again.predict(X), model.predict(X))
    True
    """
    from spectralgp.files.container import write_file
    from spectralgp.files.models import encoded

    check_is_fitted(model)
    parts, graph = PARTS[model._kind](model), model.graph_.require_whole("to be written to a model file")
    write_file(path, *encoded(model._kind, graph, parts))


def _regressor_parts(model: Any) -> dict[str, Any]:
    from spectralgp.files.nouns import KEPT

    parameters = _parameters(model) | {"stacking": None}
    if isinstance(model.graph_kernel, Stacking):  # files have it beside its kernels
        parameters |= {"graph_kernel": model.graph_kernel.kernels, "stacking": model.graph_kernel}
    form = model._form
    fitted = {
        **{name: getattr(form, name) for name in ("names", "columns", "is_flat", "is_in_memory", "layout", "labels")},
        "copies": np.where(form.kept, np.cumsum(form.kept) - 1, -1),
        "n_features_in": getattr(model, "n_features_in_", None),
        "feature_names_in": _feature_names(model),
        "log_marginal_likelihood": model.log_marginal_likelihood_,
        "center": model.center_ if np.ndim(model.center_) == 0 else on_host(model.center_),
        "scale": np.asarray(on_host(model.scale_)),
        "output": _output(model),
        "input_recipe": model.input_recipe_,
        "effects": model._effects,
        "date_columns": model.date_columns_,
    }
    return {
        "estimator": {"parameters": parameters, "fitted": fitted},  # first: errors then have the names that users know
        "candidates": model.learnt_.candidates,
        "learnt": {name: getattr(model.learnt_.with_evidence, name) for name in KEPT} | {"fits": model.fits_},
    }


def _forecaster_parts(model: Any) -> dict[str, Any]:
    from spectralgp.files.schema import hints_of

    form, parameters = model._form, _parameters(model)
    for name in ("components", "seasons", "calendar"):
        if not isinstance(parameters[name], str | int | float | None):
            parameters[name] = tuple(parameters[name])
    return {
        "parameters": parameters,
        **{name: getattr(form, name) for name in ("names", "columns", "is_flat", "layout")},
        "output": _output(model),
        "time_column": model._time_column,
        "exogenous_names": _feature_names(model),
        "backtest": model.backtest_,
        **{name: getattr(model.model_, name) for name in hints_of(SeriesModel)},
    }


def _classifier_parts(model: Any) -> dict[str, Any]:
    at, entries = model._alignment, model._entries
    codes, fields = np.full((at.n_rows, at.n_nodes), -1), [member.field for member in model._mixture.members]
    codes[entries.rows, entries.nodes] = entries.labels
    return {
        "parameters": _parameters(model),
        "classes": model.classes_.tolist(),
        "labels": codes,
        "is_flat": at.form.is_flat,
        "order": at.form.columns,
        "inputs": model._values,
        "feature_names": _feature_names(model),
        "date_columns": getattr(model, "date_columns_", ()),
        "sites": tuple(one.sites for one in fields),
        "converged": tuple(bool(one.converged) for one in fields),
    }


def _parameters(model: Any) -> dict[str, Any]:
    """Parameters of an estimator; the graph, saved elsewhere, is replaced by whether there is one."""
    return model.get_params(deep=False) | {"graph": model.graph is not None, "verbose": int(model.verbose)}


def _feature_names(model: Any) -> list[Any] | None:
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else names.tolist()


def _output(model: Any) -> str | None:
    return None if model._output == "default" else model._output


PARTS = {"regressor": _regressor_parts, "forecaster": _forecaster_parts, "classifier": _classifier_parts}
