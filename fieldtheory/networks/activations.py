"""What may be given as an activation function: a name, text, an expression or a function."""

from __future__ import annotations

from typing import Any

import sympy as sp

from fieldtheory.networks.activation import Activation, h
from fieldtheory.networks.activation_text import activation_from_text
from fieldtheory.networks.callables import activation_of_callable
from fieldtheory.networks.named_activations import ACTIVATIONS

__all__ = ["ACTIVATIONS", "Activation", "as_activation", "h"]


def as_activation(value: Any) -> Activation:
    """The activation meant by a name, text, an expression, an `Activation` or a function.

    Parameters
    ----------
    value : str, sympy.Expr, Activation or callable
        A name in ``ACTIVATIONS``: erf, tanh, relu, leaky_relu, linear, logistic, gelu, swish, sin,
        gelu_tanh, quick_gelu, elu, selu, celu, softplus, softsign, mish, hard_tanh, hard_sigmoid,
        hard_swish, relu6, squared_relu, softshrink, hardshrink, tanhshrink, log_sigmoid, arctan,
        arcsinh, sinh, isru, gaussian, abs, sign, heaviside, cos, square, cubic, log_cosh, exp; or a
        synonym such as sigmoid, silu, atan, step, relu2. Case, blanks, hyphens and underscores do
        not matter. Formulas and sources are in ``named_activations.DEFINITIONS``.
        Or arithmetic in one letter, such as "x/(1 + abs(x))", see `activation_from_text`.
        Or a SymPy expression in one symbol. Or a function or module of NumPy, SciPy, math, SymPy,
        PyTorch, JAX that stands for one of these, such as ``np.tanh`` and ``torch.nn.ELU(0.5)``, or
        a function of one's own, see `activation_of_callable`.

    Raises
    ------
    TypeError
        For anything else.
    ValueError
        For a name that is not known, text or a function that cannot be read, and what `Activation`
        refuses.

    Examples
    --------
    >>> as_activation("relu").expression
    Max(0, h)
    >>> as_activation("x/(1 + abs(x))").expression
    h/(Abs(h) + 1)
    >>> import math
    >>> as_activation(math.tanh), as_activation(lambda x: x**2 + x).expression
    (Activation('tanh': tanh(h)), h**2 + h)
    """
    if isinstance(value, Activation):
        return value
    if isinstance(value, str):
        return activation_from_text(value, value.strip())
    if isinstance(value, sp.Expr) and not isinstance(value, sp.Lambda):
        return Activation(value)
    if callable(value):
        return activation_of_callable(value)
    raise TypeError(
        "activation must be a SymPy expression in one symbol, a name, text or a function, "
        f"got {value!r}"
    )
