"""Averages of products of the signs of up to four Gaussian variables, for many of them at once.

Of one variable it is an error function, of two an arcsine, or Owen's T where they have means
(D. B. Owen 1956). Of more, the covariances between two groups are multiplied by t, and Price's
theorem (R. Plackett 1954) says

    ∂_t ⟨Π_k s_k⟩ = Σ_ij K_ij 4 N(h_i = h_j = 0) ⟨Π_{k≠i,j} s_k⟩ given h_i = h_j = 0

with i in one group and j in the other. Minors of the covariance vanish at real |t| >= r only, where
1/r is the largest canonical correlation of the groups. With t = r tanh v the integrand is analytic
for |Im v| < π/2, and bounded for |Im v| < π/4 with means, so that the number of nodes of a
Gauss-Legendre rule for an error follows from r, however close r is to 1.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.special import erf, owens_t

from fieldtheory.averages.integrals.quadrature import legendre
from fieldtheory.averages.integrands.exact_differences import determinant

# Nodes, and the error they are chosen for.
_NODES = (3, 4, 6, 8, 10, 12, 15, 19, 24, 32, 44, 64, 96, 150, 220, 330, 480)
_ERROR = 1e-15
# Least and largest r² − 1 that nodes are made for.
_SINGULAR, _FARTHEST = 1e-26, 1e8
# Variables whose determinant is a smaller part of their variances are equal or opposite.
_EQUAL = 1e-24
# Sine of the angle between variables that rounding hides.
_SAME = 1e-8
# Variance, as a part of it, and mean of a variable given others that may be rounding.
_NO_VARIANCE, _NO_MEAN = 1e-14, 1e-8
# Squares of what is left of a variable given others, below which it is no difference from one.
_LITTLE = 0.25
# Nodes of all averages held at once, so that the work arrays stay in the cache.
_TOGETHER = 1 << 15
_TINY = float(np.finfo(float).tiny)


def product(K: np.ndarray, means: np.ndarray | None = None) -> np.ndarray:
    """⟨Π_k sign(h_k)⟩, shape (m,).

    Parameters
    ----------
    K : ndarray, shape (d, d, m)
        Covariances of d <= 4 variables, positive semidefinite.
    means : ndarray, shape (d, m), optional
        Zero if not given.

    Examples
    --------
    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])[..., None]
    >>> product(K).round(12)
    array([0.33333333])
    """
    size = len(K)
    if size == 0:
        return np.ones(K.shape[-1])
    if size % 2 and means is None:
        return np.zeros(K.shape[-1])
    if size == 1 and means is not None:
        return _one(K[0, 0], means[0])
    if size == 2:
        return _of_two(K, means)
    half = slice(0, size - 2), slice(size - 2, size)
    starts = [product(K[part, part], None if means is None else means[part]) for part in half]
    return _of_equal(K, means, starts[0] * starts[1] + connected(K, means))


def _of_equal(K: np.ndarray, means: np.ndarray | None, value: np.ndarray) -> np.ndarray:
    """The product of three or four signs, those of equal or opposite variables as one number."""
    size = len(K)
    for i, j in combinations(range(size), 2):
        equal = _change_together(K, means, i, j)
        if equal.any():
            left = [k for k in range(size) if k not in (i, j)]
            of_others = product(K[left][:, left], None if means is None else means[left])
            value = np.where(equal, np.sign(K[i, j]) * of_others, value)
    return value


def _change_together(K: np.ndarray, means: np.ndarray | None, i: int, j: int) -> np.ndarray:
    """Whether two variables are equal or opposite up to a factor."""
    rest = determinant(K[i, i], K[j, j], K[i, j])
    same = rest <= _EQUAL * K[i, i] * K[j, j]
    if means is not None:
        with np.errstate(all="ignore"):
            own, other = (means[k] / np.sqrt(K[k, k]) for k in (i, j))
            same &= K[i, j] != 0
            same &= np.abs(own - np.sign(K[i, j]) * other) <= _NO_MEAN * (1 + np.abs(own))
    return same


def connected(
    K: np.ndarray, means: np.ndarray | None = None, left: np.ndarray | None = None
) -> np.ndarray:
    """⟨s_1 s_2 ; s_3 s_4⟩ of four variables or ⟨s_1 ; s_2 s_3⟩ of three; arguments of `product`.

    It keeps its relative accuracy where the two groups hardly depend on each other, and where the
    first nearly determines the second if the covariance of what is ``left`` of the second given the
    first, shape (2, 2, m), is known better than as a difference.

    Examples
    --------
    >>> K = np.eye(4)[..., None]
    >>> K[0, 2] = K[2, 0] = K[1, 3] = K[3, 1] = 1e-5
    >>> connected(K).round(16)
    array([4.05e-11])
    """
    found = np.zeros(K.shape[-1])
    if means is None and len(K) == 3:
        return found
    with np.errstate(all="ignore"):
        groups = _groups(K, means, left)
        count = _count(groups.first, means is not None)
        # The product of equal or of opposite signs does not vary.
        for i, j in ((0, 1), (2, 3)) if len(K) == 4 else ((1, 2),):
            count = np.where(_change_together(K, means, i, j), 0, count)
        for n in np.unique(count[count > 0]).tolist():
            (index,) = np.nonzero(count == n)
            step = max(1, _TOGETHER // n)
            for start in range(0, len(index), step):
                some = index[start : start + step]
                found[some] = _integral(groups.of(some), n)
    return found


class _Groups(NamedTuple):
    """Variables of variance one as unit vectors of two planes that are correlated axis by axis.

    With z and w the axes of the two planes, ⟨z_1 w_1⟩ = large >= ⟨z_2 w_2⟩ = small >= 0, and
    h_i = cos α_i z_1 + sin α_i z_2, h_j = cos β_j w_1 + sin β_j w_2. All minors follow from these,
    so that what is rounded belongs to one covariance.

    Parameters
    ----------
    angles : ndarray, shape (d, m)
        α and β.
    large, small, first, second : ndarray, shape (m,)
        The latter are 1 − large and 1 − small.
    means : ndarray, shape (d, m), or None
    """

    angles: np.ndarray
    large: np.ndarray
    small: np.ndarray
    first: np.ndarray
    second: np.ndarray
    means: np.ndarray | None

    def of(self, some: np.ndarray) -> _Groups:
        """Those of some averages."""
        large, small, first, second = (each[some] for each in self[1:5])
        chosen = None if self.means is None else self.means[:, some]
        return _Groups(self.angles[:, some], large, small, first, second, chosen)


def _groups(K: np.ndarray, means: np.ndarray | None, left: np.ndarray | None) -> _Groups:
    size, split = len(K), len(K) - 2
    deviations = np.sqrt(K[range(size), range(size)])
    inside = [_angle(K, split, split + 1)]
    X = K[:split, split:] / (deviations[:split, None] * deviations[split:])
    X[:, 1] = _beyond(X[:, 1], X[:, 0], inside[0])
    if split == 2:
        inside.insert(0, _angle(K, 0, 1))
        X[1] = _beyond(X[1], X[0], inside[0])
    else:
        X = np.concatenate([X, np.zeros_like(X)])
    X = np.nan_to_num(X)
    u, v, large, small = rotations(X)
    first, second = 1 - large, 1 - np.abs(small)
    if left is not None:
        own = left / (deviations[split:, None] * deviations[split:])
        near = _by_what_is_left(X, own, inside[-1])
        known = near.first < _LITTLE
        u, v, large, small, first, second = (
            np.where(known, better, value)
            for better, value in zip(near, (u, v, large, small, first, second), strict=True)
        )
    angles = np.zeros((size, K.shape[-1]))
    if split == 2:
        angles[1] = inside[0]
    angles[:split] -= u
    angles[-1] = inside[-1]
    angles[split:] -= v
    # Correlations of one sign, by a reflection of the second plane.
    angles[split:] *= np.where(small < 0, -1.0, 1.0)
    large, small = (np.minimum(np.abs(s), 1.0) for s in (large, small))
    first, second = (np.maximum(rest, 0.0) for rest in (first, second))
    means = None if means is None else means / deviations
    return _Groups(angles, large, small, first, second, means)


class _Turned(NamedTuple):
    """`rotations` of correlations, and what these leave of one."""

    u: np.ndarray
    v: np.ndarray
    large: np.ndarray
    small: np.ndarray
    first: np.ndarray
    second: np.ndarray


def _by_what_is_left(X: np.ndarray, left: np.ndarray, angle: np.ndarray) -> _Turned:
    """`rotations` from 1 − XᵀX, the covariance (2, 2, m) of what is left of two variables."""
    cosine, sine = np.cos(angle), np.sin(angle)
    a, crossed = left[0, 0], left[0, 1] - cosine * left[0, 0]
    b = crossed / sine
    d = (left[1, 1] - cosine * (left[0, 1] + crossed)) / sine**2
    spread = np.hypot(a - d, 2 * b)
    most = (a + d + spread) / 2
    squares = np.maximum(a * d - b * b, 0.0) / most, most
    v = (np.arctan2(2 * b, a - d) + np.pi) / 2
    (x, y), (z, w) = X
    along = x * np.cos(v) + y * np.sin(v), z * np.cos(v) + w * np.sin(v)
    u, large = np.arctan2(along[1], along[0]), np.sqrt(np.maximum(1 - squares[0], 0.0))
    small = (x * w - y * z) / large
    first = squares[0] / (1 + large)
    second = np.where(squares[1] < _LITTLE, squares[1] / (1 + np.abs(small)), 1 - np.abs(small))
    return _Turned(u, v, large, small, first, second)


def _angle(K: np.ndarray, i: int, j: int) -> np.ndarray:
    return np.arctan2(np.sqrt(determinant(K[i, i], K[j, j], K[i, j])), K[i, j])


def _beyond(second: np.ndarray, first: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """Correlations with the second axis of a plane from those with its two variables."""
    sine = np.abs(np.sin(angle))
    rest = (second - np.cos(angle) * first) / sine
    return np.where(sine > _SAME, np.clip(rest, -1.0, 1.0), 0.0)


def rotations(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """u, v, s_1 >= |s_2| with X = R(u) diag(s_1, s_2) R(v)ᵀ, rotations R, for (2, 2, ...)."""
    (a, b), (c, d) = X
    turned, mirrored = np.hypot(a + d, c - b), np.hypot(a - d, c + b)
    total, difference = np.arctan2(c - b, a + d), np.arctan2(c + b, a - d)
    large = (turned + mirrored) / 2
    small = np.divide(a * d - b * c, large, out=np.zeros_like(large), where=large > 0)
    return (total + difference) / 2, (difference - total) / 2, large, small


def _gap(rest: np.ndarray) -> np.ndarray:
    """r² − 1, for the correlation 1/r = 1 − rest."""
    gap = rest * (2 - rest) / np.maximum(1 - rest, _TINY) ** 2
    return np.clip(gap, _SINGULAR, _FARTHEST)


def _range(gap: np.ndarray) -> np.ndarray:
    """V = artanh 1/r."""
    return np.log((1 + np.sqrt(1 + gap)) / np.sqrt(gap))


def _count(rest: np.ndarray, with_means: bool) -> np.ndarray:
    """Nodes for the error: the ellipse about [0, V] in the strip |Im v| < π/2, π/4 with means."""
    b = (np.pi / 2 if with_means else np.pi) / _range(_gap(rest))
    rate = 2 * np.log(b + np.sqrt(1 + b * b))
    needed = -np.log(_ERROR) / rate + 1
    return np.array(_NODES)[np.minimum(np.searchsorted(_NODES, needed), len(_NODES) - 1)]


class _Path(NamedTuple):
    """t and 1 − t² at the nodes (n, m), and √((1 − t² s_1²)(1 − t² s_2²))."""

    t: np.ndarray
    q: np.ndarray
    root: np.ndarray


def _integral(groups: _Groups, n: int) -> np.ndarray:
    x, w = legendre(n)
    gap = _gap(groups.first)
    V = _range(gap)
    v = V * ((1 + x) / 2)[:, None]
    # 1/cosh² v, from which 1 − t² has the digits that 1 − tanh² v has not.
    bell = 1 / np.cosh(v) ** 2
    t = np.tanh(v) * np.sqrt(1 + gap)
    q = np.maximum(bell * (1 + gap) - gap, 0.0)
    root = np.ones_like(q)
    for rest in (groups.first, groups.second):
        root *= rest * (2 - rest) + q * (1 - rest) ** 2
    path = _Path(t, q, np.sqrt(root))
    size, total = len(groups.angles), np.zeros_like(q)
    for i in range(size - 2):
        for j in (size - 2, size - 1):
            total += _slope(groups, i, j, path)
    weights = (w / 2)[:, None] * V * bell * np.sqrt(1 + gap)
    return np.einsum("nm,nm->m", weights, np.where(q > 0, total, 0.0))


def _slope(groups: _Groups, i: int, j: int, path: _Path) -> np.ndarray:
    """K_ij 4 N(h_i = h_j = 0) ⟨Π s⟩ of the others given that, at the nodes (n, m).

    With p ⟂ h_i and p' ⟂ h_j in the planes, of the others h_k = cos Δ h_i + sin Δ p; at t = 1
    ⟨h_i h_j⟩ = r, ⟨h_i p'⟩ = x, ⟨p h_j⟩ = y, ⟨p p'⟩ = w with r w − x y = s_1 s_2.
    """
    size, (t, q, root) = len(groups.angles), path
    near = [k for k in range(size - 2) if k != i]
    far = 2 * size - 3 - j
    alpha, beta = groups.angles[i], groups.angles[j]
    cosines, sines = np.cos(alpha) * np.cos(beta), np.sin(alpha) * np.sin(beta)
    s1, s2 = groups.large, groups.small
    r = s1 * cosines + s2 * sines
    half = (alpha - beta) / 2
    shift = groups.first * cosines + groups.second * sines
    rest = np.maximum(2 * np.sin(half) ** 2 + shift, 0.0)
    rest = rest * np.maximum(2 * np.cos(half) ** 2 - shift, 0.0)
    minor = np.maximum(rest + q * (r * r), _TINY)
    density = (2 / np.pi) * r / np.sqrt(minor)
    # The minor of p and p', over t, at 1 − t² = q.
    at_end = s1 * sines * groups.second * (2 - groups.second)
    at_end = at_end + s2 * cosines * groups.first * (2 - groups.first)
    crossed = t * (at_end + q * (r * s1 * s2))
    away = np.sin(groups.angles[far] - beta)
    if groups.means is None:
        side = np.sign(np.sin(groups.angles[near[0]] - alpha) * away)
        return density * side * (2 / np.pi) * np.arctan2(crossed, root * np.sqrt(minor))
    a, b = groups.means[i], groups.means[j]
    form = (a - b) ** 2 + 2 * a * b * (1 - t * r)
    density = density * np.exp(-form / (2 * minor))
    y = s2 * np.cos(alpha) * np.sin(beta) - s1 * np.sin(alpha) * np.cos(beta)
    x = s2 * np.sin(alpha) * np.cos(beta) - s1 * np.cos(alpha) * np.sin(beta)
    second = _given(groups.means[far], groups.angles[far] - beta, b, a, r, x, path, minor)
    if not near:
        return np.where(density == 0, 0.0, density * _one(second[1], second[0]))
    turned = groups.angles[near[0]] - alpha
    first = _given(groups.means[near[0]], turned, a, b, r, y, path, minor)
    sides = np.sin(turned) * away
    joint, left = sides * crossed / minor, sides**2 * root**2 / minor
    value = _two(first[0], second[0], first[1], second[1], joint, left)
    # Far from both kinks what is given there has no meaning.
    return np.where(density == 0, 0.0, density * value)


def _given(
    mean: np.ndarray,
    turned: np.ndarray,
    own: np.ndarray,
    other: np.ndarray,
    r: np.ndarray,
    y: np.ndarray,
    path: _Path,
    minor: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The mean and variance of h_k given h_i = h_j = 0, of variances one and these means."""
    t, q, _ = path
    sine = np.sin(turned)
    value = mean - np.cos(turned) * own - sine * t * y * (other - t * r * own) / minor
    left = np.maximum(1 - r * r - y * y, 0.0) + q * (r * r + y * y)
    variance = sine**2 * left / minor
    none = variance <= _NO_VARIANCE
    value = np.where(none & (np.abs(value) <= _NO_MEAN), 0.0, value)
    return value, np.where(none, 0.0, variance)


