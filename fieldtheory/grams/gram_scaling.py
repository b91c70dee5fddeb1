"""The scale of branches at which blocks share the stream in a given ratio of first to last."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq

from fieldtheory import validation
from fieldtheory.averages.tolerance import DEFAULT as DEFAULT_TOLERANCE
from fieldtheory.grams.gram_solution import GramSolution
from fieldtheory.networks.family import single_network
from fieldtheory.networks.gram import GramNetwork
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.scaling.responses import SEARCHED


@named_arguments
def spread_scaling(
    network: GramNetwork,
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
    network : GramNetwork
        Such as a `BlockNetwork`; its ``branch_scale`` is not used.
    K0 : float
        The mean square of the read-in, > 0.
    spread : float
        s > 0, that of the first block over that of the last.
    of : {"shares", "parts"}
        ``shares`` of the `solve` result, or ``parts`` of `tangent_kernels`, all kinds together.
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
    one = single_network(network, GramNetwork).replace(branch_scale=1.0)
    unit = 1 / (network.depth * np.mean(one.layer(one.parameters).weight))

    def excess(s: Any) -> Any:
        """ln of the ratio over ``spread`` at ρ² = s."""
        scales = np.sqrt(s)[..., None] * np.ones(network.depth)
        solution = GramSolution(network.replace(branch_scale=scales), np.array(variance), rtol)
        if of == "shares":
            blocks = solution.shares[..., 1:]
        else:
            blocks = solution.trained_parts(np.ones(len(network.trained))).sum(-2)[..., 1:-1]
        return np.log(blocks[..., 0] / blocks[..., -1] / spread)

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
    return float(np.sqrt(brentq(excess, low, high, xtol=1e-300, rtol=1e-13)))
