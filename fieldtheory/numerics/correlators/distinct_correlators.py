"""Correlators of all pairs of many inputs of which no two are nearly parallel, of any ψ.

Pairs with an input in common are series in correlations of different inputs (`distinct_inputs`,
`distinct_pairs`), others in the correlations of their four signals (`pair_modes`): no series falls
off slowly because layers hardly differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fieldtheory.averages.polynomial_pieces.signs import rotations
from fieldtheory.numerics.correlators import distinct_pairs
from fieldtheory.numerics.correlators.distinct_inputs import DistinctInputs
from fieldtheory.numerics.memory import require_memory
from fieldtheory.numerics.observables import wide_observables
from fieldtheory.numerics.observables.pair_correlators import CHANGED, fill_apart
from fieldtheory.numerics.observables.pair_modes import packed_size
from fieldtheory.numerics.observables.pair_observables import PairObservables
from fieldtheory.numerics.observables.pair_powers import orders_needed
from fieldtheory.numerics.observables.shared_signals import have_common_input, places
from fieldtheory.numerics.observables.two_layers import TwoLayers

# Orders of pairs without a common input, tried one after the other.
_COUNTS = (26, 38, 56, 80, 114, 160, 224, 320)
# Arrays of all coefficients that are held at once.
_COPIES = 5
# Pairs of pairs that tell how many orders they take.
_ASKED = 2000


@dataclass(frozen=True, eq=False)
class DistinctCorrelators:
    """⟨g ; g⟩ of all layers and pairs.

    Parameters
    ----------
    signals : PairObservables
    """

    signals: PairObservables

    @cached_property
    def inputs(self) -> DistinctInputs:
        """The series of pairs with a common input."""
        return DistinctInputs(self.signals)

    @property
    def resolved(self) -> bool:
        """Whether as many orders as there are suffice."""
        return self.inputs.resolved and self.orders > 0

    @cached_property
    def orders(self) -> int:
        """Of pairs without a common input, 0 if none suffice."""
        largest = max(
            float(rotations(X)[2].max(initial=0.0))
            for X in (self._apart(k, slice(None)) for k in range(len(self.signals.K)))
        )
        for count in _COUNTS:
            left_out, missed = wide_observables.left_out(self.signals, count)
            if max(left_out * largest**count, missed) <= self.signals.allowed:
                return count
        return 0

    @cached_property
    def seconds(self) -> float:
        """About how many seconds `values` takes."""
        size, p = len(self.signals.K), len(self.signals.pairs[0])
        layers = size * (size + 1) / 2
        step = max(1, size * p**2 // _ASKED)
        asked = [
            orders_needed(self._apart(k, slice(k, None, step)), self.orders) for k in range(size)
        ]
        turned = (np.concatenate(asked) ** 2.5).mean() * p**2 * size
        changed = CHANGED * (p * layers * self.orders**2.5 + turned)
        return self.inputs.seconds + distinct_pairs.SECONDS * p * layers + float(changed)

    def values(self) -> np.ndarray:
        """⟨g ; g⟩, shape (L + 1, p, L + 1, p)."""
        signals = self.signals
        size, p = len(signals.K), len(signals.pairs[0])
        inputs, place = signals.K.shape[-1], places(signals)
        alpha, beta = np.triu_indices(inputs, 1)
        of_two = np.stack([place[alpha, alpha], place[beta, beta], place[alpha, beta]])
        found, every = np.empty((size, p, size, p)), np.arange(p)
        f = self._expanded()
        for k in signals.counted(range(size), "G11, layers"):
            values = np.zeros((p, p, size - k))
            fill_apart(signals, k, signals.brought_back(f[k:], k, every), self._chosen, values)
            for l in range(k, size):
                block, two = values[..., l - k], TwoLayers(signals, k, l)
                later = self.inputs.later(two)
                for one, y in enumerate(later):
                    own = np.ix_(place[one], place[one])
                    block[own] = self.inputs.sharing(two, one, y)
                # Also what no third input shares.
                same = distinct_pairs.correlators(self.inputs, two, later)
                block[of_two[:, None], of_two] = same
            found[k, :, k:] = values.transpose(0, 2, 1)
            found[k:, :, k] = values.transpose(2, 1, 0)
        return found

    def _expanded(self) -> np.ndarray:
        """The coefficients of the observables, (L + 1, p, orders)."""
        size, p = len(self.signals.K), len(self.signals.pairs[0])
        require_memory(
            f"the expansion of {self.signals.K.shape[-1]} inputs in {self.orders} Hermite orders",
            8 * _COPIES * size * p * packed_size(self.orders),
            "use fewer inputs or layers, or a larger rtol=",
        )
        return wide_observables.expanded(self.signals, self.orders, range(size), np.arange(p))

    @cached_property
    def _chosen(self) -> np.ndarray:
        """Pairs that have no input in common, (p, p)."""
        return ~have_common_input(self.signals)

    def _apart(self, k: int, some: slice) -> np.ndarray:
        """Correlations of the signals of ``some`` of these pairs in layer k, (2, 2, m)."""
        rows, columns = (each[some] for each in np.nonzero(self._chosen))
        return self.signals.between(k, rows, k, columns)
