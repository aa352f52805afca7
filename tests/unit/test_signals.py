"""Signals: centre, scale, units and views, of arrays in memory, files and other libraries, against NumPy by hand."""

import pickle

import array_api_strict
import dask.array
import numpy as np
import pytest
from array_api_compat import is_dask_array

import oracle
from cases import GRAPHS, WEIGHTS, Columns
from spectralgp import Graph, GraphGPRegressor, LocalAverage
from spectralgp.graphs.operators import make_operator
from spectralgp.model.signals import Units, as_training, expected_signals, read_in, read_signals, reading, state_of
from tolerances import EXACT, FORMULA, QUADRATURE

N_SIGNALS, N_NODES = 5, 7
VALUES = 30 + 4 * np.random.default_rng(0).standard_normal((N_SIGNALS, N_NODES)) + np.arange(N_NODES)
KEPT, HELD_OUT = np.array([4, 0, 2]), np.array([1, 3])

every_center = pytest.mark.parametrize("center", ["global", "node", None])
every_scale = pytest.mark.parametrize("scale", ["global", None])
every_laplacian = pytest.mark.parametrize("laplacian", ["combinatorial", "normalized", "balanced"])
in_memory_or_not = pytest.mark.parametrize("keep_source", [False, True])


def centre_of(values, center):
    """By hand: one number, one a node, or none."""
    return {"global": values.mean(), "node": values.mean(axis=0), None: 0.0}[center]


def standardized(values, center, scale):
    centred = values - centre_of(values, center)
    return centred / (np.std(centred) if scale else 1.0)


def part_of(signals, rows):
    """Some of the signals, with a centre of their own."""
    return signals.fold(rows, rows)[0]


def operator_of(laplacian, like=VALUES, name="random"):
    return make_operator(*GRAPHS[name].laplacian_parts(laplacian), like)


def dense_moments(values, operator, laplacian, n_moments, name="random"):
    matrix = 2 * oracle.laplacian(WEIGHTS[name], laplacian) / operator.bound - np.eye(len(WEIGHTS[name]))
    return np.stack([values @ oracle.chebyshev_matrix(matrix, k) @ values.T for k in range(n_moments)])


# The whole


@every_center
@every_scale
@in_memory_or_not
def test_values_units_and_moments_are_those_by_hand(center, scale, keep_source):
    signals = read_signals(VALUES, center, scale, keep_source=keep_source)
    expected = standardized(VALUES, center, scale)
    assert signals.shape == VALUES.shape
    assert signals.size == VALUES.size
    assert oracle.relative_error(signals.values, expected) < EXACT
    assert oracle.relative_error(signals.units.restore(signals.values), VALUES) < EXACT
    assert (
        oracle.relative_error(
            np.broadcast_to(signals.units.offset, N_NODES), np.broadcast_to(centre_of(VALUES, center), N_NODES)
        )
        < EXACT
    )
    assert signals.variance == pytest.approx(np.var(expected), rel=EXACT)
    assert signals.mean_square == pytest.approx(np.mean(expected**2), rel=EXACT)
    matrix = np.random.default_rng(1).standard_normal((N_NODES, 4))
    assert oracle.relative_error(signals.transform(matrix), expected @ matrix) < EXACT


def test_a_density_in_other_units_shifts_by_the_spread_of_each_value():
    units = Units(3.0, 2.0)
    density = oracle.log_density(np.array([1.0, -1.0]), 0.0, np.eye(2))
    expected = oracle.log_density(np.array([5.0, 1.0]), 3.0, 4 * np.eye(2))
    assert units.log_density(density, 2) == pytest.approx(expected)
    scales, values = np.array([0.5, 3.0]), np.array([1.5, 7.0, 0.2])
    for scaled in (Units(3.0, 2.0, values), Units(3.0, 2.0, None, None, scales), Units(3.0, 2.0, values, None, scales)):
        divisors = np.broadcast_to(scaled.divisor, (2, 3))
        expected = density - np.log(divisors).sum(axis=1)
        np.testing.assert_allclose(np.broadcast_to(scaled.log_density(density, 3), 2), expected)
        np.testing.assert_allclose(scaled.log_volume(np.ones((2, 3), dtype=bool), axis=1), density - expected)
        seen = np.array([[True, False, True], [False, True, False]])
        assert scaled.log_volume(seen) == pytest.approx(np.log(divisors)[seen].sum())


