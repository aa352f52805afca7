"""
From one day to the next
========================

Where inputs have a value at each node, such as the signal of the day before, the model has a lagged term:
a filter of these values.
"""

# %%
# Particulate matter at the stations that measured on each of the first 120 days of the year; the input of a
# day is the day before. 79 days to learn from, and the 40 after them.

import matplotlib.pyplot as plt
import numpy as np

from spectralgp import Graph, GraphGPRegressor, Polynomial
from spectralgp.datasets import load_air_quality, load_us_income
from spectralgp.show.plots import plot_filter, plot_prediction

data = load_air_quality()
signals = np.log(data.concentrations[:120])
whole = np.isfinite(signals).all(axis=0)
signals = signals[:, whole]
graph = Graph.from_points(data.graph.coordinates[whole], n_neighbors=5, metric="haversine")
before, after = signals[:-1], signals[1:]

model = GraphGPRegressor(graph, Polynomial(2), random_state=0).fit(before[:79], after[:79])
mean, std = model.predict(before[79:], return_std=True, include_noise=True)


def error(prediction, truth):
    """Root mean square error."""
    return np.sqrt(np.mean((prediction - truth) ** 2))


ours, unchanged, level = (error(guess, after[79:]) for guess in (mean, before[79:], after[:79].mean(axis=0)))
print(f"{whole.sum()} stations; error {ours:.3f}, {unchanged:.3f} for no change, {level:.3f} for the mean of the past")

# %%
# Left, three filters: of the part that inputs explain, of the residual that neighbours share, and of the
# lagged term, which has no units. The last is largest for smooth patterns: common values of stations last
# longer than differences of neighbours. Right, one station.

figure, (filters, one) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
plot_filter(model, ax=filters, show_std=True, which=("signal", "residual", "carry"))
plot_prediction(after[79:, 0], mean[:, 0], std[:, 0], ax=one, positions=data.dates[80:120], ylabel="log of PM10")
one.set_title("Each day from the one before", pad=26)
plt.show()

# %%
# It does not always help. Incomes of US states hardly change relative to each other from one year to the
# next, and no change is the better guess of their levels. The default, without a kernel, finds that
# rows are in time order, tries "no change" too, and weighs its models by forecasts of later years.

graph = load_us_income().graph
incomes = 100 * load_us_income().relative_incomes
past, present = incomes[:-1], incomes[1:]
unchanged_incomes = error(past[60:], present[60:])
states = GraphGPRegressor(graph, Polynomial(2), random_state=0).fit(past[30:60], present[30:60])
default = GraphGPRegressor(graph).fit(past[30:60], present[30:60])
given_a_kernel, by_default = (error(one.predict(past[60:]), present[60:]) for one in (states, default))
print(f"incomes: {given_a_kernel:.2f} per cent, {by_default:.2f} by default, {unchanged_incomes:.2f} for no change")
