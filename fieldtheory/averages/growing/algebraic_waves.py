"""Averages of waves that grow exponentially beside algebraic functions, e^h sin(h) h/√(1 + h²).

Such functions are Re Σ A(h) e^{αh}, where A has powers, roots, logarithms and angles alone, whose
singularities are near zero. By a shift of both signals

    ⟨A(x) e^{αx} B(y) e^{βy}⟩ = e^E ⟨A(x + αa + βt) B(y + βb + αt)⟩,   E = (α² a + β² b)/2 + αβ t,

of variances a, b and covariance t: far out A is analytic, and the average on the right changes
slowly. The shift passes singularities near zero, where e^{αx} is of order 1: what they leave is
bounded alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import NamedTuple

import sympy as sp
from mpmath import mp
from numpy.polynomial import hermite_e

from fieldtheory.averages.growing.beyond_float import function_of
from fieldtheory.averages.growing.growing_waves import (
    Waves,
    as_waves,
    average,
    exponential,
    wave_terms,
)
from fieldtheory.averages.integrands.steps import branch

# Digits of amplitudes, and over the size of what is left near zero what bounds it.
_DIGITS, _SAFE = 30, 4
_ALGEBRAIC = sp.log, sp.atan, sp.asinh, sp.Abs, sp.sign, sp.Heaviside, sp.Max, sp.Min
# Where functions have no kinks any more, how far their singularities may be, and nodes of Hermite's
# rule by variances up to which they are needed.
_BEYOND, _FARTHEST, _NODES = 1000, 8.0, ((1e3, 32), (1e8, 12), (mp.inf, 5))
# Places over the distance of the last singularity at which functions are bounded, how far limits
# are, and how well they are reached.
_PLACES, _LIMIT, _REACHED = [mp.mpf(1.5) * k / 16 for k in range(1, 17)], (60, 120), 1e-9


class Algebraic(NamedTuple):
    """A function as waves whose powers are indices of amplitudes, from 1 on.

    Parameters
    ----------
    waves : tuple of Wave
    amplitudes : tuple of pairs
        For h > 0 and for h < 0.
    size : mpf
        What f does not exceed near its singularities.
    """

    waves: Waves
    amplitudes: tuple[tuple[_Side, _Side], ...]
    size: mp.mpf


@lru_cache(maxsize=64)
def algebraic_of(f: sp.Expr, h: sp.Symbol) -> Algebraic | None:
    """The waves of f; None if it has others, or none beside algebraic functions.

    Examples
    --------
    >>> h = sp.Symbol("h", real=True)
    >>> found = algebraic_of(sp.exp(h) * sp.sin(h) / (1 + h**2), h)
    >>> [(w.power, complex(w.rate)) for w in found.waves]
    [(1, (1+1j))]
    >>> algebraic_of(sp.exp(h) * sp.sin(h) * sp.tanh(h), h) is None
    True
    """
    found: dict[sp.Expr, dict[sp.Expr, sp.Expr]] = {}
    reach = 1.0
    for term in sp.Add.make_args(sp.expand_mul(f)):
        steady = [part for part in sp.Mul.make_args(term) if not _is_wave(part, h)]
        amplitude = sp.Mul(*[part for part in steady if part.has(h)])
        last = _last_singularity(amplitude, h)
        if last is None:
            return None
        reach = max(reach, last)
        terms = wave_terms(term / amplitude, h)
        if terms.others != 0 or any(power for power, _ in terms.waves):
            return None
        for (_, rate), factor in terms.waves.items():
            of_rate = found.setdefault(rate, {})
            of_rate[amplitude] = of_rate.get(amplitude, sp.S.Zero) + factor
    if not any(sp.re(rate) and sp.im(rate) for rate in found):
        return None
    value = function_of(f, h)
    with mp.workdps(_DIGITS):
        places = [sign * reach * place for place in _PLACES for sign in (1, -1)]
        waves = as_waves({(i, rate): sp.S.One for i, rate in enumerate(found, start=1)})
        sides = tuple((_Side(A, h, 1), _Side(A, h, -1)) for A in found.values())
        return Algebraic(waves, sides, max(abs(value(place)) for place in places))


class _Side:
    """Σ C A(h) far out on one side."""

    def __init__(self, terms: dict[sp.Expr, sp.Expr], h: sp.Symbol, sign: int) -> None:
        side = [branch(A, h, sign * _BEYOND) for A in terms]
        self._functions = [sp.lambdify([h], A, "mpmath") for A in side]
        self._factors = [mp.mpmathify(sp.sympify(C).evalf(_DIGITS)) for C in terms.values()]
        near, far = (self.at(sign * mp.mpf(10) ** k) for k in _LIMIT)
        settled = abs(far - near) <= _REACHED * max(abs(near), 1)
        # Beyond all signals that float64 holds, and the limit if there is one.
        self.far, self.limit = far, (far if settled else mp.inf)

    def at(self, h: mp.mpc, conjugate: bool = False) -> mp.mpc:
        """Its value, or that of conjugate factors."""
        factors = map(mp.conj, self._factors) if conjugate else self._factors
        values = (function(h) for function in self._functions)
        return sum((C * A for C, A in zip(factors, values, strict=True)), mp.zero)


def _is_wave(part: sp.Expr, h: sp.Symbol) -> bool:
    base, exponent = part.as_base_exp()
    if isinstance(part, sp.exp):
        return bool(part.exp.diff(h).is_number)
    line = isinstance(base, sp.sin | sp.cos | sp.sinh | sp.cosh) and base.args[0].diff(h).is_number
    return bool(line and exponent.is_Integer and exponent > 0)


def _last_singularity(A: sp.Expr, h: sp.Symbol) -> float | None:
    """How far from zero A is analytic on both sides; None if it is not algebraic."""
    if A.has(sp.exp) or not all(isinstance(f, _ALGEBRAIC) for f in A.atoms(sp.Function)):
        return None
    last = 0.0
    for sign in (1, -1):
        side = branch(A, h, sign * _BEYOND)
        inner = [f.args[0] for f in side.atoms(sp.log)]
        # Angles are singular at ±i.
        inner += [1 + f.args[0] ** 2 for f in side.atoms(sp.atan, sp.asinh)]
        inner += [p.base for p in side.atoms(sp.Pow) if p.base.has(h)]
        for u in inner:
            # Of others principal values are not continuous where real parts are large.
            if not u.is_polynomial(h) or sp.degree(u, h) > 2:
                return None
            roots = [abs(complex(root)) for root in sp.Poly(u, h).nroots()] if u.has(h) else []
            last = max(last, *roots, 0.0)
    return last if last <= _FARTHEST else None


def of_waves(f: Algebraic, K: Sequence[mp.mpf], errors: Sequence[mp.mpf]) -> tuple[mp.mpf, mp.mpf]:
    """⟨f(x) f(y)⟩ as `average` of `growing_waves` gives it, without what is left near zero."""
    return average(f.waves, f.waves, K, errors, partial(_moment, f))


def _moment(
    f: Algebraic,
    indices: tuple[int, int],
    rates: tuple[mp.mpc, mp.mpc],
    a: mp.mpf,
    b: mp.mpf,
    t: mp.mpf,
) -> mp.mpc:
    """⟨A(x + αa + βt) B(y + βb + αt)⟩."""
    alpha, beta = rates
    sides = alpha.real * a + beta.real * t, beta.real * b + alpha.real * t
    first, second = (f.amplitudes[i - 1][side < 0] for i, side in zip(indices, sides, strict=True))
    back = rates[0].imag < 0, rates[1].imag < 0
    if not all(map(mp.isfinite, (a, b, t))):
        # Of endless exponents signs count alone.
        ends = (A.far if mp.isinf(t) else A.limit for A in (first, second))
        one, other = (mp.conj(end) if turn else end for end, turn in zip(ends, back, strict=True))
        return one * other
    count = next(n for most, n in _NODES if max(a, b) <= most)
    nodes, weights = _hermite(count)
    slope, rest = t / a, mp.sqrt(max(b - t**2 / a, mp.zero))
    total = mp.mpc(0)
    for z, u in zip(nodes, weights, strict=True):
        x = mp.sqrt(a) * z
        mean = beta * b + alpha * t + slope * x
        inner = sum(
            (v * second.at(mean + rest * w, back[1]) for w, v in zip(nodes, weights, strict=True)),
            mp.zero,
        )
        total += u * first.at(alpha * a + beta * t + x, back[0]) * inner
    return total


@lru_cache(maxsize=8)
def _hermite(count: int) -> tuple[list[mp.mpf], list[mp.mpf]]:
    """Nodes and weights with the digits of mpmath."""
    start, _ = hermite_e.hermegauss(count)
    nodes, weights = [], []
    with mp.workdps(40):
        for guess in start:
            z = mp.mpf(float(guess))
            for _ in range(3):
                last, value = mp.zero, mp.one
                for n in range(count):
                    last, value = value, z * value - n * last
                z -= value / (count * last)
            last, value = mp.zero, mp.one
            for n in range(count):
                last, value = value, z * value - n * last
            nodes.append(z)
            weights.append(mp.fac(count) / (count * last) ** 2)
    return nodes, weights


def size(f: Algebraic, K: Sequence[mp.mpf]) -> mp.mpf:
    """What ⟨f(x) f(y)⟩ is without phases."""
    return of_waves(f, K, [mp.inf] * len(K))[1]


def left_near_zero(f: Algebraic, a: mp.mpf, b: mp.mpf, t: mp.mpf) -> mp.mpf:
    """What the rest of ⟨f(x) f(y)⟩ does not exceed by orders of magnitude.

    Of one signal near zero, where f is of its size there, and of the mean wave of the other; and
    of both near zero.
    """
    found = f.size**2 / mp.sqrt(a * b)
    for w in f.waves:
        for one, other in ((a, b), (b, a)):
            within = one - t**2 / other
            mean = exponential((w.rate**2).real * within / 2)
            reach = max(abs(w.rate) * within, mp.one)
            right, left = f.amplitudes[w.power - 1]
            most = max(abs(right.at(reach)), abs(left.at(-reach)))
            found += abs(w.factor) * mean * most * f.size / mp.sqrt(other)
    return _SAFE * found
