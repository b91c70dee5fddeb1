"""Exact moments of linear diffusions: against drawn networks, log-normal laws and limits of D."""

import numpy as np
import pytest
import sympy as sp
from scipy.linalg import expm

from fieldtheory.compiling.functions import lambdify
from fieldtheory.theory import notation as sym
from fieldtheory.theory.diffusion_limit.diffusion_generator import (
    displacement,
    exact_moment_system,
    generator,
    gram,
    neuron_moments,
    pair_moments,
    start,
)
from fieldtheory.theory.diffusion_limit.small_increments import SLOPES, WIDTH


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


def test_one_neuron_alone_is_a_scalar_equation():
    """D = 1: q = x², so that both ways to write a moment agree."""
    grams = {gram(0, 0): 0.49}
    found = moments_at(neuron_moments(), 0.8, 0.9, 1.2, 0.5, 1, (0.7,), grams)
    y, q = displacement(0), gram(0, 0)
    assert found[q] == pytest.approx(0.49 + 1.4 * found[y] + found[y**2], rel=1e-12)
    assert found[q**2] == pytest.approx(
        sum(c * 0.7 ** (4 - n) * found.get(y**n, 1.0) for n, c in enumerate((1, 4, 6, 4, 1))),
        rel=1e-12,
    )


def test_what_is_centred_stays_so_and_identical_inputs_agree():
    system = exact_moment_system((gram(0, 1) ** 2, displacement(0) * displacement(1)), 2)
    grams = {gram(0, 0): 1.3, gram(0, 1): 1.3, gram(1, 1): 1.3}
    found = moments_at(system, 0.7, 0.8, 1.2, 0.4, 5, (), grams)
    assert found[gram(0, 1) ** 2] == pytest.approx(found[gram(0, 0) * gram(1, 1)], rel=1e-12)
    neuron = moments_at(neuron_moments(), 0.7, 0.8, 1.2, 0.4, 5, (1.0,), grams)
    assert neuron[displacement(0)] == 0 and neuron[displacement(0) ** 2] == pytest.approx(
        found[displacement(0) * displacement(1)], rel=1e-12
    )


def test_the_mean_is_the_closed_form_at_every_width():
    rate = SLOPES[0] ** 2 * sym.WEIGHT**2
    ratio = sym.BIAS**2 / sym.WEIGHT**2
    assert sp.simplify(generator(gram(0, 1), 2) - rate * (gram(0, 1) + ratio)) == 0
    assert not pair_moments().matrix[:4, :].has(WIDTH)


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
