"""Averages of sums of powers times exponentials times waves, whatever the size of the signals.

Such functions are Re Σ C h^m e^{αh} with complex rates α, and with variances a, b and covariance t

    ⟨x^m e^{αx} y^n e^{βy}⟩ = e^E ⟨(x + αa + βt)^m (y + βb + αt)^n⟩,   E = (α² a + β² b)/2 + αβ t.

Im E is a phase. Where the kernels are so large that their digits do not tell it, the size of the
term is all that is known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import comb, factorial
from typing import NamedTuple

import sympy as sp
from mpmath import mp

# Digits of rates and factors.
_DIGITS = 40
_OF_EXPONENTIALS = sp.sin, sp.cos, sp.sinh, sp.cosh
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
    terms = wave_terms(f, h)
    return None if terms.others != 0 else as_waves(terms.waves)


class Terms(NamedTuple):
    """The factors C of Re C h^m e^{αh} by (m, α), and the sum of all other terms."""

    waves: dict[tuple[int, sp.Expr], sp.Expr]
    others: sp.Expr


def wave_terms(f: sp.Expr, h: sp.Symbol) -> Terms:
    """The terms of f by what they are.

    Examples
    --------
    >>> h = sp.Symbol("h", real=True)
    >>> wave_terms(h * sp.exp(2 * h) + sp.tanh(h), h)
    Terms(waves={(1, 2): 1}, others=tanh(h))
    """
    found: dict[tuple[int, sp.Expr], sp.Expr] = defaultdict(lambda: sp.S.Zero)
    others = []
    for term in sp.Add.make_args(sp.expand(f)):
        exponentials = sp.expand(term.rewrite(_OF_EXPONENTIALS, sp.exp))
        parts = [_wave(part, h) for part in sp.Add.make_args(exponentials)]
        if None in parts:
            others.append(term)
            continue
        for power, rate, factor in filter(None, parts):
            found[power, sp.expand(rate)] += factor
    # The others are conjugate to them.
    waves = {
        (power, rate): (2 * factor if sp.im(rate) else factor)
        for (power, rate), factor in found.items()
        if sp.im(rate) >= 0 and factor != 0
    }
    return Terms(waves, sp.Add(*others))


def _wave(term: sp.Expr, h: sp.Symbol) -> tuple[int, sp.Expr, sp.Expr] | None:
    """m, α and C of a term C h^m e^{αh}."""
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
    return power, rate, factor


def as_waves(terms: dict[tuple[int, sp.Expr], sp.Expr]) -> Waves:
    """Terms as numbers."""
    return tuple(
        Wave(power, _number(rate), _number(factor)) for (power, rate), factor in terms.items()
    )


def _number(value: sp.Expr) -> mp.mpc:
    with mp.workdps(_DIGITS):
        return mp.mpc(*(mp.mpf(part.evalf(_DIGITS)) for part in value.as_real_imag()))


def average(
    f: Waves,
    g: Waves,
    kernels: Sequence[mp.mpf],
    errors: Sequence[mp.mpf],
    moment: Callable[..., mp.mpc] | None = None,
) -> tuple[mp.mpf, mp.mpf]:
    """⟨f(x) g(y)⟩ as far as phases are known, and the size of all terms of which they are not.

    Parameters
    ----------
    f, g : tuple of Wave
    kernels : sequence of mpf
        K_xx, K_yy and K_xy; K_xx and K_xy of signals of one variance; or K_xx alone if x = y.
    errors : sequence of mpf
        Theirs.
    moment : callable, optional
        What stands for ⟨(x + αa + βt)^m (y + βb + αt)^n⟩, a function of (m, n), (α, β), a, b, t.

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
        size = exponential(exponent)
        if not size or (mp.isinf(size) and exponent < _SMALLER * largest):
            continue
        factor = product.factor
        if any(product.powers):
            given = kernels[0], kernels[-2:][0], kernels[-1]
            factor *= (moment or _moment)(product.powers, product.rates, *given)
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


def exponential(exponent: mp.mpf) -> mp.mpf:
    """Infinite or nothing beyond all logarithms."""
    if abs(exponent) > _ENDLESS:
        return mp.inf if exponent > 0 else mp.zero
    return mp.exp(exponent)


def _moment(
    powers: tuple[int, int], rates: tuple[mp.mpc, mp.mpc], a: mp.mpf, b: mp.mpf, t: mp.mpf
) -> mp.mpc:
    """⟨(x + αa + βt)^m (y + βb + αt)^n⟩."""
    (m, n), (alpha, beta) = powers, rates
    one, other = alpha * a + beta * t, beta * b + alpha * t
    return sum(
        (
            comb(m, j) * comb(n, j) * factorial(j) * t**j * mean_power(m - j, one, a)
            * mean_power(n - j, other, b)
            for j in range(min(m, n) + 1)
        ),
        mp.mpc(0),
    )  # fmt: skip


def mean_power(n: int, mean: mp.mpc, variance: mp.mpf) -> mp.mpc:
    """⟨(x + mean)^n⟩."""
    return sum(
        (
            comb(n, 2 * i) * mp.fac2(2 * i - 1) * variance**i * mean ** (n - 2 * i)
            for i in range(n // 2 + 1)
        ),
        mp.mpc(0),
    )
