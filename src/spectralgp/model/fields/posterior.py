"""The prior, a Gaussian process over signals on a graph; the posterior given signals; mixtures of several."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Annotated, Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from spectralgp._basics.arrays import on_host, without_caches
from spectralgp._basics.checks import Array, Indices, as_positive, as_real_array
from spectralgp._basics.saved import NotNegative, Positive, Range, axes
from spectralgp.graphs import GraphBase
from spectralgp.model import kernels, spectra
from spectralgp.model.fields import covariances
from spectralgp.model.fields.covariances import Covariance, LeaveOneOutErrors, ModalCovariance, QuadratureCovariance
from spectralgp.model.fields.factors import (
    GraphNodeCovariance,
    InputCovariance,
    LowRankCovariance,
    NodeCovariance,
    RowCovariance,
    ShrunkNodeCovariance,
)
from spectralgp.model.fields.field import ConditionedField, Field, GaussianField, MixtureField, PredictiveDistribution
from spectralgp.model.fields.observations import PartialObservations
from spectralgp.model.fields.processes import ProcessKernel, are_in_time, rows_in_time
from spectralgp.model.fields.shrinkage import Shrinkage, t_log_density
from spectralgp.model.fields.sites import Sites
from spectralgp.model.fields.transformed import Transformation, TransformedField
from spectralgp.model.kernels import GraphKernel, InputKernel, KernelLike, NewInputs
from spectralgp.model.kernels.carry import CarryColumns, CarryFilter
from spectralgp.model.likelihoods import Likelihood
from spectralgp.model.signals import Signals, Units, as_training
from spectralgp.model.spectra import Exact, FilterBank, Filters, Spectrum, SpectrumSettings

NOT_EXACT = (
    "prior must be on an exact spectrum to shrink a covariance, a matrix of nodes by nodes; got a quadrature. "
    "Use condition, or graph_gp without a spectrum where the graph is small enough."
)
COMPLETIONS, FAST_COMPLETIONS = 3, 2  # of incomplete signals, each by the covariance of the previous one
PASSING_DRAWS, FAST_DRAWS = 6, 16  # of completions but the last; of a fast last one
MOST_DRAWN_FAST = 2**18  # values of all draws of a fast completion, unless these are the fewest
PASSING_TOLERANCE = 1e-3  # of solves for both
MOST_SHRUNK_BY_MODES = 3_000  # signals
RANGE = 0.9  # quantile of distances in training up to which inputs are within its range
CONSTANT = 1e-9  # deviation of levels, relative to that of all inputs, that is rounding


@dataclass(frozen=True, eq=False)
class GraphGP:
    """Prior over signals on a graph, ``Cov(Y) = K (x) B B^T + I (x) H H^T + sigma^2 I``. Made by `graph_gp`.

    That is equation (3), with a residual if the graph kernel has one, equation (11), and a learnt covariance between
    frequencies if `shrinkage` is given: equation (14).

    Parameters
    ----------
    spectrum : Spectrum
        Spectrum of the Laplacian that the graph kernel is a function of.
    graph_kernel : GraphKernel
        Covariance between nodes.
    input_kernel : InputKernel
        Covariance ``k(x, x')`` between signals.
    noise_variance : float
        ``sigma^2``.
    carry : CarryFilter, optional
        Filter of the autoregressive term: the mean is filtered inputs with a value per node, by default zero.
    shrinkage : Shrinkage, optional
        Covariance between frequencies, and tails of a signal; by default those of the graph's model.
    mean_amplitude : float, default=1.0
        Factor of the variance that inputs explain, except that of the nodes' levels, in means at new inputs only:
        equation (18d).
    points : array of int, optional
        Training signals whose inputs represent all others in a covariance of low rank: equation (34).
    likelihood : Likelihood, optional
        Distribution of values given the signals, which are then latent; by default values are signals with noise.
    scale_freedom : float, optional
        Degrees of freedom of the scale, if it and a level that all nodes share were learnt from the first signal alone,
        one less than its values: equation (19i). Infinite if only the level was; by default both are known.
    """

    spectrum: Spectrum
    graph_kernel: GraphKernel
    input_kernel: InputKernel
    noise_variance: NotNegative
    carry: CarryFilter | None = None
    shrinkage: Shrinkage | None = None
    mean_amplitude: Positive = 1.0
    points: Annotated[Indices, axes("_points")] | None = None
    likelihood: Likelihood | None = None
    scale_freedom: Annotated[float, Range(2, is_open=True, is_extended=True)] | None = None

    __getstate__ = without_caches

    @cached_property
    def nodes(self) -> NodeCovariance:
        """Covariances between nodes, and the basis that they are diagonal in."""
        graph = GraphNodeCovariance(self.graph_basis, self.graph_kernel, self.noise_variance)
        return graph if self.shrinkage is None else ShrunkNodeCovariance.of(graph, self.shrinkage)

    @cached_property
    def graph_basis(self) -> Spectrum:
        """Basis of the graph's covariance: its spectrum, unless the kernel has other eigenvectors."""
        return self.graph_kernel.basis(self.spectrum)

    @property
    def freedom(self) -> float:
        """Degrees of freedom of a signal; infinite for normal signals."""
        known = np.inf if self.scale_freedom is None else self.scale_freedom
        return known if self.shrinkage is None else self.shrinkage.freedom

    @cached_property
    def power(self) -> Array:
        """``gamma``, the eigenvalues of ``B B^T``, at the eigenvalues of the graph's basis."""
        return self.graph_kernel.power(self.graph_basis.eigenvalues)

    def rows(
        self, inputs: Array, scales: Array | None = None, amplitude: float = 1.0, most_by_modes: float = 0
    ) -> RowCovariance:
        """Covariance between signals by their inputs, each divided by its scale if given: equation (18b).

        If inputs are times, under a sum of Matern kernels, more than `most_by_modes` signals are filtered if that is
        cheaper, with the same answers to rounding. A learnt covariance between frequencies depends on how signals are
        whitened: there modes are used for more signals.
        """
        if self.points is not None:
            return LowRankCovariance.of(self.input_kernel, inputs, self.points, scales, amplitude)
        if inputs.shape[0] == 0:  # scikit-learn's kernels take this for one input
            return InputCovariance(spectra.modes_of(np.empty((0, 0))))
        if isinstance(self.graph_kernel, ProcessKernel):  # which relates rows by their times itself
            return self.graph_kernel.rows(self.graph_basis.eigenvalues, inputs)
        terms = kernels.matern_terms(self.input_kernel, inputs)
        most = most_by_modes if self.shrinkage is None else MOST_SHRUNK_BY_MODES
        can_be_filtered = terms and amplitude == 1.0 and self.spectrum.has_eigenvectors
        if can_be_filtered and are_in_time(inputs, scales) and len(inputs) > most:
            return rows_in_time(inputs[:, 0], terms)
        modes = kernels.modes_of_inputs(self.input_kernel, inputs, scales, amplitude)
        return InputCovariance(modes.require_definite())

    def latent_covariance(self, inputs: Array) -> Covariance:
        """Covariance of latent signals, by modes of the inputs."""
        return self.covariance(self.rows(inputs, most_by_modes=np.inf))

    def covariance(self, rows: Any) -> Covariance:
        """Covariance of observed signals, noise included: in a known basis of the nodes, or by series."""
        if self.nodes.basis.has_eigenvectors:
            return ModalCovariance(rows, self.nodes)
        return QuadratureCovariance(rows, cast(GraphNodeCovariance, self.nodes))

    def carried_block(self, carried: CarryColumns | None, inputs: Array, units: Units) -> Any:
        """``b(L) x``, the mean by the autoregressive term, as a block of the graph's basis; zero without it."""
        carry, graph = self.carry, self.graph_basis
        if carried is None or carry is None:
            return 0.0
        through = FilterBank(lambda eigenvalues: carry.response(eigenvalues)[None], np.eye(inputs.shape[0]))
        return graph.filtered(graph.load(carried.signals(inputs, units)), through)

    def carried_values(self, carried: CarryColumns | None, inputs: Array, units: Units) -> Any:
        """Values of `carried_block` at the nodes, shape (n_inputs, n_nodes); zero without an autoregressive term."""
        block = self.carried_block(carried, inputs, units)
        return block if carried is None or self.carry is None else self.graph_basis.unload(block)

    def scaled_by(self, factor: float) -> GraphGP:
        """The prior of signals multiplied by a positive factor."""
        kernel, noise_variance = self.graph_kernel.scaled_by(factor), self.noise_variance * factor**2
        return replace(self, graph_kernel=kernel, noise_variance=noise_variance)

    def residual_response(self, eigenvalues: Array) -> Array:
        """``h(lambda)``, the non-negative root of the residual's power."""
        return np.sqrt(np.maximum(self.graph_kernel.residual_power(eigenvalues), 0.0))

    def node_covariance(self) -> Array:
        """``B B^T``, the covariance between nodes that inputs explain, shape (n_nodes, n_nodes)."""
        vectors = spectra.require_eigenvectors(
            self.nodes.basis,
            "spectrum must be exact to write out the covariance of all nodes; got a quadrature. "
            "Use decompose(graph) where the graph is small enough, or draw samples.",
        )
        return (vectors * self.nodes.powers(self.nodes.basis.eigenvalues)[0]) @ vectors.T

    def sample(
        self, inputs: Array, n_samples: int, random_state: np.random.Generator, include_noise: bool = False
    ) -> Array:
        """Draw signals from the prior at the given inputs, shape (n_samples, n_inputs, n_nodes)."""
        covariance = self.covariance(replace(self, points=None).rows(inputs))
        field = Field(covariance, lambda: covariance.basis.zeros(len(inputs)), Units(), freedom=self.freedom)
        return field.sample(n_samples, random_state, include_noise)


def graph_gp(
    graph: GraphBase,
    graph_kernel: GraphKernel,
    input_kernel: InputKernel | KernelLike,
    noise_variance: float,
    *,
    spectrum: SpectrumSettings = Exact(),
) -> GraphGP:
    """Prior on a graph, with the spectrum of the graph kernel's Laplacian.

    Parameters
    ----------
    graph : Graph
        The graph.
    graph_kernel : GraphKernel
        Covariance between nodes.
    input_kernel : scikit-learn kernel, "precomputed" or None
        Covariance between signals; "precomputed" for matrices in place of inputs; None for independent signals.
    noise_variance : float
        Variance of the noise.
    spectrum : Exact or Chebyshev, default=Exact()
        Method for the spectrum: `Chebyshev` for a graph that is too large to be decomposed.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from spectralgp import Diffusion, Graph, graph_gp
    >>> ring = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0)])
    >>> prior = graph_gp(ring, Diffusion(strength=2.0), RBF(1.0), noise_variance=0.1)
    >>> prior.sample(np.zeros((2, 1)), 3, np.random.default_rng(0)).shape
    (3, 2, 4)
    """
    if not isinstance(graph, GraphBase):
        raise TypeError(
            f"graph must be a Graph; got {type(graph).__name__}. Convert adjacencies, networkx graphs and others with "
            "as_graph first."
        )
    if not isinstance(graph_kernel, GraphKernel):
        raise TypeError(
            f"graph_kernel must be a graph kernel such as Polynomial(3) or Diffusion(); got {graph_kernel!r}. "
            "For a filter of your own, wrap it in Response(function)."
        )
    as_positive(noise_variance, "noise_variance")
    found = spectrum.of(graph, graph_kernel.laplacian, graph_kernel.scaled)
    return GraphGP(found, graph_kernel.bind(found), kernels.as_input_kernel(input_kernel), float(noise_variance))


@dataclass(frozen=True, eq=False)
class SinglePosterior(ABC):
    """A prior conditioned on training signals; a `Mixture` is of several."""

    prior: GraphGP  # of centred and scaled signals
    inputs: Array  # of training, shape (n_signals, n_features); K itself if precomputed
    signals: Signals  # of training; their completion if values are missing
    covariance: Covariance  # of the training signals, noise included
    carried: CarryColumns | None = None  # columns of the inputs in the autoregressive term
    entries: PartialObservations | Sites | None = None  # posterior of the training signals, unless these are complete
    transformation: Transformation | None = None  # of the user's inputs and signals

    __getstate__ = without_caches
    is_averaged = False  # over hyperparameters, as a `Mixture` may be

    @property
    def parts(self) -> tuple[tuple[float, Self], ...]:
        """Weights and posteriors: this one alone."""
        return ((1.0, self),)

    @property
    def basis(self) -> Spectrum:
        """Basis in which the covariance between nodes is diagonal."""
        return self.covariance.basis

    @property
    def input_variance(self) -> float:
        """Mean of ``k(x, x)`` over the training inputs."""
        return float(np.mean(self.prior.rows(self.inputs).diagonal(np.ones(1), np.zeros(1))))

    @property
    def given_signals(self) -> Array:
        """The user's training signals, NaN if missing."""
        signals = self.signals.units.restore(self.signals.as_observed)
        return signals if self.transformation is None else self.transformation.restored(signals, self.inputs)

    def reached(self, values: Array, reach: Filters) -> list[Any]:
        """Filter sets of values (n_sets, n_signals, n_nodes) of the training signals to new inputs."""
        covariance, basis = self.covariance, self.basis
        # all at once if blocks may be stacked, else one by one
        sets = [values] if basis.has_eigenvectors else values
        moved = [basis.unload(basis.filtered(covariance.coordinates(basis.load(one)), reach)) for one in sets]
        return list(moved[0]) if basis.has_eigenvectors else moved

    @property
    @abstractmethod
    def modelled(self) -> Signals:
        """Signals in the model: latent ones under a likelihood."""

    @abstractmethod
    def at(self, inputs: Any) -> PredictiveDistribution:
        """Predictive distribution at new inputs.

        Parameters
        ----------
        inputs : array of shape (n_inputs, n_features)
            With a precomputed kernel: the cross-covariance (n_inputs, n_signals), or the pair of it and the test
            covariance. With independent signals: an array without columns.
        """

    @abstractmethod
    def imputed(self, rows: Indices) -> PredictiveDistribution:
        """Distribution of some training signals given all observed values."""


@dataclass(frozen=True, eq=False)
class Posterior(SinglePosterior):
    """A prior conditioned on signals. Made by `condition`.

    If values are missing, the mean of a prediction is that given the completed signals' mean, and its covariance grows
    by the covariance of the completion: equation (21).
    """

    entries: PartialObservations | None = None  # observed training values, if some are missing

    @property
    def modelled(self) -> Signals:
        return self.signals

    @cached_property
    def block(self) -> Any:
        """Training signals less the autoregressive term, in the coordinates of filters to new inputs."""
        if self.carried is None:
            return self.covariance.read(self.signals)
        return self.covariance.coordinates(self.basis.load(self.signals.values) - self.carried_block())

    def carried_block(self, inputs: Any = None, units: Units | None = None) -> Any:
        """``b(L) x``, the mean by the autoregressive term at training or other inputs, as a block; zero without it."""
        if self.carried is None:
            return 0.0
        own = self.signals.units
        given = (self.inputs, own) if inputs is None else (inputs, units or own.of_new)
        block = self.prior.carried_block(self.carried, *given)
        return block if self.prior.shrinkage is None else self.basis.load(self.prior.graph_basis.unload(block))

    @property
    def carried_values(self) -> Any:
        """Mean by the autoregressive term at the training inputs and nodes; zero without such a term."""
        return self.prior.carried_values(self.carried, self.inputs, self.signals.units)

    def at(self, inputs: Any) -> PredictiveDistribution:
        kernel = self.prior.input_kernel
        features = kernels.new_inputs(kernel, self.inputs, inputs)
        if self.transformation is not None:
            features = self.transformation.inputs(features)
        return self._restored(self.given(kernel.at(self.inputs, features), features), features)

    def _restored(self, field: GaussianField, inputs: Any, known: Any = False) -> PredictiveDistribution:
        """Field in the user's units, from one of transformed signals, some of which are known."""
        if self.transformation is None:
            return field
        shape = field.n_signals, self.signals.shape[1]
        return TransformedField(field, self.transformation, inputs, np.broadcast_to(known, shape))

    def given(self, new: NewInputs, features: Any) -> Any:
        """Field of transformed signals at new inputs, by covariances and the features of the autoregressive term."""
        if self.prior.scale_freedom is not None:  # its level is uncertain
            return self._joint_field(new, features)
        units = self.signals.units
        reach, left = self.covariance.at(new.divided_by(units.signal_scales))
        is_closed = self.entries is None and isinstance(left, Covariance)
        factors = None if self.entries is None else lambda: self.reached(self.observations().deviations, reach)
        return Field(
            left,
            partial(self._mean_at, new, features),
            units.of_new,
            factors,
            None if is_closed else partial(self._joint_field, new, features),
            freedom=self.prior.freedom,
        )

    def _mean_at(self, new: NewInputs, features: Any) -> Any:
        """Means at new inputs, by the amplitude of means and the autoregressive term of features, as a block."""
        cross = kernels.with_amplitude(self.prior.input_kernel, new.cross, self.prior.mean_amplitude)
        new = replace(new, cross=cross).divided_by(self.signals.units.signal_scales)
        means = self.basis.filtered(self._for_means.block, self._for_means.covariance.at(new)[0])
        return means + self.carried_block(features)

    @cached_property
    def _for_means(self) -> Posterior:
        """Posterior with the amplitude of means at new inputs."""
        amplitude, scales = self.prior.mean_amplitude, self.signals.units.signal_scales
        if amplitude == 1.0:
            return self
        covariance: Any = self.covariance
        return replace(self, covariance=replace(covariance, rows=self.prior.rows(self.inputs, scales, amplitude)))

    def left_out(self, shares: bool = False, has_energies: bool = False) -> LeaveOneOutErrors:
        """Leave-one-out errors of the training signals, by `Covariance.left_out`."""
        means, errors = self._for_means, None
        if means is not self:
            errors = means.covariance.left_out(means.block, self.signals, shares, has_energies=False).errors
        return self.covariance.left_out(self.block, self.signals, shares, has_energies, errors)

    def _joint_field(self, new: NewInputs, features: Any) -> ConditionedField:
        """Field of signals at new inputs, joint with the observed training signals."""
        scaled = new.divided_by(self.signals.units.signal_scales)
        joint, known = covariances.with_new_inputs(self.covariance, scaled), self.observations()
        n_known, n_signals = len(self.inputs), joint.shape[0]
        inputs = np.vstack([self.inputs, features]) if self.carried is not None else np.empty((n_signals, 0))
        units = self.signals.units
        centre = self.basis.zeros(n_signals) + self.carried_block(inputs, units.with_new(n_signals - n_known))
        if self.prior.mean_amplitude != 1.0:
            own = self.basis.filtered(self.block, self.covariance.at(scaled)[0])
            centre[n_known:] = self._mean_at(new, features) - own
        new_shape = n_signals - n_known, known.values.shape[1]
        values = np.concatenate([known.values, np.zeros(new_shape)])
        observed = np.concatenate([known.observed, np.zeros(new_shape, dtype=bool)])
        rows, entries = np.arange(n_known, n_signals), PartialObservations(joint, values, observed)
        tails: dict[str, Any] = {"freedom": self.prior.freedom, "scale_freedom": self.prior.scale_freedom}
        return ConditionedField(joint, lambda: centre, units.of_new, entries, rows, **tails)

    def log_densities_of(self, prediction: Field, signals: Signals) -> Array:
        """Log densities, one per signal, of other views of the signals that the training ones are views of."""
        if self.entries is not None or self.carried is not None or not signals.is_complete:
            return np.asarray(prediction.log_density(signals.units.restore(signals.as_observed), joint=False))
        errors = covariances.errors_at_new(prediction.covariance, signals, self.signals, lambda: prediction.centre)
        return np.asarray(prediction.log_density_of(errors))

    def observations(self) -> PartialObservations:
        """Observed values of the training signals."""
        if self.entries is not None:
            return self.entries
        values = np.asarray(self.signals.as_observed - on_host(self.carried_values))
        return PartialObservations(self.covariance, values, np.ones(values.shape, dtype=bool))

    def imputed(self, rows: Indices) -> PredictiveDistribution:
        units = self.signals.units.of(rows)
        known = self.completion(self.prior.freedom)
        field = replace(known, units=units, rows=rows, shrinkage=self.prior.shrinkage)
        return self._restored(field, self.inputs[rows], self.signals.observed[rows])

    def completion(self, freedom: float = np.inf) -> ConditionedField:
        """Field of the transformed training signals given all observed values; normal by default."""
        centre = self.basis.zeros(len(self.inputs)) + self.carried_block()
        known = self.covariance, lambda: centre, self.signals.units, self.observations(), np.arange(len(self.inputs))
        return ConditionedField(*known, freedom=freedom, scale_freedom=self.prior.scale_freedom)

    def log_evidence(self) -> float:
        """Normal log density of the training signals, centred and scaled."""
        if self.entries is not None:
            return self.entries.log_density()[0]
        whole = self.basis.load(self.signals.as_observed) - self.carried_block()
        return covariances.joint_log_density(self.covariance, whole)


@dataclass(frozen=True, eq=False)
class Fallback:
    """Weights that those of a mixture fall back to where inputs leave the range of training: equation (19f)."""

    weights: Array
    columns: Indices  # of the inputs, whose mean is compared
    inputs: Array  # of training

    def shares(self, inputs: Any) -> Array:
        """Shares of the mixture's own weights at inputs, in hundredths: a joint density has a term for each."""
        levels, new = (np.mean(np.asarray(one)[:, self.columns], axis=1) for one in (self.inputs, inputs))
        spread = np.std(levels) + CONSTANT * np.std(self.inputs[:, self.columns])
        distances, beyond = (np.abs(one - np.mean(levels)) / spread for one in (levels, new))
        return np.round(np.exp(-0.5 * np.maximum(beyond - np.quantile(distances, RANGE), 0.0) ** 2), 2)


@dataclass(frozen=True, eq=False)
class Mixture:
    """Posteriors of several models with weights; it answers as a `Posterior` does."""

    weights: Array
    posteriors: tuple[Posterior, ...]
    imputation_weights: Array | None = None  # by default `weights`
    is_averaged: bool = False  # whether weights are posterior probabilities, which further values change
    fallback: Fallback | None = None  # of rows in time order

    def at(self, inputs: Any) -> MixtureField:
        """Predictive distribution at new inputs."""
        field = MixtureField(self.weights, tuple(one.at(inputs) for one in self.posteriors), self.is_averaged)
        if self.fallback is None or np.all((shares := self.fallback.shares(inputs)) == 1.0):
            return field
        return replace(field, fallback=(self.fallback.weights, shares))

    def imputed(self, rows: Indices) -> MixtureField:
        """Distribution of some training signals given all observed values."""
        weights = self.weights if self.imputation_weights is None else self.imputation_weights
        return MixtureField(weights, tuple(one.imputed(rows) for one in self.posteriors), self.is_averaged)

    @property
    def parts(self) -> tuple[tuple[float, Posterior], ...]:
        """Weights and posteriors."""
        return tuple(zip(self.weights.tolist(), self.posteriors, strict=True))


def condition(
    prior: GraphGP,
    inputs: ArrayLike,
    signals: ArrayLike | Signals,
    carried: CarryColumns | None = None,
    *,
    is_fast: bool = False,
) -> Posterior:
    """Condition a prior on signals observed at inputs.

    Parameters
    ----------
    prior : GraphGP
        The model.
    inputs : array of shape (n_signals, n_features)
        Training inputs; the covariance itself for a precomputed kernel. They are copied.
    signals : array of shape (n_signals, n_nodes), or Signals
        Training signals, NaN if missing, or signals that `read_signals` centred and scaled. The prior is of the latter;
        predictions are in the original units. An array is copied.
    carried : CarryColumns, optional
        Columns of the inputs in the autoregressive term, if the prior has a filter for one.
    is_fast : bool, default=False
        Whether missing values are completed by few draws, with a larger error.

    Returns
    -------
    Posterior

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from spectralgp import Diffusion, Graph, condition, graph_gp
    >>> prior = graph_gp(Graph.from_edges([(0, 1), (1, 2)]), Diffusion(), RBF(), noise_variance=0.1)
    >>> posterior = condition(prior, np.array([[0.0], [1.0]]), np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    >>> posterior.at(np.array([[0.5]])).mean.shape
    (1, 3)
    """
    return posterior_of(prior, *_checked(prior, inputs, signals, carried), carried, is_fast=is_fast)


def _checked(
    prior: GraphGP, inputs: ArrayLike, signals: ArrayLike | Signals, carried: CarryColumns | None
) -> tuple[Array, Signals]:
    """Return inputs and signals after validation."""
    if not isinstance(prior, GraphGP):
        raise TypeError(f"prior must be a GraphGP; got {type(prior).__name__}. Make one with graph_gp(...).")
    given = as_real_array(inputs, "inputs", ("n_signals", "n_features")).copy()
    if (prior.carry is None) != (carried is None):
        raise ValueError(
            f"carried must be given if the prior has a carry-over filter, and only then; got {carried}. "
            "Make it with CarryColumns.of(columns, inputs)."
        )
    return given, as_training(signals, given.shape[0], prior.spectrum.graph.n_nodes)


def log_marginal_likelihood(prior: GraphGP, inputs: Array, signals: ArrayLike | Signals) -> float:
    """Log probability of signals under a prior, equation (5): a total in nats with the 2 pi term.

    Parameters
    ----------
    prior : GraphGP
        The model.
    inputs : array of shape (n_signals, n_features)
        Inputs of the signals; ``K`` itself for a precomputed kernel; only its length matters for independent signals.
    signals : array of shape (n_signals, n_nodes)
        Signals in rows, NaN if missing. The evidence of the observed values is exact if a matrix of the missing or
        of the observed ones can be written out; else it has an error by random probes.

    Examples
    --------
    >>> import numpy as np
    >>> from spectralgp import Graph, Identity, graph_gp, log_marginal_likelihood
    >>> prior = graph_gp(Graph.from_edges([(0, 1)]), Identity(), None, noise_variance=1.0)
    >>> round(log_marginal_likelihood(prior, np.zeros((1, 0)), np.array([[0.0, 2.0]])), 4)
    -3.531
    """
    return condition(prior, inputs, signals).log_evidence()


def posterior_of(
    prior: GraphGP,
    inputs: Array,
    signals: Signals,
    carried: CarryColumns | None = None,
    *,
    is_fast: bool = False,
    rows: RowCovariance | None = None,
    **settings: Any,
) -> Posterior:
    """Condition on validated signals; optionally with known `rows` and settings of `PartialObservations`."""
    rows = prior.rows(inputs, signals.units.signal_scales) if rows is None else rows
    if not signals.has_missing:
        return Posterior(prior, inputs, signals, prior.covariance(rows), carried)
    if is_fast:
        affordable = MOST_DRAWN_FAST // signals.observed.size
        settings["most_deviations"] = max(PASSING_DRAWS, min(FAST_DRAWS, affordable))
        settings["tolerance"] = PASSING_TOLERANCE
    mean = prior.carried_values(carried, inputs, signals.units)
    entries = partial_observations(mean, prior.covariance(rows), signals, **settings)
    completed = signals.completed(entries.mean + mean, partial(getattr, entries, "deviations"))
    return Posterior(prior, inputs, completed, entries.covariance, carried, entries)


def partial_observations(mean: Any, covariance: Covariance, signals: Signals, **settings: Any) -> PartialObservations:
    """Observed values of signals about zero, or about the mean by the autoregressive term, under a covariance."""
    values = np.where(signals.observed, signals.as_observed - mean, 0.0)
    return PartialObservations(covariance, values, signals.observed, **settings)


def condition_shrunk(
    prior: GraphGP,
    inputs: ArrayLike,
    signals: ArrayLike | Signals,
    carried: CarryColumns | None = None,
    *,
    learns_tails: bool = True,
    is_fast: bool = False,
) -> Posterior:
    """Learn the covariance between frequencies from signals, equation (14), and condition a prior on them.

    Parameters
    ----------
    prior, inputs, signals, carried
        Arguments of `condition`; the prior must be on an exact spectrum.
    learns_tails : bool, default=True
        Whether the degrees of freedom of a signal are learnt by leave-one-out; else they are those of the posterior of
        the covariance.
    is_fast : bool, default=False
        Whether missing values are completed twice and by few draws, with a larger error.

    Returns
    -------
    Posterior
        Its prior has the learnt shrinkage.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from spectralgp import Diffusion, Graph, condition_shrunk, graph_gp
    >>> prior = graph_gp(Graph.from_edges([(0, 1), (1, 2)]), Diffusion(), RBF(), noise_variance=0.1)
    >>> rng = np.random.default_rng(0)
    >>> posterior = condition_shrunk(prior, rng.standard_normal((9, 1)), rng.standard_normal((9, 3)))
    >>> 0 < posterior.prior.shrinkage.data_weight < 1
    True
    """
    checked = _checked(prior, inputs, signals, carried)
    return shrunk_posterior_of(prior, *checked, carried, learns_tails=learns_tails, is_fast=is_fast)


def shrunk_posterior_of(
    prior: GraphGP, inputs: Array, signals: Signals, carried: CarryColumns | None, *, learns_tails: bool, is_fast: bool
) -> Posterior:
    """Learn the covariance between frequencies from validated signals, and condition on them."""
    prior = replace(prior, shrinkage=None)
    passing: dict[str, Any] = {"most_deviations": PASSING_DRAWS, "tolerance": PASSING_TOLERANCE}
    rows = prior.rows(inputs, signals.units.signal_scales, most_by_modes=MOST_SHRUNK_BY_MODES)
    plain = latest = posterior_of(prior, inputs, signals, carried, rows=rows, **passing)
    spectra.require_eigenvectors(plain.covariance.basis, NOT_EXACT)
    for n_left in reversed(range(FAST_COMPLETIONS if is_fast else COMPLETIONS)):
        # missing values are completed by the covariance that is learnt from them
        shrinkage = _shrinkage(replace(plain, signals=latest.signals))
        # if it is the identity, another completion would change the profile only
        is_last = n_left == 0 or latest.entries is None or shrinkage.is_identity
        settings: dict[str, Any] = {"start": None if latest.entries is None else latest.entries.solution}
        settings |= {"is_fast": is_fast} if is_last else passing
        shrunk = replace(prior, shrinkage=shrinkage)
        latest = posterior_of(shrunk, inputs, latest.signals, carried, rows=rows, **settings)
        if is_last:
            break
    lengths = counts = stretch = np.empty(0)  # of no signals: draws are too inaccurate for lengths
    if learns_tails:  # by leave-one-out in closed form
        if latest.entries is None:
            missed = latest.left_out()
            lengths, counts, stretch = missed.lengths, np.full(len(inputs), signals.shape[1]), missed.stretch
        elif latest.entries.is_written_out:
            lengths, _, counts = latest.entries.lengths(range(len(inputs)))
            stretch = np.ones(len(inputs))
    return replace(latest, prior=replace(shrunk, shrinkage=shrinkage.with_freedom(lengths, counts, stretch)))


def held_out_densities(
    plain: Posterior, prediction: Field, signals: Signals, nodes: Indices
) -> tuple[Array, Array, Array]:
    """Log densities of complete held-out signals and of their values at some nodes, and errors, under shrinkage.

    `plain` is the graph's model, conditioned on the other signals, and gives the means; `signals` are in their units.
    Errors have the covariance ``V D_c R D_c V^T`` with the standard deviations ``c`` of that model times the profile:
    near (16), and without an eigendecomposition per model and fold.
    """
    shrinkage, vectors, roots = _held_out(plain, prediction)
    errors, units = plain.basis.load(signals.values) - prediction.centre, signals.units
    lengths, log_determinant = shrinkage.lengths(errors / roots)
    freedom, n_nodes = shrinkage.freedom, errors.shape[1]
    logs = t_log_density(lengths, log_determinant + 2 * np.sum(np.log(roots), axis=1), n_nodes, freedom)
    variances = np.stack([shrinkage.diagonal(vectors[nodes] * own) for own in roots])
    missed = errors @ vectors[nodes].T
    values = t_log_density(np.square(missed) / variances, np.log(variances), 1, freedom)
    divisor = np.broadcast_to(units.divisor, (n_nodes,))[nodes]
    return np.asarray(units.log_density(logs, n_nodes)), values - np.log(divisor), missed * divisor


def held_out_values(plain: Posterior, prediction: Field, nodes: Indices) -> tuple[Array, Array, float]:
    """Means, standard deviations and degrees of freedom of the values of `held_out_densities`."""
    shrinkage, vectors, roots = _held_out(plain, prediction)
    stds = np.sqrt([shrinkage.diagonal(vectors[nodes] * own) for own in roots])
    return prediction.mean[:, nodes], prediction.units.restore_scale(stds, nodes), shrinkage.freedom


def _held_out(plain: Posterior, prediction: Field) -> tuple[Shrinkage, Array, Array]:
    """Shrinkage, eigenvectors, and standard deviations of the frequencies of held-out signals.

    Degrees of freedom are learnt by the standard deviations of the graph's model times the profile.
    """
    shrinkage, missed = _shrinkage(plain), plain.left_out()
    known, covariance = covariances.with_entries(plain.covariance), covariances.with_entries(prediction.covariance)
    roots = shrinkage.profile / np.sqrt(known.rows.diagonal(*known.powers, -1.0))
    lengths, _ = shrinkage.lengths(missed.errors / roots)
    shrinkage = shrinkage.with_freedom(lengths, np.full(lengths.size, roots.shape[1]), missed.stretch)
    roots = np.sqrt(covariance.rows.diagonal(*covariance.powers)) * shrinkage.profile
    return shrinkage, covariance.basis.eigenvectors, roots


def _shrinkage(plain: Posterior) -> Shrinkage:
    """Shrinkage learnt from signals that the graph's model whitened."""
    covariance, deviations = plain.covariance, plain.signals.deviations
    assert isinstance(covariance, ModalCovariance)
    basis = covariance.basis
    whitened = covariance.rows.apply(plain.block, *covariance.powers, exponent=-0.5)
    if deviations is not None:
        spread = covariance.coordinates(basis.load(deviations))
        spread = covariance.rows.apply(spread, *covariance.powers, exponent=-0.5)
        whitened = np.vstack([whitened, spread.reshape(-1, basis.graph.n_nodes)])
    positions = np.clip(basis.eigenvalues / plain.prior.spectrum.upper, 0.0, 1.0)
    return Shrinkage.learnt(whitened, positions, plain.signals.shape[0])
