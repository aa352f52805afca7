"""Model files that were damaged, made up or cut short: a clear error or a model, and never anything else."""

import copy
import json
import math
import os
import re
import resource
import textwrap
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save
from sklearn.gaussian_process import kernels as sklearn_kernels
from typing_extensions import TypeAliasType

import spectralgp
from cases import run_python
from spectralgp import Chebyshev, Graph, GraphGPClassifier, GraphGPForecaster, GraphGPRegressor, Sqp, Stacking
from spectralgp._basics.saved import Range, axes, ge, gt
from spectralgp.estimators.loading import RESTORED
from spectralgp.files.container import FORMAT_VERSION
from spectralgp.files.inputs import InputRecipe
from spectralgp.files.models import ModelReader, decoded
from spectralgp.files.nouns import check_classes, require_memory, series_of
from spectralgp.files.schema import MAKERS, RECORDS, check, kind_of
from spectralgp.learning import Candidate, Draws, Task
from spectralgp.learning.fitting import ComparedModel
from spectralgp.model import kernels
from spectralgp.model.fields import GraphGP, ProcessKernel, Shrinkage
from spectralgp.model.kernels import Diffusion, Identity, Polynomial
from spectralgp.model.kernels.polynomial import HIGHEST_DEGREE
from spectralgp.model.spectra import Exact
from spectralgp.series import MaternComponent, ModalProcess, OscillatorComponent
from spectralgp.series.clocks import CalendarClock
from spectralgp.series.mean import SeriesMean
from version_files import packed, unpacked

DATA = Path(__file__).resolve().parents[1] / "data"
pytestmark = pytest.mark.usefixtures("learnt_values")  # compared with dense formulas

RNG = np.random.default_rng(0)
RING = Graph.from_edges([(node, (node + 1) % 4) for node in range(4)])
X, Y = RNG.standard_normal((5, 1)), RNG.standard_normal((5, 4))
WALK = np.cumsum(RNG.standard_normal((20, 4)), axis=0)
WAVE = np.sin(np.arange(60.0))[:, None]
SERIES = RNG.standard_normal((60, 4))
SERIES[:, 2] += 2 * SERIES[:, 0]  # which are no neighbours
for _step in range(1, 60):
    SERIES[_step] += 0.95 * np.roll(SERIES[_step - 1], 1)  # what goes round, which is drift
SPIKES = 0.3 * RNG.standard_normal((12, 4))
LONGEST, MOST_MEMORY = 5.0, 300e6  # seconds and bytes that loading any file may take

MODELS = {
    "plain": lambda: GraphGPRegressor(RING, Polynomial(1), residual=None).fit(X, Y),
    "shrunk": lambda: GraphGPRegressor(RING, Polynomial(1)).fit(X, Y),
    "incomplete": lambda: GraphGPRegressor(RING, Polynomial(1), residual=None).fit(X, np.where(Y > 0.7, np.nan, Y)),
    "stacked": lambda: GraphGPRegressor(
        RING, Stacking([Identity(), Diffusion()], n_folds=2, n_draws=1), residual=None
    ).fit(X, Y),
    "carry": lambda: GraphGPRegressor(RING, Polynomial(1)).fit(np.roll(Y, 1, axis=0), Y),
    "logarithms": lambda: GraphGPRegressor(RING).fit(np.exp(2 * WALK[:12, :2]), np.exp(2 * WALK[:12] + SPIKES)),
    "in time": lambda: GraphGPRegressor(RING).fit(WALK[:-1], WALK[1:]),
    "forecaster": lambda: GraphGPForecaster(RING, components=[MaternComponent(0.5)], seasons=4, residual=None).fit(
        SERIES, WAVE
    ),
    "classifier": lambda: GraphGPClassifier(RING).fit(X[:2], [["a", "b", None, "a"], [None, "b", "a", None]]),
    "counts": lambda: GraphGPRegressor(RING, Polynomial(1), likelihood="negative_binomial").fit(
        X, np.round(np.exp(Y)), exposure=2.0, covariates={"x": np.arange(4.0)}
    ),
    "chebyshev": lambda: GraphGPRegressor(
        RING, Polynomial(1), residual=None, spectrum=Chebyshev(n_moments=9, n_probes=4)
    ).fit(X, Y),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, bytes]:
    """A small model file of each kind."""
    found, path = {}, tmp_path_factory.mktemp("models") / "model.sgp"
    for name, make in MODELS.items():
        model = make()
        model.input_recipe_ = InputRecipe("dates", 1) if name == "plain" else None
        model.save(path)
        found[name] = path.read_bytes()
    return found


def load(content: bytes, folder: Path) -> GraphGPRegressor | None:
    """The model of a file, or None where the file is refused as it should be."""
    path = folder / "mutated.sgp"
    path.write_bytes(content)
    try:
        return spectralgp.load(path)
    except (ValueError, OSError) as error:
        if str(path) in str(error) and " must " in str(error):
            return None
        raise


def refused(content: bytes, folder: Path, words: str) -> None:
    """A file is refused with some words."""
    path = folder / "refused.sgp"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=words):
        spectralgp.load(path)


# ----------------------------------------------------------------------------------------------- made up on purpose


