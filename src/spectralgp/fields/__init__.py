"""One field: covariances of signals on a graph, seen through weights, and what is predicted given what was seen."""

from spectralgp.fields.conditioning import (
    Mixture,
    Posterior,
    condition,
    condition_shrunk,
    held_out_densities,
    seen_about,
)
from spectralgp.fields.covariances import Covariance, Modal, Series
from spectralgp.fields.evidence import Evidence, log_marginal_likelihood
from spectralgp.fields.field import Field, MixedField, Predictive
from spectralgp.fields.leaving_out import By, LeaveOneOut, leave_one_out
from spectralgp.fields.prior import GraphGP, graph_gp
from spectralgp.fields.rows import Inputs, Left, Rows
from spectralgp.fields.seen import Seen
from spectralgp.fields.shrinkage import Shrinkage

__all__ = [
    "By",
    "Covariance",
    "Evidence",
    "Field",
    "GraphGP",
    "Inputs",
    "LeaveOneOut",
    "Left",
    "MixedField",
    "Mixture",
    "Modal",
    "Posterior",
    "Predictive",
    "Rows",
    "Seen",
    "Series",
    "Shrinkage",
    "condition",
    "condition_shrunk",
    "graph_gp",
    "held_out_densities",
    "leave_one_out",
    "log_marginal_likelihood",
    "seen_about",
]
