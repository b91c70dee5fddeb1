"""Scales and widths that meet a demand: a ratio of first to last block, a deviation of kernels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.averages.routes import DEFAULT as DEFAULT_TOLERANCE
from fieldtheory.networks.family import DeepNetwork, single_network
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.numerics.solution import solve
from fieldtheory.numerics.tangent.tangent_result import tangent_kernels
from fieldtheory.scaling.responses import SEARCHED

# Widths times this have no fluctuations of which `solve` would warn.
_WIDE = 10**6


@named_arguments
def required_width(network: Any, K0: Any, deviation: float) -> int:
    """The width N at which K^(L) has a given standard deviation over networks, relative to it.

        N = N' Var K^(L) / (deviation² K^(L)²)

    from Var K to order 1/N at any width N'; K^(L) is the mean square of the last hidden layer. A
    `BlockNetwork` keeps M/N.

    Parameters
    ----------
    network : ResidualNetwork, BlockNetwork or of another family
        Its ``width`` is not used.
    K0 : float or array_like, shape (P, P)
        As for `solve`, > 0; of several inputs the one that needs most counts.
    deviation : float
        > 0, such as 0.02 for 2 %.

    Returns
    -------
    int
        N >= 1. To order 1/N: for L ~ N networks fluctuate more than that.

    Raises
    ------
    TypeError, ValueError
        If an argument is not allowed, or a kernel is zero.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> required_width(ft.BlockNetwork(depth=12), 1.0, 0.05)
    845
    >>> required_width(ft.ResidualNetwork(depth=12, activation="relu"), 1.0, 0.05)
    15384
    """
    deviation = validation.positive("deviation", deviation)
    wide = network.replace(width=network.width * _WIDE) if hasattr(network, "width") else network
    solution = solve(wide, K0)
    kernels, variances = (
        np.diagonal(np.atleast_2d(each))
        for each in (solution.kernels[-2], solution.kernel_variance[-1])
    )
    if not (kernels > 0).all():
        raise ValueError(f"K0 must give kernels > 0, got K^(L) = {kernels.min():.6g}")
    return max(1, math.ceil((wide.width * variances / kernels**2).max() / deviation**2))


@named_arguments
def spread_scaling(
    network: Any,
    K0: Any,
    spread: float,
    of: str = "shares",
    *,
    rtol: float = DEFAULT_TOLERANCE,
) -> float:
    """ρ, one for all blocks, with a given ratio of the first block to the last.

    What a block has of the mean square behind it, or of the tangent kernel of the output, falls
    with its layer behind a norm: at large ρ as 1/l, while for ρ → 0 all blocks have the same.

        shares with a norm in front and ε = 0:   ρ² = K^(0) (s − 1)/(C̄ (L − s)),   1 < s < L

    with C̄ what a branch adds for ρ = 1. Other cases are solved for by numbers.

    Parameters
    ----------
    network : BlockNetwork, ResidualNetwork or of another family
        Its ``branch_scale`` is not used.
    K0 : float
        The mean square of the read-in, > 0.
    spread : float
        s > 0, that of the first block over that of the last.
    of : {"shares", "parts"}
        What layers add over the mean square behind them, as ``shares`` of the `solve` result of
        blocks, or ``parts`` of `tangent_kernels`, all kinds together.
    rtol : float
        As for `solve`.

    Returns
    -------
    float
        The smallest ρ > 0.

    Raises
    ------
    TypeError, ValueError
        If an argument is not allowed; if no ρ has this spread, as where every block has the same
        share for every ρ: behind the sum, or without a norm for φ that is scale-invariant.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.BlockNetwork(depth=48)
    >>> rho = ft.spread_scaling(net, 1.0, 2.0)
    >>> round(rho, 6), round(ft.spread_scaling(net, 1.0, 2.0, of="parts"), 6)
    (0.147442, 0.140483)
    """
    variance = validation.positive("K0", K0)
    spread = validation.positive("spread", spread)
    validation.choice("of", of, ("shares", "parts"))
    single_network(network, DeepNetwork, function="spread_scaling")
    layer = network.layer(network.parameters | {"branch_scale": 1.0})
    unit = 1 / (network.depth * np.mean(layer.weight))

    def excess(s: Any) -> Any:
        """ln of the ratio over ``spread`` at ρ² = s."""
        scaled = network.replace(branch_scale=float(np.sqrt(s)))
        if of == "shares":
            blocks = solve(scaled, variance, rtol=rtol).shares[1:]
        else:
            blocks = tangent_kernels(scaled, variance, rtol=rtol).parts.sum(axis=0)[1:-1]
        return np.log(blocks[0] / blocks[-1] / spread)

    grid = SEARCHED * unit
    values = np.array([excess(s) for s in grid[1:]])
    crossings = np.flatnonzero(values[:-1] * values[1:] <= 0)
    if not len(crossings):
        low, high = spread * np.exp([values.min(), values.max()])
        raise ValueError(
            f"spread must be one that a ρ has, got {spread:g}: that of the {of} is between "
            f"{low:.6g} and {high:.6g}"
        )
    low, high = grid[1:][crossings[0] : crossings[0] + 2]
    # SciPy's optimisers take a third of the import time of the package.
    from scipy.optimize import brentq

    return float(np.sqrt(brentq(excess, low, high, xtol=1e-300, rtol=1e-13)))
