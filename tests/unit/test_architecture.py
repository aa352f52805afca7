"""Imports point strictly down the parts of the package, and heavy libraries load only where they are used.

What stands beside the package is no part of it: the package imports none of that, and the reproduction of the paper has
of the package what any user has. Four things vary, and each is a type: outside its part nobody asks which kind it has.
"""

import ast
import functools
import importlib
import inspect
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import FunctionType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest

import spectralgp
from spectralgp.learning import Solver
from spectralgp.model.fields import (
    Covariance,
    Mixture,
    NodeCovariance,
    Posterior,
    PredictiveDistribution,
    RowCovariance,
    Transformation,
)
from spectralgp.model.kernels import GraphKernel, InputKernel
from spectralgp.model.kernels.inputs import NewInputs
from spectralgp.model.likelihoods import Likelihood
from spectralgp.model.signals import Signals
from spectralgp.model.spectra import SpectralData, Spectrum, SpectrumSettings

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "spectralgp"
BESIDE = {"benchmarks", "docs", "reproduction", "tests"}

# Lowest first. A part is a module or a folder of the package, or of its folders "graphs", "model" and "show".
# "__init__" is spectralgp itself: it gathers the public names of the parts below it for those above it.
PARTS = [
    "_basics",
    "graphs.operators",
    "graphs",
    "graphs.partitioned",
    "model",
    "model.signals",
    "model.spectra",
    "model.kernels",
    "model.statespace",
    "model.likelihoods",
    "model.fields",
    "scores",
    "datasets",
    "learning",
    "series",
    "files",
    "show",
    "show.report",
    "estimators",
    "show.plots",
    "__init__",
    "cli",
    "__main__",
]

HEAVY = {
    "cupy",
    "dask",
    "distributed",
    "jinja2",
    "matplotlib",
    "msgspec",
    "narwhals",
    "networkx",
    "numba",
    "pandas",
    "plotly",
    "polars",
    "pyarrow",
    "pymetis",
    "rich",
    "safetensors",
    "torch",
    "tqdm",
    "typer",
    "xarray",
    "zarr",
}
# nobody imports the command line or pictures to compute; compiled loops are imported where they run
HEAVY_AT_TOP = {
    "cli": {"rich", "typer"},
    "show.plots": {"matplotlib"},
    "graphs.operators.loops": {"numba"},
    "model.statespace.compiled": {"numba"},
    **{f"files.{name}": {"msgspec"} for name in ("container", "models", "nouns", "schema")},
}


UNLOADED = {"__main__", "graphs.operators.loops", "model.statespace.compiled"}  # by tests, which do without Numba


def modules_of(package: Path) -> dict[str, Path]:
    """Dotted name below the package ("learning.sqp", "" for the package itself) of every module."""
    modules = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return modules


def part_of(module: str) -> str:
    return next(
        (part for part in sorted(PARTS, reverse=True) if f"{module}.".startswith(f"{part}.")), module or "__init__"
    )


