"""The estimator: scikit-learn's face of the library, without formulas of its own."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import Kernel
from sklearn.metrics import r2_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from spectralgp._arrays import few_threads, on_host, take
from spectralgp._checks import Array, as_integer, as_option, as_positive
from spectralgp._frames import frame_index, frame_names, match_columns
from spectralgp._progress import progress_bar
from spectralgp.graph import Graph, as_graph
from spectralgp.graph.nodes import chosen_nodes
from spectralgp.graph_kernels import GraphKernel, Identity, Polynomial
from spectralgp.graph_kernels.base import SpectralKernel
from spectralgp.inputs import Independent, InputKernel, Learnt, as_covariance, as_input_kernel
from spectralgp.learning import (
    Fit,
    Task,
    held_out_log_densities,
    hyperparameter_draws,
    learn_all,
    n_steps,
)
from spectralgp.leave_one_out import By, LeaveOneOut, leave_one_out
from spectralgp.model import GraphGP
from spectralgp.posterior import AnyPosterior, AnyPrediction, condition
from spectralgp.regressor.reading import LARGE, Training, block_by_block, explaining_memory, in_memory
from spectralgp.spectrum import Chebyshev, LargeSignals, decompose
from spectralgp.spectrum.chebyshev import PROBE_BLOCK
from spectralgp.stacking import Mixture, MixturePrediction, leave_one_out_mixture, stacking_weights

STACKED_DRAWS = 16  # of the hyperparameters of each stacked model


class GraphGPRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Gaussian process regression of signals on a graph, with a graph kernel learnt on the graph's spectrum.

    Each row of `Y` is a signal, one value a node, observed at the inputs in the same row of `X`. The model is
    ``Cov(Y) = K (x) B B^T + sigma^2 I`` with ``B = g(L)``; `fit` learns the filter ``g``, the input kernel and the
    noise by maximising the marginal likelihood.

    Parameters
    ----------
    graph : Graph or anything `as_graph` takes, optional
        The graph on the columns of `Y`. Without one every output is its own node and the kernel is the identity.
    graph_kernel : graph kernel or list of them, optional
        Covariance between nodes; `Polynomial` ("auto") if not given. A list, and the degrees of "auto", are stacked:
        predictions are a mixture with the weights that score best on held-out folds.
    kernel : scikit-learn kernel or "precomputed", optional
        Covariance between inputs; an `RBF` whose length scale starts at the median distance if not given. With
        "precomputed", `X` is the covariance matrix at `fit`, and the cross-covariance (n_inputs, n_signals), or the
        pair of it and the test covariance, at `predict`.
    noise_variance : float, optional
        Variance of the noise in the units of `Y`; learnt if not given.
    prior : {"weak"} or None, default="weak"
        Prior on the hyperparameters, which keeps few signals from being overfitted; None is plain maximum likelihood.
    center : {"global", "node"} or None, default="global"
        Subtract the mean of `Y`, or each node's own mean, or nothing.
    scale : {"global"} or None, default="global"
        Divide by the standard deviation of the centred `Y` while learning. Results are in the units of `Y` either way.
    solver : {"sqp", "lagrangian"}, default="sqp"
        Joint constrained optimisation with continuation in the degree, or the paper's Algorithm 1.
    spectrum : {"auto", "exact", "chebyshev"} or Chebyshev, default="auto"
        Eigendecomposition of the Laplacian, or a quadrature from its Chebyshev moments, which reaches graphs of
        millions of nodes with stated errors. "auto" is exact up to 5,000 nodes; `spectrum_` says which it was.
        `Chebyshev` sets moments, probes and tolerance.
    device : {"cpu", "cuda"}, optional
        Where to compute on a large graph whose signals are on the host; CuPy arrays and torch CUDA tensors are
        computed where they are.
    noise_floor : float, optional
        Smallest noise variance learnt, as a share of the variance of `Y`; 1e-6 with the weak prior and 1e-3 without.
    n_folds : int, default=5
        Folds for the weights of stacked kernels.
    n_draws : int, optional
        Average predictions over this many draws of the hyperparameters from Laplace's approximation to their
        posterior; 0 uses the best values alone. 16 for stacked kernels on an exact spectrum, else 0, if not given.
    max_iterations : int, default=500
        Limit on the iterations of each constrained solve.
    random_state : int, RandomState or None, default=None
        Seed for folds and draws; 0 if not given, so that fits repeat.
    verbose : int, default=0
        Show a progress bar while fitting.

    Attributes
    ----------
    graph_ : Graph
        The graph.
    spectrum_ : Spectrum or ChebyshevSpectrum
        Of the Laplacian of the (first) graph kernel.
    graph_kernel_, kernel_ : kernel, or tuple of kernels when stacked
        With learnt parameters, in the units of `Y`.
    noise_variance_ : float
        Noise variance in the units of `Y` squared; the weighted mean when stacked.
    log_marginal_likelihood_ : float
        Of `Y` as given, in nats; of the mixture when stacked.
    kernel_weights_ : ndarray of shape (n_kernels,)
        Weights of the stacked kernels; one for a single kernel.
    fits_ : tuple of Fit
        Certificate, message and stages of each kernel's fit.
    certificate_ : Certificate
        Residuals of the optimality conditions, of the kernel with the largest weight.
    n_evaluations_ : int
        Likelihood evaluations of the fits to all signals.
    posterior_ : Posterior or Mixture
        Conditioned model of the centred signals; gives joint covariances over inputs and nodes.
    center_ : ndarray of shape (n_nodes,), or float
        What was subtracted from `Y`; one number for all nodes of a large graph unless centred by node.
    n_features_in_ : int
        Number of features of `X`.

    Examples
    --------
    >>> import numpy as np
    >>> from spectralgp import Graph, GraphGPRegressor, Polynomial
    >>> rng = np.random.default_rng(0)
    >>> ring = Graph.from_edges([(node, (node + 1) % 10) for node in range(10)])
    >>> X = rng.standard_normal((20, 2))
    >>> Y = np.sin(X[:, :1] + np.linspace(0, 6, 10, endpoint=False)) + 0.1 * rng.standard_normal((20, 10))
    >>> model = GraphGPRegressor(ring, Polynomial(3)).fit(X, Y)
    >>> mean, std = model.predict(X[:2], return_std=True)
    >>> mean.shape, std.shape
    ((2, 10), (2, 10))
    """

    def __init__(
        self,
        graph: Any = None,
        graph_kernel: GraphKernel | Sequence[GraphKernel] | None = None,
        kernel: Kernel | Literal["precomputed"] | None = None,
        *,
        noise_variance: float | None = None,
        prior: Literal["weak"] | None = "weak",
        center: Literal["global", "node"] | None = "global",
        scale: Literal["global"] | None = "global",
        solver: Literal["sqp", "lagrangian"] = "sqp",
        spectrum: Literal["auto", "exact", "chebyshev"] | Chebyshev = "auto",
        device: Literal["cpu", "cuda"] | None = None,
        noise_floor: float | None = None,
        n_folds: int = 5,
        n_draws: int | None = None,
        max_iterations: int = 500,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.graph = graph
        self.graph_kernel = graph_kernel
        self.kernel = kernel
        self.noise_variance = noise_variance
        self.prior = prior
        self.center = center
        self.scale = scale
        self.solver = solver
        self.spectrum = spectrum
        self.device = device
        self.noise_floor = noise_floor
        self.n_folds = n_folds
        self.n_draws = n_draws
        self.max_iterations = max_iterations
        self.random_state = random_state
        self.verbose = verbose

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
            self.graph_kernel = dataclasses.replace(self.graph_kernel, **nested)  # type: ignore[type-var]
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
            Signals in rows. The columns of a DataFrame are matched to the names of the graph's nodes.

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
        names = frame_names(Y)
        settings = self._chebyshev_settings(Y)
        signals = self._read_signals(Y) if settings is None else _as_sliceable(Y)
        inputs = self._read_inputs(X, signals.shape[0])
        graph, order = self._read_graph(1 if len(signals.shape) == 1 else signals.shape[1], names)
        kernels, stacked = self._members()
        if settings is None and self.device == "cuda":
            raise ValueError(
                "device must be None or 'cpu' where the spectrum is exact, which is computed on the host; got 'cuda'. "
                "Pass spectrum='chebyshev' to compute on the device."
            )
        if stacked and signals.shape[0] < 2:
            raise ValueError(
                "Y must hold at least 2 signals to stack kernels, which takes folds; got n_samples = 1. "
                "Ask for one kernel, for example graph_kernel=Polynomial(1)."
            )
        n_folds = min(self.n_folds, signals.shape[0])
        total = n_steps(kernels, self.solver) * (n_folds + 1 if stacked else 1)
        total += 0 if settings is None else settings.n_moments // 2 + _probe_steps(settings, graph)
        with (
            explaining_memory(signals, graph.n_nodes, settings),
            progress_bar("fit", total, self.verbose > 0) as progress,
        ):
            if settings is None:
                for kernel in kernels:  # a large decomposition wants all threads
                    decompose(graph, kernel.laplacian, scaled=kernel.scaled)
                values = signals.reshape(signals.shape[0], -1)[:, order]
                training = in_memory(values, self.center, self.scale == "global")
            else:
                values = signals if isinstance(order, slice) else signals[:, order]
                scaled = self.scale == "global"
                training = block_by_block(graph, values, settings, self.center, scaled, self.device, progress)
            task = self._task(X, inputs, training)
            scaled_kernels = [_scaled(kernel, 1 / training.spread) for kernel in kernels]
            with few_threads(signals.shape[0]):
                learnt = self._learn(task, graph, scaled_kernels, stacked, n_folds, progress)
        self._finish(task, graph, *learnt, inputs, training)
        self.center_ = training.offset
        self._flat = len(signals.shape) == 1
        self._node_names = tuple(graph.names) if graph.names is not None else names

    def _chebyshev_settings(self, Y: Any) -> Chebyshev | None:
        """Settings of the quadrature spectrum; None where the exact one is used."""
        if isinstance(self.spectrum, Chebyshev):
            return self.spectrum
        as_option(self.spectrum, "spectrum", ("auto", "exact", "chebyshev"))
        if self.spectrum == "chebyshev":
            return Chebyshev()
        if self.spectrum == "exact" or self.graph is None:
            return None
        shape = Y.shape if hasattr(Y, "shape") else np.shape(Y)  # without reading signals from a file
        return Chebyshev() if len(shape) == 2 and shape[1] > LARGE else None

    def _check_parameters(self) -> None:
        for name, options in (
            ("center", ("global", "node")),
            ("scale", ("global",)),
            ("prior", ("weak",)),
            ("device", ("cpu", "cuda")),
        ):
            if getattr(self, name) is not None:
                as_option(getattr(self, name), name, options)
        as_option(self.solver, "solver", ("sqp", "lagrangian"))
        as_input_kernel(self.kernel)
        if self.noise_variance is not None:
            as_positive(self.noise_variance, "noise_variance")
        if self.noise_floor is not None:
            as_positive(self.noise_floor, "noise_floor")
        as_integer(self.n_folds, "n_folds", 2)
        as_integer(self.max_iterations, "max_iterations", 1)
        if self.n_draws is not None:
            as_integer(self.n_draws, "n_draws", 0)

    def _read_signals(self, Y: Any) -> Array:
        if Y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y is None: "
                "Y must hold the signals, shape (n_signals, n_nodes)."
            )
        signals = check_array(Y, ensure_2d=False, dtype="numeric", input_name="y", estimator=self)
        if signals.dtype.kind == "O" or np.ndim(signals) not in (1, 2):
            raise ValueError(f"Y must have shape (n_signals, n_nodes); got {np.shape(Y)}. Rows are signals.")
        return np.asarray(signals, dtype=float)

    def _read_inputs(self, X: Any, n_signals: int) -> Array:
        if X is None:
            for name in ("n_features_in_", "feature_names_in_"):  # of an earlier fit
                self.__dict__.pop(name, None)
            return np.empty((n_signals, 0))
        inputs: Array = validate_data(self, X, dtype=np.float64)
        if isinstance(self.kernel, str):
            inputs = as_covariance(inputs)
        if inputs.shape[0] != n_signals:
            raise ValueError(
                f"X and Y must have the same number of rows, one a signal; got {inputs.shape[0]} and {n_signals}. "
                "Rows are signals: did you pass a transpose?"
            )
        return inputs

    def _read_graph(self, n_nodes: int, names: tuple[Any, ...] | None) -> tuple[Graph, Any]:
        """The graph, and the order of the columns of Y that matches its nodes."""
        if self.graph is None:
            if self.graph_kernel is not None and not isinstance(self.graph_kernel, Identity):
                raise ValueError(
                    f"graph must be given to use graph_kernel={self.graph_kernel!r}; got None. "
                    "Pass a Graph, an adjacency matrix or a networkx graph."
                )
            return Graph(np.zeros((n_nodes, n_nodes))), slice(None)
        graph = as_graph(self.graph)
        if names is not None and graph.names is not None:
            return graph, match_columns(names, tuple(graph.names))
        if graph.n_nodes != n_nodes:
            raise ValueError(
                f"Y must have shape (n_signals, n_nodes) with n_nodes = {graph.n_nodes}, the nodes of the graph; "
                f"got {n_nodes} columns. Rows are signals: did you pass the transpose?"
            )
        return graph, slice(None)

    def _members(self) -> tuple[list[GraphKernel], bool]:
        """The kernels to learn, and whether they are stacked."""
        given = self.graph_kernel
        if given is None:
            given = Identity() if self.graph is None else Polynomial("auto")
        listed = [given] if isinstance(given, GraphKernel) else given
        if not isinstance(listed, Sequence) or not listed or not all(isinstance(k, GraphKernel) for k in listed):
            raise TypeError(
                f"graph_kernel must be a graph kernel such as Polynomial(3), or a list of them; got {given!r}. "
                "For a filter of your own, wrap it in Response(function)."
            )
        kernels: list[GraphKernel] = []
        for kernel in listed:
            kernels += kernel.members() if isinstance(kernel, Polynomial) else [kernel]
        return kernels, len(kernels) > 1

    def _task(self, X: Any, inputs: Array, training: Training) -> Task:
        kernel: InputKernel
        if X is None:
            kernel = Independent()
        else:
            kernel = Learnt.default(inputs) if self.kernel is None else as_input_kernel(self.kernel)
        noise = None if self.noise_variance is None else self.noise_variance / training.spread**2
        return Task(kernel, inputs, training.scaled, noise, self.prior, self.noise_floor)

    def _learn(
        self,
        task: Task,
        graph: Graph,
        kernels: list[GraphKernel],
        stacked: bool,
        n_folds: int,
        progress: Callable[[str], None] | None,
    ) -> tuple[list[Fit], Array, list[tuple[GraphGP, ...]]]:
        """Fits, their weights, and for each the models that predictions average over."""
        seed = 0 if self.random_state is None else self.random_state
        random_state = np.random.default_rng(check_random_state(seed).randint(2**31 - 1))
        is_large = isinstance(task.signals, LargeSignals)
        # on a large graph every draw would cost a pass of its own at prediction
        n_draws = (STACKED_DRAWS if stacked and not is_large else 0) if self.n_draws is None else self.n_draws
        settings: dict[str, Any] = {
            "solver": self.solver,
            "max_iterations": self.max_iterations,
            "progress": progress,
        }
        fits = learn_all(task, graph, kernels, **settings)
        models = [hyperparameter_draws(task, fit, n_draws, random_state) if n_draws else (fit.model,) for fit in fits]
        weights = np.ones(1)
        if stacked:
            folds: dict[str, Any] = {"n_folds": n_folds, "n_draws": n_draws, "random_state": random_state}
            weights = stacking_weights(held_out_log_densities(task, graph, kernels, **folds, **settings))
        if isinstance(task.signals, LargeSignals):
            task.signals.release()
        for fit in fits:
            if not fit.converged:
                name = type(fit.model.graph_kernel).__name__
                warnings.warn(
                    f"the fit of {name} did not converge: {fit.message}. Its certificate says how far it is from a "
                    "maximum; raise max_iterations, or use solver='sqp'.",
                    ConvergenceWarning,
                    stacklevel=4,
                )
                break
        return fits, weights, models

    def _finish(
        self,
        task: Task,
        graph: Graph,
        fits: list[Fit],
        weights: Array,
        models: list[tuple[GraphGP, ...]],
        inputs: Array,
        training: Training,
    ) -> None:
        """Set every fitted attribute, in the units of Y."""
        spread = training.spread
        shift = -training.shape[0] * training.shape[1] * np.log(spread)
        self.fits_ = tuple(
            dataclasses.replace(
                fit,
                model=_in_units(fit.model, spread),
                log_likelihood=fit.log_likelihood + shift,
                log_posterior=fit.log_posterior + shift,
            )
            for fit in fits
        )
        learnt = [fit.model for fit in self.fits_]
        single = len(learnt) == 1
        self.graph_ = graph
        self.spectrum_ = learnt[0].spectrum
        self.kernel_weights_ = weights
        self.graph_kernel_ = learnt[0].graph_kernel if single else tuple(model.graph_kernel for model in learnt)
        described = tuple(model.input_kernel.described for model in learnt)
        self.kernel_ = described[0] if single else described
        self.noise_variance_ = float(weights @ [model.noise_variance for model in learnt])
        parts = [np.log(w) + fit.log_likelihood for w, fit in zip(weights, self.fits_, strict=True) if w > 0]
        self.log_marginal_likelihood_ = float(logsumexp(parts))
        self.certificate_ = self.fits_[int(np.argmax(weights))].certificate
        stages = {id(stage): stage for fit in self.fits_ for stage in fit.stages}  # degrees share their continuation
        self.n_evaluations_ = sum(stage.n_evaluations for stage in stages.values())
        kept = [
            (weight / len(draws), condition(_in_units(model, spread), inputs, training.centred))
            for weight, draws in zip(weights, models, strict=True)
            if weight > 0
            for model in draws
        ]
        shares, posteriors = np.array([share for share, _ in kept]), tuple(posterior for _, posterior in kept)
        self.posterior_: AnyPosterior | Mixture = posteriors[0] if len(kept) == 1 else Mixture(shares, posteriors)

    # ---------------------------------------------------------------------------------------------- prediction

    def _prediction(self, X: Any) -> AnyPrediction | MixturePrediction:
        check_is_fitted(self)
        kernel = self.fits_[0].model.input_kernel
        return self.posterior_.at(kernel.new(X, lambda X: validate_data(self, X, dtype=np.float64, reset=False)))

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        return_cov: bool = False,
        include_noise: bool = False,
        nodes: Any = None,
    ) -> Any:
        """Predict signals at new inputs.

        Parameters
        ----------
        X : array or DataFrame of shape (n_inputs, n_features)
            New inputs. With a precomputed kernel: the cross-covariance (n_inputs, n_signals), or the pair
            (cross-covariance, test covariance) where uncertainties are wanted. None, for one new signal, if the
            model was fitted without inputs.
        return_std : bool, default=False
            Return standard deviations too.
        return_cov : bool, default=False
            Return the covariance over the nodes for each input too.
        include_noise : bool, default=False
            Uncertainty of a noisy observation rather than of the noise-free signal.
        nodes : array of int or of names, optional
            Only these nodes. On a large graph standard deviations are exact there, and by random probes elsewhere.

        Returns
        -------
        mean : array of shape (n_inputs, n_nodes)
            One-dimensional if `Y` was; of the kind of `Y` (NumPy, CuPy or torch).
        std : ndarray of the shape of mean
            If `return_std`.
        covariance : ndarray of shape (n_inputs, n_nodes, n_nodes)
            If `return_cov`.
        """
        if return_std and return_cov:
            raise ValueError(
                "return_std and return_cov must not both be True; got both. "
                "The standard deviations are the roots of the covariances' diagonals."
            )
        prediction = self._prediction(X)
        chosen = None if nodes is None else chosen_nodes(nodes, self.graph_.n_nodes, self.graph_.positions)
        mean = prediction.mean + self.center_
        mean = self._shaped(mean if chosen is None else take(mean, chosen, axis=1))
        if return_std:
            return mean, self._shaped(prediction.std(include_noise, chosen))
        if return_cov:
            covariance = prediction.node_covariance(include_noise)
            return mean, covariance if chosen is None else covariance[:, chosen[:, None], chosen]
        return mean

    def predict_frame(self, X: Any, return_std: bool = False, include_noise: bool = False) -> Any:
        """Predict as `predict` does, into pandas DataFrames with the nodes' names and the index of `X`."""
        import pandas as pd

        predicted = self.predict(X, return_std=return_std, include_noise=include_noise)
        columns: Any = self._node_names
        frames = [
            pd.DataFrame(np.reshape(values, (-1, self.graph_.n_nodes)), index=frame_index(X), columns=columns)
            for values in (predicted if return_std else (predicted,))
        ]
        return tuple(frames) if return_std else frames[0]

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0, include_noise: bool = False) -> Array:
        """Draw signals from the posterior, shape (n_inputs, n_nodes, n_samples) as in scikit-learn."""
        generator = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        draws = self._prediction(X).sample(as_integer(n_samples, "n_samples", 1), generator, include_noise)
        stacked = array_namespace(draws).moveaxis(draws + self.center_, 0, -1)
        return stacked[:, 0, :] if self._flat else stacked

    def log_predictive_density(self, X: Any, Y: Any, joint: bool = True) -> Any:
        """Log density of observed signals at new inputs: one total in nats, or one number a signal.

        Parameters
        ----------
        X : array or DataFrame of shape (n_inputs, n_features), or None
            New inputs; None if the model was fitted without inputs.
        Y : array or DataFrame of shape (n_inputs, n_nodes)
            Signals observed there.
        joint : bool, default=True
            Density of all signals together (float), or of each alone, shape (n_inputs,).
        """
        check_is_fitted(self)
        signals = self._in_node_order(Y)
        prediction = self._prediction(np.empty((signals.shape[0], 0)) if X is None else X)
        if signals.shape[1] != self.graph_.n_nodes:
            raise ValueError(
                f"Y must have shape (n_inputs, n_nodes) with n_nodes = {self.graph_.n_nodes}; got {signals.shape}. "
                "Rows are signals: did you pass the transpose?"
            )
        return prediction.log_density(signals - self.center_, joint)

    def _in_node_order(self, Y: Any) -> Any:
        """Observed signals with their columns in the order of the nodes, shape (n_inputs, n_nodes)."""
        signals: Any
        if self.spectrum_.is_exact:
            signals = self._read_signals(Y)
            signals = signals.reshape(signals.shape[0], -1)
        else:
            signals = _as_sliceable(Y)
            signals = signals if is_array_api_obj(signals) else np.asarray(signals[:, :])
        names = frame_names(Y)
        if names is None or self._node_names is None:
            return signals
        return signals[:, match_columns(names, self._node_names)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Coefficient of determination R^2 of `predict`, averaged over the nodes; columns are matched by name."""
        check_is_fitted(self)
        return float(r2_score(on_host(self._in_node_order(y)), on_host(self.predict(X)), sample_weight=sample_weight))

    def leave_one_out(self, by: By = "signal") -> LeaveOneOut:
        """Closed-form predictions of each training signal, node or entry from all others, in the units of Y."""
        check_is_fitted(self)
        if isinstance(self.posterior_, Mixture):
            left = leave_one_out_mixture(self.posterior_.weights, self.posterior_.posteriors, by)
        else:
            left = leave_one_out(self.posterior_, by)
        return dataclasses.replace(left, mean=left.mean + self.center_)

    def response(self, eigenvalues: ArrayLike | None = None, return_std: bool = False) -> Any:
        """The learnt filter ``g`` at eigenvalues; the weighted average of the filters when stacked.

        Parameters
        ----------
        eigenvalues : array of shape (n,), optional
            Those of ``spectrum_`` if not given.
        return_std : bool, default=False
            Return its standard deviation over draws of the hyperparameters and over stacked kernels too.
        """
        check_is_fitted(self)
        points = self.spectrum_.eigenvalues if eigenvalues is None else np.asarray(eigenvalues, dtype=float)
        spectra = {(fit.model.spectrum.laplacian, fit.model.spectrum.scaled) for fit in self.fits_}
        if len(spectra) > 1 or not all(isinstance(fit.model.graph_kernel, SpectralKernel) for fit in self.fits_):
            raise ValueError(
                "graph_kernel must be one function on one spectrum to have one response; got kernels of different "
                "Laplacians, or LocalAverage. Look at the kernels in graph_kernel_ one by one."
            )
        learnt = np.array([fit.model.graph_kernel.response(points) for fit in self.fits_])  # type: ignore[attr-defined]
        mean = self.kernel_weights_ @ learnt
        if not return_std:
            return mean
        posterior = self.posterior_
        parts = posterior.posteriors if isinstance(posterior, Mixture) else (posterior,)
        shares = posterior.weights if isinstance(posterior, Mixture) else np.ones(1)
        drawn = np.array([part.prior.graph_kernel.response(points) for part in parts])  # type: ignore[attr-defined]
        return mean, np.sqrt(shares @ (drawn - shares @ drawn) ** 2)

    def _shaped(self, values: Array) -> Array:
        return values[:, 0] if self._flat else values

    def __sklearn_tags__(self) -> Any:
        """Tags: precomputed kernels take square inputs."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, str)
        tags.target_tags.required = True
        return tags


def _as_sliceable(Y: Any) -> Any:
    """Signals that need not fit in memory: anything with a shape and a dtype, sliced by columns; tables as arrays."""
    signals = Y.to_numpy() if hasattr(Y, "columns") else Y
    signals = np.asarray(signals) if isinstance(signals, list | tuple) else signals
    if not hasattr(signals, "shape") or not hasattr(signals, "dtype") or len(signals.shape) != 2:
        raise ValueError(
            f"Y must have shape (n_signals, n_nodes) on a large graph; got {np.shape(Y)}. Rows are signals."
        )
    return signals


def _probe_steps(settings: Chebyshev, graph: Graph) -> int:
    """Steps of the recurrence that the probes will take."""
    n_probes = graph.n_nodes if settings.n_probes == "exact" else int(settings.n_probes)
    return -(-n_probes // PROBE_BLOCK) * (settings.n_moments // 2)


def _scaled(kernel: GraphKernel, factor: float) -> GraphKernel:
    """The kernel for signals divided by 1 / factor; an unlearnt polynomial has no units yet."""
    return kernel if isinstance(kernel, Polynomial) and kernel.chebyshev is None else kernel.scaled_by(factor)


def _in_units(model: GraphGP, spread: float) -> GraphGP:
    """A model of scaled signals, in the units the signals came in."""
    return GraphGP(
        model.spectrum,
        model.graph_kernel.scaled_by(spread),
        model.input_kernel,
        model.noise_variance * spread**2,
    )
