"""Graphs: weights between nodes, their names and places, and the Laplacians made of them."""

from spectralgp.graph.core import Graph, LaplacianKind, as_graph

__all__ = ["Graph", "LaplacianKind", "as_graph"]
