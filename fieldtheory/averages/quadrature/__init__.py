"""Gaussian averages of piecewise analytic functions in float64."""
