"""The uber data of the paper's journal version."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from spectralgp._basics.checks import Array
from spectralgp.datasets._files import ReleasedFile, fetch_file, variables
from spectralgp.datasets._neighbours import neighbour_graph
from spectralgp.graphs import Graph

UBER = ReleasedFile("uber_data.mat", shapes=(("lon", (29, 1)), ("lat", (29, 1)), ("X1", (29, 744))))
N_NEIGHBORS = 4


@dataclass(frozen=True, eq=False)
class Uber:
    """Signals on 29 places of the data called "uber", with the graph of the released program.

    Attributes
    ----------
    graph : Graph
        29 nodes joined to their 4 nearest others with weights ``exp(-d^2 / 0.1)``, built as that of `Weather` from
        longitudes and latitudes, which are its coordinates.
    signals : ndarray of shape (744, 29)
        One signal a row, one column a place. The released program does not say what they measure, or when; 744 is the
        number of hours in 31 days.

    See Also
    --------
    load_uber : Reads the data.
    """

    graph: Graph
    signals: Array


def load_uber(folder: str | os.PathLike[str] | None = None) -> Uber:
    """Read the data called "uber" that the paper's journal version predicts (doi 10.1109/TSIPN.2023.3265160).

    The file `uber_data.mat` is looked for, and downloaded, as `load_weather` describes. No checksum of it is known:
    the variables ``lon``, ``lat`` and ``X1`` and their shapes are checked instead.

    The program that the authors released standardises ``X1`` by the mean and the standard deviation of all its values,
    builds the graph, and predicts a random 20 of the nodes from the other 9, at the same time.

    Parameters
    ----------
    folder : path, optional
        Where the file is.

    Returns
    -------
    Uber
        The graph and the signals, read-only, of shape (744, 29).

    Raises
    ------
    FileNotFoundError
        If the file is nowhere and cannot be downloaded; the message says which file to put where.
    ValueError
        If the file does not hold these variables in these shapes.

    Examples
    --------
    >>> from spectralgp.datasets import load_uber
    >>> load_uber().signals.shape  # doctest: +SKIP
    (744, 29)
    """
    content = variables(fetch_file(UBER, folder))
    longitude, latitude, columns = (np.asarray(content[name], dtype=float) for name, _ in UBER.shapes)
    signals = np.ascontiguousarray(columns.T)
    signals.setflags(write=False)
    return Uber(neighbour_graph(np.hstack([longitude, latitude]), N_NEIGHBORS), signals)
