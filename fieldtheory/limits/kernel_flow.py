"""The flow equation of kernels and tangent kernels, integrated with its first step correction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from fieldtheory.compiling.functions import lambdify
from fieldtheory.networks.coefficients import UnitBranch, unit_branch
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.infinite_width.layer_functions import LayerFunctions, network_functions
from fieldtheory.numerics.pair_maps.pair_averages import PairFunctions, pair_functions
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

    entries: LayerFunctions
    branch: UnitBranch
    pairs: tuple[np.ndarray, np.ndarray]

    @cached_property
    def _averages(self) -> PairFunctions:
        return pair_functions(self.entries)

    def _own(self, K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(M, M') and (⟨φ'²⟩, its derivative) of the variances."""
        entries = self.entries
        M = np.stack([entries.second_moment(K), entries.susceptibility(K)])
        return M, np.stack([entries.slope_square(K), entries.slope_square_change(K)])

    def _pair(self, K: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """⟨φφ⟩ and ⟨φ'φ'⟩ of the pairs, each with its gradient by p, q and r."""
        averages = self._averages.covariance_flow(K, self.pairs, r)
        return np.stack(averages[:4]), np.stack(averages[3:])

    @np.errstate(all="ignore")
    def rates(self, state: np.ndarray, branch: UnitBranch | None = None) -> np.ndarray:
        """v, (2, P + pairs); with the variances of the readout, its kernels."""
        scales = np.sqrt(branch or self.branch)
        inputs = self._inputs(state)
        (K, r), (own, pair) = self._split(state[0]), self._split(state[1])
        values = self.entries.second_moment(K), self.entries.slope_square(K)
        rates = _entry(1).rates(*values, own, *scales)
        if inputs == state.shape[1]:
            return np.stack(rates)
        others = _entry(2).rates(*self._averages.covariance_gain(K, self.pairs, r), pair, *scales)
        return np.concatenate([np.stack(rates), np.stack(others)], axis=1)

    @np.errstate(all="ignore")
    def change_rates(
        self,
        state: np.ndarray,
        change: np.ndarray,
        step: float,
        branch: UnitBranch | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """v and the rate (Dv)(e − (h/2) v) of a change e, both (2, P + pairs)."""
        scales = np.sqrt(branch or self.branch)
        inputs = self._inputs(state)
        (K, r), (own, pair) = self._split(state[0]), self._split(state[1])
        A, B = self._own(K)
        rates = [np.stack(_entry(1).rates(A[0], B[0], own, *scales))]
        if inputs < state.shape[1]:
            A_pair, B_pair = self._pair(K, r)
            rates.append(np.stack(_entry(2).rates(A_pair[0], B_pair[0], pair, *scales)))
        v = np.concatenate(rates, axis=1)
        w = depth_flow.displacement(change, step, v)
        (w_K, w_r), (w_own, w_pair) = self._split(w[0]), self._split(w[1])
        # Gradients are infinite where inputs are opposite or vanish, and do not count there while
        # nothing moves.
        A, B = (np.where(w_K == 0, [values[0], 0 * w_K], values) for values in (A, B))
        change_rates = [np.stack(_entry(1).changes(A[1], *B, own, w_K, w_own, *scales))]
        if inputs < state.shape[1]:
            moves = np.stack([w_K[self.pairs[0]], w_K[self.pairs[1]], w_r])
            slopes = [np.where(moves == 0, 0.0, values[1:]) for values in (A_pair, B_pair)]
            arguments = [*slopes[0], B_pair[0], *slopes[1], pair, *moves, w_pair]
            change_rates.append(np.stack(_entry(2).changes(*arguments, *scales)))
        return v, np.concatenate(change_rates, axis=1)

    def _inputs(self, state: np.ndarray) -> int:
        return state.shape[1] - len(self.pairs[0])

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

    @property
    def size(self) -> int:
        """Number of variances and covariances."""
        return self.inputs + len(self._different[0])

    def packed(self, kernel: np.ndarray) -> np.ndarray:
        """The entries of a kernel of the same inputs, (size,)."""
        if kernel.ndim < 2:
            return kernel.ravel()
        return np.concatenate([np.diagonal(kernel), kernel[self._different]])

    def unpacked(self, entries: np.ndarray) -> np.ndarray:
        """The kernels of entries (..., size)."""
        if self.kernel.ndim < 2:
            return entries.reshape((*entries.shape[:-1], *self.kernel.shape))[()]
        own, pairs = entries[..., : self.inputs], entries[..., self.inputs :]
        # Rows of identical inputs.
        identical = self.kernel == np.diagonal(self.kernel)[:, None]
        kernels = np.where(identical & identical.T, own[..., None, :], 0.0)
        first, second = self._different
        kernels[..., first, second] = kernels[..., second, first] = pairs
        return kernels

    def flow(self, network: LayeredNetwork) -> Flow:
        """The flow of all entries."""
        return Flow(network_functions(network), unit_branch(network), self._different)
