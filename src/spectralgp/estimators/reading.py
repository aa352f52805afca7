"""Parameters, graph, inputs and signals of estimators, read and checked; answers in the form of the data."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from typing import Any, Literal, Self, TypeVar, cast

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from spectralgp._basics import tables
from spectralgp._basics.arrays import few_threads, on_host, take
from spectralgp._basics.checks import Array, Indices, Mask, as_option, numbers_of, without_mask
from spectralgp.graphs import Graph, GraphBase, LearntGraph, WeightFamily, as_graph
from spectralgp.graphs.operators import precision_of
from spectralgp.graphs.weights import chosen_nodes, is_range
from spectralgp.learning import Solver, Task
from spectralgp.learning.candidates import Choices, GraphOf, Setting, Stacking
from spectralgp.learning.objective import check_noise
from spectralgp.learning.time_order import FEWEST_IN_TIME, TimeOrder, time_order
from spectralgp.model import kernels
from spectralgp.model.fields import Changes, Logarithms, ObservationModel, Transformation
from spectralgp.model.fields.observations import MOST_DENSE
from spectralgp.model.kernels import GraphKernel, SpectralKernel
from spectralgp.model.kernels.inputs import InputForm
from spectralgp.model.likelihoods import Gaussian
from spectralgp.model.signals import Center, Units, can_complete, read_in, read_signals
from spectralgp.model.spectra import Chebyshev, Exact, SpectrumSettings

Method = TypeVar("Method", bound=Callable[..., Any])

MOST_EXACT = 5_000  # nodes of an eigendecomposition by spectrum="auto"
MOST_SHRUNK = 2_000  # nodes of a shrunk covariance, a matrix of nodes by nodes
SPARSE = 50  # nodes per mean number of neighbours, above which sparse products are faster than dense ones
DIFFERENT_LEVELS = 4.0  # variance of nodes' means over that by chance, beyond which nodes have levels of their own
DROWNING_LEVELS = 1e4  # the same ratio, beyond which levels are all that a model with a term for them would see
LATENT_DEGREE = 2  # of the default filter of latent signals
OUTPUTS = ("default", "numpy", *tables.LIBRARIES)
Output = Literal["default", "numpy", "pandas", "polars", "pyarrow", "xarray"]
LARGEST_INPUT = 1e150  # whose square is finite


@dataclass(frozen=True, eq=False)
class SignalFormat:
    """Form of the data of `fit` and of the answers: order of the nodes, kind of table, rows."""

    names: tuple[Hashable, ...] | None  # of the columns of Y, or else of the graph, if any
    columns: Indices | None  # the column of each node of the graph; None if both orders are the same
    is_flat: bool  # whether Y was one-dimensional
    layout: tables.TableKind | None = None  # of the table that Y was; None for arrays
    is_in_memory: bool = True  # whether signals are read into memory
    kept: Mask = field(default_factory=lambda: np.empty(0, dtype=bool))  # rows of Y with any value, if some have none
    labels: tuple[str, ...] | None = None  # of all rows; None if they are only counted

    @property
    def kept_labels(self) -> tuple[str, ...]:
        """Labels of the training signals."""
        labels = tables.row_labels(None, self.kept.size) if self.labels is None else self.labels
        return tuple(labels[row] for row in np.flatnonzero(self.kept))

    def names_of(self, n_nodes: int) -> list[str]:
        """Names of the nodes in the graph's order, or their numbers."""
        if self.names is None:
            return [f"node {node}" for node in range(n_nodes)]
        return [str(self.names[column]) for column in (range(n_nodes) if self.columns is None else self.columns)]

    def node_name(self, node: int) -> Hashable:
        """Name of a node of the graph, or the number of its column."""
        column = node if self.columns is None else int(self.columns[node])
        return column if self.names is None else self.names[column]

    def with_rows(self, kept: Mask, index: Any) -> SignalFormat:
        """Return the form with more rows at the end; `index` has their labels, if any."""
        labels = self.labels
        if labels is not None or not tables.is_counted(index):
            before = tables.row_labels(None, self.kept.size) if labels is None else labels
            labels = (*before, *tables.row_labels(index, kept.size, self.kept.size))
        return replace(self, kept=np.concatenate([self.kept, kept]), labels=labels)

    def to_graph(self, signals: Any) -> Any:
        """Return signals in the user's order of the columns in the graph's."""
        if self.columns is None:
            return signals
        return take(signals, self.columns, axis=1) if is_array_api_obj(signals) else signals[:, self.columns]

    def in_graph(self, values: Any) -> Array:
        """Return values in the user's order of the columns in the graph's, as an array in memory."""
        return np.asarray(on_host(self.to_graph(values)), dtype=float)

    def to_user(self, values: Any, *axes: int) -> Any:
        """Return values in the graph's order of the nodes, along axes (the last unless given), in the user's."""
        if self.columns is not None:
            for axis in axes or (-1,):
                values = take(values, np.argsort(self.columns), axis=axis % values.ndim)
        return values

    def samples(self, draws: Any) -> Any:
        """Return draws, shape (n_samples, n_rows, n_nodes), in the user's order with the samples last."""
        draws = array_namespace(draws).moveaxis(self.to_user(draws), 0, -1)
        return draws[:, 0, :] if self.is_flat else draws

    def chosen(self, nodes: Any, n_nodes: int) -> tuple[Indices, Indices]:
        """Columns chosen by name, position or mask, and their nodes of the graph."""
        columns = chosen_nodes(nodes, n_nodes, self._positions)
        return columns, columns if self.columns is None else np.argsort(self.columns)[columns]

    def _positions(self, names: Any) -> NDArray[np.int64]:
        if self.names is None:
            raise ValueError(
                "nodes must be positions if neither the graph nor the columns of Y have names; got names. "
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
        """Return inputs ("X") or signals as a `Table`, if they are one; rows of xarray as at `fit`."""
        rows = None if self.layout is None or self.layout.dims is None else self.layout.dims[0]
        is_input = argument == "X"
        return tables.as_table(given, argument, names=None if is_input else self.names, rows=rows, allow_dates=is_input)

    def signals(self, Y: Any, n_nodes: int, estimator: Any, argument: str = "Y") -> Any:
        """Return signals, shape (n_inputs, n_nodes), with their columns in the order of `fit`."""
        signals, _ = read_values(Y, estimator, self.is_in_memory, argument)
        signals = signals if is_array_api_obj(signals) else np.asarray(signals[:, :])
        signals = signals[:, None] if signals.ndim == 1 and self.is_flat else signals
        names = tables.frame_names(Y)
        if names is not None and self.names is not None:
            return take(signals, tables.match_columns(names, self.names, argument), axis=1)
        if signals.ndim == 1 or signals.shape[1] != n_nodes:
            raise ValueError(
                f"{argument} must have shape (n_inputs, n_nodes) with n_nodes = {n_nodes}; got {signals.shape}. "
                "Rows are signals: did you pass the transpose?"
            )
        return signals

    def on(self, graph: GraphBase) -> SignalFormat:
        """Return the form on another graph, whose names are those of the columns."""
        return replace(self, names=None if graph.names is None else tuple(graph.names), columns=None)

    def as_rows(self, given: Any) -> Any:
        """Return signals with one row per signal; a single one may be given without an axis of rows."""
        if np.ndim(given) != 1 or self.is_flat:
            return given
        return given.as_one_row() if isinstance(given, tables.Table) else np.ma.atleast_2d(given)

    def shaped_as(self, values: Array, Y: Any) -> Array:
        """Return values in the graph's order with the shape and the order of columns of given signals."""
        values, names = self.to_user(values), tables.frame_names(Y)
        if names is not None and self.names is not None:
            values = values[:, np.argsort(tables.match_columns(names, self.names))]
        return np.reshape(values, np.shape(Y))

    def among_given(self, values: Any) -> Any:
        """Return values of the training signals, with NaN for rows of `Y` at `fit` without any value."""
        if self.kept.all():
            return values
        all_rows = np.full((self.kept.size, *values.shape[1:]), np.nan)
        all_rows[self.kept] = values
        return all_rows

    def answer(self, values: Any, output: str, names: Sequence[Hashable] | None, labels: Any) -> Any:
        """Return values in the user's order as the kind of table of `set_output`, by default that of `Y` at `fit`."""
        if output == "numpy":
            return np.asarray(on_host(values))
        layout = self.layout if output == "default" else tables.TableKind(output)
        if output == "xarray" and self.layout is not None and self.layout.library == "xarray":
            layout = self.layout
        return values if layout is None else tables.to_table(values, layout, names, labels)


def fits(method: Method) -> Method:
    """Leave an estimator unchanged if its `fit` raises an error, and give the warnings of the fitted model."""

    @wraps(method)
    def fit(estimator: Any, *data: Any, **named: Any) -> Any:
        before = dict(estimator.__dict__)
        try:
            method(estimator, *data, **named)
            for warning in estimator._warnings:
                warnings.warn(warning, stacklevel=2)
        except BaseException:
            estimator.__dict__ = before
            raise
        return estimator

    return cast(Method, fit)


class GraphEstimator(BaseEstimator):
    """Base of estimators that answer with tables: their kind, and the names of their columns."""

    _form: SignalFormat

    def set_output(self, *, predict: Output | None = None) -> Self:
        """Choose the kind of table that `predict` and `impute` return; `clone` and model files keep the choice.

        Columns have the names of the nodes, and rows the labels of `X` where it (pandas, xarray) and the library have
        any. Covariances and samples are always arrays.

        Parameters
        ----------
        predict : {"default", "numpy", "pandas", "polars", "pyarrow", "xarray"}, optional
            "default" is the kind of the data: of the `Y` of `fit` for `predict`, and of its own `Y` for `impute`.
            Otherwise all answers are of the chosen kind. None leaves the choice unchanged.
        """
        if predict is not None:
            # the attribute that scikit-learn's clone keeps for its own set_output
            self._sklearn_output_config = {"predict": as_option(predict, "predict", OUTPUTS)}
        return self

    @property
    def node_names_(self) -> tuple[Hashable, ...] | None:
        """Names of the nodes in the order of the columns of `Y` at `fit`; None without names."""
        check_is_fitted(self)
        return self._form.names

    @property
    def _output(self) -> str:
        chosen: dict[str, str] = getattr(self, "_sklearn_output_config", {})
        return chosen.get("predict", "default")


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Data and settings of `fit`, in the graph's order of the nodes, without rows that have no value."""

    graph: GraphBase
    inputs: Array
    values: Any  # the signals, shape (n_signals, n_nodes)
    seen: Mask | None  # mask of the observed values; None if they were not examined
    carried: Indices | None  # the column of the inputs that may carry over to each node
    input_kernel: kernels.InputKernel | None  # None for the default one, whose terms are open
    stacking: Stacking  # of the kernels that were given, if any
    graph_kernels: list[GraphKernel]  # to learn; several are stacked
    spectrum: SpectrumSettings
    form: SignalFormat
    has_inputs: bool
    order: TimeOrder | None = None  # of the rows, if inputs are the signals before
    transformation: Transformation | None = None  # of the user's inputs and values, if any
    index: Any = None  # labels of all rows of Y, or else of X
    known_noise: float | None = None  # variance of the noise, or of the white part of latent signals, by the data
    # with a likelihood, covariates or noise that is known per entry
    observed_by: ObservationModel | None = None
    typical_variance: float | None = None  # of the latent signals
    effects: tuple[str, ...] = ()  # names of the fixed effects
    # given graphs or functions that make them, with weights to be learnt, if any
    graphs: tuple[tuple[Any, WeightFamily | None], ...] = ()

    def made_graphs(self) -> Iterator[tuple[GraphBase, GraphOf | None, WeightFamily | None]]:
        """Graphs to fit on, with the functions that make them of signals, and the weights that are learnt, if any."""
        for graph, family in self.graphs or ((self.graph, None),):
            graph_of = None if isinstance(graph, GraphBase) else partial(self._graph_of, graph)
            yield graph if graph_of is None else graph_of(np.arange(len(self.values)), None), graph_of, family

    def _graph_of(self, make: Callable[..., Any], kept: Indices, hidden: Mask | None) -> GraphBase:
        """Graph made of some signals, without hidden entries, with the names of the columns."""
        has_features = self.has_inputs and (self.input_kernel is None or not self.input_kernel.form.is_pairwise)
        values = self.values[kept] if hidden is None else np.where(hidden, np.nan, self.values[kept])
        made = as_graph(make(values, self.inputs[kept] if has_features else None))
        return Graph(made.weights, self.graph.names or self.form.names, made.coordinates)

    @contextmanager
    def resources(self) -> Iterator[None]:
        """Use few threads while learning; a MemoryError says how much memory learning takes."""
        try:
            with few_threads(max(self.values.shape)):  # once: released threads spin for a while
                yield
        except MemoryError as error:
            n_signals, n_nodes = self.values.shape
            needed, of, remedy = self.spectrum.memory(n_signals, n_nodes, precision_of(self.values).itemsize)
            message = f"memory must hold about {needed / 1e9:.2g} GB for {of}; got less. {remedy}"
            raise MemoryError(message) from error

    def form_given(self, rows: Indices | None) -> SignalFormat:
        """Form of the data for a model conditioned on some of the kept rows; on all if None."""
        if rows is None:
            return self.form
        kept = self.form.kept
        return replace(self.form, kept=kept & np.isin(np.cumsum(kept) - 1, rows))


def read_training(estimator: Any, solver: Solver, X: Any, Y: Any) -> TrainingData:
    """Read and check the parameters and the data of `fit`."""
    stacking, graph_kernels = _checked_parameters(estimator, solver)
    graphs, given = listed_graphs(estimator.graph)
    Y = tables.as_table(Y, "Y", names=None if given is None else given.names)
    layout = written_layout(Y)
    along = layout.dims[0] if layout is not None and layout.dims is not None else None
    X = tables.as_table(X, "X", rows=along, allow_dates=True)
    tables.check_same_order(X, Y)
    settings = spectrum_settings(estimator.spectrum, given)
    if settings.needs_passes and any(family is not None for _, family in graphs):
        raise ValueError("spectrum must be 'auto' or 'exact' for a LearntGraph; got a Chebyshev one. Leave it out.")
    values, seen = read_values(Y, estimator, settings.reads_into_memory)
    n_signals, is_flat = values.shape[0], len(values.shape) == 1
    kernel, input_form, inputs = _read_inputs(estimator, X, n_signals)
    if is_flat:
        if given is not None and given.n_nodes == len(values) > 1:
            raise ValueError(
                f"Y must have two dimensions on a graph of several nodes; got shape {values.shape}. One signal with a "
                "value for each node is one row: pass Y[None, :], or a table with one row."
            )
        values, seen = values[:, None], None if seen is None else seen[:, None]
    # nothing observed at all is refused later
    kept = np.ones(n_signals, dtype=bool) if seen is None or not seen.any() else np.asarray(seen.any(axis=1))
    graph, names, columns = matched_graph(given, values.shape[1], tables.frame_names(Y))
    has_labels = isinstance(Y, tables.Table) and not tables.is_counted(tables.frame_index(Y))
    labels = tables.row_labels(tables.frame_index(Y), n_signals) if has_labels else None
    form = SignalFormat(names, columns, is_flat, layout, settings.reads_into_memory, kept, labels)
    values = graph.as_native(form.to_graph(values))
    seen = None if seen is None else form.to_graph(seen)
    if not kept.all():
        rows = np.flatnonzero(kept)
        inputs, values, seen = input_form.subset(inputs, rows), values[rows], None if seen is None else seen[rows]
    carried = carried_columns(
        estimator.carry, tables.frame_names(X), not input_form.is_pairwise, inputs.shape[1], form, graph.n_nodes
    )
    if estimator.spectrum == "auto" and stacking.kernels is None and graph.n_nodes > MOST_SHRUNK:
        n_missing = 0 if seen is None else np.count_nonzero(~seen)
        # many missing values are imputed faster by sparse products, on a graph too large for shrinkage
        if n_missing > MOST_DENSE and 2 * graph.n_edges * SPARSE < graph.n_nodes**2:
            settings = Chebyshev()
    if kernel is not None and all(one.search().has_free_amplitude for one in graph_kernels):
        kernel = kernels.without_amplitude(kernel)  # the factor is the graph kernel's
    order = _order_of_rows(estimator, settings, inputs, values, None if seen is None or not seen.all() else carried)
    decided = kernel, stacking, graph_kernels, settings, form, X is not None, order
    index = tables.frame_index(Y if has_labels else X)
    return TrainingData(graph, inputs, values, seen, carried, *decided, index=index, graphs=graphs)


def _read_inputs(estimator: Any, X: Any, n_signals: int) -> tuple[kernels.InputKernel | None, InputForm, Array]:
    """Input kernel, None for the default one, with the form of its inputs and the inputs themselves."""
    kernel: kernels.InputKernel | None = kernels.as_input_kernel(estimator.input_kernel)
    if X is None:
        kernel, inputs = kernels.IndependentSignals(), np.empty((n_signals, 0))
        set_features(estimator, None)
        estimator.date_columns_ = ()
        return kernel, kernel.form, inputs
    kernel = None if estimator.input_kernel is None else kernel
    form = kernels.StandardisedKernel.form if kernel is None else kernel.form
    inputs = checked_inputs(estimator, X, reset=True)
    inputs = kernels.as_covariance(inputs) if form.is_pairwise else inputs
    if inputs.shape[0] != n_signals:
        raise ValueError(
            f"X and Y must have the same number of rows, one per signal; got {inputs.shape[0]} and {n_signals}. "
            "Rows are signals: did you pass a transpose?"
        )
    return kernel, form, inputs


def _order_of_rows(
    estimator: Any, settings: SpectrumSettings, inputs: Array, values: Any, carried: Indices | None
) -> TimeOrder | None:
    """Time order of the rows, if it is found in the inputs or given by ``carry="lagged"``; None otherwise.

    `carried` are the columns of the inputs that carry over in complete signals, else None.
    """
    is_given = isinstance(estimator.carry, str) and estimator.carry == "lagged"
    if carried is not None and not settings.needs_passes and len(values) >= FEWEST_IN_TIME:
        order = time_order(inputs, values, carried)
        return TimeOrder(1.0, 0, len(values) - 1) if order is None and is_given else order
    if is_given:
        raise ValueError(
            f"carry must be 'auto', columns or None unless X has a column for each node, Y is complete with at least "
            f"{FEWEST_IN_TIME} signals, and the graph is small enough for an exact spectrum; got 'lagged'. Leave out "
            "signals with missing values, and name the columns of X as the nodes."
        )
    return None


def setting_of(estimator: Any, training: TrainingData, solver: Solver) -> Setting:
    """Data and decisions, with those that are left open decided."""
    graph, kernel, settings = training.graph, training.input_kernel, training.spectrum
    is_papers = estimator.residual is None or solver.plain_models_only
    is_small = settings.has_node_covariances and graph.n_nodes <= MOST_SHRUNK and training.values.shape[0] > 2
    center, scales = estimator.center, [estimator.scale]
    if center == "auto":
        # the default kernel has levels, unless they are so large as to drown all else
        center = chosen_center(training, DROWNING_LEVELS if kernel is None else DIFFERENT_LEVELS)
    noise_variance = training.known_noise or estimator.noise_variance
    if estimator.scale == "auto":
        is_noise_known = noise_variance is not None and not isinstance(noise_variance, tuple)
        is_given = settings.needs_passes or is_noise_known or is_papers or graph.n_nodes == 1
        scales = ["global"] if is_given else ["node", "global"]
    keeps = not settings.reads_into_memory
    signals = {scale: read_signals(training.values, center, scale, keep_source=keeps, graph=graph) for scale in scales}
    first = next(iter(signals.values()))
    data = graph, kernel or kernels.IndependentSignals(), training.inputs, first
    task = Task(*data, noise_variance, estimator.prior, settings)
    residual = None if is_papers or not training.has_inputs else estimator.residual
    shrunk = not is_papers and isinstance(estimator.residual, str) and is_small
    decided = training.carried, residual, shrunk, training.transformation
    return Setting(task, signals, kernel is None, *decided)


def choices_on(
    estimator: Any, training: TrainingData, solver: Solver, graph: GraphBase, graph_of: GraphOf | None
) -> Choices:
    """Return the choices of models on a graph, that a function makes of signals if it is given."""
    return replace(choices_of(estimator, replace(training, graph=graph), solver), graph_of=graph_of)


def choices_of(estimator: Any, training: TrainingData, solver: Solver) -> Choices:
    """Return the kernels to learn or, if they are left open, the models to choose from."""
    if training.observed_by is not None:
        return _latent_choices(estimator, training)
    setting, stacking = setting_of(estimator, training, solver), training.stacking
    further: tuple[Setting, ...] = ()
    is_open = stacking.kernels is None and isinstance(estimator.residual, str) and not solver.plain_models_only
    if not (is_open and setting.has_folds):
        return Choices(setting, training.graph_kernels, stacking, is_open)
    values, inputs = training.values, training.inputs
    if training.order is not None:
        # changes: as if inputs told nothing, and with what inputs tell of them
        assert training.carried is not None
        changes = Changes(training.carried, training.order.factor)
        changed = replace(training, values=changes.signals(values, inputs), transformation=changes)
        unrelated = replace(changed, input_kernel=kernels.IndependentSignals(), carried=None, has_inputs=False)
        no_change = replace(setting_of(estimator, unrelated, solver), is_fallback=True)
        further = no_change, setting_of(estimator, changed, solver)
    elif (
        # logarithms predict at most twice the largest value: not for series that grow. Nor are they for large graphs,
        # where nothing is transformed, and a noise variance in the units of `Y`
        setting.is_kernel_open
        and setting.task.noise_variance is None
        and setting.task.signals.is_complete
        and not training.spectrum.needs_passes
        and Logarithms.are_offered(values)
    ):
        logarithms = Logarithms.of(values, inputs, training.carried)
        inputs = logarithms.inputs(inputs)
        values = logarithms.signals(values, inputs)
        seen = replace(training, inputs=inputs, values=values, transformation=logarithms)
        further = (setting_of(estimator, seen, solver),)
    return Choices(setting, training.graph_kernels, stacking, is_open, training.order, further)


def _latent_choices(estimator: Any, training: TrainingData) -> Choices:
    """One kernel of latent signals: raw values, an intercept for a centre, no scales."""
    condition, kernel = "with a likelihood, covariates or noise that is known per entry", training.input_kernel
    training.graph.require_whole("for a likelihood, covariates or noise that is known per entry")
    is_carried = not isinstance(estimator.carry, str | None) or estimator.carry == "lagged"
    graph_kernels, is_open = training.graph_kernels, training.stacking.kernels is None
    is_one = len(training.values) == 1 and estimator.likelihood in ("gaussian", Gaussian())
    if is_open:
        graph_kernels = [kernels.Polynomial(LATENT_DEGREE) if estimator.graph is not None else kernels.Identity()]
    levels = "The default input kernel has levels of the nodes."
    refused = {
        "center": (estimator.center == "node", "'auto' or 'global', an intercept, or None", levels),
        "scale": (estimator.scale == "node", "'auto', 'global' or None", "Values are taken as they are."),
        "carry": (is_carried, "'auto' or None", "Pass such columns as covariates."),
        "graph_kernel": (len(graph_kernels) > 1 and not is_one, "one kernel", "Compare them by held-out scores."),
    }
    for name, (is_wrong, allowed, remedy) in refused.items():
        if is_wrong:
            got = getattr(estimator, name)
            raise ValueError(f"{name} must be {allowed} {condition}; got {got!r}. {remedy}")
    noise = training.known_noise if estimator.noise_variance is None else estimator.noise_variance
    signals = read_in(Units(), np.asarray(training.values, dtype=float))
    data = training.graph, kernel or kernels.IndependentSignals(), training.inputs, signals
    task = Task(*data, noise, estimator.prior, training.spectrum)
    task = replace(task, observed_by=training.observed_by, typical_variance=training.typical_variance)
    residual = estimator.residual if training.has_inputs else None
    setting = Setting(task, {"global": signals}, kernel is None, None, residual)
    is_open = is_open and is_one and isinstance(estimator.residual, str)
    return Choices(setting, graph_kernels, training.stacking, is_open)


def _checked_parameters(estimator: Any, solver: Solver) -> tuple[Stacking, list[GraphKernel]]:
    """Stacking settings and the graph kernels to learn; invalid parameters are refused."""
    units = ("auto", "global", "node")
    for name, options in {"center": units, "scale": units, "prior": ("weak",)}.items():
        if getattr(estimator, name) is not None:
            as_option(getattr(estimator, name), name, options)
    residual = estimator.residual
    if isinstance(residual, GraphKernel):
        if not isinstance(residual, SpectralKernel):
            raise TypeError(f"residual must be a function on the spectrum, such as Polynomial(2); got {residual!r}.")
        if solver.plain_models_only:
            raise ValueError(
                f"residual must be None or 'auto' with solver={type(solver).__name__}(...), which learns models "
                f"without a residual; got {residual!r}. Use solver='sqp'."
            )
    elif residual not in (None, "auto"):
        raise ValueError(
            f"residual must be a graph kernel, 'auto' or None; got {residual!r}. 'auto' shrinks where that "
            "can be done: on an exact spectrum of up to 2,000 nodes, with three signals or more."
        )
    check_noise(estimator.noise_variance)
    given, has_graph = estimator.graph_kernel, estimator.graph is not None
    stacking = given if isinstance(given, Stacking) else Stacking(given)
    graph_kernels: Any = stacking.kernels or (kernels.Polynomial("auto") if has_graph else kernels.Identity(),)
    if not has_graph and any(not kernel.needs_no_graph for kernel in graph_kernels):
        raise ValueError(
            f"graph must be given to use graph_kernel={given!r}; got None. "
            "Pass a Graph, an adjacency matrix or a networkx graph."
        )
    for kernel in (one for one in (*graph_kernels, residual) if isinstance(one, SpectralKernel)):
        kernel.check_derivatives()
    return stacking, [member for kernel in graph_kernels for member in kernel.search().members()]


def spectrum_settings(given: SpectrumSettings | str, graph: GraphBase | None) -> SpectrumSettings:
    """Settings of the spectrum; "auto" chooses by the size of the graph."""
    if not isinstance(given, SpectrumSettings):
        given = as_option(given, "spectrum", ("auto", "exact", "chebyshev"))
        is_large = graph is not None and (not graph.is_whole or graph.n_nodes > MOST_EXACT)
        given = Chebyshev() if given == "chebyshev" or (given == "auto" and is_large) else Exact()
    if graph is not None and not graph.is_whole and given.needs_whole_graph:
        raise ValueError(
            "spectrum must be 'auto', 'chebyshev' or Chebyshev(...) on a partitioned graph, which is never whole in "
            "memory; got the exact one. Use a Graph to decompose it."
        )
    return given


def given_graph(graph: Any) -> GraphBase:
    """Graph of an argument, which may be in partitions."""
    if isinstance(graph, LearntGraph) or callable(graph):
        raise TypeError(
            f"graph must be a graph here; got {type(graph).__name__}, of which GraphGPRegressor.fit makes one. Pass "
            "the graph_ of a fitted regressor."
        )
    return graph if isinstance(graph, GraphBase) else as_graph(graph)


def listed_graphs(graph: Any) -> tuple[tuple[tuple[Any, WeightFamily | None], ...], GraphBase | None]:
    """Graphs of an argument, or functions that make them, with weights to be learnt; the first that is known."""
    is_list = isinstance(graph, list | tuple) and any(isinstance(one, GraphBase | LearntGraph) for one in graph)
    options = list[tuple[Any, WeightFamily | None]]()
    for one in graph if is_list else () if graph is None else (graph,):
        family = one.family() if isinstance(one, LearntGraph) else None
        made = one if callable(one) else given_graph(one) if family is None else family.graph(family.usual)
        options.append((made, family))
    known = [made for made, _ in options if isinstance(made, GraphBase)]
    for other in known[1:]:
        if (other.n_nodes, other.names) != (known[0].n_nodes, known[0].names):
            raise ValueError(
                f"graph must be a list of graphs on the same nodes, in one order; got {known[0]} and {other}. Use "
                "graph.subgraph(names), which puts nodes into an order."
            )
    return tuple(options), known[0] if known else None


def matched_graph(
    known: GraphBase | None, n_columns: int, names: tuple[Any, ...] | None
) -> tuple[GraphBase, tuple[Hashable, ...] | None, Indices | None]:
    """Graph, edgeless unless given, names of the columns, and their order if it differs from the graph's."""
    if known is None:
        return Graph.edgeless(n_columns), names, None
    own = None if known.names is None else tuple(known.names)
    if names is not None and own is not None and not (is_range(names) and not is_range(own)):
        columns = tables.match_columns(names, own)
        return known, names, None if np.array_equal(columns, np.arange(columns.size)) else columns
    if known.n_nodes != n_columns:
        raise ValueError(
            f"Y must have shape (n_signals, n_nodes) with n_nodes = {known.n_nodes}, the nodes of the graph; "
            f"got {n_columns} columns. Rows are signals: did you pass the transpose?"
        )
    if own is None and names is not None and not is_range(names) and set(names) == set(range(n_columns)):
        raise ValueError(
            "Y must have its columns in the order of the nodes if the graph has no names; as names they have the "
            f"integers 0 to {n_columns - 1} in another order; got {names[0]} first. Pass Y[sorted(Y.columns)], or a "
            "graph with names."
        )
    return known, own or names, None


def written_layout(Y: Any) -> tables.TableKind | None:
    """Layout of signals that are a table of a library in which answers can be written; None for others."""
    return Y.layout if isinstance(Y, tables.Table) and Y.layout.library in tables.WRITTEN else None


def read_values(Y: Any, estimator: Any, into_memory: bool, argument: str = "Y") -> tuple[Any, Mask | None]:
    """Signals as an array of numbers, and the mask of observed ones: NaN is missing, infinity is refused.

    Signals that are not read `into_memory` may be any object with a shape and a dtype that is sliced by columns. Unless
    they are NumPy's, there is no mask, and infinity is refused later, block by block.
    """
    if Y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is None: "
            "Y must hold the signals, shape (n_signals, n_nodes)."
        )
    values: Any = Y.values if isinstance(Y, tables.Table) else without_mask(Y, argument, allow_nan=True)
    if into_memory:
        if getattr(getattr(values, "dtype", None), "kind", "") == "c":
            raise ValueError(
                f"Complex data not supported: {argument} must hold real numbers. Pass the real part or the modulus."
            )
        # by scikit-learn, which knows tables and array libraries; without a dtype, or it would take texts for numbers
        options = {"ensure_2d": False, "ensure_all_finite": False, "dtype": None, "input_name": argument}
        found = check_array(values, **options, estimator=estimator)
        try:
            values = np.asarray(numbers_of(found), dtype=float)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{argument} must hold numbers; got {error}. Convert it to numbers first.") from error
    else:
        values = np.asarray(values) if isinstance(values, list | tuple) else values
        if not hasattr(values, "shape") or not hasattr(values, "dtype") or len(values.shape) != 2:
            raise ValueError(
                f"{argument} must have shape (n_signals, n_nodes) on a large graph; got {np.shape(Y)}. Rows are "
                "signals."
            )
        precision_of(values)
    if not isinstance(values, np.ndarray):
        return values, None
    seen = np.isfinite(values)
    if not seen.all():
        is_infinite = ~seen & ~np.isnan(values)
        if into_memory and is_infinite.any():
            remedy = "NaN stands for missing values."
            raise _not_finite(values, is_infinite, "infinite", argument, tables.frame_names(Y), remedy)
        seen |= is_infinite
    return values, seen


