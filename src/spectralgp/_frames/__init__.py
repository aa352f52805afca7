"""Tables from outside, whatever library they come from: read, matched by name, and written again.

Libraries are reached through narwhals, which is loaded where a table is met; arrays of xarray are read beside it.
"""

from spectralgp._frames.matching import check_same_order, frame_index, frame_names, match_columns, series_index, some
from spectralgp._frames.reading import Layout, Table, as_table, is_data_array
from spectralgp._frames.writing import LIBRARIES, WRITTEN, like_table, written

__all__ = [
    "LIBRARIES",
    "WRITTEN",
    "Layout",
    "Table",
    "as_table",
    "check_same_order",
    "frame_index",
    "frame_names",
    "is_data_array",
    "like_table",
    "match_columns",
    "series_index",
    "some",
    "written",
]
