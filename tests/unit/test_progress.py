"""Bars are drawn on the error stream, for those who ask, where a person looks."""

import os
import subprocess
import sys
from contextlib import redirect_stderr
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import spectralgp
from cases import Terminal
from spectralgp import Graph, Identity, Task, read_signals
from spectralgp._basics.progress import announce, progress_bar
from spectralgp.learning import Candidate, Folds, Stacking

pty = pytest.importorskip("pty")

WORK = """
from spectralgp._basics.progress import progress_bar
with progress_bar("fit", 3, show={show}) as progress:
    for step in ("one", "two", "three"):
        if progress is not None:
            progress(step)
print("a result")
"""


@pytest.fixture
def terminal():
    """A terminal that is the error stream while it is entered."""
    return redirect_stderr(Terminal())


def drawn_in_a_terminal(show=True):
    """What the work writes to an error stream that is a terminal, and to a piped output stream."""
    ours, theirs = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TTY_")}
    environment |= {"PYTHONPATH": str(Path(spectralgp.__file__).parents[1]), "TERM": "xterm", "COLUMNS": "80"}
    process = subprocess.Popen(
        [sys.executable, "-c", WORK.format(show=show)], env=environment, stdout=subprocess.PIPE, stderr=theirs
    )
    os.close(theirs)
    pieces = []
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # how Linux says that the other side hung up
            break
        if not piece:
            break
        pieces.append(piece)
    os.close(ours)
    output = process.communicate()[0].decode()
    assert process.returncode == 0
    return b"".join(pieces).decode(), output


def draw(steps=("one", "two", "three"), show=True):
    with progress_bar("fit", 3, show) as progress:
        for step in steps:
            if progress is not None:
                progress(step)
    return progress


def test_a_terminal_gets_a_bar_and_the_output_stream_nothing_but_results():
    drawn, output = drawn_in_a_terminal()
    assert "fit: three done" in drawn
    assert "3/3" in drawn
    assert drawn.endswith("\n")
    assert output == "a result\n"


def test_a_terminal_gets_nothing_where_none_was_asked_for():
    assert drawn_in_a_terminal(show=False) == ("", "a result\n")


def test_a_piped_error_stream_gets_nothing(capsys):
    assert draw() is None
    assert capsys.readouterr() == ("", "")


def test_no_error_stream_at_all_is_no_error():
    with redirect_stderr(None):  # as in a Windows program without a console
        assert draw() is None


def test_a_bar_without_a_total_counts(terminal):
    with terminal as drawn, progress_bar("fit", None, show=True) as progress:
        progress("one")
        progress.mention("step 3 of the second")
        progress("two")
    assert "fit: two done: 2 [" in drawn.getvalue().split("\r")[-1]


def test_what_is_mentioned_is_drawn(terminal):
    with terminal as drawn, progress_bar("fit", 3, show=True) as progress:
        progress("one")
        progress.mention("step 3 of two")
    assert "fit: step 3 of two:  33%" in drawn.getvalue().split("\r")[-1]


def test_what_is_announced_is_a_line_of_its_own_at_once(terminal):
    """What is only mentioned is drawn now and then, and so may not be before the work that it is about has ended."""
    with terminal as drawn, progress_bar("fit", 3, show=True) as progress:
        announce("about 5 minutes")
        assert "about 5 minutes\n" in drawn.getvalue().split("\r")
        progress("one")


def test_an_error_under_a_bar_ends_its_line_and_goes_on(terminal):
    with terminal as drawn, pytest.raises(KeyboardInterrupt), progress_bar("fit", 3, show=True):
        raise KeyboardInterrupt
    assert drawn.getvalue().endswith("\n")


def test_bars_may_be_nested(terminal):
    with terminal as drawn, progress_bar("outer", 1, show=True) as outer:
        draw()
        outer("all")
    assert "fit: three" in drawn.getvalue()
    assert "outer: all" in drawn.getvalue()


@pytest.mark.parametrize(("shell", "is_drawn"), [(SimpleNamespace(kernel=object()), True), (SimpleNamespace(), False)])
def test_a_notebook_without_widgets_gets_a_line_of_text(monkeypatch, capsys, shell, is_drawn):
    """A notebook's shell has a kernel behind it, that of a terminal has none."""
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    draw()
    output, errors = capsys.readouterr()
    assert output == ""
    assert ("fit: three done" in errors) == ("3/3" in errors) == is_drawn


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_what_folds_mention_is_heard(n_jobs, listener):
    """Threads that learn folds side by side have the listener of the one that started them."""
    rng = np.random.default_rng(0)
    signals = rng.standard_normal((12, 4))
    signals[0, 0] = np.nan  # completed in steps, which are mentioned
    graph = Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    task = Task.of(graph, None, np.empty((12, 0)), read_signals(signals))
    folds = Folds((12, 1), Stacking(n_folds=3, n_jobs=n_jobs), np.random.default_rng(0))
    folds.score([Candidate(task, Identity())])
    after = listener.heard[listener.heard.index("fold 1 of 3") :]
    assert set(after) & set(listener.mentions)
