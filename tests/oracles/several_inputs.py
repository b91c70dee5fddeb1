"""The order 1/N of several inputs by brute force: dense blocks, tensor quadrature, scores.

Fields are C_αβ^(l), l = 0, ..., L + 1, α <= β, flattened by layers and then pairs. All signals
h_α^(l) are one Gaussian vector whose covariance is linear in the fields. Derivatives of averages by
fields are averages with scores, ∂⟨F⟩ = ⟨F ∂ ln p⟩, which needs no derivative of φ.
"""

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np


def smooth_nodes(covariance, count):
    """Gauss-Hermite rule for every independent direction: signals (d, m), weights (m,)."""
    z, w = np.polynomial.hermite_e.hermegauss(count)
    w = w / w.sum()
    size = len(covariance)
    L = np.linalg.cholesky(covariance)
    grid = np.array(np.meshgrid(*[z] * size, indexing="ij")).reshape(size, -1)
    weights = np.prod(np.meshgrid(*[w] * size, indexing="ij"), axis=0).ravel()
    return L @ grid, weights


def kinked_nodes(covariance, count, kinks=(0.0,)):
    """Gauss-Legendre rules between the kinks, one signal given the others before it."""
    x, w = np.polynomial.legendre.leggauss(count)
    L = np.linalg.cholesky(covariance)
    size = len(L)
    z, weights = np.zeros((size, 1)), np.ones(1)
    for i in range(size):
        mean = L[i, :i] @ z[:i]
        cuts = [np.clip((h - mean) / L[i, i], -8.5, 8.5) for h in (-np.inf, *kinks, np.inf)]
        ends = list(pairwise(cuts))
        parts = []
        for low, high in ends:
            half = (high - low) / 2
            nodes = low + half * (1 + x[:, None])
            attached = weights * half * w[:, None] * np.exp(-(nodes**2) / 2) / np.sqrt(2 * np.pi)
            parts.append((nodes, attached))
        nodes, attached = (np.concatenate([p[k] for p in parts]) for k in (0, 1))
        used = attached > 1e-18
        z = np.repeat(z[:, None, :], len(nodes), axis=1)
        z[i] = nodes
        z, weights = z[:, used], attached[used]
    return L @ z, weights


