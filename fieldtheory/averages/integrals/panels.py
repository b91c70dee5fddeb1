"""Where panels end: see `quadrature.gauss_legendre`."""

from fieldtheory.averages.quadrature.gauss_legendre import (
    WIDEST,
    breakpoints,
    evenly,
    graded_cuts,
    offsets,
    offsets_both_sides,
)

__all__ = ["WIDEST", "breakpoints", "evenly", "graded_cuts", "offsets", "offsets_both_sides"]
