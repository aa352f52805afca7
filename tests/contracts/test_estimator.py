"""scikit-learn's conventions: its own checks, clone, pipelines, searches; and one decomposition for all of them."""

import warnings
from unittest import SkipTest

import numpy as np
import pytest
from settings import PAPER
from sklearn.base import clone, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import oracle
from cases import run_python
from spectralgp import GraphGPRegressor, Stacking
from spectralgp.graphs import Graph
from spectralgp.model.kernels import Diffusion, Identity, Polynomial

WEIGHTS = oracle.random_weights(6, seed=4)
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (15, 2))
Y = oracle.draw(
    oracle.rbf(X, X, 1.5), oracle.polynomial(oracle.laplacian(WEIGHTS, scaled=True), [1, -1.4, 0.6]), 0.02, RNG
)

# checks that scikit-learn itself skips here, with its reason
SKIPPED_BY_SCIKIT_LEARN = {
    "check_array_api_input": "SCIPY_ARRAY_API is not set: run with it in a process of its own below"
}
CHECKS = [
    (estimator, check)
    for estimator, check in estimator_checks_generator(GraphGPRegressor())
    if getattr(check, "func", check).__name__ not in SKIPPED_BY_SCIKIT_LEARN
]


def paper(graph_kernel=None, graph=None, kernel=None, **options):
    """The paper's model, on a graph of its own unless one is given."""
    graph = Graph(WEIGHTS) if graph is None else graph
    return GraphGPRegressor(graph, graph_kernel, RBF(1.0) if kernel is None else kernel, **PAPER | options)


def default(graph_kernel=None, graph=None, kernel=None, **options):
    """All settings as they come but for the graph kernel."""
    return GraphGPRegressor(Graph(WEIGHTS) if graph is None else graph, graph_kernel, kernel, **options)


both = pytest.mark.parametrize("make", [paper, default])


def name_of(check) -> str:
    return getattr(check, "func", check).__name__


@pytest.mark.parametrize(("estimator", "check"), CHECKS, ids=lambda value: name_of(value) if callable(value) else "")
def test_scikit_learns_checks(estimator, check):
    """Every check of ``check_estimator`` with ``graph=None``; a check that skips itself fails here."""
    with warnings.catch_warnings():
        # some checks warn on purpose, and as in check_estimator that is not at stake
        warnings.simplefilter("default")
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            check(estimator)
        except SkipTest as skipped:
            pytest.fail(f"{name_of(check)} was skipped: {skipped}")


@pytest.mark.slow
def test_the_array_api_check_passes_in_a_process_that_allows_it():
    """scikit-learn skips this check unless SCIPY_ARRAY_API is set before SciPy is imported."""
    code = (
        "import warnings; warnings.simplefilter('ignore')\n"
        "from sklearn.gaussian_process.kernels import RBF\n"
        "from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator\n"
        "from spectralgp import GraphGPRegressor\n"
        "for model, check in estimator_checks_generator(GraphGPRegressor()):\n"
        "    if getattr(check, 'func', check).__name__ == 'check_array_api_input': check(model)\n"
        f"results = check_estimator(GraphGPRegressor(input_kernel=RBF(), **{PAPER}), on_fail=None, on_skip=None)\n"
        "for r in results:\n"
        "    if r['status'] != 'passed': print(r['check_name'], r['status'], repr(r['exception']))\n"
        "print('ran', *[r['check_name'] for r in results if 'array_api' in r['check_name']])\n"
    )
    assert run_python(code, SCIPY_ARRAY_API="1") == "ran check_array_api_input\n"


def test_the_graph_is_decomposed_once_however_many_folds_and_kernels():
    """Every fit has the same eigenvectors, which the graph remembers, for each of two Laplacians."""
    graph = Graph(WEIGHTS)
    stacked = Stacking([Polynomial(0), Polynomial(1)], n_draws=0)
    kernels = [Polynomial(1), Polynomial(2), Identity(), Polynomial(1, scaled=False), stacked]
    search = GridSearchCV(paper(graph=graph), {"graph_kernel": kernels}, cv=3).fit(X, Y)
    models = [search.best_estimator_, clone(search.best_estimator_).fit(X, Y)]
    for kernel in kernels:
        models += cross_validate(paper(kernel, graph), X, Y, cv=3, return_estimator=True)["estimator"]
    both_laplacians = Stacking([Diffusion(), Polynomial(1, laplacian="normalized")], n_folds=2, n_draws=0)
    others = cross_validate(paper(both_laplacians, graph), X, Y, cv=3, return_estimator=True)["estimator"]
    for fitted in (models, others):
        assert len({id(fit.model.spectrum.eigenvectors) for one in fitted for fit in one.fits_}) == 1


def test_nested_parameters_are_seen_and_set():
    model = GraphGPRegressor(Graph(WEIGHTS), Polynomial(2), ConstantKernel(2.0) * RBF(1.0))
    parameters = model.get_params()
    assert parameters["graph_kernel__degree"] == 2
    assert parameters["graph_kernel__constraint"] == "eigenvalues"
    assert parameters["input_kernel__k2__length_scale"] == 1.0
    first = model.graph_kernel
    model.set_params(graph_kernel__degree=5, graph_kernel__laplacian="normalized", input_kernel__k2__length_scale=3.0)
    assert model.graph_kernel == Polynomial(5, laplacian="normalized")
    assert first == Polynomial(2)  # kernels are frozen
    assert model.input_kernel.k2.length_scale == 3.0
    model.set_params(graph_kernel=Diffusion(), graph_kernel__strength=7.0)
    assert model.graph_kernel == Diffusion(7.0)
    model.set_params(prior=None)
    assert model.prior is None


