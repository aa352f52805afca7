"""Snippets of the documentation: run as they stand, in order, and held against what their comments say."""

import re
import shlex
from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

NUMBER = r"-?\d+\.?\d*(?:e-?\d+)?"


# libraries that the tests do not have: a snippet that begins with "# in <library>" is parsed, and not run
ELSEWHERE = ("GPyTorch", "GeometricKernels")


def _blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def _is_elsewhere(snippet: str) -> bool:
    return snippet.startswith(tuple(f"# in {library}\n" for library in ELSEWHERE))


def snippets_of(page: Path) -> list[str]:
    """Python snippets of a page that can be run, in order."""
    return [snippet for snippet in _blocks(page, "python") if not _is_elsewhere(snippet)]


def elsewhere_of(page: Path) -> list[str]:
    """Python snippets of a page that are written for libraries that the tests do not have."""
    return [snippet for snippet in _blocks(page, "python") if _is_elsewhere(snippet)]


def commands_of(page: Path) -> list[str]:
    """Commands of a page as they are typed, comments and all, in order."""
    return [line for block in _blocks(page, "sh") for line in block.splitlines() if line]


def check_command(line: str, printed: str, folder: Path) -> None:
    """What a command that was typed in a folder wrote and printed is what its options and its comment say."""
    program, *arguments = shlex.split(line, comments=True)
    assert program == "spectralgp"
    comment = line.partition("  # ")[2]
    for share in re.findall(r"[\d.]+%(?! intervals)", comment):
        assert share in printed, line
    for name in re.findall(r"\w+\.csv", comment):
        assert (folder / "files" / name).exists(), line
    for option, path in pairwise(arguments):
        assert option not in ("--out", "--std") or (folder / path).exists(), line


def run(page: Path) -> tuple[list[list[str]], dict[str, object]]:
    """What each snippet prints, line by line, all of them run in one session as a reader would; and its names."""
    names: dict[str, object] = {}
    printed: list[list[str]] = []
    for snippet in snippets_of(page):
        lines: list[str] = []
        names["print"] = lambda *values, lines=lines: lines.append(" ".join(map(str, values)))
        exec(compile(snippet, page.name, "exec"), names)
        printed.append(lines)
    plt.close("all")  # a reader looks at them; the next test must not find them
    return printed, names


def numbers_in(text: str) -> list[str]:
    """Numbers of a line, as text."""
    return re.findall(NUMBER, text)


def shown(snippet: str) -> list[str]:
    """The comments behind calls of print."""
    return [line.partition("  # ")[2] for line in snippet.splitlines() if line.startswith("print(")]


def leading_numbers(comment: str) -> list[str]:
    """Numbers that a comment begins with: those before the first word of prose."""
    return numbers_in(re.match(rf"[\[(,\s]*(?:{NUMBER}[\]),\s]*)*", comment).group())


def check(page: Path, printed: list[list[str]]) -> None:
    """Every comment behind a print says what was printed: its first numbers, or its first words."""
    for snippet, lines in zip(snippets_of(page), printed, strict=True):
        for comment, line in zip(shown(snippet), lines, strict=True):
            expected = leading_numbers(comment)
            if not expected:
                assert comment.startswith(line), (comment, line)
                continue
            for text, value in zip(expected, numbers_in(line), strict=True):
                digits = len(text.partition(".")[2])
                assert float(value) == pytest.approx(float(text), abs=0.51 * 10.0**-digits), (comment, line)
