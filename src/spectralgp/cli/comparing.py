"""`compare`: a table of graph kernels."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from rich.console import Console

from spectralgp import GraphGPRegressor, Stacking
from spectralgp._basics.progress import progress_bar
from spectralgp.cli.app import AsJson, Debug, answering, print_json
from spectralgp.cli.files import (
    Data,
    DateFormat,
    GraphFile,
    Inputs,
    Layout,
    LayoutOption,
    Neighbors,
    Nodes,
    NodesOption,
    Points,
    Radius,
    Signals,
    read_data,
    read_graph,
)
from spectralgp.cli.learning import Jobs, Seed, SpectrumKind, SpectrumOption
from spectralgp.cli.models import kernel_named, scored
from spectralgp.cli.tables import Column, table_of
from spectralgp.scores import root_mean_square_error

if TYPE_CHECKING:
    import pandas as pd

COMPARED = "identity,regularized-laplacian,diffusion,matern,polynomial:2,polynomial:auto,auto"
LEVEL = 0.9


@dataclass(frozen=True)
class Compared:
    """How one graph kernel did.

    Parameters
    ----------
    kernel : str
        Its name; or that of a baseline, of which only the error is known.
    log_evidence : float or None
        Log marginal likelihood of the signals learnt from, a total in nats.
    leave_one_out : float or None
        Log density of a signal given all others that were learnt from, the mean in nats; None without a closed form.
    held_out, held_out_error : float or None
        Log density of a held-out signal: mean and standard error, in nats.
    rmse : float
        Error of the predicted means.
    coverage : float or None
        Share of held-out values inside their 90% interval.
    seconds : float or None
        To fit.
    """

    kernel: str
    log_evidence: float | None
    leave_one_out: float | None
    held_out: float | None
    held_out_error: float | None
    rmse: float
    coverage: float | None
    seconds: float | None


COLUMNS = {
    "log\nevidence": Column("{row.log_evidence:.1f}", "log_evidence", True),
    "leave-\none-out": Column("{row.leave_one_out:.2f}", "leave_one_out", True),
    "held-out\n(s.e.)": Column("{row.held_out:.2f} ({row.held_out_error:.2f})", "held_out", True),
    "\nRMSE": Column("{row.rmse:.4g}", "rmse", False),
    "in\n90%": Column("{row.coverage:.1%}", "coverage", None),
}


@answering
def compare(
    signals: Signals,
    graph: GraphFile = None,
    points: Points = None,
    neighbors: Neighbors = None,
    radius: Radius = None,
    inputs: Inputs = None,
    layout: LayoutOption = Layout.auto,
    nodes: NodesOption = Nodes.exact,
    date_format: DateFormat = None,
    kernels: Annotated[
        str,
        typer.Option(
            help=f"Kernels to compare, separated by commas ({COMPARED.replace(',', ', ')}).",
            show_default=False,
            metavar="NAMES",
            rich_help_panel="Model",
        ),
    ] = COMPARED,
    held_out: Annotated[
        float,
        typer.Option(
            help="Share of the signals to hold out: the last rows.", min=0.01, max=0.9, rich_help_panel="Model"
        ),
    ] = 0.2,
    spectrum: SpectrumOption = SpectrumKind.auto,
    seed: Seed = 0,
    jobs: Jobs = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    r"""Compare graph kernels by held-out density, leave-one-out and evidence.

    Each is learnt from the first rows and scored on the last; beside them stand each node's mean and, with lag:1, the
    row before.

    Example (the files are those of `spectralgp example`):
      spectralgp compare --graph files/edges.csv --signals files/incomes.csv \
        --inputs lag:1 --kernels identity,diffusion,polynomial:2
    """
    named = {name: kernel_named(name) for name in dict.fromkeys(part.strip() for part in kernels.split(",")) if name}
    data = read_data(read_graph(graph, points, neighbors, radius), signals, inputs, layout, nodes, date_format)
    n_held_out = max(round(held_out * len(data.signals)), 1)
    if len(data.signals) - n_held_out < 2:
        raise ValueError(
            f"{signals} must have at least 2 signals beside those held out, {n_held_out}; got {len(data.signals)}. Add "
            "rows."
        )
    rows: list[Compared] = []
    with progress_bar("compare", len(named), show=True) as progress:
        for name, kernel in named.items():
            model = GraphGPRegressor(
                data.graph, kernel, random_state=seed, stacking=Stacking(n_jobs=jobs), spectrum=spectrum.value
            )
            try:
                rows.append(_compared(name, model, data, n_held_out))
            except ValueError as error:  # such as a kernel that a large graph cannot have
                typer.echo(f"note: {name} is left out: {' '.join(str(error).split())}", err=True)
            if progress is not None:
                progress(name)
    if not rows:
        raise ValueError("kernels must hold one that can be learnt; got none. The notes say why.")
    n_learnt, baselines = len(data.signals) - n_held_out, _baselines(data, n_held_out)
    if as_json:
        known = {"n_signals": n_learnt, "n_held_out": n_held_out, "kernels": [asdict(row) for row in rows]}
        print_json({**known, "baselines": [{"name": row.kernel, "rmse": row.rmse} for row in baselines]})
        return
    console = Console()
    console.print(table_of([*rows, *baselines], COLUMNS))
    console.print(
        f"Learnt from {n_learnt} signals; the last {n_held_out} are held out. Log evidence: total in nats. Leave-one-"
        "out and held-out: log density in nats a signal. Larger is better for all three. RMSE: of held-out values; the "
        "last rows are what any model should beat. In 90%: share of held-out values inside their 90% interval. The "
        "best numbers are bold.",
        style="dim",
        highlight=False,
    )


def _compared(name: str, model: GraphGPRegressor, data: Data, n_held_out: int) -> Compared:
    start = perf_counter()
    model.fit(_rows(data.inputs, slice(None, -n_held_out)), data.signals[:-n_held_out])
    seconds = perf_counter() - start
    scores = scored(model, _rows(data.inputs, slice(-n_held_out, None)), data.signals[-n_held_out:], LEVEL)
    try:
        left_out: float | None = float(np.nanmean(model.leave_one_out("signal").log_density))
    except ValueError:  # it has no closed form where a large graph's signals have holes
        left_out = None
    return Compared(
        name,
        model.log_marginal_likelihood_,
        left_out,
        scores.log_density,
        scores.log_density_error,
        scores.rmse,
        scores.coverage,
        seconds,
    )


def _baselines(data: Data, n_held_out: int) -> list[Compared]:
    """The errors of what needs no model: each node's mean, and with a lag the signal that is the input."""
    learnt, truth = data.signals[:-n_held_out], data.signals[-n_held_out:]
    means = learnt.mean().fillna(np.nanmean(learnt.to_numpy())).to_numpy()
    predicted = {"node means": np.broadcast_to(means, truth.shape)}
    if data.recipe.lag is not None and data.inputs is not None:
        predicted[f"lag:{data.recipe.lag}"] = data.inputs[list(truth.columns)][-n_held_out:].to_numpy()
    return [
        Compared(name, None, None, None, None, root_mean_square_error(truth, mean), None, None)
        for name, mean in predicted.items()
    ]


def _rows(table: pd.DataFrame | None, rows: slice) -> pd.DataFrame | None:
    return None if table is None else table[rows]
