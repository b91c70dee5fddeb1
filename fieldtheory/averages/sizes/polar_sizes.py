"""Averages of two wide, correlated signals in float64 by the logarithms of radius and of angle.

In units of their standard deviations two signals at the angle θ are r sin u and r sin(u + θ). Where
both have one sign 0 < u < π − θ, where they have two it is 0 < u < θ with sin(θ − u). With
r = e^ρ and u/(end − u) = e^w the integrand is analytic in strips along ρ and w if the functions
are, but for zero, in the logarithms of their arguments: sums over equidistant nodes converge
exponentially, as fast at K = 1e30 and 1 − c = 1e-14 as elsewhere. Signals far below 1, where
functions are as they are at zero, need few: w = a sinh(t/a), with nodes equidistant in t. The error
is told from two spacings.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from fieldtheory.averages.errors import QuadratureError

# The spacing that finds the box, and those of ρ and t that integrate: e^{-r²/2} is analytic for
# |Im ρ| < π/4, functions of one sign for |Im w| < π/2.
_COARSE, _SPACINGS = 1.0, ((0.19, 0.3), (0.13, 0.2), (0.09, 0.14), (0.06, 0.1))
# By how much w of the smallest signals that are seen exceeds their logarithm.
_BELOW = 3.0
# Logarithms of the largest radius and of the smallest signals and angles.
_LARGEST, _LEAST = 2.4, 90.0
# Larger signals, in standard deviations.
_RARE = np.linspace(np.exp(_LARGEST), 60.0, 100)
# Shares that are nothing, the largest error, and as which power it falls with the spacing.
_FAINT, _ERROR, _FALLS = 1e-18, 3e-14, 1.4
# Rounding of signals over √(1 − c), of which differences are.
_ROUNDED = 1e-15
# What the integrand is at most where the box ends, relative to its largest value.
_AT_ENDS = 1e-14
_CANCELS = "signals of one sign and of two cancel in an average of two wide signals"
_DIVERGES = "an average of two wide signals did not converge in the logarithms of their sizes"

Function = Callable[[np.ndarray], np.ndarray]


def average(
    f: Function, g: Function, K_xx: float, K_yy: float, away: float, share: float = 0.0
) -> float:
    """⟨f(x) g(y)⟩ of two signals, 1 − c = ``away``, c >= 0.

    Raises
    ------
    QuadratureError
        If the sums do not converge, or if it is a smaller ``share`` of the average of moduli.

    Examples
    --------
    >>> found = average(np.abs, np.abs, 1e30, 4e30, 1 - 0.6)
    >>> round(float(found / 2e30 * np.pi / 2 - 0.6 * np.arcsin(0.6)), 11)
    0.8
    """
    return _integral(np.multiply, f, g, (np.sqrt(K_xx), np.sqrt(K_yy)), away, share=share)


def half_square(f: Function, g: Function, K_xx: float, K_yy: float, away: float) -> float:
    """⟨(f(x) − g(y))²⟩/2, which keeps its digits where both hardly differ."""
    rounding = _ROUNDED / np.sqrt(away) if away else 0.0
    return _integral(_half_square, f, g, (np.sqrt(K_xx), np.sqrt(K_yy)), away, rounding)


def decorrelation(
    f: Function, norms: tuple[float, float], K_xx: float, K_yy: float, away: float
) -> float:
    """1 − ⟨f(x) f(y)⟩/(nm) of the norms n = √⟨f(x)²⟩ and m, with all its digits.

    Raises
    ------
    QuadratureError
        As `average`, or if a norm comes from signals that are too rare, as that of exp(h) at
        K_xx = 100: they count in squares, but not in the product with a smaller signal.
    """
    for norm, K in zip(norms, (K_xx, K_yy), strict=True):
        _require_usual_signals(f, norm, K)
    one = partial(_over, norms[0], f)
    other = one if norms[0] == norms[1] else partial(_over, norms[1], f)
    return half_square(one, other, K_xx, K_yy, away)


@np.errstate(over="ignore", invalid="ignore", under="ignore")
def _require_usual_signals(f: Function, norm: float, K: float) -> None:
    h = np.sqrt(K) * _RARE
    share = np.maximum(np.abs(f(h)), np.abs(f(-h))) / norm * np.exp(-(_RARE**2) / 4)
    if not (norm < np.inf and (share**2 < _AT_ENDS).all()):
        raise QuadratureError(_DIVERGES)


def _over(norm: float, f: Function, signals: np.ndarray) -> np.ndarray:
    return f(signals) / norm


def _half_square(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (x - y) ** 2 / 2


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _integral(
    joined: Callable,
    f: Function,
    g: Function,
    sizes: tuple[float, float],
    away: float,
    rounding: float = 0.0,
    share: float = 0.0,
) -> float:
    theta = 2 * np.arcsin(np.sqrt(away / 2))
    bend = np.log(max(*sizes, 1.0)) + _BELOW
    # Of one function of signals of one size both halves are the same.
    mirrored = f is g and sizes[0] == sizes[1]

    def of_sector(left: float, angle: float, sign: int) -> Callable:
        def terms(rho: np.ndarray, t: np.ndarray) -> np.ndarray:
            w = bend * np.sinh(t / bend)
            near, far = left / (1 + np.exp(-w)), left / (1 + np.exp(w))
            radius = np.exp(rho)[:, None]
            x, y = (
                radius * size * _sine(first, second, left, angle)
                for size, first, second in zip(sizes, (near, far), (far, near), strict=True)
            )
            both = joined(f(x), g(sign * y)) + joined(f(-x), g(-sign * y))
            measure = near * far / left * np.cosh(t / bend)
            return np.exp(2 * rho - np.exp(2 * rho) / 2)[:, None] * measure * both

        return terms

    both_signs = (np.pi - theta, theta, 1), (theta, np.pi - theta, -1)
    sectors = [of_sector(*each) for each in both_signs if each[0] > 0]
    boxes = [_box(terms, max(*sizes, 1.0), bend) for terms in sectors]
    before = np.inf
    for spacings in _SPACINGS:
        found = [
            _sum(terms, box, spacings, mirrored) for terms, box in zip(sectors, boxes, strict=True)
        ]
        total, size = (sum(part) for part in zip(*found, strict=True))
        if size == 0:
            return 0.0
        if abs(total) < share * size:
            raise QuadratureError(_CANCELS)
        change = abs(total - before) / size
        if change**_FALLS < _ERROR or change < rounding:
            return float(total / (2 * np.pi))
        before = total
    raise QuadratureError(_DIVERGES)


def _sine(u: np.ndarray, rest: np.ndarray, left: float, angle: float) -> np.ndarray:
    """sin u, from π − u = angle + rest where that has more digits."""
    return np.where((u < left / 2) | (angle > left), np.sin(u), np.sin(angle + rest))


def _box(terms: Callable, size: float, bend: float) -> np.ndarray:
    """The limits of ρ and t within which the integrand counts."""
    least = _LEAST + np.log(size)
    end = bend * np.arcsinh(least / bend)
    axes = tuple(
        np.linspace(low, high, int(np.ceil((high - low) / _COARSE)) + 1)
        for low, high in ((-least, _LARGEST), (-end, end))
    )
    share = np.abs(terms(*axes))
    top = share.max()
    # Functions that grow exponentially are largest farther out, or exceed float64.
    ends = share[0].max(), share[-1].max(), share[:, 0].max(), share[:, -1].max()
    if not np.isfinite(top) or max(ends) > _AT_ENDS * top:
        raise QuadratureError(_DIVERGES)
    box = []
    for number, axis in enumerate(axes):
        of_each = share.sum(axis=1 - number)
        (seen,) = np.nonzero(of_each > _FAINT * of_each.max())
        places = seen[[0, -1]] if len(seen) else np.array([0, 0])
        box.append(axis[places] + np.array([-2, 2]) * _COARSE)
    return np.array(box)


def _sum(
    terms: Callable, box: np.ndarray, spacings: tuple[float, float], mirrored: bool
) -> tuple[float, float]:
    """The integral, and that of the modulus."""
    rho, t = (np.arange(low, high, step) for (low, high), step in zip(box, spacings, strict=True))
    if mirrored:
        # Half a spacing beside the middle, of which both sides are alike.
        t = np.arange(spacings[1] / 2, max(-box[1, 0], box[1, 1]), spacings[1])
    found = terms(rho[rho < _LARGEST], t) * ((1 + mirrored) * spacings[0] * spacings[1])
    return float(found.sum()), float(np.abs(found).sum())
