"""What a user gives, read: signals, inputs, graphs, and the order in which the user has the nodes."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from spectralgp._basics.arrays import take
from spectralgp._basics.checks import Array, Indices, as_option, numbers_of, without_mask
from spectralgp._basics.tables import Table, frame_names, match_columns
from spectralgp.graphs import Graph, GraphBase, as_graph
from spectralgp.graphs.weights import chosen_nodes
from spectralgp.operators import precision_of
from spectralgp.signals import Center
from spectralgp.spectra import SpectrumSettings

DIFFERENT = 4.0  # times the variance of nodes' means by chance, beyond which nodes have levels of their own
DROWNING = 1e4  # the same, beyond which levels are all that a model in them would see
LARGEST_INPUT = 1e150  # whose square is still a number
UNOBSERVED = "NaN stands for what was not observed."


@dataclass(frozen=True, eq=False)
class NodeOrder:
    """The order in which the user has the nodes, which is that of the columns of ``Y`` at ``fit``.

    Parameters
    ----------
    names : tuple or None
        The columns' names; None if neither they nor the graph has any.
    columns : ndarray of int or None
        The column of each node of the graph; None where both orders are the same.
    """

    names: tuple[Hashable, ...] | None
    columns: Indices | None = None

    def to_graph(self, signals: Any) -> Any:
        """Signals with columns in the user's order, in the graph's."""
        if self.columns is None:
            return signals
        return take(signals, self.columns, axis=1) if is_array_api_obj(signals) else signals[:, self.columns]

    def to_user(self, values: Any, axis: int = -1) -> Any:
        """Values with the graph's order along an axis, in the user's."""
        return values if self.columns is None else take(values, np.argsort(self.columns), axis=axis % values.ndim)

    def chosen(self, nodes: Any, n_nodes: int) -> Indices:
        """Columns that a user chose by name, position or mask, in the user's order."""
        return chosen_nodes(nodes, n_nodes, self._positions)

    def nodes(self, columns: Indices) -> Indices:
        """Nodes of the graph that some columns belong to."""
        return columns if self.columns is None else np.argsort(self.columns)[columns]

    def _positions(self, names: Any) -> NDArray[np.int64]:
        if self.names is None:
            raise ValueError(
                "nodes must be positions where neither the graph nor the columns of Y have names; got names. "
                "Fit with a graph or a DataFrame that has them."
            )
        known = {name: position for position, name in enumerate(self.names)}
        unknown = [name for name in names if name not in known]
        if unknown:
            raise ValueError(
                f"nodes must be names of columns of Y; got {unknown[0]!r} ({len(unknown)} unknown in all). "
                f"The first of them are {list(self.names[:5])}."
            )
        return np.array([known[name] for name in names], dtype=np.int64)


def as_any_graph(graph: Any) -> GraphBase:
    """A graph from whatever describes one; a partitioned one as it is."""
    return graph if isinstance(graph, GraphBase) else as_graph(graph)


def read_graph(graph: Any, n_columns: int, names: tuple[Any, ...] | None) -> tuple[GraphBase, NodeOrder]:
    """The graph, edgeless if there is none, and the order in which the user has its nodes."""
    if graph is None:
        return Graph.edgeless(n_columns), NodeOrder(names)
    known = as_any_graph(graph)
    own = None if known.names is None else tuple(known.names)
    if names is not None and own is not None and not (_counts(names) and not _counts(own)):
        columns = match_columns(names, own)
        return known, NodeOrder(names, None if np.array_equal(columns, np.arange(columns.size)) else columns)
    if known.n_nodes != n_columns:
        raise ValueError(
            f"Y must have shape (n_signals, n_nodes) with n_nodes = {known.n_nodes}, the nodes of the graph; "
            f"got {n_columns} columns. Rows are signals: did you pass the transpose?"
        )
    if own is None and names is not None and not _counts(names) and set(names) == set(range(n_columns)):
        raise ValueError(
            "Y must have its columns in the order of the nodes where the graph has no names; as names they have the "
            f"integers 0 to {n_columns - 1} in another order; got {names[0]} first. Pass Y[sorted(Y.columns)], or a "
            "graph with names."
        )
    return known, NodeOrder(own if names is None or own is not None else names)


def _counts(names: tuple[Any, ...]) -> bool:
    """Whether column names only count the columns, as those of a DataFrame without names do."""
    return all(isinstance(name, int | np.integer) and name == place for place, name in enumerate(names))


# ------------------------------------------------------------------------------------------------------- signals


