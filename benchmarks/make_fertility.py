"""Write the files that `spectralgp.datasets.load_fertility` reads: rates from statsmodels, a map from geopandas.

pip download --no-deps statsmodels==0.15.0 geopandas==0.14.4
.venv/bin/python benchmarks/make_fertility.py statsmodels-*.whl geopandas-*.whl
"""

from __future__ import annotations

import argparse
import csv
import io
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import shapely
from scipy.sparse import csr_array
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial import KDTree

FOLDER = Path(__file__).parents[1] / "src" / "spectralgp" / "datasets" / "data"
YEARS = range(1960, 2012)  # the source has columns for 2012 and 2013, without a figure
# too small for the map of areas; that of cities has their capitals
CAPITALS = {
    "AND": "Andorra", "ATG": "Saint John's", "BHR": "Manama", "BRB": "Bridgetown", "COM": "Moroni",
    "CPV": "Praia", "DMA": "Roseau", "FSM": "Palikir", "GRD": "Saint George's", "HKG": "Hong Kong",
    "KIR": "Tarawa", "KNA": "Basseterre", "LCA": "Castries", "LIE": "Vaduz", "MCO": "Monaco",
    "MDV": "Malé", "MHL": "Majuro", "MLT": "Valletta", "MUS": "Port Louis", "PLW": "Melekeok",
    "SGP": "Singapore", "SMR": "San Marino", "STP": "São Tomé", "SYC": "Victoria", "TON": "Nuku'alofa",
    "TUV": "Funafuti", "VCT": "Kingstown", "WSM": "Apia",
}  # fmt: skip


def read_rates(wheel: Path) -> list[dict[str, str]]:
    """The World Bank's table, one row a country."""
    with zipfile.ZipFile(wheel) as files:
        text = files.read("statsmodels/datasets/fertility/fertility.csv").decode()
    return list(csv.DictReader(io.StringIO(text)))


def read_places(wheel: Path) -> dict[str, Any]:
    """Shape of each country by its code: an area, or the point of its capital."""
    folder = f"/vsizip/{{{wheel.resolve()}}}/geopandas/datasets"
    countries, cities = (
        geopandas.read_file(f"{folder}/naturalearth_{name}/naturalearth_{name}.shp") for name in ("lowres", "cities")
    )
    countries.loc[countries["name"] == "Kosovo", "iso_a3"] = "KSV"  # the World Bank's code; the map has none
    capitals = cities.set_index("name").geometry
    return dict(zip(countries["iso_a3"], countries.geometry, strict=True)) | {
        code: capitals[city] for code, city in CAPITALS.items()
    }


def centre(shape: Any) -> tuple[float, float]:
    """Longitude and latitude of a point well inside the largest part of a country."""
    point = max(shapely.get_parts(shape), key=shapely.area).representative_point()
    return round(point.x, 2), round(point.y, 2)


def distances(shapes: list[Any]) -> np.ndarray:
    """Shortest distances between shapes as chords of the unit sphere, from points every quarter of a degree."""
    outlines = [np.radians(shapely.get_coordinates(shapely.segmentize(shape, 0.25))) for shape in shapes]
    points = [
        np.column_stack([np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude), np.sin(latitude)])
        for longitude, latitude in (outline.T for outline in outlines)
    ]
    firsts = np.cumsum([0, *(len(outline) for outline in points[:-1])])
    together = np.concatenate(points)
    return np.array([np.minimum.reduceat(KDTree(outline).query(together)[0], firsts) for outline in points])


def links(shapes: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Pairs that touch, and the shortest ways over sea that make the graph of those connected."""
    series = geopandas.GeoSeries(shapes)
    touching = np.zeros((len(shapes), len(shapes)), dtype=bool)
    touching[tuple(series.sindex.query(series, predicate="intersects"))] = True
    # land costs next to nothing, but not zero, which would mean that there is no way
    ways = csr_array(np.triu(np.where(touching, 1e-12, distances(shapes)), k=1))
    tree = minimum_spanning_tree(ways).toarray() > 0
    return np.argwhere(np.triu(touching, k=1)), np.argwhere(tree & ~touching)


def write(name: str, header: Iterable[object], rows: Iterable[Iterable[object]]) -> None:
    with (FOLDER / name).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("statsmodels", type=Path)
    parser.add_argument("geopandas", type=Path)
    wheels = parser.parse_args()

    places = read_places(wheels.geopandas)
    table = read_rates(wheels.statsmodels)
    countries = sorted((row for row in table if row["Country Code"] in places), key=lambda row: row["Country Name"])
    names = [row["Country Name"] for row in countries]
    codes = [row["Country Code"] for row in countries]
    shapes = [places[code] for code in codes]
    land, sea = links(shapes)
    print("left out:", ", ".join(row["Country Name"] for row in table if row["Country Code"] not in places))
    print(f"{len(land)} pairs touch;", f"{len(sea)} ways over sea:", *(f"{names[a]} - {names[b]};" for a, b in sea))

    rows = zip(names, codes, (centre(shape) for shape in shapes), strict=True)
    write("countries.csv", ("country", "code", "longitude", "latitude"), ((name, code, *at) for name, code, at in rows))
    pairs = sorted((names[a], names[b]) for a, b in [*land, *sea])
    write("country_borders.csv", ("country", "neighbour"), pairs)
    cells = [[f"{float(row[str(year)]):g}" if row[str(year)] else "" for row in countries] for year in YEARS]
    write("fertility.csv", ("year", *names), ([year, *rates] for year, rates in zip(YEARS, cells, strict=True)))


if __name__ == "__main__":
    main()
