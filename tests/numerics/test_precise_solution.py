"""Solutions to many digits: against themselves, float64, exact numbers, closed forms, integrals."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy as sp
from mpmath import mpf

import fieldtheory as ft
from fieldtheory.precision import layer_correlators
from fieldtheory.precision.hermite_series import sums_of_layers
from fieldtheory.precision.layer_correlators import LayerCorrelators
from fieldtheory.precision.layer_recursion import exact_coefficients
from fieldtheory.theory.elementary_averages import X, network_averages
from tests.oracles import deep_kernels, exact, linear_width
from tests.oracles import precise as oracle
from tests.rounding import assert_same
from tests.tables import slow

ONE = (
    *("residual_kernels", "kernels", "output_kernel", "residual_response", "response"),
    *("output_response", "G12", "G11", "kernel_variance", "mean_shift", "kernel_shift"),
    *("four_point", "output_kurtosis"),
)
TWO = (*ONE[:6], "full_response")


def network(activation, depth, rho=0.5, gamma=0.9, **others):
    return ft.ResidualNetwork(
        depth=depth, activation=activation, branch_scale=rho, skip_scale=gamma, **others
    )


def distance(found, expected):
    """The largest difference relative to the largest entry."""
    found, expected = (np.array(x, dtype=object) for x in (found, expected))
    assert found.shape == expected.shape
    with mpmath.workdps(120):
        difference = max(map(abs, np.ravel(found - expected)))
        return float(difference / (max(map(abs, expected.ravel())) or 1))


# Networks, inputs and digits: smooth φ, kinks at zero and elsewhere, jumps, all kinds of skips.
ONE_INPUT = [
    slow(network("erf", 4, gamma=1.0), 0.3, 30),
    (network("erf", 2, gamma=1.0), 0.3, 20),
    (network("relu", 4, rho=(0.5, 0.3, 0.0, 0.2)), 1e-9, 30),
    (network("sin", 3, gamma=-0.7), "1.7", 30),
    slow(network("softsign", 2), 0.4, 18),
    (ft.FeedForwardNetwork(depth=2, activation="tanh"), 0.8, 18),
    slow(network("tanh", 4), 0.8, 30),
    slow(network("gelu", 3), 0.3, 30),
    slow(network("exp(-abs(h))", 2, rho=1.0), 0.7, 20),
    slow(network("hard_tanh", 2, rho=1.0), 0.5, 20),
    slow(network("heaviside", 2, gamma=0.5), 0.5, 20),
    slow(network("elu", 2), 100.0, 20),
    slow(ft.FeedForwardNetwork(depth=2, activation="tanh"), 1e6, 20),
    slow(network("cos", 3), 1e-12, 20),
]


@pytest.mark.slow_but(2)
@pytest.mark.parametrize(("net", "K0", "digits"), ONE_INPUT)
def test_one_input_to_the_digits_asked_for_and_as_float64(net, K0, digits):
    s, more = (ft.solve(net, K0, digits=d) for d in (digits, digits + 20))
    float64 = ft.solve(net, float(K0))
    for name in ONE:
        found = getattr(s, name)
        assert distance(found, getattr(more, name)) < 10.0**-digits, name
        reference = np.asarray(getattr(float64, name))
        assert distance(reference, found) < (1e-9 if name in ONE[7:] else 1e-11), name


PAIRS = [
    (network("erf", 5, gamma=1.0), [[0.5, 0.3], [0.3, 0.7]], 30),
    (network("relu", 5), [["1/2", "0.4"], ["0.4", 0.5]], 30),
    (network("erf", 8, rho=2.0, gamma=0.0), [[0.5, 0.5 - 1e-13], [0.5 - 1e-13, 0.5]], 30),
    (network("relu", 3), [[0.5, -0.5], [-0.5, 0.5]], 20),
    slow(network("tanh", 2), [[0.5, 0.2], [0.2, 0.5]], 20),
    slow(network("tanh", 1), [[0.5, 0.5 - 1e-12], [0.5 - 1e-12, 0.5]], 16),
    slow(network("softsign", 1), [[0.5, -0.2], [-0.2, 0.9]], 16),
    slow(network("hard_tanh", 1), [[0.5, 0.1], [0.1, 0.5]], 16),
]


@pytest.mark.slow_but(3)
@pytest.mark.parametrize(("net", "K0", "digits"), PAIRS)
def test_two_inputs_to_the_digits_asked_for_and_as_float64(net, K0, digits):
    s, more = (ft.solve(net, K0, digits=d) for d in (digits, digits + 10))
    float64 = ft.solve(net, [[float(sp.Rational(v)) for v in row] for row in K0])
    singular = abs(float(sp.Rational(K0[0][1]))) == 0.5
    for name in TWO[: -1 if singular else None]:
        found = getattr(s, name)
        assert distance(found, getattr(more, name)) < 10.0**-digits, name
        # Derivatives by a variance lose digits in float64 for nearly parallel inputs.
        allowed = 1e-9 if name == "full_response" else 1e-11
        assert distance(np.asarray(getattr(float64, name)), found) < allowed, name


def test_deep_linear_networks_are_exact():
    """Rational numbers; every power of 1/N is known, and the mean does not shift."""
    net = network("linear", 4, 0.5, 0.75, weight_variance=1.25, bias_variance=0.5, width=20)
    s = ft.solve(net, "1/3", digits=60)
    weights, biases = [sp.Rational(5, 16)] * 4 + [sp.Rational(5, 4)], [0.125] * 4 + [0.5]
    cumulant = linear_width.kernel_cumulants(sp.Rational(1, 3), weights, biases, [0.75] * 4)
    means = [cumulant(l).coeff_monomial(1) for l in range(6)]
    variances = [
        [cumulant(l, m).coeff_monomial(linear_width.eps) / 20 for m in range(6)] for l in range(6)
    ]
    with mpmath.workdps(80):
        numbers = np.vectorize(lambda r: mpf(r.p) / r.q, otypes=[object])
        assert distance(s.residual_kernels, numbers(means)) < 1e-60
        assert distance(s.G11, numbers(variances)) < 1e-60
        assert max(abs(s.mean_shift)) < 1e-60


@pytest.mark.parametrize(
    ("name", "phi"),
    [("relu", lambda: deep_kernels.bent(1, 0)), slow("erf", deep_kernels.error_function)],
)
def test_deep_kernels_and_responses_by_typed_closed_forms(name, phi):
    net = network(name, 200, 0.125, 1.0, weight_variance=1.5, bias_variance=0.25)
    K0 = ["0.5", "0.2", "0.31"]
    one = ft.solve(net, K0[0], digits=60)
    pair = ft.solve(net, [[K0[0], K0[2]], [K0[2], K0[1]]], digits=60)
    with mpmath.workdps(75):
        layers = [(1, mpf(3) / 128, mpf(1) / 256)] * 200 + [(0, mpf(3) / 2, mpf(1) / 4)]
        kernels, responses = deep_kernels.one_input(phi(), layers, mpf(K0[0]))
        assert distance(one.kernels, kernels) < 1e-60
        assert distance(one.response, responses) < 1e-60
        kernels, responses = deep_kernels.two_inputs(phi(), layers, *map(mpf, K0))
        assert distance(pair.kernels[:, 0, 1], [K[2] for K in kernels]) < 1e-60
        assert distance(pair.response[:, 0, 1], responses) < 1e-60


@pytest.mark.parametrize(
    ("name", "connected"), [("relu", exact.relu_connected), slow("erf", exact.erf_connected)]
)
def test_fluctuations_of_two_layers_by_typed_correlators(name, connected):
    """G11 and the vertex of the kernel behind one residual layer, written out."""
    net = network(name, 1, 0.75, 0.5, weight_variance=1.5, bias_variance=0.25, width=8)
    s = ft.solve(net, 0.5, digits=30)
    with mpmath.workdps(45):
        K, a, readout = s.kernels, mpf(27) / 32, mpf(3) / 2
        slopes = [s.output_response / s.response[1], (s.response[1] - mpf(1) / 4) / a]
        first = a**2 * connected(K[0], K[0], K[0])
        across = a * readout * connected(K[0], K[1], K[0] / 2) + slopes[0] * first
        assert abs(8 * s.G11[1, 1] / first - 1) < 1e-30
        assert abs(8 * s.G11[1, 2] / across - 1) < 1e-30
        vertex = first + 4 * a * slopes[1] * (K[0] / 2) ** 2
        assert abs(s.four_point[1] / vertex - 1) < 1e-30


@pytest.mark.slow
def test_integrals_by_prices_theorem_agree_with_the_series(monkeypatch):
    with mpmath.workdps(30):
        averages = network_averages(network("erf", 1))
        a, b, c, d, e = map(mpf, ("3", "0.7", "1", "-0.3", "2"))
        K = [[a, b, b * d / c], [b, c, d], [b * d / c, d, e]]  # a Markov chain
        by_series = LayerCorrelators(averages, K, [True] * 3)
        known = by_series.connected, by_series.slopes
        monkeypatch.setattr(layer_correlators, "_ORDERS", 16)
        by_integrals = LayerCorrelators(averages, K, [True] * 3)
        found = by_integrals.connected, by_integrals.slopes
    assert distance(found, known) < 1e-29
    changed = [
        sum(value is None for value in np.ravel(each._series.sums))
        for each in (by_series, by_integrals)
    ]
    assert changed[0] < changed[1]


def test_jumps_beyond_the_points_where_even_functions_are_noticed():
    """⟨θ(h − 5) ; θ(h − 5)⟩ = p(1 − p)."""
    with mpmath.workdps(16):
        p = mpmath.ncdf(-2.5)
        own = sums_of_layers(sp.Heaviside(X - 5), [mpf(4)], []).own[0]
        assert abs(own / (p * (1 - p)) - 1) < 1e-15


@pytest.mark.slow
@pytest.mark.parametrize("name", ["erf", "tanh"])
def test_mean_shift_behind_one_layer_by_other_integrals(name):
    """a' [(1/2) M'' a² ⟨g;g⟩ + a ∂⟨g(x);g(y)⟩/∂K_yy], by scores of the density."""
    net = network(name, 1, 0.75, 0.5, weight_variance=1.5, bias_variance=0.25, width=8)
    s = ft.solve(net, 0.5, digits=20)
    h = sp.Symbol("h")
    phi = sp.lambdify([h], getattr(sp, name)(h), "mpmath")
    with mpmath.workdps(24):
        a, K = mpf(27) / 32, s.kernels
        joint = [[K[0], K[0] / 2], [K[0] / 2, K[1]]]
        square = oracle.average1(lambda x: phi(x) ** 4, K[0])
        mean = oracle.average1(lambda x: phi(x) ** 2, K[0])

        def curved(x):
            z = x * x / K[1]
            return phi(x) ** 2 * (z * z - 6 * z + 3) / (4 * K[1] ** 2)

        slope = oracle.score2(lambda x, y: (phi(x) ** 2 - mean) * phi(y) ** 2, joint, (1, 1))
        bend = oracle.average1(curved, K[1]) * a**2 * (square - mean**2) / 2
        assert abs(8 * s.mean_shift[2] / (mpf(3) / 2 * (bend + a * slope)) - 1) < 1e-17


