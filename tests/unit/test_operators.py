"""Laplacians as operators: every path against dense matrices."""

import pickle
import sys
from itertools import islice

import array_api_strict
import numpy as np
import pytest
from scipy.sparse import csr_array

import oracle
from cases import GRAPHS, WEIGHTS, Columns
from spectralgp.graphs import Graph, operators
from spectralgp.graphs.operators.base import lanczos, largest_ritz_value
from tolerances import EXACT, LANCZOS, ROUND_TRIP, SINGLE

N_COLUMNS = 3
every_graph = pytest.mark.parametrize("name", GRAPHS)
every_laplacian = pytest.mark.parametrize("laplacian", ["combinatorial", "normalized", "balanced"])


def cpu(name, laplacian="combinatorial", **options):
    return operators.CpuOperator(*GRAPHS[name].laplacian_parts(laplacian), **options)


def plain(name, laplacian="combinatorial", library="numpy"):
    matrix, parts = GRAPHS[name].laplacian(laplacian), GRAPHS[name].laplacian_parts(laplacian)
    if library == "numpy":
        return operators.PlainOperator(matrix, *parts, np.empty(0))
    dense = array_api_strict.asarray(matrix.toarray())
    return operators.PlainOperator(dense, *parts, array_api_strict.asarray([0.0]))


PATHS = {
    "fused": cpu,
    "fused, float32": lambda *given: cpu(*given, dtype=np.float32),
    "fused, reordered": lambda *given: cpu(*given, reorder=True),
    "fused, float32, reordered": lambda *given: cpu(*given, dtype=np.float32, reorder=True),
    "scipy": plain,
    "strict": lambda *given: plain(*given, library="strict"),
}
every_path = pytest.mark.parametrize("path", PATHS)


def tolerance(path):
    return SINGLE if "float32" in path else EXACT


def dense_operator(name, laplacian, bound):
    """``A = 2 L / bound - I``."""
    return 2 * oracle.laplacian(WEIGHTS[name], laplacian) / bound - np.eye(len(WEIGHTS[name]))


def host(operator, block):
    """A block as columns in the order of the user's nodes."""
    return np.asarray(operator.unload(block), dtype=float).T


def columns(name, seed=0):
    return np.random.default_rng(seed).standard_normal((N_COLUMNS, len(WEIGHTS[name])))


# The recurrence


@every_path
@every_graph
@every_laplacian
@pytest.mark.parametrize("gram", [True, False])
def test_a_step_is_the_dense_recurrence(path, name, laplacian, gram):
    operator = PATHS[path](name, laplacian)
    operator.bound *= 1.3
    matrix = dense_operator(name, laplacian, operator.bound)
    current, previous = columns(name), columns(name, seed=1)
    expected = 2 * matrix @ current.T - previous.T

    def blocks():
        return operator.load(current), operator.load(previous)

    assert oracle.relative_error(host(operator, operator.step(*blocks())), expected) < tolerance(path)
    following, squares, crosses = operator.advance(*blocks(), gram)
    assert oracle.relative_error(host(operator, following), expected) < tolerance(path)
    own, cross = expected.T @ expected, expected.T @ current.T
    assert squares.dtype == crosses.dtype == np.float64
    assert oracle.relative_error(squares, own if gram else np.diag(own)) < tolerance(path)
    assert oracle.relative_error(crosses, cross if gram else np.diag(cross)) < tolerance(path)


