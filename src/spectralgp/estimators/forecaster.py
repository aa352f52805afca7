"""`GraphGPForecaster`: forecasts of time series on a graph, as a scikit-learn estimator."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from spectralgp._basics.arrays import as_generator
from spectralgp._basics.checks import Array, Indices, as_integer, as_option, as_positive, as_real_array
from spectralgp._basics.progress import progress_bar
from spectralgp._basics.tables import frame_names, like_table, match_columns, some
from spectralgp.estimators import reading, saving
from spectralgp.estimators.reading import MOST_EXACT, GraphEstimator, SignalFormat, matched_graph, read_values
from spectralgp.graphs import Graph
from spectralgp.model.spectra import decompose
from spectralgp.series import Component, clocks
from spectralgp.series import model as series
from spectralgp.series.backtests import Backtest
from spectralgp.series.model import SeriesModel, SeriesRows

CHOICES = ("residual", "drift", "components", "seasons", "calendar")  # parameters that are learnt with
FEWEST_STEPS = 8  # rows to learn from
N_IMPUTED_DRAWS = 64
MOST_SHOWN, LEAST_SHOWN = 4, 60  # rows before a forecast that a report shows, for each row of it, and at least
N_FREQUENCIES = 60  # at which a report shows time scales


class GraphGPForecaster(GraphEstimator):
    """Forecasts of series on a graph, with the graph's rates and powers learnt by frequency.

    Rows of `Y` are the graph at one time, one value per node: ``y_n = S [B x_n + sum_c V f_c(t_n) + h(L) e_n + noise]``
    has levels, seasons and exogenous columns with a coefficient per node, and at each frequency of the graph a sum of
    Matern processes and oscillators in time whose powers and rates are learnt functions of the frequency. `fit` learns
    it with one rate for all frequencies, with a rate for each, and with every node on its own, in time linear in the
    number of rows. It weighs these models by forecasts of the last two fifths of the rows from the rest, regresses
    errors on the last rows where that gained (drift), and widens intervals that were too narrow.

    Parameters
    ----------
    graph : Graph or anything `as_graph` takes, optional
        The graph on the columns of `Y`, of up to 5,000 nodes. Without one every node is on its own.
    components : "auto" or sequence of Component, default="auto"
        Terms of the sum: `MaternComponent` and `OscillatorComponent` of `spectralgp.series`. "auto" is a fast Matern
        process of 1/2 and a slow one of 3/2, one of 5/2 where the periodogram falls steeply, and an oscillator for each
        of its peaks that no season explains.
    seasons : "auto", float, sequence of float or None, default="auto"
        Periods in steps whose waves are in the mean. "auto" takes peaks of the periodogram, and seven times the
        strongest, as far as later rows are forecast better with them.
    calendar : "auto", sequence of {"day", "week", "year"} or None, default="auto"
        Natural seasons in the mean, by the local clock, where times are dates; "auto" tries those that repeat.
    residual : "auto" or None, default="auto"
        Filter of what neighbours share at one time and no other, or nothing but noise.
    drift : "auto" or None, default="auto"
        Regression of errors on the last three rows of all nodes, at horizons where it gained 5% in later rows. It
        knows directions, which no symmetric kernel does.
    verbose : int, default=0
        Show a progress bar while fitting.

    Attributes
    ----------
    graph_ : Graph
        The graph.
    model_ : SeriesModel
        Mean, ensemble and state after the last row, in the graph's order of the nodes.
    weights_ : dict of str to float
        Weights of the models in the mean.
    backtest_ : Backtest or None
        Scores of forecasts of the last two fifths of the rows, by models of the first three; None for few rows.
    innovations_ : ndarray of shape (n_steps, n_nodes)
        One-step forecast errors of the rows of `fit`, in standard deviations of the forecast: white if the model is
        right. The first row is NaN. Model files do not hold them.
    components_, seasons_ : tuple of Component, tuple of Season
        Terms of the sum, and seasons in the mean.
    drift_horizons_ : list of int
        Horizons, in rows, with a drift.
    n_steps_ : int
        Number of rows seen, by `fit` and `update`.
    n_features_in_, feature_names_in_ : int, ndarray of str
        Number and names of the columns of `X`, if there are any.

    Notes
    -----
    Missing values are integrated out by draws when the final models are learnt. For models that are only compared, up
    to a tenth of them is interpolated in time. Rows without any value are skipped; `update` conditions on rows with
    missing values exactly. Forecasts of past rows depend on no later ones; their uncertainty by missing values is exact
    to a thousandth of a standard deviation.

    Examples
    --------
    >>> import numpy as np
    >>> from spectralgp import Graph, GraphGPForecaster
    >>> ring = Graph.from_edges([(node, (node + 1) % 6) for node in range(6)])
    >>> rng = np.random.default_rng(0)
    >>> Y = np.zeros((200, 6))
    >>> for n in range(1, 200):
    ...     Y[n] = 0.8 * Y[n - 1] + rng.standard_normal(6)
    >>> model = GraphGPForecaster(ring).fit(Y[:190])
    >>> mean, std = model.predict(5, return_std=True)
    >>> mean.shape, bool((std[0] < std[-1]).all())
    ((5, 6), True)
    >>> model.update(Y[190:]).n_steps_
    200
    """

    _kind: ClassVar = "forecaster"  # in model files

    def __init__(
        self,
        graph: Any = None,
        components: Sequence[Component] | Literal["auto"] = "auto",
        seasons: float | Sequence[float] | Literal["auto"] | None = "auto",
        calendar: Sequence[str] | Literal["auto"] | None = "auto",
        residual: Literal["auto"] | None = "auto",
        drift: Literal["auto"] | None = "auto",
        *,
        verbose: int = 0,
    ) -> None:
        self.graph = graph
        self.components = components
        self.seasons = seasons
        self.calendar = calendar
        self.residual = residual
        self.drift = drift
        self.verbose = verbose

    @reading.fits
    def fit(self, Y: Any, X: Any = None) -> Self:
        """Learn from rows in time; the estimator is unchanged if an error is raised.

        Parameters
        ----------
        Y : array or table of shape (n_steps, n_nodes) or (n_steps,)
            Rows in time, NaN where nothing was observed. The index of a table (pandas, xarray), or its one column of
            dates (Polars, PyArrow), is the time: dates, with or without a time zone, or numbers; rows of an array are
            counted. Rows that are not in the order of time are sorted, with a warning. Columns are matched to the names
            of the graph's nodes.
        X : array or table of shape (n_steps, n_exogenous), optional
            Columns whose later values will be known, such as holidays or a weather forecast. Rows of a table are
            matched to those of `Y` by time, and may be more.
        """
        self._check_parameters()
        graph, clock, rows, order = self._read_training(Y, X)
        notes, choices = _notes(rows.values, self._form), {name: getattr(self, name) for name in CHOICES}
        with progress_bar("fit", None, self.verbose > 0):
            model, backtest = series.learn_series(graph, clock, rows, **choices, notes=notes)
        self.graph_, self.backtest_ = graph, None if backtest is None else self._in_order(backtest)
        self._show(model)
        self._past: tuple[SeriesRows, ...] | None = (rows,)
        self.innovations_ = self._form.to_user(series.innovations(model, rows)[np.argsort(order)])
        return self

    @property
    def _warnings(self) -> list[Warning]:
        copies = _copied_columns(series.joined(self._past or ()).values, self._form)
        text = f"Y has copies: {copies}. Leave all but one out, or joint densities say little."
        return [UserWarning(text)] if copies else []

    def _read_training(self, Y: Any, X: Any) -> tuple[Graph, clocks.Clock, SeriesRows, Indices]:
        """The graph, the clock, the rows of `fit` in time order, and that order; set the form of the data."""
        given = None if self.graph is None else reading.given_graph(self.graph)
        timed = clocks.timed_rows(Y, "Y", names=None if given is None else given.names)
        values, _ = read_values(timed.table, self, True)
        is_flat, n_rows = values.ndim == 1, len(values)
        values = values[:, None] if is_flat else values
        if n_rows < FEWEST_STEPS:
            raise ValueError(f"Y must have at least {FEWEST_STEPS} rows to learn from; got {n_rows}. Rows are times.")
        graph, names, columns = matched_graph(given, values.shape[1], frame_names(timed.table))
        graph = graph.require_whole("to forecast")
        if graph.n_nodes > MOST_EXACT:
            raise ValueError(f"graph must have up to {MOST_EXACT:,} nodes to forecast; got {graph.n_nodes:,}.")
        self._form = SignalFormat(names, columns, is_flat, reading.written_layout(timed.table))
        self._time_column = timed.column
        times = np.arange(float(n_rows)) if timed.times is None else timed.times  # counted, or given
        order, clock = clocks.order_of(times, "Y"), clocks.clock_of(times)
        reading.set_features(self, None)
        steps = clock.steps(times)
        rows = SeriesRows(steps, self._form.to_graph(values), self._exogenous(X, steps, clock)).part(order)
        empty = np.flatnonzero(~np.isfinite(rows.values).any(axis=0)).tolist()
        if empty:
            shown = some([self._form.node_name(node) for node in empty])
            raise ValueError(f"Y must have a value in every column; got none in {shown}. Leave these nodes out.")
        return graph, clock, rows, order

    def _check_parameters(self) -> None:
        for name in CHOICES:
            given = getattr(self, name)
            if isinstance(given, str) or (name in ("residual", "drift") and given is not None):
                as_option(given, name, ("auto",))
        parts = self.components
        is_listed = isinstance(parts, Sequence) and parts and all(isinstance(one, Component) for one in parts)
        if not isinstance(parts, str) and not is_listed:
            raise TypeError(
                "components must be 'auto' or a sequence of MaternComponent(...) and OscillatorComponent(...) of "
                f"spectralgp.series; got {parts!r}."
            )

    def _show(self, model: SeriesModel) -> None:
        """Set the learnt model and its attributes."""
        self.model_ = model
        self.n_steps_ = model.n_steps
        self.components_ = model.components
        self.seasons_ = model.mean.seasons
        self.drift_horizons_ = model.stack.drift_horizons
        self.scale_ = self._form.to_user(model.scales)
        members = zip(model.stack.members, model.stack.weights, strict=True)
        self.weights_ = {one.name: float(weight) for one, weight in members if weight}

    def _in_order(self, backtest: Backtest) -> Backtest:
        """A backtest in the user's order of the nodes."""
        turn = self._form.to_user
        own = {h: (turn(a), turn(b), turn(c)) for h, (a, b, c) in backtest.forecasts.items()}
        return replace(backtest, node_rmse=turn(backtest.node_rmse), forecasts=own)

    def _exogenous(self, X: Any, steps: Array, clock: clocks.Clock | None = None) -> Array | None:
        """Exogenous columns at steps, matched by time and by name, if there are any; `fit` passes its clock."""
        is_fit, clock = clock is not None, clock or self.model_.clock
        if X is None:
            if not is_fit and self.model_.mean.n_exogenous:
                raise ValueError(
                    f"X must be given, since the model was fitted with {self.model_.mean.n_exogenous} exogenous "
                    "columns; got None. Pass their values at the times asked for."
                )
            return None
        timed = clocks.timed_rows(X, "X")
        values = as_real_array(timed.table, "X", ("n_steps", "n_exogenous"), allow_nan=True)
        names = frame_names(timed.table)
        if is_fit:
            reading.set_features(self, values.shape[1], names)
        elif values.shape[1] != self.model_.mean.n_exogenous:
            raise ValueError(
                f"X must have {self.model_.mean.n_exogenous} columns, as at fit; got {values.shape[1]}. "
                "Pass the columns of fit."
            )
        elif names is not None and hasattr(self, "feature_names_in_"):
            own = tuple(self.feature_names_in_)
            values = values[:, match_columns(names, own, "X", of="column of fit")]
        places = clocks.places_in_time(timed, steps, clock, "X")
        if np.any(places < 0):
            when = some(list(clocks.time_labels(clock, steps[places < 0])))
            raise ValueError(f"X must have a row for each time; got none for {when}. Pass the columns at these times.")
        return as_real_array(values[places], "X", ("n_steps", "n_exogenous"))

    def _steps_of(self, horizon: Any) -> Array:
        """Steps after the last row of a fitted model: a number of them, or those of times."""
        check_is_fitted(self)
        model = self.model_
        if isinstance(horizon, int | np.integer) and not isinstance(horizon, bool):
            n_steps = as_integer(horizon, "horizon", 1)
            return model.last + np.arange(1.0, n_steps + 1)
        steps = model.clock.steps(clocks.as_times(horizon, "horizon"))
        if not steps.size or np.any(np.diff(steps) <= 0) or steps[0] <= model.last:
            raise ValueError(
                "horizon must be a number of steps, or times after the last row in increasing order; got times that "
                f"are not. The last row is at {self._last_time}."
            )
        return steps

    @property
    def _last_time(self) -> str:
        """The time of the last row, as people write it."""
        return clocks.time_labels(self.model_.clock, np.array([self.model_.last]))[0]

    def predict(
        self, horizon: Any = 1, return_std: bool = False, return_cov: bool = False, X: Any = None, observed: Any = None
    ) -> Any:
        """Forecast rows after the last one.

        Parameters
        ----------
        horizon : int or times, default=1
            How many steps, or at which times: numbers or dates as those of `fit`, increasing.
        return_std : bool, default=False
            Return standard deviations of the values as they will be observed too.
        return_cov : bool, default=False
            Return the covariance over the nodes at each time too.
        X : array or table of shape (n_times, n_exogenous), optional
            Exogenous columns at these times, if `fit` had any; matched by time and name as there.
        observed : array or table of shape (n_times, n_nodes), optional
            Values of these rows observed so far, NaN elsewhere: each row is forecast given these and rows before it.
            Rows of a table are matched by time, and may be fewer.

        Returns
        -------
        mean : array or table of shape (n_times, n_nodes)
            Of the kind of `Y` at `fit`, with the times as its index, or as `set_output` says.
        std : of the shape and kind of mean
            If `return_std`; zero where a value was observed.
        covariance : ndarray of shape (n_times, n_nodes, n_nodes)
            If `return_cov`.
        """
        if return_std and return_cov:
            raise ValueError("return_std and return_cov must not both be True; got both. Ask for the covariance alone.")
        steps = self._steps_of(horizon)
        exogenous = self._exogenous(X, steps)
        form = self._form
        if observed is None:
            ahead = self.model_.ahead(steps, exogenous)
            mean, variance = ahead.mean, ahead.variance
            covariances = np.array([ahead.covariance(place) for place in range(len(steps))] if return_cov else [])
        else:
            rows = SeriesRows(steps, self._observed(observed, steps), exogenous)
            mean, covariances = series.given_in_turn(self.model_, rows)
            variance = np.diagonal(covariances, axis1=1, axis2=2)

        def answered(values: Array) -> Any:
            own = form.to_user(values)
            return self._answer(own[:, 0] if form.is_flat else own, steps)

        if return_std:
            return answered(mean), answered(np.sqrt(variance))
        if return_cov:
            return answered(mean), form.to_user(covariances, 1, 2)
        return answered(mean)

    def _observed(self, observed: Any, steps: Array) -> Array:
        """Values known of the rows at steps, in the graph's order; NaN where there is none."""
        values, timed = self._read(observed, "observed")
        places = clocks.places_in_time(timed, steps, self.model_.clock, "observed")
        if np.sum(places >= 0) < len(values):
            asked = " to ".join(clocks.time_labels(self.model_.clock, steps[[0, -1]]))
            raise ValueError(
                f"observed must have rows at the times asked for, {asked}; got others. Leave these out, or ask for "
                "them by horizon."
            )
        return np.where(places[:, None] >= 0, values[places], np.nan)

    def _answer(self, values: Array, steps: Array | None) -> Any:
        """Values as the kind of table that was asked for, with the times of steps as its index or their old column."""
        layout, clock, labels = self._form.layout, self.model_.clock, None
        library = layout.library if self._output == "default" and layout is not None else self._output
        if steps is not None and library not in ("default", "numpy"):
            labels = clock.labels(steps)
            labels = _pandas_index(labels, clock) if library in ("pandas", "xarray") else labels
        table = self._form.answer(values, self._output, self._form.names, labels)
        column = self._time_column
        if column is None or isinstance(table, np.ndarray) or hasattr(table, "iloc") or labels is None:
            return table
        from narwhals.stable import v2 as nw

        frame = nw.from_native(table, pass_through=True)
        if not isinstance(frame, nw.DataFrame):
            return table
        zone = getattr(clock, "zone", None)
        made = nw.new_series(column, labels, nw.Datetime("us"), backend=frame.implementation)
        if zone is not None:
            made = made.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
        return frame.select(made, nw.all()).to_native()

    def _read(self, given: Any, argument: str) -> tuple[Array, clocks.TimedRows]:
        """Values of rows in the graph's order, and the rows with their times; a single one may be one-dimensional."""
        form, timed = self._form, clocks.timed_rows(given, argument, names=self._form.names)
        if np.ndim(timed.table) == 1 and not form.is_flat:
            timed = clocks.TimedRows(form.as_rows(timed.table), None)
        return form.in_graph(form.signals(timed.table, self.graph_.n_nodes, self, argument)), timed

    def _rows(
        self, Y: Any, X: Any = None, may_be_past: bool = False, has_exogenous: bool = True
    ) -> tuple[SeriesRows, Indices, clocks.TimedRows]:
        """The user's rows in time order, that order, and the table that they were.

        Rows of arrays follow the last one; if they may be past, an array of all rows seen is taken for those.
        """
        check_is_fitted(self)
        model, (values, timed) = self.model_, self._read(Y, "Y")
        n_rows, times = len(values), timed.times
        if times is None or (timed.is_counted and not isinstance(model.clock, clocks.NumericClock)):
            # counted: by an array, or by the row numbers that a table has where there are no dates
            is_past = may_be_past and times is None and n_rows == model.n_steps
            order, steps = np.arange(n_rows), model.last + np.arange(1.0, n_rows + 1) - (n_rows if is_past else 0)
        else:
            order, steps = clocks.order_of(times, "Y"), model.clock.steps(times)
        exogenous = self._exogenous(X, steps) if has_exogenous else None
        return SeriesRows(steps, values, exogenous).part(order), order, timed

    def is_later(self, Y: Any) -> NDArray[np.bool_]:
        """Mask of the rows of a table with times that are after the last one, which `update` accepts."""
        check_is_fitted(self)
        times = clocks.timed_rows(Y, "Y", names=self._form.names).times
        if times is None:
            return np.ones(len(Y), dtype=bool)
        return np.asarray(self.model_.clock.steps(times) > self.model_.last)

    def update(self, Y: Any, X: Any = None) -> Self:
        """Condition on rows after the last one, exactly; hyperparameters stay.

        Missing values stay uncertain, and rows without any value are skipped. `Y` and `X` are those of `fit`;
        rows of an array are the next steps. It warns of values further than 20 forecast deviations from their forecast
        before these rows, and of a gap of more than 24 steps and twice the longest one seen.
        """
        rows, _, _ = self._rows(Y, X)
        if rows.steps[0] <= self.model_.last:
            raise ValueError(f"Y must have rows after the last one, at {self._last_time}; got earlier ones. Drop them.")
        names = self._form.names_of(self.graph_.n_nodes)
        for warning in series.update_warnings(self.model_, rows, self._past or (), names):
            warnings.warn(warning, stacklevel=2)
        self._show(self.model_.updated(rows))
        self._past = None if self._past is None else (*self._past, rows)  # joined when they are asked for
        return self

    def impute(self, Y: Any, X: Any = None) -> tuple[Any, Any]:
        """Impute missing values, given all rows before and after them.

        Parameters
        ----------
        Y, X : array or table
            Rows of `fit`, later ones, or both; NaN where nothing was observed. An array of the same number of
            rows as the model has seen is taken for those.

        Returns
        -------
        completed : of the shape and kind of Y, or as `set_output` says
            Observed values, and the conditional mean of missing ones, by the graph's model of largest weight.
        std : of the shape and kind of completed
            Standard deviation of the values as they would be observed, by 64 draws; zero where they were.
        """
        rows, order, timed = self._rows(Y, X, may_be_past=True)
        n_rows = len(rows.steps)
        if self._past is not None and rows.steps[0] > self.model_.last:
            rows = series.joined([*self._past, rows])
        found = series.imputed(self.model_, rows, N_IMPUTED_DRAWS)
        values, variances = (one[-n_rows:][np.argsort(order)] for one in found)
        return self._like(values, timed), self._like(np.sqrt(variances), timed)

    def _like(self, values: Array, timed: clocks.TimedRows) -> Any:
        """Values in the graph's order as a table or array such as was given, with its columns and its times."""
        own = self._form.shaped_as(values, timed.table)
        if self._output != "default" or timed.column is not None:
            return self._answer(own, None if timed.times is None else self.model_.clock.steps(timed.times))
        return like_table(own, timed.table)

    def sample_y(self, horizon: Any = 1, n_samples: int = 1, random_state: Any = 0, X: Any = None) -> Array:
        """Draw paths of rows after the last one: shape (n_times, n_nodes, n_samples), as in scikit-learn.

        `horizon` and `X` are those of `predict`. Rows of a path depend on each other as in the model whose correlations
        of nodes are taken.
        """
        steps = self._steps_of(horizon)
        ahead = self.model_.ahead(steps, self._exogenous(X, steps))
        drawn = series.paths(ahead, as_integer(n_samples, "n_samples", 1), as_generator(random_state))
        return np.asarray(self._form.samples(drawn))

    def log_predictive_density(self, Y: Any, X: Any = None, joint: bool = True) -> Any:
        """Log density of the next rows: one total in nats or, unless `joint`, that of each row given those before it.

        Values that are NaN are left out.
        """
        rows, order, _ = self._rows(Y, X)
        densities = series.one_step(self.model_, rows)[2]
        return float(np.sum(densities)) if joint else densities[np.argsort(order)]

    def anomaly_scores(self, Y: Any = None, X: Any = None, by: Literal["node", "step"] = "node") -> Array:
        """One-step forecast errors of rows in standard deviations.

        Parameters
        ----------
        Y, X : array or table, optional
            The next rows, as in `update`, which are not taken in. Those of `fit` if not given.
        by : {"node", "step"}, default="node"
            A score per value, shape (n_steps, n_nodes), with the sign of the error; or one per row, shape (n_steps,):
            the root mean square of its errors, decorrelated, which is near one for a usual row.
        """
        check_is_fitted(self)
        as_option(by, "by", ("node", "step"))
        if Y is None:
            if not hasattr(self, "innovations_"):
                raise AttributeError("innovations of fit are not in model files; pass the next rows as Y.")
            if by == "node":
                return self.innovations_.copy()
            correlation = self.model_.ahead(np.array([self.model_.last + 1.0])).correlation(0)
            scaled = self._form.in_graph(self.innovations_)
            return series.scored_rows(correlation, scaled, np.ones(scaled.shape))[0]
        rows, order, _ = self._rows(Y, X)
        scaled, distances, _ = series.one_step(self.model_, rows)
        return np.asarray(self._form.to_user(scaled) if by == "node" else distances)[np.argsort(order)]

    def backtest(self, Y: Any = None, horizons: Sequence[int] = (1, 6, 24), X: Any = None) -> Backtest:
        """Score forecasts from rolling origins by horizon, with persistence and the seasonal naive forecast.

        Parameters
        ----------
        Y, X : array or table, optional
            Rows after the last one; hyperparameters stay, and so does the model's state. A table with times may
            begin earlier: rows up to the last one start the filters. By default,
            the last two fifths of the rows of `fit`, by models of the first three: `backtest_`, at its own horizons.
        horizons : sequence of int, default=(1, 6, 24)
            Rows ahead.
        """
        check_is_fitted(self)
        if Y is None:
            if self.backtest_ is None:
                raise ValueError("Y must be given where fit had too few rows for a backtest of its own; got None.")
            return self.backtest_
        ahead = np.array(sorted({as_integer(one, "horizons", 1) for one in horizons}), dtype=np.intp)
        rows, _, _ = self._rows(Y, X)
        model = self.model_
        if len(rows.steps) < 2:
            raise ValueError(f"Y must have at least two rows; got {len(rows.steps)}.")
        ahead = ahead[ahead < len(rows.steps)]
        if rows.steps[0] > model.last and self._past is not None:
            rows = series.joined([*self._past, rows])
        n_rows, how = len(rows.steps), "rows after those seen"
        first = int(np.searchsorted(rows.steps, model.last, side="right")) - 1
        if first == n_rows - 1:
            first, how = int(0.6 * n_rows), "rows that the model has seen"
        ahead = ahead[first + ahead < n_rows]
        if not ahead.size:
            raise ValueError(f"horizons must have one of which there is a row to forecast; got {tuple(horizons)}.")
        if first < 0:  # a model from a file, which holds no rows
            return self._in_order(series.backtested_after(model, rows, ahead))
        return self._in_order(series.backtested(model, rows, first, ahead, how))

    def response(
        self, eigenvalues: ArrayLike | None = None, return_std: bool = False, which: Literal["power", "rate"] = "power"
    ) -> tuple[Array, ...]:
        """Learnt powers or rates of the components by frequency of the graph, in the graph's model of largest weight.

        Parameters
        ----------
        eigenvalues : array of shape (n,), optional
            Of the Laplacian over its largest, between 0 and 1; those of the graph if not given.
        return_std : bool, default=False
            Return standard deviations by the curvature of the posterior too.
        which : {"power", "rate"}, default="power"
            Variances in units of nodes, or rates per step.

        Returns
        -------
        eigenvalues : ndarray of shape (n,)
        values : ndarray of shape (n_components, n)
            By component that is not idle: `component_names_`.
        std : ndarray of shape (n_components, n)
            If `return_std`.
        """
        check_is_fitted(self)
        as_option(which, "which", ("power", "rate"))
        fit = self.model_.stack.heaviest.fit
        if fit is None:
            raise ValueError("the model must have one of the graph for a response; got nodes on their own alone.")
        points = decompose(self.graph_, fit.kernel.laplacian, scaled=True).eigenvalues
        if eigenvalues is not None:
            points = as_real_array(eigenvalues, "eigenvalues", ("n",))
            if np.any((points < 0) | (points > 1)):
                raise ValueError(f"eigenvalues must lie between 0 and 1; got {points.min():g} to {points.max():g}.")
        space, place = fit.kernel.space(points, fit.noise_variance), 0 if which == "power" else 1
        values = (space.powers, space.rates)[place]
        return (points, values, values * fit.bands(points)[place]) if return_std else (points, values)

    @property
    def component_names_(self) -> tuple[str, ...]:
        """Components of `response`, in words."""
        check_is_fitted(self)
        fit = self.model_.stack.heaviest.fit
        return tuple(map(series.component_words, self.components_ if fit is None else fit.kernel.components))

    def times_ahead(self, horizon: Any = 1) -> Any:
        """Times of the next rows: numbers, or dates as a pandas index or, without pandas, as NumPy's of UTC."""
        steps = self._steps_of(horizon)
        labels = self.model_.clock.labels(steps)
        if labels.dtype.kind != "M" or find_spec("pandas") is None:
            return labels
        return _pandas_index(labels, self.model_.clock)

    def transfer(self, graph: Any) -> Self:
        """The learnt model of the graph on another graph: its powers and rates by frequency, and no rows.

        The model of largest weight on the graph moves; nodes on their own, drift, seasons and correlations of errors
        do not. Nodes have a common level and scale until `update` is given rows of that graph, in old units of time.

        Raises
        ------
        ValueError
            If no model of the graph has a weight.
        """
        check_is_fitted(self)
        other = reading.given_graph(graph).require_whole("to forecast")
        fresh = copy.copy(self)
        fresh.graph = graph
        fresh._form = replace(self._form.on(other), is_flat=False)
        fresh.graph_, fresh.backtest_, fresh._past = other, None, None
        fresh.__dict__.pop("innovations_", None)
        fresh._show(series.on_another_graph(self.model_, other))
        return fresh

    def report(
        self,
        path: str | PathLike[str],
        Y: Any = None,
        X: Any = None,
        *,
        horizon: int = 24,
        title: str | None = None,
        aspect: float | Literal["equal"] = "equal",
    ) -> Path:
        """Write a report of the forecasts and their accuracy: one HTML file that needs no network.

        First come errors by horizon, compared with naive forecasts, coverage of intervals and the worst nodes; then a
        map of the forecast, a node's past with its forecast, scores and calibration by horizon, what neighbours share,
        time scales by frequency and the certificate. It takes plotly: ``pip install 'spectralgp[report]'``.

        Parameters
        ----------
        path, title, aspect
            As in `GraphGPRegressor.report`.
        Y : array or table of shape (n_steps, n_nodes), optional
            Rows to show, by default those of `fit` and `update`, which an array of as many rows is taken for. Rows
            after the last one are shown with the forecast, and score it if there are two and no exogenous columns.
        X : array or table, optional
            Exogenous columns of the rows of the forecast, if `fit` had any.
        horizon : int, default=24
            Number of steps of the forecast; no more than the later rows, where `Y` has some.
        """
        from spectralgp.show.curves import component_curves
        from spectralgp.show.report.numbers import SeriesReport, forecast_predictions, imputed_only
        from spectralgp.show.report.page import write_page
        from spectralgp.show.report.words import count

        check_is_fitted(self)
        stretch = 1.0 if aspect == "equal" else as_positive(aspect, "aspect")
        n_ahead, model, n_nodes = as_integer(horizon, "horizon", 1), self.model_, self.graph_.n_nodes
        rows = series.joined([SeriesRows(np.empty(0), np.empty((0, n_nodes)), None), *(self._past or ())])
        backtest = self.backtest_
        if Y is not None:
            rows, _, _ = self._rows(Y, may_be_past=True, has_exogenous=False)
            if np.sum(rows.steps > model.last) > 1 and not model.mean.n_exogenous:
                backtest = self.backtest(Y)
        is_past = rows.steps <= model.last
        n_shown = max(MOST_SHOWN * n_ahead, LEAST_SHOWN)
        past, later = rows.part(np.flatnonzero(is_past)[-n_shown:]), rows.part(np.flatnonzero(~is_past)[:n_ahead])
        steps = later.steps if len(later.steps) else self._steps_of(n_ahead)
        came = later.values if len(later.steps) else np.full((n_ahead, n_nodes), np.nan)
        ahead = model.ahead(steps, self._exogenous(X, steps))
        filled = None
        if np.isnan(past.values).any() and (past.exogenous is not None or not model.mean.n_exogenous):
            filled = imputed_only(past.values, *series.imputed(model, past, N_IMPUTED_DRAWS))
        labels = clocks.time_labels(model.clock, np.concatenate([past.steps, steps]))
        shown = forecast_predictions(labels, past.values, came, ahead.mean, np.sqrt(ahead.variance), filled)
        if backtest is not None:
            backtest = replace(backtest, node_rmse=self._form.in_graph(backtest.node_rmse))
        points, on_graph = np.linspace(0.0, 1.0, N_FREQUENCIES), model.stack.heaviest.fit is not None
        times, powers = (component_curves(self, which, points) if on_graph else () for which in ("rate", "power"))
        names = tuple(self._form.names_of(n_nodes))
        numbers = SeriesReport(self.graph_, names, shown, model, backtest, times, powers)
        heading = f"Forecasts on a graph of {count(n_nodes, 'node')}" if title is None else title
        return write_page(path, numbers, heading, stretch)

    save = saving.save

    def summary(self) -> str:
        """Summary in words: the mean, the models and their weights, and the backtest."""
        check_is_fitted(self)
        return series.summary_of(self.model_, self.backtest_, self.graph_)


