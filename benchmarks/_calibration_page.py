"""docs/calibration.md, from the results of `bench_calibration.py`: no figure is typed by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _calibration import (
    AMPLITUDE,
    CELLS,
    CLASS_NEIGHBORS,
    CLASS_NODES,
    DIFFUSION,
    EFFECT,
    HORIZONS,
    LENGTH,
    LEVEL,
    LEVELS,
    MAP_NEIGHBORS,
    MAP_NODES,
    N_BINS,
    N_CLASSES,
    N_MEASURED,
    N_NEIGHBORS,
    N_NEW,
    N_NODES,
    N_ORIGINS,
    N_STEPS,
    N_UNSEEN,
    NOISE_VARIANCE,
    OWN_SHARE,
    POLYNOMIAL,
    SHARE_MISSING,
    SPARE,
    STRENGTH,
    WHITE,
)
from scipy.stats import poisson
from write_performance import table

Array = np.ndarray
Result = dict[str, Any]
BAR = (0.86, 0.95)  # that 90% intervals are to hold
N_FLIPS, FLIP_SEED = 2_000, 0  # random signs of data sets, for the calibration error of a calibrated model
COLUMNS = {  # that say what a row of a table is
    "regression": ("model", "signals", "observed"),
    "observations": ("observed with", "signals", "covariates"),
    "counts": ("model", "mean count", "signals", "covariates"),
    "classes": ("model", "labels per class"),
    "forecasts": ("observed", "steps"),
}
CONTROLS = ("true hyperparameters", "true rates", "true fields")
STAR = " \\*"  # beyond two standard errors
MARK = "<!-- written by benchmarks/bench_calibration.py: do not edit -->"


@dataclass(frozen=True)
class Check:
    """A mean over data sets that is zero for a calibrated model, and its standard error."""

    mean: float
    error: float

    @classmethod
    def of(cls, numbers: Array) -> Check:
        """Of one number per data set."""
        return cls(float(np.mean(numbers)), float(np.std(numbers, ddof=1) / np.sqrt(len(numbers))))

    @property
    def n_errors(self) -> float:
        """Distance from zero in standard errors."""
        if self.mean == 0:
            return 0.0
        return abs(self.mean) / self.error if self.error > 0 else np.inf

    def marked(self, words: str) -> str:
        """Words with a star beyond two standard errors, and in bold beyond three."""
        return f"**{words}**" if self.n_errors > 3 else words + STAR if self.n_errors > 2 else words


@dataclass(frozen=True, eq=False)
class Row:
    """Scores of all data sets of a row of a table."""

    table: str
    labels: tuple[str, ...]  # one per first column of the table
    cell: Mapping[str, Any]
    scores: Mapping[str, Array]

    @property
    def title(self) -> str:
        """The setting in words."""
        columns = zip(self.labels, COLUMNS[self.table], strict=True)
        return ", ".join((self.table, *(in_words(label, column) for label, column in columns if label)))

    @property
    def is_control(self) -> bool:
        """Whether predictions are by what the data were drawn with, as a check of the benchmark."""
        return self.labels[0] in CONTROLS

    @property
    def n_sets(self) -> int:
        """Number of data sets that were scored."""
        return len(self.scores["n_values"])

    @property
    def start(self) -> list[str]:
        """First columns of the row."""
        values = self.scores["n_values"]
        each = f"{values.min()}" if values.min() == values.max() else f"{values.min()} to {values.max()}"
        return [*self.labels, str(self.n_sets), each]

    @property
    def seconds(self) -> str:
        """Seconds of the processor per data set."""
        return f"{self.cell['seconds'] / max(1, self.n_sets):.2f}"

    def covered(self, level: int) -> Array:
        """Share of the values of each data set inside intervals."""
        return np.asarray(self.scores[f"covered_{level}"] / self.scores["n_values"])

    def stated(self, level: int) -> Array:
        """Share that the predictions say: the level, or the probability of the interval where values are counts."""
        return self.scores.get(f"stated_{level}", np.full(self.n_sets, level / 100))

    def coverage(self, level: int) -> Check:
        """Share of values inside intervals less the share that predictions say."""
        return Check.of(self.covered(level) - self.stated(level))

    @property
    def transform(self) -> Check:
        """Mean of the PIT less a half."""
        return Check.of(self.scores["pit"] - 0.5)

    @property
    def confidence(self) -> Check:
        """Accuracy less confidence of a classifier."""
        return Check.of(self.scores["right"] / self.scores["n_values"] - self.scores["confidence"])


def rows_of(result: Result, wanted: str | None = None) -> list[Row]:
    """Rows of a table, or of all, in their order; those with two data sets or more."""
    found = []
    for name, cell in CELLS.items():
        kept = result["cells"].get(name)
        if kept is None or wanted not in (None, cell.table):
            continue
        for row, scores in kept["rows"].items():
            own = {measure: np.asarray(numbers) for measure, numbers in scores.items()}
            labels = (*cell.labels, row) if row else cell.labels
            found.append(Row(cell.table, labels, kept, own))
    return [row for row in found if row.n_sets > 1]


def in_words(label: str, column: str) -> str:
    """A column's entry as part of a name: 5 signals, mean count 0.2, complete."""
    if not label.replace(".", "").isdigit():
        return label
    return f"{column} {label}" if column.startswith("mean") else f"{label} {column[:-1] if label == '1' else column}"


