"""Learning hyperparameters: objective, solvers and what they return."""

from spectralgp._basics.progress import step_done
from spectralgp.learning.candidates import Candidate, Stacking, learn, learn_all
from spectralgp.learning.draws import Draws, hyperparameter_draws
from spectralgp.learning.fit import Certificate, Fit, Outcome, SearchResult, Solver, Stage, lift_above_zero
from spectralgp.learning.fitting import FittedModels
from spectralgp.learning.folds import Folds, FoldScores
from spectralgp.learning.objective import Objective, Task
from spectralgp.learning.sqp import Sqp, as_solver, grid_search

__all__ = [  # public: for users, and for solvers of their own
    "Certificate",
    "Fit",
    "Objective",
    "Outcome",
    "SearchResult",
    "Solver",
    "Sqp",
    "Stacking",
    "Stage",
    "Task",
    "grid_search",
    "learn",
    "lift_above_zero",
    "step_done",
]
