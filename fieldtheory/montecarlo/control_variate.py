"""Known parts of the fluctuations as control variates, and the estimates that they leave."""

from __future__ import annotations

import contextlib
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from fieldtheory.montecarlo import ensemble
from fieldtheory.montecarlo.sampling.forward import (
    TILE_KEPT,
    Neurons,
    correlated,
    feature_functions,
    forward,
    gram,
    in_tiles,
    tile_size,
)
from fieldtheory.montecarlo.sampling.moments import Summary
from fieldtheory.montecarlo.sampling.plan import Run, Samples
from fieldtheory.networks.coefficients import LayerCoefficients, layer_coefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.covariance_roots import lower_root
from fieldtheory.numerics.infinite_width.gains import variance_gains
from fieldtheory.numerics.recursion import accumulate, add_skip
from fieldtheory.numerics.several_inputs.pair_fluctuations import PairGains
from fieldtheory.numerics.solution import solve
from fieldtheory.numerics.symmetric_matrices import packed, positions


class _Origin(NamedTuple):
    """C* and K* of all layers, (L + 2, P, P), roots of C*, and what moves ⟨g⟩."""

    layers: LayerCoefficients
    residual: np.ndarray
    kernels: np.ndarray
    roots: np.ndarray
    gains: PairGains
    # Derivatives of the gains of one input by K^(l-1), (L + 2,).
    curvatures: np.ndarray


def controlled_samples(
    network: LayeredNetwork,
    K0: np.ndarray,
    generator: np.random.Generator,
    samples: int,
    across: bool = False,
) -> dict[str, np.ndarray]:
    """Draw networks by their kernels, for P inputs, less known parts of their fluctuations.

    With every network, h^(l) = γ_l h^(l-1) + R^(l) z^(l) with R Rᵀ = C lower triangular, goes the
    network of infinite width of the same normals z,

        g^(l) = γ_l g^(l-1) + R*^(l) z^(l),

    whose N neurons are independent, g_i^(l) ~ N(0, K*^(l)). To first order in the fluctuations,
    C_αβ^(l) − C*_αβ^(l) is the mean ū^(l) over the neurons i of

        u_i^(l) = a_l [Σ_k ψ_k(g_iα) ψ_k(g_iβ) − M_αβ(K*)]^(l-1) + a_l Σ_e (∂M_αβ/∂K_e) κ_ie^(l-1),
        κ_i^(l) = Σ_{m<=l} A²_lm u_i^(m),

    with e = αα, ββ, αβ; that is Δ12 times the noise of all layers. All u_i have mean 0 exactly, and
    different neurons are independent. Hence, with pairs a and b of inputs, these have the same
    expectation as what they stand for:

        C_a^(l) − C*_a^(l)                       the same, − ū_a^(l) − q^(l)
        [C_a^(l) − C*_a^(l)] [C_b^(m) − C*_b^(m)] the same, − ū_a^(l) ū_b^(m) + Σ_i u_i u_i / N²
        Σ_{i≠j} x_ia x_jb / N (N−1)              the same, − Σ_{i≠j} w_ia w_jb / N (N−1) + ...

    where x_ia = h_iα h_iβ − K*_a, w_ia = g_iα g_iβ − K*_a + κ_ia, and the dots, of mean 0, follow
    the diagonal i = j. For one input q^(l) is the second order, made of products of two different
    neurons only, so that its mean is 0 as well; for several inputs it is left out. The variances
    that are left are smaller by a factor of order N, that of the first line for one input by N².

    Returned are, with p = P(P+1)/2: ``residual`` (n, L+1, p), C^(1), ..., C^(L+1), and the three
    lines, ``rest`` (n, L+1, p), ``product`` (n, L+1, L+1, p) and ``vertex`` (n, L+1, p), which is 0
    for width 1, or ``across`` the products and the vertex of all two pairs, (n, L+1, L+1, p, p) and
    (n, L+1, p, p). Only the averages M(K*) = (C* − c)/a are taken from the theory: a wrong C*, Δ12
    or response would leave the estimates unbiased and make them noisier.

    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> net, K0 = ResidualNetwork(depth=3, width=50), np.array([[0.5, 0.2], [0.2, 0.4]])
    >>> found = controlled_samples(net, K0, np.random.default_rng(0), samples=20)
    >>> bool((found["rest"].std(axis=0) < 0.5 * found["residual"].std(axis=0)).all())
    True
    """
    numbers = network.width * (network.depth + 1) * len(packed(K0))
    parts = in_tiles(
        lambda size: _one_tile(network, K0, generator, size, across),
        samples,
        tile_size(numbers, TILE_KEPT),
    )
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def reduced_samples(run: Run, generator: np.random.Generator, size: int) -> Samples:
    """The groups of `reduced_estimates`, and the residual kernels of drawn networks."""
    draws = controlled_samples(run.network, run.start, generator, size, run.cross_inputs)
    return {
        "rest": ensemble.groups_of(draws["rest"], run.cross_inputs),
        "product": draws["product"].reshape(size, -1, 1),
        "vertex": draws["vertex"].reshape(size, -1, 1),
    }, draws["residual"]


