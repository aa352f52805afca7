"""The voxel graph of a cerebellum, and the paper's fMRI signals on it."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from spectralgp._basics.checks import Array
from spectralgp.datasets._files import ReleasedFile, fetch_file, variables
from spectralgp.graphs import Graph

VOXELS = ReleasedFile("A_cerebellum.mat", "e6f3471a5ea813260728c886065588aa5dbe80ed118401cb6af6e0dfff0a102b")
SIGNALS = ReleasedFile(
    "signal_set_cerebellum.mat", git_blob="018059436389d58ab6181f9e16e317dbbb7f59f4", shapes=(("F2", (4465, 292)),)
)


@dataclass(frozen=True, eq=False)
class Cerebellum:
    """Graph of 4465 voxels of the cerebellum (Behjat et al., 2016), with BOLD signals.

    Attributes
    ----------
    graph : Graph
        4465 voxels with edges of weight 1 between neighbours.
    signals : ndarray of shape (292, 4465) or None
        BOLD signals, one a row; None if they were not asked for.

    See Also
    --------
    load_cerebellum : Reads the data.
    """

    graph: Graph
    signals: Array | None


def load_cerebellum(folder: str | os.PathLike[str] | None = None, *, signals: bool = True) -> Cerebellum:
    """Read the graph of the cerebellum, and the fMRI signals on it.

    The files `A_cerebellum.mat` and `signal_set_cerebellum.mat` are looked for, and downloaded, as `load_weather`
    describes. The paper takes the signals from Venkitaraman, Chatterjee and Handel (2018).

    Parameters
    ----------
    folder : path, optional
        Where the files are.
    signals : bool, default=True
        Whether to read the signals; their file is the larger one.

    Returns
    -------
    Cerebellum
        The graph, and the signals in rows, read-only, or None in their place.

    Raises
    ------
    FileNotFoundError
        If a file is nowhere and cannot be downloaded; the message says which file to put where.
    ValueError
        If a file is not the released one, by the SHA-256 sum of the graph's and the git blob hash of the signals'.

    Examples
    --------
    >>> from spectralgp.datasets import load_cerebellum
    >>> load_cerebellum(signals=False).graph  # doctest: +SKIP
    Graph(4465 nodes, 42487 edges)
    >>> load_cerebellum().signals.shape  # doctest: +SKIP
    (292, 4465)
    """
    graph = Graph(variables(fetch_file(VOXELS, folder))["A"])
    if not signals:
        return Cerebellum(graph, None)
    rows = np.ascontiguousarray(np.asarray(variables(fetch_file(SIGNALS, folder))["F2"], dtype=float).T)
    rows.setflags(write=False)
    return Cerebellum(graph, rows)
