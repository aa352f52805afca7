"""Random numbers that belong to nodes."""

import numpy as np
import pytest
from scipy import stats

from spectralgp.graphs.operators.randomness import _words, node_normals, node_signs

NODES = np.arange(20_000, dtype=np.uint64)


def test_bits_are_those_of_the_published_generator():
    """The first outputs of SplitMix64 for the seed 1234567, as its authors' reference program prints them."""
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert _words(np.arange(4, dtype=np.uint64), 1234567).tolist() == expected


@pytest.mark.parametrize("draw", [node_signs, node_normals])
@pytest.mark.parametrize("n_columns", [1, 3, 64, 70])
def test_a_node_has_its_numbers_in_any_order_and_any_part(draw, n_columns):
    whole = draw(NODES[:500], n_columns, np.random.default_rng(5), np.float64)
    order = np.random.default_rng(0).permutation(500)[:100]
    part = draw(NODES[order], n_columns, np.random.default_rng(5), np.float64, at_once=7)
    np.testing.assert_array_equal(part, whole[order])
    assert not np.array_equal(whole, draw(NODES[:500], n_columns, np.random.default_rng(6), np.float64))


def test_signs_are_fair_and_independent():
    signs = node_signs(NODES, 96, np.random.default_rng(1), np.float32)
    assert signs.dtype == np.float32
    assert set(np.unique(signs)) == {-1.0, 1.0}
    n_nodes = len(NODES)
    assert np.abs(signs.mean(axis=0)).max() < 5 / np.sqrt(n_nodes)
    products = signs.T @ signs / n_nodes - np.eye(96)
    assert np.abs(products).max() < 5.5 / np.sqrt(n_nodes)
    along = (signs[1:] * signs[:-1]).mean(axis=0)  # neighbours in number
    assert np.abs(along).max() < 5 / np.sqrt(n_nodes)


def test_normals_are_normal_and_independent():
    normals = node_normals(NODES, 8, np.random.default_rng(2), np.float64)
    assert stats.kstest(normals.ravel(), "norm").pvalue > 1e-3
    n_nodes = len(NODES)
    assert np.abs(normals.T @ normals / n_nodes - np.eye(8)).max() < 5 * np.sqrt(2 / n_nodes)
    squares = normals**2 - 1
    products = squares.T @ squares / n_nodes - 2 * np.eye(8)  # the two of one pair too
    assert np.abs(products).max() < 5 * np.sqrt(60 / n_nodes)
    assert np.abs((normals[1:] * normals[:-1]).mean(axis=0)).max() < 5 / np.sqrt(n_nodes)
