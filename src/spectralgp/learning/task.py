"""The problem that learning solves: data and settings, without a graph kernel."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from spectralgp._basics.checks import Array, Indices, as_option, as_positive, as_real_array
from spectralgp.graphs import GraphBase
from spectralgp.kernels import GraphKernel, InputKernel, KernelLike, NewInputs, as_input_kernel
from spectralgp.kernels.carry import CarryColumns
from spectralgp.signals import Signals, as_training
from spectralgp.spectra import Exact, Spectrum, SpectrumSettings

NOISE_FLOOR = {"weak": 1e-6, None: 1e-3}  # smallest noise learnt, as a share of the signals' variance
NOISE_CEILING = 10.0

Prior = Literal["weak"] | None
NoiseVariance = float | tuple[float, float] | None  # fixed, learnt between bounds, or learnt


def check_noise(noise_variance: NoiseVariance) -> None:
    """Refuse what is neither a positive variance nor a pair of bounds."""
    if isinstance(noise_variance, tuple):
        if len(noise_variance) != 2 or not 0 < noise_variance[0] < noise_variance[1] < np.inf:
            raise ValueError(
                f"noise_variance must be one number, or bounds (low, high) with 0 < low < high; got {noise_variance}."
            )
    elif noise_variance is not None:
        as_positive(noise_variance, "noise_variance")


@dataclass(frozen=True, eq=False)
class Task:
    """Data and settings of one learning problem; the graph kernel is left open. Made by `Task.of`."""

    graph: GraphBase
    input_kernel: InputKernel
    inputs: Array  # of shape (n_signals, n_features), or the covariance itself if precomputed
    signals: Signals
    noise_variance: NoiseVariance = None
    prior: Prior = "weak"
    spectrum: SpectrumSettings = Exact()
    carried: CarryColumns | None = None  # columns of the inputs that carry over to the signals

    @classmethod
    def of(
        cls,
        graph: GraphBase,
        input_kernel: InputKernel | KernelLike,
        inputs: ArrayLike,
        signals: ArrayLike | Signals,
        noise_variance: NoiseVariance = None,
        prior: Prior = "weak",
        *,
        spectrum: SpectrumSettings = Exact(),
    ) -> Task:
        """Task from arrays, checked.

        Parameters
        ----------
        graph : Graph
            The graph.
        input_kernel : scikit-learn kernel, "precomputed" or None
            Covariance between signals; None for independent ones.
        inputs : array of shape (n_signals, n_features)
            Training inputs; the covariance itself if precomputed; without columns for independent signals.
        signals : array of shape (n_signals, n_nodes), or Signals
            Training signals, taken as they are: nothing is centred or scaled. `read_signals` does that.
        noise_variance : float or pair of float, optional
            Fixed noise variance, or bounds between which it is learnt; the prior has its own if not given.
        prior : {"weak"} or None, default="weak"
            Prior on the hyperparameters; None is plain maximum likelihood.
        spectrum : SpectrumSettings, default=Exact()
            How spectra of the graph are found: `Exact`, or `Chebyshev` for a large graph.

        Examples
        --------
        >>> import numpy as np
        >>> from spectralgp import Graph, Task
        >>> pair = Graph.from_edges([(0, 1)])
        >>> Task.of(pair, None, np.empty((3, 0)), np.array([[1.0, 2.0], [0.0, 0.0], [-1.0, -2.0]])).variance
        1.6666666666666667
        """
        if not isinstance(graph, GraphBase):
            raise TypeError(f"graph must be a Graph; got {type(graph).__name__}. Convert it with as_graph first.")
        if not isinstance(spectrum, SpectrumSettings):
            raise TypeError(
                f"spectrum must be Exact() or Chebyshev(...); got {spectrum!r}. Leave it out for the former."
            )
        checked = as_real_array(inputs, "inputs", ("n_signals", "n_features")).copy()
        training = as_training(signals, checked.shape[0], graph.n_nodes)
        if prior is not None:
            as_option(prior, "prior", ("weak",))
        check_noise(noise_variance)
        return cls(graph, as_input_kernel(input_kernel), checked, training, noise_variance, prior, spectrum)

    @cached_property
    def variance(self) -> float:
        """Variance of the signals; one where they are all the same."""
        return self.signals.variance or 1.0

    @cached_property
    def variance_within(self) -> float:
        """Variance about the levels of the nodes, which noise has to explain at most."""
        return self.signals.variance_within or self.variance

    @property
    def noise_bounds(self) -> Array:
        """Bounds of the log noise variance."""
        if isinstance(self.noise_variance, tuple):
            return np.log(self.noise_variance)
        return np.log(np.array([NOISE_FLOOR[self.prior], NOISE_CEILING]) * self.variance)

    @property
    def known_noise(self) -> float | None:
        """The noise variance where it is fixed; None where it is learnt."""
        return None if isinstance(self.noise_variance, tuple) else self.noise_variance

    def spectrum_of(self, kernel: GraphKernel) -> Spectrum:
        """The spectrum that a graph kernel asks for."""
        return self.spectrum.of(self.graph, kernel.laplacian, kernel.scaled, self.signals.like)

    def fold(
        self, kept: Indices, held_out: Indices, cut: tuple[Signals, Signals] | None = None
    ) -> tuple[Task, Signals, Fold]:
        """The task with some of the signals, the others in its units, and what links their inputs.

        `cut` is the pair of both signals, where it is known.
        """
        signals, others = self.signals.fold(kept, held_out) if cut is None else cut
        inputs = self.input_kernel.subset(self.inputs, kept)
        carried = None if self.carried is None else CarryColumns.of(self.carried.columns, inputs)
        part = dataclasses.replace(self, inputs=inputs, signals=signals, carried=carried)
        return part, others, Fold(self.inputs, kept, held_out)


@dataclass(frozen=True, eq=False)
class Fold:
    """Which inputs were kept and which held out."""

    inputs: Array
    kept: Indices
    held_out: Indices

    @property
    def features(self) -> Array:
        """The inputs held out."""
        return self.inputs[self.held_out]

    def new_inputs(self, kernel: InputKernel) -> NewInputs:
        """Covariances of the inputs held out, under a learnt kernel."""
        return kernel.between(self.inputs, self.kept, self.held_out)
