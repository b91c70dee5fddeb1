"""The picture of a comparison of theory and simulation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fieldtheory.plotting.style import BLUE, GRAY, ORANGE, scale_values, styled

# Curves of several pairs of inputs that can still be told apart.
_MOST_PAIRS = 6


@styled
def draw_comparison(
    fields: Sequence[tuple[str, Any, Any]],
    widths: Sequence[int],
    width: int,
    threshold: float,
    tolerance: float,
    title: str,
) -> Any:
    """Every quantity over the layers, theory as lines and simulation as points.

    Below the values at the width are their deviations in per cent, and at the bottom the z-scores
    of what is extrapolated. Of the covariances of layers and of pairs of inputs the variances are
    shown, of the z-scores all. Of more than six pairs of inputs the first six are shown. A bar is
    one standard error; the bands are the tolerance and what chance explains.

    Parameters
    ----------
    fields : sequence of (str, object, object)
        Of every quantity the symbol in LaTeX, the extrapolated entries with ``index`` (``layer``,
        perhaps ``layer_``, ``alpha``, ``beta``, ``gamma`` and ``delta``, shape (m,)) and their
        deviations in standard errors ``z``, and the entries at the width with ``index``,
        ``theory``, ``simulation``, ``error`` and ``size``, shape (n,).
    widths : sequence of int
        Those that are extrapolated.
    width : int
        That of the values.
    threshold : float
        Largest |z| that counts as chance.
    tolerance : float
        Largest relative deviation with which the theory describes the width.
    title : str

    Returns
    -------
    matplotlib.figure.Figure
    """
    from matplotlib.figure import Figure

    # Two panels are as narrow as a title allows.
    columns = max(len(fields), 2)
    figure = Figure(figsize=(2.2 * columns, 4.8), layout="constrained")
    axes = figure.subplots(3, len(fields), height_ratios=(2, 1, 1), sharex="col", squeeze=False)
    for (symbol, extrapolated, field), (above, middle, below) in zip(fields, axes.T, strict=True):
        for layer, part in _lines(field.index):
            error, size = field.error[part], field.size[part]
            above.plot(layer, field.theory[part], color=BLUE, linewidth=1)
            _points(above, layer, field.simulation[part], error)
            deviation = field.simulation[part] - field.theory[part]
            with np.errstate(divide="ignore", invalid="ignore"):
                _points(middle, layer, 100 * deviation / size, 100 * error / size)
        scale_values(above, np.concatenate([field.theory, field.simulation]))
        above.set_title(f"${symbol}$", fontsize=9.5)
        middle.axhspan(-100 * tolerance, 100 * tolerance, color=GRAY, alpha=0.15, lw=0)
        below.axhspan(-threshold, threshold, color=GRAY, alpha=0.15, lw=0)
        finite, layer = np.isfinite(extrapolated.z), extrapolated.index["layer"]
        below.plot(layer[finite], extrapolated.z[finite], ".", color=ORANGE, markersize=2.5)
        below.set_xlabel("layer $l$")
        below.xaxis.get_major_locator().set_params(integer=True)
    axes[0, 0].set_ylabel(f"$N = {width}$")
    axes[1, 0].set_ylabel("deviation (%)")
    listed = ", ".join(map(str, widths))
    limit = rf"$N = {listed} \to \infty$" if len(widths) > 1 else f"$N = {width}$"
    axes[2, 0].set_ylabel(f"$z$, {limit}")
    figure.suptitle(title, fontsize=9.5)
    return figure


def _lines(index: Mapping[str, np.ndarray]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The layers and the mask of every line that is shown."""
    chosen = np.ones(len(index["layer"]), dtype=bool)
    if "layer_" in index:
        chosen = index["layer"] == index["layer_"]
    if "gamma" in index:
        chosen &= (index["alpha"] == index["gamma"]) & (index["beta"] == index["delta"])
    pairs: list[Any] = [None]
    if "alpha" in index:
        pairs = sorted(set(zip(index["alpha"].tolist(), index["beta"].tolist(), strict=True)))
    for pair in pairs[:_MOST_PAIRS]:
        part = chosen
        if pair is not None:
            part = chosen & (index["alpha"] == pair[0]) & (index["beta"] == pair[1])
        yield index["layer"][part], part


def _points(ax: Any, x: np.ndarray, y: np.ndarray, error: np.ndarray) -> None:
    ax.errorbar(x, y, error, fmt="o", color=ORANGE, markersize=2.5, elinewidth=0.8)