def absolute_targets(node: ast.AST, folder: tuple[str, ...]) -> Iterator[str]:
    """Names that an import statement may load; `folder` is the package that the statement stands in."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        above = folder[: len(folder) - node.level + 1] if node.level else ()
        base = ".".join([*above, *([node.module] if node.module else [])])
        yield from (f"{base}.{alias.name}" for alias in node.names)


@functools.cache
def parsed(text: str) -> ast.Module:
    """The tree of a module, which nobody here changes."""
    return ast.parse(text)


def imported_names(package: Path, *, for_types: bool = True) -> Iterator[tuple[str, str]]:
    """Every module of the package with every name that it imports, anywhere in its text or when it runs."""
    for module, path in modules_of(package).items():
        folder = (package.name, *path.relative_to(package).parent.parts)
        tree = parsed(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree) if for_types else nodes_that_run(tree):
            yield from ((module, target) for target in absolute_targets(node, folder))


def module_imports(package: Path, *, for_types: bool = True) -> dict[str, set[str]]:
    """For every module of the package, the modules of the package that it imports, anywhere or when it runs."""
    modules = modules_of(package)
    imports: dict[str, set[str]] = {module: set() for module in modules}
    for module, target in imported_names(package, for_types=for_types):
        head, *rest = target.split(".")
        if head != package.name:
            continue
        # the longest part that is a module: the rest is a name defined in it
        while rest and ".".join(rest) not in modules:
            rest.pop()
        imports[module].add(".".join(rest))
    return imports


def wrong_arrows(package: Path) -> list[str]:
    """Imports between parts that do not point strictly down, and cycles inside a part."""
    position = {part: index for index, part in enumerate(PARTS)}
    imports = module_imports(package)
    wrong = [f"{part_of(module)} is not a part" for module in imports if part_of(module) not in position]
    for module, targets in imports.items():
        for target in targets:
            here, there = part_of(module), part_of(target)
            if here != there and here in position and position.get(there, -1) >= position[here]:
                wrong.append(f"{module or '__init__'} imports {target or '__init__'}")
    return wrong + cycles(module_imports(package, for_types=False))


def cycles(imports: dict[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return [f"cycle: {' <- '.join(error.args[1])}"]
    return []


def private_names(package: Path) -> list[str]:
    """What a folder beside the package takes of it that is not among the public names of a module."""
    found = []
    for module, target in imported_names(package):
        home, _, name = target.rpartition(".")
        if target.split(".")[0] != "spectralgp" or target == "spectralgp":
            continue
        if name not in getattr(importlib.import_module(home), "__all__", ()):
            found.append(f"{module or '__init__'} imports {target}")
    return found


def nodes_that_run(tree: ast.AST, *, when_loaded: bool = False) -> Iterator[ast.AST]:
    """Nodes that are not for type checkers only; of these, those that run when the module is loaded."""
    for node in ast.iter_child_nodes(tree):
        if when_loaded and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            yield from nodes_that_run(ast.Module(body=node.orelse, type_ignores=[]), when_loaded=when_loaded)
            continue
        yield node
        yield from nodes_that_run(node, when_loaded=when_loaded)


def heavy_at_top(package: Path) -> list[str]:
    found = []
    for module, path in modules_of(package).items():
        allowed = HEAVY_AT_TOP.get(module, HEAVY_AT_TOP.get(part_of(module), set()))
        for node in nodes_that_run(parsed(path.read_text(encoding="utf-8")), when_loaded=True):
            libraries = {target.split(".")[0] for target in absolute_targets(node, ())}
            found += [f"{module or '__init__'} loads {name}" for name in libraries & HEAVY - allowed]
    return found


def test_imports_point_strictly_down():
    assert wrong_arrows(PACKAGE) == []


def test_heavy_libraries_are_imported_where_they_are_used():
    assert heavy_at_top(PACKAGE) == []


def test_the_package_imports_nothing_that_stands_beside_it():
    assert [pair for pair in imported_names(PACKAGE) if pair[1].split(".")[0] in BESIDE] == []


def test_the_reproduction_is_built_from_public_names_without_cycles():
    assert private_names(ROOT / "reproduction") == []
    assert cycles(module_imports(ROOT / "reproduction")) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from spectralgp.show.plots.style import axes", ["page imports spectralgp.show.plots.style.axes"]),
        ("def f():\n    from spectralgp.cli.option import option", ["page imports spectralgp.cli.option.option"]),
        ("from spectralgp import learning", ["page imports spectralgp.learning"]),
        ("import spectralgp.cli", ["page imports spectralgp.cli"]),
        ("import numpy\nimport spectralgp\nfrom spectralgp.datasets import sensor_graph", []),
    ],
)
def test_a_name_that_is_not_public_is_found(tmp_path, text, found):
    write_package(tmp_path / "reproduction", {"page.py": text})
    assert private_names(tmp_path / "reproduction") == found


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ({"graphs.py": "import spectralgp.series", "series.py": ""}, "graphs imports series"),
        ({"graphs.py": "def f():\n    from spectralgp import series", "series.py": ""}, "graphs imports series"),
        ({"graphs.py": "from .series import GraphGP", "series.py": ""}, "graphs imports series"),
        ({"learning/sqp.py": "from ..cli import main", "cli.py": ""}, "learning.sqp imports cli"),
        ({"graphs.py": "from spectralgp import Graph"}, "graphs imports __init__"),
        ({"__init__.py": "from spectralgp.cli import main", "cli.py": ""}, "__init__ imports cli"),
        ({"utils.py": ""}, "utils is not a part"),
        ({"learning/a.py": "from . import b", "learning/b.py": "from .a import c"}, "cycle: "),
        ({"learning/__init__.py": "from .a import c", "learning/a.py": "import spectralgp.learning"}, "cycle: "),
    ],
)
def test_a_wrong_arrow_is_found(tmp_path, files, complaint):
    write_package(tmp_path / "spectralgp", files)
    assert any(found.startswith(complaint) for found in wrong_arrows(tmp_path / "spectralgp"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import matplotlib.pyplot as plt", ["series loads matplotlib"]),
        ("try:\n    from pandas import DataFrame\nexcept ImportError:\n    pass", ["series loads pandas"]),
        ("class Table:\n    import rich", ["series loads rich"]),
        ("def f():\n    import matplotlib.pyplot", []),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pandas", []),
        ("import numpy", []),
    ],
)
def test_a_heavy_import_at_the_top_is_found(tmp_path, text, found):
    write_package(tmp_path / "spectralgp", {"series.py": text, "cli.py": "import typer\nimport rich.table"})
    assert heavy_at_top(tmp_path / "spectralgp") == found


def plain(attribute: object) -> object:
    """A function of a class as it was written."""
    return attribute.__func__ if isinstance(attribute, classmethod | staticmethod) else attribute


def defaults_of(function: FunctionType) -> dict[str, object]:
    parameters = inspect.signature(function).parameters.values()
    return {one.name: one.default for one in parameters if one.default is not inspect.Parameter.empty}


def test_what_overrides_a_method_has_its_defaults():
    """Who holds one kind in place of another must not be answered with noise, or by node, by another's default."""
    n_compared = 0
    for module in modules_of(PACKAGE):
        if module in UNLOADED:
            continue
        loaded = importlib.import_module(f"spectralgp.{module}".rstrip("."))
        kinds = [one for one in vars(loaded).values() if isinstance(one, type) and one.__module__ == loaded.__name__]
        for kind, base in ((one, other) for one in kinds for other in one.__mro__[1:]):
            if not base.__module__.startswith("spectralgp"):
                continue
            for name, attribute in vars(kind).items():
                own, other = plain(attribute), plain(vars(base).get(name))
                both = isinstance(own, FunctionType) and isinstance(other, FunctionType)
                if both and not name.startswith("__"):
                    known = defaults_of(other)
                    found = {key: value for key, value in defaults_of(own).items() if key in known}
                    assert found == {key: known[key] for key in found}, f"{kind.__name__}.{name}"
                    n_compared += len(found)
    assert n_compared > 60


