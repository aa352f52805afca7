"""Gaussian processes on graphs that learn their own spectrum.

Names are imported on first use, so that a program that needs few of them starts quickly.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # "as" says that a name is public
    from spectralgp.estimators import GraphGPClassifier as GraphGPClassifier
    from spectralgp.estimators import GraphGPForecaster as GraphGPForecaster
    from spectralgp.estimators import GraphGPRegressor as GraphGPRegressor
    from spectralgp.estimators import load as load
    from spectralgp.graphs import Graph as Graph
    from spectralgp.graphs import as_graph as as_graph
    from spectralgp.graphs.partitioned import PartitionedGraph as PartitionedGraph
    from spectralgp.learning import Sqp as Sqp
    from spectralgp.learning import Stacking as Stacking
    from spectralgp.learning import Task as Task
    from spectralgp.learning import learn as learn
    from spectralgp.model.fields import GraphGP as GraphGP
    from spectralgp.model.fields import condition as condition
    from spectralgp.model.fields import condition_shrunk as condition_shrunk
    from spectralgp.model.fields import graph_gp as graph_gp
    from spectralgp.model.fields import leave_one_out as leave_one_out
    from spectralgp.model.fields import log_marginal_likelihood as log_marginal_likelihood
    from spectralgp.model.kernels import Cosine as Cosine
    from spectralgp.model.kernels import Diffusion as Diffusion
    from spectralgp.model.kernels import GlobalFilter as GlobalFilter
    from spectralgp.model.kernels import GraphKernel as GraphKernel
    from spectralgp.model.kernels import Identity as Identity
    from spectralgp.model.kernels import LocalAverage as LocalAverage
    from spectralgp.model.kernels import Matern as Matern
    from spectralgp.model.kernels import Polynomial as Polynomial
    from spectralgp.model.kernels import PseudoInverse as PseudoInverse
    from spectralgp.model.kernels import RandomWalk as RandomWalk
    from spectralgp.model.kernels import RegularizedLaplacian as RegularizedLaplacian
    from spectralgp.model.kernels import Response as Response
    from spectralgp.model.kernels import SpectralKernel as SpectralKernel
    from spectralgp.model.kernels import WithResidual as WithResidual
    from spectralgp.model.likelihoods import Bernoulli as Bernoulli
    from spectralgp.model.likelihoods import Binomial as Binomial
    from spectralgp.model.likelihoods import Gaussian as Gaussian
    from spectralgp.model.likelihoods import Likelihood as Likelihood
    from spectralgp.model.likelihoods import NegativeBinomial as NegativeBinomial
    from spectralgp.model.likelihoods import Poisson as Poisson
    from spectralgp.model.likelihoods import StudentT as StudentT
    from spectralgp.model.signals import Signals as Signals
    from spectralgp.model.signals import read_signals as read_signals
    from spectralgp.model.spectra import Chebyshev as Chebyshev
    from spectralgp.model.spectra import Exact as Exact
    from spectralgp.model.spectra import Spectrum as Spectrum
    from spectralgp.model.spectra import decompose as decompose

__version__ = "0.1.0"

_HOMES = {  # packages by the public names that are imported from them
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
    "learning": ("Sqp", "Stacking", "Task", "learn"),
    "model.likelihoods": ("Bernoulli", "Binomial", "Gaussian", "Likelihood", "NegativeBinomial", "Poisson", "StudentT"),
    "graphs.partitioned": ("PartitionedGraph",),
    "model.signals": ("Signals", "read_signals"),
    "model.spectra": ("Chebyshev", "Exact", "Spectrum", "decompose"),
}
__all__ = sorted(name for names in _HOMES.values() for name in names)


def __getattr__(name: str) -> Any:
    """Import a public name, or a package, on first use."""
    for home, names in _HOMES.items():
        if name in names:
            if home == "estimators":  # from deep inside the package the same import takes 0.2 s longer
                import sklearn.gaussian_process  # noqa: F401
            return globals().setdefault(name, getattr(import_module(f"{__name__}.{home}"), name))
    if not name.startswith("_") and find_spec(f"{__name__}.{name}") is not None:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Public names, for completion."""
    return sorted({*globals(), *__all__})
