"""`optimal_scaling` for networks of two populations: the ρ at which the output responds most."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.averages.tolerance import DEFAULT as DEFAULT_TOLERANCE
from fieldtheory.grams.gram_solution import GramSolution
from fieldtheory.networks.gram import GramNetwork
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.scaling.exact import SEARCHED, maxima
from fieldtheory.scaling.optimum import (
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
    validation.choice("method", method, ("response",))
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
