"""Every kind of covariance against the dense matrix that it stands for, and every answer that is built on it."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern

import oracle
from oracle import relative_error
from spectralgp import Chebyshev, Graph, LocalAverage, Polynomial, graph_gp
from spectralgp.model import fields
from spectralgp.model.fields import covariances
from spectralgp.model.fields import observations as seeing
from spectralgp.model.fields.factors import BlockCovariance
from spectralgp.model.fields.processes import TimeCovariance, rows_in_time
from spectralgp.model.kernels import WithResidual, as_input_kernel, matern_terms
from spectralgp.model.signals import read_signals
from spectralgp.model.spectra import Exact
from tolerances import DIFFERENCE, EXACT, FORMULA, ITERATIVE, MASKED, QUADRATURE, STANDARD_ERRORS

N_SIGNALS, N_NODES, N_NEW = 6, 5, 3
LENGTH, NOISE = 1.3, 0.3
RNG = np.random.default_rng(7)
MOMENTS = RNG.permutation(0.7 * np.arange(N_SIGNALS + N_NEW) + 0.3 * RNG.random(N_SIGNALS + N_NEW))[:, None]
INPUTS, NEW = MOMENTS[:N_SIGNALS], MOMENTS[N_SIGNALS:]
SIGNALS, FURTHER = RNG.standard_normal((N_SIGNALS, N_NODES)), RNG.standard_normal((N_NEW, N_NODES))
ROOT, PROFILE = RNG.standard_normal((9, N_NODES)), np.array([0.7, 0.9, 1.0, 1.2, 1.5])
SHRINKAGE = fields.Shrinkage(4.0, ROOT, PROFILE, n_signals=9, freedom=7.0)
WEIGHTS = oracle.random_weights(N_NODES, seed=2)
KERNEL = WithResidual.of(Polynomial.from_coefficients([1.2, -1.5, 0.6]), Polynomial.from_coefficients([0.6, -0.4]))


def between(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """``K`` of the inputs, Matern of smoothness 1/2."""
    return np.exp(-np.abs(left - right.T) / LENGTH)


def prior_of(graph=None, kernel=KERNEL, spectrum=Exact(), shrinkage=None):
    graph = Graph(WEIGHTS) if graph is None else graph
    prior = graph_gp(graph, kernel, Matern(LENGTH, nu=0.5), NOISE, spectrum=spectrum)
    return replace(prior, shrinkage=shrinkage)


def nodes_of(prior) -> tuple[np.ndarray, np.ndarray]:
    """``G`` and ``H`` from their definition; the basis is that of the graph for every kind but the quadrature."""
    exact = graph_gp(prior.spectrum.graph, prior.graph_kernel, None, NOISE)
    vectors, eigenvalues = exact.graph_basis.eigenvectors, exact.graph_basis.eigenvalues
    roots = np.sqrt(exact.power), np.sqrt(prior.graph_kernel.residual_power(eigenvalues) + NOISE)
    shared = np.eye(N_NODES)
    if prior.shrinkage is not None:
        shared = (4.0 * np.eye(N_NODES) + ROOT.T @ ROOT) / (4.0 + 9)
        roots = roots[0] * PROFILE, roots[1] * PROFILE
    explained, rest = (vectors @ (np.multiply.outer(root, root) * shared) @ vectors.T for root in roots)
    return explained, rest


def dense_of(prior, inputs: np.ndarray) -> np.ndarray:
    """Covariance of signals at inputs, noise included."""
    explained, rest = nodes_of(prior)
    return np.kron(between(inputs, inputs), explained) + np.kron(np.eye(len(inputs)), rest)


@dataclass(frozen=True)
class Kind:
    """A covariance, and what it stands for."""

    covariance: fields.Covariance
    dense: np.ndarray
    together: np.ndarray | None = None  # with the new inputs, where they may be asked for
    limit: float = FORMULA

    @property
    def shape(self) -> tuple[int, int]:
        return self.covariance.shape

    def block(self, seed: int = 0, *sets: int) -> np.ndarray:
        return np.random.default_rng(seed).standard_normal((*sets, *self.shape))

    def coordinates(self, values: np.ndarray):
        return self.covariance.coordinates(self.covariance.nodes.basis.load(values))

    def at_nodes(self, block) -> np.ndarray:
        return np.asarray(self.covariance.nodes.basis.unload(block))


def kinds() -> dict[str, Kind]:
    graph, shrunk = prior_of(), prior_of(shrinkage=SHRINKAGE)
    own = prior_of(kernel=LocalAverage(strength=0.7))
    edgeless = prior_of(Graph(np.zeros((N_NODES, N_NODES))), Polynomial.from_coefficients([1.2]))
    large = prior_of(spectrum=Chebyshev(n_probes="exact"))
    both = np.vstack([INPUTS, NEW])
    filtered = rows_in_time(INPUTS[:, 0], matern_terms(as_input_kernel(Matern(LENGTH, nu=0.5)), INPUTS))
    found = {}
    for name, prior in {"graph": graph, "shrunk": shrunk, "own vectors": own, "no edges": edgeless}.items():
        dense = dense_of(prior, INPUTS), dense_of(prior, both)
        found[f"inputs, {name}"] = Kind(prior.covariance(prior.rows(INPUTS)), *dense)
        if name in ("graph", "shrunk"):
            found[f"filtered, {name}"] = Kind(prior.covariance(filtered), *dense)
    dense = dense_of(graph, INPUTS), dense_of(graph, both)
    found["series"] = Kind(large.covariance(large.rows(INPUTS)), *dense, QUADRATURE)
    for name in ("inputs, graph", "inputs, shrunk", "filtered, graph", "series"):
        kind = found[name]
        known, entries = np.arange(len(kind.dense)), np.arange(len(kind.dense), len(kind.together))
        left = oracle.condition(kind.together, known, np.zeros(known.size), entries)[1]
        found[f"left by {name}"] = Kind(kind.covariance.at(new_of(graph))[1], left, None, kind.limit)
    return found


def new_of(prior):
    return prior.input_kernel.at(INPUTS, NEW)


KINDS = kinds()
IN_MEMORY = {name: kind for name, kind in KINDS.items() if kind.covariance.is_written_out}
CLOSED = {name: kind for name, kind in KINDS.items() if isinstance(kind.covariance, fields.Covariance)}
KNOWN = {name: kind for name, kind in KINDS.items() if kind.together is not None}
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
written_out = pytest.mark.parametrize("kind", IN_MEMORY.values(), ids=IN_MEMORY)
closed = pytest.mark.parametrize("kind", CLOSED.values(), ids=CLOSED)
known = pytest.mark.parametrize("kind", KNOWN.values(), ids=KNOWN)


# Algebra


def test_kinds_are_what_they_are_called():
    for name, kind in KINDS.items():
        assert isinstance(kind.covariance, fields.ModalCovariance) is ("series" not in name)
    assert isinstance(KINDS["series"].covariance, fields.QuadratureCovariance)
    assert isinstance(KINDS["filtered, graph"].covariance.rows, TimeCovariance)
    assert isinstance(KINDS["left by filtered, graph"].covariance.rows, BlockCovariance)


@every_kind
def test_the_noise_is_white_and_part_of_it(kind):
    noise = kind.covariance.noise_variance
    assert 0 < noise <= NOISE
    assert np.linalg.eigvalsh(kind.dense)[0] > noise


@closed
def test_products_and_solutions(kind):
    covariance, values = kind.covariance, kind.block()
    block = covariance.load(values)
    assert relative_error(covariance.unload(covariance.times(block)).ravel(), kind.dense @ values.ravel()) < kind.limit
    solution = np.linalg.solve(kind.dense, values.ravel())
    assert relative_error(covariance.unload(covariance.solve(block)).ravel(), solution) < kind.limit


@written_out
def test_sets_of_signals_are_taken_together(kind):
    values = kind.block(0, 4)
    for verb in (kind.covariance.times, kind.covariance.solve):
        assert relative_error(verb(values), np.stack([verb(one) for one in values])) < EXACT
    left, right = kind.block(1, 4), kind.block(2, 4)
    expected = [np.sum(one * other) for one, other in zip(left, right, strict=True)]
    assert relative_error(np.squeeze(kind.covariance.inner(left, right)), expected) < EXACT


@closed
def test_a_step_of_conjugate_gradients(kind):
    """The first may be near what it stands for; the second belongs to the first without error."""
    covariance, values = kind.covariance, kind.block()
    found, reached = (covariance.unload(one) for one in covariance.precondition(covariance.load(values)))
    noise = covariance.noise_variance
    expected = noise * np.linalg.solve(kind.dense, values.ravel())
    # short series leave out up to a share of their smallest value
    assert relative_error(found.ravel(), expected) < (FORMULA if covariance.is_written_out else 0.5)
    image = kind.dense @ found.ravel() - noise * found.ravel()
    assert relative_error(reached.ravel(), image) < kind.limit


@closed
def test_the_log_determinant(kind):
    assert relative_error(covariances.log_determinant(kind.covariance), np.linalg.slogdet(kind.dense)[1]) < kind.limit


@every_kind
def test_variances(kind):
    diagonal = np.diag(kind.dense).reshape(kind.shape)
    found, error = covariances.signal_variances(kind.covariance)
    bound = kind.limit + STANDARD_ERRORS * np.max(error)
    assert np.sqrt(np.mean((np.asarray(found) - diagonal) ** 2)) < bound
    found, error = covariances.signal_variances(kind.covariance, np.array([3, 1]))
    assert relative_error(found, diagonal[:, [3, 1]]) < kind.limit
    assert np.all(error == 0)


@written_out
def test_diagonals_of_the_inverse(kind):
    inverse = np.linalg.inv(kind.dense)
    assert relative_error(kind.covariance.inverse_diagonal(), np.diag(inverse).reshape(kind.shape)) < kind.limit
    of_signals = inverse.reshape(*kind.shape, *kind.shape)
    for node in range(N_NODES):
        modes = kind.covariance.at_nodes[node]
        found = (modes.vectors * modes.values) @ modes.vectors.T
        assert relative_error(found, of_signals[:, node, :, node]) < kind.limit
    sums = np.einsum("nama->na", of_signals)
    assert relative_error(kind.covariance.row_sums(), sums) < kind.limit


def test_the_diagonal_of_the_inverse_by_probes():
    kind = KINDS["series"]
    expected = np.diag(np.linalg.inv(kind.dense)).reshape(kind.shape)
    assert relative_error(kind.covariance.inverse_diagonal(), expected) < 0.01  # a preconditioner


@written_out
@pytest.mark.parametrize("inverse", [False, True])
def test_entries(kind, inverse):
    dense = np.linalg.inv(kind.dense) if inverse else kind.dense
    blocks = dense.reshape(*kind.shape, *kind.shape)
    for one, other in ((0, 0), (1, 2), (2, 0)):
        assert relative_error(kind.covariance.between(one, other, inverse), blocks[one, :, other]) < kind.limit
    some = np.array([True, False, True, True, False])
    expected = blocks[1, :, 2][np.ix_(some, some)]
    assert relative_error(kind.covariance.between(1, 2, inverse, some), expected) < kind.limit
    mask = np.random.default_rng(0).random(kind.shape) < 0.5
    mask[1] = False
    expected = dense[np.ix_(mask.ravel(), mask.ravel())]
    assert relative_error(kind.covariance.submatrix(mask, inverse), expected) < kind.limit


def test_a_quadrature_writes_nothing_out():
    for name in ("series", "left by series"):
        with pytest.raises(ValueError, match="Covariances between nodes are not available on a large graph"):
            covariances.with_entries(KINDS[name].covariance)


@written_out
def test_the_largest_eigenvalue_is_bounded(kind):
    largest = np.linalg.eigvalsh(kind.dense)[-1]
    assert largest * (1 - kind.limit) <= kind.covariance.largest < 10 * largest
    if kind is KINDS["inputs, graph"]:  # whose modes are its eigenvectors
        assert relative_error(kind.covariance.largest, largest) < kind.limit


# Draws


@written_out
def test_draws_have_the_covariance(kind):
    covariance, white = kind.covariance, kind.covariance.noise_variance * np.eye(len(kind.dense))
    for draw, expected in (
        (lambda state: covariance.draw_signal(state) + covariances.white_noise(covariance, state), kind.dense),
        (covariance.draw_signal, kind.dense - white),
        (lambda state: covariances.white_noise(covariance, state), white),
    ):
        mean, found = oracle.law_of(draw)
        assert not mean.any()
        assert relative_error(found, expected) < kind.limit


@pytest.mark.parametrize("name", ["series", "left by series"])
def test_draws_have_the_covariance_on_a_quadrature(name):
    kind, n_draws, random_state = KINDS[name], 600, np.random.default_rng(3)  # a pass over the graph each
    covariance, white = kind.covariance, kind.covariance.noise_variance * np.eye(len(kind.dense))
    signals = np.stack([kind.at_nodes(covariance.draw_signal(random_state)) for _ in range(n_draws)])
    noise = np.stack([kind.at_nodes(covariances.white_noise(covariance, random_state)) for _ in range(n_draws)])
    for draws, expected in ((signals + noise, kind.dense), (signals, kind.dense - white), (noise, white)):
        flat, variances = draws.reshape(n_draws, -1), np.diag(expected)
        spreads = np.sqrt((np.outer(variances, variances) + expected**2) / n_draws)
        assert np.all(np.abs(flat.T @ flat / n_draws - expected) < STANDARD_ERRORS * spreads)
        assert np.all(np.abs(flat.mean(axis=0)) < STANDARD_ERRORS * np.sqrt(variances / n_draws))


@written_out
def test_scales_of_one_change_no_draw(kind):
    signal, noise = kind.block(1), kind.block(2)
    found = kind.covariance.rescaled(signal, noise, np.ones((kind.shape[0], 1)))
    assert relative_error(found[0], signal) < kind.limit
    assert relative_error(found[1], noise) < kind.limit


@written_out
def test_scales_stretch_what_signals_before_leave_open(kind):
    """Equation (18): what is new in a signal is scaled, and all that is predicted from it moves along."""
    n_signals, size = kind.shape[0], N_NODES
    scales = np.linspace(0.5, 2.0, n_signals)[:, None]
    signal, noise = kind.block(1), kind.block(2)
    noisy, moved = (signal + noise).ravel(), np.zeros(kind.dense.shape[0])
    for row in range(n_signals):
        own, before = slice(row * size, (row + 1) * size), slice(0, row * size)
        reach = np.linalg.solve(kind.dense[before, before], kind.dense[before, own]).T
        moved[own] = reach @ moved[before] + scales[row] * (noisy[own] - reach @ noisy[before])
    share = kind.covariance.noise_variance

    def smooth(values):
        return values - share * np.linalg.solve(kind.dense, values)

    expected = smooth(moved) + np.repeat(scales[:, 0], size) * (signal.ravel() - smooth(noisy))
    found = kind.covariance.rescaled(signal, noise, scales)
    assert relative_error(found[0].ravel(), expected) < kind.limit
    assert relative_error((found[0] + found[1]).ravel(), moved) < kind.limit


# Given complete signals


@known
def test_means_at_new_inputs_and_what_is_left(kind):
    covariance, basis, n_known = kind.covariance, kind.covariance.nodes.basis, kind.dense.shape[0]
    entries = np.arange(len(kind.together))
    mean, left = oracle.condition(kind.together, entries[:n_known], SIGNALS.ravel(), entries[n_known:])
    reach, rest = covariance.at(new_of(prior_of()))
    assert rest.shape == (N_NEW, N_NODES)
    found = basis.filtered(kind.coordinates(SIGNALS), reach)
    assert relative_error(kind.at_nodes(found).ravel(), mean) < kind.limit
    read = basis.filtered(covariance.read(read_signals(SIGNALS)), reach)
    assert relative_error(kind.at_nodes(read).ravel(), mean) < kind.limit
    if isinstance(rest, fields.Covariance):
        assert relative_error(covariances.log_determinant(rest), np.linalg.slogdet(left)[1]) < kind.limit
    if covariance.is_written_out:
        eigenvalues, coordinates = basis.eigenvalues, kind.coordinates(SIGNALS)
        by_matrices = np.einsum("xnj,nj->xj", reach.matrices(eigenvalues), coordinates)
        assert relative_error(by_matrices, found) < kind.limit
    errors = covariances.errors_at_new(rest, read_signals(FURTHER), read_signals(SIGNALS), lambda: found)
    lengths, _ = covariances.marginal_lengths(rest, errors)
    blocks = left.reshape(N_NEW, N_NODES, N_NEW, N_NODES)
    for row, missed in enumerate(FURTHER - mean.reshape(FURTHER.shape)):
        assert relative_error(lengths[row], missed @ np.linalg.solve(blocks[row, :, row], missed)) < kind.limit


@known
def test_signals_join(kind):
    joined = covariances.with_new_inputs(kind.covariance, new_of(prior_of()))
    values = np.vstack([SIGNALS, FURTHER])
    found = joined.unload(joined.times(joined.load(values)))
    assert relative_error(found.ravel(), kind.together @ values.ravel()) < kind.limit
    assert relative_error(covariances.log_determinant(joined), np.linalg.slogdet(kind.together)[1]) < kind.limit


@closed
@pytest.mark.parametrize("has_energies", [True, False], ids=["energies", "no energies"])
@pytest.mark.parametrize("shares", [False, True], ids=["as it is", "out of the nodes' means too"])
def test_signals_are_left_out_one_by_one(kind, shares, has_energies):
    n_signals, values = kind.shape[0], kind.block(4)
    values = values - values.mean(axis=0) if shares else values
    coordinates = kind.coordinates(values)
    missed = kind.covariance.left_out(coordinates, read_signals(values), shares, has_energies)
    errors, variances = kind.at_nodes(missed.errors), np.asarray(missed.variances()[0])
    assert relative_error(kind.at_nodes(missed.signals), values) < kind.limit
    for row in range(n_signals):
        # without it the mean of the others is less by its share, and all are about that mean
        shown = values + values[row] / (n_signals - 1) if shares else values
        out = np.zeros(kind.shape, dtype=bool)
        out[row] = True
        mean, covariance, _ = oracle.leave_out(shown, kind.dense, out)
        error = shown[row] - mean
        assert relative_error(errors[row], error) < kind.limit
        assert relative_error(missed.lengths[row], error @ np.linalg.solve(covariance, error)) < kind.limit
        assert relative_error(missed.logs[row], np.linalg.slogdet(covariance)[1], scale=1.0) < kind.limit
        if kind.covariance.is_written_out:
            assert relative_error(variances[row], np.diag(covariance)) < kind.limit


@every_kind
def test_signals_alone_and_in_order(kind):
    values = kind.block(5)
    covariance, basis = kind.covariance, kind.covariance.nodes.basis
    data = basis.read_block(basis.load(values))
    alone, chained = covariances.marginal_lengths(covariance, data), covariances.sequential_lengths(covariance, data)
    flat, entries = values.ravel(), np.arange(values.size)
    for row in range(kind.shape[0]):
        own, before = entries[row * N_NODES : (row + 1) * N_NODES], entries[: row * N_NODES]
        marginal = kind.dense[np.ix_(own, own)]
        given, left = oracle.condition(kind.dense, before, flat[before], own)
        for found, error, spread in ((alone, flat[own], marginal), (chained, flat[own] - given, left)):
            assert relative_error(found[0][row], error @ np.linalg.solve(spread, error)) < kind.limit
            assert relative_error(found[1][row], np.linalg.slogdet(spread)[1], scale=1.0) < kind.limit


# Partial observations


def mask(share: float) -> np.ndarray:
    return np.random.default_rng(5).random((N_SIGNALS, N_NODES)) > 1 - share


SEEN = {
    "most are observed": mask(0.85),
    "half are observed": mask(0.6),
    "most are missing": mask(0.25),
    "a signal and a node without values": np.outer(np.arange(N_SIGNALS) != 2, np.arange(N_NODES) != 3),
}
SEEN_KINDS = ["inputs, graph", "inputs, shrunk", "filtered, graph", "inputs, no edges", "inputs, own vectors"]
every_mask = pytest.mark.parametrize("observed", SEEN.values(), ids=SEEN)


def dense_seen(kind: Kind, observed: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Solution, mean and covariance of signals without noise, and the log density of the observed values."""
    noise, chosen, values = kind.covariance.noise_variance, observed.ravel(), SIGNALS.ravel()
    signal = kind.dense - noise * np.eye(len(kind.dense))
    known = kind.dense[np.ix_(chosen, chosen)]
    solution = np.zeros(values.size)
    solution[chosen] = np.linalg.solve(known, values[chosen])
    left = signal - signal[:, chosen] @ np.linalg.solve(known, signal[chosen])
    return solution, signal @ solution, left, oracle.log_density(values[chosen], 0.0, known)


