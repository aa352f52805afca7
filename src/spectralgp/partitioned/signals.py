"""Signals of partitioned graphs: from tables, into the partitions, and back into the user's order of the nodes."""

from __future__ import annotations

import mmap
import warnings
from collections.abc import Hashable, Sequence
from operator import getitem
from typing import TYPE_CHECKING, Any

import numpy as np
from array_api_compat import is_dask_array
from numpy.typing import NDArray

from spectralgp._basics.arrays import on_host
from spectralgp._basics.extras import require
from spectralgp.partitioned.cluster import PURPOSE
from spectralgp.partitioned.folder import read_owners
from spectralgp.partitioned.local import TaskKey, laplacian
from spectralgp.partitioned.sources import READING, Table, open_table

if TYPE_CHECKING:
    from spectralgp.partitioned.operator import PartitionedOperator

Futures = list[Any]
BYTES_PER_CHUNK = 2**26


def as_dask(array: Any) -> Any:
    """A Zarr array as Dask's; anything else as it is."""
    if type(array).__module__.partition(".")[0] != "zarr":
        return array
    return require("dask.array", "dask", PURPOSE).from_zarr(array)


def complete(signals: Any) -> Any:
    """Signals as they are; a ValueError if a value is missing, for a Dask array when it is computed."""
    if is_dask_array(signals):
        lazy: Any = signals
        return lazy.map_blocks(_complete, meta=lazy._meta)
    width = max(1, BYTES_PER_CHUNK // (8 * max(1, signals.shape[0])))
    for start in range(0, signals.shape[1], width):
        _complete(np.asarray(on_host(signals[:, start : start + width])))
    return signals


def _complete(block: Any) -> Any:
    if np.isnan(block).any():
        raise ValueError(
            "Y must be complete on a PartitionedGraph; got NaN. Fill in what was not observed, drop the signals with "
            "holes, or use a Graph, on which they can be missing."
        )
    return block


# ---------------------------------------------------------------------------------------------------------- in


def loaded(operator: PartitionedOperator, signals: Any) -> Futures:
    """Own values of each partition, shape (n_own, n_signals), from signals in the user's order of the nodes."""
    signals = as_dask(signals)
    if is_dask_array(signals):
        return _from_dask(operator, signals)
    if isinstance(signals, np.memmap) and isinstance(signals.base, mmap.mmap):
        described = (str(signals.filename), signals.dtype.str, signals.shape, int(signals.offset))
        order = "C" if signals.flags.c_contiguous else "F"
        return operator.each(_read_map, ((key, described, order) for key in operator.keys))
    with warnings.catch_warnings():
        # an array in memory goes to the workers with the tasks, so that they can run again if a worker is lost
        warnings.filterwarnings("ignore", message="Sending large graph")
        values = signals if isinstance(signals, np.ndarray) else np.asarray(signals[:, :])
        own_nodes = operator.graph.own_nodes
        return operator.each(_placed, ((key, values[:, own_nodes(key.number)]) for key in operator.keys))


def _placed(key: TaskKey, values: NDArray[Any]) -> Any:
    return laplacian(key).xp.asarray(np.ascontiguousarray(values.T), dtype=key.dtype)


def _read_map(key: TaskKey, described: tuple[str, str, tuple[int, int], int], order: str) -> Any:
    """Own columns of a file, a signal at a time: what is mapped counts as a worker's memory for as long as it is."""
    filename, dtype, (n_signals, n_nodes), offset = described
    local = laplacian(key)
    block = np.empty((local.n_own, n_signals), dtype=key.dtype)
    if order == "F":
        mapped = np.memmap(filename, dtype, "r", offset, (n_nodes, n_signals))
        block[:] = mapped[local.positions]
        return local.xp.asarray(block)
    n_bytes = n_nodes * np.dtype(dtype).itemsize
    for number in range(n_signals):
        block[:, number] = np.memmap(filename, dtype, "r", offset + number * n_bytes, (n_nodes,))[local.positions]
    return local.xp.asarray(block)


def _from_dask(operator: PartitionedOperator, signals: Any) -> Futures:
    """Split every chunk, which is computed once, by the partitions of its nodes, and put the pieces together there."""
    dask = require("dask", "dask", PURPOSE)
    graph, n_parts = operator.graph, len(operator.keys)
    if graph.is_in_partition_order:
        placed = dask.delayed(_placed, pure=False)
        chunks = signals.rechunk((signals.shape[0], graph.sizes)).to_delayed().ravel()
        pairs = zip(operator.keys, chunks, strict=True)
        return list(operator.client.compute([placed(key, chunk) for key, chunk in pairs]))
    chunks = signals.rechunk({0: -1}).to_delayed().ravel()
    stops = np.cumsum([0, *signals.chunks[1]]).tolist()
    split = dask.delayed(_split, pure=False)
    pairs = zip(chunks, stops[:-1], strict=True)
    wholes = operator.client.compute(
        [split(chunk, str(graph.folder), graph.content_hash, start, n_parts) for chunk, start in pairs]
    )
    pieces = _pieces(operator, wholes, n_parts)
    return operator.each(_put_together, ((key, [own[key.number] for own in pieces]) for key in operator.keys))


def _pieces(operator: PartitionedOperator, wholes: Futures, n_pieces: int) -> list[Futures]:
    """The pieces of every whole, asked for while that is in memory: from a disk it would be read for every piece."""
    return [[operator.submit(getitem, whole, number) for number in range(n_pieces)] for whole in wholes]


def _split(chunk: Any, folder: str, content_hash: str, start: int, n_parts: int) -> list[tuple[NDArray[Any], ...]]:
    """For each partition, the places of the chunk's nodes in it, and their values."""
    owners, places = (array[start : start + chunk.shape[1]] for array in read_owners(folder, content_hash))
    return _grouped(owners, n_parts, places, np.asarray(chunk).T)


def _grouped(groups: NDArray[Any], n_groups: int, *arrays: NDArray[Any]) -> list[tuple[NDArray[Any], ...]]:
    """Rows of some arrays by group."""
    order = np.argsort(groups, kind="stable")
    stops = np.searchsorted(groups[order], np.arange(1, n_groups))
    return [tuple(array[rows] for array in arrays) for rows in np.split(order, stops)]


def _put_together(key: TaskKey, pieces: list[tuple[NDArray[Any], ...]]) -> Any:
    local = laplacian(key)
    block = np.empty((local.n_own, pieces[0][1].shape[1]), dtype=key.dtype)
    for places, values in pieces:
        block[places] = values
    return local.xp.asarray(block)


# --------------------------------------------------------------------------------------------------------- out


def unloaded(operator: PartitionedOperator, parts: Futures, n_signals: int) -> Any:
    """Signals as a Dask array in the order of the nodes that they came in, in no more chunks than partitions."""
    dask = require("dask", "dask", PURPOSE)
    arrays = require("dask.array", "dask", PURPOSE)
    graph, dtype = operator.graph, operator.dtype
    n_parts = len(operator.keys)
    if graph.is_in_partition_order:
        turned = dask.delayed(_turned, pure=False)
        pairs = zip(parts, graph.sizes, strict=True)
        pieces = [arrays.from_delayed(turned(part), (n_signals, size), dtype=dtype) for part, size in pairs]
        return arrays.concatenate(pieces, axis=1)
    n_chunks = min(n_parts, 1 + n_signals * graph.n_nodes * dtype.itemsize // BYTES_PER_CHUNK)
    stops = np.linspace(0, graph.n_nodes, n_chunks + 1).astype(np.int64)
    wholes = operator.each(_cut, ((key, part, stops) for key, part in zip(operator.keys, parts, strict=True)))
    pieces = _pieces(operator, wholes, n_chunks)
    put = dask.delayed(_ordered, pure=False)
    chunks = []
    for number in range(n_chunks):
        width = int(stops[number + 1] - stops[number])
        chunk = put([own[number] for own in pieces], (n_signals, width), dtype.str)
        chunks.append(arrays.from_delayed(chunk, (n_signals, width), dtype=dtype))
    return arrays.concatenate(chunks, axis=1)


def _cut(key: TaskKey, part: Any, stops: NDArray[np.int64]) -> list[tuple[NDArray[Any], ...]]:
    """For each chunk of the user's order, the places of own nodes in it, and their values."""
    nodes = laplacian(key).positions
    chunks = np.searchsorted(stops, nodes, side="right") - 1
    return _grouped(chunks, len(stops) - 1, nodes - stops[chunks], on_host(part))


def _turned(part: Any) -> NDArray[Any]:
    return np.ascontiguousarray(on_host(part).T)


def _ordered(pieces: list[Any], shape: tuple[int, int], dtype: str) -> NDArray[Any]:
    signals = np.empty(shape, dtype=dtype)
    for places, values in pieces:
        signals[:, places] = values.T
    return signals


# ----------------------------------------------------------------------------------------------------- from tables


def signals_of_table(table: Any, node: str | None, n_nodes: int, names: Sequence[Hashable] | None) -> Any:
    """Signals of a table, for `PartitionedGraph.signals`: a Dask array of shape (n_signals, n_nodes)."""
    arrays, dask = (require(name, "dask", READING) for name in ("dask.array", "dask"))
    remedy = "Arrays and Zarr arrays of shape (n_signals, n_nodes) go to fit as they are."
    opened = open_table(table, "table", () if node is None else (node,), "one row per node", remedy)
    dtypes = _signals_among(opened, node)
    if node is None:
        nodes, sizes = None, opened.sizes()
    else:
        listed = [np.asarray(part[node]) for part in dask.compute(*opened.delayed([node]))]
        nodes, sizes = np.concatenate(listed), [len(one) for one in listed]
    if sum(sizes) != n_nodes:
        raise ValueError(f"table must have a row for each of the {n_nodes} nodes; got {sum(sizes)} rows.")
    dtype, values = np.result_type(*dtypes.values(), np.float32), dask.delayed(_values, pure=False)
    chunks = [
        arrays.from_delayed(values(part, list(dtypes), dtype), (len(dtypes), size), dtype=dtype)
        for part, size in zip(opened.delayed(list(dtypes)), sizes, strict=True)
    ]
    signals = arrays.concatenate(chunks, axis=1)
    if nodes is None:
        return signals
    places = _places(nodes, n_nodes, names)
    return signals if np.array_equal(places, np.arange(n_nodes)) else signals[:, places]


def _signals_among(table: Table, node: str | None) -> dict[str, Any]:
    """Columns of signals, with their types."""
    if node is not None and node not in table.columns:
        raise ValueError(
            f"node must be a column of the table; got {node!r}, and columns {table.columns[:5]}. Name the one that "
            "says which node a row is."
        )
    kinds = table.dtypes()
    found = {name: kinds[name] for name in table.columns if name != node}
    if not found:
        raise ValueError("table must have a column for each signal; got none beside the nodes.")
    wrong = next((name for name, kind in found.items() if getattr(kind, "kind", "O") not in "biuf"), None)
    if wrong is not None:
        raise TypeError(
            f"table must have columns of numbers; got {wrong!r} of {found[wrong]}. Pass the column of the nodes as "
            "node, and leave out others."
        )
    return found


def _values(part: Any, columns: Sequence[str], dtype: Any) -> NDArray[Any]:
    return np.stack([np.asarray(part[name], dtype=dtype) for name in columns])


def _places(given: NDArray[Any], n_nodes: int, names: Sequence[Hashable] | None) -> NDArray[np.intp]:
    """The row of each node."""
    pandas = require("pandas", "dask", READING)
    rows = pandas.Index(given)
    if not rows.is_unique:
        raise ValueError(f"table must have one row per node; got several for {rows[rows.duplicated()].tolist()[0]!r}.")
    wanted = pandas.Index(range(n_nodes) if names is None else names)
    places: NDArray[np.intp] = rows.get_indexer(wanted)
    if np.any(places < 0):
        kind = "numbers from 0" if names is None else "names"
        missing, other = wanted[places < 0].tolist()[0], rows.difference(wanted).tolist()[0]
        raise ValueError(
            f"nodes of the table must be the {kind} of the graph's {n_nodes} nodes; got no row for {missing!r}, and "
            f"one for {other!r}. Give every node a row."
        )
    return places
