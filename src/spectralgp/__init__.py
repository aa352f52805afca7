"""Gaussian processes on graphs that learn their own spectrum."""

from spectralgp.graph import Graph, as_graph

__version__ = "0.1.0"

__all__ = [
    "Graph",
    "as_graph",
]
