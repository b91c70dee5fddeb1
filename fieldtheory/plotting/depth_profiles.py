"""The picture of infinitely deep networks: profiles over the depth."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import Any

import numpy as np

from fieldtheory.plotting.style import BLUE, GREEN, ORANGE, panels, scale_values, styled, tints


@styled
def draw_profiles(
    profiles: Mapping[str, np.ndarray],
    places: np.ndarray,
    remaining: np.ndarray,
    errors: Mapping[str, np.ndarray] = {},
    place: str = "$t = l/L$",
) -> Any:
    """Profiles over the depth, each in a panel."""
    summed = np.isinf(places[-1])
    x = remaining[0] - remaining if summed else places
    figure, axes = panels([2.9] * len(profiles), 2.5)
    for ax, (name, lines), colour in zip(
        axes, profiles.items(), cycle((BLUE, ORANGE, GREEN)), strict=False
    ):
        for i, (line, shade) in enumerate(zip(lines, tints(colour, len(lines)), strict=True)):
            ax.plot(x, line, color=shade)
            if name in errors:
                error = errors[name][i]
                ax.fill_between(x, line - error, line + error, color=shade, alpha=0.3, linewidth=0)
        scale_values(ax, np.ravel(lines))
        ax.set(ylabel=name, xlabel=r"$\sum_{k \leq l} \rho_k^2$" if summed else place)
        if summed:
            marked = [place for place in (1.0, 4.0, np.inf) if place in places]
            at = [x[np.flatnonzero(places == place)[0]] for place in marked]
            top = ax.secondary_xaxis("top")
            top.set_xticks(at, ["∞" if np.isinf(place) else f"{place:g}" for place in marked])
            top.set_xlabel("layer $l$")
    return figure
