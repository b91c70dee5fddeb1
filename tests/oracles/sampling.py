"""Finite networks of one input drawn without weights, in plain NumPy, with control variates.

    h_i^(l+1) = gamma h_i^(l) + sqrt(C^(l+1)) xi_i
    C^(l+1) = a_(l+1) (1/N) sum_j phi(h_j^(l))^2 + c_(l+1)

is the law of a network with Gaussian weights, exactly, at every N. The same xi drive N independent
neurons g_i with the infinite-width C*. Controls are averages over them of phi(g^(l))^2, g^(l)^2 and
g^(l)^4, less their known means, and products of two of the first kinds, less their covariances over
N. Their coefficients come from networks that are then left out, so that the estimates are unbiased;
what remains of the spread of C is of order N^(-3/2) instead of N^(-1/2), or 1/N for deep networks,
where the products are too many.
"""

from typing import NamedTuple

import numpy as np

from .recursion import bias_terms, weight_terms

BLOCKS = 100
PILOT = 0.1
MOST_OF_PRODUCTS = 42  # averages of which products are taken


class Estimate(NamedTuple):
    """Value and standard error of each entry."""

    value: np.ndarray
    error: np.ndarray

    def scores(self, theory):
        """z-scores; where the controls leave no error, rounding of 1e-9 counts as one."""
        return (self.value - theory) / (self.error + 1e-9 * np.abs(self.value) + 1e-300)


class Sampled(NamedTuple):
    """Mean, variance and third cumulant of C^(l) (L+2,), and V^(l)/N (L+1,)."""

    mean: Estimate
    variance: Estimate
    third: Estimate
    vertex: Estimate


def estimate(net, K0, phi, nodes, N, samples, seed):
    """`Sampled` from about `samples` networks of width N, many more than there are controls.

    `nodes` is one of the rules of `neurons`, for the means of the controls.
    """
    rng = np.random.default_rng(seed)
    chain = _Chain(net, K0, phi, nodes)
    size = max(1, int(samples / BLOCKS))
    pilot = [chain.draw(rng, N, size) for _ in range(max(1, int(PILOT * BLOCKS)))]
    targets, controls = (np.concatenate(x) for x in zip(*pilot, strict=True))
    spread = controls.std(axis=0)
    kept = spread > 1e-12 * spread.max()
    scale = np.where(kept, spread, 1.0)
    design = np.column_stack([np.ones(len(controls)), (controls / scale)[:, kept]])
    coefficients = np.linalg.lstsq(design, targets, rcond=1e-10)[0][1:]
    means = []
    for _ in range(BLOCKS):
        targets, controls = chain.draw(rng, N, size)
        means.append((targets - (controls / scale)[:, kept] @ coefficients).mean(axis=0))
    means = np.array(means)
    whole = _cumulants(means.mean(axis=0), chain.kernels_C)
    left_out = (means.sum(axis=0) - means) / (BLOCKS - 1)
    each = [_cumulants(x, chain.kernels_C) for x in left_out]
    found = []
    for k, value in enumerate(whole):
        deviations = np.array([x[k] for x in each])
        deviations = deviations - deviations.mean(axis=0)
        error = np.sqrt((BLOCKS - 1) / BLOCKS * (deviations**2).sum(axis=0))
        found.append(Estimate(value, error))
    return Sampled(*found)


def _cumulants(means, C):
    """Mean, variance, third cumulant of C and V/N from the means of the targets."""
    size = len(C)
    d1, d2, d3, q1, pairs = np.split(means, [size, 2 * size, 3 * size, 4 * size - 1])
    return C + d1, d2 - d1**2, d3 - 3 * d1 * d2 + 2 * d1**3, pairs - q1**2


class _Chain:
    """The infinite-width chain: its kernels, and means and covariances of the controls."""

    def __init__(self, net, K0, phi, nodes):
        self.net, self.phi = net, phi
        self.a, self.c = weight_terms(net), bias_terms(net)
        self.K0 = K0
        grid = nodes(K0, None)
        self.kernels_C, self.means, carried, pairs = [K0], [], [], {}
        K, fourth = K0, []
        for ell in range(len(net.gamma) + 1):
            squares = [phi(grid.h) ** 2, grid.h**2]
            for f in squares:
                centred = f - f @ grid.mu
                self.means.append(f @ grid.mu)
                carried.append(grid.mu * centred)
                pairs |= {(k, len(carried) - 1): centred @ x for k, x in enumerate(carried)}
            fourth.append(grid.h**4 @ grid.mu)
            C = self.a[ell + 1] * self.means[-2] + self.c[ell + 1]
            self.kernels_C.append(C)
            if ell == len(net.gamma):
                break
            K = net.gamma[ell] ** 2 * K + C
            there = nodes(K, C)
            P0 = there.steps(grid, net.gamma[ell], C)[0]
            carried = [P0.T @ column for column in carried]
            grid = there
        self.means, self.kernels_C = np.array(self.means), np.array(self.kernels_C)
        self.fourth = np.array(fourth)
        few = len(self.means) <= MOST_OF_PRODUCTS
        self.rows, self.columns = np.triu_indices(len(self.means) if few else 0)
        self.covariances = np.array(
            [pairs[i, j] for i, j in zip(self.rows, self.columns, strict=True)]
        )

    def draw(self, rng, N, size):
        """Targets and controls of `size` networks."""
        h = np.sqrt(self.K0) * rng.standard_normal((size, N))
        g = h
        d, q, pairs, controls, fourths = [np.zeros(size)], [], [], [], []  # d: C - C*
        for ell in range(len(self.net.gamma) + 1):
            square = h * h
            second = square.mean(axis=1)
            fourth = np.einsum("ij,ij->i", square, square) / N
            q.append(second)
            pairs.append((N * second**2 - fourth) / (N - 1))
            other = g * g
            controls += [(self.phi(g) ** 2).mean(axis=1), other.mean(axis=1)]
            fourths.append(np.einsum("ij,ij->i", other, other) / N)
            C = self.a[ell + 1] * (self.phi(h) ** 2).mean(axis=1) + self.c[ell + 1]
            d.append(C - self.kernels_C[ell + 1])
            if ell == len(self.net.gamma):
                break
            noise = rng.standard_normal((size, N))
            h = self.net.gamma[ell] * h + np.sqrt(C)[:, None] * noise
            g = self.net.gamma[ell] * g + np.sqrt(self.kernels_C[ell + 1]) * noise
        d = np.array(d).T
        targets = np.column_stack([d, d**2, d**3, np.array(q).T, np.array(pairs).T])
        Z = np.array(controls).T - self.means
        products = Z[:, self.rows] * Z[:, self.columns] - self.covariances / N
        return targets, np.column_stack([Z, np.array(fourths).T - self.fourth, products])
