"""What an estimator tells of itself in a report."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from spectralgp._basics.arrays import on_host
from spectralgp._basics.checks import Array, as_positive
from spectralgp._basics.tables import check_same_order, frame_index
from spectralgp.estimators._base import GraphGPEstimator


class ReportingMixin(GraphGPEstimator):
    """Reports."""

    def report(
        self,
        path: str | PathLike[str],
        X: Any = None,
        Y: Any = None,
        *,
        title: str | None = None,
        aspect: float | Literal["equal"] = "equal",
    ) -> Path:
        """Write a report of what was learnt and how well it predicts: one HTML file that needs no network.

        It shows the learnt filters over the spectrum, a map of the graph with data, predictions, uncertainties and
        residuals, predictions against truth, calibration, the models that were compared and the certificate, and says
        in words what was learnt and what to watch out for.

        Parameters
        ----------
        path : path
            The file to write. One of that name is replaced, whole or not at all.
        X : array or table of shape (n_inputs, n_features), optional
            Inputs of held-out signals; None where the model was fitted without inputs.
        Y : array or table of shape (n_inputs, n_nodes), optional
            Held-out signals to judge predictions by, NaN where nothing was observed. If not given, each training signal
            is predicted from all others by leave-one-out; on a large graph where signals have holes, which leaves no
            closed form, by the fit itself, and the report says so.
        title : str, optional
            The heading.
        aspect : float or "equal", default="equal"
            How much longer one unit upwards is drawn than one unit sideways on the map. For longitudes and latitudes
            pass ``1 / cos(latitude)``.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        ImportError
            If plotly is not installed: ``pip install 'spectralgp[report]'``.
        ValueError
            If `X` is given without `Y`, or nothing was observed.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> from spectralgp import Graph, GraphGPRegressor, Polynomial
        >>> ring = Graph.from_edges([(node, (node + 1) % 10) for node in range(10)])
        >>> X = np.arange(20.0)[:, None]
        >>> Y = np.sin(X / 4 + np.arange(10) * 0.6) + 0.1 * np.random.default_rng(0).standard_normal((20, 10))
        >>> model = GraphGPRegressor(ring, Polynomial(2)).fit(X, Y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = model.report(f"{folder}/report.html")
        ...     path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
        True
        """
        from spectralgp.report import gather, write_page

        check_is_fitted(self)
        self.graph_.require_whole("for a report")
        if X is not None and Y is None:
            raise ValueError(
                "Y must be given with X, the signals observed there; got X alone. Pass both, or neither to report on "
                "the training signals."
            )
        stretch = 1.0 if aspect == "equal" else as_positive(aspect, "aspect")
        names = [f"node {node}" for node in range(self.graph_.n_nodes)]
        if self._order.names is not None:
            own = [str(name) for name in self._order.names]
            columns = self._order.columns
            names = own if columns is None else [own[column] for column in columns.tolist()]
        held_out = None if Y is None else self._held_out(X, Y)
        numbers = gather(self, self._learnt, names, self._kept, held_out)
        plural = "" if self.graph_.n_nodes == 1 else "s"
        heading = f"Signals on a graph of {self.graph_.n_nodes:,} node{plural}" if title is None else title
        return write_page(path, numbers, heading, stretch)

    def _held_out(self, X: Any, Y: Any) -> tuple[list[str], Array, Array, Array]:
        """Labels, signals, means and deviations of new signals, in the graph's order of the nodes."""
        X, Y = self._inputs_table(X), self._signals_table(Y)
        check_same_order(X, Y)
        observed = np.asarray(on_host(self._order.to_graph(self._observed(Y))), dtype=float)
        prediction = self._prediction(np.empty((len(observed), 0)) if X is None else X)
        mean, std = (np.asarray(on_host(one), dtype=float) for one in (prediction.mean, prediction.std(True)))
        index = frame_index(Y)
        labels = (
            [f"row {row}" for row in range(len(observed))]
            if index is None
            else [str(label).removesuffix(" 00:00:00") for label in index]
        )
        return labels, observed, mean, std
