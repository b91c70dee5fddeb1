"""Observables g(h_α, h_β) of pairs of inputs, by Hermite coefficients and on grids."""
