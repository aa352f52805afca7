"""Write docs/performance.md from the files in benchmarks/results, so that no figure in it is typed by hand.

python benchmarks/write_performance.py
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from _dask_page import section as dask_section
from _peers_page import section as peers_section
from _reporting import RESULTS, ROOT

PAGE = ROOT / "docs" / "performance.md"
Result = dict[str, Any]


def load(name: str) -> Result | None:
    """A file of results; None where it has not been measured."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table in Markdown, with numbers to the right."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"


def verdict(met: bool) -> str:
    return "met" if met else "**not met**"


def command(script: str) -> str:
    return f"Measured by `.venv-bench/bin/python benchmarks/{script}`"


def machine(result: Result) -> str:
    """One sentence about the machine and what else it was doing."""
    found = result["conditions"]
    load = found["load_average"][1]
    busy = "the machine had other work too" if load > 1.25 * result["machine"]["cpus"] else "it was otherwise idle"
    return (
        f"{result['machine']['cpus']} cores, {found['memory_gigabytes']:.0f} GB, Python {result['machine']['python']}; "
        f"{found['numba_threads']} threads for the compiled loops, one for BLAS. Load average over the last five "
        f"minutes at the end of the run: {load:.1f}, so {busy}."
    )


def fits_of_large(result: Result) -> list[str]:
    rows = [
        [f"{run['nodes']:,}", f"{run['edges']:,}", f"{run['seconds']['fit']:.1f} s", f"{run['seconds']['mean']:.2f} s",
         f"{run['gigabytes']['peak']:.2f} GB", f"{run['filter_error']:.2%}", f"{run['noise_ratio']:.4f}",
         f"{run['truncation_error_nats']:.1g}", f"{run['probe_error_nats']:.1f}"]
        for run in result["fits"] if "failed" not in run
    ]  # fmt: skip
    header = ["nodes", "edges", "fit", "mean at 5 inputs", "peak memory", "filter error", "noise / truth",
              "truncation (nats)", "probes (nats)"]  # fmt: skip
    largest, exponents = result["fits"][-1], result["exponents"]
    stages = sorted(largest["stages"].items(), key=lambda item: -item[1])
    total = sum(seconds for _, seconds in stages)
    shares = [[name, f"{seconds:.2f} s", f"{seconds / total:.0%}"] for name, seconds in stages]
    bars = result["bars_met"]
    inside = bars["time over edges, exponent 1.0 +- 0.1"]
    return [
        "The paper's model, `GraphGPRegressor(graph, Polynomial(3), prior=None, residual=None, carry=None, "
        "center=\"global\", scale=\"global\", spectrum=\"chebyshev\")`, on random points in the "
        "square, in random order, joined to their 8 nearest neighbours, with 32 signals of a known filter and 10% "
        "noise. Each size runs in a process of its own; peak memory is that of the whole process, with graph and "
        "signals in it. The two errors of the log likelihood are those the fit itself states.\n",
        table(header, rows),
        f"* A million nodes in 120 s: {verdict(bars['fit and mean of a million nodes in 120 s'])} "
        f"({largest['seconds']['total']:.1f} s). In 4 GB: {verdict(bars['in 4 GB'])} "
        f"({largest['gigabytes']['peak']:.2f} GB).",
        f"* Time over the number of edges has the exponent {exponents['total']:.2f} (bar: 1.0 +- 0.1, "
        f"{verdict(inside)}); the passes over the graph alone, {exponents['passes']:.2f}; in seconds of the "
        f"processor rather than of the clock, which a busy machine disturbs less, {exponents['cpu']:.2f}. "
        f"Learning, whose cost does not grow with the graph, is {result['fits'][0]['stages']['learning']:.1f} s of "
        f"the smallest size's {result['fits'][0]['seconds']['total']:.1f} s.",
        f"* Compiling the loops, or reading them from Numba's cache, took {largest['warm_up_seconds']:.1f} s "
        "before that and is not counted.\n",
        f"Where the time of the largest goes:\n\n{table(['stage', 'time', 'share'], shares)}",
    ]  # fmt: skip


