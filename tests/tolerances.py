"""Every tolerance of the tests, by name.

All but the statistical ones are relative: the largest difference over the largest expected value (see
`oracle.relative_error`).
"""

FORMULA = 1e-9
"""A closed formula against the dense oracle, with noise of at least 1e-6 of the largest power."""

SMALL_NOISE = 1e-6
"""The smallest noise, relative to the largest power, at which dense algebra keeps the digits for FORMULA."""

GRADIENT = 1e-5
"""An exact derivative against finite differences."""

OTHER_MACHINE = 1e-5
"""What a model file predicts, against what it did where it was written: shrinkage and solves end by a tolerance."""

ROUND_TRIP = 1e-13
"""There and back again, where only rounding may differ."""

POWER_COEFFICIENTS = 1e-8
"""Coefficients of powers up to degree 12 after a detour through Chebyshev ones, ill conditioned by nature."""

DIFFERENCE = 1e-6
"""A small posterior variance that both sides got by subtracting two large ones."""

EXACT = 1e-12
"""A sum or product that two orders of evaluation may round differently."""

STANDARD_ERRORS = 5.0
"""How many standard errors a moment of random draws may be off; seeds are fixed, so there is no flakiness."""

OPTIMUM = 1e-5
"""A maximum found twice, by different routes, in nats for each observation; parameters agree to its root."""

CONVERGED = 1e-3
"""Residual of the conditions of optimality at which Algorithm 1 may say that it converged."""

PUBLISHED = 0.02
"""A test score of the reference tables, printed with two decimals, in nats a signal."""

PUBLISHED_EVIDENCE = 0.1
"""A log marginal likelihood of the reference tables, in nats."""

SAME_EVIDENCE = 1e-3
"""The highest log marginal likelihood of real data, found by two searches, in nats."""

SINGLE = 1e-5
"""A closed formula computed in float32, whose rounding is 6e-8, over a few dozen operations."""

LANCZOS = 1e-9
"""The largest eigenvalue of a small graph by Lanczos, whose error is the square of its residual of 1e-7."""

QUADRATURE = 1e-6
"""A log likelihood, a gradient or a posterior mean by quadrature with exact density moments: the bar of issue 4."""

FILTERED = 1e-8
"""A variance by a Chebyshev series, which is cut at 1e-10 of its largest coefficient."""

SAME_FILTER = 1e-2
"""Coefficients learnt by quadrature against those learnt from the eigendecomposition: the bar of issue 4."""

KEPT = 1e-7
"""A score that benchmarks/bench_real.py keeps with eight digits."""

MASKED = 1e-8
"""A formula for signals with missing values, by a dense matrix, against the oracle: the bar of issue 9."""

ITERATIVE = 1e-6
"""A mean by conjugate gradients under a mask against the dense oracle: the bar of issue 9."""

NATS = 0.05
"""What expectation-maximisation may fall short of the exact maximum, in nats: the bar of issue 9."""

CLASS_PROBABILITY = 0.02
"""A probability of a class by the variational Gaussian against that by weighing draws of the prior."""

LEFT_OUT_CLASS = 0.03
"""A probability of a class without an entry's sites against that of a posterior that never saw its label."""

NEAREST = 1e-6
"""A squared distance, as a share of a length, of the nearest non-negative polynomial, by two solvers and grids."""
