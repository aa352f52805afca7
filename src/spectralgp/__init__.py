"""Gaussian processes on graphs that learn their own spectrum.

Names are imported when they are asked for, so that what needs few of them starts quickly.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spectralgp.estimators import GraphGPClassifier, GraphGPForecaster, GraphGPRegressor, load
    from spectralgp.graphs import Graph, as_graph
    from spectralgp.graphs.partitioned import PartitionedGraph
    from spectralgp.learning import Lagrangian, Sqp, Stacking, Task, learn
    from spectralgp.model.fields import (
        GraphGP,
        condition,
        condition_shrunk,
        graph_gp,
        leave_one_out,
        log_marginal_likelihood,
    )
    from spectralgp.model.kernels import (
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
    from spectralgp.model.likelihoods import (
        Bernoulli,
        Binomial,
        Gaussian,
        Likelihood,
        NegativeBinomial,
        Poisson,
        StudentT,
    )
    from spectralgp.model.signals import Signals, read_signals
    from spectralgp.model.spectra import Chebyshev, Exact, Spectrum, decompose

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


_HOMES = {  # where names are found
    "estimators": ("GraphGPClassifier", "GraphGPForecaster", "GraphGPRegressor", "load"),
    "model.fields": (
        "GraphGP",
        "condition",
        "condition_shrunk",
        "graph_gp",
        "leave_one_out",
        "log_marginal_likelihood",
    ),
    "graphs": ("Graph", "as_graph"),
    "model.kernels": (
        "Cosine",
        "Diffusion",
        "GlobalFilter",
        "GraphKernel",
        "Identity",
        "LocalAverage",
        "Matern",
        "Polynomial",
        "PseudoInverse",
        "RandomWalk",
        "RegularizedLaplacian",
        "Response",
        "SpectralKernel",
        "WithResidual",
    ),
    "learning": ("Lagrangian", "Sqp", "Stacking", "Task", "learn"),
    "model.likelihoods": ("Bernoulli", "Binomial", "Gaussian", "Likelihood", "NegativeBinomial", "Poisson", "StudentT"),
    "graphs.partitioned": ("PartitionedGraph",),
    "model.signals": ("Signals", "read_signals"),
    "model.spectra": ("Chebyshev", "Exact", "Spectrum", "decompose"),
}


def __getattr__(name: str) -> Any:
    """Import a name, or a package, when it is asked for."""
    for home, names in _HOMES.items():
        if name in names:
            if home == "estimators":  # from deep inside the package the same import takes 0.2 s longer
                import sklearn.gaussian_process  # noqa: F401
            found = getattr(import_module(f"{__name__}.{home}"), name)
            globals()[name] = found
            return found
    if not name.startswith("_") and find_spec(f"{__name__}.{name}") is not None:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """All names, for completion."""
    return sorted({*globals(), *__all__})
