"""Known parts of the fluctuations as control variates, for several inputs."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from fieldtheory.montecarlo.control_variate import sampled
from fieldtheory.montecarlo.forward import forward, gram
from fieldtheory.networks.coefficients import LayerCoefficients, layer_coefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.recursion import carried
from fieldtheory.numerics.several_inputs.pair_fluctuations import PairGains
from fieldtheory.numerics.solution import Solution, solve
from fieldtheory.numerics.symmetric_matrices import packed

# Kernels as bytes and their number of inputs, which a cache can take.
Key = tuple[bytes, int]


class _Origin(NamedTuple):
    """C* and K* of all layers, (L + 2, P, P), roots of C*, and what moves ⟨g⟩."""

    layers: LayerCoefficients
    residual: np.ndarray
    kernels: np.ndarray
    roots: np.ndarray
    gains: PairGains


def controlled_pairs(
    network: LayeredNetwork,
    K0: np.ndarray,
    generator: np.random.Generator,
    samples: int,
    across: bool = False,
) -> dict[str, np.ndarray]:
    """Draw networks by their kernels, for P inputs, less the first order of their fluctuations.

    As in `control_variate.controlled_samples`, beside every network goes that of infinite width of
    the same normals, g^(l) = γ_l g^(l-1) + R*^(l) z^(l), with R Rᵀ = C lower triangular. To first
    order C_αβ^(l) − C*_αβ^(l) is the mean over the neurons i of

        u_i^(l) = a_l [Σ_k ψ_k(g_iα) ψ_k(g_iβ) − M_αβ(K*)]^(l-1) + a_l Σ_e (∂M_αβ/∂K_e) κ_ie^(l-1)

    with e = αα, ββ, αβ and κ^(l) = Σ_{m<=l} A²_lm u^(m). All u_i have mean 0 exactly and different
    neurons are independent, so that with pairs a and b of inputs these have the same expectation:

        C_a^(l) − C*_a^(l)                       the same, − ū_a^(l)
        [C_a^(l) − C*_a^(l)] [C_b^(m) − C*_b^(m)] the same, − ū_a^(l) ū_b^(m) + Σ_i u_i u_i / N²
        Σ_{i≠j} x_ia x_jb / N (N−1)              the same, − Σ_{i≠j} w_ia w_jb / N (N−1) + ...

    where x_ia = h_iα h_iβ − K*_a, w_ia = g_iα g_iβ − K*_a + κ_ia, and the dots, of mean 0, follow
    the diagonal i = j. The variances that are left are smaller by a factor of order N.

    Parameters
    ----------
    network : LayeredNetwork
        Without batch axes.
    K0 : ndarray, shape (P, P)
    generator : numpy.random.Generator
    samples : int
        Number n of networks.
    across : bool
        The products and the vertex of all two pairs of inputs, not of each pair with itself.

    Returns
    -------
    dict of str to ndarray
        With p = P(P+1)/2: ``residual`` and ``rest`` (n, L+1, p), ``product`` (n, L+1, L+1, p) and
        ``vertex`` (n, L+1, p), or ``across`` (n, L+1, p, L+1, p) and (n, L+1, p, p).

    Raises
    ------
    OverflowError
        If a kernel is not finite.

    Notes
    -----
    As for one input, wrong coefficients would leave the estimates unbiased; M(K*) = (C* − c)/a
    alone is taken from the theory, which only plain samples test. Where Var K is not small against
    K² it does not pay.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> net, K0 = ResidualNetwork(depth=3, width=50), np.array([[0.5, 0.2], [0.2, 0.4]])
    >>> found = controlled_pairs(net, K0, np.random.default_rng(0), samples=20)
    >>> bool((found["rest"].std(axis=0) < 0.5 * found["residual"].std(axis=0)).all())
    True
    """
    draw = partial(_one_tile, across=across)
    return sampled(draw, network, K0, generator, samples, len(packed(K0)))


def origin_of(network: LayeredNetwork, K0: np.ndarray) -> Solution:
    """The solution of the theory that the estimators take as their origin."""
    return _solution(network, (K0.tobytes(), len(K0)))


@lru_cache(maxsize=8)
def _solution(network: LayeredNetwork, key: Key) -> Solution:
    return solve(network, np.frombuffer(key[0]).reshape(key[1], key[1]))


@lru_cache(maxsize=8)
def _origin(network: LayeredNetwork, key: Key) -> _Origin:
    solution = _solution(network, key)
    C = solution.residual_kernels
    try:
        gains = solution.pair_theory.gains
    except ValueError:
        # Of jumps and parallel inputs there is no response.
        own, others = (
            np.zeros((len(C), len(C[0]))),
            np.zeros((len(C), len(packed(C[0])) - len(C[0]))),
        )
        gains = PairGains(own, others, others, others)
    return _Origin(layer_coefficients(network), C, solution.kernels, lower_root(C), gains)


def lower_root(C: np.ndarray) -> np.ndarray:
    """R lower triangular with R Rᵀ = C of positive semidefinite (..., P, P), smooth in C.

    Examples
    --------
    >>> lower_root(np.array([[4.0, 2.0], [2.0, 1.0]]))
    array([[2., 0.],
           [1., 0.]])
    """
    size = C.shape[-1]
    root = np.zeros_like(C)
    rounding = 8 * size * np.finfo(float).eps
    for j in range(size):
        left = C[..., j:, j] - np.einsum("...ik,...k->...i", root[..., j:, :j], root[..., j, :j])
        pivot = left[..., :1]
        # Of what depends on the inputs before, rounding is left.
        new = pivot > rounding * C[..., j, j, None]
        root[..., j:, j] = np.where(new, left / np.sqrt(np.where(new, pivot, 1.0)), 0.0)
    return root


def _one_tile(
    network: LayeredNetwork,
    K0: np.ndarray,
    generator: np.random.Generator,
    samples: int,
    across: bool,
) -> dict[str, np.ndarray]:
    point = _origin(network, (K0.tobytes(), len(K0)))
    weights, biases, skips = point.layers.weights, point.layers.biases, point.layers.skips
    width, layers, pairs = network.width, network.depth + 1, len(packed(K0))
    alpha, beta = np.triu_indices(len(K0))
    residual, kernels = packed(point.residual), packed(point.kernels)
    every = np.empty((samples, layers, pairs, width))
    steps, vertex = np.empty((samples, layers, pairs)), []

    def driven(l: int, kernel: np.ndarray, features: tuple[Any, ...]) -> np.ndarray:
        z = generator.standard_normal((samples, len(K0), width))
        return np.stack([lower_root(np.broadcast_to(kernel, (samples, *K0.shape))) @ z,
                         point.roots[l] @ z])  # fmt: skip

    def of_finite_width(*features: np.ndarray) -> np.ndarray:
        return gram(*(psi[0] for psi in features))

    # Pairs before networks and neurons, as the gains take them.
    kappa = np.zeros((pairs, samples, width))
    for l, (h, g), features, C in forward(network, K0, driven, of_finite_width):
        with np.errstate(over="ignore", invalid="ignore"):
            own = h[:, alpha] * h[:, beta] - kernels[l][:, None]
            first = g[:, alpha] * g[:, beta] - kernels[l][:, None] + kappa.swapaxes(0, 1)
            vertex.append(_vertex(own, first, kappa.mean(axis=2).T, point.kernels[l], across))
            u = sum(psi[1][:, alpha] * psi[1][:, beta] for psi in features)
            u = weights[l + 1] * u - (residual[l + 1] - biases[l + 1])[:, None]
            u = u.swapaxes(0, 1) + point.gains.moved(l + 1, kappa)
        kappa = carried(skips[l + 1], kappa, u)
        every[:, l], steps[:, l] = u.swapaxes(0, 1), packed(C)
    drawn = steps.copy()
    steps -= residual[1:]
    means = every.mean(axis=3)
    rest = steps - means
    # C^(1) is linear in the noise; what is left is rounding.
    rest[:, 0] = 0.0
    rows = "nlaj,nmbj->nlamb" if across else "nlaj,nmaj->nlma"
    outer = "nla,nmb->nlamb" if across else "nla,nma->nlma"
    product = np.einsum(rows, every, every, optimize=True) / width**2
    product += np.einsum(outer, steps, steps) - np.einsum(outer, means, means)
    return {
        "residual": drawn,
        "rest": rest,
        "product": product,
        "vertex": np.stack(vertex, axis=1),
    }


def _vertex(
    own: np.ndarray, first: np.ndarray, kappa: np.ndarray, K: np.ndarray, across: bool
) -> np.ndarray:
    """Σ_{i≠j} x_ia x_jb / N(N−1) of every network, less its part of mean 0, (n, p) or (n, p, p)."""
    width = own.shape[-1]
    alpha, beta = np.triu_indices(len(K))
    a = np.arange(len(alpha))
    a, b = (a[:, None], a) if across else (a, a)
    if width == 1:
        return np.zeros((len(own), *np.broadcast_shapes(a.shape, b.shape)))
    places = np.zeros(K.shape, dtype=int)
    places[alpha, beta] = places[beta, alpha] = np.arange(len(alpha))
    # ⟨x_ia x_ib⟩ = K_αγ K_βδ + K_αδ K_βγ moves with K.
    moved = np.zeros((len(own), *np.broadcast_shapes(a.shape, b.shape)))
    for c, d in ((alpha[b], beta[b]), (beta[b], alpha[b])):
        moved += kappa[:, places[alpha[a], c]] * K[beta[a], d]
        moved += K[alpha[a], c] * kappa[:, places[beta[a], d]]
    return _distinct(own, across) - _distinct(first, across) + moved / (width - 1)


def _distinct(x: np.ndarray, across: bool) -> np.ndarray:
    """Σ_{i≠j} x_ia x_jb / N(N−1) over the neurons, (n, p, N) -> (n, p), or (n, p, p)."""
    width, mean = x.shape[-1], x.mean(axis=-1)
    if across:
        return (width * mean[:, :, None] * mean[:, None] - gram(x)) / (width - 1)
    return (width * mean**2 - np.einsum("nai,nai->na", x, x) / width) / (width - 1)
