"""Gaussian processes on graphs that learn their own spectrum."""

from typing import TYPE_CHECKING, Any

import sklearn.gaussian_process  # noqa: F401 (from deep inside the package the same import takes 0.1 s longer)

from spectralgp.estimators import GraphGPClassifier, GraphGPForecaster, GraphGPRegressor, load
from spectralgp.fields import (
    GraphGP,
    condition,
    condition_shrunk,
    graph_gp,
    leave_one_out,
    log_marginal_likelihood,
)
from spectralgp.graphs import Graph, as_graph
from spectralgp.kernels import (
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
    SpectralKernel,
    WithResidual,
)
from spectralgp.learning import Lagrangian, Sqp, Task, learn
from spectralgp.learning.folds import Stacking
from spectralgp.likelihoods import (
    Bernoulli,
    Binomial,
    Gaussian,
    Likelihood,
    NegativeBinomial,
    Poisson,
    StudentT,
)
from spectralgp.signals import Signals, read_signals
from spectralgp.spectra import Chebyshev, Exact, Spectrum, decompose

if TYPE_CHECKING:
    from spectralgp.partitioned import PartitionedGraph

__version__ = "0.1.0"

__all__ = [
    "Bernoulli",
    "Binomial",
    "Chebyshev",
    "Cosine",
    "Diffusion",
    "Exact",
    "Gaussian",
    "GlobalFilter",
    "Graph",
    "GraphGP",
    "GraphGPClassifier",
    "GraphGPForecaster",
    "GraphGPRegressor",
    "GraphKernel",
    "Identity",
    "Lagrangian",
    "Likelihood",
    "LocalAverage",
    "Matern",
    "NegativeBinomial",
    "PartitionedGraph",
    "Poisson",
    "Polynomial",
    "PseudoInverse",
    "RandomWalk",
    "RegularizedLaplacian",
    "Response",
    "Signals",
    "SpectralKernel",
    "Spectrum",
    "Sqp",
    "Stacking",
    "StudentT",
    "Task",
    "WithResidual",
    "as_graph",
    "condition",
    "condition_shrunk",
    "decompose",
    "graph_gp",
    "learn",
    "leave_one_out",
    "load",
    "log_marginal_likelihood",
    "read_signals",
]


def __getattr__(name: str) -> Any:
    """Partitioned graphs, which few need, are imported when they are asked for."""
    if name == "PartitionedGraph":
        from spectralgp.partitioned import PartitionedGraph

        return PartitionedGraph
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """All names, for completion."""
    return sorted({*globals(), *__all__})
