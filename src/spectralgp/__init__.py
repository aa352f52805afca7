"""Gaussian processes on graphs that learn their own spectrum."""

from spectralgp.evidence import log_marginal_likelihood
from spectralgp.graph import Graph, as_graph
from spectralgp.graph_kernels import (
    Cosine,
    Diffusion,
    GlobalFilter,
    GraphKernel,
    Identity,
    LocalAverage,
    Matern,
    Polynomial,
    PseudoInverse,
    RandomWalk,
    RegularizedLaplacian,
    Response,
)
from spectralgp.learning import Task, learn
from spectralgp.leave_one_out import leave_one_out
from spectralgp.model import GraphGP, graph_gp
from spectralgp.posterior import condition
from spectralgp.regressor import GraphGPRegressor
from spectralgp.spectrum import Chebyshev, Spectrum, decompose

__version__ = "0.1.0"

__all__ = [
    "Chebyshev",
    "Cosine",
    "Diffusion",
    "GlobalFilter",
    "Graph",
    "GraphGP",
    "GraphGPRegressor",
    "GraphKernel",
    "Identity",
    "LocalAverage",
    "Matern",
    "Polynomial",
    "PseudoInverse",
    "RandomWalk",
    "RegularizedLaplacian",
    "Response",
    "Spectrum",
    "Task",
    "as_graph",
    "condition",
    "decompose",
    "graph_gp",
    "learn",
    "leave_one_out",
    "log_marginal_likelihood",
]
