"""Graphs: weights between nodes, names and coordinates, and Laplacians."""

from spectralgp.graphs.converters import as_graph
from spectralgp.graphs.core import LAPLACIANS, Graph, GraphBase, LaplacianKind
from spectralgp.graphs.learnt import GraphParameters, LearntGraph, WeightFamily
