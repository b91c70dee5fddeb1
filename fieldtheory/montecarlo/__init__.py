"""Finite networks drawn at random, and the statistics of their kernels with standard errors."""
