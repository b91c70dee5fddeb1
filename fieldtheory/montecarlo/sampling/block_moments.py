"""Blocks of networks drawn chunk by chunk, and the moments of their parts merged into batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fieldtheory.montecarlo.sampling.moments import Moments, Summary, jackknife, merge, moments_of
from fieldtheory.montecarlo.sampling.plan import Block
from fieldtheory.numerics import chunks

# The arrays of one block, moments among them.
Draw = Callable[[Block], dict[str, np.ndarray]]


def drawn(
    groups: Sequence[tuple[Draw, list[Block]]],
    purpose: str,
    specification: Callable[[], dict[str, Any]],
    directory: str | Path | None,
    jobs: int | None,
    progress: bool,
) -> Iterator[dict[str, np.ndarray]]:
    """The arrays of the blocks of every chunk, in order, those of a chunk on one first axis."""
    tasks = ((index, *group) for index, group in enumerate(groups))
    return chunks.ordered_chunks(
        _evaluate,
        tasks,
        len(groups),
        jobs,
        purpose,
        directory=directory,
        specification=None if directory is None else specification(),
        progress=progress,
    )


def _evaluate(task: tuple[Any, ...]) -> tuple[int, dict[str, np.ndarray]]:
    index, draw, blocks = task
    with chunks.one_thread(), np.errstate(over="ignore", invalid="ignore"):
        values = [draw(block) for block in blocks]
    return index, {name: np.concatenate([arrays[name] for arrays in values]) for name in values[0]}


def moments_of_parts(samples: dict[str, np.ndarray], block: Block) -> dict[str, np.ndarray]:
    """The moments of groups of variables (n, groups, variables), parts on the first axis.

    >>> from fieldtheory.montecarlo.sampling.plan import Part
    >>> block = Block(0, (Part(0, 1), Part(1, 2)))
    >>> moments_of_parts({"x": np.array([[[1.0]], [[2.0]], [[6.0]]])}, block)["x_mean"].ravel()
    array([1., 4.])
    """
    edges = np.cumsum([part.size for part in block.parts])[:-1]
    summaries = {}
    with np.errstate(over="ignore", invalid="ignore"):
        for name, values in samples.items():
            parts = [moments_of(part) for part in np.split(values, edges)]
            summaries[f"{name}_mean"] = np.stack([part.mean for part in parts])
            summaries[f"{name}_comoment"] = np.stack([part.comoment for part in parts])
    return summaries


def collected(
    groups: Sequence[list[Block]],
    results: Iterator[dict[str, np.ndarray]],
    kept: Sequence[str] = (),
) -> tuple[list[dict[str, Moments]], dict[str, np.ndarray]]:
    """The moments of all batches, and arrays that are ``kept``, from `drawn` of all ``groups``."""
    batches: dict[int, dict[str, Moments]] = {}
    raw: dict[str, list[np.ndarray]] = {name: [] for name in kept}
    with np.errstate(over="ignore", invalid="ignore"):
        for blocks, arrays in zip(groups, results, strict=True):
            for name, values in raw.items():
                values.append(arrays[name])
            # In order, so that no chunk or worker changes a batch.
            names = [name.removesuffix("_mean") for name in arrays if name.endswith("_mean")]
            for row, part in enumerate(part for block in blocks for part in block.parts):
                batch = batches.setdefault(part.batch, {})
                for name in names:
                    mean, comoment = (arrays[f"{name}_{of}"][row] for of in ("mean", "comoment"))
                    new = Moments(part.size, mean, comoment)
                    batch[name] = merge(batch[name], new) if name in batch else new
    ordered = [batches[index] for index in sorted(batches)]
    return ordered, {name: np.concatenate(values) for name, values in raw.items()}


def estimated(
    batches: Sequence[dict[str, Moments]],
    estimate: Callable[[Summary], dict[Any, Any]],
    advice: str,
) -> dict[Any, Any]:
    """The estimates of the jackknife over batches."""
    with np.errstate(over="ignore", invalid="ignore"):
        estimates = jackknife(batches, estimate)
    for name, values in estimates.items():
        if not np.isfinite(values).all():
            raise OverflowError(f"{name} exceeds the range of float64{advice}")
    return estimates
