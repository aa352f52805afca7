"""The grey matter of the MNI152 template, voxel by voxel: recover a known filter, predict, draw one slice.

    python benchmarks/bench_brain.py           about ten minutes; also draws docs/images/brain-slice.png

The graph joins the voxels of one cubic millimetre whose grey-matter probability, in the template that nilearn's wheel
carries, exceeds 0.2 to those of their 26 neighbours that do so too, with one over the distance as the weight. Two sets
of 32 signals with two inputs: of a polynomial low-pass filter of degree 3, learnt as such, which hardly reaches beyond
the nearest voxels; and of a diffusion filter that reaches a few voxels far, learnt as such too, which is the one drawn.
"""

from __future__ import annotations

import sys
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from _large import (
    INPUT_KERNEL,
    TRUTH,
    conditions,
    draw_signals,
    filter_error,
    one_blas_thread,
    peak_memory,
    present_memory,
    report,
    run_child,
    warm_up,
    watched_stages,
)
from _reporting import ROOT, print_table, save
from scipy.sparse import load_npz as load_sparse
from scipy.sparse import save_npz as save_sparse
from settings import PAPER

from spectralgp import Diffusion, Graph, GraphGPRegressor, Polynomial
from spectralgp.model.fields import standard_deviation

THRESHOLD = 0.2
N_SIGNALS = 32
HEIGHT = 8  # of the slice in millimetres above the origin: basal ganglia and thalamus
SPACING = 8  # voxels between those of the slice whose standard deviation is computed exactly
PICTURE = ROOT / "docs" / "images" / "brain-slice.png"
FILTERS = {
    "polynomial": (TRUTH, Polynomial(3)),
    "diffusion": (
        Diffusion(strength=60.0, amplitude=1.0, laplacian="combinatorial", scaled=True),
        # bounded: on its way through filters far steeper than any answer the search would ask for 4,097 moments
        Diffusion(strength=20.0, strength_bounds=(1.0, 300.0), laplacian="combinatorial", scaled=True),
    ),
}


def voxel_graph() -> tuple[Graph, np.ndarray, np.ndarray]:
    """Graph of the grey-matter voxels, their positions in the template's grid, and its affine map to millimetres."""
    from nilearn.datasets import load_mni152_gm_template

    image = load_mni152_gm_template(resolution=1)
    inside = np.rint(255 * image.get_fdata()) > np.rint(255 * THRESHOLD)  # bytes in the file, rounded otherwise
    number = np.full(np.array(inside.shape) + 2, -1, dtype=np.int32)  # a border of nothing, so that moves stay inside
    number[1:-1, 1:-1, 1:-1][inside] = np.arange(inside.sum(), dtype=np.int32)
    places = np.flatnonzero(number >= 0)
    sources, targets, weights = [], [], []
    for move in product((-1, 0, 1), repeat=3):
        if move <= (0, 0, 0):  # one of each pair of opposite moves
            continue
        jump = int(np.dot(move, [number.shape[1] * number.shape[2], number.shape[2], 1]))
        neighbours = number.ravel()[places + jump]
        joined = neighbours >= 0
        sources.append(np.flatnonzero(joined).astype(np.int32))
        targets.append(neighbours[joined])
        weights.append(np.full(sources[-1].size, 1 / np.linalg.norm(move)))
    columns = (np.concatenate(parts) for parts in (sources, targets, weights))
    edges = dict(zip(("source", "target", "weight"), columns, strict=True))
    voxels = np.argwhere(inside)
    return Graph.from_edges(edges, n_nodes=len(voxels)), voxels, image.affine


