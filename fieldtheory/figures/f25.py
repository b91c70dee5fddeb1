"""Figures of F25: Fischer, Dahmen, Helias, Field theory for optimal signal propagation, 2025."""

from fieldtheory.figures.f25_response import draw_fig1, draw_fig3, draw_fig4, fig1, fig3, fig4
from fieldtheory.figures.f25_simulation import draw_fig2, draw_fig8, fig2, fig8
from fieldtheory.figures.f25_tasks import draw_fig5, draw_fig6, draw_fig9, fig5, fig6, fig9
from fieldtheory.figures.f25_training import draw_fig7, fig7

__all__ = [
    "fig1", "fig2", "fig3", "fig4", "fig5", "fig6", "fig7", "fig8", "fig9",
    "draw_fig1", "draw_fig2", "draw_fig3", "draw_fig4", "draw_fig5", "draw_fig6", "draw_fig7",
    "draw_fig8", "draw_fig9",
]  # fmt: skip
