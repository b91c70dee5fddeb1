"""M(K) = ⟨φ²⟩ at small variances: what decides on the universality class of an activation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
import sympy as sp

from fieldtheory.networks.activations import Activation, h
from fieldtheory.numerics.infinite_width.layer_functions import layer_functions

_t = sp.Symbol("t", positive=True)
# Where M(K) is compared with its linear part if all coefficients of its expansion vanish, in units
# of the scale of φ.
_COMPARED = np.geomspace(1e-3, 1.0, 25)
_ROUNDING = 1e-11
_NEAR = sp.Rational(1, 10**250)


@dataclass(frozen=True)
class SmallVariance:
    """M(K) = A_2 (K + a_p K^p + ...) at K = 0, for an activation that vanishes at zero.

    Parameters
    ----------
    slopes : pair of sympy.Expr
        a_+ and a_−, the slopes of φ on either side of zero; A_2 = (a_+² + a_−²)/2.
    scale_invariant : bool
        Whether φ(h) = a_± h everywhere, so that M(K) = A_2 K.
    power : sympy.Expr
        p of the first term that does not vanish: 2, as PDLT-B (B.30) has it for smooth φ, or 3/2
        where φ' or φ'' jumps at zero; ∞ where all of them vanish.
    bend : sympy.Expr
        Its coefficient a_p; where p = ∞ its sign alone.
    """

    slopes: tuple[sp.Expr, sp.Expr]
    scale_invariant: bool
    power: sp.Expr
    bend: sp.Expr

    @property
    def second_moment(self) -> sp.Expr:
        """A_2 = (a_+² + a_−²)/2 = M'(0)."""
        return sp.simplify((self.slopes[0] ** 2 + self.slopes[1] ** 2) / 2)


@lru_cache(maxsize=64)
def small_variance(activation: Activation) -> SmallVariance:
    """The expansion of M(K) at K = 0.

        M(K) = A_2 K + (a_+ b_+ − a_− b_−) E|z|³ K^(3/2)
               + (1/2) [b_+² + b_−² + 2 a_+ c_+ + 2 a_− c_−] 3 K² + ...

    for φ(±t) = ±a_± t + b_± t² ± c_± t³ + ..., E|z|³ = 2 √(2/π).

    Examples
    --------
    >>> from fieldtheory.networks.activations import as_activation
    >>> found = small_variance(as_activation("tanh"))
    >>> found.second_moment, found.power, found.bend
    (1, 2, -2)
    >>> small_variance(as_activation("relu")).scale_invariant
    True
    """
    name, expression = activation.name, activation.expression
    value = activation(0)
    if abs(float(value)) > _ROUNDING:
        raise ValueError(f"φ(0) = {float(value):.6g} is not 0, so that K = 0 is no fixed point")
    if any(abs(complex(expression.subs(h, sign * _NEAR))) > _ROUNDING for sign in (1, -1)):
        raise ValueError("φ jumps at h = 0, so that K = 0 is no fixed point")
    sides = [_taylor(expression.subs(h, sign * _t), name) for sign in (1, -1)]
    (up, b_up, c_up), (down, b_down, c_down) = sides
    # Of φ(−t) the odd powers change sign.
    slopes = up, -down
    if slopes == (0, 0):
        raise ValueError("φ'(0) = 0, so that no weights preserve small signals")
    moment = (up**2 + down**2) / 2
    if _is_scale_invariant(activation, slopes):
        return SmallVariance(slopes, True, sp.S.Infinity, sp.S.Zero)
    cubic = 2 * sp.sqrt(2 / sp.pi) * (up * b_up + down * b_down)
    quartic = sp.Rational(3, 2) * (b_up**2 + b_down**2 + 2 * up * c_up + 2 * down * c_down)
    for power, coefficient in ((sp.Rational(3, 2), cubic), (sp.Integer(2), quartic)):
        bend = sp.simplify(coefficient / moment)
        if bend != 0:
            return SmallVariance(slopes, False, power, bend)
    # The sign of M(K) − A_2 K where it first differs from rounding.
    K = scale_of(activation) ** 2 * _COMPARED
    remainder = layer_functions(activation).second_moment(K) / (float(moment) * K) - 1
    (beyond,) = np.nonzero(np.abs(remainder) > _ROUNDING)
    sign = sp.Integer(int(np.sign(remainder[beyond[0]]))) if len(beyond) else sp.S.Zero
    return SmallVariance(slopes, False, sp.S.Infinity, sign)


@lru_cache(maxsize=64)
def scale_of(activation: Activation) -> float:
    """The distance from zero, a power of two, at which φ leaves its leading power; 1 if nowhere.

    Examples
    --------
    >>> from fieldtheory.networks.activations import as_activation
    >>> scale_of(as_activation("tanh")), scale_of(as_activation("tanh(1024*h)"))
    (1.0, 0.0009765625)
    """
    # Where the scale of φ is looked for, with digits enough for what cancels, and how far φ leaves
    # its leading power there.
    powers_of_two, digits, leaves = range(-40, 41), 60, 0.1
    import mpmath as mp

    phi, distances = sp.lambdify(h, activation.expression, "mpmath"), [np.inf]
    with mp.workdps(digits):
        for side in (1, -1):
            values = [phi(side * mp.mpf(2) ** power) for power in powers_of_two]
            steps = [after - before for before, after in pairwise(values)]
            ratios = [after / before if before else mp.inf for before, after in pairwise(steps)]
            for power, ratio in zip(powers_of_two, ratios, strict=False):
                if abs(ratio - ratios[0]) > leaves * abs(ratios[0]):
                    distances.append(2.0 ** (power + 2))
                    break
    return min(distances) if np.isfinite(min(distances)) else 1.0


def variances_around_scale(activation: Activation) -> np.ndarray:
    """Variances to search: 1e-4 to 1e4, both in units of the signals and of the scale of φ."""
    square = scale_of(activation) ** 2
    low, high = 1e-4 * min(1.0, square), 1e4 * max(1.0, square)
    return np.geomspace(low, high, 1 + round(20 * np.log10(high / low)))


def _taylor(side: sp.Expr, name: str) -> tuple[sp.Expr, ...]:
    """The coefficients of t, t², t³ of a function of t > 0 that vanishes at zero."""
    coefficients: list[sp.Expr] = []
    derivative = side
    # The coefficient of K² takes powers up to t³.
    for order in range(1, 4):
        derivative = derivative.diff(_t)
        value = derivative.subs(_t, 0)
        if not value.is_finite:
            value = sp.limit(derivative, _t, 0, "+")
        if not value.is_finite:
            raise ValueError(f"{name} has no derivative of order {order} on one side of h = 0")
        exact = sp.nsimplify(value, rational=True) if value.has(sp.Float) else sp.simplify(value)
        coefficients.append(exact / sp.factorial(order))
    return tuple(coefficients)


def _is_scale_invariant(activation: Activation, slopes: tuple[sp.Expr, sp.Expr]) -> bool:
    """Whether φ(t) = a_+ t and φ(−t) = −a_− t for every t > 0."""
    for sign, slope in zip((1, -1), slopes, strict=True):
        remainder = activation.expression.subs(h, sign * _t) - sign * slope * _t
        numbers = [abs(complex(remainder.subs(_t, t))) / t for t in (0.01, 0.7, 3.0, 40.0, 1e6)]
        if max(numbers) > _ROUNDING or sp.simplify(remainder) != 0:
            return False
    return True