def prepare(folder: Path) -> dict[str, Any]:
    """The graph and both sets of signals, in files."""
    start = time.perf_counter()
    graph, voxels, affine = voxel_graph()
    took = time.perf_counter() - start
    matrix = graph.weights
    built = (matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes) / 1e9
    peak = peak_memory()
    save_sparse(folder / "weights.npz", matrix, compressed=False)
    np.savez(folder / "voxels.npz", voxels=voxels, affine=affine)
    for name, (truth, _) in FILTERS.items():
        rng = np.random.default_rng(0)
        inputs = rng.standard_normal(
            (N_SIGNALS + 1, 2)
        )  # the last is the new one, whose signal is kept for the picture
        signals, noise_variance = draw_signals(graph, truth, inputs, N_SIGNALS + 1, rng)
        scale = 1 / np.sqrt(np.mean(signals**2))
        np.save(folder / f"{name}.npy", scale * signals)
        np.savez(folder / f"{name}.npz", inputs=inputs, noise_variance=scale**2 * noise_variance, scale=scale)
        del signals
    sizes = np.bincount(graph.components)
    return {
        "threshold": THRESHOLD,
        "nodes": graph.n_nodes,
        "edges": graph.n_edges,
        "neighbours": 2 * graph.n_edges / graph.n_nodes,
        "components": int(sizes.size),
        "largest_component": int(sizes.max()),
        "seconds": took,
        "gigabytes": {"peak": peak, "result": built},
    }


def fit(name: str, folder: Path) -> dict[str, Any]:
    """Learn through the public estimator and predict at one new input; of the diffusion filter, draw the slice."""
    graph = Graph(load_sparse(folder / "weights.npz"))
    signals, rest = np.load(folder / f"{name}.npy", mmap_mode="r"), np.load(folder / f"{name}.npz")
    inputs, scale = rest["inputs"], float(rest["scale"])
    truth, kernel = FILTERS[name]
    training = np.ascontiguousarray(signals[:N_SIGNALS])
    warm_up()
    watch = watched_stages()
    before = present_memory()
    model = GraphGPRegressor(graph, kernel, INPUT_KERNEL, **PAPER, prior=None, spectrum="chebyshev")
    with one_blas_thread():
        start = time.perf_counter()
        with watch.lap("learning"):
            model.fit(inputs[:N_SIGNALS], training)
        fitted = time.perf_counter()
        with watch.lap("posterior mean at 1 input"):
            mean = model.predict(inputs[N_SIGNALS:])[0]
        ended = time.perf_counter()
        peak = peak_memory()
        (learnt,) = model.fits_
        kept = np.array(signals[N_SIGNALS])
        residual = kept - mean
        found = {
            "nodes": graph.n_nodes,
            "seconds": {"fit": fitted - start, "mean": ended - fitted, "total": ended - start},
            "gigabytes": {"before": before, "peak": peak, "signals": training.nbytes / 1e9},
            "filter_error": filter_error(truth.scaled_by(scale), model.graph_kernel_[0]),
            "noise_ratio": model.noise_variance_ / float(rest["noise_variance"]),
            "length_scale": float(model.input_kernel_[0].length_scale),
            "truncation_error_nats": learnt.truncation_error,
            "probe_error_nats": learnt.probe_error,
            "log_likelihood": model.log_marginal_likelihood_,
            "converged": learnt.converged,
            "evaluations": learnt.n_evaluations,
            "moments": int(model.spectrum_.eigenvalues.size),
            "held_out": {
                "mean_square_error": float(np.mean(residual**2)),
                "variance": float(np.var(kept)),
                "noise_variance": float(rest["noise_variance"]),
            },
        }
        if name == "diffusion":
            found["slice"] = slice_of(model, inputs[N_SIGNALS:], mean, kept, folder)
    return {**found, "stages": watch.seconds}


def slice_of(
    model: GraphGPRegressor, new: np.ndarray, mean: np.ndarray, kept: np.ndarray, folder: Path
) -> dict[str, Any]:
    """Mean on a slice, standard deviations at some of its voxels exactly, and how probes would have done there."""
    with np.load(folder / "voxels.npz") as file:
        voxels, affine = file["voxels"], file["affine"]
    level = round((HEIGHT - affine[2, 3]) / affine[2, 2])
    nodes = np.flatnonzero(voxels[:, 2] == level)
    chosen = nodes[np.all(voxels[nodes, :2] % SPACING == 0, axis=1)]
    prediction = model.posterior_.at(new)
    start = time.perf_counter()
    exact = standard_deviation(prediction, include_noise=True, nodes=chosen)[0]
    took = time.perf_counter() - start
    start = time.perf_counter()
    variance = prediction.variance()[0]
    by_probes = time.perf_counter() - start
    noise = model.noise_variance_
    differences = variance[chosen] - (exact**2 - noise)
    scores = (kept[chosen] - mean[chosen]) / exact
    draw_slice(voxels, affine, nodes, chosen, level, mean, kept, exact)
    return {
        "millimetres": HEIGHT,
        "voxels": int(nodes.size),
        "exact_voxels": int(chosen.size),
        "exact_seconds": took,
        "mean_variance_without_noise": float(np.mean(exact**2) - noise),
        "probes_seconds": by_probes,
        "probes_stated_error": float(prediction.variance_error[0]),
        "probes_found_error": float(np.sqrt(np.mean(differences**2))),
        "standardised_residuals": {"mean": float(scores.mean()), "std": float(scores.std()), "n": int(scores.size)},
    }


