"""Waves over wide signals beside functions that bend, against integrals over wave numbers."""

import numpy as np
import pytest
import sympy as sp
from mpmath import mp, mpf

import fieldtheory as ft
from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.growing import beyond_float
from fieldtheory.averages.oscillating.wave_remainders import remainder
from fieldtheory.averages.oscillating.waves import without_waves
from fieldtheory.numerics.layer_averages.entries import network_entries

h = sp.Symbol("h", real=True)
sin, cos, tanh = sp.sin, sp.cos, sp.tanh


@pytest.fixture(autouse=True)
def forty_digits():
    with mp.workdps(40):
        yield


def of_tanh(K, a=1):
    """⟨tanh(h) sin(ah)⟩ = ∫_0^∞ dk (e^{-K(k−a)²/2} − e^{-K(k+a)²/2})/(2 sinh(πk/2))."""
    width = 1 / mp.sqrt(K)
    ends = sorted(
        {mpf(10) ** -40, *(a + j * width for j in range(-16, 17, 2) if a + j * width > 0)}
    )
    return mp.quad(
        lambda k: (
            (mp.exp(-K * (k - a) ** 2 / 2) - mp.exp(-K * (k + a) ** 2 / 2))
            / (2 * mp.sinh(mp.pi * k / 2))
        ),
        ends,
    )


def of_modulus(K, a=1):
    """⟨|h| cos(ah)⟩."""
    return mp.sqrt(2 * K / mp.pi) * mp.hyp1f1(1, 0.5, -K * a**2 / 2)


def of_step(K, a=1):
    """⟨θ(h) sin(ah)⟩."""
    root = mp.sqrt(K / 2) * a
    return mp.exp(-(root**2)) * mp.erfi(root) / 2 if K < 1e4 else dawson(root) / mp.sqrt(mp.pi)


def dawson(x):
    terms = [mp.fac2(2 * n - 1) / (2**n * x ** (2 * n)) for n in range(12)]
    return sum(terms) / (2 * x)


SINGLE = {
    "tanh sin": (tanh(h) * sin(h), of_tanh),
    "tanh sin(h/5)": (tanh(h) * sin(h / 5), lambda K: of_tanh(K, mpf(1) / 5)),
    "tanh sin(2h)": (tanh(h) * sin(2 * h), lambda K: of_tanh(K, 2)),
    "modulus": (sp.Abs(h) * cos(h), of_modulus),
    "step": (sp.Heaviside(h) * sin(h), of_step),
    "square": ((tanh(h) + sin(h)) ** 2 - tanh(h) ** 2, lambda K: mpf(1) / 2 + 2 * of_tanh(K)),
}


@pytest.mark.parametrize("case", SINGLE)
@pytest.mark.parametrize("variance", ["2e4", "1e6", "1e12", "1e100", "1e250"])
def test_what_is_left_of_waves(case, variance):
    F, exact = SINGLE[case]
    K = mpf(variance)
    if K > 1e30 and "tanh" in case:
        # The density is 1/√(2πK) wherever tanh is not ±1.
        expected = exact(mpf(10) ** 30) * mp.sqrt(mpf(10) ** 30 / K)
    else:
        expected = exact(K)
    found = beyond_float.single(F, sp.S.One, h, K)
    # Of |h| the values at the ends of a window, where it is a hundred, round.
    assert abs(found / expected - 1) < 3e-12


@pytest.mark.parametrize("rate", [1, 3])
def test_pairs_of_steep_functions(rate):
    """⟨tanh(x) sin(ax) tanh(y) sin(ay)⟩ = ∬ dk dq of both transforms, here to leading orders."""
    f, K, c = tanh(h) * sin(rate * h), mpf(10) ** 20, 0.3
    J = [mp.pi / mp.sinh(mp.pi * rate / 2)]
    found = beyond_float.pair(f, h, (K, 2 * K), c, 1 - c)
    expected = J[0] ** 2 / (2 * mp.pi * mp.sqrt(2) * K * mp.sqrt(1 - c**2))
    assert abs(found / expected - 1) < 1e-11


def on_a_grid(f, K_xx, K_yy, K_xy, nodes=7200):
    """⟨f(x) f(y)⟩ by trapezoids, exact to e^{-2π/spacing} for poles and branch points at ±i."""
    x, y = (np.linspace(-7.5, 7.5, nodes) * np.sqrt(K) for K in (K_xx, K_yy))
    c2 = K_xx * K_yy - K_xy**2
    steps = (x[1] - x[0]) * (y[1] - y[0]) / (2 * np.pi * np.sqrt(c2))
    total = 0.0
    for part in np.array_split(x, 40):
        a = part[:, None]
        bell = np.exp(-(K_yy * a**2 + K_xx * y**2 - 2 * K_xy * a * y) / (2 * c2))
        total += (bell * f(part)[:, None] * f(y)).sum()
    return total * steps


PAIRS = {
    "h+tanh(h)*sin(h)": lambda x: x + np.tanh(x) * np.sin(x),
    "sqrt(1+h**2)*cos(h)": lambda x: np.sqrt(1 + x**2) * np.cos(x),
    "h*sin(sqrt(1+h**2))": lambda x: x * np.sin(np.sqrt(1 + x**2)),
    "softplus(h)+cos(h)*exp(-h**2/8)": lambda x: (
        np.logaddexp(0, x) + np.cos(x) * np.exp(-(x**2) / 8)
    ),
}


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("c", [0.3, -0.5])
def test_pairs_against_trapezoids(name, c):
    """Variances above the switch, of which a dense grid still sees the waves."""
    K_xx, K_yy = 1.4e4, 1.5e4
    K_xy = c * np.sqrt(K_xx * K_yy)
    found = network_entries(ft.ResidualNetwork(depth=1, activation=name)).covariance(
        K_xx, K_yy, K_xy
    )
    f = PAIRS[name]
    expected = on_a_grid(f, K_xx, K_yy, K_xy)
    # The rounding of the sum beside ⟨f²⟩.
    z = np.linspace(-8, 8, 40001) * np.sqrt(K_yy)
    size = (f(z) ** 2 * np.exp(-(z**2) / (2 * K_yy))).sum() / np.exp(-(z**2) / (2 * K_yy)).sum()
    assert abs(found - expected) < 1e-15 * size + 1e-9 * abs(expected)


@pytest.mark.parametrize(
    "name",
    ["gelu(h)*cos(3*h)", "softplus(h)*sin(h)", "log(1+h**2)*sin(h)", "h*tanh(h)*sin(h)"],
)
def test_both_sides_of_the_switch(name):
    """From quadrature to windows, pairs of waves go on as powers."""
    entries = network_entries(ft.ResidualNetwork(depth=1, activation=name))
    scale = 1 if name.startswith("gelu") else 9

    def at(K):
        K = scale * K
        return float(entries.covariance(K, K, 0.3 * K))

    powers = [np.log2(at(2 * K) / at(K)) for K in (400, 1600, 6400)]
    # They approach a whole power as 1/K.
    assert abs(powers[2] - round(powers[2])) < 0.01
    assert abs(powers[1] - round(powers[2])) < 0.03


PERIODIC = {
    "h/(2+sin(h))": lambda x: 1 / (2 + mp.sin(x)),
    "h*exp(sin(h))": lambda x: mp.exp(mp.sin(x)),
    "h*sin(2*h)**2/(3+cos(h))": lambda x: mp.sin(2 * x) ** 2 / (3 + mp.cos(x)),
}


