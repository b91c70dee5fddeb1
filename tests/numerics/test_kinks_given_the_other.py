"""Derivatives of ⟨φφ⟩ of φ with kinks by the kernels, of signals of any widths, by scores."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.networks import ResidualNetwork
from fieldtheory.numerics.kinks import odd_pairs, parallel_curvatures
from fieldtheory.numerics.observables.pair_observables import feature_expressions
from tests.numerics.pair_examples import ELSEWHERE, PHI
from tests.oracles.wide_pairs import bell, graded, on_panels
from tests.tables import slow

APART = [(1.0, 1.3, 0.5), (0.93, 105.0, -0.27), (105.0, 0.93, -0.27), (50.0, 50.0, -20.0)]
NARROW = [(1e-4, 50.0, 0.02), (0.8, 1.2, 0.0)]


def by_scores(name, x, y, xy):
    """Five averages of φφ times polynomials of K⁻¹h, and the sizes of their sums, (2, 5).

    The cross susceptibility, and the four of `covariance_curvature`.
    """
    phi, kinks = PHI[name], ELSEWHERE.get(name, (0.0,))
    finest = 1e-3 * min(1.0, np.sqrt(x), np.sqrt(y))
    deviation, noise = np.sqrt(x), np.sqrt(y - xy**2 / x)
    h, of_h = on_panels(graded(np.array(kinks), finest, 12 * deviation))
    of_h = of_h * bell(h / deviation) / deviation
    # Of y less its mean given x.
    means = xy / x * h
    z, of_z = on_panels(graded(np.array(kinks) - means[:, None], finest, 12 * noise))
    weights = of_h[:, None] * of_z * bell(z / noise) / noise
    later = means[:, None] + z
    inverse = np.linalg.inv([[x, xy], [xy, y]])
    u = inverse[0, 0] * h[:, None] + inverse[0, 1] * later
    v = inverse[0, 1] * h[:, None] + inverse[1, 1] * later
    (a, c), (_, b) = inverse
    crossed = u**2 * v**2 - a * v**2 - b * u**2 - 4 * c * u * v + a * b + 2 * c**2
    scores = (
        (u**2 - a) / 2,
        (u**4 - 6 * a * u**2 + 3 * a**2) / 4,
        crossed / 4,
        (u**3 * v - 3 * a * u * v - 3 * c * u**2 + 3 * a * c) / 2,
        crossed,
    )
    values = weights * phi(h)[:, None] * phi(later)
    terms = [values * score for score in scores]
    return np.array([[np.sum(f) for f in terms], [np.sum(np.abs(f)) for f in terms]])


@pytest.mark.parametrize("name", ["softsign", *map(slow, ("selu", "elu", "hard_tanh", "relu6"))])
@pytest.mark.parametrize("K", [*APART, *NARROW])
def test_derivatives(name, K):
    network = ResidualNetwork(depth=1, activation=name)
    psi, entries = feature_expressions(network), np.array(K)[:, None]
    expected, sizes = by_scores(name, *K)
    curved = parallel_curvatures.covariance_curvature(psi, *entries)[:, 0]
    found = np.append(odd_pairs.cross_susceptibility(network)(*entries), curved)
    assert (np.abs(found - expected) <= 1e-9 * np.abs(expected) + 1e-15 * sizes).all()


@pytest.mark.slow
@pytest.mark.parametrize("gamma", [0.7, 1.0])
def test_order_of_inputs_of_selu(gamma):
    """Of variances 1e-4 and 50, where exponentials of signals are 1e22."""
    K0 = np.array([[1e-4, 0.02], [0.02, 50.0]])
    net = ResidualNetwork(depth=5, activation="selu", skip_scale=gamma)
    s, swapped = ft.solve(net, K0), ft.solve(net, K0[::-1, ::-1])
    scale = np.abs(s.mean_shift).max(axis=(1, 2), keepdims=True)
    off = np.abs(s.mean_shift - swapped.mean_shift[:, ::-1, ::-1])
    assert (off <= 1e-10 * scale).all()
    G11 = swapped.G11[:, :, ::-1, ::-1]
    np.testing.assert_allclose(s.G11, G11, rtol=1e-9, atol=1e-12 * G11.max())
