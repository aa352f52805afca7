"""Reading signals: centre, spread and missing values, found block by block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np
from array_api_compat import array_namespace, device, is_array_api_obj, is_dask_array
from numpy.typing import ArrayLike

from spectralgp._basics.arrays import on_host
from spectralgp._basics.checks import Array, Indices, as_training_signals
from spectralgp._basics.extras import require
from spectralgp._basics.saved import UNSAVED, NotNegative, StoredAs, axes, gt
from spectralgp.graphs import GraphBase
from spectralgp.model.signals.core import LARGEST, Center, Reader, Scale, Signals, SignalStore, Units
from spectralgp.model.signals.levels import TYPICAL_WORTH, can_complete, complete_by_graph, relative_scales

BLOCK = 2**22  # values read at a time
LARGEST_UNSCALED = 1e70  # size of values that are not scaled: squares of variances are numbers
ROUNDING = 1e-14  # of the largest value: a spread below this is that of a constant


def read_signals(
    source: Any,
    center: Center = None,
    scale: Scale = None,
    *,
    keep_source: bool = False,
    graph: GraphBase | None = None,
    reach: float | None = None,
) -> Signals:
    """Signals from an array or a file, whose centre and spread are found block by block.

    Parameters
    ----------
    source : array or file of shape (n_signals, n_nodes)
        Anything with a shape and a dtype that can be sliced. NaN stands for a missing value.
    center : {"global", "node"} or None, default=None
        Subtract the mean of all values, or each node's own, or nothing.
    scale : {"global", "node"} or None, default=None
        Divide by the standard deviation of the centred values; or each node by its own, shrunk towards the common one
        by empirical Bayes.
    keep_source : bool, default=False
        Leave the signals in place, to be read again when needed: for those larger than memory or on a device. Arrays in
        memory are copied, so that later edits change nothing; files are not. Otherwise a centred and scaled copy is
        kept in memory, in double precision, as incomplete signals always are.
    graph : Graph, optional
        Graph from which the centre and the scale of a node without observations are predicted, equation (23b), if it
        has up to 2,000 nodes; otherwise they are those of all nodes.
    reach : float, optional
        Largest accepted size of a value; by default 1e140, or 1e70 without `scale`.

    Returns
    -------
    Signals
        Centred and scaled by the observed values alone.

    Raises
    ------
    ValueError
        If a value is infinite, or too large or too small to be squared (without `scale`, squared twice), or all are
        missing.

    Examples
    --------
    >>> import numpy as np
    >>> signals = read_signals(np.array([[1.0, 2.0], [3.0, 6.0]]), center="node")
    >>> signals.values.tolist(), signals.units.offset.tolist()
    ([[-1.0, -2.0], [1.0, 2.0]], [2.0, 4.0])
    """
    n_signals, n_nodes = source.shape
    reach, how = reach or (LARGEST_UNSCALED if scale is None else LARGEST), SignalView(center, scale, graph)
    mean, largest, means, variances = _first_look(source, "node" in (center, scale), reach)
    if np.isnan(mean):
        if is_dask_array(source):
            raise ValueError(
                "Y must be complete where it is a Dask array; got NaN. Impute the missing values, drop incomplete "
                "signals, or pass an array in memory with a Graph."
            )
        precision = "float32" if "float32" in str(source.dtype) else "float64"
        return _read_incomplete(np.asarray(on_host(source[:, :]), dtype=float), largest, how, precision)
    relative: Any = None
    if scale == "node":
        varies = float(np.mean(variances)) > ROUNDING**2
        scales = relative_scales(variances if varies else np.zeros(n_nodes), np.full(n_nodes, n_signals))
        relative = array_namespace(means).asarray(scales, device=device(means))
    reference: Any = means if center == "node" else mean
    if relative is not None and center is None:
        reference = 0.0
    if keep_source:
        factor = 1.0 if relative is None else 1 / relative
        gram: Any = sum(_of_each(source, _products, reference, factor, size=largest))
        total = float(np.trace(gram[:-1, :-1]))
    else:
        values = np.asarray(on_host(source[:, :]), dtype=float) - np.asarray(on_host(reference))
        shrunk = values / (largest if relative is None else largest * relative)
        total = float(np.vdot(shrunk, shrunk))
    spread = float(np.sqrt(total / (n_signals * n_nodes)))
    divisor = 1.0 if scale is None else largest * (spread if spread > ROUNDING else 1.0)
    level = np.zeros(n_signals + 1)
    level[-1] = -mean / divisor if center is None and relative is None else 0.0
    units = Units(reference, divisor, relative)
    rounding = ROUNDING * largest / divisor
    if keep_source:
        factors = np.append(np.full(n_signals, largest / divisor), 1.0)
        gram *= np.multiply.outer(factors, factors)
        if is_array_api_obj(source) and not isinstance(source, np.memmap) and not is_dask_array(source):
            source = array_namespace(source).asarray(source, copy=True)  # its owner may change an array in memory
        store = SignalStore(source, units, rounding, reference, units.divisor, gram)
    else:
        store = SignalStore(values / units.divisor, units, rounding)
    if relative is None:
        return Signals(store, center, level=level)
    # scaled nodes turn a constant into another signal: views of arrays in memory are read anew, others stay
    return Signals(store, level=level) if keep_source else Signals(store, center, how, level=level)


def _products(block: Any, reference: Any, factor: Any, *, size: float) -> Array:
    """Products with each other of the rows of a block, centred and scaled, and of a further row of ones."""
    rows, xp = (block - reference) / size * factor, array_namespace(block)
    rows = xp.concat([rows, xp.ones_like(rows[:1, :])])
    return np.asarray(on_host(rows @ rows.T))


@dataclass(frozen=True, eq=False)
class SignalView:
    """Reader of views: kinds of centre and scale, and the graph that predicts those of unobserved nodes."""

    center: Center
    scale: Scale
    graph: Annotated[GraphBase | None, UNSAVED] = None

    def __call__(self, values: Array, units: Units | None = None) -> Signals:
        """Read values with a centre and scales of their own, or in given units."""
        if units is not None:
            return read_in(units, values)
        return read_signals(values, self.center, self.scale, graph=self.graph)


def read_in(units: Units, values: Array, center: Center = None) -> Signals:
    """Read signals in given units; `center` says how their offset was estimated."""
    is_lazy = is_dask_array(values)
    read = read_signals(units.apply(values), keep_source=is_lazy, reach=LARGEST)
    store, level = read._store, read._level
    if not is_lazy:
        store = SignalStore(read.values, units, store.rounding, prototype=store.prototype)
        return Signals(store, center, observed=read._observed)
    # a level is part of the units of signals, so it is removed from them here
    units = replace(units, offset=units.offset - units.divisor * float(level[-1]))
    return Signals(replace(store, units=units), level=level)


def expected_signals(mean: Array, deviations: Array) -> Signals:
    """Signals given by their mean and by factors of their covariance, whose outer products add up to it."""
    return Signals(SignalStore(mean, Units(), 0.0), deviations=deviations)


def no_signals(n_nodes: int, units: Units) -> Signals:
    """Empty set of signals in given units."""
    return Signals(SignalStore(np.empty((0, n_nodes)), units, 0.0))


def _read_incomplete(values: Array, largest: float, how: SignalView, precision: str) -> Signals:
    """Incomplete signals, centred and scaled by observed values; unobserved nodes by predictions from the others."""
    center, scale, seen = how.center, how.scale, np.isfinite(values)
    counts = seen.sum(axis=0)
    known = counts > 0
    mean = float(np.mean(values[seen] / largest)) * largest
    means = np.where(known, np.sum(values, axis=0, where=seen) / np.maximum(counts, 1), mean)
    squares = np.sum(np.square((values - means) / largest), axis=0, where=seen)
    common, relative, offset_variance = float(np.sum(squares) / np.sum(counts)), None, None
    graph = how.graph if can_complete(how.graph) and not np.all(counts) else None
    scales = np.ones(counts.size)
    if common > ROUNDING**2 and (scale == "node" or graph is not None):
        scales = relative_scales(squares / np.maximum(counts, 1), counts)
        relative = scales if scale == "node" else None
    if graph is not None:
        if center == "node":
            errors = common * scales**2 / np.maximum(counts, 1)
            found, variances = complete_by_graph(graph, means / largest, errors, known)
            means, offset_variance = np.where(known, means, found * largest), variances * largest**2
        if relative is not None:
            logs, _ = complete_by_graph(graph, np.log(relative), 0.5 / (counts + TYPICAL_WORTH), known)
            relative = np.where(known, relative, np.exp(logs))
    offset: Array | float = means if center == "node" else mean if center == "global" else 0.0
    about = mean if center is None and relative is None else offset  # like complete signals
    centred = (values - about) / (largest if relative is None else largest * relative)
    spread = float(np.sqrt(np.mean(np.square(centred[seen]))))
    divisor = 1.0 if scale is None else largest * (spread if spread > ROUNDING else 1.0)
    units = Units(offset, divisor, relative, offset_variance)
    return IncompleteState(units.apply(values), units, center == "node", how, precision).signals


def as_training(signals: ArrayLike | Signals, n_signals: int, n_nodes: int) -> Signals:
    """Signals of a stated shape, from an array, neither centred nor scaled, or from `read_signals`."""
    if not isinstance(signals, Signals):
        return read_signals(as_training_signals(signals, n_signals, n_nodes))
    if signals.shape != (n_signals, n_nodes):
        raise ValueError(
            f"signals must have shape (n_signals, n_nodes) with n_signals = {n_signals} and n_nodes = {n_nodes}; got "
            f"{signals.shape}. Rows are signals, one for each input."
        )
    return signals


def _first_look(source: Any, by_node: bool, reach: float) -> tuple[float, float, Any, Any]:
    """Mean of all values, NaN if one is missing, and the largest size of one (or one); optionally the nodes' means.

    The nodes' variances come with their means, in units of that size, on the host.
    """
    looks = _of_each(source, _look, by_node=by_node)
    sizes, counts, extremes, block_means, node_means, node_variances = zip(*looks, strict=True)
    n_observed, largest = sum(counts), max(extremes)
    if np.isinf(largest):
        raise ValueError("Y must not hold infinite values; got some. Use NaN for missing values.")
    if n_observed == 0:
        raise ValueError("Y must hold at least one value; got nothing but NaN, which stands for missing values.")
    if not (largest == 0 or 1 / reach <= largest <= reach):
        unscaled = reach < LARGEST
        raise ValueError(
            f"Y must hold values between {1 / reach:g} and {reach:g} in size{' where scale=None' if unscaled else ''}, "
            f"whose squares are still numbers; got {largest:.3g} for the largest. "
            f"{'Pass scale=' + repr('global') + ', or change' if unscaled else 'Change'} the units of Y."
        )
    largest = largest or 1.0
    if n_observed < sum(sizes):
        return np.nan, largest, None, None
    mean = sum(own * (size / n_observed) for size, own in zip(sizes, block_means, strict=True))
    if not by_node:
        return mean, largest, None, None
    pairs = zip(node_variances, extremes, strict=True)
    variances = [np.asarray(on_host(own)) * (size / largest) ** 2 for own, size in pairs]
    return mean, largest, array_namespace(node_means[0]).concat(node_means), np.concatenate(variances)


def _look(block: Any, *, by_node: bool) -> tuple[int, int, float, float, Any, Any]:
    """Numbers of values and of observed ones, largest size, mean, and the nodes' means and variances in that size."""
    xp = array_namespace(block)
    seen = ~xp.isnan(block)
    size, n_observed = block.shape[0] * block.shape[1], int(xp.sum(xp.astype(seen, xp.int64)))
    largest = float(xp.max(xp.where(seen, xp.abs(block), xp.zeros_like(block))))
    has_mean = n_observed == size and largest <= LARGEST
    mean = float(xp.mean(block)) if has_mean else np.nan
    if not (has_mean and by_node):
        return size, n_observed, largest, mean, None, None
    means = xp.mean(block, axis=0)
    return size, n_observed, largest, mean, means, xp.mean(((block - means) / (largest or 1.0)) ** 2, axis=0)


