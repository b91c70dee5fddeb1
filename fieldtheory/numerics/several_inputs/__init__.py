"""Finite width for several inputs: covariances, four-point vertices and mean shifts."""
