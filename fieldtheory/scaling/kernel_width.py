"""The width at which kernels of one network are those of the theory up to a given deviation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.numerics.solution import solve

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
