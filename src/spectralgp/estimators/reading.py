"""What a user gives an estimator, read and checked: parameters, graph, inputs and signals; answers in their form."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, validate_data

from spectralgp._basics.arrays import on_host, take
from spectralgp._basics.checks import Array, Indices, Mask, as_option, numbers_of, without_mask
from spectralgp._basics.tables import (
    WRITTEN,
    Layout,
    Table,
    as_table,
    check_same_order,
    frame_index,
    frame_names,
    is_data_array,
    match_columns,
    written,
)
from spectralgp.graphs import Graph, GraphBase, as_graph
from spectralgp.graphs.weights import chosen_nodes
from spectralgp.kernels import (
    GraphKernel,
    Identity,
    Independent,
    InputKernel,
    Polynomial,
    SpectralKernel,
    Standardised,
    as_input_kernel,
)
from spectralgp.learning import Solver, Task
from spectralgp.learning.candidates import Setting
from spectralgp.learning.fitting import Stacking
from spectralgp.learning.objective import check_noise
from spectralgp.operators import precision_of
from spectralgp.signals import Center, Scale, read_signals
from spectralgp.spectra import Chebyshev, Exact, SpectrumSettings

MOST_EXACT = 5_000  # nodes, beyond which spectrum="auto" gives up the eigendecomposition
MOST_SHRUNK = 2_000  # nodes: what is shrunk is a matrix of nodes by nodes
DIFFERENT_LEVELS = 4.0  # variance of nodes' means over that by chance, beyond which nodes have levels of their own
DROWNING_LEVELS = 1e4  # the same ratio, beyond which levels are all that a model with a term for them would see
LARGEST_INPUT = 1e150  # whose square is still a number
UNOBSERVED = "NaN stands for what was not observed."


@dataclass(frozen=True, eq=False)
class Form:
    """The form of the user's data at `fit`: order of the nodes, kind of table, rows. Answers are given in it."""

    names: tuple[Hashable, ...] | None  # of the columns of Y; None if neither they nor the graph have any
    columns: Indices | None = None  # the column of each node of the graph; None where both orders are the same
    is_flat: bool = False  # whether Y was one-dimensional
    layout: Layout | None = None  # of the table that Y was; None for arrays
    is_in_memory: bool = True  # whether signals are read into memory
    kept: Mask = field(default_factory=lambda: np.empty(0, dtype=bool))  # which rows of Y hold any value

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

    def table(self, given: Any, argument: str) -> Any:
        """Inputs ("X") or signals as a `Table` if they are one; rows of xarray are along their dimension at `fit`."""
        rows = None if self.layout is None or self.layout.dims is None else self.layout.dims[0]
        return as_table(given, argument, names=None if argument == "X" else self.names, rows=rows)

    def signals(self, Y: Any, n_nodes: int, estimator: Any) -> Any:
        """Signals, shape (n_inputs, n_nodes), with their columns in the order of those at `fit`."""
        if self.is_in_memory:
            signals: Any = in_memory(Y, estimator)
            _where_seen(signals, frame_names(Y))
        else:
            signals = sliceable(Y)
            signals = signals if is_array_api_obj(signals) else np.asarray(signals[:, :])
        signals = signals[:, None] if signals.ndim == 1 and self.is_flat else signals
        names = frame_names(Y)
        if names is not None and self.names is not None:
            return take(signals, match_columns(names, self.names), axis=1)
        if signals.ndim == 1 or signals.shape[1] != n_nodes:
            raise ValueError(
                f"Y must have shape (n_inputs, n_nodes) with n_nodes = {n_nodes}; got {signals.shape}. "
                "Rows are signals: did you pass the transpose?"
            )
        return signals

    def among_given(self, values: Any) -> Any:
        """Values of the training signals, with NaN for the rows of `Y` at `fit` that had none."""
        if self.kept.all():
            return values
        all_rows = np.full((self.kept.size, *values.shape[1:]), np.nan)
        all_rows[self.kept] = values
        return all_rows

    def answer(self, values: Any, output: str, names: Sequence[Hashable] | None, labels: Any) -> Any:
        """Values in the user's order as the kind of table that `set_output` chose; as `Y` was at `fit` by default."""
        if output == "numpy":
            return np.asarray(on_host(values))
        layout = self.layout if output == "default" else Layout(output)
        if output == "xarray" and self.layout is not None and self.layout.library == "xarray":
            layout = self.layout
        return values if layout is None else written(values, layout, names, labels)


