"""What notebooks show: a diagram of the estimator, and tables of a graph and a fit, in which names are text."""

from html.parser import HTMLParser

import numpy as np

from spectralgp import Graph, GraphGPRegressor, PartitionedGraph, Polynomial

NASTY = "<script>alert(1)</script>"
PATH = Graph.from_edges([(NASTY, "b"), ("b", "c & d"), ("c & d", "e"), ("e", "f"), ("f", "g")])


class Cells(HTMLParser):
    """Headers and cells of a table, in order, and every tag that was opened."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag in ("th", "td"):
            self.texts.append("")

    def handle_data(self, data):
        if self.texts:
            self.texts[-1] += data

    @property
    def rows(self):
        return dict(zip(self.texts[::2], self.texts[1::2], strict=True))


def shown_of(thing):
    return Cells(thing._repr_html_())


def test_a_graph_shows_its_numbers_and_its_names_as_text():
    shown = shown_of(PATH)
    assert shown.rows == {
        "nodes": "6",
        "edges": "5",
        "components": "1",
        "names": f"{NASTY}, b, c & d, e, f, ...",
        "coordinates": "none",
    }
    assert "script" not in shown.tags
    assert shown_of(Graph.edgeless(2)).rows["names"] == "none"


def test_a_partitioned_graph_shows_its_cut(tmp_path):
    rows = shown_of(PartitionedGraph.from_graph(PATH, 2, tmp_path / "g", partitioner="contiguous", n_hops=1)).rows
    assert (rows["edges cut"], rows["partitions"]) == ("1", "2, of 3 to 3 nodes (contiguous)")


def test_a_fit_shows_how_it_ended():
    signals = np.random.default_rng(0).standard_normal((8, 6)).cumsum(axis=1)
    model = GraphGPRegressor(PATH, Polynomial(1), residual=None).fit(np.arange(8.0)[:, None], signals)
    (fit,) = model.fits_
    rows = shown_of(fit).rows
    assert rows["graph kernel"] == "Polynomial(1)"
    assert rows["converged"] == "yes"
    assert rows["log likelihood"] == f"{fit.log_likelihood:.2f}"
    assert rows["missing values"] == "every value was observed"
    assert "Polynomial(1)" in rows["stages"]


def test_the_estimator_shows_scikit_learn_s_diagram():
    text = GraphGPRegressor(PATH, Polynomial(1))._repr_html_()
    assert "GraphGPRegressor" in text
    assert "<script>alert" not in text
