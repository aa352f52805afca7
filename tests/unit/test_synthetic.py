import numpy as np
import pytest
from numpy.polynomial.polynomial import polyval

from spectralgp import Graph
from spectralgp.datasets import barabasi_albert_graph, draw_filtered_signals, draw_inverse_wishart, sensor_graph
from tolerances import STANDARD_ERRORS

BAND_PASS = (0.0, 1.0, 4.0, 1.0, -6.0)


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("n_nodes", [3, 30, 80])
def test_sensors_are_joined_within_reach_and_to_their_two_nearest(n_nodes):
    graph = sensor_graph(n_nodes, generator())
    weights, places = graph.weights.toarray(), graph.coordinates
    reach = 2 / np.sqrt(n_nodes)
    for a in range(n_nodes):
        distances = np.array([np.hypot(*(places[a] - place)) for place in places])
        nearest = sorted(set(range(n_nodes)) - {a}, key=lambda b: distances[b])[:2]
        for b in range(n_nodes):
            if b == a:
                continue
            if distances[b] < reach or b in nearest:
                assert weights[a, b] == pytest.approx(np.exp(np.log(0.6) * distances[b] ** 2 / reach**2), rel=1e-12)
            elif weights[a, b]:  # then it is the other one that counts this among its nearest
                others = np.delete(np.hypot(*(places - places[b]).T), b)
                assert distances[b] <= np.sort(others)[1] + 1e-12
    assert graph.is_connected


def test_a_grown_graph_has_the_links_asked_for():
    graph = barabasi_albert_graph(30, generator(), n_initial=10, n_links=5)
    weights = graph.weights.toarray()
    assert graph.is_connected
    assert set(weights.ravel()) == {0.0, 1.0}
    assert not weights[:10, :10].any()
    for node in range(10, 30):
        assert weights[node, :node].sum() == 5


def passed_over(n_links: int, n_twos: int, n_ones: int) -> float:
    """Chance that a node of weight 6 is not among the links drawn one by one, beside nodes of weights 2 and 1."""
    if n_links == 0:
        return 1.0
    total = 6 + 2 * n_twos + n_ones
    by_two = 2 * n_twos / total * passed_over(n_links - 1, n_twos - 1, n_ones) if n_twos else 0.0
    by_one = n_ones / total * passed_over(n_links - 1, n_twos, n_ones - 1) if n_ones else 0.0
    return by_two + by_one


@pytest.mark.slow
def test_growth_prefers_nodes_with_many_links():
    # the eleventh node has five links when the twelfth comes, half of the first ten have one, the others none
    n_draws = 300
    drawn = [barabasi_albert_graph(30, generator(seed)).weights[10, 11] for seed in range(n_draws)]
    expected = 1 - passed_over(5, 5, 5)
    assert expected > 0.75  # without preference it would be 5 / 11
    assert abs(np.mean(drawn) - expected) < STANDARD_ERRORS * np.sqrt(expected * (1 - expected) / n_draws)


def test_filtered_signals_have_the_power_of_the_filter():
    graph = sensor_graph(20, generator(1))
    drawn = draw_filtered_signals(graph, BAND_PASS, 4000, generator(2), snr=10.0)
    laplacian = graph.laplacian().toarray()
    eigenvalues, vectors = np.linalg.eigh(laplacian / np.linalg.eigvalsh(laplacian)[-1])
    response = polyval(eigenvalues, BAND_PASS)
    amplitude = drawn.graph_kernel.response([0.7])[0] / polyval(0.7, BAND_PASS)
    power = np.mean((drawn.signals @ vectors) ** 2, axis=0)
    expected = (amplitude * response) ** 2 + 0.1
    assert np.all(np.abs(power - expected) < STANDARD_ERRORS * expected * np.sqrt(2 / 4000))
    assert np.std(drawn.clean) == pytest.approx(1, rel=1e-12)
    assert drawn.noise_variance == pytest.approx(0.1, rel=1e-12)


@pytest.mark.parametrize("snr", [20.0, 0.0, -3.0])
def test_noise_is_added_at_the_ratio(snr):
    graph = sensor_graph(40, generator())
    drawn = draw_filtered_signals(graph, BAND_PASS, 500, generator(3), snr=snr)
    noise = drawn.signals - drawn.clean
    ratio = np.var(drawn.clean) / np.var(noise)
    assert abs(ratio / 10 ** (snr / 10) - 1) < STANDARD_ERRORS * np.sqrt(2 / noise.size)


def test_signals_covary_as_told():
    covariance = np.array([[2.0, 1.2], [1.2, 1.0]])
    # a constant filter keeps the nodes independent, so that they are so many draws
    ring = Graph.from_edges([(node, (node + 1) % 400) for node in range(400)])
    pairs = [
        draw_filtered_signals(ring, [1.0], 2, generator(seed), input_covariance=covariance).clean for seed in range(20)
    ]
    found = np.mean([np.corrcoef(pair)[0, 1] for pair in pairs])
    expected = 1.2 / np.sqrt(2.0)
    assert abs(found - expected) < STANDARD_ERRORS * (1 - expected**2) / np.sqrt(400 * 20)
    with pytest.raises(ValueError, match="input_covariance must have shape"):
        draw_filtered_signals(ring, [1.0], 3, generator(), input_covariance=covariance)


def test_inverse_wishart_draws_have_inverses_with_the_mean_of_a_wishart():
    draws = np.array([np.linalg.inv(draw_inverse_wishart(4, generator(seed))) for seed in range(2000)])
    # a Wishart matrix of n degrees of freedom has mean n I, and variances 2 n on the diagonal and n off it
    errors = (draws.mean(axis=0) - 4 * np.eye(4)) / np.sqrt((4 + 4 * np.eye(4)) / 2000)
    assert np.max(np.abs(errors)) < STANDARD_ERRORS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_nodes": 10}, "n_nodes must be an integer of at least 11"),
        ({"n_links": 11}, "n_links must be .* at most 10"),
        ({"n_links": 0}, "n_links must be an integer of at least 1"),
        ({"n_initial": 0}, "n_initial must be an integer of at least 1"),
    ],
)
def test_growth_refuses_what_it_cannot_grow(arguments, message):
    with pytest.raises(ValueError, match=message):
        barabasi_albert_graph(**({"n_nodes": 30, "random_state": generator()} | arguments))