@dataclass(eq=False)
class Dense:
    """A residual network of L layers: a, c of layers 0, ..., L + 1, γ of layers 1, ..., L.

    ``nodes`` is one of the rules above with ``count`` nodes in every direction.
    """

    phi: object
    a: np.ndarray
    c: np.ndarray
    gammas: np.ndarray
    K0: np.ndarray
    nodes: object = smooth_nodes
    count: int = 24
    cache: dict = field(default_factory=dict)

    @property
    def depth(self):
        return len(self.a) - 2

    @cached_property
    def pairs(self):
        return list(zip(*np.triu_indices(len(self.K0)), strict=True))

    @cached_property
    def fields(self):
        return [(l, *pair) for l in range(self.depth + 2) for pair in self.pairs]

    @cached_property
    def A(self):
        size = self.depth + 1
        return np.array(
            [
                [np.prod(self.gammas[m:l]) if m <= l else 0.0 for m in range(size)]
                for l in range(size)
            ]
        )

    @cached_property
    def C(self):
        """C* of all layers, (L + 2, P, P)."""
        found = [self.K0]
        for l in range(1, self.depth + 2):
            K = sum(self.A[l - 1, m] ** 2 * found[m] for m in range(l))
            g = np.empty_like(self.K0)
            for i, j in self.pairs:
                distinct = list(dict.fromkeys([i, j]))
                h, w = self.nodes(K[np.ix_(distinct, distinct)], 2 * self.count)
                g[i, j] = g[j, i] = w @ (self.phi(h[0]) * self.phi(h[-1]))
            found.append(self.a[l] * g + self.c[l])
        return np.array(found)

    def covariance(self, signals, C=None):
        """Of signals (layer, input), also of the fields that are moved."""
        C = self.C if C is None else C
        return np.array(
            [
                [
                    sum(self.A[k, m] * self.A[l, m] * C[m, i, j] for m in range(min(k, l) + 1))
                    for l, j in signals
                ]
                for k, i in signals
            ]
        )

    def moved(self, signals, f):
        """The derivative of that covariance by a field."""
        m, i, j = f
        unit = np.zeros_like(self.C)
        if m <= self.depth:
            unit[m, i, j] = unit[m, j, i] = 1.0
        return self.covariance(signals, unit)

    def of(self, *fields):
        """Signals that the observables g of fields (l >= 1) depend on, a rule, and the values."""
        places = [[(l - 1, i), (l - 1, j)] for l, i, j in fields]
        signals = sorted(dict.fromkeys(s for place in places for s in place))
        key = tuple(signals)
        if key not in self.cache:
            self.cache = {key: self.nodes(self.covariance(signals), self.count)}
        h, w = self.cache[key]
        values = []
        for l, (one, other) in zip([f[0] for f in fields], places, strict=True):
            x, y = h[signals.index(one)], h[signals.index(other)]
            values.append(self.a[l] * self.phi(x) * self.phi(y))
        return signals, h, w, values

    def scores(self, signals, h, moves):
        """∂ ln p by fields, and the solved signals."""
        inverse = np.linalg.inv(self.covariance(signals))
        u = inverse @ h
        D = [self.moved(signals, f) for f in moves]
        first = [(np.einsum("im,ij,jm->m", u, d, u) - np.sum(inverse * d)) / 2 for d in D]
        return u, inverse, D, first

    @cached_property
    def slopes(self):
        """∂a⟨g_f⟩/∂C_j, (fields, fields)."""
        size = len(self.fields)
        found = np.zeros((size, size))
        for i, f in enumerate(self.fields):
            if f[0]:
                signals, h, w, (g,) = self.of(f)
                moves = [j for j in range(size) if self.fields[j][0] < f[0]]
                _, _, _, first = self.scores(signals, h, [self.fields[j] for j in moves])
                found[i, moves] = [(w * g) @ s for s in first]
        return found

    @cached_property
    def G12(self):
        """N G12."""
        return np.linalg.inv(np.eye(len(self.fields)) - self.slopes)

    @cached_property
    def S22(self):
        """⟨g;g⟩ with a_k a_l, that is S22/N."""
        size = len(self.fields)
        found = np.zeros((size, size))
        places = [i for i, f in enumerate(self.fields) if f[0]]
        for i in places:
            for j in places:
                if j >= i:
                    _, _, w, (g, other) = self.of(self.fields[i], self.fields[j])
                    g = g - w @ g
                    found[i, j] = found[j, i] = w @ (g * (other - w @ other))
        return found

    @cached_property
    def G11(self):
        """N G11."""
        return self.G12 @ self.S22 @ self.G12.T

    @cached_property
    def shift(self):
        """N (⟨C⟩ − C*): the loop of theory with all vertices dense."""
        size = len(self.fields)
        sources = np.zeros(size)
        for i, f in enumerate(self.fields):
            if not f[0]:
                continue
            before = [j for j in range(size) if self.fields[j][0] < f[0]]
            signals, h, w, (g,) = self.of(f)
            u, inverse, D, first = self.scores(signals, h, [self.fields[j] for j in before])
            for x, j in enumerate(before):
                for y, k in enumerate(before):
                    curved = np.einsum("im,ij,jm->m", u, -D[x] @ inverse @ D[y], u)
                    trace = np.sum((inverse @ D[x]) * (inverse @ D[y]).T) / 2
                    sources[i] += (
                        (w * g) @ (first[x] * first[y] + curved + trace) * self.G11[j, k] / 2
                    )
            # A neuron that moves kernels of later layers and sees them.
            for k in before:
                if self.fields[k][0]:
                    moves = [j for j in before if self.fields[j][0] >= self.fields[k][0]]
                    moves = [j for j in moves if self.G12[j, k]]
                    signals, h, w, (g, other) = self.of(f, self.fields[k])
                    *_, first = self.scores(signals, h, [self.fields[j] for j in moves])
                    joint = w * g * other
                    mean, seen = w @ g, w @ other
                    for j, s in zip(moves, first, strict=True):
                        T = joint @ s - seen * ((w * g) @ s) - mean * ((w * other) @ s)
                        sources[i] += T * self.G12[j, k]
        return self.G12 @ sources

    @cached_property
    def vertex(self):
        """V of the hidden layers, (L + 1, p, p)."""
        p, found = len(self.pairs), []
        for l in range(self.depth + 1):
            sums = np.kron(np.append(self.A[l], 0.0) ** 2, np.eye(p))
            V = sums @ self.G11 @ sums.T
            beta = np.zeros((len(self.fields), p))
            for i, f in enumerate(self.fields):
                if 1 <= f[0] <= l:
                    for q, (x, y) in enumerate(self.pairs):
                        signals = sorted({(f[0] - 1, f[1]), (f[0] - 1, f[2]), (l, x), (l, y)})
                        h, w = self.nodes(self.covariance(signals), self.count)
                        at = {s: h[n] for n, s in enumerate(signals)}
                        g = self.phi(at[f[0] - 1, f[1]]) * self.phi(at[f[0] - 1, f[2]])
                        both = at[l, x] * at[l, y]
                        beta[i, q] = self.a[f[0]] * (w @ (g * (both - w @ both)))
            seen = sums @ self.G12 @ beta
            found.append(V + seen + seen.T)
        return np.array(found)