def steps_of_large(result: Result) -> list[str]:
    step = result["steps"]
    rows = [[name, f"{1e3 * seconds:.0f} ms"] for name, seconds in step["seconds"].items()]
    met = result["bars_met"]["fused step within 4 times three copies"]
    return [
        f"One step of the recurrence on {step['nodes']:,} x 32 numbers, median of {step['repeats']} interleaved "
        "runs:\n",
        table(["step", "time"], rows),
        f"* The fused step takes {step['over_three_copies_into_place']:.2f} times as long as three NumPy copies of the "
        f"block into memory that is there already (bar: 4, {verdict(met)}), and {step['over_three_copies']:.2f} "
        "times as long as three `block.copy()`, which also pay for new pages.",
        f"* Ordering the nodes makes it {step['ordering_gains']:.1f} times faster on this randomly ordered graph "
        f"and costs {step['ordering_seconds']:.1f} s once. Fusing makes it {step['fusing_gains']:.1f} times faster "
        "than SciPy's product and a subtraction on the ordered graph.\n",
    ]


def building(result: Result) -> list[str]:
    rows = []
    for run in result["building"]:
        if "failed" in run:
            rows.append([f"`{run['how']}`", "", "", run["failed"], "", "", ""])
            continue
        memory = run["gigabytes"]
        sizes = [f"{memory['result']:.2f} GB", f"{memory['peak']:.2f} GB", f"{run['peak_over_result']:.1f}"]
        rows.append([f"`{run['how']}`", f"{run['nodes']:,}", f"{run['edges']:,}", f"{run['seconds']:.1f} s", *sizes])
    header = ["builder", "nodes", "edges", "time", "result", "peak of the process", "memory taken / result"]
    return [
        "Building graphs: `from_points` with 8 neighbours, `from_edges` with the arrays of a lattice, four edges a "
        "node. The last column is what the process took on top of the points or edges it was given, the result "
        "included, over the size of the result.\n",
        table(header, rows),
    ]


def large() -> list[str]:
    result = load("large")
    title = ["## A million nodes on two cores\n"]
    if result is None:
        return [*title, "Not measured yet: run `make bench`.\n"]
    introduction = [f"{command('bench_large.py')}. {machine(result)}\n"]
    return [*title, *introduction, *fits_of_large(result), *steps_of_large(result), *building(result)]


def peers() -> list[str]:
    result = load("peers")
    title = ["## Other Gaussian processes\n"]
    if result is None:
        return [*title, "Not measured yet: run `make bench`.\n"]
    options = " ".join(f"--{name} {result['settings'][name]:g}" for name in ("threads", "limit", "jobs"))
    introduction = f"{command(f'bench_peers.py {options}')}. {machine(result)}"
    return [*title, *peers_section(result, table, verdict, introduction)]


def dask() -> list[str]:
    result = load("dask")
    title = ["## Partitions on Dask\n"]
    if result is None:
        return [*title, "Not measured yet: run `make bench`.\n"]
    fits = (load("large") or {"fits": []})["fits"]
    learning = fits[-1]["stages"]["learning"] if fits else 0.0
    introduction = f"{command('bench_dask.py')}. {machine(result)}"
    return [*title, *dask_section(result, learning, table, verdict, introduction)]