def in_memory(Y: Any, estimator: Any) -> Array:
    """Signals as an array of numbers in memory, one- or two-dimensional; NaN where nothing was observed."""
    if Y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is None: "
            "Y must hold the signals, shape (n_signals, n_nodes)."
        )
    names = frame_names(Y)
    Y = Y.values if isinstance(Y, Table) else without_mask(Y, "Y", allow_nan=True)
    if getattr(getattr(Y, "dtype", None), "kind", "") == "c":
        raise ValueError("Complex data not supported: Y must hold real numbers. Pass the real part or the modulus.")
    # by scikit-learn, which knows tables and array libraries; it is not told of words, which it would take for numbers
    signals = check_array(Y, ensure_2d=False, ensure_all_finite=False, dtype=None, input_name="Y", estimator=estimator)
    if np.ndim(signals) not in (1, 2):
        raise ValueError(f"Y must have shape (n_signals, n_nodes); got {np.shape(Y)}. Rows are signals.")
    try:
        if signals.dtype.kind not in "biufO":
            raise TypeError(f"dtype {signals.dtype}")
        values = np.asarray(numbers_of(signals) if signals.dtype.kind == "O" else signals, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Y must hold numbers; got {error}. Convert it to numbers first.") from error
    _require_finite(values, "Y", names, UNOBSERVED, allow_nan=True)
    return values


def sliceable(Y: Any) -> Any:
    """Signals that need not fit in memory: anything with a shape and a dtype, sliced by columns; tables as arrays."""
    signals = Y.values if isinstance(Y, Table) else without_mask(Y, "Y", allow_nan=True)
    signals = np.asarray(signals) if isinstance(signals, list | tuple) else signals
    if not hasattr(signals, "shape") or not hasattr(signals, "dtype") or len(signals.shape) != 2:
        raise ValueError(
            f"Y must have shape (n_signals, n_nodes) on a large graph; got {np.shape(Y)}. Rows are signals."
        )
    precision_of(signals)
    return signals


def observed(signals: Any) -> Any:
    """New signals on a large graph, all in memory or on their device."""
    return signals if is_array_api_obj(signals) else np.asarray(signals[:, :])


def rows_with_values(values: Any) -> NDArray[np.bool_]:
    """Whether anything was observed of each signal; all of them where nothing was at all, which is refused later."""
    everything = np.ones(values.shape[0], dtype=bool)
    if not isinstance(values, np.ndarray):
        return everything
    kept = np.any(~np.isnan(values), axis=1)
    return kept if kept.any() else everything


def as_one_signal(observed: Any, is_flat: bool) -> Any:
    """A single signal as a row, unless signals are single values."""
    if is_flat or len(np.shape(observed)) != 1:
        return observed
    return observed.as_one_row() if isinstance(observed, Table) else np.ma.atleast_2d(observed)


# -------------------------------------------------------------------------------------------------------- inputs


def check_inputs(X: Any) -> None:
    """Refuse inputs that would be taken for something else: masked ones, and words that look like numbers; and none."""
    without_mask(X, "X", "Drop the rows that have them, or fill them in.")
    if isinstance(X, list | tuple):
        try:
            X = np.asarray(X)
        except ValueError:  # rows of unequal length, which scikit-learn refuses
            return
    if isinstance(X, np.ndarray | Table) and X.shape[:1] == (0,):
        raise ValueError(f"X must have at least one row; got shape {X.shape}. Pass the inputs of one signal or more.")
    if not isinstance(X, np.ndarray):
        return
    try:
        if X.dtype.kind in "USMm":
            raise TypeError(f"dtype {X.dtype}")
        if X.dtype.kind == "O":
            numbers_of(X)
    except (TypeError, ValueError) as error:
        raise TypeError(f"X must hold numbers; got {error}. Convert it to numbers first.") from error


def finite_inputs(inputs: Any, names: tuple[Any, ...] | None = None) -> Array:
    """Inputs whose every value is finite, and small enough to be squared."""
    values = np.asarray(inputs, dtype=float)
    _require_finite(values, "X", names, "Drop the rows that have them, or fill them in.")
    if values.size and np.max(np.abs(values)) > LARGEST_INPUT:
        raise ValueError(
            f"X must hold values up to {LARGEST_INPUT:g} in size, whose squares are still numbers; got "
            f"{np.max(np.abs(values)):.3g}. Change the units of X."
        )
    return values


def _require_finite(
    values: Array, name: str, columns: tuple[Any, ...] | None, remedy: str, allow_nan: bool = False
) -> None:
    wrong = np.isinf(values) if allow_nan else ~np.isfinite(values)
    if not wrong.any():
        return
    first = tuple(int(index) for index in np.argwhere(wrong)[0])
    what = "NaN" if np.isnan(values[first]) else "infinity"
    where = f"row {first[0]}"
    if len(first) == 2:
        where += f", column {first[1] if columns is None else repr(columns[first[1]])}"
    kind = "infinite" if allow_nan else "NaN or infinite"
    raise ValueError(
        f"{name} must be finite; {name} contains {what} at {where} ({int(wrong.sum())} values that are {kind} in all). "
        f"{remedy}"
    )


def carried_columns(
    carry: Any, X: Any, has_features: bool, n_features: int, order: NodeOrder, n_nodes: int
) -> Indices | None:
    """The column of the inputs that carries over to each node of the graph; None where none does.

    Parameters
    ----------
    carry : "auto", array of int or of names, or None
        What the user asked for: columns in the order of those of ``Y``; "auto" takes them where they are the nodes, by
        name, or by their number where neither has names.
    has_features : bool
        Whether the columns of the inputs are features, which alone can belong to nodes.
    """
    if carry is None:
        return None
    if X is not None and not has_features and not isinstance(carry, str):
        raise ValueError(
            f"carry must be None or 'auto' where X holds no features; got {carry!r}. Columns of a covariance are no "
            "values at nodes: pass a kernel of such features."
        )
    columns = frame_names(X)
    places = {name: place for place, name in enumerate(columns or ())}
    if isinstance(carry, str):
        as_option(carry, "carry", ("auto",))
        found = _nodes_among(places, columns is not None, n_features, order, n_nodes)
        if not has_features or n_nodes < 2 or found is None:
            return None
    else:
        chosen = np.asarray(carry)
        if X is None or chosen.shape != (n_nodes,):
            raise ValueError(
                f"carry must name one column of X for each of the {n_nodes} columns of Y; got shape {chosen.shape}. "
                "Pass None to carry nothing over."
            )
        given = chosen.tolist()
        found = given if chosen.dtype.kind in "iu" else [places.get(name, -1) for name in given]
        wrong = [one for one, place in zip(given, found, strict=True) if not 0 <= place < n_features]
        if wrong:
            raise ValueError(f"carry must hold columns of X; got {wrong[0]!r}. X has {n_features} columns.")
    return order.to_graph(np.array([found], dtype=np.intp))[0]


def _nodes_among(
    places: dict[Hashable, int], has_names: bool, n_features: int, order: NodeOrder, n_nodes: int
) -> list[int] | None:
    """Columns of the inputs that are the nodes: by name, or by their number where the inputs have no names."""
    if not has_names:
        return list(range(n_nodes)) if n_features == n_nodes else None
    names = order.names or ()
    return [places[name] for name in names] if names and all(name in places for name in names) else None


def chosen_center(values: Any, threshold: float) -> Center:
    """By node where the variance of the nodes' means is more than so many times what chance would make it."""
    n_signals, n_nodes = values.shape
    if n_signals < 3 or n_nodes < 2 or not isinstance(values, np.ndarray):
        return "global"
    seen = np.isfinite(values)
    often = seen.sum(axis=0) > 1  # nodes observed less say nothing of a level and a spread
    largest = np.max(np.abs(values), where=seen, initial=0.0)
    if not 0 < largest < np.inf or np.count_nonzero(often) < 2:
        return "global"
    values, seen = values[:, often] / largest, seen[:, often]
    means, variances = np.mean(values, axis=0, where=seen), np.var(values, axis=0, ddof=1, where=seen)
    within = np.mean(variances / seen.sum(axis=0))
    return "node" if np.var(means, ddof=1) > threshold * within else "global"


# -------------------------------------------------------------------------------------------------------- memory


@contextmanager
def explaining_memory(shape: tuple[int, int], item_size: int, settings: SpectrumSettings) -> Iterator[None]:
    """Say how much memory a fit needs, and what would need less, where there is not enough.

    Parameters
    ----------
    shape : pair of int
        Numbers of signals and nodes.
    item_size : int
        Bytes of a value.
    settings : SpectrumSettings
        How the spectrum is found.

    Raises
    ------
    MemoryError
        In place of the one that gave no reason.
    """
    try:
        yield
    except MemoryError as error:
        needed, of, remedy = settings.memory(*shape, item_size)
        raise MemoryError(f"memory must hold about {needed / 1e9:.2g} GB for {of}; got less. {remedy}") from error
