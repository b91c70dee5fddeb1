"""Averages and connected correlators as SymPy nodes, and their closed forms."""
