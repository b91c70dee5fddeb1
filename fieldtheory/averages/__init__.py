"""Gaussian averages ⟨F(h)⟩_{N(0,K)}: the node, its closed forms, and its numbers."""

from fieldtheory.averages.node import ConnectedCorrelator, GaussianAverage

__all__ = ["ConnectedCorrelator", "GaussianAverage"]
