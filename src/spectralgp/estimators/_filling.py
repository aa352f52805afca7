"""What an estimator does with signals that are known in part, with more signals, and on another graph."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from spectralgp._basics.arrays import on_host
from spectralgp._basics.checks import Array, Indices
from spectralgp._basics.tables import check_same_order, frame_index, frame_names, like_table, match_columns
from spectralgp.estimators._base import GraphGPEstimator
from spectralgp.estimators._reading import NodeOrder, as_any_graph
from spectralgp.fields import Predictive
from spectralgp.learning import Draws
from spectralgp.learning.fitting import FittedModels
from spectralgp.learning.objective import told_apart
from spectralgp.signals import no_signals, read_in
from spectralgp.signals.units import Units

SAME = 64 * np.finfo(float).eps  # of the size of a node, by which scaling and scaling back may change its values
A_FEW = 8  # nodes by which signals are told apart first


class FillingMixin(GraphGPEstimator):
    """Filling in, going on with more signals, and moving to another graph."""

    def impute(self, X: Any, Y: Any) -> tuple[Any, Any]:
        """Fill in what was not observed.

        Signals that the model was fitted to, inputs and all, are taken for those; others are new, and conditioned on
        beside them.

        Parameters
        ----------
        X : array or table of shape (n_signals, n_features), or None
            Inputs; None if the model was fitted without. With a precomputed kernel: the covariance of the training
            signals themselves, or the pair (cross-covariance, covariance) of new ones.
        Y : array or table of shape (n_signals, n_nodes)
            Signals; NaN where nothing was observed.

        Returns
        -------
        completed : of the shape and kind of Y, or as `set_output` says
            What was observed as it is, and the conditional mean of the rest.
        std : of the shape and kind of completed
            Standard deviation of the values as they would be observed, noise included; zero where they were.

        Examples
        --------
        >>> import numpy as np
        >>> from spectralgp import Graph, GraphGPRegressor, Polynomial
        >>> rng = np.random.default_rng(0)
        >>> ring = Graph.from_edges([(node, (node + 1) % 10) for node in range(10)])
        >>> X = np.arange(20.0)[:, None]
        >>> Y = np.sin(X / 4 + np.linspace(0, 6, 10, endpoint=False)) + 0.1 * rng.standard_normal((20, 10))
        >>> Y[3, 4] = np.nan
        >>> completed, std = GraphGPRegressor(ring, Polynomial(3)).fit(X, Y).impute(X, Y)
        >>> bool(abs(completed[3, 4] - np.sin(3 / 4 + 2.4)) < 3 * std[3, 4]), int(np.count_nonzero(std))
        (True, 1)
        """
        check_is_fitted(self)
        self.graph_.require_whole("to fill in what was not observed")
        X, Y = self._inputs_table(X), self._signals_table(Y)
        check_same_order(X, Y)
        signals = self._given(Y)
        features = self._features(X, len(signals))
        rows = self._among_training(features, signals)
        values, variances = signals.copy(), np.zeros(signals.shape)
        for chosen in (rows >= 0, rows < 0):
            missing = np.isnan(signals) & chosen[:, None]
            if not missing.any():
                continue
            filled = self._filled(rows[chosen], features, signals, chosen)
            values[missing] = filled.values[missing[chosen]]
            variances[missing] = filled.values_variance()[missing[chosen]]
        return self._like(values, Y), self._like(np.sqrt(variances), Y)

    def _given(self, Y: Any) -> Array:
        """Signals in memory, in the graph's order of the nodes."""
        return np.asarray(on_host(self._order.to_graph(self._observed(Y))), dtype=float)

    def _features(self, X: Any, n_signals: int) -> Any:
        """Inputs in the form that kernels take them."""
        return self._new_inputs(np.empty((n_signals, 0)) if X is None else self._inputs_table(X), as_given=True)

    def _among_training(self, features: Any, signals: Array) -> Indices:
        """Which of the training signals each one is, inputs and all; -1 for those that are new.

        Values are compared as the model has them, centred and scaled: the nearest training signal with the same inputs
        and holes is taken, if every node's value differs by no more than rounding; of equal ones, one not taken yet.
        """
        rows = np.full(len(signals), -1, dtype=np.intp)
        posterior = self.posterior_.parts[0][1]
        if not posterior.inputs.shape[0]:  # no signals yet
            return rows
        units, known = posterior.signals.units, np.asarray(on_host(posterior.values), dtype=float)
        offset, divisor = np.asarray(on_host(units.offset)), np.asarray(on_host(units.divisor))
        given, raw = (signals - offset) / divisor, np.abs(np.where(np.isnan(known), 0.0, known * divisor + offset))
        # a value was rounded at its own size, at that of what was subtracted, or at that of the mean of all
        tolerance = SAME * (raw.max(axis=0) + np.abs(offset) + raw.mean()) / divisor
        n_taken, holes = np.zeros(len(known), dtype=np.intp), np.isnan(known)
        for number, equal in enumerate(posterior.prior.input_kernel.equal_rows(posterior.inputs, features)):
            seen = np.flatnonzero(~np.isnan(given[number]))
            candidates = np.array(equal, dtype=np.intp)
            candidates = candidates[np.all(holes[candidates] == np.isnan(given[number]), axis=1)]
            distances = np.zeros(candidates.size)
            for nodes in (seen[:A_FEW], seen):  # most signals differ at the first of them
                apart = np.abs(known[candidates[:, None], nodes] - given[number, nodes])
                near = np.all(apart <= tolerance[nodes], axis=1)
                candidates, distances = candidates[near], apart[near].max(axis=1, initial=0.0)
            if candidates.size:
                rows[number] = candidates[np.lexsort((n_taken[candidates], distances))[0]]
                n_taken[rows[number]] += 1
        return rows

    def _filled(self, rows: Indices, features: Any, signals: Array, chosen: Any) -> Predictive:
        """Chosen signals given what was observed of them: training signals, or new ones beside those."""
        if rows[0] >= 0:
            return self.posterior_.filled(rows)
        own = self.fits_[0].model.input_kernel.new_subset(features, chosen)
        return self.posterior_.at(own).given(signals[chosen])

    def _like(self, values: Array, Y: Any) -> Any:
        """Values in the graph's order as a table or array such as Y, with its order of the columns."""
        values, names = self._shaped(self._order.to_user(values)), frame_names(Y)
        if names is not None and self._order.names is not None:
            values = values[:, np.argsort(match_columns(names, self._order.names))]
        if self._output == "default":
            return like_table(np.reshape(values, np.shape(Y)), Y)
        return self._answered(np.reshape(values, np.shape(Y)), names or self._order.names, frame_index(Y), self._layout)

    # --------------------------------------------------------------------------------------------- more signals

    def condition_on(self, X: Any, Y: Any) -> Self:
        """A model with more signals and the same hyperparameters: nothing is learnt anew.

        Parameters
        ----------
        X : array or table of shape (n_signals, n_features), or None
            Inputs of the further signals; None if the model was fitted without. With a precomputed kernel: the pair
            (cross-covariance, covariance).
        Y : array or table of shape (n_signals, n_nodes)
            Further signals; NaN where nothing was observed. On a PartitionedGraph they must be complete, and in memory.

        Returns
        -------
        GraphGPRegressor
            A new one. ``fits_``, and what is said of them, are those of the signals that it was learnt from.
        """
        check_is_fitted(self)
        X, Y = self._inputs_table(X), self._signals_table(Y)
        check_same_order(X, Y)
        signals = self.graph_.as_native(self._given(Y))
        kept = ~np.isnan(signals).all(axis=1)
        if not kept.any():
            raise ValueError(
                "Y must hold at least one value; got nothing but NaN, which stands for what was not observed."
            )
        features = self._features(X, len(signals))
        features = self.fits_[0].model.input_kernel.new_subset(features, kept)
        learnt = self._learnt
        candidates = []
        for candidate in learnt.candidates:
            task = candidate.task
            inputs = task.input_kernel.together(task.inputs, features)
            units = task.signals.units
            # by NumPy or, where the training signals are with its workers, by Dask
            training = read_in(units, np.concatenate([units.mean(task.signals.values), signals[kept]]))
            more = dataclasses.replace(task, inputs=inputs, signals=training)
            candidates.append(dataclasses.replace(candidate, task=more))
        return self._with_posterior(learnt.conditioned_anew(candidates), np.concatenate([self._kept, kept]))

    def _with_posterior(self, learnt: FittedModels, kept: NDArray[np.bool_]) -> Self:
        other = copy.copy(self)
        other._learnt, other.posterior_, other._kept = learnt, learnt.posterior, kept
        return other

    # -------------------------------------------------------------------------------------------- another graph

    def transfer(self, graph: Any) -> Self:
        """The learnt model on another graph: its filters, input kernel and noise, and no signals.

        It predicts what the prior says until it is given signals of that graph, by `condition_on`, `impute` or
        ``predict(X, observed=...)``. Levels and scales of single nodes do not move: a common one takes their place, and
        the graph's covariance that of shrinkage.

        Parameters
        ----------
        graph : Graph or anything `as_graph` takes
            The other graph. A PartitionedGraph takes a model with a Chebyshev spectrum.

        Raises
        ------
        ValueError
            If a polynomial was learnt without ``constraint="interval"``, so that it may be negative at the other
            graph's frequencies; or if inputs carry over node by node.
        """
        check_is_fitted(self)
        other = as_any_graph(graph)
        candidates, fits = [], []
        for candidate, fit in zip(self._learnt.candidates, self._learnt.raw_fits, strict=True):
            task, units = candidate.task, candidate.task.signals.units
            if task.carried is not None:
                raise ValueError(
                    "carry must be None to transfer a model, since columns of X belong to the nodes of one graph; got "
                    "a model that carries them over. Fit it with carry=None."
                )
            moved = Units(float(np.mean(on_host(units.offset))), units.spread)
            inputs = task.input_kernel.subset(task.inputs, np.empty(0, dtype=np.intp))
            own = dataclasses.replace(task, graph=other, inputs=inputs, signals=no_signals(other.n_nodes, moved))
            candidates.append(dataclasses.replace(candidate, task=own, shrunk=False))
            kernel, spectrum = fit.model.graph_kernel, own.spectrum_of(fit.model.graph_kernel)
            model = dataclasses.replace(fit.model, spectrum=spectrum, graph_kernel=kernel.moved_to(spectrum))
            fits.append(dataclasses.replace(fit, model=told_apart(own, model)))
        best = [(fit.model,) for fit in fits]
        learnt = dataclasses.replace(
            self._learnt, raw_fits=tuple(fits), draws=tuple(Draws(models) for models in best)
        ).conditioned_anew(candidates)
        fresh = self._with_posterior(learnt, np.empty(0, dtype=bool))
        heaviest = int(np.argmax(learnt.weights))
        offset, spread = learnt.candidates[heaviest].task.signals.units.offset, fits[heaviest].model.spectrum
        fresh._order = NodeOrder(None if other.names is None else tuple(other.names))
        fresh.fits_, fresh.graph, fresh.graph_, fresh.spectrum_ = learnt.fits, graph, other, spread
        fresh.noise_variance_ = float(learnt.weights @ [fit.model.noise_variance for fit in learnt.fits])
        fresh.center_ = np.full(other.n_nodes, offset)
        fresh.scale_ = np.full(other.n_nodes, learnt.candidates[heaviest].task.signals.units.spread)
        return fresh
