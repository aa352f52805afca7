"""Likelihoods of values given latent signals: counts, classes, proportions, heavy tails."""

from spectralgp.model.likelihoods.base import (
    Likelihood,
    Terms,
    check_derivatives,
    learn_parameters,
    log_bounds,
    log_parameters,
    open_parameters,
    parameter_slopes,
    predictive_distribution,
    predictive_log_density,
    quantile_of,
    randomised_pit,
    with_first_values,
    with_log_parameters,
)
from spectralgp.model.likelihoods.kinds import Gaussian, as_likelihood, named_likelihoods
