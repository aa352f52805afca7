"""Conditioning a prior on signals: the posterior, from which predictions are made, and mixtures of several."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from spectralgp._basics.arrays import without_caches
from spectralgp._basics.checks import Array, Indices, as_real_array
from spectralgp.fields.covariances import Covariance, Modal
from spectralgp.fields.field import Field, MixedField
from spectralgp.fields.laws import t_log_density
from spectralgp.fields.prior import GraphGP
from spectralgp.fields.rows import Rows
from spectralgp.fields.seen import Seen
from spectralgp.fields.shrinkage import Shrinkage
from spectralgp.kernels import NewInputs
from spectralgp.kernels.carry import CarryColumns
from spectralgp.signals import Incomplete, Signals, as_training
from spectralgp.spectra import Filters, Spectrum

NOT_EXACT = (
    "prior must be on an exact spectrum to shrink a covariance, a matrix of nodes by nodes; got a quadrature. "
    "Use condition, or graph_gp without a spectrum where the graph is small enough."
)
FEW_DRAWS = 16
COMPLETIONS = 3  # of signals with holes, each under what was learnt from the one before


@dataclass(frozen=True, eq=False)
class Posterior:
    """A prior conditioned on signals. Made by `condition`.

    Parameters
    ----------
    prior : GraphGP
        The model, of the signals as `signals` has them: centred and scaled.
    inputs : ndarray of shape (n_signals, n_features)
        Training inputs (``K`` itself if precomputed).
    signals : Signals
        Training signals; their completion where they have holes. The mean of a prediction given what was observed is
        that given the completion's mean, and its covariance grows by what the completion leaves open: equation (20).
    covariance : Covariance
        Of the training signals, noise included.
    carried : CarryColumns, optional
        Columns of the inputs that carry over to the signals.
    seen : Seen, optional
        What was observed of the training signals, where they have holes.
    """

    prior: GraphGP
    inputs: Array
    signals: Signals
    covariance: Covariance
    carried: CarryColumns | None = None
    seen: Seen | None = None

    __getstate__ = without_caches

    @property
    def basis(self) -> Spectrum:
        """Where the covariance between nodes is diagonal."""
        return self.prior.basis

    @property
    def signals_share(self) -> float:
        """Share of the covariance of predictions that is the signals' own: none, if all is the graph's model."""
        return 0.0 if self.prior.shrinkage is None else self.prior.shrinkage.share

    @property
    def input_variance(self) -> float:
        """Mean of ``k(x, x)`` over the training inputs."""
        return float(np.mean(self.prior.rows(self.inputs).diagonal(np.ones(1), np.zeros(1))))

    @property
    def parts(self) -> tuple[tuple[float, Posterior], ...]:
        """Posteriors and their weights: this one alone."""
        return ((1.0, self),)

    @cached_property
    def block(self) -> Any:
        """Training signals less what is carried over, as filters to new inputs take them."""
        read = self.covariance.read(self.signals)
        if self.carried is None:
            return read
        carried = self.covariance.coordinates(self.carried_block(self.inputs))
        return self.basis.combined(read, np.eye(self.covariance.shape[0])) - carried

    def carried_block(self, inputs: Any) -> Any:
        """``b(L) x``, the mean that inputs carry over, as a block; zero where there is none."""
        return self.prior.carried_block(self.carried, inputs, self.signals.units)

    # --------------------------------------------------------------------------------------------------- predictions

    def at(self, inputs: Any) -> Field:
        """What is predicted at new inputs.

        Parameters
        ----------
        inputs : array of shape (n_inputs, n_features)
            With a precomputed kernel: the cross-covariance (n_inputs, n_signals), or the pair of it and the test
            covariance. With independent signals: an array without columns.
        """
        kernel = self.prior.input_kernel
        features = kernel.new(inputs, _as_inputs(self.inputs.shape[1]))
        return self.given(kernel.at(self.inputs, features), features)

    def given(self, new: NewInputs, features: Any) -> Field:
        """What is predicted, from the covariances of new inputs; `features` are for what carries over."""
        reach, left = self.covariance.at(new)
        spread, onward = None, None
        if self.seen is not None or not left.is_closed:
            onward = partial(self._observing, new, features)
        if self.seen is not None:
            spread = partial(self._open_means, self.seen, reach)
        return Field(
            left,
            partial(self._mean_block, reach, features),
            self.signals.units,
            self.prior.freedom,
            spread=spread,
            onward=onward,
        )

    def _mean_block(self, reach: Filters, features: Any) -> Any:
        """Means at new inputs."""
        return self.basis.filtered(self.block, reach) + self.carried_block(features)

    def _open_means(self, seen: Seen, reach: Filters) -> list[Any]:
        """What means at new inputs may deviate by, for what was not observed of the training signals: equation (20)."""
        basis = self.basis
        # all at once where blocks may be stacked, else one by one
        sets = [seen.deviations] if basis.has_eigenvectors else seen.deviations
        moved = [basis.unload(basis.filtered(self.covariance.coordinates(basis.load(one)), reach)) for one in sets]
        return list(moved[0]) if basis.has_eigenvectors else moved

    def log_densities_of(self, prediction: Field, signals: Signals) -> Array:
        """Log densities of signals that are views of the same ones as the training signals, with the same centre.

        One number per signal, of a prediction of them that this posterior made.
        """
        if signals.observed is not None or self.seen is not None:
            return np.asarray(prediction.log_density(signals.units.mean(signals.as_observed), joint=False))
        if self.carried is not None:
            errors = self.basis.read_block(self.basis.load(signals.values) - prediction.centre)
        else:
            errors = prediction.covariance.errors_of(signals, self.signals, lambda: prediction.centre)
        return np.asarray(prediction.log_density_of(errors))

    def _observing(self, new: NewInputs, features: Any, observed: Array) -> Field:
        """Signals at new inputs given what was observed of them, and the training signals: all together."""
        joint, units, n_known = self.covariance.joined(new), self.signals.units, self.covariance.shape[0]
        values = np.vstack([self.values, units.apply(observed)])
        inputs = np.vstack([self.inputs, features]) if self.carried is not None else np.empty((len(values), 0))
        centre = joint.zeros() + self.prior.carried_block(self.carried, inputs, units)
        field = Field(joint, lambda: centre, units, self.prior.freedom, shown=np.arange(n_known, len(values)))
        about = np.where(np.isfinite(values), values - field._centre_values, 0.0)
        return replace(field, seen=Seen(joint, about, np.isfinite(values).astype(float)))

    @property
    def values(self) -> Array:
        """Training signals as they were observed, centred and scaled; NaN where they were not."""
        return self.signals.as_observed

    def filled(self, rows: Indices) -> Field:
        """Some of the training signals given what was observed of all."""
        centre = self.covariance.zeros() + self.carried_block(self.inputs)
        field = Field(
            self.covariance,
            lambda: centre,
            self.signals.units,
            self.prior.freedom,
            self.seen,
            shown=rows,
            learnt_from_them=self.prior.shrinkage,
        )
        if self.seen is not None:
            return field
        about = self.values - field._centre_values
        return replace(field, seen=Seen(self.covariance, about, np.ones(about.shape)))

    def log_evidence(self) -> float:
        """Log density of the training signals, normal and in the units that they were read in."""
        if self.seen is not None:
            return self.seen.log_density()[0]
        whole = self.basis.load(self.values) - self.carried_block(self.inputs)
        lengths, logs = self.covariance.chained(self.basis.read_block(whole))
        return -0.5 * float(np.sum(lengths + logs) + self.signals.size * np.log(2 * np.pi))


@dataclass(frozen=True, eq=False)
class Mixture:
    """Posteriors of several models with weights; it answers as a `Posterior` does."""

    weights: Array
    posteriors: tuple[Posterior, ...]

    def at(self, inputs: Any) -> MixedField:
        """What is predicted at new inputs."""
        return MixedField(self.weights, tuple(posterior.at(inputs) for posterior in self.posteriors))

    def filled(self, rows: Indices) -> MixedField:
        """Some of the training signals given what was observed of all."""
        return MixedField(self.weights, tuple(posterior.filled(rows) for posterior in self.posteriors))

    @property
    def parts(self) -> tuple[tuple[float, Posterior], ...]:
        """Posteriors and their weights."""
        return tuple(zip(self.weights.tolist(), self.posteriors, strict=True))


def condition(
    prior: GraphGP, inputs: ArrayLike, signals: ArrayLike | Signals, carried: CarryColumns | None = None
) -> Posterior:
    """Condition a prior on signals observed at inputs.

    Parameters
    ----------
    prior : GraphGP
        The model.
    inputs : array of shape (n_signals, n_features)
        Training inputs; the covariance itself for a precomputed kernel. They are copied.
    signals : array of shape (n_signals, n_nodes), or Signals
        Training signals, as they are or read by `read_signals`, which centres and scales them. The prior is of signals
        after that; predictions are in the units from before. An array is copied. NaN is what was not observed.
    carried : CarryColumns, optional
        Which columns of the inputs carry over to the signals, where the prior has a filter for that.

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
    if not isinstance(prior, GraphGP):
        raise TypeError(f"prior must be a GraphGP; got {type(prior).__name__}. Make one with graph_gp(...).")
    given = as_real_array(inputs, "inputs", ("n_signals", "n_features")).copy()
    if (prior.carry is None) != (carried is None):
        raise ValueError(
            f"carried must be given where the prior has a carry-over filter, and only there; got {carried}. "
            "Make it with CarryColumns.of(columns, inputs)."
        )
    training = as_training(signals, given.shape[0], prior.spectrum.n_nodes)
    return _conditioned(prior, given, training, prior.rows(given), carried)


