"""Panels and Hermite coefficients with mpmath, for averages and for solutions to many digits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count, islice, pairwise
from math import isqrt
from typing import Any, NamedTuple

import mpmath
import numpy as np
import sympy as sp

from fieldtheory.averages.integrands.breakpoints import break_points, has_steps, pieces_of


@dataclass(frozen=True)
class PreciseSettings:
    """Numbers that decide how averages, and series of all layers, get their digits."""

    # Digits beyond those asked for.
    guard: int = 8
    # Widest panel in standard deviations, over which the density falls by no more than e^falls.
    widest: int = 2
    falls: int = 28
    # Rules that are tried for an average.
    levels: int = 4
    # Largest |c| of its series, whose number of terms grows as 1/(1 − |c|).
    strong: float = 0.99
    # At most beyond it, for functions whose coefficients fall off by themselves.
    orders: int = 4096
    # The first of so many shares has to give that share of the digits.
    share: int = 8
    # Guard digits of cumulants whose moments cancel.
    cancelled: int = 200
    # Orders that are tried for the series of all layers.
    layer_orders: tuple[int, ...] = (256, 2048, 16384)
    # Of two of them.
    ratio: int = 8
    # After so many the remainder is looked at.
    every: int = 16
    # Digits by which rules that have to agree may differ.
    slack: int = 4
    # Variances of F relative to ⟨F⟩² that take more digits.
    small: float = 1e-4


PRECISE = PreciseSettings()


def number(value: Any) -> Any:
    """A number of SymPy, or any other, as an mpmath number of the current precision."""
    if isinstance(value, sp.Rational):
        return mpmath.mpf(value.p) / value.q
    if isinstance(value, sp.Basic):
        return sp.lambdify([], value, modules="mpmath")()
    return mpmath.mpf(value)


class Integrand(NamedTuple):
    """A function of one variable, its kinks and jumps, and the distance from zero where it begins.

    With kinks it is compiled by its pieces, as steps would cancel elsewhere.
    """

    function: Callable[[Any], Any]
    kinks: list[Any]
    start: Any

    @classmethod
    def of(cls, F: sp.Expr, variable: sp.Expr) -> Integrand:
        """From an expression."""
        kinks, start, F = kinks_and_start(F, variable)
        return cls(sp.lambdify([variable], F, modules="mpmath", cse=True), kinks, start)

    @property
    def is_even(self) -> bool:
        """Whether F(x) = F(−x) at points of every piece."""
        ends = sorted({mpmath.mpf(0), *map(abs, self.kinks)})
        pieces = [*pairwise(ends), (ends[-1], ends[-1] + 4)]
        points = [
            low + (high - low) * mpmath.sqrt(n) / 12
            for low, high in pieces
            for n in (2, 3, 5, 7, 11, 130)
        ]
        return all(self.function(x) == self.function(-x) for x in points)


def kinks_and_start(F: sp.Expr, variable: sp.Expr) -> tuple[list[Any], Any, sp.Expr]:
    """Kinks and jumps in a variable of several, |x| where F begins, and F by its pieces."""
    if not (has_steps(F) and F.has(variable)):
        return [], mpmath.mpf(0), F
    kinks = [number(cut) for cut in break_points(F, variable)]
    parts = pieces_of(F, variable)
    ends = [-mpmath.inf, *map(number, parts.points), mpmath.inf]
    pieces = zip(pairwise(ends), parts.branches, strict=True)
    start = min(max(low, -high, mpmath.mpf(0)) for (low, high), branch in pieces if branch != 0)
    return kinks, start, parts.expression


def rule_order(digits: int, level: int) -> int:
    """Of the rule on one panel."""
    return int((0.6 * digits + 10) * 1.3**level)


def reach_of(digits: int, level: int, start: Any = 0) -> Any:
    """End of the panels, in deviations, for a function that begins at a distance from zero."""
    reach = (mpmath.sqrt(2 * mpmath.log(10) * (digits + PRECISE.guard)) + 1) * mpmath.mpf(
        1.1
    ) ** level
    return mpmath.hypot(reach, start)


class HermiteCoefficients(NamedTuple):
    """Hermite coefficients of (F − ⟨F⟩)/√⟨F;F⟩ for several F or variances."""

    # ⟨F⟩ and ⟨F;F⟩.
    moments: list[tuple[Any, Any]]
    bits: int
    # (n, coefficients, what their squares leave of 1), as integers over 2^bits, for n = 1, 2, ...
    # or, if all F are even, n = 2, 4, ...
    rows: Iterator[tuple[int, np.ndarray, np.ndarray]]


def hermite_coefficients(
    parts: Sequence[tuple[Integrand, Any]], most: int, level: int
) -> HermiteCoefficients:
    """Coefficients of up to ``most`` orders, by rules of a level, to ``mpmath.mp.dps`` digits.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> series = hermite_coefficients([(Integrand.of(x**2 + 1, x), mpmath.mpf(1))], 4, 0)
    >>> [(round(float(mean), 9), round(float(own), 9)) for mean, own in series.moments]
    [(2.0, 2.0)]
    >>> [(n, round(value[0] / 2**series.bits, 9)) for n, value, _ in series.rows]
    [(2, 1.0), (4, 0.0)]
    """
    bits = int(3.33 * (mpmath.mp.dps + PRECISE.guard))
    stride = 2 if all(part.is_even for part, _ in parts) else 1
    has_kinks = any(any(part.kinks) for part, _ in parts)
    groups = [[part] for part in parts] if has_kinks else [parts]
    sides = [_on_shared_nodes(group, most, level, stride, bits) for group in groups]

    def rows() -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        # ⟨F;F⟩ and with it what is left have no more digits.
        least = int(mpmath.ldexp(mpmath.eps, bits))
        left = np.full(len(parts), 1 << bits, dtype=object)
        for k, row in enumerate(zip(*(values for _, values in sides), strict=True), 1):
            current = np.concatenate(row)
            left = left - (current**2 >> bits)
            yield k * stride, current, np.maximum(left, least)

    return HermiteCoefficients([each for moments, _ in sides for each in moments], bits, rows())


def _on_shared_nodes(
    parts: Sequence[tuple[Integrand, Any]], most: int, level: int, stride: int, bits: int
) -> tuple[list[tuple[Any, Any]], Iterator[np.ndarray]]:
    """⟨F⟩ and ⟨F;F⟩, and the coefficients of the orders stride, 2 stride, ..."""
    digits = mpmath.mp.dps
    reach = reach_of(2 * digits, level, max(part.start / root for part, root in parts))
    # Where h_n is the exponentially growing solution, errors grow as it does.
    high = int(3.33 * (digits + 2 * PRECISE.guard) + 0.37 * reach**2)
    kinks = {kink / root for part, root in parts for kink in part.kinks}
    cuts = panel_ends(kinks, min(1, 1 / max(root for _, root in parts)), reach)
    rule = composite(cuts, rule_order(digits, level) + isqrt(most))
    nodes = [(z, stride * w) for z, w in rule if z > 0 or stride == 1]
    weights = [w * mpmath.npdf(z) for z, w in nodes]
    # h_n is in the Hermite functions with a factor exp(−z²/4).
    growing = [w * mpmath.exp(z * z / 4) for (z, _), w in zip(nodes, weights, strict=True)]
    moments, terms = [], []
    for part, root in parts:
        mean, own, values = _centred(part.function, [root * z for z, _ in nodes], weights)
        moments.append((mean, own))
        terms.append(integers([v * w for v, w in zip(values, growing, strict=True)], bits))
    weighted = np.array(terms)
    functions = hermite_functions([z for z, _ in nodes], high)
    orders = islice(functions, stride, most + 1, stride)
    return moments, ((weighted @ (current >> (high - bits))) >> bits for current in orders)


def _centred(
    function: Callable[[Any], Any], points: list[Any], weights: list[Any]
) -> tuple[Any, Any, list[Any]]:
    """⟨F⟩, ⟨F;F⟩, and (F − ⟨F⟩)/√⟨F;F⟩ at the points."""
    extra = 0
    while True:
        with mpmath.workdps(mpmath.mp.dps + extra):
            values = list(map(function, points))
            mean = mpmath.fdot(weights, values) / mpmath.fsum(weights)
            values = [value - mean for value in values]
            own = mpmath.fsum(w * v * v for w, v in zip(weights, values, strict=True))
        if extra or not own < PRECISE.small * mean**2:
            break
        extra = int(mpmath.log10(mean**2 / own)) if own else mpmath.mp.dps
    scale = mpmath.sqrt(own) or mpmath.mpf(1)
    return mean, own, [value / scale for value in values]


def hermite_functions(z: Sequence[Any], bits: int) -> Iterator[np.ndarray]:
    """h_n(z) e^(−z²/4) for n = 0, 1, ..., as integers over 2^bits."""
    current = integers([mpmath.exp(-point * point / 4) for point in z], bits)
    points, previous, root_n = integers(z, bits), 0 * current, 0
    for n in count(1):
        yield current
        root_next = isqrt(n << 2 * bits)
        inverse = (1 << 2 * bits) // root_next
        step = (points * current - root_n * previous) >> bits
        current, previous, root_n = (step * inverse) >> bits, current, root_next


def integers(values: Sequence[Any], bits: int) -> np.ndarray:
    """Numbers over 2^bits."""
    return np.array([int(mpmath.ldexp(value, bits)) for value in values], dtype=object)


def panel_ends(kinks: Iterable[Any], scale: Any, reach: Any) -> list[Any]:
    """Ends of panels in [−reach, reach]: they double from the scale of f at zero and at kinks."""
    cuts = {-reach, reach}
    for centre in {mpmath.mpf(0), *kinks}:
        for sign in (1, -1):
            point, width = centre, scale
            while abs(point) < reach:
                cuts.add(point)
                point += sign * min(width, PRECISE.widest, PRECISE.falls / max(abs(point), 1))
                width = max(abs(point - centre), scale)
    return sorted(cuts)


def composite(cuts: list, order: int) -> list[tuple[Any, Any]]:
    """Nodes and weights of the Gauss-Legendre rule on every panel."""
    rule = []
    for left, right in pairwise(cuts):
        middle, half = (left + right) / 2, (right - left) / 2
        rule += [(middle + half * x, half * w) for x, w in legendre(order, mpmath.mp.prec)]
    return rule


@lru_cache(maxsize=32)
def legendre(order: int, precision: int) -> list[tuple[Any, Any]]:
    """Nodes and weights of the Gauss-Legendre rule on [−1, 1], by Newton's method."""
    with mpmath.workprec(precision + 20):
        rule = []
        for i in range(1, order + 1):
            x = mpmath.cos(mpmath.pi * (i - mpmath.mpf(1) / 4) / (order + mpmath.mpf(1) / 2))
            for _ in range(100):
                value, slope = _legendre_polynomial(order, x)
                x -= value / slope
                if abs(value / slope) < mpmath.mpf(2) ** (-precision - 8):
                    break
            slope = _legendre_polynomial(order, x)[1]
            rule.append((x, 2 / ((1 - x * x) * slope**2)))
    return rule


def _legendre_polynomial(order: int, x: Any) -> tuple[Any, Any]:
    previous, current = mpmath.mpf(1), x
    for k in range(2, order + 1):
        previous, current = current, ((2 * k - 1) * x * current - (k - 1) * previous) / k
    return current, order * (x * current - previous) / (x * x - 1)
