"""Functions given as activations: those of other libraries by their names, others by calling them.

No other library is imported. A function is called with a stand-in for h that NumPy, SciPy and
PyTorch hand their functions to, so that it comes back as a SymPy expression.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import sympy as sp

from fieldtheory import validation
from fieldtheory.networks.activation import Activation, as_activation, h
from fieldtheory.networks.array_functions import FUNCTIONS, applied, plain, registered
from fieldtheory.networks.named_activations import registered_name, similar

_LIBRARIES = ("numpy", "scipy", "sympy", "math", "torch")


def activation_of_callable(function: Callable[..., Any]) -> Activation:
    """The activation of a function or module: by its name in a library, else by calling it with h.

    Examples
    --------
    >>> activation_of_callable(np.arctan)
    Activation('arctan': atan(h))
    >>> activation_of_callable(lambda x: np.maximum(x, 0.1 * np.tanh(x))).expression
    Max(h, tanh(h)/10)
    """
    if not callable(function):
        raise TypeError(
            "activation must be a SymPy expression in one symbol, a name, text or a function, "
            f"got {function!r}"
        )
    library, name = _library(function), _name(function)
    # Functions of math do not take the stand-in; others by their names come without calling them.
    if library == "math" or isinstance(function, np.ufunc | sp.FunctionClass):
        with suppress(TypeError):
            return registered(name, (), {})
    try:
        if isinstance(function, type) and validation.is_torch_module(function):
            # A class of modules stands for the module with its defaults.
            function = function()
        value = function(_Argument(h))
    except Exception as error:
        raise _unreadable(function, " ".join(str(error).split()) or type(error).__name__) from error
    if isinstance(value, _Argument) and value.activation is not None:
        return value.activation
    expression = plain(_value(value))
    if not isinstance(expression, sp.Expr):
        raise _unreadable(function, f"it gives {expression!r}")
    return Activation(expression, name if library else "")


for _kind in (object, sp.Lambda):
    as_activation.register(_kind)(activation_of_callable)


def _library(function: Any) -> str | None:
    """The library that has a function under its name, None for one's own."""
    owner = getattr(function, "__self__", None)
    module = owner.__name__ if inspect.ismodule(owner) else getattr(function, "__module__", None)
    if isinstance(function, np.ufunc):
        return "numpy"
    # What numpy.vectorize(f) returns has the name and module of f.
    if getattr(sys.modules.get(str(module)), _name(function), None) is not function:
        return None
    root = str(module).split(".")[0]
    return root if root in _LIBRARIES else None


def _name(function: Any) -> str:
    function = function.func if isinstance(function, partial) else function
    return str(getattr(function, "__name__", type(function).__name__))


def _unreadable(function: Any, reason: str) -> ValueError:
    name = _name(function)
    registered = registered_name(name)
    question = f"; did you mean {registered!r}?" if registered else similar(name)
    reason = validation.shortened(reason)
    return ValueError(
        "activation must be made of functions of NumPy, SciPy, SymPy or PyTorch if it is a "
        "function, such as lambda x: x/(1 + np.abs(x)), or be text such as 'x/(1 + abs(x))', "
        f"got {name}, which cannot be called with a symbol ({reason}){question}"
    )


class _Argument(np.lib.mixins.NDArrayOperatorsMixin):
    """A stand-in for h, or for what has been computed from it, perhaps a known activation."""

    def __init__(self, value: Any, activation: Activation | None = None) -> None:
        self.value, self.activation = value, activation

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return NotImplemented if method != "__call__" else _applied(ufunc.__name__, inputs, options)

    def __array_function__(self, function: Any, types: Any, inputs: Any, options: Any) -> Any:
        return _applied(function.__name__, inputs, options)

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, inputs: Any = (), options: Any = None
    ) -> Any:
        return _applied(function.__name__, inputs, options or {})

    def __getattr__(self, name: str) -> Any:
        # Functions are methods too, of arrays and tensors.
        known = name.strip("_") in (*FUNCTIONS, "prelu") or registered_name(name)
        if name.startswith("_") or not known:
            raise AttributeError(f"{name} of a symbol is not known")
        return lambda *inputs, **options: _applied(name, (self, *inputs), options)

    def _sympy_(self) -> Any:
        return self.value

    def __bool__(self) -> bool:
        raise TypeError("whether a symbol is positive is not known; choose with np.where")


def _applied(name: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> _Argument:
    """A function of a library at stand-ins and numbers, as a stand-in for its value."""
    in_place = bool(options.get("inplace")) or name.endswith("_")
    name = name.strip("_").removeprefix("special_")
    options = {key: _value(v) for key, v in options.items() if key != "inplace"}
    values = [_value(v) for v in inputs]
    value, activation = applied(name, values, options)
    argument = _Argument(value, activation if values[0] == h else None)
    if in_place:
        vars(inputs[0]).update(vars(argument))
    return argument


def _value(value: Any) -> Any:
    return value.value if isinstance(value, _Argument) else value
