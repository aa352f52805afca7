"""Recovery of known filters: median relative error over 20 seeds, noise given and learnt, with and without prior.

    python benchmarks/bench_recovery.py            known filters
    python benchmarks/bench_recovery.py --noise    the noise beside residuals, half a minute

The bar speaks of one sensor-type graph and 20 seeds, and the answer depends on the graph when the noise is learnt, so
both readings are shown: every seed with a graph of its own, and each of ten graphs held fixed over the seeds.

The noise is 0.1 beside signals and residuals of variance one, on 300 nodes with 60 signals; the bar is 105 of 120
within 5%.
"""

from __future__ import annotations

import sys

import numpy as np
from _reporting import print_table, save
from recovery import BARS, FILTERS, recovery_error
from sklearn.gaussian_process.kernels import RBF

from spectralgp import Graph, GraphGPRegressor, Polynomial, decompose

N_SEEDS = 20
N_GRAPHS = 10
NOISE, NOISE_SEEDS, NEAR, NOISE_BAR = 0.1, 10, 0.05, 105
SIGNALS = {
    "exp(-5 l)": lambda at: np.exp(-5 * at),
    "exp(-10 l)": lambda at: np.exp(-10 * at),
    "(1 - l)^2": lambda at: (1 - at) ** 2,
    "band": lambda at: np.exp(-(((at - 0.4) / 0.15) ** 2)),
}
RESIDUALS = {
    "none": lambda at: 0 * at,
    "0.3 (1 - l)": lambda at: 0.3 * (1 - at),
    "0.5 exp(-3 l)": lambda at: 0.5 * (np.exp(-3 * at) - np.exp(-3)),
}


def noise_ratio(signal: str, residual: str, seed: int, given: Polynomial | str) -> float:
    """Learnt noise variance over the true one."""
    rng = np.random.default_rng(seed)
    graph = Graph.from_points(rng.random((300, 2)), 8)
    spectrum = decompose(graph, scaled=True)
    frequencies, inputs = spectrum.eigenvalues, rng.uniform(0, 10, (60, 1))
    root = np.linalg.cholesky(RBF(1.5)(inputs) + 1e-8 * np.eye(60))
    clean = root @ (rng.standard_normal((60, 300)) * SIGNALS[signal](frequencies))
    clean = (clean + rng.standard_normal((60, 300)) * RESIDUALS[residual](frequencies)) @ spectrum.eigenvectors.T
    signals = clean / clean.std() + np.sqrt(NOISE) * rng.standard_normal(clean.shape)
    model = GraphGPRegressor(graph, Polynomial(3), RBF(1.0), center=None, scale="global", residual=given)
    return model.fit(inputs, signals).noise_variance_ / NOISE


def recover_noise() -> None:
    """Noise over truth beside chosen and free residuals."""
    rows, result, total = [], {}, dict.fromkeys(("auto", "Polynomial(2)"), 0)
    for signal in SIGNALS:
        for residual in RESIDUALS:
            row = [signal, residual]
            for name, given in (("auto", "auto"), ("Polynomial(2)", Polynomial(2))):
                found = np.array([noise_ratio(signal, residual, seed, given) for seed in range(NOISE_SEEDS)])
                near = int(np.sum(np.abs(found - 1) <= NEAR))
                total[name] += near
                row += [f"{found.mean():.3f} ± {found.std():.3f}", f"{near} of {NOISE_SEEDS}"]
                result[f"{signal}, residual {residual}, {name}"] = found.tolist()
            rows.append(row)
    header = ["signal", "residual", "auto", "within 5%", "Polynomial(2)", "within 5%"]
    print_table("noise over truth", header, rows)
    n_all = len(rows) * NOISE_SEEDS
    print({name: f"{near} of {n_all}" for name, near in total.items()}, "bar:", NOISE_BAR)
    save("noise_recovery", {"bar": NOISE_BAR, "within 5%": total, "of": n_all, "noise over truth": result})


def medians(name: str, prior: str | None, give_noise: bool) -> tuple[float, list[float]]:
    """Median error with a graph of its own for every seed, and for each fixed graph."""
    settings = {"give_noise": give_noise, "prior": prior}
    own = [recovery_error(name, seed, graph_seed=seed, **settings) for seed in range(N_SEEDS)]
    fixed = [
        [recovery_error(name, seed, graph_seed=graph, **settings) for seed in range(N_SEEDS)]
        for graph in range(1, N_GRAPHS + 1)
    ]
    return float(np.median(own)), np.median(fixed, axis=1).tolist()


def main() -> None:
    if "--noise" in sys.argv:
        recover_noise()
        return
    rows, result = [], {}
    for name in FILTERS:
        for prior in (None, "weak"):
            for give_noise, bar in zip((True, False), BARS[name], strict=True):
                own, fixed = medians(name, prior, give_noise)
                noise = "given" if give_noise else "learnt"
                met = ["", "", ""]
                if prior is None:
                    met = [f"{bar:.0%}", "yes" if own <= bar else "NO", f"{sum(m <= bar for m in fixed)} of {N_GRAPHS}"]
                spread = f"{min(fixed):.1%} to {max(fixed):.1%}"
                rows.append([name, str(prior), noise, f"{own:.1%}", f"{fixed[0]:.1%}", spread, *met])
                result[f"{name}, prior {prior}, noise {noise}"] = {"own graphs": own, "fixed graphs": fixed}
    header = ["filter", "prior", "noise", "own graphs", "graph 1", "ten graphs", "bar", "met, own", "met, fixed"]
    print_table(f"filter recovery, median error of {N_SEEDS} seeds", header, rows)
    save("recovery", {"n_seeds": N_SEEDS, "median_relative_error": result})


if __name__ == "__main__":
    main()
