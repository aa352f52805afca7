"""AutoETS and AutoARIMA at some origins of a series, for `bench_time.py`: run by a Python that has statsforecast.

python benchmarks/_statsforecast.py series.npz forecasts.npz

The first file has `values`, `origins`, `n_train`, `season` and `horizons`; models are chosen and learnt on the training
rows of each node by itself, the last 1,000 of them, and carried forward to each origin as they are.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np

MOST_LEARNT = 1_000
LEVEL, HALF_WIDTH = 90, 1.6448536269514722
LONGEST_SEASON = 24  # that AutoETS takes in reasonable time


def forecasts(make: Any, values: np.ndarray, origins: np.ndarray, n_train: int, horizons: list[int]) -> Any:
    """Means and deviations, (n_horizons, n_origins, n_nodes); NaN where a model failed."""
    mean, std = np.full((2, len(horizons), len(origins), values.shape[1]), np.nan)
    first = max(0, n_train - MOST_LEARNT)
    at = [horizon - 1 for horizon in horizons]
    for node, series in enumerate(values.T):
        try:
            model = make()
            model.fit(series[first:n_train])
            for place, origin in enumerate(origins):
                found = model.forward(y=series[first : origin + 1], h=max(horizons), level=[LEVEL])
                mean[:, place, node] = found["mean"][at]
                std[:, place, node] = (found[f"hi-{LEVEL}"] - found[f"lo-{LEVEL}"])[at] / (2 * HALF_WIDTH)
        except Exception as error:  # of a library that is not ours: a node without a forecast is said on the page
            print(f"node {node}: {error!r}"[:200], file=sys.stderr)
    return mean, std


def main() -> None:
    from statsforecast.models import AutoARIMA, AutoETS

    warnings.simplefilter("ignore")
    with np.load(sys.argv[1]) as file:
        values, origins, n_train = file["values"], file["origins"], int(file["n_train"])
        season, horizons = int(file["season"]), file["horizons"].tolist()
    short = season if 1 < season <= LONGEST_SEASON else 1
    made = {
        "AutoETS": lambda: AutoETS(season_length=short),
        "AutoARIMA": lambda: AutoARIMA(season_length=1, max_p=5, max_q=3),
    }
    found = {}
    for name, make in made.items():
        start = time.process_time()
        mean, std = forecasts(make, values, origins, n_train, horizons)
        found |= {f"{name} mean": mean, f"{name} std": std, f"{name} seconds": time.process_time() - start}
    np.savez(sys.argv[2], **found)


if __name__ == "__main__":
    main()
