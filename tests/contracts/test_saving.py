"""Model files: what is loaded answers as what was saved, bit for bit, and what a file cannot hold is refused."""

import dataclasses
import json
import stat
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from settings import PAPER
from sklearn.base import clone
from sklearn.gaussian_process import kernels as of_inputs
from threadpoolctl import threadpool_limits

import spectralgp
from cases import KERNELS, Columns
from oracle import relative_error
from spectralgp import Chebyshev, Exact, Graph, GraphGPClassifier, GraphGPRegressor, Sqp, Stacking
from spectralgp.files.container import FORMAT_VERSION, read_file
from spectralgp.files.inputs import InputRecipe
from spectralgp.files.migrations import _bounds_of
from spectralgp.model.fields import shrinkage
from spectralgp.model.kernels import Diffusion, Identity, Polynomial, Response, WithResidual
from strategies import graphs
from tolerances import OTHER_MACHINE
from version_files import averaged_counts, packed, predicted, unpacked

DATA = Path(__file__).resolve().parents[1] / "data"
RNG = np.random.default_rng(0)
N_NODES, N_SIGNALS = 6, 14
RING = Graph.from_edges([(node, (node + 1) % N_NODES) for node in range(N_NODES)])
NAMES = [f"node {letter}" for letter in "abcdéf"]
NAMED = Graph(RING.weights, NAMES, RNG.random((N_NODES, 2)))
X = RNG.standard_normal((N_SIGNALS, 2))
Y = 5 + np.sin(X[:, :1] + np.arange(N_NODES)) * np.linspace(1, 3, N_NODES) + 0.2 * RNG.standard_normal((14, N_NODES))
NEW = RNG.standard_normal((3, 2))
GAPPY = np.where(RNG.random(Y.shape) < 0.2, np.nan, Y)
POINTS = Graph.from_points(RNG.random((40, 2)), 4)
LARGE_Y = RNG.standard_normal((5, 40))
LARGE: dict[str, Any] = {"graph_kernel": Polynomial(1), **PAPER}


def few_moments(**options: Any) -> Chebyshev:
    return Chebyshev(n_moments=33, n_probes=8, **options)


def fit(graph: Any = RING, X: Any = X, Y: Any = Y, **parameters: Any) -> GraphGPRegressor:
    return GraphGPRegressor(graph, **parameters).fit(X, Y)


def round_trip(model: GraphGPRegressor) -> GraphGPRegressor:
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.sgp")
        return spectralgp.load(Path(folder) / "model.sgp")


def answers(model: GraphGPRegressor, X: Any, Y: Any) -> dict[str, Any]:
    """All that a model says of itself and of some signals; what it cannot say, by the error that says so."""
    known = np.array(Y, dtype=float)
    known[..., : N_NODES // 2] = np.nan
    shown = ("log_marginal_likelihood_", "noise_variance_", "kernel_weights_")
    questions = {
        "mean": lambda: model.predict(X),
        "std": lambda: model.predict(X, return_std=True, include_noise=True),
        "covariance": lambda: model.predict(X, return_cov=True),
        "one node": lambda: model.predict(X, return_std=True, nodes=[1]),
        "observed": lambda: model.predict(X, return_std=True, observed=known),
        "joint": lambda: model.posterior_.at(X).joint_covariance(),
        "draws": lambda: model.sample_y(X, 3, random_state=1, include_noise=True),
        "draws given": lambda: model.sample_y(X, 3, random_state=1, observed=known),
        "density": lambda: model.log_predictive_density(X, Y),
        "densities": lambda: model.log_predictive_density(X, Y, joint=False),
        "density of some": lambda: model.log_predictive_density(X, known),
        "density given": lambda: model.log_predictive_density(X, Y, observed=known),
        "score": lambda: model.score(X, Y),
        "imputed": lambda: model.impute(X, known),
        "left out": lambda: dataclasses.astuple(model.leave_one_out())[1:],
        "entries left out": lambda: dataclasses.astuple(model.leave_one_out("entry"))[1:],
        "summary": model.summary,
        "filter": lambda: model.response(return_std=True),
        "residual": lambda: model.response(return_std=True, which="residual"),
        "carry": lambda: model.response(return_std=True, which="carry"),
        "more signals": lambda: model.condition_on(X, Y).predict(X, return_std=True),
        "kernels": lambda: repr((model.graph_kernel_, model.residual_, model.input_kernel_, model.spectrum_)),
        "numbers": lambda: [getattr(model, name) for name in shown] + [model.learnt_.n_stand_ins],
        "units": lambda: [model.center_, model.scale_],
        "tried": lambda: repr(model.learnt_.tried),
        "fits": lambda: [
            repr((fit.model.graph_kernel, fit.certificate, fit.outcome, fit.stages, fit.errors, fit.restarts))
            + repr((fit.log_likelihood, fit.log_posterior, fit.message, fit.method))
            for fit in model.fits_
        ],
        "features": lambda: [getattr(model, name, None) for name in ("n_features_in_", "feature_names_in_")],
    }
    found = {}
    for name, ask in questions.items():
        try:
            found[name] = ask()
        except (ValueError, TypeError, RuntimeWarning) as error:
            found[name] = f"{type(error).__name__}: {error}"
    return found


def same(left: Any, right: Any) -> bool:
    """The same numbers to the last bit, and the same words."""
    if isinstance(left, list | tuple):
        return isinstance(right, list | tuple) and len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, pd.DataFrame | pd.Series):
        return left.equals(right)
    left, right = np.asarray(left), np.asarray(right)
    return bool(left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()) or (
        left.dtype.kind == "O" and left.tolist() == right.tolist()
    )


