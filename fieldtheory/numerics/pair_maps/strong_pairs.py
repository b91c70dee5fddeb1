"""Averages of many strongly correlated pairs of smooth φ, by interpolation.

With x the narrower of two signals y = s x + w, where w of variance D is independent of x, averages
are smooth functions of ln K_xx, s and ln D also where a Mehler series in the correlation takes
thousands of terms, for wide signals that are close to each other. Nodes with one K_xx and one s
share two Fourier transforms, so that a box of a thousand nodes takes a twentieth of a second.

Signals of one variance K are x = a + v and y = a + w, with a of variance K_xy, and v and w of
variance K − K_xy, all independent. Two variables, ln K_xy and ln(K − K_xy), are enough then, and
nodes with one of the latter share one transform: a box takes a few milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fieldtheory.averages.integrals import spectral
from fieldtheory.averages.integrands.exact_differences import determinant
from fieldtheory.numerics.pair_maps.pair_boxes import ROUGH, Axes, Boxes, what_is_not_shared

# Of the distance to s = 0, where the angle of a pair is singular, what functions of φ leave.
_INSIDE = 0.7
# Margins and ranges of boxes, in ln K_xx, s and ln D, and in ln(K − K_xy) and ln K_xy.
_OF_TWO = ((0.2, 1.5), (0.01, 0.01), (0.7, 0.7)), (3.0, 0.5, 4.0)
_OF_ONE = ((0.7, 0.7), (0.0, 0.0), (0.2, 1.5)), (4.0, 1.0, 3.0)


@dataclass(eq=False)
class StrongPairs:
    """⟨f(x)f(y)⟩ and ⟨f'(x)f'(y)⟩ of positively correlated pairs, where a box has them.

    Parameters
    ----------
    f, slope : callable
        Smooth, vectorised; f and f'.
    exact : callable
        Both averages of arrays (K_xx, K_yy, K_xy).
    rest : float
        Allowed last coefficients, of the largest; the averages are right to ten times that.
    """

    f: Callable[..., Any]
    slope: Callable[..., Any]
    exact: Callable[..., Any]
    rest: float = 1e-12

    def __call__(
        self, p: np.ndarray, q: np.ndarray, r: np.ndarray, most: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """The averages (2, m), NaN where no box has them, and where one does.

        Parameters
        ----------
        p, q, r : ndarray, shape (m,)
            K_xx, K_yy and K_xy.
        most : float
            Transforms that a new box may take for every pair; none is made for 0.

        Examples
        --------
        >>> def slope(x):
        ...     return 1 / np.cosh(x) ** 2
        >>> def exact(*K):
        ...     return [spectral.average(f, f, *K)[0] for f in (np.tanh, slope)]
        >>> p = np.linspace(90.0, 110.0, 400)
        >>> values, known = StrongPairs(np.tanh, slope, exact)(p, p, 0.9 * p, 1.0)
        >>> bool(known.all()), bool(np.abs(values / exact(p, p, 0.9 * p) - 1).max() < 1e-12)
        (True, True)
        """
        values, known = np.full((2, len(p)), np.nan), np.zeros(len(p), dtype=bool)
        self.of_one_variance.fill(values, known, (p, q, r), most)
        # Boxes of two variances cost ten times as much.
        waiting = ~known & np.isfinite(what_is_not_shared(p, q, r))
        waiting &= not self.of_one_variance.in_vain
        known |= waiting
        self.of_two.fill(values, known, (p, q, r), most)
        return values, known & ~waiting

    @cached_property
    def of_two(self) -> Boxes:
        """Of pairs of any variances."""

        def averages(logs: np.ndarray, slopes: np.ndarray, rests: np.ndarray) -> np.ndarray | None:
            K = np.exp(logs), slopes, np.exp(rests)
            return spectral.on_tensor((self.f, self.slope), *K, self._digits)

        def reaches(low: np.ndarray) -> np.ndarray:
            return np.array([np.pi, _INSIDE * low[1], np.pi])

        axes = Axes(_narrower, averages, lambda n, m, _: n * m, reaches, *_OF_TWO)
        return Boxes(axes, self._compared, self.rest)

    @cached_property
    def of_one_variance(self) -> Boxes:
        """Of pairs of one variance."""

        def averages(rests: np.ndarray, _: np.ndarray, shared: np.ndarray) -> np.ndarray | None:
            K = np.exp(rests), np.exp(shared)
            found = spectral.of_shared_parts((self.f, self.slope), *K, self._digits)
            return None if found is None else found[:, :, None]

        def reaches(_: np.ndarray) -> np.ndarray:
            return np.full(3, np.pi)

        # A box costs as much as a few pairs do alone.
        axes = Axes(_shared, averages, lambda n, *_: n / 4, reaches, *_OF_ONE)
        return Boxes(axes, self._compared, self.rest)

    def transformed(
        self, p: np.ndarray, q: np.ndarray, r: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The averages (2, m) without boxes, and where they are resolved."""
        products = [(one, one) for one in (self.f, self.slope)]
        return spectral.averages(products, p, q, r, self._digits)

    def _compared(self, *K: np.ndarray) -> np.ndarray:
        """The averages (2, m) of pairs (m,) themselves; by rough transforms if those will do."""
        if self.rest >= ROUGH:
            values, known = self.transformed(*K)
            if known.all():
                return values
        return np.array(self.exact(*K))

    @cached_property
    def _digits(self) -> spectral.Digits:
        digits = spectral.ROUGH if self.rest >= ROUGH else spectral.EXACT
        return spectral.coarsest((self.f, self.slope), digits)


def _narrower(p: np.ndarray, q: np.ndarray, r: np.ndarray) -> np.ndarray:
    """ln K_xx, s and ln D of pairs, (3, m), x the narrower signal; NaN for those without."""
    narrow = np.minimum(p, q)
    with np.errstate(all="ignore"):
        places = np.stack([np.log(narrow), r / narrow, np.log(determinant(p, q, r) / narrow)])
    places[:, ~((r > 0) & np.isfinite(places).all(axis=0))] = np.nan
    return places


def _shared(p: np.ndarray, q: np.ndarray, r: np.ndarray) -> np.ndarray:
    """ln(K − K_xy), 1 and ln K_xy of pairs of one variance, (3, m); NaN for others."""
    with np.errstate(all="ignore"):
        places = np.stack([np.log(what_is_not_shared(p, q, r)), np.ones(len(r)), np.log(r)])
    places[:, ~np.isfinite(places).all(axis=0)] = np.nan
    return places
