"""The picture of a measured block: its critical scales and susceptibilities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fieldtheory.plotting.style import BLUE, GRAY, GREEN, ORANGE, panels, styled


@styled
def draw_scales(curves: Mapping[str, np.ndarray], point: Mapping[str, float], name: str) -> Any:
    """ξ over γ, and next to it the susceptibilities, with bands of one standard error.

    Curves and the point have ``skip_scale``, ``branch_scale``, ``parallel``, ``perpendicular``, the
    last three with ``<name>_error``; NaN where there is no solution.
    """
    figure, (left, right) = panels([2.9, 2.9], 2.5)
    lines = (
        (left, "branch_scale", BLUE, None),
        (right, "parallel", ORANGE, r"$\chi_\parallel$"),
        (right, "perpendicular", GREEN, r"$\chi_\perp$"),
    )
    right.axhline(1.0, color=GRAY, linewidth=0.7)
    for ax, field, colour, label in lines:
        x, y, error = curves["skip_scale"], curves[field], curves[f"{field}_error"]
        ax.fill_between(x, y - error, y + error, color=colour, alpha=0.25, linewidth=0)
        ax.plot(x, y, color=colour, label=label)
        own = point["skip_scale"], point[field], point[f"{field}_error"]
        ax.errorbar(*own, fmt="o", color=colour, markersize=3.5)
        ax.set_xlabel(r"skip $\gamma$")
    left.set_ylabel(r"branch $\xi$")
    left.set_ylim(bottom=0)
    right.set_ylabel("susceptibility of a layer")
    right.legend()
    figure.suptitle(name, fontsize=9.5)
    return figure
