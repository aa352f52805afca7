"""The classifier: classes at the nodes of a graph, most of them without a label."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, Kernel
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from spectralgp._basics.checks import Array
from spectralgp._basics.progress import progress_bar, step_done
from spectralgp._basics.tables import as_table, frame_index, frame_names, is_data_array, rows_first, series_index
from spectralgp.estimators import reading, saving
from spectralgp.estimators.observing import Alignment
from spectralgp.estimators.reading import SignalFormat, checked_inputs, matched_graph, spectrum_settings
from spectralgp.graphs import GraphBase
from spectralgp.learning.classes import (
    AMPLITUDE,
    LENGTHS,
    ClassMember,
    ClassMixture,
    LabelledEntries,
    class_covariances,
    mixed,
    sharpened,
)
from spectralgp.model.fields.classes import ClassSites, given_labels, with_sites
from spectralgp.model.spectra import SpectrumSettings

MOST_LABELS = 2_000  # whose covariance is a full matrix, factored for each class
UNLABELLED, NO_LABEL = -1, np.array(None)  # as users write it, and as arrays of labels hold it


class GraphGPClassifier(ClassifierMixin, BaseEstimator):
    """Classes at the nodes of a graph from the labels of some, with probabilities.

    Each class has a latent field, a Gaussian process on the graph, and a node's class is drawn by the softmax of the
    fields there: ``p(c) = exp f_c / sum_k exp f_k``. The posterior is a variational Gaussian, written out at the
    labelled nodes. Diffusion kernels of several strengths are averaged, with weights by how probable they make each
    label by all others, and the probabilities are sharpened or flattened by a temperature that suits labels left out.

    Parameters
    ----------
    graph : Graph or anything `as_graph` takes
        The graph on the nodes.
    input_kernel : scikit-learn kernel, optional
        Covariance between signals at inputs `X`, used as given. If not given, a constant and an `RBF` of standardised
        columns, of three lengths that are averaged like the strengths.
    spectrum : {"auto", "exact", "chebyshev"}, Exact or Chebyshev, default="auto"
        Eigendecomposition of the Laplacian, or Chebyshev filters; "auto" is exact up to 5,000 nodes. By Chebyshev
        filters variances of nodes are estimates by random probes.
    verbose : int, default=0
        Show a progress bar while fitting.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    graph_ : Graph
        The graph.
    graph_kernel_ : tuple of Diffusion
        One per model that is averaged, of mean variance one.
    kernel_weights_ : ndarray of shape (n_models,)
        Weights of the models.
    temperature_ : float
        The power that probabilities are raised to; above one they are sharpened.
    n_labels_ : int
        Number of labelled entries.
    n_features_in_ : int
        Number of features of `X`, if there are any.

    Examples
    --------
    >>> import numpy as np
    >>> from spectralgp import Graph, GraphGPClassifier
    >>> path = Graph.from_edges([(node, node + 1) for node in range(9)])
    >>> labels = np.full(10, None)
    >>> labels[[0, 9]] = "left", "right"
    >>> model = GraphGPClassifier(path).fit(None, labels)
    >>> model.predict().tolist()
    ['left', 'left', 'left', 'left', 'left', 'right', 'right', 'right', 'right', 'right']
    >>> bool(model.predict_proba()[1, 0] > model.predict_proba()[4, 0] > 0.5)
    True
    """

    _kind: ClassVar = "classifier"  # in model files

    def __init__(
        self,
        graph: Any = None,
        *,
        input_kernel: Kernel | None = None,
        spectrum: Literal["auto", "exact", "chebyshev"] | SpectrumSettings = "auto",
        verbose: int = 0,
    ) -> None:
        self.graph = graph
        self.input_kernel = input_kernel
        self.spectrum = spectrum
        self.verbose = verbose

    @reading.fits
    def fit(self, X: Any, y: Any) -> Self:
        """Learn from the labels of some nodes; an error leaves the estimator unchanged.

        Parameters
        ----------
        X : array or table of shape (n_nodes, n_features) or (n_signals, n_features), or None
            Features of the nodes if `y` has one label per node, matched by the names in a table's index. Otherwise
            inputs of the signals, matched by row labels; without any, signals are independent.
        y : array or table of shape (n_nodes,) or (n_signals, n_nodes)
            Labels, numbers or strings; None, NaN and -1 are no labels. The index of a pandas Series, or the columns of
            a table, are matched to the names of the graph's nodes.
        """
        if self.graph is None:
            raise ValueError(
                "graph must be a graph on the nodes; got None. For example pass Graph.from_points(points, 10)."
            )
        given = reading.given_graph(self.graph)
        labels, alignment = _read_labels(y, given)
        classes, entries = _entries(labels, alignment)
        self._condition(given, alignment, classes, entries, self._read_inputs(X, alignment))
        return self

    @property
    def _warnings(self) -> list[Warning]:
        if all(member.field.converged for member in self._mixture.members):
            return []
        text = "the posterior of the latent fields did not converge: probabilities may be off by a few per cent. Labels"
        return [ConvergenceWarning(f"{text} that contradict their neighbours are a usual reason.")]

    def _read_inputs(self, X: Any, alignment: Alignment) -> Array | None:
        """Features of nodes or inputs of signals, checked and in the order of the labels."""
        if X is None:
            reading.set_features(self, None)
            self.__dict__.pop("date_columns_", None)
            return None
        table = as_table(X, "X", allow_dates=True)
        values = checked_inputs(self, table, reset=True)
        is_flat = alignment.form.is_flat
        wanted, what = (alignment.n_nodes, "node") if is_flat else (alignment.n_rows, "signal")
        if len(values) != wanted:
            raise ValueError(
                f"X must have one row per {what}, {wanted} in all; got {len(values)}. Rows are nodes where y "
                "is one-dimensional, and signals where it is not."
            )
        index = frame_index(table)
        return values[alignment.node_order(index, "X", "row") if is_flat else alignment.row_order(index, "X")]

    def _condition(
        self,
        graph: GraphBase,
        alignment: Alignment,
        classes: NDArray[Any],
        entries: LabelledEntries,
        values: Array | None,
        known: Sequence[tuple[ClassSites, bool]] | None = None,
    ) -> None:
        """Condition on the labels, or take known sites, and set all that is learnt."""
        features: Array | None = None
        covariances: list[tuple[float | None, Array]] = [(None, np.eye(alignment.n_rows))]
        self.classes_, self._inputs, self._values = classes, None, values
        if values is not None:
            self._scaler = StandardScaler()
            standardised = self._scaler.fit_transform(values)
            if alignment.form.is_flat:
                features = alignment.form.to_graph(standardised.T).T
            else:
                self._inputs = values if self.input_kernel is not None else standardised
                covariances = [(length, kernel(self._inputs)) for length, kernel in self._input_kernels()]
        spectrum = spectrum_settings(self.spectrum, graph).of(graph, "normalized")
        members: list[ClassMember] = []
        with progress_bar("fit", None, self.verbose > 0 and known is None):
            for nodes in class_covariances(spectrum, entries.known, features):
                among_nodes = AMPLITUDE**2 * nodes.columns[np.ix_(entries.nodes, entries.columns)]
                for length, inputs in covariances:
                    among = among_nodes * inputs[np.ix_(entries.rows, entries.rows)]
                    if known is None:
                        start = members[-1].field if members else None
                        field = given_labels(among, entries.labels, classes.size, start)
                        step_done(f"strength {nodes.kernel.strength:g}")
                    else:
                        field = with_sites(among, *known[len(members)])
                    members.append(ClassMember(nodes, length, field, field.left_out()))
        self.graph_, self._alignment, self._entries = graph, alignment, entries
        self._mixture: ClassMixture = mixed(members, entries.labels)
        self.n_labels_ = entries.labels.size
        self.graph_kernel_ = tuple(member.nodes.kernel for member in members)
        self.kernel_weights_ = self._mixture.weights
        self.temperature_ = self._mixture.temperature

    def _input_kernels(self) -> list[tuple[float | None, Callable[..., Array]]]:
        """Kernels of the inputs to average, with their lengths."""
        if self.input_kernel is not None:
            return [(None, self.input_kernel)]
        assert self._inputs is not None
        root = float(np.sqrt(self._inputs.shape[1]))
        # half of the variance is common to all signals
        return [(length, 0.5 * RBF(length * root, "fixed") + 0.5) for length in LENGTHS]

    def predict_proba(self, X: Any = None) -> Array:
        """Probabilities of the classes.

        Parameters
        ----------
        X : array of shape (n_inputs, n_features), optional
            New inputs of signals; unless given, the nodes or the signals of `fit` are predicted.

        Returns
        -------
        probabilities : ndarray of shape (n_nodes, n_classes) or (n_inputs, n_nodes, n_classes)
            The former if `y` had one label per node. Nodes are in the order of `y`, classes in that of ``classes_``.
        """
        check_is_fitted(self)
        mixture, n_rows = self._mixture.heaviest, self._alignment.n_rows
        rows = np.eye(n_rows), np.ones(n_rows)
        covariances: dict[float | None, tuple[Array, Array]] = {None: rows}
        if self._inputs is None and X is not None:
            raise ValueError(
                "X must be None for a model of nodes, or of signals without inputs; got inputs. Call predict_proba()."
            )
        if self._inputs is not None:
            inputs = self._inputs
            if X is not None:
                inputs = checked_inputs(self, as_table(X, "X", allow_dates=True))
                inputs = inputs if self.input_kernel is not None else self._scaler.transform(inputs)
            covariances = {
                length: (kernel(inputs, self._inputs), np.diag(kernel(inputs)))
                for length, kernel in self._input_kernels()
            }
        n_inputs = len(next(iter(covariances.values()))[0])
        found = np.zeros((n_inputs, self.graph_.n_nodes, self.classes_.size))
        for weight, member in zip(mixture.weights, mixture.members, strict=True):
            between, variances = covariances[member.length]
            for row in range(n_inputs):
                found[row] += weight * member.probabilities(self._entries, between[row], variances[row])
        return self._answer(sharpened(found, mixture.temperature))

    def _answer(self, probabilities: Array) -> Array:
        """Probabilities of signals, nodes and classes in the graph's order, in the form of the labels of `fit`."""
        form = self._alignment.form
        found: Array = form.to_user(probabilities, 1)
        return found[0] if form.is_flat else found

    def predict(self, X: Any = None) -> NDArray[Any]:
        """The most probable class of every node; `X` is that of `predict_proba`."""
        probabilities = self.predict_proba(X)
        return np.asarray(self.classes_[np.argmax(probabilities, axis=-1)])

    def decision_function(self, X: Any = None) -> Array:
        """Logarithms of the probabilities less their mean over the classes; of two classes the log odds of the second.

        `X` is that of `predict_proba`.
        """
        logs = np.log(self.predict_proba(X))
        if self.classes_.size == 2:
            return np.asarray(logs[..., 1] - logs[..., 0])
        return np.asarray(logs - logs.mean(axis=-1, keepdims=True))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of `predict` on the labels in `y`; None, NaN and -1 are left out, weights have the shape of `y`."""
        check_is_fitted(self)
        labels, alignment = _read_labels(y, self.graph_)
        predicted = self._alignment.form.to_graph(np.atleast_2d(self.predict(X)))
        if X is not None and not alignment.form.is_flat:
            predicted = predicted[alignment.row_order(frame_index(as_table(X, "X", allow_dates=True)), "X")]
        if predicted.shape != labels.shape:
            raise ValueError(
                f"y must have the shape of the predictions, {predicted.shape}; got {labels.shape}. Pass the "
                "labels of the same signals."
            )
        at = np.not_equal(labels, NO_LABEL)
        if not at.any():
            raise ValueError("y must hold at least one label to be scored; got none. Pass the labels of some nodes.")
        right = predicted[at] == labels[at]
        weights = None if sample_weight is None else alignment.entries(sample_weight, "sample_weight")[at]
        return float(np.average(right, weights=weights))

    def leave_one_out(self) -> Array:
        """Probabilities of the classes at each labelled entry given all other labels, NaN without a label.

        They have the shape of `predict_proba`. The temperature is that of all labels.
        """
        check_is_fitted(self)
        found = np.full((self._alignment.n_rows, self._alignment.n_nodes, self.classes_.size), np.nan)
        found[self._entries.rows, self._entries.nodes] = self._mixture.left_out
        return self._answer(found)

    def summary(self) -> str:
        """Return a summary of the classes, the models with their weights, and the temperature."""
        check_is_fitted(self)
        labels, mixture = self._entries.labels, self._mixture
        counts = np.bincount(labels, minlength=self.classes_.size)
        named = ", ".join(f"{name} {count}" for name, count in zip(self.classes_.tolist(), counts, strict=True))
        found = mixture.left_out[np.arange(labels.size), labels]
        right = np.mean(np.argmax(mixture.left_out, axis=1) == labels)
        lines = [
            f"{labels.size} labels of {self.classes_.size} classes ({named}) on {self.graph_.n_nodes} nodes and "
            f"{self.graph_.n_edges} edges.",
            f"leave-one-out: {right:.0%} of labels right, log probability {np.mean(np.log(found)):.2f} on average",
            f"temperature: probabilities to the power of {mixture.temperature:.2g}",
            "",
        ]
        for place in np.argsort(-mixture.weights, kind="stable").tolist():
            member, weight = mixture.members[place], mixture.weights[place]
            if weight >= 0.005:
                length = "" if member.length is None else f", inputs of length {member.length:g}"
                lines.append(f"weight {weight:.2f}: {member.nodes.described}{length}")
        return "\n".join(lines)

    save = saving.save


def _read_labels(y: Any, graph: GraphBase) -> tuple[NDArray[Any], Alignment]:
    """Labels in the graph's order, shape (n_signals, n_nodes), None where there is none, and their rows and nodes."""
    if y is None:
        raise ValueError(
            "This GraphGPClassifier estimator requires y to be passed, but the target y is None: y must hold labels, "
            "shape (n_nodes,) or (n_signals, n_nodes)."
        )
    if is_data_array(y) and y.ndim == 2:
        y = rows_first(y, "y", graph.names).to_pandas()
    names, index = frame_names(y), frame_index(y)
    names = series_index(y) if names is None else names
    values = np.ma.asarray(y, dtype=object) if isinstance(y, np.ma.MaskedArray) else np.asarray(y, dtype=object)
    is_flat = values.ndim == 1
    if values.ndim not in (1, 2) or values.shape[-1] != graph.n_nodes:
        raise ValueError(
            f"y must have shape (n_nodes,) or (n_signals, n_nodes) with n_nodes = {graph.n_nodes}, the nodes of the "
            f"graph; got {values.shape}. Nodes without a label have None, NaN or -1."
        )
    graph, names, order = matched_graph(graph, graph.n_nodes, names)
    masked = np.atleast_2d(np.ma.getmaskarray(values))
    values = np.atleast_2d(np.ma.getdata(values))
    labelled = np.array([[_is_label(value) for value in row] for row in values], dtype=bool).reshape(values.shape)
    form = SignalFormat(names, order, is_flat)
    alignment = Alignment(form, len(values), graph.n_nodes, index)
    return form.to_graph(np.where(labelled & ~masked, values, NO_LABEL)), alignment


