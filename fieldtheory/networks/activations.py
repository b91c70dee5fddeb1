"""Everything that may be given as an activation function, with its readers loaded."""

from fieldtheory.networks import activation_text, callables
from fieldtheory.networks.activation import Activation, as_activation, h
from fieldtheory.networks.named_activations import ACTIVATIONS

__all__ = ["ACTIVATIONS", "Activation", "activation_text", "as_activation", "callables", "h"]
