"""Infinite width for many pairs of inputs at once, by interpolation."""
