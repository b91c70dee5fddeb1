"""Averages of functions with waves of two wide signals that are so similar that waves are left.

With f = Σ_θ A_θ(h) e^{iθh} and g = Σ_θ B_θ(h) e^{iθh}, see `amplitudes`, and y = ρx + w, where w is
independent of x and of variance v, far from zero

    ⟨f(x) g(y)⟩_w = Σ A_θ(x) e^{i(θ + ρθ')x} e^{-θ'²v/2} ⟨B_θ'(ρx + iθ'v + w)⟩

by a shift of w: what B is at complex signals is told by polynomials through real ones. Products
whose waves in x are short average out. Near zero, where amplitudes bend, both functions are
integrated as they are, under a weight that falls off over many waves.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import chebyshev, hermite_e
from scipy.special import erfc

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrals.quadrature import composite, legendre
from fieldtheory.averages.oscillating.amplitudes import Amplitudes

# Squared wave numbers times the variances from which on signals are wide, and up to which w is
# narrow; the last of waves of which something is left.
WIDE, NARROW, _LEFT = 1e4, 200.0, 220.0
# Standard deviations of w and of x that count, and waves over that of x that are resolved.
SPREAD, _REACH, _RESOLVED = 8.6, 13.0, 1e3
# Nodes of polynomials in y over shifts and the spread of w, and how far from zero over both.
_TERMS, _SHIFT, _AROUND, _AWAY = 24, 1.5, 6.0, 2.0
# The slope of the weight over inverse wave numbers, and half its width over slopes.
_SLOPE, _HALF = 13.0, 6.5
# Nodes of panels, their width in inverse wave numbers and in the spread of w, and Hermite's nodes.
ORDER, _WIDTH, _OF_SPREAD, _HERMITE = 16, 4.0, 2.5, 32
# What is nothing beside an average, how well panels resolve, and how often they are halved.
_NOTHING, _ACCURATE, _HALVINGS = 1e-17, 1e-12, 200
# Squared phases below which differences of waves count, and the least of them.
_DIFFERENT, LEAST = 1.0, 1e-8
# The variance of the rest of equal signals.
_SAME = 1e-290
# Signals of which one is wide and one is not, and 1 − c of nearly parallel ones.
_STRADDLED, _PARALLEL = 4.0, 1e-2
# Entries of a density at once, and the most nodes near zero.
_BLOCK, _MOST = 1 << 21, 1 << 16


class Law(NamedTuple):
    """The variance of x, the slope ρ of y given x, 1 − ρ, and the variance v of the rest of y."""

    variance: float
    slope: float
    missing: float
    rest: float


class Side(NamedTuple):
    """A function and the norm √⟨f²⟩ that it is divided by."""

    of: Amplitudes
    norm: float


def law_of(a: float, b: float, away: float) -> Law:
    """Of variances a >= b of signals of the correlation 1 − δ, from δ."""
    one, other = np.sqrt(a), np.sqrt(b)
    # √a (√a − √b), of the difference a − b.
    missing = ((a - b) / (one + other) + other * away) / one
    return Law(a, other * (1 - away) / one, missing, max(b * away * (2 - away), _SAME))


def is_wide(f: Amplitudes, a: Any, b: Any) -> Any:
    """Whether waves are short against both signals."""
    return np.minimum(a, b) * f.least**2 >= WIDE


def is_narrow(f: Amplitudes, a: Any, b: Any, away: Any) -> Any:
    """Whether functions can be integrated as they are, over signals that are nearly parallel."""
    return (np.maximum(a, b) * f.least**2 < _STRADDLED * WIDE) & (away < _PARALLEL)


def reaches(f: Amplitudes, a: float, b: float, away: float) -> bool:
    """Whether waves are left of such signals."""
    return bool(min(a, b) * away * (2 - away) * f.least**2 <= NARROW)


def product(f: Amplitudes, g: Amplitudes, a: float, b: float, away: float) -> float:
    """⟨f(x) g(y)⟩ of variances a and b and the correlation 1 − δ, of δ = ``away``.

    Raises
    ------
    QuadratureError
        If waves in x are neither short nor resolved, or functions are not resolved near zero.
    """
    if a < b:
        f, g, a, b = g, f, b, a
    law = law_of(a, b, away)
    if not is_wide(f, a, b):
        return _near(Side(f, 1.0), Side(g, 1.0), law, _everywhere(f, a), 0.0, False)
    far, weight = _Far(f, g, law), _weight(f, g, law)
    found = far.product(weight)
    return found + _near(Side(f, 1.0), Side(g, 1.0), law, weight, abs(found), False)


def difference(f: Side, g: Side, a: float, b: float, away: float) -> float:
    """⟨(f(x)/√⟨f²⟩ − g(y)/√⟨g²⟩)²⟩/2, of which no digits cancel; as `product`."""
    if a < b:
        f, g, a, b = g, f, b, a
    law = law_of(a, b, away)
    if not is_wide(f.of, a, b):
        return _near(f, g, law, _everywhere(f.of, a), 0.0, True)
    far, weight = _Far(f.of, g.of, law), _weight(f.of, g.of, law)
    found = far.difference(weight, f.norm, g.norm)
    return found + _near(f, g, law, weight, found, True)


class Weight:
    """1 near zero, and nothing where amplitudes are smooth."""

    def __init__(self, reach: float, least: float) -> None:
        self.reach, self.slope = reach, _SLOPE / least

    @property
    def end(self) -> float:
        """Beyond, it is nothing."""
        return self.reach + 2 * _HALF * self.slope

    def beyond(self, x: np.ndarray) -> np.ndarray:
        """One less the weight."""
        return erfc((self.end - _HALF * self.slope - np.abs(x)) / self.slope) / 2


def _everywhere(f: Amplitudes, variance: float) -> Weight:
    """One over all signals."""
    return Weight(SPREAD * np.sqrt(variance), f.least)


def _weight(f: Amplitudes, g: Amplitudes, law: Law) -> Weight:
    """Over all shifts of w."""
    reach = (_AWAY * reach_of(f, g, law)[1] + max(f.bends, g.bends)) / law.slope
    return Weight(reach, min(f.least, g.least))


def outside(weight: Weight, variance: float, slow: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes of x far from zero, and weights with the Gaussian, of waves of numbers up to one."""
    root, edges = np.sqrt(variance), [weight.reach]
    while edges[-1] < _REACH * root:
        width = min(edges[-1], root, 8 / slow if slow else np.inf)
        if edges[-1] < weight.end:
            width = min(width, weight.slope / 2)
        edges.append(edges[-1] + width)
    x, weights = composite(np.array(edges), ORDER)
    weights = weights * np.exp(-((x / root) ** 2) / 2) / (np.sqrt(2 * np.pi) * root)
    weights = weights * weight.beyond(x)
    return np.concatenate([-x[::-1], x]), np.concatenate([weights[::-1], weights])


