"""The sketch of a residual network, panel (a) of F25 Fig. 1 and F23 Fig. 1."""

from __future__ import annotations

from typing import Any

from fieldtheory.plotting.style import BLUE, GRAY, ORANGE

_LINE = 0.9
_ROUND = "round,pad=0,rounding_size=0.1"


def draw_network(ax: Any, scale: str = r"\rho") -> None:
    """Read-in, one layer with its residual branch and skip connection, and readout (F25 (1))."""
    ax.set(xlim=(-0.4, 14.3), ylim=(-0.85, 1.75), aspect="equal")
    ax.set_axis_off()
    _layer(ax, scale)
    ax.text(0, 0, "$x$", ha="center", va="center")
    _box(ax, 1.3, 0, r"$W^{\mathrm{in}}, b^{\mathrm{in}}$", GRAY)
    ax.text(2.75, 0, "$h^{(0)}$", ha="center", va="center")
    for left, right in ((0.25, 0.75), (1.85, 2.4)):
        _arrow(ax, (left, 0), (right, 0))
    for x in (3.45, 10.2):
        ax.text(x, 0, r"$\cdots$", ha="center", va="center", color=GRAY)
    ax.text(10.85, 0, "$h^{(L)}$", ha="center", va="center")
    _box(ax, 11.85, 0, r"$\phi$", ORANGE, half=0.25)
    _box(ax, 12.95, 0, r"$W^{\mathrm{out}}, b^{\mathrm{out}}$", GRAY)
    ax.text(14.1, 0, "$y$", ha="center", va="center")
    for left, right in ((11.2, 11.6), (12.1, 12.4), (13.5, 13.9)):
        _arrow(ax, (left, 0), (right, 0))


def _layer(ax: Any, scale: str) -> None:
    """h^(l-1) to h^(l): the residual f^(l) of the branch, and the skip connection."""
    from matplotlib.patches import Circle, FancyBboxPatch

    ax.add_patch(FancyBboxPatch((4.75, -0.62), 4.15, 2.15, boxstyle=_ROUND, fc="0.95", ec="none"))
    ax.text(4.9, 1.42, "layer $l$", ha="left", va="top", fontsize=7.5, color=GRAY)
    ax.text(4.15, 0, "$h^{(l-1)}$", ha="center", va="center")
    ax.text(9.5, 0, "$h^{(l)}$", ha="center", va="center")
    _box(ax, 5.75, 0, r"$\phi$", ORANGE, half=0.25)
    _box(ax, 6.75, 0, "$W^{(l)}, b^{(l)}$", BLUE, half=0.5)
    for x, text in ((7.6, rf"${scale}$"), (8.6, "$+$")):
        ax.add_patch(Circle((x, 0), 0.19, fc="white", ec="black", lw=_LINE))
        ax.text(x, 0, text, ha="center", va="center", fontsize=8)
    for left, right in ((4.6, 5.5), (6.0, 6.25), (7.25, 7.41), (7.79, 8.41), (8.79, 9.2)):
        _arrow(ax, (left, 0), (right, 0))
    ax.text(8.1, -0.12, "$f^{(l)}$", ha="center", va="top", fontsize=8)
    ax.plot([5.05, 5.05, 8.6], [0, 0.85, 0.85], color="black", lw=_LINE, solid_joinstyle="round")
    _arrow(ax, (8.6, 0.85), (8.6, 0.19))
    ax.text(6.85, 0.93, "skip connection, $\\gamma = 1$", ha="center", va="bottom", fontsize=7.5)
    formula = rf"\mathcal{{F}}(h) = {scale}\,[W^{{(l)}}\phi(h) + b^{{(l)}}]"
    ax.text(6.85, -0.7, f"residual branch ${formula}$", ha="center", va="top", fontsize=7.5)


def _box(ax: Any, x: float, y: float, text: str, colour: str, half: float = 0.55) -> None:
    from matplotlib.patches import FancyBboxPatch

    corner = x - half, y - 0.3
    ax.add_patch(FancyBboxPatch(corner, 2 * half, 0.6, boxstyle=_ROUND, fc="white", ec=colour))
    ax.text(x, y, text, ha="center", va="center", fontsize=8)


def _arrow(ax: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    arrow = {"arrowstyle": "-|>", "lw": _LINE, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 6}
    ax.annotate("", end, start, arrowprops=arrow | {"fc": "black"})
