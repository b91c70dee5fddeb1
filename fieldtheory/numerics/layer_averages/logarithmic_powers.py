"""Averages of wide signals of φ that grows as a power of its argument times logarithms.

Far out φ = |h|^p A(ln|h|) with a polynomial A on either side of zero, as h ln(1 + |h|) is. With
λ = ln √K and Gauss nodes ρ_i of ln z against z^{2p} e^{-z²/2}, of weights w_i,

    M = K^p Σ_i w_i [A_+(λ + ρ_i)² + A_-(λ + ρ_i)²];

and with those of ln r against r^{2p+1} e^{-r²/2}, the average of two signals at the angle θ is

    ⟨φφ⟩ = (K_xx K_yy)^{p/2} [Σ_± S(A_±, A_±, θ) + Σ_± S(A_±, A_∓, π − θ)],
    S(A, B, θ) = Σ_i w_i ∫_0^{π−θ} (s t)^p A(λ_x + ρ_i + ln s) B(λ_y + ρ_i + ln t) du

with s = sin u and t = sin(u + θ),
the arc-cosine kernel of degree p and its derivatives by degrees. φ' is such a function again. Of
nearly parallel signals ⟨φφ⟩ is that of parallel ones less an integral of ⟨φ'φ'⟩ sin θ over the
angle, by Price's theorem, so that no digits of 1 − c cancel; likewise of nearly opposite ones.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from math import comb
from typing import Any, NamedTuple

import numpy as np
import sympy as sp
from mpmath import mp

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.growing.beyond_float import function_of
from fieldtheory.averages.growing.jumps_beyond_float import jumps_of
from fieldtheory.averages.integrands.steps import first_derivative, slope_of_pieces
from fieldtheory.networks.activations import h
from fieldtheory.numerics.layer_averages.asymptotes import angle_of
from fieldtheory.numerics.layer_averages.powers import double_exponential, sector

# Where φ is compared with powers and logarithms, with how many digits, and how well they agree.
_PLACES, _DIGITS, _AGREES = tuple(mp.mpf(10) ** k for k in range(120, 300, 20)), 100, 1e-40
# Places that check the others, denominators of powers, and the largest power.
_CHECKS, _DENOMINATOR, _LARGEST = 2, 12, 50
# What is nothing beside averages, and octaves of signals at which it is looked at what is left.
_ROUNDING, _OCTAVES, _BEYOND = 1e-16, range(-40, 400), 4
# 1 − |c| below which signals are compared with parallel ones, |c| below which two terms of Hermite
# are all, and what correlations of two sides must exceed.
_NEAR, _WEAK, _OPPOSITE = 1e-3, 1e-4, 1e16
_RULE_DIGITS = 60


class Sides(NamedTuple):
    """|h|^power Σ_k up[k] ln^k|h| for h > 0, with ``down`` for h < 0."""

    power: Any
    up: tuple[Any, ...]
    down: tuple[Any, ...]

    @property
    def slope(self) -> Sides:
        """The derivative."""
        up, down = (self.raised(side) for side in (self.up, self.down))
        return Sides(self.power - 1, up, tuple(-a for a in down))

    def raised(self, side: tuple[Any, ...]) -> tuple[Any, ...]:
        """p A + A'."""
        return tuple(
            self.power * a + (k + 1) * (side[k + 1] if k + 1 < len(side) else 0)
            for k, a in enumerate(side)
        )

    def around(self, scale: mp.mpf) -> tuple[np.ndarray, np.ndarray, mp.mpf]:
        """A_±(ln scale + t) as polynomials of t over a size, and that size."""
        both = [_shifted(side, mp.log(scale)) for side in (self.up, self.down)]
        size = max(abs(a) for side in both for a in side)
        return *(np.array([float(a / size) for a in side]) for side in both), size


