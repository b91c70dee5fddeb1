"""Correlators of the observables of two pairs of inputs by the averages over their four signals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
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
Signal = tuple[int, int]


def by_averages(signals: PairObservables) -> np.ndarray:
    """⟨g(h_α, h_β)^(k) ; g(h_γ, h_δ)^(l)⟩ of all layers and pairs, shape (L + 1, p, L + 1, p).

    Closed forms and integrals of the averages, some milliseconds for each entry.
    """
    size, (first, second) = len(signals.K), signals.pairs
    p = len(first)
    fields = [(l, pair) for l in range(size) for pair in range(p)]
    groups: dict[Pattern, list[tuple[int, int, list[Signal]]]] = defaultdict(list)
    for i, (k, one) in enumerate(fields):
        for j, (l, other) in enumerate(fields[i:], start=i):
            four = [(k, first[one]), (k, second[one]), (l, first[other]), (l, second[other])]
            distinct = list(dict.fromkeys(four))
            a, b, c, d = (distinct.index(signal) for signal in four)
            groups[a, b, c, d].append((i, j, distinct))
    found = np.empty((len(fields), len(fields)))
    g = network_entries(signals.network).averages.observable
    for pattern, places in groups.items():
        rows, columns, distinct_signals = zip(*places, strict=True)
        entries = np.array([_covariances(signals, distinct) for distinct in distinct_signals])
        values = _compiled(g, pattern)(*entries.T)
        found[rows, columns] = found[columns, rows] = values
    return found.reshape(size, p, size, p)


def _covariances(signals: PairObservables, distinct: list[Signal]) -> list[float]:
    """The upper triangle of the covariance of signals (layer, input)."""
    found = []
    for place, (k, a) in enumerate(distinct):
        for l, b in distinct[place:]:
            earlier, later = min(k, l), max(k, l)
            found.append(signals.carried[later, earlier] * signals.K[earlier][a, b])
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
