"""One signal: level, effects and scale in closed form, strengths and noise on a grid, kernels stacked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
from scipy.linalg import qr
from scipy.special import chdtri, gammaln, logsumexp, softmax

from spectralgp._basics.arrays import few_threads
from spectralgp._basics.checks import Array
from spectralgp.graphs import LAPLACIANS
from spectralgp.learning.candidates import TERMS, Candidate, Choices
from spectralgp.learning.draws import Draws
from spectralgp.learning.fit import Certificate, Fit, Outcome, Stage
from spectralgp.learning.objective import NOISE_SHARE, Task
from spectralgp.learning.search import ComparedModel, WeightedCandidates, without_negligible
from spectralgp.learning.weights import stacking_weights
from spectralgp.model.fields import GraphGP
from spectralgp.model.fields.shrinkage import t_log_density
from spectralgp.model.kernels import GraphKernel, Identity
from spectralgp.model.kernels.named import Matern
from spectralgp.model.likelihoods import Gaussian
from spectralgp.model.spectra import Spectrum

FEWEST_FREE, MOST_OBSERVED = 4, 2_000  # values less effects; values, whose covariance is decomposed at each strength
RATIOS = np.logspace(-3, 1.5, 19)  # of noise to the signal's variance, or of this to the values' if noise is known
RATIO_SPREAD = 2.5  # prior standard deviation of the logarithm of the former, about `NOISE_SHARE`
N_STRENGTHS, N_SCANNED = 12, 400
ROUGHEST, SMOOTHEST = 0.9, 0.004  # power at a middle and at the lowest frequency, relative to that of a constant
N_DRAWN = 64  # models of the mixture
QUANTILES = np.arange(0.1, 1.0, 0.2)  # of the scale of normal models, where noise differs or there are covariates


class Integrated(NamedTuple):
    """Answers for a kernel, with noise ratios along the last axis."""

    log_evidence: Array
    variances: Array  # posterior means of the scale
    coefficients: Array  # of the effects
    left_out: Array  # log density of each value given all others


def integrated(covariance: Array, effects: Array, values: Array, ratios: Array, is_noise_known: bool) -> Integrated:
    """Integrate effects, with a flat prior, and scale of ``y ~ N(T beta, t (G + r I))``: equations (19g), (19h), (19j).

    The prior of the scale is ``1 / t``, unless the noise ``t r = 1`` is known.
    """
    contrasts = qr(effects)[0][:, effects.shape[1] :]
    eigenvalues, axes = np.linalg.eigh(contrasts.T @ covariance @ contrasts)
    directions, freedom = contrasts @ axes, len(eigenvalues)
    rotated, spectrum = (directions.T @ values)[:, None], np.maximum(eigenvalues, 0.0)[:, None] + ratios
    solution, precisions = directions @ (rotated / spectrum), np.square(directions) @ (1 / spectrum)
    squares, own = np.sum(np.square(rotated) / spectrum, axis=0), np.square(solution) / precisions
    logs, tails = -0.5 * np.sum(np.log(spectrum), axis=0), np.inf if is_noise_known else freedom - 1
    if is_noise_known:
        variances = rest = 1 / ratios
        logs -= 0.5 * (squares / variances + freedom * np.log(2 * np.pi * variances))
    else:
        variances, rest = squares / (freedom - 2), (squares - own) / (freedom - 3)
        logs += gammaln(freedom / 2) - 0.5 * freedom * np.log(np.pi * squares)
    coefficients = np.linalg.lstsq(effects, values[:, None] - covariance @ solution - ratios * solution, rcond=None)[0]
    return Integrated(logs, variances, coefficients, t_log_density(own / rest, np.log(rest / precisions), 1, tails))


def strengths(kernel: GraphKernel, spectrum: Spectrum) -> list[GraphKernel]:
    """Kernel at strengths from hardly any smoothing to a constant per component; itself if its shape is fixed."""
    search, bound = kernel.search(), kernel.bind(spectrum)
    free, bounds = np.array(search.parameter_names) != "amplitude", search.bounds(1.0)
    if not search.has_free_amplitude or np.sum(free) > 1 or not np.all(np.isfinite(bounds)):
        raise ValueError(
            "graph_kernel must hold kernels with a free amplitude and at most one further parameter, between bounds, "
            f"to integrate over those of one signal; got {kernel!r}. Ask for it alone, or for Matern() or Diffusion()."
        )
    if not free.any():
        return [bound]
    (low, high), values = bounds[free][0], spectrum.eigenvalues[spectrum.eigenvalues > 1e-9 * spectrum.upper]
    points = np.linspace(low, high, N_SCANNED)
    if kernel.shares_eigenvectors:
        scanned = [bound.with_theta(np.where(free, one, bound.theta)) for one in points]
        constant, lowest, middle = np.array([one.power([0.0, values[0], np.median(values)]) for one in scanned]).T
        is_apt = (middle <= ROUGHEST * constant) & (lowest >= SMOOTHEST * constant)
        points = points[is_apt] if is_apt.any() else points
    chosen = np.linspace(points[0], points[-1], N_STRENGTHS)
    return [bound.with_theta(np.where(free, one, bound.theta)) for one in chosen]


def is_integrated(choices: Choices) -> bool:
    """Whether there is one signal of a few normal values with a level, and kernels are left open or several."""
    task, signals = choices.setting.task, choices.setting.task.signals
    own, is_free = task.observed_by, isinstance(choices.setting.residual, str | None)
    if signals.shape[0] != 1 or not is_free or not (choices.is_open or len(choices.kernels) > 1):
        return False
    n_effects = len(task.centred_at) if own is None else len(own.columns)
    is_normal = signals.units.relative is None if own is None else own.likelihood.name == "gaussian"
    is_small = task.spectrum.has_node_covariances and FEWEST_FREE <= signals.size - n_effects <= MOST_OBSERVED
    is_learnt = task.prior is not None and not isinstance(task.noise_variance, tuple) and task.graph.n_edges > 0
    return n_effects > 0 and is_normal and is_small and is_learnt and signals.variance > 0


class Grid(NamedTuple):
    """Models of one kernel at all points of the grid."""

    models: list[GraphGP]
    shares: Array  # posterior probabilities of the points
    log_evidence: float
    levels: Array | None  # that all nodes share, unless sites have them
    left_out: Array  # log density of each value given all others

    def draws(self, n_nodes: int, n_drawn: int) -> Draws:
        """Models of a number of points, by systematic resampling, with their levels."""
        drawn = np.searchsorted(np.cumsum(self.shares)[:-1], (np.arange(n_drawn) + 0.5) / n_drawn)
        places, counts = np.unique(drawn, return_counts=True)
        levels = None if self.levels is None else np.outer(self.levels[places], np.ones(n_nodes))
        return Draws(tuple(self.models[place] for place in places), 0, counts / n_drawn, levels)

    def fit(self) -> Fit:
        """Fit with the most probable model, and the evidence of all."""
        detail = f"level, effects and scale in closed form, the rest at {len(self.models)} points of a grid"
        certificate, stages = Certificate(0.0, 0.0, 0.0, 0.0, ()), (Stage("grid", self.log_evidence, len(self.models)),)
        model, evidence = replace(self.models[int(np.argmax(self.shares))], scale_freedom=None), self.log_evidence
        known = (model, evidence, evidence, certificate, Outcome.CONVERGED, detail, stages)
        return Fit(*known, method="conditioned on the observed values alone")


def _model(task: Task, spectrum: Spectrum, kernel: GraphKernel, noise: float, tails: float, is_known: bool) -> GraphGP:
    """Model of values with their noise, or of latent signals with sites, whose noise is white only in part."""
    own = task.observed_by
    if own is None:
        return GraphGP(spectrum, kernel, task.input_kernel, noise, scale_freedom=tails)
    likelihood: Any = own.likelihood
    if likelihood.scale is None:
        likelihood, noise = Gaussian(float(np.sqrt(noise))), 0.01 * noise
    elif not is_known:
        noise = max(noise - likelihood.scale**2, 0.01 * noise)
    return GraphGP(spectrum, kernel, task.input_kernel, noise, likelihood=likelihood)


def grid_of(task: Task, kernel: GraphKernel) -> Grid:
    """Integrate at each strength and noise ratio of a kernel."""
    nodes, own, known = np.flatnonzero(task.signals.observed[0]), cast(Any, task.observed_by), task.known_noise
    effects, noise, is_known = np.ones((nodes.size, 1)), np.full(nodes.size, known or 1.0), known is not None
    if own is not None:
        effects, scale, beside = own.columns[:, 0, nodes].T, own.likelihood.scale, own.beside[0, nodes]
        is_known = is_known and scale is not None
        noise = beside if scale is None else known + scale**2 * beside if is_known else noise
    freedom, spectrum, roots = int(np.subtract(*effects.shape)), task.spectrum_of(kernel), np.sqrt(noise)[:, None]
    # without a graph, signal and noise are alike
    ratios = 1 / (RATIOS * task.variance) if is_known else RATIOS[::6] if kernel.needs_no_graph else RATIOS
    widths = np.ones(1) if own is None or is_known else (freedom - 2) / chdtri(freedom, QUANTILES)
    prior = 0.0 * ratios if is_known else -0.5 * np.square(np.log(ratios / NOISE_SHARE) / RATIO_SPREAD)
    values, models, found = task.signals.as_observed[0, nodes] / roots[:, 0], list[GraphGP](), list[Integrated]()
    for shape in strengths(kernel, spectrum):
        basis: Any = shape.basis(spectrum)
        power, rows = shape.power(basis.eigenvalues), basis.eigenvectors[nodes] / roots
        with few_threads(nodes.size):
            covariance = (rows * (power / np.mean(power))) @ rows.T
            found.append(integrated(covariance, effects / roots, values, ratios, is_known))
        unit = np.mean(power) * task.input_kernel.covariance(task.inputs)[0, 0]
        for variance, ratio in zip(np.outer(found[-1].variances, widths), ratios, strict=True):
            scaled = [shape.scaled_by(float(np.sqrt(one / unit))) for one in variance]
            noises = [known if known and is_known else float(one * ratio) for one in variance]
            tails = np.inf if is_known else float(freedom)
            models += [_model(task, spectrum, *one, tails, is_known) for one in zip(scaled, noises, strict=True)]
    logs, _, coefficients, left_out = (np.concatenate(one, axis=-1) for one in zip(*found, strict=True))
    logs += np.tile(prior - logsumexp(prior), len(found)) - np.log(len(found))
    densities = logsumexp(left_out + (logs - logsumexp(logs)), axis=1) - np.log(roots[:, 0])
    shares = np.repeat(softmax(logs) / widths.size, widths.size)
    return Grid(models, shares, float(logsumexp(logs)), coefficients[0] if own is None else None, densities)


def learn_one_signal(choices: Choices) -> tuple[WeightedCandidates, list[Fit], list[Draws]]:
    """Integrate over the parameters of each kernel, and stack the kernels by leaving out each value in turn.

    As with several signals, models have the weights that predict best what was left out, and all that is learnt within
    a model follows from its evidence.
    """
    *_, scale = choices.setting.signals
    task = choices.setting.task_with(scale, False, TERMS)
    kernels: Any = [*(Matern(2.0, laplacian=kind) for kind in LAPLACIANS), Identity()]
    kernels = kernels if choices.is_open else choices.kernels
    grids = [grid_of(task, kernel) for kernel in kernels]
    candidates = [Candidate(task, kernel, name=kernel.label) for kernel in kernels]
    densities = np.stack([grid.left_out for grid in grids], axis=1)
    weights = stacking_weights(densities, prior=1.0)
    weights = without_negligible(weights, None) if choices.is_open else weights
    rows = zip(candidates, (densities.sum(axis=0) - task.signals.log_volume).tolist(), weights.tolist(), strict=True)
    compared = tuple(ComparedModel(one.described, score, weight) for one, score, weight in rows)
    kept = [place for place, weight in enumerate(weights) if weight or not choices.is_open]
    fits, shares = [grids[place].fit() for place in kept], weights[kept]
    numbers = np.maximum(np.ceil(N_DRAWN * shares), 2).astype(int).tolist()
    draws = [grids[place].draws(task.graph.n_nodes, number) for place, number in zip(kept, numbers, strict=True)]
    return WeightedCandidates([candidates[place] for place in kept], shares, fits, compared), fits, draws