def reduced_estimates(
    network: LayeredNetwork, kernel: np.ndarray, across: bool, summary: Summary
) -> dict[Any, Any]:
    """`ensemble.estimates` from the moments of `reduced_samples`."""
    origin = packed(_origin_of(network, kernel).residual)
    shift, chance = ensemble.of_layers(summary["rest"], origin.shape[1], across)
    # The squares of the true means, without bias.
    squares = shift[:, None, :, None] * shift[:, None] if across else shift[:, None] * shift
    squares = squares - chance / summary["rest"].count
    product = summary["product"].mean.reshape(squares.shape)
    mean = origin + np.concatenate([np.zeros((1, shift.shape[1])), shift])
    skips = layer_coefficients(network).skips
    half = accumulate(skips, ensemble.with_input_layer(squares))
    shifts = np.moveaxis(np.diagonal(accumulate(skips, half.swapaxes(0, 1))), -1, 0)[:-1]
    vertex = network.width * (summary["vertex"].mean.reshape(shifts.shape) - shifts)
    return ensemble.fields(network, kernel, mean, product - squares, vertex)


def _origin_of(network: LayeredNetwork, kernel: np.ndarray) -> _Origin:
    return _origin(network, kernel.tobytes(), len(np.atleast_2d(kernel)))


@lru_cache(maxsize=8)
def _origin(network: LayeredNetwork, entries: bytes, inputs: int) -> _Origin:
    """For a kernel (P, P) as bytes, which a cache can take."""
    K0 = np.frombuffer(entries).reshape(inputs, inputs)
    solution = solve(network, K0 if inputs > 1 else K0.item())
    shape = (-1, inputs, inputs)
    C, K = solution.residual_kernels.reshape(shape), solution.kernels.reshape(shape)
    own, others = np.zeros((len(C), inputs)), np.zeros((len(C), inputs * (inputs - 1) // 2))
    curvatures = np.zeros(len(C))
    if inputs == 1:
        own = variance_gains(network, K[:, 0])
        # A coefficient of something with mean 0, which needs no digits.
        step = 1e-4 * K[:, 0, 0]
        more, less = (variance_gains(network, K[:, 0, 0] + change) for change in (step, -step))
        step = np.roll(step, 1)
        np.divide(more - less, 2 * step, out=curvatures, where=step > 0)
    gains = PairGains(own, others, others, others)
    if inputs > 1:
        # Of jumps and parallel inputs there is no response.
        with contextlib.suppress(ValueError):
            gains = solution.chain.pairs.gains
    return _Origin(layer_coefficients(network), C, K, lower_root(C), gains, curvatures)


class _SecondOrder:
    """q^(l), the second order of C^(l) − C*^(l) of one input, from layer to layer."""

    def __init__(self, network: LayeredNetwork, point: _Origin, samples: int) -> None:
        self.slopes, self.skips = feature_functions(network, slopes=True), network.skip_scales
        self.point, self.width = point, network.width
        self.tilt, self.summed = np.zeros((samples, network.width)), np.zeros(samples)

    def next(
        self, l: int, z: np.ndarray, u: np.ndarray, kappa: np.ndarray, g: np.ndarray, psi: Any
    ) -> np.ndarray:
        """q^(l+1), (n,), from the normals, u, κ and the signals of layer l, (n, N)."""
        point, mean = self.point, kappa.mean(axis=1)
        skip, root = self.skips[l - 1] if l else 0.0, point.roots[l, 0, 0]
        # First order of h − g, of the noise of all other neurons.
        others = u.mean(axis=1, keepdims=True) - u / self.width
        self.tilt = skip * self.tilt + others * z * (0.5 / root if root else 0.0)
        slope = sum(x * rise for x, rise in zip(psi, self.slopes(g), strict=True))
        pairs = mean**2 - np.einsum("ni,ni->n", kappa, kappa) / self.width**2
        change = point.gains.own[l + 1] * (self.summed - mean)
        change += 0.5 * point.curvatures[l + 1] * pairs
        change += 2 * point.layers.weights[l + 1] * (slope * self.tilt).mean(axis=1)
        self.summed = add_skip(point.layers.skips[l + 1], self.summed, change)
        return change


def _one_tile(
    network: LayeredNetwork,
    K0: np.ndarray,
    generator: np.random.Generator,
    samples: int,
    across: bool,
) -> dict[str, np.ndarray]:
    point = _origin_of(network, K0)
    weights, biases, skips = point.layers.weights, point.layers.biases, point.layers.skips
    width, layers, pairs = network.width, network.depth + 1, len(packed(K0))
    alpha, beta = np.triu_indices(len(K0))
    residual, kernels = packed(point.residual), packed(point.kernels)
    second = _SecondOrder(network, point, samples) if len(K0) == 1 else None
    every, vertex = np.empty((samples, layers, pairs, width)), []
    drawn, order2 = np.empty((samples, layers, pairs)), np.zeros((samples, layers, pairs))
    # The normals of the layer in turn, for both networks.
    z = np.empty((samples, len(K0), width))

    def driven(l: int, kernel: np.ndarray, features: tuple[Any, ...]) -> np.ndarray:
        generator.standard_normal(out=z)
        root = lower_root(np.broadcast_to(kernel, (samples, *K0.shape)))
        return np.stack([correlated(root, z), correlated(point.roots[l], z)])

    # Pairs before networks and neurons, as the gains take them.
    kappa, u = np.zeros((2, pairs, samples, width))
    # Kernels are those of the network of finite width.
    sampler = Neurons(network, driven, lambda *features: gram(*(psi[0] for psi in features)))
    for l, C in forward(sampler, K0):
        (h, g), features = sampler.h, sampler.features
        with np.errstate(over="ignore", invalid="ignore"):
            own = h[:, alpha] * h[:, beta] - kernels[l][:, None]
            first = g[:, alpha] * g[:, beta] - kernels[l][:, None] + kappa.swapaxes(0, 1)
            vertex.append(_vertex(own, first, kappa.mean(axis=2).T, point.kernels[l], across))
            psi = [both[1] for both in features]
            if second is not None:
                mine = g[:, 0], [x[:, 0] for x in psi]
                order2[:, l, 0] = second.next(l, z[:, 0], u[0], kappa[0], *mine)
            u = sum(x[:, alpha] * x[:, beta] for x in psi)
            u = weights[l + 1] * u - (residual[l + 1] - biases[l + 1])[:, None]
            u = u.swapaxes(0, 1) + point.gains.kernel_change(l + 1, kappa)
        kappa = add_skip(skips[l + 1], kappa, u)
        every[:, l], drawn[:, l] = u.swapaxes(0, 1), packed(C)
    steps, means = drawn - residual[1:], every.mean(axis=3)
    remainder = steps - means - order2
    # C^(1) is linear in the noise; what is left is rounding.
    remainder[:, 0] = 0.0
    product = _products(every, across) / width**2
    product += _products(steps[..., None], across) - _products(means[..., None], across)
    vertices = np.stack(vertex, axis=1)
    return {"residual": drawn, "rest": remainder, "product": product, "vertex": vertices}


def _products(x: np.ndarray, across: bool) -> np.ndarray:
    """Σ_i x_lai x_mbi of (n, L+1, p, N): (n, L+1, L+1, p), or (n, L+1, L+1, p, p)."""
    if across:
        flat = x.reshape(len(x), -1, x.shape[-1])
        products = flat @ flat.swapaxes(1, 2)
        return products.reshape(*x.shape[:3], *x.shape[1:3]).swapaxes(2, 3)
    x = x.swapaxes(1, 2)
    return np.moveaxis(x @ x.swapaxes(2, 3), 1, -1)


def _vertex(
    own: np.ndarray, first: np.ndarray, kappa: np.ndarray, K: np.ndarray, across: bool
) -> np.ndarray:
    """Σ_{i≠j} x_ia x_jb / N(N−1) of every network, less its part of mean 0, (n, p) or (n, p, p)."""
    width = own.shape[-1]
    alpha, beta = np.triu_indices(len(K))
    a = np.arange(len(alpha))
    a, b = (a[:, None], a) if across else (a, a)
    linear = np.zeros((len(own), *np.broadcast_shapes(a.shape, b.shape)))
    if width == 1:
        return linear
    places = positions(len(alpha))
    # ⟨x_ia x_ib⟩ = K_αγ K_βδ + K_αδ K_βγ moves with K.
    for c, d in ((alpha[b], beta[b]), (beta[b], alpha[b])):
        linear += kappa[:, places[alpha[a], c]] * K[beta[a], d]
        linear += K[alpha[a], c] * kappa[:, places[beta[a], d]]
    return _distinct(own, across) - _distinct(first, across) + linear / (width - 1)


def _distinct(x: np.ndarray, across: bool) -> np.ndarray:
    """Σ_{i≠j} x_ia x_jb / N(N−1) over the neurons, (n, p, N) -> (n, p), or (n, p, p)."""
    width, mean = x.shape[-1], x.mean(axis=-1)
    if across:
        return (width * mean[:, :, None] * mean[:, None] - gram(x)) / (width - 1)
    return (width * mean**2 - np.einsum("nai,nai->na", x, x) / width) / (width - 1)
