"""The door to learning: one kernel, or several on the same data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

from spectralgp._checks import as_option
from spectralgp.graph import Graph
from spectralgp.graph_kernels import GraphKernel, Polynomial, PseudoInverse
from spectralgp.graph_kernels.base import SpectralKernel
from spectralgp.learning.fit import Fit
from spectralgp.learning.lagrangian import Limits, fit_lagrangian
from spectralgp.learning.objective import Task
from spectralgp.learning.sqp import Progress, fit_kernel, fit_path
from spectralgp.spectrum import AnySpectrum, LargeSignals, TooFewMoments, decompose

Solver = Literal["sqp", "lagrangian"]


def learn(
    task: Task,
    graph: Graph,
    graph_kernel: GraphKernel,
    *,
    solver: Solver = "sqp",
    max_iterations: int = 500,
    progress: Progress | None = None,
) -> Fit:
    """Learn the hyperparameters of one graph kernel, the input kernel and the noise together.

    Parameters
    ----------
    task : Task
        Signals, inputs, input kernel and settings.
    graph : Graph
        The graph the signals live on.
    graph_kernel : GraphKernel
        The form to learn; a polynomial needs a degree in numbers.
    solver : {"sqp", "lagrangian"}, default="sqp"
        Joint constrained optimisation, or the paper's Algorithm 1 (polynomials only).
    max_iterations : int, default=500
        Limit on the iterations of each constrained solve.
    progress : callable, optional
        Called with the name of each step as it ends.

    Examples
    --------
    >>> import numpy as np
    >>> from spectralgp import Graph, Polynomial, Task, learn
    >>> ring = Graph.from_edges([(node, (node + 1) % 12) for node in range(12)])
    >>> signals = np.cumsum(np.random.default_rng(0).standard_normal((8, 12)), axis=1)
    >>> fit = learn(Task(None, np.empty((8, 0)), signals - signals.mean()), ring, Polynomial(2))
    >>> fit.converged, bool(fit.model.node_modes.values.min() >= 0)
    (True, True)
    """
    return learn_all(task, graph, [graph_kernel], solver=solver, max_iterations=max_iterations, progress=progress)[0]


def learn_all(
    task: Task,
    graph: Graph,
    graph_kernels: Sequence[GraphKernel],
    *,
    solver: Solver = "sqp",
    max_iterations: int = 500,
    progress: Progress | None = None,
) -> list[Fit]:
    """Learn several graph kernels on the same data; polynomials of one family share their continuation."""
    as_option(solver, "solver", ("sqp", "lagrangian"))
    fits: dict[int, Fit] = {}
    for family in _families(graph_kernels, solver):
        kernels = [graph_kernels[index] for index in family]
        while True:
            try:
                learnt = _learn_family(task, graph, kernels, solver, max_iterations, progress)
            except TooFewMoments:
                cast(LargeSignals, task.signals).extend()
            else:
                break
        fits |= zip(family, learnt, strict=True)
    return [fits[index] for index in range(len(graph_kernels))]


def _learn_family(
    task: Task,
    graph: Graph,
    kernels: list[GraphKernel],
    solver: Solver,
    max_iterations: int,
    progress: Progress | None,
) -> list[Fit]:
    """Fits of one kernel, or of polynomials that differ in degree only."""
    laplacian, scaled = kernels[0].laplacian, kernels[0].scaled
    spectrum: AnySpectrum
    if isinstance(task.signals, LargeSignals):
        _refuse_poles(kernels[0])
        spectrum = task.signals.spectrum(laplacian, scaled)
    else:
        spectrum = decompose(graph, laplacian, scaled=scaled)
    bound = kernels[0].bind(spectrum)
    if not isinstance(bound, Polynomial):
        return [fit_kernel(task, bound, spectrum, max_iterations, progress)]
    if solver == "lagrangian":
        return [fit_lagrangian(task, bound, spectrum, Limits.from_iterations(max_iterations), progress)]
    degrees = [kernel.theta.size - 1 for kernel in kernels]
    return fit_path(task, bound, degrees, spectrum, max_iterations, progress)


def _refuse_poles(kernel: GraphKernel) -> None:
    """Refuse kernels that no polynomial on the spectrum comes close to, before the graph is visited."""
    if not isinstance(kernel, SpectralKernel) or isinstance(kernel, PseudoInverse):
        raise ValueError(
            "graph_kernel must be a function on the spectrum without a pole in it for a large graph; got "
            f"{kernel!r}. Use another kernel, or spectrum='exact' where the graph is small enough."
        )


def n_steps(graph_kernels: Sequence[GraphKernel], solver: Solver = "sqp") -> int:
    """How many times `learn_all` will report progress."""
    total = 0
    for family in _families(graph_kernels, solver):
        kernels = [graph_kernels[index] for index in family]
        if not isinstance(kernels[0], Polynomial):
            total += 1
        elif solver == "lagrangian":
            total += 2 if kernels[0].constraint is None else 3
        else:
            total += max(kernel.theta.size for kernel in kernels)
    return total


def _families(graph_kernels: Sequence[GraphKernel], solver: Solver) -> list[list[int]]:
    """Indices of kernels to learn together: polynomials that differ in degree only share a continuation."""
    families: dict[object, list[int]] = {}
    for index, kernel in enumerate(graph_kernels):
        key: object = index
        if isinstance(kernel, Polynomial) and solver == "sqp":
            key = (kernel.constraint, kernel.laplacian, kernel.scaled)
        families.setdefault(key, []).append(index)
    return list(families.values())
