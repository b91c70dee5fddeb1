"""Functions that are polynomials between their kinks: signs, ramps and their products."""
