"""What only some users need may be missing: the rest works, and what does not says how to install it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import spectralgp
from spectralgp.datasets.released import cache_folder

pytestmark = pytest.mark.slow  # each in a process of its own

HIDE = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden())
"""


ANSWER = """
import numpy as np
from spectralgp import Graph, GraphGPRegressor, Polynomial
x = np.arange(6.0)[:, None]
model = GraphGPRegressor(Graph.from_edges([(0, 1)]), Polynomial(1)).fit(x, np.sin(x + np.arange(2)) + x % 2)
model.set_output(predict="{}").predict(x)
"""


def run(script, *hidden):
    """Output and error of a script in an environment without some libraries."""
    environment = {**os.environ, "PYTHONPATH": str(Path(spectralgp.__file__).parents[1])}
    ended = subprocess.run(
        [sys.executable, "-c", HIDE.format(hidden=set(hidden)) + script],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return ended.returncode, ended.stdout, ended.stderr


def test_a_bare_installation_fits_and_predicts():
    """NumPy, SciPy and scikit-learn with what they need: nothing else is asked for, not even by a bar."""
    script = (
        "import numpy as np\n"
        "from spectralgp import Graph, GraphGPRegressor, Polynomial\n"
        "ring = Graph.from_edges([(n, (n + 1) % 9) for n in range(9)])\n"
        "rng = np.random.default_rng(0)\n"
        "model = GraphGPRegressor(ring, Polynomial(1), verbose=1).fit(rng.random((5, 1)), rng.random((5, 9)))\n"
        "print(model.predict(rng.random((2, 1))).shape)\n"
    )
    libraries = ("numba", "matplotlib", "typer", "rich", "pooch", "pandas", "networkx", "polars", "pyarrow", "xarray")
    assert run(script, *libraries) == (0, "(2, 9)\n", "")


FILES = """
from spectralgp import Graph
from spectralgp.files import graphs, signals
graph = Graph.from_edges([("a", "b")])
"""


@pytest.mark.parametrize(
    ("script", "library", "extra"),
    [
        (FILES + "signals.signals_from_file('table.csv', graph)", "pandas", "cli"),
        (FILES + "signals.signals_from_file('table.parquet', graph)", "pyarrow", "parquet"),
        (FILES + "graphs.graph_from_file('graph.graphml')", "networkx", "networkx"),
        ("import spectralgp.show.plots", "matplotlib", "plots"),
        ("from spectralgp.datasets.released import cache_folder; cache_folder()", "pooch", "data"),
        ("from spectralgp.__main__ import main; main()", "typer", "cli"),
        ("from spectralgp.__main__ import main; main()", "rich", "cli"),
        *((ANSWER.format(library), library, library) for library in ("pandas", "polars", "pyarrow", "xarray")),
    ],
)
def test_what_is_missing_says_how_to_install_it(script, library, extra, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    code, _, error = run(script, library)
    assert code != 0
    assert f"{library} must be installed " in error
    assert f"pip install 'spectralgp[{extra}]'." in error
    if "main()" in script:
        assert "Traceback" not in error


def test_a_library_that_lacks_something_itself_is_not_called_missing(monkeypatch, tmp_path):
    (tmp_path / "pooch.py").write_text("import nothing_of_this_name")
    monkeypatch.delitem(sys.modules, "pooch", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="nothing_of_this_name"):
        cache_folder()
