"""What an estimator writes to a model file, and how one is made of it again."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from spectralgp._basics.arrays import on_host
from spectralgp._basics.checks import Indices, Mask
from spectralgp.estimators.reading import Form

Estimator = TypeVar("Estimator")


def write_model(model: Any, path: str | PathLike[str]) -> None:
    """Write a fitted estimator to a file."""
    from spectralgp.files.container import write_file
    from spectralgp.files.models import written

    parameters = model.get_params(deep=False) | {"graph": model.graph is not None, "verbose": int(model.verbose)}
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
    }
    graph = model.graph_.require_whole("to be written to a model file")
    write_file(path, *written(model._learnt, model.fits_, graph, {"parameters": parameters, "fitted": fitted}))


def read_model(cls: type[Estimator], path: str | PathLike[str], device: str | None) -> Estimator:
    """The estimator of a file; whatever is wrong with one ends in an error that says so."""
    from spectralgp.files.container import read_file

    state, arrays = read_file(path)
    try:
        with np.errstate(all="ignore"):  # numbers that are absurd are their author's, and not worth a warning here
            return _made(cls, state, arrays, device)
    except (ArithmeticError, AssertionError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} must hold a model as model.save writes it; got one that does not go together: {error}. "
            "Save the model again."
        ) from error
    except MemoryError as error:
        raise ValueError(f"{path} must hold a model that fits into memory; got one that does not.") from error


def _made(cls: Any, state: Any, arrays: Mapping[str, NDArray[Any]], device: str | None) -> Any:
    from spectralgp.files.models import made

    learnt, fits, graph, estimator = made(state, arrays, device)
    parameters, fitted = estimator.parameters, estimator.fitted
    model = cls(**(parameters | {"graph": graph if parameters["graph"] else None}))
    _require_order(fitted.names, fitted.columns, graph.n_nodes)
    kept = _kept_signals(fitted.copies, learnt.candidates[0].task.signals.shape[0])
    form = Form(fitted.names, fitted.columns, fitted.is_flat, fitted.layout, fitted.is_in_memory, kept)
    model.set_output(predict=fitted.output)
    model.input_recipe_ = fitted.input_recipe
    if fitted.n_features_in is not None:
        model.n_features_in_ = fitted.n_features_in
    if fitted.feature_names_in is not None:
        model.feature_names_in_ = np.array(fitted.feature_names_in, dtype=object)
    model._show(learnt, fits, form)
    model.log_marginal_likelihood_ = fitted.log_marginal_likelihood
    return model


def _kept_signals(numbers: Indices, n_signals: int) -> Mask:
    """Which of the given signals the model was fitted to, by their numbers among those; -1 for one without any value.

    Earlier versions fitted equal signals once and gave them one number: the first of them is kept here.
    """
    known, first = np.unique(numbers[numbers >= 0], return_index=True)
    if np.any(numbers < -1) or not np.array_equal(known, np.arange(n_signals)):
        raise ValueError(f"copies must be numbers of {n_signals} signals; got others")
    chosen = np.union1d(np.flatnonzero(numbers < 0), np.flatnonzero(numbers >= 0)[first])
    return numbers[chosen] >= 0


def _require_order(names: tuple[Any, ...] | None, columns: Indices | None, n_nodes: int) -> None:
    if names is not None and len(set(names)) != n_nodes:
        raise ValueError(f"names must be {n_nodes} distinct names; got {len(set(names))}")
    if columns is not None and not np.array_equal(np.sort(columns), np.arange(n_nodes)):
        raise ValueError("columns must be an order of the nodes; got none")
