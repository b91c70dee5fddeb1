"""The activation function φ, and those known by name: a table of formulas and where they are from.

Formulas and the values of their parameters are those of PyTorch where it has the function, which
are those of the papers named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache, cached_property, singledispatch
from inspect import signature
from typing import Any, NamedTuple

import sympy as sp
from sympy import Abs, Heaviside, Max, Min, Piecewise, erf, exp, log, sqrt, tanh

from fieldtheory.averages.integrands.breakpoints import Pieces, canonical, pieces_of
from fieldtheory.networks.existence import require_averages

h = sp.Symbol("h", real=True)


@singledispatch
def as_activation(value: Any) -> Activation:
    """The activation meant by a name, text, an expression, an `Activation` or a function.

    `activation_text` registers as the reader of text, `callables` as that of functions.

    Parameters
    ----------
    value : str, sympy.Expr, Activation or callable
        A name in ``ACTIVATIONS``: erf, tanh, relu, leaky_relu, linear, logistic, gelu, swish, sin,
        gelu_tanh, quick_gelu, elu, selu, celu, softplus, softsign, mish, hard_tanh, hard_sigmoid,
        hard_swish, relu6, squared_relu, softshrink, hardshrink, tanhshrink, log_sigmoid, arctan,
        arcsinh, sinh, isru, gaussian, abs, sign, heaviside, cos, square, cubic, log_cosh, exp; or a
        synonym such as sigmoid, silu, atan, step, relu2. Case, blanks, hyphens and underscores do
        not matter. Formulas and sources are in ``DEFINITIONS``.
        Or arithmetic in one letter, such as "x/(1 + abs(x))", see `activation_from_text`.
        Or a SymPy expression in one symbol. Or a function or module of NumPy, SciPy, math, SymPy,
        PyTorch, such as ``np.tanh`` and ``torch.nn.ELU(0.5)``, or a function of one's own,
        see `activation_of_callable`.

    Raises
    ------
    TypeError
        For anything else.
    ValueError
        For a name that is not known, text or a function that cannot be read, and what `Activation`
        refuses.

    Examples
    --------
    >>> from fieldtheory.networks.activations import as_activation
    >>> as_activation("relu").expression
    Max(0, h)
    >>> as_activation("x/(1 + abs(x))").expression
    h/(Abs(h) + 1)
    >>> import math
    >>> as_activation(math.tanh), as_activation(lambda x: x**2 + x).expression
    (Activation('tanh': tanh(h)), h**2 + h)
    """
    raise NotImplementedError("fieldtheory.networks.activations loads the readers")


@dataclass(frozen=True)
class Activation:
    """An activation function φ: a SymPy expression in one symbol.

    Parameters
    ----------
    expression : sympy.Expr, or what `as_activation` reads
        φ(h), an expression with exactly one free symbol (none for a constant is not allowed), or a
        name, text or function that stands for one. It is real and finite for every real h, up to
        removable singularities such as that of sin(h)/h, and grows more slowly than every
        exp(c h²), so that ⟨φ²⟩ exists for Gaussian h of any variance. Floats are taken as the
        decimal fractions that they print as. Where kinks cancel, as in max(h, 0) + min(h, 0), or
        have no closed form, it is kept as a Piecewise of its smooth pieces.
    name : str, optional
        What reports and files call it; the registered name or the expression's text if left out.

    Raises
    ------
    TypeError
        If ``expression`` is none of these.
    ValueError
        If it cannot be read, does not contain exactly one symbol, is not real or not finite
        somewhere, or grows so fast that its averages diverge; the message says where.

    Examples
    --------
    >>> import sympy as sp
    >>> x = sp.Symbol("x")
    >>> Activation(x / (1 + sp.Abs(x)), name="softsign")(sp.Integer(1))
    1/2
    >>> Activation(sp.sin(x) / x)(0), Activation("gelu", name="mine")(0)
    (1, 0)
    """

    expression: sp.Expr
    name: str = field(default="")

    def __post_init__(self) -> None:
        if not isinstance(self.expression, sp.Expr) or isinstance(self.expression, sp.Lambda):
            read = as_activation(self.expression)
            object.__setattr__(self, "expression", read.expression)
            object.__setattr__(self, "name", self.name or read.name)
            return
        symbols = self.expression.free_symbols
        if len(symbols) != 1:
            names = ", ".join(sorted(map(str, symbols))) or "none"
            raise ValueError(
                f"activation must have exactly one symbol, got {names} in {self.expression}"
            )
        typed = self.expression.xreplace({symbols.pop(): h})
        written = typed.xreplace({number: exact(number) for number in typed.atoms(sp.Float)})
        require_averages(written, h)
        expression = canonical(written, h)
        if not expression.has(h):
            raise ValueError(f"activation must depend on its symbol, got {typed} = {expression}")
        object.__setattr__(self, "expression", expression)
        object.__setattr__(self, "name", self.name or str(typed))

    def __call__(self, argument: Any) -> sp.Expr:
        """φ at ``argument``, a SymPy expression or number; its limit where φ is 0/0."""
        value = self.expression.subs(h, argument := sp.sympify(argument))
        return sp.limit(self.expression, h, argument) if value.has(sp.nan) else value

    @cached_property
    def pieces(self) -> Pieces:
        """Its smooth pieces, breakpoints and jumps."""
        return pieces_of(self.expression, h)

    def sides(self, order: int, point: sp.Expr = sp.S.Zero) -> tuple[sp.Expr, sp.Expr]:
        """The derivative of an order just below and just above a point; infinite where it is."""
        values = []
        for branch, side in zip(self.pieces.around(point), "-+", strict=True):
            derivative = branch.diff(h, order)
            value = derivative.subs(h, point)
            if value.has(sp.nan, sp.zoo, sp.oo):
                value = sp.limit(derivative, h, point, side)
            values.append(sp.simplify(value))
        return values[0], values[1]

    @cached_property
    def slope_at_zero(self) -> sp.Expr:
        """φ'(0); the mean of both sides where φ has a kink at zero."""
        return sp.simplify(sp.Add(*self.sides(1)) / 2)

    def __repr__(self) -> str:
        return f"Activation({self.name!r}: {self.expression})"


