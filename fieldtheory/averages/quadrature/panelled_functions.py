"""Functions of one variable that are analytic between breakpoints, and panels that resolve them.

A panel resolves φ if the polynomial through 16 nodes gives φ and φ² to nine digits: 20 nodes then
integrate them, times a Gaussian and Hermite polynomials, to rounding. Panels are found by
bisection, from edges at powers of two and at breakpoints, and joined where they may be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.polynomial import legendre

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.routes import SETTINGS


@dataclass(frozen=True)
class PanelSettings:
    """Numbers that decide which panels resolve a function."""

    # Largest last coefficients relative to the largest one.
    resolved: float = 1e-9
    # The same where the slope is taken from the polynomials.
    differentiated: float = 1e-14
    # Last coefficients by degree 31, next to zero: 1e-13 at 39, up to which nodes integrate.
    resolved_at_zero: float = 1e-10
    # What counts as zero.
    tiny: float = 1e-250
    # Of h.
    rounding: float = 1e-15
    # Of a panel at most.
    bisections: int = 52
    # The first panels next to zero have the width 2 to the power −4.
    first: int = 4
    # Errors of joined panels that reach closer to zero than their own width.
    joined: float = 1e-13
    # From breakpoints, at which jumps are distinguished from slopes.
    distances: tuple[float, float] = (1e-6, 1e-12)
    # Part of φ next to a kink below which a change is rounding.
    no_jump: float = 1e-9
    # In deviations, at which the extent of a Gaussian times φ is looked for.
    step: float = 0.25
    # Deviations beyond which the density is below float64.
    farthest: float = 38.5


_PANELS = PanelSettings()
# Nodes of a panel, and of the polynomials that tell whether a panel resolves a function; next to
# zero φ may be a power of h, which bisection does not resolve with fewer nodes than powers.
ORDER, FITTED, _ZERO_FITTED = 20, 16, 32
NODES, WEIGHTS = legendre.leggauss(ORDER)
_FIT_NODES = legendre.leggauss(FITTED)[0]
_FIT = np.linalg.inv(legendre.legvander(_FIT_NODES, FITTED - 1))
_ZERO_NODES = legendre.leggauss(_ZERO_FITTED)[0]
_ZERO_FIT = np.linalg.inv(legendre.legvander(_ZERO_NODES, _ZERO_FITTED - 1))[-2:]
# Beyond the extent is a part e^(−43) of the average.
NEGLIGIBLE = 43.0
_LOOKED = np.arange(_PANELS.step, _PANELS.farthest + _PANELS.step, _PANELS.step)
_LOOKED = np.append(np.arange(-_PANELS.farthest, 0, _PANELS.step), _LOOKED)


class Function:
    """A function φ that is analytic between breakpoints and grows at most like a polynomial.

    ``slope`` is φ' between breakpoints, by default that of the polynomials on the panels.
    Breakpoints, where φ or a derivative jumps, that are not among ``kinks`` are found by bisection,
    at the cost of some 50 panels each. ``resolved`` bounds the last Legendre coefficients relative
    to the largest.

    Examples
    --------
    >>> relu = Function(lambda h: np.maximum(h, 0), lambda h: 1.0 * (h > 0), (0.0,))
    >>> relu.edges(3.0).tolist(), relu.parity, relu.jumps.tolist()
    ([-4.0, 0.0, 4.0], 0, [0.0])
    """

    def __init__(
        self,
        value: Callable,
        slope: Callable | None = None,
        kinks: tuple = (),
        resolved: float = _PANELS.resolved,
    ) -> None:
        self._value, self._slope, self._allowed = value, slope, resolved
        self.kinks = np.array(sorted(kinks), dtype=float)
        self._panels: dict[int, np.ndarray] = {}

    def value(self, h: np.ndarray) -> np.ndarray:
        """φ(h) in the shape of h, constants too."""
        with np.errstate(all="ignore"):
            values = np.asarray(self._value(h), dtype=float)
        return values if values.shape == np.shape(h) else np.broadcast_to(values, np.shape(h))

    __call__ = value

    def edges(self, reach: float) -> np.ndarray:
        """Edges of panels that resolve φ and φ², from −R to R >= reach."""
        power = max(int(np.ceil(np.log2(reach))), 0)
        if power not in self._panels:
            self._panels[power] = self._resolved(2.0**power)
        return self._panels[power]

    def _resolved(self, reach: float) -> np.ndarray:
        inner = self.kinks[np.abs(self.kinks) < reach]
        dyadic = reach / 2.0 ** np.arange(np.log2(reach) + _PANELS.first)
        # The size of φ up to distances from zero, where the Gaussian is largest.
        self._distances = np.append(0.0, dyadic[::-1])
        low, high = self._distances[:-1, None], self._distances[1:, None]
        h = (low + high) / 2 + (high - low) / 2 * _FIT_NODES
        top = np.maximum(np.abs(self.value(h)), np.abs(self.value(-h))).max(axis=1)
        self._sizes = np.append(_PANELS.tiny, np.maximum.accumulate(top))
        ends = np.unique([0.0, *dyadic, *-dyadic, *inner])
        low, high, kept = ends[:-1], ends[1:], [ends]
        for _ in range(_PANELS.bisections):
            split = self._fits(low, high)[2] & (high - low > _PANELS.rounding * np.abs(low + high))
            if not split.any():
                break
            if split.sum() > SETTINGS.function_panels:
                raise QuadratureError(
                    f"an average did not reach the tolerance: {SETTINGS.function_panels} panels do "
                    f"not resolve the function up to {reach:g}, it varies too fast for signals of "
                    "that size"
                )
            low, high = low[split], high[split]
            middle = (low + high) / 2
            kept.append(middle)
            low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
        return self._joined(np.unique(np.concatenate(kept)), [0.0, *inner])

    def _fits(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Legendre coefficients of φ on panels, what may be missed of φ, and who misses more."""
        middle, half = (low + high) / 2, (high - low) / 2
        values = self.value(middle[:, None] + half[:, None] * _FIT_NODES)
        if not np.isfinite(values).all():
            raise QuadratureError(
                "an average did not reach the tolerance: the function exceeds the range of "
                f"float64, or has no value, between {low.min():.6g} and {high.max():.6g}; "
                "functions that grow exponentially have averages by closed forms only"
            )
        terms = np.stack([values, values**2]) @ _FIT.T
        nearer = self._size_up_to(np.minimum(np.abs(low), np.abs(high)))
        top = np.maximum(np.abs(terms).max(axis=2), [nearer, nearer**2])
        # Rounding of h is noise of φ, which no bisection resolves.
        steep = np.abs(np.diff(values, axis=1) / (np.diff(_FIT_NODES) * half[:, None])).max(axis=1)
        noise = _PANELS.rounding * np.maximum(np.abs(low), np.abs(high)) * steep
        allowed = self._allowed * top + _PANELS.tiny
        allowed += np.stack([noise, 2 * noise * np.abs(values).max(axis=1)])
        last = np.abs(terms[..., -2:]).max(axis=2)
        # Polynomials that stand for φ itself have no more degrees there.
        at_zero = (low * high == 0) & (self._allowed == _PANELS.resolved)
        (inner,) = np.nonzero((last > allowed).any(axis=0) & at_zero)
        powers = self.value(middle[inner, None] + half[inner, None] * _ZERO_NODES)
        missed = np.abs(np.stack([powers, powers**2]) @ _ZERO_FIT.T).max(axis=2)
        last[:, inner] = np.where(
            missed <= _PANELS.resolved_at_zero * top[:, inner], 0, last[:, inner]
        )
        return terms[0], allowed[0], (last > allowed).any(axis=0)

    def _size_up_to(self, distance: np.ndarray) -> np.ndarray:
        return self._sizes[np.searchsorted(self._distances, distance, side="right") - 1]

    def _joined(self, edges: np.ndarray, fixed: list[float]) -> np.ndarray:
        """The edges without those between panels that can be one."""
        start, idle = 0, 0
        while len(edges) > 2 and idle < 2:
            left, middle, right = (
                edges[start:-2:2],
                edges[start + 1 : -1 : 2],
                edges[start + 2 :: 2],
            )
            drop = ~np.isin(middle, fixed)
            drop[drop] = self._can_join(left[drop], middle[drop], right[drop])
            edges = np.setdiff1d(edges, middle[drop])
            start, idle = 1 - start, 0 if drop.any() else idle + 1
        return edges

    def _can_join(self, left: np.ndarray, middle: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Whether one polynomial gives φ on both panels: checked between its own nodes."""
        terms, allowed, missed = self._fits(left, right)
        centre, half = (left + right) / 2, (right - left) / 2
        nearest = np.minimum(np.abs(left), np.abs(right))
        # A large φ at the far end may hide how φ varies near zero.
        central = nearest + 1 < right - left
        size = self._size_up_to(nearest)[:, None]
        for low, high in ((left, middle), (middle, right)):
            h = ((low + high) / 2)[:, None] + ((high - low) / 2)[:, None] * _FIT_NODES
            x = (h - centre[:, None]) / half[:, None]
            exact = self.value(h)
            error = np.abs(exact - legendre.legval(x, terms.T[:, :, None], tensor=False))
            strict = _PANELS.joined * np.maximum(np.abs(exact), size)
            strict += 2 * _PANELS.rounding * np.abs(terms).max(axis=1)[:, None]
            missed |= (error > np.where(central[:, None], strict, 10 * allowed[:, None])).any(
                axis=1
            )
        return ~missed

    def extent(
        self, deviation: np.ndarray, mean: np.ndarray | float = 0.0, share: float = NEGLIGIBLE
    ) -> np.ndarray:
        """Distances from means in deviations, (m,), beyond which ⟨φ⟩ and ⟨φ²⟩ have no share."""
        deviation, mean = (np.array(v)[:, None] for v in np.broadcast_arrays(deviation, mean))
        with np.errstate(all="ignore"):
            inside = ((self.kinks[1:] + self.kinks[:-1]) / 2 - mean) / deviation
            z = np.hstack([np.broadcast_to(_LOOKED, (len(mean), len(_LOOKED))), inside])
            z = np.where(np.abs(z) <= _PANELS.farthest, z, 0.0)
            size = np.log(np.abs(self.value(mean + deviation * z)))
        size[~np.isfinite(size)] = -np.inf
        extents = np.zeros(len(z))
        for power in (1, 2):
            weight = power * size - z**2 / 2
            top = weight.max(axis=1, keepdims=True)
            counts = (weight >= top - share) & (top > -np.inf)
            extents = np.maximum(extents, np.where(counts, np.abs(z), 0.0).max(axis=1))
        return extents + _PANELS.step

    @cached_property
    def slope(self) -> Function:
        """φ' between breakpoints."""
        return Function(self._slope or self._differentiated, None, tuple(self.kinks))

    @cached_property
    def _fine(self) -> Function:
        return Function(self.value, None, tuple(self.kinks), _PANELS.differentiated)

    def _differentiated(self, h: np.ndarray) -> np.ndarray:
        """φ' from the polynomials on the panels."""
        h = np.asarray(h, dtype=float)
        edges = self._fine.edges(np.abs(h).max(initial=1.0))
        terms = legendre.legder(self._terms(edges), axis=1) * (2 / np.diff(edges)[:, None])
        return _on_panels(edges, terms, h)

    def interpolated(self, reach: float) -> Callable:
        """φ between −reach and reach by the polynomials on panels, for a φ that takes long."""
        edges = self._fine.edges(reach)
        terms = self._terms(edges)
        return lambda h: _on_panels(edges, terms, np.asarray(h, dtype=float))

    def _terms(self, edges: np.ndarray) -> np.ndarray:
        """Legendre coefficients of φ on panels."""
        middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
        return self.value(middle[:, None] + half[:, None] * _FIT_NODES) @ _FIT.T

    @cached_property
    def nearest(self) -> float:
        """The distance of the first breakpoint from zero, infinite without one."""
        return float(np.abs(self.kinks).min(initial=np.inf))

    @cached_property
    def parity(self) -> int:
        """1 of even, −1 of odd functions, 0 of others."""
        h = np.concatenate([np.linspace(0.003, 9.7, 400), np.geomspace(1e-6, 1e3, 100)])
        above, below = self.value(h), self.value(-h)
        for sign in (1, -1):
            if (np.abs(above - sign * below) <= _PANELS.rounding * np.abs(above)).all():
                return sign
        return 0

    @cached_property
    def jumps(self) -> np.ndarray:
        """By how much φ jumps at each of ``kinks``; zero at a kink."""
        far, near = ([self.value(self.kinks + s * d) for s in (1, -1)] for d in _PANELS.distances)
        above, below = (self.value(np.nextafter(self.kinks, way)) for way in (np.inf, -np.inf))
        # Twice zero up to rounding where φ is even about a kink.
        allowed = np.abs(far[0] - far[1]) / 2 + _PANELS.no_jump * np.abs(far).max(axis=0)
        return np.where(np.abs(near[0] - near[1]) > allowed, above - below, 0.0)

    @cached_property
    def jumping(self) -> np.ndarray:
        """The breakpoints at which φ jumps."""
        return self.kinks[self.jumps != 0]

    @cached_property
    def square(self) -> Function:
        """φ²."""
        slope = self.slope.value
        return Function(
            lambda h: self.value(h) ** 2,
            lambda h: 2 * self.value(h) * slope(h),
            tuple(self.kinks),
        )

    @cached_property
    def reflected(self) -> Function:
        """φ(−h)."""
        slope = self.slope.value
        return Function(lambda h: self.value(-h), lambda h: -slope(-h), tuple(-self.kinks[::-1]))

    def at_zero(self) -> np.ndarray:
        """φ(0−) and φ(0+) where φ jumps at zero, else φ(0) twice."""
        tiny = np.finfo(float).tiny if (self.jumping == 0).any() else 0.0
        return self.value(np.array([-tiny, tiny]))


def _on_panels(edges: np.ndarray, terms: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Values at h of polynomials given by Legendre coefficients (panels, degree + 1)."""
    panel = np.clip(np.searchsorted(edges, h, side="right") - 1, 0, len(edges) - 2)
    x = (2 * h - edges[panel] - edges[panel + 1]) / (edges[panel + 1] - edges[panel])
    return legendre.legval(x, np.moveaxis(terms[panel], -1, 0), tensor=False)
