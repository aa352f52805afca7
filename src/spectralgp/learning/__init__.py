"""Learning hyperparameters: objective, solvers and what they return."""

from spectralgp.learning.candidates import Candidate, Folds, HeldOut
from spectralgp.learning.draws import Draws, hyperparameter_draws
from spectralgp.learning.families import SolverLike, as_solver, learn, learn_all
from spectralgp.learning.fit import Certificate, Fit, Outcome, Solver, Stage
from spectralgp.learning.lagrangian import Lagrangian, Limits
from spectralgp.learning.sqp import Sqp
from spectralgp.learning.task import Task

__all__ = [
    "Candidate",
    "Certificate",
    "Draws",
    "Fit",
    "Folds",
    "HeldOut",
    "Lagrangian",
    "Limits",
    "Outcome",
    "Solver",
    "SolverLike",
    "Sqp",
    "Stage",
    "Task",
    "as_solver",
    "hyperparameter_draws",
    "learn",
    "learn_all",
]
