"""The picture of a result: its fields over the layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np

from fieldtheory.plotting.curves import Curve
from fieldtheory.plotting.style import BLUE, GREEN, ORANGE, panels, styled, tints

# The largest ratio of values that a linear axis still shows.
_DECADES = 30.0


@styled
def draw_layers(fields: Mapping[str, Sequence[Sequence[Curve]]]) -> Any:
    """Fields over the layers, those of one kind in one panel.

    Parameters
    ----------
    fields : mapping of str to sequences of curves
        For every panel, by what labels its axis, the curves of each field; these get shades of one
        colour, from dark to light, and the label of the first. Errors are drawn as bars.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If there is no panel.
    """
    if not fields:
        raise ValueError("fields must have at least one panel, got none")
    figure, axes = panels([2.9] * len(fields), 2.5)
    for ax, (name, groups) in zip(axes, fields.items(), strict=True):
        for colour, curves in zip(cycle((BLUE, ORANGE, GREEN)), groups, strict=False):
            _draw(ax, curves, colour)
        ax.set(xlabel="layer $l$", ylabel=name)
        ax.xaxis.get_major_locator().set_params(integer=True)
        drawn = np.concatenate([curve.y for curves in groups for curve in curves])
        positive = drawn[drawn != 0]
        if positive.size and positive.min() > 0 and positive.max() > _DECADES * positive.min():
            ax.set_yscale("log", nonpositive="mask")
        ax.legend()
    return figure


def _draw(ax: Any, curves: Sequence[Curve], colour: str) -> None:
    for i, (curve, shade) in enumerate(zip(curves, tints(colour, len(curves)), strict=True)):
        label = curve.label if i == 0 else None
        if curve.error is None:
            ax.plot(curve.x, curve.y, color=shade, label=label)
        else:
            ax.errorbar(
                curve.x,
                curve.y,
                curve.error,
                fmt="o-",
                color=shade,
                label=label,
                markersize=2.5,
                linewidth=0.7,
                elinewidth=1.0,
            )
