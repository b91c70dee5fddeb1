"""Symbolic results as functions of NumPy and mpmath, and what was done to get there."""
