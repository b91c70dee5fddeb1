"""M(K) = ⟨φ²⟩ and its derivatives by K, for all variances at once."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrands.exact_differences import VANISHING
from fieldtheory.averages.quadrature.one_variable import coefficients_of, integrated
from fieldtheory.averages.quadrature.panelled_functions import Function
from fieldtheory.averages.quadrature.panels import nodes
from fieldtheory.averages.quadrature.two_variables import TOLERANCE
from fieldtheory.averages.routes import tolerance

# What exceeds this at the small variance that counts as zero diverges.
_DIVERGES = 1e17
# Widths of panels that are tried, each half of the one before; the last is 0.05 deviations.
_HALVINGS = 6
# M, K M' and K² M'' in Hermite coefficients of φ².
_SCALES = np.array([1, 1 / np.sqrt(2), np.sqrt(1.5)])


class Moments:
    """⟨ψ⟩ and its first two derivatives by K, for ψ >= 0, with errors relative to ⟨ψ⟩."""

    def __init__(self, square: Function) -> None:
        self.square, self.coefficients = square, coefficients_of(square, 4)

    def __call__(self, K: np.ndarray) -> np.ndarray:
        """The three of variances (m,), shape (3, m)."""
        usual = np.isfinite(K) & (K > 0)
        variances = K if usual.all() else np.where(usual, K, VANISHING)
        f, errors = self.coefficients(variances)
        # Tables have one error for variances between which ψ in the tail varies a hundredfold, and
        # panels are those of the larger side: the other one may oscillate.
        missed, halvings = _misses(f, errors), 0
        while missed.any() and halvings < _HALVINGS:
            for i in np.flatnonzero(missed):
                K_i, order = float(variances[i]), self.coefficients.order
                f[i], errors[i] = integrated(self.square, K_i, order, halvings)
            missed, halvings = _misses(f, errors), halvings + 1
        if missed.any():
            raise QuadratureError(
                f"an average of φ at the variance {variances[missed].min():.6g} misses the "
                f"relative error {asked():g}; activation must have finite ⟨φ²⟩, no poles, and "
                "vary on scales that panels resolve"
            )
        moments = (f[:, :5:2] * _SCALES).T / variances ** np.arange(3)[:, None]
        if usual.all():
            return moments
        zero = K == 0
        moments = np.where(np.isfinite(K), limits(moments, zero), np.nan)
        # Differences of small variances lose digits where ψ(0) is not zero, and in M''.
        some = slice(0 if self.at_zero[0] else 2, 3)
        moments[some, zero] = self.at_zero[some, None]
        return moments

    @cached_property
    def at_zero(self) -> np.ndarray:
        """The three for K → 0, from the even part of ψ in powers of |h|: c_0, c_2 and 6 c_4."""
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


def asked() -> float:
    """The tolerance that was asked for, as far as the engine promises it."""
    return max(tolerance(), TOLERANCE)


def _misses(f: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Whether M, M' or M'' misses what is asked, relative to itself or to M, shape (m,)."""
    allowed = asked() * np.maximum(np.abs(f[:, :5:2]), f[:, :1])
    return (errors[:, :5:2] > allowed).any(axis=1)


def limits(values: np.ndarray, vanishing: np.ndarray) -> np.ndarray:
    """Values at variances of zero, where they go as powers of it to zero or beyond all limits."""
    endless = vanishing & (np.abs(values) > _DIVERGES)
    with_infinities = np.where(endless, np.copysign(np.inf, values), values)
    return np.where(vanishing & (np.abs(values) < 1 / _DIVERGES), 0.0, with_infinities)
