"""Predictions against dense conditioning, for every graph kernel."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, DotProduct

import oracle
from cases import GRAPHS, KERNELS, KERNELS_AND_GRAPHS, drawn
from spectralgp import condition, condition_shrunk, graph_gp, leave_one_out
from spectralgp.model.fields import node_covariances, standard_deviation
from spectralgp.model.kernels import Diffusion
from tolerances import EXACT, FORMULA, SMALL_NOISE

N_SIGNALS, N_INPUTS = 5, 3
INPUTS = np.random.default_rng(0).uniform(-2, 2, (N_SIGNALS + N_INPUTS, 2))
TRAINING, NEW = INPUTS[:N_SIGNALS], INPUTS[N_SIGNALS:]
INPUT_COVARIANCE = oracle.rbf(INPUTS, INPUTS, 1.3)
K = INPUT_COVARIANCE[:N_SIGNALS, :N_SIGNALS]
CROSS = INPUT_COVARIANCE[N_SIGNALS:, :N_SIGNALS]
TEST = INPUT_COVARIANCE[N_SIGNALS:, N_SIGNALS:]

every_kernel_and_graph = pytest.mark.parametrize(("name", "graph"), KERNELS_AND_GRAPHS)
every_noise = pytest.mark.parametrize("relative_noise", [SMALL_NOISE, 0.2])


class Setting:
    """A prediction and the dense truth about it."""

    def __init__(self, name="Diffusion", graph="random", relative_noise=0.2, kernel=None, inputs=None, new=None):
        self.node_covariance, self.noise, everything = drawn(name, graph, relative_noise, INPUT_COVARIANCE, 3)
        self.signals, self.observed = everything[:N_SIGNALS], everything[N_SIGNALS:]
        prior = graph_gp(GRAPHS[graph], KERNELS[name].kernel, RBF(1.3) if kernel is None else kernel, self.noise)
        self.posterior = condition(prior, TRAINING if inputs is None else inputs, self.signals)
        self.prediction = self.posterior.at(NEW if new is None else new)
        mean, self.covariance = oracle.predict(self.signals, INPUT_COVARIANCE, self.node_covariance, self.noise)
        self.mean = mean.reshape(N_INPUTS, -1)
        self.n_nodes = GRAPHS[graph].n_nodes
        # digits of a small posterior variance are lost against the prior's, in dense algebra too
        self.scale = float(np.max(np.diag(self.node_covariance))) or 1.0

    def block(self, index):
        nodes = slice(index * self.n_nodes, (index + 1) * self.n_nodes)
        return self.covariance[nodes, nodes]


@every_noise
@every_kernel_and_graph
def test_mean_and_variance_are_those_of_dense_conditioning(name, graph, relative_noise):
    """Equations (8) and (9)."""
    setting = Setting(name, graph, relative_noise)
    assert oracle.relative_error(setting.prediction.mean, setting.mean) < FORMULA
    expected = np.diag(setting.covariance).reshape(N_INPUTS, -1)
    assert oracle.relative_error(setting.prediction.variance(), expected, setting.scale) < FORMULA
    assert np.all(setting.prediction.variance() >= 0)


@every_noise
@every_kernel_and_graph
def test_covariances_are_those_of_dense_conditioning(name, graph, relative_noise):
    """Equation (9): over the nodes for each input, and over inputs and nodes together."""
    setting = Setting(name, graph, relative_noise)
    expected = np.stack([setting.block(index) for index in range(N_INPUTS)])
    assert oracle.relative_error(node_covariances(setting.prediction), expected, setting.scale) < FORMULA
    joint = setting.prediction.joint_covariance()
    assert joint.shape == (N_INPUTS, setting.n_nodes, N_INPUTS, setting.n_nodes)
    matrix = joint.reshape(N_INPUTS * setting.n_nodes, -1)
    assert oracle.relative_error(matrix, setting.covariance, setting.scale) < FORMULA


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("name", ["Polynomial(3)", "LocalAverage", "PseudoInverse"])
def test_noise_is_included_on_request(name, graph):
    setting = Setting(name, graph)
    prediction, noise = setting.prediction, setting.noise
    for noisy, plain in [
        (prediction.variance(include_noise=True), prediction.variance() + noise),
        (standard_deviation(prediction, include_noise=True) ** 2, prediction.variance() + noise),
        (standard_deviation(prediction) ** 2, prediction.variance()),
        (
            node_covariances(prediction, include_noise=True),
            node_covariances(prediction) + noise * np.eye(setting.n_nodes),
        ),
    ]:
        assert oracle.relative_error(noisy, plain) < EXACT
    matrix = prediction.joint_covariance(include_noise=True).reshape(N_INPUTS * setting.n_nodes, -1)
    expected = setting.covariance + noise * np.eye(len(matrix))
    assert oracle.relative_error(matrix, expected) < FORMULA


@every_noise
@every_kernel_and_graph
def test_log_density_is_that_of_dense_conditioning(name, graph, relative_noise):
    """The joint density of section 3, ``p(both) / p(training)``, and that of each input alone.

    The quotient of two dense densities keeps digits that subtracting variances loses when noise is small.
    """
    setting = Setting(name, graph, relative_noise)

    def evidence(rows):
        chosen = np.r_[0:N_SIGNALS, rows].astype(int)
        signals = np.vstack([setting.signals, setting.observed])[chosen]
        inputs = INPUT_COVARIANCE[np.ix_(chosen, chosen)]
        return oracle.log_likelihood(signals, inputs, setting.node_covariance, setting.noise)

    new = np.arange(N_SIGNALS, N_SIGNALS + N_INPUTS)
    expected = evidence(new) - evidence([])
    actual = setting.prediction.log_density(setting.observed)
    assert isinstance(actual, float)
    # a log density may cross zero: a nat for each entry is its scale
    assert oracle.relative_error(actual, expected, max(abs(expected), setting.observed.size)) < FORMULA

    alone = [evidence([row]) - evidence([]) for row in new]
    actual = setting.prediction.log_density(setting.observed, joint=False)
    assert oracle.relative_error(actual, alone, max(np.max(np.abs(alone)), setting.n_nodes)) < FORMULA


def test_a_precomputed_kernel_predicts_as_the_kernel_does():
    by_kernel = Setting().prediction
    precomputed = Setting(kernel="precomputed", inputs=K, new=(CROSS, TEST)).prediction
    assert oracle.relative_error(precomputed.mean, by_kernel.mean) < EXACT
    assert oracle.relative_error(precomputed.variance(), by_kernel.variance()) < EXACT
    assert oracle.relative_error(precomputed.joint_covariance(), by_kernel.joint_covariance()) < EXACT


def test_precomputed_variances_suffice_for_variances():
    by_kernel = Setting()
    precomputed = Setting(kernel="precomputed", inputs=K, new=(CROSS, np.diag(TEST))).prediction
    assert oracle.relative_error(precomputed.variance(), by_kernel.prediction.variance()) < EXACT
    assert oracle.relative_error(node_covariances(precomputed), node_covariances(by_kernel.prediction)) < EXACT
    alone = by_kernel.prediction.log_density(by_kernel.observed, joint=False)
    assert oracle.relative_error(precomputed.log_density(by_kernel.observed, joint=False), alone) < EXACT
    with pytest.raises(ValueError, match="X must hold the covariance of the test inputs"):
        precomputed.joint_covariance()


@pytest.mark.parametrize(
    "ask",
    [
        lambda prediction: prediction.variance(),
        lambda prediction: standard_deviation(prediction),
        lambda prediction: node_covariances(prediction),
        lambda prediction: prediction.joint_covariance(),
        lambda prediction: prediction.log_density(np.zeros((N_INPUTS, 7))),
        lambda prediction: prediction.log_density(np.zeros((N_INPUTS, 7)), joint=False),
        lambda prediction: prediction.sample(1, np.random.default_rng(0)),
    ],
    ids=["variance", "std", "node covariance", "joint covariance", "joint density", "densities", "sample"],
)
def test_a_precomputed_cross_covariance_alone_gives_the_mean_only(ask):
    prediction = Setting(kernel="precomputed", inputs=K, new=CROSS).prediction
    assert oracle.relative_error(prediction.mean, Setting().mean) < FORMULA
    with pytest.raises(
        ValueError,
        match=r"X must hold the covariance of the test inputs.*cross-covariance only.*Pass X = \(cross, test",
    ):
        ask(prediction)


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (CROSS.T, r"X must have shape \(n_inputs, n_signals\) with n_signals = 5; got \(5, 3\)\. Pass the cross"),
        ((CROSS, TEST[:2, :2]), r"the test covariance in X must have shape.*n_inputs = 3; got \(2, 2\)"),
        ((CROSS, np.ones(4)), r"the test variances in X must have shape \(n_inputs,\) with n_inputs = 3; got \(4,\)"),
        (np.full_like(CROSS, np.nan), "X must be finite; got nan"),
    ],
    ids=["transposed", "small covariance", "many variances", "NaN"],
)
def test_precomputed_matrices_must_fit(new, message):
    with pytest.raises(ValueError, match=message):
        Setting(kernel="precomputed", inputs=K, new=new)


def test_a_test_covariance_that_contradicts_the_cross_covariance_is_not_repaired_in_silence():
    """Prior variances below what the training signals explain: zero would be a lie."""
    prediction = Setting(kernel="precomputed", inputs=K, new=(K[:3], 0.1 * K[:3, :3])).prediction
    for ask in (
        lambda: prediction.variance(),
        lambda: node_covariances(prediction),
        lambda: prediction.joint_covariance(),
        lambda: prediction.sample(1, np.random.default_rng(0)),
        lambda: prediction.log_density(np.zeros((3, 7))),
        lambda: prediction.log_density(np.zeros((3, 7)), joint=False),
    ):
        with pytest.raises(ValueError, match="must be consistent with their cross-covariance"):
            ask()


def test_a_contradiction_is_told_by_the_variances_themselves():
    """Not by their size, which is a matter of units."""
    prior = graph_gp(GRAPHS["random"], Diffusion(), "precomputed", 1e-9)
    posterior = condition(prior, 1e-8 * K, np.random.default_rng(0).standard_normal((5, 7)))
    assert np.all(posterior.at((1e-8 * K[:3], 1e-8 * K[:3, :3])).variance() > 0)
    with pytest.raises(ValueError, match="got a predictive variance of -"):
        posterior.at((1e-8 * K[:3], 1e-9 * K[:3, :3])).variance()


@pytest.mark.parametrize("share", [-1e-10, -1e-9])
def test_what_rounding_takes_from_a_test_covariance_is_forgiven(share):
    """New inputs that are those of training, seen without noise: nothing is left of them, or less by rounding."""
    setting = {"kernel": "precomputed", "inputs": K, "relative_noise": 1e-12}
    prediction = Setting(**setting, new=(K[:3], K[:3, :3] * (1 + share))).prediction
    assert np.all(prediction.variance() >= 0)
    contradicted = Setting(**setting, new=(K[:3], K[:3, :3] * (1 - 1e-6))).prediction
    with pytest.raises(ValueError, match="must be consistent with their cross-covariance"):
        contradicted.variance()


def test_independent_signals_tell_nothing_of_new_ones():
    prior = graph_gp(GRAPHS["random"], Diffusion(), None, 0.1)
    posterior = condition(prior, np.zeros((2, 0)), np.ones((2, 7)))
    prediction = posterior.at(np.zeros((1, 0)))
    np.testing.assert_array_equal(prediction.mean, np.zeros((1, 7)))
    assert oracle.relative_error(node_covariances(prediction)[0], prior.node_covariance()) < FORMULA
    with pytest.raises(ValueError, match=r"X must be None, or have no columns.*independent; got shape \(1, 2\)"):
        posterior.at(np.zeros((1, 2)))


@pytest.mark.parametrize("joint", [True, False])
def test_a_density_needs_one_signal_for_each_input(joint):
    prediction = Setting().prediction
    with pytest.raises(ValueError, match=r"signals must have one row for each of the 3 inputs .*; got shape \(2, 7\)"):
        prediction.log_density(np.zeros((2, 7)), joint=joint)
    message = r"signals must have shape \(n_signals, n_nodes\) with n_nodes = 7; got \(7, 3\)"
    with pytest.raises(ValueError, match=message):
        prediction.log_density(np.zeros((7, 3)), joint=joint)


@pytest.mark.parametrize("include_noise", [False, True])
@pytest.mark.parametrize(("name", "graph"), [("Polynomial(3)", "random"), ("LocalAverage", "disconnected")])
def test_samples_have_the_moments_of_the_prediction(name, graph, include_noise):
    """Two of them, which have nothing to do with one another."""
    setting = Setting(name, graph)
    assert setting.prediction.sample(4, np.random.default_rng(5)).shape == (4, N_INPUTS, setting.n_nodes)
    mean, found = oracle.law_of(lambda state: setting.prediction.sample(2, state, include_noise=include_noise))
    covariance = setting.covariance + include_noise * setting.noise * np.eye(setting.mean.size)
    assert oracle.relative_error(mean, np.tile(setting.mean.ravel(), 2)) < FORMULA
    assert oracle.relative_error(found, np.kron(np.eye(2), covariance)) < FORMULA


def test_doors_say_what_they_take():
    prior = graph_gp(GRAPHS["random"], Diffusion(), RBF(), 0.1)
    posterior = condition(prior, TRAINING, np.ones((5, 7)))
    for ask, message in (
        (lambda: condition("prior", TRAINING, np.ones((5, 7))), "prior must be a GraphGP; got str"),
        (lambda: condition_shrunk(2, TRAINING, np.ones((5, 7))), "prior must be a GraphGP; got int"),
        (lambda: leave_one_out(prior), r"posterior must be a Posterior; got GraphGP\. Pass what condition"),
    ):
        with pytest.raises(TypeError, match=message):
            ask()
    transposed = r"signals must have shape .*got \(7, 5\).*did you pass the transpose"
    for ask, message in (
        (lambda: condition(prior, TRAINING, np.ones((7, 5))), transposed),
        (lambda: condition(prior, TRAINING, np.full((5, 7), np.inf)), "signals must be finite or NaN; got inf"),
        # seven inputs, seven nodes and a flat signal would broadcast to wrong numbers
        (lambda: condition(prior, np.arange(7.0)[:, None], np.arange(7.0)), "signals must have"),
        (lambda: condition(prior, TRAINING * np.nan, np.ones((5, 7))), "inputs must be finite; got nan"),
        (lambda: posterior.at(np.full((1, 2), np.nan)), "inputs must be finite; got nan"),
        (lambda: posterior.at(np.ones((1, 3))), r"inputs must have shape .* with n_features = 2; got \(1, 3\)"),
    ):
        with pytest.raises(ValueError, match=message):
            ask()


def test_the_variance_of_inputs_is_the_mean_of_their_own():
    posterior = condition(graph_gp(GRAPHS["random"], Diffusion(), DotProduct(0.5), 0.1), TRAINING, np.ones((5, 7)))
    assert posterior.input_variance == pytest.approx(0.25 + np.mean(np.sum(TRAINING**2, axis=1)))


def test_conditioning_copies_what_it_is_given():
    prior = graph_gp(GRAPHS["random"], Diffusion(), RBF(), 0.1)
    inputs, signals = TRAINING.copy(), np.random.default_rng(0).standard_normal((5, 7))
    posterior = condition(prior, inputs, signals)
    expected = condition(prior, TRAINING, signals.copy()).at(NEW).mean
    inputs *= 0
    signals *= 0
    np.testing.assert_array_equal(posterior.at(NEW).mean, expected)
