"""Integrals in the logarithms of the sizes of signals."""
