"""Connected correlators of piecewise constant functions, against one integral of 30 digits."""

from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest
import sympy as sp

from fieldtheory.averages import ConnectedCorrelator
from fieldtheory.compiling.functions import lambdify

x, y = sp.symbols("x y", real=True)
a, b, t = sp.symbols("a b t", positive=True)
# Values between the places of jumps, lowest first.
CASES = {
    "(sign(h - 1) + sign(h + 1))**2": ((-1, 1), (4, 0, 4)),
    "Heaviside(h - 1)": ((1,), (0, 1)),
    "(2*sign(h - 1) - sign(h + 2))**2": ((-2, 1), (1, 9, 1)),
    "(Heaviside(h) + Heaviside(h - 1))**2": ((0, 1), (0, 1, 4)),
}


def expected(places, values, K_xx, K_yy, K_xy):
    """⟨F(x) (⟨F(y)⟩ given x − ⟨F⟩)⟩; of one variable up to its sign, what it is by hand."""
    with mp.workdps(30):
        K_xx, K_yy, K_xy = map(mp.mpf, (K_xx, K_yy, K_xy))
        rest = K_yy - K_xy**2 / K_xx

        def mean(at, variance):
            steps = zip(places, pairwise(values), strict=True)
            tails = ((v - u) * mp.erfc((p - at) / mp.sqrt(2 * variance)) / 2 for p, (u, v) in steps)
            return values[0] + mp.fsum(tails)

        centre, noise, end = mean(0, K_yy), mp.sqrt(rest), 14 * mp.sqrt(K_xx)
        seen = [p * K_xx / K_xy + k * noise for p in places for k in (-9, -3, 0, 3, 9)]
        cuts = sorted({-end, end, *(c for c in (*places, *seen) if abs(c) < end)})

        def integrand(h):
            of_x = values[sum(h > p for p in places)]
            bell = mp.exp(-(h**2) / (2 * K_xx)) / mp.sqrt(2 * mp.pi * K_xx)
            return bell * of_x * (mean(h * K_xy / K_xx, rest) - centre)

        return float(mp.quad(integrand, cuts))


@pytest.mark.parametrize("text", CASES)
@pytest.mark.parametrize(
    "K",
    [
        (1, 1, 0.5),
        (1, 2, -1.3),
        (1, 1, 1 - 1e-9),
        (1, 1, 1e-5),
        (0.03, 1, 0.1),
        (1e6, 1e6, 1e6 - 1),
    ],
)
def test_thirty_digits(text, K):
    F = sp.sympify(text, {"h": x})
    node = ConnectedCorrelator(F, F.subs(x, y), (x, y), sp.Matrix([[a, t], [t, b]]))
    found = float(lambdify([a, b, t], node)(*K))
    assert found == pytest.approx(expected(*CASES[text], *K), rel=1e-12)


@pytest.mark.parametrize("K", [1e-2, 1.0, 50.0])
def test_of_one_variable(K):
    """p (1 − p) of a step, −p² with the opposite variable; zero beside what does not vary."""
    F = sp.Heaviside(x - 1)
    node = ConnectedCorrelator(F, F.subs(x, y), (x, y), sp.Matrix([[a, t], [t, b]]))
    found = lambdify([a, b, t], node)(np.full(3, K), np.full(3, K), np.array([K, -K, 0.0]))
    p = float(mp.erfc(1 / mp.sqrt(2 * K)) / 2)
    np.testing.assert_allclose(found, [p * (1 - p), -p * p, 0], rtol=1e-13)