class LogarithmicPowers(NamedTuple):
    """φ, and its averages over signals of any size.

    Parameters
    ----------
    sides : Sides
    start : mpf
        The variance from which on nothing else counts.
    leans : bool
        Whether φ is large on one side only, and not zero on the other.
    jump : mpf
        By how much φ jumps, all jumps together.
    """

    sides: Sides
    start: mp.mpf
    leans: bool
    jump: mp.mpf

    def mean(self, K: mp.mpf) -> mp.mpf:
        """⟨φ⟩."""
        return _mean(self.sides.power, self.sides[1:], K)

    def mean_slope(self, K: mp.mpf) -> mp.mpf:
        """∂⟨φ⟩/∂K = ⟨h φ'⟩/2K."""
        raised = tuple(self.sides.raised(side) for side in self.sides[1:])
        return _mean(self.sides.power, raised, K) / (2 * K)

    def moment(self, K: mp.mpf) -> mp.mpf:
        """⟨φ²⟩."""
        return _parallel(self.sides, self.sides, K, K)

    def response(self, K: mp.mpf) -> mp.mpf:
        """M'."""
        up, down = (self.sides.raised(side) for side in self.sides[1:])
        return _parallel(self.sides, Sides(self.sides.power, up, down), K, K) / K

    def slope_square(self, K: mp.mpf) -> mp.mpf | None:
        """⟨φ'²⟩, None where it depends on small signals, or diverges."""
        slope = self.sides.slope
        if self.jump:
            return None
        return _parallel(slope, slope, K, K) if slope.power > -0.5 else None

    def covariance(self, K_xx: mp.mpf, K_yy: mp.mpf, K_xy: mp.mpf) -> mp.mpf | None:
        """⟨φφ⟩, None where small signals count."""
        root = mp.sqrt(K_xx * K_yy)
        away = float((root - abs(K_xy)) / root)
        small = self.sides.slope.power < -0.5
        if self._is_opposite(K_xx, K_yy, K_xy, away) or (small and away < _NEAR):
            return None
        if away >= _NEAR:
            return _average(self.sides, K_xx, K_yy, K_xy)
        if self._jumps_count(K_xx, K_yy, away):
            return None
        (angle,), (x, weights) = angle_of(np.array([away])), double_exponential()
        psi = angle * x
        slopes, size = _at_angles(self.sides.slope, K_xx, K_yy, psi, K_xy < 0)
        change = root * size * float(angle * ((weights * np.sin(psi)) @ slopes))
        parallel = _parallel(self.sides, self.sides, K_xx, K_yy, K_xy < 0)
        return parallel - change if K_xy > 0 else parallel + change

    def slope(self, K_xx: mp.mpf, K_yy: mp.mpf, K_xy: mp.mpf) -> mp.mpf | None:
        """⟨φ'φ'⟩, None where small signals count."""
        root, slope = mp.sqrt(K_xx * K_yy), self.sides.slope
        away = float((root - abs(K_xy)) / root)
        if slope.power < -0.5 or self._is_opposite(K_xx, K_yy, K_xy, away):
            return None
        if self._jumps_count(K_xx, K_yy, away):
            return None
        return _average(slope, K_xx, K_yy, K_xy)

    def _is_opposite(self, K_xx: mp.mpf, K_yy: mp.mpf, K_xy: mp.mpf, away: float) -> bool:
        """Whether what is large for one signal is so small for the other that the rest counts."""
        if not self.leans or K_xy >= 0:
            return False
        return bool(mp.sqrt(min(K_xx, K_yy)) * away ** (self.sides.power + 0.5) < _OPPOSITE)

    def _jumps_count(self, K_xx: mp.mpf, K_yy: mp.mpf, away: float) -> bool:
        """Whether δ-functions of φ' add to ⟨φ'φ'⟩; two at one place do as 1/sin θ."""
        if not self.jump:
            return False
        root = mp.sqrt(min(K_xx, K_yy))
        share = self.jump / (self.sides.around(root)[2] * root**self.sides.power)
        together = share**2 / mp.sqrt(away) if away else mp.inf
        return bool(max(share, together) > _ROUNDING)


def _average(sides: Sides, K_xx: mp.mpf, K_yy: mp.mpf, K_xy: mp.mpf) -> mp.mpf:
    """⟨f(x) f(y)⟩."""
    root = mp.sqrt(K_xx * K_yy)
    if abs(K_xy) >= _WEAK * root:
        away = np.array([float((root - abs(K_xy)) / root)])
        (value,), size = _at_angles(sides, K_xx, K_yy, angle_of(away), K_xy < 0)
        return mp.mpf(float(value)) * size
    p, up, down = sides
    even, odd = (
        tuple((a + sign * b) / 2 for a, b in zip(up, down, strict=True)) for sign in (1, -1)
    )
    found = mp.zero
    if any(even):
        angle = np.array([np.pi / 2 - np.arcsin(float(K_xy / root))])
        (value,), size = _at_angles(Sides(p, even, even), K_xx, K_yy, angle)
        found += mp.mpf(float(value)) * size
    if any(odd):
        (f, cubic), (g, other) = (_projections(p, odd, K) for K in (K_xx, K_yy))
        c = K_xy / root
        found += c * f * g + c**3 * cubic * other / 6
    return found