def _is_label(value: Any) -> bool:
    """Return whether a value is a label, unlike None, NaN, pandas.NA and the number -1."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return False
    return isinstance(value, str | bytes | bool | np.bool_) or (bool(value == value) and value != UNLABELLED)


def _entries(labels: NDArray[Any], alignment: Alignment) -> tuple[NDArray[Any], LabelledEntries]:
    """The classes, sorted, and the labelled entries."""
    form = alignment.form
    rows, nodes = np.nonzero(np.not_equal(labels, NO_LABEL))
    given = labels[rows, nodes].tolist()
    if not given:
        raise ValueError(
            "y must hold labels of some nodes; got None, NaN or -1 everywhere. Give at least one label per class."
        )

    def place(entry: int) -> str:
        name = f"node {form.node_name(int(nodes[entry]))!r}"
        return name if form.is_flat else f"signal {rows[entry]}, {name}"

    for entry, label in enumerate(given):
        if isinstance(label, float) and not label.is_integer():  # infinity is none either
            raise ValueError(
                f"y must hold classes, which are whole numbers or strings; got {label!r} at {place(entry)}. "
                "Use GraphGPRegressor for measurements."
            )
    kinds = {isinstance(label, str) for label in given}
    if len(kinds) > 1:
        raise TypeError(f"y must hold labels of one kind; got {sorted(set(map(repr, given)))[:4]}. Make all strings.")
    classes, codes = np.unique(np.array(given), return_inverse=True)
    if classes.size < 2:
        raise ValueError(
            f"y must hold labels of at least two classes; got one class only, {given[0]!r}, first at "
            f"{place(0)}. Label a node of another class; -1 stands for no label."
        )
    if len(given) > MOST_LABELS:
        raise ValueError(
            f"y must hold at most {MOST_LABELS:,} labels, whose covariance is a full matrix; got {len(given):,}. Leave "
            "out some, by None, at random or the same number of each class."
        )
    return classes, LabelledEntries(rows, nodes, codes)