@as_activation.register
def _of_activation(value: Activation | sp.Expr) -> Activation:
    return value if isinstance(value, Activation) else Activation(value)


def exact(number: sp.Float) -> sp.Rational:
    """The decimal fraction that was typed, as in text: closed forms of floats lose digits."""
    # Bits of a float.
    double = 53
    return sp.Rational(repr(float(number)) if number._prec <= double else str(number))


_HALF = sp.Rational(1, 2)
_PERCENT = sp.Rational(1, 100)
# PyTorch's softplus is h where β h exceeds its threshold. From this one on, the default, that is
# the rounding of float32: ln(1 + e⁻²⁰) = 2e-9.
_LINEAR = sp.Integer(20)
_CUBIC = sp.Rational("0.044715")
_SELU_SCALE = sp.Rational("1.0507009873554804934193349852946")
_SELU_ALPHA = sp.Rational("1.6732632423543772848170429916717")


def _logistic(x: sp.Expr) -> sp.Expr:
    # This form neither overflows nor loses digits in its derivatives.
    return (1 + tanh(x / 2)) / 2


def _elu(alpha: sp.Expr) -> sp.Expr:
    return Piecewise((h, h > 0), (alpha * (exp(h) - 1), True))


def _celu(alpha: sp.Expr = sp.S.One) -> sp.Expr:
    if alpha == 0:
        raise ValueError("alpha must not be 0")
    return Piecewise((h, h > 0), (alpha * (exp(h / alpha) - 1), True))


def _mish() -> sp.Expr:
    # h tanh ln(1 + e^h), in which e^h would overflow.
    t = tanh(h / 2)
    return h * (1 + t) * (3 - t) / (4 + (1 - t) ** 2)


def _softplus(beta: sp.Expr = sp.S.One, threshold: sp.Expr = _LINEAR) -> sp.Expr:
    smooth = log(1 + exp(beta * h)) / beta
    return smooth if threshold >= _LINEAR else Piecewise((h, beta * h > threshold), (smooth, True))


def _softshrink(lambd: sp.Expr = _HALF) -> sp.Expr:
    if lambd < 0:
        raise ValueError(f"lambd must be >= 0, got {lambd}")
    return Max(0, h - lambd) + Min(0, h + lambd)


def _hard_sigmoid() -> sp.Expr:
    return Max(0, Min(6, h + 3)) / 6


class Definition(NamedTuple):
    """A row of the table."""

    # φ(h), an expression in ``h``, as a function of parameters that have defaults.
    formula: Callable[..., sp.Expr]
    # What it is and where it is defined.
    source: str
    # Other names, separated by blanks.
    synonyms: str = ""


