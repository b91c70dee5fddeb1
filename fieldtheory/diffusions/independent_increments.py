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
from fieldtheory.diffusions.diffusion_network import DiffusionNetwork
from fieldtheory.diffusions.diffusion_settings import SETTINGS
from fieldtheory.diffusions.feature_averages import Starts
from fieldtheory.diffusions.wide_limit import Signals, WideNetwork
from fieldtheory.networks.activations import Activation, h
from fieldtheory.numerics.recursion import ratio


@dataclass(frozen=True, eq=False)
class FeatureSeries:
    """ψ(x) = Σ_m a_m e^{i s_m x} where |x| is in the range."""

    # s_m >= 0 (m,), evenly spaced from 0 on, and a_m; −s_m has the conjugate coefficient.
    frequencies: np.ndarray
    coefficients: np.ndarray

    @property
    def rounding(self) -> float:
        """Error of ⟨ψψ⟩ from coefficients that are left out and from sums of large ones."""
        sizes = np.abs(self.coefficients)
        return float(2 * SETTINGS.negligible * sizes.max() * sizes.sum())

    @property
    def is_complete(self) -> bool:
        """Whether the coefficients fall off to rounding, as those of smooth ψ do."""
        return len(self.frequencies) <= SETTINGS.frequencies


def feature_series(activation: Activation, largest: float) -> FeatureSeries:
    """The Fourier series of ψ for |x| <= ``largest``.

    >>> from fieldtheory.networks.activations import as_activation
    >>> found = feature_series(as_activation("tanh"), 5.0)
    >>> terms = found.coefficients * np.exp(1j * found.frequencies * 1.5)
    >>> bool(abs(terms[0].real + 2 * terms[1:].real.sum() - np.tanh(1.5)) < 1e-12)
    True
    """
    psi = function_of(activation.expression, h)
    amplitudes = _switched_off(psi, largest, SETTINGS.edges[0] * largest)
    for edge in SETTINGS.edges[1:]:
        wider = _switched_off(psi, largest, edge * largest)
        if wider.frequencies[-1] > SETTINGS.fewer * amplitudes.frequencies[-1]:
            break
        amplitudes = wider
    return amplitudes


def _switched_off(psi: Function, largest: float, edge: float) -> FeatureSeries:
    most, half = SETTINGS.frequencies, largest + edge
    panels = subdivided(psi.kinks, -half, half, SETTINGS.phase * half / (np.pi * most))
    x, weights = composite(panels, SETTINGS.nodes)
    inside = 1 - 2 * (np.abs(x) - largest) / edge
    weights = weights * ndtr(SETTINGS.switched * inside) / (2 * half)
    s = np.pi / half * np.arange(most + 1)
    with np.errstate(all="ignore"):
        values = psi.value(x)
    amplitudes = np.exp(-1j * np.outer(s, x)) @ (weights * values)
    sizes = np.abs(amplitudes)
    # The first frequency says how far apart they are.
    count = max(np.nonzero(sizes > SETTINGS.negligible * sizes.max())[0][-1] + 1, 2)
    return FeatureSeries(s[:count], amplitudes[:count])


class Layers(NamedTuple):
    """All layers of P inputs: ⟨y⟩ (L + 1, P); Cov y, q and the error of q (L + 1, P, P)."""

    mean: np.ndarray
    covariance: np.ndarray
    gram: np.ndarray
    error: np.ndarray


def layers_of(wide: WideNetwork) -> Layers:
    """Means, covariances and Gram matrices of all layers."""
    network, inputs = wide.network, wide.starts.values.shape[1]
    shape = (network.depth or 0) + 1, inputs
    first = network.step * float(np.diagonal(wide.scales(wide.origin)).max())
    spread = _reach(*(shape[0] - 1) * np.array(_bounds(network, np.sqrt(first))))
    # Signals that vanish have any range.
    largest, needed = 0.0, float(np.abs(wide.starts.values).max()) + spread or 1.0
    for _ in range(SETTINGS.tries):
        largest = SETTINGS.wider * max(needed, largest)
        series = feature_series(network.input_activation, largest)
        layers = Layers(np.zeros(shape), *np.zeros((3, *shape, inputs)))
        scales = np.empty((shape[0] - 1, inputs))
        needed = max(
            _follow_single(wide, series, largest, layers, scales, i) for i in range(inputs)
        )
        if needed <= largest:
            _follow_pairs(wide, series, layers, scales)
            # A pair has the errors of its inputs at least: differences of kinks may cancel.
            single = np.sqrt(np.diagonal(layers.error, axis1=1, axis2=2))
            own = np.maximum(layers.error, single[:, :, None] * single[:, None, :])
            # With those of covariances, which sum over earlier layers.
            earlier = np.cumsum(own, axis=0) - own
            return layers._replace(error=own + network.step * network.weight_variance * earlier)
    raise _outgrown(largest)


def _outgrown(largest: float) -> ArithmeticError:
    return ArithmeticError(
        f"signals grow too much over the layers, beyond {largest:.3g}: a smaller horizon or "
        "weight_variance keeps them together"
    )