# nouns whose equality is not that of what they hold: kernels are values, whatever functions they are made of
EQUAL_THOUGH = {
    *(
        "InputColumns",
        "ComparisonRow",
        "ValueCondition",
        "CombinedKernel",
        "ProcessKernel",
        "Response",
        "Stacking",
        "Variant",
        "KernelSum",
        "WithResidual",
    )
}
ALONE_THOUGH = {*("FilterShape", "PointJoin", "Simple", "WritingOptions")}
CHANGING = {"SignalStore"}  # which fills itself


def holds_values(hint: Any) -> bool:
    """Whether two of a type are equal where they are the same to the eye; arrays and functions are not."""
    if get_origin(hint) in (Union, UnionType, tuple):
        return all(holds_values(one) for one in get_args(hint) if one is not Ellipsis)
    is_noun = is_dataclass(hint) and isinstance(hint, type)
    return get_origin(hint) is Literal or hint in (int, float, str, bool, type(None)) or (is_noun and is_equal(hint))


def is_equal(noun: type) -> bool:
    return bool(vars(noun)["__dataclass_params__"].eq)


def test_nouns_are_frozen_and_are_compared_by_value_where_all_that_they_hold_is():
    """Equality of arrays is an array, so nouns that hold one are themselves alone, and may be keys."""
    n_nouns = 0
    for module in set(modules_of(PACKAGE)) - UNLOADED:
        loaded = importlib.import_module(f"spectralgp.{module}".rstrip("."))
        for noun in vars(loaded).values():
            if not isinstance(noun, type) or noun.__module__ != loaded.__name__ or not is_dataclass(noun):
                continue
            if "__dataclass_params__" not in vars(noun):
                continue
            n_nouns, name = n_nouns + 1, noun.__name__
            assert vars(noun)["__dataclass_params__"].frozen == (name not in CHANGING), name
            try:
                hints = get_type_hints(noun)
            except NameError:  # of a library that is loaded where it is used, whose tables are not values
                hints = dict.fromkeys((field.name for field in fields(noun)), object)
            expected = all(holds_values(hints[field.name]) for field in fields(noun))
            assert is_equal(noun) == (name in EQUAL_THOUGH or (expected and name not in ALONE_THOUGH)), name
    assert n_nouns > 100


