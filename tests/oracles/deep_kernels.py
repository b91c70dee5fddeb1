"""Deep recursions with mpmath, which has no largest number: kernels, responses, correlations.

Closed forms are typed here; `M(K)` and `slope(K)` are <phi^2> and its derivative, `pair(p, q, r)`
gives <phi phi> and <phi' phi'> for variances p, q and covariance r.
"""

from typing import NamedTuple

from mpmath import acos, mp, mpf, pi, sin, sqrt


class Phi(NamedTuple):
    """Averages of one function, all in mpf."""

    M: object
    slope: object
    pair: object


def bent(up, down):
    """phi(x) = up x for x > 0 and down x for x < 0: arc-cosine kernels of degree 1 and 0."""
    up, down = mpf(up), mpf(down)
    mean = (up**2 + down**2) / 2
    bend = (up - down) ** 2 / (2 * pi)

    def pair(p, q, r):
        size = sqrt(p * q)
        theta = acos(min(mpf(1), max(mpf(-1), r / size)))
        sector = sin(theta) - theta * r / size
        return mean * r + bend * size * sector, mean - bend * theta

    return Phi(lambda K: mean * K, lambda K: mean, pair)


def error_function():
    """phi = erf."""

    def pair(p, q, r):
        D = 1 + 2 * p + 2 * q + 4 * (p * q - r * r)
        return 2 / pi * mp.atan2(2 * r, sqrt(D)), 4 / pi / sqrt(D)

    return Phi(
        lambda K: 2 / pi * mp.atan2(2 * K, sqrt(1 + 4 * K)),
        lambda K: 4 / pi / ((1 + 2 * K) * sqrt(1 + 4 * K)),
        pair,
    )


def one_input(phi, layers, K):
    """K^(l) of all layers and chi^(l) of all but the last; layers are (gamma^2, a, c)."""
    kernels, responses = [mpf(K)], [mpf(1)]
    for skip, a, c in layers:
        K = kernels[-1]
        responses.append((skip + a * phi.slope(K)) * responses[-1])
        kernels.append(skip * K + a * phi.M(K) + c)
    return kernels, responses[:-1]


def two_inputs(phi, layers, p, q, r):
    """(K_xx, K_yy, K_xy) of all layers and chi_xy of all but the last."""
    kernels, responses = [(p, q, r)], [mpf(1)]
    for skip, a, c in layers:
        p, q, r = kernels[-1]
        product, slope = phi.pair(p, q, r)
        responses.append((skip + a * slope) * responses[-1])
        kernels.append(
            (skip * p + a * phi.M(p) + c, skip * q + a * phi.M(q) + c, skip * r + a * product + c)
        )
    return kernels, responses[:-1]


def decorrelation(p, q, r):
    """1 - r/sqrt(p q)."""
    return 1 - r / sqrt(p * q)


def tangents(phi, layers, p, q, r, trained=None):
    """Theta^(l) of a pair of inputs in all layers; of one input K if p = q = r = K.

    trained are (w, u) of the input and all layers: D = w <phi phi> + u, D^(0) = w K_xy + u.
    """
    trained = trained or [(1, 0), *((a, c) for _, a, c in layers)]
    kernels, _ = two_inputs(phi, layers, p, q, r)
    w, u = trained[0]
    found = [w * r + u]
    for (skip, a, _), (w, u), K in zip(layers, trained[1:], kernels, strict=False):
        product, slope = phi.pair(*K)
        found.append((skip + a * slope) * found[-1] + w * product + u)
    return found
