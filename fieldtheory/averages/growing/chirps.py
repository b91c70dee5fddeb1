"""Averages of two signals of powers times waves whose phases are quadratic, h sin(h²).

Such functions are Re Σ C h^m e^{αh + κh²}. With variances a and b, covariance t, d = ab − t²,

    Δ = 1 − 2aκ − 2bλ + 4κλd,   S_xx = (a − 2λd)/Δ,   S_yy = (b − 2κd)/Δ,   S_xy = t/Δ,

and μ = S (α, β), products are those of Gaussian signals of the means μ and the covariances S:

    ⟨x^m e^{αx + κx²} y^n e^{βy + λy²}⟩ = Δ^{-1/2} e^{(α, β)·μ/2} ⟨(x + μ_x)^m (y + μ_y)^n⟩_S.
"""

from __future__ import annotations

from functools import lru_cache
from math import comb, factorial
from typing import NamedTuple

import sympy as sp
from mpmath import mp

from fieldtheory.averages.growing.growing_waves import mean_power

_OF_EXPONENTIALS = sp.sin, sp.cos, sp.sinh, sp.cosh
_DIGITS = 60
# Variances of which single chirps are nothing, and Δ that tells them.
_FARTHEST, _SINGLE = mp.mpf(2) ** 118, mp.mpf(2) ** 100


class Chirp(NamedTuple):
    """C h^m e^{αh + κh²}."""

    power: int
    rate: mp.mpc
    bend: mp.mpc
    factor: mp.mpc


Chirps = tuple[Chirp, ...]


@lru_cache(maxsize=128)
def chirps_of(f: sp.Expr, h: sp.Symbol) -> Chirps | None:
    """The terms of f, complex ones with their conjugates; None if it has others, or growing ones.

    Examples
    --------
    >>> h = sp.Symbol("h", real=True)
    >>> [(c.power, complex(c.bend), complex(c.factor)) for c in chirps_of(h * sp.cos(h**2), h)]
    [(1, 1j, (0.5+0j)), (1, -1j, (0.5+0j))]
    >>> chirps_of(sp.tanh(h) * sp.sin(h**2), h) is None
    True
    """
    found: dict[tuple, sp.Expr] = {}
    for term in sp.Add.make_args(sp.expand(f)):
        exponentials = sp.expand(term.rewrite(_OF_EXPONENTIALS, sp.exp))
        for part in sp.Add.make_args(exponentials):
            parts = _parts(part, h)
            if parts is None:
                return None
            key, factor = parts
            found[key] = found.get(key, sp.S.Zero) + factor
    chirps = []
    with mp.workdps(_DIGITS):
        for (power, rate, bend), factor in found.items():
            alpha, kappa, C = (_number(part) for part in (rate, bend, factor))
            if kappa.real > 0 or (kappa.real == 0 and alpha.real != 0):
                return None
            if C:
                chirps.append(Chirp(power, alpha, kappa, C))
    return tuple(chirps)


def _parts(term: sp.Expr, h: sp.Symbol) -> tuple[tuple[int, sp.Expr, sp.Expr], sp.Expr] | None:
    """(m, α, κ) and C."""
    factor, power, exponent = sp.S.One, 0, sp.S.Zero
    for part in sp.Mul.make_args(term):
        base, raised = part.as_base_exp()
        if not part.has(h):
            factor *= part
        elif base == h and raised.is_Integer and raised > 0:
            power += int(raised)
        elif isinstance(part, sp.exp) and part.exp.is_polynomial(h):
            exponent += part.exp
        else:
            return None
    line = sp.Poly(sp.expand(exponent), h)
    if line.degree() > 2:
        return None
    bend, rate, offset = (line.coeff_monomial(h**k) for k in (2, 1, 0))
    return (power, rate, bend), factor * sp.exp(offset)


def _number(value: sp.Expr) -> mp.mpc:
    return mp.mpc(*(mp.mpf(part.evalf(_DIGITS)) for part in sp.expand(value).as_real_imag()))


def average(f: Chirps, g: Chirps, a: mp.mpf, b: mp.mpf, t: mp.mpf, d: mp.mpf) -> mp.mpf:
    """⟨f(x) g(y)⟩ of variances a and b, covariance t and d = ab − t² with its digits."""
    return sum((_product(x, y, a, b, t, d) for x in f for y in g), mp.zero)


def _product(x: Chirp, y: Chirp, a: mp.mpf, b: mp.mpf, t: mp.mpf, d: mp.mpf) -> mp.mpf:
    kappa, lam = x.bend, y.bend
    delta = 1 - 2 * a * kappa - 2 * b * lam + 4 * kappa * lam * d
    if min(a, b) > _FARTHEST and abs(delta) > _SINGLE:
        return mp.zero
    S = (a - 2 * lam * d) / delta, (b - 2 * kappa * d) / delta, t / delta
    means = x.rate * S[0] + y.rate * S[2], x.rate * S[2] + y.rate * S[1]
    exponent = (x.rate * means[0] + y.rate * means[1]) / 2
    size = x.factor * y.factor * mp.exp(exponent) / _root(delta, a * kappa + b * lam)
    return (size * _moment(x.power, y.power, means, S)).real


def _root(delta: mp.mpc, half: mp.mpc) -> mp.mpc:
    """√Δ as the product of the roots of its factors 1 − s, whose real parts are positive."""
    # Of the factors the sum is 2 − 2·half, and the product Δ.
    middle = 1 - half
    apart = mp.sqrt(middle**2 - delta)
    large = middle + apart if abs(middle + apart) >= abs(middle - apart) else middle - apart
    return mp.sqrt(large) * mp.sqrt(delta / large)


def _moment(
    m: int, n: int, means: tuple[mp.mpc, mp.mpc], S: tuple[mp.mpc, mp.mpc, mp.mpc]
) -> mp.mpc:
    """⟨(x + μ_x)^m (y + μ_y)^n⟩."""
    return sum(
        (
            comb(m, j)
            * comb(n, j)
            * factorial(j)
            * S[2] ** j
            * mean_power(m - j, means[0], S[0])
            * mean_power(n - j, means[1], S[1])
            for j in range(min(m, n) + 1)
        ),
        mp.mpc(0),
    )
