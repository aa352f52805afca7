"""The report in a real browser: no errors, no network, and controls that work."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from spectralgp import Graph, GraphGPForecaster, GraphGPRegressor, Polynomial
from spectralgp.series import MaternComponent

CHROMIUM = Path("/usr/bin/chromium")
NASTY = "<script>alert(1)</script>"
READY = "html[data-ready=all]"
# what the graphics driver says is about the machine, not the page
DRIVER = "GL Driver Message"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser():
    if not CHROMIUM.exists():
        pytest.skip(f"no {CHROMIUM}: install it with apt-get install chromium")
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield launched
        launched.close()


class Opened:
    """A page with all that it said and asked for."""

    def __init__(self, browser, path, width=1280, scheme="light"):
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.page = self.context.new_page()
        self.requests, self.messages, self.dialogs = [], [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss()))
        self.url = path.as_uri()
        self.page.goto(self.url)
        self.page.wait_for_selector(READY, state="attached")

    def complaints(self):
        return [message for message in self.messages if DRIVER not in message]

    def node_at(self, node):
        """Where a node is on the screen, by the plot's own axes."""
        self.page.locator("#map-plot").scroll_into_view_if_needed()
        script = """(node) => {
            const plot = document.getElementById("map-plot"), trace = plot.data[1];
            const at = trace.customdata.indexOf(node), box = plot.getBoundingClientRect();
            const full = document.getElementById("map-plot")._fullLayout;
            return [box.left + full.xaxis._offset + full.xaxis.l2p(trace.x[at]),
                    box.top + full.yaxis._offset + full.yaxis.l2p(trace.y[at])];
        }"""
        return self.page.evaluate(script, node)

    def hover(self, node, name):
        """What is said of a node; on the way to it the mouse may pass others, of which it is said a moment longer."""
        x, y = self.node_at(node)
        self.page.mouse.move(x + 30, y + 30)
        self.page.mouse.move(x, y, steps=4)
        script = "name => document.querySelector('#map-plot .hoverlayer').textContent.includes(name)"
        self.page.wait_for_function(script, arg=name)
        return self.page.locator("#map-plot .hoverlayer").text_content()


def coloured(page):
    return page.evaluate("Array.from(document.getElementById('map-plot').data[1].marker.color)")


@pytest.fixture(scope="module")
def signals():
    rng = np.random.default_rng(0)
    points = rng.random((50, 2))
    names = [NASTY, "<b>bold</b> & co", *(f"station {node}" for node in range(2, 50))]
    graph = Graph.from_points(points, n_neighbors=4, names=names)
    X = np.arange(20.0)[:, None]
    Y = np.sin(X / 3 + 5 * points[:, 0]) + 0.1 * rng.standard_normal((20, 50))
    Y[0, 4] = np.nan
    return graph, X, Y


@pytest.fixture(scope="module")
def report(signals, tmp_path_factory):
    graph, X, Y = signals
    model = GraphGPRegressor(graph, Polynomial(2)).fit(X, Y)
    return model.report(tmp_path_factory.mktemp("report") / "<i>report.html", title=f"About {NASTY}")


@pytest.fixture
def opened(browser, report):
    one = Opened(browser, report)
    assert one.page.locator("h1").inner_text() == one.page.title() == f"About {NASTY}"
    yield one
    one.context.close()


def test_the_page_opens_without_errors_and_asks_for_nothing(opened):
    opened.page.wait_for_timeout(300)
    assert opened.complaints() == []
    assert opened.requests == [opened.url]
    assert opened.dialogs == []
    assert opened.page.locator(".plot .main-svg").count() >= 5


def test_hover_names_the_node_and_its_value_as_text(opened, signals):
    _, _, Y = signals
    said = opened.hover(0, NASTY)
    assert NASTY in said
    assert f"{Y[0, 0]:.3g}"[:4] in said.replace("\N{MINUS SIGN}", "-")
    readout = opened.page.locator("#readout")
    assert readout.inner_text().startswith(f"{NASTY}: observed {float(f'{Y[0, 0]:.4g}')}")
    assert "<b>bold</b> & co" in opened.hover(1, "bold")
    assert opened.page.locator("#readout b, #readout script").count() == 0
    assert opened.dialogs == []


def test_the_slider_goes_through_the_signals_by_keyboard(opened, signals):
    _, _, Y = signals
    page = opened.page
    first = coloured(page)
    np.testing.assert_allclose(first, np.delete(Y[0], 4), rtol=1e-6)  # what was not observed has no colour
    page.locator("#signal").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "value => Math.abs(document.getElementById('map-plot').data[1].marker.color[0] - value) < 1e-5", arg=Y[2, 0]
    )
    np.testing.assert_allclose(coloured(page), Y[2], rtol=1e-6)
    assert page.locator("#signal-name").inner_text() == "row 2 (3 of 20)"
    assert page.locator("#signal").get_attribute("aria-valuetext") == "row 2"


