import numpy as np
import pytest
from scipy.optimize import minimize

import oracle
from cases import GRAPHS, WEIGHTS, bound
from spectralgp.graphs import Graph
from spectralgp.model.kernels import Identity, Polynomial
from spectralgp.model.spectra import Chebyshev, decompose
from tolerances import EXACT, FORMULA, NEAREST, POWER_COEFFICIENTS, ROUND_TRIP

GRID = np.linspace(0, 1, 201)


def powers(coefficients, points):
    """The definition (4), term by term."""
    return sum(beta * points**p for p, beta in enumerate(coefficients))


@pytest.mark.parametrize("upper", [1.0, 2.0, 7.3])
@pytest.mark.parametrize("degree", range(13))
def test_coefficients_go_in_and_come_out(degree, upper):
    """Equation (4): g(lambda) = sum_p beta_p lambda^p, to degree 12."""
    beta = np.random.default_rng(degree).standard_normal(degree + 1) / upper ** np.arange(degree + 1)
    kernel = Polynomial.from_coefficients(beta, upper=upper)
    assert kernel.degree == degree
    # each power has its own unit, upper^p
    units = upper ** np.arange(degree + 1)
    assert oracle.relative_error(kernel.coefficients * units, beta * units) < POWER_COEFFICIENTS
    assert oracle.relative_error(kernel.response(upper * GRID), powers(beta, upper * GRID)) < FORMULA
    assert oracle.relative_error(kernel.power(upper * GRID), powers(beta, upper * GRID) ** 2) < FORMULA


def test_vanishing_leading_coefficients_keep_the_degree():
    kernel = Polynomial.from_coefficients([1.0, 2.0, 0.0, 0.0])
    assert kernel.degree == 3
    np.testing.assert_allclose(kernel.coefficients, [1.0, 2.0, 0.0, 0.0], atol=ROUND_TRIP)
    zero = Polynomial.from_coefficients([0.0, 0.0, 0.0])
    np.testing.assert_array_equal(zero.coefficients, np.zeros(3))
    np.testing.assert_array_equal(zero.extrema(), [0.0, 1.0])


def test_the_design_holds_chebyshev_polynomials():
    kernel = Polynomial(12).with_theta(np.random.default_rng(0).standard_normal(13))
    expected = np.cos(np.multiply.outer(np.arccos(2 * GRID - 1), np.arange(13)))
    assert oracle.relative_error(kernel.design(GRID), expected) < FORMULA
    assert oracle.relative_error(kernel.response(GRID), expected @ kernel.theta) < FORMULA


@pytest.mark.parametrize("seed", range(10))
def test_extrema_bracket_the_filter(seed):
    rng = np.random.default_rng(seed)
    kernel = Polynomial(int(rng.integers(0, 9)))
    kernel = kernel.with_theta(rng.standard_normal(kernel.degree + 1))
    dense = np.linspace(0, 1, 20_001)
    values, extremes = kernel.response(dense), kernel.response(kernel.extrema())
    spread = np.ptp(values) + 1.0
    assert np.all((kernel.extrema() >= 0) & (kernel.extrema() <= 1))
    # between grid points the filter may exceed its values on the grid by a little
    assert 0 <= extremes.max() - values.max() + EXACT * spread < 1e-6 * spread
    assert 0 <= values.min() - extremes.min() + EXACT * spread < 1e-6 * spread


def test_rescaled_filters_peak_at_one():
    band_pass = Polynomial.from_coefficients([0, 1, 4, 1, -6]).scaled_by(3.0).rescaled()
    assert band_pass.response(np.linspace(0, 1, 10_001)).max() == pytest.approx(1.0, abs=1e-7)
    plain = Polynomial.from_coefficients([0, 1, 4, 1, -6]).rescaled()
    np.testing.assert_allclose(band_pass.theta, plain.theta, rtol=EXACT)


def test_rescaling_needs_a_positive_value():
    with pytest.raises(ValueError, match=r"the filter must .*; got a maximum of -1\."):
        Polynomial.from_coefficients([-1.0, -1.0]).rescaled()


@pytest.mark.parametrize(("laplacian", "upper"), [("combinatorial", None), ("normalized", 2.0)])
@pytest.mark.parametrize("last", [0.002, 0.0])
def test_binding_to_an_unscaled_laplacian_keeps_the_function(laplacian, upper, last):
    beta = [1.0, -0.3, 0.05, last]
    kernel = Polynomial.from_coefficients(beta, laplacian=laplacian, scaled=False)
    bound_kernel, spectrum = bound(kernel, GRAPHS["random"])
    largest = np.linalg.eigvalsh(oracle.laplacian(WEIGHTS["random"]))[-1]
    assert bound_kernel.upper == pytest.approx(upper or largest, rel=EXACT)
    assert (bound_kernel.degree, bound_kernel.laplacian, bound_kernel.scaled) == (3, laplacian, False)
    points = np.linspace(0, bound_kernel.upper, 50)
    assert oracle.relative_error(bound_kernel.response(points), powers(beta, points)) < FORMULA
    np.testing.assert_allclose(bound_kernel.coefficients, beta, atol=FORMULA)
    assert bound_kernel.bind(spectrum) is bound_kernel