def _one(K: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """⟨sign(h)⟩."""
    return np.where(K > 0, erf(mean / np.sqrt(2 * np.maximum(K, _TINY))), np.sign(mean))


def _of_two(K: np.ndarray, means: np.ndarray | None) -> np.ndarray:
    a, b, c = K[0, 0], K[1, 1], K[0, 1]
    rest = determinant(a, b, c)
    if means is None:
        return (2 / np.pi) * np.arctan2(c, np.sqrt(rest))
    with np.errstate(all="ignore"):
        return _two(means[0], means[1], a, b, c, rest)


def _two(
    x: np.ndarray, y: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray, rest: np.ndarray
) -> np.ndarray:
    """⟨s s'⟩ of the means x and y, variances a and b, covariance c and determinant."""
    root = np.sqrt(np.maximum(rest, 0.0))
    # No −0: its sign would be that of an infinite slope.
    x, y = x + 0.0, y + 0.0
    opposite = np.where((x * y < 0) | ((x * y == 0) & (x + y < 0)), 2.0, 0.0)
    # Of opposite sign for equal variables, however their means are rounded.
    shift = y * a - c * x
    other = (x * rest - c * shift) / a
    slopes = [np.where(d == 0, 0.0, d / (m * root)) for d, m in ((shift, x), (other, y))]
    tails = owens_t(x / np.sqrt(a), slopes[0]) + owens_t(y / np.sqrt(b), slopes[1])
    value = 1 - opposite - 4 * tails
    value = np.where((x == 0) & (y == 0), (2 / np.pi) * np.arctan2(c, root), value)
    fixed = (a <= 0) | (b <= 0)
    if fixed.any():
        value = np.where(fixed, _one(a, x) * _one(b, y), value)
    return value
