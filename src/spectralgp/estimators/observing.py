"""How values are observed, as a user says it: exposures, trials, known noise and covariates, read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spectralgp._basics.checks import Array, Mask, as_positive, as_real_array
from spectralgp._basics.tables import as_table, frame_names, match_columns
from spectralgp.estimators.reading import Form, Training
from spectralgp.fields import LatentPosterior, ObservedBy
from spectralgp.likelihoods import Gaussian, Likelihood, as_likelihood
from spectralgp.likelihoods.base import Condition

LIKELIHOOD_ARGUMENTS = ("exposure", "trials", "noise_variance", "weights")
INTERCEPT = "intercept"
KNOWN_SHARE = 0.5  # of the smallest known noise, that counts as white part of the latent signals
RESOLVED_SHARE = (
    1e-3  # of the variance of Y, that is left to sites where noise is learnt; to the white part, if weighed
)
OWN_WHITE_SHARE = 0.01  # of the latent variance, as white part where the likelihood has a noise of its own
KNOWN_NOISE = Condition(
    lambda _, beside: (beside > 0) & np.isfinite(beside),
    "noise_variance",
    "be finite and above 0 where a value was observed",
    "Leave out values without any, by NaN in Y, or give them small ones.",
)


@dataclass(frozen=True, eq=False)
class Coefficients:
    """Fixed effects and their standard errors."""

    names: tuple[str, ...]
    values: Array
    errors: Array

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


@dataclass(frozen=True, eq=False)
class Observing:
    """What was said of how values are observed, in the graph's order of the nodes and for the rows that are kept."""

    observed_by: ObservedBy
    noise_variance: float | None  # white part of the latent signals, where it is not learnt
    typical_variance: float  # of the latent signals
    names: tuple[str, ...]  # of the fixed effects


def beside_of(given: Any, name: str, form: Form, n_signals: int, n_nodes: int) -> Array:
    """A number for every value, in the graph's order: from one number, one per node, or a table or array such as Y."""
    table = as_table(given, name, names=form.names)
    values, names = np.asarray(table, dtype=float), frame_names(table)
    if names is not None and form.names is not None:
        values = values[:, match_columns(names, form.names)]
    values = values[:, None] if form.is_flat and values.shape == (n_signals,) else values
    if values.shape not in ((), (n_nodes,), (n_signals, n_nodes)):
        raise ValueError(
            f"{name} must be one number, one for each of the {n_nodes} nodes, or have the shape of Y, "
            f"({n_signals}, {n_nodes}); got shape {values.shape}. Rows are signals."
        )
    full = np.array(np.broadcast_to(values, (n_signals, n_nodes)))
    return np.asarray(form.to_graph(full))


def covariate_columns(covariates: Any, form: Form, n_signals: int, n_nodes: int) -> tuple[tuple[str, ...], list[Array]]:
    """Names and columns of covariates, in the graph's order, each of shape (n_signals, n_nodes)."""
    if covariates is None:
        return (), []
    if not isinstance(covariates, Mapping):
        table = as_table(covariates, "covariates")
        values, names = np.asarray(table, dtype=float), frame_names(table)
        values = values[:, None] if values.ndim == 1 else values
        if values.ndim != 2 or len(values) != n_nodes:
            raise ValueError(
                f"covariates must have one row for each of the {n_nodes} nodes, or be a dict of names and values; got "
                f"shape {values.shape}. Values of each entry are passed by name: {{'name': array such as Y}}."
            )
        labels = [f"covariate {place}" for place in range(values.shape[1])] if names is None else list(names)
        covariates = {str(label): values[:, place] for place, label in enumerate(labels)}
    found = [beside_of(one, f"covariates[{name!r}]", form, n_signals, n_nodes) for name, one in covariates.items()]
    for name, column in zip(covariates, found, strict=True):
        as_real_array(column, f"covariates[{name!r}]", ("n_signals", "n_nodes"))
    return tuple(str(name) for name in covariates), found


