"""Graphs: weights between nodes, their names and places, and the Laplacians made of them."""

from spectralgp.graphs.base import GraphBase
from spectralgp.graphs.converters import as_graph, whole_graph
from spectralgp.graphs.core import Graph
from spectralgp.graphs.laplacians import LaplacianKind

__all__ = ["Graph", "GraphBase", "LaplacianKind", "as_graph", "whole_graph"]