def reach_of(f: Amplitudes, g: Amplitudes, law: Law) -> tuple[list[tuple[int, int]], float]:
    """The pairs (θ, θ') of which something is left, and the reach of polynomials in y."""
    pairs, root, least = [], np.sqrt(law.variance), min(f.least, g.least) / 2
    for i, first in enumerate(f.numbers):
        for j, second in enumerate(g.numbers):
            number = abs(first + second - law.missing * second)
            if number >= least or second**2 * law.rest > _LEFT:
                continue
            if number * root > _RESOLVED:
                raise QuadratureError("waves of two signals are neither short nor resolved")
            pairs.append((i, j))
    shift = max((abs(g.numbers[j]) for _, j in pairs), default=0.0) * law.rest
    return pairs, max(_SHIFT * shift, _AROUND * np.sqrt(law.rest))


class _Far:
    """Both signals far from zero."""

    def __init__(self, f: Amplitudes, g: Amplitudes, law: Law) -> None:
        self.f, self.g, self.law = f, g, law
        self.pairs, self.reach = reach_of(f, g, law)
        self.first = sorted({i for i, _ in self.pairs})
        self.second = sorted({j for _, j in self.pairs})

    def nodes(self, weight: Weight) -> tuple[np.ndarray, np.ndarray]:
        """Of x, and weights with the Gaussian."""
        slow = max((abs(self.number(i, j)) for i, j in self.pairs), default=0.0)
        return outside(weight, self.law.variance, slow)

    def number(self, i: int, j: int) -> float:
        """θ + ρθ'."""
        theta = self.g.numbers[j]
        return float(self.f.numbers[i] + theta - self.law.missing * theta)

    def product(self, weight: Weight) -> float:
        x, weights = self.nodes(weight)
        A = dict(zip(self.first, self.f.at(x, self.first), strict=True)) if self.pairs else {}
        B = self._shifted(x)
        total = sum(A[i] * B[j] * np.exp(1j * self.number(i, j) * x) for i, j in self.pairs)
        return float(np.real(total) @ weights) if self.pairs else 0.0

    def _shifted(self, x: np.ndarray) -> dict[int, np.ndarray]:
        """e^{-θ²v/2} ⟨B_θ(ρx + iθv + w)⟩."""
        if not self.pairs:
            return {}
        nodes, _ = polynomials()
        y = self.law.slope * x[:, None] + self.reach * nodes
        values = dict(zip(self.second, self.g.at(y, self.second), strict=True))
        spread, found = np.sqrt(self.law.rest), {}
        for j, of_number in values.items():
            theta = self.g.numbers[j]
            z, of_z = _hermite()
            places = (
                (1j * theta * self.law.rest + spread * z) / self.reach if self.reach else 0j * z
            )
            parts = lagrange(places) @ of_z
            found[j] = np.exp(-(theta**2) * self.law.rest / 2) * (of_number @ parts)
        return found

    def difference(self, weight: Weight, norm: float, other: float) -> float:
        """Of A_θ e^{iθx} and B_θ e^{iθy}: their difference where waves differ little."""
        x, weights = self.nodes(weight)
        z, of_z = _hermite()
        w = np.sqrt(self.law.rest) * z
        y = self.law.slope * x[:, None] + w
        phase = self.law.missing * x[:, None] - w
        total = np.zeros(len(x))
        shifted = self._shifted(x)
        for i, theta in enumerate(self.f.numbers):
            A = self.f.at(x, [i])[0] / norm
            # B_θ is the conjugate of B of −θ.
            j = int(np.argmin(np.abs(self.g.numbers + theta)))
            B = np.conj(self.g.at(y, [j])[0]) / other
            if theta**2 * self.law.rest <= _DIFFERENT and (i, j) in self.pairs:
                turned = 2j * np.sin(theta * phase / 2) * np.exp(1j * theta * phase / 2)
                apart = (A[:, None] - B) + A[:, None] * turned
                total += (np.abs(apart) ** 2) @ of_z / 2
                continue
            total += (np.abs(A) ** 2 + (np.abs(B) ** 2) @ of_z) / 2
            if (i, j) in self.pairs:
                wave = A * shifted[j] * np.exp(1j * self.number(i, j) * x) / other
                total -= wave.real
        return float(total @ weights)


