"""What "auto" tries: models by stages, each stage chosen by what the one before predicted of signals held out."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from spectralgp.graphs import LaplacianKind
from spectralgp.kernels import Identity, Polynomial, Term
from spectralgp.learning.candidates import BOTH_TERMS, Candidate, Setting
from spectralgp.learning.fitting import Plan

DEGREE, HIGHER_DEGREE = 2, 4
LAPLACIANS: tuple[LaplacianKind, ...] = ("combinatorial", "normalized")


def automatic(setting: Setting) -> Plan:
    """The plan of the default.

    1. Filters on two Laplacians, with a smooth and a linear term in the inputs.
    2. The better of those with a higher degree, and without scales of the nodes.
    3. The best of all with one term only; without a graph; and with what inputs carry over.
    4. The linear term alone with what inputs carry over.

    On a large graph one Laplacian is tried, in both degrees at once, and no model without a graph.
    """
    is_large, is_default = setting.task.spectrum.needs_passes, setting.is_kernel_open
    if setting.task.graph.n_edges == 0:
        yield from _without_graph(setting)
        return
    kernel, scale = Polynomial(DEGREE), setting.first_scale
    if is_large:
        tried = [setting.candidate(kernel), setting.candidate(Polynomial(HIGHER_DEGREE))]
        scores = yield tried
        best = tried[int(np.argmax(scores))]
        kernel = Polynomial(HIGHER_DEGREE) if scores[1] > scores[0] else kernel
    else:
        kernels = [Polynomial(DEGREE, laplacian=laplacian) for laplacian in LAPLACIANS]
        tried = [setting.candidate(kernel) for kernel in kernels]
        first = yield tried
        kernel, best = kernels[int(np.argmax(first))], tried[int(np.argmax(first))]
        higher = dataclasses.replace(kernel, degree=HIGHER_DEGREE)
        others = [other for other in setting.signals if other != scale]
        rescaled = [setting.candidate(kernel, scale=other, warm_start_from=best) for other in others]
        tried = [setting.candidate(higher), *rescaled]
        scores = yield tried
        if scores[0] > np.max(first):
            kernel, best = higher, tried[0]
        if len(others) and np.max(scores[1:]) > np.max(first):
            scale = others[int(np.argmax(scores[1:]))]
    further: list[Candidate] = []
    if is_default:
        further += [setting.candidate(kernel, (term,), scale) for term in BOTH_TERMS]
    if not is_large:
        sets: Sequence[tuple[Term, ...]]
        sets = (BOTH_TERMS, ("linear",)) if is_default else (BOTH_TERMS,)  # a kernel of the user's own has no choice
        further += [setting.candidate(Identity(), terms, scale) for terms in sets]
    if setting.columns is not None:
        further += [setting.candidate(kernel, BOTH_TERMS, scale, carries=True, warm_start_from=best)]
    if further:
        yield further
    if setting.columns is not None and is_default:
        yield [setting.candidate(kernel, ("linear",), scale, carries=True, warm_start_from=further[1])]


def _without_graph(setting: Setting) -> Plan:
    """One output per node: nothing but terms and scales to choose."""
    sets: Sequence[tuple[Term, ...]] = (BOTH_TERMS, ("smooth",), ("linear",))
    if not setting.is_kernel_open:
        yield [setting.candidate(Identity(), scale=scale) for scale in setting.signals]
        return
    scores = yield [setting.candidate(Identity(), terms) for terms in sets]
    best = sets[int(np.argmax(scores))]
    others = [scale for scale in setting.signals if scale != setting.first_scale]
    if others:
        yield [setting.candidate(Identity(), best, other) for other in others]
