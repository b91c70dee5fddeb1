"""Tangent kernels to 1e-12 of mpmath, for the activations that people use."""

from itertools import product

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import fieldtheory as ft
from fieldtheory.networks.activations import as_activation
from fieldtheory.numerics.infinite_width.layer_functions import layer_functions
from tests.examples import precise_oracle
from tests.numerics.test_activation_table import TABLE as PLAIN
from tests.oracles import deep_kernels, tangent
from tests.tables import slow, some


def theta(x):
    return mpf(x > 0)


def inside(x, low, high):
    return mpf(low < x < high)


def sech2(x):
    return 1 / mpmath.cosh(x) ** 2


def softplus(x):
    return mpmath.log1p(mpmath.exp(x)) if x < 50 else x


def logistic(x):
    return 1 / (1 + mpmath.exp(-x))


def mish_slope(x):
    return mpmath.tanh(softplus(x)) + x * logistic(x) * sech2(softplus(x))


SCALE, ALPHA = mpf("1.0507009873554804934193349852946"), mpf("1.6732632423543772848170429916717")

# φ and φ' of some activations of the other table, of each kind one or two.
SLOPES = {
    "softsign": (lambda x: x / (1 + abs(x)), lambda x: (1 + abs(x)) ** -2),
    "hard tanh": (lambda x: min(max(x, -1), 1), lambda x: inside(x, -1, 1)),
    "SELU": (
        lambda x: SCALE * (x if x > 0 else ALPHA * mpmath.expm1(x)),
        lambda x: SCALE * (mpf(1) if x > 0 else ALPHA * mpmath.exp(x)),
    ),
    "mish": (lambda x: x * mpmath.tanh(softplus(x)), mish_slope),
    "arctan": (mpmath.atan, lambda x: 1 / (1 + x * x)),
    "Gaussian": (lambda x: mpmath.exp(-x * x), lambda x: -2 * x * mpmath.exp(-x * x)),
    "|x|": (abs, mpmath.sign),
    "x³": (lambda x: x**3, lambda x: 3 * x * x),
}
MORE = {
    "erf": ("erf", mpmath.erf, lambda x: 2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-x * x)),
    "tanh": ("tanh", mpmath.tanh, sech2),
    "relu": ("relu", lambda x: max(x, 0), theta),
    "swish": (
        "swish",
        lambda x: x * logistic(x),
        lambda x: logistic(x) * (1 + x * (1 - logistic(x))),
    ),
}


def network(text, depth=3):
    return ft.ResidualNetwork(
        depth=depth,
        activation=text,
        branch_scale=[0.7, 0.5, 0.9][:depth],
        skip_scale=[1.0, 0.8, 0.9][:depth],
        readout_weight_variance=1.5,
    )


QUICK = {"softsign", "hard tanh", "SELU", "x³"}


@pytest.mark.parametrize("name", some(SLOPES, QUICK))
def test_one_input(name):
    text, _, kinks, K0 = PLAIN[name]
    net = network(text)
    with mpmath.workdps(25):
        expected = tangent.of_one(precise_oracle(net), K0, *SLOPES[name], kinks)
    found = ft.solve(net, K0).tangent_kernels
    np.testing.assert_allclose(found, np.array(expected, dtype=float), rtol=1e-12)


PAIRS = ["erf", "tanh", "relu", "swish", "|x|", "softsign", "arctan", "Gaussian"]


@pytest.mark.parametrize("name", some(PAIRS, {"relu"}))
def test_two_inputs(name):
    text, *functions = MORE.get(name) or (PLAIN[name][0], *SLOPES[name])
    net, K0 = network(text, depth=1), np.array([[0.5, 0.2], [0.2, 0.7]])
    with mpmath.workdps(16):
        expected = tangent.of_pair(precise_oracle(net), K0, *functions)
    found = ft.solve(net, K0)
    np.testing.assert_allclose(
        found.tangent_kernels[:, 0, 1], np.array(expected, dtype=float), rtol=1e-12
    )
    assert found.output_tangent_kernel[0, 1] == found.tangent_kernels[-1, 0, 1]


VARIANCES = [1e-12, 1e-6, 1e-3, 0.1, 1.0, 20.0, 1e3, 1e6]


