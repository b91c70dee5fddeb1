"""Kernels and their conjugates for P ~ N of networks of blocks: two populations, both tilted.

The stream h^(0), ..., h^(L) of one of N units is Gaussian, h^(l) = G^(l) h^(l-1) + f^(l) with
f^(l) ~ N(0, C^(l)), times exp Σ_l hᵀ X̃^(l) h: with Λ^(L) = X̃^(L) and A = (1 − 2CΛ)⁻¹,

    Λ^(l-1) = X̃^(l-1) + G Λ^(l) A^(l) G,   X^(l) = A G X^(l-1) G Aᵀ + A C^(l),
    C̃^(l) = ΛA + 2 ΛA G X^(l-1) G ΛA,

G = γ, times the norm behind the sum. One of M hidden units of branch l has u ~ N(0, Q(X^(l-1))),
times exp (N/M) a_l aᵀ C̃^(l) a. Its paths are sampled as those of `tilted_paths`, and give

    C^(l) = a_l ⟨a aᵀ⟩ + c_l,   X̃^(l-1) = (M/N) tr Q̃ ∂Q/∂X,   Q̃ = ∂ ln ⟨exp ...⟩/∂Q.

X̃^(L) is C̃^(L+1) of the labels through the linear readout, C^(L+1) = a R̂(X^(L)) + c.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from fieldtheory.inference.linear_posterior import Tilted
from fieldtheory.inference.tilted_paths import (
    SWEEPS,
    Balance,
    Law,
    Neuron,
    Pace,
    block_roots,
)
from fieldtheory.numerics.infinite_width.block_functions import Entry
from fieldtheory.numerics.infinite_width.mean_field import MeanField
from fieldtheory.numerics.markov.block_chain import BlockChain, Jet
from fieldtheory.numerics.symmetric_matrices import packed, unpacked

# Times a step of u is halved until the stream has a law.
_HALVES = 30
# For labels of any size. X̃ is slow, since the stream has a law for few of them only, and u is that
# of the stream as it is, by Newton's method.
BLOCKS = Pace(600, 300, 150, of_kernels=0.05, of_tilts=0.1, newton=True)


class Units(Neuron):
    """Hidden units of all branches: signals of layer l, one for every φ_k, then those of l + 1.

    ``psi`` and ``slopes`` are φ_k and φ_k' of all layers, tilts (L, P, P) are (N/M) a_l C̃^(l).
    """

    __slots__ = ()

    def exponent(self, h: np.ndarray, tilts: np.ndarray) -> np.ndarray:
        """Σ_l aᵀ tilt a of every path, from h (L K, P, n)."""
        a = np.prod(self.psi(h), axis=0)
        return np.asarray(np.einsum("lin,lin->n", a, tilts @ a))

    def averages(self, x: np.ndarray, law: Law) -> tuple[np.ndarray, np.ndarray]:
        """C^(1..L) and Q̃ (L K, P, P) of the paths as they are."""
        roots, inverses, tilts = law
        h, size, P = self.paths(x, roots), x.shape[-1], tilts.shape[-1]
        factors, slopes = self.psi(h), self.slopes(h[:, :P])
        a, force = np.prod(factors, axis=0), np.empty((len(h), P, size))
        pulled = 2 * tilts @ a[:, :P]
        for k, slope in enumerate(slopes):
            others = [each[:, :P] for each in factors[:k] + factors[k + 1 :]]
            force[k :: len(slopes)] = pulled * np.prod([slope, *others], axis=0)
        conjugates = np.array(inverses) @ (x[:, :P] @ np.swapaxes(force, 1, 2)) / size
        weights, biases = (each[1:-1, None, None] for each in (self.a, self.c))
        kernels = weights / size * (a @ np.swapaxes(a, 1, 2)) + biases
        return kernels, (conjugates + np.swapaxes(conjugates, 1, 2)) / 4


class Blocks(NamedTuple):
    """A network of blocks, N/M of it, and its hidden units with the labels."""

    chain: BlockChain
    ratio: float
    units: Units

    @classmethod
    def of(
        cls, network: Any, kernel: np.ndarray, labels: Any, noise: float, width: float
    ) -> Blocks:
        """Those of a network and labels (P, d) as they look to it."""
        chain = BlockChain(MeanField(network, kernel))
        layers, factors = chain.field.layers, chain.functions.factors
        a, c = layers.weights.ravel(), layers.biases.ravel()
        psi = [psi for phi in factors for psi in phi.functions]

        def values(h: np.ndarray) -> tuple[np.ndarray, ...]:
            return tuple(each(h[k :: len(psi)]) for k, each in enumerate(psi))

        def slopes(h: np.ndarray) -> tuple[np.ndarray, ...]:
            return tuple(each.slope(h[k :: len(psi)]) for k, each in enumerate(psi))

        skips = np.zeros(network.depth * len(psi) - 1)
        units = Units(values, slopes, a, c, skips, labels, noise, width)
        return cls(chain, network.width / network.hidden_width, units)

    def jet(self, entry: Entry, X: np.ndarray) -> Jet:
        """A function of the stream's matrices (l, Q, Q)."""
        return self.chain.entries(entry, packed(X))

    def pulled(self, jet: Jet, l: int, conjugate: np.ndarray) -> np.ndarray:
        """tr Q̃ ∂Q/∂X of a layer, (Q, Q), from Q̃ (P, P)."""
        whole, P = np.zeros_like(self.chain.field.input_kernel), len(conjugate)
        whole[:P, :P] = conjugate
        both = packed(1.0 + np.eye(len(whole)))
        # Both of αβ and βα.
        along = jet.jacobian(l, self.chain.pairs).T @ (packed(whole) * 2 / both)
        return unpacked(along * both / 2, True)

    def steps(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """G^(l) of l = 1, ..., L and their derivatives by X_αα^(l-1), both (L, Q)."""
        own, skips = np.diagonal(X[:-1], axis1=1, axis2=2), self.chain.skips[1:, None] ** 0.5
        stream = self.chain.functions.stream
        if stream is None:
            return skips * np.ones_like(own), 0 * own
        carried, slope = stream.own(own, 1)
        norm = np.sqrt(carried / own)
        return skips * norm, skips * (slope - norm**2) / (2 * own * norm)

    def stream(
        self, C: np.ndarray, tilts: np.ndarray, X: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """X^(l) and C̃^(l), and what norms behind sums add to X̃_αα, from C^(0..L) and X̃."""
        G, slopes = self.steps(X)
        pulled, A = tilts.copy(), np.empty_like(tilts)
        for l in range(len(C) - 1, -1, -1):
            if np.linalg.eigvals(C[l] @ pulled[l]).real.max() >= 0.5:
                return None
            A[l] = np.linalg.inv(np.eye(len(C[l])) - 2 * C[l] @ pulled[l])
            pulled[l] = pulled[l] @ A[l]
            if l:
                pulled[l - 1] += G[l - 1][:, None] * pulled[l] * G[l - 1]
        found, conjugates, of_norms = A @ C, pulled.copy(), np.zeros_like(tilts)
        each = np.arange(C.shape[-1])
        for l in range(1, len(C)):
            passed = G[l - 1][:, None] * found[l - 1] * G[l - 1]
            found[l] += A[l] @ passed @ A[l].T
            conjugates[l] += 2 * pulled[l] @ passed @ pulled[l]
            along = pulled[l] * found[l - 1] * G[l - 1]
            of_norms[l - 1, each, each] = 2 * along.sum(axis=1) * slopes[l - 1]
        return found, conjugates, of_norms


def _slope(feature: np.ndarray, u: np.ndarray, width: float) -> np.ndarray:
    """What rΣu changes by with u, (P d, P d), where Σ is that of Gaussian features in its tilt."""
    along, size = feature @ u, u.size
    own = np.einsum("ab,ji->aibj", feature, u.T @ along)
    return (own + np.einsum("aj,bi->aibj", along, along)).reshape(size, size) / width


def sampled_blocks(
    blocks: Blocks,
    chains: int,
    seed: np.random.SeedSequence,
    moves: Iterable[int],
    pace: Pace = BLOCKS,
) -> tuple[Tilted, Balance]:
    """The saddle point from so many chains, as `tilted_paths.sampled` finds that of one population.

    Of kernels that are slower than tilts there are two: those of the stream and those it is given.
    """
    rng, units, chain = np.random.default_rng(seed), blocks.units, blocks.chain
    (P, d), functions, weights = units.Y.shape, chain.functions, units.a[1:-1, None, None]
    C, X = (unpacked(each, True) for each in chain.states)
    tilts, pulls = np.zeros((len(C), P, P)), np.zeros_like(X)
    readout, u, rates = functions.readout.signals[0], np.zeros((P, d)), np.ones(2)
    x = rng.standard_normal((len(units.skips) + 1, len(X[0]), chains))
    kept, constant = pace.moves - pace.left_out, units.noise * np.eye(P) + units.c[-1]
    halves, streams, mean_tilts = np.zeros((2, *C.shape)), 0 * X, 0 * tilts
    spread = force = pull = 0.0

    def signals(X: np.ndarray) -> tuple[list[Jet], tuple[Any, ...], tuple[Any, ...]]:
        """Q_k by the stream, and the roots of all layers, one after the other."""
        jets = [blocks.jet(signal, X[:-1]) for signal in functions.hidden.signals]
        Q = np.stack([unpacked(jet.value, True) for jet in jets], axis=1)
        roots, inverses = zip(
            *(block_roots(q, P) for q in Q.reshape(-1, *Q.shape[2:])), strict=True
        )
        return jets, roots, inverses

    for step, _ in zip(range(pace.moves), moves, strict=False):
        jets, roots, inverses = signals(X)
        read = blocks.jet(readout, X[-1:])
        C[-1] = units.a[-1] * unpacked(read.value[0], True) + units.c[-1]
        rates, inverse = units.output(C[-1], rates, u)
        feature = rates[0] * (C[-1, :P, :P] - units.c[-1])
        slope = np.kron(constant + feature, np.eye(d)) + _slope(feature, u, units.width)
        grown = min(1.0, (step + 1) / pace.growing) * units.Y
        change = np.linalg.solve(slope, (grown - (constant + feature) @ u).ravel()).reshape(P, d)
        for shorter in range(_HALVES):
            tried = u + change / 2**shorter
            tilt = (tried @ tried.T - d * inverse) / (2 * units.width)
            pulls[-1] = blocks.pulled(read, 0, rates[0] * units.a[-1] * tilt)
            if found := blocks.stream(C[:-1], pulls, X):
                break
        else:
            raise ArithmeticError(
                "no saddle point was reached: the labels pull the stream apart; scale the labels "
                "down, or use more noise or a wider network"
            )
        (stream, conjugates, of_norms), u, tilts[-1] = found, tried, tilt
        tilts[:-1] = conjugates[:, :P, :P]
        law = Law(roots, inverses, blocks.ratio * weights * tilts[1:-1])
        x = units.next_paths(x, law, rng)
        kernels, hidden = units.averages(x, law)
        moved = np.zeros_like(pulls[:-1])
        for k, jet in enumerate(jets):
            own = hidden[k :: len(jets)]
            moved += [blocks.pulled(jet, l, each) / blocks.ratio for l, each in enumerate(own)]
        if step >= pace.left_out:
            half = halves[2 * (step - pace.left_out) // kept]
            half[1:-1] += 2 / kept * kernels
            half[-1] += 2 / kept * C[-1]
            streams, mean_tilts = streams + stream / kept, mean_tilts + tilts / kept
            spread += (np.sum(x**2) / chains - x[..., 0].size) / kept
            Q = np.array(roots)[:, :P, :P]
            force += 2 / kept * np.sum(Q @ np.swapaxes(Q, 1, 2) * hidden)
            pull += rates[0] * np.sum(u * ((C[-1, :P, :P] - units.c[-1]) @ u)) / units.width / kept
        C[1:-1] += pace.of_kernels * (kernels - C[1:-1])
        X[:-1] += pace.of_kernels * (stream - X)[:-1]
        X[-1] = stream[-1]
        pulls[:-1] += pace.of_tilts * (moved + of_norms[:-1] - pulls[:-1])
    halves[:, 0] = C[0]
    C = halves.mean(axis=0)
    for _ in range(SWEEPS):
        u = np.linalg.solve(constant + rates[0] * (C[-1, :P, :P] - units.c[-1]), units.Y)
        rates, _ = units.output(C[-1], rates, u)
    prediction = units.predicted(C[-1], rates, u)
    _, roots, inverses = signals(streams)
    law = Law(roots, inverses, blocks.ratio * weights * mean_tilts[1:-1])
    residual = np.zeros_like(C)
    residual[1:-1] = units.moved_by_fresh_paths(C[1:-1], chains, law, rng, pace)
    if functions.stream:
        streams = unpacked(blocks.jet(functions.stream, streams).value, True)
    kernels = np.concatenate([streams, C[-1:]])
    balance = Balance(halves[1] - halves[0], residual, spread, force, pull)
    return Tilted(C, mean_tilts, *prediction, kernels), balance
