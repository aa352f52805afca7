"""The estimator: units, shapes, names and errors; every number against dense algebra with the learnt values."""

import copy
from contextlib import redirect_stderr

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from settings import PAPER, paper_kernel
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import oracle
from cases import KERNELS, Terminal
from spectralgp import (
    GlobalFilter,
    GraphGPRegressor,
    LocalAverage,
    Sqp,
    Stacking,
)
from spectralgp.graphs import Graph
from spectralgp.learning import Solver
from spectralgp.model.fields import Mixture
from spectralgp.model.kernels import Diffusion, Identity, Polynomial, WithResidual
from tolerances import FORMULA, GRADIENT, OPTIMUM, STANDARD_ERRORS

pytestmark = pytest.mark.usefixtures("learnt_values")  # compared with dense formulas

N_SIGNALS, N_NODES, N_NEW = 12, 6, 4
NAMES = list("fedcba")
WEIGHTS = oracle.random_weights(N_NODES, seed=4)
GRAPH = Graph(WEIGHTS, names=NAMES)
RNG = np.random.default_rng(11)
EVERYWHERE = RNG.uniform(-2, 2, (N_SIGNALS + N_NEW, 2))
LAPLACIAN = oracle.laplacian(WEIGHTS, scaled=True)
ALL_SIGNALS = 20 + 3 * oracle.draw(
    oracle.rbf(EVERYWHERE, EVERYWHERE, 1.5), oracle.polynomial(LAPLACIAN, [1.0, -1.4, 0.6]), 0.02, RNG
)
X, NEW = EVERYWHERE[:N_SIGNALS], EVERYWHERE[N_SIGNALS:]
Y, OBSERVED = ALL_SIGNALS[:N_SIGNALS], ALL_SIGNALS[N_SIGNALS:]
FRAME = pd.DataFrame(Y, columns=NAMES)


def regressor(graph_kernel=None, **options):
    """The paper's model, which dense algebra can follow."""
    settings = PAPER | {"input_kernel": paper_kernel(X)} | options
    return GraphGPRegressor(GRAPH, Polynomial(2) if graph_kernel is None else graph_kernel, **settings)


def default(graph_kernel=None, **options):
    """All settings as they come, but for the graph kernel, so that one model is learnt and not many."""
    return GraphGPRegressor(GRAPH, Polynomial(2) if graph_kernel is None else graph_kernel, **options)


MAKERS = {"paper": regressor, "default": default}


@pytest.fixture(scope="module")
def fitted():
    return regressor().fit(X, Y)


@pytest.fixture(scope="module")
def default_fitted():
    return default().fit(X, Y)


@pytest.fixture(scope="module", params=MAKERS)
def either(request):
    """A maker, and what it made when fitted."""
    known = {"paper": "fitted", "default": "default_fitted"}
    return MAKERS[request.param], request.getfixturevalue(known[request.param])


@pytest.fixture(scope="module")
def stacked():
    return regressor(Stacking([Polynomial(1), Polynomial(3), Diffusion()], n_draws=0)).fit(X, Y)


def node_covariance(kernel):
    """Dense ``B B^T`` of a learnt polynomial, from its reported coefficients."""
    return oracle.polynomial(LAPLACIAN, kernel.coefficients)


def dense_prediction(model):
    """Mean and joint covariance of the noise-free signals at the new inputs, in the units of Y."""
    covariance = oracle.rbf(EVERYWHERE, EVERYWHERE, model.input_kernel_[0].length_scale)
    centred = Y - model.center_
    mean, matrix = oracle.predict(centred, covariance, node_covariance(model.graph_kernel_[0]), model.noise_variance_)
    return mean.reshape(N_NEW, N_NODES) + model.center_, matrix


# Numbers


@pytest.mark.parametrize("center", ["global", "node", None])
@pytest.mark.parametrize("scale", ["global", None])
@pytest.mark.parametrize("prior", ["weak", None])
def test_predictions_and_likelihood_are_dense_ones_with_the_learnt_values(center, scale, prior):
    """Everything reported is in the units of Y, so dense algebra on Y itself must reproduce it."""
    model = regressor(center=center, scale=scale, prior=prior).fit(X, Y)
    expected_center = {"global": np.full(N_NODES, Y.mean()), "node": Y.mean(axis=0), None: np.zeros(N_NODES)}[center]
    np.testing.assert_allclose(model.center_, expected_center)
    mean, matrix = dense_prediction(model)
    variances = np.diag(matrix).reshape(N_NEW, N_NODES)
    scale_of_variance = float(np.max(np.diag(node_covariance(model.graph_kernel_[0]))))
    actual, std = model.predict(NEW, return_std=True)
    assert oracle.relative_error(actual, mean) < FORMULA
    assert oracle.relative_error(std**2, variances, scale_of_variance) < FORMULA
    _, noisy = model.predict(NEW, return_std=True, include_noise=True)
    assert oracle.relative_error(noisy**2, variances + model.noise_variance_, scale_of_variance) < FORMULA
    for include_noise in (False, True):
        _, covariance = model.predict(NEW, return_cov=True, include_noise=include_noise)
        noise = include_noise * model.noise_variance_ * np.eye(N_NODES)
        for n in range(N_NEW):
            block = matrix[n * N_NODES : (n + 1) * N_NODES, n * N_NODES : (n + 1) * N_NODES]
            assert oracle.relative_error(covariance[n], block + noise, scale_of_variance) < FORMULA
    joint = model.posterior_.at(NEW).joint_covariance().reshape(matrix.shape)
    assert oracle.relative_error(joint, matrix, scale_of_variance) < FORMULA
    likelihood = oracle.log_likelihood(
        Y - model.center_,
        oracle.rbf(X, X, model.input_kernel_[0].length_scale),
        node_covariance(model.graph_kernel_[0]),
        model.noise_variance_,
    )
    assert oracle.relative_error(model.log_marginal_likelihood_, likelihood) < FORMULA


