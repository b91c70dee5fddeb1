"""Numbers that float64 rounds: parameters keep them, for results of many digits."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import isfinite
from numbers import Rational, Real
from typing import Any

from mpmath.libmp import to_rational


class ExactFloat(float):
    """The float next to a rational number, which it keeps; equal to no other float.

    Parameters
    ----------
    exact : Fraction
        A number that float64 does not represent.

    Examples
    --------
    >>> third = ExactFloat(Fraction(1, 3))
    >>> third, 3 * third, third.exact, third == 1 / 3
    (1/3, 1.0, Fraction(1, 3), False)
    """

    exact: Fraction

    def __new__(cls, exact: Fraction) -> ExactFloat:
        """The float nearest to a fraction."""
        rounded = super().__new__(cls, exact)
        rounded.exact = exact
        return rounded

    def __reduce__(self) -> tuple[Any, ...]:
        return ExactFloat, (self.exact,)

    def __repr__(self) -> str:
        return str(self.exact)

    def __eq__(self, other: object) -> bool:
        return self.exact == (other.exact if isinstance(other, ExactFloat) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.exact)


def exact(value: float) -> Fraction:
    """The rational number that a parameter is; a float is the binary fraction that it holds.

    Examples
    --------
    >>> exact(0.25), exact(number("0.3")), exact(0.3) == Fraction(3, 10)
    (Fraction(1, 4), Fraction(3, 10), False)
    """
    return value.exact if isinstance(value, ExactFloat) else Fraction(value)


def number(value: Any) -> Any:
    """A float for any real number, an `ExactFloat` for one that it rounds; other values unchanged.

    Parameters
    ----------
    value : float, int, Fraction, Decimal, sympy.Rational, mpmath.mpf or str
        Text is a decimal number or a fraction.

    Examples
    --------
    >>> number(2), number("0.3"), number(Fraction(1, 4)), number("erf")
    (2.0, 3/10, 0.25, 'erf')
    """
    if isinstance(value, float | bool):
        return value if isinstance(value, ExactFloat | bool) else float(value)
    try:
        if isinstance(value, str | Decimal):
            exact = Fraction(value)
        elif isinstance(value, Rational):
            exact = Fraction(int(value.numerator), int(value.denominator))
        elif isinstance(value, Real) and hasattr(value, "_mpf_") and isfinite(value):
            exact = Fraction(*map(int, to_rational(value._mpf_)))
        else:
            return float(value) if isinstance(value, Real) else value
    except (ValueError, ZeroDivisionError, OverflowError):
        return value
    return float(exact) if exact == float(exact) else ExactFloat(exact)


def numbers(value: Any) -> Any:
    """A nested list or tuple with `number` of every entry.

    Examples
    --------
    >>> numbers([Fraction(1, 3), (0.5, 2)])
    [1/3, [0.5, 2.0]]
    """
    return [*map(numbers, value)] if isinstance(value, list | tuple) else number(value)
