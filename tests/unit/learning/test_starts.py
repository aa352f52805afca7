"""Where searches start."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import oracle
from spectralgp import Diffusion, Graph, Task
from spectralgp.inputs import as_input_kernel
from spectralgp.learning.objective import Objective
from spectralgp.learning.starts import starting_points
from tolerances import EXACT

WEIGHTS = oracle.random_weights(6, 1)
BOUNDS = (1e-2, 1e2)


def data(seed):
    """Six signals of one input on six nodes: few enough for several maxima."""
    rng = np.random.default_rng(seed)
    inputs = rng.uniform(0, 3, (6, 1))
    return inputs, np.sin(inputs + np.arange(6)) + 0.5 * rng.standard_normal((6, 6))


def task(seed, **options):
    return Task.of(Graph(WEIGHTS), RBF(1.0, BOUNDS), *data(seed), **{"prior": None} | options)


# Starts


def test_length_scales_start_as_given_and_at_a_third_of_and_at_the_typical_distance():
    inputs = np.array([[0.0], [1.0], [3.0]])  # distances 1, 2, 3
    kernel = as_input_kernel(ConstantKernel(5.0) * RBF(0.1))
    given, third, typical = (np.exp(theta).round(12).tolist() for theta in kernel.starting_points(inputs))
    assert given == [5.0, 0.1]
    assert third == pytest.approx([5.0, 2 / 3])
    assert typical == pytest.approx([5.0, 2.0])
    # nothing to vary where no length scale is free
    assert len(as_input_kernel(ConstantKernel(5.0)).starting_points(inputs)) == 1
    assert len(as_input_kernel(RBF(2.0, "fixed")).starting_points(inputs)) == 1
    assert len(as_input_kernel(None).starting_points(np.empty((3, 0)))) == 1


def test_typical_starts_are_every_pair_of_those_of_the_kernels():
    problem = task(0)
    spectrum = problem.spectrum_of(Diffusion())
    starts = starting_points(Objective(problem, Diffusion(), spectrum))
    expected = itertools.product(
        Diffusion().starting_points(spectrum, problem.variance), problem.input_kernel.starting_points(problem.inputs)
    )
    assert len(starts) == 9
    for start, (graph, inputs) in zip(starts, expected, strict=True):
        np.testing.assert_allclose(start, [*graph, *inputs, np.log(0.2 * problem.variance)], rtol=EXACT)
