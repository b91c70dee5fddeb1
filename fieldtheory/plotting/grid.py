"""The picture of a sweep: every quantity over an axis of the grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fieldtheory.plotting.curves import Curve
from fieldtheory.plotting.style import (
    BLUE,
    MOST_LEGENDS,
    WIDE,
    add_line_colours,
    panels,
    scale_values,
    styled,
    tints,
)


@styled
def draw_grid(quantities: Sequence[tuple[str, str, Sequence[Curve]]]) -> Any:
    """Every quantity in a panel, its lines from dark to light, many of them with a colour bar."""
    # Room for a legend beside the panel.
    widths = [4.4 if len(curves) > 1 else 3.0 for _, _, curves in quantities]
    figure, axes = panels(widths, 2.7)
    for ax, (along, name, curves) in zip(axes, quantities, strict=True):
        x = curves[0].x
        named = x.dtype.kind not in "if"
        for curve, shade in zip(curves, tints(BLUE, len(curves)), strict=True):
            style = "o" if named else ".-"
            size = 4 if len(curves) <= MOST_LEGENDS else 1
            ax.plot(curve.x, curve.y, style, color=shade, label=curve.label, markersize=size)
        ax.set_xlabel(along)
        ax.set_ylabel(name)
        scale_values(ax, np.concatenate([curve.y for curve in curves]))
        # Values that spread widely and lie mostly at the lower end, as those of 10, 100, 1000.
        if not named and 0 < WIDE * x.min() < x.max() and np.median(x) < 0.25 * x.max():
            ax.set_xscale("log")
        if len(curves) > MOST_LEGENDS:
            add_line_colours(figure, ax, BLUE, [curve.label for curve in curves])
        elif len(curves) > 1:
            ax.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure
