"""The samples that a run of the main job sees: their kernel, their classes and their network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fieldtheory import data as sets
from fieldtheory.data import Dataset
from fieldtheory.networks.residual import ResidualNetwork, input_kernel

INPUT_SCALE = 0.05

_MOST_SAMPLES = 20


@dataclass(frozen=True, eq=False)
class Inputs:
    """The samples of a run: their names, classes, network and input kernel.

    Attributes
    ----------
    name : str
    labels : ndarray, shape (P,), or None
    network : ResidualNetwork
        Of depth 1; the other depths are made from it.
    K0 : ndarray, shape (P, P)
        Input kernel, 0.05 on its diagonal.
    """

    name: str
    labels: np.ndarray | None
    network: ResidualNetwork
    K0: np.ndarray


def load(
    data: str | Path | None = None, classes: Sequence[Any] | None = None, count: int | None = None
) -> Inputs:
    """Samples at the input scale 0.05 and the network that sees them; see `main_job.run`.

    Parameters
    ----------
    data : str or Path, optional
    classes : sequence, optional
    count : int, optional
        As for `main_job.run`.

    Returns
    -------
    Inputs

    Raises
    ------
    ValueError, TypeError
        If an argument is not allowed or the file cannot be read.

    Examples
    --------
    >>> load(count=4).K0.diagonal()
    array([0.05, 0.05, 0.05, 0.05])
    """
    found = dataset(data, classes, count)
    network = ResidualNetwork(depth=1, readin_bias_variance=0.0, input_dim=found.samples.shape[1])
    samples = sets.normalise(found.samples, INPUT_SCALE, network.readin_variances[0])
    return Inputs(found.name, found.labels, network, input_kernel(samples, network))


def dataset(
    data: str | Path | None = None, classes: Sequence[Any] | None = None, count: int | None = None
) -> Dataset:
    """The samples asked for as they are; of the digits 20 if ``count`` is left out.

    Parameters and errors are those of `load`.

    Examples
    --------
    >>> dataset(count=4).samples.shape
    (4, 64)
    """
    if data is None:
        chosen = (0, 3) if classes is None else classes
        return sets.load_digits(chosen, equal_share(chosen) if count is None else count)
    return sets.load_file(data, classes, count)


def equal_share(classes: Sequence[Any] | None) -> int:
    """The largest number of samples up to 20 that all classes have an equal share in.

    Examples
    --------
    >>> equal_share((0, 3, 7)), equal_share(None)
    (18, 20)
    """
    return _MOST_SAMPLES - _MOST_SAMPLES % max(len(classes or ()), 1)
