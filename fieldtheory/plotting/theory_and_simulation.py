"""The picture of a comparison of theory and simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fieldtheory.plotting.style import BLUE, GRAY, ORANGE, scale_values, styled

# Curves of several pairs of inputs that can still be told apart.
_MOST_PAIRS = 6


@dataclass(frozen=True, eq=False)
class Compared:
    """Entries of one quantity, all arrays of shape (n,).

    Parameters
    ----------
    symbol : str
        In LaTeX.
    index : dict of str to ndarray of int
        Places of the entries: ``layer``, perhaps ``layer_``, ``alpha`` and ``beta``.
    theory, simulation, error, z : ndarray
    """

    symbol: str
    index: Mapping[str, np.ndarray]
    theory: np.ndarray
    simulation: np.ndarray
    error: np.ndarray
    z: np.ndarray


@styled
def draw_comparison(fields: Sequence[Compared], threshold: float, title: str) -> Any:
    """Every quantity over the layers, theory as lines and simulation as points, above its z-scores.

    Of the covariances of layers the variances are shown above, all of them below. Of more than six
    pairs of inputs the first six are shown above. A bar is one standard error; the band below is
    what chance explains.

    Parameters
    ----------
    fields : sequence of Compared
        Those without layers are not shown.
    threshold : float
        Largest |z| that counts as chance.
    title : str

    Returns
    -------
    matplotlib.figure.Figure
    """
    from matplotlib.figure import Figure

    shown = [field for field in fields if "layer" in field.index]
    figure = Figure(figsize=(2.2 * len(shown), 3.6), layout="constrained")
    axes = figure.subplots(2, len(shown), height_ratios=(2, 1), sharex="col", squeeze=False)
    for field, (above, below) in zip(shown, axes.T, strict=True):
        _draw_values(above, field)
        below.axhspan(-threshold, threshold, color=GRAY, alpha=0.15, lw=0)
        finite = np.isfinite(field.z)
        below.plot(field.index["layer"][finite], field.z[finite], ".", color=ORANGE, markersize=2.5)
        below.set_xlabel("layer $l$")
        below.xaxis.get_major_locator().set_params(integer=True)
        scale_values(above, np.concatenate([field.theory, field.simulation]))
        above.set_title(f"${field.symbol}$", fontsize=9.5)
    axes[1, 0].set_ylabel("$z$")
    figure.suptitle(title, fontsize=9.5)
    return figure


def _draw_values(ax: Any, field: Compared) -> None:
    index = field.index
    chosen = np.ones(len(field.theory), dtype=bool)
    if "layer_" in index:
        chosen = index["layer"] == index["layer_"]
    pairs: list[Any] = [None]
    if "alpha" in index:
        pairs = sorted(set(zip(index["alpha"].tolist(), index["beta"].tolist(), strict=True)))
    for pair in pairs[:_MOST_PAIRS]:
        part = chosen
        if pair is not None:
            part = chosen & (index["alpha"] == pair[0]) & (index["beta"] == pair[1])
        layer = index["layer"][part]
        ax.plot(layer, field.theory[part], color=BLUE, linewidth=1)
        ax.errorbar(
            layer,
            field.simulation[part],
            field.error[part],
            fmt="o",
            color=ORANGE,
            markersize=2.5,
            elinewidth=0.8,
        )