def test_log_predictive_density_is_the_dense_one(fitted):
    mean, matrix = dense_prediction(fitted)
    noisy = matrix + fitted.noise_variance_ * np.eye(len(matrix))
    expected = oracle.log_density(OBSERVED.ravel(), mean.ravel(), noisy)
    total = fitted.log_predictive_density(NEW, OBSERVED)
    assert isinstance(total, float)
    assert oracle.relative_error(total, expected) < 1e-8  # small posterior variances are differences of large ones
    each = [
        oracle.log_density(
            OBSERVED[n], mean[n], noisy[n * N_NODES : (n + 1) * N_NODES, n * N_NODES : (n + 1) * N_NODES]
        )
        for n in range(N_NEW)
    ]
    assert oracle.relative_error(fitted.log_predictive_density(NEW, OBSERVED, joint=False), each) < 1e-8


@pytest.mark.parametrize("by", ["signal", "node", "entry"])
def test_leave_one_out_is_in_the_units_of_the_signals(fitted, by):
    matrix = oracle.covariance(
        oracle.rbf(X, X, fitted.input_kernel_[0].length_scale),
        node_covariance(fitted.graph_kernel_[0]),
        fitted.noise_variance_,
    )
    left = fitted.leave_one_out(by)
    mask = np.zeros(Y.shape, dtype=bool)
    where = {"signal": np.s_[3, :], "node": np.s_[:, 2], "entry": np.s_[3, 2]}[by]
    mask[where] = True
    mean, covariance, log_density = oracle.leave_out(Y - fitted.center_, matrix, mask)
    assert oracle.relative_error(np.ravel(left.mean[where]), mean + fitted.center_[0]) < FORMULA
    assert oracle.relative_error(np.ravel(left.std[where]), np.sqrt(np.diag(covariance))) < 1e-7
    index = {"signal": 3, "node": 2, "entry": (3, 2)}[by]
    assert oracle.relative_error(left.log_density[index], log_density, N_NODES) < 1e-7


@pytest.mark.parametrize("prior", ["weak", None])
@pytest.mark.parametrize("graph_kernel", [Polynomial(2), Diffusion(), Polynomial(3, laplacian="normalized")])
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_changing_the_units_of_the_signals(make, graph_kernel, prior):
    """``c Y + b``: predictions follow, variances by c^2, the log likelihood by -N M log c."""
    factor, shift = 250.0, -40.0
    plain = make(graph_kernel, prior=prior).fit(X, Y)
    other = make(graph_kernel, prior=prior).fit(X, factor * Y + shift)
    mean, std = plain.predict(NEW, return_std=True)
    other_mean, other_std = other.predict(NEW, return_std=True)
    assert oracle.relative_error(other_mean, factor * mean + shift) < OPTIMUM
    assert oracle.relative_error(other_std, factor * std) < OPTIMUM
    assert other.noise_variance_ == pytest.approx(factor**2 * plain.noise_variance_, rel=np.sqrt(OPTIMUM))
    expected = plain.log_marginal_likelihood_ - Y.size * np.log(factor)
    assert other.log_marginal_likelihood_ == pytest.approx(expected, abs=OPTIMUM * Y.size)
    points = plain.spectrum_.eigenvalues
    assert oracle.relative_error(other.response(points), factor * plain.response(points)) < np.sqrt(OPTIMUM)
    density = plain.log_predictive_density(NEW, OBSERVED) - OBSERVED.size * np.log(factor)
    assert other.log_predictive_density(NEW, factor * OBSERVED + shift) == pytest.approx(
        density, abs=OPTIMUM * OBSERVED.size
    )


def test_fixed_parameters_are_in_the_units_of_the_signals():
    model = regressor(
        Identity(amplitude=2.5, amplitude_bounds="fixed"), input_kernel=RBF(1.5, "fixed"), noise_variance=0.4
    )
    model.fit(X, Y)
    assert model.graph_kernel_[0].amplitude == pytest.approx(2.5)
    expected = oracle.log_likelihood(Y - Y.mean(), oracle.rbf(X, X, 1.5), 2.5**2 * np.eye(N_NODES), 0.4)
    assert model.log_marginal_likelihood_ == pytest.approx(expected)


def test_noise_is_learnt_between_bounds():
    model = regressor(Polynomial(3), noise_variance=(0.3 * np.var(Y), 10 * np.var(Y)), prior=None).fit(X, Y)
    assert model.noise_variance_ == pytest.approx(0.3 * np.var(Y))
    assert "noise_variance at its lower bound" in model.fits_[0].certificate.active


