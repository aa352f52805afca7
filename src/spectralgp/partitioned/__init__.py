"""Graphs as folders of partitions, never whole in memory."""
