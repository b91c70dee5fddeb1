"""Correlators of the observables of two pairs of inputs by the averages over their four signals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
import sympy as sp

from fieldtheory.averages import ConnectedCorrelator
from fieldtheory.compiling.functions import lambdify
from fieldtheory.numerics.entries import network_entries
from fieldtheory.numerics.pair_observables import PairObservables
from fieldtheory.theory.elementary_averages import X, Y

# Which of the distinct signals stand in the first and in the second observable.
Pattern = tuple[int, int, int, int]


def by_averages(signals: PairObservables) -> np.ndarray:
    """⟨g(h_α, h_β)^(k) ; g(h_γ, h_δ)^(l)⟩ of all layers and pairs, shape (L + 1, p, L + 1, p).

    Closed forms and integrals of the averages, some milliseconds for each entry.
    """
    size, inputs = signals.K.shape[:2]
    layers = np.arange(size)
    earlier = np.minimum.outer(layers, layers)
    carried = np.tril(signals.carried) + np.tril(signals.carried, -1).T
    # Signals are counted layer by layer.
    blocks = carried[:, :, None, None] * signals.K[earlier]
    K = np.swapaxes(blocks, 1, 2).reshape(size * inputs, size * inputs)
    pairs = [(inputs * layers[:, None] + members).ravel() for members in signals.pairs]
    g = network_entries(signals.network).averages.observable
    p = len(signals.pairs[0])
    return connected(g, K, pairs).reshape(size, p, size, p)


def connected(g: sp.Expr, K: np.ndarray, pairs: Sequence[np.ndarray]) -> np.ndarray:
    """⟨g(h_a, h_b) ; g(h_c, h_d)⟩ of all pairs of signals, shape (p, p).

    Parameters
    ----------
    g : sympy.Expr
        In the symbols ``X`` and ``Y``.
    K : ndarray, shape (n, n)
        The covariance of the signals.
    pairs : two ndarrays of int, shape (p,)
        a and b of every pair.
    """
    first, second = pairs
    groups: dict[Pattern, list[tuple[int, int, list[int]]]] = defaultdict(list)
    for i in range(len(first)):
        for j in range(i, len(first)):
            four = [int(n) for n in (first[i], second[i], first[j], second[j])]
            distinct = list(dict.fromkeys(four))
            a, b, c, d = (distinct.index(n) for n in four)
            groups[a, b, c, d].append((i, j, distinct))
    found = np.empty((len(first), len(first)))
    # Entries with as many distinct signals in the same places at once.
    for pattern, places in groups.items():
        rows, columns, signals = zip(*places, strict=True)
        upper = np.triu_indices(len(signals[0]))
        entries = np.array([K[np.ix_(chosen, chosen)][upper] for chosen in signals])
        values = _compiled(g, pattern)(*entries.T)
        found[rows, columns] = found[columns, rows] = values
    return found


@lru_cache(maxsize=64)
def _compiled(g: sp.Expr, pattern: Pattern) -> Callable[..., np.ndarray]:
    count = max(pattern) + 1
    h = sp.symbols(f"h0:{count}", real=True)
    K = sp.Matrix(count, count, lambda i, j: sp.Symbol(f"K{min(i, j)}{max(i, j)}", real=True))
    a, b, c, d = (h[place] for place in pattern)
    observables = (g.subs({X: u, Y: v}, simultaneous=True) for u, v in ((a, b), (c, d)))
    entries = [K[i, j] for i in range(count) for j in range(i, count)]
    return lambdify(entries, ConnectedCorrelator(*observables, h, K), "numpy")