def test_precomputed_covariances_are_the_kernel_they_were_computed_from(fitted):
    kernel = fitted.input_kernel_[0]
    model = regressor(input_kernel="precomputed").fit(kernel(X), Y)
    fixed = regressor(input_kernel=RBF(kernel.length_scale, "fixed")).fit(X, Y)
    assert model.input_kernel_[0] == "precomputed"
    assert model.log_marginal_likelihood_ == pytest.approx(fixed.log_marginal_likelihood_, abs=1e-8)
    assert oracle.relative_error(model.predict(kernel(NEW, X)), fixed.predict(NEW)) < FORMULA
    pair = (kernel(NEW, X), kernel(NEW))
    for options in ({"return_std": True}, {"return_cov": True, "include_noise": True}):
        for actual, expected in zip(model.predict(pair, **options), fixed.predict(NEW, **options), strict=True):
            assert oracle.relative_error(actual, expected) < 1e-8
    expected = fixed.log_predictive_density(NEW, OBSERVED)
    assert model.log_predictive_density(pair, OBSERVED) == pytest.approx(expected, abs=1e-6)
    variances = (pair[0], np.diag(pair[1]))
    assert (
        oracle.relative_error(model.predict(variances, return_std=True)[1], fixed.predict(NEW, return_std=True)[1])
        < 1e-8
    )


def test_repeated_signals_are_kept_where_covariances_are_given():
    """New inputs will have covariances with each of them."""
    rows = np.append(np.arange(N_SIGNALS), [0, 3])
    covariance = oracle.rbf(X, X)[np.ix_(rows, rows)]
    model = regressor(input_kernel="precomputed").fit(covariance, Y[rows])
    assert model.predict(covariance[:2]).shape == (2, N_NODES)
    nodes = node_covariance(model.graph_kernel_[0])
    expected = oracle.log_likelihood(Y[rows] - Y[rows].mean(), covariance, nodes, model.noise_variance_)
    assert oracle.relative_error(model.log_marginal_likelihood_, expected) < FORMULA


def test_a_kernel_that_has_a_residual_keeps_it():
    model = GraphGPRegressor(GRAPH, WithResidual.of(Polynomial(1), Polynomial(1))).fit(X, Y)
    assert model.graph_kernel_[0].degree == model.residual_[0].degree == 1


@pytest.mark.parametrize("spectrum", ["exact", "chebyshev"])
def test_a_precomputed_covariance_with_a_column_per_node_is_not_carried_over(spectrum):
    few, signals = X[:N_NODES], Y[:N_NODES]
    model = GraphGPRegressor(GRAPH, Polynomial(1), input_kernel="precomputed", spectrum=spectrum)
    model.fit(oracle.rbf(few, few), signals)
    assert model.fits_[0].model.carry is None
    mean, std = model.predict((oracle.rbf(NEW, few), oracle.rbf(NEW, NEW)), return_std=True)
    assert mean.shape == std.shape == (N_NEW, N_NODES)
    with pytest.raises(ValueError, match="carry must be None or 'auto' unless X holds features; got"):
        model.set_params(carry=list(range(N_NODES))).fit(oracle.rbf(few, few), signals)


def test_precomputed_without_test_covariance_has_means_only():
    model = regressor(input_kernel="precomputed").fit(oracle.rbf(X, X), Y)
    cross = oracle.rbf(NEW, X)
    model.predict(cross)
    for inputs in (cross, oracle.rbf(X + 0.1, X)):  # a square one is not taken for that of the training inputs
        with pytest.raises(ValueError, match=r"X must hold the covariance of the test inputs .* Pass X = \(cross, te"):
            model.predict(inputs, return_std=True)


def test_response_is_the_learnt_filter(fitted):
    eigenvalues = np.linalg.eigvalsh(LAPLACIAN)
    expected = np.polynomial.polynomial.polyval(eigenvalues, fitted.graph_kernel_[0].coefficients)
    assert oracle.relative_error(fitted.response(), expected) < 1e-8
    values, std = fitted.response([0.0, 0.5], return_std=True)
    np.testing.assert_allclose(values, fitted.graph_kernel_[0].response([0.0, 0.5]))
    # no draw is part of the prediction, and yet the band is known
    shown = [drawn.graph_kernel.response([0.0, 0.5]) for part in fitted.learnt_.shown for _, drawn, *_ in part]
    spread = fitted.posterior_.signals.units.spread
    assert oracle.relative_error(std, spread * np.std(shown, axis=0)) < FORMULA
    assert len(shown) == 32


def test_score_is_the_coefficient_of_determination(either):
    _, fitted = either
    predicted = fitted.predict(NEW)
    ratios = [
        np.sum((OBSERVED[:, m] - predicted[:, m]) ** 2) / np.sum((OBSERVED[:, m] - OBSERVED[:, m].mean()) ** 2)
        for m in range(N_NODES)
    ]
    assert fitted.score(NEW, OBSERVED) == pytest.approx(1 - np.mean(ratios))


# Independent signals


def test_without_inputs_a_filter_is_learnt_and_new_signals_are_like_the_old_ones():
    model = regressor().fit(None, Y)
    centred = Y - Y.mean()
    expected = oracle.log_likelihood(
        centred, np.eye(N_SIGNALS), node_covariance(model.graph_kernel_[0]), model.noise_variance_
    )
    assert model.input_kernel_[0] is None
    assert model.log_marginal_likelihood_ == pytest.approx(expected)
    marginal = node_covariance(model.graph_kernel_[0]) + model.noise_variance_ * np.eye(N_NODES)
    densities = [oracle.log_density(signal - Y.mean(), 0.0, marginal) for signal in OBSERVED]
    assert oracle.relative_error(model.log_predictive_density(None, OBSERVED, joint=False), densities) < FORMULA
    assert model.log_predictive_density(None, OBSERVED) == pytest.approx(sum(densities))
    mean, std = model.predict(None, return_std=True, include_noise=True)
    np.testing.assert_allclose(mean, np.full((1, N_NODES), Y.mean()))
    np.testing.assert_allclose(std[0] ** 2, np.diag(marginal))
    draws = model.sample_y(None, 4000, include_noise=True)[0]
    spread = np.sqrt((np.outer(np.diag(marginal), np.diag(marginal)) + marginal**2) / 4000)
    assert np.all(np.abs(np.cov(draws) - marginal) < STANDARD_ERRORS * spread)
    for action in (model.predict, model.sample_y, lambda X: model.log_predictive_density(X, OBSERVED)):
        with pytest.raises(
            ValueError, match=r"fitted with X=None, in which signals are independent; got shape \(4, 2\)"
        ):
            action(NEW)


# Stacking


def test_stacked_likelihood_is_that_of_the_mixture(stacked):
    likelihoods = [fit.log_likelihood for fit in stacked.fits_]
    expected = logsumexp(likelihoods, b=stacked.kernel_weights_)
    assert stacked.log_marginal_likelihood_ == pytest.approx(expected)


def test_a_vanishing_weight_does_not_spoil_the_likelihood(monkeypatch):
    """Expectation maximisation ends with weights as small as 1e-320; warnings are errors."""
    monkeypatch.setattr("spectralgp.learning.search.stacking_weights", lambda densities: np.array([1.0, 5e-324]))
    model = regressor(Stacking([Identity(), Polynomial(3)], n_draws=0)).fit(X, Y)
    weak, strong = (fit.log_likelihood for fit in model.fits_)
    assert strong > weak
    assert model.log_marginal_likelihood_ == pytest.approx(np.logaddexp(weak, strong + np.log(5e-324)))


def test_stacked_predictions_are_those_of_a_mixture_of_single_fits(stacked):
    singles = [regressor(kernel).fit(X, Y) for kernel in stacked.graph_kernel.kernels]
    weights = stacked.kernel_weights_
    means, stds = zip(*(single.predict(NEW, return_std=True) for single in singles), strict=True)
    mean, std = stacked.predict(NEW, return_std=True)
    expected = np.tensordot(weights, means, axes=1)
    variance = np.tensordot(weights, np.square(stds) + np.square(means - expected), axes=1)
    assert oracle.relative_error(mean, expected) < 1e-8
    assert oracle.relative_error(std, np.sqrt(variance)) < 1e-8
    logs = [single.log_predictive_density(NEW, OBSERVED) for single in singles]
    assert stacked.log_predictive_density(NEW, OBSERVED) == pytest.approx(logsumexp(logs, b=weights))
    left = stacked.leave_one_out("entry")
    expected = np.tensordot(weights, [single.leave_one_out("entry").mean for single in singles], axes=1)
    assert oracle.relative_error(left.mean, expected) < 1e-8


def test_auto_stacks_degrees_with_draws_and_shows_the_averaged_filter():
    model = regressor(Polynomial("auto"), random_state=3).fit(X, Y)
    assert [kernel.degree for kernel in model.graph_kernel_] == [0, 1, 2, 3, 5, 8]
    assert isinstance(model.posterior_, Mixture)
    eigenvalues = np.linalg.eigvalsh(LAPLACIAN)
    expected = sum(w * k.response(eigenvalues) for w, k in zip(model.kernel_weights_, model.graph_kernel_, strict=True))
    values, std = model.response(return_std=True)
    assert oracle.relative_error(values, expected) < 1e-8
    assert len(model.posterior_.parts) == 16 * np.count_nonzero(model.kernel_weights_)
    filters, used = drawn_filters(model, eigenvalues), model.kernel_weights_[model.kernel_weights_ > 0]
    shares = np.repeat(used, 16) / 16
    assert oracle.relative_error(std, np.sqrt(shares @ (filters - shares @ filters) ** 2)) < FORMULA


def test_default_is_auto_on_a_graph_and_identity_without():
    """The paper's model by default stacks degrees; what the new default stacks is up to its plan."""
    without = GraphGPRegressor(None, None, paper_kernel(X), **PAPER).fit(X, Y)
    assert isinstance(without.graph_kernel_[0], Identity)
    stacking = Stacking(n_folds=2, n_draws=0)
    stacked = GraphGPRegressor(GRAPH, stacking, paper_kernel(X), **PAPER).fit(X[:6], Y[:6])
    assert [kernel.degree for kernel in stacked.graph_kernel_] == [0, 1, 2, 3, 5, 8]


def drawn_filters(model, eigenvalues):
    """Filters of the drawn models in the units of Y, from their coefficients."""
    drawn = [part.prior.graph_kernel.coefficients for _, part in model.posterior_.parts]
    return np.std(Y) * np.array([np.polynomial.polynomial.polyval(eigenvalues, one) for one in drawn])


