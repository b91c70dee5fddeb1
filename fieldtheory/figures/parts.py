"""Parts that figures share: their numbers, parts computed in turn, lines of curves, the note."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import update_wrapper
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.numerics.chunks import with_progress
from fieldtheory.plotting.curves import Curve
from fieldtheory.plotting.style import GRAY, panels, styled


@dataclass(frozen=True, eq=False)
class Numbers:
    """Numbers of a figure: its curves, what is chosen here, and arrays by their names.

    Attributes
    ----------
    listed : sequence of Curve
        The curves that are plotted, and written to the csv file.
    chosen : str
        What the caption leaves open, for the line below the panels.
    values : mapping of str to ndarray and others
        What the function of the figure lists; each is an attribute as well.

    Examples
    --------
    >>> rho = np.array([0.1, 0.3])
    >>> numbers = Numbers([Curve("a", "L = 2", rho, 2 * rho)], values={"branch_scales": rho})
    >>> numbers.panels()["a"][0].y, numbers.branch_scales
    (array([0.2, 0.6]), array([0.1, 0.3]))
    """

    listed: Sequence[Curve]
    chosen: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        """One of the values."""
        values = vars(self).get("values", {})
        if name not in values:
            raise AttributeError(f"numbers of the figure are {', '.join(values)}, got {name!r}")
        return values[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.values]

    def curves(self) -> list[Curve]:
        """All curves."""
        return list(self.listed)

    def panels(self) -> dict[str, list[Curve]]:
        """Curves of each panel."""
        names = dict.fromkeys(curve.panel for curve in self.listed)
        return {name: [curve for curve in self.listed if curve.panel == name] for name in names}


def in_turn(parts: Sequence[Callable[[], Any]], title: str, progress: bool) -> list[Any]:
    """Results of functions, called one after the other; a bar on stderr counts them if wanted.

    Examples
    --------
    >>> in_turn([lambda: 1, lambda: 2], "parts", progress=False)
    [1, 2]
    """
    results = (part() for part in parts)
    return list(with_progress(results, len(parts), title) if progress else results)


def integers(name: str, values: Iterable[int], least: int = 1) -> np.ndarray:
    """An argument that holds whole numbers, checked."""
    return np.array([validation.integer(name, value, least) for value in values], dtype=int)


def curves_of(panel: str, labels: Iterable[str], x: Any, rows: Any) -> list[Curve]:
    """A curve of each row of y (n, S), over one x (S,) or as many.

    >>> curves = curves_of("a", ["L = 2", "L = 3"], np.arange(2), np.eye(2))
    >>> [(curve.label, curve.y.tolist()) for curve in curves]
    [('L = 2', [1.0, 0.0]), ('L = 3', [0.0, 1.0])]
    """
    lines = zip(labels, np.broadcast_to(x, np.shape(rows)), rows, strict=True)
    return [Curve(panel, *line) for line in lines]


def typeset(label: str, scale: str = r"\rho") -> str:
    r"""The label of a curve in LaTeX.

    >>> print(typeset("rho = 0.3"), typeset("sigma_w^2 = 1"), typeset("exact"))
    $\rho = 0.3$ $\sigma_w^2 = 1$ exact
    """
    text = label.replace("rho", scale).replace("sigma", r"\sigma")
    return f"${text}$" if " = " in label else label


def draw_lines(
    ax: Any, curves: Iterable[Curve], colours: Iterable[Any], scale: str = r"\rho", **look: Any
) -> None:
    """Lines of curves with their labels, where ``scale`` is the residual scaling in LaTeX."""
    for curve, colour in zip(curves, colours, strict=True):
        ax.plot(curve.x, curve.y, **{"color": colour, "label": typeset(curve.label, scale)} | look)


def count_layers(ax: Any, **settings: Any) -> None:
    """Whole numbers on the axis of layers."""
    ax.set(xlabel="layer $l$", **settings)
    ax.xaxis.get_major_locator().set_params(integer=True)


def note(figure: Any, chosen: str) -> None:
    """A small line below all panels: what the caption leaves open and is chosen here."""
    figure.supxlabel(f"chosen here: {chosen}", fontsize=6.5, color=GRAY)


def picture(widths: Sequence[float], height: float) -> Callable[[Callable[..., None]], Any]:
    """A matplotlib Figure of numbers from a function that draws them into axes side by side."""

    def of(draw: Callable[..., None]) -> Callable[..., Any]:
        def drawn(numbers: Numbers, **options: Any) -> Any:
            figure, axes = panels(widths, height)
            draw(axes, numbers, **options)
            if numbers.chosen:
                note(figure, numbers.chosen)
            return figure

        update_wrapper(drawn, draw, ("__module__", "__name__", "__qualname__", "__doc__"))
        # The signature is that of the picture, not of what draws into its axes.
        vars(drawn).pop("__wrapped__")
        return styled(drawn)

    return of
