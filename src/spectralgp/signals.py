"""Signals on the nodes of a graph: where they are, in which units, and which of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj
from numpy.typing import ArrayLike, NDArray

from spectralgp._arrays import on_host, take
from spectralgp._checks import Array, as_training_signals
from spectralgp._operators import MomentPass, Operator
from spectralgp.units import Units

Center = Literal["global", "node"] | None
Scale = Literal["global", "node"] | None
Indices = NDArray[np.intp]

BLOCK = 2**22  # values read at a time
LARGEST, SMALLEST = 1e140, 1e-140  # sizes of values whose squares are still numbers
ROUNDING = 1e-14  # of the largest value: a spread below this is that of a constant
PRIOR_SIGNALS = 8  # that the common variance is worth, beside the signals, in the variance of a node


@dataclass(eq=False)
class _Store:
    """What all views of some signals share: the rows, centred and scaled, and what was computed of them.

    The rows are counted from zero; one more, of ones, stands after them, so that a level is a combination of rows too.

    Parameters
    ----------
    source : array or file of shape (n_signals, n_nodes)
        The signals as they are kept.
    offset, divisor
        What is still to be subtracted from the source, and to be divided by.
    units : Units
        What was done to the signals in all.
    gram : ndarray of shape (n_signals + 1, n_signals + 1)
        Products of the rows with each other.
    rounding : float
        What rounding alone may leave of a value.
    """

    source: Any
    offset: Any
    divisor: Any
    units: Units
    gram: Array
    rounding: float
    passes: dict[Operator, MomentPass] = field(default_factory=dict)
    transforms: list[tuple[Array, Array]] = field(default_factory=list)

    @cached_property
    def values(self) -> Array:
        """The rows in memory, without that of ones."""
        rows = np.asarray(on_host(self.source[:, :]), dtype=float)
        if np.ndim(self.offset) == 0 and self.offset == 0.0 and np.ndim(self.divisor) == 0 and self.divisor == 1.0:
            return rows
        return (rows - np.asarray(on_host(self.offset))) / np.asarray(on_host(self.divisor))

    def transform(self, matrix: Array) -> Array:
        """The rows times a matrix (n_nodes, n); the last product is remembered for each matrix."""
        for known, product in self.transforms:
            if known is matrix:
                return product
        product = np.vstack([self.values @ matrix, matrix.sum(axis=0)])
        self.transforms.append((matrix, product))
        return product

    def load(self, operator: Operator) -> Any:
        """The rows as columns of an operator's block, without that of ones."""
        block = operator.load(self.source)
        block -= self.offset if np.ndim(self.offset) == 0 else operator.load(self.offset[None, :])
        block *= 1 / self.divisor if np.ndim(self.divisor) == 0 else operator.load((1 / self.divisor)[None, :])
        return block

    def moments(self, operator: Operator, n_moments: int) -> Array:
        """Products of the rows with each other after ``T_k(A)``: equation (11)."""
        known = self.passes.get(operator)
        if known is None or (known.is_released and known.n_moments < n_moments):
            block = self.load(operator)
            if not operator.keeps_constants:
                block = array_namespace(block).concat([block, operator.zeros(1) + 1], axis=1)
            known = self.passes[operator] = MomentPass(operator, block, gram=True)
        known.extend(n_moments)
        moments = known.moments[:n_moments]
        if not operator.keeps_constants:
            return moments
        # ones are an eigenvector of A with eigenvalue -1, so their products are known without a column of their own
        signs = (-1.0) ** np.arange(n_moments)[:, None, None]
        border = signs * self.gram[-1, :-1]
        return np.block([[moments, np.swapaxes(border, 1, 2)], [border, signs * self.gram[-1, -1]]])


