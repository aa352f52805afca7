"""A pytest plugin for `mutants.py`: runs chosen tests in a chosen order, and notes what they ran and which failed."""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

PACKAGE = str(Path(__file__).resolve().parents[1] / "src" / "spectralgp") + os.sep


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("mutants")
    group.addoption("--notes", help="folder to write notes into, one file a process")
    group.addoption("--chosen", help="JSON list of the tests to run, in order")
    group.addoption("--watch", action="store_true", help="note which functions of the package each test runs")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("notes"):
        config.pluginmanager.register(_Notes(config))


class _Notes:
    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.failed: list[str] = []
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.reached: dict[str, list[tuple[str, int]]] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        chosen = self.config.getoption("chosen")
        if chosen:
            places = {name: place for place, name in enumerate(json.loads(Path(chosen).read_text(encoding="utf-8")))}
            items[:] = sorted((item for item in items if item.nodeid in places), key=lambda item: places[item.nodeid])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        if not self.config.getoption("watch"):
            return (yield)
        codes: set[CodeType] = set()

        def trace(frame: FrameType, event: str, argument: Any) -> None:
            codes.add(frame.f_code)  # calls only: a trace function that gives None sees no lines

        sys.settrace(trace)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            functions = {(code.co_filename, code.co_firstlineno) for code in codes}
            self.reached[item.nodeid] = sorted(
                (file.removeprefix(PACKAGE), line) for file, line in functions if file.startswith(PACKAGE)
            )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        # of a run by several processes the first one hears of all tests, and the others see what they ran
        name = os.environ.get("PYTEST_XDIST_WORKER", "main")
        notes: dict[str, Any] = {"reached": self.reached}
        if name == "main":
            notes |= {"failed": self.failed, "seconds": self.seconds}
        (Path(self.config.getoption("notes")) / f"{name}.json").write_text(json.dumps(notes), encoding="utf-8")
