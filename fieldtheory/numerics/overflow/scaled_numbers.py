"""Numbers beyond float64: mantissas with an exponent of their own, m 2^e."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from mpmath import mp

from fieldtheory.numerics.finite import ratio

# The exponent of zero; differences of exponents that count.
_ZERO, _COUNTS = -(2.0**62), 1100.0
# Exponents from here on leave float64.
_ENDLESS = 2**1023


class Scaled(NamedTuple):
    """m 2^e: mantissas of magnitude 1/2 to 1, or 0, and exponents, of one shape."""

    mantissa: np.ndarray
    exponent: np.ndarray

    @property
    def log(self) -> np.ndarray:
        """ln|m 2^e|, −∞ of zero."""
        m, e = np.abs(self.mantissa), self.exponent
        usual = np.abs(e) < 1000
        with np.errstate(divide="ignore"):
            inside = np.log(m * np.exp2(np.where(usual, e, 0)))
            return np.where(usual, inside, np.log(m) + e * np.log(2))


def scaled(values: np.ndarray, exponents: np.ndarray | float = 0.0) -> Scaled:
    """The numbers values 2^exponents."""
    mantissa, shift = np.frexp(values)
    return Scaled(mantissa, np.where(mantissa == 0, _ZERO, exponents + shift))


def of_numbers(values: np.ndarray) -> Scaled:
    """Numbers of mpmath, whose exponents may exceed float64: those are infinite; NaN stays NaN.

    Examples
    --------
    >>> of_numbers(np.array([mp.mpf(2) ** 5000, mp.inf, mp.zero], dtype=object)).log
    array([3465.73590...,          inf,         -inf])
    """
    one_by_one = np.frompyfunc(_mantissa_and_exponent, 1, 2)
    mantissa, exponent = (np.asarray(part, dtype=float) for part in one_by_one(values))
    return Scaled(mantissa, exponent)


def _mantissa_and_exponent(value: mp.mpf) -> tuple[float, float]:
    if not value:
        return 0.0, _ZERO
    if mp.isnan(value):
        return np.nan, 0.0
    sign = 0.5 if value > 0 else -0.5
    if not mp.isfinite(value) or mp.mag(value) > _ENDLESS:
        return sign, np.inf
    if mp.mag(value) < -_ENDLESS:
        return 0.0, _ZERO
    mantissa, exponent = mp.frexp(value)
    return float(mantissa), float(exponent)


def product(x: Scaled, y: Scaled) -> Scaled:
    """The products of two arrays."""
    # Exponents themselves may exceed float64.
    with np.errstate(over="ignore"):
        exponent = x.exponent + y.exponent
    return scaled(x.mantissa * y.mantissa, exponent)


def total(parts: Sequence[Scaled]) -> tuple[Scaled, np.ndarray]:
    """The sum of several arrays, and the share of each in it, 0 where the sum vanishes."""
    parts = [Scaled(*np.broadcast_arrays(*part)) for part in parts]
    largest = np.maximum.reduce(np.broadcast_arrays(*(part.exponent for part in parts)))
    with np.errstate(invalid="ignore"):
        # Infinite exponents are equal.
        gaps = [np.where(p.exponent == largest, 0.0, p.exponent - largest) for p in parts]
    terms = [
        part.mantissa * np.exp2(np.clip(gap, -_COUNTS, 0.0))
        for part, gap in zip(parts, gaps, strict=True)
    ]
    found = np.add.reduce(terms)
    # A ratio to what is not known is no zero, nor are shares of infinite sums known.
    unknown = np.where(np.isfinite(found), 0.0, np.nan)
    shares = [ratio(term + unknown, found) + unknown for term in terms]
    return scaled(found, largest), np.stack(shares)


def joined(*parts: Scaled) -> Scaled:
    """Arrays one behind the other along their first axis."""
    shapes = [part.mantissa.shape[1:] for part in parts]
    shape = np.broadcast_shapes(*shapes)
    columns = zip(*parts, strict=True)
    return Scaled(
        *(
            np.concatenate([np.broadcast_to(v, (len(v), *shape)) for v in column])
            for column in columns
        )
    )


def recursion(gains: Scaled, sources: Scaled) -> Scaled:
    """x^(0) = s^(0), x^(l) = g_l x^(l-1) + s^(l), shape (L + 2, ...).

    ``gains`` are those of l = 1, ..., L + 1.

    Examples
    --------
    >>> found = recursion(scaled(np.full(3, 2.0)), scaled(np.array([1.0, 0.0, 0.0, 3.0])))
    >>> found.mantissa * 2**found.exponent
    array([ 1.,  2.,  4., 11.])
    """
    found = [Scaled(*(part[0] for part in sources))]
    for *gain, mantissa, exponent in zip(
        *gains, sources.mantissa[1:], sources.exponent[1:], strict=True
    ):
        carried = product(Scaled(*gain), found[-1])
        found.append(total([carried, Scaled(mantissa, exponent)])[0])
    return Scaled(*(np.stack(part) for part in zip(*found, strict=True)))