@dataclass(frozen=True, eq=False)
class Training:
    """What `fit` was given, read: in the graph's order of the nodes, and without rows that hold no value."""

    graph: GraphBase
    inputs: Array
    values: Any  # the signals, shape (n_signals, n_nodes)
    seen: Mask | None  # which of the values were observed; None where they were not looked at
    carried: Indices | None  # the column of the inputs that may carry over to each node
    input_kernel: InputKernel | None  # None for the default one, whose terms are open
    graph_kernels: list[GraphKernel]  # to learn; several are stacked
    spectrum: SpectrumSettings
    form: Form
    has_inputs: bool


def read_training(estimator: Any, X: Any, Y: Any) -> Training:
    """Read what `fit` is given, and check everything that can be wrong with it."""
    names = None if estimator.graph is None or not is_data_array(Y) else as_any_graph(estimator.graph).names
    Y = as_table(Y, "Y", names=names)
    layout = Y.layout if isinstance(Y, Table) and Y.layout.library in WRITTEN else None
    X = as_table(X, "X", rows=layout.dims[0] if layout is not None and layout.dims is not None else None)
    check_same_order(X, Y)
    settings = _spectrum_settings(estimator.spectrum, estimator.graph, Y)
    values = in_memory(Y, estimator) if settings.reads_into_memory else sliceable(Y)
    seen = _where_seen(values, frame_names(Y), refuse=settings.reads_into_memory)
    kernel = _input_kernel(estimator.input_kernel, X)
    reader = Standardised.of(np.empty((1, 0))) if kernel is None else kernel
    inputs = _training_inputs(estimator, X, reader, values.shape[0])
    is_flat = len(values.shape) == 1
    graph, form = read_graph(estimator.graph, 1 if is_flat else values.shape[1], frame_names(Y))
    values = graph.as_native(form.to_graph(values[:, None] if is_flat else values))
    kept = np.ones(values.shape[0], dtype=bool)
    if seen is not None:
        seen = form.to_graph(seen[:, None] if is_flat else seen)
        # nothing observed at all is refused later
        kept = seen.any(axis=1) if seen.any() else kept
    if not kept.all():
        rows = np.flatnonzero(kept)
        inputs, values, seen = reader.subset(inputs, rows), values[rows], None if seen is None else seen[rows]
    carried = carried_columns(estimator.carry, X, reader.has_features, inputs.shape[1], form, graph.n_nodes)
    kernels = _graph_kernels(estimator.graph_kernel, estimator.graph is not None)
    form = replace(form, is_flat=is_flat, layout=layout, is_in_memory=settings.reads_into_memory, kept=kept)
    return Training(graph, inputs, values, seen, carried, kernel, kernels, settings, form, X is not None)


