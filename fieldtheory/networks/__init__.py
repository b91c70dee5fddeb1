"""Families of networks, and the parts of which a family is made."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fieldtheory.networks.activations import Activation
    from fieldtheory.networks.block import BlockNetwork
    from fieldtheory.networks.family import Coefficients, LayeredNetwork, per_layer
    from fieldtheory.networks.gram import GramEntry, GramNetwork
    from fieldtheory.networks.residual import FeedForwardNetwork, ResidualNetwork, input_kernel

__all__ = [
    "Activation",
    "BlockNetwork",
    "Coefficients",
    "FeedForwardNetwork",
    "GramEntry",
    "GramNetwork",
    "LayeredNetwork",
    "ResidualNetwork",
    "input_kernel",
    "per_layer",
]


def __getattr__(name: str) -> Any:
    # Loaded when asked for, so that names of parameters do not need SymPy.
    for module in ("activations", "block", "family", "gram", "residual") if name in __all__ else ():
        submodule = import_module(f"{__name__}.{module}")
        if hasattr(submodule, name):
            return getattr(submodule, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
