"""How far pairs of inputs are from perfectly correlated, 1 − c, with all digits where c → 1.

With δ = 1 − c, c = K_αβ/√(K_αα K_ββ), and w_k the shares of skip connection, branch and bias in
the variances of a layer,

    δ' = (1/2) Σ_k (√w_kα − √w_kβ)² + √(w_1α w_1β) δ + √(w_2α w_2β) δ_φ,
    δ_φ = 1 − ⟨φ_α φ_β⟩/√(M_α M_β),

whose terms are all positive. For φ = a_± x on both sides of zero (ReLU, leaky ReLU, |x|), with the
angle θ = arccos c,

    δ_φ = δ − κ (sin θ − θ cos θ),   κ = (a_+ − a_-)²/(π (a_+² + a_-²)),

the arc-cosine kernel of degree 1 (SR eq. (5)), summed as a series for small θ. For other φ, by
Price's theorem, 1 − ⟨φφ⟩/√(MM) of parallel signals and an integral over positive terms,

    δ_φ = δ_φ(θ = 0) + √(K_αα K_ββ)/√(M_α M_β) ∫_0^θ ⟨φ'_α φ'_β⟩(ψ) sin ψ dψ.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrals.quadrature import legendre
from fieldtheory.averages.integrals.vectorising import vectorised
from fieldtheory.averages.integrands.steps import has_steps
from fieldtheory.averages.sizes import polar_sizes
from fieldtheory.networks.activations import h
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.finite import ratio
from fieldtheory.numerics.layer_averages import similar_waves
from fieldtheory.numerics.layer_averages.asymptotes import angle_of
from fieldtheory.numerics.layer_averages.large_variances import (
    at_angles,
    pair_averages,
    single_average,
)
from fieldtheory.numerics.layer_averages.steady_waves import are_steady_waves, decorrelation
from fieldtheory.numerics.layer_averages.wide_signals import wide_signals
from fieldtheory.numerics.observables.pair_observables import places_of_jumps
from fieldtheory.numerics.overflow.logarithms import ScaledLayers, scaled_layers
from fieldtheory.numerics.overflow.unlimited_averages import features_of, is_analytic

# 1 − c from which on a difference keeps its digits; nodes on panels in the angle, and their ratio.
_NARROW, _NODES, _GROWTH = 1e-2, 12, 4
# Variances of wide signals, and of differences of signals that keep their digits.
_WIDE, _DIFFERENT = 2.0**10, 1e-6
# The same ratio where φ jumps, and angles at which jumps so far apart do not meet.
_GROWTH_AT_JUMPS, _UNSEEN = 1.6, 0.125


def decorrelations(network: LayeredNetwork, K0: np.ndarray, initial: np.ndarray) -> np.ndarray:
    """1 − c^(l) of two inputs in all layers, shape (L + 2,), the output last.

    For inputs at angles that no K0 in float64 can hold; `Solution.decorrelation` takes 1 − c of
    the inputs from its K0, which is exact for that K0.

    Parameters
    ----------
    network : LayeredNetwork
        Without batch axes.
    K0 : array_like, shape (2,)
        The variances of the two inputs, > 0.
    initial : float
        1 − c^(0), from 0 to 2: 2 sin²(θ/2) at the angle θ.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> net = ResidualNetwork(depth=2, activation="relu", weight_variance=2.0, bias_variance=0.0)
    >>> decorrelations(net, [1.0, 1.0], 2 * np.sin(0.5e-8) ** 2)[:2]
    array([5.e-17, 5.e-17])
    """
    layers = scaled_layers(network, np.asarray(K0, dtype=float), 1)
    pairs = np.array([0]), np.array([1])
    return of_pairs(layers, np.asarray([initial], dtype=float), pairs)[..., 0]


def of_pairs(
    layers: ScaledLayers, initial: np.ndarray, pairs: tuple[np.ndarray, ...]
) -> np.ndarray:
    """1 − c^(l) of pairs of inputs, shape (L + 2, ..., pairs), from those of the input.

    Raises
    ------
    ValueError
        If a variance vanishes.
    QuadratureError
        If an average does not converge.
    """
    unknown = np.isnan(layers.kernels.mantissa)
    if unknown.any():
        layer = int(np.argmax(unknown.reshape(len(unknown), -1).any(axis=1)))
        raise QuadratureError(f"an average of φ does not converge before layer {layer}")
    if (layers.kernels.mantissa == 0).any():
        layer = int(
            np.argmax((layers.kernels.mantissa == 0).reshape(len(layers.near) + 1, -1).any(1))
        )
        raise ValueError(
            f"decorrelation needs positive variances, got 0 in layer {layer}: zero signals have no "
            "angle"
        )
    first, second = pairs
    shape = np.broadcast_shapes(initial.shape, (*layers.near.shape[1:-1], len(first)))
    found = [np.broadcast_to(initial, shape)]
    for l in range(1, layers.network.depth + 2):
        shares = np.sqrt(layers.shares[:, l])
        apart = ((shares[..., first] - shares[..., second]) ** 2).sum(axis=0) / 2
        skip, branch, _ = shares[..., first] * shares[..., second]
        near, moments = layers.near[l - 1], layers.moments[l - 1]
        own = near[..., first], near[..., second]
        size = np.sqrt(moments[..., first]) * np.sqrt(moments[..., second])
        delta = found[-1]
        found.append(apart + skip * delta + branch * of_features(layers.network, *own, size, delta))
    return np.stack(found)


def of_features(
    network: LayeredNetwork, K_xx: np.ndarray, K_yy: np.ndarray, size: np.ndarray, delta: np.ndarray
) -> np.ndarray:
    """δ_φ, for √(M_xx M_yy) = ``size``."""
    form, closed = at_angles(network, K_xx, K_yy)
    closed = np.broadcast_to(closed, delta.shape)
    values = np.empty(delta.shape) if form is None else form.decorrelation(delta)
    if not closed.all():
        parts = (np.broadcast_to(k, delta.shape)[~closed] for k in (K_xx, K_yy, size, delta))
        values[~closed] = _otherwise(network, *parts)
    return values


def _otherwise(
    network: LayeredNetwork,
    K_xx: np.ndarray,
    K_yy: np.ndarray,
    size: np.ndarray,
    delta: np.ndarray,
) -> np.ndarray:
    """δ_φ of φ that is no power."""
    if are_steady_waves(network, K_xx, K_yy):
        return decorrelation(network, K_xx, K_yy, delta)
    wide = delta < _NARROW
    wide &= similar_waves.reach(network, "covariance", K_xx, K_yy, delta)
    if not wide.any():
        return _by_price(network, K_xx, K_yy, size, delta)
    found, given = np.empty(delta.shape), (K_xx, K_yy, size, delta)
    price = partial(_by_price, network)
    some = tuple(each[wide] for each in given)
    found[wide] = similar_waves.decorrelation(network, some, of_features, price)
    if not wide.all():
        found[~wide] = price(*(each[~wide] for each in given))
    return found


def _by_price(
    network: LayeredNetwork,
    K_xx: np.ndarray,
    K_yy: np.ndarray,
    size: np.ndarray,
    delta: np.ndarray,
) -> np.ndarray:
    """By Price's theorem; the plain difference of wide angles."""
    found = np.empty(delta.shape)
    wide = delta >= _NARROW
    if wide.any():
        x, y, apart = K_xx[wide], K_yy[wide], delta[wide]
        average = pair_averages(network, "covariance", x, y, 1 - apart)
        found[wide] = np.maximum(1 - ratio(average, size[wide]), 0.0)
    if not wide.all():
        x, y, size, delta = (k[~wide] for k in (K_xx, K_yy, size, delta))
        try:
            found[~wide] = _of_differences(network, x, y, delta)
            return found
        except QuadratureError:
            pass
        same = np.ones_like(delta)
        parallel = 1 - ratio(pair_averages(network, "covariance", x, y, same), size)
        integral = _over_angles(network, x, y, delta)
        found[~wide] = np.where(x == y, 0.0, np.maximum(parallel, 0.0)) + ratio(
            np.sqrt(x * y) * integral, size
        )
    return found


