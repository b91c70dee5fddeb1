"""The samples that `--data` names, and the kernel that they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fieldtheory.cli import values
from fieldtheory.cli.terminal import echo
from fieldtheory.networks.residual import input_kernel

if TYPE_CHECKING:
    from fieldtheory.data import Dataset

# K^(0) of every sample, as in the captions of F25.
INPUT_SCALE = 0.05
_MOST_IMAGES = 20
# An equal share of every class is taken where it gives this part of the samples allowed.
_ENOUGH = 0.5


def read(of_data: dict[str, Any], most: int | None = None) -> Dataset | None:
    """The samples of the options, which may be none; their notes go to stderr.

    Of more than ``most`` a part is taken, and written into the options.

    Examples
    --------
    >>> read({"data": "digits", "classes": "0,3", "count": 4}).size
    '4 samples'
    """
    from fieldtheory import data as sets

    given = {n: v for n, v in of_data.items() if v is not None and v is not False}
    data, count, classes = (given.pop(name, None) for name in ("data", "count", "classes"))
    of_file = {name: value for name, value in given.items() if name != "scale"}
    if data is None:
        for name, value in of_data.items():
            if value is not None and value is not False:
                raise ValueError(f"{name} must be left out without data, got {value!r}")
        return None
    if most is not None and count is not None and count > most:
        raise ValueError(f"count must be at most {most} for one page, got {count}")
    if data in ("digits", "mnist"):
        for name, value in of_file.items():
            raise ValueError(f"{name} is for columns of a file, got {value!r} and data {data!r}")
        digits = [0, 3] if classes is None else values.integers("classes", classes)
        if count is None:
            # An equal share of every class.
            count = _MOST_IMAGES - _MOST_IMAGES % len(digits)
        load = sets.load_digits if data == "digits" else sets.load_mnist
        dataset = load(digits, count)
    else:
        if "drop" in of_file:
            of_file["drop"] = values.names(of_file["drop"])
        dataset = sets.load_file(data, values.names(classes), count, **of_file)
    if most is not None and len(dataset.samples) > most:
        kept, of_data["count"] = part(dataset, most, classes is not None)
        of_data["classes"] = None if kept is None else ",".join(kept)
        return read(of_data)
    for kind in ("note", "warning"):
        if words := getattr(dataset, kind):
            echo(f"{kind}: {words}", err=True)
    return dataset


def part(dataset: Dataset, most: int, chosen: bool = False) -> tuple[list[str] | None, int]:
    """Classes and number of the samples to take where there are more than ``most``.

    Examples
    --------
    >>> from fieldtheory.data import Dataset
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


def kernel_of(dataset: Dataset, scale: str | None, network: Any) -> tuple[str, np.ndarray]:
    """Words on the samples and their scale, and their kernel.

    >>> words, K0 = kernel_of(read({"data": "digits", "count": 4}), "0.1", None)
    >>> words
    'digits 0, 3 (scikit-learn, 8x8 pixels): 4 samples rescaled to K0 = 0.1'
    >>> K0.diagonal().round(12)
    array([0.1, 0.1, 0.1, 0.1])
    """
    from fieldtheory import data as sets

    size, words = variance(scale), f"{dataset.name}: {dataset.size}"
    if size is None:
        return f"{words} as they are", input_kernel(dataset.samples, network)
    return f"{words} rescaled to K0 = {size:g}", sets.scaled_kernel(dataset.samples, size)


def variance(scale: str | None, default: float = INPUT_SCALE) -> float | None:
    """Variance > 0 that ``--scale`` asks for, or None for samples that stay as they are."""
    value: Any = default if scale is None else values.parameter("scale", scale)
    if value is None or (isinstance(value, float) and 0 < value < float("inf")):
        return value
    raise ValueError(f"scale must be a number > 0 or none, got {scale!r}")
