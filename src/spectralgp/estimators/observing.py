"""Exposures, trials, known noise and covariates of observed values, read and checked."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

from spectralgp._basics.checks import Array, Indices, Mask, as_positive, as_real_array
from spectralgp._basics.tables import Table, as_table, is_counted, is_data_array, match_columns, match_rows
from spectralgp.estimators.answers import training_numbers
from spectralgp.estimators.reading import SignalFormat, TrainingData
from spectralgp.graphs.weights import is_range
from spectralgp.model import likelihoods
from spectralgp.model.fields import LatentPosterior, ObservationModel
from spectralgp.model.likelihoods import Gaussian, Likelihood
from spectralgp.model.likelihoods.base import AuxiliaryData, ValueCondition

Method = TypeVar("Method", bound=Callable[..., Any])
Order = Indices | slice

INTERCEPT = "intercept"
UNNAMED = "covariate "  # followed by the number of a column of an array
KNOWN_SHARE = 0.5  # of the smallest known noise: white part of the latent signals
# of the variance of Y: noise of the sites if noise is learnt, white part if values have weights
RESOLVED_SHARE = 1e-3
OWN_WHITE_SHARE = 0.01  # of the latent variance: white part for a likelihood with noise
KNOWN_NOISE = ValueCondition(
    lambda _, beside: (beside > 0) & np.isfinite(beside),
    "noise_variance",
    "be finite and above 0 at observed values",
    "Leave out values without any, by NaN in Y, or give them small ones.",
)


def takes_auxiliary_data(method: Method) -> Method:
    """Show the arguments of `AuxiliaryData` in the signature of a method that takes them as ``**given``.

    Arguments that are None are not passed on; other names are refused.
    """
    signature, auxiliary = inspect.signature(method), AuxiliaryData.__annotations__
    own = list(signature.parameters.values())[:-1]
    shown = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in auxiliary]
    signature = signature.replace(parameters=[*own, *shown])

    @wraps(method)
    def checked(*positional: Any, **named: Any) -> Any:
        for name in named.keys() - signature.parameters.keys():
            close = get_close_matches(name, signature.parameters, 1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise TypeError(f"{method.__name__}() got an unexpected keyword argument {name!r}.{hint}")
        stated = {name: one for name, one in named.items() if name not in auxiliary or one is not None}
        return method(*positional, **stated)

    vars(checked)["__signature__"] = signature
    return cast(Method, checked)


def auxiliary_values(given: AuxiliaryData) -> dict[str, Any]:
    """Arguments with one number per value."""
    return {name: one for name, one in given.items() if name != "covariates"}


@dataclass(frozen=True, eq=False)
class Alignment:
    """Rows and nodes of signals, to which tables are matched by label and name, and arrays by position."""

    form: SignalFormat
    n_rows: int
    n_nodes: int
    index: Any = None  # labels of the rows, if any

    def entries(self, given: Any, argument: str) -> Array:
        """One number per entry, shape (n_rows, n_nodes), nodes in the graph's order; NaN for missing ones.

        `given` is one number, one per node, or a table or array such as the signals.
        """
        table = self.form.table(given, argument)
        index, names = (table.index, table.names) if isinstance(table, Table) else (None, None)
        values = as_real_array(table, argument, None, allow_nan=True)
        if self.form.is_flat and values.shape == (self.n_rows,):
            values = values[self.row_order(index, argument), None]
        elif values.shape == (self.n_nodes,):
            values = values[self.node_order(index, argument, "value")]
        elif values.shape == (self.n_rows, self.n_nodes):
            values = values[self.row_order(index, argument)][:, self.node_order(names, argument, "column")]
        elif values.shape:
            # errors of names are clearer than those of sizes
            self.node_order(index if values.ndim == 1 else names, argument, "value" if values.ndim == 1 else "column")
            raise ValueError(
                f"{argument} must be one number, one for each of the {self.n_nodes} nodes, or have the shape of the "
                f"signals, ({self.n_rows}, {self.n_nodes}); got shape {values.shape}. Rows are signals."
            )
        return np.asarray(self.form.to_graph(np.array(np.broadcast_to(values, (self.n_rows, self.n_nodes)))))

    def rows(self, given: Any, argument: str) -> Array:
        """One number per row, shape (n_rows,)."""
        table = as_table(given, argument)
        values = as_real_array(table, argument, ("n_rows",), sizes={"n_rows": self.n_rows})
        return values[self.row_order(table.index if isinstance(table, Table) else None, argument)]

    def node_order(self, names: Any, argument: str, item: str) -> Order:
        """Positions, among the names of a table, of the nodes in the user's order."""
        own = tuple(range(self.n_nodes)) if self.form.names is None else self.form.names
        if is_counted(names) or (is_range(names) and not is_range(own)):
            return slice(None)
        return match_columns(tuple(names), own, argument, item)

    def row_order(self, index: Any, argument: str) -> Order:
        """Positions, among the labels of a table, of the rows."""
        return match_rows(index, self.index, argument)


