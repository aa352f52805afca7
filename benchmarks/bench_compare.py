"""Four ways to learn a filter from the same signals on the same graph, each in a process of its own.

    python benchmarks/bench_compare.py         about ten minutes

Every method has one thread, so that a busy machine slows them alike; time is of the clock.
Signals are independent draws of ``N(0, g(L)^2 + sigma^2 I)`` with a filter g of degree 3 in the normalised Laplacian:
the one setting in which all four methods model the same thing, since graph random features know nothing of inputs.

exact           eigendecomposition of the Laplacian, `spectrum="exact"`
chebyshev       quadrature from Chebyshev moments, `spectrum="chebyshev"`
truncated       the smallest eigenpairs by scipy's eigsh, sigma=1e-8, as GeometricKernels takes them; the filter is
                learnt on these, and what the signals have outside of their span counts as noise
random walks    fast-graph-gp: g(L) estimated by 100 (or 1,000) random walks a node of up to 3 steps, the powers of the
                filter; its modulation and noise learnt with gpytorch's conjugate gradients and stochastic
                log-determinant, by 100 steps of Adam (400 came to the same answer at 1,000 nodes)
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numba
import numpy as np
from _large import (
    conditions,
    draw_signals,
    filter_error,
    peak_memory,
    relative_error,
    report,
    run_child,
    warm_up,
)
from _reporting import print_table, save
from scipy.optimize import minimize
from scipy.sparse import load_npz as load_sparse
from scipy.sparse import save_npz as save_sparse
from scipy.sparse.linalg import eigsh
from settings import PAPER
from threadpoolctl import threadpool_limits

from spectralgp import Graph, GraphGPRegressor, Polynomial

SIZES = (1_000, 2_000, 5_000, 20_000)
N_SIGNALS = 32
DEGREE = 3
UPPER = 1.5  # filters are compared up to here, about the largest eigenvalue of these graphs
# (1 - lambda / 1.2)^2 (1 - 0.3 lambda): zero inside of the spectrum, where the signals show the noise alone; a filter
# that is zero nowhere could pass part of itself off as noise, and no method could tell
COEFFICIENTS = [1.0, -1 / 0.6 - 0.3, 1 / 1.44 + 0.5, -0.3 / 1.44]
TRUTH = Polynomial.from_coefficients(COEFFICIENTS, laplacian="normalized", scaled=False, upper=2.0)
LARGEST_EXACT = 5_000
EIGENPAIRS = (100, 500)
HALT, ADAM_STEPS, LEARNING_RATE = 0.1, 100, 0.05
LIMIT = 120.0  # seconds for the training of random walks, after which its present state counts


def prepare(n_nodes: int, folder: Path) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    graph = Graph.from_points(rng.random((n_nodes, 2)), 8)
    signals, noise_variance = draw_signals(graph, TRUTH, None, N_SIGNALS, rng)
    save_sparse(folder / "weights.npz", graph.weights, compressed=False)
    np.savez(folder / "rest.npz", signals=signals, noise_variance=noise_variance)
    return {"edges": graph.n_edges}


def estimator(graph: Graph, signals: np.ndarray, spectrum: str) -> dict[str, Any]:
    """Exact and quadrature spectra, through the public estimator."""
    kernel = Polynomial(DEGREE, laplacian="normalized", scaled=False)
    if spectrum == "chebyshev":
        warm_up()
    start = time.perf_counter()
    settings = PAPER | {"center": None, "prior": None, "spectrum": spectrum}
    model = GraphGPRegressor(graph, kernel, **settings).fit(None, signals)
    took = time.perf_counter() - start
    (fit,) = model.fits_
    errors = {"truncation_error_nats": fit.truncation_error, "probe_error_nats": fit.probe_error}
    return {
        "seconds": took,
        "log_likelihood": model.log_marginal_likelihood_,
        "filter_error": filter_error(TRUTH, model.graph_kernel_[0], UPPER),
        "noise_variance": model.noise_variance_,
        **(errors if spectrum == "chebyshev" else {}),
    }


def truncated(graph: Graph, signals: np.ndarray, n_pairs: int) -> dict[str, Any]:
    """Filter learnt on the smallest eigenpairs alone; the rest of the space has the noise's variance."""
    start = time.perf_counter()
    eigenvalues, eigenvectors = eigsh(graph.laplacian("normalized"), n_pairs, sigma=1e-8)
    found = time.perf_counter() - start
    # the input covariance is the identity, so that (5) needs the mean energy of the signals in each mode only
    energies = np.mean((signals @ eigenvectors) ** 2, axis=0)
    n_signals, n_nodes = signals.shape
    rest = float(np.sum(signals**2)) / n_signals - float(energies.sum())
    design = np.polynomial.chebyshev.chebvander(eigenvalues - 1, DEGREE)  # the interval [0, 2]

    def negative(x: np.ndarray) -> tuple[float, np.ndarray]:
        response, noise = design @ x[:-1], np.exp(x[-1])
        variances = response**2 + noise
        outside = n_nodes - n_pairs
        value = np.sum(np.log(variances) + energies / variances) + outside * np.log(noise) + rest / noise
        slope = (1 - energies / variances) / variances
        by_noise = noise * slope.sum() + outside - rest / noise
        gradient = np.append(design.T @ (2 * response * slope), by_noise)
        return 0.5 * n_signals / signals.size * value, 0.5 * n_signals / signals.size * gradient

    spread = float(np.mean(signals**2))
    x0 = np.r_[np.sqrt(spread), np.zeros(DEGREE), np.log(0.1 * spread)]
    positive = {"type": "ineq", "fun": lambda x: design @ x[:-1], "jac": lambda x: np.c_[design, np.zeros(n_pairs)]}
    best = minimize(
        negative, x0, jac=True, method="SLSQP", constraints=positive, options={"maxiter": 500, "ftol": 1e-10}
    )
    grid = np.linspace(0, UPPER, 201)
    learnt = np.polynomial.chebyshev.chebval(grid - 1, best.x[:-1])
    seen = grid <= eigenvalues.max()
    return {
        "seconds": time.perf_counter() - start,
        "eigenpairs_seconds": found,
        "log_likelihood": -signals.size * best.fun - 0.5 * signals.size * np.log(2 * np.pi),
        "filter_error": relative_error(TRUTH.response(grid), learnt),
        "filter_error_on_its_part": relative_error(TRUTH.response(grid[seen]), learnt[seen]),
        "part_of_the_interval": float(eigenvalues.max()) / UPPER,
        "noise_variance": float(np.exp(best.x[-1])),
    }


