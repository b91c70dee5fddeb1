"""The scale of branches at which a layer keeps the variance of its signals."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fieldtheory import validation
from fieldtheory.criticality.susceptibility import susceptibilities
from fieldtheory.networks.family import DeepNetwork, single_network
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.numerics.solution import solve

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
