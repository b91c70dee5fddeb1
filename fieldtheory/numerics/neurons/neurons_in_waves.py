"""Functions of one neuron as waves, for smooth φ and signals much wider than φ changes.

With x = h/Γ, Γ the product of the scales γ of the skips before, layers only add noise,
x' = x + f/Γ'. It multiplies densities by exp(−v k²/2) at the wave number k, with v its variance;
P_j multiplies by (−k²/(2Γ'²))^j/j! besides. Signals of deviation σ whose φ² has waves up to k take
about 3σk of them, Hermite polynomials about σ²k².

A function is seen in two ways: times the Gaussian, as a density that moves on from layer to layer,
and as what is averaged over a density. The waves are those of a period that densities do not
reach, and sums over points at even distances are averages to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from math import ceil, factorial, pi, sqrt
from typing import NamedTuple

import numpy as np
from scipy import fft

from fieldtheory.networks.coefficients import LayerCoefficients, layer_coefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.neurons.hermite_modes import Observable, Square, overlooks, square_of

# Waves whose width times the deviation of the noise, or of the signals, exceeds this are nothing:
# behind noise, and of the Gaussian times polynomials.
_NOISE, _WIDTH = 8.0, 10.0
# The largest wave number on the points beside that of φ²: products have larger ones.
_FINER = 1.25
# By how much signals become wider before their grid does.
_WIDER = 2.0
# Points at which the waves of φ² are counted, and at most; what is rounding beside the largest.
_FEWEST_POINTS, _MOST_POINTS, _ROUNDING = 1 << 8, 1 << 17, 1e-15
# Functions that much larger than usual drown averages in the rounding of densities.
_LARGEST = 1e5

_Transform = Callable[..., np.ndarray]


@dataclass(frozen=True)
class Grid:
    """Points at distances (j + 1/2) reach/points from zero, and waves with their period.

    Parameters
    ----------
    reach : float
        Half the period, in x.
    points : int
        On either side of zero.
    count : int
        cos(kx) with k = 0, π/reach, ..., and as many sin(kx) with k = π/reach, ....
    even : bool
        Whether only even functions occur: points x > 0, and no sin(kx).
    """

    reach: float
    points: int
    count: int
    even: bool

    @cached_property
    def x(self) -> np.ndarray:
        """The points."""
        right = (np.arange(self.points) + 0.5) * (self.reach / self.points)
        return right if self.even else np.concatenate([-right[::-1], right])

    @cached_property
    def k2(self) -> np.ndarray:
        """The squares of the wave numbers of a vector."""
        orders = np.arange(self.count)
        if not self.even:
            orders = np.concatenate([orders, orders + 1])
        return (pi / self.reach * orders) ** 2

    @cached_property
    def point(self) -> np.ndarray:
        """The density that is all at x = 0."""
        cosines = np.full(self.count, sqrt((2 if self.even else 1) / self.points))
        cosines[0] /= sqrt(2)
        return cosines if self.even else np.concatenate([cosines, np.zeros(self.count)])

    def waves(self, values: np.ndarray) -> np.ndarray:
        """The vector of values on the points, an orthogonal transformation."""
        if self.even:
            return fft.dct(values, norm="ortho")[: self.count]
        left, right = values[: self.points][::-1], values[self.points :]
        cosines = fft.dct((right + left) / sqrt(2), norm="ortho")
        sines = fft.dst((right - left) / sqrt(2), norm="ortho")
        return np.concatenate([cosines[: self.count], sines[: self.count]])

    def values(self, u: np.ndarray) -> np.ndarray:
        """Those of a vector on the points."""
        cosines = fft.idct(u[: self.count], n=self.points, norm="ortho")
        if self.even:
            return cosines
        sines = fft.idst(u[self.count :], n=self.points, norm="ortho")
        return np.concatenate([(cosines - sines)[::-1], cosines + sines]) / sqrt(2)

    def moved(self, u: np.ndarray, there: Grid) -> np.ndarray:
        """A density, or columns of them, on a wider grid; its reach is a number of the points."""
        if there is self:
            return u
        points = round(there.reach / self.reach * self.points)

        def wider(u: np.ndarray, inverse: _Transform, forward: _Transform) -> np.ndarray:
            values = inverse(u, n=self.points, norm="ortho", axis=0)
            found = forward(values, n=points, norm="ortho", axis=0)[: there.count]
            rest = np.zeros((there.count - len(found), *u.shape[1:]))
            return sqrt(points / there.points) * np.concatenate([found, rest])

        cosines = wider(u[: self.count], fft.idct, fft.dct)
        if self.even:
            return cosines
        return np.concatenate([cosines, wider(u[self.count :], fft.idst, fft.dst)])


class Waves(NamedTuple):
    """Densities and functions of one layer.

    Parameters
    ----------
    grid : Grid
    variance : float
        V, of x.
    bell : ndarray, shape (m,)
        Weights of averages over N(0, V) on the points.
    gaussian : ndarray, shape (n,)
        N(0, V) as a vector.
    """

    grid: Grid
    variance: float
    bell: np.ndarray
    gaussian: np.ndarray

    @staticmethod
    def of(grid: Grid, variance: float) -> Waves:
        """Those of signals of this variance."""
        spacing = (2 if grid.even else 1) * grid.reach / grid.points
        bell = spacing / sqrt(2 * pi * variance) * np.exp(-(grid.x**2) / (2 * variance))
        return Waves(grid, variance, bell, grid.point * np.exp(-variance / 2 * grid.k2))

    def project(self, values: np.ndarray) -> np.ndarray:
        """The density of a function times the Gaussian."""
        return self.grid.waves(values * self.bell)

    def functional(self, values: np.ndarray) -> np.ndarray:
        """What averages a function over densities."""
        return self.grid.waves(values)

    def multiply(self, values: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """The density times a function."""
        return self.grid.waves(values * self.grid.values(coefficients))

    def mean(self, values: np.ndarray) -> float:
        """⟨F⟩."""
        return float(values @ self.bell)

    def unit(self, order: int) -> np.ndarray:
        """The density of h_n, n even: derivatives of the Gaussian are multiplied by (ik)ⁿ."""
        half = order // 2
        return (-self.variance * self.grid.k2) ** half / sqrt(factorial(order)) * self.gaussian

    def second(self) -> np.ndarray:
        """What averages h_2."""
        return self.functional((self.grid.x**2 / self.variance - 1) / sqrt(2))

    def centred(self, coefficients: np.ndarray) -> np.ndarray:
        """The density less as much of the Gaussian."""
        return coefficients - coefficients[0] / self.gaussian[0] * self.gaussian

    def windows(self, terms: np.ndarray) -> list[float]:
        """Nothing: errors show as differences between two sets of waves."""
        return [0.0, 0.0]


class WaveStep(NamedTuple):
    """From the waves of one layer to those of the next.

    Parameters
    ----------
    here : Grid
    there : Waves
    correlation, variance : float
        See `interacting_neurons.Step`.
    damping, curvature : ndarray, shape (n,)
        exp(−v k²/2), and −k²/(2Γ'²), which is that of h'.
    """

    here: Grid
    there: Waves
    correlation: float
    variance: float
    damping: np.ndarray
    curvature: np.ndarray

    def unit(self, order: int) -> np.ndarray:
        """The Hermite polynomial of this order."""
        return self.there.unit(order)

    def to_next(self, j: int, u: np.ndarray) -> np.ndarray:
        """P_jᵀ u, or of all columns of u."""
        factors = self.damping * self.curvature**j / factorial(j) if j else self.damping
        columns = (slice(None), *[None] * (u.ndim - 1))
        return self.here.moved(factors[columns] * u, self.there.grid)


class _Stretched(NamedTuple):
    """φ² of h = Γx on a grid: its values, what averages it, and what averages 1."""

    values: np.ndarray
    averaging: np.ndarray
    one: np.ndarray


def in_waves(
    network: LayeredNetwork,
    layers: LayerCoefficients,
    kernels: tuple[np.ndarray, np.ndarray],
    grids: list[Grid],
) -> Iterator[tuple[Observable, WaveStep | None]]:
    """The observable of every layer l = 0, ..., L and the step to the next one.

    Parameters
    ----------
    network : LayeredNetwork
    layers : LayerCoefficients
    kernels : pair of ndarray, shape (L + 2,)
        C*^(l) and K*^(l).
    grids : list of Grid
        Of `grids_of`.
    """
    square, (C, K), stretch = square_of(network), kernels, _stretches(network)
    correlations = network.skip_scales * np.sqrt(K[:-2] / K[1:-1])
    here = Waves.of(grids[0], float(K[0]))
    for l, grid in enumerate(grids):
        if l == 0 or grid is not grids[l - 1] or stretch[l] != stretch[l - 1]:
            g = square.function(stretch[l] * grid.x)
            seen = _Stretched(g, grid.waves(g), grid.waves(np.ones_like(g)))
        mean, a = here.mean(seen.values), float(layers.weights[l + 1])
        values, averaging = a * (seen.values - mean), a * (seen.averaging - mean * seen.one)
        D = Observable(here, values, here.project(values), averaging, here.mean(values**2), 0.0)
        if l == network.depth:
            yield D, None
            return
        C_next, K_next, stretch2 = float(C[l + 1]), float(K[l + 1]), float(stretch[l + 1] ** 2)
        there = Waves.of(grids[l + 1], K_next / stretch2)
        damping, curvature = np.exp(-C_next / stretch2 / 2 * grid.k2), -grid.k2 / (2 * stretch2)
        yield D, WaveStep(grid, there, float(correlations[l]), K_next, damping, curvature)
        here = there


def grids_of(
    network: LayeredNetwork,
    kernels: tuple[np.ndarray, np.ndarray],
    left_out: float,
    reach: float,
) -> list[Grid] | None:
    """Those on which the layers l = 0, ..., L are known; None with kinks, and without skips.

    Parameters
    ----------
    network : LayeredNetwork
    kernels : pair of ndarray, shape (L + 2,)
        C*^(l) and K*^(l).
    left_out : float
        What is left out of the curvatures of the waves of φ² beside the largest.
    reach : float
        In deviations of the signals.
    """
    square, (C, K), stretch = square_of(network), (x[:-1] for x in kernels), _stretches(network)
    layers = layer_coefficients(network)
    if square.kinks or not (np.square(stretch).all() and K.all()):
        return None
    variances, noise = K / stretch**2, C / stretch**2
    # The input is no noise, and there is none behind the last layer.
    noise = np.concatenate([[np.inf], noise[1:], [np.inf]])
    grids: list[Grid] = []
    for part in _parts(variances, stretch):
        k = 0.0
        for l in (part.start, part.stop - 1):
            overlooked = partial(overlooks, layers, kernels[0], l)
            found = _wave_number(square, sqrt(K[l]), left_out, reach, overlooked)
            k = max(k, found * abs(stretch[l]))
        least = noise[part.start : part.stop + 1].min()
        kept = min(k, _NOISE / sqrt(least)) if least > 0 else k
        kept, k = (max(number, _WIDTH / sqrt(variances[part.start])) for number in (kept, k))
        # Noise carries signals to the next layer before they move to its grid.
        half = reach * sqrt(variances[part.start : part.stop + 1].max())
        if not half * k < _MOST_POINTS:
            return None
        if grids:
            spacing = grids[-1].reach / grids[-1].points
            half = spacing * ceil(half / spacing)
        points = fft.next_fast_len(ceil(_FINER * half * k / pi), real=True)
        grid = Grid(half, points, ceil(half * kept / pi) + 1, square.even)
        grids += [grid] * (part.stop - part.start)
    return grids


def _parts(variances: np.ndarray, stretch: np.ndarray) -> Iterator[slice]:
    """Layers one after the other of which x is about as wide, and h as much of x."""
    start = 0
    for l in range(1, len(variances)):
        wider = variances[l] > _WIDER**2 * variances[start]
        if wider or abs(stretch[l]) > _WIDER * abs(stretch[start]):
            yield slice(start, l)
            start = l
    yield slice(start, len(variances))


def _stretches(network: LayeredNetwork) -> np.ndarray:
    """Γ of the layers l = 0, ..., L."""
    return np.concatenate([[1.0], np.cumprod(np.broadcast_to(network.skip_scales, network.depth))])


def _wave_number(
    square: Square,
    deviation: float,
    left_out: float,
    reach: float,
    overlooked: Callable[[np.ndarray, np.ndarray], bool],
) -> float:
    """Beyond which the waves of φ² times the Gaussian are small; infinite where none is found."""
    points = _FEWEST_POINTS
    while points <= _MOST_POINTS:
        z = (np.arange(-points, points) + 0.5) * (reach / points)
        bell = np.exp(-z * z / 2)
        with np.errstate(all="ignore"):
            g = square.function(deviation * z)
            if not np.abs(g).max() <= _LARGEST * sqrt(g**2 @ bell / bell.sum()):
                return np.inf
        if overlooked(g, bell / bell.sum()):
            points *= 2
            continue
        sizes = np.abs(fft.rfft((g - (g @ bell) / bell.sum()) * bell))
        curvatures = sizes * np.arange(len(sizes)) ** 2.0
        relevant = (curvatures > left_out * curvatures.max()) & (sizes > _ROUNDING * sizes.max())
        last = int(np.flatnonzero(relevant).max(initial=0))
        if last < 0.8 * points:
            return pi * (last + 1) / (reach * deviation)
        points *= 2
    return np.inf
