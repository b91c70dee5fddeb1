"""Cumulants of the kernels beyond the leading order, by summing diagrams in numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.networks.family import LayeredNetwork, checked_network
from fieldtheory.numerics.infinite_width.gains import variance_gains
from fieldtheory.numerics.kernels import variances
from fieldtheory.numerics.one_input.fluctuations import (
    accumulated_variance,
    kernel_covariance,
    shift_by_averages,
    source_covariance,
)
from fieldtheory.numerics.one_input.vertex_numbers import VertexNumbers
from fieldtheory.numerics.substitution import propagate
from fieldtheory.theory.contraction import summed
from fieldtheory.theory.diagrams import diagrams


def loop_correction(network: LayeredNetwork, K0: Any, legs: int = 1, loops: int = 1) -> np.ndarray:
    """The part of a cumulant of residual kernels of one order of 1/N, for one input.

        legs = 1   ⟨C^(l)⟩ − C*^(l)               loops = 1: order 1/N,  loops = 2: 1/N²
        legs = 2   ⟨C^(k);C^(l)⟩                  loops = 0: G11,        loops = 1: 1/N²
        legs = 3   ⟨C^(j);C^(k);C^(l)⟩            loops = 0: 1/N²

    The sum of all diagrams of the action about its saddle point (`Derivation.diagrams`), with its
    power of 1/N. Beyond the papers.

    Parameters
    ----------
    network : LayeredNetwork
        Without batch axes.
    K0 : float
        Variance of the input.
    legs, loops : int
        E and the number of loops. The order is (1/N)^(loops + E − 1).

    Returns
    -------
    ndarray, shape (L + 2,) * E

    Raises
    ------
    ValueError, TypeError
        If an argument is not of the stated kind.
    QuadratureError
        If the averages over the signals of up to three layers miss 1e-10.

    Notes
    -----
    The mean at one loop takes L² steps at any depth (`mean_at_one_loop`). Else cost and memory grow
    as L to the power of the legs of a vertex, L⁵ at order 1/N², and vertices of k conjugates are
    integrals over the signals of up to k layers: seconds at L = 4. Order 1/N³ has more than a
    thousand diagrams of G11 and takes minutes. `solve` has the mean, the variances and the third
    cumulant to order 1/N² at any depth, by another route.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.ResidualNetwork(depth=1, activation="relu", width=100)
    >>> np.allclose(loop_correction(net, 0.5, legs=2, loops=0), ft.solve(net, 0.5).G11, rtol=1e-9)
    True
    >>> loop_correction(net, 0.5, legs=1, loops=1).shape
    (3,)
    """
    checked_network(network)
    if network.batch_shape:
        raise ValueError("network must not have batch axes, got a scale with one")
    K0 = validation.input_kernel_array("K0", K0)
    if K0.shape not in ((), (1, 1)):
        raise ValueError(
            f"K0 must be the variance of one input, got shape {K0.shape}; for several inputs the "
            "symbols of Derivation.correction hold"
        )
    found = diagrams(legs, loops)
    if (legs, loops) == (1, 1):
        return mean_at_one_loop(network, float(K0.reshape(()))) / network.width
    graphs = [d.graph for d in found if not d.vanishes]
    vertex = VertexNumbers(network, float(K0.reshape(())))
    lines = _propagators(vertex)
    order = loops + legs - 1
    return summed(graphs, legs, vertex, lines) / float(network.width) ** order


def mean_at_one_loop(network: LayeredNetwork, K0: float) -> np.ndarray:
    """N (⟨C^(l)⟩ − C*^(l)) to leading order, shape (L + 2,), in L² steps.

    The two diagrams that do not vanish, with C̃^(k) earlier than C̃^(m):

        Σ_m G12^{lm} [ (1/2) Σ_{ij} S_{m;ij} G11^{ij} + Σ_{k<m} Σ_j S_{mk;j} G12^{jk} ]

    C enters vertices by the covariance of the signals alone, K^(l) = Σ_j A²_lj C^(j), so that the
    sums over i and j are those of propagators of K: Var K^(m-1), and the response of K^(m-1) to
    C̃^(k). That of the earlier K^(k-1), and of the covariance of both signals, vanishes by
    causality: of the derivatives of ⟨g_m ; g_k⟩ only that by K^(m-1) counts.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> mean_at_one_loop(ResidualNetwork(depth=20, activation="tanh"), 0.5).shape
    (22,)
    """
    layers = layer_coefficients(network)
    C, K = variances(network, np.asarray(K0))
    gains = variance_gains(network, K)
    S22 = source_covariance(network, layers, K)
    variance = accumulated_variance(layers, kernel_covariance(layers, gains, S22, 1))
    return shift_by_averages(network, layers, gains, (C, K), variance)


def _propagators(vertex: VertexNumbers) -> dict[str, np.ndarray]:
    """N G12 and N G11."""
    network = vertex.network
    layers = layer_coefficients(network)
    _, K = variances(network, np.asarray(vertex.K0))
    gains = variance_gains(network, K)
    G12 = propagate(layers.skips, gains, np.eye(len(K)))
    return {"G12": G12, "G11": kernel_covariance(layers, gains, vertex(2, 0), 1)}
