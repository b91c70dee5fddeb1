"""Inputs that nothing but the rounding of K0 tells apart, as φ that jumps sees them: the same.

Jumps see the angle between signals, the root of 1 − c: what K0 leaves of it by rounding, 1e-16,
would be 1e-8 in all that fluctuates, and slopes of 1e8.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.kinks.kinked_features import is_odd
from fieldtheory.numerics.layer_averages.parallel_signals import ROUNDING
from fieldtheory.numerics.observables.pair_observables import kinked_features, places_of_jumps
from fieldtheory.numerics.several_inputs.pair_fluctuations import PairGains


def made_one(
    network: LayeredNetwork, gains: PairGains, K: np.ndarray, C: np.ndarray
) -> tuple[PairGains, np.ndarray, np.ndarray]:
    """Gains and kernels (L + 1, P, P) of inputs of which equal ones are one.

    Opposite ones of odd φ are, up to the sign, if no biases move them apart.
    """
    if not places_of_jumps(network):
        return gains, K, C
    stay_opposite = (
        is_odd(kinked_features(network)) and not layer_coefficients(network).biases.any()
    )
    of, sign = _first_of_each(K[0], stay_opposite)
    if (of == np.arange(len(of))).all():
        return gains, K, C
    signs = np.outer(sign, sign)
    K, C = (kernel[:, of][:, :, of] * signs for kernel in (K, C))
    _, _, alpha, beta = gains.places
    same = of[alpha] == of[beta]
    pair = np.where(same, gains.own[:, of[alpha]], gains.pair)
    first, second = (np.where(same, 0.0, gain) for gain in (gains.first, gains.second))
    return replace(gains, own=gains.own[:, of], pair=pair, first=first, second=second), K, C


def _first_of_each(K0: np.ndarray, odd: bool) -> tuple[np.ndarray, np.ndarray]:
    """The first input that each is, (P,), and the sign between them.

    Examples
    --------
    >>> K0 = np.array([[1.0, -1.0, 0.5], [-1.0, 1.0, -0.5], [0.5, -0.5, 1.0]])
    >>> [part.tolist() for part in _first_of_each(K0, True)]
    [[0, 0, 2], [1.0, -1.0, 1.0]]
    """
    own = np.diagonal(K0)
    sums, allowed = own[:, None] + own, ROUNDING * np.minimum.outer(own, own)
    same, opposite = (np.abs(sums - 2 * side * K0) <= allowed for side in (1, -1))
    of = np.argmax(same | (opposite & odd), axis=1)
    sign = np.where(same[np.arange(len(of)), of], 1.0, -1.0)
    return of, sign
