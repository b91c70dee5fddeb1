"""Figures of PF: Peluchetti, Favaro, Infinitely deep neural networks as diffusion processes.

AISTATS (2020). ``fig1`` and so on compute what is plotted; ``draw_fig1`` and so on draw it.
"""

from fieldtheory.figures.pf_functions import (
    Fig1,
    Fig3,
    RandomFunctions,
    draw_fig1,
    draw_fig3,
    fig1,
    fig3,
)
from fieldtheory.figures.pf_laws import Fig2, Fig4, draw_fig2, draw_fig4, fig2, fig4
from fieldtheory.figures.pf_training import draw_fig5, fig5

__all__ = [
    "Fig1",
    "Fig2",
    "Fig3",
    "Fig4",
    "RandomFunctions",
    "draw_fig1",
    "draw_fig2",
    "draw_fig3",
    "draw_fig4",
    "draw_fig5",
    "fig1",
    "fig2",
    "fig3",
    "fig4",
    "fig5",
]
