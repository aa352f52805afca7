"""Sdist and wheel: built from the checkout, complete, and used as a new user uses them."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import snippets
import spectralgp

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"


# a package that PYTHONPATH leads to would be taken for one that is installed
SETTINGS = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}


def run(*command, cwd=None, path=os.environ["PATH"]):
    """What a command prints, once it has ended well."""
    env = SETTINGS | {"PATH": path}
    done = subprocess.run([str(word) for word in command], cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Sdist, and wheel built from it, as make dist does."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


@pytest.fixture(scope="module")
def typed(built, tmp_path_factory):
    """A shell for commands in an environment that has the wheel, and beside it only what others made."""
    _, wheel = built
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel)
    # paths named in a .pth file are searched last, and theirs are not followed: no editable install comes with them
    site_packages = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    others = {sysconfig.get_path("purelib"), *(path for path in sys.path if path.endswith("site-packages"))}
    (Path(site_packages) / "others.pth").write_text("\n".join(sorted(others)))
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"

    def shell(line, cwd):
        return run("sh", "-c", line, cwd=cwd, path=path)

    return shell


def test_the_wheel_has_all_that_the_package_has(built):
    _, wheel = built
    package = ROOT / "src"
    there = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith(".")
    }
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {name for name in names if ".dist-info/" not in name} == there
    expected = {
        "py.typed",
        "show/report/page.html",
        "show/report/page.js",
        "show/report/page.css",
        "datasets/data/air_quality.csv",
    }
    assert {f"spectralgp/{name}" for name in expected} <= names
    assert f"spectralgp-{spectralgp.__version__}.dist-info/licenses/LICENSE" in names


def test_the_sdist_has_what_tests_and_documentation_need(built):
    sdist, _ = built
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    single = ["Makefile", "pyproject.toml", "LICENSE", "CITATION.cff", ".ci/run", ".github/workflows/tests.yml"]
    pages = [path.name for path in ROOT.glob("*.md")]
    folders = [
        path.relative_to(ROOT).as_posix()
        for folder in ("tests", "docs", "benchmarks", "reproduction")
        for suffix in ("py", "md", "sgp", "npz", "png", "json", "txt", "rst", "css")
        for path in (ROOT / folder).rglob(f"*.{suffix}")
        if "generated" not in path.parts
    ]
    assert {*single, *pages, *folders} <= names
    assert not [
        name for name in names if "__pycache__" in name or name.startswith((".venv", "build", "docs/generated"))
    ]


def test_the_installed_package_is_the_wheels(typed, tmp_path):
    place = Path(typed("python -c 'import spectralgp; print(spectralgp.__file__)'", tmp_path).strip())
    assert ROOT not in place.parents
    assert typed("spectralgp --version", tmp_path).split()[-1] == spectralgp.__version__
    assert typed("python -m spectralgp --version", tmp_path).split()[-1] == spectralgp.__version__


@pytest.mark.slow
def test_commands_of_the_readme_lead_from_files_to_a_report(typed, tmp_path):
    """Typed one after the other in an empty folder, with the installed command; comments say what they print."""
    lines = snippets.commands_of(README)
    assert len(lines) == 11
    for line in lines:
        snippets.check_command(line, typed(line, tmp_path), tmp_path)
    for page in ("report.html", "map.html"):
        assert "<!doctype html>" in (tmp_path / page).read_text(encoding="utf-8")[:100].lower()
    filled = (tmp_path / "filled.csv").read_text(encoding="utf-8").splitlines()
    assert filled[0].startswith("year,Alabama,Alabama lower,Alabama upper,")
    assert {len(line.split(",")) for line in filled} == {1 + 3 * 48}
    assert "" not in filled[1].split(",")
    assert (tmp_path / "maine.png").read_bytes()[1:4] == b"PNG"
