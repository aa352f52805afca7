"""Graphs: weights between nodes, their names and places, and the Laplacians made of them."""

from spectralgp.graphs.converters import as_graph
from spectralgp.graphs.core import LAPLACIANS, Graph, GraphBase, LaplacianKind
