"""Functions of one neuron as Fourier series in h, for φ that is analytic on the whole line.

A function u of a neuron is the density N(h; 0, K*) u(h), whose integrals with cos(kh) and sin(kh)
are a vector: k = 0, π/R, 2π/R, ..., on an interval [−R, R] that holds the density. In the next
layer P_jᵀu is

    ρ'(k) = ρ(γk) exp(−C k²/2) (−k²/2)^j / j!,

a product where skip connections are 1 and intervals the same. Averages of a function F over
densities are scalar products with the Fourier coefficients of F. Products of functions are taken on
equidistant points, sums over which integrate to rounding what is analytic and falls off.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import groupby, zip_longest
from math import ceil, factorial, pi, sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy import fft

from fieldtheory.averages.quadrature.panelled_functions import Function
from fieldtheory.numerics.neurons.interacting_neurons import Observable, Run


@dataclass(frozen=True)
class _Settings:
    """Numbers of the Fourier series of neurons."""

    # Half the interval in deviations of the signals, at least and about twice at most.
    reach: float = 10.0
    # The spectrum of a Gaussian times polynomials ends at this over its deviation.
    end: float = 10.0
    # Points beyond what resolves densities: D², and products of densities and D at order 1/N².
    finer: float = 1.1
    products: float = 1.5
    # Points at which the spectrum of φ² is found, at least and by which factor more, what of it is
    # rounding, and the most points of a layer.
    fewest: int = 1 << 8
    factor: float = 1.6
    rounding: float = 1e-15
    most: int = 1 << 12
    # Largest exponent of the factors between layers of a run, by which densities are divided.
    exponent: float = 460.0
    # Parts of an octave of deviations for which one spectrum of φ² stands.
    parts: int = 16
    # Functions that are larger at the ends of intervals drown averages in the rounding of
    # densities.
    largest: float = 1e5
    # The largest second derivative that is left out of φ² and its square, relative to the largest.
    left_out: float = 1e-12


_SETTINGS = _Settings()
# Numbers of points of which transforms are fast, so few that one grid serves many layers.
_FAST = np.array([fft.next_fast_len(ceil(2 ** (i / 3)), real=True) for i in range(9, 40)])


class Spectrum(NamedTuple):
    """Resolution of the layers of a network, shapes (L + 1,)."""

    # R.
    reach: np.ndarray
    # Wave numbers of densities, and points on either side of zero.
    numbers: np.ndarray
    points: np.ndarray


def spectrum_of(
    square: Function, K: np.ndarray, skips: np.ndarray, added: np.ndarray, products: bool
) -> Spectrum | None:
    """The wave numbers and points that the layers take, None if they are too many."""
    if len(square.kinks) or not K.min() > 0:
        return None
    deviation = np.sqrt(K)
    # Few intervals serve many layers.
    octave = np.floor(np.log2(deviation.max() / deviation))
    reach = _SETTINGS.reach * deviation.max() * 2.0**-octave
    numbers = _SETTINGS.end / deviation
    for each in np.unique(octave):
        some = octave == each
        # Kept for deviations of the same part of an octave.
        part = ceil(_SETTINGS.parts * np.log2(deviation[some].max()))
        numbers[some] += _largest_number(square, 2.0 ** (part / _SETTINGS.parts))
    # Densities of γh have the numbers of those before over γ, as far as noise leaves them.
    for l, (skip, noise) in enumerate(zip(skips, added, strict=True)):
        spread = (skip / numbers[l]) ** 2 + noise / _SETTINGS.end**2
        if spread > 0:
            numbers[l + 1] = max(numbers[l + 1], spread**-0.5)
    points = (_SETTINGS.products if products else _SETTINGS.finer) * reach / pi * numbers
    if not points.max() <= _SETTINGS.most:
        return None
    # What noise leaves of the densities of a layer, and of those that it adds to the next.
    with np.errstate(divide="ignore"):
        noise = _SETTINGS.end / np.sqrt(added)
    product = (skips == 1) & (np.diff(octave) == 0)
    left = np.maximum(np.append(0.0, noise), np.append(np.where(product, noise, np.inf), 0.0))
    numbers = reach / pi * np.minimum(numbers, np.maximum(left, _SETTINGS.end / deviation))
    counts = (_FAST[np.searchsorted(_FAST, each)] for each in (numbers + 1, points))
    return Spectrum(reach, *counts)


@lru_cache(maxsize=256)
def _largest_number(square: Function, deviation: float) -> float:
    """Largest wave number of φ² and φ⁴ times the Gaussian; infinite if their spectra do not end."""
    points, before = _SETTINGS.fewest, np.inf
    while points <= 2 * _SETTINGS.most:
        z = (np.arange(-points, points) + 0.5) * (_SETTINGS.reach / points)
        bell = np.exp(-z * z / 2)
        bell /= bell.sum()
        g = square(deviation * z)
        if np.abs(g).max() > _SETTINGS.largest * sqrt(g**2 @ bell):
            return np.inf
        D = g - g @ bell
        # The last numbers of both spectra that are not negligible.
        sizes = np.abs(fft.rfft([D * bell, D**2 * bell]))
        second, least = sizes * np.arange(points + 1) ** 2.0, np.stack([np.abs(g), g**2]) @ bell
        small = second <= _SETTINGS.left_out * second.max(axis=1, keepdims=True)
        small |= sizes <= _SETTINGS.rounding * least[:, None]
        last, last_of_square = (int(np.flatnonzero(~each).max(initial=0)) for each in small)
        last_of_both = max(last, last_of_square)
        # Points resolve φ⁴, too, and the spectrum is not that of larger numbers.
        if (
            last < 0.4 * points
            and last_of_both < 0.8 * points
            and abs(last_of_both - before) < 0.1 * last_of_both + 4
        ):
            return pi * (last_of_both + 1) / (_SETTINGS.reach * deviation)
        points, before = ceil(_SETTINGS.factor * points), last_of_both
    return np.inf


class Grid:
    """Points and wave numbers.

    Half the interval is ``reach``; ``points`` are on either side of zero. If only ``even``
    functions occur they are at h > 0, and waves are cosines.
    """

    def __init__(self, reach: float, count: int, points: int, even: bool) -> None:
        self.reach, self.count, self.points, self.even = reach, count, points, even
        right = (np.arange(points) + 0.5) * (reach / points)
        self.h = right if even else np.concatenate([-right[::-1], right])
        self.spacing = (2 if even else 1) * reach / points
        orders = np.arange(count)
        if not even:
            orders = np.concatenate([orders, orders + 1])
        self.k2 = (pi / reach * orders) ** 2

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Σ cos(kh) and Σ sin(kh) times values (..., points)."""
        if self.even:
            return fft.dct(values)[..., : self.count] / 2
        left, right = values[..., self.points - 1 :: -1], values[..., self.points :]
        cosines, sines = fft.dct(right + left), fft.dst(right - left)
        return np.concatenate([cosines[..., : self.count], sines[..., : self.count]], axis=-1) / 2

    def averaging(self, values: np.ndarray) -> np.ndarray:
        """Vectors whose scalar product with a density averages functions."""
        vectors = self.sums(values) * ((2 if self.even else 1) / self.points)
        vectors[..., 0] /= 2
        return vectors

    def density(self, vectors: np.ndarray) -> np.ndarray:
        """Densities at the points times their spacing."""
        cosines = fft.idct(2 * vectors[..., : self.count], n=self.points)
        if self.even:
            return cosines
        sines = fft.idst(2 * vectors[..., self.count :], n=self.points)
        return np.concatenate([(cosines - sines)[..., ::-1], cosines + sines], axis=-1) / 2


