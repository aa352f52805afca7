"""What the documentation of a public name says of its defaults is what they are."""

from __future__ import annotations

import inspect
import re

import pytest

import spectralgp

NAMES = [name for name in spectralgp.__all__ if callable(getattr(spectralgp, name))]


@pytest.mark.parametrize("name", NAMES)
def test_defaults_are_those_of_the_signature(name):
    thing = getattr(spectralgp, name)
    parameters = inspect.signature(thing).parameters
    for parameter, default in re.findall(r"^(\w+) : .*default=(.+)$", inspect.getdoc(thing) or "", re.MULTILINE):
        assert parameters[parameter].default == eval(default, vars(spectralgp)), parameter
