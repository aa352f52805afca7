"""Whether a change of the code changes answers: 60 fits by public names alone, recorded before and compared after.

    python benchmarks/same_answers.py --record before.npz
    python benchmarks/same_answers.py --compare before.npz

Differences are relative to the largest number of an array. Draws are not compared: only their laws are promised.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _fields import smooth_fields
from _in_turn import InTurn
from sklearn.gaussian_process.kernels import RBF
from threadpoolctl import threadpool_limits

from spectralgp import (
    Chebyshev,
    Cosine,
    Diffusion,
    GlobalFilter,
    Graph,
    GraphGPClassifier,
    GraphGPForecaster,
    GraphGPRegressor,
    Identity,
    LocalAverage,
    Matern,
    PartitionedGraph,
    Polynomial,
    PseudoInverse,
    RandomWalk,
    RegularizedLaplacian,
    Response,
)
from spectralgp._basics.arrays import on_host
from spectralgp.datasets import load_air_quality, load_fertility, load_homicides, load_sids, load_us_income
from spectralgp.graphs.operators import largest_eigenvalue, tighten

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from reproduction import Lagrangian

TOLERANCE = 1e-8
Answers = dict[str, Any]
PAPER: dict[str, Any] = {"input_kernel": RBF(1.0), "residual": None}


def field(n_nodes: int = 20, n_signals: int = 24, strength: float = 5.0) -> tuple[Graph, np.ndarray, np.ndarray]:
    return smooth_fields(n_nodes, n_signals, strength)


def with_missing(signals: np.ndarray, share: float, seed: int = 0) -> np.ndarray:
    hidden = np.random.default_rng(seed).random(signals.shape) < share
    return np.where(hidden, np.nan, signals)


def answers_of(
    model: GraphGPRegressor, inputs: Any, signals: np.ndarray, beside: Answers, leaves_out: bool = True
) -> Answers:
    """Everything that a regressor says of new signals, the last four."""
    new = {name: value[-4:] if np.ndim(value) == 2 else value for name, value in beside.items()}
    at = None if inputs is None else inputs[-4:]
    truth, half = signals[-4:], np.array(signals[-4:])
    half[:, ::2] = np.nan
    is_latent = model.likelihood != "gaussian" or bool(beside)
    mean, std = model.predict(np.empty((4, 0)) if at is None else at, return_std=True, **new)
    where = np.empty((4, 0)) if at is None else at
    found: Answers = {"evidence": model.log_marginal_likelihood_, "mean": mean, "std": std}
    found["density"] = model.log_predictive_density(where, truth, joint=False, **new)
    if not is_latent:
        found["given"] = model.predict(where, observed=half)
    found["filled"], found["filled std"] = model.impute(where, half, **new)
    if leaves_out:
        found["left out"] = model.leave_one_out("entry").mean
    return found


def regression(
    graph: Graph,
    inputs: Any,
    signals: np.ndarray,
    kernel: Any = None,
    leaves_out: bool = True,
    beside: Answers | None = None,
    **settings: Any,
) -> Answers:
    beside = beside or {}
    model = GraphGPRegressor(graph, kernel, **settings) if kernel is not None else GraphGPRegressor(graph, **settings)
    known = {name: value[:-4] if np.ndim(value) == 2 else value for name, value in beside.items()}
    model.fit(None if inputs is None else inputs[:-4], signals[:-4], **known)
    return answers_of(model, inputs, signals, beside, leaves_out)


def series(graph: Graph, values: np.ndarray, X: Any = None, **settings: Any) -> Answers:
    n_new = 8
    known, new = (None, None) if X is None else (X[:-n_new], X[-n_new:])
    model = GraphGPForecaster(graph, **settings).fit(values[:-n_new], known)
    mean, std = model.predict(n_new, return_std=True, **({} if X is None else {"X": new}))
    found: Answers = {"mean": mean, "std": std, "density": model.log_predictive_density(values[-n_new:], new)}
    found["scores"] = model.anomaly_scores(values[-n_new:], new)
    found["filled"], found["filled std"] = model.impute(values[:-n_new], known)
    half = None if X is None else X[-n_new:-4]
    moved = model.update(values[-n_new:-4], half)
    found["updated"] = moved.predict(4, **({} if X is None else {"X": X[-4:]}))
    return found


def classes(graph: Graph, labels: np.ndarray, every: int) -> Answers:
    known = np.full(graph.n_nodes, -1)
    known[::every] = labels[::every]
    model = GraphGPClassifier(graph).fit(None, known)
    return {"probabilities": model.predict_proba(), "left out": model.leave_one_out()}


def partitions() -> Answers:
    """A graph in partitions whose tasks run in turn, here."""
    rng = np.random.default_rng(0)
    graph = Graph.from_points(rng.random((3_000, 2)), n_neighbors=6)
    signals, mixing = rng.standard_normal((6, graph.n_nodes)), rng.standard_normal((12, 6, 2))
    with tempfile.TemporaryDirectory() as folder:
        parted = PartitionedGraph.from_graph(graph, 4, f"{folder}/graph", n_hops=4)
        operator = InTurn(parted, "normalized", signals.dtype, "cpu")
        largest = largest_eigenvalue(operator)
        tighten(operator, *largest)
        found = operator.filtered(operator.load(signals), mixing)
        return {"largest": largest[0], "filtered": np.concatenate([on_host(part) for part in found.parts])}


def walk(n_nodes: int, n_rows: int, seed: int, season: float = 0.0) -> tuple[Graph, np.ndarray]:
    """A stationary series of neighbours that move alike."""
    rng = np.random.default_rng(seed)
    graph = Graph.from_points(rng.random((n_nodes, 2)), n_neighbors=3)
    smooth = np.linalg.inv(np.eye(n_nodes) + graph.laplacian().toarray())
    rows = np.zeros((n_rows, n_nodes))
    for row in range(1, n_rows):
        rows[row] = 0.9 * rows[row - 1] + smooth @ rng.standard_normal(n_nodes)
    wave = season * np.sin(2 * np.pi * np.arange(n_rows) / 7)
    return graph, rows + wave[:, None] + 0.2 * rng.standard_normal(rows.shape)


def problems() -> Iterator[tuple[str, Callable[[], Answers]]]:
    small, inputs, signals = field()
    kernels = {
        "polynomial 2": Polynomial(2),
        "polynomial 5, interval": Polynomial(5, "interval"),
        "polynomial auto": Polynomial("auto"),
        "stack": [Polynomial(1), Diffusion()],
        "diffusion": Diffusion(),
        "matern": Matern(),
        "regularised": RegularizedLaplacian(),
        "pseudo-inverse": PseudoInverse(),
        "walk": RandomWalk(),
        "cosine": Cosine(),
        "global": GlobalFilter(),
        "local": LocalAverage(),
        "identity": Identity(),
        "response": Response(lambda values, rate: np.exp(-rate * values), (1.0,)),
        "sum": Diffusion() + Matern(laplacian="normalized"),
    }
    for name, kernel in kernels.items():
        yield f"paper, {name}", partial(regression, small, inputs, signals, kernel, **PAPER)
    for name in ("polynomial 2", "diffusion", "matern"):
        yield f"residual, {name}", partial(regression, small, inputs, signals, kernels[name])
        yield f"few signals, {name}", partial(regression, small, inputs[:9], signals[:9], kernels[name])
    yield "no prior", partial(regression, small, inputs, signals, Polynomial(3), prior=None)
    yield "lagrangian", partial(regression, small, inputs, signals, Polynomial(2), solver=Lagrangian(), **PAPER)
    yield "no inputs", partial(regression, small, None, signals, Polynomial(2))
    yield "uncentred", partial(regression, small, inputs, signals, Polynomial(2), center=None)
    yield "one scale", partial(regression, small, inputs, signals, Polynomial(2), center="global", scale="global")
    yield "default", partial(regression, small, inputs, signals)
    yield "default, few", partial(regression, small, inputs[:10], signals[:10])
    yield "default, no edges", partial(regression, Graph.edgeless(6), inputs, signals[:, :6])

    incomes, air, births = load_us_income(), load_air_quality(), load_fertility()
    yearly = np.asarray(incomes.relative_incomes)
    yield "default, incomes", partial(regression, incomes.graph, yearly[:-1], yearly[1:])
    daily = np.log(np.asarray(air.concentrations))[:120]
    inputs_of_air = daily[:-1:3][:, np.isfinite(daily).all(axis=0)]
    yield "default, air", partial(regression, air.graph, inputs_of_air, daily[1::3])
    rates = np.asarray(births.rates)[-24:, :30]
    yield "default, fertility", partial(regression, births.graph.subgraph(np.arange(30)), rates[:-1, :3], rates[1:])

    for share in (0.1, 0.5):
        incomplete = with_missing(signals, share)
        yield f"{share} missing, polynomial", partial(regression, small, inputs, incomplete, Polynomial(2))
        yield f"{share} missing, paper", partial(regression, small, inputs, incomplete, Polynomial(3), **PAPER)
    yield "0.2 missing, default", partial(regression, small, inputs, with_missing(signals, 0.2))
    unseen = np.array(signals)
    unseen[:, [2, 11]] = np.nan
    yield "unseen nodes", partial(regression, small, inputs, unseen, Polynomial(2))
    yield "unseen nodes, default", partial(regression, small, inputs, unseen)

    rng = np.random.default_rng(3)
    logs = 0.7 * signals
    counts = rng.poisson(np.exp(logs + 1)).astype(float)
    trials = np.full(signals.shape, 9.0)
    hits = rng.binomial(9, 1 / (1 + np.exp(-logs))).astype(float)
    exposure = rng.uniform(0.5, 3.0, signals.shape)
    tail = signals + 0.3 * rng.standard_t(3, signals.shape)
    quick = partial(regression, small, inputs)
    yield "poisson", partial(quick, counts, Polynomial(1), likelihood="poisson", leaves_out=False)
    yield "poisson, missing", partial(quick, with_missing(counts, 0.2), Diffusion(), likelihood="poisson")
    about = {"exposure": exposure, "covariates": {"z": rng.standard_normal(small.n_nodes)}}
    yield "poisson, beside", partial(quick, counts, Diffusion(), likelihood="poisson", beside=about)
    yield "poisson, one map", partial(regression, small, None, counts[:6], Polynomial(1), likelihood="poisson")
    yield "negative binomial", partial(quick, counts, Diffusion(), likelihood="negative_binomial", leaves_out=False)
    yield "bernoulli", partial(quick, (signals > 0).astype(float), Diffusion(), likelihood="bernoulli")
    yield "binomial", partial(quick, hits, Diffusion(), likelihood="binomial", beside={"trials": trials})
    yield "student", partial(quick, tail, Diffusion(), likelihood="student_t", leaves_out=False)
    yield "known noise", partial(quick, signals, Diffusion(), beside={"noise_variance": 0.1 * exposure})
    yield "weights", partial(quick, signals, Diffusion(), beside={"weights": exposure})
    sids, crimes = load_sids(), load_homicides()
    of_sids = {"exposure": np.asarray(sids.births, dtype=float)}
    model = partial(GraphGPRegressor, likelihood="poisson")
    yield "sids", partial(maps, model(sids.graph), np.asarray(sids.deaths, dtype=float), of_sids)
    yield "homicides", partial(maps, model(crimes.graph), np.asarray(crimes.counts, dtype=float), {})

    graph, rows = walk(8, 150, 0)
    yield "series", partial(series, graph, rows)
    yield "series, missing", partial(series, graph, with_missing(rows, 0.1))
    yield "series, season", partial(series, *walk(6, 180, 1, season=3.0))
    columns = rng.standard_normal((150, 2))
    yield "series, columns", partial(series, graph, rows + columns[:, :1], columns)
    yield "series, air", partial(series, air.graph, daily)
    yield "series, one node", partial(series, Graph.edgeless(1), rows[:, :1])

    place = np.random.default_rng(5).random((60, 2))
    near = Graph.from_points(place, n_neighbors=5)
    yield "classes", partial(classes, near, (3 * place[:, 0]).astype(int), 3)
    yield "two classes", partial(classes, near, (place[:, 1] > 0.5).astype(int), 4)

    large, at, many = smooth_fields(6_000, 8, 20.0)
    whole = {"spectrum": Chebyshev(), "leaves_out": False}
    yield "quadrature, paper", partial(regression, large, at, many, Polynomial(2), **whole, **PAPER)
    yield "quadrature, default", partial(regression, large, at, many, **whole)
    yield "partitions", partitions


def maps(model: GraphGPRegressor, counts: np.ndarray, beside: Answers) -> Answers:
    """Rates of maps that the model was fitted to."""
    inputs = np.arange(float(len(counts)))[:, None]
    model.fit(inputs, counts, **beside)
    mean, std = model.predict(inputs, observed=counts, return_std=True)
    left = model.leave_one_out("entry")
    return {"evidence": model.log_marginal_likelihood_, "mean": mean, "std": std, "left out": left.log_density}


def recorded(only: str) -> dict[str, np.ndarray]:
    """Answers of all problems, or those whose name begins in some way."""
    found = {}
    for name, solve in problems():
        if not name.startswith(only):
            continue
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answers = solve()
        print(f"{name}: {time.process_time() - start:.1f} s", flush=True)
        found |= {f"{name} / {what}": np.asarray(value, dtype=float) for what, value in answers.items()}
    return found


def compare(before: dict[str, np.ndarray], after: dict[str, np.ndarray]) -> int:
    """Print what differs; return how many arrays do."""
    different = 0
    for name in sorted(before.keys() & after.keys()):
        old, new = before[name], after[name]
        largest = np.nanmax(np.abs(old), initial=0.0) or 1.0
        is_shaped = old.shape == new.shape and np.array_equal(np.isnan(old), np.isnan(new))
        error = float(np.nanmax(np.abs(old - new), initial=0.0)) / largest if is_shaped else np.inf
        if error > TOLERANCE:
            different += 1
            print(f"{name}: {error:.1e}")
    only = sorted(before.keys() ^ after.keys())
    print(
        f"{different} of {len(before.keys() & after.keys())} arrays differ by more than {TOLERANCE:g}; in one: {only}"
    )
    return different


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=Path, help="file to write answers to")
    parser.add_argument("--compare", type=Path, help="file of answers to compare with")
    parser.add_argument("--only", default="", help="problems whose name begins so")
    chosen = parser.parse_args()
    with threadpool_limits(1):
        found = recorded(chosen.only)
    if chosen.record is not None:
        np.savez_compressed(chosen.record, **found)
    if chosen.compare is not None:
        before = {name: value for name, value in np.load(chosen.compare).items() if name.startswith(chosen.only)}
        raise SystemExit(bool(compare(before, found)))


if __name__ == "__main__":
    main()
