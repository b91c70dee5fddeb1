"""Correlators of the observables of pairs of inputs by their Hermite coefficients.

A later observable is averaged over what the layers between add, given the signals of the earlier
layer, where it meets the other pair.
"""

from __future__ import annotations

import numpy as np

from fieldtheory.numerics.observables import shared_signals
from fieldtheory.numerics.observables.pair_modes import order_count, packed_size
from fieldtheory.numerics.observables.pair_observables import PairObservables
from fieldtheory.numerics.observables.pair_powers import correlated, orders_needed

# Seconds of a function that changes its pair of signals, per power 2.5 of its Hermite orders, as
# measured, and of two functions that are multiplied, per square of them.
CHANGED, MULTIPLIED = 2.5e-9, 2e-10
# Coefficients that are held at once, of pairs that have no input in common.
_TOGETHER = 1 << 19
# Orders that differ by less are taken for as many.
_ALIKE = 8


def by_modes(signals: PairObservables) -> np.ndarray:
    """⟨g ; g⟩ of observables that are resolved, shape (L + 1, p, L + 1, p)."""
    f = signals.observables
    size, p = f.shape[:2]
    found = np.empty((size, p, size, p))
    every = np.arange(p)
    for k in signals.counted(range(size), "G11, layers"):
        values = of_layer(signals, k, signals.brought_back(f[k:], k, every))
        found[k, :, k:] = values.transpose(0, 2, 1)
        found[k:, :, k] = values.transpose(2, 1, 0)
    return found


def seconds_needed(signals: PairObservables) -> float:
    """About how many seconds `by_modes` takes."""
    size, p, orders = len(signals.K), len(signals.pairs[0]), float(signals.count)
    layers = size * (size + 1) / 2
    inputs = signals.K.shape[-1]
    changed = p * layers + p * size * min(p, size / 2)
    return changed * CHANGED * orders**2.5 + inputs * p * layers * MULTIPLIED * orders**2


def of_layer(signals: PairObservables, k: int, later: np.ndarray) -> np.ndarray:
    """⟨g ; g⟩ of pairs in layer k and pairs in later ones, by their places and the later layer.

    Parameters
    ----------
    signals : PairObservables
    k : int
    later : ndarray, shape (layers, p, orders)
        The observables, brought back to layer k; its own is the first.

    Returns
    -------
    ndarray, shape (p, p, layers)
    """
    size, p = later.shape[:2]
    # Later ones are turned, once each, where that is less than to turn what they meet.
    shared = shared_signals.meetings(signals, k) & (p > size)
    found = np.zeros((p, p, size))
    if shared.any():
        shared_signals.fill(signals, k, later, shared, found)
    fill_apart(signals, k, later, ~shared, found)
    return found


def fill_apart(
    signals: PairObservables, k: int, later: np.ndarray, chosen: np.ndarray, found: np.ndarray
) -> None:
    """Correlators of the ``chosen`` pairs in layer k and later ones, in place.

    Those of which many orders matter first, as many at once as stay in the cache.
    """
    rows, columns = np.nonzero(chosen)
    X = signals.between(k, rows, k, columns)
    needed = orders_needed(X, order_count(later.shape[-1]))
    # Of about as many orders by columns: those of one are one product with what is later.
    most = _ALIKE * np.ceil(needed / _ALIKE).astype(int)
    order = np.lexsort((columns, -most))
    start = 0
    while start < len(order) and most[order[start]]:
        some = order[start : start + max(1, _TOGETHER // packed_size(most[order[start]]))]
        start += len(some)
        count = int(needed[some].max())
        own = later[0, rows[some], : packed_size(count)].T
        seen = correlated(X[..., some], own, count).T
        ends = np.flatnonzero(np.diff(columns[some], append=-1)) + 1
        for first, last in zip([0, *ends[:-1]], ends, strict=True):
            column = columns[some[first]]
            values = seen[first:last] @ later[:, column, : packed_size(count)].T
            found[rows[some[first:last]], column] = values