def test_levels_that_were_not_known_are_learnt_from_further_signals():
    """Normal beforehand, seen through noise of the divisor's size; a level that was known, or is not seen, stays."""
    units = Units(np.array([1.0, 2.0, 3.0, 4.0]), 2.0, np.array([1.0, 0.5, 1.5, 1.0]), np.array([0.5, 3.0, 0.0, 0.7]))
    seen = np.array([[2.0, 5.0, 9.0, np.nan], [3.0, np.nan, 7.0, np.nan]])
    informed = units.informed_by(seen)
    first = 1.0 + (2.5 - 1.0) * 0.5 / (0.5 + 4.0 / 2)
    second = 2.0 + (5.0 - 2.0) * 3.0 / (3.0 + 1.0)
    np.testing.assert_allclose(informed.offset, [first, second, 3.0, 4.0])
    np.testing.assert_array_equal(informed.offset_variance, [0.0, 0.0, 0.0, 0.7])
    known = Units(1.0, 2.0)
    assert known.informed_by(seen) is known


def test_units_of_some_signals_of_new_ones_and_of_some_nodes():
    plain, relative, scales = Units(3.0, 2.0), np.array([1.0, 0.5, 4.0]), np.array([0.1, 10.0])
    assert plain.of(np.array([1])) is plain.of_new is plain.with_new(3) is plain
    units = Units(3.0, 2.0, relative, None, scales)
    np.testing.assert_array_equal(units.divisor, np.multiply.outer(scales, 2 * relative))
    np.testing.assert_array_equal(units.of(np.array([1])).divisor, 20 * relative[None])
    np.testing.assert_array_equal(units.of_new.divisor, 2 * relative)
    np.testing.assert_array_equal(units.with_new(2).signal_scales, [0.1, 10.0, 1.0, 1.0])
    std, nodes = np.array([[1.0, 2.0]]), np.array([2, 0])
    np.testing.assert_array_equal(units.of_new.restore_scale(std, nodes), [[8.0, 4.0]])
    np.testing.assert_array_equal(plain.restore_scale(std, nodes), [[2.0, 4.0]])
    np.testing.assert_array_equal(units.of_new.restore_scale(np.ones((1, 3))), 2 * relative[None])
    values = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    np.testing.assert_allclose(units.apply(values), (values - 3) / units.divisor)
    np.testing.assert_allclose(units.restore(units.apply(values)), values)


@every_center
@every_laplacian
@in_memory_or_not
def test_moments_and_columns_are_dense_products(center, laplacian, keep_source):
    signals = read_signals(VALUES, center, "global", keep_source=keep_source)
    operator = operator_of(laplacian)
    expected = standardized(VALUES, center, "global")
    assert oracle.relative_error(operator.unload(signals.columns(operator)), expected) < EXACT
    moments = signals.moments(operator, 9)
    assert oracle.relative_error(moments, dense_moments(expected, operator, laplacian, 9)) < FORMULA
    again = signals.moments(operator, 5)
    np.testing.assert_array_equal(again, moments[:5])


@every_laplacian
@pytest.mark.parametrize(("n_signals", "n_deviations"), [(1, 0), (1, 4), (3, 0), (3, 2)])
def test_moments_of_completed_signals_are_expected_ones(laplacian, n_signals, n_deviations):
    """Those of the mean, and of every deviation."""
    rng, operator = np.random.default_rng(2), operator_of(laplacian)
    mean, deviations = VALUES[:n_signals] - 30, rng.standard_normal((n_deviations, n_signals, N_NODES))
    signals = expected_signals(mean, deviations)
    spread = sum(dense_moments(one, operator, laplacian, 9) for one in deviations) + np.zeros((9, n_signals, n_signals))
    expected = dense_moments(mean, operator, laplacian, 9) + spread
    assert oracle.relative_error(signals.moments(operator, 5), expected[:5]) < FORMULA
    assert oracle.relative_error(signals.moments(operator, 9), expected) < FORMULA
    np.testing.assert_allclose(signals.spread_moments(operator, 5), spread[:5], atol=FORMULA * np.max(np.abs(spread)))
    assert read_signals(VALUES).spread_moments(operator, 5) is None


