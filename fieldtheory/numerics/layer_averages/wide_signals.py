"""Averages of pairs of signals much wider than what φ does around zero.

φ is its two lines (see `asymptotes`), smoothed over a width τ, and a local rest g, of which little
is left beyond some τ:

    φ(x) = A x + B |x + ξ| + C + D sign(x + ξ), averaged over ξ ~ N(0, τ²), + g(x)

Smoothed lines have the averages of lines at the variances K_xx + τ², K_yy + τ² and the covariance
K_xy, and a mean given the other signal, x|y ~ N(K_xy y/K_yy, det/K_yy). So that

    ⟨φφ⟩ = ⟨ℓℓ⟩ + ∫dy p(y) g(y) ⟨ℓ(x)|y⟩ + ∫dx p(x) g(x) ⟨ℓ(y)|x⟩ + ∫∫ g(x) g(y) p(x, y)

needs integrals over the width of g alone, whatever the variances. Likewise for ⟨φ'φ'⟩, with
φ' = A + B sign. With y = s x + w v, v ~ N(0, 1), the last integral is over v where w is small
against τ (for narrow angles), and else a sum over m × m points that interpolate p(x, y).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import sympy as sp
from scipy.special import erf

from fieldtheory.averages.integrals.quadrature import composite, legendre
from fieldtheory.averages.integrals.vectorising import kinks_of, vectorised
from fieldtheory.averages.integrands.steps import first_derivative, slope_of_pieces
from fieldtheory.networks.activations import h
from fieldtheory.numerics.layer_averages.asymptotes import Lines, angle_of, lines_of

# What is left of g at its ends, relative to its largest value, besides rounding of φ.
_LEFT, _ROUNDING = 1e-17, 4 * np.finfo(float).eps
# Distances at which φ is looked at, as powers of two.
_PLACES = np.exp2(np.arange(-40, 80) / 4)
# Ends of g over τ, reach of the smoothed lines in τ, and width of panels in τ.
_ENDS, _REACH, _WIDTH = 16.0, 8.6, 2.5
# Nodes on a panel and those that check them, halvings tried, and the largest error.
_NODES, _CHECKS, _HALVINGS, _ERROR = 20, 28, 4, 1e-14
# Points that interpolate the density, over the half width of g and from w = τ/2 on.
_POINTS, _FEW, _PER_WIDTH = (16, 24, 40, 64, 112, 176, 304), 16, 9.0
# Largest |v|, and Gauss-Hermite nodes where g has no kinks, for w up to a fraction of τ; else
# panels as wide as those of g, two at least, growing by this factor beside kinks that meet.
_BELL, _HERMITE, _NARROW, _GROWTH = 8.5, 12, 0.125, 4.0
# Numbers in an array at once.
_BLOCK = 1 << 17


Function = Callable[[np.ndarray], np.ndarray]
Line = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Local:
    """A function that vanishes outside of an interval, but for rounding.

    Parameters
    ----------
    f : callable
    cuts : ndarray
        Panels from end to end, on each of which ``_NODES`` nodes resolve it.
    kinks : tuple of float
    tau : float
        The scale on which it changes.
    """

    f: Function
    cuts: np.ndarray
    kinks: tuple[float, ...]
    tau: float

    @lru_cache(maxsize=256)  # noqa: B019
    def at_nodes(self, halvings: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Nodes and weights times g, on panels graded towards zero."""
        graded = self.cuts[-1] * np.exp2(-np.arange(halvings + 1.0))
        cuts = np.unique(np.clip([*self.cuts, 0, *graded, *-graded], *self.cuts[[0, -1]]))
        x, weights = composite(cuts, _NODES)
        return x, weights * self.f(x)

    def size(
        self, K_xx: np.ndarray, K_yy: np.ndarray, c: np.ndarray, delta: np.ndarray
    ) -> np.ndarray:
        """About ⟨|g(x) g(y)|⟩."""
        total = np.abs(self.at_nodes()[1]).sum()
        width = np.sqrt(np.minimum(K_xx, K_yy)) * _sine(c, delta)
        wide = np.sqrt(np.maximum(K_xx, K_yy))
        return total**2 / (2 * np.pi * wide * np.maximum(width, self.tau))


