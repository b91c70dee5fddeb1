"""Logarithms of functions at signals of all sizes, as polynomials on panels of ln h.

One layer after the other asks for the same function at signals a little larger. Panels of ln h
are those of powers of two, whatever the variance, and are kept: ln|f(e^t)| − ln|f(e^m)| around
their middle m, so that no logarithm loses digits to a large one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
from mpmath import mp
from numpy.polynomial import chebyshev

from fieldtheory.averages.sizes.logarithmic_signals import Sampled, Values

# Digits of the functions.
DIGITS = 30
# Nodes of a panel, how small the last of their coefficients are, how many panels are kept, and the
# power of two that none is wider than: polynomials are rounded as their largest values.
_TERMS, _RESOLVED, _KEPT, _WIDEST = 24, 4e-15, 2**13, 2
_ANGLES = np.pi * (np.arange(_TERMS) + 0.5) / _TERMS
_NODES = np.cos(_ANGLES)
_TRANSFORM = 2 / _TERMS * np.cos(np.outer(np.arange(_TERMS), _ANGLES))
_TRANSFORM[0] /= 2

Place = Callable[[float], tuple[mp.mpf, mp.mpf]]


class Panel(NamedTuple):
    """ln|f(±e^t)| over a reference, for (t − middle)/half from −1 to 1.

    Parameters
    ----------
    middle, half : mpf, float
    reference : mpf
    terms : ndarray, shape (n, 2)
        Chebyshev coefficients.
    signs : ndarray, shape (2,)
        Zero on a side where the function is.
    """

    middle: mp.mpf
    half: float
    reference: mp.mpf
    terms: np.ndarray
    signs: np.ndarray


@dataclass(frozen=True, eq=False)
class LogarithmPanels:
    """A function of numbers of mpmath on both sides of zero.

    Parameters
    ----------
    function : callable

    Examples
    --------
    >>> panels = LogarithmPanels(lambda z: z**2)
    >>> found = panels.sampled(mp.mpf(10) ** 400, mp.mpf(10) ** 800, np.array([-1.0, 1.0]), 8)
    >>> found(np.array([0.25])).logs[0]
    array([0.5])
    """

    function: Callable[[mp.mpf], mp.mpf]
    _panels: dict[tuple[int, int], Panel | None] = field(default_factory=dict)

    def sampled(
        self, scale: mp.mpf, reference: mp.mpf, limits: np.ndarray, most: int
    ) -> Sampled | None:
        """ln|f(± scale e^ρ)| over a reference for ρ within limits, None if panels are too many."""
        with mp.workdps(DIGITS):
            origin = mp.log(scale)
            low, high = (origin + float(limit) for limit in limits)
            found = self._between(low, high, most)
            if found is None:
                return None
            found.sort(key=lambda panel: panel.middle)
            ahead = np.array([float(origin - panel.middle) for panel in found])
            logs = np.array([float(mp.log(panel.reference / reference)) for panel in found])
        half = np.array([panel.half for panel in found])
        series = np.stack([panel.terms for panel in found])
        signs = np.stack([panel.signs for panel in found])

        def interpolated(rho: np.ndarray) -> Values:
            panel = np.clip(np.searchsorted(-ahead - half, rho, side="right") - 1, 0, None)
            x = (rho + ahead[panel]) / half[panel]
            values = chebyshev.chebval(x, series[panel].transpose(1, 2, 0), tensor=False)
            sides = signs[panel].T
            return Values(sides, np.where(sides == 0, -np.inf, values + logs[panel]))

        return interpolated

    def _between(self, low: mp.mpf, high: mp.mpf, most: int) -> list[Panel] | None:
        """Panels that cover an interval of ln h."""
        level = min(int(mp.ceil(mp.log(max(high - low, mp.mpf(2) ** -60), 2))), _WIDEST)
        first, last = (int(mp.floor(mp.ldexp(end, -level))) for end in (low, high))
        if last - first >= most:
            return None
        waiting, found = [(level, index) for index in range(first, last + 1)], []
        halved = 0
        while waiting:
            level, index = waiting.pop()
            panel = self._panel(level, index)
            if panel is not None:
                found.append(panel)
                continue
            middle = mp.ldexp(2 * index + 1, level - 1)
            waiting += [(level - 1, 2 * index)] if low < middle else []
            waiting += [(level - 1, 2 * index + 1)] if high > middle else []
            # Halves outside count: jumps and rounding are never resolved.
            halved += 1
            if len(found) + len(waiting) > most or halved > most:
                return None
        return found

    def _panel(self, level: int, index: int) -> Panel | None:
        key = level, index
        if key not in self._panels:
            if len(self._panels) > _KEPT:
                self._panels.clear()
            self._panels[key] = self._fitted(*key)
        return self._panels[key]

    def _fitted(self, level: int, index: int) -> Panel | None:
        """From t = index 2^level to the next, None if polynomials do not resolve it."""
        middle, half = mp.ldexp(2 * index + 1, level - 1), 2.0 ** (level - 1)

        def at(x: float) -> tuple[mp.mpf, mp.mpf]:
            z = mp.exp(middle + half * mp.mpf(x))
            return self.function(z), self.function(-z)

        reference = sum(map(abs, at(0.0)))
        if not reference or not mp.isfinite(reference):
            return None
        signs, logs = values_at(at, reference, _NODES)
        empty = (signs == 0).all(axis=1)
        logs = np.where(empty[:, None], 0.0, logs)
        if not np.isfinite(logs).all() or (signs != signs[:, :1]).any():
            return None
        terms = _TRANSFORM @ logs.T
        if np.abs(terms[-3:]).max() >= _RESOLVED * (1 + np.abs(terms).max()):
            return None
        return Panel(middle, half, reference, terms, signs[:, 0])


def values_at(at: Place, reference: mp.mpf, places: np.ndarray) -> Values:
    """Both sides of a function at every place, one by one."""
    with mp.workdps(DIGITS):
        both = [at(float(place)) for place in places]
        signs = np.array([[float(mp.sign(v)) for v in sides] for sides in both]).T
        logs = [[_logarithm(v, reference) for v in sides] for sides in both]
    return Values(signs, np.array(logs).T)


def sampled_at(at: Place, reference: mp.mpf) -> Sampled:
    """`values_at` as a function of the places."""
    return partial(values_at, at, reference)


def _logarithm(value: mp.mpf, reference: mp.mpf) -> float:
    if not value or not mp.isfinite(value):
        return np.inf if value else -np.inf
    # A quotient near one, of which the logarithm has all digits.
    return float(mp.log(abs(value) / reference))
