"""Gaussian processes on graphs that learn their own spectrum.

Names are imported on first use, so that a program that needs few of them starts quickly.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # "as" says that a name is public
    from spectralgp.estimators import *  # noqa: F403
    from spectralgp.graphs import Graph as Graph
    from spectralgp.graphs import LearntGraph as LearntGraph
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
    from spectralgp.model.kernels import GraphKernel as GraphKernel
    from spectralgp.model.kernels import Polynomial as Polynomial
    from spectralgp.model.kernels import SpectralKernel as SpectralKernel
    from spectralgp.model.kernels import WithResidual as WithResidual
    from spectralgp.model.kernels.named import *  # noqa: F403
    from spectralgp.model.likelihoods import Likelihood as Likelihood
    from spectralgp.model.likelihoods.kinds import *  # noqa: F403
    from spectralgp.model.signals import Signals as Signals
    from spectralgp.model.signals import read_signals as read_signals
    from spectralgp.model.spectra import Chebyshev as Chebyshev
    from spectralgp.model.spectra import Exact as Exact
    from spectralgp.model.spectra import Spectrum as Spectrum
    from spectralgp.model.spectra import decompose as decompose

__version__ = "0.1.0"

_HOMES = {  # packages by the public names that are imported from them
    "estimators": "GraphGPClassifier GraphGPForecaster GraphGPRegressor load",
    "model.fields": "GraphGP condition condition_shrunk graph_gp leave_one_out log_marginal_likelihood",
    "graphs": "Graph LearntGraph as_graph",
    "model.kernels": "GraphKernel Polynomial SpectralKernel WithResidual",
    "learning": "Sqp Stacking Task learn",
    "model.likelihoods": "Likelihood",
    "graphs.partitioned": "PartitionedGraph",
    "model.signals": "Signals read_signals",
    "model.spectra": "Chebyshev Exact Spectrum decompose",
}
_KINDS = {"model.kernels.named": "GraphKernel", "model.likelihoods.kinds": "Likelihood"}  # of these all are public


def _kinds() -> dict[str, type]:
    """Kernels and likelihoods: public by being defined in their modules."""
    from spectralgp._basics.saved import kinds_of

    homes = {f"{__name__}.{home}": base for home, base in _KINDS.items()}
    bases = [getattr(import_module(home), base) for home, base in homes.items()]
    return {kind.__name__: kind for base in bases for kind in kinds_of(base) if kind.__module__ in homes}


def __getattr__(name: str) -> Any:
    """Import a public name, or a package, on first use."""
    if name == "__all__":
        return sorted({*" ".join(_HOMES.values()).split(), *_kinds()})
    for home, names in _HOMES.items():
        if name in names.split():
            if home == "estimators":  # from deep inside the package the same import takes 0.2 s longer
                import sklearn.gaussian_process  # noqa: F401
            return globals().setdefault(name, getattr(import_module(f"{__name__}.{home}"), name))
    if not name.startswith("_"):
        if find_spec(f"{__name__}.{name}") is not None:
            return import_module(f"{__name__}.{name}")
        if name in (kinds := _kinds()):
            return globals().setdefault(name, kinds[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Public names, for completion."""
    return sorted({*globals(), *__getattr__("__all__")})
