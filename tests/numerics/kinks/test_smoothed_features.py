"""Averages over noise, as functions of the mean, against closed forms and mpmath."""

import mpmath as mp
import numpy as np
import pytest
from scipy.special import ndtr

from fieldtheory.numerics.kinks.smoothed_features import Smoothed, averages

PANEL = 3.4


def bell(u):
    return np.exp(-u * u / 2) / np.sqrt(2 * np.pi)


@pytest.mark.parametrize("s", [1e-4, 0.03, 0.7, 5.0])
def test_ramps_and_their_derivatives(s):
    """⟨max(0, m − 1 + sζ)⟩ = d Φ(d/s) + s p(d/s), d = m − 1; near and far, at any noise."""
    smoothed = Smoothed.of(
        lambda h: np.maximum(h - 1, 0.0)[None], (0.0, 1.0), s, 12.0, 3.0, PANEL, (0, 1, 2)
    )
    means = np.concatenate([np.linspace(-12, 12, 301), 1 + s * np.linspace(-9, 9, 200)])
    means = means[np.abs(means) <= 12].reshape(-1, 1)
    d = means - 1
    exact = [d * ndtr(d / s) + s * bell(d / s), s * ndtr(d / s), s * bell(d / s)]
    np.testing.assert_allclose(smoothed(means), exact, rtol=0, atol=2e-13 * 12)


@pytest.mark.parametrize("s", [0.02, 0.4, 2.0])
@pytest.mark.parametrize("mean", [0.0, 0.31, -2.9, 6.0])
def test_functions_without_closed_forms(s, mean):
    """ELU and softsign against integrals of 20 digits."""
    exact = []
    with mp.workdps(20):
        for f in (lambda h: h if h > 0 else mp.expm1(h), lambda h: h / (1 + abs(h))):
            cuts = sorted({-9.5, 0.0, min(max(-mean / s, -9.5), 9.5), 9.5})
            exact.append(mp.quad(lambda z, f=f: f(mean + s * z) * mp.npdf(z), cuts, maxdegree=9))

    def functions(h):
        return np.array([np.where(h > 0, h, np.expm1(np.minimum(h, 0))), h / (1 + np.abs(h))])

    found = averages(functions, (0.0,), s, np.array([mean]), PANEL)[:, 0, 0]
    smoothed = Smoothed.of(functions, (0.0,), s, 8.0, 2.0, PANEL)(np.array([mean]))[:, 0]
    np.testing.assert_allclose(found, np.array(exact, float), rtol=0, atol=2e-15 * (1 + abs(mean)))
    np.testing.assert_allclose(smoothed, found, rtol=0, atol=3e-13)


def test_several_kinks():
    """Steps at −1 and 2, by their probabilities, beside and between the kinks."""
    means, s = np.linspace(-6, 6, 97), 0.2

    def box(h):
        return ((h > -1) & (h < 2)).astype(float)[None]

    found = averages(box, (-1.0, 2.0), s, means, PANEL)
    exact = ndtr((2 - means) / s) - ndtr((-1 - means) / s)
    np.testing.assert_allclose(found[0, 0], exact, rtol=0, atol=2e-14)
