"""Kernels and tangent kernels that leave the range of float64."""