@every_center
@every_scale
@pytest.mark.parametrize("is_large", [False, True])
def test_signals_with_missing_values_are_centred_and_scaled_by_what_was_observed(center, scale, is_large):
    """By hand, also where squares of the values would be none; the last node was never observed."""
    missing = np.random.default_rng(5).random(VALUES.shape) < 0.3
    missing[:, -1] = True
    values, factor = np.where(missing, np.nan, VALUES), {None: 1e60, "global": 1e130}[scale] if is_large else 1.0
    signals = read_signals(factor * values, center, scale)
    means = np.append(np.nanmean(values[:, :-1], axis=0), np.nanmean(values))
    centred = values - {"global": np.nanmean(values), "node": means, None: 0.0}[center]
    divisor = (np.nanstd(values) if center is None else np.sqrt(np.nanmean(centred**2))) * factor if scale else 1.0
    expected = centred * (factor / divisor)
    assert signals.size == np.count_nonzero(~missing)
    assert not signals.observed.any(axis=0).all()
    assert not signals.is_complete
    np.testing.assert_array_equal(signals.observed, ~missing)
    np.testing.assert_allclose(signals.values, expected, rtol=FORMULA, atol=FORMULA * np.nanmax(np.abs(expected)))
    np.testing.assert_allclose(signals.units.restore(signals.values), factor * values, rtol=EXACT)
    assert signals.variance == pytest.approx(np.nanvar(expected), rel=FORMULA)
    within = expected[:, :-1] - np.nanmean(expected[:, :-1], axis=0)
    assert signals.variance_within == pytest.approx(np.nanmean(within**2), rel=FORMULA)
    assert signals.log_volume == pytest.approx(np.count_nonzero(~missing) * np.log(divisor), abs=1e-9)
    with pytest.raises(ValueError, match=rf"signals must .*; got {missing.sum()} missing values"):
        signals.transform(np.eye(N_NODES))


# Views


@every_center
@every_laplacian
@in_memory_or_not
def test_a_view_is_centred_by_itself(center, laplacian, keep_source):
    """Everything a view says is what the rows say alone, with the spread of all."""
    signals = read_signals(VALUES, center, "global", keep_source=keep_source)
    spread = signals.units.spread
    operator = operator_of(laplacian)
    for rows, view in [
        (KEPT, part_of(signals, KEPT)),
        (KEPT[[2, 0]], part_of(part_of(signals, KEPT), np.array([2, 0]))),
        (np.array([3]), part_of(signals, np.array([3]))),
    ]:
        centre = centre_of(VALUES[rows], center)
        expected = (VALUES[rows] - centre) / spread
        scale = float(np.max(np.abs(VALUES)))
        assert view.shape == expected.shape
        assert oracle.relative_error(view.values, expected, scale) < EXACT
        assert oracle.relative_error(operator.unload(view.columns(operator)), expected, scale) < EXACT
        assert oracle.relative_error(view.units.restore(view.values), VALUES[rows]) < EXACT
        assert view.variance == pytest.approx(np.var(expected), rel=FORMULA, abs=FORMULA)
        assert view.mean_square == pytest.approx(np.mean(expected**2), rel=FORMULA, abs=FORMULA)
        moments = view.moments(operator, 7)
        assert oracle.relative_error(moments, dense_moments(expected, operator, laplacian, 7), scale) < FORMULA
        matrix = np.random.default_rng(1).standard_normal((N_NODES, 4))
        assert oracle.relative_error(view.transform(matrix), expected @ matrix, scale) < EXACT


