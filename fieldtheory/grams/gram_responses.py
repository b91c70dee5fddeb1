"""Responses and tangent kernels of a chain of Gram matrices, by running products over the layers.

A variance moves with its own variance of the input, a covariance with two variances and itself.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fieldtheory.grams.entry_functions import Jet
from fieldtheory.grams.gram_theory import GramChain
from fieldtheory.numerics.recursion import propagate, require_finite


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


def tangent_terms(chain: GramChain) -> tuple[np.ndarray, np.ndarray]:
    """What kinds of parameters add to Θ of their layer, (kinds, L + 2, ..., p), and gains of Θ.

        Θ^(0) = K^(0),   Θ^(l) = (∂F_αβ/∂X_αβ) Θ^(l-1) + C^(l) + Σ_k (∂C/∂Q_k) Q_k

    at fixed variances, before the norm of a stream that is normalised: weights and biases of
    variance σ² are trained as σ w with w of variance one, those of a hidden signal add their part
    of Q_k, the outer ones theirs of C. The gains, (L + 1, ..., p), end with that of the readout.
    """
    network, parameters, X = chain.network, chain.parameters, chain.states[1]
    bias = parameters["readin_bias_variance"]
    readout, coefficients = network.readout(parameters), network.layer(parameters)
    stream, read = (chain.entries(name, X, 1) for name in ("stream", "read"))
    Q, moved = (chain.signals(X[:-1], order) for order in (0, 1))
    averages = [*map(chain.average, chain.functions, Q)]
    gain = chain.skips * stream[:-1]
    first, hidden, last = 0, slice(1, -1), -1
    terms: dict[str, tuple[Any, Any]] = {
        "readin_weight": (first, chain.inputs - bias),
        "readin_bias": (first, bias),
        "outer_weight": (hidden, coefficients.weight * math.prod(averages)),
        "outer_bias": (hidden, coefficients.bias),
        "readout_weight": (last, readout.weight * chain.entries("read", X[-1], 0)),
        "readout_bias": (last, readout.bias),
    }
    for k, name in enumerate(network.signal_names):
        others = math.prod(averages[:k] + averages[k + 1 :])
        slope = coefficients.weight * chain.slope(chain.functions[k], Q[k]) * others
        of_bias = network.signals(np.zeros_like(Q[k]), parameters)[k]
        terms[f"{name}_weight"] = hidden, slope * (Q[k] - of_bias)
        terms[f"{name}_bias"] = hidden, slope * of_bias
        gain = gain + slope * moved[k]
    sources = np.zeros((len(network.trained), len(X) + 1, *chain.inputs.shape))
    for source, kind in zip(sources, network.trained, strict=True):
        layers, values = terms[kind]
        source[layers] = values
    return sources, np.concatenate([gain, readout.weight * read[-1:]])


def tangents(chain: GramChain, rates: np.ndarray) -> np.ndarray:
    """Θ^(l) of the stream and of the output, (L + 2, ..., p), for learning rates of each kind."""
    sources, gains = tangent_terms(chain)
    added = np.tensordot(rates, sources, 1)
    theta = [added[0]]
    for gain, more in zip(gains, added[1:], strict=True):
        theta.append(gain * theta[-1] + more)
    stream = chain.entries("stream", chain.states[1], 1)
    return np.concatenate([stream * np.array(theta[:-1]), theta[-1:]])


def tangent_parts(chain: GramChain, rates: np.ndarray) -> np.ndarray:
    """What kinds and layers have of Θ of the output, (kinds, L + 2, ..., p)."""
    sources, gains = tangent_terms(chain)
    passed = np.concatenate([np.cumprod(gains[::-1], 0)[::-1], np.ones_like(gains[:1])])
    weights = np.reshape(rates, (-1, *(1,) * passed.ndim))
    return np.asarray(weights * sources * passed)