@dataclass(frozen=True, eq=False)
class Coefficients:
    """Fixed effects and their standard errors."""

    names: tuple[str, ...]
    values: Array
    errors: Array

    @classmethod
    def of(cls, names: tuple[str, ...], posterior: Any) -> Coefficients:
        """Posterior means and standard deviations, averaged over all models."""
        parts = [(weight, one.sites) for weight, one in posterior.parts]
        values = sum(weight * sites.coefficients for weight, sites in parts)
        variances = [np.diag(sites.coefficient_covariance) + (sites.coefficients - values) ** 2 for _, sites in parts]
        total = sum(weight * one for (weight, _), one in zip(parts, variances, strict=True))
        return cls(names, values, np.sqrt(total))

    def __getitem__(self, name: str) -> float:
        """The coefficient of a name."""
        return float(self.values[self.names.index(name)])

    def __len__(self) -> int:
        """Number of fixed effects."""
        return len(self.names)

    def __repr__(self) -> str:
        width = max((len(name) for name in self.names), default=0)
        rows = zip(self.names, self.values.tolist(), self.errors.tolist(), strict=True)
        lines = [f"{name:<{width}}  {value: .4g} (standard error {error:.3g})" for name, value, error in rows]
        return "\n".join(lines) or "no fixed effects"


def covariate_columns(covariates: Any, alignment: Alignment) -> tuple[tuple[str, ...], Array]:
    """Names and columns of covariates, in the graph's order, shape (n_covariates, n_signals, n_nodes)."""
    covariates = {} if covariates is None else covariates
    if not isinstance(covariates, Mapping):
        form, n_nodes = alignment.form, alignment.n_nodes
        table = as_table(covariates, "covariates", names=form.names if is_data_array(covariates) else None)
        values, labels, nodes = as_real_array(table, "covariates", None, allow_nan=True), None, None
        if isinstance(table, Table):
            labels, nodes = table.names, table.index
        if is_data_array(covariates) and values.ndim == 2:  # whose columns are the nodes
            values, labels, nodes = values.T, nodes, labels
        values = values[:, None] if values.ndim == 1 else values
        if values.ndim != 2 or len(values) != n_nodes:
            raise ValueError(
                f"covariates must have one row for each of the {n_nodes} nodes, or be a dict of names and values; got "
                f"shape {values.shape}. Values of each entry are passed by name: {{'name': array such as Y}}."
            )
        values = values[alignment.node_order(nodes, "covariates", "row")]
        names = [f"{UNNAMED}{place}" for place in range(values.shape[1])] if labels is None else labels
        covariates = {str(name): values[:, place] for place, name in enumerate(names)}
    found = [alignment.entries(one, f"covariates[{name!r}]") for name, one in covariates.items()]
    for name, column in zip(covariates, found, strict=True):
        as_real_array(column, f"covariates[{name!r}]", ("n_signals", "n_nodes"))
    return tuple(str(name) for name in covariates), np.reshape(found, (len(found), alignment.n_rows, alignment.n_nodes))


def with_observations(estimator: Any, training: TrainingData, given: AuxiliaryData) -> TrainingData:
    """Add to training data how their values are observed, checked; errors name the entry."""
    stated, covariates = auxiliary_values(given), given.get("covariates")
    form, n_nodes = training.form, training.values.shape[1]
    alignment = Alignment(form, form.kept.size, n_nodes, training.index)
    if estimator.likelihood == "gaussian" and covariates is None and set(stated) == {"noise_variance"}:
        noises = alignment.entries(stated["noise_variance"], "noise_variance")
        if np.all(noises == noises[0, 0]):
            return replace(training, known_noise=as_positive(float(noises[0, 0]), "noise_variance"))
    likelihood, values = likelihoods.as_likelihood(estimator.likelihood), np.asarray(training.values, dtype=float)
    own = _argument_of_values(likelihood, stated)
    beside = alignment.entries(stated[own], own) if own in stated else np.ones((form.kept.size, n_nodes))
    beside = beside[form.kept]
    names, columns = covariate_columns(covariates, alignment)
    columns = columns[:, form.kept]
    if estimator.center is not None:
        names, columns = (INTERCEPT, *names), np.concatenate([np.ones((1, *values.shape)), columns])
    seen = np.isfinite(values)
    _check_entries(likelihood, values, beside, own, alignment, rows=np.flatnonzero(form.kept))
    likelihoods.check_derivatives(likelihood, values[seen], beside[seen])
    flat = columns[:, seen]
    if len(flat) and np.linalg.matrix_rank(flat) < len(flat):
        raise ValueError(
            f"covariates must not be combinations of each other or of the intercept; got {len(flat)} columns "
            f"({', '.join(names)}) of rank {np.linalg.matrix_rank(flat)}. Leave one of them out."
        )
    noise: float | None = None
    if isinstance(likelihood, Gaussian):
        likelihood, beside, noise = _gaussian_sites(likelihood, beside, values, own if own in stated else None)
    beside = np.where(seen | (np.isfinite(beside) & (beside > 0)), beside, 1.0)
    observed_by = ObservationModel.of(likelihood, beside, columns, values, INTERCEPT in names)
    typical = observed_by.observations(values, likelihoods.with_first_values(likelihood)).rough_variance
    if likelihood.parameters and noise is None and not isinstance(likelihood, Gaussian):
        noise = OWN_WHITE_SHARE * typical
    return replace(training, known_noise=noise, observed_by=observed_by, typical_variance=typical, effects=names)