def _at_angles(
    sides: Sides, K_xx: mp.mpf, K_yy: mp.mpf, angles: np.ndarray, opposite: bool = False
) -> tuple[np.ndarray, mp.mpf]:
    """⟨f(x) f(y)⟩ at angles between the signals, or from the opposite ones, and its unit."""
    (*f, size), (*g, other) = (sides.around(mp.sqrt(K)) for K in (K_xx, K_yy))
    nodes, weights = _rule(2 * sides.power, 1.0, len(sides.up))
    rho = np.array(nodes, dtype=float)
    w = np.array(weights, dtype=float) / (4 * np.pi)

    def of_sides(turned: bool, angle: np.ndarray, left: np.ndarray) -> np.ndarray | float:
        pairs = [(f[i], g[i ^ turned]) for i in (0, 1)]
        pairs = [(one, two) for one, two in pairs if one.any() and two.any()]

        def factor(s: np.ndarray, t: np.ndarray) -> np.ndarray:
            s, t = s[..., None] + rho, t[..., None] + rho
            terms = (_at(f, s) * _at(g, t) + _at(f, t) * _at(g, s) for f, g in pairs)
            return sum(terms) @ w

        return sector(float(sides.power), angle, left, factor) if pairs else 0.0

    theta = angles, np.pi - angles
    same, other_side = theta[:: -1 if opposite else 1], theta[:: 1 if opposite else -1]
    scale = size * other * mp.sqrt(K_xx * K_yy) ** sides.power
    return of_sides(False, *same) + of_sides(True, *other_side) + 0 * angles, scale


def _at(coefficients: np.ndarray, t: np.ndarray) -> np.ndarray:
    return np.polynomial.polynomial.polyval(t, coefficients)


def _parallel(f: Sides, g: Sides, K_xx: mp.mpf, K_yy: mp.mpf, opposite: bool = False) -> mp.mpf:
    """⟨f(x) g(y)⟩ of signals y that are x, or −x, but for their size."""
    of_x, of_y = (
        [_shifted(side, mp.log(K) / 2) for side in each[1:]] for each, K in ((f, K_xx), (g, K_yy))
    )
    pairs = zip(of_x, reversed(of_y) if opposite else of_y, strict=True)
    nodes, weights = _rule(2 * f.power, 0.5, len(f.up))
    total = mp.fsum(
        w * _of(one, rho) * _of(two, rho)
        for one, two in pairs
        for rho, w in zip(nodes, weights, strict=True)
    )
    return total * mp.sqrt(K_xx * K_yy) ** f.power / mp.sqrt(mp.pi) / 2


def _mean(p: Any, sides: tuple[tuple[Any, ...], ...], K: mp.mpf) -> mp.mpf:
    """⟨f⟩ of |h|^p A_±(ln|h|)."""
    rule = tuple(zip(*_rule(p, 0.5, len(sides[0])), strict=True))
    shifted = [_shifted(side, mp.log(K) / 2) for side in sides]
    total = mp.fsum(w * _of(side, rho) for side in shifted for rho, w in rule)
    return total * mp.sqrt(K) ** p / mp.sqrt(mp.pi) / 2


def _projections(p: Any, side: tuple[Any, ...], K: mp.mpf) -> tuple[mp.mpf, mp.mpf]:
    """⟨f(√K z) He_n(z)⟩, n = 1 and 3, of the odd f that is |h|^p A(ln h) for h > 0."""
    shifted = _shifted(side, mp.log(K) / 2)
    first, third = (
        mp.fsum(w * _of(shifted, rho) for rho, w in zip(*_rule(p + n, 0.5, len(side)), strict=True))
        for n in (1, 3)
    )
    scale = mp.sqrt(K) ** p / mp.sqrt(mp.pi)
    return scale * first, scale * (third - 3 * first)


def _of(coefficients: tuple[Any, ...], t: mp.mpf) -> mp.mpf:
    return mp.polyval(coefficients[::-1], t)


def _shifted(side: tuple[Any, ...], by: mp.mpf) -> tuple[Any, ...]:
    """A(by + t) as a polynomial of t."""
    return tuple(
        sum(comb(m, k) * side[m] * by ** (m - k) for m in range(k, len(side)))
        for k in range(len(side))
    )


