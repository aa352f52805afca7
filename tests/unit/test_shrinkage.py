"""Shrinkage towards the graph: what is learnt by its evidence, and the law (14), (15) to (18) by its definition."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.stats import invwishart, multivariate_t
from scipy.stats import t as student
from sklearn.gaussian_process.kernels import RBF

import oracle
from oracle import relative_error
from spectralgp.graphs import Graph
from spectralgp.model.fields import (
    Field,
    Shrinkage,
    condition,
    condition_shrunk,
    graph_gp,
    held_out_densities,
    held_out_values,
    leave_one_out,
    node_covariances,
    standard_deviation,
)
from spectralgp.model.fields import field as field_module
from spectralgp.model.fields import posterior as posterior_module
from spectralgp.model.fields.covariances import log_determinant
from spectralgp.model.fields.observations import PartialObservations
from spectralgp.model.kernels import Polynomial, WithResidual
from spectralgp.model.signals import read_signals
from spectralgp.model.spectra import Chebyshev
from tolerances import EXACT, FORMULA, MASKED

pytestmark = pytest.mark.usefixtures("learnt_values")  # compared with dense formulas

RNG = np.random.default_rng(3)
SHAPES = {"few signals": (5, 9), "many signals": (20, 6), "square": (7, 7)}
every_shape = pytest.mark.parametrize("shape", SHAPES)


# What is learnt


def whitened(shape):
    n_signals, n_nodes = SHAPES[shape]
    mixing = np.eye(n_nodes) + 0.5 * np.tril(np.ones((n_nodes, n_nodes)), -1)
    return np.random.default_rng(n_signals).standard_normal((n_signals, n_nodes)) @ mixing.T


def predictive(worth: float, seen: np.ndarray):
    """A further row given those seen, with ``R ~ IW(b I, b + M + 1)`` integrated out: a multivariate t."""
    n_signals, n_nodes = seen.shape
    freedom = worth + n_signals + 2
    return multivariate_t(np.zeros(n_nodes), (worth * np.eye(n_nodes) + seen.T @ seen) / freedom, df=freedom)


@every_shape
def test_the_covariance_is_the_mean_of_its_posterior(shape):
    rows, worth = whitened(shape), 4.0
    n_signals, n_nodes = rows.shape
    posterior = invwishart(worth + n_nodes + 1 + n_signals, worth * np.eye(n_nodes) + rows.T @ rows)
    root = Shrinkage(worth, rows, np.ones(n_nodes), n_signals).root_of_mean
    assert relative_error(root @ root.T, posterior.mean()) < FORMULA
    assert np.all(np.triu(root, 1) == 0)


@every_shape
def test_what_is_learnt_has_the_highest_evidence_to_a_thousandth_of_a_nat_a_step(shape):
    """A product of predictions, starting from no signals at all, and a prior of the worth and the profile."""
    rows = whitened(shape)
    n_signals, n_nodes = rows.shape
    points, chebyshev = np.linspace(-1, 1, n_nodes), np.polynomial.chebyshev

    def misfit(x):
        profile = np.exp(0.5 * chebyshev.chebval(points, x[1:]))
        parts = [predictive(np.exp(x[0]), rows[:n] / profile).logpdf(rows[n] / profile) for n in range(n_signals)]
        prior = -0.5 * np.sum(((x - [np.log(n_signals), 0, 0, 0]) / [1.5, 2.0, 2.0, 1.0]) ** 2)
        return n_signals * np.sum(np.log(profile)) - np.sum(parts) - prior

    learnt = Shrinkage.learnt(rows, np.linspace(0, 1, n_nodes), n_signals)
    found = np.array([np.log(learnt.worth), *chebyshev.chebfit(points, 2 * np.log(learnt.profile), 2)])
    assert 0 <= misfit(found) - minimize(misfit, found, method="BFGS").fun < 3e-3


@every_shape
def test_lengths_and_variances_are_those_of_the_covariance(shape):
    rows, rng, worth, n_signals = whitened(shape), np.random.default_rng(1), 1.7, 11
    n_nodes = rows.shape[1]
    shrinkage = Shrinkage(worth, rows, np.ones(n_nodes), n_signals)
    covariance = (worth * np.eye(n_nodes) + rows.T @ rows) / (worth + n_signals)
    errors, vectors = rng.standard_normal((4, n_nodes)), rng.standard_normal((3, n_nodes))
    lengths, log_determinant = shrinkage.lengths(errors)
    assert relative_error(lengths, np.sum(errors * np.linalg.solve(covariance, errors.T).T, axis=1)) < FORMULA
    assert relative_error(log_determinant, np.linalg.slogdet(covariance)[1]) < FORMULA
    assert relative_error(shrinkage.diagonal(vectors), np.diag(vectors @ covariance @ vectors.T)) < FORMULA
    assert shrinkage.data_weight == pytest.approx(11 / 12.7)


def test_a_share_that_is_taken_out_leaves_the_covariance_of_the_others():
    """Where the whitened error of a signal is its row, and no more than nearly all of it is its own."""
    rows, worth = whitened("few signals"), 3.0
    whole, others = (Shrinkage(worth, own, np.ones(9), len(own)) for own in (rows, rows[1:]))
    (own,), log_whole = whole.lengths(rows[:1])
    (expected,), log_others = others.lengths(rows[:1])
    (length,), (gained,) = whole.left_out(np.array([own]))
    assert relative_error(length, expected) < FORMULA
    assert relative_error(log_whole + gained, log_others) < FORMULA
    most, _ = whole.left_out(np.array([1e9]))
    assert relative_error(most, [(worth + 5 - 1) * 0.999 / 0.001]) < FORMULA
    identity = Shrinkage(worth, np.empty((0, 9)), np.ones(9), 0)
    assert [one.tolist() for one in identity.left_out(np.array([2.5, 7.0]))] == [[2.5, 7.0], [0.0, 0.0]]


def test_what_is_learnt_is_bounded():
    """White signals, of which the graph's model says all, and one direction alone; nothing at all, and far too much."""
    rng, positions = np.random.default_rng(0), np.linspace(0, 1, 5)
    white = Shrinkage.learnt(rng.standard_normal((500, 100)), np.linspace(0, 1, 100), 500)
    assert np.log(white.worth) == pytest.approx(9.0)
    one = Shrinkage.learnt(np.outer(rng.standard_normal(20), 50 * rng.standard_normal(5)), positions, 20)
    assert np.log(one.worth) == pytest.approx(-3.0)
    for size, sign in ((0.0, -1.0), (1e5, 1.0)):
        profile = Shrinkage.learnt(size * rng.standard_normal((50, 20)), np.linspace(0, 1, 20), 50).profile
        coefficients = np.polynomial.chebyshev.chebfit(np.linspace(-1, 1, 20), 2 * np.log(profile), 2)
        np.testing.assert_allclose(coefficients, [8 * sign, 0.0, -8 * sign], atol=1e-4)


@pytest.mark.parametrize(("n_signals", "is_identity"), [(81, True), (82, False)])
def test_signals_of_less_than_a_hundredth_of_the_weight_are_left_out(n_signals, is_identity):
    """White ones, of which the graph is worth as many as it may be: e^9 or 8103."""
    rows = np.linalg.qr(np.random.default_rng(0).standard_normal((150, n_signals)))[0].T * np.sqrt(150)
    learnt = Shrinkage.learnt(rows, np.linspace(0, 1, 150), n_signals)
    assert learnt.is_identity == is_identity
    assert learnt.total == pytest.approx(np.exp(9.0) + (0 if is_identity else n_signals))


def test_degrees_of_freedom_are_three_at_least():
    """Where the covariance itself has no more than that, too."""
    nothing = Shrinkage(0.4, np.empty((0, 6)), np.ones(6), 0)
    wild = nothing.with_freedom(np.array([80.0, 0.1]), np.array([6, 6]), np.ones(2))
    assert wild.freedom == pytest.approx(3.0, rel=2e-3)
    several = Shrinkage(30.0, whitened("many signals"), np.ones(6), 20)
    none = several.with_freedom(np.empty(0), np.empty(0), np.empty(0))
    assert none.freedom == pytest.approx(30.0 + 20 + 2, rel=1e-3)


def test_more_rows_than_signals_are_summed_up():
    """Any rows whose products are those of the signals stand for them."""
    positions, rows = np.linspace(0, 1, 6), whitened("many signals")
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((31, 20)))[0]
    plain, turned = Shrinkage.learnt(rows, positions, 20), Shrinkage.learnt(turn @ rows, positions, 20)
    assert turned.n_signals == 20
    assert relative_error(turned.worth, plain.worth) < MASKED
    assert relative_error(turned.root_of_mean, plain.root_of_mean) < MASKED


def test_signals_that_say_next_to_nothing_are_left_out():
    """Few of them on many nodes, white already: the profile alone is learnt."""
    rows = np.random.default_rng(0).standard_normal((4, 2_000)) * 2.0
    learnt = Shrinkage.learnt(rows, np.linspace(0, 1, 2_000), 4)
    assert learnt.is_identity
    assert learnt.data_weight == 0
    assert np.max(np.abs(np.log(learnt.profile / 2.0))) < 0.2
    lengths, log_determinant = learnt.lengths(rows)
    assert relative_error(lengths, np.sum(rows**2, axis=1)) < EXACT
    assert log_determinant == 0


# The law


N_SIGNALS, N_NODES, NOISE = 12, 6, 0.2
GRAPH = Graph(oracle.random_weights(N_NODES, seed=1))
SIGNAL, RESIDUAL = Polynomial.from_coefficients([0.8, -0.5]), Polynomial.from_coefficients([0.5, -0.2])
INPUTS, NEW = RNG.uniform(-2, 2, (N_SIGNALS, 1)), np.array([[0.3], [1.0], [-1.4]])
MIXING = np.eye(N_NODES) + 0.4 * RNG.standard_normal((N_NODES, N_NODES))
SIGNALS, FURTHER = (RNG.standard_t(4, (size, N_NODES)) @ MIXING for size in (N_SIGNALS, len(NEW)))
KERNELS = {"plain": SIGNAL, "residual": WithResidual.of(SIGNAL, RESIDUAL)}
every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
SOME = np.array([[True, False, True, False, True, True], [False] * N_NODES, [False, True, True, False, False, True]])


def prior_of(kernel):
    return graph_gp(GRAPH, kernel, RBF(1.0), NOISE)


def shrunk_of(kernel):
    return condition_shrunk(prior_of(kernel), INPUTS, SIGNALS)


def dense(prior, inputs: np.ndarray) -> np.ndarray:
    """``K (x) V D_a R D_a V^T + I (x) V D_h R D_h V^T``: equation (14)."""
    shrinkage, basis = prior.shrinkage, prior.graph_basis
    gamma = prior.graph_kernel.power(basis.eigenvalues)
    eta = prior.graph_kernel.residual_power(basis.eigenvalues)
    shared = shrinkage.worth * np.eye(N_NODES) + shrinkage.root.T @ shrinkage.root
    shared /= shrinkage.worth + shrinkage.n_signals
    left, right = (
        basis.eigenvectors * (shrinkage.profile * np.sqrt(power)) for power in (gamma, eta + prior.noise_variance)
    )
    explained, rest = left @ shared @ left.T, right @ shared @ right.T
    return np.kron(oracle.rbf(inputs, inputs), explained) + np.kron(np.eye(len(inputs)), rest)


def predicted(prior) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of new signals given the training signals, noise included, flat."""
    matrix, entries = dense(prior, np.vstack([INPUTS, NEW])), np.arange((N_SIGNALS + len(NEW)) * N_NODES)
    return oracle.condition(matrix, entries[: SIGNALS.size], SIGNALS.ravel(), entries[SIGNALS.size :])


def t_law(mean: np.ndarray, covariance: np.ndarray, freedom: float):
    """The multivariate t with a covariance; scipy takes a shape."""
    return multivariate_t(mean, covariance * (freedom - 2) / freedom, df=freedom)


def t_given(mean, covariance, freedom, values, seen):
    """Mean, covariance and degrees of freedom of what was not seen of a t: equation (17)."""
    if not seen.any():
        return mean, covariance, freedom
    factor = cho_factor(covariance[np.ix_(seen, seen)])
    missed, across = values[seen] - mean[seen], covariance[np.ix_(~seen, seen)]
    length, count = missed @ cho_solve(factor, missed), np.count_nonzero(seen)
    left = covariance[np.ix_(~seen, ~seen)] - across @ cho_solve(factor, across.T)
    scale = (freedom - 2 + length) / (freedom - 2 + count)
    return mean[~seen] + across @ cho_solve(factor, missed), scale * left, freedom + count


def test_the_oracle_of_a_t_given_part_of_itself_is_a_quotient_of_densities():
    covariance = MIXING @ MIXING.T
    seen, values, mean = SOME[0], FURTHER[0], SIGNALS[0]
    whole = t_law(mean, covariance, 5.0).logpdf(values)
    part = t_law(mean[seen], covariance[np.ix_(seen, seen)], 5.0).logpdf(values[seen])
    rest = t_law(*t_given(mean, covariance, 5.0, values, seen)).logpdf(values[~seen])
    assert abs(whole - part - rest) < FORMULA


@every_kernel
def test_the_covariance_is_what_it_says(kernel):
    posterior = shrunk_of(kernel)
    covariance, matrix = posterior.covariance, dense(posterior.prior, INPUTS)
    block = np.random.default_rng(0).standard_normal(SIGNALS.shape)
    assert relative_error(covariance.times(block).ravel(), matrix @ block.ravel()) < FORMULA
    assert relative_error(covariance.solve(block).ravel(), np.linalg.solve(matrix, block.ravel())) < FORMULA
    assert relative_error(log_determinant(covariance), np.linalg.slogdet(matrix)[1]) < FORMULA
    assert relative_error(posterior.log_evidence(), oracle.log_density(SIGNALS.ravel(), 0.0, matrix)) < FORMULA
    assert 0 < posterior.prior.shrinkage.data_weight < 1


@every_kernel
def test_it_is_learnt_from_whitened_signals_at_their_frequencies(kernel):
    """Each divided by a root of its covariance with the others, frequency by frequency: here, that of its modes."""
    learnt = shrunk_of(kernel).prior.shrinkage
    eigenvalues, vectors = np.linalg.eigh(oracle.laplacian(GRAPH.weights.toarray(), "combinatorial", scaled=True))
    values, modes = np.linalg.eigh(RBF(1.0)(INPUTS))
    variances = np.multiply.outer(values, kernel.power(eigenvalues)) + kernel.residual_power(eigenvalues) + NOISE
    expected = Shrinkage.learnt(modes.T @ SIGNALS @ vectors / np.sqrt(variances), eigenvalues, N_SIGNALS)
    assert relative_error(learnt.worth, expected.worth) < MASKED
    assert relative_error(learnt.profile, expected.profile) < MASKED


@every_kernel
def test_signals_held_out_have_the_law_of_the_graphs_model_and_the_covariance_of_its_errors(kernel):
    """Their frequencies have its deviations times the profile, and tails by leaving out the others in the same way."""
    prior, nodes, rows = prior_of(kernel), np.array([4, 1]), np.arange(N_SIGNALS + len(NEW))
    signals = np.vstack([SIGNALS, FURTHER]) * np.linspace(0.5, 3.0, N_NODES) + 7.0
    kept, others = read_signals(signals, "global", "node").fold(rows[:N_SIGNALS], rows[N_SIGNALS:])
    plain = condition(prior, INPUTS, kept)
    prediction = plain.given(prior.input_kernel.at(INPUTS, NEW), NEW)
    shrinkage, divisor = condition_shrunk(prior, INPUTS, kept, learns_tails=False).prior.shrinkage, kept.units.divisor
    vectors, n_nodes = prior.spectrum.eigenvectors, N_NODES
    shared = (shrinkage.worth * np.eye(n_nodes) + shrinkage.root.T @ shrinkage.root) / shrinkage.total
    together = np.kron(RBF(1.0)(INPUTS), prior.node_covariance())
    residual = prior.graph_kernel.residual_power(prior.spectrum.eigenvalues) + NOISE
    together += np.kron(np.eye(N_SIGNALS), (vectors * residual) @ vectors.T)
    lengths, entries = [], np.arange(together.shape[0])
    for own in entries.reshape(N_SIGNALS, n_nodes):
        known = np.setdiff1d(entries, own)
        mean, covariance = oracle.condition(together, known, kept.values.ravel()[known], own)
        roots = np.sqrt(np.diag(vectors.T @ covariance @ vectors)) * shrinkage.profile
        lengths.append(_length(shared, (kept.values.ravel()[own] - mean) @ vectors / roots))
    by_hand = shrinkage.with_freedom(np.array(lengths), np.full(N_SIGNALS, n_nodes), np.ones(N_SIGNALS))
    found_means, stds, freedom = held_out_values(plain, prediction, nodes)
    assert relative_error(freedom, by_hand.freedom) < MASKED
    logs, values, errors = held_out_densities(plain, prediction, others, nodes)
    shape = (freedom - 2) / freedom
    for index, covariance in enumerate(node_covariances(prediction, include_noise=True)):
        roots = np.sqrt(np.diag(vectors.T @ (covariance / np.outer(divisor, divisor)) @ vectors)) * shrinkage.profile
        turned = vectors * roots
        law = turned @ shared @ turned.T * np.outer(divisor, divisor)
        mean, signal = prediction.mean[index], signals[N_SIGNALS + index]
        assert relative_error(logs[index], multivariate_t(mean, law * shape, df=freedom).logpdf(signal)) < FORMULA
        deviations = np.sqrt(np.diag(law))[nodes]
        expected = student.logpdf(signal[nodes], freedom, mean[nodes], deviations * np.sqrt(shape))
        assert relative_error(values[index], expected) < FORMULA
        assert relative_error(errors[index], (signal - mean)[nodes]) < FORMULA
        assert relative_error(found_means[index], mean[nodes]) < FORMULA
        assert relative_error(stds[index], deviations) < FORMULA


@every_kernel
def test_the_noise_is_as_much_as_is_white_in_it(kernel):
    prior = shrunk_of(kernel).prior
    rest = dense(replace(prior, graph_kernel=_without_signal(prior.graph_kernel)), INPUTS[:1])
    smallest = float(np.linalg.eigvalsh(rest)[0])
    assert relative_error(prior.nodes.noise_variance, min(NOISE, 0.99 * smallest)) < FORMULA


def _without_signal(kernel):
    silent = Polynomial.from_coefficients([0.0]).bind(GRAPH_SPECTRUM)
    return silent if kernel.residual is None else WithResidual.of(silent, kernel.residual)


GRAPH_SPECTRUM = prior_of(SIGNAL).spectrum


@every_kernel
def test_means_and_covariances_at_new_inputs(kernel):
    """Equation (16)."""
    posterior = shrunk_of(kernel)
    mean, covariance = predicted(posterior.prior)
    shape, field = FURTHER.shape, posterior.at(NEW)
    joint, noise = covariance.reshape(*shape, *shape), posterior.prior.nodes.noise_variance
    white = noise * np.eye(len(covariance)).reshape(joint.shape)
    assert relative_error(field.mean, mean.reshape(shape)) < FORMULA
    for noisy, expected in ((True, joint), (False, joint - white)):
        assert relative_error(field.joint_covariance(noisy), expected) < FORMULA
        blocks = np.stack([expected[row, :, row] for row in range(len(NEW))])
        assert relative_error(node_covariances(field, noisy), blocks) < FORMULA
        assert relative_error(field.variance(noisy), np.einsum("naa->na", blocks)) < FORMULA


@every_kernel
def test_a_signal_is_a_multivariate_t(kernel):
    posterior = shrunk_of(kernel)
    freedom, field, (mean, covariance) = posterior.prior.freedom, posterior.at(NEW), predicted(posterior.prior)
    assert 3 <= freedom < 60
    incomplete = np.where(SOME, FURTHER, np.nan)
    for row in range(len(NEW)):
        own = slice(row * N_NODES, (row + 1) * N_NODES)
        law, seen = t_law(mean[own], covariance[own, own], freedom), SOME[row]
        assert relative_error(field.log_density(FURTHER, joint=False)[row], law.logpdf(FURTHER[row])) < FORMULA
        if seen.any():
            part = t_law(mean[own][seen], covariance[own, own][np.ix_(seen, seen)], freedom)
            expected = part.logpdf(FURTHER[row, seen])
            assert relative_error(field.log_density(incomplete, joint=False)[row], expected) < FORMULA
    assert field.log_density(incomplete, joint=False)[1] == 0
    nodes = np.array([2, 5])
    found = field.value_log_densities(FURTHER[:, nodes], nodes)
    for row, column in np.ndindex(found.shape):
        entry = row * N_NODES + nodes[column]
        law = t_law(mean[[entry]], covariance[[entry]][:, [entry]], freedom)
        assert relative_error(found[row, column], law.logpdf(FURTHER[row, [nodes[column]]])) < FORMULA


@every_kernel
def test_part_of_a_signal_says_how_large_the_rest_is(kernel):
    """Equation (17): other signals are conditioned on as normal ones, and its own values as those of a t."""
    posterior = shrunk_of(kernel)
    mean, covariance = predicted(posterior.prior)
    field = posterior.at(NEW).given(np.where(SOME, FURTHER, np.nan))
    noise, flat, seen = posterior.prior.nodes.noise_variance, FURTHER.ravel(), SOME.ravel()
    rows = np.repeat(np.arange(len(NEW)), N_NODES)
    for row in range(len(NEW)):
        others, own = np.flatnonzero(seen & (rows != row)), np.flatnonzero(rows == row)
        about, left = oracle.condition(covariance, others, (flat - mean)[others], own)
        law = t_given(about + mean[own], left, posterior.prior.freedom, FURTHER[row], SOME[row])
        hidden = ~SOME[row]
        assert relative_error(field.values[row, hidden], law[0]) < MASKED
        assert relative_error(field.values_variance()[row, hidden], np.diag(law[1])) < MASKED
        assert relative_error(field.variance(True)[row, hidden], np.diag(law[1])) < MASKED
        found = node_covariances(field, True)[row][np.ix_(hidden, hidden)]
        assert relative_error(found, law[1]) < MASKED
        expected = t_law(*law).logpdf(FURTHER[row, hidden])
        assert relative_error(field.log_density(FURTHER, joint=False)[row], expected) < MASKED
        node = np.flatnonzero(hidden)[:1]
        single = t_law(law[0][:1], law[1][:1, :1], law[2]).logpdf(FURTHER[row, node])
        assert relative_error(field.value_log_densities(FURTHER[:, node], node)[row, 0], single) < MASKED
    assert np.all(field.values_variance()[SOME] == 0)
    np.testing.assert_allclose(field.values[SOME], FURTHER[SOME], rtol=FORMULA)
    # without noise: what is seen of a signal leaves noise of the same scale
    stretched = field.variance(True) - field.variance(False)
    assert relative_error(np.ptp(stretched, axis=1), np.zeros(len(NEW)), scale=noise) < MASKED


@every_kernel
@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]], ids=["in order", "in another order"])
def test_signals_together_are_a_product_in_their_order(kernel, order):
    """Equation (18)."""
    posterior = shrunk_of(kernel)
    mean, covariance = predicted(posterior.prior)
    entries = np.arange(FURTHER.size).reshape(FURTHER.shape)[order]
    incomplete = np.where(SOME, FURTHER, np.nan)
    for values in (FURTHER, incomplete):
        seen, total = np.isfinite(values)[order], 0.0
        for row in range(len(NEW)):
            before, own = entries[:row][seen[:row]], entries[row][seen[row]]
            about, left = oracle.condition(covariance, before, (values.ravel() - mean)[before], own)
            if own.size:
                total += t_law(about + mean[own], left, posterior.prior.freedom).logpdf(values.ravel()[own])
        found = posterior.at(NEW[order]).log_density(values[order])
        assert relative_error(found, total) < FORMULA
    field = posterior.at(NEW[order])
    first = np.where(np.arange(len(NEW))[:, None] == 0, FURTHER[order], np.nan)
    rest = np.where(np.arange(len(NEW))[:, None] > 0, FURTHER[order], np.nan)
    chained = field.log_density(first) + field.given(first).log_density(rest)
    assert relative_error(chained, field.log_density(FURTHER[order])) < FORMULA


@pytest.mark.slow
def test_signals_together_must_be_few_enough_to_write_out(monkeypatch):
    """Seven values of two signals; any number of one."""
    field, some = shrunk_of(SIGNAL).at(NEW), np.where(SOME, FURTHER, np.nan)
    expected = field.log_density(some)
    monkeypatch.setattr(field_module, "MOST_CHAINED", 6)
    with pytest.raises(ValueError, match="joint must be False for 7 values of incomplete signals"):
        field.log_density(some)
    first = field.log_density(np.where([[True], [False], [False]], some, np.nan))
    alone = field.log_density(some, joint=False)
    assert first == pytest.approx(alone[0], rel=FORMULA)
    assert alone[1] == 0.0
    assert expected != pytest.approx(np.sum(alone), abs=1e-3)


def test_what_draws_alone_tell_says_nothing_of_tails():
    some, prior = np.where(SOME, FURTHER, np.nan), shrunk_of(SIGNAL).prior
    field = condition(prior, INPUTS, SIGNALS).at(NEW).given(some)
    field = replace(field, entries=replace(field.entries, most_dense=0))
    assert relative_error(field.variance(), replace(field, freedom=np.inf).variance()) < EXACT
    densities = student.logpdf(
        FURTHER, prior.freedom, field.mean, standard_deviation(field, True) * np.sqrt(1 - 2 / prior.freedom)
    )
    nodes = np.arange(N_NODES)
    assert relative_error(field.value_log_densities(FURTHER, nodes), densities) < FORMULA
    with pytest.raises(
        ValueError,
        match=r"fewer values for densities with heavy tails given others; got \d+ with the observed ones\. Ask",
    ):
        field.log_density(FURTHER, joint=False)


def test_signals_that_are_too_many_are_scaled_one_by_one(monkeypatch):
    """Which takes from the covariance between them; fewer are scaled together: equation (18)."""
    field = shrunk_of(SIGNAL).at(NEW).given(np.where(SOME, FURTHER, np.nan))
    freedoms, factors = field._tails
    first, random_state = np.random.default_rng(5), np.random.default_rng(5)
    scales = np.sqrt((freedoms - 2) / first.chisquare(freedoms) * factors)[:, None]
    expected = field.mean + scales * (
        replace(field, freedom=np.inf).sample(1, first, include_noise=True)[0] - field.mean
    )
    together = field.sample(1, np.random.default_rng(5), include_noise=True)[0]
    monkeypatch.setattr(field_module, "MOST_RESCALED", FURTHER.size - 1)
    assert relative_error(field.sample(1, random_state, include_noise=True)[0], expected) < FORMULA
    assert relative_error(together[0], expected[0]) < FORMULA  # there is none before the first
    assert relative_error(together[2], expected[2]) > 1e-3


@every_kernel
def test_draws_have_the_covariance_and_the_tails(kernel):
    """Given what it is scaled by, a signal is normal; that is what makes a t of its degrees of freedom."""
    posterior = shrunk_of(kernel)
    field, state = posterior.at(NEW), oracle.OneNumber(-1)
    for scale in (1.0, 1.7):
        mean, found = oracle.law_of(lambda state: field.sample(1, state, include_noise=True), scale)
        assert relative_error(mean, field.mean.ravel()) < EXACT
        assert relative_error(found, scale**2 * predicted(posterior.prior)[1]) < FORMULA
        clean = oracle.law_of(lambda state: field.sample(1, state), scale)[1]
        assert relative_error(clean, scale**2 * field.joint_covariance().reshape(clean.shape)) < FORMULA
    field.sample(1, state)
    assert state.freedom.tolist() == [posterior.prior.freedom] * len(NEW)


def test_draws_of_a_signal_known_in_part_are_as_wide_as_it_says():
    """Where it is far from what is expected, the rest is drawn wider."""
    posterior, state = shrunk_of(KERNELS["residual"]), oracle.OneNumber(-1)
    observed = np.where(np.arange(N_NODES) < 2, 9.0, np.nan)
    field, expected = (posterior.at(NEW[:1]).given(one) for one in (observed[None], 0 * observed[None]))
    assert np.all(field.variance() > 2 * expected.variance())
    _, found = oracle.law_of(lambda state: field.sample(1, state))
    assert relative_error(found, node_covariances(field)[0]) < MASKED
    field.sample(1, state)
    assert state.freedom.tolist() == [posterior.prior.freedom + 2]


@every_kernel
def test_nothing_learnt_is_the_graphs_model(kernel):
    """``R = I``, ``r = 1`` and infinitely many degrees of freedom."""
    nothing = Shrinkage(1.0, np.zeros((1, N_NODES)), np.ones(N_NODES), n_signals=0)
    plain = condition(prior_of(kernel), INPUTS, SIGNALS)
    shrunk = condition(replace(prior_of(kernel), shrinkage=nothing), INPUTS, SIGNALS)
    observed = np.where(SOME, FURTHER, np.nan)
    pairs = [(one.at(NEW), one.at(NEW).given(observed), one.imputed(np.array([1, 5]))) for one in (shrunk, plain)]
    # without a residual the noise is all of H, of which 99% are taken off
    noises = (False, True) if kernel.residual is not None else (True,)
    for found, expected in zip(*pairs, strict=True):
        assert relative_error(found.values, expected.values) < FORMULA
        assert relative_error(found.values_variance(), expected.values_variance(), scale=1.0) < FORMULA
        if isinstance(expected, Field):
            for noisy in noises:
                assert relative_error(found.joint_covariance(noisy), expected.joint_covariance(noisy)) < FORMULA
    for joint in (True, False):
        assert relative_error(*(one[0].log_density(FURTHER, joint) for one in pairs)) < FORMULA
        assert relative_error(*(one[1].log_density(FURTHER, joint) for one in pairs)) < FORMULA
    assert relative_error(shrunk.log_evidence(), plain.log_evidence()) < FORMULA


@every_kernel
def test_a_profile_alone_is_a_diagonal(kernel):
    """The identity takes no eigendecomposition, and says the same as one that is all but reached."""
    profile = np.linspace(0.5, 2.0, N_NODES)
    identity = Shrinkage(1e12, np.empty((0, N_NODES)), profile, n_signals=0, freedom=9.0)
    nearly = replace(identity, root=np.zeros((1, N_NODES)), n_signals=1)
    assert identity.is_identity
    assert not nearly.is_identity
    found, expected = (
        condition(replace(prior_of(kernel), shrinkage=one), INPUTS, SIGNALS) for one in (identity, nearly)
    )
    matrix = dense(found.prior, INPUTS)
    assert relative_error(found.log_evidence(), oracle.log_density(SIGNALS.ravel(), 0.0, matrix)) < FORMULA
    for verb in (lambda one: one.at(NEW).joint_covariance(), lambda one: one.at(NEW).log_density(FURTHER)):
        assert relative_error(verb(found), verb(expected)) < FORMULA
    assert relative_error(found.prior.nodes.noise_variance, expected.prior.nodes.noise_variance) < FORMULA
    for quantity in ("mean", "std", "log_density"):
        pair = (getattr(leave_one_out(one), quantity) for one in (found, expected))
        assert relative_error(*pair) < FORMULA


def test_draws_of_a_diagonal_have_its_covariance():
    identity = Shrinkage(1.0, np.empty((0, N_NODES)), np.linspace(0.5, 2.0, N_NODES), n_signals=0)
    nodes = replace(prior_of(KERNELS["residual"]), shrinkage=identity).nodes
    _, found = oracle.law_of(lambda state: nodes.basis.unload(nodes.draw_own(1, state)))
    silent = replace(prior_of(_without_signal(KERNELS["residual"])), shrinkage=identity)
    covariance = dense(silent, INPUTS[:1]) - nodes.noise_variance * np.eye(N_NODES)
    assert relative_error(found, covariance) < FORMULA


def test_conditioning_keeps_what_was_learnt():
    learnt = shrunk_of(SIGNAL)
    again = condition(learnt.prior, INPUTS, SIGNALS)
    assert again.prior.shrinkage is learnt.prior.shrinkage
    np.testing.assert_array_equal(again.at(NEW).mean, learnt.at(NEW).mean)
    more = condition(learnt.prior, np.vstack([INPUTS, NEW[:2]]), np.vstack([SIGNALS, FURTHER[:2]]))
    assert more.prior.shrinkage is learnt.prior.shrinkage
    given = learnt.at(NEW).given(np.where(np.arange(3)[:, None] < 2, FURTHER, np.nan))
    assert relative_error(more.at(NEW[2:]).mean[0], given.mean[2]) < MASKED
    assert relative_error(more.at(NEW[2:]).variance(True)[0], given.variance(True)[2]) < MASKED
    anew = condition_shrunk(learnt.prior, np.vstack([INPUTS, NEW[:2]]), np.vstack([SIGNALS, FURTHER[:2]]))
    assert anew.prior.shrinkage.n_signals == N_SIGNALS + 2


def test_a_quadrature_cannot_be_shrunk():
    prior = graph_gp(GRAPH, Polynomial(1), RBF(1.0), 0.2, spectrum=Chebyshev(n_moments=9))
    with pytest.raises(ValueError, match=r"prior must be on an exact spectrum to shrink a covariance.*Use condition"):
        condition_shrunk(prior, INPUTS, SIGNALS)


# Leaving out, and degrees of freedom


def unexplained():
    """Inputs explain nothing: whitened signals are the rows that ``R`` was learnt from."""
    return condition_shrunk(prior_of(WithResidual.of(Polynomial.from_coefficients([0.0]), RESIDUAL)), INPUTS, SIGNALS)


def left_out_by_hand(posterior, index: int, freedom: float):
    """A signal under the covariance that the others show at the same worth and profile."""
    prior, shrinkage = posterior.prior, posterior.prior.shrinkage
    vectors = prior.graph_basis.eigenvectors
    residual = prior.graph_kernel.residual_power(prior.graph_basis.eigenvalues)
    roots = np.sqrt(residual + NOISE) * shrinkage.profile
    others = np.delete(SIGNALS @ vectors / roots, index, axis=0)
    scale = (shrinkage.worth * np.eye(N_NODES) + others.T @ others) / (shrinkage.worth + N_SIGNALS - 1)
    outer = vectors * roots
    covariance = outer @ scale @ outer.T
    return t_law(np.zeros(N_NODES), covariance, freedom).logpdf(SIGNALS[index]), covariance


def test_leaving_out_where_inputs_explain_nothing_is_exact():
    """``q' = (t - 1) / t q / (1 - q / t)``, and the determinant to it."""
    posterior = unexplained()
    left, shrinkage = leave_one_out(posterior), posterior.prior.shrinkage
    for index in range(N_SIGNALS):
        expected, covariance = left_out_by_hand(posterior, index, shrinkage.freedom)
        assert relative_error(left.log_density[index], expected) < FORMULA
        assert relative_error(left.std[index] ** 2, np.diag(covariance)) < FORMULA
        assert relative_error(left.mean[index], np.zeros(N_NODES)) < FORMULA
        total, length = shrinkage.total, _length(dense(posterior.prior, INPUTS[:1]), SIGNALS[index])
        found = shrinkage.left_out(np.array([length]))[0][0]
        assert relative_error(found, (total - 1) / total * length / (1 - length / total)) < FORMULA
        assert relative_error(found, _length(covariance, SIGNALS[index])) < FORMULA


def _length(covariance: np.ndarray, error: np.ndarray) -> float:
    return float(error @ np.linalg.solve(covariance, error))


def test_degrees_of_freedom_are_the_likeliest_of_signals_left_out():
    posterior = unexplained()
    learnt, centre = posterior.prior.freedom, np.log(posterior.prior.shrinkage.total + 2)
    grid = np.exp(np.linspace(np.log(3.0), centre, 400))
    scores = [
        sum(left_out_by_hand(posterior, index, freedom)[0] for index in range(N_SIGNALS))
        - 0.5 * ((np.log(freedom) - centre) / 1.5) ** 2
        for freedom in grid
    ]
    best = grid[int(np.argmax(scores))]
    assert abs(np.log(learnt / best)) <= np.log(grid[1] / grid[0]) + 1e-3


def test_degrees_of_freedom_that_are_not_learnt_are_those_of_the_covariance(monkeypatch):
    """Where they are not asked for, and where draws alone tell what is not observed."""
    holed, prior = SIGNALS.copy(), prior_of(SIGNAL)
    holed[0, 0] = np.nan
    unasked = condition_shrunk(prior, INPUTS, SIGNALS, learns_tails=False).prior
    learnt = [condition_shrunk(prior, INPUTS, signals).prior for signals in (SIGNALS, holed)]
    monkeypatch.setattr(posterior_module, "PartialObservations", partial(PartialObservations, most_dense=0))
    untold = condition_shrunk(prior, INPUTS, holed).prior
    for one in (unasked, untold):
        assert one.freedom == pytest.approx(one.shrinkage.total + 2, rel=1e-3)
    assert all(one.freedom < 0.8 * unasked.freedom for one in learnt)


@every_kernel
@pytest.mark.parametrize("by", ["entry", "node"])
def test_entries_and_nodes_are_left_out_of_the_law_as_it_is(kernel, by):
    posterior = shrunk_of(kernel)
    matrix, left, freedom = dense(posterior.prior, INPUTS), leave_one_out(posterior, by), posterior.prior.freedom
    rows = np.repeat(np.arange(N_SIGNALS), N_NODES)
    for row, node in ((0, 0), (3, 4), (11, 5)):
        entry = row * N_NODES + node
        if by == "node":
            out = np.zeros(SIGNALS.shape, dtype=bool)
            out[:, node] = True
            mean, spread, logs = oracle.leave_out(SIGNALS, matrix, out)
            assert relative_error(left.mean[:, node], mean) < FORMULA
            assert relative_error(left.std[:, node] ** 2, np.diag(spread)) < FORMULA
            assert relative_error(left.log_density[node], logs) < FORMULA
            continue
        others, own = np.flatnonzero(rows != row), np.flatnonzero(rows == row)
        about, spread = oracle.condition(matrix, others, SIGNALS.ravel()[others], own)
        law = t_given(about, spread, freedom, SIGNALS[row], np.arange(N_NODES) != node)
        assert relative_error(left.mean[row, node], law[0][0]) < FORMULA
        assert relative_error(left.std[row, node] ** 2, law[1][0, 0]) < FORMULA
        assert relative_error(left.log_density[row, node], t_law(*law).logpdf(SIGNALS.ravel()[[entry]])) < FORMULA


# Signals with missing values


def shrunk_with_missing_values(share: float):
    """A shrunk posterior of signals of which a share was not observed, and those signals."""
    rng = np.random.default_rng(4)
    prior = prior_of(WithResidual.of(Polynomial(1), Polynomial.from_coefficients([0.5])))
    inputs, mixing = rng.standard_normal((30, 1)), rng.standard_normal((N_NODES, N_NODES))
    signals = rng.standard_normal((30, N_NODES)) @ mixing / 3
    signals[rng.random(signals.shape) < share] = np.nan
    return condition_shrunk(prior, inputs, signals), inputs, signals


def test_the_evidence_of_signals_with_missing_values():
    posterior, inputs, signals = shrunk_with_missing_values(0.2)
    seen = np.isfinite(signals).ravel()
    matrix = dense(posterior.prior, inputs)[np.ix_(seen, seen)]
    assert relative_error(posterior.log_evidence(), oracle.log_density(signals.ravel()[seen], 0.0, matrix)) < MASKED


def test_predictions_from_signals_with_missing_values():
    posterior, inputs, signals = shrunk_with_missing_values(0.2)
    seen, both = np.flatnonzero(np.isfinite(signals).ravel()), np.vstack([inputs, NEW])
    matrix = dense(posterior.prior, both)
    entries = np.arange(signals.size, len(matrix))
    mean, covariance = oracle.condition(matrix, seen, signals.ravel()[seen], entries)
    field, freedom = posterior.at(NEW), posterior.prior.freedom
    assert relative_error(field.mean.ravel(), mean) < MASKED
    found = field.joint_covariance(include_noise=True).reshape(covariance.shape)
    assert relative_error(found, covariance) < MASKED
    singles = field.log_density(FURTHER, joint=False)
    total, errors = 0.0, FURTHER.ravel() - mean
    for row in range(len(NEW)):
        own, before = np.arange(row * N_NODES, (row + 1) * N_NODES), np.arange(row * N_NODES)
        law = t_law(mean[own], covariance[np.ix_(own, own)], freedom)
        assert relative_error(singles[row], law.logpdf(FURTHER[row])) < MASKED
        about, left = oracle.condition(covariance, before, errors[before], own)
        total += t_law(about, left, freedom).logpdf(errors[own])
    assert relative_error(field.log_density(FURTHER), total) < MASKED


def test_training_signals_are_filled_in_as_parts_of_a_t():
    """With the share of each taken out of the covariance that its length is measured by, which has seen it."""
    posterior, inputs, signals = shrunk_with_missing_values(0.2)
    total, freedom = posterior.prior.shrinkage.total, posterior.prior.freedom
    matrix, seen = dense(posterior.prior, inputs), np.isfinite(signals)
    rows = np.repeat(np.arange(len(signals)), N_NODES)
    chosen = np.flatnonzero(~seen.all(axis=1))[:4]
    field = posterior.imputed(chosen)
    for number, row in enumerate(chosen):
        others, own = np.flatnonzero(seen.ravel() & (rows != row)), np.flatnonzero(rows == row)
        about, left = oracle.condition(matrix, others, signals.ravel()[others], own)
        mean, covariance, _ = t_given(about, left, freedom, np.nan_to_num(signals[row]), seen[row])
        errors = (signals[row] - about)[seen[row]]
        length = errors @ np.linalg.solve(left[np.ix_(seen[row], seen[row])], errors)
        without = (total - 1) / total * length / (1 - length / total)
        covariance = covariance * (freedom - 2 + without) / (freedom - 2 + length)
        assert relative_error(field.values[number, ~seen[row]], mean) < MASKED
        assert relative_error(field.values_variance()[number, ~seen[row]], np.diag(covariance)) < MASKED


