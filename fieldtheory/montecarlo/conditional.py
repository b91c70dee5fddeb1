"""Conditional expectations: the last layer's average over its normals, taken exactly."""

from __future__ import annotations

import numpy as np

from fieldtheory.montecarlo.trajectories import distinct_pairs, saddle_point, sampled, trajectories
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.layer_averages.entries import network_entries
from fieldtheory.numerics.recursion import residual_kernel


def conditional_samples(
    network: LayeredNetwork, K0: float, generator: np.random.Generator, samples: int
) -> dict[str, np.ndarray]:
    """Draw networks, and average over the residuals of one layer given all before it.

    Given h^(l-1), the h_i^(l) are independent and normal with the means γ_l h_i^(l-1) and the
    variance C^(l). Without a skip connection, γ_l = 0, this gives

        ⟨C^(l+1)⟩ = a_{l+1} M(C^(l)) + c_{l+1},
        Var C^(l+1) = a²_{l+1} ⟨g ; g⟩_{C^(l)} / N,   g = Σ_k ψ_k(h)²,

    and ⟨C^(k) C^(l+1)⟩ = C^(k) ⟨C^(l+1)⟩ for k <= l. With one, these averages need an integral for
    every neuron, and C^(l+1) is taken as it was drawn; but for all γ_l

        ⟨(h_i^(l))² (h_j^(l))²⟩ = [γ_l² (h_i^(l-1))² + C^(l)] [γ_l² (h_j^(l-1))² + C^(l)],  i ≠ j.

    In h^(0) the averages are those over N(0, K0).

    Parameters
    ----------
    network : LayeredNetwork
        Without batch axes.
    K0 : float
    generator : numpy.random.Generator
    samples : int
        Number n of networks.

    Returns
    -------
    dict of str to ndarray
        ``rest`` (n, L+1), ``product`` (n, L+1, L+1) and ``vertex`` (n, L+1), the conditional
        expectations of C^(l) − C*^(l), of the products of two of these, and of
        Σ_{i≠j} [(h_i^(l))² − K*^(l)] [(h_j^(l))² − K*^(l)] / N(N−1); ``residual`` (n, L+1), the
        C^(1), ..., C^(L+1) as drawn.

    Raises
    ------
    OverflowError
        If a kernel is not finite.

    Notes
    -----
    A network that forgets its early layers gains most. With skip connections the noise of all
    layers adds up, and there is little to gain from the last.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> net = ResidualNetwork(depth=3, skip_scale=0.0, width=50)
    >>> found = conditional_samples(net, 0.5, np.random.default_rng(0), samples=10)
    >>> bool((found["rest"].std(axis=0) < found["residual"].std(axis=0)).all())
    True
    """
    return sampled(_one_tile, network, float(K0), generator, samples)


def _one_tile(
    network: LayeredNetwork, K0: float, generator: np.random.Generator, samples: int
) -> dict[str, np.ndarray]:
    normals = generator.standard_normal((samples, network.depth + 1, network.width))
    h, residual = trajectories(network, K0, normals)
    point, layers = saddle_point(network, K0), layer_coefficients(network)
    # γ_l² of the layers l = 0, ..., L that feed C^(l+1); nothing comes before h^(0).
    skips = layers.skips[:-1]
    variances = np.concatenate([np.full((samples, 1), K0), residual[:, :-1]], axis=1)
    drawn = residual - point.residual_kernels[1:]
    rest, noise = drawn.copy(), np.zeros_like(drawn)
    averages = network_entries(network)
    for l in np.flatnonzero(skips == 0):
        # C^(1) is averaged over N(0, K0), the same for all networks.
        K = variances[:, l] if l else variances[:1, l]
        weight = layers.weights[l + 1]
        moment = residual_kernel(weight, layers.biases[l + 1], averages.second_moment(K))
        rest[:, l] = moment - point.residual_kernels[l + 1] if l else 0.0
        noise[:, l] = weight**2 * averages.connected(K, K, K) / network.width
    product = np.tril(rest[:, :, None] * drawn[:, None, :], -1)
    product += product.swapaxes(1, 2)
    steps = np.arange(network.depth + 1)
    product[:, steps, steps] = rest**2 + noise
    earlier = np.roll(h, 1, axis=1)
    squares = skips[:, None] * earlier**2 + variances[..., None] - point.kernels[:-1, None]
    vertex = distinct_pairs(squares)
    forgets = np.flatnonzero(skips[1:] == 0) + 1
    vertex[:, forgets] = product[:, forgets - 1, forgets - 1]
    return {"rest": rest, "product": product, "vertex": vertex, "residual": residual}
