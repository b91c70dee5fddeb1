"""Averages of two wide, correlated signals in float64 by the logarithms of radius and of angle.

In units of their standard deviations two signals at the angle θ are r sin u and r sin(u + θ). Where
both have one sign 0 < u < π − θ, where they have two it is 0 < u < θ with sin(θ − u). With
r = e^ρ and u/(end − u) = e^w the integrand is analytic in strips along ρ and w if the functions
are, but for zero, in the logarithms of their arguments: sums over equidistant nodes converge
exponentially, as fast at K = 1e30 and 1 − c = 1e-14 as elsewhere. The error is told from three
spacings.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from fieldtheory.averages.errors import QuadratureError

# The spacing that finds the box, and those that integrate.
_COARSE, _SPACINGS = 1.0, (0.5, 0.3, 0.18, 0.11)
# Logarithms of the largest radius and of the smallest signals and angles.
_LARGEST, _LEAST = 2.4, 40.0
# Shares that are nothing, the largest error, how it falls with the spacing, and how at least.
_FAINT, _ERROR, _FALLS, _AT_LEAST = 1e-18, 3e-13, 1.6, 1.3
# What the integrand is at most where the box ends, relative to its largest value.
_AT_ENDS = 1e-14
_DIVERGES = "an average of two wide signals did not converge in the logarithms of their sizes"

Function = Callable[[np.ndarray], np.ndarray]


def average(f: Function, g: Function, K_xx: float, K_yy: float, away: float) -> float:
    """⟨f(x) g(y)⟩ of two signals, 1 − c = ``away``, c > 0.

    Raises
    ------
    QuadratureError
        If the sums do not converge.

    Examples
    --------
    >>> found = average(np.abs, np.abs, 1e30, 4e30, 1 - 0.6)
    >>> round(float(found / 2e30 * np.pi / 2 - 0.6 * np.arcsin(0.6)), 11)
    0.8
    """
    return _integral(np.multiply, f, g, (np.sqrt(K_xx), np.sqrt(K_yy)), away)


def half_square(f: Function, g: Function, K_xx: float, K_yy: float, away: float) -> float:
    """⟨(f(x) − g(y))²⟩/2, which keeps its digits where both hardly differ."""
    return _integral(_half_square, f, g, (np.sqrt(K_xx), np.sqrt(K_yy)), away)


def decorrelation(
    f: Function, norms: tuple[float, float], K_xx: float, K_yy: float, away: float
) -> float:
    """1 − ⟨f(x) f(y)⟩/(nm) of the norms n = √⟨f(x)²⟩ and m, with all its digits."""
    one, other = (partial(_over, norm, f) for norm in norms)
    return half_square(one, other, K_xx, K_yy, away)


def _over(norm: float, f: Function, signals: np.ndarray) -> np.ndarray:
    return f(signals) / norm


def _half_square(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (x - y) ** 2 / 2


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _integral(
    joined: Callable, f: Function, g: Function, sizes: tuple[float, float], away: float
) -> float:
    theta = 2 * np.arcsin(np.sqrt(away / 2))

    def of_sector(left: float, angle: float, sign: int) -> Callable:
        def terms(rho: np.ndarray, w: np.ndarray) -> np.ndarray:
            near, far = left / (1 + np.exp(-w)), left / (1 + np.exp(w))
            radius = np.exp(rho)[:, None]
            x, y = (
                radius * size * _sine(first, second, left, angle)
                for size, first, second in zip(sizes, (near, far), (far, near), strict=True)
            )
            both = joined(f(x), g(sign * y)) + joined(f(-x), g(-sign * y))
            return np.exp(2 * rho - np.exp(2 * rho) / 2)[:, None] * (near * far / left) * both

        return terms

    both_signs = (np.pi - theta, theta, 1), (theta, np.pi - theta, -1)
    sectors = [of_sector(*each) for each in both_signs if each[0] > 0]
    boxes = [_box(terms, max(*sizes, 1.0)) for terms in sectors]
    sums: list[float] = []
    changes: list[float] = []
    for spacing in _SPACINGS:
        found = [_sum(terms, box, spacing) for terms, box in zip(sectors, boxes, strict=True)]
        sums.append(sum(total for total, _ in found))
        size = sum(of_moduli for _, of_moduli in found)
        if size == 0:
            return 0.0
        if len(sums) > 1:
            changes.append(abs(sums[-1] - sums[-2]) / size)
        if len(changes) > 1 and _is_small(*changes[-2:]):
            return float(sums[-1] / (2 * np.pi))
    raise QuadratureError(_DIVERGES)


def _is_small(before: float, change: float) -> bool:
    """Whether the last change is far larger than the error, as it is of exponential convergence."""
    if change < _ERROR:
        return True
    return change**_FALLS < _ERROR and change < before**_AT_LEAST


def _sine(u: np.ndarray, rest: np.ndarray, left: float, angle: float) -> np.ndarray:
    """sin u, from π − u = angle + rest where that has more digits."""
    return np.where((u < left / 2) | (angle > left), np.sin(u), np.sin(angle + rest))


def _box(terms: Callable, size: float) -> np.ndarray:
    """The limits of ρ and w within which the integrand counts."""
    least = _LEAST + np.log(size)
    axes = np.append(np.arange(-least, _LARGEST, _COARSE), _LARGEST), np.arange(-least, least)
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


def _sum(terms: Callable, box: np.ndarray, spacing: float) -> tuple[float, float]:
    """The integral, and that of the modulus."""
    rho, w = (np.arange(low, high, spacing) for low, high in box)
    found = terms(rho[rho < _LARGEST], w)
    return float(found.sum() * spacing**2), float(np.abs(found).sum() * spacing**2)
