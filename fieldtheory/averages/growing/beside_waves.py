"""Averages of waves that grow exponentially, beside functions that do not.

Such a function is a sum of waves w, those that grow to the right as they stand there and those that
grow to the left as they stand there, and a rest r that does not grow exponentially:
|h| e^h sin(h) is h e^h sin(h), and −2h e^h sin(h) on the left; for products with tanh, erf and
the like see `far_waves`. Of

    ⟨f(x) f(y)⟩ = ⟨w w⟩ + ⟨w(x) r(y)⟩ + ⟨r(x) w(y)⟩ + ⟨r r⟩

the first is a closed form, see `growing_waves`, beside which the others are nothing where signals
are wide and do not point away from each other. Given y, x is a Gaussian signal of mean t y/a_y and
variance v = a_x − t²/a_y, of which waves have closed forms: the second is an integral over y.
"""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

import sympy as sp
from mpmath import mp

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.growing import beyond_float
from fieldtheory.averages.growing.far_waves import far
from fieldtheory.averages.growing.growing_waves import (
    Terms,
    Wave,
    Waves,
    as_waves,
    exponential,
    mean_power,
    wave_terms,
)
from fieldtheory.averages.integrands.steps import between, branch, break_points, has_steps
from fieldtheory.averages.oscillating.waves import grows, has_waves

# Digits of integrals, and twice the logarithm of what waves may cancel of them.
_DIGITS, _CANCELLED = 30, 60
# Places at which rests are bounded whatever the variance, and variances of rests with and
# without waves of which there are integrals.
_PLACES = [mp.mpf(2) ** k for k in range(-8, 9)]
_MANY_WAVES, _WIDEST = 1e4, mp.mpf(10) ** 100
# Ends of panels in standard deviations, and near zero, and the most nodes of them: 3·2⁴.
_ENDS, _NEAR, _DEGREE = range(-14, 15, 2), (-1, 0, 1), 5


class Split(NamedTuple):
    """A function as waves, and what is left of it.

    Parameters
    ----------
    waves : tuple of Wave
    wave, rest : sympy.Expr
        Their sum, and what has to be added.
    envelope : sympy.Expr
        What the modulus of the rest does not exceed.
    """

    waves: Waves
    wave: sp.Expr
    rest: sp.Expr
    envelope: sp.Expr


@lru_cache(maxsize=128)
def split_of(f: sp.Expr, h: sp.Symbol) -> Split | None:
    """f as a sum of waves and a rest that does not grow exponentially; None if it has none.

    Examples
    --------
    >>> h = sp.Symbol("h", real=True)
    >>> split_of(sp.exp(h) * sp.sin(h) + sp.tanh(h), h).rest
    tanh(h)
    >>> split_of(sp.Abs(h) * sp.exp(h) * sp.sin(h), h).rest
    Piecewise((-2*h*exp(h)*sin(h), h < 0), (0, True))
    >>> split_of(sp.exp(h) * sp.sin(h) / (1 + h**2), h) is None
    True
    """
    try:
        cuts = break_points(f, h) if has_steps(f) else []
    except ValueError:
        return None
    sides = [wave_terms(branch(f, h, middle), h) for middle in between(cuts)]
    if not cuts and sides[0].others != 0:
        cuts, sides = [sp.S.Zero], sides * 2
    sides[0], sides[-1] = _far(sides[0], h, -1), _far(sides[-1], h, 1)
    kept = {
        key: factor
        for terms, sign in ((sides[-1].waves, 1), (sides[0].waves, -1))
        for key, factor in terms.items()
        if sign * sp.re(key[1]) > 0 or all(side.waves.get(key) == factor for side in sides)
    }
    rests, envelopes = [], []
    for side in sides:
        keys = {**kept, **side.waves}
        left = {key: sp.expand(side.waves.get(key, 0) - kept.get(key, 0)) for key in keys}
        left = {key: factor for key, factor in left.items() if factor != 0}
        rests.append(side.others + _sum(left, h))
        sizes = [abs(_without_phase(term)) for term in sp.Add.make_args(side.others)]
        sizes += [abs(C) * abs(h) ** m * sp.exp(sp.re(alpha) * h) for (m, alpha), C in left.items()]
        envelopes.append(sp.Add(*sizes))
    rest, envelope = (_joined(values, cuts, h) for values in (rests, envelopes))
    if rest == 0:
        return Split(as_waves(kept), _sum(kept, h), sp.S.Zero, sp.S.Zero)
    if not kept or grows(envelope, h):
        return None
    return Split(as_waves(kept), _sum(kept, h), rest, envelope)


