"""The samples that the shell and the main job see, and how many of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fieldtheory import data as sets
from fieldtheory.data import Dataset

INPUT_SCALE = 0.05

_MOST_SAMPLES = 20
# An equal share of every class is taken where it gives this part of the samples allowed.
_ENOUGH = 0.5


def dataset(
    data: str | Path | None = None,
    classes: Sequence[Any] | None = None,
    count: int | None = None,
    **columns: Any,
) -> Dataset:
    """The samples asked for: of a file, see `load_file`, or of the digits 20 without a ``count``.

    >>> dataset(count=4).samples.shape
    (4, 64)
    """
    if data is None:
        chosen = (0, 3) if classes is None else classes
        return sets.load_digits(chosen, equal_share(chosen) if count is None else count)
    return sets.load_file(data, classes, count, **columns)


def equal_share(classes: Sequence[Any] | None) -> int:
    """The largest number of samples up to 20 that all classes have an equal share in.

    >>> equal_share((0, 3, 7)), equal_share(None)
    (18, 20)
    """
    return _MOST_SAMPLES - _MOST_SAMPLES % max(len(classes or ()), 1)


def part(dataset: Dataset, most: int, chosen: bool = False) -> tuple[list[str] | None, int]:
    """Classes and number of the samples to take where there are more than ``most``.

    Examples
    --------
    >>> images = Dataset(np.eye(9), np.array([3, 7, 8] * 3), "nine")
    >>> part(images, 7), part(Dataset(np.eye(9), None, "nine"), 7)
    ((['3', '7', '8'], 6), (None, 7))
    """
    if dataset.labels is not None:
        labels, sizes = np.unique(dataset.labels, return_counts=True)
        count, names = len(labels) * int(min(most // len(labels), sizes.min())), labels.tolist()
        typed = all(str(name) == str(name).strip() and "," not in str(name) for name in names)
        if chosen or (count >= _ENOUGH * most and typed):
            return [str(name) for name in names], count
    return None, most
