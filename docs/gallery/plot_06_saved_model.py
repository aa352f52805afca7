"""
Save a model, and report on it
==============================

A model file holds arrays and words, and no code: it may come from anyone. A loaded model predicts the same
bits.
"""

# %%

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np

import spectralgp
from spectralgp import GraphGPRegressor, Polynomial
from spectralgp.datasets import load_fertility
from spectralgp.show.plots import plot_filter, plot_signal

data = load_fertility()
model = GraphGPRegressor(data.graph, Polynomial(2)).fit(data.years[:, None], data.rates)

with TemporaryDirectory() as folder:
    path = Path(folder) / "model.sgp"
    model.save(path)
    loaded = spectralgp.load(path)
    page = loaded.report(Path(folder) / "report.html", title="Births per woman")
    print(f"model.sgp {path.stat().st_size / 1e3:.0f} kB, report.html {page.stat().st_size / 1e6:.1f} MB")

same = np.array_equal(model.predict([[2012.0]]), loaded.predict([[2012.0]]))
print("the same bits:", same)

# %%
# The report is one HTML file that needs no network. ``summary`` has the main part of it in words.

print(loaded.summary())

# %%
# The loaded model has its graph, its filters and their bands. The picture shows the filter of the residual
# that neighbours share.

figure, (filters, on_map) = plt.subplots(1, 2, figsize=(12, 4.2), layout="constrained", width_ratios=[1, 1.5])
plot_filter(loaded, ax=filters, show_std=True, which="residual")
plot_signal(loaded.graph_, loaded.predict([[2012.0]])[0], ax=on_map, node_size=26, colorbar_label="births per woman")
on_map.set_title("Predicted for 2012")
plt.show()
