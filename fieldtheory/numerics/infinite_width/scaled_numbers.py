"""Numbers beyond float64: mantissas with an exponent of their own, m 2^e."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fieldtheory.numerics.recursion import ratio

# The exponent of zero; differences of exponents that count.
_ZERO, _COUNTS = -(2.0**62), 1100.0


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


def product(x: Scaled, y: Scaled) -> Scaled:
    """The products of two arrays."""
    return scaled(x.mantissa * y.mantissa, x.exponent + y.exponent)


def total(parts: Sequence[Scaled]) -> tuple[Scaled, np.ndarray]:
    """The sum of several arrays, and the share of each in it, 0 where the sum vanishes."""
    parts = [Scaled(*np.broadcast_arrays(*part)) for part in parts]
    largest = np.maximum.reduce(np.broadcast_arrays(*(part.exponent for part in parts)))
    gaps = [part.exponent - largest for part in parts]
    terms = [
        part.mantissa * np.exp2(np.clip(gap, -_COUNTS, 0.0))
        for part, gap in zip(parts, gaps, strict=True)
    ]
    mantissa = np.add.reduce(terms)
    # Gains of parallel inputs where φ jumps are infinite.
    with np.errstate(invalid="ignore"):
        shares = [ratio(term, mantissa) for term in terms]
    return scaled(mantissa, largest), np.stack(shares)


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
    values = [Scaled(*(part[0] for part in sources))]
    for *gain, mantissa, exponent in zip(
        *gains, sources.mantissa[1:], sources.exponent[1:], strict=True
    ):
        carried = product(Scaled(*gain), values[-1])
        values.append(total([carried, Scaled(mantissa, exponent)])[0])
    return Scaled(*(np.stack(part) for part in zip(*values, strict=True)))