def test_draws_of_one_kernel_widen_its_predictions(fitted):
    """Mean and variance are those of an equal mixture of dense predictions, one with each drawn model."""
    model = regressor(Stacking(Polynomial(2), n_draws=20)).fit(X, Y)
    assert model.graph_kernel_[0] == fitted.graph_kernel_[0]
    centre, variance = Y.mean(), np.var(Y)
    means, variances = [], []
    for _, part in model.posterior_.parts:
        prior = part.prior
        covariance = oracle.rbf(EVERYWHERE, EVERYWHERE, prior.input_kernel.described.length_scale)
        nodes = variance * node_covariance(prior.graph_kernel)
        mean, matrix = oracle.predict(Y - centre, covariance, nodes, variance * prior.noise_variance)
        means.append(mean.reshape(N_NEW, N_NODES) + centre)
        variances.append(np.diag(matrix).reshape(N_NEW, N_NODES))
    assert len(means) == len({mean[0, 0] for mean in means}) == 20
    mean, std = model.predict(NEW, return_std=True)
    assert oracle.relative_error(mean, np.mean(means, axis=0)) < FORMULA
    assert oracle.relative_error(std**2, np.mean(variances, axis=0) + np.var(means, axis=0)) < FORMULA
    eigenvalues = np.linalg.eigvalsh(LAPLACIAN)
    spread = np.std(drawn_filters(model, eigenvalues), axis=0)
    assert oracle.relative_error(model.response(return_std=True)[1], spread) < FORMULA


def test_a_response_is_of_the_kernels_on_the_laplacian_of_the_largest_weight(stacked):
    heaviest = stacked.fits_[int(np.argmax(stacked.kernel_weights_))].model
    same = [
        (weight, fit.model.graph_kernel)
        for weight, fit in zip(stacked.kernel_weights_, stacked.fits_, strict=True)
        if fit.model.graph_kernel.needs_no_graph or fit.model.spectrum.laplacian == heaviest.spectrum.laplacian
        if fit.model.graph_kernel.needs_no_graph or fit.model.spectrum.scaled == heaviest.spectrum.scaled
    ]
    assert 0 < len(same) < len(stacked.fits_)
    points = stacked.spectrum_.eigenvalues
    expected = np.sum([weight * kernel.response(points) for weight, kernel in same], axis=0)
    expected = expected / np.sum([weight for weight, _ in same])
    assert oracle.relative_error(stacked.response(), expected) < FORMULA
    with pytest.raises(ValueError, match="must be a function on the spectrum to have a response; got LocalAverage"):
        regressor(LocalAverage()).fit(X, Y).response()
    with pytest.raises(ValueError, match="must be a function on the spectrum to have a response; got LocalAverage"):
        regressor(Stacking([GlobalFilter(), LocalAverage()], n_draws=0)).fit(X, Y).response()


ONE_OF_A_KIND = [name for name in KERNELS if "(" not in name] + ["RandomWalk(3)", "Matern(3/2)"]
EVERY_KERNEL = [KERNELS[name].kernel for name in ONE_OF_A_KIND] + [Polynomial(4, "interval"), Polynomial(2, None)]


@pytest.mark.parametrize("kernel", EVERY_KERNEL, ids=lambda kernel: type(kernel).__name__)
def test_every_kernel_goes_through_the_estimator(kernel):
    model = regressor(kernel).fit(X, Y)
    dense = model.fits_[0].model.node_covariance()
    length = model.input_kernel_[0].length_scale
    expected = oracle.log_likelihood(Y - Y.mean(), oracle.rbf(X, X, length), dense, model.noise_variance_)
    assert model.log_marginal_likelihood_ == pytest.approx(expected)
    assert model.fits_[0].converged
    assert np.all(np.isfinite(model.predict(NEW)))


# Shapes and names


def test_one_column_may_be_flat():
    flat = GraphGPRegressor().fit(X, Y[:, 0])
    column = GraphGPRegressor().fit(X, Y[:, :1])
    mean, std = flat.predict(NEW, return_std=True)
    assert mean.shape == std.shape == (N_NEW,)
    np.testing.assert_allclose(mean, column.predict(NEW)[:, 0])
    assert flat.sample_y(NEW, 5).shape == (N_NEW, 5)
    assert column.sample_y(NEW, 5).shape == (N_NEW, 1, 5)
    assert flat.predict(NEW, return_cov=True)[1].shape == (N_NEW, 1, 1)
    density = flat.log_predictive_density(NEW, OBSERVED[:, 0])
    assert density == pytest.approx(column.log_predictive_density(NEW, OBSERVED[:, :1]))


def test_names_of_the_fit_are_matched_where_the_graph_has_none():
    model = GraphGPRegressor(Graph(WEIGHTS), Polynomial(1)).fit(X, FRAME)
    observed = pd.DataFrame(OBSERVED, columns=NAMES)
    expected = model.log_predictive_density(NEW, observed)
    assert model.log_predictive_density(NEW, observed[sorted(NAMES)]) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (FRAME.drop(columns="c"), "'c' are missing"),
        (FRAME.rename(columns={"a": "z"}), "'z' belong to no node, while 'a' are missing"),
        (FRAME.assign(extra=0.0), "'extra' belong to no node"),
    ],
)
def test_columns_that_do_not_match_are_an_error(either, frame, message):
    make, fitted = either
    with pytest.raises(ValueError, match=message):
        make().fit(X, frame)
    with pytest.raises(ValueError, match=message):
        fitted.log_predictive_density(X, frame)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_predicted_frames_have_names_and_index(make):
    days = pd.date_range("2020-01-01", periods=N_NEW)
    frame = pd.DataFrame(NEW, columns=["u", "v"], index=days)
    model = make().fit(pd.DataFrame(X, columns=["u", "v"]), FRAME[sorted(NAMES)])
    mean, std = model.predict(frame, return_std=True, include_noise=True)
    expected_mean, expected_std = model.set_output(predict="numpy").predict(frame, return_std=True, include_noise=True)
    for actual, expected in ((mean, expected_mean), (std, expected_std)):
        assert list(actual.columns) == sorted(NAMES)
        assert actual.index.equals(days)
        np.testing.assert_array_equal(actual.to_numpy(), expected)
    assert list(model.feature_names_in_) == ["u", "v"]


