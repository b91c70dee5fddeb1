"""What a layer of any family adds to kernels and tangent kernels, with its gradients by the kernel.

A layer of one input or two has three averages, functions of the entries (K_xx, K_yy, K_xy):

    A, the covariance of its units;   B = ∂A/∂K_xy at fixed variances;   T = Σ_k (∂A/∂Q_k) Q_k,

T being what the weights within a branch add to the tangent kernel. A jet is an array: a value
alone, or with rows behind it for the gradient, by K of one input and by the entries of two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial, reduce
from typing import Any, NamedTuple

import numpy as np
import sympy as sp

from fieldtheory.compiling.functions import lambdify
from fieldtheory.networks.activations import as_activation
from fieldtheory.networks.coefficients import UnitBranch, unit_branch
from fieldtheory.networks.gram import GramEntry
from fieldtheory.numerics.infinite_width.block_functions import network_functions
from fieldtheory.numerics.infinite_width.layer_functions import LayerFunctions, layer_functions
from fieldtheory.numerics.pair_maps.pair_averages import pair_functions

_ENTRIES = (*sp.symbols("K_xx K_yy", positive=True), sp.Symbol("K_xy", real=True))


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
    """Units that are products of functions of signals with covariances Q_k(K).

    ``signals`` (K_xx, K_yy, K_xy) -> Q, its gradient, and that of ∂Q/∂K_xy, seven arrays, for every
    factor; ``trained`` says whether their weights are parameters.
    """

    functions: tuple[LayerFunctions, ...]
    signals: tuple[Callable[..., Any], ...]
    branch: UnitBranch
    trained: bool

    def own(self, K: np.ndarray, gradient: bool) -> Jets:
        """Of variances (P,)."""
        parts, rows = [], 1 + gradient
        for functions, signal in zip(self.functions, self.signals, strict=True):
            Q, *slopes = signal(K, K, K)
            # All three entries move.
            moved = np.stack([Q, sum(slopes[:3])]), np.stack([slopes[2], sum(slopes[3:])])
            averages = [functions.second_moment(Q), functions.slope_square(Q)]
            if gradient:
                of = functions.susceptibility, functions.slope_square_change
                averages = [
                    np.stack([a, f(Q) * moved[0][1]]) for a, f in zip(averages, of, strict=True)
                ]
            parts.append([np.reshape(jet, (-1, *K.shape))[:rows] for jet in (*averages, *moved)])
        return self._units(parts)

    def pair(self, K: np.ndarray, pairs: Any, r: np.ndarray, gradient: bool) -> Jets:
        """Of pairs of inputs with the covariances r (m,)."""
        parts, rows = [], 1 + 3 * gradient
        for functions, signal in zip(self.functions, self.signals, strict=True):
            own, (Q, *slopes) = signal(K, K, K), signal(K[pairs[0]], K[pairs[1]], r)
            averages = pair_functions(functions)
            if not gradient:
                a, b = (each[None] for each in averages.covariance_gain(own[0], pairs, Q))
            else:
                flow = np.stack(averages.covariance_flow(own[0], pairs, Q))
                moves = np.zeros((3, 3, len(r)))
                # Q_xx, Q_yy and Q_xy by K_xx, K_yy and K_xy.
                moves[[0, 1], [0, 1]] = sum(own[1:4])[np.stack(pairs)]
                moves[2] = slopes[:3]
                a, b = (
                    np.concatenate([jet[:1], np.einsum("qn,qkn->kn", jet[1:], moves)])
                    for jet in (flow[:4], flow[3:])
                )
            moved = np.stack([Q, *slopes[:3]]), np.stack(slopes[2:])
            parts.append([a, b, *(jet[:rows] for jet in moved)])
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
    if not network.markov:
        features = network_functions(network)
        return SignalLayer(features, unit_branch(network)), SignalLayer(features, readout), 0.0
    parameters = network.of_layer(1) | {"branch_scale": 1.0}
    branch = UnitBranch(*map(float, network.layer(parameters)[:2]))
    signals = [partial(signal, parameters) for signal in _signals(network)]
    functions = tuple(map(layer_functions, network.factors))
    linear = layer_functions(as_activation("linear"))
    hidden, damping = UnitLayer(functions, tuple(signals[:-1]), branch, True), 0.0
    if (carried := network.stream(GramEntry(*(2.0,) * 3), parameters)) != 2:
        if carried != 1:
            raise ValueError(
                "epsilon must be 0 behind the sum: the norms of all layers together make what they "
                "carry vanish as the depth grows"
            )
        damping = branch.weight * float(hidden.own(np.ones(1), False).A[0, 0]) + branch.bias
    return hidden, UnitLayer((linear,), (signals[-1],), readout, False), damping


@lru_cache(maxsize=64)
def _signals(network: Any) -> list[Callable[..., list[np.ndarray]]]:
    """The Q_k, and at last what the readout reads, of parameters and of K, as of `UnitLayer`."""
    symbols = {name: sp.Symbol(name, positive=True) for name in network.parameters}
    xx, yy, xy = _ENTRIES
    read = network.read(GramEntry(xy, xx, yy), symbols)

    def compiled(Q: Any) -> Callable[..., list[np.ndarray]]:
        entries = [Q, *map(Q.diff, _ENTRIES), *map(Q.diff(xy).diff, _ENTRIES)]
        names = sorted(map(str, Q.free_symbols.difference(_ENTRIES)))
        function = lambdify([*_ENTRIES, *(symbols[name] for name in names)], entries)

        def values(parameters: dict[str, Any], *K: np.ndarray) -> list[np.ndarray]:
            found = function(*K, *(parameters[name] for name in names))
            return [np.broadcast_to(each, np.shape(K[0])) for each in found]

        return values

    return [*map(compiled, network.signals(read, symbols)), compiled(read)]
