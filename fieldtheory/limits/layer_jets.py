"""What a layer of any family adds to kernels and tangent kernels, with its gradients by the kernel.

A layer of one input or two has three averages, functions of the entries (K_xx, K_yy, K_xy):

    A, the covariance of its units;   B = ∂A/∂K_xy at fixed variances;   T = Σ_k (∂A/∂Q_k) Q_k,

T being what the weights within a branch add to the tangent kernel. A jet is an array: a value
alone, or with rows behind it for the gradient, by K of one input and by the entries of two.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from fieldtheory.networks.coefficients import UnitBranch, unit_branch
from fieldtheory.networks.gram import GramEntry
from fieldtheory.numerics.infinite_width.block_functions import (
    BlockFunctions,
    Entry,
    network_functions,
)
from fieldtheory.numerics.infinite_width.layer_functions import LayerFunctions
from fieldtheory.numerics.pair_maps.pair_averages import pair_functions

# The places of Q, of its gradient and of that of ∂Q/∂K_xy in what `Entry.pair` gives.
_VALUE, _GRADIENT, _SLOPE, _SLOPES = 0, slice(1, 4), 3, slice(10, 13)


class Jets(NamedTuple):
    """A, B and T, each (1, n) or with its gradient (2, n) or (4, n)."""

    A: np.ndarray
    B: np.ndarray
    T: np.ndarray


@dataclass(frozen=True, eq=False)
class SignalLayer:
    """Units that are features ψ(h) of the stream itself; they add a A + c, the branch for ρ = 1."""

    functions: LayerFunctions
    branch: UnitBranch

    def own(self, K: np.ndarray, gradient: bool) -> Jets:
        """Of variances (P,)."""
        functions, rows = self.functions, 1 + gradient
        A = [functions.second_moment, functions.susceptibility][:rows]
        B = [functions.slope_square, functions.slope_square_change][:rows]
        return Jets(np.stack([f(K) for f in A]), np.stack([f(K) for f in B]), np.zeros((rows, 1)))

    def pair(self, K: np.ndarray, pairs: Any, r: np.ndarray, gradient: bool) -> Jets:
        """Of pairs of inputs with the covariances r (m,)."""
        averages = pair_functions(self.functions)
        if not gradient:
            A, B = averages.covariance_gain(K, pairs, r)
            return Jets(A[None], B[None], np.zeros((1, 1)))
        flow = np.stack(averages.covariance_flow(K, pairs, r))
        return Jets(flow[:4], flow[3:], np.zeros((4, 1)))


@dataclass(frozen=True, eq=False)
class UnitLayer:
    """Units that are products of features of signals with covariances Q_k(K).

    ``trained`` says whether there are weights between the stream and the signals.
    """

    functions: tuple[LayerFunctions, ...]
    signals: tuple[Entry, ...]
    branch: UnitBranch
    trained: bool

    def own(self, K: np.ndarray, gradient: bool) -> Jets:
        """Of variances (P,)."""
        parts = []
        for functions, signal in zip(self.functions, self.signals, strict=True):
            entries = signal.pair(K, K, K, order=1 + gradient)
            Q, slope = entries[_VALUE], entries[_SLOPE]
            averages = [functions.second_moment(Q)], [functions.slope_square(Q)], [Q], [slope]
            if gradient:
                # All three entries move.
                moved, bent = sum(entries[_GRADIENT]), sum(entries[_SLOPES])
                by_K = functions.susceptibility(Q) * moved, functions.slope_square_change(Q) * moved
                for jet, row in zip(averages, (*by_K, moved, bent), strict=True):
                    jet.append(row)
            parts.append([np.stack(jet) for jet in averages])
        return self._units(parts)

    def pair(self, K: np.ndarray, pairs: Any, r: np.ndarray, gradient: bool) -> Jets:
        """Of pairs of inputs with the covariances r (m,)."""
        parts = []
        for functions, signal in zip(self.functions, self.signals, strict=True):
            own, averages = signal.own(K, int(gradient)), pair_functions(functions)
            entries = signal.pair(K[pairs[0]], K[pairs[1]], r, order=1 + gradient)
            Q, slope = entries[_VALUE], entries[_SLOPE]
            if not gradient:
                each = (*averages.covariance_gain(own[0], pairs, Q), Q, slope)
                parts.append([jet[None] for jet in each])
                continue
            flow = np.stack(averages.covariance_flow(own[0], pairs, Q))
            moves = np.zeros((3, 3, len(r)))
            # Q_xx, Q_yy and Q_xy by K_xx, K_yy and K_xy.
            moves[[0, 1], [0, 1]] = own[1][np.stack(pairs)]
            moves[2] = entries[_GRADIENT]
            a, b = (
                np.concatenate([jet[:1], np.einsum("qn,qkn->kn", jet[1:], moves)])
                for jet in (flow[:4], flow[3:])
            )
            moved = np.stack([Q, *entries[_GRADIENT]]), np.stack([slope, *entries[_SLOPES]])
            parts.append([a, b, *moved])
        return self._units(parts)

    def _units(self, parts: list[Any]) -> Jets:
        """The averages of products, from (⟨φφ⟩, ⟨φ'φ'⟩, Q, ∂Q/∂K_xy) of the factors."""
        A = reduce(_times, [part[0] for part in parts])
        B, T = np.zeros_like(A), np.zeros_like(A)
        for k, (_, slope, Q, moved) in enumerate(parts):
            others = [part[0] for part in parts[:k] + parts[k + 1 :]]
            slope = reduce(_times, others, slope)
            B = B + _times(slope, moved)
            T = T + _times(slope, Q) if self.trained else T
        return Jets(A, B, T)


def _times(f: np.ndarray, g: np.ndarray) -> np.ndarray:
    """The jet of a product."""
    return np.concatenate([f[:1] * g[:1], f[:1] * g[1:] + f[1:] * g[:1]])


Layer = SignalLayer | UnitLayer


def layers_of(network: Any) -> tuple[Layer, Layer, float]:
    """A hidden layer of a network for ρ = 1, its readout, and what a norm behind the sum damps."""
    readout = UnitBranch(*map(float, network.readout(network.parameters)[:2]))
    functions = network_functions(network, 1)
    if not isinstance(functions, BlockFunctions):
        return SignalLayer(functions, unit_branch(network)), SignalLayer(functions, readout), 0.0
    parameters = network.of_layer(1) | {"branch_scale": 1.0}
    branch, block = UnitBranch(*map(float, network.layer(parameters)[:2])), functions.layer(1)
    hidden, damping = UnitLayer(block.factors, block.signals, branch, True), 0.0
    if (carried := network.stream(GramEntry(*(2.0,) * 3), parameters)) != 2:
        if carried != 1:
            raise ValueError(
                "epsilon must be 0 behind the sum: the norms of all layers together make what they "
                "carry vanish as the depth grows"
            )
        damping = branch.weight * float(hidden.own(np.ones(1), False).A[0, 0]) + branch.bias
    linear = functions.readout
    return hidden, UnitLayer(linear.factors, linear.signals, readout, False), damping
