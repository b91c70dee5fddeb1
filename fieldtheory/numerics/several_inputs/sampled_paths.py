"""Correlators ⟨g_αβ^(k) ; g_γδ^(l)⟩ by randomised quasi-Monte Carlo over the path of one neuron.

The signals of one neuron, h^(0), ..., h^(L), are Gaussian with the kernels of infinite width,

    h^(l) = γ_l h^(l-1) + ζ^(l),   ζ^(l) ~ N(0, C^(l)),

for all inputs at once. The parts of g of first and second order in Hermite polynomials are known:
by Price's theorem they are (∂⟨g⟩/∂K_e)(h_e − K_e) with h_αβ = h_α h_β, and their correlators are
products of kernels. Only what is left of g, orthogonal to them, is sampled, by scrambled Sobol
points in several independent replicates, whose scatter is the standard error.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import ndtri

from fieldtheory.averages import routes
from fieldtheory.averages.routes import SETTINGS
from fieldtheory.networks.coefficients import LayerCoefficients
from fieldtheory.numerics.covariance_roots import psd_root
from fieldtheory.numerics.recursion import ratio
from fieldtheory.numerics.several_inputs.four_signals import WithinLayers, means
from fieldtheory.numerics.several_inputs.pair_expansions import Expansion, Signals, packed_size
from fieldtheory.numerics.several_inputs.pair_fluctuations import PairGains

# Independent replicates, and the fewest and most points of each as powers of two.
REPLICATES, _FEWEST, _MOST = 8, 8, 20
# Multiplications that a signal, an observable and a product of two take at one point.
_COSTS = 500.0, 150.0, 1.0
# Numbers in one array.
_TOGETHER = 1 << 21
# Most dimensions of Sobol points; more are pseudorandom.
_DIMENSIONS = 21201
# Angle between signals below which nothing is subtracted from g with jumps.
_CANCELS = 1e-2
# Orders of the coefficients of which the first is kept.
_ORDERS = 8


def paths(
    C: np.ndarray, skips: np.ndarray, points: int, seed: int | np.random.SeedSequence
) -> Iterator[np.ndarray]:
    """Signals h (L + 1, P, n) in parts of the points, from C (L + 1, P, P) and γ_1, ..., γ_L.

    Examples
    --------
    >>> (h,) = paths(np.full((2, 1, 1), 0.5), np.array([1.0]), 4096, 0)
    >>> h.shape, bool(abs((h[1] ** 2).mean() - 1.0) < 0.01)
    ((2, 1, 4096), True)
    """
    # SciPy takes half a second to load its statistics.
    from scipy.stats import qmc

    size, inputs = C.shape[:2]
    # The widest direction first, of which points of low discrepancy serve the first ones best.
    roots = psd_root(C)[..., ::-1]
    generator = np.random.default_rng(seed)
    together = 1 << max(0, int(np.log2(max(1, _TOGETHER // (size * inputs)))))
    sobol = None
    if size * inputs <= _DIMENSIONS:
        sobol = qmc.Sobol(size * inputs, scramble=True, seed=generator)
    for start in range(0, points, together):
        count = min(together, points - start)
        if sobol is None:
            normals = generator.standard_normal((size * inputs, count))
        else:
            # Powers of two are balanced; of the last part there may be too many.
            drawn = sobol.random(1 << int(count - 1).bit_length())[:count]
            normals = ndtri(np.clip(drawn, 1e-16, 1 - 1e-16)).T
        h = np.empty((size, inputs, count))
        for l, noise in enumerate(normals.reshape(size, inputs, count)):
            h[l] = roots[l] @ noise + (skips[l - 1] * h[l - 1] if l else 0.0)
        yield h


def sampled_sources(
    layers: LayerCoefficients, gains: PairGains, signals: Signals, seed: int = 0
) -> np.ndarray:
    """S22/N of all layers and pairs, and deviations whose squares add up to that of its error."""
    size, p = len(signals.K), len(signals.pairs[0])
    sizes = size * signals.K.shape[-1], size * p, (size * p) ** 2
    points = SETTINGS.path_operations / REPLICATES / np.dot(_COSTS, sizes)
    points = 1 << int(np.clip(np.log2(points), _FEWEST, _MOST))
    routes.record(routes.PATHS, sizes[1] ** 2)
    remainder = _Remainder(layers, gains, signals)
    products = np.zeros((REPLICATES, size * p, size * p))
    seeds = np.random.SeedSequence(seed).spawn(REPLICATES)
    for number in signals.counted(range(REPLICATES), "correlators, sampled paths"):
        for h in paths(signals.C, signals.skips, points, seeds[number]):
            values = remainder.of(h).reshape(size * p, -1)
            products[number] += values @ values.T / points
    mean = products.mean(axis=0)
    spread = (products - mean) / np.sqrt(REPLICATES * (REPLICATES - 1))
    stack = np.concatenate([mean[None] + remainder.low_orders().reshape(mean.shape), spread])
    stack = stack.reshape(-1, size, p, size, p)
    own, mean = WithinLayers.of(signals), remainder.means
    for l, weight in enumerate(remainder.a):
        exact = own.exact[l, own.which]
        fourth = own.averages[l, own.which] - np.outer(mean[l], mean[l])
        stack[:, l, :, l][:, exact] = 0.0
        stack[0, l, :, l][exact] = weight**2 * fourth[exact]
    S22 = np.zeros((len(stack), size + 1, p, size + 1, p))
    S22[:, 1:, :, 1:] = stack
    return S22


def sampled_within_layers(signals: Signals, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """⟨g_αβ g_γδ⟩ of every layer with itself and standard errors, both (L + 1, p, p)."""
    size, (alpha, beta) = signals.K.shape[-1], signals.pairs
    points = (
        SETTINGS.path_operations / REPLICATES / np.dot(_COSTS, [size, len(alpha), len(alpha) ** 2])
    )
    points = 1 << int(np.clip(np.log2(points / len(signals.K)), _FEWEST, _MOST))
    routes.record(routes.PATHS, len(signals.K) * len(alpha) ** 2)
    averages = np.zeros((REPLICATES, len(signals.K), len(alpha), len(alpha)))
    for number, of in enumerate(np.random.SeedSequence(seed).spawn(REPLICATES)):
        for k, K in enumerate(signals.K):
            for h in paths(K[None], np.zeros(0), points, of):
                values = [psi(h[0]) for psi in signals.functions]
                g = sum(each[alpha] * each[beta] for each in values)
                averages[number, k] += g @ g.T / points
    return averages.mean(axis=0), averages.std(axis=0, ddof=1) / np.sqrt(REPLICATES)


class _Remainder:
    """Remainder of a_l g without its mean and its parts of first and second order."""

    def __init__(self, layers: LayerCoefficients, gains: PairGains, signals: Signals) -> None:
        self.signals = signals
        self.a = layers.weights[1:].ravel()
        self.means = means(signals)
        # Derivatives of jumps grow as one over the angle, and cancel.
        distinct = (
            signals.R[1, 1] > _CANCELS * signals.K[:, signals.pairs[1], signals.pairs[1]] ** 0.5
        )
        jumps = any(len(psi.jumping) for psi in signals.functions)
        used = float(not jumps or bool(distinct[:, signals.pairs[0] != signals.pairs[1]].all()))
        parts = gains.own, gains.pair, gains.first, gains.second
        self.gains = gains if used else PairGains(*(np.zeros_like(part) for part in parts))
        self.linear = used * self._linear()

    def of(self, h: np.ndarray) -> np.ndarray:
        """Of signals h (L + 1, P, n), shape (L + 1, p, n)."""
        alpha, beta = self.signals.pairs
        remainders = np.empty((len(h), len(alpha), h.shape[-1]))
        for l, row in enumerate(h):
            values = [psi(row) for psi in self.signals.functions]
            g = sum(each[alpha] * each[beta] for each in values) - self.means[l][:, None]
            squares = row[alpha] * row[beta] - self.signals.K[l][alpha, beta][:, None]
            remainders[l] = (
                self.a[l] * g - self.gains.kernel_change(l + 1, squares) - self.linear[l] @ row
            )
        return remainders

    def low_orders(self) -> np.ndarray:
        """Correlators of the parts of first and second order, shape (L + 1, p, L + 1, p)."""
        signals, size = self.signals, len(self.signals.K)
        alpha, beta = signals.pairs
        correlators = np.empty((size, len(alpha), size, len(alpha)))
        for k in range(size):
            for l in range(k, size):
                X = signals.K[k] * signals.passed[l, k]
                squares = X[alpha[:, None], alpha] * X[beta[:, None], beta]
                squares += X[alpha[:, None], beta] * X[beta[:, None], alpha]
                half = self.gains.kernel_change(k + 1, squares)
                values = self.gains.kernel_change(l + 1, half.T).T
                values += self.linear[k] @ X @ self.linear[l].T
                correlators[k, :, l], correlators[l, :, k] = values, values.T
        return correlators

    def _linear(self) -> np.ndarray:
        """a_l ∂⟨g⟩/∂⟨h_γ⟩, shape (L + 1, p, P)."""
        signals = self.signals
        alpha, beta = signals.pairs
        coefficients = np.zeros((len(signals.K), len(alpha), signals.K.shape[-1]))
        if all(psi.parity for psi in signals.functions):
            return coefficients
        first = Expansion(signals, _ORDERS).observables[..., 1 : packed_size(2)]
        # R c are covariances of g with the two signals, from which the slopes follow.
        R = signals.R
        by_y = ratio(first[..., 0], R[1, 1])
        by_x = ratio(first[..., 1] - R[1, 0] * by_y, R[0, 0])
        pairs = np.arange(len(alpha))
        for slopes, members in ((by_x, alpha), (by_y, beta)):
            coefficients[:, pairs, members] += self.a[:, None] * slopes
        return coefficients
