"""What every solver is: something that learns kernels of one family from a task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from spectralgp.kernels import GraphKernel
from spectralgp.learning.fit import Fit
from spectralgp.learning.task import Task


class Solver(ABC):
    """A way to learn hyperparameters.

    Attributes
    ----------
    max_iterations : int
        Limit on the iterations of a fit, from which that on completions of signals with holes is derived.
    enough : float or None
        Nats that a fit may fall short of its maximum; None where it goes as far as rounding allows.
    """

    max_iterations: int = 500
    enough: float | None = None

    @abstractmethod
    def fit(self, task: Task, kernels: Sequence[GraphKernel], like: Sequence[Fit] | None = None) -> list[Fit]:
        """Fits of one kernel, or of kernels of one family, in their order.

        With `like`, fits of the same kernels to similar signals in the same units, a solver may start from those.
        """

    @abstractmethod
    def n_steps(self, kernels: Sequence[GraphKernel]) -> int:
        """How many steps `fit` reports."""

    def roughly(self, n_signals: int = 0) -> Solver:
        """The same, as far as predictions of so many signals can tell: for fits that are compared and thrown away."""
        return self

    def without_restarts(self) -> Solver:
        """The solver that searches from its own start alone; itself if it does so already."""
        return self

    @property
    def only_papers_model(self) -> bool:
        """Whether it is meant for the paper's model, without residuals, shrinkage or a choice of models."""
        return False

    @property
    def shares_families(self) -> bool:
        """Whether kernels of one family are learnt together."""
        return False