def _follow_single(
    wide: WideNetwork,
    series: FeatureSeries,
    largest: float,
    layers: Layers,
    scales: np.ndarray,
    i: int,
) -> float:
    """Write an input into the layers and S (L, P), up to the range; how far its signals reach."""
    # Functions of slope at most λ of a Gaussian of variance K fall off as Gaussians of variance
    # λ²K, and the variances of such bounds add.
    network, bound, size = wide.network, 0.0, 0.0
    pair, start = _Pair(wide, series, i, i), np.abs(wide.starts.values[:, i]).max()
    for l in range(len(scales)):
        q = pair.average(layers, l)
        scales[l, i] = network.bias_variance + network.weight_variance * q
        if network.weight_variance * series.rounding > SETTINGS.lost * scales[l, i] > 0:
            raise _outgrown(largest)
        K = network.step * scales[l, i : i + 1]
        layers.mean[l + 1, i] = layers.mean[l, i] + wide.mean_increments(K)[0]
        more, most = _bounds(network, np.sqrt(K[0]))
        bound, size = bound + more, size + most
        covariance = wide.increment_covariances(K, K, K)[0]
        spread = _reach(bound, size)
        if not series.is_complete:
            # The Gaussian of the same moments is averaged, too.
            spread = max(spread, SETTINGS.reach * np.sqrt(layers.covariance[l, i, i] + covariance))
        reach = float(start + np.abs(layers.mean[l + 1, i]) + spread)
        if not reach <= largest:
            return min(reach, 2 * largest) if np.isfinite(reach) else 2 * largest
        # ⟨e^{i(s + t) φ(u)}⟩ at −s_m, ..., 2 s_m, of which every row of s + t has 2m − 1.
        width = 2 * len(series.frequencies) - 1
        sums = series.frequencies[1] * np.arange(width)
        values = _coefficients(network, sums, float(np.sqrt(K[0])), 1)[:, 0]
        both = _both_sides(values, 1)[len(series.frequencies) - 1 :]
        factor = np.lib.stride_tricks.sliding_window_view(both, width)
        pair.add(layers, l, covariance, factor)
    pair.average(layers, len(scales))
    return 0.0


def _bounds(network: DiffusionNetwork, scale: float) -> tuple[float, float]:
    """The variance of a Gaussian that bounds φ(u), and the largest |φ(u)|, of u of a deviation."""
    phi = function_of(network.activation.expression, h)
    u = scale * np.linspace(-END, END, 1001)
    size = float(np.abs(phi.value(u)).max())
    # Where φ jumps its size alone bounds it.
    steepest = np.inf if len(phi.jumping) else scale * float(np.abs(phi.slope(u)).max())
    return min(size, steepest) ** 2, size


def _reach(variance: float, size: float) -> float:
    """Bound of sums whose own bounds add up to a variance and a size."""
    return float(min(SETTINGS.reach * np.sqrt(variance), size))


def _follow_pairs(
    wide: WideNetwork, series: FeatureSeries, layers: Layers, scales: np.ndarray
) -> None:
    """Write pairs of different inputs into the layers; ``scales`` are S (L, P) of single inputs."""
    network, every = wide.network, [*combinations(range(scales.shape[1]), 2)]
    for start in range(0, len(every), SETTINGS.pairs_at_once):
        members = np.array(every[start : start + SETTINGS.pairs_at_once]).T
        pairs = [_Pair(wide, series, *of) for of in members.T.tolist()]
        for l in range(len(scales)):
            averages = np.array([pair.average(layers, l) for pair in pairs])
            a, b = network.step * scales[l, members]
            K = network.step * (network.bias_variance + network.weight_variance * averages)
            covariances = wide.increment_covariances(a, b, K)
            c = np.clip(ratio(K, np.sqrt(a * b)), -1.0, 1.0)
            deviations = np.sqrt(network.step * scales[l])
            increments = _Increments(network, series.frequencies, deviations)
            for pair, *of_pair in zip(pairs, covariances, c, strict=True):
                pair.add(layers, l, of_pair[0], *increments.of_pair(pair.i, pair.j, of_pair[1]))
        for pair in pairs:
            pair.average(layers, len(scales))


