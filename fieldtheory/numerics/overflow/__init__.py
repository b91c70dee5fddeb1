"""Kernels, responses and tangent kernels that leave the range of float64."""
