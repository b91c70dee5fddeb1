"""Functions given as activations: those of other libraries by their names, others by calling them.

No other library is imported. A function is called with a stand-in for h that NumPy, SciPy and
PyTorch hand their functions to, so that it comes back as a SymPy expression.
"""

from __future__ import annotations

import inspect
import math
import operator
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import sympy as sp

from fieldtheory import validation
from fieldtheory.networks.activation import (
    DEFINITIONS,
    Activation,
    as_activation,
    clipped,
    h,
    registered_name,
    similar,
    where,
    with_parameters,
)

_LIBRARIES = ("numpy", "scipy", "sympy", "math", "torch")


def _clip(x: sp.Expr, *bounds: Any, **named: Any) -> sp.Expr:
    # Bounds are a_min and a_max or min and max for NumPy, the latter for PyTorch.
    limits = dict(zip(("low", "high"), bounds, strict=False))
    limits |= {{"in": "low", "ax": "high"}[key[-2:]]: value for key, value in named.items()}
    return clipped(x, **{key: value for key, value in limits.items() if value is not None})


def _rrelu(x: Any, lower: Any = 0.125, upper: Any = 1 / 3, training: Any = False) -> sp.Expr:
    if training:
        raise ValueError("its slope is drawn anew at every call in training; call eval() first")
    return with_parameters("leaky_relu", negative_slope=(lower + upper) / 2)(x)


def _dropout(x: Any, p: Any = 0.5, training: Any = True) -> Any:
    if training and p:
        raise ValueError("it drops at random in training; call eval() first")
    return x


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{"add": operator.add, "mul": operator.mul, "multiply": operator.mul},
    **dict.fromkeys(("subtract", "sub"), operator.sub),
    **dict.fromkeys(("divide", "true_divide", "div"), operator.truediv),
    **dict.fromkeys(("power", "float_power", "pow"), operator.pow),
    **dict.fromkeys(("negative", "neg"), operator.neg),
    **{n: getattr(sp, n) for n in "sqrt cbrt log erfc tan cosh asin acos atanh acosh".split()},
    **{f"arc{n}": getattr(sp, f"a{n}") for n in ("sin", "cos", "tanh", "cosh")},
    "reciprocal": lambda x: 1 / x,
    "rsqrt": lambda x: 1 / sp.sqrt(x),
    "exp2": lambda x: 2**x,
    "expm1": lambda x: sp.exp(x) - 1,
    "log1p": lambda x: sp.log(1 + x),
    "log2": lambda x: sp.log(x, 2),
    "log10": lambda x: sp.log(x, 10),
    "logaddexp": lambda x, y: sp.log(sp.exp(x) + sp.exp(y)),
    # The value at zero does not matter.
    "heaviside": lambda x, *at_zero: sp.Heaviside(x),
    "sinc": lambda x: sp.sin(sp.pi * x) / (sp.pi * x),
    "where": where,
    **dict.fromkeys(("clip", "clamp"), _clip),
    "threshold": lambda x, threshold, value: where(x > threshold, x, value),
    "rrelu": _rrelu,
    **dict.fromkeys(("dropout", "alpha_dropout", "feature_alpha_dropout"), _dropout),
    **{n: getattr(sp, n.capitalize()) for n in ("gt", "ge", "lt", "le", "eq", "ne")},
    **{"greater": sp.Gt, "greater_equal": sp.Ge, "less": sp.Lt, "less_equal": sp.Le},
    **{"equal": sp.Eq, "not_equal": sp.Ne},
    # Of two: with one, max and min are reductions.
    **dict.fromkeys(("maximum", "fmax"), lambda x, y: sp.Max(x, y)),
    **dict.fromkeys(("minimum", "fmin"), lambda x, y: sp.Min(x, y)),
    **dict.fromkeys(("bitwise_and", "logical_and", "and"), sp.And),
    **dict.fromkeys(("bitwise_or", "logical_or", "or"), sp.Or),
    **dict.fromkeys(("bitwise_not", "logical_not", "invert", "not"), sp.Not),
}
# Their arguments may be conditions.
_LOGICAL = ("where", "and", "or", "not", "invert")


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
            return _registered(name, (), {})
    try:
        if isinstance(function, type) and validation.is_torch_module(function):
            # A class of modules stands for the module with its defaults.
            function = function()
        value = function(_Argument(h))
    except Exception as error:
        raise _unreadable(function, " ".join(str(error).split()) or type(error).__name__) from error
    if isinstance(value, _Argument) and value.activation is not None:
        return value.activation
    expression = _plain(value)
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
        known = name.strip("_") in (*_FUNCTIONS, "prelu") or registered_name(name)
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
    named = {key: _plain(value) for key, value in options.items() if key != "inplace"}
    values = [_plain(value) for value in inputs]
    if not name.endswith(_LOGICAL):
        # A condition is one where it holds and zero elsewhere.
        values = [
            sp.Piecewise((1, value), (0, True))
            if isinstance(value, sp.logic.boolalg.Boolean) and not isinstance(value, sp.Symbol)
            else value
            for value in values
        ]
    if name in _FUNCTIONS:
        argument = _Argument(_FUNCTIONS[name](*values, **named))
    else:
        activation = _registered(name, values[1:], named)
        argument = _Argument(activation(values[0]), activation if values[0] == h else None)
    if in_place:
        vars(inputs[0]).update(vars(argument))
    return argument


def _registered(name: str, parameters: Sequence[Any], named: dict[str, Any]) -> Activation:
    """The activation of a name with values of parameters, in PyTorch's order and names."""
    if name == "prelu":
        name, parameters, named = "leaky_relu", [*parameters, *named.values()], {}
    registered_as = registered_name(name)
    if registered_as is None:
        raise TypeError(f"{name} is not one of them")
    if registered_as == "gelu":
        # An option of it is another activation here.
        approximate = named.pop("approximate", "none") in (True, "tanh")
        registered_as = "gelu_tanh" if approximate else "gelu"
    formula = inspect.signature(DEFINITIONS[registered_as].formula)
    bound = formula.bind(*parameters, **named).arguments
    if not all(isinstance(value, sp.Expr) and value.is_number for value in bound.values()):
        raise TypeError(f"the parameters of {name} must be numbers")
    return with_parameters(registered_as, **bound)


def _plain(value: Any) -> Any:
    """The SymPy object of a number of any library; decimal numbers are exact fractions."""
    if isinstance(value, _Argument):
        return value.value
    if isinstance(value, float | np.floating):
        return sp.Rational(str(value)) if math.isfinite(value) else sp.sympify(float(value))
    if isinstance(value, bool | int | np.bool_ | np.integer):
        return sp.sympify(value.item() if isinstance(value, np.generic) else value)
    if hasattr(value, "item"):
        # An array or tensor of one number; others raise.
        return _plain(value.item())
    return value
