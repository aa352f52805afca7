import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import oracle
from cases import GRAPHS, KERNELS, WEIGHTS
from spectralgp.model.fields import graph_gp
from spectralgp.model.kernels import Diffusion, Polynomial
from tolerances import FORMULA

INPUTS = np.array([[0.0], [0.7], [2.0]])


def test_the_prior_asks_for_the_spectrum_of_its_kernel():
    graph = GRAPHS["random"]
    for kernel in (Diffusion(), Polynomial(2), Polynomial(2, scaled=False)):
        spectrum = graph_gp(graph, kernel, None, 0.1).spectrum
        assert (spectrum.laplacian, spectrum.scaled) == (kernel.laplacian, kernel.scaled)
        expected = np.linalg.eigvalsh(oracle.laplacian(WEIGHTS["random"], kernel.laplacian, kernel.scaled))
        assert oracle.relative_error(spectrum.eigenvalues, expected) < FORMULA
    unscaled = graph_gp(graph, Polynomial(2, scaled=False), None, 0.1)
    assert unscaled.graph_kernel.upper == unscaled.spectrum.eigenvalues[-1]


@pytest.mark.parametrize("noise", [False, True])
@pytest.mark.parametrize("name", ["Polynomial(3)", "LocalAverage"])
def test_samples_have_the_covariance_of_the_model(name, noise):
    """Equation (3)."""
    case = KERNELS[name]
    prior = graph_gp(GRAPHS["disconnected"], case.kernel, RBF(), 0.3)
    assert prior.sample(INPUTS, 5, np.random.default_rng(0)).shape == (5, 3, 8)
    mean, found = oracle.law_of(lambda state: prior.sample(INPUTS, 1, state, include_noise=noise))
    dense = case.dense(case.kernel, WEIGHTS["disconnected"])
    assert not mean.any()
    assert oracle.relative_error(found, oracle.covariance(oracle.rbf(INPUTS, INPUTS), dense, 0.3 * noise)) < FORMULA


# Errors


@pytest.mark.parametrize("kernel", ["diffusion", RBF(), None, Diffusion])
def test_the_graph_kernel_must_be_one(kernel):
    with pytest.raises(
        TypeError, match=r"graph_kernel must be a graph kernel such as Polynomial\(3\).*wrap it in Response"
    ):
        graph_gp(GRAPHS["ring"], kernel, None, 0.1)


@pytest.mark.parametrize("noise", [0.0, -1.0, np.nan, np.inf])
def test_the_noise_must_be_positive(noise):
    with pytest.raises(ValueError, match=f"noise_variance must be a finite number above 0; got {noise}"):
        graph_gp(GRAPHS["ring"], Diffusion(), None, noise)


def test_the_graph_must_be_one():
    with pytest.raises(TypeError, match="graph must be"):
        graph_gp(WEIGHTS["ring"], Diffusion(), None, 0.1)
