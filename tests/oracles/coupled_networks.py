"""Coefficients of 1/N of finite networks, each drawn with one whose kernels do not fluctuate.

A network h and its companion g have the same normals ξ:

    h^(l) = γ h^(l-1) + R ξ^(l),  R Rᵀ = C^(l),        g^(l) = γ g^(l-1) + S ξ^(l),  S Sᵀ = C*^(l)

with the explicit weights W of h, ξ = R⁻¹ (W φ(h) + b). The neurons of the companion are
independent of each other, and A = a φ(g) φ(g)ᵀ + c − C* has no mean. So averages over neurons Ā,
and Ā B̄ without the terms of one neuron alone, have no mean for any B, and what they tell of C − C*
is subtracted. B is what A changes by if S does.
"""

from itertools import combinations_with_replacement, product
from typing import NamedTuple

import numpy as np

# Numbers drawn at once, and by how much signals are moved for a slope.
_BLOCK, _STEP = 400_000, 1e-4


class Coefficients(NamedTuple):
    """Of 1/N, each (batches, ...), pairs of inputs in the order of `np.triu_indices`.

    ``mean_shift`` (L + 1, p) and ``covariance`` ((L + 1) p, (L + 1) p) of C^(1), ..., C^(L+1),
    ``vertex`` (L, p, p) of h^(1), ..., h^(L).
    """

    mean_shift: np.ndarray
    covariance: np.ndarray
    vertex: np.ndarray


def extrapolated(few, many, N, more):
    """Without the next order in 1/N, from networks of two widths."""
    both = zip(few, many, strict=True)
    return Coefficients(*((more * large - N * small) / (more - N) for small, large in both))


def coefficients(phi, a, c, gamma, C, N, samples, seed, explicit=True, batches=40):
    """Of networks with the weights a, biases c (L + 2,) and the kernels C* (L + 2, P, P)."""
    rng, size = np.random.default_rng(seed), samples // batches * batches
    step = max(1, _BLOCK // N ** (2 if explicit else 1))
    starts = range(0, size, step)
    parts = [
        _drawn(phi, a, c, gamma, C, N, min(step, size - start), rng, explicit) for start in starts
    ]
    values, controls = (np.concatenate(part) for part in zip(*parts, strict=True))
    # Slopes of other networks, so that they do not depend on what they are used for.
    halves = slice(0, size // 2), slice(size // 2, size)
    left = [
        values[one] - controls[one] @ _slopes(controls[other], values[other])
        for one, other in (halves, halves[::-1])
    ]
    values = np.concatenate(left).reshape(batches, -1, values.shape[1]).mean(axis=1)
    p, depth = C.shape[-1] * (C.shape[-1] + 1) // 2, len(C) - 2
    cuts = np.cumsum([(depth + 1) * p, ((depth + 1) * p) ** 2, depth * p])
    mean, square, own, pairs = np.split(values, cuts, axis=1)
    covariance = square.reshape(batches, -1, (depth + 1) * p) - mean[:, :, None] * mean[:, None]
    own = own.reshape(batches, depth, p)
    vertex = pairs.reshape(batches, depth, p, p) - own[..., :, None] * own[..., None, :]
    return Coefficients(N * mean.reshape(batches, depth + 1, p), N * covariance, N * vertex)


def _slopes(controls, values):
    apart = values - values.mean(axis=0)
    return np.linalg.lstsq(controls.T @ controls, controls.T @ apart, rcond=1e-10)[0]


def _drawn(phi, a, c, gamma, C, N, count, rng, explicit):
    """What is averaged, of every network, and what has no mean.

    C − C* and its products, h_α h_β − K* and the products of this of two neurons, as expected from
    the layer before, in which all neurons are independent.
    """
    (i, j), depth = np.triu_indices(C.shape[-1]), len(C) - 2
    h = g = rng.standard_normal((count, N, C.shape[-1])) @ np.linalg.cholesky(C[0]).T
    K, rest, own, pairs, A, B, normals = C[0], [], [], [], [], [], []
    for l in range(1, depth + 2):
        active, of_companion = phi(h), phi(g)
        kernel = a[l] * np.swapaxes(active, 1, 2) @ active / N + c[l]
        rest.append((kernel - C[l])[:, i, j])
        A.append(a[l] * of_companion[..., i] * of_companion[..., j] + (c[l] - C[l])[i, j])
        slope = (phi(g + _STEP) - phi(g - _STEP)) / (2 * _STEP)
        moved = np.einsum("snp,snq->snpq", slope, of_companion).reshape(count, N, -1)
        for layer, xi in enumerate(normals):
            bent = np.einsum("snp,snq->snpq", moved, xi)
            B.append((layer, bent.reshape(count, N, -1)))
        if l > depth:
            break
        expected = gamma**2 * h[..., i] * h[..., j] + kernel[:, None, i, j]
        expected -= (gamma**2 * K + C[l])[i, j]
        total = expected.sum(axis=1)
        own.append(total / N)
        alone = np.swapaxes(expected, 1, 2) @ expected
        pairs.append((total[:, :, None] * total[:, None] - alone) / (N * (N - 1)))
        root = np.linalg.cholesky(kernel)
        if explicit:
            W = rng.standard_normal((count, N, N)) * np.sqrt(a[l] / N)
            residual = W @ active + rng.standard_normal((count, N, 1)) * np.sqrt(c[l])
            xi = np.swapaxes(np.linalg.solve(root, np.swapaxes(residual, 1, 2)), 1, 2)
        else:
            xi = rng.standard_normal(h.shape)
            residual = xi @ np.swapaxes(root, 1, 2)
        normals.append(xi)
        h, g = gamma * h + residual, gamma * g + xi @ np.linalg.cholesky(C[l]).T
        K = gamma**2 * K + C[l]
    found = np.concatenate(rest, axis=1)
    products = (found[:, :, None] * found[:, None]).reshape(count, -1)
    values = [found, products, *own, *(part.reshape(count, -1) for part in pairs)]
    controls = [part.mean(axis=1) for part in A]
    controls += [_of_two(*two) for two in combinations_with_replacement(A, 2)]
    ordered = product(enumerate(A), B)
    controls += [_of_two(one, other) for (k, one), (layer, other) in ordered if k <= layer]
    return np.concatenate(values, axis=1), np.concatenate(controls, axis=1)


def _of_two(A, B):
    """Σ A_i B_j over different neurons, by N²."""
    count, N = A.shape[:2]
    both = A.sum(axis=1)[:, :, None] * B.sum(axis=1)[:, None] - np.swapaxes(A, 1, 2) @ B
    return both.reshape(count, -1) / N**2
