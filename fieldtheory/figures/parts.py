"""What figures share besides their style: parts computed in turn, and a line of what is chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fieldtheory.numerics.chunks import with_progress
from fieldtheory.plotting.curves import Curve
from fieldtheory.plotting.style import GRAY


def in_turn(parts: Sequence[Callable[[], Any]], title: str, progress: bool) -> list[Any]:
    """What functions return, called one after the other; a bar on stderr counts them if wanted.

    Examples
    --------
    >>> in_turn([lambda: 1, lambda: 2], "parts", progress=False)
    [1, 2]
    """
    found = (part() for part in parts)
    return list(with_progress(found, len(parts), title) if progress else found)


def note(figure: Any, text: str) -> None:
    """A small line below all panels: what the caption leaves open and is chosen here."""
    figure.supxlabel(text, fontsize=6.5, color=GRAY)


@dataclass(frozen=True, eq=False)
class Curves:
    """The numbers of a figure, as its curves.

    Examples
    --------
    >>> import numpy as np
    >>> numbers = Curves((Curve("a", "L = 2", np.array([0, 1]), np.array([0.1, 0.3])),))
    >>> numbers.panels()["a"][0].y
    array([0.1, 0.3])
    """

    listed: tuple[Curve, ...]

    def curves(self) -> list[Curve]:
        """All of them."""
        return list(self.listed)

    def panels(self) -> dict[str, list[Curve]]:
        """Those of each panel."""
        names = dict.fromkeys(curve.panel for curve in self.listed)
        return {name: [curve for curve in self.listed if curve.panel == name] for name in names}
