"""
Impute values of failed sensors
===============================

Ten of fifty stations fail for ten days. Their values are imputed from the other stations, with intervals.
"""

# %%
# Particulate matter in the German countryside, 60 days. Concentrations are positive and skewed, so we take
# logarithms. Every fifth station loses the days 25 to 34, on top of what is missing anyway.

import matplotlib.pyplot as plt
import numpy as np

from spectralgp import GraphGPRegressor, Polynomial
from spectralgp.datasets import load_air_quality
from spectralgp.show.plots import plot_imputed, plot_signal

data = load_air_quality()
measured = np.log(data.concentrations[:60])
known = measured.copy()
known[25:35, ::5] = np.nan
days = np.arange(60.0)[:, None]

# %%
# NaN marks a missing value. ``impute`` keeps observed values.

model = GraphGPRegressor(data.graph, Polynomial(3)).fit(days, known)
completed, std = model.impute(days, known)

hidden = np.isnan(known) & np.isfinite(measured)
errors = (completed - measured)[hidden]
error = np.sqrt(np.mean(errors**2))
spread = np.std(measured[hidden])
inside = np.mean(np.abs(errors) < 1.645 * std[hidden])
print(f"{hidden.sum()} values were hidden. Error {error:.2f}, where they vary by {spread:.2f}")
print(f"{inside:.0%} are inside their 90% intervals")

# %%
# The error is less than half of the spread of the values. Left a station with its outage; right one of the
# days, where squares are imputed.

figure, (over_days, on_map) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
plot_imputed(known, completed, std, 10, ax=over_days, positions=data.dates[:60], ylabel="log of PM10")
over_days.plot(data.dates[25:35], measured[25:35, 10], ".k", label="hidden")
over_days.set_title(f"Station {data.graph.names[10]}; black: what was hidden", pad=26)
plot_signal(data.graph, known[30], imputed=completed[30], ax=on_map, aspect=1.6, colorbar_label="log of PM10")
on_map.set_title(str(data.dates[30]))
plt.show()
