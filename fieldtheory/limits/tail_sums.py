"""Sums over infinitely many layers, however slowly they converge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np


@dataclass(frozen=True)
class _Settings:
    """Numbers of `TailSum`.

    Parameters
    ----------
    ratio, nodes, end : float, int, float
        Panels in u = ln x are longer by this factor each, with so many Gauss-Legendre nodes, up
        to u.
    negligible, smooth : float
        What of the sum may be left out, and what of the layers must be smooth.
    fitted, powers, fit_nodes, fit_error : float, int, int, float
        Beyond the last panel ln(x f) is fitted by u, ln u and powers of 1/u on [fitted, end].
    flat, least : float
        Rates of decay in u below this are rounding; powers of 1/u below 1 + this are not
        summable.
    latest, points, fewest : float, int, int
        Steps are interpolated up to layers later by this factor, at so many points.
    """

    ratio: float = 1.4
    nodes: int = 20
    end: float = 600.0
    negligible: float = 1e-17
    smooth: float = 1e-12
    fitted: float = 60.0
    powers: int = 6
    fit_nodes: int = 40
    fit_error: float = 1e-11
    flat: float = 1e-9
    least: float = 1e-3
    latest: float = 1e9
    points: int = 180
    fewest: int = 4


_SETTINGS = _Settings()


@dataclass(frozen=True, eq=False)
class TailSum:
    r"""Σ_{l>x} f(l) for a positive function that is smooth for large l, with all its digits.

        Σ_{l>x} f(l) = ∫_m^∞ f dl + f'(m)/24 − 7 f'''(m)/5760 + ...,   m = x + 1/2,

    by Euler's and Maclaurin's formula, in u = ln l, in which slow sums such as that of 1/(l ln²l)
    fall like 1/u. Beyond l = e^600, near the end of float64, the integrand is continued by a power
    of u times a series in 1/u. At real x the sum is interpolated smoothly.

    Parameters
    ----------
    f : callable
        Of one real number l >= ``first``.
    first : int
        The first x that is asked for, from about 100 on.

    Examples
    --------
    >>> tail = TailSum(lambda l: 1 / (l * np.log(l + 1) ** 2), 1000)
    >>> round(tail.after(1000), 12), tail.after(np.inf)
    (0.144750008909, 0.0)
    """

    f: Callable[[float], float]
    first: int

    def after(self, x: float) -> float:
        """Σ_{l>x} f(l)."""
        if np.isinf(x):
            return 0.0
        middle = x + 0.5
        near = [self._at(middle + step) for step in (-2, -1, 1, 2)]
        slope = (near[2] - near[1]) / 2
        third = (near[3] - 2 * near[2] + 2 * near[1] - near[0]) / 2
        # A difference over two layers is f' + f'''/6: −7/5760 − 1/144 = −47/5760.
        return self._integral(np.log(middle)) + slope / 24 - 47 / 5760 * third

    @cached_property
    def whole(self) -> float:
        """The sum after ``first``, with a check that terms between x and 2x are what they are."""
        total = self.after(self.first)
        between = sum(self._at(l) for l in range(self.first + 1, 2 * self.first + 1))
        if not abs(between + self.after(2 * self.first) - total) <= _SETTINGS.smooth * (1 + total):
            raise ValueError("the sum is not that of a smooth function")
        return total

    def step(self, remaining: float) -> float:
        """f of the layer after which this sum remains, in the middle of it."""
        if remaining <= 0:
            return 0.0
        if self._steps is None:
            return self._at(self.first + 0.5)
        logarithms, spline = self._steps
        at = np.log(remaining)
        if at < logarithms[0]:
            return 0.0
        return float(np.exp(spline(min(at, logarithms[-1]))))

    @cached_property
    def _steps(self) -> tuple[np.ndarray, Any] | None:
        """Their logarithm over that of the sum that remains; None if they vanish at once."""
        from scipy.interpolate import CubicSpline

        x = self.first * np.geomspace(1, _SETTINGS.latest, _SETTINGS.points)
        values = np.array([self._at(each + 0.5) for each in x])
        used = (values > values[0] / _SETTINGS.latest**2) & (values > _SETTINGS.negligible**4)
        if used.sum() < _SETTINGS.fewest:
            return None
        logarithms = np.log([self.after(each) for each in x[used]])[::-1]
        return logarithms, CubicSpline(logarithms, np.log(values[used])[::-1])

    def _at(self, x: float) -> float:
        value = float(self.f(float(x)))
        if not (np.isfinite(value) and value >= 0):
            raise ValueError(f"the function is {value} at {x:.6g}")
        return value

    def _panel(self, low: float, high: float) -> float:
        """∫ x f(x) du."""
        nodes, weights = np.polynomial.legendre.leggauss(_SETTINGS.nodes)
        x = np.exp((low + high) / 2 + (high - low) / 2 * nodes)
        values = np.array([each * self._at(each) for each in x])
        return float((high - low) / 2 * (weights @ values))

    @cached_property
    def _edges(self) -> np.ndarray:
        start = np.log(self.first) - 0.1
        count = int(np.ceil(np.log(_SETTINGS.end / start) / np.log(_SETTINGS.ratio)))
        return np.append(np.geomspace(start, _SETTINGS.end, count + 1), np.inf)

    @cached_property
    def _panels(self) -> np.ndarray:
        """The integrals between the edges, the last one to infinity."""
        integrals = []
        for low, high in zip(self._edges[:-2], self._edges[1:-1], strict=True):
            integrals.append(self._panel(low, high))
            if integrals[-1] <= _SETTINGS.negligible * sum(integrals):
                return np.append(integrals, np.zeros(len(self._edges) - 1 - len(integrals)))
        return np.append(integrals, self._beyond())

    def _integral(self, u: float) -> float:
        panel = int(np.searchsorted(self._edges, u, side="right"))
        if panel >= len(self._edges) - 1:
            return 0.0
        return self._panel(u, self._edges[panel]) + float(self._panels[panel:].sum())

    def _beyond(self) -> float:
        """∫ from u = `end` to infinity of the continued integrand."""
        # Chebyshev nodes in 1/u.
        cosines = np.cos(np.pi * (np.arange(_SETTINGS.fit_nodes) + 0.5) / _SETTINGS.fit_nodes)
        low, high = 1 / _SETTINGS.end, 1 / _SETTINGS.fitted
        u = 1 / ((low + high) / 2 + (high - low) / 2 * cosines)
        heights = np.log([each * self._at(each) for each in np.exp(u)]) + u * 0
        for columns in ((np.log(u),), (np.log(u), u)):
            basis = np.stack([*columns, *(u**-k for k in range(_SETTINGS.powers + 1))], axis=1)
            scale = np.abs(basis).max(axis=0)
            solution = np.linalg.lstsq(basis / scale, heights, rcond=None)[0] / scale
            if np.abs(basis @ solution - heights).max() <= _SETTINGS.fit_error:
                break
        else:
            raise ValueError("the sum converges too slowly, or not as a power of ln l")
        decay = -solution[1] if len(columns) > 1 else 0.0
        if decay < -_SETTINGS.flat or (
            decay <= _SETTINGS.flat and -solution[0] < 1 + _SETTINGS.least
        ):
            raise ValueError("the sum diverges")
        nodes, weights = np.polynomial.legendre.leggauss(2 * _SETTINGS.nodes)
        w = (nodes + 1) / 2
        # u = _SETTINGS.end / w^k, with which powers of u become powers of w.
        power = 1 / (-solution[0] - 1) if decay <= _SETTINGS.flat else 1.0
        power = min(max(power, 1.0), 1 / _SETTINGS.least)
        late = _SETTINGS.end / w**power
        columns_late = [np.log(late), *([late] if len(columns) > 1 else [])]
        basis = np.stack([*columns_late, *(late**-k for k in range(_SETTINGS.powers + 1))], axis=1)
        return float((weights / 2 * np.exp(basis @ solution) * late * power / w).sum())
