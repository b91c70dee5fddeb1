"""Gauss-Legendre rules: see `quadrature.gauss_legendre`."""

from fieldtheory.averages.quadrature.gauss_legendre import composite, legendre

__all__ = ["composite", "legendre"]
