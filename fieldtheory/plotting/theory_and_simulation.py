"""The picture of a comparison of theory and simulation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fieldtheory.plotting.style import BLUE, GRAY, ORANGE, scale_values, styled


@styled
def draw_comparison(
    fields: Sequence[tuple[str, Any, Any]],
    widths: Sequence[int],
    width: int,
    hidden: float,
    threshold: float,
    tolerance: float,
    title: str,
) -> Any:
    """Every quantity over the layers, theory as lines and simulation as points."""
    from matplotlib.lines import Line2D

    from fieldtheory.plotting.figure import Figure

    # Two panels are as narrow as a title allows.
    columns = max(len(fields), 2)
    figure = Figure(figsize=(2.2 * columns, 4.8), layout="constrained")
    axes = figure.subplots(3, len(fields), height_ratios=(2, 1, 1), sharex="col", squeeze=False)
    for (symbol, extrapolated, field), (above, middle, below) in zip(fields, axes.T, strict=True):
        for layer, part, style in _lines(field.index):
            error, size, theory = field.error[part], field.size[part], field.theory[part]
            inner = layer < hidden
            above.plot(layer[inner], theory[inner], style, color=BLUE, linewidth=1)
            above.plot(layer[~inner], theory[~inner], "_", color=BLUE, markersize=9)
            _points(above, layer, field.simulation[part], error)
            deviation = field.simulation[part] - field.theory[part]
            with np.errstate(divide="ignore", invalid="ignore"):
                _points(middle, layer, 100 * deviation / size, 100 * error / size)
        scale_values(above, np.concatenate([field.theory, field.simulation]))
        above.set_title(f"${symbol}$", fontsize=9.5)
        middle.axhspan(-100 * tolerance, 100 * tolerance, color=GRAY, alpha=0.15, lw=0)
        below.axhspan(-threshold, threshold, color=GRAY, alpha=0.15, lw=0)
        finite, layer = np.isfinite(extrapolated.z), _abscissa(extrapolated.index)
        below.plot(layer[finite], extrapolated.z[finite], ".", color=ORANGE, markersize=2.5)
        in_layers = "layer" in field.index
        below.set_xlabel("layer $l$" if in_layers else "time $t$")
        below.xaxis.get_major_locator().set_params(integer=in_layers)
    axes[0, 0].set_ylabel(f"$N = {width}$")
    axes[1, 0].set_ylabel("deviation (%)")
    listed = ", ".join(map(str, widths))
    limit = rf"$N = {listed} \to \infty$" if len(widths) > 1 else f"$N = {width}$"
    # The panel is lower than a long label.
    axes[2, 0].set_ylabel(f"$z$\n{limit}", fontsize=7.5)
    figure.suptitle(title, fontsize=9.5)
    named: dict[str, dict[str, Any]] = {"theory": {"color": BLUE}}
    if any(style == "--" for *_, field in fields for *_, style in _lines(field.index)):
        named = {"theory, one input": {"color": BLUE}, "two inputs": {"color": BLUE, "ls": "--"}}
    named["simulation"] = {"color": ORANGE, "ls": "", "marker": "o", "markersize": 2.5}
    handles = [Line2D([], [], label=label, linewidth=1, **look) for label, look in named.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure


def _lines(index: Mapping[str, np.ndarray]) -> Iterator[tuple[np.ndarray, np.ndarray, str]]:
    """The layers and the mask of every line that is drawn, and its style."""
    along = _abscissa(index)
    chosen = np.ones(len(along), dtype=bool)
    if "layer_" in index:
        chosen = index["layer"] == index["layer_"]
    if "gamma" in index:
        chosen &= (index["alpha"] == index["gamma"]) & (index["beta"] == index["delta"])
    pairs: list[Any] = [None]
    if "alpha" in index:
        pairs = sorted(set(zip(index["alpha"].tolist(), index["beta"].tolist(), strict=True)))
    for pair in pairs:
        part = chosen
        if pair is not None:
            part = chosen & (index["alpha"] == pair[0]) & (index["beta"] == pair[1])
        yield along[part], part, "--" if pair and pair[0] != pair[1] else "-"


def _abscissa(index: Mapping[str, np.ndarray]) -> np.ndarray:
    return index["layer"] if "layer" in index else index["time"]


def _points(ax: Any, x: np.ndarray, y: np.ndarray, error: np.ndarray) -> None:
    ax.errorbar(x, y, error, fmt="o", color=ORANGE, markersize=2.5, elinewidth=0.8)
