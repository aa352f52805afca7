"""Eigendecompositions of covariances, and what is refused."""

import numpy as np
import pytest

import oracle
from spectralgp.model.spectra import Modes, modes_of
from tolerances import FORMULA

ROOT = np.random.default_rng(8).standard_normal((5, 5))
COVARIANCE = ROOT @ ROOT.T


def test_modes_rebuild_the_matrix():
    modes = modes_of(COVARIANCE)
    assert isinstance(modes, Modes)
    rebuilt = modes.vectors @ np.diag(modes.values) @ modes.vectors.T
    assert oracle.relative_error(rebuilt, COVARIANCE) < FORMULA


def test_rounding_below_zero_is_removed_and_a_truly_negative_eigenvalue_refused():
    rounded = modes_of(np.diag([1.0, -1e-12]))
    assert rounded.values.tolist() == [0.0, 1.0]
    assert rounded.smallest == -1e-12
    assert rounded.require_definite() is rounded
    with pytest.raises(
        ValueError, match=r"the input covariance must be positive semi-definite; got smallest eigenvalue -2"
    ):
        modes_of(np.diag([1.0, -2.0])).require_definite()
    for size in (1.0, 1e-9):  # relative to the largest
        assert modes_of(size * np.diag([1.0, -0.9e-8])).require_definite().values.tolist() == [0.0, size]
        for values in ([1.0, -1.1e-8], [-1.0, -0.5]):
            with pytest.raises(ValueError, match="must be positive semi-definite"):
                modes_of(size * np.diag(values)).require_definite()
    assert modes_of(np.empty((0, 0))).require_definite().vectors.shape == (0, 0)


def test_a_matrix_of_zeros_is_a_covariance():
    assert modes_of(np.zeros((3, 3))).require_definite().values.tolist() == [0.0, 0.0, 0.0]
