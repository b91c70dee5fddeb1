"""⟨φ'φ'⟩ of two signals of φ that jumps and grows, against integrals over one signal."""

import pytest
from mpmath import mp, mpf

import fieldtheory as ft
from fieldtheory.numerics.overflow.unlimited_averages import pair_slope, slope_square


@pytest.fixture(autouse=True)
def thirty_digits():
    with mp.workdps(30):
        yield


def above(a, K_xx, K_yy, K_xy):
    """⟨e^x θ(x − a) e^y θ(y − a)⟩: of signals moved by their covariances."""
    means = K_xx + K_xy, K_yy + K_xy
    s = mp.sqrt(K_xx)
    rest = mp.sqrt(K_yy - K_xy**2 / K_xx)

    def of_first(z):
        mean = means[1] + K_xy / s * z
        return mp.npdf(z) * mp.ncdf((mean - a) / rest)

    start = (a - means[0]) / s
    turn = (a - means[1]) * s / K_xy if K_xy else 0
    width = rest * s / abs(K_xy) if K_xy else 1
    places = {max(start, mpf(-30)), mpf(30), *(turn + width * k for k in (-20, -5, 0, 5, 20))}
    places |= {start + 8 / (1 + abs(start)) * k for k in (1, 3)}
    inside = sorted(p for p in places if max(start, -30) <= p <= 30)
    total = mp.quad(of_first, inside)
    return mp.exp((K_xx + K_yy + 2 * K_xy) / 2) * total


def expected(a, K_xx, K_yy, K_xy):
    """With φ' = e^h θ(h − a) + e^a δ(h − a)."""
    total = above(a, K_xx, K_yy, K_xy)
    for own, other in ((K_xx, K_yy), (K_yy, K_xx)):
        mean, rest = K_xy / own * a, other - K_xy**2 / own
        beyond = mp.ncdf((mean + rest - a) / mp.sqrt(rest))
        total += mp.exp(a) * mp.npdf(a, 0, mp.sqrt(own)) * mp.exp(mean + rest / 2) * beyond
    det = K_xx * K_yy - K_xy**2
    square = a * a * (K_xx + K_yy - 2 * K_xy) / det
    return total + mp.exp(2 * a - square / 2) / (2 * mp.pi * mp.sqrt(det))


@pytest.mark.parametrize("a", [0, 1, -2])
@pytest.mark.parametrize("c", [0.5, 0.0, -0.5, 1 - 1e-9])
def test_exponentials_above_a_threshold(a, c):
    net = ft.ResidualNetwork(depth=1, activation=f"exp(h)*Heaviside(h-({a}))")
    K_xx, K_yy = mpf(700), mpf(700 if c > 0.9 else 800)
    K_xy = mpf(c) * mp.sqrt(K_xx * K_yy)
    found = pair_slope(net, K_xx, K_yy, K_xy)
    assert mp.almosteq(found, expected(mpf(a), K_xx, K_yy, K_xy), rel_eps=1e-9)


def test_what_jumps_has_no_tangent_kernel():
    net = ft.ResidualNetwork(depth=1, activation="exp(h)*sign(h)")
    with pytest.raises(ValueError, match="jumps"):
        slope_square(net, mpf(10) ** 4)


@pytest.mark.parametrize("activation", ["sign(h)*cosh(h)", "exp(h/2)*sign(h)", "exp(h)*sign(h-1)"])
def test_all_layers_have_responses(activation):
    net = ft.ResidualNetwork(depth=20, activation=activation, weight_variance=6.0, skip_scale=0.7)
    found = ft.solve(net, [[1.0, 1 - 1e-9], [1 - 1e-9, 1.0]]).log_response
    assert (found[:3] < 1e4).all() and (found[-1] == float("inf")).all()