def read_observing(estimator: Any, training: Training, given: dict[str, Any], covariates: Any) -> Observing | float:
    """How training values are observed of latent signals, checked: errors name the entry.

    Where all that was given is the noise of the values, and one number for all of them, it is that number alone.
    """
    form, n_signals, n_nodes = training.form, training.form.kept.size, training.values.shape[1]
    if estimator.likelihood == "gaussian" and covariates is None and set(given) == {"noise_variance"}:
        noises = beside_of(given["noise_variance"], "noise_variance", form, n_signals, n_nodes)
        if np.all(noises == noises[0, 0]):
            return as_positive(float(noises[0, 0]), "noise_variance")
    likelihood, values = as_likelihood(estimator.likelihood), np.asarray(training.values, dtype=float)
    own = likelihood.beside or ("noise_variance" if isinstance(likelihood, Gaussian) else None)
    is_weighed = own == "noise_variance" and "weights" in given
    if is_weighed:
        if "noise_variance" in given:
            raise ValueError("weights must be left out where noise_variance is given; got both. Pass one of them.")
        own = "weights"
    for name in given:
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
    if likelihood.beside == "trials" and "trials" not in given:
        raise ValueError(
            "trials must be given with likelihood='binomial'; got None. Pass one number, or one per entry."
        )
    said, beside = given.get(own) if own else None, np.ones((n_signals, n_nodes))
    if said is not None:
        beside = beside_of(said, str(own), form, n_signals, n_nodes)
    beside = beside[form.kept]
    names, columns = covariate_columns(covariates, form, n_signals, n_nodes)
    columns = [column[form.kept] for column in columns]
    if estimator.center is not None:
        names, columns = (INTERCEPT, *names), [np.ones(values.shape), *columns]
    stacked = np.stack(columns) if columns else np.empty((0, *values.shape))
    seen = np.isfinite(values)
    _check_entries(likelihood, values, beside, seen, form, str(own))
    flat = stacked[:, seen]
    if len(flat) and np.linalg.matrix_rank(flat) < len(flat):
        raise ValueError(
            f"covariates must not be combinations of each other or of the intercept; got {len(flat)} columns "
            f"({', '.join(names)}) of rank {np.linalg.matrix_rank(flat)}. Leave one of them out."
        )
    noise: float | None = None
    if isinstance(likelihood, Gaussian):
        variance = float(np.var(values[seen]) or 1.0)
        if is_weighed:
            noise, beside = RESOLVED_SHARE * variance, 1 / np.where(seen, beside, 1.0)
        elif said is not None:
            noise = KNOWN_SHARE * float(np.min(beside[seen]))
            rest = np.where(beside > noise, beside - noise, np.nan)
            likelihood, beside = Gaussian(1.0), np.where(np.isfinite(rest), rest, np.nanmedian(rest))
        else:
            likelihood = Gaussian(float(np.sqrt(RESOLVED_SHARE * variance)))
    beside = np.where(seen | (np.isfinite(beside) & (beside > 0)), beside, 1.0)
    observed_by = ObservedBy(likelihood, beside, stacked)
    typical = observed_by.observations(values, likelihood.started()).rough_variance
    if likelihood.parameters and noise is None and not isinstance(likelihood, Gaussian):
        noise = OWN_WHITE_SHARE * typical
    return Observing(observed_by, noise, typical, names)


def new_observed_by(model: Any, seen: dict[str, Any], n_inputs: int) -> ObservedBy | None:
    """How values of new signals are observed, in the graph's order of the nodes; None where signals are not latent."""
    unknown = [name for name in seen if name not in (*LIKELIHOOD_ARGUMENTS, "covariates")]
    if unknown:
        raise TypeError(f"{unknown[0]} must not be given: no such argument; got one. See the signature of fit.")
    given = {name: value for name, value in seen.items() if value is not None}
    if not model._is_latent:
        if given:
            raise ValueError(
                f"{next(iter(given))} must be left out where the model was fitted without; got some. Fit it with a "
                "likelihood, covariates or noise that is known per entry."
            )
        return None
    posterior: LatentPosterior = model.posterior_
    form, own, likelihood = model._form, posterior.observed_by, posterior.likelihood
    covariates, n_nodes = given.pop("covariates", None), own.beside.shape[1]
    argument = likelihood.beside or ("noise_variance" if isinstance(likelihood, Gaussian) else None)
    is_weighed = bool(own.likelihood.open_parameters) and argument == "noise_variance"
    argument = "weights" if is_weighed else argument
    for name in given:
        if name != argument:
            raise ValueError(f"{name} must be left out with this model; got some. It takes {argument or 'nothing'}.")
    is_noise_known = isinstance(likelihood, Gaussian) and likelihood.scale == 1.0 and not is_weighed
    beside = np.full((n_inputs, n_nodes), np.nan if is_noise_known else 1.0)
    if argument in given:
        beside = beside_of(given[argument], argument, form, n_inputs, n_nodes)
    if is_noise_known:
        white = posterior.prior.noise_variance
        if np.any(beside <= white):
            raise ValueError(
                f"noise_variance must be above {white:.3g}, half of the smallest that the model was fitted to; got "
                f"{np.nanmin(beside):.3g}. Fit again with such values, or ask for the signal without noise."
            )
        beside = beside - white
    elif np.any(~(beside > 0)):
        raise ValueError(f"{argument} must be finite and above 0; got {np.min(beside):g}. One is the default.")
    beside = 1 / beside if is_weighed else beside
    own_names = tuple(name for name in model._effects if name != INTERCEPT)
    found, columns = covariate_columns(covariates, form, n_inputs, n_nodes)
    stays = np.all(own.columns == own.columns[:, :1])
    if covariates is None and stays:
        return ObservedBy(likelihood, beside, np.repeat(own.columns[:, :1], n_inputs, axis=1))
    if found != own_names:
        raise ValueError(
            f"covariates must be those of fit, {list(own_names)}, where they differ between signals; got "
            f"{list(found)}. Pass covariates={{'name': values}} for the new signals."
        )
    columns = [np.ones((n_inputs, n_nodes)), *columns] if INTERCEPT in model._effects else columns
    return ObservedBy(likelihood, beside, np.stack(columns))


def _check_entries(likelihood: Likelihood, values: Array, beside: Array, seen: Mask, form: Form, own: str) -> None:
    """Refuse values that a likelihood cannot observe, by the place of the first, in the user's order."""
    conditions = list(likelihood.conditions())
    if isinstance(likelihood, Gaussian):
        conditions.append(replace(KNOWN_NOISE, argument=own))
    for one in conditions:
        wrong = seen & ~one.holds(np.where(seen, values, 1.0), np.where(seen, beside, 1.0))
        if wrong.any():
            row, node = (int(index) for index in np.argwhere(wrong)[0])
            got, given_row = (values if one.argument == "Y" else beside)[row, node], np.flatnonzero(form.kept)[row]
            raise ValueError(
                f"{one.argument} must {one.condition}; got {got:g} at row {given_row}, column {form.name_of(node)} "
                f"({int(wrong.sum())} such in all). {one.remedy}"
            )
