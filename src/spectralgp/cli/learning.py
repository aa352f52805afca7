"""`fit`: from files to a model."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

from spectralgp import Chebyshev, GraphGPRegressor, Stacking
from spectralgp.cli.app import AsJson, Debug, Force, answering, print_json, to_be_written
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
    naming,
    read_data,
    read_graph,
)
from spectralgp.cli.models import AUTO, KERNELS, kernel_named


class SpectrumKind(StrEnum):
    """How the graph is decomposed."""

    auto = "auto"
    exact = "exact"
    chebyshev = "chebyshev"


class Device(StrEnum):
    """Where to compute on a large graph."""

    cpu = "cpu"
    cuda = "cuda"


def _not_zero(jobs: int | None) -> int | None:
    if jobs == 0:
        raise typer.BadParameter("--jobs must be a number of threads, or -1 for all cores; got 0.")
    return jobs


KernelName = Annotated[
    str,
    typer.Option(
        help=f"Graph kernel: {', '.join([AUTO, *KERNELS])}; auto tries several models and stacks them.",
        metavar="NAME",
        rich_help_panel="Model",
    ),
]
Degree = Annotated[
    str | None,
    typer.Option(help="Degree of the polynomial: a number, or auto.", rich_help_panel="Model", metavar="N|auto"),
]
SpectrumOption = Annotated[
    SpectrumKind,
    typer.Option("--spectrum", help="Eigenvectors, or moments for large graphs.", rich_help_panel="Model"),
]
DeviceOption = Annotated[
    Device | None, typer.Option("--device", help="Where to compute on large graphs.", rich_help_panel="Model")
]
Seed = Annotated[int, typer.Option(help="Of folds and draws.", min=0, max=2**32 - 1, rich_help_panel="Model")]
Jobs = Annotated[
    int | None,
    typer.Option(
        help="Threads that learn folds side by side; -1 for all cores.", callback=_not_zero, rich_help_panel="Model"
    ),
]


@answering
def fit(
    signals: Signals,
    out: Annotated[Path, typer.Option(help="File for the model.", dir_okay=False, metavar="MODEL")],
    graph: GraphFile = None,
    points: Points = None,
    neighbors: Neighbors = None,
    radius: Radius = None,
    inputs: Inputs = None,
    layout: LayoutOption = Layout.auto,
    nodes: NodesOption = Nodes.exact,
    date_format: DateFormat = None,
    kernel: KernelName = AUTO,
    degree: Degree = None,
    spectrum: SpectrumOption = SpectrumKind.auto,
    device: DeviceOption = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    force: Force = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    r"""Learn a model from a graph and signals in files, and save it.

    Empty cells are what was not observed. Nodes are matched by name across files.

    Example (the files are those of `spectralgp example`):
      spectralgp fit --graph files/edges.csv --signals files/incomes.csv \
        --inputs lag:1 --out model.sgp
    """
    to_be_written(out, force=force)
    chosen = kernel_named(_with_degree(kernel, degree))
    data = read_data(read_graph(graph, points, neighbors, radius), signals, inputs, layout, nodes, date_format)
    settings: Any = spectrum.value
    if device == Device.cuda:
        if spectrum == SpectrumKind.exact:
            raise typer.BadParameter("--device must be cpu where the spectrum is exact, which is found on the host.")
        settings = Chebyshev(device="cuda")
    model = GraphGPRegressor(
        data.graph, chosen, random_state=seed, stacking=Stacking(n_jobs=jobs), spectrum=settings, verbose=1
    )
    start = perf_counter()
    with naming(signals):
        model.fit(data.inputs, data.signals)
    model.input_recipe_ = data.recipe
    seconds = perf_counter() - start
    model.save(out)
    if as_json:
        print_json(_fitted(model, data, out, seconds))
        return
    typer.echo(model.summary().rstrip())
    typer.echo(f"\nLog evidence {model.log_marginal_likelihood_:.2f} nats; {seconds:.1f} s.\nSaved as {out}.")


def _with_degree(kernel: str, degree: str | None) -> str:
    if degree is None:
        return kernel
    if kernel not in (AUTO, "polynomial"):
        raise typer.BadParameter(f"--degree must be left out unless the kernel is polynomial; got it with {kernel}.")
    return f"polynomial:{degree}"


def _fitted(model: GraphGPRegressor, data: Data, out: Path, seconds: float) -> dict[str, Any]:
    fits = [
        {
            "kernel": fit.model.graph_kernel.label,
            "weight": weight,
            "converged": fit.converged,
            "message": fit.message,
            "method": fit.method,
        }
        for fit, weight in zip(model.fits_, model.kernel_weights_, strict=True)
    ]
    return {
        "model": out,
        "n_nodes": data.graph.n_nodes,
        "n_edges": data.graph.n_edges,
        "n_signals": len(data.signals),
        "n_missing": int(data.signals.isna().to_numpy().sum()),
        "inputs": [] if data.inputs is None else list(data.inputs.columns),
        "log_evidence": model.log_marginal_likelihood_,
        "noise_variance": model.noise_variance_,
        "fits": fits,
        "seconds": seconds,
    }