def with_coverage(rows: Sequence[Row]) -> list[Row]:
    """Rows of models that have intervals."""
    return [row for row in rows if "pit" in row.scores]


# ------------------------------------------------------------------------------------------------------- verdicts


def verdict(rows: Sequence[Row]) -> str:
    """Sentence on the numbers of checks within two and three standard errors."""
    models = with_coverage([row for row in rows if not row.is_control])
    checks = [row.coverage(level) for row in models for level in LEVELS]
    transforms = [row.transform for row in models]
    ninety = [float(np.mean(row.covered(90))) for row in models if "stated_90" not in row.scores]
    counted = [row.coverage(90) for row in models if "stated_90" in row.scores]
    within = {limit: sum(check.n_errors <= limit for check in checks) for limit in (2, 3)}
    unbiased = {limit: sum(check.n_errors <= limit for check in transforms) for limit in (2, 3)}
    off = [check for check in checks if check.n_errors > 2]
    n_narrow = sum(check.mean < 0 for check in off)
    n_held = sum(BAR[0] <= share <= BAR[1] for share in ninety)
    spread = f" (they range from {min(ninety):.3f} to {max(ninety):.3f})" if ninety else ""
    near = sum(BAR[0] - 0.9 <= check.mean <= BAR[1] - 0.9 for check in counted)
    words = (
        f"Of {len(checks)} shares of values inside 50%, 80% and 90% intervals in {len(models)} settings, "
        f"**{within[2]} are within two standard errors of the stated coverage, and {within[3]} within three** (a "
        f"calibrated model would have about {0.954 * len(checks):.0f} and {0.997 * len(checks):.0f}); {n_narrow} of "
        f"the {len(off)} that are further off are too small, by intervals that are too narrow. Of {len(transforms)} "
        f"means of the PIT {unbiased[2]} and {unbiased[3]} are within two and three standard errors of a half. The "
        f"90% intervals of values hold {BAR[0]} to {BAR[1]} in {n_held} of {len(ninety)} settings{spread}"
    )
    if counted:
        words += f"; those of counts are as near to their stated probability in {near} of {len(counted)}"
    return words + "."


def misses(rows: Sequence[Row]) -> Iterator[str]:
    """Sentences on every check beyond three standard errors."""
    for row in rows:
        name = f"{row.title} (a control)" if row.is_control else row.title
        if "pit" not in row.scores:
            check = row.confidence
            if check.n_errors > 3:
                kind = "underconfident" if check.mean > 0 else "overconfident"
                yield f"* {name}: {kind}; accuracy less confidence is {with_error(check, sign=True)}."
            continue
        off = {level: row.coverage(level) for level in LEVELS if row.coverage(level).n_errors > 3}
        if off:
            held = "; ".join(
                f"{level}% intervals hold {np.mean(row.covered(level)):.3f} ± {check.error:.3f}"
                + (f" where {np.mean(row.stated(level)):.3f} is stated" if f"stated_{level}" in row.scores else "")
                for level, check in off.items()
            )
            signs = {check.mean > 0 for check in off.values()}
            kind = "of another shape" if len(signs) == 2 else "too wide" if signs == {True} else "too narrow"
            yield f"* {name}: {kind}. {held}."
        if row.transform.n_errors > 3:
            kind = "too low" if row.transform.mean > 0 else "too high"
            yield f"* {name}: predictions are {kind} on average; the mean of the PIT is {centred(row.transform)}."


def with_error(check: Check, sign: bool = False) -> str:
    return f"{check.mean:{'+' if sign else ''}.3f} ± {check.error:.3f}"


def centred(check: Check) -> str:
    """Mean of the PIT and its standard error."""
    return f"{0.5 + check.mean:.3f} ± {check.error:.3f}"


# --------------------------------------------------------------------------------------------------------- tables


def coverage_table(rows: Sequence[Row]) -> str:
    """Coverage and mean PIT of continuous values."""
    header = [
        *COLUMNS[rows[0].table],
        "data sets",
        "values each",
        *(f"{level}%" for level in LEVELS),
        "mean PIT",
        "seconds each",
    ]
    lines = []
    for row in rows:
        checks = {level: row.coverage(level) for level in LEVELS}
        held = [
            check.marked(f"{np.mean(row.covered(level)):.3f} ± {check.error:.3f}") for level, check in checks.items()
        ]
        lines.append([*row.start, *held, row.transform.marked(centred(row.transform)), row.seconds])
    return table(header, lines)


def counts_table(rows: Sequence[Row]) -> str:
    """Coverage of counts beside the probability of their intervals, and mean randomised PIT."""
    first = [*COLUMNS["counts"], "data sets", "values each"]
    levels = [f"{level}%: held, stated (difference)" for level in LEVELS]
    lines = []
    for row in rows:
        held = []
        for level in LEVELS:
            check = row.coverage(level)
            shares = f"{np.mean(row.covered(level)):.3f}, {np.mean(row.stated(level)):.3f}"
            held.append(f"{shares} ({check.marked(with_error(check, sign=True))})")
        lines.append([*row.start, *held, row.transform.marked(centred(row.transform)), row.seconds])
    return table([*first, *levels, "mean PIT", "seconds each"], lines)


def calibration_error(excess: Array, n_values: float, signs: Array | None = None) -> Array:
    """Expected calibration error from right answers less confidence, shape (n_sets, n_bins), added up in each bin.

    With signs (n_draws, n_sets) it is that of data sets whose sign is changed, one number per draw.
    """
    total = excess.sum(axis=0) if signs is None else signs @ excess
    return np.asarray(np.abs(total).sum(axis=-1) / n_values)


def classes_table(rows: Sequence[Row]) -> str:
    """Accuracy, confidence, log loss and expected calibration errors."""
    header = [*COLUMNS["classes"], "data sets", "nodes each", "accuracy", "mean confidence", "accuracy - confidence",
              "log loss", "ECE", "ECE if calibrated: mean, 95%", "seconds each"]  # fmt: skip
    lines = []
    for row in rows:
        scores, n_values = row.scores, float(row.scores["n_values"].sum())
        found = float(calibration_error(scores["excess"], n_values))
        signs = np.random.default_rng(FLIP_SEED).choice([-1.0, 1.0], (N_FLIPS, row.n_sets))
        expected = calibration_error(scores["excess"], n_values, signs)
        most = float(np.quantile(expected, 0.95))
        loss = Check.of(scores["log_loss"])
        accuracy = Check.of(scores["right"] / scores["n_values"])
        lines.append([
            *row.start, with_error(accuracy), f"{np.mean(scores['confidence']):.3f}",
            row.confidence.marked(with_error(row.confidence, sign=True)), with_error(loss),
            f"{found:.3f}" + STAR * (found > most), f"{np.mean(expected):.3f}, {most:.3f}", row.seconds,
        ])  # fmt: skip
    return table(header, lines)


# ----------------------------------------------------------------------------------------------------------- page


