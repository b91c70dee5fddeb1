"""The law of the mean square behind a branch over the weights of the branch."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from fieldtheory.averages.quadrature.compiled import function_of
from fieldtheory.networks.activations import h
from fieldtheory.networks.gram import GramEntry, GramNetwork

# Nodes of u and their bound in deviations, beyond which a signal is with probability 1e-19.
_NODES, _BOUND = 401, 9.0
# Points of the sum over units; one of these is beyond so many deviations with 1e-12.
_POINTS, _JUMP = 4096, 7.0
# Deviation in points of what smooths the sum; the last points are those that this puts below it.
_SMOOTH, _BELOW = 2.0, 200
# Rounding of a probability on the points, and the least of a tail and of a variance.
_ROUNDING, _LEAST = 1e-14, 1e-300


def score_behind(network: Any, before: float, behind: float) -> float:
    """z of the mean square behind a branch of a network of one layer, given that before it."""
    C, shares = _branch_variances(network, before)
    n = network.width - getattr(network, "centred", False)
    skip = float(np.ravel(network.parameters["skip_scale"])[0])
    noncentral = network.width * skip**2 * before / C
    total, double = n + noncentral, n + 2 * noncentral
    root = 1 - 2 * total * (n + 3 * noncentral) / (3 * double**2)
    q, m = double / total**2, (root - 1) * (1 - 3 * root)
    centre = 1 + root * q * (root - 1 - (2 - root) * m * q / 2)
    power = (network.width * behind / C / total) ** root
    z = (power - centre) / (root * (2 * q) ** 0.5 * (1 + m * q / 2))
    above, below = shares @ ndtr(-z), shares @ ndtr(z)
    return float(-ndtri(max(above, _LEAST)) if above < below else ndtri(max(below, _LEAST)))


def _branch_variances(network: Any, before: float) -> tuple[np.ndarray, np.ndarray]:
    """Variances of a branch given its hidden units, and their probabilities."""
    p, R = network.parameters, np.array(before)
    a, c = (float(np.ravel(x)[0]) for x in network.layer(p)[:2])
    is_gram, M, signals = isinstance(network, GramNetwork), network.width, (R,)
    if is_gram:
        M, signals = network.hidden_width, network.signals(network.read(GramEntry(R, R, R), p), p)
    variance, *gate = (float(np.ravel(each)[0]) for each in signals)
    z = np.linspace(-_BOUND, _BOUND, _NODES)
    weights = np.exp(-(z**2) / 2) / np.exp(-(z**2) / 2).sum()
    squares = function_of(network.activation.expression, h)(z * variance**0.5) ** 2
    kurtosis, jump = 1.0, np.where(abs(z) < _JUMP, 1.0, 0.0)
    if gate:
        # The square of a gate is that of a normal number.
        squares = squares * gate[0]
        kurtosis, jump = 3.0, np.maximum(_JUMP**2 - z**2, 0.0)
    elif not is_gram:
        # Units of the stream, whose mean square is given.
        squares = squares - (weights @ ((z**2 - 1) * squares)) / 2 * (z**2 - 1)
    least = 0.0 if gate else float(squares.min())
    squares = squares - least
    mean = float(weights @ squares)
    spread = max(kurtosis * float(weights @ squares**2) - mean**2, 0.0) ** 0.5
    length = M * mean + 2 * _JUMP * M**0.5 * spread + (squares * jump).max()
    if not a * length:
        return np.array([max(c + a * least, _LEAST**0.5)]), np.ones(1)
    step = length / (_POINTS - _BELOW)
    t = 2 * np.pi / (_POINTS * step) * np.arange(_POINTS // 2 + 1)
    phases = np.outer(t, 1j * squares)
    psi = ((1 - 2 * phases) ** -0.5 if gate else np.exp(phases)) @ weights
    smooth = np.exp(-((_SMOOTH * step * t) ** 2) / 2)
    shares = np.fft.irfft(np.conj(psi) ** M * smooth, _POINTS)
    sums = step * np.arange(_POINTS)
    C = c + a * (least + np.where(sums > length, 0.0, sums) / M)
    kept = shares > _ROUNDING
    return np.maximum(C[kept], _LEAST**0.5), shares[kept] / shares[kept].sum()
