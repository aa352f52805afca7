from __future__ import annotations

import errno

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread
from scipy.linalg import cho_factor, cho_solve
from scipy.stats import multivariate_normal, norm

from spectralgp import GlobalFilter, Identity, Polynomial, PseudoInverse
from spectralgp.datasets import load_us_income
from spectralgp.demo import KERNELS, LEFT_OUT, income_changes, run_demo
from tolerances import EXACT, FORMULA

FEW = {"standard": Identity(), "learnt": Polynomial(2)}


@pytest.fixture(scope="module")
def steps():
    return []


@pytest.fixture(scope="module")
def result(tmp_path_factory, steps):
    folder = tmp_path_factory.mktemp("demo") / "made" / "here"
    return run_demo(folder, steps.append, FEW)


def test_the_data_are_changes_from_one_year_to_the_next():
    data, incomes = income_changes(), load_us_income()
    np.testing.assert_array_equal(data.years, np.arange(1960, 1990))
    np.testing.assert_array_equal(data.held_out_years, np.arange(1990, 2010))
    logs = np.log(incomes.incomes)
    relative = logs - logs.mean(axis=1, keepdims=True)
    position = list(incomes.years).index(1990)
    np.testing.assert_allclose(data.held_out_inputs[0], relative[position - 1], atol=1e-12)
    np.testing.assert_allclose(data.held_out_signals[0], 100 * (relative[position] - relative[position - 1]), atol=1e-9)
    # the level of the year to predict is never among the inputs
    np.testing.assert_allclose(data.inputs[-1] + data.signals[-1] / 100, data.held_out_inputs[0], atol=1e-12)


def test_the_numbers_are_those_of_the_dense_model(result):
    data = result.data
    for row, fit in zip(result.rows, result.fits.values(), strict=True):
        spectrum = fit.spectrum_
        nodes = (spectrum.eigenvectors * fit.graph_kernel_.power(spectrum.eigenvalues)) @ spectrum.eigenvectors.T
        noise = fit.noise_variance_
        offset = data.signals.mean()
        inputs = np.vstack([data.inputs, data.held_out_inputs])
        covariance = fit.kernel_(inputs)
        n_signals, n_nodes = data.signals.shape
        joint = np.kron(covariance[:n_signals, :n_signals], nodes) + noise * np.eye(n_signals * n_nodes)
        centred = (data.signals - offset).ravel()
        factor = cho_factor(joint, lower=True)
        log_determinant = 2 * np.log(np.diag(factor[0])).sum()
        evidence = -0.5 * (centred @ cho_solve(factor, centred) + log_determinant + centred.size * np.log(2 * np.pi))
        assert row.log_evidence == pytest.approx(evidence, rel=FORMULA)

        means, spreads, densities = [], [], []
        for index, observed in enumerate(data.held_out_signals):
            new = n_signals + index
            cross = np.kron(covariance[[new], :n_signals], nodes)
            solved = cho_solve(factor, np.column_stack([centred, cross.T]))
            mean = offset + cross @ solved[:, 0]
            predicted = covariance[new, new] * nodes + noise * np.eye(n_nodes) - cross @ solved[:, 1:]
            means.append(mean)
            spreads.append(np.sqrt(np.diag(predicted)))
            densities.append(multivariate_normal(mean, (predicted + predicted.T) / 2).logpdf(observed))
        assert row.held_out == pytest.approx(np.mean(densities), rel=FORMULA)
        assert row.held_out_error == pytest.approx(np.std(densities, ddof=1) / np.sqrt(20), rel=1e-7)
        errors = data.held_out_signals - np.array(means)
        assert row.rmse == pytest.approx(np.sqrt(np.mean(errors**2)), rel=FORMULA)
        assert row.coverage == np.mean(np.abs(errors) <= norm.ppf(0.95) * np.array(spreads))


def test_leaving_out_one_year_is_deleting_it(result):
    data, row = result.data, result.rows[-1]
    fit = result.fits["learnt"]
    nodes = fit.fits_[0].model.node_covariance()
    covariance = fit.kernel_(data.inputs)
    expected = []
    for left_out in range(len(data.signals)):
        kept = np.delete(np.arange(len(data.signals)), left_out)
        # by frequency, where the joint covariance falls apart
        power, vectors = np.linalg.eigh(nodes)
        spectral = (data.signals - data.signals.mean()) @ vectors
        total = 0.0
        for j in range(power.size):
            block = power[j] * covariance[np.ix_(kept, kept)] + fit.noise_variance_ * np.eye(kept.size)
            cross = power[j] * covariance[left_out, kept]
            mean = cross @ np.linalg.solve(block, spectral[kept, j])
            variance = power[j] + fit.noise_variance_ - cross @ np.linalg.solve(block, cross)
            total += norm(mean, np.sqrt(variance)).logpdf(spectral[left_out, j])
        expected.append(total)
    assert row.leave_one_out == pytest.approx(np.mean(expected), rel=FORMULA)


