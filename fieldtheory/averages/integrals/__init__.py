"""Integrals in float64, each with an estimate of its error."""