def test_predicted_frames_without_names_are_numbered_or_take_those_of_the_signals():
    graph = Graph(WEIGHTS)
    model = GraphGPRegressor(graph, Identity()).set_output(predict="pandas")
    assert list(model.fit(X, Y).predict(NEW).columns) == list(range(N_NODES))
    assert list(model.fit(X, FRAME).predict(NEW).columns) == NAMES


# Errors, which leave the estimator as it was


BAD_SETTINGS = [
    ({"noise_variance": -1.0}, ValueError, "noise_variance must be a finite number above 0; got -1.0"),
    ({"noise_variance": 0.0}, ValueError, "noise_variance must be a finite number above 0; got 0.0"),
    ({"noise_variance": "low"}, TypeError, "noise_variance must be a finite number above 0; got 'low'"),
    ({"noise_variance": (1.0, 0.5)}, ValueError, r"noise_variance must be .*0 < low < high; got \(1.0, 0.5\)"),
    ({"prior": "strong"}, ValueError, "prior must be one of 'weak'; got 'strong'"),
    ({"center": "row"}, ValueError, "center must be one of 'auto', 'global', 'node'; got 'row'"),
    ({"scale": "row"}, ValueError, "scale must be one of 'auto', 'global', 'node'; got 'row'"),
    ({"solver": "adam"}, ValueError, "solver must be one of 'sqp'; got 'adam'"),
    ({"graph_kernel": 5}, TypeError, "graph_kernel must .*, a list of them, or a Stacking of them; got 5"),
    ({"input_kernel": "rbf"}, TypeError, "kernel must be a scikit-learn kernel such as RBF.*; got 'rbf'"),
    ({"input_kernel": RBF}, TypeError, "pass an instance, not the class"),
    ({"graph_kernel": "polynomial"}, TypeError, "graph_kernel must be a graph kernel .*; got 'polynomial'"),
    ({"graph_kernel": Polynomial}, TypeError, "graph_kernel must be a graph kernel"),
    ({"graph_kernel": []}, TypeError, r"graph_kernel must be a graph kernel .*; got \[\]"),
    (
        {"graph_kernel": [Polynomial(1), RBF()]},
        TypeError,
        "a list of them, or a Stacking of them; got RBF.* at position 1, of type sklearn",
    ),
    ({"graph": None}, ValueError, r"graph must be given to use graph_kernel=Polynomial\(.*; got None. Pass a Graph"),
    ({"graph": "ring"}, TypeError, "graph"),
    ({"graph": np.ones((2, 3))}, ValueError, r"weights must have shape \(n_nodes, n_nodes\); got \(2, 3\)"),
]
BAD_DATA = {
    "transposed signals": (X, Y.T, ValueError, "X and Y must have the same number of rows.* did you pass a transpose"),
    "too few columns": (X, Y[:, :4], ValueError, r"n_nodes = 6, the nodes of the graph; got 4 columns"),
    "too few rows": (X[:5], Y, ValueError, "X and Y must have the same number of rows, one per signal; got 5 and 12"),
    "flat signals": (X, Y[:, 0], ValueError, "n_nodes = 6, the nodes of the graph; got 1 columns"),
    "three axes": (X, Y[:, :, None], ValueError, "dim 3|shape"),
    "nothing but NaN in Y": (
        X,
        np.full(Y.shape, np.nan),
        ValueError,
        "Y must hold at least one value; got nothing but",
    ),
    "infinity in Y": (X, np.where(Y[2, 3] == Y, np.inf, Y), ValueError, "Y contains infinity at row 2, column 3"),
    "NaN in X": (np.where(X[1, 1] == X, np.nan, X), Y, ValueError, "X must be finite; X contains NaN at row 1"),
    "words": (X, np.full(Y.shape, "word"), ValueError, "Y must hold numbers; got dtype <U4"),
    "no signals": (X, None, ValueError, "Y must hold the signals"),
    "flat inputs": (X[:, 0], Y, ValueError, "Expected 2D array"),
    "no rows": (X[:0], Y[:0], ValueError, "0 sample|minimum of 1"),
}


@pytest.fixture
def kept(default_fitted):
    """A fitted estimator that a fit which fails leaves as it was, but for its settings."""
    model = copy.copy(default_fitted)
    predicted = model.predict(NEW)
    yield model
    model.set_params(**default_fitted.get_params(deep=False))
    assert model.__dict__.keys() == default_fitted.__dict__.keys()
    assert all(model.__dict__[name] is value for name, value in default_fitted.__dict__.items())
    np.testing.assert_array_equal(model.predict(NEW), predicted)


