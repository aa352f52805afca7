"""Make the tables of spectralgp.datasets.load_air_quality from the file ``air.rda`` of the R package spacetime.

    python benchmarks/make_air_quality.py /usr/lib/R/site-library/spacetime/data/air.rda

Debian has the file in r-cran-spacetime; reading it takes ``pip install rdata``. The year is the one of which the fewest
values are missing, and the stations are those that have at least half of it.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(__file__).resolve().parents[1] / "src" / "spectralgp" / "datasets" / "data"
LEAST = 0.5  # share of the days that a station must have
DECIMALS = 3


def tagged(pairs: Any) -> dict[str, Any]:
    """Entries of one of R's linked lists, by their names."""
    found = {}
    while pairs is not None and pairs.info.type.name == "LIST":
        tag = pairs.tag if pairs.tag.referenced_object is None else pairs.tag.referenced_object
        found[tag.value.value.decode()] = pairs.value[0]
        pairs = pairs.value[1]
    return found


def read(path: str) -> tuple[Any, Any, list[str], Any]:
    """Concentrations of shape (n_stations, n_days), days, codes and coordinates of the stations."""
    import rdata

    content = tagged(rdata.parser.parse_file(path).object)
    air = content["air"]
    values = np.array(air.value).reshape(tagged(air.attributes)["dim"].value, order="F")
    days = np.datetime64("1970-01-01") + np.array(content["dates"].value).astype(int)
    coordinates = tagged(content["stations"].attributes)["coords"]
    codes = [one.value.decode() for one in tagged(coordinates.attributes)["dimnames"].value[0].value]
    return values, days, codes, np.array(coordinates.value).reshape(-1, 2, order="F")


def main(path: str) -> None:
    """Write both tables."""
    values, days, codes, coordinates = read(path)
    years = days.astype("datetime64[Y]")
    fewest = min(np.unique(years), key=lambda year: np.isnan(values[:, years == year]).mean())
    values, days = values[:, years == fewest], days[years == fewest]
    order = sorted(np.flatnonzero(np.isfinite(values).mean(axis=1) >= LEAST), key=lambda station: codes[station])
    with (DATA / "air_stations.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["station", "longitude", "latitude"])
        writer.writerows([codes[one], *(f"{number:.5f}" for number in coordinates[one])] for one in order)
    with (DATA / "air_quality.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["date", *(codes[one] for one in order)])
        for day, row in zip(days, values[order].T, strict=True):
            writer.writerow([day, *("" if np.isnan(number) else f"{round(number, DECIMALS):g}" for number in row)])


if __name__ == "__main__":
    main(sys.argv[1])
