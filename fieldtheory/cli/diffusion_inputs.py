"""Inputs of `diffusion` other than numbers: layers x_0, samples, and a law of the parameters."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np

from fieldtheory.cli import samples, values
from fieldtheory.cli.terminal import echo
from fieldtheory.networks.parameter_law import ParameterLaw
from fieldtheory.numerics.storage import read_npz


def layers(text: str) -> np.ndarray:
    """Inputs as they are typed: numbers z "0,1", or the layers x_0 themselves "0.5,1;-1,2".

    Examples
    --------
    >>> layers("0,1").shape, layers("0.5,1,2;-1,2,0").shape
    ((2,), (2, 3))
    """
    rows = values.number_rows("inputs", text)
    if len(rows) == 1:
        return rows[0]
    if len({len(row) for row in rows}) > 1:
        raise ValueError(f"inputs must have rows of one length, a,b;c,d, got {text!r}")
    return np.stack(rows)


def sampled_layers(
    data: str, classes: str | None, count: int | None, scale: str | None
) -> tuple[str, np.ndarray]:
    """Samples as layers x_0, in words, and as (P, D), each of them of one mean square.

    Parameters
    ----------
    data, classes, count
        As for `samples.given_kernel`.
    scale : str, optional
        The mean square over the neurons, 1 if left out, or ``none`` for samples as they are.

    Examples
    --------
    >>> words, Z = sampled_layers("digits", "0,3", 4, None)
    >>> words, Z.shape
    ('digits 0, 3 (scikit-learn, 8x8 pixels): 4 samples of mean square 1', (4, 64))
    >>> (Z**2).mean(axis=1).round(12)
    array([1., 1., 1., 1.])
    """
    dataset = samples.chosen(data, classes, count)
    words, Z = f"{dataset.name}: {dataset.size}", dataset.samples
    size = 1.0 if scale is None else samples.variance(scale)
    if dataset.note:
        echo(f"note: {dataset.note}", err=True)
    if size is None:
        return f"{words} as they are", Z
    squares = (Z**2).mean(axis=1, keepdims=True)
    if (zero := np.flatnonzero(squares == 0)).size:
        raise ValueError(f"sample {zero[0] + 1} is zero: it cannot be scaled, see --scale none")
    return f"{words} of mean square {size:g}", Z * np.sqrt(size / squares)


def law(path: Path) -> ParameterLaw:
    """The law of the parameters whose arguments are the arrays of an .npz file."""
    if path.suffix != ".npz" or not path.is_file():
        raise ValueError(f"law must be an .npz file that exists, got {str(path)!r}")
    names = [field.name for field in fields(ParameterLaw)]
    arrays = values.loaded("law", path, read_npz)
    if unknown := sorted(set(arrays) - set(names)):
        raise ValueError(
            f"law must be a file of arrays {', '.join(names)}, got {unknown[0]!r} in {str(path)!r}"
        )
    return ParameterLaw(**arrays)
