r"""Responses of kernels after P ~ N labels: derivatives of the tilted saddle point.

Entries of K0 of inputs that are moved after training change no equation of the inputs with labels,
so that the tilt stays. Given the labelled rows f of a path, those of an input α are Gaussian with

    ⟨f_α^(l)⟩ = C_α C⁻¹ f^(l),   C⁻¹ and C_α of the labelled inputs,

also under the tilt. The entry of two inputs moves the covariance of their rows and nothing else.
Price's theorem in these rows gives, with v^(l) = ∂C_αβ^(l)/∂K_αβ^(0), V^(l) = γ_l² V^(l-1) + v^(l),

    v^(l+1) = a_{l+1} ⟨φ'_α φ'_β⟩ V^(l),   averages over tilted paths.

A variance also moves the covariances with labelled inputs, r_γ^(l) = ∂C_αγ^(l)/∂K_αα^(0). With
D^(l) = γ_l D^(l-1) + r^(l) C⁻¹ f^(l) and S^(l) = γ_l² S^(l-1) + v^(l) − 2 r^(l) C⁻¹ C_α,

    v^(l+1) = a_{l+1} [2 ⟨φ_α φ'_α D⟩ + ⟨φ'_α² + φ_α φ''_α⟩ S],
    r_γ^(l+1) = a_{l+1} [⟨φ'_α φ_γ D⟩ + ½ ⟨φ''_α φ_γ⟩ S].

Labelled inputs count as further inputs at the same places. Kernels of linear φ are affine in the
entries of inputs without labels, and no averages are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fieldtheory.inference.tilted_paths import Neuron, Pace
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.infinite_width.block_functions import network_functions

# Moves to a used one: paths in between are much the same, and φ'' takes as long as a move.
_EVERY = 3


def second_derivatives(network: LayeredNetwork) -> list[Callable[[Any], Any]]:
    """φ'' of the parts of φ; ValueError where it is a δ-function."""
    functions = network_functions(network).functions
    if any(len(psi.slope.jumping) for psi in functions):
        raise ValueError(
            "responses of the tilted posterior need φ with a continuous slope, got "
            f"{network.activation.name}; posterior has them to order 1/N"
        )
    return [psi.slope.slope for psi in functions]


class Responses:
    """v of one run, averaged as its kernels are: ``residual``, shape (L+2, Q, Q)."""

    def __init__(
        self, neuron: Neuron, second: Sequence[Callable[[Any], Any]], inputs: int, pace: Pace
    ) -> None:
        self.neuron, self.second, self.pace = neuron, second, pace
        self._used = range(0, pace.moves, _EVERY)
        self.residual = np.zeros((len(neuron.a), inputs, inputs))
        self._now, self._labelled = 0 * self.residual, 0 * self.residual[..., : len(neuron.Y)]
        self._now[0] = 1.0

    def move(
        self, step: int, x: np.ndarray, roots: Sequence[Any], inverses: Sequence[Any], C: np.ndarray
    ) -> None:
        """Go on to the averages over the paths ξ (L+1, Q, n) of a move, at kernels C."""
        if step not in self._used:
            return
        neuron, P, each = self.neuron, len(self.neuron.Y), np.arange(len(C[0]))
        residual, near = 0 * self._now, 0 * self._labelled
        residual[0] = 1.0
        V, S, D = np.zeros_like(C[0]), np.zeros(len(each)), np.zeros_like(x[0])
        for l, h in enumerate(neuron.paths(x, roots)):
            gamma = neuron.skips[l - 1] if l else 0.0
            pull = self._labelled[l] @ inverses[l]
            explained = np.sum(pull * (C[l][:, :P] @ inverses[l]), axis=1)
            V = gamma**2 * V + self._now[l]
            S = gamma**2 * S + np.diagonal(self._now[l]) - 2 * explained
            D = gamma * D + pull @ x[l, :P]
            functions = zip(neuron.psi(h), neuron.slopes(h), self.second, strict=True)
            for f, slope, second in functions:
                curved, shifted = second(h), slope * D
                own = 2 * np.sum(f * shifted, axis=1) + np.sum(slope**2 + f * curved, axis=1) * S
                pairs = slope @ slope.T * V
                pairs[each, each] = own
                residual[l + 1] += neuron.a[l + 1] / x.shape[-1] * pairs
                near[l + 1] += (
                    neuron.a[l + 1] / x.shape[-1] * (shifted + curved * S[:, None] / 2) @ f[:P].T
                )
        # From the first paths on, which are those of the prior; nothing acts back on them.
        part = self.pace.of_tilts if step > _EVERY * len(x) else 1.0
        self._now += part * (residual - self._now)
        self._labelled += part * (near - self._labelled)
        if step >= self.pace.left_out:
            self.residual += self._now / sum(each >= self.pace.left_out for each in self._used)
