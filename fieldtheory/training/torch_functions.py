"""Activations as functions of tensors, made from their expressions."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import sympy as sp
import torch

from fieldtheory.averages.integrands.logistic import without_overflow
from fieldtheory.networks.activations import Activation

# More digits than float64 has.
_DIGITS = 20
_SAME = (
    *("erf", "erfc", "exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh"),
    *("asin", "acos", "atan", "asinh", "acosh", "atanh"),
)
_FUNCTIONS: dict[str, Callable[..., Any]] = {name: getattr(torch, name) for name in _SAME} | {
    "expit": torch.sigmoid,
    "softplus": lambda u: torch.logaddexp(u, torch.zeros_like(u)),
    # Even, with the slope 0 of |u| at zero.
    "log_cosh": lambda u: u.abs() + torch.log1p(torch.exp(-2 * u.abs())) - math.log(2),
}


@cache
def torch_function(activation: Activation) -> Callable[[torch.Tensor], torch.Tensor]:
    """φ as a function of a tensor that torch can differentiate.

    Each smooth piece of φ is evaluated at the argument clamped to its interval, so that a piece
    that overflows elsewhere leaves no NaN in the gradient. At a jump the value is that above it.

    Raises
    ------
    ValueError
        If the expression has a function that torch does not have.

    Examples
    --------
    >>> from fieldtheory.networks.activations import as_activation
    >>> h = torch.tensor([-800.0, 2.0], requires_grad=True)
    >>> torch_function(as_activation("elu"))(h).detach(), torch_function(as_activation("sign"))(h)
    (tensor([-1.,  2.]), tensor([-1.,  1.]))
    """
    pieces = activation.pieces
    branches = [_compiled(branch, pieces.variable, activation) for branch in pieces.branches]
    edges = [None, *map(float, pieces.points), None]

    def phi(h: torch.Tensor) -> torch.Tensor:
        value = h
        for branch, (low, high) in zip(branches, pairwise(edges), strict=True):
            inside = branch(h if low is high else h.clamp(low, high))
            if not isinstance(inside, torch.Tensor):
                inside = torch.full_like(h, inside)
            value = inside if low is None else torch.where(h < low, value, inside)
        return value

    return phi


def _compiled(branch: sp.Expr, variable: sp.Symbol, activation: Activation) -> Callable[..., Any]:
    # Numbers first, since functions of torch take tensors alone.
    form = without_overflow(branch).replace(_is_irrational, lambda number: sp.N(number, _DIGITS))
    unknown = {f.func.__name__ for f in form.atoms(sp.Function)} - set(_FUNCTIONS)
    if unknown:
        raise ValueError(
            f"activation must be made of functions that torch has, got {', '.join(sorted(unknown))}"
            f" in {activation.name}"
        )
    return sp.lambdify(variable, form, modules=[_FUNCTIONS], cse=True)


def _is_irrational(expression: sp.Expr) -> bool:
    return bool(expression.is_number and not expression.is_Rational)
