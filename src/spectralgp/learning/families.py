"""Learning of one graph kernel, or of several with shared computations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from spectralgp._basics.checks import as_option
from spectralgp._basics.progress import Progress, reporting_to
from spectralgp.learning.fit import Fit, Solver
from spectralgp.learning.missing import learn_incomplete, with_evidence
from spectralgp.learning.objective import Task, told_apart
from spectralgp.learning.sqp import Sqp
from spectralgp.model.fields import GraphGP
from spectralgp.model.kernels import GraphKernel

SolverLike = Solver | Literal["sqp"] | None


def learn(task: Task, graph_kernel: GraphKernel, *, solver: SolverLike = None, progress: Progress | None = None) -> Fit:
    """Learn the hyperparameters of one graph kernel, the input kernel and the noise together.

    Parameters
    ----------
    task : Task
        Graph, signals, inputs, input kernel and settings.
    graph_kernel : GraphKernel
        The form to learn; a polynomial needs a degree in numbers.
    solver : Solver or "sqp", optional
        `Sqp`, joint constrained optimisation, unless given.
    progress : callable, optional
        Called with the name of each step as it ends.

    Examples
    --------
    >>> import numpy as np
    >>> from spectralgp import Graph, Polynomial, Task, learn
    >>> ring = Graph.from_edges([(node, (node + 1) % 12) for node in range(12)])
    >>> signals = np.cumsum(np.random.default_rng(0).standard_normal((8, 12)), axis=1)
    >>> fit = learn(Task.of(ring, None, np.empty((8, 0)), signals - signals.mean()), Polynomial(2))
    >>> fit.converged, bool(fit.model.power.min() >= 0)
    (True, True)
    """
    if not isinstance(task, Task):
        raise TypeError(f"task must be a Task; got {type(task).__name__}. Make one with Task.of(...).")
    if not isinstance(graph_kernel, GraphKernel):
        raise TypeError(f"graph_kernel must be a graph kernel such as Polynomial(3); got {graph_kernel!r}.")
    with reporting_to(progress):
        return learn_all([task], [graph_kernel], as_solver(solver))[0]


def learn_all(
    tasks: Sequence[Task],
    kernels: Sequence[GraphKernel],
    solver: Solver | None = None,
    warm_starts: Sequence[Fit | None] | None = None,
) -> list[Fit]:
    """Learn graph kernels on their tasks, from warm starts if given; kernels on one path share a search."""
    solver, known = solver or Sqp(), warm_starts or [None] * len(kernels)
    fits, left = dict[int, Fit](), list(range(len(kernels)))
    while left:
        task, beside = tasks[left[0]], left[:1]
        if solver.shares_paths and task.is_complete:
            beside = [index for index in left if tasks[index] is task]
        paths = [kernels[index].search().path() for index in beside]
        path = max((path for path in paths if kernels[left[0]] in path), key=len)
        group = [index for index in beside if kernels[index] in path]
        left = [index for index in left if index not in group]
        own, starts = [kernels[index] for index in group], [start for i in group if (start := known[i]) is not None]
        if task.is_complete:
            found = solver.fit(task, own, starts if len(starts) == len(group) else None)
        else:
            found = [with_evidence(task, learn_incomplete(task, own[0], solver, known[group[0]]))]
        fits |= zip(group, found, strict=True)
    return [replace(fits[index], model=told_apart(tasks[index], fits[index].model)) for index in range(len(kernels))]


def learn_near(
    task: Task, kernel: GraphKernel, solver: Solver, warm_start: Fit | None = None, near: GraphGP | None = None
) -> Fit:
    """Learn one graph kernel; missing values are first imputed under a model `near` it, if given.

    Likelihoods of incomplete signals are expected ones until `with_evidence`.
    """
    if task.is_complete:
        return learn_all([task], [kernel], solver, [warm_start])[0]
    fit = learn_incomplete(task, kernel, solver, warm_start, near)
    return replace(fit, model=told_apart(task, fit.model))


def as_solver(solver: Solver | str | None) -> Solver:
    """Solver of a name, `Sqp` unless given; solvers themselves are returned."""
    if isinstance(solver, Solver):
        return solver
    if solver == "lagrangian":
        raise ValueError(
            "solver must be 'sqp' or a Solver; got 'lagrangian'. The paper's Algorithm 1 is in the folder "
            "reproduction of the repository: pass solver=Lagrangian(), after `from reproduction import Lagrangian`."
        )
    if solver is not None:
        as_option(solver, "solver", ("sqp",))
    return Sqp()
