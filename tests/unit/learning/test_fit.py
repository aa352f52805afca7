"""Certificates of points that are made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from cases import GRAPHS
from spectralgp.kernels import Polynomial
from spectralgp.learning import Task
from spectralgp.learning.fit import certify
from spectralgp.learning.objective import Objective
from spectralgp.spectra import decompose

SIGNALS = np.random.default_rng(0).standard_normal((6, 7))


@pytest.mark.parametrize("constraint", ["eigenvalues", "interval"])
@pytest.mark.parametrize(("share", "active"), [(1e-3, ()), (1e-5, ()), (1e-7, ("filter at 1",)), (0, ("filter at 1",))])
def test_a_filter_touches_zero_within_a_millionth_of_its_largest_value(constraint, share, active):
    """A line from one at zero to some share of it at one."""
    spectrum = decompose(GRAPHS["random"], scaled=True)
    task = Task.of(GRAPHS["random"], None, np.empty((6, 0)), SIGNALS)
    objective = Objective(task, Polynomial(1, constraint), spectrum)
    x = objective.join(np.array([1 + share, share - 1]) / 2, np.empty(0), 0.3)
    certificate = certify(objective, x)
    assert certificate.active == active
    assert len(certificate.multipliers) == len(active)
    assert certificate.feasibility == 0.0
