"""Figures of SR: Hayou et al., Stable ResNet, AISTATS (2021)."""

from fieldtheory.figures.sr_depth import (
    Fig1,
    Fig2,
    draw_fig1,
    draw_fig2,
    fig1,
    fig2,
    of_constant_variance,
    stable_networks,
)
from fieldtheory.figures.sr_finite import (
    Gradients,
    Width,
    draw_gradients,
    draw_width,
    gradients,
    width,
)
from fieldtheory.figures.sr_regression import (
    Fig3,
    Table2,
    draw_fig3,
    draw_table2,
    fig3,
    table2,
)
from fieldtheory.figures.sr_training import draw_table3, table3

__all__ = [
    "Fig1",
    "Fig2",
    "Fig3",
    "Gradients",
    "Table2",
    "Width",
    "draw_fig1",
    "draw_fig2",
    "draw_fig3",
    "draw_gradients",
    "draw_table2",
    "draw_table3",
    "draw_width",
    "fig1",
    "fig2",
    "fig3",
    "gradients",
    "of_constant_variance",
    "stable_networks",
    "table2",
    "table3",
    "width",
]
