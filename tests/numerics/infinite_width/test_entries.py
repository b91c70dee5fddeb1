"""LayerFunctions of the recursions against differences, limits and integrals of mpmath."""

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import fieldtheory as ft
from fieldtheory.networks.activations import as_activation
from fieldtheory.numerics.infinite_width.layer_functions import layer_functions
from fieldtheory.numerics.pair_maps.pair_averages import pair_functions
from tests.oracles import exact
from tests.oracles.differences import derivative

PAIRS = [(0.4, 0.6, 0.15), (1.0, 2.0, -1.2), (0.05, 4.0, 0.0)]


def of(name):
    return layer_functions(as_activation(name))


@pytest.mark.parametrize(
    "name", ["erf", "relu", "linear", pytest.param("tanh", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("pair", PAIRS)
def test_two_variables_against_differences(name, pair):
    e, (a, b, c) = of(name), pair
    room = (a * b - c * c) / (a + b)

    def slope(f, index):
        def moved(x):
            return f(*[x if i == index else v for i, v in enumerate(pair)])

        return derivative(moved, pair[index], room)

    close = dict(rel=1e-9, abs=1e-10)
    assert e.covariance_susceptibility(*pair) == pytest.approx(slope(e.covariance, 2), **close)
    assert e.cross_susceptibility(*pair) == pytest.approx(slope(e.covariance, 0), **close)
    assert e.cross_susceptibility(b, a, c) == pytest.approx(slope(e.covariance, 1), **close)
    *values, by_x, by_y, by_xy = e.covariance_flow(*pair)
    one_by_one = e.cross_susceptibility(*pair), e.cross_susceptibility(b, a, c)
    expected = [e.covariance(*pair), *one_by_one, e.covariance_susceptibility(*pair)]
    np.testing.assert_allclose(values, expected, rtol=1e-13)
    expected = [slope(e.covariance_susceptibility, i) for i in range(3)]
    np.testing.assert_allclose([by_x, by_y, by_xy], expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", ["erf", "relu"])
def test_mpmath_entries_agree_with_float64(name):
    precise, e = layer_functions(as_activation(name), "mpmath"), of(name)
    with mpmath.workdps(40):
        assert float(precise.second_moment(mpf("0.3"))) == pytest.approx(
            e.second_moment(0.3), rel=1e-14
        )
        pair = [mpf(x) for x in PAIRS[0]]
        for quantity in ("covariance", "covariance_susceptibility", "cross_susceptibility"):
            value = float(getattr(precise, quantity)(*pair))
            assert value == pytest.approx(getattr(e, quantity)(*PAIRS[0]), rel=1e-13)
    with mpmath.workdps(15):
        coarse = precise.second_moment(mpf("0.3"))
    with mpmath.workdps(40):
        fine = precise.second_moment(mpf("0.3"))
        expected = exact.erf_average(*[mpf("0.3")] * 3) if name == "erf" else mpf("0.15")
        assert abs(fine - expected) < mpf(10) ** -38
        assert abs(coarse - expected) < mpf(10) ** -13


AT_ZERO = {
    "relu": (0.5, 0.0),
    "leaky_relu": (0.50005, 0.0),
    "relu6": (0.5, 0.0),
    "hard_swish": (0.25, 1 / 6),
    "hard_tanh": (1.0, 0.0),
    "hard_sigmoid": (1 / 36, 0.0),
    "softshrink": (0.0, 0.0),
    "abs": (1.0, 0.0),
    "squared_relu": (0.0, 3.0),
    # φ² = h² − |h|³ … has no second derivative of its average.
    "elu": (1.0, -np.inf),
    "softsign": (1.0, -np.inf),
    "selu": (2.0974429285588814, -np.inf),
}


@pytest.mark.slow_but(0, 1, 7, 8)
@pytest.mark.parametrize("name", AT_ZERO)
def test_inputs_that_vanish_have_the_limit_of_kinked_functions(name):
    """The mean of both sides, at all doors the same, alone and among others."""
    slope, curvature = AT_ZERO[name]
    e = layer_functions(as_activation(name))
    for K in (0.0, np.zeros(1), np.array([0.0, 1.0])):
        assert np.ravel(e.susceptibility(K))[0] == pytest.approx(slope, rel=1e-9, abs=1e-10)
        # Exponential branches meet zero with powers of all orders.
        assert np.ravel(e.curvature(K))[0] == pytest.approx(curvature, rel=1e-6, abs=1e-6)
    # The limit from above.
    assert float(e.susceptibility(1e-9)) == pytest.approx(slope, rel=1e-3, abs=1e-8)
    network = ft.ResidualNetwork(
        depth=1, activation=name, bias_variance=0.0, readin_bias_variance=0.0
    )
    weight = network.weight_variance
    chi = (1 + weight * slope) * weight * slope
    assert ft.solve(network, 0.0).output_response == pytest.approx(chi, rel=1e-5)
    assert pair_functions(e).susceptibility(np.zeros(1))[0] == pytest.approx(
        slope, rel=1e-9, abs=1e-10
    )


JUMPING = {
    "softplus(h)*sign(h) + softplus(h)*h**3/6": (
        lambda h: mpmath.sign(h) + h**3 / 6,
        lambda h: h**2 / 2,
    ),
    "softplus(h)*h**2*Heaviside(h - 1)": (
        lambda h: h**2 if h > 1 else mpf(0),
        lambda h: 2 * h if h > 1 else mpf(0),
    ),
}


@pytest.mark.slow_but(3)
@pytest.mark.parametrize("name", JUMPING)
@pytest.mark.parametrize("variance", ["0.7", "1e3", "1e20"])
def test_moments_of_what_jumps(name, variance):
    """∂⟨φ²⟩/∂K of φ = softplus(h) g(h) is ⟨hφφ'⟩/K, with what jumps away from zero add."""
    (g, slope), k = JUMPING[name], mpf(variance)

    def density(h):
        return mpmath.exp(-(h**2) / (2 * k)) / mpmath.sqrt(2 * mpmath.pi * k)

    def dilation(h):
        soft = mpmath.log1p(mpmath.exp(h)) if h < 60 else h + mpmath.exp(-h)
        logistic = 1 / (1 + mpmath.exp(-h))
        return h * soft * g(h) * (logistic * g(h) + soft * slope(h)) / k * density(h)

    with mpmath.workdps(30):
        scale = mpmath.sqrt(k)
        cuts = [*(-80, -20, -4, -1, 0, 1, 4, 20, 80), *(scale * x for x in (1, 4, 8, 14))]
        places = sorted({-scale * 14, *cuts} if k < 10 else set(cuts))
        expected = mpmath.quad(dilation, places)
        if "Heaviside" in name:
            expected += mpmath.log1p(mpmath.e) ** 2 * density(mpf(1)) / (2 * k)
    assert of(name).susceptibility(float(variance)) == pytest.approx(float(expected), rel=1e-12)
