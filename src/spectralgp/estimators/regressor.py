"""Regression of signals on a graph, as an estimator of scikit-learn."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import Kernel
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from spectralgp._basics.arrays import as_generator, on_host, take
from spectralgp._basics.checks import Array, Indices, Mask, as_option, as_positive, as_real_array
from spectralgp._basics.progress import progress_bar
from spectralgp._basics.tables import check_same_order, frame_index, frame_names, is_counted, like_table, row_labels
from spectralgp.estimators import answers, reading, saving
from spectralgp.estimators import observing as observers
from spectralgp.estimators.observing import Alignment, takes_auxiliary_data
from spectralgp.files.inputs import InputRecipe
from spectralgp.learning import Candidate, Fit, FittedModels, Solver, Stacking, as_solver
from spectralgp.learning.fitting import Shown
from spectralgp.learning.graphs import fit_on_graphs
from spectralgp.learning.missing import objective_of
from spectralgp.model import fields
from spectralgp.model.kernels import GraphKernel, SpectralKernel, as_input_kernel, signal_of
from spectralgp.model.likelihoods import Likelihood
from spectralgp.model.likelihoods.base import AuxiliaryData
from spectralgp.model.spectra import SpectrumSettings

if TYPE_CHECKING:
    from spectralgp.show.report.shapes import FilterShape

FILTERS = ("signal", "residual", "carry")
ROUNDING = 1e-9  # relative to the interval of the spectrum: tolerance for eigenvalues beyond it
Reported = tuple[tuple[Fit, ...], float]  # fits and log likelihood, of models since conditioned on other signals


class GraphGPRegressor(MultiOutputMixin, RegressorMixin, reading.GraphEstimator):
    """Gaussian process regression of signals on a graph, with a graph kernel learnt on the graph's spectrum.

    Each row of `Y` is a signal, one value per node, observed at the inputs in the same row of `X`. The model is
    ``y = S [b(L) x + g(L) f(x) + h(L) e + noise]``, with a filter ``g`` of functions of the inputs, a filter ``h`` of a
    residual shared by neighbours, an autoregressive filter ``b`` of inputs with a value at each node, and scales ``S``
    of the nodes. `fit` learns the filters, the input kernel and the noise by maximising the marginal likelihood. The
    paper's model is ``residual=None, carry=None, center="global", scale="global"``.

    Parameters
    ----------
    graph : Graph, LearntGraph, function, list of these, or anything `as_graph` takes, optional
        The graph on the columns of `Y`. Without one, nodes are unrelated and the kernel is the identity. `LearntGraph`
        learns weights between points. A function, such as ``Graph.from_signals``, makes the graph of the training
        signals and inputs, in each fold anew. Of a list of graphs on the same nodes, that of the best held-out score is
        kept, or of the largest likelihood if one kernel is given; models on different graphs are not mixed.
    graph_kernel : graph kernel, list of them or Stacking, optional
        Covariance between nodes. By default several models are compared on held-out folds and stacked, as `summary`
        reports; for one signal Matern kernels on three Laplacians, by values left out; it is `Diffusion` for a constant
        or, for one signal, fewer than five values or more than 2,000. The kernels of a list, and the degrees of
        ``Polynomial("auto")``, are stacked too: a mixture with the weights that score best on held-out folds.
        Settings: ``Stacking([Diffusion(), Polynomial(2)], n_folds=10)``, or ``Stacking(n_jobs=2)`` for the default.
    input_kernel : scikit-learn kernel or "precomputed", optional
        Covariance between inputs, used as given, except for a constant factor that the graph kernel also has. By
        default an `RBF`, a linear term and a constant on standardised columns of `X`. With "precomputed", `X` is the
        covariance matrix at `fit`, and the cross-covariance, or the pair of it and the test covariance, at `predict`.
    noise_variance : float or pair of float, optional
        In the units of `Y` squared, or bounds ``(low, high)`` between which it is learnt; by default 1e-6 (1e-3 without
        a prior) and 10 times the variance of `Y`.
    prior : {"weak"} or None, default="weak"
        Prior on the hyperparameters against overfitting of few signals; None is plain maximum likelihood.
    residual : graph kernel, "auto" or None, default="auto"
        Filter ``h``, part of the signal, so that ``include_noise=False`` keeps it. "auto" is a `PinnedFilter`, which
        vanishes at one end of the spectrum so that noise is identified, or none, as evidence says (a polynomial of
        degree 2 in some models of the default). On an exact spectrum of up to 2,000 nodes there is a covariance between
        that of the signals and that of the graph (shrinkage) too: predictions are then multivariate t. None takes all
        that inputs do not explain as noise.
    carry : "auto", "lagged", array of int or of str, or None, default="auto"
        Columns of `X`, in the order of those of `Y`, that carry over through ``b``, of any sign, such as yesterday's
        values. "auto" takes columns named as the nodes, or all columns if nothing has names and there is one per node.
        If they are the signal before, in 80% of the rows and up to one factor, rows are in time order: by default
        models of changes are compared too, by forecasts of later signals, and beyond the levels seen in training no
        change is predicted, given a complete `Y` of 12 signals or more and an exact spectrum. "lagged" is "auto" with
        rows in time order, and the columns in the units of `Y`.
    center : {"auto", "global", "node"} or None, default="auto"
        Subtract the mean of `Y`, that of each node, or nothing. "auto" is "node" if the nodes' means differ by more
        than chance (with the default input kernel, which has a term for them, if they dominate the variance), or if
        some node was never observed, on a graph of up to 2,000 nodes: its mean and scale are predicted from those of
        the others, equation (23b), with the uncertainty of its mean.
    scale : {"auto", "global", "node"} or None, default="auto"
        Divide by the standard deviation of the centred `Y` while learning, or by that of each node, shrunk towards the
        common one as far as their spread suggests. "auto" compares both: by the likelihood for a given `graph_kernel`,
        at a price of half a nat per node's scale, and by folds otherwise.
    solver : "sqp" or Solver, default="sqp"
        Joint constrained optimisation with continuation in the degree; `Sqp` has its limits, and
        ``Sqp(n_restarts=40)`` looks for higher maxima from random starts. A `Solver` of your own has one method, `fit`.
    spectrum : {"auto", "exact", "chebyshev"}, Exact or Chebyshev, default="auto"
        Eigendecomposition of the Laplacian, or a quadrature from its Chebyshev moments, with stated errors, for graphs
        of up to millions of nodes. "auto" is exact up to 5,000 nodes; 2,000 if more than 2,500 values are missing, the
        graph is sparse and `graph_kernel` is left open. `Chebyshev` has settings, and the device.
    random_state : int, RandomState, Generator or None, default=None
        Seed for folds and draws; 0 by default, so that fits repeat.
    verbose : int, default=0
        Show a progress bar while fitting; beyond 1,500 signals there is always one, with an estimate of the time.
    likelihood : str or Likelihood, default="gaussian"
        Distribution of the values: "poisson" and "negative_binomial" for counts, "bernoulli" and "binomial" for two
        classes and proportions, "student_t" for outliers, or a `Likelihood`. Signals are then latent: logarithms of
        rates, or log odds. One model is learnt, by default a polynomial of degree 2 with an exponential residual, and
        `noise_variance` is the white part of the latent signals. On a large graph for one signal, or a few.

    Attributes
    ----------
    graph_ : Graph
        The graph.
    spectrum_ : ExactSpectrum or Quadrature
        Of the Laplacian of the graph kernel with the largest weight.
    graph_kernel_, input_kernel_ : tuple of kernels
        One per model, learnt, in the units of `Y`; the default input kernel is that of standardised inputs.
    residual_ : tuple of kernels or None
        One per model.
    noise_variance_ : float
        In the units of `Y` squared (near a typical value, for a model of logarithms), at a node of relative scale one;
        the weighted mean when stacked. If a residual vanishes nowhere, noise is not identified: its least power over
        the frequencies is counted here too, within bounds of the noise.
    log_marginal_likelihood_ : float
        Of `Y` as given, in nats; of the mixture when stacked; of the signals learnt from if others have missing values.
        With missing values it is computed at the first use, here and in `fits_`.
    kernel_weights_ : ndarray of shape (n_kernels,)
        Weights of the stacked models; one for a single model.
    fits_ : tuple of Fit
        Certificate, message and stages of each model's fit.
    learnt_ : FittedModels
        Models with their draws of hyperparameters, and the scores of all that were compared.
    input_recipe_ : InputRecipe or None
        Origin of the inputs in files, set by commands; None if `fit` was called from Python. `save` keeps it.
    posterior_ : Posterior or Mixture
        Conditioned model, with joint covariances over inputs and nodes, in the graph's order of nodes.
    center_ : ndarray of shape (n_nodes,), or float
        Subtracted from `Y`; one number for all nodes of a large graph unless centred by node.
    scale_ : ndarray of shape (n_nodes,)
        Divisor while learning. Both are of the model of the largest weight: of changes, if it is a model of these, and
        near a typical value if of logarithms.
    graph_parameters_ : GraphParameters or None
        Lengths, exponent and number of neighbours of a `LearntGraph`, by name, with standard errors.
    coefficients_ : Coefficients
        Fixed effects with their standard errors, with a likelihood, covariates or noise that is known per entry.
    likelihood_ : Likelihood
        Likelihood with its learnt parameters, with the same.
    n_features_in_ : int
        Number of features of `X`.
    date_columns_ : tuple of int
        Positions of the columns of `X` that were dates.

    Examples
    --------
    >>> import numpy as np
    >>> from spectralgp import Graph, GraphGPRegressor, Polynomial
    >>> ring = Graph.from_edges([(node, (node + 1) % 10) for node in range(10)])
    >>> X = np.arange(20.0)[:, None]
    >>> Y = np.sin(X / 4 + np.arange(10) * 0.6) + 0.1 * np.random.default_rng(0).standard_normal((20, 10))
    >>> Y[3, 4] = np.nan
    >>> model = GraphGPRegressor(ring, Polynomial(3)).fit(X, Y)
    >>> mean, std = model.predict(X[:2], return_std=True)
    >>> mean.shape, std.shape
    ((2, 10), (2, 10))
    >>> completed, std = model.impute(X, Y)
    >>> bool(abs(completed[3, 4] - np.sin(3 / 4 + 2.4)) < 3 * std[3, 4]), int(np.count_nonzero(std))
    (True, 1)
    """

    _kind: ClassVar = "regressor"  # in model files

    def __init__(
        self,
        graph: Any = None,
        graph_kernel: GraphKernel | Sequence[GraphKernel] | Stacking | None = None,
        input_kernel: Kernel | Literal["precomputed"] | None = None,
        *,
        noise_variance: float | tuple[float, float] | None = None,
        prior: Literal["weak"] | None = "weak",
        residual: SpectralKernel | Literal["auto"] | None = "auto",
        carry: Any = "auto",
        center: Literal["auto", "global", "node"] | None = "auto",
        scale: Literal["auto", "global", "node"] | None = "auto",
        solver: Literal["sqp"] | Solver = "sqp",
        spectrum: Literal["auto", "exact", "chebyshev"] | SpectrumSettings = "auto",
        random_state: Any = None,
        verbose: int = 0,
        likelihood: str | Likelihood = "gaussian",
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
        self.random_state = random_state
        self.verbose = verbose
        self.likelihood = likelihood

    # exposures, covariates and the like are routed by scikit-learn, unless it is told otherwise
    __metadata_request__fit: ClassVar = dict.fromkeys(AuxiliaryData.__annotations__, True)
    __metadata_request__predict: ClassVar = dict.fromkeys(AuxiliaryData.__annotations__, True)
    __metadata_request__score: ClassVar = dict.fromkeys(AuxiliaryData.__annotations__, True)

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``graph_kernel__degree=5`` replaces the (frozen) graph kernel by one of that degree.

        Parameters of a `Stacking` are set likewise: ``graph_kernel__n_folds=10``.
        """
        prefix = "graph_kernel__"
        nested = {name.removeprefix(prefix): params.pop(name) for name in list(params) if name.startswith(prefix)}
        super().set_params(**params)
        if nested:
            if not isinstance(self.graph_kernel, GraphKernel | Stacking):
                raise ValueError(
                    f"graph_kernel must be one kernel to set {prefix}{next(iter(nested))}; got {self.graph_kernel!r}. "
                    "Pass for example graph_kernel=Polynomial(3), or a Stacking of several, first."
                )
            known = self.graph_kernel.get_params()
            unknown = [name for name in nested if name not in known]
            if unknown:
                raise ValueError(
                    f"Invalid parameter {unknown[0]!r} for {type(self.graph_kernel).__name__}; got {unknown}. "
                    f"Valid parameters are: {sorted(known)}."
                )
            self.graph_kernel = replace(self.graph_kernel, **nested)
        return self

    def __sklearn_tags__(self) -> Any:
        """Tags: precomputed kernels take square inputs."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = as_input_kernel(self.input_kernel).form.is_pairwise
        tags.target_tags.required = True
        return tags

    @reading.fits
    @takes_auxiliary_data
    def fit(self, X: Any, Y: Any, **given: Unpack[AuxiliaryData]) -> Self:
        """Learn all hyperparameters and condition on the signals; an error leaves the estimator unchanged.

        Parameters
        ----------
        X : array or table of shape (n_signals, n_features), or None
            Inputs, one row per signal; the covariance matrix itself for a precomputed kernel. Columns of dates are
            days since 1970, in UTC if they have a time zone. None makes the signals independent, ``K = I``: the filter
            is learnt, and new signals have the prior distribution.
        Y : array or table of shape (n_signals, n_nodes) or (n_signals,)
            Signals in rows. NaN is a missing value, whose treatment is in `fits_`. Signals without any value are left
            out; nodes without any are predicted. The columns of a table (of any library that narwhals reads, or an
            xarray DataArray) are matched to the names of the graph's nodes. On a large graph `Y` may be a memory map or
            an HDF5-like array, which is read again at prediction; arrays are copied.
        exposure : float, or array of shape (n_nodes,) or as Y, optional
            Exposures of counts, such as populations, hours or expected cases; one by default.
        trials : float, or array of shape (n_nodes,) or as Y, optional
            Numbers of trials of a binomial likelihood.
        noise_variance : float, or array of shape (n_nodes,) or as Y, optional
            Known noise of each value, such as of instruments, in the units of `Y` squared.
        weights : float, or array of shape (n_nodes,) or as Y, optional
            Weights of values, such as numbers of averaged readings, by which the variance of the noise is divided; its
            root at weight one, ``likelihood_.scale``, is learnt.
        covariates : dict, array or table, optional
            Fixed effects in addition to an intercept: a dict of names and values, one per node or of the shape of `Y`;
            or one row per node, one column per covariate. ``coefficients_`` has them with standard errors.

        Notes
        -----
        On an exact spectrum, beyond 1,500 signals, hyperparameters are learnt from 1,000 drawn at random. Up to 6,000
        signals are conditioned on exactly; more by 500 of the inputs, equation (34), or the 1,000 alone exactly,
        whichever predicts 200 others better. Signals with missing values are all conditioned on, and their likelihoods
        are those of the 1,000. `summary` reports it.
        """
        solver = as_solver(self.solver)
        training = reading.read_training(self, solver, X, Y)
        with training.resources():
            if given or self.likelihood != "gaussian":
                training = observers.with_observations(self, training, given)
            self._effects, random_state = training.effects, as_generator(self.random_state, 0)
            choices_on = partial(reading.choices_on, self, training, solver)
            options = [(choices_on(graph, graph_of), family) for graph, graph_of, family in training.made_graphs()]
            with progress_bar("fit", None, self.verbose > 0 or options[0][0].has_many_signals):
                learnt = fit_on_graphs(options, choices_on, solver, random_state)
        n_empty = int(np.count_nonzero(~training.form.kept))
        if n_empty:
            note = f"; {n_empty} signal{'s' if n_empty > 1 else ''} without any value left out"
            learnt = replace(learnt, raw_fits=tuple(replace(fit, method=fit.method + note) for fit in learnt.raw_fits))
        self._show(learnt, training.form_given(learnt.conditioned_on))
        self.input_recipe_: InputRecipe | None = None
        return self

    @property
    def _warnings(self) -> list[Warning]:
        """Warnings of noise at its lower bound and of fits that did not converge."""
        found, learnt = list[Warning](), self.learnt_
        # without a prior the bound is a choice of the user's, and met as often as not
        has_prior = learnt.candidates[0].task.prior is not None
        if has_prior and learnt.weights @ [fit.is_noise_at_bound for fit in learnt.raw_fits] > 0.5:
            found.append(
                UserWarning(
                    "the noise is at its lower bound: the data do not identify any noise, and intervals may be too "
                    "narrow. Check Y for copies or interpolated values, or pass noise_variance, or bounds of it."
                )
            )
        failed = [fit for fit in learnt.raw_fits if not fit.converged]
        if failed:
            text = f"the fit of {failed[0].model.graph_kernel.label} did not converge: {failed[0].message}. "
            found.append(ConvergenceWarning(f"{text}Its certificate says how far it is from a maximum."))
        return found

    @property
    def fits_(self) -> tuple[Fit, ...]:
        """Certificate, message and stages of each model's fit."""
        return self.learnt_.fits if self._reported is None else self._reported[0]

    @property
    def log_marginal_likelihood_(self) -> float:
        """Log marginal likelihood of `Y` as given, in nats."""
        return self.learnt_.log_likelihood if self._reported is None else self._reported[1]

    def _show(self, learnt: FittedModels, form: reading.SignalFormat, reported: Reported | None = None) -> None:
        """Set the learnt models and their attributes, in the units of `Y` and the order of its columns."""
        fits = map(Candidate.in_units, learnt.candidates, learnt.raw_fits) if reported is None else reported[0]
        models, heaviest = [fit.model for fit in fits], int(np.argmax(learnt.weights))
        self.learnt_, self._form, self._reported, self._models = learnt, form, reported, models
        self.graph_, self.graph_parameters_ = models[0].spectrum.graph, learnt.graph_parameters
        self.spectrum_ = models[heaviest].spectrum
        self.kernel_weights_ = learnt.weights
        self.graph_kernel_ = tuple(signal_of(model.graph_kernel) for model in models)
        self.residual_ = tuple(model.graph_kernel.residual for model in models)
        self.input_kernel_ = tuple(model.input_kernel.described for model in models)
        noise = [one.noise_of(model) for one, model in zip(learnt.candidates, models, strict=True)]
        self.noise_variance_ = float(learnt.weights @ noise)
        self.posterior_: Any = learnt.posterior
        member = learnt.candidates[heaviest]
        units, n_nodes = member.task.signals.units, self.graph_.n_nodes
        offset = np.full(n_nodes, units.offset) if form.is_in_memory else units.offset
        if member.transformation is not None and member.transformation.has_slopes:
            offset = member.transformation.restored(offset[None], member.task.inputs[:1])[0]
        divisor = member.spread if units.relative is None else member.spread * units.relative
        self._is_latent = member.task.observed_by is not None  # and seen through a likelihood
        if self._is_latent:
            self.coefficients_ = observers.Coefficients.of(self._effects, learnt.posterior)
            self.likelihood_ = models[heaviest].likelihood
        self.center_ = offset if np.ndim(offset) == 0 else form.to_user(offset)
        self.scale_ = form.to_user(divisor if np.ndim(divisor) else np.full(n_nodes, divisor))

    @takes_auxiliary_data
    def predict(
        self,
        X: Any,
        return_std: bool = False,
        return_cov: bool = False,
        include_noise: bool = False,
        nodes: Any = None,
        observed: Any = None,
        return_quantiles: Sequence[float] = (),
        *,
        observed_exposure: Any = None,
        **given: Unpack[AuxiliaryData],
    ) -> Any:
        """Predict signals at new inputs.

        Parameters
        ----------
        X : array or table of shape (n_inputs, n_features), or None
            New inputs; with a precomputed kernel the cross-covariance (n_inputs, n_signals), or the pair
            (cross-covariance, test covariance) for uncertainties; None for a model without inputs.
        return_std : bool, default=False
            Return standard deviations too.
        return_cov : bool, default=False
            Return the covariance over the nodes for each input too.
        include_noise : bool, default=False
            Return the uncertainty of a noisy observation instead of that of the noise-free signal.
        nodes : array of int or of names, optional
            Only these nodes, by their names or positions among the columns of `Y` at `fit`. On a large graph standard
            deviations are exact there, and by random probes otherwise.
        observed : array or table of shape (n_inputs, n_nodes), optional
            Known values of these signals themselves, NaN elsewhere: today's readings at some stations, to predict the
            others. All signals are conditioned on jointly. With a likelihood, training signals are recognised.
        return_quantiles : sequence of float, optional
            Return quantiles of values, with their noise, at these probabilities too; only with a likelihood.
            ``(0.05, 0.95)`` are the ends of 90% intervals.
        observed_exposure : float, array or table, optional
            Exposures, or numbers of trials, of new signals in `observed`; needed if `fit` had any.
        exposure, trials, weights : float, array or table, optional
            Those of the predictions, as for `fit`; one by default, so that counts are rates, and successes
            probabilities. `weights` are needed for new signals in `observed`.
        noise_variance : float, array or table, optional
            Noise of new values, if `fit` had it: needed for values in `observed`, `include_noise` and quantiles.
        covariates : dict, array or table, optional
            Those of the new signals; by default those of `fit`, unless they differ between signals.

        Returns
        -------
        mean : array or table of shape (n_inputs, n_nodes)
            Nodes in the order of the columns of `Y` at `fit`; one-dimensional if `Y` was. An array of its library or a
            table of its kind, with the nodes' names and the row labels of `X`, or as `set_output` says.
        std : of the shape and kind of mean
            If `return_std`.
        covariance : ndarray of shape (n_inputs, n_nodes, n_nodes)
            If `return_cov`.
        quantiles : one of the shape and kind of mean for each probability
            If `return_quantiles`.
        """
        if return_std and return_cov:
            raise ValueError(
                "return_std and return_cov must not both be True; got both. "
                "The standard deviations are the roots of the covariances' diagonals."
            )
        for probability in return_quantiles:
            if not 0 < probability < 1:
                raise ValueError(
                    f"return_quantiles must hold probabilities between 0 and 1, exclusive; got {probability}. Pass "
                    "0.05 and 0.95 for 90% intervals."
                )
        check_is_fitted(self)
        form = self._form
        X, observed = form.table(X, "X"), form.table(observed, "observed")
        has_noise = bool(include_noise or len(return_quantiles))
        prediction = self._prediction(X, given, observed, observed_exposure, with_noise=has_noise)
        names, chosen, labels = form.names, None, frame_index(X)
        labels = frame_index(observed) if labels is None else labels
        if nodes is not None:
            columns, chosen = form.chosen(nodes, self.graph_.n_nodes)
            names = tuple((names or range(self.graph_.n_nodes))[column] for column in columns)

        def answered(values: Any, are_chosen: bool = False) -> Any:
            if chosen is None:
                values = form.to_user(values)
            elif not are_chosen:
                values = take(values, chosen, axis=1)
            return form.answer(values[:, 0] if form.is_flat else values, self._output, names, labels)

        answer = [answered(prediction.mean)]
        if return_std:
            answer.append(answered(fields.standard_deviation(prediction, include_noise, chosen), are_chosen=True))
        if return_cov:
            covariance = fields.node_covariances(prediction, include_noise)
            if chosen is None:
                answer.append(form.to_user(covariance, 1, 2))
            else:
                answer.append(covariance[:, chosen[:, None], chosen])
        answer += [answered(prediction.quantile(probability)) for probability in return_quantiles]
        return tuple(answer) if len(answer) > 1 else answer[0]

    def _prediction(
        self,
        X: Any,
        given: AuxiliaryData,
        observed: Any = None,
        observed_exposure: Any = None,
        Y: Any = None,
        **asked: Any,
    ) -> fields.PredictiveDistribution:
        """Predictive distribution at new inputs, given observed values of the signals there, if any.

        `Y` has the labels of the rows; `asked` goes to `new_observed_by`, with `values` in the user's order of nodes.
        """
        check_is_fitted(self)
        form = self._form
        X, observed = form.table(X, "X"), form.table(observed, "observed")
        check_same_order(X, observed, "observed")
        prediction: fields.PredictiveDistribution = self.posterior_.at(self._new_inputs(X))
        alignment = self._alignment(prediction.mean.shape[0], Y, X, observed)
        if self._is_latent and "values" in asked:
            asked["values"] = form.in_graph(asked["values"])
        observed_by = observers.new_observed_by(self, given, alignment, **asked)
        if observed is None:
            if observed_exposure is not None:
                raise ValueError("observed_exposure must be left out without observed; got some. Pass exposure.")
            return prediction if observed_by is None else fields.observed_with(prediction, observed_by)
        self.graph_.require_whole("for predictions given what was observed")
        known = form.in_graph(form.signals(form.as_rows(observed), self.graph_.n_nodes, self, "observed"))
        if observed_by is None:
            if observed_exposure is not None:
                observers.new_observed_by(self, {"exposure": observed_exposure}, alignment)  # which refuses it
            return prediction.given(known)
        takes = observed_by.likelihood.beside or "exposure"  # which a likelihood without either refuses
        # of the values observed, not of the answer
        own: Any = {name: one for name, one in (given | {takes: observed_exposure}).items() if one is not None}
        rows = observers.training_rows(self, self._new_inputs(X, as_given=True), known, own, alignment)
        if np.all(rows >= 0):  # known already, as `impute` has it
            return fields.observed_with(self.posterior_.imputed(rows), observed_by)
        if np.any(rows >= 0):
            raise ValueError(
                f"observed must hold training signals alone, or new ones; got {np.sum(rows >= 0)} and "
                f"{np.sum(rows < 0)} of them. Ask for them in turn."
            )
        how = observers.new_observed_by(self, own, alignment, known, asked=False, argument="observed")
        return fields.observed_with(fields.observed_with(prediction, how).given(known), observed_by)

    @property
    def _needed_beside(self) -> str | None:
        """Name of the argument that values of new signals need because `fit` had it, if any."""
        takes, is_needed = (
            observers.auxiliary_argument(self.posterior_.parts[0][1]) if self._is_latent else (None, False)
        )
        return takes if is_needed else None

    def _alignment(self, n_rows: int, *tables: Any) -> Alignment:
        """Rows and nodes to align exposures and the like with; row labels are those of the first table that has any."""
        index = next((index for index in map(frame_index, tables) if not is_counted(index)), None)
        return Alignment(self._form, n_rows, self.graph_.n_nodes, index)

    def _new_inputs(self, X: Any, as_given: bool = False) -> Any:
        """New inputs as kernels take them; `as_given` if a matrix may be that of the training signals."""
        form, kept = self._models[0].input_kernel.form, self._form.kept
        n_features = getattr(self, "n_features_in_", 0)
        inputs = form.read_new(X, n_features, lambda features: reading.checked_inputs(self, features))
        return form.with_kept(form.as_new(inputs) if as_given else inputs, kept.size, np.flatnonzero(kept))

    def _paired(self, X: Any, Y: Any) -> tuple[Any, Any, Any]:
        """Inputs, signals as given, a table or an array, and as an array with the user's order of the nodes."""
        check_is_fitted(self)
        X, Y = self._form.table(X, "X"), self._form.table(Y, "Y")
        check_same_order(X, Y)
        signals = self._form.signals(Y, self.graph_.n_nodes, self)
        return np.empty((signals.shape[0], 0)) if X is None else X, Y, signals

    def _signals_at(self, X: Any, Y: Any) -> tuple[Any, Any, Array, Alignment]:
        """Inputs as kernels take them, signals as given and in the graph's order of nodes, and their alignment."""
        X, Y, signals = self._paired(X, Y)
        inputs, values = self._new_inputs(X, as_given=True), self._form.in_graph(signals)
        return inputs, Y, values, self._alignment(len(values), Y, X)

    @takes_auxiliary_data
    def sample_y(
        self,
        X: Any,
        n_samples: int = 1,
        random_state: Any = 0,
        include_noise: bool = False,
        observed: Any = None,
        *,
        observed_exposure: Any = None,
        **given: Unpack[AuxiliaryData],
    ) -> Any:
        """Draw signals, jointly over inputs and nodes: shape (n_inputs, n_nodes, n_samples), as in scikit-learn.

        `X`, `include_noise`, `observed` and all else are those of `predict`. With a likelihood, draws without noise
        are rates or probabilities, those with noise counts or classes.
        """
        prediction = self._prediction(X, given, observed, observed_exposure, with_noise=include_noise)
        return self._form.samples(prediction.sample(n_samples, as_generator(random_state), include_noise))

    @takes_auxiliary_data
    def log_predictive_density(
        self, X: Any, Y: Any, joint: bool = True, observed: Any = None, **given: Unpack[AuxiliaryData]
    ) -> Any:
        """Log density of signals at new inputs: one total in nats or, unless `joint`, one number per signal.

        It is the density of the values of `Y` that are neither NaN nor in `observed`, given those in `observed`. `X`
        and `observed` are those of `predict`; exposures and the like are those of the values in both, and needed if
        `fit` had any. With a likelihood it is a lower bound, equation (38), of the probability of counts or classes.
        """
        X, Y, signals = self._paired(X, Y)
        own = None if observed is None else given.get("trials", given.get("exposure"))
        prediction = self._prediction(X, given, observed, own, Y, values=signals, asked=False)
        return prediction.log_density(self.graph_.as_native(self._form.to_graph(signals)), joint)

    @takes_auxiliary_data
    def score(self, X: Any, y: Any, sample_weight: Any = None, **given: Unpack[AuxiliaryData]) -> float:
        """Coefficient of determination R^2 of `predict`, averaged over the nodes; columns are matched by name.

        Missing values are left out, and nodes with fewer than two observed ones. Other arguments are those of
        `log_predictive_density`.
        """
        X, y, signals = self._paired(X, y)
        mean = self._form.to_user(self._prediction(X, given, Y=y, values=signals, asked=False).mean)
        if sample_weight is not None:
            sample_weight = self._alignment(len(signals), y, X).rows(sample_weight, "sample_weight")
        truth, predicted = (np.asarray(on_host(one)) for one in (signals, mean))
        known = np.isfinite(truth)
        if known.all():
            return float(r2_score(truth, predicted, sample_weight=sample_weight))
        nodes = np.flatnonzero(known.sum(axis=0) > 1)
        if nodes.size == 0:
            raise ValueError("Y must hold at least two values at some node for R^2; got fewer. Pass more signals.")
        rows = np.ones(len(truth)) if sample_weight is None else sample_weight
        chosen = [(known[:, node], node) for node in nodes]
        return float(np.mean([r2_score(truth[at], predicted[at], sample_weight=rows[at[0]]) for at in chosen]))

    @property
    def theta_(self) -> Array:
        """Learnt hyperparameters, as `log_marginal_likelihood` takes them; a ValueError for stacked models."""
        check_is_fitted(self)
        fit, *others = self.learnt_.raw_fits
        if others:
            raise ValueError(
                f"graph_kernel must be one kernel to ask for its hyperparameters; got a mixture of {len(others) + 1} "
                "models. Fit one, for example graph_kernel=Polynomial(3)."
            )
        return objective_of(self.learnt_.candidates[0].learning, fit.model).point(fit.model)

    def log_marginal_likelihood(self, theta: ArrayLike | None = None, eval_gradient: bool = False) -> Any:
        """Log marginal likelihood of the training signals at hyperparameters, as scikit-learn's regressor has it.

        Parameters
        ----------
        theta : array of shape (n_parameters,), optional
            Parameters of the graph kernel (coefficients, or logarithms as in its `theta`) and of the input kernel, and
            the log noise variance unless that was given, all of the signals centred and divided by their scale while
            learning. Those learnt, `theta_`, if not given.
        eval_gradient : bool, default=False
            Return the gradient in `theta` too.

        Returns
        -------
        log_likelihood : float
            Of `Y` as given, in nats, without the prior; the carry-over filter is the most likely one at `theta`.
        gradient : ndarray of shape (n_parameters,)
            If `eval_gradient`.

        Examples
        --------
        >>> import numpy as np
        >>> from spectralgp import Graph, GraphGPRegressor, Polynomial
        >>> ring = Graph.from_edges([(node, (node + 1) % 5) for node in range(5)])
        >>> Y = np.random.default_rng(0).standard_normal((20, 5))
        >>> model = GraphGPRegressor(ring, Polynomial(1), prior=None, residual=None).fit(None, Y)
        >>> value, gradient = model.log_marginal_likelihood(model.theta_, eval_gradient=True)
        >>> bool(abs(value - model.log_marginal_likelihood_) < 1e-9), gradient.shape
        (True, (3,))
        """
        check_is_fitted(self)
        if theta is None and not eval_gradient:
            return self.log_marginal_likelihood_
        learnt = self.theta_
        if theta is not None:
            learnt = as_real_array(theta, "theta", ("n_parameters",), sizes={"n_parameters": learnt.size})
        value, gradient = answers.evidence_at(self.learnt_, learnt)
        return (value, gradient) if eval_gradient else value

    def leave_one_out(self, by: fields.By = "signal") -> fields.LeaveOneOut:
        """Closed-form predictions of each training signal, node or entry from all others, in the units of Y.

        Predictions of a signal without any value are NaN.
        """
        check_is_fitted(self)
        left, form = fields.leave_one_out(self.posterior_, by), self._form
        log_density = left.log_density if by == "signal" else form.to_user(left.log_density)
        mean, std = (form.among_given(form.to_user(one)) for one in (left.mean, left.std))
        pit = None if left.transforms is None else form.among_given(form.to_user(left.transforms))
        return fields.LeaveOneOut(by, mean, std, log_density if by == "node" else form.among_given(log_density), pit)

    def response(
        self,
        eigenvalues: ArrayLike | None = None,
        return_std: bool = False,
        which: Literal["signal", "residual", "carry"] = "signal",
    ) -> Any:
        """Learnt filter at eigenvalues; the weighted mean of the filters when stacked.

        Models on another Laplacian than that of ``spectrum_``, of the largest weight, are left out.

        Parameters
        ----------
        eigenvalues : array of shape (n,), optional
            Within the interval of the spectrum; by default those of ``spectrum_``.
        return_std : bool, default=False
            Return its standard deviation over draws of the hyperparameters and over stacked models too.
        which : {"signal", "residual", "carry"}, default="signal"
            The filter ``g`` or ``h``, in the units of `Y` at a node of relative scale one, or ``b``; zero if absent.
        """
        check_is_fitted(self)
        as_option(which, "which", FILTERS)
        spectrum = self.spectrum_
        # nodes of a quadrature may lie a little beyond the interval
        own = np.minimum(spectrum.eigenvalues, spectrum.upper)
        points = own if eigenvalues is None else np.asarray(eigenvalues, dtype=float)
        if not np.all(np.abs(points / spectrum.upper - 0.5) <= 0.5 + ROUNDING):
            raise ValueError(
                f"eigenvalues must lie between 0 and {spectrum.upper:g}, where the filter was learnt; got values from "
                f"{np.min(points):g} to {np.max(points):g}. Beyond that a polynomial says nothing."
            )
        mean, _ = answers.average_response(self._fitted, spectrum, points, which)
        if not return_std:
            return mean
        shown = chain.from_iterable(self.learnt_.shown)
        return mean, answers.average_response(shown, spectrum, points, which)[1]

    @property
    def _fitted(self) -> list[Shown]:
        """The models and their weights, as `average_response` takes them."""
        members = zip(self.kernel_weights_, self._models, self.learnt_.candidates, strict=True)
        return [(weight, model, 1.0, candidate.carried) for weight, model, candidate in members]

    def filter_shape(self, which: Literal["signal", "residual", "carry"] = "signal") -> FilterShape:
        """Kind of a learnt filter: low-pass, high-pass, band-pass, band-stop, several humps or flat.

        It follows from shares of the power of the filter of `response`, and from the differences of its values relative
        to their uncertainty over draws of the hyperparameters; `summary` and `report` have it in words.
        """
        check_is_fitted(self)
        drawn = self.learnt_.shown if self.learnt_.candidates[0].task.signals.shape[0] else ()
        return answers.filter_shape(self._fitted, drawn, self.spectrum_, as_option(which, "which", FILTERS))

    def summary(self) -> str:
        """Return a summary of the learnt models: weights, filters, inputs and noise."""
        check_is_fitted(self)
        said = answers.mixture_summary(self.learnt_)
        if not self.date_columns_:
            return said
        names = getattr(self, "feature_names_in_", range(self.n_features_in_))
        columns = ", ".join(str(names[place]) for place in self.date_columns_)
        return f"{said}\n\nDates of X (column {columns}) are days since 1970, in UTC where they have a time zone."

    @takes_auxiliary_data
    def impute(self, X: Any, Y: Any, **given: Unpack[AuxiliaryData]) -> tuple[Any, Any]:
        """Impute missing values.

        Training signals are recognised by their inputs and values; other signals are new, and conditioned on in
        addition.

        Parameters
        ----------
        X : array or table of shape (n_signals, n_features), or None
            As in `predict`; with a precomputed kernel also the covariance of the training signals themselves.
        Y : array or table of shape (n_signals, n_nodes)
            Signals; NaN at missing values.
        exposure, trials, noise_variance, weights, covariates : optional
            Those of the values in `Y`, as for `fit`; needed for new signals if `fit` had any. Noise is needed at
            observed values; elsewhere it is the median of that of `fit` by default.

        Returns
        -------
        completed : of the shape and kind of Y, or as `set_output` says
            Observed values unchanged, and the conditional means of missing ones.
        std : of the shape and kind of completed
            Predictive standard deviations, noise included; zero at observed values.
        """
        check_is_fitted(self)
        self.graph_.require_whole("to impute missing values")
        features, table, signals, alignment = self._signals_at(X, Y)
        rows, observed_by = self._among_new(features, signals, given, alignment, impute=True)
        values, variances = answers.imputed_signals(self.posterior_, features, signals, rows, observed_by)
        return self._like(values, table), self._like(np.sqrt(variances), table)

    def _among_new(
        self, features: Any, signals: Array, given: AuxiliaryData, alignment: Alignment, impute: bool = False
    ) -> tuple[Indices, fields.ObservationModel | None]:
        """Numbers of the signals among the training signals, -1 for new ones, and the observation model of these."""
        rows = observers.training_rows(self, features, signals, given, alignment)
        new = np.where(rows[:, None] < 0, signals, np.nan)
        asked = impute & np.isnan(signals) & (rows[:, None] < 0)
        return rows, observers.new_observed_by(self, given, alignment, new, asked=asked)

    def _like(self, values: Array, Y: Any) -> Any:
        """Values in the graph's order as a table or array like Y, with its order of the columns."""
        shaped = self._form.shaped_as(values, Y)
        if self._output == "default":
            return like_table(shaped, Y)
        return self._form.answer(shaped, self._output, frame_names(Y) or self._form.names, frame_index(Y))

    def has_seen(self, X: Any, Y: Any) -> Mask:
        """Mask of the signals that the model was fitted to or conditioned on, shape (n_signals,).

        `X` and `Y` are those of `impute`, which recognises the same signals by their inputs and values.
        """
        check_is_fitted(self)
        self.graph_.require_whole("to look for signals")
        features, _, signals, _ = self._signals_at(X, Y)
        return answers.training_numbers(self.posterior_.parts[0][1], features, signals) >= 0

    @takes_auxiliary_data
    def condition_on(self, X: Any, Y: Any, **given: Unpack[AuxiliaryData]) -> Self:
        """Return a model conditioned on more signals, with the same hyperparameters and `fits_`.

        Levels of nodes that were never observed before follow from these signals and their predictions. `X`, `Y` and
        the other arguments are those of `impute`; on a PartitionedGraph `Y` must be complete, and in memory.
        """
        features, Y, values, alignment = self._signals_at(X, Y)
        signals = self.graph_.as_native(values)
        kept = ~np.isnan(signals).all(axis=1)
        if not kept.any():
            raise ValueError("Y must hold at least one value; got nothing but NaN, which stands for missing values.")
        features = self._models[0].input_kernel.form.some(features, kept)
        other = copy.copy(self)
        form = self._form.with_rows(kept, frame_index(Y))
        observed_by = observers.new_observed_by(self, given, alignment, values, asked=False)
        observed_by = None if observed_by is None else observed_by.some(kept)
        more = answers.with_more_signals(self.learnt_.with_evidence, features, signals[kept], observed_by)
        other._show(more, form, (self.fits_, self.log_marginal_likelihood_))
        return other

    def transfer(self, graph: Any) -> Self:
        """Return the learnt model on another graph: its filters, input kernel and noise, without signals.

        Its predictions are the prior's until it is given signals of that graph, by `condition_on`, `impute` or
        ``predict(X, observed=...)``. Levels and scales of nodes are replaced by common ones, and a shrunk covariance by
        that of the graph. A PartitionedGraph takes a model with a Chebyshev spectrum.

        A polynomial that is negative between the frequencies that it was learnt on, as ``constraint="eigenvalues"``
        allows, is replaced by the nearest one that is nowhere negative, in mean square over those frequencies;
        `summary` then reports their difference. With ``constraint="interval"`` it is never changed.

        Raises
        ------
        ValueError
            If the model has a carry-over filter.
        """
        check_is_fitted(self)
        other = reading.given_graph(graph)
        learnt, fresh = answers.moved_to_graph(self.learnt_.with_evidence, other), copy.copy(self)
        fresh.graph = graph
        form = replace(self._form.on(other), kept=np.empty(0, dtype=bool), labels=None)
        fresh._show(learnt, form, (learnt.fits, self.log_marginal_likelihood_))
        return fresh

    @takes_auxiliary_data
    def report(
        self,
        path: str | PathLike[str],
        X: Any = None,
        Y: Any = None,
        *,
        title: str | None = None,
        aspect: float | Literal["equal"] = "equal",
        **given: Unpack[AuxiliaryData],
    ) -> Path:
        """Write a report of the learnt models and their accuracy: one HTML file that needs no network.

        First come the typical error, compared with baselines, bias, intervals, the worst nodes and cautions; then a
        map, a node over the signals with imputed values, correlation of neighbours, calibration, filters, models and
        certificates. It takes plotly: ``pip install 'spectralgp[report]'``.

        Parameters
        ----------
        path : path
            File to write. One of that name is replaced, whole or not at all.
        X, Y : array or table, optional
            Signals to score predictions on, and their inputs, as in `log_predictive_density`. Training signals among
            them are left out. By default each training signal is predicted from all others by leave-one-out; or by the
            fit itself on a large graph with missing values, where leave-one-out has no closed form.
        title : str, optional
            The heading.
        aspect : float or "equal", default="equal"
            Aspect ratio of the map, height to width; ``1 / cos(latitude)`` for longitudes and latitudes.
        exposure, trials, noise_variance, weights, covariates : optional
            As in `impute`, for held-out signals.
        """
        from spectralgp.show.report.numbers import NewSignals, signal_report
        from spectralgp.show.report.page import write_page
        from spectralgp.show.report.words import count, training_note

        check_is_fitted(self)
        self.graph_.require_whole("for a report")
        if X is not None and Y is None:
            raise ValueError(
                "Y must be given with X, the signals observed there; got X alone. Pass both, or neither to report on "
                "the training signals."
            )
        stretch = 1.0 if aspect == "equal" else as_positive(aspect, "aspect")
        n_nodes, form = self.graph_.n_nodes, self._form
        held_out, note, labels = None, "", form.kept_labels
        if Y is not None:
            inputs, Y, observed, alignment = self._signals_at(X, Y)
            rows, observed_by = self._among_new(inputs, observed, given, alignment)
            is_new, given_labels = rows < 0, np.array(row_labels(frame_index(Y), len(rows)), dtype=object)
            note = training_note(int(np.sum(~is_new)), len(rows))
            if is_new.any():
                new = self._models[0].input_kernel.form.some(inputs, is_new)
                own = None if observed_by is None else observed_by.some(is_new)
                at = fields.observed_with(self.posterior_.at(new), own)
                held_out = NewSignals(given_labels[is_new].tolist(), new, observed[is_new], at)
            elif form.labels is None and not is_counted(frame_index(Y)):
                known = dict(zip(rows.tolist(), given_labels.tolist(), strict=True))
                labels = tuple(known.get(row, label) for row, label in enumerate(labels))
        # the column of the inputs with the name, or the number, of each node, if any
        named = replace(form, names=None if form.names is None else tuple(map(str, form.names)))
        names, n_features = getattr(self, "feature_names_in_", None), getattr(self, "n_features_in_", 0)
        columns = reading.carried_columns("auto", names, True, n_features, named, n_nodes)
        without = partial(answers.without_entries, self.learnt_)
        n_empty = int(np.sum(~form.kept)) if self.learnt_.conditioned_on is None else 0
        numbers = signal_report(self, form.names_of(n_nodes), labels, n_empty, held_out, columns, without, note)
        heading = f"Signals on a graph of {count(n_nodes, 'node')}" if title is None else title
        return write_page(path, numbers, heading, stretch)

    save = saving.save