@lru_cache(maxsize=256)
def _rule(power: Any, half: float, count: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Gauss nodes of t and weights against d/dt of what has the moments 2^{s/2} Γ(s/2 + half).

    Those of e^{st}, at s = power: with half = 1/2 ⟨|z|^s⟩ √π of a normal z, and with half = 1
    ∫ r^{s+1} e^{-r²/2} dr.
    """
    with mp.workdps(_RULE_DIGITS):
        s = mp.mpf(power)
        # Moments from the derivatives of the logarithm.
        cumulants = [
            mp.psi(j, s / 2 + half) / mp.mpf(2) ** (j + 1) + (mp.log(2) / 2 if j == 0 else 0)
            for j in range(2 * count)
        ]
        moments = [mp.one]
        for j in range(2 * count):
            moments.append(sum(comb(j, k) * cumulants[k] * moments[j - k] for k in range(j + 1)))
        hankel = mp.matrix(count, count)
        for i in range(count):
            for j in range(count):
                hankel[i, j] = moments[i + j]
        monic = mp.lu_solve(hankel, mp.matrix([-moments[count + i] for i in range(count)]))
        nodes = mp.polyroots([1, *list(monic)[::-1]], maxsteps=200, extraprec=400)
        powers = mp.matrix([[node**i for node in nodes] for i in range(count)])
        weights = mp.lu_solve(powers, mp.matrix(moments[:count]))
        size = mp.mpf(2) ** (s / 2) * mp.gamma(s / 2 + half)
        return tuple(map(mp.re, nodes)), tuple(size * w for w in weights)


@lru_cache(maxsize=64)
def logarithmic_powers(f: sp.Expr) -> LogarithmicPowers | None:
    """A function of `activations.h` far out, None if it is no power times logarithms there.

    Examples
    --------
    >>> found = logarithmic_powers(sp.Max(0, h) * sp.log(1 + sp.Abs(h)))
    >>> mp.nstr(found.sides.power, 3), [mp.nstr(a, 3) for a in found.sides.up]
    ('1.0', ['0.0', '1.0'])
    >>> logarithmic_powers(sp.exp(h)) is None
    True
    """
    if f.has(sp.sin, sp.cos):
        return None
    with mp.workdps(_DIGITS), suppress(QuadratureError, ArithmeticError, ValueError):
        sides = _far_out(function_of(f, h))
        return None if sides is None else _from_where(f, sides)
    return None


def _far_out(function: Callable[[mp.mpf], mp.mpf]) -> Sides | None:
    values = [[function(sign * place) for place in _PLACES] for sign in (1, -1)]
    if not all(mp.isfinite(v) for side in values for v in side):
        return None
    larger = max(values, key=lambda side: abs(side[-1]))
    if not all(larger):
        return None
    # ln|φ| is about p t + n ln t + const.
    t, at = [mp.log(place) for place in _PLACES], [0, len(_PLACES) // 2, -1]
    rows = mp.matrix([[t[i], mp.log(t[i]), 1] for i in at])
    about = mp.lu_solve(rows, mp.matrix([mp.log(abs(larger[i])) for i in at]))[0]
    if not -1 < about < _LARGEST:
        return None
    nearest = Fraction(float(about)).limit_denominator(_DENOMINATOR)
    power = mp.mpf(nearest.numerator) / nearest.denominator
    over = [[v / place**power for v, place in zip(side, _PLACES, strict=True)] for side in values]
    size = max(abs(v) for side in over for v in side)
    found = [side for side in (_polynomial(t, v, size) for v in over) if side is not None]
    if len(found) < 2:
        return None
    count = max(len(side) for side in found)
    up, down = (side + (mp.zero,) * (count - len(side)) for side in found)
    return Sides(power, up, down) if count else None


def _polynomial(t: list[mp.mpf], values: list[mp.mpf], size: mp.mpf) -> tuple[mp.mpf, ...] | None:
    """The coefficients of a polynomial with these values, which are small against a size or not."""
    count = len(t) - _CHECKS
    rows = mp.matrix([[x**k for k in range(count)] for x in t[:count]])
    found = list(mp.lu_solve(rows, mp.matrix(values[:count])))
    found = [a if abs(a) * t[0] ** k > _AGREES * size else mp.zero for k, a in enumerate(found)]
    while found and not found[-1]:
        found.pop()
    rest = [v - mp.polyval(found[::-1], x) for x, v in zip(t, values, strict=True)]
    return tuple(found) if max(map(abs, rest)) < _AGREES * size else None


def _from_where(phi: sp.Expr, sides: Sides) -> LogarithmicPowers | None:
    """The variance from which on nothing counts but what φ', or φ, is far out."""
    if sides.slope.power >= -0.5:
        slope, far = slope_of_pieces(phi, h), sides.slope
        # Kinks that cancel leave no pieces.
        f = first_derivative(phi, h) if slope.has(sp.DiracDelta) else slope
    else:
        f, far = phi, sides
    jump = sum((abs(step) for _, step in jumps_of(phi, h)), mp.zero)
    function = function_of(f, h)
    places = [mp.mpf(2) ** k for k in _OCTAVES]
    size, rest = [], []
    for z in places:
        both = [z**far.power * _of(side, mp.log(z)) for side in far[1:]]
        size.append(max(map(abs, both)))
        rest.append(max(abs(function(s * z) - v) for s, v in zip((1, -1), both, strict=True)))
    of_small = any(function(-z if any(sides.up) else z) for z in places)
    leans = of_small and not (any(sides.up) and any(sides.down))
    for k, (root, usual) in enumerate(zip(places, size, strict=True)):
        # The share of signals of one size is that size over the standard deviation.
        left = (r * min(z / root, 1) for z, r in zip(places, rest[: k + _BEYOND], strict=False))
        if root > 1 and max(left) <= _ROUNDING * usual:
            return LogarithmicPowers(sides, root**2, leans, jump)
    return None