@pytest.mark.parametrize(("settings", "error", "message"), BAD_SETTINGS, ids=lambda value: str(value)[:40])
def test_bad_settings(settings, error, message, kept):
    kept.set_params(**settings)
    with pytest.raises(error, match=message):
        kept.fit(X, Y)


@pytest.mark.parametrize("name", BAD_DATA)
def test_bad_data(name, kept):
    inputs, signals, error, message = BAD_DATA[name]
    with pytest.raises(error, match=message):
        kept.fit(inputs, signals)


def test_bad_precomputed_covariances(kept):
    kept.set_params(input_kernel="precomputed")
    for matrix, message in (
        (X, r"X must be square, the covariance of the training inputs.*; got shape \(12, 2\)"),
        (np.triu(np.ones((12, 12))), "X must be symmetric"),
        (np.eye(12) - 0.5, "the input covariance must be positive semi-definite"),
        (np.eye(11), "X and Y must have the same number of rows"),
    ):
        with pytest.raises(ValueError, match=message):
            kept.fit(matrix, Y)


@pytest.mark.filterwarnings("ignore:the noise is at")
def test_signals_that_do_not_vary_leave_nothing_to_choose():
    """All candidates would be learnt and weighed for nothing, and slowly: at a bound there is no curvature."""
    for level in (0.0, 3.0):
        model = GraphGPRegressor(GRAPH).fit(X, np.full(Y.shape, level))
        assert len(model.fits_) == 1
        np.testing.assert_array_equal(model.predict(NEW), np.full((N_NEW, N_NODES), level))


def dense_evidence(theta, signals, n_coefficients):
    """Equation (5) with the covariance written out, from (Chebyshev coefficients, log length scale, log noise)."""
    filters = np.polynomial.chebyshev.chebval(2 * np.linalg.eigvalsh(LAPLACIAN) - 1, theta[:n_coefficients])
    vectors = np.linalg.eigh(LAPLACIAN)[1]
    nodes = (vectors * filters**2) @ vectors.T
    matrix = oracle.covariance(oracle.rbf(X, X, np.exp(theta[-2])), nodes, np.exp(theta[-1]))
    values = signals.ravel()
    seen = np.isfinite(values)
    return oracle.log_density(values[seen], 0.0, matrix[np.ix_(seen, seen)])


@pytest.mark.parametrize("share", [0.0, 0.2], ids=["complete", "incomplete"])
def test_the_evidence_and_its_gradient_at_any_hyperparameters(share):
    signals = np.where(np.random.default_rng(0).random(Y.shape) < share, np.nan, Y - 20)
    settings = PAPER | {"center": None, "scale": None}
    model = GraphGPRegressor(GRAPH, Polynomial(2), RBF(1.0), **settings).fit(X, signals)
    assert model.theta_.shape == (5,)
    assert model.log_marginal_likelihood() == model.log_marginal_likelihood_
    assert model.log_marginal_likelihood(model.theta_) == pytest.approx(model.log_marginal_likelihood_, rel=FORMULA)
    theta = model.theta_ * [0.9, 1.2, 0.7, 1.0, 1.0] + [0.0, 0.0, 0.1, 0.2, -0.3]
    value, gradient = model.log_marginal_likelihood(theta, eval_gradient=True)
    assert value == pytest.approx(dense_evidence(theta, signals, 3), rel=FORMULA)
    expected = oracle.jacobian(lambda point: dense_evidence(point, signals, 3), theta)
    assert oracle.relative_error(gradient, expected) < GRADIENT
    with pytest.raises(ValueError, match=r"theta must have shape \(n_parameters,\) with n_parameters = 5; got \(4,\)"):
        model.log_marginal_likelihood(theta[1:])


def test_the_evidence_is_of_signals_as_given_and_of_one_model():
    """In other units the same signals are less likely by the logarithm of the unit, for each value."""
    model, in_other = (regressor(prior=None).fit(X, unit * Y) for unit in (1.0, 7.0))
    theta = model.theta_ + 0.1
    shift = Y.size * np.log(7.0)
    assert in_other.log_marginal_likelihood(theta) == pytest.approx(
        model.log_marginal_likelihood(theta) - shift, rel=1e-6
    )
    stacked = regressor([Polynomial(1), Identity()]).fit(X, Y)
    with pytest.raises(ValueError, match=r"graph_kernel must .*; got a mixture"):
        stacked.log_marginal_likelihood(theta)


def test_a_model_knows_the_signals_that_it_has_seen():
    model = regressor().fit(X, Y)
    mixed, inputs = np.vstack([Y[3:5], OBSERVED[:2]]), np.vstack([X[3:5], NEW[:2]])
    assert model.has_seen(inputs, mixed).tolist() == [True, True, False, False]
    assert model.has_seen(inputs[::-1], mixed).tolist() == [False] * 4  # the same values at other inputs
    assert model.condition_on(NEW[:1], OBSERVED[:1]).has_seen(inputs, mixed).tolist() == [True, True, True, False]


def test_one_signal_cannot_be_stacked(kept):
    kept.set_params(graph_kernel=Polynomial("auto"))
    with pytest.raises(ValueError, match=r"Y must hold at least 2 signals to stack kernels.*Ask for one kernel"):
        kept.fit(X[:1], Y[:1])


def test_a_negative_degree_is_refused_where_it_is_written():
    with pytest.raises(ValueError, match=r"degree must be an integer of at least 0.*; got -1"):
        regressor().set_params(graph_kernel__degree=-1)


