"""In what kind of tables an estimator answers, and how it reads those that it is given."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from spectralgp._basics.arrays import on_host
from spectralgp._basics.checks import as_option
from spectralgp._basics.tables import LIBRARIES, Layout, as_table, frame_index, written
from spectralgp.estimators._reading import NodeOrder

OUTPUTS = ("default", "numpy", *LIBRARIES)
Output = Literal["default", "numpy", "pandas", "polars", "pyarrow", "xarray"]


class OutputMixin(BaseEstimator):
    """Tables in, tables out."""

    _order: NodeOrder
    _flat: bool
    _layout: Layout | None  # of Y at fit; None for arrays

    def set_output(self, *, predict: Output | None = None) -> Self:
        """Choose the kind of table that `predict` and `impute` answer with.

        Parameters
        ----------
        predict : {"default", "numpy", "pandas", "polars", "pyarrow", "xarray"}, optional
            "default" is what came in: `predict` answers as the `Y` of `fit` was, `impute` as its own `Y` is, and arrays
            are answered with arrays. Else all answers are of that kind. None leaves the choice as it is.

        Returns
        -------
        self
            The choice is kept by `clone`, so in cross-validation and pipelines, and in model files.

        Notes
        -----
        Columns have the names of the nodes. Rows have the labels of `X` where it has any (pandas, xarray) and the
        library knows such; no column of times is made up. Covariances and samples are arrays whatever the choice.

        Examples
        --------
        >>> import numpy as np
        >>> from spectralgp import Graph, GraphGPRegressor, Polynomial
        >>> path = Graph.from_edges([("a", "b"), ("b", "c")])
        >>> X, Y = np.arange(6.0)[:, None], np.random.default_rng(0).standard_normal((6, 3))
        >>> model = GraphGPRegressor(path, Polynomial(1)).fit(X, Y).set_output(predict="polars")
        >>> model.predict(X).columns
        ['a', 'b', 'c']
        """
        if predict is not None:
            # the attribute that scikit-learn's clone keeps for its own set_output
            self._sklearn_output_config = {"predict": as_option(predict, "predict", OUTPUTS)}
        return self

    @property
    def node_names_(self) -> tuple[Hashable, ...] | None:
        """Names of the nodes in the order of the columns of `Y` at `fit`; None if neither it nor the graph has any."""
        check_is_fitted(self)
        return self._order.names

    @property
    def _output(self) -> str:
        chosen: dict[str, str] = getattr(self, "_sklearn_output_config", {})
        return chosen.get("predict", "default")

    def _signals_table(self, Y: Any, argument: str = "Y") -> Any:
        """Signals as a `Table` if they are one."""
        rows = None if self._layout is None or self._layout.dims is None else self._layout.dims[0]
        return as_table(Y, argument, names=self._order.names, rows=rows)

    def _inputs_table(self, X: Any) -> Any:
        """Inputs as a `Table` if they are one; dimensions of xarray are told apart by that of the signals."""
        rows = None if self._layout is None or self._layout.dims is None else self._layout.dims[0]
        return as_table(X, "X", rows=rows)

    def _answered(
        self, values: Any, names: Sequence[Hashable] | None, labels: Any, default: Layout | None = None
    ) -> Any:
        """Values in the user's order as the kind of table that was asked for; arrays as they are by default."""
        if self._output == "numpy":
            return np.asarray(on_host(values))
        layout = default if self._output == "default" else Layout(self._output)
        if self._output == "xarray" and default is not None and default.library == "xarray":
            layout = default
        return values if layout is None else written(values, layout, names, labels)


def labels_of(*tables: Any) -> Any:
    """Row labels of the first table that has any."""
    return next((index for index in map(frame_index, tables) if index is not None), None)
