"""Model files that were damaged, made up or cut short: a clear error or a model, and never anything else."""

from __future__ import annotations

import copy
import json
import re
import resource
import subprocess
import sys
import textwrap
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save

import spectralgp
from spectralgp import (
    Chebyshev,
    Diffusion,
    Graph,
    GraphGPClassifier,
    GraphGPForecaster,
    GraphGPRegressor,
    Identity,
    Polynomial,
    Sqp,
    Stacking,
)
from spectralgp.files import models as models_module
from spectralgp.files.container import FORMAT_VERSION, digest
from spectralgp.kernels import InputRecipe
from spectralgp.time import Matern

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
    "holes": lambda: GraphGPRegressor(RING, Polynomial(1), residual=None).fit(X, np.where(Y > 0.7, np.nan, Y)),
    "stacked": lambda: GraphGPRegressor(
        RING, Stacking([Identity(), Diffusion()], n_folds=2, n_draws=1), residual=None
    ).fit(X, Y),
    "carry": lambda: GraphGPRegressor(RING, Polynomial(1)).fit(np.roll(Y, 1, axis=0), Y),
    "logarithms": lambda: GraphGPRegressor(RING).fit(np.exp(2 * WALK[:12, :2]), np.exp(2 * WALK[:12] + SPIKES)),
    "in time": lambda: GraphGPRegressor(RING).fit(WALK[:-1], WALK[1:]),
    "forecaster": lambda: GraphGPForecaster(RING, components=[Matern(0.5)], seasons=4, residual=None).fit(SERIES, WAVE),
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
    found = {}
    for name, make in MODELS.items():
        path = tmp_path_factory.mktemp("models") / f"{name}.sgp"
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


# ------------------------------------------------------------------------------------------------ damaged by chance


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """The bytes of a file after an accident."""
    data = bytearray(content)
    place = int(rng.integers(len(data)))
    length = int(rng.choice([1, 2, 8, 64, 1024]))
    header = 8 + int.from_bytes(content[:8], "little")
    match int(rng.integers(9)):
        case 0:  # a bit anywhere
            data[place] ^= 1 << int(rng.integers(8))
        case 1:  # a byte of the header
            data[int(rng.integers(8, header))] = int(rng.integers(256))
        case 2:  # one of the length
            data[int(rng.integers(8))] ^= 1 << int(rng.integers(8))
        case 3:
            del data[place:]
        case 4:
            data += rng.bytes(length)
        case 5:
            data[place : place + length] = rng.bytes(length)
        case 6:
            del data[place : place + length]
        case 7:
            data[place:place] = rng.bytes(length)
        case 8:
            data[place : place + length] = bytes(len(data[place : place + length]))
    return bytes(data)


# ----------------------------------------------------------------------------------------------- made up on purpose

VALUES: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2, 3, 10**6, 10**18, 10**400, -0.5, 0.0, 1e-320, 1e308, "NaN", "Infinity", "", "x",
    "graph.data", "signals.0.source", "Polynomial", "Response", "os.system", "__import__('os').system('false')",
    [], {}, [0], [[]], {"type": "Polynomial"}, {"array": "graph.data", "order": "F"}, {"type": "Sum", "kernels": []},
)  # fmt: skip
NUMBERS = (np.nan, np.inf, -np.inf, 0.0, -1.0, 1e308, 1e-308, 1e150)


def unpacked(content: bytes, folder: Path) -> tuple[dict[str, str], Any, dict[str, np.ndarray]]:
    path = folder / "whole.sgp"
    path.write_bytes(content)
    with safe_open(path, framework="numpy") as opened:
        metadata = opened.metadata()
        return metadata, json.loads(metadata["model"]), {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118


def packed(metadata: dict[str, str], state: Any, arrays: dict[str, np.ndarray]) -> bytes:
    """A file with a checksum that is right, as whoever makes one up would write."""
    metadata = metadata | {"model": state if isinstance(state, str) else json.dumps(state)}
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return save(arrays, metadata | {"sha256": digest(metadata, arrays)})


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


def with_another_word(state: Any, where: tuple[Any, ...], rng: np.random.Generator) -> Any:
    """JSON in which the value at a place was replaced, left out, doubled, or given company."""
    state = copy.deepcopy(state)
    holder, key = holder_of(state, where), where[-1]
    match int(rng.integers(6)):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, list):
            holder.append(copy.deepcopy(holder[key]))
        case 1:
            holder["more"] = 1
        case _:
            holder[key] = VALUES[int(rng.integers(len(VALUES)))]
    return state


