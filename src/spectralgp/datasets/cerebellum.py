"""The voxel graph of a cerebellum, and the paper's fMRI signals on it where the user has them."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from spectralgp._checks import Array, as_real_array
from spectralgp.datasets._files import ReleasedFile, fetch_file, find_file, variables
from spectralgp.graph import Graph

VOXELS = ReleasedFile("A_cerebellum.mat", "e6f3471a5ea813260728c886065588aa5dbe80ed118401cb6af6e0dfff0a102b")
SIGNALS = ReleasedFile("signal_set_cerebellum.mat", None)


@dataclass(frozen=True, eq=False)
class Cerebellum:
    """Graph of 4465 voxels of the cerebellum (Behjat et al., 2016), with BOLD signals if their file was found.

    Attributes
    ----------
    graph : Graph
        4465 voxels with edges of weight 1 between neighbours.
    signals : ndarray of shape (292, 4465) or None
        BOLD signals, one a row. None if `signal_set_cerebellum.mat` is not on this machine: the file was not
        published with the paper.

    See Also
    --------
    load_cerebellum : Reads the data.
    """

    graph: Graph
    signals: Array | None


def load_cerebellum(folder: str | os.PathLike[str] | None = None) -> Cerebellum:
    """Read the graph of the cerebellum, and the fMRI signals on it if they are on this machine.

    The file `A_cerebellum.mat` is looked for as `load_weather` describes. The signals, `signal_set_cerebellum.mat` with
    the variable ``F2`` (4465 x 292), are looked for in the same places, but were not published and are not downloaded:
    ask the authors of the paper, or those of the studies that it takes them from (Behjat et al., 2016; Venkitaraman,
    Chatterjee and Handel, 2018).

    Parameters
    ----------
    folder : path, optional
        Where the files are.

    Returns
    -------
    Cerebellum
        The graph, and the signals in rows, read-only, or None in their place.

    Raises
    ------
    FileNotFoundError
        If the graph's file is nowhere and cannot be downloaded; the message says which file to put where.
    ValueError
        If the graph's file is not the released one, by its SHA-256 sum, or the signals do not fit the graph.

    Examples
    --------
    >>> from spectralgp.datasets import load_cerebellum
    >>> load_cerebellum().graph  # doctest: +SKIP
    Graph(4465 nodes, 42487 edges)
    """
    graph = Graph(variables(fetch_file(VOXELS, folder))["A"])
    path = find_file(SIGNALS, folder)
    if path is None:
        return Cerebellum(graph, None)
    content = variables(path)
    if "F2" not in content:
        raise ValueError(f"{path} must hold the variable F2, the signals; got {sorted(content)}. Is it the right file?")
    remedy = "Columns of F2 are signals, rows the voxels of the graph."
    columns = as_real_array(
        content["F2"], "F2", ("n_nodes", "n_signals"), sizes={"n_nodes": graph.n_nodes}, remedy=remedy
    )
    signals = np.ascontiguousarray(columns.T)
    signals.setflags(write=False)
    return Cerebellum(graph, signals)
