"""The estimator on a partitioned graph: what it learns and predicts is what it does on a graph in memory."""

from __future__ import annotations

import itertools
import pickle

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import zarr
from clusters import cluster
from joblib import parallel_config
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from oracle import relative_error
from spectralgp import Chebyshev, Diffusion, Graph, GraphGPRegressor, LocalAverage, PartitionedGraph, Polynomial
from spectralgp._operators import MomentPass
from spectralgp.partitioned import running

N_NODES, N_SIGNALS = 600, 10
POINTS = np.random.default_rng(0).random((N_NODES, 2))


def graph_with_a_hub_and_a_pair() -> Graph:
    """Points joined to their neighbours, one to a few more, and two to each other alone.

    The hub and the pair put the largest eigenvalue of either Laplacian above the others, so that it is found in a
    few steps.
    """
    weights = Graph.from_points(POINTS, n_neighbors=5).weights.tolil()
    weights[0, 100:106] = weights[100:106, 0] = 0.7
    weights[-2:, :] = weights[:, -2:] = 0.0
    weights[-2, -1] = weights[-1, -2] = 1.0
    return Graph(weights.tocsr(), coordinates=POINTS)


GRAPH = graph_with_a_hub_and_a_pair()
X = np.random.default_rng(1).standard_normal((N_SIGNALS, 1))
Y = np.sin(X + 6 * POINTS[:, 0]) + 0.3 * np.random.default_rng(2).standard_normal((N_SIGNALS, N_NODES))
FEW = Chebyshev(n_moments=97, max_moments=97, n_probes=16)
CLOSE = 1e-8  # of fits and predictions, as issue 12 asks


@pytest.fixture(scope="module", autouse=True)
def client():
    with cluster(2, processes=False) as client:
        yield client


@pytest.fixture(scope="module")
def parted(tmp_path_factory):
    return PartitionedGraph.from_graph(GRAPH, 4, tmp_path_factory.mktemp("graph") / "parts", n_hops=4)


def fitted(graph, signals=Y, inputs=X, **parameters):
    return GraphGPRegressor(graph, **({"graph_kernel": Polynomial(2), "spectrum": FEW} | parameters)).fit(
        inputs, signals
    )


MODELS = {
    "the paper's": {"residual": None, "carry": None, "center": "global", "scale": "global"},
    "with a residual": {},
    "centred by node": {"center": "node"},
    "node scales": {"scale": "node", "center": "node"},
    "normalised": {"graph_kernel": Diffusion(laplacian="normalized")},
    "stacked": {"graph_kernel": [Polynomial(1), Diffusion()], "n_folds": 3},
    "independent": {"inputs": None},
}


@pytest.mark.parametrize("name", MODELS)
def test_fits_and_predictions_are_those_of_one_machine(parted, name):
    own, other = (fitted(graph, **MODELS[name]) for graph in (parted, GRAPH))
    assert relative_error(own.log_marginal_likelihood_, other.log_marginal_likelihood_) < CLOSE
    assert relative_error(own.kernel_weights_, other.kernel_weights_) < CLOSE
    new = None if "inputs" in MODELS[name] else X[:3]
    truth = Y[:1] if new is None else Y[:3]
    for found, expected in zip(own.predict(new, return_std=True), other.predict(new, return_std=True), strict=True):
        assert isinstance(found, da.Array)
        assert relative_error(found.compute(), expected) < CLOSE
    at_nodes = [model.predict(new, return_std=True, include_noise=True, nodes=[5, 77])[1] for model in (own, other)]
    assert relative_error(*at_nodes) < CLOSE
    densities = [model.log_predictive_density(new, truth, joint=False) for model in (own, other)]
    assert relative_error(*densities) < CLOSE
    assert relative_error(own.response(), other.response()) < CLOSE


def test_the_default_model_is_the_same(parted):
    own, other = (fitted(graph, graph_kernel=None, spectrum=Chebyshev(n_probes=16)) for graph in (parted, GRAPH))
    assert relative_error(own.log_marginal_likelihood_, other.log_marginal_likelihood_) < CLOSE
    assert relative_error(own.predict(X[:2]).compute(), other.predict(X[:2])) < CLOSE