def _conditioned(
    prior: GraphGP,
    inputs: Array,
    signals: Signals,
    rows: Rows,
    carried: CarryColumns | None,
    most_deviations: int | None = None,
    start: Array | None = None,
) -> Posterior:
    if signals.observed is None:
        return Posterior(prior, inputs, signals, prior.covariance(rows), carried)
    mean = prior.carried_values(carried, inputs, signals.units)
    seen = seen_about(mean, prior.covariance(rows), signals, most_deviations, start)
    completed = cast(Incomplete, signals).completed(seen.mean + mean, partial(getattr, seen, "deviations"))
    return Posterior(prior, inputs, completed, seen.covariance, carried, seen)


def seen_about(
    mean: Any,
    covariance: Covariance,
    signals: Signals,
    most_deviations: int | None = None,
    start: Array | None = None,
) -> Seen:
    """Signals with holes about a mean, that inputs carry over or zero, under a covariance."""
    values = signals.as_observed - mean
    observed = np.isfinite(values)
    return Seen(covariance, np.where(observed, values, 0.0), observed.astype(float), most_deviations, start)


def condition_shrunk(
    prior: GraphGP,
    inputs: ArrayLike,
    signals: ArrayLike | Signals,
    carried: CarryColumns | None = None,
    *,
    learns_tails: bool = True,
) -> Posterior:
    """Condition a prior on signals, from which the covariance between frequencies is learnt first: equation (18).

    Parameters
    ----------
    prior, inputs, signals, carried
        As `condition` takes them; the prior must be on an exact spectrum.
    learns_tails : bool, default=True
        Whether the degrees of freedom of a signal are learnt by leaving every one out; else they are those of the
        posterior of the covariance.

    Returns
    -------
    Posterior
        Its prior has the shrinkage that was learnt.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from spectralgp import Diffusion, Graph, condition_shrunk, graph_gp
    >>> prior = graph_gp(Graph.from_edges([(0, 1), (1, 2)]), Diffusion(), RBF(), noise_variance=0.1)
    >>> rng = np.random.default_rng(0)
    >>> posterior = condition_shrunk(prior, rng.standard_normal((9, 1)), rng.standard_normal((9, 3)))
    >>> 0 < posterior.prior.shrinkage.share < 1
    True
    """
    plain = condition(replace(prior, shrinkage=None), inputs, signals, carried)
    plain.basis.require_eigenvectors(NOT_EXACT)
    covariance = plain.covariance
    assert isinstance(covariance, Modal)
    rows = covariance.rows
    if plain.seen is None:
        shrunk = replace(plain.prior, shrinkage=_shrinkage(plain))
        latest = _conditioned(shrunk, plain.inputs, plain.signals, rows, carried)
        return _with_tails(latest, learns_tails)
    latest, known = plain, as_training(signals, plain.inputs.shape[0], prior.spectrum.n_nodes)
    for number in range(COMPLETIONS):  # what is missing is completed by the covariance that it is part of
        assert latest.seen is not None
        shrunk = replace(plain.prior, shrinkage=_shrinkage(replace(plain, signals=latest.signals)))
        most, start = FEW_DRAWS if number < COMPLETIONS - 1 else None, latest.seen.solution
        latest = _conditioned(shrunk, plain.inputs, known, rows, carried, most, start)
    return _with_tails(latest, learns_tails)