def setting_of(estimator: Any, training: Training, solver: Solver) -> Setting:
    """Data and decisions, with those that are left open decided."""
    graph, kernel, settings = training.graph, training.input_kernel, training.spectrum
    is_papers = estimator.residual is None or solver.only_papers_model
    is_small = settings.has_node_covariances and graph.n_nodes <= MOST_SHRUNK and training.values.shape[0] > 2
    center, scales = estimator.center, [estimator.scale]
    if center == "auto":
        # the default kernel has levels, unless they are so large as to drown all else
        center = _chosen_center(training, DROWNING_LEVELS if kernel is None else DIFFERENT_LEVELS)
    if estimator.scale == "auto":
        is_noise_known = estimator.noise_variance is not None and not isinstance(estimator.noise_variance, tuple)
        is_given = settings.needs_passes or is_noise_known or is_papers or graph.n_nodes == 1
        scales = ["global"] if is_given else ["node", "global"]
    signals: dict[Scale, Any] = {
        scale: read_signals(training.values, center, scale, keep_source=not settings.reads_into_memory)
        for scale in scales
    }
    if kernel is not None and all(one.has_free_amplitude for one in training.graph_kernels):
        kernel = kernel.without_amplitude()  # the factor is the graph kernel's
    first = next(iter(signals.values()))
    task = Task(
        graph, kernel or Independent(), training.inputs, first, estimator.noise_variance, estimator.prior, settings
    )
    residual = None if is_papers or not training.has_inputs else estimator.residual
    shrunk = not is_papers and isinstance(estimator.residual, str) and is_small
    return Setting(task, signals, kernel is None, training.carried, residual, shrunk)


def check_parameters(estimator: Any, solver: Solver) -> None:
    """Refuse settings that say nothing, before anything is computed."""
    for name, options in (
        ("center", ("auto", "global", "node")),
        ("scale", ("auto", "global", "node")),
        ("prior", ("weak",)),
    ):
        if getattr(estimator, name) is not None:
            as_option(getattr(estimator, name), name, options)
    residual = estimator.residual
    if isinstance(residual, GraphKernel):
        if not isinstance(residual, SpectralKernel):
            raise TypeError(f"residual must be a function on the spectrum, such as Polynomial(2); got {residual!r}.")
        if solver.only_papers_model:
            raise ValueError(
                f"residual must be None or 'auto' with solver='lagrangian', the paper's algorithm for the paper's "
                f"model; got {residual!r}. Use solver='sqp'."
            )
    elif residual is not None and residual != "auto":
        raise ValueError(
            f"residual must be a graph kernel, 'auto' or None; got {residual!r}. 'auto' shrinks where that "
            "can be done: on an exact spectrum of up to 2,000 nodes, with three signals or more."
        )
    check_noise(estimator.noise_variance)
    if not isinstance(estimator.stacking, Stacking | None):
        raise TypeError(f"stacking must be a Stacking(...) or None; got {estimator.stacking!r}.")
    if not isinstance(estimator.spectrum, SpectrumSettings):
        as_option(estimator.spectrum, "spectrum", ("auto", "exact", "chebyshev"))


def _spectrum_settings(given: Any, graph: Any, Y: Any) -> SpectrumSettings:
    """Settings of the spectrum, chosen by the size of the graph where they are left open; a file is not read for it."""
    known = graph if isinstance(graph, GraphBase) else None
    if isinstance(given, str):
        is_large = known is not None and not known.is_whole
        if graph is not None and not is_large:
            shape = Y.shape if hasattr(Y, "shape") else np.shape(Y)
            is_large = len(shape) == 2 and shape[1] > MOST_EXACT
        given = Chebyshev() if given == "chebyshev" or (given == "auto" and is_large) else Exact()
    given.check(known)
    settings: SpectrumSettings = given
    return settings