def _of_differences(
    network: LayeredNetwork, K_xx: np.ndarray, K_yy: np.ndarray, delta: np.ndarray
) -> np.ndarray:
    """⟨(φ_α/√M_α − φ_β/√M_β)²⟩/2 of φ whose slopes take longer to average.

    These have a kink at zero, or approach lines as slowly as h/√(1 + h²) and signals are wide; of
    the latter, differences keep their digits unless signals of one size hardly differ.
    """
    (phi, *others) = features_of(network)
    if others or not is_analytic(phi):
        raise QuadratureError(f"{phi} is not analytic on both sides of zero")
    nearest = np.minimum(K_xx, K_yy)
    differ = (K_xx != K_yy) | (nearest * delta > _DIFFERENT)
    slow = (nearest >= _WIDE) & (delta > 0) & differ
    if not has_steps(phi) and not (slow.all() and wide_signals(phi) is None):
        raise QuadratureError(f"slopes of {phi} have fast averages")
    f = vectorised([h], phi)
    norms = [np.sqrt(single_average(network, "second_moment", K)) for K in (K_xx, K_yy)]
    if not all((norm > 0).all() and np.isfinite(norm).all() for norm in norms):
        raise QuadratureError(f"{phi} vanishes, or exceeds float64")
    given = zip(*(each.tolist() for each in (*norms, K_xx, K_yy, delta)), strict=True)
    return np.array([polar_sizes.decorrelation(f, (n, m), *pair) for n, m, *pair in given])


def _over_angles(
    network: LayeredNetwork, K_xx: np.ndarray, K_yy: np.ndarray, delta: np.ndarray
) -> np.ndarray:
    """∫_0^θ ⟨φ'_α φ'_β⟩(ψ) sin ψ dψ, by panels that grow from the angle of one unit of φ."""
    angle = angle_of(delta)
    first, growth = np.minimum(1 / np.sqrt(np.minimum(K_xx, K_yy)), 1.0), float(_GROWTH)
    for place in places_of_jumps(network):
        # Signals jump there together from the angle of these distances on.
        apart = np.abs(place * (1 / np.sqrt(K_xx) - 1 / np.sqrt(K_yy)))
        first = np.where(apart > 0, np.minimum(first, _UNSEEN * apart), first)
        growth = _GROWTH_AT_JUMPS
    count = int(np.ceil(np.log(max((angle / first).max(), 1.0)) / np.log(growth)))
    edges = np.minimum(first[:, None] * growth ** np.arange(count + 1), angle[:, None])
    edges = np.concatenate([np.zeros((len(angle), 1)), edges], axis=1)
    pair, panel = np.nonzero(np.diff(edges))
    nodes, weights = legendre(_NODES)
    middle = (edges[pair, panel] + edges[pair, panel + 1])[:, None] / 2
    half = (edges[pair, panel + 1] - edges[pair, panel])[:, None] / 2
    psi = middle + half * nodes
    near = 2 * np.sin(psi / 2) ** 2
    x, y = K_xx[pair, None], K_yy[pair, None]
    slopes = pair_averages(network, "slope", x, y, np.cos(psi), near)
    terms = (half * weights * slopes * np.sin(psi)).sum(axis=1)
    return np.bincount(pair, terms, minlength=len(angle))