def test_every_public_method_is_documented_by_its_class_or_a_base():
    methods = (FunctionType, property, cached_property, classmethod, staticmethod)
    for module in set(modules_of(PACKAGE)) - UNLOADED:
        loaded = importlib.import_module(f"spectralgp.{module}".rstrip("."))
        for kind in vars(loaded).values():
            if isinstance(kind, type) and kind.__module__ == loaded.__name__ and not kind.__name__.startswith("_"):
                for name, member in vars(kind).items():
                    if isinstance(member, methods) and not name.startswith("_"):
                        assert any(vars(base)[name].__doc__ for base in kind.__mro__ if name in vars(base)), (
                            kind,
                            name,
                        )


SEAMS = (
    *(Spectrum, SpectrumSettings, SpectralData, InputKernel, NewInputs, GraphKernel, Signals, Solver),
    *(
        Posterior,
        Mixture,
        PredictiveDistribution,
        Covariance,
        RowCovariance,
        NodeCovariance,
        Transformation,
        Likelihood,
    ),
)
SETTINGS = {"settings", "spectrum"}  # of which None is no kind
# words by which users ask for kinds, and the names that such a word may stand under
WORDS = {"precomputed", "exact", "chebyshev", "sqp"}
WORDED = {"kernel", "input_kernel", "described", "spectrum", "settings", "solver"}

# doors, which make objects of what a user gives
DOORS = {
    "cli.learning: == 'exact'": "--spectrum is a word",
    "estimators.observing: isinstance Gaussian": "noise that is known, or learnt beside covariates, is Gaussian",
    "estimators.reading: isinstance GraphKernel": "residual= is a kernel or a word",
    "estimators.reading: isinstance SpectralKernel": "residual= must be a function on the spectrum",
    "learning.candidates: isinstance SpectralKernel": "others have no residual to choose",
    "estimators.reading: isinstance SpectrumSettings": "spectrum= is a word or settings",
    "estimators.regressor: isinstance GraphKernel": "set_params() sets parameters of one kernel",
    "files.models: isinstance Response": "a file holds a function of the user's by its name",
    "files.nouns: isinstance Response": "load(responses=) has functions or kernels",
    "learning.objective: isinstance SpectrumSettings": "Task.of() says what settings are",
    "model.fields.posterior: isinstance GraphKernel": "graph_gp() says what a graph kernel is",
    "learning.candidates: isinstance GraphKernel": "learn() says what one is, Stacking() has one or a list",
    "show.plots.filters: isinstance GraphKernel": "pictures are drawn of kernels or of fitted estimators",
}


def kinds() -> dict[str, str]:
    """Names of all kinds, with the part that each is at home in."""
    for module in modules_of(PACKAGE):
        if module not in UNLOADED:
            importlib.import_module(f"spectralgp.{module}".rstrip("."))
    found, waiting = dict[str, str](), list[type](SEAMS)
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.__module__.startswith("spectralgp."):
            found[kind.__name__] = part_of(kind.__module__.removeprefix("spectralgp."))
    return found


def questions(package: Path, homes: dict[str, str]) -> Iterator[str]:
    """Every place where a module asks for a kind that is at home in another part."""
    for module, path in modules_of(package).items():
        tree = parsed(path.read_text(encoding="utf-8"))
        away = {kind for kind in ours(tree, module) if homes.get(kind, part_of(module)) != part_of(module)}
        asked = {question for node in ast.walk(tree) for question in asked_by(node, away, part_of(module))}
        yield from sorted(f"{module}: {question}" for question in asked)


def ours(tree: ast.AST, module: str) -> set[str]:
    """Names that a module has from the package."""
    targets = (target for node in ast.walk(tree) for target in absolute_targets(node, ("spectralgp", module)))
    return {target.rpartition(".")[2] for target in targets if target.startswith("spectralgp")}