BEFORE_FITTING = {
    "predict": lambda model: model.predict(NEW),
    "sample_y": lambda model: model.sample_y(NEW),
    "score": lambda model: model.score(NEW, OBSERVED),
    "log_predictive_density": lambda model: model.log_predictive_density(NEW, OBSERVED),
    "leave_one_out": lambda model: model.leave_one_out(),
    "response": lambda model: model.response(),
}


@pytest.mark.parametrize("name", BEFORE_FITTING)
def test_nothing_is_predicted_before_fitting(name):
    with pytest.raises(NotFittedError, match="This GraphGPRegressor instance is not fitted yet"):
        BEFORE_FITTING[name](regressor())


AFTER_FITTING = {
    "features": (lambda m: m.predict(NEW[:, :1]), "X has 1 features, but GraphGPRegressor is expecting 2 features"),
    "both": (lambda m: m.predict(NEW, return_std=True, return_cov=True), "return_std and return_cov must not both"),
    "transposed": (lambda m: m.log_predictive_density(NEW, OBSERVED.T), "n_nodes = 6; got .*pass the transpose"),
    "rows": (lambda m: m.log_predictive_density(NEW, OBSERVED[:2]), "one row for each of the 4 inputs .*got shape"),
    "NaN": (lambda m: m.predict(np.full((1, 2), np.nan)), "X contains NaN"),
    "by": (lambda m: m.leave_one_out("row"), "by must be one of 'signal', 'node', 'entry'; got 'row'"),
    "n_samples": (lambda m: m.sample_y(NEW, 0), "n_samples must be an integer of at least 1; got 0"),
}


@pytest.mark.parametrize("name", AFTER_FITTING)
def test_bad_questions(either, name):
    _, fitted = either
    action, message = AFTER_FITTING[name]
    with pytest.raises(ValueError, match=message):
        action(fitted)


def test_an_interrupted_fit_leaves_the_estimator_as_it_was(kept, monkeypatch):
    def interrupt(*args, **options):
        raise KeyboardInterrupt("stop")

    monkeypatch.setattr("spectralgp.learning.Candidate.condition", interrupt)
    with pytest.raises(KeyboardInterrupt, match="stop"):
        kept.fit(X, 2 * Y)


def test_non_convergence_is_a_warning_and_a_verdict():
    with pytest.warns(ConvergenceWarning, match=r"the fit of Polynomial\(3\) did not converge: .*Raise max_iterations"):
        model = regressor(Polynomial(3), solver=Sqp(max_iterations=1)).fit(X, Y)
    assert not model.fits_[0].converged
    assert np.all(np.isfinite(model.predict(NEW)))


class CoarseSolver(Solver):
    """A solver that is not of the package: it learns plain models, roughly, as scikit-learn's estimators are cloned."""

    plain_models_only = True

    def fit(self, task, kernels, warm_starts=None):
        return [found for kernel in kernels for found in Sqp().coarse().fit(task, [kernel])]


@pytest.mark.parametrize("graph_kernel", [None, Polynomial(2), [Polynomial(1), Diffusion()]])
def test_a_solver_of_the_user_learns(graph_kernel):
    model = regressor(graph_kernel, solver=CoarseSolver()).fit(X, Y)
    assert all(fit.converged for fit in model.fits_)
    assert np.all(np.isfinite(model.predict(NEW)))
    with pytest.raises(ValueError, match=r"residual must be None or 'auto' with solver=CoarseSolver\(\.\.\.\)"):
        model.set_params(residual=Polynomial(1)).fit(X, Y)


# Life as a Python object


def test_verbose_draws_a_bar_in_a_terminal(capsys):
    regressor(verbose=1).fit(X, Y)
    assert capsys.readouterr() == ("", "")
    with redirect_stderr(Terminal()) as terminal:
        regressor(verbose=1).fit(X, Y)
    assert "Polynomial(2)" in terminal.getvalue()
    regressor().fit(X, Y)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_fit_does_not_change_its_arguments(make):
    kernel = ConstantKernel(1.0) * RBF(1.0)
    inputs, signals = X.copy(), Y.copy()
    model = make(input_kernel=kernel)
    theta = kernel.theta.copy()
    parameters = model.get_params(deep=False)
    model.fit(inputs, signals)
    np.testing.assert_array_equal(inputs, X)
    np.testing.assert_array_equal(signals, Y)
    np.testing.assert_array_equal(kernel.theta, theta)
    assert all(model.get_params(deep=False)[name] is value for name, value in parameters.items())


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_refitting_forgets_the_first_fit(make):
    model = make().fit(X, Y)
    model.fit(X[:, :1], Y)
    fresh = make().fit(X[:, :1], Y)
    np.testing.assert_array_equal(model.predict(NEW[:, :1]), fresh.predict(NEW[:, :1]))
    assert model.__dict__.keys() == fresh.__dict__.keys()
    model.fit(None, Y)
    assert model.__dict__.keys() == make().fit(None, Y).__dict__.keys()


def test_parameters_set_after_fitting_wait_for_the_next_fit(either):
    _, fitted = either
    model = clone(fitted).fit(X, Y)
    expected = model.predict(NEW)
    model.set_params(input_kernel="precomputed")
    np.testing.assert_array_equal(model.predict(NEW), expected)
    with pytest.raises(ValueError, match="X has 1 features"):
        model.predict(NEW[:, :1])
