"""Order 1/N of a chain of Gram matrices, whatever its branches: one loop over the layers.

With X^(l) the Gram matrix of the stream and F(X) = γ² s(X) + C(X),

    X' = F(X),   V' = J V Jᵀ + B + W,   m' = J m + (1/2) F''(X) : V,   J = F'(X),

are its value for N → ∞, N times its covariance, and N times the shift of its mean. B is what the
units of a branch add, W the N units of the stream (Wick):

    W = C_αγ C_βδ + C_αδ C_βγ + γ² (s_αγ C_βδ + s_αδ C_βγ + s_βγ C_αδ + s_βδ C_αγ)

They start from X = K0, V = K_αγ K_βδ + K_αδ K_βγ, m = 0. A stream without its mean over the units
has N − 1 of them: m begins with −K0, and m' has −C in addition. `derive` has all of it in symbols.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from fieldtheory.averages.routes import SETTINGS, tolerance
from fieldtheory.numerics.infinite_width.mean_field import MeanField
from fieldtheory.numerics.memory import require_memory
from fieldtheory.numerics.symmetric_matrices import unpacked

# Arrays of the size of G11 that are held at once.
_COPIES = 4
# Recomputations with random roundings that tell the error of what cancels.
_ROUNDINGS = 3


class Chain(Protocol):
    """What one layer does with the p = P(P+1)/2 entries α <= β of the Gram matrix X.

    Jacobians are sparse or dense matrices (p, p), all quantities those of `fluctuations`.
    """

    @property
    def field(self) -> MeanField:
        """The network at infinite width."""

    @property
    def jumps(self) -> bool:
        """Whether derivatives diverge for parallel inputs."""

    @property
    def states(self) -> tuple[np.ndarray, np.ndarray]:
        """C^(l), shape (L + 2, p), and X^(l), (L + 1, p)."""

    @property
    def stream(self) -> np.ndarray:
        """s(X^(l)), (L + 1, p)."""

    @property
    def skips(self) -> np.ndarray:
        """γ_l² of the layers 0, ..., L."""

    @property
    def unit_covariances(self) -> np.ndarray:
        """B^(l), and what is left out of it, (2, L + 2, p, p)."""

    def jacobian(self, l: int) -> Any:
        """That of C^(l) by X^(l-1), l = 1, ..., L + 1."""

    def stream_jacobian(self, l: int) -> Any:
        """That of s(X^(l)), None where it is X^(l)."""

    def curvature(self, l: int, V: np.ndarray) -> np.ndarray:
        """C'':V/2 of C^(l) by X^(l-1)."""

    def stream_curvature(self, l: int, V: np.ndarray) -> Any:
        """s'':V/2 of s(X^(l))."""


class Covariances(NamedTuple):
    """Cov(C^(k), C^(l)), (L + 2, L + 2, p, p), and Cov(X^(k), X^(l)), (L + 1, L + 1, p, p)."""

    residual: np.ndarray
    stream: np.ndarray


@dataclass(frozen=True, eq=False)
class Fluctuations:
    """Covariances and mean shifts of the p entries of a chain."""

    chain: Chain

    def _branch(self, l: int, change: np.ndarray) -> np.ndarray:
        """The change of C^(l) with X^(l-1), shape (p, ...)."""
        return _along(self.chain.jacobian(l), change)

    def _reported(self, l: int, change: np.ndarray) -> np.ndarray:
        """That of R^(l) = s(X^(l))."""
        J = self.chain.stream_jacobian(l)
        return change if J is None else _along(J, change)

    def _carried(self, l: int, change: np.ndarray) -> np.ndarray:
        """That of γ_l² s(X^(l-1))."""
        return self.chain.skips[l] * self._reported(l - 1, change)

    # Sources.

    @cached_property
    def stream_sources(self) -> np.ndarray:
        """W^(l) of the units of the stream, shape (L + 1, p, p)."""
        C = unpacked(self.chain.states[0][:-1], True)
        before = C / 2
        before[1:] += self.chain.skips[1:, None, None] * unpacked(self.chain.stream[:-1], True)
        return self._wick(before, C)

    def _wick(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """A_αγ B_βδ + A_αδ B_βγ + A_βγ B_αδ + A_βδ B_αγ of matrices (l, P, P), (l, p, p)."""
        alpha, beta = np.triu_indices(A.shape[-1])
        total = np.zeros((len(A), len(alpha), len(alpha)))
        for one, other in ((A, B), (B, A)):
            total += one[:, alpha[:, None], alpha] * other[:, beta[:, None], beta]
            total += one[:, alpha[:, None], beta] * other[:, beta[:, None], alpha]
        return total

    # Recursions.

    @cached_property
    def variances(self) -> np.ndarray:
        """V^(l), N times the covariance of X^(l) with itself, shape (L + 1, p, p)."""
        V = self._variances(self.chain.unit_covariances[0], self.stream_sources)
        allowed = SETTINGS.pair_correlators_with_kinks
        self._require_digits("covariances", V, self._rounded, V, allowed)
        return V

    @cached_property
    def _rounded(self) -> list[np.ndarray]:
        """V^(l) in other roundings, of φ that jumps: F' and F'' diverge for parallel inputs."""
        if not self.chain.jumps:
            return []
        generator, sources = np.random.default_rng(0), self.chain.unit_covariances[0]
        chains = range(_ROUNDINGS)
        return [self._variances(sources, self.stream_sources, generator) for _ in chains]

    def _variances(
        self, B: np.ndarray, W: np.ndarray, rounding: np.random.Generator | None = None
    ) -> np.ndarray:
        V = np.empty_like(W)
        for l in range(len(V)):
            V[l] = B[l] + W[l]
            if l:
                half = self._carried(l, V[l - 1]) + self._branch(l, V[l - 1])
                V[l] += self._carried(l, half.T) + self._branch(l, half.T)
            if rounding:
                noise = np.finfo(float).eps * rounding.standard_normal(V[l].shape)
                V[l] *= 1 + noise + noise.T
        return V

    def _require_digits(
        self, what: str, found: np.ndarray, rounded: list[np.ndarray], sizes: Any, allowed: float
    ) -> None:
        """ValueError where layers differ by more than is allowed of the largest of their sizes."""
        largest = np.array([np.abs(size).max() for size in sizes])
        for other in rounded:
            error = np.array([np.abs(each).max() for each in other - found])
            with np.errstate(divide="ignore", invalid="ignore"):
                missed = np.max(np.where(error == 0, 0.0, error / largest))
            # Derivatives are infinite for parallel inputs.
            missed = np.nan_to_num(missed, nan=np.inf)
            if missed > max(tolerance(), allowed):
                raise ValueError(
                    "K0 must have no nearly parallel inputs, same or opposite, for order 1/N of "
                    f"blocks of φ with jumps, whose derivatives diverge: of {what} rounding "
                    f"leaves an error of {missed:.1g}, allowed is {allowed:g}; leave one input out"
                )

    @cached_property
    def stream_variances(self) -> np.ndarray:
        """N times the covariance of R^(l) with itself, shape (L + 1, p, p)."""
        moved = self._reported
        return np.array([moved(l, moved(l, V).T) for l, V in enumerate(self.variances)])

    @cached_property
    def stream_covariances(self) -> np.ndarray:
        """Cov(R^(k), R^(l)), (L + 1, L + 1, p, p)."""
        covariances = self.covariances.stream
        if self.chain.stream_jacobian(0) is None:
            return covariances
        for _ in range(2):
            # The second layer and pair, then, both exchanged, the first ones.
            changed = [
                self._reported(l, np.moveaxis(covariances[:, l], -1, 0))
                for l in range(len(covariances))
            ]
            covariances = np.moveaxis(np.array(changed), 1, 2)
        return covariances

    @cached_property
    def covariances(self) -> Covariances:
        """Those of all pairs of layers."""
        size, p = self.chain.unit_covariances.shape[1:3]
        needed = 8.0 * _COPIES * (size * p) ** 2
        require_memory(
            f"G11 of {self.chain.field.input_kernel.shape[-1]} inputs",
            needed,
            "use fewer inputs or layers",
        )
        N = self.chain.field.network.width
        B, V = self.chain.unit_covariances[0] / N, self.variances / N
        residual = _symmetric(self._residual(B, V), size, p)
        return Covariances(residual, _symmetric(self._stream(V), size - 1, p))

    @cached_property
    def missed_variances(self) -> np.ndarray:
        """Errors of `variances`, zero where they are exact."""
        left = self.chain.unit_covariances[1]
        if not left.any():
            return np.zeros_like(self.stream_sources)
        return self._variances(left, np.zeros_like(self.stream_sources))

    @cached_property
    def missed(self) -> np.ndarray:
        """Errors of Cov(C^(k), C^(l)), zero where it is exact."""
        left, N = self.chain.unit_covariances[1], self.chain.field.network.width
        errors = self._residual(left / N, self.missed_variances / N)
        return np.abs(_symmetric(errors, *left.shape[:2]))

    def _residual(self, B: np.ndarray, V: np.ndarray) -> Iterator[np.ndarray]:
        """Cov(C^(l), C^(k)) of the layers k <= l, (p, l + 1, p), for every l."""
        yield np.zeros_like(V[0])[:, None]
        with_C = np.zeros_like(V[0])[:, None]
        for l in range(1, len(B)):
            crossed = self._branch(l, V[l - 1]).T
            own = self._branch(l, crossed) + B[l]
            row = np.concatenate([self._branch(l, with_C), own[:, None]], axis=1)
            yield row
            if l < len(V):
                carried = self._carried(l, with_C), self._carried(l, crossed)[:, None]
                with_C = row + np.concatenate(carried, axis=1)

    def _stream(self, V: np.ndarray) -> Iterator[np.ndarray]:
        """Cov(X^(l), X^(k)) likewise."""
        row = V[0][:, None]
        yield row
        for l in range(1, len(V)):
            row = self._carried(l, row) + self._branch(l, row)
            row = np.concatenate([row, V[l][:, None]], axis=1)
            yield row

    @cached_property
    def shifts(self) -> tuple[np.ndarray, np.ndarray]:
        """N times the mean shifts of C^(l), (L + 2, p), and of R^(l), (L + 1, p)."""
        found, states = self._shifts(self.variances), self.chain.states
        others = [*map(self._shifts, self._rounded)]
        for k, (shift, sizes) in enumerate(zip(found, states, strict=True)):
            rounded, allowed = [each[k] for each in others], SETTINGS.pair_derivatives_with_kinks
            self._require_digits("mean shifts", shift, rounded, sizes, allowed)
        return found

    def _shifts(self, V: np.ndarray, start: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
        chain = self.chain
        C, _ = chain.states
        lost = start * getattr(chain.field.network, "centred", False)
        residual, reported = np.zeros_like(C), np.empty_like(C[:-1])
        m = -lost * C[0]
        for l in range(len(reported)):
            if l:
                m = chain.skips[l] * reported[l - 1] + residual[l] - lost * C[l]
            reported[l] = self._reported(l, m) + chain.stream_curvature(l, V[l])
            residual[l + 1] = self._branch(l + 1, m) + chain.curvature(l + 1, V[l])
        return residual, reported


def _along(J: Any, change: np.ndarray) -> np.ndarray:
    """A Jacobian times changes (p, ...)."""
    return np.asarray((J @ change.reshape(len(change), -1)).reshape(change.shape))


def _symmetric(rows: Iterable[np.ndarray], size: int, p: int) -> np.ndarray:
    """Covariances of all layers, (l, l, p, p), from those of layers with the ones before."""
    whole = np.zeros((size, size, p, p))
    for l, row in enumerate(rows):
        whole[l, : l + 1] = np.moveaxis(row, 1, 0)
        whole[:l, l] = np.swapaxes(whole[l, :l], 1, 2)
    return whole
