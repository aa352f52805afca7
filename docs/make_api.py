"""Write docs/api.md from the public names: python docs/make_api.py."""

from __future__ import annotations

import inspect
from pathlib import Path

import spectralgp
import spectralgp.datasets
import spectralgp.scores
import spectralgp.show.plots

HERE = Path(__file__).parent


def kinds_of(base: type) -> list[str]:
    """Public names of a class and of those that are kinds of it."""
    public = {name: getattr(spectralgp, name) for name in spectralgp.__all__}
    return [name for name, found in public.items() if inspect.isclass(found) and issubclass(found, base)]


SECTIONS = {
    "The estimators": ("spectralgp", ["GraphGPRegressor", "GraphGPForecaster", "GraphGPClassifier"]),
    "Graphs": (
        "spectralgp",
        ["Graph", "LearntGraph", "PartitionedGraph", "as_graph", "decompose", "Spectrum", "Chebyshev"],
    ),
    "Graph kernels": ("spectralgp", kinds_of(spectralgp.GraphKernel)),
    "Likelihoods": ("spectralgp", kinds_of(spectralgp.Likelihood)),
    "Solvers": ("spectralgp", ["Sqp", "Stacking"]),
    "Data sets": ("spectralgp.datasets", list(spectralgp.datasets.__all__)),
    "Plots": ("spectralgp.show.plots", [name for name in spectralgp.show.plots.__all__ if name.startswith("plot")]),
    "Scores": ("spectralgp.scores", list(spectralgp.scores.__all__)),
}


def page() -> str:
    """The page: a table of names per section, and the other names under "The parts"."""
    listed = {name for module, names in SECTIONS.values() if module == "spectralgp" for name in names}
    rest = [name for name in spectralgp.__all__ if name not in listed]
    parts = ["# API", "<!-- written by docs/make_api.py: do not edit -->"]
    for title, (module, names) in {**SECTIONS, "The parts": ("spectralgp", rest)}.items():
        lines = "\n".join(f"   {module}.{name}" for name in names)
        parts.append(f"## {title}\n\n```{{eval-rst}}\n.. autosummary::\n   :toctree: generated\n\n{lines}\n```")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    (HERE / "api.md").write_text(page(), encoding="utf-8")
