"""Moments of blocks of samples, and how they are merged into batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fieldtheory.montecarlo.moments import Moments, Summary, jackknife, merge, moments_of
from fieldtheory.montecarlo.plan import Block


def moments_of_parts(samples: dict[str, np.ndarray], block: Block) -> dict[str, np.ndarray]:
    """The moments of groups of variables (n, groups, variables), parts on the first axis.

    Examples
    --------
    >>> from fieldtheory.montecarlo.plan import Part
    >>> block = Block(0, (Part(0, 1), Part(1, 2)))
    >>> moments_of_parts({"x": np.array([[[1.0]], [[2.0]], [[6.0]]])}, block)["x_mean"].ravel()
    array([1., 4.])
    """
    edges = np.cumsum([part.size for part in block.parts])[:-1]
    found = {}
    with np.errstate(over="ignore", invalid="ignore"):
        for name, values in samples.items():
            parts = [moments_of(part) for part in np.split(values, edges)]
            found[f"{name}_mean"] = np.stack([part.mean for part in parts])
            found[f"{name}_comoment"] = np.stack([part.comoment for part in parts])
    return found


def add_parts(
    batches: dict[int, dict[str, Moments]], blocks: list[Block], arrays: dict[str, np.ndarray]
) -> None:
    """Merge the parts of a chunk, in order, into the moments of their batches."""
    names = [name.removesuffix("_mean") for name in arrays if name.endswith("_mean")]
    for row, part in enumerate(part for block in blocks for part in block.parts):
        batch = batches.setdefault(part.batch, {})
        for name in names:
            new = Moments(part.size, arrays[f"{name}_mean"][row], arrays[f"{name}_comoment"][row])
            batch[name] = merge(batch[name], new) if name in batch else new


def estimated(
    batches: dict[int, dict[str, Moments]],
    estimate: Callable[[Summary], dict[Any, Any]],
    advice: str,
) -> dict[Any, Any]:
    """The estimates of the jackknife over batches, in the order of their numbers.

    Raises
    ------
    OverflowError
        If one is not finite; ``advice`` ends its message.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        found = jackknife([batches[index] for index in sorted(batches)], estimate)
    for name, values in found.items():
        if not np.isfinite(values).all():
            raise OverflowError(f"{name} exceeds the range of float64{advice}")
    return found
