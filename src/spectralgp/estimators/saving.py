"""What an estimator writes to a model file, and how one is made of it again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from typing import Any

import numpy as np

from spectralgp._basics.arrays import on_host
from spectralgp.estimators.reading import Form
from spectralgp.learning import Stacking


def write_model(model: Any, path: str | PathLike[str]) -> None:
    """Write a fitted estimator to a file."""
    from spectralgp.files.container import write_file
    from spectralgp.files.models import written

    parameters = model.get_params(deep=False) | {"graph": model.graph is not None, "verbose": int(model.verbose)}
    if isinstance(model.graph_kernel, Stacking):  # files have it beside its kernels
        parameters |= {"graph_kernel": model.graph_kernel.kernels, "stacking": model.graph_kernel}
    form, features = model._form, getattr(model, "feature_names_in_", None)
    fitted = {
        "names": form.names,
        "columns": form.columns,
        "is_flat": form.is_flat,
        "is_in_memory": form.is_in_memory,
        "copies": np.where(form.kept, np.cumsum(form.kept) - 1, -1),
        "n_features_in": getattr(model, "n_features_in_", None),
        "feature_names_in": None if features is None else features.tolist(),
        "log_marginal_likelihood": model.log_marginal_likelihood_,
        "center": model.center_ if np.ndim(model.center_) == 0 else on_host(model.center_),
        "scale": np.asarray(on_host(model.scale_)),
        "layout": form.layout,
        "output": None if model._output == "default" else model._output,
        "input_recipe": model.input_recipe_,
        "effects": model._effects,
        "date_columns": model.date_columns_,
        "labels": form.labels,
    }
    graph = model.graph_.require_whole("to be written to a model file")
    write_file(path, *written(model._learnt, model.fits_, graph, {"parameters": parameters, "fitted": fitted}))


def read_content(path: str | PathLike[str]) -> tuple[Any, dict[str, Any], str | None]:
    """JSON and arrays of a file, and the kind of model where it is not one of signals."""
    from spectralgp.files.container import read_file

    state, arrays = read_file(path)
    kind = state.get("kind") if isinstance(state, dict) else None
    if kind not in (None, "forecaster", "classifier"):
        raise ValueError(f"{path} must hold a model whose kind is known here; got {repr(kind)[:60]}. Save it again.")
    return state, arrays, kind


def read_model(
    cls: Any, path: str | PathLike[str], state: Any, arrays: Any, device: str | None, responses: Mapping[str, Any]
) -> Any:
    """The estimator of a file; `responses` are the functions of filters that it names."""
    from spectralgp.files.models import made, response_names

    with _named(path):
        missing = sorted(response_names(state) - set(responses))
    if missing:
        raise ValueError(
            f"responses must have the functions of the filters that {path} names, which no file holds; got none for "
            f"{', '.join(missing)}. Pass load(path, responses={{{missing[0]!r}: function}})."
        )
    with _named(path), np.errstate(all="ignore"):  # absurd numbers are their author's, and not worth a warning here
        learnt, fits, graph, estimator = made(state, arrays, device, responses)
        return _estimator(cls, learnt, fits, graph, **vars(estimator))


@contextmanager
def _named(path: str | PathLike[str]) -> Iterator[None]:
    """Whatever is wrong with a file ends in an error that names it."""
    try:
        yield
    except (ArithmeticError, AssertionError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} must hold a model as model.save writes it; got one that does not go together: {error}. "
            "Save the model again."
        ) from error
    except MemoryError as error:
        raise ValueError(f"{path} must hold a model that fits into memory; got one that does not.") from error


def write_forecaster(model: Any, path: str | PathLike[str]) -> None:
    """Write a fitted forecaster to a file."""
    from spectralgp.files.container import write_file
    from spectralgp.files.series import series_written

    form = model._form
    parameters = model.get_params(deep=False) | {"graph": model.graph is not None, "verbose": int(model.verbose)}
    for name in ("components", "seasons", "calendar"):
        if not isinstance(parameters[name], str | int | float | None):
            parameters[name] = tuple(parameters[name])
    estimator = {
        "parameters": parameters,
        **{name: getattr(form, name) for name in ("names", "columns", "is_flat", "layout")},
        "output": None if model._output == "default" else model._output,
        "time_column": model._time_column,
    }
    write_file(path, *series_written(model._model, model.backtest_, model.graph_, estimator))


def write_classifier(model: Any, path: str | PathLike[str], codes: Any, read: Any, inputs: Any, fields: Any) -> None:
    """Write a fitted classifier to a file."""
    from spectralgp.files.classes import classes_written
    from spectralgp.files.container import write_file

    parameters = model.get_params(deep=False) | {"graph": model.graph is not None, "verbose": int(model.verbose)}
    names = getattr(model, "feature_names_in_", None)
    held = {
        "parameters": parameters,
        "classes": model.classes_.tolist(),
        "labels": codes,
        "is_flat": read.is_flat,
        "order": read.order,
        "inputs": inputs,
        "feature_names": None if names is None else [str(name) for name in names],
        "date_columns": getattr(model, "date_columns_", ()),
        "sites": tuple(one.sites for one in fields),
        "converged": tuple(bool(one.converged) for one in fields),
    }
    graph = model.graph_.require_whole("to be written to a model file")
    write_file(path, *classes_written(graph, held))


def read_classifier(cls: Any, path: str | PathLike[str], state: Any, arrays: Any) -> Any:
    """The classifier of a file."""
    from spectralgp.files.classes import classes_made

    with _named(path), np.errstate(all="ignore"):
        return cls._restored(classes_made(state, arrays))


def read_forecaster(cls: Any, path: str | PathLike[str], state: Any, arrays: Any) -> Any:
    """The forecaster of a file."""
    from spectralgp.files.series import series_made

    with _named(path), np.errstate(all="ignore"):
        series, found = series_made(state, arrays)
        graph = found.graph
        names, columns = found.names, found.columns
        if names is not None and len(set(names)) != graph.n_nodes:
            raise ValueError(f"names must be {graph.n_nodes} distinct names; got {len(set(names))}")
        if columns is not None and not np.array_equal(np.sort(columns), np.arange(graph.n_nodes)):
            raise ValueError("columns must be an order of the nodes; got none")
        model = cls(**(found.parameters | {"graph": graph if found.parameters["graph"] else None}))
        model.set_output(predict=found.output)
        model._form = Form(names, columns, found.is_flat, found.layout, True, np.ones(0, dtype=bool))
        model._time_column, model._past = found.time_column, None
        model.graph_, model.backtest_ = graph, found.backtest
        model._show(series)
        return model


def _estimator(cls: Any, learnt: Any, fits: Any, graph: Any, parameters: dict[str, Any], fitted: Any) -> Any:
    names, columns, n_signals = fitted.names, fitted.columns, learnt.candidates[0].task.signals.shape[0]
    if names is not None and len(set(names)) != graph.n_nodes:
        raise ValueError(f"names must be {graph.n_nodes} distinct names; got {len(set(names))}")
    if columns is not None and not np.array_equal(np.sort(columns), np.arange(graph.n_nodes)):
        raise ValueError("columns must be an order of the nodes; got none")
    # numbers of the given signals among those that the model was fitted to, -1 for one without any value; earlier
    # versions fitted equal signals once and gave them one number, of which the first is kept
    numbers = fitted.copies
    known, first = np.unique(numbers[numbers >= 0], return_index=True)
    if np.any(numbers < -1) or not np.array_equal(known, np.arange(n_signals)):
        raise ValueError(f"copies must be numbers of {n_signals} signals; got others")
    kept = numbers[np.union1d(np.flatnonzero(numbers < 0), np.flatnonzero(numbers >= 0)[first])] >= 0
    if any(place >= (fitted.n_features_in or 0) for place in fitted.date_columns):
        raise ValueError(f"date_columns must be columns of {fitted.n_features_in or 0} inputs; got others")
    if fitted.labels is not None and len(fitted.labels) != kept.size:
        raise ValueError(f"labels must be of {kept.size} signals; got {len(fitted.labels)}")
    model = cls(**(parameters | {"graph": graph if parameters["graph"] else None}))
    model.set_output(predict=fitted.output)
    model.input_recipe_, model.date_columns_ = fitted.input_recipe, fitted.date_columns
    model._effects = fitted.effects
    if fitted.n_features_in is not None:
        model.n_features_in_ = fitted.n_features_in
    if fitted.feature_names_in is not None:
        model.feature_names_in_ = np.array(fitted.feature_names_in, dtype=object)
    form = Form(names, columns, fitted.is_flat, fitted.layout, fitted.is_in_memory, kept, fitted.labels)
    model._show(learnt, fits, form)
    model.log_marginal_likelihood_ = fitted.log_marginal_likelihood
    return model