def test_sums_over_many_blocks_of_rows_are_those_of_one():
    """More rows than one thread takes at a time, and more than fit the parts evenly."""
    n_nodes = 3 * operators.loops.BLOCK + 17
    path = Graph.from_edges(np.column_stack([np.arange(n_nodes - 1), np.arange(1, n_nodes)]))
    parts = path.laplacian_parts()
    fused = operators.CpuOperator(*parts)
    slow = operators.PlainOperator(path.laplacian(), *parts, np.empty(0))
    rng = np.random.default_rng(0)
    current, previous = rng.standard_normal((2, N_COLUMNS, n_nodes))
    for gram in (True, False):
        actual = fused.advance(fused.load(current), fused.load(previous), gram)
        expected = slow.advance(slow.load(current), slow.load(previous), gram)
        assert oracle.relative_error(host(fused, actual[0]), host(slow, expected[0])) < EXACT
        for one, other in zip(actual[1:], expected[1:], strict=True):
            assert oracle.relative_error(one, other) < EXACT
    series = rng.standard_normal((4, N_COLUMNS))
    filtered = [host(one, one.filtered(one.load(current), series)) for one in (fused, slow)]
    assert oracle.relative_error(*filtered) < EXACT


@every_path
@every_graph
@pytest.mark.parametrize("n_terms", [1, 2, 5])
@pytest.mark.parametrize("mixes", [True, False])
def test_filters_are_chebyshev_series_of_the_dense_operator(path, name, n_terms, mixes):
    """Each output is a sum of ``T_k(A)`` times columns, or times one column."""
    operator, signals = PATHS[path](name), columns(name)
    matrix = dense_operator(name, "combinatorial", operator.bound)
    series = np.random.default_rng(1).standard_normal((n_terms, N_COLUMNS, 2) if mixes else (n_terms, N_COLUMNS))
    values, vectors = np.linalg.eigh(matrix)
    matrices = series if mixes else np.array([np.diag(one) for one in series])
    expected = sum(
        (vectors * np.cos(k * np.arccos(np.clip(values, -1, 1)))) @ vectors.T @ signals.T @ one
        for k, one in enumerate(matrices)
    )
    block = operator.load(signals)
    assert oracle.relative_error(host(operator, operator.filtered(block, series)), expected) < 10 * tolerance(path)
    assert np.array_equal(host(operator, block), host(operator, operator.load(signals)))


@every_path
@every_graph
def test_products_of_blocks_are_dense_products(path, name):
    operator = PATHS[path](name)
    left, right = columns(name), columns(name, seed=1)
    matrix = np.random.default_rng(2).standard_normal((N_COLUMNS, 2))
    blocks = operator.load(left), operator.load(right)
    close = tolerance(path)
    assert oracle.relative_error(operators.block_products(*blocks), left @ right.T) < close
    assert oracle.relative_error(operators.column_products(*blocks), np.sum(left * right, axis=1)) < close
    assert oracle.relative_error(host(operator, operators.row_products(*blocks))[:, 0], (left * right).sum(0)) < close
    assert oracle.relative_error(host(operator, operators.combine_columns(blocks[0], matrix)), left.T @ matrix) < close
    several, both = operators.join_columns(*blocks), np.hstack([left.T @ matrix, right.T @ matrix])
    assert oracle.relative_error(host(operator, operators.combine_columns(several, matrix)), both) < close
    assert operators.block_products(*blocks).dtype == operators.column_products(*blocks).dtype == np.float64


@every_path
@every_graph
@every_laplacian
def test_traces_are_those_of_the_dense_laplacian(path, name, laplacian):
    matrix = oracle.laplacian(WEIGHTS[name], laplacian)
    expected = [np.trace(matrix), np.trace(matrix @ matrix)]
    assert oracle.relative_error(operators.traces(PATHS[path](name, laplacian)), expected) < tolerance(path)


@every_path
def test_random_blocks_have_their_moments(path):
    """Signs are signs; the mean of 7 * 4000 draws has a standard error of 0.006."""
    operator = PATHS[path]("random")
    signs = host(operator, operators.random_signs(operator, 4000, np.random.default_rng(0)))
    assert set(np.unique(signs)) == {-1.0, 1.0}
    normal = host(operator, operators.random_normal(operator, 4000, np.random.default_rng(0)))
    for draws in (signs, normal):
        assert abs(draws.mean()) < 0.03
        assert oracle.relative_error(draws @ draws.T / 4000, np.eye(7)) < 5 * np.sqrt(2 / 4000)
    assert not host(operator, operator.zeros(2)).any()
    # numbers belong to nodes, whatever their order in the operator: all paths draw the same
    reference = PATHS["scipy"]("random")
    np.testing.assert_array_equal(
        signs, host(reference, operators.random_signs(reference, 4000, np.random.default_rng(0)))
    )
    expected = host(reference, operators.random_normal(reference, 4000, np.random.default_rng(0)))
    assert oracle.relative_error(normal, expected) < tolerance(path)


