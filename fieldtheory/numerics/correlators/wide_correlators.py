"""Correlators of many inputs whose Hermite coefficients fall off slowly: wide signals, and kinks.

Orders from n on add at most ε² sⁿ √(⟨g;g⟩ ⟨g';g'⟩) to a correlator ⟨g ; g'⟩, where ε² is their
share of the variances and s the largest correlation between the signals of the two pairs. It is
near one only for pairs that have an input in common, in layers that hardly differ. These take more
orders than others, and within a layer they are integrals over this input (`common_inputs`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fieldtheory.averages.polynomial_pieces.signs import rotations
from fieldtheory.numerics.correlators import common_inputs
from fieldtheory.numerics.memory import require_memory
from fieldtheory.numerics.observables import wide_observables
from fieldtheory.numerics.observables.pair_correlators import CHANGED, of_layer
from fieldtheory.numerics.observables.pair_modes import packed_size
from fieldtheory.numerics.observables.pair_observables import PairObservables
from fieldtheory.numerics.observables.pair_powers import orders_needed
from fieldtheory.numerics.observables.shared_signals import have_common_input, partial_correlations

# Orders kept, tried one after the other.
_COUNTS = (56, 80, 114, 160, 224, 320, 448, 560)
# As many as are found once, for all layers.
_USUAL = 160
# Seconds of the coefficients of one input in a layer, per order.
_EXPANDED = 4e-4
# Pairs of pairs of a layer that tell how many orders they take.
_ASKED = 100
# Arrays of the coefficients of a layer that are held at once.
_COPIES = 5


class Orders(NamedTuple):
    """How many Hermite orders the correlators take.

    Parameters
    ----------
    counts : ndarray of int, shape (L + 1, L + 1)
        Of pairs in the layers k <= l; where k = l, of pairs that have no input in common.
    error : float
        What these leave out, relative to variances.
    """

    counts: np.ndarray
    error: float

    def seconds(self, signals: PairObservables) -> float:
        """About how many seconds `correlators` takes."""
        inputs = signals.K.shape[-1]
        later = np.triu(self.counts.astype(float))
        # Observables are brought back to the earlier layer and turned there, those that meet one
        # without a common input for each of these and for every number of orders.
        turned = float(inputs * (inputs + 1) * (later**2.5).sum())
        rows, columns = np.nonzero(~have_common_input(signals))
        for k, counts in enumerate(self.counts):
            step = max(1, len(rows) // _ASKED)
            X = signals.between(k, rows[::step], k, columns[::step])
            for count in np.unique(counts[k:]).tolist():
                turned += len(rows) * float((orders_needed(X, count) ** 2.5).mean())
        return CHANGED * turned + float(inputs * _EXPANDED * later.max(axis=1).sum())


def orders(signals: PairObservables) -> Orders:
    """As many orders as the error that is asked for takes, or the most there are.

    The error is infinite where there are no `correlators`: those of kinks and signals that vanish
    are limits.
    """
    if signals.has_kinks and not np.diagonal(signals.K, axis1=1, axis2=2).all():
        return Orders(np.zeros((len(signals.K),) * 2, dtype=int), np.inf)
    largest = _correlations(signals)
    counts, errors = np.zeros(largest.shape, dtype=int), np.full(largest.shape, np.inf)
    for count in _COUNTS:
        more = errors > signals.allowed
        if not more.any():
            break
        left_out, missed = wide_observables.left_out(signals, count)
        counts[more] = count
        errors[more] = np.maximum(left_out * largest[more] ** count, missed)
    return Orders(counts, max(float(errors.max()), common_inputs.missed(signals)))


def correlators(signals: PairObservables, plan: Orders) -> np.ndarray:
    """⟨g ; g⟩, shape (L + 1, p, L + 1, p)."""
    size, p = len(signals.K), len(signals.pairs[0])
    found = np.empty((size, p, size, p))
    every, shared = np.arange(p), have_common_input(signals)
    expansions = _Expansions.of(signals, plan)
    for k in signals.counted(range(size), "G11, layers"):
        for count in np.unique(plan.counts[k, k:]).tolist():
            some = k + np.flatnonzero(plan.counts[k, k:] == count)
            layers = np.union1d([k], some)
            f = signals.brought_back(expansions.at(layers, count), k, every, layers)
            values = of_layer(signals, k, f)[..., np.isin(layers, some)]
            found[k, :, some], found[some, :, k] = (
                values.transpose(2, 0, 1),
                values.transpose(2, 1, 0),
            )
        within = common_inputs.correlators(signals, k, int(plan.counts[k, k]))
        found[k, :, k][shared] = within[shared]
        expansions.leave(k)
    return found


class _Expansions(NamedTuple):
    """The coefficients of the observables, as many as are needed, each once.

    Parameters
    ----------
    signals : PairObservables
    usual : ndarray, shape (L + 1, p, orders)
        Those of few orders.
    needed : ndarray of int, shape (L + 1,)
        Most orders of a layer.
    wide : dict
        Those of many orders of the layers that still meet others.
    """

    signals: PairObservables
    usual: np.ndarray
    needed: np.ndarray
    wide: dict[int, np.ndarray]

    @classmethod
    def of(cls, signals: PairObservables, plan: Orders) -> _Expansions:
        later = np.triu(plan.counts)
        needed = np.maximum(later.max(axis=0), later.max(axis=1))
        size, every = len(needed), np.arange(len(signals.pairs[0]))
        count = min(int(needed.max()), _USUAL)
        _require_memory(
            signals, int(needed.max()), int(np.count_nonzero(later > _USUAL, axis=1).max())
        )
        usual = wide_observables.expanded(signals, count, range(size), every)
        return cls(signals, usual, needed, {})

    def at(self, layers: np.ndarray, count: int) -> np.ndarray:
        """Those of some layers of orders below ``count``, shape (layers, p, orders)."""
        size = packed_size(count)
        if count <= _USUAL:
            return self.usual[layers, :, :size]
        for l in layers.tolist():
            if l not in self.wide:
                every = np.arange(self.usual.shape[1])
                count = int(self.needed[l])
                self.wide[l] = wide_observables.expanded(self.signals, count, [l], every)[0]
        return np.stack([self.wide[l][:, :size] for l in layers.tolist()])

    def leave(self, layer: int) -> None:
        """Forget a layer that meets no others any more."""
        self.wide.pop(layer, None)


def _require_memory(signals: PairObservables, count: int, layers: int) -> None:
    require_memory(
        f"the expansion of {signals.K.shape[-1]} inputs in {count} Hermite orders",
        8 * _COPIES * layers * len(signals.pairs[0]) * packed_size(count),
        "use fewer inputs or layers, or a larger rtol=",
    )


def _correlations(signals: PairObservables) -> np.ndarray:
    """The largest correlation between signals of pairs in layers k <= l, shape (L + 1, L + 1).

    Of inputs beside a third one where k = l and two pairs have that in common; zero for k > l.
    """
    size, p = len(signals.K), len(signals.pairs[0])
    rows, columns = (each.ravel() for each in np.indices((p, p)))
    apart = ~have_common_input(signals).ravel()
    found = np.zeros((size, size))
    for k in range(size):
        for l in range(k, size):
            some = apart if l == k else slice(None)
            *_, largest, _ = rotations(signals.between(k, rows[some], l, columns[some]))
            found[k, l] = largest.max(initial=0.0)
        for alpha in range(signals.K.shape[-1]):
            r = np.abs(partial_correlations(signals.K[k], alpha))
            np.fill_diagonal(r, 0.0)
            found[k, k] = max(found[k, k], r.max())
    return np.minimum(found, 1.0)
