import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import hypothesis
import pytest

from spectralgp import GraphGPRegressor, Polynomial
from spectralgp._basics.progress import reporting_to
from spectralgp.learning import draws

IN_CI = os.environ.get("CI", "").lower() in {"1", "true"}
# beside the checkout: the released files are not part of the repository
SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
DATA_FILES = ("city45data.mat", "smhi_temp_17.mat", "traffic_delay_san_francisco.mat", "A_cerebellum.mat")

os.environ["MPLBACKEND"] = "Agg"  # of the processes that tests start, too

# no deadline: the first example pays for imports and decompositions, and the machines are shared
# --hypothesis-profile=thorough is what make test-all runs
for profile, n_examples in {"default": 30, "thorough": 200, "long": 1_000}.items():
    hypothesis.settings.register_profile(profile, deadline=None, max_examples=n_examples, derandomize=IN_CI)
hypothesis.settings.load_profile("default")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Folder of the paper's data: SPECTRALGP_DATA, or ../shared/data beside the checkout."""
    named = os.environ.get("SPECTRALGP_DATA")
    folder = Path(named).expanduser() if named else SHARED_DATA
    # a folder asked for by name and absent is a mistake, not a reason to skip
    if named and not folder.is_dir():
        raise FileNotFoundError(f"SPECTRALGP_DATA must name an existing folder; got {named!r}.")
    missing = [name for name in DATA_FILES if not (folder / name).is_file()]
    if missing:
        pytest.skip(f"the paper's data are not here: {', '.join(missing)}. Set SPECTRALGP_DATA to their folder")
    return folder


@pytest.fixture(scope="session", autouse=True)
def nowhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The paper's data are neither in the user's cache nor on the network, but where a test says."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("https_proxy", "http://127.0.0.1:9/")
        patch.setenv("no_proxy", "127.0.0.1")  # servers of tests are on this machine
        yield


@pytest.fixture(scope="module")
def learnt_values() -> Iterator[None]:
    """Predictions of small models by their learnt values alone, as dense formulas have them: nothing is averaged."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(draws, "VALUES_PER_PARAMETER", 0)
        yield


@pytest.fixture(scope="module")
def quick_demo() -> Iterator[None]:
    """The demonstration of the command line with a quick model and one other method."""
    from spectralgp.cli import showcase  # which loads matplotlib, whose backend is set above

    quick = GraphGPRegressor(showcase.made_outages().graph, Polynomial(1), residual=None)
    run = partial(showcase.run_demo, model=quick, methods={"Interpolation": showcase.interpolate})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(showcase, "run_demo", run)
        yield


class Listener:
    """Names of steps that ended, texts of activities within them, and both in the order of their reports."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.mentions: list[str] = []
        self.heard: list[str] = []

    def __call__(self, step: str) -> None:
        self.steps.append(step)
        self.heard.append(step)

    def mention(self, text: str) -> None:
        self.mentions.append(text)
        self.heard.append(text)


@pytest.fixture
def listener() -> Iterator[Listener]:
    """The listener of all work in a test."""
    with reporting_to(found := Listener()):
        yield found


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start what takes long first, so that no process is left with it at the end."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def _skipped(config: pytest.Config) -> int:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    # the workers of pytest-xdist have no reporter; the controller counts for them
    if reporter is None or hasattr(config, "workerinput"):
        return 0
    return len(reporter.stats.get("skipped", []))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI a skipped test is a failed run: everything that CI is to check must have run."""
    if IN_CI and session.exitstatus == pytest.ExitCode.OK and _skipped(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if IN_CI and (count := _skipped(config)):
        terminalreporter.write_line(f"FAILED: {count} skipped, and in CI no test may be skipped", red=True)
