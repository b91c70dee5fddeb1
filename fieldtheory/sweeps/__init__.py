"""Grids of parameters, in chunks that can be resumed."""
