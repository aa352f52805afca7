"""The sections of a report, as HTML; every text from outside is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from spectralgp.report import words
from spectralgp.report.data import FEW_EDGES, MOST_EDGES, MOST_POINTS
from spectralgp.report.numbers import Numbers

COVERAGES = (0.5, 0.8, 0.9, 0.95)
MOST_ACTIVE = 8  # constraints that are named one by one


def words_section(numbers: Numbers) -> str:
    """What was learnt, and what to watch out for, in sentences."""
    source = numbers.predictions.source
    has_inputs = numbers.has_inputs
    said = words.filter_words(numbers.bands, has_inputs)
    said += words.variance_words(numbers.variance, source, has_inputs)
    warnings = words.watch_outs(numbers)
    watch = (
        f'<ul class="warnings">{_items(warnings)}</ul>'
        if warnings
        else "<p>Nothing stands out: fits converged, intervals hold, and there are signals enough.</p>"
    )
    return f"<ul>{_items(said)}</ul>\n<h3>What to watch out for</h3>\n{watch}"


def map_section(numbers: Numbers, note: str, n_shown: int) -> str:
    """The map with its controls, and the same as a table."""
    n_signals, n_edges = len(numbers.predictions.labels), numbers.counts.edges
    notes = [note, words.SOURCES[numbers.predictions.source]]
    if n_edges > MOST_EDGES:
        notes.append(f"No more than {MOST_EDGES:,} of {n_edges:,} edges can be drawn, the heaviest.")
    if n_shown < n_signals:
        notes.append(
            f"{n_shown} of {n_signals:,} signals are here, evenly spaced; all other sections have all of them."
        )
    choices = "".join(
        f'<label><input type="radio" name="field" value="{value}"{" checked" if value == "observed" else ""}> {label}'
        "</label>"
        for value, label in (
            ("observed", "data"),
            ("mean", "prediction"),
            ("std", "uncertainty"),
            ("residual", "residual"),
        )
    )
    with_edges = " checked" if n_edges <= FEW_EDGES else ""
    return f"""<p>{escape(" ".join(one for one in notes if one))}</p>
<div class="controls">
<fieldset><legend>Colour nodes by</legend>{choices}</fieldset>
<div class="slider"><label for="signal">Signal</label>
<input type="range" id="signal" min="0" max="{n_shown - 1}" value="0" step="1" aria-describedby="signal-name">
<output id="signal-name" for="signal"></output></div>
<label><input type="checkbox" id="with-edges"{with_edges}> edges</label>
</div>
{
        _plot(
            "map-plot",
            "Map of the graph with its nodes coloured by the chosen values of one signal. The table below has the "
            "same values.",
            "tall",
        )
    }
<p id="readout" class="readout" aria-live="polite">Point at a node to read its values, or find it in the table.</p>
<details>
<summary>The same as a table</summary>
<p><label for="find">Find a node by name</label> <input type="search" id="find" autocomplete="off"></p>
<div class="scroll" tabindex="0" role="region" aria-label="Table of nodes">
<table><caption id="node-caption"></caption>
<thead><tr><th scope="col">node</th><th scope="col">observed</th><th scope="col">predicted</th>
<th scope="col">std</th><th scope="col">residual</th></tr></thead>
<tbody id="node-rows"></tbody></table></div>
</details>"""


def filters_section(numbers: Numbers) -> str:
    """Filters over the spectrum."""
    bands = numbers.bands
    if bands.filters:
        lead = "Bands are one standard deviation to either side, over draws of the hyperparameters and stacked models."
    else:
        lead = "The graph kernel has no filter on the spectrum."
    rows = [
        (
            words.SYMBOLS[one.which],
            *(f"{value:.4g}" for value in _thirds(one.mean)),
            "not known" if one.std is None else f"{max(one.std):.3g}",
        )
        for one in bands.filters
    ]
    heads = ("filter", "at frequency 0", "in the middle", "at the highest", "largest std")
    table = _table("Values of the filters", heads, rows) if rows else ""
    return f"""<p>{
        lead
    } Below them: which share of the eigenvalues, and which share of the energy of the data (centred and
scaled), lies where. Signals without structure have the same of both.</p>
{
        _plot(
            "filter-plot",
            "Learnt filters over the eigenvalues of the graph, with the distribution of the eigenvalues and of "
            "the energy of the data. " + " ".join(words.filter_words(bands, numbers.has_inputs)),
            "tall",
        )
    }
{table}"""


def _thirds(values: Any) -> tuple[float, float, float]:
    return float(values[0]), float(values[len(values) // 2]), float(values[-1])


def predictions_section(numbers: Numbers) -> str:
    """Predictions against what was observed."""
    n_values = numbers.scores.n_values
    some = f" {MOST_POINTS:,} of {n_values:,} values are drawn, chosen by lot." if n_values > MOST_POINTS else ""
    label = (
        f"Scatter plot of predicted against observed values; root mean square error {numbers.scores.error:.4g}. Values "
        "outside their 90% interval have another colour and shape."
    )
    return f"""<p>{escape(words.SHORT_SOURCES[numbers.predictions.source] + some)}</p>
{_plot("scatter-plot", label)}"""


def calibration_section(numbers: Numbers) -> str:
    """Whether intervals hold."""
    found = numbers.calibration
    rows = [(words.percent(level), f"{found.covered_at(level):.1%}") for level in COVERAGES]
    coverage = ", ".join(f"{share} of values in {level} intervals" for level, share in rows)
    return f"""<p>{words.HOW_CALIBRATED}</p>
