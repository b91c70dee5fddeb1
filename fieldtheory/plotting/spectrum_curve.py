"""The picture of the eigenvalues of a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from fieldtheory.plotting.style import BLUE, panels, styled


@styled
def draw_spectrum(values: np.ndarray, smallest: float, title: str) -> Any:
    """Eigenvalues relative to the largest over their degrees, on a logarithmic axis.

    Parameters
    ----------
    values : ndarray, shape (count,)
    smallest : float
        Those below are rounding and are left out.
    title : str

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, (ax,) = panels([3.4], 2.5)
    degrees = np.flatnonzero(values > smallest)
    ax.semilogy(degrees, values[degrees], "o-", color=BLUE, markersize=2.5, linewidth=0.7)
    ax.set_xlabel("degree $k$")
    ax.set_ylabel(r"$\mu_k \,/\, \max_k \mu_k$")
    ax.set_title(title, fontsize=9.5)
    return figure
