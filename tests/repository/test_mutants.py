"""What may be changed by benchmarks/mutants.py, and what is left alone."""

from __future__ import annotations

import ast
import importlib.util
import re
import shlex
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MUTANTS = ROOT / "benchmarks" / "mutants.py"


@pytest.fixture(scope="module")
def mutation():
    spec = importlib.util.spec_from_file_location("_places", ROOT / "benchmarks" / "_places.py")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "_places", module)  # dataclasses look their module up
        spec.loader.exec_module(module)
        yield module


SOURCE = '''
"""Nothing in here: 1 + 2."""
Kind = int | None
STEP: int | None = 7

def f(x: int | None = 3, *, deep: bool = True) -> list[int]:
    if not deep:
        raise ValueError(f"{x - 1}" + "no")
    warnings.warn("less than " + str(2 * x))
    total = x[: len(x)] if 0 < x <= 4 or deep else np.max(x) ** 2
    for place in range(total):
        total += 1e-6 + 0.5
    return [one for one in total if one]
'''
CHOICES = {
    "7": {"(6)", "(8)"},
    "3": {"(2)", "(4)"},
    "True": {"False"},
    "not deep": {"(deep)"},
    ": len(x)": {":len(x) + 1"},
    "0 < x <= 4": {"(0 <= x <= 4)", "(0 >= x <= 4)", "(0 < x < 4)", "(0 < x > 4)"},
    "0 < x <= 4 or deep": {"(0 < x <= 4 and deep)", "(not (0 < x <= 4 or deep))"},
    "0": {"(-1)", "(1)"},
    "4": {"(3)", "(5)"},
    "np.max(x) ** 2": {"(np.max(x) * 2)"},
    "np.max": {"np.min"},
    "2": {"(1)", "(3)"},
    "range(total)": {"range(total - 1)", "range(total + 1)"},
    "total += 1e-6 + 0.5": {"total -= 1e-06 + 0.5"},
    "1e-6 + 0.5": {"(1e-06 - 0.5)"},
    "1e-6": {"1e-09", "0.001"},
    "0.5": {"0.25", "1.0"},
    "one": {"(not (one))"},
}


def test_places_and_choices_of_a_module(mutation):
    found = {}
    for place in mutation.places_of("module.py", SOURCE):
        found.setdefault(place.original, set()).update(place.choices)
        assert place.function == (0 if place.original in ("7", "3", "True") else 6)
    assert found == CHOICES


def test_every_mutant_of_the_package_is_a_module_that_differs_at_its_place(mutation):
    source = (ROOT / "src" / "spectralgp" / "scores.py").read_text(encoding="utf-8")
    for place in mutation.places_of("scores.py", source):
        for mutant in (mutation.Mutant(1, place, text) for text in place.choices):
            changed = mutation.mutated(source.encode(), [mutant]).decode()
            assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))


def test_draws_repeat_with_the_seed_and_never_hit_a_place_twice(mutation):
    found = mutation.places(ROOT / "src" / "spectralgp")
    first, again, other = (mutation.drawn(found, 50, seed) for seed in (1, 1, 2))
    assert first == again != other
    assert len({mutant.place for mutant in first}) == 50
    files = {place.file for place in found}
    for left_out in mutation.LEFT_OUT:
        assert (ROOT / "src" / "spectralgp" / left_out).exists()
        assert left_out not in files


def test_mutants_meet_the_tests_of_make_test():
    selection = 'src tests -m "not slow" --ignore=tests/repository'
    assert f"$(PYTEST) {selection} $(PYTEST_ARGS)" in (ROOT / "Makefile").read_text(encoding="utf-8")
    (line,) = re.findall(r"^SELECTION = (\(.*\))", MUTANTS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert ast.literal_eval(line) == tuple(shlex.split(selection))