class _Pair:
    """Two inputs, or one with itself: χ of their y, and the terms of which q is the sum."""

    def __init__(self, wide: WideNetwork, series: FeatureSeries, i: int, j: int) -> None:
        self.i, self.j, self.series = i, j, series
        self.members = [i] if i == j else [i, j]
        values, shares = wide.starts.values[:, self.members], wide.starts.shares
        self.wide = replace(wide, starts=Starts(values, shares))
        s, t = series.frequencies, _both_sides(series.frequencies, -1)
        # Terms of −s and −t are the conjugates of those of s and t.
        phases = np.exp(1j * np.outer(values[:, 0], s)) * shares[:, None]
        others = np.exp(1j * np.outer(values[:, -1], t))
        a = series.coefficients
        twice = np.where(s > 0, 2.0, 1.0) * a
        self.terms = phases.T @ others * np.outer(twice, _both_sides(a, 1))
        self.chi, self.left_out = np.ones(self.terms.shape, dtype=complex), 0.0

    def average(self, layers: Layers, l: int) -> float:
        """Write q and its error into layer l; signals of no variance are Gaussians."""
        C = layers.covariance[l][np.ix_(self.members, self.members)]
        remainder, q = self.terms * self.chi, 0.0
        error = self.left_out + self.series.rounding if C.any() else 0.0
        if not (C.any() and self.series.is_complete):
            signals = Signals(layers.mean[l, self.members], C)
            remainder = remainder - self.terms * _gaussian(self.series.frequencies, signals)
            q = self.wide.gram(signals)[0, -1]
            m = len(remainder)
            slow = remainder[: m // 2, m - m // 2 : m + m // 2 - 1]
            error += abs(remainder.sum().real - slow.sum().real)
        q = float(q + remainder.sum().real)
        if self.i == self.j:
            q = max(q, 0.0)
        for place in ((l, self.i, self.j), (l, self.j, self.i)):
            layers.gram[place], layers.error[place] = q, error
        return q

    def add(
        self,
        layers: Layers,
        l: int,
        covariance: float,
        factor: np.ndarray,
        omitted: np.ndarray | None = None,
    ) -> None:
        """Add increments of a covariance, whose χ is the factor, known up to what is omitted."""
        covariance += layers.covariance[l, self.i, self.j]
        layers.covariance[l + 1, self.i, self.j] = covariance
        layers.covariance[l + 1, self.j, self.i] = covariance
        if omitted is not None:
            self.left_out += float((np.abs(self.terms * self.chi) * omitted).sum())
        self.chi *= factor


@dataclass(frozen=True, eq=False)
class _Increments:
    """G_n(s_m) of one layer, of inputs whose u have these standard deviations."""

    network: DiffusionNetwork
    frequencies: np.ndarray
    deviations: np.ndarray

    def of_pair(self, i: int, j: int, c: float) -> tuple[np.ndarray, np.ndarray | None]:
        """⟨e^{i(s φ(u_i) + t φ(u_j))}⟩ at a correlation, (m, 2m − 1), and bounds of its error."""
        for orders in SETTINGS.orders:
            (first, lost), (second, other) = (self.coefficients(k, orders) for k in (i, j))
            powers = c ** np.arange(orders + 1)
            characteristic = (first * powers[:-1]) @ _both_sides(second, 1).T
            if abs(powers[-1]) * lost.max() * other.max() <= SETTINGS.left:
                return characteristic, None
        return characteristic, abs(powers[-1]) * np.outer(lost, _both_sides(other, 1))

    @cached_property
    def coefficients(self) -> Callable[[int, int], tuple[np.ndarray, np.ndarray]]:
        """G_n of an input and the root of what is missing in Σ_n |G_n|² = 1, by input and order."""

        @cache
        def of(i: int, orders: int) -> tuple[np.ndarray, np.ndarray]:
            coefficients = _coefficients(self.network, self.frequencies, self.deviations[i], orders)
            return coefficients, np.sqrt(
                np.maximum(1 - (np.abs(coefficients) ** 2).sum(axis=1), 0.0)
            )

        return of


def _coefficients(
    network: DiffusionNetwork, s: np.ndarray, scale: float, orders: int
) -> np.ndarray:
    """G_n(s_m), (m, orders), of u of a standard deviation; s_m = m s_1."""
    phi = function_of(network.activation.expression, h)
    x, weights = _nodes(phi, scale, s[-1], orders)
    coefficients = np.zeros((len(s), orders), dtype=complex)
    for part in np.array_split(np.arange(len(x)), -(-len(x) * len(s) // SETTINGS.phases_at_once)):
        z = x[part]
        basis = hermite_polynomials(z, orders - 1) * weights[part] * DENSITY * np.exp(-(z**2) / 2)
        # Powers of the first one are faster than exponentials.
        powers = np.ones((len(s), len(z)), dtype=complex)
        powers[1:] = np.exp(1j * s[1] * phi.value(scale * z))
        np.multiply.accumulate(powers, axis=0, out=powers)
        coefficients += powers.real @ basis.T + 1j * (powers.imag @ basis.T)
    return coefficients


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


def _nodes(
    phi: Function, scale: float, fastest: float, orders: int
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights that resolve e^{i s φ(σz)} h_n(z) up to a frequency and an order."""
    edges = phi.edges(END * scale) / scale if scale else np.zeros(0)
    edges = subdivided(edges, -END, END, WIDEST)
    # Phases of the exponential, by slopes on panels that resolve φ, and of h_n.
    slopes = np.abs(phi.slope(scale * np.linspace(edges[:-1], edges[1:], 7)[1:-1])).max(axis=0)
    phases = (fastest * scale * slopes + 2 * np.sqrt(orders)) * np.diff(edges)
    pieces = np.maximum(np.ceil(phases / SETTINGS.phase), 1).astype(int)
    panels = zip(edges[:-1], edges[1:], pieces, strict=True)
    finer = [np.linspace(a, b, n + 1)[:-1] for a, b, n in panels]
    return composite(np.append(np.concatenate(finer), END), SETTINGS.nodes)
