"""Graphs: weights between nodes, their names and places, and the Laplacians made of them."""

from spectralgp.graph.base import GraphBase
from spectralgp.graph.converters import as_graph, whole_graph
from spectralgp.graph.core import Graph
from spectralgp.graph.laplacians import LaplacianKind

__all__ = ["Graph", "GraphBase", "LaplacianKind", "as_graph", "whole_graph"]
