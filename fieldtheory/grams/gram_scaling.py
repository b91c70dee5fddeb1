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
from fieldtheory.scaling.optimum import of_kernel, optimal_scaling, say_which_pairs_have_none, say_why_none

# Numbers of a layer that are computed at once, and the steps of differences by ρ², relative to it
# and, from zero, to that of the search.
_AT_ONCE, _STEP = 2**14, 1e-3


@dataclass(frozen=True, eq=False)
class _Entries:
    """Entries of the output kernel of one network, as `maxima` takes them; ``unit`` is its ρ²."""

    network: GramNetwork
    unit: float
    rtol: float

    def of(self, index: np.ndarray) -> _Entries:
        """All are of the same network."""
        return self

    def near_zero(self) -> _Entries:
        """The same."""
        return self

    def height(self, s: np.ndarray, p: np.ndarray, q: np.ndarray, r: np.ndarray) -> np.ndarray:
        """ln|χ^out| at s = ρ² (rows, m); NaN where numbers are beyond float64."""
        result, alone = np.full(s.shape, np.nan), (p == r) & (q == r)
        kernels = np.stack([p, r, r, q], axis=-1).reshape(-1, 2, 2)
        for some, K0, entry in ((alone, p, ()), (~alone, kernels, (0, 1))):
            for row in range(len(s)) if some.any() else ():
                scales = np.sqrt(s[row, some])[:, None] * np.ones(self.network.depth)
                network = self.network.replace(branch_scale=scales)
                try:
                    response = GramSolution(network, K0[some], self.rtol).output_response
                except OverflowError:
                    continue
                result[row, some] = np.log(np.abs(response[..., *entry]))
        return result

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
    dynamic_range: float | None = None,
    slope: float | None = None,
    order: int | None = None,
    rtol: float = DEFAULT_TOLERANCE,
    progress: bool = False,
    digits: int | None = None,
    proven: bool = False,
) -> Any:
    """ρ*, one for all blocks, with the largest response χ^out of the output.

    The maximum is that of the theory of `solve`, as for other networks. One input with a norm in
    front of the readout has none for ε = 0: the norm fixes its variance.

    Parameters
    ----------
    network : GramNetwork
        ``branch_scale`` is ignored.
    K0 : float or array_like, shape (P,) or (..., P, P)
    method : {"response"}
        Other methods, and what belongs to them, are not there for these networks.
    rtol, progress
        As for other networks.

    Returns
    -------
    float or ndarray, shape of K0
        As for other networks; also NaN, with a warning, for variances of a matrix without ρ*.

    Raises
    ------
    TypeError, ValueError
        If an argument is not allowed, or the response of a variance has no maximum.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.BlockNetwork(depth=12, activation="tanh", normalization=None)
    >>> ft.optimal_scaling(net, 0.05)
    0.1
    """
    kernel = validation.input_kernel_array("K0", K0)
    unsaid = {"dynamic_range": dynamic_range, "slope": slope, "order": order, "digits": digits}
    for name, value in (unsaid | {"proven": proven or None}).items():
        if value is not None:
            raise ValueError(
                f"{name} must be left out for a {type(network).__name__}, got {value!r}"
            )
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


def _optima(
    each: _Entries, must: bool, p: np.ndarray, q: np.ndarray, r: np.ndarray
) -> np.ndarray:
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
            text = f"that of one input of a {type(each.network).__name__} {reason}"
            if must:
                raise ValueError(f"network must have a response with a maximum in ρ; {text}")
            warnings.warn(
                f"K0 has variances without ρ*, which are NaN: the response {text[8:]}",
                stacklevel=validation.level_of_user(),
            )
    return np.sqrt(np.concatenate(parts))[None]
