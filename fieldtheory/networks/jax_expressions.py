"""Functions of JAX as SymPy expressions, from the elementary steps that JAX traces them to."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
import sympy as sp

from fieldtheory.networks.array_functions import applied, number, plain
from fieldtheory.networks.named_activations import where

# Steps that hold a function; the parameter that it is, as versions of JAX call it.
_HOLDING = ("jaxpr", "call_jaxpr", "fun_jaxpr")
_CALLS = (
    *("jit", "pjit", "closed_call", "core_call", "checkpoint", "remat2"),
    *("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"),
)
# Of a single number these give the number.
_SAME = (
    *("broadcast_in_dim", "reshape", "squeeze", "copy", "copy_p"),
    *("optimization_barrier", "stop_gradient"),
)


class Untraceable(Exception):
    """JAX is not imported, or cannot trace a function."""


def traced(function: Callable[..., Any], argument: sp.Symbol) -> Any:
    """The function of one number as an expression."""
    jax = sys.modules.get("jax")
    if jax is None:
        raise Untraceable("JAX is not imported")
    enabled = jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64()
    with enabled:
        # One number; an array of one for jax.vmap.
        for shape in ((), (1,)):
            try:
                whole = jax.make_jaxpr(function)(jax.ShapeDtypeStruct(shape, np.float64))
                break
            except Exception as error:
                reason = Untraceable(str(error))
        else:
            raise reason
    return number(_evaluated(whole, [argument])[0])


def _evaluated(whole: Any, arguments: Sequence[Any]) -> list[Any]:
    """The values of a traced function."""
    jaxpr = getattr(whole, "jaxpr", whole)
    constants = map(plain, getattr(whole, "consts", ()))
    values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*constants, *arguments], strict=True))

    def value(atom: Any) -> Any:
        return plain(atom.val) if hasattr(atom, "val") else values[atom]

    for step in jaxpr.eqns:
        if any(prod(out.aval.shape) != 1 for out in step.outvars):
            raise TypeError(f"{step.primitive.name} makes an array of it")
        values |= zip(step.outvars, _results(step, [value(v) for v in step.invars]), strict=True)
    return [value(out) for out in jaxpr.outvars]


def _results(step: Any, inputs: list[Any]) -> list[Any]:
    """The values of one step."""
    name, options = step.primitive.name, step.params
    if name in _CALLS:
        return _evaluated(next(options[key] for key in _HOLDING if key in options), inputs)
    match name, inputs:
        case "cond", [condition, *operands] if len(options["branches"]) == 2:
            other, first = (_evaluated(branch, operands) for branch in options["branches"])
            return [where(_condition(condition), x, y) for x, y in zip(first, other, strict=True)]
        case "select_n", [condition, y, x]:
            return [where(_condition(condition), x, y)]
        case "convert_element_type", [x] if _keeps(x, np.dtype(options["new_dtype"])):
            return [x]
        case "clamp", [low, x, high]:
            return [applied("clip", [x, low, high])[0]]
        case (("max" | "min"), [_, _]):
            return [applied(f"{name}imum", inputs)[0]]
        case "is_finite", [_]:
            return [sp.true]
    if name in _SAME:
        return inputs[:1]
    return [applied(name, inputs, {"y": options["y"]} if name == "integer_pow" else {})[0]]


def _condition(value: Any) -> Any:
    if isinstance(value, sp.Expr):
        raise TypeError("it chooses by a number that is no condition")
    return value


def _keeps(value: Any, kind: np.dtype) -> bool:
    """Whether a value stays what it is as a number of another kind."""
    # Bytes of float32: a φ rounded to fewer is another function.
    float32 = 4
    if isinstance(value, sp.Expr) and not value.is_number:
        return kind.kind == "f" and kind.itemsize >= float32
    return True