def _near(f: Side, g: Side, law: Law, weight: Weight, found: float, differ: bool) -> float:
    """f(x) g(y), or half their squared difference, of x near zero."""
    scale = 1 / (np.sqrt(2 * np.pi * law.variance) * f.norm * g.norm)
    ends = weight.end, law.slope * weight.end + SPREAD * np.sqrt(law.rest)
    sizes = [
        np.abs(s.of.function(np.linspace(-e, e, 99))).max()
        for s, e in zip((f, g), ends, strict=True)
    ]
    if 2 * weight.end * sizes[0] * sizes[1] * scale < _NOTHING * found:
        return 0.0
    spread = np.sqrt(law.rest)
    cuts = [panels_of(s.of, e) for s, e in zip((f, g), ends, strict=True)]
    if spread >= np.diff(cuts[1]).min() / 2:
        value = _densely(f, g, law, weight, cuts, differ)
    else:
        value = _nested(f, g, law, weight, cuts[0], differ)
    return value


def bell_of(x: np.ndarray, variance: float, weight: Weight) -> np.ndarray:
    """The Gaussian times the weight."""
    bell = np.exp(-(x**2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)
    return bell * (1 - weight.beyond(x))


def _densely(
    f: Side, g: Side, law: Law, weight: Weight, cuts: list[np.ndarray], differ: bool
) -> float:
    """By the density of y given x on panels that resolve it."""
    spread = np.sqrt(law.rest)
    (x, wx), (y, wy) = (composite(_divided(c, _OF_SPREAD * spread), ORDER) for c in cuts)
    wx = wx * bell_of(x, law.variance, weight)
    F, G = f.of.function(x) / f.norm, g.of.function(y) / g.norm
    wy = wy / (np.sqrt(2 * np.pi) * spread)
    total, start = 0.0, 0
    while start < len(x):
        low = np.searchsorted(y, law.slope * x[start] - SPREAD * spread)
        stop = start + max(1, min(512, _BLOCK // max(len(y) - low, 1)))
        some = slice(start, stop)
        high = np.searchsorted(y, law.slope * x[some][-1] + SPREAD * spread)
        apart = (y[low:high] - law.slope * x[some, None]) / spread
        density = np.exp(-(apart**2) / 2) * wy[low:high]
        value = F[some] * (density @ G[low:high])
        if differ:
            value = (F[some] ** 2 + density @ G[low:high] ** 2) / 2 - value
        total += float(wx[some] @ value)
        start = stop
    return total


def _nested(f: Side, g: Side, law: Law, weight: Weight, cuts: np.ndarray, differ: bool) -> float:
    """By panels in w that end at kinks of g."""
    spread, kinks = np.sqrt(law.rest), np.array(g.of.kinks)
    if len(kinks):
        steps = spread * np.array([0, 0.5, 1, 2, 4, SPREAD])
        around = np.concatenate([kinks[:, None] + steps, kinks[:, None] - steps], axis=1)
        cuts = np.union1d(cuts, around.ravel() / law.slope)
        cuts = cuts[np.abs(cuts) <= weight.end]
    x, wx = composite(cuts, ORDER)
    fixed = np.broadcast_to(SPREAD * spread * np.linspace(-1, 1, 5), (len(x), 5))
    moved = np.clip(kinks - law.slope * x[:, None], -SPREAD * spread, SPREAD * spread)
    w, ww = composite(np.sort(np.concatenate([fixed, moved], axis=1), axis=1), ORDER)
    ww = ww * np.exp(-((w / spread) ** 2) / 2) / (np.sqrt(2 * np.pi) * spread)
    F = f.of.function(x)[:, None] / f.norm
    G = g.of.function(law.slope * x[:, None] + w) / g.norm
    values = (F - G) ** 2 / 2 if differ else F * G
    return float((wx * bell_of(x, law.variance, weight)) @ (values * ww).sum(axis=1))


def _divided(cuts: np.ndarray, width: float) -> np.ndarray:
    """Cuts that are not farther apart."""
    counts = np.ceil(np.diff(cuts) / width).astype(int)
    if counts.sum() * ORDER > _MOST:
        raise QuadratureError("two signals with waves are too similar near zero")
    parts = [
        np.linspace(a, b, n, endpoint=False)
        for a, b, n in zip(cuts[:-1], cuts[1:], counts, strict=True)
    ]
    return np.append(np.concatenate(parts), cuts[-1])


def panels_of(f: Amplitudes, end: float) -> np.ndarray:
    """Cuts between which polynomials resolve a function."""
    width = _WIDTH / f.least
    cuts = np.linspace(-end, end, int(np.ceil(2 * end / width)) + 1)
    cuts = np.union1d(cuts, [kink for kink in f.kinks if abs(kink) < end])
    nodes, weights = legendre(ORDER)
    orders = np.arange(ORDER)[-4:]
    basis = np.polynomial.legendre.legvander(nodes, ORDER - 1)[:, -4:]
    to_last = (orders + 0.5) * weights[:, None] * basis
    for _ in range(_HALVINGS):
        half = np.diff(cuts)[:, None] / 2
        values = f.function((cuts[:-1, None] + cuts[1:, None]) / 2 + half * nodes)
        sizes = np.abs(values).max(axis=1)
        last = np.abs(values @ to_last).max(axis=1)
        rough = ~(last <= _ACCURATE * (sizes + 1e-2 * sizes.max()))
        # Of 1/√|h| nothing but the integral becomes small.
        shares = sizes * half[:, 0]
        rough &= ~(shares <= _NOTHING * shares.sum())
        if not rough.any():
            return cuts
        if len(cuts) * ORDER > _MOST or not np.isfinite(sizes).all():
            break
        cuts = np.union1d(cuts, (cuts[:-1] + cuts[1:])[rough] / 2)
    raise QuadratureError("a function with waves is not resolved near zero")


@lru_cache(maxsize=1)
def _hermite() -> tuple[np.ndarray, np.ndarray]:
    z, weights = hermite_e.hermegauss(_HERMITE)
    return z, weights / weights.sum()


@lru_cache(maxsize=1)
def polynomials() -> tuple[np.ndarray, np.ndarray]:
    """Chebyshev's nodes, and the coefficients of the polynomials that are 1 at one of them."""
    nodes = np.cos(np.pi * (np.arange(_TERMS) + 0.5) / _TERMS)
    transform = 2 / _TERMS * chebyshev.chebvander(nodes, _TERMS - 1)
    transform[:, 0] /= 2
    return nodes, transform


def lagrange(places: np.ndarray) -> np.ndarray:
    """The polynomials at complex places, shape (n, m)."""
    _, transform = polynomials()
    terms = [np.ones_like(places), places]
    for _ in range(_TERMS - 2):
        terms.append(2 * places * terms[-1] - terms[-2])
    return transform @ np.stack(terms)