@pytest.mark.parametrize(("stored", "value"), [("level", 1e300), ("beside", 1e-300), ("source", 0.5)])
def test_values_that_a_likelihood_cannot_observe_are_refused(files, stored, value, tmp_path):
    """Counts of -1e300 took 55 s to condition on."""
    metadata, state, arrays = unpacked(files["counts"])
    (name,) = (one for one in arrays if one.endswith(stored))
    arrays[name] = np.full_like(arrays[name], value)
    words = r"(Y must hold counts|exposure must be finite).*got others - at tasks\.0"
    refused(packed(metadata, state, arrays), tmp_path, words)


VALUES: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2, 3, 10**6, 10**18, 10**400, -0.5, 0.0, 1e-320, 1e308, "NaN", "Infinity", "", "x",
    "graph.data", "signals.0.source", "Polynomial", "Response", "os.system", "__import__('os').system('false')",
    [], {}, [0], [[]], {"type": "Polynomial"}, {"array": "graph.data", "order": "F"}, {"type": "Sum", "kernels": []},
)  # fmt: skip
NUMBERS = (np.nan, np.inf, -np.inf, 0.0, -1.0, 1e308, 1e-308, 1e150)


def leaves(state: Any, where: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every value in a tree of JSON with its place; a reference to an array is a value, and so is an empty list."""
    items = list(state.items() if isinstance(state, dict) else enumerate(state) if isinstance(state, list) else ())
    if not items or "array" in state:
        yield where, state
        return
    for key, value in items:
        yield from leaves(value, (*where, key))


def holder_of(state: Any, where: tuple[Any, ...]) -> Any:
    """What holds the value at a place."""
    for key in where[:-1]:
        state = state[key]
    return state


def every_field(whole: dict[str, Any]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Each field of each noun once: a file that has it, and the place there."""
    seen = set()
    for name, (_, state, _) in whole.items():
        for where, _ in leaves(state):
            place = tuple(key for key in where if not isinstance(key, int))
            if place not in seen:
                seen.add(place)
                yield name, where


def mutations(files: dict[str, bytes], whole: dict[str, Any]) -> Iterator[bytes]:
    """Files with other words or numbers in each field, in turn, and some that were damaged by chance."""
    rng = np.random.default_rng(0)
    for name, where in every_field(whole):
        metadata, state, arrays = whole[name]
        for value in (*rng.choice(np.array(VALUES, dtype=object), 2), None):
            other = copy.deepcopy(state)
            holder, key = holder_of(other, where), where[-1]
            if value is None:
                del holder[key]
            else:
                holder[key] = value
            yield packed(metadata, other, arrays)
        stored = holder_of(state, where)[where[-1]]
        if isinstance(stored, dict) and stored:
            array = arrays[stored["array"]]
            number = array.astype(float)
            number.flat[: int(rng.integers(2))] = NUMBERS[int(rng.integers(len(NUMBERS)))]
            other = arrays[sorted(arrays)[int(rng.integers(len(arrays)))]]
            for one in (number.astype(array.dtype), array.reshape(-1), array.astype(np.float16), other):
                yield packed(metadata, state, arrays | {stored["array"]: one})
    for number in range(40):
        content = list(files.values())[number % len(files)]
        place, length = int(rng.integers(len(content))), int(rng.choice([1, 8, 1024]))
        yield from (content[:place], content[:place] + rng.bytes(length) + content[place:])
        yield content[:place] + rng.bytes(length) + content[place + length :]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast", "ignore:overflow encountered in cast")
def test_mutated_files_end_in_clear_errors_or_in_models(files, tmp_path):
    whole = {name: unpacked(content) for name, content in files.items()}
    for content in files.values():
        assert load(content, tmp_path) is not None
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    n_mutations, n_refused, longest = 0, 0, 0.0
    for mutated in mutations(files, whole):
        started = time.perf_counter()
        n_refused += load(mutated, tmp_path) is None
        n_mutations, longest = n_mutations + 1, max(longest, time.perf_counter() - started)
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    assert longest < LONGEST
    assert grown < MOST_MEMORY
    assert n_mutations > 450
    assert n_refused > 0.7 * n_mutations


def test_a_file_with_any_byte_changed_is_refused(files, tmp_path):
    """Every third byte of the arrays, and many of the header, whose blanks may be others."""
    content = files["plain"]
    header = 8 + int.from_bytes(content[:8], "little")
    for place in [*range(header, len(content), 3), *range(0, header, 13)]:
        data = bytearray(content)
        data[place] ^= 0x41
        assert load(bytes(data), tmp_path) is None, place


# ----------------------------------------------------------------------------------------- clear words for each case


def test_each_way_to_be_wrong_has_its_words(files, tmp_path):
    content = files["plain"]
    metadata, state, arrays = unpacked(content)
    large, archive = (2**62).to_bytes(8, "little") + content[8:], b"PK\x03\x04 or a pickle, or anything else"
    for data in (content[:-1], content[:20], b"", content + b"more", archive, large):
        refused(data, tmp_path, "must.*cut off")
    for data in (save(arrays, {"format": "pt"}), save(arrays)):
        refused(data, tmp_path, "must.*of another kind")
    refused(content[:-1] + bytes([content[-1] ^ 1]), tmp_path, "must.*checksum")
    newer = f"must.*got version {FORMAT_VERSION + 1}, written by.*Upgrade"
    refused(packed(metadata | {"format_version": str(FORMAT_VERSION + 1)}, state, arrays), tmp_path, newer)
    for version in ("0", "-1", "one", "", "1.0", "²", "9" * 400):
        refused(packed(metadata | {"format_version": version}, state, arrays), tmp_path, "must.*version")
    for text in ("{", "[" * 100_000):
        refused(packed(metadata, text, arrays), tmp_path, "must.*JSON")
    many = json.dumps([1] * 2_000_000)  # refused by its length alone, before any of it is made
    refused(packed(metadata, many, arrays), tmp_path, "must.*more parts than its arrays")
    not_real = arrays | {"graph.data": np.zeros(0, np.complex64)}
    refused(packed(metadata, state, not_real), tmp_path, "must.*arrays of real numbers")


def test_json_that_arrays_account_for_takes_little_more_memory_than_the_file(files, tmp_path):
    """A file may buy commas by bytes of arrays: each may cost a few bytes to refuse, and not hundreds."""
    metadata, _, arrays = unpacked(files["plain"])
    path, n_parts = tmp_path / "model.sgp", 400_000
    path.write_bytes(packed(metadata, json.dumps([1] * n_parts), arrays | {"more": np.zeros(n_parts // 8)}))
    tracemalloc.start()
    with pytest.raises(ValueError, match="must hold a model"):
        spectralgp.load(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 * path.stat().st_size


@pytest.mark.parametrize(
    ("where", "value", "words"),
    [
        (("candidates", 0, "kernel", "type"), "Response", r"Object .* at `\$.candidates\[0\].kernel`"),
        (("candidates", 0, "kernel", "type"), "os.system", r"Invalid value .* at `\$.candidates\[0\].kernel.type`"),
        (("shared", "models", 0, "input_kernel", "type"), "PairwiseKernel", r"Invalid value .*input_kernel.type"),
        (("estimator", "parameters", "solver"), {"type": "Solver"}, r"Invalid value 'Solver' .*solver.type"),
        (("shared", "models", 0, "noise_variance"), "NaN", "Expected `float`, got `str`.*noise_variance"),
        (("shared", "models", 0, "noise_variance"), -1.0, "Expected `float` >= 0.0.*noise_variance"),
        (("estimator", "parameters", "random_state"), True, "Expected `int | null`, got `bool`.*random_state"),
        (("estimator", "fitted", "names"), ["a", "a", "b", "c"], "distinct names"),
        (("shared", "tasks", 0, "inputs"), {"array": "graph.data", "order": "C"}, "2 axes"),
        (("learnt", "weights"), {"array": "estimator.fitted.scale", "order": "C"}, "add up to one"),
        (("candidates", 0, "task"), 7, "task must be a whole number from 0 to 0"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(files, tmp_path, where, value, words):
    metadata, state, arrays = unpacked(files["plain"])
    holder_of(state, where)[where[-1]] = value
    refused(packed(metadata, state, arrays), tmp_path, words)


def test_weights_below_zero_are_refused_though_they_add_up_to_one(files, tmp_path):
    metadata, state, arrays = unpacked(files["stacked"])
    arrays = arrays | {"learnt.weights": np.array([1.5, -0.5])}
    refused(packed(metadata, state, arrays), tmp_path, "add up to one")


@pytest.mark.parametrize(
    ("where", "numbers", "words"),
    [
        (("divisor",), [1.0, 2.0, 0.0, 1.0], r"must be positive; .*divisor"),
        (("divisor",), [1.0, 2.0, 1.0, -1.0], r"must be positive; .*divisor"),
        (("units", "relative"), [1.0, 2.0, 1.0, -1.0], r"must be positive; .*units.relative"),
        (("units", "offset_variance"), [1.0, 0.0, 1.0, -1.0], r"must be at least 0; .*units.offset_variance"),
    ],
)
def test_a_wrong_number_among_right_ones_is_refused(files, tmp_path, where, numbers, words):
    metadata, state, arrays = unpacked(files["plain"])
    path, (signals,) = tmp_path / "model.sgp", state["shared"]["signals"]
    holder_of(signals, where)[where[-1]] = {"array": "numbers", "order": "C"}
    path.write_bytes(packed(metadata, state, arrays | {"numbers": np.abs(numbers) + (np.array(numbers) == 0)}))
    assert spectralgp.load(path).predict(X).shape == Y.shape
    refused(packed(metadata, state, arrays | {"numbers": np.array(numbers)}), tmp_path, words)


def test_the_tolerance_of_a_solver_is_read_by_its_old_name(tmp_path):
    metadata, state, arrays = unpacked((DATA / "version2-recipe.sgp").read_bytes())
    old = {"type": "Sqp", "max_iterations": 50, "enough": 0.1, "n_restarts": 2, "random_state": 3}
    state["estimator"]["parameters"]["solver"] = old
    path = tmp_path / "model.sgp"
    path.write_bytes(packed(metadata, state, arrays))
    assert spectralgp.load(path).solver == Sqp(50, 0.1, 2, 3)


# ------------------------------------------------------------------------------------ one wrong value for each field

WRONG: tuple[tuple[Any, str], ...] = (  # by the name of the field, whatever holds it; a new field needs a place here
    (1, "graph fixed scaled is_flat is_in_memory shrunk is_centred_by_node scales_signals is_tuned is_fallback"),
    (0, "lag worth freedom scale_freedom max_iterations n_folds n_moments max_moments n_probes"),
    (-1, "degree n_signals n_draws random_state n_features_in n_evaluations n_stand_ins task model models signals"),
    (-1, "n_following n_rows process"),
    (-1.0, "upper strength amplitude amplitude_bounds strength_bounds tolerance largest_eigenvalue residual bend"),
    (-1.0, "noise_variance noise_floor floor weight spread divisor highest mean_amplitude"),
    (0.5, "n_jobs verbose"),
    ("other", "type laplacian constraint prior carry center scale solver spectrum device layout output outcome terms"),
    ("other", "recentres read_as precision kernel names columns feature_names_in coordinates carried relative offset"),
    ("other", "chebyshev log_likelihood log_posterior log_marginal_likelihood stationarity feasibility multipliers"),
    ("other", "complementarity lift truncation rounding probes limit score restarts tried eigenpairs densities"),
    ("other", "input_recipe time shrinkage input_kernel stacking transformation factor order graph_kernel"),
    ("other", "likelihood observed_by effects converged sites feature_names exogenous_names"),
    (None, "classes"),
    ("other", "levels weights shape vanishes_at bend_bounds"),
    ("other", "offset_variance filling signal_scales learnt_from points gram date_columns"),
    ("other", "calendar drift seasons components kind clock trials backtest value last start members stages fit basis"),
    ("other", "tasks processes states effort graph_parameters"),
    (-1.0, "dispersion typical_variance"),
    (-1.0, "smoothness step least_rate penalty x_penalty period"),
    (0.5, "n_steps harmonics residuals"),
    (None, "name detail method active how notes note"),
    (7, "zone time_column labels"),
)
WRONG_ARRAYS: dict[str, Any] = {  # those that are wrong by their values; the others are made shorter
    "indices": [4] * 8,
    "indptr": [0, 9, 2, 4, 8],
    "eigenvalues": [4.0, 2.0, 2.0, 0.0],
    "weights": [0.5],
    "copies": [0, 1, 2, 3, 5],
    "rows": [0, 1, 2, 3, 5],
    "columns": [0, 1, 2, 4],
    "logarithms": [np.nan] * 3,
    "unknown": [0.0],
    "centres": [np.inf] * 3,
}


def with_a_wrong_value(content: tuple[dict[str, str], Any, dict[str, np.ndarray]], where: tuple[Any, ...]) -> bytes:
    """A file that is as it should be but for one field."""
    metadata, state, arrays = copy.deepcopy(content)
    name, holder = next(str(key) for key in reversed(where) if not isinstance(key, int)), holder_of(state, where)
    if isinstance(holder[where[-1]], dict) and holder[where[-1]]:
        stored = holder[where[-1]]["array"]
        whole = arrays[stored]
        arrays[stored] = np.array(WRONG_ARRAYS[name], whole.dtype) if name in WRONG_ARRAYS else whole[:-1]
    else:
        (holder[where[-1]],) = (value for value, names in WRONG if name in names.split())
    return packed(metadata, state, arrays)


def test_a_wrong_value_in_any_field_is_refused_by_its_name(files, tmp_path):
    """Or by that of the part it is in, or of the axis that has another length: one file for each field of each noun."""
    path, missed = tmp_path / "model.sgp", []
    whole = {name: unpacked(content) for name, content in files.items()}
    every = list(every_field(whole))
    for name, where in every:
        path.write_bytes(with_a_wrong_value(whole[name], where))
        said = "it was loaded"
        try:
            spectralgp.load(path)
        except ValueError as error:
            said = str(error).removeprefix(str(path))
        words = [*[key for key in where if not isinstance(key, int)][-2:], "n_signals", "n_features"]
        if not re.search(rf" must .*\b({'|'.join(words)})\b", said):
            missed.append((name, where, said))
    assert missed == [], "\n".join(map(str, missed))
    assert len(every) > 150


# -------------------------------------------------------------------------------- the last right value, the first wrong

LEAST, MANY = math.ulp(0.0), 2**20
KERNEL = {"type": "Identity", "amplitude": 1.0, "amplitude_bounds": None, "laplacian": "normalized", "scaled": True}
MATERN = {"type": "Matern", "smoothness": 1.5}
ENDS = [  # of what a field may be, and what is just beyond
    (kernels.Polynomial, "degree", [0, HIGHEST_DEGREE, "auto"], [-1, HIGHEST_DEGREE + 1]),
    (kernels.Polynomial, "chebyshev", [[1.0] * (HIGHEST_DEGREE + 1)], [[1.0] * (HIGHEST_DEGREE + 2)]),
    (kernels.Polynomial, "upper", [LEAST], [0.0]),
    (kernels.Diffusion, "strength", [LEAST], [0.0]),
    (kernels.Diffusion, "strength_bounds", [[0.0, "Infinity"], "fixed"], [[-LEAST, 1.0], ["NaN", 1.0], [1.0]]),
    (spectralgp.RandomWalk, "steps", [1, 10_000], [0, 10_001]),
    (kernels.Response, "parameter_bounds", [[["-Infinity", 2.0]], []], [[[1.0]]]),
    (kernels.KernelSum, "kernels", [[KERNEL], [KERNEL] * 3], [[]]),
    (kernels.WithResidual, "kernels", [[KERNEL] * 2], [[KERNEL], [KERNEL] * 3]),
    (kernels.WithResidual, "floor", [0.0], [-LEAST]),
    (kernels.StandardisedKernel, "terms", [["smooth"], ["smooth", "linear"]], [[], ["smooth"] * 3]),
    (sklearn_kernels.Matern, "nu", [LEAST, "Infinity"], [0.0, "NaN"]),
    (sklearn_kernels.RBF, "length_scale", [LEAST, [LEAST], [1.0, 2.0]], [0.0, [0.0], []]),
    (sklearn_kernels.RBF, "length_scale_bounds", [[0.0, "Infinity"], [[0.0, 1.0], [2.0, 3.0]]], [[-LEAST, 1.0], [1.0]]),
    (Chebyshev, "n_moments", [3, MANY], [2, MANY + 1]),
    (Chebyshev, "n_probes", ["exact", 4, MANY], [3, MANY + 1]),
    (Chebyshev, "tolerance", [LEAST], [0.0]),
    (Chebyshev, "random_state", [0, 2**53], [-1, 2**53 + 1]),
    (Task, "noise_variance", [LEAST, [LEAST, 1.0], None], [0.0, [1.0], [1.0] * 3, [0.0, 1.0]]),
    (GraphGP, "noise_variance", [0.0], [-LEAST]),
    (Shrinkage, "freedom", [2 + 1e-9], [math.nextafter(2 + 1e-9, 2), "NaN"]),
    (Shrinkage, "n_signals", [0], [-1]),
    (Stacking, "n_folds", [2], [1]),
    (Stacking, "n_draws", [0], [-1]),
    (Stacking, "n_jobs", [-(2**31)], [-(2**31) - 1]),
    (Sqp, "max_iterations", [1], [0]),
    (Sqp, "n_restarts", [0], [-1]),
    (InputRecipe, "lag", [1, None], [0]),
    (Draws, "n_stand_ins", [0], [-1]),
    (ComparedModel, "weight", [0.0], [-LEAST]),
    (OscillatorComponent, "n_harmonics", [1, 1000], [0, 1001]),
    (CalendarClock, "start", [-(2**62), 2**62], [-(2**62) - 1, 2**62 + 1]),
    (ModalProcess, "components", [[MATERN]], [[]]),
    (ProcessKernel, "components", [[MATERN]], [[]]),
    (SeriesMean, "penalty", [0.0], [-LEAST]),
]


@pytest.mark.parametrize(("noun", "name", "right", "wrong"), ENDS, ids=lambda value: getattr(value, "__name__", ""))
def test_fields_have_the_ranges_of_their_nouns_to_the_last_value(noun, name, right, wrong):
    (kind,) = (field.type for field in msgspec.structs.fields(RECORDS[noun]) if field.name == name)

    def read(value):
        return msgspec.convert(value, kind, dec_hook=lambda special, found: special(found, ModelReader({})))

    for value in right:
        read(value)
    for value in wrong:
        with pytest.raises(ValueError, match=r"Expected|must be"):
            read(value)


def array(*names: str, limit: Range = Range(), **options: Any) -> Any:  # noqa: B008
    return kind_of(Annotated[NDArray[np.float64], axes(*names, **options), limit])


@pytest.mark.parametrize(
    ("kind", "given", "words"),
    [
        (array("_rows", "_columns"), np.ones(3), r"must be numbers with 2 axes; got float64 \(3,\)"),
        (array("_rows"), np.arange(3), "must be numbers with 1 axes; got int64"),
        (array("_rows", kinds="i"), np.ones(3), "must be numbers with 1 axes; got float64"),
        (array("n_nodes"), np.ones(3), "must have n_nodes = 4; got 3"),
        (array("n_nodes + 1"), np.ones(4), "must have n_nodes \\+ 1 = 5; got 4"),
        (array("n_new", "n_new"), np.ones((2, 3)), "must have n_new = 2; got 3"),
        (array("_rows"), np.array([1.0, np.nan]), "must be finite; got NaN or infinity"),
        (array("_rows", allows_nan=True), np.array([np.nan, -np.inf]), "must be finite; got NaN or infinity"),
        (array("_rows", limit=ge(0)), np.array([1.0, -0.5]), "must be at least 0; got -0.5"),
        (array("_rows", limit=gt(0)), np.array([2.0, 0.0]), "must be positive; got 0"),
    ],
)
def test_arrays_have_the_axes_and_numbers_of_their_fields(kind, given, words):
    reading = ModelReader({"own": given})
    reading.sizes["n_nodes"] = 4
    with pytest.raises(ValueError, match=words):
        kind({"array": "own", "order": "C"}, reading)


def test_arrays_that_are_right_come_back_in_their_order():
    """Rows in the order of FORTRAN are stored turned round; a number may stand for an array where that is said."""
    rows = np.arange(6.0).reshape(2, 3)
    reading = ModelReader({"own": rows, "bounds": np.arange(5), "incomplete": np.array([np.nan, 0.0])})
    reading.sizes["n_nodes"] = 4
    np.testing.assert_array_equal(array("_a", "_b")({"array": "own", "order": "C"}, reading).value, rows)
    np.testing.assert_array_equal(array("n_three", "n_two")({"array": "own", "order": "F"}, reading).value, rows.T)
    assert (reading.sizes["n_three"], reading.sizes["n_two"]) == (3, 2)
    assert array("n_nodes + 1", kinds="fi")({"array": "bounds", "order": "C"}, reading).value.size == 5
    assert array("n_more + 1", kinds="i")({"array": "bounds", "order": "C"}, reading).value[4] == 4
    assert reading.sizes["n_more"] == 4
    kept = array("_rows", allows_nan=True, limit=ge(0))({"array": "incomplete", "order": "C"}, reading).value
    np.testing.assert_array_equal(kept, [np.nan, 0.0])
    assert array("n_nodes", or_number=True, limit=gt(0))(5e-324, reading).value == 5e-324
    with pytest.raises(ValueError, match="must be positive; got 0"):
        array("n_nodes", or_number=True, limit=gt(0))(0.0, reading)
    with pytest.raises(ValueError, match="must be an array of this file; got 'other'"):
        array("_rows")({"array": "other", "order": "C"}, reading)
    for reference in ({"array": "own"}, {"array": "own", "order": "K"}, {"array": "own", "order": "C", "more": 1}):
        with pytest.raises(ValueError, match=r"order|more"):
            array("_a", "_b")(reference, reading)


# ------------------------------------------------------------------------------------- parts that do not go together


def changed(content: tuple[Any, Any, Any], change: dict[str, Any]) -> tuple[Any, ModelReader]:
    """JSON of a file, and its reader, in which some fields, by their places with dots, are others: arrays, or JSON."""
    _, state, arrays = copy.deepcopy(content)
    for place, value in change.items():
        where = tuple(int(key) if key.isdigit() else key for key in place.split("."))
        if isinstance(value, np.ndarray):
            arrays[place], value = value, {"array": place, "order": "C"}
        holder_of(state, where)[where[-1]] = value
    return state, ModelReader(arrays)


LABELS = np.array([[0, 1, -1, 0], [-1, 1, 0, -1]])
FEWER = {f"sites.{number}.{name}": np.ones((4, 2)) for number in range(18) for name in ("linear", "curvature")}


def test_parts_of_a_classifier_go_together(files, tmp_path):
    content = unpacked(files["classifier"])
    right: tuple[dict[str, Any], ...] = (
        {"labels": LABELS, "order": np.array([1, 2, 3, 0]), "date_columns": [0], "feature_names": ["x"]},
        {"inputs": None},
    )
    for change in right:
        found = decoded(*changed(content, change))
        check_classes(found)
        assert (found.labels.tolist(), found.classes, found.is_flat) == (LABELS.tolist(), ("a", "b"), False)
    exact = decoded(*changed(content, {"parameters.spectrum": None})).parameters["spectrum"]
    assert (exact, found.parameters["spectrum"]) == (Exact(), "auto")
    wrong: tuple[tuple[dict[str, Any], str], ...] = (
        ({"labels": np.minimum(LABELS, 0)}, "labels must be of 2 classes"),
        ({"labels": np.where(LABELS == 1, 2, LABELS)}, "labels must be of 2 classes"),
        ({"labels": np.array([[0, 1, -2, 0], [-1, 1, 0, -1]])}, "labels must be at least -1"),
        ({"classes": ["a", "a"]}, "classes must be distinct"),
        ({"is_flat": True}, "labels must be of one signal where there is one per node; got 2"),
        ({"order": np.array([1, 2, 3, 3])}, "columns must be an order of the nodes"),
        (FEWER, "sites must be of 5 labels and 2 classes"),
        ({"converged": [True] * 17}, "converged must be one per site; got 17"),
        ({"inputs": np.ones((3, 1))}, "inputs must be 2 rows; got 3"),
        ({"date_columns": [1]}, "date_columns must be of 1 inputs"),
        ({"inputs": None, "date_columns": [0]}, "date_columns must be of 0 inputs"),
        ({"feature_names": ["x", "y"]}, "feature_names must be one per column"),
        ({"inputs": None, "feature_names": []}, "feature_names must be one per column"),
    )
    for change, words in wrong:
        with pytest.raises(ValueError, match=words):
            RESTORED["classifier"](decoded(*changed(content, change)))


def test_parts_of_a_forecaster_go_together(files, tmp_path):
    content = unpacked(files["forecaster"])
    right: dict[str, Any] = {
        "stack.weights": np.array([0.0, 1.0]), "stack.spread": 1, "stack.drifting": np.array([-1, 0, 3, -1]),
        "stack.correlations": np.empty((0, 4, 4)), "states.0.unknown": np.arange(8.0).reshape(2, 1, 4),
        "backtest.coverages": None,
    }  # fmt: skip
    model = series_of(decoded(*changed(content, right)))
    np.testing.assert_array_equal(model.states[0].unknown, right["states.0.unknown"])
    assert len(model.states[1].unknown) == 0
    assert (model.stack.spread, len(model.stack.members)) == (1, 2)
    size = len(model.stack.members[0].fit.precision)  # rounding decides between degrees
    wrong: tuple[tuple[dict[str, Any], str], ...] = (
        ({"stack.weights": np.array([1.5, -0.5])}, "stack.weights must be 2 that add up to one"),
        ({"stack.weights": np.array([0.5, 0.6])}, "stack.weights must be 2 that add up to one"),
        ({"stack.spread": 2}, "stack.spread must be below 2; got 2"),
        ({"stack.drifting": np.array([-2, 0, 1, 2])}, "stack.drifting must be below 4"),
        ({"stack.drifting": np.array([0, 1, 2, 4])}, "stack.drifting must be below 4"),
        ({"stack.drift": np.ones((4, 11, 4))}, r"stack.drift must be of shape \(4, 12, 4\)"),
        ({"stack.correlations": np.ones((3, 4, 4))}, "stack.correlations must be one per horizon"),
        ({"stack.horizons": np.array([1.0, 2.0, 2.0, 3.0])}, "stack.horizons must be increasing"),
        ({"recent": np.ones((2, 4))}, r"recent must be of shape \(3, 4\)"),
        ({"mean.coefficients": np.ones((4, 4))}, "coefficients must be 5 rows; got 4"),
        ({"shared.processes.0.powers": np.ones((2, 4))}, r"powers must be of shape \(1, 4\)"),
        ({"shared.processes.0.rates": np.ones((2, 4))}, r"rates must be of shape \(1, 4\)"),
        ({"states.0.state": np.ones((2, 4))}, r"state must be of shape \(1, 4\)"),
        ({"states.0.covariance": np.ones((1, 2, 4))}, r"covariance must be of shape \(1, 1, 4\)"),
        ({"states.0.unknown": np.ones((2, 2, 4))}, r"unknown must be of shape \(2, 1, 4\)"),
        ({"stack.members.0.fit.precision": np.eye(size + 1)}, rf"precision must be of shape \({size}, "),
        ({"stack.members.0.fit.kernel.kernels": [KERNEL] * 4}, "kernels must be 2, and a residual if there is one"),
        ({"backtest.coverages": np.ones((2, 4))}, "coverages must be of 3 levels"),
    )
    for change, words in wrong:
        with pytest.raises(ValueError, match=words):
            series_of(decoded(*changed(content, change)))


def test_a_graph_is_made_of_rows_that_are_whole():
    right = {"data": np.ones(4), "indices": np.array([1, 0, 2, 1]), "indptr": np.array([0, 1, 3, 4])}
    assert MAKERS[Graph](ModelReader({}), **right, names=None, coordinates=None).n_edges == 2
    wrong: tuple[tuple[dict[str, Any], str], ...] = (
        ({"indptr": np.array([0])}, "4 weights and 0 rows"),
        ({"indices": np.array([1, 0, 2])}, "rows of a sparse matrix"),
        ({"indptr": np.array([1, 1, 3, 4])}, "rows of a sparse matrix"),
        ({"indptr": np.array([0, 1, 3, 5])}, "rows of a sparse matrix"),
        ({"indptr": np.array([0, 3, 1, 4])}, "rows of a sparse matrix"),
        ({"indices": np.array([1, 0, 3, 1])}, "graph.indices must be between 3 nodes"),
        ({"indices": np.array([1, 0, -1, 1])}, "graph.indices must be between 3 nodes"),
    )
    for change, words in wrong:
        with pytest.raises(ValueError, match=words):
            MAKERS[Graph](ModelReader({}), **(right | change), names=None, coordinates=None)


def test_a_candidate_has_columns_and_signals_of_its_task():
    task = SimpleNamespace(inputs=np.ones((5, 2)), signals=SimpleNamespace(shape=(5, 4)))
    right = {"task": task, "kernel": Identity(), "transformation": None, "learnt_from": None}
    for change in (
        {},
        {"transformation": SimpleNamespace(columns=np.array([0, 1]))},
        {"learnt_from": np.array([0, 4])},
    ):
        check(Candidate(**(right | change)))
    for columns in ([0, 2], [-1, 0]):
        with pytest.raises(ValueError, match=r"transformation\.columns must be columns of 2 inputs"):
            check(Candidate(**(right | {"transformation": SimpleNamespace(columns=np.array(columns))})))
    for rows in ([], [0, 5], [-1, 2]):
        with pytest.raises(ValueError, match="learnt_from must be some of 5 signals"):
            check(Candidate(**(right | {"learnt_from": np.array(rows, dtype=int)})))


@pytest.mark.parametrize(
    ("root", "n_signals", "words"),
    [
        (np.eye(2, 3), 2, None),
        (np.eye(3), 7, None),
        (np.eye(1, 3), 2, "root must be of 2 signals on 3 nodes; got 1 rows"),
        (np.eye(2, 3), 7, "root must be of 7 signals on 3 nodes; got 2 rows"),
        (np.eye(4, 3), 7, "root must be of 7 signals on 3 nodes; got 4 rows"),
        (1e200 * np.eye(2, 3), 2, "root must be of a finite covariance"),
        (np.full((2, 3), 1e120), 2, "root must be of a covariance; got another"),  # of which rounding leaves one row
    ],
)
def test_the_root_of_a_shrinkage_is_of_its_signals(root, n_signals, words):
    fields = {"worth": 2.0, "root": root, "profile": np.ones(3), "n_signals": n_signals, "freedom": 5.0}
    with np.errstate(over="ignore", invalid="ignore"):
        if words is None:
            check(Shrinkage(**fields))
        else:
            with pytest.raises(ValueError, match=words):
                check(Shrinkage(**fields))


def test_a_filter_of_ones_own_may_differ_by_rounding_from_the_one_that_was_saved():
    """By a billionth of its value or of the largest one: elsewhere exponentials may be rounded otherwise."""

    def steep(eigenvalues):
        return np.exp(-9 * eigenvalues)

    saved = kernels.Response(steep, name="steep")
    fields = {name: getattr(saved, name) for name in ("parameters", "parameter_bounds", "amplitude")}
    fields |= {"laplacian": "normalized", "scaled": True}

    def read(function):
        reading = ModelReader({}, responses={"steep": function})
        return MAKERS[kernels.Response](reading, name="steep", sampled=saved.sampled, **fields)

    assert read(lambda values: steep(values) * (1 + 3e-10)).name == "steep"
    assert read(lambda values: steep(values) + 5e-10).laplacian == "normalized"
    for other in (lambda values: steep(values) * (1 + 1e-8), lambda values: steep(values) + 1e-8):
        message = r"responses\['steep'\] must be the function that the model was saved with"
        with pytest.raises(ValueError, match=message):
            read(other)


def test_a_model_must_fit_into_memory_with_the_covariances_of_its_signals():
    """A matrix per model, of signals by signals or by points, and two of the largest while they are computed."""
    whole, low = SimpleNamespace(points=None), SimpleNamespace(points=np.arange(10))
    for models, n_numbers in (([whole], 3 * 100**2), ([whole, low], 100 * (100 + 10 + 2 * 100)), ([low], 100 * 30)):
        require_memory(100, models, 8.0 * n_numbers)
        with pytest.raises(ValueError, match="the model must be one for"):
            require_memory(100, models, 8.0 * n_numbers - 1)


def test_a_device_is_that_of_settings_and_not_of_their_names(files, tmp_path):
    path = tmp_path / "model.sgp"
    for name, expected in (("plain", "auto"), ("chebyshev", Chebyshev(n_moments=9, n_probes=4, device="cpu"))):
        path.write_bytes(files[name])
        assert spectralgp.load(path, device="cpu").spectrum == expected
    assert spectralgp.load(path).spectrum == Chebyshev(n_moments=9, n_probes=4)


def test_shapes_that_the_file_does_not_hold_take_no_memory(files, tmp_path):
    content = files["plain"]
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    for shape in ([2**40, 2**20], [2**63, 2**63], [-1, 4], [1e30]):
        header["graph.data"]["shape"] = shape
        text = json.dumps(header).encode()
        assert load(len(text).to_bytes(8, "little") + text + content[8 + length :], tmp_path) is None


def test_a_short_file_that_describes_a_model_larger_than_the_machine_is_refused(files, tmp_path):
    metadata, state, arrays = unpacked(files["incomplete"])
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    n_models, n_copies = 2 + sum(len(one["models"]) for one in state["learnt"]["draws"]), 1 + math.isqrt(memory // 100)
    longer = {name: np.repeat(one, n_copies, axis=0) for name, one in arrays.items() if len(one) == 5}
    longer = {name: one for name, one in longer.items() if "graph" not in name}
    needed = 8 * n_models * (5 * n_copies) ** 2
    message = f"one for {memory / 1e9:.2g} GB of memory; got one that takes {needed / 1e9:.2g} GB"
    refused(packed(metadata, state, arrays | longer), tmp_path, re.escape(message))


# ------------------------------------------------------------------------------------------ killed, and a full disk

SETUP = """
import os, random, resource, signal, sys, time
from pathlib import Path
import numpy as np
import spectralgp
from spectralgp import Graph, GraphGPRegressor, Identity
folder = Path(sys.argv[1])
path = folder / "model.sgp"
rng = np.random.default_rng(0)
models = [
    GraphGPRegressor(Graph.edgeless(4000), Identity(), residual=None, scale="global").fit(None, signals)
    for signals in rng.standard_normal((2, 60, 4000))
]
means = [model.predict(None) for model in models]
def which():
    found = spectralgp.load(path).predict(None)
    return [np.array_equal(found, mean) for mean in means].index(True)
"""


def run(script: str, folder: Path) -> str:
    """A script in a process of its own, with two models, and a path to save them to."""
    return run_python(SETUP + textwrap.dedent(script), str(folder), OPENBLAS_NUM_THREADS="1")


@pytest.mark.slow
def test_a_process_killed_while_it_saves_leaves_the_old_file_or_the_new_one(tmp_path):
    """Forty times, at random moments; that some were in the middle is seen from what they left beside the file."""
    printed = run(
        """
        models[0].save(path)
        random.seed(0)
        left = set()
        started = time.perf_counter(); models[0].save(path); took = time.perf_counter() - started
        for turn in range(40):
            child = os.fork()
            if child == 0:
                while True:
                    models[1 - turn % 2].save(path)
                    models[turn % 2].save(path)
            time.sleep(random.random() * 2 * took)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            which()
            left |= {file.name for file in folder.iterdir()}
        print(len(left - {"model.sgp"}))
        """,
        tmp_path,
    )
    assert int(printed) > 4


FULL = """
try:
    models[1].save(path)
except OSError as error:
    assert "model.sgp could not be written" in str(error), error
    print("refused", which(), sorted(file.name for file in folder.iterdir()))
"""


@pytest.mark.slow
def test_a_limit_on_files_leaves_the_old_one_and_nothing_else(tmp_path):
    limit = "models[0].save(path)\nresource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))"
    assert run(limit + FULL, tmp_path) == "refused 0 ['model.sgp']\n"


def test_arrays_are_known_by_either_form_of_numpys_annotation():
    """NumPy 2.5 made `NDArray` an alias that has the scalar type as its only argument."""
    scalar = TypeVar("scalar", bound=np.generic)
    later = TypeAliasType("later", np.ndarray[Any, np.dtype[scalar]], type_params=(scalar,))
    reading = SimpleNamespace(arrays={"whole": np.arange(3), "real": np.linspace(0, 1, 3)}, sizes={})
    for annotation in (NDArray[np.int64], later[np.int64]):
        kind = kind_of(Annotated[annotation, axes("n")])
        assert kind({"array": "whole", "order": "C"}, reading).value is reading.arrays["whole"]
        with pytest.raises(ValueError, match="must be numbers with 1 axes; got float64"):
            kind({"array": "real", "order": "C"}, reading)
