"""Correlators of observables of pairs of inputs that have one in common, by Hermite coefficients.

In the layer of the earlier pair, (α, β), a later one that is brought back to it is a function of
h_α and h_δ. In coordinates of which the first is h_α, and the second what h_β or h_δ has beside it,
with the partial correlation r, the symmetric powers of correlations are diagonal,

    ⟨f(h_α, h_β) ; g(h_α, h_δ)⟩ = Σ_ij f_ij r^j g_ij   without i = j = 0,

of any order i, which falls off with that of the functions alone, but of few orders j.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from fieldtheory.numerics.observables.pair_modes import (
    order_count,
    packed_places,
    triangle,
    unit_row,
)
from fieldtheory.numerics.observables.pair_observables import PairObservables, apply
from fieldtheory.numerics.observables.pair_powers import orders_needed


def meetings(signals: PairObservables, k: int) -> np.ndarray:
    """Whether two pairs have an input in common, whose signal and others do not vanish in layer k.

    Shape (p, p).
    """
    still = signals.still(np.arange(len(signals.pairs[0])))[k]
    return have_common_input(signals) & ~still[:, None] & ~still


def have_common_input(signals: PairObservables) -> np.ndarray:
    """Whether two pairs have an input in common, shape (p, p)."""
    own = np.array(signals.pairs)
    return (own[:, None, :, None] == own[None, :, None, :]).any(axis=(0, 1))


def places(signals: PairObservables) -> np.ndarray:
    """Where the pair of two inputs is among all, shape (P, P)."""
    first, second = signals.pairs
    found = np.zeros(signals.K.shape[1:], dtype=int)
    found[first, second] = found[second, first] = np.arange(len(first))
    return found


def fill(
    signals: PairObservables, k: int, later: np.ndarray, chosen: np.ndarray, found: np.ndarray
) -> None:
    """The correlators of pairs that have an input in common with pairs of layers from k on.

    Parameters
    ----------
    signals : PairObservables
    k : int
    later : ndarray, shape (layers, p, orders)
        The observables of these layers, brought back to layer k; its own is the first.
    chosen : ndarray of bool, shape (p, p)
        What to fill, of `meetings`.
    found : ndarray, shape (p, p, layers)
        By the pair of layer k and the later one.
    """
    inputs, place = signals.K.shape[-1], places(signals)
    count = order_count(later.shape[-1])
    turned, by_second = _turned(signals, k, later), _by_second(count)
    for alpha in range(inputs):
        pairs = place[alpha]
        functions = np.where(
            (np.arange(inputs) < alpha)[:, None], turned[:, pairs], later[:, pairs]
        )[..., by_second]
        r = partial_correlations(signals.K[k], alpha)
        for beta, delta in np.argwhere(chosen[np.ix_(pairs, pairs)]):
            row, column = pairs[beta], pairs[delta]
            weights = _weights(float(r[beta, delta]), count)
            weighted = functions[0, beta, 1 : len(weights)] * weights[1:]
            found[row, column] = functions[:, delta, 1 : len(weights)] @ weighted


def _turned(signals: PairObservables, k: int, functions: np.ndarray) -> np.ndarray:
    """The same functions in coordinates of which the first is h_β instead of h_α."""
    c, s = unit_row(signals.R[:, :, k])
    layers, p, size = functions.shape
    Q = np.tile(np.array([[c, s], [s, -c]]), layers)
    return apply(Q, functions.reshape(-1, size).T, order_count(size)).T.reshape(layers, p, size)


def partial_correlations(K: np.ndarray, alpha: int) -> np.ndarray:
    """Of h_β and h_δ beside h_α, shape (P, P); zero for what h_α alone determines."""
    variances = np.diagonal(K)
    _, (along, across) = triangle(
        np.stack([np.full_like(variances, variances[alpha]), variances]), K[alpha]
    )
    rest, sizes = K - np.outer(along, along), np.outer(across, across)
    r = np.divide(rest, sizes, out=np.zeros_like(rest), where=sizes > 0)
    np.fill_diagonal(r, np.where(across > 0, 1.0, 0.0))
    return np.clip(r, -1.0, 1.0)


def _weights(r: float, count: int) -> np.ndarray:
    """r^j in the order of `_by_second`, as far as it counts."""
    X = np.array([[r, 0.0], [0.0, 0.0]])[:, :, None]
    most = max(1, int(orders_needed(X, count)[0]))
    return np.repeat(r ** np.arange(most), count - np.arange(most))


@lru_cache(maxsize=8)
def _by_second(count: int) -> np.ndarray:
    """Where the packed coefficients are, by j and then by i."""
    n, i = packed_places(count)
    return np.lexsort((i, n - i))