<div class="pair">
{_plot("coverage-plot", f"Coverage of the intervals by their probability: {coverage}.")}
{_plot("pit-plot", "Histogram of the predicted probabilities of a value below the observed one; flat if calibrated.")}
</div>
{_table("Coverage of the intervals", ("probability", "share of values inside"), rows)}"""


def models_section(numbers: Numbers) -> str:
    """Models that predict, and those that were compared."""
    kept = [
        (
            one.name,
            f"{one.weight:.3f}",
            f"{one.fit.log_likelihood:.6g}",
            f"{one.fit.model.noise_variance**0.5:.4g}",
            one.inputs,
        )
        for one in numbers.members
    ]
    heads = ("model", "weight", "log marginal likelihood (nats)", "noise std", "inputs")
    table = _table("Models that predict", heads, kept)
    if not numbers.tried:
        return f"<p>One model was learnt; there was nothing to compare.</p>\n{table}"
    tried = [(one.name, f"{one.score:.4g}", f"{one.weight:.3f}") for one in numbers.tried]
    scored = ("model", "held-out log density of a signal (nats)", "weight")
    compared = _table("All models that were tried, best first", scored, tried)
    return f"<p>{words.HOW_COMPARED}</p>\n{compared}\n{table}"


def certificate_section(numbers: Numbers) -> str:
    """How well the fits satisfy the conditions of optimality."""
    heads = (
        "model",
        "outcome",
        "stationarity",
        "feasibility",
        "complementarity",
        "lift",
        "active",
        "evaluations",
        "truncation error",
        "probe error",
    )
    rows = []
    for one in numbers.members:
        fit, found = one.fit, one.fit.certificate
        active = list(found.active[:MOST_ACTIVE])
        if len(found.active) > MOST_ACTIVE:
            active.append(f"and {len(found.active) - MOST_ACTIVE} more")
        residuals = (found.stationarity, found.feasibility, found.complementarity, found.lift)
        ending = fit.message or "converged"
        rows.append(
            (
                one.name,
                ending,
                *(f"{value:.2g}" for value in residuals),
                ", ".join(active) or "none",
                f"{fit.n_evaluations:,}",
                f"{fit.truncation_error:.2g}",
                f"{fit.probe_error:.2g}",
            )
        )
    methods = sorted({one.fit.method for one in numbers.members})
    missing = escape("; ".join(methods))
    return f"<p>{words.HOW_CERTIFIED} Missing values: {missing}.</p>\n{_table('Certificates', heads, rows)}"


def numbers_section(numbers: Numbers) -> str:
    """The numbers in one table."""
    counts, scores, variance = numbers.counts, numbers.scores, numbers.variance
    rows: list[tuple[str, str]] = [
        ("training signals", f"{counts.signals:,}"),
        ("nodes", f"{counts.nodes:,}"),
        ("edges", f"{counts.edges:,}"),
        ("connected parts", f"{counts.components:,}"),
        ("signals that repeat others", f"{counts.repeated:,}"),
        ("signals without any value", f"{counts.empty:,}"),
        ("values not observed", f"{counts.missing:,}"),
        ("predictions", numbers.predictions.source),
        ("values predicted", f"{scores.n_values:,}"),
        ("root mean square error", f"{scores.error:.5g}"),
        ("root mean square predicted std", f"{scores.spread:.5g}"),
        ("CRPS", f"{scores.crps:.5g}"),
        ("log density of a value (nats)", f"{scores.log_density:.5g}"),
        ("variance explained by predictions", _share(variance.predicted)),
        ("the same, given the other nodes too", _share(variance.with_neighbours)),
        ("variance from inputs, by the model", _share(variance.inputs)),
        ("variance that neighbours share, by the model", _share(variance.neighbours)),
        ("variance that carries over, by the model", _share(variance.carry)),
        ("variance of the noise, by the model", _share(variance.noise)),
    ]
    return _table("The numbers of this report", ("what", "value"), rows)


def _share(share: float | None) -> str:
    return "not known" if share is None else f"{share:.1%}"


# --------------------------------------------------------------------------------------------------------- pieces


def _items(sentences: Iterable[str]) -> str:
    return "".join(f"<li>{escape(one)}</li>" for one in sentences)


def _plot(name: str, label: str, size: str = "") -> str:
    return f'<div id="{name}" class="plot {size}" role="img" aria-label="{escape(label)}"></div>'


def _table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column names the rows; it scrolls by itself where it is wider than the page."""
    top = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>' + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:]) + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
        f"<caption>{escape(caption)}</caption><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )
