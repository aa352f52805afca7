"""What must hold for any graph, any kernel and any signals."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF

import oracle
from cases import KERNELS, node_covariance
from spectralgp.graphs import Graph
from spectralgp.model.fields import condition, graph_gp, leave_one_out, log_marginal_likelihood
from spectralgp.model.spectra import decompose
from strategies import adjacencies
from tolerances import DIFFERENCE, EXACT, FORMULA, SMALL_NOISE

# roots of the weights: the pseudo-inverse turns a spread of eigenvalues of 1e6 into as many lost digits
weights_of_graphs = adjacencies(max_nodes=7).map(np.sqrt).map(np.sqrt)
kernels = st.sampled_from(sorted(KERNELS)).map(lambda name: KERNELS[name].kernel)
relative_noises = st.floats(np.log10(SMALL_NOISE), 1).map(lambda exponent: 10.0**exponent)
seeds = st.integers(0, 2**16)


def problem(graph, kernel, relative_noise, seed, n_signals=4):
    """A prior with noise relative to its largest power, inputs and signals."""
    rng = np.random.default_rng(seed)
    noise = relative_noise * (float(np.linalg.eigvalsh(node_covariance(kernel, graph))[-1]) or 1.0)
    inputs = rng.uniform(-2, 2, (n_signals, 1))
    prior = graph_gp(graph, kernel, RBF(1.1), noise)
    signals = prior.sample(inputs, 1, rng, include_noise=True)[0]
    return prior, inputs, signals


def assert_likelihoods_agree(actual, expected, size):
    assert oracle.relative_error(actual, expected, max(abs(expected), size)) < FORMULA


@given(weights_of_graphs, st.sampled_from(["combinatorial", "normalized", "balanced"]), st.booleans(), seeds)
def test_parseval(weights, laplacian, scaled, seed):
    """The graph Fourier transform keeps inner products and is undone by its inverse."""
    spectrum = decompose(Graph(weights), laplacian, scaled=scaled)
    signals = np.random.default_rng(seed).standard_normal((3, len(weights)))
    coefficients = spectrum.transform(signals)
    assert oracle.relative_error(coefficients @ coefficients.T, signals @ signals.T) < EXACT
    assert oracle.relative_error(spectrum.inverse(coefficients), signals) < EXACT


@given(weights_of_graphs, kernels, relative_noises, seeds)
def test_relabelling_nodes_keeps_the_likelihood_and_permutes_predictions(weights, kernel, relative_noise, seed):
    prior, inputs, signals = problem(Graph(weights), kernel, relative_noise, seed)
    order = np.random.default_rng(seed + 1).permutation(len(weights))
    other = graph_gp(Graph(weights[np.ix_(order, order)]), kernel, RBF(1.1), prior.noise_variance)
    expected = log_marginal_likelihood(prior, inputs, signals)
    assert_likelihoods_agree(log_marginal_likelihood(other, inputs, signals[:, order]), expected, signals.size)

    new = np.array([[0.3], [1.9]])
    plain = condition(prior, inputs, signals).at(new)
    relabelled = condition(other, inputs, signals[:, order]).at(new)
    scale = float(np.max(np.abs(signals)))
    assert oracle.relative_error(relabelled.mean, plain.mean[:, order], scale) < FORMULA
    scale = float(np.max(np.diag(prior.node_covariance()))) or 1.0
    assert oracle.relative_error(relabelled.variance(), plain.variance()[:, order], scale) < FORMULA


@given(weights_of_graphs, kernels, relative_noises, seeds, st.floats(-3, 3).map(lambda exponent: 10.0**exponent))
def test_scaling_signals_filter_and_noise_shifts_the_likelihood(weights, kernel, relative_noise, seed, factor):
    """In other units, ``c Y``, the log density moves by ``-N M log c``; predictions scale along."""
    graph = Graph(weights)
    prior, inputs, signals = problem(graph, kernel, relative_noise, seed)
    other = graph_gp(graph, kernel.scaled_by(factor), RBF(1.1), factor**2 * prior.noise_variance)
    expected = log_marginal_likelihood(prior, inputs, signals) - signals.size * np.log(factor)
    assert_likelihoods_agree(log_marginal_likelihood(other, inputs, factor * signals), expected, signals.size)

    new = np.array([[0.3], [1.9]])
    plain, scaled = (condition(prior, inputs, signals).at(new), condition(other, inputs, factor * signals).at(new))
    scale = factor * float(np.max(np.abs(signals)))
    assert oracle.relative_error(scaled.mean, factor * plain.mean, scale) < FORMULA
    scale = factor**2 * (float(np.max(np.diag(prior.node_covariance()))) or 1.0)
    assert oracle.relative_error(scaled.variance(), factor**2 * plain.variance(), scale) < FORMULA


@given(weights_of_graphs, kernels, relative_noises, seeds, st.floats(1, 100))
def test_more_noise_never_sharpens(weights, kernel, relative_noise, seed, factor):
    """The predictive variance (9) never falls when the noise grows, and never exceeds the prior's."""
    graph = Graph(weights)
    prior, inputs, signals = problem(graph, kernel, relative_noise, seed)
    noisier = graph_gp(graph, kernel, RBF(1.1), factor * prior.noise_variance)
    new = np.vstack([inputs[:1], [[0.3], [5.0]]])
    variance = condition(prior, inputs, signals).at(new).variance()
    other = condition(noisier, inputs, signals).at(new).variance()
    prior_variance = np.diag(prior.node_covariance())
    rounding = EXACT * max(float(np.max(prior_variance)), 1e-300)
    assert np.all(other >= variance - rounding)
    assert np.all(other <= prior_variance + rounding)


@given(weights_of_graphs, kernels, relative_noises, seeds)
def test_leaving_out_a_signal_is_predicting_it_from_the_others(weights, kernel, relative_noise, seed):
    """Equation (10) against equations (8) and (9) on the remaining signals."""
    prior, inputs, signals = problem(Graph(weights), kernel, relative_noise, seed)
    left_out = leave_one_out(condition(prior, inputs, signals), "signal")
    scale = float(np.max(np.abs(signals)))
    for n in range(len(signals)):
        rest = np.arange(len(signals)) != n
        prediction = condition(prior, inputs[rest], signals[rest]).at(inputs[[n]])
        variance = prediction.variance(include_noise=True)[0]
        assert oracle.relative_error(left_out.mean[n], prediction.mean[0], scale) < FORMULA
        assert oracle.relative_error(left_out.std[n] ** 2, variance) < DIFFERENCE
        expected = prediction.log_density(signals[[n]])
        size = max(abs(expected), signals.shape[1])
        assert oracle.relative_error(left_out.log_density[n], expected, size) < DIFFERENCE


@given(weights_of_graphs, kernels, relative_noises, seeds)
def test_all_ways_of_leaving_one_out_agree_with_the_covariance(weights, kernel, relative_noise, seed):
    """Fewer deletions leave more to predict from: an entry alone is at least as certain."""
    prior, inputs, signals = problem(Graph(weights), kernel, relative_noise, seed)
    posterior = condition(prior, inputs, signals)
    entry, signal, node = (leave_one_out(posterior, by) for by in ("entry", "signal", "node"))
    assert np.all(entry.std <= signal.std * (1 + FORMULA))
    assert np.all(entry.std <= node.std * (1 + FORMULA))
    assert np.all(entry.std**2 >= prior.noise_variance * (1 - FORMULA))
