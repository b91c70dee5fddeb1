"""Derivatives of correlators of functions that jump away from zero, where layers add little."""

import mpmath as mp
import numpy as np
import pytest
import sympy as sp

from fieldtheory.numerics.correlators.two_inputs import TwoInputs
from fieldtheory.numerics.kinks.kinked_features import feature
from fieldtheory.theory.elementary_averages import X
from tests.tables import slow

KAPPA = mp.mpf(1)


def given(K, mean, known, left):
    """Means at κ of the known signals and covariance of those that are left."""
    inverse = mp.inverse(mp.matrix([[K[i, j] for j in known] for i in known]))
    joint = mp.matrix([[K[i, j] for j in known] for i in left])
    offset = mp.matrix([KAPPA - mean[i] for i in known])
    means = joint * inverse * offset
    own = mp.matrix([[K[i, j] for j in left] for i in left])
    return [mean[i] + m for i, m in zip(left, means, strict=True)], own - joint * inverse * joint.T


def density(K, mean, i):
    return mp.npdf(KAPPA, mean[i], mp.sqrt(K[i, i]))


def beyond(K, mean):
    """The probability that one to three signals are beyond κ, one after the other."""
    root = mp.sqrt(K[0, 0])
    start = (KAPPA - mean[0]) / root
    if len(mean) == 1:
        return mp.ncdf(-start)
    size = len(mean)
    slopes = [K[i, 0] / root for i in range(1, size)]
    left = mp.matrix(size - 1, size - 1)
    for i in range(1, size):
        for j in range(1, size):
            left[i - 1, j - 1] = K[i, j] - slopes[i - 1] * slopes[j - 1]

    def of_others(z):
        means = [m + s * z for m, s in zip(mean[1:], slopes, strict=True)]
        return mp.npdf(z) * beyond(left, means)

    # Where others pass κ, and how fast.
    cuts = {start, max(start, 0) + 9}
    for i, s in enumerate(slopes):
        place, width = (KAPPA - mean[i + 1]) / s, mp.sqrt(left[i, i]) / abs(s)
        cuts |= {place + sign * width * 6**n for sign in (1, -1) for n in range(-1, 5)}
    return mp.quad(of_others, sorted(c for c in cuts if start <= c <= max(start, 0) + 9))


def slope_by_variance(K, own, late, early):
    """∂ by K_xx of ⟨θ(x) θ(y) ; Π θ(u)⟩, x = own: −∂_κ (p(κ) P)/2 with Price's theorem.

    The derivative by the value of x of what others are beyond κ is that of their means.
    """

    def of(others):
        zero = [mp.mpf(0)] * len(K)
        means, left = given(K, zero, [own], others)
        share = [K[i, own] / K[own, own] for i in others]
        total = -KAPPA / K[own, own] * (beyond(left, means) if others else 1)
        for n, i in enumerate(others):
            rest = [j for j in others if j != i]
            m, C = given(K, zero, [own, i], rest) if rest else ([], None)
            total += share[n] * density(left, means, n) * (beyond(C, m) if rest else 1)
        return -density(K, zero, own) * total / 2

    zero = [mp.mpf(0)] * len(early)
    separate = mp.matrix([[K[i, j] for j in early] for i in early])
    return of([*late, *early]) - of(late) * beyond(separate, zero)


def slope_by_covariance(K, early):
    """∂ by K_xy of the same: p(κ, κ) (P given x = y = κ, less P)."""
    zero = [mp.mpf(0)] * 4
    both = mp.matrix([[K[i, j] for j in (0, 1)] for i in (0, 1)])
    u = mp.matrix([KAPPA, KAPPA])
    exponent = (u.T * mp.inverse(both) * u)[0] / 2
    joint = mp.exp(-exponent) / (2 * mp.pi * mp.sqrt(mp.det(both)))
    means, left = given(K, zero, [0, 1], early)
    separate = mp.matrix([[K[i, j] for j in early] for i in early])
    return joint * (beyond(left, means) - beyond(separate, zero[: len(early)]))


@pytest.mark.parametrize("rho", [slow(1e-3), 1e-5, slow(1e-7)])
@pytest.mark.parametrize("c", [0.4, slow(-0.3), slow(0.05)])
@pytest.mark.parametrize("entry", [0, 1, slow(2)])
def test_slopes_of_steps(entry, c, rho):
    """Of θ(h − 1) by orthants of what is left of the other signals at 1, in 34 digits."""
    K0 = np.array([[1.0, c], [c, 0.7]])
    added = rho**2 * np.array([[0.3, 0.1], [0.1, 0.2]])
    C, carried = np.stack([K0, added]), np.tril(np.ones((2, 2)))
    psi = [feature(sp.Heaviside(X - 1))]
    found = next(TwoInputs(psi, np.stack([K0, K0 + added]), C, carried).slopes())[..., 0]
    early = ([2], [3], [2, 3])[entry]
    with mp.workdps(34):
        K0, added = mp.matrix(K0.tolist()), mp.matrix(added.tolist())
        K = mp.matrix(4, 4)
        for i in range(4):
            for j in range(4):
                K[i, j] = K0[i % 2, j % 2] + (added[i, j] if max(i, j) < 2 else 0)
        expected = [
            slope_by_variance(K, 0, [1], early),
            slope_by_variance(K, 1, [0], early),
            slope_by_covariance(K, early),
        ]
    np.testing.assert_allclose(found[:, entry], np.array(expected, float), rtol=1e-9)
