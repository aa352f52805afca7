"""Numbers that others published or measured, typed once, each with its source."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MeanScore:
    """A mean test log-likelihood with its standard error over the test sets, where one was given."""

    mean: float
    standard_error: float | None = None


Column = tuple[str, int]  # data set and number of training signals

COLUMNS: tuple[Column, ...] = (
    ("traffic", 10),
    ("traffic", 20),
    ("fmri", 21),
    ("fmri", 42),
    ("weather", 15),
    ("weather", 30),
)


def _rows(lines: str) -> dict[Column, dict[str, MeanScore]]:
    """Table 1 from text: one row per line, `mean error` for each column, `-` where the paper has none."""
    table: dict[Column, dict[str, MeanScore]] = {column: {} for column in COLUMNS}
    for line in lines.strip().splitlines():
        row, *cells = (part.strip() for part in line.split("|"))
        for column, cell in zip(COLUMNS, cells, strict=True):
            if cell != "-":
                mean, error = (float(number) for number in cell.split())
                table[column][row] = MeanScore(mean, error)
    return table


# Table 1 of the paper: test log-likelihood and standard error over ten test sets
TABLE_1 = _rows(
    """
    degree-1      | -324.79 2.77 | -323.06 2.89 | 42.36 4.59 | 45.24 3.74 |  -5.10 4.16 |  -0.43 3.45
    degree-2      | -322.78 3.39 | -321.90 3.26 | 42.86 4.48 | 45.24 3.74 |  -0.50 3.37 |   2.78 3.11
    degree-3      | -324.36 3.43 | -321.76 3.20 | 42.77 4.50 | 46.00 3.56 |  -0.32 3.39 |   2.51 3.11
    degree-3-free | -324.93 2.69 | -323.09 3.55 | 42.70 4.31 | 46.32 3.42 |  -1.58 3.51 |   1.23 4.17
    standard      | -331.48 3.03 | -331.80 3.22 | 39.10 4.97 | 44.21 3.79 | -21.73 6.01 | -20.44 4.16
    laplacian     | -330.14 1.22 | -330.38 1.28 | -          | -          | -54.29 6.50 | -54.28 6.45
    global        | -330.87 1.05 | -331.37 1.01 | 42.50 4.58 | 45.17 3.76 |  -5.88 3.09 |  -1.28 2.94
    local         | -330.13 1.22 | -332.66 0.91 | 40.62 4.92 | 43.57 3.95 |  -9.76 3.76 |  -3.31 3.47
    regularised   | -325.35 2.57 | -324.39 3.17 | 38.85 5.63 | 44.20 3.46 |  -2.00 3.33 |   1.22 3.41
    diffusion     | -328.21 2.67 | -328.20 2.86 | 40.92 4.26 | 41.97 3.76 |  -3.33 3.17 |   2.08 2.86
    walk-1        | -324.98 2.29 | -322.24 3.09 | 41.22 4.34 | 40.79 4.13 | -21.52 5.70 | -20.78 4.13
    walk-3        | -324.75 2.35 | -323.67 2.75 | 41.54 4.79 | 45.96 3.91 |  -4.10 4.56 |   0.97 3.98
    cosine        | -323.48 2.54 | -322.23 2.74 | 33.95 6.29 | 42.17 3.80 | -17.93 7.38 |  -6.71 7.07
    """
)

# Best constrained log marginal likelihoods without the 2 pi term of degrees 1 to 4, on the sensor graph and the draws
# of the authors' gma.py (PyGSP's Sensor graph with seed 1, 15 signals, 10 dB), found when the project was designed
SYNTHETIC_LOG_LIKELIHOODS: dict[str, tuple[float, ...]] = {
    "low-pass": (-238.68, -234.15, -234.00, -234.00),
    "band-pass": (-241.05, -213.94, -192.26, -191.82),
}

# filters of degrees 1 to 3 that the authors' gma/plotting.py lists at commit 976198e, before it draws "Traffic"; to
# the one of degree 3 that it draws it adds 0.7647, so that it is not negative
AUTHORS_TRAFFIC_FILTERS: dict[int, tuple[float, ...]] = {
    1: (0.52600555, 0.39954975),
    2: (0.81406568, -2.49094452, 3.19831824),
    3: (0.98061968, -5.32475351, 1.10448791, 5.2128654),
}
AUTHORS_LIFT = 0.7646615927500501