def _not_finite(
    values: Array, wrong: Mask, kind: str, argument: str, columns: tuple[Any, ...] | None, remedy: str
) -> ValueError:
    """Error about wrong values that names the place of the first."""
    first = tuple(int(index) for index in np.argwhere(wrong)[0])
    what = "NaN" if np.isnan(values[first]) else "infinity"
    where = f"row {first[0]}"
    if len(first) == 2:
        where += f", column {first[1] if columns is None else repr(columns[first[1]])}"
    return ValueError(
        f"{argument} must be finite; {argument} contains {what} at {where} ({int(wrong.sum())} values that are {kind} "
        f"in all). {remedy}"
    )


def chosen_center(training: TrainingData, threshold: float) -> Center:
    """Return "node" if the nodes' means vary more than `threshold` times as by chance, otherwise "global".

    If some node was never observed, and its level can be predicted from those of others, it is "node", too.
    """
    values, seen = training.values, training.seen
    n_signals, n_nodes = values.shape
    if n_signals < 3 or n_nodes < 2 or seen is None:
        return "global"
    often = seen.sum(axis=0) > 1  # others have no variance
    largest = np.max(np.abs(values), where=seen, initial=0.0)
    if not 0 < largest < np.inf or np.count_nonzero(often) < 2:
        return "global"
    if not seen.any(axis=0).all() and can_complete(training.graph):
        return "node"
    values, seen = values[:, often] / largest, seen[:, often]
    means, variances = np.mean(values, axis=0, where=seen), np.var(values, axis=0, ddof=1, where=seen)
    within = np.mean(variances / seen.sum(axis=0))
    return "node" if np.var(means, ddof=1) > threshold * within else "global"