def regression_words() -> str:
    return (
        f"{N_NODES} nodes, random points in the unit square joined to their {N_NEIGHBORS} nearest neighbours, another "
        "graph in every data set. Signals are y = "
        f"{LEVEL:g} + g(L) f(x) + h(L) e + noise at one standard normal input x, with an RBF covariance of length "
        f"{LENGTH:g}, white e, and noise of variance {NOISE_VARIANCE:g}. For `Polynomial(2)` and the default "
        f"{POLYNOMIAL.words} on the combinatorial Laplacian, scaled to a largest eigenvalue of one; for `Diffusion()` "
        f"{DIFFUSION.words} on the normalised Laplacian. All hyperparameters are learnt, with the default residual, "
        "input kernel and prior. *Complete*: "
        f"{N_NEW} new signals are predicted. *30% missing*: {SHARE_MISSING:.0%} of the training values are missing, "
        f"and predicted. *Unseen nodes*: {N_UNSEEN} of the nodes have no value in any training signal, and are "
        "predicted there. The first row has the hyperparameters that the data were drawn with, by dense algebra: it "
        "checks the benchmark, not the library.\n"
    )


def observations_words() -> str:
    return (
        f"Maps of {MAP_NODES} nodes, {MAP_NEIGHBORS} nearest neighbours each; {N_MEASURED} nodes are measured in all "
        "signals, the others are predicted there. Signals have no inputs and are independent, "
        f"g(λ) = √0.5 (1 - 0.9 λ), and the model is `Polynomial(1)` with the default residual. *One noise variance*: "
        f"normal noise of standard deviation {WHITE:g}, learnt. *Equal weights*: the same by way of `weights=1` and "
        "`covariates`, standard normal per node, with equal coefficients whose squares add up to "
        f"{EFFECT**2:g}. *Weights*: whole numbers from 1 to 10, noise of standard deviation {2 * WHITE:g} at weight "
        "one; predicted values have weights too. *Known noise*: variances uniform from 0.05 to 0.5. *Student t*: noise "
        f'{WHITE:g} times a t with 4 degrees of freedom, `likelihood="student_t"`.\n'
    )


def counts_words() -> str:
    return (
        f"The same maps, as logarithms of rates, with a white part of standard deviation {WHITE:g}; the intercept "
        'makes the mean count over the nodes, given the covariates, what the table says. `likelihood="poisson"`. '
        "Intervals are between quantiles of `predict(..., return_quantiles=...)`. Counts are whole numbers, so that "
        "such an interval has at least the probability asked for, and mostly more: that of 90% for a rate of 0.2 is 0 "
        f"to {poisson.ppf(0.95, 0.2):.0f} and has {poisson.cdf(poisson.ppf(0.95, 0.2), 0.2):.0%}. What is "
        "to be compared is the share that intervals hold and the probability that the "
        "predictive distribution itself gives them (*stated*); the difference is zero on average for a calibrated "
        "model. The PIT is randomised between the distribution function below and at the count, by the random numbers "
        "of the data set.\n"
    )


def classes_words() -> str:
    return (
        f"{CLASS_NODES} nodes, {CLASS_NEIGHBORS} nearest neighbours each, {N_CLASSES} classes by the softmax of "
        f"independent fields of variance {AMPLITUDE**2:g}, with the covariance exp(-{STRENGTH / 2:g} L) of the "
        f"normalised Laplacian and a share of {OWN_SHARE:g} that each node has of its own: one of the models that the "
        "classifier averages. Labels are drawn as many per class, and draws with a class of fewer than "
        f"{SPARE} other nodes are drawn again; the classifier knows of neither. Confidence is the largest probability "
        f"of a node without a label. The expected calibration error (ECE) has {N_BINS} bins of confidence of equal "
        "width, over the nodes of all data sets: the sum over bins of |right answers - confidences added up|, over the "
        "number of nodes. It is above zero by chance. *If calibrated*: its mean and 95% quantile where right answers "
        f"less confidence of whole data sets change sign at random ({N_FLIPS:,} draws, seed {FLIP_SEED}), which keeps "
        "correlations of nodes in a data set; an ECE above that quantile has a star.\n"
    )


def forecasts_words() -> str:
    steps = ", ".join(str(horizon) for horizon in HORIZONS[:-1])
    return (
        f"{N_NODES} nodes; at each frequency λ of the graph a Matern process of 1/2 with the rate 0.05 + 0.3 λ per "
        f"step and the standard deviation 1 - 0.7 λ, and noise of variance {NOISE_VARIANCE:g}, about a level of "
        f"{LEVEL:g}. `GraphGPForecaster(graph)` learns from {N_STEPS} rows and forecasts {steps} and {HORIZONS[-1]} "
        f"steps from {N_ORIGINS} origins, {HORIZONS[-1]} rows apart, with `update` between them. With missing values "
        f"{SHARE_MISSING:.0%} of all values that are learnt from are missing. The forecaster offers no quantiles: "
        "intervals are normal, from `predict(..., return_std=True)`.\n"
    )


SECTIONS: Mapping[str, tuple[str, Callable[[], str], Callable[[Sequence[Row]], str]]] = {
    "regression": ("Regression with inputs", regression_words, coverage_table),
    "observations": ("Noise, weights, covariates and outliers", observations_words, coverage_table),
    "counts": ("Counts", counts_words, counts_table),
    "classes": ("Classes", classes_words, classes_table),
    "forecasts": ("Forecasts", forecasts_words, coverage_table),
}


def section(result: Result, name: str) -> list[str]:
    """Words and table of a kind of models."""
    rows = rows_of(result, name)
    if not rows:
        return []
    title, words, made = SECTIONS[name]
    return [f"## {title}\n", words(), made(rows)]


def footnotes(result: Result) -> list[str]:
    """Failures, warnings, versions of the code, and how to run."""
    cells, notes = result["cells"], []
    failed = {name: cell["failed"] for name, cell in cells.items() if cell["failed"]}
    warned = {name: cell["warned"] for name, cell in cells.items() if cell["warned"]}
    n_codes = len({cell["code"] for cell in cells.values()})
    notes += [
        f"* {name}: {len(words)} of the fits failed, and are left out. The first: {words[0]}"
        for name, words in failed.items()
    ] or ["* No fit failed."]
    notes += [f"* {name}: {number} of the fits warned." for name, number in warned.items()] or ["* No fit warned."]
    if n_codes > 1:
        notes.append(f"* The settings were run with {n_codes} different versions of the code.")
    seconds = sum(cell["seconds"] for cell in cells.values())
    return [
        "## How it was run\n",
        *notes,
        "* Data set s of a setting has NumPy's `default_rng([s, k])`, k the CRC-32 of the setting's name.",
        f"* {seconds / 60:.0f} minutes of the processor, one thread each; Python {result['machine']['python']}.",
        "* Again: `.venv/bin/python benchmarks/bench_calibration.py`; `--workers 16` takes 16 processes, `--only "
        "counts` runs a part, `--sets 40` fewer data sets, `--page` writes this page anew.",
        "",
    ]


def page(result: Result) -> str:
    """The page."""
    rows = rows_of(result)
    missed = list(misses(rows))
    lines = [
        "# Calibration\n",
        f"{MARK}\n",
        "Coverage of intervals. Data sets are drawn from each model with known hyperparameters, the model is "
        "fitted to a part of each, including hyperparameters, and hidden values are compared with "
        f"their predictive distributions. {verdict(rows)}\n",
        "Each row of the tables below is a setting. Coverage is the share of hidden values inside the central interval "
        "of their own predictive distribution, noise included. The PIT is the predicted probability of a value below "
        "the observed one; its mean is 0.5 where predictions are neither too low nor too high. Hyperparameters are the "
        "same in all data sets of a setting, and not drawn from the models' priors: where values are few, not even "
        "exact averages over hyperparameters would be exactly calibrated. Figures are means over "
        "data sets ± one standard error over data sets, since the values of one data set are correlated. A star marks "
        "figures that are more than two standard errors off, bold those more than three.\n",
        "## Where coverage misses\n",
        "Figures that are more than three standard errors off:\n",
        *(missed or ["* None."]),
        "",
        *(line for name in SECTIONS for line in section(result, name)),
        *footnotes(result),
    ]
    return "\n".join(lines).rstrip() + "\n"


def write(result: Result, docs: Path) -> Path:
    """Write the page into a folder of documentation; the page's path."""
    docs.mkdir(parents=True, exist_ok=True)
    place = docs / "calibration.md"
    place.write_text(page(result), encoding="utf-8")
    return place
