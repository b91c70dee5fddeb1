"""Derivatives of ⟨g(h_α, h_β)⟩ and of its correlators by the kernels of the two inputs.

By Hermite coefficients where these resolve the signals, by the averages themselves where they do
not and for φ with kinks, whose derivatives are distributions.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from fieldtheory.numerics import four_inputs
from fieldtheory.numerics.entries import network_entries
from fieldtheory.numerics.pair_observables import PairObservables

# ∂_e as derivatives by x and by y and a factor, for (αα), (ββ), (αβ).
_SLOPES = ((2, 0, 0.5), (0, 2, 0.5), (1, 1, 1.0))


def curvatures(signals: PairObservables, pairs: np.ndarray, used: np.ndarray) -> np.ndarray:
    """⟨∂_e ∂_e' g⟩ of pairs α < β in all layers, shape (3, 3, L + 1, pairs).

    Parameters
    ----------
    signals : PairObservables
    pairs : ndarray of int
    used : ndarray of bool, shape (L + 1, pairs)
        Where they are asked for; zero elsewhere.
    """
    found = np.zeros((3, 3, *used.shape))
    if signals.resolved:
        means = {
            orders: signals.projected(*orders, pairs)[..., 0]
            for orders in ((4, 0), (3, 1), (2, 2), (1, 3), (0, 4))
        }
        for (e, (i, j, c)), (f, (k, l, d)) in product(enumerate(_SLOPES), repeat=2):
            found[e, f] = np.where(used, c * d * means[i + k, j + l], 0.0)
        return found
    alpha, beta = (members[pairs] for members in signals.pairs)
    own = np.diagonal(signals.K, axis1=1, axis2=2)
    x, y, xy = (k[used] for k in (own[:, alpha], own[:, beta], signals.K[:, alpha, beta]))
    curvature = network_entries(signals.network).covariance_curvature
    (xx, mixed, of_x, crossed), (yy, _, of_y, _) = curvature(x, y, xy), curvature(y, x, xy)
    found[:, :, used] = [[xx, mixed, of_x], [mixed, yy, of_y], [of_x, of_y, crossed]]
    return found


def slopes(signals: PairObservables, pairs: np.ndarray, used: np.ndarray) -> Iterator[np.ndarray]:
    """⟨∂_e g^(l) ; g_e'^(k)⟩ of pairs α < β for k = 0, ..., L, each (3, 3, L − k, pairs).

    By the entries e of the kernel of every later layer l, with g_e' = g(h_α, h_α), g(h_β, h_β),
    g(h_α, h_β). Parameters are those of `curvatures`.
    """
    return (_by_modes if signals.resolved else _by_averages)(signals, pairs, used)


def _by_modes(
    signals: PairObservables, pairs: np.ndarray, used: np.ndarray
) -> Iterator[np.ndarray]:
    moved = [c * signals.projected(i, j, pairs) for i, j, c in _SLOPES]
    observables = np.stack([*signals.squares(pairs), signals.projected(0, 0, pairs)])
    size = len(used)
    for k in range(size):
        found = np.zeros((3, 3, size - k - 1, len(pairs)))
        for e, slope in enumerate(moved):
            for l in range(k + 1, size):
                early = signals.brought_back(slope[l], l, k, pairs)
                met = np.einsum("ps,fps->fp", early[:, 1:], observables[:, k, :, 1:])
                found[e, :, l - k - 1] = np.where(used[l], met, 0.0)
        yield found


def _by_averages(
    signals: PairObservables, pairs: np.ndarray, used: np.ndarray
) -> Iterator[np.ndarray]:
    g = network_entries(signals.network).averages.observable
    size = len(used)
    alpha, beta = (members[pairs] for members in signals.pairs)
    of_pair = np.array([alpha, beta])
    # Kernels of the two inputs, entry by entry, by layers and pairs.
    K = np.array([[signals.K[:, i, j] for j in of_pair] for i in of_pair])
    for k in range(size):
        found = np.zeros((3, 3, size - k - 1, len(pairs)))
        later = np.arange(k + 1, size)
        skip = np.broadcast_to(signals.carried[later, k, None], found.shape[2:])
        # Without skip connections layers are independent.
        asked = used[later] & (skip != 0)
        if asked.any():
            layer, pair = np.nonzero(asked)
            early = K[:, :, k, pair]
            across = skip[asked] * early
            upper = np.concatenate([K[:, :, later[layer], pair], across], axis=1)
            joint = np.concatenate([upper, np.concatenate([across, early], axis=1)])
            found[:, :, asked] = four_inputs.slopes(g, joint)
        yield found
