from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

import spectralgp
from spectralgp import Identity, Polynomial, cli, demo
from spectralgp.cli.demonstration import COLUMNS
from spectralgp.cli.tables import table_of

FEW = {"standard": Identity(), "learnt": Polynomial(1)}


@pytest.fixture
def invoke(monkeypatch):
    """Run a command in a narrow terminal, as a user without a wide one has it."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(demo, "KERNELS", FEW)
    return lambda *arguments: CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


@pytest.fixture
def finished(invoke, tmp_path):
    return invoke("demo", "--out", tmp_path / "pictures")


def test_the_demo_prints_its_table_and_where_the_pictures_are(finished, tmp_path):
    assert finished.exit_code == 0, finished.output
    expected = demo.run_demo(tmp_path / "again", graph_kernels=FEW)
    printed = finished.stdout
    for row in expected.rows:
        (line,) = re.findall(rf"^\s*{row.kernel} .*$", printed, flags=re.MULTILINE)
        numbers = [
            f"{row.log_evidence:.1f}",
            f"{row.leave_one_out:.2f}",
            f"{row.held_out:.2f}",
            f"({row.held_out_error:.2f})",
            f"{row.rmse:.3f}",
            f"{row.coverage:.1%}",
        ]
        assert line.split() == [row.kernel, *numbers]
    assert " ".join(expected.conclusion.split()) in " ".join(printed.split())
    assert f"{expected.no_change_rmse:.3f} for assuming no change" in " ".join(printed.split())
    for picture in sorted((tmp_path / "pictures").iterdir()):
        assert f"  {picture}\n" in printed
    assert printed.rstrip().endswith("predictions.png")


def test_the_table_fits_eighty_columns(finished):
    table = finished.stdout.split("Log evidence:")[0]
    assert max(map(len, table.splitlines())) <= 80
    assert "…" not in table


def test_every_kernels_name_fits_the_table(monkeypatch):
    row = demo.Row("", -3233.76, -106.84, -94.65, 0.83, 1.473, 0.978)
    full = tuple(demo.Row(name, *list(vars(row).values())[1:]) for name in demo.KERNELS)
    console = Console(width=80)
    with console.capture() as capture:
        console.print(table_of(full, COLUMNS))
    assert all(name in capture.get() for name in demo.KERNELS)


def test_the_best_numbers_are_bold():
    rows = (demo.Row("a", -2.0, -1.0, -3.0, 0.1, 1.0, 0.9), demo.Row("b", -1.0, -2.0, -4.0, 0.1, 2.0, 0.8))
    evidence, leave_one_out, held_out, error, coverage = [
        list(column.cells) for column in table_of(rows, COLUMNS).columns[1:]
    ]
    assert evidence == ["-2.0", "[bold]-1.0[/bold]"]
    assert leave_one_out == ["[bold]-1.00[/bold]", "-2.00"]
    assert held_out == ["[bold]-3.00 (0.10)[/bold]", "-4.00 (0.10)"]
    assert error == ["[bold]1.000[/bold]", "2.000"]
    assert coverage == ["90.0%", "80.0%"]


def test_only_results_go_to_the_output_stream(finished):
    assert finished.stdout.startswith("Yearly changes of relative income in 48 US states")
    assert "pictures" not in finished.stdout.split("Pictures:")[0]


def test_pictures_go_to_demo_output_by_default(invoke, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert invoke("demo").exit_code == 0
    assert {path.name for path in (tmp_path / "demo-output").iterdir()} == {
        "filters.png",
        "maps.png",
        "predictions.png",
    }


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


def test_help_names_the_commands(invoke):
    answer = invoke("--help")
    assert answer.exit_code == 0
    assert "demo" in answer.stdout


def test_the_version_is_the_packages(invoke):
    answer = invoke("--version")
    assert (answer.exit_code, answer.stdout) == (0, f"spectralgp {spectralgp.__version__}\n")


def test_python_m_spectralgp_runs():
    source = Path(spectralgp.__file__).parents[1]
    answer = subprocess.run(
        [sys.executable, "-W", "error", "-m", "spectralgp", "--version"],
        env=os.environ | {"PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
    )
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, f"spectralgp {spectralgp.__version__}\n", "")


def test_main_is_the_entry_point(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["spectralgp", "--version"])
    with pytest.raises(SystemExit, match="0"):
        cli.main()
    assert spectralgp.__version__ in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["--all"], ["--quick", "--out", "x"], ["noise"], ["--help"]])
def test_reproduce_says_where_it_went(invoke, arguments):
    answer = invoke("reproduce", *arguments)
    assert answer.exit_code == 2
    assert answer.stdout == ""
    (line,) = answer.stderr.splitlines()
    assert "`make reproduce` or `python -m reproduction`" in line


def test_help_does_not_offer_what_is_gone(invoke):
    assert "reproduce" not in invoke("--help").output
