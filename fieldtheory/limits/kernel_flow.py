"""The flow equation of kernels and tangent kernels, integrated with its first step correction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from fieldtheory.compiling.functions import lambdify
from fieldtheory.limits.layer_jets import Jets, Layer, layers_of
from fieldtheory.networks.family import DeepNetwork
from fieldtheory.theory import depth_flow
from fieldtheory.theory import notation as sym

RELATIVE = 1e-12
# Absolute tolerance, in √(K_αα K_ββ).
_ABSOLUTE = 1e-14


class Entry(NamedTuple):
    """`depth_flow.EntryFlow` as functions: rates and (Dv) w, each of the kernel and θ."""

    rates: Callable[..., list[np.ndarray]]
    changes: Callable[..., list[np.ndarray]]


@lru_cache
def _entry(inputs: int) -> Entry:
    flow, scales = depth_flow.entry_flow(inputs), [sym.WEIGHT, sym.BIAS]
    values = [flow.average[0], flow.gain[0], depth_flow.TANGENT]
    slopes = [*flow.average[1:], *flow.gain]
    return Entry(
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

    def _jets(self, K: np.ndarray, gradient: bool) -> list[tuple[Jets, Entry, slice]]:
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
