"""Graphs as folders of partitions, never whole in memory."""

from spectralgp.graphs.partitioned.graph import PartitionedGraph

__all__ = ["PartitionedGraph"]
