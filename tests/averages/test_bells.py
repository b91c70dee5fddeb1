"""Connected correlators of bells, narrow, far from zero and several, against 80 digits."""

import mpmath
import numpy as np
import pytest
import sympy as sp

from fieldtheory.averages import ConnectedCorrelator
from fieldtheory.compiling.functions import lambdify
from tests.tables import slow

x, y = sp.symbols("x y", real=True)
p, q, c = sp.symbols("p q c")

# K_xx, K_yy and the correlation: weak, strong, opposite, small and large variances.
PLACES = [(0.05, 3.9, 0.112), (1.3, 3.9, 0.6), (2, 1, -0.7), (0.9, 1.1, 1e-6), (1e-3, 1e-3, 0.5)]
PLACES += [(3, 3, 1 - 1e-6), (100, 120, 0.99)]
PHI = ["exp(-100*(x-1)**2)", "exp(-(x-3)**2)", "exp(-x**2)"]
PHI += [slow("exp(-(x-1)**2)-exp(-(x+1)**2)"), slow("exp(-x**2/2)*sin(x)"), slow("x*exp(-x**2/2)")]


@pytest.mark.parametrize("text", PHI)
def test_correlators_of_bells(text):
    square = sp.sympify(text, {"x": x}) ** 2
    node = ConnectedCorrelator(square, square.subs(x, y), (x, y), [[p, c], [c, q]])
    exact = sp.lambdify([p, q, c], node.doit(), "mpmath")
    assert not node.doit().has(ConnectedCorrelator)
    K = [(a, b, r * np.sqrt(a * b)) for a, b, r in PLACES]
    found = lambdify([p, q, c], node)(*np.array(K).T)
    with mpmath.workdps(80):
        expected = [float(exact(*map(mpmath.mpf, place))) for place in K]
    # Rounding of the covariance itself counts near perfect correlation.
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_powers_times_shifted_bells_are_left_to_integrals():
    """Their closed forms have thousands of terms and took minutes."""
    square = x**2 * sp.exp(-2 * (x - 1) ** 2)
    node = ConnectedCorrelator(square, square.subs(x, y), (x, y), [[p, c], [c, q]])
    found = float(lambdify([p, q, c], node)(np.array(0.7), np.array(1.3), np.array(0.4)))
    z = np.linspace(-12, 12, 2401)
    h, k = np.sqrt(0.7) * z, np.sqrt(1.3) * z
    r = 0.4 / np.sqrt(0.7 * 1.3)
    weights = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * (z[1] - z[0])
    Z, W = z[:, None], z
    excess = -(r**2 * (Z**2 + W**2) - 2 * r * Z * W) / (2 * (1 - r**2)) - np.log1p(-(r**2)) / 2
    F, G = (u**2 * np.exp(-2 * (u - 1) ** 2) for u in (h, k))
    assert found == pytest.approx((weights * F) @ np.expm1(excess) @ (weights * G), rel=1e-11)