def test_a_filter_moves_to_no_graph_with_higher_frequencies():
    """Unless its Laplacian is scaled, which has the same interval on every graph."""
    short, long = Graph(oracle.ring(3)), Graph(oracle.ring(4))  # whose largest eigenvalues are 3 and 4
    kernel = Polynomial(2, "interval", scaled=False).bind(decompose(long))
    assert kernel.moved_to(decompose(short)) is kernel
    with pytest.raises(ValueError, match=r"graph must have no frequency above 3, where .* learnt; got 4\. Use a poly"):
        Polynomial(2, "interval", scaled=False).bind(decompose(short)).moved_to(decompose(long))
    wide = Polynomial.from_coefficients([1.0, 0.5], constraint="interval", upper=0.5)  # of a scaled Laplacian
    assert wide.moved_to(decompose(long, scaled=True)) is wide


def test_rounding_of_the_largest_frequency_and_of_zero_is_let_through():
    """A billionth of the interval, and 1e-12 of the filter's largest value."""
    spectrum = decompose(Graph(oracle.ring(4)))  # up to 4
    for share, moves in ((5e-10, True), (5e-9, False)):
        kernel = Polynomial.from_coefficients([1.0], scaled=False, upper=spectrum.upper * (1 - share))
        if moves:
            assert kernel.moved_to(spectrum) is kernel
        else:
            with pytest.raises(ValueError, match="graph must have no frequency above"):
                kernel.moved_to(spectrum)
    scaled = decompose(GRAPHS["random"], scaled=True)
    for below, moves in ((5e-13, True), (5e-12, False)):
        kernel = Polynomial.from_coefficients([-7 * below, 7.0])  # -below at zero, of a largest value of one
        if moves:
            assert kernel.moved_to(scaled, scaled) is kernel
        else:
            moved = kernel.moved_to(scaled, scaled)
            assert moved.response([0.0])[0] >= 0
            np.testing.assert_allclose(moved.response(GRID), kernel.response(GRID), atol=1e-6)


def test_a_higher_degree_grows_from_the_same_function():
    kernel = Polynomial.from_coefficients([0.3, 1.0, -0.7])
    raised = Polynomial(5).with_theta(Polynomial(5).search().grown_from(kernel))
    assert oracle.relative_error(raised.response(GRID), kernel.response(GRID)) < EXACT


def test_auto_stands_for_several_degrees():
    members = Polynomial("auto", constraint="interval", laplacian="normalized").search().members()
    assert [member.degree for member in members] == [0, 1, 2, 3, 5, 8]
    assert all(member.constraint == "interval" and member.laplacian == "normalized" for member in members)
    kernel = Polynomial(3)
    assert kernel.search().members() == (kernel,)


# What learning asks


def test_a_filter_must_not_be_negative_at_the_eigenvalues_or_on_the_interval():
    """At all eigenvalues, or those next to four points per coefficient; on an interval at extrema, or such points."""
    spectrum, theta = decompose(GRAPHS["random"], scaled=True), np.array([0.2, -0.5, 0.4])
    spread = (1 - np.cos(np.linspace(0, np.pi, 12))) / 2
    nearest = np.argmin(np.abs(spread[:, None] - spectrum.eigenvalues), axis=1)
    kernel, wide = Polynomial(2).with_theta(theta), Polynomial(2, "interval").with_theta(theta)
    cases = [
        (kernel, spectrum, False, spectrum.eigenvalues),
        (kernel, spectrum, True, spectrum.eigenvalues[np.unique(nearest)]),
        (wide, spectrum, False, wide.extrema()),
        (wide, spectrum, True, spread),
        (kernel, Chebyshev(n_moments=9).of(GRAPHS["random"], scaled=True), False, kernel.extrema()),
        (kernel, Chebyshev(n_moments=9).of(GRAPHS["random"], scaled=True), True, spread),
    ]
    for own, on, coarse, points in cases:
        (asked,) = own.search().positivity(on, coarse)
        np.testing.assert_allclose(asked.points, points, atol=EXACT)
        np.testing.assert_allclose(asked.rows @ theta, own.response(points), atol=EXACT)
        raised = own.with_theta(theta + 0.7 * asked.constant)
        np.testing.assert_allclose(raised.response(GRID), own.response(GRID) + 0.7, atol=EXACT)
    assert Polynomial(2, None).search().positivity(spectrum) == ()
    stretched = Polynomial(2, "interval", upper=3.0)
    np.testing.assert_allclose(stretched.search().positivity(spectrum, coarse=True)[0].points, 3 * spread)


