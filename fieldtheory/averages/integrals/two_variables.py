"""Averages of two Gaussian variables in float64 as two nested integrals, for many pairs at once.

With s = K_xy/K_xx and D = K_yy − s K_xy the second variable is y = s x + w, w independent of x with
the variance D. For weak correlation the outer integral is over x: what it sees of a kink in y is
smeared over at least its own width. For strong correlation the outer integral is over w, and the
inner one over x has panels that end at the kinks of both functions: it is smooth in w but where two
kinks meet, at w = κ_y − s κ_x, so that no correlation is too close to ±1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrals.panels import evenly, graded_cuts
from fieldtheory.averages.integrals.quadrature import average_1d, composite
from fieldtheory.averages.integrands.exact_differences import determinant
from fieldtheory.averages.tolerance import tolerance

# Exponents of the tails that have less digits, and their rounding.
_TAILS, _OF_EXPONENTS = 20.0, 256 * np.finfo(float).eps
# Correlation from which the outer integral is over what is independent of x.
_STRONG = 0.7
# Order, factor on the width of all panels, and reach, tried one after the other.
_STAGES = ((16, 1.0, 9.4), (22, 1.0, 9.8), (30, 0.5, 11.0), (36, 0.25, 13.0), (42, 0.125, 13.5))
# Nodes evaluated together, so that the work arrays stay in the cache.
_BLOCK = 1 << 14
# Pairs whose outer integrals are done together.
_TOGETHER = 64
# Widest panel, in standard deviations.
_WIDTH = 2.5
_TINY = float(np.finfo(float).tiny)

Kinks = Sequence[Sequence[float]]


def average_2d(
    f: Callable,
    K_xx: np.ndarray,
    K_yy: np.ndarray,
    K_xy: np.ndarray,
    kinks: Kinks = ((), ()),
) -> np.ndarray:
    """⟨f(x, y)⟩ over two Gaussian variables, for arrays of (co)variances that broadcast.

    Parameters
    ----------
    f : callable
        Vectorised integrand of x and y.
    K_xx, K_yy, K_xy : array_like
        Variances and covariance with K_xy² <= K_xx K_yy; equality is allowed.
    kinks : pair of sequences of float
        Where f is not smooth in x and in y.

    Returns
    -------
    ndarray, the broadcast shape

    Raises
    ------
    QuadratureError
        If two orders differ by more than a tenth of the tolerance (see `tolerance`) times the
        average of |f|, or a hundredth of its maximum under the Gaussian where that is larger.

    Examples
    --------
    >>> float(average_2d(np.multiply, 1.0, 2.0, 0.5).round(12))
    0.5
    """
    return _of_pairs(lambda x, y, _: f(x, y), K_xx, K_yy, K_xy, kinks)


def connected_2d(
    F: Callable,
    G: Callable,
    K_xx: np.ndarray,
    K_yy: np.ndarray,
    K_xy: np.ndarray,
    kinks: Kinks = ((), ()),
) -> np.ndarray:
    """⟨F(x);G(y)⟩ = ⟨(F−⟨F⟩)(G−⟨G⟩)⟩ for arrays of (co)variances that broadcast.

    Parameters, returns and errors are those of `average_2d`; F and G take one variable each. The
    means are subtracted under the integral, since ⟨FG⟩ and ⟨F⟩⟨G⟩ nearly cancel.
    """
    K_xx, K_yy, K_xy = np.broadcast_arrays(
        *(np.asarray(k, dtype=float) for k in (K_xx, K_yy, K_xy))
    )
    f, g = means(F, K_xx.ravel(), kinks[0]), means(G, K_yy.ravel(), kinks[1])

    def centred(x: np.ndarray, y: np.ndarray, index: np.ndarray) -> np.ndarray:
        return (F(x) - f[index, None]) * (G(y) - g[index, None])

    return _of_pairs(centred, K_xx, K_yy, K_xy, kinks)


def means(f: Callable, K: np.ndarray, kinks: Sequence[float] = ()) -> np.ndarray:
    """⟨f⟩ at every variance of an array, each different one evaluated once."""
    variances, index = np.unique(K.ravel(), return_inverse=True)
    return average_1d(f, variances, kinks)[index]


def connected_layers(
    f: Callable, K: np.ndarray, kinks: Sequence[float], scale: float = 1.0
) -> np.ndarray:
    """⟨f(x_k);f(x_l)⟩ of signals that add up, of variance K_k and covariance K_k for k <= l.

    With R_k(u) = ⟨(f(x_k) − ⟨f(x_k)⟩) f(x_k + u)⟩ an entry is the average of R_k over
    u ~ N(0, K_l − K_k), so that all entries of a row share one set of inner integrals.

    Parameters
    ----------
    f : callable
        Vectorised.
    K : ndarray, shape (n,)
        Variances > 0 that do not decrease.
    kinks : sequence of float
        Where f is not smooth.
    scale : float
        Distance over which f changes between them; infinite for polynomials.

    Returns
    -------
    ndarray, shape (n, n)
        Symmetric.

    Raises
    ------
    QuadratureError
        As `average_2d`.

    Examples
    --------
    >>> connected_layers(np.square, np.array([1.0, 3.0]), ()).round(12)
    array([[ 2.,  2.],
           [ 2., 18.]])
    """
    values = np.empty((len(K), len(K)))
    offsets = means(f, K, kinks)
    for k, variance in enumerate(K):

        def centred(x: np.ndarray, mean: float = offsets[k]) -> np.ndarray:
            return f(x) - mean

        values[k, k:] = values[k:, k] = _row(
            centred, float(variance), K[k:] - variance, kinks, scale
        )
    return values


def _row(
    f: Callable, K: float, steps: np.ndarray, kinks: Sequence[float], scale: float
) -> np.ndarray:
    """⟨f(x) f(x + u)⟩ for f without a mean at the variance K, u of several variances."""
    values = np.empty(len(steps))
    alone = steps <= 0
    values[alone] = average_1d(lambda x: f(x) ** 2, np.array(K), kinks)
    deviations = np.sqrt(steps[~alone])
    if not len(deviations):
        return values
    dev = np.sqrt(K)
    centres = np.array([0.0, *kinks])
    # Where two kinks meet the overlap has a kink; the Gaussian of u is narrowest around zero.
    meeting = np.setdiff1d(centres[:, None] - centres, [0.0]) / deviations.max()
    narrow = min(scale, dev)
    widths = np.array([narrow, min(narrow, deviations.min())]) / deviations.max()
    at_meeting, at_zero, level = _level(np.array([*1 / widths, dev / scale]))
    previous = None
    for stage in _STAGES:
        order, factor, reach = stage
        width = _WIDTH * factor
        cuts = [
            graded_cuts(meeting[None], at_meeting, width, reach),
            graded_cuts(np.zeros((1, 1)), at_zero, width, reach),
        ]
        nodes, weights = composite(_panels(np.concatenate(cuts, axis=1), width, reach), order)
        u, weights = deviations.max() * nodes[0], deviations.max() * weights[0]
        inner, size = _overlaps(f, dev, u, centres, level, stage)
        with np.errstate(under="ignore"):
            bells = np.exp(-((u / deviations[:, None]) ** 2) / 2) / deviations[:, None]
        value, size = bells @ (weights * inner), bells @ (weights * size)
        if previous is not None:
            error = np.abs(value - previous) - 0.1 * tolerance() * np.maximum(size, _TINY)
            if (error <= 0).all():
                values[~alone] = value / (2 * np.pi)
                return values
        previous = value
    raise QuadratureError(_complaint(error.max() / size.max()))


def _overlaps(
    f: Callable,
    dev: float,
    u: np.ndarray,
    centres: np.ndarray,
    level: int,
    stage: tuple[int, float, float],
) -> np.ndarray:
    """∫dz exp(−z²/2) f(x) f(x + u) with x = dev z, and the same of the modulus, shape (2, u)."""
    order, factor, reach = stage
    width = _WIDTH * factor
    found = np.empty((2, len(u)))
    fixed = graded_cuts(centres / dev, level, width, reach)
    count = order * (len(fixed) * 2 + 2 * reach / width)
    step = max(1, int(_BLOCK / count))
    for start in range(0, len(u), step):
        part = slice(start, start + step)
        moving = graded_cuts((centres - u[part, None]) / dev, level, width, reach)
        cuts = np.concatenate([moving, np.tile(fixed, (len(moving), 1))], axis=1)
        z, weights = composite(_panels(cuts, width, reach), order)
        x = dev * z
        terms = weights * np.exp(-z * z / 2) * f(x) * f(x + u[part, None])
        found[:, part] = terms.sum(axis=1), np.abs(terms).sum(axis=1)
    return found


def _of_pairs(
    f: Callable, K_xx: np.ndarray, K_yy: np.ndarray, K_xy: np.ndarray, kinks: Kinks
) -> np.ndarray:
    """⟨f(x, y, index)⟩; the index says which pairs the rows of x and y belong to."""
    K_xx, K_yy, K_xy = np.broadcast_arrays(
        *(np.asarray(k, dtype=float) for k in (K_xx, K_yy, K_xy))
    )
    a, b, c = (k.ravel() for k in (K_xx, K_yy, K_xy))
    values = np.empty(len(a))
    (still,) = np.nonzero((a == 0) & (b == 0))
    if len(still):
        nothing = np.zeros((len(still), 1))
        values[still] = np.ravel(f(nothing, nothing, still))
    rank_one = (a > 0) & (b > 0) & (determinant(a, b, c) == 0)
    for pair in np.flatnonzero(rank_one).tolist():
        values[pair] = _of_one(f, a[pair], c[pair] / a[pair], pair, kinks)
    moving = ((a > 0) | (b > 0)) & ~rank_one
    strong = np.abs(c) > _STRONG * np.sqrt(a * b)
    # The inner variable is the narrower one.
    wide_y = a < b
    for is_strong, is_wide in product((False, True), repeat=2):
        (index,) = np.nonzero(moving & (strong == is_strong) & (wide_y == is_wide))
        if len(index):
            x_first = is_strong == is_wide
            first, second = (a, b) if x_first else (b, a)
            function = f if x_first else _exchanged(f)
            order = kinks if x_first else (kinks[1], kinks[0])
            placed = _strong if is_strong else _weak
            place = placed(first[index], second[index], c[index], order)
            values[index] = _integrals(function, place, index)
    return values.reshape(K_xx.shape)


def _of_one(f: Callable, K: float, slope: float, pair: int, kinks: Kinks) -> float:
    """⟨f(x, s x)⟩, one variable in truth."""
    index = np.array([pair])
    cuts = sorted({*kinks[0], *(k / slope for k in kinks[1])})
    return float(average_1d(lambda x: f(x, slope * x, index), np.array(K), cuts))


def _exchanged(f: Callable) -> Callable:
    return lambda x, y, index: f(y, x, index)


class _Placement(NamedTuple):
    """Of many pairs: the standard normal outer and inner variables u, v, and where panels end.

    x = x_u u + x_v v and y = y_u u + y_v v. Panels are refined around the centres down to the
    width 2^-level: the outer ones, those of the inner variable that do not move, and those that
    do, as offset + slope u.
    """

    x: tuple[np.ndarray, np.ndarray]
    y: tuple[np.ndarray, np.ndarray]
    outer: np.ndarray
    fixed: np.ndarray
    moving: tuple[np.ndarray, np.ndarray]
    levels: np.ndarray


def _weak(a: np.ndarray, b: np.ndarray, c: np.ndarray, kinks: Kinks) -> _Placement:
    """x = √a u, y = s x + √D v."""
    dev, slope, spread = _conditional(a, b, c)
    centres_x, centres_y = (np.array([0.0, *k]) for k in kinks)
    none = np.zeros_like(dev)
    return _Placement(
        (dev, none),
        (slope * dev, spread),
        _ratio(centres_x, dev[:, None]),
        np.zeros((len(dev), 1)),
        (_ratio(centres_y, spread[:, None]), _ratio(-slope * dev, spread)[:, None]),
        np.stack([_level(dev), none.astype(int), _level(spread)], axis=1),
    )


def _strong(a: np.ndarray, b: np.ndarray, c: np.ndarray, kinks: Kinks) -> _Placement:
    """x = √a v, y = s x + √D u."""
    dev, slope, spread = _conditional(a, b, c)
    centres_x, centres_y = (np.array([0.0, *k]) for k in kinks)
    none = np.zeros_like(dev)
    meeting = (centres_y[:, None] - slope[:, None, None] * centres_x).reshape(len(dev), -1)
    return _Placement(
        (none, dev),
        (spread, slope * dev),
        _ratio(meeting, spread[:, None]),
        centres_x / dev[:, None],
        (centres_y / (slope * dev)[:, None], -(spread / (slope * dev))[:, None]),
        np.stack(
            [
                _level(spread / np.minimum(1.0, np.abs(slope))),
                _level(dev),
                _level(np.abs(slope) * dev),
            ],
            axis=1,
        ),
    )


def _conditional(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple:
    """√a, the slope of y given x and the standard deviation of the rest."""
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.where(a > 0, c / a, 0.0)
        rest = np.where(a > 0, determinant(a, b, c) / a, b)
    return np.sqrt(a), slope, np.sqrt(rest)


def _ratio(positions: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Positions in standard deviations, outside of every reach where these vanish."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(positions / deviation, nan=0.0, posinf=1e300, neginf=-1e300)


def _level(deviation: np.ndarray) -> np.ndarray:
    """Halvings of a panel of width one that resolve what changes over a distance of one."""
    return np.ceil(np.log2(np.maximum(deviation, 1.0))).astype(int)


def _integrals(f: Callable, place: _Placement, index: np.ndarray) -> np.ndarray:
    values = np.empty(len(index))
    kinds, kind_of = np.unique(place.levels, axis=0, return_inverse=True)
    for number, levels in enumerate(kinds):
        (left,) = np.nonzero(kind_of.ravel() == number)
        previous = None
        for stage in _STAGES:
            with np.errstate(all="ignore"):
                value, size = _rule(f, place, index, left, levels, stage)
            values[left] = value
            if previous is not None:
                with np.errstate(invalid="ignore"):
                    error = np.abs(value - previous) - _allowed(size) * size
                bad = ~(error <= 0)
                left, value = left[bad], value[bad]
                if not len(left):
                    break
            previous = value
        else:
            raise QuadratureError(_complaint((error / size)[bad].max()))
    return values


def _allowed(size: np.ndarray) -> np.ndarray:
    """The relative difference of two orders; tails have the rounding of their exponents."""
    exponents = -np.log(np.clip(size, np.finfo(float).tiny, 1.0))
    return 0.1 * tolerance() + _OF_EXPONENTS * np.maximum(exponents - _TAILS, 0.0)


def _rule(
    f: Callable,
    place: _Placement,
    index: np.ndarray,
    left: np.ndarray,
    levels: np.ndarray,
    stage: tuple[int, float, float],
) -> tuple[np.ndarray, np.ndarray]:
    """⟨f⟩ and the size that its error is measured by, of the pairs ``left`` in an index."""
    values, sizes = np.empty(len(left)), np.empty(len(left))
    order, factor, reach = stage
    width = _WIDTH * factor
    for start in range(0, len(left), _TOGETHER):
        part = slice(start, start + _TOGETHER)
        some = left[part]
        cuts = graded_cuts(place.outer[some], levels[0], width, reach)
        u, weights = composite(_panels(cuts, width, reach), order)
        weights = weights * np.exp(-u * u / 2) / (2 * np.pi)
        inner = _inner(f, place, index, some, u, levels[1:], stage)
        value, size, peak = (k.reshape(u.shape) for k in inner)
        values[part] = (weights * value).sum(axis=1)
        peak = (np.exp(-u * u / 2) * peak).max(axis=1)
        size = (weights * size).sum(axis=1)
        sizes[part] = np.maximum(np.maximum(size, 0.01 * peak), _TINY)
    return values, sizes


def _inner(
    f: Callable,
    place: _Placement,
    index: np.ndarray,
    some: np.ndarray,
    u: np.ndarray,
    levels: np.ndarray,
    stage: tuple[int, float, float],
) -> np.ndarray:
    """∫dv exp(−v²/2) f, the same of |f|, and the peak of the integrand, for all u; (3, u.size)."""
    order, factor, reach = stage
    width = _WIDTH * factor
    pair, u = np.repeat(some, u.shape[1]), u.ravel()
    found = np.zeros((3, len(u)))
    # The farther out, the less of the inner Gaussian counts.
    rows = np.argsort(np.abs(u))
    panels = 2 * reach / width + 2 * (1 + levels) @ np.array(
        [place.fixed.shape[1], place.moving[0].shape[1]]
    )
    step = max(1, int(_BLOCK / (order * panels)))
    for start in range(0, len(rows), step):
        row = rows[start : start + step]
        at, of, outer = pair[row], index[pair[row]], u[row, None]
        rest = np.sqrt(max(reach**2 - u[row[0]] ** 2, 1.0))
        centres = place.moving[0][at] + place.moving[1][at] * outer
        moving = graded_cuts(centres, levels[1], width, rest)
        fixed = graded_cuts(place.fixed[at], levels[0], width, rest)
        cuts = _panels(np.concatenate([moving, fixed], axis=1), width, rest)
        v, weights = composite(cuts, order)
        (x_u, x_v), (y_u, y_v) = ([k[at, None] for k in pair] for pair in (place.x, place.y))
        terms = f(x_u * outer + x_v * v, y_u * outer + y_v * v, of)
        terms = terms * np.exp(-v * v / 2)
        found[0, row] = np.einsum("ij,ij->i", weights, terms)
        np.abs(terms, out=terms)
        found[1, row] = np.einsum("ij,ij->i", weights, terms)
        found[2, row] = terms.max(axis=1)
    return found


def _panels(cuts: np.ndarray, width: float, reach: float) -> np.ndarray:
    """The cuts of every row and even ones, sorted."""
    even = evenly(width, reach)
    return np.sort(np.concatenate([cuts, np.tile(even, (len(cuts), 1))], axis=1), axis=1)


def _complaint(error: float) -> str:
    return (
        f"an average of two variables did not reach the relative tolerance {tolerance():g}: two "
        f"orders differ by {error:.1e}; ask for a larger one (rtol=)"
    )
