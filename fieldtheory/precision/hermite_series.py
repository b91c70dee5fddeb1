"""Mehler's series of one function of the signals of many layers, in integers over a power of two.

The coefficients of a layer serve all its pairs. Layers share the nodes of their integrals where F
has no kinks but at zero, and then the Hermite functions on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from math import isqrt, log
from typing import Any, NamedTuple

import mpmath
import numpy as np
import sympy as sp

from fieldtheory.averages.errors import PrecisionError
from fieldtheory.averages.precise_rules import PRECISE, Integrand, hermite_coefficients
from fieldtheory.theory.elementary_averages import X


@dataclass(frozen=True)
class Sums:
    """⟨F;F⟩ of layers and its slopes."""

    # Of every layer with itself.
    own: list[Any]
    # For i < j, and derivatives by the variance of h_j; None where the series does not end.
    sums: tuple[np.ndarray, np.ndarray]

    @classmethod
    def none(cls, own: list[Any]) -> Sums:
        """No series at all."""
        empty = np.full((len(own), len(own)), None)
        return cls(own, (empty, empty))


class _Series(NamedTuple):
    """Orders, coefficients (layers, orders) over 2^bits, ⟨F;F⟩, and logarithms of remainders."""

    orders: np.ndarray
    values: np.ndarray
    bits: int
    own: list[Any]
    remainders: np.ndarray


def sums_of_layers(
    F: sp.Expr, variances: list[Any], chain: list[Any], most: int | None = None
) -> Sums:
    """⟨F(h_i) ; F(h_j)⟩ of a Markov chain of signals, and its derivatives by the later variance.

    >>> mpf = mpmath.mpf
    >>> found = sums_of_layers(X**2, [mpf(1), mpf(4)], [mpf(1) / 2])
    >>> [float(each[0, 1]) for each in found.sums]
    [2.0, 0.0]
    """
    digits = mpmath.mp.dps
    with mpmath.workdps(digits + PRECISE.guard):
        return _sums(Integrand.of(F, X), variances, chain, digits, most or PRECISE.layer_orders[-1])


def _sums(F: Integrand, variances: list[Any], chain: list[Any], digits: int, most: int) -> Sums:
    size, least = len(variances), -digits * np.log(10)
    steps = [float(mpmath.log(abs(c))) if c else -np.inf for c in chain]
    logs = np.array(
        [[sum(steps[i:j]) if i < j else -np.inf for j in range(size)] for i in range(size)]
    )
    attempts = _attempts(logs, digits, bool(F.kinks))
    attempts = sorted({min(order, most) for order in attempts})
    if len(attempts) > 1 and size > 2:
        # The widest signals take most orders; nodes for no more than these are cheaper.
        last = max(1, variances.index(max(variances)))
        pair = slice(last - 1, last + 1)
        series = _resolved(F, variances[pair], logs[pair, pair], attempts, least)
        orders = int(series.orders[-1]) + 2 * PRECISE.every
        attempts = [orders, *(most for most in attempts if most > orders)]
    series = _resolved(F, variances, logs, attempts, least)
    _require_agreement(F, variances, series, digits)
    both = _products(series, variances, chain)
    for each in both:
        each[series.remainders > least] = None
    return Sums(series.own, both)


def _resolved(
    F: Integrand, variances: list[Any], logs: np.ndarray, attempts: list[int], least: float
) -> _Series:
    """As many orders as leave a small remainder of every pair."""
    for most in attempts:
        series = _coefficients(F, variances, logs, most, least)
        # Remainders fall off no faster than as a power of the orders.
        largest = series.remainders.max()
        if largest <= least or largest * PRECISE.ratio > least:
            break
    return series


def _attempts(logs: np.ndarray, digits: int, has_kinks: bool) -> list[int]:
    """Numbers of orders to try; with kinks all that the correlations ask for."""
    last = PRECISE.layer_orders[-1]
    with np.errstate(divide="ignore"):
        needed = np.ceil((digits + PRECISE.guard) * np.log(10) / -logs) + 2
    if has_kinks:
        return [int(needed[needed <= last].max())]
    return [min(order, int(min(needed.max(), last))) for order in PRECISE.layer_orders]


def _coefficients(
    F: Integrand, variances: list[Any], logs: np.ndarray, most: int, least: float, level: int = 1
) -> _Series:
    """The coefficients of up to ``most`` orders, or as many as leave a small remainder."""
    parts = [(F, mpmath.sqrt(K)) for K in variances]
    moments, bits, series = hermite_coefficients(parts, most, level)

    def remainders(n: int, left: np.ndarray) -> np.ndarray:
        size = np.array([log(each) - bits * log(2) for each in left]) / 2 + log(n)
        return (n + 1) * logs + size[:, None] + size

    rows = []
    for n, values, left in series:
        rows.append(values)
        if len(rows) % PRECISE.every == 0 and remainders(n, left).max() <= least:
            break
    orders = n // len(rows) * np.arange(1, len(rows) + 1)
    own = [own for _, own in moments]
    return _Series(orders, np.array(rows).T, bits, own, remainders(n, left))


def _require_agreement(F: Integrand, variances: list[Any], series: _Series, digits: int) -> None:
    """Compare the widest and the narrowest signal with a rule of fewer nodes."""
    chosen = sorted({variances.index(min(variances)), variances.index(max(variances))})
    few, most = [variances[i] for i in chosen], int(series.orders[-1])
    fewer = _coefficients(F, few, np.zeros((1, 1)), most, -np.inf, level=0)
    change = abs(fewer.values - series.values[chosen]).max() / (1 << series.bits)
    if change > 10.0 ** (PRECISE.slack - digits):
        raise PrecisionError(
            f"Hermite coefficients of φ² change by {float(change):.1g} from one rule to the next"
        )


def _products(
    series: _Series, variances: list[Any], chain: list[Any]
) -> tuple[np.ndarray, np.ndarray]:
    """The two sums for all pairs i < j."""
    f, bits, n = series.values, series.bits, series.orders
    stride, size = int(n[0]), len(variances)
    shift = 2 // stride
    roots = [isqrt((int(k) + 1) * (int(k) + 2) << 2 * bits) for k in n]
    raised = np.zeros_like(f)
    raised[:, :-shift] = (f[:, shift:] * np.array(roots[:-shift], dtype=object)) >> bits
    sums = np.full((2, size, size), mpmath.mpf(0), dtype=object)
    earlier = f.copy()
    for j in range(1, size):
        c = int(mpmath.ldexp(chain[j - 1] ** stride, bits))
        powers = [*accumulate([c] * len(n), lambda power, each: power * each >> bits)]
        earlier[:j] = (earlier[:j] * np.array(powers, dtype=object)) >> bits
        for which, other in enumerate((f[j], raised[j])):
            for i, value in enumerate(earlier[:j] @ other):
                size_of_pair = mpmath.sqrt(series.own[i] * series.own[j])
                sums[which, i, j] = mpmath.ldexp(int(value), -2 * bits) * size_of_pair
        sums[1, :j, j] /= 2 * variances[j]
    return sums[0], sums[1]
