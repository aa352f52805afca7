"""Likelihoods of values given latent signals: counts, classes, proportions, heavy tails."""

from spectralgp.model.likelihoods.base import (
    Likelihood,
    Terms,
    predictive_distribution,
    predictive_log_density,
    quantile_of,
    randomised_pit,
)
from spectralgp.model.likelihoods.kinds import Gaussian, as_likelihood, named_likelihoods
from spectralgp.model.likelihoods.parameters import (
    check_derivatives,
    learn_parameters,
    log_bounds,
    log_parameters,
    open_parameters,
    parameter_slopes,
    rough_level,
    with_first_values,
    with_log_parameters,
)
