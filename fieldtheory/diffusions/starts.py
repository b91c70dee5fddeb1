"""The layer x_0 of wide networks, and averages over its neurons.

Averages of functions that are analytic in x_0 do not need every neuron: the functions are those of
Chebyshev polynomials through a few nodes, and the average of two polynomials over the neurons is
taken once, E[f(x_i) g(x_j)] = Σ_uv f(ξ_u) W_uv^ij g(ξ_v).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations_with_replacement

import numpy as np
from numpy.polynomial import chebyshev

from fieldtheory.diffusions.diffusion_settings import SETTINGS


@dataclass(frozen=True, eq=False)
class Starts:
    """The layer x_0 of P inputs: different neurons (u, P), and the part of all that is as each."""

    values: np.ndarray
    shares: np.ndarray

    @cached_property
    def mean(self) -> np.ndarray:
        """(P,)."""
        return self.shares @ self.values

    @cached_property
    def second(self) -> np.ndarray:
        """⟨x_i x_j⟩ over neurons, (P, P)."""
        return (self.values * self.shares[:, None]).T @ self.values

    @property
    def neurons(self) -> Neurons:
        """All of them."""
        return Neurons(self.values, np.broadcast_to(self.shares[:, None], self.values.shape))

    def interpolated(self, psi: Callable[[np.ndarray], np.ndarray]) -> Neurons:
        """The nodes that stand for many neurons where ψ has no kinks, or all neurons.

        Examples
        --------
        >>> x = np.random.default_rng(0).normal(size=(5000, 2))
        >>> nodes = Starts(x, np.full(5000, 1 / 5000)).interpolated(np.tanh)
        >>> f = np.tanh(nodes.values)[None]
        >>> bool(np.allclose(nodes.across(f, f)[0], np.tanh(x).T @ np.tanh(x) / 5000, rtol=1e-13))
        True
        """
        middle = (self.values.max(axis=0) + self.values.min(axis=0)) / 2
        half = np.maximum((self.values.max(axis=0) - self.values.min(axis=0)) / 2, 1e-3)
        neurons, inputs = self.values.shape
        for count in SETTINGS.start_nodes if inputs <= SETTINGS.start_inputs else ():
            if neurons < 4 * count:
                break
            places = chebyshev.chebpts1(count)
            basis = chebyshev.chebvander(places, count - 1).T * (2 / count)
            basis[0] /= 2
            nodes = middle + half * places[:, None]
            terms = np.abs(basis @ np.concatenate([psi(nodes), psi(nodes) ** 2], axis=1))
            left = terms[-count // 4 :].max(axis=0)
            if (left > SETTINGS.start_rounding * count * terms.max(axis=0)).any():
                continue
            joint = np.empty((inputs, inputs, count, count))
            scaled = (self.values - middle) / half
            for i, j in combinations_with_replacement(range(inputs), 2):
                first, second = (chebyshev.chebvander(scaled[:, k], count - 1) for k in (i, j))
                joint[i, j] = basis.T @ ((first.T * self.shares) @ second) @ basis
                joint[j, i] = joint[i, j].T
            # A polynomial and one, the sum over all nodes of the other input.
            own = joint[:, 0].sum(axis=-1).T
            return Neurons(nodes, own, joint)
        return self.neurons


@dataclass(frozen=True, eq=False)
class Neurons:
    """Neurons (u, P) and their weights in averages over one input (u, P).

    With ``joint`` (P, P, u, u) those of two inputs are weights of pairs of nodes.
    """

    values: np.ndarray
    weights: np.ndarray
    joint: np.ndarray | None = None

    def shifted(self, mean: np.ndarray) -> Neurons:
        """With a mean (P,) added to all."""
        return replace(self, values=self.values + mean)

    def across(self, f: np.ndarray, g: np.ndarray) -> np.ndarray:
        """Averages of f(x_i) g(x_j) for all pairs of inputs, (n, P, P), of values (n, u, P)."""
        if self.joint is None:
            return np.asarray((f * self.weights[:, :1]).swapaxes(1, 2) @ g)
        averages = np.empty((len(f), *self.joint.shape[:2]))
        for i, j in np.ndindex(*self.joint.shape[:2]):
            averages[:, i, j] = ((f[:, :, i] @ self.joint[i, j]) * g[:, :, j]).sum(axis=1)
        return averages

    def pairs(self, i: np.ndarray, j: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Values of inputs i and j (m,) and their weights, (k, m) each."""
        first, second = self.values[:, i], self.values[:, j]
        if self.joint is None:
            return first, second, self.weights[:, i]
        shape = len(first), len(first), len(i)
        both = (np.broadcast_to(x, shape) for x in (first[:, None], second[None]))
        a, b, w = (x.reshape(-1, len(i)) for x in (*both, np.moveaxis(self.joint[i, j], 0, -1)))
        return a, b, w
