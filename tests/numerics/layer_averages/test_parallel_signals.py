"""Averages of parallel signals with kinks, and their derivatives, against integrals of one signal.

At K_xy = ±√(K_xx K_yy) the second signal is y = s x. What K_xx moves at a fixed correlation is
⟨x F_x⟩/(2 K_xx), of which the part that K_xy moves is K_xy/(2 K_xx) ⟨φ'φ'⟩.
"""

import itertools
import math

import mpmath
import numpy as np
import pytest
import sympy as sp
from mpmath import mp, mpf

import fieldtheory as ft
from fieldtheory.networks.activations import as_activation, h
from fieldtheory.numerics.layer_averages.entries import entries
from tests.tables import some

# Where φ has kinks, and where its branches hold.
KINKS = {
    "relu": [0],
    "leaky_relu": [0],
    "relu6": [0, 6],
    "elu": [0],
    "selu": [0],
    "celu": [0],
    "hard_tanh": [-1, 1],
    "hard_sigmoid": [-3, 3],
    "hard_swish": [-3, 3],
    "softshrink": ["-0.5", "0.5"],
    "abs": [0],
    "softsign": [0],
    "squared_relu": [0],
}
# Whose products are squares: float64 holds covariances of parallel signals.
VARIANCES = [(0.5, 0.5), (0.5, 2.0), (3.0, 0.75)]
# 1 − |c| is 1e-8 to a rounding, where the averages are those of parallel signals but for a root.
BESIDE = [1e-8, 1e-12, 2.0**-53]


def gradient(name, K_xx, K_yy, sign):
    """⟨φφ⟩ and its derivatives by K_xx, K_yy and K_xy."""
    phi = sp.lambdify(h, as_activation(name)(h), "mpmath")
    kinks = [mpf(k) for k in KINKS[name]]
    a, b = mpf(K_xx), mpf(K_yy)
    s = sign * mpmath.sqrt(b / a)

    def slope(x):
        return mpmath.diff(phi, x, h=mpf(10) ** -12)

    width = mpmath.sqrt(a)
    inner = [k for k in {*kinks, *(k / s for k in kinks)} if abs(k) < 14 * width]
    edges = sorted({-14 * width, -3 * width, mpf(0), 3 * width, 14 * width, *inner})

    def average(f):
        return mpmath.quad(lambda x: f(x) * mpmath.npdf(x, 0, width), edges)

    xy = s * a
    product = average(lambda x: slope(x) * slope(s * x))
    scaled = [
        average(lambda x: x * slope(x) * phi(s * x)) / (2 * a),
        average(lambda x: s * x * slope(s * x) * phi(x)) / (2 * b),
    ]
    by = [scaled[0] - xy / (2 * a) * product, scaled[1] - xy / (2 * b) * product]
    return [float(v) for v in (average(lambda x: phi(x) * phi(s * x)), *by, product)]


@pytest.mark.parametrize("name", some(KINKS, set()))
def test_gradient(name):
    found = entries(as_activation(name)).covariance_gradient
    for sign in (1, -1):
        for K_xx, K_yy in VARIANCES:
            with mp.workdps(20):
                expected = gradient(name, K_xx, K_yy, sign)
            size = sign * float(np.sqrt(K_xx * K_yy))
            values = np.array(found(K_xx, K_yy, size), dtype=float)
            np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-12, err_msg=f"{K_xx}")
            for apart in BESIDE:
                beside = np.array(found(K_xx, K_yy, size * (1 - apart)), dtype=float)
                np.testing.assert_allclose(beside, values, atol=2 * np.sqrt(apart), rtol=0)


def test_hard_tanh_by_hand():
    """∂⟨φφ⟩/∂K_xx = ½⟨φ''φ⟩ = −φ(s) p(1), p the density of x; y = s x has kinks too."""
    found = entries(as_activation("hard_tanh")).covariance_gradient
    for s in (-1.0, 2.0):
        b = 0.5 * s * s
        _, by_x, by_y, product = found(0.5, b, 0.5 * s)
        p, q = (np.exp(-1 / (2 * k)) / np.sqrt(2 * np.pi * k) for k in (0.5, b))
        assert by_x == pytest.approx(-np.sign(s) * p, rel=1e-13)
        assert by_y == pytest.approx(-q / s, rel=1e-13)
        assert product == pytest.approx(math.erf(1 / max(abs(s), 1)), rel=1e-13)


def hard_swish_curvature(a, b, r):
    """⟨φ''φ''⟩: φ'' is 1/3 between −3 and 3, where it has δ-functions of weight −1/2."""
    det, third = a * b - r * r, mpf(1) / 3
    jumps = {-3: mpf(-1) / 2, 3: mpf(-1) / 2}

    def inside(mean, width):
        return mpmath.ncdf((3 - mean) / width) - mpmath.ncdf((-3 - mean) / width)

    total = mpf(0)
    for s, t in itertools.product(jumps, jumps):
        exponent = -(b * s * s - 2 * r * s * t + a * t * t) / (2 * det)
        total += jumps[s] * jumps[t] * mpmath.exp(exponent) / (2 * mp.pi * mpmath.sqrt(det))
    for own in (a, b):
        width = mpmath.sqrt(det / own)
        for t, jump in jumps.items():
            bell = mpmath.npdf(t, 0, mpmath.sqrt(own))
            total += third * jump * bell * inside(r / own * t, width)
    width = mpmath.sqrt(det / a)
    near = [k + side * width * n for k in (-3, 3) for side in (-1, 1) for n in (1, 4, 16)]
    edges = sorted({mpf(-3), mpf(3), *(x for x in near if abs(x) < 3)})
    return total + third**2 * mpmath.quad(
        lambda x: mpmath.npdf(x, 0, mpmath.sqrt(a)) * inside(r / a * x, width), edges
    )


@pytest.mark.parametrize("K", some([0.5, 3.0, 10.0], set()))
def test_curvature_of_hard_swish_at_all_angles(K):
    found = entries(as_activation("hard_swish")).covariance_flow
    for apart in (0.3, 1e-3, 1e-8, 1e-12, 1e-14, 2.0**-51, 2.0**-52):
        for sign in (1, -1):
            r = sign * K * (1 - apart)
            with mp.workdps(40):
                expected = float(hard_swish_curvature(mpf(K), mpf(K), mpf(r)))
            assert found(K, K, r)[6] == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("name", some(["hard_tanh", "hard_swish", "softshrink", "selu"], set()))
def test_derivatives_of_kernels_of_parallel_inputs(name):
    net = ft.ResidualNetwork(depth=2, activation=name, branch_scale=0.4, input_dim=3)
    X = np.array([[1.0, 0.0, 0.5], [2.0, 0.0, 1.0], [-1.0, 0.0, -0.5]])
    for quantity in ("output_kernel", "output_response", "tangent_kernel"):
        found = ft.kernel(net, quantity).derivative("weight_variance", X)
        step = 1e-5
        up, down = (
            ft.kernel(net.replace(weight_variance=net.weight_variance + sign * step), quantity)(X)
            for sign in (1, -1)
        )
        np.testing.assert_allclose(found, (up - down) / (2 * step), atol=1e-7)