def _graph_kernels(given: Any, has_graph: bool) -> list[GraphKernel]:
    """The graph kernels to learn."""
    if given is None:
        given = Polynomial("auto") if has_graph else Identity()
    listed = [given] if isinstance(given, GraphKernel) else given
    remedy = "For a filter of your own, wrap it in Response(function); input kernels go into input_kernel=."
    if not isinstance(listed, Sequence) or isinstance(listed, str) or not listed:
        raise TypeError(
            f"graph_kernel must be a graph kernel such as Polynomial(3), or a list of them; got {given!r}. {remedy}"
        )
    foreign = [index for index, kernel in enumerate(listed) if not isinstance(kernel, GraphKernel)]
    if foreign:
        raise TypeError(
            f"graph_kernel must be a graph kernel, or a list of them; got {listed[foreign[0]]!r} at position "
            f"{foreign[0]}, of type {type(listed[foreign[0]]).__module__}. {remedy}"
        )
    if not has_graph and any(not kernel.needs_no_graph for kernel in listed):
        raise ValueError(
            f"graph must be given to use graph_kernel={given!r}; got None. "
            "Pass a Graph, an adjacency matrix or a networkx graph."
        )
    return [member for kernel in listed for member in kernel.members()]


# --------------------------------------------------------------------------------------------------------- graph


def as_any_graph(graph: Any) -> GraphBase:
    """A graph from whatever describes one; a partitioned one as it is."""
    return graph if isinstance(graph, GraphBase) else as_graph(graph)


