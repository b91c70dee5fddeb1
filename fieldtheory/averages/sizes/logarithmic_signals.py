"""Averages of one or two Gaussian signals in the logarithms of their sizes.

With z = e^ρ on either side of zero,

    ⟨F(z)⟩ = Σ_± ∫ dρ e^ρ F(±e^ρ) e^{-z²/2}/√(2π),

is the sum of an integrand on equidistant ρ, which vanishes on both sides faster than any power of
their spacing: F may grow in any way, and have any power at zero. The integral extends over the
box in which the integrand is not negligible. It is found by zooming in, and narrow where F grows
exponentially: then the signals that count are far out.

Two signals take polar coordinates z = r (cos θ, sin θ) of one quadrant, r = e^ρ and
tan θ = e^v, v = s sinh w with s² = 1 − c², so that no correlation is too close to 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from mpmath import mp

from fieldtheory.averages.errors import QuadratureError

# ρ of the smallest and of the largest signals: beyond, e^{-z²/2} is the logarithm of nothing.
LEAST, LARGEST = -45.0, 354.0
# What is negligible: e^-34, at the ends e^-60; logarithms are known to so many times their size.
_FAINT, _FALLEN, _ROUNDING = 34.0, 60.0, 1e-15
# How many panels of ρ functions may take, to find the box and to integrate.
_FEW, _MANY = 8, 160
# Spacings of a box, to find the next one and to integrate, where doubling must not matter, and
# the most nodes.
_COARSE, _FINE, _NODES, _TOLERANCE = 16, 32, 2**20, 1e-11
_PARALLEL, _STEPS, _BLIND = 1e-18, 300, 5
_DIVERGES = "the average diverges at zero, where a function grows too fast"


class Values(NamedTuple):
    """f(√K z) and f(−√K z) for z > 0, over a reference: signs and logarithms, shape (2, ...)."""

    signs: np.ndarray
    logs: np.ndarray


Sampled = Callable[[np.ndarray], Values]
# Values at nodes, logarithms of what they are over, and how large those that cancel in these are.
Integrand = Callable[..., tuple[np.ndarray, np.ndarray, np.ndarray]]
# The limits of ρ of every function in a box.
Reach = Callable[[np.ndarray], Sequence[np.ndarray]]


class Function(NamedTuple):
    """A function of ρ = ln z.

    Parameters
    ----------
    sampled : callable
        (limits of ρ, number of panels) -> `Sampled`.
    reference : mpf
        By which it is divided.
    least, largest : float
        ρ of the smallest and of the largest signals that count.
    power : float
        As which power it behaves at zero, if that is negative.
    """

    sampled: Callable[[np.ndarray, int], Sampled]
    reference: mp.mpf
    least: float = LEAST
    largest: float = LARGEST
    power: float = 0.0


def on_a_line(f: Function, g: Function, power: int = 0, opposite: bool = False) -> mp.mpf:
    """⟨f(x) g(y) z^power⟩ of y = x, or −x if ``opposite``, in units of their standard deviations.

    Parameters
    ----------
    f, g : Function
    power : int
    opposite : bool

    Raises
    ------
    QuadratureError
        If the integral does not converge.
    """
    falls = 1 + power + f.power + g.power
    if falls <= 0:
        raise QuadratureError(_DIVERGES)
    odd = np.array([[1.0], [(-1.0) ** power]])

    def integrand(sample: tuple[Sampled, ...], rho: np.ndarray) -> tuple:
        one, two = (each(rho.ravel()) for each in sample)
        if opposite:
            two = Values(two.signs[::-1], two.logs[::-1])
        logs = one.logs + two.logs
        size = logs.max(axis=0)
        value = (odd * one.signs * two.signs * _weights(logs - size)).sum(axis=0)
        return value, size + (1 + power) * rho.ravel() - np.exp(2 * rho.ravel()) / 2, size

    box = np.array([[min(f.least, g.least, -_FALLEN / falls), min(f.largest, g.largest)]])
    found = _integral(integrand, (f, g), box, lambda box: (box[0], box[0]))
    return found * f.reference * g.reference / mp.sqrt(2 * mp.pi)


def on_a_plane(f: Function, g: Function, correlation: float, away: float) -> mp.mpf:
    """⟨f(x) g(y)⟩ of two signals.

    With G_± the density of correlation ±c in one quadrant, and f_e and f_o the even and the odd
    part of f, the four quadrants together are

        T_+ G_+ + T_- G_- = 2 f_e g_e (G_+ + G_-) + 2 f_o g_o (G_+ − G_-),
        T_± = f(x) g(±y) + f(−x) g(∓y),

    of which the sum with the smaller terms is taken: weak correlations of odd functions cancel in
    one of them, functions of one side in the other.

    Parameters
    ----------
    f, g : Function
    correlation, away : float
        c and 1 − |c|.

    Raises
    ------
    QuadratureError
        If the integral does not converge.
    """
    if min(f.power, g.power) <= -1:
        raise QuadratureError(_DIVERGES)
    c = abs(correlation)
    # No function tells such signals from parallel ones.
    away = max(away, _PARALLEL**2 / 2)
    s = np.sqrt(away * (1 + c))

    # Powers that nearly diverge need ever smaller signals: spacings grow with ρ = u − e^{-u}.
    tail = min(f.power, g.power) < 0

    def sizes(u: np.ndarray) -> np.ndarray:
        return u - np.exp(-u) if tail else u

    def integrand(sample: tuple[Sampled, ...], u: np.ndarray, w: np.ndarray) -> tuple:
        rho, v = sizes(u), s * np.sinh(w)
        r2 = np.exp(2 * rho)
        # ln cos θ, ln sin θ, sin 2θ and 1 − sin 2θ for tan θ = e^v.
        cos, sin = -np.logaddexp(0, 2 * v) / 2, -np.logaddexp(0, -2 * v) / 2
        twice = 1 / np.cosh(v)
        missing = 2 * np.sinh(v / 2) ** 2 * twice
        one = sample[0]((rho + cos).ravel())
        two = sample[1]((rho + sin).ravel())
        gap, density = c * twice / s**2 * r2, (away + c * missing) / (2 * s**2) * r2
        value, logs, size = _four_quadrants(one, two, gap.ravel(), correlation < 0)
        measure = 2 * rho + np.log(np.cosh(w)) + np.log(twice / 2)
        if tail:
            measure = measure + np.log1p(np.exp(-u))
        return value, logs + (measure - density).ravel(), size + density.ravel()

    towards_x, towards_y = (np.arcsinh(_FALLEN / (1 + each.power) / s) for each in (g, f))
    least = min(f.least, g.least, -_FALLEN / (2 + f.power + g.power))
    least = -np.log(-least) if tail else least
    box = np.array([[least, min(f.largest, g.largest)], [-towards_x, towards_y]])

    def reach(box: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        v = s * np.sinh(box[1])
        cos, sin = -np.logaddexp(0, 2 * v) / 2, -np.logaddexp(0, -2 * v) / 2
        return sizes(box[0]) + cos[::-1], sizes(box[0]) + sin

    found = _integral(integrand, (f, g), box, reach)
    return found * f.reference * g.reference / (2 * mp.pi)


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
    integrand: Integrand, functions: tuple[Function, ...], box: np.ndarray, reach: Reach
) -> mp.mpf:
    """∫ of value e^exponent over a box, shape (variables, 2), of which the most part is nothing."""
    whole = box
    before: list[np.ndarray] = []
    for step in range(_STEPS):
        sample = tuple(
            f.sampled(limits, _FEW) for f, limits in zip(functions, reach(box), strict=True)
        )
        axes = [np.linspace(low, high, _COARSE + 1) for low, high in box]
        logs = _logarithms(*integrand(sample, *np.meshgrid(*axes, indexing="ij"))[:2])
        logs = logs.reshape([len(axis) for axis in axes])
        top = logs.max()
        outermost = logs.reshape(len(axes[0]), -1).max(axis=1).argmax() == _COARSE
        # The first boxes are too coarse to tell.
        if np.isposinf(top) or (outermost and box[0, 1] == whole[0, 1] and step > _BLIND):
            return mp.inf
        if np.isneginf(top):
            return mp.zero
        rounding = 30 * _ROUNDING * abs(top)
        visible = logs > top - max(_FAINT, rounding)
        if rounding > _FAINT and all(len(set(each)) > 2 for each in np.nonzero(visible)):
            # Widths do not count beside such a logarithm, known between neighbours.
            return mp.exp(mp.mpf(float(top)))
        ends = [_around(axis, visible, number) for number, axis in enumerate(axes)]
        found = np.clip(ends, whole[:, :1], whole[:, 1:])
        ratio = np.prod((found[:, 1] - found[:, 0]) / (box[:, 1] - box[:, 0]))
        if 0.9 < ratio <= 1:
            break
        before.append(box)
        box = found
        if ratio > 1 and any((box == each).all() for each in before):
            break
    return _summed(integrand, functions, box, reach, box == whole)


def _around(axis: np.ndarray, visible: np.ndarray, number: int) -> tuple[float, float]:
    """A spacing around what is visible, twice as far out where that reaches an end."""
    others = tuple(n for n in range(visible.ndim) if n != number)
    places, step = np.nonzero(visible.any(axis=others))[0], axis[1] - axis[0]
    low, high = (_COARSE if place in (0, _COARSE) else 1 for place in (places[0], places[-1]))
    return axis[places[0]] - low * step, axis[places[-1]] + high * step


def _summed(
    integrand: Integrand,
    functions: tuple[Function, ...],
    box: np.ndarray,
    reach: Reach,
    cut: np.ndarray,
) -> mp.mpf:
    """``cut``, shape (variables, 2): where the box ends though the integrand may not."""
    sample = tuple(
        f.sampled(limits, _MANY) for f, limits in zip(functions, reach(box), strict=True)
    )
    sums: list[tuple[float, float, float]] = []
    n = _FINE
    while n ** len(box) <= _NODES:
        axes = [np.linspace(low, high, n + 1) for low, high in box]
        values, logs, size = integrand(sample, *np.meshgrid(*axes, indexing="ij"))
        seen = _logarithms(values, logs)
        top = seen.max()
        if np.isinf(top):
            return mp.inf if top > 0 else mp.zero
        if len(sums) == 0 and _edges(seen.reshape([n + 1] * len(box)), cut) > top - _FAINT:
            raise QuadratureError("an average needs signals of more sizes than are taken")
        terms = values * _weights(logs - top)
        # Logarithms are rounded, and may cancel those of the density.
        rounding = 4 * _ROUNDING * np.abs(size[seen >= top - 2]).max()
        step = np.prod((box[:, 1] - box[:, 0]) / n)
        sums.append((float(terms.sum() * step), float(np.abs(terms).sum() * step), float(top)))
        if len(sums) > 1:
            (before, _, old), (now, total, top) = sums[-2:]
            change = abs(now - before * np.exp(old - top))
            if change <= (_TOLERANCE + rounding) * total:
                return mp.mpf(now) * mp.exp(mp.mpf(top))
        n *= 2
    raise QuadratureError(
        f"an average did not converge: {_NODES} nodes change it by a relative {change / total:.1e}"
    )


def _edges(logs: np.ndarray, cut: np.ndarray) -> float:
    """The largest value where an axis is cut, at its start or at its end."""
    ends = [logs.swapaxes(0, n)[[0, -1]][each].ravel() for n, each in enumerate(cut)]
    return np.concatenate(ends).max(initial=-np.inf)


def _logarithms(values: np.ndarray, exponents: np.ndarray) -> np.ndarray:
    """ln|value| + exponent: infinite where the exponent is, nothing where the density is zero."""
    with np.errstate(divide="ignore"):
        found = np.where(values == 0, -np.inf, np.log(np.abs(values)) + exponents)
    found = np.where(np.isnan(found), -np.inf, found)
    return np.where(np.isposinf(exponents), np.inf, found)


def _weights(logs: np.ndarray) -> np.ndarray:
    return np.exp(np.where(np.isnan(logs), -np.inf, logs))
