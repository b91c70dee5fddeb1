"""Averages and cumulants with mpmath."""