def _far(terms: Terms, h: sp.Symbol, side: int) -> Terms:
    """With the waves that others become where they grow."""
    found = far(terms.others, h, side)
    if found is None or found.waves == 0:
        return terms
    more = wave_terms(_sum(terms.waves, h) + found.waves, h)
    return Terms(more.waves, found.rest + more.others)


def _sum(terms: dict[tuple[int, sp.Expr], sp.Expr], h: sp.Symbol) -> sp.Expr:
    """Σ Re C h^m e^{αh}."""
    return sp.Add(
        *(
            h**m
            * sp.exp(sp.re(alpha) * h)
            * (sp.re(C) * sp.cos(sp.im(alpha) * h) - sp.im(C) * sp.sin(sp.im(alpha) * h))
            for (m, alpha), C in terms.items()
        )
    )


def _joined(values: list[sp.Expr], cuts: list[sp.Expr], h: sp.Symbol) -> sp.Expr:
    conditions = [*[h < cut for cut in cuts], sp.true]
    return sp.Piecewise(*zip(values, conditions, strict=True))


def _without_phase(term: sp.Expr) -> sp.Expr:
    return term.replace(lambda e: isinstance(e, sp.sin | sp.cos), lambda _: sp.S.One)


def size(f: Split, h: sp.Symbol, variance: mp.mpf) -> mp.mpf:
    """What the rest does not exceed by orders of magnitude."""
    if f.rest == 0:
        return mp.zero
    envelope = beyond_float.function_of(f.envelope, h)
    near = max(abs(envelope(side * place)) for place in _PLACES for side in (1, -1))
    far = mp.inf
    with suppress(QuadratureError):
        far = beyond_float.bound(f.envelope, h, variance) if mp.isfinite(variance) else far
    return max(near, mp.sqrt(far))


def size_beside(w: Wave, f: Split, h: sp.Symbol, a: mp.mpf, b: mp.mpf, t: mp.mpf) -> mp.mpf:
    """What ⟨w(x) r(y)⟩ does not exceed by orders of magnitude: of ⟨|⟨w(x)⟩_y| |r(y)|⟩.

    Parameters
    ----------
    w : Wave
    f : Split
        With the rest r.
    h : sympy.Symbol
    a, b, t : mpf
        Variances of x and y, and their covariance.
    """
    if not b:
        return mp.inf
    r, within = w.rate.real, max(a - t**2 / b, mp.zero)
    exponent = (w.rate**2).real * within / 2 + (r * t) ** 2 / (2 * b)
    reach = mp.sqrt(b + (r * t) ** 2)
    power = (3 * abs(t) / b * reach + abs(w.rate) * within + mp.sqrt(within) * w.power) ** w.power
    rest = size(f, h, reach**2)
    return abs(w.factor) * exponential(exponent) * power * rest if rest else rest


@lru_cache(maxsize=1024)
def beside(
    w: Wave, f: Split, h: sp.Symbol, a: mp.mpf, b: mp.mpf, t: mp.mpf
) -> tuple[mp.mpf, mp.mpf] | None:
    """⟨w(x) r(y)⟩ as an integral over y, and its error; None where too many digits cancel."""
    shift, within = w.rate * t, max(a - t**2 / b, mp.zero)
    if shift.imag**2 > _CANCELLED * b or b > (_MANY_WAVES if has_waves(f.rest) else _WIDEST):
        return None
    function = beyond_float.function_of(f.rest, h)

    def integrand(y: mp.mpf) -> mp.mpf:
        mean = t * y / b
        phase = w.rate * mean + w.rate**2 * within / 2 - y**2 / (2 * b)
        power = mean_power(w.power, mean + w.rate * within, within)
        return (w.factor * mp.exp(phase) * power).real * function(y)

    with mp.workdps(_DIGITS):
        deviation = mp.sqrt(b)
        ends = {shift.real + k * deviation for k in _ENDS}
        ends |= {mp.mpf(end) for end in _NEAR} | {
            side * mp.mpf(2) ** k for k in range(1, mp.mag(deviation)) for side in (1, -1)
        }
        ends |= {mp.mpf(cut.evalf(_DIGITS)) for cut in break_points(f.rest, h)}
        found = mp.quad(
            integrand, sorted(ends), error=True, method="gauss-legendre", maxdegree=_DEGREE
        )
        return tuple(each / (deviation * mp.sqrt(2 * mp.pi)) for each in found)
