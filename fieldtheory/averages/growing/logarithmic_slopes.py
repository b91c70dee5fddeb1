"""⟨φ'φ'⟩ of wide signals, of φ that grow as logarithms: φ' ~ 1/|h| has weight at all sizes.

Far out φ = α_o sgn(h) ln|h| + β_o sgn(h) + α_e ln|h| + β_e. With the moments of two normal signals

    ⟨sgn(x)|x|^p sgn(y)|y|^q⟩ = c m_{p+1} m_{q+1} 2F1((1−p)/2, (1−q)/2; 3/2; c²),
    ⟨|x|^p |y|^q⟩ = m_p m_q 2F1(−p/2, −q/2; 1/2; c²),   m_s = 2^(s/2) Γ((s+1)/2)/√π,

their derivatives by c, and then by p and q at zero,

    √(K_xx K_yy − K_xy²) ⟨φ'φ'⟩ = (2/π) [u_x u_y + (α_o²/2) arcsin² c] + α_e² arcsin c,
    u = α_o (ln √(K (1−c²)) + (ln 2 − γ)/2) + β_o,

up to powers of 1/√(K (1−c²)) times logarithms: what φ is near zero counts in φ(∞) − φ(−∞) alone.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import sympy as sp
from mpmath import mp

from fieldtheory.averages.growing.beyond_float import function_of
from fieldtheory.averages.integrands.steps import first_derivative

# Where φ is compared with logarithms, with how many digits, and how well they agree.
_PLACES, _DIGITS, _AGREES = (mp.mpf(10) ** 60, mp.mpf(10) ** 80, mp.mpf(10) ** 100), 60, 1e-40
# Variances K (1 − c²) from which on the logarithms are all, and 1 − c² that keeps its digits.
_WIDE, _APART = mp.mpf(10) ** 32, 1e-12


class Logarithms(NamedTuple):
    """What φ approaches far out: α_o, β_o and α_e."""

    odd: mp.mpf
    step: mp.mpf
    even: mp.mpf


def slope(f: sp.Expr, h: sp.Symbol, K_xx: mp.mpf, K_yy: mp.mpf, K_xy: mp.mpf) -> mp.mpf | None:
    """⟨f'(x) f'(y)⟩ of two wide signals; None of other functions and signals.

    Parameters
    ----------
    f : sympy.Expr
        Continuous.
    h : sympy.Symbol
    K_xx, K_yy, K_xy : mpf

    Examples
    --------
    >>> h, K = sp.Symbol("h", real=True), mp.mpf(10) ** 70
    >>> mp.nstr(slope(sp.asinh(h), h, K, K, mp.zero) * K, 6)
    '4212.17'
    >>> slope(sp.tanh(h) * h, h, K, K, mp.zero) is None
    True
    """
    with mp.extradps(15):
        apart = 1 - K_xy**2 / (K_xx * K_yy)
        if not (mp.isfinite(K_xx * K_yy) and apart > _APART and min(K_xx, K_yy) * apart > _WIDE):
            return None
        far = _logarithms(f, h)
        if far is None:
            return None
        angle = mp.asin(K_xy / mp.sqrt(K_xx * K_yy))
        mean = (mp.log(2) - mp.euler) / 2
        u = [far.odd * (mp.log(K * apart) / 2 + mean) + far.step for K in (K_xx, K_yy)]
        found = 2 / mp.pi * (u[0] * u[1] + (far.odd * angle) ** 2 / 2) + far.even**2 * angle
        return found / mp.sqrt(K_xx * K_yy * apart)


@lru_cache(maxsize=64)
def _logarithms(f: sp.Expr, h: sp.Symbol) -> Logarithms | None:
    if f.has(sp.sin, sp.cos) or first_derivative(f, h).has(sp.DiracDelta):
        return None
    function = function_of(f, h)
    sides = []
    with mp.workdps(_DIGITS):
        for sign in (1, -1):
            near, middle, far = (function(sign * place) for place in _PLACES)
            if not all(map(mp.isfinite, (near, middle, far))):
                return None
            rate = (far - near) / mp.log(_PLACES[2] / _PLACES[0])
            rest = far - rate * mp.log(_PLACES[2])
            if abs(rest + rate * mp.log(_PLACES[1]) - middle) > _AGREES * max(1, abs(far)):
                return None
            sides.append((rate, rest))
        (rate, rest), (rate_, rest_) = sides
        parts = (rate - rate_) / 2, (rest - rest_) / 2, (rate + rate_) / 2
        found = Logarithms(*(part if abs(part) > _AGREES else mp.zero for part in parts))
    return found if any(found) else None