def test_a_filter_is_learnt_by_degrees_from_constants_and_what_was_given():
    spectrum = decompose(GRAPHS["random"], scaled=True)
    given = Polynomial.from_coefficients([0.3, 1.0, -0.7], constraint="interval")
    *lower, last = given.search().path()
    assert [(form.degree, form.chebyshev, form.constraint) for form in lower] == [
        (0, None, "interval"),
        (1, None, "interval"),
    ]
    assert last is given
    assert given.search().is_given
    first, constant = given.search().starting_points(spectrum, 5.0)
    np.testing.assert_array_equal(first, given.theta)
    np.testing.assert_allclose(constant, [2.0, 0.0, 0.0])
    open_one = Polynomial(2, None)
    assert not open_one.search().is_given
    np.testing.assert_allclose(open_one.search().starting_points(spectrum, 5.0), [[2.0, 0.0, 0.0]])
    assert open_one.search().guides() == (Polynomial(2, "eigenvalues"),)
    assert given.search().guides() == ()


def test_a_fixed_filter_has_nothing_to_learn_and_keeps_its_function():
    graph, beta = GRAPHS["random"], [0.3, 1.0, -0.07]
    kernel, spectrum = bound(Polynomial.from_coefficients(beta, constraint=None, scaled=False, fixed=True), graph)
    points = np.linspace(0, spectrum.upper, 9)
    assert kernel.fixed
    assert oracle.relative_error(kernel.response(points), powers(beta, points)) < FORMULA
    assert oracle.relative_error(kernel.scaled_by(3.0).response(points), 3 * powers(beta, points)) < FORMULA
    assert kernel.theta.size == kernel.search().theta_units(2.0).size == len(kernel.search().parameter_names) == 0
    assert kernel.power_jacobian(points).shape == (9, 0)
    assert kernel.with_theta([]) is kernel
    assert kernel.search().path() == (kernel,)
    assert kernel.search().guides() == kernel.search().positivity(spectrum) == ()
    assert not kernel.search().is_given
    assert [start.size for start in kernel.search().starting_points(spectrum, 2.0)] == [0]
    assert kernel.search().with_powers(np.ones(3)) is None
    prior = kernel.search().log_prior(spectrum, 0.3)
    assert (prior.value, prior.noise_slope, prior.slope.shape, prior.precision.shape) == (0.0, 0.0, (0,), (0, 0))
    with pytest.raises(ValueError, match=r"fixed must be False for a polynomial without coefficients; got True"):
        Polynomial(2, fixed=True)


@pytest.mark.parametrize("upper", [1.0, 2.5])
def test_powers_are_of_shares_of_the_interval(upper):
    beta = np.array([0.5, -1.0, 0.25])
    kernel = Polynomial(2, upper=upper).search().with_powers(beta)
    assert oracle.relative_error(kernel.response(upper * GRID), powers(beta, GRID)) < FORMULA
    assert oracle.relative_error(kernel.design(upper * GRID) @ kernel.theta, powers(beta, GRID)) < FORMULA


def test_parts_of_a_sum_are_learnt_in_step():
    """The longest path sets the pace; parameters, starts and constraints stand one after the other."""
    spectrum = decompose(GRAPHS["random"], scaled=True)
    first, flat, given = Polynomial(2), Identity(scaled=True), Polynomial.from_coefficients([1.0, 2.0])
    both = first + flat + given
    forms = both.search().path()
    assert [[getattr(part, "degree", None) for part in form.kernels] for form in forms] == [
        [0, None, 0],
        [1, None, 1],
        [2, None, 1],
    ]
    assert forms[-1] == both
    before = forms[1].with_theta([0.5, -0.2, 0.1, 0.7, 0.3])
    np.testing.assert_allclose(both.search().grown_from(before), [0.5, -0.2, 0.0, 0.1, 0.7, 0.3])
    assert both.search().is_given
    start, usual = both.search().starting_points(spectrum, 6.0)
    np.testing.assert_array_equal(start, both.theta)
    own = np.sqrt(0.8 * 2.0)
    np.testing.assert_allclose(usual, [own, 0.0, 0.0, np.log(own), own, 0.0])
    left, right = both.search().positivity(spectrum)
    points, x = spectrum.eigenvalues, np.array([0.3, -0.2, 0.1, 0.7, 0.3, 0.5])
    for one, part, place in ((left, first, slice(0, 3)), (right, given, slice(4, 6))):
        np.testing.assert_allclose(one.response(x), part.with_theta(x[place]).response(points), atol=EXACT)
        np.testing.assert_allclose(one.rows_of(points > 0.5, 6) @ x, one.response(x)[points > 0.5], atol=EXACT)
        np.testing.assert_allclose(one.response(one.raised(x, 0.4)), one.response(x) + 0.4)
    assert both.label == "Polynomial(2) + Identity + Polynomial(1)"


