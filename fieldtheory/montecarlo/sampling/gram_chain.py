"""Samplers of networks of a stream and branches, by all weights or by their Gram matrices."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from fieldtheory.averages.quadrature.compiled import function_of
from fieldtheory.montecarlo.sampling.forward import (
    continued_at_zero,
    correlated,
    gram,
    neuron_products,
)
from fieldtheory.montecarlo.sampling.plan import Run
from fieldtheory.networks.activations import h
from fieldtheory.networks.gram import GramEntry, GramNetwork
from fieldtheory.numerics.covariance_roots import wishart_root
from fieldtheory.numerics.recursion import add_skip, residual_kernel


def next_gram(
    A: np.ndarray,
    B: np.ndarray,
    width: int,
    independent: int,
    generator: np.random.Generator,
    size: int,
) -> np.ndarray:
    """Draws of X = (1/N) x xᵀ, x = s + f, given A Aᵀ = (1/N) s sᵀ and f_i ~ N(0, B Bᵀ).

    With A (P, r), B (P, q) and coordinates in which s = √N (A, 0) in the space of n >= r units,

        X = Y Yᵀ,   Y = (A + B G/√N, B T/√N)

    with normals G (q, r) and a Wishart matrix T Tᵀ (q, q) of n − r degrees of freedom. Hence X
    depends on s through A alone.

    >>> X = next_gram(0.5 * np.full((1, 1), 2**0.5), np.ones((1, 1)), width=10, independent=10,
    ...     generator=np.random.default_rng(0), size=20_000)
    >>> round(float(X.mean()), 2), round(float(X.var()), 2)      # S + C, (2 C² + 4 S C)/N
    (1.5, 0.4)
    """
    q, r = B.shape[-1], A.shape[-1]
    along = generator.standard_normal((size, q, r))
    beside = wishart_root(independent - r, q, generator, size)
    noise = correlated(B, np.concatenate([along, beside], axis=-1) / np.sqrt(width))
    noise[..., :r] += A
    return np.asarray(noise @ noise.swapaxes(-1, -2))


class _Chain:
    """What both samplers have: the parameters of the layers, and Π_k φ_k(u_k)."""

    def __init__(self, network: GramNetwork) -> None:
        self.network = network
        layers = (network.of_layer(l) for l in range(1, network.depth + 1))
        self.layers = [*layers, network.parameters]
        factors = (function_of(factor.expression, h).value for factor in network.factors)
        self.factors = [*map(continued_at_zero, factors)]

    def activity(self, *signals: np.ndarray) -> Any:
        """Of hidden units."""
        return prod(phi(u) for phi, u in zip(self.factors, signals, strict=True))

    def coefficients(self, l: int) -> tuple[Any, Any, Any]:
        """a_l, c_l and γ_l, l = 1, ..., L + 1."""
        of = self.network.layer if l <= self.network.depth else self.network.readout
        return of(self.layers[l - 1])


class GramMatrices(_Chain):
    """Gram matrices X of the stream, functions of normals through the roots of covariances."""

    R: Any
    read: Any

    def __init__(
        self,
        run: Run,
        generator: np.random.Generator,
        size: int,
        root: Callable[[np.ndarray], np.ndarray],
    ) -> None:
        super().__init__(run.network)
        self.run, self.generator, self.size, self.root = run, generator, size, root

    def enter(self, l: int, kernel: np.ndarray) -> None:
        """X, that of the stream R, and that of what is read."""
        A = self.coefficients(l)[2] * self.root(self.R) if l else np.zeros(kernel.shape)
        network, sizes = self.network, (self.network.width, self.run.independent)
        X = next_gram(A, self.root(kernel), *sizes, self.generator, self.size)
        own = np.diagonal(X, axis1=-2, axis2=-1)
        entry = GramEntry(X, own[..., :, None], own[..., None, :])
        self.R = network.stream(entry, self.layers[l])
        self.read = network.read(entry, self.layers[l])

    def kernel(self, l: int) -> Any:
        """C^(l) of new hidden units."""
        a, c, _ = self.coefficients(l)
        if l > self.network.depth:
            return residual_kernel(a, c, self.read)
        shape = self.size, self.run.inputs, self.network.hidden_width
        covariances = self.network.signals(self.read, self.layers[l - 1])
        normals = (self.generator.standard_normal(shape) for _ in covariances)
        signals = [correlated(self.root(Q), z) for Q, z in zip(covariances, normals, strict=True)]
        return residual_kernel(a, c, gram(self.activity(*signals)))

    def look(self, across: bool) -> tuple[Any, Any]:
        """R, and the mean of `neuron_products` over rotations of the n independent units.

        The law of the stream does not change under them, so that

            (1/N) Σ_i h_α h_β h_γ h_δ = n/(n + 2) (R_αβ R_γδ + R_αγ R_βδ + R_αδ R_βγ).
        """
        R, width, units = self.R, self.network.width, self.run.independent
        a, b = c, d = np.indices(R.shape[-2:])
        if across:
            pairs = np.array(np.triu_indices(R.shape[-1]))
            a, b, c, d = *pairs[:, :, None], *pairs[:, None]
        product = R[..., a, b] * R[..., c, d]
        fourth = product + R[..., a, c] * R[..., b, d] + R[..., a, d] * R[..., b, c]
        return R, (units / (units + 2) * fourth - product) * width / max(width - 1, 1)


class Units(_Chain):
    """Signals x (n, P, N) of the units of the stream, with all weights.

    ``readin(0, K0, ())`` draws x^(0), and ``new(x, units, weight, bias)`` is W x + b.
    """

    carried: Any
    f: Any

    def __init__(
        self, network: GramNetwork, readin: Callable[..., Any], new: Callable[..., Any]
    ) -> None:
        super().__init__(network)
        self.readin, self.new = readin, new

    def enter(self, l: int, kernel: np.ndarray) -> None:
        """x, what the skip connection carries of it, and what is read."""
        if l:
            x = add_skip(self.coefficients(l)[2], self.carried, self.f)
        else:
            x = self.readin(0, kernel, ())
        self.carried, self.read = self.network.passed(x, self.layers[l])

    def kernel(self, l: int) -> Any:
        """C^(l) of the hidden units of a new branch, whose output is kept."""
        a, c, _ = self.coefficients(l)
        hidden = self.read
        if l <= self.network.depth:

            def activity(*signals: np.ndarray) -> Any:
                nonlocal hidden
                hidden = self.activity(*signals)
                return hidden

            self.f = self.network.branch(self.read, self.new, activity, self.layers[l - 1])
        return residual_kernel(a, c, gram(hidden))

    def look(self, across: bool) -> tuple[Any, Any]:
        """Those of the units, without their mean where the norm takes it."""
        x = self.carried
        return neuron_products(
            x - x.mean(axis=-1, keepdims=True) if self.network.centred else x, across
        )
