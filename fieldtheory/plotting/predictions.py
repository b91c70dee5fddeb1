"""Pictures of predictions: means with bars of one standard deviation."""

from __future__ import annotations

from typing import Any

import numpy as np

from fieldtheory.plotting.style import BLUE, GRAY, ORANGE, tints


def draw_fit(labels: np.ndarray, mean: np.ndarray, deviation: np.ndarray, ax: Any) -> None:
    """Predictions of inputs with labels against these, (P,) or (P, d), into ``ax``.

    The gray line is where they are equal.
    """
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