class Signals:
    """Signals in rows, one value a node, centred and divided by their spread; or some of them. Made by `read_signals`.

    Some of the signals are a view, which shares what was computed of all and is centred by itself.

    Parameters
    ----------
    store : object
        What views share.
    rows : ndarray of int
        Which of the signals.
    level : ndarray of shape (n_signals + 1,)
        The combination of the rows of the store that is subtracted from each.
    recentres : {"global", "node"} or None
        What a further view subtracts.
    rescales : bool, default=False
        Whether a further view finds the scales of the nodes anew, and its centre with them.
    """

    def __init__(self, store: _Store, rows: Indices, level: Array, recentres: Center, rescales: bool = False) -> None:
        self._store, self._rows, self._level, self._recentres = store, rows, level, recentres
        self._rescales = rescales

    @property
    def shape(self) -> tuple[int, int]:
        """Number of signals and of nodes."""
        return self._rows.size, self._store.source.shape[1]

    @property
    def size(self) -> int:
        """Number of values."""
        return self.shape[0] * self.shape[1]

    @property
    def like(self) -> Any:
        """The array or file that holds the signals: operators follow its library, device and precision."""
        return self._store.source

    @property
    def is_centred_by_node(self) -> bool:
        """Whether each node's own mean was subtracted."""
        return self._recentres == "node"

    @property
    def units(self) -> Units:
        """What turns these signals back into those that came in."""
        units, level = self._store.units, float(self._level[-1])
        if np.any(self._level[:-1]):
            offset = units.offset + units.divisor * (level + self._level[:-1] @ self._store.values)
        else:
            offset = units.offset + units.divisor * level if level else units.offset
        return Units(offset, units.spread, units.relative)

    @property
    def mean_square(self) -> float:
        """Mean of the squared values."""
        return float(np.mean(np.diagonal(self._seen(self._store.gram)))) / self.shape[1]

    @property
    def variance(self) -> float:
        """Variance of the values about their mean; zero where there is nothing but rounding."""
        # no level of ones: it does not change a variance, and may be so large as to drown it
        shifted = Signals(self._store, self._rows, np.append(self._level[:-1], 0.0), self._recentres)
        gram, ones = self._store.gram, self._store.gram[-1]
        mean = float(np.mean(ones[self._rows]) - shifted._level @ ones) / gram[-1, -1]
        variance = float(shifted.mean_square - mean**2)
        return variance if variance > self._store.rounding**2 else 0.0

    @property
    def variance_within(self) -> float:
        """Variance of the values about their nodes' means; zero where there is nothing but rounding."""
        gram, n_signals = self._seen(self._store.gram), self.shape[0]
        variance = float(np.trace(gram) - gram.sum() / n_signals) / self.size
        return variance if variance > self._store.rounding**2 else 0.0

    def fold(self, kept: Indices, held_out: Indices) -> tuple[Signals, Signals]:
        """Some of the signals, and others, both with the centre of the former subtracted, and in its scales."""
        if self._rescales:
            return self._reread(kept, held_out)
        rows, level = self._rows[kept], self._level
        if self._recentres == "node":
            level = np.bincount(rows, minlength=level.size) / rows.size
        elif self._recentres == "global":
            level = np.zeros(level.size)
            level[-1] = np.mean(self._store.gram[-1, rows]) / self._store.gram[-1, -1]
        store, recentres = self._store, self._recentres
        return Signals(store, rows, level, recentres), Signals(store, self._rows[held_out], level, recentres)

    def _reread(self, kept: Indices, held_out: Indices) -> tuple[Signals, Signals]:
        raw, center = self.units.mean(self.values), self._recentres
        chosen = read_signals(raw[kept], center, "node")
        others = chosen.units.apply(raw[held_out])
        return chosen, read_signals(others)._in(chosen.units)

    def _in(self, units: Units) -> Signals:
        """The same values, said to be in other units."""
        # a view's level is part of its units, so that it is taken out here
        offset = units.offset - units.divisor * float(self._level[-1])
        store = dataclasses.replace(self._store, units=Units(offset, units.spread, units.relative))
        return Signals(store, self._rows, self._level, None)

    def subset(self, rows: Indices) -> Signals:
        """Some of the signals, with a centre of their own."""
        return self.fold(rows, rows)[0]

    def followed_by(self, other: Signals) -> Signals | None:
        """These signals and then others, if both are views of the same ones with the same centre."""
        if self._store is not other._store or not np.array_equal(self._level, other._level):
            return None
        return Signals(self._store, np.concatenate([self._rows, other._rows]), self._level, self._recentres)

    @property
    def values(self) -> Array:
        """The signals in memory, shape (n_signals, n_nodes)."""
        values = self._store.values[self._rows]
        return values - (self._level[:-1] @ self._store.values + self._level[-1]) if np.any(self._level) else values

    def transform(self, matrix: Array) -> Array:
        """The signals times a matrix (n_nodes, n)."""
        product = self._store.transform(matrix)
        return product[self._rows] - self._level @ product if np.any(self._level) else product[self._rows]

    def columns(self, operator: Operator) -> Any:
        """The signals as columns of a block of an operator."""
        block = self._store.load(operator)
        chosen = block if self._is_whole else take(block, self._rows, axis=1)
        if np.any(self._level):
            chosen = chosen - (operator.combine(block, self._level[:-1, None]) + float(self._level[-1]))
        return chosen

    def moments(self, operator: Operator, n_moments: int) -> Array:
        """``C_k`` of equation (11), shape (n_moments, n_signals, n_signals)."""
        return self._seen(self._store.moments(operator, n_moments))

    def release(self) -> None:
        """Forget the states of recurrences, which more moments would need, and keep the moments."""
        for known in self._store.passes.values():
            known.release()

    @property
    def _is_whole(self) -> bool:
        return np.array_equal(self._rows, np.arange(self._store.source.shape[0]))

    def _seen(self, products: Array) -> Array:
        """Products of the store's rows, along the last two axes, as those of the view's."""
        chosen = products[..., self._rows[:, None], self._rows]
        if not np.any(self._level):
            return chosen
        crosses = products @ self._level
        across = crosses[..., self._rows]
        both = crosses @ self._level
        return chosen - across[..., :, None] - across[..., None, :] + both[..., None, None]


