"""Write the files that `spectralgp.datasets.load_sids` and `load_homicides` read, from examples of libpysal.

pip download --no-deps libpysal==4.14.1
.venv-bench/bin/python benchmarks/make_counties.py libpysal-*.whl
"""

from __future__ import annotations

import csv
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import geopandas

FOLDER = Path(__file__).parents[1] / "src" / "spectralgp" / "datasets" / "data"
DECIMALS = 3  # of a degree: a hundred metres


def neighbours(file: Path) -> list[tuple[str, str]]:
    """Pairs of identifiers, each once, of a file of weights: an identifier and a count, then as many identifiers."""
    words = file.read_text(encoding="ascii").split("\n", 1)[1].split()
    found, place = set(), 0
    while place < len(words):
        node, count = words[place], int(words[place + 1])
        found |= {(node, other) for other in words[place + 2 : place + 2 + count]}
        place += 2 + count
    if found != {(second, first) for first, second in found}:
        raise ValueError(f"{file} must be symmetric; got pairs that are listed one way only.")
    return sorted(pair for pair in found if pair[0] < pair[1])


def write(name: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Write a table."""
    with (FOLDER / name).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def make(map_file: Path, weights: Path, key: str, name: str, measures: dict[str, Sequence[str]]) -> None:
    """Counties in alphabetical order with their measures by period, and pairs of those that are neighbours."""
    table = geopandas.read_file(map_file)
    several = table["NAME"].duplicated(keep=False)  # names of counties, with the state where two have the same
    table["county"] = [
        f"{row.NAME}, {row.STATE_NAME}" if twice else row.NAME
        for row, twice in zip(table.itertuples(), several, strict=True)
    ]
    inside = table.geometry.representative_point()
    table["longitude"], table["latitude"] = inside.x.round(DECIMALS), inside.y.round(DECIMALS)
    columns = [column for group in measures.values() for column in group]
    header = [f"{measure}_{number + 1}" for measure, group in measures.items() for number in range(len(group))]
    table[columns] = table[columns].astype(int)
    ordered = table.sort_values("county")
    rows = ordered[["county", "FIPS", "longitude", "latitude", *columns]].to_numpy().tolist()
    write(f"{name}.csv", ["county", "fips", "longitude", "latitude", *header], rows)
    named = dict(zip(table[key].astype(str), table["county"], strict=True))
    pairs = sorted(tuple(sorted((named[first], named[second]))) for first, second in neighbours(weights))
    write(f"{name}_borders.csv", ["first", "second"], pairs)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        zipfile.ZipFile(sys.argv[1]).extractall(folder)
        examples = Path(folder) / "libpysal" / "examples"
        sids = {"deaths": ("SID74", "SID79"), "births": ("BIR74", "BIR79"), "nonwhite_births": ("NWBIR74", "NWBIR79")}
        make(examples / "sids2" / "sids2.shp", examples / "sids2" / "sids2.gal", "FIPSNO", "sids", sids)
        homicides = {
            "homicides": ("HC7984", "HC8488", "HC8893"),
            "person_years": ("PO7984", "PO8488", "PO8893"),
        }
        stl = examples / "stl"
        make(stl / "stl_hom.shp", stl / "stl.gal", "POLY_ID_OG", "homicides", homicides)


if __name__ == "__main__":
    main()
