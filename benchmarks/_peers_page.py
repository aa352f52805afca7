"""The section of docs/performance.md about other Gaussian processes, from what `bench_peers.py` found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench_peers import FLOOR, OURS, reached, reached_ours

Result = dict[str, Any]
WORDS = {
    FLOOR: "the least that any method needs: one eigendecomposition of the Laplacian, one of the covariance of the "
    "inputs, and the signals in both bases. It learns nothing.",
    OURS: "`GraphGPRegressor(graph, Polynomial(3), RBF(), prior=None, residual=None, carry=None, center=None, "
    'scale="global")`.',
    "GPyTorch": "its Kronecker multitask model with the same polynomial as covariance of the tasks, by L-BFGS, and by "
    "Adam (rate 0.05, until 50 steps gain no more than 0.1 nats). With missing values (*dense*) a covariance among "
    "all values.",
    "BoTorch LKGP": "`LatentKroneckerGP` with the same polynomial, its own iterative methods, by Adam, since its "
    "likelihoods are random.",
    "GeometricKernels": "its Matern kernel, with the smoothness learnt, as the covariance of the tasks in GPyTorch, by "
    "L-BFGS: another family of filters.",
    "scikit-learn": "`GaussianProcessRegressor`, in which nodes share hyperparameters and nothing else; no missing "
    "values.",
    "paper": "the authors' program: its grid, its rates, its stop, with the dense matrices that it has; and the same "
    "in the eigenbasis of the graph, as `reproduction/` has it.",
}


def number(value: float) -> str:
    """Three digits, without an exponent."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def until_ours(rival: str, found: Result, ours: Result) -> str:
    """Seconds until a method is within a nat of our likelihood, where both are known."""
    if rival in (OURS, FLOOR) or not found.get("path") or ours.get("log_likelihood") is None:
        return ""
    seconds = reached_ours(found, ours)
    return "not reached" if seconds is None else number(seconds)


def row(problem: str, rival: str, found: Result, ours: Result, limit: float) -> list[str]:
    if "seconds" not in found:
        return [problem, rival, found["failed"], *[""] * 6]
    processor, wall = reached(found)
    learning = f"{number(processor)} ({number(wall)})"
    if found["is_stopped"]:
        learning = f"stopped at {limit:.0f} s, {found['says'].removeprefix('stopped after ')}"
    likelihood, memory = found.get("log_likelihood"), max(found["gigabytes"].values())
    cells = [problem, rival, learning, until_ours(rival, found, ours)]
    cells.append("" if likelihood is None else f"{likelihood:,.1f}")
    cells.append(f"{found['filter_error']:.1%}" if "filter_error" in found else "")
    prediction = found.get("prediction", {})
    if "processor" in prediction:
        seconds = prediction["processor"]
        cells += [f"{seconds:.2f} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms", f"{prediction['log_density']:.3f}"]
    else:
        cells += [prediction.get("failed", ""), ""]
    return [*cells, f"{memory:.2f} ({memory - found['gigabytes']['before']:.2f})"]


def better(by_rival: Result) -> list[str]:
    """Sentence on the scores in which a method is better than ours."""
    ours, found = by_rival[OURS], []
    for name, theirs in by_rival.items():
        if name in (OURS, FLOOR) or "seconds" not in theirs:
            continue
        points = []
        if theirs["seconds"]["processor"] < ours["seconds"]["processor"]:
            points.append("learns faster")
        if theirs.get("log_likelihood") is not None and theirs["log_likelihood"] > ours["log_likelihood"] + 0.1:
            points.append("has a higher likelihood")
        if theirs.get("filter_error", 1.0) < 0.99 * ours["filter_error"]:
            points.append("has a smaller filter error")
        prediction = theirs.get("prediction", {})
        if prediction.get("processor", float("inf")) < ours["prediction"]["processor"]:
            points.append("predicts faster")
        if prediction.get("log_density", -float("inf")) > ours["prediction"]["log_density"] + 0.001:
            points.append("predicts new signals better")
        taken = [max(one["gigabytes"].values()) - one["gigabytes"]["before"] for one in (theirs, ours)]
        if taken[0] < taken[1] - 0.005:
            points.append("takes less memory")
        if points:
            found.append(f"{name} {', '.join(points)}")
    return found


def section(result: Result, table: Callable[..., str], verdict: Callable[[bool], str], introduction: str) -> list[str]:
    """The lines of the section."""
    settings, runs = result["settings"], result["runs"]
    limit = settings["limit"]
    rows = [row(problem, rival, found, rivals.get(OURS, {}), limit)
            for problem, rivals in runs.items() for rival, found in rivals.items()]  # fmt: skip
    header = ["nodes x signals", "who", "learning, s of the processor (of the clock)",
              "until our likelihood less a nat", "log likelihood", "filter error", "means and variances at 5 inputs",
              "log density there", "memory, GB (taken)"]  # fmt: skip
    versions = ", ".join(f"{name} {found}" for name, found in settings["versions"].items())
    ahead = [f"* {problem}: {'; '.join(better(rivals))}." for problem, rivals in runs.items()
             if OURS in rivals and "seconds" in rivals[OURS] and better(rivals)]  # fmt: skip
    bars = [
        [name, "no answer" if bar["met"] is None else f"{bar['found']:,.3g}", f"{bar['bar']:g}",
         "not compared" if bar["met"] is None else verdict(bar["met"])]
        for name, bar in result["bars"].items()
    ]  # fmt: skip
    return [
        f"{introduction} Here everything has {settings['threads']} "
        f"thread{'s' if settings['threads'] > 1 else ''}. {versions}; fast-graph-gp knows nothing of "
        "inputs and is [further down](#against-other-methods).\n",
        "Signals with the covariance `K (x) g(L)^2 + s I`: a squared exponential of three inputs, a known filter of "
        "degree 3, 10% noise, on random points with 8 neighbours. Everyone learns that model from the same signals "
        "and the same start, as far as it can:\n",
        *[f"* *{name}*: {words}" for name, words in WORDS.items()],
        "",
        f"Each method has {limit:.0f} s of the processor to learn, as much to predict, and {settings['gigabytes']:.0f} "
        "GB beside the data. "
        "Learning of the others counts until the likelihood is within one nat of the highest that they reach, and in "
        "the next column until it is within one nat of ours; our own counts to the end, all checks included. The bar "
        "takes the first of the two. Threads that wait for work in a loop count as time of the processor: on small "
        "problems GPyTorch is two to three times nearer to us on one thread, or by the clock. "
        "Log likelihoods are computed by one formula for all, where a dense matrix can hold the problem; the log "
        "density is that of a value of five new signals. Memory is the peak of the process with its libraries, and "
        "what it took on top of those and the data.\n",
        table(header, rows),
        "Methods missing in the table were not run. Methods that are better than ours, beyond rounding:\n",
        *(ahead or ["* nowhere."]),
        "",
        table(["bar", "found", "asked", ""], bars),
    ]  # fmt: skip
