"""Missing values against dense algebra: evidence, gradient, imputation, prediction, nowcasting, leaving out."""

import dataclasses

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import RBF

import oracle
from oracle import relative_error
from spectralgp import Chebyshev, Diffusion, Exact, Graph, Polynomial, graph_gp, leave_one_out, log_marginal_likelihood
from spectralgp.learning import Task
from spectralgp.learning.missing import MissingValueExpectation, objective_of
from spectralgp.model.fields import PartialObservations, condition, condition_shrunk, node_covariances
from spectralgp.model.fields.observations import DRAWS, inverse_root
from spectralgp.model.fields.posterior import partial_observations, posterior_of
from spectralgp.model.kernels import WithResidual, signal_of
from spectralgp.model.signals import read_signals
from tolerances import DIFFERENCE, EXACT, GRADIENT, ITERATIVE, MASKED, STANDARD_ERRORS

N_SIGNALS, N_NODES, N_NEW = 8, 7, 3
NOISE = 0.3
WEIGHTS = oracle.random_weights(N_NODES, seed=0)
RNG = np.random.default_rng(5)
INPUTS, NEW = RNG.standard_normal((N_SIGNALS, 2)), RNG.standard_normal((N_NEW, 2))
SIGNALS = RNG.standard_normal((N_SIGNALS, N_NODES))
FURTHER = RNG.standard_normal((N_NEW, N_NODES))
SIGNAL, RESIDUAL = Polynomial.from_coefficients([0.2, 1.5, -2.5, 1.1]), Polynomial.from_coefficients([0.6, -0.4])


def random_mask(share: float) -> np.ndarray:
    """What was observed; at least one value is, and one is not."""
    mask = np.random.default_rng(int(100 * share)).random((N_SIGNALS, N_NODES)) >= share
    mask[0, 0], mask[0, 1] = True, False
    return mask


def masks() -> dict[str, np.ndarray]:
    row, column, block = (np.ones((N_SIGNALS, N_NODES), dtype=bool) for _ in range(3))
    row[2], column[:, 3], block[1:5, 2:4] = False, False, False
    mixture = row & column & block & random_mask(0.3)
    return {
        "10%": random_mask(0.1),
        "50%": random_mask(0.5),
        "90%": random_mask(0.9),
        "row": row,
        "column": column,
        "block": block,
        "mixture": mixture,
    }


MASKS = masks()
every_mask = pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
every_kernel = pytest.mark.parametrize("kernel", [SIGNAL, WithResidual.of(SIGNAL, RESIDUAL)], ids=["plain", "residual"])


def missing_at(mask: np.ndarray, signals: np.ndarray = SIGNALS) -> np.ndarray:
    return np.where(mask, signals, np.nan)


def dense_node_covariances(kernel) -> tuple[np.ndarray, np.ndarray]:
    """``B B^T`` and ``H H^T``, dense."""
    laplacian = oracle.laplacian(WEIGHTS, scaled=True)
    shared = oracle.polynomial(laplacian, signal_of(kernel).coefficients)
    own = np.zeros((N_NODES, N_NODES)) if kernel.residual is None else laplacian
    if kernel.residual is not None:
        own = oracle.polynomial(laplacian, kernel.residual.coefficients)
    return shared, own


def dense(kernel, inputs: np.ndarray, noise: float = NOISE) -> np.ndarray:
    """Covariance of noisy signals at inputs, entry by entry."""
    shared, own = dense_node_covariances(kernel)
    covariance = np.kron(oracle.rbf(inputs, inputs), shared) + np.kron(np.eye(len(inputs)), own)
    return covariance + noise * np.eye(len(covariance))


def prior_of(kernel, spectrum=Exact()):
    return graph_gp(Graph(WEIGHTS), kernel, RBF(1.0), NOISE, spectrum=spectrum)


def masked_of(kernel, mask, spectrum=Exact(), **settings) -> PartialObservations:
    prior = prior_of(kernel, spectrum)
    return partial_observations(0.0, prior.covariance(prior.rows(INPUTS)), read_signals(missing_at(mask)), **settings)


ITERATIVE_ONLY = {"most_dense": -1}  # no dense matrices