def read_signals(source: Any, center: Center = None, scale: Scale = None, *, keep_source: bool = False) -> Signals:
    """Signals from an array or a file, whose centre and spread are found block by block.

    Parameters
    ----------
    source : array or file of shape (n_signals, n_nodes)
        Anything with a shape and a dtype that can be sliced; finite numbers.
    center : {"global", "node"} or None, default=None
        Subtract the mean of all values, or each node's own, or nothing.
    scale : {"global", "node"} or None, default=None
        Divide by the standard deviation that is left; or each node by its own, shrunk towards the common one: its
        variance is averaged with that of all nodes, as if eight more signals had been seen.
    keep_source : bool, default=False
        Leave the signals where they are and as they are, to be read again when needed: for those larger than memory or
        on a device. Arrays in memory are copied, so that later edits change nothing; files are not. Otherwise a centred
        and scaled copy is kept in memory, in double precision.

    Raises
    ------
    ValueError
        If a value is not finite, or too large or too small to be squared.

    Examples
    --------
    >>> import numpy as np
    >>> signals = read_signals(np.array([[1.0, 2.0], [3.0, 6.0]]), center="node")
    >>> signals.values.tolist(), signals.units.offset.tolist()
    ([[-1.0, -2.0], [1.0, 2.0]], [2.0, 4.0])
    """
    n_signals, n_nodes = source.shape
    mean, largest, means = _first_look(source, by_node="node" in (center, scale))
    relative = None if scale != "node" else _relative_scales(source, means, largest)
    reference: Any = means if center == "node" else mean
    if relative is not None and center is None:
        reference = 0.0
    ones: Any = 1.0 if relative is None else 1 / relative
    gram = np.zeros((n_signals + 1, n_signals + 1))
    for columns, block in _blocks(source):
        xp = array_namespace(block)
        rows = (block - (reference[columns] if np.ndim(reference) else reference)) / largest
        rows = rows if relative is None else rows * ones[columns]
        gram[:-1, :-1] += _on_host(rows @ rows.T)
        gram[:-1, -1] += _on_host(xp.sum(rows, axis=1))
    gram[-1, :-1] = gram[:-1, -1]
    gram[-1, -1] = n_nodes
    spread = float(np.sqrt(np.trace(gram[:-1, :-1]) / (n_signals * n_nodes)))
    divisor = largest * spread if scale is not None and spread > ROUNDING else 1.0
    factors = np.append(np.full(n_signals, largest / divisor), 1.0)
    gram *= np.multiply.outer(factors, factors)
    level = np.zeros(n_signals + 1)
    level[-1] = -mean / divisor if center is None and relative is None else 0.0
    units = Units(reference, divisor, relative)
    rounding = ROUNDING * largest / divisor
    if keep_source:
        store = _Store(_owned(source), reference, units.divisor, units, gram, rounding)
    else:
        values = (np.asarray(on_host(source[:, :]), dtype=float) - np.asarray(on_host(reference))) / units.divisor
        store = _Store(values, 0.0, 1.0, units, gram, rounding)
    if relative is None:
        return Signals(store, np.arange(n_signals), level, center)
    # a constant is none any more after nodes were scaled: views of what is in memory are read anew, others stay
    return Signals(store, np.arange(n_signals), level, None if keep_source else center, rescales=not keep_source)


