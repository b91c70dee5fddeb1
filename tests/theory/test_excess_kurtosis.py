"""The fourth moment of a neuron against the matrix exponential and against drawn networks."""

import numpy as np
import pytest
import sympy as sp
from scipy.linalg import expm

from fieldtheory.compiling.functions import lambdify
from fieldtheory.theory.diffusion_generator import WIDTH, gram, moved, neuron_moments, start
from fieldtheory.theory.excess_kurtosis import RATE, RATIO, kurtosis_coefficient, moment_of_neuron
from fieldtheory.theory.riccati_mean import TIME

CASES = [(1.0, 1.0, 1.0, 5, 0.7), (0.8, 1.5, 0.0, 3, 1.2), (1.2, 0.7, 0.5, 40, 0.0)]


def moments(slope, weight, bias, D, z, time=0.9):
    system = neuron_moments()
    matrix = lambdify(system.parameters, system.matrix)(slope, weight, bias, D, z)
    v = expm(time * matrix) @ [float(sp.sympify(x).subs(gram(0, 0), z**2)) for x in system.initial]
    known = dict(zip(system.moments, v, strict=True))
    return known[moved(0) ** 2], known[moved(0) ** 4]


@pytest.mark.parametrize("slope, weight, bias, D, z", CASES)
def test_closed_forms_are_those_of_the_system(slope, weight, bias, D, z):
    arguments = [RATE, RATIO, WIDTH, start(0), TIME]
    values = ((slope * weight) ** 2, (bias / weight) ** 2, D, z, 0.9)
    for power, expected in zip((2, 4), moments(slope, weight, bias, D, z), strict=True):
        found = lambdify(arguments, moment_of_neuron(power))(*values)
        assert found == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("slope, weight, bias, z", [c[:3] + c[4:] for c in CASES])
def test_the_coefficient_is_what_wide_networks_have(slope, weight, bias, z):
    values = ((slope * weight) ** 2, (bias / weight) ** 2, z, 0.9)
    found = lambdify([RATE, RATIO, start(0), TIME], kurtosis_coefficient())(*values)
    excess = []
    for D in (1000, 2000):
        second, fourth = moments(slope, weight, bias, D, z)
        excess.append(D * (fourth / second**2 - 3) - found)
    assert abs(excess[1]) < 0.01 * found
    assert excess[0] / excess[1] == pytest.approx(2, rel=0.01)


def test_the_kurtosis_is_that_of_drawn_networks():
    """D = 4, small steps with explicit weights."""
    rng = np.random.default_rng(4)
    D, z, steps, samples, T = 4, 0.5, 40, 20_000, 0.9
    x = np.full((samples, D, 1), z)
    for _ in range(steps):
        W = rng.normal(scale=np.sqrt(T / steps / D), size=(samples, D, D))
        x = x + W @ x + rng.normal(scale=np.sqrt(T / steps), size=x.shape)
    y = x[:, 0, 0] - z
    second, fourth = moments(1.0, 1.0, 1.0, D, z)
    # Euler steps of length T/40 fall short by about T²/80 of the variance.
    assert abs((y**2).mean() / second - 1) < 0.02 + 4 * y.std() / np.sqrt(samples)
    ratio = (y**4).mean() / (y**2).mean() ** 2
    error = np.sqrt(np.var(y**4) / samples) / (y**2).mean() ** 2
    assert abs(ratio - fourth / second**2) < 4 * error
    assert fourth / second**2 - 3 > 4 * error
