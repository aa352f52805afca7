"""What every estimator keeps, whatever it learns: parameters, copies, files, failed fits and arrays of the caller."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from spectralgp import Chebyshev, Graph, GraphGPClassifier, GraphGPForecaster, GraphGPRegressor, Polynomial, load
from spectralgp.series import MaternComponent

RING = Graph.from_edges([(node, (node + 1) % 6) for node in range(6)])
RNG = np.random.default_rng(0)
X, NEW = RNG.standard_normal((9, 2)), RNG.standard_normal((3, 2))
Y = np.sin(X[:, :1] + np.arange(6)) + 0.2 * RNG.standard_normal((9, 6))
LABELS = np.array([0.0, 1, 0, 1, -1, -1])


def predicted(model: Any) -> Any:
    return model.predict(NEW, return_std=True)


@dataclass(frozen=True)
class Kind:
    """An estimator, what it is fitted to, arrays that it refuses, and an answer."""

    model: Any
    data: tuple[np.ndarray | None, ...]
    wrong: tuple[np.ndarray | None, ...]
    ask: Callable[[Any], Any] = predicted


REGRESSOR = GraphGPRegressor(RING, Polynomial(1))
LARGE = GraphGPRegressor(RING, Polynomial(1), spectrum=Chebyshev(n_moments=17, n_probes=8), residual=None)
COUNTS = GraphGPRegressor(RING, Polynomial(1), likelihood="poisson")
CLASSIFIER = GraphGPClassifier(RING)
KINDS = {
    "regressor": Kind(REGRESSOR, (X, Y), (X, Y[:4])),
    "large": Kind(LARGE, (X, Y), (X, Y[:, :4])),
    "missing values": Kind(REGRESSOR, (X, np.where(Y > 0.8, np.nan, Y)), (X, np.full(Y.shape, np.nan))),
    "counts": Kind(COUNTS, (X, np.round(np.exp(Y))), (X, Y)),
    "forecaster": Kind(
        GraphGPForecaster(RING, components=(MaternComponent(0.5),), seasons=None, calendar=None, residual=None),
        (np.cumsum(RNG.standard_normal((30, 6)), axis=0),),
        (np.ones((3, 6)),),
        lambda model: model.predict(3, return_std=True),
    ),
    "classes of nodes": Kind(CLASSIFIER, (None, LABELS), (None, np.zeros(6)), lambda model: model.predict_proba()),
    "classes of signals": Kind(
        CLASSIFIER, (NEW, (Y[:3] > 0).astype(float)), (X, LABELS), lambda model: model.predict_proba(NEW)
    ),
}


def copies(arrays: tuple[np.ndarray | None, ...]) -> list[np.ndarray | None]:
    return [None if one is None else one.copy() for one in arrays]


@cache
def fitted(name: str) -> Any:
    return clone(KINDS[name].model).fit(*KINDS[name].data)


@pytest.fixture(params=KINDS)
def kind(request) -> tuple[Kind, Any]:
    return KINDS[request.param], fitted(request.param)


def test_a_clone_has_the_same_parameters_and_nothing_that_was_learnt(kind):
    one, model = kind
    fresh = clone(model)
    assert fresh.get_params() == model.get_params() == one.model.get_params()
    assert fresh.graph is model.graph is model.graph_ is RING
    for ask in (one.ask, lambda unfitted: unfitted.save("model.sgp"), lambda unfitted: unfitted.summary()):
        with pytest.raises(NotFittedError):
            ask(fresh)
    with pytest.raises(ValueError, match="Invalid parameter 'degree'"):
        fresh.set_params(degree=3)
    assert type(model).__name__ in repr(model)


def test_pickles_and_files_answer_the_same_bits_and_words(kind, tmp_path):
    one, model = kind
    before = pickle.dumps(model)
    model.save(tmp_path / "model.sgp")
    expected, words = one.ask(model), model.summary()
    assert pickle.dumps(model) == before  # questions leave no trace
    for again in (pickle.loads(before), load(tmp_path / "model.sgp")):
        np.testing.assert_array_equal(one.ask(again), expected)
        assert again.summary() == words


def test_what_the_caller_does_to_arrays_after_fit_changes_nothing(kind):
    one, model = kind
    given = copies(one.data)
    other = clone(model).fit(*given)
    expected = one.ask(other)
    for array in given:
        if array is not None:
            array *= np.nan
    np.testing.assert_array_equal(one.ask(other), expected)


def test_a_fit_that_fails_leaves_a_model_as_it_was(kind):
    one, _ = kind
    model = clone(one.model).fit(*one.data)
    before = one.ask(model)
    with pytest.raises(ValueError, match="must"):
        model.fit(*one.wrong)
    np.testing.assert_array_equal(one.ask(model), before)
