"""Linear diffusions without their width: the Gram matrix of all neurons, and one of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fieldtheory.diffusions.diffusion_network import DiffusionNetwork
from fieldtheory.diffusions.layers_drawn import Layer, pivoted_root, require_finite


def grams_drawn(
    network: DiffusionNetwork, start: np.ndarray, generator: np.random.Generator, networks: int
) -> Iterator[Layer]:
    """The Gram matrices q_0, ..., q_L of so many networks, and their first neuron.

    For ψ(x) = x and increments s u, s = φ'(0), the law of the next Gram matrix of x (P, D) depends
    on the last one alone. With x = C O for P orthonormal rows O, and u = R ξ for normal numbers ξ,
    R Rᵀ = Δt (σ_b² + σ_w² q), the columns of ξ along O are normal numbers ζ (P, P), and the others
    have a Wishart matrix of D − P degrees of freedom with a root T by Bartlett's decomposition:

        D q' = (C + s R ζ)(C + s R ζ)ᵀ + s² R T (R T)ᵀ.

    That takes of the order of P² numbers for any D. Here D − 1 neurons are drawn in this way, and
    the first one apart from them.

    Parameters
    ----------
    network : DiffusionNetwork
        Of finite depth, with ``is_linear``; its steps are those of Euler and Maruyama, for φ = id
        the layers of the network itself.
    start : ndarray, shape (P, D)
    generator : numpy.random.Generator
    networks : int

    Yields
    ------
    Layer
        ``displacements`` is that of the first neuron, (n, P, 1).

    Raises
    ------
    OverflowError
        If a Gram matrix is not finite.

    Examples
    --------
    >>> net = DiffusionNetwork(depth=2, width=10**6)
    >>> start = np.ones((1, 10**6))
    >>> [layer.gram.shape for layer in grams_drawn(net, start, np.random.default_rng(0), 5)]
    [(5, 1, 1), (5, 1, 1), (5, 1, 1)]
    """
    assert network.depth is not None
    inputs, width = start.shape
    others = width - 1
    neuron = np.tile(start[:, :1], (networks, 1, 1))
    few = others <= inputs
    # The other neurons themselves where they are few, else a root of their Gram matrix.
    root = np.tile(start[:, 1:], (networks, 1, 1)) if few else np.empty(0)
    remainder = np.tile(start[:, 1:] @ start[:, 1:].T, (networks, 1, 1))
    for number in range(network.depth + 1):
        products = (neuron * neuron.swapaxes(-1, -2) + remainder) / width
        require_finite(network, products, number)
        yield Layer(number, neuron - start[:, :1], products)
        if number == network.depth:
            return
        with np.errstate(over="ignore", invalid="ignore"):
            variance = network.bias_variance + network.weight_variance * products
            scale = network.slopes[0] * pivoted_root(network.step * variance)
            if not few:
                root = pivoted_root(remainder)
                # Orthonormal rows for what is not of full rank as well.
                root = np.pad(root, ((0, 0), (0, 0), (0, inputs - root.shape[-1])))
            normals = generator.standard_normal((networks, scale.shape[-1], 1 + root.shape[-1]))
            steps = scale @ normals
            neuron = neuron + steps[..., :1]
            root = root + steps[..., 1:]
            remainder = root @ root.swapaxes(-1, -2)
            if not few:
                free = others - inputs
                spread = scale @ wishart_root(free, scale.shape[-1], generator, networks)
                remainder += spread @ spread.swapaxes(-1, -2)


def wishart_root(
    freedom: int, inputs: int, generator: np.random.Generator, count: int
) -> np.ndarray:
    """T (count, P, min(P, ν)) with T Tᵀ of Wishart's law of ν >= 1 degrees of freedom (Bartlett).

    Lower triangular, with normal numbers below χ_ν, χ_{ν-1}, ... on the diagonal; for ν < P it has
    ν columns.

    Examples
    --------
    >>> root = wishart_root(1000, 2, np.random.default_rng(0), 500)
    >>> (root @ root.swapaxes(1, 2)).mean(axis=0).round(-1)
    array([[1000.,   -0.],
           [  -0., 1000.]])
    """
    columns = min(inputs, freedom)
    root = np.tril(generator.standard_normal((count, inputs, columns)), -1)
    for j in range(columns):
        root[:, j, j] = np.sqrt(generator.chisquare(freedom - j, count))
    return root
