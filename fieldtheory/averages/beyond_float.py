"""Averages over one or two Gaussian signals of any size, of functions that grow in any way.

With h = √K z, and z = e^ρ on either side of zero,

    ⟨F(h)⟩ = Σ_± ∫ dρ e^ρ F(±√K e^ρ) e^{-z²/2}/√(2π),

is the sum of an integrand on equidistant ρ, which vanishes on both sides faster than any power of
their spacing. Functions are known by their logarithms, taken by mpmath, whose exponents have no
end; the integral extends over the box in which the integrand is not negligible. It is found by
zooming in, and narrow where F grows exponentially: then the signals that count are far out.

Two signals take polar coordinates z = r (cos θ, sin θ) of one quadrant, r = e^ρ and
tan θ = e^v, v = s sinh w with s² = 1 − c², so that no correlation is too close to 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import mpmath
import numpy as np
import sympy as sp
from mpmath import mp
from numpy.polynomial import chebyshev

from fieldtheory.averages.errors import QuadratureError

# Digits of the functions.
_DIGITS = 30
# ρ of the smallest and of the largest signals: beyond, e^{-z²/2} is the logarithm of nothing.
_LEAST, _LARGEST = -45.0, 354.0
# What is negligible: e^-34; logarithms are known to so many times their size.
_FAINT, _ROUNDING = 34.0, 1e-15
# The exponents of largest arguments of exponential functions: values have no logarithms beyond.
_LONGEST = 1030
# Nodes of a panel, how small the last of their coefficients are, and how many panels there are
# to find the box, and to integrate.
_TERMS, _RESOLVED, _FEW, _MANY = 24, 4e-15, 8, 160
# Spacings of a box: to find the next one, and to integrate, where doubling must not matter.
_COARSE, _FINE, _FINEST, _TOLERANCE = 16, 32, 1024, 1e-11
_LARGEST_ANGLE, _PARALLEL, _STEPS = 60.0, 1e-18, 300


class Values(NamedTuple):
    """f(√K z) and f(−√K z) for z > 0, over a reference: signs and logarithms, shape (2, ...)."""

    signs: np.ndarray
    logs: np.ndarray


Sampled = Callable[[np.ndarray], Values]
# Values at nodes, logarithms of what they are over, and how large those that cancel in these are.
Integrand = Callable[..., tuple[np.ndarray, np.ndarray, np.ndarray]]
# The limits of ρ of every function in a box.
Reach = Callable[[np.ndarray], Sequence[np.ndarray]]


class Scaled(NamedTuple):
    """A function of ρ = ln z, the reference by which it is divided, ln √K, and if it decays."""

    at: Callable[[float], tuple[mp.mpf, mp.mpf]]
    reference: mp.mpf
    size: float
    decays: bool


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
    f, g = (_scaled(each, h, variance) for each in (first, second))
    if f is None or g is None:
        return mp.inf
    if not (f.reference and g.reference):
        return mp.zero
    odd = np.array([[1.0], [(-1.0) ** power]])

    def integrand(sample: tuple[Sampled, ...], rho: np.ndarray) -> tuple:
        one, two = (each(rho.ravel()) for each in sample)
        logs = one.logs + two.logs
        size = logs.max(axis=0)
        value = (odd * one.signs * two.signs * _weights(logs - size)).sum(axis=0)
        return value, size + (1 + power) * rho.ravel() - np.exp(2 * rho.ravel()) / 2, size

    box = np.array([[_lowest(f, g), _LARGEST]])
    found = _integral(integrand, (f, g), box, lambda box: (box[0], box[0]))
    return found * f.reference * g.reference / mp.sqrt(2 * mp.pi)


def pair(
    f: sp.Expr,
    h: sp.Symbol,
    variances: tuple[mp.mpf, mp.mpf],
    correlation: float,
    decorrelation: float,
) -> mp.mpf:
    """⟨f(x) f(y)⟩ of two signals, as `single`.

    With G_± the density of correlation ±c in one quadrant, and f_e and f_o the even and the odd
    part of f, the four quadrants together are

        T_+ G_+ + T_- G_- = 2 f_e f_e (G_+ + G_-) + 2 f_o f_o (G_+ − G_-),
        T_± = f(x) f(±y) + f(−x) f(∓y),

    of which the sum with the smaller terms is taken: weak correlations of odd functions cancel in
    one of them, functions of one side in the other.

    Parameters
    ----------
    f : sympy.Expr
    h : sympy.Symbol
    variances : pair of mpf
    correlation, decorrelation : float
        c and 1 − c.

    Examples
    --------
    >>> h, K = sp.Symbol("h", real=True), mp.mpf(10) ** 30
    >>> mp.nstr(mp.log(pair(sp.sinh(h), h, (K, K), 0.5, 0.5)), 15)
    '1.5e+30'
    """
    x, y = (_scaled(f, h, variance) for variance in variances)
    if x is None or y is None:
        return mp.inf
    if not (x.reference and y.reference):
        return mp.zero
    c, away = abs(correlation), decorrelation if correlation > 0 else 1 + correlation
    # No function tells such signals from parallel ones.
    away = max(away, _PARALLEL**2 / 2)
    s = np.sqrt(away * (1 + c))

    def integrand(sample: tuple[Sampled, ...], rho: np.ndarray, w: np.ndarray) -> tuple:
        v, r2 = s * np.sinh(w), np.exp(2 * rho)
        # cos θ, sin θ, sin 2θ and 1 − sin 2θ for tan θ = e^v.
        cos, sin = -np.logaddexp(0, 2 * v) / 2, -np.logaddexp(0, -2 * v) / 2
        twice = 1 / np.cosh(v)
        missing = 2 * np.sinh(v / 2) ** 2 * twice
        one = sample[0]((rho + cos).ravel())
        two = sample[1]((rho + sin).ravel())
        gap, density = c * twice / s**2 * r2, (away + c * missing) / (2 * s**2) * r2
        value, logs, size = _four_quadrants(one, two, gap.ravel(), correlation < 0)
        measure = 2 * rho + np.log(np.cosh(w)) + np.log(twice / 2)
        return value, logs + (measure - density).ravel(), size + density.ravel()

    angle = np.arcsinh(_LARGEST_ANGLE / s)
    box = np.array([[_lowest(x, y), _LARGEST], [-angle, angle]])

    def reach(box: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        v = s * np.sinh(box[1])
        cos, sin = -np.logaddexp(0, 2 * v) / 2, -np.logaddexp(0, -2 * v) / 2
        return box[0] + cos[::-1], box[0] + sin

    found = _integral(integrand, (x, y), box, reach)
    return found * x.reference * y.reference / (2 * mp.pi)


def _four_quadrants(
    one: Values, two: Values, gap: np.ndarray, opposite: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """T_+ G_+ + T_- G_- over the larger density, the logarithm to add, and its parts."""
    logs, signs = (
        _products(one.logs, two.logs, np.add),
        _products(one.signs, two.signs, np.multiply),
    )
    # The larger density is that of the first two, or of the last two.
    logs[:2] -= gap if opposite else 0
    logs[2:] -= 0 if opposite else gap
    logs = np.where(np.isnan(logs), -np.inf, logs)
    top = logs.max(axis=0)
    terms = signs * _weights(logs - top)
    sides, of_sides = terms.sum(axis=0), np.abs(terms).sum(axis=0)
    sizes = one.logs.max(axis=0), two.logs.max(axis=0)
    (f, f_), (g, g_) = (
        each.signs * _weights(each.logs - size)
        for each, size in zip((one, two), sizes, strict=True)
    )
    even, odd = (f + f_) * (g + g_) / 2, (f - f_) * (g - g_) / 2
    both, differ = even * (1 + np.exp(-gap)), odd * np.expm1(-gap) * (1 if opposite else -1)
    scale = np.exp(sizes[0] + sizes[1] - top)
    parts, of_parts = (both + differ) * scale, (np.abs(both) + np.abs(differ)) * scale
    suppressed = (logs.argmax(axis=0) < 2) == opposite
    size = np.abs(sizes[0]) + np.abs(sizes[1]) + np.where(suppressed, gap, 0.0)
    return np.where(of_parts < of_sides, parts, sides), top, size


def _products(x: np.ndarray, y: np.ndarray, operation: np.ufunc) -> np.ndarray:
    """Of f(x) f(y), f(−x) f(−y), f(x) f(−y), f(−x) f(y)."""
    return np.stack([operation(x[i], y[j]) for i, j in ((0, 0), (1, 1), (0, 1), (1, 0))])


@np.errstate(over="ignore", invalid="ignore")
def _integral(
    integrand: Integrand, functions: tuple[Scaled, ...], box: np.ndarray, reach: Reach
) -> mp.mpf:
    """∫ of value e^exponent over a box, shape (variables, 2), of which the most part is nothing."""
    whole = box
    for _ in range(_STEPS):
        sample = tuple(
            _sampled(f, limits, _FEW) for f, limits in zip(functions, reach(box), strict=True)
        )
        axes = [np.linspace(low, high, _COARSE + 1) for low, high in box]
        logs = _logarithms(*integrand(sample, *np.meshgrid(*axes, indexing="ij"))[:2])
        logs = logs.reshape([len(axis) for axis in axes])
        top = logs.max()
        outermost = logs.reshape(len(axes[0]), -1).max(axis=1).argmax() == _COARSE
        if np.isposinf(top) or (outermost and box[0, 1] == whole[0, 1]):
            return mp.inf
        if np.isneginf(top):
            return mp.zero
        visible = logs > top - max(_FAINT, 30 * _ROUNDING * abs(top))
        if 30 * _ROUNDING * abs(top) > _FAINT and all(
            len(set(each)) > 2 for each in np.nonzero(visible)
        ):
            # Widths do not count beside such a logarithm, known between neighbours.
            return mp.exp(mp.mpf(float(top)))
        ends = [_around(axis, visible, number) for number, axis in enumerate(axes)]
        found = np.clip(ends, whole[:, :1], whole[:, 1:])
        ratio = np.prod((found[:, 1] - found[:, 0]) / (box[:, 1] - box[:, 0]))
        if 0.9 < ratio <= 1:
            break
        box = found
    return _summed(integrand, functions, box, reach)


def _around(axis: np.ndarray, visible: np.ndarray, number: int) -> tuple[float, float]:
    """A spacing around what is visible, twice as far out where that reaches an end."""
    others = tuple(n for n in range(visible.ndim) if n != number)
    places, step = np.nonzero(visible.any(axis=others))[0], axis[1] - axis[0]
    low, high = (_COARSE if place in (0, _COARSE) else 1 for place in (places[0], places[-1]))
    return axis[places[0]] - low * step, axis[places[-1]] + high * step


def _summed(
    integrand: Integrand, functions: tuple[Scaled, ...], box: np.ndarray, reach: Reach
) -> mp.mpf:
    sample = tuple(
        _sampled(f, limits, _MANY) for f, limits in zip(functions, reach(box), strict=True)
    )
    sums: list[tuple[float, float, float]] = []
    n = _FINE
    while n <= _FINEST:
        axes = [np.linspace(low, high, n + 1) for low, high in box]
        values, logs, size = integrand(sample, *np.meshgrid(*axes, indexing="ij"))
        seen = _logarithms(values, logs)
        top = seen.max()
        terms = values * _weights(logs - top)
        # Logarithms are rounded, and may cancel those of the density.
        rounding = 4 * _ROUNDING * np.abs(size[seen > top - 2]).max()
        step = np.prod((box[:, 1] - box[:, 0]) / n)
        sums.append((float(terms.sum() * step), float(np.abs(terms).sum() * step), float(top)))
        if len(sums) > 1:
            (before, _, old), (now, total, top) = sums[-2:]
            change = abs(now - before * np.exp(old - top))
            if change <= (_TOLERANCE + rounding) * total:
                return mp.mpf(now) * mp.exp(mp.mpf(top))
        n *= 2
    raise QuadratureError(
        f"an average of wide signals did not converge: {_FINEST} nodes change it by a relative "
        f"{change / total:.1e}"
    )


def _lowest(*functions: Scaled) -> float:
    """ρ of the smallest signals; where functions decay, those small against 1 have the weight."""
    return _LEAST - max(f.size if f.decays else 0.0 for f in functions)


def _logarithms(values: np.ndarray, exponents: np.ndarray) -> np.ndarray:
    """ln|value| + exponent: infinite where the exponent is, nothing where the density is zero."""
    with np.errstate(divide="ignore"):
        found = np.where(values == 0, -np.inf, np.log(np.abs(values)) + exponents)
    found = np.where(np.isnan(found), -np.inf, found)
    return np.where(np.isposinf(exponents), np.inf, found)


def _weights(logs: np.ndarray) -> np.ndarray:
    return np.exp(np.where(np.isnan(logs), -np.inf, logs))


def _sampled(function: Scaled, limits: np.ndarray, most: int) -> Sampled:
    """Polynomials on panels for the logarithms where at most so many do, else every value."""
    angles = np.pi * (np.arange(_TERMS) + 0.5) / _TERMS
    nodes = np.cos(angles)
    transform = 2 / _TERMS * np.cos(np.outer(np.arange(_TERMS), angles))
    transform[0] /= 2
    waiting, found = [tuple(limits)], []
    while waiting:
        left, right = waiting.pop()
        values = _values(function, (left + right) / 2 + (right - left) / 2 * nodes)
        finite = np.isfinite(values.logs).all()
        if finite and (values.signs == values.signs[:, :1]).all():
            terms = transform @ values.logs.T
            if np.abs(terms[-3:]).max() < _RESOLVED * (1 + np.abs(terms).max()):
                found.append((left, right, terms, values.signs[:, 0]))
                continue
        if len(found) + len(waiting) + 2 > most:
            return lambda rho: _values(function, rho)
        waiting += [((left + right) / 2, right), (left, (left + right) / 2)]
    starts, ends, series, signs = map(np.array, zip(*found, strict=True))

    def interpolated(rho: np.ndarray) -> Values:
        panel = np.clip(np.searchsorted(starts, rho, side="right") - 1, 0, None)
        x = (2 * rho - starts[panel] - ends[panel]) / (ends - starts)[panel]
        logs = chebyshev.chebval(x, series[panel].transpose(1, 2, 0), tensor=False)
        return Values(signs[panel].T, logs)

    return interpolated


def _values(function: Scaled, rho: np.ndarray) -> Values:
    with mp.workdps(_DIGITS):
        both = [function.at(float(place)) for place in rho]
        signs = np.array([[float(mp.sign(v)) for v in sides] for sides in both]).T
        logs = [[_logarithm(v, function.reference) for v in sides] for sides in both]
    return Values(signs, np.array(logs).T)


def _logarithm(value: mp.mpf, reference: mp.mpf) -> float:
    if not value or not mp.isfinite(value):
        return np.inf if value else -np.inf
    # A quotient near one, of which the logarithm has all digits.
    return float(mp.log(abs(value) / reference))


def _scaled(f: sp.Expr, h: sp.Symbol, variance: mp.mpf) -> Scaled | None:
    """None where f is beyond all logarithms."""
    function = _function(f, h)
    with mp.workdps(_DIGITS):
        root = mp.sqrt(variance)

        def at(rho: float) -> tuple[mp.mpf, mp.mpf]:
            z = root * mp.exp(rho)
            return function(z), function(-z)

        if not mp.isfinite(root):
            return None
        reference = sum(map(abs, at(0.0)))
        if not mp.isfinite(reference):
            return None
        size = max(float(mp.log(root)), 0.0)
        near = abs(function(mp.one)) + abs(function(-mp.one))
        return Scaled(at, reference, size, bool(near > reference))


@lru_cache(maxsize=64)
def _function(f: sp.Expr, h: sp.Symbol) -> Callable[[mp.mpf], mp.mpf]:
    powers = f.replace(
        lambda e: e.is_Pow and e.exp.has(h), lambda e: sp.exp(e.exp * sp.log(e.base))
    )
    guarded = {name: _guarded(getattr(mpmath, name)) for name in ("exp", "cosh", "sinh")}
    return sp.lambdify([h], powers, modules=[guarded, "mpmath"], cse=True)


def _guarded(function: Callable) -> Callable:
    """An exponential function that is infinite (or nothing) instead of endless."""

    def guarded(x: mp.mpf) -> mp.mpf:
        if not x or mp.mag(x) < _LONGEST:
            return function(x)
        return function(mp.inf if x > 0 else -mp.inf)

    return guarded
