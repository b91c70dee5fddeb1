"""Correlators of the observables of two pairs of inputs by the averages over their four signals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
import sympy as sp

from fieldtheory.averages import ConnectedCorrelator, many
from fieldtheory.averages.rules import CLOSED_FORM, PRICE
from fieldtheory.compiling.functions import lambdify
from fieldtheory.numerics.entries import network_entries
from fieldtheory.numerics.pair_observables import PairObservables
from fieldtheory.theory.elementary_averages import X, Y

# Which of the distinct signals stand in the first and in the second observable.
Pattern = tuple[int, int, int, int]


def by_averages(signals: PairObservables, known: np.ndarray | None = None) -> np.ndarray:
    """⟨g(h_α, h_β)^(k) ; g(h_γ, h_δ)^(l)⟩ of all layers and pairs, shape (L + 1, p, L + 1, p).

    Closed forms, some milliseconds for each entry at most, and integrals; those that are ``known``
    are not NaN.
    """
    size, inputs = signals.K.shape[:2]
    layers, p = np.arange(size), len(signals.pairs[0])
    # Inputs of every layer, those that are the same by the first of them.
    one = np.tile(np.arange(inputs), (size, 1))
    same = signals.same(np.arange(p))
    for first, second, equal in zip(*signals.pairs, same.T, strict=True):
        one[equal, second] = np.minimum(one[equal, second], first)
    earlier = np.minimum.outer(layers, layers)
    carried = np.tril(signals.carried) + np.tril(signals.carried, -1).T
    # Signals are counted layer by layer.
    blocks = carried[:, :, None, None] * signals.K[earlier]
    K = np.swapaxes(blocks, 1, 2).reshape(size * inputs, size * inputs)
    pairs = [(inputs * layers[:, None] + one[:, members]).ravel() for members in signals.pairs]
    g = network_entries(signals.network).averages.observable
    if known is not None:
        known = known.reshape(size * p, size * p)
    return connected(g, K, pairs, known).reshape(size, p, size, p)


def connected(
    g: sp.Expr, K: np.ndarray, pairs: Sequence[np.ndarray], known: np.ndarray | None = None
) -> np.ndarray:
    """⟨g(h_a, h_b) ; g(h_c, h_d)⟩ of all pairs of signals, shape (p, p).

    Parameters
    ----------
    g : sympy.Expr
        In the symbols ``X`` and ``Y``.
    K : ndarray, shape (n, n)
        The covariance of the signals.
    pairs : two ndarrays of int, shape (p,)
        a and b of every pair.
    known : ndarray, shape (p, p), optional
        Those that need not be found, and NaN.
    """
    first, second = pairs
    found = np.full((len(first), len(first)), np.nan) if known is None else known.copy()
    groups: dict[Pattern, list[tuple[int, int, list[int]]]] = defaultdict(list)
    for i in range(len(first)):
        for j in (i + np.flatnonzero(np.isnan(found[i, i:]))).tolist():
            four = [int(n) for n in (first[i], second[i], first[j], second[j])]
            distinct = list(dict.fromkeys(four))
            a, b, c, d = (distinct.index(n) for n in four)
            groups[a, b, c, d].append((i, j, distinct))
    # Entries with as many distinct signals in the same places at once.
    for pattern, places in groups.items():
        rows, columns, signals = zip(*places, strict=True)
        upper = np.triu_indices(len(signals[0]))
        entries = np.array([K[np.ix_(chosen, chosen)][upper] for chosen in signals])
        values = _compiled(g, pattern)(*entries.T)
        found[rows, columns] = found[columns, rows] = values
    return found


def has_closed_form(g: sp.Expr) -> bool:
    """Whether correlators of four different signals are one integral at most."""
    a, b, c, d = h = sp.symbols("h0:4", real=True)
    observables = (g.subs({X: u, Y: v}, simultaneous=True) for u, v in ((a, b), (c, d)))
    correlator = ConnectedCorrelator(*observables, h, sp.eye(4) + sp.ones(4, 4))
    nodes = correlator.atoms(ConnectedCorrelator)
    return all(many.rule(node).name in (PRICE, CLOSED_FORM) for node in nodes)


def slopes(g: sp.Expr, K: np.ndarray) -> np.ndarray:
    """∂_e ⟨g(x, y) ; g_e'⟩ with g_e' = g(u, u), g(v, v), g(u, v), shape (3, 3, ...).

    By the entries e = K_xx, K_yy, K_xy of the covariance alone, as if x and y belonged to a layer
    after that of u and v.

    Parameters
    ----------
    g : sympy.Expr
        Symmetric, in the symbols ``X`` and ``Y``.
    K : ndarray, shape (4, 4, ...)
        The covariance of x, y, u and v.

    Examples
    --------
    >>> slopes(X * Y, np.array([[2.0, 0, 1, 0], [0, 2, 0, 1], [1, 0, 2, 0], [0, 1, 0, 2]]))[2]
    array([0., 0., 0.])
    """
    exchanged = K[[1, 0, 3, 2]][:, [1, 0, 3, 2]]
    found = np.empty((3, 3, *K.shape[2:]))
    for source, pattern in ((0, (0, 1, 2, 2)), (2, (0, 1, 2, 3))):
        for e in range(3):
            if (e, source) != (1, 2):
                found[e, source] = _of_matrices(g, pattern, e, K)
    # g is symmetric: the rest follows with the inputs exchanged.
    for e, other in ((0, 1), (1, 0), (2, 2)):
        found[e, 1] = _of_matrices(g, (0, 1, 2, 2), other, exchanged)
    found[1, 2] = _of_matrices(g, (0, 1, 2, 3), 0, exchanged)
    return found


def _of_matrices(g: sp.Expr, pattern: Pattern, e: int, K: np.ndarray) -> np.ndarray:
    upper = np.triu_indices(max(pattern) + 1)
    entries = K[upper].reshape(len(upper[0]), -1)
    return np.asarray(_compiled(g, pattern, e)(*entries)).reshape(K.shape[2:])


@lru_cache(maxsize=64)
def _compiled(g: sp.Expr, pattern: Pattern, e: int | None = None) -> Callable[..., np.ndarray]:
    """The correlator of a pattern, or its derivative by an entry e of the first observable."""
    count = max(pattern) + 1
    h = sp.symbols(f"h0:{count}", real=True)
    K = sp.Matrix(count, count, lambda i, j: sp.Symbol(f"K{min(i, j)}{max(i, j)}", real=True))
    a, b, c, d = (h[place] for place in pattern)
    observables = [g.subs({X: u, Y: v}, simultaneous=True) for u, v in ((a, b), (c, d))]
    entries = [K[i, j] for i in range(count) for j in range(i, count)]
    correlator = ConnectedCorrelator(*observables, h, K)
    if e is not None:
        correlator = correlator.diff((K[0, 0], K[1, 1], K[0, 1])[e])
    return lambdify(entries, correlator, "numpy")
