"""Antithetic networks: the linear part of the fluctuations reversed by other normals."""

from __future__ import annotations

import numpy as np

from fieldtheory.montecarlo.trajectories import distinct_pairs, saddle_point, sampled, trajectories
from fieldtheory.networks.family import LayeredNetwork


def antithetic_samples(
    network: LayeredNetwork, K0: float, generator: np.random.Generator, samples: int
) -> dict[str, np.ndarray]:
    """Draw pairs of networks whose fluctuations are opposite to first order, for one input.

    The kernels are driven by the normals z_i^(l) through Σ_i z_i^(k) z_i^(l) / N, which fluctuates
    about δ_kl. The second network of a pair has the normals of `reflected`, whose products
    fluctuate the other way; its law is that of the first. To first order the mean of the pair is
    free of noise as far as φ² is a quadratic and an odd function, as that of ReLU is; the other
    Hermite components of φ² remain.

    Parameters
    ----------
    network : LayeredNetwork
        Without batch axes.
    K0 : float
    generator : numpy.random.Generator
    samples : int
        Number n of pairs.

    Returns
    -------
    dict of str to ndarray
        ``rest`` (n, L+1), ``product`` (n, L+1, L+1) and ``vertex`` (n, L+1), means over both
        networks of C^(l) − C*^(l), of the products of two of these, and of
        Σ_{i≠j} [(h_i^(l))² − K*^(l)] [(h_j^(l))² − K*^(l)] / N(N−1); ``residual`` (n, L+1), the
        C^(1), ..., C^(L+1) of the first network.

    Raises
    ------
    OverflowError
        If a kernel is not finite.

    Notes
    -----
    Products are even in the fluctuations: covariances and vertices gain nothing. Known coefficients
    are not used; where the fluctuations are small the control variate leaves less noise. What is
    left grows with the number of layers over N.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> net = ResidualNetwork(depth=3, activation="relu", width=500)
    >>> found = antithetic_samples(net, 0.5, np.random.default_rng(0), samples=100)
    >>> bool((found["rest"].std(axis=0) < 0.2 * found["residual"].std(axis=0)).all())
    True
    """
    return sampled(_one_tile, network, float(K0), generator, samples)


def reflected(normals: np.ndarray) -> np.ndarray:
    """Other normals of the same law, for which Σ_i z_i^(k) z_i^(l) fluctuates the other way.

    With z = (Q R)ᵀ, Q orthonormal, the entries of R are independent of Q and of each other: those
    above the diagonal are normal, and |R_kk|² is χ² distributed with N − k + 1 degrees of freedom
    (Bartlett's decomposition, k = 1, 2, ...). So −Q R' follows the same law if R' has −R_kl above
    the diagonal and on it the opposite quantile of each distribution, with the sign of R_kk. Odd
    functions of z change their sign to leading order.

    Parameters
    ----------
    normals : ndarray, shape (n, layers, N)

    Returns
    -------
    ndarray, shape (n, layers, N)

    Examples
    --------
    >>> z = np.random.default_rng(0).standard_normal((1, 2, 1000))
    >>> other = reflected(z)
    >>> (z[0] @ z[0].T / 1000).round(2), (other[0] @ other[0].T / 1000).round(2)
    (array([[0.96, 0.06],
           [0.06, 1.05]]), array([[ 1.04, -0.06],
           [-0.06,  0.96]]))
    """
    from scipy.special import chdtr, chdtri

    Q, R = np.linalg.qr(normals.swapaxes(-1, -2))
    steps = np.arange(R.shape[-2])
    diagonal = R[..., steps, steps]
    freedom = normals.shape[-1] - steps
    # chdtri inverts the complement of chdtr.
    opposite = np.copysign(np.sqrt(chdtri(freedom, chdtr(freedom, diagonal**2))), diagonal)
    R[..., steps, steps] = -opposite
    return (Q @ R).swapaxes(-1, -2)


def _one_tile(
    network: LayeredNetwork, K0: float, generator: np.random.Generator, samples: int
) -> dict[str, np.ndarray]:
    normals = generator.standard_normal((samples, network.depth + 1, network.width))
    first, residual = _statistics(network, K0, normals)
    second, _ = _statistics(network, K0, reflected(normals))
    found = {name: (first[name] + second[name]) / 2 for name in first}
    return found | {"residual": residual}


def _statistics(
    network: LayeredNetwork, K0: float, normals: np.ndarray
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    point = saddle_point(network, K0)
    h, residual = trajectories(network, K0, normals)
    rest = residual - point.residual_kernels[1:]
    product = rest[:, :, None] * rest[:, None, :]
    vertex = distinct_pairs(h**2 - point.kernels[:-1, None])
    return {"rest": rest, "product": product, "vertex": vertex}, residual