def _relative_scales(source: Any, means: Any, largest: float) -> Any:
    """Standard deviations of the nodes about their means, shrunk towards their root mean square, relative to that."""
    variances = []
    for columns, block in _blocks(source):
        xp = array_namespace(block)
        variances.append(xp.mean(((block - means[columns]) / largest) ** 2, axis=0))
    variance, n_signals = array_namespace(variances[0]).concat(variances), source.shape[0]
    common = float(array_namespace(variance).mean(variance))
    if common <= ROUNDING**2:
        return variance * 0.0 + 1.0
    shrunk = (n_signals * variance / common + PRIOR_SIGNALS) / (n_signals + PRIOR_SIGNALS)
    return array_namespace(variance).sqrt(shrunk)


def as_training(signals: ArrayLike | Signals, n_signals: int, n_nodes: int) -> Signals:
    """Signals of a stated shape, from an array as it is or from `read_signals`.

    Raises
    ------
    ValueError
        If the shape is another, or an array holds anything but finite numbers.
    """
    if not isinstance(signals, Signals):
        return read_signals(as_training_signals(signals, n_signals, n_nodes))
    if signals.shape != (n_signals, n_nodes):
        raise ValueError(
            f"signals must have shape (n_signals, n_nodes) with n_signals = {n_signals} and n_nodes = {n_nodes}; got "
            f"{signals.shape}. Rows are signals, one for each input."
        )
    return signals


def _first_look(source: Any, by_node: bool) -> tuple[float, float, Any]:
    """Mean of all values, largest size of one (or one), and the nodes' means if they are wanted."""
    mean, count, largest, means = 0.0, 0, 0.0, []
    for _, block in _blocks(source):
        xp = array_namespace(block)
        if not bool(xp.all(xp.isfinite(block))):
            raise ValueError("Y must be finite; got NaN or infinity. Remove or fill in such values first.")
        largest = max(largest, float(xp.max(xp.abs(block))))
        if largest > LARGEST:
            break
        size = block.shape[0] * block.shape[1]
        mean += (float(xp.mean(block)) - mean) * size / (count + size)
        count += size
        if by_node:
            means.append(xp.mean(block, axis=0))
    if not (largest == 0 or SMALLEST <= largest <= LARGEST):
        raise ValueError(
            f"Y must hold values between {SMALLEST:g} and {LARGEST:g} in size, whose squares are still numbers; got "
            f"{largest:.3g} for the largest. Change the units of Y."
        )
    return mean, largest or 1.0, array_namespace(means[0]).concat(means) if means else None


def _blocks(source: Any) -> Iterator[tuple[slice, Any]]:
    """The signals by blocks of nodes, as float64 arrays of their own library, or NumPy's."""
    width = max(1, BLOCK // max(1, source.shape[0]))
    for start in range(0, source.shape[1], width):
        columns = slice(start, min(start + width, source.shape[1]))
        block = source[:, columns]
        block = block if is_array_api_obj(block) else np.asarray(block)
        yield columns, array_namespace(block).astype(block, array_namespace(block).float64)


def _owned(source: Any) -> Any:
    """A copy of an array in memory, which its owner may change; a file as it is."""
    if not is_array_api_obj(source) or isinstance(source, np.memmap):
        return source
    return array_namespace(source).asarray(source, copy=True)


def _on_host(array: Any) -> Array:
    return np.asarray(on_host(array), dtype=float)
