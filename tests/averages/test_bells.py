"""Connected correlators of bells, narrow, far from zero and several, against 80 digits."""

import mpmath
import numpy as np
import pytest
import sympy as sp

import fieldtheory as ft
from fieldtheory.averages import ConnectedCorrelator
from fieldtheory.averages.bells import Bell, connected
from fieldtheory.averages.errors import QuadratureError
from fieldtheory.compiling.functions import lambdify
from tests.tables import slow

x, y = sp.symbols("x y", real=True)
p, q, c = sp.symbols("p q c")

# K_xx, K_yy and the correlation: weak, strong, opposite, small and large variances.
PLACES = [(0.05, 3.9, 0.112), (1.3, 3.9, 0.6), (2, 1, -0.7), (0.9, 1.1, 1e-6), (1e-3, 1e-3, 0.5)]
PLACES += [(3, 3, 1 - 1e-6), (100, 120, 0.99)]
# As wide as a bell, and much wider.
NARROW = [(1e-4, 1e-4, 1), (1e-4, 1.7e-4, 0.9), (1, 1, 1 - 1e-9), (1, 1.7, 1e-8), (1e4, 1e4, 0.99)]
PHI = ["exp(-100*(x-1)**2)", "exp(-(x-3)**2)", "exp(-x**2)"]
PHI += [slow("exp(-(x-1)**2)-exp(-(x+1)**2)"), slow("exp(-x**2/2)*sin(x)"), slow("x*exp(-x**2/2)")]
PHI += ["exp(-10000*(x-1)**2)", slow("exp(-500000*(x-3/10)**2)+exp(-1000*(x+1/3)**2)/2")]


@pytest.mark.parametrize("text", PHI)
def test_correlators_of_bells(text):
    square = sp.sympify(text, {"x": x}) ** 2
    node = ConnectedCorrelator(square, square.subs(x, y), (x, y), [[p, c], [c, q]])
    exact = sp.lambdify([p, q, c], node.doit(), "mpmath")
    assert not node.doit().has(ConnectedCorrelator)
    K = [(a, b, r * np.sqrt(a * b)) for a, b, r in PLACES + NARROW * ("000" in text)]
    found = lambdify([p, q, c], node)(*np.array(K).T)
    with mpmath.workdps(80):
        expected = [float(exact(*map(mpmath.mpf, place))) for place in K]
    # Rounding of the covariance itself counts near perfect correlation.
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_terms_that_cancel_raise():
    bells = [Bell(1.0, 0.0, 0.5), Bell(-1 + 1e-13, 0.0, 0.5)]
    with pytest.raises(QuadratureError, match="correlator of bells did not reach"):
        connected(bells, bells, 1.0, 1.0, 0.5)
    assert connected(bells[:1], bells[:1], 1.0, 1.0, 0.0) == 0


@pytest.mark.parametrize(("alpha", "centre"), [(10000, 1), slow(500000, 0.3)])
def test_propagator(alpha, centre, K0=0.5, depth=3, width=100):
    """G11 = B S Bᵀ, B the inverse of the linearised recursion, at 60 digits."""
    phi = f"exp(-{alpha}*(h-{centre})**2)"
    net = ft.ResidualNetwork(depth=depth, activation=phi, width=width)
    weight, bias, size = mpmath.mpf("1.25"), mpmath.mpf("0.05"), depth + 1
    with mpmath.workdps(60):
        m, s = mpmath.mpf(centre), mpmath.mpf(1) / (4 * alpha)

        def moment(K):
            return mpmath.sqrt(s / (K + s)) * mpmath.exp(-(m**2) / (2 * (K + s)))

        def correlator(a, b):
            # h of the later layer is that of the earlier one and more: the covariance is a.
            P, Q = a + s, b + s
            D = P * Q - a**2
            joint = s / mpmath.sqrt(D) * mpmath.exp(-(m**2) * (P + Q - 2 * a) / (2 * D))
            return joint - moment(a) * moment(b)

        K = [mpmath.mpf(K0)]
        for _ in range(depth):
            K.append(K[-1] + weight * moment(K[-1]) + bias)
        sources, recursion = mpmath.matrix(size, size), mpmath.eye(size)
        for k in range(size):
            for l in range(size):
                a, b = sorted((K[k], K[l]))
                sources[k, l] = weight**2 * correlator(a, b) / width
            for l in range(k):
                recursion[k, l] = -weight * mpmath.diff(moment, K[k])
        inverse = recursion**-1
        expected = np.array((inverse * sources * inverse.T).tolist(), dtype=float)
    np.testing.assert_allclose(ft.solve(net, K0).G11[1:, 1:], expected, rtol=1e-12)


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