def compare() -> list[str]:
    result = load("compare")
    title = ["## Against other methods\n"]
    if result is None:
        return [*title, "Not measured yet: run `make bench`.\n"]
    rows = []
    for run in result["runs"]:
        first = [f"{run['n_nodes']:,}", run["method"]]
        if "failed" in run:
            rows.append([*first, run["failed"], "", "", "", ""])
            continue
        likelihood = f"{run['log_likelihood']:,.0f}" if "log_likelihood" in run else "too large to check"
        if run.get("probe_error_nats"):
            likelihood += f" (+- {run['probe_error_nats']:.0f})"
        steps = run.get("adam_steps", result["settings"]["adam_steps"])
        stopped = "" if steps == result["settings"]["adam_steps"] else f", stopped after {steps} steps"
        error = f"{run['filter_error']:.1%}"
        if "filter_error_on_its_part" in run:
            error += f" ({run['filter_error_on_its_part']:.1%} on the {run['part_of_the_interval']:.0%} it sees)"
        costs = [f"{run['seconds']:.1f} s{stopped}", f"{run['gigabytes']['peak']:.2f} GB"]
        rows.append([*first, *costs, likelihood, error, f"{run['noise_ratio']:.3f}"])
    settings = result["settings"]
    header = ["nodes", "method", "time", "peak memory", "log likelihood", "filter error", "noise / truth"]
    return [
        *title,
        f"{command('bench_compare.py')}. {machine(result)} Here every method has one thread.\n",
        f"{settings['n_signals']} independent signals of a filter of degree 3 in the normalised Laplacian, on an "
        "8-nearest-neighbour graph, the same for all. Independent, because graph random features know nothing of "
        "inputs. What each method models:\n",
        "* *exact*: all eigenpairs of the Laplacian; the reference.",
        "* *chebyshev*: the quadrature of this library, 32 probes; its likelihood comes with a standard error.",
        "* *truncated k*: the k smallest eigenpairs from `eigsh`, as GeometricKernels takes them, with the same "
        "polynomial; outside of their span it sees nothing but noise: a model for signals of few frequencies, which "
        "these are not.",
        "* *random walks w*: fast-graph-gp, the same polynomial estimated by w random walks a node, learnt by "
        f"{settings['adam_steps']} steps of Adam, at most {settings['limit_seconds']:.0f} s. Its filter is that of "
        "a random estimate of the covariance, which more walks improve; it was made for one partly observed "
        "signal, not for this. The likelihood is that of its own estimate, by a dense factorisation that is "
        "not in its time.\n",
        table(header, rows),
    ]  # fmt: skip


def brain() -> list[str]:
    result = load("brain")
    title = ["## The grey matter of a brain\n"]
    if result is None:
        return [*title, "Not measured yet: run `make bench`.\n"]
    graph = result["graph"]
    rows = [
        [name, f"{run['seconds']['fit']:.1f} s", f"{run['seconds']['mean']:.1f} s",
         f"{run['gigabytes']['peak']:.2f} GB", f"{run['filter_error']:.2%}",
         f"{run['noise_ratio']:.4f}", f"{run['probe_error_nats']:.0f} nats",
         f"{run['held_out']['mean_square_error']:.3f} ({run['held_out']['noise_variance']:.3f})"]
        for name, run in result["fits"].items() if "failed" not in run
    ]  # fmt: skip
    header = ["filter", "fit", "mean at 1 input", "peak memory", "filter error", "noise / truth", "error by probes",
              "error at the new input (noise)"]  # fmt: skip
    failed = [f"* {name}: {run['failed']}" for name, run in result["fits"].items() if "failed" in run]
    lines = [
        *title,
        f"{command('bench_brain.py')}. {machine(result)}\n",
        f"{graph['nodes']:,} voxels of one cubic millimetre with a grey-matter probability above "
        f"{graph['threshold']} in the MNI152 template of nilearn's wheel, {graph['edges']:,} edges to the 26 "
        f"neighbours weighted by one over the distance ({graph['neighbours']:.1f} neighbours on average; "
        f"{graph['components']} components, the largest of {graph['largest_component']:,}). Reading the template "
        f"and building the graph: {graph['seconds']:.1f} s. 32 signals of a known filter with 10% noise, each of two "
        "inputs; the signals are made up, the graph is real.\n",
        table(header, rows),
        *failed,
        "The last column is the mean squared error at an input that was not learnt from, and the variance of its "
        "noise, which no prediction can go below; the signals have variance one.\n",
    ]
    part = result["fits"].get("diffusion", {}).get("slice")
    if part:
        scores = part["standardised_residuals"]
        lines += [
            "![One axial slice: signal, prediction and standard deviation](images/brain-slice.png)\n",
            f"The slice has {part['voxels']:,} voxels. Standard deviations are exact at {part['exact_voxels']:,} "
            f"of them, in {part['exact_seconds']:.0f} s; residuals there divided by them have mean "
            f"{scores['mean']:.2f} and standard deviation {scores['std']:.2f}. Probes give variances at all voxels "
            f"in {part['probes_seconds']:.0f} s, with a stated error of {part['probes_stated_error']:.2g} (found "
            f"at the exact voxels: {part['probes_found_error']:.2g}) where the variance without noise is "
            f"{part['mean_variance_without_noise']:.2g}"
            + ("; with covariances that reach this far, they are of no use.\n"
               if part["probes_stated_error"] > 0.5 * part["mean_variance_without_noise"] else ".\n"),
        ]  # fmt: skip
    return lines


