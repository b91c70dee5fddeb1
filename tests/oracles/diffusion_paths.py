"""Identity residual networks with small parameters and their diffusions, drawn one by one.

Parameters are drawn as they are defined: W and b of every layer, entry by entry, in plain loops
over layers. Paths are arrays (samples, L + 1, P, D).
"""

import numpy as np


def iid(width, weight_variance, bias_variance):
    """A function that draws W (D, D) and b (D,) over √Δt, of a given number of networks."""

    def draw(rng, samples):
        W = rng.normal(size=(samples, width, width)) * (weight_variance / width) ** 0.5
        return W, rng.normal(size=(samples, width)) * bias_variance**0.5

    return draw


def gaussian(weight_covariance, bias_covariance):
    """The same for vec(W), columns one below the other, of any covariance."""
    width = len(bias_covariance)

    def draw(rng, samples):
        vec = rng.multivariate_normal(np.zeros(width**2), weight_covariance, size=samples)
        W = vec.reshape(samples, width, width).swapaxes(1, 2)
        return W, rng.multivariate_normal(np.zeros(width), bias_covariance, size=samples)

    return draw


def network(phi, psi, start, depth, horizon, draw, samples, seed, drift=(0.0, 0.0)):
    """x_{l+1} = x_l + φ(W ψ(x_l) + b); drift are the means of W and b per unit of time."""
    return _path(lambda u, features: phi(u), psi, start, depth, horizon, draw, samples, seed, drift)


def diffusion(slope, curvature, variance, psi, start, depth, horizon, *rest):
    """Euler's steps of dx = φ'(0) (dW ψ + db) + φ''(0)/2 Var dt; variance(ψ) of ε^W ψ + ε^b."""
    half = curvature / 2 * horizon / depth

    def step(u, features):
        return slope * u + half * variance(features)

    return _path(step, psi, start, depth, horizon, *rest)


def _path(added, psi, start, depth, horizon, draw, samples, seed, drift=(0.0, 0.0)):
    rng = np.random.default_rng(seed)
    step = horizon / depth
    x = np.tile(np.asarray(start, float), (samples, 1, 1))
    path = [x]
    for _ in range(depth):
        W, b = (
            step**0.5 * e + step * mean for e, mean in zip(draw(rng, samples), drift, strict=True)
        )
        features = psi(x)
        x = x + added(np.einsum("nde,npe->npd", W, features) + b[:, None], features)
        path.append(x)
    return np.stack(path, axis=1)


def statistics(path, start, psi):
    """The quantities that networks have, as samples (n, ...) of which the mean counts.

    ``mean`` (P,) over the neurons, ``gram`` (P, P) and its products, centred products of x − its
    mean, all of the last layer.
    """
    x = path[:, -1]
    centred = x - x.mean(axis=0)
    features = psi(x)
    width = x.shape[-1]
    gram = np.einsum("npd,nqd->npq", features, features) / width
    return {
        "mean": x.mean(axis=-1),
        "covariance": np.einsum("npd,nqd->npq", centred, centred) / width,
        "gram": gram,
        "gram_variance": (gram - gram.mean(axis=0)) ** 2,
    }