def with_another_array(arrays: dict[str, np.ndarray], name: str, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Arrays of which one has another value, shape or type, or is not there, or stands for another."""
    array = arrays[name].copy()
    match int(rng.integers(7)):
        case 0 | 1 if array.size:
            value = NUMBERS[int(rng.integers(len(NUMBERS)))]
            array.flat[int(rng.integers(array.size))] = value if array.dtype.kind == "f" else rng.integers(-9, 99)
        case 2 if array.size:
            array = array[: int(rng.integers(len(array)))]
        case 3:
            array = array.reshape(-1)
        case 4:
            array = array.astype([np.float32, np.int64, np.uint8, np.float16, bool][int(rng.integers(5))])
        case 5:
            return {key: one for key, one in arrays.items() if key != name}
        case _:
            array = arrays[sorted(arrays)[int(rng.integers(len(arrays)))]]
    return arrays | {name: array}


def mutations(files: dict[str, bytes], whole: dict[str, Any]) -> Iterator[bytes]:
    """Files with something made up in each field, in turn, and some that met with an accident."""
    rng = np.random.default_rng(0)
    for name, where in every_field(whole):
        metadata, state, arrays = whole[name]
        for _ in range(2):
            yield packed(metadata, with_another_word(state, where, rng), arrays)
        stored = holder_of(state, where)[where[-1]]
        if isinstance(stored, dict) and stored:
            for _ in range(2):
                yield packed(metadata, state, with_another_array(arrays, stored["array"], rng))
    for number in range(120):
        yield damaged(list(files.values())[number % len(files)], rng)


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast", "ignore:overflow encountered in cast")
def test_mutated_files_end_in_clear_errors_or_in_models(files, tmp_path):
    whole = {name: unpacked(content, tmp_path) for name, content in files.items()}
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
    content, path = files["plain"], tmp_path / "model.sgp"
    metadata, state, arrays = unpacked(content, tmp_path)

    def message(data: bytes) -> str:
        path.write_bytes(data)
        with pytest.raises(ValueError, match="must") as caught:
            spectralgp.load(path)
        return str(caught.value)

    assert "cut off" in message(content[:-1])
    assert "cut off" in message(content[:20])
    assert "cut off" in message(b"")
    assert "cut off" in message(content + b"more")
    assert "cut off" in message(b"PK\x03\x04 or a pickle, or anything else")
    assert "cut off" in message((2**62).to_bytes(8, "little") + content[8:])
    assert "of another kind" in message(save(arrays, {"format": "pt"}))
    assert "of another kind" in message(save(arrays))
    assert "checksum" in message(content[:-1] + bytes([content[-1] ^ 1]))
    newer = message(packed(metadata | {"format_version": str(FORMAT_VERSION + 1)}, state, arrays))
    assert f"got version {FORMAT_VERSION + 1}, written by" in newer
    assert "Upgrade" in newer
    for version in ("0", "-1", "one", "", "1.0", "²", "9" * 400):
        assert "version" in message(packed(metadata | {"format_version": version}, state, arrays))
    assert "JSON" in message(packed(metadata, "{", arrays))
    assert "JSON" in message(packed(metadata, "[" * 100_000, arrays))
    many = json.dumps([1] * 2_000_000)  # refused by its length alone, before any of it is made
    assert "more parts than its arrays" in message(packed(metadata, many, arrays))
    assert "arrays of real numbers" in message(
        packed(metadata, state, arrays | {"graph.data": np.zeros(8, complex)[:0].astype(np.complex64)})
    )


def test_json_that_arrays_account_for_takes_little_more_memory_than_the_file(files, tmp_path):
    """A file may buy commas by bytes of arrays: each may cost a few bytes to refuse, and not hundreds."""
    metadata, _, arrays = unpacked(files["plain"], tmp_path)
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
    metadata, state, arrays = unpacked(files["plain"], tmp_path)
    holder_of(state, where)[where[-1]] = value
    path = tmp_path / "model.sgp"
    path.write_bytes(packed(metadata, state, arrays))
    with pytest.raises(ValueError, match=words):
        spectralgp.load(path)


def test_weights_below_zero_are_refused_though_they_add_up_to_one(files, tmp_path):
    metadata, state, arrays = unpacked(files["stacked"], tmp_path)
    arrays = arrays | {"learnt.weights": np.array([1.5, -0.5])}
    path = tmp_path / "model.sgp"
    path.write_bytes(packed(metadata, state, arrays))
    with pytest.raises(ValueError, match="add up to one"):
        spectralgp.load(path)


@pytest.mark.parametrize(
    ("where", "numbers", "words"),
    [
        (("divisor",), [1.0, 2.0, 0.0, 1.0], r"must be positive; .*divisor"),
        (("divisor",), [1.0, 2.0, 1.0, -1.0], r"must be positive; .*divisor"),
        (("units", "relative"), [1.0, 2.0, 1.0, -1.0], "units.relative must be positive"),
        (("units", "offset_variance"), [1.0, 0.0, 1.0, -1.0], r"must be at least 0; .*units.offset_variance"),
    ],
)
def test_a_wrong_number_among_right_ones_is_refused(files, tmp_path, where, numbers, words):
    metadata, state, arrays = unpacked(files["plain"], tmp_path)
    path, (signals,) = tmp_path / "model.sgp", state["shared"]["signals"]
    holder_of(signals, where)[where[-1]] = {"array": "numbers", "order": "C"}
    path.write_bytes(packed(metadata, state, arrays | {"numbers": np.abs(numbers) + (np.array(numbers) == 0)}))
    assert spectralgp.load(path).predict(X).shape == Y.shape
    path.write_bytes(packed(metadata, state, arrays | {"numbers": np.array(numbers)}))
    with pytest.raises(ValueError, match=words):
        spectralgp.load(path)


def test_files_are_read_with_the_threads_of_fit_by_the_number_of_signals(files, tmp_path, monkeypatch):
    asked, few_threads = [], models_module.few_threads
    monkeypatch.setattr(models_module, "few_threads", lambda n_rows: asked.append(n_rows) or few_threads(n_rows))
    assert load(files["plain"], tmp_path) is not None
    assert asked == [len(Y)]


def test_the_tolerance_of_a_solver_is_read_by_its_old_name(files, tmp_path):
    metadata, state, arrays = unpacked(files["plain"], tmp_path)
    old = {"type": "Sqp", "max_iterations": 50, "enough": 0.1, "n_restarts": 2, "random_state": 3}
    state["estimator"]["parameters"]["solver"] = old
    path = tmp_path / "model.sgp"
    path.write_bytes(packed(metadata, state, arrays))
    assert spectralgp.load(path).solver == Sqp(50, 0.1, 2, 3)


# ------------------------------------------------------------------------------------ one wrong value for each field

WRONG: tuple[tuple[Any, str], ...] = (  # by the name of the field, whatever holds it; a new field needs a place here
    (1, "graph fixed scaled is_flat is_in_memory shrunk is_centred_by_node scales_signals is_tuned"),
    (0, "lag worth freedom max_iterations n_folds n_moments max_moments n_probes"),
    (-1, "degree n_signals n_draws random_state n_features_in n_evaluations n_stand_ins task model models signals"),
    (-1, "n_following n_rows"),
    (-1.0, "upper strength amplitude amplitude_bounds strength_bounds tolerance largest_eigenvalue residual"),
    (-1.0, "noise_variance noise_floor floor weight spread divisor highest mean_amplitude"),
    (0.5, "n_jobs verbose"),
    ("other", "type laplacian constraint prior carry center scale solver spectrum device layout output outcome terms"),
    ("other", "recentres read_as precision kernel names columns feature_names_in coordinates carried relative offset"),
    ("other", "chebyshev log_likelihood log_posterior log_marginal_likelihood stationarity feasibility multipliers"),
    ("other", "complementarity lift truncation rounding probes limit score restarts tried eigenpairs densities"),
    ("other", "input_recipe time shrinkage input_kernel stacking transformation factor order graph_kernel"),
    ("other", "likelihood observed_by effects unknown converged sites feature_names"),
    (None, "classes"),
    ("other", "offset_variance filling signal_scales learnt_from points gram date_columns"),
    ("other", "calendar drift seasons components kind clock trials backtest value last start members stages fit basis"),
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
    "centres": [np.inf] * 3,
}


def with_a_wrong_value(content: tuple[dict[str, str], Any, dict[str, np.ndarray]], where: tuple[Any, ...]) -> bytes:
    """A file that is as it should be but for one field."""
    metadata, state, arrays = copy.deepcopy(content)
    name, holder = next(str(key) for key in reversed(where) if not isinstance(key, int)), holder_of(state, where)
    if isinstance(holder[where[-1]], dict):
        stored = holder[where[-1]]["array"]
        whole = arrays[stored]
        arrays[stored] = np.array(WRONG_ARRAYS[name], whole.dtype) if name in WRONG_ARRAYS else whole[:-1]
    else:
        (holder[where[-1]],) = (value for value, names in WRONG if name in names.split())
    return packed(metadata, state, arrays)


def test_a_wrong_value_in_any_field_is_refused_by_its_name(files, tmp_path):
    """Or by that of the part it is in, or of the axis that has another length: one file for each field of each noun."""
    path, missed = tmp_path / "model.sgp", []
    whole = {name: unpacked(content, tmp_path) for name, content in files.items()}
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


def test_shapes_that_the_file_does_not_hold_take_no_memory(files, tmp_path):
    content = files["plain"]
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    for shape in ([2**40, 2**20], [2**63, 2**63], [-1, 4], [1e30]):
        header["graph.data"]["shape"] = shape
        text = json.dumps(header).encode()
        assert load(len(text).to_bytes(8, "little") + text + content[8 + length :], tmp_path) is None


def test_a_short_file_that_describes_a_model_larger_than_the_machine_is_refused(files, tmp_path, monkeypatch):
    metadata, state, arrays = unpacked(files["holes"], tmp_path)
    arrays = {
        name: np.repeat(one, 2_000, axis=0) if len(one) == 5 and "graph" not in name else one
        for name, one in arrays.items()
    }
    monkeypatch.setattr("spectralgp.files.models._memory", lambda: 1e9)
    path = tmp_path / "model.sgp"
    path.write_bytes(packed(metadata, state, arrays))
    with pytest.raises(ValueError, match=r"one for 1 GB of memory; got one that takes 2.4 GB"):
        spectralgp.load(path)


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


def run(script: str, folder: Path, *before: str) -> subprocess.CompletedProcess[str]:
    """A script in a process of its own, with two models, and a path to save them to."""
    return subprocess.run(
        [*before, sys.executable, "-c", SETUP + textwrap.dedent(script), str(folder)],
        env={
            "PYTHONPATH": str(Path(spectralgp.__file__).parents[1]),
            "OPENBLAS_NUM_THREADS": "1",
            "PATH": "/usr/bin:/bin",
        },
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.mark.slow
def test_a_process_killed_while_it_saves_leaves_the_old_file_or_the_new_one(tmp_path):
    """Forty times, at random moments; that some were in the middle is seen from what they left beside the file."""
    answer = run(
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
    assert answer.returncode == 0, answer.stderr[-2000:]
    assert int(answer.stdout) > 4


FULL = """
try:
    models[1].save(path)
except OSError as error:
    assert "model.sgp could not be written" in str(error), error
    print("refused", which(), sorted(file.name for file in folder.iterdir()))
"""


def test_a_limit_on_files_leaves_the_old_one_and_nothing_else(tmp_path):
    limit = "models[0].save(path)\nresource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))"
    answer = run(limit + FULL, tmp_path)
    assert (answer.stdout, answer.returncode) == ("refused 0 ['model.sgp']\n", 0), answer.stderr[-2000:]


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path):
    mounted = ("unshare", "-rm", "sh", "-c", f'mount -t tmpfs -o size=3m tmpfs {tmp_path} && exec "$@"', "sh")
    if subprocess.run([*mounted, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no file system of a given size can be mounted here")
    answer = run("models[0].save(path)" + FULL, tmp_path, *mounted)
    assert (answer.stdout, answer.returncode) == ("refused 0 ['model.sgp']\n", 0), answer.stderr[-2000:]


def test_a_model_must_fit_into_memory_with_the_covariances_of_its_signals(monkeypatch):
    """A matrix per model, of signals by signals or by points, and two of the largest while they are computed."""
    whole, low = SimpleNamespace(points=None), SimpleNamespace(points=np.arange(10))
    monkeypatch.setattr(models_module, "UNQUESTIONED_BYTES", 0)
    for made, n_numbers in (([whole], 3 * 100**2), ([whole, low], 100 * (100 + 10 + 2 * 100)), ([low], 100 * 30)):
        monkeypatch.setattr(models_module, "_memory", lambda n=n_numbers: 8.0 * n)
        models_module._require_memory(100, made)
        monkeypatch.setattr(models_module, "_memory", lambda n=n_numbers: 8.0 * n - 1)
        with pytest.raises(ValueError, match="the model must be one for"):
            models_module._require_memory(100, made)
