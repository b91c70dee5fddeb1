"""Infinite depth: the flow of kernels over depth, and sums over infinitely many layers."""

from fieldtheory.limits.infinite_depth import DepthLimit, depth_limit

__all__ = ["DepthLimit", "depth_limit"]