def _argument_of_values(likelihood: Likelihood, stated: dict[str, Any]) -> str | None:
    """Name of the argument with one number per value that a likelihood takes; refuse others, and a missing one."""
    own = likelihood.beside or ("noise_variance" if isinstance(likelihood, Gaussian) else None)
    is_weighed = own == "noise_variance" and "weights" in stated
    if is_weighed:
        if "noise_variance" in stated:
            raise ValueError("weights must be left out if noise_variance is given; got both. Pass one of them.")
        own = "weights"
    for name in stated:
        if name != own:
            raise ValueError(
                f"{name} must be left out with likelihood={likelihood.name!r}, which has no use for it; got some. "
                f"{'It takes ' + own + '.' if own else 'Pass another likelihood.'}"
            )
    if isinstance(likelihood, Gaussian) and likelihood.scale is not None and not is_weighed:
        raise ValueError(
            f"likelihood must be without a scale, which is that of the noise at weight one, unless weights are given; "
            f"got {likelihood!r}. Pass noise_variance={likelihood.scale**2:g} to `fit` instead."
        )
    if likelihood.beside == "trials" and "trials" not in stated:
        raise ValueError(
            "trials must be given with likelihood='binomial'; got None. Pass one number, or one per entry."
        )
    return own


def _gaussian_sites(
    likelihood: Gaussian, beside: Array, values: Array, given: str | None
) -> tuple[Gaussian, Array, float | None]:
    """Likelihood, variances beside the values and white part of Gaussian noise, by the argument it was given in."""
    seen = np.isfinite(values)
    variance = float(np.var(values[seen]) or 1.0)
    if given == "weights":
        return likelihood, 1 / np.where(beside > 0, beside, 1.0), RESOLVED_SHARE * variance
    if given is None:
        return Gaussian(float(np.sqrt(RESOLVED_SHARE * variance))), beside, None
    noise = KNOWN_SHARE * float(np.min(beside[seen]))
    rest = np.where(beside > noise, beside - noise, np.nan)
    return Gaussian(1.0), np.where(np.isfinite(rest), rest, np.nanmedian(rest)), noise


def auxiliary_argument(posterior: LatentPosterior) -> tuple[str | None, bool]:
    """Name of the argument with one number per value, and whether new values need it since `fit` had it."""
    own, likelihood = posterior.observed_by, posterior.likelihood
    takes = likelihood.beside
    if isinstance(likelihood, Gaussian):
        is_known = likelihood.scale == 1.0
        takes = "weights" if likelihoods.open_parameters(own.likelihood) else "noise_variance" if is_known else None
    return takes, takes == "noise_variance" or bool(np.any(own.beside != 1))


def training_rows(model: Any, features: Any, signals: Array, given: AuxiliaryData, alignment: Alignment) -> Indices:
    """Numbers of the training signals with the same inputs, values, exposures and covariates; -1 for new signals."""
    first = model.posterior_.parts[0][1]
    rows = training_numbers(first, features, signals)
    known = np.flatnonzero(rows >= 0)
    own = new_observed_by(model, given, alignment, asked=False) if given and known.size else None
    if own is not None:
        trained, same = first.observed_by.some(rows[known]), np.ones(signals[known].shape, bool)
        if auxiliary_values(given):
            same = np.isclose(own.beside[known], trained.beside) | ~np.isfinite(signals[known])
        if "covariates" in given:
            same &= np.all(np.isclose(own.columns[:, known], trained.columns), axis=0)
        rows[known[~same.all(axis=1)]] = -1
    return rows