def test_the_baseline_is_no_change(result):
    data = result.data
    assert result.no_change_rmse == pytest.approx(np.sqrt(np.mean(data.held_out_signals**2)), rel=EXACT)


def test_the_pictures_are_there_and_hold_something(result):
    assert [picture.name for picture in result.pictures] == ["filters.png", "maps.png", "predictions.png"]
    for picture in result.pictures:
        assert picture.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
        pixels = imread(picture)[::5, ::5]
        assert min(pixels.shape[:2]) > 50
        assert len(np.unique(pixels.reshape(-1, pixels.shape[2]), axis=0)) > 20
    assert plt.get_fignums() == []


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_disk_that_fills_up_costs_no_picture_that_was_there(tmp_path, monkeypatch, error):
    names = ["filters.png", "maps.png", "predictions.png"]
    for name in names:
        (tmp_path / name).write_bytes(b"good")
    save = Figure.savefig

    def fill_up(figure, path, **options):
        save(figure, path, **options)
        if len(figure.axes) == 6:  # the maps with their colour bars, the second picture
            with open(path, "r+b") as file:
                file.truncate(1000)
            raise error

    monkeypatch.setattr(Figure, "savefig", fill_up)
    with pytest.raises(type(error)):
        run_demo(tmp_path, graph_kernels=FEW)
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert len(imread(tmp_path / "filters.png")) > 50  # written whole before the disk was full
    assert {(tmp_path / name).read_bytes() for name in names[1:]} == {b"good"}


def test_every_step_is_reported(result, steps):
    assert steps == ["standard", "learnt", "pictures"]


def test_the_conclusion_says_what_the_numbers_say(result):
    data, learnt = result.data, result.fits["learnt"]
    densities = [
        fit.log_predictive_density(data.held_out_inputs, data.held_out_signals, joint=False)
        for fit in result.fits.values()
    ]
    gain = densities[1] - densities[0]
    power = learnt.graph_kernel_.power(learnt.spectrum_.eigenvalues)
    assert "Neighbouring states move together" in result.conclusion
    assert f"smooth patterns {power[:16].mean() / power[-16:].mean():.0f} times the variance" in result.conclusion
    assert f"{gain.mean():+.1f} ± {gain.std(ddof=1) / np.sqrt(20):.1f} nats" in result.conclusion
    assert f"{result.rows[-1].rmse:.2f}%, is no better than the {result.no_change_rmse:.2f}%" in result.conclusion
    assert f"hold {result.rows[-1].coverage:.0%} of the held-out values and so are too wide" in result.conclusion


def test_without_a_graph_states_are_said_to_move_independently(tmp_path):
    result = run_demo(tmp_path, graph_kernels={"standard": Identity()})
    assert "move independently" in result.conclusion
    assert "+0.0 ± 0.0 nats" in result.conclusion


def test_the_kernels_compared_start_without_and_end_with_a_learnt_graph_kernel():
    kernels = list(KERNELS.values())
    assert isinstance(kernels[0], Identity)
    assert kernels[-2] == Polynomial("auto")
    assert kernels[-1] is None  # the default, which has more than one graph kernel


def test_what_is_said_of_the_kernel_left_out_is_so(tmp_path):
    kernels = {"left out": PseudoInverse(), "global": GlobalFilter(), "learnt": Polynomial(3)}
    with pytest.warns(UserWarning, match="the noise is at its lower bound"):
        result = run_demo(tmp_path, graph_kernels=kernels)
    left_out, *others = result.rows
    assert f"log evidence {left_out.log_evidence:.0f}, held-out {left_out.held_out:.1f}" in LEFT_OUT
    assert all(left_out.log_evidence > row.log_evidence and left_out.held_out > row.held_out for row in others)
    # without the constant mode, which holds nothing by construction, the order turns
    rest = []
    for fit in result.fits.values():
        variances = fit.posterior_.covariance(fit.spectrum_.eigenvalues).variances[:, 1:]
        rest.append(norm(0, np.sqrt(variances)).logpdf(fit.posterior_.block[:, 1:]).sum())
    assert np.ptp(fit.spectrum_.eigenvectors[:, 0]) < EXACT
    assert rest[0] < min(rest[1:])


def test_nothing_to_compare_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="graph_kernels must name at least one kernel; got none"):
        run_demo(tmp_path, graph_kernels={})


def test_a_folder_that_cannot_be_made_costs_no_work(tmp_path):
    (tmp_path / "file").write_text("")
    calls = []
    with pytest.raises(OSError, match="file"):
        run_demo(tmp_path / "file" / "folder", calls.append)
    assert calls == []
