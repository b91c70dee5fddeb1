"""Closed forms of wide diffusions and moments that close at every width, integrated and drawn."""

import mpmath
import numpy as np
import pytest
import sympy as sp
from scipy.linalg import expm

from fieldtheory.compiling.functions import lambdify
from fieldtheory.diffusions.diffusion_limit.closed_moments import (
    ALPHA,
    BETA,
    GAMMA,
    TIME,
    Z_IJ,
    displacement,
    exact_moment_system,
    generator,
    gram,
    linear_covariance,
    neuron_moments,
    pair_moments,
    riccati,
    start,
)
from fieldtheory.diffusions.diffusion_limit.small_increments import SLOPES, WIDTH
from fieldtheory.theory import notation as sym


def test_the_covariance_is_that_of_the_issue():
    s, w, b = SLOPES[0], sym.WEIGHT, sym.BIAS
    expected = (Z_IJ + b**2 / w**2) * (sp.exp(s**2 * w**2 * TIME) - 1)
    assert sp.simplify(linear_covariance() - expected) == 0
    V = sp.Function("V")
    equation = sp.Eq(V(TIME).diff(TIME), s**2 * (b**2 + w**2 * (Z_IJ + V(TIME))))
    assert sp.checkodesol(equation, sp.Eq(V(TIME), linear_covariance()))[0]


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


def moments_at(system, time, slope, weight, bias, width, starts, grams):
    """⟨v⟩ at a time, by name of the moment."""
    values = dict(zip(system.parameters, (slope, weight, bias, width, *starts), strict=False))
    compiled = lambdify(list(values), system.matrix)
    v0 = [float(sp.sympify(v).subs(grams)) for v in system.initial]
    return dict(zip(system.moments, expm(time * compiled(*values.values())) @ v0, strict=True))


def test_without_biases_the_square_is_log_normal():
    """ln q_T ~ N(ln q_0 + s²σ_w²(1 − 2/D)T, 4 s²σ_w²T/D), all its integer moments."""
    s, w, D, T, q0 = 0.8, 1.3, 7, 0.9, 1.7
    system = exact_moment_system((gram(0, 0) ** 4,))
    found = moments_at(system, T, s, w, 0.0, D, (), {gram(0, 0): q0})
    mean, variance = np.log(q0) + s**2 * w**2 * (1 - 2 / D) * T, 4 * s**2 * w**2 * T / D
    for n in range(5):
        expected = np.exp(n * mean + n**2 * variance / 2)
        assert found[gram(0, 0) ** n] == pytest.approx(expected, rel=1e-11)


def steps_of_gram(start, s, w, b, T, steps, samples, seed):
    """x (samples, D, P) after Euler steps of dx = s (dW x + db), weights drawn explicitly."""
    rng = np.random.default_rng(seed)
    x = np.broadcast_to(start, (samples, *start.shape)).copy()
    D = start.shape[0]
    for _ in range(steps):
        W = rng.normal(scale=w * np.sqrt(T / steps / D), size=(samples, D, D))
        bias = rng.normal(scale=b * np.sqrt(T / steps), size=(samples, D, 1))
        x = x + s * (W @ x + bias)
    return x


@pytest.mark.parametrize("D", [1, 2, 3])
def test_moments_of_pairs_and_neurons_are_those_of_drawn_diffusions(D):
    s, w, b, T, steps, samples = 0.7, 1.1, 0.6, 0.5, 50, 10_000
    begin = np.array([[1.0, -0.3], [0.2, 0.8], [-0.5, 1.2]])[:D]
    x = steps_of_gram(begin, s, w, b, T, steps, samples, seed=D)
    q = np.einsum("sdi,sdj->sij", x, x) / D
    q0 = begin.T @ begin / D
    grams = {gram(i, j): q0[i, j] for i, j in ((0, 0), (0, 1), (1, 1))}
    pairs = moments_at(pair_moments(), T, s, w, b, D, (), grams)
    neuron = moments_at(neuron_moments(), T, s, w, b, D, (begin[0, 0],), grams)
    y = x[:, 0, 0] - begin[0, 0]
    drawn = {
        gram(0, 0): q[:, 0, 0],
        gram(0, 1): q[:, 0, 1],
        gram(0, 1) ** 2: q[:, 0, 1] ** 2,
        gram(0, 0) * gram(1, 1): q[:, 0, 0] * q[:, 1, 1],
    }
    of_neuron = {displacement(0) ** n: y**n for n in (1, 2, 3, 4)}
    of_neuron[gram(0, 0) * displacement(0) ** 2] = q[:, 0, 0] * y**2
    for values, moments in ((drawn, pairs), (of_neuron, neuron)):
        for moment, sample in values.items():
            error = sample.std() / np.sqrt(samples)
            # The bias of the Euler steps is of the order 1/steps of the growth.
            z = (sample.mean() - moments[moment]) / (error + 0.5 / steps * abs(moments[moment]))
            assert abs(z) < 4, moment


def test_the_rates_are_those_of_ito_for_three_neurons():
    """The generator written out for D = 3 neurons and two inputs."""
    D, n = 3, 2
    x = sp.Matrix(D, n, lambda d, i: sp.Symbol(f"x_{d}{i}"))
    q = x.T * x / D
    s2 = SLOPES[0] ** 2
    S = (sp.ones(n, n) * sym.BIAS**2 + sym.WEIGHT**2 * q) * s2
    put = {gram(i, j): q[i, j] for i in range(n) for j in range(n)}
    put |= {displacement(i): x[0, i] - start(i) for i in range(n)}
    for f in (
        gram(0, 1) ** 2 * gram(0, 0),
        displacement(0) ** 2 * gram(1, 1),
        displacement(0) * displacement(1) * gram(0, 1),
    ):
        written = f.subs(put)
        full = sum(
            S[i, j] * written.diff(x[d, i], x[d, j]) / 2
            for d in range(D)
            for i in range(n)
            for j in range(n)
        )
        assert sp.expand(full - generator(f, n).subs({WIDTH: D}).subs(put)) == 0