def _total(terms: list[np.ndarray], size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sum, and that of the moduli with another size."""
    each = np.stack(terms)
    return each.sum(axis=0), np.abs(each).sum(axis=0) + size


def _sine(c: np.ndarray, delta: np.ndarray) -> np.ndarray:
    return np.sqrt(delta * np.minimum(1 + c, 2 - delta))


class WideSignals(NamedTuple):
    """φ as smoothed lines and local functions, for variances large against τ².

    Parameters
    ----------
    lines : Lines
    value, slope : Local
        What the lines lack of φ and φ'.
    """

    lines: Lines
    value: Local
    slope: Local

    @property
    def tau(self) -> float:
        """τ."""
        return self.value.tau

    def covariance(
        self, K_xx: np.ndarray, K_yy: np.ndarray, c: np.ndarray, delta: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """⟨φφ⟩ and the size of its terms, all arrays of shape (m,); δ = 1 − c."""
        A, B, C, D = self.lines
        x, y, near, turned = self._smoothed(K_xx, K_yy, c, delta)
        K_xy, root = c * np.sqrt(K_xx * K_yy), np.sqrt(2 / np.pi)
        sine = np.sqrt(x * y * near * (2 - near))
        bent = 2 / np.pi * B**2 * (sine + K_xy * turned)
        ends = A * D * K_xy * root * (1 / np.sqrt(x) + 1 / np.sqrt(y))
        ends += B * C * root * (np.sqrt(x) + np.sqrt(y))
        steps = C**2 + D**2 * (2 / np.pi * turned)

        def line(mean: np.ndarray, width: np.ndarray) -> np.ndarray:
            z = mean / width
            step = erf(z / np.sqrt(2))
            bell = root * width * np.exp(-z * z / 2)
            return A * mean + B * (bell + mean * step) + C + D * step

        terms = [A**2 * K_xy, bent, ends, steps]
        terms += self._with_rest(self.value, line, K_xx, K_yy, c, delta)
        return _total(terms, self.value.size(K_xx, K_yy, c, delta))

    def slopes(
        self, K_xx: np.ndarray, K_yy: np.ndarray, c: np.ndarray, delta: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """⟨φ'φ'⟩ and the size of its terms."""
        A, B, *_ = self.lines
        *_, turned = self._smoothed(K_xx, K_yy, c, delta)

        def line(mean: np.ndarray, width: np.ndarray) -> np.ndarray:
            return A + B * erf(mean / (width * np.sqrt(2)))

        terms = [A**2 + B**2 * (2 / np.pi * turned)]
        line_of_slope = line if (A, B) != (0, 0) else None
        terms += self._with_rest(self.slope, line_of_slope, K_xx, K_yy, c, delta)
        return _total(terms, self.slope.size(K_xx, K_yy, c, delta))

    def _smoothed(
        self, K_xx: np.ndarray, K_yy: np.ndarray, c: np.ndarray, delta: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        """The variances of smoothed lines, 1 − c of these, and π/2 less their angle."""
        x, y = K_xx + self.tau**2, K_yy + self.tau**2
        root, size = np.sqrt(K_xx * K_yy), np.sqrt(x * y)
        # √(xy) − √(K_xx K_yy).
        more = self.tau**2 * (K_xx + K_yy + self.tau**2) / (size + root)
        near = (more + root * delta) / size
        return (
            x,
            y,
            near,
            np.where(np.abs(c) < 0.5, np.arcsin(c * root / size), np.pi / 2 - angle_of(near)),
        )

    def _with_rest(
        self,
        rest: Local,
        line: Line | None,
        K_xx: np.ndarray,
        K_yy: np.ndarray,
        c: np.ndarray,
        delta: np.ndarray,
    ) -> list[np.ndarray]:
        """The three terms of g: with the line of either signal, if there is one, and of both."""
        sine = _sine(c, delta)
        parts = [_of_both(rest, K_xx, K_yy, c, sine)]
        for own, other in ((K_xx, K_yy), (K_yy, K_xx)):
            if line is None:
                break
            ratio = np.sqrt(other / own)
            halvings = int(np.ceil(np.log2(max(ratio.max(), 1.0))))
            y, weights = rest.at_nodes(halvings)
            found = np.empty(len(c))
            step = max(1, _BLOCK // len(y))
            for start in range(0, len(c), step):
                i = slice(start, start + step)
                mean = (c[i] * ratio[i])[:, None] * y
                width = np.sqrt(other[i] * sine[i] ** 2 + self.tau**2)[:, None]
                terms = line(mean, width) * np.exp(-(y**2) / (2 * own[i, None]))
                found[i] = terms @ weights / np.sqrt(2 * np.pi * own[i])
            parts.append(found)
        return parts


def _of_both(
    g: Local, K_xx: np.ndarray, K_yy: np.ndarray, c: np.ndarray, sine: np.ndarray
) -> np.ndarray:
    """⟨g(x) g(y)⟩."""
    wide, narrow = np.maximum(K_xx, K_yy), np.minimum(K_xx, K_yy)
    s, w = c * np.sqrt(narrow / wide), np.sqrt(narrow) * sine
    found, half = np.empty(len(c)), (g.cuts[-1] - g.cuts[0]) / 2
    close = w <= g.tau / 2
    panels = np.maximum(np.ceil(2 * _BELL * np.minimum(w / np.diff(g.cuts).max(), 1e3)), 2)
    panels[(w <= _NARROW * g.tau) & (len(g.kinks) == 0)] = 0
    for number in set(panels[close].astype(int).tolist()):
        some = close & (panels == number)
        found[some] = _close(g, wide[some], s[some], w[some], number)
    with np.errstate(divide="ignore"):
        wanted = np.searchsorted(_POINTS[:-1], _FEW + _PER_WIDTH * half / w)
    for number in set(wanted[~close].tolist()):
        points, weights = _interpolating(g, _POINTS[number])
        (index,) = np.nonzero(~close & (wanted == number))
        step = max(1, _BLOCK // len(points) ** 2)
        for start in range(0, len(index), step):
            i = index[start : start + step]
            # Rows: x, columns: y.
            apart = (points - s[i, None, None] * points[:, None]) / w[i, None, None]
            inner = np.exp(-(apart**2) / 2) @ weights
            outer = weights * np.exp(-(points**2) / (2 * wide[i, None]))
            found[i] = (outer * inner).sum(axis=1) / (2 * np.pi * np.sqrt(wide[i]) * w[i])
    return found


@lru_cache(maxsize=64)
def _interpolating(g: Local, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights, so that ∫ g f is Σ w f at the points for polynomials f."""
    t, _ = legendre(count)
    middle, half = (g.cuts[-1] + g.cuts[0]) / 2, (g.cuts[-1] - g.cuts[0]) / 2
    x, of_g = g.at_nodes()
    degrees = np.arange(count) + 0.5
    moments = of_g @ np.polynomial.legendre.legvander((x - middle) / half, count - 1)
    weights = legendre(count)[1] * (
        np.polynomial.legendre.legvander(t, count - 1) @ (degrees * moments)
    )
    return middle + half * t, weights


def _close(g: Local, wide: np.ndarray, s: np.ndarray, w: np.ndarray, panels: int) -> np.ndarray:
    """⟨g(x) g(y)⟩ as ∫dv N(v; 0, 1) ∫dx p(x) g(x) g(s x + w v), for narrow angles."""
    kinks, found = np.array(g.kinks), np.empty(len(s))
    count = _NODES * (panels + len(kinks) ** 2) or _HERMITE
    step = max(1, _BLOCK // (count * (len(g.cuts) + len(kinks)) * _NODES))
    for start in range(0, len(s), step):
        i = slice(start, start + step)
        slope, width = s[i, None], np.maximum(w[i, None], np.finfo(float).tiny)
        v, weights = _over_bell(g, slope, width, panels) if panels else _hermite(_HERMITE)
        apart = (width * v)[..., None]
        x, inner = g.at_nodes()
        if len(kinks):
            moved = np.clip((kinks - apart) / slope[..., None], *g.cuts[[0, -1]])
            base = np.broadcast_to(g.cuts, (*moved.shape[:-1], len(g.cuts)))
            x, inner = composite(np.sort(np.concatenate([base, moved], axis=-1), axis=-1), _NODES)
            inner = inner * g.f(x)
        bell = np.exp(-(x**2) / (2 * wide[i, None, None]))
        terms = (inner * bell * g.f(slope[..., None] * x + apart)).sum(axis=-1)
        found[i] = (weights * terms).sum(axis=1) / np.sqrt(2 * np.pi * wide[i])
    return found


@lru_cache(maxsize=2)
def _hermite(count: int) -> tuple[np.ndarray, np.ndarray]:
    v, weights = np.polynomial.hermite_e.hermegauss(count)
    return v, weights / np.sqrt(2 * np.pi)


def _over_bell(
    g: Local, slope: np.ndarray, width: np.ndarray, panels: int
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights in v, shape (m, n), panels ending where kinks of both signals meet.

    Beside these the rest changes over s τ/w, from which on panels are graded.
    """
    cuts = np.tile(np.linspace(-_BELL, _BELL, panels + 1), (len(slope), 1))
    if g.kinks:
        kinks = np.array(g.kinks)
        with np.errstate(over="ignore"):
            meeting = (kinks[:, None] - slope[..., None] * kinks) / width[..., None]
            scale = np.minimum(np.abs(slope) * g.tau / width, _BELL)
        levels = max(0, int(np.ceil(np.log(_BELL / scale.min()) / np.log(_GROWTH))))
        steps = scale * _GROWTH ** np.arange(levels)
        around = np.concatenate([np.zeros_like(scale), steps, -steps], axis=1)
        graded = meeting.reshape(len(slope), -1, 1) + around[:, None]
        graded = np.clip(graded.reshape(len(slope), -1), -_BELL, _BELL)
        cuts = np.sort(np.concatenate([cuts, graded], axis=1), axis=1)
    v, weights = composite(cuts, _NODES)
    return v, weights * np.exp(-v * v / 2) / np.sqrt(2 * np.pi)


@lru_cache(maxsize=64)
def wide_signals(phi: sp.Expr) -> WideSignals | None:
    """φ, a function of `activations.h`, as lines and local functions; None if it is not such.

    φ with jumps is not, nor one that approaches its lines slowly.

    Examples
    --------
    >>> found = wide_signals(sp.log(1 + sp.exp(h)))
    >>> found.lines, found.value.cuts[[0, -1]].round()
    (Lines(A=0.5, B=0.5, C=0.0, D=0.0), array([-45.,  38.]))
    """
    lines = lines_of(phi)
    if lines is None or first_derivative(phi, h).has(sp.DiracDelta):
        return None
    f, slope = vectorised([h], phi), vectorised([h], slope_of_pieces(phi, h))
    kinks = tuple(kinks_of(phi, h))
    ends = _ends(f, slope, lines)
    if ends is None:
        return None
    A, B, C, D = lines
    tau = max(ends[0], ends[1], *map(abs, kinks)) / _ENDS
    low, high = (-max(ends[0], _REACH * tau), max(ends[1], _REACH * tau))

    def of_value(x: np.ndarray) -> np.ndarray:
        z = x / tau
        step = erf(z / np.sqrt(2))
        bell = tau * np.sqrt(2 / np.pi) * np.exp(-z * z / 2)
        return f(x) - (A * x + B * (bell + x * step) + C + D * step)

    def of_slope(x: np.ndarray) -> np.ndarray:
        return slope(x) - (A + B * erf(x / (tau * np.sqrt(2))))

    for halving in range(_HALVINGS):
        count = int(np.ceil((high - low) / (_WIDTH * tau))) * 2**halving
        cuts = np.union1d(np.linspace(low, high, count + 1), kinks)
        found = [Local(g, cuts, kinks, float(tau)) for g in (of_value, of_slope)]
        if all(_is_resolved(g) for g in found):
            return WideSignals(lines, *found)
    return None


def _ends(f: Function, slope: Function, lines: Lines) -> tuple[float, float] | None:
    """How far φ and φ' differ from the lines, below and above zero."""
    A, B, C, D = lines
    found = []
    with np.errstate(all="ignore"):
        for sign in (-1, 1):
            x = sign * _PLACES
            rest = np.abs(f(x) - (A * x + B * np.abs(x) + C + sign * D))
            of_slope = np.abs(slope(x) - (A + sign * B))
            left = rest > _LEFT * rest.max() + _ROUNDING * (np.abs(f(x)) + abs(C) + abs(D))
            left |= of_slope > _LEFT * of_slope.max() + _ROUNDING * (abs(A) + abs(B))
            far = np.nonzero(left | ~np.isfinite(rest + of_slope))[0]
            last = far[-1] + 1 if len(far) else 0
            if last == len(_PLACES):
                return None
            found.append(float(_PLACES[last]))
    return found[0], found[1]


def _is_resolved(g: Local) -> bool:
    sums = []
    for count in (_NODES, _CHECKS):
        x, weights = composite(g.cuts, count)
        values = g.f(x)
        sums.append(weights @ np.stack([values, values**2, np.abs(values)], axis=1))
    few, many = sums
    size = np.array([many[2], many[1]])
    return bool((np.abs(few - many)[:2] <= _ERROR * size + _ROUNDING * size).all())
