"""What every estimator on a graph does: read what it is given, learn, and predict."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from spectralgp._basics.arrays import as_generator, on_host, take
from spectralgp._basics.checks import Array, Indices
from spectralgp._basics.progress import progress_bar, quietly
from spectralgp._basics.tables import (
    WRITTEN,
    Table,
    as_table,
    check_same_order,
    frame_names,
    is_data_array,
    match_columns,
)
from spectralgp.estimators._output import OutputMixin
from spectralgp.estimators._parameters import check_parameters, warn_of_noise
from spectralgp.estimators._reading import (
    DIFFERENT,
    DROWNING,
    as_any_graph,
    as_one_signal,
    carried_columns,
    check_inputs,
    chosen_center,
    explaining_memory,
    finite_inputs,
    in_memory,
    observed,
    read_graph,
    rows_with_values,
    sliceable,
)
from spectralgp.fields import Mixture, Posterior, Predictive
from spectralgp.graphs import GraphBase
from spectralgp.kernels import (
    GraphKernel,
    Identity,
    Independent,
    InputKernel,
    InputRecipe,
    Polynomial,
    Standardised,
    as_input_kernel,
)
from spectralgp.learning import Candidate, Fit, as_solver
from spectralgp.learning.automatic import MOST_SHRUNK, Setting, automatic, likelier_scale
from spectralgp.learning.fitting import FittedModels, Stacking, at_once, fit_models
from spectralgp.operators import precision_of
from spectralgp.signals import Scale, read_signals
from spectralgp.spectra import Chebyshev, Exact, SpectrumSettings, release_passes

LARGE = 5_000  # nodes, beyond which spectrum="auto" gives up the eigendecomposition
STACKED_DRAWS = 16  # of the hyperparameters of each stacked model


class GraphGPEstimator(OutputMixin):
    """Reading, learning and conditioning; what is predicted and how is up to the estimators derived from it."""

    graph: Any
    graph_kernel: Any
    input_kernel: Any
    noise_variance: Any
    prior: Any
    center: Any
    scale: Any
    residual: Any
    carry: Any
    solver: Any
    spectrum: Any
    stacking: Any
    random_state: Any
    verbose: Any

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``graph_kernel__degree=5`` replaces the (frozen) graph kernel by one of that degree."""
        prefix = "graph_kernel__"
        nested = {name.removeprefix(prefix): params.pop(name) for name in list(params) if name.startswith(prefix)}
        super().set_params(**params)
        if nested:
            if not isinstance(self.graph_kernel, GraphKernel):
                raise ValueError(
                    f"graph_kernel must be one kernel to set {prefix}{next(iter(nested))}; got {self.graph_kernel!r}. "
                    "Pass for example graph_kernel=Polynomial(3) first."
                )
            known = self.graph_kernel.get_params()
            unknown = [name for name in nested if name not in known]
            if unknown:
                raise ValueError(
                    f"Invalid parameter {unknown[0]!r} for {type(self.graph_kernel).__name__}; got {unknown}. "
                    f"Valid parameters are: {sorted(known)}."
                )
            self.graph_kernel = dataclasses.replace(self.graph_kernel, **nested)
        return self

    # ------------------------------------------------------------------------------------------------ fitting

    def fit(self, X: Any, Y: Any) -> Self:
        """Learn all hyperparameters and condition on the signals.

        Parameters
        ----------
        X : array or table of shape (n_signals, n_features), or None
            Inputs, one row a signal; the covariance matrix itself for a precomputed kernel. None makes the signals
            independent, ``K = I``: the filter can be learnt, and a new signal has the model's own distribution.
        Y : array or table of shape (n_signals, n_nodes) or (n_signals,)
            Signals in rows. NaN is what was not observed: `fits_` say how it was treated. Signals without any value are
            left out; nodes without any are predicted. The columns of a table (pandas, Polars, PyArrow or another
            that narwhals reads, or an xarray DataArray with a dimension of the nodes) are matched to the names of the
            graph's nodes, and predictions are tables of the same kind; `set_output` chooses another. On a large graph
            `Y` may be a memory map or an HDF5-like array, which is read again at prediction; arrays are copied.

        Returns
        -------
        self
            Unchanged if an error is raised.
        """
        before = dict(self.__dict__)
        try:
            self._fit(X, Y)
        except BaseException:
            self.__dict__ = before
            raise
        return self

    def _fit(self, X: Any, Y: Any) -> None:
        check_parameters(self)
        names = None if self.graph is None or not is_data_array(Y) else as_any_graph(self.graph).names
        Y = as_table(Y, "Y", names=names)
        layout = Y.layout if isinstance(Y, Table) and Y.layout.library in WRITTEN else None
        X = as_table(X, "X", rows=layout.dims[0] if layout is not None and layout.dims is not None else None)
        check_same_order(X, Y)
        settings = self._spectrum_settings(Y)
        values = in_memory(Y, self) if settings.reads_into_memory else sliceable(Y)
        kernel = self._input_kernel(X)
        inputs = self._read_inputs(X, kernel, values.shape[0])
        flat = len(values.shape) == 1
        graph, order = read_graph(self.graph, 1 if flat else values.shape[1], frame_names(Y))
        values = graph.as_native(order.to_graph(values[:, None] if flat else values))
        kept = rows_with_values(values)
        if not kept.all():
            rows = np.flatnonzero(kept)
            inputs, values = kernel.subset(inputs, rows), values[rows]
        solver = as_solver(self.solver)
        with explaining_memory(values.shape, precision_of(values).itemsize, settings):
            columns = carried_columns(self.carry, X, kernel.has_features, inputs.shape[1], order, graph.n_nodes)
            setting = self._setting(X, graph, inputs, values, columns, settings)
            candidates = self._candidates(setting)
            if candidates is None and values.shape[0] < 2 and self.graph is None:
                candidates = [setting.candidate(Identity())]  # no folds can be made, and nothing else is to choose
            n_members = 2 if candidates is None else len(candidates)
            if n_members > 1 and values.shape[0] < 2:
                raise ValueError(
                    "Y must hold at least 2 signals to stack kernels, which takes folds; got n_samples = 1. "
                    "Ask for one kernel, for example graph_kernel=Polynomial(1)."
                )
            stacking = self._stacking(n_members, setting)
            plan = automatic(setting) if candidates is None else at_once(candidates)
            try:
                with progress_bar("fit", None, self.verbose > 0):
                    learnt = fit_models(plan, solver, stacking, self._is_open(), as_generator(self.random_state, 0))
            finally:
                for signals in setting.signals.values():
                    signals.release()
                release_passes(graph)
        self._order, self._flat, self._kept, self._layout = order, flat, kept, layout
        self._in_memory = settings.reads_into_memory
        self.input_recipe_: InputRecipe | None = None
        self._finish(learnt, int(np.count_nonzero(~kept)))

    def _setting(
        self, X: Any, graph: GraphBase, inputs: Array, values: Any, columns: Indices | None, settings: SpectrumSettings
    ) -> Setting:
        """Data and decisions, with those that are left open decided."""
        own = Independent() if X is None else None if self.input_kernel is None else as_input_kernel(self.input_kernel)
        is_paper = self.residual is None or as_solver(self.solver).only_papers_model
        residual = None if is_paper or X is None else self.residual
        is_small = settings.has_node_covariances and graph.n_nodes <= MOST_SHRUNK and values.shape[0] > 2
        shrunk = not is_paper and isinstance(self.residual, str) and is_small
        center = self.center
        if center == "auto":
            # the default kernel has levels, unless they are so large as to drown all else
            center = chosen_center(values, DROWNING if own is None else DIFFERENT)
        scales: tuple[Scale, ...] = (self.scale,)
        if self.scale == "auto":
            is_given = (
                settings.needs_passes or isinstance(self.noise_variance, int | float) or is_paper or graph.n_nodes == 1
            )
            scales = ("global",) if is_given else ("node", "global")
        keep = not settings.reads_into_memory
        signals = {scale: read_signals(values, center, scale, keep_source=keep) for scale in scales}
        is_scaled_elsewhere = all(one.has_free_amplitude for one in self._kernels())
        kernel = own.without_amplitude() if own is not None and is_scaled_elsewhere else own
        options = (self.noise_variance, self.prior, settings)
        return Setting(graph, inputs, kernel, signals, columns, residual, shrunk, *options)

    def _candidates(self, setting: Setting) -> list[Candidate] | None:
        """The models that were asked for; None where the choice is the library's."""
        if self._is_open():
            return None
        kernels, carries, scale = self._kernels(), setting.columns is not None, setting.first_scale
        if len(setting.signals) > 1:
            with quietly():
                scale = likelier_scale(setting, kernels[0], carries, as_solver(self.solver))
        return [setting.candidate(kernel, scale=scale, carries=carries) for kernel in kernels]

    def _is_open(self) -> bool:
        """Whether it is left to the library which models to stack."""
        is_residual_open = isinstance(self.residual, str)
        return self.graph_kernel is None and is_residual_open and not as_solver(self.solver).only_papers_model

    def _spectrum_settings(self, Y: Any) -> SpectrumSettings:
        """Settings of the spectrum, chosen by the size of the graph where they are left open."""
        settings = self.spectrum
        graph = self.graph if isinstance(self.graph, GraphBase) else None
        if isinstance(settings, str):
            is_cut = graph is not None and not graph.is_whole
            is_large = settings == "auto" and (is_cut or (self.graph is not None and _is_large(Y)))
            settings = Chebyshev() if is_large or settings == "chebyshev" else Exact()
        settings.check(graph)
        return settings

    def _input_kernel(self, X: Any) -> InputKernel:
        """Covariance between signals, not yet learnt; that of no inputs for the default, whose terms are still open."""
        if X is None:
            return Independent()
        return Standardised.of(np.empty((1, 0))) if self.input_kernel is None else as_input_kernel(self.input_kernel)

    def _read_inputs(self, X: Any, kernel: InputKernel, n_signals: int) -> Array:
        if X is None:
            for name in ("n_features_in_", "feature_names_in_"):  # of an earlier fit
                self.__dict__.pop(name, None)
            return np.empty((n_signals, 0))
        inputs = kernel.training(self._checked_inputs(X, reset=True))
        if inputs.shape[0] != n_signals:
            raise ValueError(
                f"X and Y must have the same number of rows, one a signal; got {inputs.shape[0]} and {n_signals}. "
                "Rows are signals: did you pass a transpose?"
            )
        return inputs

    def _kernels(self) -> list[GraphKernel]:
        """The kernels to learn; several are stacked."""
        given = self.graph_kernel
        if given is None:
            given = Identity() if self.graph is None else Polynomial("auto")
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
        if self.graph is None and any(not kernel.needs_no_graph for kernel in listed):
            raise ValueError(
                f"graph must be given to use graph_kernel={given!r}; got None. "
                "Pass a Graph, an adjacency matrix or a networkx graph."
            )
        return [member for kernel in listed for member in kernel.members()]

    def _stacking(self, n_members: int, setting: Setting) -> Stacking:
        # on a large graph every draw would cost a pass of its own at prediction; a t has the tails that draws add
        is_one = n_members == 1 or setting.spectrum.needs_passes or setting.shrunk
        default = 0 if is_one else STACKED_DRAWS
        given = self.stacking or Stacking()
        return given if given.n_draws is not None else dataclasses.replace(given, n_draws=default)

    def _finish(self, learnt: FittedModels, n_empty: int) -> None:
        """Set every fitted attribute, in the units of Y and the order of its columns."""
        weights, fits = learnt.weights, learnt.fits
        signals = learnt.candidates[int(np.argmax(weights))].task.signals
        units = signals.units
        if n_empty:
            note = f"; {n_empty} signal{'s' if n_empty > 1 else ''} without any value left out"
            fits = tuple(dataclasses.replace(fit, method=fit.method + note) for fit in fits)
        self._show(learnt, fits)
        self.log_marginal_likelihood_ = learnt.log_likelihood
        offset = np.full(signals.shape[1], units.offset) if self._in_memory else units.offset
        self.center_ = offset if np.ndim(offset) == 0 else self._order.to_user(offset)
        scales = units.divisor if np.ndim(units.divisor) else np.full(signals.shape[1], units.divisor)
        self.scale_ = self._order.to_user(scales)
        if self.prior is not None:  # else the bound is a choice of the user's, and met as often as not
            warn_of_noise(self.fits_, weights, stacklevel=5)
        for fit in self.fits_:
            if not fit.converged:
                warnings.warn(
                    f"the fit of {fit.model.graph_kernel.label} did not converge: {fit.message}. Its certificate says "
                    "how far it is from a maximum.",
                    ConvergenceWarning,
                    stacklevel=4,
                )
                break

    def _show(self, learnt: FittedModels, fits: tuple[Fit, ...]) -> None:
        """Set what was learnt, and the attributes that say it."""
        weights, models = learnt.weights, [fit.model for fit in fits]
        self._learnt, self.fits_ = learnt, fits
        self.graph_ = models[0].spectrum.graph
        self.spectrum_ = models[int(np.argmax(weights))].spectrum
        self.kernel_weights_ = weights
        self.graph_kernel_ = tuple(model.graph_kernel.signal for model in models)
        self.residual_ = tuple(model.graph_kernel.residual for model in models)
        self.input_kernel_ = tuple(model.input_kernel.described for model in models)
        self.noise_variance_ = float(weights @ [model.noise_variance for model in models])
        self.posterior_: Posterior | Mixture = learnt.posterior

    # ---------------------------------------------------------------------------------------------- prediction

    def _prediction(self, X: Any, observed: Any = None) -> Predictive:
        """Predictive distribution at new inputs, given what was observed of the signals there, if anything."""
        check_is_fitted(self)
        inputs = self._new_inputs(self._inputs_table(X))
        prediction: Predictive = self.posterior_.at(inputs)
        if observed is None:
            return prediction
        self.graph_.require_whole("for predictions given what was observed")
        known = self._observed(as_one_signal(self._signals_table(observed, "observed"), self._flat))
        return prediction.given(np.asarray(on_host(self._order.to_graph(known)), dtype=float))

    def _new_inputs(self, X: Any, as_given: bool = False) -> Any:
        """New inputs in the form that kernels take; `as_given` if a matrix may be that of the training signals."""
        kernel = self.fits_[0].model.input_kernel
        inputs = kernel.new(X, self._as_features)
        kept = np.flatnonzero(self._kept)
        return kernel.with_kept(kernel.as_new(inputs) if as_given else inputs, self._kept.size, kept)

    def _as_features(self, X: Any) -> Array:
        return self._checked_inputs(X, reset=False)

    def _checked_inputs(self, X: Any, reset: bool) -> Array:
        """Inputs as finite numbers, with the names and the number of features learnt (`reset`) or compared."""
        check_inputs(X)
        options = {"dtype": np.float64, "ensure_all_finite": False, "copy": reset}
        if isinstance(X, Table) and len(X.shape) == 2:
            validate_data(self, X.native, reset=reset, skip_check_array=True)  # names, which values have lost
            values = check_array(X.values, input_name="X", estimator=self, **options)
        else:
            values = validate_data(self, np.asarray(X) if isinstance(X, Table) else X, reset=reset, **options)
        return finite_inputs(values, frame_names(X))

    def _observed(self, Y: Any) -> Any:
        """Observed signals with their columns in the order of those at fit, shape (n_inputs, n_nodes)."""
        Y = self._signals_table(Y)
        signals = in_memory(Y, self) if self._in_memory else observed(sliceable(Y))
        signals = signals[:, None] if signals.ndim == 1 and self._flat else signals
        names = frame_names(Y)
        if names is not None and self._order.names is not None:
            return take(signals, match_columns(names, self._order.names), axis=1)
        if signals.ndim == 1 or signals.shape[1] != self.graph_.n_nodes:
            raise ValueError(
                f"Y must have shape (n_inputs, n_nodes) with n_nodes = {self.graph_.n_nodes}; got {signals.shape}. "
                "Rows are signals: did you pass the transpose?"
            )
        return signals

    def _shaped(self, values: Any) -> Any:
        return values[:, 0] if self._flat else values

    def __sklearn_tags__(self) -> Any:
        """Tags: precomputed kernels take square inputs."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = as_input_kernel(self.input_kernel).is_pairwise
        tags.target_tags.required = True
        return tags


def _is_large(Y: Any) -> bool:
    """Whether signals have more nodes than an eigendecomposition is for; a file is not read to find out."""
    shape = Y.shape if hasattr(Y, "shape") else np.shape(Y)
    return len(shape) == 2 and shape[1] > LARGE