@pytest.mark.parametrize("variance", [1e5, 1e12, 1e100])
@pytest.mark.parametrize("name", PERIODIC)
def test_means_of_periodic_functions(name, variance):
    """⟨h² p(h)²⟩ = K times the mean of p² over a period."""
    with mp.workdps(20):
        turns = mp.linspace(0, 2 * mp.pi, 9)
        mean = mp.quad(lambda x: PERIODIC[name](x) ** 2, turns) / (2 * mp.pi)
    entries = network_entries(ft.ResidualNetwork(depth=1, activation=name))
    assert entries.second_moment(variance) == pytest.approx(float(mean) * variance, rel=1e-12)
    assert entries.susceptibility(variance) == pytest.approx(float(mean), rel=1e-12)


def test_a_mean_is_found_twice():
    """Results that are kept are not those of the first use alone."""
    F = 1 / (2 + sin(h))
    assert without_waves(F, h) == without_waves.__wrapped__(F, h)
    assert without_waves(2 * F, h).function == 2 * without_waves(F, h).function != 0


@pytest.mark.parametrize(
    "F", [sin(h**2), sp.sqrt(2 + h**2 + sin(h)), tanh(h + sin(h)), sin(h) ** h]
)
def test_other_waves_are_refused(F):
    with pytest.raises(QuadratureError, match="waves of"):
        without_waves(F, h)


@pytest.mark.parametrize("place", [0, 30, 700])
@pytest.mark.parametrize("bent", [lambda u: sp.exp(-(u**2)), lambda u: 1 / (1 + u**2)])
def test_what_bends_far_out(place, bent):
    """⟨cos(h) b(h − a)⟩ is cos(a) times the transform of b, under a density that is constant."""
    K = mpf(10) ** 40
    found = beyond_float.single(cos(h), bent(h - place), h, K)
    transform = mp.sqrt(mp.pi) * mp.exp(-mpf(1) / 4) if bent(h).has(sp.exp) else mp.pi / mp.e
    expected = transform * mp.cos(place) * mp.npdf(0, 0, mp.sqrt(K))
    assert abs(found / expected - 1) < 1e-12


def test_windows_that_do_not_agree_are_refused():
    """Signals narrower than waves."""
    with pytest.raises(QuadratureError, match="are not resolved at the variance"):
        beyond_float.single(tanh(h), sin(h), h, mpf(50))
    with pytest.raises(QuadratureError, match="are too short beside where it bends"):
        remainder(sin(10**6 * h) * sp.Abs(h - 3), h)


def test_slow_waves_are_functions_of_the_size():
    """sin(log(1 + h²)) has no mean: ⟨sin²⟩ = (1 − Re (2K)^{2i} Γ(1/2 + 2i)/√π)/2 far out."""
    F, K = sin(sp.log(1 + h**2)), mpf(10) ** 40
    found = beyond_float.single(F, F, h, K)
    power = mp.exp(2j * mp.log(2 * K)) * mp.gamma(mpf(1) / 2 + 2j) / mp.sqrt(mp.pi)
    assert abs(found / ((1 - power.real) / 2) - 1) < 1e-12


NETWORKS = {
    "relu(h)+sin(h)": 1.0,
    "h*sin(h)+tanh(h)": 1.0,
    "h*sin(sqrt(1+h**2))": 1.0,
    "h**2*exp(sin(h))": 1.0,
    "sin(h)+tanh(h)": 2.0,
    "h*tanh(h)*sin(h)": 1.0,
}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("K0", [1.0, np.array([[1.0, 0.3], [0.3, 2.0]])])
def test_networks_that_overflow(name, K0):
    """Logarithms join the numbers, and none is an error."""
    settings = {"skip_scale": NETWORKS[name], "weight_variance": 2.0, "bias_variance": 0.1}
    net = ft.ResidualNetwork(depth=1100, activation=name, **settings)
    joined, alone = ft.solve(net, K0), ft.solve(net.replace(depth=3), K0)
    for field in ("log_kernels", "log_response", "log_tangent_kernels"):
        assert not np.isnan(getattr(joined, field)).any()
    assert joined.log_kernels.max() > 709.8
    np.testing.assert_allclose(joined.log_kernels[:4], np.log(np.abs(alone.kernels[:4])), rtol=1e-9)
