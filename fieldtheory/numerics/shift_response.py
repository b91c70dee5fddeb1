"""Derivatives of mean shifts by the kernel of the input, from differences whose error is checked.

The shift of an entry is a function of that entry of K0, at fixed variances: smooth in ln K_αα, and
in s, K_αβ = ±(1 − s²) √(K_αα K_ββ), at whose end φ with kinks have powers s³. Six values give the
derivative to 1e-8 where four of them agree to 1e-4; else closer ones are taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.infinite_width.block_functions import network_functions
from fieldtheory.numerics.infinite_width.mean_field import MeanField
from fieldtheory.numerics.one_input import OneTheory
from fieldtheory.numerics.several_inputs.pair_theory import PairTheory, error_of
from fieldtheory.numerics.symmetric_matrices import assembled

# Distances of two values in ln K or s, and the places of the six in them, inner ones last.
_DISTANCES, _PLACES = (0.05, 0.0125, 0.003), np.array([-3.0, 3.0, -2.0, -1.0, 1.0, 2.0])
# By how much six and four values may differ, and from where on they say nothing, relative to the
# derivative and to this share of the response.
_AGREE, _UNRESOLVED, _SHARE = 1e-4, 1e-2, 1e-5

# The shifts of entries (e,), shape (n, layers, e): values, and deviations as in `PairTheory`.
Shift = Callable[[np.ndarray], np.ndarray]


class _Stencil(NamedTuple):
    """Values of entries, and the weights of the shifts there, of all six and of four, (6, e)."""

    entries: np.ndarray
    six: np.ndarray
    four: np.ndarray


def by_variances(shift: Shift, K: np.ndarray, size: np.ndarray) -> np.ndarray:
    """∂ of the shifts by variances K (e,), of about the size (layers, e)."""
    if not (K > 0).all():
        raise ValueError(f"K0 must have positive variances for response_shift, got {K.min():.6g}")

    def stencil(distance: float) -> _Stencil:
        entries = K * np.exp(distance * _PLACES[:, None])
        powers = np.arange(len(_PLACES))
        weights = _weights(_PLACES, powers, np.equal(powers, 1) / distance)
        return _Stencil(entries, *(each[:, None] / K for each in weights))

    return _derivative(shift, stencil, size)


def by_covariances(
    shift: Shift, K: np.ndarray, largest: np.ndarray, jumps: bool, size: np.ndarray
) -> np.ndarray:
    """∂ of the shifts by covariances K (e,), at most ``largest``, of φ that jump or not."""
    if not (largest > 0).all():
        raise ValueError("K0 must have positive variances for response_shift, got one of 0")
    sign = np.where(K < 0, -1.0, 1.0)
    s = np.sqrt(np.maximum(1 - np.abs(K) / largest, 0.0))
    if jumps and not s.all():
        raise ValueError("K0 must have no parallel inputs for response_shift of φ with jumps")
    # There is no s of first order without jumps.
    powers = np.arange(7)[[0, 2, 3, 4, 5, 6]] if not jumps else np.arange(6)

    def stencil(distance: float) -> _Stencil:
        # All at least half a distance from the end.
        middle = np.maximum(s / distance, 0.5 - _PLACES.min())
        places = middle + _PLACES[:, None]
        weights = []
        for at, each in zip(s / distance, places.T, strict=True):
            slope = -powers / 2 * np.where(powers > 0, at, 1.0) ** np.maximum(powers - 2.0, -1.0)
            weights.append(_weights(each, powers, slope / distance**2))
        entries = sign * largest * (1 - (distance * places) ** 2)
        six, four = np.moveaxis(np.array(weights), 0, -1) * sign / largest
        return _Stencil(entries, six, four)

    return _derivative(shift, stencil, size)


def _weights(x: np.ndarray, powers: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Weights of values at x, of all and of the last four, that give each power its slope."""
    weights = np.zeros((2, len(x)))
    for row, count in zip(weights, (len(x), 4), strict=True):
        at, scale = x[-count:], np.abs(x[-count:]).max() ** powers[:count]
        matrix = at[None] ** powers[:count, None] / scale[:, None]
        row[-count:] = np.linalg.solve(matrix, slopes[:count] / scale)
    return weights


def _derivative(shift: Shift, stencil: Callable[[float], _Stencil], size: np.ndarray) -> np.ndarray:
    best, least = np.zeros((1, *size.shape)), np.full(size.shape[-1], np.inf)
    for distance in _DISTANCES:
        entries, six, four = stencil(distance)
        values = [shift(each) for each in entries]
        most = max(map(len, values))
        padded = [np.pad(each, ((0, most - len(each)), (0, 0), (0, 0))) for each in values]
        found, rough = (np.einsum("je,jnle->nle", w, padded) for w in (six, four))
        scale = np.maximum.accumulate(np.abs(found[0]) + _SHARE * np.abs(size))
        apart = np.abs(found - rough)[0]
        change = np.divide(apart, scale, out=np.zeros_like(scale), where=apart > 0).max(axis=0)
        better = change < least
        rows = max(len(best), most)
        best, found = (np.pad(x, ((0, rows - len(x)), (0, 0), (0, 0))) for x in (best, found))
        best, least = np.where(better, found, best), np.where(better, change, least)
        if (least <= _AGREE).all():
            break
    if (least > _UNRESOLVED).any():
        raise QuadratureError(
            f"response_shift: differences of the mean shift at two distances differ by "
            f"{least.max():.1g}, allowed is {_UNRESOLVED:.0e}"
        )
    return best


def of_one(network: LayeredNetwork, K0: np.ndarray, chi: np.ndarray) -> np.ndarray:
    """∂ of the mean shifts of C^(l) by the variances K0 (e,), of the size ``chi`` (L + 2, e)."""

    def shift(K: np.ndarray) -> np.ndarray:
        each = [OneTheory(network, MeanField(network, k)).mean_shift for k in K]
        return network.width * np.stack(each, axis=-1)[None]

    return by_variances(shift, K0, chi)[0] / network.width


def of_pairs(
    network: LayeredNetwork, K0: np.ndarray, own_shift: np.ndarray, chi: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same by every entry of a matrix K0, each alone, and its errors, (L + 2, P, P)."""
    own, pairs = np.diagonal(K0), np.triu_indices(len(K0), 1)
    diagonal = np.arange(len(K0))
    variances = of_one(network, own, chi[:, diagonal, diagonal])
    if not len(pairs[0]):
        return variances[..., None], np.zeros((*variances.shape, 1))

    def shift(K: np.ndarray) -> np.ndarray:
        field = MeanField(network, assembled(own, K, pairs))
        return PairTheory.of(network, field, False).shift_of_pairs(own_shift)

    largest = np.sqrt(own[pairs[0]] * own[pairs[1]])
    jumps = any(len(psi.jumping) for psi in network_functions(network).functions)
    estimate = by_covariances(shift, K0[pairs], largest, jumps, chi[:, *pairs])
    values, error = estimate[0] / network.width, error_of(estimate) / network.width
    return assembled(variances, values, pairs), assembled(0 * variances, error, pairs)
