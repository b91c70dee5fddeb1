"""The picture of one curve."""

from __future__ import annotations

from typing import Any

import numpy as np

from fieldtheory.plotting.style import BLUE, panels, styled


@styled
def draw_curve(
    x: np.ndarray, y: np.ndarray, names: tuple[str, str], title: str, logarithmic: bool = False
) -> Any:
    """A quantity y over x, or positive values over whole numbers on a logarithmic axis."""
    figure, (ax,) = panels([3.4], 2.5)
    marks: Any = {"marker": "o", "markersize": 2.5, "linewidth": 0.7} if logarithmic else {}
    ax.plot(x, y, color=BLUE, **marks)
    ax.set(xlabel=names[0], ylabel=names[1], yscale="log" if logarithmic else "linear")
    ax.set_title(title, fontsize=9.5)
    return figure
