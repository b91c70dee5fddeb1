"""Averages of waves beside functions that do not grow, against sums over nodes."""

import numpy as np
import pytest
import sympy as sp
from mpmath import mp, mpf

from fieldtheory.averages.growing.beside_waves import beside, size_beside, split_of

h = sp.Symbol("h", real=True)
FUNCTIONS = [
    sp.exp(h) * sp.sin(h) + sp.tanh(h),
    sp.Abs(h) * sp.exp(h) * sp.sin(h),
    h * sp.sinh(h) * sp.cos(h) * sp.sign(h) + sp.Abs(h - 1),
    sp.exp(h) * sp.cos(h) + sp.log(1 + sp.exp(h)) * sp.sin(h),
    sp.exp(3 * h) * sp.sin(h) * sp.tanh(h),
    sp.sinh(h) * sp.cos(h) * sp.erf(h),
    h * sp.exp(h) * sp.sin(h) * sp.log(1 + sp.exp(h)) / (1 + sp.exp(-h)),
]
KERNELS = [(0.5, 0.8, 0.3), (0.9, 0.6, -0.5)]


@pytest.mark.parametrize("f", FUNCTIONS)
def test_waves_and_rest_are_the_function(f):
    split = split_of(f, h)
    for place in (-30, -2.5, -0.3, 0.4, 1.7, 25):
        value, rest = f.subs(h, place).evalf(30), split.rest.subs(h, place).evalf(30)
        assert abs(split.wave.subs(h, place).evalf(30) + rest - value) < 1e-15 * (1 + abs(value))
        assert abs(rest) <= split.envelope.subs(h, place).evalf(30) + 1e-15


@pytest.mark.parametrize(
    "f", [sp.exp(h) * sp.sin(h) / (1 + h**2), sp.exp(h) * sp.sin(h) + sp.exp(h**2 / 9)]
)
def test_what_grows_beside_waves_is_no_rest(f):
    assert split_of(f, h) is None


@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize("K", KERNELS)
def test_integrals_of_waves_beside_the_rest(f, K):
    split, (a, b, t) = split_of(f, h), K
    z = np.linspace(-9, 9, 3601)
    bell = np.exp(-(z**2) / 2)
    # The kinks are nodes or fall between two of them.
    y = np.sqrt(b) * z
    x = t / b * y[:, None] + np.sqrt(a - t * t / b) * np.linspace(-9, 9, 181)
    inner = sp.lambdify(h, split.wave)(x) @ np.exp(-(np.linspace(-9, 9, 181) ** 2) / 2)
    rest = bell * sp.lambdify(h, split.rest)(y) * np.ones_like(y)
    exact = rest @ inner * 0.005 * 0.1 / (2 * np.pi)
    found = [beside(w, split, h, *map(mpf, K)) for w in split.waves]
    total = float(sum(value for value, _ in found))
    assert total == pytest.approx(exact, rel=2e-5, abs=1e-6)
    assert sum(error for _, error in found) < 1e-12 * abs(total)
    bounds = [size_beside(w, split, h, *map(mpf, K)) for w in split.waves]
    assert all(abs(v) < 10 * most for (v, _), most in zip(found, bounds, strict=True))


def test_what_does_not_resolve_is_left():
    """Waves of which too many digits cancel, and waves of the rest."""
    split = split_of(FUNCTIONS[0], h)
    (w,) = split.waves
    with mp.workdps(30):
        assert beside(w, split, h, mpf(1e5), mpf(2e5), mpf(5e4)) is None
        assert beside(w, split, h, mpf(1e5), mpf(2e5), mpf(500)) is not None
        # |⟨e^{(1+i)x}⟩_y| = e^{ty/b}, and ⟨e^{ty/b}⟩ = e^{t²/2b}.
        most = size_beside(w, split, h, mpf(1e5), mpf(2e5), mpf(5e4))
        assert abs(mp.log(most) - 2500 * mpf(5) / 2) < 5
