"""Mehler's series of one function of the signals of many layers, in integers over a power of two.

The coefficients of a layer serve all its pairs. Layers share the nodes of their integrals where F
has no kinks but at zero, and then the Hermite functions on them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate, islice
from math import isqrt
from typing import Any, NamedTuple

import mpmath
import numpy as np
import sympy as sp

from fieldtheory.averages import precise_rules as rules
from fieldtheory.averages.errors import PrecisionError
from fieldtheory.theory.elementary_averages import X


@dataclass(frozen=True)
class SeriesSettings:
    """Numbers that decide how many orders a series has.

    Parameters
    ----------
    orders : tuple
        Orders that are tried.
    ratio : int
        Of two of them.
    every : int
        After so many the remainder is looked at.
    guard : int
        Digits beyond those asked for.
    slack : int
        Digits by which rules that have to agree may differ.
    small : float
        Variances of F relative to ⟨F⟩² that take more digits.
    """

    orders: tuple[int, ...] = (256, 2048, 16384)
    ratio: int = 8
    every: int = 16
    guard: int = 8
    slack: int = 4
    small: float = 1e-4


_SERIES = SeriesSettings()


@dataclass(frozen=True)
class Sums:
    """⟨F;F⟩ of layers and its slopes.

    Parameters
    ----------
    own : list of mpf
        ⟨F;F⟩ of every layer with itself.
    sums : pair of ndarrays of mpf, shape (m, m)
        For i < j ⟨F(h_i) ; F(h_j)⟩ and its derivative by the variance of h_j; None where the
        series does not end.
    """

    own: list[Any]
    sums: tuple[np.ndarray, np.ndarray]

    @classmethod
    def none(cls, own: list[Any]) -> Sums:
        """No series at all."""
        empty = np.full((len(own), len(own)), None)
        return cls(own, (empty, empty))


class Coefficients(NamedTuple):
    """Hermite coefficients of (F − ⟨F⟩)/√⟨F;F⟩ for several variances, in integers over 2^bits.

    Parameters
    ----------
    own : list of mpf, length m
        ⟨F;F⟩.
    orders : ndarray of int, shape (n,)
        1, 2, ... or, for even F, 2, 4, ...
    values : ndarray of int, shape (m, n)
    remainders : ndarray, shape (m,)
        What the squares leave of 1.
    bits : int
    """

    own: list[Any]
    orders: np.ndarray
    values: np.ndarray
    remainders: np.ndarray
    bits: int


class _Integrand(NamedTuple):
    function: Callable[[Any], Any]
    kinks: list[Any]
    start: Any
    is_even: bool


def sums_of_layers(
    F: sp.Expr, variances: list[Any], chain: list[Any], most: int | None = None
) -> Sums:
    """⟨F(h_i) ; F(h_j)⟩ of a Markov chain of signals, and its derivatives by the later variance.

    Parameters
    ----------
    F : sympy.Expr
        In ``X``.
    variances : list of mpf, length m
    chain : list of mpf, length m − 1
        The correlations of successive signals, below 1.
    most : int, optional
        Orders after which a series counts as one that does not end.

    Raises
    ------
    PrecisionError
        If the coefficients by fewer nodes differ.

    Examples
    --------
    >>> mpf = mpmath.mpf
    >>> found = sums_of_layers(X**2, [mpf(1), mpf(4)], [mpf(1) / 2])
    >>> [float(each[0, 1]) for each in found.sums]
    [2.0, 0.0]
    """
    digits = mpmath.mp.dps
    with mpmath.workdps(digits + _SERIES.guard):
        return _sums(_integrand(F), variances, chain, digits, most or _SERIES.orders[-1])


def _sums(
    integrand: _Integrand, variances: list[Any], chain: list[Any], digits: int, most: int
) -> Sums:
    size, least = len(variances), -digits * np.log(10)
    steps = [float(mpmath.log(abs(c))) if c else -np.inf for c in chain]
    logs = np.array(
        [[sum(steps[i:j]) if i < j else -np.inf for j in range(size)] for i in range(size)]
    )
    attempts = _attempts(logs, digits, bool(integrand.kinks))
    attempts = sorted({min(order, most) for order in attempts})
    if len(attempts) > 1 and size > 2:
        # The widest signals take most orders; nodes for no more than these are cheaper.
        last = max(1, variances.index(max(variances)))
        pair = slice(last - 1, last + 1)
        series, _ = _resolved(integrand, variances[pair], logs[pair, pair], attempts, least)
        orders = int(series.orders[-1]) + 2 * _SERIES.every
        attempts = [orders, *(most for most in attempts if most > orders)]
    series, remainders = _resolved(integrand, variances, logs, attempts, least)
    _require_agreement(integrand, variances, series, digits)
    both = _products(series, variances, chain)
    for each in both:
        each[remainders > least] = None
    return Sums(series.own, both)


def _resolved(
    integrand: _Integrand, variances: list[Any], logs: np.ndarray, attempts: list[int], least: float
) -> tuple[Coefficients, np.ndarray]:
    """As many orders as leave a small remainder of every pair, and the logarithms of those."""

    def left(order: int, remainders: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            size = np.log(remainders) / 2 + np.log(order)
        return (order + 1) * logs + size[:, None] + size

    for most in attempts:
        series = coefficients(
            integrand, variances, most, 1, lambda *of: bool(left(*of).max() <= least)
        )
        remainders = left(series.orders[-1], series.remainders)
        # Remainders fall off no faster than as a power of the orders.
        if remainders.max() <= least or remainders.max() * _SERIES.ratio > least:
            break
    return series, remainders


def _integrand(F: sp.Expr) -> _Integrand:
    function = rules.compiled(F, X)
    points = [mpmath.sqrt(n) / 3 for n in (2, 3, 5, 7, 11, 130)]
    is_even = all(function(x) == function(-x) for x in points)
    return _Integrand(function, rules.kinks_of(F, X), rules.start_of(F, X), is_even)


def _attempts(logs: np.ndarray, digits: int, has_kinks: bool) -> list[int]:
    """Numbers of orders to try; with kinks all that the correlations ask for."""
    with np.errstate(divide="ignore"):
        needed = np.ceil((digits + _SERIES.guard) * np.log(10) / -logs) + 2
    if has_kinks:
        return [int(needed[needed <= _SERIES.orders[-1]].max())]
    return [min(order, int(min(needed.max(), _SERIES.orders[-1]))) for order in _SERIES.orders]


def coefficients(
    integrand: _Integrand,
    variances: list[Any],
    most: int,
    level: int,
    enough: Callable[[int, np.ndarray], bool],
) -> Coefficients:
    """The coefficients of up to ``most`` orders, or as many as are enough, by rules of a level."""
    roots = [mpmath.sqrt(K) for K in variances]
    if not any(integrand.kinks):
        return _on_shared_nodes(integrand, roots, most, level, enough)
    parts = [_on_shared_nodes(integrand, [root], most, level, lambda *of: False) for root in roots]
    return parts[0]._replace(
        own=[part.own[0] for part in parts],
        values=np.concatenate([part.values for part in parts]),
        remainders=np.concatenate([part.remainders for part in parts]),
    )


def _on_shared_nodes(
    integrand: _Integrand,
    roots: list[Any],
    most: int,
    level: int,
    enough: Callable[[int, np.ndarray], bool],
) -> Coefficients:
    digits = mpmath.mp.dps
    reach = rules.reach_of(2 * digits, level, integrand.start / min(roots))
    high, bits = rules.hermite_bits(digits, reach), int(3.33 * (digits + _SERIES.guard))
    cuts = rules.panel_ends([k / roots[0] for k in integrand.kinks], min(1, 1 / max(roots)), reach)
    rule = rules.composite(cuts, rules.rule_order(digits, level) + isqrt(most))
    stride = 2 if integrand.is_even else 1
    nodes = [(z, stride * w) for z, w in rule if z > 0 or stride == 1]
    weights = [w * mpmath.npdf(z) for z, w in nodes]
    # h_n is in the Hermite functions with a factor exp(−z²/4).
    growing = [w * mpmath.exp(z * z / 4) for (z, _), w in zip(nodes, weights, strict=True)]
    parts = []
    for root in roots:
        own, values = _centred(integrand.function, [root * z for z, _ in nodes], weights)
        parts.append((own, [v * w for v, w in zip(values, growing, strict=True)]))
    weighted = np.array([rules.integers(terms, bits) for _, terms in parts])
    rows: list[np.ndarray] = []
    remainders = np.full(len(roots), 1 << bits, dtype=object)
    functions = islice(rules.hermite_functions([z for z, _ in nodes], high), most + 1)
    for n, current in enumerate(functions):
        if n == 0 or n % stride:
            continue
        rows.append((weighted @ (current >> (high - bits))) >> bits)
        remainders = remainders - (rows[-1] ** 2 >> bits)
        if len(rows) % _SERIES.every == 0 and enough(n, _fractions(remainders, bits)):
            break
    orders = stride * np.arange(1, len(rows) + 1)
    own = [own for own, _ in parts]
    return Coefficients(own, orders, np.array(rows).T, _fractions(remainders, bits), bits)


def _fractions(values: np.ndarray, bits: int) -> np.ndarray:
    return np.array([max(value, 0) / (1 << bits) for value in values])


def _centred(
    function: Callable[[Any], Any], points: list[Any], weights: list[Any]
) -> tuple[Any, list[Any]]:
    """⟨F;F⟩, and (F − ⟨F⟩)/√⟨F;F⟩ at the points."""
    extra = 0
    while True:
        with mpmath.workdps(mpmath.mp.dps + extra):
            values = list(map(function, points))
            mean = mpmath.fdot(weights, values) / mpmath.fsum(weights)
            values = [value - mean for value in values]
            own = mpmath.fsum(w * v * v for w, v in zip(weights, values, strict=True))
        if extra or not own < _SERIES.small * mean**2:
            break
        extra = int(mpmath.log10(mean**2 / own)) if own else mpmath.mp.dps
    scale = mpmath.sqrt(own) or mpmath.mpf(1)
    return own, [value / scale for value in values]


def _require_agreement(
    integrand: _Integrand, variances: list[Any], series: Coefficients, digits: int
) -> None:
    """Compare the widest and the narrowest signal with a rule of fewer nodes."""
    chosen = sorted({variances.index(min(variances)), variances.index(max(variances))})
    fewer = coefficients(
        integrand, [variances[i] for i in chosen], int(series.orders[-1]), 0, lambda *of: False
    )
    change = abs(fewer.values - series.values[chosen]).max() / (1 << series.bits)
    if change > 10.0 ** (_SERIES.slack - digits):
        raise PrecisionError(
            f"Hermite coefficients of φ² change by {float(change):.1g} from one rule to the next"
        )


def _products(
    series: Coefficients, variances: list[Any], chain: list[Any]
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