def _pandas_index(labels: Any, clock: clocks.Clock) -> Any:
    """Times as an index of pandas, in the zone of `fit`."""
    import pandas

    if labels.dtype.kind != "M":
        whole = np.all(labels == np.round(labels))
        return pandas.Index(labels.astype(np.int64) if whole else labels)
    index, zone = pandas.DatetimeIndex(labels), getattr(clock, "zone", None)
    return index if zone is None else index.tz_localize("UTC").tz_convert(zone)


def _notes(values: Array, form: SignalFormat) -> tuple[str, ...]:
    """Notes about rows for the summary."""
    notes = []
    observed = np.isfinite(values)
    empty = ~observed.any(axis=1)
    n_missing = int((~observed[~empty]).sum())
    if empty.any():
        notes.append(f"{int(empty.sum())} rows without any value are skipped")
    if n_missing:
        share = n_missing / observed.size
        notes.append(f"{n_missing} missing values ({share:.1%}) were imputed from the rest")
    copies = _copied_columns(values, form)
    return (*notes, f"{copies}: joint densities say little") if copies else tuple(notes)


def _copied_columns(values: Array, form: SignalFormat) -> str:
    """Description of the first columns of rows that hold the same values; empty if there are none."""
    alike: dict[bytes, list[int]] = {}
    for node, column in enumerate(values.T):
        alike.setdefault((column + 0.0).tobytes(), []).append(node)  # which makes one zero of two
    copied = [nodes for nodes in alike.values() if len(nodes) > 1]
    if not copied:
        return ""
    names, n_copies = some([form.node_name(node) for node in copied[0]]), sum(len(nodes) - 1 for nodes in copied)
    return f"columns {names} hold the same values ({n_copies} copies in all)"