@every_path
def test_no_signals_are_a_block_without_columns(path):
    operator = PATHS[path]("random")
    like = np.empty((0, 7)) if path != "strict" else array_api_strict.asarray(np.empty((0, 7)))
    block = operator.load(like)
    assert tuple(block.shape) == (7, 0)
    assert operators.block_products(block, block).shape == (0, 0)
    assert operators.block_products(block, operator.zeros(2)).shape == (0, 2)
    assert operators.column_products(block, block).shape == (0,)
    assert tuple(operator.unload(block).shape) == (0, 7)


@pytest.mark.parametrize("weights", [oracle.complete(3), np.diag([2.0, -1.0], 1) + np.diag([2.0, -1.0], -1)])
def test_the_first_bound_is_the_largest_sum_of_a_row(weights):
    diagonal = np.array([1.5, 4.0, 0.5])
    operator = operators.CpuOperator(csr_array(weights), diagonal)
    assert operator.gershgorin == np.max(np.abs(weights).sum(axis=1) + diagonal)
    rows = np.asarray(operator.rows())
    np.testing.assert_allclose(rows, np.column_stack([diagonal, np.square(weights).sum(axis=1)]))


@every_path
def test_unit_vectors_are_columns_of_the_identity(path):
    operator = PATHS[path]("random")
    np.testing.assert_array_equal(host(operator, operator.unit_vectors(np.array([5, 2]))), np.eye(7)[:, [5, 2]])


@every_path
def test_columns_are_put_side_by_side_and_chosen(path):
    operator = PATHS[path]("random")
    left, right = (operators.random_normal(operator, 2, np.random.default_rng(seed)) for seed in (0, 1))
    both = operators.join_columns(left, right)
    np.testing.assert_array_equal(host(operator, both), np.hstack([host(operator, left), host(operator, right)]))
    chosen = host(operator, operators.take_columns(both, np.array([3, 0])))
    np.testing.assert_array_equal(chosen, host(operator, both)[:, [3, 0]])


# The interval


SHAPES = {
    "ring": oracle.ring(36),
    "ring of many": oracle.ring(200),
    "lattice": oracle.lattice(8, 8),
    "star": oracle.star(30),
    "complete": oracle.complete(12),
    "disconnected": oracle.disconnected(),
    "pair": oracle.complete(2),
    "random": oracle.random_weights(40, seed=5),
}


@every_laplacian
@pytest.mark.parametrize("shape", SHAPES)
def test_largest_eigenvalue_is_that_of_the_dense_laplacian(shape, laplacian):
    """Rings and lattices are the trap: their last eigenvector has signs for entries, as random probes do."""
    expected = np.linalg.eigvalsh(oracle.laplacian(SHAPES[shape], laplacian))[-1]
    parts = Graph(SHAPES[shape]).laplacian_parts(laplacian)
    operator = operators.CpuOperator(*parts)
    assert oracle.relative_error(operators.largest_eigenvalue(operator)[0], expected) < LANCZOS
    assert operator.gershgorin >= expected * (1 - EXACT)
    single = operators.CpuOperator(*parts, dtype=np.float32)
    assert oracle.relative_error(operators.largest_eigenvalue(single)[0], expected) < SINGLE


