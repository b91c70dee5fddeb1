"""Nodes of what two nearly parallel inputs share of their signals in two layers.

Of the signals x of the earlier layer and y of the later one an input shares ξ and η with the other,

    x = e ξ + σ ζ,        y = A x + m η + τ ζ',

where σ and τ are small. Averages over the noise ζ and ζ' are smooth on its scales where a kink is
in sight, and as the functions themselves elsewhere: nodes lie on panels that grow away from the
kinks, so that their number grows as the logarithm of the angle between the inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fieldtheory.averages.integrals.quadrature import composite
from fieldtheory.numerics.kinks.kinked_planes import ORDER, REACH, distinct, graded

# Deviations of the noise beyond which kinks are out of sight.
SIGHT = 10.0
# Scale on which functions change at centres that are no kinks.
_SMOOTH = 0.3
# 1 − t of what is shared entirely, for which there are panels.
_EQUAL = 1e-22
# Weights of nodes that are nothing.
_NOTHING = 1e-20


class Signals(NamedTuple):
    """e, σ, A, m and τ of one input."""

    e: float
    sigma: float
    A: float
    m: float
    tau: float

    @classmethod
    def of(cls, both: np.ndarray, t: np.ndarray) -> Signals:
        """Of x and y in terms of z_1 and z_2, (2, 2), which inputs share by correlations t >= 0."""
        left = np.sqrt(np.maximum(1 - t, _EQUAL))
        sizes = np.array([both[0, 0], both[1, 1]])
        e, m = (sizes * np.sqrt(t)).tolist()
        sigma, tau = (np.abs(sizes) * left).tolist()
        return cls(e, sigma, float(both[1, 0] / both[0, 0]), m, tau)

    @property
    def s(self) -> float:
        """The deviation of y given what is shared."""
        return float(np.hypot(self.A * self.sigma, self.tau))

    @property
    def given_first(self) -> Signals:
        """The same with nothing shared of the later layer alone."""
        return self._replace(m=0.0, tau=float(np.hypot(self.m, self.tau)))


class Centre(NamedTuple):
    """Where functions have a kink or change fastest."""

    place: float
    is_kink: bool

    def scale(self, noise: float) -> float:
        """On which averages over noise change."""
        return noise if self.is_kink else max(noise, _SMOOTH)


class _Line(NamedTuple):
    """Where functions change on a scale: from one place of every row to another, each (rows,)."""

    low: np.ndarray
    high: np.ndarray
    scale: float


@dataclass(frozen=True, eq=False)
class Strip:
    """Nodes of ξ with nodes of η: the same for all ξ if kinks of x are near, else those of each.

    Parameters
    ----------
    near : bool
    xi, xi_weights : ndarray, shape (n,)
        Ascending.
    eta : ndarray, shape (m,) or (nodes,)
    row : ndarray of int, shape (nodes,)
        The ξ of every node.
    weights : ndarray, shape (nodes,)
    """

    near: bool
    xi: np.ndarray
    xi_weights: np.ndarray
    eta: np.ndarray
    row: np.ndarray
    weights: np.ndarray

    @property
    def shared(self) -> tuple[np.ndarray, np.ndarray]:
        """ξ and η of every node, each of the shape (nodes,)."""
        return self.xi[self.row], np.tile(self.eta, len(self.xi)) if self.near else self.eta

    @property
    def given_first(self) -> Strip:
        """The same with one η, 0."""
        rows = np.arange(len(self.xi))
        eta = np.zeros(1 if self.near else len(rows))
        return Strip(self.near, self.xi, self.xi_weights, eta, rows, self.xi_weights)


def strips(inputs: Sequence[Signals], centres: Sequence[Centre], widest: float) -> list[Strip]:
    """Nodes of ξ and η that serve both inputs.

    Parameters
    ----------
    inputs : sequence of Signals
    centres : sequence of Centre
    widest : float
        Width of panels in deviations of what they have to resolve.
    """
    edges = distinct(_edges(_lines_of_first(inputs, centres), 1, widest)[0])
    ends = np.stack([edges[:-1], edges[1:]])
    near = np.any([_in_sight(one, centre, ends) for one in inputs for centre in centres], axis=0)
    found = []
    for part in np.split(np.arange(len(near)), np.flatnonzero(np.diff(near)) + 1):
        xi, weights = composite(edges[part[0] : part[-1] + 2], ORDER)
        of_strip = bool(near[part[0]])
        lines = _lines_of_second(inputs, centres, of_strip, xi)
        found.append(_strip(of_strip, xi, weights * _bell(xi), lines, widest))
    return found


def _strip(
    near: bool, xi: np.ndarray, xi_weights: np.ndarray, lines: Sequence[_Line], widest: float
) -> Strip:
    rows = 1 if near else len(xi)
    if lines:
        eta, weights = composite(_edges(lines, rows, widest), ORDER)
        weights *= _bell(eta)
    else:
        # Nothing depends on η.
        eta, weights = np.zeros((rows, 1)), np.ones((rows, 1))
    weights = (xi_weights[:, None] * weights).ravel()
    row = np.repeat(np.arange(len(xi)), eta.shape[1])
    if near:
        return Strip(near, xi, xi_weights, eta[0], row, weights)
    # Without η the nodes are those of ξ, all of which functions of ξ alone have.
    (used,) = np.nonzero((weights > _NOTHING) | (not lines))
    return Strip(near, xi, xi_weights, eta.ravel()[used], row[used], weights[used])


def _bell(z: np.ndarray) -> np.ndarray:
    return np.exp(-z * z / 2) / np.sqrt(2 * np.pi)


def _lines_of_first(inputs: Sequence[Signals], centres: Sequence[Centre]) -> list[_Line]:
    """Where functions of ξ change: at kinks of x, and at those of y whatever η is."""
    found = []
    for one in inputs:
        noise = float(np.hypot(one.s, one.m))
        for along, deviation in ((one.e, one.sigma), (one.A * one.e, noise)):
            for centre in centres if along else ():
                place = np.array([centre.place / along])
                found.append(_Line(place, place, centre.scale(deviation) / abs(along)))
    return found


def _lines_of_second(
    inputs: Sequence[Signals], centres: Sequence[Centre], near: bool, xi: np.ndarray
) -> list[_Line]:
    """Where functions of η change: at kinks of y, and if x may be at one of its kinks, of both."""
    found = []
    for one in inputs:
        if not one.m:
            continue
        mean = one.A * one.e * (xi[[0, -1]] if near else xi)
        for centre in centres:
            places = (centre.place - mean) / one.m
            scale = centre.scale(one.s) / abs(one.m)
            if not near:
                found.append(_Line(places, places, scale))
                continue
            found.append(_Line(places[[places.argmin()]], places[[places.argmax()]], scale))
            for other in centres:
                if centre.is_kink and _in_sight(one, other, xi[[0, -1]]):
                    place = np.array([(centre.place - one.A * other.place) / one.m])
                    found.append(_Line(place, place, one.tau / abs(one.m)))
    return found


def _in_sight(one: Signals, centre: Centre, xi: np.ndarray) -> np.ndarray:
    """Whether x may be at a kink for some ξ between the ends (2, ...)."""
    low, high = np.sort(one.e * xi, axis=0)
    apart = np.maximum(low - centre.place, centre.place - high)
    return np.asarray(centre.is_kink & (apart < SIGHT * one.sigma))


def _edges(lines: Sequence[_Line], rows: int, widest: float) -> np.ndarray:
    """Ends of panels, shape (rows, n), some of which may be empty."""
    base = np.linspace(-REACH, REACH, int(np.ceil(2 * REACH / widest)) + 1)
    parts = [np.tile(base, (rows, 1))]
    for low, high, scale in _merged(lines, widest):
        width = widest * scale
        if width < widest:
            low, high = low[:, None], high[:, None]
            inner = max(1, int(np.ceil((high - low).max() / width)))
            around = beside(width, SIGHT * scale, widest)
            parts += [low - around, high + around]
            parts.append(low + (high - low) * np.arange(1, inner) / inner)
    return np.sort(np.clip(np.concatenate(parts, axis=1), -REACH, REACH), axis=1)


def beside(width: float, sight: float, widest: float) -> np.ndarray:
    """Distances from a kink of ends of panels, of one width in sight of it and growing beyond.

    Examples
    --------
    >>> beside(0.5, 1.0, 4.0)
    array([ 0. ,  0.5,  1. ,  2. ,  4. , 10. ])
    """
    steady = width * np.arange(int(np.ceil(sight / width)) + 1)
    return np.concatenate([steady, steady[-1] + graded(2 * width, widest)])


def _merged(lines: Sequence[_Line], widest: float) -> list[_Line]:
    """The lines, those that nearly coincide as one."""
    found: list[_Line] = []
    for line in sorted(lines, key=lambda line: line.scale):
        for place, other in enumerate(found):
            low, high = np.minimum(line.low, other.low), np.maximum(line.high, other.high)
            wider = (high - low) - (other.high - other.low)
            if line.scale < 2 * other.scale and wider.max() <= widest * other.scale:
                found[place] = _Line(low, high, other.scale)
                break
        else:
            found.append(line)
    return found
