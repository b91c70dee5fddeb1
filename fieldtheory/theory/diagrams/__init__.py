"""Feynman diagrams of the loop expansion: all of them, those that vanish, their values."""