def test_values_carry_over(parted):
    yesterday, today = Y[:-1], 0.8 * Y[:-1] + 0.1 * Y[1:]
    own, other = (fitted(graph, today, yesterday, carry="auto") for graph in (parted, GRAPH))
    # parameters are as close as optimisers stop; what they predict is closer
    assert relative_error(own.response(which="carry"), other.response(which="carry")) < 1e-6
    assert relative_error(own.predict(Y[-1:]).compute(), other.predict(Y[-1:])) < CLOSE


def test_samples_belong_to_nodes(parted):
    own, other = (fitted(graph, residual=None).sample_y(X[:2], 2, random_state=3) for graph in (parted, GRAPH))
    assert own.shape == (2, N_NODES, 2)
    assert relative_error(own.compute(), other) < 1e-6


def test_single_precision(parted):
    single = Y.astype(np.float32)
    own, other = (fitted(graph, single, residual=None) for graph in (parted, GRAPH))
    assert own.predict(X[:2]).dtype == np.float32
    assert relative_error(own.log_marginal_likelihood_, other.log_marginal_likelihood_) < 1e-4
    assert relative_error(own.predict(X[:2]).compute(), other.predict(X[:2])) < 1e-3


def test_signals_may_be_dasks_or_zarrs(parted, tmp_path):
    stored = zarr.create_array(tmp_path / "signals", shape=Y.shape, chunks=(N_SIGNALS, 100), dtype="f8")
    stored[:] = Y
    expected = fitted(parted)
    for signals in (da.from_array(Y, chunks=(4, 130)), stored):
        model = fitted(parted, signals)
        assert relative_error(model.log_marginal_likelihood_, expected.log_marginal_likelihood_) < CLOSE
        assert relative_error(model.predict(X[:2]).compute(), expected.predict(X[:2]).compute()) < CLOSE
        truth = signals[:2] if isinstance(signals, da.Array) else Y[:2]
        densities = [one.log_predictive_density(X[:2], truth) for one in (model, expected)]
        assert relative_error(*densities) < CLOSE


def test_tables_are_matched_by_name(tmp_path):
    names = [f"node {node}" for node in range(N_NODES)]
    graph = PartitionedGraph.from_graph(Graph(GRAPH.weights, names, POINTS), 3, tmp_path / "parts", n_hops=2)
    order = np.random.default_rng(4).permutation(N_NODES)
    table = pd.DataFrame(Y[:, order], columns=[names[node] for node in order])
    expected = fitted(graph).predict(X[:2]).compute()
    found = np.asarray(fitted(graph, table).predict(X[:2]))
    assert relative_error(found, expected[:, order]) < CLOSE


def test_predictions_are_lazy_and_can_be_written_to_disk(parted, tmp_path):
    mean = fitted(parted).predict(X)
    mean.to_zarr(tmp_path / "mean")
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "mean")[:], mean.compute())


def test_a_score_and_leave_one_out(parted):
    own, other = (fitted(graph) for graph in (parted, GRAPH))
    assert relative_error(own.score(X, Y), other.score(X, Y)) < CLOSE
    found, expected = own.leave_one_out(), other.leave_one_out()
    assert relative_error(np.asarray(found.mean), expected.mean) < CLOSE
    assert relative_error(np.asarray(found.log_density), expected.log_density) < CLOSE


def test_models_on_partitions_are_cloned_and_pickled(parted):
    model = fitted(parted)
    assert clone(model).graph is parted
    again = pickle.loads(pickle.dumps(model))
    assert relative_error(again.predict(X[:2]).compute(), model.predict(X[:2]).compute()) < 1e-12


