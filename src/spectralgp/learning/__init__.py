"""Learning hyperparameters: objective, solvers and what they return."""

from spectralgp.learning.cross_validation import held_out_log_densities
from spectralgp.learning.fit import Certificate, Fit, Stage
from spectralgp.learning.laplace import hyperparameter_draws
from spectralgp.learning.learn import learn, learn_all, n_steps
from spectralgp.learning.objective import Task

__all__ = [
    "Certificate",
    "Fit",
    "Stage",
    "Task",
    "held_out_log_densities",
    "hyperparameter_draws",
    "learn",
    "learn_all",
    "n_steps",
]