def random_walks(graph: Graph, signals: np.ndarray, walks_per_node: int) -> dict[str, Any]:
    """fast-graph-gp's sampler, kernel and the operators of gpytorch under them."""
    import gpytorch
    import torch
    from grf_gp.kernels import GeneralGRFKernel
    from grf_gp.sampler import GRFSampler

    warnings.filterwarnings("ignore")  # torch's sparse matrices are in beta, and say so; conjugate gradients that stop
    torch.manual_seed(0)
    torch.set_num_threads(1)
    weights, _ = graph.laplacian_parts("normalized")
    adjacency = torch.sparse_csr_tensor(
        torch.as_tensor(weights.indptr.astype(np.int64)),
        torch.as_tensor(weights.indices.astype(np.int64)),
        torch.as_tensor(weights.data.copy()),
        size=weights.shape,
    )
    start = time.perf_counter()
    walks = GRFSampler(adjacency, walks_per_node, HALT, DEGREE + 1, seed=1, use_tqdm=False, n_processes=1)()
    sampled = time.perf_counter() - start
    columns = torch.as_tensor(signals.T.copy())
    n_nodes, n_signals = columns.shape
    kernel = GeneralGRFKernel(walks, DEGREE + 1).double()
    spread = float(np.std(signals))
    kernel.raw_modulation_function.data = torch.tensor([spread, *DEGREE * [0.0]], dtype=torch.float64)
    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    likelihood.noise = 0.1 * spread**2
    parameters = [*kernel.parameters(), *likelihood.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=LEARNING_RATE)
    done = 0
    while done < ADAM_STEPS and time.perf_counter() - start < LIMIT:
        optimizer.zero_grad()
        features = kernel._get_feature_matrix()
        covariance = (features @ features.transpose(-1, -2)).add_diagonal(likelihood.noise)
        quadratic, logarithm = covariance.inv_quad_logdet(inv_quad_rhs=columns, logdet=True)
        loss = 0.5 * (quadratic / n_signals + logarithm) / n_nodes
        loss.backward()
        optimizer.step()
        done += 1
    took = time.perf_counter() - start
    modulation, noise = kernel.modulation_function.detach().numpy(), float(likelihood.noise)
    grid = np.linspace(0, UPPER, 201)
    found = {
        "seconds": took,
        "walks_seconds": sampled,
        "adam_steps": done,
        "filter_error": relative_error(TRUTH.response(grid), np.polynomial.polynomial.polyval(1 - grid, modulation)),
        "noise_variance": noise,
        "peak_in_training": peak_memory(),
    }
    if n_nodes <= LARGEST_EXACT:  # its own model, without the noise of its estimate
        dense = sum(f * walk.sparse_csr_tensor.to_dense().numpy() for f, walk in zip(modulation, walks, strict=True))
        factor = np.linalg.cholesky(dense @ dense.T + noise * np.eye(n_nodes))
        scaled = np.linalg.solve(factor, signals.T)
        logarithms = 2 * n_signals * np.sum(np.log(np.diag(factor)))
        found["log_likelihood"] = -0.5 * (np.sum(scaled**2) + logarithms + signals.size * np.log(2 * np.pi))
    return found


