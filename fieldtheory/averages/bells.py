"""Connected correlators of sums of bells c exp(−(x − m)²/(2s)) in closed form, however narrow.

Nodes chosen before the integrand is known miss a narrow bell, and ⟨FG⟩ − ⟨F⟩⟨G⟩ cancels for weak
correlations. Here the difference is taken for each pair of bells before anything is rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import sympy as sp

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrands.exact_differences import determinant
from fieldtheory.averages.tolerance import tolerance

# Part of the product of the variances below which the square of the covariance is small.
_WEAK = 0.1
_ROUNDING = 1.5 * float(np.finfo(float).eps)
_SMALLEST = 1e-290


class Bell(NamedTuple):
    """c exp(−(x − m)²/(2s)): its height c, centre m and squared width s."""

    height: float
    centre: float
    square: float


def bells_of(F: sp.Expr, x: sp.Symbol) -> list[Bell] | None:
    """The bells whose sum is F up to a constant, or None.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> bells_of(3 * sp.exp(-2 * (x - 1) ** 2) + 1, x)
    [Bell(height=3.0, centre=1.0, square=0.25)]
    >>> bells_of(x * sp.exp(-(x**2)), x) is None
    True
    """
    found = []
    for term in sp.Add.make_args(sp.expand(F, power_exp=False)):
        coefficient, rest = sp.powsimp(term).as_independent(x, as_Add=False)
        if rest == 1:
            continue
        if not isinstance(rest, sp.exp) or not coefficient.is_real:
            return None
        exponent = sp.expand(rest.args[0])
        if not exponent.is_polynomial(x) or sp.degree(exponent, x) != 2:
            return None
        second, first, constant = (exponent.coeff(x, power) for power in (2, 1, 0))
        if not (second.is_number and second.is_negative and first.is_real and constant.is_real):
            return None
        centre = -first / (2 * second)
        height = coefficient * sp.exp(constant + first * centre / 2)
        found.append(Bell(*(float(sp.N(v, 40)) for v in (height, centre, -1 / (2 * second)))))
    return found or None


def connected(
    first: Sequence[Bell], second: Sequence[Bell], K_xx: np.ndarray, K_yy: np.ndarray, c: np.ndarray
) -> np.ndarray:
    """⟨F(x);G(y)⟩ of two sums of bells, for arrays of (co)variances that broadcast.

    With P = K_xx + s_1, Q = K_yy + s_2 and D = PQ − K_xy² a pair of bells adds

        c_1 c_2 √(s_1 s_2) [exp(−E)/√D − exp(−E_0)/√(PQ)],
        E = (m_1² Q − 2 m_1 m_2 K_xy + m_2² P)/(2D),   E_0 = m_1²/(2P) + m_2²/(2Q).

    Raises
    ------
    QuadratureError
        Where what rounding leaves is more than the tolerance: where the terms cancel, or the
        exponents are large.

    Examples
    --------
    >>> one = [Bell(1.0, 0.0, 0.5)]
    >>> float(connected(one, one, 1.0, 1.0, 1.0)) - (5**-0.5 - 1 / 3) < 1e-15
    True
    """
    K_xx, K_yy, c = np.broadcast_arrays(*(np.asarray(k, dtype=float) for k in (K_xx, K_yy, c)))
    total, rounding = np.zeros(c.shape), np.zeros(c.shape)
    for one in first:
        for other in second:
            value, error = _pair(one, other, K_xx, K_yy, c)
            total, rounding = total + value, rounding + error
    lost = ~(rounding <= tolerance() * np.abs(total)) & (rounding > _SMALLEST)
    if lost.any():
        worst = np.max(rounding[lost] / np.maximum(np.abs(total[lost]), _SMALLEST))
        raise QuadratureError(
            f"a correlator of bells did not reach the relative tolerance {tolerance():g}: rounding "
            f"is {worst:.1e} of it; ask for a larger one (rtol=)"
        )
    return total


def _pair(
    one: Bell, other: Bell, K_xx: np.ndarray, K_yy: np.ndarray, c: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What a pair of bells adds, and its rounding."""
    (m, s), (n, r) = one[1:], other[1:]
    P, Q = K_xx + s, K_yy + r
    det = determinant(K_xx, K_yy, c)
    D = det + s * K_yy + r * K_xx + s * r
    # (m² K_yy − 2 m n c + n² K_xx) as a sum of positive terms.
    wide, of, to = np.where(
        K_xx >= K_yy, np.stack([K_xx, m + 0 * c, n + 0 * c]), np.stack([K_yy, n + 0 * c, m + 0 * c])
    )
    with np.errstate(all="ignore"):
        ratio = np.where(wide > 0, c / wide, 0.0)
        rest = np.where(wide > 0, det / wide, 0.0)
        form = wide * (to - ratio * of) ** 2 + rest * of**2
        E = (form + m**2 * r + n**2 * s) / (2 * D)
        E_0 = m**2 / (2 * P) + n**2 / (2 * Q)
        apart = np.exp(-E_0) / np.sqrt(P * Q)
        together = np.exp(-E) / np.sqrt(D)
        # E_0 − E and the logarithm of PQ/D, both of which vanish with the covariance.
        gain = c / D * (m * n - c / 2 * (m**2 / P + n**2 / Q))
        stretch = -np.log1p(-(c**2) / (P * Q)) / 2
        sizes = np.abs(c / D) * (abs(m * n) + np.abs(c) / 2 * (m**2 / P + n**2 / Q)) + stretch
        weak = c**2 < _WEAK * P * Q
        value = np.where(weak, apart * np.expm1(gain + stretch), together - apart)
        growth = np.exp(np.maximum(gain + stretch, 0.0))
        error = np.where(
            weak,
            apart * growth * sizes * _ROUNDING + np.abs(value) * E_0 * _ROUNDING,
            ((1 + E) * together + (1 + E_0) * apart) * _ROUNDING,
        )
    scale = one.height * other.height * np.sqrt(s * r)
    return scale * value, np.abs(scale) * error