@pytest.mark.parametrize("field", ["mean", "std", "residual"])
def test_nodes_are_coloured_by_what_is_chosen(opened, signals, field):
    graph, X, Y = signals
    left = GraphGPRegressor(graph, Polynomial(2)).fit(X, Y).leave_one_out()
    expected = {"mean": left.mean[0], "std": left.std[0], "residual": np.delete(Y[0] - left.mean[0], 4)}[field]
    page = opened.page
    before = coloured(page)
    page.locator(f"input[name=field][value={field}]").check()
    page.wait_for_function(
        "(before) => document.getElementById('map-plot').data[1].marker.color[0] !== before", arg=before[0]
    )
    np.testing.assert_allclose(coloured(page), expected, rtol=1e-4, atol=1e-6)


def test_the_table_finds_nodes_by_name_and_holds_their_values(opened, signals):
    _, _, Y = signals
    page = opened.page
    page.locator("#map summary").click()
    page.wait_for_selector("#node-rows tr")
    assert page.locator("#node-rows tr").count() == 50
    assert page.locator("#node-rows th").first.inner_text() == NASTY
    page.locator("#find").fill("STATION 17")
    assert page.locator("#node-rows tr").count() == 1
    assert float(page.locator("#node-rows td").first.inner_text()) == pytest.approx(Y[0, 17], rel=1e-3)
    page.locator("#find").fill("station 4")
    page.locator("#node-rows button").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("#readout").inner_text().startswith("station 4: not observed, predicted")


def drawn_node(page):
    return page.evaluate("document.getElementById('node-plot').data.map((one) => [one.name, Array.from(one.y)])")


def test_a_node_is_drawn_over_the_signals_as_it_is_chosen(opened, signals):
    """By its name, in the table and on the map; its imputed value has an interval."""
    graph, X, Y = signals
    model = GraphGPRegressor(graph, Polynomial(2)).fit(X, Y)
    left, (filled, std) = model.leave_one_out(), model.impute(X, Y)
    page = opened.page
    assert page.locator("#node").input_value() == "4"  # the one with a missing value
    found = dict(drawn_node(page))
    assert list(found) == ["90% interval", "50% interval", "predicted", "observed", "imputed, with its 90% interval"]
    np.testing.assert_allclose(found["predicted"], left.mean[:, 4], rtol=1e-4)
    np.testing.assert_allclose(found["observed"][1:], Y[1:, 4], rtol=1e-4)
    np.testing.assert_allclose(found["imputed, with its 90% interval"], filled[0, 4], rtol=1e-4)
    high = left.mean[:, 4] + 1.6448536 * left.std[:, 4]
    np.testing.assert_allclose(found["90% interval"][:20], high, rtol=1e-4)
    width = page.evaluate("document.getElementById('node-plot').data[4].error_y.array[0]")
    assert width == pytest.approx(1.6448536 * std[0, 4], rel=1e-4)
    page.locator("#node").select_option("17")
    np.testing.assert_allclose(dict(drawn_node(page))["observed"], Y[:, 17], rtol=1e-4)
    assert page.locator("#readout").inner_text().startswith("station 17: ")
    opened.hover(23, "station")
    page.mouse.click(*opened.node_at(23))
    page.wait_for_function("document.getElementById('node').value === '23'")
    np.testing.assert_allclose(dict(drawn_node(page))["observed"], Y[:, 23], rtol=1e-4)


@pytest.fixture(scope="module")
def series(signals, tmp_path_factory):
    graph, _, _ = signals
    rng = np.random.default_rng(0)
    Y = np.zeros((120, 50))
    for row in range(1, 120):
        Y[row] = 0.8 * Y[row - 1] + rng.standard_normal(50)
    Y[100:104, 4] = np.nan
    table = pd.DataFrame(Y, pd.date_range("2020-01-01", periods=120), [str(name) for name in graph.names])
    model = GraphGPForecaster(graph, components=(MaternComponent(0.5),), seasons=None, calendar=None).fit(table[:110])
    return model.report(tmp_path_factory.mktemp("series") / "report.html", table, horizon=10)


