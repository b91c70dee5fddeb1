"""Averages of two functions of one variable each that are narrow or wavy beside their signals.

Panels are halved until each of the two functions is a polynomial on every one of its own. Where the
signals are not strongly correlated, their density is smooth on pairs of these panels, and the
average is a product of a matrix with two vectors. Otherwise y = s x + w with w narrow: the inner
integral over x has the panels of both functions, those of the second one moved by w, and the outer
one is halved.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial

import numpy as np

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrals.panels import breakpoints, evenly
from fieldtheory.averages.integrals.quadrature import composite, legendre, subdivided
from fieldtheory.averages.integrands.exact_differences import determinant
from fieldtheory.averages.tolerance import tolerance

# Nodes of a panel, and of the rule that it is compared with.
_ORDERS = (26, 20)
# Nodes of wide panels, on which densities alone are to be smooth.
_LUMPS = (20, 16)
# Polynomials of this degree represent the functions to this part of their largest value.
_DEGREE, _UNRESOLVED = 15, 1e-13
# A misfit that halving does not make smaller by this factor is rounding, if it is below that part.
_SHRINKS, _ROUNDING = 0.25, 1e-9
# Points that look for what is narrow on a panel: of the first panels, and of halved ones.
_LOOK, _LOOK_AGAIN = 255, 41
_HALVINGS = 24
# Largest number of panels of a function, and of both for all outer nodes.
_MOST, _MOST_MOVED = 2**13, 2**17
# Standard deviations at which panels end.
_REACH = 12.0
# Widest panels, in standard deviations of the Gaussian that is integrated over.
_WIDTH = 1.0
# Largest number of densities, a quarter of a gigabyte.
_DENSEST = 3e7
# Usual number of outer nodes where y = s x + w.
_LEAST = 3000
# Part of the tolerance by which two orders may differ: arguments of waves are rounded.
_ALLOWED = 0.5
# Errors that halved panels may mend.
_NEARLY = 1e-8
# Part of the tolerance that a panel of the outer integral may take.
_SHARE = 1e-3
# Entries of a density at once, and nodes of inner integrals.
_BLOCK = 1 << 20
_TINY = float(np.finfo(float).tiny)

# A function and where it is not smooth.
Side = tuple[Callable, Sequence[float]]
# Variance of x, slope of y given x, and variance of the rest.
Law = tuple[float, float, float]


def average(
    f: Callable,
    g: Callable,
    K_xx: np.ndarray,
    K_yy: np.ndarray,
    K_xy: np.ndarray,
    *,
    kinks: Sequence[Sequence[float]] = ((), ()),
) -> np.ndarray:
    """⟨f(x) g(y)⟩ of pairs that are not fully correlated.

    Parameters
    ----------
    f, g : callable
        Vectorised, of one variable.
    K_xx, K_yy, K_xy : ndarray, shape (n,)
        Variances > 0 and covariances with K_xy² < K_xx K_yy.
    kinks : pair of sequences of float
        Where f and g are not smooth.

    Returns
    -------
    ndarray, shape (n,)

    Raises
    ------
    QuadratureError
        If two orders differ by more than half the tolerance times the average of |f g|, or if a
        function needs more than 8192 panels.

    Examples
    --------
    >>> narrow = lambda h: 1 / (1 + 1e4 * (h - 1) ** 2)
    >>> average(narrow, np.ones_like, *np.array([[1.0], [2.0], [0.9]])).round(12)
    array([0.00757421])
    """
    return np.array(
        [
            _of_pair((f, kinks[0]), (g, kinks[1]), *pair)
            for pair in zip(K_xx, K_yy, K_xy, strict=True)
        ]
    )


def beside(
    integral: Callable,
    f: Callable,
    g: Callable,
    cuts: Sequence[Sequence[float]],
    means: Callable | None,
    first: bool,
) -> Callable:
    """The averages of (K_xx, K_yy, K_xy) by another rule where that holds, by this one elsewhere.

    Parameters
    ----------
    integral : callable
        The other rule, which raises a QuadratureError where it does not hold.
    f, g, cuts
        As for `average`.
    means : callable or None
        ⟨f⟩ and ⟨g⟩, which are subtracted, as a function of K_xx and K_yy.
    first : bool
        Whether this rule comes first: for smooth functions, and for what is so narrow that the
        other may not see it.
    """

    def halved(*K: np.ndarray) -> np.ndarray:
        if means is None:
            return average(f, g, *K, kinks=cuts)
        values = np.empty(len(K[0]))
        for i, (one, two) in enumerate(zip(*means(*K[:2]), strict=True)):
            pair = (k[i : i + 1] for k in K)
            values[i : i + 1] = average(
                partial(_minus, f, one), partial(_minus, g, two), *pair, kinks=cuts
            )
        return values

    one, other = (halved, integral) if first else (integral, halved)

    def either(pair: tuple, regular: bool) -> np.ndarray:
        if not regular:
            return integral(*pair)
        try:
            return one(*pair)
        except QuadratureError as error:
            try:
                return other(*pair)
            except QuadratureError:
                raise error from None

    def compute(*K: np.ndarray) -> np.ndarray:
        arrays = np.broadcast_arrays(*(np.asarray(k, dtype=float) for k in K))
        a, b, c = (k.ravel() for k in arrays)
        regular = (a > 0) & (b > 0) & (determinant(a, b, c) > 0)
        if not (first and regular.any()):
            try:
                return integral(*arrays)
            except QuadratureError:
                if not regular.any():
                    raise
        pairs = ((a[i : i + 1], b[i : i + 1], c[i : i + 1]) for i in range(len(a)))
        values = [either(pair, each) for pair, each in zip(pairs, regular, strict=True)]
        return np.concatenate([np.atleast_1d(value) for value in values]).reshape(arrays[0].shape)

    return compute


def _minus(f: Callable, mean: float, x: np.ndarray) -> np.ndarray:
    return f(x) - mean


def _of_pair(first: Side, second: Side, K_xx: float, K_yy: float, K_xy: float) -> float:
    if K_xx > K_yy:
        first, second, K_xx, K_yy = second, first, K_yy, K_xx
    rest = float(determinant(*map(np.asarray, (K_xx, K_yy, K_xy))))
    (f, at), (g, on) = first, second
    cuts = _panels(f, math.sqrt(K_xx), tuple(at)), _panels(g, math.sqrt(K_yy), tuple(on))
    panels, narrow = sum(map(len, cuts)), math.sqrt(rest / (K_xx * K_yy))
    # How often densities are asked for, and functions.
    dense = (2 * _REACH / _WIDTH * _LUMPS[0]) ** 2 / narrow
    moving = panels * _ORDERS[0] * max(_LEAST, panels * _ORDERS[1] * narrow)
    rule = _densely if dense < min(moving, _DENSEST) else _moved
    law = K_xx, K_xy / K_xx, rest / K_xx
    with np.errstate(all="ignore"):
        value, error = rule((f, g), cuts, law)
        if _ALLOWED * tolerance() < error < _NEARLY:
            # The largest value, which misfits are relative to, may be far out.
            value, error = rule((f, g), tuple(subdivided(each, 2) for each in cuts), law)
    if not error <= _ALLOWED * tolerance():
        raise QuadratureError(
            f"an average of two variables did not reach the relative tolerance {tolerance():g}: "
            f"two orders differ by {error:.1e}; ask for a larger one (rtol=)"
        )
    return value


def _densely(functions: tuple, cuts: tuple, law: Law) -> tuple[float, float]:
    """By the density, smooth on few wide panels; the value and its relative error."""
    K, slope, rest = law
    wide = rest * K / (rest + slope**2 * K), rest
    values = []
    for orders in zip(_ORDERS, _LUMPS, strict=True):
        (x, f), (y, g) = (
            _lumped(function, side, _WIDTH * math.sqrt(variance), *orders)
            for function, side, variance in zip(functions, cuts, wide, strict=True)
        )
        f = f * np.exp(-x * x / (2 * K)) / (2 * math.pi * math.sqrt(K * rest))
        value, size = _banded(f, g, slope * x, y, math.sqrt(rest))
        values.append(value)
    return values[0], abs(values[0] - values[1]) / max(abs(size), _TINY)


def _banded(
    f: np.ndarray, g: np.ndarray, centres: np.ndarray, y: np.ndarray, deviation: float
) -> np.ndarray:
    """Σ f exp(−(y − centre)²/(2 deviation²)) g of each row of f and g, y increasing."""
    first, last = np.searchsorted(y, [centres - _REACH * deviation, centres + _REACH * deviation])
    count = int((last - first).max())
    padded = np.pad(g, ((0, 0), (0, count)))
    places, total = np.append(y, np.full(count, y[-1])), np.zeros(len(f))
    step = max(1, _BLOCK // max(count, 1))
    for start in range(0, len(centres), step):
        part = slice(start, start + step)
        band = first[part, None] + np.arange(count)
        density = np.exp(-(((places[band] - centres[part, None]) / deviation) ** 2) / 2)
        for row, (one, other) in enumerate(zip(f, padded, strict=True)):
            total[row] += one[part] @ (density * other[band]).sum(axis=1)
    return total


def _lumped(
    f: Callable, cuts: np.ndarray, width: float, order: int, lumps: int
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes of wide panels, and weights by which ∫ f p and ∫ |f| p of polynomials p are sums."""
    reach = float(cuts[-1])
    wide = evenly(width, reach)
    fine, weights = composite(np.union1d(cuts, wide), order)
    panel = np.clip(np.searchsorted(wide, fine, side="right") - 1, 0, len(wide) - 2)
    half = np.diff(wide) / 2
    within = (fine - wide[panel]) / half[panel] - 1
    powers = np.polynomial.legendre.legvander(within, lumps - 1)
    values = weights * f(fine)
    starts = np.searchsorted(panel, np.arange(len(half)))
    nodes = legendre(lumps)[0]
    back = np.linalg.inv(np.polynomial.legendre.legvander(nodes, lumps - 1))
    sums = [
        (np.add.reduceat(each[:, None] * powers, starts) @ back).ravel()
        for each in (values, np.abs(values))
    ]
    places = (wide[:-1] + half)[:, None] + half[:, None] * nodes
    return places.ravel(), np.stack(sums)