def asked_by(node: ast.AST, away: set[str], part: str) -> Iterator[str]:
    """What an expression asks of a kind."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass"):
        yield from (f"{node.func.id} {name}" for name in names_in(node.args[1]) if name in away)
    if not isinstance(node, ast.Compare):
        return
    sides = [node.left, *node.comparators]
    words = {one.value for side in sides for one in ast.walk(side) if isinstance(one, ast.Constant)}
    if any("type" in names_in(side) for side in sides):
        yield from (f"type is {name}" for side in sides for name in names_in(side) if name in away)
        yield from (f"type is called {word!r}" for word in words if word in away)
    last = names_in(node.left)[:1]
    if set(last) & SETTINGS and None in words:
        yield f"{last[0]} is None"
    if set(last) & WORDED and part not in ("model.spectra", "model.kernels", "learning"):
        yield from (f"== {word!r}" for word in words & WORDS)


def names_in(node: ast.AST) -> list[str]:
    """Names and attributes in an expression, the outermost first."""
    found = (one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in ast.walk(node))
    return [name for name in found if name]


def test_nobody_asks_for_a_kind_outside_its_part():
    assert set(questions(PACKAGE, kinds())) == set(DOORS)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from spectralgp.learning import Sqp\nisinstance(x, Sqp)", ["isinstance Sqp"]),
        ("from spectralgp.learning import Sqp\nisinstance(x, str | Sqp)", ["isinstance Sqp"]),
        ("from spectralgp.model.spectra import Exact\nissubclass(x, (int, Exact))", ["issubclass Exact"]),
        ("from spectralgp.model.spectra import Exact\ntype(x) is Exact", ["type is Exact"]),
        ("from spectralgp.model.spectra import Exact\ntype(x).__name__ == 'Exact'", ["type is called 'Exact'"]),
        ("from sklearn.gaussian_process.kernels import Matern\nisinstance(x, Matern)", []),
        ("if task.spectrum is not None: pass", ["spectrum is None"]),
        ("x = 1 if settings is None else 2", ["settings is None"]),
        ("self.kernel == 'precomputed'", ["== 'precomputed'"]),
        ("spectrum in ('auto', 'exact')", ["== 'exact'"]),
        ("n_probes == 'exact'", []),
        ("task.spectrum.refined() is None", []),
        ("isinstance(x, str)", []),
    ],
)
def test_a_question_is_found(tmp_path, text, found):
    homes = {"Sqp": "learning", "Exact": "model.spectra", "Matern": "model.kernels"}
    write_package(tmp_path / "spectralgp", {"report.py": text})
    assert list(questions(tmp_path / "spectralgp", homes)) == [f"report: {one}" for one in found]


def libraries_loaded_by(statement: str) -> set[str]:
    script = f"import sys; {statement}; print(*{{name.split('.')[0] for name in sys.modules}})"
    answer = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"PYTHONPATH": str(PACKAGE.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(answer.stdout.split())


def test_importing_the_package_loads_no_heavy_library():
    assert libraries_loaded_by("import spectralgp").isdisjoint({"numpy", "scipy", "sklearn"})
    loaded = libraries_loaded_by("import spectralgp; spectralgp.GraphGPRegressor")
    # scikit-learn 1.9 loads pandas and rich by itself where they are installed; that is not ours to mend
    of_sklearn = libraries_loaded_by("import sklearn.gaussian_process")
    assert loaded & HEAVY <= of_sklearn
    assert loaded.isdisjoint({"matplotlib", "networkx", "numba", "polars", "xarray"})


def test_importing_the_package_loads_no_part_that_few_need():
    code = (
        "import sys; from spectralgp import GraphGPRegressor, load; "
        "print(*(name for name in sys.modules if name.startswith('spectralgp.')))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    few_need = ("cli", "datasets", "graphs.partitioned", "learning.baselines", "show")
    assert not [name for name in loaded if name.removeprefix("spectralgp.").startswith(few_need)]


def test_names_that_are_imported_late_are_found():
    assert "PartitionedGraph" in dir(spectralgp)
    assert all(hasattr(spectralgp, name) for name in spectralgp.__all__)
    code = "import spectralgp; print(spectralgp.scores.crps([1.0], [0.0], [1.0]).shape, hasattr(spectralgp, 'nothing'))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert answer == "(1,) False\n"
    with pytest.raises(AttributeError, match="has no attribute 'PartitionedGraphs'"):
        spectralgp.PartitionedGraphs  # noqa: B018


def write_package(package: Path, files: dict[str, str]) -> None:
    for name, text in ({"__init__.py": ""} | files).items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
