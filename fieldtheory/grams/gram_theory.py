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

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fieldtheory.grams.entry_functions import Jet, Pairs, entry_functions, product
from fieldtheory.networks.coefficients import of_layers
from fieldtheory.networks.gram import GramNetwork
from fieldtheory.numerics.infinite_width import kernels
from fieldtheory.numerics.infinite_width.layer_functions import LayerFunctions, layer_functions
from fieldtheory.numerics.recursion import require_finite
from fieldtheory.numerics.several_inputs.pair_curvatures import curvatures
from fieldtheory.numerics.several_inputs.pair_expansions import Signals
from fieldtheory.numerics.symmetric_matrices import unpacked


@dataclass(frozen=True, eq=False)
class GramChain:
    """The Gram matrices of a network for given inputs, for N → ∞ and to order 1/N.

    Layers are on the first axis, batch axes behind it, on the last one the p = P(P+1)/2 entries
    α <= β in the order of `np.triu_indices`.

    Parameters
    ----------
    network : GramNetwork
    input_kernel : ndarray, shape (..., P, P)
    """

    network: GramNetwork
    input_kernel: np.ndarray

    @cached_property
    def pairs(self) -> Pairs:
        """The pairs of inputs."""
        return Pairs.of(self.input_kernel.shape[-1])

    @cached_property
    def inputs(self) -> np.ndarray:
        """The entries of K0 with the batch axes of the network."""
        K0 = self.input_kernel
        batch = np.broadcast_shapes(self.network.batch_shape, K0.shape[:-2])
        K0 = K0[..., self.pairs.alpha, self.pairs.beta]
        return np.broadcast_to(K0, (*batch, K0.shape[-1]))

    @cached_property
    def functions(self) -> tuple[LayerFunctions, ...]:
        """Averages of the factors of the activity."""
        return tuple(layer_functions(factor) for factor in self.network.factors)

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """Parameters, those of layers as arrays (L, ..., 1)."""
        (parameters, _), batch = of_layers(self.network), self.inputs.ndim - 1
        for name in self.network.layer_parameters:
            values = parameters[name]
            new = (1,) * (batch + 1 - values.ndim)
            parameters[name] = values.reshape(len(values), *new, *values.shape[1:], 1)
        return parameters

    @cached_property
    def skips(self) -> np.ndarray:
        """γ_l² of the layers 1, ..., L, shape (L, ..., 1)."""
        skip = np.asarray(self.network.layer(self.parameters).skip)
        return np.broadcast_to(skip**2, (self.network.depth, *skip.shape[1:]))

    def entries(self, name: str, X: np.ndarray, order: int, layer: int | None = None) -> Any:
        """A function of the entries of all layers or of one; see `entry_functions`."""
        values = self.parameters
        if layer is not None:
            own = {each: values[each][layer - 1] for each in self.network.layer_parameters}
            values = values | own
        return entry_functions(self.network)[name](X, values, self.pairs, order)

    def signals(self, X: np.ndarray, order: int, layer: int | None = None) -> list[Any]:
        """The Q_k."""
        names = (f"signals_{k}" for k in range(len(self.functions)))
        return [self.entries(name, X, order, layer) for name in names]

    # Infinite width.

    @cached_property
    def states(self) -> tuple[np.ndarray, np.ndarray]:
        """C^(l), shape (L + 2, ..., p), and X^(l), (L + 1, ..., p)."""
        depth, network = self.network.depth, self.network
        C, X = (np.empty((size, *self.inputs.shape)) for size in (depth + 2, depth + 1))
        C[0] = X[0] = self.inputs
        coefficients = network.layer(self.parameters)
        weights, biases = (np.broadcast_to(each, self.skips.shape) for each in coefficients[:2])
        for l in range(1, depth + 1):
            with np.errstate(invalid="ignore"):
                carried = self.entries("stream", X[l - 1], 0, l)
                Q = self.signals(X[l - 1], 0, l)
            require_norms(self.inputs[..., self.pairs.own], Q)
            average = np.prod([*map(self.average, self.functions, Q)], axis=0)
            C[l] = weights[l - 1] * average + biases[l - 1]
            X[l] = self.skips[l - 1] * carried + C[l]
            require_finite("the kernel", X[l], l)
        readout = network.readout(self.parameters)
        C[-1] = readout.weight * self.entries("read", X[-1], 0) + readout.bias
        return C, X

    @cached_property
    def stream(self) -> np.ndarray:
        """K^(l) of the L + 1 layers of the stream, as the skip connections carry it."""
        return np.asarray(self.entries("stream", self.states[1], 0))

    def average(self, functions: LayerFunctions, Q: np.ndarray) -> np.ndarray:
        """⟨φφ⟩ of signals with the covariances Q (..., p)."""
        return self._of_both(functions.second_moment, functions.covariance, Q)

    def slope(self, functions: LayerFunctions, Q: np.ndarray) -> np.ndarray:
        """⟨φ'φ'⟩."""
        return self._of_both(functions.slope_square, functions.covariance_susceptibility, Q)

    def _of_both(self, one: Callable[..., Any], two: Callable[..., Any], Q: np.ndarray) -> Any:
        """A function of variances, and of the variances and the covariance of pairs."""
        values = np.empty(Q.shape)
        values[..., self.pairs.own] = one(Q[..., self.pairs.own])
        if len(self.pairs.others):
            values[..., self.pairs.others] = two(*self.covariances(Q))
        return values

    def covariances(self, Q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Variances and covariance of pairs, those that are parallel within rounding exactly so."""
        at = self.pairs
        own, joint = Q[..., at.own], Q[..., at.others]
        members = at.alpha[at.others], at.beta[at.others]
        parallel = kernels.parallel_pairs(own, joint, members)
        joint = kernels.as_parallel(parallel, own, joint, members)
        return own[..., members[0]], own[..., members[1]], joint

    # Derivatives of all layers.

    @cached_property
    def stream_jet(self) -> Jet:
        """s(X^(l)) of L + 1 layers."""
        jet: Jet = self.entries("stream", self.states[1], 2)
        return jet

    @cached_property
    def is_stream(self) -> bool:
        """Whether the skip connection carries X itself."""
        jet = self.stream_jet
        return not ((jet.gradient[2] - 1).any() or jet.gradient[:2].any())

    @cached_property
    def slopes(self) -> Jet:
        """C^(l+1) by X^(l), of L + 1 layers, without second derivatives."""
        return self._branches(second=False)

    @cached_property
    def curved(self) -> Jet:
        """The same with second derivatives."""
        return self._branches(second=True)

    def _branches(self, second: bool) -> Jet:
        X = self.states[1]
        averages = [
            self._average_jet(functions, Q.value, second).of(Q, self.pairs)
            for functions, Q in zip(self.functions, self.signals(X[:-1], 2), strict=True)
        ]
        layers = product(averages).scaled(*self.network.layer(self.parameters)[:2])
        read: Jet = self.entries("read", X, 2)
        return layers.followed_by(read.scaled(*self.network.readout(self.parameters)[:2]))

    def _average_jet(self, functions: LayerFunctions, Q: np.ndarray, second: bool) -> Jet:
        """⟨φφ⟩ by Q."""
        own, others = self.pairs.own, self.pairs.others
        gradient, hessian = np.zeros((3, *Q.shape)), np.zeros((3, 3, *Q.shape))
        variance = Q[..., own]
        gradient[2][..., own] = functions.susceptibility(variance)
        if second:
            hessian[2, 2][..., own] = functions.curvature(variance)
        if len(others):
            a, b, t = self.covariances(Q)
            gradient[0][..., others] = functions.cross_susceptibility(a, b, t)
            gradient[1][..., others] = functions.cross_susceptibility(b, a, t)
            gradient[2][..., others] = functions.covariance_susceptibility(a, b, t)
        if second and len(others):
            signals = self.signals_of(functions, Q)
            self._require_angles(signals)
            used = np.ones(t.shape, dtype=bool)
            hessian[..., others] = curvatures(signals, others, used)
        return Jet(self.average(functions, Q), gradient, hessian)

    def _require_angles(self, signals: Signals) -> None:
        """ValueError for parallel inputs of φ with kinks, which see the root of the angle."""
        parallel = signals.R[1, 1][:, self.pairs.others] == 0
        if parallel.any() and not signals.smooth:
            raise ValueError(
                "K0 must have no parallel inputs, same or opposite, for mean shifts of φ with "
                "kinks; leave one of them out"
            )

    def signals_of(self, functions: LayerFunctions, Q: np.ndarray) -> Signals:
        """Signals of hidden units in all layers, each a layer of its own."""
        K = unpacked(Q, True)
        members = self.pairs.alpha[self.pairs.others], self.pairs.beta[self.pairs.others]
        if len(members[0]):
            K[:, *members] = K[:, *members[::-1]] = self.covariances(Q)[2]
        return Signals(functions.functions, K, K, np.zeros(len(K) - 1))


def require_norms(variances: np.ndarray, normalized: Any) -> None:
    """ValueError if a norm divides by a variance of zero."""
    if not np.isfinite(normalized).all():
        raise ValueError(
            "K0 must have positive variances where a norm divides by them, got "
            f"{variances.min():.6g}; use epsilon > 0"
        )