def held_out_densities(plain: Posterior, prediction: Field, signals: Signals, nodes: Indices) -> tuple[Array, Array]:
    """Log densities of complete signals that were held out, and of their values at some nodes, under shrinkage.

    For comparing models: means are the graph's model's, and the covariance of a signal's errors is
    ``V D_c R D_c V^T`` with the standard deviations ``c`` that the graph's model states, times the profile. It is near
    (24), and takes no eigendecomposition per model and fold.

    Parameters
    ----------
    plain : Posterior
        The graph's model, conditioned on the signals that were kept.
    prediction : Field
        What it predicts of the others.
    signals : Signals
        Those, in the units of the signals that were kept.
    nodes : ndarray of int
        Where single values are looked at.
    """
    shrinkage, covariance = _shrinkage(plain), prediction.covariance
    assert isinstance(covariance, Modal)
    vectors, units = covariance.basis.require_eigenvectors(NOT_EXACT), signals.units
    roots = np.sqrt(covariance.rows.diagonal(*covariance.powers)) * shrinkage.profile
    errors = plain.basis.load(signals.values) - prediction.centre
    lengths, log_determinant = shrinkage.lengths(errors / roots)
    freedom, n_nodes = shrinkage.total + 2, errors.shape[1]
    logs = t_log_density(lengths, log_determinant + 2 * np.sum(np.log(roots), axis=1), n_nodes, freedom)
    variances = np.stack([shrinkage.diagonal(vectors[nodes] * own) for own in roots])
    missed = np.square(errors @ vectors[nodes].T)
    values = t_log_density(missed / variances, np.log(variances), 1, freedom)
    divisor = np.broadcast_to(units.divisor, (n_nodes,))[nodes]
    return np.asarray(units.log_density(logs, n_nodes)), values - np.log(divisor)


