"""What decides the paper's statements: each answer with the numbers that it rests on."""

from __future__ import annotations

from itertools import product

import numpy as np

from reproduction.experiments import (
    BAND_PASS,
    BASELINES,
    BY_ALGORITHM_1,
    CONSTRAINED,
    HIGHEST_DEGREE,
    LOW_PASS,
    RANDOM_STARTS,
    Truth,
    by_random,
)
from reproduction.jobs import JOINT
from reproduction.results import Finished, Fit, Predictions

WELL = 0.10  # relative L2 error of a filter divided by its maximum, as the figures draw it
RELATIVELY_WELL = 0.20
LITTLE = 2.0  # nats; 1.92 is the 95% point of a likelihood ratio with one degree of freedom
STABLE = 0.1  # nats
SOLVERS = {"jointly": JOINT, "by Algorithm 1": BY_ALGORITHM_1}
Answer = tuple[bool, str] | None
"""Whether a statement holds, and its numbers; None where a cut leaves out what it needs."""


# ------------------------------------------------------------------------------------------------------ filters


def little_beyond(finished: Finished, solver: str, *, key: str, truth: Truth) -> tuple[bool, str]:
    """Little gain beyond the truth's degree, by itself and beside the gain up to it."""
    found = finished.filters(key)
    before = found.gain(truth.key, solver, 1, truth.degree)
    after = found.gain(truth.key, solver, truth.degree, HIGHEST_DEGREE)
    return after < LITTLE and after < before, f"{before:.1f} nats up to degree {truth.degree}, {after:.1f} beyond it"


def recovered(finished: Finished, solver: str, *, key: str, truth: Truth, bar: float) -> tuple[bool, str]:
    """A small error of the scaled filter."""
    error = finished.filters(key).median(truth.key, solver, "shape_error", degree=truth.degree)
    return error < bar, f"{error:.1%}"


def recovered_and_little_beyond(finished: Finished, solver: str, *, key: str, truth: Truth) -> tuple[bool, str]:
    """Both of the two."""
    is_near, error = recovered(finished, solver, key=key, truth=truth, bar=WELL)
    is_little, gains = little_beyond(finished, solver, key=key, truth=truth)
    return is_near and is_little, f"{error}, {gains}"


def recovered_in_noise(finished: Finished, solver: str, *, truth: Truth) -> tuple[bool, str]:
    """A small error of the scaled filter at every ratio from 10 dB."""
    found = finished.filters("noise")
    errors = {
        snr: found.median(truth.key, solver, "shape_error", degree=truth.degree, snr=snr)
        for snr in found.study.snrs
        if snr >= 10
    }
    return max(errors.values()) < WELL, ", ".join(f"{error:.1%} at {snr:g} dB" for snr, error in errors.items())


def falls(finished: Finished, solver: str, *, truth: Truth) -> tuple[bool, str]:
    """A likelihood that falls with the noise."""
    found = finished.filters("noise")
    medians = [
        found.median(truth.key, solver, "log_likelihood", degree=truth.degree, snr=snr) for snr in found.study.snrs
    ]
    # the ratios are listed from high to low
    return bool(np.all(np.diff(medians) < 0)), ", ".join(f"{value:.0f}" for value in medians)


# --------------------------------------------------------------------------------------------------- prediction


def _key(row: str, solver: str) -> str:
    return row if solver == JOINT else f"{row}, {solver}"


def _in_cut(finished: Finished, key: str, size: int) -> Predictions | None:
    """Results of a data set, if they are there for this training size."""
    found = finished.predictions(key)
    return found if size in found.study.sizes else None


def _against_baselines(found: Predictions, size: int, key: str) -> tuple[bool, str]:
    """Whether a model scores higher than every baseline, with the difference to the best one in pairs."""
    other = found.best(size, [model.key for model in BASELINES])
    means = found.means(size, [key, other])
    row, difference = key.split(",")[0], found.difference(size, key, other)
    return means[key] > means[other], f"{row} {means[key]:.2f}, {other} {means[other]:.2f}, paired {difference}"


def best(finished: Finished, solver: str, *, key: str, size: int) -> Answer:
    """A constrained polynomial above every baseline."""
    found = _in_cut(finished, key, size)
    if found is None:
        return None
    best = found.best(size, [_key(model.row, solver) for model in CONSTRAINED])
    return _against_baselines(found, size, best)


def both_best(finished: Finished, solver: str, *, key: str, size: int) -> Answer:
    """Degrees 2 and 3 each above every baseline."""
    found = _in_cut(finished, key, size)
    if found is None:
        return None
    answers = [_against_baselines(found, size, _key(f"degree-{degree}", solver)) for degree in (2, 3)]
    return all(holds for holds, _ in answers), ", ".join(numbers for _, numbers in answers)


