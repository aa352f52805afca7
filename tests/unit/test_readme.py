"""The README's example runs as it stands, and says what it prints."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]


def example() -> str:
    block, *_ = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    return block


def test_the_example_runs_and_its_intervals_hold(capsys):
    names: dict[str, object] = {}
    exec(compile(example(), "README.md", "exec"), names)
    density, inside, *_ = capsys.readouterr().out.split("\n")
    assert float(density) > 100  # changes of a few per cent: far denser than one nat a node
    assert 0.9 <= float(inside) <= 1.0
    weights = names["model"].kernel_weights_
    assert weights.shape == (6,)
    np.testing.assert_allclose(weights.sum(), 1)
    smooth, rough = names["model"].response([0.0, 1.0])
    assert smooth > 3 * rough  # neighbouring states move together


def test_every_file_the_readme_points_to_exists():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (ROOT / target).exists(), target