def gpu() -> list[str]:
    result = load("gpu")
    title = ["## One GPU\n"]
    if result is None:
        return [*title, "Not measured yet: run `python benchmarks/gpu.py` on a machine with a GPU and CuPy.\n"]
    bars = {"10^7 nodes": 6.0, "10^8 nodes": 40.0}
    rows, verdicts = [], []
    for name, bar in bars.items():
        run = result.get(name)
        if run is None:
            continue
        total = run["seconds"]["total"]
        rows.append([f"{run['nodes']:,}", f"{run['stored_weights']:,}", run["signals"], f"{total:.1f} s",
                     f"{run['fused_step_ms']:.1f} ms", f"{run['device_bytes'] / 1e9:.0f} GB",
                     f"{run['filter_error']:.3%}", f"{run['noise_ratio']:.5f}"])  # fmt: skip
        accurate = run["filter_error"] <= 0.02 and abs(run["noise_ratio"] - 1) <= 0.005
        most = max((part for part in run["seconds"] if part != "total"), key=run["seconds"].__getitem__)
        verdicts.append(
            f"* {name}: under {bar:.0f} s, {verdict(total <= bar)}; noise within 0.5% and filter within 2%, "
            f"{verdict(accurate)}. The longest part is {most}, {run['seconds'][most]:.1f} s. "
            f"The solver {'converged' if run['converged'] else '**did not report convergence**'}."
        )
    header = ["nodes", "stored weights", "signals", "fit + mean at 5 inputs", "fused step", "device memory",
              "filter error", "noise / truth"]  # fmt: skip
    kinds = [
        [name, *(f"{found[part]:.1e}" for part in ("log_likelihood", "noise", "mean", "std", "log_density"))]
        for name, found in result["agreement"].items()
    ]
    parts, compared = [], result.get("partitions", {})
    if compared:
        names = list(compared["float64"])
        rows_of = [[dtype, *(f"{found[name]:.1e}" for name in names)] for dtype, found in compared.items()]
        parts = [
            "A graph of 20,000 nodes in five partitions computed on the device, their tasks in turn (Dask is not on "
            "that machine), against the whole graph on the CPU; differences as shares of the largest value:\n",
            table(["precision", *names], rows_of),
        ]
    return [
        *title,
        f"Measured by `python benchmarks/gpu.py` on one {result['device']}: lattices built on the device, signals "
        "of a known filter, times after the data are there.\n",
        table(header, rows),
        *verdicts,
        "\nThe estimator with signals of each library against the exact spectrum on the CPU, 2,000 nodes; "
        "differences are relative for the log likelihood, the noise and the log density, absolute for means and "
        "standard deviations:\n",
        table(["signals", "log likelihood", "noise", "mean", "std", "log density"], kinds),
        *parts,
    ]


