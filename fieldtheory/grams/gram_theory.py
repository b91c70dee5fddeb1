"""The chain of Gram matrices of wide networks: kernels, their derivatives, and the order 1/N.

With X^(l) the Gram matrix of the stream and F(X) = γ² s(X) + C(X), C(X) = a ⟨a a⟩_{Q(X)} + c,

    X' = F(X),   V' = J V Jᵀ + B + W,   m' = J m + (1/2) F''(X) : V,   J = F'(X),

are its value for N → ∞, N times its covariance, and N times the shift of its mean. B is what the M
hidden units of a branch add, W the N units of the stream (Wick):

    B = (N/M) a² ⟨a_α a_β ; a_γ a_δ⟩
    W = C_αγ C_βδ + C_αδ C_βγ + γ² (s_αγ C_βδ + s_αδ C_βγ + s_βγ C_αδ + s_βδ C_αγ)

They start from X = K0, V = K_αγ K_βδ + K_αδ K_βγ, m = 0. A stream without its mean over the units
has N − 1 of them: m begins with −K0, and m' has −C in addition. `derive` has all of it in symbols.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from fieldtheory.grams.entry_functions import Jet, entry_functions, product
from fieldtheory.networks.gram import GramNetwork
from fieldtheory.numerics.finite import require_finite
from fieldtheory.numerics.infinite_width import kernels
from fieldtheory.numerics.infinite_width.layer_functions import LayerFunctions, layer_functions
from fieldtheory.numerics.several_inputs.pair_curvatures import curvatures
from fieldtheory.numerics.several_inputs.pair_expansions import Signals
from fieldtheory.numerics.symmetric_matrices import assembled, packed


class Entries(NamedTuple):
    """Variances (..., P) and covariances (..., P(P−1)/2), or their `Jet`s."""

    own: Any
    pair: Any


@dataclass(frozen=True, eq=False)
class GramChain:
    """The Gram matrices of a network for given inputs, for N → ∞ and to order 1/N.

    Layers are on the first axis, batch axes behind it. The last axis counts the P inputs, their
    pairs α < β, or for fluctuations the p = P(P+1)/2 pairs of `np.triu_indices`.

    Parameters
    ----------
    network : GramNetwork
    input_kernel : ndarray, shape (..., P, P)
    """

    network: GramNetwork
    input_kernel: np.ndarray

    @cached_property
    def pairs(self) -> tuple[Any, ...]:
        """α and β of the pairs of different inputs."""
        return np.triu_indices(self.input_kernel.shape[-1], 1)

    @cached_property
    def inputs(self) -> Entries:
        """The entries of K0 with the batch axes of the network."""
        K0 = self.input_kernel
        shape = np.broadcast_shapes(self.network.batch_shape, K0.shape[:-2]) + K0.shape[-2:]
        K0 = np.broadcast_to(K0, shape)
        return Entries(np.diagonal(K0, axis1=-2, axis2=-1), K0[..., *self.pairs])

    @cached_property
    def functions(self) -> tuple[LayerFunctions, ...]:
        """Averages of the factors of the activity."""
        return tuple(layer_functions(factor) for factor in self.network.factors)

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """Parameters, those of layers as arrays (L, ..., 1)."""
        parameters, batch = self.network.of_layers(), self.inputs.own.ndim - 1
        for name in self.network.layer_parameters:
            values = parameters[name]
            new = (1,) * (batch + 1 - values.ndim)
            parameters[name] = values.reshape(len(values), *new, *values.shape[1:], 1)
        return parameters

    def _of_layer(self, l: int) -> dict[str, Any]:
        own = {name: self.parameters[name][l - 1] for name in self.network.layer_parameters}
        return self.parameters | own

    def packed(self, entries: Entries) -> np.ndarray:
        """All pairs α <= β, shape (..., p)."""
        return packed(assembled(entries.own, entries.pair, self.pairs))

    @property
    def is_stream(self) -> bool:
        """Whether the skip connection carries X itself."""
        jets = self.stream_jets
        slopes = (jets.own.gradient - 1).any(), (jets.pair.gradient[2] - 1).any()
        return not (any(slopes) or jets.pair.gradient[:2].any())

    def entries(
        self, name: str, X: Entries, values: Mapping[str, Any], order: int
    ) -> list[Entries]:
        """Functions of the entries of a layer: "stream", "read" or "signals"."""
        own, pair = (getattr(entry_functions(self.network, one), name) for one in (True, False))
        if name != "signals":
            own, pair = (own,), (pair,)
        of_pair = [X.own[..., members] for members in self.pairs] + [X.pair]
        return [
            Entries(one([X.own], values, order), other(of_pair, values, order))
            for one, other in zip(own, pair, strict=True)
        ]

    # Infinite width.

    @cached_property
    def states(self) -> tuple[Entries, Entries]:
        """C^(l) of L + 2 layers and X^(l) of L + 1 layers."""
        residual, streams = [self.inputs], [self.inputs]
        for l in range(1, self.network.depth + 1):
            X, values = streams[-1], self._of_layer(l)
            weight, bias, skip = self.network.layer(values)
            with np.errstate(invalid="ignore"):
                (carried,) = self.entries("stream", X, values, 0)
                signals = self.entries("signals", X, values, 0)
            if not all(np.isfinite(Q.own).all() for Q in signals):
                raise ValueError(
                    "K0 must have positive variances where a norm divides by them, got "
                    f"{self.inputs.own.min():.6g}; use epsilon > 0"
                )
            averages = self._averages(signals)
            C = Entries(*(weight * average + bias for average in averages))
            X = Entries(*(skip**2 * s + c for s, c in zip(carried, C, strict=True)))
            require_finite("the kernel", X.own, l)
            residual.append(C)
            streams.append(X)
        (read,) = self.entries("read", streams[-1], self.parameters, 0)
        weight, bias, _ = self.network.readout(self.parameters)
        residual.append(Entries(*(weight * r + bias for r in read)))
        return tuple(  # type: ignore[return-value]
            Entries(*map(np.array, zip(*layers, strict=True))) for layers in (residual, streams)
        )

    @cached_property
    def stream(self) -> Entries:
        """K^(l) of the L + 1 layers of the stream, as the skip connections carry it."""
        (stream,) = self.entries("stream", self.states[1], self.parameters, 0)
        return stream

    def _averages(self, signals: list[Entries]) -> Entries:
        """⟨a a⟩."""
        own, pair = np.ones_like(self.inputs.own), np.ones_like(self.inputs.pair)
        for functions, Q in zip(self.functions, signals, strict=True):
            own = own * functions.second_moment(Q.own)
            if pair.size:
                pair = pair * functions.covariance(*self.covariances(Q))
        return Entries(own, pair)

    def covariances(self, Q: Entries) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Variances and covariance of pairs, those that are parallel within rounding exactly so."""
        parallel = kernels.parallel_pairs(Q.own, Q.pair, self.pairs)
        joint = kernels.as_parallel(parallel, Q.own, Q.pair, self.pairs)
        first, second = (Q.own[..., members] for members in self.pairs)
        return first, second, joint

    # Derivatives of all layers.

    @cached_property
    def before(self) -> Entries:
        """X^(l) that the branches read, of the layers 0, ..., L − 1."""
        X = self.states[1]
        return Entries(X.own[:-1], X.pair[:-1])

    @cached_property
    def stream_jets(self) -> Entries:
        """`Jet`s of s(X) of L + 1 layers."""
        (stream,) = self.entries("stream", self.states[1], self.parameters, 2)
        return stream

    @cached_property
    def slopes(self) -> Entries:
        """`Jet`s of C^(l+1) by X^(l), of L + 1 layers, without second derivatives."""
        return self._branches(second=False)

    @cached_property
    def curved(self) -> Entries:
        """The same with second derivatives."""
        return self._branches(second=True)

    def _branches(self, second: bool) -> Entries:
        signals = self.entries("signals", self.before, self.parameters, 2)
        averages = [
            self._average_jets(functions, Q, second)
            for functions, Q in zip(self.functions, signals, strict=True)
        ]
        (read,) = self.entries("read", self.states[1], self.parameters, 2)
        weight, bias, _ = self.network.layer(self.parameters)
        readout = self.network.readout(self.parameters)
        return Entries(
            *(
                product([each[side] for each in averages])
                .scaled(weight, bias)
                .followed_by(read[side].scaled(readout.weight, readout.bias))
                for side in range(2)
            )
        )

    def _average_jets(self, functions: LayerFunctions, Q: Entries, second: bool) -> Entries:
        """`Jet`s of ⟨φφ⟩ by X, of a factor with the signals' `Jet`s Q."""
        variance = Q.own.value
        M = functions.second_moment(variance), functions.susceptibility(variance)
        curvature = functions.curvature(variance) if second else np.zeros_like(variance)
        own = Jet(M[0], M[1][None], curvature[None, None]).of([Q.own])
        a, b, t = self.covariances(Entries(variance, Q.pair.value))
        if not t.size:
            return Entries(own, Jet(t, np.zeros((3, *t.shape)), np.zeros((3, 3, *t.shape))))
        gradient = np.array(
            [
                functions.cross_susceptibility(a, b, t),
                functions.cross_susceptibility(b, a, t),
                functions.covariance_susceptibility(a, b, t),
            ]
        )
        hessian = np.zeros((3, *gradient.shape))
        if second:
            signals = self.signals(functions, variance, t)
            others = np.flatnonzero(np.not_equal(*signals.pairs))
            hessian = curvatures(signals, others, np.ones(t.shape, dtype=bool))
        # How the variances of a pair move with its three entries.
        variances = [_of_variance(Q.own, members, e) for e, members in enumerate(self.pairs)]
        return Entries(
            own, Jet(functions.covariance(a, b, t), gradient, hessian).of([*variances, Q.pair])
        )

    def require_angles(self) -> None:
        """ValueError for parallel inputs of φ with kinks, which see the root of the angle."""
        for functions, Q in zip(
            self.functions, self.entries("signals", self.before, self.parameters, 0), strict=True
        ):
            kinked = any(len(psi.kinks) for psi in functions.functions)
            if kinked and kernels.parallel_pairs(Q.own, Q.pair, self.pairs).any():
                raise ValueError(
                    "K0 must have no parallel inputs, same or opposite, for mean shifts of φ with "
                    "kinks; leave one of them out"
                )

    def signals(self, functions: LayerFunctions, own: np.ndarray, pair: np.ndarray) -> Signals:
        """Signals of hidden units in all layers, each a layer of its own."""
        K = assembled(own, pair, self.pairs)
        return Signals(functions.functions, K, K, np.zeros(len(K) - 1))


def _of_variance(own: Jet, members: np.ndarray, e: int) -> Jet:
    """A function of a variance X_αα or X_ββ of a pair (e = 0, 1) as one of its three entries."""
    value, slope, curvature = own.value[..., members], own.gradient[0], own.hessian[0, 0]
    gradient, hessian = np.zeros((3, *value.shape)), np.zeros((3, 3, *value.shape))
    gradient[e], hessian[e, e] = slope[..., members], curvature[..., members]
    return Jet(value, gradient, hessian)
