"""Fitted models of every kind from files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any, Literal

from spectralgp._basics.checks import as_option
from spectralgp.estimators import saving
from spectralgp.estimators.classifier import GraphGPClassifier
from spectralgp.estimators.forecaster import GraphGPForecaster
from spectralgp.estimators.regressor import GraphGPRegressor
from spectralgp.kernels import Response


def load(
    path: str | PathLike[str],
    *,
    device: Literal["cpu", "cuda"] | None = None,
    responses: Mapping[str, Callable[..., Any] | Response] | None = None,
) -> Any:
    """A fitted model from a file that its `save` wrote, in this format version or an earlier one.

    Nothing in a file is ever run, whoever wrote it: it is read as numbers and words, each checked, and kernels are made
    by the names on a fixed list. The model predicts what the saved one does, bit for bit, on the same machine and
    libraries; and where its signals were on a device, as NumPy arrays.

    Parameters
    ----------
    path : path
        The file.
    device : {"cpu", "cuda"}, optional
        Where a model of a large graph computes; where it was told to when it was fitted if not given.
    responses : dict of str to function or Response, optional
        Functions of filters of your own, by the names that they were saved with (`Response.name`); a `Response` has its
        Jacobian too. Their values are compared with those when the model was saved.

    Returns
    -------
    model : GraphGPRegressor, GraphGPForecaster or GraphGPClassifier
        What was saved.

    Raises
    ------
    ValueError
        If the file is of another kind or of a newer version, cut off, changed since it was written, or holds what does
        not go together.
    """
    chosen = None if device is None else as_option(device, "device", ("cpu", "cuda"))
    state, arrays, kind = saving.read_content(path)
    if kind == "classifier":
        return saving.read_classifier(GraphGPClassifier, path, state, arrays)
    if kind is not None:
        return saving.read_forecaster(GraphGPForecaster, path, state, arrays)
    return saving.read_model(GraphGPRegressor, path, state, arrays, chosen, responses or {})
