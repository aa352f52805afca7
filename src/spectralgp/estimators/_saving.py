"""What an estimator writes to a file, and how one is made of it again."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from spectralgp._basics.arrays import on_host
from spectralgp._basics.tables import WRITTEN, Layout
from spectralgp.estimators._base import GraphGPEstimator
from spectralgp.estimators._output import OUTPUTS
from spectralgp.estimators._reading import NodeOrder
from spectralgp.files.arrays import ArrayOf, NumberOr
from spectralgp.files.codecs import (
    ANY_NUMBER,
    FLAG,
    NAME,
    POSITIVE,
    TEXT,
    Codec,
    Either,
    Integer,
    Json,
    Later,
    Many,
    Maybe,
    Number,
    Option,
    Reading,
    Record,
    Tagged,
    Writing,
    wrong,
)
from spectralgp.files.container import read_file, write_file
from spectralgp.files.fitted import made, written
from spectralgp.files.kernels import GRAPH_KERNEL, INPUT_FORMULA
from spectralgp.files.models import NOISE, SETTINGS, bounds_of
from spectralgp.kernels import InputRecipe
from spectralgp.learning import Lagrangian, Limits, Sqp
from spectralgp.learning.fitting import Stacking
from spectralgp.spectra import SpectrumSettings


class _OneOrList(Codec):
    """A graph kernel, or a list of them."""

    def write(self, value: Any, into: Writing, where: str) -> Json:
        return (Many(GRAPH_KERNEL) if isinstance(value, list | tuple) else GRAPH_KERNEL).write(value, into, where)

    def read(self, found: Json, source: Reading, where: str) -> Any:
        if isinstance(found, list):
            return list(Many(GRAPH_KERNEL).read(found, source, where))
        return GRAPH_KERNEL.read(found, source, where)


_SOLVER = Tagged("'sqp', 'lagrangian' or one of their objects", "Set it with set_params before saving.")
_SOLVER.add(
    Record(
        Sqp,
        max_iterations=Integer(1),
        enough=Maybe(POSITIVE),
        n_restarts=Integer(),
        random_state=Integer(),
    ),
    Record(
        Lagrangian,
        limits=Record(Limits, ascent=Integer(), dual=Integer(), descent=Integer()),
        literal=FLAG,
        multiplier=Either(Option("random"), POSITIVE),
        dual_rate=POSITIVE,
        random_state=Integer(),
    ),
)
_WAYS = Maybe(Option("auto", "global", "node"))
_PARAMETERS = Record(
    dict,
    graph=FLAG,  # whether there is one: it is that of the file
    graph_kernel=Maybe(_OneOrList()),
    input_kernel=Maybe(Either(Option("precomputed"), INPUT_FORMULA)),
    noise_variance=NOISE,
    prior=Maybe(Option("weak")),
    residual=Maybe(Either(Option("auto"), GRAPH_KERNEL)),
    carry=Maybe(Either(Option("auto"), Many(NAME))),
    center=_WAYS,
    scale=_WAYS,
    solver=Maybe(Either(Option("sqp", "lagrangian"), _SOLVER)),
    spectrum=Either(Option("auto", "exact", "chebyshev"), SETTINGS),
    stacking=Maybe(Record(Stacking, n_folds=Integer(2), n_draws=Maybe(Integer()), n_jobs=Maybe(Integer(-(2**31))))),
    random_state=Maybe(Integer()),
    verbose=Integer(-(2**31)),
)


def _layout(library: str, dims: tuple[str, ...] | None, is_turned: bool) -> Layout:
    if dims is not None and len(set(dims)) != 2:
        raise wrong("dims", "two names", len(dims))
    return Layout(library, None if dims is None else (dims[0], dims[1]), is_turned)


# libraries by the names that may be loaded to answer with their tables, and no others
_LAYOUT = Record(_layout, library=Option(*WRITTEN), dims=Maybe(Many(TEXT)), is_turned=FLAG)
_RECIPE = Record(InputRecipe, time=Maybe(Option("numbers", "dates")), lag=Maybe(Integer(1)), columns=Many(TEXT))
_FITTED = Record(
    SimpleNamespace,
    names=Maybe(Many(NAME)),
    columns=Maybe(ArrayOf(("n_nodes",), "i")),
    is_flat=FLAG,
    is_in_memory=FLAG,
    copies=ArrayOf(("_given",), "i"),
    n_features_in=Maybe(Integer()),
    feature_names_in=Maybe(Many(TEXT)),
    log_marginal_likelihood=ANY_NUMBER,
    center=NumberOr(ArrayOf(("n_nodes",)), Number()),
    scale=ArrayOf(("n_nodes",)),
    layout=Later(_LAYOUT),
    output=Later(Option(*OUTPUTS)),
    input_recipe=Later(_RECIPE),
)
_ESTIMATOR = Record(SimpleNamespace, parameters=_PARAMETERS, fitted=_FITTED)


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
        check_is_fitted(self)
        parameters = {name: getattr(self, name) for name in _PARAMETERS.fields}
        parameters |= {"graph": self.graph is not None, "verbose": int(self.verbose)}
        features: Any = getattr(self, "feature_names_in_", None)
        fitted = SimpleNamespace(
            names=self._order.names,
            columns=self._order.columns,
            is_flat=self._flat,
            is_in_memory=self._in_memory,
            copies=np.where(self._kept, np.cumsum(self._kept) - 1, -1),
            n_features_in=getattr(self, "n_features_in_", None),
            feature_names_in=features,
            log_marginal_likelihood=self.log_marginal_likelihood_,
            center=self.center_ if np.ndim(self.center_) == 0 else on_host(self.center_),
            scale=np.asarray(on_host(self.scale_)),
            layout=self._layout,
            output=None if self._output == "default" else self._output,
            input_recipe=self.input_recipe_,
        )
        estimator = SimpleNamespace(parameters=SimpleNamespace(**parameters), fitted=fitted)
        graph = self.graph_.require_whole("to be written to a model file")
        write_file(path, *written(self._learnt, self.fits_, graph, _ESTIMATOR, estimator))

    @classmethod
    def _loaded(cls, path: str | PathLike[str], device: str | None) -> Self:
        """The model of a file; whatever is wrong with one ends in an error that says so."""
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
    def _made(cls, state: Json, arrays: Mapping[str, NDArray[Any]], device: str | None) -> Self:
        old = _upgraded(state)
        learnt, fits, graph, estimator = made(state, arrays, _ESTIMATOR, device)
        parameters, fitted = estimator.parameters, estimator.fitted
        model = cls(**(parameters | {"graph": graph if parameters["graph"] else None}))
        task = learnt.candidates[0].task
        if old.get("device") is not None:
            model.spectrum = task.spectrum
        elif device is not None and isinstance(model.spectrum, SpectrumSettings):
            model.spectrum = model.spectrum.on(device)
        if old.get("noise_floor") is not None and model.noise_variance is None:
            model.noise_variance = bounds_of(old["noise_floor"], task.variance * task.signals.units.spread**2)
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


def _upgraded(state: Json) -> dict[str, Any]:
    """Give the parameters of a file up to version 2 their present names; what went elsewhere is returned."""
    if not isinstance(state, dict) or not isinstance(state.get("estimator"), dict):
        return {}
    parameters, fitted = state["estimator"].get("parameters"), state["estimator"].get("fitted")
    if not isinstance(parameters, dict) or not isinstance(fitted, dict) or "input_kernel" in parameters:
        return {}
    old = {name: parameters.pop(name, None) for name in ("kernel", "device", "noise_floor", "max_iterations")}
    parameters["input_kernel"] = old["kernel"]
    parameters["stacking"] = {name: parameters.pop(name, None) for name in ("n_folds", "n_draws", "n_jobs")}
    if parameters.get("solver") == "sqp" and isinstance(old["max_iterations"], int) and old["max_iterations"] != 500:
        parameters["solver"] = {"type": "Sqp", **vars(Sqp(old["max_iterations"]))}
    for name in ("n_evaluations", "n_stand_ins"):  # which the fits and the draws say
        fitted.pop(name, None)
    return old


def _kept_signals(numbers: NDArray[np.intp], n_signals: int) -> NDArray[np.bool_]:
    """Which of the given signals the model was fitted to, by their numbers among those; -1 for one without any value.

    Earlier versions fitted equal signals once and gave them one number: the first of them is kept here.
    """
    known, first = np.unique(numbers[numbers >= 0], return_index=True)
    if np.any(numbers < -1) or not np.array_equal(known, np.arange(n_signals)):
        raise wrong("copies", "numbers of signals", "others")
    chosen = np.union1d(np.flatnonzero(numbers < 0), np.flatnonzero(numbers >= 0)[first])
    return numbers[chosen] >= 0


def _require_order(order: NodeOrder, n_nodes: int) -> None:
    if order.names is not None and len(set(order.names)) != n_nodes:
        raise wrong("names", f"{n_nodes} distinct names", len(order.names))
    if order.columns is not None and not np.array_equal(np.sort(order.columns), np.arange(n_nodes)):
        raise wrong("columns", "an order of the nodes", "none")
