"""Alignment of exposures, covariates and the like with signals, by row labels and names of nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spectralgp._basics.checks import Array, Indices, as_real_array
from spectralgp._basics.tables import Table, as_table, is_counted, match_columns, match_rows
from spectralgp.estimators.reading import SignalFormat
from spectralgp.graphs.weights import is_range

Order = Indices | slice


@dataclass(frozen=True, eq=False)
class Alignment:
    """Rows and nodes of signals, to which tables are matched by label and name, and arrays by position."""

    form: SignalFormat
    n_rows: int
    n_nodes: int
    index: Any = None  # labels of the rows, if any

    def entries(self, given: Any, argument: str) -> Array:
        """One number per entry, shape (n_rows, n_nodes), nodes in the graph's order; NaN for missing ones.

        `given` is one number, one per node, or a table or array such as the signals.
        """
        table = self.form.table(given, argument)
        index, names = (table.index, table.names) if isinstance(table, Table) else (None, None)
        values = as_real_array(table, argument, None, allow_nan=True)
        if self.form.is_flat and values.shape == (self.n_rows,):
            values = values[self.row_order(index, argument), None]
        elif values.shape == (self.n_nodes,):
            values = values[self.node_order(index, argument, "value")]
        elif values.shape == (self.n_rows, self.n_nodes):
            values = values[self.row_order(index, argument)][:, self.node_order(names, argument, "column")]
        elif values.shape:
            # errors of names are clearer than those of sizes
            self.node_order(index if values.ndim == 1 else names, argument, "value" if values.ndim == 1 else "column")
            raise ValueError(
                f"{argument} must be one number, one for each of the {self.n_nodes} nodes, or have the shape of the "
                f"signals, ({self.n_rows}, {self.n_nodes}); got shape {values.shape}. Rows are signals."
            )
        return np.asarray(self.form.to_graph(np.array(np.broadcast_to(values, (self.n_rows, self.n_nodes)))))

    def rows(self, given: Any, argument: str) -> Array:
        """One number per row, shape (n_rows,)."""
        table = as_table(given, argument)
        values = as_real_array(table, argument, ("n_rows",), sizes={"n_rows": self.n_rows})
        return values[self.row_order(table.index if isinstance(table, Table) else None, argument)]

    def node_order(self, names: Any, argument: str, item: str) -> Order:
        """Positions, among the names of a table, of the nodes in the user's order."""
        own = tuple(range(self.n_nodes)) if self.form.names is None else self.form.names
        if is_counted(names) or (is_range(names) and not is_range(own)):
            return slice(None)
        return match_columns(tuple(names), own, argument, item)

    def row_order(self, index: Any, argument: str) -> Order:
        """Positions, among the labels of a table, of the rows."""
        return match_rows(index, self.index, argument)
