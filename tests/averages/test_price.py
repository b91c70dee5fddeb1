"""Price's theorem to 40 digits: for every registered φ, for random functions of 2 to 4 variables.

One side is what the package makes of a derivative, the other an integral or a closed form of this
file: derivatives of the density of one variable, and characteristic functions of several.
"""

from functools import cache
from itertools import product

import mpmath
import numpy as np
import pytest
import sympy as sp
from mpmath import mpf

from fieldtheory.averages import GaussianAverage
from fieldtheory.compiling.functions import lambdify
from fieldtheory.networks.activations import ACTIVATIONS
from fieldtheory.theory.elementary_averages import K_XX, layer_averages
from tests.tables import slow, some

# Digits that both sides share, and those with which they are computed.
DIGITS, WORKING = 40, 46
x = sp.Symbol("x", real=True)


@pytest.mark.parametrize("name", some(ACTIVATIONS, ("erf", "relu", "tanh", "hard_tanh", "sign")))
def test_variance_of_registered_activations(name):
    """∂⟨φ²⟩/∂K = ⟨φ² (h² − K)⟩/(2K²)."""
    phi = ACTIVATIONS[name]
    f = sp.lambdify([x], phi(x), "mpmath")
    with mpmath.workdps(WORKING):
        K = mpf(7) / 10
        slope = lambdify([K_XX], layer_averages(activation=phi).moment.diff(K_XX), "mpmath")

        def scored(z):
            return f(z) ** 2 * (z * z / K - 1) * mpmath.exp(-z * z / (2 * K))

        # All kinks are at half integers.
        ends = [mpf(n) / 2 for n in range(-26, 27)]
        expected = mpmath.quad(scored, ends, method="gauss-legendre")
        expected /= 2 * K * mpmath.sqrt(2 * mpmath.pi * K)
        assert abs(slope(K) - expected) < mpf(10) ** -DIGITS * max(1, abs(expected))


@cache
def hermite(count):
    """Nodes and weights for N(0, 1), refined from float64 by Newton's method."""
    rule = []
    for start in np.polynomial.hermite_e.hermegauss(count)[0]:
        z = mpf(start)
        for _ in range(7):
            before, value = mpf(1), z
            for n in range(1, count):
                before, value = value, z * value - n * before
            z -= value / (count * before)
        rule.append((z, mpmath.factorial(count - 1) / (count * before**2)))
    return rule


def random_function(size, seed):
    """F(h), and ⟨F⟩ in closed form as a function of K, both with random rational numbers.

    F is a quadratic polynomial times exp(v·h), sin(w·h) times a linear form, and a correlated
    Gaussian times cos: no sum of products. ⟨exp(w·h − hᵀBh/2)⟩ = det(1 + KB)^(−1/2)
    exp(wᵀ(1 + KB)^(−1)Kw/2), its derivatives by w, and its real or imaginary part.
    """
    rng = np.random.default_rng(seed)

    def numbers(*shape):
        return sp.Matrix(rng.integers(-9, 10, shape)) / 30

    h = sp.Matrix(sp.symbols(f"h:{size}", real=True))
    K = sp.Matrix(size, size, lambda i, j: sp.Symbol(f"K_{min(i, j)}{max(i, j)}", real=True))
    v, w, linear, inner = (numbers(size, 1) for _ in range(4))
    Q, B = numbers(size, size), numbers(size, size)
    B = B * B.T / 10
    u = sp.Matrix(sp.symbols(f"u:{size}"))
    one = sp.exp((u.T * K * u)[0] / 2)
    narrow = sp.eye(size) + K * B
    F = (
        (h.T * Q * h)[0] * sp.exp((v.T * h)[0])
        + (linear.T * h)[0] * sp.sin((w.T * h)[0])
        + sp.exp(-(h.T * B * h)[0] / 2) * sp.cos((inner.T * h)[0])
    )
    quadratic = sum(Q[i, j] * one.diff(u[i], u[j]) for i, j in product(range(size), repeat=2))
    wave = sum(linear[i] * one.diff(u[i]) for i in range(size))
    mean = quadratic.subs(dict(zip(u, v, strict=True)))
    mean += wave.subs(dict(zip(u, sp.I * w, strict=True))) / sp.I
    exponent = (inner.T * narrow.inv() * K * inner)[0] / 2
    mean += sp.exp(-exponent) / sp.sqrt(narrow.det())
    return F, list(h), K, mean


@pytest.mark.parametrize(("size", "seed"), [(2, 0), slow(2, 1), slow(3, 2), slow(3, 3), slow(4, 4)])
def test_random_functions_of_several_variables(size, seed):
    F, h, K, mean = random_function(size, seed)
    root = sp.Matrix(np.tril(np.random.default_rng(seed).integers(1, 6, (size, size)))) / 6
    at = dict(zip(K, root * root.T, strict=True))
    i, j = 0, size - 1
    factor, node = GaussianAverage(F, tuple(h), K).diff(K[i, j]).as_coeff_Mul()
    with mpmath.workdps(WORKING):
        f = sp.lambdify(h, node.integrand, "mpmath", cse=True)
        L = [[mpf(e.p) / e.q for e in row] for row in root.tolist()]
        terms = []
        for rule in product(hermite({2: 40, 3: 32, 4: 24}[size]), repeat=size):
            z = [point for point, _ in rule]
            weight = mpmath.fprod(w for _, w in rule)
            terms.append(weight * f(*(mpmath.fdot(row, z) for row in L)))
        found = mpmath.fsum(terms) * factor.p / factor.q
        expected = mpmath.re(sp.lambdify([], mean.diff(K[i, j]).subs(at), "mpmath")())
        assert abs(found - expected) < mpf(10) ** -DIGITS * max(1, abs(expected))