DEFINITIONS: dict[str, Definition] = {
    "erf": Definition(lambda: erf(h), "error function (F25, F23)"),
    "tanh": Definition(lambda: tanh(h), "hyperbolic tangent"),
    "relu": Definition(lambda: Max(0, h), "Nair, Hinton 2010"),
    "leaky_relu": Definition(
        lambda negative_slope=_PERCENT: Max(0, h) + negative_slope * Min(0, h),
        "Maas et al. 2013; slope 1/100 below zero",
    ),
    "linear": Definition(lambda: h, "the identity", "identity"),
    "logistic": Definition(lambda: _logistic(h), "1/(1 + exp(−h))", "sigmoid expit"),
    "gelu": Definition(
        lambda: h * (1 + erf(h / sqrt(2))) / 2,
        "Hendrycks, Gimpel, arXiv:1606.08415: h Φ(h), exact",
        "gelu_erf gelu_exact",
    ),
    "swish": Definition(
        lambda: h * _logistic(h), "Ramachandran et al., arXiv:1710.05941: h σ(h)", "silu"
    ),
    "sin": Definition(lambda: sp.sin(h), "Sitzmann et al., arXiv:2006.09661", "sine siren"),
    "gelu_tanh": Definition(
        lambda: h * (1 + tanh(sqrt(2 / sp.pi) * (h + _CUBIC * h**3))) / 2,
        "arXiv:1606.08415: approximation of gelu",
        "gelu_new",
    ),
    "quick_gelu": Definition(
        lambda: h * _logistic(sp.Rational("1.702") * h),
        "arXiv:1606.08415: h σ(1.702 h)",
        "gelu_sigmoid",
    ),
    "elu": Definition(
        lambda alpha=sp.S.One: _elu(alpha), "Clevert et al., arXiv:1511.07289; α = 1"
    ),
    "selu": Definition(
        lambda: _SELU_SCALE * _elu(_SELU_ALPHA),
        "Klambauer et al., arXiv:1706.02515; λ = 1.0507…, α = 1.6732…",
    ),
    "celu": Definition(_celu, "Barron, arXiv:1704.07483; α = 1, where it is elu"),
    "softplus": Definition(_softplus, "Dugas et al. 2001; β = 1"),
    "softsign": Definition(lambda: h / (1 + Abs(h)), "Bergstra et al. 2009"),
    "mish": Definition(_mish, "Misra, arXiv:1908.08681: h tanh(softplus(h))"),
    "hard_tanh": Definition(
        lambda min_val=sp.S.NegativeOne, max_val=sp.S.One: clipped(h, min_val, max_val),
        "Collobert 2004; between −1 and 1",
    ),
    "hard_sigmoid": Definition(
        _hard_sigmoid, "Courbariaux et al., arXiv:1511.00363, as in PyTorch: relu6(h + 3)/6"
    ),
    "hard_swish": Definition(
        lambda: h * _hard_sigmoid(),
        "Howard et al., arXiv:1905.02244: h relu6(h + 3)/6",
        "hard_silu",
    ),
    "relu6": Definition(
        lambda: Max(0, Min(6, h)), "Krizhevsky 2010; between 0 and 6", "clipped_relu"
    ),
    "squared_relu": Definition(
        lambda: Max(0, h) ** 2, "So et al., arXiv:2109.08668", "relu2 relu_squared"
    ),
    "softshrink": Definition(_softshrink, "PyTorch; λ = 1/2"),
    "hardshrink": Definition(
        lambda lambd=_HALF: Piecewise((h, h > lambd), (h, h < -lambd), (0, True)),
        "PyTorch; λ = 1/2",
    ),
    "tanhshrink": Definition(lambda: h - tanh(h), "PyTorch"),
    "log_sigmoid": Definition(
        lambda: -log(1 + exp(-h)), "PyTorch: ln σ(h)", "log_logistic log_expit"
    ),
    "arctan": Definition(lambda: sp.atan(h), "inverse tangent", "atan"),
    "arcsinh": Definition(lambda: sp.asinh(h), "inverse hyperbolic sine", "asinh"),
    "sinh": Definition(lambda: sp.sinh(h), "hyperbolic sine"),
    "isru": Definition(
        lambda: h / sqrt(1 + h**2),
        "Carlile et al., arXiv:1710.09967; α = 1",
        "algebraic_sigmoid",
    ),
    "gaussian": Definition(lambda: exp(-(h**2)), "exp(−h²)", "gauss"),
    "abs": Definition(lambda: Abs(h), "|h|", "absolute fabs"),
    "sign": Definition(lambda: sp.sign(h), "−1 and 1", "sgn signum"),
    "heaviside": Definition(lambda: Heaviside(h), "0 and 1; 1/2 at zero", "step binary_step"),
    "cos": Definition(lambda: sp.cos(h), "cosine", "cosine"),
    "square": Definition(lambda: h**2, "h²", "squared quadratic"),
    "cubic": Definition(lambda: h**3, "h³", "cube cubed"),
    "log_cosh": Definition(lambda: log(sp.cosh(h)), "ln cosh(h)"),
    "exp": Definition(lambda: exp(h), "exponential", "exponential"),
}


