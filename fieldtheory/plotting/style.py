"""The look of all figures: small type, open axes, colours safe for colour-blind readers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np

from fieldtheory.plotting.curves import Curve, write_csv

# The largest ratio of values that a linear axis still shows.
WIDE = 30.0
# Lines that a legend names; more of them have a colour bar.
MOST_LEGENDS = 6
BLUE, GREEN, ORANGE, GRAY = "#0072B2", "#009E73", "#D55E00", "#7f7f7f"

_RC: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "mathtext.fontset": "cm",
    "axes.labelsize": 9.5,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "xtick.minor.width": 0.5,
    "ytick.minor.width": 0.5,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "lines.linewidth": 1.4,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "legend.handlelength": 1.4,
    "legend.labelspacing": 0.3,
}


def styled(draw: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function that draws use this style; without matplotlib it raises an ImportError."""

    @wraps(draw)
    def drawn(*args: Any, **kwargs: Any) -> Any:
        try:
            import matplotlib
        except ImportError as error:
            raise ImportError(
                "figures need matplotlib: pip install fieldtheory-networks[figures]"
            ) from error
        with matplotlib.rc_context(_RC):
            return draw(*args, **kwargs)

    return drawn


def panels(widths: Sequence[float], height: float, first: str = "a") -> tuple[Any, np.ndarray]:
    """A figure and its axes side by side, several labelled from ``first`` on; sizes in inches."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    from fieldtheory.plotting.figure import Figure

    layout = ConstrainedLayoutEngine(w_pad=0.08, wspace=0.06)
    figure = Figure(figsize=(sum(widths), height), layout=layout)
    axes = figure.subplots(1, len(widths), width_ratios=widths, squeeze=False)[0]
    for i, ax in enumerate(axes if len(axes) > 1 else ()):
        ax.set_title(f"({chr(ord(first) + i)})", loc="left", fontsize=9.5, pad=7)
    return figure, axes


@styled
def save(figure: Any, curves: Iterable[Curve], folder: Path, name: str) -> Path:
    """Write a figure as ``name.png`` and ``name.pdf`` and its numbers as ``name.csv``."""
    write_csv(curves, folder / f"{name}.csv")
    # Without a date the same numbers give the same file.
    figure.savefig(folder / f"{name}.pdf", metadata={"CreationDate": None})
    figure.savefig(folder / f"{name}.png", dpi=220)
    return folder / f"{name}.png"


def draw_matrix(figure: Any, ax: Any, values: np.ndarray, labels: Any, name: str) -> None:
    """A matrix (P, P) over pairs of inputs, with lines between classes that stand together."""
    image = ax.imshow(values, cmap="cividis", interpolation="nearest")
    figure.colorbar(image, ax=ax, label=name, shrink=0.85)
    ax.set(xlabel=r"input $\alpha$", ylabel=r"input $\beta$")
    ticks = np.arange(0, len(values), max(1, len(values) // 4))
    ax.set_xticks(ticks, ticks + 1)
    ax.set_yticks(ticks, ticks + 1)
    ax.spines[:].set_visible(False)
    edges = np.zeros(0) if labels is None else np.flatnonzero(labels[1:] != labels[:-1]) + 0.5
    if labels is not None and len(edges) < len(np.unique(labels)):
        for edge in edges:
            ax.axvline(edge, color="white", linewidth=0.8)
            ax.axhline(edge, color="white", linewidth=0.8)


def scale_values(ax: Any, values: np.ndarray) -> None:
    """A logarithmic axis for values that are positive, or 0, and spread widely."""
    sizes = values[values != 0]
    if sizes.size and sizes.min() > 0 and sizes.max() > WIDE * sizes.min():
        ax.set_yscale("log", nonpositive="mask")


def add_line_colours(figure: Any, ax: Any, colour: str, labels: Sequence[str]) -> None:
    """A colour bar next to lines in `tints` that are too many for a legend, with some labels."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    number = len(labels)
    shades = ScalarMappable(Normalize(-0.5, number - 0.5), ListedColormap(tints(colour, number)))
    bar = figure.colorbar(shades, ax=ax, pad=0.02)
    places = np.unique(np.linspace(0, number - 1, 5).round().astype(int))
    bar.set_ticks(places, labels=[labels[place] for place in places])
    bar.ax.tick_params(labelsize=7, length=2)
    bar.outline.set_visible(False)


def tints(colour: str, number: int) -> list[tuple[float, ...]]:
    """Shades of a colour from dark to light."""
    from matplotlib.colors import to_rgb

    base = np.array(to_rgb(colour))
    steps = np.linspace(-0.45, 0.55, number) if number > 1 else np.zeros(number)
    return [tuple(base * (1 + t) if t < 0 else base + (1 - base) * t) for t in steps]
