"""Averages of two variables of piecewise linear functions, by Price's theorem from their kinks.

With F'' = Σ_i Δ_i δ(h − t_i), and G'' likewise, two derivatives by r = K_xy give

    ∂²⟨F(x)G(y)⟩/∂r² = ⟨F''G''⟩ = Σ_ij Δ_i Δ_j N_2(t_i, t_j; r)

(Price's theorem, F25 eq. (137)), N_2 the density of the pair. Integrated from the covariance zero

    ⟨F'G'⟩ = ⟨F'⟩⟨G'⟩ + ∫_0^r dt Σ_ij Δ_i Δ_j N_2(t_i, t_j; t)
    ⟨FG⟩   = ⟨F⟩⟨G⟩ + r ⟨F'⟩⟨G'⟩ + ∫_0^r dt (r − t) Σ_ij Δ_i Δ_j N_2(t_i, t_j; t)

With t = √(K_xx K_yy) cos ψ, τ = tan(ψ/2), a = t_i/√K_xx and b = t_j/√K_yy

    dt N_2 = −dψ exp(−E)/2π,   E = (a − b)²/(2 sin²ψ) + ab/(1 + cos ψ)   (t >= 0)

which is rational in τ but for the exponential. Gauss-Legendre panels in τ grow from the end, where
that may be steep, so that every correlation is served by a few of them. Negative covariances are
those of mirrored variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import sympy as sp
from scipy.special import erf, erfc

from fieldtheory.averages.integrals.quadrature import legendre
from fieldtheory.averages.integrands.exact_differences import determinant
from fieldtheory.averages.integrands.steps import between, branch, break_points, has_steps

# Longest panel in τ, as the ratio of its ends, how many there may be, and the nodes of panels up
# to some ratios: for all digits, and to find where a maximum is.
_RATIO, _COUNTS = 3.0, (1, 2, 3, 5, 9, 19)
_NODES = ((1.3, 10), (1.8, 13), (_RATIO, 17))
_ROUGH_NODES = ((1.3, 3), (1.8, 4), (_RATIO, 6))
# Kinks in standard deviations beyond which e^(−E) is small but not resolved, and the relative
# error; if all are within the last, it is close to one.
_REMOTE, _CLOSE = ((5.0, 1e-9), (8.0, 1.0)), 0.5
# Most that terms may cancel, and what kinks that are not resolved may contribute.
_CANCELLING, _NEGLIGIBLE = 100.0, 1e-13
# The smallest τ between two variables; beyond, they are one.
_NEAREST = 1e-9
# Pairs times nodes at once, which stay in the cache.
_BLOCK = 1 << 13


class Ramps(NamedTuple):
    """A continuous piecewise linear function.

    Parameters
    ----------
    points, bends : tuple of float
        The kinks t_i, in order, and Δ_i, by which the slope rises there.
    lowest, central, highest : pair of float
        Value at zero and slope of the line on the far left, of that around zero (for a kink at
        zero on its left), and of that on the far right.
    """

    points: tuple[float, ...]
    bends: tuple[float, ...]
    lowest: tuple[float, float]
    central: tuple[float, float]
    highest: tuple[float, float]


@lru_cache(maxsize=64)
def ramps_of(F: sp.Expr, x: sp.Symbol) -> Ramps | None:
    """A function as ramps; None if it is not continuous and piecewise linear.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> ramps_of(sp.Max(-1, sp.Min(1, x)), x).bends
    (1.0, -1.0)
    >>> ramps_of(sp.Max(0, x) ** 2, x) is None
    True
    """
    found = _lines(F, x)
    if found is None:
        return None
    points, lines = found
    steps = [after - before for before, after in pairwise(lines)]
    if any(step.subs(x, point) != 0 for point, step in zip(points, steps, strict=True)):
        return None
    return _ramps(points, [(line.subs(x, 0), line.coeff(x, 1)) for line in lines])


@lru_cache(maxsize=64)
def ramps_of_slopes(F: sp.Expr, x: sp.Symbol) -> Ramps | None:
    """A function that is piecewise constant as the slope of ramps, whose values do not count.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> ramps_of_slopes(sp.Heaviside(x - 2), x).points
    (2.0,)
    """
    found = _lines(F, x)
    if found is None or any(line.has(x) for line in found[1]):
        return None
    return _ramps(found[0], [(sp.S.Zero, line) for line in found[1]])


def _lines(F: sp.Expr, x: sp.Symbol) -> tuple[list, list] | None:
    """Where F has kinks or jumps, and the linear functions between."""
    if not has_steps(F) or F.free_symbols != {x}:
        return None
    try:
        points = break_points(F, x)
    except ValueError:
        return None
    lines = [sp.expand(branch(F, x, middle)) for middle in between(points)]
    if any(not line.is_polynomial(x) or sp.degree(line, x) > 1 for line in lines):
        return None
    return points, lines


def _ramps(points: list, lines: list) -> Ramps:
    numbers = [(float(value), float(slope)) for value, slope in lines]
    bends = tuple(float(b - a) for (_, a), (_, b) in pairwise(lines))
    central = sum(float(p) < 0 for p in points)
    places = tuple(map(float, points))
    return Ramps(places, bends, numbers[0], numbers[central], numbers[-1])


def means(ramps: Ramps, K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """⟨F⟩ and ⟨F'⟩ of variances K > 0, shape (m,).

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> [float(m[0].round(6)) for m in means(ramps_of(sp.Max(0, x), x), np.ones(1))]
    [0.398942, 0.5]
    """
    t, bends = np.array(ramps.points), np.array(ramps.bends)
    dev = np.sqrt(K)
    a = t / dev[:, None]
    far, bell = np.abs(a), np.exp(-a * a / 2) / np.sqrt(2 * np.pi)
    # From the line around zero, and from those far out; the terms of one of them do not cancel.
    tail, sign = erfc(far / np.sqrt(2)) / 2, np.where(t < 0, -1.0, 1.0)
    inner = erf(a / np.sqrt(2))
    low, high = np.array(ramps.lowest), np.array(ramps.highest)
    slopes = _better(
        (ramps.central[1], bends * sign * tail), (sum((low[1], high[1])) / 2, -bends * inner / 2)
    )
    ends = (low[0] + high[0]) / 2 + dev * bends.sum() / np.sqrt(2 * np.pi)
    around = np.expm1(-a * a / 2) / np.sqrt(2 * np.pi) + a * inner / 2
    values = _better(
        (ramps.central[0], dev[:, None] * bends * (bell - far * tail)),
        (ends, dev[:, None] * bends * around),
    )
    return values, slopes


def _better(*forms: tuple) -> np.ndarray:
    """Of two sums of a constant and terms the one whose terms are smaller."""
    (one, one_size), (other, other_size) = (
        (start + terms.sum(axis=1), np.abs(start) + np.abs(terms).sum(axis=1))
        for start, terms in forms
    )
    return np.where(one_size <= other_size, one, other)


def _means_of_each(ramps: Ramps, K: np.ndarray) -> np.ndarray:
    """`means` of the different variances only, which pairs share; shape (2, m)."""
    variances, at = np.unique(K, return_inverse=True)
    return np.array(means(ramps, variances))[:, at]


class Pairs(NamedTuple):
    """Pairs of variables, each entry (m,).

    Parameters
    ----------
    dev_x, dev_y : ndarray
        Standard deviations.
    gap : ndarray
        K_yy − K_xx.
    end : ndarray
        τ of the modulus of the covariance, 0 < τ <= 1.
    width : ndarray
        1 − τ with all its digits.
    """

    dev_x: np.ndarray
    dev_y: np.ndarray
    gap: np.ndarray
    end: np.ndarray
    width: np.ndarray

    def of(self, index: np.ndarray | slice) -> Pairs:
        """Some of the pairs."""
        return Pairs(*(entry[index] for entry in self))


def average(
    f: Ramps,
    g: Ramps,
    K_xx: np.ndarray,
    K_yy: np.ndarray,
    K_xy: np.ndarray,
    of_each: Sequence[np.ndarray] | None = None,
    rough: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """⟨FG⟩ and ⟨F'G'⟩, and which of them have all digits.

    Parameters
    ----------
    f, g : Ramps
    K_xx, K_yy : ndarray, shape (m,)
        Variances.
    K_xy : ndarray, shape (m,)
        Covariances, K_xy² <= K_xx K_yy.
    of_each : pair of ndarray, shape (2, m), optional
        The `means` of F at K_xx and of G at K_yy where they are known.
    rough : bool
        Whether three digits are enough.

    Returns
    -------
    values : ndarray, shape (2, m)
    good : ndarray of bool, shape (2, m)
        False where a variance is zero, the variables are one, or terms cancel, as those of ⟨FG⟩
        do for functions that vanish on one side and nearly opposite variables.

    Examples
    --------
    >>> x, K = sp.Symbol("x", real=True), np.array([1.0])
    >>> clipped = ramps_of(sp.Max(-1, sp.Min(1, x)), x)
    >>> values, good = average(clipped, clipped, K, K, K / 2)
    >>> values.round(8).ravel(), bool(good.all())
    (array([0.23816917, 0.49797178]), True)
    """
    dev_x, dev_y, near = np.sqrt(K_xx), np.sqrt(K_yy), np.abs(K_xy)
    known = (K_xx > 0) & (K_yy > 0)
    root, rest = dev_x * dev_y, np.sqrt(determinant(K_xx, K_yy, K_xy))
    with np.errstate(all="ignore"):
        pairs = Pairs(
            dev_x, dev_y, K_yy - K_xx, rest / (root + near), 2 * near / (root + rest + near)
        )
    known &= pairs.end >= _NEAREST
    integrals = np.zeros((3, 2, len(K_xx)))
    farthest, count = max(map(abs, f.points + g.points)), np.ones(len(K_xx), dtype=int)
    wanted = -np.log(pairs.end[known]) / np.log(_RATIO)
    count[known] = np.array(_COUNTS)[np.searchsorted(_COUNTS[:-1], wanted)]
    close = farthest <= _CLOSE * np.minimum(dev_x, dev_y)
    kinds = 4 * count + 2 * close + (K_xy < 0)
    for kind in np.unique(kinds[known]).tolist():
        (index,) = np.nonzero(known & (kinds == kind))
        kinks = _kink_pairs(f, g, bool(kind % 2))
        size = _BLOCK // (_ROUGH_NODES if rough else _NODES)[-1][1]
        for start in range(0, len(index), size):
            some = index[start : start + size]
            part = pairs.of(some)
            integrals[..., some] = _integrals(kinks, part, kind // 4, bool(kind % 4 // 2), rough)
    means_f, means_g = of_each or (
        _means_of_each(one, np.where(known, K, 1.0)) for one, K in ((f, K_xx), (g, K_yy))
    )
    product = means_f[1] * means_g[1]
    terms = np.array([[means_f[0] * means_g[0], K_xy * product], [product, np.zeros(len(K_xx))]])
    integrals[:, 0] *= root
    # The integral of an odd function of the covariance, and one of an even function.
    integrals[0, 1] *= np.where(K_xy < 0, -1.0, 1.0)
    values = terms.sum(axis=1) + integrals[0]
    sizes, size = np.abs(terms).sum(axis=1) + integrals[1], np.abs(values)
    return values, known & (sizes <= _CANCELLING * size) & (integrals[2] <= _NEGLIGIBLE * size)


@lru_cache(maxsize=64)
def _kink_pairs(f: Ramps, g: Ramps, mirrored: bool) -> list[tuple[float, float, float]]:
    """t_i, t_j and Δ_i Δ_j, the points of g mirrored or not; those at ∓t are one."""
    found: dict[tuple[float, float], float] = {}
    for t, bend in zip(f.points, f.bends, strict=True):
        for u, other in zip(g.points, g.bends, strict=True):
            point = (t, -u if mirrored else u)
            key = max(point, (0.0 - point[0], 0.0 - point[1]))
            found[key] = found.get(key, 0.0) + bend * other
    return [(*key, weight) for key, weight in found.items() if weight]


def _integrals(
    kinks: list[tuple[float, float, float]], pairs: Pairs, count: int, close: bool, rough: bool
) -> np.ndarray:
    """The integrals with and without c − cos ψ, those of the moduli, and what may be missed.

    Shape (3, 2, m), without the factor √(K_xx K_yy).
    """
    size = len(pairs.end)
    found, missed = np.zeros((3, 2, size)), np.zeros(size)
    exponents, constant = [], 0.0
    for t, u, weight in kinks:
        if t == u == 0 or close:
            constant += weight
        if t == u == 0:
            continue
        a, b = np.abs(t) / pairs.dev_x, np.abs(u) / pairs.dev_y
        distance = a - b
        if abs(t) == abs(u):
            # Of nearly equal variances.
            distance = t * pairs.gap / (pairs.dev_x * pairs.dev_y * (pairs.dev_x + pairs.dev_y))
        far = np.maximum(a, b)
        beyond = far.min() > _REMOTE[-1][0]
        for distant, error in _REMOTE:
            if far.max() > distant:
                bell = error * abs(weight) * np.exp(-(far**2) / 2)
                missed += np.where(far > distant, bell, 0.0)
        if beyond:
            # All of it counts as missed.
            continue
        exponents.append((-(distance**2) / 2, -a * b, t * u >= 0, weight))
    found[2] = missed / 4
    ratio = pairs.end ** (-1 / count)
    table = _ROUGH_NODES if rough else _NODES
    order = next((n for longest, n in table if ratio.max() <= longest), table[-1][1])
    x, w = legendre(order)
    x, w = (1 + x[:, None]) / 2, w / (4 * np.pi)
    exponential = np.expm1 if close else np.exp
    # 1 + c, and the start of a panel.
    highest, start = 2 / (1 + pairs.end**2), pairs.end
    for _ in range(count):
        width = pairs.width if count == 1 else start * (ratio - 1)
        square = (start + width * x) ** 2
        # 1/(1 + cos ψ), 1/(1 − cos ψ), 1/sin²ψ, dψ/dτ = 1 + cos ψ, and c − cos ψ.
        plus = (1 + square) / 2
        minus = plus / square
        growth = plus * minus
        slope = 1 / plus
        lever = highest - slope
        sums, sizes = np.zeros((2, 2, size))
        if constant:
            alone = w @ slope
            sums += constant * np.array([w @ (slope * lever), alone])
            sizes += np.abs(sums)
        for by_growth, by_rest, same, weight in exponents:
            terms = by_growth * growth
            terms += by_rest * (plus if same else minus)
            exponential(terms, out=terms)
            terms *= slope
            alone = w @ terms
            terms *= lever
            part = weight * np.array([w @ terms, alone])
            sums += part
            sizes += np.abs(part)
        found[0] += width * sums
        found[1] += width * sizes
        start = start + width
    return found
