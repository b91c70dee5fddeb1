"""What fluctuates in networks of several inputs, each quantity found when first asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.tolerance import tolerance
from fieldtheory.networks.coefficients import LayerCoefficients, layer_coefficients
from fieldtheory.numerics.correlators import four_inputs
from fieldtheory.numerics.infinite_width.gains import gains_of_fluctuations
from fieldtheory.numerics.infinite_width.mean_field import MeanField
from fieldtheory.numerics.memory import require_memory
from fieldtheory.numerics.neurons.neurons_of_two_inputs import shift_of_covariance
from fieldtheory.numerics.observables import vanishing_signals
from fieldtheory.numerics.observables.pair_observables import PAIR_TOLERANCE, PairObservables
from fieldtheory.numerics.several_inputs import (
    equal_inputs,
    pair_blocks,
    pair_fluctuations,
    pair_shift,
)
from fieldtheory.numerics.several_inputs.pair_fluctuations import PairGains
from fieldtheory.numerics.symmetric_matrices import unpacked

# Arrays of the size of G11 that are held at once, also while less is made of it, and of that of the
# derivatives of all pairs of layers.
_COPIES, _COPIES_OF_SLOPES = 4, 4
# What there is instead of a mean shift that takes too long.
_FEWER = "use fewer inputs, as every entry depends on its own two alone, or fewer layers"


@dataclass(frozen=True, eq=False)
class PairTheory:
    """The order 1/N of p = P(P+1)/2 pairs of inputs, in the order of `np.triu_indices`.

    Parameters
    ----------
    layers : LayerCoefficients
    gains : PairGains
    signals : PairObservables
    """

    layers: LayerCoefficients
    gains: PairGains
    signals: PairObservables

    @classmethod
    def of(cls, field: MeanField, C: np.ndarray, K: np.ndarray, progress: bool) -> PairTheory:
        """That of a network and its inputs.

        Parameters
        ----------
        field : MeanField
        C, K : ndarray, shape (L + 2, P, P)
            C*^(l) and K*^(l).
        progress : bool
            Whether to show progress bars.
        """
        network = field.network
        own, joint = field.variances[1], field.covariances[1]
        of_pairs = gains_of_fluctuations(network, own, joint, field.pairs, field.pair_gains)
        seen = vanishing_signals.seen_kernels(network, K[:-1], C[:-1])
        moved = PairGains(field.moving_gains, *of_pairs)
        gains, kernel, added = equal_inputs.made_one(network, moved, *seen)
        signals = PairObservables(network, kernel, added, progress)
        return cls(layer_coefficients(network), gains, signals)

    @cached_property
    def G11(self) -> np.ndarray:
        """Cov(C_αβ^(l), C_γδ^(m)), shape (L + 2, L + 2, p, p)."""
        self._require_memory()
        S22 = pair_fluctuations.source_covariance(self.layers, self.signals)
        width = self.signals.network.width
        return pair_fluctuations.kernel_covariance(self.layers, self.gains, S22, width)

    @cached_property
    def kernel_covariance(self) -> np.ndarray:
        """Cov(K_αβ^(l), K_γδ^(l)), shape (L + 1, p, p)."""
        return pair_fluctuations.accumulated_covariance(self.layers, self.G11)

    @cached_property
    def four_point(self) -> np.ndarray:
        """V^(l) = N ⟨h_iα h_iβ ; h_jγ h_jδ⟩ for i ≠ j, shape (L + 1, p, p)."""
        # First what needs most memory, and says how much.
        variances = self.signals.network.width * self.kernel_covariance
        seen = pair_fluctuations.seen_by_neurons(self.layers, self.gains, self.signals)
        return variances + seen + np.swapaxes(seen, 1, 2)

    def shift(self, own: np.ndarray) -> np.ndarray:
        """N (⟨C⟩ − C*) of all pairs from that of the single inputs, shape (L + 2, p)."""
        at, others, *_ = self.gains.places
        kept, of = self._distinct_inputs
        if len(kept) < own.shape[1]:
            alpha, beta = (of[members] for members in self.signals.pairs)
            return unpacked(self._of_inputs(kept).shift(own[:, kept]), True)[:, alpha, beta]
        found = np.empty((len(own), len(at) + len(others)))
        found[:, at] = own
        if len(others) == 1:
            # Of more pairs the sums over layers share what they are made of.
            allowed = max(tolerance(), PAIR_TOLERANCE)
            signals = self.signals
            shift = shift_of_covariance(signals.network, self.layers, signals.K, allowed)
            if shift is not None:
                found[:, others[0]] = np.append(0.0, shift)
                return found
        if len(others):
            layers, inputs = own.shape
            require_memory(
                f"mean_shift of {inputs} inputs",
                8 * _COPIES_OF_SLOPES * 9 * layers**2 * len(others),
                _FEWER,
            )
            kinds = (True,) if "G11" in vars(self) else (True, False)
            seconds = sum(pair_blocks.seconds_needed(self.signals, slopes) for slopes in kinds)
            orders = self.signals.count if self.signals.resolved else 0
            four_inputs.require_time(self.signals, "mean_shift", seconds, _FEWER, orders)
            found[:, others] = pair_shift.shift_of_covariances(
                self.layers, self.gains, self.signals, lambda: self._covariance_of_pairs, own
            )
        return found

    @property
    def _distinct_inputs(self) -> tuple[np.ndarray, np.ndarray]:
        """Inputs whose signals are not those of an earlier one, and which of them each is."""
        _, others, alpha, beta = self.gains.places
        size = self.signals.K.shape[-1]
        same = np.eye(size, dtype=bool)
        same[beta, alpha] = self.signals.same(others).all(axis=0)
        kept, of = np.unique(np.argmax(same, axis=1), return_inverse=True)
        return kept, of

    def _of_inputs(self, kept: np.ndarray) -> PairTheory:
        """That of some of the inputs, in their order."""
        _, _, alpha, beta = self.gains.places
        pairs = np.isin(alpha, kept) & np.isin(beta, kept)
        parts = (g[:, pairs] for g in (self.gains.pair, self.gains.first, self.gains.second))
        K, C = (kernel[:, kept][:, :, kept] for kernel in (self.signals.K, self.signals.C))
        return PairTheory(
            self.layers,
            PairGains(self.gains.own[:, kept], *parts),
            replace(self.signals, K=K, C=C),
        )

    @property
    def _covariance_of_pairs(self) -> np.ndarray:
        """N Cov(K_e, K_e') of e = αα, ββ, αβ for pairs α < β, shape (L + 1, 3, 3, P(P−1)/2)."""
        at, others, alpha, beta = self.gains.places
        if "G11" in vars(self):
            chosen = np.stack([at[alpha], at[beta], others])
            width = self.signals.network.width
            return width * self.kernel_covariance[:, chosen[:, None], chosen]
        order = [0, 2, 1]
        covariance = np.empty((len(self.signals.K), 3, 3, len(others)))
        try:
            found = pair_blocks.correlators(self.signals, others, "mean_shift, variances")
        except QuadratureError:
            # G11 has more ways, that take longer.
            for number, inputs in enumerate(zip(alpha, beta, strict=True)):
                two = self._of_inputs(np.array(inputs))
                blocks = two.signals.network.width * two.kernel_covariance
                covariance[..., number] = blocks[:, order][..., order]
            return covariance
        for number in range(len(others)):
            gains = self.gains.of_pair(number)
            S22 = np.transpose(found[..., number], (0, 2, 1, 3))[:, order][..., order]
            sources = pair_fluctuations.weighted(self.layers, S22)
            G11 = pair_fluctuations.kernel_covariance(self.layers, gains, sources, 1)
            blocks = pair_fluctuations.accumulated_covariance(self.layers, G11)
            covariance[..., number] = blocks[:, order][..., order]
        return covariance

    def _require_memory(self) -> None:
        inputs = self.gains.own.shape[1]
        entries = (len(self.layers.weights) * inputs * (inputs + 1) / 2) ** 2
        require_memory(
            f"G11 of {inputs} inputs",
            8 * _COPIES * entries,
            "use fewer inputs or layers, or ft.covariance_with(..., samples=10000), "
            "which contracts it with a matrix",
        )