# Errors


@pytest.mark.parametrize("ask", ["theta", "coefficients"])
def test_auto_has_no_values_of_its_own(ask):
    with pytest.raises(ValueError, match=r"degree must .*; got 'auto'\. Fit a GraphGP"):
        getattr(Polynomial("auto"), ask)


@pytest.mark.parametrize("degree", [-1, 31, 1.5, "three", None, True])
def test_the_degree_must_be_an_integer_in_range(degree):
    error = ValueError if type(degree) is int else TypeError
    with pytest.raises(error, match=f"degree must be an integer of at least 0 and at most 30; got {degree!r}"):
        Polynomial(degree)


def test_the_constraint_must_be_known():
    with pytest.raises(ValueError, match=r"constraint must be 'eigenvalues', 'interval' or None; got 'nodes'\. Use"):
        Polynomial(3, constraint="nodes")


@pytest.mark.parametrize("degree", [3, "auto"])
def test_coefficients_must_fit_the_degree(degree):
    with pytest.raises(ValueError, match=rf"chebyshev must hold degree \+ 1 coefficients; got 2 for degree {degree}"):
        Polynomial(degree, chebyshev=(1.0, 2.0))
    with pytest.raises(ValueError, match=r"chebyshev must hold degree \+ 1 coefficients; got 5 for degree 3"):
        Polynomial(3).with_theta(np.ones(5))


def test_the_interval_must_have_a_length():
    with pytest.raises(ValueError, match=r"upper must be a finite number above 0; got 0\.0"):
        Polynomial(3, upper=0.0)
    with pytest.raises(ValueError, match=r"upper must be a finite number above 0; got 0\.0"):
        Polynomial.from_coefficients([1.0, 2.0], upper=0.0)


def test_coefficients_must_be_numbers():
    with pytest.raises(ValueError, match="coefficients must be finite; got nan"):
        Polynomial.from_coefficients([1.0, np.nan])
    with pytest.raises(ValueError, match=r"coefficients must have shape \(degree \+ 1,\); got \(1, 2\)"):
        Polynomial.from_coefficients([[1.0, 2.0]])
    with pytest.raises(ValueError, match="coefficients must hold at least one number"):
        Polynomial.from_coefficients([])


# ----- moved to other graphs -----


@pytest.mark.parametrize("degree", [2, 3, 5, 8])
def test_a_filter_that_is_negative_somewhere_moves_as_the_nearest_that_is_not(degree):
    """The least-distance problem against a general solver, on a finer grid; the distance is over the frequencies."""
    spectrum = decompose(Graph(oracle.random_weights(30, seed=degree)), scaled=True)
    kernel = Polynomial(degree).with_theta(20 * np.r_[0.3, np.random.default_rng(degree).standard_normal(degree)])
    fine = np.linspace(0, spectrum.upper, 2001)
    assert kernel.response(fine).min() < 0
    moved = kernel.moved_to(spectrum, spectrum)
    assert moved.response(fine).min() >= -EXACT * moved.response(fine).max()
    design, values = kernel.design(spectrum.eigenvalues), kernel.response(spectrum.eigenvalues)

    def distance(theta):
        return np.mean((design @ theta - values) ** 2) / np.mean(values**2)

    grid = kernel.design(fine)
    found = minimize(
        distance,
        moved.theta + 0.1 * np.eye(degree + 1)[0],
        jac=lambda theta: 2 * design.T @ (design @ theta - values) / values.size / np.mean(values**2),
        constraints={"type": "ineq", "fun": lambda theta: grid @ theta, "jac": lambda theta: grid},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    assert distance(moved.theta) <= found.fun + NEAREST
    assert distance(moved.theta) > 0.9 * found.fun


def test_a_filter_that_is_nowhere_negative_moves_as_it_is():
    spectrum = decompose(GRAPHS["random"], scaled=True)
    kernel = Polynomial.from_coefficients([1.0, -2.0, 1.0], constraint="eigenvalues")  # (1 - lambda)^2
    assert kernel.moved_to(spectrum, spectrum) is kernel
    negative = Polynomial.from_coefficients([1.0, -2.0])
    with pytest.raises(ValueError, match=r"constraint must be 'interval' to transfer a polynomial that is negative"):
        negative.moved_to(spectrum)
    with pytest.raises(ValueError, match=r"constraint must be 'interval'"):
        Polynomial.from_coefficients([1.0, -2.0], fixed=True).moved_to(spectrum, spectrum)
