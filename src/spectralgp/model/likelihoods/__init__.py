"""How values are observed of latent signals: counts, classes, proportions, heavy tails."""

from spectralgp.model.likelihoods.base import Likelihood, Terms, ValueCondition, expectation
from spectralgp.model.likelihoods.kinds import (
    NAMED,
    Bernoulli,
    Binomial,
    Gaussian,
    NegativeBinomial,
    Poisson,
    StudentT,
    as_likelihood,
)
