"""Parallel and perpendicular susceptibilities, the kernel components they multiply, critical ρ.

PDLT-B is appendix B, "Residual learning", of D. A. Roberts, S. Yaida, B. Hanin, The Principles of
Deep Learning Theory (2022). Its σ is φ here, C_W = ρ²σ²_w and C_b = ρ²σ²_b.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fieldtheory import validation
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.networks.family import DeepNetwork, LayeredNetwork, single_network
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.numerics.infinite_width.block_functions import network_functions
from fieldtheory.numerics.infinite_width.kernels import variances
from fieldtheory.numerics.recursion import add_skip, ratio, require_finite
from fieldtheory.numerics.solution import solve


class Susceptibilities(NamedTuple):
    """χ_∥ and χ_⊥, arrays of the shape of the variances.

    Examples
    --------
    >>> Susceptibilities(np.array(1.0), np.array(0.5)).perpendicular
    array(0.5)
    """

    parallel: np.ndarray
    perpendicular: np.ndarray


@named_arguments
def susceptibilities(network: Any, K: Any) -> Susceptibilities:
    """The parallel and the perpendicular susceptibility of a layer at some variances.

        χ_∥(K) = γ² + (C_W/2K²) ⟨φ² (z² − K)⟩_K = γ² + C_W M'(K)     (PDLT-B (B.15))
        χ_⊥(K) = γ² + C_W ⟨φ'²⟩_K                                     (PDLT-B (B.16))

    with C_W = ρ²σ²_w, for a residual network; for one of blocks the derivatives of its layer. A
    network is critical at K* where both are 1 (B.19): see
    `fieldtheory.criticality.critical_point`.

    Parameters
    ----------
    network : ResidualNetwork, BlockNetwork or of another family
        With the same ρ and γ in every layer (PDLT-B (B.9)).
    K : float or array_like
        Variances of the signal, > 0; of the read-in, for a norm behind the sum.

    Returns
    -------
    Susceptibilities
        ``parallel`` and ``perpendicular``, of the shape of K.

    Raises
    ------
    TypeError, ValueError
        If K is not positive, or ρ or γ differ between layers.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.ResidualNetwork(depth=5, activation="tanh", skip_scale=0.5, weight_variance=0.75)
    >>> found = susceptibilities(net, [1e-6, 1.0])
    >>> found.parallel.round(4), found.perpendicular.round(4)
    (array([1.    , 0.3863]), array([1.    , 0.5983]))
    >>> blocks = susceptibilities(ft.BlockNetwork(depth=5, skip_scale=0.9, branch_scale=0.4), 1.0)
    >>> float(blocks.parallel.round(4)), float(blocks.perpendicular.round(4))
    (0.81, 0.9816)
    """
    single_network(network, DeepNetwork, function="susceptibilities")
    variance, scales = _positive("K", K), network.parameters
    names = network.layer_parameters
    if any(np.ptp(scales[name]) for name in names):
        raise ValueError(f"network must have one {' and one '.join(names)} for all layers")
    given = {name: float(scales[name][0]) for name in names if getattr(network, name) is not None}
    layer = network.replace(depth=1, **given)
    own = variance.ravel()
    try:
        of_pairs = solve(layer, own[:, None, None] * np.ones((2, 2))).response[..., 0, 1]
    except OverflowError:
        # φ that jumps parts nearby inputs at an infinite rate.
        of_pairs = np.array([1.0, np.inf]) * np.ones((own.size, 1))
    # A norm behind the sum is that of the read-in, too.
    both = (ratio(each[:, 1], each[:, 0]) for each in (solve(layer, own).response, of_pairs))
    return Susceptibilities(*(each.reshape(variance.shape) for each in both))


@named_arguments
def component_kernels(network: LayeredNetwork, components: Any) -> np.ndarray:
    """The components of the kernel of two nearby inputs in every layer.

        K_00      <- C_b + C_W g(K_00) + γ² K_00,   g = M          (PDLT-B (B.12), (B.17))
        δK_[1]    <- χ_∥(K_00) δK_[1]                               (B.13)
        δδK_[2]   <- χ_⊥(K_00) δδK_[2] + h(K_00) (δK_[1])²          (B.14)

    with h = χ_⊥'(K)/2 (B.18). K_00 is the variance of the midpoint x_0 of the inputs x_0 ± δx/2;
    the kernel of the two is K_±± = K_00 ± δK_[1] + δδK_[2] and K_+− = K_00 − δδK_[2], but for terms
    of higher order in δx (and one of K_00 itself in second order, which PDLT leaves out too).

    Parameters
    ----------
    network : LayeredNetwork
        Its ρ_l and γ_l may differ between layers.
    components : array_like, shape (3,)
        K_00 > 0, δK_[1] and δδK_[2] of the input; `kernel_components` takes them from a kernel.

    Returns
    -------
    ndarray, shape (L + 1, 3)

    Raises
    ------
    TypeError, ValueError
        If ``components`` are not three numbers, the first of them positive.
    OverflowError
        If a component leaves the range of float64.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.ResidualNetwork(depth=2, activation="relu", skip_scale=0.0, weight_variance=2.0,
    ...     bias_variance=0.0)
    >>> component_kernels(net, [1.0, 0.1, 0.01])
    array([[1.  , 0.1 , 0.01],
           [1.  , 0.1 , 0.01],
           [1.  , 0.1 , 0.01]])
    """
    start = validation.finite_array("components", components)
    if start.shape != (3,):
        raise ValueError(f"components must have shape (3,), got shape {start.shape}")
    _positive("components[0]", start[0])
    layers = layer_coefficients(single_network(network, function="component_kernels"))
    averages = network_functions(network)
    kernels = np.empty((network.depth + 1, 3))
    kernels[0] = start
    kernels[:, 0] = variances(network, start[0])[1][:-1]
    for l in range(1, network.depth + 1):
        K, parallel, distance = kernels[l - 1]
        gain, skip = layers.weights[l], layers.skips[l]
        slope = gain * averages.covariance_susceptibility(K, K, K)
        bend = gain * averages.slope_square_change(K) / 2
        kernels[l, 1] = add_skip(skip, parallel, gain * averages.susceptibility(K) * parallel)
        kernels[l, 2] = add_skip(skip, distance, slope * distance + bend * parallel**2)
        require_finite("a component of the kernel", kernels[l], l)
    return kernels


@named_arguments
def kernel_components(K: Any) -> np.ndarray:
    """The components K_[0], K_[1], K_[2] of kernels of two inputs (PDLT-B, before (B.12)).

    Parameters
    ----------
    K : array_like, shape (..., 2, 2)
        Kernel of the inputs x_+ and x_−.

    Returns
    -------
    ndarray, shape (..., 3)
        (K_++ + K_−− + 2K_+−)/4, (K_++ − K_−−)/2 and (K_++ + K_−− − 2K_+−)/4. The first is
        the variance of the midpoint, if the kernel is that of the data.

    Raises
    ------
    TypeError, ValueError
        If K does not hold matrices (2, 2) of finite numbers.

    Examples
    --------
    >>> kernel_components([[1.5, 1.0], [1.0, 1.0]])
    array([1.125, 0.25 , 0.125])
    """
    kernel = validation.finite_array("K", K)
    if kernel.shape[-2:] != (2, 2):
        raise ValueError(f"K must have shape (..., 2, 2), got shape {kernel.shape}")
    plus, minus, both = kernel[..., 0, 0], kernel[..., 1, 1], kernel[..., 0, 1]
    parts = [(plus + minus + 2 * both) / 4, (plus - minus) / 2, (plus + minus - 2 * both) / 4]
    return np.stack(parts, axis=-1)


def _positive(name: str, value: Any) -> np.ndarray:
    values = validation.finite_array(name, value)
    if (values <= 0).any():
        raise ValueError(f"{name} must be > 0, got {float(values.min())!r}")
    return values


# Relative differences of variances that are rounding.
_ROUNDING = 1e-12


class CriticalBlock(NamedTuple):
    """ρ that keeps a variance of the stream, and χ_∥ and χ_⊥ of a layer there.

    Parameters
    ----------
    branch_scale, parallel, perpendicular : float

    Examples
    --------
    >>> CriticalBlock(0.7, 0.5, 1.0).branch_scale
    0.7
    """

    branch_scale: float
    parallel: float
    perpendicular: float


@named_arguments
def critical_block(network: Any, K0: float = 1.0) -> CriticalBlock:
    """ρ at which a layer keeps the variance of the stream, K = γ² K + ρ² C̄(K), and what it damps.

    PDLT-B (B.45) for blocks without overlap of the branch with its input. χ_∥ multiplies a small
    change of the variance, χ_⊥ one of the distance of two inputs; criticality (B.19), both one, is
    not there for all blocks. A norm with ε = 0 forgets the variance, χ_∥ = γ²; χ_⊥ is what counts.

    Parameters
    ----------
    network : BlockNetwork, ResidualNetwork or of another family
        One γ, −1 < γ < 1, and weights that are the same in all layers; its ``branch_scale`` is not
        used. No norm behind the sum, which keeps the variance itself.
    K0 : float
        The variance K > 0 that is kept.

    Returns
    -------
    CriticalBlock

    Raises
    ------
    TypeError, ValueError
        If an argument is not allowed, or the branch is zero at K.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> [round(x, 4) for x in critical_block(ft.BlockNetwork(depth=1, skip_scale=0.9))]
    [0.4359, 0.81, 1.0137]
    """
    single_network(network, DeepNetwork, function="critical_block")
    K = validation.positive("K0", K0)
    one = network.replace(depth=1, branch_scale=1.0)
    # Of ρ = 1 and of ρ = 2.
    both = solve(one.replace(branch_scale=[[1.0], [2.0]]), K)
    branch, behind = both.residual_kernels[:, 1], both.kernels[:, 1]
    skip = float(one.layer(one.of_layer(1)).skip)
    if not abs(skip) < 1:
        raise ValueError(f"skip_scale must be above -1 and below 1 to keep K0, got {skip:g}")
    if not branch[0] > 0:
        raise ValueError(f"network must have branches that add something at K0 = {K:g}, got none")
    if not np.isclose(np.ptp(behind), np.ptp(branch), rtol=_ROUNDING):
        raise ValueError("norm_position must be 'pre': behind the sum every ρ keeps the variance")
    scale = float(np.sqrt((1 - skip**2) * K / branch[0]))
    parallel, perpendicular = map(float, susceptibilities(one.replace(branch_scale=scale), K))
    return CriticalBlock(scale, parallel, perpendicular)
