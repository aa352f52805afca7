"""Facts about method and sources that the page gives in words; what depends on results is computed elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reproduction.experiments import FilterStudy
from reproduction.published import AUTHORS_LIFT, AUTHORS_TRAFFIC_FILTERS
from reproduction.tables import markdown

REPOSITORY = "https://github.com/yincong-zhi/Polynomial_Kernel_Learning"
COMMIT = "f9b219ac167ba6c06da8b88a88376ddcbd7efd1e"
BLOB = "018059436389d58ab6181f9e16e317dbbb7f59f4"

DATA = f"""\
The data are the authors', from [their repository]({REPOSITORY}) at commit
[{COMMIT[:7]}]({REPOSITORY}/tree/{COMMIT}), folder `data`: `city45data.mat`, `smhi_temp_17.mat`,
`traffic_delay_san_francisco.mat` and `A_cerebellum.mat`, each checked by its SHA-256 sum;
`signal_set_cerebellum.mat`, checked by its git blob hash ({BLOB}); and `uber_data.mat`, whose sum
nobody here knows, checked by the shapes of its variables. Files that are not in the folder named by the environment
variable `SPECTRALGP_DATA` or in the user's cache are downloaded into the cache, with a progress bar."""

SOURCES = [
    [
        "paper",
        "Table 1 of the paper, typed once and compared with its LaTeX source by a test",
        "yes, where that source is at hand",
    ],
    [
        "released program",
        "our own code (reproduction/released.py) that follows the authors' main.py at commit ec9cc8e step by "
        "step, in the graph's eigenbasis instead of dense matrices; tests compare it with figures of the authors' "
        "own run, and show that on weather 30 where it ends depends on rounding (1e-13 of its start). Traffic is "
        "read as import_data.py at 976198e does: later commits, the pinned one among them, have no traffic in "
        "the program",
        "yes",
    ],
    [
        "authors' draws",
        "log marginal likelihoods on the graph and draws of the authors' gma.py (PyGSP's Sensor graph, seed 1, 15 "
        "signals, 10 dB), found when this project was designed",
        "no",
    ],
    ["ours, Algorithm 1", "this library at the commit this page is from", "yes"],
]
"""Name in the tables, where it comes from, and whether this repository can make it again."""

PRINTED = [
    [
        "1. initialise beta: grid search, then ascent without the constraint (supplement 2)",
        "both of the supplement's grids, each up to a common sign, thinned to 10,000 filters; ascent in "
        "polynomials that are orthonormal on the spectrum, log length scale and log noise, with a learning rate "
        "a group, found anew every 50 steps; noise of at least 0.1% of the variance; at most 3,000 steps, and a "
        "fit that stops there has not converged",
        "a filter and its negative have one likelihood; in raw powers, which are nearly collinear, no single "
        "rate suits all; without a floor the likelihood has no maximum where a mode carries no energy",
    ],
    [
        "the solution of that is where Algorithm 1 starts",
        "the sign is changed if the filter is negative on average, and a constant is added until it is nowhere "
        "negative",
        'what happens without is under "As printed"; the released program (ec9cc8e) adds 1 to every coefficient here',
    ],
    [
        "1. initialise the multipliers, fixed or random",
        "0.01 each; random ones are an option",
        "the paper names no value; the authors' gma.py takes exp(0.1), their main.py softplus(-1)",
    ],
    [
        "2. gradient descent in beta with one learning rate, 10^r by the supplement's rule",
        "the same in orthonormal coordinates; the rate is found once, on the likelihood; a step that does not "
        "descend is not taken, and divides the rate by ten; until no derivative exceeds 1e-4",
        "multipliers change the curvature, so that a rate that was right need not stay so",
    ],
    [
        "3. one ascent step in the logarithms of the multipliers",
        "the same; a step is cut at 2 and -2; its rate starts at 1, is divided by ten when the dual falls and "
        "multiplied by ten after ten steps in which it does not",
        "the paper names no rate; the authors' gma.py takes 0.1, their main.py 1",
    ],
    [
        "4. until the Lagrangian converges",
        "until the residual of the conditions of optimality is at most 5e-4 and the filter nowhere negative; it "
        "gives up where that residual does not halve in 200 steps (diverged), or after 1,000",
        "a Lagrangian that changes little need not be near an optimum",
    ],
    ["5. output beta", "the best filter met that is nowhere negative", "the last one may be negative somewhere"],
    ["all other hyperparameters stay constant", "the same", "as printed; learning all jointly is our own solver"],
]
"""Algorithm 1 line by line: as printed, as done here, and why."""

