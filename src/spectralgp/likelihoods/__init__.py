"""How values are observed of latent signals: counts, classes, proportions, heavy tails."""

from spectralgp.likelihoods.base import Condition, Likelihood, Terms, expectation
from spectralgp.likelihoods.kinds import (
    NAMED,
    Bernoulli,
    Binomial,
    Gaussian,
    NegativeBinomial,
    Poisson,
    StudentT,
    as_likelihood,
)
