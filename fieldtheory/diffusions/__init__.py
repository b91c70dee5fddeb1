"""Deep networks with small parameters and their limit, a diffusion: solved and simulated (PF)."""

from importlib import import_module
from typing import Any

__all__ = [
    "DiffusionEnsemble",
    "DiffusionSolution",
    "FunctionSamples",
    "function_samples",
]


def __getattr__(name: str) -> Any:
    # Loaded when asked for, so that the object that registers the family stays light.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.diffusion_names"), name)