def test_conventions_of_the_input():
    net = network("erf", 2, input_dim=30, width=40)
    s = ft.solve(net, 0.3, digits=20, convention="F25")
    derivative, float64 = ft.solve(net, 0.3, digits=20), ft.solve(net, 0.3, convention="F25")
    assert distance(3 * s.response, 4 * derivative.response) < 1e-20
    for name in ("residual_response", "response", "output_response", "G12"):
        assert distance(getattr(float64, name), getattr(s, name)) < 1e-14
    # A float is the binary fraction that it is, text a decimal one.
    for same in (mpf(0.3), sp.Rational(0.3), Fraction(0.3), np.float64(0.3)):
        assert ft.solve(net, same, digits=20).kernels[0] == s.kernels[0]
    decimal = ft.solve(net, "0.3", digits=20).kernels[0]
    assert decimal != s.kernels[0] and mpmath.nstr(decimal, 20) == "0.3"


@pytest.mark.parametrize(
    "given",
    [Fraction, str, lambda x: sp.Rational(x.numerator, x.denominator)],
    ids=["Fraction", "text", "SymPy"],
)
def test_exact_parameters(given):
    """Of a linear network in Fraction; in float64 they are their nearest floats."""
    rho, gamma, weight, K = (Fraction(1, n) for n in (3, 7, 9, 10))
    options = {"activation": "linear", "weight_variance": given(weight), "bias_variance": 0}
    scales = {"branch_scale": given(rho), "skip_scale": [given(gamma), 1, given(gamma)]}
    net = ft.ResidualNetwork(depth=3, **options, **scales)
    s = ft.solve(net, given(K), digits=60)
    for skip in (gamma, 1, gamma):
        K *= skip**2 + rho**2 * weight
    with mpmath.workdps(70):
        expected = mpf((K * weight).numerator) / (K * weight).denominator
        assert abs(s.output_kernel / expected - 1) < mpf(10) ** -60
    flint = pytest.importorskip("flint")
    ball = ft.solve(net, "1/10", digits=30, proven=True).output_kernel
    with flint.ctx.workprec(200):
        assert ball.contains(flint.arb((K * weight).numerator) / (K * weight).denominator)
    rounded = net.replace(weight_variance=1 / 9, branch_scale=1 / 3, skip_scale=[1 / 7, 1.0, 1 / 7])
    assert net != rounded
    assert_same(ft.solve(net, 0.1).G11, ft.solve(rounded, 0.1).G11)