def set_features(estimator: Any, number: int | None, names: Sequence[Any] | None = None) -> None:
    """Set the number and the names of features as attributes of scikit-learn; delete those that are None."""
    named = None if names is None else np.array(names, dtype=object)
    for name, value in {"n_features_in_": number, "feature_names_in_": named}.items():
        estimator.__dict__.pop(name, None)
        if value is not None:
            setattr(estimator, name, value)


def checked_inputs(estimator: Any, X: Any, reset: bool = False) -> Array:
    """Return inputs as finite numbers; set, or compare, the names and number of features and the columns of dates."""
    remedy = "Drop rows with missing inputs, or impute them."
    without_mask(X, "X", remedy)
    array = X
    if isinstance(X, list | tuple):
        with suppress(ValueError):  # rows of unequal length, which scikit-learn refuses
            array = np.asarray(X)
    dates = X.dates if isinstance(X, tables.Table) else ()
    if isinstance(array, np.ndarray):
        array, dates = tables.columns_in_days(array)
    if isinstance(array, np.ndarray | tables.Table) and array.shape[:1] == (0,):
        raise ValueError(f"X must have at least one row; got shape {array.shape}. Pass inputs of one signal or more.")
    try:
        if isinstance(array, np.ndarray) and array.dtype.kind != "c":  # complex ones are refused below
            numbers_of(array)
    except (TypeError, ValueError) as error:
        raise TypeError(f"X must hold numbers; got {error}. Convert it to numbers first.") from error
    options = {"dtype": np.float64, "ensure_all_finite": False, "copy": reset}
    if isinstance(X, tables.Table) and len(X.shape) == 2:
        validate_data(estimator, X.native, reset=reset, skip_check_array=True)  # names, which values have lost
        values = check_array(X.values, input_name="X", estimator=estimator, **options)
    else:
        given = np.asarray(X) if isinstance(X, tables.Table) else array if dates else X
        values = validate_data(estimator, given, reset=reset, **options)
    if reset:
        estimator.date_columns_ = dates
    elif dates != estimator.date_columns_:
        kinds = [f"dates in columns {list(one)}" if one else "no dates" for one in (estimator.date_columns_, dates)]
        raise TypeError(f"X must have {kinds[0]}, as at fit; got {kinds[1]}. Pass inputs of the same kind.")
    wrong = ~np.isfinite(values)
    if wrong.any():
        raise _not_finite(values, wrong, "NaN or infinite", "X", tables.frame_names(X), remedy)
    if values.size and np.max(np.abs(values)) > LARGEST_INPUT:
        raise ValueError(
            f"X must hold values up to {LARGEST_INPUT:g} in size, whose squares are finite; got "
            f"{np.max(np.abs(values)):.3g}. Change the units of X."
        )
    return np.asarray(values, dtype=float)


