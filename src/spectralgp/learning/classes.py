"""Learning of classes: diffusions of several strengths, weighed by leave-one-out probabilities, and a temperature."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import softmax

from spectralgp._basics.arrays import on_host
from spectralgp._basics.checks import Array, Indices
from spectralgp.model.fields.classes import LabelledField
from spectralgp.model.kernels import Diffusion, mean_power
from spectralgp.model.spectra import FilterBank, Spectrum

STRENGTHS = (10.0, 20.0, 40.0, 80.0, 160.0, 320.0)  # of diffusion, from a few neighbours to large parts of a graph
AMPLITUDE = 10.0  # of latent fields, which nearly determine the labels
OWN_SHARE = 1e-3  # of a latent field's variance that is independent between nodes
FEATURE_SHARES = (0.0, 0.1, 0.5)  # of the variance that the features of nodes explain, if any
LENGTHS = (0.3, 1.0, 3.0)  # of standardised inputs of signals
# Log-normal prior of the temperature: its median sharpens probabilities, since a left-out label has fewer labels around
# it than a node without one. From synthetic graphs and splits outside the benchmarks.
LOG_TEMPERATURE = (0.5, 0.5)
LARGEST_LOG_TEMPERATURE = 2.0
SMALLEST_PROBABILITY = 1e-12
SMALLEST_WEIGHT = 1e-3  # of a member in predictions


@dataclass(frozen=True, eq=False)
class ClassCovariance:
    """Covariance between all nodes and the labelled ones: diffusion, features, and an independent part."""

    kernel: Diffusion
    feature_share: float
    columns: Array  # shape (n_nodes, n_known)
    variances: Array  # shape (n_nodes,)

    @property
    def described(self) -> str:
        """Description for the summary."""
        share = f", {self.feature_share:.0%} of the variance by features" if self.feature_share else ""
        return f"diffusion of strength {self.kernel.strength:g}{share}"


def class_covariances(spectrum: Spectrum, known: Indices, features: Array | None) -> Iterator[ClassCovariance]:
    """Candidate covariances of nodes with the labelled ones, weakest diffusion first, of mean variance one.

    Features are standardised columns; their covariance is linear.
    """
    indicators = np.zeros((known.size, spectrum.graph.n_nodes))
    indicators[np.arange(known.size), known] = 1.0
    block = spectrum.load(indicators)
    for share in FEATURE_SHARES[: 1 if features is None else None]:
        for strength in STRENGTHS:
            kernel = Diffusion(strength)
            kernel = kernel.scaled_by(float(np.sqrt((1 - OWN_SHARE) / mean_power(kernel, spectrum))))

            def power(eigenvalues: Array, kernel: Diffusion = kernel) -> Array:
                return kernel.power(eigenvalues)[None]

            filtered = spectrum.filtered(block, FilterBank(power, np.eye(known.size)))
            columns = np.asarray(on_host(spectrum.unload(filtered)), dtype=float).T
            variances = np.asarray(on_host(spectrum.diagonals(power)[0]), dtype=float)[0]
            columns, variances = columns + OWN_SHARE * indicators.T, variances + OWN_SHARE
            if features is not None:
                columns = (1 - share) * columns + share * features @ features[known].T / features.shape[1]
                variances = (1 - share) * variances + share * np.mean(features**2, axis=1)
            yield ClassCovariance(kernel, share, columns, variances)


@dataclass(frozen=True, eq=False)
class LabelledEntries:
    """Labelled entries: signals, nodes and classes."""

    rows: Indices
    nodes: Indices
    labels: Indices

    @property
    def known(self) -> Indices:
        """Nodes with any label, ascending."""
        return np.unique(self.nodes)

    @property
    def columns(self) -> Indices:
        """Position of each entry's node among the labelled ones."""
        return np.searchsorted(self.known, self.nodes)


@dataclass(frozen=True, eq=False)
class ClassMember:
    """Latent fields with one covariance, and leave-one-out probabilities of the labels."""

    nodes: ClassCovariance
    length: float | None  # length scale of the inputs; None without inputs or with a given kernel
    field: LabelledField
    left_out: Array  # shape (n_labels, n_classes)

    def probabilities(self, entries: LabelledEntries, between: Array, variance: float) -> Array:
        """Class probabilities at all nodes of a signal, by its variance and covariances with the labelled ones."""
        cross = AMPLITUDE**2 * self.nodes.columns[:, entries.columns] * between[entries.rows]
        return self.field.probabilities(cross, AMPLITUDE**2 * variance * self.nodes.variances)


@dataclass(frozen=True, eq=False)
class ClassMixture:
    """Ensemble of members, and the temperature of its probabilities."""

    members: tuple[ClassMember, ...]
    weights: Array
    temperature: float  # exponent of the probabilities
    left_out: Array  # probabilities of each label given the others, shape (n_labels, n_classes)

    @property
    def heaviest(self) -> ClassMixture:
        """Ensemble without members of negligible weight, for predictions."""
        kept = np.flatnonzero(self.weights >= SMALLEST_WEIGHT * self.weights.max())
        weights = self.weights[kept] / self.weights[kept].sum()
        return replace(self, members=tuple(self.members[place] for place in kept), weights=weights)


def sharpened(probabilities: Array, temperature: float) -> Array:
    """Probabilities raised to a power and normalised."""
    powers = np.maximum(probabilities, SMALLEST_PROBABILITY) ** temperature
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def mixed(members: Sequence[ClassMember], labels: Indices) -> ClassMixture:
    """Ensemble by Bayesian model averaging of leave-one-out probabilities, and its temperature: equation (43)."""
    each = np.arange(labels.size)
    said = np.stack([member.left_out for member in members])
    weights = softmax(np.sum(np.log(np.maximum(said[:, each, labels], SMALLEST_PROBABILITY)), axis=1))
    left_out = np.tensordot(weights, said, 1)
    median, spread = LOG_TEMPERATURE

    def cost(log_temperature: float) -> float:
        found = sharpened(left_out, np.exp(log_temperature))[each, labels]
        lost = float(-np.sum(np.log(np.maximum(found, SMALLEST_PROBABILITY))))
        return lost + 0.5 * ((log_temperature - median) / spread) ** 2

    best = minimize_scalar(cost, bounds=(-LARGEST_LOG_TEMPERATURE, LARGEST_LOG_TEMPERATURE), method="bounded")
    temperature = float(np.exp(best.x))
    return ClassMixture(tuple(members), weights, temperature, sharpened(left_out, temperature))
