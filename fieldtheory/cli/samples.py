"""The samples that `--data` names, as an input kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from fieldtheory.cli import values
from fieldtheory.networks.residual import ResidualNetwork, input_kernel

NONE = "none"
_DIGITS = ("digits", "mnist")


def kernel(
    data: str,
    classes: str | None,
    count: int | None,
    scale: str | None,
    network: ResidualNetwork,
) -> tuple[str, np.ndarray]:
    """What was read and how it was scaled, in words, and the kernel K0 (P, P).

    Parameters
    ----------
    data : str
        ``digits``, ``mnist`` or the path of an .npz or .csv file.
    classes : str, optional
        As typed, separated by commas.
    count : int, optional
        Number of samples.
    scale : str, optional
        The variance that every sample is rescaled to, 0.05 if left out, or ``none``: then K0 is
        what the read-in of the network makes of the samples as they are.
    network : ResidualNetwork

    Raises
    ------
    ValueError, TypeError
        If the samples cannot be read or an option is not allowed.

    Examples
    --------
    >>> words, K0 = kernel("digits", "0,3", 4, "0.1", ResidualNetwork(depth=1))
    >>> words
    'digits 0, 3 (scikit-learn, 8x8 pixels): 4 samples rescaled to K0 = 0.1'
    >>> K0.diagonal().round(12)
    array([0.1, 0.1, 0.1, 0.1])
    """
    from fieldtheory import data as sets

    size, found = variance(scale), chosen(data, classes, count)
    words = f"{found.name}: {len(found.samples)} samples"
    if size is None:
        return f"{words} as they are", input_kernel(found.samples, network)
    return f"{words} rescaled to K0 = {size:g}", sets.scaled_kernel(found.samples, size)


def chosen(data: str, classes: str | None, count: int | None) -> Any:
    """The samples as they are, see `kernel`: a `fieldtheory.data.Dataset`."""
    from fieldtheory import data as sets
    from fieldtheory.report import inputs

    wanted = values.classes(classes, data in _DIGITS)
    if data == "mnist":
        wanted = wanted or [0, 3]
        return sets.load_mnist(wanted, inputs.equal_share(wanted) if count is None else count)
    return inputs.dataset(None if data == "digits" else data, wanted, count)


def given_kernel(
    K0: str,
    data: str | None,
    classes: str | None,
    count: int | None,
    scale: str | None,
    network: ResidualNetwork,
) -> tuple[str, float | np.ndarray]:
    """The kernel that is typed, or that of ``--data`` with its words, see `kernel`.

    Raises
    ------
    ValueError, TypeError
        As `kernel` and `values.kernel`, or if there is a scale without data.

    Examples
    --------
    >>> given_kernel("0.1", None, None, None, None, ResidualNetwork(depth=1))
    ('', 0.1)
    """
    if data is not None:
        return kernel(data, classes, count, scale, network)
    if scale is not None:
        raise ValueError(f"scale must be left out without data, got {scale!r}")
    return "", values.kernel(K0)


def variance(scale: str | None) -> float | None:
    """What ``--scale`` says: a variance > 0, or None for samples that stay as they are.

    Raises
    ------
    ValueError
        For anything else.

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