@every_mask
@every_kernel
def test_the_evidence_is_that_of_what_was_observed(kernel, mask):
    seen = mask.ravel()
    expected = oracle.log_density(SIGNALS.ravel()[seen], 0.0, dense(kernel, INPUTS)[np.ix_(seen, seen)])
    assert relative_error(log_marginal_likelihood(prior_of(kernel), INPUTS, missing_at(mask)), expected) < MASKED


@pytest.mark.parametrize("tolerance", [0.0, 1e-2])
@pytest.mark.parametrize("spectrum", [Exact(), Chebyshev()], ids=["exact", "quadrature"])
def test_the_evidence_does_not_depend_on_what_was_asked_before(tolerance, spectrum):
    """A completion to a tolerance, asked for first, left its solution in the evidence: up to 3.7 nats."""
    settings = {"tolerance": tolerance, "always_iterates": tolerance > 0}
    first, second = (masked_of(SIGNAL, MASKS["50%"], spectrum, **settings) for _ in range(2))
    assert np.isfinite(second.mean).all()
    assert first.log_density() == second.log_density()


@every_mask
@every_kernel
def test_the_gradient_is_that_of_the_evidence(kernel, mask):
    task = dataclasses.replace(
        Task.of(Graph(WEIGHTS), RBF(1.0), INPUTS, SIGNALS, prior=None), signals=read_signals(missing_at(mask))
    )
    objective = objective_of(task, prior_of(kernel), MissingValueExpectation(task, None))
    point = objective.point(prior_of(kernel))
    seen = mask.ravel()

    def evidence(x: np.ndarray) -> float:
        form, theta, noise = objective.split(x)
        shared, own = dense_node_covariances(form)
        length = float(np.exp(theta[0]))
        matrix = np.kron(oracle.rbf(INPUTS, INPUTS, length), shared) + np.kron(np.eye(N_SIGNALS), own)
        matrix += noise * np.eye(len(matrix))
        return oracle.log_density(SIGNALS.ravel()[seen], 0.0, matrix[np.ix_(seen, seen)])

    expected = oracle.jacobian(evidence, point)
    assert relative_error(objective.evaluate(point)[1], expected) < GRADIENT


@pytest.mark.parametrize("name", ["50%", "90%", "row", "column", "block", "mixture"])
def test_stochastic_evidence_is_within_its_stated_error(name):
    mask = MASKS[name]
    masked, seen = masked_of(SIGNAL, mask, **ITERATIVE_ONLY), mask.ravel()
    expected = oracle.log_density(SIGNALS.ravel()[seen], 0.0, dense(SIGNAL, INPUTS)[np.ix_(seen, seen)])
    found = [masked.log_density(np.random.default_rng(seed)) for seed in range(40)]
    z = np.array([(value - expected) / error for value, error in found])
    assert np.abs(z).max() < STANDARD_ERRORS
    assert 0.6 < np.sqrt(np.mean(z**2)) < 1.4  # 40 draws of chi-square: two standard deviations are 0.22


@pytest.mark.parametrize("by", [condition, condition_shrunk])
def test_a_posterior_does_not_know_what_was_computed_of_its_signals_before(by):
    signals, graph = read_signals(missing_at(MASKS["50%"]), "global", "global"), Graph(WEIGHTS)
    prior, other = (graph_gp(graph, SIGNAL, RBF(scale), NOISE) for scale in (1.3, 0.2))
    first = by(prior, INPUTS, signals)
    by(other, INPUTS, signals).log_evidence()
    again = by(prior, INPUTS, signals)
    assert np.array_equal(first.at(NEW).mean, again.at(NEW).mean)
    assert np.array_equal(first.at(NEW).variance(), again.at(NEW).variance())
    assert first.log_evidence() == again.log_evidence()


