"""What every estimator on a graph does: read what it is given, learn, and predict."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from spectralgp._arrays import as_generator, take
from spectralgp._checks import Array, as_integer, as_option, as_positive
from spectralgp._frames import check_same_order, frame_names, match_columns
from spectralgp._operators import precision_of
from spectralgp._progress import progress_bar
from spectralgp.estimators._reading import (
    check_inputs,
    explaining_memory,
    finite_inputs,
    in_memory,
    observed,
    read_graph,
    sliceable,
)
from spectralgp.fitting import FittedModels, Stacking, fit_models, n_fitting_steps
from spectralgp.graph_kernels import GraphKernel, Identity, Polynomial
from spectralgp.inputs import Independent, InputKernel, Learnt, as_covariance, as_input_kernel
from spectralgp.learning import Task, as_solver
from spectralgp.mixture import Mixture, MixturePrediction
from spectralgp.posterior import Posterior, Prediction
from spectralgp.signals import Signals, read_signals
from spectralgp.spectrum import Chebyshev, release_passes

LARGE = 5_000  # nodes, beyond which spectrum="auto" gives up the eigendecomposition
STACKED_DRAWS = 16  # of the hyperparameters of each stacked model


class GraphGPEstimator(BaseEstimator):
    """Reading, learning and conditioning; what is predicted and how is up to the estimators derived from it."""

    graph: Any
    graph_kernel: Any
    kernel: Any
    noise_variance: Any
    prior: Any
    center: Any
    scale: Any
    solver: Any
    spectrum: Any
    device: Any
    noise_floor: Any
    n_folds: Any
    n_draws: Any
    max_iterations: Any
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
        X : array or DataFrame of shape (n_signals, n_features), or None
            Inputs, one row a signal; the covariance matrix itself for a precomputed kernel. None makes the signals
            independent, ``K = I``: the filter can be learnt, and a new signal has the model's own distribution.
        Y : array or DataFrame of shape (n_signals, n_nodes) or (n_signals,)
            Signals in rows. The columns of a DataFrame are matched to the names of the graph's nodes. On a large graph
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
        self._check_parameters()
        check_same_order(X, Y)
        settings = self._spectrum_settings(Y)
        values = in_memory(Y, self) if settings is None else sliceable(Y)
        inputs = self._read_inputs(X, values.shape[0])
        flat = len(values.shape) == 1
        graph, order = read_graph(self.graph, 1 if flat else values.shape[1], frame_names(Y))
        values = order.to_graph(values[:, None] if flat else values)
        kernels = self._members()
        if len(kernels) > 1 and values.shape[0] < 2:
            raise ValueError(
                "Y must hold at least 2 signals to stack kernels, which takes folds; got n_samples = 1. "
                "Ask for one kernel, for example graph_kernel=Polynomial(1)."
            )
        item_size = 8 if settings is None else precision_of(values).itemsize
        solver = as_solver(self.solver, self.max_iterations)
        n_folds = min(self.n_folds, values.shape[0])
        with (
            explaining_memory(values.shape, item_size, settings),
            progress_bar("fit", n_fitting_steps(kernels, solver, n_folds), self.verbose > 0),
        ):
            signals = read_signals(values, self.center, self.scale == "global", keep_source=settings is not None)
            spread = signals.units.spread
            noise = None if self.noise_variance is None else self.noise_variance / spread**2
            kernel, options = self._input_kernel(X, inputs), (self.prior, self.noise_floor, settings, self.device)
            task = Task(graph, kernel, inputs, signals, noise, *options)
            scaled = [kernel.scaled_by(1 / spread) for kernel in kernels]
            stacking, random_state = self._stacking(kernels, settings), as_generator(self.random_state, 0)
            try:
                learnt = fit_models(task, scaled, solver, stacking, random_state)
            finally:
                signals.release()
                release_passes(graph)
        self._order, self._flat, self._in_memory = order, flat, settings is None
        self._finish(learnt, signals)

    def _check_parameters(self) -> None:
        for name, options in (
            ("center", ("global", "node")),
            ("scale", ("global",)),
            ("prior", ("weak",)),
            ("device", ("cpu", "cuda")),
        ):
            if getattr(self, name) is not None:
                as_option(getattr(self, name), name, options)
        as_integer(self.max_iterations, "max_iterations", 1)
        as_solver(self.solver)
        as_input_kernel(self.kernel)
        for name in ("noise_variance", "noise_floor"):
            if getattr(self, name) is not None:
                as_positive(getattr(self, name), name)
        as_integer(self.n_folds, "n_folds", 2)
        if self.n_draws is not None:
            as_integer(self.n_draws, "n_draws", 0)
        if not isinstance(self.spectrum, Chebyshev):
            as_option(self.spectrum, "spectrum", ("auto", "exact", "chebyshev"))

    def _spectrum_settings(self, Y: Any) -> Chebyshev | None:
        """Settings of the quadrature spectrum; None where the exact one is used."""
        if isinstance(self.spectrum, Chebyshev):
            return self.spectrum
        if self.spectrum == "chebyshev" or (self.spectrum == "auto" and self.graph is not None and _is_large(Y)):
            return Chebyshev()
        if self.device == "cuda":
            raise ValueError(
                "device must be None or 'cpu' where the spectrum is exact, which is computed on the host; got 'cuda'. "
                "Pass spectrum='chebyshev' to compute on the device."
            )
        return None

    def _read_inputs(self, X: Any, n_signals: int) -> Array:
        if X is None:
            for name in ("n_features_in_", "feature_names_in_"):  # of an earlier fit
                self.__dict__.pop(name, None)
            return np.empty((n_signals, 0))
        check_inputs(X)
        inputs = validate_data(self, X, dtype=np.float64, copy=True, ensure_all_finite=False)
        inputs = finite_inputs(inputs, frame_names(X))
        if isinstance(self.kernel, str):
            inputs = as_covariance(inputs)
        if inputs.shape[0] != n_signals:
            raise ValueError(
                f"X and Y must have the same number of rows, one a signal; got {inputs.shape[0]} and {n_signals}. "
                "Rows are signals: did you pass a transpose?"
            )
        return inputs

    def _input_kernel(self, X: Any, inputs: Array) -> InputKernel:
        if X is None:
            return Independent()
        return Learnt.default(inputs) if self.kernel is None else as_input_kernel(self.kernel)

    def _members(self) -> list[GraphKernel]:
        """The kernels to learn; several are stacked."""
        given = self.graph_kernel
        if given is None:
            given = Identity() if self.graph is None else Polynomial("auto")
        listed = [given] if isinstance(given, GraphKernel) else given
        remedy = "For a filter of your own, wrap it in Response(function); input kernels go into kernel=."
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

    def _stacking(self, kernels: Sequence[GraphKernel], settings: Chebyshev | None) -> Stacking:
        # on a large graph every draw would cost a pass of its own at prediction
        default = STACKED_DRAWS if len(kernels) > 1 and settings is None else 0
        return Stacking(self.n_folds, default if self.n_draws is None else self.n_draws)

    def _finish(self, learnt: FittedModels, signals: Signals) -> None:
        """Set every fitted attribute, in the units of Y and the order of its columns."""
        units, weights = signals.units, learnt.weights
        self.fits_ = tuple(fit.scaled_by(units.spread, signals.size) for fit in learnt.fits)
        models = [fit.model for fit in self.fits_]
        graph_kernels = tuple(model.graph_kernel for model in models)
        kernels = tuple(model.input_kernel.described for model in models)
        single = len(models) == 1
        self.graph_ = models[0].spectrum.graph
        self.spectrum_ = models[0].spectrum
        self.kernel_weights_ = weights
        self.graph_kernel_ = graph_kernels[0] if single else graph_kernels
        self.kernel_ = kernels[0] if single else kernels
        self.noise_variance_ = float(weights @ [model.noise_variance for model in models])
        self.log_marginal_likelihood_ = units.log_density(learnt.log_likelihood, signals.size)
        self.certificate_ = self.fits_[int(np.argmax(weights))].certificate
        self.n_evaluations_ = learnt.n_evaluations
        self.n_stand_ins_ = sum(
            one.n_stand_ins for one, weight in zip(learnt.draws, weights, strict=True) if weight > 0
        )
        self.posterior_: Posterior | Mixture = learnt.posterior
        offset = np.full(signals.shape[1], units.offset) if self._in_memory else units.offset
        self.center_ = offset if np.ndim(offset) == 0 else self._order.to_user(offset)
        for fit in self.fits_:
            if not fit.converged:
                warnings.warn(
                    f"the fit of {fit.model.graph_kernel.label} did not converge: {fit.message}. Its certificate says "
                    "how far it is from a maximum.",
                    ConvergenceWarning,
                    stacklevel=4,
                )
                break

    # ---------------------------------------------------------------------------------------------- prediction

    def _prediction(self, X: Any) -> Prediction | MixturePrediction:
        check_is_fitted(self)
        return self.posterior_.at(self.fits_[0].model.input_kernel.new(X, self._as_features))

    def _as_features(self, X: Any) -> Array:
        check_inputs(X)
        return finite_inputs(
            validate_data(self, X, dtype=np.float64, reset=False, ensure_all_finite=False), frame_names(X)
        )

    def _observed(self, Y: Any) -> Any:
        """Observed signals with their columns in the order of those at fit, shape (n_inputs, n_nodes)."""
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
        tags.input_tags.pairwise = isinstance(self.kernel, str)
        tags.target_tags.required = True
        return tags


def _is_large(Y: Any) -> bool:
    """Whether signals have more nodes than an eigendecomposition is for; a file is not read to find out."""
    shape = Y.shape if hasattr(Y, "shape") else np.shape(Y)
    return len(shape) == 2 and shape[1] > LARGE