def differences(model: GraphGPRegressor, X: Any = NEW, Y: Any = Y[:3] + 0.1) -> list[str]:
    """What a model says otherwise after it was saved and loaded."""
    again = round_trip(model)
    before, after = answers(model, X, Y), answers(again, X, Y)
    assert type(model.posterior_) is type(again.posterior_)
    return [name for name in before if not same(before[name], after[name])]


# --------------------------------------------------------------------------------------- every kernel and option

OPTIONS: dict[str, Any] = {
    "default": lambda: fit(),
    "default, carry": lambda: fit(X=np.roll(Y, 1, axis=0)),
    "one kernel": lambda: fit(graph_kernel=Polynomial(2)),
    "paper": lambda: fit(graph_kernel=Polynomial(2), **PAPER),
    "paper, kernel": lambda: fit(graph_kernel=Polynomial(2), input_kernel=of_inputs.RBF(), **PAPER),
    "interval": lambda: fit(graph_kernel=Polynomial(2, constraint="interval")),
    "fixed": lambda: fit(graph_kernel=Polynomial.from_coefficients([1.0, -0.5], fixed=True)),
    "stacked": lambda: fit(graph_kernel=[Polynomial(1), Diffusion(), Identity()], residual=None),
    "stacked, draws": lambda: fit(graph_kernel=Stacking([Polynomial(1), Diffusion()], n_draws=4), residual=None),
    "draws": lambda: fit(graph_kernel=Stacking(Polynomial(2), n_draws=5), random_state=3, **PAPER),
    "degree auto": lambda: fit(graph_kernel=Stacking(Polynomial("auto"), n_draws=0), **PAPER),
    "residual": lambda: fit(graph_kernel=Diffusion(), residual=Polynomial(1, laplacian="normalized", scaled=False)),
    "with residual": lambda: fit(graph_kernel=WithResidual.of(Polynomial(1), Polynomial(1)), residual=None),
    "carry": lambda: fit(X=np.roll(Y, 1, axis=0), graph_kernel=Polynomial(1)),
    "carry, columns": lambda: fit(
        X=np.hstack([X, np.roll(Y, 1, axis=0)]), graph_kernel=Polynomial(1), carry=list(range(2, 8))
    ),
    "gappy": lambda: fit(Y=GAPPY, graph_kernel=Polynomial(2), **PAPER),
    "gappy, shrunk": lambda: fit(Y=GAPPY, graph_kernel=Polynomial(2)),
    "gappy, an empty signal": lambda: fit(Y=np.vstack([GAPPY[:-1], np.full(N_NODES, np.nan)]), graph_kernel=Identity()),
    "a node never observed": lambda: fit(Y=np.where(np.arange(6) == 2, np.nan, GAPPY), graph_kernel=Polynomial(2)),
    "in time": lambda: fit(
        X=np.arange(230.0)[:, None],
        Y=np.cumsum(Y[np.arange(230) % 14], axis=0),
        graph_kernel=Polynomial(1),
        input_kernel=of_inputs.Matern(3.0, nu=1.5),
    ),
    "no inputs": lambda: fit(X=None, graph_kernel=Polynomial(2)),
    "no graph": lambda: fit(graph=None),
    "flat": lambda: fit(graph=None, Y=Y[:, 0]),
    "edgeless": lambda: fit(graph=Graph.edgeless(N_NODES), graph_kernel=Polynomial(1)),
    "adjacency": lambda: fit(graph=RING.weights.toarray(), graph_kernel=Polynomial(1)),
    "centred by node": lambda: fit(graph_kernel=Polynomial(1), center="node", scale=None),
    "scaled by node": lambda: fit(graph_kernel=Polynomial(1), center=None, scale="node"),
    "noise given": lambda: fit(graph_kernel=Polynomial(1), noise_variance=0.3, prior=None),
    "noise between bounds": lambda: fit(graph_kernel=Polynomial(1), noise_variance=(1e-4, 3.0), prior=None),
    "restarts": lambda: fit(graph_kernel=Polynomial(2), solver=Sqp(n_restarts=3, tolerance_nats=0.1), **PAPER),
    "fortran": lambda: fit(X=np.asfortranarray(X), Y=np.asfortranarray(Y), graph_kernel=Polynomial(1)),
    "exact": lambda: fit(graph_kernel=Polynomial(1), spectrum=Exact()),
    "chebyshev": lambda: fit(POINTS, X[:5], LARGE_Y, spectrum=few_moments(), **LARGE),
    "chebyshev, default": lambda: fit(POINTS, X[:5], LARGE_Y, spectrum=few_moments()),
    "chebyshev, float32": lambda: fit(POINTS, X[:5], LARGE_Y.astype(np.float32), spectrum=few_moments(), **LARGE),
    "chebyshev, a file": lambda: fit(POINTS, X[:5], Columns(LARGE_Y), spectrum=few_moments(), **LARGE),
    "chebyshev, exact moments": lambda: fit(
        POINTS, X[:5], LARGE_Y, spectrum=Chebyshev(n_moments=33, n_probes="exact"), **LARGE
    ),
    "chebyshev, gappy": lambda: fit(
        POINTS, X[:5], np.where(LARGE_Y > 1, np.nan, LARGE_Y), spectrum=few_moments(), **LARGE
    ),
    "chebyshev, by node": lambda: fit(
        POINTS, X[:5], LARGE_Y, spectrum=few_moments(), **(LARGE | {"center": "node", "scale": "node"})
    ),
}


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:the noise is at")
def test_a_loaded_model_answers_as_the_saved_one_did(name):
    model = OPTIONS[name]()
    n_nodes, n_features = model.graph_.n_nodes, getattr(model, "n_features_in_", 0)
    rng = np.random.default_rng(2)
    new, observed = rng.standard_normal((3, n_features)), rng.standard_normal((3, n_nodes)) + 4
    assert differences(model, new, observed[:, 0] if model.predict(new).ndim == 1 else observed) == []


