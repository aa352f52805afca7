"""
Heavy tails
===========

A sensor that sticks, a comma in the wrong place: a few values are off by far more than noise. A Gaussian model
fits them; one with the tails of a Student t ignores them.
"""

# %%
# Incomes of US states above or below the typical one, in per cent, 1990 to 2009. Four values in a hundred are
# spoilt by 50 per cent, up or down.

import matplotlib.pyplot as plt
import numpy as np

from spectralgp import GraphGPRegressor, Polynomial
from spectralgp.datasets import load_us_income

data = load_us_income()
truth, years = 100 * data.relative_incomes[61:], data.years[61:, None].astype(float)
generator = np.random.default_rng(0)
wrong = generator.random(truth.shape) < 0.04
measured = truth + np.where(wrong, 50.0 * generator.choice([-1, 1], truth.shape), 0.0)

models = {
    "gaussian": GraphGPRegressor(data.graph, Polynomial(2)).fit(years, measured),
    "student_t": GraphGPRegressor(data.graph, Polynomial(2), likelihood="student_t").fit(years, measured),
}
predicted = {name: model.predict(years) for name, model in models.items()}
errors = {name: float(np.sqrt(np.mean((values - truth) ** 2))) for name, values in predicted.items()}
for name, error in errors.items():
    print(f"{name:10} error {error:.2f} per cent")

# %%
# How heavy the tails are is learnt: the fewer degrees of freedom, the heavier.

print(models["student_t"].likelihood_)

# %%
# The state with the most spoilt values. The t goes through the others.

state = int(np.argmax(wrong.sum(axis=0)))
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
axis.plot(years, measured[:, state], ".", color="0.4", label="measured")
axis.plot(years[wrong[:, state]], measured[wrong[:, state], state], "x", color="crimson", label="spoilt")
for name, values in predicted.items():
    axis.plot(years, values[:, state], label=name.replace("_", " "))
axis.xaxis.get_major_locator().set_params(integer=True)
axis.set(title=data.graph.names[state], ylabel="income above the typical state, %")
axis.legend()
plt.show()
