"""What is left of waves of two wide signals where one of them is near zero.

Of signals that are not similar, with f̄ the mean of f over the phases of its waves, and weights W
that fall off over many waves beyond where amplitudes bend,

    ⟨f(x) g(y)⟩ = ⟨f̄ ḡ⟩ + ⟨W (f − f̄)(x) ḡ(y)⟩ + ⟨f̄(x) W (g − ḡ)(y)⟩ + ⟨W (f − f̄)(x) W (g − ḡ)(y)⟩.

Densities are smooth over the standard deviation of one signal given the other: few nodes of wide
panels stand for all those that resolve waves.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from fieldtheory.averages.integrals.quadrature import composite
from fieldtheory.averages.oscillating.amplitudes import Amplitudes
from fieldtheory.averages.oscillating.parallel_waves import (
    ORDER,
    SPREAD,
    Weight,
    bell_of,
    lagrange,
    outside,
    panels_of,
    polynomials,
)

# Variances of which nothing near zero counts, and what is nothing beside an average.
_FARTHEST, _NOTHING = 2.0**118, 1e-17


def left_near_zero(
    f: Amplitudes, g: Amplitudes, a: float, b: float, away: float, size: float
) -> float:
    """⟨f(x) g(y)⟩ − ⟨A_0(x) B_0(y)⟩ of signals so different that waves are left near zero alone.

    Parameters
    ----------
    f, g : Amplitudes
    a, b, away : float
        Variances, and 1 − c of the correlation c >= 0.
    size : float
        Beside which it may be nothing.
    """
    if min(a, b) > _FARTHEST:
        return 0.0
    c, inside = 1 - away, away * (2 - away)
    parts = [_windowed(f), _windowed(g)]
    lengths = [
        np.abs(part[1]).sum() / np.sqrt(2 * np.pi * K)
        for part, K in zip(parts, (a, b), strict=True)
    ]
    reach = [np.abs(s.mean(np.sqrt(K) * np.array([-2.0, 2.0]))).max() for s, K in ((f, a), (g, b))]
    most = lengths[0] * (reach[1] + lengths[1] / np.sqrt(inside)) + lengths[1] * reach[0]
    if most < _NOTHING * abs(size):
        return 0.0
    # Densities are smooth over standard deviations of one signal given the other.
    (x, u), (y, v) = (
        _lumped(*part, np.sqrt(K * inside)) for part, K in zip(parts, (a, b), strict=True)
    )
    z, w = x / np.sqrt(a), y / np.sqrt(b)
    density = np.exp(-((z[:, None] - c * w) ** 2) / (2 * inside) - w**2 / 2)
    both = u @ density @ v / (2 * np.pi * np.sqrt(a) * np.sqrt(b) * np.sqrt(inside))
    # Means of y given x, and of x given y.
    given = c * np.sqrt(b) / np.sqrt(a) * x, c * np.sqrt(a) / np.sqrt(b) * y
    means = _means(g, given[0], np.sqrt(b * inside)), _means(f, given[1], np.sqrt(a * inside))
    one = (u * np.exp(-(z**2) / 2)) @ means[0] / np.sqrt(2 * np.pi * a)
    other = (v * np.exp(-(w**2) / 2)) @ means[1] / np.sqrt(2 * np.pi * b)
    return float(both + one + other)


@lru_cache(maxsize=64)
def _windowed(f: Amplitudes) -> tuple[np.ndarray, np.ndarray]:
    """Nodes near zero, and f − A_0 times the weight and weights of their integral."""
    weight = Weight(f.bends, f.least)
    x, weights = composite(panels_of(f, weight.end), ORDER)
    return x, weights * (1 - weight.beyond(x)) * (f.function(x) - f.mean(x))


def _lumped(x: np.ndarray, u: np.ndarray, width: float) -> tuple[np.ndarray, np.ndarray]:
    """Few nodes of panels so wide, and weights by which sums over u of polynomials are theirs."""
    end = np.abs(x).max()
    edges = np.linspace(-end, end, int(np.ceil(2 * end / width)) + 1)
    nodes, _ = polynomials()
    panel = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(edges) - 2)
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    terms = u * lagrange((x - middle[panel]) / half[panel])
    weights = np.zeros((len(half), len(nodes)))
    np.add.at(weights, panel, terms.T)
    return (middle[:, None] + half[:, None] * nodes).ravel(), weights.ravel()


def _means(g: Amplitudes, means: np.ndarray, spread: float) -> np.ndarray:
    """⟨B_0⟩ of signals with means, by panels that grow away from zero and kinks."""
    if not (g.numbers == 0).any():
        return np.zeros(len(means))
    low, high = means.min() - SPREAD * spread, means.max() + SPREAD * spread
    steps = [0.5 * k for k in range(int(2 * g.bends))]
    while steps[-1] < max(abs(low), abs(high)):
        steps.append(steps[-1] + min(steps[-1], spread))
    cuts = np.union1d(np.array([*steps, *(-s for s in steps)]), g.kinks)
    cuts = np.union1d(np.clip(cuts, low, high), [low, high])
    y, weights = composite(cuts, ORDER)
    bell = np.exp(-(((y - means[:, None]) / spread) ** 2) / 2) / (np.sqrt(2 * np.pi) * spread)
    return bell @ (weights * g.mean(y))


def more(f: Amplitudes, variance: float) -> float:
    """⟨f²⟩ − ⟨A_0²⟩."""
    weight = Weight(f.bends, f.least)
    far, weights = outside(weight, variance, 0.0)
    x, near = composite(panels_of(f, weight.end), ORDER)
    near = near * bell_of(x, variance, weight)
    return float(f.waves(far) @ weights + (f.function(x) ** 2 - f.mean(x) ** 2) @ near)
