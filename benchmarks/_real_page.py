"""docs/real-data.md and its picture, from the results of `bench_real.py` and `bench_time_order.py`.

No figure and no verdict is typed by hand, and losses of the default come first.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from _paired import (
    BAR,
    BARRED,
    COVERAGE,
    LARGER_IS_BETTER,
    OURS,
    advantage,
    average,
    bars_met,
    is_complete,
    rmse_ratio,
)
from _real_data import LEFT_OUT, RULE, SETS
from _rivals import RIVALS
from write_performance import load, table, verdict

from spectralgp.show.plots import COLOURS

Result = dict[str, Any]
PICTURE = Path("images") / "real-data.png"
REPRODUCTION = "<!-- reproduction: begin -->"  # from which on the page is written by `make reproduce`, and kept
MARKERS = ("o", "s", "^", "D", "v", "P")
MEASURES = {"log_density": "log density", "rmse": "RMSE", "crps": "CRPS"}
INTERVALS, NO_CHANGE = f"{COVERAGE[0]:.0%} to {COVERAGE[1]:.0%}", "no change"
OTHERS = [key for key in RIVALS if key != OURS]
NAMES = {key: rival.name for key, rival in RIVALS.items()}


def plain(value: float, measure: str) -> str:
    """A score: log densities to two decimals, the others to about three digits."""
    if not np.isfinite(value):
        return "-"
    return f"{value:.{2 if measure == 'log_density' else decimals(value)}f}"


def decimals(value: float) -> int:
    """Decimals that leave about three digits."""
    return int(np.clip(2 - np.floor(np.log10(abs(value))), 0, 6)) if value else 2


def with_error(value: float, error: float) -> str:
    """A difference and its standard error, both to the second digit of the error."""
    if not (np.isfinite(value) and np.isfinite(error)):
        return "-"
    places = max(decimals(error) - 1, 0)
    return f"{value:+.{places}f} ± {error:.{places}f}"


def units(facts: Mapping[str, Any], measure: str) -> str:
    return facts.get("density_units", "nats per signal") if measure == "log_density" else facts["units"]


def in_order(problems: Mapping[str, Any]) -> dict[str, Any]:
    """Problems in the order of the list of sets, few training signals first."""
    sets = list(SETS)
    return dict(
        sorted(problems.items(), key=lambda one: (sets.index(one[1]["facts"]["set"]), one[1]["facts"]["n_train"]))
    )


def head(result: Result, has_time_order: bool) -> list[str]:
    n_splits = " or ".join(
        str(n) for n in sorted({found["facts"]["n_splits"] for found in result["problems"].values()})
    )
    forecasts = ", which [is measured too](#in-time-order)" if has_time_order else ""
    return [
        "# Real data\n",
        "<!-- written by benchmarks/bench_real.py from benchmarks/results/real.json and time_order.json: do not edit "
        "-->\n",
        "The default compared with other methods, on every available real data set of signals on a graph. "
        "Every figure and every sentence on a loss is written by `.venv-bench/bin/python benchmarks/bench_real.py`. "
        "The default is not to be tuned to these sets: a set that it was tuned to measures nothing.\n",
        f"{RULE} {n_splits} splits per set. They share signals, so standard errors over splits show the luck of a "
        "split, not of another year. Days and years are shuffled: this is regression on inputs, not a forecast of the "
        f"future{forecasts}.\n",
    ]


def rivals(result: Result) -> list[str]:
    settings, machine = result["settings"], result["machine"]
    return [
        "## The rivals\n",
        *(f"* *{rival.name}*: {rival.words}." for rival in RIVALS.values()),
        "\nTimes are of fit, predictions and densities, by the clock and in brackets of the processor, which a busy "
        f"machine disturbs less; one thread, {settings['n_workers']} processes on {machine['cpus']} cores; Python "
        f"{machine['python']}, scikit-learn {settings['sklearn']}.\n",
    ]


def bars(problems: Mapping[str, Any]) -> list[str]:
    """The bars, and where each stands."""
    whole = {name: found for name, found in problems.items() if is_complete(found["runs"])}
    rows, n_met, n_bars = [], 0, 0
    for name, found in whole.items():
        runs, met = found["runs"], bars_met(found["runs"])
        n_met, n_bars = n_met + sum(met.values()), n_bars + len(met)
        cells = []
        for rival in BARRED:
            ahead = advantage(runs, rival, "log_density")
            cells.append(f"{with_error(ahead.mean, ahead.standard_error)}, {verdict(met[f'log density, {rival}'])}")
        cells.append(f"{rmse_ratio(runs):.3f}, {verdict(met['rmse'])}")
        best = min(average(runs, rival, "crps") for rival in BARRED)
        cells.append(f"{average(runs, OURS, 'crps') / best:.3f}")
        cells.append(f"{average(runs, OURS, 'coverage'):.1%}, {verdict(met['coverage'])}")
        rows.append([name, *cells])
    header = [
        "set and training signals",
        *(f"log density over {NAMES[rival]}" for rival in BARRED),
        "RMSE / better of the two",
        "CRPS / better of the two",
        "coverage of 90%",
    ]
    return [
        "## What holds, and what does not\n",
        f"{BAR} {n_met} of {n_bars} bars are met:\n",
        table(header, rows),
        "Differences are of means over splits, in nats per held-out signal, ± one standard error; above zero the "
        "default is better. CRPS, for which there is no bar, complements coverage: wide intervals cover much.\n",
    ]


def losses(problems: Mapping[str, Any], names: Mapping[str, str] = NAMES) -> list[str]:
    """Settings in which the default is worse than a method by more than a standard error: in short, then by set."""
    sentences, lost = [], {words: list[str]() for words in (*MEASURES.values(), INTERVALS)}
    n_run = 0
    for name, found in problems.items():
        runs = found["runs"]
        if OURS in runs:
            n_run += 1
            for words, sentence in lost_scores(name, found, names).items():
                lost[words].append(name)
                sentences.append(sentence)
            covered = average(runs, OURS, "coverage")
            if not COVERAGE[0] <= covered <= COVERAGE[1]:
                lost[INTERVALS].append(name)
                sentences.append(f"* **{name}**: {off_coverage(covered)}")
        sentences += [
            f"* **{name}**: {names[rival]} failed on {len(run['failed'])} splits; {run['failed'][0]}"
            for rival, run in runs.items()
            if run["failed"]
        ]
    title = ["## Where the default loses\n"]
    if not sentences:
        return [*title, "Nowhere by more than one standard error.\n"]
    introduction = (
        "By more than one standard error of the paired difference; in brackets the share of splits in which the "
        "default is ahead all the same.\n"
    )
    counted = [
        f"{'coverage outside' if words == INTERVALS else 'worse than some rival in'} {words} on {len(where)} "
        f"({'; '.join(where)})"
        for words, where in lost.items()
        if where
    ]
    short = [f"Of {n_run} settings: {'; '.join(counted)}.\n"] if counted else []
    return [*title, *short, introduction, *sentences, ""]


def lost_scores(name: str, found: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, str]:
    """A sentence for each score of a set in which the default loses to some rival; with CRPS goes coverage."""
    sentences, runs = {}, found["runs"]
    for measure, words in MEASURES.items():
        beaten = []
        for rival in (key for key in names if key in runs and key != OURS):
            ahead = advantage(runs, rival, measure)
            if ahead.is_loss:
                by = with_error(-ahead.mean, ahead.standard_error).lstrip("+")
                covers = f"; it covers {average(runs, rival, 'coverage'):.1%}" if measure == "crps" else ""
                beaten.append(f"{names[rival]} by {by} ({ahead.n_ahead} of {ahead.n_splits}{covers})")
        if beaten:
            worse = ", ".join(beaten)
            ours = f" The default covers {average(runs, OURS, 'coverage'):.1%}." if measure == "crps" else ""
            sentences[words] = f"* **{name}**: in {words}, {units(found['facts'], measure)}, worse than: {worse}.{ours}"
    return sentences


def time_order(result: Result | None) -> list[str]:
    """Results of `bench_time_order.py`: methods that are better than the default, and every score."""
    if result is None:
        return []
    wins, rows, verdicts = [], [], []
    for name, found in result["problems"].items():
        facts, runs = found["facts"], found["runs"]
        wins += won_in_time(name, facts, runs)
        of_no_change = runs.get(NO_CHANGE, {}).get("rmse")
        for rival, run in runs.items():
            if "failed" in run:
                rows.append([name, rival, f"failed: {run['failed']}", *[""] * 5])
                continue
            ratio = f"{run['rmse'] / of_no_change:.3f}" if of_no_change else ""
            density = f"{run['log_density']:.2f} ± {run['log_density_error']:.2f}"
            scores = [plain(run["rmse"], "rmse"), ratio, plain(run["crps"], "crps"), f"{run['coverage']:.1%}", density]
            rows.append([f"{name}, {facts['units']}", rival, *scores, f"{run['processor_seconds']:.2f} s"])
        if facts.get("bar") is not None and "rmse" in runs[OURS] and of_no_change:
            ratio = runs[OURS]["rmse"] / of_no_change
            reached = verdict(ratio <= facts["bar"])
            verdicts.append(f"* {name}: RMSE over no change {ratio:.3f}, at most {facts['bar']}: {reached}.")
    counts = [
        f"*{name}* {found['facts']['n_train']}, then {found['facts']['n_judged']}"
        for name, found in result["problems"].items()
    ]
    header = [
        "set",
        "model",
        "RMSE",
        "over no change",
        "CRPS",
        "coverage of 90%",
        "log density per signal",
        "time",
    ]
    return [
        "## In time order\n",
        "Nothing is shuffled here: the default and simpler methods learn from the first part of a series and forecast "
        "the rest, each signal from the one before. Time has one order, so there is one split per set, and standard "
        f"errors are over its signals; times are processor times. Signals: {'; '.join(counts)}. Measured by "
        "`.venv-bench/bin/python benchmarks/bench_time_order.py`.\n",
        "Methods that are better than the default, by any amount, and settings in which its intervals are off:\n"
        if wins
        else "No method is better here, and intervals are calibrated.\n",
        *wins,
        *([""] if wins else []),
        table(header, rows),
        *(["The bars:\n", *verdicts, ""] if verdicts else []),
        *ranges(result.get("ranges")),
        *(f"* *{name}*: not run: {reason}." for name, reason in result.get("absent", {}).items()),
    ]


def ranges(found: Mapping[str, Any] | None) -> list[str]:
    """Simulated series by the quantile where predictions begin to fall back to no change."""
    if found is None:
        return []
    header = ["series, training signals", "no fallback", *(f"{one:.0%}" for one in found["quantiles"][1:])]
    rows = [
        [name, *(f"{mean:.3f} ({worst:.2f})" for mean, worst in zip(one["rmse"], one["worst"], strict=True))]
        for name, one in found["series"].items()
    ]
    return [
        "Predictions fall back to no change beyond a quantile of the distances of levels in training, "
        "[equation (19f)](method.md), 90% in the package. RMSE over no change on simulated series, a geometric mean "
        f"over {found['n_seeds']} seeds (the largest in brackets), by that quantile:\n",
        table(header, rows),
    ]


def won_in_time(name: str, facts: Mapping[str, Any], runs: Mapping[str, Any]) -> list[str]:
    """A sentence for each score in which something is better than the default."""
    sentences, ours = [], runs[OURS]
    if "failed" in ours:
        return [f"* **{name}**: the default failed; {ours['failed']}"]
    for measure, words in MEASURES.items():
        sign, digits = (1, ".2f") if LARGER_IS_BETTER[measure] else (-1, ".4g")
        better = [
            f"{rival} ({run[measure]:{digits}})"
            for rival, run in runs.items()
            if rival != OURS and "failed" not in run and sign * (run[measure] - ours[measure]) > 0
        ]
        if better:
            score = f"{words}, {units(facts, measure)}, better than the default ({ours[measure]:{digits}})"
            sentences.append(f"* **{name}**: in {score}: {', '.join(better)}.")
    if not COVERAGE[0] <= ours["coverage"] <= COVERAGE[1]:
        sentences.append(f"* **{name}**: {off_coverage(ours['coverage'])}")
    return sentences


def off_coverage(covered: float) -> str:
    """Sentence on intervals of the default that are too narrow or too wide."""
    kind = "narrow" if covered < COVERAGE[0] else "wide"
    return f"the default's 90% intervals are too {kind}: they cover {covered:.1%}."


def data_sets(problems: Mapping[str, Any], absent: Mapping[str, str]) -> list[str]:
    rows = []
    for name, found in problems.items():
        columns = ("n_nodes", "n_edges", "n_signals", "n_features", "n_train", "n_test")
        rows.append([name, *(f"{found['facts'][column]:,}" for column in columns)])
    by_set = {found["facts"]["set"]: found["facts"] for found in problems.values()}
    about = [
        f"* *{name}*: {facts['words']}. Graph: {facts['graph']}. Source: {facts['source']}. "
        f"Licence: {facts['licence']}."
        for name, facts in by_set.items()
    ]
    missing = [f"* *{name}*: not run: {reason}." for name, reason in absent.items() if name not in by_set]
    header = ["set", "nodes", "edges", "signals", "inputs", "trained on", "tested on"]
    return ["## The data\n", table(header, rows), *about, *missing, f"\n{LEFT_OUT}\n"]


def score_table(found: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """Scores of every rival, and how much better the default is."""
    facts, runs = found["facts"], found["runs"]
    rows = []
    for rival in (key for key in names if key in runs):
        row = [names[rival]]
        for measure in MEASURES:
            row.append(plain(average(runs, rival, measure), measure))
            if OURS in runs and rival != OURS:
                ahead = advantage(runs, rival, measure)
                row[-1] += f" ({with_error(ahead.mean, ahead.standard_error)})"
        clock, processor = (average(runs, rival, name) for name in ("seconds", "processor_seconds"))
        covered, warned = average(runs, rival, "coverage"), sum(runs[rival]["warned"])
        rows.append([*row, f"{covered:.1%}", f"{clock:.2f} s ({processor:.2f} s)", warned or ""])
    header = [
        "model",
        *(f"{words}, {units(facts, key)}" for key, words in MEASURES.items()),
        "coverage",
        "time",
        "warned",
    ]
    return table(header, rows)


def one_problem(name: str, found: Mapping[str, Any]) -> list[str]:
    facts = found["facts"]
    words = facts["words"]
    return [
        f"### {name}\n",
        f"{words[0].upper()}{words[1:]}; {facts['n_train']} signals to learn from, {facts['n_test']} to test on.\n",
        score_table(found, NAMES),
    ]


def page(result: Result) -> str:
    """The whole page."""
    problems = in_order(result["problems"])
    tables = [
        "## Every set\n",
        "Means over splits: log density of a held-out signal, all nodes jointly (larger is better); RMSE, and CRPS of "
        "each value's predicted mean and deviation taken as Gaussian (smaller is better); share of values inside their "
        "90% intervals. In brackets how much better the default is, ± one standard error: above zero the default wins, "
        "whatever the score. The last column counts fits that gave a warning, such as no convergence or a parameter at "
        "its bound.\n",
    ]
    picture = [
        f"![How much better the default's log density is than each rival's, set by set]({PICTURE.as_posix()})\n",
        "Advantage of the default in log density over each rival, divided by the number of nodes, with bars of one "
        "standard error. The axis is logarithmic beyond ±0.1.\n",
    ]
    in_time = time_order(load("time_order"))
    parts = [head(result, bool(in_time)), losses(problems), in_time, bars(problems), picture, rivals(result)]
    parts += [data_sets(problems, result["absent"]), tables]
    parts += [one_problem(name, found) for name, found in problems.items()]
    return "\n".join(line for lines in parts for line in lines).rstrip() + "\n"


def draw(problems: Mapping[str, Any], path: Path) -> None:
    """The picture of paired differences in log density a node."""
    from matplotlib.figure import Figure

    names = [name for name, found in problems.items() if OURS in found["runs"]]
    figure = Figure(figsize=(8.0, 1.6 + 0.46 * len(names)), layout="constrained")
    ax = figure.subplots()
    for index, rival in enumerate(OTHERS):
        places, means, errors = [], [], []
        for row, name in enumerate(names):
            runs, n_nodes = problems[name]["runs"], problems[name]["facts"]["n_nodes"]
            if rival in runs:
                ahead = advantage(runs, rival, "log_density")
                places.append(row + 0.11 * (index - (len(OTHERS) - 1) / 2))
                means.append(ahead.mean / n_nodes)
                errors.append(ahead.standard_error / n_nodes)
        ax.errorbar(
            means, places, xerr=errors, color=COLOURS[index], marker=MARKERS[index], markersize=4.5, linestyle="none",
            elinewidth=1.2, label=NAMES[rival],
        )  # fmt: skip
    for row in range(0, len(names), 2):
        ax.axhspan(row - 0.5, row + 0.5, color="0.95", zorder=0)
    ax.axvline(0, color="0.3", linewidth=1)
    ax.set_xscale("symlog", linthresh=0.1)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlabel("advantage of the default, nats per value: right of 0 the default is better")
    figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize="small")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})


def write(result: Result, docs: Path) -> Path:
    """Write page and picture into a folder of documentation; the page's path."""
    docs.mkdir(parents=True, exist_ok=True)
    draw(in_order(result["problems"]), docs / PICTURE)
    place = docs / "real-data.md"
    kept = place.read_text(encoding="utf-8").partition(REPRODUCTION)[1:] if place.is_file() else ()
    place.write_text("\n".join([page(result), "".join(kept)]) if any(kept) else page(result), encoding="utf-8")
    return place
