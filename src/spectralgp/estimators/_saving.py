"""What an estimator writes to a file, and how one is made of it again."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from spectralgp._basics.arrays import on_host
from spectralgp.estimators._base import GraphGPEstimator
from spectralgp.estimators._reading import NodeOrder


class SavingMixin(GraphGPEstimator):
    """Writing a fitted model to a file."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to a file, from which `spectralgp.load` makes it again.

        The file is in the safetensors format: arrays and JSON, and no code. It holds the graph and its spectrum, the
        training inputs and signals, and all that was learnt; the loaded model predicts the same, bit for bit, on the
        same machine and libraries. It is there whole or not at all: an interruption or a full disk leaves the old file.

        Parameters
        ----------
        path : path
            The file to make or to replace, such as ``"model.sgp"``.

        Raises
        ------
        TypeError
            If the model holds what a file cannot: a function of `Response`, a kernel or solver of your own, node names
            that are neither texts nor numbers, or a random generator.
        OSError
            If the file cannot be written.

        Notes
        -----
        `graph` is saved as the `Graph` that was made of it. Signals in files or on a device are saved with the model,
        and are in memory, on the host, when it is loaded.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import numpy as np
        >>> import spectralgp
        >>> ring = spectralgp.Graph.from_edges([(node, (node + 1) % 10) for node in range(10)])
        >>> X, Y = np.arange(20.0)[:, None], np.random.default_rng(0).standard_normal((20, 10))
        >>> model = spectralgp.GraphGPRegressor(ring, spectralgp.Polynomial(2)).fit(X, Y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(Path(folder) / "model.sgp")
        ...     again = spectralgp.load(Path(folder) / "model.sgp")
        >>> np.array_equal(again.predict(X), model.predict(X))
        True
        """
        from spectralgp.files.container import write_file
        from spectralgp.files.models import written

        check_is_fitted(self)
        parameters = self.get_params(deep=False) | {"graph": self.graph is not None, "verbose": int(self.verbose)}
        features: Any = getattr(self, "feature_names_in_", None)
        fitted = {
            "names": self._order.names,
            "columns": self._order.columns,
            "is_flat": self._flat,
            "is_in_memory": self._in_memory,
            "copies": np.where(self._kept, np.cumsum(self._kept) - 1, -1),
            "n_features_in": getattr(self, "n_features_in_", None),
            "feature_names_in": None if features is None else features.tolist(),
            "log_marginal_likelihood": self.log_marginal_likelihood_,
            "center": self.center_ if np.ndim(self.center_) == 0 else on_host(self.center_),
            "scale": np.asarray(on_host(self.scale_)),
            "layout": self._layout,
            "output": None if self._output == "default" else self._output,
            "input_recipe": self.input_recipe_,
        }
        graph = self.graph_.require_whole("to be written to a model file")
        described = {"parameters": parameters, "fitted": fitted}
        write_file(path, *written(self._learnt, self.fits_, graph, described))

    @classmethod
    def _loaded(cls, path: str | PathLike[str], device: str | None) -> Self:
        """The model of a file; whatever is wrong with one ends in an error that says so."""
        from spectralgp.files.container import read_file

        state, arrays = read_file(path)
        try:
            with np.errstate(all="ignore"):  # numbers that are absurd are their author's, and not worth a warning here
                return cls._made(state, arrays, device)
        except (ArithmeticError, AssertionError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise ValueError(
                f"{path} must hold a model as model.save writes it; got one that does not go together: {error}. "
                "Save the model again."
            ) from error
        except MemoryError as error:
            raise ValueError(f"{path} must hold a model that fits into memory; got one that does not.") from error

    @classmethod
    def _made(cls, state: Any, arrays: Mapping[str, NDArray[Any]], device: str | None) -> Self:
        from spectralgp.files.models import made

        learnt, fits, graph, estimator = made(state, arrays, device)
        parameters, fitted = estimator.parameters, estimator.fitted
        model = cls(**(parameters | {"graph": graph if parameters["graph"] else None}))
        model._order = NodeOrder(fitted.names, fitted.columns)
        _require_order(model._order, graph.n_nodes)
        model._kept = _kept_signals(fitted.copies, learnt.candidates[0].task.signals.shape[0])
        model._flat, model._in_memory, model._layout = fitted.is_flat, fitted.is_in_memory, fitted.layout
        model.set_output(predict=fitted.output)
        model.input_recipe_ = fitted.input_recipe
        if fitted.n_features_in is not None:
            model.n_features_in_ = fitted.n_features_in
        if fitted.feature_names_in is not None:
            model.feature_names_in_ = np.array(fitted.feature_names_in, dtype=object)
        model._show(learnt, fits)
        model.log_marginal_likelihood_ = fitted.log_marginal_likelihood
        model.center_, model.scale_ = fitted.center, fitted.scale
        return model


def _kept_signals(numbers: NDArray[np.intp], n_signals: int) -> NDArray[np.bool_]:
    """Which of the given signals the model was fitted to, by their numbers among those; -1 for one without any value.

    Earlier versions fitted equal signals once and gave them one number: the first of them is kept here.
    """
    known, first = np.unique(numbers[numbers >= 0], return_index=True)
    if np.any(numbers < -1) or not np.array_equal(known, np.arange(n_signals)):
        raise ValueError(f"copies must be numbers of {n_signals} signals; got others")
    chosen = np.union1d(np.flatnonzero(numbers < 0), np.flatnonzero(numbers >= 0)[first])
    return numbers[chosen] >= 0


def _require_order(order: NodeOrder, n_nodes: int) -> None:
    if order.names is not None and len(set(order.names)) != n_nodes:
        raise ValueError(f"names must be {n_nodes} distinct names; got {len(set(order.names))}")
    if order.columns is not None and not np.array_equal(np.sort(order.columns), np.arange(n_nodes)):
        raise ValueError("columns must be an order of the nodes; got none")
