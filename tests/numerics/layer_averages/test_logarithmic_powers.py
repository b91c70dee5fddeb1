"""Averages of wide signals of powers times logarithms, against derivatives of those of powers."""

import numpy as np
import pytest
import sympy as sp
from mpmath import mp, mpf

import fieldtheory as ft
from fieldtheory.networks.activations import h
from fieldtheory.numerics.layer_averages.logarithmic_powers import logarithmic_powers
from fieldtheory.numerics.overflow.unlimited import unlimited_layers, unlimited_pairs
from tests.numerics.overflow.test_logarithms import layers, network
from tests.tables import crossed

# Even, odd and one-sided functions: what each side has of |h|^p ln|h|.
SIDES = {"even": (1, 1), "odd": (1, -1), "one-sided": (1, 0)}
K, SECOND = mpf(10) ** 40, 3 * mpf(10) ** 42


@pytest.fixture(autouse=True)
def fifty_digits():
    with mp.workdps(50):
        yield


def form(p, sides):
    up, down = sides
    text = f"Abs(h)**{p}*log(1+h**2)/2*({up}*Heaviside(h)+{down}*Heaviside(-h))"
    f = sp.sympify(text, {"h": h})
    found = logarithmic_powers(f)
    assert found.sides.power == pytest.approx(p, abs=1e-30)
    return found


def m(s):
    return mpf(2) ** (s / 2) * mp.gamma((s + 1) / 2) / mp.sqrt(mp.pi)


def of_powers(p, q, c, sides):
    """⟨f(x) f(y)⟩ of |x|^p and |y|^q on these sides, normal signals."""
    even = m(p) * m(q) * mp.hyp2f1(-p / 2, -q / 2, mpf(1) / 2, c**2)
    odd = c * m(p + 1) * m(q + 1) * mp.hyp2f1((1 - p) / 2, (1 - q) / 2, mpf(3) / 2, c**2)
    up, down = sides
    return ((up + down) ** 2 * even + (up - down) ** 2 * odd) / 4


def average(p, sides, a, b, c, orders=(1, 1)):
    """⟨φφ⟩ of |h|^p ln^n|h|: derivatives by both powers."""

    def of_both(p, q):
        return a ** (p / 2) * b ** (q / 2) * of_powers(p, q, c, sides)

    p = mpf(p)
    return mp.diff(of_both, (p, p), orders) if any(orders) else of_both(p, p)


def slope_average(p, sides, a, b, c):
    """⟨φ'φ'⟩, φ' = ±|h|^{p−1} (p ln|h| + 1)."""
    turned = sides[0], -sides[1]
    terms = [(p * p, (1, 1)), (p, (1, 0)), (p, (0, 1)), (1, (0, 0))]
    return sum(w * average(p - 1, turned, a, b, c, orders) for w, orders in terms)


CORRELATIONS = ["-0.9", "0.3", "1e-6", "0.9999", "0.999999999", "-0.9999999"]


@pytest.mark.parametrize(
    ("c", "sides", "p"), crossed(CORRELATIONS, SIDES.values(), [1, 2, 1.5, 0.75])
)
def test_pairs(p, sides, c):
    found, c = form(p, sides), mpf(c)
    given = K, SECOND, c * mp.sqrt(K * SECOND)
    values = found.covariance(*given), found.slope(*given)
    expected = average(p, sides, K, SECOND, c), slope_average(p, sides, K, SECOND, c)
    for value, right in zip(values, expected, strict=True):
        if value is None:
            # Nearly opposite signals, one of which is small.
            assert 0 in sides and c < -0.99
        else:
            assert value / right == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("sides", SIDES.values(), ids=SIDES)
@pytest.mark.parametrize("p", [0, 1, 2, 1.5, 0.75])
def test_single_signals(p, sides):
    found, one = form(p, sides) if p else form_of_logarithm(), mp.one
    sides = sides if p else (1, 1)
    moment = average(p, sides, K, K, one)
    assert found.moment(K) / moment == pytest.approx(1, rel=1e-25)
    response = mp.diff(lambda k: average(p, sides, k, k, one), K)
    assert found.response(K) / response == pytest.approx(1, rel=1e-12)
    if p:
        right = slope_average(p, sides, K, K, one)
        assert found.slope_square(K) / right == pytest.approx(1, rel=1e-25)


def form_of_logarithm():
    return logarithmic_powers(sp.log(1 + h**2) / 2)


def test_both_sides_of_their_own():
    """Of elu(h) log(1 + |h|), −ln|h| is nothing beside h ln h, but for nearly opposite signals."""
    found = logarithmic_powers(
        sp.Piecewise((h, h > 0), (sp.exp(h) - 1, True)) * sp.log(1 + sp.Abs(h))
    )
    K = mpf(10) ** 40
    assert found.slope(K, K, -K * (1 - mpf(10) ** -30)) is None
    right = average(1, (1, 0), K, K, -mpf("0.99"))
    assert found.covariance(K, K, -mpf("0.99") * K) / right == pytest.approx(1, rel=1e-12)
    two = logarithmic_powers(3 * h * sp.log(1 + sp.Abs(h)) - sp.Max(0, h))
    assert [tuple(map(round, map(float, side))) for side in two.sides[1:]] == [(-1, 3), (0, -3)]


@pytest.mark.parametrize(
    "name", ["exp(h)", "h*log(1+exp(h**2))", "sin(h)*log(1+h**2)", "h*log(1+log(1+h**2))"]
)
def test_others(name):
    found = logarithmic_powers(sp.sympify(name, {"h": h}))
    assert found is None or len(found.sides.up) == 1


def test_narrow_angles_keep_their_digits():
    """Two layers from 1 − c = 1e-9, kernels of 30 digits."""
    net = network("relu(h)*log(1+Abs(h))", 2, weight_variance=2.0, bias_variance=0.0)
    own = np.array([1e40, 1e40])
    found = unlimited_layers(net, own, 1)
    t = 1e40 * (1 - 1e-9)
    indices = np.array([0]), np.array([1])
    pairs = unlimited_pairs(found, own, np.array([t]), indices)
    a, t = mpf(1e40), mpf(t)
    for l, (skip, weight, _) in enumerate(layers(net)[:2], start=1):
        c = t / a
        M, covariance = (average(1, (1, 0), a, a, each) for each in (mp.one, c))
        a, t = skip * a + weight * M, skip * t + weight * covariance
        apart = 1 - pairs.kernels[l, 0] / found.kernels[l, 0]
        assert apart / (1 - t / a) == pytest.approx(1, rel=1e-11)
        assert pairs.log_kernels[l, 0] == pytest.approx(float(mp.log(t)), rel=1e-15)


GROWTH = {
    "relu(h)*log(1+Abs(h))": (0.5, 1),
    "h*log(1+h**2)": (1, 2),
    "gelu(h)*log(1+h**2)": (0.5, 2),
    "softplus(h)*log(1+Abs(h))": (0.5, 1),
}


@pytest.mark.parametrize("name", GROWTH)
def test_growth_of_deep_networks(name):
    """K^(l+1)/K^(l) = 1 + σ_w² w r² ⟨z² (ln √K + ln|z|)²⟩ of φ = r h ln|h|, on one side or both."""
    net = network(name, 600, weight_variance=6.0)
    solution = ft.solve(net, 1.0)
    (share, rate), K = GROWTH[name], solution.log_kernels[300:601]
    mean, spread = (mp.log(2) + mp.psi(0, 1.5)) / 2, mp.psi(1, 1.5) / 4
    square = [(mpf(x) / 2 + mean) ** 2 + spread for x in K]
    expected = [float(mp.log(1 + 6 * share * rate**2 * v)) for v in square]
    # Roundings of logarithms of 1e4.
    np.testing.assert_allclose(np.diff(K), expected[:-1], rtol=1e-11)
    # M' is that of M: it grows by ⟨z² (...)⟩/2 more.
    gains = [
        float(mp.log(1 + 6 * share * rate**2 * (v + mpf(x) / 2 + mean)))
        for v, x in zip(square, K, strict=True)
    ]
    np.testing.assert_allclose(np.diff(solution.log_response[300:601]), gains[:-1], rtol=1e-11)


def test_jumps_are_nothing_beside_what_grows():
    """But where both signals jump together."""
    K_xx, K_yy = mpf(10) ** 80, 3 * mpf(10) ** 80
    plain = logarithmic_powers(sp.sympify("h*log(1+h**2)", {"h": h}))
    jumping = logarithmic_powers(sp.sympify("sign(h)+h*log(1+h**2)", {"h": h}))
    assert jumping.start <= mpf(10) ** 40 and jumping.slope_square(K_xx) is None
    for away in (mpf("0.4"), mpf(10) ** -6):
        given = K_xx, K_yy, (1 - away) * mp.sqrt(K_xx * K_yy)
        for name in ("covariance", "slope"):
            found, expected = (getattr(form, name)(*given) for form in (jumping, plain))
            assert mp.almosteq(found, expected, rel_eps=1e-14)
    start = mp.mpf(jumping.start)
    near = start, start, (1 - mpf(10) ** -45) * start
    assert jumping.slope(*near) is None and jumping.covariance(*near) is None
    assert plain.slope(*near) is not None
