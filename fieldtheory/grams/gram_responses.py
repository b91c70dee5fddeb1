"""Responses and tangent kernels of a chain of Gram matrices, by running products over the layers.

A variance moves with its own variance of the input, a covariance with two variances and itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from fieldtheory.grams.entry_functions import Jet
from fieldtheory.grams.gram_theory import GramChain
from fieldtheory.numerics.finite import require_finite
from fieldtheory.numerics.recursion import propagate


def responses(chain: GramChain) -> tuple[np.ndarray, np.ndarray]:
    """∂C_αβ^(l)/∂K^(0), (L + 2, 3, ..., p), and ∂K_αβ^(l)/∂K^(0), (L + 1, 3, ..., p).

    By K_αα, K_ββ and K_αβ of the input, a variance by itself in the last.
    """
    w = np.zeros((3, *chain.inputs.shape))
    w[2] = 1.0
    residual, stream = [w], []
    for l in range(chain.network.depth + 1):
        residual.append(_moved(chain, chain.slopes, l, w))
        stream.append(_moved(chain, chain.stream_jet, l, w))
        require_finite("the response", residual[-1], l + 1)
        if l < chain.network.depth:
            w = chain.skips[l] * stream[-1] + residual[-1]
    return np.array(residual), np.array(stream)


def _moved(chain: GramChain, jet: Jet, l: int, w: np.ndarray) -> np.ndarray:
    """The changes of a function of X^(l) with those of X^(l) by the three sources."""
    by_a, by_b, by_t = jet.gradient[:, l]
    change = by_t * w
    change[0] += by_a * w[2][..., chain.pairs.first]
    change[1] += by_b * w[2][..., chain.pairs.second]
    return change


def propagators(chain: GramChain) -> np.ndarray:
    """N ⟨C^(l) C̃^(m)⟩ of the (αβ) <- (αβ) entries, shape (L + 2, L + 2, p)."""
    gains = chain.slopes.gradient[2]
    first, size = np.zeros_like(gains[:1]), len(gains) + 1
    skips = np.concatenate([first, chain.skips * chain.stream_jet.gradient[2][:-1], first])
    sources = np.zeros((size, size, gains.shape[-1]))
    sources[range(size), range(size)] = 1.0
    return propagate(skips, np.concatenate([first, gains]), sources)


def tangents(chain: GramChain, rates: Mapping[str, float]) -> np.ndarray:
    """Θ^(l) of the stream and of the output, (L + 2, ..., p), for learning rates of each kind.

        Θ^(0) = K^(0),   Θ^(l) = (∂F_αβ/∂X_αβ) Θ^(l-1) + C^(l) + Σ_k (∂C/∂Q_k) Q_k

    at fixed variances, before the norm of a stream that is normalised: weights and biases of
    variance σ² are trained as σ w with w of variance one, those of a hidden signal add their part
    of Q_k, the outer ones theirs of C.
    """
    network, parameters, X = chain.network, chain.parameters, chain.states[1]
    bias = parameters["readin_bias_variance"]
    readout, coefficients = network.readout(parameters), network.layer(parameters)
    stream, read = (chain.entries(name, X, 1) for name in ("stream", "read"))
    Q, moved = (chain.signals(X[:-1], order) for order in (0, 1))
    averages = [*map(chain.average, chain.functions, Q)]
    gain = chain.skips * stream[:-1]
    source = rates["outer_weight"] * coefficients.weight * math.prod(averages)
    source = source + rates["outer_bias"] * coefficients.bias
    for k, name in enumerate(network.signal_names):
        others = math.prod(averages[:k] + averages[k + 1 :])
        slope = coefficients.weight * chain.slope(chain.functions[k], Q[k]) * others
        of_bias = network.signals(np.zeros_like(Q[k]), parameters)[k]
        weights = rates[f"{name}_weight"] * (Q[k] - of_bias)
        source = source + slope * (weights + rates.get(f"{name}_bias", 0.0) * of_bias)
        gain = gain + slope * moved[k]
    theta = [rates["readin_weight"] * (chain.inputs - bias) + rates["readin_bias"] * bias]
    for step, added in zip(gain, source, strict=True):
        theta.append(step * theta[-1] + added)
    of_readout = rates["readout_weight"] * chain.entries("read", X[-1], 0)
    last = readout.weight * (read[-1] * theta[-1] + of_readout)
    last = last + rates["readout_bias"] * readout.bias
    return np.concatenate([stream * np.array(theta), last[None]])
