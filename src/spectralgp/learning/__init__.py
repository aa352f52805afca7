"""Learning hyperparameters: objective, solvers and what they return."""

from spectralgp.learning.candidates import Candidate, Folds, HeldOut, learn_groups
from spectralgp.learning.descent import Limits
from spectralgp.learning.draws import Draws, hyperparameter_draws
from spectralgp.learning.families import SolverLike, as_solver, learn, learn_all, n_steps
from spectralgp.learning.fit import Certificate, Fit, Outcome, Stage
from spectralgp.learning.lagrangian import Lagrangian
from spectralgp.learning.solver import Solver
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
    "learn_groups",
    "n_steps",
]
