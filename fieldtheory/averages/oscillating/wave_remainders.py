"""What is left of waves over wide signals where functions beside them bend.

With F̄ the mean of F over the phases of its waves (`waves`), and a window w that is 1 around the
kinks, poles and steps of what stands beside them and falls off smoothly, over many waves,

    ⟨F⟩ = ⟨F̄⟩ + ⟨w (F − F̄)⟩,

since waves under a smooth bell average out. The last average is an integral over the window,
whatever the variance; a wider window must not change it. For two signals and f = f̄ + u,

    ⟨f(x) g(y)⟩ = ⟨f̄ ḡ⟩ + ⟨w u(x) ḡ(y)⟩ + ⟨f̄(x) w v(y)⟩ + ⟨w u(x) w v(y)⟩,

where the signal within the window is small against its standard deviation: the averages are
series in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import sympy as sp
from mpmath import mp
from scipy.special import erf

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrals.quadrature import legendre
from fieldtheory.averages.integrals.vectorising import vectorised
from fieldtheory.averages.integrands.narrow import cuts_of
from fieldtheory.averages.oscillating.waves import WIDE, Steady, without_waves
from fieldtheory.averages.tolerance import tolerance

# Lengths of the slope of a window in inverse wave numbers, half of it in such lengths, how far
# functions bend beyond their last kink, and how much wider the second window is.
_SLOPE, _HALF, _BENDS, _WIDER = 13.0, 6.5, 20.0, 1.5
# Panels of a slope, their nodes, how small the last coefficients are, and the most halvings.
_PANELS, _ORDER, _RESOLVED, _HALVINGS, _MOST = 8, 24, 1e-12, 200, 2**16
# Variances, in those from which on waves have a mean, where the series of pairs converge.
_PAIRS_FROM, _TERMS, _FAINT = 50.0, 60, 1e-17
# The rounding of moments, relative to their integrals of moduli, and infinite variances.
_NOISE, _WIDEST = 3e-16, mp.mpf(10) ** 26

# ⟨f̄(√V z) He_n(z)⟩ as a function of V and n.
Projection = Callable[[mp.mpf, int], mp.mpf]


@dataclass(frozen=True, eq=False)
class Remainder:
    """F − F̄ at places of a window, times weights of their integral: those of two windows.

    Parameters
    ----------
    steady : Steady
        F̄.
    places : ndarray, shape (n,)
    weights : ndarray, shape (2, n)
    """

    steady: Steady
    places: np.ndarray
    weights: np.ndarray


@lru_cache(maxsize=128)
def remainder(F: sp.Expr, h: sp.Symbol) -> Remainder:
    """F − F̄ in two windows, none where waves stand beside polynomials and exponentials alone.

    Parameters
    ----------
    F : sympy.Expr
    h : sympy.Symbol

    Raises
    ------
    QuadratureError
        As `without_waves`, and if panels do not resolve F.

    Examples
    --------
    >>> h = sp.Symbol("h", real=True)
    >>> found = remainder(sp.tanh(h) * sp.sin(h), h)
    >>> np.allclose(found.weights.sum(axis=1), np.pi / np.sinh(np.pi / 2), rtol=1e-12)
    True
    """
    steady = without_waves(F, h)
    if steady.plain:
        return Remainder(steady, np.zeros(0), np.zeros((2, 0)))
    slope = _SLOPE * np.sqrt(steady.variance / WIDE)
    bends = max((abs(place) for place in centres_of(F, h)), default=0.0) + _BENDS
    widths = np.array([1.0, _WIDER]) * (_HALF * slope + bends)
    end = widths[1] + _HALF * slope
    panels = np.linspace(-end, end, 2 * int(np.ceil(end * _PANELS / slope)) + 1)
    if len(panels) > _MOST:
        raise QuadratureError(f"waves of {F} are too short beside where it bends")
    cuts = np.union1d(panels, cuts_of(F, h))
    full, mean = vectorised([h], F), vectorised([h], steady.function)
    with np.errstate(all="ignore"):
        places, weights = _resolved(lambda x: full(x) - mean(x) + np.zeros_like(x), cuts, F)
    window = (erf((places + widths[:, None]) / slope) - erf((places - widths[:, None]) / slope)) / 2
    return Remainder(steady, places, weights * window)


def centres_of(F: sp.Expr, h: sp.Symbol) -> set[float]:
    """Kinks, and what functions other than waves are centred at: 3 of exp(−(h − 3)²)."""
    found = set(cuts_of(F, h))
    for node in F.atoms(sp.Function, sp.Pow):
        u = node.args[0]
        if isinstance(node, sp.sin | sp.cos | sp.Piecewise) or not u.is_polynomial(h):
            continue
        if (degree := int(sp.degree(u, h)) if u.has(h) else 0) in (1, 2):
            highest, second = sp.Poly(u, h).all_coeffs()[:2]
            found.add(float(-second / highest / degree))
    return found


def _resolved(G: Callable, cuts: np.ndarray, F: sp.Expr) -> tuple[np.ndarray, np.ndarray]:
    """Nodes of panels that are halved until polynomials resolve them, and G times weights."""
    x, w = legendre(_ORDER)
    orders = np.arange(_ORDER)[-4:]
    to_last = (orders + 0.5) * w[:, None] * np.polynomial.legendre.legvander(x, _ORDER - 1)[:, -4:]
    left, right, found, largest, whole = cuts[:-1], cuts[1:], [], 0.0, 0.0
    for _ in range(_HALVINGS):
        half = (right - left)[:, None] / 2
        nodes = (left + right)[:, None] / 2 + half * x
        values = G(nodes)
        if not np.isfinite(values).all():
            break
        sizes = np.abs(values).max(axis=1)
        largest = max(largest, sizes.max())
        good = np.abs(values @ to_last).max(axis=1) <= _RESOLVED * (sizes + 0.01 * largest)
        # Of 1/√|h| nothing but the integral becomes small.
        shares = sizes * half[:, 0]
        whole = max(whole, shares.sum())
        good |= shares <= _FAINT * whole
        found.append((nodes[good].ravel(), (values * half * w)[good].ravel()))
        left, right = left[~good], right[~good]
        if not len(left):
            places, weights = (np.concatenate(each) for each in zip(*found, strict=True))
            return places, weights
        middle = (left + right) / 2
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
        if len(left) > _MOST:
            break
    raise QuadratureError(f"the waves of {F} are not resolved where it bends")


def moments(
    left: Remainder, variances: np.ndarray, power: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """∫ dh h^power w (F − F̄) e^{-h²/2K}, shape (2, ...), and the integral of its modulus.

    Parameters
    ----------
    left : Remainder
    variances : ndarray
        K, any shape.
    power : int
    """
    K = np.asarray(variances, dtype=float)[..., None]
    bell = np.exp(-(left.places**2) / 2 / K) * left.places**power
    sums = np.moveaxis(bell @ left.weights.T, -1, 0)
    return sums, np.abs(bell) @ np.abs(left.weights[1])


def settled(windows: np.ndarray, size: np.ndarray, F: sp.Expr) -> np.ndarray:
    """Averages of the wider window, where the other ones agree, relative to sizes."""
    change = np.abs(windows[1] - windows[0])
    if np.any(change > 0.1 * tolerance() * size):
        raise QuadratureError(
            f"the waves of {F} are not resolved: a wider window changes an average"
        )
    return windows[1]


def reaches(sides: tuple[Steady, Steady], K_xx: Any, K_yy: Any, c: Any, away: Any) -> Any:
    """Whether two signals are wide enough for `of_two`, as numbers or arrays.

    Parameters
    ----------
    sides : pair of Steady
    K_xx, K_yy, c, away : float, mpf or ndarray
        Variances, correlation c and 1 − |c|.
    """
    least = max(side.variance for side in sides)
    # Waves of x and y that move together are those of x − y, or x + y.
    x, y = K_xx**0.5, K_yy**0.5
    apart = (x - y) ** 2 + 2 * x * y * away
    wide = (K_xx >= least) & (K_yy >= least) & (apart >= least)
    if all(side.plain for side in sides):
        return wide
    within = away * (1 + abs(c))
    return wide & (K_xx * within >= _PAIRS_FROM * least) & (K_yy * within >= _PAIRS_FROM * least)


def of_two(
    left: tuple[Remainder, Remainder],
    projections: tuple[Projection, Projection],
    variances: tuple[mp.mpf, mp.mpf],
    c: float,
    away: float,
    steady: mp.mpf,
) -> mp.mpf:
    """⟨f(x) g(y)⟩ from ⟨f̄ ḡ⟩.

    Parameters
    ----------
    left : pair of Remainder
        Of f and g.
    projections : pair of callable
        (V, n) -> ⟨f̄(√V z) He_n(z)⟩ with Hermite polynomials of leading coefficient 1.
    variances : pair of mpf
    c, away : float
        Correlation and 1 − |c|.
    steady : mpf
        ⟨f̄(x) ḡ(y)⟩.

    Raises
    ------
    QuadratureError
        If a wider window changes the average, or a series does not converge.
    """
    if not any(len(each.places) for each in left):
        return steady
    s2 = mp.mpf(away) * (1 + abs(c))
    roots = [mp.sqrt(K) for K in variances]
    found = Sums(np.array([steady, steady]), abs(steady))
    for i, j in ((0, 1), (1, 0)):
        if len(left[i].places):
            # f̄ of the other signal, whose mean follows the one in the window.
            found = _with_series(
                found,
                lambda n, j=j: _same(projections[j](variances[j] * s2, n)),
                lambda n, i=i: _moment(left[i], variances[i], n),
                c / mp.sqrt(s2) / roots[i],
                mp.sqrt(2 * mp.pi) * roots[i],
            )
    if all(len(each.places) for each in left):
        found = _with_series(
            found,
            lambda n: _moment(left[0], variances[0] * s2, n),
            lambda n: _moment(left[1], variances[1] * s2, n),
            c / s2 / (roots[0] * roots[1]),
            2 * mp.pi * roots[0] * roots[1] * mp.sqrt(s2),
        )
    if abs(found.windows[1] - found.windows[0]) > 0.1 * tolerance() * found.size:
        raise QuadratureError("the waves of two signals are not resolved by a wider window")
    return found.windows[1]


class Sums(NamedTuple):
    """Numbers of both windows, shape (2,), and what errors are relative to."""

    windows: np.ndarray
    size: mp.mpf


def _same(value: mp.mpf) -> Sums:
    return Sums(np.array([value, value]), abs(value))


def _moment(left: Remainder, K: mp.mpf, power: int) -> Sums:
    """`moments` as numbers of mpmath; of signals so wide they do not depend on how wide."""
    return _limited_moment(left, min(K, _WIDEST), power)


@lru_cache(maxsize=4096)
def _limited_moment(left: Remainder, K: mp.mpf, power: int) -> Sums:
    """None where they are those of rounding.

    Of even and odd functions, and of h θ(h) sin(h), one is zero and the next one counts.
    """
    sums, size = moments(left, np.array(float(K)), power)
    seen = [mp.mpf(float(value) if abs(value) > _NOISE * size else 0) for value in sums]
    return Sums(np.array(seen), mp.mpf(float(size)))


def _with_series(
    found: Sums, first: Callable, second: Callable, ratio: mp.mpf, over: mp.mpf
) -> Sums:
    """Plus Σ_n ratio^n/n! a_n b_n/over, until nothing counts any more."""
    total, size, factor, faint = *found, 1 / over, 0
    for n in range(_TERMS):
        one, other = first(n), second(n)
        term = factor * one.windows * other.windows
        total = total + term
        size += abs(factor) * one.size * other.size
        # Every other term may vanish.
        faint = faint + 1 if max(abs(term)) <= _FAINT * max(abs(total)) else 0
        if faint == 2:
            return Sums(total, size)
        factor = factor * ratio / (n + 1)
    raise QuadratureError("signals are too narrow for what is left of their waves")
