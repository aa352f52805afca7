"""Settings of the estimator that tests and benchmarks name: those of the paper's model."""

from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.gaussian_process.kernels import RBF

PAPER: dict[str, Any] = {"residual": None, "carry": None, "center": "global", "scale": "global"}
"""One filter and white noise, as in the paper; its input kernel is `paper_kernel`, or any that a test names."""


def paper_kernel(inputs: Any) -> RBF:
    """A squared exponential whose length scale starts at the median distance of the inputs."""
    typical = float(np.sqrt(np.median(pdist(inputs, "sqeuclidean"))))
    return RBF(typical, (1e-3 * typical, 1e3 * typical))
