"""Expressions as NumPy functions: see `quadrature.compiled`."""

from fieldtheory.averages.quadrature.compiled import in_float64, kinks_of, vectorised

__all__ = ["in_float64", "kinks_of", "vectorised"]