def test_how_models_are_stacked_is_seen_and_set():
    model = GraphGPRegressor(Graph(WEIGHTS), Stacking([Diffusion(), Polynomial(2)], n_folds=10))
    assert model.get_params()["graph_kernel__n_folds"] == 10
    first = model.graph_kernel
    model.set_params(graph_kernel__n_folds=3, graph_kernel__n_draws=0)
    assert model.graph_kernel == Stacking((Diffusion(), Polynomial(2)), n_folds=3, n_draws=0)
    with pytest.raises(ValueError, match="effort must be one of 'full', 'fast'; got 'low'"):
        Stacking(effort="low")
    assert first.n_folds == 10  # frozen, as kernels are
    assert clone(model).graph_kernel is model.graph_kernel
    with pytest.raises(ValueError, match="Invalid parameter 'degree' for Stacking"):
        model.set_params(graph_kernel__degree=3)
    search = GridSearchCV(paper(Stacking([Polynomial(0), Identity()], n_draws=0)), {"graph_kernel__n_folds": [2, 3]})
    assert search.fit(X, Y).best_estimator_.graph_kernel.n_folds in (2, 3)


@both
@pytest.mark.parametrize(
    ("given", "stacking"),
    [
        (Polynomial(1), Stacking(Polynomial(1))),
        (Polynomial(1), Stacking([Polynomial(1)])),
        ([Polynomial(1), Diffusion()], Stacking([Polynomial(1), Diffusion()])),
        (None, Stacking()),
    ],
    ids=["one", "list of one", "list", "default"],
)
def test_kernels_that_are_given_are_a_stacking_of_them(make, given, stacking):
    expected, found = make(given).fit(X, Y), make(stacking).fit(X, Y)
    np.testing.assert_array_equal(found.kernel_weights_, expected.kernel_weights_)
    np.testing.assert_array_equal(found.predict(X, return_std=True), expected.predict(X, return_std=True))


def test_a_stacking_holds_graph_kernels():
    assert Stacking([Diffusion()]) == Stacking(Diffusion()) == Stacking(kernels=(Diffusion(),))
    for wrong in (5, [], "diffusion", [Diffusion(), RBF()]):
        with pytest.raises(TypeError, match=r"graph_kernel must .* a list of them, or a Stacking of them; got"):
            Stacking(wrong)


@pytest.mark.parametrize(
    ("kernel", "parameter", "message"),
    [
        (None, "degree", "Invalid parameter 'degree' for estimator GraphGPRegressor"),
        (None, "graph_kernel__degree", "graph_kernel must be one kernel to set graph_kernel__degree; got None"),
        (Polynomial(2), "graph_kernel__degrees", "Invalid parameter 'degrees'"),
    ],
)
def test_unknown_parameters_are_refused(kernel, parameter, message):
    with pytest.raises(ValueError, match=message):
        GraphGPRegressor(graph_kernel=kernel).set_params(**{parameter: 3})


def test_it_is_a_regressor_of_several_outputs():
    tags = GraphGPRegressor().__sklearn_tags__()
    assert is_regressor(GraphGPRegressor())
    assert tags.target_tags.multi_output
    assert not tags.input_tags.pairwise
    assert GraphGPRegressor(input_kernel="precomputed").__sklearn_tags__().input_tags.pairwise


@both
def test_pipeline_is_scaling_by_hand(make):
    pipeline = make_pipeline(StandardScaler(), make(Polynomial(2)))
    scaled = StandardScaler().fit_transform(X)
    expected = make(Polynomial(2)).fit(scaled, Y)
    pipeline.fit(X, Y)
    np.testing.assert_allclose(pipeline.predict(X), expected.predict(scaled))
    assert pipeline.score(X, Y) == pytest.approx(expected.score(scaled, Y))
    pipeline.set_params(graphgpregressor__graph_kernel__degree=0)
    assert pipeline[-1].graph_kernel.degree == 0


@both
def test_grid_search_over_degrees_is_cross_validation_by_hand(make):
    graph = Graph(WEIGHTS)
    folds = KFold(3)
    pipeline = make_pipeline(StandardScaler(), make(Polynomial(1), graph))
    degrees = [0, 1, 2]
    search = GridSearchCV(pipeline, {"graphgpregressor__graph_kernel__degree": degrees}, cv=folds).fit(X, Y)
    expected = []
    for degree in degrees:
        scores = []
        for train, test in folds.split(X):
            scaler = StandardScaler().fit(X[train])
            model = make(Polynomial(degree), graph).fit(scaler.transform(X[train]), Y[train])
            scores.append(model.score(scaler.transform(X[test]), Y[test]))
        expected.append(np.mean(scores))
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected)
    assert search.best_params_["graphgpregressor__graph_kernel__degree"] == degrees[int(np.argmax(expected))]


@both
def test_cross_validation_of_precomputed_covariances_is_that_of_the_kernel(make):
    """Pairwise inputs are cut on both axes."""
    graph, folds = Graph(WEIGHTS), KFold(3)
    plain = cross_val_score(make(Polynomial(1), graph, RBF(1.5, "fixed")), X, Y, cv=folds)
    matrix = cross_val_score(make(Polynomial(1), graph, "precomputed"), oracle.rbf(X, X, 1.5), Y, cv=folds)
    np.testing.assert_allclose(matrix, plain)


@both
def test_cross_validation_by_the_predictive_density(make):
    scores = cross_val_score(
        make(Polynomial(1)),
        X,
        Y,
        cv=KFold(3),
        scoring=lambda model, inputs, signals: model.log_predictive_density(inputs, signals),
    )
    model = make(Polynomial(1)).fit(X[5:], Y[5:])
    assert scores[0] == pytest.approx(model.log_predictive_density(X[:5], Y[:5]))
