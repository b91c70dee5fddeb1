"""Deep linear networks, which are known at every N, as polynomials."""

from __future__ import annotations

from functools import cache
from math import comb, factorial, prod
from typing import Any

import sympy as sp

from neurons.recursion import Word, kernels, recursion

_RING, h, START, WEIGHT, BIAS, SKIP = sp.ring("h K_0 a c gamma", sp.QQ)
_SERIES, EPSILON = sp.ring("epsilon", _RING)


def variances(depth: int) -> list[Any]:
    """K*^(l) = γ²K*^(l−1) + C*^(l)."""
    found = [START]
    for _ in range(depth):
        found.append((SKIP**2 + WEIGHT) * found[-1] + BIAS)
    return found


def derived(depth: int) -> list[tuple[Any, ...]]:
    """δ_1, q_1, δ_2, q_2, t_2 of the layers by the derived recursion."""
    K = variances(depth)

    @cache
    def polynomial(l: int, word: Word) -> Any:
        if word.power:
            return (WEIGHT * (h**2 - K[l])) ** word.power * polynomial(l, Word(0, word.factor))
        if word.factor is None:
            return _RING(1)
        _, j, inner = word.factor
        return moved(polynomial(l + 1, inner), j, WEIGHT * K[l] + BIAS)

    def average(l: int, word: Word) -> Any:
        return averaged(polynomial(l, word), K[l])

    return kernels(recursion(average, lambda q: _RING(sp.QQ(q.p, q.q))), depth)


def by_power(polynomial: Any) -> list[tuple[int, Any]]:
    """The powers of h and what they are multiplied by."""
    found = []
    for (power, *others), coefficient in polynomial.terms():
        found.append((power, _RING({(0, *others): coefficient})))
    return found


def moved(polynomial: Any, j: int, C: Any) -> Any:
    """P_j: the coefficient of d^j in ⟨ψ(γh + f)⟩ with f ~ N(0, C + d)."""
    total = _RING(0)
    for n, rest in by_power(polynomial):
        for k in range(j, n // 2 + 1):
            pairings = factorial(n) // (factorial(k) * factorial(n - 2 * k) * 2**k)
            total += rest * pairings * comb(k, j) * C ** (k - j) * (SKIP * h) ** (n - 2 * k)
    return total


def averaged(polynomial: Any, K: Any) -> Any:
    """⟨·⟩ of a Gaussian of variance K."""
    even = [(n, rest) for n, rest in by_power(polynomial) if n % 2 == 0]
    return sum((rest * prod(range(1, n, 2)) * K ** (n // 2) for n, rest in even), _RING(0))


def exact(depth: int) -> list[tuple[Any, ...]]:
    """The same from the exact recursion of the moments of q = |h|²/N, expanded.

    Given q, N q'/C is a noncentral χ² of N degrees of freedom with N γ²q/C, C = aq + c.
    """
    K, found = variances(depth), []
    cumulants = [2 ** (n - 1) * factorial(n - 1) * EPSILON ** (n - 1) for n in (1, 2, 3)]
    moments = raw([factor * START**n for n, factor in enumerate(cumulants, start=1)])
    for l in range(depth + 1):
        one, two, three = moments
        central = one - K[l], two - one**2, three - 3 * one * two + 2 * one**3
        mean, variance, third = (WEIGHT**n * x for n, x in enumerate(central, start=1))
        series = (mean, 1), (variance, 1), (mean, 2), (variance, 2), (third, 2)
        found.append(tuple(x.get((k,), _RING(0)) for x, k in series))
        q, C = h, WEIGHT * h + BIAS
        given = [
            factor * (C**n + n * SKIP**2 * q * C ** (n - 1))
            for n, factor in enumerate(cumulants, start=1)
        ]
        moments = [expected(moment, moments) for moment in raw(given)]
    return found


def raw(cumulants: list[Any]) -> list[Any]:
    """The first three moments."""
    one, two, three = cumulants
    return [one + _SERIES(0), two + one**2, three + 3 * one * two + one**3]


def expected(series: Any, moments: list[Any]) -> Any:
    """A polynomial in q, for which h stands, with moments for its powers."""
    total, known = _SERIES(0), [_SERIES(1), *moments]
    for (order,), coefficient in series.terms():
        for power, rest in by_power(coefficient):
            total += rest * EPSILON**order * known[power]
    return total


def without_bias(polynomial: Any) -> sp.Expr:
    """A result for c = 0 and K*^(0) = 1."""
    return sp.factor(polynomial.subs([(BIAS, 0), (START, 1)]).as_expr())


def lowering_holds(n: int, j: int) -> bool:
    """P_j He_n(h; K') = n!/(j! (n−2j)! 2^j) γ^{n−2j} He_{n−2j}(h; K) with K' = γ²K + C."""
    K, C = START, BIAS
    expected = hermite(n - 2 * j, K) * SKIP ** (n - 2 * j) if n >= 2 * j else _RING(0)
    factor = sp.QQ(factorial(n), factorial(j) * factorial(max(n - 2 * j, 0)) * 2**j)
    return moved(hermite(n, SKIP**2 * K + C), j, C) == factor * expected


def hermite(n: int, K: Any) -> Any:
    """The monic polynomials orthogonal under N(0, K)."""
    before, now = _RING(0), _RING(1)
    for k in range(n):
        before, now = now, h * now - k * K * before
    return now
