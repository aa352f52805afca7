"""Results of every experiment that nobody computed, so that what pages say of them is known."""

from itertools import product

import numpy as np

from reproduction.experiments import EXPERIMENTS, FilterStudy, GraphStudy, PredictionStudy, ProgramStudy
from reproduction.jobs import variants_of
from reproduction.results import Finished

STUDIES = {study.key: study for study in EXPERIMENTS}
ORDERS = ("released", "sorted", "first 60 sorted")


def fit(**changed):
    """What a job says of a fit."""
    found = {
        "log_likelihood": 0.0,
        "noise_variance": 0.1,
        "converged": True,
        "outcome": "CONVERGED",
        "message": "",
        "first_stage": "grid search",
        "n_evaluations": 1,
        "coefficients": [1.0, -0.5],
        "smallest_share": 0.0,
        "smallest_response": 0.0,
    } | changed
    if not found["converged"] and found["outcome"] == "CONVERGED":
        found["outcome"] = "DIVERGED"
    return found


def filters(study: FilterStudy, say=lambda truth, snr, variant, seed: {}):
    """Results of a filter study: what `say` returns of a fit is changed in it."""
    eigenvalues = np.linspace(0, 1, 6).tolist()
    found = []
    for truth, snr, seed in product(study.truths, study.snrs, study.seeds):
        learnt = [
            fit(variant=one.name, degree=one.degree, error=0.05, shape_error=0.05) | say(truth, snr, one, seed)
            for one in variants_of(study, truth)
        ]
        result = {"truth": truth.key, "snr": snr, "seed": seed, "learnt": learnt}
        if seed == study.seeds[0]:
            fourier = np.ones((2, 6)).tolist()
            result["shown"] = {"eigenvalues": eigenvalues, "fourier": fourier, "truth": list(truth.coefficients)}
        found.append(result)
    return found


def predictions(study: PredictionStudy, score=lambda size, model: 0.0, say=lambda size, model: {}):
    """Results of a prediction study: a score is that of the mean of ten test sets, whose spread is the same for all."""
    found = []
    for size, split, model in product(study.sizes, study.splits, study.models):
        sets = {
            order: (score(size, model) + shift + np.linspace(-1.0, 1.0, 10)).tolist()
            for shift, order in enumerate(ORDERS)
        }
        result = {"size": size, "split": split, "model": model.key, "shift": 0.0}
        result |= fit(scores=sets, restarts=[0.0]) | say(size, model)
        found.append(result)
    eigenvalues = [0.05, 0.2, 0.4, 0.6, 0.8, 0.95]
    found[0]["shown"] = picture() | {"eigenvalues": eigenvalues, "fourier": [[3.0, 1.0, 1.0, 1.0, 1.0, 2.0]]}
    return found


def picture():
    """What a picture of a graph needs."""
    places = [[18.0, 59.0], [18.5, 59.0], [18.0, 59.5], [18.4, 59.6], [18.2, 59.3], [18.1, 59.2]]
    edges = [[node, node + 1] for node in range(5)]
    return {"edges": edges, "coordinates": places, "arbitrary_places": False, "is_input": [True] + 5 * [False]}


def graphs(study: GraphStudy):
    """Results about the graphs."""
    return [
        {
            "graph": name,
            "n_nodes": 6,
            "n_edges": 5,
            "n_components": 1,
            "largest_normalized": 1.5,
            "largest_scaled": 1.0,
            "beyond_3_hops": 0.0,
            "unevenness": [0.1, 0.2] if name == "sensor" else [0.3, 0.4],
            "shown": picture(),
        }
        for name in study.graphs
    ]


def program(study: ProgramStudy):
    """Results of the released baselines."""
    return [
        {"data": data, "size": size, "row": row, "stopped": True, "as_released": [-2.0, -1.0], "once": [0.0, 1.0]}
        for (data, size), row in product(study.columns, study.rows)
    ]


def finished(**results) -> Finished:
    """Some experiments, by their names with underscores."""
    return Finished(STUDIES, {key.replace("_", "-"): found for key, found in results.items()})


def everything(studies=STUDIES, **results) -> Finished:
    """All experiments whose files can be had, with some results given."""
    given = {key.replace("_", "-"): found for key, found in results.items()}
    for key, study in studies.items():
        if key in given or key.startswith("fmri"):
            continue
        if isinstance(study, FilterStudy):
            given[key] = filters(study)
        elif isinstance(study, PredictionStudy):
            given[key] = predictions(study)
        elif isinstance(study, GraphStudy):
            given[key] = graphs(study)
        else:
            given[key] = program(study)
    return Finished(studies, given)
