"""Functions of one variable that are analytic between kinks, and the panels that resolve them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.polynomial import chebyshev, legendre

from fieldtheory.averages.errors import QuadratureError

# Nodes of a panel, and those of which a function has to be a polynomial: the others are for the
# square of it times the Gaussian.
ORDER, RESOLVING = 20, 16
NODES, WEIGHTS = legendre.leggauss(ORDER)
# Integral and Legendre coefficients of an integrand, amid and last, by its values at the nodes.
TAILS = np.stack(
    [WEIGHTS]
    + [
        (n + 0.5) * WEIGHTS * legendre.legval(NODES, np.eye(ORDER)[n])
        for n in (ORDER // 2 - 1, ORDER // 2, ORDER - 2, ORDER - 1)
    ],
    axis=1,
)
_NODES = legendre.leggauss(RESOLVING)[0]
_FIT = np.linalg.inv(legendre.legvander(_NODES, RESOLVING - 1))
# What of a function a panel may miss, relative to its largest value there and to that anywhere.
_RESOLVED, _DIFFERENTIATED = 1e-9, 1e-14
# Distances from kinks at which jumps are told from slopes.
_BESIDE = 1e-6, 1e-12
_TINY = 1e-250
_DEPTH, _MOST, _ROUNDING, _FINEST, _EXACT, _CENTRAL = 52, 1 << 16, 1e-15, 4, 1e-13, 1.0
# Polynomials at zero: their degree, and how far from zero, in deviations, the Gaussian reaches.
_DEGREE, REACH = 24, 9.5


class Function:
    """A function φ that is analytic between kinks and grows at most as a polynomial.

    Parameters
    ----------
    value : callable
        Vectorised.
    slope : callable, optional
        φ' between kinks; without it, of the polynomials on the panels.
    kinks : sequence of float
        Where φ or a derivative jumps. Kinks that are not declared are found by bisection, at the
        cost of some 50 panels each.
    """

    def __init__(
        self,
        value: Callable,
        slope: Callable | None = None,
        kinks: tuple = (),
        resolved: float = _RESOLVED,
    ) -> None:
        self.value, self._slope, self._allowed = _of_arrays(value), slope, resolved
        self.kinks = np.array(sorted(kinks), dtype=float)
        self._panels: dict[int, np.ndarray] = {}

    def __call__(self, h: np.ndarray) -> np.ndarray:
        """φ(h)."""
        return self.value(h)

    def edges(self, reach: float) -> np.ndarray:
        """Ends of panels on which φ and φ² are resolved, between −R and R ≥ reach."""
        power = max(int(np.ceil(np.log2(reach))), 0)
        if power not in self._panels:
            self._panels[power] = self._resolved(2.0**power)
        return self._panels[power]

    def _resolved(self, reach: float) -> np.ndarray:
        inner = self.kinks[np.abs(self.kinks) < reach]
        dyadic = reach / 2.0 ** np.arange(np.log2(reach) + _FINEST)
        ends = np.unique([0.0, *dyadic, *-dyadic, *inner])
        low, high, kept = ends[:-1], ends[1:], [ends]
        self._dyadic = np.append(0.0, dyadic[::-1])
        tops = [np.abs(self.value(sign * self._places())).max(axis=1) for sign in (1, -1)]
        self._largest = np.append(_TINY, np.maximum.accumulate(np.maximum(*tops)))
        for _ in range(_DEPTH):
            split = self._misses(low, high) & (high - low > 1e-15 * np.abs(low + high))
            if not split.any():
                break
            if split.sum() > _MOST:
                raise QuadratureError(
                    f"an average did not reach the tolerance: {_MOST} panels do not resolve the "
                    f"function up to {reach:g}, it varies too fast for signals of that size"
                )
            low, high = low[split], high[split]
            middle = (low + high) / 2
            kept.append(middle)
            low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
        return self._merged(np.unique(np.concatenate(kept)), [0.0, *inner])

    def _places(self) -> np.ndarray:
        low, high = self._dyadic[:-1], self._dyadic[1:]
        return ((low + high) / 2)[:, None] + ((high - low) / 2)[:, None] * _NODES

    def _nearer(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """The size of φ nearer to zero than panels, about."""
        nearest = np.minimum(np.abs(low), np.abs(high))
        return self._largest[np.searchsorted(self._dyadic, nearest, side="right") - 1]

    def _merged(self, edges: np.ndarray, fixed: list[float]) -> np.ndarray:
        """The edges without those that resolve nothing."""
        start, idle = 0, 0
        while len(edges) > 2 and idle < 2:
            left, middle, right = (
                edges[start:-2:2],
                edges[start + 1 : -1 : 2],
                edges[start + 2 :: 2],
            )
            drop = ~np.isin(middle, fixed)
            drop[drop] = ~self._misses(left[drop], right[drop], middle[drop])
            edges = np.setdiff1d(edges, middle[drop])
            start, idle = 1 - start, 0 if drop.any() else idle + 1
        return edges

    def _misses(
        self, low: np.ndarray, high: np.ndarray, inside: np.ndarray | None = None
    ) -> np.ndarray:
        """Whether panels do not resolve φ and φ², on either side of what is inside."""
        middle, half = (low + high) / 2, (high - low) / 2
        values = np.asarray(self.value(middle[:, None] + half[:, None] * _NODES), dtype=float)
        if not np.isfinite(values).all():
            raise QuadratureError(
                "an average did not reach the tolerance: the function exceeds the range of "
                f"float64, or has no value, between {low.min():.6g} and {high.max():.6g}; "
                "functions that grow exponentially have averages through closed forms alone"
            )
        terms = np.abs(np.stack([values, values**2]) @ _FIT.T)
        nearer = self._nearer(low, high)
        top = np.maximum(terms.max(axis=2), [nearer, nearer**2])
        # Rounding of h is noise of φ, which no bisection resolves.
        steep = np.abs(np.diff(values, axis=1) / (np.diff(_NODES) * half[:, None])).max(axis=1)
        noise = _ROUNDING * np.maximum(np.abs(low), np.abs(high)) * steep
        noise = np.stack([noise, 2 * noise * np.abs(values).max(axis=1)])
        allowed = self._allowed * top + noise + _TINY
        missed = (terms[..., -2:].max(axis=2) > allowed).any(axis=0)
        if inside is not None:
            for start, end in ((low, inside), (inside, high)):
                h = ((start + end) / 2)[:, None] + ((end - start) / 2)[:, None] * _NODES
                x = (h - middle[:, None]) / half[:, None]
                told = legendre.legval(x, (values @ _FIT.T).T[:, :, None], tensor=False)
                exact = self.value(h)
                # Far from zero φ may be so large that it hides what there is near zero.
                near = np.minimum(np.abs(low), np.abs(high)) + _CENTRAL < 2 * half
                strict = (
                    _EXACT * np.maximum(np.abs(exact), nearer[:, None]) + 2e-15 * top[0][:, None]
                )
                few = np.where(near[:, None], strict, 10 * allowed[0][:, None])
                missed |= (np.abs(exact - told) > few).any(axis=1)
        return missed

    @cached_property
    def slope(self) -> Function:
        """φ' between kinks."""
        return Function(self._slope or self._differentiated, None, tuple(self.kinks))

    @cached_property
    def _fine(self) -> Function:
        return Function(self.value, None, tuple(self.kinks), _DIFFERENTIATED)

    def _differentiated(self, h: np.ndarray) -> np.ndarray:
        """φ' from the polynomials on the panels."""
        h = np.asarray(h, dtype=float)
        edges = self._fine.edges(max(np.abs(h).max(), 1.0))
        middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
        values = self.value(middle[:, None] + half[:, None] * _NODES)
        terms = legendre.legder(values @ _FIT.T, axis=1) / half[:, None]
        place = np.clip(np.searchsorted(edges, h, side="right") - 1, 0, len(half) - 1)
        return legendre.legval(
            (h - middle[place]) / half[place],
            terms[place].T.copy() if h.ndim == 1 else np.moveaxis(terms[place], -1, 0),
            tensor=False,
        )

    @cached_property
    def parity(self) -> int:
        """1 of even, −1 of odd functions, 0 of others."""
        h = np.concatenate([np.linspace(0.003, 9.7, 400), np.geomspace(1e-6, 1e3, 100)])
        above, below = self.value(h), self.value(-h)
        for sign in (1, -1):
            if (np.abs(above - sign * below) <= 1e-15 * np.abs(above)).all():
                return sign
        return 0

    @cached_property
    def jumps(self) -> np.ndarray:
        """By how much φ jumps at its kinks."""
        near, nearer = (self.value(self.kinks + d) - self.value(self.kinks - d) for d in _BESIDE)
        above, below = (self.value(np.nextafter(self.kinks, way)) for way in (np.inf, -np.inf))
        return np.where(np.abs(nearer) > np.abs(near) / 2, above - below, 0.0)

    @cached_property
    def jumping(self) -> np.ndarray:
        """The kinks at which φ jumps."""
        return self.kinks[self.jumps != 0]

    @cached_property
    def polynomial(self) -> tuple[float, np.ndarray, np.ndarray]:
        """r, the coefficients of φ(r x) in powers of x and their errors; r = 0: there are none.

        They are what φ is on |h| ≤ r.
        """
        apart = np.abs(self.kinks).min() if len(self.kinks) else np.inf
        nodes, radius = chebyshev.chebpts1(4 * (_DEGREE + 1)), min(apart, 64.0)
        powers = np.array(
            [
                np.pad(chebyshev.cheb2poly(row), (0, _DEGREE))[: _DEGREE + 1]
                for row in np.eye(_DEGREE + 1)
            ]
        )
        while radius > 1e-3 * min(apart, 1.0):
            terms = chebyshev.chebfit(nodes, self.value(radius * nodes), _DEGREE)
            top = np.abs(terms).max()
            if np.abs(terms[-3:]).max() < 4e-16 * top:
                kept = np.nonzero(np.abs(terms) > 2e-16 * top)[0].max(initial=0) + 1
                terms[kept:] = 0.0
                error = 5e-16 * (
                    top * np.sqrt((powers[:kept] ** 2).mean(axis=0)) + np.abs(terms @ powers)
                )
                found = terms @ powers
                found[0] = self.value(np.zeros(1))[0]
                error[0] = 4e-16 * np.abs(found[0])
                return radius, found, error
            radius /= 1.5
        return 0.0, np.zeros(_DEGREE + 1), np.zeros(_DEGREE + 1)

    @cached_property
    def square(self) -> Function:
        """φ²."""
        slope = self.slope
        found = Function(
            lambda h: self.value(h) ** 2,
            lambda h: 2 * self.value(h) * slope.value(h),
            tuple(self.kinks),
        )
        # What cancels in products of polynomials is zero.
        radius, terms, errors = self.polynomial
        found.polynomial = radius, np.convolve(terms, terms), 2 * np.convolve(np.abs(terms), errors)
        return found

    def shifted(self, constant: float) -> Function:
        """φ less a constant."""
        return Function(lambda h: self.value(h) - constant, self.slope.value, tuple(self.kinks))

    @cached_property
    def reflected(self) -> Function:
        """φ(−h)."""
        slope = self.slope
        return Function(
            lambda h: self.value(-h), lambda h: -slope.value(-h), tuple(-self.kinks[::-1])
        )


def _of_arrays(value: Callable) -> Callable:
    """A function whose values have the shape of its argument, constants too."""

    def everywhere(h: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            found = np.asarray(value(h), dtype=float)
        return found if found.shape == np.shape(h) else np.broadcast_to(found, np.shape(h))

    return everywhere