@every_center
def test_a_fold_puts_what_is_held_out_into_the_units_of_what_is_kept(center):
    signals = read_signals(VALUES, center, "global")
    kept, held_out = signals.fold(KEPT, HELD_OUT)
    centre = centre_of(VALUES[KEPT], center)
    assert oracle.relative_error(kept.values, (VALUES[KEPT] - centre) / signals.units.spread) < EXACT
    assert oracle.relative_error(held_out.values, (VALUES[HELD_OUT] - centre) / signals.units.spread) < EXACT
    assert oracle.relative_error(held_out.units.restore(held_out.values), VALUES[HELD_OUT]) < EXACT
    copied = read_in(signals.units, VALUES, center)  # without products of the rows
    scaled = copied.fold(KEPT, HELD_OUT)
    for own, other in zip(scaled, (kept, held_out), strict=True):
        assert oracle.relative_error(own.units.restore(own.values), other.units.restore(other.values)) < EXACT
        assert oracle.relative_error(own.values, other.values) < EXACT
    both = held_out.followed_by(kept)
    assert oracle.relative_error(both.values, np.vstack([held_out.values, kept.values])) < EXACT
    assert signals.followed_by(kept) is None or center is None  # another centre
    assert kept.followed_by(read_signals(VALUES, center, "global")) is None  # other signals


@every_center
def test_a_fold_of_scaled_nodes_is_in_the_units_of_what_is_kept(center):
    """Scales are found anew: both parts say how to get back to what came in."""
    kept, held_out = read_signals(VALUES, center, "node").fold(KEPT, HELD_OUT)
    alone = read_signals(VALUES[KEPT], center, "node")
    assert oracle.relative_error(kept.values, alone.values) < EXACT
    assert oracle.relative_error(held_out.values, alone.units.apply(VALUES[HELD_OUT])) < EXACT
    for part, rows in ((kept, KEPT), (held_out, HELD_OUT)):
        assert oracle.relative_error(part.units.restore(part.values), VALUES[rows]) < EXACT


def test_moments_go_on_after_what_was_let_go():
    signals, operator = read_signals(VALUES, "global", "global"), operator_of("normalized")
    for view in (signals, part_of(signals, KEPT), signals.fold(KEPT, HELD_OUT)[1]):
        view.moments(operator, 9)
    signals.release()
    longer = signals.moments(operator, 31)  # the recurrence was let go: it starts again
    fresh = read_signals(VALUES, "global", "global").moments(operator_of("normalized"), 31)
    assert oracle.relative_error(longer, fresh) < EXACT


# What holds them


@every_center
def test_files_and_other_libraries_give_the_same(center, tmp_path):
    np.save(tmp_path / "values.npy", VALUES)
    expected = standardized(VALUES, center, "global")
    sources = {
        "memory map": np.load(tmp_path / "values.npy", mmap_mode="r"),
        "file": Columns(VALUES),
        "another library": array_api_strict.asarray(VALUES),
        "integers": np.round(VALUES).astype(np.int32),
        "single precision": VALUES.astype(np.float32),
    }
    for kind, source in sources.items():
        signals = read_signals(source, center, "global", keep_source=True)
        truth = standardized(np.round(VALUES), center, "global") if kind == "integers" else expected
        close = 1e-5 if kind == "single precision" else EXACT
        operator = operator_of("combinatorial", source)
        columns = np.asarray(operator.unload(signals.columns(operator)), dtype=float)
        assert oracle.relative_error(columns, truth) < close, kind
        assert signals.variance == pytest.approx(np.var(truth), rel=max(close, 1e-9)), kind


def test_signals_are_read_by_blocks(monkeypatch):
    """Scales of nodes too are those of all blocks, though each block is read in units of its largest value."""
    scaled = VALUES * np.repeat([1.0, 40.0, 900.0], 3)[:N_NODES]
    whole = read_signals(scaled, "node", "node")
    monkeypatch.setattr(reading, "BLOCK", 3 * N_SIGNALS)
    np.testing.assert_allclose(read_signals(scaled, "node", "node").units.divisor, whole.units.divisor, rtol=1e-12)
    for center in ("global", "node", None):
        file = Columns(VALUES)
        signals = read_signals(file, center, "global", keep_source=True)
        assert max(width for _, width in file.asked) == 3
        expected = standardized(VALUES, center, "global")
        assert signals.variance == pytest.approx(np.var(expected), rel=EXACT)
        offset = np.broadcast_to(signals.units.offset, N_NODES)
        reference = VALUES.mean(axis=0) if center == "node" else np.full(N_NODES, VALUES.mean() * (center == "global"))
        assert oracle.relative_error(offset, reference, 30.0) < EXACT


