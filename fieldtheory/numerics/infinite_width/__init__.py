"""Infinite width: the mean field, responses, derivatives by parameters, and logarithms."""
