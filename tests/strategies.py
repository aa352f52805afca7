"""Hypothesis strategies for graphs: weighted, disconnected, with isolated nodes or repeated eigenvalues."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from spectralgp.graphs import Graph


@st.composite
def adjacencies(draw, min_nodes=1, max_nodes=8):
    """Dense symmetric weights; many entries are zero, so isolated nodes and several components are common."""
    n_nodes = draw(st.integers(min_nodes, max_nodes))
    n_pairs = n_nodes * (n_nodes - 1) // 2
    # few distinct weights make repeated eigenvalues likely; the spread of the others is moderate on purpose
    weight = st.one_of(st.sampled_from([0.0, 0.0, 1.0, 2.0]), st.floats(1e-3, 1e3))
    values = draw(hnp.arrays(np.float64, n_pairs, elements=weight, fill=st.nothing()))
    dense = np.zeros((n_nodes, n_nodes))
    dense[np.triu_indices(n_nodes, k=1)] = values
    return dense + dense.T


def graphs(min_nodes=1, max_nodes=8):
    """Graphs on the weights of `adjacencies`."""
    return adjacencies(min_nodes, max_nodes).map(Graph)


@st.composite
def graphs_and_permutations(draw, min_nodes=1, max_nodes=8):
    """A graph and a relabelling of its nodes."""
    graph = draw(graphs(min_nodes, max_nodes))
    return graph, np.array(draw(st.permutations(range(graph.n_nodes))), dtype=int)
