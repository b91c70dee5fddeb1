"""`simulate` for Gram chains: networks with all their weights, or their Gram matrices alone."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from fieldtheory.averages.quadrature.compiled import function_of
from fieldtheory.montecarlo.ensemble import groups_of
from fieldtheory.montecarlo.sampling.forward import (
    affine,
    continued_at_zero,
    correlated,
    gaussian,
    gram,
    in_tiles,
    psd_root,
    tile_size,
)
from fieldtheory.montecarlo.sampling.plan import Run, Samples
from fieldtheory.montecarlo.sampling.samplers import Draws, joined, neuron_products
from fieldtheory.montecarlo.simulation import RUNS, samples_of, simulate
from fieldtheory.networks.activations import h
from fieldtheory.networks.dispatch import not_there
from fieldtheory.networks.gram import GramEntry, GramNetwork
from fieldtheory.numerics.infinite_width.block_functions import require_norms
from fieldtheory.numerics.recursion import add_skip, require_finite, residual_kernel
from fieldtheory.numerics.symmetric_matrices import packed


class GramRun(Run):
    """A checked call of `simulate` for a network whose Gram matrices are a chain."""

    def __post_init__(self) -> None:
        network, own = self.network, np.diagonal(np.atleast_2d(self.kernel))
        if self.variance_reduction is not None:
            raise not_there("variance_reduction", network)
        if self.method == "kernel" and self.inputs > self.independent:
            raise ValueError(
                f"method 'kernel' needs at most {self.independent} inputs at width "
                f"{network.width}, got P = {self.inputs}; use 'weights'"
            )
        with np.errstate(invalid="ignore"):
            read = network.read(GramEntry(own, own, own), network.of_layer(1))
        require_norms(own, read)

    @property
    def drawn(self) -> int:
        """Numbers that are drawn for a layer of one network."""
        M, factors = self.network.hidden_width, len(self.network.factors)
        if self.method == "weights":
            return self.network.width * M * (factors + 1)
        return self.inputs * (M * factors + 2 * self.inputs)

    @property
    def independent(self) -> int:
        """Number of independent units of the stream, N or N − 1."""
        return self.network.width - self.network.centred

    def draws(self, generator: np.random.Generator, size: int) -> Samples:
        """Samples of so many networks, with their Gram matrices."""
        tiles = in_tiles(lambda n: _tile(self, generator, n), size, tile_size(self.drawn))
        draws = joined(tiles)
        samples, residual = samples_of(draws, self.cross_inputs)
        kernels = np.concatenate([packed(draws.second), residual[:, -1:]], axis=1)
        return samples | {"kernels": groups_of(kernels, self.cross_inputs)}, residual


RUNS[GramNetwork] = GramRun
simulate.register(GramNetwork)(simulate.__wrapped__)  # type: ignore[attr-defined]


def next_gram(
    S: np.ndarray,
    C: np.ndarray,
    skip: float,
    width: int,
    independent: int,
    generator: np.random.Generator,
) -> np.ndarray:
    """Draws of X = (1/N) x xᵀ, x = γ s + f, given S = (1/N) s sᵀ and f_i ~ N(0, C).

    With S = A Aᵀ, C = B Bᵀ and coordinates in which s = √N (A, 0) in the space of the n
    independent units,

        X = Y Yᵀ,   Y = (γ A + B G/√N, B T/√N)

    with a P × P matrix G of normals and T Tᵀ a Wishart matrix of n − P degrees of freedom, T by
    Bartlett's decomposition. Hence X depends on s through S alone.

    Examples
    --------
    >>> S, C = np.full((20_000, 1, 1), 2.0), np.ones((1, 1))
    >>> X = next_gram(S, C, 0.5, width=10, independent=10, generator=np.random.default_rng(0))
    >>> round(float(X.mean()), 2), round(float(X.var()), 2)   # γ² S + C, (2 C² + 4 γ² S C)/N
    (1.5, 0.4)
    """
    size, P = len(S), S.shape[-1]
    left = independent - P
    along = generator.standard_normal((size, P, P))
    beside = np.tril(generator.standard_normal((size, P, min(P, left))))
    own = np.arange(min(P, left))
    beside[:, own, own] = np.sqrt(generator.chisquare(left - own, (size, len(own))))
    noise = correlated(psd_root(C), np.concatenate([along, beside], axis=2) / np.sqrt(width))
    noise[..., :P] += skip * psd_root(S)
    return np.asarray(noise @ noise.swapaxes(1, 2))


class _Chain:
    """So many networks, from layer to layer.

    ``look`` gives R, the spread of its units, and the Gram matrix of what is read; ``branch`` draws
    the next layer and gives its C.
    """

    def __init__(self, run: GramRun, generator: np.random.Generator, size: int) -> None:
        self.run, self.network, self.generator, self.size = run, run.network, generator, size
        self.kernel = np.atleast_2d(run.kernel)
        factors = (function_of(factor.expression, h).value for factor in self.network.factors)
        self.factors = [*map(continued_at_zero, factors)]

    def activity(self, *signals: np.ndarray) -> np.ndarray:
        """Π_k φ_k(u_k)."""
        return prod(phi(u) for phi, u in zip(self.factors, signals, strict=True))


class _Grams(_Chain):
    """Gram matrices X of the stream."""

    def __init__(self, run: GramRun, generator: np.random.Generator, size: int) -> None:
        super().__init__(run, generator, size)
        self.step(np.zeros((self.size, *self.kernel.shape)), self.kernel, 0.0)

    def step(self, S: np.ndarray, C: np.ndarray, skip: float) -> None:
        sizes = self.network.width, self.run.independent
        self.X = next_gram(S, C, skip, *sizes, self.generator)

    def look(self, parameters: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        own = np.diagonal(self.X, axis1=1, axis2=2)
        entry = GramEntry(self.X, own[:, :, None], own[:, None, :])
        self.R = self.network.stream(entry, parameters)
        self.read = self.network.read(entry, parameters)
        return self.R, _expected_spread(self.run, self.R), self.read

    def branch(self, parameters: dict[str, Any]) -> np.ndarray:
        a, c, skip = self.network.layer(parameters)
        shape = self.size, self.run.inputs, self.network.hidden_width
        covariances = self.network.signals(self.read, parameters)
        signals = [gaussian(Q, self.generator.standard_normal(shape)) for Q in covariances]
        C = residual_kernel(a, c, gram(self.activity(*signals)))
        self.step(self.R, C, skip)
        return np.asarray(C)


class _Weights(_Chain):
    """Signals x (n, P, N) of networks with all weights."""

    def __init__(self, run: GramRun, generator: np.random.Generator, size: int) -> None:
        super().__init__(run, generator, size)
        width, data, parameters = self.network.width, self.run.data, self.network.parameters
        if data is None:
            normals = self.generator.standard_normal((self.size, self.run.inputs, width))
            self.x = gaussian(self.kernel, normals)
        else:
            readin = (parameters[f"readin_{kind}_variance"] for kind in ("weight", "bias"))
            self.x = self.affine(data, width, *readin)

    def affine(self, x: np.ndarray, units: int, weight: float, bias: float) -> np.ndarray:
        """W x + b with new W and b of these variances."""
        weights = self.generator.standard_normal((self.size, x.shape[-1], units))
        biases = self.generator.standard_normal((self.size, 1, units))
        return np.asarray(affine(x, weights, biases, np.sqrt((weight, bias))))

    def look(self, parameters: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        self.carried, self.read = self.network.passed(self.x, parameters)
        units = self.carried
        if self.network.centred:
            units = units - units.mean(axis=-1, keepdims=True)
        return (*neuron_products(units, self.run.cross_inputs), gram(self.read))

    def branch(self, parameters: dict[str, Any]) -> np.ndarray:
        a, c, skip = self.network.layer(parameters)
        hidden: list[np.ndarray] = []

        def activity(*signals: np.ndarray) -> np.ndarray:
            hidden.append(self.activity(*signals))
            return hidden[-1]

        f = self.network.branch(self.read, self.affine, activity, parameters)
        self.x = add_skip(skip, self.carried, f)
        return np.asarray(residual_kernel(a, c, gram(*hidden)))


def _expected_spread(run: GramRun, R: np.ndarray) -> np.ndarray:
    """The mean of what `neuron_products` gives over rotations of the units, given R.

    The law of the stream does not change if its n independent units are rotated, so

        (1/N) Σ_i h_α h_β h_γ h_δ = n/(n + 2) (R_αβ R_γδ + R_αγ R_βδ + R_αδ R_βγ).
    """
    pairs = np.triu_indices(run.inputs) if run.cross_inputs else np.indices(R.shape[1:])
    a, b = c, d = np.asarray(pairs)
    if run.cross_inputs:
        a, b, c, d = a[:, None], b[:, None], c[None], d[None]
    width, units = run.network.width, run.independent
    product = R[:, a, b] * R[:, c, d]
    fourth = product + R[:, a, c] * R[:, b, d] + R[:, a, d] * R[:, b, c]
    return (units / (units + 2) * fourth - product) * width / max(width - 1, 1)


def _tile(run: GramRun, generator: np.random.Generator, size: int) -> Draws:
    network, depth = run.network, run.network.depth
    chain = (_Grams if run.method == "kernel" else _Weights)(run, generator, size)
    rows = []
    for l in range(depth + 1):
        parameters = network.of_layer(l + 1) if l < depth else network.parameters
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            R, spread, read = chain.look(parameters)
            if l < depth:
                C = chain.branch(parameters)
            else:
                a, c, _ = network.readout(parameters)
                C = residual_kernel(a, c, read)
        require_finite("a kernel", C, l + 1)
        rows.append((C, R, spread))
    return Draws(*(np.stack(column, axis=1) for column in zip(*rows, strict=True)))