@pytest.mark.parametrize("width", [400, 1280])
def test_the_report_of_a_series_opens_without_errors_and_fits_its_window(browser, series, width):
    one = Opened(browser, series, width)
    assert one.page.evaluate("document.documentElement.scrollWidth") <= width
    assert one.complaints() == []
    assert one.requests == [one.url]
    assert one.dialogs == []
    assert one.page.locator("#signal-name").inner_text().startswith("2020-04-20 ")
    assert one.page.locator("input[name=field]:checked").get_attribute("value") == "mean"
    assert len(coloured(one.page)) == 50
    names = [name for name, values in drawn_node(one.page) if any(value is not None for value in values)]
    assert names == ["90% interval", "50% interval", "predicted", "observed", "imputed, with its 90% interval"]
    assert one.page.evaluate("document.getElementById('node-plot')._fullLayout.xaxis.type") == "date"
    assert one.page.locator(".plot .main-svg").count() >= 6
    one.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_the_page_fits_its_window_in_both_schemes(browser, report, width, scheme):
    one = Opened(browser, report, width, scheme)
    assert one.page.evaluate("document.documentElement.scrollWidth") <= width
    legends = """() => [...document.querySelectorAll(".plot")].filter((plot) => plot.querySelector(".legend"))
        .map((plot) => [".modebar", ".legend"].map((part) => plot.querySelector(part).getBoundingClientRect()))
        .map(([bar, legend]) => legend.top >= bar.bottom || legend.right <= bar.left)"""
    assert all(one.page.evaluate(legends))  # beside the buttons or below them
    background = one.page.evaluate("getComputedStyle(document.body).backgroundColor")
    levels = [int(level) for level in re.findall(r"\d+", background)]
    assert (min(levels) > 200) if scheme == "light" else (max(levels) < 60)
    # pictures follow the scheme too
    paper = one.page.evaluate("document.getElementById('map-plot')._fullLayout.paper_bgcolor")
    assert (paper == "#ffffff") == (scheme == "light")
    one.page.emulate_media(color_scheme="dark" if scheme == "light" else "light")
    one.page.wait_for_function(
        "(before) => document.getElementById('map-plot')._fullLayout.paper_bgcolor !== before", arg=paper
    )
    assert one.complaints() == []
    one.context.close()


def test_no_button_sends_anything_anywhere(opened):
    buttons = opened.page.locator(".modebar-btn")
    titles = {buttons.nth(place).get_attribute("data-title") for place in range(buttons.count())}
    assert titles == {"Download plot as a PNG", "Zoom", "Pan", "Zoom in", "Zoom out", "Reset axes"}


def test_edges_can_be_left_out(opened, signals):
    graph, _, _ = signals
    edges = "document.getElementById('map-plot')._fullData[0]"
    lines = "#map-plot .scatterlayer .js-line"
    assert opened.page.evaluate(f"{edges}.x.length") == 3 * graph.n_edges
    assert opened.page.locator(lines).count() == graph.n_edges
    opened.page.locator("#with-edges").uncheck()
    opened.page.wait_for_function(f"{edges}.visible === false")
    assert opened.page.locator(lines).count() == 0
    opened.page.locator("#with-edges").check()
    opened.page.wait_for_function(f"{edges}.visible === true")
    start, end = opened.page.evaluate(
        "(() => { const [edges] = document.getElementById('map-plot')._fullData;"
        "return [[edges.x[0], edges.y[0]], [edges.x[1], edges.y[1]]]; })()"
    )
    row, column = (int(np.argmin(np.abs(graph.coordinates - place).sum(axis=1))) for place in (start, end))
    assert graph.weights.toarray()[row, column] == graph.weights.toarray().max()  # the heaviest first


def test_twenty_thousand_nodes_are_drawn_by_webgl(browser, tmp_path):
    rng = np.random.default_rng(0)
    points = rng.random((20_000, 2))
    graph = Graph.from_points(points, n_neighbors=8)
    X = rng.standard_normal((16, 1))
    Y = np.sin(X + 6 * points[:, 0]) + 0.3 * rng.standard_normal((16, 20_000))
    path = GraphGPRegressor(graph, Polynomial(2), residual=None).fit(X, Y).report(tmp_path / "large.html")
    assert path.stat().st_size < 15e6
    one = Opened(browser, path)
    assert one.page.evaluate("document.getElementById('map-plot').data[1].type") == "scattergl"
    np.testing.assert_allclose(coloured(one.page), Y[0], rtol=1e-5)
    assert not one.page.locator("#with-edges").is_checked()
    one.page.locator("#signal").focus()
    one.page.keyboard.press("End")
    one.page.wait_for_function(
        "(value) => Math.abs(document.getElementById('map-plot').data[1].marker.color[0] - value) < 1e-5",
        arg=float(Y[15, 0]),
    )
    assert one.hover(7, "node ").startswith("node ")
    assert one.complaints() == []
    assert one.requests == [one.url]
    one.context.close()
