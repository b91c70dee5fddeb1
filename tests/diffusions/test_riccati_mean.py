"""The mean of wide diffusions against mpmath's integration of its Riccati equation."""

import mpmath
import numpy as np
import pytest
import sympy as sp

from fieldtheory.compiling.functions import lambdify
from fieldtheory.diffusions.diffusion_limit.closed_moments import (
    ALPHA,
    BETA,
    GAMMA,
    MEAN,
    TIME,
    riccati,
)

# φ'(0), φ''(0), σ_w, σ_b, z̄, |z|²/D, and the sign of β² − 4αγ.
CASES = {
    "swish at 0": (0.5, 0.5, 1.0, 1.0, 0.0, 0.0, -1),
    "swish at 2": (0.5, 0.5, 1.0, 1.0, 2.0, 4.0, 1),
    "steep swish": (2.0, 0.5, 1.0, 0.1, 0.5, 0.25, 1),
    "no biases": (1.0, 0.3, 1.2, 0.0, 0.4, 0.16, 1),
    "curved down": (1.0, -0.6, 1.0, 0.2, -0.3, 0.2, 1),
    "uncopied": (0.5, 0.5, 1.5, 0.3, 0.1, 2.0, -1),
    "equal roots": (1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0),
    "nearly equal roots": (1.0, 1.0, 1.0, 1.0 - 1e-9, 0.0, 0.0, 1),
    "held back": (0.1, 1.0, 1.0, 0.0, -1.0, 1.0, -1),
    "settles": (0.5, 1.0, 1.0, 0.1, -0.9, 0.6, -1),
    "settles below": (0.1, 1.0, 1.0, 0.01, -1.0, 0.5, 1),
    "nothing grows": (1.0, 0.5, 1.0, 0.0, 0.0, 0.0, 1),
    "biases alone": (1.0, 0.5, 0.0, 1.0, 0.3, 0.2, 0),
}
of_every_case = pytest.mark.parametrize("values", CASES.values(), ids=CASES)


def numbers(values):
    """α, β, γ, from the terms of dm/dt = (φ''/2) (σ_b² + σ_w² (|z|²/D + 2 z̄ m + m² + V))."""
    first, second, weight, bias, start, square = values[:6]
    w, b = weight**2, bias**2
    return second * w / 2, w * (second * start + first**2), second * (b + w * square) / 2


def evaluated(expression, values, *more):
    function = lambdify([ALPHA, BETA, GAMMA, *(s for s, _ in more)], expression)
    values = map(np.asarray, (*values, *(v for _, v in more)))
    with np.errstate(all="ignore"):
        return float(function(*values))


@of_every_case
def test_the_coefficients_are_those_of_the_mean_and_variance(values):
    found = riccati()
    compiled = lambdify(found.parameters, list(found.coefficients))
    assert np.allclose(compiled(*values[:6]), numbers(values), rtol=1e-14)
    alpha, beta, gamma = numbers(values)
    assert np.sign(round(beta**2 - 4 * alpha * gamma, 12)) == values[6]


def test_the_variance_follows_the_mean():
    assert riccati().variance == 2 * MEAN * sp.Symbol(r"\phi_1", real=True) ** 2 / sp.Symbol(
        r"\phi_2", real=True
    )


@of_every_case
def test_the_explosion_time_is_the_integral_of_the_equation(values):
    """T* = ∫_0^{±∞} dm/(α m² + β m + γ) if nothing stops the mean on its way."""
    alpha, beta, gamma = map(mpmath.mpf, numbers(values))
    found = evaluated(riccati().explosion_time, numbers(values))
    roots = np.roots([float(c) for c in (alpha, beta, gamma)])
    sign = np.sign(float(gamma))
    stopped = any(abs(r.imag) < 1e-14 and sign * r.real > 0 for r in roots)
    if gamma == 0 or alpha == 0 or stopped:
        assert found == np.inf
        exact = dict(zip((ALPHA, BETA, GAMMA), map(sp.nsimplify, numbers(values)), strict=True))
        assert riccati().explosion_time.subs(exact) == sp.oo
        return
    with mpmath.workdps(30):
        expected = mpmath.quad(
            lambda m: 1 / (sign * alpha * m**2 + beta * m + sign * gamma),
            [0, 0.1, 1, 10, 100, mpmath.inf],
        )
    assert found == pytest.approx(float(expected), rel=1e-13)


@of_every_case
@pytest.mark.parametrize("share", [0.0, 0.6])
def test_the_mean_is_that_of_mpmath(values, share):
    alpha, beta, gamma = numbers(values)
    end = evaluated(riccati().explosion_time, (alpha, beta, gamma))
    time = share * (4.0 if np.isinf(end) else end)
    found = evaluated(riccati().mean, (alpha, beta, gamma), (TIME, time))
    if time == 0:
        assert found == 0
        return
    with mpmath.workdps(20):
        solved = mpmath.odefun(lambda t, m: alpha * m**2 + beta * m + gamma, 0, mpmath.mpf(0))
        assert found == pytest.approx(float(solved(time)), rel=1e-11, abs=1e-300)


def test_many_inputs_at_once_and_no_overflow():
    compiled = lambdify([ALPHA, BETA, GAMMA, TIME], riccati().mean)
    with np.errstate(all="ignore"):
        found = compiled(np.array([0.005, 0.25, 0.5]), np.array([-50.0, 0.25, 1.0]), 0.3, 100.0)
    assert found.shape == (3,)
    # Settled at the nearer root of the equation.
    assert found[0] == pytest.approx(2 * 0.3 / (50 + np.sqrt(2500 - 0.006)), rel=1e-12)