def dense_lengths(kind: Kind, observed: np.ndarray) -> tuple[list[tuple[float, float]], np.ndarray]:
    """``e^T C^-1 e`` and ``log |C|`` of the observed values of each signal given the others; ``Q``."""
    chosen = observed.ravel()
    inverse = np.linalg.inv(kind.dense[np.ix_(chosen, chosen)])
    solution, lengths = inverse @ SIGNALS.ravel()[chosen], []
    for row in range(N_SIGNALS):
        own = np.flatnonzero(chosen) // N_NODES == row
        block = inverse[np.ix_(own, own)]
        length = float(solution[own] @ np.linalg.solve(block, solution[own]))
        lengths.append((length, -float(np.linalg.slogdet(block)[1])))
    return lengths, inverse


def dense_complete(kind: Kind, observed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of all values, observed ones included."""
    chosen = observed.ravel()
    gain = np.linalg.solve(kind.dense[np.ix_(chosen, chosen)], kind.dense[chosen]).T
    return gain @ SIGNALS.ravel()[chosen], kind.dense - gain @ kind.dense[chosen]


@pytest.mark.parametrize("name", SEEN_KINDS)
@every_mask
@pytest.mark.parametrize("exact", [True, False], ids=["dense", "iterative"])
def test_partial_observations(name, observed, exact, monkeypatch):
    kind, limits = KINDS[name], {} if exact else {"most_dense": -1}
    seen = fields.PartialObservations(kind.covariance, np.where(observed, SIGNALS, 99.0), observed, **limits)
    solution, mean, left, log_density = dense_seen(kind, observed)
    blocks, limit = left.reshape(*kind.shape, *kind.shape), MASKED if exact else ITERATIVE
    assert (seen.method == "iterative") is not exact
    assert relative_error(seen.solution.ravel(), solution) < limit
    assert np.all(seen.solution[~observed] == 0)
    assert relative_error(seen.signal_mean.ravel(), mean) < limit
    assert relative_error(seen.signal_variance.ravel(), np.diag(left)) < MASKED
    for one, other in ((0, 0), (1, 4), (5, 2)):
        assert relative_error(seen.signal_between(one, other), blocks[one, :, other], np.max(np.diag(left))) < MASKED
    complete, spread = dense_complete(kind, observed)
    assert relative_error(seen.mean.ravel(), complete) < limit
    assert relative_error(seen.variance.ravel(), np.diag(spread), scale=1.0) < MASKED
    monkeypatch.setattr(seeing, "MOST_COLUMNS", N_NODES)  # two signals at once
    lengths, precisions = dense_lengths(kind, observed)
    assert relative_error(seen.precisions[observed], np.diag(precisions)) < MASKED
    for rows in ([3, 1], range(N_SIGNALS)):  # the second finds those of the first again
        *found, counts = seen.lengths(rows)
        np.testing.assert_array_equal(counts, np.count_nonzero(observed[list(rows)], axis=1))
        assert relative_error(np.transpose(found), np.array(lengths)[list(rows)], scale=1.0) < DIFFERENCE
    found, error = seen.log_density()
    assert (error == 0) is exact
    assert abs(found - log_density) < MASKED * abs(log_density) + STANDARD_ERRORS * error


@every_mask
def test_partial_observations_on_a_quadrature(observed):
    kind = KINDS["series"]
    seen = fields.PartialObservations(kind.covariance, np.where(observed, SIGNALS, 99.0), observed)
    solution, mean, _, log_density = dense_seen(kind, observed)
    assert relative_error(seen.solution.ravel(), solution) < ITERATIVE
    assert relative_error(seen.signal_mean.ravel(), mean) < ITERATIVE
    found, error = seen.log_density()
    assert abs(found - log_density) < ITERATIVE * abs(log_density) + STANDARD_ERRORS * error


@every_mask
def test_sets_of_signals_are_solved_together_on_a_quadrature(observed, monkeypatch):
    """Five sets, two at a time."""
    kind, chosen = KINDS["series"], observed.ravel()
    monkeypatch.setattr(seeing, "MOST_FILTERED", 2 * observed.size)
    seen, values = fields.PartialObservations(kind.covariance, SIGNALS, observed), kind.block(3, 5)
    flat, expected = values.reshape(5, -1), np.zeros((5, observed.size))
    expected[:, chosen] = np.linalg.solve(kind.dense[np.ix_(chosen, chosen)], flat[:, chosen].T).T
    assert relative_error(seen.solve(values).reshape(5, -1), expected) < ITERATIVE
    assert relative_error(seen.times(values).reshape(5, -1), flat @ kind.dense) < kind.limit
    inverse = seen.times(values, inverse=True).reshape(5, -1)
    assert relative_error(inverse, np.linalg.solve(kind.dense, flat.T).T) < kind.limit
    several, state = seen.draws(5, np.random.default_rng(0))[0], np.random.default_rng(0)
    assert relative_error(several, np.concatenate([seen.draws(1, state)[0] for _ in range(5)])) < ITERATIVE


@pytest.mark.parametrize(("share", "gain"), [(0.1, 10.0), (0.5, 2.0), (0.9, 0.99)])
def test_log_determinants_by_probes_of_missing_values_are_more_exact(share, gain, monkeypatch):
    """As long as these are not nearly all: then observed values are probed."""
    prior = graph_gp(Graph(oracle.ring(60)), Polynomial.from_coefficients([1.0, -0.8]), Matern(LENGTH, nu=0.5), 0.05)
    observed = np.random.default_rng(6).random((50, 60)) > share
    covariance = prior.covariance(prior.rows(np.linspace(0, 20, 50)[:, None]))
    seen = fields.PartialObservations(covariance, np.zeros(observed.shape), observed)
    found, error = replace(seen, most_dense=-1).log_density()
    monkeypatch.setattr(seeing, "MOST_MISSING_PROBED", -1.0)
    _, wider = replace(seen, most_dense=-1).log_density()
    assert abs(found - seen.log_density()[0]) < STANDARD_ERRORS * error
    assert error < wider / gain or (share > 0.75 and error == wider)


@every_mask
def test_draws_given_partial_observations(observed):
    kind = KINDS["inputs, shrunk"]
    seen = fields.PartialObservations(kind.covariance, SIGNALS, observed)
    mean, found = oracle.law_of(seen.drawn_signal)
    assert not mean.any()
    assert relative_error(found, dense_seen(kind, observed)[2]) < MASKED


@every_mask
@pytest.mark.parametrize("name", ["inputs, shrunk", "inputs, graph"])
def test_draws_of_complete_values_have_their_covariance(name, observed):
    kind = KINDS[name]
    seen, spread = fields.PartialObservations(kind.covariance, SIGNALS, observed), dense_complete(kind, observed)[1]
    mean, found = oracle.law_of(lambda state: seen.draws(1, state)[0])
    assert not mean.any()
    assert relative_error(found, spread, scale=1.0) < MASKED


@pytest.mark.parametrize("most_given", [seeing.MOST_GIVEN, 0], ids=["given signals", "given entries"])
@every_mask
def test_few_draws_estimate_the_covariance_of_missing_values(observed, most_given, monkeypatch):
    """As many as it takes to tell an estimate from a wrong one."""
    n_draws = 20_000
    monkeypatch.setattr(seeing, "DRAWS", n_draws)
    monkeypatch.setattr(seeing, "FIRST_DRAWS", n_draws)
    kind = KINDS["inputs, graph"]
    seen = fields.PartialObservations(kind.covariance, SIGNALS, observed, most_exact=-1, most_given=most_given)
    left = dense_seen(kind, observed)[2]
    assert seen.n_draws == n_draws
    blocks, spread = left.reshape(*kind.shape, *kind.shape), dense_complete(kind, observed)[1]
    limit = STANDARD_ERRORS * np.sqrt(2 / n_draws)
    assert relative_error(seen.signal_between(0, 1), blocks[0, :, 1], np.max(np.diag(left))) < limit
    assert relative_error(seen.variance.ravel(), np.diag(spread), np.max(np.diag(kind.dense))) < limit
    inverse, whole = np.diag(np.linalg.inv(kind.dense)).reshape(kind.shape)[observed], dense_lengths(kind, observed)[1]
    errors = np.abs(seen.precisions[observed] - np.diag(whole))
    assert np.all(errors < 2 * limit * np.maximum(inverse, np.diag(whole)))
    values, axes = seen.node_group(0)
    places = np.searchsorted(np.flatnonzero(observed.ravel()), np.flatnonzero(observed[:, 0]) * N_NODES)
    expected = whole[np.ix_(places, places)]
    assert relative_error((axes * values) @ axes.T, expected, max(np.max(expected), np.max(inverse))) < 2 * limit
