"""Functions of wide signals without their waves.

Over signals that are wide against its length a wave averages out: what is left of a function of h,
sin(ah) and cos(ah) is its mean over the phase.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache, reduce
from typing import NamedTuple

import sympy as sp
from mpmath import mp

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrands.steps import pieces

# Squared wave numbers times variances from which on nothing is left of smooth waves.
WIDE = 200.0
# Digits of means over periods, those that are rounding, and at how many places they are taken.
_DIGITS, _NOTHING, _PLACES = 40, 1e-35, 2**12
# Signals between which exponential growth is told from powers, and its least rate.
_FAR, _RATE = (mp.mpf(20_000), mp.mpf(40_000)), 1e-3
_REFUSED = "the waves of {} at such large signals are not resolved"

# The coefficients of e^{iθ(h)}, by θ up to a constant.
Spectrum = dict[sp.Expr, sp.Expr]


class Steady(NamedTuple):
    """What is left of a function, and the variance from which on it is left.

    Beside ``exponential`` waves other averages may be smaller than what is not left. Unless waves
    are ``plain``, beside polynomials and exponentials alone, something is left of them where what
    stands beside them bends: see `wave_remainders`.
    """

    function: sp.Expr
    variance: float
    exponential: bool = False
    plain: bool = True


def has_waves(F: sp.Expr) -> bool:
    """Whether sines and cosines occur."""
    return bool(F.has(sp.sin, sp.cos))


@lru_cache(maxsize=256)
def without_waves(F: sp.Expr, h: sp.Symbol) -> Steady:
    """The mean of F over the phases of its waves.

    Parameters
    ----------
    F : sympy.Expr
    h : sympy.Symbol

    Returns
    -------
    Steady

    Raises
    ------
    QuadratureError
        Unless F is a sum of products of functions without waves and of either sines and cosines
        whose arguments become linear in h, or one function of period 2π/a.

    Examples
    --------
    >>> h = sp.Symbol("h", real=True)
    >>> without_waves(sp.exp(h) * sp.sin(h) ** 2 + sp.cos(h + 1), h)
    Steady(function=exp(h)/2, variance=200.0, exponential=True, plain=True)
    >>> without_waves(sp.sin(h) ** 2 / h**2, h).function
    erf(h)**2/(2*h**2)
    """
    kept, numbers, plain = [], set(), True
    # Terms of one wave may cancel where each of them grows, as eʰ − eʰ θ(h).
    beside: dict[sp.Expr, sp.Expr] = {}
    for term in terms_of(F, h):
        moving = [factor for factor in sp.Mul.make_args(term) if moves(factor, h)]
        if not moving:
            kept.append(term)
            continue
        steady = term / sp.Mul(*moving)
        try:
            spectrum = reduce(product_of, [spectrum_of(factor, h) for factor in moving])
        except QuadratureError:
            spectrum = _of_period(sp.Mul(*moving), h)
        kept.append(steady * sp.re(spectrum.get(sp.S.Zero, sp.S.Zero)))
        phases = [phase for phase in spectrum if phase != 0]
        numbers |= {_number(phase, h) for phase in phases}
        wave = sp.Mul(*moving)
        beside[wave] = beside.get(wave, sp.S.Zero) + steady
        bends = not all(_is_of_exponentials(each, h) for each in _without_hyperbolic(steady))
        plain &= all(phase.is_polynomial(h) for phase in phases) and not bends
    if not numbers:
        return Steady(F, 0.0)
    exponential = any(grows(pieces(steady, [h]), h) for steady in beside.values())
    bounded = [_without_pole(term, h) for term in kept]
    plain &= bounded == kept
    return Steady(sp.Add(*bounded), WIDE / min(numbers) ** 2, exponential, plain)


def _without_pole(term: sp.Expr, h: sp.Symbol) -> sp.Expr:
    """A term of h^-n times erf(h)^n, the same far out.

    Where waves cancel poles, as those of sin²(h)/h², their mean 1/(2h²) would have no average.
    """
    powers = [p.exp for p in sp.Mul.make_args(term) if p.is_Pow and p.base == h]
    order = sum(-n for n in powers if n.is_Integer and n.is_negative)
    return term * sp.erf(h) ** order


def terms_of(F: sp.Expr, h: sp.Symbol) -> list[sp.Expr]:
    """F multiplied out, but for sums without waves whose terms cancel, as 1 − tanh²(h)."""
    masks: dict[sp.Expr, sp.Dummy] = {}

    def masked(total: sp.Expr) -> sp.Dummy:
        return masks.setdefault(total, sp.Dummy(real=True))

    def cancels(e: sp.Expr) -> bool:
        if not e.is_Add or not e.has(h) or has_waves(e):
            return False
        return not all(_is_of_exponentials(term, h) for term in e.args)

    expanded = sp.expand(F.replace(cancels, masked))
    back: dict[sp.Expr, sp.Expr] = {}
    for total, mask in masks.items():
        # Sums may stand in later ones.
        back[mask] = total.xreplace(back)
    return [term.xreplace(back) for term in sp.Add.make_args(expanded)]


def _is_of_exponentials(steady: sp.Expr, h: sp.Symbol) -> bool:
    """Whether it is a product of powers of h and exponentials of linear functions."""
    factors = sp.Mul.make_args(steady)
    growing = [f for f in factors if isinstance(f, sp.exp) and f.exp.diff(h).is_number]
    return bool((steady / sp.Mul(*growing)).is_polynomial(h))


def _without_hyperbolic(steady: sp.Expr) -> tuple[sp.Expr, ...]:
    """Its terms, with exponentials in place of sinh and cosh."""
    if not steady.has(sp.sinh, sp.cosh):
        return (steady,)
    return sp.Add.make_args(sp.expand(steady.rewrite((sp.sinh, sp.cosh), sp.exp)))


def grows(steady: sp.Expr, h: sp.Symbol) -> bool:
    """Whether a function grows exponentially on one side."""
    if not steady.has(sp.exp, sp.sinh, sp.cosh):
        return False
    value = sp.lambdify([h], steady, "mpmath")
    with mp.workdps(_DIGITS):
        try:
            sizes = [[abs(value(sign * place)) for place in _FAR] for sign in (1, -1)]
            rates = [mp.log(far / near) for near, far in sizes if near and far]
        except (ValueError, ZeroDivisionError, OverflowError):
            return True
        return not all(rate < _RATE * float(_FAR[1] - _FAR[0]) for rate in rates)


def moves(factor: sp.Expr, h: sp.Symbol) -> bool:
    """Whether it has waves that do not become ever longer, as those of sin(log(1 + h²)) do."""
    phases = {wave.args[0] for wave in factor.atoms(sp.sin, sp.cos) if wave.has(h)}
    return any(has_waves(phase) or any(_slopes(phase, h)) for phase in phases)


@lru_cache(maxsize=256)
def _slopes(phase: sp.Expr, h: sp.Symbol) -> tuple[sp.Expr, sp.Expr]:
    """Of a phase far away on both sides."""
    if phase.is_polynomial(h):
        slope = phase.diff(h)
        return (slope, slope) if slope.is_number else (sp.oo, sp.oo)
    try:
        ends = [sp.limit(phase.diff(h), h, end) for end in (-sp.oo, sp.oo)]
    except (NotImplementedError, ValueError, TypeError):
        ends = [sp.nan]
    if not all(end.is_number and end.is_extended_real for end in ends):
        raise QuadratureError(_REFUSED.format(sp.sin(phase)))
    return ends[0], ends[1]


def _number(phase: sp.Expr, h: sp.Symbol) -> float:
    """The least wave number far away."""
    found = [abs(float(slope)) for slope in _slopes(phase, h)]
    if not 0 < max(found) < float("inf") or not min(found):
        raise QuadratureError(_REFUSED.format(sp.sin(phase)))
    return min(found)


def spectrum_of(factor: sp.Expr, h: sp.Symbol) -> Spectrum:
    """Of a power of one sine or cosine."""
    wave, power = factor.as_base_exp()
    if not isinstance(wave, sp.sin | sp.cos) or not (power.is_Integer and power > 0):
        raise QuadratureError(_REFUSED.format(factor))
    offset, phase = sp.expand(wave.args[0]).as_independent(h, as_Add=True)
    if has_waves(phase):
        raise QuadratureError(_REFUSED.format(factor))
    half = sp.exp(sp.I * offset) / (2 if isinstance(wave, sp.cos) else 2 * sp.I)
    return reduce(product_of, [{phase: half, -phase: sp.conjugate(half)}] * int(power))


def product_of(first: Spectrum, second: Spectrum) -> Spectrum:
    """Of two functions."""
    found: Spectrum = defaultdict(lambda: sp.S.Zero)
    for a, p in first.items():
        for b, q in second.items():
            found[a + b] += p * q
    return found


@lru_cache(maxsize=64)
def _of_period(factor: sp.Expr, h: sp.Symbol) -> Spectrum:
    """The mean of a smooth periodic function, and its longest wave."""
    base = wave_number_of(factor, h)
    with mp.workdps(_DIGITS + 10):
        value = sp.lambdify([h], factor, "mpmath")
        period = 2 * mp.pi / mp.mpf(sp.N(base, _DIGITS + 10))
        mean, places = value(mp.zero), 1
        while True:
            # Exponentially exact, with half of the places known.
            between = sum(value(period * (2 * i + 1) / (2 * places)) for i in range(places))
            mean, last = (mean + between / places) / 2, mean
            places *= 2
            if places > 16 and abs(mean - last) <= mp.mpf(10) ** -_DIGITS * max(abs(mean), 1):
                found = sp.S.Zero if abs(mean) < _NOTHING else sp.Float(mean, _DIGITS)
                return {sp.S.Zero: found, base * h: sp.S.One}
            if places > _PLACES:
                raise QuadratureError(_REFUSED.format(factor))


def wave_number_of(factor: sp.Expr, h: sp.Symbol) -> sp.Expr:
    """2π over the period of a periodic function."""
    numbers = []

    def phase_of(wave: sp.Expr) -> sp.Expr:
        line = wave.args[0].as_poly(h)
        if line is None or line.degree() != 1:
            return wave
        numbers.append(abs(line.coeff_monomial(h)))
        return wave.func(sp.Dummy())

    inner = factor.replace(lambda e: isinstance(e, sp.sin | sp.cos), phase_of)
    ratios = [sp.nsimplify(number / numbers[0]) for number in numbers] if numbers else []
    if inner.has(h) or not ratios or not all(ratio.is_Rational for ratio in ratios):
        raise QuadratureError(_REFUSED.format(factor))
    return numbers[0] * reduce(sp.gcd, ratios)
