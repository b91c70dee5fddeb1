"""Families of networks, and the parts of which a family is made."""

from fieldtheory.networks.activations import Activation
from fieldtheory.networks.family import Coefficients, LayeredNetwork, per_layer
from fieldtheory.networks.residual import FeedForwardNetwork, ResidualNetwork, input_kernel

__all__ = [
    "Activation",
    "Coefficients",
    "FeedForwardNetwork",
    "LayeredNetwork",
    "ResidualNetwork",
    "input_kernel",
    "per_layer",
]
