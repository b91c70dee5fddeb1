"""φ that is a line on either side of zero, φ(h) = (A + B) h and (A − B) h: ReLU and its relatives.

Its averages are closed forms in the angle of two inputs, which kernels in float64 hold to the root
of their rounding only. Pairs are therefore followed by both gaps 1 − c and 1 + c of their
correlation. With the shares w_k of skip connection, branch and bias in the variances of a layer,

    1 ∓ c' = (1/2) Σ_k (√w_kα − √w_kβ)² + √(w_1α w_1β) (1 ∓ c) + √(w_2α w_2β) (1 ∓ c_φ)
             + √(w_3α w_3β) (1 ∓ 1),

whose terms are all positive. Inputs that are parallel or opposite within the rounding of their
kernel are made so exactly, for all φ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from fieldtheory.averages.integrands.exact_differences import (
    PARALLEL,
    determinant,
    one_minus_correlation,
)
from fieldtheory.averages.quadrature.panelled_functions import Function
from fieldtheory.networks.coefficients import LayerCoefficients

# Below this angle sin θ − θ cos θ is a series Σ (−1)^(k+1) 2k θ^(2k+1)/(2k+1)!, last terms first.
_SMALL = 0.5
_SERIES = tuple(2 * k / math.factorial(2 * k + 1) for k in range(8, 0, -1))
# Sizes of signals at which φ is compared with its lines, and the relative error allowed.
_FAR = 2.0 ** np.array([60, 120, 200])
# 1 − |c| that the roundings of averages leave of pairs that were parallel in the layer before.
ROUNDED = 2.0**-45
_EVERYWHERE, _LINEAR = np.concatenate([np.geomspace(1e-8, 1e8, 400), 1 / _FAR, _FAR]), 1e-15


class Lines(NamedTuple):
    """φ(h) = A h + B |h|.

    With θ = arccos c (SR eq. (5), the arc-cosine kernels of degrees 0 and 1),

        M = (A² + B²) K,   ⟨φ'φ'⟩ = A² + B² (1 − 2θ/π),
        ⟨φφ⟩ = √(K_xx K_yy) [A² c + B² (1 − g(θ))],   g(θ) = 1 − c − (2/π) (sin θ − θ cos θ).
    """

    A: float
    B: float

    @property
    def moment(self) -> float:
        """M/K = M' = ⟨φ'²⟩."""
        return self.A**2 + self.B**2

    def averages(self, gaps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """⟨φ'φ'⟩, and 1 ∓ c_φ (2, ...), by 1 ∓ c; the smaller gap gives the angle."""
        near, opposite = gaps.min(axis=0), gaps[1] < gaps[0]
        angle = 2 * np.arcsin(np.sqrt(np.clip(near, 0, 2) / 2))
        even = near - 2 / np.pi * _sector(angle, near)
        share = self.B**2 / self.moment
        first = (1 - share) * gaps + share * np.stack([even, 2 - even])
        slope = self.B**2 * (1 - 2 / np.pi * angle)
        return self.A**2 + np.where(opposite, -slope, slope), first


def _sector(angle: np.ndarray, gap: np.ndarray) -> np.ndarray:
    """sin θ − θ cos θ, of θ and 1 − cos θ."""
    small = np.minimum(angle, _SMALL)
    square, series = small * small, 0.0
    for coefficient in _SERIES:
        series = coefficient - square * series
    exact = np.sqrt(gap * (2 - gap)) - angle * (1 - gap)
    return np.where(angle < _SMALL, square * small * series, exact)


def lines_of(function: Function) -> Lines | None:
    """The lines that φ is everywhere.

    Examples
    --------
    >>> lines_of(Function(lambda h: np.maximum(h, 0.0), kinks=(0.0,)))
    Lines(A=0.5, B=0.5)
    """
    if function.kinks.any():
        return None
    sizes = _EVERYWHERE
    with np.errstate(all="ignore"):
        try:
            up, down = function.value(sizes) / sizes, -function.value(-sizes) / sizes
        except (ArithmeticError, ValueError):
            return None
    slopes = np.stack(np.broadcast_arrays(up, down, sizes)[:2])
    if (
        not np.isfinite(slopes).all()
        or np.ptp(slopes, axis=1).max() > _LINEAR * np.abs(slopes).max()
    ):
        return None
    up, down = slopes[:, -1]
    return Lines(float(up + down) / 2, float(up - down) / 2) if up or down else None


@np.errstate(divide="ignore", invalid="ignore")
def gaps_of(K_xx: np.ndarray, K_yy: np.ndarray, K_xy: np.ndarray) -> np.ndarray:
    """1 − c and 1 + c of K_xy = c √(K_xx K_yy), to rounding, shape (2, ...).

    Examples
    --------
    >>> gaps_of(np.array([1.0, 2.0]), np.array([4.0, 1.0]), np.array([-2.0, 0.0])).tolist()
    [[2.0, 1.0], [0.0, 1.0]]
    """
    # Signals over powers of two, as products may leave float64.
    sizes = [np.exp2(np.floor(np.frexp(k)[1] / 2)) for k in (K_xx, K_yy)]
    x, y = (k / size / size for k, size in zip((K_xx, K_yy), sizes, strict=True))
    xy = K_xy / sizes[0] / sizes[1]
    near = one_minus_correlation(x, y, xy)
    near = np.where(near <= PARALLEL, 0.0, near)
    c = xy / np.sqrt(x * y)
    return np.stack([np.where(c > 0, near, 1 - c), np.where(c < 0, near, 1 + c)])


def are_parallel(x: np.ndarray, y: np.ndarray, xy: np.ndarray) -> np.ndarray:
    """Mask of pairs of variances x, y that are parallel or opposite within the rounding of xy."""
    return gaps_of(x, y, xy).min(axis=0) <= PARALLEL


def as_parallel(chosen: np.ndarray, x: np.ndarray, y: np.ndarray, xy: np.ndarray) -> np.ndarray:
    """Covariances in which chosen pairs that are parallel within roundings are so exactly.

    Examples
    --------
    >>> own = np.array([30.0]), np.array([75.0])
    >>> determinant(*own, as_parallel(np.array([True]), *own, np.array([-(2250.0**0.5)])))
    array([0.])
    """
    if not chosen.any():
        return xy
    size = np.where(x == y, x, np.sqrt(x) * np.sqrt(y))
    chosen = chosen & (np.abs(xy) >= (1 - ROUNDED) * size)
    # Of norms that are not the same roots are rounded up, as negative determinants are zero.
    for _ in range(3):
        size = np.where(determinant(x, y, size) > 0, np.nextafter(size, np.inf), size)
    return np.where(chosen, np.copysign(size, xy), xy)


def exactly_parallel(x: np.ndarray, y: np.ndarray, xy: np.ndarray) -> np.ndarray:
    """Covariances of which those of parallel pairs are so exactly."""
    return as_parallel(are_parallel(x, y, xy), x, y, xy)


def next_gaps(
    gaps: np.ndarray, of_phi: np.ndarray, first: np.ndarray, second: np.ndarray
) -> np.ndarray:
    """1 ∓ c of the next layer, from the roots √w_k (3, ...) of the shares of both inputs."""
    mismatch = ((first - second) ** 2).sum(axis=0) / 2
    skip, branch, bias = first * second
    following = mismatch + skip * gaps + branch * of_phi
    following[1] += 2 * bias
    return following


def averages_along(
    lines: Lines,
    layers: LayerCoefficients,
    K: np.ndarray,
    K0: np.ndarray,
    pairs: tuple[np.ndarray, np.ndarray],
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """⟨φφ⟩ and ⟨φ'φ'⟩ of pairs over the signals of layers 0, 1, ..., one after the other."""
    first, second = pairs
    gaps = gaps_of(K[0][..., first], K[0][..., second], K0)
    for l in range(len(K)):
        slope, of_phi = lines.averages(gaps)
        root = np.sqrt(lines.moment * K[l])
        yield root[..., first] * root[..., second] * (1 - of_phi[0]), slope
        if l + 1 < len(K):
            branch = layers.weights[l + 1] * lines.moment * K[l]
            parts = np.stack(
                np.broadcast_arrays(layers.skips[l + 1] * K[l], branch, layers.biases[l + 1])
            )
            roots = np.sqrt(parts / parts.sum(axis=0))
            gaps = next_gaps(gaps, of_phi, roots[..., first], roots[..., second])