@pytest.mark.parametrize("name", some(["erf", "tanh", "swish", "softsign", "relu"], {"tanh"}))
def test_the_average_at_all_variances(name):
    """Where no closed form is known to the last digit: from far inside φ's curve to far outside."""
    text, *functions = MORE.get(name) or (PLAIN[name][0], *SLOPES[name])
    found = layer_functions(as_activation(text)).slope_square(np.array(VARIANCES))
    with mpmath.workdps(25):
        for K, value in zip(VARIANCES, found, strict=True):
            scales = [10.0**power for power in range(-1, 3)]
            splits = [0.0, *scales, *(-x for x in scales)]
            expected = tangent.average1(lambda h: functions[1](h) ** 2, mpf(K), splits)
            assert value == pytest.approx(float(expected), rel=1e-12)


BENT = {
    "relu": deep_kernels.bent(1, 0),
    "leaky_relu": deep_kernels.bent(1, "0.01"),
    "abs(h)": deep_kernels.bent(1, -1),
}
# With skip connections, and without, where biases draw inputs together.
SKIPS = {"skips": {"branch_scale": 0.5}, "feed-forward": {"skip_scale": 0.0}}


QUICK_SKIPS = [("relu", "skips")]


@pytest.mark.parametrize(
    ("name", "skips"),
    [case if case in QUICK_SKIPS else slow(*case) for case in product(BENT, SKIPS)],
)
def test_scale_free_functions_at_small_angles(name, skips):
    """Slopes know the angle, of which covariances in float64 know the digits of the square."""
    net = ft.ResidualNetwork(depth=50, activation=name, weight_variance=1.7, **SKIPS[skips])
    w, b = mpf(net.weight_variance), mpf(net.bias_variance)
    each = zip(net.branch_scales.tolist(), net.skip_scales.tolist(), strict=True)
    layers = [(mpf(g) ** 2, mpf(r) ** 2 * w, mpf(r) ** 2 * b) for r, g in each] + [(0, w, b)]
    for apart in (0.5, 1e-2, 1e-6, 5e-11):
        for norm in (1.0, 1 + 2.0**-20):
            K0 = np.array([[1.0, 1 - apart], [1 - apart, norm]])
            with mpmath.workdps(40):
                given = [mpf(float(k)) for k in K0[[0, 1, 0], [0, 1, 1]]]
                expected = deep_kernels.tangents(BENT[name], layers, *given)
                _, chi = deep_kernels.two_inputs(BENT[name], layers, *given)
            found = ft.solve(net, K0)
            expected = np.array(expected, dtype=float)
            np.testing.assert_allclose(found.tangent_kernels[:, 0, 1], expected, rtol=1e-11)
            response = found.response[:, 0, 1]
            np.testing.assert_allclose(response, np.array(chi, dtype=float), rtol=1e-11)
            alone = ft.solve(net, K0).output_tangent_kernel[0, 1]
            assert alone == pytest.approx(expected[-1], rel=1e-11)


def gelu(p, q, r):
    """⟨φφ⟩ and ⟨φ'φ'⟩ of h Φ(h) by Stein's lemma, x Φ(x) = x P(z < x); and Price."""

    def moment(r):
        det = mpmath.sqrt((1 + p) * (1 + q) - r * r)
        both = mpf(1) / 4 + mpmath.atan2(r, det) / (2 * mpmath.pi)
        one = p * (q - r * r / (1 + p)) / det
        other = r * (r / (1 + q)) / det
        return r * both + (one + other) / (2 * mpmath.pi)

    return moment(r), mpmath.diff(moment, r, h=r * mpf(10) ** -35)


NARROW = [("gelu", gelu, 15, 1e-9), ("gelu", gelu, 15, 1e-13)]


@pytest.mark.parametrize(("name", "averages", "depth", "apart"), NARROW)
def test_nearly_parallel_inputs(name, averages, depth, apart):
    """Covariances know the square of the angle, of which every layer lost digits."""
    c = 1 - apart
    net = ft.ResidualNetwork(depth=depth, activation=name, weight_variance=2.0, bias_variance=0.25)
    found = ft.solve(net, [[1.0, c], [c, 1.0]])
    with mpmath.workdps(80):
        p, r, theta, chi = mpf(1), mpf(c), mpf(c), mpf(1)
        for l in range(1, depth + 1):
            own = averages(p, p, p * (1 - mpf(10) ** -28))[0]
            pair, slope = averages(p, p, r)
            chi *= 1 + 2 * slope
            theta = (1 + 2 * slope) * theta + 2 * pair + mpf(1) / 4
            p, r = p + 2 * own + mpf(1) / 4, r + 2 * pair + mpf(1) / 4
            assert found.response[l, 0, 1] == pytest.approx(float(chi), rel=1e-11)
            assert found.tangent_kernels[l, 0, 1] == pytest.approx(float(theta), rel=1e-11)
