"""Reading graphs, signals and inputs from files; every error names the file, and where in it."""

from spectralgp.reading.graphs import SUFFIXES, graph_from_file, graph_from_points, with_points
from spectralgp.reading.inputs import clock_of, inputs_from_file, lagged, time_inputs
from spectralgp.reading.labels import index_of, parsed_index, times_of
from spectralgp.reading.signals import signals_from_file
from spectralgp.reading.tables import Table, read_table
from spectralgp.reading.writing import write_tables

__all__ = [
    "SUFFIXES",
    "Table",
    "clock_of",
    "graph_from_file",
    "graph_from_points",
    "index_of",
    "inputs_from_file",
    "lagged",
    "parsed_index",
    "read_table",
    "signals_from_file",
    "time_inputs",
    "times_of",
    "with_points",
    "write_tables",
]
