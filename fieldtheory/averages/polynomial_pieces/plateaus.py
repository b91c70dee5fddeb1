"""Connected correlators of piecewise constant functions, by Price's theorem from their jumps.

With F' = Σ_i Δ_i δ(h − t_i), G' likewise, and t = √(K_xx K_yy) sin θ

    ⟨F(x) ; G(y)⟩ = ∫_0^{K_xy} dt Σ_ij Δ_i Δ_j N_2(t_i, t_j; t) = ∫ dθ Σ_ij Δ_i Δ_j e^(−E)/2π

where for t t_i t_j >= 0, with D = K_xx K_yy − t²,

    E = (√K_yy |t_i| − √K_xx |t_j|)²/(2D) + |t_i t_j|/(√(K_xx K_yy) + |t|),

which is t_i²/(K + t) where variances and places are the same, however small D is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fieldtheory.averages.integrals.price import integrals
from fieldtheory.averages.integrands.exact_differences import determinant
from fieldtheory.averages.polynomial_pieces.ramps import Ramps

# Cosine of the last angle below which panels there become as narrow as rounding, else by how many
# halvings narrower than the scale of the exponentials.
_NEAR, _NARROWEST, _HALVINGS = 0.05, 52, 8
# Pairs at once, so that the work arrays stay in the cache.
_CHUNK = 512

# |t_i|, |t_j| and the sums of Δ_i Δ_j of places with equal signs, and with opposite ones.
Jumps = list[tuple[float, float, float, float]]


def connected(f: Ramps, g: Ramps) -> Callable:
    """⟨F ; G⟩ of the slopes of two ramps as a function of (K_xx, K_yy, K_xy), arrays.

    A fourth argument is K_xx K_yy − K_xy² where that is known better than as a difference.

    Examples
    --------
    >>> import sympy as sp
    >>> from fieldtheory.averages.polynomial_pieces.ramps import ramps_of_slopes
    >>> x = sp.Symbol("x", real=True)
    >>> step = ramps_of_slopes(sp.Heaviside(x - 1), x)
    >>> float(connected(step, step)(1.0, 1.0, 1.0).round(10))  # p (1 − p), p = 0.1586552539
    0.1334837643
    """
    jumps = _jumps(f, g)
    farthest = max((max(pair[:2]) for pair in jumps), default=0.0)

    def compute(
        K_xx: np.ndarray, K_yy: np.ndarray, K_xy: np.ndarray, left: np.ndarray | None = None
    ) -> np.ndarray:
        K = np.broadcast_arrays(*(np.asarray(k, dtype=float) for k in (K_xx, K_yy, K_xy)))
        a, b, c = (k.ravel() for k in K)
        found = np.zeros(len(a))
        rest = np.sqrt(determinant(a, b, c) if left is None else left.ravel())
        with np.errstate(divide="ignore", over="ignore"):
            scale = np.ceil(np.log2(np.maximum(farthest**2 / np.minimum(a, b), 1.0)))
        halvings = np.minimum(_HALVINGS + np.stack([scale, scale - _HALVINGS]), _NARROWEST)
        halvings[0, rest < _NEAR * np.sqrt(a) * np.sqrt(b)] = _NARROWEST
        for both in np.unique(halvings[:, c != 0], axis=1).T:
            (index,) = np.nonzero((c != 0) & (halvings == both[:, None]).all(axis=0))
            for start in range(0, len(index), _CHUNK):
                some = index[start : start + _CHUNK]
                entries = a[some], b[some], c[some], rest[some]
                found[some] = _integrated(jumps, *entries, _cuts(*both.tolist()))
        return found.reshape(K[0].shape)

    return compute


def _jumps(f: Ramps, g: Ramps) -> Jumps:
    found: dict[tuple[float, float], list[float]] = {}
    for t, bend in zip(f.points, f.bends, strict=True):
        for u, other in zip(g.points, g.bends, strict=True):
            sums = found.setdefault((abs(t), abs(u)), [0.0, 0.0])
            sums[int(t * u < 0)] += bend * other
    return [(t, u, same, opposite) for (t, u), (same, opposite) in found.items()]


def _cuts(last: float, first: float) -> np.ndarray:
    """Ends of panels of [0, 1], from the last angle, so often halved, to none."""
    ends = 0.5 ** np.arange(last, 0, -1), 1 - 0.5 ** np.arange(2, first + 1)
    return np.concatenate([[0.0], *ends, [1.0]])


def _integrated(
    jumps: Jumps,
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
    rest: np.ndarray,
    cuts: np.ndarray,
) -> np.ndarray:
    """The integrals over the angle, with √D = ``rest`` at their ends."""
    root, last = np.sqrt(a) * np.sqrt(b), np.arctan2(np.abs(c), rest)

    def integrand(some: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        end = last[some, None]
        sine, cosine = np.sin(end * nodes), np.cos(end * nodes)
        # √D and |t| at the angle end (1 − nodes), sums of positive terms and what they leave.
        left = rest[some, None] * cosine + np.abs(c[some, None]) * sine
        t = root[some, None] * np.sin(end * (1 - nodes))
        total = np.zeros(left.shape)
        variances = a[some, None], b[some, None]
        for u, v, *weights in jumps:
            total += _density(u, v, weights, variances, (t, left), c[some, None])
        return end * total / (2 * np.pi)

    return np.sign(c) * integrals(integrand, len(a), cuts)


def _density(
    u: float,
    v: float,
    weights: list[float],
    variances: tuple[np.ndarray, np.ndarray],
    path: tuple[np.ndarray, np.ndarray],
    sign: np.ndarray,
) -> np.ndarray:
    """Σ Δ_i Δ_j e^(−E) of the places ±u and ±v, on a path of |t| and √D."""
    (x, y), (t, left) = map(np.sqrt, variances), path
    apart = u * (variances[1] - variances[0]) / (x + y) if u == v else y * u - x * v
    near = np.exp(-((apart / left) ** 2) / 2 - u * v / (x * y + t))
    same, beyond = np.where(sign < 0, weights[1], weights[0]), -2 * t * u * v / left**2
    # Of even functions the two cancel where variables hardly depend on each other.
    return near * (sum(weights) * np.exp(beyond) - same * np.expm1(beyond))
