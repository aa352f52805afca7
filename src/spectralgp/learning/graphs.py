"""Learning of a graph's weights by the gradient of the evidence in its Laplacian, and fits on several graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import minimize

from spectralgp._basics.checks import Array, Indices, Mask
from spectralgp._basics.progress import mention, quietly
from spectralgp.graphs import Graph, GraphBase, GraphParameters, LaplacianKind, WeightFamily
from spectralgp.learning.candidates import Candidate, Choices, GraphOf, learn_all
from spectralgp.learning.fit import Solver
from spectralgp.learning.fitting import FittedModels, fit_models
from spectralgp.learning.missing import expectation_of
from spectralgp.learning.objective import ModalEvidence, Objective, Task, definite
from spectralgp.model.fields import GraphGP
from spectralgp.model.spectra import ExactSpectrum

SAME_FREQUENCY = 1e-6  # of the interval of the spectrum: nearer ones have a derivative for a divided difference
MOST_STEPS, MOST_ROUNDS, ENOUGH_GAIN_NATS = 100, 30, 0.05  # of the search, and of E-steps and searches in turn
DIFFERENCE, ROUGH_DIFFERENCE = 1e-4, 0.03  # of parameters in their units, for the curvature; if values are imputed


def divided_differences(function: Callable[[Array], Array], eigenvalues: Array, upper: float) -> Array:
    """``(f_j - f_k) / (lambda_j - lambda_k)``, and the derivative where the two are equal: ``Phi`` of equation (45)."""
    step, values = SAME_FREQUENCY * upper, function(eigenvalues)
    gaps = np.subtract.outer(eigenvalues, eigenvalues)
    near = np.abs(gaps) < 2 * step
    differences = np.subtract.outer(values, values) / np.where(near, 1.0, gaps)
    middle = np.maximum((np.add.outer(eigenvalues, eigenvalues) / 2)[near], step)  # constants never move
    differences[near] = (function(middle + step) - function(middle - step)) / (2 * step)
    return differences


def laplacian_slope(evidence: ModalEvidence, spectrum: ExactSpectrum, carried: Array | None) -> Array:
    """Derivative of the log likelihood in the Laplacian before scaling: equation (45)."""
    kernel, eigenvalues = evidence.kernel, spectrum.eigenvalues
    data: Any = evidence.data
    own = data.node_gram(evidence.precisions) - np.diag(evidence.precisions.sum(axis=0))
    slope = divided_differences(kernel.power, eigenvalues, spectrum.upper) * evidence.node_covariance_gradient
    slope += divided_differences(kernel.residual_power, eigenvalues, spectrum.upper) * own / 2
    if carried is not None and evidence.carry is not None:
        inputs = evidence.rows.modes.vectors.T @ spectrum.load(carried)
        across = (data.coefficients * evidence.precisions).T @ inputs
        slope += divided_differences(evidence.carry.response, eigenvalues, spectrum.upper) * (across + across.T) / 2
    if spectrum.scaled:
        slope[-1, -1] -= float(np.diag(slope) @ eigenvalues)
        slope /= spectrum.largest_eigenvalue
    vectors = spectrum.eigenvectors
    return vectors @ slope @ vectors.T


def weight_slope(slope: Array, weights: Array, kind: LaplacianKind) -> Array:
    """Derivative in the weights, each direction of an edge alone, by that in the Laplacian: equation (46)."""
    diagonal, degrees = np.diag(slope), weights.sum(axis=1)
    found = -slope if kind == "normalized" else np.add.outer(diagonal, diagonal) / 2 - slope
    if kind != "combinatorial":
        found = found / np.sqrt(np.multiply.outer(degrees, degrees))
        sums = np.sum(found * weights, axis=1) / degrees
        found = found - np.add.outer(sums, sums) / 2
    return found


class WeightObjective:
    """Log posterior of log parameters of weights, of filters and of the noise, ``x`` in this order, with its gradient.

    The covariance of the inputs is held. Missing values and latent signals are imputed under a model.
    """

    def __init__(self, family: WeightFamily, task: Task, model: GraphGP) -> None:
        self.family, self.task, self.model = family, task, model
        self.expectation = None if task.is_complete else expectation_of(task)
        self.held, point = self._imputed(model)
        self.n_weights, self.start = family.usual.size, np.append(family.usual, point)
        self.units = np.append(np.ones(self.n_weights), self.held.units)  # log-normal priors have deviation one
        self.bounds = np.vstack([family.bounds, self.held.bounds])

    def _imputed(self, model: GraphGP) -> tuple[Objective, Array]:
        """Objective of signals imputed under a model, on the usual graph and with inputs held, and its first point."""
        task = self.task if self.expectation is None else self.expectation.completed(model)
        objective = Objective(task, self.model.graph_kernel, self.model.spectrum)
        point = objective.point(self.model)
        return objective.inputs_held(point), point[~objective.is_of_inputs]

    def held_at(self, x: Array) -> Objective:
        """Objective of signals imputed under the model at a point."""
        if self.expectation is None:
            return self.held
        kernel, _, noise_variance = self.held.split(x[self.n_weights :])
        spectrum = replace(self.task, graph=self.family.at(x[: self.n_weights])[0]).spectrum_of(kernel)
        model = replace(self.model, spectrum=spectrum, graph_kernel=kernel, noise_variance=noise_variance)
        return self._imputed(model)[0]

    def evaluate(self, x: Array, held: Objective) -> tuple[float, Array]:
        """Log posterior of imputed signals and its gradient."""
        deviations, rest = x[: self.n_weights] - self.family.usual, x[self.n_weights :]
        graph, pulled_back = self.family.at(x[: self.n_weights])
        task, kernel = replace(held.task, graph=graph), held.graph_kernel
        spectrum: Any = task.spectrum_of(kernel)
        evidence: Any = Objective(task, kernel, spectrum, before=held).evidence(rest, by_modes=True)
        carried = None if task.carried is None else task.carried.signals(task.inputs, task.signals.units)
        slope = weight_slope(laplacian_slope(evidence, spectrum, carried), graph.weights.toarray(), kernel.laplacian)
        prior, of_prior = held.log_prior(rest)
        value = evidence.log_likelihood + prior - 0.5 * float(deviations @ deviations)
        return value, np.append(pulled_back(slope) - deviations, evidence.gradient + of_prior)

    def maximum(self) -> Array:
        """The most probable point near the usual one."""
        x, bounds = np.clip(self.start, *self.bounds.T), self.bounds / self.units[:, None]
        for _ in range(MOST_ROUNDS):
            held = self.held_at(x)

            def cost(scaled: Array, held: Objective = held) -> tuple[float, Array]:
                value, gradient = self.evaluate(scaled * self.units, held)
                return -value, -gradient * self.units

            before, options = cost(x / self.units)[0], {"maxiter": MOST_STEPS}
            found = minimize(cost, x / self.units, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
            x = found.x * self.units
            if self.expectation is None or before - found.fun < ENOUGH_GAIN_NATS:
                break
        return x

    def parameters(self, x: Array) -> GraphParameters:
        """Parameters of the weights, with standard errors by differences of the gradient."""
        difference = DIFFERENCE if self.expectation is None else ROUGH_DIFFERENCE
        at_bound = np.min(np.abs(x[:, None] - self.bounds), axis=1) < 2 * difference * self.units
        free, n_weights = np.flatnonzero(~at_bound), self.n_weights
        steps = difference * np.diag(self.units)[free]
        ends = ((x - step, x + step) for step in steps)
        slopes = [[self.evaluate(end, self.held_at(end))[1][free] for end in pair] for pair in ends]
        curvature = -np.diff(slopes, axis=1)[:, 0] / (2 * difference * self.units[free, None])
        errors = np.full(x.size, np.nan)
        errors[free] = np.sqrt(np.diag(np.linalg.inv(definite((curvature + curvature.T) / 2, self.units[free]))))
        learnt = np.exp(x[:n_weights])
        return GraphParameters(self.family.parameter_names, learnt, learnt * errors[:n_weights])


def fit_on_graphs(
    options: Iterable[tuple[Choices, WeightFamily | None]],
    choices_on: Callable[[GraphBase, GraphOf | None], Choices],
    solver: Solver,
    random_state: np.random.Generator,
) -> FittedModels:
    """Fit on each graph, and on learnt weights where there is a family; keep the fit of the best held-out score.

    All have the same folds, in which graphs made of signals are made anew. Without folds the likeliest fit is kept.
    """
    found = list[FittedModels]()
    for choices, family in options:
        learnt = fit_models(choices, solver, deepcopy(random_state))
        found.append(learnt)
        shares = [
            0.0 if one.kernel.needs_no_graph or not one.kernel.shares_eigenvectors else weight
            for one, weight in zip(learnt.candidates, learnt.weights, strict=True)
        ]
        if family is None or not any(shares) or choices.setting.task.signals.shape[0] < 2:
            continue
        place = int(np.argmax(shares))
        candidate = learnt.candidates[place]
        mention("weights of the graph")
        with quietly():
            objective = WeightObjective(family, candidate.learning, learnt.raw_fits[place].model)
            x = objective.maximum()
            graph, parameters = family.graph(x[: family.usual.size]), objective.parameters(x)
        found[-1] = replace(learnt, graph_parameters=replace(parameters, is_kept=False))
        further = choices_on(graph, partial(_learnt_in_fold, family, candidate, solver, graph))
        found.append(replace(fit_models(further, solver, deepcopy(random_state)), graph_parameters=parameters))
    if len(found) == 1:  # whose likelihood may take long
        return found[0]
    return max(found, key=lambda one: max(model.score for model in one.tried) if one.tried else one.log_likelihood)


def _learnt_in_fold(
    family: WeightFamily, candidate: Candidate, solver: Solver, learnt: Graph, kept: Indices, hidden: Mask | None
) -> Graph:
    """Graph learnt from the training signals of a fold; that of all if entries are hidden, which learning may see."""
    if hidden is not None:
        return learnt
    part = candidate.task.part(kept, candidate.task.signals.fold(kept, kept[:1])[0])
    (fit,) = learn_all([part], [candidate.kernel], solver.coarse(kept.size))
    return family.graph(WeightObjective(family, part, fit.model).maximum()[: family.usual.size])
