"""Finite networks of one input drawn without weights, in plain NumPy, with control variates.

    h_i^(l+1) = gamma h_i^(l) + sqrt(C^(l+1)) xi_i
    C^(l+1) = a_(l+1) (1/N) sum_j phi(h_j^(l))^2 + c_(l+1)

is the law of a network with Gaussian weights, exactly, at every N. The same xi drive N independent
neurons g_i with the infinite-width C*. To first order in the fluctuations C^(l) - C* is the mean
over the neurons of

    u_i^(l+1) = a_(l+1) (phi(g_i^(l))^2 - M) + G kappa_i^(l),   kappa' = gamma^2 kappa + u',

with M and G = a M' at K*, and h_i^2 - K* is in the mean over the neurons that of w_i = g_i^2 - K* +
kappa_i. The u_i, kappa_i, w_i have mean 0 and are independent from neuron to neuron, so that the
means of u, kappa and w, the sums of their products over pairs and triples of different neurons, and
the second order of C - C* less its terms of one neuron have mean 0 as well. Those are the controls
of a layer; G and other coefficients need no digits. Their weights come from networks that are then
left out, so that the estimates are unbiased. What remains of the spread of C, C^2 and of the vertex
is of order N^(-3/2), of the third cumulant N^-2, at any depth.
"""

from typing import NamedTuple

import numpy as np

from .recursion import bias_terms, weight_terms

BLOCKS = 100
PILOT = 0.1
TOGETHER = 20_000  # signals of a layer
STEP = 1e-4  # of the slopes of phi^2, in standard deviations of the signal


class Estimate(NamedTuple):
    """Entries (n,), and the same from all networks but those of one block, (BLOCKS, n)."""

    value: np.ndarray
    left_out: np.ndarray

    @property
    def error(self):
        """Standard errors, by the jackknife."""
        return np.sqrt((BLOCKS - 1) * self.left_out.var(axis=0))

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

    `nodes` is one of the rules of `neurons`, for M and G.
    """
    rng = np.random.default_rng(seed)
    chain = Chain(net, K0, phi, nodes)
    size = max(1, int(samples / BLOCKS))
    weights = _weights(*chain.draw(rng, N, max(1, int(PILOT * BLOCKS)) * size))
    means, at_once = [], max(1, TOGETHER // (N * size))
    for start in range(0, BLOCKS, at_once):
        blocks = min(at_once, BLOCKS - start)
        targets, controls = chain.draw(rng, N, blocks * size)
        rest = targets - controls @ weights
        means.append(rest.reshape(len(rest), blocks, size, -1).mean(axis=2).swapaxes(0, 1))
    means = np.concatenate(means)
    left_out = (means.sum(axis=0) - means) / (BLOCKS - 1)
    whole, each = _cumulants(means.mean(axis=0), chain), _cumulants(left_out, chain)
    return Sampled(*map(Estimate, whole, each))


def _weights(targets, controls):
    """Of the controls for the targets, layer by layer: (L+1, controls, targets)."""
    found = []
    for target, control in zip(targets, controls, strict=True):
        spread = control.std(axis=0)
        scale = np.where(spread > 0, spread, 1.0)
        design = np.column_stack([np.ones(len(control)), control / scale])
        found.append(np.linalg.lstsq(design, target, rcond=1e-10)[0][1:] / scale[:, None])
    return np.array(found)


def _cumulants(means, chain):
    """Mean, variance, third cumulant of C and V/N from the means (..., L+1, 5) of the targets."""
    d1, d2, d3, square, pairs = np.moveaxis(means, -1, 0)
    of_C = d1, d2 - d1**2, d3 - 3 * d1 * d2 + 2 * d1**3
    mean, variance, third = (np.concatenate([0 * x[..., :1], x], axis=-1) for x in of_C)
    return mean + chain.C, variance, third, pairs - square**2


def _mean(x, *others):
    """Over the neurons, of products."""
    axes = ",".join(["ij"] * (1 + len(others)))
    return np.einsum(f"{axes}->i", x, *others) / x.shape[1]


def _pairs(x, mean):
    """N^-2 times the sum of x_i x_j over i != j."""
    return mean**2 - _mean(x, x) / x.shape[1]


class Chain:
    """Infinite width: C* and K* (L+2,), and of every layer M, a M' and a M''."""

    def __init__(self, net, K0, phi, nodes):
        self.net, self.phi = net, phi
        self.a, self.c = weight_terms(net), bias_terms(net)
        self.C, self.K, self.moments = [K0], [K0], []
        for a, c, gamma in zip(self.a[1:], self.c[1:], (*net.gamma, 0.0), strict=True):
            K = self.K[-1]
            grid = nodes(K, None)
            square, z = phi(grid.h) ** 2, grid.h**2 / K
            mean, slope, bend = ((square * x) @ grid.mu for x in (1.0, z - 1, z * z - 6 * z + 3))
            self.moments.append((mean, a * slope / (2 * K), a * bend / (4 * K * K)))
            self.C.append(a * mean + c)
            self.K.append(gamma**2 * K + self.C[-1])
        self.C = np.array(self.C)

    def draw(self, rng, N, size):
        """Targets (L+1, size, 5) and controls (L+1, size, 7) of `size` networks."""
        h = np.sqrt(self.K[0]) * rng.standard_normal((size, N))
        g, kappa, tilt, second = h, np.zeros_like(h), np.zeros_like(h), np.zeros(size)
        targets, controls = [], []
        for l, ((mean, slope, bend), K) in enumerate(zip(self.moments, self.K[:-1], strict=True)):
            a = self.a[l + 1]
            own, first = h * h - K, g * g - K + kappa
            q, w, k = _mean(own), _mean(first), _mean(kappa)
            C = a * _mean(self.phi(h) ** 2) + self.c[l + 1]
            d = C - self.C[l + 1]
            targets.append([d, d**2, d**3, q, N / (N - 1) * _pairs(own, q)])

            square, step = self.phi(g) ** 2, STEP * np.sqrt(K)
            rise = (self.phi(g + step) ** 2 - square) / step
            u = a * (square - mean) + slope * kappa
            m = _mean(u)
            triples = m**3 - 3 * m * _mean(u, u) / N + 2 * _mean(u, u, u) / N**2
            bent = 0.5 * bend * _pairs(kappa, k) + a * _mean(rise, tilt)
            order_2 = slope * (second - k) + bent
            controls.append([m, _pairs(u, m), triples, order_2, w, _pairs(first, w), k])
            if l == len(self.net.gamma):
                break

            gamma, root = self.net.gamma[l], np.sqrt(self.C[l + 1])
            noise = rng.standard_normal((size, N))
            h = gamma * h + np.sqrt(C)[:, None] * noise
            g = gamma * g + root * noise
            # First order of h - g, of the noise of the other neurons; second order of K.
            tilt = gamma * tilt + (m[:, None] - u / N) * noise / (2 * root)
            second = gamma**2 * second + order_2
            kappa = gamma**2 * kappa + u
        return (np.array(x).transpose(0, 2, 1) for x in (targets, controls))