class _Registry(Mapping[str, Activation]):
    """The activations of the table by name, each made when it is first asked for."""

    def __getitem__(self, name: str) -> Activation:
        return with_parameters(name)

    def __iter__(self) -> Iterator[str]:
        return iter(DEFINITIONS)

    def __len__(self) -> int:
        return len(DEFINITIONS)


ACTIVATIONS: Mapping[str, Activation] = _Registry()


@cache
def with_parameters(name: str, **parameters: sp.Expr) -> Activation:
    """A registered activation with values of its parameters that may differ from the defaults.

    Examples
    --------
    >>> with_parameters("leaky_relu", negative_slope=sp.Rational(1, 5))
    Activation('leaky_relu(negative_slope=1/5)': Max(0, h) + Min(0, h)/5)
    """
    expression = DEFINITIONS[name].formula(**parameters)
    if not parameters:
        # Averages of named ones are known to exist: they are not probed.
        activation = object.__new__(Activation)
        object.__setattr__(activation, "expression", canonical(expression, h))
        object.__setattr__(activation, "name", name)
        return activation
    # With these values it may be another one, as hard_tanh between 0 and 6 is relu6.
    for registered in (name, *DEFINITIONS):
        if expression == DEFINITIONS[registered].formula():
            return with_parameters(registered)
    defaults = signature(DEFINITIONS[name].formula).parameters
    changed = {key: v for key, v in parameters.items() if v != defaults[key].default}
    values = ", ".join(f"{key}={value}" for key, value in changed.items())
    return Activation(expression, f"{name}({values})")


def plain(name: str) -> str:
    """A name without what people write differently: case, blanks, hyphens and underscores.

    Examples
    --------
    >>> plain("Hard Swish") == plain("hard_swish") == plain("HardSwish")
    True
    """
    return re.sub(r"[\s_-]+", "", name).lower()


@cache
def known_names() -> dict[str, str]:
    """The registered name meant by every name and synonym, these as `plain` gives them."""
    return {
        plain(typed): name
        for name, row in DEFINITIONS.items()
        for typed in (name, *row.synonyms.split())
    }


def registered_name(name: str) -> str | None:
    """The name in ``ACTIVATIONS`` that a name or synonym stands for, or None.

    Examples
    --------
    >>> registered_name("SiLU"), registered_name("hard swish"), registered_name("tahn")
    ('swish', 'hard_swish', None)
    """
    return known_names().get(plain(name))


def clipped(x: sp.Expr, low: sp.Expr = -sp.oo, high: sp.Expr = sp.oo) -> sp.Expr:
    """x between two bounds, as ``np.clip`` has it: the upper one where they are in disorder.

    Examples
    --------
    >>> clipped(h, sp.Integer(-1), sp.Integer(1)), clipped(h, low=sp.S.Zero)
    (Max(-1, Min(1, h)), Max(0, h))
    """
    return Max(Min(low, high), Min(high, x))


def where(condition: Any, x: sp.Expr, y: sp.Expr) -> sp.Expr:
    """x where a condition holds and y elsewhere, as ``np.where`` has it.

    Examples
    --------
    >>> where(h > 0, h, sp.Integer(0))
    Piecewise((h, h > 0), (0, True))
    """
    return Piecewise((x, condition), (y, True))


def similar(name: str, functions: Iterable[str] = ()) -> str:
    """A question after the most similar name, to end an error with; empty if there is none.

    Examples
    --------
    >>> similar("tahn"), similar("xyz"), similar("wher", ["where"])
    ('; did you mean tanh?', '', '; did you mean where?')
    """
    spelled = {
        plain(typed): typed for row in DEFINITIONS.values() for typed in row.synonyms.split()
    }
    spelled |= {plain(name): name for name in DEFINITIONS}
    for candidates in (spelled, {plain(function): function for function in functions}):
        if close := get_close_matches(plain(name), candidates, n=1, cutoff=0.7):
            return f"; did you mean {candidates[close[0]]}?"
    return ""
