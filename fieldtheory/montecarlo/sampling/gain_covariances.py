"""Responses of what kernels learn from one weighted sum of the kernels of the outputs.

The covariances c^(l) = N Cov(C_αβ^(l), Tr U C^(L+1)) of `many_inputs`, with d^(l) those of K^(l),
follow c^(l+1) = a_{l+1} [⟨φ_αφ_β^(l) ; Ψ⟩ + Σ_e ∂_e⟨φ_αφ_β⟩ d_e^(l)], e = αα, ββ, αβ. The entry
K_αβ^(0) of two inputs moves K_αβ^(l) by χ^(l) and nothing else, so that with U fixed

    ∂c^(l+1) = a_{l+1} [χ^(l) ⟨D ; Ψ⟩ + χ^(l) Σ_e ∂_αβ∂_e⟨φ_αφ_β⟩ d_e^(l) + ⟨D⟩ ∂d^(l)],

D = φ'_αφ'_β by Price's theorem. For one input D is φ'² + φφ'', and the covariances of h_α with the
signals of all other inputs move too, see `gain_correlators`. Averages are series in Hermite
coefficients, or over sampled paths of a neuron.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fieldtheory.averages.routes import relative_tolerance
from fieldtheory.montecarlo.sampling.forward import feature_functions
from fieldtheory.montecarlo.sampling.many_inputs import (
    BATCHES,
    Weighted,
    covariance_batches,
    pair_weights,
)
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.infinite_width.block_functions import network_functions
from fieldtheory.numerics.pair_maps.pair_averages import pair_functions
from fieldtheory.numerics.recursion import accumulate, add_skip
from fieldtheory.numerics.several_inputs.feature_correlators import gain_correlators
from fieldtheory.numerics.several_inputs.pair_curvatures import curvatures
from fieldtheory.numerics.several_inputs.pair_fluctuations import PairGains, traced_back
from fieldtheory.numerics.solution import Solution
from fieldtheory.numerics.symmetric_matrices import packed

# Paths of a neuron where the whole G11 is at hand, but φ has kinks.
_SAMPLES = 1 << 15


def response_batches(
    solution: Solution, U: np.ndarray, samples: int | None, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """N ∂Cov(·, Tr U C^(L+1))/∂K_αβ^(0) of C_αβ^(l) and of K_αβ^(l), for weights U (P, P) at rest.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> s = ft.solve(ft.ResidualNetwork(depth=2), [[0.3, 0.1], [0.1, 0.2]])
    >>> response_batches(s, np.diag([1.0, 0.0]), None, 0)[1].shape
    (1, 4, 3)
    """
    network, last = solution.network, solution.network.depth + 1
    assert isinstance(network, LayeredNetwork)
    for psi in network_functions(network).functions:
        delta = np.abs(psi.value(psi.kinks) * psi.slope.jumps)
        if len(psi.jumping) or (delta > np.finfo(float).eps).any():
            raise ValueError(
                "responses after labels need φ without jumps that vanishes at its kinks, got "
                f"{network.activation.name}"
            )
    with relative_tolerance(solution.rtol):
        responses = _PairResponses(solution, U)
    pulled, shares = covariance_batches(solution, U, last, samples, seed, False)
    skips, a, gains = responses.skips, responses.a, responses.gains
    d = accumulate(skips, network.width * np.moveaxis(pulled, 0, -1))
    own = None if samples else responses.series()
    if own is None:
        shares = shares if samples else np.full(BATCHES, 1 / BATCHES)
        sampled = _Sampled(responses)
        sizes = np.rint((samples or _SAMPLES) * shares).astype(int)
        own = np.array([sampled.correlators(int(n), seed, i) for i, n in enumerate(sizes)])
    residual = np.zeros((last + 1, len(own), len(responses.chi[0])))
    kernels = residual.copy()
    for l in range(last):
        source = own[:, l] + responses.chi[l] * responses.curvature.kernel_change(l, d[l]).T
        residual[l + 1] = a[l + 1] * source + gains[l + 1] * kernels[l]
        kernels[l + 1] = residual[l + 1]
        if l + 1 < last:
            kernels[l + 1] = add_skip(skips[l + 1], kernels[l], residual[l + 1])
    return np.swapaxes(residual, 0, 1), np.swapaxes(kernels, 0, 1), shares


class _PairResponses:
    """Gains of pairs of inputs, their derivatives by kernels, and how kernels respond."""

    def __init__(self, solution: Solution, U: np.ndarray) -> None:
        self.weights = pair_weights(U)
        self.solution, self.theory = solution, solution.chain.pairs
        signals, gains = self.theory.signals, self.theory.gains
        layers, self.skips = self.theory.layers, self.theory.layers.skips
        self.a = layers.weights.reshape(len(gains.own), -1)[:, 0]
        K, chi = np.diagonal(signals.K, axis1=1, axis2=2), solution.response
        self.chi, (own, others, *_) = packed(chi), gains.places
        self.gains = np.empty((len(self.a), len(own) + len(others)))
        self.gains[:, own], self.gains[:, others] = gains.own, gains.pair
        averages = pair_functions(network_functions(solution.network))
        used = np.ones((len(K), len(others)), dtype=bool)
        first, second, pair = curvatures(signals, others, used)[2]
        self.curvature = PairGains(averages.moments(K)[2], pair, first, second)
        # Of ∂K_αγ^(l)/∂K_αα^(0), γ = α is a second input at the same place.
        self.covariances = solution.full_response[..., 0].copy()
        each = np.arange(len(own))
        at_once = self.a[1:, None] * averages.covariance_gain(K, (each, each), K)[1]
        second_input = np.zeros(len(each))
        for l in range(1, len(K)):
            source = (gains.own[l] - at_once[l - 1]) / 2 * chi[l - 1, each, each]
            source += at_once[l - 1] * second_input
            second_input = add_skip(self.skips[l], second_input, source)
            self.covariances[l, each, each] = second_input

    def series(self) -> np.ndarray | None:
        """Derivatives of ⟨φφ^(l) ; Ψ⟩, (1, L + 1, p); None of φ with kinks."""
        signals, last = self.theory.signals, len(self.a) - 1
        weights = traced_back(self.skips, self.theory.gains, self.weights, last)
        weights = weights[1:] * self.a[1:, None]
        return gain_correlators(signals, weights, self.chi, self.covariances)


class _Sampled(Weighted):
    """Derivatives of ⟨φφ^(l) ; Ψ⟩ from paths of a neuron."""

    def __init__(self, responses: _PairResponses) -> None:
        solution, network = responses.solution, responses.solution.network
        assert isinstance(network, LayeredNetwork)
        super().__init__(solution, responses.theory, responses.weights, solution.network.depth + 1)
        self.responses, functions = responses, responses.theory.signals.functions
        self.first = feature_functions(network, slopes=True)
        self.second = [psi.slope.slope for psi in functions]
        a, gains = self.a[:, None], responses.gains[1:]
        self.mean_gains = np.divide(gains, a, out=np.zeros_like(gains), where=a > 0)

    def correlators(self, size: int, seed: int, number: int) -> np.ndarray:
        """Those of one batch of paths, shape (L + 1, p)."""
        sums, squares, driven = np.zeros((3, *self.K.shape))
        total, each = 0.0, np.arange(self.K.shape[-1])
        for h, features, remainder in self.remainders(size, seed, number):
            Psi = remainder + np.einsum("li,lin->n", self.vector, h)
            total += Psi.sum()
            slopes = [self.first(row) for row in h]
            for l, row in enumerate(features):
                for x, slope, second in zip(row, slopes[l], self.second, strict=True):
                    sums[l] += (slope * Psi) @ slope.T
                    sums[l, each, each] += (x * second(h[l])) @ Psi
                squares[l] += (h[l] * Psi) @ h[l].T - Psi.sum() * self.K[l]
            for l, change in enumerate(self._driven(features, slopes)):
                for x, slope in zip(features[l], slopes[l], strict=True):
                    driven[l, each, each] += 2 * (x * slope * change).sum(axis=1)
        values = (packed(sums) - total * self.mean_gains) / size
        for l, products in enumerate(packed(self.kernels_with()[0] - squares / size)):
            values[l] += self.responses.curvature.kernel_change(l, products)
        return self.responses.chi * values + packed(driven) / size

    def _driven(self, features: list[Any], slopes: list[Any]) -> np.ndarray:
        """Σ_kγ ∂Cov(h_α^(l), h_γ^(k))/∂K_αα^(0) ∂Ψ/∂h_γ^(k), shape (L + 1, P, n)."""
        by_signal = np.array([
            2 * a * sum(slope * (weights @ x) for x, slope in zip(*each, strict=True))
            for a, weights, *each in zip(self.a, self.weights, features, slopes, strict=True)
        ])  # fmt: skip
        of_covariances, skips = self.responses.covariances, self.hidden_skips
        change = np.array([m @ each for m, each in zip(of_covariances, by_signal, strict=True)])
        for l in range(1, len(change)):
            change[l] += skips[l - 1] * change[l - 1]
        later = np.zeros_like(by_signal[0])
        for l in range(len(change) - 2, -1, -1):
            later = skips[l] * (by_signal[l + 1] + later)
            change[l] += of_covariances[l] @ later
        return change
