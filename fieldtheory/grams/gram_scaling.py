"""`optimal_scaling` for networks of two populations: the ρ at which the output responds most."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import brentq

from fieldtheory import validation
from fieldtheory.averages.routes import DEFAULT as DEFAULT_TOLERANCE
from fieldtheory.grams.gram_solution import GramSolution
from fieldtheory.networks.dispatch import residual_only
from fieldtheory.networks.family import single_network
from fieldtheory.networks.gram import GramNetwork
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.scaling.exact import SEARCHED, maxima
from fieldtheory.scaling.optimum import (
    METHODS,
    of_kernel,
    optimal_scaling,
    say_which_pairs_have_none,
    say_why_none,
)

# Entries times layers that are computed at once; the steps of differences by ρ², relative to it
# and, from zero, to that of the search; and responses of one input that are rounding.
_AT_ONCE, _STEP, _ROUNDING = 2**14, 1e-3, 1e-13


@dataclass(frozen=True, eq=False)
class _Entries:
    """Entries of the output kernel of one network, as `maxima` takes them; ``unit`` is its ρ²."""

    network: GramNetwork
    unit: float
    rtol: float

    def of(self, index: Any = None) -> _Entries:
        """All are of the same network."""
        return self

    near_zero = of

    def height(self, s: np.ndarray, p: np.ndarray, q: np.ndarray, r: np.ndarray) -> np.ndarray:
        """ln|χ^out| at s = ρ² (rows, m); NaN where numbers are beyond float64."""
        result, alone = np.empty(s.shape), (p == r) & (q == r)
        kernels = np.stack([p, r, r, q], axis=-1).reshape(-1, 2, 2)
        for some, K0, entry in ((alone, p, ()), (~alone, kernels, (0, 1))):
            if some.any():
                result[:, some] = self._logarithms(s[:, some], K0[some], entry)
        return result

    def _logarithms(self, s: np.ndarray, K0: np.ndarray, entry: Any) -> np.ndarray:
        scales = np.sqrt(s)[..., None] * np.ones(self.network.depth)
        solution = GramSolution(self.network.replace(branch_scale=scales), K0, self.rtol)
        try:
            response, output = solution.output_response, solution.output_kernel
        except OverflowError:
            if len(s) == 1:
                return np.full(s.shape, np.nan)
            halves = np.array_split(s, 2)
            return np.concatenate([self._logarithms(half, K0, entry) for half in halves])
        if not entry:
            response = np.where(np.abs(response) * K0 > _ROUNDING * output, response, 0.0)
        return np.log(np.abs(response[(..., *entry)]))

    def slope(self, s: np.ndarray, *fields: np.ndarray) -> np.ndarray:
        """The derivative of the height by s (m,), by differences."""
        low = np.where(s > 0, s * (1 - _STEP), 0.0)
        high = np.where(s > 0, s * (1 + _STEP), _STEP * SEARCHED[1] * self.unit)
        first, last = self.height(np.stack([low, high]), *fields)
        return (last - first) / (high - low)


@optimal_scaling.register(GramNetwork)
@named_arguments
def gram_scaling(
    network: GramNetwork,
    K0: Any,
    method: str = "response",
    *,
    rtol: float = DEFAULT_TOLERANCE,
    progress: bool = False,
) -> Any:
    """ρ*, one for all blocks, with the largest response χ^out of the output that `solve` gives.

    One input has none behind a norm with ε = 0, which fixes its variance, and mostly none without
    a norm, where the output is linear in a stream that grows with ρ: ValueError, or, for variances
    of a matrix, NaN and a warning. The rest is as for other networks.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.BlockNetwork(depth=12, activation="tanh", epsilon=1.0)
    >>> round(ft.optimal_scaling(net, 0.05), 6)
    0.326926
    """
    kernel = validation.input_kernel_array("K0", K0)
    if validation.choice("method", method, METHODS) != "response":
        raise residual_only(f"method={method!r}", network)
    parameters = network.replace(branch_scale=1.0).parameters
    weights, readout = network.layer(parameters).weight, network.readout(parameters).weight
    if np.ndim(weights) > 1 or not (np.all(weights > 0) and readout > 0):
        raise ValueError("network must have weight variances > 0, and no batch axes")
    each = _Entries(network, 1 / (network.depth * np.mean(weights)), rtol)
    values = of_kernel(partial(_optima, each, kernel.ndim < 2), kernel, progress, 1)[0]
    if (values == 0).any():
        say_why_none([], values, ("", [-1.0]))
    if values.ndim > 1 and np.isnan(values[..., *np.triu_indices(len(values.T), 1)]).any():
        say_which_pairs_have_none(kernel, np.isnan(values))
    return values if values.ndim else float(values)


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


def _optima(each: _Entries, must: bool, p: np.ndarray, q: np.ndarray, r: np.ndarray) -> np.ndarray:
    """ρ* of entries as of `exact.optima`, (1, m); variances ``must`` have one."""
    parts, size = [], max(1, _AT_ONCE // each.network.depth)
    for first in range(0, len(p), size):
        fields = [f[first : first + size] for f in (p, q, r)]
        grid = SEARCHED[:, None] * np.full(len(fields[0]), each.unit)
        with np.errstate(all="ignore"):
            heights = each.height(grid, *fields)
            parts.append(maxima(each, grid, heights, False, *fields))
        missing = np.isnan(parts[-1]) & (fields[0] == fields[1]) & (fields[1] == fields[2])
        if missing.any():
            silent = np.isneginf(heights[:, missing]).all()
            reach = np.sqrt(grid[~np.isnan(heights).any(axis=1)].max())
            reason = "vanishes for every ρ" if silent else f"rises up to ρ = {reach:.3g}"
            text = f"of one input of a {type(each.network).__name__} {reason}"
            if must:
                raise ValueError(f"network must have a response with a maximum in ρ; that {text}")
            warnings.warn(
                f"K0 has variances without ρ*, which are NaN: the response {text}",
                stacklevel=validation.level_of_user(),
            )
    return np.sqrt(np.concatenate(parts))[None]