def new_observed_by(
    model: Any,
    given: AuxiliaryData,
    alignment: Alignment,
    values: Array | None = None,
    *,
    asked: Mask | bool = True,
    with_noise: bool = False,
    argument: str = "Y",
) -> ObservationModel | None:
    """Return how values of new signals are observed, in the graph's order of the nodes; None without a likelihood.

    Known `values`, NaN elsewhere, are checked and need the arguments that `fit` had, as does noise `asked` for at other
    entries; exposures, trials and weights are one there unless given. Messages call the values by the name `argument`.
    """
    if not model._is_latent:
        if given:
            raise ValueError(
                f"{next(iter(given))} must be left out, since the model was fitted without; got some. "
                "Fit it with a likelihood, covariates or noise that is known per entry."
            )
        return None
    values = np.full((alignment.n_rows, alignment.n_nodes), np.nan) if values is None else values
    posterior: LatentPosterior = model.posterior_.parts[0][1]
    takes, is_needed = auxiliary_argument(posterior)
    stated, is_noise = auxiliary_values(given), takes == "noise_variance"
    for name in stated:
        if name != takes:
            raise ValueError(f"{name} must be left out with this model; got some. It takes {takes or 'nothing'}.")
    known, asked = np.isfinite(values), np.broadcast_to(asked, values.shape)
    needed = known | (with_noise & asked) if is_noise else known
    beside = np.full(values.shape, np.nan if is_noise else 1.0)
    if takes in stated:
        beside = alignment.entries(stated[takes], takes)
    elif needed.any() and is_needed:
        is_observed = argument == "observed" and takes == posterior.likelihood.beside
        raise ValueError(
            f"{'observed_exposure' if is_observed else takes} must be given for values "
            f"{'in ' + argument if known.any() else 'with their noise'}, since the model was fitted with {takes}; got "
            "None. Pass that of each value."
        )
    wanted = needed if is_noise else known | asked
    _check_entries(posterior.likelihood, values, beside, takes, alignment, argument, wanted)
    if is_noise:
        white = posterior.prior.noise_variance
        if np.any(beside[wanted] <= white):
            raise ValueError(
                f"noise_variance must be above {white:.3g}, half of the smallest that the model was fitted to; got "
                f"{np.min(beside[wanted]):.3g}. Fit again with such values, or ask for the signal without noise."
            )
        beside = np.where(wanted | (beside > white), beside - white, np.median(posterior.observed_by.beside))
    else:
        beside = np.where(wanted | (beside > 0), beside, 1.0)
        beside = 1 / beside if takes == "weights" else beside
    return ObservationModel(posterior.likelihood, beside, _new_columns(model, posterior, given, alignment))


def _new_columns(model: Any, posterior: LatentPosterior, given: AuxiliaryData, alignment: Alignment) -> Array:
    """Covariates of new signals, the intercept among them, shape (n_effects, n_signals, n_nodes)."""
    columns, (n_rows, n_nodes) = posterior.observed_by.columns, (alignment.n_rows, alignment.n_nodes)
    if "covariates" not in given and np.all(columns == columns[:, :1]):  # the same for all signals
        return np.repeat(columns[:, :1], n_rows, axis=1)
    own = tuple(name for name in model._effects if name != INTERCEPT)
    names, found = covariate_columns(given.get("covariates"), alignment)
    if len(names) == len(own) and all(name.startswith(UNNAMED) for name in names):  # arrays go by position
        names = own
    if set(names) != set(own):
        raise ValueError(
            f"covariates must be those of fit, {list(own)}; got {list(names)}. Pass covariates={{'name': values}} for "
            "the new signals; they may be left out only if they were the same for all signals."
        )
    found = found[[names.index(name) for name in own]]
    return np.concatenate([np.ones((1, n_rows, n_nodes)), found]) if INTERCEPT in model._effects else found


def _check_entries(
    likelihood: Likelihood,
    values: Array,
    beside: Array,
    takes: str | None,
    alignment: Alignment,
    argument: str = "Y",
    wanted: Mask | None = None,
    rows: Indices | None = None,  # their numbers among those of the user
) -> None:
    """Refuse values but NaN that a likelihood cannot observe, and numbers beside them at `wanted` entries too."""
    known, conditions = np.isfinite(values), likelihood.conditions
    if isinstance(likelihood, Gaussian) and takes is not None:
        conditions = (replace(KNOWN_NOISE, argument=takes),)
    for one in conditions:
        is_of_values = one.argument == "Y"
        at = known if is_of_values or wanted is None else wanted
        wrong = at & ~one.holds(np.where(known, values, 1.0), np.where(at, beside, 1.0))
        if wrong.any():
            row, node = (int(index) for index in np.argwhere(wrong)[0])
            got, given_row = (values if is_of_values else beside)[row, node], row if rows is None else rows[row]
            raise ValueError(
                f"{argument if is_of_values else one.argument} must {one.condition}; got {got:g} at row {given_row}, "
                f"column {alignment.form.node_name(node)!r} ({int(wrong.sum())} such in all). {one.remedy}"
            )
