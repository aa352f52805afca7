"""Learning hyperparameters: objective, solvers and what they return."""

from spectralgp.learning.candidates import Candidate
from spectralgp.learning.draws import Draws, hyperparameter_draws
from spectralgp.learning.families import as_solver, learn, learn_all
from spectralgp.learning.fit import Certificate, Fit, Outcome, Solver, Stage
from spectralgp.learning.fitting import FittedModels
from spectralgp.learning.folds import Folds, FoldScores, Stacking
from spectralgp.learning.lagrangian import Lagrangian, Limits
from spectralgp.learning.objective import Task
from spectralgp.learning.sqp import Sqp
