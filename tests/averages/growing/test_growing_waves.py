"""Averages of powers times exponentials times waves, against sums over nodes and closed forms."""

import numpy as np
import pytest
import sympy as sp
from mpmath import mp, mpf

from fieldtheory.averages.growing.growing_waves import average, waves_of

h = sp.Symbol("h", real=True)
FUNCTIONS = [
    sp.exp(h) * sp.sin(h),
    sp.exp(h / 2) * sp.cos(h) ** 2 + 1,
    h**2 * sp.exp(h) * sp.sin(h + 1) + sp.sinh(h) + h,
]
KERNELS = {3: (0.5, 0.8, 0.3), 2: (0.7, 0.7, -0.4), 1: (0.6, 0.6, 0.6)}


@pytest.fixture(autouse=True)
def thirty_digits():
    with mp.workdps(30):
        yield


@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize("count", KERNELS)
def test_moderate_signals(f, count):
    a, b, t = KERNELS[count]
    z, weights = np.polynomial.hermite_e.hermegauss(80)
    x = np.sqrt(a) * z[:, None]
    y = t / a * x + np.sqrt(max(b - t * t / a, 0)) * z
    slope = sp.diff(f, h)
    exact = (weights[:, None] * weights * sp.lambdify(h, f)(x) * sp.lambdify(h, slope)(y)).sum()
    K = {3: (a, b, t), 2: (a, t), 1: (a,)}[count]
    found = average(waves_of(f, h), waves_of(slope, h), tuple(map(mpf, K)), (0,) * count)
    assert float(found[0]) == pytest.approx(exact / (2 * np.pi), rel=1e-12) and found[1] == 0


@pytest.mark.parametrize("f", [sp.tanh(h) * sp.sin(h), sp.Abs(h) * sp.sin(h), sp.exp(h**2 / 9)])
def test_others_are_not_taken(f):
    assert waves_of(f, h) is None


def test_phases_that_are_not_known():
    """(e^{2t} cos(a − b) − cos(a + b + 2t))/2: of one variance the first phase vanishes."""
    waves = waves_of(sp.exp(h) * sp.sin(h), h)
    a, b, t = mpf(10) ** 20, 3 * mpf(10) ** 20, mpf(5)
    known, unknown = average(waves, waves, (a, b, t), (mpf(1), mpf(1), mpf(0)))
    assert known == 0 and abs(unknown / ((mp.exp(10) + 1) / 2) - 1) < 1e-25
    known, unknown = average(waves, waves, (a, t), (mpf(1), mpf(0)))
    assert abs(known / (mp.exp(10) / 2) - 1) < 1e-25 and unknown == mpf(1) / 2
    exact = (mp.exp(10) * mp.cos(a - b) - mp.cos(a + b + 2 * t)) / 2
    assert abs(average(waves, waves, (a, b, t), (mpf(0),) * 3)[0] / exact - 1) < 1e-6
    assert average(waves, waves, (a, mp.inf, -b), (mpf(0), mp.inf, mpf(0))) == (0, mpf(1) / 2)
