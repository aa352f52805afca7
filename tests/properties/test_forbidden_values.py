"""Values that a likelihood cannot observe are refused by every method, by argument and entry."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spectralgp import Graph, GraphGPClassifier, GraphGPForecaster, GraphGPRegressor, Polynomial

N_NODES = 4
NAMES = tuple("abcd")
GRAPH = Graph.from_edges([(NAMES[node], NAMES[(node + 1) % N_NODES]) for node in range(N_NODES)])
RNG = np.random.default_rng(0)
X = RNG.standard_normal((6, 1))
NEW = X[:2] + 0.5
INFINITE = (np.inf, -np.inf)
COUNTS, CLASSES = (-1.0, 0.5, -2.5, *INFINITE), (2.0, -1.0, 0.5, *INFINITE)
NOT_POSITIVE = (0.0, -1.0, np.nan, np.inf)
VALUES = {
    "gaussian": (RNG.standard_normal((6, N_NODES)), INFINITE),
    "student_t": (RNG.standard_normal((6, N_NODES)), INFINITE),
    "poisson": (RNG.poisson(4.0, (6, N_NODES)).astype(float), COUNTS),
    "negative_binomial": (RNG.poisson(4.0, (6, N_NODES)).astype(float), COUNTS),
    "bernoulli": (RNG.integers(0, 2, (6, N_NODES)).astype(float), CLASSES),
    "binomial": (RNG.integers(0, 6, (6, N_NODES)).astype(float), (11.0, *COUNTS)),
    "weights": (RNG.standard_normal((6, N_NODES)), INFINITE),
    "noise_variance": (RNG.standard_normal((6, N_NODES)), INFINITE),
}
BESIDE: dict[str, tuple[str, tuple[float, ...]]] = {
    "poisson": ("exposure", NOT_POSITIVE),
    "negative_binomial": ("exposure", NOT_POSITIVE),
    "binomial": ("trials", (1.5, *NOT_POSITIVE)),
    "weights": ("weights", NOT_POSITIVE),
    "noise_variance": ("noise_variance", NOT_POSITIVE),
}


def auxiliary_data(kind: str, n_rows: int) -> dict[str, Any]:
    """What stands beside values, all of it allowed."""
    return {} if kind not in BESIDE else {BESIDE[kind][0]: np.full((n_rows, N_NODES), 10.0)}


@cache
def fitted(kind: str) -> GraphGPRegressor:
    model = GraphGPRegressor(
        GRAPH, Polynomial(1), likelihood=kind if kind not in ("weights", "noise_variance") else "gaussian"
    )
    beside = auxiliary_data(kind, 6)
    if kind == "noise_variance":
        beside["noise_variance"] = np.linspace(0.1, 0.2, N_NODES)
    return model.set_params(prior=None).fit(X, VALUES[kind][0], **beside)


def asked(kind: str, method: str, values: Any, beside: dict[str, Any]) -> None:
    """Ask a method with values, and what stands beside them."""
    model = fitted(kind)
    if method == "fit":
        n_rows = len(values)
        GraphGPRegressor(GRAPH, Polynomial(1), likelihood=model.likelihood).fit(X[:n_rows], values, **beside)
    elif method in ("predict", "sample_y"):
        own = {"exposure": "observed_exposure", "trials": "observed_exposure"}
        getattr(model, method)(NEW, observed=values, **{own.get(name, name): one for name, one in beside.items()})
    elif method == "predict observed":
        model.log_predictive_density(NEW, VALUES[kind][0][:2], observed=values, **beside)
    else:
        getattr(model, method)(NEW, values, **beside)


METHODS = [
    "fit", "predict", "sample_y", "predict observed", "log_predictive_density", "score", "impute", "condition_on",
]  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", VALUES)
@given(data=st.data())
@settings(max_examples=8, deadline=None)
def test_forbidden_values_are_refused_by_their_place(kind, method, data):
    values, forbidden = VALUES[kind]
    wrong = values[:2].copy()
    row, node = data.draw(st.integers(0, 1)), data.draw(st.integers(0, N_NODES - 1))
    wrong[row, node] = data.draw(st.sampled_from(forbidden))
    name = "observed" if method in ("predict", "sample_y", "predict observed") else "Y"
    with pytest.raises(ValueError, match=rf"^{name} must .* at row {row}, column ('{NAMES[node]}'|{node})"):
        asked(kind, method, wrong, auxiliary_data(kind, 2))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", BESIDE)
@given(data=st.data())
@settings(max_examples=8, deadline=None)
def test_forbidden_values_beside_are_refused_by_their_place(kind, method, data):
    argument, forbidden = BESIDE[kind]
    beside = auxiliary_data(kind, 2)
    row, node = data.draw(st.integers(0, 1)), data.draw(st.integers(0, N_NODES - 1))
    beside[argument][row, node] = data.draw(st.sampled_from(forbidden))
    is_infinite = np.isinf(beside[argument][row, node])
    place = rf"\({row}, {node}\)" if is_infinite else f"at row {row}, column '{NAMES[node]}'"
    with pytest.raises(ValueError, match=rf"^{argument} must .*{place}"):
        asked(kind, method, VALUES[kind][0][:2], beside)


@pytest.mark.parametrize("value", INFINITE)
def test_series_and_classes_refuse_infinity(value):
    rows = np.cumsum(RNG.standard_normal((40, N_NODES)), axis=0)
    model = GraphGPForecaster(GRAPH, seasons=None, drift=None).fit(rows)
    wrong = rows[:2].copy()
    wrong[1, 2] = value
    for ask in (
        lambda: GraphGPForecaster(GRAPH).fit(np.vstack([rows, wrong])),
        lambda: model.update(wrong),
        lambda: model.log_predictive_density(wrong),
        lambda: model.anomaly_scores(wrong),
        lambda: model.impute(wrong),
    ):
        with pytest.raises(ValueError, match=r"^Y must be finite; Y contains infinity at row \d+, column 2"):
            ask()
    with pytest.raises(ValueError, match=r"^observed must be finite; observed contains infinity at row 1, column 2"):
        model.predict(2, observed=wrong)
    with pytest.raises(ValueError, match="y must hold classes, which are whole numbers or strings; got"):
        GraphGPClassifier(GRAPH).fit(None, [0.0, 1.0, value, -1])