SAVED_KERNELS = {name: case.kernel for name, case in KERNELS.items() if not isinstance(case.kernel, Response)}
SAVED_KERNELS["RandomWalk(bounds)"] = spectralgp.RandomWalk(shift_bounds=(2.0, 50.0), amplitude_bounds=(1e-3, 1e3))


@pytest.mark.parametrize("name", SAVED_KERNELS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:the noise is at")
def test_every_graph_kernel_survives(name):
    model = fit(graph_kernel=SAVED_KERNELS[name], residual=None, scale="global")
    assert differences(model) == []
    assert round_trip(model).graph_kernel == SAVED_KERNELS[name]


ANISOTROPIC = of_inputs.RBF([1.0, 2.0], [(0.1, 10.0), (0.2, 20.0)])
INPUT_KERNELS = [
    of_inputs.RBF(0.7, (1e-2, 1e2)),
    ANISOTROPIC,
    of_inputs.Matern(1.3, nu=2.5),
    of_inputs.Matern([1.0, 2.0], nu=np.inf),
    of_inputs.RationalQuadratic(alpha=0.8, alpha_bounds="fixed"),
    of_inputs.ExpSineSquared(periodicity=3.0),
    of_inputs.DotProduct(0.0, "fixed"),
    of_inputs.RBF() + of_inputs.WhiteKernel(0.1),
    of_inputs.ConstantKernel(2.0) * of_inputs.RBF() + of_inputs.DotProduct(),
    of_inputs.RBF() ** 2,
    of_inputs.Exponentiation(of_inputs.Matern(), 0.5) * of_inputs.ConstantKernel(1.5, "fixed"),
]


@pytest.mark.parametrize("kernel", INPUT_KERNELS, ids=str)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:the noise is at")
def test_every_kernel_of_inputs_survives(kernel):
    model = fit(graph_kernel=Polynomial(1), input_kernel=kernel, **PAPER)
    assert differences(model) == []
    again = round_trip(model)
    assert again.input_kernel == kernel
    assert again.input_kernel_ == model.input_kernel_


def test_a_precomputed_kernel_survives():
    inputs = np.vstack([X, NEW])
    covariance = of_inputs.RBF(1.3)(inputs)
    model = fit(X=covariance[:14, :14], input_kernel="precomputed", graph_kernel=Polynomial(2))
    assert differences(model, (covariance[14:, :14], covariance[14:, 14:])) == []


@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(
    graph=graphs(min_nodes=2),
    degree=st.integers(0, 3),
    residual=st.sampled_from([None, "auto"]),
    kernel=st.sampled_from([None, *INPUT_KERNELS[:3], "precomputed"]),
    center=st.sampled_from([None, "auto", "global", "node"]),
    scale=st.sampled_from([None, "auto", "global", "node"]),
    hole_share=st.sampled_from([0.0, 0.0, 0.2]),
    n_draws=st.sampled_from([None, 3]),
    seed=st.integers(0, 2**16),
)
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::sklearn.exceptions.ConvergenceWarning")
def test_any_model_survives(graph, degree, residual, kernel, center, scale, hole_share, n_draws, seed):
    rng = np.random.default_rng(seed)
    inputs = rng.standard_normal((9, 2))
    signals = rng.standard_normal((9, graph.n_nodes)) * 10.0 ** rng.integers(-3, 4)
    signals[rng.random(signals.shape) < hole_share] = np.nan
    signals[:, 0] = 1.0 + rng.random(9)
    new = inputs[:2] + 0.1
    if kernel == "precomputed":
        every = of_inputs.RBF()(np.vstack([inputs, new]))
        inputs, new = every[:9, :9], (every[9:, :9], every[9:, 9:])
    options = {"residual": residual, "center": center, "scale": scale}
    laplacian = "normalized" if seed % 2 else "combinatorial"
    stacking = Stacking(Polynomial(degree, laplacian=laplacian), n_folds=2, n_draws=n_draws)
    model = GraphGPRegressor(graph, stacking, kernel, **options).fit(inputs, signals)
    assert differences(model, new, np.nan_to_num(signals[:2])) == []


@pytest.mark.parametrize("signals", [Y, GAPPY], ids=["complete", "gappy"])
def test_a_model_whose_signals_share_nothing_beside_the_graph_survives(signals, monkeypatch):
    monkeypatch.setattr(shrinkage, "LEAST_DATA_WEIGHT", 1.0)  # all of them are then left out of the covariance
    model = fit(Y=signals, graph_kernel=Polynomial(1))
    assert all(part.prior.shrinkage.is_identity for _, part in model.posterior_.parts)
    assert differences(model) == []


def test_bits_do_not_depend_on_how_many_threads_there_are():
    """What fit computes on one thread, since its matrices are small, a loaded model computes on one."""
    rng = np.random.default_rng(4)
    graph, inputs = Graph.from_points(rng.random((200, 2)), 5), rng.standard_normal((40, 1))
    signals = np.sin(inputs + graph.coordinates[:, 0]) + 0.3 * rng.standard_normal((40, 200))
    with threadpool_limits(2, user_api="blas"):
        model = GraphGPRegressor(graph, Diffusion(strength_bounds="fixed")).fit(inputs, signals)
        assert same(round_trip(model).predict(NEW[:, :1]), model.predict(NEW[:, :1]))


# ------------------------------------------------------------------------------------------------------- tables


def test_names_of_tables_and_their_order_survive():
    inputs = pd.DataFrame(X, columns=["heat", "rain"], index=pd.date_range("2024-01-01", periods=N_SIGNALS))
    signals = pd.DataFrame(Y, columns=NAMES, index=inputs.index)[NAMES[::-1]]
    model = fit(NAMED, inputs, signals, graph_kernel=Polynomial(1))
    again = round_trip(model)
    assert again.graph_.names == tuple(NAMES)
    assert np.array_equal(again.graph_.coordinates, NAMED.coordinates)
    new = inputs.iloc[:3] + 0.1
    pd.testing.assert_frame_equal(again.predict(new), model.predict(new), check_exact=True)
    assert list(again.predict(new).columns) == NAMES[::-1]
    assert same(again.predict(new, nodes=NAMES[1:3]), model.predict(new, nodes=NAMES[1:3]))
    with pytest.raises(ValueError, match="feature names"):
        again.predict(new.rename(columns={"heat": "cold"}))
    partial = signals.mask(signals > 6)
    for left, right in zip(again.impute(inputs, partial), model.impute(inputs, partial), strict=True):
        pd.testing.assert_frame_equal(left, right, check_exact=True)


@pytest.mark.parametrize("names", [[3, 1, 4, 5, 9, 2], [("a", number) for number in range(6)], [0.5, 1.5, 2, 3, 4, 5]])
def test_names_need_not_be_texts(names):
    again = round_trip(fit(Graph(RING.weights, names), graph_kernel=Polynomial(1)))
    assert again.graph_.names == tuple(names)
    assert [type(name) for name in again.graph_.names] == [type(name) for name in names]


# ----------------------------------------------------------------------------------- what became of a fitted model


def test_a_model_with_more_signals_survives():
    model = fit(graph_kernel=Polynomial(2)).condition_on(NEW, Y[:3])
    assert differences(model, NEW[:2] + 0.2, Y[:2]) == []


def test_a_model_on_another_graph_survives():
    model = fit(graph_kernel=Polynomial(2, constraint="interval")).transfer(POINTS)
    assert differences(model, NEW, LARGE_Y[:3]) == []
    again = round_trip(model).condition_on(NEW, LARGE_Y[:3])
    assert same(again.predict(NEW), model.condition_on(NEW, LARGE_Y[:3]).predict(NEW))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_loaded_model_can_be_saved_fitted_and_cloned():
    model = fit(graph_kernel=Stacking([Polynomial(1), Identity()], n_jobs=1), solver=Sqp(30), verbose=0)
    again = round_trip(round_trip(model))
    assert same(again.predict(NEW), model.predict(NEW))
    assert repr(again.get_params()) == repr(model.get_params() | {"graph": again.graph_})
    assert same(clone(again).fit(X, Y).predict(NEW), model.predict(NEW))


def test_nothing_is_decomposed_or_learnt_when_a_model_is_loaded(tmp_path, monkeypatch):
    exact, large = fit(), fit(POINTS, X[:5], LARGE_Y, spectrum=few_moments(), **LARGE)
    exact.save(tmp_path / "exact.sgp")
    large.save(tmp_path / "large.sgp")

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("computed anew")

    for work in ("model.spectra.exact.eigh", "graphs.operators.largest_eigenvalue", "learning.sqp.Sqp.fit"):
        monkeypatch.setattr(f"spectralgp.{work}", never)
    assert same(spectralgp.load(tmp_path / "exact.sgp").predict(NEW), exact.predict(NEW))
    again = spectralgp.load(tmp_path / "large.sgp")
    assert same(again.predict(NEW, return_std=True), large.predict(NEW, return_std=True))
    assert same(again.spectrum_.multiplicities, large.spectrum_.multiplicities)


def test_a_model_told_to_compute_on_a_device_computes_where_the_reader_says(tmp_path):
    model = fit(POINTS, X[:5], LARGE_Y, spectrum=few_moments(device="cpu"), **LARGE)
    model.save(tmp_path / "model.sgp")
    state, *_ = read_file(tmp_path / "model.sgp")
    assert state["shared"]["tasks"][0]["spectrum"]["device"] == "cpu"
    assert same(spectralgp.load(tmp_path / "model.sgp", device="cpu").predict(NEW), model.predict(NEW))
    with pytest.raises(ValueError, match="device must be one of"):
        spectralgp.load(tmp_path / "model.sgp", device="gpu")


# ------------------------------------------------------------------------------------------------------ the file


def test_the_file_is_plain_safetensors_that_says_who_wrote_it(tmp_path):
    fit(graph_kernel=Polynomial(1), residual=Polynomial(2)).save(tmp_path / "model.sgp")
    with safe_open(tmp_path / "model.sgp", framework="numpy") as opened:
        metadata = opened.metadata()
        assert set(opened.keys()) >= {"graph.data", "signals.0.source", "eigenpairs.combinatorial.eigenvectors"}
    assert (metadata["format"], metadata["format_version"]) == ("spectralgp model", str(FORMAT_VERSION))
    assert set(json.loads(metadata["written_by"])) == {"spectralgp", "python", "numpy", "scipy", "scikit-learn"}
    assert json.loads(metadata["model"])["candidates"][0]["kernel"]["type"] == "WithResidual"


def test_an_old_file_is_replaced_with_its_permissions_and_a_new_one_has_the_usual(tmp_path):
    model, path = fit(graph_kernel=Polynomial(1)), tmp_path / "model.sgp"
    (tmp_path / "any").touch()
    model.save(path)
    assert path.stat().st_mode == (tmp_path / "any").stat().st_mode
    path.chmod(0o640)
    model.save(str(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert {file.name for file in tmp_path.iterdir()} == {"any", "model.sgp"}


def bump(eigenvalues, centre):
    """A filter of the user's own."""
    return np.exp(-20 * (eigenvalues - centre) ** 2)


def slope(eigenvalues, centre):
    return (40 * (eigenvalues - centre) * bump(eigenvalues, centre))[:, None]


@pytest.mark.parametrize("given", [bump, Response(bump, jacobian=slope)], ids=["function", "response"])
@pytest.mark.parametrize("bounds", [None, ((-np.inf, 1.0),)], ids=["free", "bounded"])
def test_a_filter_of_ones_own_is_known_by_its_name(tmp_path, given, bounds):
    """No code is in the file: the function is the reader's own, and it is the one that was saved."""
    kernel = Response(bump, (0.4,), bounds, slope, name="bump") + Diffusion(laplacian="combinatorial", scaled=True)
    model = fit(graph_kernel=kernel, residual=None, scale="global")
    model.save(tmp_path / "model.sgp")
    again = spectralgp.load(tmp_path / "model.sgp", responses={"bump": given, "other": np.exp})
    np.testing.assert_array_equal(again.predict(NEW, return_std=True), model.predict(NEW, return_std=True))
    own = again.graph_kernel.kernels[0]
    expected = slope if isinstance(given, Response) else None
    assert (own.function, own.jacobian, own.parameters, own.parameter_bounds) == (bump, expected, (0.4,), bounds)
    with pytest.raises(ValueError, match=r"got none for bump\. Pass load\(path, responses=\{'bump': function\}\)"):
        spectralgp.load(tmp_path / "model.sgp")
    with pytest.raises(ValueError, match=r"responses\['bump'\] must be the function that the model was saved with"):
        spectralgp.load(tmp_path / "model.sgp", responses={"bump": lambda values, centre: 2 * bump(values, centre)})


def test_dates_of_inputs_are_kept(tmp_path):
    days = np.datetime64("2024-02-25") + np.arange(N_SIGNALS)[:, None]
    model = round_trip(fit(X=days, graph_kernel=Polynomial(1)))
    assert model.date_columns_ == (0,)
    with pytest.raises(TypeError, match=r"X must have dates in columns \[0\], as at fit; got no dates"):
        model.predict(np.zeros((1, 1)))


LATER_LAWS = {"one-law": (0.2, 0.03), "uncertain-effects": (0.05, 0.12)}


@pytest.mark.filterwarnings("ignore:the model was fitted by the paper's Algorithm 1")
@pytest.mark.parametrize("path", sorted(DATA.glob("*.sgp")), ids=lambda path: path.name)
def test_files_of_every_version_are_read(path):
    """Files of a version are never written again: what they predicted then, they predict now.

    Two do not hold all that predictions depend on since. A model of version 1 whose covariance is shrunk does not hold
    what was learnt of that: it is learnt from its signals when it is read, and means are within 0.2 standard deviations
    of those of then, standard deviations within 3%. A model of version 6 with fixed effects took them as known, and
    does not hold their prior: it follows from the values, and effects are uncertain; means are within 0.05 standard
    deviations, standard deviations within 12%. What they predict since is beside them too.
    """
    expected = np.load(path.with_suffix(".npz"))
    for law, (of_means, of_deviations) in LATER_LAWS.items():
        now = path.with_name(f"{path.stem}-{law}.npz")
        if now.exists():
            then, expected = expected, np.load(now)
            assert np.all(np.abs(expected["mean"] - then["mean"]) < of_means * then["std"])
            assert np.all(np.abs(expected["std"] / then["std"] - 1) < of_deviations)
    model = spectralgp.load(path, responses={"bump": bump})
    if isinstance(model, GraphGPClassifier):
        assert relative_error(model.predict_proba(), expected["probabilities"]) < OTHER_MACHINE
        assert model.classes_.tolist() == expected["classes"].tolist()
        return
    mean, std = predicted(model, expected)
    assert relative_error(np.asarray(mean), expected["mean"]) < OTHER_MACHINE
    assert relative_error(np.asarray(std), expected["std"]) < OTHER_MACHINE


def test_a_solver_that_is_no_longer_here_is_replaced_with_a_warning(tmp_path):
    """It is needed by a later fit only; what the model learnt by it is kept."""
    with pytest.warns(
        UserWarning, match=r"fit\(\) learns by solver='sqp'.*from reproduction import Lagrangian"
    ) as told:
        model = spectralgp.load(DATA / "version8-algorithm-1.sgp")
    assert told[0].filename == __file__
    assert model.solver == "sqp"
    assert "the filter falls to" in model.fits_[0].message
    model.save(tmp_path / "again.sgp")
    assert spectralgp.load(tmp_path / "again.sgp").solver == "sqp"


def test_counts_of_version_6_differ_by_the_uncertainty_of_their_effects():
    """Given the effects they are what they were, but for the pull of the effects' prior: within 1%."""
    model, then = spectralgp.load(DATA / "version6-counts.sgp"), np.load(DATA / "version6-counts.npz")
    sites = dataclasses.replace(model.posterior_.sites, coefficient_covariance=1e-12 * np.eye(2))
    model.posterior_ = dataclasses.replace(model.posterior_, entries=sites)
    mean, std = predicted(model, then)
    assert relative_error(mean, then["mean"]) < 0.01
    assert relative_error(std, then["std"]) < 0.01


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("tasks.0.observed_by.effects.precision", np.negative, "precision must be symmetric and not negative"),
        ("tasks.0.observed_by.effects.precision", lambda one: np.triu(one), "precision must be symmetric"),
        ("tasks.0.observed_by.effects.mean", lambda one: one[:1], "n_effects"),
        ("learnt.draws.0.weights", lambda one: 2 * one, "weights must be shares of 16 models"),
        ("learnt.draws.0.weights", lambda one: one[1:] / one[1:].sum(), "weights must be shares of 16 models"),
    ],
)
def test_priors_of_effects_and_weights_of_draws_that_are_none_are_refused(tmp_path, name, damage, message):
    metadata, state, arrays = unpacked((DATA / "version7-averaged-counts.sgp").read_bytes())
    (tmp_path / "damaged.sgp").write_bytes(packed(metadata, state, arrays | {name: damage(arrays[name])}))
    with pytest.raises(ValueError, match=message):
        spectralgp.load(tmp_path / "damaged.sgp")


def test_counts_averaged_over_hyperparameters_survive():
    """Weights of draws and the prior of effects too, and what further counts make of them."""
    model, asked = averaged_counts()
    again, (drawn,) = round_trip(model), model.learnt_.draws
    assert drawn.weights is not None
    assert np.ptp(drawn.weights) > 0
    counts = np.array([[1.0, 2, 0, np.nan, 4, 1, 3, 2], [0, 2, 2, 5, 1, np.nan, 1, 0]])
    given = {"covariates": {name: asked[name] for name in ("slope", "width")}, "exposure": np.full((2, 8), 2.0)}
    more = {"covariates": {"slope": np.zeros((3, 8)), "width": np.ones((3, 8))}}
    for ask in (
        lambda one: one.predict(asked["inputs"], return_std=True, return_quantiles=(0.05, 0.95), **given),
        lambda one: one.predict(
            asked["inputs"], return_std=True, observed=counts, observed_exposure=given["exposure"], **given
        ),
        lambda one: one.log_predictive_density(asked["inputs"], counts, **given),
        lambda one: one.sample_y(asked["inputs"], 3, random_state=1, **given),
        lambda one: dataclasses.astuple(one.leave_one_out("entry"))[1:4],
        lambda one: [one.coefficients_.values, one.coefficients_.errors, one.learnt_.draws[0].weights],
        lambda one: one.condition_on(asked["inputs"], counts, **given).learnt_.draws[0].weights,
        lambda one: one.condition_on(asked["inputs"], counts, **given).predict(NEW[:, :1], return_std=True, **more),
        lambda one: round_trip(one.condition_on(asked["inputs"], counts, **given)).predict(NEW[:, :1], **more),
    ):
        assert same(ask(again), ask(model))


@pytest.mark.parametrize("solver", ["sqp", "lagrangian"])
def test_parameters_that_earlier_versions_had_are_turned_into_those_of_today(tmp_path, solver):
    old = DATA / "version1-chebyshev.sgp"
    metadata, state, arrays = unpacked(old.read_bytes())
    state["estimator"]["parameters"] |= {
        "noise_floor": 0.02, "device": "cpu", "solver": solver, "max_iterations": 50, "n_folds": 3, "n_draws": 4,
        "n_jobs": 2,
    }  # fmt: skip
    for task in state["shared"]["tasks"]:
        task |= {"noise_floor": 0.02, "device": "cpu"}
    (tmp_path / "old.sgp").write_bytes(packed(metadata, state, arrays))
    assert metadata["format_version"] == "1"

    unchanged = spectralgp.load(old)
    with pytest.warns(UserWarning, match="Algorithm 1") if solver == "lagrangian" else nullcontext():
        model = spectralgp.load(tmp_path / "old.sgp")
    assert model.solver == Sqp(50)
    assert model.graph_kernel == Stacking(Polynomial(2), n_folds=3, n_draws=4, n_jobs=2)
    assert model.spectrum == dataclasses.replace(unchanged.spectrum, device="cpu")
    task = model.learnt_.candidates[0].task
    assert task.spectrum == model.spectrum
    np.testing.assert_allclose(task.noise_variance, (0.02 * task.variance, 10 * task.variance))
    spread = task.signals.units.spread
    np.testing.assert_allclose(model.noise_variance, np.multiply(task.noise_variance, spread**2))
    np.testing.assert_array_equal(model.predict(task.inputs), unchanged.predict(task.inputs))
    assert (unchanged.noise_variance, unchanged.solver) == (None, "sqp")
    assert unchanged.graph_kernel == Stacking(Polynomial(2))


def test_how_models_are_stacked_is_kept():
    """Files have it beside the kernels, as parameters had it up to version 6."""
    old = spectralgp.load(DATA / "version3-bounds.sgp").graph_kernel
    assert old == Stacking([Polynomial(1), Diffusion(laplacian="normalized")], n_folds=2, n_draws=2)
    given = Stacking(n_folds=2, n_draws=0, effort="fast"), [Polynomial(1), Identity()], Stacking([Polynomial(1)])
    for kernels in given:
        assert round_trip(fit(graph_kernel=kernels)).graph_kernel == kernels
    fast = spectralgp.load(DATA / "version9-time-order.sgp")
    assert fast.graph_kernel.effort == "fast"
    assert "Fewer models were compared, by effort='fast'." in fast.summary()


@pytest.mark.parametrize(("floor", "share"), [(0.02, 0.02), (4.9, 4.9), (5.0, 5.0), (20.0, 5.0)])
def test_a_lower_bound_of_earlier_versions_stays_below_the_upper_one(floor, share):
    """They had it as a share of the variance, of which the upper one is ten times as much."""
    np.testing.assert_allclose(_bounds_of(floor, 3.0), (3 * share, 30.0))


def test_how_inputs_were_made_is_kept(tmp_path):
    """In copies too; a fit in Python forgets it, and files of version 1 do not know it."""
    model = spectralgp.load(DATA / "version2-recipe.sgp")
    assert model.input_recipe_ == InputRecipe("numbers", None, ("rain",))
    model.save(tmp_path / "again.sgp")
    assert spectralgp.load(tmp_path / "again.sgp").input_recipe_ == model.input_recipe_
    assert spectralgp.load(DATA / "version1-default.sgp").input_recipe_ is None
    assert fit(graph_kernel=Polynomial(1)).input_recipe_ is None


def test_labels_of_rows_are_kept():
    """Files of earlier versions do not know them."""
    labels = spectralgp.load(DATA / "version6-labels.sgp")._form.kept_labels
    assert labels == tuple(f"2018-04-{day:02d}" for day in range(1, 15) if day != 6)
    assert spectralgp.load(DATA / "version2-recipe.sgp")._form.labels is None


def test_there_is_a_file_of_every_version():
    found = {path.name.split("-")[0] for path in DATA.glob("*.sgp")}
    assert found == {f"version{number}" for number in range(1, FORMAT_VERSION + 1)}


# ------------------------------------------------------------------------------------------- what cannot be saved


class OwnKernel(Diffusion):
    """A kernel of a user's own, whose code no file can hold."""


class OwnInputKernel(of_inputs.RBF):
    """The same of inputs."""


class OwnSolver(Sqp):
    """A solver of a user's own."""


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"graph_kernel": Response(lambda eigenvalues: 1 - eigenvalues / 2)},
            r"graph_kernel must be a graph kernel of this package, or a Response with a name, to be saved.*name=",
        ),
        (
            {"graph_kernel": Stacking([Identity(), OwnKernel()], n_folds=2)},
            r"graph_kernel\.1 must be a graph kernel of this package",
        ),
        ({"residual": Response(np.ones_like)}, "residual must be a graph kernel of this"),
        (
            {"input_kernel": of_inputs.RBF() + OwnInputKernel()},
            r"input_kernel\.k2 must be a kernel of scikit-learn that files can hold.*precomputed",
        ),
        ({"input_kernel": of_inputs.PairwiseKernel()}, "input_kernel must be a kernel of scikit-learn"),
        ({"solver": OwnSolver()}, "solver must be .* to be saved; got .*set_params"),
        (
            {"random_state": np.random.default_rng(0)},
            r"random_state must be a number, .* to be saved; got Generator.*set_params",
        ),
    ],
    ids=["response", "own kernel", "residual", "own input kernel", "pairwise", "own solver", "generator"],
)
def test_what_a_file_cannot_hold_is_named_with_a_remedy(tmp_path, parameters, message):
    model = fit(**{"graph_kernel": Identity(), "scale": "global"} | parameters)
    with pytest.raises(TypeError, match=f"(?s)^{message}"):
        model.save(tmp_path / "model.sgp")
    assert list(tmp_path.iterdir()) == []


def test_names_that_are_no_texts_or_numbers_are_named(tmp_path):
    model = fit(Graph(RING.weights, pd.date_range("2024", periods=6)), graph_kernel=Identity())
    message = r"names\.0 must be texts, numbers or tuples of them to be saved; got Timestamp"
    with pytest.raises(TypeError, match=message):
        model.save(tmp_path / "model.sgp")


def test_names_that_take_more_than_a_header_holds_are_refused(tmp_path):
    model = fit(Graph(RING.weights, [17_000_000 * name[-1] for name in "abcdef"]), graph_kernel=Identity())
    with pytest.raises(ValueError, match="names and settings must take less than 100,000,000 bytes"):
        model.save(tmp_path / "model.sgp")


def test_a_folder_is_no_file_to_save_to_or_load_from(tmp_path):
    with pytest.raises(ValueError, match="path must name a file"):
        fit(graph_kernel=Identity()).save(tmp_path)
    with pytest.raises(FileNotFoundError, match="path must name a model file"):
        spectralgp.load(tmp_path)


def test_the_library_is_asked_for_by_name_where_it_is_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(ImportError, match=r"safetensors must be installed .*spectralgp\[files\]"):
        spectralgp.load(tmp_path / "model.sgp")
