"""The nodes and what turns one kind into the other, under one name."""

from fieldtheory.averages.base import AverageNode
from fieldtheory.averages.connected import ConnectedCorrelator
from fieldtheory.averages.gathering import expand_averages, gather_connected
from fieldtheory.averages.gaussian import GaussianAverage, without_deltas

__all__ = [
    "AverageNode",
    "ConnectedCorrelator",
    "GaussianAverage",
    "expand_averages",
    "gather_connected",
    "without_deltas",
]
