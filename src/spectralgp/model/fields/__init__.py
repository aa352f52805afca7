"""Gaussian fields on graphs: covariances, evidence, posteriors given complete or partial observations, predictions."""

from spectralgp.model.fields.covariances import Covariance, Evidence, ModalCovariance, QuadratureCovariance
from spectralgp.model.fields.factors import InputCovariance, NodeCovariance, RowCovariance, greedy_points
from spectralgp.model.fields.field import (
    ConditionedField,
    Field,
    PredictiveDistribution,
    node_covariances,
    standard_deviation,
)
from spectralgp.model.fields.latent import LatentPosterior, condition_latent, observed_with, probability_transforms
from spectralgp.model.fields.leaving_out import By, LeaveOneOut, leave_one_out
from spectralgp.model.fields.observations import PartialObservations
from spectralgp.model.fields.posterior import (
    Fallback,
    GraphGP,
    Mixture,
    Posterior,
    condition,
    condition_shrunk,
    graph_gp,
    held_out_densities,
    held_out_values,
    log_marginal_likelihood,
    partial_observations,
    posterior_of,
    shrunk_posterior_of,
)
from spectralgp.model.fields.processes import ProcessKernel, RatePriors, TimeEvidence, are_in_time, state_space
from spectralgp.model.fields.shrinkage import Shrinkage
from spectralgp.model.fields.sites import EffectPrior, ObservationModel, Sites, find_sites
from spectralgp.model.fields.transformed import Changes, Logarithms, Transformation
