"""Pictures of results: fields over the layers, predictions, one curve."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np

from fieldtheory.plotting.curves import Curve
from fieldtheory.plotting.style import (
    BLUE,
    GRAY,
    GREEN,
    ORANGE,
    panels,
    scale_values,
    styled,
    tints,
)


@styled
def draw_layers(
    fields: Mapping[str, Sequence[Sequence[Curve]]],
    hidden: int,
    more: Sequence[Callable[[Any], None]] = (),
) -> Any:
    """Fields over the layers, those of one kind in one panel."""
    if not fields:
        raise ValueError("fields must have at least one panel, got none")
    names = [{curve.label for curves in groups for curve in curves} for groups in fields.values()]
    # Long legends stand beside their panel.
    widths = [2.9 if len(each) <= 2 else 4.1 for each in names] + [2.9] * len(more)
    figure, axes = panels(widths, 2.5)
    for draw, ax in zip(more, axes[len(names) :], strict=True):
        draw(ax)
    for ax, labels, (name, groups) in zip(axes, names, fields.items(), strict=False):
        for colour, curves in zip(cycle((BLUE, ORANGE, GREEN)), groups, strict=False):
            _draw(ax, curves, colour, hidden)
        ax.set_xlabel("layer $l$")
        ax.xaxis.get_major_locator().set_params(integer=True)
        drawn = np.concatenate([curve.y for curves in groups for curve in curves])
        scale_values(ax, drawn)
        if len(groups) == len(labels) == 1:
            ax.set_ylabel(f"{name} {groups[0][0].label}")
        else:
            ax.set_ylabel(name)
            beside = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
            ax.legend(**(beside if len(labels) > 2 else {}))
    return figure


def _draw(ax: Any, curves: Sequence[Curve], colour: str, hidden: int) -> None:
    named: set[str] = set()
    for curve, shade in zip(curves, tints(colour, len(curves)), strict=True):
        label = None if curve.label in named else curve.label
        named.add(curve.label)
        style = "-" if curve.label == curves[0].label else "--"
        inner, output = slice(hidden), slice(hidden, None)
        if curve.error is None:
            ax.plot(curve.x[inner], curve.y[inner], style, color=shade, label=label)
            ax.plot(curve.x[output], curve.y[output], "o", color=shade, markersize=3)
        else:
            ax.plot(curve.x[inner], curve.y[inner], style, color=shade, linewidth=0.7)
            bars = {"markersize": 2.5, "elinewidth": 1.0, "label": label}
            ax.errorbar(curve.x, curve.y, curve.error, fmt="o", color=shade, **bars)


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


def draw_fit(labels: np.ndarray, mean: np.ndarray, deviation: np.ndarray, ax: Any) -> None:
    """Predictions of inputs with labels against these, (P,) or (P, d), into ``ax``."""
    ends = [labels.min(), labels.max()]
    ax.plot(ends, ends, color=GRAY, linewidth=0.7)
    _bars(ax, labels, mean, deviation, BLUE)
    ax.set(xlabel="labels", ylabel=rf"mean $\pm$ s.d., {len(labels)} training inputs")


def draw_predictions(inputs: Any, mean: np.ndarray, deviation: np.ndarray, ax: Any) -> None:
    """Predictions against the numbers of their inputs, (T,) or (T, d), into ``ax``."""
    _bars(ax, np.broadcast_to(inputs, mean.T.shape).T, mean, deviation, ORANGE)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set(xlabel="test input", ylabel=rf"mean $\pm$ s.d., {len(inputs)} test inputs")


def _bars(ax: Any, x: Any, mean: np.ndarray, deviation: np.ndarray, colour: str) -> None:
    """Outputs (n, d) get shades of one colour."""
    columns = [each.reshape(len(each), -1).T for each in (x, mean, deviation)]
    for shade, values in zip(
        tints(colour, len(columns[0])), zip(*columns, strict=True), strict=True
    ):
        ax.errorbar(*values, fmt="o", color=shade, markersize=2.5, elinewidth=0.7)
