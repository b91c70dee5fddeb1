"""How the signals of many inputs in two layers correlate beside each other.

A signal of layer l is A times that of layer k <= l and what the layers between add, which is
independent of all signals of layer k.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fieldtheory.numerics.observables.pair_observables import PairObservables


@dataclass(frozen=True, eq=False)
class TwoLayers:
    """Correlations of different inputs of which no two are parallel.

    Parameters
    ----------
    signals : PairObservables
    k, l : int
        The earlier and the later layer, which may be the same.
    """

    signals: PairObservables
    k: int
    l: int

    @property
    def carried(self) -> float:
        """A."""
        return float(self.signals.carried[self.l, self.k])

    @cached_property
    def early(self) -> np.ndarray:
        """Deviations of the earlier layer, shape (P,)."""
        return np.sqrt(np.diagonal(self.signals.K[self.k]))

    @cached_property
    def noise(self) -> np.ndarray:
        """Deviations of what is added, shape (P,)."""
        return np.sqrt(np.diagonal(self._added))

    @cached_property
    def within(self) -> np.ndarray:
        """Of two inputs of the earlier layer, shape (P, P), zero for the same one, as below."""
        return _correlations(self.signals.K[self.k], self.early[:, None] * self.early)

    @cached_property
    def across(self) -> np.ndarray:
        """Of h_α of the earlier and h_δ of the later layer."""
        return _correlations(
            self.carried * self.signals.K[self.k], self.early[:, None] * self._late
        )

    @cached_property
    def added(self) -> np.ndarray:
        """Of what is added to two inputs."""
        return _correlations(self._added, self.noise[:, None] * self.noise)

    @cached_property
    def to_noise(self) -> np.ndarray:
        """κ of what is added to h_α, and h_δ of the later layer beside h_α of the earlier one."""
        return _correlations(self._added, self.noise[:, None] * self._beside_common)

    def beside(self, alpha: int) -> np.ndarray:
        """ρ of h_β of the earlier and h_δ of the later layer beside the earlier h_α."""
        c, d = self.within[alpha], self.across[alpha]
        whole = self.carried * self.signals.K[self.k]
        whole = whole - np.outer(c * self.early, d * self._late)
        rest = np.sqrt(1 - c**2) * self.early
        found = _correlations(whole, np.outer(rest, self._beside_common[alpha]))
        found[alpha] = found[:, alpha] = 0.0
        return found

    @cached_property
    def rates(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """At which series in κ, in ρ and in correlations with h_α fall off, by α and δ."""
        rho = np.abs([self.beside(alpha) for alpha in range(len(self.early))]).max(axis=1)
        kappa = np.abs(self.to_noise)
        # Given what one series is of, the other one is of more.
        of_noise = kappa / np.sqrt(np.maximum(1 - rho**2, _LEAST))
        of_rest = rho / np.sqrt(np.maximum(1 - kappa**2, _LEAST))
        return of_noise, of_rest, np.maximum(np.abs(self.within), np.abs(self.across))

    @property
    def largest(self) -> float:
        """The largest of all rates."""
        return max(float(each.max()) for each in (*self.rates, np.abs(self.added)))

    @cached_property
    def _late(self) -> np.ndarray:
        return np.sqrt(np.diagonal(self.signals.K[self.l]))

    @cached_property
    def _added(self) -> np.ndarray:
        between = slice(self.k + 1, self.l + 1)
        scales = self.signals.carried[self.l, between]
        return np.einsum("m,mab->ab", scales**2, self.signals.C[between])

    @cached_property
    def _beside_common(self) -> np.ndarray:
        """Deviations of h_δ of the later layer beside h_α of the earlier one."""
        return np.sqrt(1 - self.across**2) * self._late


def _correlations(whole: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    found = np.divide(whole, sizes, out=np.zeros_like(whole), where=sizes > 0)
    np.fill_diagonal(found, 0.0)
    return np.clip(found, -1.0, 1.0)


# The square of what is left of a variable, below which nothing is.
_LEAST = 1e-12
