"""Exact moments of linear diffusions: against drawn networks, log-normal laws and limits of D."""

import numpy as np
import pytest
import sympy as sp
from scipy.linalg import expm

from fieldtheory.compiling.functions import lambdify
from fieldtheory.diffusions.diffusion_limit.closed_moments import (
    displacement,
    exact_moment_system,
    generator,
    gram,
    neuron_moments,
    pair_moments,
    start,
)
from fieldtheory.diffusions.diffusion_limit.small_increments import SLOPES, WIDTH
from fieldtheory.theory import notation as sym


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