def test_schedules_are_exact_where_their_numbers_are():
    """Thirds stay thirds; roots are floats."""
    for schedule, expected in (
        (lambda l, L: Fraction(l, 3), sp.Rational(1, 9)),
        (lambda l, L: sp.sqrt(2) * l, sp.Rational(float(np.sqrt(2))) ** 2),
        ("uniform", sp.Rational(float(1 / np.sqrt(2))) ** 2),
    ):
        net = ft.ResidualNetwork(depth=2, branch_scale=schedule, weight_variance=1)
        assert exact_coefficients(net)[1].weight == expected


@pytest.mark.slow_but(0, 2)
@pytest.mark.parametrize("K0", ["0.3", [["1/2", "1/4"], ["1/4", "1/3"]]], ids=["one", "two"])
@pytest.mark.parametrize("ends", ["npz", "nc"])
def test_files(K0, ends, tmp_path):
    net = network("relu", 2, rho=("0.3", "0.1"), weight_variance=Fraction(4, 3))
    s = ft.solve(net, K0, digits=30)
    s.save(path := tmp_path / f"s.{ends}")
    again = ft.load(path)
    assert str(again) == str(s) and again.network == net and again.input_kernel == s.input_kernel
    assert "kernels" in vars(again) and "full_response" not in vars(again)
    np.testing.assert_array_equal(again.kernels, s.kernels)
    assert str(s).count(mpmath.nstr(s.kernels[2] if s.inputs == 1 else s.kernels[2, 0, 1], 30)) == 1


