"""The flow equation of kernels and tangent kernels, integrated with its first step correction.

A layer of one input or two has three averages, functions of the entries (K_xx, K_yy, K_xy):

    A, the covariance of its units;   B = ∂A/∂K_xy at fixed variances;   T = Σ_k (∂A/∂Q_k) Q_k,

T being what the weights within a branch add to the tangent kernel. A jet is an array: a value
alone, or with rows behind it for the gradient, by K of one input and by the entries of two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from typing import Any, NamedTuple

import numpy as np

from fieldtheory.compiling.functions import lambdify
from fieldtheory.networks.coefficients import UnitBranch, unit_branch
from fieldtheory.networks.family import DeepNetwork
from fieldtheory.networks.gram import GramEntry
from fieldtheory.numerics.infinite_width.block_functions import (
    BlockFunctions,
    Entry,
    network_functions,
)
from fieldtheory.numerics.infinite_width.layer_functions import LayerFunctions
from fieldtheory.numerics.pair_maps.pair_averages import pair_functions
from fieldtheory.theory import depth_flow
from fieldtheory.theory import notation as sym

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


RELATIVE = 1e-12
# Absolute tolerance, in √(K_αα K_ββ).
_ABSOLUTE = 1e-14


class EntryRates(NamedTuple):
    """`depth_flow.EntryFlow` as functions: rates and (Dv) w, each of the kernel and θ."""

    rates: Callable[..., list[np.ndarray]]
    changes: Callable[..., list[np.ndarray]]


@lru_cache
def _entry(inputs: int) -> EntryRates:
    flow, scales = depth_flow.entry_flow(inputs), [sym.WEIGHT, sym.BIAS]
    values = [flow.average[0], flow.gain[0], depth_flow.TANGENT]
    slopes = [*flow.average[1:], *flow.gain]
    return EntryRates(
        lambdify([*values, *scales], flow.rates),
        lambdify([*slopes, depth_flow.TANGENT, *flow.moves, *scales], flow.changes),
    )


@dataclass(frozen=True, eq=False)
class Flow:
    """The flow of P variances and of the covariances of pairs of them."""

    # A state (2, P + pairs) is the kernel and the tangent kernel, each of the variances and behind
    # them of the pairs, whose inputs are ``pairs``.
    layer: Layer
    pairs: tuple[np.ndarray, np.ndarray]

    # c of a norm behind the sum: a step h becomes h/(1 + h c) in the direction v − c y.
    damping: float = 0.0

    def _jets(self, K: np.ndarray, gradient: bool) -> list[tuple[Jets, EntryRates, slice]]:
        """Averages of the variances, and of the pairs, with their formulas and places."""
        own, pair = self._split(K)
        jets = [(self.layer.own(own, gradient), _entry(1), slice(len(own)))]
        if len(pair):
            of_pairs = self.layer.pair(own, self.pairs, pair, gradient)
            jets.append((of_pairs, _entry(2), slice(len(own), None)))
        return jets

    @np.errstate(all="ignore")
    def rates(self, state: np.ndarray, jets: Any = None) -> np.ndarray:
        """v, (2, P + pairs)."""
        rates, scales = np.empty_like(state), np.sqrt(self.layer.branch)
        for (A, B, T), entry, at in jets or self._jets(state[0], False):
            # θ grows by T in addition.
            both = entry.rates(np.stack([A[0], (A + T)[0]]), B[0], state[1, at], *scales)
            rates[:, at] = both[0][0], both[1][1]
        return rates - self.damping * state

    @np.errstate(all="ignore")
    def change_rates(
        self, state: np.ndarray, change: np.ndarray, step: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """v and the rate (Dv)(e − (h/2) v) − h c v of a change e, both (2, P + pairs)."""
        jets, rates, scales = (
            self._jets(state[0], True),
            np.empty_like(state),
            np.sqrt(self.layer.branch),
        )
        v = self.rates(state, jets)
        w = depth_flow.displacement(change, step, v)
        own, _ = self._split(w[0])
        for (A, B, T), entry, at in jets:
            moves = w[:1, at]
            if len(A) > 2:
                moves = np.stack([own[self.pairs[0]], own[self.pairs[1]], *moves])
            # Gradients are infinite where inputs are opposite or vanish, and do not count there
            # while nothing moves.
            still = moves == 0
            of_A, of_T, of_B = (np.where(still, 0.0, jet[1:]) for jet in (A, A + T, B))
            both = np.stack([of_A, of_T], axis=1)
            moved = entry.changes(*both, B[0], *of_B, state[1, at], *moves, w[1, at], *scales)
            rates[:, at] = moved[0][0], moved[1][1]
        return v, rates - self.damping * (w + step * v)

    def _split(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        inputs = len(values) - len(self.pairs[0])
        return values[:inputs], values[inputs:]

    def size(self, state: np.ndarray) -> np.ndarray:
        """√(K_αα K_ββ) of every entry, (P + pairs,)."""
        K, _ = self._split(state[0])
        return np.concatenate([K, np.sqrt(K[self.pairs[0]] * K[self.pairs[1]])])


def followed(
    flow: Flow,
    state: np.ndarray,
    change: np.ndarray | None,
    start: float,
    end: float,
    speed: Callable[[float], float],
    step: Callable[[float], float],
) -> tuple[np.ndarray, np.ndarray | None]:
    """The state at a later time, and its first change by steps if that is asked for."""
    from scipy.integrate import solve_ivp

    # dy/dt = λ²(t) v(y),   de/dt = λ²(t) (Dv)(e − (h(t)/2) v). Where gradients are infinite at the
    # start, steps of one length are best followed in e + (h/2) v, which starts with e = (h/2) v.
    if start == end:
        return state, change
    shape, reached = state.shape, start

    def rate(t: float, flat: np.ndarray) -> np.ndarray:
        nonlocal reached
        if change is None:
            solution = speed(t) * flow.rates(flat.reshape(shape))
        else:
            y, own = flat.reshape(2, *shape)
            v, change_rate = flow.change_rates(y, own, step(t))
            solution = speed(t) * np.stack([v, change_rate])
        if not np.isfinite(solution).all():
            raise ArithmeticError(_failed(reached, "its rate is not finite there"))
        reached = t
        return solution.ravel()

    # What starts from 0 is as large as it grows.
    size = flow.size(state + (end - start) * speed(start) * np.abs(flow.rates(state)))
    size = np.maximum(size, size.max() * _ABSOLUTE) + np.finfo(float).tiny
    parts = state if change is None else np.stack([state, change])
    absolute = np.broadcast_to(_ABSOLUTE * size, parts.shape).ravel()
    with np.errstate(all="ignore"):
        solution = solve_ivp(
            rate, (start, end), parts.ravel(), "DOP853", [end], rtol=RELATIVE, atol=absolute
        )
    if not solution.success:
        raise ArithmeticError(
            _failed(reached, "it grows beyond all bounds there, or is not smooth")
        )
    result = solution.y[:, -1].reshape(parts.shape)
    return (result, None) if change is None else (result[0], result[1])


def _failed(t: float, reason: str) -> str:
    return f"the limit of the kernel was followed up to the time {t:.6g} only: {reason}"


@dataclass(frozen=True, eq=False)
class PairLayout:
    """The variances of a kernel and the covariances of different inputs, one after the other.

    Examples
    --------
    >>> layout = PairLayout(np.array([[1.0, 0.2, 1.0], [0.2, 2.0, 0.2], [1.0, 0.2, 1.0]]))
    >>> layout.packed(layout.kernel)
    array([1. , 2. , 1. , 0.2, 0.2])
    """

    kernel: np.ndarray

    @property
    def inputs(self) -> int:
        """P."""
        return len(self.kernel) if self.kernel.ndim == 2 else self.kernel.size

    @cached_property
    def _different(self) -> tuple[np.ndarray, np.ndarray]:
        if self.kernel.ndim < 2:
            return np.zeros(0, dtype=int), np.zeros(0, dtype=int)
        first, second = np.triu_indices(self.inputs, 1)
        own = np.diagonal(self.kernel)
        covariance = self.kernel[first, second]
        parted = (own[first] != covariance) | (own[second] != covariance)
        return first[parted], second[parted]

    def packed(self, kernel: np.ndarray) -> np.ndarray:
        """The entries of a kernel of the same inputs, variances first."""
        if kernel.ndim < 2:
            return kernel.ravel()
        return np.concatenate([np.diagonal(kernel), kernel[self._different]])

    def unpacked(self, entries: np.ndarray) -> np.ndarray:
        """The kernels of entries (..., n)."""
        if self.kernel.ndim < 2:
            return entries.reshape((*entries.shape[:-1], *self.kernel.shape))[()]
        own, pairs = entries[..., : self.inputs], entries[..., self.inputs :]
        # Rows of identical inputs.
        identical = self.kernel == np.diagonal(self.kernel)[:, None]
        kernels = np.where(identical & identical.T, own[..., None, :], 0.0)
        first, second = self._different
        kernels[..., first, second] = kernels[..., second, first] = pairs
        return kernels

    def flows(self, network: DeepNetwork) -> tuple[Flow, Flow]:
        """The flow of all entries, and what the readout makes of them."""
        hidden, readout, damping = layers_of(network)
        return Flow(hidden, self._different, damping), Flow(readout, self._different)
