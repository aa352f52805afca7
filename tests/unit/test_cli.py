import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import spectralgp
from spectralgp import cli
from spectralgp.__main__ import main
from spectralgp.cli import installation
from spectralgp.cli import showcase as demo


@pytest.fixture(scope="module")
def invoke(quick_demo):
    """Run a command in a narrow terminal, as a user without a wide one has it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "80")
        yield lambda *arguments: CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    return tmp_path_factory.mktemp("demo") / "pictures"


@pytest.fixture(scope="module")
def finished(invoke, pictures):
    return invoke("demo", "--out", pictures)


def test_the_demo_prints_its_table_and_where_the_picture_is(finished, pictures, tmp_path):
    assert finished.exit_code == 0, finished.output
    expected = demo.run_demo(tmp_path / "again")
    printed = finished.stdout
    for row in expected.rows:
        (line,) = re.findall(rf"^\s*{row['method']} .*$", printed, flags=re.MULTILINE)
        inside = "-" if row["coverage"] is None else f"{row['coverage']:.1%}"
        assert line.split() == [row["method"], f"{row['rmse']:.3f}", f"{row['mean_error']:.3f}", inside]
    assert " ".join(expected.conclusion.split()) in " ".join(printed.split())
    assert printed.rstrip().endswith(f"  {pictures / demo.PICTURE}")


def test_a_folder_that_cannot_be_made_is_one_line_and_status_1(invoke, tmp_path):
    (tmp_path / "file").write_text("")
    answer = invoke("demo", "--out", tmp_path / "file" / "folder")
    assert answer.exit_code == 1
    (line,) = answer.stderr.strip().splitlines()
    assert line.startswith("error: ")
    assert "folder" in line
    assert answer.stdout == ""


@pytest.mark.parametrize("arguments", [["nothing"], ["demo", "--no-such-option"], ["demo", "--out", __file__]])
def test_mistakes_in_arguments_have_status_2(invoke, arguments):
    answer = invoke(*arguments)
    assert answer.exit_code == 2
    assert "Traceback" not in answer.output
    assert arguments[-1].lstrip("-")[:10] in answer.stderr


def test_help_names_the_commands_in_a_line_each(invoke):
    answer = invoke("--help")
    assert answer.exit_code == 0
    shown = [line.strip("│ \n").split(maxsplit=1) for line in answer.stdout.splitlines()]
    assert list(get_command(cli.app).commands) == list(cli.COMMANDS)
    assert [line for line in shown if line and line[0] in cli.COMMANDS] == [
        [name, command.short_help] for name, command in get_command(cli.app).commands.items()
    ]


def test_without_a_command_there_is_help_and_no_option_of_typers_own(invoke):
    answer, helped = invoke(), invoke("--help")
    assert answer.output.strip() == helped.output.strip()
    assert "completion" not in helped.output
    (callback,) = [one for one in helped.output.splitlines() if "--version" in one]
    assert "Print the version and stop." in callback


@pytest.mark.parametrize(
    "typed", [["--help"], ["--version"], *([name, "--help"] for name in cli.COMMANDS)], ids=" ".join
)
def test_help_and_version_load_no_heavy_library(typed):
    script = (
        f"import sys; sys.argv = ['spectralgp', *{typed!r}]\n"
        "from spectralgp.__main__ import main\n"
        "try: main()\n"
        "except SystemExit as end: print(end.code, *{name.split('.')[0] for name in sys.modules})"
    )
    source = str(Path(spectralgp.__file__).parents[1])
    answer = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=True,
    )
    code, *loaded = answer.stdout.splitlines()[-1].split()
    assert code == "0"
    assert {"spectralgp", "typer"} <= set(loaded)
    assert set(loaded).isdisjoint({"numpy", "scipy", "sklearn", "pandas", "matplotlib", "numba", "msgspec", "plotly"})


LIMITS = {
    "aspect": (0.1, None), "held_out": (0.01, 0.9), "level": (0.01, 0.99), "neighbors": (1, None),
    "seed": (0, 2**32 - 1), "steps": (1, None),
}  # fmt: skip
NEW = {"out", "std", "lower", "upper", "scores"}  # paths that are written


def test_options_are_off_and_within_limits_and_files_are_where_they_should_be():
    limited = set()
    for command, run in cli.COMMANDS.items():
        for one in inspect.signature(run).parameters.values():
            kind, (told, *_) = one.annotation.__origin__, one.annotation.__metadata__
            place = f"{command} --{one.name}"
            assert kind is not bool or one.default is False, place
            if kind in (Path, Path | None):
                is_folder = command in ("demo", "example")
                assert told.exists == (one.name not in NEW), place
                assert (told.dir_okay, told.file_okay) == (is_folder, not is_folder), place
            elif one.name in LIMITS or (told.min, told.max) != (None, None):
                assert (told.min, told.max) == LIMITS[one.name], place
                limited.add(one.name)
    assert limited == set(LIMITS)


class Runtime:
    """CuPy's, of a machine with two devices."""

    getDeviceCount = staticmethod(lambda: 2)
    getDeviceProperties = staticmethod(lambda place: {"name": f"device {place}".encode()})


def test_devices_are_those_of_the_first_library_that_can_tell(monkeypatch):
    torch = SimpleNamespace(cuda=SimpleNamespace(device_count=lambda: 2, get_device_name=lambda place: f"card {place}"))
    cupy, broken = SimpleNamespace(cuda=SimpleNamespace(runtime=Runtime)), SimpleNamespace(cuda=None)
    monkeypatch.setattr(installation, "find_spec", lambda name: None)
    assert installation.cuda_devices() == []
    for libraries, found in (
        ({"torch": torch, "cupy": cupy}, ["card 0", "card 1"]),
        ({"cupy": cupy}, ["device 0", "device 1"]),
        ({"torch": broken, "cupy": cupy}, ["device 0", "device 1"]),
        ({"torch": broken}, []),
    ):
        with monkeypatch.context() as patch:
            for name, library in libraries.items():
                patch.setitem(sys.modules, name, library)
            assert installation.cuda_devices() == found


def test_what_is_not_installed_is_said_with_how_to_install_it(invoke, monkeypatch):
    monkeypatch.setattr(installation, "installed_version", {"numpy": "2.0.0", "rich": "13.1"}.get)
    lines = invoke("info").stdout.splitlines()
    assert lines[0].startswith(f"spectralgp {spectralgp.__version__}, Python 3.")
    assert "  numpy         2.0.0" in lines
    assert "  pandas        not installed: pip install 'spectralgp[pandas]'" in lines
    assert lines[-2].startswith(f"cores: {os.cpu_count()}; threads of linear algebra: ")
    assert json.loads(invoke("info", "--json").stdout)["libraries"]["scipy"] is None


def test_the_version_is_the_packages(invoke):
    answer = invoke("--version")
    assert (answer.exit_code, answer.stdout) == (0, f"spectralgp {spectralgp.__version__}\n")


def test_main_is_the_entry_point(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["spectralgp", "--version"])
    with pytest.raises(SystemExit, match="0"):
        main()
    assert spectralgp.__version__ in capsys.readouterr().out
