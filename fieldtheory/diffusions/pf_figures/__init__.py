"""Figures of PF: Peluchetti, Favaro, Infinitely deep neural networks as diffusions, 2020."""

from fieldtheory.diffusions.pf_figures.pf_functions import draw_fig1, draw_fig3, fig1, fig3
from fieldtheory.diffusions.pf_figures.pf_laws import draw_fig2, draw_fig4, fig2, fig4
from fieldtheory.diffusions.pf_figures.pf_training import draw_fig5, fig5

__all__ = [
    "fig1", "fig2", "fig3", "fig4", "fig5",
    "draw_fig1", "draw_fig2", "draw_fig3", "draw_fig4", "draw_fig5",
]  # fmt: skip