def _moved(functions: tuple, cuts: tuple, law: Law) -> tuple[float, float]:
    """y = s x + w; the value and its relative error."""
    K, slope, rest = law
    f, g = functions
    deviation, spread = math.sqrt(K), math.sqrt(rest)
    end = _REACH * deviation

    def inner(u: np.ndarray, order: int) -> tuple[np.ndarray, np.ndarray]:
        found = np.empty((2, len(u)))
        step = max(1, _BLOCK // (order * (len(cuts[0]) + len(cuts[1]))))
        for start in range(0, len(u), step):
            w = spread * u[start : start + step, None]
            moved = np.clip((cuts[1] - w) / slope, -end, end)
            fixed = np.broadcast_to(cuts[0], (len(w), len(cuts[0])))
            x, weights = composite(np.sort(np.concatenate([fixed, moved], axis=1), axis=1), order)
            terms = weights * np.exp(-x * x / (2 * K)) * f(x) * g(slope * x + w)
            terms = np.where(weights == 0, 0.0, terms)
            found[:, start : start + step] = terms.sum(axis=1), np.abs(terms).sum(axis=1)
        return found * np.exp(-u * u / 2) / (2 * math.pi * deviation)

    allowed = _MOST_MOVED // (len(cuts[0]) + len(cuts[1]))
    meeting = _narrow(cuts[1])[:, None] - slope * _narrow(cuts[0])
    scale = min(np.diff(cuts[1]).min(), abs(slope) * np.diff(cuts[0]).min()) / spread
    places = (meeting / spread).ravel().tolist()
    outer = np.asarray(breakpoints(places, min(scale, 1.0), _REACH), dtype=float)
    return _outer(inner, outer, allowed)


def _outer(inner: Callable, cuts: np.ndarray, allowed: int) -> tuple[float, float]:
    """∫du of a function that gives its size as well, panels halved where that changes them."""

    def panels(left: np.ndarray, right: np.ndarray, order: int) -> np.ndarray:
        x, w = legendre(_ORDERS[1])
        half = (right - left)[:, None] / 2
        nodes = (left + right)[:, None] / 2 + half * x
        found = inner(nodes.ravel(), order).reshape(2, *nodes.shape)
        return (found * half * w).sum(axis=-1)

    left, right = cuts[:-1], cuts[1:]
    coarse, sizes = panels(left, right, _ORDERS[1])
    size = sizes.sum()
    value = error = 0.0
    for _ in range(_HALVINGS):
        middle = (left + right) / 2
        left, right = np.stack([left, middle]), np.stack([middle, right])
        fine = panels(left.ravel(), right.ravel(), _ORDERS[0])[0].reshape(2, -1)
        change = np.abs(fine.sum(axis=0) - coarse)
        good = change <= _SHARE * tolerance() * size
        value, error = value + fine[:, good].sum(), error + change[good].sum()
        left, right, coarse = (each[:, ~good].ravel() for each in (left, right, fine))
        if not len(left):
            return value, error / max(size, _TINY)
        if len(left) > allowed:
            break
    return value + coarse.sum(), math.inf


def _narrow(cuts: np.ndarray) -> np.ndarray:
    """Middles of the panels that are narrower than those on both sides of them."""
    widths = np.diff(cuts)
    changes = np.flatnonzero(np.abs(np.diff(widths)) > 0.1 * widths[1:]) + 1
    starts, ends = np.append(0, changes), np.append(changes, len(widths))
    runs = np.concatenate([[0.0], widths[starts], [0.0]])
    least = (runs[1:-1] < runs[:-2]) & (runs[1:-1] < runs[2:])
    return (cuts[starts] + cuts[ends])[least] / 2


@lru_cache(maxsize=64)
def _panels(f: Callable, deviation: float, kinks: tuple[float, ...]) -> np.ndarray:
    """Cuts between which a function is a polynomial, as far as a Gaussian sees it."""
    reach = _REACH * deviation
    inside = [k for k in kinks if abs(k) < reach]
    cuts = np.union1d(evenly(deviation, reach), [0.0, *inside])
    left, right = cuts[:-1], cuts[1:]
    done: list[np.ndarray] = [np.array([-reach, reach])]
    highest, look, before = 0.0, _LOOK, np.full(len(left), np.inf)
    for _ in range(_HALVINGS):
        error, size = _misfit(f, left, right, deviation, look)
        highest, look = max(highest, size), _LOOK_AGAIN
        rounding = (error > _SHRINKS * before) & (error <= _ROUNDING * highest)
        bad = ~(rounding | (error <= _UNRESOLVED * highest))
        before = np.tile(error[bad], 2)
        done += [left[~bad], right[~bad]]
        middle = (left + right)[bad] / 2
        left, right = np.append(left[bad], middle), np.append(middle, right[bad])
        if not len(left):
            break
        if len(left) > _MOST:
            raise QuadratureError(
                f"an average of two variables needs more than {_MOST} panels: a function is too "
                f"narrow or too wavy beside signals of the variance {deviation**2:.6g}"
            )
    return np.unique(np.concatenate([*done, left, right]))


def _misfit(
    f: Callable, left: np.ndarray, right: np.ndarray, deviation: float, look: int
) -> tuple[np.ndarray, float]:
    """How far a function is from the polynomials through its nodes, and its largest value.

    Both under the Gaussian.
    """
    nodes, inside, through = _through(look)
    middle, half = (left + right)[:, None] / 2, (right - left)[:, None] / 2
    at = middle + half * inside
    with np.errstate(all="ignore"):
        known, seen = f(middle + half * nodes), f(at)
        bell = np.exp(-((at / deviation) ** 2) / 2)
        error = np.abs((known @ through - seen) * bell).max(axis=1)
        return error, float(np.nanmax(np.abs(seen * bell)))


@lru_cache(maxsize=4)
def _through(look: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes on [−1, 1], points between them, and the matrix from values there to values here."""
    nodes = legendre(_DEGREE + 1)[0]
    inside = (2 * np.arange(look) + 1) / look - 1
    basis = np.polynomial.legendre.legvander(nodes, _DEGREE)
    return (
        nodes,
        inside,
        np.linalg.solve(basis.T, np.polynomial.legendre.legvander(inside, _DEGREE).T),
    )
