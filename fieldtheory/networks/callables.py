"""Functions given as activations: those of other libraries by their names, others by calling them.

No other library is imported. A function of one's own is called with a stand-in for h that NumPy,
SciPy and PyTorch hand their functions to, so that it comes back as a SymPy expression.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import sympy as sp

from fieldtheory.networks.activation import Activation, h
from fieldtheory.networks.named_activations import (
    ACTIVATIONS,
    DEFINITIONS,
    clipped,
    registered_name,
    similar,
    where,
    with_parameters,
)

_LIBRARIES = ("numpy", "scipy", "sympy", "math", "torch", "jax", "flax")
# Of these, gelu is the approximation by default.
_APPROXIMATE = ("jax", "flax")
# Arguments that do not change the function.
_IMMATERIAL = ("inplace", "threshold")

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "power": lambda x, y: x**y,
    "float_power": lambda x, y: x**y,
    "negative": lambda x: -x,
    "reciprocal": lambda x: 1 / x,
    "sqrt": sp.sqrt,
    "cbrt": sp.cbrt,
    "exp2": lambda x: 2**x,
    "expm1": lambda x: sp.exp(x) - 1,
    "log": sp.log,
    "log1p": lambda x: sp.log(1 + x),
    "log2": lambda x: sp.log(x, 2),
    "log10": lambda x: sp.log(x, 10),
    "logaddexp": lambda x, y: sp.log(sp.exp(x) + sp.exp(y)),
    "erfc": sp.erfc,
    "tan": sp.tan,
    "cosh": sp.cosh,
    "arcsin": sp.asin,
    "arccos": sp.acos,
    "arctanh": sp.atanh,
    "arccosh": sp.acosh,
    # The value at zero does not matter.
    "heaviside": lambda x, *at_zero: sp.Heaviside(x),
    "sinc": lambda x: sp.sin(sp.pi * x) / (sp.pi * x),
    "where": where,
    **dict.fromkeys(("clip", "clamp"), clipped),
    "greater": sp.Gt,
    "greater_equal": sp.Ge,
    "less": sp.Lt,
    "less_equal": sp.Le,
    "equal": sp.Eq,
    "not_equal": sp.Ne,
    **dict.fromkeys(("maximum", "fmax"), sp.Max),
    **dict.fromkeys(("minimum", "fmin"), sp.Min),
    **dict.fromkeys(("bitwise_and", "logical_and"), sp.And),
    **dict.fromkeys(("bitwise_or", "logical_or"), sp.Or),
}


def activation_of_callable(function: Callable[..., Any]) -> Activation:
    """The activation that a function stands for.

    Parameters
    ----------
    function : callable
        A function of NumPy, SciPy, SymPy, math, PyTorch or JAX with a name in ``ACTIVATIONS``,
        such as ``np.tanh``, ``torch.nn.functional.relu``, ``jax.nn.gelu`` (the approximation by
        tanh, as it is there); an activation of ``torch.nn``, of which slopes and the like are
        read; one of these in a `functools.partial`; or any function of one argument made of
        arithmetic and of functions of NumPy, SciPy, SymPy or PyTorch.

    Returns
    -------
    Activation
        Under its name in ``ACTIVATIONS`` or in its library; a function of one's own under its
        formula.

    Raises
    ------
    ValueError
        If the function cannot be called with a symbol; the message says what to write.

    Examples
    --------
    >>> activation_of_callable(np.arctan)
    Activation('arctan': atan(h))
    >>> activation_of_callable(lambda x: np.maximum(x, 0.1 * np.tanh(x))).expression
    Max(h, tanh(h)/10)
    """
    keywords: dict[str, Any] = {}
    target: Any = function
    if isinstance(function, partial) and not function.args:
        target, keywords = function.func, function.keywords
    named = _of_library(target, keywords)
    return named if named is not None else _called(function)


def _of_library(function: Any, keywords: dict[str, Any]) -> Activation | None:
    """The registered activation that a function of a library is, or None."""
    library = _library(function)
    if library is None:
        return None
    kind = function if isinstance(function, type) else type(function)
    if library == "torch" and kind.__module__.startswith("torch.nn.modules"):
        return _of_torch_module(function, kind.__name__)
    found = registered_name(_name(function).removeprefix("special_"))
    if found is None:
        return None
    material = {key: value for key, value in keywords.items() if key not in _IMMATERIAL}
    if found == "gelu":
        approximate = material.get("approximate", library in _APPROXIMATE)
        return ACTIVATIONS["gelu_tanh" if approximate in (True, "tanh") else "gelu"]
    unknown = set(material) - set(_parameters(found))
    if unknown:
        raise ValueError(
            f"activation must have parameters {', '.join(_parameters(found)) or '(none)'} "
            f"if it is {found}, got {', '.join(sorted(unknown))}"
        )
    return _with_numbers(found, material)


def _of_torch_module(module: Any, name: str) -> Activation:
    # The class alone stands for the module with its defaults.
    given = {} if isinstance(module, type) else vars(module)
    if name == "GELU":
        return ACTIVATIONS["gelu_tanh" if given.get("approximate") == "tanh" else "gelu"]
    if name == "PReLU" and given.get("num_parameters") == 1:
        return _with_numbers("leaky_relu", {"negative_slope": module.weight.item()})
    # Linear is a layer there.
    found = None if name == "Linear" else registered_name(name)
    if found is None:
        raise ValueError(
            f"activation must be one of {', '.join(ACTIVATIONS)}, or text such as "
            f"'x/(1 + abs(x))', got torch.nn.{name}"
        )
    return _with_numbers(found, {key: given[key] for key in _parameters(found) if key in given})


def _parameters(name: str) -> tuple[str, ...]:
    return tuple(inspect.signature(DEFINITIONS[name].formula).parameters)


def _with_numbers(name: str, values: dict[str, Any]) -> Activation:
    return with_parameters(name, **{key: sp.Rational(str(v)) for key, v in values.items()})


def _library(function: Any) -> str | None:
    """The library that a function belongs to, None for one's own."""
    for owner in (function, getattr(function, "__self__", None), type(function)):
        module = owner.__name__ if inspect.ismodule(owner) else getattr(owner, "__module__", None)
        root = str(module).split(".")[0]
        if root in _LIBRARIES:
            return root
    return None


