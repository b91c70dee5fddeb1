"""The samples that `--data` names, as an input kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fieldtheory.cli import values
from fieldtheory.cli.terminal import echo
from fieldtheory.networks.residual import ResidualNetwork, input_kernel

if TYPE_CHECKING:
    from fieldtheory.data import Dataset

NONE = "none"
# Options for the columns of a file.
COLUMNS = "label", "drop", "standardise"


def given_kernel(
    K0: str, dataset: Dataset | None, scale: str | None, network: ResidualNetwork
) -> tuple[str, float | np.ndarray]:
    """Words on the samples and their scale; the kernel, of samples or as typed.

    Examples
    --------
    >>> net = ResidualNetwork(depth=1)
    >>> words, K0 = given_kernel("", chosen("digits", "0,3", 4), "0.1", net)
    >>> words
    'digits 0, 3 (scikit-learn, 8x8 pixels): 4 samples rescaled to K0 = 0.1'
    >>> K0.diagonal().round(12)
    array([0.1, 0.1, 0.1, 0.1])
    >>> given_kernel("0.1", None, None, net)
    ('', 0.1)
    """
    if dataset is None:
        return "", values.kernel(K0)
    from fieldtheory import data as sets

    size, words = variance(scale), f"{dataset.name}: {dataset.size}"
    if size is None:
        return f"{words} as they are", input_kernel(dataset.samples, network)
    return f"{words} rescaled to K0 = {size:g}", sets.scaled_kernel(dataset.samples, size)


def chosen(data: str, classes: str | None, count: int | None, **columns: Any) -> Dataset:
    """The samples as they are; ``columns`` are the options of the columns of a file."""
    from fieldtheory import data as sets
    from fieldtheory.report import inputs

    wanted: Any = values.names(classes)
    for name, value in columns.items():
        if value and data in ("digits", "mnist"):
            raise ValueError(f"{name} is for columns of a file, got {value!r} and data {data!r}")
    if columns.get("drop"):
        columns["drop"] = values.names(columns["drop"])
    columns = {name: value for name, value in columns.items() if value}
    if classes is not None and data in ("digits", "mnist"):
        wanted = values.integers("classes", classes)
    if data == "mnist":
        wanted = wanted or [0, 3]
        return sets.load_mnist(wanted, inputs.equal_share(wanted) if count is None else count)
    return inputs.dataset(None if data == "digits" else data, wanted, count, **columns)


def require_none(of_data: dict[str, Any]) -> None:
    """Raise where options of samples are given and no samples."""
    for name, value in of_data.items():
        if value is not None and value is not False:
            raise ValueError(f"{name} must be left out without data, got {value!r}")


def tell(dataset: Dataset) -> None:
    """Print on stderr what whoever reads the numbers should know of the samples."""
    for kind in ("note", "warning"):
        if words := getattr(dataset, kind):
            echo(f"{kind}: {words}", err=True)


def variance(scale: str | None) -> float | None:
    """Variance > 0 that ``--scale`` asks for, or None for samples that stay as they are.

    Examples
    --------
    >>> variance("0.1"), variance(None), variance("none")
    (0.1, 0.05, None)
    """
    from fieldtheory.report.inputs import INPUT_SCALE

    if scale is None:
        return INPUT_SCALE
    if scale.strip().lower() == NONE:
        return None
    try:
        value = float(scale)
    except ValueError:
        value = np.nan
    if not 0 < value < np.inf:
        raise ValueError(f"scale must be a number > 0 or none, got {scale!r}")
    return value
