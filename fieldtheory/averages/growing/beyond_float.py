"""Averages over one or two Gaussian signals of any size, of functions that grow in any way.

Functions are known by their logarithms, taken by mpmath, whose exponents have no end.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable
from functools import lru_cache, partial

import mpmath
import numpy as np
import sympy as sp
from mpmath import mp
from numpy.polynomial import hermite_e
from sympy.codegen.cfunctions import log1p
from sympy.functions.elementary.hyperbolic import HyperbolicFunction

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.growing.logarithm_panels import DIGITS, LogarithmPanels, sampled_at
from fieldtheory.averages.integrands.exponentials import factored, of_exponentials
from fieldtheory.averages.integrands.steps import between, branch, break_points, has_steps
from fieldtheory.averages.oscillating.wave_remainders import (
    moments,
    of_two,
    reaches,
    remainder,
    settled,
)
from fieldtheory.averages.oscillating.waves import has_waves
from fieldtheory.averages.sizes.logarithmic_signals import (
    LEAST,
    Function,
    Sampled,
    on_a_line,
    on_a_plane,
)

# The exponents of largest arguments of some functions: exponential ones have no logarithms beyond,
# others have reached their limits, and angles have no digits.
_LONGEST = 1030
_LIMITED = ("exp", "cosh", "sinh", "tanh", "coth", "sech", "csch", "erf", "erfc")
_PERIODIC = ("sin", "cos", "tan")
# Signals between which exponential rates are told, and the smallest of them, above those of powers.
_FAR, _SLOW = (mp.mpf(10) ** 8, 2 * mp.mpf(10) ** 8), 1e-5
# Signals over their standard deviation at which functions are bounded.
_PLACES = tuple(mp.mpf(2) ** k for k in range(-8, 9))


def single(
    first: sp.Expr, second: sp.Expr, h: sp.Symbol, variance: mp.mpf, power: int = 0
) -> mp.mpf:
    """⟨f(h) g(h) (h/√K)^power⟩ of variance K, as a number of mpmath without largest exponent.

    Parameters
    ----------
    first, second : sympy.Expr
        f and g, functions of ``h`` without δ-functions.
    h : sympy.Symbol
    variance : mpf
        K > 0.
    power : int

    Returns
    -------
    mpf
        Infinite if its logarithm exceeds float64.

    Raises
    ------
    QuadratureError
        If the integral does not converge.

    Examples
    --------
    >>> h = sp.Symbol("h", real=True)
    >>> found = single(sp.exp(h), sp.exp(h), h, mp.mpf(10) ** 30)
    >>> mp.nstr(mp.log(found), 15)
    '2.0e+30'
    """
    if has_waves(first) or has_waves(second):
        return _single_wave(first * second, h, variance, power)
    return _single(first, second, h, variance, power)


def about(f: sp.Expr, h: sp.Symbol, mean: mp.mpf, variance: mp.mpf) -> mp.mpf:
    """⟨f(h)⟩ of a mean and a variance, which may be zero, as `single`.

    With the nearest kink or jump a of f and δ = (a − mean)/√V it is e^{−δ²/2} times the average of
    f(a + √V z) e^{−δz}, which is smooth on both sides of zero.

    Examples
    --------
    >>> h = sp.Symbol("h", real=True)
    >>> mp.nstr(about(sp.exp(h / 2), h, mp.mpf(3), mp.mpf(8)), 15)
    '12.1824939607035'
    """
    if not variance:
        return function_of(f, h)(mean)
    if not mean:
        return single(f, sp.S.One, h, variance)
    if has_waves(f):
        raise QuadratureError(f"waves of {f} have no average about {mp.nstr(mean, 6)}")
    cuts = break_points(f, h) if has_steps(f) else [sp.Float(mean, DIGITS)]
    centre = min((mp.mpf(cut.evalf(DIGITS)) for cut in cuts), key=lambda cut: abs(cut - mean))
    tilt = (centre - mean) / variance
    function = function_of(f, h)
    tilted = LogarithmPanels(lambda z: function(centre + z) * mp.exp(-tilt * z))
    with mp.workdps(DIGITS):
        found = _scaled(tilted, variance)
        weight = mp.exp(-((centre - mean) ** 2) / (2 * variance))
    if found is None:
        return mp.inf
    one = _scaled(_panels_of(sp.S.One, h), variance)
    assert one is not None
    return weight * on_a_line(found, one) if found.reference else mp.zero


def pair(
    f: sp.Expr,
    h: sp.Symbol,
    variances: tuple[mp.mpf, mp.mpf],
    correlation: float | mp.mpf,
    decorrelation: float,
) -> mp.mpf:
    """⟨f(x) f(y)⟩ of two signals, as `single`.

    Parameters
    ----------
    f : sympy.Expr
    h : sympy.Symbol
    variances : pair of mpf
    correlation, decorrelation : float
        c, which may be a number of mpmath below float64, and 1 − c.

    Examples
    --------
    >>> h, K = sp.Symbol("h", real=True), mp.mpf(10) ** 30
    >>> mp.nstr(mp.log(pair(sp.sinh(h), h, (K, K), 0.5, 0.5)), 15)
    '1.5e+30'
    """
    c = float(correlation)
    away = _away(c, decorrelation)
    if not has_waves(f):
        return _pair(f, h, variances, c, away)
    left = remainder(f, h)
    if left.steady.exponential:
        raise QuadratureError(
            f"waves of {f} that grow exponentially have no average over two signals of which "
            "float64 does not hold the values"
        )
    if not reaches((left.steady, left.steady), *variances, c, away):
        raise QuadratureError(_too_narrow(f, min(variances), left.steady.variance))
    steady = left.steady.function
    project = lru_cache(partial(_projection, steady, h))
    found = _pair(steady, h, variances, c, away)
    return of_two((left, left), (project, project), variances, c, away, found)


def bound(f: sp.Expr, h: sp.Symbol, variance: mp.mpf) -> mp.mpf:
    """What ⟨f²⟩ does not exceed by orders of magnitude, from f at signals of all sizes.

    Parameters
    ----------
    f : sympy.Expr
        Without waves, and with nothing narrow where signals are so large.
    h : sympy.Symbol
    variance : mpf

    Examples
    --------
    >>> h = sp.Symbol("h", real=True)
    >>> bool(bound(sp.asinh(h), h, mp.mpf(10) ** 300) < 10**7)
    True
    """
    function, root = function_of(f, h), mp.sqrt(variance)
    with mp.workdps(DIGITS):
        sizes = [
            max(abs(function(root * z)), abs(function(-root * z))) ** 2 * mp.exp(-(z**2) / 4)
            for z in _PLACES
        ]
    return mp.inf if any(map(mp.isnan, sizes)) else max(sizes)


def _single(
    first: sp.Expr, second: sp.Expr, h: sp.Symbol, variance: mp.mpf, power: int = 0
) -> mp.mpf:
    f, g = (_scaled(_panels_of(each, h), variance) for each in (first, second))
    if f is None or g is None:
        return mp.inf
    if not (f.reference and g.reference):
        return mp.zero
    return on_a_line(f, g, power)


def _pair(
    f: sp.Expr, h: sp.Symbol, variances: tuple[mp.mpf, mp.mpf], correlation: float, away: float
) -> mp.mpf:
    x, y = (_scaled(_panels_of(f, h), variance) for variance in variances)
    if x is None or y is None:
        return mp.inf
    if not (x.reference and y.reference):
        return mp.zero
    return on_a_plane(x, y, correlation, away)


def _single_wave(F: sp.Expr, h: sp.Symbol, variance: mp.mpf, power: int) -> mp.mpf:
    left = remainder(F, h)
    if variance < left.steady.variance:
        raise QuadratureError(_too_narrow(F, variance, left.steady.variance))
    found = _single(left.steady.function, sp.S.One, h, variance, power)
    if not len(left.places) or not mp.isfinite(found):
        return found
    sums, size = moments(left, np.array(float(variance)), power)
    scale = mp.sqrt(2 * mp.pi * variance) * mp.sqrt(variance) ** power
    windows = np.array([found + mp.mpf(float(value)) / scale for value in sums])
    return settled(windows, abs(found) + mp.mpf(float(size)) / scale, F)


def _projection(f: sp.Expr, h: sp.Symbol, variance: mp.mpf, order: int) -> mp.mpf:
    """⟨f(√V z) He_n(z)⟩."""
    coefficients = hermite_e.herme2poly([0.0] * order + [1.0])
    return sum(
        (
            mp.mpf(float(c)) * _single(f, sp.S.One, h, variance, power)
            for power, c in enumerate(coefficients)
            if c
        ),
        mp.zero,
    )


def _too_narrow(f: sp.Expr, variance: mp.mpf, least: float) -> str:
    return (
        f"the waves of {f} are not resolved at the variance {mp.nstr(variance, 6)}, and have no "
        f"mean below {least:.6g} or where two signals are too similar"
    )


def _away(correlation: float, decorrelation: float) -> float:
    """1 − |c|."""
    return decorrelation if correlation > 0 else 1 + correlation


def _scaled(panels: LogarithmPanels, variance: mp.mpf) -> Function | None:
    """None where the function is beyond all logarithms."""
    function = panels.function
    with mp.workdps(DIGITS):
        root = mp.sqrt(variance)

        def at(rho: float) -> tuple[mp.mpf, mp.mpf]:
            z = root * mp.exp(rho)
            return function(z), function(-z)

        if not mp.isfinite(root):
            return None
        reference = sum(map(abs, at(0.0)))
        if not mp.isfinite(reference):
            return None
        near = abs(function(mp.one)) + abs(function(-mp.one))
        # Where functions decay, signals that are small against 1 have the weight.
        below = max(float(mp.log(root)), 0.0) if near > reference else 0.0

    def sampled(limits: np.ndarray, most: int) -> Sampled:
        found = panels.sampled(root, reference, limits, most)
        return sampled_at(at, reference) if found is None else found

    return Function(sampled, reference, LEAST - below)


@lru_cache(maxsize=32)
def _panels_of(f: sp.Expr, h: sp.Symbol) -> LogarithmPanels:
    return LogarithmPanels(function_of(f, h))


@lru_cache(maxsize=64)
def function_of(f: sp.Expr, h: sp.Symbol) -> Callable[[mp.mpf], mp.mpf]:
    """f of numbers of mpmath, its limits where these are endless."""
    try:
        kinks = break_points(f, h) if has_steps(f) else []
    except ValueError:
        kinks = []
    if not kinks:
        # There are none, or steps of which nothing is seen.
        return _smooth(f, h)
    # Of eʰ (1 − θ(h)) what is left for h > 0 is no rounding of eʰ.
    sides = [_smooth(branch(f, h, middle), h) for middle in between(kinks)]
    places = [mp.mpf(kink.evalf(DIGITS)) for kink in kinks]
    return lambda z: sides[bisect(places, z)](z)


def _smooth(f: sp.Expr, h: sp.Symbol) -> Callable[[mp.mpf], mp.mpf]:
    near = _evaluated(f, h)
    # Differences of hyperbolic functions, as 1 − tanh(h), cancel far out.
    far = _evaluated(factored(of_exponentials(f)), h) if f.has(HyperbolicFunction) else near

    def function(z: mp.mpf) -> mp.mpf:
        value = (far if abs(z) > 1 else near)(z)
        # tanh has a limit as it stands, quotients of exponentials have none.
        value = near(z) if mp.isnan(value) else value
        return _endless(far, mp.sign(z)) if mp.isnan(value) else value

    return function


def _evaluated(f: sp.Expr, h: sp.Symbol) -> Callable[[mp.mpf], mp.mpf]:
    powers = f.replace(
        lambda e: e.is_Pow and e.exp.has(h), lambda e: sp.exp(e.exp * sp.log(e.base))
    )
    # Of ln(1 + e^{-h}) nothing else is left far out.
    powers = powers.replace(
        sp.log, lambda e: log1p(e - 1) if e.is_Add and 1 in e.args else sp.log(e)
    )
    guarded = {name: _guarded(name) for name in (*_LIMITED, *_PERIODIC)} | {"log1p": _log1p}
    return sp.lambdify([h], powers, modules=[guarded, "mpmath"], cse=True)


def _log1p(x: mp.mpf) -> mp.mpf:
    """ln(1 + x); mpmath's takes long where no digits are lost."""
    return mpmath.log1p(x) if mp.mag(x) < 0 else mpmath.log(1 + x)


def _guarded(name: str) -> Callable:
    """A function that takes its limit, infinite or not, instead of endless digits, or has none."""
    function = getattr(mpmath, name)

    def guarded(x: mp.mpf) -> mp.mpf:
        if not x or mp.mag(x) < _LONGEST:
            return function(x)
        if name in _PERIODIC:
            raise QuadratureError(f"{name} of signals larger than 2^{_LONGEST} has no digits")
        return function(mp.inf if x > 0 else -mp.inf)

    return guarded


def _endless(function: Callable[[mp.mpf], mp.mpf], side: mp.mpf) -> mp.mpf:
    """Nothing or infinity, as a function that is ∞/∞ or 0·∞ decays or grows exponentially."""
    first, second = (function(side * place) for place in _FAR)
    rate = mp.log(abs(second / first)) / (_FAR[1] - _FAR[0]) if first and second else mp.nan
    if not abs(rate) > _SLOW:
        raise QuadratureError("the size of a function of such large signals is not known")
    return mp.inf if rate > 0 else mp.zero
