"""docs/missing-data.md, from the results of `bench_missing.py` and `bench_missing_scale.py`.

Text above the mark is written by hand and kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from _imputers import IMPUTERS
from _missing_values import REMOVALS, SETS
from _paired import COVERAGE, OURS, Runs, advantage, average, scores
from _real_page import losses, lost_scores, score_table, with_error
from write_performance import command, load, machine, table, verdict

from spectralgp.learning.baselines import N_FOLDS, N_ROUNDS, PRIOR_COUNT

Result = dict[str, Any]
MARK = (
    "<!-- from here on written by benchmarks/bench_missing.py, from benchmarks/results/missing.json and "
    "missing_scale.json: do not edit below, what is above is kept -->"
)
HEAD = "# Missing data\n\n## Signals with missing values\n\n## Imputation\n\n## Nowcasting\n"
NAMES = {key: imputer.name for key, imputer in IMPUTERS.items()}
NOWCASTS = {
    OURS: "default, `predict(X, observed=...)`",
    "alone": "default, `predict(X)`",
    "graph-knn": f"{NAMES['graph-knn']}, means learnt",
}
BARRED_SET = "weather"
BARRED = ("means", "interpolation", "graph-knn", "knn", "iterative", "iterative-draws", "kriging")
RATIO = 0.75
COLUMNS = ("seconds", "GB", "filter error", "method")  # of the table of `bench_missing_scale.py`
MEASURES = {"log_density": "log score", "rmse": "RMSE"}


def is_complete(runs: Runs) -> bool:
    """Whether the default and the rivals of the bars were run."""
    return {OURS, *BARRED} <= set(runs)


def bars_met(runs: Runs) -> dict[str, bool]:
    """Bars that the default reaches on a problem; none if it did not finish on every seed."""
    met = {
        f"{words}, {NAMES[rival]}": advantage(runs, rival, measure).mean > 0
        for measure, words in MEASURES.items()
        for rival in BARRED
    }
    met["coverage"] = COVERAGE[0] <= average(runs, OURS, "coverage") <= COVERAGE[1]
    return {name: bool(reached) and not runs[OURS]["failed"] for name, reached in met.items()}


def rmse_ratio(runs: Runs) -> float:
    """RMSE of nowcasting over that of predicting without observed values of the signal, on average over seeds."""
    return float(np.mean(scores(runs, OURS, "rmse") / scores(runs, "alone", "rmse")))


def in_order(problems: Mapping[str, Any]) -> dict[str, Any]:
    places = [(name, removal) for name in SETS for removal in REMOVALS]
    return dict(
        sorted(problems.items(), key=lambda one: places.index((one[1]["facts"]["set"], one[1]["facts"]["removal"])))
    )


def introduction(result: Result) -> list[str]:
    n_seeds = " or ".join(str(n) for n in sorted({one["facts"]["n_splits"] for one in result["problems"].values()}))
    return [
        "## Other imputation methods\n",
        "Entries are removed from complete data, each method imputes them from the remaining ones, and only removed "
        "entries are scored. Every figure and every sentence on a loss is written by the benchmark. The entries to "
        f"remove are drawn by NumPy's `default_rng(s)` for seed s, {n_seeds} seeds per setting. A split below is a "
        "seed. [The methods](#data-and-methods) are described at the end.\n",
    ]


def data_and_methods(result: Result) -> list[str]:
    settings, machine = result["settings"], result["machine"]
    about = {found["facts"]["set"]: found["facts"] for found in result["problems"].values()}
    sets = [
        f"* *{name}*: {facts['words']}; {facts['n_signals']} signals on {facts['n_nodes']} nodes. Graph: "
        f"{facts['graph']}. Source: {facts['source']}. Licence: {facts['licence']}."
        for name, facts in about.items()
    ]
    absent = [f"* *{name}*: not run: {reason}." for name, reason in result["absent"].items() if name not in about]
    return [
        "## Data and methods\n",
        "Removed entries:\n",
        *(f"* *{name}*: {removal.words}." for name, removal in REMOVALS.items()),
        "\nThe data:\n",
        *sets,
        *absent,
        "\nThe methods. Some give values only. Their standard deviations come from observed entries that are hidden "
        f"from them: the pattern of missing entries is moved to other nodes and signals {N_ROUNDS} times; each time "
        f"its entries are hidden in {N_FOLDS} folds, one after the other. A node's standard deviation is the root mean "
        f"square of its errors and of {PRIOR_COUNT} errors of the pooled variance of all nodes.\n",
        *(f"* *{imputer.name}*: {imputer.words}." for imputer in IMPUTERS.values()),
        "\nTimes are by the clock and in brackets of the processor; one thread, "
        f"{settings['n_workers']} processes on {machine['cpus']} cores; Python {machine['python']}, scikit-learn "
        f"{settings['sklearn']}.\n",
    ]


def bars(problems: Mapping[str, Any]) -> list[str]:
    """The bars, and where each stands."""
    barred = {
        name: found["runs"]
        for name, found in problems.items()
        if found["facts"]["set"] == BARRED_SET and is_complete(found["runs"])
    }
    if not barred:
        return []
    met = {name: bars_met(runs) for name, runs in barred.items()}
    lines = []
    for measure, words in MEASURES.items():
        rows = []
        for name, runs in barred.items():
            row = [name]
            for rival in BARRED:
                ahead = advantage(runs, rival, measure)
                reached = met[name][f"{words}, {NAMES[rival]}"]
                row.append(f"{with_error(ahead.mean, ahead.standard_error)}, {verdict(reached)}")
            if measure == "log_density":
                row.append(f"{average(runs, OURS, 'crps'):.3f}")
                row.append(f"{average(runs, OURS, 'coverage'):.1%}, {verdict(met[name]['coverage'])}")
            rows.append(row)
        header = [f"better in {words} than", *(NAMES[rival] for rival in BARRED)]
        more = ["its CRPS", "its coverage of 90%"] if measure == "log_density" else []
        lines.append(table([*header, *more], rows))
    n_met = sum(sum(one.values()) for one in met.values())
    n_bars = sum(len(one) for one in met.values())
    return [
        "## What holds, and what does not\n",
        f"On {BARRED_SET} the default's log score and RMSE are better on average than those of every method of the "
        f"table, and its 90% intervals cover {COVERAGE[0]:.0%} to {COVERAGE[1]:.0%}. {n_met} of {n_bars} bars are "
        "met:\n",
        *lines,
        "Differences are of means over seeds, ± one standard error; above zero the default is better, whatever the "
        "score.\n",
    ]


def tables(problems: Mapping[str, Any]) -> list[str]:
    lines = [
        "## Every setting\n",
        "Means over seeds: log score, the Gaussian log density of a removed value with the mean and deviation given "
        "for it (larger is better); RMSE and CRPS (smaller is better); share of removed values inside their 90% "
        "intervals. In brackets how much better the default is, ± one standard error: above zero the default wins, "
        "whatever the score.\n",
    ]
    for name, found in problems.items():
        lines += [f"### {name}\n", f"{found['facts']['share']:.1%} removed.\n", score_table(found, NAMES)]
    return lines


def nowcasting(result: Result) -> list[str]:
    lines = [
        "## Nowcasting, measured\n",
        "Signals are forecast from those before them, as on [real data](real-data.md), learnt from the first half. Of "
        "each signal of the second half some values are hidden at random, the others are given as `observed`. Scores "
        "are of the hidden values.\n",
    ]
    for name, found in result["nowcasting"].items():
        facts, ratio = found["facts"], rmse_ratio(found["runs"])
        lost = lost_scores(name, found, NOWCASTS).values()
        bar = f" The bar is {RATIO}: {verdict(ratio <= RATIO)}." if name == BARRED_SET else ""
        lines += [
            f"### {name}\n",
            f"{facts['n_train']} signals to learn from, {facts['n_signals'] - facts['n_train']} to test on, "
            f"{facts['share']:.0%} of each hidden. RMSE over that of predicting without the observed ones, mean over "
            f"{facts['n_splits']} seeds: {ratio:.3f}.{bar}\n",
            *([*lost, ""] if lost else []),
            score_table(found, NOWCASTS),
        ]
    return lines if result["nowcasting"] else []


def scale_rows(runs: Mapping[str, Any]) -> list[list[str]]:
    """Rows of the table of `bench_missing_scale.py`."""
    return [[name, *(run["shown"].get(column, "") for column in COLUMNS)] for name, run in runs.items()]


def scale() -> list[str]:
    result = load("missing_scale")
    if result is None:
        return []
    verdicts = [f"* {name}: {verdict(met)}" for name, met in result["bars_met"].items()]
    return [
        "## Scale\n",
        f"{command('bench_missing_scale.py')}. {machine(result)}\n",
        table(["problem", *COLUMNS], scale_rows(result["runs"])),
        *verdicts,
        "",
    ]


def how_to_run() -> list[str]:
    return [
        "## How to run\n",
        "`.venv-bench/bin/python benchmarks/bench_missing.py` runs all of it and writes this page; `--quick` runs two "
        "seeds into a temporary folder, `--rivals default` the default alone, `--page` writes the page again. "
        "`benchmarks/bench_missing_scale.py` measures scale. `make .venv-bench/installed` makes their environment. "
        "The default is not to be tuned to these sets.",
    ]


def page(result: Result) -> str:
    """The page below the mark."""
    problems = in_order(result["problems"])
    parts = [introduction(result), losses(problems, NAMES), bars(problems), nowcasting(result)]
    parts += [scale(), tables(problems), data_and_methods(result), how_to_run()]
    return "\n".join(line for lines in parts for line in lines).rstrip() + "\n"


def write(result: Result, docs: Path) -> Path:
    """Write the page into a folder of documentation, below its hand-written head; return its path."""
    docs.mkdir(parents=True, exist_ok=True)
    place = docs / "missing-data.md"
    head = place.read_text(encoding="utf-8").split(MARK)[0] if place.exists() else HEAD + "\n"
    place.write_text(f"{head}{MARK}\n\n{page(result)}", encoding="utf-8")
    return place
