"""Infinite depth in numbers: the flow that layers become, and sums over infinitely many layers."""

from fieldtheory.limits.infinite_depth import DepthLimit, depth_limit

__all__ = ["DepthLimit", "depth_limit"]
