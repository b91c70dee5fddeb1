"""Gaussian averages ⟨F(h)⟩_{N(0,K)} and cumulants: nodes, closed forms, and their numbers."""

from fieldtheory.averages.connected import ConnectedCorrelator
from fieldtheory.averages.gaussian import GaussianAverage

__all__ = ["ConnectedCorrelator", "GaussianAverage"]
