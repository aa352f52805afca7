"""The paper's experiments: described as data, run by one runner, and shown beside the paper's own figures."""

from reproduction.algorithm_1 import Lagrangian, Limits
from reproduction.experiments import (
    EXPERIMENTS,
    FilterStudy,
    GraphStudy,
    Model,
    PredictionStudy,
    ProgramStudy,
    Truth,
    chosen,
)
from reproduction.page import write_page
from reproduction.runner import Outcome, reproduce
from reproduction.store import fingerprint

__all__ = [
    "EXPERIMENTS",
    "FilterStudy",
    "GraphStudy",
    "Lagrangian",
    "Limits",
    "Model",
    "Outcome",
    "PredictionStudy",
    "ProgramStudy",
    "Truth",
    "chosen",
    "fingerprint",
    "reproduce",
    "write_page",
]
