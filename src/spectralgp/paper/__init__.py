"""The paper's experiments: described as data, run by one runner, and shown beside the paper's own figures."""

from spectralgp.paper.experiments import EXPERIMENTS, FilterStudy, Model, PredictionStudy, Truth, chosen
from spectralgp.paper.page import write_page
from spectralgp.paper.runner import Outcome, reproduce
from spectralgp.paper.store import fingerprint

__all__ = [
    "EXPERIMENTS",
    "FilterStudy",
    "Model",
    "Outcome",
    "PredictionStudy",
    "Truth",
    "chosen",
    "fingerprint",
    "reproduce",
    "write_page",
]