def predicted(kernel, mask) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of new signals without noise, each with a residual of its own, given what was observed."""
    both, (shared, own) = np.vstack([INPUTS, NEW]), dense_node_covariances(kernel)
    n_training = SIGNALS.size
    matrix = np.kron(oracle.rbf(both, both), shared) + np.kron(np.eye(len(both)), own)
    matrix[:n_training, :n_training] += NOISE * np.eye(n_training)
    seen = np.flatnonzero(mask.ravel())
    return oracle.condition(matrix, seen, SIGNALS.ravel()[seen], np.arange(n_training, len(matrix)))


@every_mask
@every_kernel
def test_predictions_from_incomplete_signals(kernel, mask):
    mean, covariance = predicted(kernel, mask)
    found = condition(prior_of(kernel), INPUTS, missing_at(mask)).at(NEW)
    shape = (N_NEW, N_NODES)
    variances = np.diag(covariance).reshape(shape)
    assert relative_error(found.mean, mean.reshape(shape)) < MASKED
    assert relative_error(found.variance(), variances) < MASKED
    assert relative_error(found.variance(nodes=np.array([2, 5])), variances[:, [2, 5]]) < MASKED
    joint = covariance.reshape(*shape, *shape)
    assert relative_error(found.joint_covariance(), joint) < MASKED
    assert relative_error(node_covariances(found), np.stack([joint[n, :, n] for n in range(N_NEW)])) < MASKED


@every_mask
@every_kernel
def test_densities_of_incomplete_signals(kernel, mask):
    """Values missing in the training signals, in the new ones, or in both."""
    mean, covariance = predicted(kernel, mask)
    noisy, shape = covariance + NOISE * np.eye(len(covariance)), (N_NEW, N_NODES)
    prediction = condition(prior_of(kernel), INPUTS, missing_at(mask)).at(NEW)
    for seen in (np.ones(shape, dtype=bool), np.random.default_rng(3).random(shape) > 0.4):
        chosen, observed = seen.ravel(), np.where(seen, FURTHER, np.nan)
        expected = oracle.log_density(FURTHER.ravel()[chosen], mean[chosen], noisy[np.ix_(chosen, chosen)])
        assert relative_error(prediction.log_density(observed), expected) < MASKED
        singles = prediction.log_density(observed, joint=False)
        for row in range(N_NEW):
            own = np.flatnonzero(chosen & (np.repeat(np.arange(N_NEW), N_NODES) == row))
            expected = oracle.log_density(FURTHER.ravel()[own], mean[own], noisy[np.ix_(own, own)])
            assert relative_error(singles[row], expected) < MASKED


def test_samples_from_incomplete_signals():
    mean, covariance = predicted(SIGNAL, MASKS["50%"])
    prediction = condition(prior_of(SIGNAL), INPUTS, missing_at(MASKS["50%"])).at(NEW)
    found = oracle.law_of(lambda state: prediction.sample(1, state))
    assert relative_error(found[0], mean) < MASKED
    assert relative_error(found[1], covariance) < MASKED


def test_variances_by_draws_have_an_error():
    """That of so many normal squares; none where the covariance is known."""
    prior, signals, rows = prior_of(SIGNAL), read_signals(missing_at(MASKS["50%"])), np.array([4, 1])
    assert posterior_of(prior, INPUTS, signals).imputed(rows).variance_error.tolist() == [0.0, 0.0]
    drawn = posterior_of(prior, INPUTS, signals, most_exact=0).imputed(rows)
    expected = np.sqrt(2 / 64) * np.sqrt(np.mean(drawn.variance() ** 2, axis=1))
    assert relative_error(drawn.variance_error, expected) < EXACT


@every_mask
@every_kernel
def test_nowcasting_is_conditioning_on_everything(kernel, mask):
    both, signals = np.vstack([INPUTS, NEW]), np.vstack([SIGNALS, FURTHER])
    seen = np.random.default_rng(4).random((N_NEW, N_NODES)) > 0.5
    everything = np.vstack([mask, seen])
    noisy = dense(kernel, both)
    signal_given = np.linalg.solve(noisy[np.ix_(everything.ravel(), everything.ravel())], np.eye(everything.sum()))
    across = dense(kernel, both, 0.0)[:, everything.ravel()]
    mean = (across @ signal_given @ signals[everything]).reshape(everything.shape)[N_SIGNALS:]
    covariance = dense(kernel, both, 0.0) - across @ signal_given @ across.T
    joint = covariance.reshape(len(both), N_NODES, len(both), N_NODES)[N_SIGNALS:, :, N_SIGNALS:]
    posterior = condition(prior_of(kernel), INPUTS, missing_at(mask))
    found = posterior.at(NEW).given(np.where(seen, FURTHER, np.nan))
    assert relative_error(found.mean, mean) < MASKED
    assert relative_error(found.joint_covariance(), joint, scale=1.0) < DIFFERENCE
    diagonal = np.einsum("nana->na", joint)
    assert relative_error(found.variance(), diagonal, scale=1.0) < DIFFERENCE
    assert relative_error(found.variance(include_noise=True), diagonal + NOISE) < DIFFERENCE
    values = np.where(seen, FURTHER, mean)
    assert relative_error(found.values, values) < MASKED
    assert relative_error(np.sqrt(found.values_variance()), np.where(seen, 0.0, np.sqrt(diagonal + NOISE))) < DIFFERENCE
    hidden = ~seen
    flat = np.flatnonzero(np.vstack([np.zeros_like(mask), hidden]).ravel())
    known = np.flatnonzero(everything.ravel())
    centre, spread = oracle.condition(noisy, known, signals.ravel()[known], flat)
    expected = oracle.log_density(FURTHER[hidden], centre, spread)
    assert relative_error(found.log_density(FURTHER), expected) < MASKED


def test_nowcasts_can_be_drawn():
    seen = np.random.default_rng(4).random((N_NEW, N_NODES)) > 0.5
    field = condition(prior_of(SIGNAL), INPUTS, SIGNALS).at(NEW).given(np.where(seen, FURTHER, np.nan))
    for noise in (False, True):
        mean, covariance = oracle.law_of(lambda state: field.sample(1, state, include_noise=noise))  # noqa: B023
        assert relative_error(mean, field.mean.ravel()) < EXACT
        assert relative_error(covariance, field.joint_covariance(noise).reshape(covariance.shape)) < MASKED


@pytest.mark.parametrize("kernel", [SIGNAL, WithResidual.of(SIGNAL, RESIDUAL)], ids=["plain", "residual"])
def test_nowcasting_on_a_large_graph(kernel):
    seen = np.random.default_rng(4).random((N_NEW, N_NODES)) > 0.5
    observed = np.where(seen, FURTHER, np.nan)
    exact = condition(prior_of(kernel), INPUTS, SIGNALS).at(NEW).given(observed)
    large = condition(prior_of(kernel, Chebyshev(n_probes="exact")), INPUTS, SIGNALS).at(NEW).given(observed)
    assert relative_error(large.mean, exact.mean) < ITERATIVE
    assert np.all(large.values_variance()[seen] == 0)


@every_mask
@every_kernel
@pytest.mark.parametrize("by", ["signal", "node", "entry"])
def test_leaving_out_of_incomplete_signals(kernel, mask, by):
    matrix = dense(kernel, INPUTS)
    left = leave_one_out(condition(prior_of(kernel), INPUTS, missing_at(mask)), by)
    for place in np.ndindex(mask.shape):
        in_signal, in_node = (numbers == own for numbers, own in zip(np.indices(mask.shape), place, strict=True))
        group = {"signal": in_signal, "node": in_node, "entry": in_signal & in_node}[by]
        kept = (mask & ~group).ravel()
        entry = np.ravel_multi_index(place, mask.shape)
        mean, variance = oracle.condition(matrix, np.flatnonzero(kept), SIGNALS.ravel()[kept], np.array([entry]))
        assert relative_error(left.mean[place], mean[0], scale=1.0) < DIFFERENCE
        assert relative_error(left.std[place], np.sqrt(variance[0, 0])) < DIFFERENCE
        out = np.flatnonzero((mask & group).ravel())
        density = left.log_density[place if by == "entry" else place[0 if by == "signal" else 1]]
        if out.size == 0:
            assert np.isnan(density)
            continue
        mean, spread = oracle.condition(matrix, np.flatnonzero(kept), SIGNALS.ravel()[kept], out)
        expected = multivariate_normal(mean, spread).logpdf(SIGNALS.ravel()[out])
        assert relative_error(density, expected) < DIFFERENCE


def test_a_large_graph_tells_densities_of_new_incomplete_signals_apart_from_the_evidence_of_training():
    """Each alone, by random probes; the training signals are only conditioned on."""
    new = np.where(np.arange(N_NODES) == 2, np.nan, FURTHER)
    exact, large = (
        condition(graph_gp(Graph(WEIGHTS), Diffusion(), RBF(), 0.5, spectrum=spectrum), INPUTS, SIGNALS)
        .at(NEW)
        .log_density(new, joint=False)
        for spectrum in (Exact(), Chebyshev(n_probes="exact"))
    )
    np.testing.assert_allclose(large, exact, rtol=0.1)


# Limits: what is written out, and how many draws and probes stand for the rest


class Stub:
    """A covariance that is the identity, with what a test says of it."""

    noise_variance, finest, largest = 0.5, 1e-8, 1.0

    def __init__(self, is_written_out: bool = True) -> None:
        self.is_written_out = is_written_out


def stubbed(
    n_values: int, n_missing: int, is_written_out: bool = True, n_signals: int = 1, **settings
) -> PartialObservations:
    covariance, observed = Stub(is_written_out), np.ones((n_signals, n_values // n_signals), dtype=bool)
    covariance.shape = observed.shape
    observed.flat[:n_missing] = False
    return PartialObservations(covariance, np.full(observed.shape, 3.0), observed, **settings)


@pytest.mark.parametrize(
    ("n_values", "n_missing", "exactly", "roughly"),
    [
        (9_000, 600, "missing", "missing"),
        (9_000, 601, "missing", "iterative"),
        (9_000, 2_500, "missing", "iterative"),
        (9_000, 2_501, "iterative", "iterative"),
        (9_000, 6_499, "iterative", "iterative"),
        (9_000, 6_500, "observed", "iterative"),
        (9_000, 8_399, "observed", "iterative"),
        (9_000, 8_400, "observed", "observed"),
        (10, 5, "missing", "missing"),
        (10, 6, "observed", "observed"),
    ],
)
def test_systems_are_solved_by_the_smaller_matrix_where_it_is_small(n_values, n_missing, exactly, roughly):
    """Up to 2,500 entries, or 600 where a tolerance is allowed."""
    assert stubbed(n_values, n_missing).method == exactly
    assert stubbed(n_values, n_missing, tolerance=1e-9).method == roughly
    assert stubbed(n_values, n_missing, always_iterates=True).method == "iterative"
    assert stubbed(n_values, n_missing, is_written_out=False).method == "iterative"
    assert stubbed(n_values, n_missing).is_written_out is (exactly != "iterative")


@pytest.mark.parametrize(
    ("n_values", "n_missing", "settings", "n_draws"),
    [
        (2**12, 2**10, {}, None),
        (2**12, 2**10 + 1, {}, 64),
        (2**16, 2**6 + 1, {}, 64),
        (2**17, 2**5 + 1, {}, 32),
        (2**21, 3, {}, 2),
        (2**22, 2, {}, 2),
        (2**22, 1, {}, None),
        (2**12, 64, {"most_deviations": 5}, None),
        (2**12, 65, {"most_deviations": 5}, 5),
        (2**12, 65, {"most_deviations": 1}, 2),
        (2**12, 1, {"is_written_out": False}, 64),
    ],
)
def test_draws_stand_for_covariances_that_are_too_large(n_values, n_missing, settings, n_draws):
    """Four million values of deviations are kept; few missing values have no draws where few are wanted either."""
    assert stubbed(n_values, n_missing, **settings).n_draws == n_draws


def test_variances_of_signals_on_their_own_are_exact_though_they_have_draws():
    """Given the other signals nothing is left open, so that draws have nothing to say."""
    prior, mask = graph_gp(Graph(WEIGHTS), SIGNAL, None, NOISE), MASKS["50%"]
    settings = {"most_exact": 0, **ITERATIVE_ONLY}
    covariance = prior.covariance(prior.rows(np.empty((N_SIGNALS, 0))))
    found = partial_observations(0.0, covariance, read_signals(missing_at(mask)), **settings)
    node = dense_node_covariances(SIGNAL)[0] + NOISE * np.eye(N_NODES)
    seen, every = np.flatnonzero(mask.ravel()), np.arange(mask.size)
    expected = oracle.condition(np.kron(np.eye(N_SIGNALS), node), seen, SIGNALS[mask], every)[1]
    assert found.n_draws == DRAWS
    assert relative_error(found.variance, np.where(mask, 0.0, np.diag(expected).reshape(mask.shape))) < MASKED


def test_roots_of_inverses():
    """``M^-1 = H^T H`` by Cholesky's method; an empty matrix has an empty root."""
    rng = np.random.default_rng(0)
    vectors = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    matrix = (vectors * [0.1, 0.5, 1.0, 2.0, 3.0, 7.0]) @ vectors.T
    root = inverse_root(matrix.copy())
    assert relative_error(root.T @ root, np.linalg.inv(matrix)) < EXACT
    assert np.array_equal(root, np.tril(root))
    assert inverse_root(np.empty((0, 0))).shape == (0, 0)
