"""What δ-functions of two slopes add to ⟨f'f'⟩ of signals of any size.

Of f' = s + Σ_a j_a δ(h − a) with jumps j_a, two signals of the density p have

    ⟨f'(x) f'(y)⟩ = ⟨s(x) s(y)⟩ + Σ_ab j_a j_b p(a, b)
                    + Σ_a j_a (p_x(a) ⟨s(y)⟩_{x = a} + p_y(a) ⟨s(x)⟩_{y = a}).
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product

import sympy as sp
from mpmath import mp

from fieldtheory.averages.growing.beyond_float import about
from fieldtheory.averages.growing.logarithm_panels import DIGITS
from fieldtheory.averages.integrands.steps import jumps, slope_of_pieces

Variances = tuple[mp.mpf, mp.mpf]


@lru_cache(maxsize=64)
def jumps_of(f: sp.Expr, h: sp.Symbol) -> tuple[tuple[mp.mpf, mp.mpf], ...]:
    """Where f jumps, and by how much.

    Examples
    --------
    >>> h = sp.Symbol("h", real=True)
    >>> [tuple(map(float, each)) for each in jumps_of(sp.sign(h - 1) * sp.exp(h / 2) + abs(h), h)]
    [(1.0, 3.2974425414002564)]
    """
    with mp.workdps(DIGITS):
        found = [(a, above - below) for a, below, above in jumps(f, h)]
        numbers = [tuple(mp.mpf(v.evalf(DIGITS)) for v in each) for each in found]
        return tuple((a, jump) for a, jump in numbers if abs(jump) > mp.eps)


def of_slopes(
    f: sp.Expr, h: sp.Symbol, variances: Variances, correlation: mp.mpf, away: mp.mpf
) -> mp.mpf:
    """All but ⟨s(x) s(y)⟩, infinite where parallel signals jump together.

    Parameters
    ----------
    f : sympy.Expr
    h : sympy.Symbol
    variances : pair of mpf
        > 0.
    correlation, away : mpf
        c and 1 − |c|.

    Examples
    --------
    >>> h, K = sp.Symbol("h", real=True), mp.mpf(10) ** 300
    >>> mp.nstr(of_slopes(sp.sign(h), h, (K, K), mp.mpf(0.6), mp.mpf(0.4)) * K * mp.pi, 15)
    '2.5'
    """
    found, slope = jumps_of(f, h), slope_of_pieces(f, h)
    rest = away * (1 + abs(correlation))
    total = mp.zero
    for K, other in (variances, variances[::-1]):
        for a, jump in found:
            mean = correlation * a * mp.sqrt(other / K)
            given = about(slope, h, mean, other * rest)
            total += jump * mp.npdf(a, 0, mp.sqrt(K)) * given
    for (a, first), (b, second) in product(found, found):
        total += first * second * _density(a, b, variances, correlation, away)
    return total


def _density(
    a: mp.mpf, b: mp.mpf, variances: Variances, correlation: mp.mpf, away: mp.mpf
) -> mp.mpf:
    """p(a, b)."""
    x, y = (each / mp.sqrt(K) for each, K in zip((a, b), variances, strict=True))
    y = -y if correlation < 0 else y
    square, rest = (x - y) ** 2 + 2 * away * x * y, away * (1 + abs(correlation))
    if not rest:
        return mp.zero if square else mp.inf
    scale = 2 * mp.pi * mp.sqrt(variances[0] * variances[1] * rest)
    return mp.exp(-square / (2 * rest)) / scale