def test_a_large_level_costs_no_digits():
    """Temperatures in microkelvin: the spread is nine orders below the level."""
    for center in ("global", "node", None):
        signals = read_signals(VALUES + 1e9, center, "global")
        assert signals.units.spread == pytest.approx(np.std(VALUES - centre_of(VALUES, center)), rel=QUADRATURE)
        assert signals.variance == pytest.approx(1.0, rel=QUADRATURE)
        assert part_of(signals, KEPT).variance == pytest.approx(
            np.var(VALUES[KEPT] - centre_of(VALUES[KEPT], center)) / signals.units.spread**2, rel=QUADRATURE
        )


@in_memory_or_not
def test_what_the_caller_does_to_an_array_later_changes_nothing(keep_source):
    given = VALUES.copy()
    signals = read_signals(given, "node", "global", keep_source=keep_source)
    operator = operator_of("combinatorial")
    given *= np.nan
    assert (
        oracle.relative_error(operator.unload(signals.columns(operator)), standardized(VALUES, "node", "global"))
        < EXACT
    )


@pytest.mark.parametrize(("center", "dtype"), [("node", np.float64), ("global", np.float32), (None, np.int64)])
def test_a_dask_array_is_read_chunk_by_chunk_and_stays_where_it_is(center, dtype):
    values = np.round(VALUES).astype(dtype)
    signals = read_signals(dask.array.from_array(values, chunks=(2, 3)), center, "global", keep_source=True)
    expected = standardized(values.astype(float), center, "global")
    assert is_dask_array(signals.values)
    assert oracle.relative_error(np.asarray(signals.values), expected) < EXACT
    assert signals.variance == pytest.approx(np.var(expected), rel=FORMULA)


def test_a_file_is_not_copied(tmp_path):
    np.save(tmp_path / "values.npy", VALUES)
    mapped = np.load(tmp_path / "values.npy", mmap_mode="r")
    assert read_signals(mapped, "global", "global", keep_source=True).like is mapped


# Nothing but constants, and too much


@pytest.mark.parametrize("value", [0.0, 3.7, 1e12])
@every_center
def test_constant_signals_have_no_variance(value, center):
    """Rounding is not a spread: three thirds of a constant are not the constant."""
    values = np.full((7, 6), value) * (1 / 3) * 3 + np.arange(6) * (0.1 if center == "node" else 0.0)
    signals = read_signals(values, center, "global")
    assert signals.variance == 0.0
    assert signals.units.spread == (np.max(values) or 1.0)  # of the size of the constant, so that units do not matter
    expected = value / signals.units.spread if center is None else 0.0
    assert np.max(np.abs(signals.values - expected)) <= 1e-13


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([[np.nan, np.nan]]), r"Y must hold at least one value; got nothing but NaN"),
        (np.array([[1.0, -np.inf]]), r"Y must not hold infinite values; got some"),
        (np.array([[np.nan, 1e156]]), r"Y must hold values between 1e-140 and 1e\+140 in size.*got 1e\+156"),
        (np.array([[1.0, 1e156]]), r"Y must hold values between 1e-140 and 1e\+140 in size.*got 1e\+156.*units of Y"),
        (np.array([[1e-160, 2e-160]]), r"Y must hold values between .*got 2e-160 for the largest"),
    ],
)
def test_values_that_cannot_be_squared_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        read_signals(values, "global", "global")


@pytest.mark.parametrize("factor", [1e-90, 1e90])
def test_values_that_are_not_scaled_have_narrower_limits(factor):
    with pytest.raises(
        ValueError, match=r"Y must hold values between 1e-70 and 1e\+70 in size where scale=None.*Pass scale='global'"
    ):
        read_signals(factor * VALUES, "global", None)
    known = read_in(Units(), factor * VALUES)  # in units that are known, where tiny values are tiny
    assert oracle.relative_error(known.values, factor * VALUES) < EXACT