TESTED = """\
Tested against dense algebra, and not shown here: the model and its posterior (8) to (10), the scaled Laplacian (7)
and the polynomial (11), the equivalence to co-regionalisation in both orders of vec (Section 3.3), likelihood and
constraint (16) to (21), and every baseline's kernel."""

OPEN = [
    ["signals in the synthetic studies", "not given", "15, as in the authors' gma.py"],
    ["scale of the synthetic signals", "not given", "unit variance before noise, as in gma.py"],
    ["noise with the inverse-Wishart covariance", "none mentioned", "10 dB, learnt; gma_wishart.py has sd 0.1, known"],
    ["ratios of the noise study", "only in the figure", "20, 15, 10, 5, 0 dB, as in the authors' notes"],
    ["degrees", "1 to 4 in the authors' plots", "1 to 4 by Algorithm 1, to 5 jointly"],
    ["scaling of drawn filters", "by the maximum where above 1", "by the maximum, always"],
    ["walks: alpha", "any", "at least 2, so that the kernel is a covariance on every graph"],
    [
        "length scale to start from",
        "mean squared length of y (the authors' main.py: of x)",
        "Algorithm 1: of y; jointly: several about the median distance",
    ],
    ["test days of the weather", "60 of the 64 that remain", "three orders, in a table of their own"],
]
"""What the paper leaves open, what it says, and what was chosen."""


def setups(studies: Sequence[FilterStudy]) -> str:
    """What the synthetic studies draw."""
    rows = [
        [
            study.title,
            f"{study.graph}, {study.n_nodes} nodes",
            str(study.n_signals),
            study.input_covariance,
            ", ".join(f"{snr:g}" for snr in study.snrs) + " dB",
            "the truth's" if study.degrees is None else f"{study.degrees[0]} to {study.degrees[-1]}",
            str(len(study.seeds)),
        ]
        for study in studies
    ]
    header = ["study", "graph", "signals", "covariance of signals", "noise", "degrees", "seeds"]
    return markdown(header, rows)


def printed_inverse_error() -> float:
    """Relative error of the supplement's equation (7) on a covariance of 4 nodes by 5 signals, drawn once.

    Examples
    --------
    >>> printed_inverse_error() > 1
    True
    """
    random = np.random.default_rng(0)
    filtered, covariance = (root @ root.T for root in (random.standard_normal((n, n)) for n in (4, 5)))
    noise = 0.1
    (b, u_b), (k, u_k) = np.linalg.eigh(filtered), np.linalg.eigh(covariance)
    exact = np.linalg.inv(np.kron(filtered, covariance) + noise * np.eye(20))
    kronecker_sum = np.kron(np.diag(b), np.eye(5)) + np.kron(np.eye(4), np.diag(1 / k))
    both = np.kron(u_b, u_k)
    printed = np.kron(np.linalg.inv(filtered), np.eye(5)) @ both @ kronecker_sum @ both.T / noise
    return float(np.linalg.norm(printed - exact) / np.linalg.norm(exact))


def smallest_of_authors() -> tuple[float, float]:
    """Least value on [0, 1] of the authors' traffic filter of degree 3, and the constant that their plot adds."""
    grid = np.linspace(0, 1, 10_001)
    return float(np.min(np.polynomial.Polynomial(AUTHORS_TRAFFIC_FILTERS[3])(grid))), AUTHORS_LIFT