def measure(method: str, folder: Path) -> dict[str, Any]:
    graph, rest = Graph(load_sparse(folder / "weights.npz")), np.load(folder / "rest.npz")
    signals = rest["signals"]
    before = peak_memory()
    numba.set_num_threads(1)
    with threadpool_limits(1, "blas"):
        if method in ("exact", "chebyshev"):
            found = estimator(graph, signals, method)
        elif method.startswith("random walks"):
            found = random_walks(graph, signals, int(method.split()[2]))
        else:
            found = truncated(graph, signals, int(method.split()[1]))
    peak = found.pop("peak_in_training", peak_memory())
    noise_ratio = found.pop("noise_variance") / float(rest["noise_variance"])
    return {"nodes": graph.n_nodes, **found, "noise_ratio": noise_ratio, "gigabytes": {"before": before, "peak": peak}}


def main() -> None:
    runs = []
    for n_nodes in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            prepared = run_child(__file__, "prepare", n_nodes, folder)
            print("prepared", n_nodes, prepared, flush=True)
            methods = ["exact", "chebyshev", *(f"truncated {pairs}" for pairs in EIGENPAIRS), "random walks 100"]
            methods += ["random walks 1000"] if n_nodes == SIZES[0] else []
            for method in methods:
                if method == "exact" and n_nodes > LARGEST_EXACT:
                    found: dict[str, Any] = {"failed": f"not tried beyond {LARGEST_EXACT:,} nodes"}
                else:
                    found = run_child(__file__, method, n_nodes, folder, limit=2 * LIMIT)
                runs.append({"method": method, "n_nodes": n_nodes, **found})
                print(runs[-1], flush=True)
    rows = [
        [
            f"{run['n_nodes']:,}",
            run["method"],
            run.get("failed") or f"{run['seconds']:.1f}",
            *([f"{run['gigabytes']['peak']:.2f}"] if "gigabytes" in run else [""]),
            f"{run['log_likelihood']:,.0f}" if "log_likelihood" in run else "",
            f"{run['filter_error']:.1%}" if "filter_error" in run else "",
            f"{run['noise_ratio']:.4f}" if "noise_ratio" in run else "",
        ]
        for run in runs
    ]
    header = ["nodes", "method", "seconds", "GB", "log likelihood", "filter error", "noise"]
    print_table("the same signals, four methods", header, rows)
    settings = {
        "n_signals": N_SIGNALS,
        "halting_probability": HALT,
        "adam_steps": ADAM_STEPS,
        "learning_rate": LEARNING_RATE,
        "limit_seconds": LIMIT,
        "coefficients": COEFFICIENTS,
        "upper": UPPER,
    }
    save("compare", {"conditions": conditions(), "settings": settings, "runs": runs})


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    elif sys.argv[1] == "prepare":
        report(prepare(int(sys.argv[2]), Path(sys.argv[3])))
    else:
        report(measure(sys.argv[1], Path(sys.argv[3])))