def test_the_interval_holds_the_spectrum_and_never_exceeds_the_bound_of_gershgorin():
    operator = cpu("random")
    assert operator.bound == operator.gershgorin
    largest = np.linalg.eigvalsh(oracle.laplacian(WEIGHTS["random"]))[-1]
    operators.tighten(operator, *operators.largest_eigenvalue(operator))
    assert largest < operator.bound <= min(1.01 * largest, operator.gershgorin)
    operators.tighten(operator, 1e9, 0.0)
    assert operator.bound == operator.gershgorin
    edgeless = cpu("edgeless")
    assert edgeless.bound == 1.0
    operators.tighten(edgeless, 0.0, 0.0)
    assert edgeless.bound == 1.0


# Signals from outside


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("reorder", [True, False])
def test_loading_and_unloading_give_the_signals_back(tmp_path, dtype, reorder):
    signals = np.random.default_rng(0).integers(-9, 9, (5, 7))
    np.save(tmp_path / "signals.npy", signals.astype(np.float32))
    kinds = {
        "integers": signals,
        "not contiguous": np.repeat(signals.astype(dtype), 2, axis=1)[:, ::2],
        "Fortran": np.asfortranarray(signals.astype(dtype)),
        "memmap": np.load(tmp_path / "signals.npy", mmap_mode="r"),
        "file": Columns(signals.astype(np.float64)),
    }
    operator = cpu("random", dtype=dtype, reorder=reorder)
    for kind, given in kinds.items():
        block = operator.load(given)
        assert block.shape == (7, 5), kind
        assert block.dtype == dtype, kind
        assert block.flags.c_contiguous, kind
        back = operator.unload(block)
        np.testing.assert_array_equal(back, signals, err_msg=kind)
        assert back.dtype == dtype
        block += 1  # a copy: the user's array stays as it was
        np.testing.assert_array_equal(given[:, 0:7], signals, err_msg=kind)


@pytest.mark.parametrize("reorder", [True, False])
def test_signals_are_read_by_blocks_of_columns(reorder):
    """2^22 values at a time: 2,097 columns of 2,000 signals."""
    n_nodes = 5000
    path = Graph.from_edges(np.column_stack([np.arange(n_nodes - 1), np.arange(1, n_nodes)]))
    operator = operators.CpuOperator(*path.laplacian_parts(), reorder=reorder)
    signals = Columns(np.arange(2000 * n_nodes, dtype=np.float32).reshape(2000, n_nodes))
    block = operator.load(signals)
    assert max(width for _, width in signals.asked) == 2**22 // 2000
    np.testing.assert_array_equal(operator.unload(block), signals.values)


def test_reordering_starts_where_it_pays():
    assert cpu("random").order is None
    assert sorted(cpu("random", reorder=True).order) == list(range(7))


@pytest.mark.parametrize("make", [cpu, plain])
def test_operators_can_be_pickled(make):
    operator = make("random")
    again = pickle.loads(pickle.dumps(operator))
    signals = columns("random")
    np.testing.assert_array_equal(again.unload(again.load(signals)), signals)
    current, previous = again.load(signals), again.zeros(N_COLUMNS)
    expected = operator.step(operator.load(signals), operator.zeros(N_COLUMNS))
    assert oracle.relative_error(again.step(current, previous), expected) < ROUND_TRIP


def test_single_precision_is_summed_in_double():
    """A million ones and a million thirds: in single precision the sum is off in its fourth digit."""
    n_nodes = 2_000_000
    block = np.empty((n_nodes, 2), dtype=np.float32)
    block[:, 0], block[:, 1] = 1, np.float32(1 / 3)
    third = float(np.float32(1 / 3))
    expected = n_nodes * np.array([[1.0, third], [third, third**2]])
    assert oracle.relative_error(operators.block_products(block, block), expected) < 1e-9
    assert oracle.relative_error(operators.column_products(block, block), np.diag(expected)) < 1e-9


# Which operator


