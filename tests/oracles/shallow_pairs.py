"""One hidden layer and two inputs at order 1/N, by dense panels that end where phi has kinks.

Signals h = (h_1, h_2) of the input, D_a their products phi phi, a = 11, 22, 12; the next signals
are gamma h + u with u ~ N(0, C), C_a = a_1 <D_a> + c_1. Derivatives by C and K are those of the
Gaussian densities (scores), never of phi, so that phi may jump anywhere. Inputs may be parallel.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

PAIRS = ((0, 0), (1, 1), (0, 1))
REACH = 8.8


def panels(cuts, width, order):
    """Nodes and weights on [-REACH, REACH], panels ended at cuts (..., k), shape (..., n)."""
    x, w = np.polynomial.legendre.leggauss(order)
    base = np.linspace(-REACH, REACH, int(np.ceil(2 * REACH / width)) + 1)
    cuts = np.clip(cuts, -REACH, REACH)
    base = np.broadcast_to(base, (*cuts.shape[:-1], len(base)))
    edges = np.sort(np.concatenate([base, cuts], axis=-1), axis=-1)
    low, high = edges[..., :-1, None], edges[..., 1:, None]
    z = (low + high) / 2 + (high - low) / 2 * x
    weights = (high - low) / 2 * w * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    shape = (*cuts.shape[:-1], -1)
    return z.reshape(shape), weights.reshape(shape)


def plane(K, means, kinks, width, order):
    """Signals (..., n, 2) around means (..., 2) and weights (..., n) of N(means, K)."""
    first = np.sqrt(K[0, 0])
    along, left = K[0, 1] / first, K[1, 1] - K[0, 1] ** 2 / K[0, 0]
    across = np.sqrt(left) if left > 1e-15 * K[1, 1] else 0.0
    m, places = means[..., None, :], np.asarray(kinks, dtype=float)
    cuts = (places - m[..., 0]) / first
    if not across:
        both = np.concatenate([cuts, (places - m[..., 1]) / along], axis=-1)
        z, w = panels(both, width, order)
        return np.stack([m[..., 0] + first * z, m[..., 1] + along * z], axis=-1), w
    z, w = panels(cuts, width, order)
    x = m[..., 0] + first * z
    mean = m[..., 1] + along * z
    v, of_v = panels((places - mean[..., None]) / across, width, order)
    y = mean[..., None] + across * v
    x = np.broadcast_to(x[..., None], y.shape)
    shape = (*means.shape[:-1], -1)
    joint = (w[..., None] * of_v).reshape(shape)
    return np.stack([x.reshape(shape), y.reshape(shape)], axis=-1), joint


def scores(K, u):
    """dp/dK_a / p of N(0, K) at u (..., 2) for a = 11, 22, 12, shape (3, ...)."""
    inverse = np.linalg.inv(K)
    v = u @ inverse
    return np.array(
        [
            (v[..., 0] ** 2 - inverse[0, 0]) / 2,
            (v[..., 1] ** 2 - inverse[1, 1]) / 2,
            v[..., 0] * v[..., 1] - inverse[0, 1],
        ]
    )


def second_scores(K, u):
    """d²p/dK_a dK_b / p, shape (3, 3, ...)."""
    inverse, one = np.linalg.inv(K), scores(K, u)
    v = u @ inverse
    E = np.zeros((3, 2, 2))
    E[0, 0, 0] = E[1, 1, 1] = E[2, 0, 1] = E[2, 1, 0] = 1
    found = np.einsum("a...,b...->ab...", one, one)
    for a in range(3):
        for b in range(3):
            bent = np.einsum("...i,ij,...j->...", v, E[a] @ inverse @ E[b], v)
            found[a, b] += np.trace(inverse @ E[a] @ inverse @ E[b]) / 2 - bent
    return found


@dataclass(frozen=True, eq=False)
class ShallowPair:
    """phi with its kinks, K0 (2, 2), gamma, weights a_1, a_2 and c_1."""

    phi: object
    kinks: tuple
    K0: np.ndarray
    gamma: float
    a: tuple
    c: float
    width: float = 3.0
    order: int = 16

    def products(self, h):
        """phi phi of the pairs at h (..., 2), shape (3, ...)."""
        values = self.phi(h)
        return np.array([values[..., i] * values[..., j] for i, j in PAIRS])

    @cached_property
    def first(self):
        """Signals of the input, their weights, and D without its mean; <D>."""
        h, w = plane(self.K0, np.zeros(2), self.kinks, self.width, self.order)
        D = self.products(h)
        mean = D @ w
        return h, w, D - mean[:, None], mean

    @property
    def C(self):
        """C^(1)."""
        C = self.a[0] * self.first[3] + self.c
        return np.array([[C[0], C[2]], [C[2], C[1]]])

    @cached_property
    def second(self):
        """<g>, its first and second derivatives by K, and Cov(g, g), in the next layer."""
        K = self.gamma**2 * self.K0 + self.C
        h, w = plane(K, np.zeros(2), self.kinks, self.width, self.order)
        g = self.products(h)
        mean = g @ w
        g = g - mean[:, None]
        slopes = np.einsum("en,an,n->ea", g, scores(K, h), w)
        bent = np.einsum("en,abn,n->eab", g, second_scores(K, h), w)
        return mean, slopes, bent, np.einsum("en,fn,n->ef", g, g, w)

    @cached_property
    def joint(self):
        """Cov(D_a, g_e), and d/dC_b of it at given h, for all a, e, b: (3, 3), (3, 3, 3)."""
        h, w, D, _ = self.first
        means, slopes = np.zeros((3, 3)), np.zeros((3, 3, 3))
        if not self.gamma:
            return means, slopes
        step = max(1, 400_000 // (30 * self.order) ** 2) * (1 if len(w) > 2000 else 4)
        for start in range(0, len(w), step):
            some = slice(start, start + step)
            m = self.gamma * h[some]
            x, p = plane(self.C, m, self.kinks, self.width, self.order)
            g = self.products(x) * p
            weighted = D[:, some] * w[some]
            means += weighted @ g.sum(axis=-1).T
            moved = np.einsum("emn,bmn->ebm", g, scores(self.C, x - m[:, None]))
            slopes += np.einsum("am,ebm->aeb", weighted, moved)
        return means, slopes

    @cached_property
    def noise(self):
        """N Cov(C^(1), C^(1)), (3, 3)."""
        _, w, D, _ = self.first
        return self.a[0] ** 2 * np.einsum("an,bn,n->ab", D, D, w)

    @property
    def covariance(self):
        """N Cov(C^(2), C^(2)) and N Cov(C^(1), C^(2))."""
        _, slopes, _, own = self.second
        seen = self.a[0] * self.joint[0]
        late = own + slopes @ seen + (slopes @ seen).T + slopes @ self.noise @ slopes.T
        return self.a[1] ** 2 * late, self.a[1] * (seen + self.noise @ slopes.T)

    @property
    def shift(self):
        """N (<C^(2)> - C*)."""
        _, _, bent, _ = self.second
        seen = np.einsum("aea->e", self.joint[1])
        curved = np.einsum("eab,ab->e", bent, self.noise) / 2
        return self.a[1] * (self.a[0] * seen + curved)