def test_reading():
    s = ft.solve(network("relu", 1), [[0.5, 0.25], [0.25, 0.5]], digits=25)
    assert repr(s) == "PreciseSolution(depth=1, activation=relu, inputs=2, width=500, digits=25)"
    rows = s.rows()
    assert [(row["alpha"], row["beta"]) for row in rows] == 3 * [(0, 0), (0, 1), (1, 1)]
    assert float(rows[4]["K"]) == float(s.kernels[1, 0, 1])
    assert rows[7]["chi"] == rows[7]["eta"] == mpmath.nstr(s.output_response[0, 1], 25)
    one = ft.solve(network("relu", 1), 0.5, digits=25).rows(fluctuations=True)
    assert one[-1]["V"] is None and one[-1]["var_K"] == one[-1]["var_C"]


def test_precision_of_the_caller_is_kept():
    before = mpmath.mp.dps
    s = ft.solve(network("relu", 1), 0.5, digits=40)
    assert s.G11.shape == (3, 3) and mpmath.mp.dps == before


@pytest.mark.parametrize(
    ("K0", "options", "message"),
    [
        (0.5, {"digits": 15}, "digits must be an integer >= 16, got 15"),
        (0.5, {"digits": 1001}, "digits must be at most 1000, got 1001"),
        (0.5, {"digits": 30.0}, "digits must be an integer"),
        (0.5, {"digits": 30, "order": 2}, "order must be left out with digits, got 2"),
        (0.5, {"digits": 30, "rtol": 1e-9}, "rtol must be left out with digits, got 1e-09"),
        (0.5, {"digits": 30, "rtol": 1e-14}, "rtol must be left out with digits, got 1e-14"),
        (0.0, {"digits": 30}, "K0 must have variances > 0 with digits, got 0"),
        ("half", {"digits": 30}, "K0 must have finite rational numbers with digits, got 'half'"),
        (np.inf, {"digits": 30}, "K0 must have finite rational numbers"),
        ([0.5, 0.5], {"digits": 30}, r"K0 must be of one input or \(2, 2\) with digits"),
        (np.eye(3), {"digits": 30}, r"got shape \(3, 3\)"),
        ([[1, 2], [2, 1]], {"digits": 30}, "positive semidefinite, got the determinant -3"),
        ([[1, 0], [0.1, 1]], {"digits": 30}, "K0 must be symmetric"),
    ],
)
def test_refusals(K0, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ft.solve(network("erf", 1), K0, **options)


def test_fields_and_networks_without_digits():
    one, two = (ft.solve(network("erf", 1), K0, digits=20) for K0 in (0.5, [[1, 0], [0, 1]]))
    with pytest.raises(ValueError, match="G11 with digits is of one input, got K0 of 2"):
        _ = two.G11
    with pytest.raises(ValueError, match="full_response with digits is of two inputs"):
        _ = one.full_response
    with pytest.raises(AttributeError, match="tangent_kernels is not computed to many digits"):
        _ = one.tangent_kernels
    with pytest.raises(ValueError, match="digits needs one network, got scales of shape"):
        ft.solve(network("erf", 1, rho=[[0.1], [0.2]]), 0.5, digits=20)
    with pytest.raises(TypeError, match="digits is not there for a DiffusionNetwork"):
        ft.solve(ft.DiffusionNetwork(depth=3), [[1.0]], digits=20)
