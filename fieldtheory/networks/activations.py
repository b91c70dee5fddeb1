"""Everything that may be given as an activation function, with its readers loaded."""

from typing import Any

from fieldtheory.networks import activation_text, callables
from fieldtheory.networks.activation import ACTIVATIONS, Activation, as_activation, h

__all__ = [
    "ACTIVATIONS",
    "Activation",
    "activation_text",
    "as_activation",
    "callables",
    "h",
    "named_activation",
]


def named_activation(name: str, value: Any) -> Activation:
    """`as_activation` of another argument than ``activation``, which errors name."""
    try:
        return as_activation(value)
    except (TypeError, ValueError) as error:
        raise type(error)(str(error).replace("activation", name, 1)) from None
