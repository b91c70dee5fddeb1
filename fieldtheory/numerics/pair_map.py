"""Output kernels and responses of many pairs of inputs, by interpolation.

All layers together map the covariance of two inputs to K_αβ^(L+1) and χ_αβ^out. For inputs of one
norm this is an analytic function of one variable, the angle θ = arccos(K_αβ/√(K_αα K_ββ)) of the
inputs; else of the angle and the two norms. It is interpolated at Chebyshev nodes,

    f(K_αα, K_ββ, θ) = Σ_ijk d_ijk T_i(u_α) T_j(u_β) T_k(x),    u linear in ln K, x linear in θ

where f is the correlation of the outputs, or its derivative by the correlation of the inputs;
both change little with the norms. Deep networks tell inputs at small angles apart on the scale of
the angle itself, so the angles are cut into pieces that halve towards 0 and π, in each of which
few nodes suffice. A piece is used where its coefficients have decayed and it agrees with the
recursion over the layers at some of the pairs asked for; all other pairs go through the recursion.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.polynomial.chebyshev import chebvander

from fieldtheory.networks.activations import h
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.interpolation import nodes, transform
from fieldtheory.numerics.kernels import output_covariances, variances

# Nodes in the angle, most nodes in a norm, and the last coefficients that show the decay.
_ANGLES = 25
_NORMS = 40
_TAIL = 3
# Allowed last coefficients, and differences from the recursion, relative to the largest value.
_DECAY = 1e-13
_ERROR = 5e-13
# Coefficients below are left out.
_SMALL = 1e-15
# Norms are equal if ln K spreads less.
_EQUAL = 1e-14
# Pieces with fewer pairs are left to the recursion, the first for inputs of one norm; so many
# pairs of the others are compared with it.
_FEWEST = 128
_FEWEST_OF_NORMS = 400
_COMPARED = 8
# With batch axes, fewer pairs go through the recursion, for all of the batch at once.
_FEWEST_OF_BATCH = 2000
# Angles below π/2 times two to the minus this are left to the recursion.
_HALVINGS = 24
# Pairs evaluated at a time, whose polynomials stay in the cache.
_CHUNK = 8192


def pair_outputs(
    network: LayeredNetwork, K: np.ndarray, K0: np.ndarray, pairs: tuple
) -> np.ndarray:
    """K^(L+1) and χ^out of pairs of inputs, shape (2, ..., number of pairs).

    They agree with `output_covariances` to 1e-12 of the largest value at similar angles, where
    that has as many digits itself.

    Parameters
    ----------
    network : LayeredNetwork
    K : ndarray, shape (L + 2, ..., P)
        Variances of the inputs in all layers.
    K0 : ndarray, shape (..., number of pairs)
        Covariances of the input.
    pairs : pair of ndarray
        Indices α and β of the pairs, α ascending.
    """
    batch, count = K.shape[1:-1], len(pairs[0])
    if count < (_FEWEST_OF_BATCH if batch else _FEWEST):
        return output_covariances(network, K, K0, pairs)
    if not batch:
        return _of_one_network(network, K, K0, pairs)
    K0 = np.broadcast_to(K0, (*batch, count))
    values = np.empty((2, *batch, count))
    for index in np.ndindex(batch):
        member = network.member(batch, index)
        every = (slice(None), *index)
        values[every] = _of_one_network(member, K[every], K0[index], pairs)
    return values


def _of_one_network(
    network: LayeredNetwork, K: np.ndarray, K0: np.ndarray, pairs: tuple
) -> np.ndarray:
    values = np.empty((2, len(K0)))
    whole = _PairMap.of(network, K[0])
    norms = whole.places(K[0])
    piece, place = _located(K[0], K0, pairs)
    members = {}
    for number, coefficients in whole.fits(np.bincount(piece)).items():
        (members[number],) = np.nonzero(piece == number)
        for part in _chunks(members[number]):
            chosen = pairs[0][part], pairs[1][part]
            values[:, part] = _evaluated(coefficients, norms, place[part], chosen)
            values[:, part] *= whole.scales(K, K0[part], chosen)
    known = np.zeros(piece.max() + 1, dtype=bool)
    known[_confirmed(whole, values, K, K0, pairs, members)] = True
    (left,) = np.nonzero(~known[piece])
    chosen = pairs[0][left], pairs[1][left]
    values[:, left] = output_covariances(network, K, K0[left], chosen)
    return values


def _confirmed(
    whole: _PairMap, values: np.ndarray, K: np.ndarray, K0: np.ndarray, pairs: tuple, members: dict
) -> list[int]:
    """The pieces in which the values of some pairs agree with the recursion."""
    samples = [inside[:: -(-len(inside) // _COMPARED)] for inside in members.values()]
    joined = np.concatenate([np.zeros(0, dtype=int), *samples])
    chosen = pairs[0][joined], pairs[1][joined]
    exact = output_covariances(whole.network, K, K0[joined], chosen)
    # Relative to the variances, as covariances may vanish.
    scales = whole.scales(K, np.sqrt(K[0][chosen[0]] * K[0][chosen[1]]), chosen)
    errors, sizes = np.abs([values[:, joined] - exact, exact] / scales)
    found, start = [], 0
    for number, sample in zip(members, samples, strict=True):
        part = slice(start, start := start + len(sample))
        if (errors[:, part].max(axis=1) <= _ERROR * sizes[:, part].max(axis=1)).all():
            found.append(number)
    return found


@dataclass(frozen=True)
class _PairMap:
    """The map of a network, for inputs with ln K between ``center`` ± ``half``."""

    network: LayeredNetwork
    center: float
    half: float

    @classmethod
    def of(cls, network: LayeredNetwork, K: np.ndarray) -> _PairMap:
        logs = np.log(K[K > 0]) if K.any() else np.zeros(1)
        half = float(np.ptp(logs)) / 2
        return cls(network, float(logs.min()) + half, half if half > _EQUAL else 0.0)

    def places(self, K: np.ndarray) -> np.ndarray:
        """ln K from -1 to 1; 0 for inputs that vanish, which are in no piece."""
        logs = np.log(K, where=K > 0, out=np.full(K.shape, self.center))
        return (logs - self.center) / self.half if self.half else np.zeros(K.shape)

    @cached_property
    def odd(self) -> bool:
        """Whether uncorrelated inputs have uncorrelated outputs, by symmetry."""
        phi, biases = self.network.activation, layer_coefficients(self.network).biases
        return not biases[1:].any() and (phi(h) + phi(-h)).expand() == 0

    def scales(self, K: np.ndarray, K0: np.ndarray, pairs: tuple) -> np.ndarray:
        """K_αβ^(L+1) and χ_αβ^out divided by f.

        For odd networks f is K_αβ^(L+1) divided by K_αβ^(0), since both vanish together.
        """
        first, second = pairs
        with np.errstate(divide="ignore", invalid="ignore"):
            gains = np.sqrt(K[-1] / K[0])
        joint = gains[first] * gains[second]
        return np.stack([joint * (K0 if self.odd else np.sqrt(K[0][first] * K[0][second])), joint])

    def sampled(
        self, norms: np.ndarray, alpha: Any, beta: Any, piece: Any, place: Any
    ) -> np.ndarray:
        """f where two norms are ``norms[alpha]``, ``norms[beta]`` and the angle is at ``place``."""
        K = variances(self.network, np.exp(self.center + self.half * norms))[1]
        grid = np.broadcast_arrays(alpha, beta, piece, place)
        first, second, number, inside = (axis.ravel() for axis in grid)
        halvings, mirrored = np.divmod(number - 1, 2)
        cosine = (1 - 2 * mirrored) * np.cos(np.ldexp(np.pi * (3 + inside) / 8, -halvings))
        K0, pairs = cosine * np.sqrt(K[0][first] * K[0][second]), (first, second)
        with np.errstate(divide="ignore", invalid="ignore"):
            values = output_covariances(self.network, K, K0, pairs) / self.scales(K, K0, pairs)
        return values.reshape(2, *grid[0].shape)

    def fits(self, counts: np.ndarray) -> dict[int, np.ndarray]:
        """Coefficients d of f for pieces with many pairs, shape (2, norms, norms, angles).

        Left out are pieces whose coefficients do not decay, or that have more nodes than pairs.
        """
        pieces = 1 + np.flatnonzero(counts[1:] >= (_FEWEST_OF_NORMS if self.half else _FEWEST))
        size = self.norm_count(pieces) if self.half and len(pieces) else 1
        lower, upper = np.triu_indices(size)
        if size > 1:
            pieces = pieces[counts[pieces] > 2 * _ANGLES * len(lower)]
        if not len(pieces) or size > _NORMS:
            return {}
        grid = lower[:, None], upper[:, None], pieces[:, None, None], nodes(_ANGLES)
        values = np.empty((len(pieces), 2, size, size, _ANGLES))
        half = np.moveaxis(self.sampled(nodes(size), *grid), 0, 1)
        values[:, :, lower, upper] = values[:, :, upper, lower] = half
        norm, angle = transform(size), transform(_ANGLES)
        found = {}
        for number, f in zip(pieces.tolist(), values, strict=True):
            d = np.einsum("ai,bj,fijk,ck->fabc", norm, norm, f, angle, optimize=True)
            tails = [d[..., -_TAIL:], d[:, -1:]] if size > 1 else [d[..., -_TAIL:]]
            limit = _DECAY * np.abs(f).max(axis=(1, 2, 3))
            if all((np.abs(tail).max(axis=(1, 2, 3)) <= limit).all() for tail in tails):
                found[number] = d[..., : _length(d, _SMALL)]
        return found

    def norm_count(self, pieces: np.ndarray) -> int:
        """Nodes needed in a norm, the other at either end and the angle amid the pieces."""
        norms = np.concatenate([nodes(_NORMS), [-1.0, 1.0]])
        ends = _NORMS + np.arange(2)
        f = self.sampled(norms, np.arange(_NORMS), ends[:, None, None], pieces[:, None], 0.0)
        return _length(f @ transform(_NORMS).T, _DECAY) + 1


def _located(K: np.ndarray, K0: np.ndarray, pairs: tuple) -> tuple[np.ndarray, np.ndarray]:
    """The piece of every pair, 0 for none, and where in it the angle lies, from -1 to 1.

    Pieces 1, 3, 5, ... are [π/4, π/2], [π/8, π/4], ...; 2, 4, 6, ... mirror them at π/2.
    """
    inverse = np.divide(1, np.sqrt(K), out=np.zeros(K.shape), where=K > 0)
    correlation = K0 * inverse[pairs[0]]
    correlation *= inverse[pairs[1]]
    angle = np.arccos(np.minimum(np.abs(correlation), 1))
    # Kept below one, so that orthogonal inputs are in a piece.
    fraction, exponent = np.frexp(np.minimum(angle * (2 / np.pi), 1 - 2**-53))
    piece = 1 - 2 * exponent + (correlation < 0)
    piece[(angle == 0) | (exponent <= -_HALVINGS)] = 0
    vanishing = K == 0
    if vanishing.any():
        piece[vanishing[pairs[0]] | vanishing[pairs[1]]] = 0
    return piece, 4 * fraction - 3


def _evaluated(
    coefficients: np.ndarray, norms: np.ndarray, place: np.ndarray, pairs: tuple
) -> np.ndarray:
    """f of pairs in a piece, shape (2, number of pairs)."""
    _, size, _, count = coefficients.shape
    T = chebvander(place, count - 1).T
    if size == 1:
        return coefficients[:, 0, 0] @ T
    U = chebvander(norms, size - 1)
    by_first = coefficients.transpose(1, 0, 3, 2).reshape(size, -1)
    values = np.empty((2, len(place)))
    edges = np.flatnonzero(np.diff(pairs[0], prepend=-1, append=-1))
    for start, stop in pairwise(edges):
        row = (U[pairs[0][start]] @ by_first).reshape(2 * count, size)
        sums = (row @ U[pairs[1][start:stop]].T).reshape(2, count, -1)
        values[:, start:stop] = np.einsum("fkb,kb->fb", sums, T[:, start:stop])
    return values


def _chunks(index: np.ndarray) -> list[np.ndarray]:
    return [index[start : start + _CHUNK] for start in range(0, len(index), _CHUNK)]


def _length(coefficients: np.ndarray, limit: float) -> int:
    """How many coefficients on the last axis exceed ``limit`` times the largest."""
    size = np.abs(coefficients)
    large = size > limit * size.max(axis=-1, keepdims=True)
    return 1 + int(np.nonzero(large.any(axis=tuple(range(size.ndim - 1))))[0].max(initial=0))
