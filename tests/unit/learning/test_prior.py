"""Centres of the length scales' prior."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from spectralgp.learning import log_length_scales

INPUTS = np.random.default_rng(0).standard_normal((7, 3)) * [1.0, 10.0, 0.1]


def median_squared_distance(inputs):
    return np.median([np.sum((a - b) ** 2) for i, a in enumerate(inputs) for b in inputs[:i]])


def test_isotropic_length_scale_is_centred_at_the_median_distance():
    (centre,) = log_length_scales(RBF(), INPUTS)
    assert np.exp(2 * centre) == pytest.approx(median_squared_distance(INPUTS))


def test_anisotropic_length_scales_share_out_the_distance():
    """Three features of equal length scale add up to the same squared distance as one of the whole."""
    centres = log_length_scales(RBF([1.0, 1.0, 1.0]), INPUTS)
    expected = [3 * median_squared_distance(column[:, None]) for column in INPUTS.T]
    np.testing.assert_allclose(np.exp(2 * centres), expected)


def test_other_parameters_have_no_centre_and_fixed_ones_no_entry():
    kernel = ConstantKernel(2.0) * RBF(1.0) + WhiteKernel() + RBF(3.0, "fixed")
    centres = log_length_scales(kernel, INPUTS)
    assert centres.size == kernel.theta.size == 3
    assert np.isnan(centres).tolist() == [True, False, True]


@pytest.mark.parametrize("inputs", [np.ones((5, 3)), np.ones((1, 3))])
def test_coinciding_or_single_inputs_have_no_typical_distance(inputs):
    assert np.isnan(log_length_scales(RBF(), inputs)).all()