def draw_slice(
    voxels: np.ndarray,
    affine: np.ndarray,
    nodes: np.ndarray,
    chosen: np.ndarray,
    level: int,
    mean: np.ndarray,
    kept: np.ndarray,
    std: np.ndarray,
) -> None:
    """Observed signal, prediction and its standard deviation on one axial slice."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    low, high = voxels[nodes, :2].min(axis=0) - 4, voxels[nodes, :2].max(axis=0) + 5
    corner, opposite = affine[:2, :2] @ low + affine[:2, 3], affine[:2, :2] @ high + affine[:2, 3]
    extent = (corner[0] - 0.5, opposite[0] - 0.5, corner[1] - 0.5, opposite[1] - 0.5)

    def picture(values: np.ndarray, places: np.ndarray, step: int = 1) -> np.ndarray:
        image = np.full(high - low, np.nan)
        for right, ahead in product(range(step), repeat=2):
            x, y = voxels[places, :2].T - low[:, None] + np.array([[right], [ahead]]) - step // 2
            image[x, y] = values
        return image.T

    grey = picture(np.ones(nodes.size), nodes)
    limit = float(np.percentile(np.abs(kept[nodes]), 99))
    panels = (
        (
            "signal, not used in training",
            picture(kept[nodes], nodes),
            "RdBu_r",
            (-limit, limit),
            "units of the signals",
        ),
        ("prediction", picture(mean[nodes], nodes), "RdBu_r", (-limit, limit), "units of the signals"),
        (f"its standard deviation, every {SPACING}th voxel", picture(std, chosen, SPACING - 1), "viridis", None, ""),
    )
    figure, axes = plt.subplots(1, 3, figsize=(10.5, 4.6), layout="constrained")
    for axis, (title, image, colours, limits, label) in zip(axes, panels, strict=True):
        axis.set_facecolor("white")
        axis.imshow(grey, extent=extent, origin="lower", cmap="Greys", vmin=0, vmax=6, interpolation="nearest")
        bounds = {} if limits is None else {"vmin": limits[0], "vmax": limits[1]}
        shown = axis.imshow(image, extent=extent, origin="lower", cmap=colours, interpolation="nearest", **bounds)
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("left to right (mm)")
        figure.colorbar(shown, ax=axis, orientation="horizontal", shrink=0.85, label=label or "units of the signals")
    axes[0].set_ylabel("back to front (mm)")
    figure.suptitle(f"{len(voxels):,} grey-matter voxels of MNI152: the slice at z = {HEIGHT} mm", fontsize=11)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURE, dpi=100)
    plt.close(figure)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        graph = run_child(__file__, "prepare", folder)
        print(graph, flush=True)
        fits = {}
        for name in FILTERS:
            fits[name] = run_child(__file__, name, folder)
            print(name, fits[name], flush=True)
    rows = [
        [name, f"{run['seconds']['fit']:.1f}", f"{run['seconds']['mean']:.1f}", f"{run['gigabytes']['peak']:.2f}",
         f"{run['filter_error']:.2%}", f"{run['noise_ratio']:.4f}"]
        for name, run in fits.items() if "failed" not in run
    ]  # fmt: skip
    print_table("grey matter of MNI152, 32 signals", ["filter", "fit s", "mean s", "GB", "filter error", "noise"], rows)
    save("brain", {"conditions": conditions(), "graph": graph, "fits": fits})


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    elif sys.argv[1] == "prepare":
        report(prepare(Path(sys.argv[2])))
    else:
        report(fit(sys.argv[1], Path(sys.argv[2])))