@dataclass(eq=False)
class FourierBasis:
    """Densities of one layer, and functions that are averaged over them."""

    grid: Grid
    # The variance of the signals.
    K: float
    # The density N(0, K) at the points times their spacing.
    gaussian: np.ndarray

    @cached_property
    def _units(self) -> list[np.ndarray]:
        """The densities of h_0, h_2, ... that were needed."""
        density = np.exp(-self.K / 2 * self.grid.k2)
        density[self.grid.count :] = 0.0
        return [density]

    def unit(self, order: int) -> np.ndarray:
        """The density of h_n, n even."""
        for n in range(2 * len(self._units), order + 1, 2):
            factor = -self.K / sqrt(n * (n - 1))
            self._units.append(factor * self.grid.k2 * self._units[-1])
        return self._units[order // 2]

    @cached_property
    def averaging_2(self) -> np.ndarray:
        """Averaging vector for h_2."""
        return self.averaging((self.grid.h**2 / self.K - 1) / sqrt(2))

    def project(self, values: np.ndarray) -> np.ndarray:
        """The density of a function of these values."""
        return self.grid.sums(values * self.gaussian)

    def averaging(self, values: np.ndarray) -> np.ndarray:
        """The vector whose scalar product with a density averages a function."""
        return self.grid.averaging(values)

    def multiply(self, values: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """Densities times a function."""
        return self.grid.sums(values * self.grid.density(vectors))

    def mean(self, values: np.ndarray) -> float:
        """⟨F⟩."""
        return float(values @ self.gaussian)

    def centred(self, vectors: np.ndarray) -> np.ndarray:
        """The densities of F − ⟨F⟩."""
        return vectors - vectors[..., :1] * self.unit(0)


class FourierStep:
    """From the densities of one layer to those of the next.

    ``correlation`` is that of their signals, ``skip`` γ, and ``noise`` the Fourier transform of
    what the next layer adds, exp(−C k²/2).
    """

    def __init__(
        self,
        here: FourierBasis,
        there: FourierBasis,
        correlation: float,
        skip: float,
        noise: np.ndarray,
    ) -> None:
        self.here, self.there = here.grid, there
        self.correlation, self.variance = correlation, there.K
        self.skip, self.noise = skip, noise

    def unit(self, order: int) -> np.ndarray:
        """The Hermite polynomial of this order in the next layer."""
        return self.there.unit(order)

    def to_next(self, j: int, u: np.ndarray) -> np.ndarray:
        """P_jᵀ u, or of all columns of u."""
        factors = self.noise
        if j:
            factors = factors * (-self.there.grid.k2 / 2) ** j / factorial(j)
        return np.asarray((factors * _stretched(u, self.here, self.there.grid, self.skip).T).T)


def _stretched(u: np.ndarray, here: Grid, there: Grid, skip: float) -> np.ndarray:
    """The density u of h, or its columns, as that of γh on another grid."""
    ratio, old, new = skip * here.reach / there.reach, here.count, there.count
    if ratio == 1 and old == new:
        return u
    parts = [u] if here.even else [u[:old], u[old:]]
    if ratio == 0:
        parts = [np.repeat(u[:1], new, axis=0), np.zeros((new, *u.shape[1:]))][: len(parts)]
    elif ratio == 1:
        zeros = np.zeros((max(new - old, 0), *u.shape[1:]))
        parts = [np.concatenate([part[:new], zeros]) for part in parts]
    else:
        maps = _maps(ratio, max(old, new))
        parts = [each[:new, :old] @ part for each, part in zip(maps, parts, strict=False)]
    return np.concatenate(parts)


@lru_cache(maxsize=16)
def _maps(ratio: float, count: int) -> tuple[np.ndarray, np.ndarray]:
    """From ∫ cos(kh) and ∫ sin(kh) over densities to those at the wave numbers times a ratio."""
    orders = np.arange(count + 1)
    differences, sums = (np.sinc(orders - sign * ratio * orders[:, None]) for sign in (1, -1))
    cosines = differences + sums
    cosines[:, 0] /= 2
    return cosines[:-1, :-1], (differences - sums)[1:, 1:]


class _Segment(NamedTuple):
    """Layers on one grid."""

    grid: Grid
    # In the network.
    layers: slice
    # Of `FourierBasis`.
    gaussians: np.ndarray
    # Of `Observable`.
    values: np.ndarray
    densities: np.ndarray
    averaging: np.ndarray
    squares: np.ndarray
    means: np.ndarray


def _segments(neurons: Any, spectrum: Spectrum) -> Iterator[_Segment]:
    """The layers l = 0, ..., L of `Neurons`."""
    square, end = neurons.square, 0
    for resolution, some in groupby(zip(*spectrum, strict=True)):
        layers = slice(end, end + len(list(some)))
        grid, end = Grid(*resolution, square.parity == 1), layers.stop
        variances, a = neurons.K[layers, None], neurons.weights[layers, None]
        values = square(grid.h)
        gaussians = np.exp(-(grid.h**2) / (2 * variances))
        gaussians *= grid.spacing / np.sqrt(2 * pi * variances)
        means = gaussians @ values
        D = a * (values - means[:, None])
        weighted = D * gaussians
        averaging = a * grid.averaging(values)
        # What averages 1 is the wave number 0.
        averaging[:, 0] -= a[:, 0] * means
        squares = np.einsum("lp,lp->l", weighted, D)
        yield _Segment(grid, layers, gaussians, D, grid.sums(weighted), averaging, squares, means)


def in_fourier_series(
    neurons: Any, spectrum: Spectrum
) -> Iterator[tuple[Observable, FourierStep | None]]:
    """The observable of every layer l = 0, ..., L of `Neurons`, and the step to the next one."""
    links = zip(neurons.correlations, neurons.skips, strict=True)
    added = np.append(0.0, neurons.added)
    before = None
    for grid, layers, *arrays in _segments(neurons, spectrum):
        noises = np.exp(-added[layers, None] / 2 * grid.k2)
        for K, noise, gaussian, *own in zip(neurons.K[layers], noises, *arrays, strict=True):
            basis = FourierBasis(grid, K, gaussian)
            if before is not None:
                yield before[1], FourierStep(before[0], basis, *next(links), noise)
            before = basis, Observable(basis, *own)
    if before is not None:
        yield before[1], None


def runs_of_series(neurons: Any, spectrum: Spectrum) -> Iterator[Run]:
    """The layers of `Neurons` in runs, each as long as float64 has the factors between its layers.

    With the variance V_l that skip connections of 1 add between the first layer of a run and l,
    densities are divided by, and what averages D is multiplied by exp(−V_l k²/2).
    """
    segments = list(_segments(neurons, spectrum))
    grids = [segment.grid for segment in segments[1:]]
    for segment, after in zip_longest(segments, grids):
        grid, (first, end, _) = segment.grid, segment.layers.indices(len(neurons.K))
        start = first
        while start < end:
            variances = np.cumsum(np.append(0.0, neurons.added[start : end - 1]))
            within = variances * grid.k2[-1] <= 2 * _SETTINGS.exponent
            within[1:] &= neurons.skips[start : end - 1] == 1
            count = len(within) if within.all() else int(np.argmin(within))
            factors = np.exp(-variances[:count, None] / 2 * grid.k2)
            own = slice(start - first, start - first + count)
            start += count
            there, to_next = grid if start < end else after, None
            if there is not None:
                skip, noise = neurons.skips[start - 1], neurons.added[start - 1]
                to_next = partial(_to_next, factors[-1], grid, there, skip, noise)
            averaging = factors * segment.averaging[own]
            of_layers = segment.squares[own], segment.means[own]
            yield Run(segment.densities[own] / factors, averaging, *of_layers, to_next)


def _to_next(
    factors: np.ndarray, here: Grid, there: Grid, skip: float, noise: float, rows: np.ndarray
) -> np.ndarray:
    """Densities of the first layer of a run as those of the layer behind it."""
    added = np.exp(-noise / 2 * there.k2)
    if here is there and skip == 1:
        return factors * added * rows
    return np.asarray(added * _stretched((factors * rows).T, here, there, skip).T)
