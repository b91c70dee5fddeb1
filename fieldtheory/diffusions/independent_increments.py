"""⟨ψψ⟩ of wide networks of finite depth, exact: characteristic functions of independent increments.

For D → ∞ a signal of layer l is x_l = x_0 + y, y = Σ_{k<l} φ(u_k), with Gaussians u_k of variance
Δt S_k that are independent from layer to layer. Characteristic functions of independent terms
multiply; that of an increment is a Mehler series in the correlation c_k of the u_k of two inputs,

    χ_ij(s, t) = ⟨e^{i(s y_i + t y_j)}⟩ = Π_k Σ_n G_n^i(s) G_n^j(t) c_kⁿ,
    G_n(s) = ⟨e^{i s φ(u)} h_n(u)⟩,

and with ψ(x) = Σ_m a_m e^{i s_m x} in the range that signals reach,

    ⟨ψ(x_i) ψ(x_j)⟩ = Σ_mn a_m a_n ⟨e^{i(s_m x_0i + s_n x_0j)}⟩ χ_ij(s_m, s_n).

Where ψ has kinks, a_m falls off slowly: the Gaussian of the same means and covariances is averaged
without the series, and the series takes what is left, which falls off with χ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from fieldtheory.averages.quadrature.compiled import function_of
from fieldtheory.averages.quadrature.one_variable import hermite_polynomials
from fieldtheory.averages.quadrature.panelled_functions import Function
from fieldtheory.averages.quadrature.panels import DENSITY, END, WIDEST, composite, subdivided
from fieldtheory.diffusions.starts import Starts
from fieldtheory.diffusions.wide_limit import Signals, WideNetwork
from fieldtheory.networks.activations import Activation, h
from fieldtheory.networks.diffusion import DiffusionNetwork
from fieldtheory.numerics.finite import ratio

# Signals reach as far as this many standard deviations of u times the slope of φ.
_REACH = 8.0
# Beyond the range ψ is switched off within this part of it, by the distribution function of a
# Gaussian from −8 to 8 standard deviations, where it is 0 and 1 to all digits.
_EDGE, _SWITCHED = 0.25, 8.2
# Coefficients a_m of this size, relative to the largest, are left out; most of them on either side.
_NEGLIGIBLE, _MOST = 1e-12, 512
# Orders of Mehler's series that are tried, and what they may leave out of χ.
_ORDERS, _LEFT = (16, 32, 64, 128, 256, 512), 1e-12
# Nodes of a panel, and the phase that they resolve to all digits.
_NODES, _PHASE = 20, 9.0
# Pairs that are followed at once, with two matrices of frequencies each.
_TOGETHER = 256
# Part of the signals that may be beyond the range.
_BEYOND = 1e-10


@dataclass(frozen=True, eq=False)
class FeatureSeries:
    """ψ(x) = Σ_m a_m e^{i s_m x} where |x| is in the range; W(x) = 1 there, and 0 beyond it.

    Parameters
    ----------
    frequencies : ndarray, shape (m,)
        s_m >= 0, evenly spaced from 0 on; −s_m has the conjugate coefficient.
    coefficients, window : ndarray, shape (m,)
        Of ψ and of W.
    """

    frequencies: np.ndarray
    coefficients: np.ndarray
    window: np.ndarray

    @property
    def is_complete(self) -> bool:
        """Whether the coefficients fall off to rounding, as those of smooth ψ do."""
        return len(self.frequencies) <= _MOST


def feature_series(activation: Activation, largest: float) -> FeatureSeries:
    """The Fourier series of ψ for |x| <= ``largest``.

    Examples
    --------
    >>> from fieldtheory.networks.activations import as_activation
    >>> found = feature_series(as_activation("tanh"), 5.0)
    >>> terms = found.coefficients * np.exp(1j * found.frequencies * 1.5)
    >>> bool(abs(terms[0].real + 2 * terms[1:].real.sum() - np.tanh(1.5)) < 1e-12)
    True
    """
    psi, edge = function_of(activation.expression, h), _EDGE * largest
    half = largest + edge
    panels = subdivided(psi.kinks, -half, half, _PHASE * half / (np.pi * _MOST))
    x, weights = composite(panels, _NODES)
    weights = weights * ndtr(_SWITCHED * (1 - 2 * (np.abs(x) - largest) / edge)) / (2 * half)
    s = np.pi / half * np.arange(_MOST + 1)
    with np.errstate(all="ignore"):
        values = psi.value(x)
    both = np.exp(-1j * np.outer(s, x)) @ np.stack([weights * values, weights], axis=1)
    sizes = np.abs(both).max(axis=1)
    count = np.nonzero(sizes > _NEGLIGIBLE * sizes.max())[0][-1] + 1
    return FeatureSeries(s[:count], *both[:count].T)


class Layers(NamedTuple):
    """All layers of P inputs: ⟨y⟩ (L + 1, P); Cov y, q and the error of q (L + 1, P, P)."""

    mean: np.ndarray
    covariance: np.ndarray
    gram: np.ndarray
    error: np.ndarray


def layers_of(wide: WideNetwork) -> Layers:
    """Means, covariances and Gram matrices of all layers.

    Parameters
    ----------
    wide : WideNetwork
        Of finite depth.

    Returns
    -------
    Layers
        ``error`` is what the last half of the frequencies and the orders of Mehler's series that
        are left out contribute: rounding, but for ψ with kinks and steep or kinked φ.

    Raises
    ------
    OverflowError
        If signals exceed float64.
    """
    values, network = wide.starts.values, wide.network
    phi = function_of(network.activation.expression, h)
    scale = float(np.sqrt(np.diagonal(wide.scales(wide.origin)).max() * network.horizon))
    largest = np.abs(values).max() + _REACH * _steepness(phi, scale) * scale + 1.0
    while True:
        found, beyond = _followed(wide, feature_series(network.input_activation, largest))
        if beyond <= _BEYOND:
            return found
        largest *= 2


def _followed(wide: WideNetwork, series: FeatureSeries) -> tuple[Layers, float]:
    """All layers, and the part of the signals of the last one that is beyond the range."""
    layers, inputs = wide.network.depth or 0, wide.starts.values.shape[1]
    found = Layers(np.zeros((layers + 1, inputs)), *np.zeros((3, layers + 1, inputs, inputs)))
    scales, beyond = np.empty((layers, inputs)), 0.0
    for i in range(inputs):
        single = _Pair(wide, series, i, i)
        for l in range(layers):
            q = single.average(found, l)
            scales[l, i] = wide.network.bias_variance + wide.network.weight_variance * q
            K = wide.network.step * scales[l, i : i + 1]
            found.mean[l + 1, i] = found.mean[l, i] + wide.mean_increments(K)[0]
            covariance = wide.increment_covariances(K, K, K)[0]
            single.add(found, l, covariance, _of_one(wide.network, series.frequencies, K[0]))
        single.average(found, layers)
        beyond = max(beyond, single.beyond)
    if beyond <= _BEYOND:
        pairs = [*combinations(range(inputs), 2)]
        for start in range(0, len(pairs), _TOGETHER):
            block = [_Pair(wide, series, *of) for of in pairs[start : start + _TOGETHER]]
            _follow_pairs(wide, series, found, scales, block)
    return found, beyond


def _follow_pairs(
    wide: WideNetwork, series: FeatureSeries, found: Layers, scales: np.ndarray, pairs: list[_Pair]
) -> None:
    """Write pairs of different inputs into the layers; ``scales`` are S (L, P) of single inputs."""
    network, members = wide.network, np.array([(pair.i, pair.j) for pair in pairs]).T
    for l in range(len(scales) + 1):
        averages = np.array([pair.average(found, l) for pair in pairs])
        if l == len(scales):
            break
        a, b = network.step * scales[l, members]
        K = network.step * (network.bias_variance + network.weight_variance * averages)
        covariances = wide.increment_covariances(a, b, K)
        c = np.clip(ratio(K, np.sqrt(a * b)), -1.0, 1.0)
        increments = _Increments(network, series.frequencies, np.sqrt(network.step * scales[l]))
        for pair, *given in zip(pairs, covariances, c, strict=True):
            pair.add(found, l, given[0], *increments.of_pair(pair.i, pair.j, given[1]))


class _Pair:
    """Two inputs, or one with itself: χ of their y, and the terms of which q is the sum."""

    def __init__(self, wide: WideNetwork, series: FeatureSeries, i: int, j: int) -> None:
        self.i, self.j, self.series = i, j, series
        self.members = [i] if i == j else [i, j]
        values, shares = wide.starts.values[:, self.members], wide.starts.shares
        self.wide = replace(wide, starts=Starts(values, shares))
        s, t = series.frequencies, _both_sides(series.frequencies, -1)
        # Terms of −s and −t are the conjugates of those of s and t.
        self.twice = np.where(s > 0, 2.0, 1.0)
        self.phases = np.exp(1j * np.outer(values[:, 0], s)) * shares[:, None]
        others = np.exp(1j * np.outer(values[:, -1], t))
        a = series.coefficients
        self.terms = self.phases.T @ others * np.outer(self.twice * a, _both_sides(a, 1))
        self.chi, self.left_out = np.ones(self.terms.shape, dtype=complex), 0.0

    def average(self, found: Layers, l: int) -> float:
        """Write q and its error into layer l; in layer 0 the Gaussian is all there is."""
        rest, q, error = self.terms * self.chi, 0.0, self.left_out
        if l == 0 or not self.series.is_complete:
            C = found.covariance[l][np.ix_(self.members, self.members)]
            signals = Signals(found.mean[l, self.members], C, np.zeros_like(C))
            rest = rest - self.terms * _gaussian(self.series.frequencies, signals)
            q = self.wide.gram(signals)[0, -1]
            m = len(rest)
            slow = rest[: m // 2, m - m // 2 : m + m // 2 - 1]
            error += abs(rest.sum().real - slow.sum().real)
        q = float(q + rest.sum().real)
        for place in ((l, self.i, self.j), (l, self.j, self.i)):
            found.gram[place], found.error[place] = q, error
        return q

    def add(
        self,
        found: Layers,
        l: int,
        covariance: float,
        factor: np.ndarray,
        omitted: np.ndarray | None = None,
    ) -> None:
        """Add increments of a covariance, whose χ is the factor, known up to what is omitted."""
        covariance += found.covariance[l, self.i, self.j]
        found.covariance[l + 1, self.i, self.j] = covariance
        found.covariance[l + 1, self.j, self.i] = covariance
        if omitted is not None:
            self.left_out += float((np.abs(self.terms * self.chi) * omitted).sum())
        self.chi *= factor

    @property
    def beyond(self) -> float:
        """The part of the signals that is beyond the range."""
        own = self.chi[:, len(self.chi) - 1] * self.phases.sum(axis=0)
        return abs(1 - float((self.twice * self.series.window * own).real.sum()))


def _of_one(network: DiffusionNetwork, s: np.ndarray, K: float) -> np.ndarray:
    """⟨e^{i(s + t) φ(u)}⟩ of u of a variance, (m, 2m − 1)."""
    m = len(s)
    sums = _coefficients(network, s[1] * np.arange(2 * m - 1), float(np.sqrt(K)), 1)
    # Frequencies −s_m, ..., 2 s_m, of which every row of s + t has 2m − 1.
    both = _both_sides(sums[:, 0], 1)[m - 1 :]
    return np.lib.stride_tricks.sliding_window_view(both, 2 * m - 1)


@dataclass(frozen=True, eq=False)
class _Increments:
    """G_n(s_m) of one layer, of inputs whose u have these standard deviations."""

    network: DiffusionNetwork
    frequencies: np.ndarray
    deviations: np.ndarray

    def of_pair(self, i: int, j: int, c: float) -> tuple[np.ndarray, np.ndarray | None]:
        """⟨e^{i(s φ(u_i) + t φ(u_j))}⟩ of u of a correlation, (m, 2m − 1), and bounds of its error.

        None where they are rounding.
        """
        for orders in _ORDERS:
            (first, lost), (second, other) = (self.coefficients(k, orders) for k in (i, j))
            powers = c ** np.arange(orders + 1)
            found = (first * powers[:-1]) @ _both_sides(second, 1).T
            if abs(powers[-1]) * lost.max() * other.max() <= _LEFT:
                return found, None
        return found, abs(powers[-1]) * np.outer(lost, _both_sides(other, 1))

    @cached_property
    def coefficients(self) -> Callable[[int, int], tuple[np.ndarray, np.ndarray]]:
        """G_n of an input and the root of what is missing in Σ_n |G_n|² = 1, by input and order."""

        @cache
        def of(i: int, orders: int) -> tuple[np.ndarray, np.ndarray]:
            found = _coefficients(self.network, self.frequencies, self.deviations[i], orders)
            return found, np.sqrt(np.maximum(1 - (np.abs(found) ** 2).sum(axis=1), 0.0))

        return of


def _coefficients(
    network: DiffusionNetwork, s: np.ndarray, scale: float, orders: int
) -> np.ndarray:
    """G_n(s_m), (m, orders), of u of a standard deviation; s_m = m s_1."""
    phi = function_of(network.activation.expression, h)
    kinks = phi.kinks / scale if scale else np.zeros(0)
    fastest = s[-1] * scale * _steepness(phi, scale) + 2 * np.sqrt(orders)
    x, weights = composite(subdivided(kinks, -END, END, min(WIDEST, _PHASE / fastest)), _NODES)
    basis = hermite_polynomials(x, orders - 1) * weights * DENSITY * np.exp(-(x**2) / 2)
    # Powers of the first one are faster than exponentials.
    powers = np.ones((len(s), len(x)), dtype=complex)
    powers[1:] = np.exp(1j * s[1] * phi.value(scale * x))
    np.multiply.accumulate(powers, axis=0, out=powers)
    return powers.real @ basis.T + 1j * (powers.imag @ basis.T)


def _gaussian(s: np.ndarray, signals: Signals) -> np.ndarray:
    """The characteristic function of Gaussians of given means and covariances, (m, 2m − 1)."""
    mean, C = signals.mean, signals.covariance
    s, t = s[:, None], _both_sides(s, -1)
    squares = s**2 * C[0, 0] + 2 * s * t * C[0, -1] + t**2 * C[-1, -1]
    return np.exp(1j * (s * mean[0] + t * mean[-1]) - squares / 2)


def _both_sides(values: np.ndarray, sign: int) -> np.ndarray:
    """Values (m, ...) of frequencies >= 0 behind those of the negative ones, conjugates or −."""
    negative = values[:0:-1].conj() if sign > 0 else -values[:0:-1]
    return np.concatenate([negative, values])


def _steepness(phi: Function, scale: float) -> float:
    """The largest |φ(u)/u| of u of a standard deviation."""
    u = scale * np.linspace(0.0, END, 512)[1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = np.abs([phi.value(sign * u) / u for sign in (1, -1)])
    return float(np.nanmax(slopes)) if scale else 0.0
