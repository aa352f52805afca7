"""The estimator: scikit-learn's face of the library, without formulas of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.gaussian_process.kernels import Kernel
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from spectralgp._basics.arrays import as_generator, moved_last, on_host, take
from spectralgp._basics.checks import as_option
from spectralgp._basics.tables import check_same_order
from spectralgp.estimators._filling import FillingMixin
from spectralgp.estimators._output import labels_of
from spectralgp.estimators._reporting import ReportingMixin
from spectralgp.estimators._saving import SavingMixin
from spectralgp.estimators._words import average_response, summary_of
from spectralgp.fields import By, LeaveOneOut, leave_one_out
from spectralgp.kernels import GraphKernel, SpectralKernel
from spectralgp.learning import Solver
from spectralgp.learning.fitting import Stacking
from spectralgp.spectra import SpectrumSettings

ROUNDING = 1e-9  # of the spectrum's interval, by which an eigenvalue may lie beyond it


class GraphGPRegressor(MultiOutputMixin, RegressorMixin, FillingMixin, ReportingMixin, SavingMixin):
    """Gaussian process regression of signals on a graph, with a graph kernel learnt on the graph's spectrum.

    Each row of `Y` is a signal, one value a node, observed at the inputs in the same row of `X`. The model is
    ``y = S [b(L) x + g(L) f(x) + h(L) e + noise]``: what inputs explain through the filter ``g``, what neighbours share
    beside it through ``h``, what inputs with a value at each node carry over through ``b``, and the scales ``S`` of the
    nodes. `fit` learns the filters, the input kernel and the noise by maximising the marginal likelihood. The paper's
    model is ``residual=None, carry=None, center="global", scale="global"``.

    Parameters
    ----------
    graph : Graph or anything `as_graph` takes, optional
        The graph on the columns of `Y`. Without one every output is its own node and the kernel is the identity.
    graph_kernel : graph kernel or list of them, optional
        Covariance between nodes. If not given, a few models are tried on held-out folds and stacked: polynomials of
        two degrees on both Laplacians, with and without scales of the nodes, carry-over, each term of the input
        kernel, and a graph; `summary` says which. A list, and the degrees of `Polynomial` ("auto"), are stacked too:
        predictions are a mixture with the weights that score best on held-out folds.
    input_kernel : scikit-learn kernel or "precomputed", optional
        Covariance between inputs, used as given; but a constant that multiplies all of it is held where the graph
        kernel has a factor of its own. If not given, the columns of `X` are standardised, and the kernel is an `RBF`,
        a linear term and a constant, which gives every node a level of its own. With "precomputed", `X` is the
        covariance matrix at `fit`, and the cross-covariance (n_inputs, n_signals), or the pair of it and the test
        covariance, at `predict`.
    noise_variance : float or pair of float, optional
        Variance of the noise in the units of `Y` squared, or bounds ``(low, high)`` between which it is learnt. If not
        given, the bounds are 1e-6 (1e-3 without a prior) and 10 times the variance of `Y`.
    prior : {"weak"} or None, default="weak"
        Prior on the hyperparameters, which keeps few signals from being overfitted; None is plain maximum likelihood.
    residual : graph kernel, "auto" or None, default="auto"
        Filter ``h`` of what neighbours share and inputs do not explain. It is part of the signal, so that
        ``include_noise=False`` keeps it. "auto" takes a polynomial of degree 2 and, on an exact spectrum of up to 2,000
        nodes, shrinks the covariance of predictions from what the signals say to what the graph says, as far as the
        evidence supports: predictions are then multivariate t. None is the paper's model, in which all that inputs do
        not explain is noise.
    carry : "auto", array of int or of str, or None, default="auto"
        Columns of `X`, in the order of those of `Y`, whose values at the nodes carry over to the signal through a
        filter ``b`` of any sign, as yesterday's values do to today's. "auto" takes them where they are the nodes: by
        name, or by their number where neither `X` nor `Y` has names.
    center : {"auto", "global", "node"} or None, default="auto"
        Subtract the mean of `Y`, or each node's own mean, or nothing. "auto" leaves levels to the default kernel, which
        has a term for them, unless they drown all else; with another kernel it is "node" where the nodes' means differ
        by more than chance.
    scale : {"auto", "global", "node"} or None, default="auto"
        Divide by the standard deviation of the centred `Y` while learning; or each node by its own, shrunk towards the
        common one as if eight more signals had been seen. "auto" tries both on an exact spectrum where the noise is
        learnt and `residual` is not None: a `graph_kernel` that is given takes the likelier one, half a nat being the
        price of a node's own scale; where the library chooses what to stack, folds decide. Results are in the units
        of `Y`.
    solver : {"sqp", "lagrangian"} or Solver, default="sqp"
        Joint constrained optimisation with continuation in the degree, or the paper's Algorithm 1; or one of them as an
        object, `Sqp` or `Lagrangian`, which limit iterations. ``Sqp(n_restarts=40)`` looks for higher maxima from
        random starts.
    spectrum : {"auto", "exact", "chebyshev"}, Exact or Chebyshev, default="auto"
        Eigendecomposition of the Laplacian, or a quadrature from its Chebyshev moments, which reaches graphs of
        millions of nodes with stated errors. "auto" is exact up to 5,000 nodes; `spectrum_` says which it was.
        `Chebyshev` sets moments, probes, tolerance and the device to compute on.
    stacking : Stacking, optional
        Folds for the weights of stacked models, draws of the hyperparameters to average over, and threads:
        ``Stacking(n_folds=10, n_draws=16, n_jobs=4)``.
    random_state : int, RandomState, Generator or None, default=None
        Seed for folds and draws; 0 if not given, so that fits repeat.
    verbose : int, default=0
        Show a progress bar while fitting.

    Attributes
    ----------
    graph_ : Graph
        The graph.
    spectrum_ : ExactSpectrum or Quadrature
        Of the Laplacian of the (first) graph kernel.
    graph_kernel_, input_kernel_ : tuple of kernels
        One per model, with learnt parameters, in the units of `Y`; the default input kernel is that of standardised
        inputs.
    residual_ : tuple of kernels or None
        Residual filter of each model, with what it has at every frequency, which counts as noise: `response` shows the
        rest.
    noise_variance_ : float
        Noise variance in the units of `Y` squared, at a node of relative scale one; the weighted mean when stacked.
        Whatever inputs do not explain and is constant over frequencies is noise.
    log_marginal_likelihood_ : float
        Of `Y` as given, in nats; of the mixture when stacked.
    kernel_weights_ : ndarray of shape (n_kernels,)
        Weights of the stacked kernels; one for a single kernel.
    fits_ : tuple of Fit
        Certificate, message and stages of each kernel's fit.
    input_recipe_ : InputRecipe or None
        How a command made the inputs from files; None where `fit` was called from Python. `save` keeps it.
    posterior_ : Posterior or Mixture
        Conditioned model; gives joint covariances over inputs and nodes, in the units of `Y` and the graph's order of
        nodes. Its prior is that of the signals after centring and scaling.
    center_ : ndarray of shape (n_nodes,), or float
        What was subtracted from `Y`; one number for all nodes of a large graph unless centred by node.
    scale_ : ndarray of shape (n_nodes,)
        What it was divided by while learning, in the model of the largest weight.
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
        input_kernel: Kernel | Literal["precomputed"] | None = None,
        *,
        noise_variance: float | tuple[float, float] | None = None,
        prior: Literal["weak"] | None = "weak",
        residual: SpectralKernel | Literal["auto"] | None = "auto",
        carry: Any = "auto",
        center: Literal["auto", "global", "node"] | None = "auto",
        scale: Literal["auto", "global", "node"] | None = "auto",
        solver: Literal["sqp", "lagrangian"] | Solver = "sqp",
        spectrum: Literal["auto", "exact", "chebyshev"] | SpectrumSettings = "auto",
        stacking: Stacking | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.graph = graph
        self.graph_kernel = graph_kernel
        self.input_kernel = input_kernel
        self.noise_variance = noise_variance
        self.prior = prior
        self.residual = residual
        self.carry = carry
        self.center = center
        self.scale = scale
        self.solver = solver
        self.spectrum = spectrum
        self.stacking = stacking
        self.random_state = random_state
        self.verbose = verbose

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        return_cov: bool = False,
        include_noise: bool = False,
        nodes: Any = None,
        observed: Any = None,
    ) -> Any:
        """Predict signals at new inputs.

        Parameters
        ----------
        X : array or table of shape (n_inputs, n_features)
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
            Only these nodes, by their names, or by their positions among the columns of `Y` at `fit`. On a large graph
            standard deviations are exact there, and by random probes elsewhere.
        observed : array or table of shape (n_inputs, n_nodes), optional
            What is known of these signals themselves, NaN elsewhere: today's readings at some stations, to predict the
            others. One signal may be one-dimensional. All inputs are conditioned on together.

        Returns
        -------
        mean : array or table of shape (n_inputs, n_nodes)
            Nodes in the order of the columns of `Y` at `fit`. One-dimensional if `Y` was; of the kind of `Y` (NumPy,
            CuPy, torch, or a table of its library with the nodes' names and the row labels of `X`), or as `set_output`
            says.
        std : of the shape and kind of mean
            If `return_std`.
        covariance : ndarray of shape (n_inputs, n_nodes, n_nodes)
            If `return_cov`.
        """
        if return_std and return_cov:
            raise ValueError(
                "return_std and return_cov must not both be True; got both. "
                "The standard deviations are the roots of the covariances' diagonals."
            )
        check_is_fitted(self)
        X, observed = self._inputs_table(X), self._signals_table(observed, "observed")
        prediction, order = self._prediction(X, observed), self._order
        columns = None if nodes is None else order.chosen(nodes, self.graph_.n_nodes)
        chosen = None if columns is None else order.nodes(columns)
        known, labels = order.names, labels_of(X, observed)
        names = known if columns is None else [(known or range(self.graph_.n_nodes))[column] for column in columns]

        def answered(values: Any) -> Any:
            return self._answered(self._shaped(values), names, labels, self._layout)

        mean = answered(order.to_user(prediction.mean) if chosen is None else take(prediction.mean, chosen, axis=1))
        if return_std:
            std = prediction.std(include_noise, chosen)
            return mean, answered(order.to_user(std) if chosen is None else std)
        if return_cov:
            covariance = prediction.node_covariance(include_noise)
            if chosen is not None:
                return mean, covariance[:, chosen[:, None], chosen]
            return mean, order.to_user(order.to_user(covariance, axis=1), axis=2)
        return mean

    def sample_y(
        self, X: Any, n_samples: int = 1, random_state: Any = 0, include_noise: bool = False, observed: Any = None
    ) -> Any:
        """Draw signals from the posterior, shape (n_inputs, n_nodes, n_samples) as in scikit-learn.

        Draws are joint over inputs and nodes; given what was `observed` of them, if anything.
        """
        draws = self._prediction(X, observed).sample(n_samples, as_generator(random_state), include_noise)
        stacked = moved_last(self._order.to_user(draws), 0)
        return stacked[:, 0, :] if self._flat else stacked

    def log_predictive_density(self, X: Any, Y: Any, joint: bool = True, observed: Any = None) -> Any:
        """Log density of observed signals at new inputs: one total in nats, or one number a signal.

        Parameters
        ----------
        X : array or table of shape (n_inputs, n_features), or None
            New inputs; None if the model was fitted without inputs.
        Y : array or table of shape (n_inputs, n_nodes)
            Signals observed there; NaN where nothing was, which leaves a value out.
        joint : bool, default=True
            Density of all signals together (float), or of each alone, shape (n_inputs,).
        observed : array or table of shape (n_inputs, n_nodes), optional
            What was known of them before: the density is that of the other values of `Y`, given these.
        """
        check_is_fitted(self)
        X, Y = self._inputs_table(X), self._signals_table(Y)
        check_same_order(X, Y)
        signals = self._observed(Y)
        prediction = self._prediction(np.empty((signals.shape[0], 0)) if X is None else X, observed)
        return prediction.log_density(self.graph_.as_native(self._order.to_graph(signals)), joint)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Coefficient of determination R^2 of `predict`, averaged over the nodes; columns are matched by name.

        Values that were not observed are left out, and nodes of which fewer than two were.
        """
        check_is_fitted(self)
        truth = np.asarray(on_host(self._observed(y)))
        prediction = self._prediction(np.empty((len(truth), 0)) if X is None else X)
        predicted = np.asarray(on_host(self._order.to_user(prediction.mean)))
        seen = np.isfinite(truth)
        if seen.all():
            return float(r2_score(truth, predicted, sample_weight=sample_weight))
        nodes = np.flatnonzero(seen.sum(axis=0) > 1)
        if nodes.size == 0:
            raise ValueError("Y must hold at least two values at some node for R^2; got fewer. Pass more signals.")
        weights = np.ones(len(truth)) if sample_weight is None else np.asarray(sample_weight)
        own = [(node, seen[:, node]) for node in nodes]
        scores = [r2_score(truth[s, n], predicted[s, n], sample_weight=weights[s]) for n, s in own]
        return float(np.mean(scores))

    def leave_one_out(self, by: By = "signal") -> LeaveOneOut:
        """Closed-form predictions of each training signal, node or entry from all others, in the units of Y."""
        check_is_fitted(self)
        left, order = leave_one_out(self.posterior_, by), self._order
        log_density = left.log_density if by == "signal" else order.to_user(left.log_density)
        mean, std = order.to_user(left.mean), order.to_user(left.std)
        if not self._kept.all():  # a signal without any value has no answer
            mean, std = self._among_given(mean), self._among_given(std)
            log_density = log_density if by == "node" else self._among_given(log_density)
        return LeaveOneOut(by, mean, std, log_density)

    def _among_given(self, values: Any) -> Any:
        """Values of the training signals, with NaN for the signals given at `fit` that had none."""
        all_rows = np.full((self._kept.size, *values.shape[1:]), np.nan)
        all_rows[self._kept] = values
        return all_rows

    def response(
        self,
        eigenvalues: ArrayLike | None = None,
        return_std: bool = False,
        which: Literal["signal", "residual", "carry"] = "signal",
    ) -> Any:
        """A learnt filter at eigenvalues; the weighted average of the filters when stacked.

        Parameters
        ----------
        eigenvalues : array of shape (n,), optional
            Within the interval of the spectrum; those of ``spectrum_`` if not given.
        return_std : bool, default=False
            Return its standard deviation over draws of the hyperparameters and over stacked kernels too.
        which : {"signal", "residual", "carry"}, default="signal"
            The filter ``g`` of what inputs explain, ``h`` of what neighbours share beside it, or ``b``, through which
            inputs carry over. The first two are in the units of `Y`, for a node of relative scale one. Models without
            a residual or a carry-over count as zero.

        Notes
        -----
        Models that live on another Laplacian than ``spectrum_``, that of the largest weight, are left out.
        """
        check_is_fitted(self)
        as_option(which, "which", ("signal", "residual", "carry"))
        spectrum = self.spectrum_
        # nodes of a quadrature may lie a little beyond the interval
        own = np.minimum(spectrum.eigenvalues, spectrum.upper)
        points = own if eigenvalues is None else np.asarray(eigenvalues, dtype=float)
        if not np.all(np.abs(points / spectrum.upper - 0.5) <= 0.5 + ROUNDING):
            raise ValueError(
                f"eigenvalues must lie between 0 and {spectrum.upper:g}, where the filter was learnt; got values from "
                f"{np.min(points):g} to {np.max(points):g}. Beyond that a polynomial says nothing."
            )
        fitted = [(weight, fit.model, 1.0) for weight, fit in zip(self.kernel_weights_, self.fits_, strict=True)]
        mean, _ = average_response(fitted, spectrum, points, which)
        if not return_std:
            return mean
        return mean, average_response(self._learnt.shown, spectrum, points, which)[1]

    def summary(self) -> str:
        """What was learnt, in words: the models, their weights, their filters, inputs and noise."""
        check_is_fitted(self)
        return summary_of(self._learnt)