def test_signals_known_in_part_are_conditioned_on_beside_signals_with_missing_values():
    posterior, inputs, signals = shrunk_with_missing_values(0.2)
    observed = np.array([[1.0, np.nan, 0.5, np.nan, -1.0, np.nan]])
    seen, new = np.isfinite(observed[0]), np.array([[0.4]])
    matrix, known = dense(posterior.prior, np.vstack([inputs, new])), np.flatnonzero(np.isfinite(signals).ravel())
    own = np.arange(signals.size, len(matrix))
    about, left = oracle.condition(matrix, known, signals.ravel()[known], own)
    law = t_given(about, left, posterior.prior.freedom, np.nan_to_num(observed[0]), seen)
    found = posterior.at(new).given(observed)
    assert relative_error(found.values[0, ~seen], law[0]) < MASKED
    assert relative_error(found.values_variance()[0, ~seen], np.diag(law[1])) < MASKED
    further = np.full((1, N_NODES), 0.3)
    expected = t_law(*law).logpdf(further[0, ~seen])
    assert relative_error(found.log_density(further), expected) < MASKED


@pytest.mark.parametrize("by", ["signal", "entry", "node"])
def test_leaving_out_of_signals_with_missing_values(by):
    """Under the covariance as it is."""
    posterior, inputs, signals = shrunk_with_missing_values(0.2)
    matrix, seen, freedom = dense(posterior.prior, inputs), np.isfinite(signals), posterior.prior.freedom
    left, flat = leave_one_out(posterior, by), np.nan_to_num(signals).ravel()
    rows, nodes = (np.broadcast_to(one, signals.shape).ravel() for one in np.ogrid[:30, :N_NODES])
    for row, node in ((0, 1), (7, 3), (21, 5)):
        group = {"signal": rows == row, "node": nodes == node, "entry": (rows == row) & (nodes == node)}[by]
        out = np.flatnonzero(group & seen.ravel())
        if by == "node":
            kept = np.flatnonzero(seen.ravel() & ~group)
            mean, spread = oracle.condition(matrix, kept, flat[kept], out)
            assert relative_error(left.log_density[node], oracle.log_density(flat[out], mean, spread)) < MASKED
            continue
        others, own = np.flatnonzero(seen.ravel() & (rows != row)), np.flatnonzero((rows == row) & seen.ravel())
        about, spread = oracle.condition(matrix, others, flat[others], own)
        law = t_given(about, spread, freedom, flat[own], np.isin(own, out, invert=True))
        density = left.log_density[(row, node) if by == "entry" else row]
        if out.size == 0:
            assert np.isnan(density)
            continue
        assert relative_error(density, t_law(*law).logpdf(flat[out])) < MASKED
        assert relative_error(left.mean.ravel()[out], law[0]) < MASKED
        assert relative_error(left.std.ravel()[out] ** 2, np.diag(law[1])) < MASKED


# The estimator
