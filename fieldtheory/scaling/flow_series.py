"""Solutions of flows as Chebyshev series, in a variable in which they change evenly."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from fieldtheory.numerics.interpolation import nodes, transform

# Iterations at most of a stretch, and stretches.
_ITERATIONS, _PIECES = 40, 200
# After so many iterations the last coefficients are about known.
_EARLY, _HOPELESS = 4, 1e3
# Changes of a state that the derivatives of the rates carry on.
_NEAR = 0.1
# What of a state counts as zero.
_FLOOR = 1e-6


class Clock(NamedTuple):
    """The variable u = ln(1 + t/τ) in which the flow changes evenly; τ is the time of the start."""

    tau: float

    def reading(self, time: Any) -> Any:
        """u of t."""
        return np.log1p(time / self.tau)

    def time(self, reading: Any) -> Any:
        """t of u."""
        return self.tau * np.expm1(reading)

    def rate(self, reading: Any) -> Any:
        """dt/du."""
        return self.tau * np.exp(reading)


class Path(NamedTuple):
    """States of pairs as Chebyshev series between readings of the clock, ``cuts``."""

    cuts: np.ndarray
    series: list[np.ndarray]

    def of(self, pairs: np.ndarray, size: int) -> Path:
        """The path of some pairs, each with so many states."""
        parts = [c.reshape(len(c), size, -1)[:, :, pairs] for c in self.series]
        return Path(self.cuts, [c.reshape(len(c), -1) for c in parts])

    def __call__(self, readings: np.ndarray) -> np.ndarray:
        """The states of all pairs at common readings, (states times pairs, readings)."""
        found = np.empty((self.series[0].shape[1], len(readings)))
        place = self._place(readings)
        for index in np.unique(place).tolist():
            own = place == index
            found[:, own] = chebyshev.chebval(
                self._inside(index, readings[own]), self.series[index]
            )
        return found

    def of_each(self, readings: np.ndarray, size: int) -> np.ndarray:
        """The states (size, pairs) of pairs, each at a reading of its own."""
        states, place = np.empty((size, len(readings))), self._place(readings)
        for index in np.unique(place).tolist():
            own = place == index
            of_pairs = self.series[index].reshape(-1, size, len(readings))[:, :, own]
            at = self._inside(index, readings[own])
            states[:, own] = chebyshev.chebval(at, of_pairs, tensor=False)
        return states

    def _place(self, readings: np.ndarray) -> np.ndarray:
        return np.clip(np.searchsorted(self.cuts, readings) - 1, 0, len(self.series) - 1)

    def _inside(self, index: int, readings: np.ndarray) -> np.ndarray:
        low, high = self.cuts[index : index + 2]
        return 2 * (readings - low) / (high - low) - 1


def followed(
    rate: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    start: np.ndarray,
    cuts: np.ndarray,
    clock: Clock,
    count: int,
    tolerance: float,
    known: Path | None = None,
) -> Path | None:
    """The path of a state from a start, with stretches that are halved where they are not resolved.

    Parameters
    ----------
    rate : callable
        States (n, nodes) -> their rates, and about the derivative of each rate by its own state,
        which speeds the iteration, both (n, nodes); of a flow that does not depend on the time.
    start : ndarray, shape (n,)
    cuts : ndarray
        Readings of the clock from 0 on, between which the series are.
    clock : Clock
    count : int
        Chebyshev nodes of a series.
    tolerance : float
        What the last coefficients may be, and the last change, relative to the largest state.
    known : Path, optional
        About the path.

    Returns
    -------
    Path or None
        None if it is not resolved.

    Examples
    --------
    >>> clock = Clock(1.0)
    >>> cuts = clock.reading(np.array([0.0, 1.0, 2.0]))
    >>> path = followed(lambda y: (-y, -np.ones(y.shape)), np.array([1.0]), cuts, clock, 20, 1e-12)
    >>> (path(clock.reading(np.array([2.0]))) - np.exp(-2)).round(12) + 0.0
    array([[0.]])
    """
    done, left, series = [float(cuts[0])], [float(cut) for cut in cuts[:0:-1]], []
    while left:
        low, high = done[-1], left[-1]
        coefficients = _collocated(rate, start, low, high, clock, count, tolerance, known)
        if coefficients is None:
            if len(left) + len(done) > _PIECES or not np.isfinite(start).all():
                return None
            left.append((low + high) / 2)
            continue
        done.append(left.pop())
        series.append(coefficients)
        start = coefficients.sum(axis=0)
    return Path(np.array(done), series)


def _collocated(
    rate: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    start: np.ndarray,
    low: float,
    high: float,
    clock: Clock,
    count: int,
    tolerance: float,
    known: Path | None,
) -> np.ndarray | None:
    """The Chebyshev series (count + 1, n) of a solution between two readings; None if not resolved.

    With the rates at all nodes at once. To what Picard's iteration adds, e, comes what the flow
    makes of it along each state, as δ = e + ∫ J δ dt with the derivative J of a rate by its state.
    """
    readings = low + (high - low) * (nodes(count) + 1) / 2
    integral = (high - low) / 2 * _integral(count) * clock.rate(readings)
    T = chebyshev.chebvander(nodes(count), count)
    summed = (T @ integral).T
    y = np.repeat(start[:, None], count, axis=1)
    if known is not None:
        about = known(np.append(low, readings))
        y += about[:, 1:] - about[:, :1]
    for iteration in range(_ITERATIONS):
        with np.errstate(all="ignore"):
            rates, slopes = rate(y)
            coefficients = integral @ rates.T
            coefficients[0] += start
            added = (T @ coefficients).T - y
            y = y + added
            change, size = np.abs(added).max(axis=1), np.abs(y).max(axis=1) + _FLOOR
            # From far away it would go too far.
            (near,) = np.nonzero(change <= _NEAR * size)
            growth = np.exp(slopes[near] @ summed)
            y[near] += growth * ((slopes[near] * added[near] / growth) @ summed)
        if not np.isfinite(y).all():
            return None
        tail = (np.abs(coefficients[-2:]).max(axis=0) / (tolerance * size)).max()
        if (change <= tolerance * size).all():
            return coefficients if tail <= 1 else None
        if iteration >= _EARLY and tail > _HOPELESS:
            return None
    return None


@lru_cache
def _integral(count: int) -> np.ndarray:
    """From values at nodes to the coefficients of the integral from −1."""
    return chebyshev.chebint(transform(count), lbnd=-1)
