"""The picture of a kernel as a function of the correlation of two inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from fieldtheory.plotting.style import BLUE, panels, styled


@styled
def draw_kernel(correlations: np.ndarray, values: np.ndarray, title: str) -> Any:
    """A quantity of two inputs of one norm over the cosine of their angle.

    Parameters
    ----------
    correlations, values : ndarray, shape (count,)
    title : str

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, (ax,) = panels([3.4], 2.5)
    ax.plot(correlations, values, color=BLUE)
    ax.set_xlabel(r"$x \cdot x' \,/\, |x|\,|x'|$")
    ax.set_ylabel(title.split(",")[0])
    ax.set_title(title, fontsize=9.5)
    return figure
