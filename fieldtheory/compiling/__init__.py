"""Symbolic results as functions of NumPy, mpmath and JAX, and what was done to get there."""