@pytest.mark.parametrize(
    ("parameters", "signals", "message"),
    [
        ({"spectrum": "exact"}, Y, "spectrum must be .* on a partitioned graph, which is nowhere whole; got 'exact'"),
        ({}, np.where(Y > 1, np.nan, Y), "Y must be complete on a PartitionedGraph; got NaN"),
        ({}, da.from_array(np.where(Y > 1, np.nan, Y)), "Y must be complete where it is a Dask array; got NaN"),
        ({}, da.from_array(np.where(Y > 1, np.inf, Y)), "Y must not hold infinite values"),
        ({"graph_kernel": LocalAverage()}, Y, "graph_kernel must be a function on the spectrum for a large graph"),
        ({}, Y[:, :-1], "Y must have shape .* with n_nodes = 600"),
    ],
    ids=["exact", "holes", "holes in Dask", "infinite", "local average", "shape"],
)
def test_what_cannot_be_done_says_so(parted, parameters, signals, message):
    with pytest.raises((ValueError, TypeError), match=message):
        fitted(parted, signals, **parameters)


def test_what_a_fitted_model_cannot_do_says_so(parted, tmp_path):
    model = fitted(parted)
    with pytest.raises(ValueError, match="return_cov must be False on a large graph"):
        model.predict(X[:1], return_cov=True)
    with pytest.raises(TypeError, match="graph must be in memory to be written to a model file"):
        model.save(tmp_path / "model.sgp")
    with pytest.raises(TypeError, match="graph must be in memory for a report"):
        model.report(tmp_path / "report.html")


def test_folds_and_searches_run_on_dask_through_joblib(client):
    small = Graph.from_points(POINTS[:40], n_neighbors=4)
    signals = Y[:, :40]
    expected = GraphGPRegressor(small, [Polynomial(1), Diffusion()], n_folds=3).fit(X, signals)
    with parallel_config(backend="dask", n_jobs=2):
        found = GraphGPRegressor(small, [Polynomial(1), Diffusion()], n_folds=3).fit(X, signals)
        search = GridSearchCV(
            GraphGPRegressor(small, Polynomial(1)), {"graph_kernel": [Polynomial(1), Polynomial(2)]}, cv=2
        ).fit(X, signals)
    assert relative_error(found.log_marginal_likelihood_, expected.log_marginal_likelihood_) < 1e-10
    assert len(search.cv_results_["mean_test_score"]) == 2


@pytest.mark.slow
@pytest.mark.parametrize("n_workers", [1, 2, 4])
def test_any_number_of_workers_and_any_partitioner_give_the_same(tmp_path, n_workers):
    """What issue 12 asks: moments within 1e-12, fits and predictions within 1e-8, in processes of their own."""
    models = {kind: Polynomial(1, laplacian=kind) for kind in ("combinatorial", "normalized")}
    noisy = Y + np.random.default_rng(5).standard_normal(Y.shape)  # whose fits need few moments
    few = {"residual": None, "spectrum": Chebyshev(n_moments=49, max_moments=49, n_probes=8)}
    with cluster(n_workers):
        for partitioner, (kind, kernel) in itertools.product(("hilbert", "metis", "rcm"), models.items()):
            folder = tmp_path / f"{partitioner}-{kind}"
            parted = PartitionedGraph.from_graph(GRAPH, 3, folder, partitioner=partitioner, n_hops=4)
            operators = [graph.operator(kind, noisy) for graph in (parted, GRAPH)]
            found, expected = (MomentPass(operator, operator.load(noisy), gram=True) for operator in operators)
            for one in (found, expected):
                one.extend(33)
            assert relative_error(found.moments, expected.moments) < 1e-12
            own, other = (fitted(graph, noisy, graph_kernel=kernel, **few) for graph in (parted, GRAPH))
            assert relative_error(own.log_marginal_likelihood_, other.log_marginal_likelihood_) < CLOSE
            assert relative_error(own.predict(X[:3]).compute(), other.predict(X[:3])) < CLOSE


def test_a_local_client_is_started_where_there_is_none(monkeypatch):
    """With a message; here the client that would be started is not."""
    import distributed

    started = []

    class Made:
        dashboard_link = "a link"

        def __init__(self, **options):
            started.append(options)

    def none():
        raise ValueError("no client")

    monkeypatch.setattr(distributed, "get_client", none)
    monkeypatch.setattr(distributed, "Client", Made)
    with pytest.warns(UserWarning, match="No Dask client was there, so a local one with .* was started"):
        assert isinstance(running.current_client(), Made)
    assert started[0]["threads_per_worker"] == 1
