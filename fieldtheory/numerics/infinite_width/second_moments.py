"""M(K) = ⟨φ²⟩ and its derivatives by K, for all variances at once."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.quadrature.chebyshev_series import nodes, polynomials, transform
from fieldtheory.averages.quadrature.one_variable import Coefficients, integrated
from fieldtheory.averages.quadrature.panelled_functions import Function
from fieldtheory.averages.quadrature.two_variables import TOLERANCE
from fieldtheory.averages.tolerance import tolerance

# A variance of zero is the limit of small ones: this one, where what exceeds a bound diverges.
VANISHING, _DIVERGES = 1e-40, 1e17
# Chebyshev nodes of M(K) per factor of four of K, and the powers of four that float64 has.
_NODES, _POWERS = 28, 540
# Ranges of K without a series, and the factor by which averages vary in a range with one.
_UNKNOWN, _IN_TAIL, _VARIES = -2, -1, 1e4
# M, K M' and K² M'' in Hermite coefficients of φ².
_SCALES = np.array([1, 1 / np.sqrt(2), np.sqrt(1.5)])


class Moments:
    """⟨ψ⟩ and its first two derivatives by K, from Chebyshev series in ln K.

    They are analytic in the strip |Im ln K| < π/2, whatever ψ is. A series covers a factor of four
    and is made when it is asked for. Where ψ lies in the far tail of the Gaussian alone, so that
    averages vary by orders of magnitude, every variance is integrated.
    """

    def __init__(self, square: Function) -> None:
        self.square, self.coefficients = square, Coefficients(square, 4)
        self.places = np.full(2 * _POWERS, _UNKNOWN)
        # The last one stands for none.
        self.series = np.zeros((1, _NODES, 3))

    def __call__(self, K: np.ndarray) -> np.ndarray:
        """The three of variances (m,), shape (3, m)."""
        usual = np.isfinite(K) & (K > 0)
        variances = K if usual.all() else np.where(usual, K, VANISHING)
        logs = np.log(variances) / np.log(4.0)
        power = np.floor(logs).astype(int)
        place = self.places[power + _POWERS]
        if (place < 0).any():
            for each in np.unique(power[place == _UNKNOWN]):
                self._add(int(each))
            place = self.places[power + _POWERS]
        terms = polynomials(2 * (logs - power) - 1, _NODES)
        found = np.einsum("km,mkn->nm", terms, self.series[place])
        for i in np.flatnonzero(place == _IN_TAIL):
            f, error = integrated(self.square, float(variances[i]), 4)
            if error[0] > asked() * np.sqrt(f[-1]):
                raise QuadratureError(
                    f"an average at the variance {variances[i]:.6g} misses the relative error "
                    f"{asked():g}"
                )
            found[:, i] = f[:5:2] * _SCALES
        found[1] /= variances
        found[2] /= variances**2
        if usual.all():
            return found
        zero = K == 0
        found = np.where(np.isfinite(K), limits(found, zero), np.nan)
        # Differences of small variances lose digits where ψ(0) is not zero, and in M''.
        some = slice(0 if self.at_zero[0] else 2, 3)
        found[some, zero] = self.at_zero[some, None]
        return found

    @cached_property
    def at_zero(self) -> np.ndarray:
        """The three for K → 0, from the even part of ψ in powers of |h|: c_0, c_2 and 6 c_4.

        Odd powers |h| and |h|³ make the first or second derivative infinite.
        """
        kinks = np.abs(self.square.kinks[self.square.kinks != 0])
        reach = 0.1 * min([1.0, *kinks])
        h = reach * (1 + nodes(24)) / 2
        even = (self.square.value(h) + self.square.value(-h)) / 2 + 0 * h
        fit = np.polynomial.Chebyshev.fit(h, even, 8, domain=[0, reach])
        c = fit.convert(kind=np.polynomial.Polynomial, domain=[-1, 1], window=[-1, 1]).coef
        c = np.append(c, np.zeros(5))
        c[np.abs(c) * reach ** np.arange(len(c)) < 1e-9 * np.abs(even).max()] = 0.0
        infinite = np.array([0.0, c[1], c[3] or c[1]])
        endless = np.where(infinite != 0, np.copysign(np.inf, infinite), 0.0)
        return np.where(infinite != 0, endless, [c[0], c[2], 6 * c[4]])

    def _add(self, power: int) -> None:
        K = 4.0 ** (power + (nodes(_NODES) + 1) / 2)
        f, error = self.coefficients(K)
        size = np.sqrt(f[:, -1])
        if (error[:, 0] > asked() * size).any() or size.max() > _VARIES * size.min():
            self.places[power + _POWERS] = _IN_TAIL
            return
        series = transform(_NODES) @ (f[:, :5:2] * _SCALES)
        self.places[power + _POWERS] = len(self.series) - 1
        self.series = np.concatenate([self.series[:-1], series[None], self.series[-1:]])


def asked() -> float:
    """The tolerance that was asked for, as far as the engine promises it."""
    return max(tolerance(), TOLERANCE)


def limits(values: np.ndarray, vanishing: np.ndarray) -> np.ndarray:
    """Values at variances of zero, where they go as powers of it to zero or beyond all limits."""
    endless = vanishing & (np.abs(values) > _DIVERGES)
    found = np.where(endless, np.copysign(np.inf, values), values)
    return np.where(vanishing & (np.abs(values) < 1 / _DIVERGES), 0.0, found)
