"""The examples of the gallery run, draw, and compute what their words say."""

import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.stats import binom

GALLERY = Path(__file__).resolve().parents[2] / "docs" / "gallery"


def failed_sensors(names):
    assert names["error"] < names["spread"] / 2
    assert np.isnan(names["known"][25:35, 10]).all()  # the station that is drawn
    # of 98 values 84 to 96% may be inside 90% intervals by chance
    n_hidden = np.count_nonzero(names["hidden"])
    low, high = np.array(binom.interval(0.95, n_hidden, 0.9)) / n_hidden
    assert low <= names["inside"] <= high


def choose_kernel(names):
    densities = dict(names["densities"])
    assert densities.pop("no graph") < min(densities.values())
    for name in densities:
        smooth, rough = names["models"][name].response()[[0, -1]]
        assert smooth > 2 * rough


def large_graph(names):
    assert names["graph"].n_nodes == 20_000
    assert "Quadrature" in type(names["model"].spectrum_).__name__
    assert names["model"].noise_variance_ == pytest.approx(0.09, rel=0.03)
    assert names["error"] < 0.1 * np.std(names["new"])


def carry_over(names):
    assert names["ours"] < names["unchanged"] < names["level"]
    smooth, rough = names["model"].response(which="carry")[[0, -1]]
    assert smooth > 2 * rough > 0
    assert names["given_a_kernel"] > names["unchanged_incomes"]
    assert names["by_default"] < 1.02 * names["unchanged_incomes"]


def intervals(names):
    hidden = names["hidden"]
    z = (names["measured"] - names["completed"])[hidden] / names["std"][hidden]
    assert 0.5 < np.mean(np.abs(z) < 0.674) < 0.56  # a little more than half in a Gaussian's middle half
    assert np.mean(z**4) > 3.2 * np.mean(z**2) ** 2  # while the tails are heavier: a Gaussian has three
    assert 0.88 < names["covered"] < 0.95
    assert names["halved"] < 0.75


def saved_model(names):
    assert names["same"]
    assert names["loaded"] is not names["model"]


def transfer(names):
    assert 0.85 * names["plain"] < names["error"] < names["plain"]  # "a little better"
    assert len(names["others"]) == 15


def classes(names):
    assert names["right"].mean() > 0.75
    assert names["right"][names["sure"]].mean() > 0.9
    assert np.all(np.abs(names["stated"] - names["found"]) < 0.2)  # of 30 papers each
    assert np.count_nonzero(~names["others"]) == 20


def counts(names):
    raw, rates = names["raw"], names["rates"]
    assert raw.min() < 0.1 * rates.min()
    assert raw.max() > 1.5 * rates.max()
    # the fewer births, the nearer to the common rate
    spread = np.abs(np.log(rates[0] / np.median(rates)))
    few = names["births"][0] < np.median(names["births"])
    assert np.mean(np.abs(raw - rates)[0][few]) > np.mean(np.abs(raw - rates)[0][~few])
    assert spread.max() < 1.1


def heavy_tails(names):
    errors = names["errors"]
    assert errors["student_t"] < 0.5 * errors["gaussian"]
    assert names["models"]["student_t"].likelihood_.freedom < 4
    assert 0.02 < np.mean(names["wrong"]) < 0.06


# in the order of the gallery, which is that of the names of the files
CLAIMS = (
    failed_sensors,
    choose_kernel,
    carry_over,
    intervals,
    large_graph,
    saved_model,
    transfer,
    classes,
    counts,
    heavy_tails,
)
EXAMPLES = {f"plot_{number:02}_{claim.__name__}": claim for number, claim in enumerate(CLAIMS, start=1)}


def test_every_example_is_checked():
    assert sorted(path.stem for path in GALLERY.glob("*.py")) == list(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_computes_what_its_words_say(name):
    try:
        EXAMPLES[name](runpy.run_path(str(GALLERY / f"{name}.py")))
        assert plt.get_fignums()
    finally:
        plt.close("all")
