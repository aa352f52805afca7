"""What the documentation says of defaults is what they are, and switches of commands are off until asked for."""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import pytest

import spectralgp
from spectralgp.cli import COMMANDS

ALONE = "spectralgp.__main__"  # which runs when it is loaded


def documented() -> Iterator[tuple[str, Any]]:
    """Everything in the package that has a docstring and a signature: classes, functions and methods."""
    for info in pkgutil.walk_packages(spectralgp.__path__, "spectralgp."):
        if info.name != ALONE:
            module = importlib.import_module(info.name)
            for thing in [one for one in vars(module).values() if getattr(one, "__module__", None) == info.name]:
                parts = vars(thing).values() if isinstance(thing, type) else ()
                methods = [one.__func__ if isinstance(one, classmethod | staticmethod) else one for one in parts]
                for one in (thing, *methods):
                    if (inspect.isfunction(one) or isinstance(one, type)) and one.__doc__:
                        yield f"{info.name}.{one.__qualname__}", one


def test_defaults_are_those_of_the_signature():
    n_found = 0
    for name, thing in documented():
        stated = re.findall(r"^(\w+) : .*default=(.+)$", inspect.getdoc(thing) or "", re.MULTILINE)
        for parameter, default in stated:
            found = inspect.signature(thing).parameters[parameter].default
            assert found == eval(default, vars(spectralgp) | vars(inspect.getmodule(thing))), f"{name}: {parameter}"
            n_found += 1
    assert n_found > 80


@pytest.mark.parametrize("command", COMMANDS)
def test_switches_are_off_until_they_are_asked_for(command):
    """No file is replaced, no traceback shown and no JSON printed unasked."""
    parameters = inspect.signature(COMMANDS[command]).parameters.values()
    switches = {one.name: one.default for one in parameters if isinstance(one.default, bool)}
    assert not any(switches.values()), switches
