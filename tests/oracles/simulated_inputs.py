"""The order 1/N of three inputs from finite networks of two widths, in NumPy alone.

Beside every network runs one whose residuals have the covariances of infinite width and the same
noise. What its kernels do has known averages, and what is left of the others is of order 1/N.
"""

from functools import partial

import numpy as np

I, J = np.triu_indices(3)


def coefficients(phi, kernels, weights, biases, gamma, widths, samples, seed, chunk=500):
    """Coefficients of 1/N at N → ∞ of ⟨C⟩ − C*, Cov(C, C) and the four-point vertex of layer L.

    ``kernels`` (L + 2, 3, 3) are C*, ``weights`` and ``biases`` (L + 2,) those of every layer, the
    first unused. Two ``widths``; the term of relative order 1/N is eliminated. Pairs are ordered
    as np.triu_indices has them. Independent estimates, shapes (n, L + 1, 6),
    (n, L + 1, 6, L + 1, 6) and (n, 6, 6).
    """
    estimates = []
    for N in widths:
        rng = np.random.default_rng([seed, N])
        draw = partial(_draw, phi, kernels, weights, biases, gamma, N, chunk, rng)
        pilot = [draw() for _ in range(8)]
        apart = np.concatenate([seen[0] for seen in pilot])
        free = np.concatenate([seen[1] for seen in pilot])
        squares = np.concatenate([_with_squares(seen[1], seen[2] / N) for seen in pilot])
        controls = np.linalg.lstsq(free, apart, rcond=1e-6)[0]
        further = np.linalg.lstsq(squares, apart - apart.mean(axis=0), rcond=1e-6)[0]
        rows = []
        for _ in range(samples // chunk):
            apart, free, of_neurons, vertex = draw()
            squares = _with_squares(free, of_neurons / N)
            shift = N * (apart - squares @ further).mean(axis=0)
            left = of_neurons - N * np.cov(free.T)
            covariance = N * np.cov(apart.T) + controls.T @ left @ controls
            rows.append(np.concatenate([shift, covariance.ravel(), vertex.ravel()]))
        estimates.append(np.array(rows))
    narrow, wide = estimates
    ratio, layers = widths[1] / widths[0], len(kernels) - 1
    values = (ratio * wide - narrow) / (ratio - 1)
    shapes = [(layers, 6), (layers, 6, layers, 6), (6, 6)]
    parts = np.split(values, np.cumsum([np.prod(shape) for shape in shapes])[:-1], axis=1)
    return [part.reshape(-1, *shape) for part, shape in zip(parts, shapes, strict=True)]


def _with_squares(x, covariance):
    """x and its products apart from their averages."""
    i, j = np.triu_indices(x.shape[1])
    return np.concatenate([x, x[:, i] * x[:, j] - covariance[i, j]], axis=1)


def _draw(phi, kernels, weights, biases, gamma, N, count, rng):
    """C − C* of all layers, the same without feedback, N times its covariance, and the vertex."""
    flat = kernels[:, I, J]
    shape = (count, 3, N)
    h = free = np.linalg.cholesky(kernels[0]) @ rng.standard_normal(shape)
    apart, alone, features = [], [], []
    K = flat[0]
    for l in range(1, len(kernels)):
        products = [phi(x)[:, I] * phi(x)[:, J] for x in (h, free)]
        C = weights[l] * products[0].mean(axis=2) + biases[l]
        features.append(weights[l] * products[1] + biases[l] - flat[l][:, None])
        apart.append(C - flat[l])
        alone.append(features[-1].mean(axis=2))
        if l == len(kernels) - 1:
            break
        K = gamma**2 * K + flat[l]
        if l == len(kernels) - 2:
            # Given the layers before, neurons are independent: products are averaged over noise.
            u = gamma**2 * h[:, I] * h[:, J] + (C - K)[:, :, None]
            S = u.sum(axis=2)
            same = np.tensordot(u, u, axes=([0, 2], [0, 2])) / count
            mean = np.outer(S.mean(axis=0), S.mean(axis=0)) - np.cov(S.T) / count
            vertex = (S.T @ S / count - same) / (N - 1) - mean / N
        noise = rng.standard_normal(shape)
        full = np.empty((count, 3, 3))
        full[:, I, J] = full[:, J, I] = C
        h = gamma * h + np.linalg.cholesky(full) @ noise
        free = gamma * free + np.linalg.cholesky(kernels[l]) @ noise
    every = np.concatenate(features, axis=1).transpose(1, 0, 2).reshape(6 * len(features), -1)
    return (
        *(np.concatenate(x, axis=1) for x in (apart, alone)),
        every @ every.T / (count * N),
        vertex,
    )