def read_graph(graph: Any, n_columns: int, names: tuple[Any, ...] | None) -> tuple[GraphBase, Form]:
    """The graph, edgeless if there is none, and the form of columns on it."""
    if graph is None:
        return Graph.edgeless(n_columns), Form(names)
    known = as_any_graph(graph)
    own = None if known.names is None else tuple(known.names)
    if names is not None and own is not None and not (_counts(names) and not _counts(own)):
        columns = match_columns(names, own)
        return known, Form(names, None if np.array_equal(columns, np.arange(columns.size)) else columns)
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
    return known, Form(own if names is None or own is not None else names)


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
        return np.asarray(numbers_of(signals) if signals.dtype.kind == "O" else signals, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Y must hold numbers; got {error}. Convert it to numbers first.") from error


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


def _where_seen(values: Any, names: tuple[Any, ...] | None, refuse: bool = True) -> Mask | None:
    """Which values of an array were observed; infinity is refused, or left to be refused block by block."""
    if not isinstance(values, np.ndarray):
        return None
    seen = np.isfinite(values)
    if not seen.all():
        is_infinite = ~seen & ~np.isnan(values)
        if refuse:
            _refuse(values, is_infinite, "infinite", "Y", names, UNOBSERVED)
        seen |= is_infinite
    return seen


def _refuse(values: Array, wrong: Mask, kind: str, argument: str, columns: tuple[Any, ...] | None, remedy: str) -> None:
    """Refuse values where any is wrong, and say where the first of them is."""
    if not wrong.any():
        return
    first = tuple(int(index) for index in np.argwhere(wrong)[0])
    what = "NaN" if np.isnan(values[first]) else "infinity"
    where = f"row {first[0]}"
    if len(first) == 2:
        where += f", column {first[1] if columns is None else repr(columns[first[1]])}"
    raise ValueError(
        f"{argument} must be finite; {argument} contains {what} at {where} ({int(wrong.sum())} values that are {kind} "
        f"in all). {remedy}"
    )


def _chosen_center(training: Training, threshold: float) -> Center:
    """By "node" if the nodes' means vary more than `threshold` times what sampling noise explains, else "global"."""
    values, seen = training.values, training.seen
    n_signals, n_nodes = values.shape
    if n_signals < 3 or n_nodes < 2 or seen is None:
        return "global"
    often = seen.sum(axis=0) > 1  # nodes observed less say nothing of a level and a spread
    largest = np.max(np.abs(values), where=seen, initial=0.0)
    if not 0 < largest < np.inf or np.count_nonzero(often) < 2:
        return "global"
    values, seen = values[:, often] / largest, seen[:, often]
    means, variances = np.mean(values, axis=0, where=seen), np.var(values, axis=0, ddof=1, where=seen)
    within = np.mean(variances / seen.sum(axis=0))
    return "node" if np.var(means, ddof=1) > threshold * within else "global"


def as_one_signal(observed: Any, is_flat: bool) -> Any:
    """A single signal as a row, unless signals are single values."""
    if is_flat or len(np.shape(observed)) != 1:
        return observed
    return observed.as_one_row() if isinstance(observed, Table) else np.ma.atleast_2d(observed)


# -------------------------------------------------------------------------------------------------------- inputs


def _input_kernel(given: Any, X: Any) -> InputKernel | None:
    """Covariance between signals, not yet learnt; None for the default one, whose terms are open."""
    kernel = as_input_kernel(given)
    return Independent() if X is None else None if given is None else kernel


def _training_inputs(estimator: Any, X: Any, kernel: InputKernel, n_signals: int) -> Array:
    if X is None:
        for name in ("n_features_in_", "feature_names_in_"):  # of an earlier fit
            estimator.__dict__.pop(name, None)
        return np.empty((n_signals, 0))
    inputs = kernel.training(checked_inputs(estimator, X, reset=True))
    if inputs.shape[0] != n_signals:
        raise ValueError(
            f"X and Y must have the same number of rows, one per signal; got {inputs.shape[0]} and {n_signals}. "
            "Rows are signals: did you pass a transpose?"
        )
    return inputs


def checked_inputs(estimator: Any, X: Any, reset: bool = False) -> Array:
    """Inputs as finite numbers, with the names and the number of features learnt (`reset`) or compared."""
    _refuse_words(X)
    options = {"dtype": np.float64, "ensure_all_finite": False, "copy": reset}
    if isinstance(X, Table) and len(X.shape) == 2:
        validate_data(estimator, X.native, reset=reset, skip_check_array=True)  # names, which values have lost
        values = check_array(X.values, input_name="X", estimator=estimator, **options)
    else:
        values = validate_data(estimator, np.asarray(X) if isinstance(X, Table) else X, reset=reset, **options)
    _refuse(
        values,
        ~np.isfinite(values),
        "NaN or infinite",
        "X",
        frame_names(X),
        "Drop the rows that have them, or fill them in.",
    )
    if values.size and np.max(np.abs(values)) > LARGEST_INPUT:
        raise ValueError(
            f"X must hold values up to {LARGEST_INPUT:g} in size, whose squares are still numbers; got "
            f"{np.max(np.abs(values)):.3g}. Change the units of X."
        )
    return np.asarray(values, dtype=float)


def _refuse_words(X: Any) -> None:
    """Refuse masked inputs, words that look like numbers, and no rows: each would be taken for something else."""
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


def carried_columns(
    carry: Any, X: Any, has_features: bool, n_features: int, form: Form, n_nodes: int
) -> Indices | None:
    """The column of the inputs that carries over to each node of the graph; None where none does."""
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
        found = _nodes_among(places, columns is not None, n_features, form, n_nodes)
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
    return form.to_graph(np.array([found], dtype=np.intp))[0]


def _nodes_among(
    places: dict[Hashable, int], has_names: bool, n_features: int, form: Form, n_nodes: int
) -> list[int] | None:
    """Columns of the inputs that are the nodes: by name, or by their number where the inputs have no names."""
    if not has_names:
        return list(range(n_nodes)) if n_features == n_nodes else None
    names = form.names or ()
    return [places[name] for name in names] if names and all(name in places for name in names) else None


@contextmanager
def explaining_memory(training: Training) -> Iterator[None]:
    """Say how much memory a fit needs, and what would need less, where there is not enough."""
    try:
        yield
    except MemoryError as error:
        item_size = precision_of(training.values).itemsize
        n_signals, n_nodes = training.values.shape
        needed, of, remedy = training.spectrum.memory(n_signals, n_nodes, item_size)
        raise MemoryError(f"memory must hold about {needed / 1e9:.2g} GB for {of}; got less. {remedy}") from error


def labels_of(*tables: Any) -> Any:
    """Row labels of the first table that has any."""
    return next((index for index in map(frame_index, tables) if index is not None), None)
