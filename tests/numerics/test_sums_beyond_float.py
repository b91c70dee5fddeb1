"""Logarithms of kernels and responses of sums and products of functions, of two inputs."""

import warnings

import numpy as np
import pytest
import sympy as sp
from mpmath import mp, mpf

import fieldtheory as ft
from fieldtheory.networks.activations import h
from fieldtheory.numerics.layer_averages.large_variances import pair_averages
from fieldtheory.numerics.overflow import unlimited_averages
from tests.numerics.overflow.test_logarithms import network
from tests.tables import some

LOG_RELU = "elu(h)*sin(h)+log(1+Abs(h))*elu(h)"
STEP_LOG = "Heaviside(h+1)*softplus(h)*log(1+h**2)"
STEP_SELU = "selu(h)*h**3/6+asinh(h)*Heaviside(h+1)"


def side(text, lower):
    """φ above a jump or below it, without the jump."""
    step = sp.Heaviside(h + 1)
    expression = network(text, 1).activation.expression.xreplace({step: sp.Integer(lower > -2)})
    slope = expression.diff(h).replace(sp.DiracDelta, lambda *_: 0)
    # Of large signals.
    slope = slope.subs(sp.exp(h) / (sp.exp(h) + 1), 1 / (1 + sp.exp(-h)))
    return tuple(sp.lambdify(h, f, ["numpy", "scipy"]) for f in (expression, slope))


def line(start, stop, scale):
    """Nodes and weights between two places, of panels that grow away from the first one."""
    steps = np.concatenate([[0.0], scale * 1.6 ** np.arange(-24, 80)])
    cuts = start + np.sign(stop - start) * steps[steps < abs(stop - start)]
    cuts = np.unique(np.append(cuts, stop))
    x, w = np.polynomial.legendre.leggauss(24)
    half = np.diff(cuts)[:, None] / 2
    return ((cuts[:-1] + cuts[1:])[:, None] / 2 + half * x).ravel(), (half * w).ravel()


def slope_beside_jump(text, K, c, jump_at):
    """⟨φ'φ'⟩ from sums over both signals, their δ-functions by hand."""
    root, rest = np.sqrt(K), K * (1 - c * c)
    pieces = [(jump_at, -13 * root)]
    pieces += [(jump_at, 0.0), (0.0, 13 * root)] if jump_at else [(0.0, 13 * root)]
    nodes, weights, slopes = [], [], []
    for start, stop in pieces:
        x, w = line(start, stop, 1.0)
        _, slope = side(text, -3.0 if stop < jump_at else 0.0)
        nodes.append(x)
        weights.append(w)
        with np.errstate(over="ignore", invalid="ignore"):
            slopes.append(np.where(np.isnan(v := slope(x)), 0.0, v) + 0 * x)
    x, w, s = map(np.concatenate, (nodes, weights, slopes))

    def density(u, v):
        return np.exp(-((u - c * v) ** 2) / (2 * rest) - v * v / (2 * K)) / (
            2 * np.pi * np.sqrt(K * rest)
        )

    smooth = (w * s) @ density(x[:, None], x) @ (w * s)
    below, above = side(text, -3.0)[0], side(text, 0.0)[0]
    beside = 1e-13 * (jump_at == 0)
    jump = above(jump_at + beside) - below(jump_at - beside)
    given = (w * s) @ density(x, jump_at)
    return smooth + 2 * jump * given + jump**2 * density(jump_at, jump_at)


JUMPS = [
    ("sign(h)*softplus(h)", 0.0, 30.0),
    ("sign(h)*softplus(h)", 0.0, 1e6),
    (STEP_LOG, -1.0, 8.0),
    (STEP_LOG, -1.0, 400.0),
    (STEP_SELU, -1.0, 1e6),
]


@pytest.mark.parametrize(("text", "place", "K"), JUMPS)
@pytest.mark.parametrize("c", [0.5, 0.9, -0.5])
def test_slopes_beside_jumps(text, place, K, c):
    if text == STEP_SELU:
        found = unlimited_averages.pair_slope(network(text, 1), mpf(K), mpf(K), c * mpf(K))
    else:
        given = (np.array([v]) for v in (K, K, c))
        found = pair_averages(network(text, 1), "slope", *given)[0]
    assert float(found) == pytest.approx(slope_beside_jump(text, K, c, place), rel=2e-10)


DEEP = {
    LOG_RELU: (2.0, 0.5),
    STEP_LOG: (1.0, 0.5),
    STEP_SELU: (0.7, -0.5),
    "sign(h)*softplus(h)": (0.7, 0.0),
    "sqrt(Abs(h))+sech(h)": (0.7, 0.0),
    "sign(h)*sqrt(Abs(h))+atan(h)*asinh(h)": (1.0, -0.5),
    "erf(h)*sin(h)+log(1+Abs(h))*erf(h)": (1.0, 1 - 1e-9),
    "sqrt(Abs(h))*log(1+Abs(h))": (1.0, 0.5),
}


@pytest.mark.parametrize("name", some(DEEP, {STEP_SELU, "sqrt(Abs(h))*log(1+Abs(h))"}))
def test_numbers_of_deep_networks(name):
    """All of 600 layers are numbers, and those of the first five are of a shallow network."""
    skip, c = DEEP[name]
    net = network(name, 600, skip_scale=skip, weight_variance=2.0)
    K0 = np.array([[1.0, c], [c, 1.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ft.ValidityWarning)
        solution = ft.solve(net, K0)
        fields = solution.log_kernels, solution.log_response
    assert not any(np.isnan(field).any() for field in fields)
    shallow = ft.solve(net.replace(depth=5), K0)
    for field, name in zip(fields, ("log_kernels", "log_response"), strict=True):
        expected = getattr(shallow, name)[:5]
        np.testing.assert_allclose(field[:5], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("size", [40, 300])
def test_waves_beside_logarithms(size):
    """Far out φ is h(sin h + ln h) for h > 0: ⟨φ²⟩ and M' from moments, and ⟨φφ⟩ of h₊ ln h₊."""
    net, K = network(LOG_RELU, 1), mpf(10) ** size
    with mp.workdps(40):

        def moment(p):
            return (2 * K) ** (p / 2) * mp.gamma((p + 1) / 2) / mp.sqrt(mp.pi) / 2

        expected = moment(2) / 2 + mp.diff(moment, 2, 2)
        assert mp.almosteq(unlimited_averages.moment(net, K), expected, 1e-13)

        def slope(p):
            return p * moment(p) / (2 * K)

        found = unlimited_averages.response(net, K)
        assert mp.almosteq(found, slope(2) / 2 + mp.diff(slope, 2, 2), 1e-13)

        c = mpf("0.6")
        theta, size = mp.acos(c), mp.log(K) / 2
        radial = [
            mp.quad(lambda t, k=k: mp.exp(4 * t - mp.exp(2 * t) / 2) * t**k, [-25, -5, 0, 1, 3])
            for k in range(3)
        ]

        def sector(u):
            x, y = mp.sin(u), mp.sin(u + theta)
            a, b = size + mp.log(x), size + mp.log(y)
            return x * y * (a * b * radial[0] + (a + b) * radial[1] + radial[2])

        expected = K * mp.quad(sector, [0, 0.5, 1.5, mp.pi - theta]) / (2 * mp.pi)
        found = unlimited_averages.covariance(net, K, K, c * K)
        assert mp.almosteq(found, expected, 1e-12)