def _shrinkage(plain: Posterior) -> Shrinkage:
    """The covariance between frequencies of signals that the graph's model whitened."""
    basis, covariance, deviations = plain.basis, plain.covariance, plain.signals.deviations
    assert isinstance(covariance, Modal)
    whitened = covariance.rows.whitened(plain.block, *covariance.powers)
    if deviations is not None:
        spread = covariance.rows.whitened(covariance.coordinates(basis.load(deviations)), *covariance.powers)
        whitened = np.vstack([whitened, spread.reshape(-1, basis.n_nodes)])
    positions = np.clip(basis.eigenvalues / plain.prior.spectrum.upper, 0.0, 1.0)
    return Shrinkage.learnt(whitened, positions, plain.signals.shape[0])


def _with_tails(posterior: Posterior, learns: bool) -> Posterior:
    """The same covariance, with the degrees of freedom of signals learnt by leaving each out in closed form."""
    shrinkage, covariance = posterior.prior.shrinkage, posterior.covariance
    assert shrinkage is not None
    assert isinstance(covariance, Modal)
    lengths, counts = np.empty(0), np.empty(0)  # of none: what is known by draws alone says too little of lengths
    if learns and posterior.seen is None:
        left_out = covariance.left_out(posterior.block, posterior.signals, shares=False, has_energies=False)
        lengths, counts = left_out.lengths, np.full(covariance.shape[0], covariance.shape[1])
    elif learns and posterior.seen is not None and posterior.seen.has_groups:
        groups = [posterior.seen.length(row) for row in range(covariance.shape[0])]
        lengths, counts = np.array([one[0] for one in groups]), np.array([one[2] for one in groups])
    return replace(posterior, prior=posterior.prior.with_tails(shrinkage.with_freedom(lengths, counts)))


def _as_inputs(n_features: int) -> Any:
    return lambda inputs: as_real_array(
        inputs, "inputs", ("n_inputs", "n_features"), sizes={"n_features": n_features}, remedy="Rows are inputs."
    )
