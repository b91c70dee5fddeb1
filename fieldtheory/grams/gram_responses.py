"""Responses and tangent kernels of a chain of Gram matrices, by running products over the layers.

A variance moves with its own variance of the input, a covariance with two variances and itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from fieldtheory.grams.entry_functions import Jet, entry_functions
from fieldtheory.grams.gram_theory import Entries, GramChain
from fieldtheory.numerics.finite import require_finite
from fieldtheory.numerics.recursion import propagate


class Responses(NamedTuple):
    """Derivatives by K0 of C^(l), L + 2 layers, and of K^(l), L + 1 layers.

    Own entries are those of variances by themselves; pairs have the sources K_αα, K_ββ and K_αβ of
    the input on the axis behind the layers.
    """

    residual: Entries
    stream: Entries


def responses(chain: GramChain) -> Responses:
    """∂C^(l)/∂K^(0) and ∂K^(l)/∂K^(0)."""
    skips = _skips(chain)
    u, w = np.ones_like(chain.inputs.own), np.zeros((3, *chain.inputs.pair.shape))
    w[2] = 1.0
    residual, stream = [Entries(u, w)], []
    for l in range(chain.network.depth + 1):
        C = _moved(chain.slopes, l, u, w, chain.pairs)
        s = _moved(chain.stream_jets, l, u, w, chain.pairs)
        residual.append(C)
        stream.append(s)
        require_finite("the response", C.own, l + 1)
        if l < chain.network.depth:
            u, w = (skips[l] * one + other for one, other in zip(s, C, strict=True))
    return Responses(
        *(Entries(*map(np.array, zip(*each, strict=True))) for each in (residual, stream))
    )


def _moved(jets: Entries, l: int, u: np.ndarray, w: np.ndarray, pairs: tuple[Any, ...]) -> Entries:
    """The changes of a function of X^(l) with changes of X^(l)."""
    by_a, by_b, by_t = jets.pair.gradient[:, l]
    change = by_t * w
    change[0] += by_a * u[..., pairs[0]]
    change[1] += by_b * u[..., pairs[1]]
    return Entries(jets.own.gradient[0, l] * u, change)


def propagators(chain: GramChain) -> Entries:
    """N ⟨C^(l) C̃^(m)⟩ of the (αβ) <- (αβ) entries, shape (L + 2, L + 2, ...)."""
    size = chain.network.depth + 2
    columns = []
    for jet_C, jet_s, e in zip(chain.slopes, chain.stream_jets, (0, 2), strict=True):
        gains, s = jet_C.gradient[e], jet_s.gradient[e]
        first = np.zeros((1, *gains.shape[1:]))
        skips = _skips(chain) * s[:-1]
        sources = np.zeros((size, size, *gains.shape[1:]))
        sources[range(size), range(size)] = 1.0
        parts = np.concatenate([first, skips, first]), np.concatenate([first, gains])
        columns.append(propagate(*parts, sources))
    return Entries(*columns)


def tangents(chain: GramChain, rates: Mapping[str, float]) -> Entries:
    """Θ^(l) of the stream and of the output, (L + 2, ...), for learning rates of each kind.

        Θ^(0) = K^(0),   Θ^(l) = (∂F_αβ/∂X_αβ) Θ^(l-1) + C^(l) + Σ_k (∂C/∂Q_k) Q_k

    at fixed variances, before the norm of a stream that is normalised: weights and biases of
    variance σ² are trained as σ w with w of variance one, those of a hidden signal add their part
    of Q_k, the outer ones theirs of C.
    """
    network, parameters = chain.network, chain.parameters
    bias = parameters["readin_bias_variance"]
    readout, coefficients = network.readout(parameters), network.layer(parameters)
    layers = []
    for own in (True, False):
        entries, averages = _unfixed(chain, own)
        s, read, signals = entries
        values = [average for average, _ in averages]
        gain = _skips(chain) * s.gradient[2][:-1]
        source = rates["outer_weight"] * coefficients.weight * math.prod(values)
        source = source + rates["outer_bias"] * coefficients.bias
        for k, (Q, name) in enumerate(zip(signals, network.signal_names, strict=True)):
            others = math.prod(values[:k] + values[k + 1 :])
            slope = coefficients.weight * averages[k][1] * others
            of_bias = network.signals(np.zeros_like(Q.value), parameters)[k]
            weights = rates[f"{name}_weight"] * (Q.value - of_bias)
            source = source + slope * (weights + rates.get(f"{name}_bias", 0.0) * of_bias)
            gain = gain + slope * Q.gradient[2]
        K0 = chain.inputs.own if own else chain.inputs.pair
        theta = [rates["readin_weight"] * (K0 - bias) + rates["readin_bias"] * bias]
        for step, added in zip(gain, source, strict=True):
            theta.append(step * theta[-1] + added)
        last = readout.weight * (
            read.gradient[2][-1] * theta[-1] + rates["readout_weight"] * read.value[-1]
        )
        last = last + rates["readout_bias"] * readout.bias
        layers.append(np.concatenate([s.gradient[2] * np.array(theta), last[None]]))
    return Entries(*layers)


def _unfixed(chain: GramChain, own: bool) -> tuple[tuple[Jet, Jet, list[Jet]], list[Any]]:
    """`Jet`s of s(X), of what is read and of Q_k, by X_αα, X_ββ and X_αβ also where α = β.

    With them ⟨φφ⟩ of the factors and ⟨φ'φ'⟩.
    """
    X, functions = chain.states[1], entry_functions(chain.network, one=False)
    places = [X.own[..., members] for members in chain.pairs] + [X.pair]
    whole = [X.own] * 3 if own else places
    before = [each[:-1] for each in whole]
    signals = [Q(before, chain.parameters) for Q in functions.signals]
    of_variances = [Q.own for Q in chain.entries("signals", chain.before, chain.parameters, 0)]
    averages = []
    for factor, Q, variance in zip(chain.functions, signals, of_variances, strict=True):
        if own:
            averages.append((factor.second_moment(Q.value), factor.slope_square(Q.value)))
        elif Q.value.size:
            a = chain.covariances(Entries(variance, Q.value))
            averages.append((factor.covariance(*a), factor.covariance_susceptibility(*a)))
        else:
            averages.append((Q.value, Q.value))
    stream, read = (of(whole, chain.parameters) for of in (functions.stream, functions.read))
    return (stream, read, signals), averages


def _skips(chain: GramChain) -> np.ndarray:
    """γ_l² of the layers 1, ..., L, shape (L, ..., 1)."""
    skip = chain.network.layer(chain.parameters).skip
    return np.broadcast_to(np.asarray(skip) ** 2, (chain.network.depth, *skip.shape[1:]))