def test_the_operator_follows_the_signals():
    weights, diagonal = GRAPHS["random"].laplacian_parts()
    assert operators.CudaOperator.__mro__[1] is operators.CpuOperator.__mro__[1]  # importable without CuPy
    for dtype, expected in [(np.float64, np.float64), (np.float32, np.float32), (np.int16, np.float64)]:
        operator = operators.make_operator(weights, diagonal, np.zeros((2, 7), dtype=dtype))
        assert isinstance(operator, operators.CpuOperator)
        assert operator.dtype == expected
    assert isinstance(operators.make_operator(weights, diagonal, np.zeros((2, 7)), "cpu"), operators.CpuOperator)
    like = array_api_strict.zeros((2, 7), dtype=array_api_strict.float32)
    strict = operators.make_operator(weights, diagonal, like)
    assert isinstance(strict, operators.PlainOperator)
    assert strict.load(like).dtype == array_api_strict.float32
    assert oracle.relative_error(strict.laplacian, oracle.laplacian(WEIGHTS["random"])) < SINGLE


@pytest.mark.parametrize("dtype", ["float16", "complex128", "bool", "object", "<U3"])
def test_other_types_are_refused(dtype):
    with pytest.raises(TypeError, match=r"Y must be of type float32 or float64 on a large graph; got .*\. Convert it"):
        operators.precision_of(np.zeros((2, 7), dtype=dtype))
    with pytest.raises(TypeError, match="Y must be of type float32 or float64"):
        operators.make_operator(*GRAPHS["random"].laplacian_parts(), np.zeros((2, 7), dtype=dtype))


@pytest.fixture
def _no_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)  # as if it were not installed, also where it is


@pytest.mark.usefixtures("_no_cupy")
def test_a_device_without_its_library_is_refused_with_a_remedy():
    with pytest.raises(ImportError, match=r"device must be 'cpu' or None where CuPy is not installed; got 'cuda'\. In"):
        operators.make_operator(*GRAPHS["random"].laplacian_parts(), np.zeros((2, 7)), "cuda")


@pytest.mark.usefixtures("_no_cupy")
def test_an_array_on_a_device_without_its_library_is_refused():
    kind = type("ndarray", (), {"__module__": "cupy", "dtype": np.dtype(np.float64)})
    with pytest.raises(ImportError, match="cupy"):
        operators.make_operator(*GRAPHS["random"].laplacian_parts(), kind())


def test_lanczos_makes_a_tridiagonal_matrix_with_the_same_spectrum():
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((6, 6))
    matrix = matrix + matrix.T
    rows = list(islice(lanczos(lambda vector: matrix @ vector, np.dot, rng.standard_normal(6)), 6))
    diagonal, below = (np.array(entries) for entries in zip(*rows, strict=True))
    found = np.diag(diagonal) + np.diag(below[:-1], 1) + np.diag(below[:-1], -1)
    assert oracle.relative_error(np.linalg.eigvalsh(found), np.linalg.eigvalsh(matrix)) < 1e-10
    assert below[-1] < 1e-10
    value, residual = largest_ritz_value(rows, 1e-9)
    assert value == pytest.approx(np.linalg.eigvalsh(matrix)[-1], rel=1e-10)
    assert residual <= 1e-9
    value, residual = largest_ritz_value(rows, 1e-9, max_steps=2)
    assert np.min(np.abs(np.linalg.eigvalsh(matrix) - value)) <= residual * (1 + 1e-12)


def test_an_interrupt_of_a_compiled_loop_is_one(monkeypatch):
    """Numba makes a SystemError of it, which is left as it is where it comes from anything else."""
    operator = cpu("ring")
    block, before = np.ones((6, 2)), np.zeros((6, 2))

    def failing(cause):
        def step(*_):
            raise SystemError("returned a result with an exception set") from cause

        return step

    for cause, expected in ((KeyboardInterrupt(), KeyboardInterrupt), (ValueError(), SystemError), (None, SystemError)):
        monkeypatch.setattr(operators.loops, "step_sums", failing(cause))
        for gram in (False, True):
            with pytest.raises(expected):
                operator.advance(block, before, gram)
