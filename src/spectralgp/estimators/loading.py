"""Loading of fitted models of every kind from files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from typing import Any, Literal

import numpy as np

from spectralgp._basics.checks import as_option
from spectralgp.estimators.classifier import GraphGPClassifier
from spectralgp.estimators.forecaster import GraphGPForecaster
from spectralgp.estimators.observing import Alignment
from spectralgp.estimators.reading import SignalFormat, set_features
from spectralgp.estimators.regressor import GraphGPRegressor
from spectralgp.graphs import Graph
from spectralgp.learning.classes import LabelledEntries
from spectralgp.model.kernels import Response

# errors of parts of a file that do not agree
INCONSISTENT = ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError


def load(
    path: str | PathLike[str],
    *,
    device: Literal["cpu", "cuda"] | None = None,
    responses: Mapping[str, Callable[..., Any] | Response] | None = None,
) -> Any:
    """Load a fitted model from a file of `save`, in this format version or an earlier one.

    No code in a file is ever executed: numbers and words are read and checked, and kernels are made by the names on a
    fixed list. The model predicts the same as the saved one, bit for bit, on the same machine and libraries; signals
    that were on a device become NumPy arrays.

    Parameters
    ----------
    path : path
        The file.
    device : {"cpu", "cuda"}, optional
        Device of a model of a large graph; unless given, that of the fit.
    responses : dict of str to function or Response, optional
        Functions of your own filters, by the names that they were saved with (`Response.name`); a `Response` has its
        Jacobian too. Their values are compared with those of the saved model.

    Returns
    -------
    model : GraphGPRegressor, GraphGPForecaster or GraphGPClassifier
        The saved model.

    Raises
    ------
    ValueError
        If the file is of another kind or of a newer version, cut off, changed since it was written, or inconsistent.
    """
    chosen = None if device is None else as_option(device, "device", ("cpu", "cuda"))
    from spectralgp.files.container import read_file
    from spectralgp.files.migrations import migrated
    from spectralgp.files.models import ModelReader, decoded, objects_in

    state, arrays, version = read_file(path)
    with _named(path), np.errstate(all="ignore"):
        state = migrated(state, arrays, version)
        named = (part.get("name") for part in objects_in(state) if part.get("type") == "Response")
        missing = sorted({name for name in named if isinstance(name, str)} - set(responses or ()))
    kind = state.get("kind") if isinstance(state, dict) else None
    if kind not in list(RESTORED):
        raise ValueError(f"{path} must hold a model whose kind is known here; got {repr(kind)[:60]}. Save it again.")
    if missing:
        raise ValueError(
            f"responses must have the functions of the filters that {path} names, which no file holds; got none for "
            f"{', '.join(missing)}. Pass load(path, responses={{{missing[0]!r}: function}})."
        )
    with _named(path), np.errstate(all="ignore"):  # absurd numbers of a file are no reason to warn
        return RESTORED[kind](decoded(state, ModelReader(arrays, chosen, responses)))


@contextmanager
def _named(path: str | PathLike[str]) -> Iterator[None]:
    """Turn every error inside into a ValueError that names the file."""
    try:
        yield
    except INCONSISTENT as error:
        raise ValueError(
            f"{path} must hold a model as model.save writes it; got an inconsistent one: {error}. Save the model again."
        ) from error
    except MemoryError as error:
        raise ValueError(f"{path} must hold a model that fits into memory; got one that does not.") from error


def _made(cls: Any, graph: Graph, parameters: dict[str, Any], columns: Any, names: Any = None) -> Any:
    """An estimator with its parameters; columns must be an order of the nodes, and names one per node."""
    if names is not None and len(set(names)) != graph.n_nodes:
        raise ValueError(f"names must be {graph.n_nodes} distinct names; got {len(set(names))}")
    if columns is not None and not np.array_equal(np.sort(columns), np.arange(graph.n_nodes)):
        raise ValueError("columns must be an order of the nodes; got none")
    return cls(**(parameters | {"graph": graph if parameters["graph"] else None}))


def _forecaster(found: Any) -> GraphGPForecaster:
    from spectralgp.files.nouns import series_of

    series = series_of(found)
    model: GraphGPForecaster = _made(GraphGPForecaster, found.graph, found.parameters, found.columns, found.names)
    model.set_output(predict=found.output)
    model._form = SignalFormat(found.names, found.columns, found.is_flat, found.layout)
    model._time_column, model._past = found.time_column, None
    model.graph_, model.backtest_ = found.graph, found.backtest
    n_exogenous, names = series.mean.n_exogenous, found.exogenous_names
    if names is not None and len(set(names)) != n_exogenous:
        raise ValueError(f"exogenous_names must be {n_exogenous} distinct names; got others")
    set_features(model, n_exogenous or None, names)
    model._show(series)
    return model


def _regressor(found: Any) -> GraphGPRegressor:
    from spectralgp.files.nouns import learnt_of

    learnt, fitted = learnt_of(found), found.estimator.fitted
    n_signals, n_features = learnt.candidates[0].task.signals.shape[0], fitted.n_features_in
    # numbers of the given signals among those that the model was fitted to, -1 for one without any value; earlier
    # versions fitted equal signals once and gave them one number, of which the first is kept
    numbers = fitted.copies
    known, first = np.unique(numbers[numbers >= 0], return_index=True)
    if np.any(numbers < -1) or not np.array_equal(known, np.arange(n_signals)):
        raise ValueError(f"copies must be numbers of {n_signals} signals; got others")
    kept = numbers[np.union1d(np.flatnonzero(numbers < 0), np.flatnonzero(numbers >= 0)[first])] >= 0
    if any(place >= (n_features or 0) for place in fitted.date_columns):
        raise ValueError(f"date_columns must be columns of {n_features or 0} inputs; got others")
    if fitted.labels is not None and len(fitted.labels) != kept.size:
        raise ValueError(f"labels must be of {kept.size} signals; got {len(fitted.labels)}")
    parameters, names, columns = found.estimator.parameters, fitted.names, fitted.columns
    model: GraphGPRegressor = _made(GraphGPRegressor, found.graph, parameters, columns, names)
    model.set_output(predict=fitted.output)
    model.input_recipe_, model.date_columns_ = fitted.input_recipe, fitted.date_columns
    model._effects = fitted.effects
    set_features(model, n_features, fitted.feature_names_in)
    form = SignalFormat(names, columns, fitted.is_flat, fitted.layout, fitted.is_in_memory, kept, fitted.labels)
    model._show(learnt, form, (found.learnt.fits, fitted.log_marginal_likelihood))
    return model


def _classifier(found: Any) -> GraphGPClassifier:
    from spectralgp.files.nouns import check_classes

    check_classes(found)
    model: GraphGPClassifier = _made(GraphGPClassifier, found.graph, found.parameters, found.order)
    at = found.labels >= 0
    form = SignalFormat(None, found.order, found.is_flat)
    if found.inputs is not None:
        set_features(model, found.inputs.shape[1], found.feature_names)
        model.date_columns_ = found.date_columns
    rows, nodes = np.nonzero(at)
    entries = LabelledEntries(rows, nodes, found.labels[at])
    sites = list(zip(found.sites, found.converged, strict=True))
    alignment = Alignment(form, *at.shape)
    model._condition(found.graph, alignment, np.array(found.classes), entries, found.inputs, sites)
    return model


RESTORED = {"regressor": _regressor, "forecaster": _forecaster, "classifier": _classifier}