def _name(function: Any) -> str:
    name = getattr(function, "__name__", type(function).__name__)
    return _text_of_lambda(function) if name == "<lambda>" else name


def _called(function: Callable[..., Any]) -> Activation:
    """What a function makes of h."""
    name = _name(function.func if isinstance(function, partial) else function)
    try:
        value = _plain(function(_Argument(h)))
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise _unreadable(name, reason) from error
    if not isinstance(value, sp.Expr):
        raise _unreadable(name, f"it gives {value!r}")
    return Activation(
        value, name if _library(function) and not isinstance(function, partial) else ""
    )


def _text_of_lambda(function: Any) -> str:
    """The text of a lambda where its source can be read: what has its names."""
    names = ("co_names", "co_varnames", "co_consts")
    own = [getattr(function.__code__, name) for name in names]
    with suppress(OSError, TypeError):
        source = " ".join(inspect.getsource(function).split())
        for start in (found.start() for found in re.finditer("lambda", source)):
            for end in range(len(source), start, -1):
                with suppress(SyntaxError, ValueError, IndexError):
                    code = compile(source[start:end], "", "eval").co_consts[0]
                    if [getattr(code, name, None) for name in names] == own:
                        return source[start:end]
    return str(function.__name__)


def _unreadable(name: str, reason: str) -> ValueError:
    reason = reason if len(reason) <= 100 else f"{reason[:97]}..."
    known = registered_name(name)
    question = f"; did you mean {known!r}?" if known else similar(name)
    return ValueError(
        "activation must be made of functions of NumPy, SciPy or SymPy if it is a function, such "
        "as lambda x: x/(1 + np.abs(x)), or be text such as 'x/(1 + abs(x))', "
        f"got {name}, which cannot be called with a symbol ({reason}){question}"
    )


class _Argument(np.lib.mixins.NDArrayOperatorsMixin):
    """A stand-in for h, or for what has been computed from it."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return NotImplemented if method != "__call__" or options else _applied(ufunc, inputs)

    def __array_function__(self, function: Any, types: Any, inputs: Any, options: Any) -> Any:
        return NotImplemented if options else _applied(function, inputs)

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, inputs: Any = (), options: Any = None
    ) -> Any:
        return _applied(function, inputs, **(options or {}))

    def _sympy_(self) -> Any:
        return self.value

    def __bool__(self) -> bool:
        raise TypeError("whether a symbol is positive is not known; choose with np.where")


def _applied(function: Any, inputs: tuple[Any, ...], **options: Any) -> Any:
    """A function of a library at stand-ins and numbers, as a stand-in for its value."""
    name = function.__name__
    values = [_plain(value) for value in inputs]
    if name not in ("where", "logical_and", "logical_or", "bitwise_and", "bitwise_or"):
        values = [_number(value) for value in values]
    if name in _FUNCTIONS and not options:
        return _Argument(_FUNCTIONS[name](*values))
    known = _of_library(function, options) if len(values) == 1 else None
    return NotImplemented if known is None else _Argument(known(values[0]))


def _plain(value: Any) -> Any:
    """The SymPy object of a stand-in or a number; decimal numbers are exact fractions."""
    if isinstance(value, _Argument):
        return value.value
    if isinstance(value, float | np.floating):
        return sp.Rational(str(value))
    return sp.Integer(int(value)) if isinstance(value, int | np.integer) else value


def _number(value: Any) -> Any:
    """A condition as one where it holds and zero elsewhere."""
    condition = isinstance(value, sp.core.relational.Relational | sp.logic.boolalg.BooleanFunction)
    return sp.Piecewise((1, value), (0, True)) if condition else value