def test_values_are_let_through_up_to_the_limits():
    for size, scale in ((1e140, "global"), (1e70, None)):
        for factor in (size, 1 / size):
            values = factor * np.array([[1.0, -0.5], [0.25, 0.125]])
            assert read_signals(values, "global", scale).values.shape == (2, 2)
            with pytest.raises(ValueError, match="Y must hold values between"):
                read_signals(values * (1.001 if factor > 1 else 0.999), "global", scale)
    assert read_signals(np.zeros((2, 2)), "global", "global").variance == 0.0


def test_completions_must_be_numbers_that_can_be_squared():
    signals = read_signals(np.where(np.eye(N_SIGNALS, N_NODES, dtype=bool), np.nan, VALUES), "global", "global")
    mean = np.full(VALUES.shape, -1e140)
    completed = signals.completed(mean, np.zeros((0, *VALUES.shape)))
    assert completed.is_complete
    assert completed.has_missing
    assert completed.size == VALUES.size - N_SIGNALS
    np.testing.assert_array_equal(completed.values[~signals.observed], -1e140)
    np.testing.assert_array_equal(completed.values[signals.observed], signals.values[signals.observed])
    np.testing.assert_array_equal(completed.as_observed, signals.values)
    assert completed.variance == pytest.approx(signals.variance)  # of what was observed
    for value in (1.001e140, np.nan, -np.inf):
        with pytest.raises(ValueError, match="the completion of signals must be finite"):
            signals.completed(np.where(np.arange(N_NODES) == 2, value, mean), np.zeros((0, *VALUES.shape)))


def test_training_signals_must_fit():
    signals = read_signals(VALUES)
    assert as_training(signals, N_SIGNALS, N_NODES) is signals
    np.testing.assert_allclose(as_training(VALUES, N_SIGNALS, N_NODES).values, VALUES)
    for given in (signals, VALUES):
        with pytest.raises(ValueError, match=r"signals must .*; got \(5, 7\)"):
            as_training(given, 4, N_NODES)


def test_a_kernel_with_its_own_eigenvectors_leaves_two_bases():
    n_nodes = 60
    graph = Graph.from_edges([(node, (node + 1) % n_nodes) for node in range(n_nodes)])
    model = GraphGPRegressor(graph, LocalAverage()).fit(None, np.random.default_rng(0).standard_normal((6, n_nodes)))
    assert len(pickle.dumps(model)) < 20 * 8 * n_nodes**2


def test_what_reads_signals_again_is_kept_in_files():
    signals = read_signals(VALUES, "node", "node")
    again = state_of(signals).signals
    for own, other in zip(signals.fold(KEPT, HELD_OUT), again.fold(KEPT, HELD_OUT), strict=True):
        np.testing.assert_array_equal(own.values, other.values)
        np.testing.assert_array_equal(own.units.divisor, other.units.divisor)


@pytest.mark.parametrize("center", [None, "global", "node"])
@pytest.mark.parametrize("scale", [None, "global", "node"])
def test_signals_in_memory_say_the_same_without_products_with_each_other(center, scale):
    source = 5.0 + np.random.default_rng(3).standard_normal((9, 4)) * np.arange(1, 5)
    known, own = read_signals(source, center, scale, keep_source=True), read_signals(source, center, scale)
    assert state_of(known).gram.shape == (10, 10)
    assert state_of(own).gram is None
    kept, held_out = np.arange(0, 9, 2), np.array([1, 5])
    pairs = [(known, own), (known.some(kept), own.some(kept))]
    if scale != "node":  # which signals in memory find anew
        pairs += zip(known.fold(kept, held_out), own.fold(kept, held_out), strict=True)
    for one, other in pairs:
        assert np.allclose(other.values, one.values, rtol=EXACT)
        for name in ("mean_square", "variance", "variance_within"):
            assert getattr(other, name) == pytest.approx(getattr(one, name), rel=EXACT)
