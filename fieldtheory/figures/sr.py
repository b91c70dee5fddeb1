"""Figures of SR: Hayou et al., Stable ResNet, AISTATS (2021)."""

from fieldtheory.figures.sr_depth import (
    draw_fig1,
    draw_fig2,
    draw_width,
    fig1,
    fig2,
    stable_networks,
    width,
)
from fieldtheory.figures.sr_regression import draw_fig3, draw_table2, fig3, table2
from fieldtheory.figures.sr_training import draw_table3, table3

__all__ = [
    "fig1", "fig2", "fig3", "table2", "table3", "width",
    "draw_fig1", "draw_fig2", "draw_fig3", "draw_table2", "draw_table3",
    "draw_width", "stable_networks",
]  # fmt: skip
