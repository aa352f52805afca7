"""The door for model files."""

from __future__ import annotations

from os import PathLike
from typing import Literal

from spectralgp._basics.checks import as_option
from spectralgp.estimators.regressor import GraphGPRegressor


def load(path: str | PathLike[str], *, device: Literal["cpu", "cuda"] | None = None) -> GraphGPRegressor:
    """A fitted model from a file that `GraphGPRegressor.save` wrote.

    Nothing in a file is ever run, whoever wrote it: it is read as numbers and words, each checked, and kernels are made
    by the names on a fixed list. Files of all earlier format versions can be read.

    Parameters
    ----------
    path : path
        The file.
    device : {"cpu", "cuda"}, optional
        Where a model of a large graph computes; where it was told to when it was fitted if not given.

    Returns
    -------
    GraphGPRegressor
        It predicts what the saved one does, bit for bit, on the same machine and libraries; and where its signals were
        on a device, as NumPy arrays.

    Raises
    ------
    ValueError
        If the file is of another kind or of a newer version, cut off, changed since it was written, or holds what does
        not go together.
    OSError
        If it cannot be read.

    See Also
    --------
    GraphGPRegressor.save : with an example.
    """
    chosen = None if device is None else as_option(device, "device", ("cpu", "cuda"))
    return GraphGPRegressor._loaded(path, chosen)