def _of_each(source: Any, function: Callable[..., Any], *by_node: Any, **settings: Any) -> list[Any]:
    """Return the results of a function for each block of signals, in the order of the nodes.

    Blocks are float64 arrays of the source's own library, or NumPy's; for chunks of a Dask array the function runs on
    the workers. It takes a block, and the block's part of each of `by_node`: one number, or one per node.
    """
    lazy, n_nodes = is_dask_array(source), source.shape[1]
    width = max(1, BLOCK // source.shape[0])
    stops = np.cumsum([0, *source.chunks[1]]).tolist() if lazy else [*range(0, n_nodes, width), n_nodes]
    parts = [slice(*ends) for ends in pairwise(stops)]
    own = [[values if np.ndim(values) == 0 else values[part] for values in by_node] for part in parts]
    if lazy:
        dask: Any = require("dask", "dask", "to read Dask arrays")
        chunks = source.astype(np.float64).rechunk({0: -1}).to_delayed().ravel()
        work = dask.delayed(function, pure=False)
        return list(dask.compute(*(work(one, *values, **settings) for one, values in zip(chunks, own, strict=True))))
    found = []
    for part, values in zip(parts, own, strict=True):
        block = source[:, part] if is_array_api_obj(source) else np.asarray(source[:, part])
        xp = array_namespace(block)
        found.append(function(xp.astype(block, xp.float64), *values, **settings))
    return found


# --------------------------------------------------------------------------------------------------- for model files


@dataclass(frozen=True, eq=False)
class CompleteState:
    """State of complete signals, on the host: the fields of `SignalStore` and the parameters of `Signals`."""

    source: Annotated[Any, axes("_stored", "n_nodes", kinds="fiu")]
    offset: Annotated[Any, axes("n_nodes", or_number=True)]
    divisor: Annotated[Any, axes("n_nodes", or_number=True), gt(0)]
    units: Units
    gram: Annotated[Array, axes("_and_ones", "_and_ones")] | None  # None where signals are in memory
    rounding: NotNegative
    rows: Annotated[Indices, axes("n_signals")]
    level: Annotated[Array, axes("_and_ones")]
    recentres: Center
    read_as: Annotated[Reader | None, StoredAs(SignalView | None)]

    @property
    def signals(self) -> Signals:
        """The signals."""
        store = SignalStore(self.source, self.units, self.rounding, self.offset, self.divisor, self.gram)
        return Signals(store, self.recentres, self.read_as, rows=self.rows, level=self.level)


@dataclass(frozen=True, eq=False)
class IncompleteState:
    """State of incomplete signals: their values, units and reader."""

    # centred and scaled; NaN where a value is missing
    values: Annotated[Array, axes("n_signals", "n_nodes", allows_nan=True)]
    units: Units
    is_centred_by_node: bool
    read_as: Annotated[Reader | None, StoredAs(SignalView | None)]
    # of the user's signals, which operators on a large graph follow
    precision: Annotated[str, StoredAs(Literal["float32", "float64"])]

    @property
    def signals(self) -> Signals:
        """The signals."""
        observed = np.isfinite(self.values)
        rounding = ROUNDING * float(np.max(np.abs(self.values), where=observed, initial=0.0))
        store = SignalStore(self.values, self.units, rounding, prototype=np.empty((0, 0), dtype=self.precision))
        return Signals(store, "node" if self.is_centred_by_node else None, self.read_as, observed=observed)


def state_of(signals: Signals) -> CompleteState | IncompleteState:
    """State of signals for a file; files and arrays on devices are read into memory."""
    store, read_as = signals._store, signals._read

    def hosted(value: Any) -> Any:
        return value if np.ndim(value) == 0 else on_host(value)

    kept = store.units if signals.is_complete else signals.units
    relative = None if kept.relative is None else on_host(kept.relative)
    units = replace(kept, offset=hosted(kept.offset), relative=relative)
    if not signals.is_complete:
        precision = np.dtype(signals.like.dtype).name
        return IncompleteState(signals.values, units, signals.centred_by == "node", read_as, precision)
    source = store.source if isinstance(store.source, np.ndarray) else on_host(store.source[:, :])
    scaled_by = hosted(store.offset), hosted(store.divisor), units, store.products, store.rounding
    return CompleteState(source, *scaled_by, signals._rows, signals._level, signals._recentres, read_as)