def carried_columns(
    carry: Any, columns: Sequence[Any] | None, has_features: bool, n_features: int, form: SignalFormat, n_nodes: int
) -> Indices | None:
    """Column of the inputs that carries over to each node of the graph, if any."""
    if carry is None:
        return None
    if n_features and not has_features and not isinstance(carry, str):
        raise ValueError(
            f"carry must be None or 'auto' unless X holds features; got {carry!r}. Columns of a covariance are not "
            "values at nodes: pass features and a kernel of them."
        )
    places = {name: place for place, name in enumerate(() if columns is None else columns)}
    if isinstance(carry, str):
        as_option(carry, "carry", ("auto", "lagged"))
        # by name, or by number if the inputs have no names
        chosen = np.array([places.get(name, -1) for name in form.names or ()], dtype=np.intp)
        chosen = np.arange(n_features) if columns is None else chosen
        if not has_features or n_nodes < 2 or chosen.size != n_nodes or np.any(chosen < 0):
            return None
    else:
        given = np.asarray(carry)
        if not n_features or given.shape != (n_nodes,):
            raise ValueError(
                f"carry must name one column of X for each of the {n_nodes} columns of Y; got shape {given.shape}. "
                "Pass None to carry nothing over."
            )
        is_number = given.dtype.kind in "iu"
        chosen = given if is_number else np.array([places.get(name, -1) for name in given.tolist()])
        wrong = given[(chosen < 0) | (chosen >= n_features)].tolist()
        if wrong:
            raise ValueError(f"carry must hold columns of X; got {wrong[0]!r}. X has {n_features} columns.")
    return form.to_graph(chosen[None].astype(np.intp))[0]