def small() -> list[str]:
    result = load("fit")
    if result is None:
        return []
    limits = {"degree 3": 10, "degree 3, prior=None": 10, "auto": 100}
    rows = [
        [name, f"{1e3 * result['seconds'][name]:.0f} ms", f"{ratio:.1f}", limits[name], verdict(ratio <= limits[name])]
        for name, ratio in result["ratio_to_eigh_400"].items()
    ]
    difference = result["import_seconds"]["difference"]
    return [
        "## Small graphs\n",
        f"{command('bench_fit.py')}. {result['data']}, one thread, against one eigendecomposition of a 400 x 400 "
        f"matrix ({1e3 * result['seconds']['eigh']:.0f} ms):\n",
        table(["fit", "time", "over `eigh`", "bar", ""], rows),
        f"* Importing takes {difference:+.2f} s over scikit-learn's `gaussian_process` (bar: 0.2 s, "
        f"{verdict(difference <= 0.2)}).\n",
    ]


def learning() -> list[str]:
    result = load("learning")
    if result is None:
        return []
    rows = []
    for run in result["runs"]:
        after = run["after"]
        met = after["converged"] and after["evaluations"] <= run["bar"]
        size = f"{run['nodes']:,} x {run['signals']}"
        rows.append([size, f"{run['strength']:g}", after["evaluations"], run["bar"], verdict(met)])
    return [
        "## Learning\n",
        f"{command('bench_learning.py')}: evaluations of the likelihood with its gradient that degree "
        f"{result['degree']} takes on smooth random fields, noise 10 dB below, from all its starts. "
        "`--before CHECKOUT` compares with another checkout:\n",
        table(["nodes x signals", "smoothing", "evaluations", "bar", ""], rows),
    ]


def default() -> list[str]:
    result = load("default")
    if result is None:
        return []
    against = {
        "weather": "30 signals on 45 nodes, over `eigh` of 400 x 400",
        "weather in time order": "the same in time order, where models of changes are tried too",
        "1,000 x 200": "smooth fields, over `Polynomial(3)` in the paper's model",
        "20,000 x 32": "smooth fields by quadrature, over the passes alone",
        "20 x 2,000": "2,000 signals on 20 nodes, in seconds",
        "45 x 90, 30% missing": "90 signals on 45 nodes with 30% missing, fit and imputation, over `eigh` of 400 x 400",
        "5,000 x 50": "50 signals on 5,000 nodes, over decomposing the two Laplacians",
    }
    rows = [
        [
            against[name],
            f"{run['seconds']:.2f} s",
            f"{run['ratio']:.1f}",
            f"{run['bar']:g}",
            verdict(run["ratio"] <= run["bar"]),
        ]
        for name, run in result["runs"].items()
    ]
    return [
        "## The default\n",
        f"{command('bench_default.py')}: a fit without settings, which compares several models on held-out signals, in "
        "processor time on one thread:\n",
        table(["data, and what it is compared with", "time", "ratio", "bar", ""], rows),
    ]


def few_signals() -> list[str]:
    result = load("few_signals")
    if result is None:
        return []
    lines = [f"* {name}: {verdict(met)}" for name, met in result["bars_met"].items()]
    return ["## Few signals\n", f"{command('bench_few_signals.py')}: test scores on the paper's data.\n", *lines, ""]


def page() -> str:
    """The whole page."""
    introduction = [
        "# Performance\n",
        "<!-- written by benchmarks/write_performance.py from benchmarks/results/*.json: do not edit -->\n",
        "Every figure on this page was measured by the script named beside it and written here by "
        "`benchmarks/write_performance.py`; `make bench` runs all of them but the GPU's. Bars are those the "
        "project set itself; bars that are not met are marked.\n",
    ]
    scale = (large(), dask(), brain(), compare(), gpu())
    parts = (introduction, peers(), *scale, small(), learning(), default(), few_signals())
    return "\n".join(line for lines in parts for line in lines).rstrip() + "\n"


def main() -> None:
    PAGE.write_text(page())
    print(f"written to {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
