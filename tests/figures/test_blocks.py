"""The figures of networks of blocks: numbers from recursions written out, simulations, the look."""

from math import erf, exp, pi, sqrt

import numpy as np
import pytest

from fieldtheory.figures import blocks
from tests.rounding import assert_same
from tests.tables import slow

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(120)


def mean_squares():
    """⟨φ²⟩ and ⟨φ'²⟩ of GELU for a standard normal."""
    below = np.array([(1 + erf(z / sqrt(2))) / 2 for z in NODES])
    density = np.array([exp(-(z**2) / 2) / sqrt(2 * pi) for z in NODES])
    averages = [WEIGHTS @ f**2 for f in (NODES * below, below + NODES * density)]
    return np.array(averages) / WEIGHTS.sum()


def test_kernels_shares_and_tangent_kernels_with_a_norm():
    """K^(l) = 1 + l ρ², and a block adds ρ² (1 + χ) Π (1 + ρ² χ/K)/K^(L), χ = ⟨φ'²⟩/⟨φ²⟩."""
    L = 5
    numbers = blocks.layers(depth=L)
    square, slope = mean_squares()
    chi = slope / square
    for i, rho in enumerate((1, L**-0.5, (2 * L) ** -0.5, 1 / L)):
        K = 1 + rho**2 * np.arange(L + 1)
        np.testing.assert_allclose(numbers.kernels[0, i], K, rtol=1e-12)
        np.testing.assert_allclose(numbers.shares[0, i], rho**2 / K[1:], rtol=1e-12)
        steps = 1 + rho**2 * chi / K[:-1]
        expected = [rho**2 * (1 + chi) * np.prod(steps[l:]) / K[-1] for l in range(1, L + 1)]
        np.testing.assert_allclose(numbers.tangents[0, i], expected, rtol=1e-10)
    last = blocks.depths(depths=(2, L))
    assert_same(last.kernels[..., 1], numbers.kernels[..., -1])
    ratio = numbers.tangents[..., 0] / numbers.tangents[..., -1]
    np.testing.assert_allclose(last.tangents[..., 1], ratio, rtol=1e-13)


@pytest.fixture(scope="module")
def single():
    return blocks.width(depth=3, samples=200, seed=2)


@pytest.mark.parametrize("name", [slow("kernels"), "residual_kernels", "correlations"])
def test_bands_are_those_of_simulated_networks(single, name):
    mean, deviation = np.moveaxis(getattr(single, name)[:, 0], 1, 0)
    simulated = getattr(single, f"simulated_{name}")
    mean, deviation = (each[:, -simulated.shape[-1] :] for each in (mean, deviation))
    # The mean of correlations is that of N → ∞, which N = 64 moves by one or two hundredths.
    allowed = 0.02 if name == "correlations" else 0.0
    assert (np.abs(simulated[:, 0] - mean) < 4 * deviation / 200**0.5 + allowed).all()
    np.testing.assert_allclose(simulated[:, 1], deviation, rtol=0.2)


def test_bands_narrow_with_the_width(single):
    for name in ("kernels", "residual_kernels", "correlations"):
        narrow, wide = np.moveaxis(getattr(single, name)[:, :, 1], 1, 0)
        np.testing.assert_allclose(narrow / wide, np.sqrt(768 / 64), rtol=1e-12)
    assert "200 networks of width 64" in blocks.draw_width(single).get_supxlabel()
