"""The door to learning: one kernel, or several on the same data."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

from spectralgp._basics.checks import as_option
from spectralgp._basics.progress import Progress, telling
from spectralgp.kernels import GraphKernel
from spectralgp.learning.descent import Limits
from spectralgp.learning.fit import Fit
from spectralgp.learning.lagrangian import Lagrangian
from spectralgp.learning.missing import learn_incomplete
from spectralgp.learning.objective import told_apart
from spectralgp.learning.solver import Solver
from spectralgp.learning.sqp import Sqp
from spectralgp.learning.task import Task

SolverLike = Solver | Literal["sqp", "lagrangian"] | None


def learn(task: Task, graph_kernel: GraphKernel, *, solver: SolverLike = None, progress: Progress | None = None) -> Fit:
    """Learn the hyperparameters of one graph kernel, the input kernel and the noise together.

    Parameters
    ----------
    task : Task
        Graph, signals, inputs, input kernel and settings.
    graph_kernel : GraphKernel
        The form to learn; a polynomial needs a degree in numbers.
    solver : Solver, "sqp" or "lagrangian", optional
        `Sqp`, joint constrained optimisation, if not given; or `Lagrangian`, the paper's Algorithm 1.
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
    with telling(progress):
        return learn_all(task, [graph_kernel], as_solver(solver))[0]


def learn_all(
    task: Task, kernels: Sequence[GraphKernel], solver: Solver | None = None, like: Sequence[Fit] | None = None
) -> list[Fit]:
    """Learn several graph kernels on the same data; those of one family share their continuation.

    With `like`, fits of the same kernels to similar signals in the same units, each kernel is learnt from its own.
    """
    solver = solver or Sqp()
    fits: dict[int, Fit] = {}
    if task.signals.observed is not None:
        fits = dict(enumerate(learn_incomplete(task, kernels, solver, like)))
    else:
        for family in _families(kernels, solver):
            own = None if like is None else [like[index] for index in family]
            fits |= zip(family, solver.fit(task, [kernels[index] for index in family], own), strict=True)
    return [replace(fits[index], model=told_apart(task, fits[index].model)) for index in range(len(kernels))]


def n_steps(kernels: Sequence[GraphKernel], solver: Solver) -> int:
    """How many steps `learn_all` will report."""
    return sum(solver.n_steps([kernels[index] for index in family]) for family in _families(kernels, solver))


def as_solver(solver: SolverLike, max_iterations: int = 500) -> Solver:
    """A solver by its name, with a limit on its iterations; a solver itself has its own.

    Examples
    --------
    >>> as_solver("sqp", 100)
    Sqp(max_iterations=100, enough=None, n_restarts=0, random_state=0)
    """
    if isinstance(solver, Solver):
        return solver
    if solver is None or as_option(solver, "solver", ("sqp", "lagrangian")) == "sqp":
        return Sqp(max_iterations)
    return Lagrangian(Limits.from_iterations(max_iterations))


def _families(kernels: Sequence[GraphKernel], solver: Solver) -> list[list[int]]:
    """Indices of kernels to learn together."""
    families: dict[Hashable, list[int]] = {}
    for index, kernel in enumerate(kernels):
        shared = kernel.family if solver.shares_families else None
        families.setdefault(index if shared is None else (shared,), []).append(index)
    return [group for family in families.values() for group in _along_paths(kernels, family)]


def _along_paths(kernels: Sequence[GraphKernel], family: list[int]) -> Iterator[list[int]]:
    """A family cut into kernels along one path: one that no longer path passes is learnt on its own."""
    while family:
        path = max((kernels[index].path() for index in family), key=len)
        yield [index for index in family if kernels[index] in path]
        family = [index for index in family if kernels[index] not in path]