def free_best(finished: Finished, solver: str, *, key: str, size: int) -> Answer:
    """The unconstrained polynomial above everything."""
    found = _in_cut(finished, key, size)
    if found is None:
        return None
    ours = _key("degree-3-free", solver)
    other = found.best(size, _rows(solver))
    means = found.means(size, [ours, other])
    return means[ours] > means[other], f"{means[ours]:.2f}, best other {other} {means[other]:.2f}"


def constrained(finished: Finished, solver: str, *, key: str, size: int) -> Answer:
    """The constrained polynomial above the unconstrained one."""
    found = _in_cut(finished, key, size)
    if found is None:
        return None
    ours, other = _key("degree-3", solver), _key("degree-3-free", solver)
    means = found.means(size, [ours, other])
    difference = found.difference(size, ours, other)
    return means[ours] > means[other], f"{means[ours]:.2f} and {means[other]:.2f}, paired {difference}"


def negative(finished: Finished, solver: str, *, key: str, size: int) -> Answer:
    """An unconstrained polynomial that is negative at an eigenvalue."""
    found = _in_cut(finished, key, size)
    if found is None:
        return None
    smallest = found.fit(size, _key("degree-3-free", solver))["smallest_response"]
    return smallest < 0, f"smallest value {smallest:.2f}"


def _rows(solver: str) -> list[str]:
    """The constrained polynomials by a solver, and the baselines."""
    return [*(_key(model.row, solver) for model in CONSTRAINED), *(model.key for model in BASELINES)]


def degree_3(finished: Finished, solver: str) -> Answer:
    """Degree 3 the best row, or near it, in half of the columns."""
    near, listed = 0, []
    for key in ("traffic", "weather"):
        found = finished.predictions(key)
        if len(found.study.sizes) < 2:
            return None
        for size in found.study.sizes:
            ours = _key("degree-3", solver)
            other = found.best(size, _rows(solver))
            difference = found.difference(size, ours, other)
            near += difference.mean >= -difference.standard_error
            listed.append(f"{key} {size} " + ("best" if other == ours else str(difference)))
    return near >= 2, ", ".join(listed)


# ------------------------------------------------------------------------------------------------------- others


def fills_range(finished: Finished, solver: str) -> Answer:
    """Normalised Laplacians whose eigenvalues do not reach the end of their range."""
    largest = {name: found["largest_normalized"] for name, found in finished.graphs().items()}
    below = sum(value < 1.9 for value in largest.values())
    return below > len(largest) / 2, "largest " + ", ".join(f"{value:.2f} ({name})" for name, value in largest.items())


def hops(finished: Finished, solver: str) -> Answer:
    """Filters that are zero beyond their reach."""
    largest = max(found["beyond_3_hops"] for found in finished.graphs().values())
    return largest < 1e-12, f"at most {largest:.0e} on {len(finished.graphs())} graphs"


def stable(finished: Finished, solver: str) -> Answer:
    """Random multipliers that end where fixed ones do."""
    distances: list[float] = []
    for key in ("traffic", "weather"):
        found = finished.predictions(key)
        for size, model, seed in product(found.study.sizes, CONSTRAINED, RANDOM_STARTS):
            if not found.has(_key(model.row, by_random(seed))):
                return None
            fits = [found.fit(size, _key(model.row, how)) for how in (BY_ALGORITHM_1, by_random(seed))]
            distances.append(_apart(*fits))
    sensor = finished.filters("sensor")
    for truth in (LOW_PASS, BAND_PASS):
        ways = (BY_ALGORITHM_1, by_random(RANDOM_STARTS[0]))
        pairs = (sensor.learnt(truth.key, how, degree=truth.degree) for how in ways)
        distances += [_apart(fixed, random) for fixed, random in zip(*pairs, strict=True)]
    near = sum(distance <= STABLE for distance in distances)
    return near >= 0.9 * len(distances), f"{near} of {len(distances)}; furthest {max(distances):.1f} nats"


def _apart(fixed: Fit, random: Fit) -> float:
    return abs(float(random["log_likelihood"]) - float(fixed["log_likelihood"]))


def ends(finished: Finished, solver: str) -> Answer:
    """Fourier coefficients that are large at both ends of the spectrum."""
    shown = finished.predictions("traffic").shown
    eigenvalues, fourier = np.array(shown["eigenvalues"]), np.array(shown["fourier"])
    low, high = eigenvalues < 0.1, eigenvalues > 0.9
    sizes = [float(np.sqrt(np.mean(fourier[:, where] ** 2))) for where in (low, ~(low | high), high)]
    return sizes[0] > sizes[1] and sizes[2] > sizes[1], (
        f"{sizes[0]:.2f} below 0.1, {sizes[1]:.2f} between, {sizes[2]:.2f} above 0.9"
    )
