"""Averages of sums of powers times exponentials times waves, whatever the size of the signals.

Such functions are Re Σ C h^m e^{αh} with complex rates α, and with variances a, b and covariance t

    ⟨x^m e^{αx} y^n e^{βy}⟩ = e^E ⟨(x + αa + βt)^m (y + βb + αt)^n⟩,   E = (α² a + β² b)/2 + αβ t.

Im E is a phase. Where the kernels are so large that their digits do not tell it, the size of the
term is all that is known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from math import comb, factorial
from typing import NamedTuple

import sympy as sp
from mpmath import mp

# Digits of rates and factors.
_DIGITS = 40
# Phases with a larger error are not known.
_UNKNOWN = 0.1
# Exponents that are beyond all logarithms in float64.
_ENDLESS = mp.mpf(2) ** 1024
# Of those, what terms with smaller exponents add is nothing beside others.
_SMALLER = 1 - 1e-6


class Wave(NamedTuple):
    """Re C h^m e^{αh}, Im α >= 0."""

    power: int
    rate: mp.mpc
    factor: mp.mpc


Waves = tuple[Wave, ...]


class _Product(NamedTuple):
    """C x^m e^{αx} y^n e^{βy}, and the coefficients of E."""

    powers: tuple[int, int]
    rates: tuple[mp.mpc, mp.mpc]
    factor: mp.mpc
    sizes: tuple[mp.mpf, ...]
    phases: tuple[mp.mpf, ...]


@lru_cache(maxsize=128)
def waves_of(f: sp.Expr, h: sp.Symbol) -> Waves | None:
    """The terms of f; None if it has others.

    Examples
    --------
    >>> h = sp.Symbol("h", real=True)
    >>> [(w.power, complex(w.rate), complex(w.factor)) for w in waves_of(h * sp.exp(h), h)]
    [(1, (1+0j), (1+0j))]
    >>> [(complex(w.rate), complex(w.factor)) for w in waves_of(sp.exp(2 * h) * sp.sin(h), h)]
    [((2+1j), -1j)]
    """
    found: dict[tuple[int, sp.Expr], sp.Expr] = defaultdict(lambda: sp.S.Zero)
    for term in sp.Add.make_args(sp.expand(f.rewrite(sp.exp))):
        factor, power, rate = sp.S.One, 0, sp.S.Zero
        for part in sp.Mul.make_args(term):
            base, exponent = part.as_base_exp()
            if part.is_number:
                factor *= part
            elif base == h and exponent.is_Integer and exponent > 0:
                power += int(exponent)
            elif isinstance(part, sp.exp) and part.exp.diff(h).is_number:
                slope = part.exp.diff(h)
                rate += slope
                factor *= sp.exp(sp.expand(part.exp - slope * h))
            else:
                return None
        found[power, sp.expand(rate)] += factor
    numbers = ((power, _number(rate), _number(factor)) for (power, rate), factor in found.items())
    # The others are conjugate to them.
    return tuple(
        Wave(power, rate, 2 * factor if rate.imag else factor)
        for power, rate, factor in numbers
        if rate.imag >= 0 and factor
    )


def _number(value: sp.Expr) -> mp.mpc:
    with mp.workdps(_DIGITS):
        return mp.mpc(*(mp.mpf(part.evalf(_DIGITS)) for part in value.as_real_imag()))


def average(
    f: Waves, g: Waves, kernels: Sequence[mp.mpf], errors: Sequence[mp.mpf]
) -> tuple[mp.mpf, mp.mpf]:
    """⟨f(x) g(y)⟩ as far as phases are known, and the size of all terms of which they are not.

    Parameters
    ----------
    f, g : tuple of Wave
    kernels : sequence of mpf
        K_xx, K_yy and K_xy; K_xx and K_xy of signals of one variance; or K_xx alone if x = y.
    errors : sequence of mpf
        Theirs.

    Returns
    -------
    tuple of mpf
        Infinite beyond all logarithms.

    Examples
    --------
    >>> h = sp.Symbol("h", real=True)
    >>> waves = waves_of(sp.exp(h) * sp.sin(h), h)
    >>> K = mp.mpf(10) ** 5 * 2, mp.mpf(10) ** 5, mp.mpf(30)
    >>> [mp.nstr(part, 8) for part in average(waves, waves, K, (0, 0, 0))]
    ['-5.7063871e+25', '0.0']
    >>> [mp.nstr(part, 8) for part in average(waves, waves, K, (1, 1, 0))]
    ['0.0', '5.710037e+25']
    """
    known, unknown = mp.zero, mp.zero
    products = _products(f, g, len(kernels))
    exponents = [_sum(product.sizes, kernels) for product in products]
    largest = max(exponents, default=mp.zero)
    for product, exponent in zip(products, exponents, strict=True):
        size = _exponential(exponent)
        if not size or (mp.isinf(size) and exponent < _SMALLER * largest):
            continue
        factor = product.factor
        if any(product.powers):
            factor *= _moment(product, kernels[0], kernels[-2:][0], kernels[-1])
        if not mp.isfinite(factor) or mp.isnan(size):
            unknown = mp.inf
        elif _sum([abs(phase) for phase in product.phases], errors) > _UNKNOWN:
            unknown += abs(factor) * size
        elif wave := (factor * mp.expj(_sum(product.phases, kernels))).real:
            known += wave * size
    return known, unknown


@lru_cache(maxsize=256)
def _products(f: Waves, g: Waves, count: int) -> tuple[_Product, ...]:
    """Those whose real parts sum up to f(x) g(y), with E of so many kernels."""
    found = []
    with mp.workdps(_DIGITS):
        for x in f:
            for y in g:
                factor = x.factor * y.factor
                if not (x.rate.imag and y.rate.imag):
                    found.append(_product(x, y, factor, count))
                    continue
                back = Wave(y.power, mp.conj(y.rate), mp.conj(y.factor))
                found.append(_product(x, y, factor / 2, count))
                found.append(_product(x, back, x.factor * back.factor / 2, count))
    return tuple(found)


def _product(x: Wave, y: Wave, factor: mp.mpc, count: int) -> _Product:
    own, other, both = x.rate**2 / 2, y.rate**2 / 2, x.rate * y.rate
    E = {1: (own + other + both,), 2: (own + other, both), 3: (own, other, both)}[count]
    sizes, phases = (tuple(part) for part in zip(*((c.real, c.imag) for c in E), strict=True))
    return _Product((x.power, y.power), (x.rate, y.rate), factor, sizes, phases)


def _sum(coefficients: Sequence[mp.mpf], values: Sequence[mp.mpf]) -> mp.mpf:
    """Without 0·∞."""
    return sum((c * v for c, v in zip(coefficients, values, strict=True) if c), mp.zero)


def _exponential(exponent: mp.mpf) -> mp.mpf:
    if abs(exponent) > _ENDLESS:
        return mp.inf if exponent > 0 else mp.zero
    return mp.exp(exponent)


def _moment(product: _Product, a: mp.mpf, b: mp.mpf, t: mp.mpf) -> mp.mpc:
    """⟨(x + αa + βt)^m (y + βb + αt)^n⟩."""
    (m, n), (alpha, beta) = product.powers, product.rates
    one, other = alpha * a + beta * t, beta * b + alpha * t
    return sum(
        (
            comb(m, j) * comb(n, j) * factorial(j) * t**j * _shifted(m - j, one, a)
            * _shifted(n - j, other, b)
            for j in range(min(m, n) + 1)
        ),
        mp.mpc(0),
    )  # fmt: skip


def _shifted(n: int, mean: mp.mpc, variance: mp.mpf) -> mp.mpc:
    """⟨(x + mean)^n⟩."""
    return sum(
        (
            comb(n, 2 * i) * mp.fac2(2 * i - 1) * variance**i * mean ** (n - 2 * i)
            for i in range(n // 2 + 1)
        ),
        mp.mpc(0),
    )
